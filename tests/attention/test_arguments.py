"""What all variants refuse alike: one query of several heads, masks of more queries than one, scales of rows, eps."""

from __future__ import annotations

import numpy as np
import pytest

import symattn as sa
from symattn import attention as at

T, S, d, e, h, m = sa.sizes("T S d e h m")
q = sa.tensor("q", d)
K, V = sa.tensor("K", S, d), sa.tensor("V", S, e)
QH, KH, VH = sa.tensor("Q", h, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)
QT, KT, VT = sa.tensor("Q", h, T, d), sa.tensor("K", h, T, d), sa.tensor("V", h, T, e)
W, U, a = sa.tensor("W", d, m), sa.tensor("U", d, m), sa.tensor("a", m)

OF_ONE_QUERY = {
    "scaled_dot_product": at.scaled_dot_product,
    "linear": at.linear,
    "linear by weights": lambda q, k, v, **more: at.linear(q, k, v, form="weights", **more),
    "taylor": at.taylor,
    "kernel_regression": at.kernel_regression,
    "boxcar": lambda q, k, v, **more: at.kernel_regression(q, k, v, kernel="boxcar", **more),
    "kernel_regression_dot": at.kernel_regression_dot,
    "hopfield": lambda q, k, v, **more: at.hopfield(q, k, 1, **more),
    "sink": lambda q, k, v, **more: at.sink(q, k, v, 0, **more),
    "sigmoid_attention": at.sigmoid_attention,
    "softpick": at.softpick,
    "sparsemax_attention": at.sparsemax_attention,
    "temperature": lambda q, k, v, **more: at.temperature(q, k, v, 1, **more),
    "scalable_softmax": lambda q, k, v, **more: at.scalable_softmax(q, k, v, 1, **more),
    "additive": lambda q, k, v, **more: at.additive(q, k, v, W, U, a, **more),
    "cosine": lambda q, k, v, **more: at.cosine(q, k, v, 1, **more),
    "l2": at.l2,
    "qk_norm": at.qk_norm,
}


@pytest.mark.parametrize("name", OF_ONE_QUERY)
def test_one_query_of_several_heads_is_refused(name):
    # its weights [h, S] would be read as h queries, and meet the values of every head
    assert OF_ONE_QUERY[name](q, K, V).rank == 1
    assert OF_ONE_QUERY[name](q[None, :], KH, VH).shape[:2] == (h, 1)
    with pytest.raises(sa.ShapeError, match=r"has axes in front: give the query an axis, Q\[None, :\]"):
        OF_ONE_QUERY[name](q, KH, VH)


@pytest.mark.parametrize("name", OF_ONE_QUERY)
def test_a_mask_of_one_query_has_the_axis_of_the_keys(name):
    keep = sa.tensor("M", S, binary=True)
    assert OF_ONE_QUERY[name](q, K, V, mask=keep).rank == 1
    with pytest.raises(sa.ShapeError, match=r"the mask M\[h, S\] has 2 axes, and .* the scores of one query"):
        OF_ONE_QUERY[name](q, K, V, mask=sa.tensor("M", h, S, binary=True))


OF_A_SCALE = {
    "scores": lambda s: at.scores(QH, KH, scale=s),
    "hopfield": lambda s: at.hopfield(QH, KH, s),
    "retention": lambda s: at.retention(QT, KT, VT, 1, scale=s),
    "gated_linear": lambda s: at.gated_linear(QT, KT, VT, sa.tensor("g", T), scale=s),
    "gla": lambda s: at.gla(QT, KT, VT, sa.tensor("g", T, d), scale=s),
    "delta_rule": lambda s: at.delta_rule(QT, KT, VT, sa.tensor("beta", T), scale=s),
    "recurrence": lambda s: at.recurrence(*(sa.tensor(x, h, 2, d) for x in "QKV"), scale=s).output,
    "chunked_retention": lambda s: at.chunked_retention([QT, QT], [KT, KT], [VT, VT], 1, scale=s),
}


