"""The one gate for what goes into a compiled function: arrays and numbers of its own kinds, or an error by name."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import sympy

from ...core.node import Tensor
from ...errors import EvaluationError, described

DECLARED: dict[str, Callable[[Any], bool]] = {  # what formulas are simplified by
    "positive": lambda x: x > 0, "negative": lambda x: x < 0, "zero": lambda x: x == 0, "nonzero": lambda x: x != 0,
    "nonnegative": lambda x: x >= 0, "nonpositive": lambda x: x <= 0,
    "even": lambda x: x % 2 == 0, "odd": lambda x: x % 2 == 1,
}  # fmt: skip
REFUSED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)  # by others' arrays
_FLOATING = np.dtype(np.float64)
_OWN = {np.dtype(code).num for code in np.typecodes["All"]}  # others register types with the same letters


def admitted(arguments: Sequence[Any], values: Sequence[Any]) -> tuple[list[Any], Any]:
    """The values of the arguments, and the dtype of results that is not the one of the computation, if there is one.

    Tensors are arrays of one floating type, scalar symbols Python numbers. NumPy computes nothing in bfloat16: where
    all floating arrays have it, they are computed with in float32, and results go back.
    """
    bound: list[Any] = []
    for a, value in zip(arguments, values, strict=True):
        bound.append(_array(a, value) if isinstance(a, Tensor) else checked_scalar(a, value))
    found = [v.dtype for v in values if isinstance(v, (np.ndarray, np.generic)) and v.dtype.kind in "fcV"]
    narrow = found and all(dtype.kind == "V" for dtype in found)  # of which the gate lets only bfloat16 in
    return _one_dtype(arguments, bound), found[0] if narrow else None


# --- arrays ---


def _array(a: Tensor, value: Any) -> Any:
    """An argument as an array of at least its declared rank; a number for a real tensor of rank 0 stays one."""
    if type(value) is not np.ndarray:
        value = _from_outside(a, value)
        if isinstance(value, (int, float, complex)) and not a.rank and a.kind == "real":
            return value  # which takes the floating type of the arrays
    x = _numeric(a, value)
    if x.ndim < a.rank:
        raise EvaluationError(f"{a.name} has shape {x.shape}, of {x.ndim} axes: {a.brief()} has {a.rank}")
    if not x.size:
        raise EvaluationError(f"{a.name} has shape {x.shape}, which is empty: sizes in {a.brief()} are positive")
    if a.kind == "binary":
        return _binary(a, x)
    return _integer(a, x) if a.kind == "integer" else x


def _from_outside(a: Tensor, value: Any) -> Any:
    """A number as Python's own, anything else as it is; a masked array would lose its mask."""
    if _is_masked(value):
        raise EvaluationError(
            f"{a.name} is a masked array, whose mask would be lost: give {a.brief()} the data, and the mask as a "
            f"binary tensor of its own (where=), or fill it first ({a.name}.filled(0))"
        )
    return np.asarray(value) if isinstance(value, np.generic) else _number(a, value)


def _is_masked(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_is_masked, value))
    return isinstance(value, np.ma.MaskedArray)


def _numeric(a: Tensor, value: Any) -> Any:
    try:
        x = np.asarray(value)
    except REFUSED as problem:
        raise EvaluationError(f"{a.name} is no array for {a.brief()}: {problem}") from None
    if x.dtype.kind in "biufc" and x.dtype.num in _OWN:
        return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
    if x.dtype.name == "bfloat16":
        return x.astype(np.float32)
    own = "np.int64" if a.kind == "integer" else "bool" if a.kind == "binary" else "float"
    way = f": convert it first, as in np.array(x, dtype={own})" if x.dtype.kind in "OVf" else ""
    raise EvaluationError(f"{a.name} has dtype {x.dtype}: {a.brief()} takes numbers{way}")


def _binary(a: Tensor, x: Any) -> Any:
    if x.dtype.kind != "b" and not ((x == 0) | (x == 1)).all():
        found = "NaN" if (x != x).any() else "entries other than 0 and 1"
        raise EvaluationError(f"{a.name} is declared binary, but has {found}")
    return x.astype(bool)


