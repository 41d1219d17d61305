"""The moments of one quantity: mean, variance, skewness, kurtosis, what they rest on, and how they were found."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import sympy

from ..proof.normal.terms import Poly
from .answers import plainest
from .problem import Problem


class Moments:
    """Moments of a quantity. Higher moments are worked out when they are asked for.

    ``mean`` and ``variance`` are there from the start; ``skewness`` and ``kurtosis`` raise NoRuleError where the laws
    do not tell them.
    """

    def __init__(self, problem: Problem, quantity: Any) -> None:
        self.quantity = quantity
        self._problem = problem
        self._x = problem.polys[0]
        self._mean_poly = problem.expectation.of(self._x)
        self._variance_poly = problem.expectation.variance(self._x)
        self.mean: sympy.Expr = problem.answer(self._mean_poly)
        self.variance: sympy.Expr = problem.answer(self._variance_poly)

    def _central(self, order: int) -> Poly:
        """``E[(x - E x)^order]``."""
        ring = self._problem.ring
        centred = ring.subtract(self._x, self._mean_poly)
        return self._problem.expectation.of(ring.whole_power(centred, order))

    @cached_property
    def skewness(self) -> sympy.Expr:
        """``E[(x - E x)^3] / Var(x)^{3/2}``."""
        third = self._problem.answer(self._central(3))
        return plainest(third / self.variance ** sympy.Rational(3, 2))

    @cached_property
    def kurtosis(self) -> sympy.Expr:
        """``E[(x - E x)^4] / Var(x)^2``, which is 3 for a normal law."""
        fourth = self._problem.answer(self._central(4))
        ratio = sympy.cancel(fourth / self.variance**2)
        (symbol, *others) = sorted(ratio.free_symbols, key=str) or [None]
        return sympy.apart(ratio, symbol) if symbol is not None and not others else plainest(ratio)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What mean and variance used of the laws, and nothing else."""
        return self._problem.assumptions([self._mean_poly, self._variance_poly])
