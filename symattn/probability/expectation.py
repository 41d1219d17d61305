"""Exact expectation: polynomials of random entries, exponentials linear in normal ones, and rules for the rest.

The expectation of a product is the sum over set partitions of its factors of the products of joint cumulants. Sizes
stay symbols: a cumulant of independent entries is a number times Kronecker deltas, which the sums over indices remove.
Other terms are taken by the rules of a table, some sources at a time while the others stay fixed (the tower rule).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import sympy

from ..core.naming import free_letters
from ..core.stated import Sentence
from ..errors import NoRuleError
from ..normal_form.constructors import scalar
from ..normal_form.functions import exp
from ..normal_form.indices import Index, affine
from ..normal_form.ring import Ring
from ..normal_form.terms import (
    ONE,
    Atom,
    Factor,
    Number,
    Poly,
    Term,
    TooLarge,
    Undefined,
    Unsupported,
    plain,
    product_of,
    single,
)
from ..normal_form.writing import LONGEST, TextWriter
from .rule import Rule
from .sources import Source, Symbols, count_partitions, set_partitions

_MOST, _LONGEST = 5000, 24  # partitions of a product of random entries, and its factors
INFINITE = "the expectation is infinite"
_REACH = (
    "the exact expectation reaches polynomials of random entries, and steps, exponentials and erf of what is linear in "
    "normal ones"
)
_MANY = 4  # factors from which on vanishing cumulants are left out at once; below, an answer tells which it used


class Written(Protocol):
    """How polynomials are written for people: the names of free index symbols, and formulas."""

    names: dict[int, sympy.Expr]

    def formula(self, poly: Poly) -> sympy.Expr: ...


Rules = Sequence[Rule]


@dataclass
class Used:
    """What a calculation has used so far: cumulants whose values it took, rules, and values that must be positive."""

    polys: list[Poly] = field(default_factory=list)
    rules: dict[str, Sentence] = field(default_factory=dict)
    positive: dict[int, Poly] = field(default_factory=dict)
    values: dict[sympy.Expr, None] = field(default_factory=dict)
    conditions: dict[sympy.Symbol, sympy.Expr] = field(default_factory=dict)  # positive values, by closed forms

    def copy(self) -> Used:
        return Used(list(self.polys), dict(self.rules), dict(self.positive), dict(self.values), dict(self.conditions))


class Expectation:
    """The expectation over some sources, which are independent of each other."""

    def __init__(
        self, ring: Ring, sources: Sequence[Source], symbols: Symbols, written: Written | None = None, rules: Rules = ()
    ) -> None:
        self.ring, self.sources, self.symbols, self._written, self.rules = ring, sources, symbols, written, rules
        self.source_of = {name: source for source in sources for name in source.names}
        self.used = Used()
        self.memory: dict[Any, Any] = {}  # what rules found and may find again

    def of(self, poly: Poly) -> Poly:
        """The expectation; NoRuleError for what no rule reaches."""
        plain_terms = [part for part in poly.terms if self.is_plain(part[1].factors)]
        found = self._of_plain(Poly(plain_terms))
        if len(plain_terms) == len(poly.terms):
            return found
        others = Poly([part for part in poly.terms if part not in plain_terms])
        return self.ring.add(found, self._termwise(others, self._by_rules))

    def _of_plain(self, poly: Poly) -> Poly:
        poly = self._termwise(poly, self._without_exponentials)
        for source in self.sources:
            poly = self._termwise(poly, partial(self._over, source))
        return poly

    def over(self, sources: Sequence[Source]) -> Expectation:
        """The expectation of polynomials over some of the sources only, while the others are fixed."""
        return Expectation(self.ring, sources, self.symbols)

    def _termwise(self, poly: Poly, of: Callable[[Term], Poly | None]) -> Poly:
        """The polynomial with what stands for the factors of each term, under its sums; None where they stay."""
        parts: list[tuple[Number, Poly]] = []
        for c, term in poly.terms:
            self.ring.budget.check()
            apart = self.ring.renamed_term(term) if term.bound else term
            found = of(apart)
            parts.append((c, Poly([(1, apart)]) if found is None else self.ring.summed(apart.bound, found)))
        return self.ring.total(parts)

    def variance(self, poly: Poly) -> Poly:
        return self.covariance(poly, poly)

    def covariance(self, a: Poly, b: Poly) -> Poly:
        """``E[a b] - E[a] E[b]``."""
        return self.ring.subtract(self.of(self.ring.multiply(a, b)), self.ring.multiply(self.of(a), self.of(b)))

    # --- products of entries ---

    def _over(self, source: Source, term: Term) -> Poly | None:
        """The expectation over one source; the others stay as they are."""
        factors = term.factors
        drawn: list[Atom] = []
        kept: list[Factor] = []
        for atom, e in factors:
            if self._is_entry_of(source, atom) and e > 0 and e == int(e):
                drawn += [atom] * int(e)
            elif self._reads(source, atom):
                raise self._refusal([(atom, e)], ())
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

    def is_linear(self, poly: Poly) -> bool:
        """Whether a polynomial is linear in the random entries, which are all normal."""
        drawn = (atom for _, term in poly.terms for atom, _e in term.factors if self._random_atom(atom))
        return self.is_linear_form(poly) and all(map(self._is_normal, drawn))

    def is_linear_form(self, poly: Poly) -> bool:
        """Whether a polynomial is linear in the random entries."""
        for _, term in poly.terms:
            drawn = [(atom, e) for atom, e in term.factors if self._random_atom(atom)]
            if len(drawn) > 1 or any(e != 1 or not self.is_entry(atom) for atom, e in drawn):
                return False
        return True

    def _is_normal(self, atom: Atom) -> bool:
        source = self.source_of.get(atom.name)
        return source is not None and source.law.is_normal and self._is_plain_entry(source, atom)

    def is_entry(self, atom: Atom) -> bool:
        """Whether an atom is an entry of one of the sources, at places that are not random."""
        return any(self._is_plain_entry(source, atom) for source in self.sources)

    def is_normal_polynomial(self, poly: Poly) -> bool:
        """Whether a polynomial holds no random factor but whole powers of normal entries."""
        drawn = [(atom, e) for _, t in poly.terms for atom, e in t.factors if self._random_atom(atom)]
        return all(e > 0 and e == int(e) and self._is_normal(atom) for atom, e in drawn)

    def _is_plain_entry(self, source: Source, atom: Atom) -> bool:
        """Whether an atom is an entry at places that are not random."""
        return self._is_entry_of(source, atom) and not any(reads_at(i, self.source_of) for i in atom.indices)

    def is_plain(self, factors: Sequence[Factor]) -> bool:
        """Whether a term is a polynomial of random entries, times exponentials that are linear in normal ones."""
        for atom, e in factors:
            if not self._random_atom(atom):
                continue
            if atom.kind == "exp":
                if not self.is_linear(atom.inner[0]):
                    return False
            elif not (e > 0 and e == int(e) and any(self._is_plain_entry(s, atom) for s in self.sources)):
                return False
        return True

    # --- the table of rules ---

    def _by_rules(self, term: Term) -> Poly:
        """The expectation of a term that is not plain, by the first rule that leads to an end."""
        live = [source for source in self.sources if any(self._reads(source, atom) for atom, _ in term.factors)]
        reasons: list[str] = []
        for rule in self.rules:
            for group in rule.groups(live):
                before = self.used.copy()
                try:
                    found = self.of(rule.apply(self, group, term.factors, term.bound))
                    if not found:
                        self._require_mean(group, term.factors)
                except (NoRuleError, TooLarge, Undefined, Unsupported) as problem:
                    self.used = before
                    if rule.explains:
                        reasons.append(str(problem))
                    continue
                self.used.rules.setdefault(rule.name, rule.sentence)
                return found
        raise self._refusal(term.factors, reasons)

    def _require_mean(self, group: Sequence[Source], factors: Sequence[Factor]) -> None:
        """NoRuleError where a mean of 0 over some sources is multiplied by what may have no expectation."""
        others = [f for f in factors if self._random_atom(f[0]) and not any(self._reads(s, f[0]) for s in group)]
        if others:
            self.of(product_of(others))

    def value(self, poly: Poly) -> Poly:
        """The polynomial with the values of its cumulants, which count as used."""
        self.used.polys.append(poly)

        def change(atom: Atom) -> Poly | None:
            known = self.symbols.known.get(atom.name)
            return scalar(self.ring, known.value) if known is not None and known.value is not None else None

        return self.ring.rewrite(poly, change, "scalar")

    def require_positive(self, poly: Poly) -> None:
        """Note that the answer holds where a value is positive, unless that is known."""
        if not self.ring.is_positive(poly):
            self.used.positive.setdefault(self.ring.poly_key(poly), poly)

    def require(self, value: sympy.Expr) -> None:
        """The same of a value in SymPy."""
        if not value.is_positive:
            self.used.values.setdefault(value)

    def closed(self, value: sympy.Expr, positive: sympy.Expr) -> Poly:
        """A closed form as a factor, which needs another value to be positive."""
        found = self.symbols.value(value)
        if not positive.is_positive:
            self.used.conditions[found.terms[0][1].factors[0][0].name] = positive
        return found

    def infinite(self, what: str, of: sympy.Expr) -> Poly:
        """A moment that does not exist, as a factor that no answer may hold."""
        return self.symbols.unknown(("infinite", what, of), what)

    def formula(self, poly: Poly) -> sympy.Expr:
        """A polynomial as SymPy."""
        assert self._written is not None
        return self._written.formula(poly)

    def named(self) -> set[int]:
        """The index symbols that people gave names."""
        assert self._written is not None
        return set(self._written.names)

    # --- exponentials ---

    def _without_exponentials(self, term: Term) -> Poly | None:
        """``E[f(x) exp(L)] = exp(E L + Var L / 2) E[f(x + Cov(x, L))]`` for L linear in normal entries."""
        factors = term.factors
        held = [(atom, e) for atom, e in factors if atom.kind == "exp" and self._random_atom(atom)]
        return self._shifted(held, [f for f in factors if f not in held]) if held else None

    def _random_atom(self, atom: Atom) -> bool:
        return any(self._reads(source, atom) for source in self.sources)

    def _shifted(self, held: Sequence[Factor], rest: Sequence[Factor]) -> Poly:
        ring = self.ring
        exponent = ring.total((e, atom.inner[0]) for atom, e in held)
        mean, variance = self.of(exponent), self.variance(exponent)
        factor = exp(ring, ring.total([(1, mean), (Fraction(1, 2), variance)]))

        def moved(atom: Atom) -> Poly | Atom:
            if atom.kind not in ("entry", "symmetric") or atom.name not in self.source_of:
                return atom
            return ring.add(single(atom), self.covariance(single(atom), exponent))

        return ring.multiply(factor, ring.rebuilt((), rest, moved))

    # --- what is out of reach ---

    @property
    def taken(self) -> set[str]:
        """The names of the random tensors and of the sizes."""
        return {*self.source_of, *(s.name for size in self.ring.ranges.values() for s in size.free_symbols)}

    def _refusal(self, factors: Sequence[Factor], reasons: Sequence[str]) -> NoRuleError:
        """The error for a term that no rule reaches: the first reason, or the factor that has no rule."""
        for told in reasons:
            if told.startswith((_REACH, INFINITE)):  # the former of a term that a rule led to
                return NoRuleError(told)
        held = (f for f in factors if self._random_atom(f[0]) and f[0].kind not in ("entry", "symmetric"))
        atom, e = next(held, factors[0])
        better = (told for told in reasons if " is no " not in told)  # than that it has another shape
        reason = next(better, reasons[0] if reasons else f"{self.shown(atom, e)} is neither")
        return NoRuleError(f'{_REACH}; {reason}: ask for an approximation by method="delta" or method="quadrature"')

    def shown(self, atom: Atom, e: Number = 1) -> str:
        """A power of an atom as text."""
        return written(atom, self.taken, e)

    def shown_poly(self, poly: Poly) -> str:
        """A polynomial as text."""
        return written_poly(poly, self.taken) or "a polynomial"


def written(atom: Atom, taken: Collection[str], e: Number = 1) -> str:
    """A power of an atom as text, if it is not too long to read, with indices that are no names that are taken."""
    return written_poly(single(atom, plain(e)), taken) or f"a function ({atom.kind})"


def written_poly(poly: Poly, taken: Collection[str]) -> str:
    """A polynomial as text; nothing if it is too long."""
    names = dict(zip(sorted(poly.free), free_letters("ijabc", taken), strict=False))
    text = TextWriter(names, taken).poly(poly)
    return text if len(text) <= LONGEST // 4 else ""


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
