"""Claims about attention as it is built: heads, biases, caps, masks, norms and blocks."""

from __future__ import annotations

from typing import Any

import sympy

import symattn as sa

from .claims import (
    MS,
    ZS,
    K,
    M,
    Pi,
    Pm,
    Q,
    V,
    W_k,
    W_o,
    W_q,
    W_v,
    WH_k,
    WH_q,
    WH_v,
    X,
    Z,
    attend,
    c,
    d,
    f,
    false,
    h,
    joined_heads,
    k,
    m,
    n,
    p,
    r,
    rowsum,
    self_attention,
    true,
)

# --- heads ---

FLAT = [sa.tensor("W_q", d, h * k), sa.tensor("W_k", d, h * k), sa.tensor("W_v", d, h * p), W_o]


def split_heads(x: Any, size: Any) -> Any:
    return sa.moveaxis(sa.split_axis(x, -1, (h, size)), 1, 0)


def heads_of(x: Any, a: Any, b: Any, v: Any) -> Any:
    return attend(split_heads(x @ a, k), split_heads(x @ b, k), split_heads(x @ v, p))


def multi_head(x: Any, a: Any, b: Any, v: Any, o: Any) -> Any:
    return joined_heads(heads_of(x, a, b, v)) @ o


@true
def split_heads_equiv():
    return multi_head(Pi @ X, *FLAT), Pi @ multi_head(X, *FLAT)


@false
def not_split_heads_equiv_with_positions():
    E = sa.tensor("E", n, d)
    return multi_head(Pi @ X + E, *FLAT), Pi @ multi_head(X + E, *FLAT)


@true
def split_heads_sum():
    *weights, o = FLAT
    return multi_head(X, *FLAT), sa.einsum("hnp,hpd->nd", heads_of(X, *weights), sa.split_axis(o, 0, (h, p)))


@false
def not_split_heads_sum_merged_the_other_way():
    *weights, o = FLAT
    wrong = sa.merge_axes(sa.moveaxis(heads_of(X, *weights), 0, 2), (1, 2)) @ o
    return wrong, sa.einsum("hnp,hpd->nd", heads_of(X, *weights), sa.split_axis(o, 0, (h, p)))


@true
def heads_permuted_with_their_outputs():
    H, heads = sa.tensor("Pi", h, h, permutation=True), attend(X @ WH_q, X @ WH_k, X @ WH_v)
    outputs = sa.split_axis(W_o, 0, (h, p))
    moved = sa.einsum("gh,hnp->gnp", H, heads), sa.einsum("gh,hpd->gpd", H, outputs)
    return sa.sum(moved[0] @ moved[1], axis=0), sa.sum(heads @ outputs, axis=0)


@false
def not_heads_permuted_alone():
    H, heads = sa.tensor("Pi", h, h, permutation=True), attend(X @ WH_q, X @ WH_k, X @ WH_v)
    outputs = sa.split_axis(W_o, 0, (h, p))
    return sa.sum(sa.einsum("gh,hnp->gnp", H, heads) @ outputs, axis=0), sa.sum(heads @ outputs, axis=0)


QG, KG, VG = sa.tensor("Q", h * r, n, d), sa.tensor("K", h, m, d), sa.tensor("V", h, m, p)


def grouped() -> Any:
    split = sa.split_axis(QG, 0, (h, r))
    return sa.merge_axes(attend(split, KG[:, None], VG[:, None]), (0, 1))


@true
def grouped_heads():
    return attend(QG, sa.repeat(KG, r, axis=0), sa.repeat(VG, r, axis=0)), grouped()


@false
def not_grouped_heads_tiled():
    return attend(QG, sa.tile(KG, r, axis=0), sa.tile(VG, r, axis=0)), grouped()


@true
def grouped_heads_kv_perm():
    return attend(QG, sa.repeat(Pm @ KG, r, axis=0), sa.repeat(Pm @ VG, r, axis=0)), grouped()


@false
def not_grouped_heads_k_perm_only():
    return attend(QG, sa.repeat(Pm @ KG, r, axis=0), sa.repeat(VG, r, axis=0)), grouped()


