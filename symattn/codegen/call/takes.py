"""What a compiled function takes: arrays, scalars by keyword, and how each size is read off a shape.

Sizes that no shape gives are completed from keywords; each error names what does not fit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import sympy

from ...core.naming import check_name, in_python
from ...core.node import Tensor
from ...core.sizes import at_sizes, least
from ...errors import EvaluationError, NamingError, OperandError, described
from ...ops.domain import sizes_of
from ...ops.gather import tile_op
from ...ops.index import edges, embed_op, index_op, items_read, lies_inside
from ...ops.layout import repeat_op
from ...ops.leaves import as_tensor, variable
from .gate import checked_scalar

Argument: TypeAlias = Tensor | sympy.Symbol
Known: TypeAlias = dict[sympy.Symbol, Any]


class Takes:
    """The arguments in order, the keywords, and a source for every size that a shape can give."""

    def __init__(self, arguments: Sequence[Any], symbols: Iterable[sympy.Symbol]) -> None:
        self.arguments = [self._argument(a) for a in arguments]
        self.tensors = [a for a in self.arguments if isinstance(a, Tensor)]
        names = [a.name for a in self.arguments]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise NamingError(f"the argument {twice!r} is given twice")
        positional = [a for a in self.arguments if isinstance(a, sympy.Symbol)]
        self.free = sorted(symbols, key=str)  # what the outputs depend on
        in_shapes = [s for a in self.tensors for size in a.shape for s in sorted(size.free_symbols, key=str)]
        self.symbols = list(dict.fromkeys([*positional, *in_shapes, *self.free]))
        self.source: dict[sympy.Symbol, tuple[Tensor, int]] = {}
        for a in self.tensors:
            for axis, size in enumerate(a.shape, -a.rank):
                if size.is_Symbol and size not in positional:
                    self.source.setdefault(size, (a, axis))
        needed = dict.fromkeys([*self.free, *in_shapes])  # sizes like n of (n + 1,) are solved for, and handed over
        self.keywords = [s for s in needed if s not in self.source and s not in positional]

    def _argument(self, a: Any) -> Argument:
        if isinstance(a, sympy.Symbol):
            check_name(a.name)
            return a
        x = as_tensor(a) if isinstance(a, (Tensor, sympy.MatrixSymbol)) else a
        if not isinstance(x, Tensor) or x.op is not variable:
            raise OperandError(
                f"the arguments of a compiled function are named tensors and scalar symbols, not {described(a)}"
            )
        return x

    def solved(self, sizes: Mapping[sympy.Symbol, int], shapes: Mapping[Tensor, tuple[int, ...]]) -> dict[Any, int]:
        """The sizes completed: an axis of size ``h*d`` gives d once h is known. An axis that cannot be is left."""
        known = dict(sizes)
        axes = [(a, axis) for a in self.tensors for axis in range(-a.rank, 0)]
        waiting = [(a, axis) for a, axis in axes if not a.shape[axis].free_symbols <= known.keys()]
        while waiting:
            a, axis = next((w for w in waiting if len(w[0].shape[w[1]].free_symbols - known.keys()) <= 1), (None, 0))
            if a is None:
                break
            waiting.remove((a, axis))
            size = a.shape[axis]
            for s in size.free_symbols - known.keys():
                found = tuple((k, known[k]) for k in size.free_symbols if k in known)
                value = _solution(size, found, s, shapes[a][axis])
                if value is None:
                    raise EvaluationError(
                        f"{a.name} has shape {shapes[a]} for {a.brief()}: no {s} makes axis {axis}, "
                        f"{a.shape[axis]}, the size {shapes[a][axis]}{_shown(known)}"
                    )
                known[s] = value
        return known


@lru_cache(maxsize=1024)  # SymPy takes a millisecond, and a function is called with the same shapes again and again
def _solution(size: sympy.Expr, known: tuple[tuple[sympy.Symbol, int], ...], s: sympy.Symbol, found: int) -> int | None:
    """The integer s for which the size is what was found; None if there is none."""
    whole = [v for v in sympy.solve(size.subs(dict(known)) - found, s) if v.is_Integer and v >= least(s)]
    return int(whole[0]) if len(whole) == 1 else None


def _shown(sizes: Mapping[sympy.Symbol, Any]) -> str:
    """The bindings so far, for a message."""
    return f"; sizes so far: {', '.join(f'{s} = {v}' for s, v in sizes.items())}" if sizes else ""


# --- what sizes must satisfy and could not be decided before: slices inside, sizes whole ---


class Condition(NamedTuple):
    """An expression that must be a whole number >= 0, and which part of which tensor asks for it."""

    expression: Any
    part: str
    tensor: Tensor
    asked: str

    def __str__(self) -> str:
        return f"{self.part} {self.tensor.brief()} must {self.asked}"  # of a large graph the text is slow to find


def size_conditions(nodes: Iterable[Tensor]) -> list[Condition]:
    """The conditions on sizes below some nodes, without those that always hold."""
    found: dict[Any, Condition] = {}
    for node in nodes:
        for condition in (*_of_sizes(node), *_of_edges(node)):
            expression = sympy.expand(condition.expression)
            if not (expression.is_nonnegative and expression.is_integer):
                found.setdefault(expression, condition._replace(expression=expression))
    return list(found.values())


def _of_sizes(node: Tensor) -> Iterator[Condition]:
    for k, size in enumerate(sizes_of(node)):
        if not (size.is_Symbol or size.is_Integer):
            what = "size" if k < node.rank else "number of steps"
            yield Condition(size - 1, f"the {what} {size} of", node, "be a positive whole number")
    if node.op is repeat_op or node.op is tile_op:
        times = node.params["times"]
        yield Condition(times - 1, f"the times {times} of", node, "be a positive whole number")


def _of_edges(node: Tensor) -> Iterator[Condition]:
    """That the first and the last place that an index reads lie inside."""
    if node.op is not index_op and node.op is not embed_op:
        return
    for item, size in items_read(node.inputs[0] if node.op is index_op else node, node.params["items"]):
        if lies_inside(item, size):
            continue
        for place in edges(item):
            for room in (place, size - 1 - place):
                yield Condition(room, f"index {sympy.expand(place)} in", node, f"lie inside the size {size}")


# --- what sizes are, once there are arrays ---


class Binding:
    """Reads the sizes off the arrays, completes them from keywords, and holds every axis against them."""

    def __init__(self, takes: Takes, needed: Collection[sympy.Symbol], conditions: Sequence[Condition]) -> None:
        self.takes, self.needed, self.conditions = takes, needed, conditions
        arguments = set(map(id, takes.arguments))
        self.keywords = {in_python(s.name): s for s in takes.symbols if id(s) not in arguments}
        axes = [
            (place, axis, size)
            for place, a in enumerate(takes.arguments)
            if isinstance(a, Tensor)
            for axis, size in enumerate(a.shape, -a.rank)
        ]
        self.plain = [x for x in axes if x[2].is_Symbol]
        self.composite = [x for x in axes if not x[2].is_Symbol]

    def sizes(self, arrays: Sequence[Any], given: Mapping[str, Any]) -> Known:
        """The value of every size and keyword; raises EvaluationError where an axis or a keyword does not fit."""
        known = {self._keyword(name): checked_scalar(self.keywords[name], value) for name, value in given.items()}
        known.update((a, x) for a, x in zip(self.takes.arguments, arrays, strict=True) if isinstance(a, sympy.Symbol))
        for place, axis, size in self.plain:
            if known.setdefault(size, arrays[place].shape[axis]) != arrays[place].shape[axis]:
                self._misfit(arrays, place, axis, known)
        if self.composite:
            known = self.takes.solved(known, self._shapes(arrays))
            for place, axis, size in self.composite:
                if size.free_symbols <= known.keys() and at_sizes(size, known) != arrays[place].shape[axis]:
                    self._misfit(arrays, place, axis, known)
        lacking = [in_python(s.name) for s in self.needed if s not in known]
        if lacking:
            asked = ", ".join(f"{name}=..." for name in lacking)
            raise EvaluationError(f"give {asked}: it cannot be read off the shape of an argument{_shown(known)}")
        for condition in self.conditions:
            if condition.expression.free_symbols <= known.keys():
                value = at_sizes(condition.expression, known)
                if not (value.is_Integer and value >= 0):
                    raise EvaluationError(f"{condition}, which does not hold{_shown(known)}")
        return known

    def _keyword(self, name: str) -> sympy.Symbol:
        if name not in self.keywords:
            names = ", ".join(self.keywords) or "none"
            raise EvaluationError(f"{name!r} is no size or scalar of this function; it knows {names}")
        return self.keywords[name]

    def _shapes(self, arrays: Sequence[Any]) -> dict[Tensor, tuple[int, ...]]:
        pairs = zip(self.takes.arguments, arrays, strict=True)
        return {a: x.shape[x.ndim - a.rank :] for a, x in pairs if isinstance(a, Tensor)}

    def _misfit(self, arrays: Sequence[Any], place: int, axis: int, known: Known) -> None:
        a, x = self.takes.arguments[place], arrays[place]
        size = a.shape[axis]
        others = [b.brief() for b in self.takes.tensors if b is not a and size in b.shape]
        source = f" (as in {', '.join(others)})" if others else ""
        wanted = f"{size}{source}" if size.is_Integer else f"{size} = {at_sizes(size, known)}{source}"
        raise EvaluationError(
            f"{a.name} has shape {x.shape} for {a.brief()}: axis {axis} must be {wanted}, "
            f"not {x.shape[axis]}{_shown(known)}"
        )
