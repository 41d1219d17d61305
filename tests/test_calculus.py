"""Gradients and tangents: closed forms, names, steps and reasons; numbers by complex step; one clear error each."""

import numpy as np
import pytest
import sympy

import symattn as sa
import symattn.operation
from symattn.operation import Operation
from symattn.ops import RECORDS
from symattn.tensor import topological

T, S, d, e, h, n, D = sa.sizes("T S d e h n D")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
X, x, c = sa.tensor("X", T, d), sa.tensor("x", n), sa.tensor("c")
SIZES = {T: 4, S: 5, d: 3, e: 6, h: 2, n: 7, D: 8}
u = sympy.Symbol("u", real=True)
tau = sympy.Symbol("tau", positive=True)

PRODUCT, SOFTMAX = RECORDS["matmul"].reason, RECORDS["softmax"].reason
FIVE = [
    ("dV", "P.T @ dO", PRODUCT),
    ("dP", "dO @ V.T", PRODUCT),
    ("dZ", "P * (dP - rowsum(P * dP))", SOFTMAX),
    ("dQ", "dZ @ K / sqrt(d)", PRODUCT),
    ("dK", "dZ.T @ Q / sqrt(d)", PRODUCT),
]
FIVE_LATEX = [
    r"dV &= P^{\top} \, dO &&",
    r"dP &= dO \, V^{\top} &&",
    r"dZ &= P \odot \left(dP - \operatorname{rowsum}\left(P \odot dP\right)\right) &&",
    r"dQ &= \frac{dZ \, K}{\sqrt{d}} &&",
    r"dK &= \frac{dZ^{\top} \, Q}{\sqrt{d}} &&",
]


def named_attention(q=Q, k=K, v=V):
    Z = sa.let("Z", q @ k.T / sympy.sqrt(d))
    P = sa.let("P", sa.softmax(Z))
    return Z, P, sa.let("O", P @ v)


def bare_attention(q=Q, k=K, v=V):
    return sa.softmax(q @ k.T / sympy.sqrt(d)) @ v


def lines(g):
    """``name = expression`` of every step."""
    return [line.partition("#")[0].strip() for line in str(g).splitlines()]


def arrays_for(tensors, seed=0):
    rng = np.random.default_rng(seed)
    return {t: rng.normal(size=tuple(int(size.subs(SIZES)) for size in t.shape)) for t in tensors}


def run(outputs, arrays, **keywords):
    return sa.lambdify(list(arrays), outputs)(*arrays.values(), **keywords)


def assert_gradient(y, wrt, tolerance=1e-12, seed=0, **keywords):
    """Every gradient against the complex step of the forward pass, entry by entry."""
    g = sa.gradient(y, wrt)
    tensors = list(dict.fromkeys([*y.tensors, *wrt]))
    arrays = arrays_for([*tensors, *([g.cotangent] if y.rank else [])], seed)
    cotangent = arrays.pop(g.cotangent) if y.rank else 1.0
    forward = sa.lambdify(tensors, y)
    given = {**arrays, g.cotangent: cotangent} if y.rank else arrays
    for variable, got in zip(wrt, run([g], given, **keywords), strict=True):
        want = np.zeros(arrays[variable].shape)
        for place in np.ndindex(want.shape):
            moved = arrays[variable].astype(complex)
            moved[place] += 1e-30j
            at = {**arrays, variable: moved}
            want[place] = (forward(*(at[t] for t in tensors), **keywords).imag / 1e-30 * cotangent).sum()
        scale = np.abs(want).max()
        assert np.isfinite(got).all()
        assert scale > 0, "a gradient of zeros shows nothing"
        assert np.abs(got - want).max() <= tolerance * max(scale, 1), variable
    return g


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
    assert r"\mathbf{A}^{\top} \, dO" in sa.gradient(O, [V]).latex(names={P: r"\mathbf{A}"})


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


def test_named_and_unnamed_intermediates_are_variables():
    Z, P, O = named_attention()
    g = sa.gradient(O, [Z, P])
    assert lines(g) == ["dP = dO @ V.T", "dZ = P * (dP - rowsum(P * dP))"]
    assert g[Z] is g["dZ"]
    assert g[P] is g["dP"]
    bare = bare_attention()
    weights = bare.inputs[0]
    logits = weights.inputs[0]
    g = sa.gradient(bare, [weights, logits, Q])
    assert list(g) == [weights, logits, Q]
    assert g[weights] is g["dP"]
    assert g[logits] is g["dZ"]


