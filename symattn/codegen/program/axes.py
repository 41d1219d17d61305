"""Along which axes a node can be computed block by block, read off its entry formula.

An axis can be cut where an entry reads its inputs at that index alone: a block of the result is made of blocks of
inputs. Positions are added up where the whole formula is a sum over them: the result is the sum of those of blocks.
The node of a block is the same operation on smaller inputs, and nothing holds where that is not so.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import sympy
from sympy.concrete.expr_with_limits import ExprWithLimits

from ...core.node import Tensor
from ...core.operation import Operation
from ...core.sizes import Shape
from ...errors import SymattnError
from ...facts.alike import Position, facts
from ...ops.leaves import stand_in
from ...ops.template import template

BLOCK = sympy.Dummy("rows", integer=True, positive=True)  # the length of any block
Places = tuple[Position, ...]


class Axes(NamedTuple):
    """Output axes that can be cut, each with the positions that are read there, and positions that are added up.

    ``rows`` are positions that are read together, at an output axis or none, and folded on the way.
    """

    cuts: Mapping[int, Places]
    sums: tuple[Places, ...]
    rows: tuple[tuple[int | None, Places], ...]

    def along(self, place: Position) -> tuple[int | None, Places] | None:
        """The output axis, if there is one, and all positions, along which one position is read."""
        return next((row for row in self.rows if place in row[1]), None)

    def sum_over(self, places: set[Position]) -> Places | None:
        """The positions of a sum over these, if there is one."""
        return next((fold for fold in self.sums if places <= set(fold)), None)

    def cut_at(self, places: set[Position]) -> list[int]:
        """The output axes that are read along all of these positions."""
        return [axis for axis, read in self.cuts.items() if places <= set(read)]

    def reads_entrywise(self, k: int, x: Tensor) -> bool:
        """Whether each entry reads input k at its own index, and nowhere else."""
        return all((k, axis) in self.cuts.get(axis, ()) for axis in range(-x.rank, 0))


_known: WeakKeyDictionary[Tensor, Axes] = WeakKeyDictionary()  # a node is asked often while a program is made


def axes_of(node: Tensor) -> Axes:
    """The axes of a node; they depend on its operation, parameters and shapes alone."""
    found = _known.get(node)
    if found is None:
        inputs = tuple((x.shape, x.kind, x.holds_minus_infinity) for x in node.inputs)
        found = _known[node] = _axes(node.op, tuple(sorted(node.params.items())), inputs)
    return found


def at_shape(node: Tensor, inputs: tuple[Tensor, ...], shape: Shape) -> Tensor:
    """The operation of a node on inputs of other sizes, whose result has that shape."""
    params = {**node.params, **(node.op.resized(node, shape) if node.op.resized else {})}
    return node.op.node(*inputs, **params)


def cut_shape(shape: Shape, axis: int | None, size: Any) -> Shape:
    """The shape of one block along an axis."""
    return tuple(size if k == axis else own for k, own in enumerate(shape, -len(shape)))


@lru_cache(maxsize=4096)
def _axes(op: Operation, params: tuple[Any, ...], inputs: tuple[tuple[Shape, str, bool], ...]) -> Axes:
    node = op.node(*(stand_in(f"x{k}", *known) for k, known in enumerate(inputs)), **dict(params))
    if not inputs:
        return Axes({}, (), ())
    groups = facts(node).groups
    ends = [(g.outputs[0] if g.outputs else None, g.inputs) for g in groups if len(g.outputs) < 2]
    fit = [end for end in ends if _is_cut(node, *end)]
    cuts = {g.outputs[0]: g.inputs for g in groups if g.plain and (g.outputs[0], g.inputs) in fit}
    is_sum = (None in dict(ends)) and isinstance(template(node).formula, sympy.Sum)
    sums = tuple(places for axis, places in fit if axis is None and is_sum)
    return Axes(cuts, sums, tuple(end for end in fit if end[1]))


def _is_cut(node: Tensor, axis: int | None, places: Places) -> bool:
    """Whether a block is the operation on blocks, whose formula does not know how long a block is."""
    inputs = []
    for k, x in enumerate(node.inputs):
        at = [a for place, a in places if place == k]
        if len(at) > 1:
            return False
        shape = cut_shape(x.shape, at[0] if at else None, BLOCK)
        inputs.append(stand_in(f"x{k}", shape, x.kind, x.holds_minus_infinity) if at else x)
    shape = cut_shape(node.shape, axis, BLOCK)
    try:
        block = at_shape(node, tuple(inputs), shape)
    except SymattnError:
        return False
    if block.shape != shape:
        return False
    return not _knows_length(template(block).formula)


def _knows_length(formula: Any) -> bool:
    """Whether a formula uses the length of a block otherwise than as the range of a sum or an extreme."""
    waiting = [formula]
    while waiting:
        part = waiting.pop()
        if part == BLOCK:
            return True
        waiting += [part.function] if isinstance(part, ExprWithLimits) else part.args
    return False
