"""Jacobians, Hessians and Hessian-vector products: closed forms, values by complex step, and cost in depth."""

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.calculus.identities import IDENTITIES
from symattn.calculus.jacobians import one_hot
from symattn.calculus.tidying import tidy
from symattn.codegen.reference import values
from symattn.core.node import topological
from symattn.ops.layout import transpose_op

T, S, d, e, n, m = sa.sizes("T S d e n m")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
z, y, q = sa.tensor("z", n), sa.tensor("y", n), sa.tensor("q", d)
A, B = sa.tensor("A", m, n), sa.tensor("B", n, n)
p = sa.let("p", sa.softmax(z))
SIZES = {T: 2, S: 3, d: 4, e: 5, n: 6, m: 7}


def attention(query=Q):
    return sa.softmax(query @ K.T / sympy.sqrt(d)) @ V


def layer_norm():
    centred = Q - sa.mean(Q, -1, True)
    return centred * sa.rsqrt(sa.mean(centred**2, -1, True))


def arrays(x, rng):
    shapes = {t: tuple(int(s.subs(SIZES)) for s in t.shape) for t in x.tensors}
    return {t: rng.normal(size=shape) for t, shape in shapes.items()}


def run(x, given):
    f = sa.lambdify(list(x.tensors), x)
    known = {s.name: SIZES[s] for s in f.takes.keywords}
    return f(*(given[t] for t in x.tensors), **known)


def stepped(x, by, given):
    """The Jacobian by complex step of the entries' own code, axes of x first."""
    at = given[by]
    columns = []
    for place in np.ndindex(at.shape):
        moved = at.astype(complex)
        moved[place] += 1e-30j
        columns.append(run(x, {**given, by: moved}).imag / 1e-30)
    return np.moveaxis(np.array(columns).reshape(*at.shape, *columns[0].shape), range(at.ndim), range(-at.ndim, 0))


FORMS = [
    (lambda: sa.jacobian(p, z), "diag(p) - outer(p, p)"),
    (lambda: sa.jacobian(sa.softmax(z), z), "diag(P) - outer(P, P)\n# where P = softmax(z)"),
    (lambda: sa.hessian(sa.logsumexp(z), z), "diag(P) - outer(P, P)\n# where P = softmax(z)"),
    (lambda: sa.hessian(sa.logsumexp(z) - sa.sum(y * z), z), "diag(P) - outer(P, P)\n# where P = softmax(z)"),
    (lambda: sa.hessian(sa.log(sa.sum(sa.exp(z))), z), "diag(P) - outer(P, P)\n# where P = softmax(z)"),
    (lambda: sa.jacobian(A @ z, z), "A"),
    (lambda: sa.jacobian(sa.tanh(A @ z), z), "diag(1 - tanh(A @ z)**2) @ A"),
    (lambda: sa.jacobian(z * y, y), "diag(z)"),
    (lambda: sa.jacobian(z, z), "eye(n)"),
    (lambda: sa.hessian(z @ B @ z, z), "B + B.T"),
    (lambda: sa.hessian(sa.sum(z**3), z), "6 * diag(z)"),
    (lambda: sa.jacobian(sa.sum(z), z), "ones(n)"),
    (lambda: sa.jacobian(z / sa.sum(z), y), "zeros(n, n)"),
]


@pytest.mark.parametrize(("make", "form"), FORMS, ids=range(len(FORMS)))
def test_closed_forms(make, form):
    assert str(make()) == form


def test_the_softmax_jacobian_in_latex():
    assert sa.latex(sa.jacobian(p, z)) == r"\operatorname{diag}(p) - p p^{\top}"


CASES = {
    "softmax": (lambda: sa.softmax(z), z),
    "log softmax": (lambda: z - sa.logsumexp(z, keepdims=True), z),
    "softmax of a layer": (lambda: sa.softmax(A @ z), z),
    "attention by queries": (attention, Q),
    "attention by keys": (attention, K),
    "attention by values": (attention, V),
    "one query": (lambda: attention(q), q),
    "one query by keys": (lambda: attention(q), K),
    "layer norm": (layer_norm, Q),
    "rank 0": (lambda: sa.sum(sa.tanh(A @ z)), z),
    "rows": (lambda: sa.sum(Q * Q, -1), Q),
}


@pytest.mark.parametrize("name", CASES)
def test_jacobians_by_complex_step(name):
    make, by = CASES[name]
    x = make()
    J = sa.jacobian(x, by)
    assert J.shape == x.shape + by.shape  # output axes, then input axes
    given = arrays(x, np.random.default_rng(0))
    np.testing.assert_allclose(run(J, given), stepped(x, by, given), rtol=1e-9, atol=1e-11)


LOSSES = {
    "logsumexp of scores": (lambda: sa.logsumexp(K @ q), q),
    "attention by queries": (lambda: sa.sum(attention() * sa.tensor("G", T, e)), Q),
    "attention by keys": (lambda: sa.sum(attention() * sa.tensor("G", T, e)), K),
    "cross-entropy by logits": (lambda: sa.sum(sa.logsumexp(Q)) - sa.sum(Q * sa.tensor("Y", T, d)), Q),
    "one query": (lambda: attention(q) @ sa.tensor("g", e), q),
}


