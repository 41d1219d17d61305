"""Gradients of the operator Attention, as it is built for the ONNX cases, against central differences in float64."""

from __future__ import annotations

import numpy as np
import pytest

import symattn as sa

from .attention import B, Features, S, T, d, e, g, h, inputs, outputs, p

SIZES = {B: 2, g: 2, h: 3, T: 4, S: 5, d: 3, e: 6, p: 2}
STEP = 1e-5
CONFIGURATIONS = {
    "plain": (Features(), {}),
    "causal": (Features(causal=True), {}),
    "grouped": (Features(grouped=True), {}),
    "capped and masked": (Features(capped=True, mask=(False, True, False, False), binary=True), {"cap": 1.5}),
    "cached keys": (Features(packed=True, causal=True, past=True, mask=(False, False)), {"h": SIZES[h]}),
}


def drawn(x, rng):
    """Normal entries; a mask with an empty row, and one key at least in the others."""
    shape = [int(size.subs(SIZES)) for size in x.shape]
    if x.kind != "binary":
        return rng.normal(size=shape)
    keep = rng.random(shape) < 0.6
    keep[..., 0], keep[..., 1, :] = True, False
    return keep


def differences(function, arrays, place, cotangent):
    """The derivative of sum(cotangent * output) by each entry of one argument; the entries are a loop axis."""
    x = arrays[place]
    moved = STEP * np.eye(x.size).reshape(x.size, *x.shape)
    up, down = (function(*arrays[:place], x + change, *arrays[place + 1 :]) for change in (moved, -moved))
    return ((up - down) * cotangent).reshape(x.size, -1).sum(1).reshape(x.shape) / (2 * STEP)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_gradients_equal_central_differences(name, rng):
    features, keywords = CONFIGURATIONS[name]
    arguments = list(inputs(features).values())
    output = outputs(features, inputs(features))["Y"]
    gradient = sa.gradient(output, [x for x in arguments if x.kind != "binary"])
    forward = sa.lambdify(arguments, output)
    backward = sa.lambdify([*arguments, gradient.cotangent], gradient)
    arrays, cotangent = [drawn(x, rng) for x in arguments], drawn(output, rng)
    for x, got in zip(gradient, backward(*arrays, cotangent, **keywords), strict=True):
        want = differences(lambda *xs: forward(*xs, **keywords), arrays, arguments.index(x), cotangent)
        assert np.abs(got - want).max() <= 1e-8 * np.abs(want).max()
