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
        if not any(token.mark == "…" for token in self.tokens) or len(self.tokens) < 5:
            return None
        if self.tokens[1].mark != "=" or self.tokens[0].kind != "letter":
            return None
        tree = Parser(self.text, self.tokens, lambda head: False).read()
        return tree if isinstance(tree, Items) and _is_range(tree.items) else None

    def declare(self, tree: Tree, size_of: Sizes) -> None:
        """Has the names know the indices and their ranges. Raises ParseError for what says something else."""
        items = tree.items if isinstance(tree, Items) else (tree,)
        if _is_range(items):
            first = items[0]
            assert isinstance(first, Relation)
            self._ranged(first.sides[0], size_of(first.sides[1]), size_of(items[-1]))
        elif isinstance(items[-1], Relation):
            letters = (*items[:-1], *self._related(items[-1], size_of))
            for letter in letters:
                self._plain(letter)
        else:
            for letter in items:
                self._plain(letter)
        self.names.indices = frozenset(self.names.ranges)

    def _related(self, tree: Relation, size_of: Sizes) -> list[Tree]:
        r"""``i \in \{1, \ldots, n\}``, ``i \in [n]``, ``1 \le i \le n``."""
        if tree.signs == ("≤", "≤") and isinstance(tree.sides[1], Symbol):
            self._ranged(tree.sides[1], size_of(tree.sides[0]), size_of(tree.sides[2]))
            return []
        of = tree.sides[-1]
        if tree.signs == ("∈",) and isinstance(of, Fence):
            if of.left == "{" and len(of.items) > 2 and is_dots(of.items[-2]):
                self._ranged(tree.sides[0], size_of(of.items[0]), size_of(of.items[-1]))
                return []
            if of.left == "[" and len(of.items) == 1:
                self._ranged(tree.sides[0], sympy.S.One, size_of(of.items[0]))
                return []
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


def _is_range(items: Sequence[Tree]) -> bool:
    """Whether these are ``i = 1``, perhaps a 2, dots, and a last place."""
    begins = len(items) > 2 and isinstance(items[0], Relation) and items[0].signs == ("=",)
    between = all(is_dots(item) or isinstance(item, Number) for item in items[1:-1])
    return begins and between and is_dots(items[-2])
