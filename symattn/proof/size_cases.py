"""Claims that are proved case by case: at each of few sizes that relations leave, or where offsets are 0 and not."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import sympy
from sympy.logic.boolalg import Boolean

from ..core.boxes import Box, Number, Sign, row
from ..core.node import topological
from ..core.sizes import sizes
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
_OFFSETS = 2  # of which it is told whether they are 0

Sizes = dict[sympy.Symbol, int]
Case = dict[sympy.Symbol, Any]  # what symbols are replaced by: numbers, or an offset by a size of the same name


@dataclass(frozen=True, eq=False)
class Cases(Resting):
    """A proof in each of the cases that there are."""

    cases: tuple[tuple[Case, Argument], ...]

    said: ClassVar[str]

    @staticmethod
    @abstractmethod
    def of(claim: Claim, given: Given) -> Sequence[Case] | None:
        """The cases of a claim, one of which is true of any sizes; None where there are none or many."""

    @property
    def parts(self) -> Iterator[Argument]:
        return (argument for _, argument in self.cases)

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        if not isinstance(claim, Claim) or self.of(claim, given) != [case for case, _ in self.cases]:
            return False
        return all(argument.proves(*everywhere(claim, given, case)) for case, argument in self.cases)

    def text(self) -> str:
        """The proofs, one after the other."""
        parts = [f"{_heading(case)}:\n{argument.text()}" for case, argument in self.cases]
        return "\n".join([self.said, *parts])

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        table = checked_table(within)
        cases = (led((*_told(case, table), ": "), argument.told(within)) for case, argument in self.cases)
        return Paragraph((self.said,)), *(part for each in cases for part in each)


class SizeCases(Cases):
    """A proof at each of the sizes that what is given leaves."""

    said = "What is given leaves finitely many sizes, and the claim holds at each."

    @staticmethod
    def of(claim: Claim, given: Given) -> list[Case] | None:
        left = sizes_left(given.relations)
        return None if left is None else [{s: sympy.Integer(n) for s, n in sizes.items()} for sizes in left]


class OffsetCases(Cases):
    """A proof where offsets are 0, and one where they are not, and so are sizes."""

    said = "Offsets are 0, or they are at least 1."

    @staticmethod
    def of(claim: Claim, given: Given) -> list[Case] | None:
        nodes = topological([*claim.sides, *(side for c in given.claims for side in c.sides)])
        symbols = {s for x in nodes for s in x.own_symbols}
        offsets = sorted((s for s in symbols if s.is_integer and s.is_nonnegative and not s.is_positive), key=str)
        if not offsets or len(offsets) > _OFFSETS:
            return None
        values = itertools.product(*((sympy.S.Zero, sizes(s.name)) for s in offsets))
        return [dict(zip(offsets, chosen, strict=True)) for chosen in values]


def _heading(case: Case) -> str:
    return "At " + ", ".join(f"{s} = {n}" if n.is_Integer else f"{s} >= 1" for s, n in case.items())


def _told(case: Case, table: SymbolTable) -> Words:
    values = ((table.scalar(s), *_value(n)) for s, n in case.items())
    return ("At ", *listed(((row(*shown),) for shown in values), ", "))


def _value(n: sympy.Expr) -> tuple[Box, Box]:
    return (EQUALS, Number(str(n))) if n.is_Integer else (Sign("≥", "relation"), Number("1"))


def by_cases(claim: Claim, given: Given, argued: Callable[[Given, Claim], Argument | None]) -> Cases | None:
    """The proof of a claim in each of the cases that there are; ``argued`` proves it in one of them."""
    return next(filter(None, (_proved(kind, claim, given, argued) for kind in (SizeCases, OffsetCases))), None)


def _proved(
    kind: type[Cases], claim: Claim, given: Given, argued: Callable[[Given, Claim], Argument | None]
) -> Cases | None:
    cases = []
    for case in kind.of(claim, given) or ():
        at, under = everywhere(claim, given, case)
        argument = argued(under, at)
        if argument is None:
            return None
        cases.append((case, argument))
    return kind(tuple(cases)) if cases else None


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
