"""The conventions on which implementations differ, each in numbers that are found by hand, and as PyTorch has them.

With queries of ones, keys log(w) and the identity for values, the output is the weights themselves: w over their sum.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.attention import (
    alibi_slopes,
    as_bias,
    causal_mask,
    grouped_query,
    rotary,
    scaled_dot_product,
    sliding_window_mask,
)

from .zoo import torch

T, S, d, e, g, h = sa.sizes("T S d e g h")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
M = sa.tensor("M", T, S, binary=True)
KEEP = np.array([[True, False, True], [True, True, False]])
EMPTY = np.array([[True, False, True], [False, False, False]])

CONVENTIONS: dict[str, Callable[[], None]] = {}
IN_PYTORCH: dict[str, Callable[[], None]] = {}


def row(name: str, table: dict[str, Callable[[], None]] = CONVENTIONS) -> Callable[[Any], Any]:
    """Enter a check as a row of the table of conventions."""

    def entered(check: Callable[[], None]) -> Callable[[], None]:
        assert name not in table
        table[name] = check
        return check

    return entered


def in_pytorch(name: str) -> Callable[[Any], Any]:
    return row(name, IN_PYTORCH)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_found_by_hand(name):
    CONVENTIONS[name]()


@pytest.mark.torch
@pytest.mark.parametrize("name", IN_PYTORCH)
def test_as_in_pytorch(name):
    IN_PYTORCH[name]()


def test_what_pytorch_has_is_in_the_table():
    assert set(IN_PYTORCH) <= set(CONVENTIONS)


# --- what the rows share ---


def run(x: Any, /, **arrays: Any) -> np.ndarray:
    """The expression on arrays by the names of its tensors; the sizes that no array shows are keywords too."""
    given = {t.name: arrays.pop(t.name) for t in x.tensors}
    return np.asarray(sa.lambdify(list(x.tensors), x)(*given.values(), **arrays))


def weights(queries: int, *keys: float, M: Any = None, **options: Any) -> np.ndarray:
    """The weights of keys whose exponentials are given, for so many queries that are alike."""
    given = {"Q": np.ones((queries, 1)), "K": np.log(keys)[:, None], "V": np.eye(len(keys))}
    output = scaled_dot_product(Q, K, V, **options)
    return run(output, **given, **({} if M is None else {"M": M}))


def agree(got: Any, want: Any) -> None:
    got, want = (
        np.asarray(x.detach() if torch is not None and isinstance(x, torch.Tensor) else x) for x in (got, want)
    )
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape)


def sdpa(q: Any, k: Any, v: Any, attn_mask: Any = None, **options: Any) -> Any:
    """PyTorch's attention of one head, or of heads in front."""
    heads = [torch.as_tensor(x)[None] if np.ndim(x) == 3 else torch.as_tensor(x)[None, None] for x in (q, k, v)]
    output = torch.nn.functional.scaled_dot_product_attention(*heads, attn_mask=attn_mask, **options)
    return output[0] if np.ndim(q) == 3 else output[0, 0]


# --- masks ---


@row("mask polarity")
def true_attends():
    agree(weights(2, 1, 2, 4, mask=M, M=KEEP), [[1 / 5, 0, 4 / 5], [1 / 3, 2 / 3, 0]])
    agree(weights(2, 1, 2, 4, mask=M, mask_polarity="block", M=KEEP), [[0, 1, 0], [0, 0, 1]])


@in_pytorch("mask polarity")
def true_attends_in_one_function_and_blocks_in_a_layer():
    q, k, v = some(2, 4), some(3, 4), some(3, 5)
    agree(run(scaled_dot_product(Q, K, V, mask=M), Q=q, K=k, V=v, M=KEEP), sdpa(q, k, v, torch.tensor(KEEP)))

    layer = torch.nn.MultiheadAttention(4, 1, bias=False, batch_first=True, dtype=torch.float64)
    W_q, W_k, W_v = layer.in_proj_weight.detach().numpy().reshape(3, 4, 4)
    x, y, W_o = some(2, 4), some(3, 4), layer.out_proj.weight.detach().numpy()
    output = scaled_dot_product(Q, K, V, mask=M, mask_polarity="block")
    for key_padding in (False, True):
        blocked = np.tile([True, False, False], (2, 1)) if key_padding else KEEP
        mask = torch.tensor(blocked[:1]) if key_padding else torch.tensor(blocked)
        inputs = [torch.tensor(a)[None] for a in (x, y, y)]
        want, _ = layer(*inputs, **{"key_padding_mask" if key_padding else "attn_mask": mask})
        agree(run(output, Q=x @ W_q.T, K=y @ W_k.T, V=y @ W_v.T, M=blocked) @ W_o.T, want[0])


