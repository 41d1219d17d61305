"""Rows of a block in a room of given width, the same for every medium: where rows break, and where reasons stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..core.boxes import Box, Row, row
from .breaking import broken
from .prose import Words

_WIDE_LEFT = 0.45  # of the room: a left side that is wider has no column
_ROWS_KEEP = 0.55  # of the room, where reasons stand beside rows that are broken


class Equation(NamedTuple):
    """What is laid out: a left side, none where it is that of the row before, the rest, and why.

    A heading says for each of what the rows below it hold.
    """

    left: Box | None
    right: Box  # with the relation sign before it
    reason: Words = ()
    label: str = ""
    is_heading: bool = False


class Line(NamedTuple):
    """A line of a block, and the row that ends with it."""

    kind: Literal["heading", "first", "more", "reason"]  # what goes on, or a reason that has the line for itself
    left: Box | None
    right: Box
    reason: Words = ()
    ends: Equation | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """How wide a line may be, in the unit of ``measure``, and what a medium puts into it besides formulas."""

    width: float
    measure: Callable[[Box], float]
    words: Callable[[Words], float]  # the width of a reason
    indent: float  # of a line that goes on
    apart: float  # between a formula and its reason
    narrow: float  # of a reason that rows are broken for
    factors: bool = True  # whether neighbours are factors, before which a line may break
    need: float = 1.0  # how much wider than the room a line has to be that is broken where that is not nice


class Block(NamedTuple):
    """Lines, how wide their left sides are at most, and whether the reasons are a column beside them."""

    lines: Sequence[Line]
    left: float
    beside: bool


def laid_out(equations: Sequence[Equation], room: Room) -> Block:
    """Reasons stand beside where they fit, else beside rows that are broken, else below them: one way for a block."""
    lefts = [0.0 if e.left is None else room.measure(e.left) for e in equations]
    left = max((em for em in lefts if em <= _WIDE_LEFT * room.width), default=0.0)
    rows = [_in_one(e) if em > left else e for e, em in zip(equations, lefts, strict=True)]
    reason = max((room.words(e.reason) for e in rows if e.reason), default=0.0)
    if reason:
        beside = room.width - room.apart - reason
        may_break = reason <= room.narrow and beside >= _ROWS_KEEP * room.width
        if may_break or all(room.measure(e.right) <= beside - left for e in rows):
            lines = [_broken(e, beside - left, room, need=None) for e in rows]
            if all(_fits(several, beside - left, room) for several in lines):
                return Block([line for several in lines for line in several], left, True)
    below = (_with_reason_below(_broken(e, room.width - left, room, room.need), room.width - left, room) for e in rows)
    return Block([line for several in below for line in several], left, False)


def _in_one(equation: Equation) -> Equation:
    """A row whose left side has no column."""
    assert equation.left is not None
    return equation._replace(left=None, right=row(equation.left, equation.right))


def _broken(equation: Equation, width: float, room: Room, need: float | None) -> list[Line]:
    if equation.is_heading:
        return [Line("heading", None, equation.right)]
    first, *rest = broken(equation.right, width, room.indent, room.measure, room.factors, need)
    ends = [None] * len(rest) + [equation]
    more = (Line("more", None, right, (), end) for right, end in zip(rest, ends[1:], strict=True))
    return [Line("first", equation.left, first, equation.reason, ends[0]), *more]


def _fits(lines: Sequence[Line], width: float, room: Room) -> bool:
    return all(room.measure(line.right) + room.indent * (line.kind == "more") <= width for line in lines)


def _with_reason_below(lines: Sequence[Line], width: float, room: Room) -> list[Line]:
    """The lines of a row, with the reason after the last where it fits, and else below."""
    reason = lines[0].reason
    bare = [line._replace(reason=()) for line in lines]
    after = bare[-1]._replace(reason=reason)
    if not reason or _fits([after], width - room.apart - room.words(reason), room):
        return [*bare[:-1], after]
    return [*bare[:-1], bare[-1]._replace(ends=None), Line("reason", None, Row(()), reason, bare[-1].ends)]
