"""Inequalities that are given, as hypotheses of equalities: of sizes, of scalars and of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy

import symattn as sa
from symattn.core.budget import Budget
from symattn.proof.argument import Argument, Given
from symattn.proof.engine import argued
from symattn.proof.given import applied

n, k, m, s, d = sa.sizes("n k m s d")
x, y, a = (sa.tensor(name, n) for name in "xya")
w, z = sa.tensor("w", n), sa.tensor("z", k)
b, t = sympy.Symbol("b", real=True), sympy.Symbol("t", real=True)
c = sympy.Symbol("c", positive=True)
zeros, ones = sa.zeros(n), sa.ones(n)
le, lt, eq = sa.le, sa.lt, sa.eq
Q, K = sa.tensor("Q", n, d), sa.tensor("K", n, d)

Question = tuple[Any, Any, tuple[Any, ...]]


def places(formula: Any) -> Any:
    return sa.from_index((n,), formula)


def split(v: Any) -> Any:
    return sa.sum(v[:s]) + sa.sum(v[s:])


TRUE: dict[str, Callable[[], Question]] = {
    "relu of what is not negative": lambda: (sa.relu(x), x, (le(zeros, x),)),
    "relu of what is negative": lambda: (sa.relu(x), zeros, (lt(x, zeros),)),
    "absolute value": lambda: (sa.abs(x), -x, (le(x, zeros),)),
    "maximum of two in order": lambda: (sa.maximum(x, y), y, (le(x, y),)),
    "minimum of two in order": lambda: (sa.minimum(x, y), x, (le(x, y),)),
    "three in order": lambda: (sa.maximum(sa.maximum(x, y), w), w, (le(x, y), le(y, w))),
    "distance of two in order": lambda: (sa.abs(x - y), y - x, (le(x, y),)),
    "a root": lambda: (sa.sqrt(x) * sa.sqrt(x), x, (le(zeros, x),)),
    "logarithm of a product": lambda: (sa.log(x * y), sa.log(x) + sa.log(y), (lt(zeros, x), lt(zeros, y))),
    "comparison of two in order": lambda: (sa.where(x < y, 1, 0), ones, (lt(x, y),)),
    "places below a size": lambda: (places(lambda i: sympy.Piecewise((1, i < k), (0, True))), ones, (n <= k,)),
    "remainder by a larger size": lambda: (places(lambda i: sympy.Mod(i, k)), places(lambda i: i), (n <= k,)),
    "quotient by a larger size": lambda: (places(lambda i: sympy.floor(i / k)), zeros, (n < k,)),
    "through another size": lambda: (places(lambda i: sympy.Mod(i, m)), places(lambda i: i), (n <= k, k <= m)),
    "a split sum": lambda: (split(a), sa.sum(a), (s < n,)),
    "shapes that agree": lambda: (sa.sum(x) * ones, sa.sum(x) * sa.ones(k), (sympy.Eq(n, k),)),
    "a scalar by its value": lambda: (c * x, 2 * x, (eq(c, 2),)),
    "a scalar by another": lambda: (c * b * x, 6 * x, (eq(c, 2), eq(b, c + 1))),
    "a scalar that is not negative": lambda: (sa.relu(b * ones), b * ones, (le(0, b),)),
    "scalars in order": lambda: (sa.maximum(b * ones, t * ones), t * ones, (le(b, t),)),
    "clipped inside its bounds": lambda: (sa.clip(x, 0, 1), x, (le(zeros, x), le(x, ones))),
    "relu of a sum": lambda: (sa.relu(x + y), x + y, (le(zeros, x), le(zeros, y))),
    "relu of a product": lambda: (sa.relu(sa.relu(x) * y), sa.relu(x) * y, (le(zeros, y),)),
    "relu of what is given as a whole": lambda: (sa.relu(Q @ K.T), Q @ K.T, (le(sa.zeros(n, n), Q @ K.T),)),
    "relu of what is left of a weight": lambda: (sa.relu(1 - sa.softmax(x)), 1 - sa.softmax(x), ()),
    "a comparison by a bound": lambda: (sa.where(x > sympy.Rational(1, 2), 1, 0), ones, (le(ones, x),)),
    "a window that covers all": lambda: (
        sa.softmax(Q @ K.T, where=sa.from_index((n, n), lambda i, j: i - j < k)),
        sa.softmax(Q @ K.T), (n <= k,)),
}  # fmt: skip

FALSE: dict[str, Callable[[], Question]] = {
    "relu of what is at most 0": lambda: (sa.relu(x), x, (le(x, zeros),)),
    "relu of another": lambda: (sa.relu(y), y, (le(zeros, x),)),
    "clipped inside another bound": lambda: (sa.clip(x, 0, 1), x, (le(zeros, x), le(x, 2 * ones))),
    "relu of a sum, one of them": lambda: (sa.relu(x + y), x + y, (le(zeros, x),)),
    "a comparison at its bound": lambda: (sa.where(x > 1, 1, 0), ones, (le(ones, x),)),
    "maximum of two in the other order": lambda: (sa.maximum(x, y), x, (le(x, y),)),
    "not transitive": lambda: (sa.maximum(x, w), w, (le(x, y), le(w, y))),
    "an equality is no consequence": lambda: (x, y, (le(x, y),)),
    "a strict comparison": lambda: (sa.where(x < y, 1, 0), ones, (le(x, y),)),
    "places below a smaller size": lambda: (places(lambda i: sympy.Piecewise((1, i < k), (0, True))), ones, (k <= n,)),
    "remainder by a smaller size": lambda: (places(lambda i: sympy.Mod(i, k)), places(lambda i: i), (k < n,)),
    "not through another size": lambda: (places(lambda i: sympy.Mod(i, m)), places(lambda i: i), (n <= k, m <= k)),
    "a scalar by another value": lambda: (c * x, 3 * x, (eq(c, 2),)),
    "a scalar of either sign": lambda: (sa.relu(b * x), b * sa.relu(x), (le(b, 1),)),
    "a window that ends before": lambda: (
        sa.softmax(Q @ K.T, where=sa.from_index((n, n), lambda i, j: i - j < k)),
        sa.softmax(Q @ K.T, where=sa.attention.causal_mask(n)), (n <= k, 2 <= n)),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE)
def test_what_follows_from_inequalities_is_proved(name):
    left, right, given = TRUE[name]()
    verdict = sa.prove(left, right, given=given)
    assert verdict, verdict
    assert verdict.proof.check()
    assert verdict.proof.latex()


@pytest.mark.parametrize("name", FALSE)
def test_what_does_not_follow_is_refuted_and_never_proved(name):
    left, right, given = FALSE[name]()
    assert sa.prove(left, right, given=given).status == "refuted"
    hypotheses, claim = applied(Given.of(given), sa.eq(left, right))
    assert not isinstance(argued(hypotheses, claim, Budget(5.0)), Argument)


def test_what_inequalities_decide_is_said():
    text = sa.prove(sa.maximum(x, y), y, given=[le(x, y)]).proof.text()
    assert "maximum(x, y) = y, since x <= y" in text


def test_a_slack_is_said():
    text = sa.prove(places(lambda i: sympy.Mod(i, k)), places(lambda i: i), given=[n < k]).proof.text()
    assert "let k = n + r" in text


@pytest.mark.parametrize(("left", "right", "given", "other"), [
    (sa.relu(x), x, le(zeros, x), le(x, zeros)),
    (sa.log(x * y), sa.log(x) + sa.log(y), lt(zeros, x), lt(zeros, w)),
])  # fmt: skip
def test_a_proof_is_of_its_own_inequality(left, right, given, other):
    proof = sa.prove(left, right, given=[given, lt(zeros, y)]).proof
    claim = sa.eq(left, right)
    assert proof.argument.proves(claim, Given.of((given, lt(zeros, y))))
    assert not proof.argument.proves(claim, Given.of((other, lt(zeros, y))))
    assert not proof.argument.proves(claim, Given.of(()))
