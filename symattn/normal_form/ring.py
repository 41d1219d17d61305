"""Arithmetic of polynomials of entries: sums, products, bound sums and the replacement of index symbols.

Every result is in normal form: ``simplified`` merges equal factors and then applies the rules of ``contraction`` until
none applies. How an atom is made again after a replacement is told by a table (see ``constructors``).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Protocol

import sympy

from ..core.budget import Budget
from ..core.sizes import Shape, never_negative
from .indices import Index, affine, bounds, number, plus, replaced, symbols
from .terms import ONE, ZERO, Atom, Factor, Keys, Number, Poly, Term, TooLarge, Unsupported, base_of, plain, single

MOST_TERMS = 4000  # of one polynomial

INDICATORS = frozenset({"same", "range", "positive", "zero"})  # atoms whose values are 0 and 1
Replacement = Mapping[int, Index]


Used = tuple[str, str]  # a sentence, and the name of the tensor that it is about


class Rule(Protocol):
    def __call__(self, ring: Ring, bound: tuple[int, ...], factors: list[Factor]) -> Poly | None: ...


class Ring(Keys):
    """One calculation: what is known of the tensors, the rules in force, and what has been used on the way.

    ``facts`` are the hypotheses of the tensors by name, ``shapes`` their shapes; ``places`` are the sizes of the
    permutations.
    """

    def __init__(
        self,
        facts: Mapping[str, Sequence[str]],
        shapes: Mapping[str, Shape],
        constructors: Mapping[str, Callable[..., Poly]],
        rules: Sequence[tuple[frozenset[str], Rule]],
        budget: Budget,
    ) -> None:
        super().__init__()
        self.facts, self.shapes, self.constructors, self.rules, self.budget = facts, shapes, constructors, rules, budget
        self.places = {name: shape[-1] for name, shape in shapes.items() if "permutation" in facts.get(name, ())}
        self.used: dict[Used, None] = {}
        self._decided: dict[Index, bool | None] = {}
        self.divisors: dict[int, Poly] = {}  # what is divided by
        self.guarded: set[int] = set()  # shapes of what is divided by only where it is not 0
        self.rooms: Sequence[sympy.Expr] = ()  # expressions of sizes that are not negative where the sides have values
        self.supports: list[Callable[[Ring, Term], bool]] = []  # terms that are positive by what is given

    def says(self, name: Any, hypothesis: str) -> bool:
        """Whether a tensor was declared to have a property."""
        return hypothesis in self.facts.get(name, ())

    def runs_over_all(self, s: int, name: str) -> bool:
        """Whether an index symbol takes every place of the last axis of a tensor, and not only those of a slice."""
        return name in self.shapes and self.ranges[s] == self.shapes[name][-1]

    def use(self, rule: str, name: str = "") -> None:
        """Note that a rule was used, of the tensor of that name if it speaks of one by ``{}``."""
        self.used[rule, name] = None

    # --- sums ---

    def total(self, parts: Iterable[tuple[Number, Poly]]) -> Poly:
        """The sum of coefficients times polynomials."""
        found: dict[int, tuple[Number, Term]] = {}
        for scale, poly in parts:
            for c, term in poly.terms:
                key = self.term_key(term)
                known = found.get(key)
                found[key] = (scale * c + (known[0] if known else 0), known[1] if known else term)
        if len(found) > MOST_TERMS:
            raise TooLarge(f"a sum of more than {MOST_TERMS} terms")
        return Poly([(plain(c), term) for c, term in found.values() if c])

    def add(self, *polys: Poly) -> Poly:
        return self.total((1, poly) for poly in polys)

    def subtract(self, a: Poly, b: Poly) -> Poly:
        return self.total([(1, a), (-1, b)])

    def complement(self, poly: Poly) -> Poly:
        """1 less the polynomial, as of an indicator that of the opposite."""
        return self.subtract(ONE, poly)

    def scale(self, c: Number, poly: Poly) -> Poly:
        return Poly([(plain(c * value), term) for value, term in poly.terms]) if c else ZERO

    def summed(self, bound: Sequence[int], poly: Poly) -> Poly:
        """The sum over index symbols."""
        apart = ((c, self.apart_from(bound, term)) for c, term in poly.terms)
        return self.total((1, self.simplified(c, (*bound, *t.bound), list(t.factors))) for c, t in apart)

    # --- products ---

    def multiply(self, a: Poly, b: Poly) -> Poly:
        if (c := a.number) is not None:
            return self.scale(c, b)
        if (c := b.number) is not None:
            return self.scale(c, a)
        if len(a.terms) * len(b.terms) > MOST_TERMS:
            raise TooLarge(f"a product of more than {MOST_TERMS} terms")
        parts = [(1, self._product(plain(c * k), left, right)) for c, left in a.terms for k, right in b.terms]
        return parts[0][1] if len(parts) == 1 else self.total(parts)

    def _product(self, c: Number, left: Term, right: Term) -> Poly:
        if left.bound or right.bound:
            met, own = set(left.bound), set(right.bound)
            if own & (met | left.free) or met & right.free:
                right = self.renamed_term(right)
            if set(left.bound) & right.free:
                left = self.renamed_term(left)
        return self.simplified(c, left.bound + right.bound, [*left.factors, *right.factors])

    def product(self, polys: Iterable[Poly]) -> Poly:
        return reduce(self.multiply, polys, ONE)

    def whole_power(self, poly: Poly, exponent: int) -> Poly:
        """A positive whole power, multiplied out."""
        return self.product([poly] * exponent)

    def atom(self, atom: Atom, exponent: Number = 1) -> Poly:
        """A power of an atom, in normal form."""
        return self.simplified(1, (), [(atom, exponent)])

    # --- normal form of one term ---

    def simplified(self, c: Number, bound: tuple[int, ...], factors: list[Factor]) -> Poly:
        """``c`` times the sum over ``bound`` of the product of the factors, in normal form."""
        self.budget.check()
        merged = self._merged(factors)
        kinds = {atom.kind for atom, _ in merged}
        for needed, rule in self.rules:
            if not needed.isdisjoint(kinds) if needed else bound:
                result = rule(self, bound, merged)
                if result is not None:
                    return self.scale(c, result)
        return Poly([(c, Term(bound, tuple(merged)))]) if c else ZERO

    def _merged(self, factors: Sequence[Factor]) -> list[Factor]:
        """Equal atoms brought together."""
        found: dict[int, tuple[Atom, Number]] = {}
        for atom, exponent in factors:
            key = self.atom_key(atom)
            known = found.get(key)
            found[key] = (known[0], known[1] + exponent) if known else (atom, exponent)
        merged = []
        for atom, exponent in found.values():
            if exponent != 0:
                merged.append((atom, 1 if self.is_indicator(atom) else plain(exponent)))
            elif self.is_indicator(atom):
                merged.append((atom, 1))
            elif self.guarded and not self.may_cancel(base_of(atom)):
                if atom.kind == "index":  # 1 but at 0
                    merged.append((Atom("range", None, (plus(number(-1), atom.indices[0]),)), 1))
                    continue
                raise Unsupported("a quotient that is taken to be 0 where it is not defined")
        return merged

    def is_indicator(self, atom: Atom) -> bool:
        """Whether all values of the atom are 0 or 1."""
        return atom.kind in INDICATORS or (atom.kind in ("entry", "symmetric") and self.says(atom.name, "binary"))

    def note_divisor(self, atom: Atom) -> None:
        """List an atom that is divided by."""
        if not self.is_indicator(atom):
            poly = base_of(atom)
            self.divisors.setdefault(self.poly_key(poly), poly)

    def shape_key(self, poly: Poly) -> int:
        """A key that does not tell the free index symbols apart."""
        return self.poly_key(poly, dict.fromkeys(poly.free, ("free",)))

    def may_cancel(self, poly: Poly) -> bool:
        """Whether a polynomial may be cancelled against its inverse.

        What is divided by must not be 0 for a claim to make sense, and its definition says so. But where an operation
        gives 0 instead of dividing by 0, as masked softmax does for an empty row, it has to be known to be positive.
        """
        return self.is_positive(poly) or self.shape_key(poly) not in self.guarded

    def guard(self, polys: Iterable[Poly]) -> None:
        """Quotients by these polynomials are 0 where these are, unless they are known to be positive."""
        self.guarded |= {self.shape_key(poly) for poly in polys if not self.is_positive(poly)}

    def is_guarded(self, atom: Atom) -> bool:
        """Whether a quotient by the atom is 0 where the atom is."""
        return bool(self.guarded) and self.shape_key(base_of(atom)) in self.guarded

    # --- signs ---

    def is_positive(self, poly: Poly) -> bool:
        """Whether every value is known to be positive."""
        return self.is_nonnegative(poly) and any(self.term_positive(term) for _, term in poly.terms)

    def is_nonnegative(self, poly: Poly) -> bool:
        """Whether no value is negative, as far as its terms show it one by one."""
        return all(c > 0 and self.term_nonnegative(term) for c, term in poly.terms)

    def term_positive(self, term: Term) -> bool:
        """Whether a term is positive: its factors are, and its indicators are 1 at some place of the sum."""
        if any(supported(self, term) for supported in self.supports):
            return True
        kinds = ("range", "same", "entry", "symmetric") if self.supports else ("range", "same")
        gates = [a for a, _ in term.factors if a.kind in kinds and not self.atom_positive(a)]
        if not all(self.atom_positive(atom) for atom, _ in term.factors if atom not in gates):
            return False
        return not gates or any(self._opened(gates, dict(places)) for places in self._places(term))

    def _places(self, term: Term) -> Iterator[Iterable[tuple[int, Index]]]:
        """Places to try for the bound symbols: the first and the last, and where another index stands."""
        if len(term.bound) > 2:
            return
        others = sorted(term.free)
        choices = [
            [(s, at) for at in (number(0), number(self.ranges[s] - 1), *others) if self.within(at, self.ranges[s])]
            for s in term.bound
        ]
        yield from itertools.product(*choices)

    def _opened(self, gates: Sequence[Atom], places: Replacement) -> bool:
        """Whether indicators are 1 for certain once the symbols stand at these places."""
        for atom in gates:
            indices = [replaced(index, places) for index in atom.indices]
            if atom.kind == "same":
                if affine(plus(indices[0], indices[1], -1)) != (sympy.S.Zero, {}):
                    return False
            elif atom.kind != "range":
                there = Term((), ((Atom(atom.kind, atom.name, tuple(indices)), 1),))
                if not any(supported(self, there) for supported in self.supports):
                    return False
            elif self.decided(indices[0]) is not True:
                return False
        return True

    def term_nonnegative(self, term: Term) -> bool:
        return all(self.atom_nonnegative(atom) or (e % 2 == 0 and self.is_real(atom)) for atom, e in term.factors)

    def atom_positive(self, atom: Atom) -> bool:
        if atom.kind == "scalar":
            return bool(atom.name.is_positive)
        if atom.kind in ("entry", "symmetric"):
            return self.says(atom.name, "positive")
        if atom.kind == "exp":
            return self.is_real(atom)
        return atom.kind == "power" and self.is_positive(atom.inner[0])

    def atom_nonnegative(self, atom: Atom) -> bool:
        if self.atom_positive(atom) or self.is_indicator(atom):
            return True
        return (atom.kind == "scalar" and bool(atom.name.is_nonnegative)) or atom.kind == "index"

    def is_real(self, atom: Atom) -> bool:
        """Whether the atom has finite real values: no imaginary unit, no -oo, and no logarithm of what may be 0."""
        if atom.kind in ("imaginary", "minus infinity") or (atom.kind == "log" and not self.is_positive(atom.inner[0])):
            return False
        return all(self.is_real(part) for poly in atom.inner for _, term in poly.terms for part, _ in term.factors)

    # --- signs of indices ---

    def decided(self, index: Index) -> bool | None:
        """Whether an index expression is >= 0, for all values of its symbols or for none; else None."""
        if index not in self._decided:
            self._decided[index] = self._decide(index)
        return self._decided[index]

    def _decide(self, index: Index) -> bool | None:
        edges = bounds(index, self.ranges, self.places)
        if edges is None:
            return None
        if any(never_negative(edges[0] - room) for room in (0, *self.rooms)):
            return True
        return False if any(never_negative(-edges[1] - 1 - room) for room in (0, *self.rooms)) else None

    def within(self, index: Index, size: sympy.Expr) -> bool:
        """Whether an index is provably from 0 to size - 1."""
        inside = self.decided(index) is True
        return inside and self.decided(plus(number(size - 1), index, -1)) is True

    # --- replacing index symbols ---

    def renamed_term(self, term: Term) -> Term:
        """The term with new bound symbols, which changes no key."""
        new = {s: self.fresh(self.ranges[s]) for s in term.bound}
        made = Term(tuple(new.values()), tuple((self.renamed(atom, new), e) for atom, e in term.factors))
        made.keys = term.keys  # what is free in both is the same
        return made

    def in_canonical_names(self, poly: Poly) -> Poly:
        """The polynomial with its outermost bound symbols numbered in canonical order."""
        terms = []
        for c, term in poly.terms:
            order = self.in_order(term)
            terms.append((c, self.renamed_term(Term(tuple(order), term.factors)) if order else term))
        return Poly(terms)

    def apart_from(self, met: Iterable[int], term: Term) -> Term:
        """The term with new bound symbols, if it binds one of those that are met."""
        return term if set(term.bound).isdisjoint(met) else self.renamed_term(term)

    def renamed(self, atom: Atom, new: Mapping[int, int]) -> Atom:
        """The atom with free index symbols under other names; what binds one of them inside keeps its own."""
        if not atom.free & new.keys():
            return atom
        indices = tuple(replaced(index, new) for index in atom.indices)
        bound, inner, inside = self._entered(atom, new)
        return Atom(atom.kind, atom.name, indices, tuple(self._renamed_poly(p, inside) for p in inner), bound)

    def _renamed_poly(self, poly: Poly, new: Mapping[int, int]) -> Poly:
        if not poly.free & new.keys():
            return poly
        terms = []
        for c, term in poly.terms:
            inside, met = _under(term.bound, new)
            apart = self.renamed_term(term) if met else term
            terms.append((c, Term(apart.bound, tuple((self.renamed(atom, inside), e) for atom, e in apart.factors))))
        return Poly(terms)

    def _entered(self, atom: Atom, new: Mapping[int, Any]) -> tuple[tuple[int, ...], tuple[Poly, ...], dict[int, Any]]:
        """What an atom binds and holds, and what is replaced inside; nothing that comes in is bound there."""
        inside, met = _under(atom.bound, new)
        if not met:
            return atom.bound, atom.inner, inside
        fresh = {s: self.fresh(self.ranges[s]) for s in atom.bound}
        return tuple(fresh.values()), tuple(self._renamed_poly(p, fresh) for p in atom.inner), inside

    def replace(self, poly: Poly, new: Replacement) -> Poly:
        """The polynomial with index symbols replaced, in normal form again."""
        if not poly.free & new.keys():
            return poly
        return self.total((1, self._replace_term(c, term, new)) for c, term in poly.terms)

    def _replace_term(self, c: Number, term: Term, new: Replacement) -> Poly:
        if not term.free & new.keys():
            return Poly([(c, term)])
        inside, met = _under(term.bound, new)
        if met:
            term = self.renamed_term(term)
        again = self.rebuilt(term.bound, term.factors, lambda atom: self.replace_atom(atom, inside), inside)
        return self.scale(c, again)

    def rebuilt(
        self,
        bound: tuple[int, ...],
        factors: Iterable[Factor],
        again: Callable[[Atom], Poly | Atom],
        touched: Iterable[int] | None = None,
    ) -> Poly:
        """The sum over ``bound`` of the factors, each made again by ``again`` if it holds a touched symbol."""
        met = None if touched is None else set(touched)
        kept: list[Factor] = []
        grown: list[Poly] = []
        c: Number = 1
        for atom, e in factors:
            made = again(atom) if met is None or atom.free & met else atom
            if isinstance(made, Poly):
                is_zero = e < 0 and not made and self.is_guarded(atom)
                made = ZERO if is_zero else self._guard_again(atom, e, self.raised(made, e))
                if len(made.terms) == 1 and not made.terms[0][1].bound:
                    c = c * made.terms[0][0]
                    kept += made.terms[0][1].factors
                else:
                    grown.append(made)
            else:
                kept.append((made, e))
        if not grown:
            return self.simplified(plain(c), bound, kept)
        body = self.multiply(self.simplified(plain(c), (), kept), self.product(grown))
        return self.summed(bound, body)

    def _guard_again(self, atom: Atom, e: Number, made: Poly) -> Poly:
        """What a guarded divisor becomes is guarded too."""
        if e < 0 and self.is_guarded(atom):
            for _, term in made.terms:
                self.guarded |= {self.shape_key(base_of(part)) for part, power in term.factors if power < 0}
        return made

    def raised(self, poly: Poly, exponent: Number) -> Poly:
        """A power of a polynomial."""
        return poly if exponent == 1 else self.constructors["power"](self, poly, exponent)

    def replace_atom(self, atom: Atom, new: Replacement) -> Poly | Atom:
        """An atom with index symbols replaced: an atom still, or what its constructor makes of it."""
        indices = tuple(replaced(index, new) for index in atom.indices)
        if atom.kind == "index":
            return self.constructors["index value"](self, indices[0])
        if not atom.inner:
            return Atom(atom.kind, atom.name, indices)
        bound, inner, inside = self._entered(atom, new)
        return self.made(atom, indices, tuple(self.replace(p, inside) for p in inner), bound)

    def made(self, atom: Atom, indices: Any, inner: tuple[Poly, ...], bound: tuple[int, ...]) -> Poly:
        """An atom of the same kind with other parts, in normal form."""
        if atom.kind == "power":
            return inner[0]  # its exponent is that of the factor
        make = self.constructors.get(atom.kind)
        if make is None:
            return single(Atom(atom.kind, atom.name, indices, inner, bound))
        return make(self, atom.name, indices, inner, bound)

    # --- replacing atoms, everywhere ---

    def rewrite(self, poly: Poly, change: Callable[[Atom], Poly | None], *kinds: str) -> Poly:
        """The polynomial with atoms of some kinds replaced by what ``change`` makes of them, also inside functions."""
        if poly.kinds.isdisjoint(kinds):
            return poly

        def again(atom: Atom) -> Poly | Atom:
            if atom.kinds.isdisjoint(kinds):
                return atom
            new = change(atom) if atom.kind in kinds else None
            return self.mapped_inside(atom, lambda p: self.rewrite(p, change, *kinds)) if new is None else new

        return self.mapped(poly, again, kinds)

    def mapped(self, poly: Poly, again: Callable[[Atom], Poly | Atom], kinds: Collection[str] = ()) -> Poly:
        """The polynomial with every atom made again, or the same one if that changes nothing.

        A term without atoms of the ``kinds``, if there are any, stays as it is.
        """
        parts = list[tuple[Number, Poly]]()
        for c, term in poly.terms:
            if kinds and all(atom.kinds.isdisjoint(kinds) for atom, _ in term.factors):
                parts.append((1, Poly([(c, term)])))
            else:
                apart = self.renamed_term(term) if term.bound else term
                parts.append((c, self.rebuilt(apart.bound, apart.factors, again)))
        result = self.total(parts)
        return poly if self.poly_key(result) == self.poly_key(poly) else result

    def mapped_inside(self, atom: Atom, change: Callable[[Poly], Poly]) -> Poly | Atom:
        """The atom with the polynomials inside it changed."""
        inner = tuple(map(change, atom.inner))
        if all(a is b for a, b in zip(inner, atom.inner, strict=True)):
            return atom
        return self.made(atom, atom.indices, inner, atom.bound)


def _under(bound: Collection[int], new: Mapping[int, Any]) -> tuple[dict[int, Any], bool]:
    """The replacement as it holds under a binder, and whether it brings in a symbol that is bound there."""
    inside = {s: index for s, index in new.items() if s not in bound}
    return inside, bool(bound) and any(s in bound for index in inside.values() for s in symbols(index))
