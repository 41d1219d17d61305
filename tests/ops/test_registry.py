"""Every operation record, held against its entry formula: code, derivatives, batches, loop axes, printing, pickling."""

import itertools
import pickle

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.calculus.gradient import Gradient
from symattn.codegen.check import compare, sample_point
from symattn.codegen.reference import values
from symattn.core.node import topological
from symattn.ops import RECORDS
from symattn.ops.broadcasting import broadcast_to
from symattn.ops.contraction import matmul_of, outer_op
from symattn.ops.gather import scatter_op
from symattn.ops.index import embed_op
from symattn.ops.layout import transpose
from symattn.ops.leaves import cotangent_op
from symattn.ops.pointwise import mod
from symattn.ops.sparse import support_sqrt_op

from ..shares import first_of_each, one_in

T, S, d, e, h = sa.sizes("T S d e h")
X, Y, Q, K, V = (sa.tensor(n, s) for n, s in (("X", "T d"), ("Y", "T d"), ("Q", "T d"), ("K", "S d"), ("V", "S e")))
Z, W = sa.tensor("Z", "T S"), sa.tensor("W", "h T S")
A, B, G = sa.tensor("A", "T T"), sa.tensor("B", "h T T"), sa.tensor("G", "h T h*d")
b, c, u, v = sa.tensor("b", "d"), sa.tensor("c"), sa.tensor("u", "d"), sa.tensor("v", "S")
POS = sa.tensor("P", "T d", positive=True)
M, N = sa.tensor("M", "T S", binary=True), sa.tensor("N", "T d", binary=True)
I, I_T, J, J_SH = (sa.tensor(n, s, integer=True) for n, s in (("I", "S"), ("I", "T"), ("J", "T S"), ("J", "S h")))
R, RH = sa.tensor("R", "T T", invertible=True), sa.tensor("R", "h T T", invertible=True)
tau = sympy.Symbol("tau", positive=True)
OFFSET = sympy.Symbol("s", integer=True, nonnegative=True)
w = sympy.Symbol("w", real=True)
CAUSAL = sa.from_index((T, S), lambda i, j: sympy.Piecewise((0, j <= i), (-sympy.oo, True)))
ROWS, KEEP = sa.tensor("Z", "T 3"), sa.tensor("M", "T 3", binary=True)
CAUSAL3 = sa.from_index((T, 3), lambda i, j: sympy.Piecewise((0, j <= i), (-sympy.oo, True)))

