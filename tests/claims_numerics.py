"""Claims about how attention is computed, differentiated and rewritten: blocks, gradients, kernels, recurrences."""

from __future__ import annotations

from typing import Any

import sympy

import symattn as sa
from symattn.proof.claims import eq

from .claims import ZS, K, Pi, Q, V, X, Z, attend, d, false, k, m, n, p, r, rowsum, true

# --- logsumexp ---

Z1, Z2 = sa.tensor("Z_1", n, m), sa.tensor("Z_2", n, k)
V1, V2 = sa.tensor("V_1", m, p), sa.tensor("V_2", k, p)
JOINED = sa.concat([Z1, Z2], axis=1)


def lse(z: Any) -> Any:
    return sa.logsumexp(z, keepdims=True)


@true
def logsumexp_shift():
    b = sa.tensor("b", n, 1)
    return lse(Z + b), lse(Z) + b


@false
def not_logsumexp_shift_by_columns():
    return lse(Z + sa.tensor("b", m)), lse(Z) + sa.tensor("b", m)[0]


@true
def logsumexp_merge():
    return lse(JOINED), sa.log(sa.exp(lse(Z1)) + sa.exp(lse(Z2)))


@true
def logsumexp_merge_by_softplus():
    return lse(JOINED), lse(Z1) + sa.softplus(lse(Z2) - lse(Z1))


@false
def not_logsumexp_merge_by_adding():
    return lse(JOINED), lse(Z1) + lse(Z2)


@true
def outputs_merged_by_logsumexp():
    parts = sa.exp(lse(Z1) - lse(JOINED)) * (sa.softmax(Z1) @ V1), sa.exp(lse(Z2) - lse(JOINED)) * (sa.softmax(Z2) @ V2)
    return parts[0] + parts[1], sa.softmax(JOINED) @ sa.concat([V1, V2])


@true
def outputs_merged_by_sigmoid():
    share = sa.sigmoid(lse(Z1) - lse(Z2))
    one, two = sa.softmax(Z1) @ V1, sa.softmax(Z2) @ V2
    return two + share * (one - two), sa.softmax(JOINED) @ sa.concat([V1, V2])


@false
def not_outputs_merged_by_averaging():
    return (sa.softmax(Z1) @ V1 + sa.softmax(Z2) @ V2) / 2, sa.softmax(JOINED) @ sa.concat([V1, V2])


@true
def logsumexp_equals_max_and_rest():
    top = sa.max(Z, axis=-1, keepdims=True)
    return lse(Z), top + sa.log(rowsum(sa.exp(Z - top)))


@false
def not_logsumexp_of_the_halved_scores():
    return lse(Z / 2), lse(Z) / 2


# --- gradients ---

O = attend(Q, K, V)
BACK = sa.gradient(O, [Q, K, V])
DO = BACK.cotangent
P = sa.softmax(Q @ K.T / sympy.sqrt(d))
DP = DO @ V.T
DZ = P * (DP - rowsum(P * DP))
GZ = sa.tensor("dP", n, m)


@true
def flash_rowsum():
    return rowsum(P * DP), rowsum(DO * O)


@false
def not_flash_rowsum_unweighted():
    return rowsum(DP), rowsum(DO * O)


@false
def not_flash_colsum():
    G = sa.tensor("dO", n, p)
    weights, values = sa.softmax(ZS), sa.tensor("V", n, p)
    return sa.sum(weights * (G @ values.T), axis=0), sa.sum(G * (weights @ values), axis=1)


@true
def gradient_by_delta():
    return BACK[Q], P * (DP - rowsum(DO * O)) @ K / sympy.sqrt(d)


@true
def gradient_by_rowsum():
    return BACK[K], DZ.T @ Q / sympy.sqrt(d)


@true
def gradient_by_jacobian():
    J = P[:, :, None] * sa.eye(m) - P[:, :, None] * P[:, None, :]
    return BACK[Q], sa.einsum("nm,nml,ld->nd", DP, J, K) / sympy.sqrt(d)


@true
def gradient_by_diagonal():
    return BACK[Q], (P * DP - sa.diag(sa.sum(P * DP, axis=1)) @ P) @ K / sympy.sqrt(d)


@true
def gradient_of_values():
    return BACK[V], P.T @ DO


@false
def not_gradient_unscaled():
    return BACK[Q], DZ @ K


@false
def not_gradient_without_the_rowsum():
    return BACK[Q], P * DP @ K / sympy.sqrt(d)


@false
def not_gradient_by_the_mean():
    return BACK[K], (P * (DP - sa.mean(P * DP, axis=1, keepdims=True))).T @ Q / sympy.sqrt(d)


@false
def not_gradient_transposed():
    x, y, g = sa.tensor("Q", n, d), sa.tensor("K", n, d), sa.tensor("G", n, n)
    out = sa.softmax(x @ y.T)
    back = sa.gradient({out: g}, [y])
    return back[y], out * (g - rowsum(out * g)) @ x


