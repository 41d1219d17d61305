"""Positions that enter through the tokens or through queries and keys, in PyTorch by complex numbers and by loops."""

from __future__ import annotations

import math
from typing import Any

import symattn as sa

from .entry import D, S, T, Variant, d, e, h, m, r, torch, variant
from .scores import attend

attention = sa.attention
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
QH, KH, VH = sa.tensor("Q", h, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)


def places(x: Any) -> Any:
    return torch.arange(x.shape[-2], dtype=torch.float64)


def frequencies(pairs: int, base: float = 1e4) -> Any:
    return base ** (-torch.arange(pairs, dtype=torch.float64) / pairs)


def turned(x: Any, p: Any, layout: str = "half", omega: Any = None) -> Any:
    """Each pair as a complex number, times e^{i angle}."""
    a, b = x.chunk(2, -1) if layout == "half" else (x[..., ::2], x[..., 1::2])
    angle = p[..., None] * (frequencies(a.shape[-1]) if omega is None else omega)
    z = torch.complex(a, b) * torch.polar(torch.ones_like(angle), angle)
    if layout == "half":
        return torch.cat([z.real, z.imag], -1)
    return torch.stack([z.real, z.imag], -1).flatten(-2)


@variant
def sinusoidal():
    def wave(width, n):
        table = torch.zeros(n, width, dtype=torch.float64)
        for p in range(n):
            for c in range(width // 2):
                angle = p / 1e4 ** (2 * c / width)
                table[p, 2 * c], table[p, 2 * c + 1] = math.sin(angle), math.cos(angle)
        return table

    def forward(x):
        y = x + wave(x.shape[-1], x.shape[-2])
        return attend(y, y, y)

    X = sa.tensor("X", T, d)
    Y = sa.let("Y", X + attention.sinusoidal(T, d))
    return Variant(attention.scaled_dot_product(Y, Y, Y), [X], forward)


@variant
def sinusoidal_half():
    def forward(x):
        angle = places(x)[:, None] * frequencies(x.shape[-1] // 2)
        return x * torch.cat([angle.sin(), angle.cos()], -1)

    X = sa.tensor("X", T, d)
    return Variant(sa.let("Y", X * attention.sinusoidal(T, d, layout="half")), [X], forward)


@variant
def embed():
    tokens = sa.tensor("t", T, integer=True)
    W_e, W_p = sa.tensor("W_e", r, d), sa.tensor("W_p", D, d)
    return Variant(
        attention.embed(tokens, W_e, W_p),
        [W_e, W_p],
        lambda words, table, t: torch.nn.functional.embedding(t, words) + table[: len(t)],
        data=(tokens,),
        draw={tokens: lambda rng, shape: rng.integers(0, 10, shape)},
    )


@variant
def rotary():
    q, k = attention.rotary(Q), attention.rotary(K)
    return Variant(
        attention.scaled_dot_product(q, k, V),
        [Q, K, V],
        lambda q, k, v: attend(turned(q, places(q)), turned(k, places(k)), v),
    )


@variant
def rotary_interleaved():
    q, k = attention.rotary(Q, layout="interleaved"), attention.rotary(K, layout="interleaved")

    def forward(q, k, v):
        return attend(turned(q, places(q), "interleaved"), turned(k, places(k), "interleaved"), v)

    return Variant(attention.scaled_dot_product(q, k, V), [Q, K, V], forward)


@variant
def rotary_partial():
    def partly(x):
        return torch.cat([turned(x[..., :4], places(x) + 2), x[..., 4:]], -1)

    q, k = (attention.rotary(x, width=4, offset=2) for x in (QH, KH))
    return Variant(
        attention.scaled_dot_product(q, k, VH), [QH, KH, VH], lambda q, k, v: attend(partly(q), partly(k), v)
    )


@variant
def rotary_positions():
    p, g = sa.tensor("p", T, integer=True), sa.tensor("g", S, integer=True)
    q, k = attention.rotary(QH, positions=p), attention.rotary(KH, positions=g)
    draw = {x: lambda rng, shape: rng.integers(0, 50, shape) for x in (p, g)}

    def forward(q, k, v, p, g):
        return attend(turned(q, p), turned(k, g), v)

    return Variant(attention.scaled_dot_product(q, k, VH), [QH, KH, VH], forward, data=(p, g), draw=draw)


@variant
def rotary_frequencies():
    omega = sa.tensor("omega", m)
    X = sa.tensor("X", T, 2 * m)
    return Variant(
        attention.rotary(X, frequencies=omega), [X, omega], lambda x, omega: turned(x, places(x), omega=omega)
    )


@variant
def yarn():
    def bent(pairs, s, old):
        theta = frequencies(pairs)
        kept = ((old * theta / (2 * math.pi) - 1) / (32 - 1)).clamp(0, 1)
        return (1 - kept) * theta / s + kept * theta

    def forward(q, k, v):
        omega, scale = bent(q.shape[-1] // 2, 4, 300), 0.1 * math.log(4) + 1
        return attend(scale * turned(q, places(q), omega=omega), scale * turned(k, places(k), omega=omega), v)

    omega = attention.yarn_frequencies(d, factor=4, length=300)
    q, k = (attention.rotary(x, frequencies=omega, scale=attention.yarn_scale(4)) for x in (Q, K))
    return Variant(attention.scaled_dot_product(q, k, V), [Q, K, V], forward)
