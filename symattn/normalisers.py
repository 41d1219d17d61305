"""Spelled-out normalisers, read as the operations that they are: those are stable, and have closed derivatives."""

from __future__ import annotations

from collections.abc import Mapping

from .ops.arithmetic import add_op, divide_op, negative
from .ops.index import index_op
from .ops.leaves import definition, is_named, scalar_value, variable
from .ops.pointwise import exp_op, log_op, sigmoid_op, softplus_op
from .ops.rows import expand_axes, logsumexp_op, softmax_op, sum_op
from .tensor import Tensor


def normaliser(node: Tensor, inputs: tuple[Tensor, ...]) -> Tensor | None:
    """``log(sum(exp(z)))`` as logsumexp, ``exp(z) / rowsum(exp(z))`` as softmax, ``log(sigmoid(x))`` as -softplus(-x),
    ``log(1 + exp(x))`` as softplus.

    None for anything else.

    Named parts are looked through. ``inputs`` stand in for the node's own.
    """
    if node.op is log_op:
        total = definition(inputs[0])
        if total.op is sum_op and (weights := definition(total.inputs[0])).op is exp_op:
            return logsumexp_op(weights.inputs[0], **total.params)
        if total.op is sigmoid_op:
            return negative(softplus_op(negative(total.inputs[0])))
        if total.op is add_op:
            one, weights = total.inputs if scalar_value(total.inputs[0]) == 1 else total.inputs[::-1]
            if scalar_value(one) == 1 and definition(weights).op is exp_op:
                return softplus_op(definition(weights).inputs[0])
    elif node.op is divide_op and (weights := definition(inputs[0])).op is exp_op:
        axis = _summed_axis(definition(inputs[1]), weights)
        if axis is not None:
            return softmax_op(weights.inputs[0], axes=(axis,), empty="zero")
    return None


def _summed_axis(below: Tensor, weights: Tensor) -> int | None:
    """The axis over which ``below`` sums the weights, if it is that sum lined up with them for broadcasting."""
    total = definition(below.inputs[0]) if below.op is index_op else below
    if total.op is not sum_op or definition(total.inputs[0]) is not weights or len(total.params["axes"]) != 1:
        return None
    (axis,), keepdims = total.params["axes"], total.params["keepdims"]
    if below is total:
        return axis if keepdims or axis == -weights.rank else None
    return axis if not keepdims and below is expand_axes(below.inputs[0], (axis,)) else None


def without_names(node: Tensor, bare: Mapping[Tensor, Tensor]) -> Tensor:
    """The node on bare inputs: a name stands for what it names, and a normaliser is read as what it is."""
    if is_named(node) and node.op is not variable:
        return bare[node.inputs[0]]
    inputs = tuple(bare[x] for x in node.inputs)
    read = normaliser(node, inputs)
    if read is not None:
        return read
    return node if inputs == node.inputs else node.op(*inputs, **node.params)
