"""Claims of notes on attention that are wrong as they are written: each refuted, and its corrected form proved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa

from .test_gradient_cases import compute
from .test_permutation_cases import proved, refuted

T, S, n, d, e, h, k = sa.sizes("T S n d e h k")
X, Pi = sa.tensor("X", n, d), sa.tensor("Pi", n, n, permutation=True)
Q, K, V = sa.tensor("Q", T, k), sa.tensor("K", S, k), sa.tensor("V", S, e)


def attend(q: Any, key: Any, v: Any) -> Any:
    return sa.softmax(q @ key.T / sympy.sqrt(q.shape[-1])) @ v


def rowsum(x: Any) -> Any:
    return sa.sum(x, axis=-1, keepdims=True)


def test_self_attention_is_equivariant_and_not_invariant():
    """Its output is said to stay the same in whatever order the tokens come."""
    W_q, W_k, W_v = (sa.tensor(f"W_{letter}", d, k) for letter in "qkv")

    def output(x):
        return attend(x @ W_q, x @ W_k, x @ W_v)

    found = refuted(output(Pi @ X), output(X))
    assert found.sizes[n] == 2
    proved(output(Pi @ X), Pi @ output(X))
    assert sa.equivariance(output, X)["rows of X"].kind == "equivariant"
    proved(sa.mean(output(Pi @ X), axis=0), sa.mean(output(X), axis=0))  # invariant only after pooling

    ones = {name: np.ones((1, 1)) for name in ("W_q", "W_k", "W_v")}
    first, second = (compute(output(X).subs({d: 1, k: 1}), {**ones, "X": x}).ravel() for x in ([[1], [0]], [[0], [1]]))
    assert first == pytest.approx([np.e / (1 + np.e), 1 / 2], rel=1e-15)
    assert second.tolist() == first.tolist()[::-1]


def test_permuting_the_rows_of_the_queries_permutes_those_of_the_output():
    """Called permutation invariance; what is argued, and right, is equivariance in the queries."""
    queries = sa.tensor("Pi", T, T, permutation=True)
    refuted(attend(queries @ Q, K, V), attend(Q, K, V))
    proved(attend(queries @ Q, K, V), queries @ attend(Q, K, V))
    pairs = sa.tensor("Pi", S, S, permutation=True)
    proved(attend(Q, pairs @ K, pairs @ V), attend(Q, K, V))


def test_the_own_token_need_not_get_the_largest_weight():
    """Each word is said to give itself the largest score."""
    W_q, W_k = sa.tensor("W_q", d, k), sa.tensor("W_k", d, k)

    def own(weights):
        return sa.diag(weights)[:, None] * sa.ones(1, n)

    for scores in ((X @ W_q) @ (X @ W_k).T, X @ X.T):
        weights = sa.softmax(scores)
        found = refuted(sa.le(weights, own(weights)))
        assert found.index[0] != found.index[1]
        assert found.left > found.right

    x = sa.tensor("x", n)  # for a kernel of distances it does
    kernel = sa.exp(-((x[:, None] - x) ** 2) / 2)
    proved(sa.diag(kernel), sa.ones(n))
    proved(sa.le(kernel, 1))


def test_the_weights_of_kernel_regression_carry_no_sum_over_the_keys():
    """A weight is printed with a sum over all keys in front, which makes it 1."""
    x0, x, y = sa.tensor("x_0"), sa.tensor("x", n), sa.tensor("y", n)
    kernel = sa.exp(-((x0 - x) ** 2) / 2) / sympy.sqrt(2 * sympy.pi)
    weights = kernel / sa.sum(kernel)
    refuted(weights, sa.sum(weights) * sa.ones(n))
    proved(sa.sum(weights), 1)
    proved(weights @ y, sa.softmax(-((x0 - x) ** 2) / 2) @ y)
    refuted(weights @ y, sa.sum(y))
    proved(sa.softmax(sa.zeros(n)) @ y, sa.mean(y))  # average pooling: all weights are 1/n


def test_the_derivative_of_softmax_becomes_small_and_not_zero():
    """Large scores are said to make the partial derivatives zero."""
    z = sa.tensor("z", n + 1)
    p = sa.let("p", sa.softmax(z))
    slopes = sa.diag(sa.jacobian(p, z))
    proved(slopes, p * (1 - p))
    proved(sa.lt(0, p * (1 - p)))
    refuted(slopes, sa.zeros(n + 1))
    alone = sa.tensor("z", n)
    assert refuted(sa.lt(0, sa.softmax(alone) * (1 - sa.softmax(alone)))).sizes[n] == 1  # one class, the only zero

    y = 1 / (1 + sa.exp(alone))
    proved(y * (1 - y), sa.exp(-alone) / (1 + sa.exp(-alone)) ** 2)
    assert 0 < compute(p * (1 - p), {"z": [20, 0]})[1] == pytest.approx(np.exp(-20.0), rel=1e-8)


def test_the_scale_is_the_root_of_the_width_of_a_head():
    """Scores of queries with d' features are divided by the root of d."""
    queries, keys = sa.tensor("Q", T, k), sa.tensor("K", S, k)
    wrong, right = (sa.softmax(queries @ keys.T / sympy.sqrt(size)) for size in (d, k))
    found = refuted(wrong, right)
    assert found.sizes[d] != found.sizes[k]
    proved(wrong, right, given=[sympy.Eq(d, k)])
    refuted(sa.softmax(queries @ keys.T), right)
    row = [compute(sa.softmax(sa.tensor("z", n) / c), {"z": [4, 0]}) for c in (1, 2)]
    assert [x[0] for x in row] == pytest.approx([1 / (1 + np.exp(-4.0)), 1 / (1 + np.exp(-2.0))])


