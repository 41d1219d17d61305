"""Values by the entry formulas alone: slow, and independent of the NumPy that it is held against."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy

from ..core.node import Tensor
from ..core.sizes import at_sizes
from ..errors import NoRuleError
from ..ops.leaves import computed, cotangent_op, definition, let_op, variable
from ..ops.template import entries_of
from ..recurrence.body import loop_of
from ..recurrence.record import scan_op
from ..scalars.evaluate import inverted
from ..scalars.functions import FUNCTIONS, ScalarFunction


def values(
    roots: Sequence[Tensor],
    arrays: Mapping[Tensor, Any],
    symbols: Mapping[sympy.Symbol, Any],
    known: Mapping[Tensor, np.ndarray] = MappingProxyType({}),
) -> dict[Tensor, np.ndarray]:
    """The array of every node below the roots, each entry from its formula and the arrays of its inputs.

    What is ``known`` of them is not worked out again.
    """
    found = dict(known)
    for node in computed(roots):
        if node in found:
            continue
        if node.op in (let_op, cotangent_op):
            found[node] = found[definition(node)]
        else:
            made = _recurrence if node.op is scan_op else _value
            found[node] = np.asarray(arrays[node]) if node.op is variable else made(node, found, symbols)
    return found


def _recurrence(node: Tensor, found: Mapping[Tensor, np.ndarray], symbols: Mapping[sympy.Symbol, Any]) -> np.ndarray:
    """A value of a recurrence, by its step at one place after the other."""
    loop, (what, k) = loop_of(node), node.params["take"]
    states, rows = [found[x] for x in loop.first], []
    for t in range(int(at_sizes(loop.length, symbols))):
        here = [*states, *(found[x][t] for x in loop.sequences), *(found[x] for x in loop.given)]
        one = values(loop.step.roots, {}, symbols, dict(zip(loop.step.leaves, map(np.asarray, here), strict=True)))
        states = [one[x] for x in loop.step.after]
        rows.append([one[x] for x in loop.step.outputs])
    return states[k] if what == "final" else np.stack([row[k] for row in rows])


def _value(node: Tensor, found: Mapping[Tensor, np.ndarray], symbols: Mapping[sympy.Symbol, Any]) -> np.ndarray:
    """One node's array: its entry formula, with its inputs read as arrays, at every index."""
    entries = entries_of(node)
    arguments = [*(Array(found[x]) for x in node.inputs), *(symbols[s] for s in entries.symbols)]
    array = entries.program.function(numbers())(*arguments)
    shape = np.add(max(array), 1) if node.rank else ()
    return np.array(list(array.values())).reshape(shape)


class Array(dict[tuple[int, ...], Any]):
    """An array by its indices, truth as 0 and 1; it has no entry elsewhere."""

    def __init__(self, array: np.ndarray) -> None:
        super().__init__(np.ndenumerate(array.astype(int) if array.dtype == bool else array))
        self.shape = array.shape

    def __missing__(self, at: tuple[int, ...]) -> Any:
        place = ", ".join(map(str, at))
        raise IndexError(f"the entry formula reads at the index {place} of an array of shape {self.shape}")


def numbers() -> dict[str, Any]:
    """The arithmetic of Python's and NumPy's numbers, complex ones among them: an order is that of real parts."""
    return {
        **{f.ball or f.name: _evaluated(f) for f in FUNCTIONS.values() if f.arity == 1},
        "less": lambda a, b: a.real < b.real,
        "at_most": lambda a, b: a.real <= b.real,
        "equal": operator.eq,
        "negation": operator.not_,
        "conjunction": lambda *parts: all(parts),
        "disjunction": lambda *parts: any(parts),
        "choose": lambda condition, a, b: a() if condition else b(),
        "number": float,
        "whole": _whole,
        "sum": sum,
        "largest": max,
        "smallest": min,
        "power": lambda base, exponent: (np.float64(base) if isinstance(base, (int, np.integer)) else base) ** exponent,
        "remainder": lambda a, b: a - b * np.floor(a / b),
        "delta": lambda a, b: int(a == b),
        "atan2": np.arctan2,
        "held": np.real,  # no complex step passes
        "pi": lambda: math.pi,
        "minus_infinity": -math.inf,
        "inverse_entry": lambda parts, matrix, row, column: _inverse(matrix())[row][column],
        "unknown": _unknown,
        "unknown_of_row": _unknown,
    }


def _evaluated(function: ScalarFunction) -> Callable[[Any], Any]:
    """A scalar function of numbers; where NumPy lacks it, no complex step passes."""
    if function.value is not None:
        return function.value
    name = function.spelled("numpy")
    if not hasattr(np, name):
        return _of_reals(getattr(math, function.math or function.name))

    def of(x: Any) -> Any:
        with np.errstate(divide="ignore"):  # log(0) is -inf: of the sum of an empty row, for example
            return getattr(np, name)(x)

    return of


def _of_reals(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def of(x: Any) -> Any:
        if isinstance(x, complex):
            raise TypeError(f"{call.__name__} of a complex number")
        return call(x)

    return of


def _whole(value: Any) -> int:
    if value != int(value):
        raise ValueError(f"the entry formula reads at the index {value}")
    return int(value)


def _unknown(name: str, *arguments: Any) -> Any:
    raise NoRuleError(f"no value is known for {name}, an unknown function")


def _inverse(matrix: list[list[Any]]) -> list[list[Any]]:
    return inverted(matrix, lambda column: int(np.argmax(np.abs(column))), lambda x: 1 / x)
