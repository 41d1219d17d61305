"""Compiled NumPy functions: readable source, stable numbers, masks, loop axes and dtypes."""

import re
import subprocess
import sys

import numpy as np
import pytest
import sympy

import symattn as sa

from ..compiled import (
    ALLOWED,
    HUGE,
    K,
    M,
    Q,
    S,
    T,
    V,
    X,
    backward_by_hand,
    body,
    c,
    code,
    compile_attention,
    d,
    e,
    h,
    n,
    normal,
    numpy_softmax,
    x,
)


@pytest.fixture(scope="module")
def compiled():
    return compile_attention()


# --- the source ---


def test_the_source_is_what_a_person_would_have_written(compiled):
    assert body(compiled) == [
        "def f(Q, K, V, dO):",
        "d = Q.shape[-1]",
        "Z = Q @ K.mT / math.sqrt(d)",
        "P = softmax(Z)",
        "O = P @ V",
        "dP = dO @ V.mT",
        "# (P * (dP - rowsum(P * dP)))[T, S], in a form that is equal and no less accurate",
        "dZ = softmax_vjp(dP, P)",
        "dQ = dZ @ K / math.sqrt(d)",
        "dK = dZ.mT @ Q / math.sqrt(d)",
        "dV = P.mT @ dO",
        "return O, sum_to(dQ, Q.shape), sum_to(dK, K.shape), sum_to(dV, V.shape)",
    ]


def test_the_source_documents_the_shapes(compiled):
    assert "Q[T, d], K[S, d], V[S, e], dO[T, e]" in compiled.source


