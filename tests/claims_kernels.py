"""Claims about attention without a softmax of products: kernels, norms, linear attention, recurrences."""

from __future__ import annotations

from typing import Any

import sympy

import symattn as sa
from symattn.proof.claims import eq

from .claims import ZS, K, Pm, Q, V, X, attend, d, f, false, m, n, p, rowsum, s, true

# --- kernel regression ---


def one_feature() -> tuple[Any, Any, Any, Any]:
    x, xi, y = sa.tensor("x", n), sa.tensor("xi", m), sa.tensor("y", m)
    return x, xi, y, -((x[:, None] - xi) ** 2) / 2


@true
def nadaraya_watson():
    _, _, y, z = one_feature()
    G = sa.exp(z)
    return (G @ y) / sa.sum(G, axis=-1), sa.softmax(z) @ y


@true
def nw_dotform():
    x, xi, y, z = one_feature()
    G = sa.exp(z)
    return (G @ y) / sa.sum(G, axis=-1), sa.softmax(sa.outer(x, xi) - xi**2 / 2) @ y


@false
def not_nw_dotform_without_the_norms():
    x, xi, y, z = one_feature()
    G = sa.exp(z)
    return (G @ y) / sa.sum(G, axis=-1), sa.softmax(sa.outer(x, xi)) @ y


def linear(q: Any, key: Any, v: Any) -> Any:
    a, b = sa.unknown("phi", q), sa.unknown("phi", key)
    return (a @ (b.T @ v)) / (a @ sa.sum(b, axis=0))[:, None]


@true
def linattn_assoc():
    return (Q @ K.T) @ V, Q @ (K.T @ V)


@false
def not_linattn_assoc_of_a_softmax():
    return sa.softmax(Q @ K.T) @ V, sa.softmax(Q) @ (sa.softmax(K).T @ V)


@true
def linattn_norm():
    weights = sa.unknown("phi", Q) @ sa.unknown("phi", K).T
    return linear(Q, K, V), (weights @ V) / rowsum(weights)


@false
def not_linattn_norm_by_columns():
    weights = sa.unknown("phi", Q) @ sa.unknown("phi", K).T
    return linear(Q, K, V), (weights / sa.sum(weights, axis=0)) @ V


@true
def linattn_perm():
    return linear(Q, Pm @ K, Pm @ V), linear(Q, K, V)


@false
def not_linattn_perm_of_keys_alone():
    return linear(Q, Pm @ K, V), linear(Q, K, V)


DISTANCES = sa.sum((Q[:, None] - K[None]) ** 2, axis=-1)


@true
def gaussian_kernel_regression():
    G = sa.exp(-DISTANCES / 2)
    return (G @ V) / rowsum(G), attend(Q, K, V, scale=1, bias=-sa.sum(K**2, axis=-1) / 2)


@false
def not_gaussian_kernel_regression_without_the_norms():
    G = sa.exp(-DISTANCES / 2)
    return (G @ V) / rowsum(G), attend(Q, K, V, scale=1)


@true
def gaussian_kernel_of_keys_of_one_norm():
    level = sympy.Symbol("c", positive=True)
    G = sa.exp(-DISTANCES / 2)
    norms = eq(sa.sum(K**2, axis=-1), level * sa.ones(m))
    unit = K * sa.rsqrt(rowsum(K**2))
    return (G @ V) / rowsum(G), attend(Q, K, V, scale=1), (norms,), {K: sympy.sqrt(level) * unit}


@true
def kernel_regression_perm():
    def regression(keys, values):
        G = sa.unknown("kappa", sa.sum((Q[:, None] - keys[None]) ** 2, axis=-1))
        return (G @ values) / rowsum(G)

    return regression(Pm @ K, Pm @ V), regression(K, V)


# --- vectors of given norms ---


def unit(vectors: Any) -> Any:
    return vectors * sa.rsqrt(rowsum(vectors**2))


@true
def unit_vectors():
    return sa.sum(unit(Q) ** 2, axis=-1), sa.ones(n)


@true
def cosines():
    return unit(Q) @ unit(K).T, Q @ K.T / (sa.sqrt(rowsum(Q**2)) * sa.sqrt(rowsum(K**2)).T)


@true
def distance_of_unit_vectors():
    given = eq(sa.sum(Q**2, axis=-1), sa.ones(n)), eq(sa.sum(K**2, axis=-1), sa.ones(m))
    distances = sa.sum((Q[:, None] - K[None]) ** 2, axis=-1)
    return distances, 2 - 2 * Q @ K.T, given, {Q: unit(Q), K: unit(K)}


@false
def not_distance_of_any_vectors():
    return sa.sum((Q[:, None] - K[None]) ** 2, axis=-1), 2 - 2 * Q @ K.T


@true
def softmax_of_distances_with_queries_of_any_norm():
    given = (eq(sa.sum(K**2, axis=-1), sa.ones(m)),)
    distances = sa.sum((Q[:, None] - K[None]) ** 2, axis=-1)
    return sa.softmax(-distances), sa.softmax(2 * Q @ K.T), given, {K: unit(K)}


