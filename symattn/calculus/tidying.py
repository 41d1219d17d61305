"""What a derivative is tidied by: a small table, so that results read as a person would write them.

Each rule takes the inputs of one operation and gives the same tensor in a plainer form, or None. Scalar factors come
out to the front, and the transpose of a product becomes a product of transposes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, MutableMapping
from typing import Any

import sympy

from ..core.node import Tensor, topological, with_inputs
from ..core.operation import Operation
from ..core.sizes import same_shape
from ..ops.arithmetic import add, add_op, divide, divide_op, multiply, multiply_op, split_all, split_scalar, subtract
from ..ops.broadcasting import broadcast, broadcast_to_op, sum_op
from ..ops.contraction import diag_op, diagonal_op, einsum_op, matmul_of, matmul_op, outer_op, trace_op
from ..ops.gather import shift_op, tile_op
from ..ops.index import embed_op, index, index_op, reads_all
from ..ops.layout import matrix_transpose, merge_axis_op, repeat_op, split_axis_op, transpose_op
from ..ops.leaves import is_zero, scalar_value, zeros
from ..ops.logic import where_op
from ..ops.rows import mean_op
from ..ops.scans import cumsum_op, tril_op, triu_op
from .identities import IDENTITIES

Rule = Callable[..., Tensor | None]


def _scalar_out(op: Operation) -> Rule:
    """``f(c x, y) -> c f(x, y)`` for an operation that is linear in each input."""

    def rule(*inputs: Tensor, **params: Any) -> Tensor | None:
        found = split_all(inputs)
        if found is None:
            return None
        total, rests = found
        if total == 0:
            return zeros(*op.node(*inputs, **params).shape)
        identity = IDENTITIES.get(op)
        plain = identity(*rests, **params) if identity else None
        return multiply(total, op(*rests, **params) if plain is None else plain)

    return rule


def _multiply(a: Tensor, b: Tensor) -> Tensor:
    """``(c a) * (k b) -> c k (a * b)``, and ``rowsum(x) / n -> rowmean(x)``."""
    product = multiply(a, b)
    c, rest = split_scalar(product)
    if c == 0:
        return zeros(*product.shape)
    if rest is not None and rest.op is multiply_op:
        for factor, other in (rest.inputs, rest.inputs[::-1]):  # a * (1 / b) -> a / b
            if other.op is divide_op and scalar_value(other.inputs[0]) == 1:
                return multiply(c, divide(factor, other.inputs[1]))
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


def _add(a: Tensor, b: Tensor) -> Tensor:
    """``c x - c y -> c (x - y)`` for a scalar c."""
    (c, x), (k, y) = split_scalar(a), split_scalar(b)
    if x is None or y is None or c in (1, -1) or k not in (c, -c):
        return add(a, b)
    return multiply(c, add(x, y) if k == c else subtract(x, y))


def _where(chosen: Tensor, a: Tensor, b: Tensor) -> Tensor | None:
    """``where(m, c, 0) -> c m`` for a scalar c."""
    c, rest = split_scalar(a)
    spread = rest.inputs[0] if rest is not None and rest.op is broadcast_to_op else rest
    is_scalar = spread is None or spread.params.get("formula") == 1
    if not is_scalar or not is_zero(b) or c.is_infinite:
        return None
    return multiply(c, chosen) if same_shape(broadcast("where", chosen, a, b), chosen.shape) else None


def _divide(a: Tensor, b: Tensor) -> Tensor:
    """``(k a) / (c b) -> (k / c) (a / b)``."""
    c, rest = split_scalar(b)
    return divide(a, b) if rest is None or c == 1 else multiply(1 / c, divide(a, rest))


def _turned(x: Tensor, forward: Collection[Tensor]) -> Tensor:
    """``(a b)^T -> b^T a^T`` and ``(a b^T)^T -> b a^T``, all the way down; scalar factors come out.

    The transpose of a ``forward`` product stays: it is at hand, while its factors would be multiplied anew.
    """
    c, rest = split_scalar(x)
    if rest is None or (c == 1 and x.op is not matmul_op and x.op is not outer_op):
        return matrix_transpose(x)

    def factors(y: Tensor) -> tuple[Tensor, ...]:
        apart = y.op is matmul_op and y.params["core"] == (2, 2) and y not in forward
        return y.inputs if apart else ()

    turned: dict[Tensor, Tensor] = {}
    for node in topological([rest], inputs=factors):
        if pair := factors(node):
            a, b = pair
            turned[node] = matmul_of(turned[b], turned[a], (2, 2))
        elif node.op is outer_op and node not in forward:
            turned[node] = outer_op(*node.inputs[::-1])
        else:
            turned[node] = matrix_transpose(node)
    return multiply(c, turned[rest])


def _index(x: Tensor, items: tuple[Any, ...]) -> Tensor | None:
    """``rowsum(x)[..., 0] -> sum(x, axis=-1)``, and of several axes likewise; scalar factors come out."""
    c, rest = split_scalar(x)
    if rest is None:
        return None
    taken = tuple(axis for axis, item in enumerate(items, -len(items)) if item == ("at", sympy.S.Zero))
    kept = rest.op in (sum_op, mean_op) and rest.params == {"axes": taken, "keepdims": True}
    if kept and rest.rank >= len(items) == sum(map(reads_all, items, rest.shape[-len(items) :])) + len(taken):
        return multiply(c, rest.op(rest.inputs[0], axes=taken, keepdims=False))
    return None if c == 1 else multiply(c, index(rest, items))


_LINEAR = (
    matmul_op, outer_op, einsum_op, sum_op, mean_op, embed_op, split_axis_op, merge_axis_op, repeat_op,
    shift_op, tile_op, cumsum_op, tril_op, triu_op,
    transpose_op, diag_op, diagonal_op, trace_op, broadcast_to_op,
)  # fmt: skip
_FACTORS = {multiply_op: 2, matmul_op: 2, outer_op: 2, divide_op: 1}  # how many inputs make it 0 where they are


def _vanishes(op: Operation, inputs: tuple[Tensor, ...]) -> bool:
    """Whether it is 0 by a factor: a derivative is asked for where its function has values."""
    if op is where_op:
        return all(map(is_zero, inputs[1:]))
    count = len(inputs) if op is einsum_op else _FACTORS.get(op, 0)
    return any(map(is_zero, inputs[:count]))


TABLE: Mapping[Operation, Rule] = {
    **{op: _scalar_out(op) for op in _LINEAR},
    index_op: _index,
    add_op: _add,
    multiply_op: _multiply,
    divide_op: _divide,
    where_op: _where,
}


def tidy(x: Tensor, done: MutableMapping[Tensor, Tensor], forward: Collection[Tensor] = ()) -> Tensor:
    """The tensor with the table applied from the inputs up; ``done`` says what stays or has been tidied already."""
    if x in done:
        return done[x]
    for node in topological([x], stop=done):
        if node in done:
            continue
        inputs = tuple(done[i] for i in node.inputs)
        identity, rule = IDENTITIES.get(node.op), TABLE.get(node.op)
        new: Tensor | None = zeros(*node.shape) if _vanishes(node.op, inputs) else None
        if new is None and identity:
            new = identity(*inputs, **node.params)
        if new is None and node.op is transpose_op and node.params["order"] == (-1, -2):
            new = _turned(inputs[0], forward)
        elif new is None and rule:
            new = rule(*inputs, **node.params)
        if new is None:
            new = with_inputs(node, done)
        done[node] = new
        done.setdefault(new, new)
    return done[x]
