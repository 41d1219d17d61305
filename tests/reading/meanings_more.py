"""What is meant by formulas that the reader was not made by: a second corpus, from papers and textbooks."""

from __future__ import annotations

import sympy

import symattn as sa

from .meaning import Defined, Stated, once_declared, reads

root = sympy.sqrt
HALF = sympy.Rational(1, 2)


# --- scores, weights, outputs ---


@reads("m01", "a bar is part of a name")
def bilinear_scores(h_t, W_a, barh_s):
    return Defined("score", h_t @ W_a @ barh_s.T)


@reads("m07", "T is a temperature")
def softmax_with_a_temperature(z, T):
    return Defined("q_i", sa.softmax(z / T))


@reads("m08")
def cosine_similarity(q_i, k_j):
    def norms(x):
        return sa.sqrt(sa.sum(x**2, axis=1))

    return Defined("s", (q_i @ k_j.T) / (norms(q_i)[:, None] * norms(k_j)[None]))


@reads("m21", "the slash divides the product left of it")
def weights_less_a_distance(Q, K, m, D, d):
    return sa.softmax(Q @ K.T / root(d) - m * D)


@reads("m25", "the sum is over the j up to i")
def causal_output(P, V):
    return Defined("O_i", sa.tril(P) @ V)


@reads("m26", "the indicator is 1 where it holds")
def causal_indicator(T):
    return Defined("M", 1 * sa.from_index((T, T), lambda i, j: j <= i))


@reads("m27")
def window(T, w):
    return Defined(
        "M", sa.from_index((T, T), lambda i, j: sympy.Piecewise((0, (i - w < j) & (j <= i)), (-sympy.oo, True)))
    )


@reads("m28")
def capped_scores(Q, K, c):
    return Defined("Z", c * sa.tanh(Q @ K.T / c))


@reads("m40", "m_i is used where it has been defined")
def safe_softmax(Z):
    largest = sa.let("m", sa.max(Z, axis=1))
    weights = sa.exp(Z - largest[:, None])
    return [Defined("m", largest), Defined("P", weights / sa.sum(weights, axis=1, keepdims=True))]


@reads("m31")
def rows_that_sum_to_one(Z, n, m):
    return Stated(sa.eq(sa.softmax(Z) @ sa.ones(m), sa.ones(n)))


@reads("m35", "ones have the length of z")
def shifted_softmax(z, c, n):
    return Stated(sa.eq(sa.softmax(z + c * sa.ones(n)), sa.softmax(z)))


# --- states and kernels ---


@once_declared("m09", "that phi is a function of entries")
def state(k_j, v_j, phi):
    return Defined("S", phi(k_j).T @ v_j)


@reads("m10", "the identity has the size of k_t")
def delta_rule(S_t_before, beta_t, k_t, v_t, d_k):
    kept = sa.eye(d_k) - beta_t * sa.outer(k_t, k_t)
    return Defined("S_t", S_t_before @ kept + beta_t * sa.outer(v_t, k_t))


@reads("m29", "j runs as i does")
def gaussian_kernel(x_i, sigma):
    difference = x_i[:, None] - x_i[None]
    return Defined("K", sa.exp(-sa.sum(difference**2, axis=2) / (2 * sigma**2)))


@reads("m30", "the sum is up to the index of the result")
def retention(q_t, k_s, v_s, gamma, T):
    decay = sa.from_index((T, T), lambda t, s: sympy.Piecewise((gamma ** (t - s), s <= t), (0, True)))
    return Defined("o_t", (decay * (q_t @ k_s.T)) @ v_s)


@reads("m22")
def output_of_exponentials(ell, S, V):
    return Defined("O", sa.inv(sa.diag(ell)) @ sa.exp(S) @ V)


@reads("m23", "ones have the length that fits")
def row_sums(S, m):
    return Defined(r"\ell", sa.exp(S) @ sa.ones(m))


# --- layers ---


@reads("m02", "a number is taken from every entry of a vector")
def layer_norm(x, gamma, beta, mu, sigma, epsilon):
    return Defined("LN", gamma * ((x - mu) / root(sigma**2 + epsilon)) + beta, (x,))


