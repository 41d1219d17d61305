"""Additive attention: a small network scores each pair of query and key; forward, shapes and gradients."""

from __future__ import annotations

import symattn as sa

T, S, d_q, d_k, r, e = sa.sizes("T S d_q d_k r e")
Q, K, V = sa.tensor("Q", T, d_q), sa.tensor("K", S, d_k), sa.tensor("V", S, e)
W_q, W_k, v = sa.tensor("W_q", d_q, r), sa.tensor("W_k", d_k, r), sa.tensor("v", r)
A, B = sa.let("A", Q @ W_q), sa.let("B", K @ W_k)
U = sa.let("U", A[:, None, :] + B[None, :, :])
H = sa.let("H", sa.tanh(U))
Z = sa.let("Z", H @ v)
P = sa.let("P", sa.softmax(Z))
O = sa.let("O", P @ V)
g = sa.gradient(O, [Q, K, V, W_q, W_k, v])


def derivation() -> sa.Derivation:
    """The forward pass for all pairs at once, its gradients, and what the hyperbolic tangent does."""
    note = sa.Derivation(
        "Additive attention",
        given={
            Q: "queries", K: "keys, which may have another width", V: "values", W_q: "weights of queries",
            W_k: "weights of keys", v: "weights of the hidden layer",
        },
        summary="Bahdanau's attention scores a pair of query and key by a small network with one hidden layer. Queries "
        "and keys need no common width, and the gradients are those of a network that is applied to all pairs.",
        result=[
            r"Query $i$ and key $j$ have the score $v^{\top} \tanh(W_q^{\top} q_i + W_k^{\top} k_j)$. The gradients by "
            "the parameters are",
            g["dW_q"],
            g["dW_k"],
            r"where $\mathrm{d}A$ and $\mathrm{d}B$ gather what comes back from all pairs of a query, and of a key.",
        ],
        references=["Bahdanau, Cho and Bengio, Neural machine translation by jointly learning to align, 2015, A.1.2."],
        letters="a d i j k q x",
    )  # fmt: skip
    return false(backward(forward(note)))


def forward(note: sa.Derivation) -> sa.Derivation:
    """From projections to the output."""
    note = note.section("Forward").say(
        "Queries and keys are projected once each, to a common hidden width $r$. For query $a$ all keys are the rows "
        "of one matrix."
    )
    note = note.extend(A, because=r"queries projected, $T \times r$").extend(B, because=r"keys projected, $S \times r$")
    note = note.extend(U, because="sums of all pairs").extend(H, because="hidden layer, for each query")
    return note.extend(Z, because="scores").extend(P, because="weights").extend(O, because="output")


def backward(note: sa.Derivation) -> sa.Derivation:
    """From the output to the parameters."""
    note = note.section("Backward").say("Down to the scores it is the backward pass of any attention.")
    note = note.extend(g["dV"], g["dP"], because="product rule on $O = P V$").extend(g["dZ"], because="softmax")
    note = note.say(
        r"The network is the same for all pairs: its last weights gather from all of them. The slope of the hyperbolic "
        r"tangent is $1 - \tanh^2 x$, which its value knows."
    )
    note = note.extend(g["dv"], because="all queries, all keys").extend(g["dH"], because="product rule")
    note = note.extend(g["dU"], because=r"$\tanh' = 1 - \tanh^2$")
    note = note.say("A projected query takes part in the scores of all keys, a projected key in those of all queries.")
    note = note.extend(g["dA"], because="over the keys").extend(g["dB"], because="over the queries")
    note = note.extend(g["dQ"], g["dW_q"], because="product rule on $A = Q W_q$")
    return note.extend(g["dK"], g["dW_k"], because="product rule on $B = K W_k$")


def false(note: sa.Derivation) -> sa.Derivation:
    """Without the tangent queries do not matter; without a scale scores are bounded."""
    linear = sa.softmax((A[:, None, :] + B[None, :, :]) @ v)
    keys = sa.softmax(sa.outer(sa.ones(T), B @ v))
    note = note.section("Why the hidden layer bends").say(
        "The sum of a term of the query and a term of the key is no interaction yet: softmax takes off what is common "
        "to a row."
    )
    note = note.claim(
        sa.prove(linear, keys),
        title="Without the hyperbolic tangent, queries have no effect",
        because="The term of a query shifts all its scores alike.",
    )
    bound = sa.prove(sa.le(sa.abs(H), sa.ones(T, S, r)))
    return note.claim(
        bound,
        title="The hidden layer is bounded",
        because=r"So no score exceeds the sum of the sizes of the weights $v$, whatever the width of queries and keys: "
        "additive scores need no $1 / \\sqrt{d}$.",
    )


if __name__ == "__main__":
    print(derivation().text())
