"""One step of a recurrence: a closed graph over placeholders, the same object for all steps that are written alike."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import sympy

from ..core.naming import new_name
from ..core.node import Graph, Table, Tensor, flatten, rebuild, topological, unflatten, with_inputs
from ..ops.domain import domain
from ..ops.leaves import computed, cotangent_op, let_op, stand_in
from ..ops.placeholders import placeholder_op

_bodies: WeakValueDictionary[Any, Body] = WeakValueDictionary()
_interning = threading.Lock()
_serials = count(1)

Tensors = tuple[Tensor, ...]
Take = tuple[str, int]  # a value of a loop: "final" or "output", and which


class Step(NamedTuple):
    """A step over any leaves: the state, an element of each sequence and what stays; the new state and the outputs."""

    states: Tensors
    reads: Tensors
    fixed: Tensors
    after: Tensors
    outputs: Tensors

    @property
    def leaves(self) -> Tensors:
        """What the step is a function of."""
        return (*self.states, *self.reads, *self.fixed)

    @property
    def roots(self) -> Tensors:
        """What the step gives."""
        return (*self.after, *self.outputs)

    def over(self, leaves: Sequence[Tensor]) -> Step:
        """The step over other leaves."""
        new = dict(zip(self.leaves, leaves, strict=True))
        return _parted([*leaves, *rebuild(self.roots, new)], tuple(map(len, self)))

    def needed(self, roots: Iterable[Tensor]) -> list[int]:
        """The states that some roots are made from, at that step or at an earlier one."""
        met: set[Tensor] = set()
        waiting = list(roots)
        while waiting:
            below = set(topological(waiting))
            new = [n for n, x in enumerate(self.states) if x in below and x not in met]
            met |= {self.states[n] for n in new}
            waiting = [self.after[n] for n in new]
        return [n for n, x in enumerate(self.states) if x in met]

    @property
    def is_total(self) -> bool:
        """Whether it has a value for all values of its leaves."""
        domains = map(domain, computed(self.roots))
        return not any(found.conditions or found.inside for found in domains)


class Body(Graph):
    """A step over placeholders of its own. Two are equal only if they are one object."""

    __slots__ = ("__weakref__", "is_total", "nonsmooth", "own_symbols", "serial", "step")

    step: Step
    serial: int  # which tells it from all others
    is_total: bool  # whether a step has a value for all values of its leaves

    def __new__(cls, step: Step) -> Body:
        known = _bodies.get(step)
        if known is None:
            known = object.__new__(cls)
            known.step, known.serial = step, next(_serials)
            known._inspect()
        with _interning:
            return _bodies.setdefault(step, known)

    def _inspect(self) -> None:
        nodes = topological([*self.step.leaves, *self.step.roots])
        self.own_symbols = frozenset(s for node in nodes for s in node.own_symbols)
        inner = [g for node in nodes for g in node.params.values() if isinstance(g, Graph)]
        said = [node.op.nonsmooth for node in nodes if node.op.nonsmooth]
        self.nonsmooth = tuple(dict.fromkeys([*said, *(text for g in inner for text in g.nonsmooth)]))
        self.is_total = self.opened().is_total

    def __reduce__(self) -> Any:
        return _restored, (flatten([*self.step.leaves, *self.step.roots]), tuple(map(len, self.step)))

    def substituted(self, symbols: Mapping[Any, Any]) -> Body:
        """The body with values for its symbols."""
        if not self.own_symbols & symbols.keys():
            return self
        nodes = rebuild([*self.step.leaves, *self.step.roots], {}, symbols)
        return Body(_parted(nodes, tuple(map(len, self.step))))

    def opened(self, taken: Iterable[str] = (), infinite: Collection[int] = ()) -> Step:
        """The step over named tensors, which derivatives, code and printing handle; none has a name in ``taken``.

        The leaves that are counted in ``infinite`` are tensors that may hold -oo.
        """
        names = {*taken, *(s.name for s in self.own_symbols)}
        letters = {"state": "s", "read": "x", "fixed": "c"}
        return self.step.over(
            [
                stand_in(new_name(letters[leaf.params["role"]], names), leaf.shape, leaf.kind, n in infinite)
                for n, leaf in enumerate(self.step.leaves)
            ]
        )

    def run(self, leaves: Sequence[Tensor]) -> tuple[Tensors, Tensors]:
        """One step on tensors: the new states and the outputs."""
        put = dict(zip(self.step.leaves, leaves, strict=True))
        made = tuple(rebuild(self.step.roots, put))
        return made[: len(self.step.after)], made[len(self.step.after) :]


def closed(step: Step) -> Body:
    """The body of a step, over placeholders instead of its leaves, without names of what is inside.

    A name would tell apart bodies that are one, of which proofs have to know that they are; what is long and is read
    twice has a letter in print, whether or not it had a name.
    """
    roles = ("state",) * len(step.states) + ("read",) * len(step.reads) + ("fixed",) * len(step.fixed)
    numbers = (n for group in step[:3] for n in range(len(group)))
    new = {
        leaf: placeholder_op(role=role, number=n, shape=leaf.shape, kind=leaf.kind)
        for leaf, role, n in zip(step.leaves, roles, numbers, strict=True)
    }
    roots = rebuild(without_labels(step.roots), new)
    return Body(_parted([*new.values(), *roots], tuple(map(len, step))))


def without_labels(roots: Sequence[Tensor]) -> list[Tensor]:
    """The roots with what names of intermediates stand for."""
    new: dict[Tensor, Tensor] = {}
    for node in computed(roots):
        new[node] = new[node.inputs[0]] if node.op in (let_op, cotangent_op) else with_inputs(node, new)
    return [new[root] for root in roots]


def _parted(nodes: Sequence[Tensor], counts: Sequence[int]) -> Step:
    listed: Iterator[Tensor] = iter(nodes)
    return Step(*(tuple(next(listed) for _ in range(n)) for n in counts))


def _restored(table: Table, counts: tuple[int, ...]) -> Body:
    return Body(_parted(unflatten(table), counts))


# --- of what a loop is given ---


def parted(inputs: Tensors, step: Step) -> tuple[Tensors, Tensors, Tensors]:
    """The first states, the sequences, and what stays."""
    states, reads = len(step.states), len(step.reads)
    return inputs[:states], inputs[states : states + reads], inputs[states + reads :]


def number_of_steps(node: Tensor) -> sympy.Expr:
    """How many steps the loop has."""
    return length_of(node.inputs, node.params["body"], node.params["steps"])


def length_of(inputs: Tensors, body: Body, steps: Any) -> sympy.Expr:
    """The same, of inputs, a body, and what is said where there are no sequences."""
    _, sequences, _ = parted(inputs, body.step)
    return sequences[0].shape[0] if sequences else steps


@lru_cache(maxsize=1024)
def essence(body: Body, takes: tuple[Take, ...]) -> tuple[Body, tuple[int, ...], tuple[Take, ...]]:
    """The body with what matters to some values of its loop, the inputs that it then has, and which values they are."""
    step = body.step
    asked = sorted({k for what, k in takes if what == "output"})
    outputs = tuple(step.outputs[k] for k in asked)
    kept = step.needed([*outputs, *(step.states[k] for what, k in takes if what == "final")])
    after = tuple(step.after[n] for n in kept)
    seen = set(topological([*after, *outputs]))
    places = (*kept, *(n for n, x in enumerate(step.leaves) if n >= len(step.states) and x in seen))
    less = Step(
        tuple(step.states[n] for n in kept),
        tuple(x for x in step.reads if x in seen),
        tuple(x for x in step.fixed if x in seen),
        after,
        outputs,
    )
    renamed = tuple((what, kept.index(k) if what == "final" else asked.index(k)) for what, k in takes)
    return body if less == step else closed(less), places, renamed


# --- a loop ---


class Loop(NamedTuple):
    """What the values of one loop share: a step over any leaves, and what they begin with or run through."""

    step: Step
    first: Tensors
    sequences: Tensors
    given: Tensors
    length: sympy.Expr


def loop_of(node: Tensor) -> Loop:
    """The loop that a node is a value of, with the body as its step."""
    step = node.params["body"].step
    return Loop(step, *parted(node.inputs, step), number_of_steps(node))


def loop_key(scan: Tensor) -> Any:
    """What is the same for all values of one loop, and differs between loops."""
    return scan.params["body"], scan.inputs, scan.params["steps"]
