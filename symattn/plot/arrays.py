"""What is drawn as arrays: those that are given, or the values of expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy

from ..codegen import lambdify
from ..core.node import Tensor, topological
from ..errors import OperandError, described
from ..ops.leaves import variable


def array_of(what: str, x: Any, values: Mapping[Any, Any]) -> np.ndarray:
    """An array of real numbers: ``values`` are arrays by the tensors, and numbers by the sizes, of an expression.

    Raises OperandError for what is no array of finite numbers, and for tensors and sizes without a value.
    """
    array = _evaluated(what, x, values) if isinstance(x, Tensor) else _as_array(what, x)
    if array.dtype.kind not in "fiub" or not array.size or not np.isfinite(array).all():
        raise OperandError(f"{what} draws finite numbers, not {described(x)}")
    return array.astype(float)


def _as_array(what: str, x: Any) -> np.ndarray:
    try:
        return np.asarray(x)
    except ValueError:
        raise OperandError(f"{what} draws an array of numbers or an expression, not {described(x)}") from None


def _evaluated(what: str, x: Tensor, values: Mapping[Any, Any]) -> np.ndarray:
    variables = [y for y in topological([x]) if y.op is variable]
    missing = [y for y in variables if y not in values]
    if missing:
        raise OperandError(f"{what} draws {x.brief()} in numbers: values= has none for {missing[0].brief()}")
    numbers = {str(s): y for s, y in values.items() if isinstance(s, sympy.Symbol)}
    return np.asarray(lambdify(variables, x)(*(values[y] for y in variables), **numbers))
