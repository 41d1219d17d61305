"""Sizes of which a relation leaves finitely many: a claim that holds at each of them holds for all of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sympy
from sympy.logic.boolalg import Boolean

from ..core.boxes import Number, row
from ..printing.prose import EQUALS, Paragraph, Part, Words, led, listed
from ..printing.table import SymbolTable, checked_table
from ..scalars.affine import coefficients
from .argument import Argument, Given, Resting
from .claims import Claim, Independence
from .given import everywhere
from .relations import in_order, is_polynomial

_MOST = 24  # choices of sizes at which a claim is proved one by one
_TRIED = 4096  # choices of which it is asked whether the relations hold
_ROUNDS = 3  # in which a bound of one size gives one of another
_FEW = "What is given leaves finitely many sizes, and the claim holds at each."

Sizes = dict[sympy.Symbol, int]


@dataclass(frozen=True, eq=False)
class SizeCases(Resting):
    """A proof at each of the sizes that what is given leaves."""

    cases: tuple[tuple[Sizes, Argument], ...]

    @property
    def parts(self) -> Iterator[Argument]:
        return (argument for _, argument in self.cases)

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        if not isinstance(claim, Claim) or sizes_left(given.relations) != [sizes for sizes, _ in self.cases]:
            return False
        return all(argument.proves(*_at(sizes, claim, given)) for sizes, argument in self.cases)

    def text(self) -> str:
        """The proofs, one after the other."""
        parts = [f"At {_shown(sizes)}:\n{argument.text()}" for sizes, argument in self.cases]
        return "\n".join([_FEW, *parts])

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        table = checked_table(within)
        cases = (led(("At ", *_told(sizes, table), ": "), argument.told(within)) for sizes, argument in self.cases)
        return Paragraph((_FEW,)), *(part for case in cases for part in case)


def _shown(sizes: Sizes) -> str:
    return ", ".join(f"{s} = {n}" for s, n in sizes.items())


def _told(sizes: Sizes, table: SymbolTable) -> Words:
    return listed(((row(table.scalar(s), EQUALS, Number(str(n))),) for s, n in sizes.items()), ", ")


def size_cases(claim: Claim, given: Given, argued: Callable[[Given, Claim], Argument | None]) -> SizeCases | None:
    """The proof of a claim at each of the sizes that are left, if they are few; ``argued`` proves it at one of them."""
    cases = []
    for sizes in sizes_left(given.relations) or ():
        at, under = _at(sizes, claim, given)
        argument = argued(under, at)
        if argument is None:
            return None
        cases.append((sizes, argument))
    return SizeCases(tuple(cases)) if cases else None


def _at(sizes: Sizes, claim: Claim, given: Given) -> tuple[Claim, Given]:
    """The claim and what is given at some sizes."""
    return everywhere(claim, given, {s: sympy.Integer(n) for s, n in sizes.items()})


def sizes_left(relations: Sequence[Boolean]) -> list[Sizes] | None:
    """All values of the sizes that relations bound, under which they may hold; None if there are none or many."""
    tops = _tops(relations)
    choices = itertools.product(*(range(1, top + 1) for top in tops.values()))
    tried = list(itertools.islice(choices, _TRIED + 1)) if tops else []
    found = [dict(zip(tops, values, strict=True)) for values in tried]
    kept = [sizes for sizes in found if not any(r.subs(sizes) == sympy.false for r in relations)]
    return kept if kept and len(kept) <= _MOST and len(tried) <= _TRIED else None


def _tops(relations: Sequence[Boolean]) -> Sizes:
    """The largest value that each size may have, as far as relations bound it."""
    tops: Sizes = {}
    differences = [e for r in relations for e in _at_most_zero(r)]
    for _ in range(_ROUNDS):
        for e in differences:
            for symbol, top in _bounded(e, tops):
                tops[symbol] = min(top, tops.get(symbol, top))
    return dict(sorted(tops.items(), key=lambda pair: pair[0].name))


def _at_most_zero(relation: Boolean) -> Iterator[sympy.Expr]:
    """Polynomials that a relation says to be at most 0, multiplied out."""
    for less, more in in_order(relation):
        parts = less.args if isinstance(less, sympy.Max) else (less,)  # all of which are at most the other side
        yield from (sympy.expand(part - more) for part in parts if is_polynomial(part - more))


def _bounded(e: sympy.Expr, tops: Sizes) -> Iterator[tuple[sympy.Symbol, int]]:
    """The sizes that are bounded where a polynomial is at most 0, all of them being at least 1."""
    terms = coefficients(e)
    most = sympy.Add(*(-c * rest.subs(tops) for rest, c in terms.items() if c < 0))  # of what is taken off
    if most.is_number:
        for rest, c in terms.items():
            yield from ((s, int(sympy.floor(most / c))) for s in rest.free_symbols if c > 0)
    if len(e.free_symbols) == 1:  # beyond Cauchy's bound a polynomial has the sign of its first coefficient
        (symbol,) = e.free_symbols
        first, *others = sympy.Poly(e, symbol).all_coeffs()
        if first > 0:
            yield symbol, int(1 + sympy.floor(max(map(abs, others)) / first))
