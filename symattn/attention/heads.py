"""Several heads: projections of each head, and heads that share keys, mix, subtract or are gated.

Heads are an axis in front of the tokens, Q[.., h, T, d].
"""

from __future__ import annotations

from typing import Any, Literal, Unpack

import sympy

from ..core.arguments import one_of
from ..core.exact import as_scalar
from ..core.node import Tensor
from ..core.sizes import as_size, quotient, same_size
from ..errors import OperandError, ShapeError
from ..ops import rows
from ..ops.arithmetic import multiply, subtract
from ..ops.contraction import einsum_op
from ..ops.gather import tile
from ..ops.layout import moveaxis, repeat
from ..ops.leaves import as_tensor, named
from ..ops.pointwise import exp, sigmoid
from .dot_product import attention_pooling, probabilities, scaled_dot_product, scores, weights
from .norms import rms_norm
from .options import Masking, Scoring, exactly, operand, same, scalar
from .projections import merge_heads, per_head, projected, split_heads


def multi_head(
    Q: Any,
    K: Any,
    V: Any,
    W_q: Any,
    W_k: Any,
    W_v: Any,
    W_o: Any = None,
    *,
    heads: Any = None,
    **options: Unpack[Scoring],
) -> Tensor:
    """Attention of several heads, each with its own projections: ``Y = [O_1, .., O_h] @ W_o``.

    ``O_i = scaled_dot_product(Q @ W_q[i], K @ W_k[i], V @ W_v[i])``; self-attention is ``multi_head(X, X, X, ..)``.
    Q[.., T, D], K[.., S, E], V[.., S, F]. Weights are given by head, W_q[h, D, d], W_k[h, E, d], W_v[h, F, e], or
    fused, with the columns of a head side by side: W_q[D, h*d], .. and ``heads=h``. W_o[h*e, M] acts on the joined
    heads and W_o[h, e, M] sums over heads, which is the same; without it (the default) Y[.., T, h*e] is the joined
    heads. Options are those of ``scaled_dot_product``; a mask and a bias broadcast with the scores [.., h, T, S].
    Raises ShapeError for weights that do not fit or that the heads do not divide, and OperandError for fused weights
    without ``heads``.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.2.

    >>> import symattn as sa
    >>> X, W_q, W_k = sa.tensor("X", "T D"), sa.tensor("W_q", "h D d"), sa.tensor("W_k", "h D d")
    >>> W_v, W_o = sa.tensor("W_v", "h D e"), sa.tensor("W_o", "h e D")
    >>> sa.attention.multi_head(X, X, X, W_q, W_k, W_v, W_o).shape
    (T, D)
    """
    q, k, v = head_projections("multi_head", (Q, K, V), (W_q, W_k, W_v), heads)
    return joined("multi_head", scaled_dot_product(q, k, v, **options), W_o)


