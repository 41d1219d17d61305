"""The graph that code is written for: names taken off and kept beside, spelled-out normalisers made stable."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.node import Tensor, topological
from ..graph.canonical import without_names
from ..graph.names import displayed_names
from ..ops.leaves import computed, cotangent_op, is_named, operands, variable
from ..recurrence.joint import with_joint_loops
from .stable import stable


class Graph:
    """Outputs without named nodes, so that equal work is one node, and the name that each named node had.

    A gradient stays a node of its own where it is used as a value, outside of other gradients: there it is summed
    over the loop axes that its variable does not have. ``gradients`` holds those nodes, and ``nested`` says whether
    one gradient was differentiated again.
    """

    def __init__(self, outputs: Sequence[Tensor]) -> None:
        outputs = with_joint_loops(outputs)
        shown = displayed_names(outputs)
        self.names: dict[Tensor, str] = {}
        bare: dict[Tensor, Tensor] = {}
        order = computed(outputs)
        self.nested = _nested(order)
        self.forms: dict[Tensor, Tensor] = {}  # what is computed in another form than it is written in
        for node in order:
            bare[node] = stable(without_names(node, bare))
            if bare[node].op is not node.op and not is_named(node):
                self.forms.setdefault(bare[node], node)
            if is_named(node) and node.op is not variable and bare[node].op is not variable:
                self.names.setdefault(bare[node], shown[node])
        whole = self._with_gradients(outputs, bare)
        self.outputs = [whole[y] for y in outputs]
        self.gradients = [node for node in whole.values() if node.op is cotangent_op]
        self.numeric = [y.kind != "binary" for y in outputs]  # a gradient is a number even where it is 0 or 1
        live = computed(self.outputs)
        self._holding: set[Tensor] = set()  # a gradient
        for node in live:
            if node.op is cotangent_op or not self._holding.isdisjoint(operands(node)):
                self._holding.add(node)
        among = set(live)
        self.names = {node: name for node, name in self.names.items() if node in among}

    def is_free_of_gradients(self, y: Tensor) -> bool:
        """Whether an output holds no gradient, which has loop axes of its own."""
        return y not in self._holding

    def _with_gradients(self, outputs: Sequence[Tensor], bare: dict[Tensor, Tensor]) -> dict[Tensor, Tensor]:
        """The outputs down to the first gradients, which are kept as nodes."""
        inside = {node for node in bare if node.op is cotangent_op}
        whole: dict[Tensor, Tensor] = {}
        for node in topological(outputs, stop=inside):
            if node in inside:
                whole[node] = cotangent_op.node(bare[node], *node.inputs[1:], name=node.params["name"])
                continue
            inputs = tuple(whole[x] for x in operands(node))
            if all(x is bare[i] for x, i in zip(inputs, operands(node), strict=True)):
                whole[node] = bare[node]
            else:
                whole[node] = inputs[0] if is_named(node) else node.op(*inputs, **node.params)
        return whole


def _nested(order: Sequence[Tensor]) -> bool:
    """Whether a gradient stands inside another one, of other outputs."""
    below: dict[Tensor, frozenset[Tensor]] = {}  # the outputs and cotangents of the gradients below each node
    for node in order:
        met = frozenset[Tensor]().union(*(below[x] for x in operands(node)))
        if node.op is cotangent_op:
            own = frozenset(node.inputs[2:])
            if met - own:
                return True
            met = own
        below[node] = met
    return False
