"""What is compared: the similarities of queries and keys other than the scaled dot product, and its other scales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import sympy

from ..core.arguments import one_of
from ..core.node import Tensor
from ..core.sizes import broadcast_shapes, same_shape
from ..errors import OperandError, ShapeError
from ..ops import rows
from ..ops.arithmetic import multiply
from ..ops.broadcasting import broadcast_to
from ..ops.layout import matrix_transpose
from ..ops.leaves import as_tensor, definition, named, scalar_value
from ..ops.pointwise import log, maximum, tanh
from .dot_product import attention_pooling, probabilities, scaled_dot_product, scores
from .norms import features, l2_norm, layer_norm, rms_norm
from .options import Masking, kept, known, one_query, operand, queries_and_keys, same

# --- other scales of the dot product ---


def temperature(Q: Any, K: Any, V: Any, tau: Any, **masking: Unpack[Masking]) -> Tensor:
    """Attention at a temperature, ``softmax(Q @ K.mT / tau) @ V``: sharp for a small tau, an average for a large one.

    Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]. ``tau`` is a scalar, or tau[h] with heads, and stands in
    place of sqrt(d), not beside it. Raises ShapeError for shapes that do not fit and OperandError for a tau that is
    a number and not positive.
    Source: Hinton et al. 2015 (arXiv:1503.02531), equation 1.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> print(sa.attention.temperature(Q, K, V, sa.tensor("tau")).intermediates[0].inputs[0])
    Q @ K.T / tau
    """
    products = _products("temperature", Q, K)
    cooled = named("Z", products / per_head("temperature", positive("temperature", "tau", tau), products))
    return attention_pooling(probabilities(cooled, **masking), V)


def mup(Q: Any, K: Any, V: Any, **masking: Unpack[Masking]) -> Tensor:
    """Attention with scores over d, not sqrt(d): ``softmax(Q @ K.mT / d) @ V``, as the maximal update parametrisation.

    Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]. d is the width of one head; a constant factor is part of the
    queries. Raises ShapeError for shapes that do not fit.
    Source: Yang et al. 2022 (arXiv:2203.03466), definition 4.1.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> print(sa.attention.mup(Q, K, V).intermediates[0].inputs[0])
    Q @ K.T / d
    """
    return _attended("mup", Q, K, V, 1 / operand("mup", Q, 1, "Q[.., T, d]").shape[-1], masking)


def scalable_softmax(Q: Any, K: Any, V: Any, s: Any, *, count: str = "visible", **masking: Unpack[Masking]) -> Tensor:
    """Attention that does not fade as keys are added (SSMax), ``softmax(s * log(n) * Q @ K.mT / sqrt(d)) @ V``.

    Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]. ``s`` is a scalar, or s[h] with heads. ``count`` says what n
    is: ``"visible"`` (the default, as in the paper), the keys that the mask leaves to a query, at least 1; or
    ``"keys"``, all of them. Raises ShapeError for shapes that do not fit and OperandError for another ``count``.
    Source: Nakanishi 2025 (arXiv:2501.19399).

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> print(sa.attention.scalable_softmax(Q, K, V, sa.tensor("s")).intermediates[1].inputs[0])
    log(S) * s * Z
    """
    z = scores(Q, K)
    keep, keys = kept("scalable_softmax", z, masking), z.shape[-1]
    visible = one_of("scalable_softmax", "count", count, "visible", "keys") == "visible"
    factor = as_tensor(sympy.log(keys))
    if visible and keep is not None:
        n = rows.sum(broadcast_to(keep, (*keep.shape[:-1], keys)), axis=-1, keepdims=z.rank > 1)
        factor = log(named("n", maximum(n, 1)))
    grown = named("Z_n", multiply(multiply(factor, per_head("scalable_softmax", s, z)), z))
    return attention_pooling(probabilities(grown, **masking), V)


# --- similarities with weights of their own ---


def additive(Q: Any, K: Any, V: Any, W: Any, U: Any, a: Any, **masking: Unpack[Masking]) -> Tensor:
    """Attention by a network of one hidden layer, ``Z[i, j] = a . tanh(W' q_i + U' k_j)``.

    Q[.., T, d] or one query Q[d], K[.., S, f], V[.., S, e], W[d, m], U[f, m], a[m]; O[.., T, e]. No scale; a bias
    of the hidden layer is a column of W times a feature of Q that is 1. Raises ShapeError for shapes that do not
    fit.
    Source: Bahdanau et al. 2014 (arXiv:1409.0473), appendix A.1.2.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S f"), sa.tensor("V", "S e")
    >>> W, U, a = sa.tensor("W", "d m"), sa.tensor("U", "f m"), sa.tensor("a", "m")
    >>> for x in sa.attention.additive(Q, K, V, W, U, a).intermediates[:3]:
    ...     print(x.name, "=", x.inputs[0])
    A = Q @ W
    B = K @ U
    Z = tanh(A[:, None, :] + B[None, :, :]) @ a
    """
    return attention_pooling(probabilities(_network("additive", Q, K, W, U, a), **masking), V)


def luong_dot(Q: Any, K: Any, V: Any, **masking: Unpack[Masking]) -> Tensor:
    """Attention by dot products as they are, ``softmax(Q @ K.mT) @ V``.

    Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]. Raises ShapeError for shapes that do not fit.
    Source: Luong et al. 2015 (arXiv:1508.04025), section 3.1, "dot".

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> print(sa.attention.luong_dot(Q, K, V).intermediates[0].inputs[0])
    Q @ K.T
    """
    return _attended("luong_dot", Q, K, V, 1, masking)


def luong_general(Q: Any, K: Any, V: Any, W: Any, **masking: Unpack[Masking]) -> Tensor:
    """Attention by a bilinear form, ``softmax(Q @ W @ K.mT) @ V``.

    Q[.., T, d], K[.., S, f], V[.., S, e], W[d, f]; O[.., T, e]. No scale. Raises ShapeError for shapes that do not
    fit.
    Source: Luong et al. 2015 (arXiv:1508.04025), section 3.1, "general".

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S f"), sa.tensor("V", "S e")
    >>> print(sa.attention.luong_general(Q, K, V, sa.tensor("W", "d f")).intermediates[0].inputs[0])
    Q @ W @ K.T
    """
    turned = _projected("luong_general", Q, "Q[.., T, d]", W, "W[d, f]")
    return _attended("luong_general", turned, K, V, 1, masking)


def luong_concat(Q: Any, K: Any, V: Any, W: Any, a: Any, **masking: Unpack[Masking]) -> Tensor:
    """Attention by a network that reads query and key side by side, ``Z[i, j] = a . tanh(W' [q_i, k_j])``.

    Q[.., T, d], K[.., S, f], V[.., S, e], W[d + f, m], a[m]; O[.., T, e]. This is ``additive`` with the first d
    rows of W for the queries and the others for the keys. Raises ShapeError for shapes that do not fit.
    Source: Luong et al. 2015 (arXiv:1508.04025), section 3.1, "concat".

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S f"), sa.tensor("V", "S e")
    >>> sa.attention.luong_concat(Q, K, V, sa.tensor("W", "d+f m"), sa.tensor("a", "m")).shape
    (T, e)
    """
    queries, keys = operand("luong_concat", Q, 1, "Q[.., T, d]"), operand("luong_concat", K, 2, "K[.., S, f]")
    weight, width = operand("luong_concat", W, 2, "W[d + f, m]"), queries.shape[-1]
    if not same_shape(weight.shape[-2:-1], (sympy.expand(width + keys.shape[-1]),)):
        raise ShapeError(
            f"luong_concat: {weight.brief()} does not fit {queries.brief()} and {keys.brief()} side by side: "
            f"its axis -2 is {weight.shape[-2]}, not {width + keys.shape[-1]}"
        )
    first, others = weight[..., :width, :], weight[..., width:, :]
    return attention_pooling(probabilities(_network("luong_concat", queries, keys, first, others, a), **masking), V)


def low_rank_bilinear(Q: Any, K: Any, V: Any, A: Any, B: Any, *, scale: Any = 1, **masking: Unpack[Masking]) -> Tensor:
    """Attention by a bilinear form of rank r, ``softmax(Q @ A @ (K @ B).mT * scale) @ V``.

    Q[.., T, d], K[.., S, f], V[.., S, e], A[d, r], B[f, r]; O[.., T, e]. ``scale`` is 1 by default; one head of a
    transformer is this with A = W_q, B = W_k and 1/sqrt(r). Raises ShapeError for shapes that do not fit.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.2.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S f"), sa.tensor("V", "S e")
    >>> A, B = sa.tensor("A", "d r"), sa.tensor("B", "f r")
    >>> print(sa.attention.low_rank_bilinear(Q, K, V, A, B).intermediates[0].inputs[0])
    Q @ A @ (K @ B).T
    """
    queries = _projected("low_rank_bilinear", Q, "Q[.., T, d]", A, "A[d, r]")
    keys = _projected("low_rank_bilinear", K, "K[.., S, f]", B, "B[f, r]")
    return _attended("low_rank_bilinear", queries, keys, V, scale, masking)


# --- similarities of normalised queries and keys ---

_NORMS: dict[str, Callable[..., Tensor]] = {"rms": rms_norm, "layer": layer_norm, "l2": l2_norm}


def qk_norm(
    Q: Any,
    K: Any,
    V: Any,
    gain_q: Any = None,
    gain_k: Any = None,
    *,
    norm: str = "rms",
    eps: Any = None,
    scale: Any = None,
    **masking: Unpack[Masking],
) -> Tensor:
    """Attention of normalised queries and keys, ``softmax(norm(Q) @ norm(K).mT * scale) @ V``.

    Q[.., T, d], K[.., S, d], V[.., S, e], gain_q[d] and gain_k[d] (default: none); O[.., T, e]. ``norm`` is
    ``"rms"`` (the default; Qwen 3, Gemma 3, OLMo 2), ``"layer"`` (ViT-22B) or ``"l2"`` (Henry et al., where
    ``scale`` is learned); ``eps`` is that of the norm, by default 1e-5, and 0 for "l2"; ``scale`` is 1/sqrt(d) by
    default. Raises ShapeError for shapes that do not fit and OperandError for another ``norm``.
    Source: Henry et al. 2020 (arXiv:2010.04245); Dehghani et al. 2023 (arXiv:2302.05442).

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> for x in sa.attention.qk_norm(Q, K, V, norm="l2", scale=10).intermediates[:5]:
    ...     print(x.name, "=", x.inputs[0])
    r = rsqrt(rowsum(Q**2))
    Qhat = Q * r
    r = rsqrt(rowsum(K**2))
    Khat = K * r
    Z = 10 * (Qhat @ Khat.T)
    """
    chosen = one_of("qk_norm", "norm", norm, *_NORMS)
    queries = _normalised("Qhat", operand("qk_norm", Q, 1, "Q[.., T, d]"), chosen, gain_q, eps)
    keys = _normalised("Khat", operand("qk_norm", K, 2, "K[.., S, d]"), chosen, gain_k, eps)
    return _attended("qk_norm", queries, keys, V, scale, masking)


def cosine(Q: Any, K: Any, V: Any, g: Any, *, eps: Any = 0, **masking: Unpack[Masking]) -> Tensor:
    """Attention by the cosine of query and key, ``softmax(g * Qhat @ Khat.mT) @ V`` with rows of length 1.

    Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]. ``g`` is a scalar, or g[h] with heads (1/tau in Swin v2);
    ``eps`` stands under the root of the length (default 0). Raises ShapeError for shapes that do not fit.
    Source: Liu et al. 2021 (arXiv:2111.09883), equation 2; Henry et al. 2020 (arXiv:2010.04245).

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> print(sa.attention.cosine(Q, K, V, sa.tensor("g")).intermediates[4].inputs[0])
    g * (Qhat @ Khat.T)
    """
    queries = _normalised("Qhat", operand("cosine", Q, 1, "Q[.., T, d]"), "l2", None, eps)
    products = _products(
        "cosine", queries, _normalised("Khat", operand("cosine", K, 2, "K[.., S, d]"), "l2", None, eps)
    )
    z = named("Z", multiply(per_head("cosine", g, products), products))
    return attention_pooling(probabilities(z, **masking), V)


def l2(Q: Any, K: Any, V: Any, **masking: Unpack[Masking]) -> Tensor:
    """Attention by distance, ``Z[i, j] = -|q_i - k_j|^2 / sqrt(d)``.

    Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]. It is a Gaussian ``kernel_regression``; the paper also ties
    the projections of queries and keys. Raises ShapeError for shapes that do not fit.
    Source: Kim et al. 2020 (arXiv:2006.04710).

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> print(sa.attention.l2(Q, K, V).intermediates[1].inputs[0])
    -D / sqrt(d)
    """
    queries, keys = queries_and_keys("l2", Q, K)
    distances = squared(differences("l2", queries, keys), False)
    z = named("Z", -distances / sympy.sqrt(queries.shape[-1]))
    return attention_pooling(probabilities(z, **masking), V)


def squared_distances(X: Any, Z: Any) -> Tensor:
    """``D[i, j] = |x_i - z_j|^2``, from the differences: far points that are close to each other lose no digits.

    X[.., T, d] or one point X[d], Z[.., S, d]; D[.., T, S] or D[.., S]. With Z[S], X[T] and Z are points of a line.
    Raises ShapeError for shapes that do not fit.
    Source: Nadaraya 1964 and Watson 1964, the argument of the kernel.

    >>> import symattn as sa
    >>> print(sa.attention.squared_distances(sa.tensor("x", "T"), sa.tensor("z", "S")).inputs[0])
    (x[:, None] - z)**2
    """
    return squared(differences("squared_distances", X, Z), as_tensor(Z).rank == 1)


# --- what these share ---


def points(what: str, X: Any, Z: Any) -> tuple[Tensor, Tensor]:
    """The two sets of points, if both are vectors of one width, or both are points of a line."""
    z = operand(what, Z, 1, "Z[.., S, d] or Z[S]")
    x = operand(what, X, 1, "X[.., T, d]") if z.rank > 1 else as_tensor(X)
    if z.rank > 1:
        same(what, x, -1, z, -1, "their width")
    elif x.rank > 1:
        raise ShapeError(f"{what}: {z.brief()} are points of a line, and {x.brief()} is not X[T]")
    return x, z


def differences(what: str, X: Any, Z: Any) -> Tensor:
    """``x_i - z_j``: [.., T, S, d] for vectors, [T, S] for points of a line."""
    x, z = points(what, X, Z)
    if z.rank == 1:
        return x[..., None] - z if x.rank else x - z
    left, right = _pairs(x, z)
    return left - right


def squared(u: Tensor, on_a_line: bool) -> Tensor:
    """The squared lengths D of differences."""
    return named("D", u**2 if on_a_line else rows.sum(u**2, axis=-1))


def per_head(what: str, x: Any, scores: Tensor) -> Tensor:
    """A scalar as it is; of x[h], for scores[h, T, S], with places for the queries and the keys."""
    made = as_tensor(x)
    heads = scores.shape[:-2]
    joined = broadcast_shapes(made.shape, heads)
    if joined is None or not same_shape(joined, heads):
        listed = ", ".join(map(str, heads))
        meant = f"one number a head, with the sizes [{listed}], or a scalar" if heads else "a scalar"
        raise ShapeError(f"{what}: {made.brief()} does not fit the scores {scores.brief()}: {meant} is meant")
    return made[..., None, None] if made.rank else made


def positive(what: str, role: str, x: Any) -> Tensor:
    """The tensor, unless it is a number that is not positive."""
    made = as_tensor(x)
    value = scalar_value(made)
    if value is not None and value.is_positive is False:
        raise OperandError(f"{what}: {role} is positive, not {value}")
    return made


def _pairs(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of both, so that every row of x meets every row of y; a vector x meets each row of y."""
    return (x, y) if x.rank == 1 else (x[..., :, None, :], y[..., None, :, :])


