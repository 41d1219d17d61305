"""Exact expectation of polynomials of random entries, and of exponentials that are linear in normal ones.

The expectation of a product is the sum over set partitions of its factors of the products of joint cumulants. Sizes
stay symbols: a cumulant of independent entries is a number times Kronecker deltas, which the sums over indices remove.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence
from fractions import Fraction
from functools import partial

from ..core.naming import free_letters
from ..errors import NoRuleError
from ..normal_form.functions import exp
from ..normal_form.indices import Index, affine
from ..normal_form.ring import Ring
from ..normal_form.terms import ONE, Atom, Factor, Number, Poly, TooLarge, plain, product_of, single
from ..normal_form.writing import LONGEST, TextWriter
from .sources import Source, count_partitions, set_partitions

_MOST, _LONGEST = 5000, 24  # partitions of a product of random entries, and its factors
_MANY = 4  # factors from which on vanishing cumulants are left out at once; below, an answer tells which it used


class Expectation:
    """The expectation over some sources, which are independent of each other."""

    def __init__(self, ring: Ring, sources: Sequence[Source]) -> None:
        self.ring, self.sources = ring, sources
        self.source_of = {name: source for source in sources for name in source.names}

    def of(self, poly: Poly) -> Poly:
        """The expectation; NoRuleError for what is neither a polynomial nor a normal exponential."""
        poly = self._termwise(poly, self._without_exponentials)
        for source in self.sources:
            poly = self._termwise(poly, partial(self._over, source))
        return poly

    def _termwise(self, poly: Poly, of: Callable[[Sequence[Factor]], Poly | None]) -> Poly:
        """The polynomial with what stands for the factors of each term, under its sums; None where they stay."""
        parts: list[tuple[Number, Poly]] = []
        for c, term in poly.terms:
            self.ring.budget.check()
            apart = self.ring.renamed_term(term) if term.bound else term
            found = of(apart.factors)
            parts.append((c, Poly([(1, apart)]) if found is None else self.ring.summed(apart.bound, found)))
        return self.ring.total(parts)

    def variance(self, poly: Poly) -> Poly:
        return self.covariance(poly, poly)

    def covariance(self, a: Poly, b: Poly) -> Poly:
        """``E[a b] - E[a] E[b]``."""
        return self.ring.subtract(self.of(self.ring.multiply(a, b)), self.ring.multiply(self.of(a), self.of(b)))

    # --- products of entries ---

    def _over(self, source: Source, factors: Sequence[Factor]) -> Poly | None:
        """The expectation over one source; the others stay as they are."""
        drawn: list[Atom] = []
        kept: list[Factor] = []
        for atom, e in factors:
            if self._is_entry_of(source, atom) and e > 0 and e == int(e):
                drawn += [atom] * int(e)
            elif self._reads(source, atom):
                raise self._obstacle(atom, e)
            else:
                kept.append((atom, e))
        return self.ring.multiply(product_of(kept), self._moment(source, drawn)) if drawn else None

    def _moment(self, source: Source, drawn: list[Atom]) -> Poly:
        """The expectation of a product of entries: the sum over partitions of the products of cumulants."""
        ring = self.ring
        parts = []
        if len(drawn) > _LONGEST:
            raise self._too_many(source, drawn)
        sizes = list(range(1, len(drawn) + 1))
        if len(drawn) >= _MANY:
            zero = [size for size in sizes if source.vanishes(size)]
            for size in _needed(zero, len(drawn)):
                source.note_vanished(size)
            sizes = [size for size in sizes if size not in zero]
        if count_partitions(len(drawn), sizes) > _MOST:
            raise self._too_many(source, drawn)
        for partition in set_partitions(drawn, sizes):
            ring.budget.check()
            value = ONE
            for block in sorted(partition, key=len, reverse=True):  # higher cumulants vanish most
                value = ring.multiply(value, source.joint(block))
                if not value:
                    break
            parts.append((1, value))
        return ring.total(parts)

    def _too_many(self, source: Source, drawn: Sequence[Atom]) -> TooLarge:
        names = " and ".join(source.names)
        return TooLarge(f"a product of {len(drawn)} entries of {names} has too many partitions")

    def _is_entry_of(self, source: Source, atom: Atom) -> bool:
        return atom.kind in ("entry", "symmetric") and atom.name in source.names

    def _reads(self, source: Source, atom: Atom) -> bool:
        if self._is_entry_of(source, atom) or any(reads_at(index, source.names) for index in atom.indices):
            return True
        return any(self._reads(source, part) for poly in atom.inner for _, t in poly.terms for part, _e in t.factors)

    def is_random(self, poly: Poly) -> bool:
        """Whether a polynomial reads a random entry."""
        return any(self._reads(s, atom) for s in self.sources for _, term in poly.terms for atom, _e in term.factors)

    # --- exponentials ---

    def _without_exponentials(self, factors: Sequence[Factor]) -> Poly | None:
        """``E[f(x) exp(L)] = exp(E L + Var L / 2) E[f(x + Cov(x, L))]`` for L linear in normal entries."""
        held = [(atom, e) for atom, e in factors if atom.kind == "exp" and self._random_atom(atom)]
        return self._shifted(held, [f for f in factors if f not in held]) if held else None

    def _random_atom(self, atom: Atom) -> bool:
        return any(self._reads(source, atom) for source in self.sources)

    def _shifted(self, held: Sequence[Factor], rest: Sequence[Factor]) -> Poly:
        ring = self.ring
        exponent = ring.total((e, atom.inner[0]) for atom, e in held)
        for _, term in exponent.terms:
            drawn = [(atom, e) for atom, e in term.factors if self._random_atom(atom)]
            normal = all(atom.name in self.source_of and self.source_of[atom.name].law.is_normal for atom, _ in drawn)
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

    @property
    def taken(self) -> set[str]:
        """The names of the random tensors and of the sizes."""
        return {*self.source_of, *(s.name for size in self.ring.ranges.values() for s in size.free_symbols)}

    def _obstacle(self, atom: Atom, e: Number) -> NoRuleError:
        return NoRuleError(
            f"the exact expectation reaches polynomials of random entries, and exp of what is linear in normal ones; "
            f"{written(atom, self.taken, e)} is neither: ask for an approximation by "
            'method="delta" or method="quadrature"'
        )


def written(atom: Atom, taken: Collection[str], e: Number = 1) -> str:
    """A power of an atom as text, if it is not too long to read, with indices that are no names that are taken."""
    names = dict(zip(sorted(atom.free), free_letters("ijabc", taken), strict=False))
    text = TextWriter(names, taken).poly(single(atom, plain(e)))
    return text if len(text) <= LONGEST // 4 else f"a function ({atom.kind})"


def reads_at(index: Index, names: Container[str]) -> bool:
    """Whether an index is computed from entries of the tensors of these names."""
    if isinstance(index, int):
        return False
    if index[0] == "perm":
        return reads_at(index[3], names)
    if index[0] == "entry":
        return index[1] in names or any(reads_at(i, names) for i in index[2])
    return any(reads_at(base, names) for base in affine(index)[1])


def _needed(zero: Sequence[int], total: int) -> list[int]:
    """Of the orders of vanishing cumulants those that leave no partition of ``total`` factors with another of them."""
    needed: list[int] = []
    for order in zero:
        reached = {0}
        for size in range(1, total + 1):
            if size not in needed:
                reached |= {s + n * size for s in reached for n in range(1, (total - s) // size + 1)}
        if total - order in reached:
            needed.append(order)
    return needed
