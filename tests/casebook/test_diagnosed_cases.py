"""Backward passes that were published wrong: what they gave, and the mistake that is named for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.ops.leaves import computed, variable

T, S, d, e, n, h, g = sa.sizes("T S d e n h g")
SIZES = {T: 5, S: 7, d: 4, e: 3, n: 6, h: 2, g: 3}
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
A = sa.attention
Arrays = dict[str, Any]


def drawn(of: Any, sizes: Any = SIZES, **more: float) -> Arrays:
    """Arrays for all that gradients are made of."""
    rng = np.random.default_rng(5)
    leaves = [x for x in computed([*of.values()]) if x.op is variable]
    return {**{str(x.name): rng.normal(size=[int(s.subs(sizes)) for s in x.shape]) for x in leaves}, **more}


def rows(z: Any) -> Any:
    weights = np.exp(z - z.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def mean(x: Any) -> Any:
    return x.mean(axis=-1, keepdims=True)


def first(found: Arrays, of: Any, at: Arrays) -> str:
    return str(sa.diagnose(found, of, at)).splitlines()[0]


def test_the_key_gradient_with_its_factors_swapped():
    square = sa.gradient(A.scaled_dot_product(Q, K, V), [Q, K, V])
    at = drawn(square, {**SIZES, S: 5, d: 5, e: 5})
    p = rows(at["Q"] @ at["K"].T / 5**0.5)
    dp = at["dO"] @ at["V"].T
    dz = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    told = "dK is the right one with the factors of dZ.T @ Q swapped"
    assert first({"dQ": dz @ at["K"] / 5**0.5, "dK": at["Q"] @ dz.T / 5**0.5}, square, at) == told


def test_a_cap_of_raw_scores_that_are_scaled_afterwards():
    a, c = sympy.symbols("a c", positive=True)
    x = sa.tensor("x", T, S)
    capped = sa.gradient(sa.let("y", c * sa.tanh(a * x / c)), [x])
    at = drawn(capped, a=0.5, c=2.0)
    told = "y is the right one with the factor a outside of tanh"
    assert first({"y": np.tanh(at["x"] / 2)}, capped, at) == told
    slope = 0.5 * (1 - np.tanh(at["x"] / 2) ** 2)
    assert first({"dx": at["dy"] * slope}, capped, at) == "dx is the right one with the factor 1/c in place of a/c"


def test_the_gradient_of_a_sink_that_was_dropped():
    b = sa.tensor("b")
    sink = sa.gradient(A.sink(Q, K, V, b), [Q, K, V, b])
    assert first({"db": np.zeros(())}, sink, drawn(sink)) == "db is the right one left out, as zeros"


@pytest.mark.parametrize(("sign", "told"), [
    (0, "without the term dL[:, None] * P"), (-1, "with the opposite sign of the term dL[:, None] * P"),
])  # fmt: skip
def test_a_loss_on_the_logsumexp_that_the_backward_forgets_or_subtracts(sign, told):
    Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
    O, L = sa.let("O", sa.let("P", sa.softmax(Z)) @ V), sa.let("L", sa.logsumexp(Z))
    both = sa.gradient({O: sa.tensor("dO", T, e), L: sa.tensor("dL", T)}, [Q, K])
    at = drawn(both)
    p, dp = rows(at["Q"] @ at["K"].T / 2), at["dO"] @ at["V"].T
    dz = p * (dp - (p * dp).sum(axis=-1, keepdims=True) + sign * at["dL"][:, None])
    found = {"dQ": dz @ at["K"] / 2, "dK": dz.T @ at["Q"] / 2}
    assert first(found, both, at) == f"dZ is the right one {told}; dQ and dK follow"


def test_a_log_softmax_whose_backward_does_not_sum_or_uses_the_jacobian_untransposed():
    Z, z = sa.tensor("Z", T, n), sa.tensor("z", n)
    matrix = sa.gradient(sa.let("Y", Z - sa.logsumexp(Z, keepdims=True)), [Z])
    at = drawn(matrix)
    assert "without the sum over dY" in first({"dZ": at["dY"] - rows(at["Z"]) * at["dY"]}, matrix, at)
    vector = sa.gradient(sa.let("y", z - sa.logsumexp(z)), [z])
    at = drawn(vector)
    told = "dz is the right one with the Jacobian in place of its transpose"
    assert first({"dz": at["dy"] - rows(at["z"]) @ at["dy"]}, vector, at) == told


def test_a_layer_norm_whose_backward_lacks_one_of_two_terms():
    x, gamma, beta = sa.tensor("x", T, d), sa.tensor("gamma", d), sa.tensor("beta", d)
    norm = sa.gradient(A.layer_norm(x, gamma, beta, eps=0), [x, gamma, beta])
    at = drawn(norm)
    sigma = at["x"].std(axis=-1, keepdims=True)
    hat, w = (at["x"] - mean(at["x"])) / sigma, at["gamma"] * at["dN"]
    assert first({"dx": (w - mean(w) - hat * mean(hat * w)) / sigma}, norm, at) == "dx agrees"
    assert first({"dx": (w - hat * mean(hat * w)) / sigma}, norm, at) == "dx is the right one without the term dmu / d"
    told = "dC is the right one without the term Xhat * rowmean(Xhat * dXhat); dx follows"
    assert first({"dx": (w - mean(w)) / sigma}, norm, at) == told


def test_a_cross_entropy_whose_gradient_goes_through_the_softmax_once_more():
    Z, Y = sa.tensor("Z", T, n), sa.tensor("Y", T, n)
    loss = sa.gradient(A.cross_entropy(Z, Y, reduction="sum"), [Z])
    at = drawn(loss)
    p = rows(at["Z"])
    dz = p * at["Y"].sum(axis=-1, keepdims=True) - at["Y"]
    found = {"dZ": p * (dz - (p * dz).sum(axis=-1, keepdims=True))}
    assert first(found, loss, at) == "dZ is the right one with the Jacobian of softmax(Z) once more"


def test_heads_that_are_reshaped_where_their_axis_has_to_be_moved():
    X = sa.tensor("X", h, T, d)
    merged = sa.let("Y", A.merge_heads(X))
    at = {"X": np.random.default_rng(2).normal(size=(2, 5, 4))}
    assert "reshaped, where axes are moved" in first({"Y": at["X"].reshape(5, 8)}, merged, at)


def test_key_heads_that_are_tiled_where_they_are_repeated():
    q, k, v = sa.tensor("Q", h * g, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)
    grouped = A.grouped_query(q, k, v)
    at = drawn({"O": grouped})
    keys, values = np.tile(at["K"], (3, 1, 1)), np.tile(at["V"], (3, 1, 1))
    found = {"O": rows(at["Q"] @ keys.mT / 2) @ values}
    assert first(found, grouped, at) == "K_r and V_r are the right ones tiled, not repeated; O follows"


@pytest.mark.parametrize(("keep", "told"), [
    (lambda i, j: j >= i, "with rows and columns of the mask exchanged"),
    (lambda i, j: j < i, "with the mask j <= i - 1 in place of j <= i"),
    (lambda i, j: j <= j, "without the mask"),
], ids=["upper", "strict", "none"])  # fmt: skip
def test_a_causal_mask_that_is_turned_shifted_or_never_added(keep, told):
    causal = A.scaled_dot_product(Q, K, V, mask=A.causal_mask(T, S))
    at = drawn({"O": causal})
    z = np.where(keep(np.arange(5)[:, None], np.arange(7)), at["Q"] @ at["K"].T / 2, -np.inf)
    z[~np.isfinite(z).any(axis=1)] = -np.inf
    with np.errstate(all="ignore"):
        found = np.nan_to_num(rows(z)) @ at["V"]
    assert first({"O": found}, causal, at) == f"P is the right one {told}; O follows"


def test_rotations_with_the_sine_of_the_other_sign_or_of_the_other_pairs():
    q = sa.tensor("Q", T, 2 * d)
    turned = sa.let("R", A.rotary(q))
    at = {"Q": np.random.default_rng(3).normal(size=(5, 8))}
    left, right = at["Q"][:, :4], at["Q"][:, 4:]

    def rotated(angles: Any) -> Any:
        cos, sin = np.cos(angles), np.sin(angles)
        return np.concatenate([left * cos - right * sin, left * sin + right * cos], axis=1)

    position, channel = np.arange(5.0)[:, None], np.arange(4)
    angles = position / 10000.0 ** (channel / 4)
    assert first({"R": rotated(angles)}, turned, at) == "R agrees"
    told = "S_theta is the right one with the opposite sign; R follows"
    assert first({"R": rotated(-angles)}, turned, at) == told
    pairs = position / 10000.0 ** (channel // 2 / 4)
    assert "neighbouring pairs" in first({"R": rotated(pairs)}, turned, at)
    assert "positions that are one too large" in first({"R": rotated((position + 1) * angles[1])}, turned, at)
