"""Functions that generated code carries along, as text: each is stand-alone NumPy."""

from __future__ import annotations

import inspect
import math
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import islice

import numpy as np

from .carried import Helpers


def softmax(z, axis=-1):
    """Softmax that does not overflow; a row of -inf gives zeros."""
    kind = np.finfo(z.dtype)
    top = z.max(axis=axis, keepdims=True, initial=kind.min)
    with np.errstate(over="ignore"):  # of what lies so far below that its weight is 0
        weights = np.exp(z - top)
    weights /= weights.sum(axis=axis, keepdims=True, initial=kind.tiny)  # which only a row of zeros does not hide
    return weights


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
    with np.errstate(over="ignore"):  # of what lies so far below that its weight is 0
        total = top + log_sum(z - top, axis)
    return total if keepdims else total.squeeze(axis)


def log_sum(z, axis):
    """log(sum(exp(z))) where the largest entry is 0, and the others may be tiny; a row of -inf gives -inf."""
    weights = np.exp(z)
    total = weights.sum(axis=axis, keepdims=True)
    with np.errstate(divide="ignore"):
        if not (total.real < 1.5).any():
            return np.log(total)
        top = z == 0
        others = np.where(top, 0, weights).sum(axis=axis, keepdims=True)
        others += top.sum(axis=axis, keepdims=True) - 1
        return np.where(total.real < 1.5, np.log1p(others), np.log(total))


def largest(z, axis=-1, keepdims=False):
    """The largest entry of a row, or 0 where that is not finite."""
    top = z.max(axis=axis, keepdims=keepdims)
    return np.where(np.isfinite(top), top, 0)


def logsumexp_less(z, x, axis=-1, keepdims=False):
    """logsumexp(z) - x, where x may be as large as z: the largest entry less x, and then the rest."""
    top = largest(z, axis, keepdims=True)
    rest = log_sum(z - top, axis)
    return (top - x + rest) if keepdims else top.squeeze(axis) - x + rest.squeeze(axis)


def log_softmax(z, axis=-1):
    """z - logsumexp(z), the largest entry taken off first; a row of -inf gives -inf."""
    z = z - largest(z, axis, keepdims=True)
    rest = log_sum(z, axis)
    return z - np.where(rest == -np.inf, 0, rest)


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
    return special.erf(x).astype(np.result_type(x, 0.0))  # noqa: F821


def erfc(x):
    """1 - erf(x), in the dtype of its argument."""
    return special.erfc(x).astype(np.result_type(x, 0.0))  # noqa: F821


def gelu(x):
    """x times the normal distribution function."""
    return x * erfc(-x / 2**0.5) / 2


def tanh_slope(x):
    """1 - tanh(x)**2, also where tanh(x) is nearly 1."""
    small = np.exp(np.where(x.real < 0, 2 * x, -2 * x))
    return 4 * small / (1 + small) ** 2


def tanh_slope_at(x, y, out=None):
    """1 - y**2 for y = tanh(x); where y is nearly 1, from x."""
    near = np.abs(y) > 0.7 if max(y.max(), -y.min()) > 0.7 else None
    few = None if near is None else tanh_slope(x[near])
    slope = np.multiply(y, y, out=out)
    np.subtract(1, slope, out=slope)
    if near is not None:
        slope[near] = few
    return slope


def softmax_slope(u, p, axis=-1):
    """u - p * sum(u) for probabilities p; in rows where one is nearly 1, from what the others have."""
    slope = p * -u.sum(axis=axis, keepdims=True)
    slope += u
    top = p.real.max(axis=axis, keepdims=True) > 0.75
    if top.any():
        last = -1 if isinstance(axis, int) else tuple(range(-len(axis), 0))
        rows, *moved = (np.moveaxis(np.broadcast_to(x, slope.shape), axis, last) for x in (top, p, u))
        rows = rows[(..., *(0,) * (slope.ndim - top.squeeze(axis).ndim))]
        p, u = (x[rows] for x in moved)
        others, rest = (np.where(p.real > 0.75, 0, x).sum(axis=last, keepdims=True) for x in (p, u))
        whole = np.moveaxis(slope, axis, last)  # a view, through which these rows are written
        whole[rows] = np.where(p.real > 0.75, u * others - p * rest, whole[rows])
    return slope


def softmax_vjp(g, p, axis=-1):
    """p * (g - sum(p * g)) for probabilities p, also where one is nearly 1: there g is brought to 0 first."""
    g = g - at_largest(g, p, axis)
    if isinstance(axis, int):
        return (g - np.vecdot(p.conj(), g, axis=axis, keepdims=True)) * p
    return (g - (p * g).sum(axis=axis, keepdims=True)) * p


