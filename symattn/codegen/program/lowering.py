"""The graph that a program computes: factors put off until they cost least, and softmax by its parts.

A node is known as ``c * s * b``: a number c of sizes, a normaliser s of size 1 along some axes, and a body b. The
factors are put in where the result is needed whole, or go on through what is linear: ``(E * s) @ V`` is
``(E @ V) * s``. Only factors between 1/n and 1 for a size n, and moderate numbers, are put off, so that no value leaves
the range of floating point which is not within a factor n of its end. The lowered graph is an ordinary graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import sympy

from ...core.exact import INDICES
from ...core.node import Tensor, topological, with_inputs
from ...core.operation import Operation
from ...core.sizes import same_shape
from ...ops.arithmetic import add, add_op, divide, divide_op, multiply, multiply_op, subtract
from ...ops.broadcasting import sum_op
from ...ops.classes import one_hot_op
from ...ops.contraction import matmul_of, matmul_op
from ...ops.layout import transpose, transpose_op
from ...ops.leaves import as_tensor, computed, cotangent_op, from_index_op, is_zero, scalar_value
from ...ops.logic import and_op, where
from ...ops.pointwise import exp, maximum, tanh
from ...ops.rows import _count, logsumexp_op, mean_op, softmax_op
from ...ops.scans import tril_op, triu_op
from ..stable import logsumexp_less_op, softmax_vjp_op, tanh_slope_op
from .extent import Extent
from .records import log_total_op, picked_op, slope_op, tanh_slope_at_op, top_op

ONE = sympy.S.One
_MODERATE = 2**20  # numbers up to this, and down to its inverse, may be put off


class Scaled(NamedTuple):
    """What is ``number * factor * body``; no factor is 1."""

    number: sympy.Expr
    factor: Tensor | None
    body: Tensor


class Weights(NamedTuple):
    """The parts of a softmax: ``exp(z - top)``, and the sum of that, which is 1 where there is nothing."""

    weights: Tensor
    total: Tensor


class Lowering:
    """One lowering at given sizes; where ``puts_off`` is False, all is computed as it is written."""

    def __init__(self, extent: Extent, puts_off: bool = True) -> None:
        self.extent, self.puts_off = extent, puts_off
        self.forms: dict[Tensor, Scaled] = {}
        self.values: dict[Tensor, Tensor] = {}
        self.softmaxes: dict[Tensor, Weights] = {}
        self.made: set[Tensor] = set()

    def lowered(self, outputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs, of the same values."""
        for node in computed(outputs):
            self.forms[node] = self._form(node)
            self._keep(self.forms[node].body)
        return [self.value(y) for y in outputs]

    def value(self, node: Tensor) -> Tensor:
        """A node with its factors put in."""
        if node not in self.values:
            self.values[node] = self._keep(self._whole(node))
        return self.values[node]

    def _keep(self, x: Tensor) -> Tensor:
        self.made.update(topological([x], stop=self.made))
        return x

    def _whole(self, node: Tensor) -> Tensor:
        number, factor, body = self.forms[node]
        if factor is not None and node in self.softmaxes:
            return divide(body, self.softmaxes[node].total)  # as it is written
        if factor is not None:
            return multiply_op.node(body, multiply(number, factor))
        return self._scaled(number, body)

    def _form(self, node: Tensor) -> Scaled:
        if not node.inputs:
            return Scaled(ONE, None, node)
        rule = _RULES.get(node.op) if self.puts_off or node.op in _SELECTING else None
        found = None if rule is None else rule(self, node)
        return Scaled(ONE, None, self._plain(node)) if found is None else found

    def _plain(self, node: Tensor) -> Tensor:
        return with_inputs(node, {x: self.value(x) for x in node.inputs})

    def _times(self, a: Tensor, b: Tensor) -> Tensor:
        return self._keep(multiply(a, b))

    def _joined(self, s: Tensor | None, r: Tensor | None) -> Tensor | None:
        return s if r is None else r if s is None else self._times(s, r)

    # --- numbers ---

    def _scaled(self, number: sympy.Expr, body: Tensor) -> Tensor:
        """The number times the body, put in where it costs least."""
        if number == 1:
            return body
        if number == -1:
            return multiply(-1, body)
        return self._placed(number, body, False)[1]()

    def _placed(self, number: sympy.Expr, x: Tensor, inside: bool) -> tuple[float, Callable[[], Tensor]]:
        """What a factor costs, and the way to put it in: in what is there, a smaller factor, or the result."""
        there = x.op is not multiply_op and multiply(number, x) in self.made
        cost = 0.0 if there else float(self.extent.of(x))
        best: tuple[float, Callable[[], Tensor]] = (cost, lambda: multiply(number, x))
        through = x.op is matmul_op and not inside and not there
        if through or (x.op is multiply_op and scalar_value(x.inputs[0]) is None):
            for k, y in enumerate(x.inputs):
                cost, put = self._placed(number, y, True)
                if cost < best[0]:
                    best = cost, partial(_with_input, x, k, put)
        return best

    # --- rules, each for one operation ---

    def _through(self, node: Tensor) -> Scaled:
        return self.forms[node.inputs[0]]

    def _multiply(self, node: Tensor) -> Scaled | None:
        x, y = node.inputs
        number = scalar_value(x)
        if number is not None:
            c, s, b = self.forms[y]
            return Scaled(c * number, s, b) if self._is_moderate(number) else None
        if not same_shape(x.shape, y.shape) or x.kind != "real" or y.kind != "real":
            return None
        (c, s, a), (k, r, b) = self.forms[x], self.forms[y]
        return Scaled(c * k, self._joined(s, r), self._times(a, b))

    def _is_moderate(self, number: sympy.Expr) -> bool:
        if not number.free_symbols <= self.extent.sizes.keys():
            return False  # a scalar symbol, which may be as large or as small as it likes
        return bool(1 / _MODERATE <= abs(float(number.subs(self.extent.sizes))) <= _MODERATE)

    def _divide(self, node: Tensor) -> Scaled | None:
        x, y = node.inputs
        if not same_shape(x.shape, node.shape):
            return None
        c, s, a = self.forms[x]
        return Scaled(c, s, divide(a, self.value(y)))

    def _softmax(self, node: Tensor) -> Scaled | None:
        z, *masks = node.inputs
        if node.params["empty"] != "zero" or not same_shape(z.shape, node.shape):
            return None
        seen, axes = self.value(z), node.params["axes"]
        for part in _conjuncts(masks):
            seen = where(self.value(part), seen, as_tensor(-sympy.oo))
        top = top_op(seen, axes=axes, keepdims=True)
        weights = self._keep(exp(add(seen, multiply(-1, top))))
        total = self._keep(maximum(sum_op(weights, axes=axes, keepdims=True), as_tensor(1)))
        self.softmaxes[node] = Weights(weights, total)
        return Scaled(ONE, divide(as_tensor(1), total), weights)

    def _slope(self, node: Tensor) -> Scaled | None:
        """``p * (g - sum(p * g))`` by the weights of p."""
        g, p = node.inputs
        found = self.softmaxes.get(p)
        if found is None or g is p or not same_shape(g.shape, p.shape) or node.params["axes"] != (-1,):
            return None
        c, s, b = self.forms[g]
        if s is not None:
            c, b = ONE, self.value(g)
        slope = self._keep(slope_op(found.weights, b, found.total, self._along(found.weights, b)))
        return Scaled(c, divide(as_tensor(1), found.total), slope)

    def _along(self, weights: Tensor, g: Tensor) -> Tensor:
        """``rowsum(weights * g)``, which for ``g = a @ v.T`` comes from ``weights @ v`` where that is there."""
        if g.op is matmul_op and g.params["core"] == (2, 2):
            other = matmul_of(weights, transpose(g.inputs[1], (-1, -2)), (2, 2))
            if other in self.made:
                return self._keep(sum_op(multiply(g.inputs[0], other), axes=(-1,), keepdims=True))
        return self._keep(sum_op(multiply(weights, g), axes=(-1,), keepdims=True))

    def _tanh_slope(self, node: Tensor) -> Scaled | None:
        """By the value of tanh, where that is there."""
        [x] = map(self.value, node.inputs)
        return Scaled(ONE, None, tanh_slope_at_op(x, y)) if (y := tanh(x)) in self.made else None

    def _mean(self, node: Tensor) -> Scaled:
        c, s, b = self._sum(node)
        return Scaled(c / _count(node.inputs[0], node.params["axes"]), s, b)

    def _sum(self, node: Tensor) -> Scaled:
        c, s, b = self.forms[node.inputs[0]]
        params = node.params
        if s is not None and any(s.shape[axis] != 1 for axis in params["axes"]):
            return Scaled(c, None, sum_op(self._times(b, s), **params))
        if s is not None and not params["keepdims"]:
            s = sum_op(s, **params)  # of one term each: the axes are taken off
        picked = self._picked(b, params)
        return Scaled(c, s, sum_op(b, **params) if picked is None else picked)

    def _picked(self, x: Tensor, params: Mapping[str, Any]) -> Tensor | None:
        """The entries that classes say, which are sums of products with rows of zeros and a one."""
        if x.op is not multiply_op or params["axes"] != (-1,):
            return None
        for of, by in (x.inputs, x.inputs[::-1]):
            if by.op is one_hot_op and same_shape(of.shape, x.shape) and same_shape(by.shape, x.shape):
                return self._off(picked_op(of, by.inputs[0]), params)
        return None

    def _off(self, x: Tensor, params: Mapping[str, Any]) -> Tensor:
        """Of one entry a row: the axis stays, or is taken off."""
        return x if params["keepdims"] else sum_op(x, **params)

    def _logsumexp(self, node: Tensor) -> Scaled | None:
        """By the weights that a softmax of the same has."""
        if node.params["axes"] != (-1,):
            return None
        seen, *less = map(self.value, node.inputs)
        top = top_op(seen, axes=(-1,), keepdims=True)
        weights = self._keep(exp(add(seen, multiply(-1, top))))
        rest = log_total_op(weights, self._keep(sum_op(weights, axes=(-1,), keepdims=True)))
        first, rest = (self._off(x, node.params) for x in (top, rest))
        return Scaled(ONE, None, add(subtract(first, less[0]) if less else first, rest))

    def _transpose(self, node: Tensor) -> Scaled:
        c, s, b = self.forms[node.inputs[0]]
        order = node.params["order"]
        return Scaled(c, None if s is None else transpose(s, order), transpose(b, order))

    def _matmul(self, node: Tensor) -> Scaled | None:
        """A factor that is constant along the summed axis goes on; another goes into the smaller of the two."""
        if node.params["core"] != (2, 2):
            return None
        (c, s, a), (k, r, b) = (self.forms[x] for x in node.inputs)
        if s is not None and s.shape[-1] != 1:
            if s.shape[-2] == 1 and self.extent.of(b) < self.extent.of(a):
                b, s = self._times(b, transpose(s, (-1, -2))), None
            else:
                a, s = self._times(a, s), None
        if r is not None and r.shape[-2] != 1:
            if r.shape[-1] == 1 and self.extent.of(a) < self.extent.of(b):
                a, r = self._times(a, transpose(r, (-1, -2))), None
            else:
                b, r = self._times(b, r), None
        return Scaled(c * k, self._joined(s, r), matmul_of(a, b, (2, 2)))

    def _triangle(self, node: Tensor) -> Scaled | None:
        """A choice by the indices, which blocks of rows can make, and of which they see some columns alone."""
        i, j = INDICES[:2]
        inside = sympy.Le(j - i, node.params["k"]) if node.op is tril_op else sympy.Ge(j - i, node.params["k"])
        if not isinstance(inside, sympy.Rel):
            return None
        c, s, b = self.forms[node.inputs[0]]
        condition = from_index_op(formula=inside, shape=node.shape[-2:])
        return Scaled(c, s, where(condition, b, as_tensor(0)))

    def _add(self, node: Tensor) -> Scaled | None:
        for x, bias in (node.inputs, node.inputs[::-1]):
            if (found := _as_choice(bias)) is not None and same_shape(x.shape, node.shape):
                condition, value = found
                seen = self.value(x) if is_zero(value) else add(self.value(x), value)
                return Scaled(ONE, None, where(condition, seen, as_tensor(-sympy.oo)))
        (c, s, a), (k, r, b) = (self.forms[x] for x in node.inputs)
        same = s is r and c == k and same_shape(a.shape, b.shape)
        return Scaled(c, s, add(a, b)) if same and (s is not None or c != 1) else None


