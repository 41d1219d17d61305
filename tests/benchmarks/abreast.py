"""Timing of rivals in one process: on one thread, by the CPU, in turn, so that what disturbs one disturbs all.

Imported before NumPy, as its name has imports sorted: how many threads BLAS takes is decided where that is loaded.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"
os.environ |= {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np  # noqa: E402

Work = Callable[[], Any]


def is_smoke(doc: str | None) -> bool:
    """What the command line asks for: one quick pass at small sizes, to see that it runs, or the full run."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="one quick pass at small sizes, to see that it runs")
    return bool(parser.parse_args().smoke)


def seconds(rivals: Mapping[str, Work], rounds: int, times: int = 1) -> dict[str, float]:
    """The median CPU time of one call of each rival, over rounds in which each runs so many times."""
    taken: dict[str, list[float]] = {name: [] for name in rivals}
    for work in rivals.values():
        work(), work(), work()
    for _ in range(rounds):
        for name, work in rivals.items():
            start = time.process_time()
            for _ in range(times):
                work()
            taken[name].append((time.process_time() - start) / times)
    return {name: statistics.median(row) for name, row in taken.items()}


def told(taken: Mapping[str, float], to: str, unit: float = 1e3) -> str:
    """Times in thousandths of a second, or as the unit is, with their ratio to one of them."""
    return "  ".join(f"{name} {unit * t:.1f} [{t / taken[to]:.2f}]" for name, t in taken.items())


def hold(name: str, got: Any, want: Any) -> None:
    """Rivals compute the same."""
    pairs = zip(*(x if isinstance(x, tuple) else (x,) for x in (got, want)), strict=True)
    for k, (one, other) in enumerate(pairs):
        one, other = np.asarray(one), np.asarray(other)
        near = 2e-4 if other.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(one, other, rtol=near, atol=near * np.abs(other).max(), err_msg=f"{name}, {k}")