EXAMPLES = {
    "tensor": [X],
    "constant": [sa.tensor("c0") * 0 + tau],
    "from_index": [
        sa.from_index((T, S), lambda i, j: -tau * (i - j)),
        sa.from_index((T, S), lambda i, j: sympy.cos(i / 10000 ** (2 * j / d))),
        sa.from_index((T, S), lambda i, j: sympy.Abs(i - j) <= 2),
        sa.from_index((T, S), lambda i, j: (j <= i) & (i - j < 3)),
        sa.from_index((T, S), lambda i, j: sympy.Mod(i, 2) * 2 ** (-j)),
        sa.from_index((T, S), lambda i, j: i + 1),
        sa.from_index((h, T), lambda i, j: 3),
        sa.eye(T),
        sa.ones(T, d),
        sa.zeros(T, d),
    ],
    "let": [sa.let("L", X * Y)],
    "cotangent": [cotangent_op(X * Y, X, name="dX")],
    "broadcast_to": [broadcast_to(b, (T, d)), broadcast_to(c, (T, d)), broadcast_to(X[:, None], (T, S, d))],
    "add": [X + Y, X + b, X - Y, b[None] - X[:, :1], W + Z, X + c, X + tau, N + X, N + N],
    "multiply": [X * Y, X * X, X * b, X[:, :1] * Y, W * Z, X * c, X / sympy.sqrt(d), -X, tau * X, N * X, N * N, v * W],
    "divide": [X / POS, 1 / POS, b / POS, X / (c * c + 1), X / POS[:, :1]],
    "power": [X**2, X**3, POS ** sympy.Rational(-1, 2), POS**X, POS**tau, 2**X],
    "maximum": [sa.maximum(X, Y), sa.maximum(X, b), sa.maximum(X, 0)],
    "minimum": [sa.minimum(X, Y), sa.minimum(b, X)],
    "mod": [mod(X, 2), mod(X, POS)],
    "less": [X < Y, X < b, X < 0],
    "less_equal": [X <= Y],
    "greater": [X > Y, X > c],
    "greater_equal": [X >= Y],
    "equal": [sa.equal(X, Y), sa.equal(X, X)],
    "logical_and": [(X > 0) & (Y > 0), M & sa.from_index((T, S), lambda i, j: j <= i)],
    "logical_or": [(X > 0) | (b > 0)],
    "logical_not": [~(X > Y), ~M],
    "where": [
        sa.where(X > 0, X, Y), sa.where(M, Z, 0), sa.where(N, X, b), sa.where(M, W, c), sa.where(M, 1, 0) * Z,
        sa.where(N, N, X),
    ],
    "elementwise": [
        sa.elementwise(sympy.Lambda(w, w**2 * sympy.atan(w) + tau), X),
        sa.elementwise(sympy.Lambda((w, tau), sympy.sin(w * tau) + w), X, b),
        sa.elementwise(sympy.Lambda(w, sympy.Integer(3)), X),
    ],
    **{
        name: [getattr(sa, name)(POS if name in ("log", "log1p", "sqrt", "rsqrt") else X)]
        for name in (
            "exp log log1p tanh sigmoid softplus relu gelu silu sqrt rsqrt sin cos abs sign erf floor".split()
        )
    },
    "sum": [sa.sum(X), sa.sum(X, -1), sa.sum(X, 0), sa.sum(W, (0, 2)), sa.sum(X, -1, True), sa.sum(W, (0, 1), True),
            sa.sum(N, -1), sa.sum(X, (0, 1), True)],
    "mean": [sa.mean(X), sa.mean(X, -1, True), sa.mean(W, (0, 2))],
    "max": [sa.max(X), sa.max(X, -1), sa.max(W, (0, 2), True)],
    "min": [sa.min(X, 0), sa.min(X, -1, True)],
    "softmax": [
        sa.softmax(Z), sa.softmax(Z, axis=0), sa.softmax(Z, where=M), sa.softmax(Z + CAUSAL), sa.softmax(W, where=M),
        sa.softmax(Z, where=sa.tensor("H", "h T S", binary=True)), sa.softmax(v, where=M), sa.softmax(W, axis=0),
        sa.softmax(sa.where(M, Z, -sympy.oo)),
    ],
    "logsumexp": [
        sa.logsumexp(Z), sa.logsumexp(Z, axis=0, keepdims=True), sa.logsumexp(W, axis=(0, 2)), sa.logsumexp(Z, None),
    ],
    "index": [
        X[0], X[-1, 1:], X[:, None], X[1:], X[:, ::-1], X[..., 0], W[:, 0, None, 1:], b[None, :, None],
        sa.tensor("E", "T 2*d")[:, 1::2], sa.tensor("E", "T 2*d")[:, 0::2], W[0, 1, 0], X[T - 1 :: -1],
        sa.tensor("E", "T h*d")[:, ::h], sa.tensor("E", "T h*d")[:, :: -h], X[:, OFFSET:],
    ],
    "embed": [
        embed_op(sa.tensor("g", "T-1 d"), items=X[1:].params["items"], core=(T, d)),
        embed_op(b, items=X[0].params["items"], core=(T, d)),
        embed_op(X, items=sa.tensor("E", "T 2*d")[:, 1::2].params["items"], core=(2 * d,)),
        embed_op(sa.tensor("g", "h 1 S-1"), items=W[:, 0, None, 1:].params["items"], core=(T, S)),
        sa.pad(X, 1, h, axis=0), sa.pad(X, 2, 1, 1), sa.pad(X, OFFSET, 1, h),
    ],
    "transpose": [X.T, W.mT, sa.moveaxis(W, 0, 2), sa.moveaxis(W, 2, 0), transpose(W, (-1, -2, -3))],
    "concat": [
        sa.concat([X, Y, b[None]], 0), sa.concat([Z, v[None] * sa.ones(T, 1)], 0), sa.concat([X, sa.zeros(T, 1)], -1),
        sa.concat([W, W[:1]], 0), sa.concat([X, X], -1),
    ],
    "split_axis": [sa.split_axis(G, -1, (h, d)), sa.split_axis(sa.tensor("F", "h*d T"), 0, (h, d))],
    "merge_axes": [sa.merge_axes(W, (0, 1)), sa.merge_axes(W, (1, 2))],
    "repeat": [sa.repeat(X, 3, axis=0), sa.repeat(W, d, axis=-1), sa.repeat(W, 2, axis=1)],
    "matmul": [
        Q @ K.T, W @ V, X @ b, v @ K, u @ b, W @ v, sa.tensor("y", "T") @ W, W @ sa.tensor("R", "h S e"),
        Z @ sa.tensor("R", "h S e"), W[:1] @ sa.tensor("R", "h S e"), X @ X.T, matmul_of(X, b, (1, 1)),
        matmul_of(X, sa.tensor("R", "h d"), (2, 1)),
    ],
    "outer": [sa.outer(u, v), sa.outer(u, u), outer_op(X, v), outer_op(X, sa.tensor("y", "h 1 S"))],
    "einsum": [
        sa.einsum("htd,hsd->hts", sa.tensor("q", "h T d"), sa.tensor("k", "h S d")),
        sa.einsum("hts,hse->the", W, sa.tensor("R", "h S e")),
        sa.einsum("hts,se->hte", W, V),
        sa.einsum("htd,hde->te", sa.tensor("q", "h T d"), sa.tensor("o", "h d e")),
        sa.einsum("td,td->t", X, Y), sa.einsum("ii->i", A), sa.einsum("ii", A), sa.einsum("hii->h", B),
        sa.einsum("ij->ji", X), sa.einsum("td->d", X), sa.einsum("td,sd,d->ts", X, K, b), sa.einsum("i,j->ij", u, v),
        sa.einsum("td,dk->tk", X, sa.tensor("D", "d e")), sa.einsum("ds,td->st", K.T, X), sa.einsum("td,td->dt", X, X),
    ],
    "diag": [sa.diag(b)],
    "diagonal": [sa.diag(A)],
    "trace": [sa.trace(A), sa.trace(B)],
    "one_hot": [
        sa.attention.one_hot(I, T), sa.attention.one_hot(J, 3), sa.attention.one_hot(sa.where(sa.equal(I, 1), 0, I), S),
    ],
    "take": [
        sa.take(X, I, 0), sa.take(X, J, -1), sa.take(W, J, 1), sa.take(W, I, -1), sa.take(b, 1, 0), sa.take(N, I, 0),
        sa.take(X, sa.tensor("n", integer=True), 0),
        sa.take(sa.take(X, I, 0), sa.from_index((3, T), lambda i, j: sympy.Mod(i, 2)), 0),
        sa.take(W, sa.from_index((T, S), lambda i, j: sympy.Min(sympy.Abs(j - i), 1)), 0),
        sa.softmax(sa.take(Z + CAUSAL, I, 1)),
    ],
    "scatter_add": [
        scatter_op(X, I_T, axis=-2, size=d), scatter_op(W, J, axis=-1, size=e),
        scatter_op(sa.tensor("g", "h T e"), I_T, axis=-2, size=d),
        scatter_op(b, sa.tensor("n", integer=True), axis=-1, size=S),
        scatter_op(sa.tensor("g", "S h d"), J_SH, axis=-2, size=T),
    ],
    "shift": [
        sa.shift(X, 1), sa.shift(X, -1, axis=0), sa.shift(X, 1 - T, size=T + d),
        sa.shift(Z, lambda i: T - 1 - i, size=S + 1),
        sa.shift(W, lambda i, j: 2 * i - j, axis=1), sa.shift(W, lambda i, j: j - T, axis=0, size=2 * h),
        sa.shift(b, 2), sa.shift(N, lambda i: i - 2),
    ],
    "tile": [sa.tile(X, 2, axis=0), sa.tile(W, d, axis=-1), sa.tile(W, 2, axis=1)],
    "cumsum": [
        sa.cumsum(X), sa.cumsum(X, axis=0), sa.cumsum(W, axis=1, reverse=True), sa.cumsum(b, reverse=True),
        sa.cumsum(N),
    ],
    "tril": [sa.tril(A), sa.tril(Z, -1), sa.tril(W, S - T), sa.tril(N, 1), sa.softmax(sa.tril(Z + CAUSAL, 1))],
    "triu": [sa.triu(A), sa.triu(Z, 1), sa.triu(W, 1 - T), sa.triu(M)],
    "inv": [
        sa.inv(R), sa.inv(RH), sa.inv(R) @ X, sa.inv(RH) @ X, sa.inv(R) @ A[:, 0],
        sa.inv(sa.eye(T) + sa.tril(A, -1)) @ X,
    ],
    "sparsemax": [
        sa.sparsemax(ROWS), sa.sparsemax(ROWS, axis=0), sa.sparsemax(ROWS + CAUSAL3), sa.sparsemax(N), sa.sparsemax(b),
        sa.sparsemax(sa.where(KEEP, ROWS, -sympy.oo)),
    ],
    "entmax15": [
        sa.entmax15(ROWS), sa.entmax15(ROWS, axis=0), sa.entmax15(ROWS + CAUSAL3), sa.entmax15(b),
        sa.entmax15(sa.where(KEEP, ROWS, -sympy.oo)),
    ],
    "support_sqrt": [support_sqrt_op(POS), support_sqrt_op(sa.relu(X))],
    "unknown": [sa.unknown("phi", X), sa.unknown("phi''", X * Y), sa.unknown("f", W, rowwise=True)],
    "stop_gradient": [sa.stop_gradient(X), sa.stop_gradient(N), sa.softmax(sa.stop_gradient(CAUSAL) + Z)],
}  # fmt: skip
CASES = [pytest.param(name, x, id=f"{name}-{k}") for name, examples in EXAMPLES.items() for k, x in enumerate(examples)]
VALUED = [case for case in CASES if case.values[0] != "unknown"]  # a function known only by name has no values
ONE_OF_EACH = first_of_each(lambda case: case.values[0], VALUED)


