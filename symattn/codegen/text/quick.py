"""Helpers of generated code for small arrays: the same numbers to the last bit, with less said about each."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextvars import Context
from typing import Any, NamedTuple

import numpy as np

from . import helpers

_general: Any = helpers  # which have no types
_largest: Any = np.maximum.reduce
_total: Any = np.add.reduce
_QUIET = Context()  # entering a copy of it takes a tenth of what np.errstate takes
_QUIET.run(np.seterr, all="ignore")


class Quick(NamedTuple):
    """The helpers for arrays of one type."""

    softmax: Callable[..., Any]
    masked_softmax: Callable[..., Any]
    softmax_vjp: Callable[..., Any]
    length: Callable[..., Any]
    unit_rows: Callable[..., Any]
    over_length: Callable[..., Any]


@functools.lru_cache(maxsize=16)
def quick(dtype: Any) -> Quick:
    """The helpers for arrays of this type, which hand arrays of another one to the general helpers."""
    if dtype.kind != "f":
        return Quick(*(getattr(_general, name) for name in Quick._fields))
    lowest, tiny = np.finfo(dtype).min, np.finfo(dtype).tiny

    def softmax(z: Any, axis: Any = -1) -> Any:
        if z.dtype != dtype:
            return _general.softmax(z, axis)
        top = _largest(z, axis, None, None, True, lowest)
        weights = _QUIET.copy().run(np.subtract, z, top)
        np.exp(weights, weights)
        weights /= _total(weights, axis, None, None, True, tiny)
        return weights

    def masked_softmax(z: Any, allowed: Any, axis: Any = -1) -> Any:
        return softmax(np.where(allowed, z, -np.inf), axis)

    def softmax_vjp(g: Any, p: Any, axis: Any = -1) -> Any:
        if axis != -1 or g.shape != p.shape or g.dtype != dtype or p.dtype != dtype:
            return _general.softmax_vjp(g, p, axis)
        at = _first_of_rows(p.shape) + p.argmax(-1)
        found = g.take(at)
        if p.shape[-1] > 8:
            found = np.where(p.take(at) > 0.5, found, 0)
        g = g - found[..., None]
        g -= np.vecdot(p, g)[..., None]
        g *= p
        return g

    return Quick(softmax, masked_softmax, softmax_vjp, *_of_norms(dtype))


def _of_norms(dtype: Any) -> tuple[Callable[..., Any], ...]:
    """The helpers of norms, for rows of usual length."""
    low = 16 * float(np.finfo(dtype).tiny) ** 0.5

    def is_usual(root: Any, mean: Any, divides: bool) -> bool:
        if root.dtype != dtype:
            return bool(_general.is_usual(root, mean, divides))
        if not (root.min() > low and root.max() < 1 / low):
            return False
        return mean is None or bool((np.abs(mean) < 8 * (root if divides else 1 / root)).all())

    def length(x: Any, factor: Any, eps: Any, axis: Any = -1, of: Any = None, mean: Any = None) -> Any:
        root = _QUIET.copy().run(_root, x, factor, eps, axis)
        return root if is_usual(root, mean, True) else _general.length(x, factor, eps, axis, of, mean)

    def unit_rows(
        x: Any, root: Any, factor: Any, eps: Any, axis: Any = -1, of: Any = None, mean: Any = None,
        divides: bool = False,
    ) -> Any:  # fmt: skip
        if is_usual(root, mean, divides):
            return x / root if divides else x * root
        return _general.unit_rows(x, root, factor, eps, axis, of, mean, divides)

    def over_length(
        u: Any, root: Any, x: Any, factor: Any, eps: Any, axis: Any = -1, of: Any = None, mean: Any = None,
        divides: bool = False,
    ) -> Any:  # fmt: skip
        if is_usual(root, mean, divides):
            return u / root if divides else u * root
        return _general.over_length(u, root, x, factor, eps, axis, of, mean, divides)

    return length, unit_rows, over_length


def _root(x: Any, factor: Any, eps: Any, axis: Any) -> Any:
    return np.sqrt(factor * _total(x**2, axis, None, None, True) + eps)


@functools.lru_cache(maxsize=256)
def _first_of_rows(shape: tuple[int, ...]) -> np.ndarray:
    """Where rows begin in an array that is laid out row by row."""
    return np.arange(0, math.prod(shape), shape[-1]).reshape(shape[:-1])
