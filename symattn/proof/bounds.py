"""Inequalities of one bounded family: signs, squares, softmax entries, row sums, convex combinations, extremes.

Each node gets a range, from the leaves up, by its entry formula and the ranges of what that reads; what a formula
alone does not show (a softmax row sums to 1, a maximum is above its entries) is told by the rules of ``order``. The
claim holds if the range of ``right - left`` shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy
from sympy.concrete.expr_with_limits import ExprWithLimits

from ..latex import displayed_names, latex_printer, tex_text
from ..ops.leaves import computed, constant, definition, from_index_op, variable
from ..tensor import Tensor, topological
from .budget import Budget
from .claims import Claim
from .order import NORMALISERS, Order, normalised
from .ranges import (
    ANYTHING,
    POSITIVE,
    REAL,
    UNIT,
    FormulaRange,
    Range,
    at_most,
    below,
    is_informative,
    meet,
    oo,
    plus,
    point,
    shortened,
    times,
)
from .reading import INDEX, Read

MOST_TERMS = 8  # of an expression that is written out and factored
HIGHEST_POWER = 4
MOST_STEPS = 40

_REASONS = {
    "exp": "an exponential is positive",
    "softmax": "a softmax entry is one of the positive terms of a sum, over that sum",
    "sparsemax": "a sparsemax row is a point of the simplex",
    "entmax15": "an entmax row is a point of the simplex",
    "sigmoid": "1 / (1 + exp(-x)) with an exponential that is positive",
    "tanh": "tanh lies between -1 and 1",
    "matmul": "each term of the sum, or a mean with weights that sum to 1",
    "sum": "each term of the sum, or weights that sum to 1",
    "max": "it is one of the entries",
    "min": "it is one of the entries",
    "mean": "a mean lies between the smallest and the largest entry",
}


class Step(NamedTuple):
    """One tensor, the bounds of all its entries as text, why, and the bounds themselves."""

    tensor: Tensor
    statement: str
    reason: str
    range: Range


@dataclass(frozen=True, eq=False)
class BoundProof:
    """Why an inequality holds: bounds of the tensors it is made of, and of the difference of its sides.

    ``conditions`` are what must hold of entries for the sides to exist: divisors that are not 0, for example.
    """

    claim: Claim
    given: tuple[Claim, ...]
    steps: tuple[Step, ...]
    conclusion: Range  # of right - left
    conditions: tuple[str, ...]

    def check(self) -> bool:
        """Work out all bounds again, and hold the steps against them."""
        again = bound_proof(self.claim, self.given, Budget(float("inf")))
        return again is not None and (again.steps, again.conclusion) == (self.steps, self.conclusion)

    def text(self) -> str:
        """One line a step, and the conclusion."""
        lines = [f"{step.statement}: {step.reason}" for step in self.steps]
        lines += [f"where {condition}" for condition in self.conditions]
        return "\n".join([*lines, f"so {_statement(self.conclusion, 'right - left')}: {self.claim}"])

    def latex(self) -> str:
        """The steps and the conclusion as an itemised list. Raises OperandError for a claim too large to read."""
        printer = latex_printer(self.claim.sides)
        lines = []
        for step in self.steps:
            shown = _statement(step.range, printer.refer(step.tensor), sympy.latex, r" \le ")
            lines.append(f"${shown}$: {tex_text(step.reason)}")
        lines += [f"where {tex_text(condition)}" for condition in self.conditions]
        lines.append(f"so ${self.claim.latex()}$")
        return "\\begin{itemize}\n" + "\n".join(rf"  \item {line}" for line in lines) + "\n\\end{itemize}"

    def __str__(self) -> str:
        return self.text()


def _statement(bounds: Range, name: str, show: Callable[[Any], str] = sympy.sstr, at_most_sign: str = " <= ") -> str:
    """``0 < name <= 1``."""
    low = f"{show(bounds.low)}{' < ' if bounds.low_open else at_most_sign}" if bounds.low != -oo else ""
    high = f"{' < ' if bounds.high_open else at_most_sign}{show(bounds.high)}" if bounds.high != oo else ""
    if low and bounds.low == bounds.high:
        return f"{name} = {show(bounds.low)}"
    return f"{low}{name}{high}"


def bound_proof(claim: Claim, given: Sequence[Claim], budget: Budget) -> BoundProof | None:
    """A proof of ``left <= right`` or ``left < right``, entry by entry; None where none is found, which is no answer.

    ``given`` holds inequalities and equalities that are taken as facts. Raises OutOfBudget.

    >>> import symattn as sa
    >>> from symattn.proof.budget import Budget
    >>> from symattn.proof.claims import le
    >>> print(bound_proof(le(sa.softmax(sa.tensor("Z", "T S")), 1), [], Budget(10)))
    0 < softmax(Z) <= 1: a softmax entry is one of the positive terms of a sum, over that sum
    so 0 <= right - left < 1: softmax(Z) <= ones(T, S)
    """
    if claim.relation not in ("<=", "<"):
        return None
    analysis = _Analysis(claim, given, budget)
    difference, used = analysis.difference()
    strict = below(sympy.S.Zero, difference.low) or (difference.low == 0 and difference.low_open)
    if not (strict if claim.relation == "<" else at_most(sympy.S.Zero, difference.low)):
        return None
    steps, conditions = analysis.steps(used)
    return BoundProof(claim, tuple(given), steps, difference, conditions)


class _Analysis:
    """The ranges of all nodes below a claim and what is given."""

    def __init__(self, claim: Claim, given: Sequence[Claim], budget: Budget) -> None:
        self.claim = claim
        self.nodes = computed([*claim.sides, *(side for fact in given for side in fact.sides)])
        self.number = {node: n for n, node in enumerate(self.nodes)}
        self.formulas: dict[Tensor, Any] = {}
        self.same: dict[Tensor, Any] = {}  # nodes that are an entry of another node, or a number, at every index
        self.polynomials: dict[Tensor, Any] = {}
        self.ranges: dict[Tensor, Range] = {}
        self.reasons: dict[Tensor, str] = {}
        self.conditions: dict[Tensor, list[Any]] = {}
        self.order = Order(self.nodes, self.formulas, self.ranges)
        self.stated = _stated_ranges(given)
        for node in self.nodes:
            budget.check()
            self._node(node)
        for fact in given:
            self._fact(fact)

    # --- entries ---

    def _entry(self, x: Tensor, where: Sequence[Any]) -> Any:
        """An entry as what it is an entry of, through names and layout."""
        if x in self.same:
            return self.same[x].xreplace(dict(zip(INDEX, where, strict=False)))
        return Read(sympy.Integer(self.number[x]), *where)

    def _own(self, node: Tensor) -> Any:
        return self._entry(node, INDEX[: node.rank])

    def _node(self, node: Tensor) -> None:
        if node.op is variable or node.rank > len(INDEX):
            self.formulas[node] = self.polynomials[node] = self._own(node)
            self._keep(node, _declared(node), "declared")
            return
        formula = node.op.entry(lambda k, where: self._entry(node.inputs[k], where), INDEX[: node.rank], node)
        self.formulas[node] = formula = sympy.sympify(formula)
        if isinstance(formula, Read) or not (formula.has(Read, -oo) or formula.atoms(sympy.Dummy)):
            self.same[node] = formula
            self._refer(node, formula)
            return
        walk = self._walk()
        found = _normaliser_range(node, self.order) if node.op.name in NORMALISERS else walk.of(formula)
        self.conditions[node] = list(walk.conditions)
        self.polynomials[node] = self._polynomial(node, formula)
        self._keep(node, found, _REASONS.get(node.op.name, f"{node.op.name} of what is bounded so"))
        if self.polynomials[node] != self._own(node):
            self._keep(node, self._of_polynomial(self.polynomials[node]), "its terms, joined by known inequalities")

    def _refer(self, node: Tensor, formula: Any) -> None:
        """A node whose entries are those of another one, or one number."""
        self.polynomials[node] = self._polynomial_at(formula) if isinstance(formula, Read) else formula
        self.ranges[node] = self._read_range(formula) if isinstance(formula, Read) else point(formula)

    def _keep(self, node: Tensor, found: Range, reason: str) -> None:
        if node not in self.ranges:
            self.ranges[node] = self.stated.get(node, ANYTHING)
            self.reasons[node] = "given"
        narrowed = meet(self.ranges[node], shortened(found))
        if _statement(narrowed, "") != _statement(self.ranges[node], ""):
            self.reasons[node] = reason
        self.ranges[node] = narrowed

    def _walk(self) -> FormulaRange:
        return FormulaRange(Read, self._read_range, self.order.total)

    def _read_range(self, entry: Any) -> Range:
        return self.ranges[self.nodes[int(entry.args[0])]]

    # --- polynomials of entries ---

    def _polynomial_at(self, entry: Any) -> Any:
        written = self.polynomials[self.order.node(entry)]
        return written.xreplace(dict(zip(INDEX, entry.args[1:], strict=False)))

    def _polynomial(self, node: Tensor, formula: Any) -> Any:
        """The node as a polynomial of entries of others, if it is a short one; else as its own entry."""
        reads = sorted(formula.atoms(Read), key=sympy.default_sort_key)
        if not (formula.is_Add or formula.is_Mul or formula.is_Pow) or formula.has(ExprWithLimits):
            return self._own(node)
        written = {entry: self._polynomial_at(entry) for entry in reads}
        sizes = [len(sympy.Add.make_args(p)) for p in written.values()]
        if sum(sizes) > MOST_TERMS or sympy.Mul(*sizes) > 2 * MOST_TERMS:
            return self._own(node)
        if not formula.is_polynomial(*reads) or sympy.Poly(formula, *reads).total_degree() > HIGHEST_POWER:
            return self._own(node)
        expanded = sympy.expand(formula.xreplace(written))
        terms = _terms(expanded)
        short = len(terms) <= MOST_TERMS and not any(c.atoms(sympy.Dummy) for c in terms.values())
        return expanded if short and max(map(_degree, terms), default=0) <= HIGHEST_POWER else self._own(node)

    def _of_polynomial(self, p: Any) -> Range:
        """The range of a polynomial of entries: term by term, factored, and with terms paired by known inequalities."""
        found = self._walk().of(p)
        terms = _terms(p)
        if len(terms) < 2 or len(terms) > 2 * MOST_TERMS:
            return found
        found = meet(found, self._walk().of(_factored(p)))
        found = meet(found, self.order.row_covariance(terms) or ANYTHING)
        found = meet(found, self._paired(terms))
        below_zero = self._paired({m: -c for m, c in terms.items()})
        return meet(found, times(point(sympy.S.NegativeOne), below_zero))

    def _paired(self, terms: dict[Any, Any]) -> Range:
        """A low end: each positive term takes away a negative one that it is known to exceed."""
        left = dict(terms)
        total = point(left.pop(sympy.S.One, sympy.S.Zero))
        if total.low.atoms(sympy.Dummy):
            return ANYTHING
        for u, v in _pairs(left):
            share = left[u] if at_most(left[u], -left[v]) else -left[v] if at_most(-left[v], left[u]) else None
            excess = self.order.excess(u, v)
            if excess is not None and share is not None:
                total = plus(total, times(point(share), excess))
                left[u], left[v] = sympy.expand(left[u] - share), sympy.expand(left[v] + share)
        for m, c in left.items():
            total = plus(total, self._walk().of(c * m))
        return Range(total.low, total.low_open, oo, False)

    # --- what is given, and the claim ---

    def _fact(self, fact: Claim) -> None:
        """Two entries of which one is stated to be at least the other."""
        left, right = (self.polynomials[side] for side in fact.sides)
        if isinstance(left, Read) and isinstance(right, Read):
            bounds = POSITIVE if fact.relation == "<" else Range(sympy.S.Zero, False, oo, True)
            self.order.stated.append((right, left, bounds))
            if fact.relation == "=":
                self.order.stated.append((left, right, bounds))

    def difference(self) -> tuple[Range, list[Tensor]]:
        """The range of right - left, and the nodes it is read from."""
        left, right = (self._own(side) for side in self.claim.sides)
        written = sympy.expand(self.polynomials[self.claim.right] - self.polynomials[self.claim.left])
        found = plus(self._side(right), times(point(sympy.S.NegativeOne), self._side(left)))
        found = meet(found, self._of_polynomial(written))
        entries = sorted({*written.atoms(Read), *left.atoms(Read), *right.atoms(Read)}, key=sympy.default_sort_key)
        return found, [self.order.node(entry) for entry in entries]

    def _side(self, entry: Any) -> Range:
        return self._walk().of(entry)

    def steps(self, used: Sequence[Tensor]) -> tuple[tuple[Step, ...], tuple[str, ...]]:
        """The bounds that the difference rests on, from the leaves up, and the conditions met on the way."""
        needed = topological(used, inputs=lambda node: [x for x in self._below(node) if is_informative(self.ranges[x])])
        shown = [x for x in needed if is_informative(self.ranges[x]) and x not in self.same]
        names = displayed_names(self.claim.sides)
        steps = []
        for node in shown[-MOST_STEPS:]:
            bounds = self.ranges[node]
            steps.append(Step(node, _statement(bounds, names.get(node) or str(node)), self.reasons[node], bounds))
        conditions = dict.fromkeys(c for node in shown for c in self._conditions(node))
        return tuple(steps), tuple(conditions)

    def _below(self, node: Tensor) -> list[Tensor]:
        if node.op.name in NORMALISERS or node.op in (variable, constant, from_index_op):
            return []
        return [self.order.node(entry) for entry in sorted(self.formulas[node].atoms(Read), key=sympy.default_sort_key)]

    def _conditions(self, node: Tensor) -> list[str]:
        """The conditions, with the names of the tensors for their entries."""
        found = []
        for condition in self.conditions.get(node, ()):
            names = {r: sympy.Symbol(str(self.order.node(r))) for r in condition.atoms(Read)}
            sign = "!=" if isinstance(condition, sympy.Ne) else ">="
            found.append(f"{condition.lhs.xreplace(names)} {sign} {condition.rhs}")
        return found


def _pairs(terms: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Entries with positive and with negative coefficients, as the coefficients are when the pair is reached."""
    entries = sorted((m for m in terms if isinstance(m, Read)), key=sympy.default_sort_key)
    for u in entries:
        for v in entries:
            if below(sympy.S.Zero, terms[u]) and below(terms[v], sympy.S.Zero):
                yield u, v


