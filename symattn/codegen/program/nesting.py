"""Loops inside of loops: heads one by one, and in each of them rows in blocks.

The body of a loop is a graph, so it is planned as the whole was. That is done where one block is more than near memory
holds: of an axis that matrix products go along, such as heads, each place is then a block of its own, and is cut once
more; a block of rows of all heads is cut along such an axis alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection

from ...core.node import Tensor
from .body import Body
from .columns import marks
from .extent import Extent
from .masks import columns_of
from .schedule import Loop, Schedule

NEAR = 1 << 18  # entries that near memory holds
LEAST_ROWS = 128  # of a block: below that, matrix products wait for memory
_MATRIX = -2  # axes before this one are those that products of matrices go along


def largest_of(loop: Loop, extent: Extent) -> Tensor:
    """The node of a loop that has most entries at one place of the axis."""
    return max(loop.axes, key=lambda x: extent.of(x) // extent.size(x.shape[loop.axes[x]]))


def is_by_places(loop: Loop, largest: Tensor) -> bool:
    """Whether a loop goes along an axis of several matrices, each of which may be a block."""
    return loop.axes[largest] < _MATRIX


class Nesting:
    """The bodies of loops; ``known`` is what no argument makes, and masks among it may let columns be skipped."""

    def __init__(self, known: Collection[Tensor], kept: int, skips: bool) -> None:
        self.known, self.kept, self.skips = known, kept, skips
        self.numbers = itertools.count()

    def body(self, loop: Loop, extent: Extent, depth: int = 0, in_rows: bool = False) -> Body:
        """The body of a loop inside of so many others, one of which may go by rows."""
        largest = largest_of(loop, extent)
        length = extent.size(largest.shape[loop.axes[largest]])
        entries = extent.of(largest) // length
        by_places = is_by_places(loop, largest)
        one_by_one = by_places and 4 * entries > NEAR and length > 1
        block = marks(depth, one_by_one)
        if self.skips and not one_by_one:
            loop = loop._replace(columns=columns_of(loop, self.known, block))
        body = Body(loop, block, extent, self.numbers, self.known, one_by_one)
        if one_by_one or (not by_places and largest.rank > 2 and LEAST_ROWS * entries > 2 * NEAR):
            lengths = {block.rows: 1 if one_by_one else min(LEAST_ROWS, length)}
            if loop.columns is not None:
                lengths[block.width] = extent.size(loop.columns.size)
            self._nest(body, Extent({**extent.sizes, **lengths}), depth, in_rows or not one_by_one)
        return body

    def _nest(self, body: Body, extent: Extent, depth: int, in_rows: bool) -> None:
        """Put loops in place of the nodes that they compute, where there are any."""
        loop, taken = body.loop, {marks(k, one_by_one).rows for k in range(depth + 1) for one_by_one in (False, True)}
        of = {node: x for x, node in body.node.items()}
        if len(of) < len(body.node):
            return

        def may_cut(x: Tensor, axis: int) -> bool:
            return x.shape[axis] not in taken and (axis < _MATRIX or not in_rows)

        outputs, read = [body.node[x] for x in loop.stored], {y for x in of for y in x.inputs if y not in of}
        limit = self.kept * max(map(extent.of, [*outputs, *body.parts]))
        steps: list[Tensor | Body] = []
        for stage in Schedule(outputs, read, limit, extent, may_cut, NEAR // 2).stages:
            if not isinstance(stage, Loop):
                steps += [of[node] for node in stage if node in of]
            elif all(x.kind == "real" for x in stage.stored):
                steps.append(self.body(stage, extent, depth + 1, in_rows))
            else:
                return
        body.steps = steps
