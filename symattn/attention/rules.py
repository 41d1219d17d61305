"""The rules by which linear attention writes and reads a state: one step of each, and what all steps come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import sympy

from ..core.node import Tensor
from ..ops import rows
from ..ops.arithmetic import multiply
from ..ops.contraction import outer
from ..ops.inverse import inv
from ..ops.layout import matrix_transpose
from ..ops.leaves import eye, from_index, ones
from ..ops.logic import where
from ..ops.pointwise import abs as absolute
from ..ops.pointwise import exp, maximum
from ..ops.scans import cumsum, tril
from .decay import decay_matrix, decayed_products

State = Any  # a tensor, or a tuple of several


class Positions(NamedTuple):
    """Queries and keys [.., T, d], values [.., T, e], and what a rule takes besides, of all positions or of one.

    Logarithms of decays and rates are [.., T, 1] or [.., T, d], directions of removal [.., T, d]; the bonus [.., d] is
    that of every position.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    decay: Any = None
    beta: Any = None
    removal: Any = None
    bonus: Any = None

    @property
    def sequences(self) -> dict[str, Tensor]:
        """What differs from position to position."""
        return {name: x for name, x in self._asdict().items() if x is not None and name != "bonus"}

    def product(self, k: Tensor, w: Tensor) -> Tensor:
        """What a key writes."""
        return outer(k, w) if k.rank == w.rank == 1 else k[..., :, None] * w[..., None, :]

    def read(self, x: Any, S: Tensor) -> Tensor:
        """What a query or a key reads of a state."""
        return x @ S if x.rank == 1 and S.rank == 2 else (x[..., None, :] @ S)[..., 0, :]

    def scaled(self, factors: Any, S: Tensor) -> Tensor:
        """A state times one number, or one for each channel of keys."""
        if not factors.rank:
            return multiply(factors, S)
        return factors[..., None, None] * S if factors.rank == S.rank - 2 else factors[..., :, None] * S

    def times(self, factors: Any, x: Any) -> Tensor:
        """A key or a value times one number, or one for each entry."""
        if not factors.rank:
            return multiply(factors, x)
        return factors[..., None] * x if factors.rank < x.rank else factors * x

    def faded(self, S: Tensor) -> Tensor:
        """What is left of a state."""
        return S if self.decay is None else self.scaled(exp(self.decay), S)

    def summed(self, n: Tensor) -> Tensor:
        """What is left of a sum of keys, and this key."""
        return (n if self.decay is None else self.times(exp(self.decay), n)) + self.keys

    def weight(self, n: Tensor) -> Tensor:
        """The sum of the weights of an output."""
        return self.queries @ n if n.rank == 1 else rows.sum(self.queries * n, axis=-1, keepdims=True)


class Row(Positions):
    """One position, of which everything is a row [.., 1, d], as matrices have them."""

    def product(self, k: Tensor, w: Tensor) -> Tensor:
        return matrix_transpose(k) @ w

    def read(self, x: Any, S: Tensor) -> Tensor:
        return x @ S

    def scaled(self, factors: Any, S: Tensor) -> Tensor:
        return matrix_transpose(factors) * S

    def times(self, factors: Any, x: Any) -> Tensor:
        return factors * x

    def summed(self, n: Tensor) -> Tensor:
        return (n if self.decay is None else exp(self.decay)[..., 0, :] * n) + self.keys[..., 0, :]

    def weight(self, n: Tensor) -> Tensor:
        return self.queries @ n[..., None]


class Rule(NamedTuple):
    """One step, of a position and the state before it: the state after it, and what is read; and all steps at once.

    ``whole`` gives the outputs and the last state of all positions and the state before them, which may be None.
    ``takes`` says how many axes, counted from the positions on, what it takes besides may have; none where it is the
    same at all positions.
    """

    takes: Mapping[str, tuple[int, ...]]
    step: Callable[[Positions, State], tuple[State, Tensor]]
    whole: Callable[[Positions, State], tuple[Tensor, State]]
    source: str

    @property
    def adds(self) -> bool:
        """Whether outputs are values with weights, whose sum they may be divided by."""
        return self.step is _add


# --- one step ---


def _add(at: Positions, S: Tensor) -> tuple[Tensor, Tensor]:
    S = at.faded(S) + at.product(at.keys, at.values)
    return S, at.read(at.queries, S)


def _correct(at: Positions, S: Tensor) -> tuple[Tensor, Tensor]:
    """Only what the state does not give back already is written."""
    S = at.faded(S)
    S = S + at.product(at.keys, at.times(at.beta, at.values - at.read(at.keys, S)))
    return S, at.read(at.queries, S)


def _add_after_reading(at: Positions, S: Tensor) -> tuple[Tensor, Tensor]:
    """The state before is read, and what is written with a weight of its own for each channel."""
    written = at.product(at.keys, at.values)
    return at.faded(S) + written, at.read(at.queries, S + at.scaled(at.bonus, written))


def _replace(at: Positions, S: Tensor) -> tuple[Tensor, Tensor]:
    """What one direction finds in the state before is removed, and a key of its own writes the value."""
    removed = at.product(at.times(at.beta, at.removal), at.read(at.removal, S))
    S = at.faded(S) - removed + at.product(at.keys, at.values)
    return S, at.read(at.queries, S)


# --- all steps at once ---


def _sum(run: Positions, S: Tensor | None) -> tuple[Tensor, Tensor]:
    output, last = _products(run, run.queries, run.keys) @ run.values, _written(run, run.keys, run.values)
    return output + _of_start(run, run.queries, S), last + _left(run, S)


