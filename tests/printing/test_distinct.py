"""Expressions that differ never print alike: what the prover refutes to be equal has two formulas.

What means the same may print the same, such as ``x @ A`` and ``A.T @ x``.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

import pytest

import symattn as sa
from symattn.errors import OperandError

from ..random_terms import WORLDS, Maker

n, m = sa.sizes("n m")
x, y, z, c = sa.tensor("x", n), sa.tensor("y", m), sa.tensor("z", n), sa.tensor("c")
A, M, N = sa.tensor("A", n, m), sa.tensor("M", n, n), sa.tensor("N", n, n)
C, R = sa.tensor("C", n, 1), sa.tensor("R", 1, n)
t = sa.tensor("t", n, integer=True)

SQUARE = [
    *(f(M, v) for f in (lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a / b) for v in (x, x[:, None], x[None])),
    *(f(v, M) for f in (lambda a, b: a - b, lambda a, b: a / b) for v in (x, x[:, None], C, R)),
    *(f(M, v) for f in (sa.maximum, sa.minimum, sa.mod) for v in (x, C, c)),
    *(M**v for v in (x, C, c, 2)), *(v**M for v in (x, C, c)), *(M < v for v in (x, C, c)), *(v < M for v in (x, C)),
    *(f(M, axis=a, keepdims=True) * M for f in (sa.sum, sa.mean, sa.max, sa.logsumexp) for a in (0, 1)),
    *(M / f(M, axis=a) for f in (sa.sum, sa.mean, sa.max, sa.logsumexp) for a in (0, 1)),
    *(f(M, axis=a) for f in (sa.softmax, sa.sparsemax, sa.cumsum) for a in (0, 1)), sa.softmax(M, axis=(0, 1)),
    M @ N, N @ M, M.T @ N, M @ N.T, M * N, M.T * N, M / N, M.T, sa.diag(x) @ M, M @ sa.diag(x), sa.outer(x, z),
    sa.outer(z, x), x[:, None] + z, z[:, None] + x, x[:, None] / z, z / x[:, None], C * R, C + R, C @ R, R + x[:, None],
    sa.where(M > 0, x, C), sa.where(M > 0, C, x), sa.where(x > 0, M, N), sa.where(C > 0, M, N), M[::-1], M[:, ::-1],
    sa.take(M, t, axis=0), sa.take(M, t, axis=1), sa.exp(M + x), sa.exp(M) + x, (x @ z) * M, c * M, x @ M * N,
    sa.softmax(M, where=sa.tensor("b", n, binary=True)), sa.softmax(M, where=sa.tensor("b", n, binary=True)[:, None]),
    sa.tril(M), sa.triu(M), sa.tril(M, -1), sa.eye(n), sa.ones(n, n), sa.zeros(n, n),
]  # fmt: skip
VECTORS = [
    M @ x, x @ M, M @ z, x @ M @ N, x @ N @ M, M @ N @ x, *(sa.sum(v, axis=a) for v in (M, N, M * N) for a in (0, 1)),
    *(f(M, axis=a) for f in (sa.max, sa.min, sa.mean, sa.logsumexp) for a in (0, 1)), M[0], M[:, 0], M[1], M[:, -1],
    sa.diag(M), x * z, x / z, x + z, c * x, (x @ z) * x, x @ z * z, sa.take(x, t, axis=0), sa.take(z, t, axis=0),
    sa.shift(x, 1), sa.shift(x, -1), x[::-1], sa.cumsum(x), sa.softmax(x), M[0] * x, M[:, 0] * x, M[0] @ M, M @ M[0],
    sa.concat([x[:1], z[1:]]), sa.concat([z[:1], x[1:]]), C[:, 0] + x, R[0] + x, C[:, 0] * R[0], x + x, x + c, x - x,
]  # fmt: skip
NUMBERS = [
    x @ z, x @ x, x @ M @ z, z @ M @ x, M[0, 1], M[1, 0], x[0], x[1], M[0] @ x, M[:, 0] @ x, sa.sum(M), sa.sum(x),
    sa.max(M), sa.mean(x), sa.trace(M), c * c, c / (x @ x), (x @ x) / c, sa.logsumexp(x), M[0] @ M[1], M[0] @ M[:, 1],
]  # fmt: skip


def refuted(made: Iterable[sa.Tensor], budget: float = 1.0) -> list[tuple[str, str, str]]:
    """The pairs of one shape that print alike though they differ, with how they print."""
    alike: dict[tuple[str, object], list[sa.Tensor]] = {}
    for tensor in dict.fromkeys(made):
        try:
            written = sa.latex(tensor)
        except OperandError:  # too large to be read
            continue
        alike.setdefault((written, tensor.shape), []).append(tensor)
    pairs = ((key[0], a, b) for key, group in alike.items() for a, b in itertools.pairwise(group))
    return [(w, str(a), str(b)) for w, a, b in pairs if sa.prove(a, b, budget=budget).status == "refuted"]


@pytest.mark.parametrize("made", [SQUARE, VECTORS, NUMBERS], ids=["matrices", "vectors", "numbers"])
def test_what_differs_by_orientation_prints_apart(made):
    assert refuted(made) == []


def _terms(world: str, seed: int, count: int) -> list[sa.Tensor]:
    rng, made = random.Random(f"{world} {seed}"), list[sa.Tensor]()
    maker = Maker(WORLDS[world], rng)
    for shape in maker.world.shapes:
        made += (maker.term(shape, rng.choice([1, 1, 2, 2, 3])) for _ in range(count))
    return [tensor for tensor in made if not tensor.has_more_nodes(25)]


@pytest.mark.parametrize("world", ["square", "rectangular"])
def test_random_terms_that_differ_print_apart(world):
    assert refuted(_terms(world, 0, 60)) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("world", WORLDS)
def test_many_random_terms_that_differ_print_apart(world, seed):
    assert refuted(_terms(world, 1 + seed, 500)) == []


@pytest.mark.parametrize(
    "f",
    [sa.softmax, sa.sparsemax, sa.entmax15, sa.cumsum, sa.logsumexp, lambda x: sa.unknown("f", x, rowwise=True)],
    ids=["softmax", "sparsemax", "entmax15", "cumsum", "logsumexp", "unknown"],
)
def test_rows_of_one_entry_print_apart_from_a_column(f):
    sums = sa.sum(M, axis=-1)
    assert sa.latex(f(x[:, None])) != sa.latex(f(x))
    assert sa.latex(f(sums[:, None])) != sa.latex(f(sums))
    assert sa.latex(f(sa.sum(M, axis=-1, keepdims=True))) != sa.latex(f(sums))
    assert r"\text{row}" not in sa.latex(f(M)) + sa.latex(f(x)) + sa.latex(f(R))


def test_the_row_of_one_entry_is_said_below_the_function():
    assert sa.latex(sa.softmax(C) + M) == r"\operatorname{softmax}_{\text{row}}(C) \mathbf{1}^{\top} + M"
    assert sa.latex(sa.softmax(x)[:, None] + M) == r"\operatorname{softmax}(x) \mathbf{1}^{\top} + M"
    assert str(sa.softmax(C)) == "softmax(C)"


@pytest.mark.parametrize(
    ("x", "written"),
    [
        (M / N * M, r"(M \oslash N) \odot M"),
        (M * N / M, r"(M \odot N) \oslash M"),
        (2 * (M / N) * M, r"2 (M \oslash N) \odot M"),
        (M / (N * M), r"M \oslash (N \odot M)"),
        (M * N * M, r"M \odot N \odot M"),
        (M / N / M, r"M \oslash N \oslash M"),
    ],
    ids=str,
)
def test_entrywise_products_and_quotients_are_told_apart_by_parentheses(x, written):
    assert sa.latex(x) == written
