"""Proofs by rewriting, written out: the lemmas of each side, and the form in which the two meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.node import Tensor
from ...errors import OperandError
from ...graph.names import LONGEST, displayed_names, tree_size
from ...printing.align import tex_text
from ...printing.matrix import Printer, latex_printer
from ..argument import Argument, Given
from ..claims import Claim, Independence, say_the_same
from .rewriting import Lemma, Rewriting

MOST = 60  # lemmas that are written out; a longer proof is counted, and checked like any other


@dataclass(frozen=True, eq=False)
class RewritingProof(Argument):
    """Both sides brought to one form by lemmas, each of which is used wherever its left side occurs."""

    rewriting: Rewriting
    given: tuple[Claim, ...] = ()

    @property
    def lemmas(self) -> tuple[Lemma, ...]:
        """All lemmas, in order."""
        return self.rewriting.lemmas

    @property
    def divisors(self) -> tuple[Tensor, ...]:
        """What must have no entry 0 for the lemmas to hold."""
        return tuple(dict.fromkeys(x for lemma in self.lemmas for x in lemma.nonzero))

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        found = Claim(self.rewriting.left, "=", self.rewriting.right)
        return claim.says(found) and say_the_same(self.given, given.claims)

    def check(self) -> bool:
        """Apply every lemma again, and hold both sides against the form in which they meet."""
        return self.rewriting.check()

    def text(self) -> str:
        """The lemmas of the left side, those that the right side needs besides, and the common form."""
        printer = Printer(displayed_names(self._roots()), latex=False)
        lines = []
        for title, lemmas in self._sides():
            if lemmas:
                lines.append(title)
                lines += [f"  {self._row(printer, x)}" for x in lemmas[:MOST]]
            if len(lemmas) > MOST:
                lines.append(f"  ... and {len(lemmas) - MOST} lemmas more")
        common = self.rewriting.common
        shown = printer.refer(common) if tree_size(common) <= LONGEST else f"one form, {common.brief()}"
        return "\n".join([*lines, f"Both sides are {shown}."])

    def _row(self, printer: Printer, lemma: Lemma) -> str:
        if max(map(tree_size, (lemma.before, lemma.after))) > LONGEST:
            return f"({lemma.number}) {lemma.rule.reason}"
        return f"({lemma.number}) {printer.refer(lemma.before)} = {printer.refer(lemma.after)}  # {lemma.rule.reason}"

    def latex(self) -> str:
        """The same as lists of lemmas, each with its reason."""
        try:
            printer = latex_printer(self._roots())
        except OperandError:  # a tree too large to read: the reasons are told without it
            printer = None
        blocks = []
        for title, lemmas in self._sides():
            if lemmas:
                items = "\n".join(self._latex_item(printer, x) for x in lemmas[:MOST])
                blocks.append(f"{tex_text(title)}\n\\begin{{enumerate}}\n{items}\n\\end{{enumerate}}")
            if len(lemmas) > MOST:
                blocks.append(f"And {len(lemmas) - MOST} lemmas more.")
        end = "Both sides have one form" + ("." if printer is None else f": ${printer.refer(self.rewriting.common)}$.")
        return "\n".join([*blocks, end])

    def _latex_item(self, printer: Printer | None, lemma: Lemma) -> str:
        reason = tex_text(lemma.rule.reason)
        if printer is None:
            return rf"  \item {reason}"
        return rf"  \item ${printer.refer(lemma.before)} = {printer.refer(lemma.after)}$. {reason}"

    def _sides(self) -> list[tuple[str, Sequence[Lemma]]]:
        first = "Of the left side:" if self.rewriting.right_lemmas else "Step by step:"
        return [(first, self.rewriting.left_lemmas), ("Of the right side, besides:", self.rewriting.right_lemmas)]

    def _roots(self) -> list[Tensor]:
        lemmas = [*self.rewriting.left_lemmas[:MOST], *self.rewriting.right_lemmas[:MOST]]
        sides = [x for lemma in lemmas for x in (lemma.before, lemma.after)]
        return [*sides, self.rewriting.common, self.rewriting.left, self.rewriting.right]
