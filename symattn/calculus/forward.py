"""The graph to differentiate, in which everything that a derivative rule will speak of has a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

import sympy

from ..core.naming import new_name
from ..core.node import Tensor, topological, with_inputs
from ..errors import NoRuleError
from ..graph.canonical import Norm, norm, normaliser
from ..graph.names import displayed_names, numbered
from ..ops.leaves import (
    by_derivative,
    constant,
    from_index_op,
    is_named,
    let_op,
    named,
    named_by,
    number_given,
    variable,
)

Variable: TypeAlias = Tensor | sympy.Symbol


def dependent(order: Sequence[Tensor], variables: Collection[Variable]) -> set[Tensor]:
    """The nodes that depend on the variables."""
    symbols = {v for v in variables if isinstance(v, sympy.Symbol)}
    needed = {v for v in variables if isinstance(v, Tensor)}
    for node in order:
        if any(x in needed for x in node.inputs) or (symbols and symbols & node.own_symbols):
            needed.add(node)
    return needed


def partial(node: Tensor, symbol: sympy.Symbol) -> Tensor:
    """The derivative of a node by a scalar symbol of its own: a record is linear in its ``formula``."""
    formula = node.params["formula"]
    slope = sympy.diff(formula, symbol)
    if slope.has(sympy.Derivative, sympy.Subs, sympy.DiracDelta):
        raise NoRuleError(f"SymPy knows no derivative of {formula} by {symbol}: write it by known, smooth functions")
    return node.op(*node.inputs, **{**node.params, "formula": slope})


def scalars_of(node: Tensor, symbols: Collection[sympy.Symbol]) -> list[sympy.Symbol]:
    """Those of the symbols that a node's own formula holds, in a fixed order."""
    formula = node.params.get("formula")
    return sorted(formula.free_symbols.intersection(symbols), key=str) if symbols and formula is not None else []


def _read(roots: Sequence[Tensor], variables: Collection[Variable]) -> dict[Tensor, Tensor]:
    """Each node, with spelled-out normalisers read as what they are, unless a part of one may be asked for.

    What has one name is one node, whoever gave it: a sum of derivatives may hold the same name from several.
    """
    asked = any(isinstance(v, Tensor) and v.op is not variable for v in variables)
    new: dict[Tensor, Tensor] = {}
    givers: dict[tuple[str, Tensor], str] = {}
    for node in topological(roots):
        read = None if asked else normaliser(node, tuple(new[x] for x in node.inputs))
        by = {}
        if node.op is let_op and named_by(node):
            by["by"] = givers.setdefault((str(node.name), new[node.inputs[0]]), named_by(node))
        new[node] = with_inputs(node, new, **by) if read is None else read
    return new


class Forward:
    """The graph to differentiate, in which everything a rule will speak of has a name of its own."""

    def __init__(
        self, roots: Sequence[Tensor], variables: Sequence[Variable], beside: Sequence[Tensor] = (), *, by: str
    ) -> None:
        """``beside`` holds tensors that will be printed with the graph, and whose names are taken.

        ``by`` says what gives the names, a "gradient" or a "derivative".
        """
        self.by = by
        self.automatic: set[Tensor] = set()  # what is named here
        plain = _read(roots, variables)
        order = topological([plain[root] for root in roots])
        shown = displayed_names([*(plain[root] for root in roots), *beside])
        self.taken = {*shown.values(), *(s.name for x in topological([*roots, *beside]) for s in x.own_symbols)}
        new: dict[Tensor, Tensor] = {}
        letters = self._letters(order, dependent(order, variables))
        lets = {node.inputs[0]: node for node in reversed(order) if node.op is let_op and not is_named(node.inputs[0])}
        for node in order:
            if lets.get(node.inputs[0] if node.inputs else node) is node:
                new[node] = new[node.inputs[0]]
                continue
            new[node] = with_inputs(node, new, **self._naming(node, shown))
            if node in lets:  # the bare expression is read by its name everywhere
                new[node] = let_op(new[node], **{**lets[node].params, **self._naming(lets[node], shown)})
            elif node in letters:
                new[node] = self.name(new[node], letters[node])
        self.new = {old: new[read] for old, read in plain.items() if read in new}
        self.asked = {
            self.new[v] if isinstance(v, Tensor) else v for v in variables if v in self.new or not isinstance(v, Tensor)
        }
        self.order = topological([self.new[root] for root in roots])
        self.label = {node.inputs[0]: node for node in self.order if node.op is let_op}
        self.place = {node: n for n, node in enumerate(self.order)}

    def _letters(self, order: Sequence[Tensor], needed: Collection[Tensor]) -> dict[Tensor, str]:
        """What gets a name: what the field always names (softmax gives P from Z), and sums of paths that part again."""
        named_bodies = {node.inputs[0] for node in order if node.op is let_op}
        users = Counter(x for node in order if node in needed for x in dict.fromkeys(node.inputs))
        wanted: dict[str, dict[Tensor, None]] = {}
        for node in order:
            letters = node.op.letters
            called: Iterable[tuple[Tensor, str]] = ()
            if letters:
                called = zip((*node.inputs[:1], node), (letters[1], letters[0]), strict=True)
            elif users[node] > 1 and sum(x in needed for x in dict.fromkeys(node.inputs)) > 1:
                called = [(node, "U")]
            for x, letter in called:
                if not (is_named(x) or x in named_bodies or x.op in (constant, from_index_op)):
                    wanted.setdefault(letter, {}).setdefault(x)
        return numbered({letter: list(nodes) for letter, nodes in wanted.items()}, self.taken)

    def _naming(self, node: Tensor, shown: Mapping[Tensor, str]) -> dict[str, str]:
        """The name of a node among all, and who gives it now."""
        name = {"name": shown[node], **number_given(node, shown[node])} if node in shown else {}
        return {**name, **by_derivative(node)} if self.by == "derivative" else name

    def norm(self, node: Tensor) -> Norm | None:
        """The norm that a node is, unless what stands between its row and its root is differentiated by as well."""
        found = norm(node)
        between = () if found is None else (found.root, *found.squares.between)
        apart = any(x in self.asked or (x.op is constant and self.asked & x.own_symbols) for x in between)
        return None if apart else found

    def name(self, node: Tensor, wanted: str) -> Tensor:
        """The node under a new name."""
        label = named(new_name(wanted, self.taken), node, by=self.by)
        self.automatic.add(label)
        return label
