"""The assertions for test suites: what passes, what fails and with which words, and what cannot be asked."""

from __future__ import annotations

import re

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.proof.claims import eq
from symattn.proof.engine import prove
from symattn.testing import assert_equivariant, assert_gradient, assert_identity, assert_proved

T, S, d, e, h, k = sa.sizes("T S d e h k")
Q, K, V, X = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e), sa.tensor("X", T, d)
Z = sa.tensor("Z", T, S)
O = sa.let("O", sa.softmax(Q @ K.T / sympy.sqrt(d)) @ V)


def failure(assertion, *arguments, **options):
    """The message of the AssertionError that is raised."""
    with pytest.raises(AssertionError) as caught:
        assertion(*arguments, **options)
    return str(caught.value)


# --- identities ---


def test_a_true_identity_passes():
    assert assert_identity(sa.softmax(Z + sa.tensor("b", T, 1)), sa.softmax(Z)) is None


def test_a_false_identity_fails_with_the_claim_and_the_counterexample():
    message = failure(assert_identity, sa.softmax(2 * Z), sa.softmax(Z))
    assert message.startswith("the identity softmax(2 * Z) = softmax(Z) is refuted\n")
    assert message.partition("\n")[2] == str(prove(sa.softmax(2 * Z), sa.softmax(Z)).counterexample)


def test_hypotheses_are_passed_on():
    unit = eq(sa.sum(Q**2, axis=-1), sa.ones(T))
    assert_identity(sa.sum((2 * Q) ** 2, axis=-1), 4 * sa.ones(T), given=[unit])
    assert "is refuted" in failure(assert_identity, sa.sum((2 * Q) ** 2, axis=-1), 4 * sa.ones(T))


def test_an_open_question_fails_and_says_that_nothing_was_found_against_it():
    kernel = sa.elementwise(sympy.Lambda(sympy.Symbol("x"), sympy.asinh(sympy.Symbol("x"))), Z)
    message = failure(assert_identity, kernel, sa.log(Z + sa.sqrt(Z**2 + 1)))
    assert "is not proved, and nothing was found against it\n" in message


def test_sides_of_different_shapes_are_no_claim():
    with pytest.raises(sa.ShapeError, match=r"Q\[T, d\] and K\[S, d\] cannot be compared"):
        assert_identity(Q, K)


# --- claims of every kind ---


def test_bounds_independence_and_equalities_are_asserted():
    x = sa.tensor("x", T)
    assert assert_proved(sa.le(sa.softmax(Z), 1)) is None
    assert_proved(sa.lt(0, sa.exp(Z)))
    assert_proved(sa.eq(sa.softmax(Z + 1), sa.softmax(Z)))
    assert_proved(sa.independent(sa.softmax(Z), Z, when=lambda out, inp: out[0] > inp[0]))
    assert_proved(sa.le(0, x * sa.exp(x)), given=[sa.le(0, x)])


def test_a_claim_that_is_refuted_fails_with_the_counterexample():
    message = failure(assert_proved, sa.le(sa.softmax(Z), sympy.Rational(1, 2)), budget=5, seed=3)
    assert message.startswith("the claim softmax(Z) <= ")
    assert "is refuted\n" in message
    kernel = sa.elementwise(sympy.Lambda(sympy.Symbol("x"), sympy.asinh(sympy.Symbol("x"))), Z)
    still_open = sa.eq(kernel, sa.log(Z + sa.sqrt(Z**2 + 1)))
    assert "is not proved, and nothing was found against it\n" in failure(assert_proved, still_open, budget=2)


def test_time_hypotheses_and_seeds_reach_every_assertion(monkeypatch):
    asked = []

    def watched(claim, given, *, by, budget, seed):
        asked.append((len(given), budget, seed))
        return prove(claim, given=given, by=by)

    monkeypatch.setattr("symattn.testing.proved.prove", watched)
    options = {"given": [sa.le(0, X)], "budget": 7, "seed": 5}
    assert_proved(sa.eq(X, X), **options)
    assert_identity(X, X, **options)
    assert_gradient(2 * X, X, lambda g: 2 * g, **options)
    assert_equivariant(sa.exp, X, "permutation", **options)
    assert asked == [(1, 7, 5)] * 4


def test_what_is_no_claim_is_an_error():
    with pytest.raises(sa.OperandError, match=r"takes a claim such as sa.eq\(a, b\), .*, not Z\[T, S\]"):
        assert_proved(Z)
    with pytest.raises(sa.OperandError, match="not True"):
        assert_proved(True)


# --- gradients ---


def claimed_gradients(scale):
    P = sa.softmax(Q @ K.T / sympy.sqrt(d))
    dO = sa.tensor("dO", T, e)
    dP = dO @ V.T
    dZ = P * (dP - sa.sum(P * dP, axis=-1, keepdims=True))
    return {Q: scale * dZ @ K, K: scale * dZ.T @ Q, V: P.T @ dO}


def test_right_gradients_pass_in_every_form():
    right = claimed_gradients(1 / sympy.sqrt(d))
    assert_gradient(O, Q, right[Q])
    assert_gradient(O, [Q], right[Q])
    assert_gradient(O, [Q, K, V], right)
    assert_gradient(O, [Q, K, V], list(right.values()))
    assert_gradient(Q @ K.T, K, lambda g: g.T @ Q)
    assert_gradient(Q @ K.T, [Q, K], lambda g: (g @ K, g.T @ Q))
    assert_gradient(Q @ K.T, [Q, K], lambda g: {K: g.T @ Q, Q: g @ K})


