"""Claims about the algebra under attention: Kronecker deltas, logarithms, roots, triangles, layouts and traces."""

from __future__ import annotations

import sympy

import symattn as sa

from .claims import ZS, K, Pi, Q, X, Z, c, d, false, h, k, m, n, p, r, rowsum, s, true

A, B, C = (sa.tensor(name, n, n) for name in "ABC")
I = sa.eye(n)
x, y = sa.tensor("x", n), sa.tensor("y", n)
U, W = sa.tensor("U", n, m, positive=True), sa.tensor("W", n, m, positive=True)

# --- Kronecker deltas ---


@true
def exp_of_delta():
    return sa.exp(s * I), 1 + (sympy.exp(s) - 1) * I


@true
def exp_of_delta_with_a_row_factor():
    return sa.exp(x[:, None] * I), 1 + sa.diag(sa.exp(x) - 1)


@false
def not_exp_of_delta_as_of_a_matrix():
    return sa.exp(s * I), sympy.exp(s) * I


@true
def softmax_of_identity():
    return sa.softmax(s * I), (sa.ones(n, n) + (sympy.exp(s) - 1) * I) / (sympy.exp(s) + n - 1)


@true
def softmax_of_identity_by_cases():
    total = sympy.exp(s) + n - 1
    entries = sa.from_index(
        (n, n), lambda i, j: sympy.Piecewise((sympy.exp(s) / total, sympy.Eq(i, j)), (1 / total, True))
    )
    return sa.softmax(s * I), entries


@false
def not_softmax_of_identity_uniform():
    return sa.softmax(s * I), sa.ones(n, n) / n


@true
def softmax_of_equal_scores():
    return sa.softmax(sa.zeros(n, m)), sa.ones(n, m) / m


@true
def softmax_of_repeated_tokens():
    token = sa.tensor("q", d)
    row = sa.ones(n, 1) * token
    return sa.softmax(row @ row.T) @ X, sa.ones(n, 1) * sa.mean(X, axis=0)


@true
def diagonal_times():
    return sa.diag(x) @ A, x[:, None] * A


@false
def not_diagonal_times_columns():
    return sa.diag(x) @ A, A * x


# --- logarithms ---


@true
def log_softmax():
    return sa.log(sa.softmax(Z)), Z - sa.logsumexp(Z, keepdims=True)


@false
def not_log_softmax_by_the_sum():
    return sa.log(sa.softmax(Z)), Z - rowsum(sa.exp(Z))


@true
def log_of_exp():
    return sa.log(sa.exp(Z) * sa.exp(2 * Z)), 3 * Z


@true
def log_of_product():
    return sa.log(U * W**2), sa.log(U) + 2 * sa.log(W)


@false
def not_log_of_sum():
    return sa.log(U + W), sa.log(U) + sa.log(W)


@true
def exp_of_logsumexp():
    return sa.exp(sa.logsumexp(Z)), sa.sum(sa.exp(Z), axis=-1)


@true
def softmax_of_log():
    return sa.softmax(sa.log(U)), U / rowsum(U)


@true
def softplus_difference():
    return sa.softplus(Z) - sa.softplus(-Z), Z


@true
def sigmoid_of_minus():
    return sa.sigmoid(-Z), 1 - sa.sigmoid(Z)


@true
def log_sigmoid():
    return sa.log(sa.sigmoid(Z)), -sa.softplus(-Z)


@false
def not_log_sigmoid():
    return sa.log(sa.sigmoid(Z)), -sa.softplus(Z)


@true
def softmax_with_temperature():
    weights = sa.softmax(Z) ** (1 / c)
    return sa.softmax(Z / c), weights / rowsum(weights)


@true
def entropy():
    P = sa.softmax(Z)
    return -sa.sum(P * sa.log(P), axis=-1), sa.logsumexp(Z) - sa.sum(P * Z, axis=-1)


# --- roots ---


@true
def root_squared():
    return sa.sqrt(U) * sa.sqrt(U), U


@true
def root_of_product():
    return sa.sqrt(U * W), sa.sqrt(U) * sa.sqrt(W)


@true
def root_of_square():
    return sa.sqrt(Z**2), sa.abs(Z)


@false
def not_root_of_square():
    return sa.sqrt(Z**2), Z


@false
def not_root_of_sum():
    return sa.sqrt(U + W), sa.sqrt(U) + sa.sqrt(W)


@true
def rsqrt_by_root():
    return sa.rsqrt(U), sa.sqrt(U) / U


@true
def scale_of_each_factor():
    root = sympy.root(d, 4)
    return (Q / root) @ (K / root).T, Q @ K.T / sympy.sqrt(d)


@false
def not_scale_of_each_factor_by_the_root():
    root = sympy.sqrt(d)
    return (Q / root) @ (K / root).T, Q @ K.T / sympy.sqrt(d)


# --- triangles and running sums ---

LOWER = sa.tril(sa.ones(n, n))


@true
def triangles_add_up():
    return sa.tril(A) + sa.triu(A, 1), A


@false
def not_triangles_add_up_with_the_diagonal_twice():
    return sa.tril(A) + sa.triu(A), A


@true
def triangle_by_indicator():
    return sa.tril(A), A * sa.from_index((n, n), lambda i, j: j <= i)


@true
def triangle_transposed():
    return sa.tril(A, -1).T, sa.triu(A.T, 1)


