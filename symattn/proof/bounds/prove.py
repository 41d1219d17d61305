"""Inequalities of one bounded family: signs, squares, softmax entries, row sums, convex combinations, extremes.

Each node gets a range, from the leaves up, by its entry formula and the ranges of what that reads; what a formula
alone does not show (a softmax row sums to 1, a maximum is above its entries) is told by the rules of ``order``. The
claim holds if the range of ``right - left`` shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy
from sympy.logic.boolalg import Boolean

from ...core.boxes import Box, row
from ...core.budget import Budget, OutOfBudget
from ...core.node import Tensor, topological
from ...core.stated import Condition, Formula, Stated
from ...facts.conditions import cases
from ...facts.formula_ranges import FormulaRange
from ...facts.linear import Fact, Spans, depends, form_of
from ...facts.order import Known, normalised
from ...facts.ranges import ANYTHING, POSITIVE, REAL, UNIT, ZERO, End, Range, above, below, oo, point
from ...ops.broadcasting import broadcast_to_op
from ...ops.leaves import bare, computed, constant, from_index_op, variable
from ...printing.matrix import Printer, latex_printer, text_in, text_printer
from ...printing.prose import EQUALS, Items, Part, Words, listed
from ...printing.stated import sentence_words, stated_in
from ...printing.table import SymbolTable
from ...scalars.affine import combined
from ...scalars.formulas import INDEX, Choice, Max, Min, Read
from ..argument import Argument, Given
from ..claims import RELATIONS, Claim, Independence
from ..fitting import implied
from ..relations import is_size
from .chain import Link, chain
from .telling import FormulasTold, named_nodes
from .writing import Writing

MOST_STEPS = 40
_SECONDS = 2.0  # for a chain of inequalities to be found again
_SAYS = {  # what relations say of right - left; an entry that is at most another may be -oo
    "=": ZERO,
    "<=": Range(sympy.S.Zero, False, oo, False),
    "<": Range(sympy.S.Zero, True, oo, False),
}


class Step(NamedTuple):
    """One tensor, the bounds of all its entries as text, why, and the bounds themselves."""

    tensor: Tensor
    statement: str
    reason: str
    range: Range


@dataclass(frozen=True, eq=False)
class BoundProof(Argument):
    """Why an inequality holds: bounds of the tensors it is made of, and of the difference of its sides.

    ``conditions`` are what must hold of entries for the sides to exist: divisors that are not 0, for example;
    ``in_order`` says that it is used which functions are monotone.
    """

    claim: Claim
    given: tuple[Claim, ...]
    steps: tuple[Step, ...]
    conclusion: Range  # of right - left
    conditions: tuple[str, ...]
    in_order: bool = False
    relations: tuple[Boolean, ...] = ()  # between sizes, by which the conclusion is compared with 0

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is stated of the operations and not proved."""
        nodes = computed([*self.claim.sides, *(side for fact in self.given for side in fact.sides)])
        said = (pair for node in nodes for pair in node.op.assumptions.items())
        return tuple(dict.fromkeys(text for what, text in said if what != "monotone" or self.in_order))

    @property
    def _orders(self) -> list[str]:
        """Which functions are taken to be monotone, in words."""
        nodes = computed(self.claim.sides) if self.in_order else ()
        return list(dict.fromkeys(f"{node.op.title} is {node.op.monotone}" for node in nodes if node.op.monotone))

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        known = set(self.relations) <= set(given.relations)
        return known and self.claim == claim and self.given == given.claims

    def check(self) -> bool:
        """Work out all bounds again, and hold the steps against them."""
        again = bound_proof(self.claim, self.given, Budget(float("inf")), self.relations)
        return again is not None and again._found == self._found

    @property
    def _found(self) -> tuple[Any, ...]:
        return self.steps, self.conclusion, self.conditions, self.in_order, self.relations

    def _chain(self, code: bool, within: SymbolTable | None = None) -> list[Words]:
        """The inequalities that lead from the bounds of entries to the claim, where they are found again."""
        roots = [*self.claim.sides, *(side for fact in self.given for side in fact.sides)]
        for named in (named_nodes(roots), ()):  # by names where these are enough
            try:
                analysis = _Analysis(self.claim, self.given, Budget(_SECONDS), self.in_order, named)
                found = analysis.chain()
            except OutOfBudget:
                found = None
            if found is not None:
                told = FormulasTold(roots, analysis.writing, code, within)
                known = {analysis.writing.full[step.tensor] for step in self.steps}
                said = [link for link in found if link.of is None or link.of not in known]
                return [told.line(link) for link in said] if all(map(told.is_short, said)) else []
        return []

    def text(self) -> str:
        """One line a step, and the conclusion."""
        lines = [f"{step.statement}: {step.reason}" for step in self.steps]
        lines += ["".join(map(str, words)) for words in self._chain(code=True)]
        lines += self._orders
        lines += [f"where {condition}" for condition in self.conditions]
        lines += [f"the sides are compared by {' and '.join(map(str, self.relations))}"] * bool(self.relations)
        return "\n".join([*lines, f"so {_statement(self.conclusion, 'right - left')}: {self.claim}"])

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        """The steps and the conclusion as a list. Raises OperandError for a claim too large to read."""
        printer, named = latex_printer(self.claim.sides, within=within), named_nodes(self.claim.sides)
        lines: list[Words] = []
        for step in self.steps:
            shown = printer.box(named.get(step.tensor, step.tensor))
            lines.append((_bounded(step.range, shown, printer.table), f": {step.reason}"))
        lines += self._chain(code=False, within=within)
        lines += ((order,) for order in self._orders)
        lines += (("where ", *sentence_words(condition, within)) for condition in self.conditions)
        if self.relations:
            relations = ((printer.table.scalar(relation),) for relation in self.relations)
            lines.append(("the sides are compared by ", *listed(relations, " and ")))
        return (Items((*lines, ("so ", self.claim.box(printer)))),)


