"""What calls of the public functions are given: values that are often right, and values that hardly ever are."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import sympy

import symattn as sa

T, S, d, e, n = sa.sizes("T S d e n")
X, Y, x, a = sa.tensor("X", T, d), sa.tensor("Y", T, d), sa.tensor("x", n), sa.tensor("a")
M, I, W = sa.tensor("M", T, d, binary=True), sa.tensor("I", T, integer=True), sa.tensor("W", d, d)
Q, K, V, B = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e), sa.tensor("B", T, S, binary=True)
P = sa.let("P", sa.softmax(X))
u = sympy.Symbol("u", real=True)


class Own(Exception):
    """What functions and objects of the caller raise, which may pass through."""


class Hostile:
    """An object that has no repr, no array and no truth value, and equals nothing."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise Own("no array")

    def __bool__(self) -> bool:
        raise Own("no truth value")

    def __eq__(self, other: object) -> bool:
        raise Own("not to be compared")

    __hash__ = object.__hash__


def fails(*values: Any) -> Any:
    raise Own("a function of the caller")


def deep(levels: int) -> Any:
    """A list in a list in a list."""
    value: Any = [1]
    for _ in range(levels):
        value = [value]
    return value


WRONG: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, -(10**30), 10**20, 10**400, 10**5000, 0.5, -0.0, float("nan"), float("inf"),
    -float("inf"), 1e300, 5e-324, 1j, complex("nan"), "", "x", "T d", "Q @ K", "\u00e9", "1x", "\n", "x" * 5000, b"x",
    bytearray(b"x"), Fraction(1, 3), Decimal("0.5"), Decimal("NaN"), (), [], {}, set(), (None,), [None], {None: None},
    (1, 2), [0], range(3), iter([]), (i for i in "ab"), slice(None), slice(0, 2), slice(None, None, u), ...,
    NotImplemented, object(), object, int, len, lambda: None, lambda *i: None, fails, Hostile(), Hostile, Own("x"),
    list(range(3000)), deep(90), {"x": {}}, frozenset({1}), memoryview(b"x"), sa.SymattnError, sa.OperandError("x"),
    np.nan, np.float32(1), np.float16("inf"), np.int8(3), np.uint64(2**64 - 1), np.array(1.0), np.ones(2),
    np.ones((2, 3)), np.ones(0), np.ones((2, 0)), np.ones(2, complex), np.array([None]), np.array("s"),
    np.array(["T", "d"]), np.ma.array([1, 2], mask=[0, 1]), np.datetime64("2020"), np.timedelta64(1, "s"),
    np.bool_(True), np.zeros(2, dtype=[("f", float)]), np.dtype(float), np.longdouble(1),
    sympy.Integer(2), sympy.Rational(1, 2), sympy.Float("0.1"), sympy.pi, sympy.I, sympy.oo, -sympy.oo, sympy.nan,
    sympy.zoo, sympy.S.true, sympy.false, sympy.Integer(10) ** 5000, sympy.Symbol("d"), sympy.Symbol("q"),
    sympy.Symbol("T", integer=True, positive=True), sympy.Symbol("z", complex=True),
    sympy.Symbol("c", commutative=False), sympy.Symbol("e", integer=True, negative=True),
    sympy.Symbol("w w"), sympy.Symbol(""), u, u + 1, u > 0, u**u,
    T, d, T + 1, T - d, T / d, -T, T**T, sympy.sqrt(T), sympy.Lambda(u, u**2), sympy.Lambda((u, d), u), sympy.exp,
    sympy.Function("g"), sympy.Function("g")(u), sympy.Matrix([[1, 2]]), sympy.ImmutableMatrix(2, 2, [u, 1, 0, T]),
    sympy.MatrixSymbol("A", T, d), sympy.MatrixSymbol("A", 2, 2), sympy.MatrixSymbol("X", T, d).T, sympy.Identity(T),
    sympy.ZeroMatrix(T, d), sympy.MatrixSymbol("A", T, d)[0, 0], sympy.Array([1, 2]), sympy.Tuple(1, 2),
    sympy.IndexedBase("B")[0], sympy.Idx("i"), sympy.Interval(0, 1), sympy.Eq(T, d), sympy.And(u > 0, T < d),
    sympy.Or(u > 0, T < d), sympy.Not(sympy.Eq(T, d)), sympy.Dummy("k"), sympy.Wild("w"), sympy.EmptySet,
    sympy.S.Reals, sympy.Poly(u, u), sympy.Sum(u, (u, 0, 3)), sympy.Integral(u, u), sympy.Limit(u, u, 0),
    sympy.Derivative(sympy.Function("g")(u), u), sympy.Piecewise((u, u > 0), (0, True)), sympy.S.Half * u,
    sympy.O(u), sympy.Basic(), sympy.Expr(), sympy.Symbol, sympy.symbols("p q"), sympy.UnevaluatedExpr(u),
    X, Y, x, a, M, I, W, Q, K, V, B, P, X @ Y.T, X[0], X[None], sa.eye(d), sa.zeros(T, d), sa.ones(1), 2 * a,
    sa.tensor("X", d), sa.tensor("X", 2, 3), sa.tensor("d"), sa.tensor("H", 2, T, d), sa.tensor("G", 1, 1, 1, 1, 1),
    sa.from_index((T, T), lambda i, j: sympy.Symbol("r") ** i), sa.attention.causal_mask(T),
    sa.iid(), sa.iid_pair(correlation=0), sa.sphere(), sa.normal(), sa.eq(X, Y), sa.le(X, Y), sa.independent(X, Y),
    sa.gradient(sa.sum(X * Y), [X]), {X: sa.iid()}, {X: Y}, {T: 2}, {d: -1}, {X: None}, {X: "x"}, [X], [X, Y],
    (X, None), {Y, X}, sa, sa.attention, sa.exp, sa.Tensor, sa.Derivation, sa.Derivation("A title"), sa.entries(X),
    sa.prove(X, X), sa.prove(X, Y, budget=1), sa.equivariance(sa.exp, X), sa.lambdify([X], sa.exp(X)),
]  # fmt: skip
LIKELY: list[Any] = [X, Y, x, a, M, I, W, Q, K, V, 1, -1, 0, 2, T, d, u, [X], {X: sa.iid()}, "y", True, None]

