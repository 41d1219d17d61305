"""What a derivative is tidied by: a small table, so that results read as a person would write them.

Each rule takes the inputs of one operation and gives the same tensor in a plainer form, or None. Scalar factors come
out to the front, and the transpose of a product becomes a product of transposes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import sympy

from .operation import Operation
from .ops.arithmetic import (
    add,
    add_op,
    divide,
    divide_op,
    multiply,
    multiply_op,
    split_scalar,
)
from .ops.broadcasting import broadcast_to_op
from .ops.contraction import (
    diag_op,
    diagonal_op,
    einsum_op,
    matmul_of,
    matmul_op,
    outer_of,
    outer_op,
    trace_op,
)
from .ops.index import embed_op, index, index_op
from .ops.layout import (
    matrix_transpose,
    merge_axis_op,
    repeat_op,
    split_axis_op,
    transpose,
    transpose_op,
)
from .ops.rows import mean_op, sum_op
from .tensor import Tensor, topological

Rule = Callable[..., Tensor | None]


def _scalar_out(op: Operation) -> Rule:
    """``f(c x, y) -> c f(x, y)`` for an operation that is linear in each input."""

    def rule(*inputs: Tensor, **params: Any) -> Tensor | None:
        coefficients, rests = zip(*map(split_scalar, inputs), strict=True)
        total = sympy.Mul(*coefficients)
        if total == 1 or any(rest is None for rest in rests):
            return None
        return multiply(total, TABLE_AGAIN[op](*rests, **params))

    return rule


def _multiply(a: Tensor, b: Tensor) -> Tensor:
    """``(c a) * (k b) -> c k (a * b)``, and ``rowsum(x) / n -> rowmean(x)``."""
    product = multiply(a, b)
    c, rest = split_scalar(product)
    spread = rest is not None and rest.op is broadcast_to_op
    total = rest.inputs[0] if rest is not None and spread else rest
    if total is None or total.op is not sum_op or c.is_Rational:
        return product
    x, axes = total.inputs[0], total.params["axes"]
    share = c * sympy.Mul(*(x.shape[axis] for axis in axes))
    if not share.is_Rational:
        return product
    average = mean_op(x, **total.params)
    return multiply(share, broadcast_to_op(average, **rest.params) if spread and rest is not None else average)


def _divide(a: Tensor, b: Tensor) -> Tensor:
    """``(k a) / (c b) -> (k / c) (a / b)``."""
    c, rest = split_scalar(b)
    return divide(a, b) if rest is None or c == 1 else multiply(1 / c, divide(a, rest))


def _transpose(x: Tensor, order: tuple[int, ...]) -> Tensor | None:
    """``(a b)^T -> b^T a^T`` and ``(a b^T)^T -> b a^T``; scalar factors come out."""
    c, rest = split_scalar(x)
    if rest is not None and c != 1:
        plainer = _transpose(rest, order)
        return multiply(c, transpose(rest, order) if plainer is None else plainer)
    if order == (-1, -2) and x.op is matmul_op and x.params["core"] == (2, 2):
        a, b = x.inputs
        return matmul_of(matrix_transpose(b), matrix_transpose(a), (2, 2))
    return outer_of(x.inputs[1], x.inputs[0]) if order == (-1, -2) and x.op is outer_op else None


def _index(x: Tensor, items: tuple[Any, ...]) -> Tensor | None:
    """``rowsum(x)[..., 0] -> sum(x, axis=-1)``; scalar factors come out."""
    c, rest = split_scalar(x)
    if rest is None:
        return None
    kept = rest.op in (sum_op, mean_op) and rest.params == {"axes": (-1,), "keepdims": True}
    if kept and items == (("at", sympy.S.Zero),):
        return multiply(c, rest.op(rest.inputs[0], axes=(-1,), keepdims=False))
    return None if c == 1 else multiply(c, index(rest, items))


_LINEAR = (
    matmul_op, outer_op, einsum_op, sum_op, mean_op, embed_op, split_axis_op, merge_axis_op, repeat_op,
    diag_op, diagonal_op, trace_op, broadcast_to_op,
)  # fmt: skip
TABLE_AGAIN: Mapping[Operation, Callable[..., Tensor]] = {op: op for op in _LINEAR}
TABLE: Mapping[Operation, Rule] = {
    **{op: _scalar_out(op) for op in _LINEAR},
    index_op: _index,
    add_op: add,
    multiply_op: _multiply,
    divide_op: _divide,
    transpose_op: _transpose,
}


def tidy(x: Tensor, done: MutableMapping[Tensor, Tensor]) -> Tensor:
    """The tensor with the table applied from the inputs up; ``done`` says what stays or has been tidied already."""
    for node in topological([x], stop=done):
        if node in done:
            continue
        inputs = tuple(done[i] for i in node.inputs)
        rule = TABLE.get(node.op)
        new = rule(*inputs, **node.params) if rule else None
        if new is None:
            new = node if inputs == node.inputs else node.op(*inputs, **node.params)
        done[node] = new
        done.setdefault(new, new)
    return done[x]

