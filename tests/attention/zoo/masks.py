"""Attention under masks; in PyTorch each mask is written as its loops, or as the slices of keys that are left."""

from __future__ import annotations

from typing import Any

import symattn as sa

from .entry import SIZES, S, T, Variant, d, e, h, torch, variant
from .scores import K, M, Q, V, attend

KS, VS = sa.tensor("K", T, d), sa.tensor("V", T, e)  # as many keys as queries
QB, KB, VB = sa.tensor("Q", h, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)  # a batch
N = sa.tensor("n", h, integer=True)


def masked(mask: Any, keys: Any = KS, values: Any = VS, **more: Any) -> sa.Tensor:
    return sa.attention.scaled_dot_product(Q, keys, values, mask=sa.let("M", mask), **more)


def visible(q: Any, k: Any, seen: Any) -> Any:
    """The boolean mask of one condition of a query and a key, by a loop."""
    return torch.tensor([[seen(i, j) for j in range(k.shape[-2])] for i in range(q.shape[-2])])


def where_seen(seen: Any) -> Any:
    return lambda q, k, v: attend(q, k, v, visible(q, k, seen))


@variant
def causal_mask():
    def prefixes(q, k, v):
        return torch.cat([attend(q[i : i + 1], k[: i + 1], v[: i + 1]) for i in range(len(q))])

    return Variant(masked(sa.attention.causal_mask(T)), [Q, KS, VS], prefixes)


@variant
def causal_mask_bottom_right():
    def prefixes(q, k, v):
        seen = [len(k) - len(q) + i + 1 for i in range(len(q))]
        return torch.cat([attend(q[i : i + 1], k[:n], v[:n]) for i, n in enumerate(seen)])

    mask = sa.attention.causal_mask(T, S, align="bottom-right")
    return Variant(masked(mask, K, V), [Q, K, V], prefixes)


@variant
def causal_mask_offset():
    """A batch whose sequences have n keys in a cache; a negative n leaves rows without keys."""

    def each(q, k, v, n):
        rows = []
        for b, cached in enumerate(n.tolist()):
            seen = visible(q[b], k[b], lambda i, j, cached=cached: j <= i + cached)
            rows.append(attend(q[b], k[b], v[b], seen))
        return torch.stack(rows)

    mask = sa.let("M", sa.attention.causal_mask(T, S, offset=N))
    output = sa.attention.scaled_dot_product(QB, KB, VB, mask=mask)
    return Variant(output, [QB, KB, VB], each, (N,), {N: lambda rng, shape: rng.integers(-2, 3, shape)})


@variant
def key_padding_mask():
    def each(q, k, v, n):
        rows = [attend(q[b], k[b, :own], v[b, :own]) for b, own in enumerate(n.tolist())]
        return torch.stack(rows)

    mask = sa.let("M", sa.attention.key_padding_mask(S, N))
    output = sa.attention.scaled_dot_product(QB, KB, VB, mask=mask)
    return Variant(output, [QB, KB, VB], each, (N,), {N: lambda rng, shape: rng.integers(1, SIZES[S] + 1, shape)})


@variant
def sliding_window_mask():
    def windows(q, k, v):
        parts = [(slice(i, i + 1), slice(max(i - 2, 0), i + 1)) for i in range(len(q))]
        return torch.cat([attend(q[own], k[seen], v[seen]) for own, seen in parts])

    return Variant(masked(sa.attention.sliding_window_mask(T, left=2, right=0)), [Q, KS, VS], windows)


@variant
def sliding_window_mask_includes_self():
    mask = sa.attention.sliding_window_mask(T, left=2, includes_self=True) & sa.attention.causal_mask(T)
    return Variant(masked(mask), [Q, KS, VS], where_seen(lambda i, j: j <= i and i - j < 2))


@variant
def prefix_mask():
    mask = sa.attention.prefix_mask(T, prefix=2)
    return Variant(masked(mask), [Q, KS, VS], where_seen(lambda i, j: j < 2 or j <= i))


@variant
def dilated_mask():
    mask = sa.attention.dilated_mask(T, S, step=2) & sa.attention.sliding_window_mask(T, S, left=2, right=2)
    return Variant(masked(mask, K, V), [Q, K, V], where_seen(lambda i, j: j in (i - 2, i, i + 2)))


@variant
def global_mask():
    mask = sa.attention.global_mask(T, tokens=1) | sa.attention.sliding_window_mask(T, left=1, right=1)
    return Variant(masked(mask), [Q, KS, VS], where_seen(lambda i, j: 0 in (i, j) or abs(i - j) <= 1))


@variant
def document_mask():
    s = sa.tensor("s", T, integer=True)

    def documents(q, k, v, s):
        output = torch.zeros_like(v)
        for number in s.unique():
            own = (s == number).nonzero()[:, 0]
            output = output.index_copy(0, own, attend(q[own], k[own], v[own]))
        return output

    output = masked(sa.attention.document_mask(s))
    return Variant(output, [Q, KS, VS], documents, (s,), {s: lambda rng, shape: rng.integers(0, 2, shape)})


@variant
def as_bias():
    def added(q, k, v):
        future = torch.triu(torch.full((len(q), len(q)), -torch.inf, dtype=q.dtype), 1)
        return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5 + future, -1) @ v

    bias = sa.let("B", sa.attention.as_bias(sa.attention.causal_mask(T)))
    return Variant(sa.attention.scaled_dot_product(Q, KS, VS, bias=bias), [Q, KS, VS], added)


@variant
def mask_polarity_block():
    blocked = sa.attention.scaled_dot_product(Q, K, V, mask=M, mask_polarity="block")
    return Variant(blocked, [Q, K, V], lambda q, k, v, blocks: attend(q, k, v, ~blocks), data=(M,))
