"""Approximate moments: the delta method and quadrature against exact moments, and that they say what they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.errors import EvaluationError, NoRuleError, OperandError
from symattn.printing.media.unicode import unicode_text
from symattn.probability.approximations import Approximation

from ..shares import one_in

d, n, S, T = sa.sizes("d n S T")
i, j = sympy.symbols("i j", integer=True, nonnegative=True)
m, rho = sympy.symbols("m rho", real=True)
v = sympy.Symbol("v", positive=True)
q, k, x = (sa.tensor(name, d) for name in "qkx")
z, s = sa.tensor("z", S), sa.tensor("s")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, n)
mu, Sigma = sa.tensor("mu", d), sa.tensor("Sigma", d, d, symmetric=True)
P = sa.softmax(Q @ K.T / sympy.sqrt(d))
iid = sa.iid


def same(a: Any, b: Any) -> bool:
    """Whether two answers are equal; their sums may have other letters, so these are written out."""
    gap = a - b
    return bool(sympy.expand(gap.subs(d, 3).doit() if gap.has(sympy.Sum) else gap) == 0)


# --- the delta method, exact where it must be ---


QUADRATIC: dict[str, tuple[Any, Any]] = {
    "square": (q @ q, {q: iid(mean=m, variance=v)}),
    "product": (q @ k, {q: iid(mean=2), k: iid(mean=m)}),
    "pair": (q @ k, {(q, k): sa.iid_pair(correlation=rho, mean=(m, 1))}),
    "halves": (sa.sum(sa.concat([q, k], axis=0) ** 2), {q: iid(mean=m), k: iid(variance=v)}),
    "rows": (q @ sa.tensor("A", d, d) @ q, {q: sa.normal(mean=mu, covariance=Sigma), sa.tensor("A", d, d): "constant"}),
    "sphere": ((q @ x) ** 2, {q: sa.sphere(), x: "constant"}),
    "squared norm of scores": (sa.sum(Q), {Q: iid(mean=m)}),
    "entry": (Q[i, j] * Q[0, j], {Q: iid(mean=m, variance=v)}),
    "scalar": (s**2 + 3 * s, {s: iid(mean=m, variance=v)}),
    "coin": (s**2, {s: iid("bernoulli", probability=v)}),
}


@pytest.mark.parametrize("name", QUADRATIC)
def test_delta_is_exact_for_expectations_of_quadratic_polynomials(name):
    quantity, law = QUADRATIC[name]
    assert same(sa.expectation(quantity, law, method="delta").value, sa.expectation(quantity, law))


LINEAR: dict[str, tuple[Any, Any]] = {
    "sum": (sa.sum(q) + 3, {q: iid(mean=m, variance=v)}),
    "projection": (q @ x, {q: iid(variance=v), x: "constant"}),
    "pair": (sa.sum(q - k), {(q, k): sa.iid_pair(correlation=rho, variance=(v, 4))}),
    "rows": (q @ x, {q: sa.normal(mean=mu, covariance=Sigma), x: "constant"}),
    "sphere": (q @ x, {q: sa.sphere(), x: "constant"}),
    "halves": (sa.sum(sa.concat([q, 2 * k], axis=0)), {q: iid(variance=v), k: iid(mean=m)}),
}


@pytest.mark.parametrize("name", LINEAR)
def test_delta_is_exact_for_variances_of_linear_forms(name):
    quantity, law = LINEAR[name]
    assert same(sa.variance(quantity, law, method="delta").value, sa.variance(quantity, law))


# --- the delta method against the formula by hand, with symbolic sizes ---


BY_HAND: dict[str, tuple[Callable[[], Approximation], Any]] = {
    "softmax": (lambda: sa.variance(sa.softmax(z)[i], {z: iid(variance=v)}, method="delta"), v * (S - 1) / S**3),
    "softmax mean": (lambda: sa.expectation(sa.softmax(z)[i], {z: iid(variance=v)}, method="delta"), 1 / S),
    "softmax covariance": (
        lambda: sa.covariance(sa.softmax(z)[i], sa.softmax(z)[j], {z: iid(variance=v)}, method="delta"),
        v * (S * sympy.KroneckerDelta(i, j) - 1) / S**3,
    ),
    "logsumexp": (
        lambda: sa.expectation(sa.logsumexp(z), {z: iid(mean=m, variance=v)}, method="delta"),
        m + sympy.log(S) + v * (1 - 1 / S) / 2,
    ),
    "logsumexp variance": (lambda: sa.variance(sa.logsumexp(z), {z: iid(variance=v)}, method="delta"), v / S),
    "attention weights": (
        lambda: sa.variance(P[i, j], {Q: iid(mean=m), K: iid(variance=v)}, method="delta"), m**2 * v * (S - 1) / S**3,
    ),
    "attention output": (
        lambda: sa.variance((P @ V)[i, j], {Q: "constant", K: iid(), V: iid(variance=v)}, method="delta"), v / S,
    ),
    "norm": (lambda: sa.expectation(sa.sqrt(q @ q), {q: iid(mean=v)}, method="delta"),
             sympy.sqrt(d) * v + (d - 1) / (2 * sympy.sqrt(d) * v)),
    "norm variance": (lambda: sa.variance(sa.sqrt(q @ q), {q: iid(mean=v, variance=3)}, method="delta"), 3),
    "normed entry": (
        lambda: sa.variance((q / sa.sqrt(q @ q / d))[i], {q: iid(mean=m, variance=v)}, method="delta"),
        v * (d - 1) / (d * m**2),
    ),
    "tanh": (
        lambda: sa.variance(sa.tanh(q[0]), {q: iid(mean=m, variance=v)}, method="delta"), v / sympy.cosh(m) ** 4,
    ),
    "gelu": (
        lambda: sa.expectation(sa.gelu(q[0]), {q: iid(variance=v)}, method="delta"), v / sympy.sqrt(2 * sympy.pi),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.slow
def test_delta_of_functions_with_symbolic_sizes(name):
    ask, expected = BY_HAND[name]
    found = ask()
    assert isinstance(found, Approximation)
    point = {m: sympy.Rational(7, 10), v: sympy.Rational(3, 10), S: 5, d: 3, i: 1, j: 2}
    assert abs(sympy.N((found.value - expected).subs(point))) < 1e-12
    assert abs(sympy.N((found.value - expected).subs({**point, j: 1}))) < 1e-12


@pytest.mark.parametrize("variance", [sympy.Rational(1, 100), sympy.Rational(1, 400)])
@pytest.mark.slow
def test_delta_comes_close_to_quadrature_as_the_variance_goes_to_zero(variance):
    """What the expansion leaves out is of the next order in the variance."""
    y = sa.tensor("y", 3)
    for quantity in (sa.softmax(y * sa.from_index((3,), lambda a: a))[1], sa.logsumexp(y), sa.sum(sa.tanh(y + 1))):
        law = {y: iid("normal", mean=sympy.Rational(1, 3), variance=variance)}
        for moment, order in ((sa.expectation, 2), (sa.variance, 2)):
            near, sure = (moment(quantity, law, method=method).value for method in ("delta", "quadrature"))
            assert abs(float(near) - sure) < 3 * float(variance) ** order


def test_delta_lists_what_it_used():
    found = sa.variance(sa.sum(sa.exp(q)) + k[0], {q: iid(mean=m), k: iid(variance=v)}, method="delta")
    assert set(found.assumptions) == {
        "the entries of q are independent and identically distributed",
        "the entries of k are independent and identically distributed",
        "q and k are independent", "mean of q: m", "variance of q: 1", "variance of k: v",
    }  # fmt: skip
    fixed = sa.expectation(sa.exp(q @ x), {q: iid(), x: "constant"}, method="delta")
    assert "x is not random" in fixed.assumptions


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "relu": (sa.sum(sa.relu(q)), {q: iid()}, r"none are known of \[q\[i\] > 0\]"),
    "absolute value": (sa.sum(abs(q)), {q: iid()}, "none are known of"),
    "largest entry": (sa.max(q), {q: iid()}, r"none are known of max_k\(q\[k\]\)"),
    "step": (sa.sum(sa.where(q > k, q, k)), {q: iid(), k: iid()}, "none are known of"),
    "floor": (sa.sum(sa.floor(q)), {q: iid()}, "none are known of floor"),
    "unknown": (sa.sum(sa.unknown("phi", q)), {q: iid()}, "none are known of phi"),
    "inverse": (sa.trace(sa.inv(sa.tensor("A", d, d))), {sa.tensor("A", d, d): iid()}, "derivative of inverse"),
    "function without a rule": (sympy.Function("f")(q[i]), {q: iid()}, "derivative of f"),
    "norm at zero": (sa.sqrt(q @ q), {q: iid()}, "division by zero"),
    "random index": (
        sa.sum(sa.take(x, sa.tensor("b", n, integer=True), axis=0)),
        {x: "constant", sa.tensor("b", n, integer=True): iid("bernoulli")}, "none are known of",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_delta_names_what_has_no_derivative(name):
    quantity, law, message = REFUSED[name]
    with pytest.raises(NoRuleError, match=f"^the delta method .*{message}"):
        sa.expectation(quantity, law, method="delta")


def test_delta_takes_a_kink_of_what_is_not_random():
    found = sa.variance(sa.sum(q * sa.relu(x)), {q: iid(), x: "constant"}, method="delta").value
    assert found.has(sympy.Sum)


def test_a_variance_without_a_slope_is_not_taken_to_be_zero():
    with pytest.raises(NoRuleError, match="slope at the means, which is zero"):
        sa.variance(q @ k, {q: iid(), k: iid()}, method="delta")
    with pytest.raises(NoRuleError, match="slope at the means, which is zero"):
        sa.variance(P[i, j], {Q: iid(), K: iid()}, method="delta")
    assert sa.covariance(sa.sum(q), sa.sum(k), {q: iid(), k: iid()}, method="delta").value == 0
    assert sa.variance(sa.sum(x), {x: "constant"}, method="delta").value == 0


def test_delta_needs_the_moments_that_it_takes():
    with pytest.raises(NoRuleError, match="the variance of q is needed"):
        sa.variance(sa.sum(sa.exp(q)), {q: iid(cumulants=[m])}, method="delta")


# --- quadrature against closed forms ---


def quadrature(quantity: Any, law: Any, moment: Callable[..., Any] = sa.expectation) -> Approximation:
    found = moment(quantity, law, method="quadrature")
    assert isinstance(found, Approximation)
    return found


a, b, c = sa.tensor("a", 2), sa.tensor("b", 2), sa.tensor("c", 3)
NORMAL = iid("normal")
CLOSED: dict[str, tuple[Callable[[], Approximation], float]] = {
    "exp of normal": (lambda: quadrature(sa.exp(s), {s: iid("normal", mean=1, variance=0.5)}), math.exp(1.25)),
    "variance of exp": (lambda: quadrature(sa.exp(s), {s: NORMAL}, sa.variance), math.e * (math.e - 1)),
    "sigmoid": (lambda: quadrature(sa.sigmoid(s), {s: iid("normal", variance=3)}), 0.5),
    "cos of normal": (lambda: quadrature(sa.cos(2 * s), {s: NORMAL}), math.exp(-2)),
    "eighth moment": (lambda: quadrature(s**8, {s: NORMAL}), 105),
    "exp of uniform": (lambda: quadrature(sa.exp(s), {s: iid("uniform", mean=1)}),
                       math.e * math.sinh(3**0.5) / 3**0.5),
    "exp of laplace": (lambda: quadrature(sa.exp(s / 2), {s: iid("laplace", variance=2)}), 4 / 3),
    "absolute value of laplace": (lambda: quadrature(abs(s), {s: iid("laplace", variance=2)}), 1),
    "softmax": (lambda: quadrature(sa.softmax(c)[0], {c: NORMAL}), 1 / 3),
    "gelu": (lambda: quadrature(sa.gelu(s), {s: NORMAL}), 1 / (2 * math.sqrt(math.pi))),
    "exp of a product": (lambda: quadrature(sa.exp(a[0] * a[1] / 2), {a: NORMAL}), (1 - 0.25) ** -0.5),
    "cosh of signs": (lambda: quadrature(sa.exp(a @ b), {a: iid("rademacher"), b: iid("rademacher")}),
                      math.cosh(1) ** 2),
    "coins": (lambda: quadrature(sa.exp(sa.sum(a)), {a: iid("bernoulli", probability=0.25)}),
              (0.75 + 0.25 * math.e) ** 2),
    "mixed": (lambda: quadrature(sa.exp(s * a[0]), {s: iid("rademacher"), a: NORMAL}), math.exp(0.5)),
    "fixed": (lambda: quadrature(sa.exp(s * a[0]), {s: NORMAL, a: iid("constant", mean=2)}), math.exp(2)),
    "covariance": (
        lambda: sa.covariance(s, sa.exp(s), {s: NORMAL}, method="quadrature"), math.exp(0.5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLOSED)
def test_quadrature_against_closed_forms(name):
    ask, expected = CLOSED[name]
    found = ask()
    assert isinstance(found.value, float)
    assert abs(found.value - expected) < 1e-6 * max(1, abs(expected))
    assert abs(found.value - expected) <= 10 * found.error + 1e-12
    assert ask().value == found.value


@pytest.mark.parametrize("name", one_in(3, ["normal", "uniform", "laplace", "rademacher", "bernoulli"]))
def test_quadrature_agrees_with_exact_moments_of_polynomials(name):
    mean = {} if name == "bernoulli" else {"mean": 2}
    law = {a: iid(name, **mean), b: iid(name)}
    for moment, quantity in ((sa.expectation, (a @ b) ** 2), (sa.variance, a @ b + a[0] ** 2)):
        exact = float(moment(quantity, law))
        assert abs(moment(quantity, law, method="quadrature").value - exact) < 1e-10 * abs(exact)


def test_quadrature_of_a_kink_tells_how_far_it_may_be_off():
    found = quadrature(sa.relu(s), {s: NORMAL})
    exact = 1 / math.sqrt(2 * math.pi)
    assert 1e-4 < abs(found.value - exact) < found.error < 2e-2
    assert "no bound" in str(found)


def test_sums_over_all_values_have_no_nodes():
    found = quadrature(a @ b, {a: iid("rademacher"), b: iid("bernoulli")}, sa.variance)
    assert (found.value, found.error) == (1.0, 0.0)
    assert "a sum over all values" in str(found)


DIVERGENT: dict[str, tuple[Any, Any]] = {
    "exp of a wide laplace": (sa.exp(s), {s: iid("laplace", variance=8)}),
    "exp of a laplace at the edge": (sa.exp(s), {s: iid("laplace", variance=2)}),
    "exp of a square": (sa.exp(s**2), {s: NORMAL}),
    "square of a quotient": (1 / a[0] ** 4, {a: NORMAL}),
}


@pytest.mark.parametrize("name", DIVERGENT)
def test_a_moment_that_does_not_exist_is_not_given_a_value(name):
    with pytest.raises((NoRuleError, EvaluationError), match="does not settle|no finite value"):
        quadrature(*DIVERGENT[name])


def test_no_value_at_a_node_is_an_error():
    with pytest.raises(EvaluationError, match="no finite value at a node"):
        quadrature(sa.log(s), {s: NORMAL})


NUMBERS: dict[str, tuple[Any, Any, str]] = {
    "size": (q @ k, {q: NORMAL, k: NORMAL}, "needs numbers as sizes and scalars, and .* holds d"),
    "size of an entry": (sa.exp(q[0]), {q: NORMAL}, "holds d"),
    "scalar": (m * s, {s: NORMAL}, "holds m"),
    "parameter": (s, {s: iid("normal", mean=m)}, "the mean of s is m"),
    "index": (a[i], {a: NORMAL}, "needs numbers as indices"),
    "many entries": (sa.sum(sa.tensor("y", 5)), {sa.tensor("y", 5): NORMAL}, "reaches 4 random entries, and y"),
    "law without a name": (s, {s: iid()}, "needs to know the whole law"),
    "cumulants": (s, {s: iid(cumulants=[0, 1])}, "needs to know the whole law"),
    "sphere": (sa.sum(a), {a: sa.sphere()}, "needs to know the whole law"),
    "rows": (sa.sum(a), {a: sa.normal()}, "needs to know the whole law"),
    "pair": (a @ b, {(a, b): sa.iid_pair(correlation=0)}, "needs to know the whole law"),
    "fixed and not known": (s * a[0], {s: NORMAL, a: "constant"}, "not random and not known"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_quadrature_needs_numbers(name):
    quantity, law, message = NUMBERS[name]
    with pytest.raises(OperandError, match=message):
        quadrature(quantity, law)


def test_quadrature_of_an_unknown_function_is_refused():
    with pytest.raises(NoRuleError, match="no code is known for f"):
        quadrature(sa.unknown("f", s), {s: NORMAL})


# --- an approximation says that it is one, and is no number ---


BOTH = {
    "delta": lambda: sa.variance(sa.softmax(z)[i], {z: iid(variance=v)}, method="delta"),
    "quadrature": lambda: sa.expectation(sa.relu(s), {s: NORMAL}, method="quadrature"),
}


@pytest.mark.parametrize("method", BOTH)
def test_print_and_latex_say_that_it_is_an_approximation(method):
    found = BOTH[method]()
    assert found.method == method
    assert " is approximately " in str(found)
    assert repr(found).startswith("<approximate ")
    assert r"\approx" in found.latex()
    assert found.explanation in found.latex()
    assert sa.latex(found) == found.latex()
    assert found._repr_latex_() == f"$\\displaystyle {found.latex()}$"
    assert found.explanation in str(found)
    assert all(sentence in str(found) for sentence in found.assumptions)


@pytest.mark.parametrize("method", BOTH)
def test_an_approximation_tells_itself_with_its_method_and_what_is_assumed(method):
    found = BOTH[method]()
    chain, assumed = found.told()
    (line,) = chain.steps
    assert (line.relation.mark, line.reason) == ("≈", (found.explanation,))
    said = "".join(word if isinstance(word, str) else unicode_text(word) for word in assumed.words)
    assert said.startswith("It is assumed that the entries of ")


def test_the_order_and_the_nodes_are_told():
    assert (BOTH["delta"]().order, BOTH["quadrature"]().nodes) == (1, 64)
    assert "Taylor expansion of order 1 at the means" in str(BOTH["delta"]())
    assert "64 nodes for 1 random entry; 49 nodes change it by 9" in str(BOTH["quadrature"]())
    second = sa.expectation(sa.exp(s), {s: iid()}, method="delta")
    assert second.order == 2
    assert "of order 2" in str(second)
    assert second.latex().startswith(r"\mathbb{E}[\exp(s)] \approx \frac{3}{2} \quad \text{(delta")
    both = sa.covariance(s, sa.exp(s), {s: iid()}, method="delta")
    assert both.latex().startswith(r"\operatorname{Cov}[s, \exp(s)] \approx 1 ")
    assert str(both).startswith("Cov[s, exp(s)] is approximately 1\n")


MIXED: dict[str, Callable[[Any], Any]] = {
    "plus": lambda r: r + 1,
    "plus from the right": lambda r: 1 + r,
    "minus": lambda r: -r,
    "times a symbol": lambda r: m * r,
    "times a symbol from the right": lambda r: r * m,
    "power": lambda r: r**2,
    "root": sympy.sqrt,
    "sympify": sympy.sympify,
    "Add": lambda r: sympy.Add(1, r),
    "subs": lambda r: m.subs(m, r),
    "float": float,
    "tensor": lambda r: q * r,
    "moment": lambda r: iid(variance=r),
    "order": lambda r: r < 1,
    "array": lambda r: np.ones(2) * r,
}


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize("name", MIXED)
def test_an_approximation_does_not_mix_with_numbers(name, method):
    with pytest.raises(TypeError):
        MIXED[name](BOTH[method]())


def test_other_methods_are_refused():
    for method in ("taylor", None, "Exact", "delta_method", ["delta"]):
        for ask in (sa.expectation, sa.variance):
            with pytest.raises(OperandError, match='the method is "exact", "delta" or "quadrature", not'):
                ask(s, {s: iid()}, method=method)
