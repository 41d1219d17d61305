"""Atoms, terms and polynomials of entries, and the keys by which equal ones are recognised.

A polynomial is a sum of terms, a term a rational coefficient times a sum over bound index symbols of a product of
powers of atoms. Bound symbols are unique numbers; what does not depend on their choice is the *key*, in which they are
numbered canonically: first split into connected components, then told apart by how they occur, and only symbols that
occur alike are tried in every order. Keys are interned, so that comparing and sorting them is cheap.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import sympy

from .indices import Index, symbols

Number = int | Fraction
Label = tuple[Any, ...]
Labels = Mapping[int, Label]
NOTHING: frozenset[int] = frozenset()
POWER = "**"  # a function of two arguments, for a base that may be negative: no other function has such a name
_LARGEST_SYMMETRY = 5040


class TooLarge(Exception):
    """A normal form, or the search for one, that outgrows its limits."""


class Undefined(Exception):
    """A division by zero, or another value that does not exist."""


class Unsupported(Exception):
    """Something that the normal form does not reach."""


class Atom:
    """A factor: an entry, a scalar, an indicator, or a function of polynomials.

    ``indices`` are index expressions, ``inner`` polynomials, ``bound`` the index symbols bound in them.
    """

    __slots__ = ("_kinds", "bound", "free", "indices", "inner", "keys", "kind", "name")

    free: frozenset[int]  # the index symbols that occur and are not bound in it

    def __init__(
        self,
        kind: str,
        name: Any = None,
        indices: tuple[Index, ...] = (),
        inner: tuple[Poly, ...] = (),
        bound: tuple[int, ...] = (),
    ) -> None:
        self.kind, self.name, self.indices, self.inner, self.bound = kind, name, indices, inner, bound
        free = {s for index in indices for s in ((index,) if isinstance(index, int) else symbols(index))}
        if inner:
            free |= NOTHING.union(*(poly.free for poly in inner)).difference(bound)
        self.free = frozenset(free)
        self.keys: dict[Any, int] | None = {}
        self._kinds: frozenset[str] | None = None

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of the atom and of all inside it."""
        if self._kinds is None:
            self._kinds = frozenset({self.kind}).union(*(poly.kinds for poly in self.inner))
        return self._kinds


Factor = tuple[Atom, Number]


class Term:
    """A sum over ``bound`` symbols of a product of powers of atoms."""

    __slots__ = ("bound", "factors", "free", "keys")

    free: frozenset[int]

    def __init__(self, bound: tuple[int, ...], factors: tuple[Factor, ...]) -> None:
        self.bound, self.factors = bound, factors
        met = {s for atom, _ in factors for s in atom.free}
        self.free = frozenset(met - set(bound))
        self.keys: dict[Any, int] | None = {}


