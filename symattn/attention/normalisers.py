"""What replaces the softmax: weights that need not sum to 1, and weights that can be zero."""

from __future__ import annotations

from typing import Any, Unpack

import sympy

from ..core.node import Tensor
from ..ops import rows
from ..ops.leaves import as_tensor, named
from ..ops.logic import where
from ..ops.opaque import stop_gradient
from ..ops.pointwise import abs, exp, maximum, relu, sigmoid
from ..ops.sparse import entmax15, sparsemax
from .dot_product import attention_pooling, probabilities, scores
from .options import Masking, epsilon, kept_or_zero
from .similarities import per_head

# --- softmax with something besides the keys ---


def sink(Q: Any, K: Any, V: Any, b: Any, *, scale: Any = None, **masking: Unpack[Masking]) -> Tensor:
    """Attention with a sink, ``P[i, j] = exp(Z[i, j]) / (exp(b) + sum_k exp(Z[i, k]))``.

    The sink takes weight and has no value. Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]. ``b`` is the
    logit of the sink: a scalar, or b[h] with heads (gpt-oss). It is written as softmax times the share of the keys,
    ``sigmoid(logsumexp(Z) - b)``, so nothing overflows; a softmax of one more column, which is then dropped, is the
    same. A row without keys gives zeros. ``scale`` is 1/sqrt(d) by default. Raises ShapeError for shapes that do
    not fit.
    Source: OpenAI 2025 (arXiv:2508.10925); Xiao et al. 2023 (arXiv:2309.17453), for b = 0.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> for x in sa.attention.sink(Q, K, V, sa.tensor("b")).intermediates[1:]:
    ...     print(x.name, "=", x.inputs[0])
    L = rowlogsumexp(Z)
    s = sigmoid(L - b)
    P = softmax(Z)
    P_s = s * P
    O = P_s @ V
    """
    z = scores(Q, K, scale=scale)
    logit = per_head("sink", b, z)
    weights = probabilities(z, **masking)
    seen = _seen("sink", z, {**masking, "empty": "zero"}, -sympy.oo)
    total = named("L", rows.logsumexp(seen, keepdims=z.rank > 1))
    share = named("s", sigmoid(total - logit))
    return attention_pooling(named("P_s", share * weights), V)


def softmax1(Q: Any, K: Any, V: Any, *, scale: Any = None, **masking: Unpack[Masking]) -> Tensor:
    """Attention that may attend to nothing, ``P[i, j] = exp(Z[i, j]) / (1 + sum_k exp(Z[i, k]))``.

    Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]. It is a ``sink`` with the logit 0, and softmax with one more
    key and value of zeros. ``scale`` is 1/sqrt(d) by default. Raises ShapeError for shapes that do not fit.
    Source: Miller 2023, "Attention is off by one"; ``add_zero_attn`` in PyTorch.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> print(sa.attention.softmax1(Q, K, V).intermediates[2].inputs[0])
    sigmoid(L)
    """
    return sink(Q, K, V, 0, scale=scale, **masking)


# --- weights without a sum ---


def sigmoid_attention(
    Q: Any, K: Any, V: Any, *, b: Any = None, scale: Any = None, **masking: Unpack[Masking]
) -> Tensor:
    """Attention that weighs each key by itself, ``sigmoid(Z + b) @ V``.

    Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]. ``b`` is a scalar, or b[h] with heads, by default -log(S),
    with all S keys, masked or not. ``scale`` is 1/sqrt(d) by default. A key that is masked has weight 0. Raises
    ShapeError for shapes that do not fit.
    Source: Ramapuram et al. 2024 (arXiv:2409.04431).

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> print(sa.attention.sigmoid_attention(Q, K, V).intermediates[1].inputs[0])
    sigmoid(Z - log(S))
    """
    z = scores(Q, K, scale=scale)
    shift = as_tensor(-sympy.log(z.shape[-1])) if b is None else per_head("sigmoid_attention", b, z)
    return attention_pooling(named("P", masked("sigmoid_attention", sigmoid(z + shift), masking)), V)


