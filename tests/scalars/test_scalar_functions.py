"""A scalar function is one record: added to the table, every engine knows it."""

from __future__ import annotations

import math
from operator import attrgetter

import numpy as np
import pytest
import sympy
from scipy import special
from sympy import Interval

import symattn as sa
from symattn.codegen.reference import values
from symattn.core.budget import Budget
from symattn.proof.equality.gradients import is_proved
from symattn.reading import read
from symattn.scalars.functions import FUNCTIONS, ScalarFunction, U

u = sympy.Symbol("u")
n = sa.sizes("n")
x = sa.tensor("x", n)
p = sa.tensor("p", n, positive=True)
UNARY = [record for record in FUNCTIONS.values() if record.arity == 1]
AT = np.array([0.3, -1.7, 2.5])
ERFC = ScalarFunction(sympy.erfc, "special.erfc", values=Interval.open(0, 2), monotone="strictly decreasing")
ERFI = ScalarFunction(sympy.erfi, "special.erfi", value=special.erfi, monotone="strictly increasing")
SLOPES = {ERFC: lambda a: -np.exp(-(a**2)), ERFI: lambda a: np.exp(a**2)}  # times 2 / sqrt(pi)


@pytest.fixture(params=[ERFC, ERFI], ids=lambda record: record.name)
def added(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ScalarFunction:
    monkeypatch.setitem(FUNCTIONS, request.param.head, request.param)
    return request.param


def applied(record: ScalarFunction, argument: sa.Tensor) -> sa.Tensor:
    return sa.elementwise(sympy.Lambda(u, record.head(u)), argument)


def test_it_is_evaluated_and_compiled(added: ScalarFunction) -> None:
    right = getattr(special, added.name)(AT)
    y = applied(added, x)
    assert values([y], {x: AT}, {n: 3})[y] == pytest.approx(right)
    assert sa.lambdify([x], y)(AT) == pytest.approx(right)
    single = sa.lambdify([x], y)(AT.astype(np.float32))
    assert single.dtype == np.float32
    assert single == pytest.approx(right, rel=1e-5)


def test_it_is_differentiated(added: ScalarFunction) -> None:
    slope = sa.lambdify([x], sa.gradient(sa.sum(applied(added, x)), [x])[x])
    assert slope(AT) == pytest.approx(2 / math.sqrt(math.pi) * SLOPES[added](AT))


def test_it_is_refuted_in_balls(added: ScalarFunction) -> None:
    y = applied(added, x)
    assert sa.prove(y, 2 * y).status == "refuted"
    assert sa.prove(y + 0 * x, y).status == "proved"


def test_it_has_the_range_of_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FUNCTIONS, sympy.erfc, ERFC)
    y = applied(ERFC, x)
    assert sa.prove(sa.lt(y, 2)).status == "proved"
    assert sa.prove(sa.lt(0, y)).status == "proved"
    assert sa.prove(sa.lt(y, 1)).status == "refuted"
    assert sa.prove(sa.lt(applied(ERFC, x + 1), y)).status == "proved"


def test_an_increasing_one_that_is_zero_at_zero_has_the_sign_of_its_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FUNCTIONS, sympy.erfi, ERFI)
    assert sa.prove(sa.le(0, applied(ERFI, x**2))).status == "proved"
    assert sa.prove(sa.le(applied(ERFI, x), applied(ERFI, x + 1))).status == "proved"
    assert sa.prove(sa.independent(sa.sum(applied(ERFI, 0 * x)), x)).status == "proved"


def test_its_normal_form_is_that_of_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    sech = ScalarFunction(sympy.sech, normal=2 / (sympy.exp(U) + sympy.exp(-U)))
    y = applied(sech, x)
    claim = y * sa.elementwise(sympy.Lambda(u, sympy.cosh(u)), x), sa.ones(n)
    assert sa.prove(*claim).status == "unknown"
    monkeypatch.setitem(FUNCTIONS, sympy.sech, sech)
    assert sa.prove(*claim).status == "proved"


def test_the_normal_form_differentiates_it_by_its_name(added: ScalarFunction) -> None:
    gradient = sa.gradient(sa.sum(applied(added, x)), [x])[x]
    assert is_proved(gradient, Budget(float("inf")))


@pytest.mark.parametrize("record", [r for r in FUNCTIONS.values() if r.normal is not None], ids=lambda r: r.name)
def test_a_normal_form_is_the_function(record: ScalarFunction) -> None:
    for q in (sympy.Rational(7, 5), sympy.Rational(-2, 3), sympy.S.Zero):
        assert complex(record.normal.subs(U, q)) == pytest.approx(complex(record.head(q)))


