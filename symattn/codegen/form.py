"""Operations of generated code alone, the forms of ``stable.py``: never differentiated, printed or proved about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..core.node import Tensor
from ..core.operation import Operation
from ..core.sizes import Shape
from ..ops.broadcasting import broadcast, sum_op
from ..ops.notation import call
from ..ops.rows import logsumexp_op


def row_options(params: Mapping[str, Any]) -> list[str]:
    """The keywords of a helper for rows: the axes, of which the last is the default, and whether they stay."""
    axes = params.get("axes", (-1,))
    axis = [] if axes == (-1,) else [f"axis={axes[0] if len(axes) == 1 else axes}"]
    return axis + ["keepdims=True"] * params.get("keepdims", False)


def _by_its_helper(code: Any, node: Tensor, *operands: str) -> str:
    return str(code.of_rows(node.op.name, node, *code.aligned(node, operands)))


def form(
    name: str,
    shape: Callable[..., Shape] = lambda x, *others, **params: x.shape,
    numpy: Callable[..., str] = _by_its_helper,
    masks: tuple[int, ...] = (),
) -> Operation:
    """The record of a form: its shape, and its NumPy, by default a call of the helper of its name."""

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


expm1_op = form("expm1", numpy=lambda code, node, x: f"np.expm1({x})")
one_less_op = form("one_less_exp", numpy=lambda code, node, x: f"0 - np.expm1({x})")
erfc_op, expm1_ratio_op, expm1_ratio_slope_op, tanh_slope_op, tanh_ratio_slope_op = map(
    form, ("erfc", "expm1_ratio", "expm1_ratio_slope", "tanh_slope", "tanh_ratio_slope")
)
weighed_op = form("weighed", shape=partial(broadcast, "the product"))

# --- of rows ---

log_softmax_op = form("log_softmax")
largest_op = form("largest", shape=logsumexp_op.shape)
logsumexp_less_op = form(
    "logsumexp_less",
    shape=lambda z, x, axes, keepdims: broadcast("the difference", largest_op(z, axes=axes, keepdims=keepdims), x),
)
softmax_slope_op = form("softmax_slope", shape=lambda u, p, axes: broadcast("the difference", u, p))
softmax_less_op = form("softmax_less", masks=(1,))


def _of_rows(code: Any, node: Tensor, *operands: str) -> str:
    """A helper of a norm: what it starts from, and how the lengths of the rows are made."""
    aligned = code.aligned(node, operands)
    given, divides = node.params["given"], node.params.get("divides", False)
    numbers = [code.scalar(node.params["factor"]), code.scalar(node.params["eps"])]
    centred = [f"{role}={text}" for role, text in zip(("of", "mean"), aligned[given:], strict=False)]
    options = [*row_options(node.params), *centred, "divides=True" * divides]
    return str(code.helper(node.op.name, *aligned[:given], *numbers, *options))


def _over(u: Tensor, root: Tensor, *rows: Tensor, **more: Any) -> Shape:
    return broadcast("the quotient", u, root)


length_op = form("length", shape=lambda x, *of, axes, **more: sum_op(x, axes=axes, keepdims=True).shape, numpy=_of_rows)
unit_rows_op = form("unit_rows", shape=_over, numpy=_of_rows)
over_length_op = form("over_length", shape=_over, numpy=_of_rows)
