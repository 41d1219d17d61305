"""Several heads: by head and fused, with shared keys, mixed, subtracted, gated."""

from __future__ import annotations

import symattn as sa

from .entry import SIZES, D, S, T, Variant, d, e, f, h, m, r, torch, variant
from .projections import by_head
from .scores import KH, QH, VH, M, attend, weights

X, Y, W_o = sa.tensor("X", T, D), sa.tensor("Y", S, f), sa.tensor("W_o", h * e, r)
ONE_INPUT = [sa.tensor("W_q", h, D, d), sa.tensor("W_k", h, D, d), sa.tensor("W_v", h, D, e)]
FUSED = [sa.tensor("W_q", D, h * d), sa.tensor("W_k", D, h * d), sa.tensor("W_v", D, h * e)]


def side_by_side(heads):
    return heads.transpose(-2, -3).flatten(-2)


@variant
def multi_head():
    """Weights of each head, keys and values of other tokens, and the sum over heads of the products with W_o."""
    weights_of = [ONE_INPUT[0], sa.tensor("W_k", h, f, d), sa.tensor("W_v", h, f, e)]
    by_heads = sa.tensor("W_o", h, e, r)

    def torch_multi_head(x, y, wq, wk, wv, wo):
        each = (attend(x @ wq[k], y @ wk[k], y @ wv[k]) @ wo[k] for k in range(len(wq)))
        return sum(each)

    output = sa.attention.multi_head(X, Y, Y, *weights_of, by_heads)
    return Variant(output, [X, Y, *weights_of, by_heads], torch_multi_head)


@variant
def multi_head_fused():
    """One matrix for the queries of all heads, and so on; W_o acts on the joined heads; a batch of sequences."""
    batch = sa.tensor("X", m, T, D)

    def torch_multi_head(x, wq, wk, wv, wo):
        q, k, v = (by_head(x @ w, SIZES[h]) for w in (wq, wk, wv))
        return side_by_side(attend(q, k, v)) @ wo

    output = sa.attention.multi_head(batch, batch, batch, *FUSED, W_o, heads=h)
    return Variant(output, [batch, *FUSED, W_o], torch_multi_head, keywords=(d, e, h))


@variant
def multi_head_joined():
    """The heads of a batch of sequences side by side, with weights of each head and no output matrix; masked."""
    batch, keep = sa.tensor("X", m, T, D), sa.tensor("M", T, T, binary=True)

    def torch_multi_head(x, wq, wk, wv, keep):
        return torch.cat([attend(x @ wq[k], x @ wk[k], x @ wv[k], keep) for k in range(len(wq))], -1)

    output = sa.attention.multi_head(batch, batch, batch, *ONE_INPUT, mask=keep)
    return Variant(output, [batch, *ONE_INPUT], torch_multi_head, data=(keep,))


@variant
def grouped_query():
    """The heads of a group next to each other."""
    Q, K, V = sa.tensor("Q", h * e, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, f)

    def torch_grouped(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], enable_gqa=True)[0]

    return Variant(sa.attention.grouped_query(Q, K, V), [Q, K, V], torch_grouped)


@variant
def grouped_query_strided():
    """Every e-th query head in one group."""
    Q, K, V = sa.tensor("Q", m, T, d), sa.tensor("K", e, S, d), sa.tensor("V", e, S, f)

    def torch_grouped(q, k, v, keep):
        return torch.stack([attend(q[i], k[i % len(k)], v[i % len(k)], keep) for i in range(len(q))])

    output = sa.attention.grouped_query(Q, K, V, head_map="strided", mask=M)
    return Variant(output, [Q, K, V], torch_grouped, data=(M,))


@variant
def multi_query():
    """One head of keys and values for all query heads, in a batch."""
    Q, K, V = sa.tensor("Q", m, h, T, d), sa.tensor("K", m, S, d), sa.tensor("V", m, S, e)

    def torch_multi_query(q, k, v):
        return torch.stack([attend(q[:, i], k, v) for i in range(q.shape[1])], 1)

    return Variant(sa.attention.multi_query(Q, K, V), [Q, K, V], torch_multi_query)


@variant
def talking_heads():
    """Three numbers of heads: of queries and keys, of the softmax, and of values."""
    V, L, W = sa.tensor("V", f, S, e), sa.tensor("W_l", h, m), sa.tensor("W_w", m, f)

    def torch_talking(q, k, v, logits, mixing, keep):
        z = torch.einsum("hij,hg->gij", q @ k.mT * q.shape[-1] ** -0.5, logits)
        return torch.einsum("hij,hg->gij", weights(z, keep), mixing) @ v

    output = sa.attention.talking_heads(QH, KH, V, L, W, mask=M)
    return Variant(output, [QH, KH, V, L, W], torch_talking, data=(M,))


@variant
def differential():
    """With the published lambda, of the second layer, and a gain."""
    Q2, K2, gain = sa.tensor("Q_2", h, T, d), sa.tensor("K_2", h, S, d), sa.tensor("g", e)
    Q1, K1 = sa.tensor("Q_1", h, T, d), sa.tensor("K_1", h, S, d)
    vectors = [sa.tensor(name, d) for name in ("a", "b", "c", "f")]

    def torch_differential(q1, k1, q2, k2, v, a, b, c, f, gain):
        initial = 0.8 - 0.6 * torch.exp(torch.tensor(-0.3, dtype=q1.dtype))
        lam = torch.exp((a * b).sum()) - torch.exp((c * f).sum()) + initial
        p1, p2 = (weights(q @ k.mT * q.shape[-1] ** -0.5) for q, k in ((q1, k1), (q2, k2)))
        o = (p1 - lam * p2) @ v
        return torch.nn.functional.rms_norm(o, o.shape[-1:], gain, 1e-5) * (1 - initial)

    initial = sa.attention.lambda_init(1)
    lam = sa.attention.differential_lambda(*vectors, initial)
    output = sa.attention.differential(Q1, K1, Q2, K2, VH, lam, initial=initial, gain=gain)
    return Variant(output, [Q1, K1, Q2, K2, VH, *vectors, gain], torch_differential)


