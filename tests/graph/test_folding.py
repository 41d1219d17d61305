"""Names are put back for what they stand for: also where all were written out, in deep and in shared graphs."""

from __future__ import annotations

import sympy

import symattn as sa
from symattn.core.node import topological, with_inputs
from symattn.graph.folding import Folding
from symattn.ops.leaves import is_named, variable

T, S, d, e = sa.sizes("T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
P = sa.let("P", sa.softmax(Z))


def written_out(x: sa.Tensor) -> sa.Tensor:
    bare: dict[sa.Tensor, sa.Tensor] = {}
    for node in topological([x]):
        named = is_named(node) and node.op is not variable
        bare[node] = bare[node.inputs[0]] if named else with_inputs(node, bare)
    return bare[x]


def test_what_was_written_out_has_its_names_again():
    whole = P @ V
    assert str(written_out(whole)) == "softmax(Q @ K.T / sqrt(d)) @ V"
    assert Folding([whole])(written_out(whole)) is whole


def test_other_expressions_of_the_same_parts_have_the_names_too():
    fold = Folding([P @ V])
    x = sa.sum(written_out(P) * written_out(P), axis=-1) + sa.max(written_out(Z), axis=-1)
    assert str(fold(x)) == "sum(P * P, axis=-1) + max(Z, axis=-1)"
    assert fold(fold(x)) is fold(x)


def test_names_that_the_roots_do_not_mention_are_not_used():
    assert str(Folding([Z + 1])(written_out(P))) == "softmax(Z)"
    assert Folding([])(written_out(P)) is written_out(P)


def test_a_tensor_or_a_constant_keeps_its_own_name():
    q, zero = sa.let("q", Q), sa.let("Y", sa.zeros(T, d))
    fold = Folding([q + zero])
    assert fold(Q + sa.zeros(T, d) * Q) is Q + sa.zeros(T, d) * Q
    assert fold(Q) is Q


def test_names_of_a_gradient_are_put_back():
    g = sa.gradient(P @ V, [Q])
    assert str(Folding([sa.sum(g["dZ"], axis=1)])(2 * written_out(g["dP"]))) == "2 * dP"


def test_a_form_of_what_has_a_name_can_be_shown_by_it():
    fold = Folding([P * Q[:, :1] + Z])
    other = K @ Q.T
    fold.show_as(other.T, Z)
    assert str(fold(sa.exp(other.T))) == "exp(Z)"
    fold.show_as(P * Q[:, :1], Z)  # which stands in the roots as it is
    assert fold(P * Q[:, :1]) is P * Q[:, :1]


def test_a_deep_and_shared_graph_is_folded_in_one_walk():
    x = Q
    for k in range(3000):
        x = sa.let(f"x_{k}", sa.tanh(x) + x) if k % 3 else sa.tanh(x) + x
    fold = Folding([x + 1])
    assert fold(written_out(x)) is x
