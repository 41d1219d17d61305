"""Functions of PyTorch and JAX: the numbers of the NumPy code, derivatives inside the library, and clear errors."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import sympy

import symattn as sa

from ..attention.zoo import SIZES, ZOO, arrays

T, S, d, e = sa.sizes("T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
c = sympy.Symbol("c", positive=True)
O = sa.let("O", sa.softmax(c * (Q @ K.T)) @ V)
BACKENDS = [pytest.param("torch", marks=pytest.mark.torch), pytest.param("jax", marks=pytest.mark.jax)]


class InTorch:
    """What tests ask of PyTorch."""

    def __init__(self):
        import torch

        self.library = torch

    def array(self, x, dtype=None):
        return self.library.from_numpy(np.asarray(x, dtype))

    def derivatives(self, f, values, cotangents):
        """The outputs of a function of real arrays, and the products of cotangents with its Jacobians."""
        inputs = [self.array(x).requires_grad_() for x in values]
        outputs = f(*inputs)
        every = outputs if isinstance(outputs, tuple) else (outputs,)
        slopes = self.library.autograd.grad(every, inputs, [self.array(x) for x in cotangents])
        return [x.detach().numpy() for x in (*every, *slopes)]


class InJax:
    """What tests ask of JAX."""

    def __init__(self):
        import jax

        self.library = jax

    def array(self, x, dtype=None):
        return self.library.numpy.asarray(np.asarray(x, dtype))

    def derivatives(self, f, values, cotangents):
        jax, inputs = self.library, [self.array(x) for x in values]

        def both(inputs, cotangents):
            outputs, back = jax.vjp(f, *inputs)
            every = outputs if isinstance(outputs, tuple) else (outputs,)
            return *every, *back(tuple(cotangents) if isinstance(outputs, tuple) else cotangents[0])

        return [np.asarray(x) for x in jax.jit(both)(inputs, [self.array(x) for x in cotangents])]


@pytest.fixture
def on(backend):
    """The library of the test, with float64."""
    if backend == "torch":
        yield InTorch()
    else:
        made = InJax()
        made.library.config.update("jax_disable_most_optimizations", True)  # what is tested is compiled once
        with made.library.enable_x64(True):
            yield made
        made.library.config.update("jax_disable_most_optimizations", False)


def same(got, want, tolerance=1e-10):
    for a, b in zip(got, want, strict=True):
        assert np.shape(a) == np.shape(b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert np.isfinite(a).all()
        assert np.abs(a - b).max() <= tolerance * max(1, np.abs(b).max())


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.parametrize("backend", BACKENDS)
def test_variants_and_their_derivatives_equal_the_numpy_code(name, backend, on, rng):
    v = ZOO[name]()
    G = sa.tensor("G", *v.output.shape)
    g = sa.gradient({v.output: G}, v.wrt)
    values, cotangent = arrays(v, rng), rng.normal(size=[int(size.subs(SIZES)) for size in G.shape])
    sizes = {size.name: SIZES[size] for size in v.keywords}
    wanted = sa.lambdify([*v.wrt, *v.data, G], [v.output, g])(*values, cotangent, **sizes)
    f = sa.lambdify([*v.wrt, *v.data], v.output, backend=backend)
    told = {name: SIZES[size] for size, name in f.keywords.items()}
    data = [on.array(x) for x in values[len(v.wrt) :]]
    same(on.derivatives(lambda *x: f(*x, *data, **told), values[: len(v.wrt)], [cotangent]), wanted)


@pytest.mark.parametrize("backend", BACKENDS)
def test_loop_axes_scalars_and_types(backend, on, rng):
    shapes = (3, 4, 2), (5, 2), (3, 5, 6)
    values = [rng.normal(size=shape) for shape in shapes]
    g = sa.gradient(O, [Q, K, V, c])
    wanted = sa.lambdify([Q, K, V, g.cotangent], [O, g])(*values, weight := rng.normal(size=(3, 4, 6)), c=0.7)
    f = sa.lambdify([Q, K, V], O, backend=backend)
    got = on.derivatives(lambda q, k, v, c: f(q, k, v, c=c), [*values, np.asarray(0.7)], [weight])
    same(got[:-1], wanted[:-1])
    np.testing.assert_allclose(got[-1], wanted[-1].sum(), rtol=1e-12)
    single = f(*(on.array(x, np.float32) for x in values), c=0.7)
    assert np.asarray(single).dtype == np.float32
    mixed = f(on.array(values[0], np.float32), *(on.array(x) for x in values[1:]), c=0.7)
    assert np.asarray(mixed).dtype == np.float64


@pytest.mark.parametrize("backend", BACKENDS)
def test_masked_rows_and_minus_infinity(backend, on, rng):
    M, Z = sa.tensor("M", T, S, binary=True), sa.tensor("Z", T, S)
    allowed = np.array([[True, False, True], [False, False, False], [True, True, True]])
    outputs = [sa.softmax(Z, where=M), sa.logsumexp(Z), sa.sum(sa.where(M, Z, 0))]
    z = rng.normal(size=(3, 3))
    f, numpy = sa.lambdify([Z, M], outputs, backend=backend), sa.lambdify([Z, M], outputs)
    same(map(np.asarray, f(on.array(z), on.array(allowed))), numpy(z, allowed))
    hidden = np.where(allowed, z, -np.inf)
    h, numpy = sa.lambdify([Z], sa.softmax(Z), backend=backend), sa.lambdify([Z], sa.softmax(Z))
    same([np.asarray(h(on.array(hidden)))], [numpy(hidden)])
    assert not np.asarray(h(on.array(hidden)))[1].any()
    wide = np.array([[1e308, 0, -1e308], [800, 801, -800]])
    same([np.asarray(h(on.array(wide)))], [numpy(wide)])


def decayed():
    def step(state, x):
        k, v, q, a = x
        state = a * state + sa.outer(k, v)
        return state, q @ state

    X, Y = sa.tensor("X", T, d), sa.tensor("Y", T, e)
    final, outputs = sa.scan(step, sa.zeros(d, e), (X, Y, sa.tensor("R", T, d), sa.tensor("a", T)))
    return [X, Y, sa.tensor("R", T, d), sa.tensor("a", T)], [outputs, final]


@pytest.mark.parametrize("backend", BACKENDS)
def test_recurrences_with_loop_axes(backend, on, rng):
    inputs, outputs = decayed()
    values = [rng.normal(size=shape) for shape in ((2, 6, 3), (6, 4), (2, 6, 3), (6,))]
    f, weights = sa.lambdify(inputs, outputs, backend=backend), [rng.normal(size=s) for s in ((2, 6, 4), (2, 3, 4))]
    G, H = sa.tensor("G", T, e), sa.tensor("H", d, e)
    g = sa.gradient({outputs[0]: G, outputs[1]: H}, inputs)
    same(on.derivatives(f, values, weights), sa.lambdify([*inputs, G, H], [*outputs, g])(*values, *weights))
    assert ("jax.lax.scan" in f.source) == (backend == "jax")


def centred(x):
    top = np.maximum(x.max(axis=-1, keepdims=True), 0)
    with np.errstate(all="ignore"):
        return np.where(x > -np.inf, x - top, np.zeros(x.shape, x.dtype))


def unwrapped(x):
    return np.unwrap(x)


@pytest.mark.parametrize("backend", BACKENDS)
def test_operations_of_users(backend, on, rng):
    k, x, X = sympy.Symbol("k", integer=True), rng.normal(size=(4, 3)), sa.tensor("X", "n d")

    def lengths(index, z):
        return sympy.Sum(z[(*index, k)] ** 2, (k, 0, z.shape[-1] - 1))

    by_entry = sa.operation("lengths", shape="n d -> n", entry=lengths)
    f = sa.lambdify([X], by_entry(X), backend=backend)
    same(on.derivatives(f, [x], [np.ones(4)]), [(x**2).sum(-1), 2 * x])
    given = sa.operation("centred", shape="n d -> n d", entry=lambda index, z: z[index], numpy=centred)
    f = sa.lambdify([X], given(X), backend=backend)
    same(on.derivatives(f, [x], [np.ones((4, 3))]), [centred(x), np.ones((4, 3))])


@pytest.mark.torch
def test_an_operation_whose_numpy_has_no_spelling():
    X = sa.tensor("X", "n d")
    given = sa.operation("unwrapped", shape="n d -> n d", entry=lambda index, z: z[index], numpy=unwrapped)
    with pytest.raises(
        sa.NoRuleError, match=r"PyTorch has no spelling for np\.unwrap: leave numpy= of the operation out"
    ):
        sa.lambdify([X], given(X), backend="torch")


@pytest.mark.parametrize("backend", BACKENDS)
def test_second_derivatives_inside_the_library(backend, on, rng):
    x = rng.normal(size=(3, 4))
    X = sa.tensor("X", "n d")
    y = sa.sum(sa.tanh(X) ** 2 * sa.logsumexp(X)[:, None])
    f = sa.lambdify([X], y, backend=backend)
    direction = rng.normal(size=(3, 4))
    if backend == "torch":
        moved = on.array(x).requires_grad_()
        (slope,) = on.library.autograd.grad(f(moved), moved, create_graph=True)
        (second,) = on.library.autograd.grad((slope * on.array(direction)).sum(), moved)
    else:
        grad = on.library.grad(f)
        second = on.library.grad(lambda z: (grad(z) * on.array(direction)).sum())(on.array(x))
    D = sa.tensor("D", "n d")
    same([np.asarray(second)], [sa.lambdify([X, D], sa.hvp(y, X, D))(x, direction)])


@pytest.mark.parametrize("backend", BACKENDS)
def test_sources_stand_alone_and_checks_pass(backend, on, capsys):
    g = sa.gradient(O, [Q, c])
    f = sa.lambdify([Q, K, V, g.cotangent], [O, g], backend=backend)
    assert "symattn" not in f.source
    exec(compile(f.source, "source", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.count(" agrees with ") == 2
    said = sa.lambdify([Q, K, V], O, backend=backend).check()
    assert "O: code equals entries" in said
    assert "dK: gradient equals central differences" in said
    again = pickle.loads(pickle.dumps(f))
    assert again.source == f.source
    assert repr(f).startswith("<PyTorch function" if backend == "torch" else "<JAX function")


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_does_not_fit_is_an_error_by_name(backend, on):
    f, x = sa.lambdify([Q, K], Q @ K.T, backend=backend), on.array(np.ones((2, 3)))
    with pytest.raises(sa.EvaluationError, match=r"K is numpy.ndarray, .* arrays of (PyTorch|JAX) alone"):
        f(x, np.ones((4, 3)))
    with pytest.raises(sa.EvaluationError, match=r"K has dtype .*int64, and K\[S, d\] is a tensor of real numbers"):
        f(x, on.array(np.ones((4, 3), int)))
    with pytest.raises(sa.EvaluationError, match=r"K has shape \(4, 2\) for K\[S, d\]: axis -1 must be d = 3"):
        f(x, on.array(np.ones((4, 2))))
    with pytest.raises(sa.EvaluationError, match=r"takes \(Q, K\) by position"):
        f(x)
    with pytest.raises(sa.EvaluationError, match=r"K has shape \(3,\), of 1 axes"):
        f(x, on.array(np.ones(3)))
    with pytest.raises(sa.EvaluationError, match=r"give c=\.\.\."):
        sa.lambdify([Q, K, V], O, backend=backend)(x, x, x)
    with pytest.raises(sa.EvaluationError, match="M has dtype .*, and .* is declared binary"):
        sa.lambdify([m := sa.tensor("M", T, d, binary=True), Q], Q * m, backend=backend)(x, x)


def test_an_unknown_library_is_an_error():
    with pytest.raises(sa.OperandError, match="backend is 'numpy', 'torch' or 'jax', not 'cupy'"):
        sa.lambdify([Q], Q, backend="cupy")


@pytest.mark.parametrize(("backend", "module"), [("torch", "torch"), ("jax", "jax")])
def test_a_missing_library_is_an_error_that_says_how_to_install_it(backend, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(sa.EvaluationError, match=rf"pip install 'symattn\[{backend}\]'"):
        sa.lambdify([Q], Q, backend=backend)


# --- one library alone ---


@pytest.mark.torch
def test_torch_compile_takes_it_as_one_node(rng):
    import torch

    f = sa.lambdify([Q, K, V], O, backend="torch")

    def model(q, k, v):
        return torch.tanh(f(q, k, v, c=0.7)) * 2

    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    for rows in (4, 6):
        x = [torch.from_numpy(rng.normal(size=s)).requires_grad_() for s in ((2, rows, 3), (5, 3), (2, 5, 4))]
        plain, found = model(*x), compiled(*x)
        np.testing.assert_allclose(found.detach(), plain.detach(), rtol=1e-12)
        for a, b in zip(*(torch.autograd.grad((y**2).sum(), x) for y in (plain, found)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.torch
def test_torch_vmap_gradcheck_and_ownership(rng):
    import torch

    f = sa.lambdify([Q, K, V], O, backend="torch")
    q, k, v = (torch.from_numpy(rng.normal(size=s)) for s in ((2, 4, 3), (5, 3), (5, 6)))
    np.testing.assert_allclose(torch.func.vmap(lambda x: f(x, k, v, c=0.7))(q), f(q, k, v, c=0.7), rtol=1e-12)
    assert torch.autograd.gradcheck(lambda *x: f(*x, c=0.7), [x.requires_grad_() for x in (q, k, v)])
    X = sa.tensor("X", "n d")
    given = torch.ones(2, 3)
    for y in (X, X.T, X[::-1], X[0], sa.let("Y", X.T)):
        sa.lambdify([X], y, backend="torch")(given).fill_(7)
        assert (given == 1).all()
    first, second = sa.lambdify([X], [a := X + 1, a], backend="torch")(given)
    first.fill_(7)
    assert (second == 2).all()


@pytest.mark.torch
def test_torch_devices_are_one_and_are_kept():
    import torch

    f = sa.lambdify([Q, K], sa.softmax(Q @ K.T, where=sa.from_index((T, S), lambda i, j: j <= i)), backend="torch")
    meta = [torch.ones(2, 3, device="meta"), torch.ones(4, 3, device="meta")]
    assert f(*meta).device.type == "meta"
    with pytest.raises(sa.EvaluationError, match="different devices: Q on meta, K on cpu"):
        f(meta[0], torch.ones(4, 3))


@pytest.mark.torch
def test_torch_refuses_an_index_outside():
    import torch

    index = sa.tensor("i", T, integer=True)
    f = sa.lambdify([K, index], sa.take(K, index, 0), backend="torch")
    with pytest.raises(sa.EvaluationError, match="an index of i is not a whole number from 0 to 1"):
        f(torch.ones(2, 3), torch.tensor([0, 2]))


@pytest.mark.jax
def test_jax_jit_and_vmap(rng):
    import jax

    with jax.enable_x64(True):
        f = sa.lambdify([Q, K, V], O, backend="jax")
        q, k, v = (jax.numpy.asarray(rng.normal(size=s)) for s in ((2, 4, 3), (5, 3), (5, 6)))
        wanted = sa.lambdify([Q, K, V], O)(*map(np.asarray, (q, k, v)), c=0.7)
        np.testing.assert_allclose(jax.jit(f)(q, k, v, c=0.7), wanted, rtol=1e-12)
        np.testing.assert_allclose(jax.vmap(lambda x: f(x, k, v, c=0.7))(q), wanted, rtol=1e-12)
        by_example = jax.vmap(jax.grad(lambda x, c: f(x, k, v, c=c).sum(), (0, 1)), (0, None))(q, 0.7)
        assert [x.shape for x in by_example] == [(2, 4, 3), (2,)]
        total = jax.grad(lambda c: f(q, k, v, c=c).sum())(0.7)
        np.testing.assert_allclose(by_example[1].sum(), total, rtol=1e-10)


@pytest.mark.jax
def test_jax_gives_nan_for_an_index_outside():
    import jax.numpy as jnp

    index = sa.tensor("i", T, integer=True)
    f = sa.lambdify([K, index], sa.take(K, index, 0), backend="jax")
    got = np.asarray(f(jnp.ones((2, 3)), jnp.asarray([0, 2])))
    assert (got[0] == 1).all()
    assert np.isnan(got[1]).all()


ON_EIGHT_DEVICES = """
import jax, numpy as np, sympy, symattn as sa
from jax.sharding import NamedSharding, PartitionSpec

