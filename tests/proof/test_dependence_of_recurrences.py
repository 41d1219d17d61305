"""What the states and outputs of recurrences may depend on, however many steps there are, against numbers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn import attention
from symattn.core.budget import Budget
from symattn.proof.dependence.prove import dependence_proof

L, n, d, N, C = sa.sizes("L n d N C")
X, W, M = sa.tensor("X", n, d), sa.tensor("W", L, d, d), sa.tensor("M", L, n, d)
y, z, u = sa.tensor("y", L), sa.tensor("z", N * C), sa.tensor("u")
Step = Callable[[Any, Any], Any]


def later(out: Any, inp: Any) -> Any:
    return inp[0] > out[0]


def other(out: Any, inp: Any) -> Any:
    return sympy.Ne(inp[0], out[0])


def attend(X: Any, W: Any) -> Any:
    return X + sa.softmax(X @ X.T, where=attention.causal_mask(n)) @ attention.layer_norm(X) @ W


def windowed(X: Any, W: Any) -> Any:
    return X + sa.shift(X, -1, axis=0) @ W


def net(step: Step, xs: Any = W) -> Any:
    return sa.scan(lambda X, W: (step(X, W), None), X, xs)[0]


def pairs() -> Any:
    """Two states, of which one follows the other."""
    return sa.scan(lambda s, W: ((attend(s[0], W), s[1] + s[0]), None), (X, 0 * X), W)[0][1]


def within() -> Any:
    """Steps within steps."""
    return net(lambda X, W: sa.scan(lambda Y, w: (Y + sa.cumsum(Y, axis=0) * w, None), X, W[0])[0])


def blocks(z: Any) -> Any:
    return sa.split_axis(z, 0, (N, C))


def in_blocks(z: Any, **how: Any) -> Any:
    """A running sum, block by block."""
    return sa.merge_axes(sa.scan(lambda s, t: (s + sa.sum(t), s + sa.cumsum(t)), 0, z, **how)[1], (0, 1))


PROVED: dict[str, tuple[Callable[[], Any], Any, Any]] = {
    "causal layers": (lambda: net(attend), X, later),
    "layers of rows": (lambda: net(lambda X, W: X + sa.unknown("f", X @ W, rowwise=True)), X, other),
    "layers that look at the row before": (lambda: net(windowed), X, later),
    "features by themselves": (lambda: net(lambda X, _: sa.cumsum(X, axis=0)), X, lambda o, i: sympy.Ne(i[1], o[1])),
    "two states": (pairs, X, later),
    "steps within steps": (within, X, later),
    "a head behind": (lambda: sa.softmax(net(attend) @ W[0]), X, later),
    "all layers": (lambda: sa.scan(lambda X, W: (attend(X, W), attend(X, W)), X, W)[1], X, lambda o, i: i[0] > o[1]),
    "a state that is left alone": (
        lambda: sa.scan(lambda s, W: ((windowed(s[0], W), s[1] @ W), None), (X, sa.zeros(n, d)), W)[0][1],
        X,
        lambda o, i: i[0] >= 0,
    ),
    "blocks of a sequence": (lambda: in_blocks(blocks(z)), z, later),
    "blocks from the end": (
        lambda: sa.scan(lambda s, t: (s + sa.sum(t), s + sa.cumsum(t)), 0, blocks(z), reverse=True)[1],
        z,
        lambda o, i: i[0] < C * o[0],
    ),
    "what a step reads": (lambda: sa.scan(lambda s, x: (s + x, sa.sin(x)), 0, y)[1], y, other),
    "what a step reads of one of two": (
        lambda: sa.scan(lambda s, x: (s + x[1], s + x[0]), 0, (y, sa.exp(y)[::-1] * 0 + 1))[1],
        y,
        other,
    ),
    "a start that is put aside": (lambda: sa.scan(lambda s, x: (x, None), u, y)[0], u, lambda o, i: True),
    "a start that is put aside later": (lambda: sa.scan(lambda s, x: (x, s), u, y)[1], u, lambda o, i: o[0] > 0),
    "the last element": (lambda: sa.scan(lambda s, x: (x, None), 0, y)[0], y, lambda o, i: i[0] < L - 1),
    "the element two places before": (
        lambda: sa.scan(lambda s, x: ((s[1], x), s[0]), (0, 0), y)[1],
        y,
        lambda o, i: sympy.Ne(i[0], o[0] - 2),
    ),
    "the last but one": (
        lambda: sa.scan(lambda s, x: ((s[1], x), None), (0, 0), y)[0][0],
        y,
        lambda o, i: sympy.Ne(i[0], L - 2),
    ),
    "tokens that are shifted": (
        lambda: sa.scan(lambda s, x: (s + x, s), 0, sa.concat([sa.zeros(1), y[:-1]], axis=0))[1],
        y,
        lambda o, i: i[0] >= o[0] - 1,
    ),
    "an element of a row before": (
        lambda: sa.scan(lambda s, row: (row, sa.scan(lambda r, x: (r + x, r), 0, s)[1]), sa.zeros(d), M[:, 0])[1],
        M,
        lambda o, i: sympy.Or(sympy.Ne(i[0], o[0] - 1), i[2] >= o[1]),
    ),
    "what is added": (lambda: net(lambda X, m: sa.cumsum(X, axis=0) + m, M), M, lambda o, i: i[1] > o[0]),
}


def gradient_of_linear(by: str) -> tuple[Any, Any]:
    """A gradient of causal linear attention, and what it is a function of."""
    made = sa.tensor("Q", L, d), sa.tensor("K", L, d), sa.tensor("V", L, d)

    def step(S: Any, token: Any) -> Any:
        q, k, v = token
        return (new := S + sa.outer(k, v)), q @ new

    g = sa.gradient(sa.scan(step, sa.zeros(d, d), made)[1], made)
    return g[next(x for x in made if x.name == by)], g.cotangent


@pytest.mark.parametrize("name", ["Q", "K", "V"])
def test_gradients_of_what_is_causal_look_ahead_only(name: str) -> None:
    gradient, cotangent = gradient_of_linear(name)
    verdict = sa.prove(sa.independent(gradient, cotangent, when=lambda out, inp: inp[0] < out[0]))
    assert verdict.proof.check()
    assert str(verdict.proof)


def test_a_gradient_by_queries_looks_at_its_own_place() -> None:
    gradient, cotangent = gradient_of_linear("Q")
    assert sa.prove(sa.independent(gradient, cotangent, when=other))


RULES = {"linear": {}, "gated": {"decay"}, "delta": {"beta"}, "gated_delta": {"beta", "decay"}}


@pytest.mark.parametrize("rule", RULES)
def test_attention_in_chunks_is_causal(rule: str) -> None:
    Q, K, V = (sa.tensor(name, N * C, d) for name in "QKV")
    made = attention.recurrence(
        Q, K, V, rule=rule, form="chunked", chunk=C, **{name: sa.tensor(name, N * C) for name in RULES[rule]}
    )
    for variable in (Q, K, V):
        assert sa.prove(sa.independent(made.output, variable, when=later))


NOT_PROVED: dict[str, tuple[Callable[[], Any], Any, Any]] = {
    "layers that see all": (lambda: net(lambda X, W: X + sa.softmax(X @ X.T) @ X @ W), X, later),
    "layers turned around": (lambda: net(lambda X, W: X[::-1] @ W), X, later),
    "the end of a block": (lambda: in_blocks(blocks(z)), z, lambda o, i: i[0] >= o[0]),
    "the block before": (lambda: in_blocks(blocks(z)), z, lambda o, i: i[0] // C < o[0] // C),
    "the start at the first step": (
        lambda: sa.scan(lambda s, x: (x, s), y[0], y)[1], y, lambda o, i: sympy.Ne(i[0], o[0] - 1)
    ),
    "an element at the first step": (
        lambda: sa.scan(lambda s, x: (s + x[1], s + x[0]), 0, (y, y * y))[1], y, lambda o, i: sympy.Eq(o[0], 0)
    ),
    "a start that stays": (lambda: sa.scan(lambda s, x: (s, x + s), u, y)[1], u, lambda o, i: o[0] > 0),
    "the element three places before": (
        lambda: sa.scan(lambda s, x: ((s[1], s[2], x), s[0]), (0, 0, 0), y)[1],
        y,
        lambda o, i: sympy.Ne(i[0], o[0] - 2),
    ),
    "at one step the start": (
        lambda: sa.scan(lambda s, x: ((s[1], x), None), (0, u), y)[0][0], u, lambda o, i: True
    ),
    "a window of two, many times": (lambda: net(windowed), X, lambda o, i: i[0] < o[0] - 2),
    "the row itself": (lambda: net(attend), X, lambda o, i: i[0] >= o[0]),
    "two states, crossed": (
        lambda: sa.scan(lambda s, W: ((s[1], s[0][::-1]), None), (X, 0 * X), W)[0][1], X, other
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROVED)
def test_what_no_step_passes_on_is_independent(name: str) -> None:
    value, variable, when = PROVED[name]
    verdict = sa.prove(sa.independent(sa.let("Y", value()), variable, when=when))
    assert verdict, verdict
    assert verdict.proof.check()
    assert verdict.latex()


@pytest.mark.parametrize("name", NOT_PROVED)
def test_what_some_step_passes_on_is_not(name: str) -> None:
    value, variable, when = NOT_PROVED[name]
    assert dependence_proof(sa.independent(value(), variable, when=when), Budget(20)) is None


# --- against numbers ---

MOVES: list[Step] = [
    lambda X, W: X + sa.cumsum(X, axis=0) * sa.sum(W),
    lambda X, W: X @ W,
    lambda X, W: sa.shift(X, 1, axis=0) + 1,
    lambda X, W: X + sa.shift(X, -1, axis=1),
    lambda X, W: sa.where(sa.from_index((n, 1), lambda i, _: i > 1), X, sa.sin(X)),
    lambda X, W: sa.tril(X @ X.T) @ X,
    lambda X, W: X * X[:1],
    lambda X, W: sa.tanh(X) * sa.sum(X, axis=1, keepdims=True),
    lambda X, W: sa.cumsum(X, axis=1)[::-1],
]
RELATIONS = [
    later,
    other,
    lambda o, i: i[0] < o[0],
    lambda o, i: sympy.Ne(i[1], o[1]),
    lambda o, i: i[1] > o[1],
    lambda o, i: i[0] >= o[0] + 1,
    lambda o, i: sympy.And(i[0] > o[0], i[1] > o[1]),
]


def touched(value: Any, steps: int) -> np.ndarray:
    """Which entries of X change which entries of a value: [out, inp]."""
    rng = np.random.default_rng(steps)
    f = sa.lambdify([X, W], value)
    x, w = rng.uniform(0.1, 0.4, (4, 3)), rng.uniform(0.1, 0.4, (steps, 3, 3))
    found = np.zeros((4, 3, 4, 3), bool)
    for at in np.ndindex(4, 3):
        y = x.copy()
        y[at] += 0.17
        found[(..., *at)] = ~np.isclose(f(x, w), f(y, w), rtol=1e-9, atol=0)
    return found


@pytest.mark.parametrize("seed", [pytest.param(k, marks=pytest.mark.slow) if k > 2 else k for k in range(120)])
def test_nothing_that_numbers_see_is_denied(seed: int) -> None:
    draw = random.Random(seed)
    first, second = draw.sample(MOVES, 2)
    value = net(lambda X, W: first(second(X, W) if draw.random() < 0.5 else X, W))
    proved = [r for r in RELATIONS if dependence_proof(sa.independent(value, X, when=r), Budget(20))]
    seen = [touched(value, steps) for steps in (1, 2, 3)] if proved else []
    for relation, dependent in itertools.product(proved, seen):
        forbidden = [at for at in np.ndindex(4, 3, 4, 3) if sympy.sympify(relation(at[:2], at[2:]))]
        assert not any(dependent[at] for at in forbidden)


WHAT = [
    lambda s, r, x: x,
    lambda s, r, x: s,
    lambda s, r, x: r,
    lambda s, r, x: s + x,
    lambda s, r, x: r * x,
    lambda s, r, x: sa.sin(x),
    lambda s, r, x: 0 * x + 1,
    lambda s, r, x: s - r,
]
PLACES = [
    lambda o, i, T: i > o,
    lambda o, i, T: i < o,
    lambda o, i, T: sympy.Ne(i, o),
    lambda o, i, T: sympy.Ne(i, o - 1),
    lambda o, i, T: sympy.Ne(i, o - 2),
    lambda o, i, T: i < o - 1,
    lambda o, i, T: i > 0,
    lambda o, i, T: sympy.Ne(i, T - 1),
    lambda o, i, T: i < T - 2,
    lambda o, i, T: o > 1,
]
STARTS = [(0, 0), (u, 1), (y[0], u), (1, y[-1])]


def drawn(seed: int) -> list[Any]:
    """The outputs, and the first state at the end, of a step of things that it can make of what it has."""
    draw = random.Random(seed)
    a, b, c = (draw.choice(WHAT) for _ in range(3))

    def step(state: Any, x: Any) -> Any:
        return (a(*state, x), b(*state, x)), c(*state, x)

    (last, _), outputs = sa.scan(step, draw.choice(STARTS), y, reverse=draw.random() < 0.3)
    return [outputs, last[None]]


def changed(f: Any, steps: int) -> Any:
    """Which entries of a sequence change which entries of a value: [out, inp]."""
    rng = np.random.default_rng(steps)
    y = rng.uniform(0.1, 0.4, steps)
    moved = [f(y + 0.17 * row, 0.3) for row in np.eye(steps)]
    return ~np.isclose(np.stack(moved, axis=-1), f(y, 0.3)[:, None], rtol=1e-9, atol=0)


@pytest.mark.parametrize("seed", [pytest.param(k, marks=pytest.mark.slow) if k > 5 else k for k in range(300)])
def test_nothing_that_numbers_see_of_a_sequence_is_denied(seed: int) -> None:
    for value in drawn(seed):
        f = sa.lambdify([y, u], value + 0 * (u + y[0]))
        for place in PLACES:
            claim = sa.independent(value, y, when=lambda o, i, place=place: place(o[0], i[0], L))
            for steps in (1, 2, 3, 5) if dependence_proof(claim, Budget(20)) else ():
                seen = zip(*np.nonzero(changed(f, steps)), strict=True)
                assert not any(sympy.sympify(place(int(o), int(i), steps)) for o, i in seen), (place, steps)
