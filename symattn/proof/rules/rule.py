"""What a rewrite rule is, and the one order in which sums and products are written."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from ...core.exact import INDICES
from ...core.node import Tensor, topological
from ...core.operation import Operation
from ...core.sizes import ONE
from ...ops.arithmetic import split_scalar
from ...ops.broadcasting import broadcast_to, broadcast_to_op, sum_op
from ...ops.index import NEW, index, index_op, replaced
from ...ops.leaves import from_index_op
from ...ops.rows import mean_op

Item = TypeVar("Item")
Said = tuple[str | Tensor, ...]  # a sentence, in which tensors stand by their names
ANY: tuple[Operation, ...] = ()


def _needs_nothing(x: Tensor) -> tuple[Tensor, ...]:
    return ()


@dataclass(frozen=True)
class Rule:
    """An equality, used from left to right.

    ``reason``
        the equality in a sentence.
    ``phase``
        1: moves permutations, transposes and brackets, and never multiplies out; 2: multiplies out, and splits
        exponentials; 3: writes softmax by its definition.
    ``apply``
        the right side for a node that has the form of the left side, else None. The inputs of the node are in normal
        form. It is a function of the node alone, so that a proof can be replayed.
    ``heads``
        the operations that the left side may have at its top; none means any.
    ``nonzero``
        the tensors in a node that must have no entry 0 for it to hold.
    ``routine``
        whether it only regroups, reorders or transposes, which is not told of what a claim has a name for.
    ``says``
        the sentence on one use of it, of both sides, where that says more: of which operation, of which permutation.
    """

    name: str
    reason: str
    phase: int
    apply: Callable[[Tensor], Tensor | None]
    heads: tuple[Operation, ...] = ANY
    nonzero: Callable[[Tensor], tuple[Tensor, ...]] = _needs_nothing
    routine: bool = False
    says: Callable[[Tensor, Tensor], Said | str] | None = None

    def why(self, before: Tensor, after: Tensor) -> Said:
        """The sentence on one use of the rule."""
        said = self.reason if self.says is None else self.says(before, after)
        return (said,) if isinstance(said, str) else said

    def __repr__(self) -> str:
        return f"<rule {self.name}>"


# --- words ---


def called(node: Tensor, first: bool = False) -> str:
    """What people call an operation, as the first word of a sentence or inside of it."""
    if node.op in (sum_op, mean_op):
        return f"{'A' if first else 'a'} {node.op.name}"
    if node.op.called:
        return node.op.called.capitalize() if first else node.op.called
    return str(node.params.get("function") or node.op.name)


def places(rank: int, axis: int) -> str:
    """What lies along an axis: rows, columns, the entries of a vector."""
    if rank == 1:
        return "entries"
    return {-1: "columns", -2: "rows"}.get(axis, f"axis {axis}")


# --- one order for the terms of a sum and the factors of a product ---

# By height first: the terms that a deep network adds come in this order, so that its sums need no sorting. The digest
# decides between nodes of one height. It depends on structure alone, never on hashes or on what was built before.
_digests: weakref.WeakKeyDictionary[Tensor, bytes] = weakref.WeakKeyDictionary()


@lru_cache(maxsize=4096)
def _written(params: tuple[tuple[str, Any], ...]) -> bytes:
    return str(params).encode()


def digest(x: Tensor) -> bytes:
    """A short name for the structure of a tensor."""
    for node in topological([x], stop=_digests):
        parts = [node.op.name.encode(), _written(tuple(sorted(node.params.items())))]
        parts += [_digests[i] for i in node.inputs]
        _digests[node] = hashlib.blake2b(b"\0".join(parts), digest_size=16).digest()
    return _digests[x]


def ordered(items: Iterable[Item], of: Callable[[Item], Tensor]) -> list[Item]:
    """The items in the order of their tensors."""
    listed = list(items)
    heights = [of(item).height for item in listed]
    if len(set(heights)) == len(heights):
        return sorted(listed, key=lambda item: of(item).height)
    return sorted(listed, key=lambda item: (of(item).height, digest(of(item))))


# --- axes along which a tensor does not change ---


def size_at(x: Tensor, axis: int) -> Any:
    """The size of an axis counted from the end; an axis that is not there counts as 1, as in broadcasting."""
    return x.shape[axis] if x.rank >= -axis else ONE


def constant_along(x: Tensor, axis: int) -> bool:
    """Whether the entries visibly do not depend on the position along an axis of size other than 1."""
    _, rest = split_scalar(x)
    if rest is None or size_at(rest, axis) == 1:
        return False
    if rest.op is from_index_op:
        return INDICES[rest.rank + axis] not in rest.params["formula"].free_symbols
    return rest.op is broadcast_to_op and size_at(rest.inputs[0], axis) == 1


def one_of(x: Tensor, axis: int) -> Tensor:
    """A tensor that is constant along an axis, with that axis of size 1."""
    coefficient, rest = split_scalar(x)
    assert rest is not None
    shape = replaced(rest.shape, axis, ONE)
    if rest.op is from_index_op:
        part = from_index_op(formula=rest.params["formula"], shape=shape)
    else:
        part = broadcast_to(rest.inputs[0], shape)
    return part if coefficient == 1 else coefficient * part


def bare(x: Tensor) -> Tensor:
    """The tensor without what broadcasting does by itself: ``broadcast_to`` and new axes in front."""
    while x.op is broadcast_to_op or new_in_front(x):
        x = x.inputs[0] if x.op is broadcast_to_op else index(x.inputs[0], x.params["items"][1:])
    return x


def new_in_front(x: Tensor) -> bool:
    """Whether the first axis is a new one."""
    if x.op is not index_op:
        return False
    items = x.params["items"]
    return items[0] == NEW and sum(item[0] != "at" for item in items) == x.rank
