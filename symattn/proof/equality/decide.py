"""Whether two tensors have one normal form: the last and strongest step of a proof.

Both sides are read as polynomials of entries. Their difference is unfolded definition by definition, the highest first,
and freed of denominators, until it is zero or nothing is left to do. A range that has to be taken apart on the way
(heads, concatenations) starts the calculation again with that range taken apart everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import sympy

from ...core.budget import Budget
from ...core.node import Tensor, topological
from ...normal_form.constructors import CONSTRUCTORS
from ...normal_form.contraction import RULES
from ...normal_form.derivative import Derivative
from ...normal_form.facts import Fact, fact, support, with_facts
from ...normal_form.indices import ZERO as ZERO_INDEX
from ...normal_form.indices import Index, affine, combined, number, plus, symbols
from ...normal_form.lowering import Definition, Lowering, Partition, taken_apart
from ...normal_form.matching import vanishes_with
from ...normal_form.orders import in_every_order
from ...normal_form.ring import Ring
from ...normal_form.terms import Atom, Poly, constant, single
from ...ops.domain import rooms
from ...ops.leaves import variable
from ...printing.matrix import names_in
from ..claims import Claim

_ROUNDS = 200


@dataclass(frozen=True)
class Piece:
    """The comparison of one entry, for one piece of the ranges of its indices."""

    index: tuple[Index, ...]
    left: Poly
    right: Poly
    gap: Poly


@dataclass(frozen=True)
class Comparison:
    """Both sides as polynomials of entries, piece by piece; they are equal if every gap is zero."""

    ring: Ring
    pieces: tuple[Piece, ...]
    definitions: Mapping[int, Definition]
    alike: Mapping[int, Sequence[Definition]]  # the nodes that have the normal form of a definition
    roots: tuple[Tensor, ...]  # of which names are taken
    facts: tuple[Fact, ...] = ()  # what is given, as it is put in
    met: dict[int, Any] = field(default_factory=dict, compare=False, repr=False)  # where pieces meet, once it is asked

    @property
    def equal(self) -> bool:
        return not any(piece.gap for piece in self.pieces)

    @cached_property
    def taken(self) -> frozenset[str]:
        """The names that no index and no definition may have when this is written."""
        return frozenset(names_in(self.roots))


def compare(left: Tensor, right: Tensor, given: Sequence[Claim], budget: Budget) -> Comparison:
    """The normal forms of two tensors of one shape, and their difference, under what is given.

    Raises Unreached where the calculation does not come to an end, and OutOfBudget.
    """
    return taken_apart(lambda partition: _compared(left, right, given, partition, budget))


def compare_gradient(
    gradient: Tensor,
    by: Tensor | sympy.Symbol,
    outputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    budget: Budget,
) -> Comparison:
    """A gradient, and the sum of cotangents times derivatives of the entries of the outputs. Raises as ``compare``."""

    def calculate(partition: Partition) -> Comparison:
        lowering = _lowering([gradient, *outputs, *cotangents], partition, budget)
        pieces = []
        for index, _ in lowering.places(gradient.shape):
            name = by if isinstance(by, sympy.Symbol) else by.params["name"]
            derivative = Derivative(lowering.ring, name, index)
            slopes = [_pulled_back(lowering, derivative, *pair) for pair in zip(outputs, cotangents, strict=True)]
            left, right = lowering.entry(gradient, index), lowering.ring.add(*slopes)
            piece = _piece(lowering, index, left, right, ())
            pieces.append(replace(piece, gap=_almost_everywhere(lowering.ring, piece.gap)))
            if pieces[-1].gap:
                break
        roots = (gradient, *outputs, *cotangents)
        return Comparison(lowering.ring, tuple(pieces), lowering.definitions, lowering.alike, roots)

    return taken_apart(calculate)


def _almost_everywhere(ring: Ring, gap: Poly) -> Poly:
    """The difference without what only counts where a value is 0: there the derivative jumps, or is agreed upon."""

    def is_kink(atom: Atom) -> bool:
        return atom.kind == "zero" and _is_thin(ring, atom.inner[0])

    return Poly([(c, term) for c, term in gap.terms if not any(is_kink(atom) for atom, _ in term.factors)])


def _is_thin(ring: Ring, poly: Poly) -> bool:
    """Whether a polynomial is 0 on a thin set only: one in free entries of different tensors, each entry by itself."""
    met: dict[str, int] = {}
    for _, term in poly.terms:
        for atom, e in term.factors:
            free_entry = atom.kind == "entry" and not ring.facts.get(atom.name) and e > 0 and e == int(e)
            if free_entry and met.setdefault(atom.name, ring.atom_key(atom)) == ring.atom_key(atom):
                continue
            if term.bound or not (atom.kind == "scalar" and atom.name.is_positive):
                return False
    return bool(met) and not any(term.bound for _, term in poly.terms)


def _pulled_back(lowering: Lowering, derivative: Derivative, output: Tensor, cotangent: Tensor) -> Poly:
    """The sum over the entries of an output of its cotangent times its derivative."""
    parts = []
    for index, held in lowering.places(output.shape):
        slope = derivative.of(_unfolded(lowering, lowering.entry(output, index)))
        term = lowering.ring.multiply(lowering.entry(cotangent, index), slope)
        parts.append(lowering.ring.summed(held, term))
    return lowering.ring.add(*parts)


def _compared(left: Tensor, right: Tensor, given: Sequence[Claim], partition: Partition, budget: Budget) -> Comparison:
    used = [claim for claim in given if claim.relation == "=" or _reads_a_mask(claim)]
    roots = [left, right, *(side for claim in used for side in claim.sides)]
    lowering = _lowering(roots, partition, budget, rooms([left, right]))
    ring = lowering.ring
    above = [(c.relation, gap) for c in used if _reads_a_mask(c) for gap in _gaps(lowering, *c.sides[::-1])]
    supports = (support(ring, relation, _unfolded(lowering, gap)) for relation, gap in above)
    ring.supports = [found for found in supports if found is not None]
    zero = (gap for claim in used if claim.relation == "=" for gap in _gaps(lowering, *claim.sides))
    facts = (fact(ring, _reduced(lowering, gap, ())) for gap in zero)
    known = [found for found in facts if found is not None]
    pieces = []
    for index, _ in lowering.places(left.shape):
        a, b = lowering.entry(left, index), lowering.entry(right, index)
        pieces.append(_piece(lowering, index, a, b, known))
        if pieces[-1].gap:
            break
    return Comparison(ring, tuple(pieces), lowering.definitions, lowering.alike, tuple(roots), tuple(known))


def _gaps(lowering: Lowering, left: Tensor, right: Tensor) -> Iterator[Poly]:
    """The difference of two tensors at each place."""
    for index, _ in lowering.places(left.shape):
        yield lowering.ring.subtract(lowering.entry(left, index), lowering.entry(right, index))


def _lowering(
    roots: Sequence[Tensor], partition: Partition, budget: Budget, rooms: Sequence[sympy.Expr] = ()
) -> Lowering:
    """The roots ready to be read, with the definitions that they share; ``rooms`` are never negative."""
    order = topological(roots)
    named = [x for x in order if x.op is variable]
    facts = {x.params["name"]: x.params["hypotheses"] for x in named}
    shapes = {x.params["name"]: x.shape for x in named}
    lowering = Lowering(Ring(facts, shapes, CONSTRUCTORS, RULES, budget), partition)
    lowering.ring.rooms = rooms
    lowering.define(order, roots)
    return lowering


def _piece(lowering: Lowering, index: tuple[Index, ...], left: Poly, right: Poly, facts: Sequence[Fact]) -> Piece:
    gap = _reduced(lowering, lowering.ring.subtract(left, right), facts)
    if gap:
        lowering.take_apart(gap)
    return Piece(index, left, right, gap)


def _reads_a_mask(claim: Claim) -> bool:
    return any(x.op is variable and x.kind == "binary" for x in topological(claim.sides))


def _reduced(lowering: Lowering, gap: Poly, facts: Sequence[Fact]) -> Poly:
    """The difference with definitions unfolded and denominators cleared, until it is zero or stays as it is."""
    for _, left in changes(lowering.ring, lowering.definitions, gap, facts):
        gap = left
    return gap


class Change(NamedTuple):
    """What may be done to both sides of an equation, which brings them closer to one form."""

    apply: Callable[[Poly], Poly]
    written_out: frozenset[int] = frozenset()  # definitions
    times: Poly | None = None  # a denominator


def changes(
    ring: Ring, definitions: Mapping[int, Definition], gap: Poly, facts: Sequence[Fact]
) -> Iterator[tuple[Change, Poly]]:
    """The changes that bring a difference to its normal form, and what is left of it after each."""
    for _ in range(_ROUNDS):
        ring.budget.check()
        if not gap:
            return
        if names := definitions_in(gap):
            top = max(definitions[name].node.height for name in names)
            highest = frozenset(name for name in names if definitions[name].node.height == top)
            change = Change(partial(written_out, ring, definitions, highest), written_out=highest)
        else:
            if facts:
                given = Change(partial(with_facts, ring, facts=facts))
                gap = given.apply(gap)
                yield given, gap
            change = _cleared(ring, gap) or Change(partial(in_one_order, ring))
        gap = change.apply(gap)
        yield change, gap
        if not (change.written_out or change.times):
            break
    if gap:
        last = Change(partial(in_every_order, ring))
        yield last, last.apply(gap)


def written_out(ring: Ring, definitions: Mapping[int, Definition], chosen: AbstractSet[int], poly: Poly) -> Poly:
    """The polynomial with what some definitions stand for."""

    def unfolded(atom: Atom) -> Poly | None:
        return definitions[atom.name].at(ring, atom.indices) if atom.name in chosen else None

    return ring.rewrite(poly, unfolded, "definition")


_FARTHEST = 4  # gap between two indices up to which a bound on it is written by the bound at 0


def in_one_order(ring: Ring, poly: Poly) -> Poly:
    """The polynomial with the indicators of i <= j, i < j, j <= i, ... all written by [i <= j] and [i = j].

    Which of two indices comes first is told by their numbers, so bound symbols are numbered anew in canonical order.
    """

    def oriented(atom: Atom) -> Poly | None:
        start, coefficients = affine(atom.indices[0])
        if sorted(map(str, coefficients.values())) != ["-1", "1"] or not start.is_Integer:
            return None
        first = min(coefficients, key=lambda base: min(symbols(base), default=0))
        if coefficients[first] < 0:  # [x >= 0] = 1 - [-x - 1 >= 0]
            return ring.subtract(constant(1), _from_zero(ring, plus(number(-1), atom.indices[0], -1)))
        return _from_zero(ring, atom.indices[0])

    if not any(atom.kind == "range" for _, term in poly.terms for atom, _e in term.factors):
        return poly
    ring.use("i <= j, i < j and i = j are written by one another")
    return ring.rewrite(ring.in_canonical_names(poly), oriented, "range")


def _from_zero(ring: Ring, index: Index) -> Poly:
    """``[x + c >= 0]`` by ``[x >= 0]`` and the places between."""
    start, coefficients = affine(index)
    base = combined(sympy.S.Zero, coefficients)
    c = int(start)
    if abs(c) > _FARTHEST:
        return single(Atom("range", None, (index,)))
    result = single(Atom("range", None, (base,)))
    for gap in range(1, c + 1):
        result = ring.add(result, ring.atom(Atom("same", None, (plus(base, number(gap)), ZERO_INDEX))))
    for gap in range(-c):
        result = ring.subtract(result, ring.atom(Atom("same", None, (plus(base, number(-gap)), ZERO_INDEX))))
    return result


def _unfolded(lowering: Lowering, poly: Poly) -> Poly:
    """The polynomial with every definition written out."""
    while names := definitions_in(poly):
        poly = written_out(lowering.ring, lowering.definitions, names, poly)
    return poly


def definitions_in(poly: Poly) -> set[int]:
    """The definitions that a polynomial reads, at any depth."""
    found: set[int] = set()
    pending, seen = [poly], set()
    while pending:
        p = pending.pop()
        if id(p) in seen or "definition" not in p.kinds:
            continue
        seen.add(id(p))
        for _, term in p.terms:
            for atom, _e in term.factors:
                if atom.kind == "definition":
                    found.add(atom.name)
                pending += atom.inner
    return found


def _vanishes_with(ring: Ring, divisor: Poly, poly: Poly) -> bool:
    """Whether every term is 0 where a divisor is: then so is the polynomial, without a look at that place."""
    return all(vanishes_with(ring, divisor, term.factors) for _, term in poly.terms)


def _cleared(ring: Ring, poly: Poly) -> Change | None:
    """A multiplication by a denominator that does not depend on bound indices; None if there is none."""
    found: dict[int, tuple[Atom, int]] = {}
    for _, term in poly.terms:
        for atom, e in term.factors:
            inverse = atom.kind == "power" and e < 0 and e == int(e) and not atom.free & set(term.bound)
            if inverse and (ring.may_cancel(atom.inner[0]) or _vanishes_with(ring, atom.inner[0], poly)):
                key = ring.atom_key(atom)
                found[key] = atom, max(int(-e), found[key][1] if key in found else 0)
    if not found:
        return None
    atom, times = found[min(found)]
    ring.use("both sides are multiplied by a denominator")
    return Change(partial(_multiplied, ring, atom, times), times=ring.raised(atom.inner[0], times))


def _multiplied(ring: Ring, atom: Atom, times: int, poly: Poly) -> Poly:
    """The polynomial times a power of what an atom stands for, which cancels where it is divided by."""
    key = ring.atom_key(atom)
    parts = []
    for c, whole in poly.terms:
        term = ring.apart_from(atom.free, whole)
        power = sum(e for other, e in term.factors if ring.atom_key(other) == key)
        rest = [f for f in term.factors if ring.atom_key(f[0]) != key]
        factor = ring.raised(atom.inner[0], times + power) if times + power else None
        kept = ring.simplified(c, term.bound, rest)
        parts.append((1, kept if factor is None else ring.multiply(kept, factor)))
    return ring.total(parts)