def test_a_variable_inside_and_outside_its_own_expression():
    y = X * X
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


# --- the rule's own result, by its name ---


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: sa.let("E", sa.exp(X)), "dX = dE * E"),
        (lambda: sa.let("t", sa.tanh(X)), "dX = dt * (1 - t**2)"),
        (lambda: sa.let("s", sa.sigmoid(X)), "dX = ds * (s * (1 - s))"),
        (lambda: sa.let("r", sa.sqrt(X)), "dX = dr / r / 2"),
        (lambda: sa.let("P", sa.softmax(X)), "dX = P * (dP - rowsum(P * dP))"),
    ],
)
def test_a_rule_that_reuses_its_result_uses_its_name(make, line):
    assert line in lines(sa.gradient(make(), [X]))


def test_logsumexp_uses_the_softmax_that_has_a_name():
    Z = sa.let("Z", Q @ K.T)
    P = sa.let("P", sa.softmax(Z))
    g = sa.gradient({sa.let("L", sa.logsumexp(Z)): sa.tensor("dL", T), sa.let("O", P @ V): sa.tensor("dO", T, e)}, [Z])
    assert "softmax" not in "".join(lines(g))
    assert "dL[:, None] * P" in lines(g)[-1]


def test_a_bare_result_next_to_its_named_twin_goes_by_the_name():
    g = sa.gradient(sa.exp(X) * sa.let("E", sa.exp(X)), [X])
    assert "exp(" not in "".join(lines(g))
    assert_gradient(sa.exp(X) * sa.let("E", sa.exp(X)), [X])


# --- side conditions and missing rules ---


@pytest.mark.parametrize("y", [sa.relu(X), sa.abs(X), sa.sign(X), sa.floor(X), sa.max(X, -1), sa.min(X),
                               sa.maximum(X, 0), sa.minimum(X, Q), sa.mod(X, 2)], ids=str)  # fmt: skip
def test_points_without_a_derivative_are_side_conditions(y):
    (condition,) = sa.gradient(y, [X]).side_conditions
    assert y.op.name in condition
    assert "not differentiable" in condition


def test_smooth_gradients_have_no_side_conditions():
    assert sa.gradient(bare_attention(), [Q, K, V]).side_conditions == ()
    assert sa.gradient(sa.relu(Q) @ K.T, [K]).side_conditions == ()


def test_divisibility_is_a_side_condition():
    heads = sa.split_axis(sa.tensor("H", T, D), -1, (h, D / h))
    assert sa.gradient(heads**2, heads.tensors[0]).side_conditions == ("h divides D",)


@pytest.mark.parametrize("hypothesis", ["symmetric", "orthogonal"])
def test_the_gradient_by_a_tied_tensor_is_ambient_and_says_so(hypothesis):
    A = sa.tensor("A", d, d, **{hypothesis: True})
    (condition,) = sa.gradient(X @ A, [A]).side_conditions
    assert "ambient" in condition
    assert hypothesis in condition
    assert lines(sa.gradient(X @ A, [A])) == ["dA = X.T @ dO"]


def test_a_function_without_a_known_derivative_is_an_error_and_not_zero():
    phi = sympy.Function("phi")
    y = sa.elementwise(sympy.Lambda(u, phi(u)), X)
    with pytest.raises(sa.NoRuleError, match="phi"):
        sa.gradient(y, [X])
    with pytest.raises(sa.NoRuleError, match="phi"):
        sa.jvp(y, {X: X})
    assert str(sa.gradient(y * Q, [Q])[Q]).startswith("elementwise(") or sa.gradient(y * Q, [Q])[Q].shape == Q.shape


def mystery():
    return Operation(
        "mystery", shape=lambda a: a.shape, entry=lambda read, index, node: read(0, index), vjp=None, jvp=None,
        numpy=lambda code, node, a: a, notation=lambda p, node: ("mystery", 9), reason="unknown",
    )  # fmt: skip


def test_an_operation_without_a_rule_is_an_error():
    y = sa.sum(mystery()(X * 2))
    with pytest.raises(sa.NoRuleError, match=r"mystery\)?\[T, d\]"):
        sa.gradient(y, [X])
    with pytest.raises(sa.NoRuleError, match=r"mystery\)?\[T, d\]"):
        sa.jvp(y, {X: X})
    assert sa.gradient(y * sa.sum(Q), [Q])[Q].shape == Q.shape


# --- tangents ---


