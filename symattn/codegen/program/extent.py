"""How large nodes are where sizes have values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import sympy

from ...core.node import Tensor
from ...core.sizes import at_sizes


class Extent:
    """The number of entries of nodes, at the sizes of one call."""

    def __init__(self, sizes: Mapping[sympy.Symbol, int]) -> None:
        self.sizes = sizes
        self._known: dict[Any, int] = {}

    def of(self, x: Tensor) -> int:
        """The entries of a tensor."""
        return math.prod(map(self.size, x.shape))

    def size(self, size: sympy.Expr) -> int:
        """The value of one size."""
        if size not in self._known:
            self._known[size] = int(at_sizes(size, self.sizes))
        return self._known[size]
