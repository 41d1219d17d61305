"""Second derivatives under loop axes: random small graphs, looped against one call a place, shapes included."""

import numpy as np
import pytest

import symattn as sa

b, T, S = sa.sizes("b T S")
SIZES = {b: 2, T: 3, S: 4}
SHAPES = [(b, 1, 1), (b, T, 1), (1, S), (b, T, S)]
POINTWISE = [sa.tanh, sa.exp, sa.sigmoid, sa.relu, lambda x: x * x, lambda x: 2 * x, lambda x: 1 + x]
ROWS = [
    lambda x, axis: sa.sum(x, axis, keepdims=True),
    lambda x, axis: sa.mean(x, axis, keepdims=True),
    lambda x, axis: sa.max(x, axis, keepdims=True),
    lambda x, axis: sa.softmax(x, axis=axis),
    lambda x, axis: sa.logsumexp(x, axis, keepdims=True),
]


def a_loss(rng, leaves):
    """A random scalar of the leaves, with names and shared parts on the way."""
    pool = list(leaves)
    for k in range(rng.integers(1, 5)):
        x, y = (pool[rng.integers(len(pool))] for _ in range(2))
        kind = rng.integers(4)
        if kind == 0:
            new = POINTWISE[rng.integers(len(POINTWISE))](x)
        elif kind == 1:
            new = ROWS[rng.integers(len(ROWS))](x, int(rng.integers(-x.rank, 0)))
        else:
            new = x * y if kind == 2 else x + y
        pool.append(sa.let(f"A{k}", new) if rng.integers(2) else new)
    return sa.sum(pool[-1]) + (sa.sum(pool[-2]) if rng.integers(2) else 0)


def assert_loops(arguments, outputs, rng, loops):
    f = sa.lambdify(arguments, outputs)
    arrays = [rng.normal(size=(*loops, *(SIZES.get(n, 1) for n in a.shape))) for a in arguments]
    got = f(*arrays)
    for place in np.ndindex(*loops):
        for y, one, want in zip(outputs, got, f(*(a[place] for a in arrays)), strict=True):
            assert one.shape == (*loops, *want.shape), (y, f.source)
            np.testing.assert_allclose(one[place], want, rtol=1e-9, atol=1e-11, err_msg=f"{y}\n{f.source}")


@pytest.mark.parametrize("seed", range(40))
def test_second_derivatives_of_random_graphs_have_the_loop_axes_of_their_arguments(seed):
    rng = np.random.default_rng(seed)
    leaves = [sa.tensor(f"x{k}", *SHAPES[rng.integers(4)]) for k in range(2)]
    loss = a_loss(rng, leaves)
    x = leaves[rng.integers(2)]
    v = sa.tensor("v", *x.shape)
    loops = [(2,), (3, 2), (1,)][rng.integers(3)]
    assert_loops([*leaves, v], [sa.hvp(loss, x, v)], rng, loops)
    assert_loops([*leaves, v], [sa.jvp(loss, {x: v})], rng, loops)
    if x.rank == 2:
        assert_loops(leaves, [sa.hessian(loss, x)], rng, loops)
    w = sa.tensor("w", T)
    along = sa.sum(loss * w * w)
    assert_loops([*leaves, w], [sa.hessian(along, w)], rng, loops)


CONSTANT = {
    "hvp of what is linear": lambda x, w: sa.hvp(sa.sum(x), x, w),
    "hvp of a kink": lambda x, w: sa.hvp(sa.sum(sa.relu(x)), x, w),
    "hessian of a square": lambda x, w: sa.hessian(sa.sum(x * x), x),
    "a block": lambda x, w: sa.hessian(sa.sum(x * w * w), [x, w])[x, w],
    "jacobian": lambda x, w: sa.jacobian(3 * x, x),
    "jvp": lambda x, w: sa.jvp(3 * x, {x: w}),
    "a constant": lambda x, w: sa.ones(T),
    "a number": lambda x, w: sa.sum(sa.ones(T)),
    "a comparison of numbers": lambda x, w: sa.sum(sa.ones(T)) > 2,
}


@pytest.mark.parametrize("name", CONSTANT)
@pytest.mark.parametrize("looped", ["x", "w", "both"])
def test_an_output_that_does_not_depend_on_a_looped_argument_is_one_for_each_place(name, looped):
    x, w = sa.tensor("x", T), sa.tensor("w", T)
    f = sa.lambdify([x, w], CONSTANT[name](x, w))
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=((5, 2) if looped in (a.name, "both") else ()) + (3,)) for a in (x, w)]
    got = f(*arrays)
    wanted = [f(*(a[place] if a.ndim > 1 else a for a in arrays)) for place in np.ndindex(5, 2)]
    assert got.shape == (5, 2, *np.shape(wanted[0]))
    np.testing.assert_array_equal(got.reshape(-1, *np.shape(wanted[0])), wanted)
    got[...] = 0  # a result may be written to


def test_a_gradient_keeps_the_loop_axes_of_its_variable_beside_what_reads_nothing():
    x, w = sa.tensor("x", T), sa.tensor("w", T)
    g = sa.gradient(sa.sum(x * w), [x, w])
    dx, double, one = sa.lambdify([x, w], [g[x], 2 * g[w], sa.ones(T)])(np.ones((5, 3)), np.ones(3))
    assert (dx.shape, double.shape, one.shape) == ((5, 3), (3,), (5, 3))
    np.testing.assert_array_equal(double, 10)
