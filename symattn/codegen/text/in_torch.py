"""Helpers of generated code in PyTorch that have no NumPy spelling, as text: each stands alone."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def result_type(*given):
    """The common type of arrays and types."""
    return functools.reduce(torch.promote_types, (getattr(x, "dtype", x) for x in given))


def refused(x, wrong, why):
    """x, with an error where something is wrong with it."""
    torch._assert_async(torch.logical_not(torch.as_tensor(wrong)).all(), why)
    return x


def absent(x, index, size):
    """What was read at an index, which is inside."""
    return x


def forwards(place, shape):
    """An index whose slices run forwards, and the axes that are to be flipped."""
    items, flipped, axis, made = [], [], -1, -1
    for item in reversed(place[1:]):
        if isinstance(item, slice) and item.step is not None and item.step < 0:
            run = range(*item.indices(shape[axis]))
            item, flipped = slice(run[-1], run[0] + 1, -item.step), [*flipped, made]
        items.append(item)
        axis -= item is not None
        made -= not isinstance(item, int)
    return (..., *reversed(items)), flipped


def read(x, place):
    """x at a place of the last axes, of which slices may run backwards."""
    place, flipped = forwards(place, x.shape)
    return torch.flip(x[place], flipped)


def put(x, place, part):
    """x with the part at its place."""
    place, flipped = forwards(place, x.shape)
    x[place] = torch.flip(part, flipped)
    return x


def add_at(x, places, parts):
    """x with the parts added at their places, of which some may be the same."""
    return x.index_put(places, parts, accumulate=True)


def ldexp(x, power):
    """x * 2**power."""
    return x * torch.pow(2.0, power.to(x.dtype))


def erf(x):
    """The error function."""
    return torch.special.erf(x)


def erfc(x):
    """1 - erf(x)."""
    return torch.special.erfc(x)


IN_TORCH = {name: f for name, f in globals().items() if inspect.isfunction(f)}
