"""Expectations of nonlinear functions of normal entries, against the closed forms of the literature."""

from __future__ import annotations

import pytest
import sympy
from sympy import Rational, asin, erf, exp, pi, sqrt

import symattn as sa

D, N = sa.sizes("d n")
SIGMA = sympy.Symbol("sigma", positive=True)
ALPHA = sympy.Symbol("alpha", positive=True)
MU, T = sympy.symbols("mu t", real=True)
Z = sa.tensor("z")
X, Y, W_1 = (sa.tensor(name, D) for name in ("x", "y", "w"))
W = sa.tensor("W", N, D)
CENTRED = {Z: sa.iid("normal", variance=SIGMA**2)}
SHIFTED = {Z: sa.iid("normal", mean=MU, variance=SIGMA**2)}
FIXED = {W_1: sa.iid("normal", variance=SIGMA**2 / D), X: "constant", Y: "constant"}


def dot(a: sa.Tensor, b: sa.Tensor) -> sympy.Expr:
    return sa.expectation(a @ b, dict.fromkeys((a, b), "constant"))


def same(found: sympy.Expr, expected: sympy.Expr) -> bool:
    """Whether two closed forms agree at a point, as numbers with 30 digits; sums are letters of three vectors."""
    letters = {dot(X, X): Rational(7, 5), dot(Y, Y): Rational(9, 4), dot(X, Y): Rational(2, 3)}
    values = {SIGMA: Rational(4, 5), MU: Rational(3, 10), T: Rational(1, 2), ALPHA: Rational(1, 10), D: 5, N: 4}
    a, b = (sympy.N(e.xreplace(letters).subs(values), 30) for e in (found, expected))
    return bool(abs(a - b) < 1e-25)


STEPS = sa.where(W_1 @ X > 0, 1, 0) * sa.where(W_1 @ Y > 0, 1, 0)
A, B, C = (SIGMA**2 * dot(*pair) / D for pair in ((X, X), (Y, Y), (X, Y)))
RHO = asin(C / sqrt(A * B))
TAIL = exp(-(MU**2) / (2 * SIGMA**2))
CASES = {
    "He: relu squared": (sa.relu(Z) ** 2, CENTRED, SIGMA**2 / 2),
    "relu with a mean": (
        sa.relu(Z), SHIFTED, MU * (1 + erf(MU / (sqrt(2) * SIGMA))) / 2 + SIGMA * TAIL / sqrt(2 * pi),
    ),
    "leaky": (sa.where(Z > 0, Z, ALPHA * Z) ** 2, CENTRED, (1 + ALPHA**2) * SIGMA**2 / 2),
    "folded": (sa.abs(Z), SHIFTED, MU * erf(MU / (SIGMA * sqrt(2))) + SIGMA * sqrt(2 / pi) * TAIL),
    "Bussgang": (Z * sa.gelu(Z), CENTRED, SIGMA**2 / 2),
    "arc-cosine of order 0": (
        STEPS, FIXED, Rational(1, 4) + RHO / (2 * pi),
    ),
    "arc-cosine of order 1": (
        sa.relu(W_1 @ X) * sa.relu(W_1 @ Y), FIXED, (sqrt(A * B - C**2) + C * (pi / 2 + RHO)) / (2 * pi),
    ),
    "Williams": (
        sa.erf(W_1 @ X) * sa.erf(W_1 @ Y), FIXED, 2 / pi * asin(2 * C / sqrt((1 + 2 * A) * (1 + 2 * B))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_closed_forms_of_the_literature(name: str) -> None:
    quantity, law, expected = CASES[name]
    assert same(sa.expectation(quantity, law), expected)
