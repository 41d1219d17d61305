"""Values by the entry formulas alone: slow, and independent of the NumPy that it is held against."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy
from sympy.core.relational import Relational

from ..core.node import Tensor
from ..errors import NoRuleError
from ..ops.leaves import computed, variable
from ..scalars.formulas import Choice, Held, InverseEntry, Max, Min
from ..scalars.functions import FUNCTIONS, ScalarFunction

Env = dict[Any, Any]
Term = Callable[[Env], Any]

_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    sympy.atan2: np.arctan2, sympy.Max: max, sympy.Min: min, sympy.Mod: lambda a, b: a - b * np.floor(a / b),
    sympy.KroneckerDelta: lambda a, b: int(a == b), Held: np.real,  # no complex step passes
}  # fmt: skip
_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def _evaluated(function: ScalarFunction) -> Callable[[Any], Any]:
    """A scalar function of numbers; where NumPy lacks it, no complex step passes."""
    if function.value is not None:
        return function.value
    name = function.numpy or function.name
    if not hasattr(np, name):
        return _of_reals(getattr(math, function.math or function.name))

    def of(x: Any) -> Any:
        with np.errstate(divide="ignore"):  # log(0) is -inf: of the sum of an empty row, for example
            return getattr(np, name)(x)

    return of


def _of_reals(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def of(x: Any) -> Any:
        if isinstance(x, complex):
            raise TypeError(f"{call.__name__} of a complex number")
        return call(x)

    return of


def values(
    roots: Sequence[Tensor],
    arrays: Mapping[Tensor, Any],
    symbols: Mapping[sympy.Symbol, Any],
    known: Mapping[Tensor, np.ndarray] = MappingProxyType({}),
) -> dict[Tensor, np.ndarray]:
    """The array of every node below the roots, each entry from its formula and the arrays of its inputs.

    What is ``known`` of them is not worked out again.
    """
    found = dict(known)
    for node in computed(roots):
        if node in found:
            continue
        found[node] = np.asarray(arrays[node]) if node.op is variable else _value(node, found, symbols)
    return found


def _value(node: Tensor, found: Mapping[Tensor, np.ndarray], symbols: Mapping[sympy.Symbol, Any]) -> np.ndarray:
    """One node's array: its entry formula, with its inputs read as arrays, at every index."""
    names = {f"input{k}": found[x] for k, x in enumerate(node.inputs) if x in found}

    def read(k: int, index: tuple[Any, ...]) -> sympy.Expr:
        return sympy.Indexed(f"input{k}", *index) if index else sympy.Symbol(f"input{k}", real=True)

    index = tuple(sympy.Dummy(f"i{k}", integer=True, nonnegative=True) for k in range(node.rank))
    term = _compile(node.op.entry(read, index, node), names)
    shape = tuple(int(size.subs(symbols)) for size in node.shape)
    env: Env = dict(symbols)
    entries = []
    for place in itertools.product(*map(range, shape)):
        env.update(zip(index, place, strict=True))
        entries.append(term(env))
    return np.array(entries).reshape(shape)


def _compile(e: Any, arrays: Mapping[str, np.ndarray]) -> Term:
    """A SymPy scalar as a Python closure of an environment of symbols."""
    if e.is_Number or e.is_NumberSymbol or e == -sympy.oo:
        number = float(e)
        exact = int(e) if e.is_Integer else number
        return lambda env: exact
    if isinstance(e, sympy.Indexed):
        array, at = arrays[str(e.base)], [_compile(i, arrays) for i in e.indices]
        return lambda env: array[tuple(_whole(i(env)) for i in at)]
    if e.is_Symbol:
        if e.name in arrays:
            return lambda env: arrays[e.name][()]
        return lambda env: env[e]
    if isinstance(e, (sympy.Sum, Max, Min)):
        return _compile_fold(e, arrays)
    if isinstance(e, InverseEntry):
        return _compile_inverse(e, arrays)
    if isinstance(e, Choice):
        condition, a, b = (_compile(part, arrays) for part in e.args)
        return lambda env: a(env) if condition(env) else b(env)
    parts = [_compile(a, arrays) for a in e.args]
    return _combined(e, parts)


def _combined(e: Any, parts: Sequence[Term]) -> Term:
    if e in (sympy.true, sympy.false):
        return lambda env: e == sympy.true
    if e.is_Add:
        return lambda env: sum(p(env) for p in parts)
    if e.is_Mul:
        return lambda env: math.prod(p(env) for p in parts)
    if e.is_Pow:
        base, exponent = parts
        return lambda env: _power(base(env), exponent(env))
    if isinstance(e, Relational):
        a, b = parts
        if e.rel_op in _ORDER:  # of real parts, as a complex step has it
            order = _ORDER[e.rel_op]
            return lambda env: order(a(env).real, b(env).real)
        return lambda env: (a(env) == b(env)) == isinstance(e, sympy.Eq)
    if isinstance(e, sympy.And):
        return lambda env: all(p(env) for p in parts)
    if isinstance(e, sympy.Or):
        return lambda env: any(p(env) for p in parts)
    if isinstance(e, sympy.Not):
        return lambda env: not parts[0](env)
    known = FUNCTIONS.get(type(e))
    function = _FUNCTIONS.get(type(e)) if known is None else _evaluated(known)
    if function is None:
        raise NoRuleError(f"no value is known for {type(e).__name__} in {e}")
    return lambda env: function(*(p(env) for p in parts))


def _power(base: Any, exponent: Any) -> Any:
    return np.float64(base) ** exponent if isinstance(base, (int, np.integer)) else base**exponent


def _whole(value: Any) -> int:
    if value != int(value):
        raise ValueError(f"the entry formula reads at the index {value}")
    if value < 0:
        raise IndexError(f"the entry formula reads at the index {value}")
    return int(value)


def _compile_fold(e: Any, arrays: Mapping[str, np.ndarray]) -> Term:
    term = _compile(e.function, arrays)
    limits = [(k, _compile(low, arrays), _compile(high, arrays)) for k, low, high in e.limits]
    fold: Any = sum if isinstance(e, sympy.Sum) else max if isinstance(e, Max) else min

    def terms(env: Env, depth: int) -> Iterator[Any]:
        """The terms, with the last limit outermost: the bounds of the others may hold its index."""
        if not depth:
            yield term(env)
            return
        k, low, high = limits[depth - 1]
        for at in range(int(low(env)), int(high(env)) + 1):
            env[k] = at
            yield from terms(env, depth - 1)

    return lambda env: fold(list(terms(dict(env), len(limits))))


def _compile_inverse(e: Any, arrays: Mapping[str, np.ndarray]) -> Term:
    term, row, column = (_compile(part, arrays) for part in (e.function, *e.places))
    (k, _, last), (m, _, _) = e.limits
    size = _compile(last, arrays)

    def entry(env: Env) -> Any:
        every = range(int(size(env)) + 1)
        matrix = [[term({**env, k: i, m: j}) for j in every] for i in every]
        return _solution(matrix, [int(i == column(env)) for i in every])[int(row(env))]

    return entry


def _solution(matrix: list[list[Any]], right: list[Any]) -> list[Any]:
    """Linear equations by Gauss and Jordan, with the largest entry of each column as its pivot."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for k in range(len(rows)):
        best = max(range(k, len(rows)), key=lambda i: abs(rows[i][k]))
        rows[k], rows[best] = rows[best], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(len(rows)):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]
