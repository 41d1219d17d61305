"""Expectations with lengths: norms, LayerNorm, RMSNorm and cosines of normal vectors, against their closed forms."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from sympy import Rational, expint, gamma, sqrt

import symattn as sa
from symattn.attention import layer_norm, rms_norm
from symattn.errors import NoRuleError

D, N = sa.sizes("d n")
SIGMA = sympy.Symbol("sigma", positive=True)
X, Q, K = (sa.tensor(name, D) for name in ("x", "q", "k"))
ROWS = sa.tensor("X", N, D)
LAW = {X: sa.iid("normal", variance=SIGMA**2)}
PAIR = {Q: sa.iid("normal"), K: sa.iid("normal")}
HAT = layer_norm(X, eps=0)
NORMED = layer_norm(ROWS, eps=0)
JACOBIAN = sa.jacobian(HAT, X)
SMALL = {X: sa.iid("normal", variance=Rational(1, 10**4))}
CASES: dict[str, tuple[Any, Any, sympy.Expr]] = {
    "norm": (sa.sqrt(X @ X), LAW, SIGMA * sqrt(2) * gamma((D + 1) / 2) / gamma(D / 2)),
    "layer norm, two": (HAT[0] * HAT[1], LAW, -1 / (D - 1)),
    "layer norm, fourth": (HAT[0] ** 4, LAW, 3 * (D - 1) / (D + 1)),
    "layer norm with a mean": (HAT[0] ** 4, {X: sa.iid("normal", mean=3)}, 3 * (D - 1) / (D + 1)),
    "jacobian": (sa.sum(JACOBIAN * JACOBIAN), LAW, D * (D - 2) / (SIGMA**2 * (D - 3))),
    "rms norm with eps": (
        rms_norm(X)[0] ** 2, SMALL, D / 2 * sympy.exp(D / 20) * expint(D / 2 + 1, D / 20),
    ),
    "cosine": ((Q @ K) ** 4 / ((Q @ Q) ** 2 * (K @ K) ** 2), PAIR, 3 / (D * (D + 2))),
    "cosine on the sphere": ((Q @ K) ** 2 / (K @ K), {Q: sa.sphere(), K: sa.iid("normal")}, 1 / D),
    "exponential of a product": (sa.exp(Q @ K / sqrt(D)), PAIR, (1 - 1 / D) ** (-D / 2)),
    "two rows": (sa.sum(NORMED[0] * NORMED[1]), {ROWS: sa.iid("normal")}, sympy.S.Zero),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_closed_forms_of_lengths(name: str) -> None:
    quantity, law, expected = CASES[name]
    difference = sa.expectation(quantity, law) - expected
    assert abs(sympy.N(difference.subs({D: 7, N: 4, SIGMA: Rational(4, 5)}), 30)) < 1e-25


CONDITIONS = {
    "layer norm": (HAT[0] * HAT[1], LAW, ["d - 1"]),  # also its variance, of which terms need d > 3 and cancel
    "norm": (sa.sqrt(X @ X), LAW, []),
    "quotient": (1 / (X @ X), LAW, ["d - 2", "d - 4"]),
    "exponential": (sa.exp(Q @ K / sqrt(D)), PAIR, ["d - 1", "d - 4"]),
    "step": (sa.where(sa.tensor("w", D) @ X > 0, 1, 0), {"w": 1}, ["Sum(x[k]**2, (k, 0, d - 1))"]),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_an_answer_says_where_it_holds(name: str) -> None:
    quantity, law, conditions = CONDITIONS[name]
    if name == "step":
        law = {sa.tensor("w", D): sa.iid("normal"), X: "constant"}
    told = [str(said) for said in sa.moments(quantity, law).assumptions]
    assert [said for said in told if "holds" in said] == [f"the answer holds where {c} is positive" for c in conditions]


REFUSED = {
    "one entry": (1, lambda x: 1 / (x @ x), "infinite"),
    "no expectation": (1, lambda x: layer_norm(x, eps=0)[0] ** 2, "divides by 0"),
    "two entries": (2, lambda x: 1 / (x @ x), "infinite"),
    "an exponential": (3, lambda x: sa.exp(x @ x / 2), "infinite"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_infinite_moments_are_refused(name: str) -> None:
    size, quantity, message = REFUSED[name]
    x = sa.tensor("x", size)
    with pytest.raises(NoRuleError, match=message):
        sa.expectation(quantity(x), {x: sa.iid("normal")})


def test_a_fourth_moment_that_exists_at_two_is_given() -> None:
    x = sa.tensor("x", 2)
    assert sa.expectation(layer_norm(x, eps=0)[0] ** 4, {x: sa.iid("normal")}) == 1
