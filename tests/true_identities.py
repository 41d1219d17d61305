"""True identities: a node of a term as another expression of the same value, and terms rewritten by them at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import symattn as sa
from symattn.core.node import rebuild, topological
from symattn.errors import SymattnError
from symattn.ops.broadcasting import broadcast_to

from .random_terms import letters_of


def _declared(size: Any, word: str) -> sa.Tensor:
    return sa.tensor(f"Z{word[0]}_{letters_of(size)}", size, size, **{word: True})


def _there_and_back(x: sa.Tensor, rng: random.Random) -> sa.Tensor | None:
    if x.rank < 2 or x.kind != "real":
        return None
    word = rng.choice(["permutation", "orthogonal", "invertible"])
    by = _declared(x.shape[-2], word)
    back = sa.inv(by) if word == "invertible" else by.T
    return rng.choice([lambda: back @ (by @ x), lambda: by @ (back @ x)])()


def _matmul_as(x: sa.Tensor, rng: random.Random) -> sa.Tensor | None:
    if x.op.name != "matmul" or {y.rank for y in x.inputs} != {2}:
        return None
    a, b = x.inputs
    return rng.choice(
        [
            lambda: (b.T @ a.T).T,
            lambda: sa.einsum("kj,ik->ij", b, a),
            lambda: sa.sum(a[:, :, None] * b[None], axis=1),
            lambda: sa.sum(a[:, None, :] * b.T[None], axis=-1),
        ]
    )()


def _softmax_as(x: sa.Tensor, rng: random.Random) -> sa.Tensor | None:
    if x.op.name != "softmax" or len(x.inputs) > 1 or x.params["axes"] != (-1,):
        return None
    z = x.inputs[0]
    e = sa.exp(z)
    return rng.choice(
        [
            lambda: e / sa.sum(e, axis=-1, keepdims=True),
            lambda: sa.softmax(z + sa.sum(z, axis=-1, keepdims=True)),
            lambda: sa.exp(z - sa.logsumexp(z, axis=-1, keepdims=True)),
            lambda: sa.softmax(z - sa.max(z, axis=-1, keepdims=True)),
        ]
    )()


def _sum_as(x: sa.Tensor, rng: random.Random) -> sa.Tensor | None:
    if x.op.name not in ("sum", "max", "mean") or x.params["axes"] != (-1,):
        return None
    y = x.inputs[0]
    by = _declared(y.shape[-1], "permutation")
    moved = (y[..., None, :] @ by)[..., 0, :] if rng.random() < 0.5 else sa.flip(y, -1)
    return getattr(sa, x.op.name)(moved, axis=-1, keepdims=x.params["keepdims"])


def _function_as(x: sa.Tensor, rng: random.Random) -> sa.Tensor | None:
    by_name: Mapping[str, Callable[[Any], sa.Tensor]] = {
        "tanh": lambda y: 2 * sa.sigmoid(2 * y) - 1,
        "sigmoid": lambda y: 1 - sa.sigmoid(-y),
        "relu": lambda y: (y + sa.abs(y)) / 2,
        "softplus": lambda y: y + sa.softplus(-y),
        "abs": lambda y: sa.maximum(y, -y),
        "exp": lambda y: sa.exp(y / 2) ** 2,
        "logsumexp": lambda y: sa.log(sa.sum(sa.exp(y), axis=x.params["axes"], keepdims=x.params["keepdims"])),
        "diag": lambda y: y[:, None] * sa.eye(y.shape[0]) if y.rank == 1 else sa.einsum("ii->i", y),
    }
    make = by_name.get(x.op.name)
    return None if make is None else make(x.inputs[0])


def _parts_joined(x: sa.Tensor, rng: random.Random) -> sa.Tensor | None:
    """Two slices, or two digits, put together again."""
    for axis, size in enumerate(x.shape):
        before = (slice(None),) * axis
        if size.is_Add:
            at = size.args[0]
            return sa.concat([x[(*before, slice(0, at))], x[(*before, slice(at, size))]], axis=axis)
        if size.is_Mul and len(size.args) == 2:
            return sa.merge_axes(sa.split_axis(x, axis, size.args), (axis, axis + 1))
    return None


def _scan_as(x: sa.Tensor, rng: random.Random) -> sa.Tensor | None:
    y = x.inputs[0] if x.inputs else x
    if x.op.name in ("tril", "triu"):
        k, below = x.params["k"], x.op.name == "tril"
        return y * sa.from_index(x.shape[-2:], lambda i, j: j - i <= k if below else j - i >= k)
    if x.op.name == "cumsum" and x.params["axis"] == -2:
        ones = sa.ones(y.shape[-2], y.shape[-2])
        return (sa.triu(ones) if x.params["reverse"] else sa.tril(ones)) @ y
    return None


def _regrouped(x: sa.Tensor, rng: random.Random) -> sa.Tensor | None:
    if x.op.name in ("multiply", "matmul") and x.inputs[1].op.name == "add":
        a, (b, c) = x.inputs[0], x.inputs[1].inputs
        return a * b + a * c if x.op.name == "multiply" else a @ b + a @ c
    if x.op.name == "add":
        return x.inputs[1] + x.inputs[0]
    return x + x - x if x.kind == "real" else None


IDENTITIES: Mapping[str, Callable[[sa.Tensor, random.Random], sa.Tensor | None]] = {
    f.__name__.strip("_"): f
    for f in (_there_and_back, _matmul_as, _softmax_as, _sum_as, _function_as, _parts_joined, _scan_as, _regrouped)
}


def rewritten(x: sa.Tensor, steps: int, rng: random.Random) -> sa.Tensor:
    """The term after a number of true identities at random nodes."""
    for _ in range(steps):
        nodes = topological([x])
        for _ in range(12):
            node, name = rng.choice(nodes), rng.choice(list(IDENTITIES))
            try:
                new = IDENTITIES[name](node, rng)
                if new is not None and new is not node:
                    x = rebuild([x], {node: broadcast_to(new, node.shape)})[0]
                    break
            except SymattnError:
                continue
    return x


__all__ = ["IDENTITIES", "rewritten"]