@false
def not_softmax_of_distances_with_queries_of_one_norm():
    given = (eq(sa.sum(Q**2, axis=-1), sa.ones(n)),)
    distances = sa.sum((Q[:, None] - K[None]) ** 2, axis=-1)
    return sa.softmax(-distances), sa.softmax(2 * Q @ K.T), given, {Q: unit(Q)}


@true
def columns_of_given_sum():
    column_sums = (eq(sa.sum(ZS, axis=0), sa.ones(n)),)
    return sa.sum(ZS @ X, axis=0), sa.sum(X, axis=0), column_sums, {ZS: ZS + (1 - sa.sum(ZS, axis=0)) / n}


@false
def not_rows_of_given_sum():
    row_sums = (eq(sa.sum(ZS, axis=1), sa.ones(n)),)
    return sa.sum(ZS @ X, axis=0), sa.sum(X, axis=0), row_sums, {ZS: ZS + (1 - rowsum(ZS)) / n}


# --- linear attention and recurrences ---


@true
def linear_attention_with_features():
    a, b = sa.unknown("phi", Q, rowwise=True), sa.unknown("phi", K, rowwise=True)
    weights = a @ b.T
    return (a @ (b.T @ V)) / (a @ (b.T @ sa.ones(m, 1))), (weights / rowsum(weights)) @ V


@false
def not_linear_attention_without_the_normaliser():
    a, b = sa.unknown("phi", Q), sa.unknown("phi", K)
    return a @ (b.T @ V), (a @ (b.T @ V)) / (a @ sa.sum(b, axis=0))[:, None]


KN, VN = sa.tensor("K", n, d), sa.tensor("V", n, p)


@true
def causal_linear_attention_by_states():
    states = sa.cumsum(KN[:, :, None] * VN[:, None, :], axis=0)
    return sa.einsum("nd,ndp->np", Q, states), sa.tril(Q @ KN.T) @ VN


@false
def not_causal_linear_attention_by_the_last_state():
    return Q @ (KN.T @ VN), sa.tril(Q @ KN.T) @ VN


def delta_rule(steps: int) -> tuple[Any, Any, Any, Any]:
    """Keys, values, rates, and the state of the recurrence ``S + beta_t (v_t - S k_t) k_t^T`` after the steps."""
    keys, values = sa.tensor("K", steps, d), sa.tensor("V", steps, p)
    rates, state = sa.tensor("beta", steps), sa.zeros(p, d)
    for t in range(steps):
        state = state + rates[t] * sa.outer(values[t] - state @ keys[t], keys[t])
    return keys, values, rates, state


def by_products(steps: int, latest_first: bool = False, decay: bool = True) -> tuple[Any, Any]:
    keys, values, rates, state = delta_rule(steps)
    factors = [sa.eye(d) - rates[t] * sa.outer(keys[t], keys[t]) for t in range(steps)]
    total = sa.zeros(p, d)
    for t in range(steps):
        term = rates[t] * sa.outer(values[t], keys[t])
        later = factors[t + 1 :][::-1] if latest_first else factors[t + 1 :]
        for factor in later if decay else ():
            term = term @ factor
        total = total + term
    return state, total


@true
def delta_rule_of_two():
    return by_products(2)


@true
def delta_rule_of_three():
    return by_products(3)


@false
def not_delta_rule_in_the_other_order():
    return by_products(3, latest_first=True)


@false
def not_delta_rule_without_decay():
    return by_products(2, decay=False)


def by_solving(steps: int, corner: int) -> tuple[Any, Any]:
    keys, values, rates, state = delta_rule(steps)
    system = sa.eye(steps) + sa.tril(sa.diag(rates) @ keys @ keys.T, corner)
    return state, (sa.inv(system) @ (sa.diag(rates) @ values)).T @ keys


@true
def delta_rule_of_two_solved():
    return by_solving(2, -1)


@true
def delta_rule_of_three_solved():
    return by_solving(3, -1)


@false
def not_delta_rule_solved_with_the_diagonal():
    return by_solving(2, 0)


# --- decay ---


@true
def retention_by_decay():
    scores = Q @ KN.T
    decay = sa.from_index((n, n), lambda i, j: sympy.exp(s * (i - j)))
    row, column = (sa.from_index((n, 1), lambda i, j, sign=sign: sympy.exp(sign * s * i)) for sign in (1, -1))
    return scores * decay @ VN, (row * Q) @ ((column * KN).T @ VN)


@false
def not_retention_by_decay_causal():
    decay = sa.from_index((n, n), lambda i, j: sympy.exp(s * (i - j)))
    return sa.tril(Q @ KN.T * decay) @ VN, Q @ KN.T * decay @ VN


@true
def feed_forward_as_key_value_memory():
    F, G = sa.tensor("F", f, d), sa.tensor("G", f, d)
    return sa.relu(X @ F.T) @ G, sa.einsum("nf,fd->nd", sa.relu(sa.einsum("ne,fe->nf", X, F)), G)