def _terms(p: Any) -> dict[Any, Any]:
    """The coefficient of each monomial of entries; 1 is that of the constant."""
    found: dict[Any, Any] = {}
    for term in sympy.Add.make_args(p):
        factors = sympy.Mul.make_args(term)
        m = sympy.Mul(*(f for f in factors if f.has(Read)))
        found[m] = found.get(m, sympy.S.Zero) + sympy.Mul(*(f for f in factors if not f.has(Read)))
    return {m: c for m, c in found.items() if c != 0}


def _degree(m: Any) -> int:
    """The degree of a monomial of entries."""
    return sum(int(f.exp) if f.is_Pow else 1 for f in sympy.Mul.make_args(m) if f != 1)


def _factored(p: Any) -> Any:
    """The polynomial factored, with the entries as symbols."""
    entries = sorted(p.atoms(Read), key=sympy.default_sort_key)
    letters = {entry: sympy.Dummy(f"x{n}", real=True) for n, entry in enumerate(entries)}
    try:
        factored = sympy.factor(p.xreplace(letters))
    except sympy.PolynomialError:
        return p
    return factored.xreplace({letter: entry for entry, letter in letters.items()})


def _declared(node: Tensor) -> Range:
    """The range of a named tensor by its hypotheses."""
    hypotheses = node.params.get("hypotheses", ())
    if "binary" in hypotheses or "permutation" in hypotheses:
        return UNIT
    if "positive" in hypotheses:
        return POSITIVE
    return Range(sympy.S.NegativeOne, False, sympy.S.One, False) if "orthogonal" in hypotheses else REAL


