"""Scaled dot products: scores, probabilities, the weighted sum of values, and what is done to the scores in between."""

from __future__ import annotations

from typing import Any, Unpack

import sympy

from ..core.node import Tensor
from ..errors import OperandError
from ..ops.arithmetic import add, multiply
from ..ops.layout import matrix_transpose
from ..ops.leaves import as_tensor, named, scalar_value
from ..ops.pointwise import tanh
from ..ops.rows import softmax
from .options import Masking, Scoring, factor, fitting, kept, known, masking_of, operand, queries_and_keys, same


def scores(Q: Any, K: Any, *, scale: Any = None) -> Tensor:
    r"""How well each query fits each key, ``Z = Q @ K.mT * scale``.

    Q[.., T, d], K[.., S, d]; Z[.., T, S]; or one query Q[d], K[S, d]; Z[S]. ``scale`` is a scalar, or [h, 1, 1] with
    heads, by default 1/sqrt(d), with d the width of a query, of one head where there are heads. Raises ShapeError for
    widths that differ, a scale of another shape, and one query of several heads, whose Z[h, S] could not be told from
    Z[T, S].
    Source: Vaswani et al. 2017 (arXiv:1706.03762), equation 1.

    >>> import symattn as sa
    >>> Z = sa.attention.scores(sa.tensor("Q", "T d"), sa.tensor("K", "S d"))
    >>> print(sa.let("Z", Z.inputs[0]).inputs[0])
    Q @ K.T / sqrt(d)
    """
    queries, keys = queries_and_keys("scores", Q, K)
    return named("Z", scaled("scores", queries @ matrix_transpose(keys), queries.shape[-1], scale))


def scaled(what: str, products: Tensor, width: sympy.Expr, scale: Any) -> Tensor:
    """The products times the scale that is given, or else over the root of the width."""
    by = 1 / sympy.sqrt(width) if scale is None else fitting(what, "scale", factor(what, scale), products)
    return multiply(by, products)


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
    z = as_tensor(Z)
    return named("P", softmax(z, where=kept("probabilities", z, masking), empty=masking.get("empty", "zero")))


def weights(Q: Any, K: Any, **options: Unpack[Scoring]) -> Tensor:
    """The weights of ``scaled_dot_product``, ``P = softmax(Z)`` of the scores of queries and keys.

    Q[.., T, d] or Q[d], K[.., S, d]; P[.., T, S] or P[S]. In this order, as in ONNX: ``scale`` (default 1/sqrt(d)),
    ``softcap`` c for c tanh(Z/c) (default none), ``bias`` added to the scores (default none), and the mask of
    ``Masking``. Raises ShapeError for shapes that do not fit, and OperandError for a mask that is not binary or a bias
    that is.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), equation 1; ONNX operator Attention, version 25.

    >>> import symattn as sa
    >>> Q, K, B = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("B", "T S")
    >>> print(sa.attention.weights(Q, K, bias=B).inputs[0])
    softmax(Z + B)
    """
    known("weights", options, Scoring)
    z = scores(Q, K, scale=options.get("scale"))
    cap, bias = options.get("softcap"), options.get("bias")
    if cap is not None:
        z = named("Z_cap", capped(z, fitting("weights", "softcap", factor("weights", cap, "softcap"), z)))
    if bias is not None:
        z = add(z, fitting("weights", "bias", _additive(bias), z))
    return probabilities(z, **masking_of(options))


def _additive(bias: Any) -> Tensor:
    made = as_tensor(bias)
    if made.kind == "binary":
        raise OperandError(
            f"the bias {made.brief()} is binary, and would be added as 0 and 1: give it as mask=, or bias=as_bias(mask)"
        )
    return made


def scaled_dot_product(Q: Any, K: Any, V: Any, **options: Unpack[Scoring]) -> Tensor:
    """Attention: each query averages the values, weighted by a softmax of its scores.

    ``Z = Q @ K.mT / sqrt(d)``, ``P = softmax(Z)``, ``O = P @ V``. Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e].
    Heads are leading axes, and Q[d] is a single query. Options are those of ``weights``: ``scale``, ``softcap``,
    ``bias`` and the mask of ``Masking``. Raises ShapeError for shapes that do not fit, and OperandError for a mask that
    is not binary or a bias that is.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), equation 1.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> for x in sa.attention.scaled_dot_product(Q, K, V).intermediates:
    ...     print(x.name, "=", x.inputs[0])
    Z = Q @ K.T / sqrt(d)
    P = softmax(Z)
    O = P @ V
    """
    known("scaled_dot_product", options, Scoring)
    return attention_pooling(weights(Q, K, **options), V)


def capped(Z: Any, cap: Any) -> Tensor:
    """Scores kept between -c and c, ``c * tanh(Z / c)``.

    Raises OperandError for a cap that is a number and not positive. The mask comes after it: -oo would become -c.
    Source: Gemma 2 (arXiv:2408.00118), section 2.

    >>> import symattn as sa
    >>> print(sa.attention.capped(sa.tensor("Z", "T S"), 50))
    50 * tanh(Z / 50)
    """
    c = as_tensor(cap)
    value = scalar_value(c)
    if value is not None and value.is_nonpositive:
        raise OperandError(f"capped: the cap is positive, not {value}; softcap=None leaves the scores as they are")
    return multiply(c, tanh(as_tensor(Z) / c))


def attention_pooling(alpha: Any, V: Any) -> Tensor:
    """The values averaged by given weights, ``O = alpha @ V``: row i is the sum over j of alpha[i, j] v_j.

    alpha[.., T, S], or alpha[S] for one query, and V[.., S, e]; O[.., T, e]. Weights of an average are at least 0
    and sum to 1 in each row, which is proved of an expression (``sa.le(0, alpha)``) and not checked here. Raises
    ShapeError for numbers of weights and values that differ.
    Source: Nadaraya 1964, Watson 1964; Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.

    >>> import symattn as sa
    >>> Z, V = sa.tensor("Z", "T S"), sa.tensor("V", "S e")
    >>> print(sa.attention.attention_pooling(sa.softmax(Z), V).inputs[0])
    softmax(Z) @ V
    """
    what = "attention_pooling"
    weights, values = operand(what, alpha, 1, "alpha[.., T, S]"), operand(what, V, 2, "V[.., S, e]")
    same(what, weights, -1, values, -2, "the number of keys and values")
    return named("O", weights @ values)
