"""Linear attention with a state, as a recurrence, in parallel, and in chunks of positions."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.node import Tensor
from ..core.sizes import Shape, as_size, broadcast_shapes, quotient
from ..errors import ShapeError
from ..ops import rows
from ..ops.arithmetic import multiply
from ..ops.broadcasting import broadcast_to
from ..ops.contraction import outer
from ..ops.inverse import inv
from ..ops.layout import matrix_transpose, merge_axes, moveaxis, split_axis
from ..ops.leaves import eye, zeros
from ..ops.pointwise import exp
from ..ops.scans import cumsum, tril
from ..recurrence.loop import scan
from .decay import decay_matrix, decayed_products


class Positions(NamedTuple):
    """Queries and keys [.., T, d], values [.., T, e], logarithms of decays [.., T, 1] or [.., T, d], rates [.., T, 1].

    Without decays nothing fades, and without rates the values are written as they are.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    decays: Tensor | None
    rates: Tensor | None

    @property
    def lead(self) -> Shape:
        """The axes in front of a state."""
        several = [x.shape[:-2] for x in self[1:] if x is not None]
        lead = broadcast_shapes(*several)
        if lead is None:
            raise ShapeError(f"recurrence: the axes in front of {self.keys.brief()} and of what goes with it differ")
        return lead


# --- step by step ---


def step_by_step(run: Positions, state: Tensor | None) -> tuple[Tensor, Tensor]:
    """The outputs and the last state, by a loop over positions."""
    start, names = _start(run, state), [name for name, x in zip(Positions._fields, run, strict=True) if x is not None]

    def step(S: Tensor, read: Any) -> tuple[Tensor, Tensor]:
        at = dict(zip(names, read, strict=True))
        k, w = at["keys"], at["values"]
        if (g := at.get("decays")) is not None:
            S = _scaled(exp(g), S)
        if (b := at.get("rates")) is not None:
            w = _along(b, w - _read(k, S))
        S = S + _product(k, w)
        return S, _read(at["queries"], S)

    last, outputs = scan(step, start, tuple(moveaxis(_sequence(x), _axis(x), 0) for x in run if x is not None))
    return moveaxis(outputs, 0, -2), last


def step_by_step_normalised(run: Positions) -> tuple[Tensor, Tensor]:
    """The outputs, divided by what the query reads of the sum of the keys, and the last state."""
    start = _start(run, None)

    def step(state: Any, read: Any) -> tuple[Any, Tensor]:
        (S, z), (q, k, v) = state, read
        S = S + _product(k, v)
        z = z + k
        total = q @ z if q.rank == 1 else rows.sum(q * z, axis=-1)[..., None]
        return (S, z), _read(q, S) / total

    sums = zeros(*run.keys.shape[:-2], run.keys.shape[-1])
    (last, _), outputs = scan(step, (start, sums), tuple(moveaxis(x, -2, 0) for x in run[:3] if x is not None))
    return moveaxis(outputs, 0, -2), last


def _start(run: Positions, state: Tensor | None) -> Tensor:
    shape = (*run.lead, run.keys.shape[-1], run.values.shape[-1])
    if state is None:
        return zeros(*shape)
    full = broadcast_shapes(state.shape, shape)
    if full is None:
        raise ShapeError(f"recurrence: the axes in front of {state.brief()} and of {run.keys.brief()} differ")
    return state if full == state.shape else broadcast_to(state, full)


def _sequence(x: Tensor) -> Tensor:
    """A column of numbers, one a position, as these numbers."""
    return x[..., 0] if x.shape[-1] == 1 else x


def _axis(x: Tensor) -> int:
    return -1 if x.shape[-1] == 1 else -2


def _scaled(factors: Tensor, S: Tensor) -> Tensor:
    """A state times one number, or one for each channel of keys."""
    if not factors.rank:
        return multiply(factors, S)
    return factors[..., None, None] * S if factors.rank == S.rank - 2 else factors[..., :, None] * S


def _along(factors: Tensor, w: Tensor) -> Tensor:
    return multiply(factors, w) if not factors.rank else factors[..., None] * w


def _product(k: Tensor, w: Tensor) -> Tensor:
    return outer(k, w) if k.rank == w.rank == 1 else k[..., :, None] * w[..., None, :]


def _read(x: Tensor, S: Tensor) -> Tensor:
    """What a query or a key reads of a state."""
    return x @ S if x.rank == 1 and S.rank == 2 else (x[..., None, :] @ S)[..., 0, :]


# --- all at once ---


def in_parallel(run: Positions, state: Tensor | None) -> tuple[Tensor, Tensor]:
    """The outputs and the last state, of all positions at once and of the state before them."""
    queries, keys, values, decays, rates = run
    if decays is None:
        weights, overlaps = tril(queries @ matrix_transpose(keys)), keys @ matrix_transpose(keys)
        asked, met, left, fade = queries, keys, keys, None
    else:
        since = exp(cumsum(decays, axis=-2))
        asked, met = queries * since, keys * since
        fade = matrix_transpose(exp(rows.sum(decays, axis=-2, keepdims=True)))
        if decays.shape[-1] == 1:
            D = decay_matrix(decays[..., 0])
            weights, overlaps = queries @ matrix_transpose(keys) * D, keys @ matrix_transpose(keys) * D
            left = D[..., -1, :, None] * keys
        else:
            D = decay_matrix(matrix_transpose(decays))
            weights, overlaps = decayed_products(queries, keys, D), decayed_products(keys, keys, D)
            left = keys * matrix_transpose(D[..., -1, :])
    written = values
    if rates is not None:
        found = values if state is None else values - met @ state
        written = inv(eye(values.shape[-2]) + tril(rates * overlaps, -1)) @ (rates * found)
    output, last = weights @ written, matrix_transpose(left) @ written
    if state is None:
        return output, last
    return output + asked @ state, (state if fade is None else fade * state) + last


# --- chunk by chunk ---


def in_chunks(run: Positions, state: Tensor | None, chunk: Any) -> tuple[Tensor, Tensor]:
    """The outputs and the last state, in parallel within chunks and by a loop over these."""
    size, start = as_size(chunk), _start(run, state)
    chunks = quotient(run.keys.shape[-2], size)
    given = [k for k, x in enumerate(run) if x is not None]

    def step(R: Tensor, read: Any) -> tuple[Tensor, Tensor]:
        at = dict(zip(given, read, strict=True))
        output, last = in_parallel(Positions(*(at.get(k) for k in range(len(run)))), R)  # type: ignore[arg-type]
        return last, output

    sequences = tuple(moveaxis(split_axis(x, -2, (chunks, size)), -3, 0) for x in run if x is not None)
    last, outputs = scan(step, start, sequences)
    return merge_axes(moveaxis(outputs, 0, -3), (-3, -2)), last
