"""Laws of random tensors, by the joint cumulants of their entries.

A law says what the joint cumulant of a few entries is: a number (a symbol stands for it until the end, so that an
answer can tell which of them it used) times Kronecker deltas between indices. Nothing else is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import factorial
from typing import Any

import sympy

from ..core.exact import as_scalar
from ..core.node import Tensor
from ..core.stated import Sentence, Stated
from ..errors import NoRuleError, OperandError, described
from ..ops.leaves import variable
from .notation import Mean

_HALF = sympy.Rational(1, 2)


class Law:
    """What is known of the entries of a random tensor, or of several together."""

    tensors = 1  # how many tensors have the law together
    is_normal = False
    way: str = (  # how the expectation of a product is found
        "Products of sums are multiplied out. Entries at different indices are independent, so the expectation of a "
        "term depends on which of its indices coincide."
    )

    def sentence(self, tensors: Sequence[Tensor]) -> Sentence:
        """What is said of the tensors besides their cumulants."""
        raise NotImplementedError


def _number(value: Any, what: str) -> sympy.Expr:
    try:
        number = as_scalar(value)
    except OperandError:
        number = None
    if number is None or number.is_finite is False:
        infinite = isinstance(value, (float, sympy.Expr)) and value in (sympy.oo, -sympy.oo, sympy.zoo)
        way_out = "; for a limit, take a symbol, and sympy.limit of the answer" if infinite else ""
        raise OperandError(f"{what} is a finite number or a scalar symbol, not {described(value)}{way_out}")
    return number


# --- independent, identically distributed entries ---


@lru_cache(maxsize=512)
def _by_slopes(order: int, at: sympy.Symbol, weight: sympy.Expr) -> sympy.Expr:
    """The cumulants ``kappa_{n+1} = weight * d kappa_n / dx``, from ``kappa_1 = x``."""
    if order == 1:
        return at
    return sympy.expand(weight * sympy.diff(_by_slopes(order - 1, at, weight), at))


def _bernoulli(order: int, p: sympy.Expr) -> sympy.Expr:
    x = sympy.Symbol("p")
    return sympy.factor(_by_slopes(order, x, x * (1 - x)).subs(x, p))


def _rademacher(order: int) -> sympy.Expr:
    """The n-th derivative of log cosh at 0, by ``tanh' = 1 - tanh^2``."""
    x = sympy.Symbol("t")
    return _by_slopes(order, x, 1 - x**2).subs(x, 0)


_STANDARD: Mapping[str, Callable[[int], sympy.Expr]] = {  # cumulants from the third on, for variance 1
    "normal": lambda n: sympy.S.Zero,
    "rademacher": _rademacher,
    "uniform": lambda n: sympy.bernoulli(n) * sympy.Integer(12) ** (sympy.Integer(n) / 2) / n,
    "laplace": lambda n: 2 * factorial(n - 1) * _HALF ** (sympy.Integer(n) / 2) if n % 2 == 0 else sympy.S.Zero,
}
NAMED = (*_STANDARD, "bernoulli", "constant")


class ByCumulants(Law):
    """A law that is known by its cumulants, those that are given and those that its name tells."""

    def __init__(self, name: str | None, cumulants: Mapping[Any, sympy.Expr]) -> None:
        self.name, self._known = name, dict(cumulants)
        self.is_normal = name == "normal"


class Iid(ByCumulants):
    """Independent entries of one law, which is known by its cumulants; ``known(n)`` is the n-th, or None."""

    def known(self, order: int) -> sympy.Expr | None:
        """The cumulant of an order, None if nothing is said of it."""
        if order in self._known:
            return self._known[order]
        standard = _STANDARD.get(self.name) if self.name else None
        if standard is None:
            return None
        return sympy.expand(standard(order) * self._known[2] ** (sympy.Integer(order) / 2))

    def sentence(self, tensors: Sequence[Tensor]) -> Sentence:
        kind = f", {self.name}" if self.name else ""
        return Sentence("the entries of ", *tensors, f" are independent and identically distributed{kind}")

    def __repr__(self) -> str:
        return f"<law iid {self.name or self._known}>"


