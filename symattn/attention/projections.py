"""From tokens to queries, keys and values: projections, and how the features of a token are divided among heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack

import sympy

from ..core.arguments import each_of, one_of
from ..core.node import Tensor
from ..core.sizes import as_size, quotient, same_size
from ..errors import OperandError, ShapeError
from ..ops.layout import merge_axes, moveaxis, split_axis
from ..ops.leaves import as_tensor, named
from .dot_product import scaled_dot_product
from .options import Scoring, operand, same

HeadOrder = Literal["head-major", "interleaved"]


def project(X: Any, W_q: Any, W_k: Any, W_v: Any, *, memory: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of tokens: ``Q = X @ W_q``, ``K = X @ W_k``, ``V = X @ W_v``.

    X[.., T, D], W_q[D, d], W_k[D, d], W_v[D, e]; with ``memory`` Y[.., S, E] keys and values are read from Y instead,
    by W_k[E, d] and W_v[E, e]. Weights of each head, W_q[h, D, d], give queries Q[.., h, T, d], and so on. Raises
    ShapeError for weights that do not fit.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), sections 3.2.2 and 3.2.3.

    >>> import symattn as sa
    >>> X, W_q, W_k, W_v = (sa.tensor(n, s) for n, s in zip(["X", "W_q", "W_k", "W_v"], ["T D", "D d", "D d", "D e"]))
    >>> for x in sa.attention.project(X, W_q, W_k, W_v):
    ...     print(x.name, "=", x.inputs[0])
    Q = X @ W_q
    K = X @ W_k
    V = X @ W_v
    """
    source, weights = X if memory is None else memory, [as_tensor(w) for w in (W_q, W_k, W_v)]
    q, k, v = (projected("project", x, w) for x, w in zip((X, source, source), weights, strict=True))
    if len({w.rank for w in weights}) > 1:
        shown = ", ".join(w.brief() for w in weights)
        raise ShapeError(f"project: of {shown} some are given by head; use one form for all three")
    same("project", q, -1, k, -1, "the width of queries and keys")
    return named("Q", q), named("K", k), named("V", v)


def projected(what: str, X: Any, W: Any) -> Tensor:
    """The product X @ W with weights W[D, d], or with those of each head, W[h, D, d], heads in front of the tokens."""
    x, w = operand(what, X, 2, "X[.., T, D]"), as_tensor(W)
    if w.rank not in (2, 3):
        raise ShapeError(
            f"{what}: the weights {w.brief()} have {w.rank} axes; they are W[D, d] or, by head, W[h, D, d]"
        )
    same(what, x, -1, w, -2, "the width of the tokens")
    return (x if x.rank == 2 or w.rank == 2 else x[..., None, :, :]) @ w


def self_attention(X: Any, W_q: Any, W_k: Any, W_v: Any, **options: Unpack[Scoring]) -> Tensor:
    """Attention among the tokens of one sequence: ``softmax(X W_q (X W_k)^T / sqrt(d)) X W_v``.

    X[.., T, D], W_q[D, d], W_k[D, d], W_v[D, e]; O[.., T, e]. The options are those of ``scaled_dot_product``. Raises
    ShapeError for weights that do not fit.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.

    >>> import symattn as sa
    >>> X, W_q, W_k, W_v = sa.tensor("X", "T D"), *(sa.tensor(n, "D d") for n in ("W_q", "W_k", "W_v"))
    >>> print(sa.attention.self_attention(X, W_q, W_k, W_v).shape)
    (T, d)
    """
    return scaled_dot_product(*project(X, W_q, W_k, W_v), **options)


def cross_attention(X: Any, Y: Any, W_q: Any, W_k: Any, W_v: Any, **options: Unpack[Scoring]) -> Tensor:
    """Attention of the tokens X to the tokens Y: ``softmax(X W_q (Y W_k)^T / sqrt(d)) Y W_v``.

    X[.., T, D], Y[.., S, E], W_q[D, d], W_k[E, d], W_v[E, e]; O[.., T, e]. The options are those of
    ``scaled_dot_product``. Raises ShapeError for weights that do not fit.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.3.

    >>> import symattn as sa
    >>> X, Y, W_q = sa.tensor("X", "T D"), sa.tensor("Y", "S E"), sa.tensor("W_q", "D d")
    >>> W_k, W_v = sa.tensor("W_k", "E d"), sa.tensor("W_v", "E e")
    >>> print(sa.attention.cross_attention(X, Y, W_q, W_k, W_v).shape)
    (T, e)
    """
    return scaled_dot_product(*project(X, W_q, W_k, W_v, memory=Y), **options)


# --- the features of a token among heads ---


