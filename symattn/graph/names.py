"""The names under which nodes are shown, one table for one output: text, LaTeX, code, proofs and entries share it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import sympy

from ..core.naming import CONSTANTS, new_name
from ..core.node import Tensor, check_open, topological
from ..errors import NamingError
from ..ops.leaves import cotangent_op, definition, is_named, is_numbered, named_by, variable
from .canonical import without_names

LONGEST = 400  # nodes of a printed tree; a larger one is asked to be named in parts


def displayed_names(roots: Iterable[Tensor]) -> dict[Tensor, str]:
    """The name under which each named node is shown: tensors keep theirs, different nodes of one label are numbered.

    Raises NamingError if one tensor name has two meanings, or a tensor, a size or a scalar share a name.
    """
    return names_among(topological(roots))


def names_among(order: Sequence[Tensor]) -> dict[Tensor, str]:
    """The same of all nodes below some roots, inputs before users."""
    fixed: dict[str, Tensor] = {}
    symbols: dict[str, sympy.Symbol] = {}
    labels: dict[str, list[Tensor]] = {}
    for node in order:
        if node.tracings:
            check_open(node)
        for symbol in node.own_symbols:
            other = symbols.setdefault(symbol.name, symbol)
            if other is not symbol and other != symbol:
                raise NamingError(
                    f"two symbols are called {symbol} but differ in their assumptions: make sizes by "
                    f"sa.sizes({symbol.name!r}) and use that symbol everywhere"
                )
        if node.op is variable:
            other_node = fixed.setdefault(node.params["name"], node)
            if other_node is not node:
                raise NamingError(
                    f"the name {node.name!r} stands for two tensors, {other_node.brief()} and {node.brief()} "
                    f"({_hypotheses(other_node)} and {_hypotheses(node)}): rename one"
                )
        elif is_named(node):
            labels.setdefault(node.params["name"], []).append(node)
    clash = fixed.keys() & symbols.keys()
    if clash:
        raise NamingError(f"{sorted(clash)[0]!r} names both a tensor and a size or scalar: rename one")
    if constants := CONSTANTS.keys() & {*fixed, *symbols, *labels}:
        _check_numbers(order, sorted(constants))
    first = _same_quantity(order, labels)
    apart = {label: list(dict.fromkeys(y for x in nodes if _label(y := first.get(x, x)) == label))
             for label, nodes in labels.items()}  # fmt: skip
    names = numbered(apart, {*fixed, *symbols})
    given = {node: name for name, node in fixed.items()}
    names = _following(apart, names, {*fixed, *symbols}, {**given, **{x: names[first.get(x, x)] for x in first}})
    shown = {node: names[first.get(node, node)] for nodes in labels.values() for node in nodes}
    return {**given, **shown}


def _label(node: Tensor) -> str:
    return str(node.params["name"])


def _following(
    labels: Mapping[str, Sequence[Tensor]], names: dict[Tensor, str], fixed: Collection[str], more: Mapping[Tensor, str]
) -> dict[Tensor, str]:
    """The names of nodes by their labels, where a gradient has the number of what it is by: dP_2 is that by P_2."""
    shown = {**more, **names}
    groups: dict[str, list[Tensor]] = {}
    for label, nodes in labels.items():
        for node in nodes:
            by = node.inputs[1] if node.op is cotangent_op else node
            follows = by is not node and by in shown and label == f"d{_label(by)}"
            shown[node] = f"d{shown[by]}" if follows else shown[node]
            groups.setdefault(shown[node] if follows else label, []).append(node)
    return names if groups.keys() == labels.keys() else numbered(groups, fixed)


def _check_numbers(order: Sequence[Tensor], names: Sequence[str]) -> None:
    """No name is that of a number which stands in a formula."""
    formulas = [f for x in order if isinstance(f := x.params.get("formula"), sympy.Basic)]
    for name in names:
        if any(f.has(CONSTANTS[name], -CONSTANTS[name]) for f in formulas):
            raise NamingError(f"{name!r} names a tensor, a size or a scalar, and the number {name} occurs: rename one")


def _same_quantity(order: Sequence[Tensor], labels: Mapping[str, Sequence[Tensor]]) -> dict[Tensor, Tensor]:
    """For nodes of one label: the first one that is the same but for names inside, such as automatic ones.

    What a gradient has given a number to is the same as what has the label without it.
    """
    plain = [(x, stem) for nodes in labels.values() for x in nodes if is_numbered(x) and (stem := _stem(x)) in labels]
    if not plain and all(len(nodes) == 1 for nodes in labels.values()):
        return {}
    bare: dict[Tensor, Tensor] = {}
    for node in order:
        bare[node] = without_names(node, bare)
    first: dict[tuple[str, Tensor], Tensor] = {}
    for x, stem in plain:
        first.setdefault((stem, bare[x]), x)
    return {x: first.setdefault((label, bare[x]), x) for label, nodes in labels.items() for x in nodes}


def _stem(x: Tensor) -> str:
    """The label without its number."""
    return _label(x).rpartition("_")[0]


def _hypotheses(node: Tensor) -> str:
    return ", ".join(node.params["hypotheses"]) or "no hypotheses"


def numbered(labels: Mapping[str, Sequence[Tensor]], fixed: Collection[str]) -> dict[Tensor, str]:
    """One name a node: the label if it is free and only one node has it, else label_1, label_2, ..."""
    names: dict[Tensor, str] = {}
    taken = {*fixed, *labels}
    for label, nodes in labels.items():
        alone = len(nodes) == 1 and label not in fixed
        names |= {node: label if alone else new_name(label, taken) for node in nodes}
    return names


def symbol_names(roots: Iterable[Tensor], stop: Collection[Tensor] = ()) -> set[str]:
    """The names of the sizes and scalar symbols below some nodes."""
    return {symbol.name for node in topological(roots, stop=stop) for symbol in node.own_symbols}


def mentioned_names(expressions: Iterable[Tensor]) -> list[Tensor]:
    """What expressions mention by names that no user gave, each after those that it mentions in turn."""

    def inputs(node: Tensor) -> Sequence[Tensor]:
        if not is_named(node):
            return node.inputs
        return (definition(node),) if named_by(node) else ()

    found = (x for x in topological(expressions, inputs=inputs) if named_by(x))
    return sorted(found, key=lambda x: (x.height, str(x.name)))


def tree_size(x: Tensor) -> int:
    """How many nodes the printed tree would have, named parts counted once; exact, however large."""
    root, count = definition(x), dict[Tensor, int]()
    for node in topological([root], inputs=unnamed_inputs):
        count[node] = 1 + sum(count[i] for i in unnamed_inputs(node))
    return count[root]


def unnamed_inputs(node: Tensor) -> Sequence[Tensor]:
    """What is shown inside of a node: nothing where its name stands for it."""
    return () if is_named(node) else node.inputs
