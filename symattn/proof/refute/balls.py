"""Numbers that never lie: exact rationals as long as they last, then balls that are sure to hold the value.

A comparison of rationals is decided exactly. One of balls that overlap is undecided (None), and a choice that hangs on
it becomes a ball around both values. So whatever is said about a value here is true of it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any, TypeAlias

import sympy
from flint import arb, fmpq, fmpq_mat, fmpz

from ...core.budget import Budget
from ...scalars.evaluate import inverted
from ...scalars.functions import FUNCTIONS, ScalarFunction

_LONGEST = 600  # bits of a rational: beyond that it is rounded to a ball, or repeated squares would never end
_LARGEST = 60  # parts of a closed form: what is longer than that nobody reads

_BETWEEN = 5000  # terms that are added up between two looks at the clock


class Outside(Exception):
    """The point is outside the domain: a division by zero, the logarithm of a negative number."""


class Undecided(Exception):
    """The balls are too wide to tell; more digits may help."""


class Closed:
    """A value with its closed form, such as ``E/(1 + E)``, carried along where somebody will read it."""

    __slots__ = ("ball", "form", "parts")

    def __init__(self, ball: arb, form: sympy.Expr, parts: int) -> None:
        self.ball, self.form, self.parts = ball, form, parts

    def __add__(self, other: Any) -> Number:
        return _with_form(sympy.Add, (self, other), self.ball + ball(other), more=0)

    def __mul__(self, other: Any) -> Number:
        return _with_form(sympy.Mul, (self, other), self.ball * ball(other), more=0)

    __radd__ = __add__  # SymPy orders the arguments by itself
    __rmul__ = __mul__


Number: TypeAlias = int | fmpq | arb | Closed
Matrix: TypeAlias = list[list[Number]]
Truth: TypeAlias = bool | None


def ball(x: Number) -> arb:
    """A ball around the number."""
    return x if isinstance(x, arb) else x.ball if isinstance(x, Closed) else arb(x)


def rational(x: Number) -> fmpq | None:
    """The number as an exact rational, or None."""
    if isinstance(x, fmpq):
        return x
    if isinstance(x, (int, fmpz)):
        return fmpq(x)
    return x.fmpq() if isinstance(x, arb) and x.is_exact() and x.is_finite() else None


def shortened(x: Number) -> Number:
    """The number, as a ball if it is a very long rational."""
    return arb(x) if isinstance(x, fmpq) and x.height_bits() > _LONGEST else x


def in_sympy(q: fmpq) -> sympy.Rational:
    """A rational as SymPy's."""
    return sympy.Rational(int(q.p), int(q.q))


def in_flint(q: sympy.Rational) -> fmpq:
    """A rational of SymPy's as FLINT's."""
    return fmpq(int(q.p), int(q.q))


def exact_form(x: Number) -> sympy.Expr | None:
    """The number as an exact SymPy scalar, or None."""
    if isinstance(x, Closed):
        return x.form
    q = rational(x)
    return None if q is None else in_sympy(q)


def _with_form(function: Any, arguments: Sequence[Number], value: arb, more: int = 1) -> Number:
    """The value, with its closed form if the arguments have one and it is not too long; a rational is one again."""
    forms = [exact_form(x) for x in arguments]
    parts = more + sum(x.parts if isinstance(x, Closed) else 1 for x in arguments)
    if None in forms or parts > _LARGEST or not value.is_finite():
        return value
    made = function(*forms)
    if made.is_Rational:
        return in_flint(made)
    return Closed(value, made, parts) if made.is_real else value


# --- truth: True, False, or None for undecided ---


def less(a: Number, b: Number) -> Truth:
    """Whether ``a < b``; one object is one number, so that a maximum is not above the entry that attains it."""
    if a is b and _is_number(a):
        return False
    x, y = (ball(x) if isinstance(x, Closed) else x for x in (a, b))
    return True if x < y else False if x >= y or _have_one_form(a, b) else None


def _have_one_form(a: Number, b: Number) -> bool:
    """Whether closed forms tell that two numbers are equal."""
    if not (isinstance(a, Closed) and isinstance(b, Closed)):
        return False
    gap, _ = sympy.fraction(sympy.together(a.form - b.form))
    return bool(sympy.expand(gap) == 0)


def at_most(a: Number, b: Number) -> Truth:
    """Whether ``a <= b``."""
    return negation(less(b, a))


def equal(a: Number, b: Number) -> Truth:
    """Whether ``a == b``; overlapping balls are so only if they have no width, one closed form, or are one object."""
    if a is b and _is_number(a):
        return True
    if isinstance(a, Closed) or isinstance(b, Closed):
        forms = [exact_form(x) for x in (a, b)]
        if None not in forms and forms[0] == forms[1]:
            return True
    elif not isinstance(a, arb) and not isinstance(b, arb):
        return bool(a == b)
    a, b = ball(a), ball(b)
    return True if a == b else None if a.overlaps(b) else False


def _is_number(x: Number) -> bool:
    return not isinstance(x, arb) or not x.is_nan()


