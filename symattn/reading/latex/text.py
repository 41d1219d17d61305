"""The text of a formula: places in it, and complaints with a caret under the place."""

from __future__ import annotations

from typing import NamedTuple

from ...errors import ParseError
from ..source import LONGEST, WIDEST


class Span(NamedTuple):
    """Where something stands in the text, from its first character to behind its last."""

    start: int
    end: int


class FormulaText:
    """The text, with complaints about places in it. Raises ParseError for text that is too long or is no text."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise ParseError(f"a formula is text, not {type(text).__name__}")
        if len(text) > LONGEST:
            raise ParseError(f"the formula has {len(text)} characters; at most {LONGEST} are read")
        self.text = text

    def error(self, problem: str, span: Span | None = None) -> ParseError:
        """The complaint, with a caret under the place and the line around it."""
        start = min(span.start if span is not None else 0, len(self.text))
        line_start = self.text.rfind("\n", 0, start) + 1
        line_end = self.text.find("\n", start)
        line = self.text[line_start : len(self.text) if line_end < 0 else line_end]
        column = start - line_start
        first = max(0, column - WIDEST // 2)
        before, after = _plain(line[first:column]), _plain(line[column : first + WIDEST])
        return ParseError(problem, before + after or " ", len(before))

    def part(self, span: Span) -> str:
        """What stands at a place, for messages."""
        shown = _plain(" ".join(self.text[span.start : span.end].split()))
        return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