DOMAINS = {
    "log": (x, "x > 0"),
    "asin": (x, "x >= -1; x <= 1"),
    "acos": (p, "p <= 1"),
    "acosh": (x, "x >= 1"),
    "atanh": (p, "p < 1"),
    "tan": (x, "cos(x) != 0"),
    "acosh beyond 1": (2 + sa.exp(x), ""),
    "asin of a tanh": (sa.tanh(x), ""),
    "atanh of a sigmoid": (sa.sigmoid(x), ""),
    "atan": (x, ""),
}


@pytest.mark.parametrize("case", DOMAINS)
def test_where_it_is_not_defined_is_a_condition(case: str) -> None:
    argument, conditions = DOMAINS[case]
    y = sa.elementwise(sympy.Lambda(u, getattr(sympy, case.split()[0])(u)), argument)
    assert "; ".join(sa.prove(y + y, 2 * y).proof.side_conditions) == conditions


@pytest.mark.parametrize("record", UNARY, ids=lambda record: record.name)
def test_a_logarithm_of_it_asks_for_positive_values_unless_they_are(record: ScalarFunction) -> None:
    """Of a positive number: exp and cosh are positive, and what rises from 0 at 0 is."""
    conditions = sa.prove(0 * sa.log(applied(record, p)), 0 * p).proof.side_conditions
    seen = {"exp", "cosh", "sinh", "tanh", "asin", "atan", "asinh", "atanh", "erf"}
    assert any(c.endswith("> 0") for c in conditions) == (record.name not in seen)


def test_what_another_function_gives_lies_in_the_domain() -> None:
    inside = sympy.asin(sympy.sin(u)) + sympy.log(sympy.cosh(u)) + sympy.atanh(sympy.tanh(u) / 2 - sympy.tanh(u) / 2)
    y = sa.elementwise(sympy.Lambda(u, inside + sympy.asin(sympy.Rational(1, 3))), x)
    assert sa.prove(y + y, 2 * y).proof.side_conditions == ()


def test_it_is_printed_and_read_in(added: ScalarFunction) -> None:
    y = applied(added, x)
    assert sympy.latex(added.head(u)).partition("{\\left")[0] in sa.latex(y)
    assert read(f"elementwise(lambda u: {added.name}(u), x)", {"x": x}) is y


def test_without_a_record_it_is_refused_by_name() -> None:
    with pytest.raises(sa.NoRuleError, match="erfc"):
        sa.lambdify([x], applied(ERFC, x))


@pytest.mark.parametrize("record", UNARY, ids=lambda record: record.name)
def test_a_record_is_right_on_a_grid(record: ScalarFunction) -> None:
    grid = [q for q in np.linspace(-4, 4, 33) if sympy.Rational(q) in record.domain]
    found = [float(record.head(sympy.Rational(q)).evalf()) for q in grid]
    assert len(found) > 3
    assert all(record.values.start <= y <= record.values.end for y in found)
    if record.monotone:
        assert found == sorted(found, reverse=record.monotone.endswith("decreasing"))
    name = record.numpy or record.name
    call = getattr(special, name.partition(".")[2]) if "." in name else getattr(np, name)
    assert [float(call(q)) for q in grid] == pytest.approx(found)


@pytest.mark.parametrize("record", [f for f in FUNCTIONS.values() if f.arity == 2], ids=lambda record: record.name)
def test_one_of_two_arguments_has_the_same_values_everywhere(record: ScalarFunction) -> None:
    v = sympy.Symbol("v")
    y = sa.elementwise(sympy.Lambda((u, v), record.head(u, v)), x, p)
    at = np.array([1.5, 2.0, -3.25]), np.array([1.5, 0.5, 2.0])
    right = [float(record.head(*map(sympy.Rational, pair))) for pair in zip(*at, strict=True)]
    assert values([y], {x: at[0], p: at[1]}, {n: 3})[y] == pytest.approx(right)
    assert sa.lambdify([x, p], y)(*at) == pytest.approx(right)
    assert getattr(np, record.spelled("numpy"))(*at) == pytest.approx(right)
    assert sa.prove(y, y + 1).status == "refuted"
    for name in (record.name, *record.also):
        assert read(f"elementwise(lambda u, v: {name}(u, v), x, p)", {"x": x, "p": p}) is y


@pytest.mark.parametrize("record", FUNCTIONS.values(), ids=lambda record: record.name)
def test_torch_has_it_under_its_spelling(record: ScalarFunction) -> None:
    torch = pytest.importorskip("torch")
    at = [torch.tensor([0.25, 0.5], dtype=torch.float64), torch.tensor([0.5, 0.5], dtype=torch.float64)][: record.arity]
    at = [1 + at[0]] if record.domain.start == 1 else at
    found = attrgetter(record.spelled("torch"))(torch)(*at)
    points = zip(*(a.tolist() for a in at), strict=True)
    right = [float(record.head(*map(sympy.Rational, point)).evalf()) for point in points]
    assert found.numpy().astype(float) == pytest.approx(right)
