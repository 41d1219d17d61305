"""Equalities that are given, used from their largest term to the rest: norms that are 1, rows of a given sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from .contraction import leading
from .indices import Index, symbols
from .matching import unified
from .ring import Ring
from .terms import Atom, Factor, Poly, Term, plain


@dataclass(frozen=True)
class Fact:
    """``term = value`` for all values of the free symbols of the term."""

    term: Term
    value: Poly


def fact(ring: Ring, gap: Poly) -> Fact | None:
    """A fact from a polynomial that is zero, solved for its leading term; None if that is no product of entries."""
    if not gap:
        return None
    c, lead = leading(ring, gap)
    rest = Poly([(k, term) for k, term in gap.terms if term is not lead])
    plain_entries = all(
        atom.kind in ("entry", "symmetric") and all(isinstance(i, int) for i in atom.indices) and e > 0 and e == int(e)
        for atom, e in lead.factors
    )
    names = {atom.name for atom, _ in lead.factors}
    again = any(atom.name in names for _, term in rest.terms for atom, _e in term.factors)
    if not lead.factors or not plain_entries or again or not rest.free <= lead.free:
        return None
    return Fact(lead, ring.scale(plain(Fraction(-1) / c), rest))


def with_facts(ring: Ring, poly: Poly, facts: Sequence[Fact]) -> Poly:
    """The polynomial with what is given put in, wherever it fits, also inside functions."""
    for _ in range(len(facts) * 8):
        before = ring.poly_key(poly)
        for known in facts:
            poly = _applied(ring, poly, known)
        if ring.poly_key(poly) == before:
            break
    return poly


def _applied(ring: Ring, poly: Poly, known: Fact) -> Poly:
    parts: list[tuple[int, Poly]] = []
    for c, term in poly.terms:
        match = next(_matches(ring, term, known.term), None)
        if match is None:
            parts.append((1, _inside(ring, Poly([(c, term)]), known)))
            continue
        ring.use("what is given is put in")
        places, rest, bound = match
        value = ring.replace(known.value, places)
        body = ring.multiply(Poly([(c, Term((), tuple(rest)))]), value)
        parts.append((1, _inside(ring, ring.summed(bound, body), known)))
    return ring.total(parts)


def _inside(ring: Ring, poly: Poly, known: Fact) -> Poly:
    """The fact put into the functions that a polynomial holds."""
    if not any(atom.inner for _, term in poly.terms for atom, _e in term.factors):
        return poly
    parts = []
    for c, term in poly.terms:
        apart = ring.renamed_term(term) if term.bound else term

        def again(atom: Atom) -> Poly | Atom:
            inner = tuple(_applied(ring, p, known) for p in atom.inner)
            same = all(ring.poly_key(a) == ring.poly_key(b) for a, b in zip(inner, atom.inner, strict=True))
            return atom if same else ring.made(atom, atom.indices, inner, atom.bound)

        parts.append((c, ring.rebuilt(apart.bound, apart.factors, again)))
    return ring.total(parts)


Match = tuple[dict[int, Index], list[Factor], tuple[int, ...]]


def _matches(ring: Ring, term: Term, pattern: Term) -> Iterator[Match]:
    """The ways to find the pattern in a term: where its symbols stand, and what is left of the term."""

    def assign(n: int, places: dict[int, Index], left: list[Factor]) -> Iterator[Match]:
        if n == len(pattern.factors):
            used = [places[s] for s in pattern.bound]
            inside = {s for s in used if isinstance(s, int) and s in term.bound}
            distinct = len(inside) == len(pattern.bound)
            outside = {s for i, p in places.items() if i not in pattern.bound for s in symbols(p)}
            sizes = all(ring.ranges[s] == ring.ranges[places[s]] for s in pattern.bound) if distinct else False
            if distinct and sizes and not inside & outside and not any(inside & atom.free for atom, _ in left):
                bound = tuple(s for s in term.bound if s not in inside)
                yield {s: p for s, p in places.items() if s not in pattern.bound}, left, bound
            return
        atom, e = pattern.factors[n]
        for m, (other, power) in enumerate(left):
            if (other.kind, other.name) != (atom.kind, atom.name) or not 0 < e <= power:
                continue
            new = dict(places)
            if unified(ring, new, atom, other):
                rest = [*left[:m], *([(other, plain(power - e))] if power != e else []), *left[m + 1 :]]
                yield from assign(n + 1, new, rest)

    yield from assign(0, {}, list(term.factors))
