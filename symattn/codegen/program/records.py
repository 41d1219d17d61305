"""Operations of lowered graphs alone: the parts of a softmax whose normaliser is put off, and of a logsumexp."""

from __future__ import annotations

from typing import Any

import sympy

from ...core.node import Tensor
from ...core.operation import Operation
from ...core.sizes import ONE
from ...ops.broadcasting import reduction
from ...ops.notation import call
from ...ops.rows import max_op
from ...scalars.formulas import Max, bound
from ..stable import over_length_op, unit_rows_op


def _top(code: Any, node: Tensor, x: str) -> str:
    axes = node.params["axes"]
    along = axes[0] if len(axes) == 1 else axes
    lowest = f"np.finfo({code.dtype()}).min"
    return f"np.maximum.reduce({x}, axis={along}, keepdims={node.params['keepdims']}, initial={lowest})"


# What logits are taken off: finite also where a row has nothing but -oo, which then has the weights 0.
top_op = reduction("top", Max, vjp=None, jvp=None, numpy=_top, reason=max_op.reason, minus_infinity="absorbed")


def _slope_entry(read: Any, index: Any, node: Tensor) -> sympy.Expr:
    limits = bound(node, 0, node.shape[-1])
    row = (*index[:-1], limits[0])
    total, along = (read(k, (*index[:-1], sympy.S.Zero)) for k in (2, 3))
    mean = (along + sympy.Sum(read(0, row) * read(1, row), limits)) / (2 * total)  # of the same by two ways
    return read(0, index) * (read(1, index) - mean)


# The slope of a softmax times its normaliser: of the weights, the cotangent, the sums of the weights and of both.
slope_op = Operation(
    "weights_slope",
    shape=lambda weights, g, total, along: g.shape,
    entry=_slope_entry,
    vjp=None,
    jvp=None,
    numpy=lambda code, node, *operands: code.helper("weights_slope", *operands),
    notation=lambda p, node: call(p, "weights_slope", node),
    reason="a form of generated code",
)


def _log_total_entry(read: Any, index: Any, node: Tensor) -> sympy.Expr:
    limits = bound(node, 0, node.inputs[0].shape[-1])
    return sympy.log(
        (read(1, index) + sympy.Sum(read(0, (*index[:-1], limits[0])), limits)) / 2
    )  # the same by two ways


# The logarithm of the sum of weights of which the largest is 1, also where the others are tiny.
log_total_op = Operation(
    "log_total",
    shape=lambda weights, total: total.shape,
    entry=_log_total_entry,
    vjp=None,
    jvp=None,
    numpy=lambda code, node, *operands: code.helper("log_total", *operands),
    notation=lambda p, node: call(p, "log_total", node),
    reason="a form of generated code",
)

# The slope of tanh where its value is there as well.
tanh_slope_at_op = Operation(
    "tanh_slope_at",
    shape=lambda x, y: x.shape,
    entry=lambda read, index, node: 1 - sympy.tanh(read(0, index)) * read(1, index),  # the same by two ways
    vjp=None,
    jvp=None,
    numpy=lambda code, node, x, y: code.helper("tanh_slope_at", x, y),
    notation=lambda p, node: call(p, "tanh_slope_at", node),
    reason="a form of generated code",
)

# The entry of each row that a class says: the sum of the row times the class as a row of zeros and a one.
picked_op = Operation(
    "picked",
    shape=lambda x, index: (*index.shape, ONE),
    entry=lambda read, index, node: read(0, (*index[:-1], read(1, index[:-1]))),
    vjp=None,
    jvp=None,
    numpy=lambda code, node, x, index: code.helper("picked", x, index, repr(code.label(node.inputs[1]))),
    notation=lambda p, node: call(p, "picked", node),
    reason="a form of generated code",
    places=(1,),
)

# Inputs that a result may be written over, where the operation is not entry by entry.
IN_PLACE = {slope_op: (1,), unit_rows_op: (0,), over_length_op: (0,)}
