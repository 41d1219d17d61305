r"""How a recurrence is written: in text as the call that makes it, in mathematics by its equations.

``\left(s_T : s_0 = 0,\; s_t = s_{t-1} + x_t,\; t = 1, \ldots, T\right)`` is the last state, ``y_{1:T}`` the outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from ..core.boxes import Box, Code, Fence, Function, Name, Number, Row, Script, Sign, applied, commas, row, separated
from ..core.naming import free_letters, new_name
from ..core.node import Tensor
from ..ops.index import index_op
from ..ops.leaves import is_named
from ..ops.notation import Binding, Written
from ..printing.matrix import Printer, Within

_LETTERS = "suvwzpq"  # of states
_EQUALS = Sign("=", "relation")


def scan_notation(p: Any, node: Tensor) -> Written:
    """A value of a recurrence, whole."""
    return (_as_call if p.code else _as_equations)(p, node), Binding.ATOM


def _within(p: Any, node: Tensor, boxes: Sequence[Box], taken: set[str]) -> tuple[Printer, Any]:
    """The opened step, and a printer that writes its leaves by these boxes, and what stays by what it is."""
    body = node.params["body"]
    step = body.opened(taken)
    stays = node.inputs[len(step.states) + len(step.reads) :]
    written = [*((box, Binding.ATOM) for box in boxes), *((p.operand(x, Binding.OR), p.binding(x)) for x in stays)]
    names = {**p.names, **{leaf: str(leaf.name) for leaf in step.leaves}}
    inner = Printer(p.table, p.code, Within(p.heads, names, {*p.taken, *taken}), p.first_index)
    inner.known.update(zip(step.leaves, written, strict=True))
    return inner, step


# --- text ---


def _as_call(p: Any, node: Tensor) -> Box:
    body, (what, k) = node.params["body"].step, node.params["take"]
    taken = set(p.taken)
    state, element = (new_name(letter, taken) for letter in "sx")
    count = len(body.states)
    leaves = [*_leaves(state, count), *_leaves(element, len(body.reads))]
    inner, step = _within(p, node, leaves, taken)
    after = _tuple([inner.box(x) for x in step.after])
    outputs = inner.box(step.outputs[k]) if what == "output" else Code("None")  # the others are other values
    rule = row(Code(f"lambda {state}, {element}: "), Fence(commas([after, outputs])))
    run = [p.operand(x, Binding.OR) for x in node.inputs[: count + len(body.reads)]]
    over = _tuple(run[count:]) if body.reads else row(Code("length="), p.scalar(node.params["steps"]))
    which = "[1]" if what == "output" else "[0]" if count == 1 else f"[0][{k}]"
    return row(applied(Function(Code("scan")), [rule, _tuple(run[:count]), over]), Code(which))


def _leaves(name: str, count: int) -> list[Box]:
    return [Code(name)] if count == 1 else [Code(f"{name}[{n}]") for n in range(count)]


def _tuple(boxes: Sequence[Box]) -> Box:
    return boxes[0] if len(boxes) == 1 else Fence(commas(boxes))


# --- mathematics ---


def _as_equations(p: Any, node: Tensor) -> Box:
    body, (what, k) = node.params["body"].step, node.params["take"]
    taken = set(p.taken)
    length = node.inputs[len(body.states)].shape[0] if body.reads else node.params["steps"]
    letters = [new_name(letter, taken) for letter in islice(free_letters(_LETTERS, taken), len(body.states))]
    output = new_name(next(free_letters("yorhz", taken)), taken)
    time = new_name(next(free_letters("tnmr", taken)), taken)
    before = row(Name(time), Sign("−", "sum"), Number("1"))
    sequences = node.inputs[len(body.states) : len(body.states) + len(body.reads)]
    boxes = [Script(p.letters(s), before) for s in letters] + [_element(p, x, Name(time)) for x in sequences]
    inner, step = _within(p, node, boxes, taken)
    starts = zip(letters, node.inputs, strict=False)
    lines = [_equation(Script(p.letters(s), Number("0")), p.operand(x, Binding.OR)) for s, x in starts]
    now = [Script(p.letters(s), Name(time)) for s in letters]
    lines += [_equation(box, inner.box(x)) for box, x in zip(now, step.after, strict=True)]
    if what == "output":  # which is told by the new states
        new = zip(step.after, now, strict=True)
        inner.known.update((x, (box, Binding.ATOM)) for x, box in new if x.inputs)
        lines.append(_equation(Script(p.letters(output), Name(time)), inner.box(step.outputs[k])))
    last = p.scalar(length)
    lines.append(row(Name(time), _EQUALS, commas([Number("1"), Sign("…"), last])))
    runs = row(Number("1"), Sign(":"), last)
    head = Script(p.letters(letters[k]), last) if what == "final" else Script(p.letters(output), runs)
    return Fence(row(head, Sign(":", "relation"), separated(Sign(",", "punctuation"), lines)))


def _element(p: Any, x: Tensor, time: Box) -> Box:
    """The element of a sequence at a step, by the name of the sequence where it has one; backwards, of what it is."""
    if is_backwards(x):
        x, time = x.inputs[0], row(p.scalar(x.shape[0] + 1), Sign("−", "sum"), time)
    box = p.operand(x, Binding.ATOM)
    plain = isinstance(box, (Name, Fence)) or (is_named(x) and not isinstance(box, (Script, Row)))
    return Script(box if plain else Fence(box), time)


def is_backwards(x: Tensor) -> bool:
    """Whether a sequence is another one from its end, and nothing else of it is moved."""
    if x.op is not index_op:
        return False
    whole = (("slice", 0, 1, size) for size in x.inputs[0].shape[1:])
    return x.params["items"] == (("slice", x.shape[0] - 1, -1, x.inputs[0].shape[0]), *whole)


def _equation(left: Box, right: Box) -> Box:
    return row(left, _EQUALS, right)
