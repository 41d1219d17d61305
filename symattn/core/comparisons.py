"""Formulas of indices, held against themselves at numbers.

Python's ``==`` asks of two symbols whether they are written alike, so that ``lambda i, j: i == j`` is False, whatever
the indices are: SymPy cannot say so. Of numbers it asks what was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sympy
from sympy import Dummy, Indexed

from ..errors import OperandError
from .exact import exact
from .sizes import ONE, Shape

_CLOSE = 1e-6  # numbers that were floats may be rounded in another order
_NUMBERS = tuple(map(sympy.Integer, range(7, 39)))  # for sizes and scalars, in either order


def check_comparisons(
    what: str, formula: Callable[..., Any], indices: Sequence[sympy.Symbol], shape: Shape, value: Any
) -> None:
    """Raise OperandError where ``formula``, whose value at ``indices`` is ``value``, has another value at numbers."""
    for place in _places(shape):
        point = dict(zip(indices, place, strict=True))
        try:
            found = formula(*place)
        except TypeError:  # it asks for the truth of a relation that hangs on a size
            continue
        seen, said = (_symbolic(x, point) for x in (found, value))
        if _differ(seen, said):
            at = ", ".join(map(str, place))
            raise OperandError(
                f"{what}: the formula is {seen} at [{at}], but as a formula of indices it says {said} there: of "
                "symbols, == and != ask whether they are written alike; write sympy.Eq(i, j), sympy.Ne(i, j) or "
                "sympy.KroneckerDelta(i, j)"
            )


def _places(shape: Shape) -> Iterator[tuple[sympy.Expr, ...]]:
    """The first place, those next to it, and the last along each axis and along all."""
    first = (sympy.S.Zero,) * len(shape)
    last = tuple(size - 1 for size in shape)
    yield first
    for axis, size in enumerate(shape):
        for there in (sympy.S.One, last[axis]) if size != ONE else ():
            yield (*first[:axis], there, *first[axis + 1 :])
    yield last


def _symbolic(value: Any, point: dict[sympy.Symbol, sympy.Expr]) -> Any:
    if isinstance(value, (int, float)):
        return sympy.sympify(value)
    return value.xreplace(point) if isinstance(value, sympy.Basic) else sympy.nan


def _differ(a: Any, b: Any) -> bool:
    """Whether two values are seen to differ, with some numbers for the sizes and scalars in them."""
    if a == b or not (isinstance(a, sympy.Basic) and isinstance(b, sympy.Basic)):
        return False
    symbols = sorted((x for x in a.free_symbols | b.free_symbols if not isinstance(x, (Dummy, Indexed))), key=str)
    return any(
        _apart(*(x.xreplace(dict(zip(order, _NUMBERS, strict=False))) for x in (a, b)))
        for order in (symbols, symbols[::-1])
    )


def _apart(a: sympy.Basic, b: sympy.Basic) -> bool:
    if not (isinstance(a, sympy.Expr) and isinstance(b, sympy.Expr)):
        return {a, b} == {sympy.true, sympy.false}
    entries = dict(zip(sorted(a.free_symbols | b.free_symbols, key=str), _NUMBERS, strict=False))
    a, b = (exact(x).xreplace(entries) for x in (a, b))
    if not (a.is_comparable and b.is_comparable):
        return False
    return (abs(a - b) > _CLOSE * (1 + abs(b))) == sympy.true  # sums that SymPy leaves as they are decide nothing
