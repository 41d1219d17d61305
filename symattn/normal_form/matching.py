"""Products found in terms: where the index symbols of a pattern stand, and what is 0 together with a sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .indices import Index, replaced, symbols
from .ring import Ring
from .terms import Atom, Factor, Poly, Term, plain


def embeddings(
    ring: Ring, pattern: Sequence[Factor], factors: Sequence[Factor], places: dict[int, Index]
) -> Iterator[tuple[dict[int, Index], list[Factor]]]:
    """The ways to find all factors of a pattern among others: where its symbols stand, and what is left."""
    if not pattern:
        yield places, list(factors)
        return
    (atom, e), *others = pattern
    for n, (other, power) in enumerate(factors):
        new = dict(places)
        if (other.kind, other.name) == (atom.kind, atom.name) and 0 < e <= power and _placed(ring, new, atom, other):
            left = [(other, plain(power - e))] if power != e else []
            yield from embeddings(ring, others, [*factors[:n], *left, *factors[n + 1 :]], new)


def runs_over_all(ring: Ring, term: Term, pattern: Term, places: dict[int, Index]) -> bool:
    """Whether the bound symbols of a pattern stand for different ones of the same ranges, and for nothing else."""
    inside = {places[s] for s in pattern.bound}
    if len(inside) < len(pattern.bound) or not inside <= set(term.bound):
        return False
    outside = {t for s, place in places.items() if s not in pattern.bound for t in symbols(place)}
    return not inside & outside and all(ring.ranges[s] == ring.ranges[places[s]] for s in pattern.bound)


def _placed(ring: Ring, places: dict[int, Index], pattern: Atom, atom: Atom) -> bool:
    """Let the symbols of an atom stand at the indices of another, unless they stand elsewhere already.

    What is given of a slice says nothing of the places outside it. Composite indices need their symbols to stand.
    """
    plain_ones = [k for k, index in enumerate(pattern.indices) if isinstance(index, int)]
    shape = ring.shapes.get(pattern.name, (None,) * len(pattern.indices))
    for k in plain_ones:
        s, index = pattern.indices[k], atom.indices[k]
        if ring.index_key(places.setdefault(s, index), {}) != ring.index_key(index, {}):
            return False
        if ring.ranges[s] != shape[k] and not ring.within(index, ring.ranges[s]):
            return False
    if len(plain_ones) == len(pattern.indices):
        return True
    if not pattern.free <= places.keys() or pattern.inner:
        return False
    there = Atom(pattern.kind, pattern.name, tuple(replaced(index, places) for index in pattern.indices))
    return ring.atom_key(there) == ring.atom_key(atom)


def indicators(ring: Ring, factors: Sequence[Factor]) -> list[Factor]:
    """The indicators among some factors, those first that are entries at plain indices."""
    kept = [f for f in factors if ring.is_indicator(f[0])]
    return sorted(kept, key=lambda f: not all(isinstance(index, int) for index in f[0].indices))


def without_weights(ring: Ring, poly: Poly) -> Poly:
    """A sum of terms that are not negative without their positive factors: it is 0 at the same places."""
    if not ring.is_nonnegative(poly):
        return poly
    kept = ((t.bound, [f for f in t.factors if not ring.atom_positive(f[0])]) for _, t in poly.terms)
    return ring.total((1, ring.simplified(1, bound, factors)) for bound, factors in kept)


def vanishes_with(ring: Ring, poly: Poly, factors: Sequence[Factor]) -> bool:
    """Whether a product is 0 where a sum of terms that are not negative is, since it holds an indicator of a term."""
    if not ring.is_nonnegative(poly):
        return False
    for _, term in poly.terms:
        held = indicators(ring, term.factors)
        weights = [atom for atom, _ in term.factors if not ring.is_indicator(atom)]
        same: dict[int, Index] = {s: s for s in term.free}
        if held and all(map(ring.atom_positive, weights)) and next(embeddings(ring, held, factors, same), None):
            return True
    return False
