"""Probabilities that jointly normal forms are all positive: one form, two or three centred ones, two with means."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy

from ..errors import NoRuleError
from ..normal_form.constructors import scalar
from ..normal_form.functions import exp, function, power
from ..normal_form.ring import Ring
from ..normal_form.terms import ONE, Poly, constant

if TYPE_CHECKING:
    from .expectation import Expectation

_HALF = Fraction(1, 2)
Means = Mapping[int, Poly]
Covariances = Mapping[tuple[int, int], Poly]


def orthant(e: Expectation, steps: Sequence[int], mean: Means, covariance: Covariances) -> Poly:
    """``P(L_s > 0 for all s)``; forms that do not correlate with others are independent of them."""
    return e.ring.product(_block(e, block, mean, covariance) for block in _blocks(steps, covariance))


def _blocks(steps: Sequence[int], covariance: Covariances) -> list[list[int]]:
    left, blocks = list(steps), []
    while left:
        block = [left.pop(0)]
        while near := [t for t in left if any(covariance[t, s] for s in block)]:
            block += near
            left = [t for t in left if t not in near]
        blocks.append(block)
    return blocks


def _block(e: Expectation, block: Sequence[int], mean: Means, covariance: Covariances) -> Poly:
    ring = e.ring
    for s in block:
        e.require_positive(covariance[s, s])
    if len(block) == 1:
        return _half_line(ring, mean[block[0]], covariance[block[0], block[0]])
    centred = not any(mean[s] for s in block)
    if len(block) in (2, 3) and centred:
        angles = [_angle(ring, s, t, covariance) for s, t in itertools.combinations(block, 2)]
        share = Fraction(1, 2 ** (len(block) - 1))
        turn = ring.multiply(scalar(ring, 1 / sympy.pi), ring.total((share, angle) for angle in angles))
        return ring.add(constant(share / 2), turn)
    if len(block) == 2 and not any("imaginary" in mean[s].kinds for s in block):
        s, t = block
        at = [ring.multiply(mean[n], power(ring, covariance[n, n], -_HALF)) for n in block]
        if any(e.is_random(poly) for poly in (*at, covariance[s, t])):
            raise NoRuleError("an orthant probability with means that are random themselves")
        return function(ring, "BothPositive", [*at, _correlation(ring, s, t, covariance)])
    with_means = "" if centred else " with means"
    raise NoRuleError(f"the probability that {len(block)} dependent normal forms{with_means} are all positive")


def _half_line(ring: Ring, mean: Poly, variance: Poly) -> Poly:
    """``P(L > 0) = (1 + erf(m / sqrt(2 v))) / 2``."""
    if not mean:
        return constant(_HALF)
    at = ring.multiply(mean, power(ring, ring.scale(2, variance), -_HALF))
    return ring.total([(_HALF, ONE), (_HALF, function(ring, "erf", [at]))])


def _correlation(ring: Ring, s: int, t: int, covariance: Covariances) -> Poly:
    return ring.product([covariance[s, t], *(power(ring, covariance[n, n], -_HALF) for n in (s, t))])


def _angle(ring: Ring, s: int, t: int, covariance: Covariances) -> Poly:
    """The arcsine of the correlation."""
    rho = _correlation(ring, s, t, covariance)
    if rho.number is not None:
        return scalar(ring, sympy.asin(sympy.Rational(rho.number)))
    return function(ring, "asin", [rho])


def density(e: Expectation, mean: Poly, variance: Poly) -> Poly:
    """The density at 0 of a normal form, ``exp(-m^2 / (2 v)) / sqrt(2 pi v)``."""
    ring = e.ring
    e.require_positive(variance)
    height = power(ring, ring.multiply(scalar(ring, 2 * sympy.pi), variance), -_HALF)
    if not mean:
        return height
    square = ring.multiply(ring.multiply(mean, mean), power(ring, variance, -1))
    return ring.multiply(height, exp(ring, ring.scale(-_HALF, square)))
