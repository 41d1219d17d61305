r"""Where indices run: ``\forall i``, ``\text{for each head } h``, ``i = 1, \ldots, n``, ``1 \le i \le n``.

A formula holds for all values of what is free in it, so that "for all i" says no more than that i is an index, and
perhaps its range. What else might be said here, as a condition on two indices, would be lost, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sympy

from ...core.node import Tensor
from ...errors import ParseError
from .lexer import Token
from .names import Names, Range, key_of
from .parser import Parser
from .runs import is_dots
from .text import FormulaText
from .tree import Fence, Items, Number, Relation, Symbol, Tree

Sizes = Callable[[Tree], sympy.Expr]


class Quantifier:
    """What a stretch of a text says of indices; ``size_of`` reads their bounds."""

    def __init__(self, text: FormulaText, names: Names, tokens: Sequence[Token]) -> None:
        self.text, self.names = text, names
        self.local: dict[str, Range] = {}  # what holds for one statement only, the one in front
        self.quantified = bool(tokens) and tokens[0].mark == "∀"
        inside = tokens[1:] if self.quantified else tokens
        self.fenced = len(inside) > 2 and inside[0].mark == "(" and inside[-1].mark == ")"
        self.tokens = inside[1:-1] if self.fenced else inside

    def tree(self) -> Tree | None:
        """What it is, where it says something of indices: a range may stand without a quantifier."""
        if self.quantified:
            return Parser(self.text, self.tokens, lambda head: False).read()
        if self.fenced and [t.mark for t in self.tokens[1:4:2]] == ["≤", "≤"] and self.tokens[2].kind == "letter":
            return Parser(self.text, self.tokens, lambda head: False).read()
        front = 0  # the letters before the last one, as in ``i, j = 1, \\ldots, n``
        while [t.kind == "letter" or t.mark for t in self.tokens[front : front + 2]] == [True, ","]:
            front += 2
        behind = self.tokens[front:]
        two = self.fenced and [t.kind if t.kind != "sign" else t.mark for t in behind] == ["letter", "=", *_TWO]
        if two:
            return Parser(self.text, self.tokens, lambda head: False).read()
        if len(behind) < 5 or behind[0].kind != "letter":
            return None
        if behind[1].mark == "∈" and behind[2].kind == "open" and behind[2].mark in "{[":
            return Parser(self.text, self.tokens, lambda head: False).read()
        if behind[1].mark != "=" or not any(token.mark == "…" for token in behind):
            return None
        tree = Parser(self.text, self.tokens, lambda head: False).read()
        return tree if isinstance(tree, Items) and _is_range(tree.items[front // 2 :]) else None

    def declare(self, tree: Tree, size_of: Sizes) -> None:
        """Has the names know the indices and their ranges. Raises ParseError for what says something else."""
        items = tree.items if isinstance(tree, Items) else (tree,)
        at = next((n for n, item in enumerate(items) if isinstance(item, Relation)), len(items))
        if at == len(items):
            for letter in items:
                self._plain(letter)
        else:
            first = items[at]
            assert isinstance(first, Relation)
            if _is_range(items[at:]):
                last, low, high = first.sides[0], first.sides[1], items[-1]
            elif at == len(items) - 1:
                last, low, high = self._related(first)
            else:
                raise self._error(tree)
            for letter in (*items[:at], last):
                self._ranged(letter, size_of(low), size_of(high))
        self.names.indices = frozenset(self.names.ranges)

    def _related(self, tree: Relation) -> tuple[Tree, Tree, Tree]:
        r"""The index of ``i \in \{1, \ldots, n\}``, ``i \in [n]``, ``1 \le i \le n``, and its ends."""
        if tree.signs == ("≤", "≤") and isinstance(tree.sides[1], Symbol):
            return tree.sides[1], tree.sides[0], tree.sides[2]
        letter, of = tree.sides[0], tree.sides[-1]
        if tree.signs == ("∈",) and isinstance(of, Fence):
            if of.left == "{" and _is_progression(of.items):
                return letter, of.items[0], of.items[-1]
            if of.left == "[" and len(of.items) == 1:
                return letter, Number(of.span, "1"), of.items[0]
        raise self._error(tree)

    def _ranged(self, letter: Tree, low: sympy.Expr, high: sympy.Expr) -> None:
        if not key_of(letter):
            raise self._error(letter)
        found = Range(low, sympy.expand(high - low + 1))
        known = self.names.ranges.setdefault(key_of(letter), found)
        if known != found and self.fenced and key_of(letter) not in self.names.given_ranges:
            self.local[key_of(letter)] = found
        elif known != found:
            raise self.text.error(
                f"{self.text.part(letter.span)} runs from {found.first} over {found.size} places here, and from "
                f"{known.first} over {known.size} elsewhere",
                letter.span,
            )

    def _plain(self, tree: Tree) -> None:
        """A letter without a range: an index, or a name that is declared, of which all is said for all values."""
        entry = self.names.find(tree)
        if isinstance(tree, Symbol) and (entry is None or not isinstance(entry.value, Tensor)):
            self.names.quantified.add(key_of(tree))
        elif entry is None:
            raise self._error(tree)

    def _error(self, tree: Tree) -> ParseError:
        return self.text.error(
            r"for which values this is said is not read: write an index, as \forall i, or its range, as "
            r"i = 1, \ldots, n",
            tree.span,
        )


_TWO = ("number", ",", "number")


def ranges_apart(part: list[Token]) -> list[list[Token]]:
    r"""``(i = 1, \\ldots, n; j = 1, \\ldots, m)`` as two ranges, each in parentheses; any other part as it is."""
    if len(part) < 3 or part[0].mark != "(" or part[-1].mark != ")" or not any(t.mark == "…" for t in part):
        return [part]
    pieces: list[list[Token]] = [[part[0]]]
    for token in part[1:-1]:
        if token.mark == ";":
            pieces[-1].append(part[-1])
            pieces.append([part[0]])
        else:
            pieces[-1].append(token)
    pieces[-1].append(part[-1])
    return pieces


def _is_range(items: Sequence[Tree]) -> bool:
    """Whether these are ``i = 1``, perhaps a 2, dots, and a last place."""
    first = items[0]
    if not isinstance(first, Relation) or first.signs != ("=",):
        return False
    return _is_progression((first.sides[1], *items[1:]))


def _is_progression(items: Sequence[Tree]) -> bool:
    """Whether these are a first place, perhaps those that follow it, dots, and the last one: ``1, 2, \\ldots, n``."""
    if len(items) == 2:
        first, second = (int(x.digits) if isinstance(x, Number) and x.digits.isdecimal() else -1 for x in items)
        return first >= 0 and second == first + 1
    if len(items) < 3 or not is_dots(items[-2]):
        return False
    told = [int(x.digits) if isinstance(x, Number) and x.digits.isdecimal() else None for x in items[:-2]]
    return told == [None] or told == [(told[0] or 0) + n for n in range(len(told))]
