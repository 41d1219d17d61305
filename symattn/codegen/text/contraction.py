"""Contractions as matrix products, which is what BLAS is fast at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.node import Tensor
from ...ops.contraction import label_roles


def matmul_code(code: Any, node: Tensor, a: str, b: str) -> str:
    """``a @ b`` with vectors as one-column or one-row matrices, and the factors' own leading axes aligned."""
    core = node.params["core"]
    leading = node.rank - sum(core) + 2
    left = code.align(node.inputs[0], a, leading + core[0])
    right = code.align(node.inputs[1], b, leading + core[1])
    if core == (2, 2):
        return f"({left}) @ ({right})"
    if core == (2, 1):
        return f"(({left}) @ ({right})[..., None])[..., 0]"
    if core == (1, 2):
        return f"(({left})[..., None, :] @ ({right}))[..., 0, :]"
    return f"(({left}) * ({right})).sum(axis=-1)"


def einsum_code(code: Any, node: Tensor, inputs: Sequence[str]) -> str:
    """A matrix product where the contraction is one, else ``np.einsum``."""
    ins, out = node.params["spec"]
    plain = all(x.rank == len(labels) for x, labels in zip(node.inputs, ins, strict=True))
    product = _as_matmul(code, node, inputs) if len(ins) == 2 and plain else None
    if product is not None:
        return product
    spec = ",".join("..." + labels for labels in ins) + "->..." + out
    leading = node.rank - len(out)
    aligned = zip(node.inputs, ins, inputs, strict=True)
    operands = ", ".join(code.align(x, text, leading + len(labels)) for x, labels, text in aligned)
    return f"np.einsum({spec!r}, {operands}, optimize=True)"


def _as_matmul(code: Any, node: Tensor, inputs: Sequence[str]) -> str | None:
    """The two-factor contraction as ``A @ B``, in the order of factors that leaves the result in place if any does."""
    (a, b), out = node.params["spec"]
    found = [_product(code, a, b, out, inputs[0], inputs[1]), _product(code, b, a, out, inputs[1], inputs[0])]
    return min((p for p in found if p is not None), key=len, default=None)


def _product(code: Any, a: str, b: str, out: str, left: str, right: str) -> str | None:
    """Batch labels, then rows or columns that the other factor lacks, then (row, summed) @ (summed, column)."""
    roles = label_roles(a, b, out)
    if roles is None or not all(roles[1:]):
        return None
    batch, summed, rows, columns = roles
    left = _permuted(code, left, a, [*batch, *rows, *summed])
    right = _permuted(code, right, b, [*batch, *columns[:-1], *summed, columns[-1]])
    for _ in summed[1:]:
        left, right = code.helper("merge_axes", left, "-1"), code.helper("merge_axes", right, "-2")
    if len(columns) > 1:
        left = f"({left})[..., {'None, ' * (len(columns) - 1)}:, :]"
    if len(rows) > 1:
        right = f"({right})[..., {'None, ' * (len(rows) - 1)}{':, ' * (len(columns) - 1)}:, :]"
    made = [*batch, *rows[:-1], *columns[:-1], rows[-1], columns[-1]]
    return _permuted(code, f"({left}) @ ({right})", made, out)


def _permuted(code: Any, text: str, have: Sequence[str], want: Sequence[str]) -> str:
    """The last axes brought from one order of labels to another."""
    return str(code.transpose(text, tuple(list(have).index(c) - len(have) for c in want)))
