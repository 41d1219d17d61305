"""What a program does, in a few lines: what is blocked, stored, computed again and skipped, and the memory for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from ...core.naming import in_python
from ...core.node import Tensor
from ...core.sizes import show_shape
from ...errors import EvaluationError
from ..call.takes import Takes
from ..program.body import Body
from .planned import Planned

_LONG, _SHORT = 1024, 64  # sizes that nobody told: of rows as long as another size, and of others
_LISTED = 6  # nodes that are told by name


@dataclass(frozen=True, repr=False)
class Description:
    """How a function computes at some sizes: in words, as source, and the memory beside arguments and outputs."""

    text: str
    source: str
    memory: int

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def told_sizes(takes: Takes, given: Mapping[str, int]) -> dict[sympy.Symbol, int]:
    """The sizes by their names, and usual ones for the others."""
    sizes = {in_python(s.name): s for s in takes.symbols if s.is_integer}
    if unknown := given.keys() - sizes.keys():
        raise EvaluationError(f"{min(unknown)!r} is no size of this function; it knows {', '.join(sizes)}")
    ahead = (a.shape[-2:] for a in takes.tensors if a.rank > 1)
    long = {s for size, last in ahead for s in size.free_symbols - last.free_symbols}
    return {s: given.get(name, _LONG if s in long else _SHORT) for name, s in sizes.items()}


def described(planned: Planned | None, sizes: Mapping[sympy.Symbol, int]) -> Description:
    """The description of a program at sizes, for float32."""
    if planned is None:
        return Description("All is computed straight: nothing can be had block by block.", "", 0)
    known = _Known(planned, sizes)
    told = [_stage(planned, stage, known) for stage in planned.program.stages]
    threads = planned.writer.threads
    shared = f", which {threads} threads share" * (threads > 1)
    lines = [f"At {', '.join(f'{s} = {n}' for s, n in sizes.items())}, at each place of the loop axes{shared}:"]
    lines += [f"{k}. {line}" for k, line in enumerate(filter(None, told), 1)]
    memory = threads * known.memory(planned)
    lines.append(f"Beside arguments and outputs this takes {memory / 2**20:.1f} MiB in float32.")
    return Description("\n".join(lines), planned.source, memory)


class _Known:
    """The numbers that the text of a program computes from the sizes before its loops."""

    def __init__(self, planned: Planned, sizes: Mapping[sympy.Symbol, int]) -> None:
        writer = planned.writer
        names = {writer.symbols[s]: n for s, n in sizes.items()}
        self.values: dict[str, Any] = {**names, "math": math, "dtype": np.dtype(np.float32)}
        for name, text in writer.rows.values():
            self.values[name] = self.value(text)

    def value(self, text: str) -> int:
        return int(eval(text, {}, self.values))  # the generator's own text

    def memory(self, planned: Planned) -> int:
        """The bytes of buffers, of what is stored between stages, and of constants."""
        writer, extent = planned.writer, planned.program.extent
        entries = sum(max(map(self.value, lengths)) for lengths in writer.slots)
        loops = [stage.loop for stage in planned.program.stages if isinstance(stage, Body)]
        kept = [x for loop in loops for x in loop.stored if x not in writer.targets]
        return 4 * (entries + sum(map(extent.of, [*kept, *planned.program.constants])))


def _stage(planned: Planned, stage: Body | list[Tensor], known: _Known) -> str:
    if isinstance(stage, Body):
        return _told(planned, stage, known, {}) + "."
    values = [x for x in stage if x.inputs and not x.op.is_view]
    return f"Whole: {_listed(planned, values, {})}." if values else ""


def _told(planned: Planned, body: Body, known: _Known, names: Mapping[Tensor, str]) -> str:
    """A loop, and those inside of it; its nodes may have names."""
    writer, stage = planned.writer, body.loop
    count, inside = len(stage.order), [step for step in body.steps if isinstance(step, Body)]
    rows = "one by one" if body.one_by_one else f"in blocks of {known.values[writer.rows[id(stage)][0]]}"
    parts = [f"{stage.length} {rows}: {count} value{'s' * (count != 1)}"]
    written = [x for x in stage.stored if x not in stage.added]
    for what, nodes in (
        ("written", written),
        ("added up", [x for x in stage.order if x in stage.added]),
        ("computed again", stage.again),
    ):
        if nodes:
            parts.append(f"{what} {_listed(planned, nodes, names)}")
    if stage.columns is not None:
        first, stop = (planned.writer.scalar(bound) for bound in stage.columns.bounds[:2])
        parts.append(f"rows i0 to i1 see the columns {first} to {stop} of {stage.columns.size}, and others are skipped")
    names = {node: names.get(x) or _shown(planned, x) for x, node in body.node.items()}
    parts += [f"in each of these, {_told(planned, step, known, names)}" for step in inside]
    return "; ".join(parts)


def _listed(planned: Planned, nodes: Sequence[Tensor], names: Mapping[Tensor, str]) -> str:
    shown = [names.get(x) or _shown(planned, x) for x in nodes]
    more = len(shown) - _LISTED
    return ", ".join(shown[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def _shown(planned: Planned, x: Tensor) -> str:
    """A node by name, or by what it is."""
    return f"{planned.writer.targets.get(x) or x.op.title}{show_shape(x.shape)}"
