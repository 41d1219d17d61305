"""Operations of lowered graphs alone: the parts of a softmax whose normaliser is put off."""

from __future__ import annotations

from typing import Any

import sympy

from ...core.node import Tensor
from ...core.operation import Operation
from ...ops.broadcasting import reduction
from ...ops.notation import call
from ...ops.rows import max_op
from ...scalars.formulas import Max, bound


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

IN_PLACE = {slope_op: (1,)}  # inputs that a result may be written over, where the operation is not entry by entry
