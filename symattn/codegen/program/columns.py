"""What a block of rows sees through a mask: bounds of the columns, as formulas of the first row and the one after."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import sympy

from ...core.exact import INDICES
from ...core.node import Tensor
from ...scalars.affine import affine


class Marks(NamedTuple):
    """The symbols of a loop: where a block begins and ends and how long it is, and the columns that it sees."""

    start: sympy.Dummy
    stop: sympy.Dummy
    rows: sympy.Dummy
    first: sympy.Dummy
    width: sympy.Dummy


@cache
def marks(depth: int, one_by_one: bool) -> Marks:
    """The symbols of loops inside of so many others, which go one by one or in blocks."""
    start, stop, first = (sympy.Dummy(f"{name}_{depth}", integer=True, nonnegative=True) for name in ("i0", "i1", "j0"))
    rows, width = (sympy.Dummy(f"{name}_{depth}", integer=True, positive=True) for name in ("rows", "columns"))
    return Marks(start, stop, rows, first, width)


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


def bounds_of(condition: Any, size: sympy.Expr, block: Marks) -> Bounds | None:
    """The bounds of a condition that is affine in the row and has the slope 1 or -1 in the column, or of several."""
    if isinstance(condition, sympy.And):
        parts = [bounds_of(part, size, block) for part in condition.args]
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
    ends = block.stop - 1, block.start
    most, least = (a * row + start for row in (ends if a >= 0 else ends[::-1]))
    zero = sympy.S.Zero
    if b == -1:
        return Bounds(zero, most + 1, zero, least + 1)
    return Bounds(-most, size, -least, size)
