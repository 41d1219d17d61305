"""Fused projections: one product in place of one for each head, and one in place of three."""

from __future__ import annotations

import symattn as sa

h, T, D, d, e = sa.sizes("h T D d e")
X = sa.tensor("X", T, D)
W = sa.tensor("W", h, D, d)
W_q, W_k, W_v = sa.tensor("W_q", D, d), sa.tensor("W_k", D, d), sa.tensor("W_v", D, e)
dQ, dK, dV = sa.tensor("dQ", T, d), sa.tensor("dK", T, d), sa.tensor("dV", T, e)
C = sa.let("C", sa.concat([W_q, W_k, W_v], axis=1))
B = sa.let("B", X @ C)


def derivation() -> sa.Derivation:
    """Over heads, over queries, keys and values, and backwards."""
    note = sa.Derivation(
        "Fused projections",
        given={
            X: "tokens", W: "matrices of the heads", W_q: "makes queries", W_k: "makes keys", W_v: "makes values",
            dQ: "gradient of the queries", dK: "gradient of the keys", dV: "gradient of the values",
        },
        summary="Programs make the queries of all heads by one product, and often queries, keys and values too. "
        "Columns of a product do not know of each other, so nothing changes but the speed.",
        result=[
            r"The product with matrices side by side has the products side by side: "
            r"$X [W_q, W_k, W_v] = [X W_q, X W_k, X W_v]$. Backwards, the one gradient of the weights is the "
            "three gradients side by side, and that of the tokens is their sum.",
        ],
        references=["Vaswani et al., Attention is all you need, 2017, section 3.2.2."],
    )  # fmt: skip
    return backward(three(heads(note)))


def heads(note: sa.Derivation) -> sa.Derivation:
    """The matrices of all heads side by side."""
    F = sa.let("F", sa.merge_axes(sa.moveaxis(W, 0, 1), (1, 2)))
    Q = sa.let("Q", X @ W)
    note = note.section("All heads at once").say(
        r"Each head has a matrix of its own. Put side by side they are one matrix $F$ with $h d$ columns."
    )
    note = note.extend(Q, because="head by head").extend(F, because="side by side")
    note = note.extend(sa.let("Q'", sa.attention.split_heads(X @ F, h)), because="one product, cut into heads")
    return note.then(Q, because="column by column")


def three(note: sa.Derivation) -> sa.Derivation:
    """Queries, keys and values."""
    note = note.section("Queries, keys and values at once").say("The three matrices need not have one width.")
    note = note.extend(C, B, because={"C": "side by side", "B": "one product"})
    note = note.then(sa.concat([X @ W_q, X @ W_k, X @ W_v], axis=1), because="column by column").say(
        "The three parts of $B$ are the three products."
    )
    parts = [sa.eq(B[:, :d], X @ W_q), sa.eq(B[:, d : 2 * d], X @ W_k), sa.eq(B[:, 2 * d :], X @ W_v)]
    return note.extend(*parts, because="cut apart again")


def backward(note: sa.Derivation) -> sa.Derivation:
    """One gradient for three."""
    g = sa.gradient({B: sa.concat([dQ, dK, dV], axis=1)}, [C, X])
    note = note.section("Backward").say("Attention hands back the gradients of its three inputs, side by side.")
    note = note.extend(g["dB"]).extend(g["dC"], because="product rule")
    note = note.then(sa.concat([X.T @ dQ, X.T @ dK, X.T @ dV], axis=1), because="column by column")
    note = note.extend(g["dX"], because="product rule")
    return note.then(
        dQ @ W_q.T + dK @ W_k.T + dV @ W_v.T, because="a row of blocks times a column of blocks is a sum"
    ).say(r"The sum over the three uses of the tokens, which a program without fusing adds up, is inside the product.")


if __name__ == "__main__":
    print(derivation().text())
