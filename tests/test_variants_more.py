"""Variants that read by index, scan, invert or have zeros, composed from public operations, against NumPy by hand.

The NumPy takes complex arrays, since it is differentiated by the complex step; recurrences run step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy

import symattn as sa

from .shares import one_in
from .test_variants import complex_step, relative_error, sample
from .variants import (
    CAUSAL,
    KH,
    KT,
    QH,
    SIZES,
    VH,
    VT,
    D,
    K,
    Q,
    S,
    T,
    V,
    additive,
    attend,
    d,
    e,
    f,
    h,
    m,
    np_attend,
    np_causal,
    np_softmax,
    r,
)


class Case(NamedTuple):
    """What is differentiated by what, and the same forward pass in NumPy; ``index`` says how far indices go."""

    output: sa.Tensor
    wrt: list[sa.Tensor]
    numpy: Callable[..., Any]
    index: dict[sa.Tensor, Any] = {}  # noqa: RUF012
    keywords: tuple[sympy.Symbol, ...] = ()


CASES: dict[str, Callable[[], Case]] = {}


def case(build: Callable[[], Any]) -> Callable[[], Case]:
    CASES[build.__name__] = lambda: Case(*build())
    return CASES[build.__name__]


# --- relative positions ---

FAR = 8  # buckets, half of them for each direction


def bucket(i: Any, j: Any) -> Any:
    """T5: near distances have a bucket each, far ones share buckets of equal ratio."""
    distance = sympy.Abs(j - i)
    shared = 2 + sympy.floor(2 * sympy.log(sympy.Max(distance, 1) / 2) / sympy.log(8))
    return 4 * sympy.Piecewise((1, j > i), (0, True)) + sympy.Piecewise((distance, distance < 2), (
        sympy.Min(shared, 3), True))  # fmt: skip


def np_bucket(i: int, j: int) -> int:
    distance = abs(j - i)
    shared = min(2 + int(np.floor(np.log(max(distance, 1) / 2) / np.log(16 / 2) * 2)), 3)
    return 4 * (j > i) + (distance if distance < 2 else shared)


@case
def t5_bucketed_bias():
    table = sa.tensor("b", h, FAR)
    bias = sa.let("B", sa.take(table, sa.from_index((T, T), bucket), axis=-1))

    def forward(q, k, v, b):
        n = q.shape[1]
        chosen = np.array([[b[:, np_bucket(i, j)] for j in range(n)] for i in range(n)])
        z = np.einsum("htd,hsd->hts", q, k) + np.moveaxis(chosen, -1, 0)
        return np_softmax(z) @ v

    return sa.softmax(QH @ KH.mT + bias) @ VH, [QH, KH, VH, table], forward


def relative(x: Any) -> Any:
    """Columns of distances j - i from 1 - T on, as columns j."""
    return sa.shift(x, lambda i: T - 1 - i, size=T)


@case
def shaw():
    a, b = sa.tensor("a", 2 * T - 1, d), sa.tensor("b", 2 * T - 1, e)
    p = sa.let("P", sa.softmax((Q @ KT.T + relative(Q @ a.T)) / sympy.sqrt(d)))
    by_distance = sa.shift(p, lambda i: i + 1 - T, size=2 * T - 1)

    def forward(q, k, v, a, b):
        n = len(q)
        place = np.arange(n) - np.arange(n)[:, None] + n - 1
        p = np_softmax((q @ k.T + np.einsum("td,tsd->ts", q, a[place])) / np.sqrt(q.shape[1]))
        return p @ v + np.einsum("ts,tse->te", p, b[place])

    return p @ VT + by_distance @ b, [Q, KT, VT, a, b], forward


@case
def transformer_xl():
    R, u, w = sa.tensor("R", 2 * T - 1, d), sa.tensor("u", d), sa.tensor("w", d)
    z = ((Q + u) @ KT.T + relative((Q + w) @ R.T)) / sympy.sqrt(d)

    def forward(q, k, v, rel, u, w):
        n = len(q)
        rows = [[(q[i] + u) @ k[j] + (q[i] + w) @ rel[n - 1 - (i - j)] for j in range(n)] for i in range(n)]
        return np_softmax(np.where(np_causal(n), np.array(rows) / np.sqrt(q.shape[1]), 0), np_causal(n)) @ v

    return sa.softmax(z, where=CAUSAL) @ VT, [Q, KT, VT, R, u, w], forward


# --- scans and inverses ---


@case
def delta_rule():
    beta = sa.tensor("beta", T)
    A = sa.let("A", sa.eye(T) + sa.tril((beta[:, None] * KT) @ KT.T, -1))
    o = sa.tril(Q @ KT.T) @ sa.inv(A) @ (beta[:, None] * VT)

    def forward(q, k, v, b):
        state, outputs = np.zeros((k.shape[1], v.shape[1])), []
        for t in range(len(q)):
            state = state + b[t] * np.outer(k[t], v[t] - state.T @ k[t])
            outputs.append(state.T @ q[t])
        return np.array(outputs)

    return o, [Q, KT, VT, beta], forward


@case
def forgetting():
    gate = sa.tensor("g", T)
    c = sa.let("c", sa.cumsum(sa.log(sa.sigmoid(gate))))
    z = Q @ KT.T / sympy.sqrt(d) + c[:, None] - c[None]

    def forward(q, k, v, g):
        keep, n = 1 / (1 + np.exp(-g)), len(q)
        decay = np.array([[np.prod(keep[j + 1 : i + 1]) for j in range(n)] for i in range(n)])
        return np_attend(q, k, v, np_causal(n) * decay)

    return sa.softmax(z, where=CAUSAL) @ VT, [Q, KT, VT, gate], forward


@case
def retention_of_the_future():
    decay = sa.tensor("g", T)
    c = sa.cumsum(decay, reverse=True)
    weight = sa.triu(Q @ KT.T * sa.exp(c[:, None] - c[None]), 1)

    def forward(q, k, v, g):
        n = len(q)
        return np.array([sum((q[i] @ k[j] * np.exp(g[i:j].sum()) * v[j] for j in range(i + 1, n)),
                             np.zeros(v.shape[1])) for i in range(n)])  # fmt: skip

    return weight @ VT, [Q, KT, VT, decay], forward


# --- heads ---


def np_grouped(q, k, v):
    return np.stack([np_attend(q[n], k[n // SIZES[r]], v[n // SIZES[r]]) for n in range(len(q))])


def grouped(copies: Callable[[Any], Any]) -> Any:
    q, k, v = sa.tensor("Q", h * r, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)
    return attend(q, copies(k), copies(v)), [q, k, v]


@case
def grouped_query_by_repeat():
    return *grouped(lambda x: sa.repeat(x, r, axis=0)), np_grouped


@case
def grouped_query_by_take():
    heads = sa.from_index((h * r,), lambda n: sympy.floor(n / r))
    return *grouped(lambda x: sa.take(x, heads, axis=0)), np_grouped


@case
def grouped_query_by_tile():
    def forward(q, k, v):
        return np.stack([np_attend(q[n], k[n % len(k)], v[n % len(k)]) for n in range(len(q))])

    return *grouped(lambda x: sa.tile(x, r, axis=0)), forward


# --- normalisers with zeros ---


def np_entmax(z: Any, alpha: float) -> Any:
    """The threshold by bisection on the real part; then, on the support, by Newton's step in complex numbers."""
    power = 1 / (alpha - 1)
    x = (alpha - 1) * z

    def excess(tau: Any) -> Any:
        return (np.maximum(x.real - tau, 0) ** power).sum(-1, keepdims=True) - 1

    low = x.real.max(-1, keepdims=True) - 1
    high = low + 1
    for _ in range(100):
        middle = (low + high) / 2
        low, high = np.where(excess(middle) > 0, middle, low), np.where(excess(middle) > 0, high, middle)
    support = x.real > low + 1e-12
    lifted = np.where(support, x - low, 0)
    slope = power * np.where(support, lifted, 1) ** (power - 1) * support
    step = ((lifted**power).sum(-1, keepdims=True) - 1) / slope.sum(-1, keepdims=True)
    return np.where(support, lifted - step, 0) ** power