@pytest.mark.parametrize("name", LOSSES)
def test_hessians_and_their_products(name):
    make, by = LOSSES[name]
    loss = make()
    H = sa.hessian(loss, by)
    assert H.shape == by.shape + by.shape
    slope = sa.gradient(loss, by)[by]
    given = arrays(loss, np.random.default_rng(1))
    want = stepped(slope, by, given)
    np.testing.assert_allclose(run(H, given), want, rtol=1e-9, atol=1e-11)
    v = sa.tensor("v", *by.shape)
    given[v] = np.random.default_rng(2).normal(size=given[by].shape)
    along = np.tensordot(want, given[v], by.rank)
    np.testing.assert_allclose(run(sa.hvp(loss, by, v), given), along, rtol=1e-9, atol=1e-11)


def test_the_second_derivative_of_a_row_of_attention_is_a_covariance():
    r, v = sa.tensor("r", S), sa.tensor("v", d)  # values of one feature, a direction of the query
    P = sa.let("P", sa.softmax(K @ q))
    u = K @ v
    mean = lambda x: sa.sum(P * x)  # noqa: E731
    third = mean(r * (u - mean(u)) ** 2) - mean(r) * mean((u - mean(u)) ** 2)
    given = arrays(third, np.random.default_rng(3))
    quadratic = v @ sa.hessian(P @ r, q) @ v
    np.testing.assert_allclose(run(quadratic, given), run(third, given), rtol=1e-10)


def test_blocks_for_several_variables():
    x = attention()
    both = sa.jacobian(x, [Q, K])
    assert set(both) == {Q, K}
    assert both[K].shape == (T, e, S, d)
    blocks = sa.hessian(sa.sum(x), [Q, V])
    assert blocks[Q, V].shape == (T, d, S, e)
    assert set(blocks) == {(Q, Q), (Q, V), (V, Q), (V, V)}


def test_a_hessian_is_symmetric():
    loss = attention(q) @ sa.tensor("g", e)
    H = run(sa.hessian(loss, q), arrays(loss, np.random.default_rng(4)))
    np.testing.assert_allclose(H, H.T, atol=1e-12)


def test_second_derivatives_need_a_loss():
    with pytest.raises(sa.ShapeError, match=r"not of softmax\(z\)\[n\]: sum it first"):
        sa.hessian(sa.softmax(z), z)
    with pytest.raises(sa.ShapeError, match="sum it first"):
        sa.hvp(sa.softmax(z), z, y)


def test_a_jacobian_of_five_axes_is_refused():
    x = sa.tensor("x", 2, 2, 2, 2, 2)
    with pytest.raises(sa.ShapeError, match="at most 4"):
        sa.jacobian(x, x)


def test_the_hvp_of_a_stack_is_linear_in_its_depth():
    def nodes(depth):
        x = start = sa.tensor("x", T, d)
        for _ in range(depth):
            x = x + sa.softmax(x @ x.T / sympy.sqrt(d)) @ x
        return len(topological([sa.hvp(sa.sum(x * x), start, sa.tensor("v", T, d))]))

    small, large = nodes(25), nodes(50)
    assert large < 2.2 * small


IDENTITY_INPUTS = [
    z * sa.eye(n), sa.eye(n) * z[:, None], z * (sa.eye(n) - y[:, None]), z[:, None] * y, z[:, None] * q,
    sa.eye(n) @ B, B @ sa.eye(n), sa.sum(sa.diag(z), -1), sa.sum(sa.diag(z), 0, True), sa.sum(sa.eye(n), -1, True),
    transpose_op.node(sa.diag(z), order=(-1, -2)), z * (2 * sa.eye(n) + sa.diag(y)),
]  # fmt: skip


@pytest.mark.parametrize("x", IDENTITY_INPUTS, ids=str)
def test_identities_keep_the_value(x):
    plain = tidy(x, {t: t for t in x.tensors})
    assert x.op in IDENTITIES
    assert plain is not x
    rng = np.random.default_rng(5)
    given = {t: rng.normal(size=tuple(SIZES[s] for s in t.shape)) for t in x.tensors}
    sizes = {s: v for s, v in SIZES.items()}
    np.testing.assert_allclose(values([plain], given, sizes)[plain], values([x], given, sizes)[x], atol=1e-13)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sa.jacobian(sa.softmax(sa.max(A, keepdims=True)), A),
        lambda: sa.jacobian(sa.softmax(abs(sa.logsumexp(z, keepdims=True))), z),
        lambda: sa.hessian(sa.sum(sa.softmax(abs(sa.logsumexp(z, keepdims=True)))), z),
        lambda: sa.hvp(sa.logsumexp(z * z), z, y) + sa.gradient(sa.logsumexp(z * z), z)[z],
        lambda: sa.jacobian(sa.hvp(sa.logsumexp(z * z), z, y) + sa.gradient(sa.logsumexp(z * z), z)[z], z),
    ],
    ids=["whole", "row", "hessian", "sum", "of a sum"],
)
def test_a_name_is_defined_once_whatever_gave_it(make):
    defined = [line.removeprefix("# where ") for line in str(make()).splitlines()[1:]]
    assert len({line.split(" = ")[0] for line in defined}) == len(defined) > 0
    assert not [line for line in defined if len(set(line.split(" = "))) == 1]


def test_derivatives_in_a_mapping_stand_in_one_line():
    found = sa.hessian(sa.logsumexp(z * z), [z, y])
    assert str(found) == (
        "{(z, z): 4 * P * (diag(z) - rowsum(P * diag(z))) * z + 2 * diag(P), (z, y): zeros(n, n), "
        "(y, z): zeros(n, n), (y, y): zeros(n, n)}"
    )


def test_one_hot_is_the_identity_on_tensors():
    X = sa.tensor("X", 2, 3)
    E = run(one_hot(X.shape) + 0 * sa.tensor("c"), {sa.tensor("c"): 0.0})
    np.testing.assert_array_equal(E.reshape(6, 6), np.eye(6))