def _statement(bounds: Range, name: str) -> str:
    """``0 < name <= 1``."""
    low = f"{bounds.low} {'<' if bounds.low_open else '<='} " if bounds.low != -oo else ""
    high = f" {'<' if bounds.high_open else '<='} {bounds.high}" if bounds.high != oo else ""
    if low and bounds.low == bounds.high:
        return f"{name} = {bounds.low}"
    return f"{low}{name}{high}"


def _bounded(bounds: Range, name: Box, table: SymbolTable) -> Box:
    """The same as mathematics."""
    low = (table.scalar(bounds.low), RELATIONS["<" if bounds.low_open else "<="]) if bounds.low != -oo else ()
    high = (RELATIONS["<" if bounds.high_open else "<="], table.scalar(bounds.high)) if bounds.high != oo else ()
    if low and bounds.low == bounds.high:
        return row(name, EQUALS, low[0])
    return row(*low, name, *high)


def bound_proof(
    claim: Claim, given: Sequence[Claim], budget: Budget, relations: Sequence[Boolean] = ()
) -> BoundProof | None:
    """A proof of ``left <= right`` or ``left < right``, entry by entry; None where none is found, which is no answer.

    ``given`` holds inequalities and equalities that are taken as facts, ``relations`` those between sizes. Raises
    OutOfBudget.

    >>> import symattn as sa
    >>> from symattn.core.budget import Budget
    >>> from symattn.proof.claims import le
    >>> print(bound_proof(le(sa.softmax(sa.tensor("Z", "T S")), 1), [], Budget(10)))
    0 < softmax(Z) <= 1: the rows of softmax are positive probabilities
    so 0 <= right - left < 1: softmax(Z) <= ones(T, S)
    """
    if claim.relation not in ("<=", "<"):
        return None
    found = _by_ranges(claim, given, budget, relations, in_order=False)
    if found is None and any(node.op.monotone for node in computed(claim.sides)):
        found = _by_ranges(claim, given, budget, relations, in_order=True)
    return found


