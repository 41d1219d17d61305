"""Blocks: what stands beside attention in a layer, and how both are joined to the residual stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from ..core.arguments import one_of
from ..core.node import Tensor
from ..core.sizes import same_shape
from ..errors import OperandError, ShapeError, described
from ..ops.arithmetic import add, multiply
from ..ops.leaves import as_tensor, named
from ..ops.pointwise import gelu, relu, sigmoid, silu, tanh
from .norms import layer_norm
from .options import operand, same

Layer = Callable[[Tensor], Any]


def gelu_tanh(x: Any) -> Tensor:
    """The approximation of gelu by tanh, ``x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3)))``.

    It differs from ``gelu``, by erf, by up to 0.0005. GPT-2 and Gemma use this one (``gelu_new``,
    ``gelu_pytorch_tanh``; ``approximate="tanh"`` in PyTorch and ONNX), BERT the one by erf.
    Source: Hendrycks and Gimpel 2016 (arXiv:1606.08415), section 2.

    >>> import symattn as sa
    >>> sa.attention.gelu_tanh(sa.tensor("X", "T d")).shape
    (T, d)
    """
    u = as_tensor(x)
    inner = multiply(sympy.sqrt(2 / sympy.pi), add(u, multiply(sympy.Rational(44715, 10**6), u**3)))
    return multiply(u / 2, add(1, tanh(inner)))


ACTIVATIONS: dict[str, Layer] = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": relu,
    "sigmoid": sigmoid,
    "silu": silu,
    "identity": as_tensor,
}


def mlp(X: Any, W_1: Any, W_2: Any, b_1: Any = None, b_2: Any = None, *, activation: str | Layer = "gelu") -> Tensor:
    """The feed-forward layer, ``activation(X @ W_1 + b_1) @ W_2 + b_2``.

    X[.., d], W_1[d, f], W_2[f, m], b_1[f] and b_2[m] (default: none of them); F[.., m]. ``activation`` is ``"gelu"``
    (by erf; the default, as in BERT), ``"gelu_tanh"`` (GPT-2), ``"relu"`` (the source), ``"silu"``, ``"sigmoid"``,
    ``"identity"``, or a function of a tensor. Raises ShapeError for sizes that differ and OperandError for an unknown
    activation.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), equation 2.

    >>> import symattn as sa
    >>> X, W_1, W_2 = sa.tensor("X", "T d"), sa.tensor("W_1", "d f"), sa.tensor("W_2", "f d")
    >>> for x in sa.attention.mlp(X, W_1, W_2, sa.tensor("b_1", "f"), activation="relu").intermediates:
    ...     print(x.name, "=", x.inputs[0])
    A = X @ W_1 + b_1
    H = relu(A)
    F = H @ W_2
    """
    inner = named("A", affine("mlp", operand("mlp", X, 1, "X[.., d]"), W_1, b_1))
    hidden = named("H", _activated("mlp", activation, inner))
    return named("F", affine("mlp", hidden, W_2, b_2))


def glu(X: Any, W: Any, U: Any, O: Any, *, activation: str | Layer = "sigmoid") -> Tensor:
    """The feed-forward layer with a gate, ``(activation(X @ W) * (X @ U)) @ O``.

    X[.., d], W[d, f], U[d, f], O[f, m]; F[.., m]. W makes the gate and U what it lets through: w1 and w3 in Llama,
    whose w2 is O. ``activation`` is ``"sigmoid"`` (the default; GLU), ``"relu"`` (ReGLU), ``"gelu"`` (GEGLU),
    ``"silu"`` (SwiGLU), ``"identity"`` (bilinear), or as for ``mlp``. Raises ShapeError for sizes that differ and
    OperandError for an unknown activation.
    Source: Shazeer 2020 (arXiv:2002.05202), equations 5 and 6.

    >>> import symattn as sa
    >>> X, W, U, O = sa.tensor("X", "T d"), sa.tensor("W", "d f"), sa.tensor("U", "d f"), sa.tensor("O", "f d")
    >>> for x in sa.attention.glu(X, W, U, O).intermediates:
    ...     print(x.name, "=", x.inputs[0])
    A = X @ W
    B = X @ U
    H = sigmoid(A) * B
    F = H @ O
    """
    return _gated("glu", X, W, U, O, activation)


def swiglu(X: Any, W: Any, U: Any, O: Any) -> Tensor:
    """The feed-forward layer of Llama, ``(silu(X @ W) * (X @ U)) @ O``: ``glu`` with silu.

    X[.., d], W[d, f], U[d, f], O[f, m]; F[.., m]. Raises ShapeError for sizes that differ.
    Source: Shazeer 2020 (arXiv:2002.05202), equation 6.

    >>> import symattn as sa
    >>> X, W, U, O = sa.tensor("X", "T d"), sa.tensor("W", "d f"), sa.tensor("U", "d f"), sa.tensor("O", "f d")
    >>> print(sa.attention.swiglu(X, W, U, O).intermediates[2].inputs[0])
    silu(A) * B
    """
    return _gated("swiglu", X, W, U, O, "silu")


def _gated(what: str, X: Any, W: Any, U: Any, O: Any, activation: str | Layer) -> Tensor:
    x = operand(what, X, 1, "X[.., d]")
    gate, passed = named("A", affine(what, x, W)), named("B", affine(what, x, U))
    same(what, as_tensor(W), -1, as_tensor(U), -1, "the width of the hidden layer")
    return named("F", affine(what, named("H", multiply(_activated(what, activation, gate), passed)), O))


def affine(what: str, x: Tensor, W: Any, b: Any = None) -> Tensor:
    """``x @ W + b``, for W[d, f] and b[f], or no b."""
    w = as_tensor(W)
    if w.rank != 2:
        raise ShapeError(f"{what}: the weights {w.brief()} have {w.rank} axes where [{x.shape[-1]}, ..] is meant")
    same(what, x, -1, w, 0, "what is multiplied")
    if b is None:
        return x @ w
    made = as_tensor(b)
    if made.rank != 1 or not same_shape(made.shape, w.shape[1:]):
        raise ShapeError(f"{what}: the bias {made.brief()} of {w.brief()} has the shape [{w.shape[1]}]")
    return x @ w + made


def _activated(what: str, activation: str | Layer, x: Tensor) -> Tensor:
    if callable(activation):
        return _of_same_shape(what, "the activation", activation, x)
    return ACTIVATIONS[one_of(what, "activation", activation, *ACTIVATIONS)](x)


def pre_norm_block(
    X: Any, attention: Layer, feed_forward: Layer, *, norm: Layer | tuple[Layer, Layer] = layer_norm
) -> Tensor:
    """A layer that normalises what its parts read, ``X_1 = X + attention(norm(X))``, ``X_1 + feed_forward(norm(X_1))``.

    X[.., T, d]; the result has its shape, and so have the results of the two parts, which are functions of one tensor.
    ``norm`` is a function (default: ``layer_norm`` without gain), or one for each part, with their own gains. GPT-2 and
    Llama are built of these; a last norm follows the last block. Raises ShapeError for a part that changes the shape
    and OperandError for what is no function.
    Source: Xiong et al. 2020 (arXiv:2002.04745), table 1.

    >>> import symattn as sa
    >>> X, W, V = sa.tensor("X", "T d"), sa.tensor("W", "d f"), sa.tensor("V", "f d")
    >>> attend = lambda x: sa.attention.scaled_dot_product(x, x, x)
    >>> Y = sa.attention.pre_norm_block(X, attend, lambda x: sa.attention.mlp(x, W, V), norm=sa.attention.rms_norm)
    >>> print(Y.inputs[0])
    X_1 + F
    """
    x, (first, second) = operand("pre_norm_block", X, 1, "X[.., d]"), _two(norm)
    for part, layer, normal in (("attention", attention, first), ("feed_forward", feed_forward, second)):
        read = _of_same_shape("pre_norm_block", "the norm", normal, x)
        x = named("X", add(x, _of_same_shape("pre_norm_block", part, layer, read)))
    return x


def post_norm_block(
    X: Any, attention: Layer, feed_forward: Layer, *, norm: Layer | tuple[Layer, Layer] = layer_norm
) -> Tensor:
    """A layer that normalises after each sum, ``X_1 = norm(X + attention(X))``, ``norm(X_1 + feed_forward(X_1))``.

    X[.., T, d]; the result has its shape, and so have the results of the two parts, which are functions of one tensor.
    ``norm`` is a function (default: ``layer_norm`` without gain), or one for each part. The first transformer and BERT
    are built of these. Raises ShapeError for a part that changes the shape and OperandError for what is no function.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.1.

    >>> import symattn as sa
    >>> X, W, V = sa.tensor("X", "T d"), sa.tensor("W", "d f"), sa.tensor("V", "f d")
    >>> attend = lambda x: sa.attention.scaled_dot_product(x, x, x)
    >>> sa.attention.post_norm_block(X, attend, lambda x: sa.attention.mlp(x, W, V)).shape
    (T, d)
    """
    x, (first, second) = operand("post_norm_block", X, 1, "X[.., d]"), _two(norm)
    for part, layer, normal in (("attention", attention, first), ("feed_forward", feed_forward, second)):
        total = named("R", add(x, _of_same_shape("post_norm_block", part, layer, x)))
        x = _of_same_shape("post_norm_block", "the norm", normal, total)
    return x


def _two(norm: Layer | tuple[Layer, Layer]) -> tuple[Layer, Layer]:
    if callable(norm):
        return norm, norm
    if not isinstance(norm, tuple | list) or len(norm) != 2:
        raise OperandError(f"norm is a function of a tensor, or two of them, one for each part, not {described(norm)}")
    return norm[0], norm[1]


def _of_same_shape(what: str, part: str, layer: Any, x: Tensor) -> Tensor:
    if not callable(layer):
        raise OperandError(f"{what}: {part} is a function of a tensor, not {described(layer)}")
    result = as_tensor(layer(x))
    if not same_shape(result.shape, x.shape):
        raise ShapeError(f"{what}: {part} makes {result.brief()} of {x.brief()}; it keeps the shape")
    return result
