"""How tensors and symbols are named in what the assertions say, and the names that are taken by them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..latex import displayed_names
from ..tensor import Tensor


def shown(x: Any) -> str:
    return x.brief() if isinstance(x, Tensor) else str(x)


def listed(items: Iterable[Any]) -> str:
    return ", ".join(map(shown, items))


def names_in(roots: Sequence[Tensor]) -> set[str]:
    """The names that a fresh one must not take."""
    return {*displayed_names(roots).values(), *(s.name for x in roots for s in x.free_symbols)}
