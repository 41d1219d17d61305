"""Equations of polynomials of a number of any sign rest on those for positive numbers, and no others do."""

from __future__ import annotations

from typing import Any

import pytest
import sympy

import symattn as sa
from symattn.core.budget import Budget
from symattn.proof.argument import NOTHING, Given
from symattn.proof.engine import argued
from symattn.proof.induction.polynomials import of_positives

n = sa.sizes("n")
x, y, A = sa.tensor("x", n), sa.tensor("y", n), sa.tensor("A", n, n)
r, s = sympy.symbols("r s", real=True)
DOWN = sa.from_index((n,), lambda i: n - 1 - i)

TRUE = {
    "powers": (r * r**DOWN, r ** sa.from_index((n,), lambda i: n - i)),
    "powers under a sum": (r * sa.sum(r**DOWN * x), sa.sum(r ** sa.from_index((n,), lambda i: n - i) * x)),
    "powers of entries": (r ** sa.from_index((n,), lambda i: i) * r, r ** sa.from_index((n,), lambda i: i + 1)),
    "in a formula": (sa.from_index((n,), lambda i: r ** (n - 1 - i)), r**DOWN),
    "two numbers": ((r + s) * (r - s) * x, (r * r - s * s) * x),
    "where a mask allows": (sa.where(x > 0, r * x, 0) * r**n, sa.where(x > 0, x * r ** (n + 1), 0)),
    "products": ((r * A) @ (A + r * sa.eye(n)), r * (A @ A) + r**2 * A),
}
FALSE = {
    "an absolute value": (sa.abs(r * x), r * sa.abs(x)),
    "a root": (sa.sqrt(r * r * x * x), r * sa.sqrt(x * x)),
    "a comparison": (sa.where(r * sa.ones(n) > 0, x, 0), x),
    "the larger of two": (sa.maximum(r * sa.exp(x), 0), r * sa.exp(x)),
    "a half": (
        r ** sa.from_index((n,), lambda i: 2 * (i + 1) / sympy.Integer(4)) * x,
        r ** (sympy.S.Half * (DOWN[::-1] + 1)) * x,
    ),
    "an exponent below 0": (r ** sa.from_index((n,), lambda i: i - 1) * r, r ** sa.from_index((n,), lambda i: i)),
    "an exponent that is read": (r ** (x * 1) * r**y, r ** (x + y)),
    "a logarithm": (sa.log(r**2 * sa.exp(x)), 2 * sa.log(r * sa.ones(n)) + x),
    "a quotient": (r * x / (r * y), x / y),
}


def proof(left: Any, right: Any, given: Given = NOTHING) -> Any:
    def found(claim: Any) -> Any:
        argument = argued(given, claim, Budget(20))
        return argument if isinstance(argument, sa.proof.argument.Argument) else None

    return of_positives(sa.eq(left, right), given, found)


@pytest.mark.parametrize("name", TRUE)
def test_an_identity_of_polynomials_holds_for_any_number(name: str) -> None:
    found = proof(*TRUE[name])
    assert found is not None
    assert found.proves(sa.eq(*TRUE[name]), NOTHING)
    assert found.check()
    assert "polynomials of" in found.text()


@pytest.mark.parametrize("name", FALSE)
def test_what_is_no_polynomial_is_not_taken_from_positive_numbers(name: str) -> None:
    assert proof(*FALSE[name]) is None


def test_nothing_may_be_given_of_the_numbers() -> None:
    given = Given.of([sa.le(sa.zeros(), r * sa.ones())])
    assert proof(*TRUE["powers"], given=given) is None
    assert not proof(*TRUE["powers"]).proves(sa.eq(*TRUE["powers"]), given)
