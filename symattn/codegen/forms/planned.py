"""Functions in blocks: planned at the sizes of a call, for calls large enough that blocks pay.

What is small, or of another type than the usual two, is computed straight. Values are those of the straight function:
where an output is not finite, all is computed again as it is written, for a factor that was put off may have let
something overflow, and what is hidden behind a mask may have been infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import sympy

from ...core.node import Tensor
from ...errors import SymattnError
from ...ops.leaves import computed, operands
from ..call.takes import Takes
from ..graph import Graph
from ..program.build import program
from ..program.extent import Extent
from ..program.records import picked_op
from ..program.schedule import Loop
from .blocks import BlockWriter

_WORTH, _WORTH_A_PLACE = 1 << 20, 1 << 15  # bytes of the largest value, over all loop axes and at one place of them
_TYPES = {np.dtype(np.float32), np.dtype(np.float64)}


class Planned:
    """The function of a program; ``rows`` are those of a block, which otherwise follow from the sizes.

    Places of the loop axes are shared among ``threads``.
    """

    def __init__(
        self,
        graph: Graph,
        takes: Takes,
        sizes: Mapping[sympy.Symbol, int],
        several: bool,
        puts_off: bool = True,
        rows: int | None = None,
        threads: int = 1,
    ) -> None:
        self.program = program(graph, takes, sizes, puts_off)
        self.writer = writer = BlockWriter("f", takes, graph, self.program, rows, threads)
        needed, own = writer.write(several)
        self.source = needed + own
        self.keywords = {s: writer.symbols[s] for s in writer.keywords()}
        self.skips = any(map(_skips, self.program.loops))
        self.full_loops = [y.full for y in writer.outputs if y.full is not None]
        namespace: dict[str, Any] = {"__name__": "symattn.generated"}
        exec(compile(self.source, "<symattn>", "exec"), namespace)  # the generator's own text
        self.function = namespace["f"]


class InBlocks:
    """What computes the outputs of a graph block by block, for each class of sizes once it is met."""

    def __init__(self, graph: Graph, takes: Takes, threads: int) -> None:
        self.graph, self.takes, self.threads = graph, takes, threads
        self.nodes = computed(graph.outputs)
        read = {x for node in self.nodes for x in operands(node)}
        self.uses_gradients = graph.nested or not read.isdisjoint(graph.gradients)  # as summed over loop axes
        self.symbols = {s for x in self.nodes for size in x.shape for s in size.free_symbols}
        self.largest: dict[Hashable, int] = {}
        self.planned: dict[Hashable, Planned | None] = {}

    def function(self, arrays: Sequence[Any], known: Mapping[sympy.Symbol, Any]) -> Callable[..., Any] | None:
        """The function for such arrays, of these and of keywords that are no sizes; None where blocks do not pay."""
        dtype, loops = self._dtype(arrays), self._loops(arrays)
        if dtype is None or self.uses_gradients:
            return None
        sizes = {s: value for s, value in known.items() if s.is_integer}
        largest = self._largest(sizes) * dtype.itemsize
        if largest < _WORTH_A_PLACE or largest * math.prod(np.broadcast_shapes(*loops)) < _WORTH:
            return None
        fast = self._at(sizes, True)
        if fast is None or not self._sums_over_all(fast, loops):
            return None
        return partial(self._run, fast, sizes)

    def _largest(self, sizes: Mapping[sympy.Symbol, int]) -> int:
        """The entries of the largest value; 0 where a size is not known."""
        key = tuple(sizes.values())
        if key not in self.largest:
            known = self.symbols <= sizes.keys()
            self.largest[key] = max(map(Extent(sizes).of, self.nodes)) if known else 0
        return self.largest[key]

    def _dtype(self, arrays: Sequence[Any]) -> np.dtype[Any] | None:
        """The one type of all real arrays, where it is one that matrix products are fast in."""
        pairs = zip(self.takes.arguments, arrays, strict=True)
        real = [x for a, x in pairs if isinstance(a, Tensor) and a.kind == "real"]
        found = {x.dtype for x in real if isinstance(x, np.ndarray)}
        usual = len(found) == 1 and found <= _TYPES and all(isinstance(x, (np.ndarray, float)) for x in real)
        return found.pop() if usual else None

    def _loops(self, arrays: Sequence[Any]) -> list[tuple[int, ...]]:
        pairs = zip(self.takes.arguments, arrays, strict=True)
        return [np.shape(x)[: np.ndim(x) - a.rank] for a, x in pairs if isinstance(a, Tensor)]

    def _sums_over_all(self, fast: Planned, loops: Sequence[tuple[int, ...]]) -> bool:
        """Whether every gradient is summed over all loop axes there are."""
        every = np.broadcast_shapes(*loops)
        below = ([x for k, x in enumerate(loops) if full >> k & 1] for full in fast.full_loops)
        return all(np.broadcast_shapes(*shapes) == every for shapes in below)

    def at(self, sizes: Mapping[sympy.Symbol, int]) -> Planned | None:
        """What is planned for sizes, were they large enough; None where nothing can be had block by block."""
        return None if self.uses_gradients else self._at(sizes, True)

    def _at(self, sizes: Mapping[sympy.Symbol, int], puts_off: bool) -> Planned | None:
        """What is planned for sizes of these magnitudes; None where that has no block."""
        key = puts_off, tuple(sorted((s.name, n.bit_length()) for s, n in sizes.items()))
        if key not in self.planned:
            self.planned[key] = self._found(sizes, puts_off)
        return self.planned[key]

    def _found(self, sizes: Mapping[sympy.Symbol, int], puts_off: bool) -> Planned | None:
        try:
            found = Planned(self.graph, self.takes, sizes, True, puts_off, threads=self.threads)
        except SymattnError:  # of what has no such form
            return None
        numbers = {s for s in self.takes.keywords if not s.is_integer}
        return found if found.program.loops and found.keywords.keys() <= {*sizes, *numbers} else None

    def _run(self, fast: Planned, sizes: Mapping[sympy.Symbol, int], /, *arrays: Any, **given: Any) -> Any:
        """The results in blocks; None where these have to be computed as they are written, and no block does that."""
        with np.errstate(all="ignore"):
            results = None
            if not fast.skips or all(map(_is_finite, self.takes.arguments, arrays)):
                results = _called(fast, sizes, arrays, given)
                if all(map(_is_finite, self.graph.outputs, results)):
                    return results
        careful = self._at(sizes, False)
        return None if careful is None else _called(careful, sizes, arrays, given)


def _called(
    planned: Planned, sizes: Mapping[sympy.Symbol, int], arrays: Sequence[Any], given: Mapping[str, Any]
) -> Any:
    known = {name: sizes[s] if s in sizes else given[name] for s, name in planned.keywords.items()}
    return planned.function(*arrays, **known)


def _skips(loop: Loop) -> bool:
    """Whether a loop leaves out what is multiplied by 0, which would be met were it infinite."""
    return loop.columns is not None or any(x.op is picked_op for x in loop.order)


def _is_finite(y: Tensor | sympy.Symbol, x: Any) -> bool:
    """Whether an array has no entry that is not finite, or may have some."""
    return (isinstance(y, Tensor) and y.holds_minus_infinity) or bool(np.isfinite(np.sum(x)))
