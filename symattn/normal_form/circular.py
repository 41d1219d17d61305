"""Sines, cosines and their hyperbolic kin by exponentials: their addition theorems need no rule of their own."""

from __future__ import annotations

from fractions import Fraction

from .functions import IMAGINARY, exp, power, single
from .ring import Ring
from .terms import ONE, Poly


def tanh(ring: Ring, poly: Poly) -> Poly:
    """``1 - 2 / (exp(2 x) + 1)``."""
    return ring.subtract(ONE, ring.scale(2, power(ring, ring.add(exp(ring, ring.scale(2, poly)), ONE), -1)))


def _turned(ring: Ring, poly: Poly, sign: int) -> Poly:
    return exp(ring, ring.multiply(ring.scale(sign, poly), single(IMAGINARY)))


def cos(ring: Ring, poly: Poly) -> Poly:
    """``(exp(i x) + exp(-i x)) / 2``."""
    ring.use("sines and cosines are written by exp(i x)")
    return ring.scale(Fraction(1, 2), ring.add(_turned(ring, poly, 1), _turned(ring, poly, -1)))


def sin(ring: Ring, poly: Poly) -> Poly:
    """``(exp(i x) - exp(-i x)) / (2 i)``."""
    ring.use("sines and cosines are written by exp(i x)")
    gap = ring.subtract(_turned(ring, poly, 1), _turned(ring, poly, -1))
    return ring.scale(Fraction(-1, 2), ring.multiply(single(IMAGINARY), gap))


def sinh(ring: Ring, poly: Poly) -> Poly:
    return ring.scale(Fraction(1, 2), ring.subtract(exp(ring, poly), exp(ring, ring.scale(-1, poly))))


def cosh(ring: Ring, poly: Poly) -> Poly:
    return ring.scale(Fraction(1, 2), ring.add(exp(ring, poly), exp(ring, ring.scale(-1, poly))))
