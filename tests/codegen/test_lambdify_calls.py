"""Calling compiled functions: sizes, keywords, results, names, pickling, checks, and clear errors."""

import contextlib
import pickle
import re

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.codegen import NumPyFunction
from symattn.ops import RECORDS

from ..compiled import (
    ALLOWED,
    K,
    Q,
    S,
    T,
    V,
    X,
    attention,
    backward_by_hand,
    body,
    code,
    compile_attention,
    d,
    e,
    h,
    n,
    normal,
    x,
)


@pytest.fixture(scope="module")
def compiled():
    return compile_attention()


# --- sizes and keywords ---


def test_sizes_come_from_the_shapes():
    f = sa.lambdify([X], sa.sum(X, -1) / S + T)
    np.testing.assert_allclose(f(np.ones((2, 5))), 3.0)


def test_scalars_and_unbound_sizes_are_keywords():
    tau = sympy.Symbol("tau", positive=True)
    f = sa.lambdify([x], sa.ones(h, 1) * x / tau)
    assert f(np.ones(3), h=2, tau=4.0).shape == (2, 3)
    with pytest.raises(sa.EvaluationError, match=r"h=\.\.\., tau=\.\.\."):
        f(np.ones(3))
    with pytest.raises(sa.EvaluationError, match=r"give h=\.\.\.: it cannot be read off .*n = 3"):
        f(np.ones(3), tau=1.0)


def test_a_scalar_symbol_may_be_an_argument():
    tau = sympy.Symbol("tau", positive=True)
    g = sa.gradient(sa.softmax(x / tau), [x, tau])
    f = sa.lambdify([x, tau, g.cotangent], g)
    dx, dtau = f(np.arange(3.0), 2.0, np.array([1.0, 0.5, -1]))
    assert dx.shape == (3,)
    assert np.shape(dtau) == ()
    np.testing.assert_allclose(dtau, -(np.arange(3.0) * dx).sum() / 2.0, rtol=1e-12)


def test_either_factor_of_a_product_of_sizes_is_enough():
    H = sa.tensor("H", T, h * d)
    f = sa.lambdify([H], sa.split_axis(H, -1, (h, d)))
    a = np.arange(24.0).reshape(2, 12)
    for known in ({"h": 3}, {"d": 4}, {"h": 3, "d": 4}):
        np.testing.assert_array_equal(f(a, **known), a.reshape(2, 3, 4))
    with pytest.raises(sa.EvaluationError, match=r"h=\.\.\."):
        f(a)
    with pytest.raises(sa.EvaluationError, match=r"H has shape \(2, 12\).*h = 5"):  # 5 does not divide 12
        f(a, h=5)
    with pytest.raises(sa.EvaluationError, match=r"H has shape \(2, 12\)"):
        f(a, h=3, d=5)


def test_a_factor_is_read_off_another_argument():
    H, W = sa.tensor("H", T, h * d), sa.tensor("W", d)
    f = sa.lambdify([H, W], sa.split_axis(H, -1, (h, d)) * W)
    assert f(np.ones((2, 12)), np.ones(4)).shape == (2, 3, 4)


def test_sizes_that_are_sums_are_checked_and_solved():
    H = sa.tensor("H", T, n + 1)
    f = sa.lambdify([H], sa.ones(n) * sa.sum(H))
    assert f(np.ones((2, 5))).shape == (4,)
    with pytest.raises(sa.EvaluationError, match=r"H has shape \(2, 1\)|n=\.\.\."):
        f(np.ones((2, 1)))
    both = sa.lambdify([H, x], sa.sum(H) * x)
    with pytest.raises(sa.EvaluationError, match=r"n \+ 1 = 4.*n = 3"):
        both(np.ones((2, 5)), np.ones(3))


@pytest.mark.parametrize("size", [0, -1, 2.5, 2.0, True, "3", None, 1j])
def test_a_size_keyword_is_a_positive_integer(size):
    with pytest.raises(sa.EvaluationError, match="h is a|size h"):
        sa.lambdify([x], sa.ones(h, 1) * x)(np.ones(3), h=size)


def test_unknown_keywords_are_named():
    with pytest.raises(sa.EvaluationError, match="'q' is no size or scalar"):
        sa.lambdify([x], x)(np.ones(3), q=1)


def test_a_given_size_is_held_against_the_shape():
    with pytest.raises(sa.EvaluationError, match=r"x has shape \(3,\).*n = 4"):
        sa.lambdify([x], x / n)(np.ones(3), n=4)


