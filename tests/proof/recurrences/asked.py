"""What the tables of recurrences are made of: claims with the inductions behind them, and tensors that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import sympy

import symattn as sa


class Asked(NamedTuple):
    """A claim, its inductions, and what is to come of it."""

    left: Any
    right: Any
    by: Any = None
    verdict: str = "proved"


Table = dict[str, Callable[[], Asked]]

T, S, L, d, e, B, b, h = sa.sizes("T S L d e B b h")
K, V, Q = sa.tensor("K", T, d), sa.tensor("V", T, e), sa.tensor("Q", T, d)
x, z, g, beta = sa.tensor("x", T), sa.tensor("z", T), sa.tensor("g", T), sa.tensor("beta", T)
a, G, X = sa.tensor("a", T, positive=True), sa.tensor("G", T, d), sa.tensor("X", T, d)
S_0, START = sa.tensor("S_0", d, e), sa.zeros(d, e)
gamma = sympy.Symbol("gamma", positive=True)

# as many places, in B blocks of b
Q_ALL, K_ALL, V_ALL = sa.tensor("Q", B * b, d), sa.tensor("K", B * b, d), sa.tensor("V", B * b, e)


def by(final: Any = (), outputs: Any = (), free: Any = (), inner: Any = ()) -> Any:
    return sa.induction(final=final, outputs=outputs, free=free, inner=inner)


def blocks(*several: Any) -> tuple[Any, ...]:
    """Sequences of B * b places, in B blocks of b."""
    return tuple(sa.split_axis(x, 0, (B, b)) for x in several)


def in_a_row(x: Any) -> Any:
    """The places of all blocks."""
    return sa.merge_axes(x, (0, 1))


def shifted(M: Any) -> Any:
    """A matrix without its diagonal and what is above."""
    return sa.tril(M, -1)