def _by_ranges(
    claim: Claim, given: Sequence[Claim], budget: Budget, relations: Sequence[Boolean], in_order: bool
) -> BoundProof | None:
    """A proof by formulas, or with monotone operations taken by their order alone."""
    analysis = _Analysis(claim, given, budget, in_order)
    difference, used = analysis.difference()
    needed: Sequence[Boolean] = ()
    if not (difference.is_positive if claim.relation == "<" else difference.is_not_negative):
        if not _follows_from_sizes(difference, claim.relation == "<", relations):
            return None
        needed = relations
    steps, conditions = analysis.steps(used)
    return BoundProof(claim, tuple(given), steps, difference, conditions, in_order, tuple(needed))


def _follows_from_sizes(difference: Range, strict: bool, relations: Sequence[Boolean]) -> bool:
    """Whether a difference is not negative, or positive, since its low end is not by what is given of sizes."""
    if not relations or not difference.low.free_symbols or not difference.low.is_finite:
        return False
    above, under = sympy.fraction(sympy.together(difference.low))
    whole = all(s.is_integer and s.is_positive for s in difference.low.free_symbols)
    needed = above > 0 if strict and not difference.low_open else above >= 0
    return whole and is_size(under) and implied(needed, relations)


class _Analysis:
    """The ranges of all nodes below a claim and what is given."""

    def __init__(
        self,
        claim: Claim,
        given: Sequence[Claim],
        budget: Budget,
        in_order: bool,
        named: Collection[Tensor] = (),
    ) -> None:
        self.claim, self.in_order = claim, in_order
        nodes = computed([*claim.sides, *(side for fact in given for side in fact.sides)])
        self.writing = Writing(nodes, in_order, named)
        self.known = Known(nodes, budget)
        self.reasons: dict[Tensor, str] = {}
        self.conditions: dict[Tensor, list[Any]] = {}
        self.walks: dict[tuple[Any, ...], FormulaRange] = {}
        self.stated = _stated_ranges(given)
        for fact in given:
            self._work_out(fact)
            self.known.tell(self._facts(fact))
        self.known.tell([more for fact in self.known.given for more in _consequences(self.known, fact)])
        self.walks.clear()  # they did not know all facts
        self._work_out(claim)

    def _work_out(self, claim: Claim) -> None:
        """The formulas and ranges of the nodes below two sides."""
        for node in computed(claim.sides):
            if node not in self.known.ranges:
                self.known.budget.check()
                self.writing.add(node)
                self._node(node)

    def _node(self, node: Tensor) -> None:
        own = self.writing.own[node]
        if node.op is variable:
            self._keep(node, _declared(node), "declared")
            return
        if node in self.writing.same or node.rank > len(INDEX):
            self.known.ranges[node] = self.known.range(own) if isinstance(own, Read) else point(own)
            return
        plain = FormulaRange(self.known, _index_ranges(node.shape), opened=0)
        found = plain.of(own)
        self.conditions[node] = list(plain.conditions)
        if node.op.range is not None:
            low, high = node.op.range
            self._keep(node, Range(low, low == -oo, high, high == oo), f"the range of {node.op.title}")
        if self.in_order and node.op.monotone and not node.holds_minus_infinity:
            self._monotone(node)
        if node.op.rows:
            self._keep(node, _normaliser_range(node, self.known), f"the rows of {node.op.title} are {node.op.rows}")
        else:
            self._keep(node, found, node.op.bounded or f"{node.op.title} of what is bounded so")
            found = self._walk(node.shape).of(self.writing.full[node])
            self._keep(node, found, node.op.bounded or "its terms, joined by known inequalities")

    def _monotone(self, node: Tensor) -> None:
        """The range of a monotone function between the values at the ends of the range of its argument."""
        (x,) = node.inputs
        self.known.arguments[node] = self.writing.full[x]
        argument = self.writing.entry(x, INDEX[: x.rank])
        inside = self._walk(node.shape).of(argument)
        strictly = node.op.monotone.startswith("strictly")

        def at(end: Any, is_open: bool, unknown: Any) -> tuple[Any, bool]:
            """An end of the range, which is not reached if the argument does not reach its own."""
            value = self.writing.own[node].xreplace({argument: end}) if end.is_finite else end
            known = value.is_extended_real and value.is_finite
            return (value, is_open and strictly) if known else (unknown, True)

        low, high = (inside.low, inside.low_open), (inside.high, inside.high_open)
        low, high = (high, low) if node.op.monotone.endswith("decreasing") else (low, high)
        bounds = Range(*at(*low, -oo), *at(*high, oo))
        self._keep(node, bounds, f"{node.op.title} is {node.op.monotone}")

    def _walk(self, shape: tuple[Any, ...]) -> FormulaRange:
        """One walk for all tensors of a shape: what is short is met again in the formulas of others."""
        if shape not in self.walks:
            self.walks[shape] = FormulaRange(self.known, _index_ranges(shape))
        return self.walks[shape]

    def _keep(self, node: Tensor, found: Range, reason: str) -> None:
        ranges = self.known.ranges
        if node not in ranges:
            ranges[node] = self.stated.get(node, ANYTHING)
            self.reasons[node] = "given"
        narrowed = ranges[node] & found.shortened()
        if _finite_ends(narrowed) != _finite_ends(ranges[node]):
            self.reasons[node] = reason
        ranges[node] = narrowed

    # --- what is given, and the claim ---

    def _facts(self, fact: Claim) -> list[Fact]:
        """What is given as a fact; sides that may be -oo together say nothing of the rest."""
        left, right = (self.writing.full[side] for side in fact.sides)
        if not (self.known.finite(left) and self.known.finite(right)):
            return []
        return [Fact(form_of(right - left), _SAYS[fact.relation], dict(zip(INDEX, fact.left.shape, strict=False)))]

    def difference(self) -> tuple[Range, list[Tensor]]:
        """The range of right - left, and the nodes it is read from."""
        left, right = (self.writing.entry(side, INDEX[: side.rank]) for side in self.claim.sides)
        full = [self.writing.full[side] for side in self.claim.sides]
        walk = self._walk(self.claim.left.shape)
        found = walk.of(right) + -walk.of(left) & walk.difference(full[1], full[0])
        entries = {entry for e in (left, right, *full) for entry in e.atoms(Read)}
        return found, [self.known.node(entry) for entry in sorted(entries, key=sympy.default_sort_key)]

    def chain(self) -> list[Link] | None:
        """The inequalities that show the claim, if they are found again."""
        left, right = (self.writing.full[side] for side in self.claim.sides)
        return chain(self._walk(self.claim.left.shape), form_of(right - left), self.claim.relation == "<")

    def steps(self, used: Sequence[Tensor]) -> tuple[tuple[Step, ...], tuple[str, ...]]:
        """The bounds that the difference rests on, from the leaves up, and the conditions met on the way."""
        needed = topological(
            used, inputs=lambda node: [x for x in self._below(node) if self.known.ranges[x].is_informative]
        )
        shown = [x for x in needed if self.known.ranges[x].is_informative and x not in self.writing.same]
        printer, named = text_printer(self.claim.sides), named_nodes(self.claim.sides)
        steps = []
        for node in shown[-MOST_STEPS:]:
            bounds = self.known.ranges[node]
            shown_as = printer.names.get(named.get(node, node)) or text_in(printer, node)
            steps.append(Step(node, _statement(bounds, shown_as), self.reasons[node], bounds))
        conditions = dict.fromkeys(c for node in computed(self.claim.sides) for c in self._conditions(node, printer))
        return tuple(steps), tuple(conditions)

    def _below(self, node: Tensor) -> list[Tensor]:
        if node.op.rows or node.op in (variable, constant, from_index_op):
            return []
        return [
            self.known.node(entry) for entry in sorted(self.writing.own[node].atoms(Read), key=sympy.default_sort_key)
        ]

    def _conditions(self, node: Tensor, printer: Printer) -> list[Stated]:
        """The conditions, with the names of the tensors for their entries."""
        found = list[Stated]()
        for condition in self.conditions.get(node, ()):
            read = {r: self.known.node(r) for r in condition.atoms(Read)}
            symbols = {r: sympy.Dummy("x") for r in read}
            left = Formula(condition.lhs.xreplace(symbols), tuple((symbols[r], x) for r, x in read.items()))
            sign = "!=" if isinstance(condition, sympy.Ne) else ">="
            found.append(stated_in(printer, Condition(left, sign, condition.rhs)))
        return found