@row("fully masked rows")
def rows_without_keys_are_zero():
    agree(weights(2, 1, 2, 4, mask=M, M=EMPTY), [[1 / 5, 0, 4 / 5], [0, 0, 0]])
    agree(weights(2, 1, 2, 4, bias=as_bias(M), M=EMPTY), [[1 / 5, 0, 4 / 5], [0, 0, 0]])
    with pytest.raises(sa.EvaluationError, match="nothing to attend to"):
        weights(2, 1, 2, 4, mask=M, empty="error", M=EMPTY)
    dQ, _, dV = _gradients(some(2, 4), some(3, 4), some(3, 5), np.ones((2, 5)))
    agree(dQ[1], np.zeros(4))
    agree(dV.sum(0), np.ones(5))  # from the first row only
    agree(dV[1], np.zeros(5))


def _gradients(q: Any, k: Any, v: Any, do: Any) -> Any:
    gradient = sa.gradient(scaled_dot_product(Q, K, V, mask=M), [Q, K, V])
    return sa.lambdify([Q, K, V, M, gradient.cotangent], gradient)(q, k, v, EMPTY, do)


@in_pytorch("fully masked rows")
def rows_without_keys_are_zero_in_pytorch():
    q, k, v, do = some(2, 4), some(3, 4), some(3, 5), some(2, 5)
    inputs = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    for mask in (
        torch.tensor(EMPTY),
        torch.zeros(2, 3, dtype=torch.float64).masked_fill(~torch.tensor(EMPTY), -np.inf),
    ):
        output = sdpa(*inputs, mask)
        agree(run(scaled_dot_product(Q, K, V, mask=M), Q=q, K=k, V=v, M=EMPTY), output)
        wanted = torch.autograd.grad(output, inputs, torch.tensor(do))
        for got, want in zip(_gradients(q, k, v, do), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


@row("additive masks")
def minus_infinity_added_is_a_mask():
    agree(weights(2, 1, 2, 4, bias=as_bias(M), M=KEEP), [[1 / 5, 0, 4 / 5], [1 / 3, 2 / 3, 0]])
    agree(weights(2, 1, 2, 4, bias=as_bias(M), M=KEEP), weights(2, 1, 2, 4, mask=M, M=KEEP))
    assert run(as_bias(M), M=KEEP).tolist() == [[0, -np.inf, 0], [0, 0, -np.inf]]


@in_pytorch("additive masks")
def minus_infinity_added_is_a_mask_in_pytorch():
    q, k, v = some(2, 4), some(3, 4), some(3, 5)
    added = torch.tensor(run(as_bias(M), M=KEEP))
    agree(run(scaled_dot_product(Q, K, V, mask=M), Q=q, K=k, V=v, M=KEEP), sdpa(q, k, v, added))


@row("causal alignment")
def the_first_query_stands_at_the_first_key():
    top, bottom = causal_mask(T, S), causal_mask(T, S, align="bottom-right")
    agree(weights(2, 1, 2, 4, 8, mask=top), [[1, 0, 0, 0], [1 / 3, 2 / 3, 0, 0]])
    agree(weights(2, 1, 2, 4, 8, mask=bottom), [[1 / 7, 2 / 7, 4 / 7, 0], [1 / 15, 2 / 15, 4 / 15, 8 / 15]])
    agree(weights(3, 1, 2, mask=bottom), [[0, 0], [1, 0], [1 / 3, 2 / 3]])  # the first query has no key
    agree(weights(2, 1, 2, 4, 8, mask=causal_mask(T, S, offset=2)), weights(2, 1, 2, 4, 8, mask=bottom))


@in_pytorch("causal alignment")
def both_alignments_in_pytorch():
    from torch.nn.attention.bias import causal_lower_right

    q, k, v = some(2, 4), some(5, 4), some(5, 3)
    for mask, want in (
        (causal_mask(T, S), sdpa(q, k, v, is_causal=True)),
        (causal_mask(T, S, align="bottom-right"), sdpa(q, k, v, causal_lower_right(2, 5))),
    ):
        agree(run(scaled_dot_product(Q, K, V, mask=mask), Q=q, K=k, V=v), want)


@row("window bounds")
def a_window_counts_the_keys_besides_the_own():
    besides = sliding_window_mask(T, left=2, right=0)
    counted = sliding_window_mask(T, left=2, right=0, includes_self=True)
    assert run(besides, T=4).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1]]
    assert run(counted, T=4).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    both = sliding_window_mask(T, left=1, right=1)
    assert run(both, T=4).tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]


# --- heads ---

QH, KG, VG = sa.tensor("Q", h, T, d), sa.tensor("K", g, S, d), sa.tensor("V", g, S, e)


@row("grouped heads")
def neighbours_share_keys():
    given = {"Q": np.ones((4, 1, 1)), "K": np.log([[[1], [3]], [[3], [1]]]), "V": np.tile([[4.0], [8.0]], (2, 1, 1))}
    first, second = 7, 5  # (1 * 4 + 3 * 8) / 4 and (3 * 4 + 1 * 8) / 4
    for head_map, heads in (
        ("contiguous", [first, first, second, second]),
        ("strided", [first, second, first, second]),
    ):
        agree(run(grouped_query(QH, KG, VG, head_map=head_map), **given), np.reshape(heads, (4, 1, 1)))
    agree(run(grouped_query(QH, KG, VG), **given), run(grouped_query(QH, KG, VG, head_map="contiguous"), **given))


