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
    sizes = {h: 2, r: 3, T: 5, d: 4, f: 2} if smoke else {h: 4, r: 2, T: 512, d: 64, f: 32}
    rng = np.random.default_rng(0)
    print(f"{'':12}{'generated, ms':>15}{'by hand, ms':>13}{'ratio':>8}")
    for make in (causal, grouped, layer_norm, rotary, linear, delta):
        row = make()
        arrays = [0.1 * rng.normal(size=[int(size.subs(sizes)) for size in x.shape]) for x in row.given]
        function = sa.lambdify(row.given, row.output)
        np.testing.assert_allclose(function(*arrays), row.by_hand(*arrays), rtol=1e-9, atol=1e-12)
        works = [lambda: function(*arrays), lambda: row.by_hand(*arrays)]  # noqa: B023  called at once
        ours, theirs = medians(works, 1 if smoke else 30)
        print(f"{make.__name__:12}{ours:15.2f}{theirs:13.2f}{ours / theirs:8.2f}")


if __name__ == "__main__":
    main()
