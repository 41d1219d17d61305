"""Declared operations that are said to be monotone: what is proved of them, what is refuted, and what uses it."""

import pickle
import random

import numpy as np
import pytest
import sympy

import symattn as sa

from ..shares import one_in

x, y = sa.tensor("x", "n"), sa.tensor("y", "n")
ones = sa.ones("n")
half = sympy.Rational(1, 2)


def declared(scalar, monotone, **stated):
    """An operation that applies a function of one number entry by entry."""
    return sa.operation("f", shape="n -> n", entry=lambda i, s: scalar(s[i]), monotone=monotone, **stated)


def arctangent(index, s):
    return sympy.atan(s[index])


def step(t):
    return sympy.Piecewise((1, t > 0), (0, True))


def softsign(t):
    return t / (1 + sympy.Abs(t))


def saturating(t):
    return t / sympy.sqrt(1 + t**2)


PROVED = {
    "exp": (sympy.exp, "strictly increasing"),
    "sigmoid": (lambda t: 1 / (1 + sympy.exp(-t)), "strictly increasing"),
    "softplus": (lambda t: sympy.log(1 + sympy.exp(t)), "strictly increasing"),
    "relu": (lambda t: sympy.Piecewise((t, t > 0), (0, True)), "increasing"),
    "floor": (sympy.floor, "increasing"),
    "a constant": (lambda t: sympy.Integer(3), "increasing"),
    "a cube": (lambda t: t**3, "strictly increasing"),
    "a root": (sympy.sqrt, "strictly increasing"),
    "1 - tanh": (lambda t: 1 - sympy.tanh(t), "strictly decreasing"),
    "exp(-2t)": (lambda t: sympy.exp(-2 * t), "decreasing"),
    "by the derivative 1 + cos(t)/2": (lambda t: t + sympy.sin(t) / 2, "strictly increasing"),
    "by the derivative 1 - cos(t)": (lambda t: t - sympy.sin(t), "increasing"),
    "by the derivative -1 - 2/(1 + t^2)": (lambda t: -t - 2 * sympy.atan(t), "strictly decreasing"),
}


def compared(op, strictly=False):
    """That values are in the order that the operation states."""
    low, high = (y, x) if op.record.monotone.endswith("decreasing") else (x, y)
    relation = sa.lt if strictly else sa.le
    return sa.prove(relation(op(low), op(high)), given=[relation(x, y)])


@pytest.mark.parametrize("name", PROVED)
def test_what_is_monotone_is_proved_and_used_with_nothing_assumed(name):
    op = declared(*PROVED[name])
    assert sa.verify(op).endswith("f: monotone is proved")
    assert compared(op).proof.assumptions == ()
    if op.record.monotone.startswith("strictly"):
        assert compared(op, strictly=True).proof.assumptions == ()


