"""Whose loop axes a value has: the arguments that it is made from, a bit of a number each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_

from ...core.node import Tensor, topological
from ...ops.leaves import cotangent_op, operands, variable
from ..call.takes import Takes
from ..graph import Graph


def arguments_below(
    takes: Takes, roots: Sequence[Tensor], inputs: Callable[[Tensor], Sequence[Tensor]] | None = None
) -> dict[Tensor, int]:
    """For each node the arguments that it is made from, a bit of a number each; a last bit for what is missing."""
    bits = {a: 1 << k for k, a in enumerate(takes.tensors)}
    below: dict[Tensor, int] = {}
    for node in topological(roots, inputs=inputs):
        below[node] = bits.get(node, 1 << len(bits)) if node.op is variable else 0
        for x in node.inputs if inputs is None else inputs(node):
            below[node] |= below[x]
    return below


def without_real_numbers(order: Sequence[Tensor], below: Mapping[Tensor, int]) -> set[Tensor]:
    """What integer tensors and constants alone make, in float64 whatever the type of the real numbers is."""
    real: set[Tensor] = set()
    whole: set[Tensor] = set()
    for node in order:
        inputs = operands(node)
        is_number = node.kind == "real" if node.op is variable else node.op is cotangent_op
        of_constants = not below[node] and any(x.rank for x in inputs)
        if is_number or any(not s.is_integer for s in node.own_symbols) or any(x in real for x in inputs):
            real.add(node)
        elif of_constants or node.kind == "integer" or any(x in whole for x in inputs):
            whole.add(node)
    for node in reversed(order):  # and the constants that these are made with
        if node in whole:
            whole |= {x for x in operands(node) if x not in real and x.op is not variable}
    return whole


class LoopAxes:
    """The arguments below each node of a graph, and those whose values it needs."""

    def __init__(self, takes: Takes, graph: Graph) -> None:
        self.takes, self.graph, self.outputs = takes, graph, graph.outputs
        self.below = arguments_below(takes, self.outputs)
        self.read = arguments_below(takes, self.outputs, operands)
        self._read_by_some = reduce(or_, map(self.read.__getitem__, self.outputs), 0)

    def beyond(self, y: Tensor) -> int:
        """The arguments whose loop axes an output has without reading them: those that no output reads.

        An output that reads no argument, such as a second derivative that is constant, has those of all. A gradient
        has its own, as it was summed; where one was differentiated again, all arguments loop alike.
        """
        if self.graph.gradients and not self.graph.nested and not self.graph.is_free_of_gradients(y):
            return 0
        every = (1 << len(self.takes.tensors)) - 1
        return every & ~self._read_by_some if self.read[y] else every

    def of_gradient(self, node: Tensor) -> tuple[int, int] | None:
        """The arguments whose loop axes its outputs and its variable have; None if there are none or one is missing."""
        of, pairs = node.inputs[1], node.inputs[2:]
        full, own = 0, self.below[of]
        for y in pairs[::2]:
            full |= self.below[y]
        known = pairs and full | own and not (full | own) >> len(self.takes.tensors)
        return (full, own) if known else None
