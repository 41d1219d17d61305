"""The records of all operations, collected once from the files of their families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType

from ..core.node import Table, Tensor, topological
from ..core.operation import Operation
from . import (
    arithmetic,
    broadcasting,
    classes,
    contraction,
    gather,
    index,
    inverse,
    layout,
    leaves,
    logic,
    opaque,
    pointwise,
    rows,
    scans,
    sparse,
)

FAMILIES = (
    leaves, broadcasting, arithmetic, logic, pointwise, rows, index, layout, contraction, gather, scans, inverse,
    sparse, opaque, classes,
)  # fmt: skip

RECORDS: Mapping[str, Operation] = MappingProxyType(
    {value.name: value for family in FAMILIES for value in vars(family).values() if isinstance(value, Operation)}
)


def record(name: str) -> Operation:
    """The record of a name."""
    return RECORDS[name]


def flatten(roots: Sequence[Tensor]) -> Table:
    """The graph as a flat table, and the places of the roots: pickling neither recurses nor repeats a shared node."""
    order = topological(roots)
    place = {node: number for number, node in enumerate(order)}
    rows = [(node.op, tuple(place[x] for x in node.inputs), node.params) for node in order]
    return rows, [place[root] for root in roots]


def unflatten(table: Table) -> list[Tensor]:
    """The roots of a flat table, as pickling stores it."""
    import_module("symattn.language")  # operators and printing, in a process that has only unpickled
    nodes: list[Tensor] = []
    for op, inputs, params in table[0]:
        nodes.append(op.node(*(nodes[k] for k in inputs), **params))
    return [nodes[place] for place in table[1]]
