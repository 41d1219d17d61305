"""Scaled dot products: scores, probabilities, the weighted sum of values, and what is done to the scores in between."""

from __future__ import annotations

from typing import Any, Unpack

import sympy

from ..ops.arithmetic import add, multiply
from ..ops.layout import matrix_transpose
from ..ops.leaves import as_tensor, let
from ..ops.pointwise import tanh
from ..ops.rows import softmax
from ..tensor import Tensor
from .options import Masking, attended, operand, same


def scores(Q: Any, K: Any, *, scale: Any = None) -> Tensor:
    r"""How well each query fits each key, ``Z = Q @ K.mT * scale``.

    Q[.., T, d] or one query Q[d], K[.., S, d]; Z[.., T, S] or Z[S]. ``scale`` is a scalar, by default 1/sqrt(d), with d
    the width of a query, of one head where there are heads. Raises ShapeError for widths that differ.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), equation 1.

    >>> import symattn as sa
    >>> Z = sa.attention.scores(sa.tensor("Q", "T d"), sa.tensor("K", "S d"))
    >>> print(sa.let("Z", Z.inputs[0]).inputs[0])
    Q @ K.T / sqrt(d)
    """
    queries, keys = operand("scores", Q, 1, "Q[.., T, d]"), operand("scores", K, 2, "K[.., S, d]")
    same("scores", queries, -1, keys, -1, "their width")
    factor = 1 / sympy.sqrt(queries.shape[-1]) if scale is None else as_tensor(scale)
    return let("Z", multiply(factor, queries @ matrix_transpose(keys)))


def probabilities(Z: Any, **masking: Unpack[Masking]) -> Tensor:
    """The weight of each key for each query, ``P = softmax(Z)`` along the keys, over the keys that the mask leaves.

    Z[.., T, S]; P has the shape of Z. ``mask``, ``mask_polarity`` ("attend") and ``empty`` ("zero") are those of
    ``Masking``. Raises ShapeError for a mask of another shape and OperandError for one that is not binary.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), equation 1.

    >>> import symattn as sa
    >>> Z = sa.tensor("Z", "T S")
    >>> padding = sa.tensor("pad", "S", binary=True)
    >>> print(sa.attention.probabilities(Z, mask=padding, mask_polarity="block").inputs[0])
    softmax(Z, where=~pad)
    """
    z, mask = as_tensor(Z), masking.get("mask")
    polarity = masking.get("mask_polarity", "attend")
    keep = None if mask is None else attended("probabilities", z, mask, polarity)
    return let("P", softmax(z, where=keep, empty=masking.get("empty", "zero")))


def scaled_dot_product(
    Q: Any,
    K: Any,
    V: Any,
    *,
    scale: Any = None,
    softcap: Any = None,
    bias: Any = None,
    **masking: Unpack[Masking],
) -> Tensor:
    """Attention: each query averages the values, weighted by a softmax of its scores.

    ``Z = Q @ K.mT * scale``, ``P = softmax(Z)``, ``O = P @ V``. Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]; heads
    are leading axes, and Q[d] is a single query. In this order, as in ONNX: ``scale`` (default 1/sqrt(d)), ``softcap``
    c for c tanh(Z/c) (default none), ``bias`` added to the scores (default none), and the mask of ``Masking``.
    Raises ShapeError for shapes that do not fit and OperandError for a mask that is not binary.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), equation 1; ONNX operator Attention, version 25.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> for x in sa.attention.scaled_dot_product(Q, K, V).intermediates:
    ...     print(x.name, "=", x.inputs[0])
    Z = Q @ K.T / sqrt(d)
    P = softmax(Z)
    O = P @ V
    """
    z = scores(Q, K, scale=scale)
    if softcap is not None:
        z = let("Z_cap", capped(z, softcap))
    return averaged(probabilities(z if bias is None else add(z, bias), **masking), V)


def capped(Z: Any, cap: Any) -> Tensor:
    """Scores kept between -c and c, ``c * tanh(Z / c)``.

    Raises OperandError for a cap that is a number and not positive. The mask comes after it: -oo would become -c.
    Source: Gemma 2 (arXiv:2408.00118), section 2.

    >>> import symattn as sa
    >>> print(sa.attention.capped(sa.tensor("Z", "T S"), 50))
    50*tanh(Z/50)
    """
    c = as_tensor(cap)
    return multiply(c, tanh(as_tensor(Z) / c))


def averaged(P: Any, V: Any) -> Tensor:
    """Each row of weights averages the values, ``O = P @ V``: row i of O is the sum of P[i, j] V[j].

    P[.., T, S], V[.., S, e]; O[.., T, e]. Raises ShapeError for numbers of keys and values that differ.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), equation 1.

    >>> import symattn as sa
    >>> sa.attention.averaged(sa.tensor("P", "T S"), sa.tensor("V", "S e")).shape
    (T, e)
    """
    weights, values = operand("averaged", P, 1, "P[.., T, S]"), operand("averaged", V, 2, "V[.., S, e]")
    same("averaged", weights, -1, values, -2, "the number of keys and values")
    return let("O", weights @ values)
