"""Finite claims: every entry is written out and compared by itself, along all axes whose sizes are numbers.

Along an axis whose size is free, one entry at a symbolic place stands for all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import flint
import sympy

from ...core.budget import Budget
from ...core.node import Tensor
from ...errors import SymattnError
from ...graph.entries import entry, index_symbols
from ...ops.inverse import inv_op
from ...ops.leaves import operands, variable
from ...scalars.explicit import written_out
from ..argument import Argument, Given
from ..claims import Claim, Independence
from .balls import HOLDS, Arithmetic, Outside, Undecided
from .values import Evaluator, Point, ordered, unknown_names

_BITS = 400  # of the balls
_ENTRIES = 600  # of all nodes together, for balls
_WRITTEN = 8_000  # parts of all entries of both sides, written out
_DIVIDED = 400  # of those, up to which fractions are brought to one denominator
_MANY = 10**9  # terms, beyond which nobody counts
_TERMS = 3_000  # of a difference that is multiplied out


@dataclass(frozen=True)
class Enumeration(Argument):
    """A claim about finitely many entries: each of them was compared, written out or as an exact number."""

    claim: Claim

    @property
    def entries(self) -> int:
        """How many entries were compared."""
        return math.prod(int(size) for size in self.claim.left.shape if size.is_Integer)

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        return self.claim == claim

    def check(self) -> bool:
        """Compare them again."""
        return _holds(self.claim, Budget(float("inf")))

    def text(self) -> str:
        free = not all(size.is_Integer for size in self.claim.left.shape)
        place = " at each place along the axes of free sizes" if free else ""
        if self.entries == 1:
            return f"The claim has one entry{place}, which was written out and compared."
        return f"The claim has {self.entries} entries{place}, each of which was written out and compared."


def enumerated(claim: Claim, budget: Budget) -> Enumeration | None:
    """The proof of a claim by its entries, one by one, if there are few and they agree. Raises OutOfBudget."""
    return Enumeration(claim) if _holds(claim, budget) else None


def _holds(claim: Claim, budget: Budget) -> bool:
    order = ordered(claim.sides, {})
    if unknown_names(order) or sum(math.prod(_literal(x)) for x in order) > _ENTRIES:
        return False
    free = any(size.free_symbols for x in order for size in x.shape)
    if free and (any(x.holds_minus_infinity for x in order) or not any(n > 1 for x in order for n in _literal(x))):
        return False
    try:
        evaluator = Evaluator(Arithmetic((), budget), {})
        if not free and not any(x.op is variable or x.own_symbols for x in order):
            return _holds_in_numbers(claim, order, evaluator)
        parts = _parts(claim, order, evaluator)
        if claim.relation != "=" or parts > _WRITTEN:
            return False
        sides = _written_along(claim) if free else map(_written_out, claim.sides)
        return all(_is_zero(a - b, parts, budget) for a, b in zip(*sides, strict=True))
    except (Outside, Undecided, SymattnError, NotImplementedError, ValueError):  # an entry cannot be written
        return False


def _holds_in_numbers(claim: Claim, order: Sequence[Tensor], evaluator: Evaluator) -> bool:
    """Whether a claim without variables is true, by exact numbers and balls that are apart."""
    with flint.ctx.workprec(_BITS), evaluator.arithmetic.in_closed_form():
        found = evaluator.values(order, Point({}, {}, {}))
        left, right = (found[x] for x in claim.sides)
        return all(HOLDS[claim.relation](left[at], right[at]) is True for at in left)


def _parts(claim: Claim, order: Sequence[Tensor], evaluator: Evaluator) -> int:
    """About how many parts all entries of both sides have when they are written out."""
    parts: dict[Tensor, int] = {}
    for node in order:
        inputs = operands(node)
        terms = max((n for x in inputs for n in _literal(x)), default=1) if evaluator.folds(node) else 1
        if node.op is inv_op:  # by Cramer's rule, whose determinants are multiplied out
            terms = math.factorial(min(terms, _ENTRIES))
        parts[node] = 1 + terms * sum(parts[x] for x in inputs)
    return sum(math.prod(_literal(x)) * parts[x] for x in claim.sides)


def _literal(x: Tensor) -> tuple[int, ...]:
    """The shape with 1 for each size that is free."""
    return tuple(int(size) if size.is_Integer else 1 for size in x.shape)


def _written_out(x: Tensor) -> list[sympy.Expr]:
    written = x.as_explicit()
    return sympy.flatten(sympy.Array(written).tolist()) if x.rank else [written]


def _written_along(claim: Claim) -> list[list[sympy.Expr]]:
    """The entries of both sides at every place of the axes of known sizes, and at one symbolic place of the others."""
    symbols = index_symbols(claim.left, {s.name for x in claim.sides for s in x.free_symbols})
    places = [
        [*map(sympy.Integer, range(int(size)))] if size.is_Integer else [symbol]
        for size, symbol in zip(claim.left.shape, symbols, strict=True)
    ]
    return [[written_out(entry(x, at), _read, {}) for at in itertools.product(*places)] for x in claim.sides]


def _read(base: sympy.Symbol, index: tuple[sympy.Expr, ...]) -> sympy.Expr:
    return sympy.IndexedBase(base)[index]


def _is_zero(gap: sympy.Expr, parts: int, budget: Budget) -> bool:
    """Whether a difference is zero once it is multiplied out, if that does not make it long."""
    budget.check()
    if gap == 0 or (_length(gap) <= _TERMS and sympy.expand(gap) == 0):
        return True
    if parts > _DIVIDED:
        return False
    above, _ = sympy.fraction(sympy.together(gap))
    return bool(_length(above) <= _TERMS and sympy.expand(above) == 0)


def _length(e: sympy.Expr) -> int:
    """At most how many terms there are once it is multiplied out; those inside of a function count if they are many."""
    inside = [_length(part) for part in e.args if isinstance(part, sympy.Expr)]
    if e.is_Add:
        return sum(inside)
    if e.is_Mul:
        return min(math.prod(inside), _MANY)
    if e.is_Pow and e.exp.is_Integer:
        return min(inside[0] ** min(abs(int(e.exp)), _WRITTEN), _MANY)
    return max([1, *(n for n in inside if n > _TERMS)])
