"""Variants of attention against NumPy by hand, and against our text without blocks: [--smoke].

Times are CPU milliseconds of one thread, medians of runs in turn, with the ratio to NumPy by hand in brackets. Without
blocks is the module that ``source`` gives.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import abreast
import by_hand
import numpy as np
import sympy

import symattn as sa

A = sa.attention
h, T, d, n, C = sa.sizes("h T d n C")
Q, K, V = (sa.tensor(name, T, d) for name in "QKV")  # heads are loop axes
Q_h, K_h, V_h = (sa.tensor(name, h, T, d) for name in "QKV")  # heads are declared


class Variant(NamedTuple):
    """An expression, what it takes, the arrays, and the same by hand, with its gradients where these are compared."""

    output: sa.Tensor
    given: list[sa.Tensor]
    arrays: list[Any]
    forward: Callable[..., Any]
    backward: Callable[..., Any] | None = None


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def of_scores(output: sa.Tensor, heads: int, length: int, **how: Any) -> Variant:
    """Attention whose scores are edited block by block."""
    given = arrays(*[(heads, length, 64)] * 3)
    return Variant(
        output,
        [x for x in (Q, K, V, Q_h, K_h, V_h) if x in output.tensors],
        given,
        lambda q, k, v: by_hand.forward(q, k, v, **how),
        lambda q, k, v, g: by_hand.backward(q, k, v, g, **how),
    )


def causal(heads: int, length: int) -> Variant:
    masked = A.scaled_dot_product(Q, K, V, mask=A.causal_mask(T))
    return of_scores(masked, heads, length, edit=by_hand.future_hidden, columns=by_hand.up_to_the_row)


def causal_heads(heads: int, length: int) -> Variant:
    masked = A.scaled_dot_product(Q_h, K_h, V_h, mask=A.causal_mask(T))
    return of_scores(masked, heads, length, edit=by_hand.future_hidden, columns=by_hand.up_to_the_row)


def window(heads: int, length: int) -> Variant:
    width = min(256, length // 4)
    columns, edit = by_hand.window(width)
    masked = A.scaled_dot_product(Q, K, V, mask=A.sliding_window_mask(T, left=width - 1, right=0))
    return of_scores(masked, heads, length, edit=edit, columns=columns)


def capped(heads: int, length: int) -> Variant:
    Z = A.capped(A.scores(Q, K), 30)
    return of_scores(sa.softmax(Z) @ V, heads, length, edit=by_hand.capped(30.0))


def biased(heads: int, length: int) -> Variant:
    slopes = sa.from_index((h,), lambda k: sympy.Integer(2) ** (-8 * (k + 1) / h))
    Z = A.scores(Q_h, K_h) - slopes[:, None, None] * sa.from_index((T, T), lambda i, j: sympy.Abs(i - j))
    by_head = 2.0 ** (-8 * (np.arange(heads) + 1) / heads)
    return of_scores(sa.softmax(Z) @ V_h, heads, length, edit=by_hand.biased(by_head.astype(np.float32)))


def grouped(heads: int, length: int) -> Variant:
    Q = sa.tensor("Q", 2 * h, T, d)
    given = arrays((heads, length, 64), (heads // 2, length, 64), (heads // 2, length, 64))
    return Variant(
        A.grouped_query(Q, K_h, V_h),
        [Q, K_h, V_h],
        given,
        lambda q, k, v: by_hand.forward(q, k, v, shared=2),
        lambda q, k, v, g: by_hand.backward(q, k, v, g, shared=2),
    )


def projected_norm(heads: int, length: int) -> Variant:
    X, W = sa.tensor("X", T, d), sa.tensor("W", d, n)
    width = 64 * heads
    centred = X - sa.mean(X, -1, True)
    Y = centred * sa.rsqrt(sa.mean(centred * centred, -1, True) + sympy.Rational(1, 10**5))
    return Variant(Y @ W, [X, W], arrays((length, width), (width, width)), by_hand.projected_norm)


def cross_entropy(heads: int, length: int) -> Variant:
    X, W, target = sa.tensor("X", T, d), sa.tensor("W", d, C), sa.tensor("y", T, integer=True)
    Z, classes = X @ W, 2048 * heads
    loss = sa.logsumexp(Z) - sa.sum(Z * A.one_hot(target, C), -1)
    chosen = np.random.default_rng(1).integers(0, classes, length)
    return Variant(loss, [X, W, target], [*arrays((length, 64), (64, classes)), chosen], by_hand.cross_entropy)


VARIANTS = (causal, causal_heads, window, capped, biased, grouped, projected_norm, cross_entropy)


def without_blocks(f: Any) -> Callable[..., Any]:
    found: dict[str, Any] = {"__name__": "module"}
    exec(f.source, found)
    return found["f"]


def rows(variant: Variant) -> dict[str, tuple[Any, Callable[..., Any], list[Any]]]:
    """What is compared: our function, that by hand, and the arrays."""
    output, given, values = variant.output, variant.given, variant.arrays
    found = {"forward": (sa.lambdify(given, output), variant.forward, values)}
    if variant.backward is not None:
        g = sa.gradient(output, given)
        cotangent = arrays(np.shape(variant.forward(*values)))
        f = sa.lambdify([*given, g.cotangent], [output, g])
        found["with gradients"] = (f, variant.backward, [*values, *cotangent])
    return found


def main() -> None:
    """Print a line for each variant."""
    smoke = abreast.is_smoke(__doc__)
    for make in VARIANTS:
        for length in (64,) if smoke else (1024, 4096):
            for what, (f, hand, values) in rows(make(2 if smoke else 8, length)).items():
                rivals: dict[str, abreast.Work] = {
                    "by hand": partial(hand, *values),
                    "symattn": partial(f, *values),
                    "without blocks": partial(without_blocks(f), *values),
                }
                if length > 1024:
                    del rivals["without blocks"]  # whose arrays of all scores are a quarter of a GiB each
                for name, work in rivals.items():
                    abreast.hold(name, work(), rivals["by hand"]())
                taken = abreast.seconds(rivals, 1 if smoke else 5 if length > 1024 else 9)
                print(f"{make.__name__}, T = {length}, {what}: {abreast.told(taken, 'by hand')}", flush=True)


if __name__ == "__main__":
    main()
