"""Rules that take a term apart: by a source that it is a polynomial of, and by an indicator inside of a function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..core.stated import Sentence
from ..errors import NoRuleError
from ..normal_form.terms import ONE, ZERO, Atom, Factor, Poly, Term, product_of, single
from .rule import Rule
from .sources import Source

if TYPE_CHECKING:
    from .expectation import Expectation


def _one_by_one(sources: Sequence[Source]) -> list[list[Source]]:
    return [[source] for source in sources]


def _product(e: Expectation, sources: Sequence[Source], factors: Sequence[Factor], bound: tuple[int, ...]) -> Poly:
    over = e.over(sources)
    if not over.is_plain(factors):
        raise NoRuleError(f"no polynomial of entries of {' and '.join(sources[0].names)}")
    return over.of(Poly([(1, Term((), tuple(factors)))]))


def _all(sources: Sequence[Source]) -> list[Sequence[Source]]:
    return [sources]


def _cases(e: Expectation, sources: Sequence[Source], factors: Sequence[Factor], bound: tuple[int, ...]) -> Poly:
    """``F = c F[c = 1] + (1 - c) F[c = 0]`` for an indicator c inside of a function; what is left is taken later."""
    ring = e.ring
    mark = next((atom for atom in _inside(factors) if e.is_random(single(atom))), None)
    if mark is None:
        raise NoRuleError("no indicator of random entries inside of a function")
    key, whole = ring.atom_key(mark), product_of(factors)

    def put(value: Poly) -> Poly:
        return ring.rewrite(whole, lambda atom: value if ring.atom_key(atom) == key else None, mark.kind)

    there, elsewhere = put(ONE), put(ZERO)
    return ring.add(elsewhere, ring.multiply(single(mark), ring.subtract(there, elsewhere)))


def _inside(factors: Sequence[Factor]) -> Iterator[Atom]:
    """Indicators of values that functions are taken of, and that depend on no index that is bound there."""
    for atom, _ in factors:
        for poly in atom.inner:
            for _c, term in poly.terms:
                for part, _e in term.factors:
                    if part.kind in ("positive", "zero") and not part.free & {*term.bound, *atom.bound}:
                        yield part


PRODUCT = Rule("polynomial", Sentence("Products of sums are multiplied out."), _one_by_one, _product)
CASES = Rule(
    "cases",
    Sentence("A function of an indicator is told apart into its two cases."),
    _all,
    _cases,
)
