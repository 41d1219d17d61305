"""Proofs by entries: both sides of an equality as polynomials of entries, in one normal form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...core.boxes import Box, Number, Script, Sign, Text, row, separated, subscripts
from ...core.budget import Budget
from ...core.node import Tensor
from ...normal_form.ring import Used
from ...printing.media.read_latex import box_of_latex
from ...printing.prose import EQUALS, Chain, Display, Items, Paragraph, Part, Step, Words, sentence_of
from ...printing.symbols import symbol
from ...printing.table import SymbolTable
from ..argument import Argument, Given
from ..claims import Claim, Independence
from .decide import Comparison, Piece, compare
from .entries import BoxesTold, PieceTold, TextTold

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

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(f"{shown or _A_SUM} > 0: {why}" for shown, why in TextTold(*self._shown).divisors)

    def reasons_told(self, within: SymbolTable | None = None) -> tuple[Words, ...]:
        told = BoxesTold(*self._shown, within).divisors
        return tuple((_A_SUM if shown is None else _positive(shown), f": {why}") for shown, why in told)

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
            lines += [f"  {''.join(piece.step)} {piece.form or ''}".rstrip()] if piece.step else []
            lines += [f"  in it {before} = {after}" for before, after in piece.inside]
        lines += [f"  where {line}" for line in _defined(told)]
        if self.rules:
            lines.append("Used: " + "; ".join(self.rules) + ".")
        return "\n".join(lines)

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        told = BoxesTold(*self._shown, within)
        used = tuple(map(_used, self.comparison.ring.used))
        return (
            Paragraph(("Both sides have the same entries:",)),
            *(part for piece in told.pieces() for part in _piece(piece)),
            *_below("Here", _where(told)),
            *((Paragraph(("What was used:",)), Items(used)) if used else ()),
        )

    @property
    def _shown(self) -> tuple[Comparison, list[Tensor]]:
        """What is written, and what has the names by which it is."""
        return self.comparison, [self.left, self.right, *(x for fact in self.given for x in fact.sides)]


_TOO_LONG = Text(TOO_LONG)
_FORMULAS = {  # rules that are formulas
    "exp(a + b) = exp(a) exp(b)": r"$\mathrm{e}^{a + b} = \mathrm{e}^{a} \mathrm{e}^{b}$",
    "exp of an indicator times x is 1 where the indicator is 0, else exp(x)": (
        r"$\mathrm{e}$ to an indicator times $x$ is $1$ where the indicator is $0$, else $\mathrm{e}^{x}$"
    ),
    "an indicator and that of the opposite add up to 1": r"an indicator and that of the opposite add up to $1$",
    "exp(-oo) = 0": r"$\mathrm{e}^{-\infty} = 0$",
    "log(a b) = log(a) + log(b) for positive a": r"$\log(a b) = \log(a) + \log(b)$ for positive $a$",
    "sines and cosines are written by exp(i x)": r"sines and cosines are written by $\mathrm{e}^{\mathrm{i} x}$",
    "i <= j and j <= i make i = j": r"$i \le j$ and $j \le i$ make $i = j$",
    "i <= j, i < j and i = j are written by one another": (
        r"$i \le j$, $i < j$ and $i = j$ are written by one another"
    ),
}


def _used(used: Used) -> Words:
    rule, name = used
    if rule in _FORMULAS:
        words = enumerate(_FORMULAS[rule].split("$"))
        return tuple(box_of_latex(part) if n % 2 else part for n, part in words if part)
    before, _, after = rule.partition("{}")
    return tuple(filter(None, (before, symbol(name) if name else "", after)))


def _positive(shown: Box) -> Box:
    return row(shown, Sign(">", "relation"), Number("0"))


def _at(side: Box, index: Sequence[Box]) -> Box:
    return Script(side, subscripts(index)) if index else side


def _piece(piece: PieceTold[Box]) -> Iterator[Part]:
    """Both sides at one entry, and where they meet."""
    left, right = (_at(Text(side), piece.at) for side in ("left", "right"))
    if piece.left is not None and piece.left is piece.right:
        yield Chain((_equation(left, right, piece.left),))
        return
    yield Chain((_equation(left, piece.left or _TOO_LONG), _equation(right, piece.right or _TOO_LONG)))
    if piece.step:
        yield Paragraph(sentence_of(piece.step if piece.form else (*piece.step, ".")))
    if piece.form:
        yield Display((piece.form,))
    yield from _below("In it", [_equation(before, after) for before, after in piece.inside])


def _equation(left: Box, *sides: Box) -> Step:
    """A formula of several sides that are equal."""
    return Step(left, separated(EQUALS, sides))


def _where(told: BoxesTold) -> list[Step]:
    """What the names stand for."""
    return [_equation(name, *filter(None, (entry, value or _TOO_LONG))) for name, entry, value in told.where()]


def _below(word: str, steps: Sequence[Step]) -> tuple[Part, ...]:
    """Equations, if there are any, below a word or two."""
    return (Paragraph((word,)), Chain(tuple(steps))) if steps else ()


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

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        """The same as mathematics."""
        told = BoxesTold(self.comparison, self.roots, within)
        left, right = Text("left"), Text("right")
        names = (left, right, row(left, Sign("−", "sum"), right))
        sides = zip(names, told.apart(self._piece), strict=True)
        steps = tuple(_equation(name, value or _TOO_LONG) for name, value in sides)
        return Chain(steps), *_below("where", _where(told))

    @property
    def _piece(self) -> Piece:
        return next(piece for piece in self.comparison.pieces if piece.gap)


def _defined(told: TextTold) -> list[str]:
    """What the names stand for."""
    return [" = ".join(filter(None, (name, entry, value or TOO_LONG))) for name, entry, value in told.where()]
