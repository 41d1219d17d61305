"""How polynomials are made from what is no polynomial yet: scalars, values of indices, and atoms with other parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import sympy

from .functions import IMAGINARY, exp, extreme, function, log, positive, power, zero
from .indices import Index, affine
from .ring import Ring
from .terms import ONE, POWER, Atom, Poly, Unsupported, constant, plain, single


def composed(ring: Ring, e: Any, read: Callable[[Any], Poly]) -> Poly | None:
    """A sum, product, power, exponential or logarithm, of parts as ``read`` has them; None for anything else."""
    if e.is_Add:
        return ring.add(*map(read, e.args))
    if e.is_Mul:
        return ring.product(map(read, e.args))
    if e is sympy.E or isinstance(e, sympy.exp):
        return exp(ring, ONE if e is sympy.E else read(e.args[0]))
    if isinstance(e, sympy.log):
        return log(ring, read(e.args[0]))
    if not e.is_Pow:
        return None
    below = read(e.base)
    if e.exp.is_Rational:
        return power(ring, below, plain(e.exp))
    above = read(e.exp)
    if not ring.is_positive(below):
        return function(ring, POWER, (below, above))
    return exp(ring, ring.multiply(above, log(ring, below)))


def scalar(ring: Ring, value: sympy.Expr, known: Mapping[sympy.Symbol, Poly] = MappingProxyType({})) -> Poly:
    """A SymPy expression of sizes and scalar symbols, and of symbols of which the polynomials are ``known``."""
    if value in known:
        return known[value]
    if value.is_Rational:
        return constant(plain(value))
    if value is sympy.I:
        ring.use("sines and cosines are written by exp(i x)")
        return single(IMAGINARY)
    if isinstance(value, sympy.Heaviside) and value.args[1] == 0:
        return positive(ring, scalar(ring, value.args[0], known))
    found = composed(ring, value, lambda part: scalar(ring, part, known))
    if found is not None:
        return found
    if value.is_Symbol or not value.free_symbols:
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


# --- how an atom is made again after a replacement: by functions with names, since proofs are pickled with them ---


def _again(make: Callable[..., Poly], ring: Ring, name: Any, indices: Any, inner: tuple[Poly, ...], bound: Any) -> Poly:
    return make(ring, *inner)


def _extreme(ring: Ring, name: Any, indices: Any, inner: tuple[Poly, ...], bound: Any) -> Poly:
    return extreme(ring, name, bound, inner[0])


CONSTRUCTORS: Mapping[str, Callable[..., Poly]] = {
    "power": power,
    "size": scalar,
    "index value": index_value,
    "exp": partial(_again, exp),
    "log": partial(_again, log),
    "positive": partial(_again, positive),
    "zero": partial(_again, zero),
    "extreme": _extreme,
}
