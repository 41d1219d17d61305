"""Gradients: the five lines, the mapping, cotangents, variables and names."""

import re

import numpy as np
import pytest
import sympy

import symattn as sa
import symattn.core.operation
from symattn.core.node import topological
from symattn.reading import read

from ..derived import (
    FIVE,
    FIVE_LATEX,
    SIZES,
    K,
    Q,
    S,
    T,
    V,
    X,
    arrays_for,
    assert_gradient,
    bare_attention,
    c,
    d,
    e,
    lines,
    n,
    named_attention,
    run,
    tau,
    x,
)

# --- the five lines ---


@pytest.mark.parametrize("spelling", ["named", "bare", "half named"])
def test_the_five_lines(spelling):
    O = {
        "named": named_attention()[2],
        "bare": bare_attention(),
        "half named": sa.softmax(sa.let("Z", Q @ K.T / sympy.sqrt(d))) @ V,
    }[spelling]
    g = sa.gradient(O, [Q, K, V])
    assert [(s.name, str(g).splitlines()[k].partition(" = ")[2].partition("#")[0].strip(), s.reason)
            for k, s in enumerate(g.steps)] == FIVE  # fmt: skip
    defined = {"named": [], "bare": ["Z = Q @ K.T / sqrt(d)", "P = softmax(Z)"], "half named": ["P = softmax(Z)"]}
    assert lines(g)[5:] == defined[spelling]
    assert [s.name for s in g.definitions] == [line.split()[0] for line in defined[spelling]]


@pytest.mark.parametrize("O", [named_attention()[2], bare_attention()], ids=["named", "bare"])
def test_the_five_lines_in_latex(O):
    shown = sa.gradient(O, [Q, K, V]).latex()
    assert shown.startswith(r"\begin{align}")
    assert shown.rstrip().endswith(r"\end{align}")
    rows = [row.strip() for row in shown.splitlines()[1:-1]]
    for row, start in zip(rows, FIVE_LATEX, strict=False):
        assert row.startswith(start)
        assert r"\text{" in row
    assert sum(r" \\" in row for row in rows) == len(rows) - 1
    assert r"\begin{aligned}" in sa.gradient(O, [Q])._repr_latex_()


def test_every_step_has_a_reason_and_its_expression():
    g = sa.gradient(bare_attention(), [Q, K, V])
    for step in g.steps:
        assert step.reason
        assert step.expression.shape == g[step.name].shape
        assert g[step.name].name == step.name


def test_latex_takes_spellings():
    _, P, O = named_attention()
    assert r"\mathbf{A}^{\top} \, \mathrm{d}O" in sa.gradient(O, [V]).latex(names={P: r"\mathbf{A}"})


def test_the_five_lines_are_right():
    assert_gradient(bare_attention(), [Q, K, V])
    assert_gradient(named_attention()[2], [Q, K, V])


def test_attention_over_a_head_axis():
    q, k, v = sa.tensor("q", "h T d"), sa.tensor("k", "h S d"), sa.tensor("v", "h S e")
    O = sa.softmax(q @ k.mT / sympy.sqrt(d)) @ v
    assert lines(assert_gradient(O, [q, k, v]))[:5] == [
        "dv = P.mT @ dO", "dP = dO @ v.mT", "dZ = P * (dP - rowsum(P * dP))", "dq = dZ @ k / sqrt(d)",
        "dk = dZ.mT @ q / sqrt(d)",
    ]  # fmt: skip


# --- the mapping ---


def test_a_gradient_is_a_mapping_by_variable_and_by_name():
    O = named_attention()[2]
    g = sa.gradient(O, [Q, V])
    assert list(g) == [Q, V]
    assert len(g) == 2
    assert list(g.values()) == [g[Q], g[V]]
    assert dict(g.items()) == {Q: g[Q], V: g[V]}
    assert Q in g
    assert K not in g
    assert "dZ" in g
    assert "dW" not in g
    assert g["dQ"] is g[Q]
    assert g["dZ"].shape == (T, S)
    assert g.get(K) is None
    assert [g[y].shape for y in g] == [Q.shape, V.shape]
    with pytest.raises(KeyError, match="dW"):
        g["dW"]
    with pytest.raises(KeyError, match="not taken with respect to K"):
        g[K]
    assert str(g["dQ"]) == "dZ @ K / sqrt(d)"
    assert str(g["dZ"]) == "P * (dP - rowsum(P * dP))"


