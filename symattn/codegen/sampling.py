"""Generic numbers for checks: distinct sizes, none of them 1, and arrays that satisfy what was declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy

from ..core.node import Graph, Tensor, topological
from ..errors import EvaluationError
from ..ops.domain import size_symbols
from ..ops.leaves import variable
from ..ops.opaque import stop_gradient_op
from .call.takes import size_conditions

_VALUES = 11  # from 2 on, that are tried while they suffice


def generic_sizes(
    roots: Sequence[Tensor],
    seed: int = 0,
    trials: int = 4000,
    fixed: Mapping[sympy.Symbol, int] | None = None,
    relations: Sequence[Any] = (),
) -> dict[sympy.Symbol, int]:
    """Distinct small values from 2 up for the size symbols, with which all sizes are whole and all slices inside.

    Some sizes may be fixed, and relations hold at the values. Raises EvaluationError if none are found: the sizes
    then contradict each other.
    """
    order, known = topological(roots), dict(fixed or {})
    symbols = sorted(size_symbols(order), key=str)
    free = [s for s in symbols if s not in known]
    conditions = [condition.expression for condition in size_conditions(order)]
    rng = np.random.default_rng(seed)
    for trial in range(trials if free else 1):
        top = min(_VALUES, len(free) + 2 + trial * _VALUES // trials)
        chosen = 2 + rng.permutation(max(top, len(free)) if len(free) <= _VALUES else len(free) + 2)[: len(free)]
        drawn = {**known, **{s: int(v) for s, v in zip(free, chosen, strict=True)}}
        sizes = {s: drawn[s] for s in symbols}
        if _fit(sizes, conditions) and all(relation.subs(sizes) == sympy.true for relation in relations):
            return sizes
    raise EvaluationError(f"no generic values were found for the sizes {', '.join(map(str, symbols))}")


def _fit(sizes: Mapping[sympy.Symbol, int], conditions: Sequence[Any]) -> bool:
    return all((value := condition.subs(sizes)).is_Integer and value >= 0 for condition in conditions)


def generic_scalars(roots: Sequence[Tensor], rng: np.random.Generator) -> dict[sympy.Symbol, Any]:
    """Values for the scalar symbols that are no sizes, as their assumptions ask."""
    order = topological(roots)
    symbols = {s for node in order for s in node.own_symbols}.difference(size_symbols(order))
    return {s: _generic_scalar(s, rng) for s in sorted(symbols, key=str)}


def _generic_scalar(s: sympy.Symbol, rng: np.random.Generator) -> Any:
    value: Any = int(rng.integers(1, 4)) if s.is_integer else float(rng.uniform(0.5, 1.5))
    return -value if s.is_negative else value


def generic_array(x: Tensor, shape: tuple[int, ...], rng: np.random.Generator, positive: bool = False) -> Any:
    """A random float64 array that satisfies the tensor's hypotheses."""
    declared = x.params["hypotheses"]
    if "binary" in declared:
        return rng.random(shape) < 0.6
    if "integer" in declared:
        return rng.integers(0, 2, shape)
    if "permutation" in declared:
        return np.eye(shape[-1])[rng.permutation(shape[-1])] * np.ones(shape)
    if "orthogonal" in declared:
        return np.linalg.qr(rng.normal(size=shape))[0]
    values = rng.uniform(0.5, 1.5, shape) if positive or "positive" in declared else rng.normal(size=shape)
    if "invertible" in declared:
        return values + 3 * np.eye(shape[-1])
    return values + np.swapaxes(values, -1, -2) if "symmetric" in declared else values


def generic_arrays(
    tensors: Iterable[Tensor], sizes: dict[sympy.Symbol, int], rng: np.random.Generator, positive: bool = False
) -> dict[Tensor, Any]:
    """An array for each named tensor."""
    return {
        x: generic_array(x, tuple(int(size.subs(sizes)) for size in x.shape), rng, positive)
        for x in tensors
        if x.op is variable
    }


def stops_within(x: Tensor) -> bool:
    """Whether the step of a loop stops a gradient, at another value in each step."""
    return any(isinstance(g, Graph) and stop_gradient_op.nonsmooth in g.nonsmooth for g in x.params.values())
