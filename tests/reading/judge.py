"""Whether what a reader makes of a formula is what it means: the same values, of the same shapes, in the same order.

Values are equal where the prover says so; where it does not decide, where they agree in numbers at several sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import sympy

import symattn as sa
from symattn.core.sizes import same_shape
from symattn.ops.leaves import as_tensor, variable

from ..agreement import TOLERANCE, largest_gap
from .formulas import plain_name
from .meaning import UNDECIDABLE, Defined, Meaning, Refused, values_of


def same(read: Any, meant: Any) -> bool:
    """Whether two tensors or scalars are one value."""
    if read is meant:
        return True
    if not isinstance(read, sa.Tensor) and not isinstance(meant, sa.Tensor):
        return same_scalar(sympy.sympify(read), sympy.sympify(meant))
    try:
        left, right = as_tensor(read), as_tensor(meant)
    except sa.SymattnError:  # a scalar that is no value of a tensor, such as an index
        return False
    if not left.rank or not right.rank:  # a number stands for a tensor with that entry everywhere
        left, right = left + sa.zeros(*right.shape), right + sa.zeros(*left.shape)
    return any(_equal(moved, right) for moved in _with_axes_of(left, right))


def same_scalar(left: sympy.Expr, right: sympy.Expr) -> bool:
    """Whether two scalars are one: their difference vanishes, for every choice where there are cases."""
    difference = sympy.piecewise_fold(left - right)
    return bool(sympy.simplify(difference) == 0)


def _with_axes_of(x: sa.Tensor, like: sa.Tensor) -> list[sa.Tensor]:
    """The tensor, or where its axes are those of another one in another order, the tensor with them in that order."""
    if same_shape(x.shape, like.shape):
        return [x]
    if x.rank != like.rank or x.rank > 5:
        return []
    letters = "abcde"[: x.rank]
    orders = ("".join(order) for order in permutations(letters))
    moved = (sa.einsum(f"{letters}->{order}", x) for order in orders)
    return [y for y in moved if same_shape(y.shape, like.shape)]


def _equal(left: sa.Tensor, right: sa.Tensor) -> bool:
    if left.holds_minus_infinity or right.holds_minus_infinity:  # masks, by what they leave over
        left, right = sa.exp(left), sa.exp(right)
    status = sa.prove(left, right).status
    return status == "proved" or (status == "unknown" and largest_gap(left, right) < TOLERANCE)


def distinct(values: Sequence[Any]) -> list[Any]:
    """The values without those that are one with the value before: both sides of a claim, and what it goes on from."""
    kept: list[Any] = []
    for value in values:
        if not kept or not same(value, kept[-1]):
            kept.append(value)
    return kept


def is_refused(meaning: Meaning) -> bool:
    """Whether a formula has no value as it stands, so that an error is the only right answer."""
    return any(isinstance(statement, Refused) for statement in meaning.statements)


def may_be_refused(meaning: Meaning) -> bool:
    """Whether an error is a right answer: the formula has no value, or its text does not decide on one."""
    return is_refused(meaning) or meaning.verdict == UNDECIDABLE


def is_meant(read: Sequence[Any], meaning: Meaning) -> bool:
    """Whether the values that were read, in order, are those of the meaning.

    The name that a formula defines may be among them. A formula without values, such as a declaration, is judged by
    its statements and not here.
    """
    if is_refused(meaning):
        return False
    defined = {plain_name(statement.name) for statement in meaning.statements if isinstance(statement, Defined)}
    told = [x for x in read if not (isinstance(x, sa.Tensor) and x.params.get("name") in defined and x.op is variable)]
    ours, theirs = distinct(values_of(meaning)), distinct(told)
    return len(ours) == len(theirs) and all(same(a, b) for a, b in zip(theirs, ours, strict=True))
