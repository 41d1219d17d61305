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


@functools.lru_cache(maxsize=16)
def quick(dtype: Any) -> Quick:
    """The helpers for arrays of this type, which hand arrays of another one to the general helpers."""
    if dtype.kind != "f":
        return Quick(_general.softmax, _general.masked_softmax, _general.softmax_vjp)
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
        g = g - g.take(_first_of_rows(p.shape) + p.argmax(-1))[..., None]
        g -= np.vecdot(p, g)[..., None]
        g *= p
        return g

    return Quick(softmax, masked_softmax, softmax_vjp)


@functools.lru_cache(maxsize=256)
def _first_of_rows(shape: tuple[int, ...]) -> np.ndarray:
    """Where rows begin in an array that is laid out row by row."""
    return np.arange(0, math.prod(shape), shape[-1]).reshape(shape[:-1])
