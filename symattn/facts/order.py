"""What is known of entries beyond their formulas: declared and given facts, normalised rows, and a table of lemmas.

A lemma bounds a linear form that has one part of another form in it: a maximum is above its entries, an exponential
above 1 + x, an increasing function keeps an order. Nothing here searches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import sympy

from ..core.budget import Budget
from ..core.node import Tensor
from ..scalars.affine import Form, combined
from ..scalars.formulas import Max, Min, Read, at_index
from ..scalars.functions import FUNCTIONS
from .linear import Fact, at_indices, both_ways, depends, extreme_of, form_of, total_of, values_at
from .ranges import ANYTHING, NOT_NEGATIVE, POSITIVE, UNIT, End, Range, above, below, oo, point

if TYPE_CHECKING:
    from .formula_ranges import FormulaRange


def normalised(node: Tensor) -> tuple[int, ...]:
    """The axes of a normaliser, counted from the end, by default the last."""
    return node.params["axes"] if "axes" in node.params else (node.params.get("axis", -1),)


class Known:
    """The ranges of the entries of some nodes, facts that are given, and what normalisers say of their rows."""

    def __init__(self, nodes: Sequence[Tensor], budget: Budget) -> None:
        self.nodes, self.budget = nodes, budget
        self.ranges: dict[Tensor, Range] = {}
        self.given: list[Fact] = []
        self.told: dict[Any, list[tuple[Form, End]]] = {}
        self.arguments: dict[Tensor, Any] = {}  # of monotone functions, at INDEX

    def node(self, entry: Any) -> Tensor:
        return self.nodes[int(entry.args[0])]

    def shape(self, entry: Any) -> Sequence[Any]:
        return self.node(entry).shape

    def range(self, entry: Any) -> Range:
        return self.ranges.get(self.node(entry), ANYTHING)

    def argument(self, entry: Any) -> Any:
        """What a monotone function is applied to at an entry; None for other nodes."""
        formula = self.arguments.get(self.node(entry))
        return None if formula is None else at_index(formula, entry.args[1:])

    def called(self, e: Any) -> str:
        """What people call a monotone function."""
        if isinstance(e, Read):
            return self.node(e).op.title
        return "the power" if e.is_Pow else "exp" if isinstance(e, sympy.exp) else type(e).__name__

    def finite(self, e: Any) -> bool:
        """Whether a formula reads nothing that may be infinite."""
        entries = (self.range(entry) for entry in e.atoms(Read))
        return not e.has(oo, -oo) and all((-oo, False) not in (r.lower, r.upper) for r in entries)

    def tell(self, facts: Sequence[Fact]) -> None:
        """Take more facts as given."""
        self.given += facts
        self.told.clear()

    def given_of(self, m: Any) -> list[tuple[Form, End]]:
        """Forms that have a monomial, with the low ends that are given of them."""
        if m not in self.told:
            forms = [(form, fact.range) for fact in self.given for form in at_indices(fact, m, self.shape)]
            self.told[m] = [found for form, bounds in forms for found in both_ways(form, bounds)]
        return self.told[m]

    def terms_at(self, fold: Any, others: Any) -> Iterator[Any]:
        """The term of a sum or an extreme where its indices are those that stand at the same axes elsewhere."""
        places = [values_at(k, high + 1, fold, others, self.shape) if low == 0 else () for k, low, high in fold.limits]
        for values in product(*places):
            yield fold.function.xreplace(dict(zip(fold.bound_symbols, values, strict=True)))

    # --- normalised rows ---

    def is_full(self, node: Tensor) -> bool:
        """Whether no logit of a normaliser is masked, so that each row sums to 1."""
        is_masked = any(k < len(node.inputs) for k in node.op.masks)
        return not is_masked and all(self.ranges.get(x, ANYTHING).lower != (-oo, False) for x in node.inputs)

    def row_sum(self, e: Any) -> Range:
        """A sum over a normalised row, or several: 1 each, or at most that if part of it is masked or left out."""
        weight, limits = e.function, {k: (low, high) for k, low, high in e.limits}
        if not isinstance(weight, Read) or not self.node(weight).op.rows:
            return ANYTHING
        node, index = self.node(weight), dict(enumerate(weight.args[1:], 1 - len(weight.args)))
        row = {axis: index[axis] for axis in normalised(node) if index[axis] in limits}
        along = set(row.values())
        if not row or len(along) < len(row) or any(at.has(*along) for axis, at in index.items() if axis not in row):
            return ANYTHING
        ends = [(sympy.S.Zero, sympy.expand(node.shape[axis] - 1)) for axis in row]
        whole = len(row) == len(normalised(node)) and [limits[k] for k in row.values()] == ends
        found = point(sympy.S.One) if whole and self.is_full(node) else UNIT
        counts = [sympy.expand(high - low + 1) for k, (low, high) in limits.items() if k not in along]
        known = all(count.is_positive and not depends(count) for count in counts)
        return found * point(sympy.Mul(*counts)) if known else ANYTHING

    def same_row(self, e: Any) -> tuple[Any, Any] | None:
        """The two places in a row, if a product is one of two entries of a normalised row."""
        if len(e.args) != 2 or not all(isinstance(f, Read) for f in e.args):
            return None
        p, q = e.args
        apart = [n - len(p.args) for n, (a, b) in enumerate(zip(p.args, q.args, strict=False)) if a != b]
        in_row = self.node(p).op.rows and len(apart) == 1 and tuple(apart) == normalised(self.node(p))
        return (p.args[apart[0]], q.args[apart[0]]) if in_row else None


# --- lemmas ---


Lemma = tuple[Form, Range, str]  # the last is what it says, in words


def lemmas(walk: FormulaRange, form: Form) -> Iterator[Lemma]:
    """Forms that have a part of the given form, their ranges, and why."""
    for m in form:
        if type(m) in _LEMMAS:
            yield from _LEMMAS[type(m)](walk, m, sympy.Add(*form))
    for u in form:
        for v in form:
            if walk.opened > 0 and below(sympy.S.Zero, form[u]) and below(form[v], sympy.S.Zero):
                yield from _in_order(walk, u, v)


def _minus(a: Any, b: Any) -> Form:
    return combined(form_of(a), sympy.S.NegativeOne, form_of(b))


def _log(walk: FormulaRange, e: Any, others: Any) -> Iterator[Lemma]:
    """log(x) <= x - 1, log(1 + exp(x)) > x, and the logarithm of a sum of exponentials."""
    inside = e.args[0]
    yield _minus(inside, e), above(sympy.S.One), "a logarithm is at most its argument less 1"
    if inside.is_Add and len(inside.args) == 2 and inside.args[0] == 1 and isinstance(inside.args[1], sympy.exp):
        yield _minus(e, inside.args[1].args[0]), POSITIVE, "the logarithm of a sum grows with its terms"
    if isinstance(inside, sympy.Sum) and isinstance(inside.function, sympy.exp):
        term, limits = inside.function.args[0], inside.limits
        count = sympy.Mul(*(high - low + 1 for _, low, high in limits))
        several = below(sympy.S.One, count) and walk.known.finite(term)
        for at in walk.known.terms_at(sympy.Sum(term, *limits), others):
            more = POSITIVE if several else NOT_NEGATIVE
            yield _minus(e, at), more, "the logarithm of a sum of exponentials is at least each of the exponents"
        if not count.is_positive or depends(count):
            return
        largest, least = (extreme_of(kind, term, limits) for kind in (Max, Min))
        yield _minus(largest + sympy.log(count), e), NOT_NEGATIVE, "no term of the sum is above the exponential of this"
        yield _minus(e, least), above(sympy.log(count)), "no term of the sum is below the exponential of this"
        yield _minus(e, total_of(term, limits) / count), above(sympy.log(count)), "the exponential function is convex"


def _sum(walk: FormulaRange, e: Any, others: Any) -> Iterator[Lemma]:
    """A sum of terms that are not negative is at least any of them."""
    terms = list(walk.known.terms_at(e, others))
    inside, (at,) = walk.at_term(e)
    low = inside.of(at) if terms else ANYTHING
    if low.is_not_negative:
        several = any(below(sympy.S.One, high - first + 1) for _, first, high in e.limits)
        for term in terms:
            more = POSITIVE if several and low.is_positive else NOT_NEGATIVE
            yield _minus(e, term), more, "a sum of terms that are not negative is at least each of them"


def _extreme(walk: FormulaRange, e: Any, others: Any) -> Iterator[Lemma]:
    largest = isinstance(e, Max)
    why = f"a {'maximum' if largest else 'minimum'} is at {'least' if largest else 'most'} each of its entries"
    for term in walk.known.terms_at(e, others):
        yield _minus(e, term), NOT_NEGATIVE if largest else -NOT_NEGATIVE, why


def _exp(walk: FormulaRange, e: Any, others: Any) -> Iterator[Lemma]:
    yield _minus(e, e.args[0]), above(sympy.S.One), "an exponential is at least its exponent and 1"


def _floor(walk: FormulaRange, e: Any, others: Any) -> Iterator[Lemma]:
    part = Range(sympy.S.Zero, False, sympy.S.One, True)
    yield _minus(e.args[0], e), part, "a number is rounded down by less than 1"


_LEMMAS: Mapping[Any, Callable[[FormulaRange, Any, Any], Iterable[Lemma]]] = {
    sympy.exp: _exp,
    sympy.log: _log,
    sympy.floor: _floor,
    sympy.Sum: _sum,
    Max: _extreme,
    Min: _extreme,
}


def _in_order(walk: FormulaRange, u: Any, v: Any) -> Iterator[Lemma]:
    """``f(a) - f(b)`` of a monotone function, which a power may be."""
    node = walk.known.node
    if u.func != v.func or (isinstance(u, Read) and node(u).op is not node(v).op) or (u.is_Pow and u.exp != v.exp):
        return
    (monotone, a), (also, b) = _monotone(walk, u), _monotone(walk, v)
    if not monotone or not also or a is None or b is None:
        return
    difference = walk.difference(b, a) if monotone.endswith("decreasing") else walk.difference(a, b)
    if difference.is_not_negative:
        strict = monotone.startswith("strictly") and difference.is_positive
        more, called = POSITIVE if strict else NOT_NEGATIVE, walk.known.called(u)
        yield {u: sympy.S.One, v: sympy.S.NegativeOne}, more, f"{called} is {monotone}"


def _monotone(walk: FormulaRange, e: Any) -> tuple[str, Any]:
    """How a function of one number rises or falls, and the number; nothing of others."""
    if isinstance(e, Read):
        return walk.known.node(e).op.monotone, walk.known.argument(e)
    if type(e) in FUNCTIONS:
        return FUNCTIONS[type(e)].monotone, e.args[0]
    if not e.is_Pow or not e.exp.is_Rational:
        return "", None
    base = walk.of(e.base)
    everywhere = not e.exp.is_Integer or (e.exp.is_odd and e.exp.is_positive)  # a root is of what is not negative
    if not (everywhere or base.is_positive or (e.exp.is_positive and base.is_not_negative)):
        return "", None
    return "strictly decreasing" if e.exp.is_negative else "strictly increasing", e.base
