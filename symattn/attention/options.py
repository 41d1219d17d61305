"""What the functions of this package share: how a mask is given, and where their arguments are checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from ..errors import OperandError, ShapeError
from ..ops.leaves import as_tensor
from ..ops.logic import as_mask, logical_not
from ..sizes import same_size
from ..tensor import Tensor


class Masking(TypedDict, total=False):
    """The keywords by which a mask is given, the same in all functions that take one.

    ``mask`` is a binary tensor that broadcasts with the scores. ``mask_polarity`` says what True means in it:
    ``"attend"`` (the default; PyTorch's ``scaled_dot_product_attention``, JAX, ONNX) or ``"block"`` (PyTorch's
    ``MultiheadAttention`` and its ``key_padding_mask``). ``empty`` says what becomes of a row without keys: ``"zero"``
    (the default; zeros, with gradient zero) or ``"error"`` (a ValueError when it is run).
    """

    mask: Any
    mask_polarity: Literal["attend", "block"]
    empty: Literal["zero", "error"]


class Scoring(Masking, total=False):
    """The keywords of ``scaled_dot_product``, which other functions hand on to it.

    ``scale`` is the factor of the scores, by default 1/sqrt(d); ``softcap`` the c of c tanh(Z/c); ``bias`` is added to
    the scores. The mask comes last.
    """

    scale: Any
    softcap: Any
    bias: Any


def kept(what: str, scores: Tensor, masking: Mapping[str, Any]) -> Tensor | None:
    """The mask of these scores with True for "attend", or None; its last two sizes are those of the scores, or 1."""
    known(what, masking, Masking)
    polarity = one_of(what, "mask_polarity", masking.get("mask_polarity", "attend"), "attend", "block")
    one_of(what, "empty", masking.get("empty", "zero"), "zero", "error")
    if masking.get("mask") is None:
        return None
    keep = as_mask(masking["mask"], f"the mask of {what}")
    for axis in (-1, -2)[: scores.rank]:
        if keep.rank >= -axis and keep.shape[axis] != 1 and not same_size(keep.shape[axis], scores.shape[axis]):
            raise ShapeError(
                f"{what}: the mask {keep.brief()} does not fit the scores {scores.brief()}: axis {axis}, of the "
                f"{'keys' if axis == -1 else 'queries'}, has the size {keep.shape[axis]}, not {scores.shape[axis]}"
            )
    return logical_not(keep) if polarity == "block" else keep


def known(what: str, options: Mapping[str, Any], declared: Any) -> None:
    """Raise an OperandError for a keyword that is not declared: none is ignored."""
    for keyword in options:
        if keyword not in declared.__annotations__:
            way_out = "; causal attention is mask=causal_mask(T, S)" if "causal" in keyword else ""
            raise OperandError(
                f"{what} has no keyword {keyword!r}, only {', '.join(declared.__annotations__)}{way_out}"
            )


def one_of(what: str, keyword: str, value: Any, *allowed: str) -> Any:
    """The value of a keyword that names a convention, or an OperandError with the names there are."""
    if value not in allowed:
        known = ", ".join(map(repr, allowed[:-1])) + f" or {allowed[-1]!r}"
        raise OperandError(f"{what}: {keyword} is {known}, not {value!r}")
    return value


def operand(what: str, x: Any, rank: int, shape: str) -> Tensor:
    """The tensor, if it has at least this many axes; ``shape`` is how the message writes what is meant."""
    made = as_tensor(x)
    if made.rank < rank:
        raise ShapeError(f"{what}: {made.brief()} has {made.rank} axes where {shape} is meant")
    return made


def same(what: str, a: Tensor, axis: int, b: Tensor, other: int, of: str) -> None:
    """Raise a ShapeError unless an axis of one tensor has the size of an axis of another."""
    if not same_size(a.shape[axis], b.shape[other]):
        raise ShapeError(
            f"{what}: {a.brief()} and {b.brief()} differ in {of}: axis {axis} of the first is {a.shape[axis]}, "
            f"axis {other} of the second is {b.shape[other]}"
        )
