"""The graph that code is written for: names taken off and kept beside, spelled-out normalisers made stable."""

from __future__ import annotations

from collections.abc import Sequence

from ..latex import displayed_names
from ..normalisers import normaliser
from ..ops.leaves import cotangent_op, is_named, variable
from ..tensor import Tensor, topological


class Graph:
    """Outputs without named nodes, so that equal work is one node, and the name that each named node had.

    ``gradient_of`` says what each output is the gradient of, if it is one; ``cotangents`` pairs the cotangents of
    such outputs with the outputs that they belong to.
    """

    def __init__(self, outputs: Sequence[Tensor]) -> None:
        shown = displayed_names(outputs)
        bare: dict[Tensor, Tensor] = {}
        self.names: dict[Tensor, str] = {}
        self.cotangents: dict[Tensor, Tensor] = {}
        needed = set(computed(outputs))
        for node in topological(outputs):
            if node not in needed:
                continue
            if node.op is cotangent_op:
                self.cotangents.update(zip(node.inputs[3::2], node.inputs[2::2], strict=True))
            if is_named(node) and node.op is not variable:
                bare[node] = bare[node.inputs[0]]
                if bare[node].op is not variable:
                    self.names.setdefault(bare[node], shown[node])
                continue
            inputs = tuple(bare[x] for x in node.inputs)
            stable = normaliser(node, inputs)
            if stable is None:
                stable = node if inputs == node.inputs else node.op(*inputs, **node.params)
            bare[node] = stable
        self.outputs = [bare[y] for y in outputs]
        self.numeric = [y.kind != "binary" for y in outputs]  # a gradient is a number even where it is 0 or 1
        self.gradient_of = [y.inputs[1] if y.op is cotangent_op else None for y in outputs]
        live = set(topological(self.outputs))
        self.names = {node: name for node, name in self.names.items() if node in live}


def operands(node: Tensor) -> tuple[Tensor, ...]:
    """The inputs whose values a node needs: a gradient knows what it belongs to, but is computed from its body."""
    return node.inputs[:1] if node.op is cotangent_op else node.inputs


def computed(roots: Sequence[Tensor]) -> list[Tensor]:
    """The nodes whose values the roots need, inputs before users."""
    order: list[Tensor] = []
    seen: set[Tensor] = set()
    stack = list(roots)[::-1]
    while stack:
        node = stack[-1]
        pending = [x for x in operands(node) if x not in seen] if node not in seen else []
        if pending:
            stack.extend(reversed(pending))
            continue
        stack.pop()
        if node not in seen:
            seen.add(node)
            order.append(node)
    return order

