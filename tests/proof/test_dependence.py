"""Dependence patterns: causality and its kin are proved, false ones never; a fuzz changes inputs and looks."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.core.budget import Budget, OutOfBudget
from symattn.proof.claims import independent
from symattn.proof.dependence.prove import dependence_proof

from ..shares import one_in

T, S, d, e, D, w, h, f = sa.sizes("T S d e D w h f")
X = sa.tensor("X", T, D)
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
KT, VT = sa.tensor("K", T, d), sa.tensor("V", T, e)
W_q, W_k, W_v = (sa.tensor(name, D, D) for name in ("W_q", "W_k", "W_v"))
A = sa.tensor("A", T, T)
CAUSAL = sa.from_index((T, T), lambda i, j: j <= i)
WINDOW = sa.from_index((T, T), lambda i, j: (j <= i) & (j > i - w))
BAND = sa.from_index((T, T), lambda i, j: sympy.Abs(i - j) < w)
FIRST = sa.from_index((T, S), lambda i, j: j <= i)
LAST = sa.from_index((T, S), lambda i, j: j <= i + S - T)


def later(out: Any, inp: Any) -> Any:
    return inp[0] > out[0]


def other_row(out: Any, inp: Any) -> Any:
    return sympy.Ne(inp[0], out[0])


def layer(x: sa.Tensor, mask: Any = None, bias: Any = 0) -> sa.Tensor:
    z = (x @ W_q) @ (x @ W_k).T / sympy.sqrt(D)
    return sa.let("O", x + sa.let("P", sa.softmax(z + bias, where=mask)) @ (x @ W_v))


def heads(x: sa.Tensor) -> sa.Tensor:
    return sa.moveaxis(sa.split_axis(x, -1, (h, f)), 1, 0)


def multi_head(x: sa.Tensor) -> sa.Tensor:
    weights = sa.tensor("W", h * f, h * f)
    q, k, v = heads(x @ weights), heads(x), heads(x)
    return sa.merge_axes(sa.moveaxis(sa.softmax(q @ k.mT, where=CAUSAL) @ v, 0, 1), (1, 2)) @ weights


def delta_rule() -> sa.Tensor:
    return sa.tril(Q @ KT.T) @ (sa.inv(sa.eye(T) + sa.tril(KT @ KT.T, -1)) @ VT)


XH = sa.tensor("X", T, h * f)
Z = sa.tensor("Z", T, S)
SYMMETRIC = sa.tensor("B", T, T, symmetric=True)
PIECEWISE = sa.from_index((T, T), lambda i, j: sympy.Piecewise((0, j <= i), (-sympy.oo, True)))

TRUE: dict[str, tuple[sa.Tensor, sa.Tensor, Callable[..., Any] | None]] = {
    "causal layer": (layer(X, CAUSAL), X, later),
    "two causal layers": (layer(layer(X, CAUSAL), CAUSAL), X, later),
    "causal, additive mask": (layer(X, bias=sa.where(CAUSAL, 0, -sympy.oo)), X, later),
    "causal, additive constant": (layer(X, bias=PIECEWISE), X, later),
    "causal, joined masks": (layer(X, CAUSAL & ~(~WINDOW | BAND)), X, later),
    "causal, choice of zeros": (sa.where(CAUSAL, X @ X.T, 0) @ X, X, later),
    "window, future": (layer(X, WINDOW), X, later),
    "window, past": (layer(X, WINDOW), X, lambda o, i: i[0] <= o[0] - w),
    "two windows, past": (layer(layer(X, WINDOW), WINDOW), X, lambda o, i: i[0] <= o[0] - 2 * w),
    "band": (layer(X, BAND), X, lambda o, i: sympy.Abs(i[0] - o[0]) >= w),
    "first alignment": (sa.softmax(Q @ K.T, where=FIRST) @ V, V, later),
    "last alignment": (sa.softmax(Q @ K.T, where=LAST) @ V, K, lambda o, i: i[0] > o[0] + S - T),
    "running sum": (sa.cumsum(X, axis=0), X, later),
    "running sum from the end": (sa.cumsum(X, axis=0, reverse=True), X, lambda o, i: i[0] < o[0]),
    "linear attention": (sa.tril(Q @ KT.T) @ VT, KT, later),
    "linear attention by sums": (
        sa.einsum("td,tde->te", Q, sa.cumsum(sa.einsum("td,te->tde", KT, VT), axis=0)), VT, later,
    ),
    "delta rule": (delta_rule(), KT, later),
    "triangular inverse": (sa.inv(sa.eye(T) + sa.tril(A, -1)) @ VT, A, lambda o, i: i[0] > o[0]),
    "upper triangular inverse": (sa.inv(sa.eye(T) + sa.triu(A, 1)) @ VT, VT, lambda o, i: i[0] < o[0]),
    "multi-head": (multi_head(multi_head(XH)), XH, later),
    "absent": (Q @ Q.T, K, None),
    "other rows of Q": (sa.softmax(Q @ K.T) @ V, Q, other_row),
    "other rows of logits": (sa.softmax(Z), Z, other_row),
    "other columns of V": (sa.softmax(Z) @ V, V, lambda o, i: sympy.Ne(i[1], o[1])),
    "shift": (sa.shift(X, -1, axis=0), X, lambda o, i: sympy.Ne(i[0], o[0] - 1)),
    "flip": (sa.flip(X, 0), X, lambda o, i: sympy.Ne(i[0] + o[0], T - 1)),
    "slice": (X[1:], X, lambda o, i: sympy.Eq(i[0], 0)),
    "concat": (sa.concat([X, X @ W_q], axis=0), X, lambda o, i: (o[0] < T) & sympy.Ne(i[0], o[0])),
    "diagonal": (sa.diag(sa.diag(A)), A, lambda o, i: sympy.Ne(i[0], i[1])),
    "repeat": (sa.repeat(X, 2, axis=0), X, lambda o, i: 2 * i[0] > o[0]),
    "layer norm": (X - sa.mean(X, axis=-1, keepdims=True), X, other_row),
    "max of a window": (sa.max(sa.tril(A), axis=-1), A, lambda o, i: i[1] > o[0]),
    "symmetric": (SYMMETRIC[0], SYMMETRIC, lambda o, i: (i[0] > 0) & (i[1] > 0)),
}  # fmt: skip
FALSE: dict[str, tuple[sa.Tensor, sa.Tensor, Callable[..., Any] | None]] = {
    "one too far": (layer(X, sa.from_index((T, T), lambda i, j: j <= i + 1)), X, later),
    "no mask": (layer(X), X, later),
    "anti-causal": (layer(X, sa.from_index((T, T), lambda i, j: j >= i)), X, later),
    "one layer without a mask": (layer(layer(X), CAUSAL), X, later),
    "mask is negated": (layer(X, ~CAUSAL), X, later),
    "additive mask is negated": (layer(X, bias=sa.where(CAUSAL, -sympy.oo, 0)), X, later),
    "finite additive mask": (layer(X, bias=sa.where(CAUSAL, 0, -100)), X, later),
    "two windows, one reach": (layer(layer(X, WINDOW), WINDOW), X, lambda o, i: i[0] <= o[0] - w),
    "window, one less": (layer(X, WINDOW), X, lambda o, i: i[0] <= o[0] - w + 1),
    "last alignment as first": (sa.softmax(Q @ K.T, where=LAST) @ V, V, later),
    "not at all": (sa.softmax(Q @ K.T) @ V, K, None),
    "running sum from the end": (sa.cumsum(X, axis=0, reverse=True), X, later),
    "inverse": (sa.inv(sa.eye(T) + A) @ VT, VT, later),
    "upper triangle": (sa.inv(sa.eye(T) + sa.triu(A, -1)) @ VT, VT, later),
    "diagonal included": (layer(X, CAUSAL), X, lambda o, i: i[0] >= o[0]),
    "softmax over the other axis": (sa.softmax(Z, axis=0), Z, other_row),
    "normaliser is not masked": (sa.exp(A) * sa.tril(sa.ones(T, T)) / sa.sum(sa.exp(A), axis=-1)[:, None], A,
                                 lambda o, i: i[1] > o[0]),
    "flip": (sa.flip(X, 0), X, later),
    "symmetric": (SYMMETRIC[0], SYMMETRIC, lambda o, i: i[0] > 0),
    "concat": (sa.concat([X, X @ W_q], axis=0), X, lambda o, i: sympy.Ne(i[0], o[0])),
    "repeat": (sa.repeat(X, 2, axis=0), X, lambda o, i: 2 * i[0] >= o[0]),
}  # fmt: skip


def proof(output: sa.Tensor, variable: sa.Tensor, when: Callable[..., Any] | None) -> Any:
    return dependence_proof(independent(output, variable, when), Budget(60))


@pytest.mark.parametrize("name", TRUE)
def test_true_patterns_are_proved(name: str) -> None:
    found = proof(*TRUE[name])
    assert found is not None
    assert found.check()
    assert str(found.claim) in found.text()
    assert "\\begin{itemize}" in found.latex()


@pytest.mark.parametrize("name", FALSE)
def test_false_patterns_are_not_proved(name: str) -> None:
    assert proof(*FALSE[name]) is None


def test_a_proof_says_what_each_named_tensor_reads() -> None:
    found = proof(*TRUE["two causal layers"])
    assert [step.tensor for step in found.steps] == ["P_1", "O_1", "P_2", "O_2"]
    second = "O_1[i, j] depends on X[k, l] only where i >= k: it reads P_1[i, :] and X[:, :]"
    assert found.text().splitlines()[1] == second


def test_a_link_says_what_is_read_where_and_what_is_0() -> None:
    lines = proof(*TRUE["causal layer"]).text().splitlines()
    assert lines[0] == (
        "P[i, j] depends on X[k, l] only where i >= j and i >= k, and is 0 unless i >= j: "
        "it reads X[m, :] where m <= i and X[i, :]"
    )
    assert proof(*TRUE["running sum from the end"]).text().splitlines()[0].endswith("it reads X[m, j] where i <= m")
    added = proof(*TRUE["causal, additive mask"]).text()  # a term -oo leaves nothing of the others
    assert "it reads X[m, :] where m <= i and X[i, :]" in added
    tex = proof(*TRUE["causal layer"]).latex()
    assert r"it reads $X_{m, :}$ where $m \le i$ and $X_{i, :}$" in tex


def test_a_proof_with_another_step_fails_its_check() -> None:
    one, other = proof(*TRUE["causal layer"]), proof(*TRUE["window, future"])
    assert not type(one)(one.claim, other.steps).check()


def test_time_is_limited() -> None:
    x = X
    for _ in range(40):
        x = layer(x, CAUSAL)
    with pytest.raises(OutOfBudget):
        dependence_proof(independent(x, X, later), Budget(0.2))


def test_depth_and_sharing() -> None:
    x = X
    for _ in range(500):
        x = sa.tanh(x + sa.cumsum(x, axis=0))
    assert proof(x, X, later) is not None


def test_many_cases_are_joined() -> None:
    x = X
    for _ in range(12):  # reads at the distances 0 to 12
        x = x + sa.shift(x, -1, axis=0)
    assert proof(x, X, later) is not None


def test_sums_of_floored_indices_stay_apart() -> None:
    # k // 2 in one sum is not k // 2 in another one, though both sums bind the same index
    twice = sa.repeat(sa.tensor("x", T), 2, axis=0)
    total = sa.sum(twice * twice) + sa.sum(twice)
    product = sa.einsum("i,j->", twice, twice)
    for y in (total, product, twice @ twice):
        assert proof(y, sa.tensor("x", T), lambda out, inp: sympy.Eq(inp[0], 1)) is None


# --- fuzz: what is proved stays when the entries that must not matter are changed ---

N, M = 4, 3
SIZES = {T: N, D: M, w: 2}
_CONDITIONS: list[Callable[..., Any]] = [
    later,
    lambda o, i: i[0] >= o[0],
    lambda o, i: i[0] < o[0],
    other_row,
    lambda o, i: i[0] > o[0] + 1,
    lambda o, i: i[0] <= o[0] - w,
    lambda o, i: sympy.Ne(i[1], o[1]),
    lambda o, i: sympy.Eq(i[0], 0),
    lambda o, i: sympy.Abs(i[0] - o[0]) > 1,
    lambda o, i: sympy.Eq(o[0], i[0]) | (i[0] > o[0] + 1),
]
_MASKS: list[Callable[[Any, Any], Any]] = [
    lambda i, j: j <= i,
    lambda i, j: j < i,
    lambda i, j: j >= i,
    lambda i, j: (j <= i) & (j > i - w),
    lambda i, j: sympy.Abs(i - j) <= 1,
    lambda i, j: sympy.Ne(i, j),
    lambda i, j: (j <= i + 1) | sympy.Eq(j, 0),
    lambda i, j: sympy.floor(i / 2) >= sympy.floor(j / 2),
    lambda i, j: sympy.Eq(sympy.Mod(i - j, 2), 0),
]


def _mask(rng: random.Random) -> sa.Tensor:
    mask = sa.from_index((T, T), rng.choice(_MASKS))
    other = sa.from_index((T, T), rng.choice(_MASKS))
    return rng.choice([mask, mask, ~mask, mask & other, mask | other])


def _weights(x: sa.Tensor, rng: random.Random) -> sa.Tensor:
    z, mask = x @ x.T / 4, _mask(rng)
    return rng.choice(
        [
            lambda: sa.softmax(z, where=mask),
            lambda: sa.softmax(z + sa.where(mask, 0, -sympy.oo)),
            lambda: sa.where(mask, z, 0),
            lambda: sa.tril(z, rng.choice([-1, 0, 1])),
            lambda: sa.triu(z, rng.choice([-1, 0, 1])),
            lambda: z * mask,
            lambda: sa.inv(5 * sa.eye(T) + sa.tril(z, -1)),
            lambda: sa.exp(z) * mask / sa.sum(sa.exp(z) * mask + 1, axis=-1, keepdims=True),
        ]
    )()


def _random(rng: random.Random) -> sa.Tensor:
    x = X
    for _ in range(rng.randint(1, 3)):
        x = rng.choice(
            [
                lambda x: _weights(x, rng) @ x,
                lambda x: _weights(x, rng) @ sa.flip(x, 0),
                lambda x: x + _weights(x, rng) @ sa.tanh(x),
                lambda x: sa.cumsum(x, axis=rng.choice([0, 1]), reverse=rng.random() < 0.3),
                lambda x: sa.shift(x, rng.choice([-2, -1, 1]), axis=0),
                lambda x: x * sa.mean(x, axis=rng.choice([0, 1]), keepdims=True),
                lambda x: sa.concat([x[1:], x[:1]], axis=0),
                lambda x: sa.repeat(x, 2, axis=0)[:T],
                lambda x: sa.tile(x, 2, axis=0)[1 : T + 1],
                lambda x: sa.max(x, axis=1, keepdims=True) * x,
                lambda x: sa.where(x > 0, x, sa.shift(x, -1, axis=0)),
                lambda x: sa.take(x, sa.from_index((T,), lambda i: sympy.floor(i / 2)), axis=0),
            ]
        )(x)
    return x


def _matters(y: sa.Tensor, rng: np.random.Generator) -> Any:
    """Whether an entry of the output (first axes) moves when one of the input (last axes) does, at some points."""
    forward = sa.lambdify([X], y)
    symbols = {s.name: SIZES[s] for s in y.free_symbols if s in (w,)}
    moved = np.zeros((N, M, N, M), dtype=bool)
    for _ in range(3):
        base = rng.normal(size=(N, M))
        before = forward(base, **symbols)
        for a, b in itertools.product(range(N), range(M)):
            changed = base.copy()
            changed[a, b] += rng.normal() * 2
            moved[:, :, a, b] |= np.abs(forward(changed, **symbols) - before) > 1e-9
    return moved


@pytest.mark.parametrize("seed", one_in(8, range(25)))
def test_what_is_proved_does_not_move(seed: int, rng: np.random.Generator) -> None:
    y = _random(random.Random(seed))
    moved = _matters(y, rng)
    for when in _CONDITIONS:
        claim = independent(y, X, when)
        if dependence_proof(claim, Budget(60)) is None:
            continue
        for place in zip(*np.nonzero(moved), strict=True):
            values = dict(zip((*claim.out, *claim.inp), map(int, place), strict=True))
            assert not claim.condition.subs({**SIZES, **values}), (str(claim), place)


@pytest.mark.slow
def test_the_fuzz_proves_something() -> None:
    outputs = [_random(random.Random(seed)) for seed in range(8)]
    proved = [proof(y, X, when) is not None for y in outputs for when in _CONDITIONS]
    assert sum(proved) > 10


def test_a_condition_may_name_a_size_that_no_tensor_has() -> None:
    n, k = sa.sizes("n k")
    W = sa.tensor("W", n, n)
    near = sa.independent(sa.tril(W), W, when=lambda out, inp: inp[0] - inp[1] < k)
    assert str(near) == "(tril(W))[i, j] is independent of W[l, m] where l - m < k"  # k is the size
    found = sa.prove(near)
    assert found.counterexample is not None
    assert found.counterexample.sizes == {n: 1, k: 1}
    assert sa.prove(sa.independent(sa.tril(W), W, when=lambda out, inp: inp[1] - inp[0] >= k))
