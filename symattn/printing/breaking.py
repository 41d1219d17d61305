"""Where a formula that is too wide goes on in a new line: fewest lines, then the cheapest breaks, then even lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from ..core.boxes import (
    Accent,
    Box,
    Fence,
    Fraction,
    Function,
    Matrix,
    Name,
    Row,
    Script,
    Sign,
    SignKind,
    Space,
    Text,
    is_large,
    row,
)
from .media.neighbours import edge
from .widths import width

_PER_LEVEL = 30
_BETWEEN_FORMULAS = -10
_BEFORE = {"relation": 0, "sum": 10, "product": 20}
_AFTER_COMMA, _BEFORE_FACTOR, _BEFORE_NAME = 5, 40, 60
_RELATION_INSIDE = 15  # of a fence
_UNEVEN = 20  # for a line that is empty
_NEEDS_MORE = frozenset(("relation", "sum", "product", "prefix", "punctuation", "large", "opening"))


def broken(
    box: Box,
    room: float,
    indent: float = 2.0,
    measure: Callable[[Box], float] = width,
    factors: bool = True,
    need: float | None = 1.0,
) -> list[Box]:
    """The lines of a formula, of which all but the first stand ``indent`` to the right and begin with an operator.

    ``measure`` gives the width of a box in the unit of ``room``. ``factors`` says that neighbours are factors, before
    which a line may break; in source text they are none. Lines wider than ``need`` times the room are also broken deep
    inside, and where they are tall, unless it is None; what cannot be broken is left too wide.
    """
    if measure(box) <= room:
        return [box]
    for opening in (_AS_A_RULE, _IN_NEED) if need is not None else (_AS_A_RULE,):
        pieces = list(_pieces(box, factors, opening))
        ends = [0, *_ends([_measured(pieces, k, measure) for k in range(len(pieces))], room - opening.spare, indent)]
        lines = [_line([x for piece in pieces[start:end] for x in piece.parts]) for start, end in pairwise(ends)]
        if all(measure(line) <= (need or 1.0) * room - indent * bool(n) for n, line in enumerate(lines)):
            break
    return lines


class Piece(NamedTuple):
    """What stays together in a line, and the price of a break before it: below zero where another formula begins."""

    price: float
    box: Box


def pieces(box: Box, room: float) -> list[Piece]:
    """A formula for a medium that breaks lines by itself, at the cheapest places first; together they are the whole.

    Tall fences that are wide are broken too, and a fraction that is wider than the ``room`` is written in the line.
    """
    opening = _Opening(_IN_NEED.levels, _NARROW, _NARROW, 0.0, True, room)
    return [Piece(piece.price, _line(piece.parts)) for piece in _pieces(box, True, opening)]


class _Opening(NamedTuple):
    """What may be broken: how many fences within each other, low and tall ones of which width, in em, and products.

    ``names`` says that a line may begin with any factor, also one that is a name; a ``fraction`` wider than that is
    written in the line.
    """

    levels: int
    width: float
    tall: float
    spare: float  # room for marks that grow
    names: bool
    fraction: float = math.inf


_NARROW = 4.0  # em of a fence that is broken in a medium that breaks lines by itself, on a telephone too
_AS_A_RULE, _IN_NEED = _Opening(2, 9.0, math.inf, 0.0, False), _Opening(4, 2.0, 2.0, 0.7, False)


@dataclass(frozen=True, slots=True)
class _Half:
    """One of the two marks of a fence that may be broken open."""

    whole: Box  # a fence, or one with scripts
    mark: Box
    opens: bool


class _Piece(NamedTuple):
    """Parts that stay together, and the price of a break before them."""

    price: float
    parts: list[Box | _Half]


class _Measured(NamedTuple):
    price: float
    width: float
    lead: float  # of the space in front, which a break swallows


# --- the pieces ---


def _pieces(box: Box, factors: bool, opening: _Opening) -> Iterator[_Piece]:
    piece = _Piece(0, [])
    for price, part in _priced(box, 0, factors, opening):
        if price is not None and piece.parts:
            yield piece
            piece = _Piece(price, [])
        piece.parts.append(part)
    yield piece


def _priced(box: Box, level: int, factors: bool, opening: _Opening) -> Iterator[tuple[float | None, Box | _Half]]:
    """Each part with the price of a break before it, None where there can be none."""
    before: Box | None = None
    parts = [*_in_line([*_opened_rows(box)], opening.fraction)]
    keeps_items = opening is _AS_A_RULE and any(_is_of_kind(part, "punctuation") for part in parts)
    for part in parts:
        price = None if before is None else _price(before, part, factors, opening.names)
        if level and _is_of_kind(part, "relation"):  # of one item of a list, as in a recurrence
            price = None if keeps_items else _RELATION_INSIDE
        price = None if price is None else price + _PER_LEVEL * level
        before = part
        fence = part.base if isinstance(part, Script) else part
        if level < opening.levels and isinstance(fence, Fence) and _is_opened(fence, part, opening):
            yield price, _Half(part, _mark(fence.left, "opening"), True)
            yield from _priced(fence.inside, level + 1, factors, opening)
            closing = _mark(fence.right, "closing")
            marked = Script(closing, part.below, part.above) if isinstance(part, Script) else closing
            yield None, _Half(part, marked, False)
        else:
            yield price, part


def _is_of_kind(part: Box, kind: SignKind) -> bool:
    return isinstance(part, Sign) and part.kind == kind


def _is_opened(fence: Fence, whole: Box, opening: _Opening) -> bool:
    return width(whole) > (opening.tall if fence.tall else opening.width)


def _mark(mark: str, kind: Literal["opening", "closing"]) -> Box:
    return Sign(mark, kind) if mark else Row(())


def _opened_rows(box: Box) -> Iterator[Box]:
    """The parts of a row, and those of rows among them."""
    pending = [box]
    while pending:
        part = pending.pop()
        if isinstance(part, Row):
            pending.extend(reversed(part.parts))
        else:
            yield part


def _in_line(parts: Sequence[Box], widest: float) -> Iterator[Box]:
    """The parts, in which a fraction that is too wide, and no factor of what follows, is a quotient in the line."""
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        if not isinstance(part, Fraction) or width(part) <= widest or not (after is None or _ends_a_product(after)):
            yield part
            continue
        above = [*_opened_rows(part.above)]
        yield from [Fence(part.above)] if any(_is_of_kind(x, "sum") for x in above) else above
        yield Sign("/")  # which stays with what is before it
        yield Fence(part.below) if isinstance(part.below, Row) else part.below


def _ends_a_product(part: Box) -> bool:
    return isinstance(part, (Space, Text)) or (
        isinstance(part, Sign) and part.kind in ("sum", "relation", "punctuation", "closing")
    )


def _price(before: Box, part: Box, factors: bool, names: bool) -> float | None:
    if isinstance(part, Space):
        return _BETWEEN_FORMULAS if part.width >= 1 else None
    if isinstance(before, Space):
        return None
    if isinstance(part, Text) or (isinstance(before, Sign) and before.kind == "punctuation"):
        return _AFTER_COMMA
    if isinstance(part, Sign) and part.mark != "↦" and part.kind in _BEFORE and not _needs_more(before):
        return _BEFORE[part.kind]
    if not factors or _needs_more(before):
        return None
    if _begins_a_factor(part):
        return _BEFORE_FACTOR
    return _BEFORE_NAME if names and _is_factor(before) and _is_name(part) else None


def _begins_a_factor(box: Box) -> bool:
    """Whether a reader sees that a factor begins: a fence, a function, a matrix or a large sign, not ``(W)_{i j}``."""
    while isinstance(box, Script) and (box.below is None or not isinstance(box.base, Fence)):
        box = box.base
    return isinstance(box, (Fence, Function, Matrix)) or is_large(box)


def _is_factor(box: Box) -> bool:
    """Whether a name that follows is another factor."""
    while isinstance(box, Script):
        box = box.base
    return isinstance(box, Fence) or _is_name(box)


def _is_name(box: Box) -> bool:
    """Whether a box is one letter, with what stands at it: two of them side by side are factors."""
    while isinstance(box, Script):
        box = box.base
    return isinstance(box, (Name, Accent)) and not (isinstance(box, Name) and box.style == "upright")


def _needs_more(box: Box) -> bool:
    """Whether a box has its operand to its right, so that a sign after it is none between two operands."""
    end = edge(box, -1)
    return isinstance(end, Function) or (isinstance(end, Sign) and (end.kind in _NEEDS_MORE or end.mark == "/"))


# --- the lines ---


def _measured(pieces: Sequence[_Piece], k: int, measure: Callable[[Box], float]) -> _Measured:
    """A piece where it stands: with the space that its neighbour before gives it."""
    parts = [_plain(part) for part in pieces[k].parts]
    lead = measure(parts[0]) if isinstance(parts[0], Space) else 0.0
    if k == 0:
        return _Measured(0, measure(row(*parts)), lead)
    before = _plain(pieces[k - 1].parts[-1])
    return _Measured(pieces[k].price, measure(row(before, *parts)) - measure(before), lead)


def _plain(part: Box | _Half) -> Box:
    return part.mark if isinstance(part, _Half) else part


def _ends(pieces: Sequence[_Measured], room: float, indent: float) -> Iterator[int]:
    """Where lines end, by dynamic programming from the last piece on."""
    best: dict[int, tuple[int, float, int]] = {len(pieces): (0, 0.0, 0)}
    for start in reversed(range(len(pieces))):
        left = room - (indent if start else 0.0) + pieces[start].lead
        ways = []
        for end in range(start + 1, len(pieces) + 1):
            left -= pieces[end - 1].width
            if left < 0 and end > start + 1:
                break
            lines, cost, _ = best[end]
            price = pieces[start].price if start else 0
            ways.append((lines + 1, cost + price + _UNEVEN * (left / room) ** 2, end))
        best[start] = min(ways)
    start = 0
    while start < len(pieces):
        start = best[start][2]
        yield start


def _line(parts: Iterable[Box | _Half]) -> Box:
    """The parts of a line as one box: fences that close in their line are whole again."""
    rows: list[list[Box]] = [[]]
    opened: list[_Half] = []
    for part in parts:
        if not isinstance(part, _Half):
            rows[-1].append(part)
        elif part.opens:
            rows.append([])
            opened.append(part)
        elif opened:
            opened.pop()
            rows.pop()
            rows[-1].append(part.whole)
        else:
            rows[-1] = _half_of(part, _trimmed(rows[-1]))
    for half in reversed(opened):
        inside = rows.pop()
        rows[-1] += _half_of(half, inside)
    return row(*_trimmed(rows[0]))


def _trimmed(boxes: list[Box]) -> list[Box]:
    """The boxes of a line without the space in front, which a break swallows."""
    return boxes[1:] if boxes and isinstance(boxes[0], Space) else boxes


def _half_of(half: _Half, inside: list[Box]) -> list[Box]:
    """What is in a line of a fence that goes on in another: both marks grow where what is between them is tall."""
    fence, content = half.whole.base if isinstance(half.whole, Script) else half.whole, row(*inside)
    if not (isinstance(fence, Fence) and fence.tall):
        return [half.mark, *inside] if half.opens else [*inside, half.mark]
    if not content.tall:
        content = row(content, Space(0.0, is_tall=True))
    if half.opens:
        return [Fence(content, fence.left, "")]
    grown = Fence(content, "", fence.right)
    return [Script(grown, half.whole.below, half.whole.above) if isinstance(half.whole, Script) else grown]
