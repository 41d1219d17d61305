"""Positions that enter through the scores, in PyTorch by loops over pairs of places or by gathered tables."""

from __future__ import annotations

import math
from typing import Any

import symattn as sa

from .entry import D, S, T, Variant, d, e, h, r, torch, variant
from .scores import attend, weights

attention = sa.attention
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
QH, KH, VH = sa.tensor("Q", h, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)
KT, VT = sa.tensor("K", h, T, d), sa.tensor("V", h, T, e)


def ahead(n: int, keys: int, offset: int = 0) -> Any:
    """How far each query is ahead of each key."""
    return (offset + torch.arange(n)[:, None] - torch.arange(keys)).double()


def causal(n: int) -> Any:
    return torch.ones(n, n, dtype=torch.bool).tril()


@variant
def alibi():
    slopes = sa.tensor("m", h)
    bias = attention.alibi(T, slopes=slopes)
    O = attention.scaled_dot_product(QH, KT, VT, bias=bias, mask=attention.causal_mask(T))

    def forward(q, k, v, slopes):
        n = q.shape[-2]
        return attend(q, k, v, causal(n), -slopes[:, None, None] * ahead(n, n))

    return Variant(O, [QH, KT, VT, slopes], forward)


@variant
def alibi_slopes():
    X = sa.tensor("X", 4, T, S)
    bias = attention.alibi(T, S, slopes=attention.alibi_slopes(4), symmetric=True)

    def forward(x):
        slopes = torch.tensor([2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8], dtype=torch.float64)
        return torch.softmax(x - slopes[:, None, None] * ahead(*x.shape[1:]).abs(), -1)

    return Variant(attention.probabilities(X + bias), [X], forward)


@variant
def alibi_slopes_six():
    X = sa.tensor("X", 6, T, S)
    bias = attention.alibi(T, S, slopes=attention.alibi_slopes(6), offset=S - T)

    def forward(x):
        slopes = torch.tensor([2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3], dtype=torch.float64)
        far = ahead(x.shape[1], x.shape[2], x.shape[2] - x.shape[1])
        return torch.softmax(x - slopes[:, None, None] * far, -1)

    return Variant(attention.probabilities(X + bias), [X], forward)


@variant
def t5():
    def bucket(x):  # of a distance key - query; 8 buckets, the last from 6 on
        side = 4 if x > 0 else 0
        x = abs(x)
        return side + (x if x < 2 else min(2 + int(math.log(x / 2) / math.log(3) * 2 + 1e-9), 3))

    def forward(q, k, v, table):
        n, keys = q.shape[-2], k.shape[-2]
        places = [[bucket(j - i) for j in range(keys)] for i in range(n)]
        return attend(q, k, v, bias=table[:, torch.tensor(places)], scale=1)

    table = sa.tensor("b", h, 8)
    bias = attention.t5_bias(T, S, table, max_distance=6)
    return Variant(attention.scaled_dot_product(QH, KH, VH, scale=1, bias=bias), [QH, KH, VH, table], forward)


@variant
def kerple():
    r1, r2 = sa.tensor("r_1", h, positive=True), sa.tensor("r_2", h, positive=True)
    O = attention.scaled_dot_product(QH, KH, VH, bias=attention.kerple(T, S, r1=r1, r2=r2))

    def forward(q, k, v, a, b):
        far = ahead(q.shape[-2], k.shape[-2]).abs()
        return attend(q, k, v, bias=-a[:, None, None] * torch.log(1 + b[:, None, None] * far))

    return Variant(O, [QH, KH, VH, r1, r2], forward)


@variant
def kerple_power():
    r1, r2 = sa.tensor("r_1", positive=True), sa.tensor("r_2", positive=True)
    O = attention.scaled_dot_product(Q, K, V, bias=attention.kerple(T, S, r1=r1, r2=r2, form="power"))

    def forward(q, k, v, a, b):
        far = ahead(q.shape[-2], k.shape[-2]).abs()
        return attend(q, k, v, bias=-a * far**b)

    return Variant(O, [Q, K, V, r1, r2], forward)


@variant
def sandwich():
    ratios = sa.tensor("rho", h, positive=True)
    O = attention.scaled_dot_product(QH, KH, VH, bias=attention.sandwich(T, S, ratios=ratios, width=8))

    def forward(q, k, v, ratio):
        waves = sum(torch.cos(ahead(q.shape[-2], k.shape[-2]) * 1e4 ** (-2 * c / 8)) for c in range(4))
        return attend(q, k, v, bias=waves / ratio[:, None, None])

    return Variant(O, [QH, KH, VH, ratios], forward)