def test_a_matrix_symbol_is_a_variable_and_a_key():
    q = sympy.MatrixSymbol("Q", T, d)
    _, _, O = named_attention()
    g = sa.gradient(O, [q])
    assert g[q] is g[Q]
    assert q in g
    assert Q in g


def test_one_variable_needs_no_list_and_twice_is_once():
    _, _, O = named_attention()
    assert list(sa.gradient(O, Q)) == [Q]
    assert list(sa.gradient(O, (Q, V, Q))) == [Q, V]


# --- cotangents ---


def test_the_cotangent_is_named_after_its_output():
    assert sa.gradient(named_attention()[2], [Q]).cotangent is sa.tensor("dO", T, e)
    assert sa.gradient(sa.let("Y", X * X), [X]).cotangent is sa.tensor("dY", T, d)
    assert sa.gradient(X * X, [X]).cotangent is sa.tensor("dO", T, d)


def test_several_outputs_with_given_cotangents():
    Z, _, O = named_attention()
    L = sa.let("L", sa.logsumexp(Z))
    dO, dL = sa.tensor("dO", T, e), sa.tensor("dL", T)
    g = sa.gradient({O: dO, L: dL}, [Q, K, V, Z])
    assert "dZ = P * (dP - rowsum(P * dP)) + dL[:, None] * P" in lines(g)
    assert dict(g.cotangents) == {O: dO, L: dL}
    assert g[Z] is g["dZ"]
    with pytest.raises(sa.OperandError, match="several outputs"):
        _ = g.cotangent
    arrays = arrays_for([Q, K, V, dO, dL])
    joint = sa.sum(O * dO) + sa.sum(L * dL)
    for got, want in zip(run(g, arrays), run(sa.gradient(joint, [Q, K, V, Z]), arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)
    assert_gradient(joint, [Q, K])


def test_an_output_below_another_is_differentiated_with_it():
    _, P, O = named_attention()
    dO, G = sa.tensor("dO", T, e), sa.tensor("G", T, S)
    g = sa.gradient({O: dO, P: G}, [Q])
    assert "dP = dO @ V.T + G" in lines(g) or "dP = G + dO @ V.T" in lines(g)
    arrays = arrays_for([Q, K, V, dO, G])
    want = run(sa.gradient(sa.sum(O * dO) + sa.sum(P * G), [Q]), arrays)
    np.testing.assert_allclose(run(g, arrays), want, rtol=1e-11)


def test_leading_axes_of_a_cotangent_are_a_batch():
    _, _, O = named_attention()
    batch = sa.tensor("G", n, T, e)
    g, one = sa.gradient({O: batch}, [Q, K, V]), sa.gradient(O, [Q, K, V])
    assert [y.shape for y in g.values()] == [(n, T, d), (n, S, d), (n, S, e)]
    arrays = arrays_for([Q, K, V, batch])
    many = run(g, arrays)
    for k in range(SIZES[n]):
        each = run(one, {**{t: arrays[t] for t in (Q, K, V)}, one.cotangent: arrays[batch][k]})
        for got, want in zip(many, each, strict=True):
            np.testing.assert_allclose(got[k], want, rtol=1e-12, atol=1e-13)


def test_a_batch_of_cotangents_of_a_loss_with_scalars():
    loss = sa.sum(sa.tanh(X / tau))
    weight = sa.tensor("w", n)
    g = sa.gradient({loss: weight}, [X, tau])
    assert g[X].shape == (n, T, d)
    assert g[tau].shape == (n,)
    arrays = arrays_for([X, weight])
    one = sa.gradient(loss, [X, tau])
    dx, dtau = run(one, {X: arrays[X]}, tau=0.7)
    many = run(g, arrays, tau=0.7)
    np.testing.assert_allclose(many[0], np.multiply.outer(arrays[weight], dx), rtol=1e-12)
    np.testing.assert_allclose(many[1], arrays[weight] * dtau, rtol=1e-12)


def test_a_cotangent_may_be_any_tensor():
    O = named_attention()[2]
    g = sa.gradient({O: O * 2}, [Q])
    arrays = arrays_for([Q, K, V])
    np.testing.assert_allclose(run(g, arrays), run(sa.gradient(sa.sum(O * O), [Q]), arrays), rtol=1e-11)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((T, d), r"cotangent G\[T, d\] of O\[T, e\] must have the shape \[T, e\]"),
        ((e,), r"G\[e\]"),
        ((), r"G\[\]"),
        ((T, e, n), r"G\[T, e, n\]"),
    ],
)
def test_a_cotangent_of_the_wrong_shape_is_refused(shape, message):
    with pytest.raises(sa.ShapeError, match=message):
        sa.gradient({named_attention()[2]: sa.tensor("G", *shape)}, [Q])


