"""Where two sides that are equal become one polynomial: the step of a proof by entries that people want to see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ...core.budget import Budget
from ...normal_form.ring import Ring
from ...normal_form.terms import Labels, Poly, TooLarge, Undefined, Unsupported
from .decide import Comparison, Piece, changes, definitions_in, written_out

_MOST_TRIED = 8  # definitions of which each is left out to see whether it is needed


class Meeting(NamedTuple):
    """The form in which both sides are one, after definitions were written out, and times denominators.

    ``inside`` is what is divided by or below a root and is simpler when it is written out.
    """

    form: Poly
    written_out: tuple[int, ...] = ()
    times: tuple[Poly, ...] = ()
    inside: tuple[tuple[Poly, Poly], ...] = ()


def meeting(comparison: Comparison, number: int) -> Meeting | None:
    """Where the sides of a piece meet; None where only their difference is seen to vanish."""
    if number not in comparison.met:
        comparison.met[number] = _meeting(comparison, comparison.pieces[number])
    found: Meeting | None = comparison.met[number]
    return found


def _meeting(comparison: Comparison, piece: Piece) -> Meeting | None:
    left, right = piece.left, piece.right
    opened: dict[int, None] = {}
    times: list[Poly] = []
    with _unchanged(comparison.ring) as ring:
        try:
            gap = ring.subtract(left, right)
            if not gap:
                return Meeting(left)
            for change, _ in changes(ring, comparison.definitions, gap, comparison.facts):
                left, right = change.apply(left), change.apply(right)
                opened.update(dict.fromkeys(sorted(change.written_out)))
                times += [] if change.times is None else [change.times]
                if not ring.subtract(left, right):
                    return _with_fewer(comparison, piece, Meeting(right, tuple(opened), tuple(times)))
        except (TooLarge, Undefined, Unsupported):
            pass
    return None


def meaning(comparison: Comparison, poly: Poly, labels: Labels) -> int:
    """A key of a polynomial that is the same however much of it is named; ``labels`` tell free symbols apart."""
    with _unchanged(comparison.ring) as ring:
        while names := definitions_in(poly):
            poly = written_out(ring, comparison.definitions, names, poly)
        return ring.poly_key(poly, labels)


def _with_fewer(comparison: Comparison, piece: Piece, found: Meeting) -> Meeting:
    """The meeting with as few definitions written out as are needed, where nothing else had to be done."""
    kept, form = set(found.written_out), found.form
    for key in found.written_out if not found.times and len(kept) <= _MOST_TRIED else ():
        left, right = (_written_out(comparison, kept - {key}, side) for side in (piece.left, piece.right))
        if not comparison.ring.subtract(left, right):
            kept, form = kept - {key}, right
    inside = _inside(comparison, piece, kept)
    return Meeting(form, tuple(key for key in found.written_out if key in kept), found.times, inside)


def _inside(comparison: Comparison, piece: Piece, chosen: set[int]) -> tuple[tuple[Poly, Poly], ...]:
    """What the powers in both sides are of, where definitions are written out in it."""
    terms = (term for side in (piece.left, piece.right) for _, term in side.terms)
    powers = [atom.inner[0] for term in terms for atom, _ in term.factors if atom.kind == "power"]
    found: dict[int, tuple[Poly, Poly]] = {}
    for poly in powers:
        if definitions_in(poly) & chosen:
            key = comparison.ring.poly_key(poly, {s: ("free", s) for s in poly.free})
            found[key] = poly, _written_out(comparison, chosen, poly)
    return tuple(found.values())


def _written_out(comparison: Comparison, chosen: set[int], poly: Poly) -> Poly:
    while definitions_in(poly) & chosen:  # one may stand in what another stands for
        poly = written_out(comparison.ring, comparison.definitions, chosen, poly)
    return poly


@contextmanager
def _unchanged(ring: Ring) -> Iterator[Ring]:
    """The ring, without a limit of time, which afterwards has noted nothing of what was done."""
    kept = ring.budget, dict(ring.used), dict(ring.divisors)
    ring.budget = Budget(float("inf"))
    try:
        yield ring
    finally:
        ring.budget, ring.used, ring.divisors = kept
