"""What is meant by declarations, scalars, kernels, algebra and gradients."""

from __future__ import annotations

import sympy

import symattn as sa

from .meaning import (
    Declared,
    Defined,
    Distributed,
    Natural,
    Refused,
    Signature,
    Space,
    Stated,
    once_declared,
    reads,
    undecidable,
    wrong,
)

root = sympy.sqrt
HALF = sympy.Rational(1, 2)
L, d, dp, D, D_h, D_k, D_v, S, T, n, h, p_q, d_q, d_k, d_v, d_qk, d_model = sa.sizes(
    "L d d' D D_h D_k D_v S T n h p_q d_q d_k d_v d_qk d_model"
)


# --- declarations ---

DECLARED = {
    "s0-01": Declared({"X": (L, d)}),
    "s0-02": Declared({"x": (D,)}),
    "s0-04": Declared({"W_q": (d, dp), "W_k": (d, dp), "W_v": (d, dp)}),
    "s0-05": Declared({"Q": (L, dp), "K": (L, dp), "V": (L, dp)}),
    "s0-08": Space((d_qk,)),
    "s1-01": Declared({"W^Q": (d_model, d_k)}),
    "s1-02": Declared({"W^K": (d_model, d_k)}),
    "s1-03": Declared({"W^V": (d_model, d_v)}),
    "s3-01": Declared({"X": (S, D)}),
    "s3-02": Declared({"X": (S, D)}),
    "s3-04": Declared({"Q": (T, D_k)}),
    "s3-05": Natural("T"),
    "s3-06": Signature("Attention", [(T, D_k), (S, D_k), (S, D_v)], (T, D_v)),
    "s3-09": Declared({"q_i": (D_k,), "k_j": (D_k,), "v_j": (D_v,)}, {"i": T, "j": S}),
    "s4-01": Declared({"X": (n, d)}),
    "s4-04": Declared({"x_i": (1, d)}),
    "x48": Declared({"W_i^Q": (d_model, d_k)}),
    "x52": Declared({"W_O": (h * d_k, d)}),
    "x72": Declared({"W_i^{(q)}": (p_q, d_q)}),
}


def _as_it_stands(statement):
    return lambda: statement


for _id, _statement in DECLARED.items():
    reads(_id)(_as_it_stands(_statement))


@reads("s2-07", "the second argument is a variance")
def noise():
    return Distributed("ϵ_i", sa.iid("normal", mean=0, variance=sympy.Rational(1, 4)))


# --- scalars ---


@reads("s1-05")
def root_of_a_width(d_k):
    return root(d_k)


@reads("s1-06")
def exponential(x):
    return sympy.exp(x)


@reads("p01")
def scale(d_k):
    return 1 / root(d_k)


@reads("s3-03", "h divides D")
def width_of_a_head(D, h):
    return Defined("D_h", D / h)


@reads("p05")
def width_of_a_head_alone(d_model, h):
    return d_model / h


@reads("p04")
def later_indices(i, j):
    return sympy.Piecewise((0, i >= j), (1, True))


@undecidable("x66", r"cos (m - n) theta is cos((m - n) theta) or (cos(m - n)) theta: write the one or the other")
def rotated_product(x_1_m, x_1_n, m, n, theta):
    return x_1_m * x_1_n * sympy.cos((m - n) * theta)


@reads("p02", "x_i >= 0, so that the power is real")
def regression_mean(x_i):
    return 2 * sa.sin(x_i) + x_i ** sympy.Rational(4, 5)


@reads("s2-06", "x_i >= 0, so that the power is real")
def regression_data(x_i, epsilon_i):
    return Defined("y_i", regression_mean(x_i) + epsilon_i)


@reads("p03")
def mean(y_i):
    return sa.mean(y_i)


@reads("s2-08")
def mean_in_two_forms(x, y_i, n):
    return [
        Defined("f", sa.sum(y_i) / n, (x,)),
        Stated(sa.eq(sa.sum(y_i) / n, sa.sum(y_i / n))),
    ]