def jacobian() -> Any:
    z = sa.tensor("z", n)
    return sa.jacobian(sa.softmax(z), z)


@true
def softmax_jacobian_rows():
    return sa.sum(jacobian(), axis=1), sa.zeros(n)


@true
def softmax_jacobian_symmetric():
    return jacobian(), jacobian().T


@false
def not_softmax_jacobian_diagonal():
    return jacobian(), sa.diag(sa.softmax(sa.tensor("z", n)))


@true
def self_attention_gradient():
    y = sa.softmax(X @ X.T) @ X
    back = sa.gradient(y, [X])
    w, g = sa.softmax(X @ X.T), back.cotangent
    dz = w * (g @ X.T - rowsum(w * (g @ X.T)))
    return back[X], (dz + dz.T) @ X + w.T @ g


@false
def not_self_attention_gradient_counted_once():
    y = sa.softmax(X @ X.T) @ X
    back = sa.gradient(y, [X])
    w, g = sa.softmax(X @ X.T), back.cotangent
    return back[X], w * (g @ X.T - rowsum(w * (g @ X.T))) @ X + w.T @ g


LABELS = sa.tensor("Y", n, m, constant=True)
ONE_LABEL = eq(rowsum(LABELS), sa.ones(n, 1))
LABELS_OF_ONE = {LABELS: LABELS + (1 - rowsum(LABELS)) / m}


def cross_entropy_gradient() -> Any:
    loss = -sa.mean(sa.sum(LABELS * (Z - lse(Z)), axis=-1))
    return sa.gradient(loss, [Z])[Z]


@true
def cross_entropy():
    return cross_entropy_gradient(), (sa.softmax(Z) - LABELS) / n, (ONE_LABEL,), LABELS_OF_ONE


@true
def cross_entropy_of_any_labels():
    return cross_entropy_gradient(), (rowsum(LABELS) * sa.softmax(Z) - LABELS) / n


@false
def not_cross_entropy_of_any_labels():
    return cross_entropy_gradient(), (sa.softmax(Z) - LABELS) / n


@false
def not_cross_entropy_unscaled():
    return cross_entropy_gradient(), sa.softmax(Z) - LABELS, (ONE_LABEL,), LABELS_OF_ONE


@true
def layer_norm_gradient():
    x = sa.tensor("x", n)
    centred = x - sa.mean(x)
    back = sa.gradient(centred * sa.rsqrt(sa.mean(centred**2)), [x])
    g, deviation = back.cotangent, sa.sqrt(sa.mean(centred**2))
    y = centred / deviation
    return back[x], (g - sa.mean(g) - y * sa.mean(g * y)) / deviation


# --- two classes ---


@true
def sigmoid_two_classes():
    x = sa.tensor("x", n)
    return sa.softmax(sa.concat([x[:, None], sa.zeros(n, 1)], axis=1))[:, 0], sa.sigmoid(x)


@true
def softmax_of_a_pair():
    x, y = sa.tensor("x", n), sa.tensor("y", n)
    return sa.softmax(sa.concat([x[:, None], y[:, None]], axis=1))[:, 0], sa.sigmoid(x - y)


@false
def not_softmax_of_a_pair_the_other_way():
    x, y = sa.tensor("x", n), sa.tensor("y", n)
    return sa.softmax(sa.concat([x[:, None], y[:, None]], axis=1))[:, 0], sa.sigmoid(y - x)


@true
def tanh_by_sigmoid():
    return sa.tanh(Z), 2 * sa.sigmoid(2 * Z) - 1


@false
def not_tanh_by_sigmoid_unscaled():
    return sa.tanh(Z), 2 * sa.sigmoid(Z) - 1


# --- set transformer ---

INDUCING, SEEDS = sa.tensor("I", r, d), sa.tensor("S", k, d)


def set_block(x: Any, y: Any) -> Any:
    """Attention of x to y with the input added, then a layer of its own for each row."""
    hidden = x + attend(x, y, y)
    return hidden + sa.unknown("phi", hidden, rowwise=True)


def induced(x: Any) -> Any:
    return set_block(x, set_block(INDUCING, x))


@true
def set_block_equiv():
    return set_block(Pi @ X, Pi @ X), Pi @ set_block(X, X)


@true
def induced_set_block_equiv():
    return induced(Pi @ X), Pi @ induced(X)


@true
def set_pooling_invariant():
    return set_block(SEEDS, induced(Pi @ X)), set_block(SEEDS, induced(X))


@false
def not_set_block_invariant():
    return set_block(Pi @ X, Pi @ X), set_block(X, X)


@false
def not_set_pooling_of_the_first_row_invariant():
    return induced(Pi @ X)[0], induced(X)[0]
