"""Follows one axis through a graph, from a node up to what is made from it and down to what it is made from.

What is found is a cut: nodes that are known block by block along an axis, and nodes that are added up over blocks.
First what is made from the seed is settled, in order: a node that cannot be cut, and all that is made from it, comes
after the loop. Then demands go down to what the cut nodes read. Last come other users of what is cut by then, which
share its blocks if they need nothing more. A node that would have to be there both whole and in blocks is computed
before; the walk then begins again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from ...core.node import Tensor
from .axes import Places, axes_of
from .live import Live, MadeFrom, is_leaf


@dataclass(frozen=True)
class Cut:
    """The axis of each node that is cut, the positions that are added up in others, and what is needed whole."""

    axes: dict[Tensor, int]
    added: dict[Tensor, Places]
    whole: set[Tensor]

    def __contains__(self, x: object) -> bool:
        return x in self.axes or x in self.added


class _Before(Exception):
    """A node of the loop that has to be computed before it."""

    def __init__(self, node: Tensor) -> None:
        self.node = node


def cut_from(seed: Tensor, axis: int, live: Live, made: MadeFrom) -> Cut | None:
    """The cut that runs through a node along an axis; None if there is none."""
    before = set[Tensor]()
    while axis in axes_of(seed).cuts:
        try:
            return _Trace(seed, axis, live, made, before).traced()
        except _Before as found:
            if found.node in made:
                return None
            before.add(found.node)
    return None


class _Trace:
    """One walk; ``whole`` is what is computed before the loop, by demand or because it was found to be so."""

    def __init__(self, seed: Tensor, axis: int, live: Live, made: MadeFrom, before: Iterable[Tensor]) -> None:
        self.live, self.made = live, made
        self.axes: dict[Tensor, int] = {seed: axis}
        self.added: dict[Tensor, Places] = {}
        self.whole: set[Tensor] = set(before)
        self.open: list[tuple[Tensor, Places]] = [(seed, axes_of(seed).cuts[axis])]  # whose demands are to be met

    def traced(self) -> Cut:
        self._settle_users(self.axes)
        while self.open:
            reached = self._meet_demands()
            self._settle_users(reached)
        return Cut(self.axes, self.added, self.whole)

    # --- up ---

    def _settle_users(self, cut: Iterable[Tensor]) -> None:
        """The users of what is cut, in order, so that all that one reads is settled before it."""
        place = self.live.place
        waiting = [(place[u], u) for x in cut for u in self.live.users(x)]
        heapify(waiting)
        last = -1
        while waiting:
            n, u = heappop(waiting)
            if n == last or u in self or u in self.whole:
                continue
            last = n
            if self._is_taken(u) and u in self.axes:
                for user in self.live.users(u):
                    heappush(waiting, (place[user], user))

    def __contains__(self, x: object) -> bool:
        return x in self.axes or x in self.added

    def _is_taken(self, u: Tensor) -> bool:
        """Whether a user of cut nodes is cut as well, or added up.

        What is made from the seed may ask for more, if that can be had. Others take what is there.
        """
        asks = u in self.made
        missing = [y for y in u.inputs if y not in self.axes and not self._is_there(y)]
        if any(not asks or y in self.added or y in self.made for y in missing):
            return False
        facts = axes_of(u)
        at = {(k, self.axes[y]) for k, y in enumerate(u.inputs) if y in self.axes}
        outs = facts.cut_at(at)
        if len(outs) == 1:
            self.axes[u] = outs[0]
            self.open.append((u, facts.cuts[outs[0]]))
            return True
        fold = facts.sum_over(at)
        if fold is None:
            return False
        self.added[u] = fold
        self.open.append((u, fold))
        return True

    def _is_there(self, y: Tensor) -> bool:
        """Whether a node that is not cut is known before the loop, or is a view of what is."""
        while y in self.live and y not in self.whole and y not in self and y.op.is_view and len(y.inputs) == 1:
            [y] = y.inputs
        return y not in self.live or y in self.whole or is_leaf(y)

    # --- down ---

    def _meet_demands(self) -> list[Tensor]:
        """What the nodes read, and what that reads: what is needed whole is noted first, the rest is cut.

        Gives the nodes that were cut on the way.
        """
        reached = []
        while self.open:
            demands, self.open = self.open, []
            cuts = []
            for x, places in demands:
                for k, y in enumerate(x.inputs):
                    at = [axis for place, axis in places if place == k]
                    if is_leaf(y) or y not in self.live or y in self.whole:
                        continue
                    if at:
                        cuts.append((y, at[0]))
                    elif y in self:
                        raise _Before(y)
                    else:
                        self.whole.add(y)
            reached += [y for y, axis in cuts if self._is_cut_now(y, axis)]
        return reached

    def _is_cut_now(self, y: Tensor, axis: int) -> bool:
        """Whether a node is cut by this demand: not if it was, and not if it has to be there whole."""
        if y in self.whole:
            return False
        if self.axes.get(y, axis) != axis or y in self.added:
            raise _Before(y)
        if y in self.axes:
            return False
        places = axes_of(y).cuts.get(axis)
        if places is None:
            self.whole.add(y)
            return False
        self.axes[y] = axis
        self.open.append((y, places))
        return True
