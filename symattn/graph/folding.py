"""Names put back: what a named intermediate stands for is shown by its name, wherever it occurs."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.node import Tensor, topological, with_inputs
from ..ops.leaves import computed, definition, is_named, variable
from .names import unnamed_inputs


class Folding:
    """Puts the names that some roots mention for what they stand for, also where all names were written out.

    Shared nodes are folded once. It is a matter of printing: what is proved or evaluated keeps its own nodes.
    """

    def __init__(self, roots: Iterable[Tensor]) -> None:
        self._names: dict[Tensor, Tensor] = {}  # what is named, with all names inside written out
        self._mentioning: set[Tensor] = set()  # nodes of the roots that are, or hold, a named intermediate
        self._alike: dict[Tensor, Tensor] = {}
        self._folded: dict[Tensor, Tensor] = {}
        bare: dict[Tensor, Tensor] = {}
        for node in computed(roots):
            named = is_named(node) and node.op is not variable
            bare[node] = bare[node.inputs[0]] if named else with_inputs(node, bare)
            worthy = named and bool(bare[node].inputs)  # a tensor or a constant under a second name keeps its own
            if worthy:
                self._names.setdefault(bare[node], node)
                self._alike.setdefault(definition(node), node)
            if worthy or not self._mentioning.isdisjoint(node.inputs):
                self._mentioning.add(node)

    def __call__(self, x: Tensor) -> Tensor:
        """The tensor with names for what they stand for."""
        for node in topological([x], stop=self._folded, inputs=unnamed_inputs):
            if node not in self._folded:
                self._folded[node] = self._shown(node)
        return self._folded[x]

    def _shown(self, node: Tensor) -> Tensor:
        if node in self._names or is_named(node):
            return self._names.get(node, node)
        inputs = tuple(self._folded[x] for x in node.inputs)
        shown = node if inputs == node.inputs else node.op.node(*inputs, **node.params)
        return self._alike.get(shown, shown)

    def mentions(self, x: Tensor) -> bool:
        """Whether it stands in the roots and has a name in it."""
        return x in self._mentioning

    def show_as(self, x: Tensor, known: Tensor) -> None:
        """Have a tensor shown as what the roots have for it from now on, unless the roots hold it too."""
        shown = self(x)
        if shown not in self._mentioning:
            self._alike[shown] = self._folded[x] = known