def at_largest(g, p, axis):
    """The value of g in each row where p is largest, along an axis that stays; 0 in a long row without a large one."""
    g, p = np.broadcast_arrays(g, p)
    if isinstance(axis, int):
        at = p.argmax(axis=axis, keepdims=True)
        top, found = np.take_along_axis(p, at, axis), np.take_along_axis(g, at, axis)
        if p.shape[axis] <= 8:
            return found  # whose share in the sum is large in any case
    else:
        top = p.max(axis=axis, keepdims=True)
        found = np.where(p == top, g, -np.inf).max(axis=axis, keepdims=True)
    return np.where(top.real > 0.5, found, 0)


def weights_slope(weights, g, total, along, out=None):
    """weights * (g - along / total), where along is rowsum(weights * g) and the largest weight is 1; in rows where
    the others are few beside it, from what these have."""
    near = (total < 4 / 3)[..., 0]
    few = (weights[near], g[near], total[near]) if near.any() else None
    slope = np.subtract(g, along / total, out=out)
    slope *= weights
    if few is not None:
        w, g, total = few
        others = np.where(w == 1, 0, w)
        rest = g * others.sum(-1, keepdims=True) - np.vecdot(others, g)[..., None]
        slope[near] = np.where(w == 1, rest / total, slope[near])
    return slope


def log_total(weights, total):
    """The logarithm of the sums of rows of weights of which the largest is 1; where the others are tiny, of these."""
    result = np.log(total)
    few = (total < 1.5)[..., 0]
    if few.any():
        others = weights[few]
        others[np.arange(len(others)), others.argmax(axis=-1)] = 0
        rest = np.log1p(others.sum(axis=-1, keepdims=True))
        result[few] = np.where(total[few] > 0, rest, result[few])
    return result


def softmax_less(p, y, axis=-1):
    """p - y for probabilities p and one class a row; where that is nearly 1, it gets minus the sum of the others."""
    nearly = y & (p.real > 0.75)
    if not nearly.any():
        return p - y
    return np.where(nearly, -np.where(y, 0, p).sum(axis=axis, keepdims=True), p - y)


def expm1_ratio(x):
    """(exp(x) - 1) / x, also where exp(x) overflows alone."""
    half = np.expm1(x / 2)
    return half / x * (half + 2)


def expm1_ratio_slope(x):
    """The derivative of (exp(x) - 1) / x: by its series near 0."""
    near, below = np.abs(x) < 1, x.real < 0
    small, large = np.where(near, x, 0), np.where(near, 1, x)
    series = small * 0
    for k in range(18, -1, -1):
        series = series * small + 1 / (math.factorial(k) * (k + 2))
    ratio = expm1_ratio(large)
    low = (np.exp(np.where(below, large, 0)) - ratio) / large
    return np.where(near, series, np.where(below, low, ratio - (ratio - 1) / large))


def tanh_ratio_slope(x):
    """The derivative of tanh(x) / x: by the series of 2x - sinh(2x) near 0."""
    near = np.abs(x) < 1
    small, large = np.where(near, x, 0), np.where(near, 1, x)
    series = small * 0 + 1
    for k in range(12, 0, -1):
        series = 1 + 4 * small**2 / ((2 * k + 2) * (2 * k + 3)) * series
    series = series * tanh_slope(small) * small / -1.5
    return np.where(near, series, (tanh_slope(large) - np.tanh(large) / large) / large)


def weighed(p, x):
    """p * x, and 0 where p is 0."""
    return p * np.where(p == 0, 0, x)


def in_array(out, values):
    """The values, in an array where one is given."""
    if out is None:
        return values
    out[...] = values
    return out


def is_usual(root, mean, divides):
    """Whether squares of rows of these (inverse) lengths neither overflow nor vanish, and means are not much larger."""
    low = 16 * float(np.finfo(root.dtype).tiny) ** 0.5
    if not ((root.real > low) & (root.real < 1 / low)).all():
        return False
    return mean is None or (np.abs(mean) < 8 * np.abs(root if divides else 1 / root)).all()