def split_heads(X: Any, heads: Any, *, order: HeadOrder = "head-major") -> Tensor:
    """The features of each token divided among heads: ``y[.., a, t, c] = x[.., t, a * d + c]``.

    X[.., T, h*d]; the result is [.., h, T, d]. ``order`` is ``"head-major"`` (the default; the features of a head lie
    side by side: PyTorch's ``view(T, h, d).transpose``) or ``"interleaved"`` (feature k is of head k % h). A reshape to
    (h, T, d) without the transpose is neither: it divides the tokens. Raises ShapeError if the heads do not divide the
    features.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.2.

    >>> import symattn as sa
    >>> sa.attention.split_heads(sa.tensor("X", "T h*d"), "h").shape
    (h, T, d)
    """
    x, h = operand("split_heads", X, 2, "X[.., T, h*d]"), as_size(heads)
    width = per_head("split_heads", x, h)
    if one_of("split_heads", "order", order, "head-major", "interleaved") == "interleaved":
        return moveaxis(split_axis(x, -1, (width, h)), -1, -3)
    return moveaxis(split_axis(x, -1, (h, width)), -2, -3)


def merge_heads(X: Any, *, order: HeadOrder = "head-major") -> Tensor:
    """The heads of each token side by side, the inverse of ``split_heads``: ``y[.., t, a * d + c] = x[.., a, t, c]``.

    X[.., h, T, d]; the result is [.., T, h*d]. ``order`` is that of ``split_heads``. Raises ShapeError below three
    axes.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.2.

    >>> import symattn as sa
    >>> sa.attention.merge_heads(sa.tensor("X", "h T d")).shape
    (T, d*h)
    """
    x = operand("merge_heads", X, 3, "X[.., h, T, d]")
    interleaved = one_of("merge_heads", "order", order, "head-major", "interleaved") == "interleaved"
    return merge_axes(moveaxis(x, -3, -1 if interleaved else -2), (-2, -1))


def per_head(what: str, x: Tensor, heads: sympy.Expr, size: Any = None, of: str = "features") -> sympy.Expr:
    """The features that each head gets of all those of x, or of ``size`` of them; numbers that do not divide raise."""
    total = x.shape[-1] if size is None else size
    if (total / heads).is_integer is False:
        raise ShapeError(f"{what}: {x.brief()} has {total} {of}, which {heads} heads do not divide")
    return quotient(total, heads)


def fused_projection(
    X: Any,
    W_qkv: Any,
    *,
    heads: Any = None,
    widths: Sequence[Any] | None = None,
    order: Literal["qkv", "per-head"] = "qkv",
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values by one product, ``X @ W_qkv``, that is then split.

    X[.., T, D], W_qkv[D, n]. ``widths`` are the features of Q, K and V in this order, which add up to n; by default
    each has n/3. ``order`` says how the columns of W_qkv lie: ``"qkv"`` (the default; three blocks: GPT-2's ``c_attn``,
    PyTorch's ``in_proj_weight`` transposed) or ``"per-head"`` (for each head its query, key and value: GPT-NeoX). With
    ``heads`` the results are [.., h, T, d], else [.., T, d]. Raises ShapeError where the columns cannot be divided so,
    and OperandError for "per-head" without heads.

    >>> import symattn as sa
    >>> X, W = sa.tensor("X", "T D"), sa.tensor("W_qkv", "D 3*h*d")
    >>> for x in sa.attention.fused_projection(X, W, heads="h"):
    ...     print(x.name, x.shape)
    Q (h, T, d)
    K (h, T, d)
    V (h, T, d)
    """
    what = "fused_projection"
    w = as_tensor(W_qkv)
    if w.rank != 2:
        raise ShapeError(f"{what}: the weights {w.brief()} have {w.rank} axes where W_qkv[D, n] is meant")
    x = named("X_qkv", projected(what, X, w))
    blocks = _widths(what, w, widths)
    by_head = one_of(what, "order", order, "qkv", "per-head") == "per-head"
    if heads is None:
        if by_head:
            raise OperandError(f"{what}: order='per-head' says how the columns lie in each head: give heads=")
        parts = _blocks(x, blocks)
    else:
        h = as_size(heads)
        each = [per_head(what, w, h, block, f"columns of {name}") for name, block in zip("QKV", blocks, strict=True)]
        parts = _blocks(split_heads(x, h), each) if by_head else [split_heads(part, h) for part in _blocks(x, blocks)]
    q, k, v = (named(name, part) for name, part in zip("QKV", parts, strict=True))
    return q, k, v


def _widths(what: str, w: Tensor, widths: Sequence[Any] | None) -> list[sympy.Expr]:
    """The columns of W_qkv that Q, K and V have; they add up to all."""
    n = w.shape[-1]
    if widths is None:
        if (n / 3).is_integer is False:
            raise ShapeError(f"{what}: the {n} columns of {w.brief()} are not three equal blocks; give widths=")
        return [quotient(n, sympy.Integer(3))] * 3
    sizes = list(map(as_size, each_of(widths)))
    if len(sizes) != 3 or not same_size(sympy.Add(*sizes), n):
        shown = ", ".join(map(str, sizes))
        raise ShapeError(f"{what}: the widths ({shown}) are not three that add up to the {n} columns of {w.brief()}")
    return sizes


def _blocks(x: Tensor, widths: Sequence[sympy.Expr]) -> list[Tensor]:
    """The features of x in consecutive blocks."""
    parts, start = [], sympy.S.Zero
    for width in widths:
        parts.append(x[..., start : start + width])
        start += width
    return parts
