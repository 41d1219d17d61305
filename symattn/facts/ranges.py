"""Ranges of real numbers with exact ends, and arithmetic with them.

Ends are SymPy expressions of sizes and scalars; one that cannot be compared is given up, so a range may be too wide
but never too narrow. ``open`` says that the end itself is not taken. A low end -oo that is not open stands for
entries that may be -oo, as in additive masks; ``REAL`` is any number, ``ANYTHING`` also these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import sympy

from ..core.sizes import never_negative

oo = sympy.oo
LONGEST_END = 30  # parts of an expression
LONGEST_NUMBER = 12
FINENESS = 4096  # of the number that stands for a longer one


class Range(NamedTuple):
    """Between ``low`` and ``high``."""

    low: Any
    low_open: bool
    high: Any
    high_open: bool


REAL = Range(-oo, True, oo, True)
ANYTHING = Range(-oo, False, oo, False)
ZERO = Range(sympy.S.Zero, False, sympy.S.Zero, False)
UNIT = Range(sympy.S.Zero, False, sympy.S.One, False)
POSITIVE = Range(sympy.S.Zero, True, oo, True)
NOT_NEGATIVE = Range(sympy.S.Zero, False, oo, True)


def _is_infinite(end: Any) -> bool:
    return end in (oo, -oo)


def point(value: Any) -> Range:
    return Range(value, False, value, False)


# --- comparing ends ---


@lru_cache(maxsize=65536)
def at_most(a: Any, b: Any) -> bool:
    """True only if a <= b for all sizes."""
    if a == b or a == -oo or b == oo:
        return True
    if _is_infinite(a) or _is_infinite(b):
        return False
    return _is_nonnegative(sympy.expand(b - a))


def _is_nonnegative(value: Any) -> bool:
    if value.is_nonnegative or value.is_number:
        return bool(value.is_nonnegative)
    if _of_sizes(value) and never_negative(value):
        return True
    above = _numerator(value)
    return above is not None and _is_nonnegative(above)


@lru_cache(maxsize=65536)
def below(a: Any, b: Any) -> bool:
    """True only if a < b for all sizes."""
    if not at_most(a, b) or a == b:
        return False
    if _is_infinite(a) or _is_infinite(b):
        return True
    return _is_positive(sympy.expand(b - a))


def _is_positive(value: Any) -> bool:
    if value.is_positive or value.is_number:
        return bool(value.is_positive)
    smallest = value.xreplace({size: sympy.S.One for size in value.free_symbols})  # nothing falls from there
    if _of_sizes(value) and never_negative(value) and smallest.is_positive:
        return True
    above = _numerator(value)
    return above is not None and _is_positive(above)


def _numerator(value: Any) -> Any:
    """What is above a positive denominator of symbols, if there is one."""
    if not any(power.exp.is_negative for power in value.atoms(sympy.Pow)):
        return None
    above, under = sympy.fraction(sympy.together(value))
    return sympy.expand(above) if under != 1 and under.is_positive else None


def _of_sizes(value: Any) -> bool:
    symbols = value.free_symbols
    whole = all(s.is_integer and s.is_positive for s in symbols)
    return whole and bool(value.is_polynomial(*symbols))


def least(ends: Iterable[tuple[Any, bool]]) -> tuple[Any, bool]:
    """The lowest of some ends, -oo if they cannot be compared; it is open if all that are not above it are open."""
    listed = list(ends)
    for value, _ in listed:
        if all(at_most(value, other) for other, _ in listed):
            return value, all(is_open or below(value, other) for other, is_open in listed)
    return -oo, True


def greatest(ends: Iterable[tuple[Any, bool]]) -> tuple[Any, bool]:
    value, is_open = least((-value, is_open) for value, is_open in ends)
    return -value, is_open


# --- arithmetic ---


def hull(*ranges: Range) -> Range:
    """The smallest range that holds all of them."""
    return Range(*least((r.low, r.low_open) for r in ranges), *greatest((r.high, r.high_open) for r in ranges))


def meet(a: Range, b: Range) -> Range:
    """What lies in both, as far as their ends can be compared."""
    high = stronger((-a.high, a.high_open), (-b.high, b.high_open))
    return Range(*stronger(a[:2], b[:2]), -high[0], high[1])


def plus(a: Range, b: Range) -> Range:
    return Range(*_end_sum(a[:2], b[:2]), *_end_sum(a[2:], b[2:]))


def _end_sum(x: tuple[Any, bool], y: tuple[Any, bool]) -> tuple[Any, bool]:
    infinite = [is_open for value, is_open in (x, y) if _is_infinite(value)]
    return x[0] + y[0], all(infinite) if infinite else x[1] or y[1]


def times(a: Range, b: Range) -> Range:
    scale, other = (a, b) if a.low == a.high else (b, a)
    sign = _sign(scale.low) if scale.low == scale.high else 0
    if sign and not _is_infinite(scale.low):  # ends that cannot be compared are scaled, too
        low, high = (_scaled(scale.low, end, sign) for end in (other[:2], other[2:])[::sign])
        return Range(*low, *high)
    products = [_end_product(x, y) for x in (a[:2], a[2:]) for y in (b[:2], b[2:])]
    if any(value is sympy.nan for value, _ in products):
        return REAL
    return Range(*least(products), *greatest(products))


def _sign(value: Any) -> int:
    """1 for what is never negative, -1 for what is never positive, 0 for others."""
    return 1 if value.is_extended_nonnegative else -1 if value.is_extended_nonpositive else 0


def _scaled(value: Any, end: tuple[Any, bool], sign: int) -> tuple[Any, bool]:
    """An end of a multiple; where the number may be 0, an infinite end is left as far away."""
    if _is_infinite(end[0]) and value != 0:
        return sign * end[0], end[1]
    return sympy.expand(value * end[0]) if end[0] != 0 and value != 0 else sympy.S.Zero, end[1] and bool(
        value.is_nonzero
    )


def _end_product(x: tuple[Any, bool], y: tuple[Any, bool]) -> tuple[Any, bool]:
    """An end of a product; 0 is approached, or taken if a factor takes it, also against an infinite end."""
    if x[0] == 0 or y[0] == 0:
        return sympy.S.Zero, all(is_open for value, is_open in (x, y) if value == 0)
    if _is_infinite(x[0]) or _is_infinite(y[0]):
        signs = [1 if value.is_extended_positive else -1 if value.is_extended_negative else 0 for value, _ in (x, y)]
        infinite = all(is_open for value, is_open in (x, y) if _is_infinite(value))
        return (signs[0] * signs[1] * oo, infinite) if all(signs) else (sympy.nan, True)
    return sympy.expand(x[0] * y[0]), x[1] or y[1]


def negative(a: Range) -> Range:
    return Range(-a.high, a.high_open, -a.low, a.low_open)


def reciprocal(a: Range) -> Range | None:
    """``1 / a`` where a has one sign, except that it may be 0; None for others."""
    if a.low == a.high == 0:
        return None
    if at_most(sympy.S.Zero, a.low):
        return Range(*_turned(a[2:], oo), *_turned(a[:2], oo))
    if at_most(a.high, sympy.S.Zero):
        return Range(*_turned(a[2:], -oo), *_turned(a[:2], -oo))
    return None


def _turned(end: tuple[Any, bool], at_zero: Any) -> tuple[Any, bool]:
    if end[0] == 0:
        return at_zero, True
    return (sympy.S.Zero, True) if _is_infinite(end[0]) else (1 / end[0], end[1])


def increasing(f: Callable[[Any], Any], a: Range) -> Range:
    """The range of an increasing function; f also takes infinite ends."""
    return Range(f(a.low), a.low_open, f(a.high), a.high_open)


def whole_power(a: Range, n: int) -> Range:
    """``a ** n`` for n > 0."""
    if n % 2 or at_most(sympy.S.Zero, a.low):
        return increasing(lambda x: x**n, a)
    if at_most(a.high, sympy.S.Zero):
        return Range(a.high**n, a.high_open, a.low**n, a.low_open)
    return Range(sympy.S.Zero, False, *greatest([(a.low**n, a.low_open), (a.high**n, a.high_open)]))


def logarithm(a: Range) -> Range:
    """The range of log, for a number that is not negative; it is -oo at 0."""
    if not below(sympy.S.Zero, a.high):
        return ANYTHING
    low = sympy.log(a.low) if below(sympy.S.Zero, a.low) else -oo
    return Range(low, a.low_open, oo if a.high == oo else sympy.log(a.high), a.high_open)


def signed_like(a: Range) -> Range:
    """The range of a number that has the sign of another, and is 0 with it."""
    low = (sympy.S.Zero, is_positive(a)) if at_most(sympy.S.Zero, a.low) else (-oo, True)
    high = (sympy.S.Zero, is_positive(negative(a))) if at_most(a.high, sympy.S.Zero) else (oo, True)
    return Range(*low, *high)


def rounded_down(a: Range) -> Range:
    low = -oo if a.low == -oo else sympy.floor(a.low)
    high = oo if a.high == oo else _whole(a.high, a.high_open)
    return Range(low, a.low == -oo, high, a.high == oo)


def _whole(high: Any, is_open: bool) -> Any:
    """A number that no whole number below a high end exceeds: the whole number next to it where that can be seen."""
    whole = sympy.Add(*(term for term in sympy.Add.make_args(sympy.expand(high)) if term.is_integer))
    rest = sympy.expand(high - whole)
    if below(rest, sympy.S.Zero) or (rest == 0 and is_open):
        return whole - 1 if at_most(sympy.S.NegativeOne, rest) else high
    return whole if at_most(sympy.S.Zero, rest) and below(rest, sympy.S.One) else high


def shortened(a: Range) -> Range:
    """The range with a simple number for an end that has grown too long to compare."""
    low = _below(a.low) if _is_long(a.low) else a[:2]
    high = _below(-a.high) if _is_long(a.high) else (-a.high, a.high_open)
    return Range(*low, -high[0], high[1])


def _is_long(end: Any) -> bool:
    return sum(1 for _ in sympy.preorder_traversal(end)) > (LONGEST_NUMBER if end.is_number else LONGEST_END)


def _below(end: Any) -> tuple[Any, bool]:
    """A simple number below an end, 0 if that will do."""
    if not end.is_number:
        return (sympy.S.Zero, False) if at_most(sympy.S.Zero, end) else (-oo, False)
    under = sympy.Rational(int(sympy.floor(end.evalf(30) * FINENESS)) - 1, FINENESS)
    under = max(under, sympy.S.Zero) if below(sympy.S.Zero, end) else under
    return (under, True) if below(under, end) else (-oo, False)


def is_informative(a: Range) -> bool:
    """Whether one end is finite."""
    return bool(a.low != -oo or a.high != oo)


def is_positive(a: Range) -> bool:
    return below(sympy.S.Zero, a.low) or (a.low == 0 and a.low_open)


def is_not_zero(a: Range) -> bool:
    return is_positive(a) or is_positive(negative(a))


def larger(a: Range, b: Range) -> Range:
    """The range of the larger of two values; where ends cannot be compared, one of them will do below."""
    return Range(*stronger(a[:2], b[:2]), *greatest([a[2:], b[2:]]))


def smaller(a: Range, b: Range) -> Range:
    return negative(larger(negative(a), negative(b)))


def stronger(x: tuple[Any, bool], y: tuple[Any, bool]) -> tuple[Any, bool]:
    """The higher of two low ends, the plainer one if they cannot be compared."""
    if x[0] == y[0]:
        return x[0], x[1] or y[1]
    if at_most(x[0], y[0]):
        return y
    plainer = len(y[0].free_symbols) < len(x[0].free_symbols) and not at_most(y[0], x[0])
    return y if plainer else x