# --- kernels and weights of points ---


def shares(x):
    """Numbers divided by their sum."""
    return x / sa.sum(x)


@reads("p06")
def gaussian(x, x_i):
    return sa.exp(-HALF * (x - x_i) ** 2)


@reads("s2-11")
def gaussian_density(u):
    return Defined("K", sympy.exp(-(u**2) / 2) / root(2 * sympy.pi), (u,))


@reads("s1-04", "softmax of the entry z_i is entry i of the softmax of z")
def softmax_of_a_component(z):
    return Stated(sa.eq(sa.softmax(z), shares(sa.exp(z))))


@reads("s2-01", "v_1, v_2 and v_3 are names")
def weighted_values(v_1, v_2, v_3):
    weights = (sympy.Rational(7, 10), sympy.Rational(1, 20), sympy.Rational(1, 4))
    return Defined("Attention", sum(w * v for w, v in zip(weights, (v_1, v_2, v_3), strict=True)))


@once_declared("s2-02", "that alpha is a function of two rows, and the shapes of q, k_i and v_i")
def pooling(q, k_i, v_i, alpha):
    return Defined("Attention", alpha(q, k_i) @ v_i, ("q", "(k_i,v_i)"))


@once_declared("s2-03", "that alpha is a function of two rows")
def weights_that_average(q, k_i, alpha):
    weights = alpha(q, k_i)
    return [Stated(sa.le(0, weights), "refuted"), Stated(sa.eq(sa.sum(weights), 1), "refuted")]


@wrong("s2-04", "the outer sum is over the i that the weight has: it makes every weight 1")
def kernel_weight_summed(q, k_i, x, x_i, alpha, K, n):
    total = sa.sum(shares(K(x - x_i))) * sa.ones(n)
    return [
        Stated(sa.eq(alpha(q, k_i), alpha(x, x_i)), "refuted"),
        Stated(sa.eq(alpha(x, x_i), total), "refuted"),
    ]


@once_declared("s2-09", "that alpha is a function of two rows")
def uniform_weights(q, k_i, x, x_i, alpha, n):
    return [
        Stated(sa.eq(alpha(q, k_i), alpha(x, x_i)), "refuted"),
        Stated(sa.eq(alpha(x, x_i), 1 / n), "refuted"),
    ]


@once_declared("s2-10", "what function alpha is; that K is one is said by the words in the formula")
def kernel_regression(x, x_i, y_i, alpha, K):
    regression, weighted = shares(K(x - x_i)) @ y_i, alpha(x, x_i) @ y_i
    return [Defined("f", regression, (x,)), Stated(sa.eq(regression, weighted), "refuted")]


@once_declared("s2-12", "what function alpha is; softmax is over the i of the sum")
def gaussian_regression(x, x_i, y_i, alpha):
    distance = -HALF * (x - x_i) ** 2
    general, explicit, short = alpha(x, x_i) @ y_i, shares(sa.exp(distance)) @ y_i, sa.softmax(distance) @ y_i
    return [
        Defined("f", general, (x,)),
        Stated(sa.eq(general, explicit), "refuted"),
        Stated(sa.eq(explicit, short)),
    ]


# --- products of matrices and vectors ---


@reads("s0-03", "rows of the array are equations of their own")
def three_projections(X, W_q, W_k, W_v):
    return [Defined("Q", X @ W_q), Defined("K", X @ W_k), Defined("V", X @ W_v)]


@reads("s4-02", "the bold W^Q that is declared is the plain one")
def projection(X, W_Q):
    return Defined("Q", X @ W_Q)


@wrong("s4-03", "values are projected by W^V, not by W^K")
def projection_by_the_keys(X, W_K):
    return Defined("V", X @ W_K)


@reads("s4-05", "x_i is a row for every i")
def projection_of_a_row(x_i, W_Q):
    return Defined("q_i", x_i @ W_Q)


