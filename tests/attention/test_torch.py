"""Forward and every gradient against PyTorch's autograd in float64; skipped where PyTorch, an extra, is missing."""

from __future__ import annotations

import numpy as np
import pytest

from .test_zoo import compiled
from .zoo import SIZES, ZOO, arrays, torch

pytestmark = pytest.mark.torch


def relative_error(got, want) -> float:
    assert np.shape(got) == np.shape(want)
    assert np.isfinite(got).all()
    assert np.abs(want).max() > 0
    return float(np.abs(got - want).max() / np.abs(want).max())


@pytest.mark.parametrize("name", ZOO)
def test_values_and_gradients_equal_autograd(name, rng):
    v = ZOO[name]()
    call, _, G = compiled(v)
    values = arrays(v, rng)
    cotangent = rng.normal(size=[int(size.subs(SIZES)) for size in G.shape])
    inputs = [torch.tensor(x, requires_grad=k < len(v.wrt)) for k, x in enumerate(values)]
    output = v.torch(*inputs)
    wanted = torch.autograd.grad(output, inputs[: len(v.wrt)], torch.tensor(cotangent))
    for got, want in zip(call(*values, cotangent), (output, *wanted), strict=True):
        assert relative_error(got, want.detach().numpy()) <= 1e-10
