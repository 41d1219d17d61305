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
    cumulants of the laws; exact for polynomials, for relu, abs, sign, gelu, erf, exp, cos, indicators and the largest
    of a few, of what is linear in normal entries, with the others fixed and taken afterwards (the tower rule), and for
    powers of lengths of normal vectors, as in LayerNorm. ``sa.moments`` says in its ``assumptions`` where it holds.
    ``law`` maps tensors to laws made by ``sa.iid``, ``sa.iid_pair``, ``sa.normal``, ``sa.sphere``; "constant" says that
    a tensor is not random. Raises OperandError for a tensor without a law and NoRuleError for a moment that the laws
    do not tell, or for what is no polynomial.

    ``method="delta"`` expands the function at the means, and ``method="quadrature"`` sums over nodes for numbers as
    sizes and at most four random entries; both give an ``Approximation``, with the number as its ``value``.

    >>> import symattn as sa
    >>> q, k = sa.tensor("q", "d"), sa.tensor("k", "d")
    >>> sa.expectation((q @ k) ** 4, {q: sa.iid("normal"), k: sa.iid("normal")})
    3*d*(d + 2)
    >>> W = sa.tensor("W", "n d")
    >>> sa.expectation(sa.sum(sa.relu(W @ q) ** 2), {W: sa.iid("normal", variance=2 / q.shape[0]), q: sa.iid("normal")})
    n
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


def moments(x: Any, law: Laws, order: int | None = None) -> Moments:
    """Mean, variance, skewness and kurtosis, with the assumptions that were used and a derivation.

    With ``order`` the first terms of mean and variance in falling powers of the size are told too, and the next one
    as their error. Raises as ``expectation``, and OperandError for an order that is no number of terms.

    >>> import symattn as sa
    >>> q, k = sa.tensor("q", "d"), sa.tensor("k", "d")
    >>> m = sa.moments(q @ k, {q: sa.iid("normal"), k: sa.iid("normal")})
    >>> m.mean, m.variance, m.skewness, m.kurtosis
    (0, d, 0, 3 + 6/d)
    >>> print(sa.moments(sa.sqrt(q @ q), {q: sa.iid("normal")}, order=1).at_large_sizes["mean"])
    sqrt(d) for large d, up to -1/(4*sqrt(d)) and smaller terms
    """
    if order is not None and (isinstance(order, bool) or not isinstance(order, int) or order < 1):
        raise OperandError(f"order= is how many terms are told for large sizes, 1 or more, not {described(order)}")
    return solved((x,), law, lambda problem: Moments(problem, x, order))


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
