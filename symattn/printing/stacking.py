"""A formula with cases that no break makes narrow enough: conditions go below what they are for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.boxes import Box, Fence, Matrix, Row, Script, Space, fold, row
from .widths import width


def stacked(box: Box) -> Box:
    """The formula with the conditions of its cases below their values, where that makes it narrower."""
    return fold(box, _stacked)


def _stacked(box: Any, inside: Sequence[Box]) -> Box:
    match box:
        case Row():
            return Row(tuple(inside))
        case Fence(_, left, right):
            return Fence(inside[0], left, right)
        case Script(_, below, above):
            return Script(inside[0], below, above)
        case Matrix(rows, "{", "") if all(len(cells) == 2 for cells in rows):
            return Matrix(tuple(line for value, condition in rows for line in _lines(value, condition, rows)), "{", "")
        case _:
            return box


def _lines(value: Box, condition: Box, rows: Sequence[Sequence[Box]]) -> list[tuple[Box]]:
    widest = max(width(cell) for cells in rows for cell in cells)
    beside = row(value, Space(1.0), condition)
    return [(beside,)] if width(beside) <= widest else [(value,), (row(Space(1.0), condition),)]
