"""What replaces the softmax: second forms, bounds of the weights, empty rows, huge scores, and errors."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.errors import OperandError, ShapeError

at = sa.attention
h, T, S, d, e = sa.sizes("h T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
QH, KH, VH = sa.tensor("Q", h, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)
M, b = sa.tensor("M", T, S, binary=True), sa.tensor("b")
Z = at.scores(Q, K)
WITHOUT_SUM = [at.softmax1, at.sigmoid_attention, at.relu_attention, at.softpick]
SPARSE = [at.sparsemax_attention, at.entmax15_attention]


def weights(output):
    """The weights P of O = P @ V."""
    return output.inputs[0].inputs[0]


def proved(*claim):
    verdict = sa.prove(*claim)
    assert verdict.status == "proved", str(verdict)


# --- second forms ---


def test_a_sink_is_one_more_column_of_a_softmax():
    column = sa.concat([Z, b * sa.ones(T, 1)], axis=-1)
    proved(at.sink(Q, K, V, b), sa.softmax(column)[:, :-1] @ V)


def test_a_sink_is_a_term_of_the_denominator():
    E = sa.exp(Z)
    proved(at.sink(Q, K, V, b), E / (sa.exp(b) + sa.sum(E, axis=-1, keepdims=True)) @ V)


def test_a_sink_under_a_mask_is_a_term_of_the_denominator():
    E = sa.exp(Z) * M
    proved(at.sink(Q, K, V, b, mask=M), E / (sa.exp(b) + sa.sum(E, axis=-1, keepdims=True)) @ V)


def test_softmax1_is_a_sink_of_logit_zero():
    proved(at.softmax1(Q, K, V, mask=M), at.sink(Q, K, V, 0, mask=M))


def test_softmax1_is_softmax_with_a_key_and_a_value_of_zeros():
    keys = sa.concat([K, sa.zeros(1, d)], axis=0)
    values = sa.concat([V, sa.zeros(1, e)], axis=0)
    proved(at.softmax1(Q, K, V), at.scaled_dot_product(Q, keys, values))


def plain_softpick(Z, eps):
    F = sa.exp(Z) - 1
    return sa.relu(F) / (sa.sum(sa.abs(F), axis=-1, keepdims=True) + eps)


def test_the_largest_score_has_no_part_in_softpick():
    proved(at.softpick(Q, K, V, eps=0.01), plain_softpick(Z, sympy.Rational(1, 100)) @ V)


def test_eps_has_a_part_in_softpick():
    assert sa.prove(at.softpick(Q, K, V), at.softpick(Q, K, V, eps=0.1)).status == "refuted"


def test_heads_are_heads():
    logits = sa.tensor("b", h)
    proved(at.sink(QH, KH, VH, logits)[0], at.sink(QH[0], KH[0], VH[0], logits[0]))
    proved(at.sigmoid_attention(QH, KH, VH, b=logits)[0], at.sigmoid_attention(QH[0], KH[0], VH[0], b=logits[0]))


@pytest.mark.parametrize("variant", WITHOUT_SUM, ids=lambda f: f.__name__)
def test_a_single_query_is_a_row(variant):
    proved(variant(Q, K, V)[1], variant(Q[1], K, V))


# --- axioms of a weighted average ---


def test_softmax_weights_are_an_average():
    P = weights(at.scaled_dot_product(Q, K, V))
    proved(sa.le(0, P))
    proved(sa.sum(P, axis=-1), sa.ones(T))


@pytest.mark.parametrize("variant", SPARSE, ids=lambda f: f.__name__)
def test_sparse_weights_are_an_average(variant):
    P = weights(variant(Q, K, V))
    proved(sa.le(0, P))
    proved(sa.sum(P, axis=-1), sa.ones(T))


@pytest.mark.parametrize("variant", WITHOUT_SUM, ids=lambda f: f.__name__)
def test_other_weights_are_not_negative_and_no_average(variant):
    P = weights(variant(Q, K, V))
    proved(sa.le(0, P))
    assert sa.prove(sa.sum(P, axis=-1), sa.ones(T)).status == "refuted"


def test_the_weights_of_a_row_with_a_sink_sum_to_less_than_one():
    proved(sa.lt(sa.sum(weights(at.sink(Q, K, V, b)), axis=-1), 1))
    proved(sa.lt(sa.sum(plain_softpick(sa.tensor("Z", T, S), sympy.Rational(1, 100)), axis=-1), 1))


def test_the_weights_of_sigmoid_attention_may_sum_to_more_than_one():
    assert sa.prove(sa.le(sa.sum(weights(at.sigmoid_attention(Q, K, V)), axis=-1), 1)).status == "refuted"


# --- numbers ---

SIZES = {T: 2, S: 3, d: 2, e: 2}
HUGE = np.array([[1e4, 0.0], [-1e4, 1.0]])
KEYS, VALUES = np.array([[1.0, 0.0], [2.0, 1.0], [-1.0, 0.5]]), np.arange(6.0).reshape(3, 2)
FIRST = np.array([[True, False, False], [False, False, False]])


def run(output, inputs, *arrays):
    """The output and its gradients by all inputs but the masks, at arrays."""
    G = sa.tensor("G", *output.shape)
    g = sa.gradient({output: G}, [x for x in inputs if x is not M])
    return sa.lambdify([*inputs, G], [output, g])(*arrays, np.ones((2, 2)))


@pytest.mark.parametrize("variant", [*WITHOUT_SUM, *SPARSE], ids=lambda f: f.__name__)
def test_huge_scores_give_finite_numbers(variant):
    for x in run(variant(Q, K, V), [Q, K, V], HUGE, KEYS, VALUES):
        assert np.isfinite(x).all()


@pytest.mark.parametrize("variant", [at.softmax1, at.softpick, *SPARSE], ids=lambda f: f.__name__)
def test_a_far_larger_score_takes_all(variant):
    found, *_ = run(variant(Q, K, V), [Q, K, V], HUGE, KEYS, VALUES)
    np.testing.assert_allclose(found, VALUES[[1, 2]])


@pytest.mark.parametrize("variant", [*WITHOUT_SUM, *SPARSE], ids=lambda f: f.__name__)
def test_a_huge_masked_score_has_no_part(variant):
    found, dq, *_ = run(variant(Q, K, V, mask=M), [Q, K, V, M], HUGE, KEYS, VALUES, FIRST)
    want, *_ = run(variant(Q, K, V, mask=M), [Q, K, V, M], HUGE, np.array([[1.0, 0], [0, 0], [0, 0]]), VALUES, FIRST)
    np.testing.assert_allclose(found, want)
    assert not found[1].any()
    assert not dq[1].any()


@pytest.mark.parametrize(("logit", "row"), [(1e5, [0, 0]), (-1e5, [2, 3])])
def test_a_sink_takes_all_or_nothing(logit, row):
    found, *gradients = run(at.sink(Q, K, V, b), [Q, K, V, b], HUGE, KEYS, VALUES, np.array(logit))
    np.testing.assert_allclose(found[0], row)
    assert all(np.isfinite(x).all() for x in gradients)


def test_a_row_without_keys_leaves_all_to_the_sink():
    given = (HUGE / 1e4, KEYS, VALUES, np.array(0.5), FIRST)
    found, dq, _, _, db = run(at.sink(Q, K, V, b, mask=M), [Q, K, V, b, M], *given)
    assert not found[1].any()
    assert not dq[1].any()
    assert np.isfinite(db)


def test_scores_of_zero_have_no_weight_in_softpick():
    found, *_ = run(at.softpick(Q, K, V), [Q, K, V], 0 * HUGE, KEYS, VALUES)
    assert not found.any()


@pytest.mark.parametrize("variant", [*WITHOUT_SUM, *SPARSE, at.scaled_dot_product], ids=lambda f: f.__name__)
def test_size_one(variant):
    ones = {"Q": (1, 1), "K": (1, 1), "V": (1, 1)}
    one = [sa.tensor(name, *shape) for name, shape in ones.items()]
    f = sa.lambdify(one, [variant(*one)])
    (found,) = f(*(np.ones((1, 1)) for _ in one))
    want = {"softmax1": np.e / (1 + np.e), "sigmoid_attention": np.e / (1 + np.e)}.get(variant.__name__, 1)
    np.testing.assert_allclose(found, [[want]], rtol=1e-5)


# --- errors ---


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (
            lambda: at.sink(QH, KH, VH, sa.tensor("b", T)),
            ShapeError,
            "sink: b[T] does not fit the scores Z[h, T, S]: one number a head, with the sizes [h], or a scalar is "
            "meant",
        ),
        (
            lambda: at.sink(Q, K, V, sa.tensor("b", h)),
            ShapeError,
            "sink: b[h] does not fit the scores Z[T, S]: a scalar is meant",
        ),
        (
            lambda: at.sigmoid_attention(Q, K, V, b=sa.tensor("b", S)),
            ShapeError,
            "sigmoid_attention: b[S] does not fit the scores Z[T, S]: a scalar is meant",
        ),
        (
            lambda: at.softpick(Q, sa.tensor("K", S, e), V),
            ShapeError,
            "scores: Q[T, d] and K[S, e] differ in their width: axis -1 of the first is d, axis -1 of the second is e",
        ),
        (
            lambda: at.relu_attention(Q, K, sa.tensor("V", T, e)),
            ShapeError,
            "attention_pooling: P[T, S] and V[T, e] differ in the number of keys and values: axis -1 of the first is "
            "S, axis -2 of the second is T",
        ),
        (
            lambda: at.sparsemax_attention(Q, K, V, mask=sa.tensor("m", T, binary=True)),
            ShapeError,
            "sparsemax_attention: the mask m[T] does not fit the scores Z[T, S]: axis -1, of the keys, has the size T, "
            "not S",
        ),
        (
            lambda: at.sigmoid_attention(Q, K, V, mask=M, empty="error"),
            OperandError,
            'sigmoid_attention: a row without keys gives zeros; empty="error" is for softmax',
        ),
        (
            lambda: at.entmax15_attention(Q, K, V, mask=M, empty="nan"),
            OperandError,
            "entmax15_attention: empty is 'zero' or 'error', not 'nan'",
        ),
        (
            lambda: at.softpick(Q, K, V, masks=M),
            OperandError,
            "softpick has no keyword 'masks', only mask, mask_polarity, empty",
        ),
    ],
)
def test_errors_say_what_is_wrong(make, error, text):
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value) == text


def test_a_row_without_keys_can_be_an_error_of_a_sink_as_of_a_softmax():
    f = sa.lambdify([Q, K, V, M], [at.sink(Q, K, V, 0, mask=M, empty="error")])
    with pytest.raises(ValueError, match="nothing to attend to"):
        f(HUGE, KEYS, VALUES, FIRST)
