"""Attention that forgets: a softmax with decayed scores, and linear attention whose past fades."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import sympy

from ..core.arguments import one_of
from ..core.node import Tensor
from ..errors import ShapeError
from ..ops.arithmetic import multiply
from ..ops.contraction import einsum_op
from ..ops.layout import matrix_transpose
from ..ops.leaves import from_index, named
from ..ops.logic import where
from ..ops.pointwise import exp, power, softplus
from ..ops.scans import cumsum, tril
from .dot_product import attention_pooling, probabilities, scores
from .masks import causal_mask
from .options import Masking, factor, kept_causal, operand, same
from .similarities import per_head


def forgetting(Q: Any, K: Any, V: Any, f: Any, *, scale: Any = None, **masking: Unpack[Masking]) -> Tensor:
    """Causal attention with forget gates, ``P = softmax(Z + c_i - c_j)``, ``c = cumsum(log(sigmoid(f)))``.

    Q[.., T, d], K[.., T, d], V[.., T, e], and f[.., T], one gate a position, before its sigmoid; O[.., T, e]. ``scale``
    is that of ``scores``. Keys after the query are masked, and those that ``Masking`` masks besides. The logarithm
    is ``-softplus(-f)``, which is finite for every f. Raises ShapeError for shapes that do not fit and OperandError for
    a mask that is not binary.
    Source: Lin et al. 2025 (arXiv:2503.02130), section 3.

    >>> import symattn as sa
    >>> Q, K, V, f = sa.tensor("Q", "T d"), sa.tensor("K", "T d"), sa.tensor("V", "T e"), sa.tensor("f", "T")
    >>> for x in sa.attention.forgetting(Q, K, V, f).intermediates[1:4]:
    ...     print(x.name, "=", x.inputs[0])
    c = cumsum(-softplus(-f))
    Z_f = Z + (c[:, None] - c[None, :])
    M = from_index((T, T), lambda i, j: j <= i)
    """
    queries, keys, values = positions("forgetting", Q, K, V)
    gates = per_position("forgetting", f, keys, "f")
    c = named("c", cumsum(-softplus(-gates)))
    z = named("Z_f", scores(queries, keys, scale=scale) + (c[..., :, None] - c[..., None, :]))
    keep = kept_causal("forgetting", z, named("M", causal_mask(keys.shape[-2])), masking)
    return attention_pooling(probabilities(z, mask=keep, empty=masking.get("empty", "zero")), values)


def retention(Q: Any, K: Any, V: Any, gamma: Any, *, scale: Any = 1) -> Tensor:
    """Linear attention with a fixed decay, ``O = (Q @ K.mT * D) @ V``, ``D[i, j] = gamma**(i - j) if j <= i else 0``.

    Q[.., T, d], K[.., T, d], V[.., T, e]; O[.., T, e]. ``gamma``, in (0, 1], is a scalar or gamma[h], one a head, for
    axes in front of T. ``scale`` multiplies the products (default 1, as in the paper; the authors' code and
    flash-linear-attention: 1/sqrt(d)). Lightning attention is the same. Rotations, group norm and gate are not part of
    it. Raises ShapeError for shapes that do not fit.
    Source: Sun et al. 2023 (arXiv:2307.08621), equation 5; Qin et al. 2024 (arXiv:2401.04658).

    >>> import sympy, symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "T d"), sa.tensor("V", "T e")
    >>> O = sa.attention.retention(Q, K, V, sympy.Symbol("gamma", positive=True))
    >>> for x in O.intermediates:
    ...     print(x.name, "=", x.inputs[0])
    D = tril(gamma**from_index((T, T), lambda i, j: Abs(i - j)))
    A = Q @ K.T * D
    O = A @ V
    """
    queries, keys, values = positions("retention", Q, K, V)
    products = queries @ matrix_transpose(keys)
    decay = per_head("retention", gamma, products)
    # above the diagonal too the exponent is not negative: what is left out must not overflow before
    ages = from_index((keys.shape[-2],) * 2, lambda i, j: sympy.Abs(i - j))
    D = named("D", tril(power(decay, ages)))
    return attention_pooling(named("A", _scaled("retention", scale, products * D)), values)


def gated_linear(Q: Any, K: Any, V: Any, g: Any, *, scale: Any = 1) -> Tensor:
    """Linear attention with a decay at each position, ``O = (Q @ K.mT * D) @ V`` with D the ``decay_matrix`` of g.

    Q[.., T, d], K[.., T, d], V[.., T, e], and g[.., T], the logarithms of the decays; O[.., T, e]. It is what
    ``S_t = exp(g_t) S_{t-1} + outer(k_t, v_t)``, ``o_t = q_t @ S_t`` gives. ``scale`` multiplies the products (default
    1; flash-linear-attention and ONNX: 1/sqrt(d)). Raises ShapeError for shapes that do not fit.
    Source: Dao and Gu 2024 (arXiv:2405.21060).

    >>> import symattn as sa
    >>> Q, K, V, g = sa.tensor("Q", "T d"), sa.tensor("K", "T d"), sa.tensor("V", "T e"), sa.tensor("g", "T")
    >>> for x in sa.attention.gated_linear(Q, K, V, g).intermediates[-2:]:
    ...     print(x.name, "=", x.inputs[0])
    A = Q @ K.T * D
    O = A @ V
    """
    queries, keys, values = positions("gated_linear", Q, K, V)
    D = decay_matrix(per_position("gated_linear", g, keys, "g"))
    return attention_pooling(named("A", _scaled("gated_linear", scale, queries @ matrix_transpose(keys) * D)), values)


def gla(Q: Any, K: Any, V: Any, g: Any, *, scale: Any = 1, form: Literal["safe", "factored"] = "safe") -> Tensor:
    """Linear attention with a decay of each channel, ``A[i, j] = sum_n Q[i, n] K[j, n] exp(c[i, n] - c[j, n])``.

    ``c = cumsum(g, axis=-2)`` and ``j <= i``; ``O = A @ V``. Q[.., T, d], K[.., T, d], V[.., T, e], and
    g[.., T, d], the logarithms of the decays; O[.., T, e]. ``form="safe"`` (the default) takes the exponential of
    differences, none of them positive, in a tensor [.., d, T, T]. ``form="factored"`` is
    ``tril((Q * exp(c)) @ (K * exp(-c)).mT)``: smaller, but exp(-c) overflows where the decays of a sequence come to
    less than about 1e-308. ``scale`` multiplies the products (default 1; flash-linear-attention and ONNX: 1/sqrt(d)).
    Raises ShapeError for shapes that do not fit and OperandError for another ``form``.
    Source: Yang et al. 2023 (arXiv:2312.06635), section 4.

    >>> import symattn as sa
    >>> Q, K, V, g = sa.tensor("Q", "T d"), sa.tensor("K", "T d"), sa.tensor("V", "T e"), sa.tensor("g", "T d")
    >>> print(sa.attention.gla(Q, K, V, g, form="factored").intermediates[1].inputs[0])
    tril(Q * exp(c) @ (K * exp(-c)).T)
    """
    queries, keys, values = positions("gla", Q, K, V)
    gates = per_channel("gla", g, keys, "g")
    if one_of("gla", "form", form, "safe", "factored") == "safe":
        weights = decayed_products(queries, keys, decay_matrix(matrix_transpose(gates)))
    else:
        c = named("c", cumsum(gates, axis=-2))
        weights = tril((queries * exp(c)) @ matrix_transpose(keys * exp(-c)))
    return attention_pooling(named("A", _scaled("gla", scale, weights)), values)


def decay_matrix(g: Any) -> Tensor:
    """What is left at i of what came in at j, ``D[i, j] = exp(g[j+1] + .. + g[i]) if j <= i else 0``.

    g[.., T], the logarithms of the decays; D[.., T, T] = ``exp(c_i - c_j)`` with ``c = cumsum(g)``. Above the diagonal
    the exponential is taken of -oo, so that decays as small as you like give zeros and never infinity.
    Raises ShapeError for a g without axes.
    Source: Dao and Gu 2024 (arXiv:2405.21060).

    >>> import symattn as sa
    >>> print(sa.attention.decay_matrix(sa.tensor("g", "T")).inputs[0])
    exp(where(from_index((T, T), lambda i, j: j <= i), c[:, None] - c[None, :], -oo))
    """
    gates = operand("decay_matrix", g, 1, "g[.., T]")
    c = named("c", cumsum(gates))
    return named("D", exp(where(causal_mask(gates.shape[-1]), c[..., :, None] - c[..., None, :], -sympy.oo)))


# --- what they share with the delta rules and the recurrences ---


def positions(what: str, Q: Any, K: Any, V: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of the same positions, with their sizes checked."""
    queries, keys = operand(what, Q, 2, "Q[.., T, d]"), operand(what, K, 2, "K[.., T, d]")
    values = operand(what, V, 2, "V[.., T, e]")
    same(what, queries, -1, keys, -1, "their width")
    same(what, queries, -2, keys, -2, "the number of positions")
    same(what, keys, -2, values, -2, "the number of positions")
    return queries, keys, values


