"""Polynomials of entries as boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from ..core.boxes import (
    Box,
    Fence,
    Fraction,
    Name,
    Root,
    Script,
    Sign,
    applied,
    commas,
    function,
    juxtaposed,
    raised,
    row,
)
from ..core.boxes import Number as Digits
from ..printing.index import entry_box
from ..printing.media.latex import latex
from ..printing.scalars import Scalars, power
from ..printing.symbols import symbol
from ..printing.table import SymbolTable
from .indices import Index
from .terms import Atom, Number
from .writing import Writer

_INVERSE = row(Sign("−", "prefix"), Digits("1"))


class BoxWriter(Writer[Box]):
    """Polynomials as boxes, with the symbols of ``table``."""

    table = SymbolTable({})

    def key(self, written: Box) -> str:
        return latex(written)

    def place(self, written: Box) -> tuple[int, str]:
        """Numbers first, then scalars by one letter or below a root, then entries and what is made of them."""
        if isinstance(written, Digits):
            return 0, ""
        upright = isinstance(written, Name) and written.style == "upright"
        return (1 if upright else 2 if isinstance(written, Name | Root) else 3), self.key(written)

    def number(self, digits: str) -> Box:
        return Digits(digits)

    def letter(self, name: str) -> Box:
        return symbol(name)

    def scalar(self, value: sympy.Expr) -> Box:
        return self.table.scalar(value)

    def imaginary(self) -> Box:
        return Name("i", "upright")

    def minus_infinity(self) -> Box:
        return Fence(row(Sign("−", "prefix"), Sign("∞")))

    def added(self, terms: Sequence[tuple[bool, Box]]) -> Box:
        (minus, first), *others = terms
        signed = [part for minus, box in others for part in (Sign("−" if minus else "+", "sum"), box)]
        return row(*[Sign("−", "prefix")] * minus, first, *signed)

    def summed(self, letters: Sequence[str], body: Box) -> Box:
        return row(*(Script(Sign("∑", "large"), self.letter(letter)) for letter in letters), body)

    def fraction(self, above: Sequence[Box], below: Sequence[Box]) -> Box:
        top = juxtaposed(*above) if above else Digits("1")
        if not below:
            return top
        alone = below[0].inside if len(below) == 1 and isinstance(below[0], Fence) and below[0].left == "(" else None
        return Fraction(top, alone or juxtaposed(*below))

    def exp(self, exponent: Box) -> Box:
        return applied(function("exp"), [exponent]) if exponent.tall else Script(Name("e", "upright"), above=exponent)

    def root(self, inside: Box, atom: Atom) -> Box:
        return Root(inside)

    def raised(self, base: Box, e: Number) -> Box:
        return power(base, Scalars().small(sympy.Rational(e)))

    def power(self, base: Box, exponent: Box) -> Box:
        return power(Fence(base), exponent)

    def between(self, inside: Box) -> Box:
        return Fence(inside)

    def indicator(self, left: Box, relation: str, right: Box) -> Box:
        return Fence(row(left, Sign("≥" if relation == ">=" else relation, "relation"), right), "[", "]")

    def entry(self, name: str, is_inverse: bool, indices: Sequence[Box]) -> Box:
        name_box = self.table.box(name)
        return entry_box(Fence(raised(name_box, _INVERSE)) if is_inverse else name_box, indices)

    def function(self, name: str, arguments: Sequence[Box], is_unknown: bool = False) -> Box:
        return applied(self.table.box(name) if is_unknown else function(name), arguments)

    def extreme(self, name: str, letters: Sequence[str], inside: Box) -> Box:
        below = commas(map(self.letter, letters))
        return row(Script(Sign(name, "large"), below), Fence(inside))

    def over(self, name: str, letters: Sequence[str], inside: Box, at: Sequence[Box]) -> Box:
        matrix = Script(Fence(inside, "[", "]"), commas(map(self.letter, letters)))
        return entry_box(Fence(applied(function(name), [matrix])), at)

    def permuted(self, name: str, is_inverse: bool, index: Box) -> Box:
        name_box = self.table.box(name)
        return applied(raised(name_box, _INVERSE) if is_inverse else name_box, [index])

    def affine(self, start: Any, terms: Sequence[tuple[Any, Index, Box]]) -> Box:
        stands_for = {f"index{n}": written for n, (_, _, written) in enumerate(terms)}
        total = start + sympy.Add(*(c * sympy.Symbol(f"index{n}") for n, (c, _, _) in enumerate(terms)))
        return Scalars(stands_for).box(total)
