"""The records of all operations, collected once from the files of their families."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..core.late import late
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
    return RECORDS[name] if name in RECORDS else late(f"{name}_op")
