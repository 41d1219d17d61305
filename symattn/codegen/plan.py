"""What a compiled function takes: arrays, scalars by keyword, and how each size is read off a shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import sympy

from ..core.naming import check_name
from ..core.node import Tensor
from ..errors import EvaluationError, NamingError, OperandError, described
from ..ops.leaves import as_tensor, variable

Argument: TypeAlias = Tensor | sympy.Symbol


class Plan:
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
                        f"{a.shape[axis]}, the size {shapes[a][axis]}{shown(known)}"
                    )
                known[s] = value
        return known


@lru_cache(maxsize=1024)  # SymPy takes a millisecond, and a function is called with the same shapes again and again
def _solution(size: sympy.Expr, known: tuple[tuple[sympy.Symbol, int], ...], s: sympy.Symbol, found: int) -> int | None:
    """The positive integer s for which the size is what was found; None if there is none."""
    whole = [v for v in sympy.solve(size.subs(dict(known)) - found, s) if v.is_Integer and v > 0]
    return int(whole[0]) if len(whole) == 1 else None


def shown(sizes: Mapping[sympy.Symbol, Any]) -> str:
    """The bindings so far, for a message."""
    return f"; sizes so far: {', '.join(f'{s} = {v}' for s, v in sizes.items())}" if sizes else ""
