r"""How a recurrence is written: in text as the call that makes it, in mathematics by its equations.

``\left(s_T : s_0 = 0,\; s_t = s_{t-1} + x_t,\; t = 1, \ldots, T\right)`` is the last state, ``y_{1:T}`` the outputs.
A loop that runs from the end of all its sequences begins with ``s_{T+1}``, and has ``t = T, \ldots, 1``. A value is
written with the states and the sequences that matter to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.boxes import (
    Box,
    Code,
    Fence,
    Function,
    Name,
    Number,
    Row,
    Script,
    Sign,
    Space,
    applied,
    commas,
    row,
)
from ..core.naming import free_letters, new_name
from ..core.node import Tensor, topological
from ..ops.arithmetic import multiply, split_scalar
from ..ops.gather import flip
from ..ops.index import is_flip
from ..ops.leaves import is_named
from ..ops.notation import Binding, Written
from ..printing.matrix import Printer, Within
from .body import Step, Tensors, essence, number_of_steps, parted

_LETTERS = "suvwzpq"  # of states
_BETWEEN = (Sign(",", "punctuation"), Space(1.0))  # equations, where a line may break first
_AT_LENGTH = 8  # operations that are not written again
_EQUALS = Sign("=", "relation")


def scan_notation(p: Any, node: Tensor) -> Written:
    """A value of a recurrence, whole."""
    value = _value(p, node)
    return _written(p, value, value.output is None and value.runs_back)


def scan_from_end(p: Any, node: Tensor) -> Written | None:
    """The outputs of a recurrence that runs from the end of all sequences, in the order of these."""
    value = _value(p, node)
    return None if value.output is None or not value.runs_back else _written(p, value, True)


def _written(p: Any, value: _Value, back: bool) -> Written:
    return (_as_call if p.code else _as_equations)(p, value, back), Binding.ATOM


class _Value(NamedTuple):
    """One value of a loop that has what matters to it, with the step over named leaves: an output, or a last state."""

    step: Step
    first: Tensors
    sequences: Tensors
    given: Tensors
    length: Any
    output: Tensor | None
    place: int  # of the state

    @property
    def runs_back(self) -> bool:
        """Whether it reads sequences, and all from the end."""
        return any(map(is_flip, self.sequences)) and None not in map(_from_end, self.sequences)


def _value(p: Any, node: Tensor) -> _Value:
    body, places, ((what, k),) = essence(node.params["body"], (node.params["take"],))
    step = body.opened(p.taken)
    inputs = parted(tuple(node.inputs[n] for n in places), step)
    return _Value(step, *inputs, number_of_steps(node), None if what == "final" else step.outputs[k], k)


def _from_end(x: Tensor) -> Tensor | None:
    """What a sequence is in the other order, if that is as plain."""
    if is_flip(x):
        return x.inputs[0]
    factor, rest = split_scalar(x)
    if factor != 1 and rest is not None:
        back = _from_end(rest)
        return None if back is None else multiply(factor, back)
    return flip(x, 0) if x.op.part and any(map(is_flip, x.inputs)) else None


def _sequences(value: _Value, back: bool) -> list[Tensor]:
    """The sequences in the order in which they are written."""
    return [back_x if back and (back_x := _from_end(x)) is not None else x for x in value.sequences]


def _within(p: Any, value: _Value, boxes: Sequence[Box], taken: set[str]) -> Printer:
    """A printer that writes the leaves of the step by these boxes, and what stays by what it is."""
    step = value.step
    names = {**p.names, **{leaf: str(leaf.name) for leaf in step.leaves}}
    inner = Printer(p.table, p.code, Within(p.heads, names, {*p.taken, *taken}), p.first_index)
    inner.known.update((x, (box, Binding.ATOM)) for x, box in zip((*step.states, *step.reads), boxes, strict=True))
    stays = zip(step.fixed, value.given, strict=True)
    inner.known.update((leaf, (p.operand(x, Binding.OR), p.binding(x))) for leaf, x in stays)
    return inner


# --- text ---

_NONE, _BACK = Code("None"), Code("reverse=True")


def _as_call(p: Any, value: _Value, back: bool) -> Box:
    taken = set(p.taken)
    state, element = (new_name(letter, taken) for letter in "sx")
    count = len(value.first)
    inner = _within(p, value, [*_leaves(state, count), *_leaves(element, len(value.sequences))], taken)
    shown = [*value.step.after, *([] if value.output is None else [value.output])]
    before = _before(inner, shown, taken)
    rows = _with_names(inner, shown, count, taken)
    made = Fence(commas([_tuple(rows[:count]), *(rows[count:] or [_NONE])]))
    rule = row(Code(f"lambda {state}, {element}: "), _last([*before, made]) if before else made)
    first = _tuple([p.operand(x, Binding.OR) for x in value.first])
    run = [p.operand(x, Binding.OR) for x in _sequences(value, back)]
    over = _tuple(run) if run else row(Code("length="), p.scalar(value.length))
    which = "[1]" if value.output is not None else "[0]" if count == 1 else f"[0][{value.place}]"
    return row(applied(Function(Code("scan")), [rule, first, over, *([_BACK] if back else [])]), Code(which))


def _before(p: Printer, roots: Sequence[Tensor], taken: set[str]) -> list[Box]:
    """Names for what would be written at length several times, and for roots that it is made from."""
    parts = _parts(roots)
    below = set(topological(parts))
    return [_named(p, x, taken) for x in sorted([*parts, *(x for x in roots if x.inputs and x in below)], key=_height)]


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


# --- mathematics ---


def _as_equations(p: Any, value: _Value, back: bool) -> Box:
    taken = set(p.taken)
    letters = [_letter(_LETTERS, x.rank > 1, taken) for x in value.first]
    output = _letter("yorhz", value.output is not None and value.output.rank > 1, taken)
    time = _letter("tnmr", False, taken)
    one, last = Number("1"), p.scalar(value.length)
    begin, end = (p.scalar(value.length + 1), one) if back else (Number("0"), last)
    before = row(Name(time), Sign("+" if back else "−", "sum"), one)
    boxes = [Script(p.letters(s), before) for s in letters]
    inner = _within(p, value, [*boxes, *(_element(p, x, Name(time)) for x in _sequences(value, back))], taken)
    starts = zip(letters, value.first, strict=True)
    lines = [_equation(Script(p.letters(s), begin), p.operand(x, Binding.OR)) for s, x in starts]
    now = [(x, Script(p.letters(s), Name(time))) for x, s in zip(value.step.after, letters, strict=True)]
    parts = _parts([*value.step.after, *([] if value.output is None else [value.output])])
    now += [(x, Script(p.letters(_letter("abcfgw", x.rank > 1, taken)), Name(time))) for x in parts]
    lines += _by_one_another(inner, now)
    if value.output is None:
        head = Script(p.letters(letters[value.place]), end)
    else:
        head = Script(p.letters(output), row(one, Sign(":"), last))
        lines.append(_equation(Script(p.letters(output), Name(time)), inner.box(value.output)))
    lines.append(row(Name(time), _EQUALS, commas([last if back else one, Sign("…"), end])))
    shown = [box for line in lines for box in (*_BETWEEN, line)][len(_BETWEEN) :]
    return Fence(row(head, Sign(":", "relation"), *shown))


def _letter(letters: str, of_matrix: bool, taken: set[str]) -> str:
    """A new letter; matrices have large ones."""
    return new_name(next(free_letters(letters.upper() if of_matrix else letters, taken)), taken)


def _parts(roots: Sequence[Tensor]) -> list[Tensor]:
    """What would be written at length several times, and is none of the roots; inputs before users."""
    order = topological(roots)
    uses = Counter(x for node in order for x in node.inputs)
    size, found = dict[Tensor, int](), list[Tensor]()
    for node in order:
        inner = node.params["body"].step.roots if node.op.part else ()
        size[node] = 1 + len(topological(inner)) + sum(size[x] for x in node.inputs)
        if node in roots or (node.inputs and (uses[node] - 1) * size[node] >= _AT_LENGTH):
            found += [] if node in roots else [node]
            size[node] = 1
    return found


def _height(x: Tensor) -> int:
    return x.height


def _by_one_another(p: Printer, named: Sequence[tuple[Tensor, Box]]) -> list[Box]:
    """The equations of what has a name at a step, by what is named before; the printer knows the names from then on."""
    lines, made = [], dict[Tensor, Box]()
    for x, name in sorted(named, key=lambda pair: _height(pair[0])):
        if x not in made:
            made[x] = p.box(x)
            p.known |= {x: (name, Binding.ATOM)} if x.inputs else {}
        lines.append(_equation(name, made[x]))
    return lines


def _element(p: Any, x: Tensor, time: Box) -> Box:
    """The element of a sequence at a step, by the name of the sequence where it has one; backwards, of what it is."""
    if is_flip(x) and p.from_end(x) is None:
        x, time = x.inputs[0], row(p.scalar(x.shape[0] + 1), Sign("−", "sum"), time)
    box = p.operand(x, Binding.ATOM)
    plain = isinstance(box, (Name, Fence)) or (is_named(x) and not isinstance(box, (Script, Row)))
    return Script(box if plain else Fence(box), time)


def _equation(left: Box, right: Box) -> Box:
    return row(left, _EQUALS, right)