@wrong("s4-06", "q_i has the width d_q and K the width d_k, which nothing says are equal")
def scores_of_different_widths():
    return Refused("q_i is 1 by d_q, and K^T is d_k by n")


@wrong("x40", "rows of tokens are projected from the right: W has T rows and d_h columns, and X has T rows")
def projection_from_the_left():
    return Refused("W_{Q_i} is T by d_h, and X is T by d_model")


@reads("s3-08", "^T is the transpose, also of q_T, whose T is the number of rows")
def matrices_of_rows(q_i, k_j):
    return [Defined("Q", q_i), Defined("K", k_j)]


@reads("x01")
def inner_product(q, k):
    return Stated(sa.eq(q @ k, sa.sum(q * k)))


@reads("x43", "exp is taken of the entries")
def exponential_of_entries(Q, K, d):
    return Defined("A", sa.exp(Q @ K.T / root(d)))


@reads("x44")
def diagonal_of_row_sums(A, n):
    return Defined("D", sa.diag(A @ sa.ones(n)))


@wrong("x45", "the identity stands for the ones, of which diag would make a diagonal matrix")
def diagonal_of_a_matrix():
    return Refused("A I_L is a matrix, and diag makes a matrix of a vector")


@reads("x46", "the ring is the entrywise product")
def entrywise_product_of_low_ranks(A, B, C, D):
    return Defined("W", (A @ B.T) * (C @ D.T))


@reads("p08")
def transposed_numbers():
    return sa.from_sympy(sympy.Matrix([[1, 2], [3, 4]])).T


@reads("x83", "both sides for all i and j; ^T is the transpose")
def bilinear_form(W_Q, W_K, x_i):
    return Stated(sa.eq((x_i @ W_Q.T) @ (x_i @ W_K.T).T, x_i @ (W_Q.T @ W_K) @ x_i.T))


@reads("x68")
def squared_distance(q, k_i):
    distance = -HALF * sa.sum((q - k_i) ** 2, axis=1)
    return [
        Defined("a", distance, (q, "k_i")),
        Stated(sa.eq(distance, k_i @ q - HALF * sa.sum(k_i**2, axis=1) - HALF * sa.sum(q**2))),
    ]


@once_declared("x87", "what Attn is, and that S and V are those of X")
def permuted_attention(P, S, V, X, Attn):
    moved = P @ sa.softmax(S) @ P.T @ P @ V
    given = (sa.eq(S, X @ X.T), sa.eq(V, X))
    return [
        Stated(sa.eq(Attn(P @ X), moved), given=given),
        Stated(sa.eq(moved, P @ sa.softmax(S) @ V)),
        Stated(sa.eq(P @ sa.softmax(S) @ V, P @ Attn(X)), given=given),
    ]


# --- gradients ---


@reads("x34", "the left side is a name: what the loss is, is not said")
def hessian_of_cross_entropy(p):
    return Defined(r"\nabla_z^2 \mathcal{L}", sa.diag(p) - sa.outer(p, p))


@reads("x79")
def gradient_of_values(P, dO, N, d):
    return Defined("dV", P.T @ dO, shape=(N, d))


@once_declared("x80", "that P and S are one row each: of matrices the sum would be over rows, not within them")
def gradient_of_a_row_of_scores(P, dP):
    return Defined("dS", P * (dP - sa.sum(dP * P)))


@reads("x81", "L is the loss as well as a length")
def gradients_of_a_product(P, V, g):
    return [Defined("dV", P.T @ g), Defined("dP", g @ V.T)]


@once_declared("x63", "that O is P V")
def row_term(P, dO, V, O):
    rows = sa.sum(P * (dO @ V.T), axis=1)
    return [Defined("D", rows), Stated(sa.eq(rows, sa.sum(dO * O, axis=1)), given=(sa.eq(O, P @ V),))]