class Poly:
    """A sum of terms with rational coefficients; the empty sum is zero."""

    __slots__ = ("_kinds", "free", "keys", "terms")

    free: frozenset[int]
    terms: tuple[tuple[Number, Term], ...]

    def __init__(self, terms: Iterable[tuple[Number, Term]]) -> None:
        self.terms = tuple(terms)
        self.free = NOTHING.union(*(term.free for _, term in self.terms))
        self.keys: dict[Any, int] | None = {}
        self._kinds: frozenset[str] | None = None

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of all atoms, at any depth."""
        if self._kinds is None:
            self._kinds = frozenset[str]().union(*(atom.kinds for _, term in self.terms for atom, _e in term.factors))
        return self._kinds

    def __bool__(self) -> bool:
        return bool(self.terms)

    @property
    def number(self) -> Number | None:
        """The value of a constant polynomial, else None."""
        if not self.terms:
            return 0
        (value, term), *rest = self.terms
        return None if rest or term.bound or term.factors else value


UNIT = Term((), ())
ZERO = Poly(())
UNIT.keys = ZERO.keys = None  # keys are numbers of one calculation: what all calculations share keeps none


def constant(value: Any) -> Poly:
    """A rational number as a polynomial."""
    return Poly([(plain(value), UNIT)]) if value else ZERO


def plain(value: Any) -> Number:
    """A rational number, as an ``int`` where it is whole."""
    if isinstance(value, int):
        return value
    if isinstance(value, sympy.Rational):
        value = Fraction(int(value.p), int(value.q))
    exact = Fraction(value)
    return exact.numerator if exact.denominator == 1 else exact


ONE = constant(1)
ONE.keys = None


def product_of(factors: Iterable[Factor], c: Number = 1) -> Poly:
    """A number times factors, as they stand."""
    return Poly([(c, Term((), tuple(factors)))])


def single(atom: Atom, exponent: Number = 1) -> Poly:
    """A power of an atom, as it stands."""
    return product_of([(atom, exponent)])


def base_of(atom: Atom) -> Poly:
    """What an atom raises to a power."""
    return atom.inner[0] if atom.kind == "power" else single(atom)


class Keys:
    """Interned keys, and the ranges of the index symbols that they distinguish."""

    def __init__(self) -> None:
        self.ranges: dict[int, sympy.Expr] = {}
        self._numbers: dict[Any, int] = {}
        self._last = 0  # a number, and no iterator: proofs are pickled with their keys

    def fresh(self, size: sympy.Expr) -> int:
        """A new index symbol that runs from 0 to ``size - 1``."""
        self._last += 1
        self.ranges[self._last] = size
        return self._last

    def intern(self, key: Any) -> int:
        """The number of a key; equal keys have equal numbers."""
        return self._numbers.setdefault(key, len(self._numbers))

    # --- keys under labels of some index symbols; the others stand for themselves ---

    def index_key(self, index: Index, labels: Labels) -> int:
        if isinstance(index, int):
            return self.intern(labels.get(index, index))
        if index[0] == "perm":
            return self.intern((index[0], index[1], index[2], self.index_key(index[3], labels)))
        if index[0] == "entry":
            return self.intern((index[0], index[1], tuple(self.index_key(i, labels) for i in index[2])))
        parts = sorted((self.index_key(base, labels), self.intern(c)) for base, c in index[2])
        return self.intern(("sum", index[1], tuple(parts)))

    def atom_key(self, atom: Atom, labels: Labels | None = None, level: int = 0) -> int:
        return self._remembered(atom, self._atom, labels or {}, level)

    def _remembered(self, part: Any, work: Callable[[Any, Labels, int], Any], labels: Labels, level: int) -> int:
        """The number of the key that ``work`` gives, which a part of one calculation remembers."""
        if part.keys is None:
            return self.intern(work(part, labels, level))
        memo = _memo_key(part.free, labels, level)
        key: int | None = part.keys.get(memo)
        if key is None:
            part.keys[memo] = key = self.intern(work(part, labels, level))
        return key

    def _atom(self, atom: Atom, labels: Labels, level: int) -> Any:
        places: Sequence[int] = [self.index_key(i, labels) for i in atom.indices]
        if atom.kind in ("same", "symmetric"):
            places = sorted(places)
        inside = labels
        if atom.bound:
            inside = {**labels, **{s: ("bound", level, n) for n, s in enumerate(atom.bound)}}
            level += 1
        polys = tuple(self.poly_key(poly, inside, level) for poly in atom.inner)
        sizes = tuple(self.ranges[s] for s in atom.bound)
        return atom.kind, atom.name, tuple(places), polys, sizes

    def poly_key(self, poly: Poly, labels: Labels | None = None, level: int = 0) -> int:
        return self._remembered(poly, self._poly, labels or {}, level)

    def _poly(self, poly: Poly, labels: Labels, level: int) -> Any:
        return "poly", tuple(sorted((self.term_key(term, labels, level), c) for c, term in poly.terms))

    def term_key(self, term: Term, labels: Labels | None = None, level: int = 0) -> int:
        return self._remembered(term, self._term, labels or {}, level)

    def _term(self, term: Term, labels: Labels, level: int) -> Any:
        if not term.bound:
            return "term", (), self._factors_key(term.factors, labels, level)
        loose, components = split_components(term)
        orders = (self._order_key(bound, factors, labels, level) for bound, factors in components)
        keys = sorted(self.intern(("component", order)) for order in orders)
        return "term", tuple(keys), self._factors_key(loose, labels, level)

    def _factors_key(self, factors: Iterable[Factor], labels: Labels, level: int) -> tuple[tuple[int, Number], ...]:
        return tuple(sorted((self.atom_key(atom, labels, level), e) for atom, e in factors))

    def _order_key(self, bound: Sequence[int], factors: Sequence[Factor], labels: Labels, level: int) -> Any:
        """The key of a sum over bound symbols that hang together."""
        if len(bound) > 1:
            return self._best_order(bound, factors, labels, level)[0]
        named = {**labels, bound[0]: ("bound", level, 0)}
        return (self.intern(self.ranges[bound[0]]),), self._factors_key(factors, named, level + 1)

    def _best_order(
        self, bound: Sequence[int], factors: Sequence[Factor], labels: Labels, level: int
    ) -> tuple[Any, list[int]]:
        """The least key over the orders of the bound symbols that their occurrences leave open, and its order."""
        sizes = {s: self.intern(self.ranges[s]) for s in bound}
        colours = self._colours(bound, factors, labels, level, sizes) if len(bound) > 1 else {bound[0]: 0}
        groups: dict[int, list[int]] = {}
        for s in bound:
            groups.setdefault(colours[s], []).append(s)
        classes = [groups[c] for c in sorted(groups)]
        if math.prod(math.factorial(len(c)) for c in classes) > _LARGEST_SYMMETRY:
            raise TooLarge("a sum over many indices that all occur alike")

        def keyed(parts: Sequence[Sequence[int]]) -> tuple[Any, list[int]]:
            order = [s for part in parts for s in part]
            named = {**labels, **{s: ("bound", level, n) for n, s in enumerate(order)}}
            return (tuple(sizes[s] for s in order), self._factors_key(factors, named, level + 1)), order

        return min(map(keyed, itertools.product(*map(itertools.permutations, classes))), key=lambda pair: pair[0])

    def in_order(self, term: Term) -> list[int]:
        """The bound symbols of a term in an order that does not depend on their numbers."""
        _, components = split_components(term)
        keyed = [(self._best_order(bound, factors, {}, 0)) for bound, factors in components]
        return [s for _, order in sorted(keyed, key=lambda part: part[0]) for s in order]

    def _colours(
        self, bound: Sequence[int], factors: Sequence[Factor], labels: Labels, level: int, sizes: Mapping[int, int]
    ) -> dict[int, int]:
        """What can be told of each bound symbol from its occurrences, refined until nothing more is learnt."""
        colours = dict(sizes)
        while True:
            marked = {s: ("colour", level, colours[s]) for s in bound}
            seen = {
                s: self._factors_key(
                    [f for f in factors if s in f[0].free], {**labels, **marked, s: ("own", level)}, level + 1
                )
                for s in bound
            }
            refined = {s: self.intern(("colour", colours[s], seen[s])) for s in bound}
            if len(set(refined.values())) == len(set(colours.values())):
                return refined
            colours = refined


def _memo_key(free: frozenset[int], labels: Labels, level: int) -> Any:
    if not free or not labels:
        return level
    return level, tuple(sorted((s, labels[s]) for s in free if s in labels))


def split_components(term: Term) -> tuple[list[Factor], list[tuple[list[int], list[Factor]]]]:
    """The factors without bound symbols, and the bound symbols in groups that share factors."""
    parent = {s: s for s in term.bound}

    def find(s: int) -> int:
        while parent[s] != s:
            s = parent[s]
        return s

    held = [[s for s in atom.free if s in parent] for atom, _ in term.factors]
    for met in held:
        for other in met[1:]:
            parent[find(other)] = find(met[0])
    groups: dict[int, tuple[list[int], list[Factor]]] = {}
    for s in term.bound:
        groups.setdefault(find(s), ([], []))[0].append(s)
    loose = []
    for factor, met in zip(term.factors, held, strict=True):
        if met:
            groups[find(met[0])][1].append(factor)
        else:
            loose.append(factor)
    return loose, list(groups.values())
