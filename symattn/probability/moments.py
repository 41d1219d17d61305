"""Moments of attention quantities: expectation, variance, covariance and higher moments, exact and symbolic."""

from __future__ import annotations

from typing import Any

import sympy

from ..errors import OperandError, described
from .approximations import Approximation, delta
from .problem import Laws, Problem, solved
from .quadrature import quadrature
from .report import Moments


def expectation(x: Any, law: Laws, method: str = "exact") -> sympy.Expr | Approximation:
    r"""The expectation of a rank-0 tensor, or of an expression of entries, under the laws of its tensors.

    :math:`E[x_1 \cdots x_m] = \sum_\pi \prod_{B \in \pi} \kappa(x_i : i \in B)`, over set partitions, with the joint
    cumulants of the laws; exact for polynomials, and for exponentials that are linear in normal entries.
    ``law`` maps tensors to laws made by ``sa.iid``, ``sa.iid_pair``, ``sa.normal``, ``sa.sphere``; "constant" says that
    a tensor is not random. Raises OperandError for a tensor without a law and NoRuleError for a moment that the laws
    do not tell, or for what is no polynomial.

    ``method="delta"`` expands the function at the means, and ``method="quadrature"`` sums over nodes for numbers as
    sizes and at most four random entries; both give an ``Approximation``, with the number as its ``value``.

    >>> import symattn as sa
    >>> q, k = sa.tensor("q", "d"), sa.tensor("k", "d")
    >>> sa.expectation((q @ k) ** 4, {q: sa.iid("normal"), k: sa.iid("normal")})
    3*d*(d + 2)
    """
    return _answered("expectation", (x,), law, method)


def variance(x: Any, law: Laws, method: str = "exact") -> sympy.Expr | Approximation:
    """The variance ``E[x^2] - E[x]^2`` of a rank-0 tensor, or of an expression of entries. See ``expectation``.

    >>> import sympy, symattn as sa
    >>> q, k = sa.tensor("q", "d"), sa.tensor("k", "d")
    >>> sa.variance(q @ k / sympy.sqrt(q.shape[0]), {q: sa.iid(mean=0, variance=1), k: sa.iid("rademacher")})
    1
    """
    return _answered("variance", (x,), law, method)


def covariance(x: Any, y: Any, law: Laws, method: str = "exact") -> sympy.Expr | Approximation:
    """The covariance ``E[x y] - E[x] E[y]`` of two rank-0 tensors or expressions of entries. See ``expectation``.

    >>> import symattn as sa
    >>> q, k, m = (sa.tensor(name, "d") for name in "qkm")
    >>> sa.covariance(q @ k, q @ m, {q: sa.iid(), k: sa.iid(mean=1), m: sa.iid(mean=2)})
    2*d
    """
    return _answered("covariance", (x, y), law, method)


def moments(x: Any, law: Laws) -> Moments:
    """Mean, variance, skewness and kurtosis, with the assumptions that were used and a derivation.

    Raises as ``expectation``.

    >>> import symattn as sa
    >>> q, k = sa.tensor("q", "d"), sa.tensor("k", "d")
    >>> m = sa.moments(q @ k, {q: sa.iid("normal"), k: sa.iid("normal")})
    >>> m.mean, m.variance, m.skewness, m.kurtosis
    (0, d, 0, 3 + 6/d)
    """
    return solved((x,), law, lambda problem: Moments(problem, x))


def _exact(what: str, problem: Problem) -> sympy.Expr:
    e = problem.expectation
    found = e.of(problem.polys[0]) if what == "expectation" else e.covariance(problem.polys[0], problem.polys[-1])
    return problem.answer(found)


_METHODS = {
    "exact": (_exact, "exact moment"),
    "delta": (delta, "delta method"),
    "quadrature": (quadrature, "quadrature"),
}


def _answered(what: str, expressions: tuple[Any, ...], law: Laws, method: str) -> Any:
    if not isinstance(method, str) or method not in _METHODS:
        raise OperandError(f'the method is "exact", "delta" or "quadrature", not {described(method)}')
    calculate, name = _METHODS[method]
    return solved(expressions, law, lambda problem: calculate(what, problem), what=name)