@case
def sparsemax_attention():
    forward = lambda q, k, v: np_entmax(q @ k.T / np.sqrt(q.shape[1]), 2) @ v  # noqa: E731
    return sa.sparsemax(Q @ K.T / sympy.sqrt(d)) @ V, [Q, K, V], forward


@case
def entmax_attention():
    forward = lambda q, k, v: np_entmax(q @ k.T / np.sqrt(q.shape[1]), 1.5) @ v  # noqa: E731
    return sa.entmax15(Q @ K.T / sympy.sqrt(d)) @ V, [Q, K, V], forward


@case
def causal_entmax_attention():
    mask = additive((T, T), lambda i, j: j <= i)

    def forward(q, k, v):
        z = q @ k.T / np.sqrt(q.shape[1])
        return np.array([np_entmax(z[i, : i + 1], 1.5) @ v[: i + 1] for i in range(len(q))])

    return sa.entmax15(Q @ KT.T / sympy.sqrt(d) + mask) @ VT, [Q, KT, VT], forward


# --- tokens ---


@case
def embedding_and_cross_entropy():
    table, weight = sa.tensor("E", m, D), sa.tensor("W", D, f)
    tokens, labels = sa.tensor("t", T, integer=True), sa.tensor("y", T, integer=True)
    logits = sa.let("z", sa.take(table, tokens, axis=0) @ weight)
    loss = sa.mean(sa.logsumexp(logits) - sa.diag(sa.take(logits, labels, axis=-1)))

    def forward(table, weight, t, y):
        p = np_softmax(np.array([table[token] for token in t]) @ weight)
        return -np.log(p[np.arange(len(t)), y]).sum() / len(t)

    return loss, [table, weight], forward, {tokens: m, labels: f}


