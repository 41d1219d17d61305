"""How operations are written, in LaTeX and in NumPy-like text, from one declaration.

A notation is a function ``(printer, node) -> (string, binding)``. ``binding`` says how tightly the string holds
together; ``printer.operand(x, at_least)`` puts parentheses where an operand binds less tightly than its place needs.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import sympy

from ..core.operation import Notation

Written = tuple[str, int]


class Binding(IntEnum):
    """From loose to tight. Text has one level for ``*``, ``/`` and ``@``; LaTeX keeps them apart."""

    OR = 1
    AND = 2
    COMPARE = 3
    SUM = 4
    HADAMARD = 5
    PRODUCT = 6
    FRACTION = 7
    POWER = 8
    ATOM = 9


def function(text: str, latex: str | None = None) -> Notation:
    """``name(x, y)``, in LaTeX by its macro or as an operator name."""
    return lambda p, node: call(p, text, node, latex)


def enclosed(text: str, before: str, after: str) -> Notation:
    """``name(x)``, in LaTeX between two marks, which need no parentheses."""

    def notation(p: Any, node: Any) -> Written:
        inside = p.operand(node.inputs[0], Binding.OR)
        return (f"{before}{inside}{after}" if p.latex else f"{text}({inside})"), Binding.ATOM

    return notation


def infix(text: str, latex: str, binding: Binding, associative: bool = True) -> Notation:
    """``a + b``: the left operand may bind as loosely as the operator, a right one of its own kind is nested."""
    left = binding if associative else binding + 1

    def notation(p: Any, node: Any) -> Written:
        a, b = node.inputs
        if not p.latex and binding < Binding.COMPARE:  # in Python, & and | bind tighter than comparisons
            sides = (
                p.operand(x, Binding.SUM if p.binding(x) == Binding.COMPARE else least)
                for x, least in ((a, left), (b, binding + 1))
            )
            return f" {text} ".join(sides), binding
        return f"{p.operand(a, left)} {latex if p.latex else text} {p.operand(b, binding + 1)}", binding

    return notation


def call(p: Any, name: str, node: Any, latex: str | None = None, **options: Any) -> Written:
    """``name(x, axis=-1)`` in both dialects, for operations whose matrix form is a named function.

    What is None is not written; ``latex`` is a macro, where there is one.
    """
    options = {key: value for key, value in options.items() if value is not None}
    inside = [p.operand(x, Binding.OR) for x in node.inputs]
    if p.latex:
        below = ", ".join(rf"\text{{{key}}} = {p.scalar(value)}" for key, value in options.items())
        below = f"_{{{below}}}" if below else ""
        operator = latex or rf"\operatorname{{{name}}}".replace("_", r"\_")
        if latex and "_" in latex and below:  # which has a subscript of its own
            operator = f"{{{latex}}}"
        return rf"{operator}{below}\left({', '.join(inside)}\right)", Binding.ATOM
    inside += [f"{key}={p.scalar(value)}" for key, value in options.items()]
    return f"{name}({', '.join(inside)})", Binding.ATOM


def raised(base: str, mark: str) -> str:
    r"""A base with a superscript, ``X^{\top}``, between braces if it has one already."""
    return f"{{{base}}}^{{{mark}}}" if "^" in base or "'" in base else f"{base}^{{{mark}}}"


def _over(p: Any, coefficient: Any, below: Any) -> Written:
    """A number over a tensor: ``2 / X``."""
    if not p.latex:
        return f"{p.factor(coefficient)} / {p.operand(below, Binding.PRODUCT + 1)}", Binding.PRODUCT
    if not below.rank:
        return rf"\frac{{{p.scalar(coefficient)}}}{{{p.operand(below, Binding.OR)}}}", Binding.FRACTION
    return rf"{p.factor(coefficient)} \oslash {p.operand(below, Binding.HADAMARD + 1, alone=True)}", Binding.HADAMARD


def scaled(p: Any, coefficient: Any, x: Any) -> Written:
    r"""A number times a tensor: ``2 * X``, ``X / sqrt(d)``, ``\frac{X}{\sqrt{d}}``; a minus sign goes in front."""
    if coefficient.could_extract_minus_sign():
        written, binding = scaled(p, -coefficient, x)
        if p.latex:
            return (f"-{written}" if binding > Binding.SUM else rf"-\left({written}\right)"), Binding.SUM
        safe = written[0].isdigit() or x.op.name != "matmul"  # -a @ b would read as (-a) @ b
        safe = safe and binding > Binding.SUM
        return (f"-{written}" if safe else f"-({written})"), Binding.SUM
    if coefficient == 1:
        return p.operand(x, Binding.OR), p.binding(x)
    if x.op.name == "divide" and x.inputs[0].params.get("formula") == 1:
        return _over(p, coefficient, x.inputs[1])
    above, below = sympy.fraction(coefficient)
    if p.latex:
        number = "" if above == 1 else p.factor(above) + r" \, "
        if below == 1:
            return number + p.operand(x, Binding.HADAMARD), min(p.binding(x), Binding.PRODUCT)
        inside = p.operand(x, Binding.HADAMARD if number else Binding.OR)
        return rf"\frac{{{number}{inside}}}{{{p.scalar(below)}}}", Binding.FRACTION
    entrywise = x.op.name != "matmul"  # 2 * a @ b would read as (2 * a) @ b
    written = p.operand(x, Binding.PRODUCT if above == 1 or entrywise else Binding.FRACTION)
    if above != 1:
        written = f"{p.factor(above)} * {written}"
    return (written if below == 1 else f"{written} / {p.factor(below)}"), Binding.PRODUCT
