"""Reference values: entry formulas evaluated as they stand, against NumPy written by hand."""

import re

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.codegen.reference import values
from symattn.codegen.sampling import generic_array, generic_scalars, generic_sizes
from symattn.core.boxes import Code
from symattn.core.operation import Operation
from symattn.scalars.formulas import Choice

T, S, d, e, h = sa.sizes("T S d e h")
X, Y, Q, K, V = (sa.tensor(a, s) for a, s in (("X", "T d"), ("Y", "T d"), ("Q", "T d"), ("K", "S d"), ("V", "S e")))
Z, M, u, c = sa.tensor("Z", T, S), sa.tensor("M", T, S, binary=True), sa.tensor("u", d), sa.tensor("c")
W, H = sa.tensor("W", h, T, d), sa.tensor("H", T, h * d)
tau = sympy.Symbol("tau", positive=True)
SIZES = {T: 4, S: 5, d: 3, e: 6, h: 2}
rng = np.random.default_rng(5)
ARRAYS = {x: rng.normal(size=tuple(int(size.subs(SIZES)) for size in x.shape)) for x in (X, Y, Q, K, V, Z, u, c, W, H)}
ARRAYS[M] = rng.random((4, 5)) < 0.5
ARRAYS[M][1] = False
a = {x.name: array for x, array in ARRAYS.items()}


def reference(x):
    found = values([x], ARRAYS, {**SIZES, tau: 0.7})[x]
    assert found.shape == tuple(int(size.subs(SIZES)) for size in x.shape)
    return found


def softmax(z, axis=-1):
    weights = np.exp(z - z.max(axis, keepdims=True))
    return weights / weights.sum(axis, keepdims=True)


def masked():
    weights = np.exp(a["Z"]) * a["M"]
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total)


