"""Rows as lines of text: relation signs and reasons below each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.boxes import Box
from .layout import Equation, Line, Room, laid_out

WIDTH = 100  # of a line of text
_REASON = "  # "
_NARROW = 40  # characters of a reason that rows are broken for


def text_block(equations: Sequence[Equation], write: Callable[[Box], str], width: int = WIDTH) -> list[str]:
    """Rows as lines; what goes on stands under the relation sign, and reasons stand beside, behind or below."""
    room = Room(width, lambda box: len(write(box)), indent=2, apart=len(_REASON), narrow=_NARROW)
    block = laid_out(equations, room)
    texts = [_text(line, int(block.left), write) for line in block.lines]
    reasoned = [len(text) for text, line in zip(texts, block.lines, strict=True) if line.reason]
    column = max(reasoned, default=0) if block.beside else 0
    return [
        f"{text:<{column}}{_REASON}{line.reason}" if line.reason else text
        for text, line in zip(texts, block.lines, strict=True)
    ]


def _text(line: Line, left: int, write: Callable[[Box], str]) -> str:
    before = "" if line.left is None else write(line.left)
    after = "" if line.kind == "reason" else write(line.right)
    indent = "  " if line.kind == "more" else ""
    return (f"{before:<{left}} " if left else "") + indent + after
