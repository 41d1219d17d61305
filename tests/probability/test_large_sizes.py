"""Answers at large sizes, and answers held against samples."""

from __future__ import annotations

import pytest
import sympy

import symattn as sa
from symattn.attention import layer_norm

D = sa.sizes("d")
X, Q, K = (sa.tensor(name, D) for name in ("x", "q", "k"))
LAW = {X: sa.iid("normal")}


def test_the_leading_terms_have_the_next_one_as_their_error() -> None:
    mean, variance = sa.moments(sa.sqrt(X @ X), LAW, order=1).at_large_sizes.values()
    assert mean[:2] == (sympy.sqrt(D), -1 / (4 * sympy.sqrt(D)))
    assert variance[:2] == (sympy.Rational(1, 2), -1 / (8 * D))
    assert sa.moments(layer_norm(X, eps=0)[0] ** 2, LAW, order=2).at_large_sizes["variance"][:2] == (
        2 - 6 / D,
        6 / D**2,
    )


def test_expansions_are_told_as_text_and_as_formulas() -> None:
    found = sa.moments(sa.sqrt(X @ X), LAW, order=1)
    assert "mean: sqrt(d) for large d, up to -1/(4*sqrt(d)) and smaller terms" in found.text()
    assert r"\approx" in found.latex()


def test_limits_and_series_of_answers_work() -> None:
    weight = sa.expectation(sa.exp(Q @ K / sympy.sqrt(D)), {Q: sa.iid("normal"), K: sa.iid("normal")})
    assert sympy.limit(weight, D, sympy.oo) == sympy.exp(sympy.Rational(1, 2))


@pytest.mark.parametrize("order", [0, -1, True, 1.0, "1"])
def test_an_order_is_a_number_of_terms(order: object) -> None:
    with pytest.raises(sa.OperandError, match="1 or more"):
        sa.moments(X @ X, LAW, order=order)  # type: ignore[arg-type]


def test_what_is_not_enumerated_is_sampled() -> None:
    found = sa.moments(sa.relu(Q @ K), {Q: sa.iid("normal"), K: "constant"})
    assert str(found.check()) == "holds, by 40000 samples of mean and variance with five standard errors"
    found.mean *= sympy.Rational(21, 20)
    assert not found.check()
    assert sa.moments(X @ X, LAW).check().way == "enumeration at small sizes"
