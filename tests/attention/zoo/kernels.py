"""Weighted averages: pooling, kernel regression, memory, and attention without products of queries and keys."""

from __future__ import annotations

from typing import Any

import symattn as sa

from .entry import S, T, Variant, d, e, h, torch, variant
from .scores import K, M, Q, V, attend, weights

X, Z, Y = sa.tensor("X", T, d), sa.tensor("Z", S, d), sa.tensor("Y", S, e)
XL, ZL, YL = sa.tensor("x", T), sa.tensor("z", S), sa.tensor("y", S)
WIDTH = sa.tensor("b", positive=True)


def spread_out(rng: Any, shape: Any) -> Any:
    """Points of a line, so that compact kernels have some inside and some outside, and the last query has none."""
    return rng.uniform(-1, 1, shape) * 2


@variant
def attention_pooling():
    A = sa.tensor("alpha", T, S)
    return Variant(sa.attention.attention_pooling(A, V), [A, V], lambda a, v: torch.einsum("ts,se->te", a, v))


@variant
def average_pooling():
    return Variant(sa.attention.average_pooling(V), [V], lambda v: v.mean(0))


@variant
def average_pooling_of_heads():
    VH = sa.tensor("V", h, S, e)
    output = sa.attention.average_pooling(VH, T)
    return Variant(output, [VH], lambda v: v.mean(1, keepdim=True).expand(-1, 4, -1), keywords=(T,))


@variant
def kernel_regression():
    def torch_gaussian(x, z, y, b):
        k = torch.exp(-(torch.cdist(x, z) ** 2) / (2 * b**2))
        return k @ y / k.sum(-1, keepdim=True)

    output = sa.attention.kernel_regression(X, Z, Y, bandwidth=WIDTH)
    return Variant(output, [X, Z, Y, WIDTH], torch_gaussian)


@variant
def kernel_regression_on_a_line():
    def torch_gaussian(x, z, y):
        return torch.stack(
            [(torch.exp(-((one - z) ** 2) / 2) / torch.exp(-((one - z) ** 2) / 2).sum() * y).sum() for one in x]
        )

    return Variant(sa.attention.kernel_regression(XL, ZL, YL), [XL, ZL, YL], torch_gaussian)


@variant
def kernel_regression_laplace():
    def torch_laplace(x, z, y, b, keep):
        return weights(-torch.cdist(x, z) / b, keep) @ y

    output = sa.attention.kernel_regression(X, Z, Y, kernel="laplace", bandwidth=WIDTH, mask=M)
    return Variant(output, [X, Z, Y, WIDTH], torch_laplace, data=(M,))


def compact(kernel: str, formula: Any) -> Variant:
    """A kernel of bandwidth 3/4 on a line; some queries see no key."""

    def forward(x, z, y):
        k = formula((x[:, None] - z).abs() / 0.75)
        total = k.sum(-1, keepdim=True)
        return (torch.where(total > 0, k / torch.where(total > 0, total, 1), 0) @ y[:, None])[:, 0]

    output = sa.attention.kernel_regression(XL, ZL, YL, kernel=kernel, bandwidth=0.75)
    return Variant(output, [XL, ZL, YL], forward, draw={XL: spread_out, ZL: spread_out})


@variant
def kernel_regression_epanechnikov():
    return compact("epanechnikov", lambda u: torch.relu(1 - u**2))


@variant
def kernel_regression_triangular():
    return compact("triangular", lambda u: torch.relu(1 - u))


@variant
def kernel_regression_boxcar():
    def torch_boxcar(x, z, y):
        k = ((x[:, None] - z).abs() <= 0.75).to(x.dtype)
        return k @ y / k.sum(-1, keepdim=True).clamp(min=1).squeeze(-1)

    output = sa.attention.kernel_regression(XL, ZL, YL, kernel="boxcar", bandwidth=0.75)
    return Variant(output, [YL], lambda y, x, z: torch_boxcar(x, z, y), (XL, ZL), {XL: spread_out, ZL: spread_out})


@variant
def kernel_regression_cauchy():
    """A kernel of one's own, of the differences."""

    def torch_cauchy(x, z, y, b):
        k = 1 / (1 + (x[:, None] - z[None]).square().sum(-1) / b**2)
        return k @ y / k.sum(-1, keepdim=True)

    output = sa.attention.kernel_regression(X, Z, Y, kernel=lambda u: 1 / (1 + sa.sum(u**2, axis=-1)), bandwidth=WIDTH)
    return Variant(output, [X, Z, Y, WIDTH], torch_cauchy)


@variant
def kernel_regression_dot():
    def torch_dot(x, z, y, b, keep):
        return weights((x @ z.T - (z * z).sum(-1) / 2) / b**2, keep) @ y

    output = sa.attention.kernel_regression_dot(X, Z, Y, bandwidth=WIDTH, mask=M)
    return Variant(output, [X, Z, Y, WIDTH], torch_dot, data=(M,))


@variant
def compatibility():
    def torch_compatibility(q, k):
        return torch.softmax(q @ k.T / q.shape[-1] ** 0.5, -1)

    return Variant(sa.attention.compatibility(Q, K), [Q, K], torch_compatibility)


def moved(q: Any, patterns: Any, beta: Any, steps: int) -> Any:
    for _ in range(steps):
        q = attend(q, patterns, patterns, scale=beta)
    return q


@variant
def hopfield():
    P, beta = sa.tensor("M", S, d), sa.tensor("beta", positive=True)
    return Variant(sa.attention.hopfield(Q, P, beta), [Q, P, beta], lambda *given: moved(*given, steps=1))


@variant
def hopfield_three_steps():
    P, beta = sa.tensor("M", S, d), sa.tensor("beta", positive=True)
    return Variant(sa.attention.hopfield(Q, P, beta, steps=3), [Q, P, beta], lambda *given: moved(*given, steps=3))


@variant
def aft():
    values, W = sa.tensor("V", S, d), sa.tensor("W", T, S)

    def torch_aft(q, k, v, w):
        each = torch.softmax(w[:, :, None] + k[None], 1)
        return torch.sigmoid(q) * (each * v).sum(1)

    return Variant(sa.attention.aft(Q, K, values, W), [Q, K, values, W], torch_aft)
