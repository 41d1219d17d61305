"""The range of an entry formula from those of what it reads, the conditions it stands under, and known facts.

A formula is walked by the kind of its parts. Sums of parts are also looked at as linear forms, from which facts are
taken away while that helps; a sum over an index, an extreme and a choice are opened where the rest is compared with
their terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from math import prod
from typing import Any

import sympy
from sympy.core.relational import Relational

from ..scalars.affine import Form, combined
from ..scalars.formulas import Choice, Held, Max, Min, Read, bound_index
from ..scalars.functions import FUNCTIONS, REALS, ScalarFunction
from .conditions import cases
from .linear import Fact, both_ways, depends, form_of, other_forms, replaced, split, total_of, written
from .order import Known, lemmas
from .ranges import ANYTHING, NOT_NEGATIVE, POSITIVE, REAL, ZERO, End, Range, above, below, hull, point, stronger

MOST_OPENED = 3  # sums, extremes and choices inside one another, and facts taken away from one form
MOST_MONOMIALS = 16
FRESH = 10_000  # numbers of indices that are opened


@dataclass(eq=False)
class FormulaRange:
    """The ranges of parts of formulas at one index, under some conditions.

    ``index`` holds the ranges of the indices, ``facts`` what the conditions say; ``opened`` is how many sums,
    extremes and choices may still be opened. Met conditions, such as a divisor that must not be 0, are collected.
    """

    known: Known
    index: Mapping[Any, Range]
    facts: Sequence[Fact] = ()
    opened: int = MOST_OPENED
    conditions: dict[Any, None] = field(default_factory=dict)
    found: dict[Any, Range] = field(default_factory=dict)  # also what is known so far of what is being worked out
    inside: dict[Any, tuple[FormulaRange, list[Any]]] = field(default_factory=dict)  # at terms of sums and extremes
    sides: dict[Any, list[list[tuple[FormulaRange, Any]]]] = field(default_factory=dict)  # on both sides of conditions

    def of(self, e: Any) -> Range:
        """The range of a part of the formula."""
        if not depends(e):
            return point(e) if e.is_extended_real else REAL
        if e in self.found:
            return self.found[e]
        self.known.budget.check()
        self.found[e] = ANYTHING
        self.found[e] = found = self._by_kind(e).shortened()
        if e.is_Add:
            found &= self._joined(e)
        elif self.facts or (self.known.given and self.opened >= 0):
            found &= self._linear({e: sympy.S.One})
        if isinstance(e, sympy.Sum) and self.opened > 0:
            found &= self._opened(e)
        self.found[e] = found = found.shortened()
        return found

    def difference(self, a: Any, b: Any) -> Range:
        """The range of ``a - b``; where both may be -oo at once, which cancels, they are equal then."""
        found = self.of(a - b)
        return found if self.known.finite(a) and self.known.finite(b) else hull(found, ZERO)

    def _by_kind(self, e: Any) -> Range:
        if type(e) not in _RULES:
            return self._function(e, FUNCTIONS[type(e)]) if type(e) in FUNCTIONS else REAL
        found = _RULES[type(e)](self, e)
        return found & _sign(e) if (e.is_Add or e.is_Mul) and not e.has(Read) else found

    def under(self, facts: Sequence[Fact] = (), index: Mapping[Any, Range] | None = None) -> FormulaRange:
        """The same index under more conditions, or with one more index."""
        return FormulaRange(
            self.known, {**self.index, **(index or {})}, (*self.facts, *facts), self.opened - 1, self.conditions
        )

    def at_term(self, *folds: Any) -> tuple[FormulaRange, list[Any]]:
        """The terms of some folds over the same indices, at one fresh index, and what is known there."""
        limits = tuple((low, high) for _, low, high in folds[0].limits)
        if limits not in self.inside:
            self.inside[limits] = self._inside(limits)
        walk, fresh = self.inside[limits]
        return walk, [
            f.function.xreplace({k: new for (k, _, _), new in zip(f.limits, fresh, strict=True)}) for f in folds
        ]

    def _inside(self, limits: Sequence[Any]) -> tuple[FormulaRange, list[Any]]:
        index, facts, fresh = {}, [], []
        for n, (low, high) in enumerate(limits):
            k = bound_index(FRESH + len(self.index) + n)
            fresh.append(k)
            index[k] = Range.of(self.of(low).lower, self.of(high).upper)
            if depends(low) or depends(high):
                facts += [Fact(form_of(end), NOT_NEGATIVE, {}) for end in (k - low, high - k)]
        return self.under(facts, index), fresh

    # --- linear forms ---

    def _joined(self, e: Any) -> Range:
        """The range of a sum of parts by what is known of them together."""
        form = form_of(e)
        if len(form) > MOST_MONOMIALS:
            return ANYTHING
        found = self._linear(form)
        for parts in other_forms(form):
            found &= sum(map(self.of, parts), ZERO)
        return found & self._opened(written(form)) if self.opened > 0 else found

    def _linear(self, form: Form) -> Range:
        steps = max(2, self.opened)  # fewer inside others
        return Range.of(self._low(form, steps), self._low({m: -c for m, c in form.items()}, steps))

    def _low(self, form: Form, steps: int) -> End:
        """A low end: of the terms one by one, or after a fact that shares a monomial has been taken away."""
        best = sum((point(c) * (point(m) if m == 1 else self.of(m)) for m, c in form.items()), ZERO).lower
        if not steps:
            return best
        for fact, low in self._facts(form):
            for m in (m for m in fact if m != 1 and m in form):
                share = form[m] / fact[m]
                if not below(sympy.S.Zero, share):
                    continue
                rest = combined(form, -share, fact)
                if len(rest.keys() - {1}) <= len(form.keys() - {1}):
                    best = stronger(best, (point(share) * above(*low) + above(*self._low(rest, steps - 1))).lower)
        return best

    def _facts(self, form: Form) -> Iterator[tuple[Form, End]]:
        """Forms with a finite low end that may share a monomial with a form."""
        for form_known, bounds, _ in self.facts:
            yield from both_ways(form_known, bounds)
        if self.opened < 0:  # what is given leads from an extreme to its terms, and from them to another extreme
            return
        for m in form:
            yield from self.known.given_of(m) if m != 1 else ()
        for at, bounds, _ in lemmas(self, form) if len(form) > 1 else ():
            yield from both_ways(at, bounds)

    # --- sums, extremes and choices, opened ---

    def _opened(self, e: Any) -> Range:
        """A sum of parts, as one sum over an index, with an extreme at the entry that attains it, or by cases."""
        part = self.opened_first(e)
        found = self._as_one_sum(e)
        if part is None:
            return found
        if isinstance(part, Choice):
            return found & hull(*(walk.of(at) for walk, at in self.cases(part, e)))
        walk, (term,) = self.at_term(part)
        at = replaced(e, {part: term})
        return found if at is None else found & walk.of(at)

    def opened_first(self, e: Any) -> Any:
        """The choice or the extreme of a formula that is opened first, if there is one that can be."""
        parts = sorted(e.atoms(Choice, Max, Min), key=sympy.default_sort_key)
        part = next((part for part in parts if self._is_free(part)), None)
        if part is None or isinstance(part, Choice):
            return part
        return part if all((high + 1).is_positive for _, low, high in part.limits) else None

    def _is_free(self, part: Any) -> bool:
        return all(k in self.index for k in part.free_symbols if isinstance(k, sympy.Dummy))

    def cases(self, choice: Any, e: Any) -> Iterator[tuple[FormulaRange, Any]]:
        """The formula on both sides of a choice."""
        condition, a, b = choice.args
        if condition not in self.sides:
            both = (cases(condition, holds, self.known.finite) for holds in (True, False))
            self.sides[condition] = [[(self.under(facts), equal) for facts, equal in side] for side in both]
        for side, value in zip(self.sides[condition], (a, b), strict=True):
            for walk, equal in side:
                at = replaced(e, {choice: value})
                yield walk, e if at is None else at.xreplace(equal)

    def _as_one_sum(self, e: Any) -> Range:
        """``sum_k f(k) + r`` as ``sum_k (f(k) + r / n)``."""
        form = form_of(e)
        found = ANYTHING
        for fold, count, walk, joined in self.joined_sums(form):
            found &= point(count) * walk.of(joined)
            for total, inside, values in self._weights(fold):
                if total.low == total.high == 1:
                    rest = written({m: c for m, c in form.items() if m != fold})
                    found &= inside.of(form[fold] * values + rest)
        return found

    def joined_sums(self, form: Form) -> Iterator[tuple[Any, Any, FormulaRange, Any]]:
        """Each sum, the number of its terms, and the term of the form as one sum, with what is known there."""
        folds = [m for m in form if isinstance(m, sympy.Sum)]
        for fold in folds:
            counts = [high - low + 1 for _, low, high in fold.limits]
            if not all(n.is_positive and not depends(n) for n in counts) or len(form.keys() - {1}) < 2:
                continue
            same = [f for f in folds if [x[1:] for x in f.limits] == [x[1:] for x in fold.limits]]
            walk, terms = self.at_term(*same)
            rest = written({m: c for m, c in form.items() if m not in same}) / sympy.Mul(*counts)
            joined = sympy.Add(*(form[f] * term for f, term in zip(same, terms, strict=True)), rest)
            yield fold, sympy.Mul(*counts), walk, joined

    # --- by kind ---

    def _mul(self, e: Any) -> Range:
        monomial, coefficient = split(e)
        if coefficient != 1:
            return point(coefficient) * self.of(monomial)
        found = self.product(e.args)
        for divisor in (f for f in e.args if f.is_Pow and f.exp == -1):
            if self.opened > 0 and self.of(divisor.base).is_not_negative:
                found &= _share(self, [f for f in e.args if f != divisor], divisor.base)
        places = self.known.same_row(e)
        if places is not None and self.of(places[0] - places[1]).is_not_zero:  # p + q <= 1
            found &= Range(sympy.S.Zero, False, sympy.Rational(1, 4), False)
        return found

    def product(self, factors: Sequence[Any]) -> Range:
        """The range of a product by those of its factors."""
        return prod(map(self.of, factors), start=point(sympy.S.One))

    def _pow(self, e: Any) -> Range:
        base, exponent = self.of(e.base), e.exp
        if not exponent.is_Rational:
            return POSITIVE if base.is_positive else REAL
        if not exponent.is_Integer:
            if below(base.high, sympy.S.Zero):
                return REAL
            base = self._not_negative(e.base)
        if exponent.is_positive:
            return base.power(exponent)
        if not base.is_not_zero:
            self.conditions[sympy.Ne(e.base, 0)] = None
        return base.power(-exponent).reciprocal()

    def _not_negative(self, e: Any) -> Range:
        """The range of what must not be negative."""
        found = self.of(e)
        if found.is_not_negative:
            return found
        self.conditions[sympy.Ge(e, 0)] = None
        return Range(sympy.S.Zero, False, found.high, found.high_open)

    def _function(self, e: Any, f: ScalarFunction) -> Range:
        """The values that a scalar function has; an increasing one that is 0 at 0 has the sign of its argument."""
        values = Range(f.values.start, bool(f.values.left_open), f.values.end, bool(f.values.right_open))
        if f.monotone != "strictly increasing":
            return values
        inside = self.of(e.args[0])
        found = values & inside.sign() if f.at(0) == 0 else values
        return found & inside.increasing(f.head) if f.domain == REALS else found

    def _remainder(self, e: Any) -> Range:
        divisor = self.of(e.args[1])
        return Range(sympy.S.Zero, False, divisor.high, True) if divisor.is_positive else REAL

    def _absolute(self, e: Any) -> Range:
        inside = self.of(e.args[0])
        return hull(inside, -inside).larger(ZERO)

    def _choice(self, e: Any) -> Range:
        condition, a, b = e.args
        if isinstance(condition, Relational) and (condition.lhs, condition.rhs) == (a, b):
            if isinstance(condition, (sympy.Gt, sympy.Ge)):
                return self.of(a).larger(self.of(b))
            if isinstance(condition, (sympy.Lt, sympy.Le)):
                return -(-self.of(a)).larger(-self.of(b))
        sides = [walk.of(at) for walk, at in self.cases(e, e)]
        return hull(*sides) if sides else ANYTHING

    def _sum(self, e: Any) -> Range:
        walk, (term,) = self.at_term(e)
        each = walk.of(term)
        found = each
        for _, low, high in e.limits:
            found *= self._count(low, high)
        found &= self.known.row_sum(e)
        if self.opened > 0:
            for total, inside, values in self._weights(e):
                found &= total * inside.of(values)  # between the ends of what is weighted
            if each.is_not_negative:  # the sum is at least 0, also where it is empty, and at least any of its terms
                found &= NOT_NEGATIVE
                for one in self.known.terms_at(e, e.function):
                    found &= above(*self.of(one).lower)
        return found

    def _weights(self, e: Any) -> Iterator[tuple[Range, FormulaRange, Any]]:
        """The factors of a sum that are not negative: their sum, and what they are weights of, at a fresh index."""
        walk, (term,) = self.at_term(e)
        own, here = ([b for f in sympy.Mul.make_args(t) for b in _repeated(f)] for t in (e.function, term))
        for n, weight in enumerate(own if len(own) > 1 else ()):
            if walk.of(here[n]).is_not_negative:
                values = sympy.Mul(*here[:n], *here[n + 1 :])
                yield self.of(total_of(weight, e.limits)), walk, values

    def _count(self, low: Any, high: Any) -> Range:
        """How many terms a sum has."""
        count = sympy.expand(high - low + 1)
        if count.is_positive and not depends(count):
            return point(count)
        return self.of(count).larger(point(sympy.S.One if (count - 1).is_nonnegative else sympy.S.Zero))

    def _extreme(self, e: Any) -> Range:
        walk, (term,) = self.at_term(e)
        counts = (self._count(low, high) for _, low, high in e.limits)
        return walk.of(term) if all(count.is_positive for count in counts) else ANYTHING


def _sign(e: Any) -> Range:
    """What SymPy knows of the sign of a formula of indices."""
    if e.is_nonpositive:
        return -NOT_NEGATIVE
    return POSITIVE if e.is_positive else NOT_NEGATIVE if e.is_nonnegative else REAL


def _repeated(factor: Any) -> list[Any]:
    """A square as two factors."""
    return [factor.base] * 2 if factor.is_Pow and factor.exp == 2 else [factor]


_RULES: dict[Any, Callable[[FormulaRange, Any], Range]] = {
    Read: lambda walk, e: walk.known.range(e),
    sympy.Dummy: lambda walk, e: walk.index.get(e, NOT_NEGATIVE if e.is_nonnegative else REAL),
    sympy.Add: lambda walk, e: sum(map(walk.of, e.args), ZERO),
    sympy.Mul: FormulaRange._mul,
    sympy.Pow: FormulaRange._pow,
    sympy.exp: lambda walk, e: walk.of(e.args[0]).increasing(sympy.exp),
    sympy.log: lambda walk, e: walk._not_negative(e.args[0]).logarithm(),
    sympy.floor: lambda walk, e: walk.of(e.args[0]).rounded_down(),
    sympy.Mod: FormulaRange._remainder,
    sympy.Abs: FormulaRange._absolute,
    Held: lambda walk, e: walk.of(e.args[0]),
    Choice: FormulaRange._choice,
    sympy.Sum: FormulaRange._sum,
    Max: FormulaRange._extreme,
    Min: FormulaRange._extreme,
}


def _share(walk: FormulaRange, factors: Sequence[Any], whole: Any) -> Range:
    """A product over a whole that is never negative, where some of the factors are a part of it."""
    found = ANYTHING
    for picked in _selections([f for f in factors if depends(f)]):
        part = sympy.Mul(*picked)
        over = _mean(walk, part, whole) or _fraction(walk, part, whole)
        if over is not None:
            found &= over * walk.product([f for f in factors if f not in picked])
    return found


def _selections(factors: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Some of a few factors: all of them first."""
    sizes = range(len(factors), 0, -1) if len(factors) <= 3 else (len(factors), 1)
    return chain.from_iterable(combinations(factors, n) for n in sizes)


def _fraction(walk: FormulaRange, part: Any, whole: Any) -> Range | None:
    """``a / b`` with ``0 <= a <= b``."""
    if not walk.of(part).is_not_negative:
        return None
    excess = walk.difference(whole, part)
    return Range(sympy.S.Zero, False, sympy.S.One, excess.is_positive) if excess.is_not_negative else None


def _mean(walk: FormulaRange, part: Any, whole: Any) -> Range | None:
    """``sum_k w(k) x(k) / sum_k w(k)`` with ``w >= 0``."""
    if not (isinstance(part, sympy.Sum) and isinstance(whole, sympy.Sum)):
        return None
    if [ends for _, *ends in part.limits] != [ends for _, *ends in whole.limits]:
        return None
    inside, (term, weight) = walk.at_term(part, whole)
    weights, factors = sympy.Mul.make_args(weight), sympy.Mul.make_args(term)
    if not set(weights) <= set(factors) or not inside.of(weight).is_not_negative:
        return None
    return inside.of(sympy.Mul(*(f for f in factors if f not in weights)))
