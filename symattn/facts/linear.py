"""Polynomials of entries as linear forms of their monomials, and the facts that such forms may be known by.

A monomial is a product of what depends on entries or indices; everything else is a coefficient. A fact bounds a form
for all values of some indices; it is used at the values that make one of its monomials the one at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice, product
from typing import Any, NamedTuple

import sympy
from sympy.concrete.expr_with_limits import ExprWithLimits

from ..scalars.affine import Form, combined, expanded
from ..scalars.formulas import Choice, Read
from .ranges import End, Range, oo

MOST_TERMS = 16  # of a polynomial that is written out
HIGHEST_POWER = 4

Spans = Mapping[Any, Any]  # indices, with the number of values each of them takes


class Fact(NamedTuple):
    """A form lies in a range, for all values of the indices in ``spans``."""

    form: Form
    range: Range
    spans: Spans


@lru_cache(maxsize=65536)
def depends(e: Any) -> bool:
    """Whether an expression depends on entries or indices."""
    return bool(e.has(Read) or e.atoms(sympy.Dummy))


def replaced(e: Any, new: Mapping[Any, Any]) -> Any:
    """The expression with parts replaced; None where SymPy takes a side of a comparison for a complex number."""
    try:
        return e.xreplace(new)
    except TypeError:
        return None


# --- polynomials ---


def form_of(p: Any) -> dict[Any, Any]:
    """The coefficient of each monomial of a polynomial, written out if it is short."""
    found: dict[Any, Any] = {}
    for term in sympy.Add.make_args(_expanded(p)):
        m, c = split(term)
        found[m] = expanded(found.get(m, sympy.S.Zero) + c)
    return {m: c for m, c in found.items() if c != 0}


def split(term: Any) -> tuple[Any, Any]:
    """The monomial and the coefficient of a term."""
    factors = sympy.Mul.make_args(term)
    return sympy.Mul(*filter(depends, factors)), sympy.Mul(*(f for f in factors if not depends(f)))


def _is_power(e: Any) -> bool:
    return bool(e.is_Pow and e.exp.is_Integer and 0 < e.exp <= HIGHEST_POWER)


def _expanded(p: Any) -> Any:
    if sum(map(_length, sympy.Add.make_args(p))) > MOST_TERMS:
        return p
    lettered, entries = _lettered(p)
    return _written_out(lettered).xreplace(entries)


@lru_cache(maxsize=4096)
def _written_out(polynomial: Any) -> Any:
    return sympy.expand(polynomial, power_exp=False, power_base=False, log=False)


def _length(term: Any) -> Any:
    """At least as many terms as a product of powers of sums has when it is written out."""
    parts = ((f.base, f.exp) if _is_power(f) else (f, 1) for f in sympy.Mul.make_args(term))
    return sympy.Mul(*(len(sympy.Add.make_args(base)) ** n for base, n in parts))


def _lettered(p: Any) -> tuple[Any, dict[Any, Any]]:
    """The polynomial with a letter for each part that is not itself a sum, product or power."""
    letters: dict[Any, Any] = {}

    def walk(e: Any) -> Any:
        if not depends(e):
            return e
        if e.is_Add or e.is_Mul or _is_power(e):
            return e.func(*map(walk, e.args))
        return letters.setdefault(e, _letter(len(letters)))

    return walk(p), {letter: e for e, letter in letters.items()}


@cache
def _letter(n: int) -> sympy.Dummy:
    """The letters are the same in all polynomials, so that what is done with one is known of others like it."""
    return sympy.Dummy(f"x{n}", real=True)


def written(form: Form) -> Any:
    """The form as a formula."""
    return sympy.Add(*(c * m for m, c in form.items()))


def other_forms(form: Form) -> Iterator[tuple[Any, ...]]:
    """A polynomial of degree 2 or more as one product, and as a square and the rest that completes it."""
    if all(_degree(m) < 2 for m in form):
        return
    lettered, entries = _lettered(written(form))
    product = _factored(lettered).xreplace(entries)
    if not product.is_Add:
        yield (product,)
    squares = ((m, a) for m, a in form.items() if m.is_Pow and m.exp == 2 and m.base in form)
    for m, a in islice(squares, 1):  # a m^2 + b m + c is a (m + b / (2a))^2 and c - b^2 / (4a)
        b = form[m.base]
        rest = combined(form, sympy.S.NegativeOne, {m: a, m.base: b})
        yield a * (m.base + b / (2 * a)) ** 2, written(rest) - b**2 / (4 * a)


@lru_cache(maxsize=4096)
def _factored(polynomial: Any) -> Any:
    try:
        return sympy.factor(polynomial)
    except sympy.PolynomialError:
        return polynomial


def _degree(m: Any) -> int:
    return sum(int(f.exp) if _is_power(f) else 1 for f in sympy.Mul.make_args(m) if f != 1)


# --- facts at indices ---


def both_ways(form: Form, bounds: Range) -> Iterator[tuple[Form, End]]:
    """The form and its negative, where they have a finite low end."""
    if bounds.low != -oo:
        yield form, bounds.lower
    if bounds.high != oo:
        yield {m: -c for m, c in form.items()}, bounds.upper


def at_indices(fact: Fact, m: Any, shape: Callable[[Any], Any]) -> Iterator[dict[Any, Any]]:
    """The forms of a fact that have the monomial m."""
    for pattern in fact.form:
        if pattern.func == m.func:
            for values in instances(pattern, m, fact.spans, shape):
                form = {n.xreplace(values): c for n, c in fact.form.items()}
                left = [i for i in fact.spans if i not in values]
                if len(form) == len(fact.form) and not any(n.has(*left) for n in fact.form):
                    yield form


@lru_cache(maxsize=4096)
def sure_reads(e: Any) -> tuple[Any, ...]:
    """The entries that an expression reads whatever its choices are; what a choice guards may lie outside a tensor."""
    found: dict[Any, None] = {}
    walk = sympy.preorder_traversal(e)
    for part in walk:
        if isinstance(part, Choice):
            walk.skip()
        elif isinstance(part, Read):
            found[part] = None
    return tuple(found)


def instances(pattern: Any, target: Any, spans: Spans, shape: Callable[[Any], Any]) -> Iterator[dict[Any, Any]]:
    """Values of the indices in ``spans`` at which the pattern is the target.

    A value is taken from where the index stands for a whole axis of an entry, so it lies in the range of the index.
    ``shape`` is that of the tensor of an entry.
    """
    free = list(filter(pattern.has, spans))
    for places in product(*(values_at(index, spans[index], pattern, target, shape) for index in free)):
        values = dict(zip(free, places, strict=True))
        if pattern.xreplace(values) == target:
            yield values


def values_at(index: Any, size: Any, pattern: Any, target: Any, shape: Callable[[Any], Any]) -> list[Any]:
    """What an index may stand for: an index at a whole axis in the pattern, and what stands there in the target."""
    found: dict[Any, None] = {}
    reads = sure_reads(target)
    for own in sure_reads(pattern):
        for axis, place in enumerate(own.args[1:]):
            if place == index and sympy.expand(shape(own)[axis] - size) == 0:
                found.update(dict.fromkeys(e.args[axis + 1] for e in reads if e.args[0] == own.args[0]))
    bound = {k for e in (pattern, target) for fold in e.atoms(ExprWithLimits) for k in fold.bound_symbols}
    return [at for at in found if not at.has(*bound)]


# --- sums and extremes over an index ---


def total_of(term: Any, limits: Sequence[Any]) -> Any:
    """``sum_k term``, with what does not depend on k before the sum, if that has terms."""
    inside, counts = list(limits), [sympy.S.One]
    if not all(sympy.expand(high - low + 1).is_positive for _, low, high in limits):
        return sympy.Sum(term, *limits)
    for k, low, high in limits:
        if not term.has(k) and not any(end.has(k) for _, *ends in limits for end in ends):
            inside.remove((k, low, high))
            counts.append(sympy.expand(high - low + 1))
    outside, rest = term.as_independent(*(k for k, _, _ in inside), as_Add=False) if inside else (term, sympy.S.One)
    return sympy.Mul(outside, *counts, sympy.Sum(rest, *inside) if inside else rest)


def extreme_of(kind: Any, term: Any, limits: Sequence[Any]) -> Any:
    """``max_k term`` or ``min_k term``, with a positive factor before it."""
    outside, rest = term.as_independent(*(k for k, _, _ in limits), as_Add=False)
    if not outside.is_positive:
        outside, rest = sympy.S.One, term
    return outside * kind(rest, *limits)
