"""Whether tensors of one shape agree in numbers, computed by ``lambdify``: the judge of what the prover says.

It shares nothing with the prover: float64 arrays from several seeds, that satisfy what was declared, at sizes that
differ from one another, at sizes that are all alike, and at sizes 1. Entries that are not finite on one side are
outside of its domain and are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import sympy

import symattn as sa
from symattn.codegen.sampling import generic_array, generic_sizes
from symattn.core.node import rebuild, topological
from symattn.ops.leaves import variable

TOLERANCE = 1e-7
POINTS = 8
_ALIKE = {3: 3, 5: 1, 6: 2}  # trials at which all sizes are one number


def known(x: sa.Tensor) -> sa.Tensor:
    """Functions known only by name, replaced by positive ones that are no special case, one for each name."""
    while opaque := [y for y in topological([x]) if y.op.name == "unknown"]:
        inside, name = opaque[0].inputs[0], opaque[0].params["function"]
        slope = sympy.Rational(1 + sum(map(ord, name)) % 7, 3)
        value = sa.exp(sa.sin(slope * inside)) + slope * inside**2
        if opaque[0].params["rowwise"]:  # one that treats no two places of a row alike
            value = sa.softmax(slope * inside) + sa.from_index(inside.shape[-1:], lambda i: i + 1) * value
        x = rebuild([x], {opaque[0]: value})[0]
    return x


def size_choices(roots: Sequence[sa.Tensor], count: int) -> Iterator[dict[sympy.Symbol, int]]:
    """Sizes to try: all apart, all alike, all 1, where every composite size is a positive whole number."""
    nodes = topological(roots)
    symbols = sorted({s for x in nodes for s in x.own_symbols if s.is_integer and s.is_positive}, key=str)
    composite = [n for x in nodes for n in x.shape if not (n.is_Symbol or n.is_Integer)]
    for trial in range(count):
        alike = _ALIKE.get(trial)
        sizes = generic_sizes(roots, trial) if alike is None else dict.fromkeys(symbols, alike)
        if all((n := size.subs(sizes)).is_Integer and n > 0 for size in composite):
            yield sizes


def index_limits(nodes: Sequence[sa.Tensor], sizes: Mapping[Any, int]) -> dict[sa.Tensor, int]:
    """The size of the axis that each integer tensor indexes, the smallest if there are several."""
    limits: dict[sa.Tensor, int] = {}
    for node in nodes:
        if node.op.name == "take":
            size = int(node.inputs[0].shape[node.params["axis"]].subs(sizes))
            for x in topological([node.inputs[1]]):
                limits[x] = min(size, limits.get(x, size))
    return limits


def arrays_for(
    tensors: Sequence[sa.Tensor], limits: Mapping[sa.Tensor, int], sizes: Mapping[Any, int], rng: np.random.Generator
) -> list[Any]:
    """Arrays that satisfy what was declared."""
    arrays = []
    for x in tensors:
        shape = tuple(int(size.subs(sizes)) for size in x.shape)
        arrays.append(_array(x, shape, limits.get(x, 3), rng))
    return arrays


def _array(x: sa.Tensor, shape: tuple[int, ...], limit: int, rng: np.random.Generator) -> Any:
    declared = set(x.params["hypotheses"])
    if x.kind == "integer":
        return rng.integers(0, limit, shape)
    if {"permutation", "orthogonal"} & declared:
        each = [_square(declared, shape[-1], rng) for _ in range(math.prod(shape[:-2]))]
        return np.array(each).reshape(shape)
    array = generic_array(x, shape, rng)
    if x.kind == "binary":  # no row and no column is empty
        array[..., :1] = True
        if x.rank > 1:
            array[..., :1, :] = True
    elif "symmetric" in declared:
        array = array + np.swapaxes(array, -1, -2)
    return array


def _square(declared: set[str], size: int, rng: np.random.Generator) -> Any:
    if "permutation" in declared:
        return np.eye(size)[rng.permutation(size)]
    turned = np.linalg.qr(rng.normal(size=(size, size)))[0]
    signs = np.diag(rng.choice([-1.0, 1.0], size))
    return turned @ signs @ turned.T if "symmetric" in declared else turned


def scalars_for(symbols: Sequence[sympy.Symbol], rng: np.random.Generator) -> list[float]:
    """Values of either sign for scalar symbols, as their assumptions allow; whole numbers where they ask for them."""
    values = []
    for s in symbols:
        value = float(rng.integers(1, 4)) if s.is_integer else float(rng.uniform(0.5, 1.5))
        free = s.is_positive is None and s.is_nonnegative is None
        values.append(-value if s.is_negative or (free and rng.random() < 0.5) else value)
    return values


def evaluations(roots: Sequence[sa.Tensor], count: int = POINTS, first: int = 0) -> Iterator[list[np.ndarray]]:
    """The arrays of the roots at one point after another."""
    roots = [known(root) for root in roots]
    nodes = topological(roots)
    tensors = [x for x in nodes if x.op is variable]
    used = {s for root in roots for s in root.free_symbols}
    scalars = sorted((s for s in used if not (s.is_integer and s.is_positive)), key=str)
    compute = sa.lambdify([*tensors, *scalars], list(roots))
    for seed, sizes in enumerate(size_choices(roots, count), first):
        rng = np.random.default_rng(seed)
        values = scalars_for(scalars, rng)
        arrays = arrays_for(tensors, index_limits(nodes, sizes), sizes, rng)
        keywords = {key.name: sizes[key] for key in compute.takes.keywords}
        try:
            with np.errstate(all="ignore"):
                results = compute(*arrays, *values, **keywords)
        except (sa.EvaluationError, np.linalg.LinAlgError):  # no such index at these sizes, or a singular matrix
            continue
        listed = results if isinstance(results, tuple) else (results,)
        yield [np.asarray(y, dtype=float) for y in listed]


def gap(left: np.ndarray, right: np.ndarray) -> float:
    """The largest difference of two arrays, against their size, where both are finite."""
    both = np.isfinite(left) & np.isfinite(right)
    if not both.any():
        return 0.0
    a, b = left[both], right[both]
    return float(np.abs(a - b).max() / max(1.0, np.abs(b).max()))


def largest_gap(left: sa.Tensor, right: sa.Tensor, count: int = POINTS) -> float:
    """The largest difference of two tensors over all points."""
    return max((gap(a, b) for a, b in evaluations([left, right], count)), default=0.0)


__all__ = ["POINTS", "TOLERANCE", "evaluations", "gap", "known", "largest_gap"]
