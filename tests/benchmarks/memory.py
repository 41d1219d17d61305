"""The memory that a call takes beside its arguments, at its peak, outputs included: [--smoke].

Where the functions are those of ``attention.py``: ours, by hand in blocks of rows, and as most people write it.
"""

from __future__ import annotations

import tracemalloc
from functools import partial

import abreast
import by_hand
import numpy as np
from attention import compiled, plain, plain_backward

SIZES = ((1, 8, 1024, 64), (1, 8, 2048, 64), (1, 8, 4096, 64))


def peak(work: abreast.Work) -> float:
    """MiB at the peak of one call, after another one."""
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def main() -> None:
    """Print a line for each size."""
    smoke, (forward, backward) = abreast.is_smoke(__doc__), compiled()
    for size in ((1, 2, 96, 8),) if smoke else SIZES:
        rng = np.random.default_rng(0)
        Q, K, V, G = (rng.standard_normal(size).astype(np.float32) for _ in range(4))
        whole = size[1] * size[2] ** 2 * 4 / 2**20
        rows = {
            "forward": (Q.nbytes, [partial(f, Q, K, V) for f in (forward, by_hand.forward, plain)]),
            "with gradients": (
                4 * Q.nbytes,
                [partial(f, Q, K, V, G) for f in (backward, by_hand.backward, plain_backward)],
            ),
        }
        for what, (outputs, works) in rows.items():
            ours, hand, simple = map(peak, works)
            print(
                f"{size} float32 {what}: symattn {ours:.1f} MiB, by hand {hand:.1f}, plain {simple:.1f}; "
                f"outputs {outputs / 2**20:.1f}, one array of all scores {whole:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