def by_power(x, power):
    """x * 2**power, in two steps that are representable."""
    one = x.real.dtype.type(1)
    return x * np.ldexp(one, power // 2) * np.ldexp(one, power - power // 2)


def near_one(rows, factor, eps, axis, centred):
    """Rows times powers of two that bring them near 1, and less their means; their lengths; and the powers."""
    z = rows.astype(np.result_type(rows, np.float32))
    top = np.maximum(np.abs(z).max(axis=axis, keepdims=True), abs(eps) ** 0.5)
    power = -np.frexp(top)[1]
    z = by_power(z, power)
    for _ in range(2 * centred):  # the second time takes off what the first mean was rounded by
        z = z - z.mean(axis=axis, keepdims=True)
    added = by_power(by_power(np.asarray(eps), power), power)
    return z, np.sqrt(factor * (z**2).sum(axis=axis, keepdims=True) + added), power


def length(x, factor, eps, axis=-1, of=None, mean=None):
    """sqrt(factor * rowsum(x**2) + eps) for rows of any scale; x may be ``of`` less its ``mean``."""
    with np.errstate(all="ignore"):
        by_blas = axis == -1 and x.dtype.char in "fd" and x.shape[-1] >= 64  # short rows give the same bits anywhere
        squares = np.vecdot(x, x)[..., None] if by_blas else (x**2).sum(axis=axis, keepdims=True)
        root = np.sqrt(factor * squares + eps)
    if is_usual(root, mean, True):
        return root
    _, near, power = near_one(x if of is None else of, factor, eps, axis, of is not None)
    return by_power(near, -power).astype(root.dtype)


def unit_rows(x, root, factor, eps, axis=-1, of=None, mean=None, divides=False, out=None):
    """The rows x over their lengths; ``root`` is these or their inverses, which may not be representable."""
    if is_usual(root, mean, divides):
        return np.divide(x, root, out=out) if divides else np.multiply(x, root, out=out)
    z, near, _ = near_one(x if of is None else of, factor, eps, axis, of is not None)
    return in_array(out, (z / near).astype(np.result_type(x, root)))


def over_length(u, root, x, factor, eps, axis=-1, of=None, mean=None, divides=False, out=None):
    """u over the lengths of the rows x; ``root`` is these or their inverses, which may not be representable."""
    if is_usual(root, mean, divides):
        return np.divide(u, root, out=out) if divides else np.multiply(u, root, out=out)
    _, near, power = near_one(x if of is None else of, factor, eps, axis, of is not None)
    return in_array(out, by_power(u / near, power).astype(np.result_type(u, root)))


def spread(x, core):
    """Broadcast the last axes to the shape ``core``."""
    return np.broadcast_to(x, x.shape[: max(0, x.ndim - len(core))] + core)


def part(x, at, rank):
    """A view of an array of that rank at a place of the loop axes, of which it may have fewer, or some of size 1."""
    loops = x.shape[: x.ndim - rank]
    own = at[len(at) - len(loops) :]
    return x[(*(0 if size == 1 else k for k, size in zip(own, loops, strict=True)), ...)]


def sum_to(x, shape):
    """Sum a gradient over the loop axes that its variable does not have."""
    if x.shape == shape:
        return x
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


def inside(index, size, where):
    """The index, with an error where it counts and leaves the size."""
    if (((index < 0) | (index >= size)) & where).any():
        raise IndexError(f"an entry formula reads outside of the size {size}")
    return np.clip(index, 0, size - 1)


def diag(x):
    """The diagonal matrix of the last axis."""
    whole = np.zeros((*x.shape, x.shape[-1]), x.dtype)
    np.einsum("...ii->...i", whole)[...] = x
    return whole


def whole(index, size, name):
    """The indices as integers, each held against the size of its axis."""
    index = np.asarray(index).real
    found = index.astype(np.intp)
    wrong = (found != index) | (found < 0) | (found >= size)
    if wrong.any():
        raise IndexError(f"index {index[wrong][0]:g} of {name} is not a whole number from 0 to {size - 1}: "
                         f"the axis has size {size}")  # fmt: skip
    return found


def one_hot(index, size, name):
    """1 at the place of the index, along a new last axis."""
    return whole(index, size, name)[..., None] == np.arange(size)


def picked(x, index, name):
    """The entry of each row at the place of its index."""
    return np.take_along_axis(x, whole(index, x.shape[-1], name)[..., None], -1)


def take(x, index, axis, ranks, name):
    """Entries along an axis, counted from the end; ``ranks`` of both without loop axes, which broadcast."""
    index = whole(index, x.shape[axis], name)
    loops, own = index.shape[: index.ndim - ranks[1]], index.shape[index.ndim - ranks[1] :]
    if not loops:
        return np.take(x, index, axis)
    flat = index.reshape(*loops, *(1,) * (ranks[0] + axis), -1, *(1,) * (-1 - axis))
    flat = flat.reshape((1,) * (x.ndim - flat.ndim) + flat.shape)
    taken = np.take_along_axis(x.reshape((1,) * (flat.ndim - x.ndim) + x.shape), flat, axis)
    return taken.reshape(*taken.shape[: taken.ndim + axis], *own, *taken.shape[taken.ndim + axis + 1 :])


def scatter_add(g, index, axis, size, ranks, name):
    """The transpose of take: entries added up at the places in an axis that the indices give."""
    index = whole(index, size, name)
    own = index.shape[index.ndim - ranks[1] :]
    loops = np.broadcast_shapes(g.shape[: g.ndim - ranks[0]], index.shape[: index.ndim - ranks[1]])
    g = np.broadcast_to(g, loops + g.shape[g.ndim - ranks[0] :])
    first = g.ndim + axis + 1 - len(own)
    parts = np.moveaxis(g.reshape(*g.shape[:first], -1, *g.shape[first + len(own) :]), first, len(loops))
    flat = np.broadcast_to(index, loops + own).reshape(*loops, -1)
    total = np.zeros((*loops, size, *parts.shape[len(loops) + 1 :]), g.dtype)
    np.add.at(total, (*(k[..., None] for k in np.indices(loops, sparse=True)), flat), parts)
    return np.moveaxis(total, len(loops), axis)


def shift(x, by, axis, size):
    """y[.., j, ..] = x[.., j + by, ..] along an axis, and 0 outside."""
    at = (by + np.arange(size).reshape(-1, *(1,) * (-1 - axis))).astype(np.intp)
    at = at.reshape((1,) * (x.ndim - at.ndim) + at.shape)
    inside = (at >= 0) & (at < x.shape[axis])
    return np.where(inside, np.take_along_axis(x, np.where(inside, at, 0), axis), x.dtype.type(0))


def for_linalg(x):
    """Half precision as single, which is the least that LAPACK computes in."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def inv(x, name):
    """The inverse; NumPy's error for a singular matrix, with its name."""
    try:
        return np.linalg.inv(for_linalg(x)).astype(x.dtype, copy=False)
    except np.linalg.LinAlgError as problem:
        raise np.linalg.LinAlgError(f"inv of {name}: {problem}") from None


def solve(a, b, name):
    """inv(a) @ b; NumPy's error for a singular matrix, with its name."""
    try:
        return np.linalg.solve(for_linalg(a), for_linalg(b)).astype(np.result_type(a, b), copy=False)
    except np.linalg.LinAlgError as problem:
        raise np.linalg.LinAlgError(f"inv of {name}: {problem}") from None


def sparsemax(z, axis=-1):
    """The nearest point of the simplex; a row of -inf gives zeros."""
    top = z.max(axis=axis, keepdims=True)
    x = np.maximum(z - np.where(top == -np.inf, 0, top), -1)  # what is lower is never in the support
    count = np.arange(1, x.shape[axis] + 1, dtype=x.dtype).reshape(-1, *(1,) * (-1 - axis))
    total = np.cumsum(-np.sort(-x, axis=axis), axis=axis)
    threshold = ((total - 1) / count).max(axis=axis, keepdims=True)
    return np.where(top == -np.inf, 0, np.maximum(x - threshold, 0))


def entmax15(z, axis=-1):
    """1.5-entmax; a row of -inf gives zeros."""
    top = z.max(axis=axis, keepdims=True)
    x = np.maximum((z - np.where(top == -np.inf, 0, top)) / 2, -1)  # what is lower is never in the support
    count = np.arange(1, x.shape[axis] + 1, dtype=x.dtype).reshape(-1, *(1,) * (-1 - axis))
    ordered = -np.sort(-x, axis=axis)
    mean = np.cumsum(ordered, axis=axis) / count
    spread = np.cumsum(ordered**2, axis=axis) / count - mean**2
    threshold = mean - np.sqrt(np.maximum(1 / count - spread, 0))
    threshold = np.where(threshold <= ordered, threshold, -1).max(axis=axis, keepdims=True)
    return np.where(top == -np.inf, 0, np.maximum(x - threshold, 0) ** 2)


def in_threads(work, threads, loops, added):
    """Calls work on equal shares of the places of the loop axes, a thread each, and waits for all of them.

    What is added up over loop axes is given with its rank: each thread but the first adds to zeros of its own, and
    these are added in order, so that a result is the same in each run.
    """
    count, total = math.prod(loops), [x for x, rank in added]
    threads = min(threads, count)
    if threads < 2:
        return work(np.ndindex(*loops), *total)
    summed = [x.shape[: x.ndim - rank] != loops for x, rank in added]
    pairs = list(zip(total, summed, strict=True))
    shares = [[np.zeros_like(x) if k and own else x for x, own in pairs] for k in range(threads)]
    ends = [count * k // threads for k in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        running = [
            pool.submit(copy_context().run, work, islice(np.ndindex(*loops), *ends[k : k + 2]), *shares[k])
            for k in range(threads)
        ]
    for result in running:
        result.result()
    for share in shares[1:]:
        for (x, own), part in zip(pairs, share, strict=True):
            if own:
                x += part


HELPERS = Helpers({name: f for name, f in globals().items() if inspect.isfunction(f)})
