"""Spelled-out normalisers, read as the operations that they are: those are stable, and have closed derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import sympy

from ..core.node import Tensor, with_inputs
from ..ops.arithmetic import add, add_op, divide, divide_op, multiply, multiply_op, negative, split_scalar, subtract
from ..ops.broadcasting import expand_axes, sum_op
from ..ops.index import index_op
from ..ops.leaves import constant, definition, is_named, scalar_value, variable
from ..ops.pointwise import exp_op, log1p_op, log_op, power_op, rsqrt_op, sigmoid_op, softplus_op, sqrt_op
from ..ops.rows import logsumexp_op, mean_op, softmax_op


def normaliser(node: Tensor, inputs: tuple[Tensor, ...]) -> Tensor | None:
    """The stable operation that a spelled-out formula is, or None.

    ``log(sum(exp(z)))`` is logsumexp, ``exp(z) / rowsum(exp(z))`` softmax, ``a / (1 + exp(x))`` ``a sigmoid(-x)``,
    ``log(c + k exp(x))`` a shifted softplus, and the logarithms of softmax, sigmoid and ``1 - sigmoid`` are written by
    these. Named parts are looked through. ``inputs`` stand in for the node's own.
    """
    if node.op is log_op:
        return _log(definition(inputs[0]))
    if node.op is log1p_op and (weights := definition(inputs[0])).op is exp_op:
        return softplus_op(weights.inputs[0])
    if node.op is power_op and scalar_value(inputs[1]) == -1:
        return _quotient(definition(inputs[0]), constant(formula=sympy.S.One), inputs[0])
    return _quotient(definition(inputs[0]), *inputs) if node.op is divide_op else None


def _log(x: Tensor) -> Tensor | None:
    c, rest = split_scalar(x)
    if c != 1:
        read = _log(definition(rest)) if rest is not None and c.is_positive else None
        return None if read is None else add(sympy.log(c), read)
    if x.op is exp_op:
        return x.inputs[0]
    if x.op is sum_op or x.op is mean_op:
        k, weights = split_scalar(definition(x.inputs[0]))
        if weights is None or not k.is_positive or definition(weights).op is not exp_op:
            return None
        z, axes = definition(weights).inputs[0], x.params["axes"]
        count = sympy.Mul(*(z.shape[axis] for axis in axes)) if x.op is mean_op else 1
        return add(logsumexp_op(z, **x.params), sympy.log(k / count))
    if x.op is softmax_op and len(x.inputs) == 1 and not x.inputs[0].holds_minus_infinity:
        return subtract(x.inputs[0], logsumexp_op(x.inputs[0], axes=x.params["axes"], keepdims=True))
    if x.op is sigmoid_op:
        return negative(softplus_op(negative(x.inputs[0])))
    number, k, share = _beside_number(x)
    if share is None:
        return None
    if share.op is exp_op and number.is_positive and k.is_positive:
        return add(softplus_op(add(share.inputs[0], sympy.log(k / number))), sympy.log(number))
    one_less = share.op is sigmoid_op and number == -k and number.is_positive
    return add(negative(softplus_op(share.inputs[0])), sympy.log(number)) if one_less else None


def _beside_number(x: Tensor) -> tuple[sympy.Expr, sympy.Expr, Tensor | None]:
    """``c + k y`` as c, k and y; no y if this is no such sum."""
    if x.op is not add_op:
        return sympy.S.Zero, sympy.S.Zero, None
    a, b = x.inputs if scalar_value(x.inputs[0]) is not None else x.inputs[::-1]
    number = scalar_value(a)
    k, rest = split_scalar(definition(b))
    return (sympy.S.Zero, k, None) if number is None or rest is None else (number, k, definition(rest))


def _quotient(weights: Tensor, above: Tensor, below: Tensor) -> Tensor | None:
    number, k, lifted = _beside_number(definition(below))
    if number == k == 1 and lifted is not None and lifted.op is exp_op:
        x = lifted.inputs[0]
        return sigmoid_op(x) if weights is lifted else multiply(above, sigmoid_op(negative(x)))
    axis = _summed_axis(definition(below), weights) if weights.op is exp_op else None
    return None if axis is None else softmax_op(weights.inputs[0], axes=(axis,), empty="zero")


def _summed_axis(below: Tensor, weights: Tensor) -> int | None:
    """The axis over which ``below`` sums the weights, if it is that sum lined up with them for broadcasting."""
    named = below.inputs[0] if below.op is index_op else below
    total = definition(named)
    if total.op is not sum_op or definition(total.inputs[0]) is not weights or len(total.params["axes"]) != 1:
        return None
    return total.params["axes"][0] if is_lined_up(below, named) else None


def is_lined_up(x: Tensor, total: Tensor) -> bool:
    """Whether the axes over which a total reduces stand where they were, by the total itself or by new ones in it."""
    reduced = definition(total)
    axes, rank = reduced.params["axes"], reduced.inputs[0].rank
    if x is total:
        return reduced.params["keepdims"] or axes == tuple(range(-rank, len(axes) - rank))
    return not reduced.params["keepdims"] and x is expand_axes(total, axes)


def without_names(node: Tensor, bare: Mapping[Tensor, Tensor]) -> Tensor:
    """The node on bare inputs: a name stands for what it names, and a normaliser is read as what it is."""
    if is_named(node) and node.op is not variable:
        return bare[node.inputs[0]]
    read = normaliser(node, tuple(bare[x] for x in node.inputs))
    return with_inputs(node, bare) if read is None else read


# --- norms ---


class Squares(NamedTuple):
    """``factor * sum(x**2) + eps`` along rows, the sum or the mean with its axes kept."""

    x: Tensor
    total: Tensor  # the sum or mean of the squares
    factor: sympy.Expr  # in front of it
    eps: sympy.Expr
    between: tuple[Tensor, ...]  # what stands between x and the whole


class Norm(NamedTuple):
    """A row brought to a common size: ``x * rsqrt(v)``, or ``x / sqrt(v)``, of ``v = rowmean(x**2) + eps``."""

    x: Tensor
    root: Tensor  # rsqrt(v) or sqrt(v), by the name that it has
    divides: bool
    squares: Squares

    def slope(self, t: Tensor, y: Tensor) -> Tensor:
        """``r * (t - y * rowmean(y * t))``: no power of r is larger than the result, so nothing overflows between."""
        total = self.squares.total
        along = multiply(self.squares.factor, total.op(multiply(y, t), axes=total.params["axes"], keepdims=True))
        across = subtract(t, multiply(y, along))
        return divide(across, self.root) if self.divides else multiply(self.root, across)


def norm(node: Tensor) -> Norm | None:
    """The norm that a product or a quotient is, whose derivative is better known as a whole."""
    divides = node.op is divide_op
    if not divides and node.op is not multiply_op:
        return None
    for x, root in (node.inputs,) if divides else (node.inputs, node.inputs[::-1]):
        below = under_root(root, 1 if divides else -1)
        found = None if below is None else squares(below)
        if found is not None and found.x is x:
            return Norm(x, root, divides, found)
    return None


def under_root(root: Tensor, sign: int) -> Tensor | None:
    """``v`` of ``sqrt(v)``, or of its inverse."""
    body = definition(root)
    if body.op is divide_op and scalar_value(body.inputs[0]) == 1:
        return under_root(body.inputs[1], -sign)
    if body.op is (sqrt_op if sign > 0 else rsqrt_op):
        return body.inputs[0]
    half = body.op is power_op and scalar_value(body.inputs[1]) == sympy.Rational(sign, 2)
    return body.inputs[0] if half else None


def squares(below: Tensor) -> Squares | None:
    """``below`` as a sum or mean of squares along rows, with a factor and a number added or without."""
    whole = definition(below)
    terms = whole.inputs if whole.op is add_op else (whole,)
    numbers = [value for a in terms if (value := scalar_value(a)) is not None]
    rest = [a for a in terms if scalar_value(a) is None]
    if len(rest) != 1:
        return None
    scaled = definition(rest[0])
    factor, inner = split_scalar(scaled)
    total = scaled if inner is None else definition(inner)
    if total.op not in (sum_op, mean_op) or not total.params["keepdims"]:
        return None
    square = definition(total.inputs[0])
    x = squared(square)
    between = (below, whole, *terms, scaled, *scaled.inputs, total, total.inputs[0], square)
    return None if x is None else Squares(x, total, factor, sympy.Add(*numbers), between)


def squared(x: Tensor) -> Tensor | None:
    """What this is the square of."""
    if x.op is power_op and scalar_value(x.inputs[1]) == 2:
        return x.inputs[0]
    return x.inputs[0] if x.op is multiply_op and x.inputs[0] is x.inputs[1] else None
