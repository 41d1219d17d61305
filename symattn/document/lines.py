"""The lines of a derivation, and what a reader needs besides: definitions that nobody wrote, and all that is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import sympy

from ..core.node import Tensor, topological
from ..graph.folding import Folding
from ..graph.names import unnamed_inputs
from ..ops.leaves import cotangent_op, definition, is_named, let_op, named_by, variable
from .checks import Check
from .prose import Prose

Kind = Literal["definition", "where", "gradient", "equation", "further"]


class Line(NamedTuple):
    """One line: a left side (none where it goes on from the line above), what that is equal to, and why.

    A definition gives a name; "where" is one that nobody wrote. ``remarks`` say where a gradient does not exist, and
    what is taken there; by its ``label`` the line is referred to. ``check`` is what was done to verify it.
    """

    left: Tensor | None
    expression: Tensor
    kind: Kind
    reason: str | Prose = ""
    relation: str = "="
    label: str = ""
    remarks: tuple[str, ...] = ()
    check: Check | None = None

    @property
    def is_definition(self) -> bool:
        return self.kind in ("definition", "where")

    @property
    def is_found(self) -> bool:
        """Whether it says what a name stands for that no user gave."""
        return self.left is not None and self.kind == "where" and bool(named_by(self.left))

    @property
    def sides(self) -> list[Tensor]:
        """What is written out: a name is not."""
        return [self.expression] if self.left is None or self.kind != "equation" else [self.left, self.expression]

    @property
    def name(self) -> Tensor | None:
        """What the line gives a name or is the gradient of."""
        return None if self.kind in ("equation", "further") else self.left


def completed(parts: Sequence[Any], names: Mapping[Tensor, str]) -> list[Any]:
    """The parts, with a line for each name that nobody defined, before the first that mentions it.

    Such are the names that a gradient gave, and those of what a gradient is by. Definitions of the user read them too.
    """
    missing = _missing([part for part in parts if isinstance(part, Line)], names)
    if not missing:
        return list(parts)
    fold = Folding(line.left for line in missing.values() if line.left is not None)
    written: list[Any] = []
    head = 0  # where the chain begins that a line belongs to
    for part in parts:
        if not isinstance(part, Line):
            written.append(part)
            continue
        if part.is_found:
            continue
        line = _read_by_names(part, fold)
        head = len(written) if line.left is not None else head
        before = _taken(line, missing, names)
        written[head:head] = before
        head += len(before)
        written.append(line)
    return written


def _missing(lines: Sequence[Line], names: Mapping[Tensor, str]) -> dict[str, Line]:
    """Lines for the names that no line of the user defines: of a gradient's making, and what gradients are by."""
    named = [(names[line.name], line) for line in lines if line.name is not None]
    said = {name for name, line in named if not line.is_found}
    missing = {name: line for name, line in named if line.is_found}
    pending = list(lines)
    while pending:
        line = pending.pop()
        for x in (*_by(line), *(x for x in _shown(line) if named_by(x))):
            if x.op is let_op and (name := names[x]) not in said and name not in missing:
                missing[name] = Line(x, definition(x), "where")
                pending.append(missing[name])
    return missing


def _shown(line: Line) -> list[Tensor]:
    """What is shown in a line."""
    return topological(line.sides, inputs=unnamed_inputs)


def _by(line: Line) -> list[Tensor]:
    """What the gradients are by that a line mentions or is about."""
    about = [] if line.name is None else [line.name]
    return [x.inputs[1] for x in (*_shown(line), *about) if x.op is cotangent_op]


def _taken(line: Line, missing: dict[str, Line], names: Mapping[Tensor, str]) -> list[Line]:
    """The missing lines that a line needs, each after those that it needs in turn; they are missing no longer."""
    taken: list[tuple[int, Line]] = []
    pending = [line]
    while pending:
        needing = pending.pop()
        for x in (*_shown(needing), *_by(needing)):
            if (needed := missing.pop(names.get(x, ""), None)) is not None:
                taken.append((needed.expression.height, needed))
                pending.append(needed)
    return [needed for _, needed in sorted(taken, key=lambda pair: pair[0])]


def _read_by_names(line: Line, fold: Folding) -> Line:
    """A definition of the user with names for what they stand for; it does not become the name of what it defines."""
    if not line.is_definition:
        return line
    folded = fold(line.expression)
    return line if is_named(folded) else line._replace(expression=folded)


def occurring(roots: Iterable[Tensor], listed: Iterable[Any]) -> list[Tensor | sympy.Symbol]:
    """The tensors and scalar symbols below some expressions that are not listed, but for cotangents."""
    order = topological(roots)
    cotangents = {c for x in order if x.op is cotangent_op for c in x.inputs[3::2]}
    known = {str(x.name) for x in listed if isinstance(x, (Tensor, sympy.Symbol))}
    tensors = [x for x in order if x.op is variable and x not in cotangents and x.name not in known]
    symbols = {s for x in order for s in x.own_symbols if not s.is_integer and s.name not in known}
    return [*tensors, *sorted(symbols, key=str)]