@pytest.mark.parametrize("name", OF_A_SCALE)
def test_a_scale_is_a_scalar_or_one_a_head(name):
    assert OF_A_SCALE[name](sa.tensor("s")).shape[0] == OF_A_SCALE[name](sa.tensor("s", h, 1, 1)).shape[0] == h
    for shape in ("h", "T", "T 1", "h 1 d", "1 h 1"):
        with pytest.raises(sa.ShapeError, match=r"the scale s\[.*\] is a scalar, or one a head, with the sizes"):
            OF_A_SCALE[name](sa.tensor("s", shape))


def test_eps_is_a_scalar_of_0_or_more():
    for call in (
        lambda eps: at.softpick(QH, KH, VH, eps=eps),
        lambda eps: at.cosformer(QH, KH, VH, eps=eps),
        lambda eps: at.group_norm(QH, 2, eps=eps),
        lambda eps: at.layer_norm(QH, eps=eps),
    ):
        assert call(0).rank == call(sa.tensor("eps")).rank == 3
        with pytest.raises(sa.OperandError, match=r"(softpick|cosformer|group_norm|layer_norm): eps is 0 or more"):
            call(-1)
        with pytest.raises(sa.ShapeError, match=r"eps is a number or a scalar, not eps\[S\]"):
            call(sa.tensor("eps", S))


OF_A_MASK_ONLY = {
    "mup": lambda **more: at.mup(QH, KH, VH, **more),
    "luong_dot": lambda **more: at.luong_dot(QH, KH, VH, **more),
    "luong_general": lambda **more: at.luong_general(QH, KH, VH, sa.tensor("W", d, d), **more),
    "low_rank_bilinear": lambda **more: at.low_rank_bilinear(QH, KH, VH, W, U, **more),
    "qk_norm": lambda **more: at.qk_norm(QH, KH, VH, **more),
}


@pytest.mark.parametrize("name", OF_A_MASK_ONLY)
def test_keywords_that_are_not_declared_are_refused(name):
    with pytest.raises(sa.OperandError, match=f"{name} has no keyword 'softcap', only mask, mask_polarity, empty"):
        OF_A_MASK_ONLY[name](softcap=50)


def test_a_scale_of_its_own_is_no_keyword():
    for call in (at.mup, at.luong_dot):
        with pytest.raises(sa.OperandError, match="has no keyword 'scale', only mask"):
            call(QH, KH, VH, scale=1)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: at.pre_norm_block(QH, abs, abs, norm=None), "norm is a function of a tensor, or two of them"),
        (lambda: at.post_norm_block(QH, abs, abs, norm=(at.rms_norm,)), "norm is a function of a tensor, or two of"),
        (lambda: at.gpt(sa.tensor("t", T, integer=True), [K]), "gpt: the parameters are those that gpt_parameters"),
    ],
)
def test_what_is_not_of_the_right_kind_is_named(call, text):
    with pytest.raises(sa.OperandError) as caught:
        call()
    assert text in str(caught.value)


def test_a_decay_for_each_head_of_keys_that_heads_share(rng):
    gamma = sa.tensor("gamma", h)
    shared = at.retention(QT, KT[0], VT[0], gamma)
    function = sa.lambdify([QT, KT, VT, gamma], [shared, at.retention(QT, KT[:1], VT[:1], gamma)])
    arrays = [rng.normal(size=(2, 3, width)) for width in (4, 4, 5)]
    Q, K, V, decays = *arrays, np.array([0.5, 0.9])
    ages = np.subtract.outer(np.arange(3), np.arange(3))
    wanted = np.tril(decays[:, None, None] ** np.maximum(ages, 0)) * (Q @ K[0].T) @ V[0]
    for got in function(Q, K, V, decays):
        np.testing.assert_allclose(got, wanted, rtol=1e-13)
