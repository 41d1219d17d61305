"""Functions that generated code carries along, as text: each is stand-alone NumPy."""

from __future__ import annotations

import inspect

import numpy as np


def softmax(z, axis=-1):
    """Softmax that does not overflow; a row of -inf gives zeros."""
    top = z.max(axis=axis, keepdims=True)
    weights = np.exp(z - np.where(top == -np.inf, 0, top))
    total = weights.sum(axis=axis, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def masked_softmax(z, allowed, axis=-1):
    """Softmax over the allowed entries; a row without any gives zeros."""
    return softmax(np.where(allowed, z, -np.inf), axis)


def full_rows(z, axis=-1):
    """The logits, or an error if a row has nothing to attend to."""
    if (z.max(axis=axis) == -np.inf).any():
        raise ValueError("softmax: a row has nothing to attend to")
    return z


def logsumexp(z, axis=-1, keepdims=False):
    """log(sum(exp(z))) that does not overflow; a row of -inf gives -inf."""
    top = z.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        total = top + np.log(np.exp(z - top).sum(axis=axis, keepdims=True))
    return total if keepdims else total.squeeze(axis)


def sigmoid(x):
    """1 / (1 + exp(-x)) that does not overflow."""
    small = np.exp(np.where(x.real < 0, x, -x))
    return np.where(x.real < 0, small, 1) / (1 + small)


def softplus(x):
    """log(1 + exp(x)) that does not overflow."""
    return np.where(x.real > 0, x, 0) + np.log1p(np.exp(np.where(x.real > 0, -x, x)))


def silu(x):
    """x * sigmoid(x)."""
    return x * sigmoid(x)


def erf(x):
    """The error function, in the dtype of its argument."""
    return special.erf(x).astype(x.dtype)  # noqa: F821


def gelu(x):
    """x times the normal distribution function."""
    return x * (1 + erf(x / 2**0.5)) / 2


def spread(x, core):
    """Broadcast the last axes to the shape ``core``."""
    return np.broadcast_to(x, x.shape[: max(0, x.ndim - len(core))] + core)


def sum_to(x, shape):
    """Sum a gradient over the loop axes that its variable does not have."""
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))
    stretched = tuple(k for k, size in enumerate(shape) if size == 1 != x.shape[k])
    return x.sum(axis=stretched, keepdims=True)


def split_axis(x, axis, a, b):
    """One axis, counted from the end, into two of sizes a and b."""
    return x.reshape(*x.shape[: x.ndim + axis], a, b, *x.shape[x.ndim + axis + 1 :])


def merge_axes(x, axis):
    """An axis, counted from the end, and the one before it into one."""
    return x.reshape(*x.shape[: x.ndim + axis - 1], -1, *x.shape[x.ndim + axis + 1 :])


def concat(parts, axis, rank):
    """Join along an axis; axes in front of the last ``rank`` broadcast."""
    loops = np.broadcast_shapes(*(p.shape[: p.ndim - rank] for p in parts))
    return np.concatenate([np.broadcast_to(p, loops + p.shape[p.ndim - rank :]) for p in parts], axis)


def embed(part, place, core, rank):
    """Zeros of the shape ``core`` with the part, of ``rank`` axes, at its place."""
    whole = np.zeros(part.shape[: part.ndim - rank] + core, part.dtype)
    whole[place] = part
    return whole


def diag(x):
    """The diagonal matrix of the last axis."""
    whole = np.zeros((*x.shape, x.shape[-1]), x.dtype)
    np.einsum("...ii->...i", whole)[...] = x
    return whole


NEEDS = {"masked_softmax": ("softmax",), "silu": ("sigmoid",), "gelu": ("erf",)}
HELPERS = {
    f.__name__: f
    for f in (softmax, masked_softmax, full_rows, logsumexp, sigmoid, softplus, silu, erf, gelu, spread, sum_to,
              split_axis, merge_axes, concat, embed, diag)
}  # fmt: skip


def text_of(names: set[str]) -> list[str]:
    """The source of the helpers and of what they need, in a fixed order."""
    wanted = {*names, *(need for name in names for need in NEEDS.get(name, ()))}
    return [inspect.getsource(f).replace("  # noqa: F821", "") for name, f in HELPERS.items() if name in wanted]
