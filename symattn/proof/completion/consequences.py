"""Claims rewritten by what follows from equalities that are given, and from inverses that occur."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import sympy

from ...core.boxes import separated
from ...core.budget import Budget
from ...core.node import Tensor, topological, with_inputs
from ...core.sizes import Shape, same_shape
from ...ops.contraction import diag_op
from ...ops.inverse import inv_op
from ...ops.leaves import INVERTIBLE, cotangent_op, let_op, operands
from ...printing.matrix import Printer, latex_printer, text_printer
from ...printing.prose import EQUALS, Items, Paragraph, Part, Words
from ...printing.table import SymbolTable
from ..argument import Argument, Given, Resting
from ..claims import Claim, Independence
from .rules import (
    Combined,
    Commuting,
    Completion,
    ContradictionError,
    Declared,
    Origin,
    Transposed,
    TwoSided,
    WordRule,
    follows,
    needed,
    reduced,
    shape_of,
    sides,
)
from .rules import Given as Hypothesis
from .words import Letter, inverted, letter_of, plus, read, says, scaled, times, turned, written
from .words import Words as Polynomial

_FIRST = "These equalities hold."
_MOST_KNOWN = 6  # rules by which entries are compared


class Reading:
    """Tensors as polynomials, wherever they are sums and products of matrices, and rewritten by rules."""

    def __init__(
        self,
        roots: Sequence[Tensor],
        rules: Sequence[WordRule] = (),
        leads: Sequence[int] = (),
        budget: Budget | None = None,
    ) -> None:
        self.words: dict[Tensor, Polynomial | None] = {}
        self.used: dict[int, None] = {}
        self.new: dict[Tensor, Tensor] = {}
        numbered = [(k, rules[k].lead) for k in leads]
        for x in topological(roots, inputs=operands):
            if budget is not None:
                budget.check()
            below = operands(x)
            if x.op in (let_op, cotangent_op):
                self.words[x], self.new[x] = self.words[below[0]], self.new[below[0]]
                self.new[x] = x if self.new[x] is below[0] else self.new[x]
                continue
            same = all(self.new[i] is i for i in below)
            words: Polynomial | None = read(x, self.words.__getitem__)
            if words is None:
                self.new[x] = x if same else with_inputs(x, self.new)
                self.words[x] = words = letter_of(self.new[x])
                same = self.new[x] is x
                if words is None:
                    continue
            left, parts = reduced(words, numbered, rules)
            if x.rank == 0:  # a number is its transpose
                other, more = reduced(turned(left), numbered, rules)
                if parts or more:
                    parts = [*parts, *more]
                    left = scaled(sympy.Rational(1, 2), plus(left, other))
            self.used.update(dict.fromkeys(k for _, _, k, _ in parts))
            self.words[x] = left
            self.new[x] = self.new.get(x, x) if not parts and (same or x in self.new) else written(left, x.shape)

    def letters(self) -> dict[Letter, None]:
        """The letters that occur, in their order."""
        return {letter: None for words in self.words.values() if words for word in words for letter in word}


def _other(letter: Letter, words: Callable[[Tensor], Polynomial | None]) -> Polynomial | None:
    """What a letter is the inverse of, as far as it is declared or is what an inverse is."""
    if letter.inverted:
        return words(letter.tensor) if not letter.transposed else None
    if says(letter.tensor, "orthogonal", "permutation"):
        return {(letter.turned,): sympy.S.One}
    return inverted({(letter,): sympy.S.One}) if says(letter.tensor, "invertible") else None


def stated(origin: Origin, claims: Sequence[Claim], words: Callable[[Tensor], Polynomial | None]) -> Polynomial | None:
    """The polynomial that is 0 by a hypothesis, or by a property of a letter."""
    if isinstance(origin, Hypothesis):
        left, right = map(words, claims[origin.number].sides)
        return None if left is None or right is None else plus(left, scaled(-sympy.S.One, right))
    if isinstance(origin, Commuting):
        first, second = origin
        if not first.tensor.op is second.tensor.op is diag_op or first.inverted or second.inverted:
            return None
        return {(first, second): sympy.S.One, (second, first): -sympy.S.One}
    if not isinstance(origin, Declared):
        return None
    letter = origin.letter
    own: Polynomial = {(letter,): sympy.S.One}
    if _is_ones(letter):
        return plus(times(turned(own), own), {(): -letter.tensor.shape[0]})
    other = _other(letter, words)
    if other is None:
        return None
    return plus(times(other, own) if origin.before else times(own, other), {(): -sympy.S.One})


def _is_ones(letter: Letter) -> bool:
    return letter.tensor.rank == 1 and letter.tensor.params.get("formula") == 1


def _origins(claims: Sequence[Claim], letters: Sequence[Letter]) -> Iterator[Origin]:
    """What is given, and what the properties of the letters are."""
    yield from (Hypothesis(number) for number, claim in enumerate(claims) if claim.relation == "=")
    for letter in dict.fromkeys(letter._replace(transposed=False) for letter in letters):
        yield Declared(letter)
        if not _is_ones(letter):
            yield Declared(letter, before=True)
    diagonal = [letter for letter in letters if letter.tensor.op is diag_op and not letter.inverted]
    yield from (Commuting(*pair) for pair in itertools.combinations(diagonal, 2) if same_shape(*_shapes(pair)))


def _shapes(letters: Sequence[Letter]) -> list[Shape]:
    return [letter.tensor.shape for letter in letters]


def completed(claims: Sequence[Claim], reading: Reading, budget: Budget) -> Completion:
    """The rules that follow from claims that are given, and from properties of the letters that are read.

    Raises ContradictionError and OutOfBudget.
    """
    start = []
    for origin in _origins(claims, list(reading.letters())):
        words = stated(origin, claims, reading.words.get)
        if words:
            start.append((words, origin))
    return Completion(start, budget)


def _roots(claims: Sequence[Claim], *more: Tensor) -> list[Tensor]:
    return [*more, *(x for claim in claims for x in claim.sides)]


def no_matrices(claims: Sequence[Claim], budget: Budget) -> bool:
    """Whether equalities of matrices are seen to contradict each other. Raises OutOfBudget."""
    try:
        completed(claims, Reading(_roots(claims), budget=budget), budget)
    except ContradictionError:
        return True
    return False


@dataclass(frozen=True, eq=False)
class Consequence(Resting):
    """A claim, rewritten by rules that follow from what is given, and the proof of what it then is.

    ``used`` are the numbers of the rules by which it is rewritten, ``known`` of those that are given besides in the
    proof of what it then is; the others lead to them.
    """

    claim: Claim
    given: Given
    rules: tuple[WordRule, ...]
    used: tuple[int, ...]
    known: tuple[int, ...]
    rewritten: Claim
    argument: Argument

    @property
    def parts(self) -> tuple[Argument, ...]:
        return (self.argument,)

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        return (self.claim, self.given) == (claim, given) and self.argument.proves(
            self.rewritten, _with_rules(given, self.rules, self.known)
        )

    def check(self) -> bool:
        claims = self.given.claims
        words = Reading(_roots(claims, *self.claim.sides)).words

        def known(origin: Origin) -> Polynomial | None:
            return stated(origin, claims, words.get)

        in_order = all(j in range(k) for k, rule in enumerate(self.rules) for j in rule.rules)
        if not in_order or not {*self.used, *self.known} <= set(range(len(self.rules))):
            return False
        if not all(follows(rule, self.rules, known) for rule in self.rules):
            return False
        again = Reading(self.claim.sides, self.rules, self.used)
        left, right = (again.new[side] for side in self.claim.sides)
        return Claim(left, self.claim.relation, right) == self.rewritten and super().check()

    @cached_property
    def _sides(self) -> list[tuple[Tensor, Tensor]]:
        """Both sides of each rule."""
        return [claimed(rule).sides for rule in self.rules]

    @property
    def _shown(self) -> list[Tensor]:
        new = [*self.rewritten.sides, *(x for pair in self._sides for x in pair)]
        return _roots(self.given.claims, *self.claim.sides, *new)

    def text(self) -> str:
        printer = text_printer(self._shown)
        lines = [_FIRST]
        for number, (pair, rule) in enumerate(zip(self._sides, self.rules, strict=True), 1):
            why = "".join(map(str, _why(rule, printer)))
            lines.append(f"  ({number}) {' = '.join(map(printer.refer, pair))}: {why}")
        left, right = self.rewritten.sides
        if left is right:
            return "\n".join([*lines, f"By {_listed(self.used)} both sides are {printer.refer(left)}."])
        if self.used:
            lines.append(f"By {_listed(self.used)} the claim is {self.rewritten.written(printer)}.")
        return "\n".join([*lines, self.argument.text()])

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        printer = latex_printer(self._shown, within=within)
        items: list[Words] = [
            (separated(EQUALS, map(printer.box, pair)), ": ", *_why(rule, printer))
            for pair, rule in zip(self._sides, self.rules, strict=True)
        ]
        first = Paragraph((_FIRST,)), Items(tuple(items), numbered=True)
        left, right = self.rewritten.sides
        if left is right:
            return *first, Paragraph((f"By {_listed(self.used)} both sides are ", printer.box(left), "."))
        so = (f"By {_listed(self.used)} the claim is ", self.rewritten.box(printer), ".")
        return *first, *([Paragraph(so)] if self.used else []), *self.argument.told(within)


def _why(rule: WordRule, printer: Printer) -> Words:
    origin = rule.origin
    if isinstance(origin, Hypothesis):
        return ("given",)
    if isinstance(origin, Declared):
        letter = origin.letter
        if _is_ones(letter):
            return ("a sum of ones",)
        if letter.inverted:
            return ("a matrix times its inverse is the identity",)
        name = printer.refer(letter.tensor) if printer.code else printer.box(letter.tensor)
        kind = next(h for h in ("orthogonal", "permutation", "invertible") if says(letter.tensor, h))
        return (name, " is a permutation matrix" if kind == "permutation" else f" is {kind}")
    if isinstance(origin, Commuting):
        return ("diagonal matrices commute",)
    if isinstance(origin, Transposed):
        return (f"{_listed(rule.rules)}, transposed",)
    if isinstance(origin, TwoSided):
        return (f"a one-sided inverse of a square matrix is its inverse, by {_listed(rule.rules)}",)
    return (f"by {_listed(rule.rules)}",)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(f"({k + 1})" for k in dict.fromkeys(numbers))


def consequence(
    claim: Claim, given: Given, budget: Budget, argued: Callable[[Given, Claim], Argument | None]
) -> Consequence | None:
    """A proof of a claim through what follows from equalities that are given; None where nothing of use follows.

    ``argued`` proves what the claim becomes. Raises OutOfBudget.
    """
    if not any(g.relation == "=" for g in given.claims) and not _has_rules(claim):
        return None
    reading = Reading(_roots(given.claims, *claim.sides), budget=budget)
    try:
        found = completed(given.claims, reading, budget)
    except ContradictionError:  # the claim is true of nothing, which is no proof that anybody wants
        return None
    again = Reading(claim.sides, found.rules, sorted(k for k, _ in found.leads), budget)
    left, right = (again.new[side] for side in claim.sides)
    new = Claim(left, claim.relation, right)
    for known in ([], _worth_knowing(found)):
        if new == claim and not known:
            continue
        argument = argued(_with_rules(given, found.rules, known), new)
        if argument is not None:
            kept = needed([*again.used, *known], found.rules)
            number = {k: n for n, k in enumerate(kept)}
            rules = tuple(_renumbered(found.rules[k], number) for k in kept)
            used, besides = (tuple(sorted(number[k] for k in some)) for some in (again.used, known))
            return Consequence(claim, given, rules, used, besides, new, argument)
    return None


def claimed(rule: WordRule) -> Claim:
    """A rule as an equality of tensors."""
    (left, right), shape = sides(rule), shape_of(rule.lead)
    return Claim(written(left, shape), "=", written(right, shape))


def _with_rules(given: Given, rules: Sequence[WordRule], known: Sequence[int]) -> Given:
    return replace(given, claims=(*given.claims, *(claimed(rules[k]) for k in known))) if known else given


def _worth_knowing(found: Completion) -> list[int]:
    """Short rules that follow and that are not themselves given: entries may meet them where no product is written."""
    plain = (
        k
        for k, lead in found.leads
        if isinstance(found.rules[k].origin, (TwoSided, Combined, Transposed))
        and not any(letter.inverted for word in found.rules[k].words for letter in word)
    )
    return sorted(sorted(plain, key=lambda k: (len(found.rules[k].lead), k))[:_MOST_KNOWN])


def _has_rules(claim: Claim) -> bool:
    """Whether there are inverses in it, or matrices that are declared to have one."""
    return any(x.op is inv_op or says(x, *INVERTIBLE) for x in topological(claim.sides))


def _renumbered(rule: WordRule, number: Mapping[int, int]) -> WordRule:
    origin = rule.origin
    if isinstance(origin, (Transposed, TwoSided)):
        return WordRule(rule.lead, rule.words, origin._replace(rule=number[origin.rule]))
    if isinstance(origin, (Hypothesis, Declared, Commuting)):
        return rule
    parts = tuple((c, before, number[k], after) for c, before, k, after in origin.parts)
    return WordRule(rule.lead, rule.words, origin._replace(parts=parts))
