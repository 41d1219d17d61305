"""Parts of a derivation besides its lines: claims with their proofs or counterexamples, and calculated moments."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy

from ..core.boxes import Box, Code, Sign, row
from ..core.node import Tensor
from ..ops.leaves import definition
from ..printing import prose
from ..printing.align import Page, displayed_formula
from ..printing.matrix import Printer
from ..printing.prose_latex import part_latex, parts_latex, words_latex
from ..printing.stated import sentence_words
from ..printing.text_block import WIDTH, numpy_block, numpy_lines
from ..probability.notation import box_writer
from ..probability.report import Moments
from ..proof.claims import RELATIONS, Claim
from ..proof.equality.rewriting import MOST, RewritingProof
from ..proof.equality.telling import Step
from ..proof.verdict import Proof, Verdict

_QED = r"\hfill $\square$"

if TYPE_CHECKING:
    from ..printing.index import IndexPrinter
    from .verification import Check, Checker


@dataclass(frozen=True, eq=False)
class Statement:
    """A claim that was proved or refuted, under its number in a derivation."""

    verdict: Verdict
    number: int

    @property
    def name(self) -> str:
        return f"claim {self.number}"

    @property
    def roots(self) -> list[Tensor]:
        """The tensors that are written out."""
        given = [side for fact in self.verdict.given if isinstance(fact, Claim) for side in fact.sides]
        return [*self.verdict.claim.sides, *given, *(x for step in self._steps for x in step.sides)]

    @property
    def _steps(self) -> tuple[Step, ...]:
        """The steps of a proof by rewriting, where all are short enough to be read."""
        argument = self.verdict.proof.argument if self.verdict.proof is not None else None
        steps = argument.reading.steps if isinstance(argument, RewritingProof) else ()
        return steps if len(steps) <= MOST and all(step.is_short for step in steps) else ()

    def checked(self, checker: Checker) -> Check:
        return checker.verdict(self.name, self.verdict)

    # --- as text ---

    def text(self, printer: Printer) -> str:
        """The claim, and under it the proof or the counterexample."""
        verdict = self.verdict
        lines = [f"Claim {self.number}:", *self._claim_text(printer)]
        if verdict.counterexample is not None:
            given = "; ".join(verdict.wording.given)
            lines += [_filled(f"given {given},")] if given else []
            return "\n".join([*lines, "is false. A counterexample:", *_indented(verdict.counterexample.text())])
        assert verdict.proof is not None
        premises = _premises(verdict.proof.hypotheses, verdict.proof.side_conditions)
        lines += [_filled(f"{title} {listed}.") for title, listed in premises]
        if not self._steps:
            return "\n".join([*lines, "Proof.", *_indented(verdict.proof.argument.text())])
        lines.append("Proof.")
        for step in self._steps:
            lines += [f"  {step.number}. {step.written(printer)}", _filled(step.reason(printer), "     ")]
        return "\n".join(lines)

    def _claim_text(self, printer: Printer) -> list[str]:
        claim = self.verdict.claim
        if not isinstance(claim, Claim):
            return [_filled(str(claim), "  ")]
        left, right = map(printer.box, claim.sides)
        first, *rest = numpy_lines(row(left, Sign(claim.relation, "relation"), right), WIDTH - 2)
        return [f"  {first}", *(f"    {line}" for line in rest)]

    # --- as LaTeX ---

    def told(self, printer: Printer | IndexPrinter) -> prose.Statement:
        """The same as mathematics, by the names of a document."""
        telling, proof, claim = self.verdict.telling(printer.table), self.verdict.proof, self.verdict.claim
        if isinstance(claim, Claim):
            left, right = map(printer.box, claim.sides)
            asked: tuple[tuple[Box, ...], prose.Words] = (row(left, RELATIONS[claim.relation], right),), ()
        else:
            asked = (), telling.claim
        if proof is not None:
            hypotheses, conditions, _ = proof.premises(printer.table)
            return prose.Statement(
                "Claim", self.number, (), "proved", *asked, (*hypotheses, *conditions), self._proof(proof, printer)
            )
        assert self.verdict.counterexample is not None
        shown = self.verdict.counterexample.told(printer.table)
        return prose.Statement("Claim", self.number, (), "refuted", *asked, telling.given, shown)

    def _proof(self, proof: Proof, printer: Printer | IndexPrinter) -> tuple[prose.Part, ...]:
        if not self._steps:
            return proof.argument.told(printer.table)
        items = tuple(words for step in self._steps if (words := step.words(printer)))
        return (prose.Items(items or (("Both sides are written alike.",),), numbered=True),)

    def latex(self, printer: Printer | IndexPrinter, page: Page) -> str:
        """The same as a LaTeX fragment."""
        told, proof = self.told(printer), self.verdict.proof
        claim = displayed_formula(told.formulas[0], page) if told.formulas else f"{words_latex(told.words)}."
        lines = [rf"\paragraph{{Claim {self.number}.}} {claim}"]
        if proof is None:
            lines += [words_latex(("given ", *prose.listed(told.given), ","))] if told.given else []
            return "\n".join([*lines, f"is false. {parts_latex(told.parts)}"])
        hypotheses, conditions, _ = proof.premises(printer.table)
        for title, words in (("It is given that ", hypotheses), ("It is assumed that ", conditions)):
            lines += [words_latex((title, *prose.listed(words), "."))] if words else []
        return "\n".join([*lines, "", rf"\textit{{Proof.}} {parts_latex(told.parts, end=_QED)}"])


@dataclass(frozen=True, eq=False)
class Calculation:
    """Mean and variance of a quantity, under its number in a derivation; the way may have been told before."""

    moments: Moments
    number: int
    way_is_told: bool

    @property
    def name(self) -> str:
        return f"calculation {self.number}"

    @property
    def roots(self) -> list[Tensor]:
        """The tensors that are written out."""
        return self.moments.roots

    def text(self, printer: Printer) -> str:
        """What is assumed, how it is calculated, and the lines."""
        rows = self._rows(printer, lambda value: Code(str(sympy.sstr(value))), lambda reason: (str(reason),))
        return "\n".join([_filled(f"Calculation {self.number}. {self._introduction}"), indented_block(rows)])

    def told(self, printer: Printer | IndexPrinter) -> tuple[prose.Paragraph, prose.Chain]:
        """The same as mathematics, by the names of a document."""
        lines = self.moments.explanation.lines
        sides = [side for line in lines for side in line[:2] if isinstance(side, sympy.Expr)]
        scalar, table = box_writer(self.moments.tensors, sides, printer.table), printer.table
        rows = self._rows(printer, scalar, lambda reason: sentence_words(reason, table))
        way = () if self.way_is_told else (" ", *sentence_words(self.moments.explanation.way, table))
        introduction = (*self.moments.assumed(self.moments.explanation.premises, table), *way)
        return prose.Paragraph(introduction, f"Calculation {self.number}"), prose.Chain(tuple(rows))

    def latex(self, printer: Printer | IndexPrinter, page: Page) -> str:
        """The same as a LaTeX fragment."""
        introduction, chain = self.told(printer)
        return rf"\paragraph{{{introduction.head}.}} {words_latex(introduction.words)}" + f"\n{part_latex(chain, page)}"

    def _rows(
        self,
        printer: Printer | IndexPrinter,
        scalar: Callable[[sympy.Expr], Box],
        reason: Callable[[str], prose.Words],
    ) -> list[prose.Step]:
        """The lines; the quantity has the name under which it is shown."""
        found, x = self.moments.explanation, self.moments.quantity
        shown = {found.name: sympy.Symbol(printer.names[x])} if x in printer.names else {}

        def box(side: sympy.Expr | Tensor) -> Box:
            return printer.box(definition(side)) if isinstance(side, Tensor) else scalar(side.xreplace(shown))

        rows = ((line.left and box(line.left), box(line.right), reason(line.reason)) for line in found.lines)
        return [prose.Step(*row) for row in rows]

    def checked(self, checker: Checker) -> Check:
        return checker.moments(self.name, self.moments)

    @property
    def _introduction(self) -> str:
        found = self.moments.explanation
        assumed = f"It is assumed that {'; '.join(found.premises)}." if found.premises else "Nothing is assumed."
        return assumed if self.way_is_told else f"{assumed} {found.way}"


def indented_block(rows: Iterable[prose.Step]) -> str:
    """Rows as lines of text, which go on under their relation signs."""
    return "\n".join(f"  {line}" for line in numpy_block(rows, WIDTH - 2))


def _premises(given: tuple[str, ...], assumed: tuple[str, ...]) -> list[tuple[str, str]]:
    found = [("It is given that", given), ("It is assumed that", assumed)]
    return [(title, "; ".join(listed)) for title, listed in found if listed]


def _filled(sentence: str, margin: str = "") -> str:
    return textwrap.fill(sentence, WIDTH, initial_indent=margin, subsequent_indent=margin)


def _indented(text: str) -> list[str]:
    return textwrap.indent(text, "  ").splitlines()
