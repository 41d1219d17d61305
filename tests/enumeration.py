"""Exact expectations by going through all values of all entries, which knows nothing of cumulants.

A finite law is a list of values with probabilities. Normal entries take the nodes of Gauss-Hermite quadrature, which
is exact for polynomials up to a degree; rows on the sphere take cubature points. Quantities are plain functions of
arrays, and answers with symbolic sizes are valued at the sizes and the fixed arrays of a case.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import sympy

import symattn as sa

Finite = Sequence[tuple[Any, Any]]  # values of one entry (or of a pair, or of a row) with their probabilities

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
SIGNS: Finite = [(1, HALF), (-1, HALF)]
THREE: Finite = [(-1, HALF), (0, Fraction(1, 6)), (2, THIRD)]  # not symmetric, with a mean
CENTRED: Finite = [(-1, Fraction(2, 3)), (2, THIRD)]  # mean 0, variance 2, skewed
TAILS: Finite = [(-2, Fraction(1, 8)), (0, Fraction(3, 4)), (2, Fraction(1, 8))]  # mean 0, variance 1, kurtosis 4
PAIRS: Finite = [((1, 1), HALF), ((1, -1), Fraction(1, 4)), ((-2, 0), Fraction(1, 4))]


def coin(p: Fraction) -> Finite:
    return [(1, p), (0, 1 - p)]


def hermite(nodes: int, mean: float = 0, variance: float = 1) -> Finite:
    """A normal entry: exact for degrees below ``2 nodes``."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return list(zip(mean + np.sqrt(variance) * points, weights / weights.sum(), strict=True))


