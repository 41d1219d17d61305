"""The order of a program: nodes that are computed whole, and loops over blocks along an axis.

The largest node is cut along each of its axes in turn, and the cut that keeps least is taken; what comes before it is
planned in the same way, and then what is left. What is larger than every argument and output is not kept for later
stages: they compute it again, block by block. A loop is found where it lies, so that the time for a plan grows with
the number of its stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple, TypeAlias

from ...core.node import Tensor, topological
from ...ops.leaves import from_index_op
from .axes import Places, axes_of
from .columns import Columns
from .extent import Extent
from .live import Live, MadeFrom, is_leaf
from .tracing import Cut, cut_from

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


_Seed: TypeAlias = "tuple[bool, int, bool, int, Tensor]"  # whether it is kept, its size, if met before, its place


class _Choice(NamedTuple):
    cost: int
    first: list[Tensor]
    loop: Loop


class Schedule:
    """The stages for some outputs, where some nodes are known: arguments and constants, and later what is stored.

    Nothing larger than the limit is kept for later stages, but outputs are; ``may_cut`` says which axes may be cut,
    where a node has at least so many entries.
    """

    def __init__(
        self,
        outputs: Sequence[Tensor],
        known: set[Tensor],
        limit: int,
        extent: Extent,
        may_cut: Callable[[Tensor, int], bool] = lambda x, axis: True,
        least: int = LEAST,
    ) -> None:
        self.extent, self.limit, self.may_cut, self.least = extent, limit, may_cut, least
        self.known = set(known)
        self.met: set[Tensor] = set()
        self.stages: list[Stage] = []
        self._plan([y for y in dict.fromkeys(outputs) if not is_leaf(y)])

    def _plan(self, outputs: Sequence[Tensor]) -> list[Tensor]:
        """Append the stages that make these nodes known; gives all that is known by them."""
        live, made = Live(outputs, self.known), list[Tensor]()
        seeds = self._seeds(live)
        heapify(seeds)
        while seeds:
            is_kept, size, is_again, place, seed = heappop(seeds)
            if seed not in live:
                continue
            if is_again != (seed in self.met):
                heappush(seeds, (is_kept, size, True, place, seed))  # others of that size come before it
                continue
            found = self._best(seed, live)
            if found is not None:
                known = [*self._plan(found.first), *found.loop.stored]
                self.stages.append(found.loop)
                self.known.update(found.loop.stored)
                self.met.update(found.loop.order)
                live.settle(known)
                made += known
                heappush(seeds, (is_kept, size, True, place, seed))  # where it is computed again
        rest = [x for x in live if x.inputs or x.op is from_index_op]
        if rest:
            self.stages.append(rest)
            self.known.update(rest)
        return [*made, *rest]

    def _seeds(self, live: Live) -> list[_Seed]:
        """The large nodes, the largest first; last come outputs and their terms, whose memory is taken in any case."""
        order = list(live)
        kept = set(live.wanted)
        for x in reversed(order):
            users = live.users(x)
            if users and all(u in kept and u.shape == x.shape for u in users):
                kept.add(x)
        large = [x for x in order if x.inputs and not x.op.is_view and self.extent.of(x) >= self.least]
        return [(x in kept, -self.extent.of(x), x in self.met, live.place[x], x) for x in large]

    def _best(self, seed: Tensor, live: Live) -> _Choice | None:
        made = MadeFrom(seed, live)
        axes = (axis for axis in range(-seed.rank, 0) if seed.shape[axis] != 1 and self.may_cut(seed, axis))
        choices = (self._choice(seed, axis, live, made) for axis in axes)
        return min((c for c in choices if c is not None), key=lambda c: c.cost, default=None)

    def _choice(self, seed: Tensor, axis: int, live: Live, made: MadeFrom) -> _Choice | None:
        cut = cut_from(seed, axis, live, made)
        if cut is None:
            return None
        cut = self._needed(cut, live)
        inside = live.ordered([*cut.axes, *cut.added])
        stored, repeated = self._stored(cut, inside, live)
        if not stored or sum(not x.op.is_view for x in inside) < 2:
            return None
        again = [x for x in inside if x in self.met and not x.op.is_view]
        loop = Loop(cut.axes, cut.added, inside, stored, again)
        cost = self._total([*stored, *cut.added, *repeated]) - self._total(inside)
        return _Choice(cost, live.ordered(cut.whole), loop)

    def _needed(self, cut: Cut, live: Live) -> Cut:
        """The cut without what only those need that are computed before it."""
        if not cut.whole:
            return cut
        before = {x for x in topological(cut.whole, stop=self.known) if x not in cut}
        unneeded = set[Tensor]()
        for x in reversed(live.ordered([*cut.axes, *cut.added])):
            if x not in live.wanted and all(u in before or u in unneeded for u in live.users(x)):
                unneeded.add(x)
        axes = {x: axis for x, axis in cut.axes.items() if x not in unneeded}
        return Cut(axes, {x: places for x, places in cut.added.items() if x not in unneeded}, cut.whole)

    def _total(self, nodes: Iterable[Tensor]) -> int:
        return sum(self.extent.of(x) for x in nodes if not x.op.is_view)

    def _stored(self, cut: Cut, inside: Sequence[Tensor], live: Live) -> tuple[list[Tensor], list[Tensor]]:
        """What is kept of a loop for later, and what later stages compute again because it is too large, or a view."""
        needed = {x for x in inside if x in live.wanted or any(u not in cut for u in live.users(x))}
        repeated = []
        for x in reversed(inside):
            if x in needed and x not in cut.added and x not in live.wanted and self._is_taken_again(x):
                needed.discard(x)
                needed.update(x.inputs)
                if not x.op.is_view:
                    repeated.append(x)
        return [x for x in inside if x in needed or x in cut.added], repeated

    def _is_taken_again(self, x: Tensor) -> bool:
        return x.op.is_view or self.extent.of(x) > self.limit
