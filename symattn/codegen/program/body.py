"""The body of a loop as a graph of its own: every node on one block, whose entries begin at a first index.

What is read from outside is a leaf, a part of a whole array; constants by index know where their block begins. Some of
the nodes may be computed by loops inside, whose bodies are graphs in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from ...core.exact import INDICES
from ...core.node import Tensor
from ...core.sizes import Shape
from ...ops.leaves import constant, from_index_op, stand_in
from .axes import Places, at_shape, axes_of, cut_shape
from .columns import Marks
from .extent import Extent
from .schedule import Loop


class Part(NamedTuple):
    """A block of a whole array along an axis, at the columns that are seen along another, or along one of the two."""

    of: Tensor
    axis: int | None
    column: int | None


class Body:
    """The nodes of a loop on one block, and the parts that they read; ``numbers`` tells the parts of loops apart.

    ``steps`` are the nodes of the loop in order, or loops inside that compute some of them; where the loop goes
    ``one_by_one``, a block is one place of the axis.
    """

    def __init__(
        self,
        loop: Loop,
        block: Marks,
        extent: Extent,
        numbers: Iterator[int],
        is_known: Collection[Tensor],
        one_by_one: bool,
    ) -> None:
        self.loop, self.block, self.extent, self.one_by_one = loop, block, extent, one_by_one
        self.numbers, self.is_known = numbers, is_known
        self.steps: list[Tensor | Body] = list(loop.order)
        self.node: dict[Tensor, Tensor] = {}
        self.parts: dict[Tensor, Part] = {}
        self._leaves: dict[Part, Tensor] = {}
        for x in loop.order:
            inputs = tuple(self._operand(x, k) for k in range(len(x.inputs)))
            self.node[x] = at_shape(x, inputs, self.shape(x))

    @property
    def loops(self) -> list[Loop]:
        """This loop, and those inside."""
        return [self.loop, *(loop for step in self.steps if isinstance(step, Body) for loop in step.loops)]

    def reads(self) -> set[Tensor]:
        """What is read from outside, whole or in parts."""
        own = set(self.nodes())
        inside = {y for node in self.node.values() for y in node.inputs if y not in own}
        return {part.of for part in self.parts.values()} | inside

    def nodes(self) -> list[Tensor]:
        """All nodes on one block, which mean something else in another loop."""
        return [*self._leaves.values(), *self.node.values()]

    def shape(self, x: Tensor) -> Shape:
        """The shape of a node of the loop in one block."""
        shape = x.shape if x in self.loop.added else cut_shape(x.shape, self.loop.axes[x], self.block.rows)
        return cut_shape(shape, self.column(x), self.block.width)

    def column(self, x: Tensor) -> int | None:
        """The axis along which a node is known at the columns alone that are seen."""
        return self.loop.columns.axes.get(x) if self.loop.columns is not None else None

    def places(self, x: Tensor) -> Places:
        """The positions at which a node of the loop reads blocks."""
        return self.loop.added[x] if x in self.loop.added else axes_of(x).cuts[self.loop.axes[x]]

    def _operand(self, x: Tensor, k: int) -> Tensor:
        y = x.inputs[k]
        if y in self.node and y not in self.loop.added:
            return self.node[y]
        axis = next((axis for place, axis in self.places(x) if place == k), None)
        column = self.loop.columns.reads.get(x, {}).get(k) if self.loop.columns is not None else None
        if (axis is None and column is None) or y.op is constant:
            return y
        return self._part(Part(y, axis, column))

    def _part(self, part: Part) -> Tensor:
        if part not in self._leaves:
            y, axis, column = part
            shape = cut_shape(cut_shape(y.shape, axis, self.block.rows), column, self.block.width)
            if y.op is from_index_op and y not in self.is_known:
                starts = ((axis, self.block.start), (column, self.block.first))
                moved = {INDICES[y.rank + a]: INDICES[y.rank + a] + start for a, start in starts if a is not None}
                leaf = from_index_op(formula=y.params["formula"].xreplace(moved), shape=shape)
            else:
                leaf = stand_in(f"part {next(self.numbers)}", shape, y.kind)
                self.parts[leaf] = part
            self._leaves[part] = leaf
        return self._leaves[part]
