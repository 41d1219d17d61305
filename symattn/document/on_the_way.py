"""What a counterexample shows between its arrays and the values that differ: scores, weights, and what has a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..codegen import lambdify
from ..codegen.check import Point
from ..core.boxes import Box
from ..core.node import Tensor, topological
from ..errors import SymattnError
from ..ops.leaves import let_op, variable
from ..ops.rows import softmax_op
from ..proof.claims import Claim
from ..proof.refute.counterexample import Counterexample
from .exactly import exact_values
from .numbers import array_equation

_MOST, _ENTRIES = 4, 9  # of one side, and of one array


def on_the_way(claim: Any, found: Counterexample, box: Callable[[Tensor], Box]) -> tuple[list[Box], list[Box]]:
    """For each side of a claim, equations for what is worked out last on the way to it; none where that is too large.

    What both sides have stands with the first.
    """
    if not isinstance(claim, Claim) or found.functions or found.twin is not None:
        return [], []
    left, right = ([*_steps(side)][-_MOST:] for side in claim.sides)
    shown = list(dict.fromkeys((*left, *right)))
    point = Point(found.sizes, {s: float(v) for s, v in found.scalars.items()}, found.arrays_numpy())
    try:
        with np.errstate(all="ignore"):
            values = dict(zip(shown, point.called(lambdify(list(point.arrays), shown)), strict=True)) if shown else {}
    except SymattnError:  # what has no code is not shown
        return [], []
    if any(y.size > _ENTRIES or y.ndim > 2 for y in values.values()):
        return [], []
    exact = exact_values(shown, found.sizes, found.scalars, point.arrays)
    made = {x: array_equation(box(x), y, exact.get(x, {})) for x, y in values.items()}
    return [made[x] for x in left], [made[x] for x in right if x not in left]


def _steps(side: Tensor) -> Iterator[Tensor]:
    """Softmaxes in a side, what they are of, and named tensors, each after what it is computed from."""
    order = topological([side])
    named = {x.inputs[0] for x in order if x.op is let_op}
    arguments = {x.inputs[0] for x in order if x.op is softmax_op}
    for x in order:
        is_step = x.op in (let_op, softmax_op) or x in arguments
        if is_step and x not in named and x.rank and x.op is not variable and _is_computed(x):
            yield x


def _is_computed(x: Tensor) -> bool:
    return any(y.op is variable for y in topological([x]))