def test_jvp_and_gradient_agree_on_attention():
    O = named_attention()[2]
    tangents = {t: sa.tensor(f"{t.name}t", *t.shape) for t in (Q, K, V)}
    g = sa.gradient(O, [Q, K, V])
    arrays = arrays_for([Q, K, V, *tangents.values(), g.cotangent])
    moved = run(sa.jvp(O, tangents), arrays)
    pulled = run(g, arrays)
    want = (moved * arrays[g.cotangent]).sum()
    got = sum((one * arrays[t]).sum() for one, t in zip(pulled, tangents.values(), strict=True))
    assert got == pytest.approx(want, rel=1e-12)
    forward = sa.lambdify([Q, K, V], O)
    stepped = forward(*(arrays[t] + 1e-30j * arrays[v] for t, v in tangents.items())).imag / 1e-30
    np.testing.assert_allclose(moved, stepped, rtol=1e-11, atol=1e-13)


def test_a_tangent_reads_as_a_product_rule():
    _, _, O = named_attention()
    dV = sa.tensor("dV", S, e)
    assert str(sa.jvp(O, {V: dV})) == "P @ dV"
    assert str(sa.jvp(O, {Q: sa.tensor("dQ", T, d)})) == "Pdot @ V"
    assert str(sa.jvp(O, {Q: sa.tensor("dQ", T, d), V: dV})) == "Pdot @ V + P @ dV"


def test_names_of_tangents_do_not_capture_the_users():
    Z = sa.let("Z", X * sa.tensor("Zdot", T, d))
    y = sa.jvp(sa.exp(Z) * sa.tensor("Zdot", T, d), {X: sa.tensor("dX", T, d)})
    assert "Zdot_1" in str(y)
    arrays = arrays_for([X, sa.tensor("Zdot", T, d), sa.tensor("dX", T, d)])
    a, b, t = arrays.values()
    np.testing.assert_allclose(run(y, arrays), np.exp(a * b) * t * b * b, rtol=1e-12)


def test_a_tangent_does_not_split_a_name_in_two():
    _, _, O = named_attention()
    g = sa.gradient(O, [Q])
    twice = sa.jvp(g[Q], {Q: sa.tensor("v", T, d)})
    assert "P_1" not in str(twice)
    assert "P_2" not in str(twice)
    labels = [node for node in topological([twice]) if node.name == "P"]
    assert len(labels) == 1


def test_scalars_and_intermediates_move_too():
    _, P, O = named_attention()
    assert str(sa.jvp(O, {P: sa.tensor("dP", T, S)})) == "dP @ V"
    y = sa.jvp(sa.tanh(X / tau), {tau: 1})
    arrays = arrays_for([X])
    moved = sa.lambdify([X], sa.tanh(X / tau))(arrays[X], tau=0.8 + 1e-30j).imag / 1e-30
    np.testing.assert_allclose(run(y, arrays, tau=0.8), moved, rtol=1e-12)


def test_a_tangent_of_nothing_that_moves_is_zero():
    assert str(sa.jvp(X @ X.T, {Q: sa.tensor("dQ", T, d)})) == "zeros(T, T)"
    assert sa.jvp(Q, {Q: X}) is X


@pytest.mark.parametrize(
    ("tangents", "error"),
    [
        ({Q: K}, sa.ShapeError), ({Q: c}, sa.ShapeError), ({Q: 1}, sa.ShapeError), ({tau: Q}, sa.ShapeError),
        ({Q: sa.tensor("B", n, T, d)}, sa.ShapeError), ({"Q": Q}, sa.OperandError), ({Q: "Q"}, sa.OperandError),
        ({}, sa.OperandError), ({T: 1}, sa.OperandError), ([Q], sa.OperandError), (Q, sa.OperandError),
        ({Q: np.ones((2, 3))}, sa.OperandError),
    ],
)  # fmt: skip
def test_what_is_no_tangent_is_refused(tangents, error):
    with pytest.raises(error) as caught:
        sa.jvp(named_attention()[2], tangents)
    assert "gradient was given" not in str(caught.value), "the message speaks of another function"


def test_one_variable_under_two_spellings_is_an_error():
    q = sympy.MatrixSymbol("Q", T, d)
    with pytest.raises(sa.OperandError, match="Q"):
        sa.jvp(named_attention()[2], {Q: X, q: X})


# --- second order ---


