"""Calls of the public functions with wrong values: types, None, NaN, huge integers, objects; seeded and counted.

Only SymattnError may come out, or a TypeError of Python's own for a wrong signature.
"""

from __future__ import annotations

import inspect
import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import sympy

import symattn as sa

T, d, n = sa.sizes("T d n")
X, Y, x, a = sa.tensor("X", T, d), sa.tensor("Y", T, d), sa.tensor("x", n), sa.tensor("a")
M, I = sa.tensor("M", T, d, binary=True), sa.tensor("I", T, integer=True)
u = sympy.Symbol("u", real=True)


class Hostile:
    """An object that refuses whatever is asked of it."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("no array")


WRONG: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, -(10**30), 10**400, 10**5000, 0.5, -0.0, float("nan"), float("inf"),
    -float("inf"), 1e300, 5e-324, 1j, complex("nan"), "", "x", "T d", "Q @ K", "é", "1x", "\n", b"x", Fraction(1,
    3), Decimal("0.5"),
    Decimal("NaN"), (), [], {}, set(), (None,), [None], {None: None}, (1, 2), [0], range(3), iter([]), slice(None),
    slice(0, 2), ..., NotImplemented, object(), object, int, len, lambda: None, lambda *i: None, lambda *i: 1 / 0,
    Hostile(), Hostile, np.nan, np.float32(1), np.int8(3), np.array(1.0), np.ones(2), np.ones((2, 3)), np.ones(0),
    np.array([None]), np.array("s"), np.ma.array([1, 2], mask=[0, 1]), np.datetime64("2020"), np.bool_(True),
    sympy.Integer(2), sympy.Rational(1, 2), sympy.pi, sympy.I, sympy.oo, -sympy.oo, sympy.nan, sympy.zoo, sympy.S.true,
    sympy.Symbol("d"), sympy.Symbol("q"), sympy.Symbol("T", integer=True, positive=True), u, u + 1, u > 0, T, d, T + 1,
    T - d, T / d, -T, sympy.Lambda(u, u**2), sympy.Function("g"), sympy.Function("g")(u), sympy.Matrix([[1, 2]]),
    sympy.MatrixSymbol("A", T, d), sympy.MatrixSymbol("A", 2, 2), sympy.Array([1, 2]), sympy.Tuple(1, 2),
    sympy.IndexedBase("B")[0], sympy.Interval(0, 1), sympy.Eq(T, d), sympy.Dummy("k"), sympy.Wild("w"),
    sympy.EmptySet, sympy.Poly(u, u), sympy.Sum(u, (u, 0, 3)), sympy.Derivative(sympy.Function("g")(u), u),
    X, Y, x, a, M, I, X @ Y.T, sa.let("P", sa.softmax(X)), sa.eye(d), sa.zeros(T, d), 2 * a, sa.iid(), sa.eq(X, Y),
    sa.gradient(sa.sum(X * Y), [X]), {X: sa.iid()}, {X: Y}, [X], [X, Y], (X, None), sa, sa.exp,
]  # fmt: skip
LIKELY: list[Any] = [X, Y, x, a, M, I, 1, -1, 0, T, d, u, [X], {X: sa.iid()}, "y"]


def public() -> dict[str, Callable[..., Any]]:
    """The functions of ``sa`` and of ``sa.attention``, by name."""
    found = {f"sa.{name}": getattr(sa, name) for name in sa.__all__}
    found |= {f"sa.attention.{name}": getattr(sa.attention, name) for name in sa.attention.__all__}
    return {name: f for name, f in found.items() if callable(f) and not isinstance(f, type)}


def arguments(f: Callable[..., Any], rng: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """Values for a call that fits the signature; half of them are of a kind that is often right."""

    def value() -> Any:
        return rng.choice(LIKELY if rng.random() < 0.5 else WRONG)

    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for p in inspect.signature(f).parameters.values():
        needed = p.default is p.empty
        if p.kind is p.VAR_POSITIONAL:
            positional += [value() for _ in range(rng.randrange(3))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and needed:
            positional.append(value())
        elif p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD) and (needed or rng.random() < 0.3):
            keywords[p.name] = value()
    return positional, keywords


def run(calls: int, seed: int) -> tuple[Counter[str], dict[str, str]]:
    """How the calls ended, and for each function and kind of raw exception one call that showed it."""
    rng, ends, raw = random.Random(seed), Counter[str](), {}
    functions = public()
    names = sorted(functions)
    for number in range(calls):
        name = names[number % len(names)]
        positional, keywords = arguments(functions[name], rng)
        try:
            functions[name](*positional, **keywords)
            ends["answered"] += 1
        except sa.SymattnError:
            ends["refused"] += 1
        except Exception as problem:
            ends["raw"] += 1
            shown = [type(v).__name__ for v in positional]
            raw.setdefault(f"{name}: {type(problem).__name__}", f"call {number} of seed {seed}, {shown}: {problem}")
    return ends, raw
