"""The chain of inequalities by which a difference is seen to be never negative, found again for people to read.

Ranges of formulas are narrowed by many ways at once, and which of them was needed is not kept. Here one way at a time
is tried: the bounds of the terms, a known inequality that is taken away, an extreme at the entry that attains it, a
choice by its cases, and several sums as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import sympy

from ...facts.formula_ranges import FormulaRange
from ...facts.linear import both_ways, depends, form_of, other_forms, replaced, written
from ...facts.order import lemmas
from ...facts.ranges import ZERO, End, Range, below, point
from ...scalars.affine import Form, combined
from ...scalars.formulas import Choice, Max, Min, Read

_REASONS: dict[Any, str] = {
    sympy.Mul: "by the signs and bounds of its factors",
    sympy.Sum: "by the bounds of its terms",
    Max: "as each of its entries",
    Min: "as each of its entries",
    Choice: "in each case",
}


_BY_CASE = "in this case"


class Link(NamedTuple):
    """``left relation right``, and why; ``where`` is the case of which it speaks, and ``of`` what it bounds."""

    left: Any
    relation: str
    right: Any
    reason: str
    where: tuple[Any, ...] = ()
    of: Any = None


def chain(walk: FormulaRange, form: Form, strict: bool, steps: int = 2) -> list[Link] | None:
    """Why a form is never negative, or always positive; None where no chain is found. Raises OutOfBudget."""
    walk.known.budget.check()
    if (found := _by_terms(walk, form, strict)) is not None:
        return found
    for way in (_by_facts(walk, form, strict, steps), _rewritten(walk, form, strict), _opened(walk, form, strict)):
        if (found := next(way, None)) is not None:
            return found
    return None


def _shows(found: Range, strict: bool) -> bool:
    return found.is_positive if strict else found.is_not_negative


def _range(walk: FormulaRange, form: Form) -> Range:
    return sum((point(c) * (point(m) if m == 1 else walk.of(m)) for m, c in form.items()), ZERO)


def _by_terms(walk: FormulaRange, form: Form, strict: bool) -> list[Link] | None:
    """The bounds of the terms, one by one; those of entries are told elsewhere."""
    if not _shows(_range(walk, form), strict):
        return None
    plain = [(m, c) for m, c in form.items() if depends(m) and not isinstance(m, (Read, sympy.Dummy))]
    return [_bound(walk, m, lower=not below(c, sympy.S.Zero)) for m, c in plain]


def _bound(walk: FormulaRange, m: Any, lower: bool) -> Link:
    """The low or the high end of a monomial."""
    found = walk.of(m)
    reason = _REASONS.get(type(m), "by the bounds of its parts")
    if lower and found.low == 0 and m.is_Pow and m.exp.is_Integer and m.exp % 2 == 0:
        reason = "a square is not negative"
    if lower and found.low == 0 and isinstance(m, sympy.exp):
        reason = "an exponential is positive"
    if lower:
        return Link(found.low, "<" if found.low_open else "<=", m, reason, of=m)
    return Link(m, "<" if found.high_open else "<=", found.high, reason, of=m)


def _by_facts(walk: FormulaRange, form: Form, strict: bool, steps: int) -> Iterator[list[Link]]:
    """A known inequality taken away, and a chain for the rest."""
    for fact, (low, is_open), reason in _facts(walk, form) if steps else ():
        for m in (m for m in fact if m != 1 and m in form):
            share = form[m] / fact[m]
            if not below(sympy.S.Zero, share):
                continue
            rest = combined(combined(form, -share, fact), share, {sympy.S.One: low})
            if len(rest.keys() - {1}) <= len(form.keys() - {1}):
                found = chain(walk, rest, strict and not is_open, steps - 1) if rest or not strict or is_open else None
                if found is not None:
                    yield [_link(combined(fact, -low, {sympy.S.One: sympy.S.One}), is_open, reason), *found]


def _facts(walk: FormulaRange, form: Form) -> Iterator[tuple[Form, End, str]]:
    """Inequalities that may share a monomial with a form: of the case, given, and of the table."""
    for at, bounds, _ in walk.facts:
        yield from ((fact, low, _BY_CASE) for fact, low in both_ways(at, bounds))
    for m in form:
        yield from ((fact, low, "given") for fact, low in (walk.known.given_of(m) if m != 1 else ()))
    for at, bounds, reason in lemmas(walk, form) if len(form) > 1 else ():
        yield from ((fact, low, reason) for fact, low in both_ways(at, bounds))


def _link(form: Form, strict: bool, reason: str) -> Link:
    """A form that is not negative, with what is taken away on the left."""
    left = written({m: -c for m, c in form.items() if c.could_extract_minus_sign()})
    right = written({m: c for m, c in form.items() if not c.could_extract_minus_sign()})
    return Link(left, "<" if strict else "<=", right, reason)


def _rewritten(walk: FormulaRange, form: Form, strict: bool) -> Iterator[list[Link]]:
    """A product, or a square and the rest that completes it."""
    for parts in other_forms(form):
        if _shows(sum(map(walk.of, parts), ZERO), strict):
            reason = "a square is completed" if len(parts) > 1 else "as a product"
            bounds = [_bound(walk, part, lower=True) for part in parts if depends(part)]
            yield [Link(written(form), "=", sympy.Add(*parts), reason), *bounds]


def _opened(walk: FormulaRange, form: Form, strict: bool) -> Iterator[list[Link]]:
    """A choice by its cases, an extreme at the entry that attains it, several sums as one."""
    if walk.opened <= 0:
        return
    e = written(form)
    part = walk.opened_first(e)
    if isinstance(part, Choice):
        cases = [_case(at, form_of(formula), strict) for at, formula in walk.cases(part, e)]
        if all(found is not None for found in cases):
            sides = zip((part.args[0], sympy.Not(part.args[0])), walk.sides[part.args[0]], strict=True)
            taken = [side for side, several in sides for _ in several]
            yield [
                link if link.reason == _BY_CASE and link.of is None else link._replace(where=(c, *link.where))
                for c, found in zip(taken, cases, strict=True)
                for link in found or ()
            ]
    elif part is not None:
        inside, (term,) = walk.at_term(part)
        at = replaced(e, {part: term})
        found = None if at is None else chain(inside, form_of(at), strict)
        if found is not None:
            yield [Link(part, "=", term, "at an index at which it is attained"), *found]
    for _, _, inside, joined in walk.joined_sums(form):
        found = chain(inside, form_of(joined), strict)
        if found is not None:
            yield [Link(sympy.S.Zero, "<" if strict else "<=", joined, "for each term of the sum"), *found]


def _case(walk: FormulaRange, form: Form, strict: bool) -> list[Link] | None:
    """A chain in one case; where that says it by itself, what it says."""
    found = chain(walk, form, strict)
    return [_link(form, strict, _BY_CASE)._replace(of=written(form))] if found == [] and form.keys() - {1} else found