@true
def fused_scores():
    return (X @ W_q) @ (X @ W_k).T, X @ (W_q @ W_k.T) @ X.T


@false
def not_fused_scores_transposed():
    return (X @ W_q) @ (X @ W_k).T, X @ (W_k @ W_q.T) @ X.T


@true
def fused_heads():
    outputs = sa.split_axis(W_o, 0, (h, p))
    P = sa.softmax((X @ WH_q) @ (X @ WH_k).mT / sympy.sqrt(k))
    return sa.sum(P @ (X @ WH_v) @ outputs, axis=0), sa.einsum("hnm,md,hde->ne", P, X, WH_v @ outputs)


@false
def not_fused_heads_into_one():
    outputs = sa.split_axis(W_o, 0, (h, p))
    P = sa.softmax((X @ WH_q) @ (X @ WH_k).mT / sympy.sqrt(k))
    return sa.sum(P @ (X @ WH_v) @ outputs, axis=0), sa.sum(P, axis=0) @ X @ sa.sum(WH_v @ outputs, axis=0)


# --- biases, caps and masks ---

BIAS = sa.tensor("B", n, n)


@true
def additive_bias_conj():
    return self_attention(Pi @ X, bias=Pi @ BIAS @ Pi.T), Pi @ self_attention(X, bias=BIAS)


@false
def not_additive_bias_left_in_place():
    return self_attention(Pi @ X, bias=BIAS), Pi @ self_attention(X, bias=BIAS)


@true
def softcap_equiv():
    def capped(x):
        return sa.softmax(c * sa.tanh((x @ W_q) @ (x @ W_k).T / c)) @ (x @ W_v)

    return capped(Pi @ X), Pi @ capped(X)


@false
def not_softcap_key_translate():
    def capped(keys):
        return sa.softmax(c * sa.tanh(Q @ keys.T / c)) @ V

    return capped(K + sa.tensor("b", d)), capped(K)


@true
def softcap_by_exponentials():
    e = sa.exp(2 * Z / c)
    return c * sa.tanh(Z / c), c * (e - 1) / (e + 1)


@true
def softmax_mask_conj():
    moved = sa.equal(Pi @ MS @ Pi.T, 1)
    return sa.softmax(Pi @ ZS @ Pi.T, where=moved), Pi @ sa.softmax(ZS, where=MS) @ Pi.T


@true
def masked_attention_conj():
    moved = sa.equal(Pi @ MS @ Pi.T, 1)
    return self_attention(Pi @ X, where=moved), Pi @ self_attention(X, where=MS)


@false
def not_masked_attention_with_the_rows_of_the_mask_moved():
    moved = sa.equal(Pi @ MS, 1)
    return self_attention(Pi @ X, where=moved), Pi @ self_attention(X, where=MS)


@true
def masked_rows_taken():
    rows = sa.tensor("t", n, integer=True)
    moved = sa.softmax(sa.take(ZS, rows, axis=0), where=sa.equal(sa.take(MS, rows, axis=0), 1))
    return moved, sa.take(sa.softmax(ZS, where=MS), rows, axis=0)


@false
def not_masked_columns_taken():
    columns = sa.tensor("t", n, integer=True)  # any places, which may repeat
    moved = sa.softmax(sa.take(ZS, columns, axis=1), where=sa.equal(sa.take(MS, columns, axis=1), 1))
    return moved, sa.take(sa.softmax(ZS, where=MS), columns, axis=1)


@true
def additive_mask_is_where():
    return sa.softmax(Z + sa.where(M, 0, -sympy.oo)), sa.softmax(Z, where=M)


@false
def not_additive_mask_of_ones():
    return sa.softmax(Z + sa.where(M, 0, -1)), sa.softmax(Z, where=M)


@true
def mask_of_ones():
    return sa.softmax(Z, where=sa.from_index((n, m), lambda i, j: sympy.true)), sa.softmax(Z)


@true
def masked_as_arithmetic():
    weights = sa.exp(Z) * M
    return sa.softmax(Z, where=M) * rowsum(weights), weights


@false
def not_masked_after_the_softmax():
    return sa.softmax(Z, where=M), sa.softmax(Z) * M