@in_pytorch("grouped heads")
def neighbours_share_keys_in_pytorch():
    q, k, v = some(6, 2, 4), some(2, 5, 4), some(2, 5, 3)
    agree(run(grouped_query(QH, KG, VG), Q=q, K=k, V=v), sdpa(q, k, v, enable_gqa=True))


@row("default scale")
def scores_are_divided_by_the_root_of_the_width_of_a_head():
    one = np.ones((2, 1, 4))  # two heads of width 4: the product with a key of 4 equal entries x is 4 x
    keys = np.log([1, 3])[None, :, None] / 2 * np.ones((2, 1, 4))  # so 4 x / 2 = log(1), log(3)
    q, k, v = sa.tensor("Q", h, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)
    given = {"Q": one, "K": keys, "V": np.tile(np.eye(2), (2, 1, 1))}
    agree(run(scaled_dot_product(q, k, v), **given), np.tile([1 / 4, 3 / 4], (2, 1, 1)))
    agree(run(scaled_dot_product(q, k, v, scale=1), **given), np.tile([1 / 10, 9 / 10], (2, 1, 1)))


@in_pytorch("default scale")
def the_same_scale_in_pytorch():
    q, k, v = some(2, 3, 4), some(2, 5, 4), some(2, 5, 3)
    given = {"Q": q, "K": k, "V": v}
    tensors = [sa.tensor(name, h, size, width) for name, size, width in (("Q", T, d), ("K", S, d), ("V", S, e))]
    agree(run(scaled_dot_product(*tensors), **given), sdpa(q, k, v))
    agree(run(scaled_dot_product(*tensors, scale=sympy.Rational(1, 3)), **given), sdpa(q, k, v, scale=1 / 3))


@row("order")
def scale_then_cap_then_bias_then_mask():
    b = sa.tensor("b", T, S)
    given = {"Q": np.array([[2.0]]), "K": np.array([[1.0], [2.0], [9.0]]), "V": np.eye(3)}
    bias, keep = np.array([[0.5, -0.25, 7.0]]), np.array([[True, True, False]])
    got = run(scaled_dot_product(Q, K, V, scale=0.5, softcap=1.5, bias=b, mask=M), **given, b=bias, M=keep)
    z = [1.5 * np.tanh(1 / 1.5) + 0.5, 1.5 * np.tanh(2 / 1.5) - 0.25]  # the scores are 1 and 2
    agree(got, [[*(np.exp(z) / np.exp(z).sum()), 0]])
    assert abs(got[0, 0] - 0.579100) < 5e-7


@in_pytorch("order")
def scale_then_bias_in_pytorch():
    b, bias = sa.tensor("b", T, S), some(3, 5)
    q, k, v = some(3, 4), some(5, 4), some(5, 2)
    got = run(scaled_dot_product(Q, K, V, scale=0.25, bias=b), Q=q, K=k, V=v, b=bias)
    agree(got, sdpa(q, k, v, torch.tensor(bias), scale=0.25))


# --- positions ---


@row("rotary layout")
def the_first_half_is_paired_with_the_second():
    x = sa.tensor("x", 1, 4)
    for layout, turned in (("half", [-3, -4, 1, 2]), ("interleaved", [-2, 1, -4, 3])):
        quarter = rotary(x, layout=layout, base=1, offset=sympy.pi / 2)  # every pair (a, b) becomes (-b, a)
        agree(run(quarter, x=np.array([[1.0, 2, 3, 4]])), [turned])
    agree(run(rotary(x, base=1, offset=sympy.pi / 2), x=np.array([[1.0, 2, 3, 4]])), [[-3, -4, 1, 2]])


@row("ALiBi slopes")
def every_other_slope_of_twice_as_many_heads_is_put_behind():
    def exponents(heads: int, **rule: str) -> np.ndarray:
        return np.log2(run(alibi_slopes(heads, **rule)))

    agree(exponents(8), [-1, -2, -3, -4, -5, -6, -7, -8])
    agree(exponents(12), [-1, -2, -3, -4, -5, -6, -7, -8, -0.5, -1.5, -2.5, -3.5])
    agree(exponents(6), [-2, -4, -6, -8, -1, -3])
    agree(exponents(12, rule="geometric"), [-8 * (a + 1) / 12 for a in range(12)])


def test_the_table_of_the_guide_has_these_rows():
    page = (Path(__file__).parents[2] / "docs" / "conventions.md").read_text()
    table = page[page.index("| convention |") :].partition("\n\n")[0].splitlines()[2:]
    assert {row.split("|")[1].strip() for row in table} == set(CONVENTIONS)
