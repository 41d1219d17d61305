"""Heads: second forms that are proved, gradients of shared keys, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn import attention as att
from symattn.errors import OperandError, ShapeError

T, S, D, E, F, M, h, g, r, d, e, c, m = sa.sizes("T S D E F M h g r d e c m")
X, Y = sa.tensor("X", T, D), sa.tensor("Y", S, E)
W = [sa.tensor("W_q", D, d), sa.tensor("W_k", D, d), sa.tensor("W_v", D, e)]
BY_HEAD = [sa.tensor("W_q", h, D, d), sa.tensor("W_k", h, D, d), sa.tensor("W_v", h, D, e)]
W_o = sa.tensor("W_o", h, e, M)
Q, K, V = sa.tensor("Q", h, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)
GROUPED = sa.tensor("Q", g * r, T, d), sa.tensor("K", g, S, d), sa.tensor("V", g, S, e)
LATENT = {
    "W_dkv": sa.tensor("W_dkv", D, c),
    "W_uk": sa.tensor("W_uk", h, c, d),
    "W_uv": sa.tensor("W_uv", h, c, e),
    "W_q": sa.tensor("W_q", h, D, d),
    "W_qr": sa.tensor("W_qr", h, D, 2 * m),
    "W_kr": sa.tensor("W_kr", D, 2 * m),
}


def proved(left, right):
    assert sa.prove(left, right).status == "proved"


def columns(w):
    """The matrices of all heads side by side."""
    return sa.merge_axes(sa.moveaxis(w, 0, 1), (1, 2))


def rows(w):
    """The matrices of all heads one below the other."""
    return sa.merge_axes(w, (0, 1))


# --- projections ---


def test_keys_and_values_of_the_same_tokens_are_self_attention():
    proved(att.cross_attention(X, X, *W), att.self_attention(X, *W))
    proved(att.self_attention(X, *W), att.scaled_dot_product(X @ W[0], X @ W[1], X @ W[2]))


def test_one_product_is_three_products():
    fused = att.fused_projection(X, sa.concat(W, axis=1), widths=(d, d, e))
    for got, wanted in zip(fused, att.project(X, *W), strict=True):
        proved(got, wanted)


@pytest.mark.parametrize("order", ["qkv", "per-head"])
def test_one_product_is_three_products_of_each_head(order):
    three = [sa.tensor(name, D, h * d) for name in ("W_q", "W_k", "W_v")]
    if order == "qkv":
        fused = sa.concat(three, axis=1)
    else:
        fused = sa.merge_axes(sa.concat([sa.split_axis(w, 1, (h, d)) for w in three], axis=2), (1, 2))
    for got, w in zip(att.fused_projection(X, fused, heads=h, order=order), three, strict=True):
        proved(got, att.split_heads(X @ w, h))


@pytest.mark.parametrize("order", ["head-major", "interleaved"])
def test_splitting_and_merging_are_inverse(order):
    x = sa.tensor("x", T, h * d)
    proved(att.merge_heads(att.split_heads(x, h, order=order), order=order), x)
    proved(att.split_heads(att.merge_heads(Q, order=order), h, order=order), Q)


def test_the_two_orders_differ():
    x = sa.tensor("x", T, h * d)
    assert sa.prove(att.split_heads(x, h), att.split_heads(x, h, order="interleaved")).status == "refuted"


def test_a_width_that_is_one_symbol_is_divided_too():
    assert att.split_heads(sa.tensor("x", T, D), h).shape == (h, T, D / h)


# --- several heads ---


def test_joined_heads_times_a_matrix_are_a_sum_over_heads():
    proved(att.multi_head(X, X, X, *BY_HEAD, rows(W_o)), att.multi_head(X, X, X, *BY_HEAD, W_o))


def test_fused_weights_are_the_weights_of_the_heads_side_by_side():
    fused = list(map(columns, BY_HEAD))
    proved(att.multi_head(X, X, X, *fused, heads=h), att.multi_head(X, X, X, *BY_HEAD))
    proved(att.multi_head(X, X, X, *fused, rows(W_o), heads=h), att.multi_head(X, X, X, *BY_HEAD, W_o))


def test_three_inputs_may_have_three_widths():
    Z = sa.tensor("Z", S, F)
    weights = [sa.tensor("W_q", h, D, d), sa.tensor("W_k", h, E, d), sa.tensor("W_v", h, F, e)]
    assert att.multi_head(X, Y, Z, *weights).shape == (T, e * h)


def test_a_batch_is_one_sequence_after_the_other():
    batch = sa.tensor("X", 3, T, D)
    together = att.multi_head(batch, batch, batch, *BY_HEAD, W_o)
    assert together.shape == (3, T, M)
    proved(together[2], att.multi_head(*[batch[2]] * 3, *BY_HEAD, W_o))


def test_a_single_head_is_plain_attention():
    plain = att.self_attention(X, *W)
    proved(att.multi_head(X, X, X, *(w[None] for w in W)), plain)
    proved(att.multi_head(X, X, X, *W, heads=1), plain)


# --- shared keys ---


def test_one_group_is_multi_query():
    k, v = sa.tensor("K", S, d), sa.tensor("V", S, e)
    for head_map in ("contiguous", "strided"):
        proved(att.multi_query(Q, k, v), att.grouped_query(Q, k[None], v[None], head_map=head_map))


def test_as_many_groups_as_heads_are_multi_head():
    for head_map in ("contiguous", "strided"):
        proved(att.grouped_query(Q, K, V, head_map=head_map), att.scaled_dot_product(Q, K, V))


def test_heads_of_a_group_are_an_axis():
    q, k, v = GROUPED
    for head_map, axes, group in (("contiguous", (g, r), 1), ("strided", (r, g), 0)):
        split = sa.split_axis(q, 0, axes)
        keys, values = (sa.moveaxis(x[None], 0, group) for x in (k, v))
        other = rows(att.scaled_dot_product(split, keys, values))
        proved(att.grouped_query(q, k, v, head_map=head_map), other)


@pytest.mark.parametrize(("head_map", "axes", "group"), [("contiguous", (g, r), 1), ("strided", (r, g), 0)])
def test_the_gradient_of_a_shared_key_is_the_sum_over_its_group(head_map, axes, group):
    q, k, v = GROUPED
    G = sa.tensor("G", g * r, T, e)
    shared = sa.gradient({att.grouped_query(q, k, v, head_map=head_map): G}, [k, v])
    spread = sa.repeat if head_map == "contiguous" else sa.tile
    copies = sa.let("K_own", spread(k, r, axis=0)), sa.let("V_own", spread(v, r, axis=0))
    of_each = sa.gradient({att.scaled_dot_product(q, *copies): G}, copies)
    for x, copy in zip((k, v), copies, strict=True):
        proved(shared[x], sa.sum(sa.split_axis(of_each[copy], 0, axes), axis=group))


def test_group_sizes_may_be_a_quotient():
    q = sa.tensor("Q", h, T, d)
    k, v = sa.tensor("K", g, S, d), sa.tensor("V", g, S, e)
    assert att.grouped_query(q, k, v).shape == (h, T, e)
    numbers = att.grouped_query(sa.tensor("Q", 6, T, d), sa.tensor("K", 3, S, d), sa.tensor("V", 3, S, e))
    assert numbers.shape == (6, T, e)


# --- latent, mixed, subtracted, gated ---


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_latents_are_read_without_keys_and_values(layout):
    proved(att.latent(X, **LATENT, layout=layout), att.latent_absorbed(X, **LATENT, layout=layout))
    proved(att.latent(X, **LATENT, W_o=W_o), att.latent_absorbed(X, **LATENT, W_o=rows(W_o)))


@pytest.mark.parametrize("form", [att.latent, att.latent_absorbed])
def test_a_batch_with_latent_queries_is_one_sequence_after_the_other_checked_numerically(form):
    weights = {**LATENT, "W_q": sa.tensor("W_q", h, E, d), "W_qr": sa.tensor("W_qr", h, E, 2 * m)}
    weights["W_dq"] = sa.tensor("W_dq", D, E)
    batch = sa.tensor("X", 3, T, D)
    pair = [form(batch, **weights, base=500)[1], form(batch[1], **weights, base=500)]
    sizes = {h: 2, m: 3, T: 4, D: 5, E: 6, d: 7, e: 8, c: 9}
    rng, arguments = np.random.default_rng(5), [batch, *weights.values()]
    arrays = [rng.normal(size=[int(n.subs(sizes)) for n in x.shape]) for x in arguments]
    got, wanted = sa.lambdify(arguments, pair)(*arrays)
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_heads_that_say_nothing_to_each_other():
    proved(att.talking_heads(Q, K, V, sa.eye(h), sa.eye(h)), att.scaled_dot_product(Q, K, V))


def test_mixing_by_permutations_moves_the_heads():
    Pi = sa.tensor("Pi", h, h, permutation=True)
    moved = sa.einsum("abc,ad->dbc", V, Pi)
    left = att.talking_heads(Q, K, moved, Pi, sa.eye(h))
    proved(left, sa.einsum("abc,ad->dbc", att.scaled_dot_product(Q, K, V), Pi))


def test_differential_attention_takes_two_passes():
    lam, Q2, K2 = sa.tensor("lam"), sa.tensor("Q_2", h, T, d), sa.tensor("K_2", h, S, d)
    one, two = att.scaled_dot_product(Q, K, V), att.scaled_dot_product(Q2, K2, V)
    proved(att.differential(Q, K, Q2, K2, V, lam), att.rms_norm(one - lam * two) / 5)
    capped = {"softcap": 5, "scale": sa.tensor("s")}
    one, two = att.scaled_dot_product(Q, K, V, **capped), att.scaled_dot_product(Q2, K2, V, **capped)
    proved(att.differential(Q, K, Q2, K2, V, lam, initial=0, **capped), att.rms_norm(one - lam * two))


def test_lambda_starts_at_a_fifth_and_grows_to_four():
    assert att.lambda_init(0) == sympy.Rational(1, 5)
    assert sympy.limit(att.lambda_init(sympy.Symbol("l")), sympy.Symbol("l"), sympy.oo) == sympy.Rational(4, 5)
    zero = sa.zeros(d)
    proved(att.differential_lambda(zero, zero, zero, zero, att.lambda_init(0)), sa.ones() / 5)


def test_open_gates_leave_half():
    batch = att.gated(X, *BY_HEAD, sa.zeros(h, D, e), W_o)
    proved(batch, att.multi_head(X, X, X, *BY_HEAD, W_o) / 2)


def test_a_gate_for_a_head_is_one_for_all_its_features():
    W_g = sa.tensor("W_g", D, h)
    for_each = W_g.T[..., None] * sa.ones(1, 1, e)
    proved(att.gated(X, *BY_HEAD, W_g, W_o, gate="head"), att.gated(X, *BY_HEAD, for_each, W_o))


def test_fused_gates_are_the_gates_of_the_heads_side_by_side():
    W_g = sa.tensor("W_g", h, D, e)
    fused = list(map(columns, [*BY_HEAD, W_g]))
    proved(att.gated(X, *fused, rows(W_o), heads=h), att.gated(X, *BY_HEAD, W_g, W_o))


# --- what is refused ---

ten = sa.tensor("x", T, 10)
six = [sa.tensor(name, D, 6) for name in ("W_q", "W_k", "W_v")]
WRONG = {
    "split_heads: x[T, 10] has 10 features, which 3 heads do not divide": lambda: att.split_heads(ten, 3),
    "split_heads: x[T, 10] has 10 features, which 20 heads do not divide": lambda: att.split_heads(ten, 20),
    "split_heads: order is 'head-major' or 'interleaved', not 'heads'": lambda: att.split_heads(ten, 2, order="heads"),
    "merge_heads: x[T, 10] has 2 axes where X[.., h, T, d] is meant": lambda: att.merge_heads(ten),
    "project: X[T, D] and W_q[E, d] differ in the width of the tokens: axis -1 of the first is D, axis -2 of the "
    "second is E": lambda: att.project(X, sa.tensor("W_q", E, d), *W[1:]),
    "project: the weights w[D] have 1 axes; they are W[D, d] or, by head, W[h, D, d]": (
        lambda: att.project(X, sa.tensor("w", D), *W[1:])
    ),
    "fused_projection: the weights W[h, D, d] have 3 axes where W_qkv[D, n] is meant": (
        lambda: att.fused_projection(X, sa.tensor("W", h, D, d))
    ),
    "fused_projection: the 10 columns of W[D, 10] are not three equal blocks; give widths=": (
        lambda: att.fused_projection(X, sa.tensor("W", D, 10))
    ),
    "fused_projection: the widths (4, 4, 4) are not three that add up to the 10 columns of W[D, 10]": (
        lambda: att.fused_projection(X, sa.tensor("W", D, 10), widths=(4, 4, 4))
    ),
    "fused_projection: W[D, 10] has 4 columns of Q, which 3 heads do not divide": (
        lambda: att.fused_projection(X, sa.tensor("W", D, 10), widths=(4, 3, 3), heads=3)
    ),
    "fused_projection: order='per-head' says how the columns lie in each head: give heads=": (
        lambda: att.fused_projection(X, sa.tensor("W", D, 9), order="per-head")
    ),
    "fused_projection: order is 'qkv' or 'per-head', not 'kqv'": (
        lambda: att.fused_projection(X, sa.tensor("W", D, 9), order="kqv")
    ),
    "multi_head: the fused weights W_q[D, d] do not say how many heads there are: give heads=": (
        lambda: att.multi_head(X, X, X, *W)
    ),
    "multi_head: W_q[D, 6] has 6 columns, which 4 heads do not divide": lambda: att.multi_head(X, X, X, *six, heads=4),
    "multi_head: of W_q[h, D, d], W_k[h, D, d], W_v[D, e] some are fused and some given by head; use one form for all "
    "three": lambda: att.multi_head(X, X, X, *BY_HEAD[:2], W[2]),
    "multi_head: W_q[h, D, d] has h heads, not 8; for key heads that several query heads share, project and use "
    "grouped_query": lambda: att.multi_head(X, X, X, *BY_HEAD, heads=8),
    "multi_head: W_k[g, D, d] has g heads, not h; for key heads that several query heads share, project and use "
    "grouped_query": lambda: att.multi_head(X, X, X, BY_HEAD[0], sa.tensor("W_k", g, D, d), BY_HEAD[2]),
    "multi_head: X[T, D] and W_k[h, E, d] differ in the width of the tokens: axis -1 of the first is D, axis -2 of the "
    "second is E": lambda: att.multi_head(X, X, X, BY_HEAD[0], sa.tensor("W_k", h, E, d), BY_HEAD[2]),
    "multi_head: the output weights W_o[M] have 1 axes; they are W_o[h*e, M] or, by head, W_o[h, e, M]": (
        lambda: att.multi_head(X, X, X, *BY_HEAD, sa.tensor("W_o", M))
    ),
    "multi_head: H[T, e*h] and W_o[d*h, M] differ in the width of the joined heads": (
        lambda: att.multi_head(X, X, X, *BY_HEAD, sa.tensor("W_o", h * d, M))
    ),
    "multi_head: O[h, T, e] and W_o[h, d, M] differ in the width of the values": (
        lambda: att.multi_head(X, X, X, *BY_HEAD, sa.tensor("W_o", h, d, M))
    ),
    "grouped_query: the 4 heads of K[4, S, d] do not divide the 6 heads of Q[6, T, d]": (
        lambda: att.grouped_query(sa.tensor("Q", 6, T, d), sa.tensor("K", 4, S, d), sa.tensor("V", 4, S, e))
    ),
    "grouped_query: K[g, S, d] and V[h, S, e] differ in the number of heads of keys and values": (
        lambda: att.grouped_query(Q, GROUPED[1], V)
    ),
    "grouped_query: head_map is 'contiguous' or 'strided', not 'tiled'": (
        lambda: att.grouped_query(*GROUPED, head_map="tiled")
    ),
    "multi_query: q[T, d] has 2 axes where Q[.., h, T, d] is meant": (
        lambda: att.multi_query(sa.tensor("q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e))
    ),
    "talking_heads: w[h] has 1 axes where a matrix over heads is meant": (
        lambda: att.talking_heads(Q, K, V, sa.tensor("w", h), sa.eye(h))
    ),
    "talking_heads: P_mix[g, T, S] and V[h, S, e] differ in the number of heads of weights and values": (
        lambda: att.talking_heads(Q, K, V, sa.eye(h), sa.tensor("w", h, g))
    ),
    "differential_lambda: x[T, 10] has 2 axes where a vector [d] is meant": (
        lambda: att.differential_lambda(ten, ten, ten, ten)
    ),
    "differential: l[T] is no scalar; with one for each head it is lam[h, 1, 1]": (
        lambda: att.differential(Q, K, Q, K, V, sa.tensor("l", T))
    ),
    "differential_v2: l[S] and O[h, T, e] differ in the number of queries": (
        lambda: att.differential_v2(Q, Q, K, V, sa.tensor("l", S))
    ),
    "gated: gate is 'element' or 'head', not 'channel'": lambda: att.gated(X, *BY_HEAD, W[0], gate="channel"),
    "gated: the weights W_g[h, D, e] have 3 axes; with gate='head' they are W_g[D, h]": (
        lambda: att.gated(X, *BY_HEAD, sa.tensor("W_g", h, D, e), gate="head")
    ),
    "latent: W_uk[c, d] has 2 axes where W_uk[h, c, d] is meant": (
        lambda: att.latent(X, **{**LATENT, "W_uk": sa.tensor("W_uk", c, d)})
    ),
    "latent_absorbed: W_dkv[D, c] and W_uv[h, d, e] differ in the width of the latent": (
        lambda: att.latent_absorbed(X, **{**LATENT, "W_uv": sa.tensor("W_uv", h, d, e)})
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_does_not_fit_is_refused_at_construction(message):
    with pytest.raises((ShapeError, OperandError)) as caught:
        WRONG[message]()
    assert str(caught.value).startswith(message)
