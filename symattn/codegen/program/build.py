"""From the graph of a function, at the sizes of a call, to a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from ...core.exact import INDICES
from ...core.node import Tensor, topological
from ...ops.leaves import computed, constant, from_index_op, variable
from ...scalars.affine import expanded
from ..call.takes import Takes
from ..graph import Graph
from .body import Body
from .extent import Extent
from .lowering import Lowering
from .nesting import Nesting
from .schedule import Loop, Schedule

_KEPT = 2  # times the largest argument or output: what is larger than that is not kept, but computed again
GAP = sympy.Dummy("r", integer=True)  # the column less the row


@dataclass(frozen=True)
class Program:
    """The lowered outputs, what is known before the loop axes, and the stages in order."""

    outputs: list[Tensor]
    constants: list[Tensor]  # made from no argument, and small enough to be kept
    diagonals: dict[Tensor, Any]  # constants that know the column less the row alone, by their formula of that
    stages: list[Body | list[Tensor]]
    extent: Extent

    @property
    def loops(self) -> list[Loop]:
        """The stages that go block by block, each before the loops inside of it."""
        return [loop for stage in self.stages if isinstance(stage, Body) for loop in stage.loops]


def program(graph: Graph, takes: Takes, sizes: Mapping[sympy.Symbol, int], puts_off: bool = True) -> Program:
    """The program of a graph; where ``puts_off`` is False, all is computed as it is written."""
    extent = Extent(sizes)
    outputs = Lowering(extent, puts_off).lowered(graph.outputs)
    limit = _KEPT * max(map(extent.of, [*outputs, *takes.tensors]))
    constants, diagonals = _known_before(outputs, limit, extent)
    known = {*takes.tensors, *constants, *diagonals}
    nesting = Nesting(known.difference(takes.tensors), _KEPT, puts_off)
    planned = Schedule(outputs, known, limit, extent).stages
    stages = [nesting.body(stage, extent) if isinstance(stage, Loop) else stage for stage in planned]
    return Program(outputs, constants, diagonals, stages, extent)


def _known_before(outputs: Sequence[Tensor], limit: int, extent: Extent) -> tuple[list[Tensor], dict[Tensor, Any]]:
    """What is made from no argument, in order: kept where it is small, or all that a few diagonals tell."""
    order = computed(outputs)
    fixed: set[Tensor] = set()
    diagonals: dict[Tensor, Any] = {}
    for x in order:
        if x.op is variable or not all(y in fixed for y in x.inputs):
            continue
        formula = _by_gap(x) if x.op is from_index_op else None
        if formula is not None:
            diagonals[x] = formula
        elif x.op is constant or extent.of(x) <= limit:
            fixed.add(x)
    used = {y for x in order if x not in fixed for y in x.inputs} | set(outputs)
    needed = set(topological([x for x in fixed if x in used]))
    return [x for x in order if x in fixed and x in needed and x.op is not constant], diagonals


def _by_gap(x: Tensor) -> Any:
    """The formula of a matrix constant by the column less the row; None where it needs more, or nothing."""
    i, j = INDICES[:2]
    formula = x.params["formula"]
    if x.rank != 2 or not {i, j} <= formula.free_symbols:
        return None
    found = formula.xreplace({j: i + GAP})
    found = found.replace(lambda part: isinstance(part, sympy.Rel), _gathered)
    return None if i in _folded(found).free_symbols else _folded(found)


def _gathered(relation: Any) -> Any:
    """A relation with all on one side, where what cancels is gone."""
    return relation.func(expanded(relation.lhs - relation.rhs), 0)


def _folded(formula: Any) -> Any:
    return sympy.expand(formula) if isinstance(formula, sympy.Expr) else formula
