"""Equalities of matrices as rules on words, closed under what follows from two of them: Buchberger's way, bounded.

Each rule says where it comes from, so that it is checked without search: what is given or declared, a transpose, a
product of square matrices that is the identity turned around, or a combination of earlier ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy

from ...core.budget import Budget
from ...core.sizes import same_size
from .words import Letter, Word, Words, combination, in_order, scaled, turned

_MOST_RULES = 60
_MOST_PAIRS = 1500
_LONGEST = 9  # word in which two rules meet
_MOST_TERMS = 12  # of a rule

Part = tuple[sympy.Expr, Word, int, Word]  # a coefficient times a rule between words


class Given(NamedTuple):
    """Of a hypothesis, by its number."""

    number: int


class Declared(NamedTuple):
    """Of a letter: its product with what is its inverse, behind it or before it; of ones, how many there are."""

    letter: Letter
    before: bool = False


class Commuting(NamedTuple):
    """Of two diagonal matrices, whose product does not depend on their order."""

    first: Letter
    second: Letter


class Transposed(NamedTuple):
    """The transpose of a rule."""

    rule: int


class TwoSided(NamedTuple):
    """``b a = c 1`` of a rule ``a b = c 1``, where a is square; ``split`` is the length of a."""

    rule: int
    split: int


class Combined(NamedTuple):
    """A combination of rules between words."""

    parts: tuple[Part, ...]


Origin = Given | Declared | Commuting | Transposed | TwoSided | Combined


@dataclass(frozen=True)
class WordRule:
    """``lead = -(rest)``: a polynomial that is zero, whose last word has the coefficient 1, and where it comes from."""

    lead: Word
    words: Words
    origin: Origin

    @property
    def rules(self) -> tuple[int, ...]:
        """The rules that it rests on."""
        if isinstance(self.origin, Combined):
            return tuple(k for _, _, k, _ in self.origin.parts)
        return (self.origin.rule,) if isinstance(self.origin, (Transposed, TwoSided)) else ()


class ContradictionError(Exception):
    """A number that is not 0 would be 0."""


def reduced(words: Words, leads: Sequence[tuple[int, Word]], rules: Sequence[WordRule]) -> tuple[Words, list[Part]]:
    """A polynomial without the leading words of some rules, and what was taken off."""
    parts: list[Part] = []
    done: dict[Word, sympy.Expr] = {}
    rest = dict(words)
    while rest:
        word = max(rest, key=in_order)
        found = next(((k, at, lead) for k, lead in leads for at in _places(lead, word)), None)
        if found is None:
            done[word] = rest.pop(word)
            continue
        k, at, lead = found
        part = (rest[word], word[:at], k, word[at + len(lead) :])
        parts.append(part)
        rest = combination([(sympy.S.One, (), rest, ()), (-part[0], part[1], rules[k].words, part[3])])
    return done, parts


def _places(lead: Word, word: Word) -> Iterator[int]:
    return (at for at in range(len(word) - len(lead) + 1) if word[at : at + len(lead)] == lead)


def turned_around(rule: WordRule, split: int) -> Words | None:
    """``b a - c 1`` for a rule ``a b - c 1`` on square matrices, where a has a given length."""
    first, last = rule.lead[:split], rule.lead[split:]
    if not (first and last and len(rule.words) == 2 and () in rule.words and rule.words[()].is_nonzero):
        return None
    (rows, inner), columns = (first[0].ends[0], first[-1].ends[1]), last[-1].ends[1]
    if None in (rows, inner, columns) or not (same_size(rows, inner) and same_size(rows, columns)):
        return None
    return {last + first: sympy.S.One, (): rule.words[()]}


class Completion:
    """Rules from equalities, and what follows from pairs of them, as far as bounds let it go.

    Raises ContradictionError where no matrices of positive size satisfy the equalities.
    """

    def __init__(self, start: Sequence[tuple[Words, Origin]], budget: Budget) -> None:
        self.rules: list[WordRule] = []
        self.budget = budget
        self._active: dict[int, Word] = {}
        self._pairs: list[tuple[int, int, int, int, int, int]] = []
        for words, origin in start:
            added = self._base(words, origin)
            if added is not None:
                self._base(turned(self.rules[added].words), Transposed(added))
        for _ in range(_MOST_PAIRS):
            if not self._pairs or len(self.rules) >= _MOST_RULES:
                break
            budget.check()
            _, _, _, j, k, shared = heapq.heappop(self._pairs)
            if j in self._active and k in self._active:
                self._meet(j, k, shared)

    @property
    def leads(self) -> list[tuple[int, Word]]:
        """The rules that are used, and their leading words."""
        return list(self._active.items())

    def _base(self, words: Words, origin: Origin) -> int | None:
        """A rule as it is stated, and what is left of it by the others."""
        rule = monic(words, origin)
        if rule is None or not reduced(rule.words, self.leads, self.rules)[0]:
            return None
        number = len(self.rules)
        self.rules.append(rule)
        self._learn(combination([(sympy.S.One, (), rule.words, ())]), [(sympy.S.One, (), number, ())], number)
        return number

    def _learn(self, words: Words, parts: list[Part], same: int | None = None) -> None:
        """Take what a combination of rules leaves among the rules; ``same`` is the number it has if it stays."""
        left, taken = reduced(words, self.leads, self.rules)
        if not left or len(left) > _MOST_TERMS:
            return
        parts = [*parts, *((-c, before, k, after) for c, before, k, after in taken)]
        if taken or same is None:
            top = left[max(left, key=in_order)]
            rule = monic(left, Combined(tuple((c / top, *rest) for c, *rest in parts)))
            if rule is None:
                return
            same = len(self.rules)
            self.rules.append(rule)
        self._activate(same)

    def _activate(self, number: int) -> None:
        lead = self.rules[number].lead
        if not lead:
            raise ContradictionError
        longer = [k for k, other in self._active.items() if any(True for _ in _places(lead, other))]
        for k in longer:
            del self._active[k]
        self._active[number] = lead
        for k in self._active:
            self._overlaps(k, number)
            if k != number:
                self._overlaps(number, k)
        for k in longer:
            self._learn(self.rules[k].words, [(sympy.S.One, (), k, ())])
        for split in range(1, len(lead)):
            around = turned_around(self.rules[number], split)
            if around is not None:
                self._base(around, TwoSided(number, split))

    def _overlaps(self, j: int, k: int) -> None:
        first, second = self.rules[j].lead, self.rules[k].lead
        for shared in range(1, min(len(first), len(second))):
            length = len(first) + len(second) - shared
            if first[-shared:] == second[:shared] and length <= _LONGEST:
                heapq.heappush(self._pairs, (length, max(j, k), min(j, k), j, k, shared))

    def _meet(self, j: int, k: int, shared: int) -> None:
        """What follows from two rules that both apply to one word."""
        after, before = self.rules[k].lead[shared:], self.rules[j].lead[:-shared]
        parts: list[Part] = [(sympy.S.One, (), j, after), (-sympy.S.One, before, k, ())]
        self._learn(total(parts, self.rules), parts)


def total(parts: Sequence[Part], rules: Sequence[WordRule]) -> Words:
    """The polynomial that a combination of rules is."""
    return combination((c, before, rules[k].words, after) for c, before, k, after in parts)


def monic(words: Words, origin: Origin) -> WordRule | None:
    """A polynomial divided by the coefficient of its last word; None where that may be 0."""
    if not words:
        return None
    lead = max(words, key=in_order)
    c = words[lead]
    return WordRule(lead, words if c == 1 else scaled(1 / c, words), origin) if c.is_nonzero else None


def needed(used: Sequence[int], rules: Sequence[WordRule]) -> list[int]:
    """The rules that some rest on, and these, in their order."""
    found: set[int] = set()
    waiting = list(used)
    while waiting:
        k = waiting.pop()
        if k not in found:
            found.add(k)
            waiting += rules[k].rules
    return sorted(found)


def follows(rule: WordRule, rules: Sequence[WordRule], stated: Callable[[Origin], Words | None]) -> bool:
    """Whether a rule is what its origin says; ``stated`` gives what is given and declared."""
    origin = rule.origin
    words: Any
    if isinstance(origin, Transposed):
        words = turned(rules[origin.rule].words)
    elif isinstance(origin, TwoSided):
        words = turned_around(rules[origin.rule], origin.split)
    elif isinstance(origin, Combined):
        words = total(origin.parts, rules)
    else:
        words = stated(origin)
    again = None if words is None else monic(words, origin)
    return again is not None and (again.lead, dict(again.words)) == (rule.lead, dict(rule.words))


def sides(rule: WordRule) -> tuple[Words, Words]:
    """The leading word, and what it is equal to."""
    rest = {word: -c for word, c in rule.words.items() if word != rule.lead}
    return {rule.lead: sympy.S.One}, rest


def shape_of(word: Word) -> tuple[Any, ...]:
    """The shape of the tensor that a word is."""
    return tuple(n for n in (word[0].ends[0], word[-1].ends[1]) if n is not None)
