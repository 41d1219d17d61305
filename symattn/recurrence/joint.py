"""Fewer loops for the same values: those that run alike are one, and none computes what nobody asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..core.node import Tensor, rebuild, topological, with_inputs
from ..ops.leaves import computed, cotangent_op, let_op, variable
from .body import Loop, loop_key, loop_of
from .record import essential, scan_op, values_of

Values = dict[Tensor, Tensor]


def with_joint_loops(roots: Sequence[Tensor]) -> list[Tensor]:
    """The roots by loops that only do what is used, and of which none runs as another does that reads as much."""
    found = list(roots)
    for change in (_joined, _without_the_unused):
        while (new := next(change(_loops(found)), None)) is not None:
            found = rebuild(found, new)
    return found


def _loops(roots: Sequence[Tensor]) -> list[list[Tensor]]:
    """The values that are used, loop by loop."""
    loops: dict[Any, list[Tensor]] = {}
    for node in computed(roots):
        if node.op is scan_op:
            loops.setdefault(loop_key(node), []).append(node)
    return list(loops.values())


# --- loops that run alike ---


def _joined(loops: Sequence[Sequence[Tensor]]) -> Iterator[Values]:
    """What to put for the values of two loops of which one has the states of the other, and reads all that it reads.

    A gradient reads by their names what the expression itself may read as it stands.
    """
    if len(loops) < 2:
        return
    pool: dict[Any, Tensor] = {}
    runs: dict[Any, list[tuple[Sequence[Tensor], Loop]]] = {}
    bare = _unlabelled([x for values in loops for x in values[0].inputs])
    for values in loops:
        loop = _over_pool(loop_of(values[0]), pool, bare)
        first = tuple(bare[x] for x in loop.first)
        runs.setdefault((first, loop.length, loop.step.after), []).append((values, loop))
    for alike in runs.values():
        for one, other in ((a, b) for a in alike for b in alike if a is not b):
            has_all = set(other[1].step.leaves) <= set(one[1].step.leaves)
            if has_all and not set(other[0]) & set(topological(one[0][0].inputs)):
                yield _as_one(one, other)


def _unlabelled(roots: Sequence[Tensor]) -> Values:
    """What each node is without names of intermediates; a gradient, which is summed over loop axes, is itself."""
    bare: Values = {}
    for node in computed(roots):
        kept = node.op is cotangent_op
        bare[node] = node if kept else bare[node.inputs[0]] if node.op is let_op else with_inputs(node, bare)
    return bare


def _over_pool(loop: Loop, pool: dict[Any, Tensor], bare: Values) -> Loop:
    """The loop with its step over leaves that are the same in all loops: of states by place, else by what they are."""
    kinds = [
        *(("state", n, bare[x]) for n, x in enumerate(loop.first)),
        *(("read", 0, bare[x]) for x in loop.sequences),
        *(("fixed", 0, bare[x]) for x in loop.given),
    ]
    leaves = []
    for kind, leaf in zip(kinds, loop.step.leaves, strict=True):
        hypotheses = () if leaf.kind == "real" else (leaf.kind,)
        key = (*kind, leaf.kind)
        pool.setdefault(key, variable(name=f"pooled {len(pool)}", shape=leaf.shape, hypotheses=hypotheses))
        leaves.append(pool[key])
    step = loop.step.over(leaves)
    reads, fixed = dict(zip(step.reads, loop.sequences, strict=True)), dict(zip(step.fixed, loop.given, strict=True))
    once = step._replace(reads=tuple(reads), fixed=tuple(fixed))  # what is read twice
    return loop._replace(step=once, sequences=tuple(reads.values()), given=tuple(fixed.values()))


def _as_one(one: tuple[Sequence[Tensor], Loop], other: tuple[Sequence[Tensor], Loop]) -> Values:
    """The values of both by a loop that has the outputs of both."""
    outputs = tuple(dict.fromkeys([*one[1].step.outputs, *other[1].step.outputs]))
    final, stacked = values_of(one[1]._replace(step=one[1].step._replace(outputs=outputs)))
    by_output = dict(zip(outputs, stacked, strict=True))
    found: Values = {}
    for values, loop in (one, other):
        for x in values:
            what, k = x.params["take"]
            found[x] = final[k] if what == "final" else by_output[loop.step.outputs[k]]
    return found


# --- what nobody asks for ---


def _without_the_unused(loops: Sequence[Sequence[Tensor]]) -> Iterator[Values]:
    """What to put for the values of a loop that has outputs or states of no use to them."""
    for values in reversed(loops):
        less = essential(values)
        if loop_key(less[0]) != loop_key(values[0]):
            yield dict(zip(values, less, strict=True))
