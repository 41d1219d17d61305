"""Expressions in which a size is another one, also where operations state it: the last place, blocks, a formula."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy

from ...core.node import Tensor, topological, with_inputs
from ...core.sizes import same_shape
from ...errors import ShapeError, SymattnError
from ...ops.leaves import constant, from_index_op

Numbers = Mapping[sympy.Expr, sympy.Expr]
_FORMULAS = (constant, from_index_op)


def numbers_of(T: sympy.Expr, N: sympy.Symbol, times: Sequence[sympy.Expr]) -> dict[sympy.Expr, sympy.Expr]:
    """What the numbers of a size become, and of some times as much: lengths, last places and rates."""
    if T.is_Symbol:
        return {T: N}
    found: dict[sympy.Expr, sympy.Expr] = {}
    for k in (*times, sympy.S.One):
        old, new = T * k, N * k
        found |= {old - 1: new - 1, 1 - old: 1 - new, 1 / old: 1 / new, -1 / old: -1 / new, old: new, -old: -new}
    return found


def restated(
    roots: Sequence[Tensor], nodes: Mapping[Tensor, Tensor], numbers: Numbers, in_formulas: bool
) -> list[Tensor]:
    """The roots with ``nodes`` replaced, and numbers that operations on these state; so in formulas, if asked for.

    Raises ShapeError where that has no meaning.
    """
    back = {new: old for old, new in numbers.items() if new.is_Symbol}
    new: dict[Tensor, Tensor] = {}
    for node in topological(roots, stop=nodes):
        if node in nodes:
            new[node] = nodes[node]
        elif node.op in _FORMULAS:
            new[node] = in_numbers(node, numbers) if in_formulas else node
        elif all(new[x] is x for x in node.inputs):
            new[node] = node
        else:
            new[node] = _on_others(node, new, numbers, back)
    return [new[root] for root in roots]


def in_numbers(x: Tensor, numbers: Numbers) -> Tensor:
    """What a formula gives, with other numbers in it."""
    return x.op(**{**x.params, "formula": x.params["formula"].xreplace(numbers)})


def _on_others(node: Tensor, new: Mapping[Tensor, Tensor], numbers: Numbers, back: Numbers) -> Tensor:
    """An operation on other inputs, with the first parameters that fit these."""
    for changed in _ways(node, numbers):
        try:
            made = with_inputs(node, new, **changed)
        except SymattnError:
            continue
        if same_shape(tuple(size.xreplace(back) for size in made.shape), node.shape):
            return made
    raise ShapeError(f"{node.brief()} has no meaning for another size")


def _ways(node: Tensor, numbers: Numbers) -> Iterator[dict[str, Any]]:
    """Parameters with all numbers replaced, with the first one in each of them, and as they are."""
    for most in (None, 1):
        found = {name: _replaced(value, numbers, most) for name, value in node.params.items()}
        yield {name: value for name, value in found.items() if value != node.params[name]}
    yield {}


def _replaced(value: Any, numbers: Numbers, most: int | None) -> Any:
    """A size, a place or several, in which up to so many are replaced."""
    if isinstance(value, sympy.Basic):
        return value.xreplace(numbers)
    if not isinstance(value, tuple):
        return value
    parts = list[Any]()
    for part in value:
        left = None if most is None else most - sum(a != b for a, b in zip(parts, value, strict=False))
        parts.append(part if left == 0 else _replaced(part, numbers, left))
    return tuple(parts)
