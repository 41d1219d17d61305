"""``sa.scan``: a loop that is written by its step, with a number of steps that may be a symbol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy

from ..core.arguments import check_takes, flag
from ..core.node import Tensor, Tracing, rebuild, topological
from ..core.sizes import Shape, as_size, same_shape, same_size, show_shape
from ..errors import OperandError, ShapeError, described
from ..ops.arithmetic import negative
from ..ops.gather import flip
from ..ops.leaves import as_tensor, constant, from_index_op
from ..ops.placeholders import placeholder_op
from .body import Loop, Step, without_labels
from .record import values_of


def scan(
    step: Callable[[Any, Any], Any], init: Any, xs: Any = None, length: Any = None, reverse: bool = False
) -> tuple[Any, Any]:
    """A recurrence: the last state, and the outputs of all steps stacked along a first axis.

    ``step(state, x) -> (state, output)``, as in ``jax.lax.scan``: state, x and output are a tensor or a tuple of
    tensors, and the output may be None. Sequences run along their first axis; without any, ``length`` says how many
    steps there are, and x is None. With ``reverse`` the last element comes first. A state may begin at -oo where one
    step makes it a number. Raises OperandError for a step that gives something else, for a state that changes its kind
    and for a step that uses the number of steps; ShapeError for a state that changes its shape and for sequences of
    different length.

    >>> import symattn as sa
    >>> K, V, Q = sa.tensor("K", "T d"), sa.tensor("V", "T e"), sa.tensor("Q", "T d")
    >>> def step(S, x):
    ...     k, v, q = x
    ...     S = S + sa.outer(k, v)
    ...     return S, q @ S
    >>> S, O = sa.scan(step, sa.zeros(*sa.sizes("d e")), (K, V, Q))
    >>> S.shape, O.shape
    ((d, e), (T, e))
    """
    backwards = flag("scan", "reverse", reverse)
    check_takes("scan", step, 2)
    first, sequences = _listed(init), [] if xs is None else _listed(xs)
    steps = _number_of_steps(sequences, length)
    if backwards:
        sequences = [flip(x, 0) for x in sequences]
    tracing = Tracing()
    try:
        states = [_leaf("state", n, x, x.shape, tracing) for n, x in enumerate(first)]
        reads = [_leaf("read", n, x, x.shape[1:], tracing) for n, x in enumerate(sequences)]
        given = step(_like(init, states), None if xs is None else _like(xs, reads))
        after, outputs = _answer(given, first)
        roots, stays = _hoisted(states, reads, without_labels([*after, *outputs]), tracing)
        traced = Step(tuple(states), tuple(reads), tuple(stays), roots[: len(first)], roots[len(first) :])
        _check_free_of(steps, traced)
        final, stacked = values_of(Loop(traced, tuple(first), tuple(sequences), tuple(stays.values()), steps))
    finally:
        tracing.is_open = False
    if backwards:
        stacked = [flip(y, 0) for y in stacked]
    return _like(init, final), None if given[1] is None else _like(given[1], stacked)


def _listed(value: Any) -> list[Tensor]:
    return [as_tensor(x) for x in value] if isinstance(value, (tuple, list)) else [as_tensor(value)]


def _like(given: Any, made: Sequence[Tensor]) -> Any:
    """One tensor or a tuple, as it was given."""
    return tuple(made) if isinstance(given, (tuple, list)) else made[0]


def _number_of_steps(sequences: Sequence[Tensor], length: Any) -> sympy.Expr:
    steps = None if length is None else as_size(length)
    for x in sequences:
        if not x.rank:
            raise ShapeError(f"scan: {x.brief()} has no axis to run along")
        steps = x.shape[0] if steps is None else steps
        if not same_size(x.shape[0], steps):
            raise ShapeError(f"scan: {x.brief()} has the length {x.shape[0]}, and there are {steps} steps")
    if steps is None:
        raise OperandError("scan without sequences takes the number of its steps: length=T")
    return steps


def _leaf(role: str, number: int, of: Tensor, shape: Shape, tracing: Tracing) -> Tensor:
    infinite = {"infinite": True} if of.holds_minus_infinity else {}
    return placeholder_op(role=role, number=number, shape=shape, kind=of.kind, tracing=tracing, **infinite)


def _answer(given: Any, first: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """What the step gave, held against the state that it began with."""
    if not isinstance(given, tuple) or len(given) != 2:
        raise OperandError(
            f"scan: step(state, x) gives a pair, the new state and the output or None, not {described(given)}"
        )
    after, outputs = _listed(given[0]), [] if given[1] is None else _listed(given[1])
    if not after and not outputs:
        raise OperandError("scan: the step gives neither a state nor an output")
    if len(after) != len(first):
        raise OperandError(f"scan: the step gives {len(after)} states, and begins with {len(first)}")
    for n, (new, old) in enumerate(zip(after, first, strict=True)):
        if not same_shape(new.shape, old.shape):
            change = f"{show_shape(old.shape)} before a step and {show_shape(new.shape)} after it"
            raise ShapeError(f"scan: state {n} has the shape {change}")
        if new.kind != old.kind:
            raise OperandError(f"scan: state {n} is {old.kind} before a step and {new.kind} after it")
    return after, outputs


def _hoisted(
    states: Sequence[Tensor], reads: Sequence[Tensor], roots: Sequence[Tensor], tracing: Tracing
) -> tuple[tuple[Tensor, ...], dict[Tensor, Tensor]]:
    """The roots with leaves for what is the same at every step, and what these stand for; scalars are among it."""
    own = {*states, *reads}
    moving = {x for x in topological(roots) if x in own or tracing in x.tracings}
    stays = dict.fromkeys(x for node in topological(roots) if node in moving for x in node.inputs if x not in moving)
    stays |= dict.fromkeys(x for x in roots if x not in moving)
    outside = [x for x in stays if x.op not in (constant, from_index_op) or _real_symbols(x)]
    for node in moving:
        if scalars := _real_symbols(node):
            raise OperandError(
                f"scan: {sorted(map(str, scalars))[0]} stands within {node.op.title} in the step: multiply or add it "
                "as a factor or a term of its own"
            )
    given = {x: negative(x) if _is_subtracted(x) else x for x in outside}
    leaves = {x: _leaf("fixed", n, x, x.shape, tracing) for n, x in enumerate(dict.fromkeys(given.values()))}
    new = {x: leaves[y] if x is y else negative(leaves[y]) for x, y in given.items()}
    return tuple(rebuild(roots, new)), {leaf: x for x, leaf in leaves.items()}


def _is_subtracted(x: Tensor) -> bool:
    """Whether a scalar is written with a minus sign, which stays in the step."""
    return x.op is constant and bool(x.params["formula"].could_extract_minus_sign())


def _real_symbols(x: Tensor) -> set[sympy.Symbol]:
    return {s for s in x.own_symbols if not s.is_integer}


def _check_free_of(steps: sympy.Expr, traced: Step) -> None:
    """A step is the same for all numbers of steps, though what it takes may have as many rows."""
    for node in topological([*traced.leaves, *traced.roots]):
        formula = node.params.get("formula")
        if formula is not None and (used := steps.free_symbols & formula.free_symbols):
            raise OperandError(
                f"scan: the step uses {sorted(map(str, used))[0]}, the number of steps: compute what is made with it "
                "outside of the step"
            )
