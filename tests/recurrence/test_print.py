"""How recurrences are read: as calls in text, and by their equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.ops.broadcasting import broadcast_to
from symattn.printing.matrix import latex_printer

from .steps import LOOPS, B, K, Q, T, V, cell, d, drawn, e, gamma, linear, online, online_mean, x


@pytest.mark.parametrize(
    ("y", "text", "latex"),
    [
        (
            lambda: sa.scan(linear, sa.zeros(d, e), (K, V, Q))[1],
            "scan(lambda s, x: (t := gamma * s + outer(x[0], x[1]), x[2] @ t), zeros(d, e), (K, V, Q))[1]",
            r"(o_{:T} : S_{0} = 0_{d \times e}, \quad S_{t + 1} = \gamma S_{t} + k_{t} v_{t}^{\top}, \quad "
            r"o_{t} = S_{t + 1}^{\top} q_{t}, \quad t = 0, \ldots, T - 1)",
        ),
        (
            lambda: sa.scan(lambda s, _: (2 * s, None), 1, length=T)[0],
            "scan(lambda s, x: (2 * s, None), 1, length=T)[0]",
            r"(s_{T} : s_{0} = 1, \quad s_{t + 1} = 2 s_{t}, \quad t = 0, \ldots, T - 1)",
        ),
        (  # backwards, and one value of several
            lambda: sa.scan(lambda s, k: (s + k, (s, s * k)), B, K, reverse=True)[1][1],
            "scan(lambda s, x: (s + x, s * x), B, K, reverse=True)[1]",
            r"(o_{:T} : s_{T} = B, \quad s_{t} = s_{t + 1} + k_{t}, \quad o_{t} = s_{t + 1} \odot k_{t}, \quad "
            r"t = T - 1, \ldots, 0)",
        ),
        (
            lambda: sa.scan(lambda s, k: (s + k, s), B, K, reverse=True)[0],
            "scan(lambda s, x: (s + x, None), B, K, reverse=True)[0]",
            r"(s_{0} : s_{T} = B, \quad s_{t} = s_{t + 1} + k_{t}, \quad t = T - 1, \ldots, 0)",
        ),
        (  # of a sequence that is reversed by the user, and one that is not
            lambda: sa.scan(lambda s, r: (s + r[0] * r[1], None), B, (K[::-1], Q))[0],
            "scan(lambda s, x: (s + x[0] * x[1], None), B, (K[-1::-1, :], Q))[0]",
            r"(s_{T} : s_{0} = B, \quad s_{t + 1} = s_{t} + k_{T - t - 1} \odot q_{t}, \quad t = 0, \ldots, T - 1)",
        ),
        (  # by new states, and without those that do not matter to this one
            lambda: sa.scan(online_mean, (-sympy.oo, 0, 0), (x, V[:, 0]))[0][1],
            "scan(lambda s, x_1: ((t := maximum(s[0], x_1), s[1] * exp(s[0] - t) + exp(x_1 - t)), None), "
            "(-oo, 0), x)[0][1]",
            r"(m_{T} : s_{0} = -\infty, \quad m_{0} = 0, \quad "
            r"s_{t + 1} = \operatorname{maximum}(s_{t}, x_{t}), \quad "
            r"m_{t + 1} = m_{t} \, \exp(s_{t} - s_{t + 1}) + \exp(x_{t} - s_{t + 1}), \quad t = 0, \ldots, T - 1)",
        ),
        (
            lambda: sa.scan(lambda s, k: (s + k, 2 * k), B, K)[1],
            "scan(lambda s, x: ((), 2 * x), (), K)[1]",
            r"(o_{:T} : o_{t} = 2 k_{t}, \quad t = 0, \ldots, T - 1)",
        ),
        (  # names of the user are kept
            lambda: sa.scan(lambda s, u: (s * sa.tensor("s") + u, None), 0, x)[0],
            "scan(lambda s_1, x_1: (s_1 * s + x_1, None), 0, x)[0]",
            r"(m_{T} : m_{0} = 0, \quad m_{t + 1} = m_{t} s + x_{t}, \quad t = 0, \ldots, T - 1)",
        ),
    ],
)
def test_printing(y: Callable[[], Any], text: str, latex: str) -> None:
    assert str(y()) == text
    assert latex_printer([y()]).write(y()) == latex  # in one formula, as within another loop


def _adding(first: Any, xs: Any, **options: Any) -> Any:
    return sa.scan(lambda s, r: (s + r, s * r), first, xs, **options)


H = sa.tensor("H_1", T, d)
PLACES = {
    "a start that is an element": (
        _adding(x[0], x)[0],
        r"s_{T} : s_{0} = x_{0}, s_{t + 1} = s_{t} + x_{t}, t = 0, \ldots, T - 1",
        r"s_{T} : s_{0} = x_{1}, s_{t} = s_{t - 1} + x_{t}, t = 1, \ldots, T",
    ),
    "the rest of a sequence": (
        _adding(x[0], x[1:])[1],
        r"o_{:T - 1} : s_{0} = x_{0}, s_{t + 1} = s_{t} + x_{t + 1}, o_{t} = s_{t} x_{t + 1}, t = 0, \ldots, T - 2",
        r"o_{1:T - 1} : s_{0} = x_{1}, s_{t} = s_{t - 1} + x_{t + 1}, o_{t} = s_{t - 1} x_{t + 1}, "
        r"t = 1, \ldots, T - 1",
    ),
    "all but the last": (
        _adding(x[-1], x[:-1])[0],
        r"s_{T - 1} : s_{0} = x_{T - 1}, s_{t + 1} = s_{t} + x_{t}, t = 0, \ldots, T - 2",
        r"s_{T - 1} : s_{0} = x_{T}, s_{t} = s_{t - 1} + x_{t}, t = 1, \ldots, T - 1",
    ),
    "backwards": (
        _adding(x[-1], x, reverse=True)[1],
        r"o_{:T} : s_{T} = x_{T - 1}, s_{t} = s_{t + 1} + x_{t}, o_{t} = s_{t + 1} x_{t}, t = T - 1, \ldots, 0",
        r"o_{1:T} : s_{T + 1} = x_{T}, s_{t} = s_{t + 1} + x_{t}, o_{t} = s_{t + 1} x_{t}, t = T, \ldots, 1",
    ),
    "backwards from the last but one": (
        _adding(x[-1], x[:-1], reverse=True)[0],
        r"s_{0} : s_{T - 1} = x_{T - 1}, s_{t} = s_{t + 1} + x_{t}, t = T - 2, \ldots, 0",
        r"s_{1} : s_{T} = x_{T}, s_{t} = s_{t + 1} + x_{t}, t = T - 1, \ldots, 1",
    ),
    "from both ends": (
        sa.scan(lambda s, r: (s + r[0] * r[1], None), x[0], (x, x[::-1]))[0],
        r"s_{T} : s_{0} = x_{0}, s_{t + 1} = s_{t} + x_{t} x_{T - t - 1}, t = 0, \ldots, T - 1",
        r"s_{T} : s_{0} = x_{1}, s_{t} = s_{t - 1} + x_{t} x_{T + 1 - t}, t = 1, \ldots, T",
    ),
    "without a sequence": (
        sa.scan(lambda s, _: (2 * s, None), x[0], length=2)[0],
        r"s_{2} : s_{0} = x_{0}, s_{t + 1} = 2 s_{t}, t = 0, 1",
        r"s_{2} : s_{0} = x_{1}, s_{t} = 2 s_{t - 1}, t = 1, 2",
    ),
    "rows of what has a subscript": (
        _adding(H[0], H)[0],
        r"s_{T} : s_{0} = (H_{1})_{0, :}^{\top}, s_{t + 1} = s_{t} + (H_{1})_{t}, t = 0, \ldots, T - 1",
        r"s_{T} : s_{0} = (H_{1})_{1, :}^{\top}, s_{t} = s_{t - 1} + (H_{1})_{t}, t = 1, \ldots, T",
    ),
    "blocks, which are no elements": (
        sa.scan(
            lambda s, z: (s + sa.sum(z), None),
            sa.tensor("z", T * d)[0],
            sa.split_axis(sa.tensor("z", T * d), 0, (T, d)),
        )[0],
        r"s_{T} : s_{0} = z_{0}, s_{t + 1} = s_{t} + \operatorname{sum}(z_{[t]}), t = 0, \ldots, T - 1",
        r"s_{T} : s_{0} = z_{1}, s_{t} = s_{t - 1} + \operatorname{sum}(z_{[t]}), t = 1, \ldots, T",
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_are_counted_from_one_base(name: str) -> None:
    """What is read of a sequence is the same whether it is written as a place or as the element of a step."""
    y, *written = PLACES[name]
    for first_index, equations in enumerate(written):
        assert latex_printer([y], first_index=first_index).write(y).replace(r"\quad ", "") == f"({equations})"


def test_a_gradient_is_read_as_a_loop_from_the_end() -> None:
    g = sa.gradient(sa.scan(cell, B, K)[1], [K])
    assert str(g) == (
        "dK = scan(lambda s, x: (A.T @ (s * (1 - tanh(A @ x[0])**2)) + x[1], s),\n"
        "     zeros(d), (H, dO), reverse=True)[1]              # a recurrence, step by step backwards\n"
        "H = scan(lambda s, x: (tanh(A @ s) + x, s), B, K)[1]  # where"
    )
    assert sa.latex(g).splitlines()[1:-1] == [
        r"  \mathrm{d}K &= {\mathrm{d}K}_{:T} \qquad \text{\small a recurrence, step by step backwards} \\",
        r"  H &:= h_{:T} \\",
        r"  s_{T} &:= 0_{d} \\",
        r"  & \text{for } t = T - 1, \ldots, 0\text{:} \notag \\",
        r"  s_{t} &:= A^{\top} (s_{t + 1} \odot (1 - \tanh(A h_{t})^{\odot 2})) + {\mathrm{d}O}_{t} \\",
        r"  {\mathrm{d}K}_{t} &:= s_{t + 1} \\",
        r"  m_{0} &:= B \\",
        r"  & \text{for } t = 0, \ldots, T - 1\text{:} \notag \\",
        r"  m_{t + 1} &:= \tanh(A m_{t}) + k_{t} \\",
        r"  h_{t} &:= m_{t}",
    ]


def test_a_loop_is_named_on_the_way() -> None:
    """Its equations stand below one another, once, whatever shows it, and one that another reads has its letters."""
    S, O = sa.scan(linear, sa.zeros(d, e), (K, V, Q))
    state = [
        r"  \text{where } & S_{0} := 0_{d \times e} \\",
        r"  & S_{t + 1} := \gamma S_{t} + k_{t} v_{t}^{\top} \quad (t = 0, \ldots, T - 1)",
    ]
    assert sa.latex(Q @ S).splitlines() == [r"\begin{aligned}", r"  & Q S_{T} \\", *state, r"\end{aligned}"]
    entries = [r"\begin{aligned}", r"  & \sum_{k = 0}^{d - 1} Q_{i k} (S_{T})_{k j} \\", *state, r"\end{aligned}"]
    assert sa.latex(Q @ S, style="index").splitlines() == entries
    assert r"& (o_{1:T})_{i + 2, j} \\" in sa.latex(O[2:], style="index", first_index=1)
    assert r"& [S_{T}, o_{:T}] \\" in sa.latex([S, O])
    assert r"m_{t + 1} := \tanh(A m_{t}) + o_{t}" in sa.latex(LOOPS["one after another"]())
    assert r"= s_{t}, \\" in sa.latex(LOOPS["one in another"]())
    inner = r"m_{n + 1} = s_{t} m_{n} + (k_{t})_{n}, \quad n = 0, \ldots, d - 1 )"
    assert inner in sa.latex(LOOPS["one in another"]())


def test_a_claim_and_its_proof_have_the_same_letters() -> None:
    S, _ = sa.scan(linear, sa.zeros(d, e), (K, V, Q))
    told = sa.prove(2 * S, S + S).latex()
    assert r"2 S_{T} = S_{T} + S_{T}" in told
    assert told.count(r"S_{t + 1} &= \gamma S_{t} + k_{t} v_{t}^{\top}") == 1
    start = sa.scan(lambda s, r: (s + r, None), x[0], x)[0]
    told = sa.prove(start, x[0] + sa.sum(x)).latex()
    assert told.count(r"s_{0} &= x_{0}") == told.count(r"s_{t + 1} &= s_{t} + x_{t} \quad") == 1
    assert r"s_{1} &= x_{0} + x_{0}" in told


@pytest.mark.parametrize("name", LOOPS)
def test_text_is_a_call_that_gives_the_same_values(name: str) -> None:
    y = LOOPS[name]()
    arguments = [*y.tensors, *([gamma] if gamma in y.free_symbols else [])]
    functions = {**{name: getattr(sa, name) for name in sa.__all__}, "broadcast_to": broadcast_to}
    z = eval(str(y), {**functions, **{str(a.name): a for a in arguments}, "T": T, "d": d, "e": e, "oo": sympy.oo})
    values = drawn(arguments, np.random.default_rng(5))
    np.testing.assert_array_equal(*sa.lambdify(arguments, [y, z])(*values))


def test_what_is_long_is_written_once_in_a_step() -> None:
    (_, total), _ = sa.scan(online, (-sympy.oo, 0), x)
    assert str(sa.gradient(total, [x])).startswith(
        "dx = scan(lambda s, x_1: (t := exp(x_1[1] - maximum(x_1[1], x_1[0])),\n     t_1 := s[1] * "
    )
    shown = sa.latex(sa.gradient(total, [x])[x])
    assert r"& a_{t} := \exp((H_{1})_{t} - \operatorname{maximum}((H_{1})_{t}, x_{t})) \\" in shown
    assert r"& m_{t} := m_{t + 1} a_{t} \\" in shown
    assert r"& {\mathrm{d}x}_{t} := c_{t} (1 - [(H_{1})_{t} \ge x_{t}]) + b_{t} \\" in shown
    assert len(shown) < 1200
