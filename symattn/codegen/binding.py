"""Sizes read off shapes and completed from keywords; each error names what does not fit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import sympy

from ..core.node import Tensor
from ..errors import EvaluationError
from .conditions import Condition
from .gate import checked_scalar
from .plan import Plan, shown

Known = dict[sympy.Symbol, Any]


class Binding:
    """Reads the sizes off the arrays, completes them from keywords, and holds every axis against them."""

    def __init__(self, plan: Plan, needed: Collection[sympy.Symbol], conditions: Sequence[Condition]) -> None:
        self.plan, self.needed, self.conditions = plan, needed, conditions
        arguments = set(map(id, plan.arguments))
        self.keywords = {s.name: s for s in plan.symbols if id(s) not in arguments}
        axes = [
            (place, axis, size)
            for place, a in enumerate(plan.arguments)
            if isinstance(a, Tensor)
            for axis, size in enumerate(a.shape, -a.rank)
        ]
        self.plain = [x for x in axes if x[2].is_Symbol]
        self.composite = [x for x in axes if not x[2].is_Symbol]

    def sizes(self, arrays: Sequence[Any], given: Mapping[str, Any]) -> Known:
        """The value of every size and keyword; raises EvaluationError where an axis or a keyword does not fit."""
        known = {self._keyword(name): checked_scalar(self.keywords[name], value) for name, value in given.items()}
        known.update((a, x) for a, x in zip(self.plan.arguments, arrays, strict=True) if isinstance(a, sympy.Symbol))
        for place, axis, size in self.plain:
            if known.setdefault(size, arrays[place].shape[axis]) != arrays[place].shape[axis]:
                self._misfit(arrays, place, axis, known)
        if self.composite:
            known = self.plan.solved(known, self._shapes(arrays))
            for place, axis, size in self.composite:
                if size.free_symbols <= known.keys() and _value(size, known) != arrays[place].shape[axis]:
                    self._misfit(arrays, place, axis, known)
        lacking = [s.name for s in self.needed if s not in known]
        if lacking:
            asked = ", ".join(f"{name}=..." for name in lacking)
            raise EvaluationError(f"give {asked}: it cannot be read off the shape of an argument{shown(known)}")
        for condition in self.conditions:
            if condition.expression.free_symbols <= known.keys():
                value = _value(condition.expression, known)
                if not (value.is_Integer and value >= 0):
                    raise EvaluationError(f"{condition}, which does not hold{shown(known)}")
        return known

    def _keyword(self, name: str) -> sympy.Symbol:
        if name not in self.keywords:
            names = ", ".join(self.keywords) or "none"
            raise EvaluationError(f"{name!r} is no size or scalar of this function; it knows {names}")
        return self.keywords[name]

    def _shapes(self, arrays: Sequence[Any]) -> dict[Tensor, tuple[int, ...]]:
        pairs = zip(self.plan.arguments, arrays, strict=True)
        return {a: x.shape[x.ndim - a.rank :] for a, x in pairs if isinstance(a, Tensor)}

    def _misfit(self, arrays: Sequence[Any], place: int, axis: int, known: Known) -> None:
        a, x = self.plan.arguments[place], arrays[place]
        size = a.shape[axis]
        others = [b.brief() for b in self.plan.tensors if b is not a and size in b.shape]
        source = f" (as in {', '.join(others)})" if others else ""
        wanted = f"{size}{source}" if size.is_Integer else f"{size} = {_value(size, known)}{source}"
        raise EvaluationError(
            f"{a.name} has shape {x.shape} for {a.brief()}: axis {axis} must be {wanted}, "
            f"not {x.shape[axis]}{shown(known)}"
        )


def _value(size: sympy.Expr, known: Known) -> Any:
    symbols = tuple(size.free_symbols)
    return _substituted(size, symbols, tuple(known[s] for s in symbols))


@lru_cache(maxsize=1024)
def _substituted(size: sympy.Expr, symbols: tuple[sympy.Symbol, ...], values: tuple[int, ...]) -> Any:
    return size.subs(dict(zip(symbols, values, strict=True)))
