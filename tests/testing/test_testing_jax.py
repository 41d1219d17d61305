"""Assertions on functions of JAX, which are differentiated by its own vjp."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.testing import assert_equivariant, assert_matches

from .test_testing import K, O, Q, S, T, V, X, Z, failure, h, k

pytestmark = pytest.mark.jax
SIZES = {"T": 4, "S": 3, "d": 2, "e": 5, "h": 2, "k": 3}  # at other ones JAX compiles again


@pytest.fixture
def jax():
    import jax  # the tests are skipped where it is not installed

    with jax.enable_x64():
        yield jax


def at_sizes(fn, expr, args, **options):
    """``assert_matches`` at sizes that all tests share."""
    names = {str(symbol) for x in args if isinstance(x, sa.Tensor) for symbol in x.free_symbols}
    assert_matches(fn, expr, args, sizes=[{name: SIZES[name] for name in names}], **options)


def attention_of(jax):
    def attention(q, key, v):
        return jax.nn.softmax(q @ key.T / q.shape[-1] ** 0.5, axis=-1) @ v

    return attention


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_right_function_of_jax_is_differentiated_and_passes(jax, dtype):
    at_sizes(attention_of(jax), O, [Q, K, V], dtype=dtype)
    at_sizes(attention_of(jax), O, [Q, K, V], adapt=jax.numpy.asarray, dtype=dtype)
    at_sizes(jax.jit(attention_of(jax)), O, [Q, K, V], dtype=dtype)
    outputs = [sa.softmax(Z), sa.logsumexp(Z)]
    for kind in (tuple, list):
        at_sizes(lambda z, f=kind: f([jax.nn.softmax(z), jax.nn.logsumexp(z, -1)]), outputs, [Z], dtype=dtype)


def test_arrays_of_bfloat16_of_jax(jax):
    narrow = {"adapt": lambda x: jax.numpy.asarray(x, jax.numpy.bfloat16), "dtype": "bfloat16"}
    at_sizes(attention_of(jax), O, [Q, K, V], **narrow)
    assert "dtype float32, but" in failure(at_sizes, lambda x: jax.numpy.asarray(x, "float32"), X, [X], **narrow)


def test_a_wrong_backward_of_jax_fails(jax):
    @jax.custom_vjp
    def doubled(x):
        return 2 * x

    doubled.defvjp(lambda x: (2 * x, None), lambda _, g: (3 * g,))
    for fn in (doubled, lambda x: 1 * doubled(x), jax.jit(doubled)):  # the first two give NumPy arrays for such
        assert "gradient by X[T, d]: largest error" in failure(at_sizes, fn, 2 * X, [X])
        at_sizes(fn, 2 * X, [X], constant=[X])

    @jax.custom_jvp
    def tripled(x):
        return 3 * x

    tripled.defjvp(lambda x, moved: (3 * x[0], 2 * moved[0]))
    assert "gradient by X[T, d]: largest error" in failure(at_sizes, tripled, 3 * X, [X])

    def held_weights(q, key, v):
        return jax.lax.stop_gradient(jax.nn.softmax(q @ key.T / q.shape[-1] ** 0.5, axis=-1)) @ v

    message = failure(at_sizes, held_weights, O, [Q, K, V])
    assert "gradient by Q[T, d]: largest error" in message
    assert "gradient by V" not in message
    at_sizes(held_weights, O, [Q, K, V], constant=["Q", K])


def test_a_wrong_value_of_jax_fails(jax):
    message = failure(at_sizes, lambda q, key, v: attention_of(jax)(q, key, v) / 2, O, [Q, K, V])
    assert "O: largest error" in message
    assert "gradient" not in message

    def unprotected(z):
        weights = jax.numpy.exp(z)
        return weights / weights.sum(axis=-1, keepdims=True)

    assert "not finite" in failure(at_sizes, unprotected, sa.softmax(Z), [Z], dtype="float32")


def test_masks_integers_and_scalars_of_jax_have_the_gradients_that_they_have(jax):
    jnp, M, tau = jax.numpy, sa.tensor("M", T, S, binary=True), sympy.Symbol("tau", positive=True)

    def masked(z, keep, t):
        weights = jax.nn.softmax(z / t, axis=-1, where=jnp.asarray(keep))
        return jnp.where(keep.any(-1, keepdims=True), weights, 0)

    at_sizes(masked, sa.softmax(Z / tau, where=M), [Z, M, tau])
    rows = sa.tensor("t", k, integer=True)
    at_sizes(lambda z, at: jnp.asarray(z)[at], sa.take(Z, rows, axis=0), [Z, rows])
    Y = sa.tensor("Y", T, h * k)
    heads = sa.moveaxis(sa.split_axis(Y, 1, (h, k)), 1, 0)
    at_sizes(lambda y, n: jnp.reshape(y, (len(y), n, -1)).swapaxes(0, 1), heads, [Y, h])
    c = sa.tensor("c")
    at_sizes(lambda x, a: jnp.asarray(a * x), c * X, [X, c])
    assert "gradient by c: largest error" in failure(
        at_sizes, lambda x, a: jax.lax.stop_gradient(jnp.asarray(a)) * x, c * X, [X, c]
    )


def test_functions_of_jax_without_a_derivative_and_with_one_that_is_given(jax):
    jnp, attention = jax.numpy, attention_of(jax)
    at_sizes(lambda x: np.asarray(2 * x), 2 * X, [X], adapt=jnp.asarray)
    at_sizes(lambda x: float(jnp.sum(x**2)), sa.sum(X**2), [X])
    at_sizes(jnp.floor, sa.floor(Z), [Z])
    at_sizes(lambda z: jnp.asarray(z) > 0, Z > 0, [Z])
    at_sizes(attention, O, [Q, K, V], grad=lambda q, key, v, g: jax.vjp(attention, q, key, v)[1](g))


def test_an_adapt_of_several_that_changes_shapes_has_no_derivative_by_args(jax):
    jnp, attention = jax.numpy, attention_of(jax)
    turned = {"adapt": lambda q, key, v: (jnp.asarray(q), jnp.asarray(key.T), jnp.asarray(v))}
    with pytest.raises(sa.OperandError, match="give grad=, or constant=args to compare values alone"):
        at_sizes(lambda q, kt, v: attention(q, kt.T, v), O, [Q, K, V], **turned)
    at_sizes(lambda q, kt, v: attention(q, kt.T, v), O, [Q, K, V], constant=[Q, K, V], **turned)


def test_the_equivariance_of_functions_of_jax(jax):
    jnp = jax.numpy
    x = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)))
    assert_equivariant(lambda x: jnp.tanh(x @ x.T) @ x, x, "orthogonal")
    assert "by numbers" in failure(assert_equivariant, lambda x: jnp.cumsum(x, 0), x, "permutation")