# --- norms ---


def layer_norm(x: Any, eps: Any = 0) -> Any:
    centred = x - sa.mean(x, axis=-1, keepdims=True)
    return centred * sa.rsqrt(sa.mean(centred**2, axis=-1, keepdims=True) + eps)


def rms_norm(x: Any, eps: Any = 0) -> Any:
    return x * sa.rsqrt(sa.mean(x**2, axis=-1, keepdims=True) + eps)


ROWS_UP = sa.tensor("a", n, 1, positive=True)
EPS = sympy.Rational(1, 100)


@true
def layer_norm_shift():
    return layer_norm(X + sa.tensor("b", n, 1), EPS), layer_norm(X, EPS)


@false
def not_layer_norm_shift_by_features():
    return layer_norm(X + sa.tensor("b", d), EPS), layer_norm(X, EPS)


@true
def layer_norm_scale():
    return layer_norm(c * X), layer_norm(X)


@true
def layer_norm_scale_rows():
    return layer_norm(ROWS_UP * X), layer_norm(X)


@false
def not_layer_norm_scale_with_eps():
    return layer_norm(c * X, EPS), layer_norm(X, EPS)


@false
def not_layer_norm_scale_of_any_sign():
    return layer_norm(-X), layer_norm(X)


@true
def layer_norm_equiv():
    return layer_norm(Pi @ X, EPS), Pi @ layer_norm(X, EPS)


@true
def rms_norm_orthogonal():
    U = sa.tensor("U", d, d, orthogonal=True)
    return rms_norm(X @ U, EPS), rms_norm(X, EPS) @ U


@false
def not_layer_norm_orthogonal():
    U = sa.tensor("U", d, d, orthogonal=True)
    return layer_norm(X @ U, EPS), layer_norm(X, EPS) @ U


@false
def not_rms_norm_shift():
    return rms_norm(X + sa.tensor("b", n, 1)), rms_norm(X)


@true
def qk_norm_scale():
    return attend(rms_norm(ROWS_UP * Q), rms_norm(c * K), V), attend(rms_norm(Q), rms_norm(K), V)


@false
def not_qk_norm_scale_of_the_values():
    return attend(rms_norm(c * Q), rms_norm(c * K), c * V), attend(rms_norm(Q), rms_norm(K), V)


@true
def layer_norm_by_moments():
    mean = sa.mean(X, axis=-1, keepdims=True)
    return layer_norm(X, EPS), (X - mean) / sa.sqrt(sa.mean(X**2, axis=-1, keepdims=True) - mean**2 + EPS)


# --- blocks ---


def weights_of(layer: int) -> list[Any]:
    shapes = {"W_q": (d, h * k), "W_k": (d, h * k), "W_v": (d, h * p), "W_o": (h * p, d), "F": (d, f), "G": (f, d)}
    vectors = {"g": (d,), "b": (d,), "u": (d,)}
    return [sa.tensor(f"{name}_{layer}", *shape) for name, shape in {**shapes, **vectors}.items()]


def pre_norm(x: Any, layer: int) -> Any:
    a, b, v, o, F, G, gain, bias, u = weights_of(layer)
    x = sa.let("x", x + multi_head(layer_norm(x, EPS) * gain + bias, a, b, v, o))
    return sa.let("y", x + sa.gelu(rms_norm(x, EPS) * u @ F) @ G)


def pre_norm_layers(x: Any, layers: int) -> Any:
    for layer in range(layers):
        x = pre_norm(x, layer)
    return x


@true
def pre_norm_equiv():
    return pre_norm_layers(Pi @ X, 1), Pi @ pre_norm_layers(X, 1)


@true
def two_pre_norm_equiv():
    return pre_norm_layers(Pi @ X, 2), Pi @ pre_norm_layers(X, 2)


@true
def eight_pre_norm_equiv():
    return pre_norm_layers(Pi @ X, 8), Pi @ pre_norm_layers(X, 8)


@false
def not_pre_norm_equiv_with_positions():
    E = sa.tensor("E", n, d)
    return pre_norm_layers(Pi @ X + E, 2), Pi @ pre_norm_layers(X + E, 2)
