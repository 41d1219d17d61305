"""LaTeX source, word by word."""

from __future__ import annotations

import re

from ...errors import OperandError, ParseError
from .latex_words import DELIMITERS

_WORD = re.compile(r"\s+|\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|:=|'+|.", re.DOTALL)


class Source:
    """A place in LaTeX source, from which words and groups are taken; ``column`` is where the last word began."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = self.column = 0

    def error(self, problem: str, column: int | None = None) -> OperandError:
        return OperandError(str(ParseError(problem, self.source, self.column if column is None else column)))

    def follows(self, mark: str) -> bool:
        return self.source.startswith(mark, self.at)

    def word(self, short: bool = False) -> str:
        """The next word; of a number the first digit alone where it is ``short``, as in ``x^23``."""
        match = _WORD.match(self.source, self.at)
        found = "" if match is None else match[0]
        found = found[:1] if short and found.isdecimal() else found
        self.column, self.at = self.at, self.at + len(found)
        return found

    def group(self, word: str) -> str:
        """The source between the braces that stand here."""
        start, depth = self.at, 0
        while self.at < len(self.source):
            token = self.word()
            depth += (token == "{") - (token == "}")
            if not depth and not token.isspace():
                break
        given = self.source[start : self.at].strip()
        if depth or given[:1] != "{":
            raise self.error(f"{word} needs something in braces behind it", start)
        return given[1:-1]

    def groups(self) -> str:
        """The groups that stand here, as they are."""
        start = self.at
        while self.follows("{"):
            self.group("{")
        return self.source[start : self.at]

    def delimiter(self) -> str:
        r"""The mark behind ``\left`` or ``\right``."""
        word = self.word()
        while word.isspace():
            word = self.word()
        if word not in DELIMITERS:
            raise self.error(rf"{word or 'the end'} is no fence: write one of ( ) [ ] \{{ \}} | or a dot for none")
        return DELIMITERS[word]
