"""Proofs by entries: both sides of an equality as polynomials of entries, in one normal form."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from ...core.budget import Budget
from ...core.naming import free_letters
from ...core.node import Tensor
from ...normal_form.indices import symbols
from ...normal_form.terms import Poly
from ...normal_form.writing import Writer
from ...printing.align import itemised, tex_text
from ...printing.symbols import latex_name
from ..argument import Argument, Given
from ..claims import Claim, Independence
from .decide import Comparison, Piece, compare

_LETTERS = "ijhabcefg"


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
        return tuple(f"{math}{shown} > 0{math}: {why}" for shown, why in divisors(self.comparison, latex))

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        return claim == Claim(self.left, "=", self.right) and self.given == given.claims

    def check(self) -> bool:
        """Work out both normal forms again, which needs no search, and hold what is written against them."""
        again = compare(self.left, self.right, self.given, Budget(float("inf")))
        return again.equal and replace(self, comparison=again).text() == self.text()

    def text(self) -> str:
        """The entries of both sides, what was used, and the common normal form."""
        lines = ["Both sides have the same entries."]
        for piece in self.comparison.pieces:
            writer = _writer(self.comparison, piece, latex=False)
            at = ", ".join(map(writer.index, piece.index))
            place = f"[{at}]" if at else ""
            for side, poly in (("left", piece.left), ("right", piece.right)):
                lines.append(f"  {side}{place} = {writer.short(poly) or '(too long to write out)'}")
            lines += [f"  where {name} = {value}" for name, value in _where(self.comparison, writer)]
        if self.rules:
            lines.append("Used: " + "; ".join(self.rules) + ".")
        return "\n".join(lines)

    def latex(self) -> str:
        """The same as LaTeX."""
        blocks = ["Both sides have the same entries:"]
        for piece in self.comparison.pieces:
            writer = _writer(self.comparison, piece, latex=True)
            at = ", ".join(map(writer.index, piece.index))
            written = writer.short(piece.left)
            if written:
                below = f"_{{{at}}}" if at else ""
                also = [rf"{name} = {value}" for name, value in _where(self.comparison, writer)]
                lines = [rf"\text{{left}}{below} = \text{{right}}{below} = {written}", *also]
                blocks.append("\\begin{gather*}\n  " + " \\\\\n  ".join(lines) + "\n\\end{gather*}")
        if self.rules:
            blocks.append("What was used:\n" + itemised(map(tex_text, self.rules)))
        return "\n".join(blocks)


def _writer(comparison: Comparison, piece: Piece, latex: bool) -> Writer:
    return Writer(latex, _named(piece, comparison.taken), comparison.taken)


def entrywise_proof(left: Tensor, right: Tensor, given: Sequence[Claim], budget: Budget) -> EntrywiseProof | Comparison:
    """A proof of ``left = right`` by normal forms, or the two forms that differ."""
    comparison = compare(left, right, given, budget)
    return EntrywiseProof(left, right, tuple(given), comparison) if comparison.equal else comparison


@dataclass(frozen=True)
class Residual:
    """Both sides and their difference as text, for the first entry at which they differ, and what they mention."""

    left: str
    right: str
    difference: str
    definitions: tuple[str, ...]


def residual(comparison: Comparison) -> Residual:
    """What is left of the difference of two sides."""
    piece = next(piece for piece in comparison.pieces if piece.gap)
    writer = _writer(comparison, piece, latex=False)
    left, right, gap = (
        writer.short(poly) or "(too long to write out)" for poly in (piece.left, piece.right, piece.gap)
    )
    return Residual(left, right, gap, tuple(f"{name} = {value}" for name, value in _where(comparison, writer)))


def _named(piece: Piece, taken: Container[str]) -> dict[int, str]:
    """Letters for the free index symbols of a piece; two digits of one index are i and i1."""
    names: dict[int, str] = {}
    for place, letter in zip(piece.index, free_letters(_LETTERS, taken), strict=False):
        digits = (digit for n in itertools.count() if (digit := f"{letter}{n or ''}") not in taken)
        names.update(zip(symbols(place), digits, strict=False))
    return names


def _where(comparison: Comparison, writer: Writer) -> Iterator[tuple[str, str]]:
    """The definitions that have been written by a name, each with what it stands for, and those that these name."""
    done = 0
    while done < len(writer.met):
        key, name = list(writer.met.items())[done]
        done += 1
        known = comparison.definitions[key]
        letters = dict(zip(known.symbols, free_letters(_LETTERS, comparison.taken), strict=False))
        inner = Writer(writer.latex, letters, comparison.taken)
        inner.met = writer.met
        value = inner.short(known.poly) or (r"\text{(too long)}" if writer.latex else "(too long to write out)")
        at = ", ".join(letters.values())
        below = rf"_{{{at}}}" if writer.latex else f"[{at}]"
        yield (rf"{{{latex_name(name)}}}" if writer.latex else name) + (below if at else ""), value


def _written(comparison: Comparison, poly: Poly, latex: bool) -> str:
    taken = comparison.taken
    names = {s: letter for piece in comparison.pieces for s, letter in _named(piece, taken).items()}
    spare = free_letters(_LETTERS + "klmnpq", {*taken, *names.values()})
    others = dict(zip(sorted(poly.free - names.keys()), spare, strict=False))
    return Writer(latex, {**names, **others}, taken).short(poly) or "a long sum"


def divisors(comparison: Comparison, latex: bool) -> list[tuple[str, str]]:
    """What is divided by and is positive: as it is written, and why. Sizes are left out."""
    ring = comparison.ring
    found: dict[str, str] = {}
    for poly in ring.divisors.values():
        if _plainly_positive(poly) or not ring.is_positive(poly):
            continue
        found.setdefault(_written(comparison, poly, latex), _why_positive(poly))
    return sorted(found.items())


def _plainly_positive(poly: Poly) -> bool:
    """Whether it is a size, a number, or one exponential, of which nobody asks why it is not zero."""
    return all(
        atom.kind == "exp" or (atom.kind == "scalar" and atom.name.is_positive)
        for _, term in poly.terms
        for atom, _e in term.factors
    ) and not any(term.bound for _, term in poly.terms)


def _why_positive(poly: Poly) -> str:
    kinds = {atom.kind for _, term in poly.terms for atom, _e in term.factors}
    return "a sum of exponentials" if "exp" in kinds else "a sum of positive terms"