FUNCTIONS = (
    "f feature attention feed_forward norm fn function numpy activation when claimed kernel formula entry vjp jvp grad "
    "adapt step by"
).split()
LIKELY_BY_NAME: dict[str, list[Any]] = {
    name: values
    for names, values in [
        (" ".join(FUNCTIONS), [sa.exp, sa.softmax, lambda *x: 2 * x[0], lambda *x: x[0]]),
        ("entry formula", [lambda i, *x: x[0][i], lambda i, j: i - j, lambda i, j: i >= j]),
        ("axis source destination k", [0, 1, -1]),
        ("axes", [(0, 1), 1]),
        ("Q Q1 Q2 queries", [Q, X]),
        ("K K1 K2 keys", [K, X]),
        ("V values", [V, X]),
        ("T S size length width heads groups", [T, S, d, 2, 4]),
        ("shape dims", [(T, d), (2, 3), "T d -> T", "n -> n"]),
        ("sizes", [{T: 2, d: 3}, [{T: 2, d: 3}]]),
        ("claim left", [sa.eq(X, Y), sa.le(sa.softmax(X), 1), X, sa.independent(X, Y)]),
        ("given", [(), [sympy.Eq(T, S)], [sa.le(0, X)], [T < S]]),
        ("budget", [0.3]),
        ("law", [{X: sa.iid(), Y: sa.iid("rademacher")}, {x: "normal"}, {(X, Y): sa.iid_pair(correlation=u)}]),
        ("method", ["exact", "delta", "quadrature"]),
        ("name title", ["y", "W_q", "normal", "A title"]),
        ("names", [{X: "A"}, {P: "S"}]),
        ("style", ["matrix", "index"]),
        ("group", ["permutation", "orthogonal"]),
        ("subscripts", ["td,td->t", "ij->ji", "ij"]),
        ("index tokens", [I, 0]),
        ("mask where condition", [M, X > 0, B]),
        ("args arguments wrt variables", [[X, Y], X, [x, a]]),
        ("tangents replacement nodes", [{X: Y}, {d: 3}]),
        ("arrays", [np.ones((2, 3)), np.ones((3, 3))]),
    ]
    for name in names.split()
}
KEYWORDS = (  # of functions that take any, and some that none takes
    "mask mask_polarity empty scale softcap bias binary integer positive orthogonal u odd"
).split()


def of_the_caller(f: Any) -> Any:
    """A function of somebody else's as one of the caller's, whose errors may pass through."""
    ours = (getattr(f, "__module__", None) or "").startswith("symattn")
    return (lambda *values: f(*values)) if callable(f) and not ours else f


def value(rng: random.Random, name: str, wrong: float) -> Any:
    """A value for a parameter; with probability ``wrong`` any other one, at times inside a list, tuple or mapping."""
    drawn = _value(rng, name, wrong)
    return of_the_caller(drawn) if name in FUNCTIONS else drawn


def _value(rng: random.Random, name: str, wrong: float) -> Any:
    if rng.random() >= wrong:
        return rng.choice(LIKELY_BY_NAME.get(name, LIKELY))
    other = rng.choice(WRONG)
    inside = rng.random()
    if inside < 0.06:
        return [rng.choice(LIKELY), other]
    if inside < 0.09:
        return (other, other)
    if inside < 0.12:
        return {rng.choice((X, x, Y, d, "X")): other}
    return other
