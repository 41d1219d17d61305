"""Attention and what goes with it as an expert writes it in NumPy: head by head, rows in blocks that stay in cache.

Each is written from the mathematics: with E = exp(Z - max Z) and l its row sums, O = (E V) / l; backwards, with G the
cotangent of O and D = rowsum(G * O), dZ = E * ((G V^T - D) / l), dV = E^T (G / l), dQ = c dZ K and dK = c dZ^T Q.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Columns = Callable[[int, int], tuple[int, int]]
Edit = Callable[[Any, Any, slice, slice], Any]
_BLOCK = 1 << 20  # bytes of scores, which is what a core has close by


def rows_in_block(keys: int, itemsize: int, most: int) -> int:
    return min(most, max(32, _BLOCK // (keys * itemsize)))


class Blocks:
    """The blocks of rows of one call, in buffers that are used again."""

    def __init__(self, Q: Any, K: Any, columns: Columns | None, buffers: int) -> None:
        self.rows, self.keys, self.columns = Q.shape[-2], K.shape[-2], columns
        self.height = rows_in_block(self.keys, Q.itemsize, self.rows if columns is None else max(32, self.rows // 8))
        self.buffers = [np.empty(self.height * self.keys, Q.dtype) for _ in range(buffers)]
        self.ones = np.ones(self.keys, Q.dtype)

    def __iter__(self) -> Any:
        for i in range(0, self.rows, self.height):
            below = min(i + self.height, self.rows)
            left, right = (0, self.keys) if self.columns is None else self.columns(i, below)
            size = (below - i) * (right - left)
            views = [x[:size].reshape(below - i, right - left) for x in self.buffers]
            yield slice(i, below), slice(left, right), *views


def _exponentials(a: Any, ones: Any) -> Any:
    """exp(a - max a) in place, and its row sums."""
    a -= a.max(-1, keepdims=True)
    np.exp(a, out=a)
    return np.matmul(a, ones[: a.shape[1]])[:, None]


def forward(Q: Any, K: Any, V: Any, edit: Edit | None = None, columns: Columns | None = None, shared: int = 1) -> Any:
    """softmax(edit(Q K^T / sqrt(d))) V; so many heads of queries may share one of keys."""
    O, c = np.empty((*Q.shape[:-1], V.shape[-1]), Q.dtype), Q.dtype.type(Q.shape[-1] ** -0.5)
    blocks = Blocks(Q, K, columns, 1)
    for at in np.ndindex(Q.shape[:-2]):
        q, k, v, o = Q[at] * c, K[_of(at, shared)], V[_of(at, shared)], O[at]
        for i, j, a in blocks:
            np.matmul(q[i], k[j].T, out=a)
            if edit is not None:
                edit(a, at, i, j)
            total = _exponentials(a, blocks.ones)
            np.matmul(a, v[j], out=o[i])
            o[i] /= total
    return O


def backward(
    Q: Any, K: Any, V: Any, G: Any, edit: Edit | None = None, columns: Columns | None = None, shared: int = 1
) -> tuple[Any, ...]:
    """The same with its gradients; the edit may give the factor by which a cotangent passes back through it."""
    O, c = np.empty((*Q.shape[:-1], V.shape[-1]), Q.dtype), Q.dtype.type(Q.shape[-1] ** -0.5)
    dQ, dK, dV = np.empty_like(Q), np.zeros_like(K), np.zeros_like(V)
    blocks = Blocks(Q, K, columns, 2)
    for at in np.ndindex(Q.shape[:-2]):
        of = _of(at, shared)
        q, k, v, g, o = Q[at] * c, K[of], V[of], G[at], O[at]
        for i, j, a, b in blocks:
            np.matmul(q[i], k[j].T, out=a)
            slope = edit(a, at, i, j) if edit is not None else None
            total = _exponentials(a, blocks.ones)
            np.matmul(a, v[j], out=o[i])
            o[i] /= total
            over = g[i] / total
            np.matmul(over, v[j].T, out=b)
            b -= np.vecdot(over, o[i])[:, None]
            b *= a
            if slope is not None:
                b *= slope
            np.matmul(b, k[j], out=dQ[at][i])
            dK[of][j] += np.matmul(b.T, q[i])
            dV[of][j] += np.matmul(a.T, over)
        dQ[at] *= c
    return O, dQ, dK, dV


def _of(at: tuple[int, ...], shared: int) -> tuple[int, ...]:
    return at if shared == 1 else (*at[:-1], at[-1] // shared)


# --- what is done to a block of scores ---


def up_to_the_row(first: int, below: int) -> tuple[int, int]:
    return 0, below


def future_hidden(a: Any, at: Any, i: slice, j: slice) -> None:
    """-inf where the key is later than the query, which only the last columns of a block have."""
    own = a[:, i.start - j.start :]
    own[np.triu(np.ones(own.shape, bool), 1)] = -np.inf


def window(width: int) -> tuple[Columns, Edit]:
    """Keys of the last so many positions."""

    def columns(first: int, below: int) -> tuple[int, int]:
        return max(0, first - width + 1), below

    def edit(a: Any, at: Any, i: slice, j: slice) -> None:
        back = np.arange(i.start, i.stop)[:, None] - np.arange(j.start, j.stop)
        a[(back < 0) | (back >= width)] = -np.inf

    return columns, edit


def capped(cap: float) -> Edit:
    """cap * tanh(z / cap), and its derivative."""

    def edit(a: Any, at: Any, i: slice, j: slice) -> Any:
        a /= cap
        np.tanh(a, out=a)
        slope = 1 - a * a
        a *= cap
        return slope

    return edit


def biased(slopes: Any) -> Edit:
    """-slope * |i - j|, with a slope for each head."""

    def edit(a: Any, at: Any, i: slice, j: slice) -> None:
        away = np.abs(np.arange(i.start, i.stop)[:, None] - np.arange(j.start, j.stop)).astype(a.dtype)
        away *= slopes[at[-1]]
        a -= away

    return edit


# --- beside attention ---


def projected_norm(X: Any, W: Any) -> Any:
    """The rows of X less their mean, over their standard deviation, times W."""
    Y = X - X.mean(-1, keepdims=True)
    Y /= np.sqrt(np.vecdot(Y, Y)[..., None] / X.dtype.type(X.shape[-1]) + X.dtype.type(1e-5))
    return Y @ W


def cross_entropy(X: Any, W: Any, target: Any) -> Any:
    """logsumexp(x W) - (x W)[target] for each row, a block of rows at a time."""
    loss = np.empty(len(X), X.dtype)
    height = rows_in_block(W.shape[1], X.itemsize, len(X))
    buffer, ones = np.empty((height, W.shape[1]), X.dtype), np.ones(W.shape[1], X.dtype)
    for i in range(0, len(X), height):
        a = buffer[: len(X[i : i + height])]
        np.matmul(X[i : i + height], W, out=a)
        chosen = a[np.arange(len(a)), target[i : i + height]]
        top = a.max(-1)
        loss[i : i + height] = np.log(_exponentials(a, ones)[:, 0]) + top - chosen
    return loss
