"""Inequalities: the bounded family is proved, false ones never; a fuzz evaluates what was proved."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.codegen.reference import values
from symattn.proof.bounds import bound_proof
from symattn.proof.budget import Budget, OutOfBudget
from symattn.proof.claims import Claim, eq, le, lt

T, S, d, e, n = sa.sizes("T S d e n")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
Z, M = sa.tensor("Z", T, S), sa.tensor("M", T, S, binary=True)
ZT, VT = sa.tensor("Z", T, T), sa.tensor("V", T, e, positive=True)
W = sa.tensor("W", T, S, positive=True)
x, y, z = sa.tensor("x", n), sa.tensor("y", n), sa.tensor("z", n)
P, PM, p = sa.softmax(Z), sa.softmax(Z, where=M), sa.softmax(z)
CAUSAL = sa.where(sa.from_index((T, T), lambda i, j: j <= i), 0, -sympy.oo)
PC = sa.softmax(ZT + CAUSAL)
QUARTER = sympy.Rational(1, 4)
J = sa.jacobian(p, z)
TOP = sa.max(Z, axis=-1, keepdims=True)
Case = tuple[Claim, list[Claim]]

TRUE: dict[str, Callable[[], Claim | Case]] = {
    "softmax <= 1": lambda: le(P, 1),
    "softmax > 0": lambda: lt(0, P),
    "masked softmax >= 0": lambda: le(0, PM),
    "masked softmax <= 1": lambda: le(PM, 1),
    "softmax < 1 of two entries or more": lambda: lt(sa.softmax(sa.tensor("Z", T, S + 1)), 1),
    "softmax of one entry": lambda: le(1, sa.softmax(sa.tensor("Z", T, 1))),
    "row sum <= 1": lambda: le(sa.sum(P, -1), 1),
    "row sum >= 1": lambda: le(1, sa.sum(P, -1)),
    "masked row sum <= 1": lambda: le(sa.sum(PM, -1), 1),
    "sum of all": lambda: le(sa.sum(P), T),
    "running sum": lambda: le(sa.cumsum(P), 1),
    "mean of values": lambda: (le(P @ V, 3), [le(V, 3)]),
    "mean of values, strictly": lambda: (lt(P @ V, 3), [lt(V, 3)]),
    "mean of values, from below": lambda: (le(-2, P @ V), [le(-2, V)]),
    "masked mean of values": lambda: (le(PM @ V, 3), [le(V, 3)]),
    "causal mean of values": lambda: (le(PC @ VT, 3), [le(VT, 3)]),
    "causal mean of positive values": lambda: le(0, PC @ VT),
    "mean by einsum": lambda: (le(sa.einsum("ts,se->te", P, V), 3), [le(V, 3)]),
    "mean by a transpose": lambda: (le(sa.einsum("st,se->te", P.T, V), 3), [le(V, 3)]),
    "product of weights": lambda: le(P @ sa.softmax(sa.tensor("Y", S, e)), 1),
    "mean of exponentials": lambda: lt(0, P @ sa.exp(V)),
    "multiple of a size": lambda: (le(P @ V, S), [le(V, S)]),
    "exp": lambda: lt(0, sa.exp(x)),
    "square": lambda: le(0, x * x),
    "square as a power": lambda: le(0, x**2),
    "sum of squares": lambda: le(0, sa.sum(x * x)),
    "square of a difference": lambda: le(0, (x - y) * (x - y)),
    "two products": lambda: le(2 * x * y, x * x + y * y),
    "variance": lambda: le(0, sa.mean((x - sa.mean(x)) ** 2)),
    "sigmoid < 1": lambda: lt(sa.sigmoid(x), 1),
    "sigmoid > 0": lambda: lt(0, sa.sigmoid(x)),
    "tanh < 1": lambda: lt(sa.tanh(x), 1),
    "tanh > -1": lambda: lt(-1, sa.tanh(x)),
    "erf": lambda: lt(sa.erf(x), 1),
    "cos": lambda: le(sa.cos(x), 1),
    "relu": lambda: le(0, sa.relu(x)),
    "relu >= x": lambda: le(x, sa.relu(x)),
    "abs": lambda: le(0, sa.abs(x)),
    "abs >= x": lambda: le(x, sa.abs(x)),
    "softplus > 0": lambda: lt(0, sa.softplus(x)),
    "softplus > x": lambda: lt(x, sa.softplus(x)),
    "exp >= 1 + x": lambda: le(1 + x, sa.exp(x)),
    "log <= x - 1": lambda: le(sa.log(x), x - 1),
    "maximum": lambda: le(x, sa.maximum(x, y)),
    "minimum": lambda: le(sa.minimum(x, y), y),
    "max": lambda: le(Z - TOP, 0),
    "max, broadcast": lambda: le(Z, sa.max(Z, -1)[:, None] * sa.ones(T, S)),
    "exp of logits below their maximum": lambda: le(sa.exp(Z - TOP), 1),
    "min <= mean": lambda: le(sa.min(Z, -1), sa.mean(Z, -1)),
    "mean <= max": lambda: le(sa.mean(Z, -1), sa.max(Z, -1)),
    "logsumexp >= max": lambda: le(sa.max(Z, -1), sa.logsumexp(Z)),
    "logsumexp <= max + log n": lambda: le(sa.logsumexp(Z), sa.max(Z, -1) + sympy.log(S)),
    "logsumexp >= logits": lambda: le(Z - sa.logsumexp(Z, keepdims=True), 0),
    "logsumexp >= mean + log n": lambda: le(sa.mean(Z, -1) + sympy.log(S), sa.logsumexp(Z)),
    "log of weights": lambda: le(sa.log(P), 0),
    "entropy": lambda: le(0, -sa.sum(p * sa.log(p))),
    "p(1 - p) >= 0": lambda: le(0, p * (1 - p)),
    "p(1 - p) <= 1/4": lambda: le(p * (1 - p), QUARTER),
    "p^2 <= p": lambda: le(p * p, p),
    "softmax Jacobian <= 1/4": lambda: le(J, QUARTER),
    "softmax Jacobian >= -1/4": lambda: le(-QUARTER, J),
    "|softmax Jacobian| <= 1/4": lambda: le(sa.abs(J), QUARTER),
    "p q <= p": lambda: le(p * sa.sigmoid(x), p),
    "positive product": lambda: lt(0, W @ W.T),
    "sizes": lambda: le(1, sa.from_index((n,), lambda i: n)),
    "an index": lambda: le(0, sa.from_index((n,), lambda i: i * n)),
    "additive mask": lambda: le(CAUSAL, 0),
    "masked exponential": lambda: le(0, sa.exp(ZT + CAUSAL)),
    "given": lambda: (le(x, y), [le(x, y)]),
    "given, strictly": lambda: (lt(x + 1, y + 1), [lt(x, y)]),
    "given, transposed": lambda: (le(Z.T, (2 * W).T - W.T), [le(Z, W)]),
    "given equality": lambda: (le(x, y), [eq(x, y)]),
    "given of an expression": lambda: (le(0, sa.sqrt(Q @ K.T)), [le(0, Q @ K.T)]),
    "quotient": lambda: le(0, x * x / sa.sum(x * x)),
    "rsqrt": lambda: le(sa.rsqrt(sa.mean(x * x) + 1), 1),
    "sparsemax": lambda: le(sa.sparsemax(Z), 1),
    "sparsemax row": lambda: le(sa.sum(sa.sparsemax(Z), -1), 1),
    "permutation": lambda: le(sa.tensor("Pi", n, n, permutation=True), 1),
    "binary": lambda: le(0, 1 - M),
    "triangle of weights": lambda: le(sa.tril(P), 1),
}
FALSE: dict[str, Callable[[], Claim | Case]] = {
    "softmax < 1": lambda: lt(P, 1),
    "masked softmax > 0": lambda: lt(0, PM),
    "softmax of an additive mask > 0": lambda: lt(0, PC),
    "softmax over a row maximum that may be -oo": lambda: lt(0, sa.softmax(sa.max(ZT + CAUSAL, axis=0))),
    "masked row sum >= 1": lambda: le(1, sa.sum(PM, -1)),
    "masked mean of negative values": lambda: (le(PM @ V, -1), [le(V, -1)]),
    "values without a bound": lambda: le(P @ V, 3),
    "bound of another tensor": lambda: (le(P @ V, 3), [le(sa.tensor("Y", S, e), 3)]),
    "bound from the other side": lambda: (le(P @ V, 3), [le(3, V)]),
    "column sum": lambda: le(sa.sum(P, 0), 1),
    "weights on the wrong axis": lambda: (le(sa.softmax(Z, axis=0) @ V, 3), [le(V, 3)]),
    "weights used twice": lambda: (le(P @ V + P @ V, 3), [le(V, 3)]),
    "diagonal of weights": lambda: le(sa.trace(sa.softmax(ZT)), 1),
    "any number": lambda: le(x, 0),
    "relu > 0": lambda: lt(0, sa.relu(x)),
    "square > 0": lambda: lt(0, x * x),
    "product": lambda: le(0, x * y),
    "cube": lambda: le(0, x**3),
    "max, strictly": lambda: lt(Z - TOP, 0),
    "max over the other axis": lambda: le(ZT - sa.max(ZT, -1)[None, :], 0),
    "two maxima": lambda: le(sa.max(ZT, 0), sa.max(ZT, -1)),
    "logsumexp > max": lambda: lt(sa.max(Z, -1), sa.logsumexp(Z)),
    "logsumexp <= max": lambda: le(sa.logsumexp(Z), sa.max(Z, -1)),
    "logsumexp with another size": lambda: le(sa.logsumexp(Z), sa.max(Z, -1) + sympy.log(T)),
    "p <= p^2": lambda: le(p, p * p),
    "p(1 - p) < 1/4": lambda: lt(p * (1 - p), QUARTER),
    "p(1 - p) <= 1/5": lambda: le(p * (1 - p), sympy.Rational(1, 5)),
    "x(1 - y) <= 1/4": lambda: le(x * (1 - y), QUARTER),
    "Jacobian >= 0": lambda: le(0, J),
    "reciprocal": lambda: le(0, 1 / x),
    "exp >= 1": lambda: le(1, sa.exp(x)),
    "exp > 1 + x": lambda: lt(1 + x, sa.exp(x)),
    "masked exponential > 0": lambda: lt(0, sa.exp(ZT + CAUSAL)),
    "two sizes": lambda: le(sa.from_index((n,), lambda i: T), sa.from_index((n,), lambda i: S)),
    "size >= 2": lambda: le(2, sa.from_index((n,), lambda i: n)),
    "an index > 0": lambda: lt(0, sa.from_index((n,), lambda i: i * n)),
    "a scalar": lambda: le(0, sa.from_index((n,), lambda i: sympy.Symbol("tau", real=True))),
    "given, turned round": lambda: (le(y, x), [le(x, y)]),
    "given, of a transpose": lambda: (le(ZT, sa.tensor("Y", T, T)), [le(ZT, sa.tensor("Y", T, T).T)]),
    "given, not strict": lambda: (lt(x, y), [le(x, y)]),
    "sigmoid of the sign": lambda: le(sa.sigmoid(x), sympy.Rational(1, 2)),
    "unknown function": lambda: le(0, sa.unknown("phi", x)),
    "inverse": lambda: le(0, sa.inv(ZT)),
    "triangle > 0": lambda: lt(0, sa.tril(P)),
    "shifted weights > 0": lambda: lt(0, sa.shift(P, 1)),
    "equality": lambda: eq(x, x),
}


def proof(case: Claim | Case) -> Any:
    claim, given = case if isinstance(case, tuple) else (case, [])
    return bound_proof(claim, given, Budget(60))


@pytest.mark.parametrize("name", TRUE)
def test_true_inequalities_are_proved(name: str) -> None:
    found = proof(TRUE[name]())
    assert found is not None
    assert found.check()
    assert found.text().endswith(str(found.claim))
    assert found.claim.latex() in found.latex()


@pytest.mark.parametrize("name", FALSE)
def test_false_inequalities_are_not_proved(name: str) -> None:
    assert proof(FALSE[name]()) is None


def test_a_proof_says_why_and_under_which_condition() -> None:
    assert proof(TRUE["mean of values"]()).text().splitlines() == [
        "0 < softmax(Z) <= 1: a softmax entry is one of the positive terms of a sum, over that sum",
        "V <= 3: given",
        "softmax(Z) @ V <= 3: each term of the sum, or a mean with weights that sum to 1",
        "so 0 <= right - left: softmax(Z) @ V <= broadcast_to(3, (T, e))",
    ]
    assert proof(TRUE["quotient"]()).conditions == ("sum(x * x) != 0",)
    assert proof(TRUE["softmax > 0"]()).conditions == ()


def test_a_proof_with_other_steps_fails_its_check() -> None:
    found = proof(TRUE["softmax <= 1"]())
    assert not type(found)(found.claim, (), (), found.conclusion, ()).check()


def test_time_is_limited_and_depth_is_not() -> None:
    deep = x
    for _ in range(3000):
        deep = sa.tanh(deep) * x
    with pytest.raises(OutOfBudget):
        bound_proof(le(deep, 1), [], Budget(0.05))
    shallow = x
    for _ in range(300):
        shallow = sa.sigmoid(shallow) / 2
    assert bound_proof(lt(0, shallow), [], Budget(60)) is not None


# --- fuzz: what is proved holds at points, at kinks and at sizes of one too ---

X, C = sa.tensor("X", T, T), sa.tensor("C", T, T, positive=True)
B = sa.tensor("B", T, T, binary=True)
LEAVES = (X, C, B)


def _random(rng: random.Random) -> sa.Tensor:
    def some() -> sa.Tensor:
        return rng.choice([*made, *LEAVES])

    made: list[sa.Tensor] = [sa.softmax(X)]
    ways: list[Callable[[], sa.Tensor]] = [
        lambda: some() + some(),
        lambda: some() - some(),
        lambda: some() * some(),
        lambda: 1 - some(),
        lambda: some() * rng.choice([-2, -1, Fraction(1, 2), 3]),
        lambda: sa.exp(some() / 4),
        lambda: sa.relu(some()),
        lambda: sa.abs(some()),
        lambda: sa.tanh(some()),
        lambda: sa.sigmoid(some()),
        lambda: sa.softmax(some(), axis=rng.choice([0, 1])),
        lambda: sa.softmax(some(), where=B),
        lambda: sa.softmax(some() + CAUSAL),
        lambda: some() @ some(),
        lambda: some() @ some().T,
        lambda: some() - sa.max(some(), axis=rng.choice([0, 1]), keepdims=True),
        lambda: some() * 0 + sa.logsumexp(some(), keepdims=True) - sa.max(some(), axis=-1, keepdims=True),
        lambda: sa.ones(T, T) * sa.mean(some(), axis=rng.choice([0, 1]), keepdims=True),
        lambda: sa.ones(T, T) * sa.sum(some(), axis=-1)[:, None],
        lambda: sa.cumsum(some(), axis=rng.choice([0, 1])),
        lambda: sa.maximum(some(), some()),
        lambda: sa.minimum(some(), rng.choice([some(), sa.ones(T, T)])),
        lambda: sa.where(some() > 0, some(), some()),
        lambda: sa.tril(some()),
        lambda: sa.floor(some()),
        lambda: some() ** 2,
        lambda: sa.exp(some() + CAUSAL),
        lambda: sa.log(sa.softplus(some()) + 1),
        lambda: some() / (1 + some() ** 2),
        lambda: some().T,
    ]
    for _ in range(rng.randint(1, 5)):
        made.append(rng.choice(ways)())
    return made[-1]


def _points(rng: np.random.Generator) -> Any:
    for size in (1, 2, 3):
        for kind in range(3):
            real = rng.normal(size=(size, size)) if kind else np.zeros((size, size))
            mask = rng.random((size, size)) < (0.5 if kind < 2 else 0)
            yield size, {X: real.round(kind), C: rng.uniform(0.1, 2, (size, size)), B: mask.astype(int)}


@pytest.mark.parametrize("seed", range(40))
def test_what_is_proved_holds_at_points(seed: int, rng: np.random.Generator) -> None:
    t = _random(random.Random(seed))
    proved = []
    for bound in (-2, -1, -QUARTER, 0, QUARTER, 1, 2, T, -T):
        limit = sa.ones(T, T) * bound
        for relation, claim in ((np.less_equal, le(t, limit)), (np.less, lt(t, limit))):
            if bound_proof(claim, [], Budget(60)):
                proved.append((relation, bound, 1))
        for relation, claim in ((np.less_equal, le(limit, t)), (np.less, lt(limit, t))):
            if bound_proof(claim, [], Budget(60)):
                proved.append((relation, bound, -1))
    for size, arrays in _points(rng) if proved else ():
        with np.errstate(all="ignore"):
            found = values([t], arrays, {T: size})[t].astype(float)
        found = found[~np.isnan(found)]
        for relation, bound, sign in proved:
            edge = float(sympy.sympify(bound).subs(T, size))
            room = 1e-12 if relation is np.less_equal else -1e-15
            assert (sign * found <= sign * edge + room).all(), (str(t), relation, bound, sign, found)
