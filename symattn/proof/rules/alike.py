"""Which axes an operation treats alike, read off its entry formula.

An entry formula is called with a recording reader. An index that occurs in it only as a bare position of reads, or as
the index of a sum, maximum or minimum over a whole axis, can be renamed by any permutation of that axis: the operation
then commutes with the permutation, or absorbs it. Two indices compared by a Kronecker delta are renamed together.
So one rule holds for every operation, also for those that users declare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import sympy

from ...core.node import Tensor
from ...core.operation import Operation
from ...core.sizes import Shape, same_size
from ...ops import RECORDS
from ...ops.broadcasting import broadcast_index
from ...ops.leaves import stand_in
from ...ops.template import template
from ...scalars.formulas import Max, Min, _OfAll

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
    infinite = tuple(x.holds_minus_infinity for x in node.inputs)
    params = tuple(sorted(node.params.items()))
    return _facts(node.op, params, tuple(x.shape for x in node.inputs), infinite)


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
def _facts(op: Operation, params: tuple[Any, ...], shapes: tuple[Shape, ...], infinite: tuple[bool, ...]) -> Facts:
    inputs = enumerate(zip(shapes, infinite, strict=True))
    leaves = (stand_in(f"x{k}", shape, infinite=low) for k, (shape, low) in inputs)
    reading = _Reading(op.node(*leaves, **dict(params)))
    try:
        formula = reading.formula()
    except Exception:  # an entry formula that cannot be read so: nothing is known, and no rule applies
        return Facts((), False)
    return reading.facts(formula)


@dataclass
class _Reading:
    """One call of an entry formula, and what it shows of each index."""

    node: Tensor
    output: tuple[sympy.Symbol, ...] = ()
    reads: tuple[tuple[int, tuple[Any, ...]], ...] = ()
    parent: dict[Any, Any] = field(default_factory=dict)
    sizes: dict[Any, sympy.Expr] = field(default_factory=dict)
    stuck: dict[Any, None] = field(default_factory=dict)

    def formula(self) -> Any:
        """The entry at index symbols, with a symbol for each read."""
        entry = template(self.node)
        self.output, self.reads = entry.index, tuple(entry.reads.values())
        self.sizes.update(zip(self.output, self.node.shape, strict=True))
        return entry.formula

    def facts(self, formula: Any) -> Facts:
        bound = self._walk(formula)
        self._join_positions()
        own = not bound and all(x.rank <= self.node.rank for x in self.node.inputs)
        own = own and all(at == broadcast_index(self.node.inputs[k].shape, self.output) for k, at in self.reads)
        return Facts(self._groups(), own and not self.stuck)

    def _walk(self, formula: Any) -> bool:
        """Note the bound indices and their ranges, and which indices the formula uses otherwise than to read.

        Tells whether there are bound indices.
        """
        bound: dict[Any, None] = {}
        pending, uses = [formula], []
        while pending:
            part = pending.pop()
            if isinstance(part, _FOLDS) and not isinstance(part, _OfAll):
                pending.append(part.function)
                for k, low, high in part.limits:
                    bound[k] = None
                    self._note_range(k, low, high)
                    uses += [low, high]
            elif isinstance(part, _COMPARISONS) and all(a.is_Symbol for a in part.args[:2]):
                uses.append(part)
            elif isinstance(part, sympy.concrete.expr_with_limits.ExprWithLimits):
                self.stuck.update(dict.fromkeys(limit[0] for limit in part.limits))
                bound.update(dict.fromkeys(limit[0] for limit in part.limits))
                pending.extend(part.args)
            elif part.args:
                pending.extend(part.args)
            else:
                uses.append(part)
        indices = {**dict.fromkeys(self.output), **bound}
        for use in uses:
            self._note_use(use, indices)
        return bool(bound)

    def _note_range(self, k: Any, low: Any, high: Any) -> None:
        size = high + 1
        if low != 0 or not same_size(self.sizes.setdefault(k, size), size):
            self.stuck[k] = None

    def _note_use(self, use: Any, indices: Mapping[Any, None]) -> None:
        used = [s for s in use.free_symbols if s in indices]
        if isinstance(use, _COMPARISONS) and len(used) == 2 and all(a in indices for a in use.args[:2]):
            self._join(*use.args[:2])
        else:
            self.stuck.update(dict.fromkeys(used))

    def _join_positions(self) -> None:
        for k, at in self.reads:
            x = self.node.inputs[k]
            for axis, i in enumerate(at, -x.rank):
                position = (k, axis)
                self.sizes[position] = x.shape[axis]
                if i in self.sizes:
                    self._join(position, i)
                else:  # a constant, a shifted index, an index that was read itself
                    self.stuck[position] = None
                    self.stuck.update(dict.fromkeys(s for s in sympy.sympify(i).free_symbols if s in self.sizes))

    def _find(self, a: Any) -> Any:
        while self.parent.get(a, a) != a:
            a = self.parent[a]
        return a

    def _join(self, a: Any, b: Any) -> None:
        first, second = self._find(a), self._find(b)
        if first != second:
            self.parent[second] = first

    def _groups(self) -> tuple[Group, ...]:
        """The classes of joined indices and positions in which nothing is stuck and all sizes are one."""
        members: dict[Any, list[Any]] = {}
        for item in self.sizes:
            members.setdefault(self._find(item), []).append(item)
        found = []
        for group in members.values():
            size = self.sizes[group[0]]
            if any(item in self.stuck for item in group) or not all(same_size(size, self.sizes[i]) for i in group):
                continue
            inputs = tuple(item for item in group if isinstance(item, tuple))
            outputs = tuple(place - len(self.output) for place, i in enumerate(self.output) if i in group)
            found.append(Group(inputs, outputs, len(group) == len(inputs) + 1 and len(outputs) == 1))
        return tuple(found)