@variant
def fire():
    c, L = sa.tensor("c", positive=True), sa.tensor("L", positive=True)
    W_1, b_1, W_2, b_2 = sa.tensor("W_1", r), sa.tensor("b_1", r), sa.tensor("W_2", r, h), sa.tensor("b_2", h)
    bias = attention.fire(T, c=c, L=L, W_1=W_1, b_1=b_1, W_2=W_2, b_2=b_2)

    def forward(v, c, L, w1, b1, w2, b2):
        n = v.shape[-2]
        i = torch.arange(n, dtype=torch.float64)
        x = torch.log(c * ahead(n, n).abs() + 1) / torch.log(c * torch.maximum(i, L) + 1)[:, None]
        hidden = torch.relu(x[..., None] * w1 + b1)
        return (torch.einsum("ijr,rh->hij", hidden, w2) + b2[:, None, None]) @ v

    draw = {L: lambda rng, shape: rng.uniform(1.1, 1.9)}  # some places are before it, and some behind
    # without a softmax, to which b_2 would not matter
    return Variant(sa.let("O", bias @ VT), [VT, c, L, W_1, b_1, W_2, b_2], forward, draw=draw)


@variant
def log_cpb():
    W_1, b_1, W_2 = sa.tensor("W_1", 2, r), sa.tensor("b_1", r), sa.tensor("W_2", r, T)

    def forward(w1, b1, w2):
        at = [(y, x) for y in range(2) for x in range(3)]  # h rows of e tokens
        t = torch.tensor([[(a - c, b - d) for c, d in at] for a, b in at], dtype=torch.float64)
        t = torch.where(t < 0, -1.0, 1.0) * torch.log(1 + t.abs())
        return (torch.relu(t @ w1 + b1) @ w2).permute(2, 0, 1)

    bias = attention.log_cpb(h, e, W_1=W_1, b_1=b_1, W_2=W_2)
    return Variant(bias, [W_1, b_1, W_2], forward, keywords=(h, e))


@variant
def transformer_xl():
    R, u, w = sa.tensor("R", S, d), sa.tensor("u", h, d), sa.tensor("w", h, d)
    O = attention.transformer_xl(QH, KH, VH, R, u, w)

    def forward(q, k, v, rel, u, w):
        rows, (n, keys) = [], (q.shape[-2], k.shape[-2])
        for i in range(n):
            p = i + keys - n  # the place of the query; it reads the keys up to there
            content = torch.einsum("hd,hjd->hj", q[:, i] + u, k[:, : p + 1])
            place = torch.einsum("hd,jd->hj", q[:, i] + w, rel[: p + 1].flip(0))
            rows.append(weights((content + place) / math.sqrt(q.shape[-1]))[:, None] @ v[:, : p + 1])
        return torch.cat(rows, 1)

    return Variant(O, [QH, KH, VH, R, u, w], forward)


@variant
def shaw():
    A_k, A_v = sa.tensor("A_k", 5, d), sa.tensor("A_v", 5, e)

    def forward(q, k, v, ak, av):
        at = (2 - ahead(q.shape[-2], k.shape[-2])).clamp(0, 4).long()
        return pairwise(q, k, v, ak[at], av[at])

    return Variant(attention.shaw(QH, KH, VH, A_k, A_v), [QH, KH, VH, A_k, A_v], forward)


@variant
def shaw_free():
    a, b = sa.tensor("a", T, S, d), sa.tensor("b", T, S, e)
    return Variant(attention.shaw(Q, K, V, a, b), [Q, K, V, a, b], pairwise)


def pairwise(q: Any, k: Any, v: Any, a: Any, b: Any) -> Any:
    """Keys and values of their own for each pair of places."""
    keys, values = k[..., None, :, :] + a, v[..., None, :, :] + b
    p = torch.softmax(torch.einsum("...td,...tsd->...ts", q, keys) / math.sqrt(q.shape[-1]), -1)
    return torch.einsum("...ts,...tse->...te", p, values)


@variant
def relative_rows():
    A = sa.tensor("A", 2 * D + 1, d)
    X = sa.tensor("X", T, S)

    def forward(a, x):
        at = (7 - ahead(*x.shape)).clamp(0, 14).long()
        return torch.einsum("ts,tsd->td", x, a[at])

    return Variant(sa.let("Y", sa.einsum("ts,tsd->td", X, attention.relative_rows(A, T, S))), [A, X], forward)