def _integer(a: Tensor, x: Any) -> Any:
    """Integers as int64, in which sums and differences of small or unsigned numbers do not wrap."""
    if x.dtype.kind in "fc":
        if not (np.isfinite(x) & (x == np.floor(x.real))).all():
            raise EvaluationError(f"{a.name} is declared integer, but has entries that are not whole")
        x = x.real
        fits = (x >= -(2.0**63)) & (x < 2.0**63)
    else:
        fits = x <= np.iinfo(np.int64).max if x.dtype == np.uint64 else np.True_
    if not fits.all():
        raise EvaluationError(
            f"{a.name} is declared integer, but has the entry {x[~fits].flat[0]}, which int64 does not hold"
        )
    return x.astype(np.int64)


def _one_dtype(arguments: Sequence[Any], bound: Sequence[Any]) -> list[Any]:
    """Whole numbers of real tensors in the floating type of the others; floating arrays keep their own."""
    is_real = [isinstance(a, Tensor) and a.kind == "real" for a in arguments]
    real = [x for x, yes in zip(bound, is_real, strict=True) if yes]
    floating = [x.dtype for x in real if not isinstance(x, (int, float, complex)) and x.dtype.kind in "fc"]
    if len(floating) == len(real):
        return list(bound)
    dtype = np.result_type(*floating) if floating else _FLOATING
    if any(isinstance(x, complex) for x in real):
        dtype = np.result_type(dtype, np.complex64)
    rows = zip(arguments, bound, is_real, strict=True)
    return [_cast(a, x, dtype) if yes else x for a, x, yes in rows]


def _cast(a: Tensor, x: Any, dtype: Any) -> Any:
    if not isinstance(x, (int, float, complex)) and x.dtype.kind in "fc":
        return x
    try:
        with np.errstate(over="ignore"):  # which is said with the name
            found = np.asarray(x, dtype)
    except OverflowError:
        raise _beyond(a, x) from None
    if not np.isfinite(found).all() and np.isfinite(x).all():
        raise EvaluationError(f"{a.name} has entries beyond {dtype}, the type of the other arguments")
    return found


# --- numbers ---


def checked_scalar(s: sympy.Symbol, value: Any) -> Any:
    """The value of a scalar symbol as a Python number, which does not change the dtype of arrays."""
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0 and not _is_masked(value):
        value = value.item()
    found = _number(s, value)
    if not isinstance(found, (int, float, complex)) or isinstance(found, bool):
        raise EvaluationError(f"{s.name} is a number, not {described(value)}")
    if s.is_integer and (not isinstance(found, int) or (s.is_positive and found < 1)):
        what = f"the size {s.name} is a positive integer" if s.is_positive else f"{s.name} is an integer"
        raise EvaluationError(f"{what}, not {described(value)}")
    if not isinstance(found, complex):
        for declared, holds in DECLARED.items():
            if getattr(s, f"is_{declared}") and not holds(found):
                raise EvaluationError(f"{s.name} is declared {declared}, and cannot be {described(value)}")
    return found if s.is_integer else _floating(s, found)


def _number(a: Tensor | sympy.Symbol, value: Any) -> Any:
    """A number of SymPy, NumPy, fractions or decimal as Python's own; what is no number, as it is."""
    if isinstance(value, (bool, np.bool_)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, sympy.Expr) and value.is_number:
        return _from_sympy(a, value)
    if isinstance(value, (numbers.Real, Decimal)):
        return _floating(a, value)
    return complex(value) if isinstance(value, numbers.Complex) else value


def _from_sympy(a: Tensor | sympy.Symbol, value: sympy.Expr) -> Any:
    try:
        found = complex(value)
    except (TypeError, ValueError):  # of what SymPy knows no value
        return value
    if value.is_finite and not np.isfinite(found):
        raise _beyond(a, value)
    if value.has(sympy.zoo):
        return value
    return found if found.imag and found == found else found.real


def _floating(a: Tensor | sympy.Symbol, value: Any) -> Any:
    if isinstance(value, complex):
        return value
    try:
        return float(value)
    except OverflowError:
        raise _beyond(a, value) from None
    except ValueError:  # of a signalling NaN
        return value


def _beyond(a: Tensor | sympy.Symbol, value: Any) -> EvaluationError:
    return EvaluationError(f"{a.name} is beyond the largest float64: {described(value)}")
