"""Answers at large sizes: the first terms in falling powers of a size, and the next one as the error."""

from __future__ import annotations

from typing import NamedTuple

import sympy

_U = sympy.Symbol("u", positive=True)  # one over the size
_TERMS = (2, 4, 7, 11)  # powers of u to which a series is taken until it has as many terms as are asked for


class Expansion(NamedTuple):
    """``value`` at large ``size``, and the first term that it leaves out, 0 if there is none."""

    value: sympy.Expr
    error: sympy.Expr
    size: sympy.Symbol

    def __str__(self) -> str:
        rest = "exactly" if self.error == 0 else f"up to {self.error} and smaller terms"
        return f"{self.value} for large {self.size}, {rest}"


def expansion(value: sympy.Expr, order: int) -> Expansion | None:
    """The first ``order`` terms at large values of the one size in an answer; None where there is no such series."""
    sizes = [s for s in value.free_symbols if s.is_integer and s.is_positive]
    if len(sizes) != 1 or value.has(sympy.Sum, sympy.Indexed, sympy.Integral, sympy.Piecewise):
        return None
    (size,) = sizes
    whole = _without_gamma(value, size)
    if whole is None:
        return None
    at = sympy.expand(whole.subs(size, 1 / _U))
    terms = _terms(at) if whole.is_polynomial(size) or at.is_polynomial(_U) else _series(at, order + 1)
    if not terms:
        return None
    kept, rest = terms[:order], terms[order : order + 1]
    value, error = (sympy.Add(*(term.subs(_U, 1 / size) for term in part)) for part in (kept, rest))
    return Expansion(value, error, size)


def _series(value: sympy.Expr, wanted: int) -> list[sympy.Expr]:
    """The terms of a series, at least as many as wanted; none if there are not so many."""
    for n in _TERMS:
        try:
            found = sympy.series(value, _U, 0, n)
        except (sympy.PoleError, ValueError, NotImplementedError, TypeError):
            return []
        terms = _terms(sympy.expand(found.removeO()))
        if len(terms) >= wanted or found.getO() is None:
            return terms
    return []


def _terms(value: sympy.Expr) -> list[sympy.Expr]:
    """The terms by rising powers of u, one a power."""
    powers: dict[sympy.Expr, sympy.Expr] = {}
    for term in sympy.Add.make_args(value):
        coefficient, power = term.as_independent(_U)
        exponent = power.as_base_exp()[1] if power != 1 else sympy.S.Zero
        powers[exponent] = powers.get(exponent, sympy.S.Zero) + coefficient
    return [sympy.factor(c) * _U**e for e, c in sorted(powers.items(), key=lambda item: item[0]) if c != 0]


def _without_gamma(value: sympy.Expr, size: sympy.Symbol) -> sympy.Expr | None:
    """Gamma functions by Stirling's series, ``gamma(z + c) = C(z) z^(c - 1/2) exp(sum_k ...)``, where C cancels."""
    common: dict[sympy.Expr, sympy.Dummy] = {}

    def stirling(at: sympy.Expr) -> sympy.Expr:
        slope = sympy.expand(at).coeff(size)
        z, c = slope * size, sympy.expand(at - slope * size)
        if not slope.is_positive or c.has(size):
            return sympy.gamma(at)
        factor = common.setdefault(slope, sympy.Dummy("C", positive=True))
        rest = [(-1) ** (k + 1) * sympy.bernoulli(k + 1, c) / (k * (k + 1) * z**k) for k in range(1, _TERMS[-1])]
        return factor * z ** (c - sympy.S.Half) * sympy.exp(sympy.Add(*rest))

    found = sympy.powsimp(value.replace(sympy.gamma, stirling))
    found = sympy.expand(found) if found.has(*common.values()) else found
    return None if found.has(sympy.gamma, *common.values()) else found
