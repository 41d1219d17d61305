"""The order of a program: nodes that are computed whole, and loops over blocks along an axis.

The largest node is cut along each of its axes in turn, and the cut that keeps least is taken; what comes before and
after it is planned in the same way. What is larger than every argument and output is not kept for later stages: they
compute it again, block by block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from ...core.node import Tensor
from ...ops.leaves import from_index_op
from .axes import Places, axes_of
from .columns import Columns
from .extent import Extent
from .tracing import Cut, Live, cut_from, is_leaf

LEAST = 4096  # entries of a node for which a loop is worth while


class Loop(NamedTuple):
    """Nodes that are computed block by block along an axis of each, or added up over blocks.

    ``stored`` are kept whole after the loop, and ``again`` are those that are computed here a second time.
    """

    axes: dict[Tensor, int]
    added: dict[Tensor, Places]
    order: list[Tensor]
    stored: list[Tensor]
    again: list[Tensor]
    columns: Columns | None = None  # the part of another axis that a block sees

    @property
    def length(self) -> object:
        """The size of the axis along which the blocks lie."""
        return next(x.shape[axis] for x, axis in self.axes.items())

    def whole(self) -> list[Tensor]:
        """What every block reads whole, from outside of the loop."""
        found = dict[Tensor, None]()
        for x in self.order:
            places = self.added[x] if x in self.added else axes_of(x).cuts[self.axes[x]]
            cut = {k for k, _ in places}
            found.update((y, None) for k, y in enumerate(x.inputs) if k not in cut)
        return list(found)


Stage: TypeAlias = "Loop | list[Tensor]"


class _Choice(NamedTuple):
    cost: int
    first: list[Tensor]
    loop: Loop


class Schedule:
    """The stages for some outputs, where some nodes are known: arguments and constants, and later what is stored."""

    def __init__(self, outputs: Sequence[Tensor], known: set[Tensor], limit: int, extent: Extent) -> None:
        self.extent, self.limit = extent, limit
        self.met: set[Tensor] = set()
        wanted = [y for y in dict.fromkeys(outputs) if not is_leaf(y) and y not in known]
        self.stages: list[Stage] = self._planned(wanted, known)

    def _planned(self, outputs: Sequence[Tensor], known: set[Tensor]) -> list[Stage]:
        if not outputs:
            return []
        live = Live(outputs, known)
        found = self._best(live)
        if found is None:
            return [[x for x in live.order if x.inputs or x.op is from_index_op]]
        loop = found.loop
        before = self._planned([x for x in found.first if x.inputs], known)
        done = known.union(found.first, loop.stored)
        self.met.update(loop.order)
        return [*before, loop, *self._planned([y for y in outputs if y not in done], done)]

    def _best(self, live: Live) -> _Choice | None:
        large = [x for x in live.order if x.inputs and not x.op.is_view and self.extent.of(x) >= LEAST]
        if not large:
            return None
        seed = max(large, key=self.extent.of)
        choices = (self._choice(seed, axis, live) for axis in range(-seed.rank, 0) if seed.shape[axis] != 1)
        return min((c for c in choices if c is not None), key=lambda c: c.cost, default=None)

    def _choice(self, seed: Tensor, axis: int, live: Live) -> _Choice | None:
        found = cut_from(seed, axis, live)
        if found is None:
            return None
        cut, before = found
        first = [x for x in live.order if (x in cut.whole or x in before) and x not in cut]
        inside = [x for x in live.order if x in cut]
        stored, repeated = self._stored(cut, inside, live)
        if not stored:
            return None
        rest = [x for x in live.order if x not in cut and x not in first]
        kept = [*first, *stored, *rest, *cut.added, *repeated]
        again = [x for x in inside if x in self.met and not x.op.is_view]
        return _Choice(self._total(kept), first, Loop(cut.axes, cut.added, inside, stored, again))

    def _total(self, nodes: Iterable[Tensor]) -> int:
        return sum(self.extent.of(x) for x in nodes if not x.op.is_view)

    def _stored(self, cut: Cut, inside: Sequence[Tensor], live: Live) -> tuple[list[Tensor], list[Tensor]]:
        """What is kept of a loop for later, and what later stages compute again because it is too large, or a view."""
        outputs = set(live.outputs)
        needed = {y for x in live.order if x not in cut for y in x.inputs} | outputs
        repeated = []
        for x in reversed(inside):
            if x in needed and x not in cut.added and x not in outputs and self._is_taken_again(x):
                needed.discard(x)
                needed.update(x.inputs)
                if not x.op.is_view:
                    repeated.append(x)
        return [x for x in inside if x in needed or x in cut.added], repeated

    def _is_taken_again(self, x: Tensor) -> bool:
        return x.op.is_view or self.extent.of(x) > self.limit


def stages(outputs: Sequence[Tensor], known: set[Tensor], limit: int, extent: Extent) -> list[Stage]:
    """The stages of a program, in order; nothing larger than the limit is kept for later ones, but outputs are."""
    return Schedule(outputs, known, limit, extent).stages