@false
def not_triangle_transposed_in_place():
    return sa.tril(A).T, sa.tril(A.T)


@true
def cumsum_by_triangle():
    return sa.cumsum(X, axis=0), LOWER @ X


@false
def not_cumsum_by_upper_triangle():
    return sa.cumsum(X, axis=0), LOWER.T @ X


@true
def cumsum_both_ways():
    return sa.cumsum(x) + sa.cumsum(x, reverse=True), sa.sum(x) + x


@true
def cumsum_last():
    return sa.cumsum(x)[-1], sa.sum(x)


@true
def cumsum_difference():
    sums = sa.cumsum(x)
    return sums - sa.shift(sums, -1), x


@true
def causal_softmax_by_triangle():
    weights = sa.tril(sa.exp(ZS))
    return sa.softmax(ZS, where=sa.from_index((n, n), lambda i, j: i >= j)), weights / rowsum(weights)


@false
def not_causal_softmax_of_the_triangle():
    return sa.softmax(ZS, where=sa.from_index((n, n), lambda i, j: i >= j)), sa.softmax(sa.tril(ZS))


@true
def causal_uniform():
    means = sa.cumsum(X, axis=0) * sa.from_index((n, 1), lambda i, j: 1 / (i + 1))
    return sa.softmax(sa.zeros(n, n), where=sa.from_index((n, n), lambda i, j: j <= i)) @ X, means


@true
def indicator_count():
    return rowsum(LOWER), sa.from_index((n, 1), lambda i, j: i + 1)


# --- matrices ---


@true
def trace_cyclic():
    return sa.trace(A @ B @ C), sa.trace(C @ A @ B)


@false
def not_trace_of_any_order():
    return sa.trace(A @ B @ C), sa.trace(B @ A @ C)


@true
def trace_as_inner_product():
    return sa.trace(A.T @ B), sa.sum(A * B)


@true
def inverse_of_product():
    a, b = (sa.tensor(name, n, n, invertible=True) for name in "AB")
    return sa.inv(a @ b), sa.inv(b) @ sa.inv(a)


@false
def not_inverse_of_product_in_order():
    a, b = (sa.tensor(name, n, n, invertible=True) for name in "AB")
    return sa.inv(a @ b), sa.inv(a) @ sa.inv(b)


@true
def orthogonal_keeps_frobenius():
    R = sa.tensor("R", d, d, orthogonal=True)
    return sa.sum((X @ R) ** 2), sa.sum(X**2)


@true
def permutation_commutes_with_entries():
    return sa.exp(Pi @ A @ Pi.T), Pi @ sa.exp(A) @ Pi.T


@false
def not_orthogonal_commutes_with_entries():
    R = sa.tensor("R", n, n, orthogonal=True)
    return sa.exp(R @ A @ R.T), R @ sa.exp(A) @ R.T


@true
def permutation_keeps_reductions():
    return sa.max(Pi @ x) + sa.logsumexp(Pi @ x) + sa.mean(Pi @ x), sa.max(x) + sa.logsumexp(x) + sa.mean(x)


@true
def symmetric_part():
    G = sa.tensor("G", n, n, symmetric=True)
    return sa.sum(G * A), sa.sum(G * (A + A.T)) / 2


CENTRE = I - sa.ones(n, n) / n


@true
def centring_twice():
    return CENTRE @ CENTRE @ X, X - sa.mean(X, axis=0)


@false
def not_centring_rows():
    return CENTRE @ A, A - sa.mean(A, axis=1, keepdims=True)


@true
def variance_two_ways():
    return sa.mean((x - sa.mean(x)) ** 2), sa.mean(x**2) - sa.mean(x) ** 2


# --- layouts ---

T3 = sa.tensor("X", n, h * k)


@true
def split_and_merge():
    return sa.merge_axes(sa.split_axis(T3, 1, (h, k)), (1, 2)), T3


@true
def merged_sum():
    return sa.sum(T3, axis=1), sa.sum(sa.sum(sa.split_axis(T3, 1, (h, k)), axis=2), axis=1)


@false
def not_merge_after_exchange():
    exchanged = sa.moveaxis(sa.split_axis(T3, 1, (h, k)), 1, 2)
    return sa.merge_axes(exchanged, (1, 2)), T3


@true
def repeat_then_group():
    heads = sa.tensor("H", h, d)
    return sa.split_axis(sa.repeat(heads, r, axis=0), 0, (h, r)), heads[:, None] * sa.ones(h, r, d)


@true
def concatenated_parts():
    top, bottom = sa.tensor("A", m, d), sa.tensor("B", p, d)
    joined = sa.concat([top, bottom])
    return sa.concat([joined[m:], joined[:m]]), sa.concat([bottom, top])


@false
def not_concatenated_parts_exchanged():
    top, bottom = sa.tensor("A", m, d), sa.tensor("B", m, d)
    return sa.concat([top, bottom]), sa.concat([bottom, top])


@true
def flip_twice():
    return sa.flip(sa.cumsum(sa.flip(x, 0)), 0), sa.cumsum(x, reverse=True)


@true
def einsum_as_products():
    return sa.einsum("ij,kj,kl->il", Q, K, sa.tensor("V", m, p)), Q @ K.T @ sa.tensor("V", m, p)


@true
def outer_as_product():
    return sa.outer(x, y) @ y, x * sa.sum(y**2)


@false
def not_outer_exchanged():
    return sa.outer(x, y), sa.outer(y, x)
