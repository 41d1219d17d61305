"""The rules for one term: what a sum over index symbols does to the factors that it meets.

Each rule takes the bound symbols and the factors of a term and gives the same term as a polynomial in plainer form, or
None where it does not apply. ``RULES`` lists them with the kinds of atoms that they look for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import sympy

from ..core.sizes import never_negative
from .deltas import Bound, Factors, delta, replaced_in, without
from .indices import ZERO as FIRST
from .indices import Index, affine, bounds, combined, number, permuted, plus, symbols
from .matching import vanishes_with, without_weights
from .ring import Ring
from .terms import ZERO, Atom, Factor, Number, Poly, Term, plain, product_of

# --- the imaginary unit ---


def _imaginary(ring: Ring, bound: Bound, factors: Factors) -> Poly | None:
    for n, (atom, e) in enumerate(factors):
        if atom.kind == "imaginary" and e != 1:
            turns = int(e) % 4
            rest = without(factors, n) + ([(atom, 1)] if turns % 2 else [])
            return ring.scale(-1 if turns >= 2 else 1, ring.simplified(1, bound, rest))
    return None


# --- roots of numbers ---


def _roots(ring: Ring, bound: Bound, factors: Factors) -> Poly | None:
    """``sqrt(2) sqrt(2) = 2``: whole powers of a prime become numbers."""
    for n, (atom, e) in enumerate(factors):
        if atom.kind == "scalar" and atom.name.is_Integer and not 0 < e < 1:
            whole = math.floor(e)
            rest = without(factors, n) + ([(atom, plain(e - whole))] if e != whole else [])
            return ring.scale(plain(Fraction(int(atom.name)) ** whole), ring.simplified(1, bound, rest))
    return None


# --- indicators of ranges: an affine index expression is >= 0 ---


def _range(ring: Ring, bound: Bound, factors: Factors) -> Poly | None:
    for n, (atom, _) in enumerate(factors):
        if atom.kind != "range":
            continue
        index = atom.indices[0]
        known = ring.decided(index)
        if known is not None:
            return ring.simplified(1, bound, without(factors, n)) if known else ZERO
        edges = bounds(index, ring.ranges, ring.places)
        if edges is not None and edges[1] == 0:  # at least 0 and at most 0
            return ring.simplified(1, bound, [*without(factors, n), (Atom("same", None, (index, FIRST)), 1)])
        if _points_down(affine(index)[0]):
            ring.use("an indicator and that of the opposite add up to 1")
            opposite = Atom("range", None, (plus(number(-1), index, -1),))
            rest = without(factors, n)
            return ring.subtract(ring.simplified(1, bound, rest), ring.simplified(1, bound, [*rest, (opposite, 1)]))
    return _ranges_together(ring, bound, factors)


def _points_down(start: sympy.Expr) -> bool:
    """Which of ``[x + c >= 0]`` and its opposite ``[-x - c - 1 >= 0]`` stands for both: the one with c >= 0."""
    first = sympy.Poly(start, *sorted(start.free_symbols, key=str)).LC() if start.free_symbols else start
    return bool(first < 0)


def _ranges_together(ring: Ring, bound: Bound, factors: Factors) -> Poly | None:
    """Two bounds on one combination of indices: the stronger, an equality, or a contradiction."""
    held = [(n, atom.indices[0]) for n, (atom, _) in enumerate(factors) if atom.kind == "range"]
    for (n, x), (m, y) in itertools.combinations(held, 2):
        gap = plus(x, y, -1)
        start, moving = affine(gap)
        if not moving:
            if never_negative(start):
                return ring.simplified(1, bound, without(factors, n))
            if never_negative(-start):
                return ring.simplified(1, bound, without(factors, m))
        start, moving = affine(plus(x, y))
        if not moving:
            if never_negative(-start - 1):
                return ZERO
            if start == 0:
                ring.use("i <= j and j <= i make i = j")
                rest = [*without(factors, n, m), (Atom("same", None, (x, FIRST)), 1)]
                return ring.simplified(1, bound, rest)
    return _ranges_in_a_row(ring, bound, factors, held)


def _ranges_in_a_row(ring: Ring, bound: Bound, factors: Factors, held: Sequence[tuple[int, Index]]) -> Poly | None:
    """``i <= j`` and ``j <= l`` make ``i <= l``, and go round in a circle only where all are equal."""
    for (n, x), (m, y), (k, z) in itertools.permutations(held, 3):
        if n < m and _never_below(plus(plus(z, x, -1), y, -1)):
            ring.use("i <= j and j <= l make i <= l")
            return ring.simplified(1, bound, without(factors, k))
        if n < m < k and _never_below(plus(number(-1), plus(plus(x, y), z), -1)):
            ring.use("i <= j and j <= l make i <= l")
            return ZERO
    return None


def _never_below(index: Index) -> bool:
    """Whether an index is not negative whatever its symbols are."""
    start, moving = affine(index)
    return not moving and never_negative(start)


# --- values of indicators against each other ---


def _signs(ring: Ring, bound: Bound, factors: Factors) -> Poly | None:
    """``[P > 0] [P = 0] = 0``, ``[P = 0] / P = 0`` (where nothing is divided), ``[P = 0] P = 0``, and of its terms."""
    for n, (atom, _) in enumerate(factors):
        if atom.kind != "zero":
            continue
        key = ring.poly_key(atom.inner[0])
        for other, _e in factors:
            if other.kind in ("power", "positive"):
                inner = other.inner[0]
                if key in (ring.poly_key(inner), ring.poly_key(without_weights(ring, inner))):
                    return ZERO
        if vanishes_with(ring, atom.inner[0], without(factors, n)):
            ring.use("where a sum of numbers that are not negative is 0, so are all of them")
            return ZERO
        lone = _single_atom(atom.inner[0])
        if lone is not None and any(ring.atom_key(other) == ring.atom_key(lone) for other, _ in factors):
            return ZERO
        found = _beside_leading(ring, bound, factors, n)
        if found is not None and not found.is_lone:  # [P = 0] L = -[P = 0] (P - L); functions hold a lone L too
            left = ring.multiply(found.others, product_of(found.rest))
            return ring.scale(Fraction(-1) / found.c, ring.summed(found.bound, left))
    return None


def _single_atom(poly: Poly) -> Atom | None:
    if len(poly.terms) == 1 and not poly.terms[0][1].bound and len(poly.terms[0][1].factors) == 1:
        return poly.terms[0][1].factors[0][0]
    return None


# --- orthogonal and inverse matrices ---


def _matrices(ring: Ring, bound: Bound, factors: Factors) -> Poly | None:
    """``sum_k U_ki U_kj = [i = j]`` and ``sum_k A_ik A^{-1}_kj = [i = j]``."""
    for s in bound:
        held = [(n, factor) for n, factor in enumerate(factors) if s in factor[0].free]
        if len(held) == 1 and held[0][1][1] == 2:  # a square is a product of two
            held = [(held[0][0], (held[0][1][0], 1))] * 2
        if len(held) != 2 or any(atom.kind != "entry" or e != 1 for _, (atom, e) in held):
            continue
        (n, (a, _)), (m, (b, _)) = held
        delta = _contracted(ring, a, b, s)
        if delta is not None:
            rest = [*without(factors, n, m), *delta]
            return ring.simplified(1, tuple(t for t in bound if t != s), rest)
    return None


def _contracted(ring: Ring, a: Atom, b: Atom, s: int) -> Factors | None:
    if len(a.indices) < 2 or len(a.indices) != len(b.indices):
        return None
    if not ring.runs_over_all(s, min(a.name, inverse_name(a.name), key=len)):
        return None
    lead = [(Atom("same", None, pair), 1) for pair in zip(a.indices[:-2], b.indices[:-2], strict=True)]
    if any(s in x.free or ring.index_key(x.indices[0], {}) != ring.index_key(x.indices[1], {}) for x, _ in lead):
        return None
    (i, j), (k, m) = a.indices[-2:], b.indices[-2:]
    for (x, mine, own), (y, theirs, other) in itertools.product(((i, j, 0), (j, i, 1)), ((k, m, 0), (m, k, 1))):
        if ring.index_key(x, {}) != ring.index_key(y, {}) or s in symbols(mine) or s in symbols(theirs):
            continue
        if not isinstance(x, int) and not (x[0] == "perm" and isinstance(x[3], int)):
            continue  # the sum must run over all places
        if own == other and a.name == b.name and ring.says(a.name, "orthogonal"):
            ring.use("{} is orthogonal", a.name)
            return [(Atom("same", None, (mine, theirs)), 1)]
        if own != other and inverse_name(a.name) == b.name:
            ring.use("a matrix times its inverse is the identity")
            return [(Atom("same", None, (mine, theirs)), 1)]
    return None


def inverse_name(name: str) -> str:
    """The name under which the inverse of a named matrix is kept; that of an inverse is the matrix."""
    return name[: -len("^-1")] if name.endswith("^-1") else name + "^-1"


# --- sums over what does not depend on the index, or only through a permutation ---


def _unused(ring: Ring, bound: Bound, factors: Factors) -> Poly | None:
    for s in bound:
        if not any(s in atom.free for atom, _ in factors):
            others = tuple(t for t in bound if t != s)
            count = ring.constructors["size"](ring, ring.ranges[s])
            return ring.multiply(ring.simplified(1, others, factors), count)
    return None


def _counted(ring: Ring, bound: Bound, factors: Factors) -> Poly | None:
    """``sum_k [k <= i] = i + 1`` for i in the range of k, and ``sum_k [k >= i] = n - i``."""
    for s in bound:
        held = [n for n, (atom, _) in enumerate(factors) if s in atom.free]
        if len(held) != 1 or factors[held[0]][0].kind != "range":
            continue
        start, coefficients = affine(factors[held[0]][0].indices[0])
        c = coefficients.pop(s, None)
        if c not in (1, -1) or any(s in symbols(base) for base in coefficients):
            continue
        edge, size = combined(start, coefficients), ring.ranges[s]
        count = plus(edge, number(1)) if c == -1 else plus(edge, number(size))
        if ring.decided(count) is True and ring.decided(plus(number(size), count, -1)) is True:
            ring.use("the places that an indicator leaves are counted")
            rest = ring.simplified(1, (), without(factors, held[0]))
            inside = ring.multiply(rest, ring.constructors["index value"](ring, count))
            return ring.summed(tuple(t for t in bound if t != s), inside)
    return None


def _from_the_first(ring: Ring, bound: Bound, factors: Factors) -> Poly | None:
    """``sum_k x_{k-1} f(k)`` reads from x_0 on: its index moves, and the places before stand alone."""
    for s in bound:
        read = map(affine, _reads(factors, s))
        before = -min((start for start, moving in read if moving == {s: 1} and start.is_Integer), default=0)
        if before > 0:
            ring.use("a sum begins where its entries do")
            inside = [*factors, (Atom("range", None, (plus(number(ring.ranges[s] - 1), s, -1),)), 1)]
            moved = replaced_in(ring, bound, inside, {s: plus(s, number(before))})
            others = tuple(t for t in bound if t != s)
            alone = [replaced_in(ring, others, inside, {s: number(place)}) for place in range(before)]
            return ring.total([(1, moved), *((1, poly) for poly in alone)])
    return None


def _reads(factors: Iterable[Factor], s: int) -> Iterator[Index]:
    """The indices of the entries that are read, also inside functions, where a symbol occurs."""
    for atom, _ in factors:
        if s in atom.free:
            yield from atom.indices if atom.kind == "entry" else ()
            for poly in atom.inner:
                for _, term in poly.terms:
                    yield from _reads(term.factors, s)


def _reindexed(ring: Ring, bound: Bound, factors: Factors) -> Poly | None:
    """A sum whose index occurs only through a permutation runs over the permuted index instead."""
    for s in bound:
        value = permutation_of(ring, product_of(factors), s)
        if value is not None:
            ring.use("a sum is reindexed by the permutation {}", value[1])
            return replaced_in(ring, bound, factors, {s: value})
        if _only_backwards(ring, factors, s):
            ring.use("a sum runs over its index backwards")
            return replaced_in(ring, bound, factors, {s: plus(number(ring.ranges[s] - 1), s, -1)})
    return None


def _only_backwards(ring: Ring, factors: Factors, s: int) -> bool:
    """Whether entries are read at ``n - 1 - s``, and none at s."""
    backwards = ring.index_key(plus(number(ring.ranges[s] - 1), s, -1), {})
    read = [i for i in _reads(factors, s) if s in symbols(i)]
    return bool(read) and all(ring.index_key(i, {}) == backwards for i in read)


def permutation_of(ring: Ring, poly: Poly, s: int) -> Index | None:
    """What to put for a symbol that occurs only through one permutation, so that it stands bare; else None.

    A symbol that also stands bare keeps a permutation, but not an inverse: then that stands bare. The symbol must run
    over all places: a permutation takes a slice somewhere else.
    """
    met = set(_words_in(poly, s))
    words = [word for word in met if word is not None]
    if len(words) != 1 or not ring.runs_over_all(s, words[0][0]):
        return None
    ((name, sign),) = words
    return permuted(name, -sign, s) if len(met) == 1 or sign == -1 else None


def _words(atom: Atom, s: int) -> Iterator[tuple[str, int] | None]:
    """The permutation that stands next to each occurrence of a symbol, None for a bare one."""
    for index in atom.indices:
        yield from _index_words(index, s, None)
    for poly in atom.inner if s not in atom.bound else ():
        yield from _words_in(poly, s)


def _words_in(poly: Poly, s: int) -> Iterator[tuple[str, int] | None]:
    for _, term in poly.terms:
        for atom, _e in term.factors if s in term.free else ():
            if s in atom.free:
                yield from _words(atom, s)


def _index_words(index: Index, s: int, above: tuple[str, int] | None) -> Iterator[tuple[str, int] | None]:
    if index == s:
        yield above
    elif isinstance(index, tuple):
        if index[0] == "perm":
            yield from _index_words(index[3], s, (index[1], index[2]))
        else:
            parts = index[2] if index[0] == "entry" else [base for base, _ in index[2]]
            for part in parts:
                yield from _index_words(part, s, None)


# --- powers of sums ---


def _powers(ring: Ring, bound: Bound, factors: Factors) -> Poly | None:
    for n, (atom, e) in enumerate(factors):
        if atom.kind == "power" and e > 0 and e == int(e):
            base = ring.whole_power(atom.inner[0], int(e))
            inside = ring.multiply(base, ring.simplified(1, (), without(factors, n)))
            return ring.summed(bound, inside) if bound else inside
    inverted = (n for n, (atom, e) in enumerate(factors) if atom.kind == "power" and e < 0)
    found = (_cancelled(ring, bound, factors, n) for n in inverted)
    return next((result for result in found if result is not None), None)


def leading(ring: Ring, poly: Poly) -> tuple[Number, Term]:
    """The term that is cancelled against a power of the sum: the one of most factors, whatever its symbols."""
    shapes = []
    for c, term in poly.terms:
        blank = {s: ("free",) for s in term.free}
        shapes.append((len(term.factors), ring.term_key(term, blank), ring.term_key(term), c, term))
    _, _, _, c, term = max(shapes, key=lambda shape: shape[:3])
    return c, term


def _cancelled(ring: Ring, bound: Bound, factors: Factors, n: int) -> Poly | None:
    """``L / P = (1 - (P - L) / P) `` where L is the leading term of P, so that no L stands over P."""
    poly = factors[n][0].inner[0]
    found = _beside_leading(ring, bound, factors, n)
    if found is None or not (ring.may_cancel(poly) or vanishes_with(ring, poly, found.rest)):
        return None
    ring.use("a sum is cancelled against its inverse")
    lower = [(atom, q + 1 if atom is factors[n][0] else q) for atom, q in found.rest]
    first = ring.simplified(1, found.bound, [f for f in lower if f[1] != 0])
    left = ring.summed(found.bound, ring.multiply(found.others, product_of(found.rest)))
    return ring.scale(Fraction(1) / found.c, ring.subtract(first, left))


class _Beside(NamedTuple):
    """A term that holds the leading term of a sum: what is beside that in the term, and the others of the sum."""

    c: Number
    others: Poly
    bound: Bound
    rest: Factors
    is_lone: bool  # whether the leading term is one atom


def _beside_leading(ring: Ring, bound: Bound, factors: Factors, n: int) -> _Beside | None:
    """The leading term of what the factor at a place is a function of, taken out of the other factors."""
    poly = factors[n][0].inner[0]
    c, lead = leading(ring, poly)
    for places in itertools.permutations(bound, len(lead.bound)) if lead.factors else ():
        if any(ring.ranges[s] != ring.ranges[t] for s, t in zip(places, lead.bound, strict=True)):
            continue
        rest = _taken_out(ring, factors, lead, dict(zip(lead.bound, places, strict=True)), n)
        used = set(places)
        if rest is not None and not used & poly.free and not any(used & atom.free for atom, _ in rest):
            others = Poly([(k, term) for k, term in poly.terms if term is not lead])
            kept = tuple(s for s in bound if s not in used)
            return _Beside(c, others, kept, rest, not used and len(lead.factors) == 1)
    return None


def _taken_out(ring: Ring, factors: Factors, lead: Term, names: dict[int, int], power: int) -> Factors | None:
    """The factors without those of the leading term, its bound symbols under these names, or None."""
    need = {ring.atom_key(ring.renamed(atom, names)): e for atom, e in lead.factors}
    rest = []
    for n, (atom, e) in enumerate(factors):
        wanted = need.pop(ring.atom_key(atom), 0) if n != power else 0
        if wanted and (e < wanted if wanted > 0 else e > wanted):
            return None
        if wanted and ring.is_indicator(atom):
            continue
        if e != wanted:
            rest.append((atom, e - wanted))
    return None if need else rest


RULES = (
    (frozenset({"imaginary"}), _imaginary),
    (frozenset({"scalar"}), _roots),
    (frozenset({"same"}), delta),
    (frozenset({"range"}), _range),
    (frozenset({"zero"}), _signs),
    (frozenset({"entry"}), _matrices),
    (frozenset[str](), _unused),
    (frozenset({"range"}), _counted),
    (frozenset({"entry", "exp", "power"}), _from_the_first),
    (frozenset[str](), _reindexed),
    (frozenset({"power"}), _powers),
)
