r"""Matrices and cases, ``\begin{bmatrix} ... \end{bmatrix}``, as trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lexer import Token
from .tree import Grid, Symbol, Tree

if TYPE_CHECKING:
    from .parser import Parser


_SAY_NOTHING = frozenset({"", "if", "when", "for", "where", "and", "with"})  # in front of a condition


def grid(parser: Parser, token: Token) -> Grid:
    """The cells of an environment, whose first word is read already."""
    name = _environment(parser, token)
    if name == "array":
        _columns(parser)
    parser.bars.append("&")
    rows: list[tuple[Tree, ...]] = []
    while not _ends(parser):
        if cells := _row(parser):
            rows.append(cells)
        if parser.meets("row"):
            parser.next()
        elif not _ends(parser):
            raise parser.error(f"{parser.shown(parser.token)} is not expected in a cell")
    end = parser.next()
    if _environment(parser, end) != name:
        raise parser.error(f"\\begin{{{name}}} is closed by another \\end", end.span)
    parser.bars.pop()
    return Grid(parser.since(token.span.start), name, tuple(rows))


def _columns(parser: Parser) -> None:
    """Passes over the columns of an array, ``{c|c}``, which say how it looks."""
    opened = parser.token
    if not parser.meets("{"):
        raise parser.error(r"\begin{array} needs its columns, as in {cc}")
    while not parser.meets("}"):
        if parser.meets("end"):
            raise parser.error("{ is not closed", opened.span)
        parser.next()
    parser.next()


def _row(parser: Parser) -> tuple[Tree, ...]:
    """The cells of one row, which may have none, but not some that are empty."""
    cells: list[Tree] = []
    while True:
        empty = parser.meets("&") or parser.meets("row") or _ends(parser)
        if empty and (cells or parser.meets("&")):
            raise parser.error("an empty cell is not decided: write 0, a value, or dots")
        if empty:
            return ()
        cells.append(_cell(parser))
        if not parser.meets("&"):
            return tuple(cells)
        parser.next()


def _ends(parser: Parser) -> bool:
    return parser.meets("command", r"\end") or parser.meets("end")


def _environment(parser: Parser, token: Token) -> str:
    """The name of an environment, between braces."""
    if token.kind == "end" or not parser.meets("{"):
        raise parser.error(r"\begin{...} needs its \end{...}", token.span)
    parser.next()
    name = ""
    while not parser.meets("}") and not parser.meets("end"):
        name += parser.next().mark
    parser.next()
    return name.replace("∗", "*")


def _cell(parser: Parser) -> Tree:
    """A cell; words such as "if" say nothing, and "otherwise" is a condition of its own."""
    while parser.meets("prose") and parser.token.mark not in ("otherwise", "else"):
        if parser.token.mark.strip(" ,") not in _SAY_NOTHING:
            raise parser.error("these words are not read: write the condition in signs")
        parser.next()
    if parser.meets("prose"):
        token = parser.next()
        tree: Tree = Symbol(token.span, "otherwise", "upright")
    else:
        tree = parser.expression(0)
    while parser.meets("sign", ",") or parser.meets("sign", "."):
        parser.next()
    return tree