# --- what cannot be used ---


def test_a_misfit_names_the_argument_the_shapes_and_the_sizes_so_far(compiled):
    with pytest.raises(sa.EvaluationError) as caught:
        compiled(np.ones((4, 3)), np.ones((5, 7)), np.ones((5, 6)), np.ones((4, 6)))
    for part in ("K has shape (5, 7)", "K[S, d]", "axis -1 must be d = 3", "Q[T, d]", "not 7", "T = 4"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones(3), r"X has shape \(3,\), of 1 axes: X\[T, S\] has 2"),
        (2.0, r"X has shape \(\)"),
        (np.ones((2, 3), object), "X has dtype object"),
        (np.array([["a", "b"]]), "X has dtype <U1"),
        (np.array([["2020-01-01"]], "M8[D]"), "X has dtype datetime64"),
        ("text", "X has dtype"),
        (None, "X has dtype object"),
        ([[1, 2], [3]], r"X is no array for X\[T, S\]"),
        (np.ones((0, 3)), r"X has shape \(0, 3\), which is empty"),
        (np.ones((2, 0)), r"X has shape \(2, 0\), which is empty"),
        (np.ones((0, 2, 3)), "which is empty"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(value, message):
    with pytest.raises(sa.EvaluationError, match=message):
        sa.lambdify([X], X * 2)(value)


def test_a_binary_argument_takes_zeros_and_ones_only():
    f = sa.lambdify([X, ALLOWED], sa.where(ALLOWED, X, 0))
    np.testing.assert_array_equal(f(np.full((1, 2), 3.0), [[1, 0]]), [[3, 0]])
    with pytest.raises(sa.EvaluationError, match="A is declared binary"):
        f(np.ones((1, 2)), [[0.5, 1]])
    with pytest.raises(sa.EvaluationError, match="A is declared binary"):
        f(np.ones((1, 2)), [[np.nan, 1]])


def test_missing_and_extra_arguments_are_counted(compiled):
    for arrays in ([], [np.ones((2, 3))], [np.ones((2, 3))] * 5):
        with pytest.raises(sa.EvaluationError, match=rf"\(Q, K, V, dO\) by position, 4 in all, not {len(arrays)}"):
            compiled(*arrays)


def test_outputs_need_their_tensors_among_the_arguments():
    with pytest.raises(sa.OperandError, match=r"depend on K\[S, d\], V\[S, e\].*arguments Q\[T, d\]"):
        sa.lambdify([Q], attention())
    g = sa.gradient(attention(), [Q])
    with pytest.raises(sa.OperandError, match=r"dO\[T, e\]"):
        sa.lambdify([Q, K, V], g)


@pytest.mark.parametrize("bad", ["Q", 1, None, X + 1, sa.softmax(X), sa.let("Y", X * 2), sa.eye(T), np.ones(3)])
def test_arguments_are_named_tensors_and_symbols(bad):
    with pytest.raises(sa.OperandError):
        sa.lambdify([X, bad], X)


def test_an_argument_is_given_once():
    with pytest.raises(sa.NamingError, match="'X' is given twice"):
        sa.lambdify([X, X], X)
    with pytest.raises(sa.NamingError):
        sa.lambdify([X, sa.tensor("X", d)], X)


@pytest.mark.parametrize("bad", ["X", None, object()])
def test_outputs_are_tensors(bad):
    with pytest.raises(sa.OperandError):
        sa.lambdify([X], bad)


def test_unused_arguments_are_still_checked():
    f = sa.lambdify([X, x], X * 2)
    assert f(np.ones((2, 3)), np.ones(4)).shape == (2, 3)
    with pytest.raises(sa.EvaluationError, match="x has shape"):
        f(np.ones((2, 3)), 1.0)


def test_a_matrix_symbol_is_an_argument_too():
    f = sa.lambdify([sympy.MatrixSymbol("X", T, S)], X * 2)
    np.testing.assert_array_equal(f(np.ones((2, 3))), 2 * np.ones((2, 3)))


# --- what comes back ---


def test_one_output_is_an_array_several_are_a_flat_tuple(compiled):
    z = np.ones((2, 3))
    assert isinstance(sa.lambdify([X], X * 2)(z), np.ndarray)
    assert isinstance(sa.lambdify(X, X * 2)(z), np.ndarray)
    (alone,) = sa.lambdify([X], [X * 2])(z)
    assert alone.shape == (2, 3)
    nested = sa.lambdify([X], [X, [sa.sum(X), (X.T,)]])(z)
    assert isinstance(nested, tuple)
    assert [np.shape(a) for a in nested] == [(2, 3), (), (3, 2)]


def test_gradients_come_in_the_order_they_were_asked_for():
    O = attention()
    for order in ([Q, K, V], [V, Q, K]):
        g = sa.gradient(O, order)
        out = sa.lambdify([Q, K, V, g.cotangent], g)(np.ones((4, 3)), np.ones((5, 3)), np.ones((5, 6)), np.ones((4, 6)))
        assert [a.shape for a in out] == [{Q: (4, 3), K: (5, 3), V: (5, 6)}[y] for y in order]


def test_a_gradient_entry_and_a_step_compile_alone(rng):
    g = sa.gradient(attention(), [Q, K, V])
    arrays = [normal(rng, T, d), normal(rng, S, d), normal(rng, S, e), normal(rng, T, e)]
    got = sa.lambdify([Q, K, V, g.cotangent], g[K])(*arrays)
    np.testing.assert_allclose(got, backward_by_hand(*arrays)[2], rtol=1e-12)
    assert sa.lambdify([Q, K, V, g.cotangent], g["dZ"])(*arrays).shape == (4, 5)


def views():
    y = sa.let("y", X * 2)
    return [X, X.T, X[0], X[:, ::-1], X[None], sa.moveaxis(X, 0, 1), sa.merge_axes(X, (0, 1)),
            sa.ones(T, S), sa.ones(3, 1) * sa.sum(X), y, y.T, y, X + 1, sa.split_axis(X, -1, (S, 1))]  # fmt: skip


def test_outputs_may_be_written_to_and_share_nothing_with_the_arguments():
    z = np.arange(6.0).reshape(2, 3)
    for result in sa.lambdify([X], views())(z):
        assert result.flags.writeable
        assert not np.may_share_memory(result, z)
        result += 1
    np.testing.assert_array_equal(z, np.arange(6.0).reshape(2, 3))


def test_outputs_share_nothing_with_each_other():
    out = sa.lambdify([X], views())(np.arange(6.0).reshape(2, 3))
    shared = [(i, j) for i in range(len(out)) for j in range(i) if np.may_share_memory(out[i], out[j])]
    assert not shared


def test_constants_are_outputs_too():
    f = sa.lambdify([X], [sa.eye(T), sa.ones(2, 3), sympy.Rational(1, 2), 3, T])
    got = f(np.ones((2, 3), np.float32))
    assert [np.shape(a) for a in got] == [(2, 2), (2, 3), (), (), ()]
    assert {np.asarray(a).dtype for a in got} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(sa.lambdify([], sa.ones(n, 2))(n=3), np.ones((3, 2)))


def test_arrays_are_not_written_to(compiled, rng):
    arrays = [normal(rng, T, d), normal(rng, S, d), normal(rng, S, e), normal(rng, T, e)]
    before = [a.copy() for a in arrays]
    for a in arrays:
        a.flags.writeable = False
    compiled(*arrays)
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_layouts_of_memory_do_not_matter(compiled, rng):
    arrays = [normal(rng, T, d), normal(rng, S, d), normal(rng, S, e), normal(rng, T, e)]
    odd = [np.asfortranarray(arrays[0]), arrays[1][::-1][::-1], np.repeat(arrays[2], 2, 1)[:, ::2], arrays[3]]
    for got, want in zip(compiled(*odd), compiled(*arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)


def test_sizes_of_1_work(compiled):
    got = compiled(np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1)))
    assert [a.shape for a in got] == [(1, 1)] * 4
    assert [a.item() for a in got] == [1, 0, 0, 1]


