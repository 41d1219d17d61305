"""Proofs by entries: both sides of an equality as polynomials of entries, in one normal form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...core.budget import Budget
from ...core.node import Tensor
from ...printing.align import itemised, tex_text
from ..argument import Argument, Given
from ..claims import Claim, Independence
from .decide import Comparison, compare
from .entries import TOO_LONG, EntriesTold, PieceTold


@dataclass(frozen=True, eq=False)
class EntrywiseProof(Argument):
    """Both sides as polynomials of entries, the rules that were used, and the normal form that they share."""

    left: Tensor
    right: Tensor
    given: tuple[Claim, ...]
    comparison: Comparison

    @property
    def rules(self) -> tuple[str, ...]:
        """What was used on the way."""
        return tuple(self.comparison.ring.used)

    def reasons(self, latex: bool) -> tuple[str, ...]:
        math = "$" if latex else ""
        return tuple(f"{math}{shown} > 0{math}: {why}" for shown, why in self._told(latex).divisors)

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        return claim == Claim(self.left, "=", self.right) and self.given == given.claims

    def check(self) -> bool:
        """Work out both normal forms again, which needs no search, and hold what is written against them."""
        again = compare(self.left, self.right, self.given, Budget(float("inf")))
        return again.equal and replace(self, comparison=again).text() == self.text()

    def text(self) -> str:
        """The entries of both sides, where they meet, what was used, and what is named."""
        told = self._told(latex=False)
        lines = ["Both sides have the same entries."]
        for piece in told.pieces():
            at = f"[{piece.at}]" if piece.at else ""
            lines += [f"  left{at} = {piece.left or TOO_LONG}", f"  right{at} = {piece.right or TOO_LONG}"]
            lines += [f"  {piece.step} {piece.form}".rstrip()] if piece.step else []
        lines += [f"  where {name} = {value or TOO_LONG}" for name, value in told.where()]
        if self.rules:
            lines.append("Used: " + "; ".join(self.rules) + ".")
        return "\n".join(lines)

    def latex(self) -> str:
        """The same as LaTeX."""
        told = self._told(latex=True)
        blocks = ["Both sides have the same entries:", *(block for x in told.pieces() for block in _piece_latex(x))]
        where = [rf"{name} = {value or _TOO_LONG}" for name, value in told.where()]
        blocks += [f"Here\n{_gathered(where)}"] if where else []
        if self.rules:
            blocks.append("What was used:\n" + itemised(map(tex_text, self.rules)))
        return "\n".join(blocks)

    def _told(self, latex: bool) -> EntriesTold:
        roots = [self.left, self.right, *(x for fact in self.given for x in fact.sides)]
        return EntriesTold(self.comparison, roots, latex)


_TOO_LONG = rf"\text{{{TOO_LONG}}}"


def _piece_latex(piece: PieceTold) -> list[str]:
    """Both sides at one entry, and where they meet."""
    at = f"_{{{piece.at}}}" if piece.at else ""
    left, right = rf"\text{{left}}{at}", rf"\text{{right}}{at}"
    if piece.left == piece.right and piece.left:
        return [_gathered([f"{left} = {right} = {piece.left}"])]
    blocks = [_gathered([f"{left} = {piece.left or _TOO_LONG}", f"{right} = {piece.right or _TOO_LONG}"])]
    if piece.step:
        blocks.append(f"{piece.step[0].upper()}{piece.step[1:]}" + ("" if piece.form else "."))
    return [*blocks, _gathered([piece.form])] if piece.form else blocks


def _gathered(rows: Sequence[str]) -> str:
    return "\\begin{gather*}\n  " + " \\\\\n  ".join(rows) + "\n\\end{gather*}"


def entrywise_proof(left: Tensor, right: Tensor, given: Sequence[Claim], budget: Budget) -> EntrywiseProof | Comparison:
    """A proof of ``left = right`` by normal forms, or the two forms that differ."""
    comparison = compare(left, right, given, budget)
    return EntrywiseProof(left, right, tuple(given), comparison) if comparison.equal else comparison


class Apart(NamedTuple):
    """Both sides and their difference, for the first entry at which they differ, and what they mention."""

    left: str
    right: str
    difference: str
    definitions: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Residual:
    """What is left of the difference of two sides; ``roots`` have the names by which it is written."""

    comparison: Comparison
    roots: tuple[Tensor, ...]

    def told(self, latex: bool) -> Apart:
        """It as text or as LaTeX."""
        piece = next(piece for piece in self.comparison.pieces if piece.gap)
        told, long = EntriesTold(self.comparison, self.roots, latex), _TOO_LONG if latex else TOO_LONG
        left, right, gap = (written or long for written in told.apart(piece))
        return Apart(left, right, gap, tuple(f"{name} = {value or long}" for name, value in told.where()))
