"""Values of tensors at a point, by their entry formulas alone, in exact numbers and balls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy
from flint import fmpq

from ...core.node import Tensor, topological
from ...core.sizes import at_sizes
from ...ops.leaves import cotangent_op, definition, let_op, operands, variable
from ...ops.opaque import unknown_op
from ...ops.rows import softmax_op
from ...ops.template import Entries, entries_of
from ...recurrence.body import loop_of
from ...recurrence.record import scan_op
from ...scalars.evaluate import FOLDS
from .balls import Arithmetic, Number, Outside, shortened

Array: TypeAlias = dict[tuple[int, ...], Number]
Values: TypeAlias = dict[Tensor, Array]

_A_NODE = 3  # what a node costs beyond its entries, in entries


@dataclass(frozen=True)
class Point:
    """Sizes, scalars and arrays to evaluate at, and which instance stands for the unknown functions."""

    sizes: Mapping[sympy.Symbol, int]
    scalars: Mapping[sympy.Symbol, Number]
    arrays: Mapping[Tensor, Array]
    instance: int = 0

    def symbol(self, s: sympy.Symbol) -> Number:
        return self.sizes[s] if s in self.sizes else self.scalars[s]


def ordered(roots: Sequence[Tensor], definitions: Mapping[Tensor, Tensor]) -> list[Tensor]:
    """The nodes whose values the roots need, inputs before users; a defined tensor needs its definition."""

    def needed(node: Tensor) -> Sequence[Tensor]:
        return (definitions[node],) if node in definitions else operands(node)

    return topological(roots, inputs=needed)


class Evaluator:
    """Values of nodes at points; each kind of node is compiled once."""

    def __init__(self, arithmetic: Arithmetic, definitions: Mapping[Tensor, Tensor]) -> None:
        self.arithmetic, self.definitions = arithmetic, definitions
        self._entries_made = 0
        self._entries_of: dict[Tensor, Entries] = {}
        self._functions: dict[Entries, Callable[..., Array]] = {}
        self._folds: dict[Tensor, bool] = {}

    @property
    def work(self) -> int:
        """How many entries were computed and terms added up so far."""
        return self._entries_made + self.arithmetic.terms

    def values(self, order: Sequence[Tensor], point: Point) -> Values:
        """The entries of every node; raises Outside and Undecided where there are none, and NoRuleError."""
        self.arithmetic.instance = point.instance
        return self._values(order, point, {})

    def _values(self, order: Sequence[Tensor], point: Point, found: Values) -> Values:
        for node in order:
            if node in found:
                continue
            if node in self.definitions:
                found[node] = found[self.definitions[node]]
            elif node.op is variable:
                found[node] = point.arrays[node]
            elif node.op in (let_op, cotangent_op):
                found[node] = found[definition(node)]
            elif node.op is scan_op:
                found[node] = self._recurrence(node, found, point)
            else:
                self.arithmetic.budget.check()
                found[node] = self._entries(node, found, point)
        return found

    def _recurrence(self, node: Tensor, found: Values, point: Point) -> Array:
        """A value of a recurrence, by its step at one place after the other."""
        loop, (what, k) = loop_of(node), node.params["take"]
        order = ordered(loop.step.roots, {})
        made: Array = {}
        states = [found[x] for x in loop.first]
        elements = [_elements(found[x]) for x in loop.sequences]
        for t in range(_steps(loop.length, point.sizes)):
            here = [*states, *(x[t] for x in elements), *(found[x] for x in loop.given)]
            one = self._values(order, point, dict(zip(loop.step.leaves, here, strict=True)))
            states = [one[x] for x in loop.step.after]
            if what == "output":
                made.update({(t, *at): x for at, x in one[loop.step.outputs[k]].items()})
        return states[k] if what == "final" else made

    def _entries(self, node: Tensor, found: Values, point: Point) -> Array:
        entries = self._compiled(node)
        arguments = [*(found.get(x) for x in node.inputs), *map(point.symbol, entries.symbols)]
        try:
            array = self._functions[entries](*arguments)
        except (KeyError, ZeroDivisionError, OverflowError) as problem:  # KeyError: an index that is out of range
            raise Outside(f"{node.op.title}: {problem}") from None
        self._entries_made += len(array) + _A_NODE
        if node.op is softmax_op and node.params["empty"] == "error" and _has_empty_row(array, node.params["axes"]):
            raise Outside("a row with nothing to attend to")
        return {at: shortened(x) for at, x in array.items()}

    def _compiled(self, node: Tensor) -> Entries:
        if node not in self._entries_of:
            self._entries_of[node] = found = entries_of(node)
            if found not in self._functions:
                self._functions[found] = found.program.function(self.arithmetic.names)
        return self._entries_of[node]

    @property
    def formulas(self) -> list[Any]:
        """The entry formulas that were met so far."""
        return [entries.formula for entries in self._functions]

    def folds(self, node: Tensor) -> bool:
        """Whether an entry of the node is made of many entries: a sum, a maximum, an inverse."""
        if node not in self._folds:
            computed = node.op not in (variable, let_op, cotangent_op, scan_op)
            self._folds[node] = node.op is scan_op or (computed and self._compiled(node).formula.has(*FOLDS))
        return self._folds[node]

    def expected_work(self, order: Sequence[Tensor], sizes: Mapping[sympy.Symbol, int]) -> int:
        """About how much work values at such sizes are, where the same nodes had values before."""
        shapes = {x.shape for node in order for x in (node, *node.inputs)}
        lengths = {size: _length(size, sizes) for size in set(itertools.chain(*shapes))}
        total = 0
        for node in order:
            entries = math.prod(lengths[size] for size in node.shape)
            if node in self._entries_of and self.folds(node):
                entries *= max((lengths[size] for x in node.inputs for size in x.shape), default=1)
            total += entries + _A_NODE
        return total


def _elements(array: Array) -> dict[int, Array]:
    """The elements of a sequence by their places."""
    found: dict[int, Array] = {}
    for (t, *at), x in array.items():
        found.setdefault(t, {})[tuple(at)] = x
    return found


def with_bodies(nodes: Sequence[Tensor]) -> list[Tensor]:
    """The nodes, and those of the steps of recurrences among them."""
    inner = (topological(node.params["body"].step.roots) for node in nodes if node.op is scan_op)
    return [*nodes, *(x for inside in inner for x in with_bodies(inside))]


def _has_empty_row(array: Array, axes: Sequence[int]) -> bool:
    rows: dict[tuple[int, ...], bool] = {}
    for at, x in array.items():
        row = tuple(i for axis, i in enumerate(at, -len(at)) if axis not in axes)
        rows[row] = rows.get(row, False) or not _is_zero(x)
    return not all(rows.values())


def _is_zero(x: Number) -> bool:
    return (isinstance(x, (int, fmpq)) and x == 0) or bool(x == 0)


def unknown_names(nodes: Sequence[Tensor]) -> list[str]:
    """The unknown functions among the nodes, in alphabetical order, without their primes."""
    return sorted({x.params["function"].rstrip("'") for x in with_bodies(nodes) if x.op is unknown_op})


def shape_at(x: Tensor, sizes: Mapping[sympy.Symbol, int]) -> tuple[int, ...]:
    """The shape with numbers for the sizes."""
    return tuple(_length(size, sizes) for size in x.shape)


def _length(size: Any, sizes: Mapping[sympy.Symbol, int]) -> int:
    return sizes[size] if size.is_Symbol else int(at_sizes(size, sizes))


def _steps(size: Any, sizes: Mapping[sympy.Symbol, int]) -> int:
    """The number of steps of a recurrence, which is no axis of anything where it has no sequences."""
    steps = at_sizes(size, sizes)
    if not (steps.is_Integer and steps.is_positive):
        raise Outside(f"a recurrence of {steps} steps")
    return int(steps)


def indices(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All indices below a shape, in order."""
    return itertools.product(*map(range, shape))