# --- pickling, checking, depth ---


def test_functions_are_pickled(compiled, rng):
    again = pickle.loads(pickle.dumps(compiled))
    assert isinstance(again, NumPyFunction)
    assert again.source == compiled.source
    arrays = [normal(rng, T, d), normal(rng, S, d), normal(rng, S, e), normal(rng, T, e)]
    for got, want in zip(again(*arrays), compiled(*arrays), strict=True):
        np.testing.assert_array_equal(got, want)


def test_check_says_what_agreed(compiled):
    said = compiled.check()
    for part in ("O: code equals entries", "dQ: gradient equals central differences", "T = "):
        assert part in said


def with_broken_output(f, place, change):
    """The function with one of its outputs changed on the way out."""
    sound = f._function

    def broken(*args, **kwargs):
        out = list(sound(*args, **kwargs))
        out[place] = change(out[place])
        return tuple(out)

    f._function = broken
    return f


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize(
    "change",
    [lambda a: a * (1 + 1e-6), lambda a: a + 1e-6, lambda a: -a, lambda a: np.zeros_like(a), lambda a: a * np.nan],
    ids=["scaled", "shifted", "negated", "zero", "nan"],
)
def test_check_finds_a_broken_output(place, change):
    O = attention()
    g = sa.gradient(O, [Q, K, V])
    f = with_broken_output(sa.lambdify([Q, K, V, g.cotangent], [O, g]), place, change)
    with pytest.raises(sa.EvaluationError, match=["O", "dQ", "dK", "dV"][place]):
        f.check()


