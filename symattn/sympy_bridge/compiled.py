"""The functions that generated SymPy code imports by name: ``from symattn.sympy_bridge.compiled import _symattn_1``.

SymPy's ``lambdify`` writes text and executes it, so a function must be reachable by a name. The names are made here,
and each lives as long as the node that it computes or a function made from it.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ..codegen import lambdify
from ..core.naming import in_python
from ..core.node import Tensor, rebuild
from ..core.sizes import ONE
from ..ops.index import expand_dims
from ..ops.leaves import variable
from ..ops.slicing import getitem

_functions: weakref.WeakValueDictionary[str, Compiled] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


def __getattr__(name: str) -> Callable[..., Any]:
    try:
        return _functions[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no name {name!r}") from None


class Compiled:
    """The NumPy function of a tensor as SymPy shapes it: vectors are columns, and leading axes are loops.

    It is called with an array for each variable, in order, then with the ``scalars`` that no shape gives.
    """

    def __init__(self, x: Tensor, variables: tuple[Tensor, ...]) -> None:
        columns = {v: _column(v) for v in variables if v.rank == 1}
        body = rebuild([x], {v: getitem(column, (slice(None), 0)) for v, column in columns.items()})[0]
        result = expand_dims(body, -1) if x.rank == 1 else body
        self._function = lambdify([columns.get(v, v) for v in variables], result)
        self._ranks = tuple(v.rank for v in variables)
        self.scalars = tuple(self._function.takes.keywords)
        self.name = f"_symattn_{next(_numbers)}"
        _functions[self.name] = self

    def __call__(self, *given: Any) -> Any:
        arrays = [_as_column(a) if rank == 1 else a for a, rank in zip(given, self._ranks, strict=False)]
        named = {in_python(s.name): value for s, value in zip(self.scalars, given[len(arrays) :], strict=True)}
        return self._function(*arrays, **named)


def _column(v: Tensor) -> Tensor:
    return variable(name=v.params["name"], shape=(*v.shape, ONE), hypotheses=v.params["hypotheses"])


def _as_column(array: Any) -> Any:
    """A plain vector as the column that it can only mean."""
    return np.asarray(array)[:, None] if np.ndim(array) == 1 else array
