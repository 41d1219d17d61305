"""Two recurrences of which one is the image of the other: A(s) goes along with s, step by step.

If A takes the start of one to that of the other, and one step of the other on A(s) gives A of one step on s, for every
state s and all elements, then it takes the last state of one to that of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy

from ...core.naming import new_name
from ...core.node import Tensor, rebuild, topological
from ...core.sizes import same_shape, same_size, sizes
from ...ops.leaves import computed, variable
from ...printing.matrix import names_in
from ...recurrence.body import Loop, loop_of
from ...recurrence.record import scan_op
from ...recurrence.scans import all_states, is_value_of, states_and_outputs
from ..argument import Given
from ..claims import Claim, eq
from ..generalised import any_tensor, is_finite, may_stand_for
from .closed_forms import Meaning, Obligation
from .prefixes import at_length, place


@dataclass(frozen=True)
class Image:
    """The last state of a loop of one state by those of another: ``form`` of these, for which named tensors stand.

    No name that it brings in is ``taken``.
    """

    value: Tensor
    source: Tensor
    states: tuple[Tensor, ...]
    form: Tensor
    taken: frozenset[str]

    def holds_for_any(self, given: Given) -> bool:
        """Whether both loops run alike, and the states are no tensors of theirs, nor anything that is given."""
        if not self.value.op is self.source.op is scan_op:
            return False
        others = names_in([self.value, self.source]) | given.names
        values = loop_of(self.source).step.states
        return (
            given.names <= self.taken
            and fit(self.value, [self.source])
            and len({x.name for x in self.states} - others) == len(self.states) == len(values)
            and all(map(may_stand_for, self.states, values))
        )

    def put(self, roots: Sequence[Tensor]) -> dict[Tensor, Tensor]:
        """What the value comes to, by the last states of the other loop, wherever it is below some roots."""
        final, _ = states_and_outputs(self.source)
        return {self.value: self.of(final)}

    def of(self, states: Sequence[Tensor]) -> Tensor:
        """The image of some states."""
        return rebuild([self.form], dict(zip(self.states, states, strict=True)))[0]

    def heading(self) -> str:
        """How the text of the induction begins."""
        states = ", ".join(str(x.name) for x in self.states)
        return f"By induction: where one recurrence has come to {states}, the other has come to {self.form}."

    def obligations(self) -> list[Obligation]:
        """The claims of which it follows that one is the image of the other."""
        return [*self._claims()]

    def _claims(self) -> Iterator[Obligation]:
        one, other = loop_of(self.source), loop_of(self.value)
        yield Obligation("first", "where both begin", eq(self.of(one.first), other.first[0]))
        if set(one.sequences) == set(other.sequences):
            yield Obligation("next", "any step", self._step(self.elements.__getitem__))
            return
        before, behind = self.lengths
        yield Obligation("next", "the first step", self._of_length(behind)._step(lambda x: x[0]))
        yield Obligation("next", "a later step", self._of_length(before + behind)._step(lambda x: x[before:][0]))

    @property
    def names(self) -> set[str]:
        """The names of which one that it brings in is none."""
        return names_in([self.value, self.source, self.form, *self.states]) | self.taken

    @property
    def elements(self) -> dict[Tensor, Tensor]:
        """Any element of each sequence."""
        taken = self.names
        return {x: any_tensor(new_name("x", taken), x[0]) for x in loop_of(self.source).sequences}

    @property
    def lengths(self) -> tuple[sympy.Symbol, sympy.Symbol]:
        """The number of steps before one, and of those from it on."""
        taken = self.names
        return sizes(new_name("n", taken)), sizes(new_name("m", taken))

    def meanings(self, part: Obligation) -> Iterator[Meaning]:
        """What a part is about in the claim: the first step, and that after n others."""
        loop, (n, behind) = loop_of(self.source), self.lengths
        if part.what != "a later step":
            yield Meaning({behind: loop.length}, self._stood_for(0, loop.first))
        if part.what in ("any step", "a later step"):
            before = [place(x, n - 1) for x in all_states(self.source)]
            yield Meaning({behind: loop.length - n}, self._stood_for(n, before))

    def _stood_for(self, at: Any, before: Sequence[Tensor]) -> dict[Tensor, Tensor]:
        """The states before a step and the elements that it reads, by the tensors that stand for them."""
        elements = {y: place(x, at) for x, y in self.elements.items()}
        return {**dict(zip(self.states, before, strict=True)), **elements}

    def _of_length(self, length: Any) -> Image:
        """The same for another number of steps."""
        T = loop_of(self.source).length
        several = (self.value, self.source, self.form, *self.states)
        value, source, form, *states = (at_length(x, T, length) for x in several)
        return replace(self, value=value, source=source, states=tuple(states), form=form)

    def _step(self, element: Callable[[Tensor], Tensor]) -> Claim:
        """That a step from the image of a state is the image of a step from it, on some elements of the sequences."""
        after = _after(loop_of(self.source), self.states, element)
        (wanted,) = _after(loop_of(self.value), [self.form], element)
        return eq(self.of(after), wanted)


def images(claim: Claim, given: Given) -> Iterator[Image]:
    """The ways in which one recurrence of a claim may be the image of another, those that the claim shows first."""
    if claim.relation != "=":
        return
    values = [x for x in computed(claim.sides) if x.op is scan_op and x.params["take"][0] == "final"]
    shown = [pair for pair in (claim.sides, claim.sides[::-1]) if pair[1] in values]
    for form, value in shown:
        sources = [x for x in values if x in computed([form])]
        if sources and fit(value, sources):
            yield _image(value, sources[0], form, {x: x.params["take"][1] for x in sources}, given)
    for value in values:
        for source in values:
            if source is not value and source not in computed([value]) and fit(value, [source]):
                yield from _guessed(value, source, given)


def fit(value: Tensor, sources: Sequence[Tensor]) -> bool:
    """Whether two loops run alike; what one begins with and runs through is finite, as named tensors for it are."""
    one, other = loop_of(sources[0]), loop_of(value)
    return (
        value.params["take"] == ("final", 0)
        and len(other.step.states) == 1
        and all(is_value_of(sources[0], x) for x in sources)
        and same_size(one.length, other.length)
        and one.length.is_Symbol
        and all(map(is_finite, (*one.first, *one.sequences)))
    )


def _image(value: Tensor, source: Tensor, form: Tensor, last: dict[Tensor, int], given: Given) -> Image:
    """The image that a form of last states is, with named tensors for these."""
    taken = names_in([value, source, form]) | given.names
    states = tuple(any_tensor(new_name("s", taken), x) for x in loop_of(source).step.states)
    return Image(value, source, states, rebuild([form], {x: states[k] for x, k in last.items()})[0], given.names)


def _guessed(value: Tensor, source: Tensor, given: Given) -> Iterator[Image]:
    """Images that take the start of one loop to that of the other: as it is made of it, or moved by one matrix."""
    (first, *others), start = loop_of(source).first, loop_of(value).first[0]
    if others or source.params["take"] != ("final", 0):
        return
    if first in topological([start]) and first.inputs:
        yield _image(value, source, start, {first: 0}, given)
    moving = set(topological([value])) - set(topological([source]))
    for M in (x for x in topological([value]) if x in moving and x.op is variable and x.rank == 2):
        for form in _products(M, source):
            if same_shape(form.shape, value.shape):
                yield _image(value, source, form, {source: 0}, given)


def _products(M: Tensor, x: Tensor) -> Iterator[Tensor]:
    """A matrix times a state, from either side."""
    pairs = ((M, x), (x, M), (x, M.T)) if x.rank > 1 else ((M, x),) if x.rank else ()
    for a, b in pairs:
        if same_size(a.shape[-1], b.shape[-2] if b.rank > 1 else b.shape[-1]):
            yield a @ b


def _after(loop: Loop, states: Sequence[Tensor], element: Callable[[Tensor], Tensor]) -> list[Tensor]:
    leaves = [*states, *map(element, loop.sequences), *loop.given]
    return rebuild(loop.step.after, dict(zip(loop.step.leaves, leaves, strict=True)))
