"""Recurrences, and the tensors that they run over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

import symattn as sa

T, d, e = sa.sizes("T d e")
K, V, Q = sa.tensor("K", T, d), sa.tensor("V", T, e), sa.tensor("Q", T, d)
A, B, x, m = sa.tensor("A", d, d), sa.tensor("B", d), sa.tensor("x", T), sa.tensor("m", T, binary=True)
gamma = sympy.Symbol("gamma", real=True)
STEPS = 4


def linear(S: Any, read: Any) -> Any:
    k, v, q = read
    S = gamma * S + sa.outer(k, v)
    return S, q @ S


def cell(s: Any, k: Any) -> Any:
    return sa.tanh(A @ s) + k, s


def online(state: Any, z: Any) -> Any:
    top, total = state
    new = sa.maximum(top, z)
    return (new, total * sa.exp(top - new) + sa.exp(z - new)), new


def pair(state: Any, read: Any) -> Any:
    (s, t), (k, u) = state, read
    s = sa.tanh(A @ s + k * t)
    return (s, t + u * sa.sum(s)), (s * u, t)


def every_value(final: Any, outputs: Any) -> Any:
    (s, t), (rows, numbers) = final, outputs
    return rows * numbers[:, None] + sa.sin(s) * t


def online_mean(state: Any, read: Any) -> Any:
    (top, total, mean), (z, v) = state, read
    new = sa.maximum(top, z)
    return (new, total * sa.exp(top - new) + sa.exp(z - new), mean * sa.exp(top - new) + sa.exp(z - new) * v), None


LOOPS: dict[str, Callable[[], Any]] = {
    "gated linear attention": lambda: sa.scan(linear, sa.zeros(d, e), (K, V, Q))[1],
    "its state": lambda: sa.scan(linear, sa.zeros(d, e), (K, V, Q))[0],
    "a cell that begins with a tensor": lambda: sa.scan(cell, B, K)[1],
    "backwards": lambda: sa.scan(cell, sa.zeros(d), K, reverse=True)[1],
    "online": lambda: sa.scan(online, (x[0], 0), x)[0][1],
    "online from -oo": lambda: sa.scan(online, (-sympy.oo, 0), x)[0][1],
    "rows from -oo": lambda: sa.scan(online, (sa.from_index((d,), lambda i: -sympy.oo), sa.zeros(d)), K)[0][1],
    "what was largest": lambda: sa.exp(sa.scan(lambda s, u: (sa.maximum(s, u), s), -sympy.oo, x)[1] - x),
    "a sequence with -oo": lambda: sa.scan(lambda s, z: (s + sa.exp(z), None), 0, sa.where(m, x, -sympy.oo))[0],
    "with a mask": lambda: sa.scan(lambda s, r: (sa.where(r[1], s + r[0], s), None), 0, (x, m))[0] * sa.ones(1),
    "two outputs": lambda: sum(sa.scan(lambda s, k: (s * k, (s, k @ s)), sa.ones(d), K)[1][1:], sa.zeros(T)),
    "all of its values": lambda: every_value(*sa.scan(pair, (B, 1), (K, x))),
    "one in another": lambda: sa.scan(lambda s, k: (sa.scan(lambda a, b: (s * a + b, None), s, k)[0], s), 0, K)[1],
    "no sequence": lambda: sa.scan(lambda s, _: (sa.tanh(A @ s), s), B, length=T)[1] * K,
    "one after another": lambda: sa.scan(cell, B, sa.scan(cell, B, K)[1])[0],
    "constant": lambda: sa.scan(lambda s, k: (s, s * sa.sum(A)), gamma, x)[1] * x,
}


def drawn(arguments: list[Any], rng: Any) -> list[Any]:
    sizes = {T: STEPS, d: 3, e: 2}
    shapes = [None if a is gamma else tuple(int(sizes[n] if n in sizes else n) for n in a.shape) for a in arguments]
    kinds = ["" if a is gamma else a.kind for a in arguments]
    return [
        0.7 if shape is None else rng.random(shape) < 0.5 if kind == "binary" else rng.normal(size=shape)
        for shape, kind in zip(shapes, kinds, strict=True)
    ]
