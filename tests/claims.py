"""The corpus of claims that the engine is held against: true and false ones, by name, built when they are asked for.

This file has the form of a case, what the cases share, and the basic claims about softmax attention; the claims of
``claims_attention`` and ``claims_algebra`` join the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy

import symattn as sa


@dataclass
class Case:
    """``left = right``, which is true or false under what is given.

    ``witness`` puts general tensors that satisfy what is given in the place of the named ones.
    """

    name: str
    left: sa.Tensor
    right: sa.Tensor
    true: bool
    given: tuple[Any, ...] = ()
    witness: Mapping[Any, Any] = field(default_factory=dict)


CLAIMS: dict[str, Callable[[], Case]] = {}


def _registered(build: Callable[[], tuple[Any, ...]], is_true: bool) -> Callable[[], Case]:
    def case() -> Case:
        left, right, *more = build()
        return Case(build.__name__, left, right, is_true, *more)

    assert build.__name__ not in CLAIMS, build.__name__
    CLAIMS[build.__name__] = case
    return case


def true(build: Callable[[], tuple[Any, ...]]) -> Callable[[], Case]:
    """Registers a true claim: a function that gives left, right, and perhaps what is given with its witness."""
    return _registered(build, True)


def false(build: Callable[[], tuple[Any, ...]]) -> Callable[[], Case]:
    """Registers a false claim."""
    return _registered(build, False)


# --- what the claims are about ---

n, m, d, k, p, h, r, f = sa.sizes("n m d k p h r f")
Q, K, V = sa.tensor("Q", n, d), sa.tensor("K", m, d), sa.tensor("V", m, p)
X = sa.tensor("X", n, d)
Z, M = sa.tensor("Z", n, m), sa.tensor("M", n, m, binary=True)
ZS, MS = sa.tensor("Z", n, n), sa.tensor("M", n, n, binary=True)  # square
Pi = sa.tensor("Pi", n, n, permutation=True)
Pm = sa.tensor("Pi", m, m, permutation=True)  # of the keys
W_q, W_k, W_v = sa.tensor("W_q", d, k), sa.tensor("W_k", d, k), sa.tensor("W_v", d, p)
WH_q, WH_k, WH_v = sa.tensor("W_q", h, d, k), sa.tensor("W_k", h, d, k), sa.tensor("W_v", h, d, p)
W_o = sa.tensor("W_o", h * p, d)
CAUSAL = sa.from_index((n, n), lambda i, j: j <= i)
s = sympy.Symbol("s", real=True)
c = sympy.Symbol("c", positive=True)


def attend(q: Any, key: Any, v: Any, scale: Any = None, bias: Any = 0, **mask: Any) -> Any:
    """Softmax attention, scaled by the root of the number of features unless told otherwise."""
    factor = 1 / sympy.sqrt(q.shape[-1]) if scale is None else scale
    return sa.softmax(factor * (q @ key.mT) + bias, **mask) @ v


def self_attention(x: Any, **options: Any) -> Any:
    return attend(x @ W_q, x @ W_k, x @ W_v, **options)


def rowsum(x: Any) -> Any:
    return sa.sum(x, axis=-1, keepdims=True)


def joined_heads(heads: Any) -> Any:
    """``(h, n, p)`` to ``(n, h p)``: the heads side by side."""
    return sa.merge_axes(sa.moveaxis(heads, 0, 1), (1, 2))


def block(x: Any) -> Any:
    """Attention, then a layer with one hidden relu, and the input added; no norm."""
    F, G = sa.tensor("F", p, k), sa.tensor("G", k, d)
    return x + sa.relu(self_attention(x) @ F) @ G


# --- permutations, orthogonal and linear changes ---


@true
def perm_equiv():
    return self_attention(Pi @ X), Pi @ self_attention(X)


@false
def not_causal_equiv():
    return self_attention(Pi @ X, where=CAUSAL), Pi @ self_attention(X, where=CAUSAL)


@false
def not_posenc_equiv():
    E = sa.tensor("E", n, d)
    return self_attention(Pi @ X + E), Pi @ self_attention(X + E)


@true
def kv_perm_inv():
    return attend(Q, Pm @ K, Pm @ V), attend(Q, K, V)


@false
def not_k_perm_only():
    return attend(Q, Pm @ K, V), attend(Q, K, V)


@true
def q_row_equiv():
    return attend(Pi @ Q, K, V), Pi @ attend(Q, K, V)


@false
def not_q_row_equiv_transposed():
    return attend(Pi @ Q, K, V), Pi.T @ attend(Q, K, V)


@true
def pi_orth():
    return Pi @ Pi.T @ X, X


@false
def not_pi_squared():
    return Pi @ Pi @ X, X


@true
def orth_basis():
    U = sa.tensor("U", d, d, orthogonal=True)
    return attend(Q @ U, K @ U, V), attend(Q, K, V)


@false
def not_orth_basis_transposed():
    U = sa.tensor("U", d, d, orthogonal=True)
    return attend(Q @ U, K @ U.T, V), attend(Q, K, V)


@true
def gl_reparam():
    A = sa.tensor("A", d, d, invertible=True)
    return attend(Q @ A, K @ sa.inv(A).T, V), attend(Q, K, V)


@false
def not_gl_without_transpose():
    A = sa.tensor("A", d, d, invertible=True)
    return attend(Q @ A, K @ sa.inv(A), V), attend(Q, K, V)


@true
def block_equiv():
    return block(Pi @ X), Pi @ block(X)


@true
def two_layer_equiv():
    return block(block(Pi @ X)), Pi @ block(block(X))


@false
def not_two_layer_equiv_with_positions():
    E = sa.tensor("E", n, d)
    return block(block(Pi @ X) + E), Pi @ block(block(X) + E)


@true
def masked_conj():
    moved = sa.exp(Pi @ ZS @ Pi.T) * (Pi @ MS @ Pi.T)
    weights = sa.exp(ZS) * MS
    return moved / rowsum(moved), Pi @ (weights / rowsum(weights)) @ Pi.T


@false
def not_masked_with_the_mask_left_in_place():
    return sa.softmax(Pi @ ZS @ Pi.T, where=MS), Pi @ sa.softmax(ZS, where=MS) @ Pi.T


# --- shifts and scales ---


@true
def softmax_shift():
    return sa.softmax(Z + sa.tensor("c", n, 1)), sa.softmax(Z)


@false
def not_softmax_colshift():
    return sa.softmax(Z + sa.tensor("c", m)), sa.softmax(Z)


@false
def not_softmax_linear():
    return sa.softmax(2 * Z), sa.softmax(Z)


@true
def key_translate():
    return attend(Q, K + sa.tensor("b", d), V), attend(Q, K, V)


@false
def not_query_translate():
    return attend(Q + sa.tensor("b", d), K, V), attend(Q, K, V)


@true
def attn_affine_v():
    u = sa.tensor("u", p)
    return attend(Q, K, V + u), attend(Q, K, V) + u


@false
def not_value_translate():
    return attend(Q, K, V + sa.tensor("u", p)), attend(Q, K, V)


@true
def qk_bias_cancel():
    a, b = sa.tensor("a", d), sa.tensor("b", d)
    return sa.softmax((Q + a) @ (K + b).T), sa.softmax(Q @ K.T + a @ K.T)


@false
def not_qk_bias_cancel_of_the_query():
    a, b = sa.tensor("a", d), sa.tensor("b", d)
    return sa.softmax((Q + a) @ (K + b).T), sa.softmax(Q @ K.T)


@false
def not_scale():
    return attend(Q, K, V, scale=1), attend(Q, K, V)


@true
def softmax_rowsum1():
    return rowsum(sa.softmax(Z)), sa.ones(n, 1)


@false
def not_softmax_colsum1():
    return sa.sum(sa.softmax(Z), axis=0), sa.ones(m)


@true
def double_transpose():
    return (Q @ K.T).T, K @ Q.T


@false
def not_scores_symmetric():
    Y = sa.tensor("Y", n, d)
    return X @ Y.T, Y @ X.T


# --- heads ---


@true
def multihead_sum():
    heads = attend(X @ WH_q, X @ WH_k, X @ WH_v)
    return joined_heads(heads) @ W_o, sa.sum(heads @ sa.split_axis(W_o, 0, (h, p)), axis=0)


@false
def not_multihead_sum_of_the_values():
    heads = attend(X @ WH_q, X @ WH_k, X @ WH_v)
    return joined_heads(heads) @ W_o, sa.sum((X @ WH_v) @ sa.split_axis(W_o, 0, (h, p)), axis=0)


@true
def multihead_perm():
    def multi_head(x):
        return joined_heads(attend(x @ WH_q, x @ WH_k, x @ WH_v)) @ W_o

    return multi_head(Pi @ X), Pi @ multi_head(X)


@true
def twohead_sum():
    H1, H2 = sa.tensor("H_1", n, k), sa.tensor("H_2", n, k)
    W1, W2 = sa.tensor("W_1", k, d), sa.tensor("W_2", k, d)
    return sa.concat([H1, H2], axis=1) @ sa.concat([W1, W2], axis=0), H1 @ W1 + H2 @ W2


@false
def not_twohead_sum_exchanged():
    H1, H2 = sa.tensor("H_1", n, k), sa.tensor("H_2", n, k)
    W1, W2 = sa.tensor("W_1", k, d), sa.tensor("W_2", k, d)
    return sa.concat([H2, H1], axis=1) @ sa.concat([W1, W2], axis=0), H1 @ W1 + H2 @ W2


# --- gradients of softmax, written two ways ---


@true
def softmax_grad_row():
    w, g = sa.tensor("p", m), sa.tensor("dp", m)
    return w * (g - sa.sum(w * g)), g @ (sa.diag(w) - sa.outer(w, w))


@true
def softmax_grad_mat():
    P, dP = sa.tensor("P", n, m), sa.tensor("dP", n, m)
    return P * (dP - rowsum(P * dP)), P * dP - sa.diag(sa.sum(P * dP, axis=-1)) @ P


@false
def not_softmax_grad_mat_by_columns():
    P, dP = sa.tensor("P", n, m), sa.tensor("dP", n, m)
    return P * (dP - rowsum(P * dP)), P * dP - P @ sa.diag(sa.sum(P * dP, axis=0))


@true
def softmax_grad_rowsum0():
    P, dP = sa.softmax(Z), sa.tensor("dP", n, m)
    return rowsum(P * (dP - rowsum(P * dP))), sa.zeros(n, 1)


@false
def not_softmax_grad_rowsum0_without_the_softmax():
    P, dP = sa.tensor("P", n, m), sa.tensor("dP", n, m)
    return rowsum(P * (dP - rowsum(P * dP))), sa.zeros(n, 1)


# --- blocks of keys ---


def two_blocks() -> tuple[Any, ...]:
    Z1, Z2 = sa.tensor("Z_1", n, m), sa.tensor("Z_2", n, k)
    V1, V2 = sa.tensor("V_1", m, p), sa.tensor("V_2", k, p)
    return Z1, Z2, V1, V2, sa.softmax(sa.concat([Z1, Z2], axis=1)) @ sa.concat([V1, V2], axis=0)


def online(mu: Any, forgets: bool = False) -> tuple[Any, Any]:
    Z1, Z2, V1, V2, want = two_blocks()
    top1, top2 = (sa.max(z, axis=-1, keepdims=True) for z in (Z1, Z2))
    E1, E2 = sa.exp(Z1 - top1), sa.exp(Z2 - top2)
    a, b = (1 if forgets else sa.exp(top1 - mu)), sa.exp(top2 - mu)
    return (a * (E1 @ V1) + b * (E2 @ V2)) / (a * rowsum(E1) + b * rowsum(E2)), want


@true
def online_softmax():
    return online(sa.tensor("mu", n, 1))


@false
def not_online_softmax_without_rescaling():
    return online(sa.tensor("mu", n, 1), forgets=True)


@true
def blockwise_explicit():
    Z1, Z2, V1, V2, want = two_blocks()
    E1, E2 = sa.exp(Z1), sa.exp(Z2)
    return (E1 @ V1 + E2 @ V2) / (rowsum(E1) + rowsum(E2)), want


@false
def not_blockwise_as_a_sum_of_attentions():
    Z1, Z2, V1, V2, want = two_blocks()
    return sa.softmax(Z1) @ V1 + sa.softmax(Z2) @ V2, want
