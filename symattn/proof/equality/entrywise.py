"""Proofs by entries: both sides of an equality as polynomials of entries, in one normal form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...core.boxes import Box, Number, Script, Sign, Text, row, separated
from ...core.budget import Budget
from ...core.node import Tensor
from ...normal_form.ring import Used
from ...printing.align import Page, align, displayed_formula, itemised, tex_text
from ...printing.media.latex import latex
from ...printing.prose import EQUALS, Step
from ...printing.scalars import side_by_side
from ...printing.symbols import symbol
from ...printing.table import SymbolTable
from ..argument import Argument, Given
from ..claims import Claim, Independence
from .decide import Comparison, Piece, compare
from .entries import LatexTold, PieceTold, TextTold

TOO_LONG = "(too long to write out)"
_A_SUM = "a long sum"


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
        return tuple(rule.format(name) for rule, name in self.comparison.ring.used)

    def reasons(self, latex: bool) -> tuple[str, ...]:
        if not latex:
            return tuple(f"{shown or _A_SUM} > 0: {why}" for shown, why in TextTold(*self._shown).divisors)
        told = LatexTold(*self._shown).divisors
        return tuple(f"{_A_SUM if shown is None else _positive(shown)}: {why}" for shown, why in told)

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        return claim == Claim(self.left, "=", self.right) and self.given == given.claims

    def check(self) -> bool:
        """Work out both normal forms again, which needs no search, and hold what is written against them."""
        again = compare(self.left, self.right, self.given, Budget(float("inf")))
        return again.equal and replace(self, comparison=again).text() == self.text()

    def text(self) -> str:
        """The entries of both sides, where they meet, what was used, and what is named."""
        told = TextTold(*self._shown)
        lines = ["Both sides have the same entries."]
        for piece in told.pieces():
            at = f"[{', '.join(piece.at)}]" if piece.at else ""
            lines += [f"  left{at} = {piece.left or TOO_LONG}", f"  right{at} = {piece.right or TOO_LONG}"]
            lines += [f"  {piece.step} {piece.form or ''}".rstrip()] if piece.step else []
            lines += [f"  in it {before} = {after}" for before, after in piece.inside]
        lines += [f"  where {line}" for line in _defined(told)]
        if self.rules:
            lines.append("Used: " + "; ".join(self.rules) + ".")
        return "\n".join(lines)

    def latex(self, within: SymbolTable | None = None) -> str:
        """The same as LaTeX."""
        told = LatexTold(*self._shown, within)
        blocks = ["Both sides have the same entries:", *(block for x in told.pieces() for block in _piece_latex(x))]
        where = [_equation(name, *filter(None, (entry, value or _TOO_LONG))) for name, entry, value in told.where()]
        blocks += [f"Here\n{_displayed(where)}"] if where else []
        if self.rules:
            blocks.append("What was used:\n" + itemised(map(_used_latex, self.comparison.ring.used)))
        return "\n".join(blocks)

    @property
    def _shown(self) -> tuple[Comparison, list[Tensor]]:
        """What is written, and what has the names by which it is."""
        return self.comparison, [self.left, self.right, *(x for fact in self.given for x in fact.sides)]


_TOO_LONG = Text(TOO_LONG)
_FORMULAS = {  # rules that are formulas
    "exp(a + b) = exp(a) exp(b)": r"$\mathrm{e}^{a + b} = \mathrm{e}^{a} \mathrm{e}^{b}$",
    "exp(-oo) = 0": r"$\mathrm{e}^{-\infty} = 0$",
    "log(a b) = log(a) + log(b) for positive a": r"$\log(a b) = \log(a) + \log(b)$ for positive $a$",
    "sines and cosines are written by exp(i x)": r"sines and cosines are written by $\mathrm{e}^{\mathrm{i} x}$",
    "i <= j and j <= i make i = j": r"$i \le j$ and $j \le i$ make $i = j$",
    "i <= j, i < j and i = j are written by one another": (
        r"$i \le j$, $i < j$ and $i = j$ are written by one another"
    ),
}


def _used_latex(used: Used) -> str:
    rule, name = used
    named = f"${latex(symbol(name))}$" if name else ""
    before, _, after = rule.partition("{}")
    return _FORMULAS.get(rule) or tex_text(before) + named + tex_text(after)


_PAGE = Page("align*", "none")


def _positive(shown: Box) -> str:
    return f"${latex(row(shown, Sign('>', 'relation'), Number('0')))}$"


def _at(side: Box, index: Sequence[Box]) -> Box:
    return Script(side, side_by_side(index)) if index else side


def _piece_latex(piece: PieceTold[Box]) -> list[str]:
    """Both sides at one entry, and where they meet."""
    left, right = (_at(Text(side), piece.at) for side in ("left", "right"))
    if piece.left is not None and piece.left is piece.right:
        return [_displayed([_equation(left, right, piece.left)])]
    blocks = [_displayed([_equation(left, piece.left or _TOO_LONG), _equation(right, piece.right or _TOO_LONG)])]
    if piece.step:
        blocks.append(f"{piece.step[0].upper()}{piece.step[1:]}" + ("" if piece.form else "."))
    blocks += [displayed_formula(piece.form, _PAGE)] if piece.form else []
    inside = [_equation(before, after) for before, after in piece.inside]
    return [*blocks, f"In it\n{_displayed(inside)}"] if inside else blocks


def _equation(left: Box, *sides: Box) -> Step:
    """A formula of several sides that are equal."""
    return Step(left, separated(EQUALS, sides))


def _displayed(rows: Sequence[Step]) -> str:
    return align(rows, _PAGE)


def entrywise_proof(left: Tensor, right: Tensor, given: Sequence[Claim], budget: Budget) -> EntrywiseProof | Comparison:
    """A proof of ``left = right`` by normal forms, or the two forms that differ."""
    comparison = compare(left, right, given, budget)
    return EntrywiseProof(left, right, tuple(given), comparison) if comparison.equal else comparison


@dataclass(frozen=True, eq=False)
class Residual:
    """What is left of the difference of two sides; ``roots`` have the names by which it is written."""

    comparison: Comparison
    roots: tuple[Tensor, ...]

    def text(self) -> tuple[tuple[str, str, str], list[str]]:
        """Both sides and their difference, for the first entry at which they differ, and what they mention."""
        told = TextTold(self.comparison, self.roots)
        left, right, gap = (written or TOO_LONG for written in told.apart(self._piece))
        return (left, right, gap), _defined(told)

    def latex(self) -> str:
        """The same as LaTeX."""
        told = LatexTold(self.comparison, self.roots)
        left, right = Text("left"), Text("right")
        names = (left, right, row(left, Sign("−", "sum"), right))
        sides = zip(names, told.apart(self._piece), strict=True)
        rows = [_equation(name, value or _TOO_LONG) for name, value in sides]
        where = [_equation(name, *filter(None, (entry, value or _TOO_LONG))) for name, entry, value in told.where()]
        return _displayed(rows) + (f"\nwhere\n{_displayed(where)}" if where else "")

    @property
    def _piece(self) -> Piece:
        return next(piece for piece in self.comparison.pieces if piece.gap)


def _defined(told: TextTold) -> list[str]:
    """What the names stand for."""
    return [" = ".join(filter(None, (name, entry, value or TOO_LONG))) for name, entry, value in told.where()]
