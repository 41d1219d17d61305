"""Claims inside a derivation: the claim with its proof, or with the counterexample that refutes it, written out."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .latex import LONGEST, Printer, tex_text, tree_size
from .proof.claims import Claim
from .proof.readable import MOST, RewritingProof
from .proof.rewriting import Lemma
from .proof.verdict import Proof, Verdict
from .tensor import Tensor

if TYPE_CHECKING:
    from .index_style import IndexPrinter

WIDTH = 100  # of a line of text
_SHORT = 90  # characters of a claim that stands on one line of LaTeX
_LATEX_RELATIONS = {"=": "=", "<=": r"\le", "<": "<"}


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
        return [*self.verdict.claim.sides, *(x for step in self._lemmas for x in (step.before, step.after))]

    @property
    def _lemmas(self) -> tuple[Lemma, ...]:
        """The steps of a proof by rewriting that are written out: those that are short enough to be read."""
        argument = self.verdict.proof.argument if self.verdict.proof is not None else None
        if not isinstance(argument, RewritingProof) or len(argument.lemmas) > MOST:
            return ()
        return argument.lemmas if all(_is_readable(x) for x in argument.lemmas) else ()

    # --- as text ---

    def text(self, printer: Printer) -> str:
        """The claim, and under it the proof or the counterexample."""
        verdict = self.verdict
        lines = [f"Claim {self.number}:", *self._claim_text(printer)]
        if verdict.counterexample is not None:
            return "\n".join([*lines, "is false. A counterexample:", *_indented(verdict.counterexample.text())])
        assert verdict.proof is not None
        lines += [_filled(f"{title} {listed}.") for title, listed in _premises(verdict.proof)]
        if not self._lemmas:
            return "\n".join([*lines, "Proof.", *_indented(verdict.proof.argument.text())])
        lines.append("Proof.")
        for number, lemma in enumerate(self._lemmas, 1):
            lines.append(f"  {number}. {printer.refer(lemma.before)} = {printer.refer(lemma.after)}")
            lines.append(_filled(lemma.rule.reason, "     "))
        return "\n".join(lines)

    def _claim_text(self, printer: Printer) -> list[str]:
        claim = self.verdict.claim
        if not isinstance(claim, Claim):
            return [_filled(str(claim), "  ")]
        left, right = map(printer.refer, claim.sides)
        whole = f"  {left} {claim.relation} {right}"
        return [whole] if len(whole) <= WIDTH else [f"  {left}", f"    {claim.relation} {right}"]

    # --- as LaTeX ---

    def latex(self, printer: Printer | IndexPrinter) -> str:
        """The same as a LaTeX fragment."""
        verdict = self.verdict
        lines = [rf"\paragraph{{Claim {self.number}.}} {self._claim_latex(printer)}"]
        if verdict.counterexample is not None:
            return "\n".join([*lines, rf"is false. A counterexample: \[ {verdict.counterexample.latex()} \]"])
        assert verdict.proof is not None
        lines += [rf"{title} {tex_text(listed)}." for title, listed in _premises(verdict.proof)]
        if not self._lemmas:
            return "\n".join([*lines, "", rf"\textit{{Proof.}} {verdict.proof.argument.latex()} \hfill $\square$"])
        rows = [
            rf"  \item ${printer.refer(x.before)} = {printer.refer(x.after)}$. {tex_text(x.rule.reason)}"
            for x in self._lemmas
        ]
        rows[-1] += r" \hfill $\square$"
        return "\n".join([*lines, "", r"\textit{Proof.}", r"\begin{enumerate}", *rows, r"\end{enumerate}"])

    def _claim_latex(self, printer: Printer | IndexPrinter) -> str:
        claim = self.verdict.claim
        if not isinstance(claim, Claim):
            return tex_text(str(claim)) + "."
        left, right = map(printer.refer, claim.sides)
        relation = _LATEX_RELATIONS[claim.relation]
        if len(str(claim)) <= _SHORT:
            return rf"\[ {left} {relation} {right} \]"
        return rf"\begin{{align*}} &{left} \\ &\quad {relation} {right} \end{{align*}}"


def _is_readable(lemma: Lemma) -> bool:
    return max(map(tree_size, (lemma.before, lemma.after))) <= LONGEST


def _premises(proof: Proof) -> list[tuple[str, str]]:
    found = [("It is given that", proof.hypotheses), ("It is assumed that", proof.side_conditions)]
    return [(title, "; ".join(listed)) for title, listed in found if listed]


def _filled(sentence: str, margin: str = "") -> str:
    return textwrap.fill(sentence, WIDTH, initial_indent=margin, subsequent_indent=margin)


def _indented(text: str) -> list[str]:
    return textwrap.indent(text, "  ").splitlines()


__all__ = ["WIDTH", "Statement"]