def _finite_ends(a: Range) -> list[End]:
    return [end if end[0] != -oo else (-oo, True) for end in (a.lower, a.upper)]


def _index_ranges(shape: Sequence[Any]) -> dict[Any, Range]:
    return {i: Range(sympy.S.Zero, False, size - 1, False) for i, size in zip(INDEX, shape, strict=False)}


def _consequences(known: Known, fact: Fact) -> Iterator[Fact]:
    """What a bound of a sum, of an extreme or of a larger or smaller value says of what that is made of."""
    for m, c in fact.form.items():
        for sign, part, spans in _made_of(known, m, fact.spans):
            form = combined(fact.form, sympy.S.One, form_of(c * part - c * m))
            if below(sympy.S.Zero, sign * c):
                yield Fact(form, Range.of(REAL.lower, fact.range.upper), spans)
            elif below(sign * c, sympy.S.Zero):
                yield Fact(form, above(*fact.range.lower), spans)


def _made_of(known: Known, m: Any, spans: Spans) -> Iterator[tuple[int, Any, Spans]]:
    """Parts that a monomial is never below (with sign 1) or never above (-1), and the indices they are meant for."""
    walk = FormulaRange(known, {})
    if isinstance(m, Choice):
        condition, a, b = m.args
        sides = [(True, a - b), (False, b - a)]
        excess = [walk.under(case.facts).of(e) for taken, e in sides for case in cases(condition, taken, known.finite)]
        for sign, bounds in ((1, excess), (-1, [-r for r in excess])):
            if all(r.is_not_negative for r in bounds):
                yield from ((sign, part, spans) for part in (a, b))
    if isinstance(m, (sympy.Sum, Max, Min)) and all(low == 0 and not depends(high) for _, low, high in m.limits):
        fresh = dict(zip((k for k, _, _ in m.limits), INDEX[len(spans) :], strict=False))
        inside, (term,) = walk.at_term(m)
        if len(fresh) == len(m.limits) and (m.func is not sympy.Sum or inside.of(term).is_not_negative):
            more = {fresh[k]: high + 1 for k, _, high in m.limits}
            yield -1 if m.func is Min else 1, m.function.xreplace(fresh), {**spans, **more}


