"""What a call costs where the arrays are tiny, T = d = 4: against NumPy as most people write it: [--smoke].

Times are CPU microseconds of one thread, medians of runs in turn, with the ratio to plain NumPy in brackets.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import abreast
import numpy as np
import sympy
from attention import compiled, plain, plain_backward

import symattn as sa


def causal(Q: Any, K: Any, V: Any) -> Any:
    Z = Q @ K.T / np.sqrt(Q.shape[-1])
    Z = np.where(np.tril(np.ones(Z.shape, bool)), Z, -np.inf)
    E = np.exp(Z - Z.max(-1, keepdims=True))
    return (E / E.sum(-1, keepdims=True)) @ V


def norm(X: Any) -> Any:
    Y = X - X.mean(-1, keepdims=True)
    return Y / np.sqrt((Y * Y).mean(-1, keepdims=True) + 1e-5)


def warmed(Q: Any, K: Any, tau: float) -> Any:
    if not tau > 0:
        raise ValueError("a temperature is positive")
    Z = Q @ K.T / tau
    E = np.exp(Z - Z.max(-1, keepdims=True))
    return E / E.sum(-1, keepdims=True)


def rows() -> dict[str, tuple[Any, Any, list[Any]]]:
    """For each name: the function by hand, ours, and the arguments."""
    T, d = sa.sizes("T d")
    Q, K, V = (sa.tensor(name, T, d) for name in "QKV")
    tau = sympy.Symbol("tau", positive=True)
    rng = np.random.default_rng(0)
    q, k, v, g = (rng.standard_normal((4, 4)) for _ in range(4))
    forward, backward = compiled()
    masked = sa.attention.scaled_dot_product(Q, K, V, mask=sa.attention.causal_mask(T))
    centred = Q - sa.mean(Q, -1, True)
    normal = centred * sa.rsqrt(sa.mean(centred * centred, -1, True) + sympy.Rational(1, 10**5))
    return {
        "attention": (plain, forward, [q, k, v]),
        "attention with gradients": (plain_backward, backward, [q, k, v, g]),
        "causal attention": (causal, sa.lambdify([Q, K, V], masked), [q, k, v]),
        "a temperature": (warmed, sa.lambdify([Q, K, tau], sa.softmax(Q @ K.T / tau)), [q, k, 0.5]),
        "LayerNorm": (norm, sa.lambdify([Q], normal), [q]),
        "one product": (lambda a, b: a @ b.T, sa.lambdify([Q, K], Q @ K.T), [q, k]),
    }


def main() -> None:
    """Print a line for each function."""
    smoke = abreast.is_smoke(__doc__)
    for name, (hand, f, given) in rows().items():
        rivals: dict[str, abreast.Work] = {"plain": partial(hand, *given), "symattn": partial(f, *given)}
        abreast.hold(name, rivals["symattn"](), rivals["plain"]())
        taken = abreast.seconds(rivals, 1 if smoke else 25, 10 if smoke else 1000)
        print(f"{name}: {abreast.told(taken, 'plain', 1e6)}", flush=True)


if __name__ == "__main__":
    main()
