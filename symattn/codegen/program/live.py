"""The nodes that are still to be computed, while stages of a program are found one after another."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from ...core.node import Tensor, topological


def is_leaf(x: Tensor) -> bool:
    """Whether a node is an argument or a constant, of which any part can be had at any time."""
    return not x.inputs


class Live:
    """What outputs still need, in order: a node leaves when it is known, or when nothing needs it any more."""

    def __init__(self, outputs: Sequence[Tensor], known: Collection[Tensor]) -> None:
        order = [x for x in topological(outputs, stop=known) if x not in known]
        self.place = {x: n for n, x in enumerate(order)}
        self.wanted = set(outputs).difference(known)
        self._nodes = dict.fromkeys(order)
        self._users: dict[Tensor, list[Tensor]] = {x: [] for x in order}
        for x in order:
            for y in dict.fromkeys(x.inputs):
                if y in self._users:
                    self._users[y].append(x)
        self._uses = {x: len(users) for x, users in self._users.items()}

    def __contains__(self, x: object) -> bool:
        return x in self._nodes

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._nodes)

    def users(self, x: Tensor) -> list[Tensor]:
        """Who still reads a node, in order."""
        return [u for u in self._users[x] if u in self._nodes]

    def ordered(self, nodes: Iterable[Tensor]) -> list[Tensor]:
        """Nodes in the order in which they can be computed."""
        return sorted(nodes, key=self.place.__getitem__)

    def settle(self, known: Iterable[Tensor]) -> None:
        """These are known from now on; what was needed for them alone is needed no more."""
        waiting = [x for x in known if x in self._nodes]
        while waiting:
            x = waiting.pop()
            if x not in self._nodes:
                continue
            del self._nodes[x]
            self.wanted.discard(x)
            for y in dict.fromkeys(x.inputs):
                if y in self._nodes:
                    self._uses[y] -= 1
                    if not self._uses[y] and y not in self.wanted:
                        waiting.append(y)


class MadeFrom:
    """Which nodes are made from one node by what is still to be computed."""

    def __init__(self, seed: Tensor, live: Live) -> None:
        self._live, self._first = live, live.place[seed]
        self._known = {seed: True}

    def __contains__(self, x: Tensor) -> bool:
        """A walk down, the earliest inputs first, which ends at the first node that is made from the seed."""
        stack = [x]
        while stack:
            node = stack[-1]
            if node not in self._known:
                below = [y for y in node.inputs if y in self._live and self._live.place[y] >= self._first]
                unknown = [y for y in below if y not in self._known]
                if any(self._known.get(y) for y in below):
                    self._known[node] = True
                elif unknown:
                    stack.append(min(unknown, key=self._live.place.__getitem__))
                    continue
                else:
                    self._known[node] = False
            stack.pop()
        return self._known[x]