def per_position(what: str, x: Any, keys: Tensor, name: str) -> Tensor:
    """One number a position: as many axes as the keys without their last, or fewer, and as many positions."""
    return _along_keys(what, x, keys, f"{name}[.., T]", 1)


def per_channel(what: str, x: Any, keys: Tensor, name: str) -> Tensor:
    """One number a position and channel of the keys."""
    return _along_keys(what, x, keys, f"{name}[.., T, d]", 2)


def _along_keys(what: str, x: Any, keys: Tensor, shape: str, axes: int) -> Tensor:
    """Numbers along the positions of the keys, or (2 axes) along their channels too."""
    made = operand(what, x, axes, shape)
    if made.rank > keys.rank - 2 + axes:
        unit = "a position" if axes == 1 else "an entry"
        raise ShapeError(
            f"{what}: {made.brief()} has {made.rank} axes where {shape} is meant, one number {unit} of {keys.brief()}"
        )
    same(what, made, -axes, keys, -2, "the number of positions")
    if axes == 2:
        same(what, made, -1, keys, -1, "their width")
    return made


def decayed_products(rows: Tensor, keys: Tensor, D: Tensor) -> Tensor:
    """The products of rows i and keys j, each channel decayed from j to i: D[.., d, T, T]."""
    return einsum_op(rows, keys, D, spec=(("in", "jn", "nij"), "ij"))


def _scaled(what: str, scale: Any, x: Tensor) -> Tensor:
    return multiply(factor(what, scale), x)
