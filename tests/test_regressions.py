"""What reviews found wrong once, each as a kind: silent zeros, loop axes, dtypes, slices, names, and raw errors."""

import pickle

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.printing.media.latex import latex

T, S, d, e = sa.sizes("T S d e")
X, W, Q, K, V = (sa.tensor(n, s) for n, s in (("X", "T d"), ("W", "d e"), ("Q", "T d"), ("K", "S d"), ("V", "S e")))
x, c = sa.tensor("x", "n"), sympy.Symbol("c", real=True)
RNG = np.random.default_rng(0)


def test_a_scalar_exponent_is_differentiated():
    g = sa.gradient(sa.sum(x**c), [x, c])
    assert str(g[c].inputs[0]) == "sum(x**c * log(x))"
    sa.lambdify([x], g).check()


# --- loop axes ---


def test_gradients_of_losses_have_the_loop_axes_of_their_variable():
    g = sa.gradient(sa.sum(Q * X), [Q, X])
    f = sa.lambdify([Q, X], g)
    for lead_q, lead_x in [((2,), ()), ((1,), (3,)), ((5, 1), (2,)), ((), ())]:
        q, y = RNG.normal(size=(*lead_q, 3, 4)), RNG.normal(size=(*lead_x, 3, 4))
        dq, dy = f(q, y)
        loops = np.broadcast_shapes(lead_q, lead_x)
        assert (dq.shape, dy.shape) == (q.shape, y.shape)
        full_q, full_y = (np.broadcast_to(a, (*loops, 3, 4)) for a in (q, y))
        for got, other, lead in ((dq, full_y, lead_q), (dy, full_q, lead_x)):
            kept = other.sum(axis=tuple(range(len(loops) - len(lead))))
            ones = tuple(k for k, size in enumerate(lead) if size == 1)
            np.testing.assert_allclose(got, kept.sum(axis=ones, keepdims=True))


def test_a_loss_that_is_flat_still_has_loops():
    g = sa.gradient(sa.sum(Q) + sa.sum(X), [Q, X])
    dq, dx = sa.lambdify([Q, X], g)(np.ones((2, 3, 4)), np.ones((3, 4)))
    assert dq.shape == (2, 3, 4)
    np.testing.assert_array_equal(dx, np.full((3, 4), 2.0))


def test_a_gradient_inside_an_expression_is_summed_over_loops_too():
    g = sa.gradient(sa.sum(Q * X), X)
    step = sa.lambdify([Q, X], X - 0.5 * g[X])(np.ones((2, 3, 4)), np.ones((3, 4)))
    np.testing.assert_array_equal(step, np.zeros((3, 4)))


def test_outputs_of_different_loops_are_refused():
    O, L = sa.let("O", Q @ K.T), sa.let("L", sa.sum(K * K))
    g = sa.gradient({O: sa.tensor("dO", T, S), L: sa.tensor("dL")}, [K])
    f = sa.lambdify([Q, K, sa.tensor("dO", T, S), sa.tensor("dL")], g)
    with pytest.raises(sa.EvaluationError, match="different loop axes"):
        f(np.ones((2, 3, 4)), np.ones((5, 4)), np.ones((2, 3, 5)), 1.0)


def test_second_derivatives_under_unequal_loops_are_refused():
    slope = sa.gradient(sa.sum(sa.tanh(Q @ W)), Q)[Q]
    f = sa.lambdify([Q, W], sa.gradient(sa.sum(slope * slope), [Q, W]))
    f(np.ones((2, 3, 4)), np.ones((2, 4, 5)))
    with pytest.raises(sa.EvaluationError, match="second derivatives take the same loop axes"):
        f(np.ones((2, 3, 4)), np.ones((4, 5)))


def test_batched_cotangents_and_loop_axes_go_together_in_einsum():
    G = sa.tensor("G", "b T e")
    O = sa.einsum("td,de,tf->te", X, W, X)
    f = sa.lambdify([X, W, G], sa.gradient({O: G}, [X, W]))
    for b in (2, 5):
        xs, w, gs = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(4, 5)), RNG.normal(size=(2, b, 3, 5))
        got = f(xs, w, gs)[0]
        np.testing.assert_allclose(got, np.array([f(xs[k], w, gs[k])[0] for k in range(2)]), rtol=1e-12)