def iid(
    name: str | None = None,
    *,
    mean: Any = None,
    variance: Any = None,
    skewness: Any = None,
    kurtosis: Any = None,
    probability: Any = None,
    cumulants: Sequence[Any] | None = None,
) -> Iid:
    r"""Independent entries with one law: by its name, by its first moments, or by its cumulants.

    Names are "normal", "rademacher", "uniform", "laplace" (each with a mean, by default 0, and a variance, by default
    1), "bernoulli" (with its probability, by default 1/2) and "constant" (the entries are not random). Without a name,
    mean (0) and variance (1) are known, and skewness :math:`E[(x - \mu)^3] / \sigma^3` and kurtosis
    :math:`E[(x - \mu)^4] / \sigma^4` only if they are given; ``cumulants`` lists the cumulants from the first on.
    All of them may be symbols. Raises OperandError for moments that no law has: a negative variance, or a kurtosis
    below 1 + skewness^2.

    >>> import symattn as sa
    >>> q, k = sa.tensor("q", "d"), sa.tensor("k", "d")
    >>> sa.variance(q @ k, {q: sa.iid(), k: sa.iid("rademacher")})
    d
    """
    if name is not None and (not isinstance(name, str) or name not in NAMED):
        raise OperandError(
            f"iid knows the laws {', '.join(NAMED)}, not {described(name)}; or give mean=, variance=, ..."
        )
    given = {"mean": mean, "variance": variance, "skewness": skewness, "kurtosis": kurtosis}
    values = {key: _number(value, key) for key, value in given.items() if value is not None}
    if cumulants is not None:
        if name is not None or values or probability is not None:
            raise OperandError("iid takes cumulants= alone: they say all that is known")
        if not isinstance(cumulants, (tuple, list)):
            raise OperandError(f"cumulants= lists the cumulants from the first on, and is not {described(cumulants)}")
        return _checked(Iid(None, {n: _number(c, "a cumulant") for n, c in enumerate(cumulants, 1)}))
    if name == "constant":
        return Iid("constant", _only(values, ("mean",), name))
    if name == "bernoulli":
        _only(values, (), name)
        return _bernoulli_law(_HALF if probability is None else _number(probability, "probability"))
    if probability is not None:
        raise OperandError('probability= belongs to iid("bernoulli")')
    first, second = values.get("mean", sympy.S.Zero), values.get("variance", sympy.S.One)
    if name is not None:
        _only(values, ("mean", "variance"), name)
        return _checked(Iid(name, {1: first, 2: second}))
    known = {1: first, 2: second}
    if "skewness" in values:
        known[3] = values["skewness"] * second ** sympy.Rational(3, 2)
    if "kurtosis" in values:
        known[4] = sympy.expand((values["kurtosis"] - 3) * second**2)
        least = 1 + values.get("skewness", sympy.S.Zero) ** 2
        if (values["kurtosis"] - least).is_negative:  # whatever the variance is
            raise _no_kurtosis(values["kurtosis"], least)
    return _checked(Iid(None, known))


def _no_kurtosis(kurtosis: sympy.Expr, least: sympy.Expr) -> OperandError:
    return OperandError(
        f"no law has the kurtosis {described(kurtosis)}: it is at least 1 + skewness^2 = {described(least)}"
    )


def _only(values: Mapping[str, sympy.Expr], allowed: Sequence[str], name: str) -> dict[int, sympy.Expr]:
    extra = [key for key in values if key not in allowed]
    if extra:
        raise OperandError(f"iid({name!r}) takes {' and '.join(allowed) or 'a probability'}, not {', '.join(extra)}")
    return {1: values["mean"]} if "mean" in values else {}


def _bernoulli_law(p: sympy.Expr) -> Iid:
    if p.is_negative or (1 - p).is_negative:
        raise OperandError(f"a probability is between 0 and 1, not {described(p)}")
    return _Bernoulli("bernoulli", {0: p})


class _Bernoulli(Iid):
    """Entries 0 and 1, the latter with a probability, which is kept as the cumulant of order 0."""

    def known(self, order: int) -> sympy.Expr:
        return _bernoulli(order, self._known[0])


def _checked(law: Iid) -> Iid:
    second, third, fourth = map(law.known, (2, 3, 4))
    if second is not None and second.is_negative:
        raise OperandError(f"no law has the variance {described(second)}: it is not negative")
    if second == 0 and any(c is not None and c.is_nonzero for c in (third, fourth)):
        raise OperandError("no law has the variance 0 and higher cumulants that are not 0")
    if second is not None and second.is_positive and fourth is not None:
        kurtosis, least = 3 + fourth / second**2, 1 + (third or sympy.S.Zero) ** 2 / second**3
        if (kurtosis - least).is_negative:
            raise _no_kurtosis(kurtosis, least)
    return law


# --- pairs, rows, spheres ---


class IidPair(ByCumulants):
    """Two tensors of one shape: the pairs of entries at one index are independent of each other and alike."""

    tensors = 2

    def known(self, first: int, second: int) -> sympy.Expr | None:
        """The joint cumulant of ``first`` times the first and ``second`` times the second entry of a pair."""
        if (first, second) in self._known:
            return self._known[first, second]
        return sympy.S.Zero if self.is_normal else None

    def sentence(self, tensors: Sequence[Tensor]) -> Sentence:
        kind = " and jointly normal" if self.is_normal else ""
        a, b = tensors
        said = f" at one index are independent of other pairs{kind}"
        return Sentence("the pairs of entries of ", a, " and ", b, said)


