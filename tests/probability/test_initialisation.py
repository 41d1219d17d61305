"""Questions of initialisation theory: closed forms with symbolic sizes, against the literature and against samples."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from sympy import Rational

import symattn as sa
from symattn.errors import NoRuleError

from .initialisation import ALPHA, MU, NOTES, OWN, REFUSED, RHO, SIGMA, XX, XY, YY, D, M, N, T

VALUES = {
    SIGMA: Rational(4, 5), MU: Rational(3, 10), T: Rational(1, 2), ALPHA: Rational(1, 10), RHO: Rational(3, 5),
    D: 7, N: 4, M: 3,
}  # fmt: skip
LENGTHS = {XX: Rational(7, 5), YY: Rational(9, 4), XY: Rational(2, 3)}
ROWS = {**NOTES, **OWN}


def number(e: Any) -> sympy.Expr:
    """A closed form at a point, with 30 digits; sums of products of fixed vectors are numbers there."""
    return sympy.N(sympy.sympify(e).xreplace(LENGTHS).subs(VALUES), 30)


@pytest.mark.parametrize("name", ROWS)
def test_questions_have_the_answers_of_the_literature(name: str) -> None:
    moment, quantity, law, expected = ROWS[name]
    assert abs(number(moment(quantity, law)) - number(expected)) < 1e-20


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_closed_form_is_refused(name: str) -> None:
    quantity, law = REFUSED[name]
    with pytest.raises(NoRuleError, match="exact expectation reaches"):
        sa.expectation(quantity, law)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_questions_hold_against_another_way(name: str) -> None:
    _, quantity, law, _ = ROWS[name]
    try:
        found = sa.moments(quantity, law)
    except NoRuleError:
        pytest.skip("its variance is not known")
    assert found.check()