def _solve(run: Positions, S: Tensor | None) -> tuple[Tensor, Tensor]:
    """What is written solves a triangular system."""
    overlaps = tril(run.beta * _products(run, run.keys, run.keys), -1)
    given = run.beta * (run.values - _of_start(run, run.keys, S))
    written = inv(eye(run.values.shape[-2]) + overlaps) @ given
    output = _products(run, run.queries, run.keys) @ written
    return output + _of_start(run, run.queries, S), _written(run, run.keys, written) + _left(run, S)


def _sum_before(run: Positions, S: Tensor | None) -> tuple[Tensor, Tensor]:
    own = rows.sum(run.queries * run.bonus[..., None, :] * run.keys, axis=-1, keepdims=True)
    output = _products_before(run, run.queries, run.keys) @ run.values + own * run.values
    last = _written(run, run.keys, run.values) + _left(run, S)
    return output + _of_start(run, run.queries, S, before=True), last


def _solve_before(run: Positions, S: Tensor | None) -> tuple[Tensor, Tensor]:
    """What the directions of removal find solves a triangular system."""
    removal, removed = run.removal, run.beta * run.removal
    found = _products_before(run, removal, run.keys) @ run.values + _of_start(run, removal, S, before=True)
    found = inv(eye(run.values.shape[-2]) + _products_before(run, removal, removed)) @ found
    output = _products(run, run.queries, run.keys) @ run.values - _products(run, run.queries, removed) @ found
    last = _written(run, run.keys, run.values) - _written(run, removed, found) + _left(run, S)
    return output + _of_start(run, run.queries, S), last


def _products(run: Positions, x: Tensor, keys: Tensor) -> Tensor:
    """The products of rows with keys up to them, as far as these are left."""
    if run.decay is None:
        return tril(x @ matrix_transpose(keys))
    if run.decay.shape[-1] == 1:
        return x @ matrix_transpose(keys) * decay_matrix(run.decay[..., 0])
    return decayed_products(x, keys, decay_matrix(matrix_transpose(run.decay)))


def _products_before(run: Positions, x: Tensor, keys: Tensor) -> Tensor:
    """The products of rows with keys before them, as far as these are left before the decay of the row."""
    if run.decay is None:
        return tril(x @ matrix_transpose(keys), -1)
    logs = matrix_transpose(run.decay)
    c = cumsum(logs)
    earlier = from_index((logs.shape[-1],) * 2, lambda i, j: j < i)
    left = exp(where(earlier, (c - logs)[..., :, None] - c[..., None, :], -sympy.oo))
    if run.decay.shape[-1] == 1:
        return x @ matrix_transpose(keys) * left[..., 0, :, :]
    return decayed_products(x, keys, left)


def _of_start(run: Positions, x: Any, S: Tensor | None, before: bool = False) -> Any:
    """What rows read of the state before all positions; ``before`` their own decay, or after it."""
    if S is None:
        return 0
    if run.decay is None:
        return x @ S
    c = cumsum(run.decay, axis=-2)
    return (x * exp(c - run.decay if before else c)) @ S


def _written(run: Positions, keys: Tensor, values: Tensor) -> Tensor:
    """What is left at the end of values written by keys."""
    if run.decay is None:
        return matrix_transpose(keys) @ values
    if run.decay.shape[-1] == 1:
        return matrix_transpose(decay_matrix(run.decay[..., 0])[..., -1, :, None] * keys) @ values
    left = matrix_transpose(decay_matrix(matrix_transpose(run.decay))[..., -1, :])
    return matrix_transpose(keys * left) @ values


def _left(run: Positions, S: Tensor | None) -> Any:
    """What is left at the end of the state before all positions."""
    if S is None or run.decay is None:
        return 0 if S is None else S
    return matrix_transpose(exp(rows.sum(run.decay, axis=-2, keepdims=True))) * S


# --- the table ---

_DECAY = (1, 2)  # one a position, or one for each channel of keys

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "linear": Rule({}, _add, _sum, "Katharopoulos et al. 2020 (arXiv:2006.16236), equations 16 to 20"),
        "gated": Rule({"decay": _DECAY}, _add, _sum, "Yang et al. 2023 (arXiv:2312.06635), section 4"),
        "delta": Rule({"beta": (1,)}, _correct, _solve, "Yang et al. 2024 (arXiv:2406.06484), section 3"),
        "gated_delta": Rule(
            {"decay": _DECAY, "beta": (1,)}, _correct, _solve, "Yang et al. 2024 (arXiv:2412.06464), section 3"
        ),
        "rwkv6": Rule(
            {"decay": _DECAY, "bonus": ()},
            _add_after_reading,
            _sum_before,
            "Peng et al. 2024 (arXiv:2404.05892), section 4",
        ),
        "rwkv7": Rule(
            {"decay": _DECAY, "beta": (1, 2), "removal": (2,)},
            _replace,
            _solve_before,
            "Peng et al. 2025 (arXiv:2503.14456), section 4",
        ),
    }
)


# --- divided by the sum of the weights ---


def divided_by_sums(rule: Rule, least: Any) -> Rule:
    """A rule of which outputs are divided by the sum of their weights, or by ``least`` where that is larger.

    The state is a pair: what it was, and [.., d], what values of 1 would have written.
    """

    def divisor(total: Tensor) -> Tensor:
        return total if least is None else maximum(absolute(total), least)

    def step(at: Positions, state: State) -> tuple[State, Tensor]:
        S, n = state
        S, output = rule.step(at, S)
        n = at.summed(n)
        return (S, n), output / divisor(at.weight(n))

    def whole(run: Positions, state: State) -> tuple[Tensor, State]:
        S, n = (None, None) if state is None else (state[0], state[1][..., None])
        output, S = rule.whole(run, S)
        total, n = rule.whole(run._replace(values=ones(*run.keys.shape[-2:-1], 1)), n)
        return output / divisor(total), (S, n[..., 0])

    return rule._replace(step=step, whole=whole)
