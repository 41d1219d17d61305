"""Attention, forward and with its gradients, against NumPy by hand, its bare products, PyTorch and JAX: [--smoke].

Times are CPU milliseconds of one thread, medians of runs in turn, with the ratio to NumPy by hand in brackets.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import abreast
import by_hand
import numpy as np
import sympy

import symattn as sa

SIZES = {(1, 1, 64, 16): 31, (1, 8, 512, 64): 15, (2, 8, 1024, 64): 9, (1, 8, 4096, 64): 5}  # and rounds
SMALL = {(1, 1, 8, 4): 1, (1, 2, 96, 8): 1}


def compiled(backend: str = "numpy") -> tuple[Any, Any]:
    """The function, and the function with gradients."""
    T, S, d, e = sa.sizes("T S d e")
    Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
    O = sa.let("O", sa.softmax(Q @ K.T / sympy.sqrt(d)) @ V)
    g = sa.gradient(O, [Q, K, V])
    forward = sa.lambdify([Q, K, V], O, backend=backend)
    return forward, sa.lambdify([Q, K, V, g.cotangent], [O, g], backend=backend)


def plain(Q: Any, K: Any, V: Any) -> Any:
    """As most people write it."""
    Z = Q @ K.mT / np.sqrt(Q.shape[-1]).astype(Q.dtype)
    E = np.exp(Z - Z.max(-1, keepdims=True))
    return (E / E.sum(-1, keepdims=True)) @ V


def plain_backward(Q: Any, K: Any, V: Any, G: Any) -> tuple[Any, ...]:
    c = np.sqrt(Q.shape[-1]).astype(Q.dtype)
    Z = Q @ K.mT / c
    E = np.exp(Z - Z.max(-1, keepdims=True))
    P = E / E.sum(-1, keepdims=True)
    dP = G @ V.mT
    dZ = P * (dP - (P * dP).sum(-1, keepdims=True))
    return P @ V, dZ @ K / c, dZ.mT @ Q / c, P.mT @ G


def products(Q: Any, K: Any, V: Any, G: Any | None) -> abreast.Work:
    """The matrix products alone, head by head into one buffer: what nothing in NumPy can beat."""
    scores = np.empty((Q.shape[-2], K.shape[-2]), Q.dtype)

    def work() -> None:
        for at in np.ndindex(Q.shape[:-2]):
            np.matmul(Q[at], K[at].T, out=scores)
            scores @ V[at]
            if G is not None:
                np.matmul(G[at], V[at].T, out=scores)
                scores @ K[at], scores.T @ Q[at], scores.T @ G[at]

    return work


def of_torch(Q: Any, K: Any, V: Any, G: Any | None) -> Iterator[tuple[str, abreast.Work]]:
    if find_spec("torch") is None:
        return
    import torch

    torch.set_num_threads(1)
    given = [torch.from_numpy(x.copy()).requires_grad_(G is not None) for x in (Q, K, V)]
    attend = torch.nn.functional.scaled_dot_product_attention

    def forward() -> Any:
        with torch.inference_mode():
            return attend(*given).numpy()

    def backward() -> tuple[Any, ...]:
        O = attend(*given)
        return tuple(x.detach().numpy() for x in (O, *torch.autograd.grad(O, given, torch.from_numpy(G))))

    yield "PyTorch", forward if G is None else backward
    ours, arrays = compiled("torch")[G is not None], [torch.from_numpy(x) for x in (Q, K, V, G) if x is not None]

    def generated() -> Any:
        with torch.inference_mode():
            made = ours(*arrays)
        return made.numpy() if G is None else tuple(y.numpy() for y in made)

    yield "symattn in PyTorch", generated


def of_jax(Q: Any, K: Any, V: Any, G: Any | None) -> Iterator[tuple[str, abreast.Work]]:
    if find_spec("jax") is None:
        return
    import jax

    given = [jax.numpy.asarray(x) for x in (Q, K, V)]

    def attend(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v

    def with_gradients(q: Any, k: Any, v: Any, g: Any) -> Any:
        O, vjp = jax.vjp(attend, q, k, v)
        return O, *vjp(g)

    run = jax.jit(attend if G is None else with_gradients)
    last = [] if G is None else [jax.numpy.asarray(G)]
    yield "JAX", lambda: jax.block_until_ready(run(*given, *last))
    ours = compiled("jax")[G is not None]
    yield "symattn in JAX", lambda: jax.block_until_ready(ours(*given, *last))


def rivals(f: Any, Q: Any, K: Any, V: Any, G: Any | None) -> dict[str, abreast.Work]:
    """What computes the same, by hand first, and the bare products last."""
    last = () if G is None else (G,)
    hand, simple = (by_hand.forward, plain) if G is None else (by_hand.backward, plain_backward)
    found: dict[str, abreast.Work] = {
        "by hand": lambda: hand(Q, K, V, *last),
        "symattn": lambda: f(Q, K, V, *last),
        "plain": lambda: simple(Q, K, V, *last),
        **dict(of_torch(Q, K, V, G)),
        **dict(of_jax(Q, K, V, G)),
    }
    for name, work in found.items():
        abreast.hold(name, work(), found["by hand"]())
    return {**found, "products": products(Q, K, V, G)}


def main() -> None:
    """Print a line for each size and type."""
    smoke, (forward, backward) = abreast.is_smoke(__doc__), compiled()
    for size, rounds in (SMALL if smoke else SIZES).items():
        for dtype in (np.float32, np.float64):
            rng = np.random.default_rng(0)
            Q, K, V, G = (rng.standard_normal(size).astype(dtype) for _ in range(4))
            times = 1 if smoke else max(1, 2**18 // (size[0] * size[1] * size[2] ** 2))
            for what, f, cotangent in (("forward", forward, None), ("with gradients", backward, G)):
                taken = abreast.seconds(rivals(f, Q, K, V, cotangent), rounds, times)
                print(f"{size} {np.dtype(dtype)} {what}: {abreast.told(taken, 'by hand')}", flush=True)


if __name__ == "__main__":
    main()
