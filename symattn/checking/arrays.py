"""Arrays of any library beside those that are right: what they hold, and how far they are off."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import OperandError, described

# The errors that rounding may leave in a chain of a few products and a softmax, in units of the largest entry.
TOLERANCES = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-5, "float64": 1e-9}
_SMALLEST_SCALE = 0.1  # below it errors are absolute: a gradient that is zero comes out as rounding


def as_array(result: Any) -> np.ndarray:
    """A float64 array of anything NumPy reads; a PyTorch tensor is first taken off its graph and its device."""
    if hasattr(result, "detach"):
        result = result.detach().cpu()
        result = result.double() if hasattr(result, "double") else result  # NumPy has no bfloat16
        result = result.numpy()
    array = np.asarray(result)
    if np.iscomplexobj(array):
        raise TypeError("its entries are complex")
    return np.asarray(array, np.float64)


def floating(x: Any) -> str | None:
    """``float32`` of an array of that dtype, of any library; None of what is no array of a floating dtype."""
    name = str(getattr(x, "dtype", "")).rpartition(".")[2]
    return name if name.startswith(("float", "bfloat")) else None


def scale_of(right: np.ndarray) -> float:
    """What errors are relative to: the largest entry."""
    return max(_SMALLEST_SCALE, float(np.abs(right).max()))


def checked_tolerance(tolerance: Any) -> float:
    """A tolerance that can be one. Raises OperandError."""
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not 0 <= tolerance < 1:
        raise OperandError(f"a tolerance is a number from 0 to 1, of the largest entry, not {described(tolerance)}")
    return float(tolerance)
