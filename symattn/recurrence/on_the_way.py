"""Loops that expressions show and nobody has named: they are named on the way, and told by their equations.

So ``scan(...) @ W`` is read as ``S_T W`` where ``S_0 = 0`` and ``S_{t+1} = S_t + k_t v_t^T`` for t = 0, ..., T - 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..core.boxes import Box
from ..core.node import Tensor, topological
from ..ops.index import is_flip
from ..ops.leaves import definition
from ..ops.notation import Binding
from ..printing.matrix import Printer
from ..printing.prose import Step
from .body import Take, loop_key, loop_of
from .telling import Recursion, runs_back


def equations(p: Printer, shown: Sequence[Tensor]) -> list[Step]:
    """Rows that define the values of loops that some expressions show, but for those that the page has already.

    The printer writes these values by their letters from then on.
    """
    order = topological(shown, stop=p.names)
    values: dict[Any, list[Tensor]] = {}
    for x in order:
        if x not in p.names and x.op.equations is not None:
            values.setdefault(loop_key(x), []).append(x)
    steps, loops = list[Step](), p.table.loops
    for key, several in values.items():
        labels = _labels(p, key)
        if key not in loops:
            loop, letters = loop_of(several[0]), next((x.letters for x in loops.values()), None)
            back = runs_back(loop) and not _read_in_order(several, order, shown)
            loops[key] = Recursion(loop, labels, p, letters, back)
        asked = loops[key].needed_for([*labels, *(x.params["take"] for x in several)])
        steps += (step.defined() for step in loops[key].equations(asked))
        p.known |= {x: (box, Binding.ATOM) for x, box in _boxes(loops[key], several, order)}
    return steps


def _read_in_order(values: Sequence[Tensor], order: Sequence[Tensor], shown: Sequence[Tensor]) -> bool:
    """Whether outputs of a loop are read as they are, and not from the end."""
    outputs = {x for x in values if x.params["take"][0] == "output"}
    return not outputs.isdisjoint([*shown, *(y for x in order if not is_flip(x) for y in x.inputs)])


def _labels(p: Printer, key: Any) -> dict[Take, str]:
    """What the page calls the values of a loop."""
    named = ((definition(x), name) for x, name in p.names.items())
    named = ((x.inputs[0] if is_flip(x) else x, name) for x, name in named)
    return {x.params["take"]: name for x, name in named if x.op.equations is not None and loop_key(x) == key}


def _boxes(recursion: Recursion, values: Sequence[Tensor], order: Sequence[Tensor]) -> Iterator[tuple[Tensor, Box]]:
    """How values of a loop are written; the outputs of one that runs from the end in the order of its sequences."""
    flips = {x.inputs[0]: x for x in order if is_flip(x)}
    for x in values:
        from_end = recursion.back and x.params["take"][0] == "output"
        yield flips[x] if from_end else x, recursion.value(x.params["take"])
