"""Norms of rows whose squares overflow or vanish, of any scale that the dtype has."""

from __future__ import annotations

from typing import Any

import sympy

from ..core.node import Tensor
from ..core.sizes import Shape
from ..graph.canonical import squares
from ..ops.arithmetic import add_op, divide_op, split_scalar
from ..ops.broadcasting import broadcast
from ..ops.leaves import constant, scalar_value
from ..ops.rows import mean_op, sum_op
from .form import axis_option, form


def _of_rows(code: Any, node: Tensor, *operands: str) -> str:
    """A helper of a norm: what it starts from, and how the lengths of the rows are made."""
    aligned = [code.align(x, text, node.rank) for x, text in zip(node.inputs, operands, strict=True)]
    given, divides = node.params["given"], node.params.get("divides", False)
    numbers = [code.scalar(node.params["factor"]), code.scalar(node.params["eps"])]
    centred = [f"{role}={text}" for role, text in zip(("of", "mean"), aligned[given:], strict=False)]
    options = [axis_option(node.params["axes"]), *centred, "divides=True" * divides]
    return code.helper(node.op.name, *aligned[:given], *numbers, *options)


def _over(u: Tensor, root: Tensor, *rows: Tensor, **more: Any) -> Shape:
    return broadcast("the quotient", u, root)


length_op = form("length", shape=lambda x, *of, axes, **more: sum_op(x, axes=axes, keepdims=True).shape, numpy=_of_rows)
unit_rows_op = form("unit_rows", shape=_over, numpy=_of_rows)
over_length_op = form("over_length", shape=_over, numpy=_of_rows)


def length_of(below: Tensor) -> Tensor | None:
    """The square root of what is a sum of squares, of which none overflows."""
    found = squares(below)
    if found is None or found.eps.is_infinite:
        return None
    axes, x = found.total.params["axes"], found.x
    count = sympy.Mul(*(x.shape[axis] for axis in axes)) if found.total.op is mean_op else 1
    return length_op(x, *_centred_from(x, axes), axes=axes, factor=found.factor / count, eps=found.eps, given=1)


def _centred_from(x: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """What x is, less its own mean, and that mean."""
    if x.op is not add_op:
        return ()
    whole, (c, mean) = x.inputs[0], split_scalar(x.inputs[1])
    if c != -1 or mean is None or mean.op is not mean_op or mean.inputs[0] is not whole:
        return ()
    return (whole, mean) if mean.params == {"axes": axes, "keepdims": True} else ()


def inverse_root(x: Tensor) -> Tensor | None:
    root = length_of(x)
    return None if root is None else divide_op.node(constant(formula=sympy.S.One), root)


def root_power(x: Tensor, exponent: Tensor) -> Tensor | None:
    rule = {sympy.Rational(1, 2): length_of, sympy.Rational(-1, 2): inverse_root}.get(scalar_value(exponent))
    return None if rule is None else rule(x)


def by_length(u: Tensor, root: Tensor) -> Tensor | None:
    """``u * r`` or ``u / length``, of which the result may be representable alone."""
    divides = root.op is length_op
    inverts = root.op is divide_op and scalar_value(root.inputs[0]) == 1
    length = root.inputs[1] if inverts else root
    if length.op is not length_op:
        return None
    (x, *of), params = length.inputs, {**length.params, "divides": divides}
    if u is x:
        return unit_rows_op(x, root, *of, **{**params, "given": 2})
    return over_length_op(u, root, x, *of, **{**params, "given": 3})
