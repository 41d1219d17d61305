"""The records of all operations, collected once from the files of their families."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from ..operation import Operation
from ..tensor import Tensor
from . import (
    arithmetic,
    broadcasting,
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
    sparse, opaque,
)  # fmt: skip

RECORDS: Mapping[str, Operation] = MappingProxyType(
    {
        value.name: value
        for family in FAMILIES
        for value in vars(family).values()
        if isinstance(value, Operation)
    }
)


def record(name: str) -> Operation:
    """The record of a name."""
    return RECORDS[name]


def unflatten(table: list[tuple[str, tuple[int, ...], dict[str, Any]]]) -> Tensor:
    """The graph of a flat table, as pickling stores it."""
    import_module("symattn.language")  # operators and printing, in a process that has only unpickled
    nodes: list[Tensor] = []
    for name, inputs, params in table:
        nodes.append(RECORDS[name].node(*(nodes[k] for k in inputs), **params))
    return nodes[-1]
