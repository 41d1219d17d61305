"""Rows as lines of text: relation signs and reasons below each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..core.boxes import Box, row
from .breaking import broken
from .layout import Equation, Line, Room, laid_out
from .media.numpy import Writer
from .prose import EQUALS, Step, Words

WIDTH = 100  # of a line of text
COLUMN = 50
_REASON = "  # "


def numpy_lines(box: Box, width: int = WIDTH) -> list[str]:
    """A formula in the NumPy dialect as lines, of which all but the first are to be indented by two."""
    write = Writer().written
    return [write(line) for line in broken(box, width, 2, lambda part: len(write(part)), factors=False)]


def numpy_block(rows: Iterable[Step], width: int = WIDTH, column: int = COLUMN, ragged: bool = False) -> list[str]:
    """Rows in the NumPy dialect as lines: see ``text_block``."""
    equations = [Equation(r.left, row(EQUALS, r.right), r.reason) for r in rows]
    return text_block(equations, Writer().written, width, column, ragged, factors=False)


def text_block(
    equations: Sequence[Equation],
    write: Callable[[Box], str],
    width: int = WIDTH,
    column: int = COLUMN,
    ragged: bool = False,
    factors: bool = True,
) -> list[str]:
    """Rows as lines; what goes on stands under the relation sign, and reasons stand beside, behind or below.

    Relation signs stand below each other, or where ``ragged`` behind the left side of each row. Reasons begin at
    ``column`` at most: behind rows that are longer they are out of line.
    """

    def told(words: Words) -> str:
        return "".join(part if isinstance(part, str) else write(part) for part in words)

    def told_width(words: Words) -> float:
        return len(told(words))

    room = Room(
        width - 1, lambda box: len(write(box)), told_width, indent=2, apart=len(_REASON), narrow=0, factors=factors
    )
    block = laid_out(equations, room)
    left, texts = int(block.left), list[str]()
    for line in block.lines:
        before = "" if line.left is None else write(line.left)
        left = len(before) if ragged and line.kind == "first" else left
        texts.append((f"{before:<{left}} " if left else "") + _right(line, write))
    lines = [*zip(texts, (told(line.reason) for line in block.lines), strict=True)]
    start = max((len(text) for text, reason in lines if reason and len(text) <= column), default=0)
    return [_with_reason(text, reason, start, width) if reason else text for text, reason in lines]


def _right(line: Line, write: Callable[[Box], str]) -> str:
    if line.kind == "reason":
        return ""
    return ("  " if line.kind == "more" else "") + write(line.right)


def _with_reason(text: str, reason: str, start: int, width: int) -> str:
    fits = start + len(_REASON) + len(reason) <= width
    return f"{text:<{start if fits else 0}}{_REASON}{reason}"