@pytest.mark.parametrize("O", [named_attention()[2], bare_attention()], ids=["named", "bare"])
def test_gradients_of_gradients_of_attention(O):
    g = sa.gradient(O, [Q, K, V])
    directions = {t: sa.tensor(f"v{t.name}", *t.shape) for t in (Q, K, V)}
    slope = sum((sa.sum(g[t] * v) for t, v in directions.items()), sa.zeros())
    second = sa.gradient(slope, [Q, K, V, g.cotangent])
    arrays = arrays_for([Q, K, V, g.cotangent, *directions.values()])
    got = run(second, arrays)
    first = sa.lambdify([Q, K, V, g.cotangent], [O, g])
    stepped = first(*(arrays[t] + 1e-30j * arrays[v] for t, v in directions.items()), arrays[g.cotangent])
    wanted = [part.imag / 1e-30 for part in (*stepped[1:], stepped[0])]  # the Hessian is symmetric
    for one, want in zip(got, wanted, strict=True):
        assert np.abs(one - want).max() <= 1e-11 * max(1, np.abs(want).max())


def test_forward_over_reverse_equals_reverse_over_reverse():
    _, _, O = named_attention()
    g = sa.gradient(O, [Q])
    v = sa.tensor("v", T, d)
    arrays = arrays_for([Q, K, V, g.cotangent, v])
    over = run(sa.jvp(g[Q], {Q: v}), arrays)
    np.testing.assert_allclose(over, run(sa.gradient(sa.sum(g[Q] * v), [Q]), arrays)[0], rtol=1e-11, atol=1e-13)


def test_third_derivatives():
    y = sa.sum(sa.tanh(x) * sa.exp(x))
    for _ in range(2):
        y = sa.sum(sa.gradient(y, [x])[x] * sa.tensor("v", n))
    assert_gradient(y, [x, sa.tensor("v", n)], 1e-11)


# --- variants ---


def layer_norm():
    gamma, beta = sa.tensor("gamma", d), sa.tensor("beta", d)
    centred = X - sa.mean(X, -1, True)
    normal = centred * sa.rsqrt(sa.mean(centred**2, -1, True) + sympy.Rational(1, 1000))
    return normal * gamma + beta, [X, gamma, beta]


def test_layer_norm_in_closed_form():
    y, wrt = layer_norm()
    g = assert_gradient(y, wrt)
    shown = lines(g)
    assert shown[0] == "dbeta = sum(dO, axis=-2)"
    assert shown[1] == "dgamma = sum(U_2 * dO, axis=-2)"
    assert shown[2] == "dU_2 = dO * gamma"
    assert shown[4] == "dX = dU - rowmean(dU)"
    assert "U = X - rowmean(X)" in shown
    assert "U_2 = U * U_1" in shown
    assert len(shown) == 8


def test_named_layer_norm_in_closed_form():
    centred = sa.let("C", X - sa.mean(X, -1, True))
    spread = sa.let("s", sa.sqrt(sa.mean(centred**2, -1, True)))
    y = sa.let("Y", centred / spread)
    g = assert_gradient(y, [X])
    assert lines(g)[-1] == "dX = dC - rowmean(dC)"
    assert lines(g)[1].startswith("dC = ")
    assert not g.definitions