@reads("m03")
def root_mean_square_norm(x, g):
    return Defined("y_i", x / sa.sqrt(sa.mean(x**2)) * g)


@once_declared("m11", "that sigma is the logistic function")
def gated_linear_unit(x, W_1, W_2, W_3, sigma):
    return Defined("GLU", (sigma(x @ W_1) * (x @ W_2)) @ W_3, (x,))


@reads("m12", "the larger of two is taken entry by entry")
def feed_forward(x, W_1, b_1, W_2, b_2):
    return Defined("FFN", sa.relu(x @ W_1 + b_1) @ W_2 + b_2, (x,))


@reads("m13")
def residual_attention(X, W_Q, W_K, W_V, W_O, d_k):
    weights = sa.softmax((X @ W_Q) @ (X @ W_K).T / root(d_k))
    return Defined("Y", X + weights @ X @ W_V @ W_O)


@reads("m14")
def rotation(x, theta):
    sine, cosine = sympy.sin(theta), sympy.cos(theta)
    return sa.from_sympy(sympy.Matrix([[cosine, -sine], [sine, cosine]])) @ x


@reads("m36", "a hat is part of a name")
def linear_layer(W, x, b):
    return Defined(r"\hat{y}", W.T @ x + b)


@reads("m37")
def one_above_another(H_1, H_2):
    return Defined("H", sa.concat([H_1, H_2], axis=0))


@reads("m38")
def side_by_side(A, B):
    return Defined("H", sa.concat([A, B], axis=1))


# --- scalars and statistics ---


@reads("m05")
def cross_entropy(y, p):
    return Defined(r"\mathcal{L}", -sa.sum(y * sa.log(p)))


@reads("m06")
def logarithm_of_a_sum(z, m):
    return Defined("LSE", m + sa.log(sa.sum(sa.exp(z - m))), (z,))


@reads("m24")
def mean_of_rows(V, m):
    return Defined(r"\bar{v}", V.T @ sa.ones(m) / m)


@reads("m34", "the left side is one name")
def variance(x_i, barx):
    return Defined("s^2", sa.mean((x_i - barx) ** 2))


@reads("m39")
def hyperbolic_tangent(x):
    up, down = sympy.exp(x), sympy.exp(-x)
    return Stated(sa.eq((up - down) / (up + down), sympy.tanh(x)))


# --- algebra ---


@reads("m15")
def trace_of_a_product(A, B):
    return Stated(sa.eq(sa.trace(A @ B), sa.trace(B @ A)))


@reads("m16")
def squared_norm_of_a_matrix(A):
    return Stated(sa.eq(sa.sum(A**2), sa.trace(A.T @ A)))


@reads("m17")
def transpose_of_a_product(A, B):
    return Stated(sa.eq((A @ B).T, B.T @ A.T))


@reads("m18", "the two identities have two sizes")
def inverse_of_a_low_rank_update(U, V, n, r):
    right = sa.eye(n) - U @ sa.inv(sa.eye(r) + V.T @ U) @ V.T
    return Stated(sa.eq(sa.inv(sa.eye(n) + U @ V.T), right))


@reads("m32")
def scores_of_projected_rows(Q, K, W):
    return Stated(sa.eq((Q @ W) @ (K @ W).T, Q @ (W @ W.T) @ K.T))


@reads("m33")
def quadratic_form(x, A):
    return Stated(sa.eq(x @ A @ x, sa.sum(A * sa.outer(x, x))))


# --- gradients ---


@reads("m04", "delta with two indices is Kronecker's")
def jacobian_of_softmax(p, n):
    return Defined("dp/dz", p[:, None] * (sa.eye(n) - p[None]))


@reads("m19", "a column is taken from every column of a matrix")
def gradient_of_scores(P, dP):
    return Defined("dZ", P * (dP - sa.sum(P * dP, axis=1, keepdims=True)))


@reads("m20")
def gradient_of_queries(dZ, K, d):
    return Defined("dQ", dZ @ K / root(d))
