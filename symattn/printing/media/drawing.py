"""Unicode text in lines: matrices are drawn in two dimensions, between ⎡ and ⎤, and what is around them grows."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.boxes import Box, Differential, Fence, Fraction, Matrix, Row, Script, fold
from .neighbours import Level, least
from .unicode import Written, gap, in_one_line, scripts

_TALL = {
    "(": "⎛⎜⎝", ")": "⎞⎟⎠", "[": "⎡⎢⎣", "]": "⎤⎥⎦", "⌊": "⎢⎢⎣", "⌋": "⎥⎥⎦", "⌈": "⎡⎢⎢", "⌉": "⎤⎥⎥", "|": "│││",
    "‖": "║║║", "{": "⎧⎪⎩", "}": "⎫⎪⎭",
}  # fmt: skip
_BRACES = {"{": "⎰⎨⎱", "}": "⎱⎬⎰"}  # in two lines, and the middle of more


@dataclass(frozen=True, slots=True)
class Drawing:
    """Lines, the number of the one that stands in the line of the formula, and the same in one line."""

    lines: Sequence[str]
    base: int
    written: Written

    @property
    def width(self) -> int:
        return max(map(columns, self.lines))


def unicode_lines(box: Box) -> list[str]:
    """The formula in lines of Unicode text."""
    return [line.rstrip() for line in fold(box, _drawn).lines]


def columns(text: str) -> int:
    """The places that a text takes: a hat takes none, and a letter of Chinese two."""
    if text.isascii():
        return len(text)
    return sum(not unicodedata.combining(c) and 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def _drawn(box: Box, inside: Sequence[Drawing]) -> Drawing:
    written = in_one_line(box, [kid.written for kid in inside])
    tall = isinstance(box, Matrix) or any(len(kid.lines) > 1 for kid in inside)
    draw = _DRAWINGS.get(type(box)) if tall else None
    return draw(box, inside, written) if draw else Drawing([written.text], 0, written)


def _line(text: str) -> Drawing:
    return Drawing([text], 0, Written(text))


def _padded(text: str, width: int) -> str:
    return text + " " * (width - columns(text))


def _beside(parts: Sequence[Drawing], written: Written) -> Drawing:
    above = max(part.base for part in parts)
    below = max(len(part.lines) - part.base for part in parts)
    lines = [""] * (above + below)
    for part in parts:
        first, width = above - part.base, part.width
        own = [""] * first + [*part.lines]
        lines = [line + _padded(new, width) for line, new in zip(lines, own + [""] * len(lines), strict=False)]
    return Drawing(lines, above, written)


def _mark(mark: str, height: int, base: int) -> Drawing:
    """A mark as high as what it is next to."""
    if height == 1 or mark not in _TALL:
        return _line(mark)
    first, middle, last = [*_TALL[mark]]
    lines = [first, *[middle] * (height - 2), last]
    if mark in _BRACES and height == 2:
        lines = [_BRACES[mark][0], _BRACES[mark][2]]
    elif mark in _BRACES:
        lines[height // 2] = _BRACES[mark][1]
    return Drawing(lines, base, Written(mark))


def _between(left: str, inside: Drawing, right: str, written: Written) -> Drawing:
    height = len(inside.lines)
    return _beside([_mark(left, height, inside.base), inside, _mark(right, height, inside.base)], written)


def _at_least(part: Drawing, level: Level) -> Drawing:
    if part.written.level >= level:
        return part
    return _between("(", part, ")", Written(part.written.at_least(level)))


def _row(box: Row, inside: Sequence[Drawing], written: Written) -> Drawing:
    seen = [(part, kid) for part, kid in zip(box.parts, inside, strict=True) if kid.written.text]
    parts = [part for part, _ in seen]
    drawn: list[Drawing] = []
    for k, (part, kid) in enumerate(seen):
        drawn += [_line(gap(parts[k - 1], part) if k else ""), _at_least(kid, least(parts, k))]
    return _beside(drawn, written)


def _fence(box: Fence, inside: Sequence[Drawing], written: Written) -> Drawing:
    return _between(box.left, inside[0], box.right, written)


def _matrix(box: Matrix, inside: Sequence[Drawing], written: Written) -> Drawing:
    cells = iter(inside)
    rows = [[next(cells) for _ in row] for row in box.rows]
    widths = [max(cell.width for cell in column) for column in zip(*rows, strict=False)]
    cases = box.left == "{" and not box.right
    lines: list[str] = []
    for row in rows:
        padded = [_in_column(cell, width, cases) for cell, width in zip(row, widths, strict=False)]
        apart = [part for cell in padded for part in (_line("  "), cell)]
        lines += _beside(apart[1:] or [_line("")], written).lines
    table = Drawing(lines or [""], max(len(lines) - 1, 0) // 2, written)
    return _between(box.left, table, box.right, written)


def _in_column(cell: Drawing, width: int, at_left: bool) -> Drawing:
    room = " " * (width - cell.width)
    return cell if not room else _beside([cell, _line(room)] if at_left else [_line(room), cell], cell.written)


def _script(box: Script, inside: Sequence[Drawing], written: Written) -> Drawing:
    """Scripts of what is tall stand at its upper right and its lower right."""
    base, small = _at_least(inside[0], Level.ATOM), [kid.written for kid in inside[1:]]
    lines = [*base.lines]
    if box.below is not None:
        lines[-1] += scripts(Script(box.base, box.below), small)
    if box.above is not None:
        lines[0] += scripts(Script(box.base, None, box.above), small[-1:])
    return Drawing(lines, base.base, written)


def _fraction(box: Fraction, inside: Sequence[Drawing], written: Written) -> Drawing:
    width = max(kid.width for kid in inside)
    above, below = ([" " * ((width - kid.width) // 2) + line for line in kid.lines] for kid in inside)
    whole = Written(f"({written.text})")  # its line holds it together
    return Drawing([*above, "─" * width, *below], len(above), whole)


def _differential(box: Differential, inside: Sequence[Drawing], written: Written) -> Drawing:
    return _beside([_line("d"), _between("(", inside[0], ")", written)], written)


_DRAWINGS: dict[type[Box], Callable[[Any, Sequence[Drawing], Written], Drawing]] = {
    Row: _row, Fence: _fence, Matrix: _matrix, Script: _script, Fraction: _fraction, Differential: _differential,
}  # fmt: skip