def _attended(what: str, Q: Any, K: Any, V: Any, scale: Any, masking: Masking) -> Tensor:
    """Scaled dot products with a scale that is given, and the keywords of a mask only."""
    known(what, masking, Masking)
    return scaled_dot_product(Q, K, V, scale=scale, **masking)


def _products(what: str, Q: Any, K: Any) -> Tensor:
    queries, keys = queries_and_keys(what, Q, K)
    return queries @ matrix_transpose(keys)


def _projected(what: str, X: Any, shape: str, W: Any, weight_shape: str) -> Tensor:
    x, weight = operand(what, X, 1, shape), operand(what, W, 2, weight_shape)
    same(what, x, -1, weight, -2, "their width")
    return x @ weight


def _network(what: str, Q: Any, K: Any, W: Any, U: Any, a: Any) -> Tensor:
    """The scores of a network of one hidden layer."""
    queries = _projected(what, Q, "Q[.., T, d]", W, "W[d, m]")
    keys = _projected(what, operand(what, K, 2, "K[.., S, f]"), "K[.., S, f]", U, "U[f, m]")
    last = as_tensor(a)
    if last.rank != 1:
        raise ShapeError(f"{what}: {last.brief()} is not a vector a[m]")
    same(what, queries, -1, keys, -1, "the width of the hidden layer")
    same(what, queries, -1, last, -1, "the width of the hidden layer")
    one_query(what, queries, keys)
    left, right = _pairs(named("A", queries), named("B", keys))
    return named("Z", tanh(left + right) @ last)


def _normalised(name: str, x: Tensor, norm: str, gain: Any, eps: Any) -> Tensor:
    """The rows by a norm, under a name of their own."""
    options = {} if eps is None else {"eps": eps}
    if norm == "l2":
        unit = l2_norm(x, **options)
        if gain is None:
            return named(name, definition(unit))
        return named(name, unit * features("qk_norm", "gain", gain, x, 1))
    return named(name, definition(_NORMS[norm](x, gain, **options)))
