"""How polynomials are made from what is no polynomial yet: scalars, values of indices, and atoms with other parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sympy

from .functions import exp, extreme, function, log, positive, power, single, zero
from .indices import Index, affine
from .ring import Ring
from .terms import ONE, Atom, Poly, Unsupported, constant, plain


def scalar(ring: Ring, value: sympy.Expr) -> Poly:
    """A SymPy expression of sizes and scalar symbols."""
    if value.is_Rational:
        return constant(plain(value))
    if value.is_Symbol or value in (sympy.pi, sympy.EulerGamma):
        return single(Atom("scalar", value))
    if value.is_Add:
        return ring.add(*(scalar(ring, part) for part in value.args))
    if value.is_Mul:
        return ring.product(scalar(ring, part) for part in value.args)
    if value.is_Pow and value.exp.is_Rational:
        return power(ring, scalar(ring, value.base), plain(value.exp))
    if value is sympy.E or isinstance(value, sympy.exp):
        return exp(ring, ONE if value is sympy.E else scalar(ring, value.args[0]))
    if isinstance(value, sympy.log):
        return log(ring, scalar(ring, value.args[0]))
    if value.is_Pow:
        return exp(ring, ring.multiply(scalar(ring, value.exp), log(ring, scalar(ring, value.base))))
    if not value.free_symbols:
        return single(Atom("scalar", value))
    raise Unsupported(f"the scalar {value}")


def index_value(ring: Ring, index: Index) -> Poly:
    """The value of an index as a scalar."""
    start, coefficients = affine(index)
    parts = [scalar(ring, start)]
    for base, c in coefficients.items():
        atom = Atom("entry", base[1], base[2]) if base_kind(base) == "entry" else Atom("index", None, (base,))
        parts.append(ring.multiply(scalar(ring, c), single(atom)))
    return ring.add(*parts)


def base_kind(base: Index) -> str:
    return "symbol" if isinstance(base, int) else str(base[0])


# --- how an atom is made again after a replacement ---


def _again(make: Callable[..., Poly]) -> Callable[..., Poly]:
    return lambda ring, name, indices, inner, bound: make(ring, *inner)


def _kept(kind: str) -> Callable[..., Poly]:
    return lambda ring, name, indices, inner, bound: single(Atom(kind, name, indices, inner, bound))


CONSTRUCTORS: Mapping[str, Callable[..., Poly]] = {
    "power": power,
    "size": scalar,
    "index value": index_value,
    "exp": _again(exp),
    "log": _again(log),
    "positive": _again(positive),
    "zero": _again(zero),
    "function": lambda ring, name, indices, inner, bound: function(ring, name, inner),
    "extreme": lambda ring, name, indices, inner, bound: extreme(ring, name, bound, inner[0]),
    "row": _kept("row"),
    "inverse": _kept("inverse"),
}
