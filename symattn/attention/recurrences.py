"""Linear attention step by step, in parallel and in chunks: a state that is written and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..core.arguments import few, one_of
from ..core.node import Tensor
from ..errors import OperandError
from ..ops.arithmetic import multiply
from ..ops.layout import concat, matrix_transpose
from ..ops.leaves import as_tensor, from_index, named
from ..ops.pointwise import power
from .decay import per_channel, per_position, positions, retention
from .linear_state import in_chunks, start, step_by_step, with_names, written_out
from .options import blocks, factor, operand, same
from .rules import RULES, Positions, Rule, divided_by_sums
from .similarities import per_head

Form = Literal["recurrent", "parallel", "chunked"]
Normaliser = Literal["sum", "at_least_one"]


class Recurrent(NamedTuple):
    """The outputs of all positions, and the state after the last; with a normaliser the state is a pair."""

    output: Tensor
    state: Any


def recurrence(
    Q: Any,
    K: Any,
    V: Any,
    *,
    rule: str = "linear",
    decay: Any = None,
    beta: Any = None,
    removal: Any = None,
    bonus: Any = None,
    normaliser: Normaliser | None = None,
    state: Any = None,
    scale: Any = 1,
    form: Form = "recurrent",
    chunk: Any = None,
) -> Recurrent:
    """Linear attention position by position, by a rule that writes a state S[.., d, e] and reads it.

    Q[.., T, d], K[.., T, d], V[.., T, e] give ``output`` O[.., T, e] and the last ``state``. The rules, with decays
    a_t = exp(g_t) of ``decay`` g, one a position, [.., T], or one a channel, [.., T, d]:

    ``"linear"``: ``S = S + outer(k, v)``, ``o = q @ S``;
    ``"gated"``: ``S = a * S + outer(k, v)``, ``o = q @ S``;
    ``"delta"``: ``S = S + outer(k, beta * (v - k @ S))``, ``o = q @ S``, with rates beta[.., T];
    ``"gated_delta"``: the same with ``a * S`` for the S before;
    ``"rwkv6"``: ``o = q @ (S + u * outer(k, v))``, and then ``"gated"``, with a ``bonus`` u[.., d];
    ``"rwkv7"``: ``S = a * S - outer(beta * z, z @ S) + outer(k, v)``, ``o = q @ S``, with a direction of ``removal``
    z[.., T, d] and beta[.., T] or [.., T, d].

    ``normaliser="sum"`` divides each output by the sum of its weights, and ``"at_least_one"`` by the absolute value
    of that or by 1, whichever is larger; for the rules that add. The state is then a pair with n[.., d], what values
    of 1 would have written. ``state`` is what is known before, by default zeros. ``scale`` multiplies the queries: 1 by
    default, as in the closed forms; ONNX and flash-linear-attention take 1/sqrt(d). Axes in front broadcast: grouped
    queries Q[h, g, T, d] take K[h, 1, T, d].

    ``form`` is ``"recurrent"`` (the default; a ``sa.scan`` for a symbolic T, and steps by name for a whole number),
    ``"parallel"`` (all positions at once, of both output and state), or ``"chunked"``: in parallel within each
    ``chunk`` of positions, of which T is a multiple, and by the state from one to the next. All three are equal, by
    induction on T with the parallel form as invariant.
    Raises OperandError for another ``rule``, ``form`` or ``normaliser`` and for what the rule misses or does not take,
    and ShapeError for shapes that do not fit.
    Source: ONNX operator LinearAttention, version 27; each rule of ``symattn.attention.rules.RULES`` has its own; in
    chunks Dao and Gu 2024 (arXiv:2405.21060), section 6; normalisers Beck et al. 2024 (arXiv:2405.04517), section 2.3.

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
    by = factor("recurrence", scale)
    if normaliser is not None:  # which divides what is scaled
        by, queries = as_tensor(1), multiply(by, queries)
    name = one_of("recurrence", "rule", rule, *RULES)
    given = {"decay": decay, "beta": beta, "removal": removal, "bonus": bonus}
    run = Positions(queries, keys, values, **_gates(name, given, keys))
    steps = _normalised(name, normaliser)
    S = None if state is None else _state(state, run, normaliser)
    one_of("recurrence", "form", form, "recurrent", "parallel", "chunked")
    if (chunk is not None) != (form == "chunked"):
        raise OperandError(f"recurrence: the form {form!r} {'needs' if form == 'chunked' else 'takes no'} chunk")
    if form == "parallel":
        output, last = steps.whole(run, S)
    elif form == "chunked":
        output, last = in_chunks(steps, run, start(run, S, normaliser is not None), chunk)
    elif not keys.shape[-2].is_Integer:
        output, last = step_by_step(steps, run, start(run, S, normaliser is not None))
    else:
        few("recurrence", int(keys.shape[-2]), "positions", 10_000)
        output, last = written_out(steps, run, start(run, S, normaliser is not None))
    return Recurrent(named("O", multiply(by, output)), with_names(last))


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


def _gates(rule: str, given: Mapping[str, Any], keys: Tensor) -> dict[str, Tensor]:
    """What a rule takes besides queries, keys and values: one number a position as a column."""
    found, takes = {}, RULES[rule].takes
    for name, x in given.items():
        if (x is not None) != (name in takes):
            raise OperandError(f"recurrence: the rule {rule!r} {'needs' if name in takes else 'takes no'} {name}")
        if x is None:
            continue
        if not takes[name]:
            found[name] = operand("recurrence", x, 1, f"{name}[.., d]")
            same("recurrence", found[name], -1, keys, -1, "their width")
        elif 2 in takes[name] and (1 not in takes[name] or as_tensor(x).rank >= keys.rank):
            found[name] = per_channel("recurrence", x, keys, name)
        else:
            found[name] = per_position("recurrence", x, keys, name)[..., None]
    return found


def _normalised(rule: str, normaliser: Any) -> Rule:
    if normaliser is None:
        return RULES[rule]
    one_of("recurrence", "normaliser", normaliser, "sum", "at_least_one")
    if not RULES[rule].adds:
        raise OperandError(f"recurrence: the rule {rule!r} has no sum of weights, and takes no normaliser")
    return divided_by_sums(RULES[rule], None if normaliser == "sum" else 1)


def _state(state: Any, run: Positions, normaliser: Any) -> Any:
    if normaliser is None:
        return _matrix(state, run)
    if not isinstance(state, (tuple, list)) or len(state) != 2:
        raise OperandError("recurrence: with a normaliser, state is a pair, S[.., d, e] and n[.., d]")
    n = operand("recurrence", state[1], 1, "n[.., d]")
    same("recurrence", n, -1, run.keys, -1, "the width of a key")
    return _matrix(state[0], run), n


def _matrix(state: Any, run: Positions) -> Tensor:
    before = operand("recurrence", state, 2, "state[.., d, e]")
    same("recurrence", before, -2, run.keys, -1, "the width of a key")
    same("recurrence", before, -1, run.values, -1, "the width of a value")
    return before


def _column(n: Any, slope: int, start: Any) -> Tensor:
    """The numbers ``start + slope * i`` as a column."""
    return from_index((n, 1), lambda i, _: start + slope * i)
