"""Two recurrences of which one is the image of the other: A(s) goes along with s, step by step.

If A takes the start of one to that of the other, and one step of the other on A(s) gives A of one step on s, for every
state s and all elements, then it takes the last state of one to that of the other. So it does with outputs, where row n
of a form of all outputs of one is what the other gives in that step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy

from ...core.naming import new_name
from ...core.node import Tensor, rebuild
from ...core.sizes import same_size, sizes
from ...ops.leaves import computed, from_index
from ...ops.logic import where
from ...printing.matrix import names_in
from ...recurrence.body import Loop, loop_of
from ...recurrence.record import scan_op
from ...recurrence.scans import all_states, is_value_of, states_and_outputs
from ..argument import Given
from ..claims import eq
from ..generalised import any_tensor, is_finite, may_stand_for
from .closed_forms import Meaning, Obligation
from .plan import Forms
from .prefixes import NoInductionError, at_length, place

Element = Callable[[Tensor], Tensor]  # of a sequence


@dataclass(frozen=True)
class Image:
    """The values of a loop by those of another, for whose last states and outputs named tensors stand.

    ``final`` holds a form of each state, and ``outputs`` one of each output, None where nothing is said of it. No name
    that it brings in is ``taken``.
    """

    value: Tensor
    source: Tensor
    states: tuple[Tensor, ...]
    rows: tuple[Tensor, ...]
    final: tuple[Tensor, ...]
    outputs: Forms
    taken: frozenset[str]

    def holds_for_any(self, given: Given) -> bool:
        """Whether both loops run alike, and what stands for states and outputs is nothing else."""
        if not self.value.op is self.source.op is scan_op:
            return False
        named, step = (*self.states, *self.rows), loop_of(self.value).step
        others = names_in([self.value, self.source]) | given.names
        states, outputs = loop_of(self.source).step.states, states_and_outputs(self.source)[1]
        return (
            given.names <= self.taken
            and fit(self.value, self.source)
            and (len(self.final), len(self.outputs)) == (len(step.after), len(step.outputs))
            and (len(self.states), len(self.rows)) == (len(states), len(outputs))
            and len({x.name for x in named} - others) == len(named)
            and all(map(may_stand_for, named, (*states, *outputs)))
        )

    def put(self, roots: Sequence[Tensor]) -> dict[Tensor, Tensor]:
        """What values come to, by those of the other loop, wherever they are below some roots."""
        final, outputs = states_and_outputs(self.source)
        actual = dict(zip((*self.states, *self.rows), (*final, *outputs), strict=True))
        values = [x for x in computed(roots) if is_value_of(self.value, x)]
        return dict(zip(values, rebuild([self._of(*x.params["take"]) for x in values], actual), strict=True))

    def _of(self, what: str, k: int) -> Tensor:
        form = self.final[k] if what == "final" else self.outputs[k]
        if form is None:
            raise NoInductionError(f"nothing is known of output {k} of one recurrence by those of another")
        return form

    def of(self, states: Sequence[Tensor]) -> list[Tensor]:
        """The images of some states."""
        return rebuild(self.final, dict(zip(self.states, states, strict=True)))

    def heading(self) -> str:
        """How the text of the induction begins."""
        states, forms = (", ".join(map(str, several)) for several in (self.states, self.final))
        return f"By induction: where one recurrence has come to {states}, the other has come to {forms}."

    def obligations(self) -> list[Obligation]:
        """The claims of which it follows that one is the image of the other."""
        return [*self.at_the_start(), *self.at_each_step()]

    def at_the_start(self) -> Iterator[Obligation]:
        """That the start of one is the image of that of the other."""
        pairs = zip(self.of(loop_of(self.source).first), loop_of(self.value).first, strict=True)
        for k, (image, start) in enumerate(pairs):
            yield Obligation("start", f"state {k}", eq(image, start))

    def at_each_step(self) -> Iterator[Obligation]:
        """That a step from the image of a state is the image of a step from it."""
        if self.is_for_any_element:
            yield from self._step("any", self.elements.__getitem__, 0)
            return
        before, behind = self.lengths
        yield from self._of_length(behind)._step("first", lambda x: x[0], 0)
        yield from self._of_length(before + behind)._step("later", lambda x: place(x, before), before)

    @property
    def is_for_any_element(self) -> bool:
        """Whether both read the same, and outputs are what those of the other are: so no place has to be told."""
        sequences = (set(loop_of(x).sequences) for x in (self.source, self.value))
        return len(set(map(frozenset, sequences))) == 1 and all(x is None or x in self.rows for x in self.outputs)

    @property
    def names(self) -> set[str]:
        """The names of which one that it brings in is none."""
        forms = [x for x in (*self.final, *self.outputs) if x is not None]
        return names_in([self.value, self.source, *forms, *self.states, *self.rows]) | self.taken

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
        if part.part != "later":
            yield Meaning({behind: loop.length}, self._stood_for(0, loop.first))
        if part.part in ("any", "later"):
            before = [place(x, n - 1) for x in all_states(self.source)]
            yield Meaning({behind: loop.length - n}, self._stood_for(n, before))

    def _stood_for(self, at: Any, before: Sequence[Tensor]) -> dict[Tensor, Tensor]:
        """The states before a step, the elements that it reads and all outputs, by the tensors that stand for them."""
        elements = {y: place(x, at) for x, y in self.elements.items()}
        outputs = states_and_outputs(self.source)[1]
        return {**dict(zip((*self.states, *self.rows), (*before, *outputs), strict=True)), **elements}

    def _of_length(self, length: Any) -> Image:
        """The same for another number of steps."""
        T = loop_of(self.source).length

        def resized(several: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(None if x is None else at_length(x, T, length) for x in several)

        value, source = resized((self.value, self.source))
        states, rows, final, outputs = map(resized, (self.states, self.rows, self.final, self.outputs))
        return replace(self, value=value, source=source, states=states, rows=rows, final=final, outputs=outputs)

    def _step(self, part: str, element: Element, at: Any) -> Iterator[Obligation]:
        """The claims of a step on some elements, which is the one at a place."""
        after, outputs = _run(loop_of(self.source), self.states, element)
        wanted, rows = _run(loop_of(self.value), self.final, element)
        for k, (image, new) in enumerate(zip(self.of(after), wanted, strict=True)):
            yield Obligation(part, f"state {k}", eq(image, new))
        for k, form in enumerate(self.outputs):
            if form is not None:
                yield Obligation(part, f"output {k}", eq(self._row(form, outputs, at), rows[k]))

    def _row(self, form: Tensor, outputs: Sequence[Tensor], at: Any) -> Tensor:
        """The row of a form at a place, where one step has given some outputs and others may have given any."""
        if form in self.rows:
            return outputs[self.rows.index(form)]
        put = {}
        for rows, row in zip(self.rows, outputs, strict=True):
            here = from_index((rows.shape[0], *[1] * row.rank), lambda i, *_: sympy.Eq(i, at))
            put[rows] = where(here, row[None], rows)
        return place(rebuild([form], put)[0], at)


def fit(value: Tensor, source: Tensor) -> bool:
    """Whether two loops run alike; all that named tensors stand for is finite, as they are."""
    one, other = loop_of(source), loop_of(value)
    return (
        same_size(one.length, other.length)
        and one.length.is_Symbol
        and all(map(is_finite, (*one.first, *one.sequences, *states_and_outputs(source)[1])))
    )


def _run(loop: Loop, states: Sequence[Tensor], element: Element) -> tuple[list[Tensor], list[Tensor]]:
    """The states after a step on some elements, and what it gives."""
    leaves, step = [*states, *map(element, loop.sequences), *loop.given], loop.step
    made = rebuild(step.roots, dict(zip(step.leaves, leaves, strict=True)))
    return made[: len(step.after)], made[len(step.after) :]
