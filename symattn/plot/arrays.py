"""What is drawn as arrays: those that are given, or the values of expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy

from ..codegen import lambdify
from ..core.arguments import each_of, text_of
from ..core.node import Tensor, topological
from ..errors import OperandError, described
from ..ops.leaves import variable
from ..printing.prose import Words


def array_of(what: str, x: Any, values: Mapping[Any, Any] | None = None) -> np.ndarray:
    """An array of real numbers: ``values`` are arrays by the tensors, and numbers by the sizes, of an expression.

    Raises OperandError for what is no array of finite numbers, and for tensors and sizes without a value.
    """
    if values is not None and not isinstance(values, Mapping):
        raise OperandError(f"{what}: values are arrays and numbers by what they are for, not {described(values)}")
    array = _evaluated(what, x, values or {}) if isinstance(x, Tensor) else _as_array(what, x)
    if array.dtype.kind not in "fiub" or not array.size or not np.isfinite(array).all():
        raise OperandError(f"{what} draws finite numbers, not {described(x)}")
    return array.astype(float)


def numbers_of(what: str, keyword: str, given: Any, positive: bool = False) -> list[float]:
    """Finite numbers, one at least, that are given as a list or alone."""
    try:
        found = [float(x) for x in each_of(given.tolist() if isinstance(given, np.ndarray) else given)]
    except (TypeError, ValueError, OverflowError):
        found = []
    if not found or not np.isfinite(found).all() or (positive and min(found) <= 0):
        kind = "positive numbers" if positive else "finite numbers"
        raise OperandError(f"{what}: {keyword} are {kind}, one at least, not {described(given)}")
    return found


def number_of(what: str, keyword: str, given: Any, positive: bool = False) -> float:
    """A finite number."""
    found = numbers_of(what, keyword, given, positive)
    if len(found) > 1:
        raise OperandError(f"{what}: {keyword} is one number, not {described(given)}")
    return found[0]


def captioned(what: str, caption: Any) -> Words:
    """What stands below a picture."""
    return (caption,) if text_of(what, "caption", caption) else ()


def _as_array(what: str, x: Any) -> np.ndarray:
    try:
        return np.asarray(x)
    except (TypeError, ValueError):
        raise OperandError(f"{what} draws an array of numbers or an expression, not {described(x)}") from None


def _evaluated(what: str, x: Tensor, values: Mapping[Any, Any]) -> np.ndarray:
    variables = [y for y in topological([x]) if y.op is variable]
    missing = [y for y in variables if y not in values]
    if missing:
        raise OperandError(f"{what} draws {x.brief()} in numbers: values= has none for {missing[0].brief()}")
    numbers = {str(s): y for s, y in values.items() if isinstance(s, sympy.Symbol)}
    return np.asarray(lambdify(variables, x)(*(values[y] for y in variables), **numbers))
