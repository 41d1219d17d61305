"""The ways to go through a recurrence of linear attention: step by step, and chunk by chunk."""

from __future__ import annotations

from typing import Any

from ..core.node import Tensor, rebuild
from ..core.sizes import Shape, as_size, broadcast_shapes, quotient
from ..errors import ShapeError
from ..ops.broadcasting import broadcast_to
from ..ops.layout import concat, merge_axes, moveaxis, split_axis
from ..ops.leaves import is_named, named, zeros
from ..recurrence.loop import scan
from .rules import Positions, Row, Rule, State


def start(run: Positions, state: State, normalised: bool = False) -> State:
    """What is known before all positions, with the axes in front that the steps have; zeros where nothing is."""
    several = [x.shape[:-2] for x in run[1:-1] if x is not None]
    lead = broadcast_shapes(*several)
    if lead is None:
        raise ShapeError(f"recurrence: the axes in front of {run.keys.brief()} and of what goes with it differ")
    d, e = run.keys.shape[-1], run.values.shape[-1]
    if not normalised:
        return _as_wide(run, state, (*lead, d, e))
    S, n = (None, None) if state is None else state
    return _as_wide(run, S, (*lead, d, e)), _as_wide(run, n, (*lead, d))


def _as_wide(run: Positions, state: Tensor | None, shape: Shape) -> Tensor:
    if state is None:
        return zeros(*shape)
    full = broadcast_shapes(state.shape, shape)
    if full is None:
        raise ShapeError(f"recurrence: the axes in front of {state.brief()} and of {run.keys.brief()} differ")
    return state if full == state.shape else broadcast_to(state, full)


def step_by_step(rule: Rule, run: Positions, state: State) -> tuple[Tensor, State]:
    """The outputs and the last state, by a loop over positions."""
    sequences = {name: _first_axis(name, x) for name, x in run.sequences.items()}

    def step(S: State, read: Any) -> tuple[State, Tensor]:
        return rule.step(run._replace(**dict(zip(sequences, read, strict=True))), S)

    last, outputs = scan(step, state, tuple(sequences.values()))
    return moveaxis(outputs, 0, -2), last


def written_out(rule: Rule, run: Positions, state: State) -> tuple[Tensor, State]:
    """The same with every state under a name of its own."""
    outputs, bonus = [], None if run.bonus is None else run.bonus[..., None, :]
    for t in range(int(run.keys.shape[-2])):
        at = Row(**{name: x[..., t : t + 1, :] for name, x in run.sequences.items()}, bonus=bonus)
        after, output = rule.step(at, state)
        state = with_names(after, f"_{t + 1}")
        outputs += rebuild([output], dict(zip(listed(after), listed(state), strict=True)))
    return concat(outputs, axis=-2), state


def _first_axis(name: str, x: Tensor) -> Tensor:
    """A sequence with its positions first; a column of one number a position as these numbers."""
    is_column = name in ("decay", "beta") and x.shape[-1] == 1
    return moveaxis(x[..., 0], -1, 0) if is_column else moveaxis(x, -2, 0)


def with_names(state: State, number: str = "") -> State:
    """A state under a name of its own, unless it has one."""
    several = tuple(
        x if is_named(x) else named(letter + number, x) for letter, x in zip("Sn", listed(state), strict=False)
    )
    return several if isinstance(state, tuple) else several[0]


def listed(state: State) -> tuple[Tensor, ...]:
    """The tensors that a state consists of."""
    return state if isinstance(state, tuple) else (state,)


def in_chunks(rule: Rule, run: Positions, state: State, chunk: Any) -> tuple[Tensor, State]:
    """The outputs and the last state, in parallel within chunks and by a loop over these."""
    size = as_size(chunk)
    chunks = quotient(run.keys.shape[-2], size)
    sequences = run.sequences

    def step(R: State, read: Any) -> tuple[State, Tensor]:
        output, last = rule.whole(run._replace(**dict(zip(sequences, read, strict=True))), R)
        return last, output

    split = tuple(moveaxis(split_axis(x, -2, (chunks, size)), -3, 0) for x in sequences.values())
    last, outputs = scan(step, state, split)
    return merge_axes(moveaxis(outputs, 0, -3), (-3, -2)), last
