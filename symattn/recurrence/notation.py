r"""How a recurrence is written: in text as the call that makes it, in mathematics by its equations.

``\left(s_T : s_0 = 0,\; s_{t+1} = s_t + x_t,\; t = 0, \ldots, T - 1\right)`` is the last state, ``y_{:T}`` the
outputs. A value is written with the states and the sequences that matter to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.boxes import Box, Code, Fence, Function, Sign, Space, applied, commas, row
from ..core.naming import new_name
from ..core.node import Tensor, topological
from ..ops.notation import Binding, Written
from ..printing.matrix import Printer, Within
from .body import Loop, Take, essence, number_of_steps, parted
from .telling import Recursion, in_order, runs_back, said_again

_BETWEEN = (Sign(",", "punctuation"), Space(1.0))  # equations, where a line may break first


def scan_notation(p: Any, node: Tensor) -> Written:
    """A value of a recurrence, whole."""
    loop, take = essential_loop(p, node)
    return _written(p, loop, take, take[0] == "final" and runs_back(loop))


def scan_from_end(p: Any, node: Tensor) -> Written | None:
    """The outputs of a recurrence that runs from the end of all sequences, in the order of these."""
    loop, take = essential_loop(p, node)
    return None if take[0] == "final" or not runs_back(loop) else _written(p, loop, take, True)


def _written(p: Any, loop: Loop, take: Take, back: bool) -> Written:
    return (_as_call if p.code else _as_equations)(p, loop, take, back), Binding.ATOM


def essential_loop(p: Any, node: Tensor) -> tuple[Loop, Take]:
    """The loop of a value with what matters to that, by a step over named leaves, and which value of it that is."""
    body, places, (take,) = essence(node.params["body"], (node.params["take"],))
    step = body.opened(p.taken)
    return Loop(step, *parted(tuple(node.inputs[n] for n in places), step), number_of_steps(node)), take


def _as_equations(p: Any, loop: Loop, take: Take, back: bool) -> Box:
    recursion = Recursion(loop, {}, p, back=back)
    steps = [*recursion.equations([True] * (len(loop.step.after) + len(loop.step.outputs)))]
    each = [step.each for step in steps if step.each is not None]
    lines = [*(row(step.left, step.relation, step.right) for step in steps if step.left is not None), *each[:1]]
    shown = [box for line in lines for box in (*_BETWEEN, line)][len(_BETWEEN) :]
    return Fence(row(recursion.value(take), Sign(":", "relation"), *shown))


# --- text ---

_NONE, _BACK = Code("None"), Code("reverse=True")


def _as_call(p: Any, loop: Loop, take: Take, back: bool) -> Box:
    taken = set(p.taken)
    state, element = (new_name(letter, taken) for letter in "sx")
    count = len(loop.first)
    inner = _within(p, loop, [*_leaves(state, count), *_leaves(element, len(loop.sequences))], taken)
    shown = loop.step.roots
    before = _before(inner, shown, taken)
    rows = _with_names(inner, shown, count, taken)
    made = Fence(commas([_tuple(rows[:count]), *(rows[count:] or [_NONE])]))
    rule = row(Code(f"lambda {state}, {element}: "), _last([*before, made]) if before else made)
    first = _tuple([p.operand(x, Binding.OR) for x in loop.first])
    run = [p.operand(x, Binding.OR) for x in in_order(loop, back)]
    over = _tuple(run) if run else row(Code("length="), p.scalar(loop.length))
    which = "[1]" if take[0] == "output" else "[0]" if count == 1 else f"[0][{take[1]}]"
    return row(applied(Function(Code("scan")), [rule, first, over, *([_BACK] if back else [])]), Code(which))


def _within(p: Any, loop: Loop, boxes: Sequence[Box], taken: set[str]) -> Printer:
    """A printer that writes the leaves of the step by these boxes, and what stays by what it is."""
    step = loop.step
    leaves = zip((*step.states, *step.reads), boxes, strict=True)
    names = {**p.names, **{x: str(x.name) for x in step.leaves}}
    inner = Printer(p.table, True, Within(p.heads, names, {*taken}))
    inner.known.update((x, (box, Binding.ATOM)) for x, box in leaves)
    stays = zip(step.fixed, loop.given, strict=True)
    inner.known.update((leaf, p.unfenced(x)) for leaf, x in stays)
    return inner


def _before(p: Printer, roots: Sequence[Tensor], taken: set[str]) -> list[Box]:
    """Names for what would be written at length several times, and for roots that it is made from."""
    parts = said_again(roots)
    below = set(topological(parts))
    order = sorted([*parts, *(x for x in roots if x.inputs and x in below)], key=lambda x: x.height)
    return [_named(p, x, taken) for x in order]


def _named(p: Printer, x: Tensor, taken: set[str]) -> Box:
    """A name for an expression, by which it is written from then on."""
    name, box = new_name("t", taken), p.box(x)
    p.known[x] = Code(name), Binding.ATOM
    return row(Code(f"{name} := "), box)


def _last(boxes: Sequence[Box]) -> Box:
    return row(Fence(commas(boxes)), Code("[-1]"))


def _with_names(p: Printer, roots: Sequence[Tensor], count: int, taken: set[str]) -> list[Box]:
    """The roots, of which those that later ones are made from get names there."""
    boxes: list[Box] = []
    for n, x in enumerate(roots):
        is_read = n < count and x.inputs and any(x in topological([y]) for y in roots[n + 1 :])
        boxes.append(_named(p, x, taken) if is_read and not isinstance(p.box(x), Code) else p.box(x))
    return boxes


def _leaves(name: str, count: int) -> list[Box]:
    return [Code(name)] if count == 1 else [Code(f"{name}[{n}]") for n in range(count)]


def _tuple(boxes: Sequence[Box]) -> Box:
    return boxes[0] if len(boxes) == 1 else Fence(commas(boxes))