BY_HAND = {
    "attention": (sa.softmax(Q @ K.T / sympy.sqrt(d)) @ V, lambda: softmax(a["Q"] @ a["K"].T / np.sqrt(3)) @ a["V"]),
    "softmax of columns": (sa.softmax(Z, axis=0), lambda: softmax(a["Z"], 0)),
    "masked softmax with an empty row": (sa.softmax(Z, where=M), masked),
    "logsumexp": (sa.logsumexp(Z), lambda: np.log(np.exp(a["Z"]).sum(-1))),
    "layer norm": (
        (X - sa.mean(X, -1, True)) * sa.rsqrt(sa.mean((X - sa.mean(X, -1, True)) ** 2, -1, True) + tau),
        lambda: (a["X"] - a["X"].mean(-1, keepdims=True)) / np.sqrt(a["X"].var(-1, keepdims=True) + 0.7),
    ),
    "broadcasting": (X * u - W + c, lambda: a["X"] * a["u"] - a["W"] + a["c"]),
    "extremes": (sa.maximum(sa.max(X, -1, True), Y) - sa.min(Y), lambda: (
        np.maximum(a["X"].max(-1, keepdims=True), a["Y"]) - a["Y"].min())),
    "powers": (sa.exp(X) ** tau + 2**Y, lambda: np.exp(a["X"]) ** 0.7 + 2 ** a["Y"]),
    "choice": (sa.where((X > 0) & ~(Y > 0), X, tau * Y), lambda: (
        np.where((a["X"] > 0) & ~(a["Y"] > 0), a["X"], 0.7 * a["Y"]))),
    "einsum": (sa.einsum("htd,td,d->ht", W, X, u), lambda: np.einsum("htd,td,d->ht", a["W"], a["X"], a["u"])),
    "layout": (sa.merge_axes(sa.moveaxis(sa.split_axis(H, -1, (h, d)), 1, 0), (0, 1)), lambda: (
        a["H"].reshape(4, 2, 3).transpose(1, 0, 2).reshape(8, 3))),
    "slices": (sa.concat([X[1:, ::-1], Y[:1], u[None]], 0), lambda: (
        np.concatenate([a["X"][1:, ::-1], a["Y"][:1], a["u"][None]]))),
    "repeat": (sa.repeat(X, 2, axis=0), lambda: np.repeat(a["X"], 2, 0)),
    "causal": (sa.from_index((T, S), lambda i, j: sympy.Piecewise((0, j <= i), (-sympy.oo, True))), lambda: (
        np.where(np.arange(5) <= np.arange(4)[:, None], 0, -np.inf))),
    "sinusoids": (sa.from_index((T, d), lambda i, j: sympy.sin(i / 10000 ** (2 * sympy.floor(j / 2) / d))), lambda: (
        np.sin(np.arange(4)[:, None] / 10000 ** (2 * (np.arange(3) // 2) / 3)))),
    "identity": (sa.eye(T) + sa.ones(T, T), lambda: np.eye(4) + 1),
    "diagonals": (sa.diag(u) @ sa.outer(u, u) * sa.trace(sa.outer(u, u)), lambda: (
        np.diag(a["u"]) @ np.outer(a["u"], a["u"]) * (a["u"] @ a["u"]))),
    "functions": (sa.gelu(X) + sa.erf(Y) + sa.floor(X) + sa.sign(Y) + sa.abs(X), lambda: (
        a["X"] * (1 + erf(a["X"] / np.sqrt(2))) / 2 + erf(a["Y"]) + np.floor(a["X"]) + np.sign(a["Y"]) + abs(a["X"]))),
    "named": (sa.let("P", sa.softmax(Z)) @ V, lambda: softmax(a["Z"]) @ a["V"]),
    "a scalar": (sa.sum(X) * 0 + T / tau, lambda: np.asarray(4 / 0.7)),
}  # fmt: skip


def erf(x):
    special = pytest.importorskip("scipy.special")
    return special.erf(x)


@pytest.mark.parametrize("name", BY_HAND)
def test_reference_values_are_those_written_by_hand(name):
    x, by_hand = BY_HAND[name]
    np.testing.assert_allclose(reference(x), by_hand(), rtol=1e-12, atol=1e-14)


def test_reference_values_of_a_gradient():
    O = sa.let("O", sa.softmax(Q @ K.T) @ V)
    g = sa.gradient({O: sa.ones(T, e)}, [V])
    np.testing.assert_allclose(reference(g[V]), softmax(a["Q"] @ a["K"].T).T @ np.ones((4, 6)), rtol=1e-12)


def test_all_nodes_below_get_their_values_once():
    P = sa.softmax(Z)
    found = values([P @ V, P], ARRAYS, SIZES)
    assert set(found) == {Z, V, P, P @ V}
    assert found[Z] is ARRAYS[Z]


def test_complex_arrays_give_complex_values():
    y = sa.sum(sa.tanh(X * X))
    moved = ARRAYS[X].astype(complex)
    moved[2, 1] += 1e-30j
    slope = values([y], {X: moved}, SIZES)[y].imag / 1e-30
    z = a["X"][2, 1]
    assert slope == pytest.approx(2 * z * (1 - np.tanh(z * z) ** 2), rel=1e-12)


def test_reference_values_do_not_use_the_numpy_of_a_record():
    record = sa.tanh(X).op
    sound = record.numpy
    object.__setattr__(record, "numpy", None)
    try:
        np.testing.assert_allclose(reference(sa.tanh(X)), np.tanh(a["X"]), rtol=1e-14)
    finally:
        object.__setattr__(record, "numpy", sound)


def odd(entry):
    """An operation of X's shape with a given entry formula."""
    return Operation(
        "odd", shape=lambda x: x.shape, entry=entry, vjp=None, jvp=None, numpy=lambda code, node, x: x,
        notation=lambda p, node: (Code("odd"), 9), reason="none",
    )(X)  # fmt: skip


@pytest.mark.parametrize(
    ("shift", "error"), [(-1, IndexError), (1, IndexError), (sympy.Rational(1, 2), ValueError)], ids=str
)
def test_a_read_out_of_range_is_an_error(shift, error):
    x = odd(lambda read, index, node: read(0, (index[0] + shift, index[1])))
    with pytest.raises(error):
        reference(x)


def test_a_sum_that_runs_too_far_is_an_error():
    k = sympy.Dummy("k", integer=True)
    x = odd(lambda read, index, node: sympy.Sum(read(0, (index[0], k)), (k, 0, d)))
    width = a["X"].shape[1]
    with pytest.raises(IndexError, match=re.escape(f"at the index 0, {width} of an array of shape {a['X'].shape}")):
        reference(x)


def test_what_an_input_is_called_where_no_value_is_known():
    x = odd(lambda read, index, node: sympy.gamma(read(0, index)))
    with pytest.raises(sa.NoRuleError, match=re.escape("no value is known for gamma in gamma(_input0[")):
        reference(x)


def test_a_choice_that_is_not_taken_is_not_read():
    x = odd(lambda read, index, node: Choice(index[0] > 0, read(0, (index[0] - 1, index[1])), sympy.S.Zero))
    np.testing.assert_array_equal(reference(x), np.concatenate([np.zeros((1, 3)), a["X"][:-1]]))


def test_an_unknown_function_is_an_error():
    with pytest.raises(sa.NoRuleError, match="zeta"):
        reference(odd(lambda read, index, node: sympy.zeta(read(0, index))))


def test_a_missing_array_is_an_error():
    with pytest.raises(KeyError):
        values([X + Y], {X: ARRAYS[X]}, SIZES)


def test_generic_sizes_are_distinct_and_none_is_1():
    for seed in range(20):
        sizes = generic_sizes([sa.softmax(Q @ K.T) @ V, W], seed)
        assert set(sizes) == {T, S, d, e, h}
        assert len(set(sizes.values())) == 5
        assert min(sizes.values()) >= 2


def test_generic_sizes_make_every_size_a_positive_integer():
    D, n = sa.sizes("D n")
    x = sa.split_axis(sa.tensor("A", T, D), -1, (h, D / h))
    y = sa.tensor("B", n - 3, 2 * n)
    for seed in range(10):
        sizes = generic_sizes([x, y], seed)
        assert sizes[D] % sizes[h] == 0
        assert sizes[n] > 3
    with pytest.raises(sa.EvaluationError, match="sizes"):
        generic_sizes([sa.tensor("A", n - 20)])


def test_generic_scalars_follow_their_assumptions():
    below = sympy.Symbol("below", negative=True)
    found = generic_scalars([X * tau * below], np.random.default_rng(0))
    assert found[tau] > 0 > found[below]
    assert set(found) == {tau, below}


@pytest.mark.parametrize(
    ("hypothesis", "holds"),
    [
        ("binary", lambda z: z.dtype == bool),
        ("integer", lambda z: z.dtype.kind == "i"),
        ("permutation", lambda z: (z @ z.T == np.eye(4)).all() and set(z.flat) == {0, 1}),
        ("orthogonal", lambda z: np.allclose(z @ z.T, np.eye(4))),
        ("symmetric", lambda z: (z == z.T).all()),
        ("positive", lambda z: (z > 0).all()),
        ("invertible", lambda z: np.linalg.cond(z) < 1e3),
    ],
)  # fmt: skip
def test_generic_arrays_satisfy_what_was_declared(hypothesis, holds):
    x = sa.tensor("A", T, T, **{hypothesis: True})
    for seed in range(5):
        assert holds(generic_array(x, (4, 4), np.random.default_rng(seed)))
