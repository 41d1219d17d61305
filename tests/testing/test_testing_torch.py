"""Assertions on functions of PyTorch, which are differentiated by its own autograd."""

from __future__ import annotations

import pytest
import sympy

import symattn as sa
from symattn.testing import assert_equivariant, assert_matches

from .test_testing import K, O, Q, S, T, V, X, Z, failure


def torch_attention(q, key, v):
    torch = pytest.importorskip("torch")
    return torch.softmax(q @ key.T / q.shape[-1] ** 0.5, dim=-1) @ v


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_right_function_of_pytorch_is_differentiated_and_passes(dtype):
    import torch

    assert_matches(torch_attention, O, [Q, K, V], adapt=torch.from_numpy, dtype=dtype)
    L = sa.logsumexp(Z)
    both = [sa.softmax(Z), L]
    assert_matches(lambda z: (z.softmax(-1), z.logsumexp(-1)), both, [Z], adapt=torch.from_numpy, dtype=dtype)


@pytest.mark.torch
def test_a_wrong_backward_of_pytorch_fails():
    import torch

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            return 3 * g

    message = failure(assert_matches, Doubled.apply, 2 * X, [X], adapt=torch.from_numpy)
    assert "gradient by X[T, d]: largest error" in message
    assert_matches(Doubled.apply, 2 * X, [X], adapt=torch.from_numpy, constant=[X])

    def detached_weights(q, key, v):
        return torch.softmax(q @ key.T / q.shape[-1] ** 0.5, dim=-1).detach() @ v

    message = failure(assert_matches, detached_weights, O, [Q, K, V], adapt=torch.from_numpy)
    assert "gradient by Q[T, d]: None was given, but it is not zero" in message
    assert "gradient by V" not in message
    assert_matches(detached_weights, O, [Q, K, V], adapt=torch.from_numpy, constant=["Q", K])


@pytest.mark.torch
def test_functions_of_pytorch_without_a_graph_in_place_and_by_an_adapt_of_several():
    import torch

    assert_matches(lambda x: (2 * x).detach(), 2 * X, [X], adapt=torch.from_numpy)
    assert_matches(lambda x: x.mul_(2), 2 * X, [X], adapt=torch.from_numpy)
    assert_matches(torch_attention, O, [Q, K, V], adapt=lambda *x: [torch.from_numpy(y) for y in x])
    turned = {"adapt": lambda q, key, v: tuple(map(torch.from_numpy, (q, key.T.copy(), v)))}
    with pytest.raises(sa.OperandError, match="give grad=, or constant=args to compare values alone"):
        assert_matches(lambda q, kt, v: torch_attention(q, kt.T, v), O, [Q, K, V], **turned)
    assert_matches(lambda q, kt, v: torch_attention(q, kt.T, v), O, [Q, K, V], constant=[Q, K, V], **turned)


@pytest.mark.torch
def test_masks_and_scalars_of_pytorch_have_no_gradient():
    import torch

    M, tau = sa.tensor("M", T, S, binary=True), sympy.Symbol("tau", positive=True)

    def masked(z, keep, t):
        scores = (z / t).masked_fill(~keep, float("-inf"))
        top = scores.amax(-1, keepdim=True).clamp(min=torch.finfo(z.dtype).min)
        weights = torch.exp(scores - top)
        return weights / weights.sum(-1, keepdim=True).clamp(min=1e-300)

    assert_matches(masked, sa.softmax(Z / tau, where=M), [Z, M, tau], adapt=torch.from_numpy)


@pytest.mark.torch
def test_the_equivariance_of_functions_of_pytorch():
    import torch

    X = torch.randn(5, 3, dtype=torch.float64)
    assert_equivariant(lambda x: torch.tanh(x @ x.T) @ x, X, "orthogonal")
    assert "by numbers" in failure(assert_equivariant, lambda x: x.cumsum(0), X, "permutation")
