"""What a block of rows sees through a mask: bounds of the columns, as formulas of the first row and the one after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import sympy

from ...core.exact import INDICES
from ...core.node import Tensor
from ...scalars.affine import affine

START, STOP = (sympy.Symbol(name, integer=True, nonnegative=True) for name in ("i0", "i1"))  # of a block of rows
FIRST = sympy.Symbol("j0", integer=True, nonnegative=True)  # the first column that is seen
WIDTH = sympy.Symbol("columns", integer=True, positive=True)  # and how many are


class Bounds(NamedTuple):
    """The columns that some row of a block allows, and those that all allow; the latter may be none."""

    first: Any
    stop: Any
    first_of_all: Any
    stop_of_all: Any


class Columns(NamedTuple):
    """The choices by one condition, and the axis of each node of the loop that is read at seen columns alone.

    ``reads`` are the positions at which a node reads such parts.
    """

    masks: list[Tensor]
    size: sympy.Expr
    bounds: Bounds
    axes: dict[Tensor, int]
    reads: Mapping[Tensor, Mapping[int, int]]


def bounds_of(condition: Any, size: sympy.Expr) -> Bounds | None:
    """The bounds of a condition that is affine in the row and has the slope 1 or -1 in the column, or of several."""
    if isinstance(condition, sympy.And):
        parts = [bounds_of(part, size) for part in condition.args]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        first, stop, first_of_all, stop_of_all = zip(*known, strict=True)
        return Bounds(sympy.Max(*first), sympy.Min(*stop), sympy.Max(*first_of_all), sympy.Min(*stop_of_all))
    if not isinstance(condition, (sympy.Le, sympy.Lt, sympy.Ge, sympy.Gt)):
        return None
    strict = int(isinstance(condition, (sympy.Lt, sympy.Gt)))
    i, j = INDICES[:2]
    found = affine(condition.gts - condition.lts - strict, (i, j))  # allowed where this is not negative
    if found is None:
        return None
    start, slopes = found
    a, b = slopes[i], slopes[j]
    if not (a.is_Integer and b in (1, -1) and start.is_integer):
        return None
    most, least = (a * row + start for row in ((STOP - 1, START) if a >= 0 else (START, STOP - 1)))
    zero = sympy.S.Zero
    if b == -1:
        return Bounds(zero, most + 1, zero, least + 1)
    return Bounds(-most, size, -least, size)
