"""What answers rest on: the assumptions that were used, and no others; and laws and questions that are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
import sympy

import symattn as sa

from ..enumeration import settled

d, T, S = sa.sizes("d T S")
mq, rho = sympy.symbols("m_q rho", real=True)
kappa = sympy.Symbol("kappa", positive=True)
q, k, x = (sa.tensor(name, d) for name in "qkx")
Q, K = sa.tensor("Q", T, d), sa.tensor("K", S, d)
iid = sa.iid


# --- what was used ---


def letters(name: str, orders: int) -> list[sympy.Symbol]:
    return [sympy.Symbol(f"{name}_{order}", real=True) for order in range(1, orders + 1)]


QUANTITIES: dict[str, Callable[..., Any]] = {
    "dot": lambda a, b: a @ b,
    "sum": lambda a, b: sa.sum(a) + b[0],
    "square": lambda a, b: a @ a + sa.sum(b),
    "mixed": lambda a, b: sa.sum(a * a * b),
    "apart": lambda a, b: a[0] * a[1] * b[2],
    "difference": lambda a, b: (a[0] - a[1]) * b[0],
}


@pytest.mark.parametrize("name", QUANTITIES)
def test_the_assumptions_are_those_that_an_answer_holds(name):
    """A cumulant is listed exactly if mean or variance depends on it."""
    known = {q: letters("a", 6), k: letters("b", 6)}
    found = sa.moments(QUANTITIES[name](q, k), {t: iid(cumulants=known[t]) for t in (q, k)})
    held = (found.mean.free_symbols | found.variance.free_symbols) - {d}
    listed = {s for line in found.assumptions for s in (*known[q], *known[k]) if line.endswith(f": {s}")}
    assert listed == held


def without(answer: Callable[..., sa.Tensor], known: Mapping[Any, list[Any]], told: Iterable[str]) -> Any:
    """Mean and variance with new letters for all cumulants that are not listed."""
    words = ("mean", "variance", "third cumulant", "fourth cumulant")

    def kept(t: Any, word: str, value: Any) -> Any:
        listed = any(line.startswith(f"{word} of {t.name}:") for line in told)
        return value if listed else sympy.Symbol(f"free_{t.name}_{word[:3]}")

    laws = {
        t: iid(cumulants=[
            kept(t, word, value) for word, value in zip(words, values, strict=True)
        ])
        for t, values in known.items()
    }  # fmt: skip
    found = sa.moments(answer(q, k), laws)
    return found.mean, found.variance


@pytest.mark.parametrize("name", QUANTITIES)
@pytest.mark.parametrize("means", [(0, 0), (2, 0), (1, 3)])
def test_what_is_not_listed_does_not_matter(name, means):
    """Zeros that are left out of the calculation are listed too, as far as the answer rests on them."""
    known: dict[Any, list[Any]] = {q: [means[0], 1, 0, 5], k: [means[1], 2, 0, 7]}
    found = sa.moments(QUANTITIES[name](q, k), {t: iid(cumulants=values) for t, values in known.items()})
    assert without(QUANTITIES[name], known, found.assumptions) == (found.mean, found.variance)
    numbers = [line for line in found.assumptions if ": " in line]
    assert len(numbers) == len(set(numbers))


def test_assumptions_of_each_kind_of_law():
    def used(quantity: Any, law: Any) -> list[str]:
        return [line for line in sa.moments(quantity, law).assumptions if ": " in line]

    zero = ["mean of q: 0", "variance of q: 1"]
    assert used(q @ q, {q: iid("laplace")}) == [*zero, "fourth cumulant of q: 3"]
    assert used(q @ q, {q: iid("normal")}) == zero
    assert used(q @ q, {q: iid(skewness=0, kurtosis=kappa)}) == [*zero, "fourth cumulant of q: kappa - 3"]
    shifted = used(q @ q, {q: iid(mean=mq, skewness=0, kurtosis=kappa)})
    assert "third cumulant of q: 0" in shifted
    assert sa.moments(q @ k, {q: sa.sphere(), k: sa.sphere()}).assumptions == (
        "the rows of q are independent and uniform on the unit sphere",
        "the rows of k are independent and uniform on the unit sphere",
        "q and k are independent",
    )
    mu = sa.tensor("mu", d)
    rows = used(q @ x, {q: sa.normal(mean=mu, covariance=2), x: "constant"})
    assert rows == ["mean of q: mu", "covariance of q: 2 times the identity"]
    pair = used(q @ k, {(q, k): sa.iid_pair(correlation=rho)})
    assert set(pair) == {*zero, "mean of k: 0", "variance of k: 1", "covariance of q and k: rho"}


# --- what cannot be ---


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "missing law": (lambda: sa.variance(q @ k, {q: iid()}), sa.OperandError, "k.d. has no law, and nothing is assumed"),
    "unknown tensor": (lambda: sa.variance(q @ q, {q: iid("normal"), k: iid()}), sa.OperandError, "does not occur in"),
    "two laws": (
        lambda: sa.expectation(q @ k, {q: iid(), (q, k): sa.iid_pair(correlation=0)}), sa.OperandError, "has two laws",
    ),
    "rank": (lambda: sa.variance(Q @ K.T, {Q: iid(), K: iid()}), sa.ShapeError, "has 2 axes"),
    "kurtosis": (lambda: iid(skewness=1, kurtosis=1), sa.OperandError, "no law has the kurtosis 1: it is at least"),
    "fourth cumulant": (lambda: iid(cumulants=[0, 1, 0, -3]), sa.OperandError, "no law has the kurtosis 0"),
    "variance": (lambda: iid(variance=-1), sa.OperandError, "no law has the variance -1"),
    "no variance": (lambda: iid(cumulants=[0, 0, 1]), sa.OperandError, "no law has the variance 0"),
    "correlation": (lambda: sa.iid_pair(correlation=2), sa.OperandError, "between -1 and 1"),
    "normal pair": (lambda: sa.iid_pair(correlation=0, cumulants={(2, 2): 1}), sa.OperandError, "name=None"),
    "probability": (lambda: iid("bernoulli", probability=2), sa.OperandError, "between 0 and 1"),
    "scalar rows": (lambda: sa.variance(sa.tensor("a"), {sa.tensor("a"): sa.sphere()}), sa.ShapeError, "has no rows"),
    "random parameter": (
        lambda: sa.expectation(q @ k, {q: sa.normal(mean=k), k: iid()}), sa.OperandError, "is a parameter of a law",
    ),
    "function": (lambda: sa.expectation(sa.softmax(q) @ q, {q: iid()}), sa.NoRuleError, "method="),
    "not normal": (lambda: sa.expectation(sa.exp(q @ x), {q: iid(), x: "constant"}), sa.NoRuleError, "normal"),
    "quadratic": (lambda: sa.expectation(sa.exp(q @ q), {q: iid("normal")}), sa.NoRuleError, "infinite"),
    "quotient": (lambda: sa.expectation(1 / (q @ q), {q: iid()}), sa.NoRuleError, "polynomials"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_a_reason(name):
    ask, error, message = BAD[name]
    with pytest.raises(error, match=message):
        ask()


def test_names_of_bound_letters_are_not_those_of_sizes_tensors_or_scalars():
    width, scale = sa.sizes("k"), sympy.Symbol("l", integer=True, nonnegative=True)
    a, b = sa.tensor("q", width), sa.tensor("m", width)
    found = sa.variance(scale * a @ b, {a: iid(variance=scale), b: "constant"})
    (total,) = found.atoms(sympy.Sum)
    assert str(total.limits[0][0]) not in {"k", "l", "m", "q"}
    settled(found, 27 * 5, {width: 2, scale: 3}, m=[1, 2])


def test_moments_of_sines_and_cosines_are_written_without_imaginary_numbers():
    x, n, mu = sa.tensor("x", "n"), sa.sizes("n"), sympy.Symbol("mu", real=True)
    law, half = {x: sa.iid("normal", mean=mu)}, sympy.exp(sympy.Rational(-1, 2))
    assert sa.expectation(sa.sum(sa.sin(x)), law) == n * half * sympy.sin(mu)
    assert sa.expectation(sa.sum(sa.cos(x) * sa.exp(x)), law) == n * sympy.exp(mu) * sympy.cos(mu + 1)
    found = sa.moments(sa.mean(sa.sin(2 * x) * x), law)
    assert found.mean == sympy.expand(sympy.exp(-2) * (2 * sympy.cos(2 * mu) + mu * sympy.sin(2 * mu)))
    assert not found.variance.has(sympy.I)
    assert found.check()
