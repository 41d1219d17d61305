"""Disputes from public threads about heads: how they are split, merged, repeated and projected, settled by proof.

Two layouts of one shape are equal, or they differ at an entry that the counterexample shows; where they coincide (one
head, one token, one sample) is proved too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa

from .test_gradient_cases import STANDARD, compute, digits, first_difference
from .test_permutation_cases import proved, refuted

B, T, S, h, g, d, e, D = sa.sizes("B T S h g d e D")


def side_by_side(heads: Any) -> Any:
    """``(h, T, d)`` to ``(T, h d)``: the heads of a token in one row."""
    return sa.merge_axes(sa.moveaxis(heads, 0, 1), (1, 2))


def reread(x: Any, *shape: Any) -> Any:
    """The entries in the order of memory, read as an array of rank 2."""
    while x.rank > 1:
        x = sa.merge_axes(x, (0, 1))
    return sa.split_axis(x, 0, shape)


def scaled(q: Any, k: Any) -> Any:
    return q @ k.mT / sympy.sqrt(d)


def test_H01_merging_heads_moves_the_head_axis_first():
    """jsbaan/transformer-from-scratch#6: heads before tokens are reshaped as they lie, and training hides it."""
    x, tokens = sa.tensor("x", h, T, d), sa.tensor("X", T, h * d)
    right, wrong = side_by_side(x), reread(x, T, h * d)
    proved(side_by_side(sa.moveaxis(sa.split_axis(tokens, 1, (h, d)), 1, 0)), tokens)
    found = refuted(right, wrong)
    assert (found.sizes[h], found.sizes[T]) == (2, 2)
    for size in (h, T):
        proved(right, wrong, given=[sympy.Eq(size, 1)])

    arrays = {"x": [[[1], [2], [3]], [[4], [5], [6]]]}
    assert compute(right, arrays).tolist() == [[1, 4], [2, 5], [3, 6]]
    assert compute(wrong, arrays).tolist() == [[1, 2], [3, 4], [5, 6]]


def test_H01_H05_the_library_splits_and_merges_as_the_right_code_does():
    """The same two disputes, with the functions that a user would call."""
    x, tokens = sa.tensor("x", h, T, d), sa.tensor("X", B, T, h * d)
    merged, split = sa.attention.merge_heads(x), sa.attention.split_heads(tokens, h)
    proved(merged, side_by_side(x))
    proved(split, sa.einsum("bthd->bhtd", sa.split_axis(tokens, 2, (h, d))))
    proved(sa.attention.merge_heads(split), tokens)
    assert compute(merged, {"x": [[[1], [2], [3]], [[4], [5], [6]]]}).tolist() == [[1, 4], [2, 5], [3, 6]]
    by_channel = sa.attention.split_heads(tokens, h, order="interleaved")
    found = refuted(split, by_channel)  # (h, d) of a channel, or (d, h): they agree for one head or one channel
    assert (found.sizes[h], found.sizes[d]) == (2, 2)


def test_H03_masks_of_head_major_batches_are_tiled():
    """lsdefine/attention-is-all-you-need-keras#36: heads are folded in front of the samples, masks behind them."""
    mask = sa.tensor("mask", B)
    head_major = sa.merge_axes(sa.ones(h, 1) * mask, (0, 1))
    sample_major = sa.merge_axes(mask[:, None] * sa.ones(1, h), (0, 1))
    tiled, repeated = sa.tile(mask, h, axis=0), sa.repeat(mask, h, axis=0)
    proved(tiled, head_major)
    proved(repeated, sample_major)
    found = refuted(repeated, head_major)
    assert (found.sizes[B], found.sizes[h]) == (2, 2)
    for size in (B, h):
        proved(repeated, head_major, given=[sympy.Eq(size, 1)])

    ids = {"mask": [0, 1, 2]}
    right, wrong = (compute(x.subs({h: 2}), ids) for x in (head_major, repeated))
    assert wrong.tolist() == [0, 0, 1, 1, 2, 2]
    assert right.tolist() == [0, 1, 2, 0, 1, 2]
    assert (right != wrong).sum() == 4


def test_H05_splitting_the_channels_is_not_splitting_the_tokens():
    """harvardnlp/annotated-transformer#17: a shorter view is proposed; the code that is there is right."""
    x = sa.tensor("x", B, T, h * d)
    right = sa.moveaxis(sa.split_axis(x, 2, (h, d)), 2, 1)
    proposed = sa.split_axis(sa.split_axis(sa.merge_axes(x, (1, 2)), 1, (h, T * d)), 2, (T, d))
    proved(right, sa.einsum("bthd->bhtd", sa.split_axis(x, 2, (h, d))))
    assert right.shape == proposed.shape
    found = refuted(right, proposed)
    assert (found.sizes[h], found.sizes[T]) == (2, 2)
    for size in (h, T):
        proved(right, proposed, given=[sympy.Eq(size, 1)])

    numbers = {"x": np.arange(12).reshape(1, 3, 4)}
    a, b = (compute(y.subs({h: 2, d: 2}), numbers) for y in (right, proposed))
    assert (a != b).sum() == 8
    assert tuple(np.argwhere(a != b)[0]) == (0, 0, 1, 0)  # the second token of the first head


