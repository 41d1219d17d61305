"""Operations of generated code alone, the forms of ``stable.py``: never differentiated, printed or proved about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.operation import Operation
from ..ops.broadcasting import broadcast
from ..ops.notation import call
from ..ops.rows import logsumexp_op


def form(name: str, shape: Callable[..., Any], numpy: Callable[..., str], masks: tuple[int, ...] = ()) -> Operation:
    """The record of a form: its shape and its NumPy."""

    def entry(read: Any, index: Any, node: Any) -> Any:
        raise NotImplementedError(f"{name} is a form of generated code, which has no entries of its own")

    return Operation(
        name,
        shape=shape,
        entry=entry,
        vjp=None,
        jvp=None,
        numpy=numpy,
        notation=lambda p, node: call(p, name, node),
        reason="a form of generated code",
        minus_infinity="absorbed",
        masks=masks,
    )


def axis_option(axes: tuple[int, ...]) -> str:
    """The keyword for the axes of a helper, of which the last is the default."""
    return "" if axes == (-1,) else f"axis={axes[0] if len(axes) == 1 else axes}"


log_softmax_op = form(
    "log_softmax",
    shape=lambda z, axes: z.shape,
    numpy=lambda code, node, z: code.helper("log_softmax", z, axis_option(node.params["axes"])),
)
largest_op = form(
    "largest",
    shape=logsumexp_op.shape,
    numpy=lambda code, node, z: code.helper(
        "largest", z, axis_option(node.params["axes"]), "keepdims=True" if node.params["keepdims"] else ""
    ),
)
logsumexp_less_op = form(
    "logsumexp_less",
    shape=lambda z, x, axes, keepdims: broadcast("the difference", largest_op(z, axes=axes, keepdims=keepdims), x),
    numpy=lambda code, node, z, x: code.helper(
        "logsumexp_less",
        z,
        code.align(node.inputs[1], x, node.rank),
        axis_option(node.params["axes"]),
        "keepdims=True" if node.params["keepdims"] else "",
    ),
)
expm1_op = form("expm1", shape=lambda x: x.shape, numpy=lambda code, node, x: f"np.expm1({x})")
one_less_op = form("one_less_exp", shape=lambda x: x.shape, numpy=lambda code, node, x: f"0 - np.expm1({x})")
erfc_op = form("erfc", shape=lambda x: x.shape, numpy=lambda code, node, x: code.helper("erfc", x))
tanh_slope_op = form("tanh_slope", shape=lambda x: x.shape, numpy=lambda code, node, x: code.helper("tanh_slope", x))
weighed_op = form(
    "weighed",
    shape=lambda p, x: broadcast("the product", p, x),
    numpy=lambda code, node, p, x: code.helper(
        "weighed", code.align(node.inputs[0], p, node.rank), code.align(node.inputs[1], x, node.rank)
    ),
)
expm1_ratio_op = form("expm1_ratio", shape=lambda x: x.shape, numpy=lambda code, node, x: code.helper("expm1_ratio", x))
