"""Positions, norms and losses."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy

import symattn as sa

from .entry import adapter, tensor

attend = sa.attention
eps = sympy.Symbol("eps", positive=True)


B, h, T, d, m, M = sa.sizes("B h T d m M")


@cache
def _rotary(packed: bool, partial: bool, interleaved: bool, looked_up: bool) -> Any:
    """Tables cos[B, T, m] and sin[B, T, m], or cos[M, m] and sin[M, m] whose rows are looked up by position."""
    width = d if partial else 2 * m
    x = sa.tensor("X", B, T, h * width) if packed else sa.tensor("X", B, h, T, width)
    arguments = [sa.tensor(name, M, m) if looked_up else sa.tensor(name, B, T, m) for name in ("cos", "sin")]
    tables = arguments
    if looked_up:
        positions = sa.tensor("pos", B, T, integer=True)
        tables, arguments = [sa.take(table, positions, 0) for table in tables], [*arguments, positions]
    y = attend.rotate(
        attend.split_heads(x, h) if packed else x,
        *(table[:, None] for table in tables),
        layout="interleaved" if interleaved else "half",
        width=2 * m if partial else None,
    )
    return sa.lambdify([x, *arguments], attend.merge_heads(y) if packed else y)


@adapter("RotaryEmbedding", "rotaryembedding")
def rotary_embedding(case):
    a, packed = case.attributes, case.inputs["X"].ndim == 3
    function = _rotary(packed, a["rotary_embedding_dim"] != 0, bool(a["interleaved"]), "position_ids" in case.inputs)
    return {"Y": function(*case.inputs.values(), **({"h": a["num_heads"]} if packed else {}))}


@cache
def _layer_norm(rank: int, axes: int) -> Any:
    x = tensor("X", rank)
    gain, bias = (sa.tensor(name, *x.shape[-axes:]) for name in ("g", "b"))
    mean, inverse = attend.layer_norm_statistics(x, eps=eps, axes=axes)
    return sa.lambdify([x, gain, bias], [attend.layer_norm(x, gain, bias, eps=eps, axes=axes), mean, inverse])


@adapter("LayerNormalization", "layernormalization")
def layer_normalization(case):
    """``axis`` is the first of the axes that are normalised together."""
    x, a = case.inputs["X"], case.attributes
    function = _layer_norm(x.ndim, -a["axis"] if a["axis"] < 0 else x.ndim - a["axis"])
    results = function(x, case.inputs["Scale"], case.inputs["B"], eps=a["epsilon"])
    return dict(zip(("Y", "Mean", "InvStdDev"), results, strict=True))


@cache
def _rms_norm(rank: int, axes: int) -> Any:
    x = tensor("X", rank)
    gain = sa.tensor("g", *x.shape[-axes:])
    return sa.lambdify([x, gain], attend.rms_norm(x, gain, eps=eps, axes=axes))


@adapter("RMSNormalization", "rmsnormalization")
def rms_normalization(case):
    x, a = case.inputs["X"], case.attributes
    function = _rms_norm(x.ndim, -a["axis"] if a["axis"] < 0 else x.ndim - a["axis"])
    return {"Y": function(x, case.inputs["scale"], eps=a["epsilon"])}


@cache
def _cross_entropy(rank: int, reduction: str, weighted: bool, ignore: int | None) -> Any:
    """Scores have the classes on axis 1, and log-probabilities too; targets do not have that axis."""
    z, y = tensor("Z", rank), tensor("Y", rank)
    y = sa.tensor("Y", y.shape[0], *y.shape[2:], integer=True)
    weight = [sa.tensor("w", z.shape[1])] if weighted else []
    last = sa.moveaxis(z, 1, -1)
    loss = attend.cross_entropy(last, y, reduction=reduction, weight=weight[0] if weighted else None, ignore=ignore)
    return sa.lambdify([z, y, *weight], [loss, sa.moveaxis(attend.log_softmax(last), -1, 1)])


@adapter("SoftmaxCrossEntropyLoss", "softmax_cross_entropy_loss")
def softmax_cross_entropy_loss(case):
    a, x = case.attributes, case.inputs
    function = _cross_entropy(x["scores"].ndim, a["reduction"], "weights" in x, a.get("ignore_index"))
    return dict(zip(("output", "log_prob"), function(*x.values()), strict=True))
