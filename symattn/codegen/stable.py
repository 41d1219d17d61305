"""Forms that are exactly equal and no less accurate, chosen in the graph before code is written.

Each rule takes the inputs of one operation and gives a node with the same values, or None. A rule may lose no digit
that the plain form has: it applies to what reads a quantity, never to the quantity that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sympy

from ..core.node import Tensor
from ..core.operation import Operation
from ..core.sizes import Shape
from ..graph.canonical import squared, squares
from ..ops.arithmetic import (
    add_op,
    divide_op,
    maximum,
    multiply,
    multiply_op,
    negative,
    power_op,
    split_scalar,
    subtract,
)
from ..ops.broadcasting import broadcast
from ..ops.index import index_op
from ..ops.leaves import constant, scalar_value
from ..ops.logic import greater_op, where_op
from ..ops.pointwise import erf_op, exp_op, log_op, rsqrt_op, sigmoid_op, sqrt_op, tanh_op
from ..ops.rows import expand_axes, logsumexp_op, mean_op, softmax_op, sum_op
from ..ops.sparse import sparsemax_op, support_sqrt_op
from .form import form

Rule = Callable[..., Tensor | None]


def _axis(axes: tuple[int, ...]) -> str:
    return "" if axes == (-1,) else f"axis={axes[0] if len(axes) == 1 else axes}"


# --- logsumexp ---

log_softmax_op = form(
    "log_softmax",
    shape=lambda z, axes: z.shape,
    numpy=lambda code, node, z: code.helper("log_softmax", z, _axis(node.params["axes"])),
)
largest_op = form(
    "largest",
    shape=logsumexp_op.shape,
    numpy=lambda code, node, z: code.helper(
        "largest", z, _axis(node.params["axes"]), "keepdims=True" if node.params["keepdims"] else ""
    ),
)
logsumexp_less_op = form(
    "logsumexp_less",
    shape=lambda z, x, axes, keepdims: broadcast("the difference", largest_op(z, axes=axes, keepdims=keepdims), x),
    numpy=lambda code, node, z, x: code.helper(
        "logsumexp_less",
        z,
        code.align(node.inputs[1], x, node.rank),
        _axis(node.params["axes"]),
        "keepdims=True" if node.params["keepdims"] else "",
    ),
)


def _add(a: Tensor, b: Tensor) -> Tensor | None:
    """``z - logsumexp(z)`` as log-softmax; in another difference with a logsumexp its maximum is met first."""
    for total, other in ((a, b), (b, a)):
        number = scalar_value(other)
        if number is not None:
            return _from_number(number, total)
        (c, whole), (k, x) = split_scalar(total), split_scalar(other)
        read = None if whole is None else _logsumexp(whole)
        if read is None or whole is None or x is None or not (c * k).is_negative:
            continue
        if k == -c and x is read.inputs[0] and _is_lined_up(whole, read):
            return multiply(k, log_softmax_op(x, axes=read.params["axes"]))
        if whole is read and x.rank <= read.rank:
            return _difference(c, read, multiply(-k / c, x), x)
    return None


def _logsumexp(x: Tensor) -> Tensor | None:
    """The logsumexp that this is, or whose reduced axes this brings back."""
    body = x.inputs[0] if x.op is index_op else x
    return body if body.op is logsumexp_op else None


def _is_lined_up(x: Tensor, total: Tensor) -> bool:
    """Whether the reduced axes stand where they were."""
    axes, rank = total.params["axes"], total.inputs[0].rank
    if x is total:
        return total.params["keepdims"] or axes == tuple(range(-rank, len(axes) - rank))
    return not total.params["keepdims"] and x is expand_axes(total, axes)


def _difference(c: Any, total: Tensor, x: Tensor, plain: Tensor) -> Tensor:
    """``c (logsumexp(z) - x)``; where x is a logsumexp as well, the two maxima are subtracted first."""
    z = total.inputs[0]
    if plain is x and x.op is logsumexp_op:
        top = largest_op(*x.inputs, **x.params)
        first = logsumexp_less_op(z, top, **total.params)
        return multiply(c, subtract(first, logsumexp_less_op(*x.inputs, top, **x.params)))
    return multiply(c, logsumexp_less_op(z, x, **total.params))


def _log(x: Tensor) -> Tensor | None:
    """The logarithm of a softmax; what is masked gives -inf."""
    if x.op is not softmax_op or x.params["empty"] != "zero":
        return None
    z, *masks = x.inputs
    seen = where_op.node(*masks, z, constant(formula=sympy.S.NegativeInfinity)) if masks else z
    return log_softmax_op(seen, axes=x.params["axes"])


# --- differences from a number ---

expm1_op = form("expm1", shape=lambda x: x.shape, numpy=lambda code, node, x: f"np.expm1({x})")
one_less_op = form("one_less_exp", shape=lambda x: x.shape, numpy=lambda code, node, x: f"0 - np.expm1({x})")
erfc_op = form("erfc", shape=lambda x: x.shape, numpy=lambda code, node, x: code.helper("erfc", x))
tanh_slope_op = form("tanh_slope", shape=lambda x: x.shape, numpy=lambda code, node, x: code.helper("tanh_slope", x))


def _from_number(number: Any, x: Tensor) -> Tensor | None:
    """``exp(x) - 1``, ``1 - sigmoid(x)``, ``1 - tanh(x)**2``, ``1 + erf(x)`` and multiples without the cancellation."""
    c, rest = split_scalar(x)
    if rest is None:
        return None
    if rest.op is exp_op and number == -c:
        return multiply(c, expm1_op(rest.inputs[0])) if c.is_positive else multiply(number, one_less_op(rest.inputs[0]))
    if rest.op is sigmoid_op and number in (-c, -c / 2):
        u = negative(rest.inputs[0])
        return multiply(number, sigmoid_op(u) if number == -c else tanh_op(multiply(sympy.S.Half, u)))
    if rest.op is tanh_op and number in (c, -c):
        return multiply(2 * number, sigmoid_op(multiply(2 * c / number, rest.inputs[0])))
    if rest.op is erf_op and number in (c, -c):
        return multiply(number, erfc_op(multiply(-c / number, rest.inputs[0])))
    slope = squared(rest) if number == -c else None
    return multiply(number, tanh_slope_op(slope.inputs[0])) if slope is not None and slope.op is tanh_op else None


# --- x log x at 0 ---

weighed_op = form(
    "weighed",
    shape=lambda p, x: broadcast("the product", p, x),
    numpy=lambda code, node, p, x: code.helper(
        "weighed", code.align(node.inputs[0], p, node.rank), code.align(node.inputs[1], x, node.rank)
    ),
)
_NEAR = 12  # nodes between a probability and its logarithm


def _multiply(a: Tensor, b: Tensor) -> Tensor | None:
    """``p * log(p)``, and what is made from that, is 0 where p is 0."""
    if scalar_value(a) is not None:  # the product behind a factor is built with it
        inner = _multiply(*b.inputs) if b.op is multiply_op else None
        return None if inner is None else multiply(a, inner)
    for p, x in ((a, b), (b, a)):
        if _holds_log(x, p):
            return weighed_op(p, x)
    for u, root in ((a, b), (b, a)):
        scaled = _by_length(u, root) if root.op is divide_op and scalar_value(root.inputs[0]) == 1 else None
        if scaled is not None:
            return scaled
    return None


def _holds_log(x: Tensor, p: Tensor) -> bool:
    """Whether the logarithm of p stands among the terms and factors of x."""
    waiting = [x]
    for _ in range(_NEAR):
        if not waiting:
            return False
        node = waiting.pop()
        if node.op is log_op and node.inputs[0] is p:
            return True
        if node.op is log_softmax_op and p.op is softmax_op and _log(p) is node:
            return True
        waiting += node.inputs if node.op in (add_op, multiply_op) else ()
    return False


# --- rows without support ---


def _divide(a: Tensor, b: Tensor) -> Tensor | None:
    if b.op is length_op and scalar_value(a) is None:
        return _by_length(a, b)
    return _over_support(a, b) if b.op is sum_op else None


def _over_support(a: Tensor, b: Tensor) -> Tensor | None:
    """The size of the support of a row of -inf is 0, and what is divided by it is 0; any other is at least 1."""
    weight = b.inputs[0]
    supported = weight.op is support_sqrt_op or (weight.op is greater_op and weight.inputs[0].op is sparsemax_op)
    return divide_op.node(a, maximum(b, 1)) if supported else None


# --- norms ---


def _of_rows(code: Any, node: Tensor, *operands: str) -> str:
    """A helper of a norm: what it starts from, and how the lengths of the rows are made."""
    aligned = [code.align(x, text, node.rank) for x, text in zip(node.inputs, operands, strict=True)]
    given, divides = node.params["given"], node.params.get("divides", False)
    numbers = [code.scalar(node.params["factor"]), code.scalar(node.params["eps"])]
    options = [_axis(node.params["axes"]), *(f"of={text}" for text in aligned[given:]), "divides=True" * divides]
    return code.helper(node.op.name, *aligned[:given], *numbers, *options)


def _over(u: Tensor, root: Tensor, *rows: Tensor, **more: Any) -> Shape:
    return broadcast("the quotient", u, root)


length_op = form("length", shape=lambda x, *of, axes, **more: sum_op(x, axes=axes, keepdims=True).shape, numpy=_of_rows)
unit_rows_op = form("unit_rows", shape=_over, numpy=_of_rows)
over_length_op = form("over_length", shape=_over, numpy=_of_rows)


def _length(below: Tensor) -> Tensor | None:
    """The square root of what is a sum of squares, of which none overflows."""
    found = squares(below)
    if found is None or found.eps.is_infinite:
        return None
    axes, x = found.total.params["axes"], found.x
    whole = _centred_from(x, axes)
    count = sympy.Mul(*(x.shape[axis] for axis in axes)) if found.total.op is mean_op else 1
    rows = (x,) if whole is None else (x, whole)
    return length_op(*rows, axes=axes, factor=found.factor / count, eps=found.eps, given=1)


def _centred_from(x: Tensor, axes: tuple[int, ...]) -> Tensor | None:
    """What x is, less its own mean."""
    if x.op is not add_op:
        return None
    whole, (c, mean) = x.inputs[0], split_scalar(x.inputs[1])
    if c != -1 or mean is None or mean.op is not mean_op or mean.inputs[0] is not whole:
        return None
    return whole if mean.params == {"axes": axes, "keepdims": True} else None


def _inverse_root(x: Tensor) -> Tensor | None:
    root = _length(x)
    return None if root is None else divide_op.node(constant(formula=sympy.S.One), root)


def _power(x: Tensor, exponent: Tensor) -> Tensor | None:
    rule = {sympy.Rational(1, 2): _length, sympy.Rational(-1, 2): _inverse_root}.get(scalar_value(exponent))
    return None if rule is None else rule(x)


def _by_length(u: Tensor, root: Tensor) -> Tensor | None:
    """``u * r`` or ``u / length``, of which the result may be representable alone."""
    divides = root.op is length_op
    length = root if divides else root.inputs[1]
    if length.op is not length_op:
        return None
    (x, *of), params = length.inputs, {**length.params, "divides": divides}
    if u is x:
        return unit_rows_op(x, root, *of, **{**params, "given": 2})
    return over_length_op(u, root, x, *of, **{**params, "given": 3})


RULES: Mapping[Operation, Rule] = {
    add_op: _add, multiply_op: _multiply, divide_op: _divide, log_op: _log,
    sqrt_op: _length, rsqrt_op: _inverse_root, power_op: _power,
}  # fmt: skip


def stable(node: Tensor) -> Tensor:
    """The node in the most accurate of its forms."""
    rule = RULES.get(node.op)
    new = None if rule is None else rule(*node.inputs, **node.params)
    return node if new is None else new
