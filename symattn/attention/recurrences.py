"""Linear attention step by step, in parallel and in chunks: a state that is written and read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from ..core.arguments import few, one_of
from ..core.node import Tensor
from ..errors import OperandError
from ..ops.arithmetic import multiply
from ..ops.layout import concat, matrix_transpose
from ..ops.leaves import as_tensor, from_index, named
from ..ops.pointwise import exp, power
from .decay import per_channel, per_position, positions, retention
from .linear_state import Positions, in_chunks, in_parallel, step_by_step
from .options import blocks, factor, operand, same
from .similarities import per_head

Rule = Literal["linear", "gated", "delta", "gated_delta"]
Form = Literal["recurrent", "parallel", "chunked"]


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
    form: Form = "recurrent",
    chunk: Any = None,
) -> Recurrent:
    """Linear attention position by position: ``S_t = S + outer(k_t, w_t)``, ``o_t = scale * q_t @ S_t``.

    ``rule`` is ``"linear"`` (S is the state before, w_t is v_t), ``"gated"`` (S is exp(g_t) times the state before),
    ``"delta"`` (w_t is beta_t (v_t - k_t @ S)) or ``"gated_delta"`` (both). Q[.., T, d], K[.., T, d], V[.., T, e];
    ``decay`` is g[.., T], with one axis less than K, or g[.., T, d], one a channel; beta[.., T];
    ``state`` S[.., d, e] is what is known before, by default zeros. The result is the pair ``output`` O[.., T, e] and
    ``state``. ``scale`` is 1 by default, as in the closed forms; ONNX and flash-linear-attention take 1/sqrt(d).
    Axes in front broadcast: grouped queries Q[h, g, T, d] take K[h, 1, T, d].

    ``form`` is ``"recurrent"`` (the default; a ``sa.scan`` for a symbolic T, and steps by name for a whole number),
    ``"parallel"`` (all positions at once, of both output and state), or ``"chunked"``: in parallel within each
    ``chunk`` of positions, of which T is a multiple, and by the state from one to the next. All three are equal, by
    induction on T with the parallel form as invariant. Mamba-2 is ``"gated"`` with ``K = dt * B`` and ``g = dt * a``,
    HGRN2 with ``K = 1 - exp(g)``.
    Raises OperandError for another ``rule`` or ``form`` and for a decay, beta or chunk that it misses or does not take,
    and ShapeError for shapes that do not fit.
    Source: ONNX operator LinearAttention, version 27; Yang et al. 2024 (arXiv:2412.06464); in chunks Dao and Gu 2024
    (arXiv:2405.21060), section 6, and Yang et al. 2024 (arXiv:2406.06484), section 3.

    >>> import symattn as sa
    >>> Q, K, V, beta = sa.tensor("Q", "T d"), sa.tensor("K", "T d"), sa.tensor("V", "T e"), sa.tensor("beta", "T")
    >>> step_by_step, parallel = (
    ...     sa.attention.recurrence(Q, K, V, rule="delta", beta=beta, form=form) for form in ("recurrent", "parallel")
    ... )
    >>> by = sa.induction(final=parallel.state, outputs=parallel.output)
    >>> sa.prove(step_by_step.output, parallel.output, by=by).status
    'proved'
    """
    queries, keys, values = positions("recurrence", Q, K, V)
    by, g = factor("recurrence", scale), _gates(rule, decay, beta, keys)
    S = None if state is None else _state(state, keys, values)
    one_of("recurrence", "form", form, "recurrent", "parallel", "chunked")
    if (chunk is not None) != (form == "chunked"):
        raise OperandError(f"recurrence: the form {form!r} {'needs' if form == 'chunked' else 'takes no'} chunk")
    run = Positions(queries, keys, values, *g)
    if form == "parallel":
        output, last = in_parallel(run, S)
    elif form == "chunked":
        output, last = in_chunks(run, S, chunk)
    elif keys.shape[-2].is_Integer:
        return _written_out(run, S, by)
    else:
        output, last = step_by_step(run, S)
    return Recurrent(named("O", multiply(by, output)), named("S", last))


def _written_out(run: Positions, S: Tensor | None, by: Any) -> Recurrent:
    """Each step under a name of its own."""
    few("recurrence", T := int(run.keys.shape[-2]), "positions", 10_000)
    outputs = []
    for t in range(T):
        q, k, w = (x[..., t : t + 1, :] for x in run[:3])
        g, b = (None if x is None else x[..., t : t + 1, :] for x in run[3:])
        if S is not None and g is not None:
            S = named(f"S_{t}'", exp(matrix_transpose(g)) * S)
        if b is not None:
            w = named(f"w_{t + 1}", b * (w if S is None else w - k @ S))
        written = matrix_transpose(k) @ w
        S = named(f"S_{t + 1}", written if S is None else S + written)
        outputs.append(multiply(by, q @ S))
    assert S is not None
    return Recurrent(named("O", concat(outputs, axis=-2)), S)


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
    for b, chunk in enumerate(blocks("chunked_retention", Q=queries, K=keys, V=values), 1):
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


def _column(n: Any, slope: int, start: Any) -> Tensor:
    """The numbers ``start + slope * i`` as a column."""
    return from_index((n, 1), lambda i, _: start + slope * i)