@variant
def differential_v2():
    Q1, Q2, lam = sa.tensor("Q_1", h, T, d), sa.tensor("Q_2", h, T, d), sa.tensor("l", h, T)

    def torch_differential(q1, q2, k, v, lam, keep):
        return attend(q1, k, v, keep) - torch.sigmoid(lam)[..., None] * attend(q2, k, v, keep)

    output = sa.attention.differential_v2(Q1, Q2, KH, VH, lam, mask=M)
    return Variant(output, [Q1, Q2, KH, VH, lam], torch_differential, data=(M,))


@variant
def gated():
    """A gate for each feature, with fused weights."""
    W_g = sa.tensor("W_g", D, h * e)

    def torch_gated(x, wq, wk, wv, wg, wo):
        q, k, v = (by_head(x @ w, SIZES[h]) for w in (wq, wk, wv))
        return (torch.sigmoid(x @ wg) * side_by_side(attend(q, k, v))) @ wo

    output = sa.attention.gated(X, *FUSED, W_g, W_o, heads=h)
    return Variant(output, [X, *FUSED, W_g, W_o], torch_gated, keywords=(d, e, h))


@variant
def gated_by_head():
    """One gate for each token and head, with weights of each head, in a batch."""
    batch, W_g, by_heads = sa.tensor("X", m, T, D), sa.tensor("W_g", D, h), sa.tensor("W_o", h, e, r)

    def torch_gated(x, wq, wk, wv, wg, wo):
        opened = torch.sigmoid(x @ wg)
        each = (opened[..., k, None] * attend(x @ wq[k], x @ wk[k], x @ wv[k]) @ wo[k] for k in range(len(wq)))
        return sum(each)

    output = sa.attention.gated(batch, *ONE_INPUT, W_g, by_heads, gate="head")
    return Variant(output, [batch, *ONE_INPUT, W_g, by_heads], torch_gated)


def turned(x):
    """Rotary positions: feature c and the one half a row further are the two parts of a complex number."""
    half = x.shape[-1] // 2
    p, c = torch.arange(x.shape[-2], dtype=x.dtype), torch.arange(half, dtype=x.dtype)
    z = torch.complex(x[..., :half], x[..., half:]) * torch.exp(1j * torch.outer(p, 10000 ** (-c / half)))
    return torch.cat([z.real, z.imag], -1)


LATENT = {
    name: sa.tensor(name, shape)
    for name, shape in {
        "W_dkv": (D, m), "W_uk": (h, m, d), "W_uv": (h, m, e), "W_q": (h, D, d), "W_qr": (h, D, f), "W_kr": (D, f),
    }.items()
}  # fmt: skip


def torch_latent(x, down, uk, uv, wq, qr, kr, keep):
    c, shared = x @ down, turned(x @ kr)
    outputs = []
    for k in range(len(uk)):
        q, key = torch.cat([x @ wq[k], turned(x @ qr[k])], -1), torch.cat([c @ uk[k], shared], -1)
        outputs.append(attend(q, key, c @ uv[k], keep))
    return torch.cat(outputs, -1)


@variant
def latent():
    """Queries by one matrix; causal."""
    keep = sa.tensor("M", T, T, binary=True)
    output = sa.attention.latent(X, **LATENT, mask=keep)
    return Variant(output, [X, *LATENT.values()], torch_latent, data=(keep,))


@variant
def latent_compressed():
    """Queries by way of a latent of their own, an output matrix, pairs of neighbouring features turned."""
    down, weights_of = sa.tensor("W_dq", D, r), dict(LATENT)
    weights_of["W_q"], weights_of["W_qr"] = sa.tensor("W_q", h, r, d), sa.tensor("W_qr", h, r, f)
    by_heads = sa.tensor("W_o", h, e, D)

    def torch_compressed(x, down, uk, uv, wq, qr, kr, dq, wo):
        def pairs(x):
            return turned(torch.cat([x[..., ::2], x[..., 1::2]], -1))

        c, c_q, key, o = x @ down, x @ dq, pairs(x @ kr), 0
        for k in range(len(uk)):
            z = (c_q @ wq[k]) @ (c @ uk[k]).T + pairs(c_q @ qr[k]) @ key.T
            o = o + torch.softmax(z * (wq.shape[2] + qr.shape[2]) ** -0.5, -1) @ (c @ uv[k]) @ wo[k]
        return o

    output = sa.attention.latent(X, **weights_of, W_dq=down, W_o=by_heads, layout="interleaved")
    return Variant(output, [X, *weights_of.values(), down, by_heads], torch_compressed)


@variant
def latent_absorbed():
    keep = sa.tensor("M", T, T, binary=True)
    output = sa.attention.latent_absorbed(X, **LATENT, mask=keep)
    return Variant(output, [X, *LATENT.values()], torch_latent, data=(keep,))
