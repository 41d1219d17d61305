"""Delta rules: linear attention whose memory is corrected, not only added to, in closed form."""

from __future__ import annotations

from typing import Any

from ..core.node import Tensor
from ..ops.arithmetic import multiply
from ..ops.inverse import inv
from ..ops.layout import matrix_transpose
from ..ops.leaves import eye, named
from ..ops.scans import tril
from .decay import decay_matrix, decayed_products, per_channel, per_position, positions
from .options import factor


def delta_rule(Q: Any, K: Any, V: Any, beta: Any, *, scale: Any = 1) -> Tensor:
    """The delta rule in closed form, ``O = tril(Q @ K.mT) @ inv(I + L) @ (beta * V)``.

    ``L = tril(beta * (K @ K.mT), -1)``, with beta a column. It is what ``o_t = q_t @ S_t`` with
    ``S_t = S_{t-1} + beta_t outer(k_t, v_t - k_t @ S_{t-1})`` gives. Q[.., T, d], K[.., T, d], V[.., T, e], and
    beta[.., T], the rate of each position, usually in (0, 1); O[.., T, e]. ``I + L`` has ones on its diagonal and is
    always invertible. Keys are usually of norm 1; that is left to the caller. ``scale`` multiplies the output (default
    1, as in the papers; flash-linear-attention and ONNX: 1/sqrt(d)). Raises ShapeError for shapes that do not fit.
    Source: Schlag et al. 2021 (arXiv:2102.11174); Yang et al. 2024 (arXiv:2406.06484), section 3.

    >>> import symattn as sa
    >>> Q, K, V, beta = sa.tensor("Q", "T d"), sa.tensor("K", "T d"), sa.tensor("V", "T e"), sa.tensor("beta", "T")
    >>> for x in sa.attention.delta_rule(Q, K, V, beta).intermediates:
    ...     print(x.name, "=", x.inputs[0])
    A = tril(Q @ K.T)
    L = tril(beta[:, None] * (K @ K.T), k=-1)
    U = inv(eye(T) + L) @ (beta[:, None] * V)
    O = A @ U
    """
    queries, keys, values = positions("delta_rule", Q, K, V)
    rates = per_position("delta_rule", beta, keys, "beta")
    weights = tril(queries @ matrix_transpose(keys))
    return _corrected(weights, keys @ matrix_transpose(keys), rates, values, factor("delta_rule", scale))


def gated_delta_rule(Q: Any, K: Any, V: Any, g: Any, beta: Any, *, scale: Any = 1) -> Tensor:
    """The delta rule with a decay at each position: as ``delta_rule``, both products times the ``decay_matrix`` D of g.

    ``L = tril(beta * (K @ K.mT * D), -1)``, ``O = (Q @ K.mT * D) @ inv(I + L) @ (beta * V)``. It is what
    ``S = exp(g_t) S_{t-1}``, ``S_t = S + beta_t outer(k_t, v_t - k_t @ S)``, ``o_t = q_t @ S_t`` gives. Q[.., T, d],
    K[.., T, d], V[.., T, e]; g[.., T] are the logarithms of the decays, beta[.., T] the rates; O[.., T, e].
    ``scale`` is that of ``delta_rule``. Raises ShapeError for shapes that do not fit.
    Source: Yang et al. 2024 (arXiv:2412.06464), section 3.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "T d"), sa.tensor("V", "T e")
    >>> O = sa.attention.gated_delta_rule(Q, K, V, sa.tensor("g", "T"), sa.tensor("beta", "T"))
    >>> print(O.inputs[0])
    A @ U
    """
    queries, keys, values = positions("gated_delta_rule", Q, K, V)
    D = decay_matrix(per_position("gated_delta_rule", g, keys, "g"))
    rates = per_position("gated_delta_rule", beta, keys, "beta")
    weights, overlaps = queries @ matrix_transpose(keys) * D, keys @ matrix_transpose(keys) * D
    return _corrected(weights, overlaps, rates, values, factor("gated_delta_rule", scale))


def kimi_delta(Q: Any, K: Any, V: Any, g: Any, beta: Any, *, scale: Any = 1) -> Tensor:
    """The delta rule with a decay of each channel (KDA): as ``gated_delta_rule``, with g[.., T, d].

    The products are ``A[i, j] = sum_n Q[i, n] K[j, n] exp(c[i, n] - c[j, n])`` for ``j <= i``, with
    ``c = cumsum(g, axis=-2)``, and the same of K with K. It is what ``S = exp(g_t)[:, None] * S_{t-1}``,
    ``S_t = S + beta_t outer(k_t, v_t - k_t @ S)``, ``o_t = q_t @ S_t`` gives. Q[.., T, d], K[.., T, d], V[.., T, e],
    beta[.., T]; O[.., T, e]. Exponentials are taken of differences, in a tensor [.., d, T, T], and never overflow.
    ``scale`` is that of ``delta_rule``. Raises ShapeError for shapes that do not fit.
    Source: Kimi Team 2025 (arXiv:2510.26692), section 3.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "T d"), sa.tensor("V", "T e")
    >>> O = sa.attention.kimi_delta(Q, K, V, sa.tensor("g", "T d"), sa.tensor("beta", "T"))
    >>> print(O.inputs[0])
    A @ U
    """
    queries, keys, values = positions("kimi_delta", Q, K, V)
    D = decay_matrix(matrix_transpose(per_channel("kimi_delta", g, keys, "g")))
    rates = per_position("kimi_delta", beta, keys, "beta")
    weights, overlaps = decayed_products(queries, keys, D), decayed_products(keys, keys, D)
    return _corrected(weights, overlaps, rates, values, factor("kimi_delta", scale))


def _corrected(weights: Tensor, overlaps: Tensor, rates: Tensor, values: Tensor, scale: Tensor) -> Tensor:
    """What was written, U, each value less what the memory held already; and the weights of it."""
    column = rates[..., None]
    A = named("A", multiply(scale, weights))
    L = named("L", tril(column * overlaps, -1))
    U = named("U", inv(eye(values.shape[-2]) + L) @ (column * values))
    return named("O", A @ U)
