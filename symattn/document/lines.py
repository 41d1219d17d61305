"""The lines of a derivation, and what a reader needs besides: definitions that nobody wrote, and all that is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sympy

from ..core.node import Tensor, topological
from ..graph.folding import Folding
from ..graph.names import unnamed_inputs
from ..ops.leaves import cotangent_op, definition, is_named, let_op, named_by, variable

WHERE = "where"  # why a name stands for something that no line of the user says


class Line(NamedTuple):
    """One line: what it names (None where it continues a chain), what that equals, and why.

    ``remarks`` say where a gradient does not exist, and what is taken there; by its ``label`` it is referred to.
    """

    named: Tensor | None
    expression: Tensor
    reason: str
    remarks: tuple[str, ...] = ()
    label: str = ""

    @property
    def is_found(self) -> bool:
        """Whether it says what a name stands for that no user gave."""
        return self.named is not None and self.reason == WHERE and bool(named_by(self.named))


def completed(parts: Sequence[Any], names: Mapping[Tensor, str]) -> list[Any]:
    """The parts, with a line for each name that nobody defined, before the first that mentions it.

    Such are the names that a gradient gave, and those of what a gradient is by. Definitions of the user read them too.
    """
    missing = _missing([part for part in parts if isinstance(part, Line)], names)
    if not missing:
        return list(parts)
    fold = Folding(line.named for line in missing.values() if line.named is not None)
    written: list[Any] = []
    head = 0  # where the chain begins that a line belongs to
    for part in parts:
        if not isinstance(part, Line):
            written.append(part)
            continue
        if part.is_found:
            continue
        line = _read_by_names(part, fold)
        head = len(written) if line.named is not None else head
        before = _taken(line, missing, names)
        written[head:head] = before
        head += len(before)
        written.append(line)
    return written


def _missing(lines: Sequence[Line], names: Mapping[Tensor, str]) -> dict[str, Line]:
    """Lines for the names that no line of the user defines: of a gradient's making, and what gradients are by."""
    said = {names[line.named] for line in lines if line.named is not None and not line.is_found}
    missing = {names[line.named]: line for line in lines if line.named is not None and line.is_found}
    pending = list(lines)
    while pending:
        line = pending.pop()
        for x in (*_by(line), *(x for x in _shown(line) if named_by(x))):
            name = names[x]
            if x.op is let_op and name not in said and name not in missing:
                missing[name] = Line(x, definition(x), WHERE)
                pending.append(missing[name])
    return missing


def _shown(line: Line) -> list[Tensor]:
    """What is shown in the expression of a line."""
    return topological([line.expression], inputs=unnamed_inputs)


def _by(line: Line) -> list[Tensor]:
    """What the gradients are by that a line mentions or is about."""
    about = [] if line.named is None else [line.named]
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
    if line.named is None or line.named.op is not let_op:
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
