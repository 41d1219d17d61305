"""How recurrences are read: as calls in text, and by their equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.ops.broadcasting import broadcast_to

from .steps import LOOPS, B, K, Q, T, V, cell, d, drawn, e, gamma, linear, online, online_mean, x


@pytest.mark.parametrize(
    ("y", "text", "latex"),
    [
        (
            lambda: sa.scan(linear, sa.zeros(d, e), (K, V, Q))[1],
            "scan(lambda s, x: (t := gamma * s + outer(x[0], x[1]), x[2] @ t), zeros(d, e), (K, V, Q))[1]",
            r"(y_{1:T} : S_{0} = 0_{d \times e}, \quad S_{t} = \gamma S_{t - 1} + K_{t} V_{t}^{\top}, \quad "
            r"y_{t} = S_{t}^{\top} Q_{t}, \quad t = 1, \ldots, T)",
        ),
        (
            lambda: sa.scan(lambda s, _: (2 * s, None), 1, length=T)[0],
            "scan(lambda s, x: (2 * s, None), 1, length=T)[0]",
            r"(s_{T} : s_{0} = 1, \quad s_{t} = 2 s_{t - 1}, \quad t = 1, \ldots, T)",
        ),
        (  # backwards, and one value of several
            lambda: sa.scan(lambda s, k: (s + k, (s, s * k)), B, K, reverse=True)[1][1],
            "scan(lambda s, x: (s + x, s * x), B, K, reverse=True)[1]",
            r"(y_{1:T} : s_{T + 1} = B, \quad s_{t} = s_{t + 1} + K_{t}, \quad "
            r"y_{t} = s_{t + 1} \odot K_{t}, \quad t = T, \ldots, 1)",
        ),
        (
            lambda: sa.scan(lambda s, k: (s + k, s), B, K, reverse=True)[0],
            "scan(lambda s, x: (s + x, None), B, K, reverse=True)[0]",
            r"(s_{1} : s_{T + 1} = B, \quad s_{t} = s_{t + 1} + K_{t}, \quad t = T, \ldots, 1)",
        ),
        (  # of a sequence that is reversed by the user, and one that is not
            lambda: sa.scan(lambda s, r: (s + r[0] * r[1], None), B, (K[::-1], Q))[0],
            "scan(lambda s, x: (s + x[0] * x[1], None), B, (K[-1::-1, :], Q))[0]",
            r"(s_{T} : s_{0} = B, \quad s_{t} = s_{t - 1} + K_{T + 1 - t} \odot Q_{t}, \quad t = 1, \ldots, T)",
        ),
        (  # by new states, and without those that do not matter to this one
            lambda: sa.scan(online_mean, (-sympy.oo, 0, 0), (x, V[:, 0]))[0][1],
            "scan(lambda s, x_1: ((t := maximum(s[0], x_1), s[1] * exp(s[0] - t) + exp(x_1 - t)), None), "
            "(-oo, 0), x)[0][1]",
            r"(u_{T} : s_{0} = -\infty, \quad u_{0} = 0, \quad s_{t} = \operatorname{maximum}(s_{t - 1}, x_{t}), \quad "
            r"u_{t} = u_{t - 1} \, \exp(s_{t - 1} - s_{t}) + \exp(x_{t} - s_{t}), \quad t = 1, \ldots, T)",
        ),
        (
            lambda: sa.scan(lambda s, k: (s + k, 2 * k), B, K)[1],
            "scan(lambda s, x: ((), 2 * x), (), K)[1]",
            r"(y_{1:T} : y_{t} = 2 K_{t}, \quad t = 1, \ldots, T)",
        ),
        (  # names of the user are kept
            lambda: sa.scan(lambda s, u: (s * sa.tensor("s") + u, None), 0, x)[0],
            "scan(lambda s_1, x_1: (s_1 * s + x_1, None), 0, x)[0]",
            r"(u_{T} : u_{0} = 0, \quad u_{t} = u_{t - 1} s + x_{t}, \quad t = 1, \ldots, T)",
        ),
    ],
)
def test_printing(y: Callable[[], Any], text: str, latex: str) -> None:
    assert str(y()) == text
    assert sa.latex(y()) == latex


def test_a_gradient_is_read_as_a_loop_from_the_end() -> None:
    g = sa.gradient(sa.scan(cell, B, K)[1], [K])
    assert str(g) == (
        "dK = scan(lambda s, x: (A.T @ (s * (1 - tanh(A @ x[0])**2)) + x[1], s),\n"
        "     zeros(d), (H, dO), reverse=True)[1]              # a recurrence, step by step backwards\n"
        "H = scan(lambda s, x: (tanh(A @ s) + x, s), B, K)[1]  # where"
    )
    assert r"s_{T + 1} = 0_{d}, \quad s_{t} = A^{\top} (s_{t + 1} \odot (1 - \tanh(A H_{t})^{\odot 2}))" in sa.latex(g)


def test_index_style_has_entries_of_loops() -> None:
    S, O = sa.scan(linear, sa.zeros(d, e), (K, V, Q))
    of_state = (
        r"(S_{T} : S_{0} = 0_{d \times e}, \quad S_{t} = \gamma S_{t - 1} + K_{t} V_{t}^{\top}, \quad t = 1, \ldots, T)"
    )
    assert sa.latex(S, style="index") == of_state + "_{i j}"
    assert sa.latex(Q @ S, style="index") == r"\sum_{k = 0}^{d - 1} Q_{i k} " + of_state + "_{k j}"
    assert sa.latex(sa.scan(cell, B, K, reverse=True)[1], style="index").endswith(r"t = T, \ldots, 1)_{i j}")
    assert sa.latex(O[2:], style="index").endswith(r"t = 1, \ldots, T)_{i + 2, j}")


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
    assert (
        r"a_{t} = \exp((H_{1})_{t} - \operatorname{maximum}((H_{1})_{t}, x_{t})), \quad u_{t} = u_{t + 1} a_{t}"
        in shown
    )
    assert r"y_{t} = c_{t} (1 - [(H_{1})_{t} \ge x_{t}]) + b_{t}, \quad t = T, \ldots, 1 )" in shown
    assert len(shown) < 1000
