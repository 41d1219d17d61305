"""Averages of all positions so far, in one pass: means, variances, and sums of exponentials that do not overflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import sympy

from ..core.arguments import one_of
from ..core.node import Tensor
from ..core.sizes import Shape
from ..errors import OperandError
from ..ops import rows
from ..ops.arithmetic import multiply
from ..ops.layout import moveaxis
from ..ops.leaves import constant, from_index, named, zeros
from ..ops.logic import where
from ..ops.pointwise import exp, log, maximum, power
from ..ops.scans import cumsum
from ..recurrence.loop import scan
from .linear_state import listed
from .masks import causal_mask
from .options import operand, same, scalar
from .recurrences import Recurrent

State = tuple[Tensor, ...]


class Elements(NamedTuple):
    """Values [.., T, e], and what a rule takes besides, of all positions or of one."""

    values: Tensor
    scores: Any = None  # [.., T]
    decay: Any = None


class Average(NamedTuple):
    """What a pass begins with, one step of it, and the outputs and last states of all steps; where it stands."""

    takes: tuple[str, ...]
    start: Callable[[Shape], State]
    step: Callable[[Elements, State], tuple[State, Any]]
    whole: Callable[[Elements], tuple[Any, State]]
    source: str


def running(
    X: Any,
    *,
    rule: str = "mean",
    scores: Any = None,
    decay: Any = None,
    form: Literal["recurrent", "parallel"] = "recurrent",
) -> Recurrent:
    """An average of all positions up to each, in one pass that keeps a state.

    X[.., T, e]; ``output`` is Y[.., T, e]. The rules: ``"mean"``; ``"moments"``, the pair of mean and variance, by the
    deviations from the mean so far; ``"exponential"``, ``y = a * y + (1 - a) * x`` from zeros, with a scalar ``decay``
    a; ``"logsumexp"``; ``"softmax"``, the mean of X with weights softmax(z) of ``scores`` z[.., T]. The last two keep
    the largest exponent so far, so that nothing overflows. ``form`` is ``"recurrent"``, a ``sa.scan``, or
    ``"parallel"``, all positions at once; ``state`` is a tuple. Both forms are equal, by induction on T.
    Raises OperandError for another ``rule`` or ``form`` and for what the rule misses or does not take, and ShapeError
    for shapes that do not fit.
    Source: Welford 1962; Milakov and Gimelshein 2018 (arXiv:1805.02867), algorithm 3.

    >>> import symattn as sa
    >>> X = sa.tensor("X", "T d")
    >>> one, whole = (sa.attention.running(X, rule="mean", form=form) for form in ("recurrent", "parallel"))
    >>> sa.prove(one.output, whole.output, by=sa.induction(final=whole.state, outputs=whole.output)).status
    'proved'
    """
    values = operand("running", X, 2, "X[.., T, e]")
    average = AVERAGES[one_of("running", "rule", rule, *AVERAGES)]
    run = Elements(values, **_given(rule, average, values, {"scores": scores, "decay": decay}))
    if one_of("running", "form", form, "recurrent", "parallel") == "parallel":
        output, state = average.whole(run)
        return Recurrent(_named(output), state)
    sequences = [values] if run.scores is None else [values, run.scores[..., None]]

    def step(state: Any, read: Any) -> tuple[Any, Any]:
        return average.step(run._replace(**dict(zip(("values", "scores"), read, strict=False))), state)

    state, outputs = scan(
        step, average.start((*values.shape[:-2], values.shape[-1])), tuple(moveaxis(x, -2, 0) for x in sequences)
    )
    several = tuple(moveaxis(y, 0, -2) for y in listed(outputs))
    return Recurrent(_named(several if isinstance(outputs, tuple) else several[0]), state)


def _given(rule: str, average: Average, values: Tensor, given: Mapping[str, Any]) -> dict[str, Tensor]:
    for name, x in given.items():
        if (x is not None) != (name in average.takes):
            raise OperandError(f"running: the rule {rule!r} {'needs' if name in average.takes else 'takes no'} {name}")
    found = {}
    if "decay" in average.takes:
        found["decay"] = scalar("running", "decay", given["decay"])
    if "scores" in average.takes:
        found["scores"] = operand("running", given["scores"], 1, "scores[.., T]")
        same("running", found["scores"], -1, values, -2, "the number of positions")
    return found


def _named(output: Any) -> Any:
    return tuple(map(named, ("mean", "variance"), output)) if isinstance(output, tuple) else named("Y", output)


# --- means ---


def _mean_step(at: Elements, state: State) -> tuple[State, Tensor]:
    count, mean = state
    mean = mean + (at.values - mean) / (count + 1)
    return (count + 1, mean), mean


def _means(run: Elements) -> tuple[Tensor, State]:
    means = cumsum(run.values, axis=-2) / _positions(run)
    return means, (_count(run), rows.mean(run.values, axis=-2))


def _moments_step(at: Elements, state: State) -> tuple[State, Any]:
    """Deviations from the means before and after, of which a product is what the sum of squares grows by."""
    count, mean, squares = state
    before = at.values - mean
    mean = mean + before / (count + 1)
    squares = squares + before * (at.values - mean)
    return (count + 1, mean, squares), (mean, squares / (count + 1))


def _moments(run: Elements) -> tuple[Any, State]:
    means, last = _means(run)
    gaps = run.values[..., None, :, :] - means[..., :, None, :]
    squares = rows.sum(_so_far(run, gaps * gaps, 0), axis=-2)
    total = rows.sum((run.values - last[1][..., None, :]) ** 2, axis=-2)
    return (means, squares / _positions(run)), (*last, total)


def _exponential_step(at: Elements, state: State) -> tuple[State, Tensor]:
    mean = multiply(at.decay, state[0]) + multiply(1 - at.decay, at.values)
    return (mean,), mean


def _exponential(run: Elements) -> tuple[Tensor, State]:
    T = run.values.shape[-2]
    ages = from_index((T, T), lambda i, j: sympy.Abs(i - j))
    weights = where(causal_mask(T), power(run.decay, ages), 0)
    means = multiply(1 - run.decay, weights @ run.values)
    return means, (means[..., -1, :],)


def _positions(run: Elements) -> Tensor:
    """How many positions there are up to each, as a column."""
    return from_index((run.values.shape[-2], 1), lambda i, _: i + 1)


def _count(run: Elements) -> Tensor:
    return constant(formula=run.values.shape[-2])


def _so_far(run: Elements, x: Tensor, otherwise: Any) -> Tensor:
    """Entries [.., T, T, e] of positions up to each."""
    return where(causal_mask(run.values.shape[-2])[..., None], x, otherwise)


# --- sums of exponentials ---


def _logsumexp_step(at: Elements, state: State) -> tuple[State, Tensor]:
    top, total = state
    new = maximum(top, at.values)
    total = exp(top - new) * total + exp(at.values - new)
    return (new, total), new + log(total)


def _logsumexps(run: Elements) -> tuple[Tensor, State]:
    several = _so_far(run, run.values[..., None, :, :], -sympy.oo)
    top = rows.max(run.values, axis=-2)
    total = rows.sum(exp(run.values - top[..., None, :]), axis=-2)
    return rows.logsumexp(several, axis=-2), (top, total)


def _softmax_step(at: Elements, state: State) -> tuple[State, Tensor]:
    top, total, output = state
    new = maximum(top, at.scores)
    old, weight = exp(top - new), exp(at.scores - new)
    total, output = old * total + weight, old * output + weight * at.values
    return (new, total, output), output / total


def _softmaxes(run: Elements) -> tuple[Tensor, State]:
    T = run.values.shape[-2]
    weights = rows.softmax(run.scores[..., None, :], axis=-1, where=causal_mask(T))
    top = rows.max(run.scores, axis=-1, keepdims=True)
    last = exp(run.scores - top)
    total = rows.sum(last, axis=-1, keepdims=True)
    return weights @ run.values, (top, total, (last[..., None, :] @ run.values)[..., 0, :])


# --- the table ---


def _nothing(count: int) -> Callable[[Shape], State]:
    return lambda shape: tuple(zeros(*shape) for _ in range(count))


def _below_all(shape: Shape) -> Tensor:
    return from_index(shape, lambda *_: -sympy.oo)


_ONLINE = "Milakov and Gimelshein 2018 (arXiv:1805.02867), algorithm 3"
AVERAGES: Mapping[str, Average] = MappingProxyType(
    {
        "mean": Average((), lambda shape: (zeros(), zeros(*shape)), _mean_step, _means, "Welford 1962, equation 1"),
        "moments": Average(
            (), lambda shape: (zeros(), zeros(*shape), zeros(*shape)), _moments_step, _moments, "Welford 1962"
        ),
        "exponential": Average(
            ("decay",), _nothing(1), _exponential_step, _exponential, "Kingma and Ba 2014 (arXiv:1412.6980), section 3"
        ),
        "logsumexp": Average(
            (), lambda shape: (_below_all(shape), zeros(*shape)), _logsumexp_step, _logsumexps, _ONLINE
        ),
        "softmax": Average(
            ("scores",),
            lambda shape: (_below_all((*shape[:-1], 1)), zeros(*shape[:-1], 1), zeros(*shape)),
            _softmax_step,
            _softmaxes,
            _ONLINE,
        ),
    }
)
