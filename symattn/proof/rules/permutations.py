r"""Permutations move outward: every operation that treats an axis alike commutes with a permutation of it.

A permutation ``P`` acts on axis -2 of Y by ``P @ Y``, on axis -1 by ``Y @ P.T``, on a vector by ``P @ y``, and on an
axis further left by bringing that axis to place -2 and back. In normal form the actions are outermost.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from ...core.node import Tensor
from ...facts.alike import Group, facts
from ...ops.arithmetic import multiply_op
from ...ops.contraction import matmul_of, matmul_op
from ...ops.layout import _inverse, matrix_transpose, transpose, transpose_op
from ...ops.leaves import scalar_value, variable
from .rule import Rule, Said, called, constant_along, places

Word = tuple[Tensor, ...]  # permutation matrices, the outermost first
Actions = Mapping[int, Word]


def declared(x: Tensor, *hypotheses: str) -> bool:
    """Whether a named tensor, or the transpose of one, was declared to be one of these."""
    if x.op is transpose_op and x.params["order"] == (-1, -2):
        x = x.inputs[0]
    return x.op is variable and any(h in x.params["hypotheses"] for h in hypotheses)


def is_permutation(x: Tensor) -> bool:
    """Whether the node is a permutation matrix or the transpose of one."""
    return x.rank == 2 and declared(x, "permutation")


def peel(x: Tensor) -> tuple[Tensor, dict[int, Word]]:
    """What permutations act on, and those of each axis; the tensor itself and nothing where there are none."""
    actions: dict[int, Word] = {}
    core, axes = x, list(range(-x.rank, 0))  # which axis of x each axis of core is
    while True:
        if core.op is transpose_op:
            order = core.params["order"]
            inner = list(axes)
            for place, axis in enumerate(order, -len(order)):
                inner[axis] = axes[place]
            core, axes = core.inputs[0], inner
        elif core.op is matmul_op and core.params["core"][0] == 2 and is_permutation(core.inputs[0]):
            axis = axes[-2] if core.params["core"][1] == 2 else axes[-1]
            actions[axis] = (*actions.get(axis, ()), core.inputs[0])
            core = core.inputs[1]
        elif core.op is matmul_op and core.params["core"][1] == 2 and is_permutation(core.inputs[1]):
            actions[axes[-1]] = (*actions.get(axes[-1], ()), matrix_transpose(core.inputs[1]))
            core = core.inputs[0]
        else:
            break
    if not actions:
        return x, actions
    return transpose(core, _inverse(tuple(axes))), actions


def act(p: Tensor, y: Tensor, axis: int) -> Tensor:
    """The permutation applied along an axis."""
    if y.rank == 1:
        return matmul_of(p, y, (2, 1))
    if axis == -1:
        return matmul_of(y, matrix_transpose(p), (2, 2))
    if axis == -2:
        return matmul_of(p, y, (2, 2))
    swap = tuple({axis: -2, -2: axis}.get(a, a) for a in range(axis, 0))
    return transpose(matmul_of(p, transpose(y, swap), (2, 2)), swap)


def wrap(core: Tensor, actions: Actions) -> Tensor:
    """The actions applied to the core: to axes further left first, then to the last one, then to axis -2.

    So the parts of the result have their actions in this order too, also those behind a transpose.
    """
    for axis in sorted(actions, key=lambda a: (a == -2, a == -1, a)):
        for p in reversed(actions[axis]):
            core = act(p, core, axis)
    return core


def unpermuted(apply: Callable[..., Tensor | None]) -> Callable[..., Tensor | None]:
    """A rule for all nodes but permutation actions, which stay outermost as they are."""
    return lambda x, *parts: None if peel(x)[1] else apply(x, *parts)


# --- rules ---


def _settled(x: Tensor) -> Tensor | None:
    """The actions in their order: ``(P Y) Q -> P (Y Q)``, ``(P Y)^T -> Y^T P^T``."""
    core, actions = peel(x)
    return wrap(core, actions) if actions else None


def _cancelled(x: Tensor) -> Tensor | None:
    core, actions = peel(x)
    reduced = {axis: _reduced(word) for axis, word in actions.items()}
    return wrap(core, reduced) if reduced != actions else None


def _reduced(word: Word) -> Word:
    kept: list[Tensor] = []
    for p in word:
        if kept and kept[-1] is matrix_transpose(p):
            kept.pop()
        else:
            kept.append(p)
    return tuple(kept)


def _commuted(x: Tensor) -> Tensor | None:
    r"""``f(P X) -> P f(X)``: one group of axes of the operation at a time."""
    peeled = [peel(i) for i in x.inputs]
    found = _moved(x, peeled)
    if found is None:
        return None
    group, word = found
    inputs = tuple(
        wrap(core, _without(actions, len(word), [axis for n, axis in group.inputs if n == k]))
        for k, (core, actions) in enumerate(peeled)
    )
    return wrap(x.op(*inputs, **x.params), dict.fromkeys(group.outputs, word))


def _moved(x: Tensor, peeled: list[tuple[Tensor, dict[int, Word]]]) -> tuple[Group, Word] | None:
    """The first group of axes of the operation that permutations come out of, and these."""
    if x.op is transpose_op or not any(actions for _, actions in peeled) or peel(x)[1]:
        return None
    found = ((group, word) for group in facts(x).groups if (word := _common_word(group, peeled)))
    return next(found, None)


def _common_word(group: Group, peeled: list[tuple[Tensor, dict[int, Word]]]) -> Word:
    """The permutations that act on all axes of the group; what is constant along its axis takes part in any."""
    words = [peeled[k][1].get(axis, ()) for k, axis in group.inputs if not constant_along(peeled[k][0], axis)]
    shared = itertools.takewhile(lambda ps: len(set(ps)) == 1, zip(*words, strict=False))
    return tuple(ps[0] for ps in shared)


def _without(actions: Actions, length: int, axes: list[int]) -> dict[int, Word]:
    return {axis: word[length:] if axis in axes else word for axis, word in actions.items()}


def _why_commuted(x: Tensor, after: Tensor) -> Said:
    found = _moved(x, [peel(i) for i in x.inputs])
    assert found is not None
    group, word = found
    if not group.outputs:
        return _why_absorbed(x, group, word)
    reordering: Said = (f"reordering of {places(x.rank, group.outputs[0])} by ", word[0])
    for p in word[1:]:
        reordering = (*reordering, " and ", p)
    if x.op is matmul_op and len(group.inputs) == 1:
        return ("A ", *reordering, " comes out of a matrix product.")
    if x.op is multiply_op and scalar_value(x.inputs[0]) is not None:
        return ("A scalar factor commutes with a ", *reordering, ".")
    how = " works entry by entry, and so it" if facts(x).entrywise else ""
    return (f"{called(x, first=True)}{how} commutes with a ", *reordering, ".")


def _why_absorbed(x: Tensor, group: Group, word: Word) -> Said:
    if x.op is matmul_op:
        return (word[0], " and its transpose cancel: a permutation is orthogonal.")
    k, axis = group.inputs[0]
    return (f"{called(x, first=True)} over {places(x.inputs[k].rank, axis)} does not depend on their order.",)


def _why_settled(x: Tensor, after: Tensor) -> str:
    if x.op is transpose_op:
        return "A transpose turns a reordering of rows into one of columns, by the transposed permutation."
    return "Rows and columns are reordered independently."


# --- the table ---

PERMUTATIONS = (
    Rule(
        "permutations cancel", "A permutation undone by its inverse changes nothing.",
        1, _cancelled, (matmul_op, transpose_op),
    ),
    Rule(
        "permutations of rows and columns",
        "Rows and columns are permuted independently, and a transpose turns the one into the other.",
        1, _settled, (matmul_op, transpose_op), says=_why_settled,
    ),
    Rule(
        "permutation outward",
        "The operation treats all positions along this axis alike, or sums over them in any order.",
        1, _commuted, says=_why_commuted,
    ),
)  # fmt: skip
