"""What sizes must satisfy when a function runs and could not be decided before: slices inside, sizes whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import sympy

from ..ops.gather import tile_op
from ..ops.index import NEW, embed_op, index_op
from ..ops.layout import repeat_op
from ..sizes import Shape
from ..tensor import Tensor

Condition = tuple[Any, str]  # an expression that must be a whole number >= 0, and the sentence that says so


def size_conditions(nodes: Iterable[Tensor]) -> list[Condition]:
    """The conditions on sizes below some nodes, without those that always hold."""
    found: dict[Any, str] = {}
    for node in nodes:
        for size in node.shape:
            if not (size.is_Symbol or size.is_Integer):
                _keep(found, size - 1, f"the size {size} of {node.brief()} must be a positive whole number")
        if node.op is repeat_op or node.op is tile_op:
            times = node.params["times"]
            _keep(found, times - 1, f"the times {times} of {node.brief()} must be a positive whole number")
        if node.op is index_op or node.op is embed_op:
            for edge, size, text in _edges(node):
                _keep(found, edge, f"{text} must lie inside the size {size}")
                _keep(found, size - 1 - edge, f"{text} must lie inside the size {size}")
    return list(found.items())


def _keep(found: dict[Any, str], expression: Any, sentence: str) -> None:
    expression = sympy.expand(expression)
    if not (expression.is_nonnegative and expression.is_integer):
        found.setdefault(expression, sentence)


def _edges(node: Tensor) -> Iterator[tuple[Any, Any, str]]:
    """The first and the last place that an index reads, with the size of the axis."""
    items = node.params["items"]
    x = node.inputs[0] if node.op is index_op else node
    count = sum(item != NEW for item in items)
    core: Shape = x.shape[x.rank - count :]
    sizes = iter(core)
    for item in items:
        if item == NEW:
            continue
        size = next(sizes)
        places = [item[1]] if item[0] == "at" else [item[1], item[1] + item[2] * (item[3] - 1)]
        for place in places:
            yield place, size, f"index {sympy.expand(place)} in {node.brief()}"
