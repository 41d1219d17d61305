"""How operations are written, in mathematics and in NumPy-like text, from one declaration.

A notation is a function ``(printer, node) -> (box, binding)``. ``binding`` says how tightly the box holds together;
``printer.operand(x, at_least)`` puts parentheses where an operand binds less tightly than its place needs, and
``printer.code`` says that NumPy text is asked for.

In mathematics what is written for a tensor is a number, a column, a row or a matrix, as the last two axes of its shape
say, and a value of rank 1 is a column. Axes in front of them are a batch. ``fitted`` writes out how an operand of an
entrywise operation is repeated: ``x 1^T`` in every column, ``1 y^T`` in every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any, Literal

import sympy

from ..core.boxes import (
    Box,
    Code,
    Differential,
    Fence,
    Fraction,
    Function,
    Name,
    Root,
    Row,
    Script,
    Sign,
    SignKind,
    Text,
    applied,
    commas,
    juxtaposed,
    raised,
    row,
    separated,
    subscripts,
)
from ..core.boxes import function as named_function
from ..core.operation import Notation
from ..core.sizes import ONE

Written = tuple[Box, int]

TRANSPOSED = Sign("⊤")
ONES = Name("1", "bold")
COLUMNS = Text("col")
ROWS = Text("row")
_EQUALS = Sign("=", "relation")
_fraction = lru_cache(maxsize=4096)(sympy.fraction)


class Binding(IntEnum):
    """From loose to tight. Text has one level for ``*``, ``/`` and ``@``; mathematics keeps them apart."""

    OR = 1
    AND = 2
    COMPARE = 3
    SUM = 4
    PREFIX = 5  # what reaches to the right, as the nabla of a gradient
    HADAMARD = 6
    PRODUCT = 7
    FRACTION = 8
    POWER = 9
    ATOM = 10


def function(text: str, head: Box | None = None) -> Notation:
    """``name(x, y)``, in mathematics by the head, or else by an upright name."""
    return lambda p, node: call(p, text, node, head)


def enclosed(text: str, left: str, right: str) -> Notation:
    """``name(x)``, in mathematics between two marks, which need no parentheses."""

    def notation(p: Any, node: Any) -> Written:
        if p.code:
            return call(p, text, node)
        return Fence(p.operand(node.inputs[0], Binding.OR), left, right), Binding.ATOM

    return notation


def root(p: Any, node: Any) -> Written:
    """``sqrt(x)``, in mathematics below a root."""
    return call(p, "sqrt", node) if p.code else (Root(p.operand(node.inputs[0], Binding.OR)), Binding.ATOM)


def infix(text: str, sign: Sign, binding: Binding, associative: bool = True) -> Notation:
    """``a + b``: the left operand may bind as loosely as the operator, a right one of its own kind is nested."""
    left = binding if associative else binding + 1

    def notation(p: Any, node: Any) -> Written:
        a, b = node.inputs
        if p.code and binding < Binding.COMPARE:  # in Python, & and | bind tighter than comparisons
            sides = (
                p.operand(x, Binding.SUM if p.binding(x) == Binding.COMPARE else least)
                for x, least in ((a, left), (b, binding + 1))
            )
            return row(next(sides), Sign(text, sign.kind), next(sides)), binding
        between = Sign(text, sign.kind) if p.code else sign
        return row(fitted(p, node, a, left), between, fitted(p, node, b, binding + 1)), binding

    return notation


def call(p: Any, name: str, node: Any, head: Box | None = None, **options: Any) -> Written:
    """``name(x, axis=-1)`` in both dialects, for operations whose matrix form is a named function.

    What is None is not written; ``head`` is how mathematics writes the function, where that is not by its name.
    """
    options = {key: value for key, value in options.items() if value is not None}
    inside = [fitted(p, node, x, Binding.OR) if node.op.broadcasts else p.operand(x, Binding.OR) for x in node.inputs]
    if p.code:
        inside += [row(Code(f"{key}="), p.scalar(value)) for key, value in options.items()]
        return source(name, *inside), Binding.ATOM
    below = [_option(p, key, value) for key, value in options.items()]
    return applied(with_options(head or named_function(name), below), inside), Binding.ATOM


def _option(p: Any, key: str, value: Any) -> Box:
    """What stands below a function: ``col`` for down each column, a word for what is so, and else ``k = -1``."""
    if key == "axis" and value == -2:
        return COLUMNS
    if key == "axis" and value == -1:
        return ROWS
    return Text(key) if value is True else row(Text(key), _EQUALS, p.scalar(value))


def told_axis(p: Any, x: Any, axis: int) -> int | None:
    """The axis of a function where it is said: the last is not, but in a column that is printed as a vector is."""
    column = not p.code and x.rank > 1 and x.shape[-1] == 1 != x.shape[-2]
    return None if axis == -1 and not column else axis


def with_options(head: Box, below: Iterable[Box]) -> Box:
    """A function with what is said below it, next to what is below it already."""
    own = [head.below] if isinstance(head, Script) and head.below is not None else []
    base = head.base if own and isinstance(head, Script) else head
    listed = [*own, *below]
    return Script(base, commas(listed)) if listed else base


def source(name: str, *arguments: Box) -> Box:
    """A call in NumPy text."""
    return applied(Function(Code(name)), arguments)


def by_indices(entry: Box, indices: Sequence[Box], limits: Sequence[Box]) -> Box:
    r"""A tensor by an entry, ``[X_{j i}]_{i j}``; how far an index runs may be told, ``[x_{i}]_{i j : j < n}``."""
    told = [Sign(":", "relation"), commas(limits)] if limits else []
    return Script(Fence(entry, "[", "]"), row(subscripts(indices), *told))


def times(p: Any, shape: Sequence[Any]) -> Box:
    r"""Sizes as in ``T \times d``."""
    return sizes_apart(shape, map(p.scalar, shape))


def sizes_apart(shape: Sequence[Any], boxes: Iterable[Box]) -> Box:
    """The boxes of sizes with signs between them, where a sum among several keeps together."""
    sums = [len(shape) > 1 and getattr(size, "is_Add", False) for size in shape]
    return separated(Sign("×", "product"), (Fence(x) if add else x for add, x in zip(sums, boxes, strict=True)))


def fenced(written: Written, at_least: int, alone: bool = False) -> Box:
    """What is written, between parentheses if it binds less tightly than its place needs.

    ``alone``: next to an entrywise product, a matrix product keeps its parentheses though it binds tighter.
    """
    box, binding = written
    return box if binding >= at_least and not (alone and binding == Binding.PRODUCT) else Fence(box)


# --- columns and rows ---


def transposed(base: Box) -> Box:
    """A base that is an atom, transposed."""
    return raised(base, TRANSPOSED)


def flipped(p: Any, x: Any) -> Written:
    """The transpose of what is written for a tensor: of a transpose its base, of ``A^T x`` the row ``x^T A``."""
    coefficient, rest = _split_scalar(x)
    if coefficient is not ONE:
        return scaled(p, coefficient, rest, flipped(p, rest))
    box, binding = p.unfenced(x)
    if (base := without_transpose(box)) is not None:
        return base, Binding.ATOM
    if isinstance(box, Row) and x.op.name in ("matmul", "sum"):
        *others, last = box.parts
        bases = [without_transpose(factor) for factor in reversed(others)]
        if None not in bases:
            return juxtaposed(transposed(last), *(base for base in bases if base is not None)), Binding.PRODUCT
    return transposed(fenced((box, binding), Binding.ATOM)), Binding.POWER


def without_transpose(box: Box) -> Box | None:
    """What stands below the mark of a transpose, or None where there is none."""
    match box:
        case Differential(of=inside):
            base = without_transpose(inside)
            return None if base is None else Differential(base)
        case Script(above=Sign(mark="⊤")):
            return box.base if box.below is None else Script(box.base, box.below)
        case Script(above=Row(parts=(head, Sign(mark="⊤")))):
            return Script(box.base, box.below, head)
        case Row(parts=(Function() as head, Script(base=Fence(), below=None, above=Sign(mark="⊤")) as last)):
            return Row((head, last.base))
    return None


def is_number(x: Any) -> bool:
    """Whether a tensor has one entry, and is written as a number."""
    return all(size is ONE for size in x.shape)


def repeated(x: Any, node: Any) -> Literal["", "column", "row"]:
    """Whether an operand of an entrywise operation is repeated as a column or as a row of the result."""
    if x.shape == node.shape or node.rank < 2 or is_number(x) or shows_new_axes(x):
        return ""
    if x.rank == 1:
        return "row"
    height, width = (x.shape[axis] is ONE is not node.shape[axis] for axis in (-2, -1))
    return "" if height == width else "row" if height else "column"


def shows_new_axes(x: Any) -> bool:
    """Whether the index of a tensor says itself where its new axes are, as in ``m_{:, new, new}``."""
    return x.op.name == "index" and x.rank > 2 and ("new",) in x.params["items"]


def fitted(p: Any, node: Any, x: Any, at_least: int, alone: bool = False) -> Box:
    """An operand of an operation; one that is broadcast says in which direction."""
    return fenced(_written_out(p, node, x), at_least, alone)


def _written_out(p: Any, node: Any, x: Any) -> Written:
    side = "" if p.code else repeated(x, node)
    if not side:
        return p.unfenced(x)
    coefficient, rest = _split_scalar(x)
    if coefficient is not ONE:
        return scaled(p, coefficient, rest, _written_out(p, node, rest))
    if side == "column":
        return juxtaposed(p.operand(x, Binding.PRODUCT), transposed(ONES)), Binding.PRODUCT
    across = as_row(p, x)
    if node.shape[-2] == 1:
        return across
    return juxtaposed(ONES, fenced(across, Binding.PRODUCT)), Binding.PRODUCT


def as_row(p: Any, x: Any) -> Written:
    """A vector as a row: one of rank 1 is a column otherwise, one of shape (1, n) is a row already."""
    return flipped(p, x) if x.rank == 1 else p.unfenced(x)


def as_column(p: Any, x: Any) -> Written:
    """A vector as a column."""
    return flipped(p, x) if x.rank > 1 and x.shape[-2] == 1 != x.shape[-1] else p.unfenced(x)


def _split_scalar(x: Any) -> tuple[Any, Any]:
    """A number that is written in front, and what is behind it."""
    if x.op.name == "multiply" and (value := x.inputs[0].params.get("formula")) is not None and not x.inputs[0].rank:
        return value, x.inputs[1]
    return sympy.S.One, x


def minus(kind: SignKind, code: bool) -> Sign:
    return Sign("-" if code else "−", kind)


def _over(p: Any, coefficient: Any, below: Any) -> Written:
    """A number over a tensor: ``2 / X``."""
    if p.code:
        right = p.operand(below, Binding.PRODUCT + 1)
        return row(p.factor(coefficient), Sign("/", "product"), right), Binding.PRODUCT
    if not below.rank:
        return Fraction(p.scalar(coefficient), p.operand(below, Binding.OR)), Binding.FRACTION
    right = p.operand(below, Binding.HADAMARD + 1, alone=True)
    return row(p.factor(coefficient), Sign("⊘", "product"), right), Binding.HADAMARD


def scaled(p: Any, coefficient: Any, x: Any, written: Written | None = None) -> Written:
    r"""A number times a tensor: ``2 * X``, ``X / sqrt(d)``, ``\frac{X}{\sqrt{d}}``; a minus sign goes in front.

    ``written`` is what stands for the tensor in mathematics where it is not written as it is.
    """
    if coefficient.could_extract_minus_sign():
        positive, binding = scaled(p, -coefficient, x, written)
        # in text, -a @ b would read as (-a) @ b
        safe = binding > Binding.SUM and (not p.code or x.op.name != "matmul" or _begins_with_digit(positive))
        return row(minus("prefix", p.code), positive if safe else Fence(positive)), Binding.SUM
    if coefficient is ONE:
        return written or p.unfenced(x)
    if written is None and x.op.name == "divide" and x.inputs[0].params.get("formula") == 1:
        return _over(p, coefficient, x.inputs[1])
    above, below = _fraction(coefficient)
    return _scaled_code(p, above, below, x) if p.code else _scaled(p, above, below, written or p.unfenced(x))


def _scaled(p: Any, above: Any, below: Any, written: Written) -> Written:
    number = [] if above is ONE else [p.factor(above)]
    if below is ONE:
        return juxtaposed(*number, fenced(written, Binding.HADAMARD)), min(written[1], Binding.PRODUCT)
    inside = fenced(written, Binding.HADAMARD if number else Binding.OR)
    return Fraction(juxtaposed(*number, inside), p.scalar(below)), Binding.FRACTION


def _scaled_code(p: Any, above: Any, below: Any, x: Any) -> Written:
    entrywise = x.op.name != "matmul"  # 2 * a @ b would read as (2 * a) @ b
    written = p.operand(x, Binding.PRODUCT if above is ONE or entrywise else Binding.FRACTION)
    if above is not ONE:
        written = row(p.factor(above), Sign("*", "product"), written)
    return (written if below is ONE else row(written, Sign("/", "product"), p.factor(below))), Binding.PRODUCT


def _begins_with_digit(box: Box) -> bool:
    while isinstance(box, Row):
        box = box.parts[0]
    return isinstance(box, Code) and box.source[0].isdigit()
