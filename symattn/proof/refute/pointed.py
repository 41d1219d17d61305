"""Where a claim points: the numbers in it and their neighbours, as entries, as scalars and as sizes.

A window of 5, a bound of 100 or a clip at 3 is not seen from small points; past the number itself it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sympy
from flint import fmpq
from sympy.core.relational import Relational

from ...scalars.formulas import Choice, Max, Min
from .balls import in_flint

_CHOICES: tuple[Any, ...] = (
    Relational, Choice, sympy.floor, sympy.ceiling, sympy.Mod, sympy.Abs, sympy.sign, sympy.Max, sympy.Min,
    sympy.KroneckerDelta, Max, Min,
)  # fmt: skip
_PLACES = (*_CHOICES, sympy.Indexed)
_MOST = 8  # numbers that are looked at
_LARGEST = 10**30  # numbers beyond are nobody's bounds
_EXPONENT = 60  # up to which a logarithm can be made that large
_FAR = tuple(fmpq(q) for q in (10, -10, 100, -100))


def chooses(formulas: Iterable[sympy.Basic]) -> bool:
    """Whether values are compared anywhere, so that what is true near zero need not be true farther out."""
    return any(f.has(*_CHOICES) for f in formulas)


def numbers_in(formulas: Iterable[sympy.Basic], fractions: bool) -> list[sympy.Rational]:
    """The numbers of formulas that small points do not reach, the simplest first.

    Ranges of sums do not count. Inside a choice or an index 2 counts too; small ``fractions`` only if asked for.
    """
    found: dict[sympy.Rational, None] = {}
    for formula in formulas:
        pending = [(formula, False)]
        while pending:
            e, inside = pending.pop()
            inside = inside or isinstance(e, _PLACES)
            if isinstance(e, sympy.Rational) and e.is_finite and abs(e) < _LARGEST:
                counts = abs(e) > 2 or (inside and abs(e) == 2) or ((inside or fractions) and e.q > 2)
                found.update({e: None} if counts else {})
            pending += [(a, inside) for a in e.args if not isinstance(a, sympy.Tuple)]
    return sorted(found, key=lambda q: (q.q, abs(q.p), q.p))[:_MOST]


class Aims:
    """Values for entries and scalars that surround numbers, dealt out one after the other."""

    def __init__(self, numbers: Sequence[sympy.Rational]) -> None:
        near = [q for c in numbers for x in (c, -c) for q in (x + 1, x, x - 1)]
        far = [q for c in map(abs, numbers) for q in (c * c + 1, *([3 ** sympy.ceiling(c)] if c <= _EXPONENT else []))]
        whole = sympy.Mul(*(c for c in {max(abs(c), 1 / abs(c)) for c in numbers}))
        listed = [*near, *far, *([whole + 1] if whole < _LARGEST else [])]
        self.values = list(dict.fromkeys([*map(in_flint, listed), *_FAR]))
        self.dealt = 0
        self._cycle = itertools.cycle(self.values)

    def round(self) -> Iterator[fmpq]:
        """Every value once, from the next one on."""
        return (self.next() for _ in self.values)

    def next(self) -> fmpq:
        """The next value, in turn."""
        self.dealt += 1
        return next(self._cycle)


def sizes_past(numbers: Sequence[sympy.Rational], symbols: Sequence[sympy.Symbol]) -> Iterator[dict[sympy.Symbol, int]]:
    """Sizes around each number, and past all of them together: for all symbols at once, then for one at a time."""
    whole = sorted({abs(int(part)) for c in numbers for part in (c.p, c.q)} - {1})
    goals = [*(c + more for more in (2, 1, 0, -1) for c in whole), *([sum(whole) + 2] if len(whole) > 1 else [])]
    for n in dict.fromkeys(goals):
        yield dict.fromkeys(symbols, n)
        if len(symbols) > 1:
            yield from ({**dict.fromkeys(symbols, 2), s: n} for s in symbols)