def negation(a: Truth) -> Truth:
    """Not a."""
    return None if a is None else not a


HOLDS = {"=": equal, "<=": at_most, "<": less}


def conjunction(*parts: Truth) -> Truth:
    """All of the parts."""
    return False if False in parts else None if None in parts else True


def disjunction(*parts: Truth) -> Truth:
    """One of the parts."""
    return True if True in parts else None if None in parts else False


def choose(condition: Truth, a: Callable[[], Number], b: Callable[[], Number]) -> Number:
    """``a()`` where the condition holds, else ``b()``; a ball around both where that is undecided."""
    if condition is None:
        return ball(a()).union(ball(b()))
    return a() if condition else b()


# --- functions ---


def largest(values: Sequence[Number]) -> Number:
    """The largest of the values; a tie of balls needs no decision. Of no values it raises Outside."""
    return _outermost("largest", values, less, arb.max)


def smallest(values: Sequence[Number]) -> Number:
    """The smallest of the values. Of no values it raises Outside."""
    return _outermost("smallest", values, lambda a, b: less(b, a), arb.min)


def _outermost(
    which: str, values: Sequence[Number], gives_way: Callable[[Number, Number], Truth], fold: Callable[[arb, arb], arb]
) -> Number:
    def outer(a: Number, b: Number) -> Number:
        first = gives_way(a, b)
        return fold(ball(a), ball(b)) if first is None else b if first else a

    if not values:
        raise Outside(f"the {which} of no numbers")
    return reduce(outer, values)


def absolute(x: Number) -> Number:
    """``|x|``."""
    return choose(less(x, 0), lambda: -1 * x, lambda: x)


def sign(x: Number) -> Number:
    """1, 0 or -1."""
    return choose(equal(x, 0), lambda: 0, lambda: choose(less(x, 0), lambda: -1, lambda: 1))


def floor(x: Number) -> Number:
    """The largest integer that is not above x."""
    q = rational(x)
    return ball(x).floor() if q is None else int(q.floor())


def ceiling(x: Number) -> Number:
    """The smallest integer that is not below x."""
    return -1 * floor(-1 * x)


def remainder(a: Number, b: Number) -> Number:
    """``a - b * floor(a / b)``."""
    if isinstance(a, int) and isinstance(b, int) and b:
        return a % b
    return a + -1 * b * floor(a * power(b, -1))


def delta(a: Number, b: Number) -> Number:
    """1 if a and b are equal, else 0."""
    return choose(equal(a, b), lambda: 1, lambda: 0)


def whole(x: Number) -> int:
    """An index or a size: an integer, or the point is outside the domain."""
    if isinstance(x, int):
        return x
    q = rational(x)
    if q is None or q.q != 1:
        raise Outside(f"{x} is not an integer")
    return int(q.p)


def power(base: Number, exponent: Number) -> Number:
    """``base ** exponent`` in the real numbers."""
    b, n = rational(base), rational(exponent)
    if b is not None and n is not None:
        return _rational_power(b, n)
    if n is not None and n.q == 1:
        if n < 0 and ball(base).contains(0):
            raise Undecided("a division by what may be zero")
        return _whole_power(ball(base), int(n.p))
    if not ball(base) > 0:
        raise Outside("a power") if ball(base) <= 0 else Undecided("a power of what may be negative")
    return ball(base).sqrt() if n == fmpq(1, 2) else (ball(base).log() * ball(exponent)).exp()


def _whole_power(x: arb, n: int) -> arb:
    """By repeated squaring: FLINT's own power knows nothing of a ball around zero."""
    if n < 0:
        return 1 / _whole_power(x, -n)
    result = arb(1)
    while n:
        result = result * x if n % 2 else result
        x, n = x * x, n // 2
    return result


def _rational_power(b: fmpq, n: fmpq) -> Number:
    if (b == 0 and n <= 0) or (b < 0 and n.q != 1):
        if n == 0:
            return 1
        raise Outside(f"{b} to the power {n}")
    if b == 0 or b == 1:
        return b
    if abs(n.p) * b.height_bits() > _LONGEST:
        return arb(b) ** arb(n)
    root = _root(b, int(n.q))
    return arb(b) ** arb(n) if root is None else root ** int(n.p)


def _root(b: fmpq, degree: int) -> fmpq | None:
    """The exact root of a positive rational, or of any if the degree is 1."""
    if degree == 1:
        return b
    above, below = (x.root(degree) for x in (b.p, b.q))
    return fmpq(above, below) if above**degree == b.p and below**degree == b.q else None


