"""What the rounding of every step can do to a value: an expression whose steps are all a little off."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from ..core.node import Tensor, topological, with_inputs
from ..ops.arithmetic import multiply
from ..ops.leaves import from_index


def with_errors(roots: Sequence[Tensor], error: sympy.Symbol) -> list[Tensor]:
    """The roots where the real entries of every step are multiplied by numbers between ``1 - error`` and ``1 + error``.

    A sum in which everything cancels, as in the gradient of a saturated softmax, is far from 0 then.
    """
    moved: dict[Tensor, Tensor] = {}
    for k, node in enumerate(topological(roots)):
        moved[node] = with_inputs(node, moved)
        if node.inputs and node.kind == "real" and not node.holds_minus_infinity:
            moved[node] = multiply(moved[node], _factors(node, error, k))
    return [moved[root] for root in roots]


def _factors(node: Tensor, error: sympy.Symbol, k: int) -> Tensor:
    """Other ones at every entry and for every node."""
    return from_index(
        node.shape, lambda *index: 1 + error * sympy.cos(7 * k + sum(3 * n * i for n, i in enumerate(index, 1)))
    )
