"""Feed-forward layers, blocks of both orders of norm, and a small GPT-2."""

from __future__ import annotations

import symattn as sa

from .entry import D, T, Variant, d, f, m, torch, variant

X = sa.tensor("X", T, d)
W_1, b_1, W_2, b_2 = sa.tensor("W_1", d, f), sa.tensor("b_1", f), sa.tensor("W_2", f, m), sa.tensor("b_2", m)


def torch_mlp(activation):
    return lambda x, w, v, b, c: activation(x @ w + b) @ v + c


def gated_variant(name, activation):
    W, U, O = sa.tensor("W", d, f), sa.tensor("U", d, f), sa.tensor("O", f, m)
    output = sa.attention.swiglu(X, W, U, O) if name == "swiglu" else sa.attention.glu(X, W, U, O, activation=name)
    return Variant(output, [X, W, U, O], lambda x, w, u, o: (activation(x @ w) * (x @ u)) @ o)


def mlp_variant(name, activation):
    output = sa.attention.mlp(X, W_1, W_2, b_1, b_2, activation=name)
    return Variant(output, [X, W_1, W_2, b_1, b_2], torch_mlp(activation))


@variant
def mlp_gelu():
    return mlp_variant("gelu", lambda x: torch.nn.functional.gelu(x))


@variant
def mlp_gelu_tanh():
    return mlp_variant("gelu_tanh", lambda x: torch.nn.functional.gelu(x, approximate="tanh"))


@variant
def mlp_relu():
    return mlp_variant("relu", lambda x: torch.relu(x))


@variant
def mlp_silu_without_biases():
    output = sa.attention.mlp(X, W_1, W_2, activation="silu")
    return Variant(output, [X, W_1, W_2], lambda x, w, v: torch.nn.functional.silu(x @ w) @ v)


@variant
def mlp_of_a_function():
    def squared_relu(x):
        return sa.relu(x) ** 2

    output = sa.attention.mlp(X, W_1, W_2, activation=squared_relu)
    return Variant(output, [X, W_1, W_2], lambda x, w, v: torch.relu(x @ w) ** 2 @ v)


@variant
def glu():
    return gated_variant("sigmoid", lambda x: torch.sigmoid(x))


@variant
def geglu():
    return gated_variant("gelu", lambda x: torch.nn.functional.gelu(x))


@variant
def swiglu():
    return gated_variant("swiglu", lambda x: torch.nn.functional.silu(x))


# --- blocks ---


def torch_heads(q, k, v, keep=None):
    """Attention of heads that are a leading axis."""
    z = q @ k.mT / q.shape[-1] ** 0.5
    return torch.softmax(z if keep is None else z.masked_fill(~keep, -torch.inf), -1) @ v


def torch_norm(x, gain=None, bias=None):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], gain, bias)


@variant
def pre_norm_block():
    x, W_q, W_k = sa.tensor("X", 2, T, D), sa.tensor("W_q", 3, D, 2), sa.tensor("W_k", 3, D, 2)
    W_v, W_o = sa.tensor("W_v", 3, D, 4), sa.tensor("W_o", 3, 4, D)
    U, V = sa.tensor("U", D, 5), sa.tensor("V", 5, D)
    g_1, b_1, g_2 = sa.tensor("gamma_1", D), sa.tensor("beta_1", D), sa.tensor("gamma_2", D)
    a = sa.attention
    output = a.pre_norm_block(
        x,
        lambda x: a.multi_head(x, x, x, W_q, W_k, W_v, W_o, mask=a.causal_mask(T)),
        lambda x: a.mlp(x, U, V),
        norm=(lambda x: a.layer_norm(x, g_1, b_1), lambda x: a.rms_norm(x, g_2)),
    )

    def by_hand(x, q, k, v, o, u, w, g_1, b_1, g_2):
        y = torch_norm(x, g_1, b_1)[:, None]
        keep = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        x = x + torch.einsum("bhte,hed->btd", torch_heads(y @ q, y @ k, y @ v, keep), o)
        y = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * g_2
        return x + torch.nn.functional.gelu(y @ u) @ w

    return Variant(output, [x, W_q, W_k, W_v, W_o, U, V, g_1, b_1, g_2], by_hand)


@variant
def post_norm_block():
    x, weights = sa.tensor("X", T, 6), [sa.tensor(f"W_{k}", 6, 6) for k in "qkvo"]
    U, V, g_2, b_2 = sa.tensor("U", 6, 5), sa.tensor("V", 5, 6), sa.tensor("gamma", 6), sa.tensor("beta", 6)
    a = sa.attention
    output = a.post_norm_block(
        x,
        lambda x: a.multi_head(x, x, x, *weights, heads=2),
        lambda x: a.mlp(x, U, V, activation="relu"),
        norm=(a.layer_norm, lambda x: a.layer_norm(x, g_2, b_2)),
    )

    def by_hand(x, q, k, v, o, u, w, g, b):
        heads = torch_heads(*((x @ weight).unflatten(-1, (2, 3)).transpose(0, 1) for weight in (q, k, v)))
        x = torch_norm(x + heads.transpose(0, 1).flatten(1) @ o)
        return torch_norm(x + torch.relu(x @ u) @ w, g, b)

    return Variant(output, [x, *weights, U, V, g_2, b_2], by_hand)


# --- GPT ---


def gpt_variant(tied, wrt):
    parameters = sa.attention.gpt_parameters(5, T + 1, 4, layers=2, heads=2, hidden=3, tied=tied)
    tokens = sa.tensor("t", T, integer=True)
    chosen = [x for x in parameters.tensors if x.name in wrt]
    given = tuple(x for x in parameters.tensors if x.name not in wrt)

    def by_hand(*arrays):
        table, places, *inner = [dict(zip([*chosen, *given], arrays, strict=False))[x] for x in parameters.tensors]
        tokens = arrays[-1]
        x = table[tokens] + places[: len(tokens)]
        keep = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril()
        while len(inner) > 3:
            g_1, c_1, q, bq, k, bk, v, bv, o, bo, g_2, c_2, u, bu, w, bw = inner[:16]
            y, inner = torch_norm(x, g_1, c_1), inner[16:]
            parts = (
                (y @ weight + bias).unflatten(-1, (2, 2)).transpose(0, 1)
                for weight, bias in ((q, bq), (k, bk), (v, bv))
            )
            x = x + torch_heads(*parts, keep).transpose(0, 1).flatten(1) @ o + bo
            y = torch_norm(x, g_2, c_2)
            x = x + torch.nn.functional.gelu(y @ u + bu, approximate="tanh") @ w + bw
        return torch_norm(x, *inner[:2]) @ (table.mT if tied else inner[2])

    def draw(rng, shape):
        return rng.integers(0, 5, shape)

    output = sa.attention.gpt(tokens, parameters)
    return Variant(output, chosen, by_hand, data=(*given, tokens), draw={tokens: draw})


@variant
def gpt():
    return gpt_variant(True, ("W_e", "W_p", "gamma_a_1", "W_q_1", "b_v_1", "W_in_1", "beta_f_2"))


@variant
def gpt_untied():
    return gpt_variant(False, ("W_e", "b_q_1", "W_o_1", "W_k_2", "b_out_2", "W_u"))