def test_check_finds_a_wrong_shape():
    f = with_broken_output(sa.lambdify([X], [X * 2]), 0, lambda a: a.T)
    with pytest.raises(sa.EvaluationError, match="shape"):
        f.check()


@contextlib.contextmanager
def altered(record, part, value):
    """A record with one of its parts exchanged for a while."""
    sound = getattr(record, part)
    object.__setattr__(record, part, value)
    try:
        yield
    finally:
        object.__setattr__(record, part, sound)


def test_check_finds_wrong_code_of_an_operation():
    with altered(RECORDS["tanh"], "numpy", lambda code, node, a: f"np.sinh({a})"):
        f = sa.lambdify([x], sa.tanh(x))
    with pytest.raises(sa.EvaluationError, match=r"entry \[0\]"):
        f.check()


def test_check_finds_a_wrong_derivative_rule():
    with altered(RECORDS["sin"], "vjp", lambda g, y, a: (g * sa.cos(a) * 2,)):
        g = sa.gradient(sa.sin(x), [x])
    with pytest.raises(sa.EvaluationError, match="dx"):
        sa.lambdify([x, g.cotangent], g).check()


def test_check_covers_masks_scalars_and_losses():
    tau, cap = sympy.symbols("tau cap", positive=True)
    causal = sa.from_index((T, S), lambda i, j: sympy.Piecewise((0, j <= i), (-sympy.oo, True)))
    Z = sa.let("Z", cap * sa.tanh(Q @ K.T / (tau * cap)))
    loss = sa.sum(sa.softmax(Z + causal, where=ALLOWED) @ V * sa.tensor("Y", T, e)) + sa.sum(sa.logsumexp(Z))
    g = sa.gradient(loss, [Q, K, V, tau, cap, Z])
    said = sa.lambdify([Q, K, V, ALLOWED, sa.tensor("Y", T, e)], [loss, g]).check()
    for name in ("dtau", "dcap", "dQ"):
        assert f"{name}: gradient equals central differences" in said


@pytest.mark.parametrize("step", ["sum", "product", "function", "negation"])
def test_a_chain_of_5000_unnamed_nodes_compiles_and_runs(step):
    y = x
    for k in range(5000):
        match step:
            case "sum":
                y = y + x
            case "product":
                y = y * sa.sin(x) if k % 2 else y + 1
            case "function":
                y = sa.sin(y)
            case _:
                y = -sa.sin(y)
    got = sa.lambdify([x], y)(np.full(3, 0.5))
    want = np.float64(0.5)
    for k in range(5000):
        match step:
            case "sum":
                want = want + 0.5
            case "product":
                want = want * np.sin(0.5) if k % 2 else want + 1
            case "function":
                want = np.sin(want)
            case _:
                want = -np.sin(want)
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_100_layers_with_their_gradient_compile_and_run(rng):
    y = start = sa.tensor("x", T, d)
    for _ in range(100):
        y = y + sa.softmax(y @ y.T / sympy.sqrt(d)) @ y / 100
    g = sa.gradient(y, [start])
    f = sa.lambdify([start, g.cotangent], [y, g])
    assert len(re.findall(r"= softmax\(", code(f))) == 100
    z, cot, direction = normal(rng, T, d) / 10, normal(rng, T, d), normal(rng, T, d)
    _, dx = f(z, cot)
    moved = f(z + 1e-30j * direction, cot)[0].imag / 1e-30
    np.testing.assert_allclose((moved * cot).sum(), (dx * direction).sum(), rtol=1e-10)


def test_a_graph_of_many_paths_is_compiled_once_per_node():
    y = x
    for _ in range(60):
        y = (y + y * y) / 2
    f = sa.lambdify([x], y)
    assert len(body(f)) < 200
    assert np.isfinite(f(np.full(3, 0.5))).all()
