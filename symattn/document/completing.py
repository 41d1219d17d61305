"""What a reader needs besides what was written: definitions that nobody wrote, and all that is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy

from ..core.node import Tensor, topological
from ..graph.folding import Folding
from ..graph.names import unnamed_inputs
from ..ops.leaves import cotangent_op, definition, is_named, let_op, variable
from ..proof.verdict import Verdict
from .parts import Cases, Folded, Line, Statement, roots_of_verdict


def completed(parts: Sequence[Any], names: Mapping[Tensor, str], result: Iterable[Tensor] = ()) -> list[Any]:
    """The parts, with a line for each name that no line defines, before the first part that mentions it.

    What only the result mentions is defined before all parts. Definitions of the user read the names too that a
    gradient gave.
    """
    asked = [_asked(x) for x in result]
    missing = _missing([*(line for part in parts for line in _lines_of(part)), *asked], names)
    if not missing:
        return list(parts)
    fold = Folding(line.left for line in missing.values() if line.left is not None)
    written: list[Any] = []
    head = 0  # where the chain begins that a line belongs to
    for part in parts:
        if not isinstance(part, Line):
            needed = (_taken(line, missing, names) for line in _lines_of(part))
            written += [*(line for several in needed for line in several), part]
            continue
        if part.is_found:
            continue
        line = _read_by_names(part, fold)
        head = len(written) if line.left is not None else head
        before = _taken(line, missing, names)
        written[head:head] = before
        head += len(before)
        written.append(line)
    return [*(needed for line in asked for needed in _taken(line, missing, names)), *written]


def _lines_of(part: Any) -> list[Line]:
    """The lines of a part, and the sides of its claims as if they were lines."""
    if isinstance(part, Line):
        return [part]
    if isinstance(part, Statement):
        claimed = [x for verdict in part.verdicts for x in roots_of_verdict(verdict)]
        return [*map(_asked, claimed), *(line for inner in part.proof for line in _lines_of(inner))]
    if isinstance(part, Folded):
        return [line for inner in part.parts for line in _lines_of(inner)]
    cells = [cell for row in part.rows for cell in row] if isinstance(part, Cases) else []
    claims = (cell for cell in cells if isinstance(cell, Verdict))
    return [_asked(x) for verdict in claims for x in roots_of_verdict(verdict)]


def _asked(side: Tensor) -> Line:
    return Line(None, side, "further")


def _missing(lines: Sequence[Line], names: Mapping[Tensor, str]) -> dict[str, Line]:
    """Lines for the names that no line of the user defines."""
    named = [(names[line.name], line) for line in lines if line.name is not None]
    said = {name for name, line in named if not line.is_found}
    missing = {name: line for name, line in named if line.is_found}
    pending = list(lines)
    while pending:
        line = pending.pop()
        for x in (*_by(line), *_shown(line)):
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