def test_H07_concatenated_heads_times_the_output_matrix_are_a_sum_over_heads():
    """lucidrains/vit-pytorch#335: what the output matrix does to joined heads, and when the values can absorb it."""
    q, k, x = sa.tensor("Q", h, T, d), sa.tensor("K", h, S, d), sa.tensor("X", S, D)
    W_v, W_o = sa.tensor("W_V", h, D, d), sa.tensor("W_O", h * d, e)
    P, blocks = sa.softmax(scaled(q, k)), sa.split_axis(W_o, 0, (h, d))
    joined = side_by_side(P @ (x @ W_v)) @ W_o
    proved(joined, sa.sum(P @ (x @ W_v) @ blocks, axis=0))
    proved(joined, sa.sum(P @ (x @ (W_v @ blocks)), axis=0))  # a value map of each head's own

    one_map = sa.sum(P, axis=0) @ x @ sa.sum(W_v @ blocks, axis=0)
    assert refuted(joined, one_map).sizes[h] == 2
    proved(joined, one_map, given=[sympy.Eq(h, 1)])

    maps = compute(W_v @ blocks, {"W_V": np.eye(4).reshape(4, 2, 2).swapaxes(0, 1), "W_O": rows(4, 4, seed=6)})
    assert [np.linalg.matrix_rank(m) for m in maps] == [2, 2]  # D = 4, but no more than d


def test_H07_numbers_of_a_layer_with_two_heads():
    """The example of the thread: joined heads times the output matrix, and the sum over heads."""
    arrays = {
        "Q": [[0.03, 1.36, 1.22, -0.51], [-0.3, -0.53, 0.57, -0.06], [0.75, -1.85, 1.57, -0.1]],
        "K": [[-0.01, 1.05, 0.74, 0.72], [1.62, -1.21, -0.63, -1.32], [-0.11, 1.0, -0.02, 0.5]],
        "V": [[1.83, -3.08, 0.96, 0.07], [1.32, 0.39, 1.83, 0.03], [-0.52, 0.58, 0.43, -0.36]],
        "W_o": rows(4, 4, seed=6),
    }
    q, k, v = (sa.tensor(name, n, 4) for name, n in (("Q", T), ("K", S), ("V", S)))
    W_o, eye = sa.tensor("W_o", 4, 4), sa.eye(4)
    joined = sa.attention.multi_head(q, k, v, eye, eye, eye, W_o, heads=2)
    blocks = sa.split_axis(W_o, 0, (2, 2))
    summed = sa.attention.multi_head(q, k, v, *[sa.attention.split_heads(eye, 2)] * 3, blocks)
    np.testing.assert_allclose(compute(joined, arrays), compute(summed, arrays), rtol=1e-12)
    heads = [np.array(arrays[name]).reshape(3, 2, 2).swapaxes(0, 1) for name in "QKV"]
    weights = np.exp(heads[0] @ heads[1].swapaxes(1, 2) / 2**0.5)
    by_hand = (weights / weights.sum(-1, keepdims=True)) @ heads[2]
    wanted = np.hstack(list(by_hand)) @ arrays["W_o"]
    np.testing.assert_allclose(compute(joined, arrays), wanted, rtol=1e-12)


