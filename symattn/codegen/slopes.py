"""Derivatives whose terms cancel: of a softmax where one probability is nearly 1, and of quotients near 0."""

from __future__ import annotations

from typing import Any

import sympy

from ..core.node import Tensor
from ..ops.arithmetic import add_op, divide, divide_op, multiply, multiply_op, split_scalar, subtract
from ..ops.broadcasting import broadcast
from ..ops.classes import one_hot_op
from ..ops.leaves import constant, scalar_value
from ..ops.logic import where_op
from ..ops.pointwise import exp_op, tanh_op
from ..ops.rows import softmax_op, sum_op
from .form import axis_option, expm1_ratio_op, form, largest_op, log_softmax_op, tanh_slope_op, weighed_op

# --- of a softmax ---

softmax_slope_op = form(
    "softmax_slope",
    shape=lambda u, p, axes: broadcast("the difference", u, p),
    numpy=lambda code, node, u, p: code.helper(
        "softmax_slope",
        code.align(node.inputs[0], u, node.rank),
        code.align(node.inputs[1], p, node.rank),
        axis_option(node.params["axes"]),
    ),
)
softmax_less_op = form(
    "softmax_less",
    shape=lambda p, y: p.shape,
    numpy=lambda code, node, p, y: code.helper("softmax_less", p, y),
    masks=(1,),
)


def softmax_product(p: Tensor, x: Tensor) -> Tensor | None:
    """``p * (g - sum(p * g))``."""
    if p.op is not softmax_op or x.op is not add_op:
        return None
    (k, g), (c, total) = split_scalar(x.inputs[0]), split_scalar(x.inputs[1])
    if total is None or not _sums_like(total, p):
        return None
    weight, product = split_scalar(total.inputs[0])
    known = product is not None and product.op in (multiply_op, weighed_op) and {*product.inputs} == {p, g}
    if product is None or not known or k != -c * weight:
        return None
    return multiply(k, softmax_slope_op(_from_largest(product, p), p, axes=p.params["axes"]))


def _from_largest(product: Tensor, p: Tensor) -> Tensor:
    """``p * log(p)`` by the distance from the largest logit: the rest is the same along the row, and drops out."""
    z, axes = p.inputs[0], p.params["axes"]
    if product.op is not weighed_op or len(p.inputs) > 1:
        return product
    for found, scale in _factors(product.inputs[1]):
        if found is log_softmax_op(z, axes=axes) and _is_constant_along(scale, axes):
            return weighed_op(p, multiply(scale, subtract(z, largest_op(z, axes=axes, keepdims=True))))
    return product


def softmax_sum(a: Tensor, b: Tensor) -> Tensor | None:
    """``u - p * sum(u)``, and ``p - y`` for one class y a row; perhaps behind another term."""
    found = _slope_of_two(a, b)
    if found is not None or a.op is not add_op:
        return found
    last = _slope_of_two(a.inputs[1], b)
    if last is None:
        return None
    return a.inputs[0] if _is_flat(last) else add_op(a.inputs[0], last)


def _slope_of_two(a: Tensor, b: Tensor) -> Tensor | None:
    for spread, u in ((a, b), (b, a)):
        c, product = split_scalar(spread)
        for p, other in _factors(product):
            if p.op is softmax_op:
                found = _less_class(c, p, other, u)
                found = _less_share(c, p, other, u) if found is None else found
                if found is not None:
                    return found
    return None


def _less_share(c: Any, p: Tensor, total: Tensor, u: Tensor) -> Tensor | None:
    """``u - p * sum(u)``."""
    if not _sums_like(total, p):
        return None
    (k, v), (weight, summand) = split_scalar(u), split_scalar(total.inputs[0])
    if v is None or v is not summand or k != -c * weight:
        return None
    return multiply(k, softmax_slope_op(v, p, axes=p.params["axes"]))


def _less_class(c: Any, p: Tensor, factor: Tensor, u: Tensor) -> Tensor | None:
    """``c * factor * (p - y)`` where y has one class a row."""
    k, y = split_scalar(u)
    if y is not None and y.op is where_op and scalar_value(y.inputs[2]) == 0 and k == 1:
        k, found = split_scalar(y.inputs[1])
        y = y.inputs[0] if found is factor or (found is None and scalar_value(factor) == 1) else None
    elif scalar_value(factor) != 1:
        y = next((x for x, found in _factors(y) if found is factor), None)
    if y is None or y.op is not one_hot_op or k != -c or p.params["axes"] != (-1,) or p.rank != y.rank:
        return None
    return multiply(c, multiply(factor, softmax_less_op(p, y)))


def _sums_like(total: Tensor, p: Tensor) -> bool:
    """Whether this is a sum along the rows of p, which stay."""
    return total.op is sum_op and total.params == {"axes": p.params["axes"], "keepdims": True}


def _is_flat(slope: Tensor) -> bool:
    """Whether this is the slope by what is the same along a row, which is 0."""
    inner = split_scalar(slope)[1]
    if inner is None or inner.op is not softmax_slope_op:
        return False
    u, p = inner.inputs
    return any(q is p and _is_constant_along(x, inner.params["axes"]) for q, x in _factors(u))


def _is_constant_along(x: Tensor, axes: tuple[int, ...]) -> bool:
    return all(-axis > x.rank or x.shape[axis] == 1 for axis in axes)


def _factors(product: Tensor | None) -> tuple[tuple[Tensor, ...], ...]:
    """The two orders of a product; what is none has the factor 1."""
    if product is None:
        return ()
    if product.op is not multiply_op:
        return ((product, constant(formula=sympy.S.One)),)
    return (product.inputs, product.inputs[::-1])


# --- of (exp(x) - 1) / x and tanh(x) / x ---

expm1_ratio_slope_op, tanh_ratio_slope_op = (
    form(name, shape=lambda x: x.shape, numpy=lambda code, node, x: code.helper(node.op.name, x))
    for name in ("expm1_ratio_slope", "tanh_ratio_slope")
)


def ratio_slope(a: Tensor, b: Tensor) -> Tensor | None:
    """``g/x * f'(x) - g * (f(x)/x) / x``, the two paths of a cotangent through ``f(x)/x``, whose terms cancel at 0."""
    for first, second in ((a, b), (b, a)):
        c, last = split_scalar(second)
        if last is None or last.op is not divide_op:
            continue
        x = last.inputs[1]
        for ratio, g in _factors(last.inputs[0]):
            found = _slope_of_ratio(ratio, x)
            if found is not None and first is multiply(-c, multiply(divide(g, x), found[0])):
                return multiply(-c, multiply(g, found[1]))
    return None


def _slope_of_ratio(ratio: Tensor, x: Tensor) -> tuple[Tensor, Tensor] | None:
    """The derivatives of f and of what ``ratio`` is, ``f(k x) / x`` or that over k."""
    if ratio.op is expm1_ratio_op:
        v = ratio.inputs[0]
        k, inner = split_scalar(v)
        return (exp_op(v), multiply(k, expm1_ratio_slope_op(v))) if inner is x else None
    if ratio.op is not divide_op or ratio.inputs[0].op is not tanh_op or ratio.inputs[1] is not x:
        return None
    v = ratio.inputs[0].inputs[0]
    k, inner = split_scalar(v)
    return (multiply(k, tanh_slope_op(v)), multiply(k**2, tanh_ratio_slope_op(v))) if inner is x else None
