"""The derivative of a polynomial of entries by one entry of a tensor: what gradients are held against.

Indicators are constant where they do not jump, and the entries that attain a maximum share its derivative, as the
operations have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from ..scalars.functions import FUNCTIONS, U
from .constructors import scalar
from .contraction import inverse_name
from .functions import function, power, zero
from .indices import Index
from .ring import INDICATORS, Ring
from .terms import ONE, ZERO, Atom, Number, Poly, Unsupported, constant, plain, product_of, single


class Derivative:
    """Differentiates by ``name[place]``, an entry of a tensor, or by a scalar symbol."""

    def __init__(self, ring: Ring, variable: Any, place: tuple[Index, ...]) -> None:
        self.ring, self.variable, self.place = ring, variable, place

    def of(self, poly: Poly) -> Poly:
        """The derivative of a polynomial without definitions."""
        ring = self.ring
        parts: list[tuple[Number, Poly]] = []
        for c, term in poly.terms:
            apart = ring.renamed_term(term) if term.bound else term
            for n, (atom, e) in enumerate(apart.factors):
                slope = self._atom(atom)
                if not slope:
                    continue
                rest = [(a, q) for m, (a, q) in enumerate(apart.factors) if m != n]
                if not ring.is_indicator(atom) and e != 1:
                    rest.append((atom, plain(Fraction(e) - 1)))
                inside = ring.multiply(slope, product_of(rest, plain(Fraction(c) * e)))
                parts.append((1, ring.summed(apart.bound, inside)))
        return ring.total(parts)

    def _atom(self, atom: Atom) -> Poly:
        if atom.kind in INDICATORS or atom.kind in ("index", "imaginary", "minus infinity"):
            return ZERO
        rule = _RULES.get(atom.kind)
        if rule is None:
            raise Unsupported(f"the derivative of {atom.kind}")
        return rule(self, atom)

    def _entry(self, atom: Atom) -> Poly:
        if atom.name == self.variable:
            return self._here(zip(atom.indices, self.place, strict=True))
        if isinstance(self.variable, str) and atom.name == inverse_name(self.variable):
            (*lead, i, j), (*at, p, q) = atom.indices, self.place
            around = [(*lead, i, p), (*lead, q, j)]
            both = self.ring.product(single(Atom("entry", atom.name, places)) for places in around)
            return self.ring.scale(-1, self.ring.multiply(both, self._here(zip(lead, at, strict=True))))
        return ZERO

    def _here(self, pairs: Any) -> Poly:
        """1 where every index is the place of the entry, else 0."""
        return self.ring.product(self.ring.atom(Atom("same", None, pair)) for pair in pairs)

    def _exp(self, atom: Atom) -> Poly:
        return self.ring.multiply(self.of(atom.inner[0]), single(atom))

    def _log(self, atom: Atom) -> Poly:
        slope = self.of(atom.inner[0])
        return self.ring.multiply(slope, power(self.ring, atom.inner[0], -1)) if slope else ZERO

    def _extreme(self, atom: Atom) -> Poly:
        """The entries that attain it share the derivative."""
        slope = self.of(atom.inner[0])
        if not slope:
            return ZERO
        bound = {s: self.ring.fresh(self.ring.ranges[s]) for s in atom.bound}
        inner, slope = (self.ring.replace(p, bound) for p in (atom.inner[0], slope))
        attained = zero(self.ring, self.ring.subtract(inner, single(atom)))
        symbols = tuple(bound.values())
        count = self.ring.summed(symbols, attained)
        return self.ring.multiply(
            self.ring.summed(symbols, self.ring.multiply(attained, slope)), power(self.ring, count, -1)
        )

    def _function(self, atom: Atom) -> Poly:
        slope, *others = map(self.of, atom.inner)
        if any(others):
            raise Unsupported(f"the derivative of {atom.name}")
        if not slope:
            return ZERO
        name = str(atom.name)
        if name == "floor":
            return ZERO
        if name.startswith("unknown "):
            return self.ring.multiply(slope, function(self.ring, f"{name}'", atom.inner))
        record = next((f for f in FUNCTIONS.values() if f.name == name), None)
        if record is None:
            raise Unsupported(f"the derivative of {name}")
        return self.ring.multiply(slope, scalar(self.ring, record.head(U).diff(U), {U: atom.inner[0]}))


def _constant(derivative: Derivative, atom: Atom) -> Poly:
    if any(derivative.of(poly) for poly in atom.inner):
        raise Unsupported(f"the derivative of {atom.kind}")
    return ZERO


_RULES: Mapping[str, Callable[[Derivative, Atom], Poly]] = {
    "entry": Derivative._entry,
    "symmetric": Derivative._entry,
    "scalar": lambda derivative, atom: ONE if atom.name == derivative.variable else constant(0),
    "exp": Derivative._exp,
    "log": Derivative._log,
    "power": lambda derivative, atom: derivative.of(atom.inner[0]),
    "extreme": Derivative._extreme,
    "function": Derivative._function,
    "row": _constant,
    "scan": _constant,
    "inverse": _constant,
}
