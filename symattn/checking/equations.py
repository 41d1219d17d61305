"""Formulas, and the same with one mistake in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..calculus.gradient import jvp
from ..core.node import Tensor, rebuild, topological
from ..errors import SymattnError
from ..graph.names import displayed_names
from ..ops.leaves import computed, cotangent_op, definition, is_named, variable
from .edits import Edited, Formula, edits_at, edits_of_whole


class Candidate(NamedTuple):
    """Formulas with one mistake: where it is, in which words, and what is compared with the arrays."""

    words: str
    places: tuple[str, ...]
    made: dict[str, Tensor]


class Equations:
    """A system of named formulas: what is compared, by name, and each named tensor on the way to it.

    ``others`` are tensors that occur in none of them, and that an edit may put in place of one that does.
    """

    def __init__(self, targets: Mapping[str, Tensor], others: Sequence[Tensor] = ()) -> None:
        self.targets = targets
        roots = list(targets.values())
        self.order = computed(roots)
        self.names = {**displayed_names(roots), **{x: name for name, x in targets.items()}}
        self.lines = [x for x in self.order if x in self.names and x.op is not variable]
        symbols = {s for x in (*self.order, *others) for s in x.own_symbols if s.is_integer and s.is_positive}
        sizes = tuple(sorted(symbols, key=str))
        self.formula = Formula(sizes, (*(x for x in self.order if is_named(x)), *others))

    def candidates(self, wrong: Iterable[str]) -> Iterator[Candidate]:
        """Every edit of the formulas: of one line, then of all lines in which the same can be written.

        Lines that are compared come first, then the other gradients, then the intermediates of the forward pass: those
        also as they may be edited in the backward pass alone.
        """
        first = [self.targets[name] for name in wrong]
        backward = [x for x in reversed(self.lines) if x.op is cotangent_op and x not in first]
        lines = list(dict.fromkeys([*first, *backward, *reversed(self.lines)]))
        same: dict[str, list[tuple[Tensor, Tensor]]] = {}
        for line in lines:
            for words, body in self._edits_of(line):
                same.setdefault(words, []).append((line, body))
                yield from self._with({line: body}, words)
        for words, edited in same.items():
            yield from self._together(words, dict(edited))

    def _together(self, words: str, edited: dict[Tensor, Tensor]) -> Iterator[Candidate]:
        """One edit in several lines at once: in all, in the gradients, and in what these read of the forward pass."""
        gradients = {x: body for x, body in edited.items() if x.op is cotangent_op}
        forward = {x: body for x, body in edited.items() if x.op is not cotangent_op}
        for chosen in (edited, gradients if forward else {}):
            if len(chosen) > 1:
                yield from self._with(chosen, words)
        for chosen in (*({x: body} for x, body in forward.items()), forward if len(forward) > 1 else {}):
            readers = [x for x in self.lines if x.op is cotangent_op and chosen.keys() & self._read(x)]
            bodies = {x: body for x in readers if (body := self._reading(x, chosen)) is not None}
            if readers and len(bodies) == len(readers):
                yield from self._with(bodies, f"{words} in the backward pass", tuple(self.names[x] for x in chosen))

    def _edits_of(self, line: Tensor) -> Iterator[Edited]:
        """Right sides of a line with one edit in them."""
        body, kept = definition(line), self._read(line)
        yield from edits_of_whole(body, self.formula)
        yield from _jacobian_not_transposed(line)
        for node in reversed(topological([body], stop=kept)):
            for words, tensor in edits_at(node, self.formula) if node not in kept else ():
                edited = self._reading(line, {node: tensor})
                if edited is not None and edited is not body:
                    yield Edited(words, edited)

    def _reading(self, line: Tensor, new: Mapping[Tensor, Tensor]) -> Tensor | None:
        """The right side of a line with other tensors in it; None where their shapes do not fit."""
        try:
            return rebuild([definition(line)], {**{x: x for x in self._read(line)}, **new})[0]
        except SymattnError:
            return None

    def _read(self, line: Tensor) -> set[Tensor]:
        """The named tensors that a line reads."""
        body = definition(line)
        below = topological([body], inputs=lambda x: () if x in self.names and x is not body else x.inputs)
        return {x for x in below if x in self.names and x is not body}

    def _with(self, bodies: dict[Tensor, Tensor], words: str, places: tuple[str, ...] = ()) -> Iterator[Candidate]:
        """What is compared, where lines have other right sides."""
        new: dict[Tensor, Tensor] = {}
        try:
            for line in self.lines:
                if line in bodies:
                    new[line] = _with_body(line, rebuild([bodies[line]], new)[0])
            made = rebuild(list(self.targets.values()), new)
        except SymattnError:  # shapes that no longer fit
            return
        pairs = zip(self.targets.items(), made, strict=True)
        changed = {name: x for (name, old), x in pairs if definition(x) is not definition(old)}
        if changed:
            yield Candidate(words, places or tuple(self.names[x] for x in self.lines if x in bodies), changed)


def _jacobian_not_transposed(line: Tensor) -> Iterator[Edited]:
    """``J dy`` for the gradient ``J.T dy`` of one output by one variable."""
    if line.op is cotangent_op and len(line.inputs) == 4:
        _, variable_, output, cotangent = line.inputs
        if cotangent.shape == variable_.shape and cotangent.rank:
            yield Edited("with the Jacobian in place of its transpose", jvp(output, {variable_: cotangent}))


def _with_body(line: Tensor, body: Tensor) -> Tensor:
    return line.op.node(body, *line.inputs[1:], **line.params) if line.op is cotangent_op else body
