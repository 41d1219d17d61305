"""What is given in a shape or a dtype that was not meant: refused where the expression is built, or where it runs."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn import attention

B, h, g, T, S, d, e, m = sa.sizes("B h g T S d e m")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
QB, KB, VB = (sa.tensor(x.name, B, *x.shape) for x in (Q, K, V))
QH, KH, VH = (sa.tensor(x.name, B, h, *x.shape) for x in (Q, K, V))
q, X = sa.tensor("q", d), sa.tensor("X", B, T, d)
sdpa = attention.scaled_dot_product
FIRE = {"c": sa.tensor("c"), "L": sa.tensor("L"), "W_1": sa.tensor("W_1", m), "b_1": sa.tensor("b_1", m)}
FIRE |= {"W_2": sa.tensor("W_2", m, h), "b_2": sa.tensor("b_2", h)}


def mask(*shape):
    return sa.tensor("M", *shape, binary=True)


def bias(*shape):
    return sa.tensor("b", *shape)


def fire(**other):
    return attention.fire(T, S, **FIRE | other)


# --- what broadcasts, but not to what is meant ---

MISTAKES = [
    (lambda: sdpa(QB, KB, VB, mask=mask(B, 1, T, S)), r"mask M\[B, 1, T, S\] does not fit .*: it has more axes"),
    (lambda: sdpa(QH, KH, VH, mask=mask(B, 1, S)), "axis -3, in front of them, has the size B, not h"),
    (lambda: sdpa(QH, KH, VH, mask=mask(B, S)), "axis -2, of the queries, has the size B, not T"),
    (lambda: sdpa(q, K, V, mask=mask(T, S)), "has 2 axes, and .* the scores of one query"),
    (lambda: sdpa(q, K, V, bias=bias(T, S)), r"bias b\[T, S\] has 2 axes, and .* one query"),
    (lambda: sdpa(Q[:1], K, V, bias=bias(T, S)), "axis -2, of the queries, has the size T, not 1"),
    (lambda: sdpa(Q, K[:1], V, bias=bias(T, S)), "axis -1, of the keys, has the size S, not 1"),
    (lambda: sdpa(QB, KB, VB, bias=bias(h, T, S)), "axis -3, in front of them, has the size h, not B"),
    (lambda: sdpa(Q, K, V, scale=bias(S)), r"scores: the scale b\[S\] is a scalar, or one a head"),
    (lambda: sdpa(QH, KH, VH, scale=bias(g, 1, 1)), r"the scale b\[g, 1, 1\] does not fit"),
    (lambda: sdpa(Q, K, V, softcap=bias(S)), "weights: the softcap .* is a scalar, or one a head"),
    (
        lambda: attention.shaw(Q, K, V, sa.tensor("A", 5, d), scale=bias(S)),
        "shaw: the scale .* is a scalar, or one",
    ),
    (lambda: attention.rotary(X, offset=bias(T)), r"rotary: offset is a number or a scalar, not b\[T\]"),
    (lambda: attention.rotary(X, offset=bias(B, 1)), "rotary: offset is a number"),
    (lambda: attention.rotary(X, scale=bias(T, 1), positions=bias(T)), "rotary: scale is a number"),
    (lambda: attention.multi_query(KH[0], KH[0], VH[0]), "has axes in front that .* lacks; .* has no heads"),
    (lambda: attention.differential(Q, K, Q[:1], K, V, 1), "differential: .* differ in the number of queries"),
    (lambda: attention.differential_v2(Q, Q[:1], K, V, bias(T)), "differential_v2: .* differ in the number of queries"),
    (lambda: attention.differential(Q, K, Q, K, V, 1, initial=bias(e)), "initial is a number"),
    (lambda: attention.transformer_xl(Q, K, V, K, bias(T, d), bias(d)), r"b\[T, d\] has axes in front that Q"),
    (lambda: fire(b_1=bias(S, m)), r"b\[S, m\] has 2 axes where b_1\[r\] is meant"),
    (lambda: fire(W_2=bias(T, m, h)), r"has 3 axes where W_2\[r, h\] is meant"),
    (lambda: fire(b_2=bias(S, h)), r"has 2 axes where b_2\[h\] is meant"),
    (lambda: fire(c=bias(S)), r"fire: c is a number or a scalar, not b\[S\]"),
    (
        lambda: attention.log_cpb(2, 3, W_1=bias(6, 2, m), b_1=FIRE["b_1"], W_2=FIRE["W_2"]),
        r"has 3 axes where W_1\[2, r\] is meant",
    ),
    (lambda: attention.project(X, bias(h, d, e), bias(d, e), bias(d, e)), "some are given by head"),
]


@pytest.mark.parametrize(("mistake", "message"), MISTAKES)
def test_a_shape_that_was_not_meant_is_refused(mistake, message):
    with pytest.raises(sa.ShapeError, match=message):
        mistake()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"factor": 0}, "the factor is positive, not 0"),
        ({"length": -1}, "the length is positive"),
        ({"slow": 32, "fast": 1}, "fast=1 is not more turns than slow=32"),
        ({"slow": 2, "fast": 2}, "fast=2 is not more turns"),
        ({"base": 1, "ramp": "index"}, "the base is more than 1"),
    ],
)
def test_a_ramp_of_yarn_has_two_ends(given, message):
    with pytest.raises(sa.OperandError, match=message):
        attention.yarn_frequencies(8, **{"factor": 4, "length": 100} | given)


@pytest.mark.parametrize("count", [8, sympy.Integer(8), np.int64(8), h])
def test_a_number_of_heads_is_no_slope(count):
    with pytest.raises(sa.OperandError, match="give alibi_slopes"):
        attention.alibi(T, slopes=count)


# --- what is meant ---


def test_masks_and_biases_of_a_batch_and_of_heads_fit():
    for keep in (mask(B, 1, T, S), mask(B, 1, 1, S), mask(h, T, S), mask(h, 1, 1), mask(T, 1), mask(S)):
        assert sdpa(QH, KH, VH, mask=keep).shape == (B, h, T, e)
        assert sdpa(QH, KH, VH, bias=bias(*keep.shape)).shape == (B, h, T, e)
    assert sdpa(Q, K, V, mask=mask(B, 1, S)).shape == (B, T, e)  # scores without axes in front get those of a mask
    assert sdpa(Q, K, V, bias=bias(h, T, S)).shape == (h, T, e)
    assert sdpa(QH, KH, VH, scale=bias(h, 1, 1), softcap=bias(h, 1, 1)).shape == (B, h, T, e)


def test_a_scale_of_rotary_may_be_a_tensor_without_axes():
    s, x = sa.tensor("s"), sa.tensor("x", T, 2 * m)
    assert sa.prove(attention.rotary(x, scale=s), s * attention.rotary(x)).status == "proved"


# --- sizes and dtypes that only show when it runs ---


@pytest.mark.parametrize("head_map", ["contiguous", "strided"])
@pytest.mark.parametrize(("heads", "groups"), [(5, 2), (1, 2), (2, 4)])
def test_groups_that_do_not_divide_the_heads_are_refused_when_they_show(head_map, heads, groups):
    q, k, v = sa.tensor("Q", h, T, d), sa.tensor("K", g, S, d), sa.tensor("V", g, S, e)
    run = sa.lambdify([q, k, v], attention.grouped_query(q, k, v, head_map=head_map))
    with pytest.raises(sa.EvaluationError, match="h/g .* must be a positive whole number"):
        run(np.ones((heads, 2, 3)), np.ones((groups, 4, 3)), np.ones((groups, 4, 3)))


def test_an_odd_width_of_sines_and_cosines_is_refused_when_it_shows():
    for x in (attention.sinusoidal(T, d, layout="half"), attention.sandwich(T, ratios=1, width=d)):
        with pytest.raises(sa.EvaluationError, match="d/2 .* must be a positive whole number"):
            sa.lambdify([], x)(T=3, d=5)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_small_and_unsigned_integers_do_not_wrap(dtype):
    n, p = sa.tensor("n", B, integer=True), sa.tensor("p", T, integer=True)
    given = np.array([1, 120], dtype)
    keep = sa.lambdify([n], attention.causal_mask(T, S, offset=n - T))(given, T=3, S=130)
    want = [[[j <= i + o - 3 for j in range(130)] for i in range(3)] for o in (1, 120)]
    np.testing.assert_array_equal(keep, want)
    x = sa.tensor("x", T, 2)
    turned = sa.lambdify([x, p], attention.rotary(x, positions=p, offset=100))(np.array([[1.0, 0]] * 2), given)
    np.testing.assert_allclose(turned, [[np.cos(a), np.sin(a)] for a in (101, 220)], rtol=1e-12)
    assert sa.lambdify([n], n * n)(given).tolist() == [1, 14400]


def test_an_integer_tensor_takes_whole_numbers():
    n = sa.tensor("n", B, integer=True)
    run = sa.lambdify([n], attention.causal_mask(T, offset=n))
    assert run(np.array([1.0]), T=2).all()
    with pytest.raises(sa.EvaluationError, match="n is declared integer, but has entries that are not whole"):
        run(np.array([0.5]), T=2)
