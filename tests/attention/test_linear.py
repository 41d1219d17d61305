"""Linear forms and recurrences: each variant has a second form, and both are the same; edges; and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn import attention as A

T, S, d, e, h, m, n = sa.sizes("T S d e h m n")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
KT, VT = sa.tensor("K", T, d), sa.tensor("V", T, e)
g, G, beta = sa.tensor("g", T), sa.tensor("g", T, d), sa.tensor("beta", T)
gamma = sa.tensor("gamma", positive=True)


def proved(a: Any, b: Any, **given: Any) -> None:
    verdict = sa.prove(a, b, **given)
    assert verdict.status == "proved", verdict


def refuted(a: Any, b: Any) -> None:
    verdict = sa.prove(a, b)
    assert verdict.status == "refuted", verdict


# --- second forms of linear attention ---


@pytest.mark.parametrize("feature", ["elu+1", None, sa.exp, A.taylor_features])
def test_keys_may_be_contracted_first_or_last(feature):
    proved(A.linear(Q, K, V, feature=feature), A.linear(Q, K, V, feature=feature, form="weights"))
    for normalise in (True, False):
        forms = [A.causal_linear(Q, KT, VT, feature=feature, normalise=normalise, form=f) for f in ("weights", "state")]
        proved(*forms)
    wrong = A.linear(Q, K, V, feature=feature, normalise=False, form="weights")
    refuted(A.linear(Q, K, V, feature=feature), wrong)


def test_a_single_query_is_a_row():
    proved(A.linear(sa.tensor("Q", 1, d)[0], K, V)[None], A.linear(sa.tensor("Q", 1, d), K, V, form="weights"))


def test_causal_linear_attention_is_linear_attention_with_a_causal_mask():
    proved(A.causal_linear(Q, KT, VT), A.linear(Q, KT, VT, form="weights", mask=A.causal_mask(T)))


def test_a_mask_of_keys_is_a_mask_of_features():
    pad = sa.tensor("pad", S, binary=True)
    masked = A.linear(Q, K, V, mask=pad)
    proved(masked, A.linear(Q, K, V, form="weights", mask=pad))
    proved(masked, A.linear(Q, K, V, mask=~pad, mask_polarity="block"))
    proved(masked, A.linear(Q, K, V, mask=pad[None, :]))
    refuted(masked, A.linear(Q, sa.where(pad[:, None], K, 0), V))
    keys = sa.tensor("pad", h, 1, S, binary=True)  # other keys in each head
    heads = [sa.tensor("Q", h, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)]
    proved(A.linear(*heads, mask=keys), A.linear(*heads, mask=keys, form="weights"))


@pytest.mark.parametrize("form", ["state", "weights"])
def test_rows_without_keys_are_zeros_and_so_are_their_gradients(form, rng):
    pad = sa.tensor("pad", S, binary=True)
    O = A.linear(Q, K, V, mask=pad, form=form)
    gradients = sa.gradient(O, [Q, K, V])
    f = sa.lambdify([Q, K, V, pad, gradients.cotangent], [O, gradients])
    arrays = [rng.normal(size=shape) for shape in ((3, 2), (4, 2), (4, 5))]
    for got in f(*arrays, np.zeros(4, bool), rng.normal(size=(3, 5))):
        assert (got == 0).all()


def test_weights_of_linear_attention_are_a_distribution():
    P = A.normalised(A.elu_plus_one(Q) @ A.elu_plus_one(K).T)
    proved(sa.sum(P, axis=-1), sa.ones(T))
    assert sa.prove(sa.lt(0, P)).status == "proved"
    assert sa.prove(sa.lt(0, A.elu_plus_one(Q))).status == "proved"


def test_performer_features_are_a_kernel_of_sums():
    W = sa.tensor("W", m, d)
    features = [A.performer_features(x, W) for x in (Q, K)]
    weights = features[0] @ features[1].T
    half = [sa.sum(x * x, axis=-1) / (2 * sympy.sqrt(d)) for x in (Q, K)]
    sums = (Q[:, None] + K) / d ** sympy.Rational(1, 4)  # what exp(w @ x) estimates is exp(x @ x / 2)
    kernel = sa.exp(sa.einsum("mc,ijc->ijm", W, sums) - half[0][:, None, None] - half[1][None, :, None])
    proved(weights, sa.mean(kernel, axis=-1))
    proved(
        A.linear(Q, K, V, feature=lambda x: A.performer_features(x, W)),
        A.attention_pooling(A.normalised(weights), V),
    )


def test_taylor_attention_has_a_state():
    proved(A.taylor(Q, K, V), A.linear(Q, K, V, feature=A.taylor_features))
    weights = A.taylor(Q, K, V).intermediates[1]
    assert sa.prove(sa.le(sympy.Rational(1, 2), weights)).status == "proved"


def test_cosformer_splits_in_two():
    proved(A.cosformer(Q, K, V), A.cosformer(Q, K, V, form="state"))
    proved(A.cosformer(Q, KT, VT, length=m), A.cosformer(Q, KT, VT, length=m, form="state"))
    refuted(A.cosformer(Q, KT, VT, length=m), A.cosformer(Q, KT, VT, length=m + 1, form="state"))


@pytest.mark.parametrize("form", ["weights", "state"])
def test_cosformer_of_rows_without_features_is_zero(form):
    f = sa.lambdify([Q, K, V], A.cosformer(Q, K, V, form=form))
    assert (f(-np.ones((3, 2)), np.ones((4, 2)), np.ones((4, 5))) == 0).all()


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_blocks_of_keys_give_the_softmax_of_all(blocks):
    keys = [sa.tensor(f"K_{b}", size, d) for b, size in zip(range(blocks), (S, m, n), strict=False)]
    values = [sa.tensor(f"V_{b}", size, e) for b, size in zip(range(blocks), (S, m, n), strict=False)]
    whole = sa.concat(keys), sa.concat(values)
    proved(A.blockwise(Q, keys, values), A.scaled_dot_product(Q, *whole))
    refuted(A.blockwise(Q, keys, values, scale=1), A.scaled_dot_product(Q, *whole, scale=2))


WITHIN = sa.tensor("X", m * n, d)  # as many queries as keys
MASKS = {
    "all keys": (Q, None),
    "earlier keys": (Q, A.causal_mask(T, m * n)),
    "any keys, or none": (Q, sa.tensor("M", T, m * n, binary=True)),
    "keys that are no padding": (Q, sa.tensor("M", m * n, binary=True)),
    "all keys, as many queries": (WITHIN, None),
    "earlier keys, as many queries": (WITHIN, A.causal_mask(m * n)),
    "any keys, as many queries": (WITHIN, sa.tensor("M", m * n, m * n, binary=True)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[] if x == "any keys, or none" else pytest.mark.slow) for x in MASKS]
)
def test_any_number_of_blocks_gives_the_softmax_of_all(name):
    """For every number and every size of blocks, and whatever the running maximum is; rows without keys are zeros."""
    queries, given = MASKS[name]
    keys, values = sa.tensor("K", m * n, d), sa.tensor("V", m * n, e)

    def closed(reference, k, v, *mask):
        z = queries @ sa.merge_axes(k, (0, 1)).T / sympy.sqrt(d) - reference[:, None]
        weights = sa.exp(sa.where(sa.merge_axes(sa.moveaxis(mask[0], 0, -2), (-2, -1)), z, -sympy.oo) if mask else z)
        return None, sa.sum(weights, axis=-1), weights @ sa.merge_axes(v, (0, 1))

    O = A.blockwise(queries, keys, values, block=n, mask=given)
    proved(O, A.scaled_dot_product(queries, keys, values, mask=given), by=sa.induction(final=closed, free=0))


def test_blocks_that_a_mask_leaves_empty_count_for_nothing(rng):
    """Also the first one, and rows without any key; gradients too."""
    keys, values, mask = sa.tensor("K", 2 * n, d), sa.tensor("V", 2 * n, e), sa.tensor("M", T, 2 * n, binary=True)
    q, k, v = rng.normal(size=(5, 4)), rng.normal(size=(6, 4)), rng.normal(size=(6, 3))
    keep = rng.random((5, 6)) < 0.5
    keep[1, :3] = keep[2] = False
    forms = A.blockwise(Q, keys, values, block=n, mask=mask), A.scaled_dot_product(Q, keys, values, mask=mask)
    results = []
    for form in forms:
        g = sa.gradient(form, [Q, keys, values])
        results.append(
            sa.lambdify([Q, keys, values, mask, g.cotangent], [form, g])(200 * q, k, v, keep, np.ones((5, 3)))
        )
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


def test_blocks_do_not_overflow(rng):
    keys, values = ([sa.tensor(f"{x}_{b}", size, w) for b, size in ((1, S), (2, m))] for x, w in (("K", d), ("V", e)))
    O = A.blockwise(Q, keys, values)
    gradients = sa.gradient(O, [Q, *keys, *values])
    f = sa.lambdify([Q, *keys, *values, gradients.cotangent], [O, gradients])
    q, k_1, k_2, v_1, v_2 = (rng.normal(size=shape) for shape in ((2, 3), (4, 3), (5, 3), (4, 6), (5, 6)))
    results = f(300 * q, 300 * k_1, 300 * k_2, v_1, v_2, np.ones((2, 6)))
    assert all(np.isfinite(x).all() for x in results)


# --- second forms of what fades ---


def test_forgetting_is_causal_attention_with_gates():
    c = sa.cumsum(sa.log(sa.sigmoid(g)))
    bias = c[:, None] - c[None, :]
    proved(A.forgetting(Q, KT, VT, g), A.scaled_dot_product(Q, KT, VT, bias=bias, mask=A.causal_mask(T)))
    proved(A.forgetting(Q, KT, VT, g), A.forgetting(Q, KT, VT, g, mask=A.causal_mask(T)))
    window = A.sliding_window_mask(T, left=2)
    masked = A.scaled_dot_product(Q, KT, VT, bias=bias, mask=A.causal_mask(T) & window)
    proved(A.forgetting(Q, KT, VT, g, mask=window), masked)


def test_one_decay_is_that_of_every_position_and_one_a_position_that_of_every_channel():
    same = sa.log(gamma) * sa.ones(T)
    proved(A.retention(Q, KT, VT, gamma, scale=2), A.gated_linear(Q, KT, VT, same, scale=2))
    proved(A.retention(Q, KT, VT, 1), A.causal_linear(Q, KT, VT, feature=None, normalise=False))
    proved(A.gla(Q, KT, VT, g[:, None] * sa.ones(T, d)), A.gated_linear(Q, KT, VT, g))
    proved(A.kimi_delta(Q, KT, VT, g[:, None] * sa.ones(T, d), beta), A.gated_delta_rule(Q, KT, VT, g, beta))
    proved(A.gated_delta_rule(Q, KT, VT, sa.zeros(T), beta), A.delta_rule(Q, KT, VT, beta))
    refuted(A.retention(Q, KT, VT, gamma), A.causal_linear(Q, KT, VT, feature=None, normalise=False))


def test_a_decay_a_head_is_a_decay_in_each_head():
    c, heads = sa.tensor("gamma", 2, positive=True), [sa.tensor(x, 2, T, w) for x, w in (("Q", d), ("K", d), ("V", e))]
    proved(A.retention(*heads, c)[1], A.retention(*(x[1] for x in heads), c[1]))


def test_the_factored_form_of_per_channel_decays_is_the_safe_one():
    proved(A.gla(Q, KT, VT, G), A.gla(Q, KT, VT, G, form="factored"))


def test_decays_are_lower_triangular_with_ones():
    D = A.decay_matrix(g)
    proved(sa.diag(D), sa.ones(T))
    proved(D, sa.tril(D))


def test_decays_between_two_positions_in_numbers(rng):
    gates = -np.abs(rng.normal(size=5))
    D = sa.lambdify([g], A.decay_matrix(g))(gates)
    want = [[np.exp(gates[j + 1 : i + 1].sum()) if j <= i else 0 for j in range(5)] for i in range(5)]
    np.testing.assert_allclose(D, want, rtol=1e-14)


def test_chunks_give_the_retention_of_all():
    sizes = (T, S, m)
    q, k, v = (
        [sa.tensor(f"{x}_{b}", size, w) for b, size in enumerate(sizes)] for x, w in (("Q", d), ("K", d), ("V", e))
    )
    whole = [sa.concat(x) for x in (q, k, v)]
    proved(A.chunked_retention(q, k, v, gamma, scale=3), A.retention(*whole, gamma, scale=3))
    refuted(A.chunked_retention(q, k, v, gamma), A.retention(*whole, gamma**2))


@pytest.mark.parametrize("feature", [None, sa.exp])
def test_causal_linear_attention_is_a_recurrence(feature):
    f = feature or (lambda x: x)
    state = f(KT).T @ VT
    for normalise, final in ((True, (state, sa.sum(f(KT), axis=0))), (False, state)):
        forms = (
            A.causal_linear(Q, KT, VT, feature=feature, normalise=normalise, form=x) for x in ("recurrent", "weights")
        )
        recurrent, weights = forms
        proved(recurrent, weights, by=sa.induction(final=final, outputs=weights))


def test_beta_is_how_much_is_corrected():
    """At rate 0 nothing is written; at rate 1 a key of norm 1 reads its value back."""
    q, k, v = sa.tensor("Q", 2, d), sa.tensor("K", 2, d), sa.tensor("V", 2, e)
    proved(A.delta_rule(Q, KT, VT, sa.zeros(T)), sa.zeros(T, e))
    last = A.recurrence(q, k, v, rule="delta", beta=sa.ones(2)).state
    proved(k[1] @ last, v[1], given=[sa.eq(sa.sum(k * k, axis=-1), 1)])
    refuted(k[0] @ last, v[0])


def test_the_matrix_that_is_inverted_is_unit_lower_triangular():
    U = A.delta_rule(Q, KT, VT, beta).intermediates[2]
    inverted = U.inputs[0].inputs[0].inputs[0]
    proved(sa.diag(inverted), sa.ones(T))
    proved(sa.triu(inverted, 1), sa.zeros(T, T))


# --- strong decays ---


def test_only_the_factored_form_overflows(rng):
    arrays = [rng.normal(size=shape) for shape in ((4, 3), (4, 3), (4, 2))]
    gates = np.full((4, 3), -400.0)
    safe, factored = (sa.lambdify([Q, KT, VT, G], A.gla(Q, KT, VT, G, form=form)) for form in ("safe", "factored"))
    np.testing.assert_allclose(safe(*arrays, gates), (arrays[0] * arrays[1]).sum(1, keepdims=True) * arrays[2])
    with np.errstate(all="ignore"):
        assert not np.isfinite(factored(*arrays, gates)).all()


def test_closed_gates_of_forgetting_attention_leave_each_position_itself(rng):
    O = A.forgetting(Q, KT, VT, g)
    gradients = sa.gradient(O, [Q, KT, VT, g])
    f = sa.lambdify([Q, KT, VT, g, gradients.cotangent], [O, gradients])
    q, k, v = (rng.normal(size=shape) for shape in ((4, 3), (4, 3), (4, 2)))
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        results = f(q, k, v, np.full(4, -1e3), np.ones((4, 2)))
        assert all(np.isfinite(x).all() for x in results)
        np.testing.assert_allclose(results[0], v)
        f(q, k, v, np.full(4, 1e3), np.ones((4, 2)))


def test_small_retention_does_not_overflow(rng):
    O = A.retention(Q, KT, VT, gamma)
    gradients = sa.gradient(O, [Q, KT, VT, gamma])
    f = sa.lambdify([Q, KT, VT, gamma, gradients.cotangent], [O, gradients])
    q, k, v = (rng.normal(size=shape) for shape in ((400, 2), (400, 2), (400, 3)))
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert all(np.isfinite(x).all() for x in f(q, k, v, 0.01, np.ones((400, 3))))


# --- what is refused ---


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: A.linear(Q, sa.tensor("K", S, m), V), "linear: Q[T, d] and K[S, m] differ in their width"),
        (lambda: A.linear(Q, K, VT), "linear: K[S, d] and V[T, e] differ in the number of keys and values"),
        (lambda: A.linear(Q, K, V, feature="relu"), "linear: feature is 'elu+1', a function of a tensor, or None, not"),
        (
            lambda: A.linear(Q, K, V, feature=lambda x: x[0]),
            "linear: feature makes (Q[0, :])[d] of Q[T, d]: only the last",
        ),
        (lambda: A.linear(Q, K, V, form="both"), "linear: form is 'state' or 'weights', not 'both'"),
        (
            lambda: A.linear(Q, K, V, mask=sa.tensor("M", T, S, binary=True)),
            "linear: the mask M[T, S] differs from query to query",
        ),
        (lambda: A.linear(Q, K, V, mask=sa.tensor("M", T, binary=True)), "the mask M[T] does not fit the scores"),
        (lambda: A.linear(Q, K, V, causal=True), "linear has no keyword 'causal'"),
        (lambda: A.taylor(Q, K, V, empty="error"), 'a row without keys gives zeros; empty="error" is for softmax'),
        (lambda: A.causal_linear(Q, K, V), "causal_linear: Q[T, d] and K[S, d] differ in the number of positions"),
        (lambda: A.causal_linear(sa.tensor("q", d), K, V), "q[d] has 1 axes where Q[.., T, d] is meant"),
        (lambda: A.normalised(Q, mask=sa.tensor("M", T, S, binary=True)), "the mask M[T, S] does not fit the scores"),
        (lambda: A.performer_features(Q, sa.tensor("W", m, e)), "performer_features: Q[T, d] and W[m, e] differ"),
        (lambda: A.cosformer(Q, K, VT), "cosformer: K[S, d] and V[T, e] differ in the number of keys and values"),
        (
            lambda: A.forgetting(Q, KT, VT, sa.tensor("f", S)),
            "forgetting: f[S] and K[T, d] differ in the number of pos",
        ),
        (lambda: A.cosformer(Q, K, V, length=0), "cosformer: length is positive, not 0"),
        (lambda: A.cosformer(Q, K, V, length="M"), "the text 'M' stands where a tensor is meant"),
        (lambda: A.forgetting(Q, KT, VT, G), "forgetting: g[T, d] has 2 axes where f[.., T] is meant"),
        (
            lambda: A.retention(Q, KT, VT, g),
            "retention: g[T] does not fit the scores (Q @ K.T)[T, T]: a scalar is meant",
        ),
        (lambda: A.retention(Q, K, V, gamma), "retention: Q[T, d] and K[S, d] differ in the number of positions"),
        (lambda: A.gated_linear(Q, KT, VT, G), "gated_linear: g[T, d] has 2 axes where g[.., T] is meant"),
        (lambda: A.gla(Q, KT, VT, g), "gla: g[T] has 1 axes where g[.., T, d] is meant"),
        (lambda: A.gla(Q, KT, VT, sa.tensor("g", T, e)), "gla: g[T, e] and K[T, d] differ in their width"),
        (lambda: A.gla(Q, KT, VT, G, form="chunked"), "gla: form is 'safe' or 'factored', not 'chunked'"),
        (lambda: A.decay_matrix(gamma), "decay_matrix: gamma[] has 0 axes where g[.., T] is meant"),
        (lambda: A.delta_rule(Q, KT, VT, G), "delta_rule: g[T, d] has 2 axes where beta[.., T] is meant"),
        (lambda: A.delta_rule(Q, KT, VT, sa.tensor("beta", S)), "delta_rule: beta[S] and K[T, d] differ in the number"),
        (lambda: A.kimi_delta(Q, KT, VT, g, beta), "kimi_delta: g[T] has 1 axes where g[.., T, d] is meant"),
        (lambda: A.gated_delta_rule(Q, KT, V, g, beta), "K[T, d] and V[S, e] differ in the number of positions"),
    ],
)
def test_arguments_that_do_not_fit_say_so(call, message):
    with pytest.raises((sa.ShapeError, sa.OperandError)) as raised:
        call()
    assert message in str(raised.value)


def test_blocks_are_lists_of_one_length():
    with pytest.raises(sa.OperandError, match="blockwise takes a list of blocks K, with one block or more"):
        A.blockwise(Q, [], [])
    with pytest.raises(sa.OperandError, match="blockwise takes a list of blocks K, with one block or more"):
        A.blockwise(Q, K, V)
    with pytest.raises(sa.OperandError, match="blockwise: the numbers of blocks differ: 2 of K, 1 of V"):
        A.blockwise(Q, [K, K], [V])
    with pytest.raises(sa.OperandError, match="a mask is for keys that are one tensor, with block="):
        A.blockwise(Q, [K], [V], mask=A.causal_mask(T, S))
    with pytest.raises(sa.ShapeError, match=r"Z\[T, S\] and V\[T, e\] differ in the number of keys and values"):
        A.blockwise(Q, [K], [VT])
