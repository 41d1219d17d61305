"""Holds generated code against entry formulas, and gradients against finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.naming import in_python
from ..core.node import Tensor, rebuild
from ..errors import EvaluationError
from ..ops.leaves import computed, constant, cotangent_op, variable
from ..ops.opaque import stop_gradient_op
from .compiled import Compiled
from .function import NumPyFunction
from .reference import values
from .sampling import generic_arrays, generic_scalars, generic_sizes, stops_within

_STEP = 1e-5
_EXACT, _DIFFERENCED = 1e-9, 1e-5


def check_function(f: Compiled, seeds: Sequence[int] = (0, 1)) -> str:
    """Compare at two generic size assignments; return what agreed, raise EvaluationError at the first difference."""
    lines = []
    for seed in seeds:
        point = sample_point(f.outputs, f.takes.tensors, seed)
        got = point.called(f)
        lines += _against_entries(f, got, point)
        lines += _against_differences(f, got, point)
    return "\n".join(lines)


class Point:
    """Sizes, scalars and arrays at which things are compared."""

    def __init__(self, sizes: Any, scalars: Any, arrays: Mapping[Tensor, Any]) -> None:
        self.sizes, self.scalars, self.arrays = sizes, scalars, arrays
        self.known = {**sizes, **scalars}
        self._found: dict[Tensor, np.ndarray] = {}

    def values(self, roots: Sequence[Tensor]) -> Mapping[Tensor, np.ndarray]:
        """The arrays of nodes by their entry formulas, each worked out once."""
        self._found = values(roots, self.arrays, self.known, self._found)
        return self._found

    def called(self, f: Compiled) -> list[np.ndarray]:
        """What compiled code gives, output by output."""
        arguments = [self.arrays[a] if isinstance(a, Tensor) else self.known[a] for a in f.takes.arguments]
        result = f.on_numpy(*arguments, **self.keywords(f))
        return list(map(np.asarray, result if f.several else (result,)))

    def keywords(self, f: Compiled) -> dict[str, Any]:
        """The sizes and scalars that are not read off arrays."""
        return {in_python(s.name): self.known[s] for s in f.takes.keywords}

    def with_arrays(self, arrays: Mapping[Tensor, Any]) -> Point:
        """The same point with other arrays, or with more of them."""
        return Point(self.sizes, self.scalars, {**self.arrays, **arrays})

    def __str__(self) -> str:
        return ", ".join(f"{s} = {v}" for s, v in self.sizes.items()) or "no sizes"


def sample_point(outputs: Sequence[Tensor], tensors: Sequence[Tensor], seed: int) -> Point:
    """A generic point at which every output is finite; positive entries are tried where normal ones are not."""
    roots = [*outputs, *tensors]
    for positive in (False, True):
        rng = np.random.default_rng(seed)
        sizes = generic_sizes(roots, seed)
        point = Point(sizes, generic_scalars(roots, rng), generic_arrays(tensors, sizes, rng, positive))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = point.values(outputs)
        if all(np.isfinite(found[y]).all() for y in outputs):
            return point
    raise EvaluationError("no generic point was found at which all outputs are finite")


def _label(y: Tensor, k: int) -> str:
    return y.name or f"output {k}"


def compare(what: str, got: np.ndarray, want: np.ndarray, tolerance: float, where: object) -> float:
    """The largest error relative to the largest entry; EvaluationError beyond the tolerance or if not finite."""
    if got.shape != want.shape:
        raise EvaluationError(f"{what} at {where}: shape {got.shape}, not {want.shape}")
    if not (np.isfinite(got).all() and np.isfinite(want).all()):
        raise EvaluationError(f"{what} at {where}: some entries are not finite")
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    error = np.abs(got.astype(float) - want) / scale
    worst = float(error.max(initial=0))
    if worst > tolerance:
        place = tuple(int(i) for i in np.argwhere(error > tolerance)[0])
        raise EvaluationError(
            f"{what} at {where}: entry {list(place)} is {got[place]:.12g}, but {want[place]:.12g} is right "
            f"(relative error {worst:.2g}, tolerance {tolerance:.0e})"
        )
    return worst


def _against_entries(f: Compiled, got: Sequence[np.ndarray], point: Point) -> list[str]:
    found = point.values(f.outputs)
    lines = []
    for k, y in enumerate(f.outputs):
        error = compare(_label(y, k), got[k], found[y], _EXACT, point)
        lines.append(f"{_label(y, k)}: code equals entries at {point}, error {error:.1e}")
    return lines


def _against_differences(f: Compiled, got: Sequence[np.ndarray], point: Point) -> list[str]:
    lines = []
    for k, y in enumerate(f.outputs):
        if y.op is cotangent_op:
            want = difference_gradient(y, point)
            if want is not None:
                error = compare(_label(y, k), got[k], want, _DIFFERENCED, point)
                lines.append(f"{_label(y, k)}: gradient equals central differences at {point}, error {error:.1e}")
    return lines


def difference_gradient(gradient: Tensor, point: Point) -> np.ndarray | None:
    """The gradient by central differences of the forward pass; None for a batch of cotangents and stops in loops."""
    of, pairs = gradient.inputs[1], gradient.inputs[2:]
    outputs, cotangents = list(pairs[::2]), list(pairs[1::2])
    if any(c.rank != y.rank for y, c in zip(outputs, cotangents, strict=True)):
        return None
    if any(map(stops_within, computed(outputs))):
        return None
    found = point.values([*cotangents, *outputs, of])
    outputs, point = _held(outputs, found, point)  # what gradients do not pass through does not move
    weights = [found[c] for c in cotangents]
    if of.op is constant:  # a scalar symbol: moved as a keyword
        symbol, f = of.params["formula"], _forward(outputs)
        sides = [{**point.scalars, symbol: point.scalars[symbol] + h} for h in (_STEP, -_STEP)]
        return np.asarray(_slope(f, weights, [Point(point.sizes, scalars, point.arrays) for scalars in sides]))
    moved = of if of.op is variable else variable(name="moved", shape=of.shape, hypotheses=())
    f, at = _forward(rebuild(outputs, {of: moved})), np.array(found[of], dtype=float)
    slope = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[place] = _STEP
        slope[place] = _slope(f, weights, [point.with_arrays({moved: at + side}) for side in (step, -step)])
    return slope


def _held(outputs: list[Tensor], found: Mapping[Tensor, Any], point: Point) -> tuple[list[Tensor], Point]:
    """The outputs with every stopped gradient at the value that it has at the point."""
    stops = [x for x in computed(outputs) if x.op is stop_gradient_op]
    held = {x: variable(name=f"held{k}", shape=x.shape, hypotheses=()) for k, x in enumerate(stops)}
    return rebuild(outputs, held), point.with_arrays({new: found[x] for x, new in held.items()})


def _forward(outputs: Sequence[Tensor]) -> NumPyFunction:
    return NumPyFunction([x for x in computed(outputs) if x.op is variable], outputs, True)


def _slope(f: NumPyFunction, weights: Sequence[np.ndarray], sides: Sequence[Point]) -> Any:
    """The difference of the weighted outputs at two points, over the step between them."""
    up, down = map(Point.called, sides, (f, f))
    return sum((c * (a - b)).sum() for c, a, b in zip(weights, up, down, strict=True)) / (2 * _STEP)
