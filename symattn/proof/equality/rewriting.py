"""Rewriting: both sides of an equality brought to one form, each distinct part once, by rules that a person reads.

It explains, and the normal form of entries decides: of what is true it reaches about a third, next to nothing that the
normal form does not reach as well, and its proofs are the ones that people read. It costs less than the normal form and
grows with the graph alone, so it is asked first, within a number of lemmas; so it also decides what is too large or
nested too deeply for entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...core.budget import Budget
from ...core.node import Tensor, with_inputs
from ...errors import OperandError, SymattnError
from ...graph.names import LONGEST, tree_size
from ...ops.leaves import cotangent_op, let_op, operands
from ...printing.matrix import Printer, latex_printer, text_printer
from ...printing.prose import Items, Paragraph, Part
from ...printing.table import SymbolTable
from ..argument import Argument, Given
from ..claims import Claim, Independence
from ..rules import PHASES, Rule, rules_for
from .telling import ROUTINE, Lemma, Reading, Step, read

MOST = 60  # lemmas that are written out; a longer proof is counted, and checked like any other
_MOST_LEMMAS = 5_000  # where multiplying out gets there, no person reads the proof


class TooLong(Exception):
    """The number of lemmas is beyond what a proof may have."""


@dataclass
class Memo:
    """What one phase has found so far: the form of each node, and the lemmas in order."""

    forms: dict[Tensor, Tensor] = field(default_factory=dict)
    lemmas: list[Lemma] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class RewritingProof(Argument):
    """Both sides brought to one form by lemmas, each of which is used wherever its left side occurs.

    The right side uses the lemmas of the left side too, where they share parts; each lemma is listed once.
    """

    left: Tensor
    right: Tensor
    left_lemmas: tuple[Lemma, ...]
    right_lemmas: tuple[Lemma, ...]
    common: Tensor
    phase: int
    given: tuple[Claim, ...] = ()

    @property
    def lemmas(self) -> tuple[Lemma, ...]:
        """All lemmas, in the order of their numbers."""
        return tuple(sorted((*self.left_lemmas, *self.right_lemmas), key=lambda lemma: lemma.number))

    @property
    def divisors(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys(x for lemma in self.lemmas for x in lemma.nonzero))

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        return claim == Claim(self.left, "=", self.right) and self.given == given.claims

    def check(self) -> bool:
        """Apply the lemmas again, without search: whether each follows from its rule and both sides end in one form."""
        if not all(lemma.holds() for lemma in self.lemmas):
            return False
        sides = [self.left, self.right]
        for phase in PHASES[: PHASES.index(self.phase) + 1]:
            steps = {lemma.before: lemma.after for lemma in self.lemmas if lemma.phase == phase}
            sides = [_replayed(side, steps) for side in sides]
        return sides == [self.common, self.common]

    @cached_property
    def reading(self) -> Reading:
        """The steps as people read them, by the names that the claim mentions."""
        return read((self.left, self.right), (self.left_lemmas, self.right_lemmas), self.common)

    def text(self) -> str:
        """The steps of the left side, those that the right side needs besides, and the common form."""
        printer = text_printer(self._roots())
        lines = []
        for title, steps in self._sides():
            if steps:
                lines.append(title)
                lines += [f"  {self._row(printer, x)}" for x in steps[:MOST]]
            if len(steps) > MOST:
                lines.append(f"  ... and {len(steps) - MOST} lemmas more")
        common = self.reading.common
        shown = printer.refer(common) if tree_size(common) <= LONGEST else f"one form, {common.brief()}"
        return "\n".join([*lines, *[ROUTINE] * self.reading.shortened, f"Both sides are {shown}."])

    def _row(self, printer: Printer, step: Step) -> str:
        reason = step.reason(printer)
        return f"({step.number}) {step.written(printer)}  # {reason}" if step.is_short else f"({step.number}) {reason}"

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        """The same as lists of steps, each with its reason."""
        try:
            printer = latex_printer(self._roots(), within=within)
        except OperandError:  # a tree too large to read: the reasons are told without it
            printer = None
        parts: list[Part] = []
        for title, steps in self._sides():
            items = [words for step in steps[:MOST] if (words := step.words(printer))]
            parts += [Paragraph((title,)), Items(tuple(items), numbered=True)] if items else []
            parts += [Paragraph((f"And {len(steps) - MOST} lemmas more.",))] if len(steps) > MOST else []
        routine = (f"{ROUTINE} ",) if self.reading.shortened else ()
        form = () if printer is None else (": ", printer.box(self.reading.common))
        return *parts, Paragraph((*routine, "Both sides have one form", *form, "."))

    def _sides(self) -> list[tuple[str, Sequence[Step]]]:
        first = "Of the left side:" if self.reading.right else "Step by step:"
        return [(first, self.reading.left), ("Of the right side, besides:", self.reading.right)]

    def _roots(self) -> list[Tensor]:
        """What is written out, after the claim and what is given, so that names have their numbers."""
        steps = [*self.reading.left[:MOST], *self.reading.right[:MOST]]
        stated = [self.left, self.right, *(x for fact in self.given for x in fact.sides)]
        return [*stated, *(x for step in steps for x in step.sides), self.reading.common]


def rewrite(left: Tensor, right: Tensor, budget: Budget, given: Sequence[Claim] = ()) -> RewritingProof | None:
    """Both sides in one form, by the first phase that reaches one; None where none does.

    Raises OutOfBudget when the time is over.
    """
    forms = [left, right]
    lemmas: list[list[Lemma]] = [[], []]
    for phase in PHASES:
        memo = Memo()
        for side in (0, 1):
            try:
                form, new = normalise(forms[side], phase, budget=budget, memo=memo, first=sum(map(len, lemmas)) + 1)
            except TooLong:
                return None
            forms[side] = form
            lemmas[side] += new
        if forms[0] is forms[1]:
            return RewritingProof(left, right, tuple(lemmas[0]), tuple(lemmas[1]), forms[0], phase, tuple(given))
    return None


def normalise(
    x: Tensor, phase: int, *, budget: Budget, memo: Memo | None = None, first: int = 1
) -> tuple[Tensor, list[Lemma]]:
    """The form that the rules up to a phase give, and the new lemmas, numbered from ``first``.

    Inputs come before users, and each distinct node is rewritten once, wherever it occurs; what ``memo`` has found
    is used. A named intermediate is what it stands for. Raises OutOfBudget when the time is over, and TooLong where
    multiplying out takes too many steps.
    """
    known = Memo() if memo is None else memo
    start = len(known.lemmas)
    rules = rules_for(phase)

    def step(node: Tensor) -> Tensor:
        for rule in rules.get(node.op, rules[None]):
            after = _applied(rule, node)
            if after is not None and after is not node:
                budget.check()
                if phase > 1 and len(known.lemmas) >= _MOST_LEMMAS:
                    raise TooLong
                number = first + len(known.lemmas) - start
                known.lemmas.append(Lemma(number, rule, node, after, phase))
                return after
        return node

    form = _from_inputs_up(x, known.forms, step)
    return form, known.lemmas[start:]


def _applied(rule: Rule, node: Tensor) -> Tensor | None:
    try:
        return rule.apply(node)
    except SymattnError:  # the right side is no tensor, for example one with -oo where it is not allowed
        return None


def _from_inputs_up(x: Tensor, forms: MutableMapping[Tensor, Tensor], step: Callable[[Tensor], Tensor]) -> Tensor:
    """The form of x: inputs first, then steps at the node until none applies.

    A node under work that is met again, because rules undo each other, stays as it is: each step is an equality, so
    that any form will do.
    """
    becomes: dict[Tensor, Tensor] = {}  # a node that has been rewritten, and to what
    stack = [x]
    while stack:
        node = stack[-1]
        if node in forms:
            stack.pop()
        elif node in becomes:
            target = becomes[node]
            if target in forms:
                forms[node] = forms[target]
            elif target in becomes:
                forms[target] = target
            else:
                stack.append(target)
        else:
            missing = [i for i in operands(node) if i not in forms]
            for i in missing:
                if i in becomes:  # what it became holds the node itself: the node stays as it is
                    forms[i] = i
            stack += missing[::-1]
            if not missing:
                new = _with_inputs(node, forms)
                new = step(node) if new is node else new
                if new is node:
                    forms[node] = node
                else:
                    becomes[node] = new
    return forms[x]


def _with_inputs(node: Tensor, forms: Mapping[Tensor, Tensor]) -> Tensor:
    if node.op in (let_op, cotangent_op):
        return forms[node.inputs[0]]
    return with_inputs(node, forms)


def _replayed(x: Tensor, steps: Mapping[Tensor, Tensor]) -> Tensor:
    return _from_inputs_up(x, {}, lambda node: steps.get(node, node))
