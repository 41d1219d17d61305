"""The recurrences of an expression, and all values of the loop that each is of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.node import Tensor, check_open
from ..errors import OperandError, described
from ..ops.leaves import computed
from .body import Tensors, loop_key, loop_of
from .record import scan_op, values_of


def scans(x: Any) -> tuple[Tensor, ...]:
    """The recurrences that a tensor or a gradient is made from, each by one of its values, inputs before users.

    >>> import symattn as sa
    >>> x = sa.tensor("x", "T")
    >>> y, _ = sa.scan(lambda s, u: (sa.tanh(s) * u, None), 1, x)
    >>> [scan is y for scan in sa.scans(2 * y)]
    [True]
    >>> len(sa.scans(sa.gradient(y, [x])))
    2
    """
    roots = list(x.values()) if isinstance(x, Mapping) else [x]
    for root in roots:
        if not isinstance(root, Tensor):
            raise OperandError(f"scans takes a tensor or a gradient, not {described(root)}")
        check_open(root)
    first: dict[Any, Tensor] = {}
    for node in computed(roots):
        if node.op is scan_op:
            first.setdefault(loop_key(node), node)
    return tuple(first.values())


def is_value_of(scan: Tensor, x: Tensor) -> bool:
    """Whether a node is a value of the same loop."""
    return x.op is scan_op and loop_key(x) == loop_key(scan)


def all_states(scan: Tensor) -> list[Tensor]:
    """The states after every step, stacked along a first axis."""
    loop = loop_of(scan)
    return values_of(loop._replace(step=loop.step._replace(outputs=loop.step.after)))[1]


def states_and_outputs(scan: Tensor) -> tuple[Tensors, Tensors]:
    """All values of the loop that a recurrence is a value of: its last states and its outputs."""
    made = scan.params["body"].step
    counts = {"final": len(made.after), "output": len(made.outputs)}
    final, outputs = (
        tuple(scan_op.node(*scan.inputs, **{**scan.params, "take": (what, k)}) for k in range(count))
        for what, count in counts.items()
    )
    return final, outputs
