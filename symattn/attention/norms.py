"""Norms: each row, or each block of last axes, brought to a common size, with a gain and a bias of its features."""

from __future__ import annotations

from typing import Any

from ..core.node import Tensor
from ..core.sizes import as_size, broadcast_shapes, quotient, same_shape
from ..errors import OperandError, ShapeError, described
from ..ops import rows
from ..ops.arithmetic import add, multiply
from ..ops.layout import merge_axes, split_axis
from ..ops.leaves import as_tensor, named
from ..ops.pointwise import rsqrt
from .options import epsilon, operand


def layer_norm(X: Any, gain: Any = None, bias: Any = None, *, eps: Any = 1e-5, axes: int = 1) -> Tensor:
    """Layer normalisation, ``(X - mu) / sqrt(rowmean((X - mu)**2) + eps) * gain + bias``.

    X[.., d], gain[d] and bias[d] (default: none of them); the result has the shape of X. ``axes`` is how many last axes
    are normalised together (1; ``normalized_shape`` in PyTorch), and gain and bias have these axes. ``eps`` is a
    number, exact in its decimal spelling, or a symbol: 1e-5 in PyTorch and ONNX, 1e-6 in Flax and 1e-12 in BERT. The
    variance divides by d. Raises ShapeError for a gain or bias of other sizes and OperandError for a negative eps.
    Source: Ba et al. 2016 (arXiv:1607.06450), equations 3 and 4.

    >>> import symattn as sa
    >>> X, g, b = sa.tensor("X", "T d"), sa.tensor("g", "d"), sa.tensor("b", "d")
    >>> for x in sa.attention.layer_norm(X, g, b).intermediates:
    ...     print(x.name, "=", x.inputs[0])
    mu = rowmean(X)
    C = X - mu
    r = rsqrt(rowmean(C**2) + 1/100000)
    Xhat = C * r
    N = Xhat * g + b
    """
    mean, inverse = layer_norm_statistics(X, eps=eps, axes=axes)
    normal = named("Xhat", multiply(_centred(as_tensor(X), mean), inverse))
    return _scaled("layer_norm", normal, as_tensor(X), gain, bias, axes)


def layer_norm_statistics(X: Any, *, eps: Any = 1e-5, axes: int = 1) -> tuple[Tensor, Tensor]:
    """The mean ``mu`` and the inverse deviation ``r`` of layer normalisation, as ONNX gives them.

    X[.., T, d]; both [.., T, 1]: the normalised axes stay, with size 1. These are the intermediates of ``layer_norm``
    of the same X, eps and axes, so that an expression of all three computes them once. Raises as ``layer_norm``.
    Source: ONNX operator LayerNormalization, outputs Mean and InvStdDev.

    >>> import symattn as sa
    >>> mu, r = sa.attention.layer_norm_statistics(sa.tensor("X", "h T d"), axes=2)
    >>> mu.shape, r.shape
    ((h, 1, 1), (h, 1, 1))
    """
    x, over, shift = _prepared("layer_norm", X, eps, axes)
    mean = named("mu", rows.mean(x, over, keepdims=True))
    return mean, named("r", rsqrt(add(rows.mean(_centred(x, mean) ** 2, over, keepdims=True), shift)))


def rms_norm(X: Any, gain: Any = None, *, eps: Any = 1e-5, axes: int = 1) -> Tensor:
    """Root mean square normalisation, ``X / sqrt(rowmean(X**2) + eps) * gain``.

    X[.., d], gain[d] (default: none); the result has the shape of X, and ``axes`` last axes are normalised together.
    ``eps`` is a number or a symbol: 1e-5 in ONNX and Llama 2, 1e-6 in T5 and Gemma; the paper has none. Gemma stores
    the gain less one: give ``1 + g``. Raises ShapeError for a gain of other sizes and OperandError for a negative eps.
    Source: Zhang and Sennrich 2019 (arXiv:1910.07467), equation 4.

    >>> import symattn as sa
    >>> X = sa.tensor("X", "T d")
    >>> for x in sa.attention.rms_norm(X, sa.tensor("g", "d"), eps=0).intermediates:
    ...     print(x.name, "=", x.inputs[0])
    r = rsqrt(rowmean(X**2))
    Xhat = X * r
    N = Xhat * g
    """
    x, over, shift = _prepared("rms_norm", X, eps, axes)
    inverse = named("r", rsqrt(add(rows.mean(x**2, over, keepdims=True), shift)))
    return _scaled("rms_norm", named("Xhat", multiply(x, inverse)), x, gain, None, axes)


