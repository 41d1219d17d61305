"""Inequalities between entries that ranges alone do not show: an extreme and its entries, a softmax row and its sum.

Each is a row of a table or a short rule about two entries, and nothing here searches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sympy

from ..ops.formulas import Choice, Max, Min
from ..tensor import Tensor
from .ranges import NOT_NEGATIVE, POSITIVE, ZERO, FormulaRange, Range, below, hull, oo, point, times
from .reading import INDEX, Read

NORMALISERS = ("softmax", "sparsemax", "entmax15")


def normalised(node: Tensor) -> tuple[int, ...]:
    """The axes of a normaliser, counted from the end."""
    return node.params["axes"] if "axes" in node.params else (node.params["axis"],)


class Reduction(NamedTuple):
    """A max, min, mean or logsumexp at an index: its term, the indices it runs over, and how many terms there are."""

    kind: str
    term: Any
    bound: tuple[Any, ...]
    highs: tuple[Any, ...]

    def holds(self, v: Any) -> bool:
        """Whether an entry is one of the terms."""
        if not isinstance(v, Read) or not isinstance(self.term, Read) or v.args[0] != self.term.args[0]:
            return False
        values: dict[Any, Any] = {}
        for at, place in zip(v.args[1:], self.term.args[1:], strict=True):
            if place in self.bound:
                if values.setdefault(place, at) != at:
                    return False
            elif place.has(*self.bound) or sympy.expand(at - place) != 0:
                return False
        return True

    def same_terms(self, other: Reduction) -> bool:
        if len(self.bound) != len(other.bound):
            return False
        renamed = self.term.xreplace(dict(zip(self.bound, other.bound, strict=True)))
        return bool(renamed == other.term and self.highs == other.highs)

    @property
    def count(self) -> Any:
        return sympy.Mul(*(high + 1 for high in self.highs))


# How far the first of two reductions of the same terms lies above the second, at least.
_BETWEEN = {
    ("max", "mean"): lambda n: NOT_NEGATIVE,
    ("max", "min"): lambda n: NOT_NEGATIVE,
    ("mean", "min"): lambda n: NOT_NEGATIVE,
    ("max", "logsumexp"): lambda n: _from(-sympy.log(n)),
    ("logsumexp", "max"): lambda n: POSITIVE if below(1, n) else NOT_NEGATIVE,
    ("logsumexp", "mean"): lambda n: _from(sympy.log(n)),  # exp is convex
    ("logsumexp", "min"): lambda n: _from(sympy.log(n)),
}


def _from(low: Any) -> Range:
    return Range(low, False, oo, True)


class Order:
    """What is known between the entries of some nodes, by their formulas and by stated facts."""

    def __init__(self, nodes: Sequence[Tensor], formulas: Mapping[Tensor, Any], ranges: Mapping[Tensor, Range]) -> None:
        self.nodes, self.formulas, self.ranges = nodes, formulas, ranges
        self.stated: list[tuple[Any, Any, Range]] = []  # upper and lower entry at INDEX, and their difference

    def node(self, entry: Any) -> Tensor:
        return self.nodes[int(entry.args[0])]

    def at(self, entry: Any) -> Any:
        """The entry formula of the node, at the index of the entry."""
        formula = self.formulas[self.node(entry)]
        return formula.xreplace(dict(zip(INDEX, entry.args[1:], strict=False)))

    def excess(self, u: Any, v: Any) -> Range | None:
        """A range for ``u - v`` of two entries, or None if nothing is known of it."""
        for upper, lower, difference in self.stated:
            if _matches(upper, lower, u, v):
                return difference
        a, b = self._reduction(u), self._reduction(v)
        if a is not None and b is not None and a.same_terms(b) and (a.kind, b.kind) in _BETWEEN:
            return _BETWEEN[a.kind, b.kind](a.count)
        if a is not None and a.holds(v):
            if a.kind == "max":
                return NOT_NEGATIVE
            if a.kind == "logsumexp":
                return POSITIVE if below(1, a.count) else NOT_NEGATIVE
        if b is not None and b.kind == "min" and b.holds(u):
            return NOT_NEGATIVE
        return self._above_argument(u, v) or self._below_argument(u, v)

    def _reduction(self, entry: Any) -> Reduction | None:
        kind = self.node(entry).op.name
        if kind not in ("max", "min", "mean", "logsumexp"):
            return None
        formula = self.at(entry)
        folds = formula.atoms(sympy.Sum, Max, Min)
        if len(folds) != 1:
            return None
        fold = folds.pop()
        term = fold.function.args[0] if kind == "logsumexp" else fold.function
        if any(low != 0 for _, low, _ in fold.limits):
            return None
        return Reduction(kind, term, tuple(k for k, _, _ in fold.limits), tuple(high for _, _, high in fold.limits))

    def _above_argument(self, u: Any, v: Any) -> Range | None:
        """maximum, relu and abs are at least their arguments; softplus(x) > x and exp(x) >= 1 + x."""
        name, formula = self.node(u).op.name, self.at(u)
        if name in ("maximum", "relu", "abs") and isinstance(formula, Choice) and v in formula.args[1:]:
            return NOT_NEGATIVE
        if name == "softplus" and formula == sympy.log(1 + sympy.exp(v)):
            return POSITIVE
        return _from(sympy.S.One) if name == "exp" and formula == sympy.exp(v) else None

    def _below_argument(self, u: Any, v: Any) -> Range | None:
        """minimum is at most its arguments, and log(x) <= x - 1."""
        name, formula = self.node(v).op.name, self.at(v)
        if name == "minimum" and isinstance(formula, Choice) and u in formula.args[1:]:
            return NOT_NEGATIVE
        return _from(sympy.S.One) if name == "log" and formula == sympy.log(u) else None

    # --- normalised rows ---

    def is_full(self, node: Tensor) -> bool:
        """Whether no logit of a normaliser is masked, so that each row sums to 1."""
        return len(node.inputs) == 1 and self.ranges[node.inputs[0]][:2] != (-oo, False)

    def total(self, e: Any, walk: FormulaRange) -> Range | None:
        """A sum over a normalised row: with weights that sum to 1, a mean of the other factors."""
        factors = sympy.Mul.make_args(e.function)
        limits = {k: (low, high) for k, low, high in e.limits}
        for place, weight in enumerate(factors):
            row = self._row(weight, limits)
            if row is None:
                continue
            rest = walk.of(sympy.Mul(*factors[:place], *factors[place + 1 :]))
            node = self.node(weight)
            whole = all(
                limits[k][0] == 0 and sympy.expand(limits[k][1] + 1 - node.shape[axis]) == 0 for axis, k in row.items()
            )
            if not (whole and self.is_full(node)):
                rest = hull(rest, ZERO)  # the weights sum to at most 1
            for k, (low, high) in limits.items():
                if k not in row.values():
                    if low.atoms(sympy.Dummy) or high.atoms(sympy.Dummy) or not (high - low + 1).is_positive:
                        return None
                    rest = times(rest, point(sympy.expand(high - low + 1)))
            return rest
        return None

    def _row(self, weight: Any, limits: Mapping[Any, Any]) -> dict[int, Any] | None:
        """The bound index of each normalised axis, if the weight is an entry of a row that the sum runs along."""
        if not isinstance(weight, Read) or self.node(weight).op.name not in NORMALISERS:
            return None
        index = list(weight.args[1:])
        axes = normalised(self.node(weight))
        row = {axis: index[axis] for axis in axes}
        others = [at for axis, at in enumerate(index, -len(index)) if axis not in axes]
        along = len(set(row.values())) == len(axes) and all(k in limits for k in row.values())
        return row if along and not any(at.has(*row.values()) for at in others) else None

    def row_covariance(self, terms: Mapping[Any, Any]) -> Range | None:
        """``diag(p) - p p^T`` of a normalised row: p(1 - p) on the diagonal, -p q with p + q <= 1 beside it."""
        if len(terms) != 2 or set(terms.values()) != {sympy.S.One, sympy.S.NegativeOne}:
            return None
        (diagonal, _), (product, _) = sorted(terms.items(), key=lambda term: term[1] != 1)
        if not isinstance(diagonal, Read) or self.node(diagonal).op.name != "diag" or not product.is_Mul:
            return None
        entry = next(iter(self.at(diagonal).atoms(Read)))
        node, axes = self.node(entry), normalised(self.node(entry)) if self.node(entry).op.name in NORMALISERS else ()
        i, j = diagonal.args[-2:]
        if axes != (-1,) or entry.args[-1] != i or any(at.has(i, j) for at in entry.args[1:-1]):
            return None
        other = Read(*entry.args[:-1], j)
        quarter = sympy.Rational(1, 4)
        return Range(-quarter, False, quarter, False) if node.rank and product == entry * other else None


def _matches(upper: Any, lower: Any, u: Any, v: Any) -> bool:
    """Whether two entries are those of a fact, at one index."""
    values: dict[Any, Any] = {}
    for pattern, entry in ((upper, u), (lower, v)):
        if pattern.args[0] != entry.args[0]:
            return False
        for place, at in zip(pattern.args[1:], entry.args[1:], strict=True):
            if place in INDEX:
                if values.setdefault(place, at) != at:
                    return False
            elif place != at:
                return False
    return True
