"""Attention of several heads: two ways to join the heads, and one product in place of one for each head."""

from __future__ import annotations

import symattn as sa


def derivation() -> sa.Derivation:
    """Joined heads times a matrix are a sum over heads, and fused weights give the same queries."""
    h, T, S, D, E, d, e, M = sa.sizes("h T S D E d e M")
    X, Y = sa.tensor("X", T, D), sa.tensor("Y", S, E)
    W_q, W_k, W_v = sa.tensor("W_q", h, D, d), sa.tensor("W_k", h, E, d), sa.tensor("W_v", h, E, e)
    W_o = sa.tensor("W_o", h * e, M)

    note = sa.Derivation("Attention of several heads", given=[X, Y, W_q, W_k, W_v, W_o])
    note = note.say(
        "Tokens X ask tokens Y; for self-attention Y is X. Each of h heads has its own three matrices, so each sees "
        "its own queries, keys and values, and weighs the tokens in its own way."
    )
    Q, K, V = sa.attention.project(X, W_q, W_k, W_v, memory=Y)
    Z = sa.attention.scores(Q, K)
    P = sa.attention.probabilities(Z)
    O = sa.attention.attention_pooling(P, V)
    note = note.extend(Q, K, V, Z, P, O)

    H = sa.let("H", sa.attention.merge_heads(O))
    U = sa.let("U", sa.split_axis(W_o, 0, (h, e)))
    note = note.say(
        "The outputs of the heads are put side by side, head after head, so that feature j of a row of H is feature j"
        " mod e of head j div e. One matrix then mixes them. Cut into h blocks of e rows, one for each head, the same"
        " matrix gives a sum over heads: no head waits for another, and what a head adds to the result can be looked "
        "at by itself."
    )
    note = note.extend(H, U, sa.let("A", H @ W_o))
    note = note.then(sa.sum(O @ U, axis=0), because="block by block")
    note = note.then(sa.sum(P @ (V @ U), axis=0), because="products associate")
    note = note.say(
        "In the last line the values and the block of the output matrix stand together: of a head only the product of"
        " its two matrices matters, a map of rank e at most."
    )

    F = sa.let("F_q", sa.merge_axes(sa.moveaxis(W_q, 0, 1), (1, 2)))
    note = note.say(
        "In practice the matrices of all heads stand side by side in one, and there is one product, whose columns are"
        " then divided among the heads. The queries are the same, and so are keys and values."
    )
    note = note.extend(F, sa.let("Q_f", sa.attention.split_heads(X @ F, h)))
    note = note.then(X @ W_q, because="column by column")
    return note


if __name__ == "__main__":
    print(derivation().text())