def iid_pair(
    name: str | None = "normal",
    *,
    correlation: Any,
    mean: tuple[Any, Any] = (0, 0),
    variance: tuple[Any, Any] = (1, 1),
    cumulants: Mapping[tuple[int, int], Any] | None = None,
) -> IidPair:
    """Two tensors whose entries at one index are correlated, and independent at different indices.

    By default a pair is jointly normal, so that no cumulant beyond the covariance is there; with ``name=None``
    higher joint cumulants are unknown unless ``cumulants`` gives them, ``{(2, 2): value}``.
    Raises OperandError for a correlation outside of [-1, 1], and for cumulants of a normal pair.

    >>> import sympy, symattn as sa
    >>> q, k = sa.tensor("q", "d"), sa.tensor("k", "d")
    >>> sa.expectation(q @ k, {(q, k): sa.iid_pair(correlation=sympy.Symbol("rho"))})
    d*rho
    """
    if name is not None and (not isinstance(name, str) or name != "normal"):
        raise OperandError(f'iid_pair is "normal", or None for a law known by its cumulants, not {described(name)}')
    rho = _number(correlation, "correlation")
    if sympy.expand(1 - rho**2).is_negative:
        raise OperandError(f"a correlation is between -1 and 1, not {described(rho)}")
    (m1, m2), (v1, v2) = _two(mean, "means"), _two(variance, "variances")
    if v1.is_negative or v2.is_negative:
        raise OperandError(f"no law has the variances {described(v1)}, {described(v2)}: they are not negative")
    known = {(1, 0): m1, (0, 1): m2, (2, 0): v1, (0, 2): v2, (1, 1): rho * sympy.sqrt(v1 * v2)}
    higher = {} if cumulants is None else cumulants
    if not isinstance(higher, Mapping) or any(not (isinstance(k, tuple) and len(k) == 2 < sum(k)) for k in higher):
        raise OperandError(
            f"cumulants= maps orders, 3 or more together, to values: {{(2, 2): value}}, not {described(higher)}"
        )
    if name == "normal" and higher:
        raise OperandError("a normal pair has no higher cumulants: give name=None with cumulants=")
    known.update({key: _number(value, "a cumulant") for key, value in higher.items()})
    return IidPair(name, known)


def _two(values: Any, what: str) -> list[sympy.Expr]:
    if not (isinstance(values, (tuple, list)) and len(values) == 2):
        raise OperandError(f"iid_pair takes two {what}, one a tensor, not {described(values)}")
    return [_number(value, f"each of the {what}") for value in values]


class NormalRows(Law):
    """Rows that are independent and normal, with one mean vector and one covariance matrix."""

    is_normal = True
    way = "For entries of normal rows, the expectation of a product is made of means and covariances."

    def __init__(self, mean: Tensor | sympy.Expr, covariance: Tensor | sympy.Expr) -> None:
        self.mean, self.covariance = mean, covariance

    def sentence(self, tensors: Sequence[Tensor]) -> Sentence:
        return Sentence("the rows of ", *tensors, " are independent and normal")


def normal(*, mean: Any = 0, covariance: Any = 1) -> NormalRows:
    """Independent normal rows (the last axis): a mean vector and a covariance matrix, tensors or numbers.

    A number as mean is the mean of every entry, a number as covariance a multiple of the identity. Raises
    OperandError for tensors that are no vector and no matrix.

    >>> import symattn as sa
    >>> x, mu, S = sa.tensor("x", "d"), sa.tensor("mu", "d"), sa.tensor("S", "d d", symmetric=True)
    >>> sa.covariance(x[0], x[1], {x: sa.normal(mean=mu, covariance=S)})
    S[0, 1]
    """
    values = []
    for what, value, rank in (("mean", mean, 1), ("covariance", covariance, 2)):
        if isinstance(value, Tensor):
            if value.op is not variable or value.rank != rank:
                raise OperandError(f"normal: {what} is a named tensor of rank {rank}, not {value.brief()}")
            values.append(value)
        else:
            values.append(_number(value, what))
    if not isinstance(values[1], Tensor) and values[1].is_negative:
        raise OperandError(f"no law has the variance {described(values[1])}: it is not negative")
    return NormalRows(*values)


_U_I, _U_J, _D, _I, _J = sympy.symbols("u_i u_j d i j")
_ON_THE_SPHERE = Sentence(
    "On the unit sphere, ",
    Stated("E[u_i u_j]", Mean(_U_I * _U_J)),
    " is ",
    1 / _D,
    " for ",
    Stated("i = j", sympy.Eq(_I, _J)),
    " and else ",
    sympy.S.Zero,
    "; longer products are sums over pairings.",
)


class Sphere(Law):
    """Rows that are independent and uniform on the sphere of radius 1."""

    way = _ON_THE_SPHERE

    def sentence(self, tensors: Sequence[Tensor]) -> Sentence:
        return Sentence("the rows of ", *tensors, " are independent and uniform on the unit sphere")


def sphere() -> Sphere:
    """Independent rows (the last axis), uniform on the sphere of radius 1, as unit-norm queries and keys are.

    >>> import symattn as sa
    >>> q, k = sa.tensor("q", "d"), sa.tensor("k", "d")
    >>> sa.variance(q @ k, {q: sa.sphere(), k: sa.sphere()})
    1/d
    """
    return Sphere()


def needed(what: str, name: str) -> NoRuleError:
    """The error for a moment that is used and not known."""
    return NoRuleError(f"the {what} of {name} is needed, and its law does not tell it: {_way_out(what)}")


def _way_out(what: str) -> str:
    words = {"third cumulant": "skewness=", "fourth cumulant": "kurtosis="}
    return f'give {words.get(what, "cumulants=")}, or a named law such as sa.iid("normal")'