def test_every_record_is_whole_and_has_examples():
    assert set(EXAMPLES) == set(RECORDS)
    for name, record in RECORDS.items():
        for part in ("shape", "entry", "vjp", "jvp", "numpy", "notation"):
            assert callable(getattr(record, part)), f"{name} lacks {part}"
        assert len(record.reason) > 5, name
        assert any(node.op is record for x in EXAMPLES[name] for node in topological([x])), f"{name} is not exercised"


def free_tensors(x):
    return [n for n in x.tensors if n.kind == "real"]


def slope(x, point, directions):
    """The derivative of the entries along directions of some tensors, and how well it is known.

    By a complex step where the entries allow it, else by differences.
    """
    known = {**point.sizes, **point.scalars}

    def at(step):
        return values([x], {**point.arrays, **{t: point.arrays[t] + step * d for t, d in directions.items()}}, known)[x]

    try:
        return np.asarray(at(1e-30j)).imag / 1e-30, 1e-11
    except TypeError:
        return (at(1e-6) - at(-1e-6)) / 2e-6, 1e-7


def run(y, point):
    tensors = [n for n in topological([y]) if n.op.name == "tensor"]
    f = sa.lambdify(tensors, y)
    known = {s.name: v for s, v in {**point.sizes, **point.scalars}.items()}
    return np.asarray(f(*(point.arrays[t] for t in tensors), **{s.name: known[s.name] for s in f.takes.keywords}))


