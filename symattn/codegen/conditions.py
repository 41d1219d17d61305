"""What sizes must satisfy when a function runs and could not be decided before: slices inside, sizes whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import sympy

from ..core.node import Tensor
from ..ops.gather import tile_op
from ..ops.index import edges, embed_op, index_op, items_read, lies_inside
from ..ops.layout import repeat_op


class Condition(NamedTuple):
    """An expression that must be a whole number >= 0, and which part of which tensor asks for it."""

    expression: Any
    part: str
    tensor: Tensor
    asked: str

    def __str__(self) -> str:
        return f"{self.part} {self.tensor.brief()} must {self.asked}"  # of a large graph the text is slow to find


def size_conditions(nodes: Iterable[Tensor]) -> list[Condition]:
    """The conditions on sizes below some nodes, without those that always hold."""
    found: dict[Any, Condition] = {}
    for node in nodes:
        for condition in (*_of_sizes(node), *_of_edges(node)):
            expression = sympy.expand(condition.expression)
            if not (expression.is_nonnegative and expression.is_integer):
                found.setdefault(expression, condition._replace(expression=expression))
    return list(found.values())


def _of_sizes(node: Tensor) -> Iterator[Condition]:
    for size in node.shape:
        if not (size.is_Symbol or size.is_Integer):
            yield Condition(size - 1, f"the size {size} of", node, "be a positive whole number")
    if node.op is repeat_op or node.op is tile_op:
        times = node.params["times"]
        yield Condition(times - 1, f"the times {times} of", node, "be a positive whole number")


def _of_edges(node: Tensor) -> Iterator[Condition]:
    """That the first and the last place that an index reads lie inside."""
    if node.op is not index_op and node.op is not embed_op:
        return
    for item, size in items_read(node.inputs[0] if node.op is index_op else node, node.params["items"]):
        if lies_inside(item, size):
            continue
        for place in edges(item):
            for room in (place, size - 1 - place):
                yield Condition(room, f"index {sympy.expand(place)} in", node, f"lie inside the size {size}")
