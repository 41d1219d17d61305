"""Lines that define values of a recurrence: its equations, once, and then each value as what the last step gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ..core.boxes import Box
from ..core.node import topological
from ..ops.index import is_flip
from ..ops.leaves import definition
from ..printing.matrix import Printer
from ..printing.prose import Step
from ..recurrence.body import loop_of
from ..recurrence.record import scan_op
from ..recurrence.scans import loop_key
from ..recurrence.telling import Letters, Recursion
from .parts import Line


class Recursions:
    """The recurrences of which lines define values that are told by their equations: those that run forwards."""

    def __init__(self, printer: Printer, lines: Iterable[Line]) -> None:
        self._of: dict[Any, Recursion] = {}
        self._told = set[Any]()
        labels: dict[Any, dict[Any, str]] = {}
        first: dict[Any, Line] = {}
        for line in lines:
            value = line.expression
            if line.is_definition and line.name is not None and value.op is scan_op:
                labels.setdefault(loop_key(value), {})[value.params["take"]] = printer.names[line.name]
                first.setdefault(loop_key(value), line)
        letters = Letters(printer.taken)
        for key, line in first.items():
            loop = loop_of(line.expression)
            if not any(is_flip(x) for x in loop.sequences):
                self._of[key] = Recursion(loop, labels[key], printer, letters)

    def of(self, line: Line) -> Recursion | None:
        """The recurrence that a line defines a value of."""
        value = definition(line.expression)
        return self._of.get(loop_key(value)) if line.is_definition and value.op is scan_op else None

    def rows(self, line: Line) -> Iterator[Step]:
        """Its equations, where no line before has shown them."""
        recursion, key = self.of(line), loop_key(line.expression)
        if recursion is not None and key not in self._told:
            self._told.add(key)
            yield from (replace(step.defined(), status="defined") for step in recursion.equations(_asked(recursion)))

    def value(self, line: Line) -> Box:
        """A value as what the steps have come to."""
        recursion = self.of(line)
        assert recursion is not None
        return recursion.value(line.expression.params["take"])


def _asked(recursion: Recursion) -> list[bool]:
    """The states and outputs that matter to what has a name."""
    step, labels = recursion.loop.step, recursion.labels
    wanted, roots = set[int](), [x for k, x in enumerate(step.outputs) if ("output", k) in labels]
    below = set(topological(roots))
    new = {k for k, x in enumerate(step.states) if x in below or ("final", k) in labels}
    while new:
        wanted |= new
        below = set(topological([*roots, *(step.after[k] for k in wanted)]))
        new = {k for k, x in enumerate(step.states) if x in below} - wanted
    return [*(k in wanted for k, _ in enumerate(step.states)),
            *(("output", k) in labels for k, _ in enumerate(step.outputs))]  # fmt: skip
