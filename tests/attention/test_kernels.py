"""Weighted averages: axioms, kernels in two forms, pooling and memory as attention, far points, and errors."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.errors import OperandError, ShapeError

at = sa.attention
h, T, S, d, e = sa.sizes("h T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
X, Z, Y = sa.tensor("X", T, d), sa.tensor("Z", S, d), sa.tensor("Y", S, e)
x, z, y = sa.tensor("x", T), sa.tensor("z", S), sa.tensor("y", S)
M, b = sa.tensor("M", T, S, binary=True), sa.tensor("b", positive=True)
KERNELS = ["gaussian", "laplace", "epanechnikov", "boxcar", "triangular"]


def proved(*claim):
    verdict = sa.prove(*claim)
    assert verdict.status == "proved", str(verdict)


def weights(output):
    """The weights P of O = P @ V."""
    return output.inputs[0].inputs[0]


# --- pooling ---


def test_average_pooling_is_attention_of_zero_queries():
    proved(at.average_pooling(V, T), at.scaled_dot_product(sa.zeros(T, d), K, V))
    proved(at.average_pooling(V), sa.mean(V, axis=0))


def test_average_pooling_is_attention_at_an_infinite_temperature():
    proved(at.average_pooling(V, T), at.scaled_dot_product(Q, K, V, scale=0))


def test_attention_pooling_by_softmax_weights_is_attention():
    proved(at.attention_pooling(at.compatibility(Q, K), V), at.scaled_dot_product(Q, K, V))


def test_a_row_of_attention_is_the_sum_of_weighted_values():
    alpha = at.compatibility(Q, K)
    O = at.attention_pooling(alpha, V)
    proved(O[1], sa.sum(alpha[1][:, None] * V, axis=0))
    proved(at.scaled_dot_product(Q, K, V)[1], at.scaled_dot_product(Q[1], K, V))


def test_equal_values_are_their_own_average():
    v = sa.tensor("v", e)
    proved(at.attention_pooling(at.compatibility(Q, K), sa.ones(S, 1) * v), sa.ones(T, 1) * v)


# --- weights by exponentials ---


def test_compatibility_is_a_softmax_and_an_average():
    P = at.compatibility(Q, K)
    proved(P, at.probabilities(at.scores(Q, K)))
    proved(sa.lt(0, P))
    proved(sa.sum(P, axis=-1), sa.ones(T))


# --- kernel regression ---


@pytest.mark.parametrize("bandwidth", [1, b, sympy.Symbol("h_0", positive=True)])
def test_the_square_of_a_query_cancels(bandwidth):
    given = {"bandwidth": bandwidth}
    proved(at.kernel_regression(X, Z, Y, **given), at.kernel_regression_dot(X, Z, Y, **given))


def test_the_square_of_a_query_cancels_on_a_line_for_one_query_for_heads_and_under_a_mask():
    heads = [sa.tensor("X", h, T, d), sa.tensor("Z", h, S, d), sa.tensor("Y", h, S, e)]
    for points in ([x, z, y], [x, z, Y], [sa.tensor("q", d), Z, y], [sa.tensor("t"), z, y], heads):
        proved(at.kernel_regression(*points, bandwidth=b), at.kernel_regression_dot(*points, bandwidth=b))
    proved(at.kernel_regression(X, Z, Y, mask=M), at.kernel_regression_dot(X, Z, Y, mask=M))


def test_the_square_of_a_key_does_not_cancel():
    assert sa.prove(at.kernel_regression(X, Z, Y), at.luong_dot(X, Z, Y)).status == "refuted"


def test_attention_is_kernel_regression_where_keys_have_one_length():
    level = sympy.Symbol("c", positive=True)
    one_length = sa.eq(sa.sum(K**2, axis=-1), level * sa.ones(S))
    found = sa.prove(at.kernel_regression(Q, K, V), at.luong_dot(Q, K, V), given=[one_length])
    assert found.status == "proved"


def test_l2_attention_is_kernel_regression():
    proved(at.l2(Q, K, V), at.kernel_regression(Q, K, V, bandwidth=sympy.sqrt(sympy.sqrt(d) / 2)))


def test_named_kernels_are_functions_of_the_differences():
    def gaussian(u):
        return sa.exp(-sa.sum(u**2, axis=-1) / 2)

    proved(at.kernel_regression(X, Z, Y, kernel=gaussian, bandwidth=b), at.kernel_regression(X, Z, Y, bandwidth=b))
    kernels = {
        "epanechnikov": lambda u: sa.relu(1 - u**2),
        "boxcar": lambda u: sa.where(u**2 <= 1, 1, 0),
        "triangular": lambda u: sa.relu(1 - sa.abs(u)),
    }
    for name, kernel in kernels.items():
        proved(at.kernel_regression(x, z, y, kernel=name), at.kernel_regression(x, z, y, kernel=kernel))


def test_the_laplace_kernel_is_a_function_of_the_differences_checked_numerically():
    own = regression(lambda u: sa.exp(-sa.abs(u)), [0.3, 2.5], bandwidth=0.7)
    np.testing.assert_allclose(own, regression("laplace", [0.3, 2.5], bandwidth=0.7))


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_weights_are_not_negative(kernel):
    proved(sa.le(0, weights(at.kernel_regression(X, Z, Y, kernel=kernel, bandwidth=b))))


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_weights_sum_to_one_unless_all_are_zero(kernel):
    rows = sa.sum(weights(at.kernel_regression(X, Z, Y, kernel=kernel)), axis=-1)
    assert sa.prove(rows, sa.ones(T)).status == ("proved" if kernel in ("gaussian", "laplace") else "refuted")


def test_a_translation_of_all_points_changes_nothing():
    shift = sa.tensor("c", d)
    for kernel in KERNELS:
        f = at.kernel_regression(X + shift, Z + shift, Y, kernel=kernel)
        proved(f, at.kernel_regression(X, Z, Y, kernel=kernel))


def regression(kernel, points, **options):
    f = sa.lambdify([x, z, y], [at.kernel_regression(x, z, y, kernel=kernel, **options)])
    return f(np.array(points), np.array([0.0, 1.0, 3.0]), np.array([5.0, 7.0, -2.0]))[0]


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_far_queries_take_the_nearest_key(kernel):
    np.testing.assert_allclose(regression(kernel, [-1e4, 1e4], bandwidth=0.01), [5, -2])


def test_queries_out_of_reach_of_a_compact_kernel_give_zero():
    for kernel in ("epanechnikov", "boxcar", "triangular"):
        np.testing.assert_allclose(regression(kernel, [0.2, 100.0], bandwidth=0.5), [5, 0])


def test_the_edge_belongs_to_a_boxcar():
    np.testing.assert_allclose(regression("boxcar", [0.5], bandwidth=0.5), [6])


def test_a_query_can_be_left_out_of_its_own_average():
    others = ~sa.from_index((S, S), lambda i, j: sympy.Eq(i, j))
    f = sa.lambdify([z, y], [at.kernel_regression(z, z, y, kernel="boxcar", bandwidth=1, mask=others)])
    np.testing.assert_allclose(f(np.array([0.0, 1.0, 3.0]), np.array([5.0, 7.0, -2.0]))[0], [7, 5, 0])


def test_differences_keep_the_digits_that_products_lose():
    points, values = np.array([1e8, 1e8 + 1]), np.array([0.0, 1.0])
    near, products = (
        sa.lambdify([z, y], [f(z, z, y)])(points, values)[0] for f in (at.kernel_regression, at.kernel_regression_dot)
    )
    np.testing.assert_allclose(near, 1 / (1 + np.exp([0.5, -0.5])))
    assert np.abs(products - near).max() > 0.01


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_key_is_the_answer(kernel):
    f = sa.lambdify([x, z, y], [at.kernel_regression(x, z, y, kernel=kernel)])
    np.testing.assert_allclose(f(np.zeros(1), np.zeros(1), np.array([3.0]))[0], [3])


# --- memory, and attention without products ---


def test_a_step_of_a_hopfield_network_is_attention():
    beta = sa.tensor("beta")
    proved(at.hopfield(Q, K, beta), at.scaled_dot_product(Q, K, K, scale=beta))


def test_two_steps_are_a_step_of_a_step():
    proved(at.hopfield(Q, K, 2, steps=2), at.hopfield(at.hopfield(Q, K, 2), K, 2))


def test_a_pattern_of_its_own_is_kept():
    f = sa.lambdify([Q, K], [at.hopfield(Q, K, 1000, steps=3)])
    patterns = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])
    np.testing.assert_allclose(f(patterns + 0.2, patterns)[0], patterns)


def test_aft_is_the_quotient_of_the_paper_and_a_softmax_for_each_feature():
    U, W = sa.tensor("U", S, d), sa.tensor("W", T, S)
    O = at.aft(Q, K, U, W)
    proved(O, sa.sigmoid(Q) * (sa.exp(W) @ (sa.exp(K) * U)) / (sa.exp(W) @ sa.exp(K)))
    proved(O, sa.sigmoid(Q) * sa.sum(sa.softmax(W[:, :, None] + K, axis=-2) * U, axis=-2))


def test_aft_does_not_overflow_and_takes_a_mask_of_minus_infinity():
    U, W = sa.tensor("U", S, d), sa.tensor("W", T, S)
    O = at.aft(Q, K, U, W + sa.where(M, 0, -sympy.oo))
    G = sa.tensor("G", T, d)
    f = sa.lambdify([Q, K, U, W, M, G], [O, sa.gradient({O: G}, [Q, K, U, W])])
    keys = np.array([[1e4, 0.0], [1e4, 1.0], [1e4, 2.0]])
    biases = np.array([[1e4, 0, 0], [0, 0, 1e4]])
    keep = np.array([[True, False, False], [True, True, False]])
    found, *gradients = f(np.full((2, 2), 1e3), keys, np.arange(6.0).reshape(3, 2), biases, keep, np.ones((2, 2)))
    np.testing.assert_allclose(found, [[0, 1], [1, 1 + 2 * np.e / (1 + np.e)]])
    assert all(np.isfinite(g).all() for g in gradients)


# --- errors ---


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (
            lambda: at.kernel_regression(X, Z, Y, kernel="gauss"),
            OperandError,
            "kernel_regression: kernel is 'gaussian', 'laplace', 'epanechnikov', 'boxcar' or 'triangular', not 'gauss'",
        ),
        (
            lambda: at.kernel_regression(X, Z, Y, kernel=sa.exp),
            ShapeError,
            "kernel_regression: of U[T, S, d] the kernel makes exp(U)[T, S, d], not weights [T, S]",
        ),
        (
            lambda: at.kernel_regression(X, Z, Y, bandwidth=0),
            OperandError,
            "kernel_regression: the bandwidth is positive, not 0",
        ),
        (
            lambda: at.kernel_regression_dot(X, Z, Y, bandwidth=sa.tensor("b", S)),
            ShapeError,
            "kernel_regression_dot: the bandwidth is a scalar, not b[S]",
        ),
        (
            lambda: at.kernel_regression(X, z, y),
            ShapeError,
            "kernel_regression: z[S] are points of a line, and X[T, d] is not X[T]",
        ),
        (
            lambda: at.kernel_regression_dot(X, z, y),
            ShapeError,
            "kernel_regression_dot: z[S] are points of a line, and X[T, d] is not X[T]",
        ),
        (
            lambda: at.kernel_regression(x, Z, y),
            ShapeError,
            "kernel_regression: x[T] and Z[S, d] differ in their width: axis -1 of the first is T, axis -1 of the "
            "second is d",
        ),
        (
            lambda: at.kernel_regression(x, z, x),
            ShapeError,
            "kernel_regression: P[T, S] and x[T] differ in the number of keys and values: axis -1 of the first is S, "
            "axis -1 of the second is T",
        ),
        (
            lambda: at.kernel_regression(x, z, y, kernel="boxcar", mask=M, empty="error"),
            OperandError,
            'kernel_regression: a row without keys gives zeros; empty="error" is for softmax',
        ),
        (
            lambda: at.average_pooling(y),
            ShapeError,
            "average_pooling: y[S] has 1 axes where V[.., S, e] is meant",
        ),
        (
            lambda: at.attention_pooling(sa.tensor("alpha", S, T), V),
            ShapeError,
            "attention_pooling: alpha[S, T] and V[S, e] differ in the number of keys and values: axis -1 of the first "
            "is T, axis -2 of the second is S",
        ),
        (lambda: at.hopfield(Q, K, 1, steps=0), OperandError, "hopfield: steps is a positive integer, not 0"),
        (
            lambda: at.aft(Q, K, V, sa.tensor("W", T, S)),
            ShapeError,
            "aft: K[S, d] and V[S, e] differ in their width: axis -1 of the first is d, axis -1 of the second is e",
        ),
        (
            lambda: at.aft(Q, K, K, sa.tensor("W", S, T)),
            ShapeError,
            "aft: W[S, T] and Q[T, d] differ in the number of queries: axis -2 of the first is S, axis -2 of the "
            "second is T",
        ),
    ],
)
def test_errors_say_what_is_wrong(make, error, text):
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value) == text