def head_projections(what: str, inputs: Any, weights: Any, heads: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values [.., h, T, d] by weights of each head or by fused ones."""
    w_q, w_k, w_v = map(as_tensor, weights)
    if not w_q.rank == w_k.rank == w_v.rank:
        shown = ", ".join(w.brief() for w in (w_q, w_k, w_v))
        raise ShapeError(f"{what}: of {shown} some are fused and some given by head; use one form for all three")
    if w_q.rank == 3:
        h = w_q.shape[0] if heads is None else as_size(heads)
        for w in (w_q, w_k, w_v):
            if not same_size(w.shape[0], h):
                raise ShapeError(
                    f"{what}: {w.brief()} has {w.shape[0]} heads, not {h}; for key heads that several query heads "
                    "share, project and use grouped_query"
                )
        q, k, v = (projected(what, x, w) for x, w in zip(inputs, (w_q, w_k, w_v), strict=True))
    else:
        if heads is None:
            raise OperandError(
                f"{what}: the fused weights {w_q.brief()} do not say how many heads there are: give heads="
            )
        q, k, v = (_fused(what, x, w, as_size(heads)) for x, w in zip(inputs, (w_q, w_k, w_v), strict=True))
    same(what, q, -1, k, -1, "the width of queries and keys")
    return named("Q", q), named("K", k), named("V", v)


def _fused(what: str, X: Any, W: Tensor, heads: sympy.Expr) -> Tensor:
    product = projected(what, X, W)
    per_head(what, W, heads, of="columns")
    return split_heads(product, heads)


def joined(what: str, O: Tensor, W_o: Any) -> Tensor:
    """The heads side by side, times W_o[h*e, M] if given; with W_o[h, e, M], the sum over heads of their products."""
    if W_o is None:
        return named("Y", merge_heads(O))
    w = as_tensor(W_o)
    if w.rank not in (2, 3):
        raise ShapeError(
            f"{what}: the output weights {w.brief()} have {w.rank} axes; they are W_o[h*e, M] or, by head, W_o[h, e, M]"
        )
    if w.rank == 3:
        same(what, O, -3, w, 0, "the number of heads")
        same(what, O, -1, w, -2, "the width of the values")
        return named("Y", rows.sum(O @ w, axis=-3))
    side_by_side = named("H", merge_heads(O))
    same(what, side_by_side, -1, w, 0, "the width of the joined heads")
    return named("Y", side_by_side @ w)


# --- shared keys and values ---


def grouped_query(
    Q: Any,
    K: Any,
    V: Any,
    *,
    head_map: Literal["contiguous", "strided"] = "contiguous",
    **options: Unpack[Scoring],
) -> Tensor:
    """Attention in which the query heads of a group share one head of keys and values.

    Q[.., h, T, d], K[.., g, S, d], V[.., g, S, e] with g dividing h; O[.., h, T, e]. Query head i reads the keys of
    head i // (h/g) with ``head_map="contiguous"`` (the default; PyTorch's ``enable_gqa``, ONNX, JAX) and of head i % g
    with ``"strided"``. Options are those of ``scaled_dot_product``. Raises ShapeError if the groups do not divide the
    heads.
    Source: Ainslie et al. 2023 (arXiv:2305.13245), section 2.2.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "g*r T d"), sa.tensor("K", "g S d"), sa.tensor("V", "g S e")
    >>> for x in sa.attention.grouped_query(Q, K, V).intermediates[:2]:
    ...     print(x.name, "=", x.inputs[0])
    K_r = repeat(K, times=r, axis=-3)
    Z = Q @ K_r.mT / sqrt(d)
    """
    what = "grouped_query"
    q = operand(what, Q, 3, "Q[.., h, T, d]")
    k, v = operand(what, K, 3, "K[.., g, S, d]"), operand(what, V, 3, "V[.., g, S, e]")
    same(what, k, -3, v, -3, "the number of heads of keys and values")
    h, g = q.shape[-3], k.shape[-3]
    if (h / g).is_integer is False:
        raise ShapeError(f"{what}: the {g} heads of {k.brief()} do not divide the {h} heads of {q.brief()}")
    contiguous = one_of(what, "head_map", head_map, "contiguous", "strided") == "contiguous"
    spread, size = repeat if contiguous else tile, quotient(h, g)
    shared = named("K_r", spread(k, size, axis=-3)), named("V_r", spread(v, size, axis=-3))
    return scaled_dot_product(q, *shared, **options)


def multi_query(Q: Any, K: Any, V: Any, **options: Unpack[Scoring]) -> Tensor:
    """Attention in which all query heads share one head of keys and values.

    Q[.., h, T, d], K[.., S, d], V[.., S, e]; O[.., h, T, e]. Options are those of ``scaled_dot_product``. Raises
    ShapeError for shapes that do not fit.
    Source: Shazeer 2019 (arXiv:1911.02150).

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "h T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> sa.attention.multi_query(Q, K, V).shape
    (h, T, e)
    """
    q = operand("multi_query", Q, 3, "Q[.., h, T, d]")
    k, v = operand("multi_query", K, 2, "K[.., S, d]"), operand("multi_query", V, 2, "V[.., S, e]")
    for x, shape in ((k, "K[.., S, d]"), (v, "V[.., S, e]")):
        if x.rank >= q.rank:
            raise ShapeError(f"multi_query: {x.brief()} has axes in front that {q.brief()} lacks; {shape} has no heads")
    shared = (x if x.rank == 2 else x[..., None, :, :] for x in (k, v))
    return scaled_dot_product(q, *shared, **options)


# --- heads that act on each other ---


def talking_heads(
    Q: Any, K: Any, V: Any, W_logits: Any, W_weights: Any, *, scale: Any = None, **masking: Unpack[Masking]
) -> Tensor:
    """Attention whose scores are mixed over heads before the softmax, and whose weights are mixed after it.

    ``Z'_b = sum_a Z_a W_logits[a, b]``, ``P = softmax(Z')``, ``P'_c = sum_b P_b W_weights[b, c]``, ``O = P' @ V``.
    Q[.., a, T, d], K[.., a, S, d], V[.., c, S, e], W_logits[a, b], W_weights[b, c]; O[.., c, T, e]: the three numbers
    of heads may differ, and rows of the weights are heads before the mixing, columns heads after it. The mask comes
    after the mixing of the scores. Raises ShapeError for shapes that do not fit.
    Source: Shazeer et al. 2020 (arXiv:2003.02436), section 3.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "h T d"), sa.tensor("K", "h S d"), sa.tensor("V", "h S e")
    >>> sa.attention.talking_heads(Q, K, V, sa.tensor("W_l", "h h"), sa.tensor("W_w", "h h")).shape
    (h, T, e)
    """
    q, k = operand("talking_heads", Q, 3, "Q[.., h, T, d]"), operand("talking_heads", K, 3, "K[.., h, S, d]")
    v = operand("talking_heads", V, 3, "V[.., h, S, e]")
    same("talking_heads", q, -3, k, -3, "the number of heads")
    logits = named("Z_mix", _mixed(scores(q, k, scale=scale), W_logits))
    weights = named("P_mix", _mixed(probabilities(logits, **masking), W_weights))
    same("talking_heads", weights, -3, v, -3, "the number of heads of weights and values")
    return attention_pooling(weights, v)


def _mixed(x: Tensor, W: Any) -> Tensor:
    """Every entry [i, j] of the heads of x, times the matrix W[before, after]."""
    w = as_tensor(W)
    if w.rank != 2:
        raise ShapeError(f"talking_heads: {w.brief()} has {w.rank} axes where a matrix over heads is meant")
    same("talking_heads", x, -3, w, 0, "the number of heads")
    return einsum_op(x, w, spec=(("ats", "ab"), "bts"))


# --- differential attention ---


def differential(
    Q1: Any,
    K1: Any,
    Q2: Any,
    K2: Any,
    V: Any,
    lam: Any,
    *,
    initial: Any = 0.8,
    gain: Any = None,
    eps: Any = 1e-5,
    **options: Unpack[Scoring],
) -> Tensor:
    """Differential attention: two maps of weights on the same values, of which one is subtracted.

    ``O = (P_1 - lam P_2) @ V``, ``O_diff = (1 - initial) rms_norm(O)`` with ``P_i = softmax(Q_i @ K_i.mT * scale)``.
    Q1 and Q2[.., T, d], K1 and K2[.., S, d], V[.., S, e], a scalar ``lam`` or lam[h, 1, 1] (``differential_lambda``
    gives the published one); O_diff[.., T, e]. The norm is of each head, with ``gain`` and ``eps`` (1e-5) of
    ``rms_norm``; ``initial`` is ``lambda_init`` (0.8). Options are those of ``scaled_dot_product``, for both maps.
    Raises ShapeError for shapes that do not fit.
    Source: Ye et al. 2024 (arXiv:2410.05258), equations 1 and 3.

    >>> import symattn as sa
    >>> Q1, Q2, K1, K2 = (sa.tensor(n, s) for n, s in [("Q_1", "T d"), ("Q_2", "T d"), ("K_1", "S d"), ("K_2", "S d")])
    >>> sa.attention.differential(Q1, K1, Q2, K2, sa.tensor("V", "S e"), sa.tensor("lam")).shape
    (T, e)
    """
    first, second = weights(Q1, K1, **options), weights(Q2, K2, **options)
    if min(first.rank, second.rank) > 1:
        same("differential", first, -2, second, -2, "the number of queries")
    same("differential", first, -1, second, -1, "the number of keys")
    factor = as_tensor(lam)
    if any(size != 1 for size in factor.shape[-2:]):
        raise ShapeError(f"differential: {factor.brief()} is no scalar; with one for each head it is lam[h, 1, 1]")
    difference = named("A", subtract(first, multiply(factor, second)))
    rest = 1 - scalar("differential", "initial", initial)
    return named("O_diff", multiply(rest, rms_norm(attention_pooling(difference, V), gain, eps=eps)))


def lambda_init(depth: Any) -> sympy.Expr:
    """The initial lambda of differential attention, ``0.8 - 0.6 exp(-0.3 depth)``, of a layer counted from 0.

    Source: Ye et al. 2024 (arXiv:2410.05258), section 2.1, which counts layers from 1.

    >>> import symattn as sa
    >>> sa.attention.lambda_init(0)
    1/5
    """
    return sympy.Rational(4, 5) - sympy.Rational(3, 5) * sympy.exp(-sympy.Rational(3, 10) * as_scalar(depth))


def differential_lambda(a: Any, b: Any, c: Any, f: Any, initial: Any = 0.8) -> Tensor:
    """The lambda of differential attention from four vectors, ``exp(a . b) - exp(c . f) + initial``.

    a[d], b[d], c[d], f[d]: lambda_q1, lambda_k1, lambda_q2 and lambda_k2 of the paper, shared by the heads of a layer;
    ``initial`` (0.8) is ``lambda_init(depth)``. Raises ShapeError for vectors of different length.
    Source: Ye et al. 2024 (arXiv:2410.05258), equation 2.

    >>> import symattn as sa
    >>> print(sa.attention.differential_lambda(*(sa.tensor(name, "d") for name in "abcf")).inputs[0])
    exp(a @ b) - exp(c @ f) + 4/5
    """
    w = [exactly("differential_lambda", x, "a vector [d]") for x in (a, b, c, f)]
    same("differential_lambda", w[0], 0, w[1], 0, "their length")
    same("differential_lambda", w[2], 0, w[3], 0, "their length")
    return named("lamda", subtract(exp(w[0] @ w[1]), exp(w[2] @ w[3])) + as_tensor(initial))


def differential_v2(Q1: Any, Q2: Any, K: Any, V: Any, lam: Any, **options: Unpack[Scoring]) -> Tensor:
    """Differential attention, version 2: ``O = O_1 - sigmoid(lam) O_2``, two queries of the same keys and values.

    ``O_i = scaled_dot_product(Q_i, K, V)``. Q1, Q2[.., T, d], K[.., S, d], V[.., S, e], lam[.., T], a number for each
    token (and head), unbounded before the sigmoid; O[.., T, e], without a norm. Options are those of
    ``scaled_dot_product``. Raises ShapeError for shapes that do not fit.
    Source: Microsoft, "Differential Transformer V2", 2026 (huggingface.co/blog/microsoft/diff-attn-v2).

    >>> import symattn as sa
    >>> Q1, Q2, K, V = (sa.tensor(n, s) for n, s in [("Q_1", "T d"), ("Q_2", "T d"), ("K", "S d"), ("V", "S e")])
    >>> print(sa.attention.differential_v2(Q1, Q2, K, V, sa.tensor("l", "T")).inputs[0])
    O_1 - sigmoid(l)[:, None] * O_2
    """
    first, second = (scaled_dot_product(Q, K, V, **options) for Q in (Q1, Q2))
    same("differential_v2", first, -2, second, -2, "the number of queries")
    weight = operand("differential_v2", lam, 1, "lam[.., T]")
    same("differential_v2", weight, -1, first, -2, "the number of queries")
    return named("O_diff", subtract(first, multiply(sigmoid(weight)[..., None], second)))


# --- gates ---


def gated(
    X: Any,
    W_q: Any,
    W_k: Any,
    W_v: Any,
    W_g: Any,
    W_o: Any = None,
    *,
    gate: Literal["element", "head"] = "element",
    heads: Any = None,
    **options: Unpack[Scoring],
) -> Tensor:
    """Self-attention of several heads whose outputs are gated by the tokens: ``O' = sigmoid(X @ W_g) * O``.

    X[.., T, D] and weights as in ``multi_head``; the gate stands before W_o. With ``gate="element"`` (the default) each
    feature has its own, W_g[h, D, e] or fused W_g[D, h*e]; with ``"head"`` each head has one for a token, W_g[D, h].
    Options are those of ``scaled_dot_product``. Raises ShapeError for weights that do not fit.
    Source: Qiu et al. 2025 (arXiv:2505.06708), section 2.

    >>> import symattn as sa
    >>> X, W_g = sa.tensor("X", "T D"), sa.tensor("W_g", "D h")
    >>> W_q, W_k, W_v = (sa.tensor(name, "h D d") for name in ("W_q", "W_k", "W_v"))
    >>> sa.attention.gated(X, W_q, W_k, W_v, W_g, gate="head").shape
    (T, d*h)
    """
    q, k, v = head_projections("gated", (X, X, X), (W_q, W_k, W_v), heads)
    output = scaled_dot_product(q, k, v, **options)
    w = as_tensor(W_g)
    if one_of("gated", "gate", gate, "element", "head") == "head":
        if w.rank != 2:
            raise ShapeError(f"gated: the weights {w.brief()} have {w.rank} axes; with gate='head' they are W_g[D, h]")
        same("gated", w, -1, output, -3, "the number of heads")
        opened = moveaxis(projected("gated", X, w), -1, -2)[..., None]
    elif w.rank == 3:
        same("gated", w, 0, output, -3, "the number of heads")
        same("gated", w, -1, output, -1, "the width of gates and values")
        opened = projected("gated", X, w)
    else:
        opened = _fused("gated", X, w, output.shape[-3])
        same("gated", opened, -1, output, -1, "the width of gates and values")
    return joined("gated", named("O_g", multiply(named("G", sigmoid(opened)), output)), W_o)
