"""What is given of masks: rows that attend to something, whose sums of positive weights are therefore positive."""

from __future__ import annotations

from dataclasses import dataclass

from .indices import Index, symbols
from .matching import embeddings, indicators
from .ring import Ring
from .terms import Poly, Term


@dataclass(frozen=True)
class Support:
    """A sum of products of indicators that is positive for all values of its free symbols."""

    term: Term

    def __call__(self, ring: Ring, term: Term) -> bool:
        """Whether a term is a sum over at least the same places, with positive weights."""
        return any(
            self._runs_over_all(ring, term, places) and all(ring.atom_positive(atom) for atom, _ in left)
            for places, left in embeddings(ring, self.term.factors, term.factors, {})
        )

    def _runs_over_all(self, ring: Ring, term: Term, places: dict[int, Index]) -> bool:
        """Whether the bound symbols stand for different bound symbols of the same ranges, and for nothing else."""
        inside = {places[s] for s in self.term.bound}
        if len(inside) < len(self.term.bound) or not inside <= set(term.bound):
            return False
        outside = {t for s, place in places.items() if s not in self.term.bound for t in symbols(place)}
        return not inside & outside and all(ring.ranges[s] == ring.ranges[places[s]] for s in self.term.bound)


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
