"""How tensors and symbols are named in what the assertions say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import described


def listed(items: Iterable[Any]) -> str:
    return ", ".join(map(described, items))
