"""Which axes an operation treats alike, read off its entry formula.

An entry formula is called with a recording reader. An index that occurs in it only as a bare position of reads, or as
the index of a sum, maximum or minimum over a whole axis, can be renamed by any permutation of that axis: the operation
then commutes with the permutation, or absorbs it. Two indices compared by a Kronecker delta are renamed together.
So one rule holds for every operation, also for those that users declare.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.utilities.iterables import connected_components

from ..core.node import Tensor
from ..core.operation import Operation
from ..core.sizes import Shape, same_size
from ..ops import RECORDS
from ..ops.broadcasting import broadcast_index
from ..ops.leaves import stand_in
from ..ops.template import Template, template
from ..scalars.formulas import Max, Min, _OfAll

Position = tuple[int, int]  # an input, and an axis of it counted from the end
_FOLDS = (sympy.Sum, sympy.Product, Max, Min)  # which do not change when their terms are permuted
_COMPARISONS = (sympy.KroneckerDelta, sympy.Eq, sympy.Ne)


@dataclass(frozen=True)
class Group:
    """Axes that one permutation acts on: if it permutes all of ``inputs``, it permutes all of ``outputs``.

    A ``plain`` group is one output index and nothing else: every output entry reads its inputs at that index alone.
    """

    inputs: tuple[Position, ...]
    outputs: tuple[int, ...]
    plain: bool


@dataclass(frozen=True)
class Facts:
    """The groups of an operation; ``entrywise`` if an entry reads each input at its own index, broadcast."""

    groups: tuple[Group, ...]
    entrywise: bool


def facts(node: Tensor) -> Facts:
    """The facts about a node; they depend on its operation, parameters and shapes alone."""
    params = tuple(sorted(node.params.items()))
    return _facts(node.op, params, tuple((x.shape, x.kind, x.holds_minus_infinity) for x in node.inputs))


_SCALAR_PARAMETERS = {"formula", "function", "rowwise"}  # which say nothing of shapes


def works_entrywise(node: Tensor) -> bool:
    """Whether a node of symattn's own works entry by entry, whatever the shape.

    A declared operation may use its sizes in its formula, so that another shape would be another operation.
    """
    return is_own(node) and node.params.keys() <= _SCALAR_PARAMETERS and facts(node).entrywise


def is_own(node: Tensor) -> bool:
    """Whether the operation is symattn's own, not one that a user declared."""
    return RECORDS.get(node.op.name) is node.op


@lru_cache(maxsize=4096)
def _facts(op: Operation, params: tuple[Any, ...], inputs: tuple[tuple[Shape, str, bool], ...]) -> Facts:
    node = op.node(*(stand_in(f"x{k}", *known) for k, known in enumerate(inputs)), **dict(params))
    try:
        entry = template(node)
    except Exception:  # an entry formula that cannot be read so: nothing is known, and no rule applies
        return Facts((), False)
    return _Reading(node, entry).facts()


class _Reading:
    """One reading of an entry formula, and what it shows of each index and of each position of an input.

    ``joined`` are pairs that move together, and what is ``stuck`` is used otherwise than to read.
    """

    def __init__(self, node: Tensor, entry: Template) -> None:
        self.node, self.entry, self.reads = node, entry, tuple(entry.reads.values())
        self.sizes: dict[Any, sympy.Expr] = dict(zip(entry.index, node.shape, strict=True))
        self.joined: list[tuple[Any, Any]] = []
        self.stuck: set[Any] = set()

    def facts(self) -> Facts:
        bound, uses = self._parts()
        for use in uses:
            self._note_use(use, {*self.entry.index, *bound})
        for k, at in self.reads:
            self._join_positions(k, at)
        own = not bound and all(x.rank <= self.node.rank for x in self.node.inputs)
        own = own and all(at == broadcast_index(self.node.inputs[k].shape, self.entry.index) for k, at in self.reads)
        return Facts(tuple(self._groups()), own and not self.stuck)

    def _parts(self) -> tuple[list[Any], list[Any]]:
        """The bound indices, whose ranges are noted, and the leaves and comparisons in which indices may be used."""
        bound, uses, pending = list[Any](), list[Any](), [self.entry.formula]
        while pending:
            part = pending.pop()
            if isinstance(part, ExprWithLimits):
                pending.append(part.function)
                uses += part.places if isinstance(part, _OfAll) else ()  # of what is no fold, each place is its own
                for k, *ends in part.limits:
                    bound.append(k)
                    uses += ends
                    if not isinstance(part, _FOLDS) or not self._is_over_an_axis(k, *ends):
                        self.stuck.add(k)
            elif part.args and not _compares_indices(part):
                pending.extend(part.args)
            else:
                uses.append(part)
        return bound, uses

    def _is_over_an_axis(self, k: Any, low: Any, high: Any) -> bool:
        return bool(low == 0) and same_size(self.sizes.setdefault(k, high + 1), high + 1)

    def _note_use(self, use: Any, indices: Collection[Any]) -> None:
        used = use.free_symbols.intersection(indices)
        if _compares_indices(use) and len(used) == 2:
            self.joined.append(use.args[:2])
        else:
            self.stuck |= used

    def _join_positions(self, k: int, at: tuple[Any, ...]) -> None:
        x = self.node.inputs[k]
        for axis, i in enumerate(at, -x.rank):
            position = (k, axis)
            self.sizes[position] = x.shape[axis]
            if i in self.sizes:
                self.joined.append((position, i))
            else:  # a constant, a shifted index, an index that was read itself
                self.stuck |= {position, *(s for s in sympy.sympify(i).free_symbols if s in self.sizes)}

    def _groups(self) -> Iterator[Group]:
        """The classes of joined indices and positions in which nothing is stuck and all sizes are one."""
        items = dict.fromkeys([*self.sizes, *(item for pair in self.joined for item in pair)])
        for group in connected_components((list(items), self.joined)):
            if self.stuck.isdisjoint(group) and all(same_size(self.sizes[group[0]], self.sizes[x]) for x in group):
                inputs = tuple(item for item in self.sizes if item in group and isinstance(item, tuple))
                places = enumerate(self.entry.index, -self.node.rank)
                outputs = tuple(place for place, i in places if i in group)
                yield Group(inputs, outputs, len(group) == len(inputs) + 1 and len(outputs) == 1)


def _compares_indices(part: Any) -> bool:
    return isinstance(part, _COMPARISONS) and all(a.is_Symbol for a in part.args[:2])