def legendre(nodes: int) -> Finite:
    """A uniform entry of variance 1: exact for degrees below ``2 nodes``."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return list(zip(np.sqrt(3) * points, weights / 2, strict=True))


def laplace(nodes: int) -> Finite:
    """A Laplace entry of variance 1, half of it on each side: exact for degrees below ``2 nodes``."""
    points, weights = np.polynomial.laguerre.laggauss(nodes)
    return [(sign * x / np.sqrt(2), w / 2) for x, w in zip(points, weights, strict=True) for sign in (1, -1)]


def sphere(width: int) -> Finite:
    """Points of the sphere with weights, exact up to degree 5, for widths 1 to 3."""
    if width == 1:
        return [((1,), HALF), ((-1,), HALF)]
    if width == 2:
        angles = 2 * np.pi * np.arange(6) / 6
        return [((np.cos(a), np.sin(a)), 1 / 6) for a in angles]
    axes = [tuple(sign * (n == k) for n in range(3)) for k in range(3) for sign in (1, -1)]
    corners = [tuple(s / np.sqrt(3) for s in signs) for signs in itertools.product((1, -1), repeat=3)]
    return [*((p, 1 / 15) for p in axes), *((p, 3 / 40) for p in corners)]


# --- cumulants of finite laws, by their recursion from moments ---


def moment(law: Finite, order: int) -> Any:
    return sum(p * x**order for x, p in law)


def cumulants(law: Finite, orders: int) -> list[sympy.Rational]:
    """From the first on: ``kappa_n = m_n - sum_k C(n-1, k-1) kappa_k m_{n-k}``."""
    found: list[Any] = []
    for n in range(1, orders + 1):
        lower = sum(comb(n - 1, k - 1) * found[k - 1] * moment(law, n - k) for k in range(1, n))
        found.append(moment(law, n) - lower)
    return [sympy.Rational(c.numerator, c.denominator) for c in map(Fraction, found)]


def joint_cumulants(law: Finite, orders: int) -> dict[tuple[int, int], sympy.Rational]:
    """Of pairs, by the same recursion in the first argument of positive order."""

    def m(a: int, b: int) -> Any:
        return sum(p * x**a * y**b for (x, y), p in law)

    found: dict[tuple[int, int], Any] = {}
    for total in range(1, orders + 1):
        for a in range(total, -1, -1):
            b = total - a
            i, j = (1, 0) if a else (0, 1)  # the argument that is held
            lower = sum(
                comb(a - i, k - i) * comb(b - j, l - j) * found[k, l] * m(a - k, b - l)
                for k in range(i, a + 1)
                for l in range(j, b + 1)
                if (k, l) != (a, b)
            )
            found[a, b] = m(a, b) - lower
    return {key: sympy.Rational(c.numerator, c.denominator) for key, c in ((k, Fraction(v)) for k, v in found.items())}


# --- expectations ---


class Drawn:
    """Arrays whose entries have a finite law: ``rows`` draws whole rows, ``pairs`` two arrays at once."""

    def __init__(self, shape: tuple[int, ...], law: Finite, rows: bool = False, pairs: bool = False) -> None:
        self.shape, self.law, self.rows, self.pairs = shape, law, rows, pairs

    def states(self) -> Iterator[tuple[Any, tuple[np.ndarray, ...]]]:
        """All arrays, each with its probability."""
        count = int(np.prod(self.shape[:-1] if self.rows else self.shape))
        for chosen in itertools.product(self.law, repeat=count):
            probability, values = 1, []
            for value, p in chosen:
                probability = probability * p
                values.append(value)
            yield probability, self._arrays(values)

    def _arrays(self, values: Sequence[Any]) -> tuple[np.ndarray, ...]:
        if self.pairs:
            return tuple(_array([v[n] for v in values], self.shape) for n in range(2))
        return (_array([x for row in values for x in row] if self.rows else values, self.shape),)


def _array(values: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)


def mean(f: Callable[..., Any], *drawn: Drawn) -> Any:
    """The expectation of a function of independent arrays."""
    total: Any = 0
    for states in itertools.product(*(list(x.states()) for x in drawn)):
        probability: Any = 1
        for p, _ in states:
            probability = probability * p
        total += probability * f(*(array for _, arrays in states for array in arrays))
    return total


def covariance(f: Callable[..., Any], g: Callable[..., Any], *drawn: Drawn) -> Any:
    return mean(lambda *x: f(*x) * g(*x), *drawn) - mean(f, *drawn) * mean(g, *drawn)


def variance(f: Callable[..., Any], *drawn: Drawn) -> Any:
    return covariance(f, f, *drawn)


# --- answers with symbolic sizes, at sizes ---


def at(answer: sympy.Expr, values: Mapping[Any, Any], **arrays: Any) -> Any:
    """A symbolic answer at sizes and scalars, its sums written out over the entries of fixed arrays."""
    found = sympy.sympify(answer).subs(dict(values), simultaneous=True).doit()
    entries = {}
    for entry in found.atoms(sympy.Indexed):
        value = np.asarray(arrays[str(entry.base)], dtype=object)[tuple(int(i) for i in entry.indices)]
        entries[entry] = sympy.Rational(value) if isinstance(value, (int, Fraction)) else sympy.sympify(value)
    return found.subs(entries).doit()


def agrees(answer: Any, wanted: Any) -> bool:
    """Equal exactly where the independent way is exact, else to rounding."""
    if isinstance(wanted, (int, Fraction)):
        return sympy.expand(answer - sympy.Rational(wanted)) == 0
    return abs(complex(answer) - complex(wanted)) <= 1e-11 * max(1, abs(wanted))


def laws_of(law: Finite, orders: int = 8) -> Any:
    """The law of independent entries that the library is told, by its cumulants alone."""
    return sa.iid(cumulants=cumulants(law, orders))


# --- in tests ---


def same(found: sympy.Expr, wanted: Any) -> None:
    """Two symbolic answers are one."""
    assert found == wanted or sympy.simplify(found - wanted) == 0, f"{found} is not {wanted}"


def settled(answer: sympy.Expr, wanted: Any, values: Mapping[Any, Any], **arrays: Any) -> None:
    """The answer at some sizes is what the independent way found there."""
    found = at(answer, values, **arrays)
    assert agrees(found, wanted), f"{answer} at {values} is {found}, not {wanted}"


def vectors(width: int, *laws: Finite) -> list[Drawn]:
    return [Drawn((width,), law) for law in laws]


def dot(a: np.ndarray, b: np.ndarray) -> Any:
    return a @ b
