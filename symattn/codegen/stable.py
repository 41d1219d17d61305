"""Forms that are exactly equal and no less accurate, chosen in the graph before code is written.

Each rule takes the inputs of one operation and gives a node with the same values, or None. A rule may lose no digit
that the plain form has: it applies to what reads a quantity, never to the quantity that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sympy

from ..core.node import Tensor
from ..core.operation import Operation
from ..graph.canonical import squared
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
from ..ops.index import index_op
from ..ops.leaves import constant, scalar_value
from ..ops.logic import greater_op, where_op
from ..ops.pointwise import erf_op, exp_op, log_op, rsqrt_op, sigmoid_op, sqrt_op, tanh_op
from ..ops.rows import expand_axes, logsumexp_op, softmax_op, sum_op
from ..ops.sparse import sparsemax_op, support_sqrt_op
from .form import (
    erfc_op,
    expm1_op,
    expm1_ratio_op,
    largest_op,
    log_softmax_op,
    logsumexp_less_op,
    one_less_op,
    tanh_slope_op,
    weighed_op,
)
from .lengths import by_length, inverse_root, length_of, length_op, root_power
from .slopes import ratio_slope, softmax_product, softmax_sum

Rule = Callable[..., Tensor | None]
_NEAR = 12  # nodes between a probability and its logarithm


# --- sums ---


def _add(a: Tensor, b: Tensor) -> Tensor | None:
    for total, other in ((a, b), (b, a)):
        number = scalar_value(other)
        if number is not None:
            return _from_number(number, total)
    return _first(rule(a, b) for rule in (softmax_sum, ratio_slope, _less_logsumexp))


def _first(found: Iterable[Tensor | None]) -> Tensor | None:
    return next((x for x in found if x is not None), None)


def _less_logsumexp(a: Tensor, b: Tensor) -> Tensor | None:
    """``z - logsumexp(z)`` as log-softmax; in another difference with a logsumexp its maximum is met first."""
    for total, other in ((a, b), (b, a)):
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


# --- products, and x log x at 0 ---


def _multiply(a: Tensor, b: Tensor) -> Tensor | None:
    if scalar_value(a) is not None:  # the product behind a factor is built with it
        inner = _multiply(*b.inputs) if b.op is multiply_op else None
        return None if inner is None else multiply(a, inner)
    rules = (softmax_product, _weighed, _by_inverse)
    return _first(rule(x, y) for x, y in ((a, b), (b, a)) for rule in rules)


def _by_inverse(u: Tensor, root: Tensor) -> Tensor | None:
    """``u * r`` with the inverse r of a length; a length itself is multiplied as it stands."""
    return by_length(u, root) if root.op is divide_op else None


def _weighed(p: Tensor, x: Tensor) -> Tensor | None:
    """``p * log(p)``, and what is made from that, is 0 where p is 0."""
    return weighed_op(p, x) if _holds_log(x, p) else None


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


# --- quotients, and rows without support ---


def _divide(a: Tensor, b: Tensor) -> Tensor | None:
    if b.op is length_op and scalar_value(a) is None:
        return by_length(a, b)
    if a.op in (expm1_op, one_less_op):
        k, x = split_scalar(a.inputs[0])
        return multiply(k if a.op is expm1_op else -k, expm1_ratio_op(a.inputs[0])) if x is b else None
    return _over_support(a, b) if b.op is sum_op else None


def _over_support(a: Tensor, b: Tensor) -> Tensor | None:
    """The size of the support of a row of -inf is 0, and what is divided by it is 0; any other is at least 1."""
    weight = b.inputs[0]
    supported = weight.op is support_sqrt_op or (weight.op is greater_op and weight.inputs[0].op is sparsemax_op)
    return divide_op.node(a, maximum(b, 1)) if supported else None


RULES: Mapping[Operation, Rule] = {
    add_op: _add, multiply_op: _multiply, divide_op: _divide, log_op: _log,
    sqrt_op: length_of, rsqrt_op: inverse_root, power_op: root_power,
}  # fmt: skip


def stable(node: Tensor) -> Tensor:
    """The node in the most accurate of its forms."""
    rule = RULES.get(node.op)
    new = None if rule is None else rule(*node.inputs, **node.params)
    return node if new is None else new
