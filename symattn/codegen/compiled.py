"""What every compiled function has, in whatever library it computes: arguments, results, text, and a check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from inspect import signature
from types import CodeType
from typing import Any, ClassVar

import numpy as np
import sympy

from ..core.late import late
from ..core.node import Tensor, topological
from ..errors import EvaluationError, OperandError
from ..ops.leaves import computed, variable
from .call.takes import Binding, Takes, size_conditions
from .graph import Graph
from .module import module_of
from .text.source import Writer


class Compiled:
    """A function made by ``lambdify``; call it on arrays."""

    backend: ClassVar[str] = "numpy"
    title: ClassVar[str] = "NumPy"
    _writer: ClassVar[type[Writer]] = Writer

    def __init__(self, arguments: Sequence[Any], outputs: Sequence[Tensor], several: bool) -> None:
        self.outputs, self.several = tuple(outputs), several
        self.graph = graph = Graph(outputs)
        order = computed(graph.outputs)
        self.takes = Takes(arguments, {s for node in order for s in node.own_symbols if node.op is not variable})
        missing = [node.brief() for node in order if node.op is variable and node not in self.takes.tensors]
        if missing:
            raise OperandError(
                f"the outputs depend on {', '.join(missing)}, which are not among the arguments "
                f"{', '.join(a.brief() if isinstance(a, Tensor) else a.name for a in self.takes.arguments)}"
            )
        self.__name__ = "f"
        writer = self._writer(self.__name__, self.takes, graph, several)
        self._text = needed, own = writer.write()
        self.keywords = {s: writer.symbols[s] for s in writer.keywords()}
        self.binding = Binding(self.takes, self.keywords, size_conditions(order))
        self._namespace: dict[str, Any] = {"__name__": "symattn.generated"}
        exec(_compiled(needed), self._namespace)  # the generator's own text: only identifiers that it made
        exec(compile("\n" * needed.count("\n") + own, "<symattn>", "exec"), self._namespace)
        self._function = self._namespace[self.__name__]
        self._gradients = _loops_of(graph, self.takes)

    def by_keyword(self) -> dict[str, sympy.Symbol]:
        """The keywords by what the code calls them."""
        return {name: s for s, name in self.keywords.items()}

    @cached_property
    def source(self) -> str:
        """The code as a person reads it, without blocks, as a module that stands alone.

        Small calls of NumPy run it; what large calls run is ``plan(...).source``, which is other code at other sizes.
        """
        return module_of(self, *self._text)

    @property
    def parameters(self) -> list[str]:
        """What the code calls the arguments, and then the keywords."""
        return [*signature(self._function).parameters]

    def __reduce__(self) -> Any:
        return type(self), (self.takes.arguments, self.outputs, self.several)

    def __repr__(self) -> str:
        shown = [a.brief() if isinstance(a, Tensor) else a.name for a in self.takes.arguments]
        return f"<{self.title} function of {', '.join(shown)}>"

    def on_numpy(self, /, *arrays: Any, **keywords: Any) -> Any:
        """The function of NumPy's arrays, in their types."""
        return self(*arrays, **keywords)

    def __call__(self, /, *arrays: Any, **keywords: Any) -> Any:
        raise NotImplementedError

    def check(self) -> str:
        """Hold the code against entries and against finite differences, at generic sizes; say what agreed.

        Raises EvaluationError with the output, the sizes and the first entry that differs.
        """
        return str(late("check_function")(self))

    def _check_number(self, arrays: Sequence[Any]) -> None:
        """As many arrays as arguments."""
        if len(arrays) != len(self.takes.arguments):
            names = ", ".join(str(a.name) for a in self.takes.arguments)
            raise EvaluationError(
                f"the function takes ({names}) by position, {len(self.takes.arguments)} in all, not {len(arrays)}"
            )

    def _check_loops(self, arrays: Sequence[Any]) -> None:
        """Loop axes broadcast; a cotangent has all those of its output."""
        loops = {
            a: x.shape[: x.ndim - a.rank]
            for a, x in zip(self.takes.arguments, arrays, strict=True)
            if isinstance(a, Tensor)
        }
        every = _joined(loops)
        if self.graph.nested and any(lead != every for lead in loops.values()):
            raise EvaluationError(
                f"second derivatives take the same loop axes for all arguments, not {_shown_loops(loops)}"
            )
        for outputs in self._gradients:
            wanted = [_joined({a: loops[a] for a in below}) for _, _, below in outputs]
            if len(set(wanted)) > 1:
                raise EvaluationError(
                    f"the outputs of one gradient have different loop axes, {wanted}: differentiate them apart, or "
                    f"give the arguments the same loop axes; they have {_shown_loops(loops)}"
                )
            for (y, c, below), lead in zip(outputs, wanted, strict=True):
                if c in loops and loops[c] != lead:
                    raise EvaluationError(
                        f"the cotangent {c.brief()} has the loop axes {loops[c]}, but its output has {lead} "
                        f"(from {_shown_loops({a: loops[a] for a in below if loops[a]})}): give one cotangent for "
                        f"each {y.name or 'output'}"
                    )


@lru_cache(maxsize=256)
def _compiled(text: str) -> CodeType:
    """The helpers of a function, which many functions share."""
    return compile(text, "<symattn>", "exec")


def _shown_loops(loops: Mapping[Tensor, tuple[int, ...]]) -> str:
    return ", ".join(f"{a.name} {lead}" for a, lead in loops.items())


def _joined(loops: Mapping[Tensor, tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*loops.values())
    except ValueError:
        raise EvaluationError(f"the loop axes do not broadcast: {_shown_loops(loops)}") from None


def _loops_of(graph: Graph, takes: Takes) -> list[list[tuple[Tensor, Tensor, list[Tensor]]]]:
    """For each gradient: its outputs, their cotangents, and the arguments that each output depends on."""
    found: dict[Any, list[tuple[Tensor, Tensor, list[Tensor]]]] = {}
    for node in graph.gradients:
        pairs = node.inputs[2:]
        if pairs in found:
            continue
        rows = []
        for y, c in zip(pairs[::2], pairs[1::2], strict=True):
            below = [x for x in topological([y]) if x.op is variable]
            if all(x in takes.tensors for x in below):
                rows.append((y, c, below))
        found[pairs] = rows
    return list(found.values())