def _conjuncts(masks: Sequence[Tensor]) -> list[Tensor]:
    """The masks that all have to hold."""
    found, waiting = [], list(masks)
    while waiting:
        mask = waiting.pop()
        if mask.op is and_op:
            waiting += mask.inputs
        else:
            found.append(mask)
    return found


def _as_choice(bias: Tensor) -> tuple[Tensor, Tensor] | None:
    """The condition and the values of a matrix of indices that is -oo elsewhere."""
    formula = bias.params.get("formula") if bias.op is from_index_op else None
    if not isinstance(formula, sympy.Piecewise) or len(formula.args) != 2:
        return None
    (first, condition), (second, _) = formula.args
    if first == -sympy.oo:
        first, second, condition = second, first, sympy.Not(condition)
    if second != -sympy.oo or first.has(sympy.oo, -sympy.oo):
        return None
    shape = bias.shape
    return from_index_op(formula=condition, shape=shape), from_index_op(formula=first, shape=shape)


def _with_input(x: Tensor, k: int, put: Callable[[], Tensor]) -> Tensor:
    return x.op.node(*(put() if n == k else y for n, y in enumerate(x.inputs)), **x.params)


_SELECTING = {cotangent_op, tril_op, triu_op}  # what computes nothing, and is the same in any form
_RULES: dict[Operation, Callable[[Lowering, Tensor], Any]] = {
    cotangent_op: Lowering._through,
    multiply_op: Lowering._multiply,
    divide_op: Lowering._divide,
    softmax_op: Lowering._softmax,
    softmax_vjp_op: Lowering._slope,
    logsumexp_op: Lowering._logsumexp,
    logsumexp_less_op: Lowering._logsumexp,
    tanh_slope_op: Lowering._tanh_slope,
    mean_op: Lowering._mean,
    sum_op: Lowering._sum,
    transpose_op: Lowering._transpose,
    matmul_op: Lowering._matmul,
    add_op: Lowering._add,
    tril_op: Lowering._triangle,
    triu_op: Lowering._triangle,
}