def test_a_gradient_of_a_loss_and_by_a_scalar():
    t = sympy.Symbol("t", real=True)
    assert_gradient(sa.sum(X**2), X, 2 * X)
    assert_gradient(t * X, t, lambda g: sa.sum(g * X))


def test_a_wrong_gradient_fails_with_the_tensor_and_the_counterexample():
    message = failure(assert_gradient, O, [Q, K, V], claimed_gradients(1))
    first = message.splitlines()[0]
    assert first.startswith("the claimed gradient of O[T, e] with respect to Q[T, d], ")
    assert first.endswith(", is refuted")
    assert len(message.splitlines()) > 2


def test_a_wrong_gradient_is_found_behind_right_ones():
    claimed = {**claimed_gradients(1 / sympy.sqrt(d)), V: sa.tensor("dO", T, e)[0] * sa.ones(S, e)}
    assert "with respect to V[S, e]" in failure(assert_gradient, O, [Q, K, V], claimed)


@pytest.mark.parametrize("claimed", [X, [X], [X, X, X], {Q: X}, {Q: X, K: K, V: V}, lambda g: g])
def test_claims_that_do_not_go_with_the_variables_are_an_error(claimed):
    with pytest.raises(sa.OperandError, match=re.escape("one claimed gradient for each of Q[T, d], K[S, d]")):
        assert_gradient(Q @ K.T, [Q, K], claimed)


# --- equivariance ---


def test_equivariant_functions_pass():
    assert_equivariant(lambda x: sa.softmax(x @ x.T) @ x, X, "permutation")
    assert_equivariant(lambda x: sa.softmax(x @ x.T) @ x, X, "orthogonal")
    assert_equivariant(sa.softmax, sa.tensor("x", T), "permutation")
    assert_equivariant(lambda x: sa.sum(x, axis=-1), X, "permutation")
    assert_equivariant(lambda x: sa.softmax(x @ x.mT) @ x, sa.tensor("X", h, T, d), "permutation")


def test_a_function_that_is_not_equivariant_fails_with_the_counterexample():
    causal = sa.from_index((T, T), lambda i, j: j <= i)
    message = failure(assert_equivariant, lambda x: sa.softmax(x @ x.T, where=causal) @ x, X, "permutation")
    assert message.startswith("the equivariance f(Pi @ X) = Pi @ f(X) is refuted\n")
    assert "f(X @ U) = f(X) @ U is refuted" in failure(assert_equivariant, sa.exp, X, "orthogonal")


def test_the_group_element_captures_no_name():
    own = sa.tensor("Pi", T, d)
    assert_equivariant(lambda x: sa.exp(x) @ sa.ones(d, d) + sa.sum(own), X, "permutation")
    message = failure(assert_equivariant, lambda x: x + own, X, "permutation")
    assert "f(Pi_1 @ X) = Pi_1 @ f(X)" in message


def test_what_is_no_question_of_equivariance_is_an_error():
    with pytest.raises(sa.OperandError, match="group is 'permutation' or 'orthogonal', not 'rows'"):
        assert_equivariant(sa.exp, X, "rows")
    with pytest.raises(sa.OperandError, match=r"a function of a tensor, not X\[T, d\]"):
        assert_equivariant(X, X, "permutation")
    with pytest.raises(sa.OperandError, match=r"c\[\] has no rows"):
        assert_equivariant(sa.exp, sa.tensor("c"), "permutation")
    with pytest.raises(sa.ShapeError, match=r"of an invariant function, state assert_identity\(f\(Pi @ X\), f\(X\)\)"):
        assert_equivariant(lambda x: sa.sum(x, axis=0), X, "permutation")


def rows_of_numpy(x):
    return np.tanh(x @ x.T) @ x


def test_functions_of_arrays_are_tried_by_numbers():
    rng = np.random.default_rng(0)
    assert assert_equivariant(rows_of_numpy, rng.normal(size=(5, 3)), "permutation") is None
    assert_equivariant(rows_of_numpy, rng.normal(size=(5, 3)).astype("float32"), "orthogonal")
    assert_equivariant(np.exp, rng.normal(size=4), "permutation")
    message = failure(assert_equivariant, np.exp, rng.normal(size=(5, 3)), "orthogonal")
    assert message.startswith(
        "the equivariance fails at an array of shape (5, 3), by numbers:\n  f(X @ U) = f(X) @ U: "
    )
    assert "by numbers" in failure(assert_equivariant, lambda x: np.cumsum(x, axis=0), np.eye(3, 2), "permutation")
    with pytest.raises(sa.ShapeError, match="of an invariant function, compare f at both arrays"):
        assert_equivariant(lambda x: x.sum(axis=0), np.ones((5, 3)), "permutation")


def test_a_function_of_arrays_with_a_tensor_says_that_nothing_is_proved():
    with pytest.warns(UserWarning, match="was tried by numbers, and not proved; give an array as X"):
        assert_equivariant(rows_of_numpy, X, "permutation")
    seen = []
    with pytest.warns(UserWarning, match="not proved"):
        assert_equivariant(lambda x: seen.append(x.shape) or np.exp(x), X, "permutation")
    assert 3 in {shape[0] for shape in seen[1:]} | {shape[1] for shape in seen[1:]}
    assert "by numbers" in failure(assert_equivariant, lambda x: np.sort(x, axis=0), X, "permutation")


def test_a_mistake_in_a_function_of_tensors_is_not_tried_by_numbers():
    with pytest.raises(AttributeError, match="no_such_name"):
        assert_equivariant(lambda x: x.no_such_name, X, "permutation")
