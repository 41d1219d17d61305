"""Bad input to moments: laws that cannot be, tensors and laws that do not fit, names that clash, and what is too large.

Every case is an error of symattn with a reason in it, within seconds, and never a wrong answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import sympy

import symattn as sa
from symattn.errors import NamingError, NoRuleError, OperandError, ShapeError

d, n, T, S = sa.sizes("d n T S")
i, j = sympy.symbols("i j", integer=True, nonnegative=True)
p = sympy.Symbol("p", positive=True)
rho = sympy.Symbol("rho", real=True)
q, k, mu = (sa.tensor(name, d) for name in ("q", "k", "mu"))
Q, K, M = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("M", d, d)
a, s = sa.tensor("a", 2), sa.tensor("s")
iid, normal, pair = sa.iid, sa.normal, sa.iid_pair


def indexed(name: str, *index: Any) -> sympy.Expr:
    return sympy.IndexedBase(name)[index]


Case = tuple[Callable[[], Any], type[Exception], str]


def refused(case: Case) -> None:
    ask, error, message = case
    with pytest.raises(error, match=message):
        ask()


# --- laws that cannot be ---


LAWS: dict[str, Case] = {
    "unknown name": (lambda: iid("gauss"), OperandError, "iid knows the laws normal, .*, not 'gauss'"),
    "a number as name": (lambda: iid(3), OperandError, "iid knows the laws"),
    "negative variance": (lambda: iid(variance=-1), OperandError, "no law has the variance -1: it is not negative"),
    "negative variance by name": (lambda: iid("normal", variance=-p), OperandError, "no law has the variance -p"),
    "negative second cumulant": (lambda: iid(cumulants=[0, -2]), OperandError, "no law has the variance -2"),
    "kurtosis": (lambda: iid(kurtosis=0.5), OperandError, "no law has the kurtosis 1/2: it is at least 1"),
    "kurtosis and skewness": (
        lambda: iid(skewness=2, kurtosis=4.9), OperandError, r"kurtosis 49/10: it is at least 1 \+ skewness\^2 = 5",
    ),
    "symbolic kurtosis": (lambda: iid(kurtosis=-p), OperandError, "no law has the kurtosis -p"),
    "symbolic skewness": (lambda: iid(skewness=rho, kurtosis=rho**2), OperandError, "it is at least"),
    "fourth cumulant": (lambda: iid(cumulants=[0, 2, 0, -9]), OperandError, "no law has the kurtosis"),
    "probability": (lambda: iid("bernoulli", probability=1.5), OperandError, "between 0 and 1, not 3/2"),
    "negative probability": (lambda: iid("bernoulli", probability=-p), OperandError, "between 0 and 1, not -p"),
    "probability of another law": (lambda: iid("normal", probability=0.5), OperandError, "belongs to iid..bernoulli"),
    "mean of a coin": (lambda: iid("bernoulli", mean=0.5), OperandError, "takes a probability, not mean"),
    "kurtosis of a named law": (lambda: iid("normal", kurtosis=3), OperandError, "takes mean and variance, not kurt"),
    "variance of a constant": (lambda: iid("constant", variance=1), OperandError, "takes mean, not variance"),
    "cumulants and a mean": (lambda: iid(mean=1, cumulants=[1, 1]), OperandError, "takes cumulants= alone"),
    "cumulants and a name": (lambda: iid("normal", cumulants=[1, 1]), OperandError, "takes cumulants= alone"),
    "a number as cumulants": (lambda: iid(cumulants=3), OperandError, "cumulants= lists the cumulants"),
    "infinite mean": (lambda: iid(mean=sympy.oo), OperandError, "mean is a finite number or a scalar symbol, not oo"),
    "complex variance": (lambda: iid(variance=sympy.I), OperandError, "variance is a finite number or a scalar symbol"),
    "text": (lambda: iid(variance="x"), OperandError, "variance is a finite number or a scalar symbol, not 'x'"),
    "truth": (lambda: iid(variance=True), OperandError, "variance is a finite number or a scalar symbol, not True"),
    "tensor": (lambda: iid(mean=mu), OperandError, "mean is a finite number or a scalar symbol, not mu"),
    "correlation": (lambda: pair(correlation=-1.5), OperandError, "between -1 and 1, not -3/2"),
    "symbolic correlation": (lambda: pair(correlation=1 + p), OperandError, r"between -1 and 1, not p \+ 1"),
    "one mean of a pair": (lambda: pair(correlation=0, mean=1), OperandError, "takes two means, one a tensor, not 1"),
    "variances of a pair": (lambda: pair(correlation=0, variance=(1, -1)), OperandError, "no law has the variances"),
    "name of a pair": (lambda: pair("laplace", correlation=0), OperandError, 'iid_pair is "normal", or None'),
    "cumulants of a normal pair": (lambda: pair(correlation=0, cumulants={(2, 2): 1}), OperandError, "name=None"),
    "covariance as a cumulant": (
        lambda: pair(None, correlation=0, cumulants={(1, 1): 1}), OperandError, "maps orders, 3 or more together",
    ),
    "list of joint cumulants": (lambda: pair(None, correlation=0, cumulants=[1]), OperandError, "maps orders"),
    "mean of rows": (lambda: normal(mean=M), OperandError, "mean is a named tensor of rank 1, not M.d, d."),
    "covariance of rows": (lambda: normal(covariance=mu), OperandError, "covariance is a named tensor of rank 2"),
    "expression as a parameter": (lambda: normal(mean=2 * mu), OperandError, "named tensor of rank 1, not .2 . mu"),
    "negative covariance": (lambda: normal(covariance=-1), OperandError, "no law has the variance -1"),
}  # fmt: skip


@pytest.mark.parametrize("name", LAWS)
def test_laws_that_cannot_be(name):
    refused(LAWS[name])


def test_moments_may_be_symbols_and_floats_are_exact():
    law = {q: iid(mean=0.1, variance=p, skewness=rho, kurtosis=rho**2 + p + 2)}
    assert sa.expectation(sa.sum(q), law) == d / 10
    assert sa.variance(sa.sum(q), law) == d * p
    assert sa.variance(q @ q, {q: iid(variance=0.1, kurtosis=2)}) == d / 100
    assert sa.expectation(0.5 * indexed("q", i), law) == sympy.Rational(1, 20)
    assert sa.expectation(q @ k, {(q, k): pair(correlation=0.3)}) == 3 * d / 10
    assert sa.expectation(sa.sum(q), {q: iid("bernoulli", probability=0.25)}) == d / 4


def test_what_is_only_just_possible():
    assert sa.variance(q @ q, {q: iid(kurtosis=1)}) == 0
    assert sa.variance(sa.sum(q), {q: iid(variance=0)}) == 0
    assert sa.variance(sa.sum(q), {q: iid("bernoulli", probability=1)}) == 0
    assert sa.expectation((q @ k) ** 2, {(q, k): pair(correlation=-1)}) == d * (d + 2)


# --- laws and tensors that do not fit ---


u = sa.tensor("u", n)
FITS: dict[str, Case] = {
    "no law": (lambda: sa.variance(q @ k, {q: iid()}), OperandError, "k.d. has no law, and nothing is assumed of it"),
    "no law of an entry": (lambda: sa.variance(q[i] * k[j], {q: iid()}), OperandError, "k has no law"),
    "empty": (lambda: sa.variance(q @ k, {}), OperandError, "q.d. has no law"),
    "empty for an entry": (lambda: sa.expectation(q[i], {}), OperandError, "q has no law"),
    "empty for a number": (lambda: sa.expectation(sympy.Integer(3), {}), OperandError, "the law is empty"),
    "no such tensor": (
        lambda: sa.variance(q @ q, {q: iid("normal"), k: iid()}), OperandError, "k.d., which does not occur in q @ q",
    ),
    "no such tensor in an entry": (lambda: sa.expectation(q[i], {q: iid(), k: iid()}), OperandError, "not occur in q"),
    "number": (lambda: sa.expectation(sympy.Integer(3), {q: iid()}), OperandError, "does not occur in 3"),
    "twice": (lambda: sa.variance(q @ k, {q: iid(), (q, k): pair(correlation=0)}), OperandError, "has two laws"),
    "pair with itself": (lambda: sa.variance(q @ q, {(q, q): pair(correlation=0)}), OperandError, "has two laws"),
    "pair of shapes": (
        lambda: sa.variance(sa.sum(q) + sa.sum(u), {(q, u): pair(correlation=0)}), ShapeError, "come in pairs",
    ),
    "pair of one": (lambda: sa.variance(q @ q, {q: pair(correlation=0)}), OperandError, "is a law of a pair"),
    "one for two": (lambda: sa.variance(q @ k, {(q, k): iid()}), OperandError, "is a law of one tensor"),
    "let": (lambda: sa.variance(q @ k, {sa.let("z", q): iid(), k: iid()}), OperandError, "named tensor, not to z"),
    "expression": (lambda: sa.variance(q @ k, {2 * q: iid()}), OperandError, "belongs to a named tensor, not to .2"),
    "entry": (lambda: sa.variance(q @ k, {q[i]: iid()}), OperandError, r"a tensor, not the entry q\[i\]"),
    "text": (lambda: sa.variance(q @ k, {"q": iid()}), OperandError, "is a tensor, not the text 'q'"),
    "number as key": (lambda: sa.variance(q @ k, {3: iid()}), OperandError, "belongs to a named tensor"),
    "no mapping": (lambda: sa.variance(q @ k, [q, k]), OperandError, "a law is a mapping such as"),
    "nothing": (lambda: sa.variance(q @ k, None), OperandError, "a law is a mapping such as"),
    "number as law": (lambda: sa.variance(q @ k, {q: 1, k: iid()}), OperandError, "the law of q.d. is made by sa.iid"),
    "function as law": (lambda: sa.variance(q @ k, {q: sa.iid, k: iid()}), OperandError, "is made by sa.iid"),
    "text as law": (lambda: sa.variance(q @ k, {q: "fixed", k: iid()}), OperandError, "iid knows the laws"),
    "mean of other rows": (
        lambda: sa.variance(q @ q, {q: normal(mean=sa.tensor("m", n))}), ShapeError, "rows of q.d. do not fit .* m.n.",
    ),
    "covariance of other rows": (
        lambda: sa.variance(q @ q, {q: normal(covariance=sa.tensor("C", n, n))}), ShapeError, "do not fit",
    ),
    "rows of a scalar": (lambda: sa.variance(s, {s: normal()}), ShapeError, "has no rows"),
    "sphere of a scalar": (lambda: sa.variance(s, {s: sa.sphere()}), ShapeError, "has no rows"),
    "random parameter": (
        lambda: sa.expectation(q[0] ** 2, {mu: iid(), q: normal(mean=mu)}), OperandError, "mu.d. is a parameter of a",
    ),
    "declared": (
        lambda: sa.variance(sa.sum(sa.tensor("x", d, positive=True)), {sa.tensor("x", d, positive=True): iid()}),
        OperandError, "x.d. is declared positive, which a random tensor with this law is not",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FITS)
def test_laws_and_tensors_that_do_not_fit(name):
    refused(FITS[name])


def test_parameters_of_rows_that_are_known():
    law = {q: normal(mean=mu), mu: iid("constant", mean=3)}
    assert sa.expectation(q[0] ** 2, law) == 10
    assert sa.expectation(q[i], {q: normal(mean=mu), mu: "constant"}) == mu[i]


# --- what is asked for ---


ASKED: dict[str, Case] = {
    "rank": (lambda: sa.variance(Q @ K.T, {Q: iid(), K: iid()}), ShapeError, "has 2 axes: moments are of a tensor wit"),
    "vector": (lambda: sa.moments(q, {q: iid()}), ShapeError, "q.d. has 1 axes"),
    "number": (lambda: sa.expectation(3, {q: iid()}), OperandError, "of a tensor without axes or of an entry"),
    "text": (lambda: sa.expectation("q", {q: iid()}), OperandError, "of a tensor without axes or of an entry"),
    "nothing": (lambda: sa.covariance(q[0], None, {q: iid()}), OperandError, "not None"),
    "truth": (lambda: sa.expectation(sympy.true, {q: iid()}), OperandError, "not True"),
    "matrix": (lambda: sa.expectation(sympy.Matrix([q[i]]), {q: iid()}), OperandError, "or of an entry"),
    "softmax": (lambda: sa.expectation(sa.softmax(q) @ k, {q: iid(), k: iid()}), NoRuleError, "exp.q.l.* is neither"),
    "quotient": (lambda: sa.expectation(1 / (q @ q), {q: iid()}), NoRuleError, 'method="delta" or method="quadrat'),
    "root": (lambda: sa.variance(sa.sqrt(q @ q), {q: iid()}), NoRuleError, "is neither: ask for an approximation"),
    "relu": (lambda: sa.expectation(sa.sum(sa.relu(q)), {q: iid()}), NoRuleError, "is neither: ask for an approx"),
    "unknown": (lambda: sa.moments(sa.sum(sa.unknown("f", q)), {q: iid()}), NoRuleError, "f.q.i.. is neither"),
    "random index": (
        lambda: sa.expectation(
            sa.sum(sa.take(k, sa.tensor("b", n, integer=True), axis=0)),
            {k: "constant", sa.tensor("b", n, integer=True): iid("bernoulli")},
        ),
        NoRuleError, r"k\[b\[i\]\] is neither",
    ),
    "two random entries at random indices": (
        lambda: sa.variance(
            sa.sum(sa.take(k, sa.tensor("b", n, integer=True), axis=0)),
            {k: iid(), sa.tensor("b", n, integer=True): iid("bernoulli")},
        ),
        NoRuleError, "is neither",
    ),
    "method": (lambda: sa.variance(s, {s: iid()}, method="taylor"), OperandError, 'the method is "exact", "delta" or'),
    "third moment": (lambda: sa.expectation(q[0] ** 3, {q: iid()}), NoRuleError, "third cumulant .*: give skewness="),
    "fourth moment": (lambda: sa.variance(q @ q, {q: iid()}), NoRuleError, "fourth cumulant .*: give kurtosis="),
    "fifth moment": (lambda: sa.expectation(q[0] ** 5, {q: iid(skewness=0, kurtosis=3)}), NoRuleError, "fifth cumul"),
    "mean": (lambda: sa.expectation(q[i], {q: iid(cumulants=[])}), NoRuleError, "the mean of q is needed"),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_questions_that_have_no_answer(name):
    refused(ASKED[name])


# --- names that clash ---


other = sa.tensor("q", n)
CLASHES: dict[str, Case] = {
    "tensor and size": (
        lambda: sa.expectation(sa.sum(q) * sa.tensor("d"), {q: iid(), sa.tensor("d"): iid()}), NamingError,
        "'d' names both a tensor and a size",
    ),
    "tensor and size in an entry": (
        lambda: sa.expectation(q[i] * d, {q: iid(mean=1), sa.tensor("d"): iid()}), NamingError, "'d' names both",
    ),
    "tensor and scalar in an entry": (
        lambda: sa.expectation(q[i] * sympy.Symbol("s"), {q: iid(mean=1), s: iid()}), NamingError, "'s' names both",
    ),
    "tensor and index": (
        lambda: sa.variance(indexed("q", sympy.Symbol("k", integer=True)) * indexed("k", 0), {q: iid(), k: iid()}),
        NamingError, "'k' names both a tensor and an index",
    ),
    "tensor with axes and scalar": (
        lambda: sa.variance(q[i] * sympy.Symbol("q", real=True), {q: iid()}), NamingError, "'q' names both",
    ),
    "two tensors": (
        lambda: sa.expectation(sa.sum(q) * sa.sum(other), {q: iid(), other: iid()}), NamingError,
        "'q' stands for two tensors",
    ),
    "two tensors in entries": (
        lambda: sa.expectation(q[i] * other[j], {q: iid(), other: iid(mean=1)}), NamingError, "for two tensors",
    ),
    "two tensors that differ in what is declared": (
        lambda: sa.expectation(q[i], {q: iid(), sa.tensor("q", d, positive=True): "constant"}), NamingError,
        "no hypotheses and positive",
    ),
    "one of them without a law": (lambda: sa.expectation(sa.sum(other), {q: iid()}), NamingError, "two tensors"),
    "parameter": (
        lambda: sa.expectation(q[i] * k[i], {q: normal(mean=sa.tensor("k", d, positive=True)), k: iid()}),
        NamingError, "'k' stands for two tensors",
    ),
    "second expression": (lambda: sa.covariance(sa.sum(q), sa.sum(other), {q: iid()}), NamingError, "two tensors"),
}  # fmt: skip


@pytest.mark.parametrize("name", CLASHES)
def test_names_that_clash(name):
    refused(CLASHES[name])


def test_a_tensor_without_axes_is_read_in_entries_by_its_name():
    law = {q: iid(mean=2), s: iid(mean=3)}
    assert sa.expectation(q[i] * sympy.Symbol("s", real=True), law) == 6


# --- entries ---


ENTRIES: dict[str, Case] = {
    "out of range": (lambda: sa.variance(a[2], {a: iid()}), ShapeError, "index 2 is out of range for the size 2"),
    "out of range by hand": (lambda: sa.variance(indexed("a", 2), {a: iid()}), ShapeError, "out of range"),
    "far below": (lambda: sa.variance(indexed("a", -3), {a: iid()}), ShapeError, "out of range"),
    "at the size": (lambda: sa.variance(indexed("q", d), {q: iid()}), ShapeError, "index d is out of range"),
    "inside a sum": (
        lambda: sa.variance(sympy.Sum(indexed("a", 5) * indexed("a", i), (i, 0, 1)), {a: iid("normal")}),
        ShapeError, "index 5 is out of range",
    ),
    "too many indices": (lambda: sa.variance(indexed("q", i, j), {q: iid()}), ShapeError, "has 1 indices, not 2"),
    "too few indices": (lambda: sa.variance(indexed("Q", i), {Q: iid()}), ShapeError, "has 2 indices, not 1"),
    "index of a scalar": (lambda: sa.variance(indexed("s", i), {s: iid()}), ShapeError, "has 0 indices, not 1"),
    "real index": (
        lambda: sa.variance(indexed("q", sympy.Symbol("x")), {q: iid()}), OperandError, "x is not an integer",
    ),
    "half an index": (lambda: sa.variance(indexed("q", sympy.Rational(1, 2)), {q: iid()}), OperandError, "indexed by"),
    "bare array": (lambda: sa.variance(sympy.IndexedBase("q"), {q: iid()}), NoRuleError, "IndexedBase"),
    "unknown function": (
        lambda: sa.expectation(sympy.Function("f")(q[i]), {q: iid()}), NoRuleError, "f.q.i.. is neither",
    ),
    "piecewise without a last case": (
        lambda: sa.expectation(sympy.Piecewise((q[i], i > 0)), {q: iid()}), OperandError, "end it by .value, True.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_that_cannot_be_read(name):
    refused(ENTRIES[name])


def test_coincidences_of_indices_and_axes_of_size_one():
    law = {Q: iid(mean=1, variance=p)}
    same = [sa.covariance(Q[i, j], Q[i, j], law), sa.variance(Q[i, j], law), sa.covariance(Q[0, 0], Q[0, 0], law)]
    assert same == [p, p, p]
    assert sa.covariance(Q[i, i], Q[i, j], law) == p * sympy.KroneckerDelta(i, j)
    assert sa.covariance(q[i], q[i + 1], {q: iid()}) == 0
    assert sa.covariance(q[0], q[1], {q: iid()}) == 0
    assert sa.covariance(q[-1], q[d - 1], {q: iid()}) == 1
    assert sa.variance(indexed("a", -1) - indexed("a", 1), {a: iid()}) == 0
    row = sa.tensor("r", 1, d)
    assert sa.variance(sa.sum(row @ q), {row: iid(), q: iid()}) == d
    assert sa.variance(row[0, i], {row: iid()}) == 1
    one = sa.tensor("o", 1)
    assert sa.variance(one @ one, {one: iid("normal")}) == 2
    assert sa.variance(sa.sum(one * q), {one: iid(), q: iid()}) == d
    assert sa.variance(sympy.Piecewise((q[i], i > 0), (0, True)), {q: iid()}) == 1 - sympy.KroneckerDelta(0, i)


# --- what is too large ---


def squared(times: int) -> sa.Tensor:
    x = sa.sum(q)
    for _ in range(times):
        x = x * x
    return x


LARGE: dict[str, Case] = {
    "power of a sum": (lambda: sa.expectation((q @ k) ** 40, {q: "normal", k: "normal"}), NoRuleError, "power of 40"),
    "power of an entry": (lambda: sa.expectation(q[0] ** 1000, {q: iid("laplace")}), NoRuleError, "1000 entries of q"),
    "partitions": (lambda: sa.expectation(q[0] ** 20, {q: "normal"}), NoRuleError, "20 entries of q has too many"),
    "skewed partitions": (
        lambda: sa.expectation(q[0] ** 12, {q: iid("bernoulli")}), NoRuleError, "12 entries of q has too many",
    ),
    "power of a pair": (
        lambda: sa.expectation(sa.sum(q**9 * k**9), {(q, k): pair(correlation=rho)}), NoRuleError, "entries of q and k",
    ),
    "power on the sphere": (lambda: sa.expectation((q @ k) ** 16, {q: sa.sphere(), k: iid()}), NoRuleError, "of 16"),
    "squared often": (lambda: sa.expectation(squared(40), {q: "normal"}), NoRuleError, "a sum to the power of"),
    "variance of a high power": (lambda: sa.variance((q @ k) ** 8, {q: "normal", k: "normal"}), NoRuleError, "out of"),
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_what_is_too_large_is_refused_within_seconds(name):
    start = time.process_time()
    refused(LARGE[name])
    assert time.process_time() - start < 20


def test_deep_and_shared_graphs():
    deep, doubled, nested = sa.sum(q), sa.sum(q), sa.sum(q)
    for step in range(3000):
        deep = deep + step
    for _ in range(300):
        doubled = doubled + doubled
        nested = sa.let("y", nested + k[0])
    assert sa.variance(deep, {q: iid(variance=p)}) == d * p
    assert sa.variance(doubled, {q: iid()}) == 2**600 * d
    assert sa.variance(nested, {q: iid(), k: iid()}) == d + 90000
    assert sa.expectation(sa.exp(deep - deep), {q: iid(mean=1)}) == 1
    assert sa.moments(doubled, {q: iid()}).check()
    small = sa.variance(sa.exp(doubled / 2**300), {q: iid(mean=1, variance=1 / d**2)}, method="delta")
    assert small.value == sympy.exp(2 * d) / d


def test_an_entry_nested_too_deeply_is_refused():
    x = q[i]
    for _ in range(2000):
        x = sympy.Mul(sympy.Add(x, 1, evaluate=False), 2, evaluate=False)
    with pytest.raises(NoRuleError, match="nested too deeply"):
        sa.expectation(x, {q: iid()})
