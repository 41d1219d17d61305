"""What the functions of this package share: how a mask is given, and where their arguments are checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict

from ..core.arguments import one_of
from ..core.node import Tensor
from ..core.sizes import same_size
from ..errors import OperandError, ShapeError
from ..ops import rows
from ..ops.leaves import as_tensor, scalar_value
from ..ops.logic import as_mask, equal, logical_and, logical_not, where


class Masking(TypedDict, total=False):
    """The keywords by which a mask is given, the same in all functions that take one.

    ``mask`` is a binary tensor that broadcasts with the scores, and leaves them their shape; only scores [T, S] without
    axes in front get those of the mask. Between a batch and queries there may be heads, mask[B, 1, T, S] or
    mask[B, 1, 1, S]. ``mask_polarity`` says what True means in it:
    ``"attend"`` (the default; PyTorch's ``scaled_dot_product_attention``, JAX, ONNX) or ``"block"`` (PyTorch's
    ``MultiheadAttention`` and its ``key_padding_mask``). ``empty`` says what becomes of a row without keys: ``"zero"``
    (the default; zeros, with gradient zero) or ``"error"`` (a ValueError when it is run).
    """

    mask: Any
    mask_polarity: Literal["attend", "block"]
    empty: Literal["zero", "error"]


class Scoring(Masking, total=False):
    """The keywords of ``scaled_dot_product``, which other functions hand on to it.

    ``scale`` is the factor of the scores, by default 1/sqrt(d); ``softcap`` the c of c tanh(Z/c), both scalars or
    numbers of heads, [h, 1, 1]; ``bias`` is added to the scores, and broadcasts as the mask does. The mask comes last.
    """

    scale: Any
    softcap: Any
    bias: Any


def kept(what: str, scores: Tensor, masking: Mapping[str, Any]) -> Tensor | None:
    """The mask of these scores with True for "attend", or None."""
    known(what, masking, Masking)
    polarity = one_of(what, "mask_polarity", masking.get("mask_polarity", "attend"), "attend", "block")
    one_of(what, "empty", masking.get("empty", "zero"), "zero", "error")
    if masking.get("mask") is None:
        return None
    keep = as_mask(masking["mask"], f"the mask of {what}")
    fitting(what, "mask", keep, scores)
    return logical_not(keep) if polarity == "block" else keep


def kept_or_zero(what: str, scores: Tensor, masking: Mapping[str, Any]) -> Tensor | None:
    """The same where a row without keys gives zeros whatever its weights sum to: ``empty="error"`` is for a softmax."""
    keep = kept(what, scores, masking)
    if masking.get("empty") == "error":
        raise OperandError(f'{what}: a row without keys gives zeros; empty="error" is for softmax')
    return keep


def nonempty(total: Tensor, keep: Tensor) -> Tensor:
    """The sum of a row, and 1 where no key is kept, so that its zeros stay zeros."""
    return where(equal(rows.sum(keep, axis=-1, keepdims=True), 0), 1, total)


def masking_of(options: Mapping[str, Any]) -> Any:
    """Those of the keywords that say how a mask is given."""
    return {keyword: value for keyword, value in options.items() if keyword in Masking.__annotations__}


def fitting(what: str, role: str, x: Tensor, scores: Tensor) -> Tensor:
    """What broadcasts to the shape of the scores; scores [T, S] without axes in front get those of x."""
    if scores.rank == 1 and x.rank > 1:
        raise ShapeError(
            f"{what}: the {role} {x.brief()} has {x.rank} axes, and {scores.brief()} are the scores of one query: "
            f"give the query an axis, Q[None, :], or the {role} the axis of the keys alone"
        )
    misfit = f"{what}: the {role} {x.brief()} does not fit the scores {scores.brief()}: "
    if x.rank > scores.rank > 2:
        raise ShapeError(f"{misfit}it has more axes")
    for axis in range(-1, -min(x.rank, scores.rank) - 1, -1):
        size, of = x.shape[axis], {-1: "of the keys", -2: "of the queries"}.get(axis, "in front of them")
        if size != 1 and not same_size(size, scores.shape[axis]):
            raise ShapeError(f"{misfit}axis {axis}, {of}, has the size {size}, not {scores.shape[axis]}")
    return x


def known(what: str, options: Mapping[str, Any], declared: Any) -> None:
    """Raise an OperandError for a keyword that is not declared: none is ignored."""
    for keyword in options:
        if keyword not in declared.__annotations__:
            way_out = "; causal attention is mask=causal_mask(T, S)" if "causal" in keyword else ""
            raise OperandError(
                f"{what} has no keyword {keyword!r}, only {', '.join(declared.__annotations__)}{way_out}"
            )


def operand(what: str, x: Any, rank: int, shape: str) -> Tensor:
    """The tensor, if it has at least this many axes; ``shape`` is how the message writes what is meant."""
    made = as_tensor(x)
    if made.rank < rank:
        raise ShapeError(f"{what}: {made.brief()} has {made.rank} axes where {shape} is meant")
    return made


def queries_and_keys(what: str, Q: Any, K: Any) -> tuple[Tensor, Tensor]:
    """Queries and keys of one width, the queries perhaps one alone."""
    queries, keys = operand(what, Q, 1, "Q[.., T, d]"), operand(what, K, 2, "K[.., S, d]")
    same(what, queries, -1, keys, -1, "their width")
    one_query(what, queries, keys)
    return queries, keys


def kept_causal(what: str, scores: Tensor, causal: Tensor, masking: Mapping[str, Any]) -> Tensor:
    """A causal mask, and of the keys that it leaves those that the keywords keep."""
    given = kept(what, scores, masking)
    return causal if given is None else logical_and(causal, given)


def one_query(what: str, queries: Tensor, keys: Tensor) -> None:
    """Raise a ShapeError for one query Q[d] of several heads: its scores, [h, S], would be read as [T, S]."""
    if queries.rank == 1 and keys.rank > 2:
        raise ShapeError(
            f"{what}: {queries.brief()} is one query, and {keys.brief()} has axes in front: "
            "give the query an axis, Q[None, :]"
        )


def factor(what: str, scale: Any, role: str = "scale") -> Tensor:
    """A factor of scores: a scalar, or one a head with places for queries and keys."""
    made = as_tensor(scale)
    if made.rank and (made.rank < 2 or made.shape[-2:] != (1, 1)):
        raise ShapeError(f"{what}: the {role} {made.brief()} is a scalar, or one a head, with the sizes [h, 1, 1]")
    return made


def epsilon(what: str, eps: Any) -> Tensor:
    """What keeps a divisor from 0: a number of 0 or more, or a scalar."""
    made = scalar(what, "eps", eps)
    value = scalar_value(made)
    if value is not None and value.is_negative:
        raise OperandError(f"{what}: eps is 0 or more, not {eps}")
    return made


def exactly(what: str, x: Any, shape: str) -> Tensor:
    """The tensor, if it has as many axes as the shape that is meant, as ``W[h, D, d]``."""
    made = as_tensor(x)
    if made.rank != shape.count(",") + 1:
        raise ShapeError(f"{what}: {made.brief()} has {made.rank} axes where {shape} is meant")
    return made


def scalar(what: str, role: str, x: Any) -> Tensor:
    """A number, a symbol or a tensor without axes."""
    made = as_tensor(x)
    if made.rank:
        raise ShapeError(f"{what}: {role} is a number or a scalar, not {made.brief()}")
    return made


def same(what: str, a: Tensor, axis: int, b: Tensor, other: int, of: str) -> None:
    """Raise a ShapeError unless an axis of one tensor has the size of an axis of another."""
    if not same_size(a.shape[axis], b.shape[other]):
        raise ShapeError(
            f"{what}: {a.brief()} and {b.brief()} differ in {of}: axis {axis} of the first is {a.shape[axis]}, "
            f"axis {other} of the second is {b.shape[other]}"
        )


def blocks(what: str, **lists: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """The blocks of several lists, together."""
    for name, several in lists.items():
        if not isinstance(several, list | tuple) or not several:
            raise OperandError(f"{what} takes a list of blocks {name}, with one block or more")
    counts = {name: len(several) for name, several in lists.items()}
    if len(set(counts.values())) > 1:
        raise OperandError(
            f"{what}: the numbers of blocks differ: " + ", ".join(f"{n} of {x}" for x, n in counts.items())
        )
    return zip(*lists.values(), strict=True)
