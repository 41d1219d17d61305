"""What a derivation costs, side by side in one run: ``python tests/benchmarks/derive.py [--smoke]``.

Medians of many repeats. Every repeat uses names of its own, so that nothing is found ready-made, and the garbage
collector runs as it would in a user's session.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import sympy

import symattn as sa

T, S, d, e = sa.sizes("T S d e")
FRESH = itertools.count()


def median_ms(work: Callable[[], object], repeats: int) -> float:
    """The median time of a call, in milliseconds, after one call to warm up."""
    return medians_ms([work], repeats)[0]


def medians_ms(works: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """The median times of several calls that take turns, so that a busy moment slows all of them alike."""
    times: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    for _ in range(repeats):
        for work, taken in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
    return [1e3 * statistics.median(taken) for taken in times]


def inputs(n: int) -> tuple[sa.Tensor, sa.Tensor, sa.Tensor]:
    return sa.tensor(f"Q{n}", T, d), sa.tensor(f"K{n}", S, d), sa.tensor(f"V{n}", S, e)


def attention(q: sa.Tensor, k: sa.Tensor, v: sa.Tensor) -> sa.Tensor:
    return sa.softmax(q @ k.T / sympy.sqrt(d)) @ v


def built() -> sa.Tensor:
    return attention(*inputs(next(FRESH)))


def differentiated() -> Any:
    given = inputs(next(FRESH))
    return sa.gradient(attention(*given), list(given))


def printed() -> str:
    return differentiated().latex()


def stack(layers: int) -> Callable[[], object]:
    """Build and differentiate x + softmax(x x^T / sqrt(d)) x, so many times over."""

    def work() -> object:
        x = start = sa.tensor(f"x{next(FRESH)}", T, d)
        for _ in range(layers):
            x = x + sa.softmax(x @ x.T / sympy.sqrt(d)) @ x
        return sa.gradient(x, [start])

    return work


def derivation_rows(repeats: int) -> Iterator[tuple[str, float, str]]:
    build, derive, ours = medians_ms([built, differentiated, printed], repeats)
    yield "attention: build", build, ""
    yield "attention: build, three gradients", derive, ""
    yield "attention: build, three gradients, LaTeX", ours, "target: under 3 ms"
    yield "the same through JAX's trace of the vjp", *against(ours, jax_trace(repeats))
    components = components_ms(1 if repeats < 5 else 3)
    yield "three gradients from explicit components, n = 3 (SymPy)", *against(ours, components)


def against(ours: float, theirs: float | None) -> tuple[float, str]:
    if theirs is None:
        return float("nan"), "skipped: not installed"
    return theirs, f"{theirs / ours:.1f} times ours"


def jax_trace(repeats: int) -> float | None:
    """Tracing the vjp of attention to a jaxpr, without caches."""
    if importlib.util.find_spec("jax") is None:
        return None
    import jax
    import jax.numpy as jnp

    def work() -> object:
        def forward(q: Any, k: Any, v: Any) -> Any:
            return jax.nn.softmax(q @ k.T / jnp.sqrt(8.0)) @ v

        def backward(q: Any, k: Any, v: Any, g: Any) -> Any:
            return jax.vjp(forward, q, k, v)[1](g)

        shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((5, 8), (7, 8), (7, 6), (5, 6))]
        return str(jax.make_jaxpr(backward)(*shapes))

    return median_ms(work, repeats)


def components_ms(repeats: int) -> float:
    """The same three gradients by SymPy on explicit components, T = S = d = e = 3."""

    def work() -> object:
        sympy.core.cache.clear_cache()
        q, k, v, g = (sympy.Matrix(3, 3, sympy.symbols(f"{name}:9")) for name in "qkvg")
        logits = (q * k.T / sympy.sqrt(3)).applyfunc(sympy.exp)
        weights = sympy.Matrix(3, 3, lambda i, j: logits[i, j] / sum(logits[i, m] for m in range(3)))
        loss = sum((weights * v).multiply_elementwise(g))
        return [loss.diff(entry) for matrix in (q, k, v) for entry in matrix]

    return median_ms(work, repeats)


def depth_rows(repeats: int, depths: tuple[int, ...]) -> Iterator[tuple[str, float, str]]:
    times = medians_ms([stack(layers) for layers in depths], repeats)
    for layers, now, before in zip(depths, times, (None, *times), strict=False):
        ratio = f"{now / before:.2f} times the half; " if before else ""
        note = "target at 100: under 200 ms" if layers == 100 else ""
        yield f"{layers} residual attention layers: build, gradient", now, (ratio + note).rstrip("; ")


def import_rows(repeats: int) -> Iterator[tuple[str, float, str]]:
    codes = ["pass", "import symattn", "import symattn as sa; sa.tensor('Q', 'T d')", "import sympy"]
    runs = [partial(subprocess.run, [sys.executable, "-c", code], check=True) for code in codes]
    bare, lazy, used, alone = medians_ms(runs, repeats)
    yield "bare Python", bare, ""
    yield "import symattn, over bare Python", lazy - bare, "target: under 30 ms"
    yield "import symattn and make a tensor, over bare Python", used - bare, "SymPy's own import is in it"
    yield "import sympy, over bare Python", alone - bare, ""


def by_hand(q: Any, k: Any, v: Any, g: Any) -> tuple[Any, ...]:
    """Forward and backward as an expert writes them."""
    scale = q.shape[-1] ** -0.5
    z = q @ k.T * scale
    z -= z.max(axis=-1, keepdims=True)
    p = np.exp(z, out=z)
    p /= p.sum(axis=-1, keepdims=True)
    dp = g @ v.T
    dp -= np.einsum("ts,ts->t", p, dp)[:, None]
    dp *= p
    dp *= scale
    return p @ v, dp @ k, dp.T @ q, p.T @ g


def code_rows(repeats: int, shapes: tuple[tuple[int, int, int], ...]) -> Iterator[tuple[str, float, str]]:
    def generated() -> Any:
        given = inputs(next(FRESH))
        y = attention(*given)
        g = sa.gradient(y, list(given))
        start = time.perf_counter()
        f = sa.lambdify([*given, g.cotangent], [y, g])
        return f, 1e3 * (time.perf_counter() - start)

    yield "attention with gradients: code generation", statistics.median(generated()[1] for _ in range(repeats)), ""
    f = generated()[0]
    rng = np.random.default_rng(0)
    for t, s, width in shapes:
        arrays = [rng.normal(size=shape) for shape in ((t, width), (s, width), (s, width), (t, width))]
        for ours, theirs in zip(f(*arrays), by_hand(*arrays), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
        mine, hand = medians_ms([partial(f, *arrays), partial(by_hand, *arrays)], repeats)
        yield f"NumPy by hand, forward and backward, ({t}, {s}, {width})", hand, ""
        yield f"generated, forward and backward, ({t}, {s}, {width})", mine, f"{mine / hand:.2f} times by hand"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="one quick pass, to see that it runs")
    smoke = parser.parse_args().smoke
    sections = (
        derivation_rows(2 if smoke else 300),
        depth_rows(1 if smoke else 9, (5, 10) if smoke else (25, 50, 100, 200)),
        code_rows(2 if smoke else 60, ((8, 8, 4),) if smoke else ((64, 64, 16), (512, 512, 64))),
        import_rows(1 if smoke else 15),
    )
    gc.collect()
    for rows in sections:
        for what, milliseconds, note in rows:
            print(f"{what:<62}{milliseconds:>10.3f} ms   {note}".rstrip(), flush=True)
        print()


if __name__ == "__main__":
    main()