def test_cotangents_share_their_batch():
    Z, _, O = named_attention()
    with pytest.raises(sa.ShapeError, match="batch"):
        sa.gradient({O: sa.tensor("G", n, T, e), Z: sa.tensor("H", T, S)}, [Q])


@pytest.mark.parametrize("y", [sa.sum(X * X), sa.let("L", sa.sum(sa.tanh(X))), sa.logsumexp(X, None), sa.max(X),
                               sa.mean(X * X), sa.trace(X @ X.T), sa.sum(X) / 3, sa.sum(X[0]), c * sa.sum(X)],
                         ids=str)  # fmt: skip
def test_a_rank_0_output_has_cotangent_1(y):
    g = sa.gradient(y, [X])
    assert str(g.cotangent) == "1"
    assert g[X].shape == X.shape
    for line in lines(g):
        assert "1[" not in line, "a number is not indexed"
    tensors = [X, c] if c in y.tensors else [X]
    assert sa.lambdify(tensors, g).check()


def test_the_gradient_of_a_sum_of_squares_reads_as_one():
    assert lines(sa.gradient(sa.sum(X * X), [X])) == ["dX = 2 * X"]
    assert lines(sa.gradient(sa.sum(X**2) / 2, [X])) == ["dX = X"]


# --- variables ---


def test_named_intermediates_are_variables():
    Z, P, O = named_attention()
    g = sa.gradient(O, [Z, P])
    assert lines(g) == ["dP = dO @ V.T", "dZ = P * (dP - rowsum(P * dP))"]
    assert g[Z] is g["dZ"]
    assert g[P] is g["dP"]


def test_unnamed_or_absent_intermediates_are_no_variables():
    half = X / 2  # which construction writes as a factor in front of X * X
    with pytest.raises(sa.OperandError, match=r"\(X / 2\)\[T, d\].*name it by sa\.let"):
        sa.gradient(sa.sum(half * half), half)
    for differentiate in (sa.gradient, lambda y, x: sa.jvp(y, {x: sa.tensor("t", *x.shape)})):
        with pytest.raises(sa.OperandError, match=r"the intermediate Y\[T, d\] is not part of sum\(X\)"):
            differentiate(sa.sum(X), sa.let("Y", X))


def test_a_variable_inside_and_outside_its_own_expression():
    y = sa.let("y", X * X)
    g = sa.gradient(sa.sin(y) * X, [y, X])
    arrays = arrays_for([X, g.cotangent])
    dy, dx = run(g, arrays)
    z, cot = arrays.values()
    np.testing.assert_allclose(dy, cot * np.cos(z * z) * z, rtol=1e-12)
    np.testing.assert_allclose(dx, cot * (np.sin(z * z) + 2 * z * z * np.cos(z * z)), rtol=1e-12)


def test_the_output_itself_is_a_variable():
    _, _, O = named_attention()
    g = sa.gradient(O, [O, V])
    assert g[O] is g.cotangent
    assert g[V].shape == V.shape


def test_scalar_symbols_are_variables():
    g = sa.gradient(sa.softmax(X / tau), [tau, X])
    arrays = arrays_for([X, g.cotangent])
    dtau, _ = run(g, arrays, tau=0.8)
    forward = sa.lambdify([X], sa.softmax(X / tau))
    moved = forward(arrays[X], tau=0.8 + 1e-30j).imag / 1e-30
    np.testing.assert_allclose(dtau, (moved * arrays[g.cotangent]).sum(), rtol=1e-12)
    assert g.steps[-1].name == "dtau"
    assert "scalar" in g.steps[-1].reason


def test_a_scalar_symbol_in_several_places_and_in_constants_by_index():
    slopes = sa.from_index((T, d), lambda i, j: -tau * (i - j) + sympy.exp(-tau * j))
    y = sa.tanh((X + slopes) * tau**2) / (1 + tau)
    g = sa.gradient(y, [tau])
    arrays = arrays_for([X, g.cotangent])
    moved = sa.lambdify([X], y)(arrays[X], tau=0.3 + 1e-30j).imag / 1e-30
    (got,) = run(g, arrays, tau=0.3)
    np.testing.assert_allclose(got, (moved * arrays[g.cotangent]).sum(), rtol=1e-12)


