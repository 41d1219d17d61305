"""Public functions given wrong values: what comes out is an error of symattn or of the caller's own object."""

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.testing import assert_equivariant, assert_matches

from .shares import one_in
from .wrong_calls import run
from .wrong_values import Hostile

c = sympy.Symbol("c", real=True)


@pytest.mark.parametrize("seed", one_in(4, range(4)))
def test_no_call_with_wrong_values_ends_in_an_exception_of_somebody_else(seed):
    tally = run(1500, seed)
    assert not tally.wrong, tally.wrong
    assert tally.counts["refused"] > 900


@pytest.mark.parametrize("value", [Hostile(), [10**5000], {"x": Hostile()}], ids=range(3))
@pytest.mark.parametrize(
    "ask",
    [
        sa.eye, sa.sizes, lambda v: sa.sum(sa.tensor("x", "n"), axis=v), lambda v: sa.let(v, sa.tensor("x", "n")),
        lambda v: sa.concat(v, axis=0), lambda v: sa.jvp(sa.tensor("x", "n"), v),
    ],
    ids=range(6),
)  # fmt: skip
def test_what_has_no_repr_is_described(ask, value):
    with pytest.raises(sa.SymattnError):
        ask(value)


@pytest.mark.parametrize("name", ["Tensor", "Integer", "array", "dict", "int", "list", "set", "str", "tuple"])
def test_a_class_of_others_that_has_a_known_name_is_described(name):
    with pytest.raises(sa.EvaluationError, match=rf"c is a number, not <.*\.{name} object"):
        sa.lambdify([c], c / 2)(type(name, (), {})())


def test_an_applied_function_of_sympy_is_described():
    with pytest.raises(sa.OperandError, match="entries takes a tensor, not g[(]u[)]"):
        sa.entries(sympy.Function("g")(sympy.Symbol("u")))


def test_what_is_described_takes_one_line():
    with pytest.raises(sa.EvaluationError, match=r"c is a number, not masked_array\(data=\[1, 2\], mask=False, fill"):
        sa.lambdify([c], c / 2)(np.ma.array([1, 2]))


