"""A program as a function: planned at sizes, written and compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy

from .blocks import BlockWriter
from .graph import Graph
from .plan import Plan
from .program.build import program


class Planned:
    """The function of a program; ``rows`` are those of a block, which otherwise follow from the sizes."""

    def __init__(
        self,
        graph: Graph,
        plan: Plan,
        sizes: Mapping[sympy.Symbol, int],
        several: bool,
        puts_off: bool = True,
        rows: int | None = None,
    ) -> None:
        self.program = program(graph, plan, sizes, puts_off)
        writer = BlockWriter("f", plan, graph, self.program, rows)
        needed, own = writer.write(several)
        self.source = needed + own
        self.keywords = {s: writer.symbols[s] for s in writer.keywords()}
        namespace: dict[str, Any] = {"__name__": "symattn.generated"}
        exec(compile(self.source, "<symattn>", "exec"), namespace)  # the generator's own text
        self.function = namespace["f"]
