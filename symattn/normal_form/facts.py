"""What is given: equalities, used from their largest term to the rest, and masks that leave no row empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from .contraction import leading
from .indices import Index
from .matching import embeddings, indicators, runs_over_all
from .ring import Ring
from .terms import Factor, Poly, Term, plain, product_of


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
        match = _match(ring, term, known.term)
        if match is None:
            parts.append((1, _inside(ring, Poly([(c, term)]), known)))
            continue
        ring.use("what is given is put in")
        places, rest, bound = match
        value = ring.replace(known.value, places)
        body = ring.multiply(product_of(rest, c), value)
        parts.append((1, _inside(ring, ring.summed(bound, body), known)))
    return ring.total(parts)


def _inside(ring: Ring, poly: Poly, known: Fact) -> Poly:
    """The fact put into the functions that a polynomial holds."""
    if not any(atom.inner for _, term in poly.terms for atom, _e in term.factors):
        return poly
    return ring.mapped(poly, lambda atom: ring.mapped_inside(atom, lambda p: _applied(ring, p, known)))


def _match(ring: Ring, term: Term, pattern: Term) -> tuple[dict[int, Index], list[Factor], tuple[int, ...]] | None:
    """Where the symbols of a pattern stand in a term that holds it, what is left of the term, and what that binds."""
    for places, left in embeddings(ring, pattern.factors, term.factors, {}):
        inside = {places[s] for s in pattern.bound}
        if runs_over_all(ring, term, pattern, places) and not any(inside & atom.free for atom, _ in left):
            free = {s: place for s, place in places.items() if s not in pattern.bound}
            return free, left, tuple(s for s in term.bound if s not in inside)
    return None


# --- rows of masks that attend to something, whose sums of positive weights are therefore positive ---


@dataclass(frozen=True)
class Support:
    """A sum of products of indicators that is positive for all values of its free symbols."""

    term: Term

    def __call__(self, ring: Ring, term: Term) -> bool:
        """Whether a term is a sum over at least the same places, with positive weights."""
        return any(
            runs_over_all(ring, term, self.term, places) and all(ring.atom_positive(atom) for atom, _ in left)
            for places, left in embeddings(ring, self.term.factors, term.factors, {})
        )


def support(ring: Ring, relation: str, gap: Poly) -> Support | None:
    """The sum of indicators that ``0 = gap``, ``0 <= gap`` or ``0 < gap`` says to be positive, if there is one."""
    rest = [(c, term) for c, term in gap.terms if term.factors]
    start = sum(c for c, term in gap.terms if not term.factors and not term.bound)
    if len(rest) != 1 or len(gap.terms) > 2:
        return None
    (c, term), *_ = rest
    term = _largest_as_sum(term)
    least = -start / c  # the sum is this, or more
    if not (least > 0 or (least == 0 and relation == "<")) or not (relation == "=" or c > 0):
        return None
    held = indicators(ring, term.factors)
    return Support(Term(term.bound, tuple(held))) if len(held) == len(term.factors) else None


def _largest_as_sum(term: Term) -> Term:
    """For the largest of some indicators their sum, which is positive where it is."""
    if term.bound or [(atom.kind, atom.name, e) for atom, e in term.factors] != [("extreme", "Max", 1)]:
        return term
    atom = term.factors[0][0]
    (c, inner), *others = atom.inner[0].terms
    return Term((*atom.bound, *inner.bound), inner.factors) if c > 0 and not others else term
