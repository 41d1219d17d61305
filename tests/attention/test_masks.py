"""Masks: against loops at several sizes, proofs of what they mean, rows without keys, and impossible arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.attention import (
    as_bias,
    causal_mask,
    dilated_mask,
    document_mask,
    global_mask,
    key_padding_mask,
    prefix_mask,
    scaled_dot_product,
    sliding_window_mask,
)

T, S, B, d, e, w, p = sa.sizes("T S B d e w p")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
KS, VS = sa.tensor("K", T, d), sa.tensor("V", T, e)  # as many keys as queries
Z, M = sa.tensor("Z", T, S), sa.tensor("M", T, S, binary=True)
N = sa.tensor("n", B, integer=True)
PAIRS = [(1, 1), (1, 4), (4, 1), (4, 4), (3, 5), (6, 4)]  # of sizes T and S
OFFSETS = [-3, -1, 0, 1, 4]

# A mask whose queries have the positions i + o, and the same as a condition of the positions of a query and a key.
PLACED = {
    "causal": (causal_mask, {}, lambda q, j: j <= q),
    "window": (sliding_window_mask, {"left": 2, "right": 1}, lambda q, j: q - 2 <= j <= q + 1),
    "window of one key": (sliding_window_mask, {"left": 0, "right": 0}, lambda q, j: j == q),
    "window to the left": (sliding_window_mask, {"left": 1}, lambda q, j: q - 1 <= j),
    "window to the right": (sliding_window_mask, {"right": 2}, lambda q, j: j <= q + 2),
    "window without bounds": (sliding_window_mask, {}, lambda q, j: True),
    "window with self": (sliding_window_mask, {"left": 2, "includes_self": True}, lambda q, j: q - j < 2),
    "window of self": (
        sliding_window_mask,
        {"left": 1, "right": 0, "includes_self": True},
        lambda q, j: j == q,
    ),
    "prefix": (prefix_mask, {"prefix": 2}, lambda q, j: j < 2 or j <= q),
    "no prefix": (prefix_mask, {"prefix": 0}, lambda q, j: j <= q),
    "dilated": (dilated_mask, {"step": 2}, lambda q, j: (q - j) % 2 == 0),
    "dilated by one": (dilated_mask, {"step": 1}, lambda q, j: True),
    "global": (global_mask, {"tokens": 2}, lambda q, j: q < 2 or j < 2),
    "no global": (global_mask, {"tokens": 0}, lambda q, j: q < 0),
}


def run(x: sa.Tensor, *arrays: Any, **keywords: int) -> np.ndarray:
    """The values on arrays, in the order of the tensors; sizes that no array shows are keywords, others are ignored."""
    function = sa.lambdify(list(x.tensors), x)
    shown = {s for a in x.tensors for size in a.shape for s in size.free_symbols}
    needed = {s.name for s in x.free_symbols if isinstance(s, sympy.Symbol) and s not in shown}
    return np.asarray(function(*arrays, **{k: v for k, v in keywords.items() if k in needed}))


def loop(t: int, s: int, seen: Any) -> np.ndarray:
    return np.array([[bool(seen(i, j)) for j in range(s)] for i in range(t)])


@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize(("t", "s"), PAIRS)
def test_a_mask_is_its_condition_under_every_alignment(name, t, s):
    build, options, seen = PLACED[name]
    square = run(build(T, **options), T=t)
    assert (square == loop(t, t, seen)).all()
    for o in OFFSETS:
        got = run(build(t, s, offset=o, **options))
        assert (got == loop(t, s, lambda i, j, o=o: seen(i + o, j))).all()
    first, last = build(T, S, **options), build(T, S, align="bottom-right", **options)
    assert (run(first, T=t, S=s) == loop(t, s, seen)).all()
    assert (run(last, T=t, S=s) == loop(t, s, lambda i, j: seen(i + s - t, j))).all()
    assert first.kind == last.kind == "binary"


@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize(("t", "s"), PAIRS)
def test_an_integer_tensor_of_offsets_gives_a_mask_for_each(name, t, s):
    build, options, seen = PLACED[name]
    mask = build(T, S, offset=N, **options)
    got = np.broadcast_to(run(mask, *([np.array(OFFSETS)] if mask.tensors else []), T=t, S=s), (len(OFFSETS), t, s))
    for o, one in zip(OFFSETS, got, strict=True):
        assert (one == loop(t, s, lambda i, j, o=o: seen(i + o, j))).all()


@pytest.mark.parametrize("size", [1, 2, 5])
def test_padding(size):
    lengths = np.array([0, 1, 3, 7])
    got = run(key_padding_mask(S, N), lengths, S=size)
    assert got.shape == (4, 1, size)
    assert (got[:, 0] == [[j < n for j in range(size)] for n in lengths]).all()
    for n in lengths.tolist():
        assert run(key_padding_mask(S, n), S=size).tolist() == [j < n for j in range(size)]
    assert run(key_padding_mask(S, p), S=size, p=1).tolist() == [j < 1 for j in range(size)]
    assert run(key_padding_mask(S, sa.tensor("n", integer=True)), 2, S=size).tolist() == [[j < 2 for j in range(size)]]
    assert key_padding_mask(S, N[:, None]).shape == (B, 1, 1, S)  # with heads
    assert key_padding_mask(S, sympy.Symbol("c", integer=True)).shape == (S,)


def test_lengths_and_offsets_may_be_computed():
    """ONNX: n_b real keys, of which the last T belong to the queries."""
    mask = key_padding_mask(S, N) & causal_mask(T, S, offset=N - T)
    got = run(mask, np.array([1, 4]), T=3, S=5)
    assert (got == [loop(3, 5, lambda i, j, n=n: j < n and j <= i + n - 3) for n in (1, 4)]).all()
    assert not got[0, :2].any()  # queries before all keys
    padding = sa.tensor("pad", B, S, binary=True)
    given = np.array([[1, 1, 0], [0, 0, 0]])
    assert run(key_padding_mask(S, sa.sum(padding, axis=-1)), given)[:, 0].tolist() == given.tolist()
    c = sympy.Symbol("c", integer=True)
    assert (run(causal_mask(T, S, offset=c), T=3, S=5, c=2) == loop(3, 5, lambda i, j: j <= i + 2)).all()
    one = sa.tensor("c", integer=True)
    assert (run(causal_mask(T, S, offset=one), -1, T=3, S=5) == loop(3, 5, lambda i, j: j <= i - 1)).all()
    for offset in (sa.maximum(N, 0), sa.floor(N / 2), sa.let("c", N + 1)):
        assert causal_mask(T, S, offset=offset).shape == (B, T, S)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_prefixes_of_a_batch(size):
    got = run(prefix_mask(T, prefix=N), np.array([0, 2, 9]), T=size)
    assert (got == [loop(size, size, lambda i, j, n=n: j < n or j <= i) for n in (0, 2, 9)]).all()


def test_documents():
    s_q, s_k = sa.tensor("a", B, T, integer=True), sa.tensor("b", B, S, integer=True)
    queries, keys = np.array([[0, 0, 1, 7], [2, 2, 2, 2]]), np.array([[0, 1, 1], [3, 2, 3]])
    got = run(document_mask(s_q, s_k), queries, keys)
    want = [loop(4, 3, lambda i, j, n=n: queries[n, i] == keys[n, j]) for n in range(2)]
    assert (got == want).all()
    assert (run(document_mask(s_q), queries) == (queries[:, :, None] == queries[:, None, :])).all()
    starts = sa.tensor("starts", T, binary=True)
    assert (run(document_mask(sa.cumsum(starts)), np.array([1, 0, 1])) == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]).all()
    blocks = document_mask(sa.from_index(T, lambda i: sympy.floor(i / 2)))
    assert (run(blocks, T=5) == loop(5, 5, lambda i, j: i // 2 == j // 2)).all()


def test_masks_are_combined_and_get_a_place_for_heads():
    h = sa.sizes("h")
    q, k, v = (sa.tensor(name, B, h, n, d) for name, n in (("Q", T), ("K", S), ("V", S)))
    mask = (causal_mask(T, S, offset=N) & ~dilated_mask(T, S, step=2))[:, None] | global_mask(T, S, tokens=1)
    assert mask.shape == (B, 1, T, S)
    output = scaled_dot_product(q, k, v, mask=mask)
    assert output.shape == (B, h, T, d)
    alone = scaled_dot_product(Q, K, sa.tensor("V", S, d), mask=M)
    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=(2, 3, n, 4)) for n in (4, 5, 5)]
    offsets = np.array([-2, 1])
    got = sa.lambdify([q, k, v, N], output)(*arrays, offsets)
    single = sa.lambdify([*alone.tensors], alone)
    for b, o in enumerate(offsets):
        keep = loop(4, 5, lambda i, j, o=o: (j <= i + o and (i - j) % 2) or 0 in (i, j))
        for head in range(3):
            given = dict(zip("QKV", (x[b, head] for x in arrays), strict=True)) | {"M": keep}
            np.testing.assert_allclose(got[b, head], single(*(given[x.name] for x in alone.tensors)), rtol=1e-13)


# --- what they mean, for all sizes ---


def proved(*claim: Any, given: Any = ()) -> None:
    verdict = sa.prove(*claim, given=given)
    assert verdict.status == "proved", str(verdict)
    assert verdict.proof.check()


@pytest.mark.parametrize(
    "mask",
    [
        causal_mask(T, S),
        causal_mask(T, S, align="bottom-right"),
        causal_mask(T, S, offset=-2),
        sliding_window_mask(T, S, left=w, right=0),
        key_padding_mask(S, p),
        key_padding_mask(S, p) & causal_mask(T, S),
        prefix_mask(T, S, prefix=2),
        global_mask(T, S, tokens=2),
        sliding_window_mask(T, S, left=1, right=1, align="bottom-right"),
        M,
    ],
    ids=str,
)
def test_a_mask_equals_its_additive_form(mask):
    proved(scaled_dot_product(Q, K, V, mask=mask), scaled_dot_product(Q, K, V, bias=as_bias(mask)))
    proved(scaled_dot_product(Q, K, V, mask=mask), scaled_dot_product(Q, K, V, mask=~mask, mask_polarity="block"))


def test_checked_numerically_a_dilated_mask_equals_its_additive_form(rng):
    mask = dilated_mask(T, S, step=2) & sliding_window_mask(T, S, left=2, right=2)
    q, k, v = (rng.normal(size=shape) for shape in [(4, 3), (5, 3), (5, 2)])
    forms = {"mask": mask}, {"bias": as_bias(mask)}, {"mask": ~mask, "mask_polarity": "block"}
    one, two, three = (sa.lambdify([Q, K, V], scaled_dot_product(Q, K, V, **form))(q, k, v) for form in forms)
    np.testing.assert_allclose(two, one, rtol=1e-13)
    np.testing.assert_array_equal(three, one)


@pytest.mark.parametrize("mask", [causal_mask(T), sliding_window_mask(T, left=w, right=0)], ids=str)
def test_no_output_depends_on_the_future(mask):
    output = scaled_dot_product(Q, KS, VS, mask=mask)
    for x in (KS, VS):
        proved(sa.independent(output, x, when=lambda out, inp: inp[0] > out[0]))
    unmasked = sa.prove(sa.independent(scaled_dot_product(Q, KS, VS), KS, when=lambda out, inp: inp[0] > out[0]))
    assert unmasked.status == "refuted"


def test_a_window_is_independent_of_what_lies_before_it():
    output = scaled_dot_product(Q, KS, VS, mask=sliding_window_mask(T, left=1, right=0))
    proved(sa.independent(output, VS, when=lambda out, inp: inp[0] < out[0] - 1))
    seen = sa.prove(sa.independent(output, VS, when=lambda out, inp: inp[0] < out[0]))
    assert seen.status == "refuted"


def test_with_as_many_keys_as_queries_there_is_one_alignment():
    assert causal_mask(T, T, align="bottom-right") is causal_mask(T)
    bottom, top = causal_mask(T, S, align="bottom-right"), causal_mask(T, S)
    proved(bottom.subs({S: T}), top.subs({S: T}))
    found = sa.prove(bottom, top)
    assert found.status == "refuted"
    assert found.counterexample.sizes[T] != found.counterexample.sizes[S]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            sliding_window_mask(T, left=w, right=0, includes_self=True),
            sliding_window_mask(T, left=w - 1, right=0),
        ),
        (sliding_window_mask(T, S, right=0), causal_mask(T, S)),
        (sliding_window_mask(T, left=w, right=0), causal_mask(T) & sliding_window_mask(T, left=w)),
        (causal_mask(T, S, offset=N), sliding_window_mask(T, S, right=0, offset=N)),
        (prefix_mask(T, prefix=p), causal_mask(T) | key_padding_mask(T, p)),
        (prefix_mask(T, prefix=T), key_padding_mask(T, T) & sliding_window_mask(T)),
    ],
)
def test_one_mask_in_terms_of_others(one, other):
    proved(one, other)


# --- rows without keys ---

EMPTY = np.array([[True, False, True], [False, False, False]])


@pytest.mark.parametrize("huge", [1.0, 1e30, -1e30])
@pytest.mark.parametrize("form", ["mask", "bias", "block"])
def test_a_row_without_keys_is_zero_with_gradient_zero(form, huge):
    options = {
        "mask": {"mask": M},
        "bias": {"bias": as_bias(M)},
        "block": {"mask": ~M, "mask_polarity": "block"},
    }[form]
    output = scaled_dot_product(Q, K, V, **options)
    g = sa.gradient(output, [Q, K, V])
    rng = np.random.default_rng(0)
    q, k, v, do = (rng.normal(size=shape) for shape in [(2, 4), (3, 4), (3, 5), (2, 5)])
    q[:, 0] *= huge
    o, dq, dk, dv = sa.lambdify([Q, K, V, M, g.cotangent], [output, g])(q, k, v, EMPTY, do)
    assert all(np.isfinite(x).all() for x in (o, dq, dk, dv))
    assert not o[1].any()
    assert not dq[1].any()
    assert not dk[1].any()  # the key that no row sees
    assert not dv[1].any()
    np.testing.assert_allclose(dv.sum(0), do[0], rtol=1e-12)  # only the first row, whose weights sum to 1
    if huge == 1:
        assert dq[0].any()


@pytest.mark.parametrize("form", ["causal", "padding", "offset of a batch"])
def test_rows_before_all_keys_are_zero(form):
    given, arrays = [Q, K, V], [np.full((4, 2), 1e30), np.full((3, 2), 1e30), np.ones((3, 2))]
    mask, empty = {
        "causal": (causal_mask(T, S, align="bottom-right"), [[True, False, False, False]]),
        "padding": (key_padding_mask(S, 0), [[True] * 4]),
        "offset of a batch": (causal_mask(T, S, offset=N), [[True, True, False, False], [True] * 4]),
    }[form]
    if form == "offset of a batch":
        given, arrays = [*given, N], [*arrays, np.array([-2, -7])]
    output = scaled_dot_product(*given[:3], mask=mask)
    got = sa.lambdify(given, output)(*arrays)
    assert (got == np.where(np.squeeze(empty)[..., None], 0, 1)).all()
    refused = scaled_dot_product(*given[:3], mask=mask, empty="error")
    with pytest.raises(sa.EvaluationError, match="nothing to attend to"):
        sa.lambdify(given, refused)(*arrays)


# --- arguments that make no sense ---


@pytest.mark.parametrize("sizes", [(T, 0), (0,), (0, S), (T, -1)])
@pytest.mark.parametrize("name", PLACED)
def test_there_is_no_mask_without_keys_or_queries(name, sizes):
    build, options, _ = PLACED[name]
    with pytest.raises(sa.ShapeError, match="a size is positive and finite, not"):
        build(*sizes, **options)
    with pytest.raises(sa.ShapeError, match="a size is positive and finite, not 0"):
        key_padding_mask(0, 0)


@pytest.mark.parametrize(
    ("build", "problem", "text"),
    [
        (lambda: sliding_window_mask(T, left=-1), sa.ShapeError, "left is -1, and has to be >= 0; None is a window"),
        (lambda: sliding_window_mask(T, right=-w), sa.ShapeError, "right is -w, and has to be >= 0; None is a window"),
        (
            lambda: sliding_window_mask(T, left=0, includes_self=True),
            sa.ShapeError,
            "sliding_window_mask: left is 0, and has to be >= 1",
        ),
        (
            lambda: sliding_window_mask(T, right=0, includes_self=True),
            sa.OperandError,
            "includes_self=True says how left counts, and there is no left",
        ),
        (lambda: sliding_window_mask(T, left=1.5), sa.OperandError, "left holds whole numbers.*not 3/2"),
        (lambda: sliding_window_mask(T, left=N), sa.OperandError, r"left is one number, not the tensor n\[B\]"),
        (lambda: sliding_window_mask(T, left=True), sa.OperandError, "True is neither a tensor nor a real scalar"),
        (
            lambda: causal_mask(T, S, align="lower-right"),
            sa.OperandError,
            "causal_mask: align is 'top-left' or 'bottom-right', not 'lower-right'",
        ),
        (
            lambda: causal_mask(T, S, align="bottom-right", offset=0),
            sa.OperandError,
            "align='bottom-right' is offset=S - T; give only one of them",
        ),
        (lambda: causal_mask(T, S, offset=0.5), sa.OperandError, "causal_mask: offset holds whole numbers.*not 1/2"),
        (lambda: causal_mask(T, S, offset=Q), sa.OperandError, r"offset holds whole numbers.*not Q\[T, d\]"),
        (lambda: causal_mask(T, S, offset=N / 2), sa.OperandError, "offset holds whole numbers"),
        (lambda: causal_mask(T, S, offset=M), sa.OperandError, r"offset holds whole numbers.*not M\[T, S\]"),
        (lambda: causal_mask(T, S, offset=np.array([1, 2])), sa.OperandError, "an array of shape"),
        (lambda: causal_mask(T, S, offset=sympy.Symbol("c")), sa.OperandError, "offset holds whole numbers.*not c"),
        (lambda: key_padding_mask(S, -1), sa.ShapeError, "key_padding_mask: lengths is -1, and has to be >= 0"),
        (lambda: key_padding_mask(S, [3, 4]), sa.OperandError, r"\[3, 4\] is neither a tensor nor"),
        (lambda: prefix_mask(T, prefix=-1), sa.ShapeError, "prefix is -1"),
        (lambda: dilated_mask(T, step=0), sa.ShapeError, "step is 0, and has to be >= 1"),
        (lambda: global_mask(T, tokens=-2), sa.ShapeError, "tokens is -2"),
        (lambda: document_mask(sa.tensor("x", T)), sa.OperandError, r"segments_q holds whole numbers.*not x\[T\]"),
        (lambda: document_mask(sa.tensor("x", integer=True)), sa.ShapeError, r"segments_q\[.., T\] is meant"),
        (lambda: as_bias(Z), sa.OperandError, r"as_bias takes a binary tensor \(True = attend\), not Z\[T, S\]"),
        (
            lambda: scaled_dot_product(Q, K, V, mask=sa.tensor("M", S, T, binary=True)),
            sa.ShapeError,
            r"the mask M\[S, T\] does not fit the scores Z\[T, S\]: axis -1, of the keys, has the size T, not S",
        ),
        (lambda: scaled_dot_product(Q, K, V, mask=causal_mask(T)), sa.ShapeError, "of the keys, has the size T, not S"),
        (
            lambda: scaled_dot_product(Q, K, V, mask=as_bias(M)),
            sa.OperandError,
            r"the mask of probabilities takes a binary tensor \(True = attend\)",
        ),
        (lambda: scaled_dot_product(Q, K, V, bias=as_bias(causal_mask(T))), sa.ShapeError, "T.*S"),
        (lambda: scaled_dot_product(Q, K, V, bias=M), sa.OperandError, r"bias M\[T, S\] is binary.*give it as mask="),
        (
            lambda: scaled_dot_product(Q, K, V, causal=True),
            sa.OperandError,
            "scaled_dot_product has no keyword 'causal'.*mask=causal_mask",
        ),
        (lambda: scaled_dot_product(Q, K, V, mask_polarity="keep"), sa.OperandError, "mask_polarity is 'attend' or"),
        (lambda: scaled_dot_product(Q, K, V, empty="nan"), sa.OperandError, "empty is 'zero' or 'error'"),
        (
            lambda: scaled_dot_product(Q, K, V, mask=M, mask_polarity="keep"),
            sa.OperandError,
            "mask_polarity is 'attend' or 'block', not 'keep'",
        ),
        (lambda: scaled_dot_product(Q, K, V, mask=M, empty="nan"), sa.OperandError, "nan"),
    ],
)
def test_arguments_that_make_no_sense(build, problem, text):
    with pytest.raises(problem, match=text):
        build()
