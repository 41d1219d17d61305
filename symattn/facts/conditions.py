"""What a condition says, read by its comparisons: as cases of facts about linear forms of entries and indices."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import sympy
from sympy.core.relational import Relational

from ..scalars.formulas import Choice, Read
from .linear import Fact, form_of, replaced
from .ranges import NOT_NEGATIVE, POSITIVE, ZERO, Range, above

MOST_CASES = 8

T = TypeVar("T")


def by_comparisons(
    c: Any, holds: bool, literal: Callable[[Any], T], every: Callable[..., T], some: Callable[..., T]
) -> T:
    """What is known where a condition holds, or where it fails, by what is known of comparisons.

    ``every`` and ``some`` say what is known where all of some conditions hold, and where one of them does. A choice in
    a comparison is taken one way or the other.
    """

    def read(c: Any, holds: bool) -> T:
        if c in (sympy.true, sympy.false):
            return every() if bool(c) == holds else some()
        if isinstance(c, sympy.Not):
            return read(c.args[0], not holds)
        if isinstance(c, (sympy.And, sympy.Or)):
            return (every if isinstance(c, sympy.And) == holds else some)(*(read(part, holds) for part in c.args))
        if not isinstance(c, Relational):
            return every()
        c = c if holds else c.negated
        if isinstance(c, sympy.Ne):
            return some(read(sympy.Lt(*c.args), True), read(sympy.Gt(*c.args), True))
        choice = next((part for part in sympy.preorder_traversal(c) if isinstance(part, Choice)), None)
        if choice is None:
            return literal(c)
        condition, *values = choice.args
        sides = [replaced(c, {choice: value}) for value in values]
        if None in sides:
            return every()
        cases = zip(sides, (True, False), strict=True)
        return some(*(every(read(condition, taken), read(side, True)) for side, taken in cases))

    return read(c, holds)


class Case(NamedTuple):
    """Facts, and indices that equal others."""

    facts: tuple[Fact, ...]
    equal: dict[Any, Any]


def cases(condition: Any, holds: bool, finite: Callable[[Any], bool]) -> list[Case]:
    """Cases of which one holds wherever the condition holds, or fails; ``finite`` says what is never infinite."""
    return [_case(literals, finite) for literals in by_comparisons(condition, holds, _alone, _together, _either)]


Alternatives = list[tuple[Any, ...]]  # comparisons that hold together


def _alone(c: Any) -> Alternatives:
    return [(c,)]


def _together(*parts: Alternatives) -> Alternatives:
    return reduce(lambda found, part: _few([(*a, *b) for a in found for b in part]), parts, [()])


def _either(*parts: Alternatives) -> Alternatives:
    return _few([found for part in parts for found in part])


def _few(alternatives: Alternatives) -> Alternatives:
    return alternatives if len(alternatives) <= MOST_CASES else [()]  # nothing is known then


def _case(literals: tuple[Any, ...], finite: Callable[[Any], bool]) -> Case:
    known = [c for c in literals if finite(c.lhs) and finite(c.rhs)]
    equal = (c for c in known if isinstance(c, sympy.Eq) and isinstance(c.lhs, sympy.Dummy) and not c.rhs.has(Read))
    facts = (Fact(form_of(c.lhs - c.rhs), _difference(c), {}) for c in known)
    return Case(tuple(facts), {c.lhs: c.rhs for c in equal})


def _difference(c: Any) -> Range:
    """The range of left - right; whole numbers that differ are 1 apart."""
    if isinstance(c, sympy.Eq):
        return ZERO
    strict = isinstance(c, (sympy.Lt, sympy.Gt))
    whole = strict and (c.lhs - c.rhs).is_integer
    more = above(sympy.S.One) if whole else POSITIVE if strict else NOT_NEGATIVE
    return more if isinstance(c, (sympy.Gt, sympy.Ge)) else -more
