"""Softmax attention over blocks of keys: one pass, a running maximum, and a running sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import sympy

from ..core.node import Tensor
from ..core.sizes import Shape, as_size, broadcast_shapes, quotient
from ..errors import OperandError, ShapeError
from ..ops import rows
from ..ops.broadcasting import broadcast_to
from ..ops.layout import moveaxis, split_axis
from ..ops.leaves import from_index, named, zeros
from ..ops.logic import where
from ..ops.opaque import stop_gradient
from ..ops.pointwise import exp, maximum
from ..recurrence.loop import scan
from .dot_product import scores
from .options import Masking, blocks, kept, nonempty, operand, same

_BELOW_ALL = -(10**30)  # where a mask may leave nothing of a first block, exp(-oo + oo) would be no number


def blockwise(
    Q: Any, keys: Any, values: Any, *, block: Any = None, scale: Any = None, **masking: Unpack[Masking]
) -> Tensor:
    """Softmax attention over blocks of keys, one after the other, with a running maximum m and a running sum l.

    For each block ``Z = Q @ K.mT * scale``, ``m' = maximum(m, rowmax(Z))``, ``E = exp(Z - m')``,
    ``l' = exp(m - m') * l + rowsum(E)``, ``Y' = exp(m - m') * Y + E @ V``; at the end ``O = Y / l``. Q[.., T, d];
    O[.., T, e]. The blocks are K[.., S_b, d] and V[.., S_b, e], lists of any sizes, which are written out one by one;
    or with ``block=b`` the keys are K[.., S, d], S a multiple of b, and V[.., S, e], and it is a ``sa.scan`` over S/b
    blocks, for any number of them. It equals ``scaled_dot_product`` of all keys. ``scale`` is that of ``scores``; the
    mask is that of ``scaled_dot_product``, of keys that are no list. The maximum only guards against overflow: O does
    not depend on it, and derivatives do not go through it. Raises ShapeError for shapes that do not fit and
    OperandError for no blocks, for numbers of blocks that differ and for a mask of lists.
    Source: Milakov and Gimelshein 2018 (arXiv:1805.02867), algorithm 3; Dao et al. 2022 (arXiv:2205.14135).

    >>> import symattn as sa
    >>> Q, K_1, V_1 = sa.tensor("Q", "T d"), sa.tensor("K_1", "n d"), sa.tensor("V_1", "n e")
    >>> sa.attention.blockwise(Q, [K_1, sa.tensor("K_2", "m d")], [V_1, sa.tensor("V_2", "m e")]).shape
    (T, e)
    """
    if block is not None:
        return named("O", _over_blocks(operand("blockwise", Q, 2, "Q[.., T, d]"), keys, values, block, scale, masking))
    if isinstance(keys, Tensor):
        raise OperandError(
            "blockwise takes a list of blocks K, with one block or more, or one tensor of keys and block=, how many of "
            "them are a block"
        )
    if masking:
        raise OperandError("blockwise: a mask is for keys that are one tensor, with block=, and not for a list of them")
    before: tuple[Tensor, Tensor, Tensor] | None = None
    for b, (k, v) in enumerate(blocks("blockwise", K=keys, V=values), 1):
        z, v = scores(Q, k, scale=scale), operand("blockwise", v, 2, "V[.., S, e]")
        same("blockwise", z, -1, v, -2, "the number of keys and values")
        top = rows.max(stop_gradient(z), axis=-1, keepdims=True)
        m = named(f"m_{b}", top if before is None else maximum(before[0], top))
        weights = named(f"E_{b}", exp(z - m))
        total, output = rows.sum(weights, axis=-1, keepdims=True), weights @ v
        if before is not None:
            kept = named(f"a_{b}", exp(before[0] - m))
            total, output = kept * before[1] + total, kept * before[2] + output
        before = m, named(f"l_{b}", total), named(f"Y_{b}", output)
    assert before is not None
    return named("O", before[2] / before[1])


def _over_blocks(Q: Tensor, keys: Any, values: Any, block: Any, scale: Any, masking: Mapping[str, Any]) -> Tensor:
    """The same by a loop over blocks of one size."""
    K, V = operand("blockwise", keys, 2, "K[.., S, d]"), operand("blockwise", values, 2, "V[.., S, e]")
    same("blockwise", K, -2, V, -2, "the number of keys and values")
    mask = kept("blockwise", scores(Q, K, scale=scale), masking)
    size = as_size(block)
    count = quotient(K.shape[-2], size)
    sequences = [moveaxis(split_axis(x, -2, (count, size)), -3, 0) for x in (K, V)]
    if mask is not None:
        mask = broadcast_to(mask, (*mask.shape[:-1], K.shape[-2]))
        sequences.append(moveaxis(split_axis(mask, -1, (count, size)), -2, 0))

    def step(state: Any, read: Any) -> tuple[Any, None]:
        (m, l, Y), (k, v, *masked) = state, read
        Z = scores(Q, k, scale=scale)
        seen = stop_gradient(Z)
        top = maximum(m, rows.max(where(masked[0], seen, m[..., None]) if masked else seen, axis=-1))
        E = exp(where(masked[0], Z - top[..., None], -sympy.oo) if masked else Z - top[..., None])
        kept = exp(m - top)
        return (top, kept * l + rows.sum(E, axis=-1), kept[..., None] * Y + E @ v), None

    lead = _lead(Q, K, V, *([] if mask is None else [mask]))
    start = -sympy.oo if mask is None else _BELOW_ALL
    shape = (*lead, Q.shape[-2])
    (_, l, Y), _ = scan(
        step, (from_index(shape, lambda *_: start), zeros(*shape), zeros(*shape, V.shape[-1])), tuple(sequences)
    )
    return Y / (l[..., None] if mask is None else nonempty(l[..., None], mask))


def _lead(*several: Tensor) -> Shape:
    """The axes in front of all."""
    lead = broadcast_shapes(*(x.shape[:-2] for x in several))
    if lead is None:
        raise ShapeError(f"blockwise: the axes in front of {', '.join(x.brief() for x in several)} differ")
    return lead