def rows(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def test_H09_grouped_heads_are_repeated_one_by_one_or_tiled():
    """onnx/onnx#7274: a reference tiles the key heads where frameworks repeat each of them."""
    K = sa.tensor("K", h, S, d)
    repeated, tiled = sa.repeat(K, g, axis=0), sa.tile(K, g, axis=0)

    def served(by):
        """The key head of each query head, by a matrix with one 1 in a row."""
        return sa.einsum("jk,ksd->jsd", sa.where(sa.from_index((h * g, h), by), 1, 0), K)

    proved(repeated, served(lambda j, k: sympy.Eq(sympy.floor(j / g), k)))
    proved(tiled, served(lambda j, k: sympy.Eq(sympy.Mod(j, h), k)))
    found = refuted(repeated, tiled)
    assert (found.sizes[h], found.sizes[g]) == (2, 2)
    for size in (h, g):  # one key head, or as many as query heads
        proved(repeated, tiled, given=[sympy.Eq(size, 1)])

    numbered = {"K": [[[0]], [[1]]]}
    assert compute(repeated.subs({g: 2}), numbered).ravel().tolist() == [0, 0, 1, 1]
    assert compute(tiled.subs({g: 2}), numbered).ravel().tolist() == [0, 1, 0, 1]


def test_H09_both_head_maps_are_named():
    """The two readings as keywords: they agree for one key head, or as many as query heads, and not otherwise."""
    q, k, v = sa.tensor("Q", h * g, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)
    contiguous, strided = (sa.attention.grouped_query(q, k, v, head_map=name) for name in ("contiguous", "strided"))
    found = refuted(contiguous, strided)
    assert (found.sizes[h], found.sizes[g]) == (2, 2)
    for size in (h, g):
        proved(contiguous, strided, given=[sympy.Eq(size, 1)])

    numbered = {"Q": np.zeros((4, 1, 1)), "K": np.zeros((2, 1, 1)), "V": [[[0]], [[1]]]}
    four, two = sa.tensor("Q", 4, T, d), (sa.tensor("K", 2, S, d), sa.tensor("V", 2, S, e))
    read = [compute(sa.attention.grouped_query(four, *two, head_map=n), numbered) for n in ("contiguous", "strided")]
    assert [x.ravel().tolist() for x in read] == [[0, 0, 1, 1], [0, 1, 0, 1]]


def test_H11_a_flat_head_index_is_divided_by_the_number_of_key_heads():
    """XunhaoLai/native-sparse-attention-triton#27: a kernel divides by the group size, the forward by the heads."""

    def hits(by):
        """How many flat indices land on each pair of a key head and a place in its group."""
        pairs = sa.from_index(
            (h, g, h * g), lambda k, place, f: sympy.Eq(sympy.Mod(f, by), k) & sympy.Eq(sympy.floor(f / by), place)
        )
        return sa.sum(pairs, axis=-1)

    once = sa.ones(h, g)
    proved(hits(h), once)
    assert refuted(hits(g), once).sizes[h] != 1
    proved(hits(g), once, given=[sympy.Eq(g, h)])
    proved(sa.lt(sa.from_index((h * g,), lambda f: sympy.Mod(f, h)), h))
    found = refuted(sa.lt(sa.from_index((h * g,), lambda f: sympy.Mod(f, g)), h))  # a key head that does not exist
    assert found.left >= found.sizes[h]


def test_H13_a_softmax_over_the_queries_keeps_every_symmetry_and_no_row_sum():
    """labmlai/annotated_deep_learning_paper_implementations#146: normalised over the wrong axis, unnoticed."""
    Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)

    def attend(q, k, v, axis=-1):
        return sa.softmax(scaled(q, k), axis=axis) @ v

    def wrong(q, k, v):
        return attend(q, k, v, axis=0)

    symmetries = {"rows of Q": "equivariant", "pairs of K and V": "invariant", "features of V": "equivariant"}
    for f in (attend, wrong):
        found = sa.equivariance(f, (Q, K, V))
        assert {name: found[name].kind for name in symmetries} == symmetries

    P = sa.softmax(scaled(Q, K), axis=0)
    proved(sa.sum(sa.softmax(scaled(Q, K)), axis=1), sa.ones(T))
    refuted(sa.sum(P, axis=1), sa.ones(T))
    proved(sa.sum(P), sa.ones(S) @ sa.ones(S))  # they total the number of keys
    proved(attend(Q, K, sa.ones(S, e)), sa.ones(T, e))
    refuted(wrong(Q, K, sa.ones(S, e)), sa.ones(T, e))

    assert compute(sa.sum(P, axis=1), STANDARD) == digits([1.163779, 0.963415, 0.872807])
    assert first_difference(attend(Q, K, V), wrong(Q, K, V), STANDARD).largest == digits(0.122804)


def test_H15_attention_that_reads_the_batch_as_the_sequence_mixes_the_samples():
    """aipixel/AEMatter#3: batch-first input to a module that expects the sequence first."""
    x = sa.tensor("x", B, T, d)

    def attend(x):
        return sa.softmax(scaled(x, x)) @ x

    right, wrong = attend(x), sa.moveaxis(attend(sa.moveaxis(x, 0, 1)), 1, 0)

    def other_sample(out, inp):
        return sympy.Ne(out[0], inp[0])

    def other_token(out, inp):
        return sympy.Ne(out[1], inp[1])

    proved(sa.independent(right, x, other_sample))
    proved(sa.independent(wrong, x, other_token))
    for output, when in ((wrong, other_sample), (right, other_token)):
        found = refuted(sa.independent(output, x, when))
        assert found.left != found.right

    samples = rows(2, 3, 2, seed=8)
    changed = samples + np.array([0, 1])[:, None, None]
    assert np.abs(compute(right, {"x": changed})[0] - compute(right, {"x": samples})[0]).max() == 0
    leak = np.abs(compute(wrong, {"x": changed})[0] - compute(wrong, {"x": samples})[0]).max()
    assert leak == pytest.approx(0.083478, rel=0, abs=6e-7)
