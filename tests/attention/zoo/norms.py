"""Norms with their gains, over one axis and over two, and rows of length 1."""

from __future__ import annotations

import symattn as sa

from .entry import T, Variant, d, e, h, torch, variant

X, XH = sa.tensor("X", T, d), sa.tensor("X", h, T, d)
g, b = sa.tensor("gamma", d), sa.tensor("beta", d)


@variant
def layer_norm():
    def torch_layer_norm(x, gain, bias):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], gain, bias, 1e-5)

    return Variant(sa.attention.layer_norm(X, g, b), [X, g, b], torch_layer_norm)


@variant
def layer_norm_without_gain():
    def by_hand(x):
        x = x - x.mean(-1, keepdim=True)
        return x / torch.sqrt(x.var(-1, keepdim=True, correction=0) + 0.1)

    return Variant(sa.attention.layer_norm(X, eps=0.1), [X], by_hand)


@variant
def layer_norm_two_axes():
    gain, bias = sa.tensor("gamma", T, d), sa.tensor("beta", T, d)

    def torch_layer_norm(x, gain, bias):
        return torch.nn.functional.layer_norm(x, x.shape[-2:], gain, bias, 1e-5)

    return Variant(sa.attention.layer_norm(XH, gain, bias, axes=2), [XH, gain, bias], torch_layer_norm)


@variant
def layer_norm_statistics():
    def statistics(x):
        mean = x.mean(-1, keepdim=True)
        return torch.cat([mean, (x.var(-1, keepdim=True, correction=0) + 1e-5) ** -0.5], -1)

    return Variant(sa.let("M", sa.concat(sa.attention.layer_norm_statistics(X), -1)), [X], statistics)


@variant
def rms_norm():
    def torch_rms_norm(x, gain):
        return torch.nn.functional.rms_norm(x, x.shape[-1:], gain, 1e-5)

    return Variant(sa.attention.rms_norm(X, g), [X, g], torch_rms_norm)


@variant
def rms_norm_gain_by_head():
    gain = sa.tensor("gamma", h, 1, d)

    def by_hand(x, gain):
        return gain * x / torch.sqrt((x * x).sum(-1, keepdim=True) / x.shape[-1] + 0.25)

    return Variant(sa.attention.rms_norm(XH, gain, eps=0.25), [XH, gain], by_hand)


@variant
def l2_norm():
    return Variant(sa.attention.l2_norm(XH), [XH], lambda x: torch.nn.functional.normalize(x, dim=-1))


@variant
def group_norm():
    joined = sa.tensor("X", T, h * e)
    gain, bias = sa.tensor("gamma", h * e), sa.tensor("beta", h * e)

    def torch_group_norm(x, gain, bias):
        return torch.nn.functional.group_norm(x, 2, gain, bias, 1e-5)  # PyTorch's features are its second axis

    return Variant(
        sa.attention.group_norm(joined, h, gain, bias), [joined, gain, bias], torch_group_norm, keywords=(h,)
    )
