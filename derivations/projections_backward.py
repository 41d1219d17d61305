"""The gradients of the projections: W_q, W_k, W_v and the tokens that all three read."""

from __future__ import annotations

import sympy

import symattn as sa

T, D, d, e = sa.sizes("T D d e")
X = sa.tensor("X", T, D)
W_q, W_k, W_v = sa.tensor("W_q", D, d), sa.tensor("W_k", D, d), sa.tensor("W_v", D, e)
U = sa.tensor("U", D, d)
Q, K, V = sa.let("Q", X @ W_q), sa.let("K", X @ W_k), sa.let("V", X @ W_v)
Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
P = sa.let("P", sa.softmax(Z))
O = sa.let("O", P @ V)
g = sa.gradient(O, [W_q, W_k, W_v, X])


def derivation() -> sa.Derivation:
    """Three linear layers before attention, and the one input that they share."""
    note = sa.Derivation(
        r"The gradients of $W_q$, $W_k$, $W_v$ and $X$",
        given={
            X: "tokens, one a row", W_q: "makes queries", W_k: "makes keys", W_v: "makes values",
            U: "makes values as wide as the keys",
        },
        summary="Self-attention reads its tokens three times, by three matrices. Each matrix gets the gradient of a "
        "linear layer; the tokens get the sum of three.",
        result=[
            r"Let $\mathrm{d}Q$, $\mathrm{d}K$ and $\mathrm{d}V$ be the gradients of attention. Then",
            *(g[x] for x in (W_q, W_k, W_v, X)),
        ],
        references=["Vaswani et al., Attention is all you need, 2017, section 3.2.2."],
    )  # fmt: skip
    return claims(by_scores(backward(forward(note))))


def forward(note: sa.Derivation) -> sa.Derivation:
    """Projections and attention."""
    note = note.section("Forward").say(
        "All three matrices read the same tokens. Queries and keys need one width $d$, for their product; the width "
        "$e$ of the values is free."
    )
    note = note.extend(Q, K, V, because={"Q": "queries", "K": "keys", "V": "values"})
    return note.extend(Z, P, O, because={"Z": "scores", "P": "weights", "O": "output"})


def backward(note: sa.Derivation) -> sa.Derivation:
    """From the output to the weights and the tokens."""
    note = note.section("Backward").say("First comes the backward pass of attention, to queries, keys and values.")
    note = note.extend(g["dV"], g["dP"], because="product rule on $O = P V$")
    note = note.extend(g["dZ"], because="softmax, row by row")
    note = note.extend(g["dQ"], g["dK"], because=r"product rule on $Z = Q K^{\top} / \sqrt{d}$").say(
        "Then three linear layers. The gradient of a matrix is the input transposed times the gradient of the output: "
        "a sum over the tokens, since all of them share the matrix."
    )
    note = note.extend(g["dW_q"], g["dW_k"], g["dW_v"], because="product rule").say(
        "The tokens are factors of all three products, so their gradient has a term for each: as those who ask, as "
        "those who are asked, and as what is read."
    )
    return note.extend(g["dX"], because="sum over the three uses of $X$")


def by_scores(note: sa.Derivation) -> sa.Derivation:
    """The gradients of both matrices of the scores, with the tokens on both sides."""
    note = note.section("What the scores teach").say(
        r"Queries and keys put in, the gradients of $W_q$ and $W_k$ have one matrix in common, which no width of a "
        "head enters: $G$, of the width of the model."
    )
    G = sa.let("G", X.T @ g["dZ"] @ X / sympy.sqrt(d))
    note = note.extend(G, because=r"$D \times D$")
    note = note.extend(sa.eq(g["dW_q"], G @ W_k), because="$K = X W_k$")
    note = note.extend(sa.eq(g["dW_k"], G.T @ W_q), because="$Q = X W_q$").say(
        r"The reason: the scores are $X W_q W_k^{\top} X^{\top} / \sqrt{d}$, and $G$ is the gradient of the product "
        r"$W_q W_k^{\top}$. So the two matrices move each other:"
    )
    return note.extend(sa.eq(W_q.T @ g["dW_q"], (W_k.T @ g["dW_k"]).T), because=r"both are $W_q^{\top} G W_k$")


def claims(note: sa.Derivation) -> sa.Derivation:
    """The values have a matrix of their own."""
    note = note.section("Two false claims")
    note = note.claim(
        sa.prove(P @ K, P @ X @ U),
        title="The values are $X W_k$",
        holds="keys and values have a matrix each. With one for both, a layer could only return what it compares "
        "by, and its values would have the width of the keys.",
    )
    return note.claim(
        sa.prove(sa.softmax(Q @ K.T) @ V, O),
        title=r"The scale $1 / \sqrt{d}$ can be left out",
        holds=r"the scale is a part of the layer. It can be moved into the weights, $W_q / \sqrt{d}$ for $W_q$, but "
        "not dropped.",
    )


if __name__ == "__main__":
    print(derivation().text())
