"""The lines of a derivation in numbers: arrays that go in, and the values of what is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from ..codegen import lambdify
from ..codegen.check import Point
from ..core.boxes import Box, Matrix, Number, Script, Sign, juxtaposed, row
from ..core.node import Tensor, topological
from ..errors import OperandError, described
from ..ops.leaves import computed, is_named, variable
from .parts import Example, Line

if TYPE_CHECKING:
    from .derivation import Derivation

_SMALL = 5e-4  # what three digits do not show
_MOST = 8  # entries of a row, or rows, that are shown


def example(
    derivation: Derivation, values: Mapping[Any, Any], sizes: Mapping[Any, int], show: Sequence[Any]
) -> Example:
    """What goes in and what comes out. Raises OperandError for a value of what does not occur, and for none at all."""
    if not isinstance(values, Mapping) or not isinstance(sizes, Mapping):
        raise OperandError("example takes values and sizes by what they are for: {Q: [[1, 0]], T: 2}")
    shown = list(show) or [line.left for line in derivation.steps if isinstance(line, Line) and line.name is not None]
    if not shown:
        raise OperandError("example shows what lines define: there are none yet")
    for x in shown:
        if not isinstance(x, Tensor) or not is_named(x):
            raise OperandError(f"example shows named tensors, not {described(x)}")
    order = computed(shown)
    variables = [x for x in order if x.op is variable]
    symbols = {s for x in topological(shown) for s in x.own_symbols}
    arrays = _arrays(values, variables)
    numbers = {s: v for s, v in {**sizes, **values}.items() if isinstance(s, sympy.Symbol)}
    if unknown := [s for s in numbers if s not in symbols]:
        raise OperandError(f"example has a value for {unknown[0]}, which does not occur in what is shown")
    if wrong := [f"{s} = {described(n)}" for s, n in sizes.items() if not isinstance(n, int) or n < 1]:
        raise OperandError(f"example has sizes that are whole numbers from 1: not {wrong[0]}")
    bound = _sizes(arrays, dict(sizes))
    made = {x: _made_up(x, bound, seed) for seed, x in enumerate(variables) if x not in arrays}
    arrays |= made
    scalars = {s: v for s, v in numbers.items() if not s.is_integer}
    if missing := [s for s in symbols if s not in scalars and s not in bound]:
        raise OperandError(f"example has no value for {missing[0]}: give it in values=")
    point = Point(bound, {s: float(v) for s, v in scalars.items()}, arrays)
    found = zip(shown, point.called(lambdify(list(arrays), shown)), strict=True)
    results = {x: y for x, y in found if x not in arrays}
    return Example({**arrays, **results}, bound, scalars, tuple(results))


def _arrays(values: Mapping[Any, Any], variables: Sequence[Tensor]) -> dict[Tensor, np.ndarray]:
    found = dict[Tensor, np.ndarray]()
    for x, value in values.items():
        if isinstance(x, sympy.Symbol):
            continue
        if x not in variables:
            known = ", ".join(str(y.name) for y in variables)
            raise OperandError(f"example has values for {described(x)}; what is shown needs those of {known}")
        try:
            found[x] = np.array(value, dtype=float)  # its own: the caller's may change
        except (TypeError, ValueError):
            raise OperandError(
                f"example has no array of real numbers for {x.brief()}, but {described(value)}"
            ) from None
        if found[x].ndim != x.rank:
            raise OperandError(f"example has an array of {found[x].ndim} axes for {x.brief()}")
    return found


def _sizes(arrays: Mapping[Tensor, np.ndarray], sizes: dict[Any, int]) -> dict[Any, int]:
    """The sizes, as far as arrays tell them."""
    bound = dict(sizes)
    for x, array in arrays.items():
        for size, n in zip(x.shape, array.shape, strict=True):
            if size.is_Symbol and bound.setdefault(size, n) != n:
                raise OperandError(f"example: {size} is {bound[size]}, but {x.brief()} has {n} there")
    return bound


def _made_up(x: Tensor, bound: Mapping[Any, int], seed: int) -> np.ndarray:
    """Small whole numbers, which a reader can follow."""
    shape = [size.subs(bound) for size in x.shape]
    if free := [size for size in shape if not size.is_Integer]:
        raise OperandError(f"example has no values for {x.brief()}, and no size for {free[0]}: give values= or sizes=")
    if x.params["hypotheses"]:
        raise OperandError(f"example has no values for {x.brief()}, which is {', '.join(x.params['hypotheses'])}")
    return np.random.default_rng(seed).integers(-1, 3, size=[int(n) for n in shape]).astype(float)


# --- as boxes ---


def array_box(array: np.ndarray) -> Box:
    """An array of two axes at most as a matrix, a vector as a column, to three digits; ``…`` for what is too large."""
    whole = bool(np.all(array == np.round(array)))
    if array.ndim == 0:
        return _number(float(array), whole)
    if array.ndim > 2 or max(array.shape) > _MOST:
        return Sign("…")
    cells = array[:, None] if array.ndim == 1 else array
    return Matrix(tuple(tuple(_number(float(x), whole) for x in line) for line in cells))


def _number(x: float, whole: bool) -> Box:
    if x == 0 or whole or not np.isfinite(x):
        return _signed(f"{x:g}".replace("inf", "∞"))
    if abs(x) >= _SMALL:
        return _signed(f"{x:.3f}")
    digits, _, exponent = f"{x:.0e}".partition("e")
    power = Script(Number("10"), above=_signed(str(int(exponent))))
    return juxtaposed(_signed(digits), Sign("⋅", "product"), power)


def _signed(digits: str) -> Box:
    return row(Sign("−", "prefix"), Number(digits[1:])) if digits.startswith("-") else Number(digits)
