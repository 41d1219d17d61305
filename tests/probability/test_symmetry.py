"""Expectations by the symmetry of a law, and what is 0 by symmetry only where its magnitude has an expectation."""

from __future__ import annotations

from typing import Any

import pytest
import sympy

import symattn as sa
from symattn.errors import NoRuleError

D = sa.sizes("d")
Z, Y = sa.tensor("z"), sa.tensor("y")
W, X = sa.tensor("w", D), sa.tensor("x", D)
CENTRED = {Z: sa.iid("normal", variance=4)}
KNOWN: dict[str, tuple[Any, Any, sympy.Expr]] = {
    "tanh": (sa.tanh(Z), CENTRED, sympy.S.Zero),
    "sigmoid": (sa.sigmoid(Z), CENTRED, sympy.S.Half),
    "signs of weights": (sa.tanh(W @ X), {W: sa.iid("rademacher"), X: "constant"}, sympy.S.Zero),
    "two random vectors": (sa.tanh(W @ X), {W: sa.iid("normal"), X: sa.iid("normal")}, sympy.S.Zero),
    "bounded": (Z / (1 + Z * Z), CENTRED, sympy.S.Zero),
}
REFUSED: dict[str, tuple[Any, Any]] = {
    "a shifted law": (sa.tanh(Z), {Z: sa.iid("normal", mean=1)}),
    "a law with thick tails": (sa.tanh(Z) * sa.exp(Z), {Z: sa.iid("laplace")}),
    "an odd function that is not integrable": (Z * sa.exp(Z * Z), CENTRED),
    "a division by an entry": (1 / Z, CENTRED),
    "a quotient of two": (sa.sign(Z) / Y, {**CENTRED, Y: sa.iid("normal")}),
    "a factor without a mean": (sa.sign(Z) * sa.exp(Y * Y), {**CENTRED, Y: sa.iid("normal")}),
    "a law without a name": (sa.tanh(Z), {Z: sa.iid()}),
}


@pytest.mark.parametrize("name", KNOWN)
def test_odd_functions_have_mean_0(name: str) -> None:
    quantity, law, expected = KNOWN[name]
    assert sa.expectation(quantity, law) == expected


@pytest.mark.parametrize("name", REFUSED)
def test_symmetry_is_not_assumed(name: str) -> None:
    quantity, law = REFUSED[name]
    with pytest.raises(NoRuleError):
        sa.expectation(quantity, law)


def test_what_is_zero_by_symmetry_needs_a_magnitude_with_an_expectation() -> None:
    x = sa.tensor("x", 2)
    with pytest.raises(NoRuleError, match="infinite"):
        sa.expectation(x[0] * x[1] / (x @ x) ** 2, {x: sa.iid("normal")})
    assert sa.expectation(x[0] * x[1] / (x @ x), {x: sa.iid("normal")}) == 0