@pytest.mark.parametrize(("name", "x"), VALUED)
def test_numpy_equals_entries(name, x):
    for seed in (0, 1):
        point = sample_point([x], x.tensors, seed)
        want = values([x], point.arrays, {**point.sizes, **point.scalars})[x]
        compare(name, run(x, point), np.asarray(want, float), 1e-12, point)


@pytest.mark.parametrize(("name", "x"), ONE_OF_EACH)
def test_vjp_and_jvp_equal_the_derivative_of_the_entries(name, x):
    if not free_tensors(x):
        pytest.skip("a constant has no derivative")
    hold_derivatives(name, x)


def hold_derivatives(name, x):
    """The vjp, one of a batch, and the jvp, against the derivative of the entries along random directions."""
    reals = free_tensors(x)
    cot = sa.tensor("cot", *x.shape)
    batched = sa.tensor("bat", 2, *x.shape)
    g, gb = (sa.gradient({x: given}, reals) for given in (cot, batched))
    tangents = {t: sa.tensor(f"tan{k}", *t.shape) for k, t in enumerate(reals)}
    push = sa.jvp(x, tangents)
    point = sample_point([x], [*x.tensors, cot, batched, *tangents.values()], 2)
    rng = np.random.default_rng(7)
    for t in reals:
        pulled, rows = run(g[t], point), run(gb[t], point)
        for _ in range(2):  # random directions: a wrong entry of the vjp is orthogonal to none of them
            direction = rng.standard_normal(point.arrays[t].shape)
            along, tolerance = slope(x, point, {t: direction})
            for what, got, row in (
                (f"vjp of {name} by {t.name}", pulled, point.arrays[cot]),
                *((f"batched vjp of {name}", rows[k], point.arrays[batched][k]) for k in range(2)),
            ):
                compare(what, np.asarray((got * direction).sum()), np.asarray((row * along).sum()), tolerance, point)
    along, tolerance = slope(x, point, {t: point.arrays[tangent] for t, tangent in tangents.items()})
    pushed = run(push, point)
    compare(f"jvp of {name}", pushed, along, tolerance, point)
    dots = sum((run(g[t], point) * point.arrays[tangents[t]]).sum() for t in reals)
    assert dots == pytest.approx((point.arrays[cot] * pushed).sum(), rel=1e-10, abs=1e-10)


