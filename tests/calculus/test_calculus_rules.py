"""Gradients and tangents: results by name, side conditions, tangents, second order, variants and depth."""

import importlib

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.core.boxes import Code
from symattn.core.node import topological
from symattn.core.operation import Operation

from ..derived import (
    D,
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
    h,
    lines,
    n,
    named_attention,
    run,
    tau,
    u,
    x,
)

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
        numpy=lambda code, node, a: a, notation=lambda p, node: (Code("mystery"), 9), reason="unknown",
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
    tangents = "\n# where Zdot = dQ @ K.T / sqrt(d)\n# where Pdot = P * (Zdot - rowsum(P * Zdot))"
    assert str(sa.jvp(O, {Q: sa.tensor("dQ", T, d)})) == "Pdot @ V" + tangents
    assert str(sa.jvp(O, {Q: sa.tensor("dQ", T, d), V: dV})) == "Pdot @ V + P @ dV" + tangents


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
    assert shown[1] == "dgamma = sum(U_1 * dO, axis=-2)"
    assert shown[2] == "dU_1 = dO * gamma"
    assert shown[3] == "dU = rsqrt(rowmean(U**2) + 1/1000) * (dU_1 - U_1 * rowmean(U_1 * dU_1))"
    assert shown[4] == "dX = dU - rowmean(dU)"
    assert "U = X - rowmean(X)" in shown
    assert any(line.startswith("U_1 = U * ") for line in shown)


def test_named_layer_norm_in_closed_form():
    centred = sa.let("C", X - sa.mean(X, -1, True))
    spread = sa.let("s", sa.sqrt(sa.mean(centred**2, -1, True)))
    y = sa.let("Y", centred / spread)
    g = assert_gradient(y, [X])
    assert lines(g)[-1] == "dX = dC - rowmean(dC)"
    assert lines(g)[0] == "dC = (dY - Y * rowmean(Y * dY)) / s"
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
    record_module = importlib.import_module("symattn.core.operation")
    calls = 0
    sound = record_module.intern

    def counting(*arguments):
        nonlocal calls
        calls += 1
        return sound(*arguments)

    monkeypatch.setattr(record_module, "intern", counting)
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


@pytest.mark.parametrize(
    ("step", "length"),
    [
        (lambda y: sa.sin(y), 5000),
        (lambda y: y + 1, 5000),
        (lambda y: -y * y, 600),  # whose coefficient has as many digits
        (lambda y: y[::-1], 5000),
    ],
    ids=["function", "sum", "negated square", "flip"],
)
@pytest.mark.slow
def test_a_chain_of_thousands_of_nodes_is_differentiated(step, length):
    y = x
    for _ in range(length):
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
