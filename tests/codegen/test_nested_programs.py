"""Programs whose loops have loops inside: heads one by one and their rows in blocks, and blocks of rows by heads."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import sympy

import symattn as sa

from .test_programs import LONG, K, S, T, X, assert_same, by_index, d, e, with_gradient

h = sa.sizes("h")
Q_h, K_h, V_h = (sa.tensor(name, h, *shape) for name, shape in (("Q", (T, d)), ("K", (S, d)), ("V", (S, e))))
HEADS = {x: 2 if x == h else LONG[x] for x in (h, T, S, d, e)}


def of_heads(scores=lambda z: z, **options):
    return sa.softmax(scores(Q_h @ K_h.mT / sympy.sqrt(d)), **options) @ V_h


def by_head():
    return sa.from_index((h,), lambda k: sympy.Integer(2) ** (-k - 1))[:, None, None]


def multi_head():
    q, k, v = (sa.moveaxis(sa.split_axis(X @ sa.tensor(f"W_{n}", d, h * e), -1, (h, e)), 0, 1) for n in "qkv")
    P = sa.softmax(q @ k.mT, where=sa.from_index((T, T), lambda i, j: j <= i))
    return sa.merge_axes(sa.moveaxis(P @ v, 0, 1), (1, 2)) @ sa.tensor("W_o", h * e, d)


NESTED = {  # the output, its arguments, and the sizes of the loops, each followed by those inside
    "heads": (of_heads, [Q_h, K_h, V_h], [h, T]),
    "causal heads": (lambda: of_heads(where=by_index(lambda i, j: j <= i)), [Q_h, K_h, V_h], [h, T]),
    "a slope a head": (
        lambda: of_heads(lambda z: z - by_head() * by_index(lambda i, j: sympy.Abs(i - j))),
        [Q_h, K_h, V_h],
        [h, T],
    ),
    "one key for all heads": (lambda: sa.softmax(Q_h @ K.T) @ V_h, [Q_h, K, V_h], [h, T]),
    "a scale for all heads": (
        lambda: sa.softmax(sa.tensor("s") * (Q_h @ K_h.mT)) @ V_h,
        [Q_h, K_h, V_h, sa.tensor("s")],
        [h, T],
    ),
}


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("name", NESTED)
def test_heads_are_cut_one_by_one_and_their_rows_in_blocks(name, eager, rng):
    build, arguments, lengths = NESTED[name]
    y = build()
    G, outputs = with_gradient(y, arguments)
    small = {h: 3, T: 7, S: 9, d: 4, e: 5}
    values = [rng.normal(size=[small[s] for s in x.shape]) for x in (*arguments, G)]
    program = assert_same([*arguments, G], outputs, values, HEADS, rows=3, puts_off=not eager)
    if not eager:
        assert [loop.length for loop in program.program.loops] == lengths
        assert (program.program.loops[-1].columns is not None) == ("causal" in name)


def test_rows_of_all_heads_are_cut_into_heads(rng):
    y = multi_head()
    arguments = [X, *(x for x in y.tensors if x is not X)]
    G, outputs = with_gradient(y, arguments)
    small = {T: 7, d: 6, h: 3, e: 2, h * e: 6}
    values = [rng.normal(size=[small[s] for s in x.shape]) for x in (*arguments, G)]
    assert_same([*arguments, G], outputs, values, {T: 4096, d: 512, h: 8, e: 64}, rows=3)
    program = assert_same(arguments, [y], values[:-1], {T: 4096, d: 512, h: 8, e: 64}, rows=3)
    [*_, rows, heads] = program.program.loops
    assert (rows.length, heads.length) == (T, h)
    assert rows.columns is not None


def test_short_heads_are_cut_several_at_a_time():
    plan = sa.lambdify([Q_h, K_h, V_h], of_heads()).plan(h=256, T=64, S=64)
    assert "1. h in blocks of 64: " in str(plan)
    assert "in each of these" not in str(plan)


def test_no_scores_of_a_head_are_kept_whole():
    f = sa.lambdify([Q_h, K_h, V_h], of_heads(where=by_index(lambda i, j: j <= i)))
    values = [np.ones((4, 1000, 16), np.float32) for _ in range(3)]
    np.testing.assert_allclose(f(*values), 1, rtol=1e-6)
    tracemalloc.start()
    f(*values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 << 20 < 1000 * 1000 * 4
    assert "1. h one by one: 13 values" in (told := str(f.plan()))
    assert "in each of these, T in blocks of 128: 12 values; written " in told


# --- losses ---

N = sa.sizes("N")
Z, C = sa.tensor("Z", T, N), sa.tensor("c", T, integer=True)
LOGITS = np.random.default_rng(0).normal(size=(7, 9))
LOGITS[1] = -np.inf
LOGITS[2, 4], LOGITS[3, 1] = 40, 60  # where the loss is tiny, if the class is that
LOGITS[4, 2:5] = 50  # and where several are largest
CLASSES = np.array([3, 0, 4, 1, 2, 8, 0])


def test_a_logsumexp_less_the_logit_of_a_class_in_blocks():
    total = sa.logsumexp(Z)
    loss = total - sa.sum(Z * sa.attention.one_hot(C, N), -1)
    rows = np.isfinite(LOGITS).all(axis=1)
    program = assert_same([Z, C], [loss], [LOGITS[rows], CLASSES[rows]], {T: 1024, N: 4096}, rows=2)
    assert "one_hot" not in program.source
    [got] = program.function(LOGITS[rows], CLASSES[rows])
    [want] = sa.lambdify([Z, C], [loss])(LOGITS[rows], CLASSES[rows])
    np.testing.assert_allclose(got, want, rtol=1e-12)  # also what is tiny
    G, outputs = with_gradient(loss, [Z])
    assert_same([Z, C, G], outputs, [LOGITS[rows], CLASSES[rows], np.arange(1.0, 7)], {T: 1024, N: 4096}, rows=2)
    assert_same([Z], [total, sa.logsumexp(Z, -1, True)], [LOGITS], {T: 1024, N: 4096}, rows=2)


@pytest.mark.parametrize("size", [0.1, 1, 30])
def test_the_slope_of_a_cap_in_blocks(size, rng):
    V_n = sa.tensor("V", N, e)
    y = sa.softmax(sa.attention.capped(Z, 2)) @ V_n
    G, outputs = with_gradient(y, [Z])
    values = [size * rng.normal(size=(7, 9)), rng.normal(size=(9, 5)), rng.normal(size=(7, 5))]
    program = assert_same([Z, V_n, G], outputs, values, {T: 1024, N: 4096, e: 64}, rows=2)
    assert "tanh_slope_at(" in program.source
    slope = sa.gradient({sa.tanh(Z): sa.tensor("G", T, N)}, [Z])[Z]
    program = assert_same(
        [Z, sa.tensor("G", T, N)], [sa.tanh(Z), slope], [values[0], np.ones((7, 9))], {T: 1024, N: 4096}, rows=2
    )
    _, got = program.function(values[0], np.ones((7, 9)))
    np.testing.assert_allclose(got, 1 / np.cosh(values[0]) ** 2, rtol=1e-12)
