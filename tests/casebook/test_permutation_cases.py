"""Disputes from public threads about what a permutation of the tokens does, each settled by proof.

For each: the statement that holds is proved for all sizes, the other one is refuted, and the size of the mistake is
found again in the numbers that were verified once (six digits).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa

from .test_gradient_cases import STANDARD, compute, digits, first_difference

n, m, r, d, e = sa.sizes("n m r d e")
X, Pi = sa.tensor("X", n, d), sa.tensor("Pi", n, n, permutation=True)
Q, K, V = sa.tensor("Q", n, d), sa.tensor("K", m, d), sa.tensor("V", m, e)
W_q, W_k, W_v = (sa.tensor(name, d, d) for name in ("W_q", "W_k", "W_v"))

SEQUENCE = {
    "X": [[0.4, -1.0, 0.7], [1.1, 0.2, -0.3], [-0.6, 0.9, 0.5], [0.3, 0.3, -1.2]],
    "W_q": [[0.5, -0.2, 0.1], [0.1, 0.8, -0.3], [-0.6, 0.3, 0.4]],
    "W_k": [[0.2, 0.7, -0.1], [-0.5, 0.1, 0.6], [0.4, -0.9, 0.2]],
    "W_v": [[1.0, 0.0, 0.2], [0.3, -0.4, 0.5], [-0.2, 0.6, 0.1]],
    "Pi": np.eye(4)[[2, 0, 3, 1]],
}


def proved(*claim: Any, given: Sequence[Any] = ()) -> Any:
    """The proof of a claim, replayed."""
    verdict = sa.prove(*claim, given=given)
    assert verdict.status == "proved", str(verdict)
    assert verdict.proof.check()
    return verdict.proof


def refuted(*claim: Any, given: Sequence[Any] = ()) -> Any:
    """The counterexample to a claim, after both of its values came out of the compiled sides again."""
    verdict = sa.prove(*claim, given=given)
    assert verdict.status == "refuted", str(verdict)
    found = verdict.counterexample
    first, second = verdict.claim.sides
    arrays = {x.name: array for x, array in found.arrays_numpy().items()}
    moved = arrays
    if found.twin is not None:  # the same output, at the second value of the variable
        first, second, moved = first, first, {**arrays, second.name: arrays[found.twin.name]}
    for side, values, shown in ((first, arrays, found.left), (second, moved, found.right)):
        value = compute(side.subs({**found.sizes, **found.scalars}), values)[found.index]
        assert value == pytest.approx(float(shown), rel=1e-9)
    return found


def attend(q: Any, k: Any, v: Any, **mask: Any) -> Any:
    return sa.softmax(q @ k.T / sympy.sqrt(q.shape[-1]), **mask) @ v


def attend_to(x: Any, y: Any, **mask: Any) -> Any:
    return attend(x @ W_q, y @ W_k, y @ W_v, **mask)


def self_attention(x: Any, **mask: Any) -> Any:
    return attend_to(x, x, **mask)


def block(x: Any, y: Any) -> Any:
    """The attention block of set transformers, without its feed-forward layer."""
    return x + attend_to(x, y)


def of_rows(f: Any) -> str:
    """What a permutation of the rows of X does: equivariant, invariant or neither."""
    return sa.equivariance(f, X)["rows of X"].kind


def test_P01_self_attention_is_equivariant_and_a_learned_query_makes_it_invariant():
    """udlbook/udlbook#131: a book says equivariant, its slides invariant; they speak of two functions."""
    queries = sa.tensor("Q", r, d)

    def learned(x):
        return attend(queries, x @ W_k, x @ W_v)

    proved(self_attention(Pi @ X), Pi @ self_attention(X))
    proved(learned(Pi @ X), learned(X))
    assert (of_rows(self_attention), of_rows(learned)) == ("equivariant", "invariant")

    found = refuted(self_attention(Pi @ X), self_attention(X))
    assert found.sizes[n] == 2
    as_many = attend(Q, X @ W_k, X @ W_v)  # as many queries as tokens, so that the other claim can be asked
    refuted(attend(Q, Pi @ X @ W_k, Pi @ X @ W_v), Pi @ as_many)
    apart = first_difference(self_attention(X), self_attention(Pi @ X), SEQUENCE)
    assert apart.largest == digits(0.549795)


def test_P03_set_blocks_are_equivariant_and_pooling_is_invariant():
    """juho-lee/set_transformer#10: the two self-attending blocks are called invariant in an answer."""
    inducing, seeds = sa.tensor("I", r, d), sa.tensor("S", m, d)
    blocks = {
        "SAB": lambda x: block(x, x),
        "ISAB": lambda x: block(x, block(inducing, x)),
        "inside of ISAB": lambda x: block(inducing, x),
        "PMA": lambda x: block(seeds, x),
        "set transformer": lambda x: block(seeds, block(x, block(inducing, x))),
    }
    kinds = {name: of_rows(f) for name, f in blocks.items()}
    assert [name for name, kind in kinds.items() if kind == "equivariant"] == ["SAB", "ISAB"]
    assert [name for name, kind in kinds.items() if kind == "invariant"] == ["inside of ISAB", "PMA", "set transformer"]

    arrays = {**SEQUENCE, "I": [[0.2, -0.5, 0.1], [0.7, 0.3, -0.4]]}
    for name, largest in (("ISAB", 1.844617), ("SAB", 1.858481)):
        refuted(blocks[name](Pi @ X), blocks[name](X))
        assert first_difference(blocks[name](X), blocks[name](Pi @ X), arrays).largest == digits(largest)


