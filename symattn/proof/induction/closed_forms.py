"""The closed form of a recurrence, and the claims that make it one for every number of steps.

The rule: the states before the first step give those after it (n = 1); and if the closed form holds for n steps, then
one more step from it, on the next elements of the sequences, gives the closed form of n + 1 steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy

from ...core.naming import new_name
from ...core.node import Tensor, rebuild, topological
from ...core.sizes import same_shape, show_shape, sizes
from ...errors import NamingError, ShapeError
from ...graph.names import symbol_names
from ...ops.gather import flip
from ...ops.leaves import computed, let_op, named, scalar_value, variable
from ...printing.matrix import names_in
from ...recurrence.body import Loop, loop_of, without_labels
from ...recurrence.record import scan_op
from ...recurrence.scans import all_states, is_value_of, states_and_outputs
from ...recurrence.telling import from_end
from ..argument import Given
from ..claims import Claim, eq
from ..generalised import any_tensor, may_stand_for
from .plan import Forms, Induction, called
from .prefixes import NoInductionError, at_length, cut, place

_PARTS = {
    "before": "For all numbers of steps",
    "first": "At the first step",
    "next": "One step more",
    "start": "Where both begin",
    "any": "At any step",
    "later": "At a later step",
}


class Obligation(NamedTuple):
    """One claim of an induction: what it is about, and in which part of it."""

    part: str  # one of _PARTS
    what: str
    claim: Claim

    @property
    def said(self) -> str:
        """What it is about."""
        return f"{_PARTS[self.part]}, {self.what}"


class Meaning(NamedTuple):
    """What sizes and named tensors of a part of an induction stand for, in the claim."""

    sizes: dict[sympy.Symbol, Any]
    tensors: dict[Tensor, Tensor]


@dataclass(frozen=True)
class ClosedForm:
    """What the states and outputs of a loop are after T steps.

    ``source`` is a value of the loop. The forms are about its ``sequences``, which stand for those of the loop, and may
    speak of the last values of ``free`` states, one named tensor for each. No name that it brings in is ``taken``.
    Of a loop that runs ``back``, sequences and outputs are in the order in which they are given.
    """

    source: Tensor
    sequences: tuple[Tensor, ...]
    final: Forms
    outputs: Forms
    free: tuple[tuple[int, Tensor], ...]
    taken: frozenset[str]

    @property
    def back(self) -> bool:
        """Whether the last element is read first."""
        return runs_back(loop_of(self.source))

    @property
    def loop(self) -> Loop:
        return loop_of(self.source)._replace(sequences=tuple(in_steps(x, self.back) for x in self.sequences))

    @property
    def roots(self) -> list[Tensor]:
        """All that it speaks of."""
        loop = self.loop
        forms = [x for x in (*self.final, *self.outputs) if x is not None]
        return [*loop.first, *self.sequences, *loop.given, *forms]

    @property
    def steps(self) -> sympy.Symbol:
        """The number of steps, on which the induction is."""
        return self.loop.length

    @property
    def before(self) -> sympy.Symbol:
        """The number of steps for which it is supposed to hold."""
        return sizes(new_name("n", self.names))

    @property
    def names(self) -> set[str]:
        """The names of which one that it brings in is none, also those within a step."""
        return names_in([self.source, *self.roots]) | {str(x.name) for _, x in self.free} | self.taken

    def holds_for_any(self, given: Given) -> bool:
        """Whether it fits its loop, and what it brings in is no tensor of the loop, nor anything that is given.

        Raises NoInductionError where it does not fit.
        """
        if self.source.op is not scan_op or len(self.sequences) != len(loop_of(self.source).sequences):
            return False
        _check_fits(self.loop, self.final, self.outputs, [k for k, _ in self.free])
        own = [x for _, x in self.free]
        pairs = [*self.actual.items(), *((x, self.loop.step.states[k]) for k, x in self.free)]
        others = names_in([self.source]) | given.names
        return (
            given.names <= self.taken
            and len({x.name for x in (*own, *self.actual)} - others) == len(own) + len(self.actual)
            and all(may_stand_for(x, value) for x, value in pairs)
        )

    @property
    def actual(self) -> dict[Tensor, Tensor]:
        """The sequences of the loop by those that stand for them."""
        pairs = zip(self.sequences, loop_of(self.source).sequences, strict=True)
        return {x: given for x, y in pairs if (given := in_steps(y, self.back)) is not x}

    def put(self, roots: Sequence[Tensor]) -> dict[Tensor, Tensor]:
        """What the values of the loop below some roots come to, by its sequences and any values of its free states."""
        values = [x for x in computed(roots) if is_value_of(self.source, x)]
        found = {value: self._of(*value.params["take"]) for value in values}
        return dict(zip(found, rebuild(list(found.values()), self.actual), strict=True))

    def _of(self, what: str, k: int) -> Tensor:
        form = {**dict(enumerate(self.final)), **dict(self.free)}[k] if what == "final" else None
        if what == "output" and k < len(self.outputs):
            form = self.outputs[k]
        if form is None:
            raise NoInductionError(f"no closed form of output {k} is given")
        return in_steps(form, self.back) if what == "output" else form

    @property
    def states(self) -> Forms:
        """The closed forms of the states, None for those that are free."""
        free = dict(self.free)
        return tuple(None if k in free else x for k, x in enumerate(self.final))

    @property
    def last(self) -> dict[Tensor, Tensor]:
        """The last values of the free states, for which named tensors stand."""
        final, _ = states_and_outputs(self.source)
        return {x: final[k] for k, x in self.free}

    def said(self) -> Iterator[tuple[str, Tensor]]:
        """Which states and outputs it gives, as text, and what they come to."""
        yield from ((f"state {k}", x) for k, x in enumerate(self.final) if x is not None)
        yield from ((f"output {k}", x) for k, x in enumerate(self.outputs) if x is not None)

    def heading(self) -> str:
        """How the text of the induction begins."""
        return f"By induction on {self.steps}, the number of steps; let it hold for {self.before} of them."

    def meanings(self, part: Obligation) -> Iterator[Meaning]:
        """What the free states before and after the step of a part are."""
        after, n = self.loop.step.after, self.before
        stacked = all_states(self.source) if self.free else []
        leaves, at = (_first_leaves, 0) if part.part == "first" else (_next_leaves, n)
        new = _any_after(self, leaves(self))
        stood_for = {new[after[k]]: place(stacked[k], at) for k, _ in self.free if after[k] in new}
        yield Meaning({}, stood_for | {x: place(stacked[k], n - 1) for k, x in self.free})

    def obligations(self) -> list[Obligation]:
        """The claims of which the closed form follows for every number of steps."""
        try:
            return [*_the_same_for_all_lengths(self), *_first_step(self), *_next_step(self)]
        except ShapeError as problem:
            raise NoInductionError(f"there is no meaning at every number of steps: {problem}") from None


def closed_form(node: Tensor, plan: Induction, names: frozenset[str]) -> ClosedForm:
    """The closed form of the loop of a node as a plan gives it; ``names`` are those of other things.

    Raises NoInductionError where it does not fit.
    """
    loop, taken = loop_of(node), {*names}
    back = runs_back(loop)
    free = tuple((k, any_tensor(new_name("m", taken), x)) for k, x in _states(plan.free, loop))
    sequences = tuple(in_steps(x, back) for x in loop.sequences)
    if callable(plan.final) or callable(plan.outputs):
        sequences = tuple(x if x.op is variable else any_tensor(new_name("y", taken), x) for x in sequences)
        if len(set(sequences)) < len(sequences):
            raise NoInductionError("one sequence is read twice, and the closed form is a function of the sequences")
    try:
        arguments = [*(x for _, x in free), *sequences]
        final, outputs = (without_labels_of(called(forms, arguments)) for forms in (plan.final, plan.outputs))
    except (ShapeError, NamingError) as problem:
        raise NoInductionError(f"the closed form cannot be written: {problem}") from None
    _check_fits(loop, final, outputs, plan.free)
    return ClosedForm(node, sequences, final, outputs, free, names)


def runs_back(loop: Loop) -> bool:
    """Whether a loop reads all sequences from the end."""
    given = [from_end(x) for x in loop.sequences]
    return bool(given) and all(x is not None and flip(x, 0) is y for x, y in zip(given, loop.sequences, strict=True))


def in_steps(x: Tensor, back: bool) -> Tensor:
    """What runs along with the steps in their order, of that in which it is given, or the other way round."""
    return flip(x, 0) if back else x


def without_labels_of(forms: Forms) -> Forms:
    """Closed forms without names of intermediates, which would mean other things at other lengths."""
    bare = iter(without_labels([x for x in forms if x is not None]))
    return tuple(None if x is None else next(bare) for x in forms)


def _states(free: Sequence[int], loop: Loop) -> Iterator[tuple[int, Tensor]]:
    for k in free:
        if k >= len(loop.step.states):
            raise NoInductionError(f"state {k} is free, and there are {len(loop.step.states)}, counted from 0")
        yield k, loop.step.states[k]


def _check_fits(loop: Loop, final: Forms, outputs: Forms, free: Sequence[int]) -> None:
    states = loop.step.states
    if not loop.length.is_Symbol:
        raise NoInductionError(f"the number of steps {loop.length} is no symbol: give it a size of its own")
    if len(final) != len(states):
        raise NoInductionError(f"the closed form of every state is needed: there are {len(states)}, not {len(final)}")
    if any(x is None and k not in free for k, x in enumerate(final)):
        raise NoInductionError("the closed form of every state is needed, but for those that are free")
    if len(outputs) > len(loop.step.outputs):
        raise NoInductionError(f"there are {len(loop.step.outputs)} outputs, and closed forms of {len(outputs)}")
    shapes = [*(x.shape for x in loop.step.after), *((loop.length, *x.shape) for x in loop.step.outputs)]
    given = [*final, *outputs]
    for shape, form in zip([*shapes[: len(final)], *shapes[len(states) :]], given, strict=False):
        if form is not None and not same_shape(form.shape, shape):
            wanted = show_shape(shape)
            raise NoInductionError(f"{form.brief()} is given as the closed form of what has the shape {wanted}")
    if loop.length in loop_symbols(loop):
        raise NoInductionError(f"the step uses the number of steps {loop.length}")


def loop_symbols(loop: Loop) -> set[sympy.Symbol]:
    """The sizes of a step: those of what it computes, and of what stays."""
    nodes = topological([*loop.step.leaves, *loop.step.roots])
    return {s for node in nodes for s in node.own_symbols}


# --- the claims ---


def _the_same_for_all_lengths(form: ClosedForm) -> Iterator[Obligation]:
    """That what the loop begins with and what stays do not depend on the number of steps, nor what has been read."""
    T, n, loop, back = form.steps, form.before, form.loop, form.back
    for what, several in (("where it begins", loop.first), ("what a step takes", loop.given)):
        for x in several:
            if any(T in size.free_symbols for size in x.shape):
                raise NoInductionError(f"{what}, {x.brief()}, has the number of steps {T} as a size")
            if T in x.free_symbols:
                yield Obligation("before", what, eq(at_length(x, T, n + 1), cut(x, T, n, back)))
    for x in form.sequences:
        whole, small = _kept(at_length(x, T, n + 1), n, back), cut(x, T, n, back)
        if whole is not small:
            yield Obligation("before", "what has been read", eq(whole, small))


def _kept(x: Tensor, n: sympy.Symbol, back: bool) -> Tensor:
    """Of n + 1 places those of the n steps before the last."""
    return x[1:] if back else x[:n]


def _first_step(form: ClosedForm) -> Iterator[Obligation]:
    T = form.steps
    after, outputs = _run(form, _first_leaves(form))
    last = {x: after[k] for k, x in form.free}
    for k, x in _given(form.states):
        yield Obligation("first", f"state {k}", eq(_at(x, last, T, 1), after[k]))
    for k, x in _given(form.outputs):
        yield Obligation("first", f"output {k}", eq(_at(x, last, T, 1)[0], outputs[k]))


def _next_step(form: ClosedForm) -> Iterator[Obligation]:
    T, n, back = form.steps, form.before, form.back
    after, outputs = _run(form, _next_leaves(form))
    last = {x: after[k] for k, x in form.free}
    for k, x in _given(form.states):
        yield Obligation("next", f"state {k}", eq(_at(x, last, T, n + 1), after[k]))
    for k, x in _given(form.outputs):
        if last.keys() & set(topological([x])):
            raise NoInductionError("the closed form of an output may not speak of the last value of a free state")
        whole = at_length(x, T, n + 1)
        yield Obligation("next", f"output {k} of the first n steps", eq(_kept(whole, n, back), cut(x, T, n, back)))
        yield Obligation("next", f"output {k} of the last step", eq(whole[0 if back else -1], outputs[k]))


def _first_leaves(form: ClosedForm) -> list[Tensor]:
    """What the first step is made on."""
    first, sequences, given = ([at_length(x, form.steps, 1) for x in part] for part in form.loop[1:4])
    return [*first, *(x[0] for x in sequences), *given]  # which has one place only


def _next_leaves(form: ClosedForm) -> list[Tensor]:
    """What the step after n others is made on: the closed forms of n steps, and the last of n + 1 places."""
    T, n, loop, free = form.steps, form.before, form.loop, dict(form.free)
    before = [cut(x, T, n, form.back) if x is not None else free[k] for k, x in enumerate(form.states)]
    elements = [at_length(x, T, n + 1)[0 if form.back else -1] for x in form.sequences]
    return [*before, *elements, *(at_length(x, T, n + 1) for x in loop.given)]


def free_values(form: ClosedForm) -> Iterator[tuple[Obligation, list[Tensor]]]:
    """What the free states are after the first step and after another, for which they are seen as any numbers."""
    step, parts = form.loop.step, {part.part: part for part in form.obligations()}
    for part, leaves in (("first", _first_leaves), ("next", _next_leaves)) if form.free else ():
        put = dict(zip(step.leaves, leaves(form), strict=True))
        yield parts[part], rebuild([step.after[k] for k, _ in form.free], put)


def uncancelled(x: Tensor) -> Tensor:
    """A number of steps under a name, so that SymPy cancels nothing with it: what is divided by is still seen."""
    value = scalar_value(x)
    return named("s", x) if value is not None and value.free_symbols else x


def uncancelled_steps(form: ClosedForm) -> Iterator[tuple[Obligation, list[Tensor]]]:
    """What the first step and another one give, where states are numbers that a step may divide by."""
    step, parts = form.loop.step, {part.part: part for part in form.obligations()}
    for part, leaves in (("first", _first_leaves), ("next", _next_leaves)):
        put = dict(zip(step.leaves, map(uncancelled, leaves(form)), strict=True))
        if part in parts and any(x.op is let_op for x in put.values()):
            yield parts[part], rebuild([*step.after, *step.outputs], {**_any_after(form, list(put.values())), **put})


def _run(form: ClosedForm, leaves: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """One step; what it gives for a free state is any value, a named tensor, where it is computed at all."""
    step = form.loop.step
    new = {**_any_after(form, leaves), **dict(zip(step.leaves, leaves, strict=True))}
    roots = rebuild([*step.after, *step.outputs], new)
    return roots[: len(step.after)], roots[len(step.after) :]


def _any_after(form: ClosedForm, leaves: Sequence[Tensor]) -> dict[Tensor, Tensor]:
    """A named tensor for each new free state that is computed."""
    taken, after = form.names | symbol_names(leaves), form.loop.step.after
    return {after[k]: any_tensor(new_name("m", taken), after[k]) for k, _ in form.free if after[k].inputs}


def _at(form: Tensor, last: dict[Tensor, Tensor], T: sympy.Symbol, length: Any) -> Tensor:
    """A closed form for a number of steps, of the last values of free states."""
    return rebuild([at_length(form, T, length)], last)[0]


def _given(forms: Forms) -> list[tuple[int, Tensor]]:
    return [(k, x) for k, x in enumerate(forms) if x is not None]
