"""Helpers for array libraries that trace: the same numbers, and no branch on values, nothing written in place.

They are written in NumPy's spelling and spelled in each dialect as all generated code is; ``refused``, ``put`` and
``add_at`` are those of the dialect. A helper of ``helpers.py`` that is not here is spelled as it stands there.
"""

# ruff: noqa: F821
from __future__ import annotations

import inspect

import numpy as np


def softmax(z, axis=-1):
    """Softmax that does not overflow; a row of -inf gives zeros."""
    weights = np.exp(z - z.max(axis=axis, keepdims=True, initial=np.finfo(z.dtype).min))
    total = weights.sum(axis=axis, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def full_rows(z, axis=-1):
    """The logits; a row that has nothing to attend to is refused."""
    return refused(z, z.max(axis=axis, keepdims=True) == -np.inf, "softmax: a row has nothing to attend to")


def log_sum(z, axis):
    """log(sum(exp(z))) where the largest entry is 0, and the others may be tiny; a row of -inf gives -inf."""
    weights, top = np.exp(z), z == 0
    total = weights.sum(axis=axis, keepdims=True)
    others = np.where(top, 0, weights).sum(axis=axis, keepdims=True) + (top.sum(axis=axis, keepdims=True) - 1)
    return np.where(total < 1.5, np.log1p(others), np.log(total))


def softmax_slope(u, p, axis=-1):
    """u - p * sum(u) for probabilities p; where one is nearly 1, from what the others have."""
    top = p > 0.75
    others = np.where(top, 0, p).sum(axis=axis, keepdims=True)
    rest = np.where(top, 0, u).sum(axis=axis, keepdims=True)
    return np.where(top, u * others - p * rest, u - p * u.sum(axis=axis, keepdims=True))


def softmax_vjp(g, p, axis=-1):
    """p * (g - sum(p * g)) for probabilities p, also where one is nearly 1: there g is brought to 0 first."""
    top = p.max(axis=axis, keepdims=True)
    first = np.where(p == top, g, -np.inf).max(axis=axis, keepdims=True)
    g = g - np.where(top > 0.5, first, 0)
    return p * (g - (p * g).sum(axis=axis, keepdims=True))


def softmax_less(p, y, axis=-1):
    """p - y for probabilities p and one class a row; where that is nearly 1, it gets minus the sum of the others."""
    others = np.where(y, 0, p).sum(axis=axis, keepdims=True)
    return np.where(y & (p > 0.75), -others, p - y.astype(p.dtype))


def is_usual(root, mean, divides):
    """Where squares of rows of these (inverse) lengths neither overflow nor vanish, and means are not much larger."""
    low = 16 * float(np.finfo(root.dtype).tiny) ** 0.5
    usual = (root > low) & (root < 1 / low)
    return usual if mean is None else usual & (np.abs(mean) < 8 * np.abs(root if divides else 1 / root))


def near_one(rows, factor, eps, axis, centred):
    """Rows times a power of two that brings them near 1, and less their means; their lengths; and the inverse power,
    as two factors that are representable."""
    z = rows.astype(np.result_type(rows.dtype, np.float32))
    top, least = np.abs(z).max(axis=axis, keepdims=True), abs(eps) ** 0.5
    power = np.frexp(np.where(top < least, least, top))[1]
    one = top * 0 + 1
    first, second = np.ldexp(one, power // 2), np.ldexp(one, power - power // 2)
    z = z / first / second
    for _ in range(2 * centred):  # the second time takes off what the first mean was rounded by
        z = z - z.mean(axis=axis, keepdims=True)
    added = eps / first / second / first / second
    return z, np.sqrt(factor * (z**2).sum(axis=axis, keepdims=True) + added), first, second


def length(x, factor, eps, axis=-1, of=None, mean=None):
    """sqrt(factor * rowsum(x**2) + eps) for rows of any scale; x may be ``of`` less its ``mean``."""
    root = np.sqrt(factor * (x**2).sum(axis=axis, keepdims=True) + eps)
    _, near, first, second = near_one(x if of is None else of, factor, eps, axis, of is not None)
    return np.where(is_usual(root, mean, True), root, (near * first * second).astype(root.dtype))


def unit_rows(x, root, factor, eps, axis=-1, of=None, mean=None, divides=False):
    """The rows x over their lengths; ``root`` is these or their inverses, which may not be representable."""
    z, near, _, _ = near_one(x if of is None else of, factor, eps, axis, of is not None)
    return np.where(is_usual(root, mean, divides), x / root if divides else x * root, (z / near).astype(x.dtype))


def over_length(u, root, x, factor, eps, axis=-1, of=None, mean=None, divides=False):
    """u over the lengths of the rows x; ``root`` is these or their inverses, which may not be representable."""
    _, near, first, second = near_one(x if of is None else of, factor, eps, axis, of is not None)
    far = (u / near / first / second).astype(u.dtype)
    return np.where(is_usual(root, mean, divides), u / root if divides else u * root, far)


def sum_to(x, shape):
    """Sum a gradient over the loop axes that its variable does not have."""
    front = x.ndim - len(shape)
    axes = (*range(front), *(front + k for k, size in enumerate(shape) if size == 1 != x.shape[front + k]))
    return x.sum(axis=axes, keepdims=True).reshape(shape) if axes else x


def embed(part, place, core, rank):
    """Zeros of the shape ``core`` with the part, of ``rank`` axes, at its place."""
    return put(np.zeros((*part.shape[: part.ndim - rank], *core), part.dtype), place, part)


def inside(index, size, where):
    """The index; where it counts and leaves the size it is refused."""
    return np.clip(
        refused(index, ((index < 0) | (index >= size)) & where, "an entry formula reads outside"), 0, size - 1
    )


def diag(x):
    """The diagonal matrix of the last axis."""
    return np.where(np.eye(x.shape[-1], dtype=bool), x[..., None], 0)


def whole(index, size, name):
    """The indices as integers, each held against the size of its axis."""
    found = index.astype(int)
    wrong = (found != index) | (found < 0) | (found >= size)
    return refused(found, wrong, f"an index of {name} is not a whole number from 0 to {size - 1}")


def take(x, index, axis, ranks, name):
    """Entries along an axis, counted from the end; ``ranks`` of both without loop axes, which broadcast."""
    index = whole(index, x.shape[axis], name)
    loops, own = index.shape[: index.ndim - ranks[1]], index.shape[index.ndim - ranks[1] :]
    behind = (1,) * (-1 - axis)
    if not loops:
        return absent(x[(..., index, *(slice(None),) * len(behind))], index.reshape(*own, *behind), x.shape[axis])
    flat = index.reshape(*loops, *(1,) * (ranks[0] + axis), -1, *behind)
    flat = flat.reshape((1,) * (x.ndim - flat.ndim) + tuple(flat.shape))
    taken = np.take_along_axis(x.reshape((1,) * (flat.ndim - x.ndim) + tuple(x.shape)), flat, axis)
    taken = absent(taken, flat, x.shape[axis])
    return taken.reshape(*taken.shape[: taken.ndim + axis], *own, *taken.shape[taken.ndim + axis + 1 :])


def scatter_add(g, index, axis, size, ranks, name):
    """The transpose of take: entries added up at the places in an axis that the indices give."""
    index = whole(index, size, name)
    own = tuple(index.shape[index.ndim - ranks[1] :])
    loops = tuple(np.broadcast_shapes(g.shape[: g.ndim - ranks[0]], index.shape[: index.ndim - ranks[1]]))
    g = np.broadcast_to(g, loops + tuple(g.shape[g.ndim - ranks[0] :]))
    first = g.ndim + axis + 1 - len(own)
    parts = np.moveaxis(g.reshape(*g.shape[:first], -1, *g.shape[first + len(own) :]), first, len(loops))
    flat = np.broadcast_to(index, loops + own).reshape(*loops, -1)
    total = np.zeros((*loops, size, *parts.shape[len(loops) + 1 :]), g.dtype)
    grids = [np.arange(n).reshape(-1, *(1,) * (len(loops) - k)) for k, n in enumerate(loops)]
    return np.moveaxis(add_at(total, (*grids, flat), parts), len(loops), axis)


def shift(x, by, axis, size):
    """y[.., j, ..] = x[.., j + by, ..] along an axis, and 0 outside."""
    at = np.arange(size).reshape(-1, *(1,) * (-1 - axis)) + by
    at = at.reshape((1,) * (x.ndim - at.ndim) + tuple(at.shape)).astype(int)
    inside = (at >= 0) & (at < x.shape[axis])
    return np.where(inside, np.take_along_axis(x, np.where(inside, at, 0), axis), 0)


def inv(x, name):
    """The inverse."""
    return np.linalg.inv(x.astype(np.result_type(x.dtype, np.float32))).astype(x.dtype)


def solve(a, b, name):
    """inv(a) @ b."""
    wide = np.result_type(a.dtype, b.dtype, np.float32)
    return np.linalg.solve(a.astype(wide), b.astype(wide)).astype(np.result_type(a.dtype, b.dtype))


TRACED = {name: f for name, f in globals().items() if inspect.isfunction(f)}
