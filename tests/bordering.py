"""Names, examples and values that the tests of the border with SymPy share."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from sympy.tensor.array.expressions import ArraySymbol

import symattn as sa
from symattn.scalars.formulas import Held

from .ops.test_registry import EXAMPLES

T, S, d, e, n, m = sa.sizes("T S d e n m")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
x, w, c = sa.tensor("x", n), sa.tensor("w", n), sa.tensor("c")
Qs, Ks, Vs = (sympy.MatrixSymbol(t.name, *t.shape) for t in (Q, K, V))
A, B, C = sympy.MatrixSymbol("A", n, n), sympy.MatrixSymbol("B", n, m), sympy.MatrixSymbol("C", m, n)
column, row = sympy.MatrixSymbol("x", n, 1), sympy.MatrixSymbol("y", 1, n)
O = sa.softmax(Q @ K.T / sympy.sqrt(d)) @ V
u = sympy.Symbol("u", real=True)
r, t = sympy.symbols("r t")
SLOPE = sympy.Lambda((r, t), r - 2 * t)

VALUED = [
    pytest.param(y, id=f"{name}-{k}")
    for name, examples in EXAMPLES.items()
    for k, y in enumerate(examples)
    if name != "unknown"
]
MATRICES = [case for case in VALUED if case.values[0].rank <= 2]


def symbol(t):
    """What stands for a named tensor in SymPy."""
    if not t.rank:
        return sympy.Symbol(t.name, real=True)
    return sympy.MatrixSymbol(t.name, *(*t.shape, 1)[:2]) if t.rank < 3 else ArraySymbol(t.name, t.shape)


def shaped(t, array):
    return array[..., None] if t.rank == 1 else array


def elements(t, point):
    """The values of a tensor's entries as SymPy writes them, and as symattn does."""
    array, own = point.arrays[t], symbol(t.subs(point.sizes))
    kind = sympy.Integer if t.kind != "real" else lambda v: sympy.Float(v, 30)
    if not t.rank:
        return {own: kind(array[()].item())}
    found = {}
    base = sympy.IndexedBase(sympy.Symbol(t.name, real=True))
    for place in np.ndindex(array.shape):
        found[base[place]] = kind(array[place].item())
        found[own[(*place, 0)[:2]] if t.rank < 3 else own[place]] = found[base[place]]
    return found


def number(formula, known):
    formula = sympy.sympify(formula).replace(Held, lambda held: held)
    for _ in range(2):  # an index may be an entry itself
        formula = formula.xreplace(known)
    return float(formula.doit())
