"""How tensors and symbols are named in what the assertions say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..tensor import Tensor


def shown(x: Any) -> str:
    return x.brief() if isinstance(x, Tensor) else str(x)


def listed(items: Iterable[Any]) -> str:
    return ", ".join(map(shown, items))