def test_an_absent_variable_gives_zeros_with_a_stated_step():
    W = sa.tensor("W", d, e)
    g = sa.gradient(named_attention()[2], [Q, W, tau])
    assert g[W].shape == (d, e)
    assert str(g[W]) == "zeros(d, e)"
    assert str(g[tau]) == "0"
    steps = {s.name: s.reason for s in g.steps}
    assert "O does not depend on W" in steps["dW"]
    assert "tau" in steps["dtau"]
    arrays = arrays_for([Q, K, V, W, g.cotangent])
    _, dw, dtau = run(g, arrays)
    assert dw.shape == (3, 6)
    assert not dw.any()
    assert dtau == 0


def test_stepwise_constants_are_flat_and_say_so():
    y = sa.floor(X) + sa.sign(X)
    g = sa.gradient(y, [X])
    assert "zeros" in lines(g)[0]
    assert len(g.side_conditions) == 2


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("Q", "'Q'"), (["Q"], "'Q'"), ([], "no variable"), ((), "no variable"), ({}, "no variable"), (None, "None"),
        (1, "1"), ([T], "T is an integer symbol"), (sympy.Symbol("k", integer=True), "integer"),
        (sympy.Integer(2), "2"), ([2 * tau], "tau"), (sa.eye(T), "constant"), (sa.ones(T, d), "constant"),
        (sa.tensor("C", T, d, constant=True), r"C\[T, d\] is constant"), (sa.tensor("I", T, integer=True), "I"),
        (sa.tensor("B", T, S, binary=True), "B"), (np.ones(3), "array"),
    ],
)  # fmt: skip
def test_what_is_no_variable_is_refused(bad, message):
    with pytest.raises(sa.OperandError, match=message):
        sa.gradient(named_attention()[2], bad)


@pytest.mark.parametrize("bad", ["O", 1, None, [Q @ K.T], (Q, K), {}, {"O": Q}, tau, np.ones(3)])
def test_what_is_no_output_is_refused(bad):
    with pytest.raises(sa.OperandError):
        sa.gradient(bad, [Q])


@pytest.mark.parametrize("bad", ["dO", np.ones((2, 3)), [1, 2]])
def test_what_is_no_cotangent_is_refused(bad):
    with pytest.raises(sa.OperandError):
        sa.gradient({named_attention()[2]: bad}, [Q])


# --- names ---


def test_automatic_names_do_not_capture_the_users():
    taken = {name: sa.tensor(name, T, S) for name in ("Z", "P", "dP", "dZ")}
    dO = sa.tensor("dO", T, e)
    y = (sa.softmax(Q @ K.T + sum(taken.values(), sa.zeros(T, S))) @ V) * dO
    wrt = [Q, K, V, dO, *taken.values()]
    g = assert_gradient(y, wrt)
    assert g.cotangent is not dO
    assert g.cotangent.name != "dO"
    for name, tensor in taken.items():
        assert tensor not in [g[s.name] for s in g.steps]
        assert name not in {s.name for s in (*g.steps, *g.definitions)}
    assert len({s.name for s in (*g.steps, *g.definitions)}) == len(g.steps) + len(g.definitions)


@pytest.mark.parametrize("name", ["U", "dU", "U_1", "dU_1", "dx_1", "dtau"])
def test_names_for_what_nobody_named_do_not_capture_the_users(name):
    taken = sa.tensor(name, n)
    y = x * sa.tanh(x) + taken
    z = y * sa.exp(y * tau) * taken
    g = sa.gradient(z, [x, taken, tau])
    names = [s.name for s in (*g.steps, *g.definitions)]
    assert name not in names
    assert len(set(names)) == len(names)
    assert str(g)
    assert g.latex()
    sa.lambdify([x, taken, g.cotangent], g).check()


def test_a_scalar_symbol_does_not_share_an_automatic_name():
    P = sympy.Symbol("P", positive=True)
    g = sa.gradient(sa.softmax(X * P) @ X.T, [X, P])
    assert "P" not in {s.name for s in g.definitions}
    assert "dP" not in {s.name for s in g.steps} or g["dP"] is g[P]
    sa.lambdify([X, g.cotangent], g).check()


