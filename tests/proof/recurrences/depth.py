"""Layers, as many as there are: what moves the input moves the output, or does nothing to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

import symattn as sa
from symattn import attention

from .asked import Asked, L, S, Table, d

X, W, Pi = sa.tensor("X", S, d), sa.tensor("W", L, d, d), sa.tensor("Pi", S, S, permutation=True)
R, c = sa.tensor("R", d, d, orthogonal=True), sa.tensor("c", d)
EMBED = sa.tensor("W_e", d, d)
Layer = Callable[[Any, Any], Any]


def net(layer: Layer, weights: Any = W) -> Callable[[Any], Any]:
    return lambda X: sa.scan(lambda X, W: (layer(X, W), None), X, weights)[0]


def attend(X: Any, W: Any) -> Any:
    return X + sa.unknown("f", sa.softmax(X @ X.T / sympy.sqrt(d)) @ X @ W, rowwise=True)


def block(X: Any, W: Any) -> Any:
    """Attention and a map of rows, both after a norm of rows, and added."""
    Y = X + sa.softmax((N := attention.layer_norm(X)) @ W @ N.T) @ N
    return Y + sa.unknown("g", attention.layer_norm(Y), rowwise=True)


def causal(X: Any, W: Any) -> Any:
    return X + sa.softmax(X @ X.T, where=attention.causal_mask(S)) @ X @ W


def moved(f: Callable[[Any], Any], verdict: str = "proved") -> Asked:
    return Asked(f(Pi @ X), Pi @ f(X), verdict=verdict)


def rotated(X: Any, _: Any) -> Any:
    return X + sa.softmax(X @ X.T) @ X


SCALARS = sa.tensor("w", L)
TABLE: Table = {
    "depth: permuted rows": lambda: moved(net(attend)),
    "depth: blocks with norms": lambda: moved(net(block)),
    "depth: maps of rows": lambda: moved(net(lambda X, _: X + sa.unknown("f", X, rowwise=True))),
    "depth: embedded and read out": lambda: moved(lambda X: sa.softmax(net(attend)(X @ EMBED) @ EMBED)),
    "depth: pooled": lambda: Asked(sa.sum(net(attend)(Pi @ X), axis=0), sa.sum(net(attend)(X), axis=0)),
    "depth: causal": lambda: moved(net(causal), "refuted"),
    "depth: rotated features": lambda: Asked(net(rotated, SCALARS)(X @ R), net(rotated, SCALARS)(X) @ R),
    "depth: rotated features and weights": lambda: Asked(
        net(lambda X, w: X + w * sa.softmax(X @ X.T) @ X, SCALARS)(X @ R),
        net(lambda X, w: X + w * sa.softmax(X @ X.T) @ X, SCALARS)(X) @ R,
    ),
    "depth: features that are not rotated": lambda: Asked(net(attend)(X @ R), net(attend)(X) @ R, verdict="refuted"),
}