def test_sizes_that_nobody_can_read_off_are_not_asked_for_by_gradients():
    A, v = sa.tensor("A", "2*m"), sa.tensor("v", "d")
    got = sa.lambdify([A, v], sa.gradient(sa.sum(A * A) + sa.sum(v * v), [A, v]))(np.ones(4), np.ones(3))
    np.testing.assert_array_equal(got[0], np.full(4, 2.0))


# --- sizes at run time ---


@pytest.mark.parametrize("part", [X[-5:], X[-5], X[:5], X[5], X[3:5]], ids=["[-5:]", "[-5]", "[:5]", "[5]", "[3:5]"])
def test_a_slice_beyond_the_size_is_an_error_when_it_runs(part):
    f = sa.lambdify([X], sa.sum(part))
    assert f(np.ones((6, 2))) > 0
    with pytest.raises(sa.EvaluationError, match=r"must lie inside the size T.*T = 3"):
        f(np.ones((3, 2)))


def test_an_empty_rest_is_an_error_when_it_runs():
    with pytest.raises(sa.EvaluationError, match="T - 1"):
        sa.lambdify([X], sa.max(X[1:]))(np.ones((1, 2)))


def test_a_size_that_is_not_whole_is_an_error_when_it_runs():
    y = sa.split_axis(sa.tensor("Y", "D"), -1, ("h", sa.sizes("D") / sa.sizes("h")))
    with pytest.raises(sa.EvaluationError, match="positive whole number"):
        sa.lambdify([sa.tensor("Y", "D")], y)(np.ones(7), h=2)


def test_a_positional_size_is_held_against_the_arrays():
    with pytest.raises(sa.EvaluationError, match="must be d = 64"):
        sa.lambdify([d, X], X / sympy.sqrt(d))(64, np.ones((2, 3)))


# --- dtypes and numbers ---

SCALED = {
    "exp of a scalar": X * sympy.exp(c),
    "a root": X * sympy.sqrt(c),
    "an operation on a scalar": X * sa.sigmoid(c),
    "an extreme of scalars": X + sa.maximum(2, c),
    "a number inside a function": sa.elementwise(sympy.Lambda(c, c * sympy.log(2) / sympy.sqrt(3)), X),
    "a complement": 1 - (X > 0),
    "a power": X * c**c,
}


@pytest.mark.parametrize("name", SCALED)
def test_scalar_factors_do_not_widen_the_dtype(name):
    f = sa.lambdify([X], SCALED[name])
    assert f(np.ones((2, 3), np.float32), **({"c": 2.0} if c in SCALED[name].free_symbols else {})).dtype == np.float32


def test_relations_of_sizes_are_logical():
    m = sa.from_index((T, S), lambda i, j: sympy.Or(sympy.Not(sympy.And(T > 3, S > 2)), i < j))
    got = sa.lambdify([sa.tensor("Z", T, S)], m & (sa.tensor("Z", T, S) > 0))(np.ones((4, 4)))
    np.testing.assert_array_equal(got, np.triu(np.ones((4, 4), bool), 1))


def test_an_index_is_a_number_and_not_a_condition():
    ramp = sa.from_index((T,), lambda i: i)
    assert ramp.kind == "real"
    np.testing.assert_array_equal(sa.lambdify([X], ramp + X[:, 0])(np.zeros((4, 2))), np.arange(4.0))


def test_empty_tensors_give_zero_gradients_over_several_axes():
    Z = sa.tensor("Z", T, S)
    g = sa.lambdify([Z], sa.gradient(sa.logsumexp(Z, axis=None), Z))
    np.testing.assert_array_equal(g(np.full((2, 3), -np.inf))[0], np.zeros((2, 3)))


@pytest.mark.parametrize("shift", [-800.0, 800.0])
def test_log_sigmoid_and_log_one_plus_exp_do_not_overflow(shift):
    for y in (sa.log(sa.sigmoid(x)), sa.log(1 + sa.exp(x)), sa.log(sa.exp(x) + 1)):
        value, slope = sa.lambdify([x], [sa.sum(y), sa.gradient(sa.sum(y), x)])(np.array([shift]))
        assert np.isfinite(value)
        assert slope[0] in (0.0, 1.0) or slope[0] == pytest.approx(0)


