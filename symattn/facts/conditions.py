"""What a condition of a choice says: cases, each of them some facts about linear forms of entries and indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import sympy
from sympy.core.relational import Relational

from ..scalars.formulas import Choice, Read
from .linear import Fact, form_of, replaced
from .ranges import NOT_NEGATIVE, POSITIVE, ZERO, Range, above

MOST_CASES = 8


class Case(NamedTuple):
    """Facts, and indices that equal others."""

    facts: tuple[Fact, ...]
    equal: dict[Any, Any]


def cases(condition: Any, finite: Callable[[Any], bool]) -> list[Case]:
    """Cases of which one holds wherever the condition does; ``finite`` says whether a formula is never infinite."""
    return [_case(literals, finite) for literals in _alternatives(condition, True)]


def _alternatives(c: Any, holds: bool) -> list[tuple[Any, ...]]:
    """The condition, or its opposite, as alternatives of comparisons that hold together."""
    if c in (sympy.true, sympy.false):
        return [()] if bool(c) == holds else []
    if isinstance(c, sympy.Not):
        return _alternatives(c.args[0], not holds)
    if isinstance(c, (sympy.And, sympy.Or)):
        parts = [_alternatives(part, holds) for part in c.args]
        if isinstance(c, sympy.And) == holds:
            return _together(*parts)
        return _few([found for part in parts for found in part])
    if not isinstance(c, Relational):
        return [()]
    return _compared(c if holds else c.negated)


def _compared(c: Any) -> list[tuple[Any, ...]]:
    """A comparison, with the choices in it taken one way or the other."""
    choice = next(iter(sorted(c.atoms(Choice), key=sympy.default_sort_key)), None)
    if choice is not None:
        tested, *values = choice.args
        sides = [replaced(c, {choice: value}) for value in values]
        if None in sides:
            return [()]
        one, other = (
            _together(_alternatives(tested, holds), _alternatives(side, True))
            for side, holds in zip(sides, (True, False), strict=True)
        )
        return _few([*one, *other])
    if isinstance(c, sympy.Ne):
        return [(sympy.Lt(c.lhs, c.rhs),), (sympy.Gt(c.lhs, c.rhs),)]
    return [(c,)]


def _together(*parts: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = [()]
    for part in parts:
        found = _few([(*a, *b) for a in found for b in part])
    return found


def _few(alternatives: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return alternatives if len(alternatives) <= MOST_CASES else [()]  # nothing is known then


def _case(literals: tuple[Any, ...], finite: Callable[[Any], bool]) -> Case:
    facts, equal = [], {}
    for c in literals:
        if not isinstance(c, Relational) or not (finite(c.lhs) and finite(c.rhs)):
            continue
        facts.append(Fact(form_of(c.lhs - c.rhs), _difference(c), {}))
        if isinstance(c, sympy.Eq) and isinstance(c.lhs, sympy.Dummy) and not c.rhs.has(Read):
            equal[c.lhs] = c.rhs
    return Case(tuple(facts), equal)


def _difference(c: Any) -> Range:
    """The range of left - right; whole numbers that differ are 1 apart."""
    if isinstance(c, sympy.Eq):
        return ZERO
    strict = isinstance(c, (sympy.Lt, sympy.Gt))
    whole = strict and (c.lhs - c.rhs).is_integer
    more = above(sympy.S.One) if whole else POSITIVE if strict else NOT_NEGATIVE
    return more if isinstance(c, (sympy.Gt, sympy.Ge)) else -more
