"""Attention in one and in two threads, which share the heads, by the wall clock: [--smoke].

Each matrix product keeps to one thread. On a machine that does something else as well, the ratios say little.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import abreast
import numpy as np
import sympy

import symattn as sa

SIZES = {(2, 8, 1024, 64): 15, (1, 8, 4096, 64): 5}  # and rounds
SMALL = {(1, 2, 300, 8): 1}


def compiled(threads: int) -> list[Any]:
    """The function, and the function with gradients."""
    T, S, d, e = sa.sizes("T S d e")
    Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
    O = sa.let("O", sa.softmax(Q @ K.T / sympy.sqrt(d)) @ V)
    g = sa.gradient(O, [Q, K, V])
    return [
        sa.lambdify([Q, K, V], O, threads=threads),
        sa.lambdify([Q, K, V, g.cotangent], [O, g], threads=threads),
    ]


def wall(rivals: list[abreast.Work], rounds: int) -> list[float]:
    """The median time of one call of each rival, over rounds in which each runs once."""
    taken: list[list[float]] = [[] for _ in rivals]
    for work in rivals:
        work(), work()
    for _ in range(rounds):
        for row, work in zip(taken, rivals, strict=True):
            start = time.perf_counter()
            work()
            row.append(time.perf_counter() - start)
    return list(map(statistics.median, taken))


def main() -> None:
    functions = [compiled(threads) for threads in (1, 2)]
    for shape, rounds in (SMALL if abreast.is_smoke(__doc__) else SIZES).items():
        for dtype in (np.float32, np.float64):
            rng = np.random.default_rng(0)
            arrays = [rng.standard_normal(shape).astype(dtype) for _ in range(4)]
            for name, (one, two), given in zip(("fwd", "fwd+vjp"), zip(*functions, strict=True), (3, 4), strict=True):
                values = arrays[:given]
                abreast.hold(name, two(*values), one(*values))
                alone, shared = wall([lambda: one(*values), lambda: two(*values)], rounds)  # noqa: B023
                figures = f"one thread {1e3 * alone:.1f}  two {1e3 * shared:.1f}  [{alone / shared:.2f} times as fast]"
                print(f"{shape} {np.dtype(dtype)} {name}: {figures}", flush=True)


if __name__ == "__main__":
    main()
