"""Ranges of real numbers with exact ends, and the range of an entry formula from those of what it reads.

Ends are SymPy expressions of sizes and scalars; one that cannot be compared is given up, so a range may be too wide
but never too narrow. ``open`` says that the end itself is not taken. A low end -oo that is not open stands for
entries that may be -oo, as in additive masks; ``REAL`` is any number, ``ANYTHING`` also these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import sympy
from sympy.core.relational import Relational

from ..ops.formulas import Choice, Held, Max, Min
from ..sizes import never_negative

oo = sympy.oo
LONGEST_END = 30  # parts of an expression
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


def point(value: Any) -> Range:
    return Range(value, False, value, False)


# --- comparing ends ---


def at_most(a: Any, b: Any) -> bool:
    """True only if a <= b for all sizes."""
    if a == b or a == -oo or b == oo:
        return True
    if oo in (abs(a), abs(b)):
        return False
    difference = sympy.expand(b - a)
    return bool(difference.is_nonnegative) or (_of_sizes(difference) and never_negative(difference))


def below(a: Any, b: Any) -> bool:
    """True only if a < b for all sizes."""
    if not at_most(a, b) or a == b:
        return False
    if oo in (abs(a), abs(b)):
        return True
    difference = sympy.expand(b - a)
    if difference.is_positive:
        return True
    least = difference.xreplace({size: sympy.S.One for size in difference.free_symbols})  # nothing falls from there
    return bool(_of_sizes(difference) and never_negative(difference) and least.is_positive)


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


def _greatest(ends: Iterable[tuple[Any, bool]]) -> tuple[Any, bool]:
    value, is_open = least((-value, is_open) for value, is_open in ends)
    return -value, is_open


# --- arithmetic ---


def hull(*ranges: Range) -> Range:
    """The smallest range that holds all of them."""
    return Range(*least((r.low, r.low_open) for r in ranges), *_greatest((r.high, r.high_open) for r in ranges))


def meet(a: Range, b: Range) -> Range:
    """What lies in both, as far as their ends can be compared."""
    low, high = a[:2], a[2:]
    if below(a.low, b.low) or (a.low == b.low and b.low_open):
        low = b[:2]
    if below(b.high, a.high) or (a.high == b.high and b.high_open):
        high = b[2:]
    return Range(*low, *high)


def plus(a: Range, b: Range) -> Range:
    return Range(*_end_sum(a[:2], b[:2]), *_end_sum(a[2:], b[2:]))


def _end_sum(x: tuple[Any, bool], y: tuple[Any, bool]) -> tuple[Any, bool]:
    infinite = [is_open for value, is_open in (x, y) if abs(value) == oo]
    return x[0] + y[0], all(infinite) if infinite else x[1] or y[1]


def times(a: Range, b: Range) -> Range:
    products = [_end_product(x, y) for x in (a[:2], a[2:]) for y in (b[:2], b[2:])]
    if any(value is sympy.nan for value, _ in products):
        return REAL
    return Range(*least(products), *_greatest(products))


def _end_product(x: tuple[Any, bool], y: tuple[Any, bool]) -> tuple[Any, bool]:
    """An end of a product; 0 is approached, or taken if a factor takes it, also against an infinite end."""
    if x[0] == 0 or y[0] == 0:
        return sympy.S.Zero, all(is_open for value, is_open in (x, y) if value == 0)
    if oo in (abs(x[0]), abs(y[0])):
        signs = [1 if value.is_extended_positive else -1 if value.is_extended_negative else 0 for value, _ in (x, y)]
        infinite = all(is_open for value, is_open in (x, y) if abs(value) == oo)
        return (signs[0] * signs[1] * oo, infinite) if all(signs) else (sympy.nan, True)
    return sympy.expand(x[0] * y[0]), x[1] or y[1]


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
    return (sympy.S.Zero, True) if abs(end[0]) == oo else (1 / end[0], end[1])


def increasing(f: Callable[[Any], Any], a: Range) -> Range:
    """The range of an increasing function; f also takes infinite ends."""
    return Range(f(a.low), a.low_open, f(a.high), a.high_open)


def whole_power(a: Range, n: int) -> Range:
    """``a ** n`` for n > 0."""
    if n % 2 or at_most(sympy.S.Zero, a.low):
        return increasing(lambda x: x**n, a)
    if at_most(a.high, sympy.S.Zero):
        return Range(a.high**n, a.high_open, a.low**n, a.low_open)
    return Range(sympy.S.Zero, False, *_greatest([(a.low**n, a.low_open), (a.high**n, a.high_open)]))


def shortened(a: Range) -> Range:
    """The range with a simple number for an end that has grown too long to compare."""
    low = _below(a.low) if _is_long(a.low) else a[:2]
    high = _below(-a.high) if _is_long(a.high) else (-a.high, a.high_open)
    return Range(*low, -high[0], high[1])


def _is_long(end: Any) -> bool:
    return sum(1 for _ in sympy.preorder_traversal(end)) > LONGEST_END


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


# --- formulas ---


class FormulaRange:
    """The range of a formula.

    ``read`` is the range of an entry it reads, ``entry`` the class of those entries, ``total`` what is known of a sum
    beyond its terms. Met conditions, such as a divisor that must not be 0, are collected.
    """

    def __init__(
        self,
        entry: type[sympy.Function],
        read: Callable[[Any], Range],
        total: Callable[[Any, FormulaRange], Range | None],
        narrowed: dict[Any, Range] | None = None,
    ) -> None:
        self.entry, self.read, self.total = entry, read, total
        self.narrowed = narrowed or {}
        self.conditions: dict[Any, None] = {}

    def of(self, e: Any) -> Range:
        """The range of a part of the formula."""
        if e in self.narrowed:
            return self.narrowed[e]
        if isinstance(e, self.entry):
            return self.read(e)
        if not e.has(self.entry) and not e.atoms(sympy.Dummy):
            return point(e) if e.is_extended_real else REAL
        rule = next((_RULES[kind] for kind in type(e).__mro__ if kind in _RULES), None)
        return REAL if rule is None else rule(self, e)

    def _index(self, e: Any) -> Range:
        return NOT_NEGATIVE if e.is_nonnegative else REAL

    def _add(self, e: Any) -> Range:
        found = ZERO
        for part in e.args:
            found = plus(found, self.of(part))
        return self._by_sign(e, found)

    def _mul(self, e: Any) -> Range:
        found = point(sympy.S.One)
        for part in e.args:
            found = times(found, self.of(part))
        return self._by_sign(e, found)

    def _by_sign(self, e: Any, found: Range) -> Range:
        """Formulas of indices alone, such as ``i + 1``: SymPy knows their sign."""
        if not e.has(self.entry):
            if e.is_positive:
                return meet(found, POSITIVE)
            if e.is_nonnegative:
                return meet(found, NOT_NEGATIVE)
            if e.is_nonpositive:
                return meet(found, times(point(sympy.S.NegativeOne), NOT_NEGATIVE))
        return found

    def _pow(self, e: Any) -> Range:
        base = self.of(e.base)
        exponent = e.exp
        if not exponent.is_Rational:
            return POSITIVE if below(sympy.S.Zero, base.low) or (base.low == 0 and base.low_open) else REAL
        if exponent.is_Integer:
            above: Range | None = whole_power(base, abs(int(exponent)))
        elif below(base.high, sympy.S.Zero):
            return REAL
        else:
            if not at_most(sympy.S.Zero, base.low):
                self.conditions[sympy.Ge(e.base, 0)] = None
                base = Range(sympy.S.Zero, False, base.high, base.high_open)
            power = abs(exponent)
            above = increasing(lambda x: oo if x == oo else x**power, base)
        if exponent.is_negative and above is not None:
            if _takes_zero(above[:2]) or _takes_zero(above[2:]):
                self.conditions[sympy.Ne(e.base, 0)] = None
            above = reciprocal(above)
        return REAL if above is None else above

    def _exp(self, e: Any) -> Range:
        return increasing(sympy.exp, self.of(e.args[0]))

    def _log(self, e: Any) -> Range:
        """An increasing function, with -oo at 0."""
        inside = self.of(e.args[0])
        if not at_most(sympy.S.Zero, inside.low):
            self.conditions[sympy.Ge(e.args[0], 0)] = None
            inside = Range(sympy.S.Zero, False, *inside[2:])
        if not below(sympy.S.Zero, inside.high):
            return ANYTHING
        low = sympy.log(inside.low) if below(sympy.S.Zero, inside.low) else -oo
        high = oo if inside.high == oo else sympy.log(inside.high)
        return Range(low, inside.low_open, high, inside.high_open)

    def _odd(self, e: Any) -> Range:
        """A bounded increasing odd function: it has the sign of its argument."""
        inside, limit = self.of(e.args[0]), _LIMITS[type(e)]
        bounds = Range(-limit, True, limit, True)
        if at_most(sympy.S.Zero, inside.low):
            strict = inside.low_open if inside.low == 0 else below(sympy.S.Zero, inside.low)
            bounds = meet(bounds, Range(sympy.S.Zero, strict, oo, True))
        if at_most(inside.high, sympy.S.Zero):
            strict = inside.high_open if inside.high == 0 else below(inside.high, sympy.S.Zero)
            bounds = meet(bounds, Range(-oo, True, sympy.S.Zero, strict))
        return bounds

    def _wave(self, e: Any) -> Range:
        return Range(sympy.S.NegativeOne, False, sympy.S.One, False)

    def _unit(self, e: Any) -> Range:
        return UNIT

    def _floor(self, e: Any) -> Range:
        inside = self.of(e.args[0])
        low = -oo if inside.low == -oo else sympy.floor(inside.low)
        return Range(low, inside.low == -oo, oo if inside.high == oo else inside.high, inside.high == oo)

    def _remainder(self, e: Any) -> Range:
        divisor = self.of(e.args[1])
        return Range(sympy.S.Zero, False, divisor.high, True) if _is_positive(divisor) else REAL

    def _absolute(self, e: Any) -> Range:
        inside = self.of(e.args[0])
        return _larger(hull(inside, times(point(sympy.S.NegativeOne), inside)), ZERO)

    def _held(self, e: Any) -> Range:
        return self.of(e.args[0])

    def _choice(self, e: Any) -> Range:
        condition, a, b = e.args
        if isinstance(condition, Relational) and (condition.lhs, condition.rhs) == (a, b):
            if isinstance(condition, (sympy.Gt, sympy.Ge)):
                return _larger(self.of(a), self.of(b))
            if isinstance(condition, (sympy.Lt, sympy.Le)):
                return _smaller(self.of(a), self.of(b))
        return hull(self._side(condition, a), self._side(sympy.Not(condition), b))

    def _side(self, condition: Any, value: Any) -> Range:
        """The range of one side of a choice, where its condition narrows what it compares with a number."""
        if not isinstance(condition, Relational) or not condition.rhs.is_number:
            return self.of(value)
        end, tested = condition.rhs, self.of(condition.lhs)
        if isinstance(condition, (sympy.Gt, sympy.Ge)):
            tested = meet(tested, Range(end, isinstance(condition, sympy.Gt), oo, True))
        elif isinstance(condition, (sympy.Lt, sympy.Le)):
            tested = meet(tested, Range(-oo, True, end, isinstance(condition, sympy.Lt)))
        side = FormulaRange(self.entry, self.read, self.total, {**self.narrowed, condition.lhs: tested})
        found = side.of(value)
        self.conditions |= side.conditions
        return found

    def _sum(self, e: Any) -> Range:
        known = self.total(e, self)
        if known is not None:
            return known
        found = self.of(e.function)
        for _, low, high in e.limits:
            found = times(found, _count(low, high))
        return found

    def _extreme(self, e: Any) -> Range:
        return self.of(e.function)


def _count(low: Any, high: Any) -> Range:
    """How many terms a sum has."""
    count = sympy.expand(high - low + 1)
    if count.is_positive and not count.atoms(sympy.Dummy):
        return point(count)
    return Range(sympy.S.One if (count - 1).is_nonnegative else sympy.S.Zero, False, oo, True)


def _takes_zero(end: tuple[Any, bool]) -> bool:
    return end == (0, False)


def _is_positive(a: Range) -> bool:
    return below(sympy.S.Zero, a.low) or (a.low == 0 and a.low_open)


def _larger(a: Range, b: Range) -> Range:
    """The range of the larger of two values; where ends cannot be compared, one of them will do below."""
    return Range(*_stronger(a[:2], b[:2]), *_greatest([a[2:], b[2:]]))


def _smaller(a: Range, b: Range) -> Range:
    minus = point(sympy.S.NegativeOne)
    return times(minus, _larger(times(minus, a), times(minus, b)))


def _stronger(x: tuple[Any, bool], y: tuple[Any, bool]) -> tuple[Any, bool]:
    if x[0] == y[0]:
        return x[0], x[1] or y[1]
    return y if below(x[0], y[0]) else x


_LIMITS = {sympy.tanh: sympy.S.One, sympy.erf: sympy.S.One, sympy.atan: sympy.pi / 2}
_RULES: dict[Any, Callable[[FormulaRange, Any], Range]] = {
    sympy.Dummy: FormulaRange._index,
    sympy.Add: FormulaRange._add,
    sympy.Mul: FormulaRange._mul,
    sympy.Pow: FormulaRange._pow,
    sympy.exp: FormulaRange._exp,
    sympy.log: FormulaRange._log,
    **dict.fromkeys(_LIMITS, FormulaRange._odd),
    sympy.sin: FormulaRange._wave,
    sympy.cos: FormulaRange._wave,
    sympy.KroneckerDelta: FormulaRange._unit,
    sympy.floor: FormulaRange._floor,
    sympy.Mod: FormulaRange._remainder,
    sympy.Abs: FormulaRange._absolute,
    Held: FormulaRange._held,
    Choice: FormulaRange._choice,
    sympy.Sum: FormulaRange._sum,
    Max: FormulaRange._extreme,
    Min: FormulaRange._extreme,
}
