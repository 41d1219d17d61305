"""Ranges of real numbers with exact ends, and arithmetic with them.

Ends are SymPy expressions of sizes and scalars; one that cannot be compared is given up, so a range may be too wide
but never too narrow. ``open`` says that the end itself is not taken. A low end -oo that is not open stands for
entries that may be -oo, as in additive masks; ``REAL`` is any number, ``ANYTHING`` also these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy

from ..core.sizes import never_negative
from ..scalars.affine import expanded

oo = sympy.oo
_MINUS_OO = -oo
LONGEST_END = 30  # parts of an expression
LONGEST_NUMBER = 12
FINENESS = 4096  # of the number that stands for a longer one

End = tuple[Any, bool]  # a low end, and whether it is open


@dataclass(frozen=True)
class Range:
    """Between ``low`` and ``high``, which is minus the low end of the negative: what holds of one end holds of both."""

    low: Any
    low_open: bool
    high: Any
    high_open: bool

    @classmethod
    def of(cls, lower: End, upper: End) -> Range:
        """The range with these low ends of a number and of its negative."""
        return cls(*lower, -upper[0], upper[1])

    @property
    def lower(self) -> End:
        return self.low, self.low_open

    @property
    def upper(self) -> End:
        """The low end of the negative."""
        return -self.high, self.high_open

    @property
    def is_informative(self) -> bool:
        """Whether one end is finite."""
        return bool(self.low != -oo or self.high != oo)

    @property
    def is_positive(self) -> bool:
        return below(sympy.S.Zero, self.low) or (self.low == 0 and self.low_open)

    @property
    def is_not_negative(self) -> bool:
        return at_most(sympy.S.Zero, self.low)

    @property
    def is_not_zero(self) -> bool:
        return self.is_positive or (-self).is_positive

    def __neg__(self) -> Range:
        return Range.of(self.upper, self.lower)

    def __add__(self, other: Range) -> Range:
        return Range.of(_end_sum(self.lower, other.lower), _end_sum(self.upper, other.upper))

    def __mul__(self, other: Range) -> Range:
        scale, scaled = (self, other) if self.low == self.high else (other, self)
        if scale.low == scale.high and not _is_infinite(scale.low):  # ends that cannot be compared are scaled, too
            if scale.low.is_extended_nonnegative:
                return scaled._multiplied(scale.low)
            if scale.low.is_extended_nonpositive:
                return (-scaled)._multiplied(-scale.low)
        ends = (self.low, self.low_open), (self.high, self.high_open)
        others = (other.low, other.low_open), (other.high, other.high_open)
        products = [_end_product(x, y) for x in ends for y in others]
        if any(value is sympy.nan for value, _ in products):
            return REAL
        return Range.of(least(products), least((-value, is_open) for value, is_open in products))

    def _multiplied(self, number: Any) -> Range:
        return Range.of(_scaled(number, self.lower), _scaled(number, self.upper))

    def __and__(self, other: Range) -> Range:
        """What lies in both, as far as their ends can be compared."""
        return Range.of(stronger(self.lower, other.lower), stronger(self.upper, other.upper))

    def larger(self, other: Range) -> Range:
        """The range of the larger of two values; where ends cannot be compared, one of them will do below."""
        return Range.of(stronger(self.lower, other.lower), least([self.upper, other.upper]))

    def increasing(self, f: Callable[[Any], Any]) -> Range:
        """The range of an increasing function; f also takes infinite ends."""
        return Range(f(self.low), self.low_open, f(self.high), self.high_open)

    def power(self, n: Any) -> Range:
        """The range of ``x ** n`` for a rational n > 0; a root is of what is not negative."""
        if n % 2 or self.is_not_negative:
            return self.increasing(lambda x: x**n)
        if at_most(self.high, sympy.S.Zero):
            return Range(self.high**n, self.high_open, self.low**n, self.low_open)
        highest = least([(-(self.low**n), self.low_open), (-(self.high**n), self.high_open)])
        return Range.of((sympy.S.Zero, False), highest)

    def reciprocal(self) -> Range:
        """The range of ``1 / x``, of which nothing is known where x may have both signs."""
        far = oo if self.is_not_negative else -oo if at_most(self.high, sympy.S.Zero) else None
        if far is None or self.low == self.high == 0:
            return REAL
        return Range(*_turned(self.high, self.high_open, far), *_turned(self.low, self.low_open, far))

    def logarithm(self) -> Range:
        """The range of log, for a number that is not negative; it is -oo at 0."""
        if not below(sympy.S.Zero, self.high):
            return ANYTHING
        low = sympy.log(self.low) if below(sympy.S.Zero, self.low) else -oo
        return Range(low, self.low_open, oo if self.high == oo else sympy.log(self.high), self.high_open)

    def sign(self) -> Range:
        """The range of a number that has the sign of another, and is 0 with it."""
        return Range.of(*((sympy.S.Zero, r.is_positive) if r.is_not_negative else (-oo, True) for r in (self, -self)))

    def rounded_down(self) -> Range:
        low = -oo if self.low == -oo else sympy.floor(self.low)
        high = oo if self.high == oo else _whole(self.high, self.high_open)
        return Range(low, self.low == -oo, high, self.high == oo)

    def shortened(self) -> Range:
        """The range with a simple number for an end that has grown too long to compare."""
        return Range.of(
            _below(self.low) if _is_long(self.low) else self.lower,
            _below(-self.high) if _is_long(self.high) else self.upper,
        )


def point(value: Any) -> Range:
    return Range(value, False, value, False)


def above(low: Any, is_open: bool = False) -> Range:
    """All numbers above a low end."""
    return Range(low, is_open, oo, True)


REAL = Range(-oo, True, oo, True)
ANYTHING = Range(-oo, False, oo, False)
ZERO = point(sympy.S.Zero)
UNIT = Range(sympy.S.Zero, False, sympy.S.One, False)
POSITIVE = above(sympy.S.Zero, True)
NOT_NEGATIVE = above(sympy.S.Zero)


def hull(*ranges: Range) -> Range:
    """The smallest range that holds all of them."""
    return Range.of(least(r.lower for r in ranges), least(r.upper for r in ranges))


# --- comparing ends ---


def _is_infinite(end: Any) -> bool:
    return end is oo or end is _MINUS_OO  # of each there is one object


@lru_cache(maxsize=65536)
def at_most(a: Any, b: Any) -> bool:
    """True only if a <= b for all sizes."""
    if a == b or a == -oo or b == oo:
        return True
    if _is_infinite(a) or _is_infinite(b):
        return False
    return _shows(sympy.expand(b - a), "is_nonnegative")


@lru_cache(maxsize=65536)
def below(a: Any, b: Any) -> bool:
    """True only if a < b for all sizes."""
    if not at_most(a, b) or a == b:
        return False
    return _is_infinite(a) or _is_infinite(b) or _shows(sympy.expand(b - a), "is_positive")


def _shows(value: Any, sign: str) -> bool:
    """Whether a number of sizes and scalars is seen to be not negative, or positive."""
    known = getattr(value, sign)
    if known or value.is_number:
        return bool(known)
    symbols = value.free_symbols
    smallest = value.xreplace(dict.fromkeys(symbols, sympy.S.One))  # a sum of what never falls does not from there
    sizes = all(s.is_integer and s.is_positive for s in symbols) and value.is_polynomial(*symbols)
    if sizes and never_negative(value) and getattr(smallest, sign):
        return True
    numerator = _numerator(value)
    return numerator is not None and _shows(numerator, sign)


def _numerator(value: Any) -> Any:
    """What is above a positive denominator of symbols, if there is one."""
    if not any(power.exp.is_negative for power in value.atoms(sympy.Pow)):
        return None
    numerator, under = sympy.fraction(sympy.together(value))
    return sympy.expand(numerator) if under != 1 and under.is_positive else None


def least(ends: Iterable[End]) -> End:
    """The lowest of some ends, -oo if they cannot be compared; it is open if all that are not above it are open."""
    listed = list(ends)
    for value, _ in listed:
        if all(at_most(value, other) for other, _ in listed):
            return value, all(is_open or below(value, other) for other, is_open in listed)
    return -oo, True


def stronger(x: End, y: End) -> End:
    """The higher of two low ends, the plainer one if they cannot be compared."""
    if x[0] == y[0]:
        return x[0], x[1] or y[1]
    if at_most(x[0], y[0]):
        return y
    plainer = len(y[0].free_symbols) < len(x[0].free_symbols) and not at_most(y[0], x[0])
    return y if plainer else x


# --- arithmetic of ends ---


def _end_sum(x: End, y: End) -> End:
    infinite = [is_open for value, is_open in (x, y) if _is_infinite(value)]
    return x[0] + y[0], all(infinite) if infinite else x[1] or y[1]


def _scaled(number: Any, end: End) -> End:
    """A low end times a number that is not negative; where it may be 0, an infinite end is left as far away."""
    if number == 0 or end[0] == 0:
        return sympy.S.Zero, end[1] and bool(number.is_nonzero)
    return end if _is_infinite(end[0]) else (expanded(number * end[0]), end[1] and bool(number.is_nonzero))


def _end_product(x: End, y: End) -> End:
    """An end of a product; 0 is approached, or taken if a factor takes it, also against an infinite end."""
    if x[0] == 0 or y[0] == 0:
        return sympy.S.Zero, all(is_open for value, is_open in (x, y) if value == 0)
    if _is_infinite(x[0]) or _is_infinite(y[0]):
        signs = [1 if value.is_extended_positive else -1 if value.is_extended_negative else 0 for value, _ in (x, y)]
        infinite = all(is_open for value, is_open in (x, y) if _is_infinite(value))
        return (signs[0] * signs[1] * oo, infinite) if all(signs) else (sympy.nan, True)
    return expanded(x[0] * y[0]), x[1] or y[1]


def _turned(value: Any, is_open: bool, far: Any) -> tuple[Any, bool]:
    """The end of a reciprocal, which is far away where the number may be 0."""
    if value == 0:
        return far, True
    return (sympy.S.Zero, True) if _is_infinite(value) else (1 / value, is_open)


def _whole(high: Any, is_open: bool) -> Any:
    """A number that no whole number below a high end exceeds: the whole number next to it where that can be seen."""
    whole = sympy.Add(*(term for term in sympy.Add.make_args(sympy.expand(high)) if term.is_integer))
    rest = sympy.expand(high - whole)
    if below(rest, sympy.S.Zero) or (rest == 0 and is_open):
        return whole - 1 if at_most(sympy.S.NegativeOne, rest) else high
    return whole if at_most(sympy.S.Zero, rest) and below(rest, sympy.S.One) else high


@lru_cache(maxsize=65536)
def _is_long(end: Any) -> bool:
    return sum(1 for _ in sympy.preorder_traversal(end)) > (LONGEST_NUMBER if end.is_number else LONGEST_END)


def _below(end: Any) -> End:
    """A simple number below an end, 0 if that will do."""
    if not end.is_number:
        return (sympy.S.Zero, False) if at_most(sympy.S.Zero, end) else (-oo, False)
    under = sympy.Rational(int(sympy.floor(end.evalf(30) * FINENESS)) - 1, FINENESS)
    under = max(under, sympy.S.Zero) if below(sympy.S.Zero, end) else under
    return (under, True) if below(under, end) else (-oo, False)