T, d = sa.sizes("T d")
Q, K, V, G = (sa.tensor(name, T, d) for name in "QKVG")
O = sa.softmax(Q @ K.T / sympy.sqrt(d), where=sa.from_index((T, T), lambda i, j: j <= i)) @ V
f = sa.lambdify([Q, K, V], O, backend="jax")
spread = NamedSharding(jax.make_mesh((2, 4), ("batch", "heads")), PartitionSpec("batch", "heads"))
rng = np.random.default_rng(0)
given = [rng.normal(size=(4, 8, 6, 3)).astype(np.float32) for _ in range(4)]
q, k, v, c = (jax.device_put(x, spread) for x in given)

def both(q, k, v, c):
    o, back = jax.vjp(f, q, k, v)
    return o, *back(c)

run = jax.jit(both).lower(q, k, v, c).compile()
assert "all-gather" not in run.as_text() and "all-reduce" not in run.as_text()
g = sa.gradient({O: G}, [Q, K, V])
wanted = sa.lambdify([Q, K, V, G], [O, g])(*given)
for got, want in zip(run(q, k, v, c), wanted, strict=True):
    assert len(got.devices()) == 8 and got.sharding.spec[:2] == ("batch", "heads")
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
print("the same on", len(jax.devices()))
"""


@pytest.mark.jax
def test_jax_spreads_batch_and_heads_over_devices():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    said = subprocess.run(
        [sys.executable, "-c", ON_EIGHT_DEVICES], env={**os.environ, **flags}, capture_output=True, text=True
    )
    assert said.stdout == "the same on 8\n", said.stderr
