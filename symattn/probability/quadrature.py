"""Moments of few random entries as sums over nodes: Gauss quadrature for densities, all values for finite laws.

The nodes of several entries are combined. The error that is told is the difference from a smaller number of nodes, of
the other parity; sums over all values of finite laws have none but rounding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import sympy

from ..codegen import lambdify
from ..core.node import Tensor
from ..errors import EvaluationError, NoRuleError, OperandError
from ..normal_form.indices import ZERO
from ..normal_form.terms import Atom, Poly
from .approximations import Approximation
from .laws import Iid
from .problem import Problem
from .sources import Source
from .steps import assumptions

_MOST = 4  # random entries
_NODES = {1: (64, 49), 2: (40, 31), 3: (24, 19), 4: (16, 13)}  # by the number of entries with a density
Rule = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class QuadratureApproximation(Approximation):
    """A moment as a sum over nodes.

    ``nodes`` is their number for each of ``entries`` random entries that have a density, and ``error`` how much the
    value differs from that with fewer nodes: an estimate, not a bound.
    """

    entries: int
    nodes: int
    fewer: int
    error: float

    method = "quadrature"

    @property
    def explanation(self) -> str:
        if not self.entries:
            return "a sum over all values of the entries, in floating point"
        count = "1 random entry" if self.entries == 1 else f"each of {self.entries} random entries"
        change = f"{self.fewer} nodes change it by {self.error:.1e}"
        return f"Gauss quadrature: {self.nodes} nodes for {count}; {change}, which is no bound"


def quadrature(what: str, problem: Problem) -> QuadratureApproximation:
    """The moment by quadrature; OperandError for sizes, parameters and indices that are no numbers."""
    integrand = _Integrand(problem)
    entries = sum(law.name not in _FINITE for law in integrand.laws)
    nodes, fewer = _NODES.get(entries, (1, 1))
    value, magnitude = integrand.moment(what, nodes)
    error = abs(value - integrand.moment(what, fewer)[0])
    if error > magnitude / 5:
        raise NoRuleError(
            f"quadrature does not settle: with {nodes} and with {fewer} nodes it differs by {error:.1e}, and the terms "
            f"sum to {magnitude:.1e} in magnitude; the moment may not exist"
        )
    used = assumptions(problem, list(integrand.cumulants()))
    tensors = tuple(problem.tensors.values())
    return QuadratureApproximation(what, problem.expressions, tensors, value, used, entries, nodes, fewer, error)


# --- nodes and weights ---


def _numbers(law: Iid) -> tuple[float, float]:
    """Mean and standard deviation."""
    mean, variance = (float(sympy.sympify(law.known(order))) for order in (1, 2))
    return mean, math.sqrt(variance)


def _normal(law: Iid, n: int) -> Rule:
    (mean, deviation), (t, w) = _numbers(law), np.polynomial.hermite_e.hermegauss(n)
    return mean + deviation * t, w / math.sqrt(2 * math.pi)


def _uniform(law: Iid, n: int) -> Rule:
    (mean, deviation), (t, w) = _numbers(law), np.polynomial.legendre.leggauss(n)
    return mean + deviation * math.sqrt(3) * t, w / 2


def _laplace(law: Iid, n: int) -> Rule:
    """The exponential law on each side of the mean."""
    (mean, deviation), (t, w) = _numbers(law), np.polynomial.laguerre.laggauss(n)
    scaled = deviation / math.sqrt(2) * t
    return np.concatenate([mean - scaled, mean + scaled]), np.concatenate([w, w]) / 2


def _rademacher(law: Iid, n: int) -> Rule:
    mean, deviation = _numbers(law)
    return np.array([mean - deviation, mean + deviation]), np.array([0.5, 0.5])


def _bernoulli(law: Iid, n: int) -> Rule:
    probability, _ = _numbers(law)
    return np.array([0.0, 1.0]), np.array([1 - probability, probability])


_RULES: dict[str, Callable[[Iid, int], Rule]] = {
    "normal": _normal, "uniform": _uniform, "laplace": _laplace, "rademacher": _rademacher, "bernoulli": _bernoulli,
}  # fmt: skip
_FINITE = ("rademacher", "bernoulli")


# --- the function of the entries ---


class _Integrand:
    """The expressions as a function of all random entries, which have laws with numbers as parameters."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        for x in problem.expressions:
            if not isinstance(x, Tensor):
                raise OperandError(f"quadrature needs numbers as indices, and {x} is an entry at any index")
        self.tensors = [*problem.tensors.values()]
        _check_numbers([*problem.expressions, *self.tensors])
        self.shapes = [tuple(int(size) for size in x.shape) for x in self.tensors]
        self.random = {str(s.names[0]): _checked_law(s) for s in problem.sources}
        self.laws = [
            self.random[str(x.name)]
            for x, shape in zip(self.tensors, self.shapes, strict=True)
            if str(x.name) in self.random
            for _ in range(math.prod(shape))
        ]
        if len(self.laws) > _MOST:
            raise OperandError(
                f"quadrature reaches {_MOST} random entries, and {', '.join(self.random)} have {len(self.laws)} "
                'together: take smaller sizes, or method="delta"'
            )
        self.fixed = {str(x.name): self._value(x) for x in self.tensors if str(x.name) not in self.random}
        self.function = lambdify(self.tensors, problem.expressions)

    def _value(self, x: Tensor) -> float:
        """The value of all entries of a tensor that is not random."""
        value = self.problem.fixed.get(str(x.name))
        if value is None or not value.is_number:
            raise OperandError(
                f"quadrature needs numbers, and the entries of {x.brief()} are not random and not known: give "
                'sa.iid("constant", mean=...) with a number'
            )
        return float(value)

    def cumulants(self) -> Iterator[Poly]:
        """Means and variances, which the nodes are placed by."""
        for source in self.problem.sources:
            at = Atom("entry", source.names[0], (ZERO,) * source.tensors[0].rank)
            yield from (source.joint([at]), source.joint([at, at]))

    def moment(self, what: str, n: int) -> tuple[float, float]:
        """The moment with ``n`` nodes for each entry with a density, and its terms summed in magnitude."""
        points, weights = self._grid(n)
        with np.errstate(all="ignore"):  # what is not finite is an error below
            found = self.function(*self._arrays(points))
        values = [np.broadcast_to(np.asarray(v, float), weights.shape) for v in found]
        if not all(np.isfinite(v).all() for v in values):
            raise EvaluationError("the expression has no finite value at a node of the quadrature")
        if what == "expectation":
            terms = weights * values[0]
        else:
            first, last = (v - weights @ v for v in (values[0], values[-1]))
            terms = weights * first * last
        return float(terms.sum()), float(np.abs(terms).sum())

    def _grid(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """All combinations of the nodes of the entries, one a row, and their weights."""
        rules = [_RULES[str(law.name)](law, n) for law in self.laws]
        points = np.array(list(itertools.product(*(nodes for nodes, _ in rules))), float)
        weights = np.array([math.prod(chosen) for chosen in itertools.product(*(w for _, w in rules))], float)
        return points, weights

    def _arrays(self, points: np.ndarray) -> Iterator[np.ndarray]:
        """The arguments of the function: of random tensors one array a node, of fixed ones their value."""
        start = 0
        for x, shape in zip(self.tensors, self.shapes, strict=True):
            if str(x.name) not in self.random:
                yield np.full([*shape], self.fixed[str(x.name)])
                continue
            count = math.prod(shape)
            yield points[:, start : start + count].reshape(-1, *shape)
            start += count


def _check_numbers(tensors: Sequence[Tensor]) -> None:
    for x in tensors:
        if x.free_symbols:
            listed = ", ".join(sorted(map(str, x.free_symbols)))
            raise OperandError(
                f"quadrature needs numbers as sizes and scalars, and {x.brief()} holds {listed}: make its tensors with "
                'numbers as sizes, or take method="delta"'
            )


def _checked_law(source: Source) -> Iid:
    law = source.law
    names = " and ".join(source.names)
    if not isinstance(law, Iid) or law.name not in _RULES:
        raise OperandError(
            f"quadrature needs to know the whole law of independent entries, by its name: {', '.join(_RULES)}; that "
            f"of {names} is not among them"
        )
    for order, what in ((1, "mean"), (2, "variance")):
        value = law.known(order)
        if value is None or not value.is_number:
            raise OperandError(f"quadrature needs numbers as parameters, and the {what} of {names} is {value}")
    return law
