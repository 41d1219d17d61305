"""Similarities: second forms, heads and single queries, and errors."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.errors import OperandError, ShapeError

at = sa.attention
h, T, S, d, e, f, m, r = sa.sizes("h T S d e f m r")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
QH, KH, VH = sa.tensor("Q", h, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)
W, U, a, s = sa.tensor("W", d, m), sa.tensor("U", d, m), sa.tensor("a", m), sa.tensor("s")
M, EACH = sa.tensor("M", T, S, binary=True), sa.tensor("s", h)


def proved(*claim):
    verdict = sa.prove(*claim)
    assert verdict.status == "proved", str(verdict)


def test_other_scales_of_the_dot_product():
    usual = at.scaled_dot_product(Q, K, V)
    proved(at.temperature(Q, K, V, sympy.sqrt(d)), usual)
    proved(at.mup(Q, K, V), at.temperature(Q, K, V, d))
    proved(at.luong_dot(Q, K, V), at.temperature(Q, K, V, 1))
    assert sa.prove(at.mup(Q, K, V), usual).status == "refuted"


def test_scalable_softmax_raises_n_to_the_scores():
    powers = sa.exp(sympy.log(S) * s * at.scores(Q, K))
    proved(at.scalable_softmax(Q, K, V, s), powers / sa.sum(powers, axis=-1, keepdims=True) @ V)


def test_scalable_softmax_counts_the_keys_that_are_seen():
    causal = at.causal_mask(T)
    keys, values = sa.tensor("K", T, d), sa.tensor("V", T, e)
    found = at.scalable_softmax(Q, keys, values, 1, mask=causal)
    seen = sa.from_index((T, 1), lambda i, j: sympy.log(i + 1))
    wanted = at.scaled_dot_product(seen * Q, keys, values, mask=causal)
    arrays = [np.random.default_rng(0).normal(size=n) for n in [(4, 3), (4, 3), (4, 2)]]
    np.testing.assert_allclose(*(sa.lambdify([Q, keys, values], [x])(*arrays)[0] for x in (found, wanted)))


def test_scalable_softmax_takes_a_mask_of_queries():
    keep = sa.tensor("M", T, 1, binary=True)
    found = at.scalable_softmax(Q, K, V, s, mask=keep)
    proved(found, at.scalable_softmax(Q, K, V, s, mask=keep & sa.tensor("A", T, S, binary=True) | keep))


def test_bilinear_forms():
    proved(at.luong_general(Q, K, V, sa.eye(d)), at.luong_dot(Q, K, V))
    proved(at.low_rank_bilinear(Q, K, V, W, U), at.luong_general(Q, K, V, W @ U.T))
    proved(at.low_rank_bilinear(Q, K, V, W, U, scale=1 / sympy.sqrt(m)), at.scaled_dot_product(Q @ W, K @ U, V))


def test_concat_is_additive_with_its_weight_in_two_blocks():
    proved(at.luong_concat(Q, K, V, sa.concat([W, U], axis=0), a), at.additive(Q, K, V, W, U, a))


def test_additive_scores_are_a_sum_over_hidden_units():
    Z = at.additive(Q, K, V, W, U, a).inputs[0].inputs[0].inputs[0].inputs[0]
    hidden = sa.tanh((Q @ W)[1][None, :] + K @ U)
    proved(Z[1], sa.sum(hidden * a, axis=-1))


def test_cosine_is_attention_of_unit_rows():
    proved(at.cosine(Q, K, V, s), at.qk_norm(Q, K, V, norm="l2", scale=s))
    proved(at.qk_norm(Q, K, V, scale=s, eps=0), at.cosine(Q, K, V, d * s))
    c = sa.tensor("c", positive=True)
    assert sa.prove(at.cosine(Q, K, 2 * V, s), at.cosine(Q, K, V, s)).status == "refuted"
    proved(at.cosine(c * Q, K, V, s), at.cosine(Q, K, V, s))


def test_distances():
    D = at.squared_distances(Q, K)
    proved(sa.le(0, D))
    squares = [sa.sum(x**2, axis=-1, keepdims=True) for x in (Q, K)]
    proved(D, squares[0] - 2 * Q @ K.T + squares[1].T)
    proved(at.l2(Q, K, V), sa.softmax((2 * Q @ K.T - squares[1].T) / sympy.sqrt(d)) @ V)


@pytest.mark.parametrize("variant", [at.temperature, at.scalable_softmax, at.cosine], ids=lambda f: f.__name__)
def test_a_number_for_each_head(variant):
    proved(variant(QH, KH, VH, EACH)[1], variant(QH[1], KH[1], VH[1], EACH[1]))


SINGLE = {
    "temperature": lambda q: at.temperature(q, K, V, s),
    "mup": lambda q: at.mup(q, K, V),
    "scalable_softmax": lambda q: at.scalable_softmax(q, K, V, s, mask=sa.tensor("pad", S, binary=True)),
    "additive": lambda q: at.additive(q, K, V, W, U, a),
    "luong_general": lambda q: at.luong_general(q, K, V, sa.tensor("B", d, d)),
    "luong_concat": lambda q: at.luong_concat(q, K, V, sa.tensor("C", 2 * d, m), a),
    "qk_norm": lambda q: at.qk_norm(q, K, V),
    "cosine": lambda q: at.cosine(q, K, V, s),
    "l2": lambda q: at.l2(q, K, V),
}


@pytest.mark.parametrize("name", SINGLE)
def test_a_single_query_is_a_row(name):
    proved(SINGLE[name](Q)[1], SINGLE[name](Q[1]))


def test_heads_of_additive_attention_have_weights_of_their_own():
    weights = sa.tensor("W", h, d, m), sa.tensor("U", h, d, m)
    proved(
        at.additive(QH, KH, VH, *weights, a)[1],
        at.additive(QH[1], KH[1], VH[1], *(x[1] for x in weights), a),
    )


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: at.temperature(Q, K, V, 0), OperandError, "temperature: tau is positive, not 0"),
        (lambda: at.temperature(Q, K, V, -0.5), OperandError, "temperature: tau is positive, not -1/2"),
        (
            lambda: at.temperature(Q, sa.tensor("K", S, e), V, 1),
            ShapeError,
            "temperature: Q[T, d] and K[S, e] differ in their width: axis -1 of the first is d, axis -1 of the second "
            "is e",
        ),
        (
            lambda: at.temperature(QH, KH, VH, sa.tensor("tau", T)),
            ShapeError,
            "temperature: tau[T] does not fit the scores (Q @ K.mT)[h, T, S]: one number a head, with the sizes [h], "
            "or a scalar is meant",
        ),
        (
            lambda: at.scalable_softmax(Q, K, V, s, count="all"),
            OperandError,
            "scalable_softmax: count is 'visible' or 'keys', not 'all'",
        ),
        (
            lambda: at.scalable_softmax(Q, K, V, s, mask=sa.tensor("m", T, binary=True)),
            ShapeError,
            "scalable_softmax: the mask m[T] does not fit the scores Z[T, S]: axis -1, of the keys, has the size T, "
            "not S",
        ),
        (
            lambda: at.additive(Q, K, V, W, sa.tensor("U", d, r), a),
            ShapeError,
            "additive: (Q @ W)[T, m] and (K @ U)[S, r] differ in the width of the hidden layer: axis -1 of the first "
            "is m, axis -1 of the second is r",
        ),
        (
            lambda: at.additive(Q, K, V, W, U, sa.tensor("a", m, 1)),
            ShapeError,
            "additive: a[m, 1] is not a vector a[m]",
        ),
        (
            lambda: at.additive(Q, K, V, U.T, U, a),
            ShapeError,
            "additive: Q[T, d] and U.T[m, d] differ in their width: axis -1 of the first is d, axis -2 of the "
            "second is m",
        ),
        (
            lambda: at.luong_concat(Q, K, V, sa.tensor("W", d, m), a),
            ShapeError,
            "luong_concat: W[d, m] does not fit Q[T, d] and K[S, d] side by side: its axis -2 is d, not 2*d",
        ),
        (
            lambda: at.luong_general(Q, K, V, sa.tensor("W", f, d)),
            ShapeError,
            "luong_general: Q[T, d] and W[f, d] differ in their width: axis -1 of the first is d, axis -2 of the "
            "second is f",
        ),
        (
            lambda: at.low_rank_bilinear(Q, K, V, W, a),
            ShapeError,
            "low_rank_bilinear: a[m] has 1 axes where B[f, r] is meant",
        ),
        (
            lambda: at.qk_norm(Q, K, V, norm="batch"),
            OperandError,
            "qk_norm: norm is 'rms', 'layer' or 'l2', not 'batch'",
        ),
        (
            lambda: at.qk_norm(Q, K, V, sa.tensor("g", S)),
            ShapeError,
            "rms_norm of Q[T, d]: the gain g[S] does not fit; it has the normalised sizes, [d]",
        ),
        (
            lambda: at.qk_norm(Q, K, V, sa.tensor("g", S), norm="l2"),
            ShapeError,
            "qk_norm of Q[T, d]: the gain g[S] does not fit; it has the normalised sizes, [d]",
        ),
        (
            lambda: at.cosine(Q, K, V, sa.tensor("g", h)),
            ShapeError,
            "cosine: g[h] does not fit the scores (Qhat @ Khat.T)[T, S]: a scalar is meant",
        ),
        (
            lambda: at.l2(Q, sa.tensor("K", S, e), V),
            ShapeError,
            "l2: Q[T, d] and K[S, e] differ in their width: axis -1 of the first is d, axis -1 of the second is e",
        ),
    ],
)
def test_errors_say_what_is_wrong(make, error, text):
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value) == text
