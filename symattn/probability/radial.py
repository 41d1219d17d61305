"""Expectations with lengths: entries of a normal tensor times powers and exponentials of quadratic forms of it.

A form is ``x^T A x + e`` for a multiple ``A = c P`` of a projection of rank r, as a squared norm is, or the variance in
a LayerNorm. Length and direction of ``P x`` are independent, and ``|P x|^2`` is v times a chi-squared number with r
degrees of freedom: ``E[(P x)_i (P x)_j g(|P x|^2)] = P_ij E[|P x|^2 g] / r``, and so on over all pairings.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import sympy

from ..core.node import Tensor
from ..core.stated import Sentence
from ..errors import NoRuleError
from ..normal_form.constructors import scalar
from ..normal_form.derivative import Derivative
from ..normal_form.functions import exp
from ..normal_form.indices import Index
from ..normal_form.terms import ONE, ZERO, Atom, Factor, Number, Poly, Term, product_of, single
from .laws import Iid, NormalRows, Sphere
from .linear import linear_factors
from .rule import Rule
from .sources import Source

if TYPE_CHECKING:
    from .expectation import Expectation

_MOST = 10  # entries beside the forms
Place = tuple[Index, ...]


class _Form(NamedTuple):
    """``(c |P x|^2 + rest)^exponent``, or the exponential of that; ``matrix`` is c P between two places."""

    is_exponential: bool
    exponent: Number
    matrix: Poly
    places: tuple[Place, Place]
    scale: sympy.Expr
    rank: sympy.Expr
    rest: sympy.Expr


def _expected(e: Expectation, sources: Sequence[Source], factors: Sequence[Factor], bound: tuple[int, ...]) -> Poly:
    (source,) = sources
    return _Radial(e, source).expected(factors, bound)


def _groups(sources: Sequence[Source]) -> list[list[Source]]:
    """Each source by itself whose lengths are known: normal ones, and rows on the sphere."""
    return [[source] for source in sources if source.law.is_normal or isinstance(source.law, Sphere)]


RADIAL = Rule(
    "lengths",
    Sentence(
        "The length of a normal vector is independent of its direction, and its square is a chi-squared number, so "
        "that powers of lengths have moments by the gamma function."
    ),
    _groups,
    _expected,
    explains=True,
)


class _Radial:
    """The expectation over one normal source, or one on the sphere."""

    def __init__(self, e: Expectation, source: Source) -> None:
        self.e, self.ring, self.source, self.over = e, e.ring, source, e.over([source])
        (self.x, *others), law = source.tensors, source.law
        numbers = (
            isinstance(law, NormalRows) and not isinstance(law.mean, Tensor) and not isinstance(law.covariance, Tensor)
        )
        if others or not (numbers or isinstance(law, Sphere) or (isinstance(law, Iid) and law.is_normal)):
            raise NoRuleError(f"lengths are known of independent normal entries, and those of {self.x.name} are none")

    def expected(self, factors: Sequence[Factor], bound: tuple[int, ...]) -> Poly:
        ring = self.ring
        kept: list[Factor] = []
        forms: list[Factor] = []
        drawn, others, share = linear_factors(self.over, factors, bound)
        for atom, e in others:
            if not self.over.is_random(single(atom)):
                kept.append((atom, e))
            elif atom.kind in ("power", "exp"):
                forms.append((atom, e))
            else:
                raise NoRuleError(f"{self.e.shown(atom, e)} is no power of a length")
        if len(drawn) > _MOST:
            raise NoRuleError(f"a product of {len(drawn)} entries and lengths is too long")
        read = [self._form(atom, e) for atom, e in forms]
        outside = ring.multiply(share, product_of(kept))
        if isinstance(self.source.law, Sphere):
            return ring.multiply(outside, self._on_the_sphere(drawn, read))
        apart = ring.multiply(outside, self._paired(drawn, read))
        mark = self._tie(read)
        if mark is None:
            return apart
        i, j = mark.indices if isinstance(mark.indices[0], int) else mark.indices[::-1]
        if not isinstance(i, int):
            raise NoRuleError("lengths of rows at places that are computed")
        there = self.e.of(ring.replace(Poly([(1, Term((), tuple(factors)))]), {i: j}))
        key = ring.atom_key(mark)
        apart = ring.rewrite(apart, lambda atom: ZERO if ring.atom_key(atom) == key else None, "same")
        return ring.add(apart, ring.multiply(single(mark), ring.subtract(there, apart)))

    def _tie(self, forms: Sequence[_Form]) -> Atom | None:
        """The indicator that decides whether two forms are of one row; NoRuleError for forms that depend otherwise."""
        for a, b in itertools.combinations(forms, 2):
            p, r, q = (self._place() for _ in range(3))
            product = self.ring.summed(
                [s for s in r if isinstance(s, int)], self.ring.multiply(self._at(a, p, r), self._at(b, r, q))
            )
            marks = [
                [atom for atom, _ in term.factors if atom.kind == "same" and not atom.free & {*term.bound, *p, *q}]
                for _, term in product.terms
            ]
            if not all(marks):
                raise NoRuleError("lengths of parts that depend on each other")
            if marks:
                return marks[0][0]
        return None

    # --- quadratic forms ---

    def _place(self) -> tuple[int, ...]:
        return tuple(self.ring.fresh(size) for size in self.x.shape)

    def _at(self, form: _Form, p: Sequence[Index], q: Sequence[Index]) -> Poly:
        """The matrix of a form between two places."""
        return self.ring.replace(form.matrix, dict(zip((*form.places[0], *form.places[1]), (*p, *q), strict=True)))

    def _form(self, atom: Atom, e: Number) -> _Form:
        """The quadratic form of a factor, which is read once for each calculation."""
        is_exponential = atom.kind == "exp"
        poly = self.ring.scale(e, atom.inner[0]) if is_exponential else atom.inner[0]
        key = self.x.name, is_exponential, e, self.ring.poly_key(poly)
        if key not in self.e.memory:
            self.e.memory[key] = self._read(atom, e, poly, is_exponential)
        return self.e.memory[key]

    def _read(self, atom: Atom, e: Number, poly: Poly, is_exponential: bool) -> _Form:
        ring, name = self.ring, self.x.name
        p, q = self._place(), self._place()
        slope = Derivative(ring, name, p).of(poly)
        matrix = self.e.value(ring.scale(Fraction(1, 2), Derivative(ring, name, q).of(slope)))
        if self.over.is_random(matrix):
            raise NoRuleError(f"{self.e.shown(atom, e)} is no power of a quadratic form")
        form = _Form(is_exponential, e, matrix, (p, q), sympy.S.One, sympy.S.One, sympy.S.Zero)
        r, s = self._place(), self._place()
        ends = ring.product(single(Atom("entry", name, place)) for place in (r, s))
        rest = ring.subtract(poly, ring.summed((*r, *s), ring.multiply(self._at(form, r, s), ends)))
        if self.over.is_random(rest):
            raise NoRuleError(f"{self.e.shown(atom, e)} is a function of a quadratic form with a linear part")
        scale, rank = self._projection(form)
        return form._replace(scale=scale, rank=rank, rest=self._formula(rest))

    def _sign(self, form: _Form) -> int:
        """-1 for a whole power of a negative form, which is one of the positive form up to its sign."""
        return -1 if form.scale.is_negative and not form.is_exponential and form.exponent == int(form.exponent) else 1

    def _projection(self, form: _Form) -> tuple[sympy.Expr, sympy.Expr]:
        """c and the rank r of ``A = c P``: ``tr A = c r`` and ``tr A^2 = c^2 r``, which ``A A = c A`` then confirms."""
        ring = self.ring
        p, q, r = self._place(), self._place(), self._place()
        squared = ring.summed(r, ring.multiply(self._at(form, p, r), self._at(form, r, q)))
        trace = self._formula(ring.summed(p, self._at(form, p, p)))
        second = self._formula(ring.summed(p, ring.replace(squared, dict(zip(q, p, strict=True)))))
        scale = sympy.cancel(second / trace) if trace != 0 else sympy.S.Zero
        off = ring.subtract(squared, ring.multiply(scalar(ring, scale), self._at(form, p, q)))
        if scale == 0 or off:
            raise NoRuleError("the quadratic form is neither a multiple of a squared length nor of one of a projection")
        mean = self.e.value(self.source.joint([Atom("entry", self.x.name, p)]))
        if ring.summed(q, ring.multiply(mean, self._at(form, p, q))):
            raise NoRuleError("lengths are known of what has mean 0")
        return scale, sympy.cancel(trace / scale)

    def _formula(self, poly: Poly) -> sympy.Expr:
        if not self.e.named().issuperset(poly.free):
            raise NoRuleError("a length that depends on an index that is summed over")
        return self.e.formula(poly)

    # --- pairings ---

    def _paired(self, drawn: list[Poly], forms: Sequence[_Form]) -> Poly:
        """The sum over all ways to pair the linear forms, each pair in the range of one form or orthogonal to all."""
        one = Atom("entry", self.x.name, self._place())
        variance = self._formula(self.e.value(self.source.joint([one, one])))
        self.e.value(self.source.joint([one]))  # the mean is used: all forms send it to 0
        pairs = _Pairs(self, drawn, forms, scalar(self.ring, variance))
        found = self.ring.total(
            (1, self.ring.product([weight, *map(self._length, forms, counts, itertools.repeat(variance))]))
            for counts, weight in pairs.of(pairs.numbers).items()
        )
        if not found:
            self._require_mean(drawn, forms, variance)
        return found

    def _require_mean(self, drawn: Sequence[Poly], forms: Sequence[_Form], variance: sympy.Expr) -> None:
        """Of what is 0 by symmetry, that its magnitude has an expectation: each form, with the entries in its range."""
        for form in forms:
            near = sum(bool(self.between(x, form.matrix, form.places, x)) for x in drawn)
            power = sympy.Rational(Fraction(form.exponent).numerator, Fraction(form.exponent).denominator)
            if form.is_exponential:
                spare = 1 - 2 * form.scale * variance
            elif form.rest != 0:
                continue  # bounded, or refused with its length
            else:
                spare = form.rank + 2 * power + near if power < 0 else sympy.S.One
            self._check(spare, "expectation of the magnitude of what has mean 0 by symmetry")
            self.e.require(spare)

    def between(self, a: Poly, matrix: Poly, places: tuple[Place, Place], b: Poly) -> Poly:
        """``sum_pq a_p A_pq b_q`` for linear forms with coefficients a and b."""
        p, q = places
        slopes = (Derivative(self.ring, self.x.name, place).of(form) for place, form in ((p, a), (q, b)))
        symbols = [s for s in (*p, *q) if isinstance(s, int)]
        return self.e.value(self.ring.summed(symbols, self.ring.product([*slopes, matrix])))

    def mean(self, form: Poly) -> Poly:
        return self.e.value(self.over.of(form))

    def equal(self) -> tuple[Poly, tuple[Place, Place]]:
        """The identity as a matrix."""
        p, q = self._place(), self._place()
        ends = [Atom("entry", self.x.name, place) for place in (p, q)]
        return self.source.coincide(ends), (p, q)

    def _length(self, form: _Form, pairs: int, variance: sympy.Expr) -> Poly:
        """``E[R^2p g(R^2)] / E[R^2p]`` for p pairs, where R^2 is the variance times a chi-squared number."""
        sign = self._sign(form)
        half, scale, rest = form.rank / 2 + pairs, sign * form.scale * variance, sign * form.rest
        if form.is_exponential:
            below = sympy.factor(1 - 2 * scale)
            self._check(below, "such exponential of a length")
            return self.e.closed(sympy.exp(form.rest) * below ** (-half), below)
        s = sympy.Rational(Fraction(form.exponent).numerator, Fraction(form.exponent).denominator)
        self._check(scale, "power of a negative form")
        self._check(sympy.S.One if rest == 0 else rest, "power of a length with a negative offset")
        if rest != 0:
            value = (2 * scale) ** s * _shifted(half, s, rest / (2 * scale))
            return self.e.closed(sign**s * value, sympy.Min(scale, rest) if not rest.is_positive else scale)
        order = s + pairs
        if s < 0:
            self._check(form.rank, "quotient by a length that is 0")
            self.e.require(form.rank)
        below = (2 * scale) ** pairs * sympy.Mul(*(form.rank / 2 + k for k in range(pairs)))
        spare = form.rank + 2 * order if order < 0 else sympy.S.One
        share = self.e.closed(sign**s / below, sympy.S.One)
        if spare.is_nonpositive:  # other terms may cancel it
            return self.ring.multiply(
                share, self.e.infinite(f"the moment of order {2 * order} of a length", form.scale)
            )
        moment = (2 * scale) ** order * _gamma_ratio(form.rank / 2, order)
        return self.ring.multiply(self.e.closed(moment, spare), share)

    def _check(self, value: sympy.Expr, what: str) -> None:
        """NoRuleError where a value that must be positive never is."""
        if value.is_nonpositive:
            raise NoRuleError(f"the expectation is infinite: there is no {what}")

    def _on_the_sphere(self, drawn: list[Poly], forms: Sequence[_Form]) -> Poly:
        """A squared length on the unit sphere is 1."""
        ring = self.ring
        width = sympy.sympify(self.x.shape[-1])
        values = []
        for form in forms:
            if form.rank != width:
                raise NoRuleError("on the sphere only the length of a whole row is known")
            whole = scalar(ring, form.scale + form.rest)
            values.append(exp(ring, whole) if form.is_exponential else ring.raised(whole, form.exponent))
        return self.over.of(ring.product([*values, *drawn]))


class _Pairs:
    """Pairings of linear forms, equal ones alike, by how many pairs are in the range of each quadratic form."""

    def __init__(self, radial: _Radial, drawn: Sequence[Poly], forms: Sequence[_Form], variance: Poly) -> None:
        self.radial, self.ring, self.forms, self.variance = radial, radial.ring, forms, variance
        self.distinct: dict[int, Poly] = {}
        for form in drawn:
            self.distinct.setdefault(self.ring.poly_key(form), form)
        self.numbers = tuple(sorted(self.ring.poly_key(form) for form in drawn))
        self.weights: dict[tuple[int, int], list[Poly]] = {}
        self.known: dict[tuple[int, ...], dict[tuple[int, ...], Poly]] = {}

    def of(self, numbers: tuple[int, ...]) -> dict[tuple[int, ...], Poly]:
        """The weight of all pairings with the same counts."""
        if not numbers:
            return {(0,) * len(self.forms): ONE}
        if numbers not in self.known:
            ring, (first, *others) = self.ring, numbers
            ring.budget.check()
            found: dict[tuple[int, ...], list[tuple[int, Poly]]] = {}
            if mean := self.radial.mean(self.distinct[first]):  # which all forms send to 0
                for counts, rest in self.of(tuple(others)).items():
                    found.setdefault(counts, []).append((1, ring.multiply(mean, rest)))
            for second in dict.fromkeys(others):
                left = list(others)
                left.remove(second)
                for counts, rest in self.of(tuple(left)).items():
                    for k, weight in enumerate(self._weights(first, second)):
                        if weight:
                            key = tuple(n + (j == k) for j, n in enumerate(counts))
                            found.setdefault(key, []).append((others.count(second), ring.multiply(weight, rest)))
            self.known[numbers] = {counts: ring.total(parts) for counts, parts in found.items()}
        return self.known[numbers]

    def _weights(self, a: int, b: int) -> list[Poly]:
        """The covariance of two forms in the range of each quadratic form, and at last the rest of it."""
        if (a, b) not in self.weights:
            ring, first, second = self.ring, self.distinct[a], self.distinct[b]
            rest = self.radial.between(first, *self.radial.equal(), second)
            parts = []
            for form in self.forms:
                share = self.radial.between(first, form.matrix, form.places, second)
                parts.append(ring.multiply(scalar(ring, 1 / form.scale), share))
                rest = ring.subtract(rest, parts[-1])
            self.weights[a, b] = [ring.multiply(self.variance, part) for part in (*parts, rest)]
        return self.weights[a, b]


def _gamma_ratio(a: sympy.Expr, s: sympy.Rational) -> sympy.Expr:
    """``gamma(a + s) / gamma(a)``, a quotient of polynomials for whole s."""
    whole = int(sympy.floor(s))
    start = a + (s - whole)
    if whole >= 0:
        above = sympy.Mul(*(start + k for k in range(whole)))
    else:
        above = 1 / sympy.Mul(*(start - k for k in range(1, -whole + 1)))
    return sympy.factor(above) * (1 if s == whole else sympy.gamma(start) / sympy.gamma(a))


def _shifted(a: sympy.Expr, s: sympy.Rational, b: sympy.Expr) -> sympy.Expr:
    """``E[(G + b)^s]`` for a gamma number G of shape a and ``s < 0``: exponential integrals for whole s."""
    if s > 0:
        raise NoRuleError("a root of a length with an offset has no closed form")
    n = -s
    if n.is_integer:
        parts = (
            sympy.binomial(n - 1, k) * (-1) ** (n - 1 - k) * sympy.expint(sympy.expand(a - k), b) for k in range(int(n))
        )
        return sympy.exp(b) * sympy.Add(*parts) / sympy.gamma(n)
    t = sympy.Symbol("t", positive=True)
    return sympy.Integral(t ** (n - 1) * sympy.exp(-b * t) * (1 + t) ** (-a), (t, 0, sympy.oo)) / sympy.gamma(n)
