"""Text as Python's syntax tree: parsed, never evaluated, kept within limits, with a place for every complaint."""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import ParseError, SymattnError

LONGEST = 10_000  # characters
DEEPEST = 100  # levels of nesting
WIDEST = 100  # characters of a line shown around a place


class Source:
    """A text and its syntax tree.

    Raises ParseError for text that is too long, nested too deeply, not printable ASCII, or not Python's syntax.
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise ParseError(f"an expression is text, not {text!r}")
        if len(text) > LONGEST:
            raise ParseError(f"the text has {len(text)} characters; at most {LONGEST} are read")
        self.lines = textwrap.dedent(text).strip().splitlines()
        self._check_characters()
        self.statements = self._parse()
        self._check_depth()

    def error(self, problem: str, tree: ast.AST | None = None) -> ParseError:
        """The complaint, with a caret under the tree it is about; an operator has it under its sign."""
        line, column = getattr(tree, "lineno", 1), getattr(tree, "col_offset", 0)
        if isinstance(tree, ast.BinOp) and tree.left.end_lineno is not None:
            line, column = tree.left.end_lineno, tree.left.end_col_offset or 0
            after = self.lines[line - 1][column:]
            column += len(after) - len(after.lstrip(" )"))
        return self._error(problem, line, column)

    @contextmanager
    def place(self, tree: ast.AST) -> Iterator[None]:
        """Puts the place into the error of an operation, whose type stays."""
        try:
            yield
        except ParseError:
            raise
        except SymattnError as problem:
            shown = str(self.error(str(problem), tree))
            raise type(problem)(shown) from None

    def spelling(self, tree: ast.expr | ast.arg) -> str:
        """The text of a tree on one line; of a name with its primes."""
        return self.lines[tree.lineno - 1][tree.col_offset : tree.end_col_offset]

    def _error(self, problem: str, line: int, column: int) -> ParseError:
        source = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        first = max(0, column - WIDEST // 2)
        return ParseError(problem, source[first : first + WIDEST], min(column - first, WIDEST))

    def _check_characters(self) -> None:
        for number, line in enumerate(self.lines, 1):
            for column, character in enumerate(line):
                if not (character.isascii() and character.isprintable()):
                    self.lines = [ascii(text)[1:-1] for text in self.lines]
                    problem = f"the character {character!a} is not printable ASCII"
                    raise self._error(problem, number, len(ascii(line[:column])) - 2)

    def _parse(self) -> list[ast.stmt]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # what Python only warns about is not read either
                return ast.parse("\n".join(map(_without_primes, self.lines))).body
        except SyntaxError as problem:
            reason = f"cannot be read: {problem.msg}"
            raise self._error(reason, problem.lineno or 1, (problem.offset or 1) - 1) from None
        except (ValueError, RecursionError, MemoryError):
            raise self.error("the text is nested too deeply, or holds too long a number") from None

    def _check_depth(self) -> None:
        level: list[ast.AST] = list(self.statements)
        for _ in range(DEEPEST):
            level = [child for tree in level for child in ast.iter_child_nodes(tree)]
        if level:
            deep = next((tree for tree in level if hasattr(tree, "lineno")), None)
            raise self.error(f"nested over {DEEPEST} levels deep: name its parts, as in 'Z = Q @ K.T; Z + 1'", deep)


def _without_primes(line: str) -> str:
    """A line with underscores for the primes of names, ``Q'``: a mark opens text where no name is in front of it."""
    read, quote, before = "", "", ""
    for character in line:
        if character == "#" and not quote:
            break
        if not quote and character == "'" and (before.isalnum() or (before in ("_", "'") and read.endswith("_"))):
            read, before = read + "_", character
            continue
        if character in "'\"" and quote in ("", character):
            quote = "" if quote else character
        read, before = read + character, character
    return read
