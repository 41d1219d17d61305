"""Functions of polynomials in normal form: exponentials split, powers drop their content, logarithms their factors.

A quotient by zero counts as zero here; where a claim divides is told by ``definedness``, for every kind of proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import sympy

from .contraction import leading, permutation_of
from .indices import ZERO as FIRST
from .indices import Index, number, plus
from .matching import without_weights
from .ring import Ring
from .terms import (
    ONE,
    ZERO,
    Atom,
    Factor,
    Number,
    Poly,
    Term,
    TooLarge,
    Undefined,
    Unsupported,
    base_of,
    constant,
    plain,
    single,
    split_components,
)

IMAGINARY = Atom("imaginary")
MINUS_INFINITY = Atom("minus infinity")  # with the sign that it is read with: its coefficients are positive
IMAGINARY.keys = MINUS_INFINITY.keys = None
_LARGEST_POWER = 8
_MOST_TERMS = 8  # of a polynomial that is squared to see whether it is binary


# --- exponentials ---


def exp(ring: Ring, poly: Poly) -> Poly:
    """``exp(a + b) = exp(a) exp(b)``; indicators come out: ``exp([C] x) = 1 + [C] (exp(x) - 1)``."""
    if len(poly.terms) > 1:
        ring.use("exp(a + b) = exp(a) exp(b)")
    factors: list[Factor] = []
    parts: list[Poly] = []
    switched: dict[int, tuple[list[Factor], list[tuple[Number, Term]]]] = {}
    is_finite, poly = finite_part(ring, poly)
    if is_finite.number != 1:
        ring.use("exp(-oo) = 0")
        parts.append(is_finite)
    for c, term in poly.terms:
        chosen = [f for f in term.factors if ring.is_indicator(f[0]) and not f[0].free & set(term.bound)]
        rest = Term(term.bound, tuple(f for f in term.factors if f not in chosen))
        if chosen:
            key = ring.term_key(Term((), tuple(chosen)))
            switched.setdefault(key, (chosen, []))[1].append((c, rest))
        else:
            _exp_term(ring, c, rest, factors, parts)
    result = ring.product([ring.simplified(1, (), factors), *parts])
    for chosen, terms in switched.values():
        ring.use("exp of an indicator times x is 1 where the indicator is 0, else exp(x)")
        gate = ring.simplified(1, (), chosen)
        inside = exp(ring, ring.total([(1, ring.simplified(c, t.bound, list(t.factors))) for c, t in terms]))
        result = ring.multiply(result, ring.add(ONE, ring.multiply(gate, ring.subtract(inside, ONE))))
    return result


def may_be_infinite(term: Term) -> bool:
    """Whether -oo is a factor of a term."""
    return any(atom is MINUS_INFINITY for atom, _ in term.factors)


def finite_part(ring: Ring, poly: Poly) -> tuple[Poly, Poly]:
    """Where a value is not -oo, as an indicator, and what it is there."""
    held = [part for part in poly.terms if may_be_infinite(part[1])]
    if not held:
        return ONE, poly
    indicator = _where_finite(ring, held)
    return indicator, _where(ring, indicator, [part for part in poly.terms if part not in held])


def is_minus_infinity(poly: Poly) -> bool:
    """Whether a value is -oo at every place."""
    held = [(c, term.bound, [atom for atom, _ in term.factors]) for c, term in poly.terms]
    return held == [(1, (), [MINUS_INFINITY])]


def _where(ring: Ring, indicator: Poly, terms: Sequence[tuple[Number, Term]]) -> Poly:
    """The terms where an indicator is 1, and so is each factor of it."""
    whole = indicator.terms[0][1].factors if len(indicator.terms) == 1 else ()
    known = {ring.term_key(Term((), (f,))) for f in whole}
    rest = ((c, t.bound, [f for f in t.factors if ring.term_key(Term((), (f,))) not in known]) for c, t in terms)
    return ring.total((1, ring.simplified(*part)) for part in rest)


def _where_finite(ring: Ring, terms: Sequence[tuple[Number, Term]]) -> Poly:
    """M for ``-oo (1 - M)`` and M N for ``-oo (1 - M) - oo (1 - N)``, where M and N are indicators."""
    barred = ring.total(
        (1, ring.simplified(c, t.bound, [f for f in t.factors if f[0] is not MINUS_INFINITY])) for c, t in terms
    )
    if is_binary(ring, barred):
        return ring.complement(barred)
    allowed = [(-c, t) for c, t in barred.terms if t.factors]
    if all(c == 1 and is_binary(ring, Poly([(c, t)])) for c, t in allowed):
        if ring.add(barred, Poly(allowed)).number == len(allowed):
            return ring.product(Poly([part]) for part in allowed)
    raise Unsupported("-oo times what is not an indicator")


def is_binary(ring: Ring, poly: Poly) -> bool:
    """Whether the values are 0 and 1, as far as the shape of the polynomial shows it."""
    if poly.number in (0, 1):
        return True
    atoms = [atom for _, term in poly.terms for atom, _e in term.factors]
    of_indicators = not any(term.bound for _, term in poly.terms) and all(map(ring.is_indicator, atoms))
    if len(poly.terms) == 1:
        return of_indicators and poly.terms[0][0] == 1
    rest = ring.complement(poly)
    if len(rest.terms) == 1:
        return is_binary(ring, rest)
    few = of_indicators and len(poly.terms) <= _MOST_TERMS
    return few and not ring.subtract(ring.multiply(poly, poly), poly)  # x^2 = x


def _exp_term(ring: Ring, c: Number, term: Term, factors: list[Factor], parts: list[Poly]) -> None:
    logs = [atom for atom, e in term.factors if atom.kind == "log" and e == 1]
    if len(term.factors) == 1 and logs and not term.bound:
        ring.use("exp and log cancel")
        parts.append(power(ring, logs[0].inner[0], c))
    else:
        factors.append((Atom("exp", None, (), (Poly([(1, term)]),)), c))


# --- powers ---


def power(ring: Ring, poly: Poly, exponent: Number) -> Poly:
    """A rational power: numbers and common factors come out, and whole powers of sums are multiplied out.

    From under a root only factors that are known to be positive come out, or a single other one.
    """
    exponent = plain(exponent)
    if exponent == 0 or exponent == 1:
        return poly if exponent else ONE
    if not poly:
        if exponent > 0:
            return ZERO
        raise Undefined("a division by zero")
    if exponent < 0 and poly.number is None and is_binary(ring, poly):
        return poly  # as for a single indicator
    if exponent < 0 and (found := _of_two_cases(ring, poly, exponent)) is not None:
        return found
    lone = len(poly.terms) == 1 and not poly.terms[0][1].bound
    if exponent == int(exponent) and exponent > 0 and not lone:
        if exponent > _LARGEST_POWER:
            raise TooLarge(f"a sum to the power of {exponent}")
        return ring.whole_power(poly, int(exponent))
    apart = _independent_sums(ring, poly)
    if apart and (exponent == int(exponent) or all(map(ring.is_positive, apart))):
        return ring.product(power(ring, part, exponent) for part in apart)
    c, common, base = _content(ring, poly, exponent)
    outside = number_power(ring, c, exponent)
    factors = [(atom, plain(e * exponent)) for atom, e in common]
    if base.number is not None:
        outside = ring.multiply(outside, number_power(ring, base.number, exponent))
    elif common:
        outside = ring.multiply(outside, power(ring, base, exponent))
    else:
        factors.append((Atom("power", None, (), (base,)), exponent))
    if exponent < 0:
        for atom, _ in factors:
            ring.note_divisor(atom)
    if exponent != int(exponent):
        outside = ring.product([outside, *_magnitudes(ring, common, exponent)])
    return ring.multiply(outside, ring.simplified(1, (), factors))


def _of_two_cases(ring: Ring, poly: Poly, exponent: Number) -> Poly | None:
    """``([P = 0] c + (1 - [P = 0]) x)^e = [P = 0] c^e + (1 - [P = 0]) x^e``, where c is a number."""
    marks = {ring.atom_key(a): a for _, t in poly.terms for a, _e in t.factors if a.kind == "zero"}
    for key, mark in marks.items():
        there = ring.multiply(single(mark), poly)
        held = [(c, t) for c, t in poly.terms if any(ring.atom_key(a) == key for a, _ in t.factors)]
        otherwise = Poly([part for part in poly.terms if part not in held])
        c = there.terms[0][0] if len(there.terms) == 1 else 0
        if c and otherwise and not ring.subtract(there, ring.scale(c, single(mark))):
            raised = power(ring, otherwise, exponent)
            ring.use("a power of a distinction of cases is one in each")
            inside = ring.multiply(ring.complement(single(mark)), raised)
            return ring.add(inside, ring.multiply(number_power(ring, c, exponent), single(mark)))
    return None


def _independent_sums(ring: Ring, poly: Poly) -> list[Poly]:
    """The factors of a product of sums, ``sum_k a_k`` and ``sum_l b_l``; none if it is no such product."""
    if len(poly.terms) != 1 or len(poly.terms[0][1].bound) < 2:
        return []
    c, term = poly.terms[0]
    loose, components = split_components(term)
    if len(components) < 2:
        return []
    outside = ring.simplified(c, (), loose)
    return [outside, *(ring.simplified(1, tuple(bound), factors) for bound, factors in components)]


def _magnitudes(ring: Ring, common: Sequence[Factor], exponent: Number) -> list[Poly]:
    """The signs that ``sqrt(x^2) = |x|`` has in front of x."""
    signs = []
    for atom, e in common:
        if not _rooted(ring, atom) and e % 2 == 0 and (e * exponent) % 2 == 1:
            ring.use("the root of a square is the absolute value")
            signs.append(ring.subtract(ring.scale(2, positive(ring, single(atom))), ONE))
    return signs


def _rooted(ring: Ring, atom: Atom) -> bool:
    """Whether a factor comes out from under a root as it is."""
    return ring.atom_positive(atom) or ring.is_indicator(atom)


def _content(ring: Ring, poly: Poly, exponent: Number) -> tuple[Number, list[Factor], Poly]:
    """A number, the common factors that come out of a power, and the polynomial without them."""
    c = number_content(poly)
    root = exponent != int(exponent)
    if not root and leading(ring, poly)[0] < 0:
        c = -c
    common = _common_factors(ring, poly)
    if root:
        squares = [f for f in common if f[1] % 2 == 0 and f[1] * exponent % 1 == 0 and ring.is_real(f[0])]
        loose = [f for f in common if not _rooted(ring, f[0]) and f not in squares]
        alone = len(poly.terms) == 1 and len(loose) == 1 and loose[0][1] % 2 != 0 and not poly.terms[0][1].bound
        if not alone or poly.terms[0][0] < 0:
            common = [f for f in common if f not in loose]
    if not common and c == 1:
        return c, common, poly
    if common and exponent < 0 and len(poly.terms) + len(poly.terms[0][1].bound) > 1:
        ring.use("common factors come out of a sum that is inverted")
    return c, common, _divided(ring, poly, c, common)


def _divided(ring: Ring, poly: Poly, c: Number, common: Sequence[Factor]) -> Poly:
    """The polynomial without a number and factors that all its terms have, which divides by nothing that may be 0."""
    parts = []
    met = {s for atom, _ in common for s in atom.free}
    for k, whole in poly.terms:
        term = ring.apart_from(met, whole)
        taken = {ring.atom_key(atom): (atom, e) for atom, e in common}
        kept: list[Factor] = []
        for atom, e in term.factors:
            _, less = taken.pop(ring.atom_key(atom), (atom, 0))
            if e != less and not (less and ring.is_indicator(atom)):
                kept.append((atom, plain(Fraction(e) - less)))
        kept += [(atom, -e) for atom, e in taken.values()]  # a negative power, which only other terms have
        parts.append((1, ring.simplified(plain(Fraction(k) / c), term.bound, kept)))
    return ring.total(parts)


def number_content(poly: Poly) -> Number:
    """The positive number by which all coefficients become whole numbers without a common divisor."""
    values = [Fraction(c) for c, _ in poly.terms]
    above = math.gcd(*(abs(v.numerator) for v in values))
    return plain(Fraction(above, math.lcm(*(v.denominator for v in values))))


def _common_factors(ring: Ring, poly: Poly) -> list[Factor]:
    """The lowest power of each atom over the terms, where that is not 0."""
    atoms: dict[int, Atom] = {}
    powers: list[dict[int, Number]] = []
    for _, term in poly.terms:
        own: dict[int, Number] = {}
        for atom, e in term.factors:
            if not atom.free & set(term.bound):
                key = ring.atom_key(atom)
                atoms.setdefault(key, atom)
                own[key] = e
        powers.append(own)
    lowest = {key: min(own.get(key, 0) for own in powers) for key in atoms}
    return [(atoms[key], e) for key, e in lowest.items() if e]


def number_power(ring: Ring, value: Number, exponent: Number) -> Poly:
    """A power of a rational number; roots are kept as powers of primes."""
    exact = Fraction(value)
    if exponent == int(exponent):
        return constant(plain(exact ** int(exponent)))
    if exact < 0:
        raise Unsupported(f"a root of {exact}")
    result = ONE
    for prime, times in _primes(exact):
        total = Fraction(exponent) * times
        whole = math.floor(total)
        result = ring.scale(plain(Fraction(prime) ** whole), result)
        if total != whole:
            root = single(Atom("scalar", sympy.Integer(prime)), plain(total - whole))
            result = ring.multiply(result, root)
    return result


def _primes(value: Fraction) -> Iterator[tuple[int, int]]:
    """The primes of a positive number, with their powers."""
    yield from sympy.factorint(value.numerator).items()
    yield from ((prime, -times) for prime, times in sympy.factorint(value.denominator).items())


# --- logarithms ---


def log(ring: Ring, poly: Poly) -> Poly:
    """``log(a b) = log(a) + log(b)`` for positive factors, and ``log(exp(x)) = x``."""
    if not poly:
        raise Undefined("the logarithm of zero")
    apart = _independent_sums(ring, poly)
    if apart and all(map(ring.is_positive, apart)):
        return ring.add(*(log(ring, part) for part in apart))
    c = number_content(poly)
    common = [(a, e) for a, e in _common_factors(ring, poly) if ring.atom_positive(a)]
    parts = [_log_number(c), *(ring.scale(e, _log_atom(atom)) for atom, e in common)]
    base = _divided(ring, poly, c, common)
    if common:
        ring.use("log(a b) = log(a) + log(b) for positive a")
    if base.number is None:
        parts.append(log(ring, base) if common else single(Atom("log", None, (), (base,))))
    elif base.number != 1:
        raise Undefined("the logarithm of a negative number")
    return ring.add(*parts)


def _log_atom(atom: Atom) -> Poly:
    return atom.inner[0] if atom.kind == "exp" else single(Atom("log", None, (), (base_of(atom),)))


def _log_number(value: Number) -> Poly:
    logs = ((Atom("log", None, (), (constant(prime),)), times) for prime, times in _primes(Fraction(value)))
    return Poly((times, Term((), ((log, 1),))) for log, times in logs)


# --- functions that stay ---


def function(ring: Ring, name: Any, polys: Sequence[Poly]) -> Poly:
    """A function that is only known to give equal values for equal arguments."""
    return single(Atom("function", name, (), tuple(polys)))


# --- largest and least entries ---


def extreme(ring: Ring, name: str, bound: tuple[int, ...], poly: Poly) -> Poly:
    """The largest or least value over index symbols; what is finite and does not depend on them comes out of it."""
    held = set(bound)
    if not poly.free & held:
        return poly
    inside = [(c, t) for c, t in poly.terms if t.free & held or may_be_infinite(t)]
    outside = [(c, t) for c, t in poly.terms if not (t.free & held or may_be_infinite(t))]
    base = _bijected(ring, bound, Poly(inside))
    c = number_content(base)
    ring.use("what does not depend on the index comes out of the largest entry")
    atom = Atom("extreme", name, (), (ring.scale(1 / Fraction(c), base),), bound)
    return ring.add(Poly(outside), ring.scale(c, single(atom)))


def _bijected(ring: Ring, bound: tuple[int, ...], poly: Poly) -> Poly:
    """The values run over the permuted index where it only occurs through a permutation."""
    for s in bound:
        word = permutation_of(ring, poly, s)
        if word is not None:
            poly = ring.replace(poly, {s: word})
    return poly


# --- indicators of values ---


def positive(ring: Ring, poly: Poly) -> Poly:
    """1 where the value is > 0, else 0."""
    if poly.number is not None:
        return ONE if poly.number > 0 else ZERO
    if ring.is_positive(poly):
        return ONE
    if ring.is_nonnegative(ring.scale(-1, poly)):
        return ZERO
    if is_binary(ring, poly):
        return poly
    index = as_index(poly)
    if index is not None:
        return ring.atom(Atom("range", None, (plus(number(-1), index),)))
    if ring.is_nonnegative(poly):
        ring.use("what is not negative is positive where it is not 0")
        return ring.complement(zero(ring, poly))
    base, sign = _signed(ring, poly)
    if sign > 0:
        return single(Atom("positive", None, (), (base,)))
    return ring.subtract(ring.complement(positive(ring, base)), zero(ring, base))


def zero(ring: Ring, poly: Poly) -> Poly:
    """1 where the value is 0, else 0."""
    if poly.number is not None:
        return ZERO if poly.number else ONE
    if ring.is_positive(poly) or ring.is_positive(ring.scale(-1, poly)):
        return ZERO
    if is_binary(ring, poly):
        return ring.complement(poly)
    index = as_index(poly)
    if index is not None:
        return ring.atom(Atom("same", None, (index, FIRST)))
    return single(Atom("zero", None, (), (_signed(ring, without_weights(ring, poly))[0],)))


def as_index(poly: Poly) -> Index | None:
    """A polynomial that is an affine combination of indices with whole numbers and sizes, as an index."""
    total, moving = FIRST, False
    for c, term in poly.terms:
        places = [atom.indices[0] for atom, e in term.factors if atom.kind == "index" and e == 1]
        sizes = [(a.name, e) for a, e in term.factors if a.kind == "scalar" and a.name.is_integer and e > 0]
        whole = all(e == int(e) and name.is_nonnegative for name, e in sizes) and c == int(c)
        if term.bound or len(places) > 1 or len(places) + len(sizes) < len(term.factors) or not whole:
            return None
        size = sympy.Mul(sympy.Integer(int(c)), *(name ** int(e) for name, e in sizes))
        total = plus(total, places[0] if places else number(1), size)
        moving = moving or bool(places)
    return total if moving else None


def _signed(ring: Ring, poly: Poly) -> tuple[Poly, int]:
    """The polynomial without positive factors and with a positive leading coefficient, and the sign taken off."""
    sign = -1 if leading(ring, poly)[0] < 0 else 1
    common = [(a, e) for a, e in _common_factors(ring, poly) if ring.atom_positive(a)]
    return _divided(ring, poly, sign * number_content(poly), common), sign