def test_P05_keys_and_values_move_together_and_queries_take_the_output_along():
    """facebookresearch/xformers#339: two permutation tests have each other's comment, and one property no test."""
    found = sa.equivariance(attend, (Q, K, V))
    assert found["pairs of K and V"].kind == "invariant"
    assert found["rows of Q"].kind == "equivariant"
    assert found["rows of K"].kind == found["rows of V"].kind == "neither"

    keys = sa.tensor("Pi", m, m, permutation=True)
    proved(attend(Q, keys @ K, keys @ V), attend(Q, K, V))
    proved(attend(Pi @ Q, K, V), Pi @ attend(Q, K, V))
    assert refuted(attend(Q, keys @ K, V), attend(Q, K, V)).sizes[m] == 2
    arrays = {**STANDARD, "Pi": np.eye(3)[[2, 0, 1]]}
    assert first_difference(attend(Q, K, V), attend(Q, keys @ K, V), arrays).largest == digits(1.074377)


def test_P07_attention_weights_are_permuted_on_both_sides():
    """harryjo97/GDSS#22: a score for an adjacency matrix moves as P s P^T, a score for nodes as P s."""

    def weights(x):
        return sa.softmax(x @ W_q @ (x @ W_k).T)

    proved(weights(Pi @ X), Pi @ weights(X) @ Pi.T)
    refuted(weights(Pi @ X), Pi @ weights(X))
    statuses = [verdict.status for verdict in sa.equivariance(weights, X)["rows of X"].verdicts.values()]
    assert statuses == ["refuted", "refuted", "proved"]  # f(X), Pi f(X), Pi f(X) Pi^T
    proved(self_attention(Pi @ X), Pi @ self_attention(X))  # of nodes: on one side only
    assert first_difference(weights(Pi @ X), Pi @ weights(X), SEQUENCE).largest == digits(0.531802)


def test_P09_a_causal_mask_makes_two_layers_sensitive_to_the_order_and_one_layer_not():
    """chatpaper.com/paper/177383: one causal layer ignores the order of what comes before the last row, two do not."""
    last = sa.tensor("b", 1, d)
    plain, moved = sa.concat([X, last]), sa.concat([Pi @ X, last])

    def causal(x):
        return self_attention(x, where=sa.from_index((x.shape[0],) * 2, lambda i, j: j <= i))

    def twice(x):
        return causal(x + causal(x))

    proved(causal(moved)[-1], causal(plain)[-1])
    refuted(twice(moved)[-1], twice(plain)[-1])
    found = refuted(causal(Pi @ X), Pi @ causal(X))
    assert found.sizes[n] == 2

    M = sa.tensor("M", n, n, binary=True)  # what does hold: the mask is moved as well
    proved(self_attention(Pi @ X, where=sa.equal(Pi @ M @ Pi.T, 1)), Pi @ self_attention(X, where=M))

    rows = SEQUENCE["X"]
    arrays = {**SEQUENCE, "X": rows[:3], "b": rows[3:], "Pi": np.eye(3)[[1, 2, 0]]}
    assert first_difference(twice(plain)[-1], twice(moved)[-1], arrays).largest == digits(0.457773)
    output = causal(plain)
    apart = first_difference(sa.concat([Pi @ output[:n], output[n:]]), causal(moved), arrays)
    assert apart.largest == digits(0.790603)


def test_P11_linear_equivariant_layers_have_two_parameters():
    """yoheikikuta/paper-reading#6: the matrices that commute with all permutations are a I + b 1 1^T."""
    a, b = sa.tensor("a"), sa.tensor("b")
    commuting = a * sa.eye(n) + b * sa.ones(n, n)
    proved(Pi @ commuting @ Pi.T, commuting)
    proved(Pi @ commuting @ X, commuting @ (Pi @ X))
    A = sa.tensor("A", n, n)
    assert refuted(Pi @ A, A @ Pi).sizes[n] == 2
    refuted(Pi @ sa.diag(sa.tensor("v", n)), sa.diag(sa.tensor("v", n)) @ Pi)

    cycle = sa.from_index((n, n), lambda i, j: sympy.Eq(sympy.Mod(i + 1, n), j))
    swap = sa.from_index((n, n), lambda i, j: sympy.Eq(j, sympy.Piecewise((1 - i, i < 2), (i, True))))
    for size in (3, 4):  # a cycle and a transposition generate all permutations
        unknowns = sympy.flatten(A.as_explicit({n: size}))
        moves = [sa.where(p, 1, 0) for p in (cycle, swap)]
        conditions = sympy.flatten([(p @ A - A @ p).as_explicit({n: size}).tolist() for p in moves])
        (solution,) = sympy.linsolve(conditions, unknowns)
        assert len(set().union(*(entry.atoms(sympy.Indexed) for entry in solution))) == 2
        matrix = sympy.Matrix(size, size, solution)
        assert all(matrix[i, i] == matrix[0, 0] for i in range(size))
        assert len({matrix[i, j] for i in range(size) for j in range(size) if i != j}) == 1

    L1, L2 = sa.tensor("L_1", d, e), sa.tensor("L_2", d, e)

    def layer(x):
        return x @ L1 + sa.ones(n, n) / n @ x @ L2

    proved(layer(Pi @ X), Pi @ layer(X))
