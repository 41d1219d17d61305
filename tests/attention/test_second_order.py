"""Second derivatives in the forms of the field, proved; numbers against differences of gradients and PyTorch."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.attention import cross_entropy, rms_norm, scaled_dot_product
from symattn.printing.matrix import text

from .zoo import SIZES, ZOO, arrays, torch

T, S, n, d, e = sa.sizes("T S n d e")
z, v, y = sa.tensor("z", n), sa.tensor("v", n), sa.tensor("y", integer=True)
W, x, w = sa.tensor("W", n, d), sa.tensor("x", d), sa.tensor("w", d)
q, Q, K, V = sa.tensor("q", d), sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
P, U = sa.softmax(z), sa.softmax(W @ x)
A = sa.softmax(K @ q / sympy.sqrt(d))
MEAN, OUTPUT = A @ K, scaled_dot_product(q, K, V)
PARTITION = sa.logsumexp(K @ q / sympy.sqrt(d))


def covariance(p):
    return sa.diag(p) - sa.outer(p, p)


def rowsum(x):
    return sa.sum(x, axis=-1, keepdims=True)


PROVED = {
    "logsumexp": (sa.hessian(sa.logsumexp(z), z), covariance(P)),
    "logsumexp, times a vector": (sa.hvp(sa.logsumexp(z), z, v), P * (v - P @ v)),
    "cross-entropy by the scores": (sa.hessian(cross_entropy(z, y), z), covariance(P)),
    "cross-entropy by the scores, times a vector": (sa.hvp(cross_entropy(z, y), z, v), P * (v - P @ v)),
    "cross-entropy by the features": (sa.hessian(cross_entropy(W @ x, y), x), W.T @ covariance(U) @ W),
    "cross-entropy, times a vector": (
        sa.hvp(cross_entropy(W @ x, y), x, w), W.T @ (U * (W @ w - U @ (W @ w))),
    ),
    "log-partition: the covariance of the keys": (sa.hessian(PARTITION, q), K.T @ covariance(A) @ K / d),
    "log-partition, about the mean": (sa.hessian(PARTITION, q), ((K - MEAN).T * A) @ (K - MEAN) / d),
    "log-partition, times a vector": (sa.hvp(PARTITION, q, w), ((K - MEAN).T * A) @ (K - MEAN) @ w / d),
    "one query: the cross covariance": (sa.jacobian(OUTPUT, q), V.T @ covariance(A) @ K / sympy.sqrt(d)),
    "one query, about the means": (
        sa.jacobian(OUTPUT, q), ((V - OUTPUT).T * A) @ (K - MEAN) / sympy.sqrt(d),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROVED)
def test_second_derivatives_are_covariances(name):
    verdict = sa.prove(*PROVED[name])
    assert verdict.status == "proved"
    assert verdict.proof.check()


def test_a_covariance_is_no_product_of_means():
    assert sa.prove(sa.hessian(PARTITION, q), K.T @ sa.diag(A) @ K / d).status == "refuted"
    assert sa.prove(sa.jacobian(OUTPUT, q), V.T @ covariance(A) @ K / d).status == "refuted"


def test_hessians_print_as_on_paper():
    softmax = "\n# where P = softmax(z)"
    assert str(sa.hessian(sa.logsumexp(z), z)) == "diag(P) - outer(P, P)" + softmax
    assert str(sa.hessian(cross_entropy(z, y), z)) == "diag(P) - outer(P, P)" + softmax
    assert str(sa.hvp(sa.logsumexp(z), z, v)) == "P * (v - rowsum(P * v))" + softmax
    assert text(sa.hessian(cross_entropy(W @ x, y), x)) == "P * (W.T - rowsum(P * W.T)) @ W"
    assert text(sa.jacobian(OUTPUT, q)) == "P * (V.T - rowsum(P * V.T)) @ K / sqrt(d)"


def test_a_hessian_of_logsumexp_is_never_negative():
    along = K @ w
    assert sa.prove(w @ sa.hessian(PARTITION, q) @ w, sa.sum(A * (along - A @ along) ** 2) / d).status == "proved"
    assert sa.prove(sa.le(0, sa.sum(A * (along - A @ along) ** 2) / d)).status == "proved"


def test_tangents_of_attention_in_covariance_form():
    O = scaled_dot_product(Q, K, V)
    moved = {t: sa.tensor(f"d{t.name}", *t.shape) for t in (Q, K, V)}
    dQ, dK, dV = moved.values()
    weights = sa.softmax(Q @ K.T / sympy.sqrt(d))
    dZ = (dQ @ K.T + Q @ dK.T) / sympy.sqrt(d)
    dO = sa.jvp(O, moved)
    assert text(dO) == "Pdot @ V + P @ dV"
    wanted = (weights * (dZ - rowsum(weights * dZ))) @ V + weights @ dV
    assert sa.prove(dO, wanted).status == "proved"
    assert sa.prove(dO, (weights * dZ) @ V - rowsum(weights * dZ) * O + weights @ dV).status == "proved"
    g = sa.gradient(O, list(moved))
    both = sa.sum(g.cotangent * dO), sum(sa.sum(g[t] * moved[t]) for t in moved)
    assert sa.prove(*both).status == "proved"


def test_blocks_of_a_hessian_are_transposes_of_each_other():
    loss = sa.sum(scaled_dot_product(q, K, V) * sa.tensor("c", e))
    G = sa.tensor("G", S, d)
    mixed, turned = sa.jvp(sa.gradient(loss, q)[q], {K: G}), sa.jvp(sa.gradient(loss, K)[K], {q: w})
    assert sa.prove(w @ mixed, sa.sum(G * turned)).status == "proved"


# --- numbers: Hessian-vector products of a loss of each variant ---

VARIANTS = (
    "scaled_dot_product", "scaled_dot_product_masked", "softcap", "layer_norm", "rms_norm", "cross_entropy_smoothed",
    "rotary", "linear", "swiglu", "gpt",
)  # fmt: skip


def second_order(name):
    """The gradients of sum(G * output) by all arguments, and their motion along directions, as one function."""
    variant = ZOO[name]()
    G = sa.tensor("G_out", *variant.output.shape)
    slopes = sa.gradient(sa.sum(variant.output * G), variant.wrt)
    moved = {t: sa.tensor(f"{t.name}_dir", *t.shape) for t in variant.wrt}
    products = [sa.jvp(slopes[t], moved) for t in variant.wrt]
    given = [*variant.wrt, *variant.data, G]
    keywords = {size.name: SIZES[size] for size in variant.keywords}
    gradient = partial(sa.lambdify(given, [slopes[t] for t in variant.wrt]), **keywords)
    return variant, gradient, partial(sa.lambdify([*given, *moved.values()], products), **keywords)


def point(variant, rng):
    """Arrays of the arguments and the data, the cotangent, and one direction for each argument."""
    cotangent = rng.normal(size=[int(size.subs(SIZES)) for size in variant.output.shape])
    found = arrays(variant, rng)
    return found, cotangent, [rng.normal(size=a.shape) for a in found[: len(variant.wrt)]]


def assert_near(got, wanted, tolerance):
    scale = max(np.abs(a).max() for a in wanted)
    assert scale > 0
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape
        assert np.abs(a - b).max() <= tolerance * scale


@pytest.mark.parametrize("name", VARIANTS)
def test_products_equal_differences_of_gradients(name, rng):
    variant, gradient, products = second_order(name)
    found, cotangent, directions = point(variant, rng)
    step = 1e-5

    def moved_by(sign):
        moved = [a + sign * step * b for a, b in zip(found, directions, strict=False)]
        return gradient(*moved, *found[len(directions) :], cotangent)

    sides = zip(moved_by(1), moved_by(-1), strict=True)
    assert_near(products(*found, cotangent, *directions), [(a - b) / (2 * step) for a, b in sides], 1e-7)


@pytest.mark.torch
@pytest.mark.parametrize("name", VARIANTS)
def test_products_equal_those_of_pytorch(name, rng):
    variant, _, products = second_order(name)
    found, cotangent, directions = point(variant, rng)
    inputs = [torch.tensor(a, requires_grad=k < len(directions)) for k, a in enumerate(found)]
    loss = (variant.torch(*inputs) * torch.tensor(cotangent)).sum()
    slopes = torch.autograd.grad(loss, inputs[: len(directions)], create_graph=True)
    along = sum((a * torch.tensor(b)).sum() for a, b in zip(slopes, directions, strict=True))
    wanted = torch.autograd.grad(along, inputs[: len(directions)], materialize_grads=True)
    assert_near(products(*found, cotangent, *directions), [a.numpy() for a in wanted], 1e-9)


def test_one_variable_by_hvp_and_the_hessian_agree(rng):
    loss = sa.sum(rms_norm(Q, sa.tensor("g", d)) ** 3)
    direction = sa.tensor("D", T, d)
    H = sa.hessian(loss, Q)
    whole = sa.lambdify([Q, sa.tensor("g", d), direction], [sa.hvp(loss, Q, direction), H])
    arguments = [rng.normal(size=(4, 3)), rng.normal(size=3), rng.normal(size=(4, 3))]
    product, hessian = whole(*arguments)
    np.testing.assert_allclose(product, np.einsum("tdse,se->td", hessian, arguments[2]), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(hessian, hessian.transpose(2, 3, 0, 1), rtol=1e-11, atol=1e-13)
