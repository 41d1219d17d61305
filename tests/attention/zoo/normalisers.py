"""What replaces the softmax."""

from __future__ import annotations

from typing import Any

import symattn as sa

from .entry import S, Variant, h, torch, variant
from .scores import KH, QH, VH, K, M, Q, V

B, PADDING = sa.tensor("b", h), sa.tensor("keep", S, binary=True)


def scored(q: Any, k: Any) -> Any:
    return q @ k.mT * q.shape[-1] ** -0.5


def with_sinks(q: Any, k: Any, v: Any, b: Any, keep: Any = None) -> Any:
    """Sinks as one more column of scores, which is dropped after the softmax."""
    z = scored(q, k)
    if keep is not None:
        z = z.masked_fill(~keep, -torch.inf)
    column = b[..., None, None].expand(*z.shape[:-1], 1)
    return torch.softmax(torch.cat([z, column], -1), -1)[..., :-1] @ v


@variant
def sink():
    b = sa.tensor("b")
    return Variant(sa.attention.sink(Q, K, V, b), [Q, K, V, b], with_sinks)


@variant
def sink_of_heads():
    output = sa.attention.sink(QH, KH, VH, B, mask=PADDING)
    return Variant(output, [QH, KH, VH, B], with_sinks, data=(PADDING,))


@variant
def softmax1():
    def torch_softmax1(q, k, v):
        powers = torch.exp(scored(q, k))
        return powers @ v / (1 + powers.sum(-1, keepdim=True))

    return Variant(sa.attention.softmax1(Q, K, V), [Q, K, V], torch_softmax1)


@variant
def sigmoid_attention():
    def torch_sigmoid(q, k, v):
        return torch.sigmoid(scored(q, k) - torch.log(torch.tensor(float(len(k)), dtype=q.dtype))) @ v

    return Variant(sa.attention.sigmoid_attention(Q, K, V), [Q, K, V], torch_sigmoid)


@variant
def sigmoid_attention_of_heads():
    def torch_sigmoid(q, k, v, b, keep):
        return (torch.sigmoid(scored(q, k) + b[:, None, None]) * keep) @ v

    return Variant(sa.attention.sigmoid_attention(QH, KH, VH, b=B, mask=M), [QH, KH, VH, B], torch_sigmoid, data=(M,))


@variant
def relu_attention():
    def torch_relu(q, k, v):
        return torch.relu(scored(q, k)) @ v / len(k)

    return Variant(sa.attention.relu_attention(Q, K, V), [Q, K, V], torch_relu)


@variant
def relu_attention_masked():
    def torch_relu(q, k, v, keep):
        return torch.relu(scored(q, k)).masked_fill(~keep, 0) @ v / len(k)

    return Variant(sa.attention.relu_attention(Q, K, V, mask=M), [Q, K, V], torch_relu, data=(M,))


def picked(q: Any, k: Any, v: Any, keep: Any = True) -> Any:
    lifted = (torch.exp(scored(q, k)) - 1) * keep
    return torch.relu(lifted) @ v / (lifted.abs().sum(-1, keepdim=True) + 1e-6)


@variant
def softpick():
    return Variant(sa.attention.softpick(Q, K, V), [Q, K, V], picked)


@variant
def softpick_masked():
    return Variant(sa.attention.softpick(Q, K, V, mask=M), [Q, K, V], picked, data=(M,))


def entmax(z: Any, alpha: float, keep: Any) -> Any:
    """The whole family of sparse normalisers by bisection of the threshold; the last step is differentiable.

    On the support, relu(z - t)^p with p = 1 / (alpha - 1) sums to 1: one Newton step from the root differentiates it.
    """
    z, p = (alpha - 1) * z, 1 / (alpha - 1)
    z = z.masked_fill(~keep, -1e30)
    low = z.detach().amax(-1, keepdim=True) - 1
    high = low + 1
    for _ in range(100):
        middle = (low + high) / 2
        enough = (torch.relu(z.detach() - middle) ** p).sum(-1, keepdim=True) >= 1
        low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
    inside = z.detach() > low
    slope = torch.where(inside, p * torch.relu(z.detach() - low) ** (p - 1), 0)
    excess = torch.where(inside, torch.relu(z - low) ** p, 0).sum(-1, keepdim=True) - 1
    threshold = low + excess / slope.sum(-1, keepdim=True)
    result = torch.where(inside, torch.where(inside, z - threshold, 1) ** p, 0)
    return torch.where(keep.any(-1, keepdim=True), result, 0)


def sparse(alpha: float) -> Any:
    def forward(q, k, v, keep=None):
        z = scored(q, k)
        return entmax(z, alpha, torch.ones_like(z, dtype=torch.bool) if keep is None else keep) @ v

    return forward


@variant
def sparsemax_attention():
    return Variant(sa.attention.sparsemax_attention(Q, K, V), [Q, K, V], sparse(2.0))


@variant
def sparsemax_attention_masked():
    return Variant(sa.attention.sparsemax_attention(Q, K, V, mask=M), [Q, K, V], sparse(2.0), data=(M,))


@variant
def entmax15_attention():
    return Variant(sa.attention.entmax15_attention(Q, K, V), [Q, K, V], sparse(1.5))


@variant
def entmax15_attention_masked():
    return Variant(sa.attention.entmax15_attention(Q, K, V, mask=M), [Q, K, V], sparse(1.5), data=(M,))