def test_values_have_a_matrix_of_their_own():
    """The matrix of the keys is printed in the definition of the values."""
    W_k, W_v = sa.tensor("W_K", d, e), sa.tensor("W_V", d, e)
    refuted(X @ W_k, X @ W_v)
    proved(X @ W_k, X @ W_v, given=[sa.eq(W_k, W_v)])


def test_concatenated_heads_are_not_multi_head_attention_before_the_output_matrix():
    """Heads are joined and given out as they are: without an output matrix no feature mixes two heads."""
    P, W_v, W_o = sa.tensor("P", h, n, n), sa.tensor("W_V", h, d, k), sa.tensor("W_O", h * k, h * k)
    heads = P @ (X @ W_v)
    joined = sa.merge_axes(sa.moveaxis(heads, 0, 1), (1, 2))
    refuted(joined, joined @ W_o)
    proved(sa.independent(heads, W_v, lambda out, inp: sympy.Ne(out[0], inp[0])))
    found = refuted(sa.independent(joined @ W_o, W_v, lambda out, inp: inp[0] > 0))
    assert found.sizes[h] == 2

    fused = sa.tensor("W_Q", d, h * k)  # what is said of one product for all heads is right
    split = sa.moveaxis(sa.split_axis(fused, 1, (h, k)), 1, 0)
    proved(sa.moveaxis(sa.split_axis(X @ fused, 1, (h, k)), 1, 0), X @ split)


def test_softmax_normalises_rows():
    """Its formula is printed for one axis without saying which."""
    scores = sa.tensor("Z", n, n)
    refuted(sa.softmax(scores), sa.softmax(scores, axis=0))
    proved(sa.softmax(scores, axis=0), sa.softmax(scores.T).T)
    proved(sa.softmax(scores), sa.exp(scores) / rowsum(sa.exp(scores)))
    array = {"Z": [[0, 1], [2, 5]]}
    rows, columns = (compute(sa.softmax(scores, axis=axis), array)[0] for axis in (1, 0))
    assert rows == pytest.approx(np.exp([0, 1]) / (1 + np.e))
    assert columns == pytest.approx([1 / (1 + np.exp(2)), 1 / (1 + np.exp(4))])
