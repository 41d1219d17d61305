"""Attention variants composed from public operations, each beside the same forward pass in NumPy, written by hand.

The NumPy takes complex arrays, since it is differentiated by the complex step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import sympy
from scipy.special import erf

import symattn as sa

SIZES = dict(zip(sa.sizes("h e d T D S f m r"), range(2, 11), strict=True))
h, e, d, T, D, S, f, m, r = SIZES
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
X = sa.tensor("X", T, D)
W_q, W_k, W_v = sa.tensor("W_q", D, d), sa.tensor("W_k", D, d), sa.tensor("W_v", D, e)
QH, KH, VH = sa.tensor("Q", h, T, d), sa.tensor("K", h, T, d), sa.tensor("V", h, T, e)
WH_q, WH_k, WH_v = sa.tensor("W_q", h, D, d), sa.tensor("W_k", h, D, d), sa.tensor("W_v", h, D, e)
KT, VT = sa.tensor("K", T, d), sa.tensor("V", T, e)
M = sa.tensor("M", T, S, binary=True)
CAUSAL = sa.from_index((T, T), lambda i, j: j <= i)
EPS = 0.01


class Variant(NamedTuple):
    """What is differentiated by what, and the same forward pass in NumPy, of ``wrt`` and then ``data``."""

    outputs: Any
    wrt: list[Any]
    numpy: Callable[..., Any]
    data: tuple[sa.Tensor, ...] = ()
    keywords: tuple[sympy.Symbol, ...] = ()  # sizes that no shape shows


VARIANTS: dict[str, Callable[[], Variant]] = {}


def variant(build: Callable[[], Any]) -> Callable[[], Variant]:
    def complete() -> Variant:
        made = Variant(*build())
        several = isinstance(made.outputs, list)
        return made if several else made._replace(outputs=[made.outputs], numpy=lambda *x: (made.numpy(*x),))

    VARIANTS[build.__name__] = complete
    return complete


# --- the same in symattn and in NumPy ---


def attend(q: Any, k: Any, v: Any, **mask: Any) -> Any:
    z = sa.let("Z", q @ k.mT / sympy.sqrt(q.shape[-1]))
    return sa.let("P", sa.softmax(z, **mask)) @ v


def np_softmax(z: Any, keep: Any = True) -> Any:
    weight = np.exp(z - z.real.max(axis=-1, keepdims=True)) * keep
    total = weight.sum(axis=-1, keepdims=True)
    return weight / np.where(total == 0, 1, total)


def np_attend(q: Any, k: Any, v: Any, keep: Any = True, bias: Any = 0) -> Any:
    return np_softmax(np.einsum("...td,...sd->...ts", q, k) / np.sqrt(q.shape[-1]) + bias, keep) @ v


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    centred = x - sa.mean(x, axis=-1, keepdims=True)
    return centred * sa.rsqrt(sa.mean(centred**2, axis=-1, keepdims=True) + EPS) * gain + bias


def np_layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    n = x.shape[-1]
    centred = x - x.sum(-1, keepdims=True) / n
    return centred / np.sqrt((centred * centred).sum(-1, keepdims=True) / n + EPS) * gain + bias


def np_mask(rows: int, columns: int, keep: Callable[[int, int], bool]) -> Any:
    return np.array([[keep(i, j) for j in range(columns)] for i in range(rows)])


def np_causal(n: int) -> Any:
    return np_mask(n, n, lambda i, j: j <= i)


# --- layers ---


@variant
def self_attention():
    return attend(X @ W_q, X @ W_k, X @ W_v), [X, W_q, W_k, W_v], lambda x, a, b, c: np_attend(x @ a, x @ b, x @ c)


@variant
def same_layer_twice():
    weight = sa.tensor("W_v", D, D)

    def layer(x):
        return sa.let("Y", attend(sa.let("q", x @ W_q), x @ W_k, x @ weight))

    def np_layer(x, a, b, c):
        return np_attend(x @ a, x @ b, x @ c)

    return layer(layer(X)), [X, W_q, W_k, weight], lambda x, *w: np_layer(np_layer(x, *w), *w)


def np_heads(x, a, b, c, o):
    return sum(np_attend(x @ a[n], x @ b[n], x @ c[n]) @ o[n] for n in range(len(a)))


@variant
def multi_head_einsum():
    W_o = sa.tensor("W_o", h, e, D)
    q, k, v = (sa.einsum("tm,hmd->htd", X, w) for w in (WH_q, WH_k, WH_v))
    p = sa.softmax(sa.einsum("htd,hsd->hts", q, k) / sympy.sqrt(d))
    return sa.einsum("hts,hse,hem->tm", p, v, W_o), [X, WH_q, WH_k, WH_v, W_o], np_heads


@variant
def multi_head_matmul():
    W_o = sa.tensor("W_o", h, e, D)
    return sa.sum(attend(X @ WH_q, X @ WH_k, X @ WH_v) @ W_o, axis=0), [X, WH_q, WH_k, WH_v, W_o], np_heads


def split_heads(x: Any, size: Any) -> Any:
    return sa.moveaxis(sa.split_axis(x, -1, (h, size)), 1, 0)


def np_split(x: Any, heads: int) -> list[Any]:
    size = x.shape[-1] // heads
    return [x[:, n * size : (n + 1) * size] for n in range(heads)]


def np_multi_head(x, a, b, c, o):
    parts = (np_split(x @ w, SIZES[h]) for w in (a, b, c))
    return np.concatenate([np_attend(*qkv) for qkv in zip(*parts, strict=True)], axis=1) @ o


def flat_weights(mark: str = "") -> list[sa.Tensor]:
    shapes = (D, h * d), (D, h * d), (D, h * e), (h * e, D)
    return [sa.tensor(f"W_{letter}{mark}", *shape) for letter, shape in zip("qkvo", shapes, strict=True)]


def multi_head(x, a, b, c, o):
    heads = attend(split_heads(x @ a, d), split_heads(x @ b, d), split_heads(x @ c, e))
    return sa.merge_axes(sa.moveaxis(heads, 0, 1), (1, 2)) @ o


@variant
def multi_head_split_and_merge():
    weights = flat_weights()
    return multi_head(X, *weights), [X, *weights], np_multi_head, (), (h,)


@variant
def grouped_query():
    q, k, v = sa.tensor("Q", h * r, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)

    def forward(a, b, c):
        return np.stack([np_attend(a[n], b[n // SIZES[r]], c[n // SIZES[r]]) for n in range(len(a))])

    return attend(q, sa.repeat(k, r, axis=0), sa.repeat(v, r, axis=0)), [q, k, v], forward


def block_parameters(mark: str) -> list[sa.Tensor]:
    shapes = {"g": (D,), "b": (D,), "u": (D,), "c": (D,), "A": (D, f), "a": (f,), "B": (f, D)}
    return [*flat_weights(mark), *(sa.tensor(name + mark, *shape) for name, shape in shapes.items())]


def block(x, *w):
    x = sa.let("x", x + multi_head(layer_norm(x, *w[4:6]), *w[:4]))
    return sa.let("y", x + sa.gelu(layer_norm(x, *w[6:8]) @ w[8] + w[9]) @ w[10])


def np_block(x, *w):
    x = x + np_multi_head(np_layer_norm(x, *w[4:6]), *w[:4])
    u = np_layer_norm(x, *w[6:8]) @ w[8] + w[9]
    return x + (u * (1 + erf(u / np.sqrt(2))) / 2) @ w[10]


@variant
def pre_norm_block():
    weights = block_parameters("")
    return block(X, *weights), [X, *weights], np_block, (), (h,)


@variant
def two_pre_norm_blocks():
    one, two = block_parameters("_1"), block_parameters("_2")
    forward = lambda x, *w: np_block(np_block(x, *w[:11]), *w[11:])  # noqa: E731
    return block(block(X, *one), *two), [X, *one, *two], forward, (), (h,)


# --- masks: boolean and additive, with rows that attend to nothing ---


def additive(shape: Any, keep: Callable[[Any, Any], Any]) -> sa.Tensor:
    return sa.from_index(shape, lambda i, j: sympy.Piecewise((0, keep(i, j)), (-sympy.oo, True)))


def in_window(i: Any, j: Any) -> Any:
    return (i - j >= 2) & (i - j <= 3)  # rows 0 and 1 are empty


def np_windowed(q, k, v):
    return np_attend(q, k, v, keep=np_mask(len(q), len(k), in_window))


@variant
def causal_where():
    return attend(Q, KT, VT, where=CAUSAL), [Q, KT, VT], lambda q, k, v: np_attend(q, k, v, np_causal(len(q)))


@variant
def causal_additive():
    mask = additive((T, T), lambda i, j: j <= i)
    p = sa.softmax(Q @ KT.T / sympy.sqrt(d) + mask)
    return p @ VT, [Q, KT, VT], lambda q, k, v: np_attend(q, k, v, np_causal(len(q)))


@variant
def padding_where():
    return attend(Q, K, V, where=M), [Q, K, V], np_attend, (M,)


@variant
def padding_additive():
    p = sa.softmax(Q @ K.T / sympy.sqrt(d) + sa.where(M, 0, -sympy.oo))
    return p @ V, [Q, K, V], np_attend, (M,)


@variant
def padding_of_keys_and_causal():
    real = sa.tensor("real", T, binary=True)
    forward = lambda q, k, v, keep: np_attend(q, k, v, np_causal(len(q)) & keep)  # noqa: E731
    return attend(Q, KT, VT, where=CAUSAL & real), [Q, KT, VT], forward, (real,)


@variant
def window_where():
    return attend(Q, K, V, where=sa.from_index((T, S), in_window)), [Q, K, V], np_windowed


@variant
def window_additive():
    return sa.softmax(Q @ K.T / sympy.sqrt(d) + additive((T, S), in_window)) @ V, [Q, K, V], np_windowed


# --- scores ---


@variant
def softcap():
    c = sympy.Symbol("c", positive=True)
    p = sa.softmax(c * sa.tanh(Q @ K.T / sympy.sqrt(d) / c))
    return p @ V, [Q, K, V, c], lambda q, k, v, c: np_softmax(c * np.tanh(q @ k.T / np.sqrt(q.shape[1]) / c)) @ v


@variant
def alibi():
    slopes = sa.tensor("s", h)
    bias = slopes[:, None, None] * sa.from_index((T, T), lambda i, j: j - i)
    p = sa.softmax(QH @ KH.mT / sympy.sqrt(d) + bias, where=CAUSAL)

    def forward(q, k, v, s):
        n = q.shape[1]
        distance = np.arange(n) - np.arange(n)[:, None]
        return np.stack([np_attend(q[a], k[a], v[a], np_causal(n), s[a] * distance) for a in range(len(s))])

    return p @ VH, [QH, KH, VH, slopes], forward


def np_rotations(positions: int, size: int, pairs: list[tuple[int, int]]) -> Any:
    """One rotation matrix a position: pair number a turns by t / 10000^(a / number of pairs)."""
    matrices = np.zeros((positions, size, size))
    for t in range(positions):
        for a, (i, j) in enumerate(pairs):
            angle = t * 10000.0 ** (-a / len(pairs))
            matrices[t, i, i] = matrices[t, j, j] = np.cos(angle)
            matrices[t, i, j], matrices[t, j, i] = -np.sin(angle), np.sin(angle)
    return matrices


def np_rotary(pairing: Callable[[int], list[tuple[int, int]]]) -> Callable[..., Any]:
    def forward(q, k, v):
        q, k = (np.einsum("tij,tj->ti", np_rotations(*x.shape, pairing(x.shape[1] // 2)), x) for x in (q, k))
        return np_attend(q, k, v)

    return forward


def angles(positions: Any) -> tuple[sa.Tensor, sa.Tensor]:
    def angle(t, a):
        return t * sympy.Integer(10000) ** (-a / m)

    return tuple(sa.from_index((positions, m), lambda t, a, fn=fn: fn(angle(t, a))) for fn in (sympy.cos, sympy.sin))


QR, KR = sa.tensor("Q", T, 2 * m), sa.tensor("K", S, 2 * m)


@variant
def rope_in_halves():
    def rotated(x):
        cos, sin = angles(x.shape[0])
        first, second = x[:, :m], x[:, m:]
        return sa.concat([first * cos - second * sin, first * sin + second * cos], axis=-1)

    return attend(rotated(QR), rotated(KR), V), [QR, KR, V], np_rotary(lambda n: [(a, a + n) for a in range(n)])


@variant
def rope_interleaved():
    def rotated(x):
        cos, sin = angles(x.shape[0])
        even, odd = x[..., 0::2], x[..., 1::2]
        turned = sa.concat([(even * cos - odd * sin)[..., None], (even * sin + odd * cos)[..., None]], axis=-1)
        return sa.merge_axes(turned, (-2, -1))

    return attend(rotated(QR), rotated(KR), V), [QR, KR, V], np_rotary(lambda n: [(2 * a, 2 * a + 1) for a in range(n)])


@variant
def sink_logit_per_head():
    b = sa.tensor("b", h)
    z = sa.concat([QH @ KH.mT / sympy.sqrt(d), b[:, None, None] * sa.ones(h, T, 1)], axis=-1)

    def forward(q, k, v, b):
        weight = np.exp(np.einsum("htd,hsd->hts", q, k) / np.sqrt(q.shape[-1]))
        return weight / (weight.sum(-1) + np.exp(b)[:, None])[..., None] @ v

    return sa.softmax(z)[..., :T] @ VH, [QH, KH, VH, b], forward


def np_tempered(q, k, v, tau):
    return np_softmax(q @ k.T / tau) @ v


@variant
def temperature_tensor():
    tau = sa.tensor("tau", positive=True)
    return sa.softmax(Q @ K.T / tau) @ V, [Q, K, V, tau], np_tempered


@variant
def temperature_symbol():
    tau = sympy.Symbol("tau", positive=True)
    return sa.softmax(Q @ K.T / tau) @ V, [Q, K, V, tau], np_tempered


@variant
def additive_attention():
    A, B, w = sa.tensor("A", d, f), sa.tensor("B", d, f), sa.tensor("w", f)
    p = sa.softmax(sa.tanh((Q @ A)[:, None, :] + (K @ B)[None, :, :]) @ w)

    def forward(q, k, v, a, b, w):
        return np_softmax(np.stack([(np.tanh(row @ a + k @ b) * w).sum(-1) for row in q])) @ v

    return p @ V, [Q, K, V, A, B, w], forward


# --- norms and losses ---


@variant
def layer_norm_with_gain():
    gain, bias = sa.tensor("g", D), sa.tensor("b", D)
    return layer_norm(X, gain, bias), [X, gain, bias], np_layer_norm


@variant
def rms_norm():
    gain = sa.tensor("g", D)
    y = X * sa.rsqrt(sa.mean(X**2, axis=-1, keepdims=True) + EPS) * gain
    return y, [X, gain], lambda x, g: x / np.sqrt((x * x).sum(-1, keepdims=True) / x.shape[1] + EPS) * g


@variant
def cross_entropy():
    weight, labels = sa.tensor("W", D, f), sa.tensor("Y", T, f, constant=True)
    z = sa.let("z", X @ weight)
    loss = -sa.mean(sa.sum(labels * (z - sa.logsumexp(z, keepdims=True)), axis=-1))

    def forward(x, w, y):
        chosen = np.array([p[row.argmax()] for p, row in zip(np_softmax(x @ w), y, strict=True)])
        return -np.log(chosen).sum() / len(x)

    return loss, [X, weight], forward, (labels,)


@variant
def output_and_logsumexp():
    z = sa.let("Z", Q @ K.T / sympy.sqrt(d))

    def forward(q, k, v):
        return np_attend(q, k, v), np.log(np.exp(q @ k.T / np.sqrt(q.shape[1])).sum(-1))

    return [sa.softmax(z) @ V, sa.logsumexp(z)], [Q, K, V], forward
