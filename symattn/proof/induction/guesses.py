"""The closed forms of states, guessed from the step where they decay and are added to, or else from the outputs.

A guess need not be right: it is proved like one that is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.node import Tensor, rebuild, topological
from ...core.sizes import broadcast_shapes, same_shape, same_size
from ...errors import SymattnError
from ...ops.arithmetic import add_op, multiply, multiply_op
from ...ops.broadcasting import broadcast_to, sum_op
from ...ops.contraction import matmul_op, outer_op
from ...ops.index import NEW, index_op
from ...ops.leaves import bare, computed, constant, eye, from_index, variable
from ...ops.pointwise import exp, exp_op, log, power
from ...ops.scans import cumsum
from ...recurrence.body import Loop

_ENTRYWISE = (add_op, multiply_op, exp_op)


def queried(loop: Loop, k: int, form: Tensor, back: bool = False) -> Tensor | None:
    """The last state of a loop whose outputs are queries of it, q S, by what these come to: the last for unit queries.

    Nothing else depends on the queries, and an axis in front is that of all units.
    """
    step, output = loop.step, bare(loop.step.outputs[k])
    if len(step.states) != 1 or output.op is not matmul_op or form.rank != 2:
        return None
    left, right = map(bare, output.inputs)
    query, matrix, is_first = (left, right, True) if left in step.reads else (right, left, False)
    if query not in step.reads or query in topological(step.after) or step.after[0] not in (matrix, matrix.T):
        return None
    sequence = loop.sequences[step.reads.index(query)]
    if sequence.op is not variable or sequence.rank != 2:
        return None
    T, d = sequence.shape
    units = broadcast_to(eye(d)[:, None, :], (d, T, d))
    try:
        last = rebuild([form], {sequence: units})[0][:, 0 if back else -1]
    except SymattnError:
        return None
    state = last if is_first == (matrix is step.after[0]) else last.T
    return state if same_shape(state.shape, step.states[0].shape) else None


class _NoGuessError(Exception):
    """The step does something else."""


def guessed(loop: Loop, back: bool = False) -> tuple[Tensor, ...] | None:
    """The last states of a loop; None where one of them does more than to decay and to be added to.

    Its sequences are in the order of the steps, or the last element is read first.
    """
    try:
        return tuple(_last(loop, k, back) for k in range(len(loop.step.states)))
    except _NoGuessError:
        return None


def _last(loop: Loop, k: int, back: bool) -> Tensor:
    state, first, terms = loop.step.states[k], loop.first[k], [*_terms(loop.step.after[k])]
    kept = [x for x in terms if state in computed([x])]
    if len(kept) != 1 or len(terms) == 1:
        raise _NoGuessError
    weights, start = _decay(loop, state, first, kept[0], back)
    whole, *others = (_summed(loop, x, weights, state) for x in terms if x is not kept[0])
    for x in others:
        whole = whole + x
    return whole if first.params.get("formula") == 0 else whole + start


def _terms(x: Tensor) -> Iterator[Tensor]:
    pending = [bare(x)]
    while pending:
        node = pending.pop()
        if node.op is add_op:
            pending += map(bare, reversed(node.inputs))
        else:
            yield node


def _summed(loop: Loop, added: Tensor, weights: Tensor | None, state: Tensor) -> Tensor:
    """The sum over all steps of what is added to a state, as far as it is left at the end."""
    if added.op is outer_op and (product := _of_outer_products(loop, added, weights)) is not None:
        return product
    several, shape = _at_all_steps(loop, added), (loop.length, *state.shape)
    several = several if several.op is constant else _with_rank(several, len(shape))
    joined = broadcast_shapes(several.shape, shape)
    if joined is None or not same_shape(joined, shape):
        raise _NoGuessError
    several = broadcast_to(several, shape)
    if weights is not None:
        several = multiply(_with_rank(weights, several.rank), several)
    return sum_op(several, axes=(-several.rank,), keepdims=False)


def _of_outer_products(loop: Loop, added: Tensor, weights: Tensor | None) -> Tensor | None:
    """The sum of outer products as a product of matrices, where the weights are those of one factor."""
    left, right = (_at_all_steps(loop, bare(x)) for x in added.inputs)
    if not all(x.rank == 2 and same_size(x.shape[0], loop.length) for x in (left, right)):
        return None
    if weights is None:
        return left.T @ right
    weights = _with_rank(weights, 3)
    if same_size(weights.shape[-1], 1):
        return multiply(left, weights[:, :, 0]).T @ right
    return left.T @ multiply(right, weights[:, 0, :]) if same_size(weights.shape[-2], 1) else None


def _decay(loop: Loop, state: Tensor, first: Tensor, kept: Tensor, back: bool) -> tuple[Tensor | None, Tensor]:
    """How much of what each step adds is left at the end, and what is left of the start. Raises _NoGuessError."""
    T = loop.length
    if kept is state:
        return None, first
    rate = next((x for x in map(bare, kept.inputs) if state not in computed([x])), None)
    if kept.op is not multiply_op or rate is None or state not in map(bare, kept.inputs):
        raise _NoGuessError
    if not rate.rank and (rate in loop.step.fixed or rate.op is constant):
        number = rebuild([rate], dict(zip(loop.step.fixed, loop.given, strict=True)))[0]
        left = power(number, from_index((T,), lambda i: i if back else T - 1 - i))
        return left, multiply(power(number, from_index((), lambda: T)), first)
    rates = _at_all_steps(loop, rate)
    if not _is_positive(rates):
        raise _NoGuessError
    logs = log(rates)
    total = sum_op(logs, axes=(-logs.rank,), keepdims=True)
    whole = sum_op(logs, axes=(-logs.rank,), keepdims=False)
    so_far = cumsum(logs, axis=0)
    return exp(so_far - logs if back else total - so_far), multiply(exp(whole), first)


def _is_positive(x: Tensor) -> bool:
    """Whether a rate is an exponential, or declared to be positive."""
    x = bare(x)
    while x.op is index_op:
        x = bare(x.inputs[0])
    return x.op is exp_op or (x.op is variable and "positive" in x.params["hypotheses"])


def _at_all_steps(loop: Loop, x: Tensor) -> Tensor:
    """What a part of the step is at all steps, along a first axis. Raises _NoGuessError."""
    known = dict(zip(loop.step.reads, loop.sequences, strict=True))
    given = dict(zip(loop.step.fixed, loop.given, strict=True))
    for node in computed([x]):
        if node in known:
            continue
        if node in given:
            known[node] = given[node][None]
        elif node.op is constant:
            known[node] = node
        else:
            known[node] = _applied(node, [known[bare(y)] for y in node.inputs])
    return known[x]


def _applied(node: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    if node.op in _ENTRYWISE:
        rank = node.rank + 1
        return node.op(*(x if x.op is constant else _with_rank(x, rank) for x in inputs), **node.params)
    if node.op is outer_op:
        a, b = inputs
        return multiply(a[:, :, None], b[:, None, :])
    if node.op is index_op and all(item == NEW or item[0] == "slice" for item in node.params["items"]):
        return index_op(*inputs, **node.params)
    raise _NoGuessError


def _with_rank(x: Tensor, rank: int) -> Tensor:
    """With axes of size 1 behind the first, so that the others are the last as they were."""
    return x[(slice(None), *[None] * (rank - x.rank))] if rank > x.rank else x
