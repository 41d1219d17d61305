"""Attention of several heads: two ways to join the heads, and what the output matrix is for."""

from __future__ import annotations

import symattn as sa

h, T, S, D, E, d, e, m = sa.sizes("h T S D E d e m")
X, Y = sa.tensor("X", T, D), sa.tensor("Y", S, E)
W_q, W_k, W_v = sa.tensor("W_q", h, D, d), sa.tensor("W_k", h, E, d), sa.tensor("W_v", h, E, e)
W_o = sa.tensor("W_o", h * e, m)
R = sa.tensor("R", h * e, h * e, permutation=True)
Q, K, V = sa.attention.project(X, W_q, W_k, W_v, memory=Y)
Z = sa.attention.scores(Q, K)
P = sa.attention.probabilities(Z)
O = sa.attention.attention_pooling(P, V)
H = sa.let("H", sa.attention.merge_heads(O))
U = sa.let("U", sa.split_axis(W_o, 0, (h, e)))
A = sa.let("A", H @ W_o)


def derivation() -> sa.Derivation:
    """Heads side by side times a matrix are a sum over heads."""
    note = sa.Derivation(
        "Attention of several heads",
        given={
            X: "tokens that ask", Y: "tokens that are asked; $X$ in self-attention", W_q: "make queries, one each head",
            W_k: "make keys", W_v: "make values", W_o: "mixes the outputs of the heads",
            R: r"the simplest $W_o$",
        },
        summary="Each head compares tokens in its own way. Put side by side and mixed by one matrix, the heads are a "
        "sum of terms, one for each head.",
        result=[
            r"Let $U^{(a)}$ be the $e$ rows of $W_o$ that meet head $a$. The output of the layer is "
            r"$A = \sum_a P^{(a)} V^{(a)} U^{(a)}$: no head waits for another, and what a head adds can be looked at "
            "by itself.",
        ],
        references=[
            "Vaswani et al., Attention is all you need, 2017, section 3.2.2.",
            "Elhage et al., A mathematical framework for transformer circuits, 2021 (heads as a sum).",
        ],
        letters="a",
    )  # fmt: skip
    return widths(mixing(forward(note)))


def forward(note: sa.Derivation) -> sa.Derivation:
    """Each head by itself."""
    note = note.section("Each head by itself").say(
        "Every head has three matrices of its own, so it sees its own queries, keys and values. Heads are the first "
        "axis, along which everything is done alike."
    )
    note = note.extend(Q, K, V, because={"Q": "queries of all heads", "K": "keys", "V": "values"})
    return note.extend(Z, P, O, because={"Z": "scores", "P": "weights", "O": "outputs of the heads"})


def mixing(note: sa.Derivation) -> sa.Derivation:
    """Side by side, or as a sum."""
    note = note.section("Two ways to join them").say(
        r"The outputs are put side by side, head after head, and one matrix mixes them. Cut into blocks of $e$ rows, "
        "one for each head, the same matrix gives a sum over the heads."
    )
    note = note.extend(H, because="side by side").extend(U, because="blocks of $W_o$").extend(A, because="the layer")
    note = note.then(sa.sum(O @ U, axis=0), because="block by block")
    note = note.then(sa.sum(P @ (V @ U), axis=0), because="products associate")
    return note.say(
        "In the last line, the values and the block of the output matrix stand together. Of a head only the product "
        "of its two matrices matters, a map of rank $e$ at most."
    )


def widths(note: sa.Derivation) -> sa.Derivation:
    """Without the output matrix, and with widths that divide nothing."""
    note = note.section("What is needed, and what is not")
    note = note.claim(
        sa.prove(H @ R, H),
        title="The output matrix can be left out",
        holds=r"without $W_o$, block $a$ of the output depends on head $a$ alone, and the shape hides that anything is "
        "missing. With it, every output feature can read all heads; a permutation is the simplest example.",
    )
    return note.claim(
        sa.prove(sa.attention.split_heads(H, h), O),
        title="The number of heads need not divide any width",
        because=r"Putting heads side by side computes nothing and can be undone, for any $h$ and $e$. $W_o$ has $h e$ "
        r"rows and $m$ columns, so $h$ has to divide $D$ only where $d = D / h$ is chosen.",
    )


if __name__ == "__main__":
    print(derivation().text())
