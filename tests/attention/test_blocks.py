"""Feed-forward layers, blocks, GPT-2 and the cross-entropy: what they equal, what they count, and their errors."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.attention import (
    causal_mask,
    cross_entropy,
    gelu_tanh,
    glu,
    gpt,
    gpt_parameters,
    layer_norm,
    log_softmax,
    mlp,
    multi_head,
    parameter_count,
    post_norm_block,
    pre_norm_block,
    scaled_dot_product,
    swiglu,
)

T, d, f, n, h = sa.sizes("T d f n h")
X, W_1, W_2, b_1 = sa.tensor("X", T, d), sa.tensor("W_1", d, f), sa.tensor("W_2", f, d), sa.tensor("b_1", f)
W, U, O = sa.tensor("W", d, f), sa.tensor("U", d, f), sa.tensor("O", f, d)
Z, y, Y, w = sa.tensor("Z", T, n), sa.tensor("y", T, integer=True), sa.tensor("Y", T, n), sa.tensor("w", n)
Pi = sa.tensor("Pi", T, T, permutation=True)


def proved(a, b):
    return sa.prove(a, b).status == "proved"


def attend(x):
    return scaled_dot_product(x, x, x)


def feed(x):
    return mlp(x, W_1, W_2, b_1)


# --- feed-forward layers ---


def test_gated_layers_are_one_formula():
    assert proved(swiglu(X, W, U, O), glu(X, W, U, O, activation="silu"))
    assert proved(swiglu(X, W, U, O), (X @ W * sa.sigmoid(X @ W) * (X @ U)) @ O)
    assert proved(glu(X, W, U, O, activation="identity"), ((X @ W) * (X @ U)) @ O)
    assert proved(glu(X, W, U, O), glu(X, W, U, O, activation=sa.sigmoid))


def test_a_feed_forward_layer_acts_on_each_token():
    assert proved(feed(Pi @ X), Pi @ feed(X))
    assert sa.prove(sa.independent(feed(X), X, when=lambda out, inp: sympy.Ne(out[0], inp[0]))).status == "proved"


def test_the_two_gelus_are_close_and_not_equal():
    x = sa.tensor("x", n)
    both = sa.lambdify([x], [sa.gelu(x), gelu_tanh(x)])
    exact, approximate = both(np.linspace(-6, 6, 2001))
    assert 4e-4 < np.abs(exact - approximate).max() < 5e-4
    assert sa.prove(sa.gelu(x), gelu_tanh(x)).status == "refuted"
    assert proved(gelu_tanh(x), x * sa.sigmoid(2 * sympy.sqrt(2 / sympy.pi) * (x + sympy.Rational("0.044715") * x**3)))


# --- blocks ---


def test_blocks_are_what_the_papers_write():
    middle = X + attend(layer_norm(X))
    assert proved(pre_norm_block(X, attend, feed), middle + feed(layer_norm(middle)))
    middle = layer_norm(X + attend(X))
    assert proved(post_norm_block(X, attend, feed), layer_norm(middle + feed(middle)))


def test_blocks_are_equivariant_and_causal_blocks_causal():
    assert proved(pre_norm_block(Pi @ X, attend, feed), Pi @ pre_norm_block(X, attend, feed))
    block = pre_norm_block(X, lambda x: scaled_dot_product(x, x, x, mask=causal_mask(T)), feed)
    assert sa.prove(sa.independent(block, X, when=lambda out, inp: inp[0] > out[0])).status == "proved"


def test_without_a_norm_a_pre_norm_block_is_a_sum():
    block = pre_norm_block(X, attend, lambda x: 0 * x, norm=lambda x: x)
    assert proved(block, X + attend(X))


# --- GPT-2 ---


@pytest.mark.parametrize(
    ("width", "layers", "heads", "count"),
    [(768, 12, 12, 124439808), (1024, 24, 16, 354823168), (1280, 36, 20, 774030080), (1600, 48, 25, 1557611200)],
)
def test_gpt2_has_its_published_number_of_parameters(width, layers, heads, count):
    assert parameter_count(gpt_parameters(50257, 1024, width, layers, heads)) == count


def test_the_count_is_a_polynomial_of_the_sizes():
    C, L = sa.sizes("C"), 3
    tied = parameter_count(gpt_parameters(n, C, d, L, h, hidden=f))
    assert sympy.expand(tied - (n * d + C * d + L * (4 * d**2 + 2 * d * f + f + 9 * d) + 2 * d)) == 0
    assert parameter_count(gpt_parameters(n, C, d, L, h, hidden=f, tied=False)) - tied == n * d
    assert parameter_count([X, W, X]) == T * d + d * f


def test_names_of_parameters_differ_from_block_to_block():
    parameters = gpt_parameters(n, "C", d, 2, h)
    names = [x.name for x in parameters.tensors]
    assert len(set(names)) == len(names) == 2 + 2 * 16 + 2
    assert parameters.blocks[1].W_in.brief() == "W_in_2[d, 4*d]"


def test_a_next_token_does_not_depend_on_later_tokens(rng):
    parameters = gpt_parameters(11, 8, 6, 2, 2)
    tokens = sa.tensor("t", "B T", integer=True)
    run = sa.lambdify([tokens, *parameters.tensors], gpt(tokens, parameters))
    arrays = [rng.normal(size=[int(size) for size in x.shape]) for x in parameters.tensors]
    batch = rng.integers(0, 11, (3, 5))
    changed = batch.copy()
    changed[:, 3:] = (changed[:, 3:] + 1) % 11
    first, second = (run(x, *arrays) for x in (batch, changed))
    assert first.shape == (3, 5, 11)
    np.testing.assert_array_equal(first[:, :3], second[:, :3])
    assert np.abs(first[:, 3:] - second[:, 3:]).min() > 0
    with pytest.raises(sa.EvaluationError, match="index 1. of t is not a whole number from 0 to 10"):
        run(batch + 5, *arrays)


def test_what_all_keys_are_shifted_by_has_gradient_zero(rng):
    parameters = gpt_parameters(7, 5, 4, 1, 2)
    tokens = sa.tensor("t", 5, integer=True)
    loss = cross_entropy(gpt(tokens, parameters)[:-1], tokens[1:])
    block = parameters.blocks[0]
    slopes = sa.gradient(loss, [block.b_k, block.b_q])
    arrays = [rng.normal(size=[int(size) for size in x.shape]) for x in parameters.tensors]
    of_keys, of_queries = sa.lambdify([tokens, *parameters.tensors], slopes)(rng.integers(0, 7, 5), *arrays)
    assert np.abs(of_keys).max() < 1e-15 < 1e-4 < np.abs(of_queries).max()


# --- cross-entropy ---


def test_the_gradient_is_probability_less_target():
    P, hot = sa.softmax(Z), sa.equal(y[:, None], sa.from_index((n,), lambda j: j))
    assert proved(sa.gradient(cross_entropy(Z, y), [Z])[Z], (P - hot) / T)
    assert proved(sa.gradient(cross_entropy(Z, y, reduction="sum"), [Z])[Z], P - hot)
    total = sa.sum(Y, axis=-1, keepdims=True)
    assert proved(sa.gradient(cross_entropy(Z, Y), [Z])[Z], (total * P - Y) / T)


def test_cross_entropy_is_the_mean_of_log_probabilities():
    assert proved(cross_entropy(Z, Y), -sa.sum(Y * log_softmax(Z)) / T)
    assert proved(cross_entropy(Z, Y), -sa.sum(Y * sa.log(sa.softmax(Z))) / T)
    assert proved(cross_entropy(Z, y, reduction="sum"), sa.sum(cross_entropy(Z, y, reduction="none")))
    s = sympy.Symbol("s", positive=True)
    assert proved(cross_entropy(Z, Y, smoothing=s), cross_entropy(Z, (1 - s) * Y + s / n))


def test_equal_weights_change_a_sum_and_not_a_mean():
    weights = 3 * sa.ones(n)
    assert proved(cross_entropy(Z, Y, weight=weights), 3 * cross_entropy(Z, Y))
    arrays = np.arange(12.0).reshape(3, 4) % 5, np.array([3, 0, 2])
    plain, weighted = sa.lambdify([Z, y], [cross_entropy(Z, y), cross_entropy(Z, y, weight=weights)])(*arrays)
    np.testing.assert_allclose(plain, weighted, rtol=1e-14)


def test_a_score_of_minus_infinity_that_is_not_the_target_has_no_part():
    loss = cross_entropy(Z, y)
    value, slope = sa.lambdify([Z, y], [loss, sa.gradient(loss, [Z])])(
        np.array([[0.0, -np.inf, 1.0], [2.0, 0.0, -np.inf]]), np.array([2, 0])
    )
    p = 1 / (1 + np.exp(-1)), 1 / (1 + np.exp(-2))
    np.testing.assert_allclose(value, -np.log(p).mean(), rtol=1e-14)
    np.testing.assert_allclose(slope, [[(1 - p[0]) / 2, 0, (p[0] - 1) / 2], [(p[1] - 1) / 2, (1 - p[1]) / 2, 0]])


def test_large_scores_do_not_overflow():
    loss = cross_entropy(Z, y, reduction="none")
    value, slope = sa.lambdify([Z, y], [loss, sa.gradient(sa.sum(loss), [Z])])(
        np.array([[1e5, 0.0, -1e5], [-1e300, 1e300, 0.0]]), np.array([1, 1])
    )
    np.testing.assert_array_equal(value, [1e5, 0])
    np.testing.assert_array_equal(slope, [[1, -1, 0], [0, 0, 0]])


# --- errors ---

MESSAGES = {
    "weights of another width": (
        lambda: mlp(X, sa.tensor("W", f, d), W_2), "mlp: X[T, d] and W[f, d] differ in what is multiplied",
    ),
    "a bias of another width": (
        lambda: mlp(X, W_1, W_2, sa.tensor("b", d)), "mlp: the bias b[d] of W_1[d, f] has the shape [f]",
    ),
    "weights of three axes": (lambda: mlp(X, sa.tensor("W", h, d, f), W_2), "W[h, d, f] have 3 axes where"),
    "an unknown activation": (
        lambda: mlp(X, W_1, W_2, activation="swish"),
        "mlp: activation is 'gelu', 'gelu_tanh', 'relu', 'sigmoid', 'silu' or 'identity', not 'swish'",
    ),
    "an activation that sums": (
        lambda: mlp(X, W_1, W_2, activation=lambda x: sa.sum(x, axis=0)), "makes (sum(A, axis=-2))[f] of A[T, f]",
    ),
    "gates of another width": (
        lambda: swiglu(X, W, sa.tensor("U", d, d), O), "swiglu: W[d, f] and U[d, d] differ in the width of the hidden",
    ),
    "an output of another width": (
        lambda: swiglu(X, W, U, sa.tensor("O", d, f)), "O[d, f] differ in what is multiplied",
    ),
    "a part that changes the shape": (
        lambda: pre_norm_block(X, attend, lambda x: mlp(x, W_1, sa.tensor("W", f, n))),
        "pre_norm_block: feed_forward makes F[T, n] of",
    ),
    "a tensor for a function": (
        lambda: post_norm_block(X, X, feed), "post_norm_block: attention is a function of a tensor, not",
    ),
    "heads that do not divide": (
        lambda: gpt_parameters(10, 8, 6, 1, 4), "gpt_parameters: 4 heads do not divide the width 6",
    ),
    "heads of a block that do not divide": (
        lambda: pre_norm_block(
            sa.tensor("X", T, 6), lambda x: multi_head(x, x, x, *[sa.tensor("W", 6, 6)] * 4, heads=4), lambda x: x
        ),
        "4 heads do not divide",
    ),
    "no layers": (lambda: gpt_parameters(10, 8, 6, 0, 2), "layers is a number of blocks, 1 or more, not 0"),
    "symbolic layers": (lambda: gpt_parameters(10, 8, 6, n, 2), "layers is a number of blocks"),
    "more tokens than places": (
        lambda: gpt(sa.tensor("t", 9, integer=True), gpt_parameters(10, 8, 6, 1, 2)), "W_p[8, 6] has no row",
    ),
    "tokens that are no integers": (lambda: gpt(sa.tensor("t", T), gpt_parameters(n, 8, d, 1, h)), "integer=True"),
    "classes that are no integers": (
        lambda: cross_entropy(Z, sa.tensor("y", T)), "the targets y[T] are classes of the rows: declare them integer",
    ),
    "classes of other rows": (
        lambda: cross_entropy(Z, sa.tensor("y", n, integer=True)), "the targets y[n] do not fit the scores Z[T, n]",
    ),
    "probabilities of other classes": (
        lambda: cross_entropy(Z, sa.tensor("Y", T, 1)), "the probabilities Y[T, 1] do not have the shape",
    ),
    "weights of the rows": (
        lambda: cross_entropy(Z, y, weight=sa.tensor("w", T)), "the weights w[T] are one of each class, [n]",
    ),
    "an unknown reduction": (
        lambda: cross_entropy(Z, y, reduction="batchmean"), "reduction is 'mean', 'sum' or 'none', not 'batchmean'",
    ),
    "ignore with probabilities": (lambda: cross_entropy(Z, Y, ignore=0), "ignore=0 is for targets that are classes"),
    "a fraction to ignore": (lambda: cross_entropy(Z, y, ignore=0.5), "ignore is an integer"),
    "smoothing by more than all": (lambda: cross_entropy(Z, y, smoothing=1.5), "smoothing is a number from 0 to 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_errors_say_what_does_not_fit(name):
    call, text = MESSAGES[name]
    with pytest.raises((sa.ShapeError, sa.OperandError)) as caught:
        call()
    assert text in str(caught.value)
