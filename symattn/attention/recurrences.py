"""The same attention step by step: states that are written and read, and blocks of keys that are taken one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from ..core.arguments import few, one_of
from ..core.node import Tensor
from ..errors import OperandError
from ..ops import rows
from ..ops.arithmetic import multiply
from ..ops.layout import concat, matrix_transpose
from ..ops.leaves import as_tensor, from_index, named
from ..ops.opaque import stop_gradient
from ..ops.pointwise import exp, maximum, power
from .decay import per_channel, per_position, positions, retention
from .dot_product import scores
from .options import factor, operand, same
from .similarities import per_head

Rule = Literal["linear", "gated", "delta", "gated_delta"]


class Recurrent(NamedTuple):
    """The outputs of all positions, and the state after the last."""

    output: Tensor
    state: Tensor


def recurrence(
    Q: Any,
    K: Any,
    V: Any,
    *,
    rule: Rule = "linear",
    decay: Any = None,
    beta: Any = None,
    state: Any = None,
    scale: Any = 1,
) -> Recurrent:
    """Linear attention position by position: ``S_t = S + outer(k_t, w_t)``, ``o_t = scale * q_t @ S_t``.

    ``rule`` is ``"linear"`` (S is the state before, w_t is v_t), ``"gated"`` (S is exp(g_t) times the state before),
    ``"delta"`` (w_t is beta_t (v_t - k_t @ S)) or ``"gated_delta"`` (both). Q[.., T, d], K[.., T, d], V[.., T, e] with
    a whole number T; ``decay`` is g[.., T], with one axis less than K, or g[.., T, d], one a channel; beta[.., T];
    ``state`` S[.., d, e] is what is known before, by default zeros. The result is the pair ``output`` O[.., T, e] and
    ``state``. ``scale`` is 1 by default, as in the closed forms; ONNX and flash-linear-attention take 1/sqrt(d).
    Axes in front broadcast: grouped queries Q[h, g, T, d] take K[h, 1, T, d]. Raises OperandError for a symbolic T (the
    closed forms take it), for another ``rule`` and for a decay or beta that it misses or does not take, and ShapeError
    for shapes that do not fit.
    Source: ONNX operator LinearAttention, version 27; Yang et al. 2024 (arXiv:2412.06464).

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "2 d"), sa.tensor("K", "2 d"), sa.tensor("V", "2 e")
    >>> for x in sa.attention.recurrence(Q, K, V, rule="delta", beta=sa.tensor("beta", 2)).output.intermediates:
    ...     print(x.name, "=", x.inputs[0])
    w_1 = beta[:1, None] * V[:1, :]
    S_1 = K[:1, :].T @ w_1
    w_2 = beta[1:, None] * (V[1:, :] - K[1:, :] @ S_1)
    S_2 = S_1 + K[1:, :].T @ w_2
    O = concat([Q[:1, :] @ S_1, Q[1:, :] @ S_2], axis=-2)
    """
    queries, keys, values = positions("recurrence", Q, K, V)
    T, by = _whole("recurrence", keys), factor("recurrence", scale)
    g, b = _gates(rule, decay, beta, keys)
    S = None if state is None else _state(state, keys, values)
    outputs = []
    for t in range(T):
        q, k, w = (x[..., t : t + 1, :] for x in (queries, keys, values))
        if S is not None and g is not None:
            S = named(f"S_{t}'", exp(matrix_transpose(g[..., t : t + 1, :])) * S)
        if b is not None:
            w = named(f"w_{t + 1}", b[..., t : t + 1, :] * (w if S is None else w - k @ S))
        written = matrix_transpose(k) @ w
        S = named(f"S_{t + 1}", written if S is None else S + written)
        outputs.append(multiply(by, q @ S))
    assert S is not None
    return Recurrent(named("O", concat(outputs, axis=-2)), S)


def blockwise(Q: Any, keys: Sequence[Any], values: Sequence[Any], *, scale: Any = None) -> Tensor:
    """Softmax attention over blocks of keys, one after the other, with a running maximum m and a running sum l.

    For each block ``Z = Q @ K.mT * scale``, ``m' = maximum(m, rowmax(Z))``, ``E = exp(Z - m')``,
    ``l' = exp(m - m') * l + rowsum(E)``, ``Y' = exp(m - m') * Y + E @ V``; at the end ``O = Y / l``. Q[.., T, d]; the
    blocks are K[.., S_b, d] and V[.., S_b, e], of any sizes; O[.., T, e]. It equals ``scaled_dot_product`` of the
    blocks put together. ``scale`` is that of ``scores``. The maximum only guards against overflow: O does not depend
    on it, and derivatives do not go through it. Raises ShapeError for shapes that do not fit and OperandError for
    no blocks, or numbers of blocks that differ.
    Source: Milakov and Gimelshein 2018 (arXiv:1805.02867), algorithm 3; Dao et al. 2022 (arXiv:2205.14135).

    >>> import symattn as sa
    >>> Q, K_1, V_1 = sa.tensor("Q", "T d"), sa.tensor("K_1", "n d"), sa.tensor("V_1", "n e")
    >>> sa.attention.blockwise(Q, [K_1, sa.tensor("K_2", "m d")], [V_1, sa.tensor("V_2", "m e")]).shape
    (T, e)
    """
    before: tuple[Tensor, Tensor, Tensor] | None = None
    for b, (k, v) in enumerate(_blocks("blockwise", K=keys, V=values), 1):
        z, v = scores(Q, k, scale=scale), operand("blockwise", v, 2, "V[.., S, e]")
        same("blockwise", z, -1, v, -2, "the number of keys and values")
        top = rows.max(stop_gradient(z), axis=-1, keepdims=True)
        m = named(f"m_{b}", top if before is None else maximum(before[0], top))
        weights = named(f"E_{b}", exp(z - m))
        total, output = rows.sum(weights, axis=-1, keepdims=True), weights @ v
        if before is not None:
            kept = named(f"a_{b}", exp(before[0] - m))
            total, output = kept * before[1] + total, kept * before[2] + output
        before = m, named(f"l_{b}", total), named(f"Y_{b}", output)
    assert before is not None
    return named("O", before[2] / before[1])


def chunked_retention(
    queries: Sequence[Any], keys: Sequence[Any], values: Sequence[Any], gamma: Any, *, scale: Any = 1
) -> Tensor:
    """Retention over chunks of positions: in parallel within each, and by a state R from one to the next.

    A chunk of B positions gives ``O = retention(Q, K, V) + gamma**(i + 1) * (Q @ R)`` and the next state
    ``gamma**B * R + K.mT @ (gamma**(B - 1 - j) * V)``. The chunks are Q[.., B, d], K[.., B, d], V[.., B, e], each with
    its own B; O has all their positions. It equals ``retention`` of the chunks put together; ``gamma`` and
    ``scale`` are its own. Raises ShapeError for shapes that do not fit and OperandError for no chunks, or numbers of
    chunks that differ.
    Source: Sun et al. 2023 (arXiv:2307.08621), equation 7.

    >>> import sympy, symattn as sa
    >>> X_1, X_2 = sa.tensor("X_1", "n d"), sa.tensor("X_2", "m d")
    >>> sa.attention.chunked_retention([X_1, X_2], [X_1, X_2], [X_1, X_2], sympy.Rational(9, 10)).shape
    (m + n, d)
    """
    state, outputs = None, []
    for b, chunk in enumerate(_blocks("chunked_retention", Q=queries, K=keys, V=values), 1):
        q, k, v = positions("chunked_retention", *chunk)
        output = retention(q, k, v, gamma, scale=scale)
        decay, B = per_head("chunked_retention", gamma, q @ matrix_transpose(k)), k.shape[-2]
        since_start, to_end = power(decay, _column(B, 1, 1)), power(decay, _column(B, -1, B - 1))
        if state is not None:
            output = output + multiply(factor("chunked_retention", scale), since_start * (q @ state))
        written = matrix_transpose(k) @ (to_end * v)
        state = named(f"R_{b}", written if state is None else power(decay, B) * state + written)
        outputs.append(output)
    return named("O", concat(outputs, axis=-2))


# --- arguments ---


def _whole(what: str, keys: Tensor) -> int:
    """The number of positions, which is not symbolic here."""
    T = keys.shape[-2]
    if not T.is_Integer:
        raise OperandError(
            f"{what}: {keys.brief()} has {T} positions, and steps are written out one by one: make T a number, or "
            f"take a closed form: causal_linear, gated_linear, gla, delta_rule, gated_delta_rule, kimi_delta"
        )
    few(what, int(T), "positions", 10_000)
    return int(T)


def _gates(rule: Any, decay: Any, beta: Any, keys: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The decays [.., T, 1] or [.., T, d] and the rates [.., T, 1] that a rule takes."""
    one_of("recurrence", "rule", rule, "linear", "gated", "delta", "gated_delta")
    for name, given, taken in (("decay", decay, "gated" in rule), ("beta", beta, "delta" in rule)):
        if (given is not None) != taken:
            raise OperandError(f"recurrence: the rule {rule!r} {'needs' if taken else 'takes no'} {name}")
    b = None if beta is None else per_position("recurrence", beta, keys, "beta")[..., None]
    if decay is None:
        return None, b
    by_channel = as_tensor(decay).rank >= keys.rank
    g = (per_channel if by_channel else per_position)("recurrence", decay, keys, "decay")
    return g if by_channel else g[..., None], b


def _state(state: Any, keys: Tensor, values: Tensor) -> Tensor:
    before = operand("recurrence", state, 2, "state[.., d, e]")
    same("recurrence", before, -2, keys, -1, "the width of a key")
    same("recurrence", before, -1, values, -1, "the width of a value")
    return before


def _blocks(what: str, **lists: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """The blocks of several lists, together."""
    for name, blocks in lists.items():
        if not isinstance(blocks, list | tuple) or not blocks:
            raise OperandError(f"{what} takes a list of blocks {name}, with one block or more")
    counts = {name: len(blocks) for name, blocks in lists.items()}
    if len(set(counts.values())) > 1:
        raise OperandError(
            f"{what}: the numbers of blocks differ: " + ", ".join(f"{n} of {x}" for x, n in counts.items())
        )
    return zip(*lists.values(), strict=True)


def _column(n: Any, slope: int, start: Any) -> Tensor:
    """The numbers ``start + slope * i`` as a column."""
    return from_index((n, 1), lambda i, _: start + slope * i)
