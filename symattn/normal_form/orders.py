"""Polynomials that vanish in each order of their indices, which no rule for one term sees.

Where i < j < k, i = j < k, ..., every indicator of ``i <= j`` is 0 or 1, and terms that differ by such cases cancel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import sympy

from .deltas import replaced_in
from .indices import affine, plus, symbols
from .ring import Ring
from .terms import ZERO, Atom, Factor, Number, Poly, Term

_MOST_INDICES = 3  # of one size, which are in 13 orders
_MOST_TERMS = 24


def in_every_order(ring: Ring, poly: Poly) -> Poly:
    """Zero, where the terms cancel in each order of their indices; else the polynomial as it is."""
    parts = poly
    for size in _compared_sizes(ring, poly):
        free = [s for s in poly.free if ring.ranges[s] == size]
        met = [[*free, *(s for s in term.bound if ring.ranges[s] == size)] for _, term in parts.terms]
        if len(met) > _MOST_TERMS or max(map(len, met), default=0) > _MOST_INDICES:
            return poly
        parts = ring.total(
            case for (c, term), own in zip(parts.terms, met, strict=True) for case in _cases(ring, c, term, own)
        )
        if not parts:
            ring.use("the orders that the indices may have are looked at one by one")
            return ZERO
    return poly


def _compared_sizes(ring: Ring, poly: Poly) -> list[sympy.Expr]:
    """The sizes of indices that indicators compare."""
    ranges = (atom for _, term in poly.terms for atom, _e in term.factors if atom.kind == "range")
    return [*dict.fromkeys(ring.ranges[s] for atom in ranges for s in symbols(atom.indices[0]))]


def _cases(ring: Ring, c: Number, term: Term, met: Sequence[int]) -> Iterator[tuple[Number, Poly]]:
    """A term in each order of the indices met, of which those that are free come first."""
    for groups in _orders(met):
        rank = {s: k for k, group in enumerate(groups) for s in group}
        known = [(factor, _value(factor[0], rank)) for factor in term.factors]
        if any(value is False for _, value in known):
            continue
        kept: list[Factor] = [factor for factor, value in known if value is None]
        kept.append((Atom("order", None, tuple(group[0] for group in groups)), 1))
        one = {s: group[0] for group in groups for s in group[1:]}
        bound = tuple(s for s in term.bound if s not in one)
        yield c, replaced_in(ring, bound, kept, one)


def _orders(items: Sequence[int]) -> Iterator[list[list[int]]]:
    """The ways to put items in an order in which some may be equal."""
    if not items:
        yield []
        return
    last = items[-1]
    for groups in _orders(items[:-1]):
        for k, group in enumerate(groups):
            yield [*groups[:k], [*group, last], *groups[k + 1 :]]
        for k in range(len(groups) + 1):
            yield [*groups[:k], [last], *groups[k:]]


def _value(atom: Atom, rank: Mapping[int, int]) -> bool | None:
    """The value of an indicator in an order, where that tells it."""
    if atom.kind not in ("range", "same"):
        return None
    start, slopes = affine(atom.indices[0] if atom.kind == "range" else plus(*atom.indices, -1))
    after, before = ([s for s, c in slopes.items() if c == sign and s in rank] for sign in (1, -1))
    if len(slopes) != 2 or len(after) != 1 or len(before) != 1 or not start.is_Integer:
        return None
    apart = rank[after[0]] - rank[before[0]]  # they are at least so far from one another, and 0 if they are one
    edge = apart + int(start)
    if apart == 0:
        return edge >= 0 if atom.kind == "range" else edge == 0
    if apart > 0:
        return True if atom.kind == "range" and edge >= 0 else False if atom.kind == "same" and edge > 0 else None
    return False if edge < 0 else None
