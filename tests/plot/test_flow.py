"""The flow of shapes: who reads what, as a picture, as a formula and in words."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
import sympy

import symattn as sa
from symattn.printing.media.latex import latex

T, S, d, e = sa.sizes("T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
P = sa.let("P", sa.softmax(Z))
O = sa.let("O", P @ V)
SVG = "{http://www.w3.org/2000/svg}"


def drawn(figure):
    root = ElementTree.fromstring(figure.svg)
    words = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    dashed = sum("stroke-dasharray" in path.attrib for path in root.iter(f"{SVG}path"))
    return words, dashed


def test_attention_flows_from_queries_and_keys_to_the_output():
    figure = sa.plot.flow(O)
    words, dashed = drawn(figure)
    assert [word for word in words if len(word) == 1] == ["Q", "K", "Z", "P", "V", "O"]
    assert dashed == 0
    assert figure.text == "Q, K ──Q Kᵀ/√d──→ Z ──softmax──→ P ──P V──→ O"
    assert latex(figure.formula).count(r"\xrightarrow") == 3
    assert "P (T × S) and V (S × e) give O (T × e)" in figure.alternative


def test_a_gradient_flows_back_along_dashed_arrows():
    g = sa.gradient(O, [Q, K, V])
    words, dashed = drawn(sa.plot.flow(g))
    assert dashed == 6
    assert {"dQ", "dK", "dV", "dP", "dZ", "dO"} <= set(words)
    note = sa.Derivation("Attention").extend(Z, P, O, g)
    assert drawn(sa.plot.flow(note)) == (words, dashed)


def test_each_gradient_that_is_told_has_an_arrow_whatever_else_a_gradient_names_on_its_way():
    A, B, C = (sa.tensor(name, T, d) for name in "ABC")
    row = sa.let("P", sa.sigmoid(Q @ K.T))
    mean = sa.let("N", row / sa.sum(row, axis=1, keepdims=True))
    over = sa.let("Y", sa.let("X", sa.sin(sa.let("U", sa.tanh(B)))) + sa.let("L", sa.exp(A)))
    low = sa.let("L", sa.exp(C))
    under = sa.let("W", sa.let("X", sa.let("U", A @ B.T) @ B) * low)
    for output, by, told in [
        (sa.let("O", mean @ V), [Q, K, V], "dV, dN, dP, dQ, dK"),
        (sa.let("O", sa.let("P", sa.softmax(Q @ K.T)) @ V), [Q, K, V], "dV, dP, dQ, dK"),
        (over, [A, B], "dL, dA, dX, dU, dB"),
        (under, [A, B, C], "dL, dC, dX, dU, dA, dB"),
    ]:
        figure = sa.plot.flow(sa.gradient(output, by))
        words, dashed = drawn(figure)
        assert figure.alternative.endswith(f"direction: {told}.")
        assert dashed == len(told.split(", ")) + 1
        assert set(told.split(", ")) <= set(words)


def test_a_flow_has_the_letters_of_the_document_that_it_stands_in():
    g = sa.gradient(O, [Q, K, V])
    note = sa.Derivation("Attention").extend(Z, P, O, g).figure(sa.plot.flow(g), "Flow of $Z$")
    spelled = {"names": {Z: r"\mathbf{S}"}, "gradients": "bar"}
    assert "──Q Kᵀ/√d──→ 𝐒 ──softmax──→ P" in note.text(**spelled)
    assert r"\mathbf{S} \xrightarrow" in note.latex(**spelled)
    page = note.html(**spelled)
    assert "arrows in the opposite direction: V̄, P̄, 𝐒̄, Q̄, K̄" in page
    assert ">Z<" not in page
    assert "──→ Z ──softmax──→ P" in note.text()


def test_the_input_of_a_block_reaches_its_output_over_all_that_stands_between():
    X, W = sa.tensor("X", T, d), [sa.tensor(name, d, d) for name in ("W_q", "W_k", "W_v")]
    q, k, v = (sa.let(name, X @ w) for name, w in zip("QKV", W, strict=True))
    P = sa.let("P", sa.softmax(q @ k.T))
    figure = sa.plot.flow(sa.let("Y", X + P @ v))
    assert figure.svg.count("q8 0 8 8") == 2  # X and V, over all boxes


def test_the_lowest_box_reaches_over_others_from_below():
    a, b, c = (sa.tensor(name, T, d) for name in "ABC")
    low = sa.let("L", sa.exp(c))
    x = sa.let("Y", sa.let("X", sa.let("U", a @ b.T) @ b) * low)
    figure = sa.plot.flow(sa.let("Z", sa.let("W", x + low) @ c.T))
    assert "q8 0 8 -8" in figure.svg
    assert figure.text.startswith("A, B ──A Bᵀ──→ U ──U B──→ X ──X ⊙ L──→ Y")


def test_a_picture_is_the_same_each_time():
    X, W = sa.tensor("X", T, d), sa.tensor("W", d, e)
    figure = sa.plot.flow(sa.let("Y", sa.relu(X @ W)))
    assert figure.text == "X, W ──relu(X W)──→ Y"
    assert figure.svg == sa.plot.flow(sa.let("Y", sa.relu(X @ W))).svg
    assert len(figure.svg) < 40_000


@pytest.mark.parametrize("x", [Q, P @ V, 3, sa.Derivation("Nothing")])
def test_what_has_no_name_of_its_own_does_not_flow(x):
    with pytest.raises(sa.OperandError, match="flow draws what leads to a tensor named by sa.let"):
        sa.plot.flow(x)