def _normaliser_range(node: Tensor, order: Order) -> Range:
    if not order.is_full(node) or node.op.name != "softmax":
        return UNIT
    count = sympy.Mul(*(node.shape[axis] for axis in normalised(node)))
    if count == 1:
        return point(sympy.S.One)
    return Range(sympy.S.Zero, True, sympy.S.One, below(sympy.S.One, count))


def _stated_ranges(given: Sequence[Claim]) -> dict[Tensor, Range]:
    """What is given of a node against a number."""
    stated: dict[Tensor, Range] = {}
    for fact in given:
        for x, other, signs in ((fact.left, fact.right, "<"), (fact.right, fact.left, ">")):
            value = _number(other)
            if value is None:
                continue
            strict = fact.relation == "<"
            bounds = Range(-oo, False, value, strict) if signs == "<" else Range(value, strict, oo, False)
            if fact.relation == "=":
                bounds = point(value)
            node = definition(x)
            while node is not definition(node):
                node = definition(node)
            stated[node] = meet(stated.get(node, ANYTHING), bounds)
    return stated


def _number(x: Tensor) -> Any:
    """The one value of all entries, if the node is a constant."""
    node = definition(x)
    while node.op.name == "broadcast_to":
        node = node.inputs[0]
    formula = node.params.get("formula") if node.op in (constant, from_index_op) else None
    if not isinstance(formula, sympy.Expr) or formula.atoms(sympy.Dummy) or formula.is_finite is False:
        return None
    return formula