def relu_attention(Q: Any, K: Any, V: Any, *, scale: Any = None, **masking: Unpack[Masking]) -> Tensor:
    """Attention by positive scores, ``relu(Z) / S @ V``.

    Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]. S counts all keys, masked or not. ``scale`` is 1/sqrt(d) by
    default. A key that is masked has weight 0. Raises ShapeError for shapes that do not fit.
    Source: Wortsman et al. 2023 (arXiv:2309.08586).

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> print(sa.attention.relu_attention(Q, K, V).intermediates[1].inputs[0])
    relu(Z) / S
    """
    z = scores(Q, K, scale=scale)
    return attention_pooling(named("P", masked("relu_attention", relu(z), masking) / z.shape[-1]), V)


def softpick(Q: Any, K: Any, V: Any, *, eps: Any = 1e-6, scale: Any = None, **masking: Unpack[Masking]) -> Tensor:
    """Attention by a rectified softmax, ``P[i, j] = relu(exp(Z[i, j]) - 1) / (sum_k |exp(Z[i, k]) - 1| + eps)``.

    Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]. Both sides of the fraction are multiplied by exp(-m), with m
    the largest score of a row or 0, so nothing overflows; ``eps`` (1e-6) as well, so that the value does not depend
    on m, where the authors' code adds it as it is. Masked keys have weight 0 and no part in the sum. ``scale`` is
    1/sqrt(d) by default. Raises ShapeError for shapes that do not fit and OperandError for a negative eps.
    Source: Zuhri et al. 2025 (arXiv:2504.20966).

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> for x in sa.attention.softpick(Q, K, V).intermediates[1:4]:
    ...     print(x.name, "=", x.inputs[0])
    m = stop_gradient(maximum(rowmax(Z), 0))
    E = exp(Z - m) - exp(-m)
    P = relu(E) / (rowsum(abs(E)) + exp(-m) / 1000000)
    """
    shift = epsilon("softpick", eps)
    z = _seen("softpick", scores(Q, K, scale=scale), masking, 0)  # a score of 0 has the weight 0
    wide = z.rank > 1
    m = named("m", stop_gradient(maximum(rows.max(z, axis=-1, keepdims=wide), 0)))
    lifted = named("E", exp(z - m) - exp(-m))
    total = rows.sum(abs(lifted), axis=-1, keepdims=wide) + shift * exp(-m)
    return attention_pooling(named("P", relu(lifted) / total), V)


# --- weights with zeros ---


def sparsemax_attention(Q: Any, K: Any, V: Any, *, scale: Any = None, **masking: Unpack[Masking]) -> Tensor:
    """Attention by the nearest point of the simplex, ``sparsemax(Z) @ V``: keys below a threshold have weight 0.

    Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]. ``scale`` is 1/sqrt(d) by default. A row without keys gives
    zeros. Raises ShapeError for shapes that do not fit.
    Source: Martins and Astudillo 2016 (arXiv:1602.02068), section 2.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> print(sa.attention.sparsemax_attention(Q, K, V).intermediates[1].inputs[0])
    sparsemax(Z)
    """
    z = _seen("sparsemax_attention", scores(Q, K, scale=scale), masking, -sympy.oo)
    return attention_pooling(named("P", sparsemax(z)), V)


def entmax15_attention(Q: Any, K: Any, V: Any, *, scale: Any = None, **masking: Unpack[Masking]) -> Tensor:
    """Attention by 1.5-entmax, ``entmax15(Z) @ V``: between softmax and sparsemax.

    Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]. ``scale`` is 1/sqrt(d) by default. A row without keys gives
    zeros. Raises ShapeError for shapes that do not fit.
    Source: Peters et al. 2019 (arXiv:1905.05702), section 3.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> print(sa.attention.entmax15_attention(Q, K, V).intermediates[1].inputs[0])
    entmax15(Z)
    """
    z = _seen("entmax15_attention", scores(Q, K, scale=scale), masking, -sympy.oo)
    return attention_pooling(named("P", entmax15(z)), V)


# --- masks without a softmax ---


def masked(what: str, x: Tensor, masking: Masking, hidden: Any = 0) -> Tensor:
    """``x``, of the shape of the scores, with ``hidden`` where the mask hides a key."""
    keep = kept_or_zero(what, x, masking)
    return x if keep is None else where(keep, x, hidden)


def _seen(what: str, z: Tensor, masking: Masking, hidden: Any) -> Tensor:
    """The scores, under a name of their own where a mask hides some."""
    found = masked(what, z, masking, hidden)
    return z if found is z else named("Z_M", found)
