"""Copies of our own operations, declared by users, give what ours give: proofs, bounds, gradients, numbers, print."""

import numpy as np
import pytest
import sympy

import symattn as sa

from ..shares import one_in

k = sympy.Symbol("k", integer=True)
T, S, d = sa.sizes("T S d")
Z, W, V, X = sa.tensor("Z", T, S), sa.tensor("W", T, S), sa.tensor("V", S, d), sa.tensor("X", T, d)
z = sa.tensor("z", 2)
Pi = sa.tensor("Pi", S, S, permutation=True)


def total(term, n):
    return sympy.Sum(term(k), (k, 0, n - 1))


def declared(name, entry, **stated):
    return sa.operation(f"my_{name}", shape="n -> n", entry=entry, **stated)


def l1_normalised(x):
    return x / sa.sum(sa.abs(x), axis=-1, keepdims=True)


PAIRS = {
    "softmax": (
        declared(
            "softmax",
            lambda i, s: sympy.exp(s[i]) / total(lambda j: sympy.exp(s[j]), s.shape[0]),
            rows="positive probabilities",
            letters=("P", "Z"),
        ),
        sa.softmax,
    ),
    "relu": (
        declared(
            "relu",
            lambda i, s: sympy.Piecewise((s[i], s[i] > 0), (0, True)),
            range=(0, sympy.oo),
            monotone="increasing",
            nonsmooth="my_relu is not differentiable at 0; 0 is taken there",
        ),
        sa.relu,
    ),
    "sigmoid": (
        declared("sigmoid", lambda i, s: 1 / (1 + sympy.exp(-s[i])), range=(0, 1), monotone="strictly increasing"),
        sa.sigmoid,
    ),
    "tanh": (
        declared("tanh", lambda i, s: sympy.tanh(s[i]), range=(-1, 1), monotone="strictly increasing"),
        sa.tanh,
    ),
    "gelu": (declared("gelu", lambda i, s: s[i] * (1 + sympy.erf(s[i] / sympy.sqrt(2))) / 2), sa.gelu),
    "l1": (
        declared("l1", lambda i, s: s[i] / total(lambda j: sympy.Abs(s[j]), s.shape[0])),
        l1_normalised,
    ),
}


@pytest.fixture(params=PAIRS)
def pair(request):
    """A declared operation, and ours."""
    return PAIRS[request.param]


def answers(f, asked):
    """The verdicts on some claims, and whether they have conditions."""
    verdicts = [sa.prove(*one) for one in asked(f)]
    return [(v.status, bool(v.proof and v.proof.side_conditions)) for v in verdicts]


def named(text):
    return str(text).replace("my_", "")


def identities(f):
    return [
        (f(Z + 1), f(Z)),
        (f(Z @ Pi), f(Z) @ Pi),
        (sa.sum(f(Z), -1), sa.ones(T)),
        (f(-Z), -f(Z)),
        (f(2 * Z), f(Z)),
        (f(2 * Z), 2 * f(Z)),
        (f(-Z), 1 - f(Z)),
    ]


def inequalities(f):
    largest = sa.max(V, 0)[None, :] * sa.ones(T, d)
    claims = [sa.le(f(Z), 1), sa.le(0, f(Z)), sa.lt(0, f(Z)), sa.le(-1, f(Z)), sa.le(sa.abs(f(Z)), 1)]
    return [(claim,) for claim in [*claims, sa.le(f(Z) @ V, largest), sa.le(sa.sum(f(Z), -1), 1)]]


def orders(f):
    less = sa.le(Z, W)
    strictly = (sa.lt(f(Z), f(W)), None, [sa.lt(Z, W)])
    return [(sa.le(f(Z), f(W)), None, [less]), strictly, (sa.le(f(sa.tanh(Z)), f(sa.ones(T, S))),)]


def dependences(f):
    return [(sa.independent(f(Z), Z, when=lambda o, i, axis=axis: sympy.Ne(o[axis], i[axis])),) for axis in (0, 1)]


@pytest.mark.parametrize("asked", one_in(2, [identities, inequalities, orders, dependences]))
def test_verdicts_are_those_on_ours(pair, asked):
    own, ours = pair
    sa.verify(own)
    verdicts = answers(own, asked)
    assert verdicts == answers(ours, asked)
    assert {status for status, _ in verdicts} != {"unknown"}


def test_it_is_proved_to_be_ours(pair):
    own, ours = pair
    assert sa.prove(own(Z), ours(Z))
    assert sa.prove(own(Z @ V), ours(Z @ V))


def test_symmetries_are_those_of_ours(pair):
    own, ours = pair
    found = [sa.equivariance(lambda x, f=f: f(x @ x.T) @ x, X) for f in (own, ours)]
    assert named(found[0]) == named(found[1])


def test_gradients_tangents_and_jacobians_are_ours(pair):
    own, ours = pair
    gradients = [sa.gradient(f(Z), Z) for f in (own, ours)]
    assert sa.prove(gradients[0][Z], gradients[1][Z])
    assert sa.prove(sa.jvp(own(Z), {Z: W}), sa.jvp(ours(Z), {Z: W}))
    assert sa.prove(sa.jacobian(own(z), z), sa.jacobian(ours(z), z))


def test_numbers_are_those_of_ours(pair):
    at = np.array([[-2.0, 0.5, 1.5], [3.0, -0.25, 30.0]])
    for dtype, tolerance in ((np.float64, 1e-15), (np.float32, 1e-6)):
        values = [sa.lambdify([Z], f(Z))(at.astype(dtype)) for f in pair]
        assert values[0].dtype == values[1].dtype == dtype
        np.testing.assert_allclose(*values, rtol=tolerance, atol=tolerance)


def test_moments_are_those_of_ours(pair):
    law = {z: sa.normal(mean=0, covariance=1)}

    def told(f, method):
        try:
            return named(sa.expectation(f(z)[0], law, method=method))
        except sa.SymattnError as error:
            return named(error)

    for method in ("exact", "delta", "quadrature"):
        assert told(pair[0], method) == told(pair[1], method)


def test_places_without_a_derivative_are_told():
    own, ours = PAIRS["relu"]
    told = [sa.gradient(f(Z), Z).side_conditions for f in (own, ours)]
    assert named(told[0]) == named(told[1]) == "('relu is not differentiable at 0; 0 is taken there',)"


def test_what_is_declared_is_printed_by_its_name_and_its_letters():
    own, _ = PAIRS["softmax"]
    assert sa.latex(own(Z)) == r"\operatorname{my\_softmax}(Z)"
    assert "dP" in str(sa.gradient(own(Z) @ V, Z))