def test_the_numbers_are_those_of_the_formula(compiled, rng):
    arrays = [normal(rng, T, d), normal(rng, S, d), normal(rng, S, e), normal(rng, T, e)]
    for got, want in zip(compiled(*arrays), backward_by_hand(*arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


def test_the_source_alone_gives_the_same_numbers(compiled, rng):
    arrays = [normal(rng, T, d), normal(rng, S, d), normal(rng, S, e), normal(rng, T, e)]
    namespace = {}
    exec(compiled.source, namespace)
    for got, want in zip(namespace["f"](*arrays), compiled(*arrays), strict=True):
        np.testing.assert_array_equal(got, want)


def test_the_source_runs_in_a_python_that_has_never_heard_of_symattn(compiled, tmp_path):
    (tmp_path / "attention.py").write_text(compiled.source)
    script = tmp_path / "stand_alone.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport numpy as np\nfrom attention import f"
        + "\nout = f(np.ones((2, 3)), np.eye(4, 3), np.ones((4, 5)), np.ones((2, 5)))"
        + "\nassert not any(m.startswith(('symattn', 'sympy')) for m in sys.modules)"
        + "\nprint([x.shape for x in out])\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", str(script)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[(2, 5), (2, 3), (4, 3), (4, 5)]"


def test_only_what_is_needed_is_imported_and_carried_along():
    source = sa.lambdify([x], x + 1).source
    assert "math" not in source
    assert "scipy" not in source
    assert "def softmax" not in source
    assert "scipy" in sa.lambdify([x], sa.erf(x)).source


@pytest.mark.parametrize(
    ("spec", "a", "b"),
    [
        ("htd,hsd->hts", "h T d", "h S d"),
        ("hts,hse->hte", "h T S", "h S e"),
        ("thd,shd->hts", "T h d", "S h d"),
        ("hts,she->the", "h T S", "S h e"),
        ("htd,de->hte", "h T d", "d e"),
        ("td,hde->hte", "T d", "h d e"),
        ("td,hed->hte", "T d", "h e d"),
        ("hts,hte->hse", "h T S", "h T e"),
        ("td,sd->ts", "T d", "S d"),
        ("dt,ds->st", "d T", "d S"),
        ("tn,nhd->htd", "T n", "n h d"),
        ("htd,hde->te", "h T d", "h d e"),
    ],
)
def test_head_axis_contractions_are_matrix_products(spec, a, b, rng):
    A, B = sa.tensor("A", a), sa.tensor("B", b)
    f = sa.lambdify([A, B], sa.einsum(spec, A, B))
    assert "einsum" not in code(f)
    assert "@" in code(f)
    one, two = normal(rng, *A.shape), normal(rng, *B.shape)
    np.testing.assert_allclose(f(one, two), np.einsum(spec, one, two), rtol=1e-12, atol=1e-13)
    loops = normal(rng, 3, *A.shape)
    np.testing.assert_allclose(f(loops, two), np.stack([np.einsum(spec, z, two) for z in loops]), atol=1e-12)


def test_gradients_of_head_axis_contractions_are_matrix_products_without_outer_transposes():
    q, k, v = sa.tensor("q", "h T d"), sa.tensor("k", "h S d"), sa.tensor("v", "h S e")
    O = sa.einsum("hts,hse->hte", sa.softmax(sa.einsum("htd,hsd->hts", q, k) / sympy.sqrt(d)), v)
    g = sa.gradient(O, [q, k, v])
    source = code(sa.lambdify([q, k, v, g.cotangent], [O, g]))
    assert "einsum" not in source
    assert "dv = P.mT @ dO" in source


def test_shared_work_is_done_once_for_bare_input_too():
    O = sa.softmax(Q @ K.T / sympy.sqrt(d)) @ V
    g = sa.gradient(O, [Q, K, V])
    f = sa.lambdify([Q, K, V, g.cotangent], [O, g])
    assert len(re.findall(r"= softmax\(", code(f))) == 1
    assert f.source.count("Q @ K.mT") == 1
    layer = lambda y: sa.softmax(y @ y.T) @ y  # noqa: E731
    y = sa.tensor("Y", "T d")
    twice = layer(layer(y)) + layer(y)
    assert len(re.findall(r"(?<!def )softmax\(", code(sa.lambdify([y], twice)))) == 2


def test_two_intermediates_of_one_name_keep_apart():
    one, two = sa.let("y", sa.exp(x)), sa.let("y", sa.tanh(x))
    f = sa.lambdify([x], [one * two, one, two])
    z = np.linspace(-1, 1, 4)
    for got, want in zip(f(z), (np.exp(z) * np.tanh(z), np.exp(z), np.tanh(z)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    assert "y_1 = " in f.source
    assert "y_2 = " in f.source


# --- large logits ---


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("softmax", [1 / (1 + np.exp(-1)), 0, 0, 1 / (1 + np.e)]),
        ("logsumexp", 1e4 + np.log1p(np.exp(-1.0))),
        ("sigmoid", [1, 0, 0.5, 1]),
        ("softplus", [1e4, 0, np.log(2), 9999]),
        ("silu", [1e4, 0, 0, 9999]),
        ("gelu", [1e4, 0, 0, 9999]),
        ("tanh", [1, -1, 0, 1]),
    ],
)
def test_large_logits_do_not_overflow(name, want, dtype):
    got = sa.lambdify([x], getattr(sa, name)(x))(HUGE.astype(dtype))
    assert got.dtype == dtype
    np.testing.assert_allclose(got, want, rtol=1e-6 if dtype == np.float32 else 1e-14)


@pytest.mark.parametrize("name", ["softmax", "logsumexp", "sigmoid", "softplus", "silu", "gelu", "tanh"])
def test_gradients_at_large_logits_do_not_overflow(name):
    y = getattr(sa, name)(x)
    weight = sa.tensor("w", *y.shape)
    g = sa.gradient({y: weight}, [x])
    (got,) = sa.lambdify([x, weight], g)(HUGE, np.full(y.rank and 4, 0.7) if y.rank else 0.7)
    assert np.isfinite(got).all()


def spelled_out():
    named = sa.let("E", sa.exp(X))
    return {
        "log(sum(exp))": (sa.log(sa.sum(sa.exp(X), -1)), lambda z: np.log(np.exp(z).sum(-1))),
        "log(sum(exp)), kept axis": (sa.log(sa.sum(sa.exp(X), 0, True)), lambda z: np.log(np.exp(z).sum(0)[None])),
        "log(sum(exp)) of all": (sa.log(sa.sum(sa.exp(X))), lambda z: np.log(np.exp(z).sum())),
        "exp / rowsum(exp)": (sa.exp(X) / sa.sum(sa.exp(X), -1, True), numpy_softmax),
        "named exp / rowsum": (named / sa.let("N", sa.sum(named, -1, True)), numpy_softmax),
        "exp / column sum": (sa.exp(X) / sa.sum(sa.exp(X), 0, True), lambda z: numpy_softmax(z.T).T),
        "exp / column sum without its axis": (sa.exp(X) / sa.sum(sa.exp(X), 0), lambda z: numpy_softmax(z.T).T),
        "exp / rowsum with a new axis": (sa.exp(X) / sa.sum(sa.exp(X), -1)[:, None], numpy_softmax),
    }


@pytest.mark.parametrize("spelling", spelled_out())
def test_spelled_out_normalisers_do_not_overflow(spelling, rng):
    y, want = spelled_out()[spelling]
    f = sa.lambdify([X], y)
    z = normal(rng, T, S)
    np.testing.assert_allclose(f(z), want(z), rtol=1e-13)
    shift = 1e4 if spelling.startswith("log") else 0
    np.testing.assert_allclose(f(z + 1e4), want(z) + shift, rtol=1e-11)


@pytest.mark.parametrize(
    "spelling", ["log(sum(exp))", "log(sum(exp)) of all", "exp / rowsum(exp)", "named exp / rowsum"]
)
def test_gradients_of_spelled_out_normalisers_do_not_overflow(spelling, rng):
    y, _ = spelled_out()[spelling]
    weight = sa.tensor("w", *y.shape)
    f = sa.lambdify([X, weight], sa.gradient({y: weight}, [X]))
    z, cot = normal(rng, T, S), normal(rng, *y.shape)
    np.testing.assert_allclose(f(z + 1e4, cot)[0], f(z, cot)[0], rtol=1e-9, atol=1e-11)


# --- masks and empty rows ---


def test_minus_infinity_arrays_are_additive_masks_and_empty_rows_are_zero(rng):
    z, m = normal(rng, T, S), np.zeros((4, 5))
    m[0, 1:], m[2] = -np.inf, -np.inf
    P, L = sa.softmax(X + M), sa.logsumexp(X + M)
    g = sa.gradient({P: sa.tensor("G", T, S), L: sa.tensor("l", T)}, [X, M])
    p, lse, dx, dm = sa.lambdify([X, M, sa.tensor("G", T, S), sa.tensor("l", T)], [P, L, g])(
        z, m, normal(rng, T, S), normal(rng, T)
    )
    np.testing.assert_array_equal(p[2], 0)
    np.testing.assert_array_equal(p[0], [1, 0, 0, 0, 0])
    np.testing.assert_allclose(p[[1, 3]], numpy_softmax(z[[1, 3]]), rtol=1e-13)
    assert lse[2] == -np.inf
    assert lse[0] == z[0, 0]
    assert np.isfinite(dx).all()
    assert np.isfinite(dm).all()
    np.testing.assert_array_equal(dx[2], 0)
    np.testing.assert_array_equal(dx[0, 1:], 0)


@pytest.mark.parametrize("dtype", [bool, int, float])
def test_a_boolean_mask_equals_the_additive_one(dtype, rng):
    z, allowed = normal(rng, T, S), rng.random((4, 5)) < 0.5
    allowed[1] = False
    masked = sa.lambdify([X, ALLOWED], sa.softmax(X, where=ALLOWED))(z, allowed.astype(dtype))
    added = sa.lambdify([X, M], sa.softmax(X + M))(z, np.where(allowed, 0, -np.inf))
    np.testing.assert_array_equal(masked, added)
    assert not masked[~allowed].any()
    assert not masked[1].any()


def test_what_a_mask_hides_does_not_leak(rng):
    z, allowed = normal(rng, T, S), np.ones((4, 5), bool)
    allowed[:, 2], z[:, 2] = False, np.nan
    p = sa.lambdify([X, ALLOWED], sa.softmax(X, where=ALLOWED))(z, allowed)
    assert np.isfinite(p).all()
    assert not p[:, 2].any()


def test_an_empty_row_is_an_error_where_it_was_asked_for(rng):
    z, allowed = normal(rng, T, S), np.ones((4, 5), bool)
    f = sa.lambdify([X, ALLOWED], sa.softmax(X, where=ALLOWED, empty="error"))
    np.testing.assert_allclose(f(z, allowed), numpy_softmax(z), rtol=1e-13)
    allowed[3] = False
    with pytest.raises(ValueError, match="nothing to attend to"):
        f(z, allowed)
    f = sa.lambdify([X, M], sa.softmax(X + M, empty="error"))
    with pytest.raises(ValueError, match="nothing to attend to"):
        f(z, np.where(allowed, 0, -np.inf))


def test_empty_rows_stay_an_error_in_the_gradient(rng):
    P = sa.softmax(X, where=ALLOWED, empty="error")
    g = sa.gradient(P, [X])
    with pytest.raises(ValueError, match="nothing to attend to"):
        sa.lambdify([X, ALLOWED, g.cotangent], g)(normal(rng, T, S), np.zeros((4, 5), bool), normal(rng, T, S))


def test_nan_propagates(rng):
    z = normal(rng, T, S)
    z[1, 2] = np.nan
    p, total, top = sa.lambdify([X], [sa.softmax(X), sa.sum(X), sa.max(X, -1)])(z)
    assert np.isnan(p[1]).all()
    assert np.isfinite(p[[0, 2, 3]]).all()
    assert np.isnan(total)
    assert np.isnan(top[1])
    assert np.isfinite(top[0])


# --- loop axes ---


def test_loop_axes_are_a_loop(compiled, rng):
    arrays = [normal(rng, 2, 3, *axes) for axes in ((T, d), (S, d), (S, e), (T, e))]
    got = compiled(*arrays)
    for place in np.ndindex(2, 3):
        for one, want in zip(got, compiled(*(a[place] for a in arrays)), strict=True):
            np.testing.assert_allclose(one[place], want, rtol=1e-12, atol=1e-14)


def test_loop_axes_broadcast_and_gradients_sum_over_the_ones_an_argument_lacks(compiled, rng):
    q, k, v, cot = normal(rng, 2, 3, T, d), normal(rng, 3, S, d), normal(rng, 2, 1, S, e), normal(rng, 2, 3, T, e)
    O, dq, dk, dv = compiled(q, k, v, cot)
    assert [a.shape for a in (O, dq, dk, dv)] == [cot.shape, q.shape, k.shape, v.shape]
    each = [backward_by_hand(q[i, j], k[j], v[i, 0], cot[i, j])[1:] for i, j in np.ndindex(2, 3)]
    wanted_k = np.array([each[0][1] + each[3][1], each[1][1] + each[4][1], each[2][1] + each[5][1]])
    wanted_v = np.array([[sum(each[m][2] for m in range(3))], [sum(each[m][2] for m in range(3, 6))]])
    np.testing.assert_allclose(dk, wanted_k, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(dv, wanted_v, rtol=1e-11, atol=1e-13)


def test_a_core_axis_of_an_operand_of_smaller_rank_does_not_meet_a_loop_axis(rng):
    b, u = sa.tensor("b", d), sa.tensor("u", T)
    f = sa.lambdify([Q, b, u], [Q * b, Q + u[:, None], b])
    q, bias, column = normal(rng, 4, T, d), normal(rng, 4, d), normal(rng, 4, T)  # as many loops as rows
    got = f(q, bias, column)
    np.testing.assert_allclose(got[0], q * bias[:, None, :])
    np.testing.assert_allclose(got[1], q + column[..., None])


def test_a_cotangent_without_the_loop_axes_of_its_output_is_an_error(compiled, rng):
    with pytest.raises(sa.EvaluationError, match=r"cotangent dO\[T, e\].*loop axes \(\).*\(2,\)") as caught:
        compiled(normal(rng, 2, T, d), normal(rng, S, d), normal(rng, S, e), normal(rng, T, e))
    assert "Q (2,)" in str(caught.value)
    with pytest.raises(sa.EvaluationError, match="loop axes"):
        compiled(normal(rng, 2, T, d), normal(rng, S, d), normal(rng, S, e), normal(rng, 1, T, e))


def test_loop_axes_that_do_not_broadcast_are_named(compiled, rng):
    with pytest.raises(sa.EvaluationError, match=r"loop axes do not broadcast: Q \(2,\), K \(3,\)"):
        compiled(normal(rng, 2, T, d), normal(rng, 3, S, d), normal(rng, S, e), normal(rng, 3, T, e))


def test_a_loss_needs_no_cotangent_and_sums_over_loops(rng):
    loss = sa.let("L", sa.sum(sa.tanh(Q) * c))
    f = sa.lambdify([Q, c], [loss, sa.gradient(loss, [Q, c])])
    q = normal(rng, 3, T, d)
    value, dq, dc = f(q, 0.7)
    np.testing.assert_allclose(value, 0.7 * np.tanh(q).sum((1, 2)), rtol=1e-13)
    np.testing.assert_allclose(dq, 0.7 * (1 - np.tanh(q) ** 2), rtol=1e-13)
    np.testing.assert_allclose(dc, np.tanh(q).sum(), rtol=1e-13)
    assert np.shape(dc) == ()


def test_rank_0_tensors_take_numbers_and_loops(rng):
    f = sa.lambdify([x, c], c * x)
    z = normal(rng, n)
    np.testing.assert_allclose(f(z, 3), 3 * z)
    np.testing.assert_allclose(f(z, np.array([1.0, 2.0])), np.outer([1, 2], z))
    np.testing.assert_allclose(f(np.stack([z, z]), np.array([1.0, 2.0])), np.outer([1, 2], z))
    g = sa.gradient(c * x, [c, x])
    dc, dx = sa.lambdify([x, c, g.cotangent], g)(z, np.array([1.0, 2.0]), np.ones((2, 7)))
    assert dc.shape == (2,)
    assert dx.shape == (7,)
    np.testing.assert_allclose(dc, [z.sum()] * 2)
    np.testing.assert_allclose(dx, 3)


LOOPED = {
    "layer norm": lambda: (Q - sa.mean(Q, -1, True)) * sa.rsqrt(sa.mean(Q * Q, -1, True) + 1) * sa.tensor("b", d),
    "additive attention": lambda: sa.softmax(sa.tanh(Q[:, None] + K) @ sa.tensor("b", d)) @ V,
    "softcap": lambda: sa.softmax(c * sa.tanh(Q @ K.T / c)) @ V,
    "sink": lambda: sa.softmax(sa.concat([Q @ K.T, sa.tensor("s", T)[:, None]], -1))[:, :-1] @ V,
    "masked": lambda: sa.softmax(sa.where(Q @ K.T > 0, Q @ K.T, c), axis=0).T @ Q,
    "heads": lambda: sa.einsum("htd,de->te", sa.tensor("W", h, T, d) * Q, sa.tensor("R", d, e)),
    "vectors": lambda: (sa.tensor("b", d) @ K.T) * (Q @ sa.tensor("b", d))[:, None],
    "diagonals": lambda: (
        sa.diag(sa.tensor("b", d)) @ K.T + sa.trace(K.T @ K) * c + sa.outer(sa.tensor("b", d), K[:, 0])
    ),
    "layout": lambda: sa.merge_axes(sa.moveaxis(sa.tensor("W", h, T, d), 0, 1), (1, 2))[::-1] * c,
    "max": lambda: sa.max(Q @ K.T, -1) + sa.logsumexp(K) @ K @ Q.T,
}


@pytest.mark.parametrize("name", LOOPED)
@pytest.mark.parametrize("shift", range(4))
def test_gradients_under_loop_axes_are_sums_over_a_python_loop(name, shift, rng):
    y = LOOPED[name]()
    tensors = list(y.tensors)
    g = sa.gradient(y, tensors)
    f = sa.lambdify([*tensors, g.cotangent], [y, g])
    leads = [(3, 2), (2,), (3, 1), ()]
    arrays = [normal(rng, *leads[(k + shift) % 4], *t.shape) for k, t in enumerate(tensors)]
    loop = np.broadcast_shapes(*(a.shape[: a.ndim - t.rank] for a, t in zip(arrays, tensors, strict=True)))
    full = [np.broadcast_to(a, loop + a.shape[a.ndim - t.rank :]) for a, t in zip(arrays, tensors, strict=True)]
    cotangent = normal(rng, *loop, *y.shape)
    got = f(*arrays, cotangent)
    wanted = [np.zeros(a.shape) for a in full]
    for place in np.ndindex(loop):
        value, *parts = f(*(a[place] for a in full), cotangent[place])
        np.testing.assert_allclose(got[0][place], value, rtol=1e-12, atol=1e-13)
        for want, part in zip(wanted, parts, strict=True):
            want[place] = part
    for one, a, want in zip(got[1:], arrays, wanted, strict=True):
        assert one.shape == a.shape
        summed = want.sum(tuple(range(want.ndim - a.ndim)))
        stretched = tuple(k for k, size in enumerate(a.shape) if size == 1 != summed.shape[k])
        np.testing.assert_allclose(one, summed.sum(stretched, keepdims=True), rtol=1e-11, atol=1e-12)


# --- dtypes ---


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
def test_the_dtype_of_the_arguments_is_kept(compiled, dtype, rng):
    arrays = [normal(rng, *axes).astype(dtype) for axes in ((T, d), (S, d), (S, e), (T, e))]
    if np.dtype(dtype).kind == "c":
        smooth = sa.lambdify([Q, K], sa.tanh(Q @ K.T / 3) * sa.from_index((T, S), lambda i, j: i - j) + 1)
        assert smooth(*arrays[:2]).dtype == dtype
        return
    assert {a.dtype for a in compiled(*arrays)} == {np.dtype(dtype)}
    ALiBi = sa.from_index((T, S), lambda i, j: -(i - j) / sympy.sqrt(2))
    causal = sa.from_index((T, S), lambda i, j: sympy.Piecewise((0, j <= i), (-sympy.oo, True)))
    kept = [sa.softmax(X + ALiBi + causal), sa.where(ALLOWED, X, 0), sa.gelu(X), X**2 / 3, sa.eye(3),
            sa.concat([X, sa.ones(T, 2)], -1), sa.mean(X, 0), sa.logsumexp(X), sa.relu(X), X > 0,
            sa.floor(X)]  # fmt: skip
    got = sa.lambdify([X, ALLOWED], kept)(normal(rng, T, S).astype(dtype), rng.random((4, 5)) < 0.5)
    assert [a.dtype for a in got] == [np.bool_ if y.kind == "binary" else dtype for y in kept]


@pytest.mark.parametrize("value", [np.ones((2, 3), int), np.ones((2, 3), bool), np.ones((2, 3), np.uint8), [[1, 2, 3]]])
def test_whole_numbers_become_float64(value):
    assert sa.lambdify([X], X / 2)(value).dtype == np.float64


def test_whole_numbers_take_the_floating_type_of_the_others():
    assert sa.lambdify([X, M], X * M)(np.ones((2, 3), np.float32), np.ones((2, 3), int)).dtype == np.float32
    assert sa.lambdify([X, c], X * c)(np.ones((2, 3), np.float32), 2.5).dtype == np.float32


def test_scalar_keywords_do_not_widen_the_dtype():
    tau = sympy.Symbol("tau", positive=True)
    assert sa.lambdify([X], X / tau)(np.ones((2, 3), np.float32), tau=np.float64(2)).dtype == np.float32


def test_complex_step_gives_derivatives_through_softmax(compiled, rng):
    arrays = [normal(rng, T, d), normal(rng, S, d), normal(rng, S, e), normal(rng, T, e)]
    direction = normal(rng, T, d)
    dq = compiled(*arrays)[1]
    moved = compiled(arrays[0] + 1e-30j * direction, *arrays[1:])[0]
    np.testing.assert_allclose((moved.imag / 1e-30 * arrays[3]).sum(), (dq * direction).sum(), rtol=1e-12)