# --- the tests ---


def prepared(name: str, rng: np.random.Generator) -> tuple[Case, Any, list[Any], Any]:
    """The case, its function that gives output and gradients, arrays, and a cotangent."""
    made = CASES[name]()
    cotangent = sa.tensor("G_0", *made.output.shape)
    g = sa.gradient({made.output: cotangent}, made.wrt)
    function = sa.lambdify([*made.wrt, *made.index, cotangent], [made.output, g])
    indices = [rng.integers(0, SIZES[high], [SIZES[s] for s in x.shape]) for x, high in made.index.items()]
    function = partial(function, **{s.name: SIZES[s] for s in made.keywords})
    return made, function, [*(sample(x, rng) for x in made.wrt), *indices], sample(cotangent, rng)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow
def test_values_and_gradients_equal_numpy_by_hand(name, rng):
    made, function, arrays, upstream = prepared(name, rng)
    output, *slopes = function(*arrays, upstream)
    assert relative_error(output, made.numpy(*arrays)) <= 1e-13
    for k, got in enumerate(slopes):
        want = complex_step(lambda *x: (made.numpy(*x),), arrays, k, [upstream])
        assert relative_error(got, want) <= 1e-12, made.wrt[k]


@pytest.mark.parametrize("name", one_in(3, [name for name in CASES if not name.startswith("grouped")]))
def test_check_agrees(name, rng):
    made, function, _, _ = prepared(name, rng)
    assert function.func.check().count("gradient equals central differences") == 2 * len(made.wrt)


@pytest.mark.parametrize("name", ["t5_bucketed_bias", "shaw", "delta_rule", "forgetting", "entmax_attention"])
def test_loop_axes_give_what_a_python_loop_gives(name, rng):
    _, function, arrays, upstream = prepared(name, rng)
    stacked = [x * rng.uniform(0.9, 1.1, (3, *x.shape)) for x in (*arrays, upstream)]
    results = function(*stacked)
    for n in range(3):
        for got, want in zip(results, function(*(x[n] for x in stacked)), strict=True):
            assert relative_error(got[n], want) <= 1e-12


def test_the_delta_rule_solves_instead_of_inverting():
    made = CASES["delta_rule"]()
    beta = made.wrt[-1]
    A = sa.eye(T) + sa.tril((beta[:, None] * KT) @ KT.T, -1)
    source = sa.lambdify([KT, VT, beta], sa.inv(A) @ (beta[:, None] * VT)).source
    assert "np.linalg.solve" in source
    assert "np.linalg.inv" not in source


def test_the_gradient_of_an_embedding_is_zero_for_absent_tokens(rng):
    _, function, arrays, upstream = prepared("embedding_and_cross_entropy", rng)
    tokens = np.array([3, 3, 0, 3, 0])
    _, slope, _ = function(*arrays[:2], tokens, arrays[3], upstream)
    present = np.abs(slope).max(axis=1) > 0
    assert list(np.flatnonzero(present)) == [0, 3]


@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
def test_sparse_normalisers_are_stable_and_sum_to_one(name, rng):
    z = sa.tensor("z", "T S")
    p = sa.lambdify([z], getattr(sa, name)(z))
    logits = rng.normal(size=(50, 7)) * np.logspace(-3, 300, 50)[:, None]
    rows = p(logits)
    assert np.isfinite(rows).all()
    assert (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(-1), 1, rtol=0, atol=1e-14)
    np.testing.assert_allclose(p(rng.normal(size=(9, 5)) + 1e8).sum(-1), 1, rtol=0, atol=1e-14)
    assert p(logits.clip(-1e30, 1e30).astype(np.float32)).dtype == np.float32
