"""How operations are written, in mathematics and in NumPy-like text, from one declaration.

A notation is a function ``(printer, node) -> (box, binding)``. ``binding`` says how tightly the box holds together;
``printer.operand(x, at_least)`` puts parentheses where an operand binds less tightly than its place needs, and
``printer.code`` says that NumPy text is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

import sympy

from ..core.boxes import (
    Box,
    Code,
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
)
from ..core.boxes import function as named_function
from ..core.operation import Notation

Written = tuple[Box, int]

TRANSPOSED = Sign("⊤")
ONES = Name("1", "bold")
_EQUALS = Sign("=", "relation")


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
        return row(p.operand(a, left), between, p.operand(b, binding + 1)), binding

    return notation


def call(p: Any, name: str, node: Any, head: Box | None = None, **options: Any) -> Written:
    """``name(x, axis=-1)`` in both dialects, for operations whose matrix form is a named function.

    What is None is not written; ``head`` is how mathematics writes the function, where that is not by its name.
    """
    options = {key: value for key, value in options.items() if value is not None}
    inside = [p.operand(x, Binding.OR) for x in node.inputs]
    if p.code:
        inside += [row(Code(f"{key}="), p.scalar(value)) for key, value in options.items()]
        return source(name, *inside), Binding.ATOM
    operator = head or named_function(name)
    if options:
        below = commas(row(Text(key), _EQUALS, p.scalar(value)) for key, value in options.items())
        operator = Script(operator, below)
    return applied(operator, inside), Binding.ATOM


def source(name: str, *arguments: Box) -> Box:
    """A call in NumPy text."""
    return applied(Function(Code(name)), arguments)


def times(p: Any, shape: Iterable[Any]) -> Box:
    r"""Sizes as in ``T \times d``."""
    return separated(Sign("×", "product"), map(p.scalar, shape))


def transposed(base: Box) -> Box:
    """A base that is an atom, transposed."""
    return raised(base, TRANSPOSED)


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


def scaled(p: Any, coefficient: Any, x: Any) -> Written:
    r"""A number times a tensor: ``2 * X``, ``X / sqrt(d)``, ``\frac{X}{\sqrt{d}}``; a minus sign goes in front."""
    if coefficient.could_extract_minus_sign():
        written, binding = scaled(p, -coefficient, x)
        # in text, -a @ b would read as (-a) @ b
        safe = binding > Binding.SUM and (not p.code or x.op.name != "matmul" or _begins_with_digit(written))
        return row(minus("prefix", p.code), written if safe else Fence(written)), Binding.SUM
    if coefficient == 1:
        return p.operand(x, Binding.OR), p.binding(x)
    if x.op.name == "divide" and x.inputs[0].params.get("formula") == 1:
        return _over(p, coefficient, x.inputs[1])
    above, below = sympy.fraction(coefficient)
    return _scaled_code(p, above, below, x) if p.code else _scaled(p, above, below, x)


def _scaled(p: Any, above: Any, below: Any, x: Any) -> Written:
    number = [] if above == 1 else [p.factor(above)]
    if below == 1:
        return juxtaposed(*number, p.operand(x, Binding.HADAMARD)), min(p.binding(x), Binding.PRODUCT)
    inside = p.operand(x, Binding.HADAMARD if number else Binding.OR)
    return Fraction(juxtaposed(*number, inside), p.scalar(below)), Binding.FRACTION


def _scaled_code(p: Any, above: Any, below: Any, x: Any) -> Written:
    entrywise = x.op.name != "matmul"  # 2 * a @ b would read as (2 * a) @ b
    written = p.operand(x, Binding.PRODUCT if above == 1 or entrywise else Binding.FRACTION)
    if above != 1:
        written = row(p.factor(above), Sign("*", "product"), written)
    return (written if below == 1 else row(written, Sign("/", "product"), p.factor(below))), Binding.PRODUCT


def _begins_with_digit(box: Box) -> bool:
    while isinstance(box, Row):
        box = box.parts[0]
    return isinstance(box, Code) and box.source[0].isdigit()