_DECLARED = {
    "binary": UNIT,
    "permutation": UNIT,
    "positive": POSITIVE,
    "orthogonal": Range(sympy.S.NegativeOne, False, sympy.S.One, False),
}


def _declared(node: Tensor) -> Range:
    """The range of a named tensor by its hypotheses."""
    hypotheses = node.params.get("hypotheses", ())
    return next((bounds for declared, bounds in _DECLARED.items() if declared in hypotheses), REAL)


def _normaliser_range(node: Tensor, known: Known) -> Range:
    if not known.is_full(node):
        return UNIT
    count = sympy.Mul(*(node.shape[axis] for axis in normalised(node)))
    if count == 1:
        return point(sympy.S.One)
    if node.op.rows != "positive probabilities":
        return UNIT
    return Range(sympy.S.Zero, True, sympy.S.One, below(sympy.S.One, count))


def _stated_ranges(given: Sequence[Claim]) -> dict[Tensor, Range]:
    """What is given of a node against a number."""
    stated: dict[Tensor, Range] = {}
    for fact in given:
        difference = _SAYS[fact.relation]
        for x, other, beyond in ((fact.left, fact.right, -difference), (fact.right, fact.left, difference)):
            value = _number(other)
            if value is not None:
                stated[bare(x)] = stated.get(bare(x), ANYTHING) & point(value) + beyond
    return stated


def _number(x: Tensor) -> Any:
    """The one value of all entries, if the node is a constant."""
    node = bare(x)
    while node.op is broadcast_to_op:
        node = node.inputs[0]
    formula = node.params.get("formula") if node.op in (constant, from_index_op) else None
    if not isinstance(formula, sympy.Expr) or formula.atoms(sympy.Dummy) or formula.is_finite is False:
        return None
    return formula
