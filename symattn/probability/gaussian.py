"""Expectations of entries, steps, exponentials and erf of linear forms of normal entries, in closed form.

Exponentials tilt the law, and erf is a smoothed step: ``erf(L) = E[2 [L + xi > 0] - 1]`` for a normal xi of variance
1/2. Stein's identity takes the entries away, ``E[x F] = E[x] E[F] + sum Cov(x, L) E[dF/dL]``, where the derivative of a
step is the density of its form at 0 and conditions all others on it. What is left are orthant probabilities.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..core.stated import Sentence
from ..errors import NoRuleError
from ..normal_form.functions import exp, positive, power, zero
from ..normal_form.terms import ONE, ZERO, Atom, Factor, Poly, constant, product_of, single
from .linear import linear_factors
from .orthants import density, orthant
from .rule import Rule
from .sources import Source

if TYPE_CHECKING:
    from .expectation import Expectation

_HALF = Fraction(1, 2)
_MOST_FORMS, _MOST_ERF = 16, 6
_SPLIT = ("same", "range", "positive", "zero")  # indicators that decide which forms depend on each other


@dataclass(frozen=True)
class _Joint:
    """The means and covariances of linear forms, by their numbers, given that some others are 0.

    ``known`` has the expectations that were found already, by their factors and steps, and what they are given.
    """

    mean: Mapping[int, Poly]
    covariance: Mapping[tuple[int, int], Poly]
    given: frozenset[int] = frozenset()
    known: dict[Any, Poly] = field(default_factory=dict)


@dataclass(frozen=True)
class _Product:
    """What the expectation is taken of: which forms are factors, which are stepped, smoothed steps, and points.

    A form is in ``points`` for the indicator that it is 0, and ``tilt`` is the exponent.
    """

    factors: tuple[int, ...]
    steps: tuple[int, ...]
    smoothed: tuple[int, ...]
    points: tuple[int, ...]
    tilt: int | None

    @property
    def stepped(self) -> tuple[int, ...]:
        return (*self.steps, *self.smoothed, *self.points)


def _groups(sources: Sequence[Source]) -> list[list[Source]]:
    """Normal sources together, the largest groups first; the others are kept fixed meanwhile."""
    normal = [source for source in sources if source.law.is_normal]
    return [list(g) for size in range(len(normal), 0, -1) for g in itertools.combinations(normal, size)]


def _expected(e: Expectation, sources: Sequence[Source], factors: Sequence[Factor], bound: tuple[int, ...]) -> Poly:
    read = _Reading(e, sources)
    forms, others, share = linear_factors(read.over, factors, bound)
    kept = read.all(forms, others)
    found = _Calculation(e).split(read.product, read.joint(), bound)
    return e.ring.product([product_of(kept), share, found])


GAUSSIAN = Rule(
    "Gaussian expectation",
    Sentence(
        "Functions of linear forms of normal entries are written by steps, exponentials and erf. Exponentials shift "
        "the means, Stein's identity takes out entries, and orthant probabilities are left; other tensors are fixed "
        "meanwhile."
    ),
    _groups,
    _expected,
    explains=True,
)


class _Reading:
    """Reads the factors of a term as functions of linear forms of the entries of some normal sources."""

    def __init__(self, e: Expectation, sources: Sequence[Source]) -> None:
        self.e, self.ring, self.over = e, e.ring, e.over(sources)
        self.forms: dict[int, Poly] = {}
        self.numbers: dict[int, int] = {}
        self.product = _Product((), (), (), (), None)

    def all(self, forms: Sequence[Poly], factors: Sequence[Factor]) -> list[Factor]:
        """Take linear forms and all else that is random; what is left is returned."""
        kept: list[Factor] = []
        drawn = list(map(self._number, forms))
        steps: list[int] = []
        smoothed: list[int] = []
        points: list[int] = []
        exponent: list[tuple[int | Fraction, Poly]] = []
        for atom, power_ in factors:
            times = int(power_) if power_ > 0 and power_ == int(power_) else 0
            if not self.over.is_random(single(atom)):
                kept.append((atom, power_))
            elif atom.kind == "positive":
                steps.append(self._number(atom.inner[0]))
            elif atom.kind == "zero":
                points.append(self._number(atom.inner[0]))
            elif atom.kind == "function" and atom.name == "erf" and times:
                smoothed += [self._number(atom.inner[0])] * times
            elif atom.kind == "exp":
                exponent.append((power_, atom.inner[0]))
            elif atom.kind in ("entry", "symmetric") and power_ <= -1:
                raise NoRuleError(
                    f"the expectation is infinite: {self.e.shown(atom, power_)} divides by a normal entry"
                )
            else:
                raise NoRuleError(f"{self.e.shown(atom, power_)} is no step, exponential or erf of a linear form")
        tilt = self._number(self.ring.total(exponent)) if exponent else None
        if len(self.forms) > _MOST_FORMS or len(smoothed) > _MOST_ERF:
            raise NoRuleError(f"a product of functions of {len(self.forms)} linear forms is too long")
        self.product = _Product(tuple(drawn), tuple(steps), tuple(smoothed), tuple(points), tilt)
        return kept

    def _number(self, form: Poly) -> int:
        """The number of a form, equal ones alike; NoRuleError for one that is not linear in the entries."""
        key = self.ring.poly_key(form)
        if key not in self.numbers:
            if not self.over.is_linear(form):
                raise NoRuleError(f"a function of {self.e.shown_poly(form)}, which is not linear in normal entries")
            self.forms[len(self.numbers)] = form
            self.numbers[key] = len(self.numbers)
        return self.numbers[key]

    def joint(self) -> _Joint:
        over, e = self.over, self.e
        mean = {n: e.value(over.of(form)) for n, form in self.forms.items()}
        covariance: dict[tuple[int, int], Poly] = {}
        for (n, a), (m, b) in itertools.combinations_with_replacement(self.forms.items(), 2):
            covariance[n, m] = covariance[m, n] = e.value(over.covariance(a, b))
        return _Joint(mean, covariance)


class _Calculation:
    """The expectation of a product of functions of forms with a known joint law."""

    def __init__(self, e: Expectation) -> None:
        self.e, self.ring = e, e.ring

    # --- which places coincide ---

    def split(self, product: _Product, joint: _Joint, bound: tuple[int, ...]) -> Poly:
        """``F = d F[d = 1] + (1 - d) F[d = 0]`` for each indicator d of indices in what is not taken linearly."""
        found = self._indicator(product, joint)
        if found is None:
            return self._tilted(product, joint)
        ring, mark = self.ring, single(found)
        there = self.split(product, self._where(joint, found, True), bound)
        elsewhere = self.split(product, self._where(joint, found, False), bound)
        return ring.add(elsewhere, ring.multiply(mark, ring.subtract(there, elsewhere)))

    def _indicator(self, product: _Product, joint: _Joint) -> Atom | None:
        hard = dict.fromkeys([*product.stepped, *(() if product.tilt is None else (product.tilt,))])
        stepped = dict.fromkeys(product.stepped)
        polys = [joint.covariance[a, b] for a in stepped for b in hard] + [joint.mean[a] for a in stepped]
        for poly in polys:
            for _, term in poly.terms:
                for atom, _e in term.factors:
                    if atom.kind in _SPLIT and not atom.free & set(term.bound) and not self.e.is_random(single(atom)):
                        return atom
        return None

    def _where(self, joint: _Joint, mark: Atom, holds: bool) -> _Joint:
        """The joint law where an indicator of indices is 1, or where it is 0."""
        ring, key = self.ring, self.ring.atom_key(mark)
        value = ONE if holds else ZERO
        swap = {}
        if holds and mark.kind == "same":
            i, j = mark.indices
            moving, other = (i, j) if isinstance(i, int) else (j, i)
            if isinstance(moving, int):
                swap = {moving: other}

        def change(atom: Atom) -> Poly | None:
            return value if ring.atom_key(atom) == key else None

        def there(poly: Poly) -> Poly:
            poly = ring.rewrite(poly, change, mark.kind)
            return ring.replace(poly, swap) if swap else poly

        return _Joint({n: there(p) for n, p in joint.mean.items()}, {n: there(p) for n, p in joint.covariance.items()})

    # --- exponentials, points, and erf ---

    def _tilted(self, product: _Product, joint: _Joint) -> Poly:
        ring, t = self.ring, product.tilt
        if t is None:
            return self._pointed(product, joint)
        factor = exp(ring, ring.total([(1, joint.mean[t]), (_HALF, joint.covariance[t, t])]))
        mean = {n: ring.add(m, joint.covariance[n, t]) for n, m in joint.mean.items()}
        return ring.multiply(factor, self._pointed(product, _Joint(mean, joint.covariance)))

    def _pointed(self, product: _Product, joint: _Joint) -> Poly:
        """A form is 0 with probability 0, unless it does not vary."""
        ring, parts = self.ring, []
        for n in product.points:
            if joint.covariance[n, n]:
                self.e.require_positive(joint.covariance[n, n])
                return ZERO
            parts.append(zero(ring, joint.mean[n]))
        return ring.product([*parts, self._smoothed(product, joint)])

    def _smoothed(self, product: _Product, joint: _Joint) -> Poly:
        """``erf(L) = E[2 [L + xi > 0] - 1]``, each with a ``xi`` of its own."""
        mean, covariance = dict(joint.mean), dict(joint.covariance)
        steps, noisy = list(product.steps), []
        for n in product.smoothed:
            m = len(mean)
            mean[m] = mean[n]
            for k in range(m):
                covariance[m, k] = covariance[k, m] = covariance[n, k]
            covariance[m, m] = self.ring.add(covariance[n, n], constant(_HALF))
            noisy.append(m)
        wide, parts = _Joint(mean, covariance), []
        for size in range(len(noisy) + 1):
            for chosen in itertools.combinations(noisy, size):
                sign = (-1) ** (len(noisy) - size) * 2**size
                parts.append((sign, self._stepped(product.factors, (*steps, *chosen), wide)))
        return self.ring.total(parts)

    # --- steps ---

    def _stepped(self, factors: tuple[int, ...], steps: tuple[int, ...], joint: _Joint) -> Poly:
        """Equal steps are one, what does not vary is an indicator, and steps of forms on one line are told apart."""
        ring, parts = self.ring, []
        moving = []
        for n in dict.fromkeys(steps):
            if joint.covariance[n, n]:
                moving.append(n)
            else:
                parts.append(positive(ring, joint.mean[n]))
        for s, t in itertools.combinations(moving, 2):
            c, v = joint.covariance[s, t], joint.covariance[s, s]
            if c and not ring.subtract(ring.multiply(c, c), ring.multiply(v, joint.covariance[t, t])):
                rest = tuple(n for n in moving if n not in (s, t))
                parts.append(self._on_one_line(factors, s, t, rest, joint))
                return ring.product(parts)
        return ring.product([*parts, self._stein(factors, tuple(moving), joint)])

    def _on_one_line(self, factors: tuple[int, ...], s: int, t: int, rest: tuple[int, ...], joint: _Joint) -> Poly:
        """Steps of ``L`` and of ``a L + b``."""
        ring = self.ring
        slope = ring.multiply(joint.covariance[s, t], power(ring, joint.covariance[s, s], -1))
        above = positive(ring, ring.subtract(joint.mean[t], ring.multiply(slope, joint.mean[s])))
        self.e.require_positive(joint.covariance[s, s])
        first, second = (self._stepped(factors, (n, *rest), joint) for n in (s, t))
        if ring.is_positive(slope):  # the narrower of the two
            return ring.add(second, ring.multiply(above, ring.subtract(first, second)))
        if ring.is_positive(ring.scale(-1, slope)):  # all but both complements, or nothing
            neither = self._stepped(factors, rest, joint)
            return ring.multiply(above, ring.subtract(ring.add(first, second), neither))
        raise NoRuleError("two steps of forms that are multiples of each other, by a factor of unknown sign")

    # --- Stein's identity ---

    def _stein(self, factors: tuple[int, ...], steps: tuple[int, ...], joint: _Joint) -> Poly:
        key = tuple(sorted(factors)), steps, joint.given
        if key not in joint.known:
            self.ring.budget.check()
            taken = self._without_factors if not factors else self._without_one
            joint.known[key] = taken(key[0], steps, joint)
        return joint.known[key]

    def _without_factors(self, factors: tuple[int, ...], steps: tuple[int, ...], joint: _Joint) -> Poly:
        return orthant(self.e, steps, joint.mean, joint.covariance)

    def _without_one(self, factors: tuple[int, ...], steps: tuple[int, ...], joint: _Joint) -> Poly:
        """``E[x F] = E[x] E[F] + sum Cov(x, L) E[dF/dL]`` for the first factor x."""
        ring, (x, *others) = self.ring, factors
        parts = [(1, ring.multiply(joint.mean[x], self._stein(tuple(others), steps, joint)))] if joint.mean[x] else []
        for y in dict.fromkeys(others):
            if c := joint.covariance[x, y]:
                left = list(others)
                left.remove(y)
                parts.append((others.count(y), ring.multiply(c, self._stein(tuple(left), steps, joint))))
        for s in steps:
            if c := joint.covariance[x, s]:
                left_steps = tuple(t for t in steps if t != s)
                there = self._at_zero(joint, s, {*others, *left_steps})
                value = self._stepped(tuple(others), left_steps, there)
                parts.append((1, ring.product([c, density(self.e, joint.mean[s], joint.covariance[s, s]), value])))
        return ring.total(parts)

    def _at_zero(self, joint: _Joint, s: int, others: Collection[int]) -> _Joint:
        """The joint law of the others given that a form is 0."""
        ring = self.ring
        inverse = power(ring, joint.covariance[s, s], -1)
        weight = {n: ring.multiply(joint.covariance[n, s], inverse) for n in others}
        mean = {n: ring.subtract(joint.mean[n], ring.multiply(weight[n], joint.mean[s])) for n in others}
        covariance: dict[tuple[int, int], Poly] = {}
        for a, b in itertools.combinations_with_replacement(sorted(others), 2):
            less = ring.multiply(weight[a], joint.covariance[s, b])
            covariance[a, b] = covariance[b, a] = ring.subtract(joint.covariance[a, b], less)
        return _Joint(mean, covariance, joint.given | {s}, joint.known)
