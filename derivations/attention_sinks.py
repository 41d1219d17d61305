"""Attention sinks: a key without a value, which takes the weight that nobody should get."""

from __future__ import annotations

import sympy

import symattn as sa

T, S, d, e = sa.sizes("T S d e")
Q, K, V, b = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e), sa.tensor("b")
Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
ell = sa.let("ell", sa.logsumexp(Z))
P = sa.let("P", sa.softmax(Z))
s = sa.let("s", sa.sigmoid(ell - b))
A = sa.let("A", s[:, None] * P)
O = sa.let("O", A @ V)
g = sa.gradient(O, [Q, K, V, b])


def derivation() -> sa.Derivation:
    """One more column of scores, a share of the keys, and the gradient of the sink."""
    note = sa.Derivation(
        "Attention sinks",
        given={Q: "queries", K: "keys", V: "values", b: "score of the sink, learned"},
        summary="Weights that sum to 1 leave a query no way to read nothing. A sink is one more score in the softmax "
        "whose weight is thrown away.",
        result=[
            r"With a sink of score $b$, attention is multiplied by the share $s$ of the keys, one number in $(0, 1)$ "
            "for each query,",
            sa.eq(O, s[:, None] * (P @ V)),
            r"where $s = \sigma(\ell - b)$ and $\ell$ is the logsumexp of each row.",
        ],
        references=[
            "Xiao et al., Efficient streaming language models with attention sinks, 2023.",
            "Miller, Attention is off by one, 2023 ($b = 0$).",
        ],
    )
    return backward(column(weights(note)))


def weights(note: sa.Derivation) -> sa.Derivation:
    """Softmax times a share."""
    E = sa.exp(Z)
    said = {"Z": "scores", "ell": "of each row", "P": "weights without a sink", "s": "share of the keys"}
    note = note.section("A share for the keys").extend(Z, ell, P, s, because=said)
    note = note.extend(A, because="weights with a sink")
    note = note.then(E / (sa.exp(b) + sa.sum(E, axis=1, keepdims=True)), because="one more term in the sum")
    note = note.extend(O, because="output").then(s[:, None] * (P @ V), because="a factor of each row")
    note = note.say("The weights of the keys sum to their share, and the sink has the rest.")
    note = note.extend(sa.eq(sa.sum(A, axis=1), s), because="rows of $P$ sum to 1")
    return note.claim(
        sa.prove(sa.lt(sa.sum(A, axis=1), sa.ones(T))),
        title="The weights of the keys sum to less than 1",
        because="A sigmoid is less than 1. Where all scores lie far below $b$, the query reads almost nothing.",
    )


def column(note: sa.Derivation) -> sa.Derivation:
    """The same as a softmax of one more column."""
    wide = sa.let("W", sa.softmax(sa.concat([Z, b * sa.ones(T, 1)], axis=1)))
    note = note.section("One more column").say(
        "The same as a program writes it: a column is added to the scores before softmax and taken off after it. So a "
        "sink is an ordinary key that has the score $b$ for all queries, and the value 0."
    )
    note = note.extend(wide, because="softmax over keys and sink")
    note = note.extend(sa.eq(wide[:, :S], A), because="one more term in the sum")
    values = sa.concat([V, sa.zeros(1, e)], axis=0)
    return note.extend(sa.eq(wide @ values, O), because="the sink has the value 0")


def backward(note: sa.Derivation) -> sa.Derivation:
    """The gradient of the score of the sink."""
    delta = sa.let("delta", sa.sum(g.cotangent * O, axis=1))
    note = note.section("Backward").say(
        r"The backward pass is that of attention with the weights $A$: softmax over keys and sink takes off the same "
        r"average $\delta$, since the sink adds nothing to it."
    )
    note = note.extend(delta, because=r"$\delta \in \mathbb{R}^{T}$").extend(
        sa.eq(g["dZ"], A * (g.cotangent @ V.T - delta[:, None])), because="the row sum from the output"
    )
    return note.extend(sa.eq(g["db"], -sa.sum((1 - s) * delta)), because="the weight of the sink is $1 - s$").say(
        "Descent raises $b$ where the output points along its gradient: where reading less would lower the loss."
    )


if __name__ == "__main__":
    print(derivation().text())
