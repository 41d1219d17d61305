"""Approximate moments: a result that is never taken for an exact one, and the delta method.

The delta method expands a function of random entries at their means: to second order for an expectation, to first order
for a variance or a covariance. Sizes stay symbols, and what the expansion leaves out is not bounded.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import sympy

from ..core.boxes import Fence, Sign, Space, Text, commas, row
from ..core.budget import Budget, OutOfBudget
from ..core.displayed import Displayed
from ..core.node import Tensor
from ..core.stated import Sentence
from ..errors import NoRuleError
from ..normal_form.constructors import scalar
from ..normal_form.derivative import Derivative
from ..normal_form.terms import Atom, Poly, TooLarge, Undefined, Unsupported, single
from ..ops.leaves import definition
from ..printing.matrix import latex_printer
from ..printing.media.latex import latex
from ..printing.prose import Chain, Paragraph, Part, Step
from ..printing.table import SymbolTable, symbol_table
from .expectation import reads_at, written
from .notation import assumed, bound_by_letters, box_writer, moment_sign
from .problem import Problem
from .steps import assumptions

_SIGNS = {"expectation": "E", "variance": "Var", "covariance": "Cov"}
_KINKS = ("positive", "zero", "extreme")
_PATIENCE = 20.0  # seconds for the next term of an expansion
_SIZES = (4, 16, 64)  # at which it is held against the answer
_SMALL = sympy.Rational(1, 2)  # what the next term may be of the answer
_STEPS = ("floor", "ceiling", "Mod")


@dataclass(frozen=True, eq=False, repr=False)
class Approximation(Displayed):
    """An approximate moment: its ``value`` with the method, what the method did, and what was assumed.

    It is no number: arithmetic with it is an error, so that an exact result never holds an approximate part unseen.
    """

    what: str
    expressions: tuple[Any, ...]
    tensors: tuple[Tensor, ...]
    value: Any
    assumptions: tuple[Sentence, ...]

    method: ClassVar[str]

    @property
    def explanation(self) -> str:
        """How the value was found, in one sentence."""
        raise NotImplementedError

    def text(self) -> str:
        """The quantity, its approximate value, the method, and what was assumed."""
        shown = ", ".join(str(x if isinstance(x, Tensor) else bound_by_letters(x)) for x in self.expressions)
        lines = [f"{_SIGNS[self.what]}[{shown}] is approximately {self.value}", self.explanation, "assumed:"]
        return "\n".join([*lines, *(f"  {sentence}" for sentence in self.assumptions or ("nothing",))])

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        """The same as mathematics, with the symbols of a document if it stands in one."""
        table = symbol_table([*self._roots, *self.tensors]) if within is None else within
        line = replace(self._line(within), reason=(self.explanation,))
        return Chain((line,)), Paragraph(assumed(self.assumptions, self.tensors, table))

    def latex(self) -> str:
        r"""The value and the method as a LaTeX fragment (amsmath, amssymb), with :math:`\approx`."""
        line = self._line()
        assert line.left is not None
        return latex(row(line.left, line.relation, line.right, Space(1.0), Text(f"({self.explanation})")))

    @property
    def _roots(self) -> list[Tensor]:
        return [x for x in self.expressions if isinstance(x, Tensor)]

    def _line(self, within: SymbolTable | None = None) -> Step:
        """The moment and its approximate value."""
        printer, value = latex_printer(self._roots, within=within), sympy.sympify(self.value)
        scalars = [value, *(x for x in self.expressions if not isinstance(x, Tensor))]
        shown = (
            printer.box(definition(x)) if isinstance(x, Tensor) else printer.scalar(bound_by_letters(x))
            for x in self.expressions
        )
        left = row(moment_sign(_SIGNS[self.what]), Fence(commas(shown), "[", "]"))
        written = box_writer([*self._roots, *self.tensors], scalars, within)
        return Step(left, written(value), relation=Sign("≈", "relation"))

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<approximate {self.what} {self.value}: {self.explanation}>"

    def _sympy_(self) -> Any:
        raise TypeError(f"this {self.what} is approximate: take its .value if that is meant")


@dataclass(frozen=True, eq=False, repr=False)
class DeltaApproximation(Approximation):
    """A moment by a Taylor expansion at the means; ``order`` is that of the expansion."""

    order: int

    method = "delta"

    @property
    def explanation(self) -> str:
        return f"delta method: Taylor expansion of order {self.order} at the means, with no bound on the rest"


def delta(what: str, problem: Problem) -> DeltaApproximation:
    """The delta method; NoRuleError for what has no derivative at the means, or no slope there."""
    expansion = _Expansion(problem)
    found = expansion.expectation(problem.polys[0]) if what == "expectation" else expansion.covariance(what)
    value, used = problem.answer(found), assumptions(problem, expansion.used)
    _check_next(what, value, _next_term(what, problem))
    order = 2 if what == "expectation" else 1
    return DeltaApproximation(what, problem.expressions, tuple(problem.tensors.values()), value, used, order)


def _next_term(what: str, problem: Problem) -> sympy.Expr | None:
    """The first term that the expansion leaves out, as far as covariances tell it; None if it was not reached."""
    whole, problem.ring.budget = problem.ring.budget, Budget(_PATIENCE)
    try:
        expansion = _Expansion(problem)
        return problem.answer(expansion.next_mean() if what == "expectation" else expansion.next_covariance())
    except (NoRuleError, Unsupported, TooLarge, OutOfBudget):
        return None
    finally:
        problem.ring.budget = whole


def _check_next(what: str, value: sympy.Expr, left_out: sympy.Expr | None) -> None:
    """NoRuleError where the first term that is left out is not small against the answer, at small and large sizes."""
    if left_out is None or left_out == 0:
        return
    symbols = sorted(value.free_symbols | left_out.free_symbols, key=str)
    if not all(s.is_positive and s.is_integer for s in symbols):
        return  # it depends on values that are not known
    for n in _SIZES:
        sizes = {s: n + k for k, s in enumerate(symbols)}
        told, missed = (abs(sympy.N(e.subs(sizes).doit())) for e in (value, left_out))
        if not (told.is_number and missed.is_number) or bool(missed <= _SMALL * told):
            return
    raise NoRuleError(
        f"the delta method does not settle: it gives {value} for the {what}, and the next term of the expansion, "
        f'{left_out}, is not small against that; ask for method="exact" or method="quadrature"'
    )


@dataclass(frozen=True)
class _Pair:
    """Two entries of tensors that have a law together, at any places, and their covariance summed over ``bound``."""

    first: Atom
    second: Atom
    bound: tuple[int, ...]
    covariance: Poly


class _Expansion:
    """Taylor expansions at the means; ``used`` collects the cumulants that they took."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.ring = problem, problem.ring
        self.used: list[Poly] = []

    def expectation(self, f: Poly) -> Poly:
        """``f(m) + 1/2 sum_pq Cov(x_p, x_q) d_p d_q f(m)``."""
        self._check_smooth(f)
        parts: list[tuple[Any, Poly]] = [(1, self._at_means(f))]
        for pair in self._pairs():
            curvature = self._slope(self._slope(f, pair.first), pair.second)
            parts.append((Fraction(1, 2), self._summed(pair, self._at_means(curvature))))
        return self.ring.total(parts)

    def covariance(self, what: str) -> Poly:
        """``sum_pq Cov(x_p, x_q) d_p f(m) d_q g(m)``."""
        f, g = self.problem.polys[0], self.problem.polys[-1]
        self._check_smooth(f)
        self._check_smooth(g)
        parts, moving, sloped = [], False, False
        for pair in self._pairs():
            left, right = self._slope(f, pair.first), self._slope(g, pair.second)
            slopes = [self._at_means(left), self._at_means(right)]
            moving, sloped = moving or bool(left), sloped or bool(slopes[0])
            parts.append((1, self._summed(pair, self.ring.product(slopes))))
        if what == "variance" and moving and not sloped:
            raise NoRuleError(
                "the delta method takes the slope at the means, which is zero here: to first order there is no "
                'variance, which says nothing; ask for method="exact" or method="quadrature"'
            )
        return self.ring.total(parts)

    # --- the next terms ---

    def next_mean(self) -> Poly:
        """``1/8 sum_pq sum_rs Cov(x_p, x_q) Cov(x_r, x_s) d_p d_q d_r d_s f(m)``."""
        f = self.problem.polys[0]
        return self._over_two_pairs(lambda a, b: [(Fraction(1, 8), [f], [[a.first, a.second, b.first, b.second]])])

    def next_covariance(self) -> Poly:
        """``1/2 sum sum Cov Cov (d_p d_r f d_q d_s g + d_p f d_q d_r d_s g + d_p d_r d_s f d_q g)`` at the means."""
        both = [self.problem.polys[0], self.problem.polys[-1]]
        half = Fraction(1, 2)
        return self._over_two_pairs(
            lambda a, b: [
                (half, both, [[a.first, b.first], [a.second, b.second]]),
                (half, both, [[a.first], [a.second, b.first, b.second]]),
                (half, both, [[a.first, b.first, b.second], [a.second]]),
            ]
        )

    def _over_two_pairs(self, terms: Callable[[_Pair, _Pair], Sequence[tuple[Fraction, list[Poly], Any]]]) -> Poly:
        """The sum over two pairs of entries of their covariances times products of derivatives at the means."""
        parts = []
        for a in self._pairs():
            for b in self._pairs():
                for c, polys, places in terms(a, b):
                    slopes = [self._at_means(self._slopes(f, at)) for f, at in zip(polys, places, strict=True)]
                    parts.append((c, self._summed(a, self._summed(b, self.ring.product(slopes)))))
        return self.ring.total(parts)

    def _slopes(self, f: Poly, places: Sequence[Atom]) -> Poly:
        for at in places:
            f = self._slope(f, at)
        return f

    # --- entries and their laws ---

    def _pairs(self) -> Iterator[_Pair]:
        """All pairs of entries that may be correlated, piece by piece of the ranges of their indices."""
        places = self.problem.lowering.places
        for source in self.problem.sources:
            for x, y in itertools.product(source.tensors, repeat=2):
                for (p, p_bound), (q, q_bound) in itertools.product(places(x.shape), places(y.shape)):
                    first, second = (Atom("entry", t.name, place) for t, place in ((x, p), (y, q)))
                    yield _Pair(first, second, (*p_bound, *q_bound), source.joint([first, second]))

    def _summed(self, pair: _Pair, poly: Poly) -> Poly:
        """The polynomial times the covariance of the pair, over all places."""
        product = self.ring.summed(pair.bound, self.ring.multiply(pair.covariance, poly))
        if product:
            self.used.append(product)
        return product

    def _slope(self, f: Poly, at: Atom) -> Poly:
        return Derivative(self.ring, at.name, at.indices).of(f)

    def _at_means(self, f: Poly) -> Poly:
        """The polynomial with means in place of random entries; their values are put in, for a zero to be seen."""

        def change(atom: Atom) -> Poly | None:
            source = self.problem.expectation.source_of.get(str(atom.name))
            if source is None:
                return None
            mean = source.joint([atom])
            self.used.append(mean)
            return self.ring.rewrite(mean, self._value, "scalar")

        try:
            return self.ring.rewrite(f, change, "entry", "symmetric")
        except Undefined as problem:
            raise NoRuleError(f"the delta method needs derivatives at the means, and there is {problem}") from None

    def _value(self, atom: Atom) -> Poly | None:
        known = self.problem.symbols.known.get(atom.name)
        return scalar(self.ring, known.value) if known is not None and known.value is not None else None

    # --- what has no derivative ---

    def _check_smooth(self, poly: Poly) -> None:
        expectation = self.problem.expectation
        for _, term in poly.terms:
            for atom, _e in term.factors:
                name = str(atom.name)
                step = atom.kind == "function" and (name in _STEPS or name.startswith("unknown "))
                chosen = any(reads_at(index, expectation.source_of) for index in atom.indices)
                if chosen or ((atom.kind in _KINKS or step) and expectation.is_random(single(atom))):
                    raise self._no_slope(atom)
                for inner in atom.inner:
                    self._check_smooth(inner)

    def _no_slope(self, atom: Atom) -> NoRuleError:
        shown = written(atom, self.problem.expectation.taken)
        return NoRuleError(
            f"the delta method needs derivatives at the means, and none are known of {shown}: ask for "
            'method="quadrature", if there are few random entries'
        )