# --- names ---


def test_names_in_a_given_cotangent_are_not_used_again():
    P = sa.let("P", sa.softmax(sa.let("Z", Q @ K.T)))
    g = sa.gradient({P @ V: sa.tensor("dP", T, e)}, [Q, V])
    assert str(g).startswith("dV = P.T @ dP ")
    assert "dP_1 = dP @ V.T " in str(g)


def test_a_derivation_gives_one_quantity_one_name():
    P = sa.let("P", 2 * sa.softmax(Q @ K.T))
    O = sa.let("O", P @ V)
    (section,) = sa.Derivation("x", [V]).extend(P, O, sa.gradient(O, V)).composed().sections
    (chain,) = section.parts
    assert [latex(step.left) for step in chain.steps] == ["P", "O", r"\mathrm{d}V"]


def test_a_tensor_and_a_symbol_that_look_alike_are_an_error():
    with pytest.raises(sa.NamingError, match="would both print as"):
        sa.latex(sa.tensor("d1", T) / sympy.sqrt(sa.sizes("d_1")))


# --- derivatives that are not known ---


@pytest.mark.parametrize("formula", [lambda i: sympy.floor(c * i), lambda i: sympy.sign(c - i)], ids=["floor", "sign"])
def test_rough_formulas_have_no_derivative_by_a_scalar(formula):
    with pytest.raises(sa.NoRuleError):
        sa.gradient(sa.sum(sa.from_index((T,), formula)), c)


def test_the_maximum_of_masked_scores_has_a_gradient():
    causal = sa.from_index((T, S), lambda i, j: sympy.Piecewise((0, j <= i), (-sympy.oo, True)))
    Z = sa.tensor("Z", T, S)
    g = sa.gradient(sa.sum(sa.max(Z + causal, -1)), Z)
    z = RNG.normal(size=(3, 4))
    (got,) = sa.lambdify([Z], g)(z)
    np.testing.assert_array_equal(got.argmax(-1), np.where(np.tri(3, 4) > 0, z, -np.inf).argmax(-1))


# --- raw errors ---

RAW = {
    "split into one": (lambda: sa.split_axis(X, 0, 3), sa.ShapeError),
    "subs of nothing": (lambda: X.subs(None), sa.OperandError),
    "no output": (lambda: sa.lambdify([X], []), sa.OperandError),
    "a word for keepdims": (lambda: sa.sum(X, keepdims="no"), sa.OperandError),
    "a number for a sentence": (lambda: sa.Derivation("a").text(3), sa.OperandError),
    "and in from_index": (lambda: sa.from_index((T, S), lambda i, j: i < j and j < 3), sa.OperandError),
    "a lambda of one index": (lambda: sa.from_index((T, S), lambda i: i), sa.OperandError),
    "a high power of sizes": (lambda: sa.zeros((T + S) ** 60), sa.ShapeError),
    "a size that becomes a half": (lambda: sa.split_axis(X, -1, (2, d / 2)).subs({d: 3}), sa.ShapeError),
    "a hostile argument": (lambda: sa.lambdify([X, sympy.Symbol("a=print(1)", real=True)], X), sa.NamingError),
    "a hostile size": (
        lambda: sa.zeros(sympy.Symbol("__import__('os')", integer=True, positive=True)), sa.NamingError,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RAW)
def test_mistakes_are_errors_of_symattn(name):
    make, error = RAW[name]
    with pytest.raises(error):
        make()


def test_a_misspelt_name_is_met_with_the_right_one():
    with pytest.raises(AttributeError, match="did you mean 'softmax'"):
        sa.softmx  # noqa: B018


def test_a_large_gradient_is_pickled_small():
    y = start = sa.tensor("x", T, d)
    for _ in range(50):
        y = y + sa.softmax(y @ y.T / sympy.sqrt(d)) @ y
    g = sa.gradient(y, start)
    stored = pickle.dumps(g)
    assert len(stored) < 200_000
    assert pickle.loads(stored)[start] is g[start]
