"""Follows one axis through a graph, from a node down to what it is made from and up to what is made from it.

What is found is a cut: nodes that are known block by block along an axis, and nodes that are added up over blocks. A
node that must be whole before, or can only be computed after, is moved there, and the walk begins again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ...core.node import Tensor, topological
from .axes import Places, axes_of


@dataclass(frozen=True)
class Cut:
    """The axis of each node that is cut, the positions that are added up in others, and what is needed whole."""

    axes: dict[Tensor, int]
    added: dict[Tensor, Places]
    whole: set[Tensor]

    def __contains__(self, x: object) -> bool:
        return x in self.axes or x in self.added


class Live:
    """The nodes that are still to be computed, in order, and who uses them."""

    def __init__(self, outputs: Sequence[Tensor], known: Collection[Tensor]) -> None:
        self.outputs, self.known = list(outputs), known
        self.order = [x for x in topological(outputs, stop=known) if x not in known]
        self.axes = {x: axes_of(x) for x in self.order}
        self.users: dict[Tensor, list[Tensor]] = {x: [] for x in self.order}
        for x in self.order:
            for y in dict.fromkeys(x.inputs):
                self.users.setdefault(y, []).append(x)

    def made_from(self, seed: Tensor) -> set[Tensor]:
        """The node and all that is made from it."""
        found, waiting = {seed}, [seed]
        while waiting:
            for user in self.users[waiting.pop()]:
                if user not in found:
                    found.add(user)
                    waiting.append(user)
        return found


class _Moved(Exception):
    """Nodes that belong before or after the loop."""

    def __init__(self, where: str, nodes: Sequence[Tensor]) -> None:
        self.where, self.nodes = where, nodes


def is_leaf(x: Tensor) -> bool:
    """Whether a node is an argument or a constant, of which any part can be had at any time."""
    return not x.inputs


def cut_from(seed: Tensor, axis: int, live: Live) -> tuple[Cut, set[Tensor]] | None:
    """The cut that runs through a node along an axis, and what comes before it; None if there is none."""
    made = live.made_from(seed)
    before, after = set(live.known), set[Tensor]()
    for _ in range(4 * len(live.order)):
        try:
            return _Trace(seed, axis, live, made, before, after).traced(), before
        except _Moved as moved:
            if not moved.where or not _move(moved, seed, live, made, before, after):
                return None
    return None


def _move(moved: _Moved, seed: Tensor, live: Live, made: set[Tensor], before: set[Tensor], after: set[Tensor]) -> bool:
    """Note what was found; False if the seed itself would have to move."""
    if moved.where == "before":
        before.update(moved.nodes)
        return made.isdisjoint(moved.nodes)
    waiting = list(moved.nodes)
    while waiting:
        node = waiting.pop()
        if node not in after:
            after.add(node)
            waiting += live.users[node]
    return seed not in after


class _Trace:
    """One walk. What is made from the seed is settled before demands go down to what it is made from."""

    def __init__(
        self, seed: Tensor, axis: int, live: Live, made: set[Tensor], before: set[Tensor], after: set[Tensor]
    ) -> None:
        self.live, self.made, self.before, self.after = live, made, before, after
        self.axes: dict[Tensor, int] = {seed: axis}
        self.added: dict[Tensor, Places] = {}
        self.whole: set[Tensor] = set()
        self.work: list[Tensor] = [seed]
        self.down: list[tuple[Tensor, Places]] = []
        self.seen: set[Tensor] = set()

    def traced(self) -> Cut:
        place = 0
        while self.work or place < len(self.down):
            if self.work:
                self._settle(self.work.pop())
            else:
                self._demand_inputs(*self.down[place])
                place += 1
        for u in self.added:  # a sum is known when the loop is done
            late = [v for v in self.live.users[u] if v not in self.after]
            if late:
                raise _Moved("after", late)
        return Cut(self.axes, self.added, self.whole)

    def _settle(self, x: Tensor) -> None:
        """A node that is cut: its own demands are noted, and its users are cut, added up or left for later."""
        if x in self.seen:
            return
        self.seen.add(x)
        if x in self.whole:
            raise _Moved("before", [x])
        places = self.live.axes[x].cuts.get(self.axes[x])
        if places is None:
            raise _Moved("", [x])
        self.down.append((x, places))
        for user in self.live.users[x]:
            if user not in self.seen and user not in self.after and user not in self.before:
                self._meet_user(x, user)

    def _meet_user(self, x: Tensor, user: Tensor) -> None:
        at = {(k, self.axes[x]) for k, y in enumerate(user.inputs) if y is x}
        facts = self.live.axes[user]
        outs, fold = facts.cut_at(at), facts.sum_over(at)
        if len(outs) == 1:
            if self.axes.setdefault(user, outs[0]) != outs[0]:
                raise _Moved("after", [user])
            self.work.append(user)
        elif fold is not None:
            if user not in self.added:
                self.added[user] = fold
                self.down.append((user, fold))
        else:
            raise _Moved("after", [user])

    def _demand_inputs(self, x: Tensor, places: Places) -> None:
        for k, y in enumerate(x.inputs):
            at = [axis for place, axis in places if place == k]
            if at:
                self._demand_cut(y, at[0], x)
            else:
                self._demand_whole(y, x)

    def _demand_cut(self, y: Tensor, axis: int, user: Tensor) -> None:
        if is_leaf(y) or y in self.before:
            return
        if y in self.after or y in self.added:
            raise _Moved("after", [user])
        if self.axes.setdefault(y, axis) != axis or axis not in self.live.axes[y].cuts:
            raise _Moved("after", [user]) if y in self.made else _Moved("before", [y])
        if y not in self.seen:
            self.work.append(y)

    def _demand_whole(self, y: Tensor, user: Tensor) -> None:
        if is_leaf(y) or y in self.before:
            return
        if y in self.added or y in self.after or y in self.made:
            raise _Moved("after", [user])
        if y in self.axes:
            raise _Moved("before", [y])
        self.whole.add(y)
