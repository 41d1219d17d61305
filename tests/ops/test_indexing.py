"""Basic indexing is NumPy's: shapes and entries for integers, slices, None and ..., held against NumPy itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.ops.leaves import constant

T, S, d, n = sa.sizes("T S d n")
X = sa.tensor("X", 5, 4, 3)
Q = sa.tensor("Q", T, d)
Y = sa.tensor("Y", T, 2 * n)
s_ = np.s_
CODES = np.arange(60).reshape(5, 4, 3)


def codes(x):
    """The entry of X that each entry of an index of X reads, as in the array CODES."""
    letters = sympy.symbols(f"i:{x.rank + 1}", integer=True)[: x.rank]
    read = sa.entries(x).equations[-1]
    out = np.empty([int(size) for size in x.shape], dtype=int)
    for place in itertools.product(*map(range, out.shape)):
        at = read.entry.xreplace(dict(zip(read.index, map(sympy.Integer, place), strict=True)))
        out[place] = CODES[tuple(map(int, at.indices))]
    assert len(letters) == x.rank
    return out


KEYS = [
    s_[0], s_[-1], s_[4], s_[-5], s_[1, 2], s_[1, 2, 0], s_[-1, -1, -1], s_[..., 0], s_[0, ..., 1], s_[...],
    s_[:, 1], s_[:, :, -1],
    s_[1:3], s_[1:], s_[:2], s_[:-1], s_[-2:], s_[-3:-1], s_[1:100], s_[-100:], s_[:100], s_[:, 1:3, ::2],
    s_[::2], s_[1::2], s_[::3], s_[1:4:2], s_[::4], s_[::100], s_[::-1], s_[::-2], s_[3::-1], s_[:1:-1],
    s_[3:0:-1], s_[3:0:-2],
    s_[4::-1], s_[5::-1], s_[100::-1], s_[-1::-1], s_[-2::-2], s_[:-100:-1], s_[:-6:-1], s_[:-5:-1],
    s_[100:-100:-1], s_[..., ::-1],
    s_[None], s_[:, None], s_[..., None], s_[None, ..., None], s_[None, 0], s_[0, None], s_[:, None, 1], s_[None, None],
    s_[1:3, None, 0, ::-1],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_an_index_reads_what_numpy_reads(key):
    np.testing.assert_array_equal(codes(X[key]), CODES[key])


INNER = [s_[1:4], s_[::-1], s_[::2], s_[0], s_[None], s_[:, 1:3], s_[..., 0], s_[4:1:-2]]
OUTER = [s_[0], s_[-1], s_[:1], s_[::-1], s_[None], s_[:, 0], s_[..., None], s_[..., ::-1], s_[0, None], s_[None, 0]]


@pytest.mark.parametrize(("inner", "outer"), list(itertools.product(INNER, OUTER)), ids=str)
def test_an_index_of_an_index_reads_what_numpy_reads(inner, outer):
    np.testing.assert_array_equal(codes(X[inner][outer]), CODES[inner][outer])


@pytest.mark.parametrize(
    "index", [2, np.int64(2), sympy.Integer(2), np.array(2)], ids=lambda index: type(index).__name__
)
def test_integers_of_every_kind_index(index):
    assert X[index] is X[2]
    assert X[index:] is X[2:]


def test_the_whole_tensor_is_itself_and_indices_compose_to_one_node():
    assert X[:] is X[...] is X[:, :, :] is X[0:5] is X[-5:100:1] is X
    assert X[1:][1:] is X[2:]
    assert X[::-1][::-1] is X
    assert X[:, None][:, 0] is X


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        (Q[0], (d,)),
        (Q[:3], (3, d)),
        (Q[1:], (T - 1, d)),
        (Q[:-1], (T - 1, d)),
        (Q[-2:], (2, d)),
        (Q[::-1], (T, d)),
        (Q[-S:], (S, d)),
        (Q[:S], (S, d)),
        (Q[1 - T :], (T - 1, d)),
        (Q[:, : d / 2], (T, d / 2)),
        (Y[:, :n], (T, n)),
        (Y[:, n:], (T, n)),
        (Y[:, -n:], (T, n)),
        (Y[:, ::2], (T, n)),
        (Y[:, 1::2], (T, n)),
        (Y[:, ::-2], (T, n)),
        (Y[:, : T + 2 * n], (T, 2 * n)),
        (Q[None, :, None], (1, T, 1, d)),
    ],
    ids=range(18),
)
def test_slices_of_symbolic_sizes_have_symbolic_lengths(made, shape):
    assert made.shape == shape


def test_negative_edges_of_symbolic_sizes_count_from_the_end():
    i, j = sympy.symbols("i j", integer=True, nonnegative=True)
    assert Q[-1][j].indices == (T - 1, j)
    assert Q[-S:][i, j].indices == (T - S + i, j)
    assert Q[::-1][i, j].indices == (T - 1 - i, j)
    assert Y[:, 1::2][i, j].indices == (i, 2 * j + 1)


@pytest.mark.parametrize("key", [s_[T - S :], s_[S - T :], s_[: T - S], s_[: 2 - S]], ids=str)
def test_an_edge_of_unknown_sign_is_refused_rather_than_guessed(key):
    with pytest.raises(sa.ShapeError, match=r"Q\[T, d\] is sliced at .* whose sign is not known"):
        Q[key]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (s_[5], "index 5 is out of range for the size 5 in X"),
        (s_[-6], "index -6 is out of range"),
        (s_[0, 4], "index 4 is out of range for the size 4"),
        (s_[0, 0, 0, 0], "has 3 axes and cannot be indexed by"),
        (s_[..., ...], "cannot be indexed by"),
        (s_[3:1], "is empty"),
        (s_[2:2], "is empty"),
        (s_[5:], "is empty"),
        (s_[1:3:-1], "is empty"),
        (s_[-100::-1], "is empty"),
        (s_[::0], "has step 0"),
    ],
    ids=str,
)
def test_an_index_out_of_range_or_empty_is_a_shape_error(key, said):
    with pytest.raises(sa.ShapeError, match=rf"{said}.*"):
        X[key]


@pytest.mark.parametrize(
    "key",
    [
        1.0,
        True,
        "a",
        [0, 1],
        s_[0, [1]],
        s_[1.5:],
        s_[:True],
        s_[::1.5],
        s_[::True],
        np.array([0]),
        np.array(True),
        (0, "a"),
        1j,
        s_["a":],
    ],
    ids=repr,
)
def test_what_is_no_basic_index_is_an_operand_error(key):
    with pytest.raises(sa.OperandError, match=r"X\[5, 4, 3\] is indexed by|sliced"):
        X[key]


def test_a_step_that_does_not_divide_a_symbolic_size_asks_for_a_multiple():
    with pytest.raises(sa.ShapeError, match=r"declare the size T as a multiple of 2, for example 2\*m"):
        Q[::2]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_an_index_prints_as_an_index_that_reads_the_same(key):
    written = str(X[key])
    items = written.removeprefix("X").strip("[]").split(", ") if written != "X" else []
    again = tuple(_item(item) for item in items)
    np.testing.assert_array_equal(CODES[again], CODES[key])


def _item(text):
    if text == "None":
        return None
    edges = [int(edge) if edge else None for edge in text.split(":")]
    return slice(*edges) if ":" in text else edges[0]


def test_a_number_is_indexed_by_new_axes_only():
    half = constant(formula=sympy.Rational(1, 2))
    assert half[()] is half
    assert str(half[None]) == "broadcast_to(1/2, (1,))"
    with pytest.raises(sa.ShapeError):
        half[0]


def test_a_number_in_the_place_of_a_scalar_with_new_axes_is_a_factor():
    x, s = sa.tensor("x", "n"), sa.tensor("s")
    assert str((s[None] * x).replace({s: constant(formula=sympy.Integer(3))})) == "3 * x"
    assert str(sa.jvp(sa.sum(s[None] * x), {s: 3})) == "3 * sum(x)"