FALSE = {
    "a square": (lambda t: t**2, "increasing", "x <= y"),
    "a reciprocal, whose derivative is positive where it is": (lambda t: -1 / t, "increasing", "x = .-1"),
    "gelu": (lambda t: t * (1 + sympy.erf(t / sympy.sqrt(2))) / 2, "increasing", "left is"),
    "a remainder": (lambda t: sympy.Mod(t, 3), "increasing", "left is 2, right is 0"),
    "relu strictly": (lambda t: sympy.Piecewise((t, t > 0), (0, True)), "strictly increasing", "x < y"),
    "a step strictly": (step, "strictly increasing", "x < y"),
    "exp": (sympy.exp, "decreasing", r"f\(y\) <= f\(x\)"),
    "a sine": (sympy.sin, "increasing", "left is"),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_is_not_monotone_is_refuted_at_a_point(name):
    scalar, monotone, message = FALSE[name]
    with pytest.raises(sa.EvaluationError, match=rf"(?s)monotone='{monotone}' of f is false: refuted: .*{message}"):
        sa.verify(declared(scalar, monotone))


OPEN = {
    "softsign": (softsign, "strictly increasing"),
    "t / sqrt(1 + t^2)": (saturating, "strictly increasing"),
    "a step": (step, "increasing"),
}


@pytest.mark.parametrize("name", OPEN)
def test_what_is_not_seen_to_be_monotone_is_assumed_by_what_uses_it(name):
    op = declared(*OPEN[name])
    assert sa.verify(op).endswith("f: monotone is not proved, and every proof that uses it says so")
    said = f"f is {op.record.monotone}, as stated"
    verdict = compared(op)
    assert verdict.proof.assumptions == (said,)
    assert not verdict.proof.side_conditions
    assert said in str(verdict)
    assert said in verdict.proof.latex()
    assert verdict.proof.check()


def test_the_order_of_arguments_is_used_inside_of_claims():
    f, g = declared(softsign, "strictly increasing"), declared(lambda t: -saturating(t), "decreasing")
    assert sa.prove(sa.le(3 * f(x) + 1, 3 * f(y) + 1), given=[sa.le(x, y)])
    assert sa.prove(sa.lt(f(x), f(x + 1)))
    assert sa.prove(sa.le(f(sa.tanh(x)), f(sa.exp(y) + 1)))
    assert sa.prove(sa.le(f(g(y)), f(g(x))), given=[sa.le(x, y)])
    assert sa.prove(sa.le(g(x + 1), g(x)))
    assert sa.prove(sa.lt(g(x + 1), g(x))).status != "proved"  # it may have flat parts
    Z = sa.tensor("Z", "T S")
    assert sa.prove(sa.le(f(Z), f(sa.max(Z, -1))[:, None] * sa.ones(*Z.shape)))
    assert sa.prove(sa.le(sa.sum(f(x)), sa.sum(f(y))), given=[sa.le(x, y)])


def test_a_function_of_a_bounded_argument_is_bounded_by_its_values_at_the_ends():
    f, g = declared(softsign, "strictly increasing"), declared(lambda t: -saturating(t), "decreasing")
    assert sa.prove(sa.lt(f(sa.tanh(x)), half))  # softsign(1) = 1/2, which is not reached
    assert sa.prove(sa.le(-half, f(sa.cos(x))))
    assert sa.prove(sa.lt(f(sa.cos(x)), half)).status == "refuted"
    assert sa.prove(sa.le(f(x), half), given=[sa.le(x, 1)])
    assert sa.prove(sa.le(g(sa.exp(x)), 0))
    assert sa.prove(sa.lt(g(sa.exp(x) - 1), 1 / sympy.sqrt(2))).status != "proved"  # it may have flat parts
    assert sa.prove(sa.le(-1 / sympy.sqrt(2), g(sa.sin(x))))
    verdict = sa.prove(sa.lt(f(sa.tanh(x)), half))
    assert "f(tanh(x)) < 1/2: f is strictly increasing" in verdict.proof.text()


def test_a_false_statement_is_never_hidden():
    """What is stated and false makes false proofs, all of which list it."""
    op = declared(lambda t: t**2, "increasing")
    verdict = sa.prove(sa.le(op(sa.sin(x) - 2), op(sa.sin(x) - 1)))
    assert not verdict or "f is increasing, as stated" in str(verdict)


def test_a_proof_by_the_formula_does_not_list_the_order():
    op = declared(softsign, "strictly increasing")
    assert sa.prove(sa.le(op(x), 1 + sa.abs(op(x)))).proof.assumptions == ()


def test_conditions_are_not_discharged_by_what_is_assumed():
    bump = sa.operation(
        "f",
        shape="n -> n",
        entry=lambda i, s: 1 + s[i] ** 2 * sympy.exp(-(s[i] ** 2)) * sympy.sin(3 * s[i]),
        range=(half, 3),
    )
    assert sa.verify(bump).endswith("f: range is not proved, and every proof that uses it says so")
    assert sa.prove(bump(x) / bump(x), ones).proof.side_conditions == ("f(x) != 0",)
    assert sa.prove(sa.sqrt(bump(x)) ** 2, bump(x)).proof.side_conditions == ("f(x) >= 0",)
    assert sa.prove(bump(x) * sa.rsqrt(bump(x)) ** 2, ones).proof.side_conditions
    proved = declared(lambda t: 1 + t**2, "", range=(1, sympy.oo))
    sa.verify(proved)
    assert not sa.prove(proved(x) / proved(x), ones).proof.side_conditions


# --- random functions ---

INNER = {"t": lambda t: t, "t + 1": lambda t: t + 1, "-t": lambda t: -t, "2t - 1/2": lambda t: 2 * t - half}
OUTER = {
    "exp": sympy.exp,
    "tanh": sympy.tanh,
    "cube": lambda t: t**3,
    "square": lambda t: t**2,
    "sin": sympy.sin,
    "abs": sympy.Abs,
    "relu": lambda t: sympy.Piecewise((t, t > 0), (0, True)),
    "sigmoid": lambda t: 1 / (1 + sympy.exp(-t)),
    "log1p of a square": lambda t: sympy.log(1 + t**2),
    "quotient": lambda t: t / (1 + t**2),
}
GRID = np.linspace(-7, 7, 2801)


@pytest.mark.parametrize("seed", one_in(3, range(3)))
def test_what_is_proved_of_random_functions_holds_on_a_grid(seed):
    rng, t = random.Random(seed), sympy.Symbol("t", real=True)
    answers = []
    for _ in range(5):
        first, second, third = (rng.choice(list(OUTER.values())) for _ in range(3))
        inner, other = (rng.choice(list(INNER.values())) for _ in range(2))
        formula = sympy.Lambda(t, first(second(inner(t))) + rng.choice([0, 1, 2]) * third(other(t)))
        steps = np.diff(sympy.lambdify(t, formula(t), "numpy")(GRID))
        falls = steps.sum() < 0
        op = declared(formula, "decreasing" if falls else "increasing")
        try:
            answers.append(sa.verify(op).splitlines()[-1])
        except sa.EvaluationError as error:
            answers.append(str(error).partition(" of f")[0] + " is false")
        if answers[-1] == "f: monotone is proved":
            assert (steps < 1e-9 if falls else steps > -1e-9).all(), formula
    assert len(set(answers)) > 1
    assert all("monotone" in answer for answer in answers)


REFUSED = {
    "another word": ("n -> n", lambda i, s: s[i], "rising", "monotone= of operation 'f' is one of"),
    "a flag": ("n -> n", lambda i, s: s[i], True, "monotone= of operation 'f' is one of"),
    "a row": ("n -> n", lambda i, s: s[i] / s.shape[0], "increasing", "is said of a function of one number"),
    "another index": ("n -> n", lambda i, s: s[s.shape[0] - 1 - i[0]], "increasing", "of x.index. alone"),
    "the place": ("n -> n", lambda i, s: s[i] + i[0], "increasing", "is said of a function of one number"),
    "a sum": ("n -> ", lambda i, s: s[0], "increasing", "shape 'n -> ' and its entry are not 'n -> n'"),
    "two inputs": ("n, n -> n", lambda i, s, t: s[i] + t[i], "increasing", "shape 'n, n -> n'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_monotone_is_refused(name):
    shape, entry, monotone, message = REFUSED[name]
    with pytest.raises(sa.OperandError, match=message):
        sa.operation("f", shape=shape, entry=entry, monotone=monotone)


def test_functions_of_numbers_and_of_matrices_may_be_monotone():
    number = sa.operation("f", shape="->", entry=lambda i, s: s[()] ** 3, monotone="strictly increasing")
    grid = sa.operation("g", shape="n m -> n m", entry=arctangent, monotone="increasing")
    assert sa.verify(number).endswith("monotone is proved")
    assert sa.verify(grid).endswith("monotone is proved")
    Z = sa.tensor("Z", "T S")
    assert sa.prove(sa.lt(number(Z), number(Z + 1)))
    assert sa.prove(sa.le(grid(Z), grid(sa.exp(Z))))
    assert pickle.loads(pickle.dumps(grid(Z))).op.monotone == "increasing"
    assert sa.gradient(number(Z), Z)