def l2_norm(X: Any, *, eps: Any = 0) -> Tensor:
    """Rows of length 1, ``X / sqrt(rowsum(X**2) + eps)``.

    X[.., d]; the result has its shape. ``eps`` stands under the root (default 0: the gradient is not finite at a row of
    zeros); PyTorch's ``normalize`` has the larger of the length and 1e-12 instead. Raises OperandError for a negative
    eps.
    Source: Henry et al. 2020 (arXiv:2010.04245), for queries and keys.

    >>> import symattn as sa
    >>> for x in sa.attention.l2_norm(sa.tensor("X", "T d")).intermediates:
    ...     print(x.name, "=", x.inputs[0])
    r = rsqrt(rowsum(X**2))
    Xhat = X * r
    """
    x, over, shift = _prepared("l2_norm", X, eps, 1)
    inverse = named("r", rsqrt(add(rows.sum(x**2, over, keepdims=True), shift)))
    return named("Xhat", multiply(x, inverse))


def group_norm(X: Any, groups: Any, gain: Any = None, bias: Any = None, *, eps: Any = 1e-5) -> Tensor:
    """Layer normalisation of each group of features by itself, then ``* gain + bias`` of all features.

    X[.., d], gain[d] and bias[d] (default: none of them); the result has the shape of X. ``groups`` is a number or a
    size that divides d: the heads, where X is the heads side by side. Positions are not mixed, unlike PyTorch's
    ``GroupNorm`` of a sequence. Where heads are a leading axis, this is ``layer_norm``. Raises ShapeError where the
    groups do not divide the features and for a gain or bias of other sizes, OperandError for a negative eps.
    Source: Sun et al. 2023 (arXiv:2307.08621), equation 8.

    >>> import symattn as sa
    >>> Y = sa.attention.group_norm(sa.tensor("O", "T h*e"), "h")
    >>> Y.shape, Y.intermediates[0].shape
    ((T, e*h), (T, h, e))
    """
    x, count = operand("group_norm", X, 1, "X[.., d]"), as_size(groups)
    features = x.shape[-1]
    if features.is_Integer and count.is_Integer and features % count:
        raise ShapeError(f"group_norm: {count} groups do not divide the {features} features of {x.brief()}")
    grouped = named("G", split_axis(x, -1, (count, quotient(features, count))))
    normal = merge_axes(layer_norm(grouped, eps=epsilon("group_norm", eps)), (-2, -1))
    return _scaled("group_norm", named("H", normal), x, gain, bias, 1)


def _prepared(what: str, X: Any, eps: Any, axes: Any) -> tuple[Tensor, tuple[int, ...], Tensor]:
    """The checked operand, the axes to normalise counted from the end, and what is added under the root."""
    if isinstance(axes, bool) or not isinstance(axes, int) or axes < 1:
        given = described(axes)
        raise OperandError(f"{what}: axes is how many last axes are normalised together, 1 or more, not {given}")
    x = operand(what, X, axes, "X[.., d]" if axes == 1 else f"X with {described(axes)} axes or more")
    return x, tuple(range(-axes, 0)), epsilon(what, eps)


def _centred(x: Tensor, mean: Tensor) -> Tensor:
    return named("C", x - mean)


def _scaled(what: str, normal: Tensor, x: Tensor, gain: Any, bias: Any, axes: int) -> Tensor:
    """The normalised ``x`` with the gain and the bias that there are; as it is, and with its own name, without."""
    result = normal
    if gain is not None:
        result = multiply(result, features(what, "gain", gain, x, axes))
    if bias is not None:
        result = add(result, features(what, "bias", bias, x, axes))
    return result if result is normal else named("N", result)


def features(what: str, role: str, given: Any, x: Tensor, axes: int) -> Tensor:
    """A gain or bias: it has the normalised axes in full, and may differ along those in front of them (by head)."""
    made = as_tensor(given)
    whole = made.rank >= axes and same_shape(made.shape[-axes:], x.shape[-axes:])
    joined = broadcast_shapes(made.shape, x.shape) if whole else None
    if joined is None or not same_shape(joined, x.shape):
        sizes = ", ".join(map(str, x.shape[-axes:]))
        raise ShapeError(
            f"{what} of {x.brief()}: the {role} {made.brief()} does not fit; it has the normalised sizes, [{sizes}]"
        )
    return made
