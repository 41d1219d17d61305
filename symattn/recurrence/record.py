"""The record of a recurrence: one of the values that a loop gives, of its start, its sequences and what stays.

Its inputs are the first states, the sequences, whose first axis is the steps, and what a step takes besides. The
derivatives of the loop are loops over the derivatives of its body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import sympy

from ..calculus.gradient import gradient, jvp
from ..core.node import Tensor, topological
from ..core.operation import Operation
from ..core.sizes import Shape, same_shape, same_size
from ..errors import OperandError, ShapeError
from ..ops.arithmetic import add
from ..ops.gather import flip
from ..ops.layout import moveaxis
from ..ops.leaves import constant, from_index_op, is_zero, named, variable, zeros
from ..scalars.formulas import ScanEntry, bound, choose
from .body import (
    Body,
    Loop,
    Step,
    Take,
    closed,
    essence,
    length_of,
    number_of_steps,
    parted,
    without_labels,
)
from .notation import scan_from_end, scan_notation
from .on_the_way import equations


def values_of(loop: Loop) -> tuple[list[Tensor], list[Tensor]]:
    """The last states and the outputs of a loop; what a step does not look at is left out."""
    step = loop.step
    seen = set(topological(step.roots))
    reads = [(leaf, x) for leaf, x in zip(step.reads, loop.sequences, strict=True) if leaf in seen]
    fixed = [(leaf, x) for leaf, x in zip(step.fixed, loop.given, strict=True) if leaf in seen]
    kept = Step(step.states, tuple(r for r, _ in reads), tuple(c for c, _ in fixed), step.after, step.outputs)
    inputs = (*loop.first, *(x for _, x in reads), *(x for _, x in fixed))
    shared = {"body": closed(kept), "steps": None if reads else loop.length}
    final = [scan_op(*inputs, take=("final", k), **shared) for k in range(len(step.after))]
    return final, [scan_op(*inputs, take=("output", k), **shared) for k in range(len(step.outputs))]


def essential(values: Sequence[Tensor]) -> list[Tensor]:
    """Values of one loop by a loop that has nothing else than matters to them."""
    node = values[0]
    body, places, takes = essence(node.params["body"], tuple(x.params["take"] for x in values))
    inputs = [node.inputs[n] for n in places]
    steps = None if body.step.reads else number_of_steps(node)
    return [scan_op(*inputs, body=body, take=take, steps=steps) for take in takes]


# --- what a value is ---


def _shape(*inputs: Tensor, body: Body, take: Take, steps: Any) -> Shape:
    step = body.step
    first, sequences, given = parted(inputs, step)
    length = length_of(inputs, body, steps)
    if length.is_positive is False:
        raise ShapeError(f"scan: there would be {length} steps, and there is at least one")
    for x in sequences:
        if not x.rank or not same_size(x.shape[0], length):
            raise ShapeError(f"scan: {x.brief()} and {sequences[0].brief()} differ in the number of steps")
    shapes = [*(x.shape for x in first), *(x.shape[1:] for x in sequences), *(x.shape for x in given)]
    for x, leaf, shape in zip(inputs, step.leaves, shapes, strict=True):
        if not same_shape(shape, leaf.shape):
            raise ShapeError(f"scan: {x.brief()} does not fit the step, which was written for another shape")
        if leaf.kind not in ("real", x.kind):
            raise OperandError(f"scan: {x.brief()} does not fit the step, which was written for {leaf.kind} entries")
    what, k = take
    return step.after[k].shape if what == "final" else (length, *step.outputs[k].shape)


def _kind(body: Body, take: Take, steps: Any) -> str:
    what, k = take
    return (body.step.after if what == "final" else body.step.outputs)[k].kind


def _minus_infinity(*inputs: Tensor, body: Body, take: Take, steps: Any) -> bool:
    """Whether the value may hold -oo, which inputs may if one step gives finite states."""
    what, k = take
    outputs = _beside(body, _infinite(inputs))
    return what == "output" and k in outputs.infinite


def _infinite(inputs: Sequence[Tensor]) -> frozenset[int]:
    return frozenset(n for n, x in enumerate(inputs) if x.holds_minus_infinity)


class _Outputs(NamedTuple):
    """Which outputs may hold -oo, and whether a step has a value for all values of its leaves."""

    infinite: frozenset[int]
    is_total: bool


@lru_cache(maxsize=256)
def _beside(body: Body, infinite: frozenset[int]) -> _Outputs:
    """What a step gives of leaves some of which may hold -oo; raises OperandError where states stay infinite."""
    step = body.opened(infinite=infinite)
    for n, x in enumerate(step.after):
        if x.holds_minus_infinity:
            raise OperandError(
                f"scan: state {n} may be -oo after a step: a state may begin at -oo where one step makes it a number"
            )
    return _Outputs(_infinite(step.outputs), step.is_total if infinite else body.is_total)


def _entry(read: Any, index: Any, node: Tensor) -> Any:
    """An entry that depends on all entries of what matters to it, and is the same for equal inputs of one body."""
    body, places, ((what, output),) = essence(node.params["body"], (node.params["take"],))
    inputs, step = [node.inputs[place] for place in places], body.step
    limits, terms, timed, slot = [], [], [], 0
    for k, (place, leaf, x) in enumerate(zip(places, step.leaves, inputs, strict=True)):
        own = [bound(node, slot + axis, size) for axis, size in enumerate(x.shape)]
        slot += x.rank
        limits += own
        terms.append(read(place, tuple(b[0] for b in own)))
        if what == "output" and len(step.states) <= k < len(step.states) + len(step.reads):
            timed.append(own[0][0] + (0 if leaf in topological([step.outputs[output]]) else 1))
    sizes = (number_of_steps(node), *(size for x in inputs for size in x.shape))
    name, is_total = f"scan{body.serial}{what[0]}{output}", _beside(body, _infinite(inputs)).is_total
    value = ScanEntry(terms, limits, index, name, sizes, is_total, timed)
    if not node.holds_minus_infinity:
        return value
    is_number = ScanEntry(terms, limits, index, f"{name} is a number", sizes, is_total, timed) > 0
    return choose(is_number, value, sympy.S.NegativeInfinity)


# --- derivatives ---


def _pullback(
    g: Mapping[Take, Tensor], y: Mapping[Take, Tensor], *inputs: Tensor, wanted: Sequence[bool], body: Body, steps: Any
) -> Sequence[Tensor | None]:
    """A loop backwards, whose state is the cotangent of the state, and sums for what stays."""
    step = body.opened()
    asked = {leaf for leaf, is_wanted in zip(step.leaves, wanted, strict=True) if is_wanted}
    first, sequences, given = parted(inputs, step)
    length = length_of(inputs, body, steps)
    batch = next(c.shape[: c.rank - y[take].rank] for take, c in g.items())
    cotangents = {i: _leaf(f"g{i}", batch, s) for i, s in enumerate(step.states) if s.kind == "real"}
    stacked = {k: c for (what, k), c in g.items() if what == "output"}
    of_outputs = {k: _leaf(f"e{k}", batch, step.outputs[k]) for k in stacked}
    pairs = [(step.after[i], c) for i, c in cotangents.items()]
    pairs += [(step.outputs[k], c) for k, c in of_outputs.items()]
    slopes = _slopes(pairs, [x for x in step.leaves if x in step.states or x in asked])
    if not slopes:
        return [None] * len(inputs)
    nothing = {x: zeros(*batch, *x.shape) for x in step.leaves}
    sums = {c: _leaf(f"t{n}", batch, c) for n, c in enumerate(step.fixed) if c in slopes}
    moved = [x for x in step.reads if x in slopes]
    back = Step(
        (*cotangents.values(), *sums.values()),
        (*step.reads, *step.states, *of_outputs.values()),
        step.fixed,
        (*(slopes.get(step.states[i], nothing[step.states[i]]) for i in cotangents),
         *(add(total, slopes[c]) for c, total in sums.items())),
        tuple(slopes[x] for x in moved),
    )  # fmt: skip
    _, before = values_of(Loop(step._replace(outputs=step.states), first, sequences, given, length))
    start = [g.get(("final", i), nothing[step.states[i]]) for i in cotangents] + [nothing[c] for c in sums]
    passed = [named("H", x, by="gradient") for x in before]
    run = [*sequences, *passed, *(_moved(c, 0, len(batch), -1) for c in stacked.values())]
    final, outputs = values_of(Loop(back, tuple(start), tuple(flip(x, 0) for x in run), given, length))
    found = dict(zip([*(step.states[i] for i in cotangents), *sums], final, strict=True))
    found |= {x: _moved(flip(o, 0), len(batch), 0, 1) for x, o in zip(moved, outputs, strict=True)}
    return [found.get(leaf) if leaf in asked else None for leaf in step.leaves]


def _leaf(name: str, batch: Shape, like: Tensor) -> Tensor:
    return variable(name=f"{name}_of_{like.name or 'output'}", shape=(*batch, *like.shape), hypotheses=())


def _moved(x: Tensor, start: int, end: int, sign: int) -> Tensor:
    """The axis of steps taken from behind a batch to the front, or put back there."""
    source, destination = (end, start) if sign < 0 else (0, start)
    return x if source == destination else moveaxis(x, source, destination)


def _slopes(pairs: Iterable[tuple[Tensor, Tensor]], leaves: Sequence[Tensor]) -> dict[Tensor, Tensor]:
    """What the cotangents of the roots of a step give for its leaves, where that is not zero."""
    seeds: dict[Tensor, Tensor] = {}
    for root, cotangent in pairs:
        if root.kind == "real" and root.op not in (constant, from_index_op):
            seeds[root] = add(seeds[root], cotangent) if root in seeds else cotangent
    below = set(topological(seeds))
    wanted = [x for x in leaves if x in below and x.kind == "real"]
    if not wanted:
        return {}
    found = gradient(seeds, wanted)
    slopes = dict(zip(wanted, without_labels([found[x] for x in wanted]), strict=True))
    return {x: slope for x, slope in slopes.items() if not is_zero(slope)}


def _pushforward(
    tangents: Sequence[Tensor | None], y: Tensor, *inputs: Tensor, body: Body, take: Take, steps: Any
) -> Tensor:
    """The loop of the states and of their tangents."""
    step = body.opened()
    known = dict(zip(step.leaves, tangents, strict=True))
    moving = {
        x: _leaf("d", (), x)
        for x in step.leaves
        if x.kind == "real" and (x in step.states or known[x] is not None)
    }  # fmt: skip
    states, reads, fixed = ([x for x in part if x in moving] for part in step[:3])
    new = dict(zip(step.states, step.after, strict=True))
    what, k = take
    after = without_labels([jvp(new[s], moving) for s in states])
    outputs = without_labels([jvp(step.outputs[k], moving)] if what == "output" else [])
    along = Step(
        (*step.states, *(moving[x] for x in states)),
        (*step.reads, *(moving[x] for x in reads)),
        (*step.fixed, *(moving[x] for x in fixed)),
        (*step.after, *after),
        tuple(outputs),
    )
    value = dict(zip(step.leaves, inputs, strict=True))
    first, sequences, given = parted(inputs, step)
    start = [zeros(*value[s].shape) if known[s] is None else known[s] for s in states]
    loop = Loop(
        along,
        (*first, *(x for x in start if x is not None)),
        (*sequences, *(t for x in reads if (t := known[x]) is not None)),
        (*given, *(t for x in fixed if (t := known[x]) is not None)),
        length_of(inputs, body, steps),
    )
    final, made = values_of(loop)
    if what == "output":
        return made[0]
    state = step.states[k]
    return final[len(step.states) + states.index(state)] if state in moving else zeros(*y.shape)


scan_op = Operation(
    "scan",
    part="take",
    shape=_shape,
    entry=_entry,
    vjp=_pullback,
    jvp=_pushforward,
    numpy=lambda code, node, *operands: code.scan(node, operands),
    notation=scan_notation,
    from_end=scan_from_end,
    equations=equations,
    reason="a recurrence, step by step backwards",
    called="the recurrence",
    kind=_kind,
    minus_infinity=_minus_infinity,
)
