"""Exact expectation of polynomials of random entries, and of exponentials that are linear in normal ones.

The expectation of a product is the sum over set partitions of its factors of the products of joint cumulants. Sizes
stay symbols: a cumulant of independent entries is a number times Kronecker deltas, which the sums over indices remove.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ..errors import NoRuleError
from ..proof.normal.functions import exp, single
from ..proof.normal.ring import Ring
from ..proof.normal.terms import ONE, Atom, Factor, Number, Poly, Term, plain
from ..proof.normal.writing import LONGEST, Writer
from .sources import Source, set_partitions

_MANY = 4  # factors from which on vanishing cumulants are left out at once; below, an answer tells which it used


class Expectation:
    """The expectation over some sources, which are independent of each other."""

    def __init__(self, ring: Ring, sources: Sequence[Source]) -> None:
        self.ring, self.sources = ring, sources
        self.source_of = {name: source for source in sources for name in source.names}

    def of(self, poly: Poly) -> Poly:
        """The expectation; NoRuleError for what is neither a polynomial nor a normal exponential."""
        poly = self._without_exponentials(poly)
        for source in self.sources:
            poly = self._over(source, poly)
        return poly

    def variance(self, poly: Poly) -> Poly:
        return self.covariance(poly, poly)

    def covariance(self, a: Poly, b: Poly) -> Poly:
        """``E[a b] - E[a] E[b]``."""
        return self.ring.subtract(self.of(self.ring.multiply(a, b)), self.ring.multiply(self.of(a), self.of(b)))

    # --- products of entries ---

    def _over(self, source: Source, poly: Poly) -> Poly:
        """The expectation over one source; the others stay as they are."""
        parts: list[tuple[Number, Poly]] = []
        for c, term in poly.terms:
            self.ring.budget.check()
            apart = self.ring.renamed_term(term) if term.bound else term
            drawn: list[Atom] = []
            kept: list[Factor] = []
            for atom, e in apart.factors:
                if self._is_entry_of(source, atom) and e > 0 and e == int(e):
                    drawn += [atom] * int(e)
                elif self._reads(source, atom):
                    raise self._obstacle(atom, e)
                else:
                    kept.append((atom, e))
            if not drawn:
                parts.append((c, Poly([(1, apart)])))
                continue
            moment = self._moment(source, drawn)
            inside = self.ring.multiply(Poly([(1, Term((), tuple(kept)))]), moment)
            parts.append((c, self.ring.summed(apart.bound, inside)))
        return self.ring.total(parts)

    def _moment(self, source: Source, drawn: list[Atom]) -> Poly:
        """The expectation of a product of entries: the sum over partitions of the products of cumulants."""
        ring = self.ring
        parts = []
        sizes = list(range(1, len(drawn) + 1))
        if len(drawn) >= _MANY:
            sizes = [size for size in sizes if not source.vanishes(size)]
        for partition in set_partitions(drawn, sizes):
            ring.budget.check()
            value = ONE
            for block in sorted(partition, key=len, reverse=True):  # higher cumulants vanish most
                value = ring.multiply(value, source.joint(block))
                if not value:
                    break
            parts.append((1, value))
        return ring.total(parts)

    def _is_entry_of(self, source: Source, atom: Atom) -> bool:
        return atom.kind in ("entry", "symmetric") and atom.name in source.names

    def _reads(self, source: Source, atom: Atom) -> bool:
        if self._is_entry_of(source, atom):
            return True
        return any(self._reads(source, part) for poly in atom.inner for _, t in poly.terms for part, _e in t.factors)

    def is_random(self, poly: Poly) -> bool:
        """Whether a polynomial reads a random entry."""
        return any(self._reads(s, atom) for s in self.sources for _, term in poly.terms for atom, _e in term.factors)

    # --- exponentials ---

    def _without_exponentials(self, poly: Poly) -> Poly:
        """``E[f(x) exp(L)] = exp(E L + Var L / 2) E[f(x + Cov(x, L))]`` for L linear in normal entries."""
        parts = []
        for c, term in poly.terms:
            exponents = [(atom, e) for atom, e in term.factors if atom.kind == "exp" and self._random_atom(atom)]
            if not exponents:
                parts.append((c, Poly([(1, term)])))
                continue
            apart = self.ring.renamed_term(term)
            held = [(atom, e) for atom, e in apart.factors if atom.kind == "exp" and self._random_atom(atom)]
            rest = [f for f in apart.factors if f not in held]
            inside = self._shifted(held, rest)
            parts.append((c, self.ring.summed(apart.bound, inside)))
        return self.ring.total(parts)

    def _random_atom(self, atom: Atom) -> bool:
        return any(self._reads(source, atom) for source in self.sources)

    def _shifted(self, held: Sequence[Factor], rest: Sequence[Factor]) -> Poly:
        ring = self.ring
        exponent = ring.total((e, atom.inner[0]) for atom, e in held)
        for _, term in exponent.terms:
            drawn = [(atom, e) for atom, e in term.factors if self._random_atom(atom)]
            normal = all(atom.name in self.source_of and self.source_of[atom.name].is_normal for atom, _ in drawn)
            if len(drawn) > 1 or not normal or any(e != 1 for _, e in drawn):
                raise self._obstacle(*held[0])
        mean, variance = self.of(exponent), self.variance(exponent)
        factor = exp(ring, ring.total([(1, mean), (Fraction(1, 2), variance)]))

        def moved(atom: Atom) -> Poly | Atom:
            if atom.kind not in ("entry", "symmetric") or atom.name not in self.source_of:
                if self._random_atom(atom):
                    raise self._obstacle(atom, 1)
                return atom
            return ring.add(single(atom), self.covariance(single(atom), exponent))

        return ring.multiply(factor, ring.rebuilt((), rest, moved))

    # --- what is out of reach ---

    def _obstacle(self, atom: Atom, e: Number) -> NoRuleError:
        written = Writer(False, {s: f"i{n}" for n, s in enumerate(sorted(atom.free))}).poly(
            Poly([(1, Term((), ((atom, plain(e)),)))])
        )
        shown = written if len(written) <= LONGEST // 4 else f"a function ({atom.kind})"
        return NoRuleError(
            f"the exact expectation reaches polynomials of random entries, and exp of what is linear in normal ones; "
            f'{shown} is neither: ask for an approximation by method="delta" or method="quadrature"'
        )
