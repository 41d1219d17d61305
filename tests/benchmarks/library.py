"""The library's generated NumPy against the same by hand, side by side in one run: ``library.py [--smoke]``.

Each row is a forward pass, with the ratio of the medians. By hand means as an expert writes it for these shapes.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import sympy

import symattn as sa

A = sa.attention
h, r, T, S, d, e, f = sa.sizes("h r T S d e f")


class Row(NamedTuple):
    """An expression of tensors, and a function of the arrays in their order."""

    output: sa.Tensor
    given: list[sa.Tensor]
    by_hand: Callable[..., Any]


def softmax(z: Any) -> Any:
    weights = np.exp(z - z.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights


def attend(q: Any, k: Any, v: Any, keep: Any = None) -> Any:
    z = (q * q.shape[-1] ** -0.5) @ k.mT
    return softmax(z if keep is None else np.where(keep, z, -np.inf)) @ v


def causal() -> Row:
    Q, K, V = sa.tensor("Q", h, T, d), sa.tensor("K", h, T, d), sa.tensor("V", h, T, d)
    by_hand = lambda q, k, v: attend(q, k, v, np.tri(q.shape[-2], dtype=bool))  # noqa: E731
    return Row(A.scaled_dot_product(Q, K, V, mask=A.causal_mask(T)), [Q, K, V], by_hand)


def grouped() -> Row:
    Q, K, V = sa.tensor("Q", h * r, T, d), sa.tensor("K", h, T, d), sa.tensor("V", h, T, d)

    def by_hand(q: Any, k: Any, v: Any) -> Any:
        o = attend(q.reshape(len(k), -1, *q.shape[1:]), k[:, None], v[:, None])
        return o.reshape(q.shape)

    return Row(A.grouped_query(Q, K, V), [Q, K, V], by_hand)


def layer_norm() -> Row:
    X, g, b = sa.tensor("X", T, d), sa.tensor("g", d), sa.tensor("b", d)

    def by_hand(x: Any, g: Any, b: Any) -> Any:
        c = x - x.mean(-1, keepdims=True)
        c *= 1 / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5)
        return c * g + b

    return Row(A.layer_norm(X, g, b), [X, g, b], by_hand)


def rotary() -> Row:
    X = sa.tensor("X", h, T, 2 * f)

    def by_hand(x: Any) -> Any:
        n, m = x.shape[-2], x.shape[-1] // 2
        angle = np.arange(n)[:, None] * 10000.0 ** (-np.arange(m) / m)
        cos, sin, a, b = np.cos(angle), np.sin(angle), x[..., :m], x[..., m:]
        return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    return Row(A.rotary(X), [X], by_hand)


def linear() -> Row:
    Q, K, V = sa.tensor("Q", h, T, d), sa.tensor("K", h, T, d), sa.tensor("V", h, T, d)

    def by_hand(q: Any, k: Any, v: Any) -> Any:
        q, k = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k))
        return q @ (k.mT @ v) / (q @ k.sum(-2)[..., None])

    return Row(A.linear(Q, K, V), [Q, K, V], by_hand)


def delta() -> Row:
    Q, K, V, b = sa.tensor("Q", h, T, d), sa.tensor("K", h, T, d), sa.tensor("V", h, T, d), sa.tensor("b", h, T)

    def by_hand(q: Any, k: Any, v: Any, b: Any) -> Any:
        lower = np.tril(b[..., None] * (k @ k.mT), -1)
        return np.tril(q @ k.mT) @ np.linalg.solve(np.eye(q.shape[-2]) + lower, b[..., None] * v)

    return Row(A.delta_rule(Q, K, V, b), [Q, K, V, b], by_hand)


def recurrent() -> Row:
    Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", T, d), sa.tensor("V", T, d)

    def step(S: Any, read: Any) -> Any:
        q, k, v = read
        S = S + sa.outer(k, v)
        return S, q @ S

    def by_hand(q: Any, k: Any, v: Any) -> Any:
        S, o = np.zeros((q.shape[-1], v.shape[-1])), np.empty_like(v)
        for t in range(len(q)):
            S += k[t][:, None] * v[t]
            o[t] = q[t] @ S
        return o

    return Row(sa.scan(step, sa.zeros(d, d), (Q, K, V))[1], [Q, K, V], by_hand)


def gated_delta() -> Row:
    Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", T, d), sa.tensor("V", T, d)
    a, b = sa.tensor("a", T), sa.tensor("b", T)

    def step(S: Any, read: Any) -> Any:
        q, k, v, a, b = read
        S = sa.exp(-a * a) * S
        S = S + sa.outer(b * b / sa.sum(k * k) * k, v - k @ S)
        return S, q @ S

    def by_hand(q: Any, k: Any, v: Any, a: Any, b: Any) -> Any:
        S, o, decay, rate = np.zeros((q.shape[-1], v.shape[-1])), np.empty_like(v), np.exp(-a * a), b * b
        for t in range(len(q)):
            S *= decay[t]
            S += (rate[t] / (k[t] @ k[t]) * k[t])[:, None] * (v[t] - k[t] @ S)
            o[t] = q[t] @ S
        return o

    return Row(sa.scan(step, sa.zeros(d, d), (Q, K, V, a, b))[1], [Q, K, V, a, b], by_hand)


def online_softmax() -> Row:
    Q, K, V = sa.tensor("Q", h, S, d), sa.tensor("K", h, T, d), sa.tensor("V", h, T, d)

    def step(state: Any, read: Any) -> Any:
        (top, total, sums), (k, v) = state, read
        z = Q @ k[:, :, None]
        new = sa.maximum(top, z)
        old, now = sa.exp(top - new), sa.exp(z - new)
        return (new, total * old + now, sums * old + now * v[:, None]), None

    def by_hand(q: Any, k: Any, v: Any) -> Any:
        top, total, sums = np.full((*q.shape[:-1], 1), -np.inf), 0, 0
        for t in range(k.shape[-2]):
            z = q @ k[:, t, :, None]
            new = np.maximum(top, z)
            old, now = np.exp(top - new), np.exp(z - new)
            top, total, sums = new, total * old + now, sums * old + now * v[:, t, None]
        return sums / total

    begin = sa.from_index((h, S, 1), lambda n, i, j: -sympy.oo), sa.zeros(h, S, 1), sa.zeros(h, S, d)
    (_, total, sums), _ = sa.scan(step, begin, (sa.moveaxis(K, 1, 0), sa.moveaxis(V, 1, 0)))
    return Row(sums / total, [Q, K, V], by_hand)


def medians(works: Sequence[Callable[[], Any]], repeats: int) -> list[float]:
    """The median times of calls that take turns."""
    times: list[list[float]] = [[] for _ in works]
    for turn in range(repeats + 1):
        for work, taken in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            if turn:
                taken.append(time.perf_counter() - start)
    return [1e3 * statistics.median(taken) for taken in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="small sizes, one repeat")
    smoke = parser.parse_args().smoke
    sizes = {h: 2, r: 3, T: 5, S: 3, d: 4, f: 2} if smoke else {h: 4, r: 2, T: 512, S: 64, d: 64, f: 32}
    rng = np.random.default_rng(0)
    print(f"{'':14}{'generated, ms':>15}{'by hand, ms':>13}{'ratio':>8}")
    for make in (causal, grouped, layer_norm, rotary, linear, delta, recurrent, gated_delta, online_softmax):
        row = make()
        arrays = [0.1 * rng.normal(size=[int(size.subs(sizes)) for size in x.shape]) for x in row.given]
        function = sa.lambdify(row.given, row.output)
        np.testing.assert_allclose(function(*arrays), row.by_hand(*arrays), rtol=1e-9, atol=1e-12)
        works = [lambda: function(*arrays), lambda: row.by_hand(*arrays)]  # noqa: B023  called at once
        ours, theirs = medians(works, 1 if smoke else 30)
        print(f"{make.__name__:14}{ours:15.2f}{theirs:13.2f}{ours / theirs:8.2f}")


if __name__ == "__main__":
    main()
