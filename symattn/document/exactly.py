"""The values of tensors at a point as exact numbers, as far as they are rational: what floating point cannot tell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import flint
import numpy as np
import sympy

from ..core.budget import Budget
from ..core.node import Tensor
from ..errors import SymattnError
from ..proof.refute.balls import Arithmetic, Number, Outside, Undecided, ball, in_flint, rational
from ..proof.refute.values import Array, Evaluator, Point, ordered, unknown_names

Exact: TypeAlias = Mapping[tuple[int, ...], Fraction | float]  # the float is -oo

_BITS = 128
_MOST = 3000  # entries that are worked out


def exact_values(
    shown: Sequence[Tensor], sizes: Mapping[Any, int], scalars: Mapping[Any, Any], arrays: Mapping[Tensor, np.ndarray]
) -> dict[Tensor, Exact]:
    """The rational entries of tensors; of what takes long, or is not defined there, none."""
    order = ordered(shown, {})
    numbers = {s: sympy.nsimplify(value, rational=True) for s, value in scalars.items()}
    if unknown_names(order) or not all(value.is_Rational for value in numbers.values()):
        return {}
    evaluator = Evaluator(Arithmetic((), Budget(math.inf)), {})
    if evaluator.expected_work(order, sizes) > _MOST or not all(np.isfinite(y).all() for y in arrays.values()):
        return {}
    point = Point(sizes, {s: in_flint(q) for s, q in numbers.items()}, {x: _exact(y) for x, y in arrays.items()})
    try:
        with flint.ctx.workprec(_BITS), evaluator.arithmetic.in_closed_form():
            found = evaluator.values(order, point)
            return {x: _rational(found[x]) for x in shown}
    except (Outside, Undecided, SymattnError):  # what has no value there
        return {}


def decimal(x: float) -> Fraction:
    """A number as a person writes it: the shortest decimal that is read as this one."""
    return Fraction(repr(float(x)))


def _exact(array: np.ndarray) -> Array:
    entries = ((at, decimal(x)) for at, x in np.ndenumerate(array))
    return {at: flint.fmpq(q.numerator, q.denominator) for at, q in entries}


def _rational(array: Array) -> Exact:
    known = ((at, _known(x)) for at, x in array.items())
    return {at: q for at, q in known if q is not None}


def _known(x: Number) -> Fraction | float | None:
    q = rational(x)
    if q is not None:
        return Fraction(int(q.p), int(q.q))
    return -math.inf if bool(ball(x) == flint.arb.neg_inf()) else None
