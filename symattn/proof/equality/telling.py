"""The steps of a proof by rewriting as people read them: by the names of the claim, without what these make plain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...core.boxes import Box, separated
from ...core.node import Tensor
from ...graph.folding import Folding
from ...graph.names import LONGEST, tree_size
from ...ops.leaves import definition
from ...printing.index import IndexPrinter
from ...printing.matrix import Printer, latex_printer
from ...printing.prose import EQUALS, Words
from ..rules import RULES, Rule
from ..rules.rule import Said

ROUTINE = "Steps that only regroup, reorder or transpose what a name stands for are left out."


@dataclass(frozen=True)
class Lemma:
    """One step, used wherever its left side occurs: ``before = after`` by one rule, in the pass of one phase."""

    number: int
    rule: Rule
    before: Tensor
    after: Tensor
    phase: int

    @property
    def nonzero(self) -> tuple[Tensor, ...]:
        """The tensors that must have no entry 0 for the step to hold."""
        return self.rule.nonzero(self.before)

    def holds(self) -> bool:
        """Whether the rule, applied again, gives this step."""
        fits = not self.rule.heads or self.before.op in self.rule.heads
        return self.rule in RULES and fits and self.rule.apply(self.before) is self.after

    def __str__(self) -> str:
        return f"({self.number}) {self.before} = {self.after}  [{self.rule.name}]"


class Step(NamedTuple):
    """A line of a proof: tensors that are equal, each to the next, and why."""

    number: int
    sides: tuple[Tensor, ...]
    why: Said

    @property
    def is_short(self) -> bool:
        """Whether somebody reads it."""
        return max(map(tree_size, self.sides)) <= LONGEST

    def written(self, printer: Printer | IndexPrinter) -> str:
        """The tensors by the names of a printer, with equality signs between them."""
        return " = ".join(map(printer.refer, self.sides))

    def box(self, printer: Printer | IndexPrinter) -> Box | None:
        """The same as mathematics; None where all of them are printed alike."""
        printed = {printer.refer(side): printer.box(side) for side in self.sides}
        return separated(EQUALS, printed.values()) if len(printed) > 1 else None

    def reason(self, printer: Printer) -> str:
        """Why they are equal, as text."""
        return "".join(part if isinstance(part, str) else printer.refer(part) for part in self.why)

    def words(self, printer: Printer | IndexPrinter | None) -> Words:
        """The tensors as mathematics, and why they are equal: only why, where they are too large for a printer.

        Nothing is said where all of them are printed alike: mathematics writes a column of shape (n, 1) like a vector.
        """
        why = tuple(x if isinstance(x, str) else (printer or latex_printer([x])).box(x) for x in self.why)
        if printer is None:
            return why
        formula = self.box(printer)
        return () if formula is None else (formula, ". ", *why)


class Reading(NamedTuple):
    """The steps of the left side, those that the right side needs besides, and the common form.

    ``shortened`` says that steps were left out which only regroup what has a name.
    """

    left: tuple[Step, ...]
    right: tuple[Step, ...]
    common: Tensor
    shortened: bool

    @property
    def steps(self) -> tuple[Step, ...]:
        return *self.left, *self.right


def read(claim: tuple[Tensor, Tensor], lemmas: tuple[Sequence[Lemma], Sequence[Lemma]], common: Tensor) -> Reading:
    """What a proof says: each lemma by the names that its claim mentions; all of it where nothing would be left."""
    fold = Folding(map(definition, claim))
    in_order = sorted((*lemmas[0], *lemmas[1]), key=lambda lemma: lemma.number)
    dropped = {lemma.number for lemma in in_order if _is_plain(lemma, fold)}
    if len(dropped) == len(in_order):
        fold, dropped = Folding(()), set()
    left, right = (_steps(side, fold, dropped) for side in lemmas)
    numbered = [step._replace(number=k) for k, step in enumerate((*left, *right), 1)]
    return Reading(tuple(numbered[: len(left)]), tuple(numbered[len(left) :]), fold(common), bool(dropped))


def _is_plain(lemma: Lemma, fold: Folding) -> bool:
    """Whether a step ends where it begins, by the names; what it only regroups has the name still."""
    before = fold(lemma.before)
    if lemma.rule.routine and fold.mentions(before):
        fold.show_as(lemma.after, before)
    return fold(lemma.after) is before


def _steps(lemmas: Sequence[Lemma], fold: Folding, dropped: set[int]) -> list[Step]:
    return [
        Step(x.number, _chain(fold(x.before), fold(x.after)), x.rule.why(x.before, x.after))
        for x in lemmas
        if x.number not in dropped
    ]


def _chain(before: Tensor, after: Tensor) -> tuple[Tensor, ...]:
    """Both sides of a step, and between them what a name stands for that is one of them."""
    return tuple(dict.fromkeys((before, definition(before), definition(after), after)))