T, d = sa.sizes("T d")
X, Y = sa.tensor("X", "T d"), sa.tensor("Y", "T d")
G = sa.gradient(sa.sum(X * Y), [X])
LONG = sympy.Integer(10) ** 5000


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: sa.cumsum(X, reverse=np.ones(2)), "cumsum: reverse is True or False, not array"),
        (lambda: sa.softmax(X, empty=np.ones(2)), "softmax: empty is 'zero' or 'error', not array"),
        (lambda: sa.attention.causal_linear(X, X, X, normalise=1), "normalise is True or False, not 1"),
        (lambda: sa.attention.linear(X, X, X, feature=np.ones(2)), "feature is 'elu[+]1', a function .*, not array"),
        (lambda: sa.prove(X, Y, seed=0.5), "prove: seed is a whole number, 0 or more, not 0.5"),
        (lambda: sa.prove(X, Y, given=[np.ones(2)]), "given holds claims .*, not array"),
        (lambda: sa.prove(X, Y, given=sa.sizes), "given holds claims .*, not <function sizes"),
        (lambda: sa.latex(X, names=[X]), r"names spells named tensors, .* and is not \[X\[T, d\]\]"),
        (lambda: sa.latex(X, names={X: 1}), r"names spells X\[T, d\] by LaTeX text, not 1"),
        (lambda: sa.latex(sa), "latex prints tensors, results of symattn and SymPy expressions, not <module"),
        (lambda: sa.latex([Hostile()]), "latex prints tensors, .*, not <Hostile instance"),
        (lambda: G.latex(environment=b"x"), "latex: environment is 'align\\*', .* or 'equation', not b'x'"),
        (lambda: X.subs([X], Y), r"only sizes, scalar symbols and tensors can be replaced, not \[X\[T, d\]\]"),
        (lambda: X.as_explicit([1]), "subs takes a mapping"),
        (lambda: sa.Tensor(), "a tensor is made by sa.tensor"),
        (
            lambda: sa.eye(sympy.Lambda(X.shape[0], 1)),
            "a size is an expression of numbers and size symbols, not Lambda",
        ),
        (lambda: sa.eye(LONG), "a size is a number that an axis can have, not an integer of 16610 bits"),
        (lambda: X + np.timedelta64(1, "s"), "an array of shape"),
        (lambda: sa.lambdify([X], LONG * X), "an integer of 16610 bits is beyond the largest float64"),
        (
            lambda: sa.attention.t5_bucket("T", max_distance=10**400),
            "max_distance is below 2[*][*]63, not an integer of 1329 bits",
        ),
        (
            lambda: sa.attention.t5_bucket("T", buckets=10**6),
            "t5_bucket: 1000000 buckets are made one by one, and there are at most 256",
        ),
        (lambda: sa.attention.gpt_parameters(4, 4, 4, layers=10**30, heads=2), "0 layers are made one by one"),
        (lambda: sa.attention.hopfield(X, X, 1, steps=10**30), "0 steps are made one by one, and .* at most 1000"),
        (lambda: sa.attention.recurrence(*[sa.tensor("X", 10**30, "d")] * 3), "0 positions are made one by one"),
        (lambda: sa.exp(X).as_explicit({T: 10**9, d: 2}), r"as_explicit of exp.*: 2000000000 entries of X\[1000000000"),
        (lambda: sa.equivariance(sa.exp, (X, Y)), "equivariance: <function exp> does not take 2 arguments"),
        (lambda: sa.independent(X, X, when=sa.exp), "independent: when: <function exp> does not take 2 arguments"),
        (lambda: sa.Derivation("A", given=1), "given holds tensors and scalar symbols with what they mean, not 1"),
        (lambda: sa.Derivation("A").extend(sa.let("P", X)).then(X, because=1), "because= is a sentence"),
        (lambda: assert_matches(1, X, [X]), "assert_matches: fn is a function of arrays, not 1"),
        (lambda: assert_matches(np.exp, X, [X], sizes=[1]), "sizes is a list of {size: value}"),
        (lambda: assert_matches(np.exp, X, [X], seed=-1), "assert_matches: seed is a whole number, 0 or more, not -1"),
        (lambda: assert_equivariant(np.exp, np.ones((0, 2)), "permutation"), "takes an array that has entries"),
        (lambda: sa.iid(variance=-sympy.oo), "variance is a finite number or a scalar symbol, not -oo; for a limit"),
        (lambda: sa.iid(mean=float("inf")), "mean is a finite number or a scalar symbol, not inf; for a limit"),
        (lambda: sa.iid(cumulants=[0, 1, -sympy.oo]), "a cumulant is a finite number .*, not -oo; for a limit"),
        (lambda: sa.iid_pair(correlation=LONG), "a correlation is between -1 and 1, not an integer of 16610 bits"),
        (lambda: sa.iid(variance=-LONG), "no law has the variance an integer of 16610 bits: it is not negative"),
        (lambda: assert_equivariant(np.exp, np.ones(2) * 1j, "permutation"), "real numbers, and .*: its entries are c"),
        (lambda: sa.normal(mean=-sympy.oo), "mean is a finite number .*, not -oo; for a limit"),
        (lambda: sa.iid(variance=sympy.Symbol("s", infinite=True)), "variance is a finite number .*, not s"),
        (lambda: sa.iid("bernoulli", probability=float("nan")), "probability is a finite number .*, not nan"),
        (lambda: sa.prove(X, Y, budget=float("nan")), "a budget is a number of seconds above 0, not nan"),
    ],
)
def test_what_was_asked_is_described_with_the_way_out(ask, message):
    with pytest.raises(sa.SymattnError, match=message):
        ask()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: G["dQ"], "'dQ' is none of the steps dX"),
        (lambda: G[[X]], r"the gradient was not taken with respect to \[X\[T, d\]\]"),
        (lambda: sa.entries(sa.exp(X))["Z"], "'Z' is none of the equations y"),
        (lambda: sa.equivariance(sa.exp, X)[1], "1 is none of the symmetries rows of X"),
    ],
)
def test_a_key_that_is_not_there_names_those_that_are(ask, message):
    with pytest.raises(sa.AbsentError, match=f"^{message}"):
        ask()
    with pytest.raises(KeyError):
        ask()
    assert [X] not in G
    assert G.get([X], 1) == 1