VARIANTS = {
    "self-attention": lambda: (bare_attention(X, X, X), [X]),
    "residual": lambda: (X + bare_attention(X, X, X), [X]),
    "layer norm": layer_norm,
    "rms norm": lambda: (X * sa.rsqrt(sa.mean(X * X, -1, True) + 1) * sa.tensor("g", d), [X, sa.tensor("g", d)]),
    "linear attention": lambda: (
        (sa.silu(Q) @ (sa.silu(K).T @ V)) / (1 + sa.sum(sa.sigmoid(Q), -1, True)), [Q, K, V],
    ),
    "additive attention": lambda: (
        sa.softmax(sa.tanh(Q[:, None] + K[None]) @ sa.tensor("w", d)) @ V, [Q, K, V, sa.tensor("w", d)],
    ),
    "cross-entropy": lambda: (
        sa.mean(sa.logsumexp(Q @ K.T) - sa.sum(Q @ K.T * sa.tensor("y", T, S), -1)), [Q, K, sa.tensor("y", T, S)],
    ),
    "softcap": lambda: (sa.softmax(c * sa.tanh(Q @ K.T / c)) @ V, [Q, K, V, c]),
    "sink by concat": lambda: (
        sa.softmax(sa.concat([Q @ K.T, sa.tensor("s", T)[:, None]], -1))[:, :-1] @ V, [Q, K, V, sa.tensor("s", T)],
    ),
    "columns": lambda: (sa.softmax(Q @ K.T, axis=0).T @ Q, [Q, K]),
    "broadcast loops": lambda: (
        sa.tensor("A", "h T d") @ K.T + sa.tensor("b", S), [sa.tensor("A", "h T d"), K, sa.tensor("b", S)],
    ),
    "powers": lambda: ((1 + X**2) ** (c * c), [X, c]),
    "spelled-out softmax": lambda: (sa.exp(X) / sa.sum(sa.exp(X), -1, True), [X]),
    "einsum": lambda: (sa.einsum("td,sd,d->ts", Q, K, sa.tensor("w", d)), [Q, K, sa.tensor("w", d)]),
    "gelu": lambda: (sa.softplus(X) * sa.sin(X) + sa.silu(X) * sa.cos(X), [X]),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_gradients_of_variants_by_complex_step(name):
    y, wrt = VARIANTS[name]()
    assert_gradient(y, wrt, tolerance=1e-12)


@pytest.mark.parametrize("name", VARIANTS)
def test_gradients_of_variants_print_and_compile(name):
    y, wrt = VARIANTS[name]()
    g = sa.gradient(y, wrt)
    assert g.latex().count(r"\left") == g.latex().count(r"\right")
    names = [s.name for s in (*g.steps, *g.definitions)]
    assert len(set(names)) == len(names)
    assert not any("#" in name for name in names)
    compile("\n".join(lines(g)), "<text>", "exec")


@pytest.mark.parametrize("name", ["self-attention", "layer norm", "additive attention", "softcap", "cross-entropy"])
def test_tangents_of_variants_by_complex_step(name):
    y, wrt = VARIANTS[name]()
    tangents = {t: sa.tensor(f"v{t.name}", *t.shape) for t in wrt}
    arrays = arrays_for([*wrt, *tangents.values()])
    forward = sa.lambdify(wrt, y)
    stepped = forward(*(arrays[t] + 1e-30j * arrays[v] for t, v in tangents.items())).imag / 1e-30
    np.testing.assert_allclose(run(sa.jvp(y, tangents), arrays), stepped, rtol=1e-10, atol=1e-12)


# --- depth ---


def stack(start, layers):
    for _ in range(layers):
        start = start + sa.softmax(start @ start.T / sympy.sqrt(d)) @ start
    return start


def counted(monkeypatch, work):
    """How often an operation was applied."""
    calls = 0
    sound = symattn.operation.intern

    def counting(*arguments):
        nonlocal calls
        calls += 1
        return sound(*arguments)

    monkeypatch.setattr(symattn.operation, "intern", counting)
    result = work()
    monkeypatch.undo()
    return calls, result


def test_differentiating_a_stack_is_linear_in_its_depth(monkeypatch):
    start = sa.tensor("Y", T, d)
    counts, steps, sizes = [], [], []
    for layers in (25, 50, 100):
        y = stack(start, layers)
        calls, g = counted(monkeypatch, lambda y=y: sa.gradient(y, [start]))
        counts.append(calls)
        steps.append(len(g.steps))
        sizes.append(len(topological([s.expression for s in g.steps])))
    assert steps == [3 * layers for layers in (25, 50, 100)]
    for counted_of in (counts, sizes):
        assert counted_of[2] - counted_of[1] == 2 * (counted_of[1] - counted_of[0])
    assert counts[2] < 100 * 100


def test_a_stack_has_numbered_lines_that_correspond():
    start = sa.tensor("Y", T, d)
    shown = lines(sa.gradient(stack(start, 3), [start]))
    assert "dZ_2 = P_2 * (dP_2 - rowsum(P_2 * dP_2))" in shown
    assert "dP_2 = dU_2 @ U_1.T" in shown
    assert "U_2 = U_1 + P_2 @ U_1" in shown


@pytest.mark.parametrize("step", [lambda y: sa.sin(y), lambda y: y + 1, lambda y: -y * y, lambda y: y[::-1]],
                         ids=["function", "sum", "negated square", "flip"])  # fmt: skip
def test_a_chain_of_5000_nodes_is_differentiated(step):
    y = x
    for _ in range(5000):
        y = step(y)
    g = sa.gradient(y, [x])
    assert g[x].shape == (n,)
    assert sa.jvp(y, {x: sa.tensor("v", n)}).shape == (n,)


def test_a_graph_of_2_to_the_60_paths_is_differentiated():
    y = x
    for _ in range(60):
        y = (y + sa.tanh(y)) / 2
    g = assert_gradient(y, [x], 1e-12)
    assert len(g.steps) < 200