def test_two_bare_softmaxes_are_numbered_and_the_numbers_correspond():
    R = sa.tensor("R", T, d)
    g = assert_gradient(sa.softmax(Q @ K.T) @ V + sa.softmax(R @ K.T) @ V, [Q, R, K, V])
    defined = {s.name: str(s.expression) for s in g.definitions}
    assert {"P_1", "P_2", "Z_1", "Z_2"} == set(defined)
    for k in (1, 2):
        assert f"dZ_{k} = P_{k} * (dP_{k} - rowsum(P_{k} * dP_{k}))" in lines(g)
        assert f"P_{k} = softmax(Z_{k})" in lines(g)


def test_a_layer_used_twice_keeps_its_labels_with_corresponding_numbers():
    def layer(y):
        return named_attention(y, y, y)[2]

    g = assert_gradient(layer(layer(X)), [X])
    for k in (1, 2):
        assert f"dZ_{k} = P_{k} * (dP_{k} - rowsum(P_{k} * dP_{k}))" in lines(g)
    assert "dP_2 = dO_2 @ O_1.T" in lines(g)
    assert "dP_1 = dO_1 @ X.T" in lines(g)


def test_shared_layers_are_differentiated_once():
    O = named_attention(X, X, X)[2]
    g = assert_gradient(O * O + sa.tanh(O), [X])
    assert [s.name for s in g.steps].count("dZ") == 1


# --- names that nobody gave ---


def test_a_gradient_says_what_the_names_of_the_library_stand_for():
    shown = str(sa.gradient(sa.attention.scaled_dot_product(Q, K, V), [Q]))
    assert re.search(r"^Z = Q @ K.T / sqrt\(d\) +# where$", shown, re.M)
    assert re.search(r"^P = softmax\(Z\) +# where$", shown, re.M)


def test_a_gradient_does_not_repeat_what_its_writer_named():
    z = sa.tensor("z", "n")
    P = sa.let("P", sa.softmax(z))
    assert [step.name for step in sa.gradient(P @ z, [z]).definitions] == []
    assert [step.name for step in sa.gradient(sa.shift(z, 2), [z]).definitions] == []


DERIVATIVES = {
    "jvp": (lambda f, Q: sa.jvp(f(Q), {Q: sa.tensor("W", T, d)}), "Z Zdot P Pdot"),
    "hvp": (lambda f, Q: sa.hvp(sa.sum(f(Q) ** 2), Q, sa.tensor("W", T, d)), "Z Zdot P O dO dP Pdot Odot"),
    "hessian": (lambda f, Q: sa.hessian(sa.logsumexp(sa.sum(Q, axis=0)), Q), "Z P"),
    "jacobian": (lambda f, Q: sa.jacobian(sa.softmax(sa.sum(Q, axis=0)), Q), "Z P"),
    "a step of a gradient": (lambda f, Q: sa.gradient(sa.softmax(Q), Q)["dQ"], ""),
    "a function of the library": (lambda f, Q: f(Q).inputs[0], ""),
}


@pytest.mark.parametrize(("make", "names"), DERIVATIVES.values(), ids=DERIVATIVES)
def test_what_the_calculus_named_is_written_below_the_text(make, names):
    result = make(lambda Q: sa.attention.scaled_dot_product(Q, K, V), Q)
    _, *defined = str(result).splitlines()
    assert {line.split()[2] for line in defined} == set(names.split())
    assert all(re.match(r"# where \w+ = ", line) for line in defined)
    known = {x.name: x for x in topological([result]) if x.name}
    assert str(read(str(result), known)) == str(result)


def test_the_gradient_of_a_function_of_a_trace_is_a_number_times_the_identity():
    A = sa.tensor("A", "n n")
    assert sa.gradient(sa.cos(sa.trace(A)), A).steps[-1].expression is -sa.sin(sa.trace(A)) * sa.eye("n")


def test_the_derivative_of_a_maximum_of_what_may_be_minus_infinity_says_why_it_is_none():
    x, y, m = sa.tensor("x", "T"), sa.tensor("y", "T"), sa.tensor("m", "T", binary=True)
    masked = sa.maximum(sa.where(m, x, -sympy.oo), sa.where(m, y, -sympy.oo))
    with pytest.raises(sa.OperandError, match="both may be -oo: mask what it gives"):
        sa.gradient(sa.sum(sa.exp(masked)), [x])
    whole = sa.where(m, sa.maximum(x, y), -sympy.oo)
    assert sa.gradient(sa.sum(sa.exp(whole)), [x])[x].shape == x.shape