class Arithmetic:
    """The functions by which formulas are evaluated, under the names that compiled formulas use.

    With ``closed`` values keep their closed forms. ``instance`` says which function stands for one that is known by
    name only: all of them are polynomials, so that their derivatives are known too. Long sums ask for the ``budget``.
    """

    def __init__(self, unknowns: Sequence[str], budget: Budget) -> None:
        self.closed = False
        self.instance = 0
        self.budget = budget
        self.terms = 0  # how many terms were added up so far
        self._unknowns = list(unknowns)
        self._inverted: tuple[tuple[Any, ...], Matrix] = (), []  # what the last matrix is made of, and its inverse
        self.names: dict[str, Any] = {f.ball or f.name: partial(self._function, f) for f in FUNCTIONS.values()}
        self.names |= {
            f.__name__.removeprefix("_"): f
            for f in (
                less, at_most, equal, negation, conjunction, disjunction, choose, largest, smallest, absolute, sign,
                floor, ceiling, remainder, delta, whole, range, self._power, self._sum, self._unknown,
                self._unknown_of_row, self._inverse_entry, self._pi, self._atan2,
            )
        }  # fmt: skip
        self.names |= {"number": in_flint, "held": lambda x: x, "minus_infinity": arb.neg_inf()}

    @contextmanager
    def in_closed_form(self) -> Iterator[None]:
        """Values keep their closed forms for a while."""
        before, self.closed = self.closed, True
        try:
            yield
        finally:
            self.closed = before

    def _function(self, f: ScalarFunction, x: Number) -> Number:
        q = rational(x)
        known = f.at(int(q.p)) if q is not None and (q == 0 or q == 1) else None
        if known is not None:
            return known
        value = getattr(ball(x), f.ball or f.name)()
        if not value.is_finite():
            raise Undecided(f"{f.name} of {x}") if q is None else Outside(f"{f.name} of {x}")
        if value == 0:  # only exp of minus infinity
            return 0
        return _with_form(f.head, (x,), value) if self.closed else value

    def _sum(self, terms: Sequence[Number]) -> Number:
        before, self.terms = self.terms, self.terms + len(terms)
        if self.terms // _BETWEEN > before // _BETWEEN:
            self.budget.check()
        return sum(terms)

    def _power(self, base: Number, exponent: Number) -> Number:
        value = power(base, exponent)
        if self.closed and isinstance(value, arb):  # an irrational root
            return _with_form(sympy.Pow, (base, exponent), value)
        return value

    def _pi(self) -> Number:
        return Closed(arb.pi(), sympy.pi, 1) if self.closed else arb.pi()

    def _atan2(self, y: Number, x: Number) -> Number:
        if equal(x, 0) is not False and equal(y, 0) is not False:
            raise Undecided("atan2 of what may be (0, 0)")
        return arb.atan2(ball(y), ball(x))

    def polynomial(self, name: str) -> tuple[int, ...]:
        """The coefficients, lowest first, of what stands for a function; each prime of the name is a derivative."""
        stem = name.rstrip("'")
        coefficients = _POLYNOMIALS[(self._unknowns.index(stem) + self.instance) % len(_POLYNOMIALS)]
        for _ in range(len(name) - len(stem)):
            coefficients = tuple(n * c for n, c in enumerate(coefficients))[1:]
        return coefficients

    def _unknown(self, name: str, x: Number) -> Number:
        value: Number = 0
        for c in reversed(self.polynomial(name)):
            value = value * x + c
        return value

    def _unknown_of_row(self, name: str, row: Sequence[Number], place: Number) -> Number:
        """``(i + 1) f(x_i) + sum_j (j + 1) x_j``: no symmetry of the row is left."""
        at = whole(place)
        total: Number = sum((j + 1) * x for j, x in enumerate(row))
        return (at + 1) * self._unknown(name, row[at]) + total

    def _inverse_entry(
        self, parts: tuple[Any, ...], matrix: Callable[[], Matrix], row: Number, column: Number
    ) -> Number:
        """One entry of the inverse, worked out once for all entries in turn whose matrix is made of the same parts."""
        known = self._inverted[0]
        if len(parts) != len(known) or not all(map(operator.is_, parts, known)):
            self._inverted = parts, inverse(matrix(), self.budget)
        return self._inverted[1][whole(row)][whole(column)]


_POLYNOMIALS: tuple[tuple[int, ...], ...] = ((1, 1, 1), (-1, 2, 0, 1), (2, -1, 1), (1, -2, 0, 0, 1))


# --- the inverse of a matrix ---


def inverse(matrix: Matrix, budget: Budget) -> Matrix:
    """The inverse, by Gauss and Jordan; raises Outside for a singular matrix."""
    n = len(matrix)
    exact = [q for line in matrix for x in line if (q := rational(x)) is not None]
    if len(exact) == n * n:
        try:
            found = fmpq_mat(n, n, exact).inv()
        except ZeroDivisionError:
            raise Outside("a singular matrix") from None
        return [[found[i, j] for j in range(n)] for i in range(n)]

    def pivot(column: Sequence[Number]) -> int:
        budget.check()
        best = max(range(len(column)), key=lambda i: _distance(column[i]))
        if equal(column[best], 0) is not False:
            raise Outside("a singular matrix") if all(rational(x) == 0 for x in column) else Undecided("inverse")
        return best

    return inverted(matrix, pivot, lambda x: power(x, -1))


def _distance(x: Number) -> float:
    """How far the number is from zero for sure, roughly: it only chooses a pivot."""
    distance = float(ball(x).abs_lower())
    return 0.0 if math.isnan(distance) else distance
