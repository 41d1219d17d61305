"""In which way one recurrence of a claim may be the image of another: what the claim shows, and simple maps of states.

A guess need not be right: it is proved like one that is given.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import sympy

from ...core.naming import new_name
from ...core.node import Tensor, rebuild, topological
from ...core.sizes import same_shape, same_size
from ...ops.arithmetic import negative
from ...ops.gather import flip
from ...ops.leaves import bare, computed, constant, variable
from ...printing.matrix import names_in
from ...recurrence.body import loop_key, loop_of, without_labels
from ...recurrence.record import scan_op
from ...recurrence.scans import is_value_of, states_and_outputs
from ..argument import Given
from ..claims import Claim
from ..generalised import any_tensor
from .closed_forms import Obligation
from .images import Image, fit
from .plan import Forms

Follows = Callable[[Image, Obligation], bool]

_NO_FACTORS = (0, 1, -1, -sympy.oo)
_MOST_WAYS = 16  # to take the states of one loop to those of another


def images(claim: Claim, given: Given, follows: Follows) -> Iterator[Image]:
    """The ways in which one recurrence of a claim is the image of another, as far as ``follows`` says."""
    if claim.relation != "=":
        return
    loops = [*{loop_key(x): x for x in computed(claim.sides) if x.op is scan_op}.values()][::-1]
    loops.sort(key=lambda x: bool(x.params["body"].is_total))  # what has values for some states only goes first
    for value, source in itertools.permutations(loops, 2):
        if not _is_below(value, source) and not _is_below(source, value) and fit(value, source):
            yield from _Pair(claim, value, source, given).images(follows)


def _is_below(x: Tensor, y: Tensor) -> bool:
    """Whether a loop is made from a value of another."""
    return any(is_value_of(x, node) for node in computed(y.inputs))


class _Pair:
    """Two loops of a claim, of which one may be the image of the other."""

    def __init__(self, claim: Claim, value: Tensor, source: Tensor, given: Given) -> None:
        taken = names_in([*claim.sides, value, source]) | given.names
        self.loop, self.other, self.given = loop_of(value), loop_of(source), given
        self.value, self.source = value, source
        final, outputs = states_and_outputs(source)
        self.states = tuple(any_tensor(new_name("s", taken), x) for x in self.other.step.states)
        self.rows = tuple(any_tensor(new_name("o", taken), x) for x in outputs)
        self.named = dict(zip((*final, *outputs), (*self.states, *self.rows), strict=True))
        self.shown = {take: [*self._shown(claim, take)] for take in self._asked(claim)}
        here, there = (topological([x, *loop_of(x).step.roots]) for x in (value, source))
        leaves = [x for x in here if x.op in (variable, constant) and x.params.get("formula") not in _NO_FACTORS]
        self.moving = [x for x in leaves if x not in {*there}]
        self.moving += [x for x in leaves if x in {*there} and not x.rank]

    def _asked(self, claim: Claim) -> list[tuple[str, int]]:
        """The values of the loop that the claim has."""
        return [x.params["take"] for x in computed(claim.sides) if is_value_of(self.value, x)]

    def _shown(self, claim: Claim, take: tuple[str, int]) -> Iterator[Tensor]:
        """Forms of values of the other loop that face a value in the claim."""
        for pair in facing(*claim.sides):
            for form, x in (pair, pair[::-1]):
                if is_value_of(self.value, x) and x.params["take"] == take:
                    below = computed([form])
                    if self.named.keys() & set(below) and not any(is_value_of(self.value, y) for y in below):
                        yield rebuild(without_labels([form]), self.named)[0]

    def images(self, follows: Follows) -> Iterator[Image]:
        """The images that follow."""
        whole = Image(self.value, self.source, self.states, self.rows, (), (), self.given.names)
        none: Forms = (None,) * len(self.loop.step.outputs)
        ways = (self._forms_of_state(k) for k in range(len(self.loop.step.states)))
        for final in itertools.islice(itertools.product(*map(list, ways)), _MOST_WAYS):
            states = replace(whole, final=final, outputs=none)
            if all(follows(states, part) for part in states.obligations()):
                outputs = [self._output(states, k, follows) for k in range(len(none))]
                if all(outputs[k] is not None for what, k in self.shown if what == "output"):
                    yield replace(states, outputs=tuple(outputs))

    def _forms_of_state(self, k: int) -> Iterator[Tensor]:
        """What a state may be by those of the other loop."""
        state = self.loop.step.states[k]
        first = dict(zip(self.other.first, self.states, strict=True))
        made = rebuild([self.loop.first[k]], {x: s for x, s in first.items() if x.op is not constant})
        likely = self.states[k : k + 1] + self.states
        guesses = [*self.shown.get(("final", k), ()), *made, *(y for x in likely for y in self._moved(x, 0))]
        return (x for x in dict.fromkeys(guesses) if same_shape(x.shape, state.shape) and self._speaks(x))

    def _speaks(self, form: Tensor) -> bool:
        return not {*self.states, *self.rows}.isdisjoint(topological([form]))

    def _output(self, image: Image, k: int, follows: Follows) -> Tensor | None:
        """What an output is by those of the other loop, if it is asked for."""
        if ("output", k) not in self.shown:
            return None
        shape = (self.loop.length, *self.loop.step.outputs[k].shape)
        likely = self.rows[k : k + 1] + self.rows
        guesses = [*self.shown["output", k], *(y for x in likely for y in self._moved(x, 1))]
        for form in dict.fromkeys(guesses):
            if same_shape(form.shape, shape) and self._speaks(form):
                one = replace(image, outputs=tuple(form if n == k else None for n in range(len(image.outputs))))
                if all(follows(one, part) for part in one.at_each_step() if part.what == f"output {k}"):
                    return form
        return None

    def _moved(self, x: Tensor, own: int) -> Iterator[Tensor]:
        """As it is, the other way round, and moved by what one loop is made from and the other is not."""
        yield x
        if x.rank - own == 2:
            yield x.T
        for M in self.moving:
            if M.rank == 2 and M.op is variable:
                yield from _products(M, x)
            elif not M.rank:
                yield M * x
        yield negative(x)
        for axis in range(own, x.rank):
            yield flip(x, axis - x.rank)


def _products(M: Tensor, x: Tensor) -> Iterator[Tensor]:
    """A matrix times a state, from either side."""
    pairs = ((M, x), (x, M), (x, M.T), (M.T, x)) if x.rank > 1 else ((M, x), (M.T, x)) if x.rank else ()
    for a, b in pairs:
        if same_size(a.shape[-1], b.shape[-2] if b.rank > 1 else b.shape[-1]):
            yield a @ b


def facing(left: Tensor, right: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The sides of a claim, and what differs in the inputs of the same operation on both, from the outside in."""
    pending: Sequence[tuple[Tensor, Tensor]] = [(left, right)]
    while pending:
        pairs = [(bare(a), bare(b)) for a, b in pending]
        yield from pairs
        alike = [(a, b) for a, b in pairs if a.op is b.op is not scan_op and a.params == b.params]
        pending = [(x, y) for a, b in alike for x, y in zip(a.inputs, b.inputs, strict=False) if x is not y]
