"""Finite claims: with no size left free, every entry is written out and compared by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import flint
import sympy

from ...core.budget import Budget
from ...core.node import Tensor
from ...errors import SymattnError
from ...ops.leaves import operands, variable
from ..claims import Claim
from .balls import Arithmetic, Number, Outside, Truth, Undecided, equal, less, negation
from .values import Evaluator, Point, ordered, shape_at, unknown_names

_BITS = 400  # of the balls
_ENTRIES = 600  # of all nodes together, for balls
_WRITTEN = 3_000  # parts of all entries of both sides, written out
_DIVIDED = 400  # of those, up to which fractions are brought to one denominator


@dataclass(frozen=True)
class Enumeration:
    """A claim about finitely many entries: each of them was compared, written out or as an exact number."""

    claim: Claim
    conditions: tuple[str, ...] = ()

    @property
    def entries(self) -> int:
        """How many entries were compared."""
        return math.prod(shape_at(self.claim.left, {}))

    def check(self) -> bool:
        """Compare them again."""
        return _holds(self.claim, Budget(float("inf")))

    def text(self) -> str:
        return (
            "The claim has one entry, which was written out and compared."
            if self.entries == 1
            else f"The claim has {self.entries} entries, each of which was written out and compared."
        )

    latex = text


def enumerated(claim: Claim, budget: Budget) -> Enumeration | None:
    """The proof of a claim without free sizes by its entries, one by one, if there are few and they agree."""
    return Enumeration(claim) if _holds(claim, budget) else None


def _holds(claim: Claim, budget: Budget) -> bool:
    order = ordered(claim.sides, {})
    if any(size.free_symbols for x in order for size in x.shape) or unknown_names(order):
        return False
    if sum(math.prod(shape_at(x, {})) for x in order) > _ENTRIES:
        return False
    try:
        evaluator = Evaluator(Arithmetic((), budget), {})
        if not any(x.op is variable or x.own_symbols for x in order):
            return _holds_in_numbers(claim, order, evaluator)
        parts = _parts(claim, order, evaluator)
        return claim.relation == "=" and parts <= _WRITTEN and _are_equal(claim, parts)
    except (
        Outside,
        Undecided,
        SymattnError,
        NotImplementedError,
        ValueError,
    ):  # an entry that has no value or cannot be written
        return False


def _holds_in_numbers(claim: Claim, order: Sequence[Tensor], evaluator: Evaluator) -> bool:
    """Whether a claim without variables is true, by exact numbers and balls that are apart."""
    with flint.ctx.workprec(_BITS), evaluator.arithmetic.in_closed_form():
        found = evaluator.values(order, Point({}, {}, {}))
        left, right = (found[x] for x in claim.sides)
        return all(_true(claim.relation, left[at], right[at]) is True for at in left)


def _true(relation: str, a: Number, b: Number) -> Truth:
    if relation == "<":
        return less(a, b)
    return equal(a, b) if relation == "=" else equal(a, b) or negation(less(b, a))


def _parts(claim: Claim, order: Sequence[Tensor], evaluator: Evaluator) -> int:
    """About how many parts all entries of both sides have when they are written out."""
    parts: dict[Tensor, int] = {}
    for node in order:
        inputs = operands(node)
        terms = max((n for x in inputs for n in shape_at(x, {})), default=1) if evaluator.folds(node) else 1
        parts[node] = 1 + terms * sum(parts[x] for x in inputs)
    return sum(math.prod(shape_at(x, {})) * parts[x] for x in claim.sides)


def _are_equal(claim: Claim, parts: int) -> bool:
    return all(_is_zero(a - b, parts) for a, b in zip(*map(_written_out, claim.sides), strict=True))


def _written_out(x: Tensor) -> list[sympy.Expr]:
    written = x.as_explicit()
    return sympy.flatten(sympy.Array(written).tolist()) if x.rank else [written]


def _is_zero(gap: sympy.Expr, parts: int) -> bool:
    """Whether a difference is zero once it is multiplied out."""
    if gap == 0 or sympy.expand(gap) == 0:
        return True
    return bool(parts <= _DIVIDED and sympy.expand(sympy.fraction(sympy.together(gap))[0]) == 0)