FLAT = {"tensor", "sign", "floor", "stop_gradient"}  # which have no derivative, or one of 0
MOVED = {
    name: x for name, x in (case.values for case in reversed(VALUED))
    if x.op.name == name and name not in FLAT and x.kind == "real" and free_tensors(x)
}  # fmt: skip
FAULTS = {
    "twice": lambda c: c + c,
    "of the other sign": lambda c: -c,
    "of the first entry alone": lambda c: c * sa.from_index(c.shape, lambda *i: sympy.KroneckerDelta(sum(i), 0)),
}


def test_fifty_records_have_a_vjp_to_plant_a_fault_in():
    assert len(MOVED) >= 50


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", one_in(3, MOVED))
def test_a_planted_wrong_vjp_is_caught(name, fault):
    x = MOVED[name]
    right = x.op.vjp

    def wrong(g, result, *inputs, **params):
        return tuple(c if c is None else FAULTS[fault](c) for c in right(g, result, *inputs, **params))

    object.__setattr__(x.op, "vjp", wrong)
    try:
        with pytest.raises((sa.EvaluationError, AssertionError)):
            hold_derivatives(name, x)
    finally:
        object.__setattr__(x.op, "vjp", right)


@pytest.mark.parametrize(("name", "x"), ONE_OF_EACH)
def test_second_derivatives(name, x):
    reals = free_tensors(x)
    if not reals:
        pytest.skip("a constant has no derivative")
    g = sa.gradient({x: sa.tensor("cot", *x.shape)}, reals)
    loss = sa.tanh(sum((sa.sum(g[t] * sa.tensor(f"v{k}", *t.shape)) for k, t in enumerate(reals)), sa.tensor("z0")))
    second = sa.gradient(loss, reals)
    assert isinstance(second, Gradient)
    f = sa.lambdify([*dict.fromkeys(n for y in second.values() for n in topological([y]) if n.op.name == "tensor")],
                    second)  # fmt: skip
    f.check()


@pytest.mark.parametrize(("name", "x"), VALUED)
def test_loop_axes_are_what_a_python_loop_gives(name, x):
    tensors = list(x.tensors)
    if not tensors:
        pytest.skip("no argument, no loop")
    point = sample_point([x], tensors, 3)
    f = sa.lambdify(tensors, x)
    known = {s.name: v for s, v in {**point.sizes, **point.scalars}.items()}
    keywords = {s.name: known[s.name] for s in f.takes.keywords}
    leads = itertools.cycle([(3, 2), (2,), (3, 1), ()])
    rng = np.random.default_rng(4)
    arrays = []
    for t in tensors:
        base = point.arrays[t]
        lead = next(leads)
        shape = (*lead, *base.shape)
        if t.kind == "real":
            arrays.append(base * rng.uniform(0.8, 1.2, shape))
        else:
            flipped = rng.random(shape) < 0.3
            arrays.append(base ^ flipped if t.kind == "binary" else np.where(flipped, 1 - base, base))
    got = f(*arrays, **keywords)
    shapes = [a.shape[: a.ndim - t.rank] for a, t in zip(arrays, tensors, strict=True)]
    loop = np.broadcast_shapes(*shapes)
    full = [np.broadcast_to(a, loop + a.shape[a.ndim - t.rank :]) for a, t in zip(arrays, tensors, strict=True)]
    assert got.shape == loop + point_shape(x, point)
    for place in np.ndindex(loop):
        compare(f"{name} in loop {place}", np.asarray(got[place], float),
                np.asarray(f(*(a[place] for a in full), **keywords), float), 1e-12, point)  # fmt: skip


def point_shape(x, point):
    return tuple(int(size.subs(point.sizes)) for size in x.shape)


@pytest.mark.parametrize(("name", "x"), VALUED)
def test_dtype_is_kept(name, x):
    tensors = list(x.tensors)
    if not any(t.kind == "real" for t in tensors):
        pytest.skip("no floating argument")
    point = sample_point([x], tensors, 5)
    f = sa.lambdify(tensors, x)
    known = {s.name: v for s, v in {**point.sizes, **point.scalars}.items()}
    for dtype in (np.float32, np.float64):
        arrays = [point.arrays[t] if t.kind == "binary" else point.arrays[t].astype(dtype) for t in tensors]
        got = f(*arrays, **{s.name: known[s.name] for s in f.takes.keywords})
        assert got.dtype == (np.bool_ if x.kind == "binary" else dtype)


@pytest.mark.parametrize(("name", "x"), CASES)
def test_prints_and_pickles(name, x):
    assert str(x)
    assert sa.latex(x)
    compile(str(x), "<text>", "eval")  # NumPy-like text is Python's grammar
    assert pickle.loads(pickle.dumps(x)) is x
    assert sa.latex(x).count("{") == sa.latex(x).count("}")
