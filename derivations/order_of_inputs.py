"""What the order of queries, keys, values, tokens and heads does: false claims, and what holds instead."""

from __future__ import annotations

import sympy

import symattn as sa

T, S, d, m, h, n, k = sa.sizes("T S d m h n k")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, m)
R, C = sa.tensor("R", T, T, permutation=True), sa.tensor("C", S, S, permutation=True)
X, Pi = sa.tensor("X", n, d), sa.tensor("Pi", n, n, permutation=True)
W_q, W_k, W_v = sa.tensor("W_q", d, d), sa.tensor("W_k", d, d), sa.tensor("W_v", d, m)
H, W_o, F = sa.tensor("H", h, n, m), sa.tensor("W_o", h, m, k), sa.tensor("F", h, h, permutation=True)


def att(queries: sa.Tensor, keys: sa.Tensor, values: sa.Tensor) -> sa.Tensor:
    """Attention as a formula."""
    return sa.softmax(queries @ keys.T / sympy.sqrt(d)) @ values


def self_attention(x: sa.Tensor) -> sa.Tensor:
    """Attention of a sequence to itself."""
    return att(x @ W_q, x @ W_k, x @ W_v)


def derivation() -> sa.Derivation:
    """Five claims, each with its counterexample and its correction."""
    note = sa.Derivation(
        "Does the order matter?",
        given={
            Q: "queries", K: "keys", V: "values", R: "reorders queries", C: "reorders keys or values",
            X: "tokens of self-attention", Pi: "reorders tokens", W_q: "makes queries", W_k: "makes keys",
            W_v: "makes values", H: "outputs of the heads", W_o: "output matrix, by head", F: "reorders heads",
        },
        summary="Attention is called invariant to permutations, and equivariant, and a set operation. Five sentences "
        "of this kind that are false as they are often said, each with a counterexample and with what holds instead.",
        result=[
            "Reordered queries reorder the output. Keys and values may be reordered together, not one of them alone. "
            "Reordered tokens of self-attention reorder the output; they do not leave it as it is. Heads may be "
            "reordered together with the blocks of their output matrix.",
        ],
        references=[
            "Lee et al., Set Transformer, 2019, property 1.",
            "Vaswani et al., Attention is all you need, 2017, section 3.5 (why positions are added).",
        ],
    )  # fmt: skip
    return heads(tokens(pairs(queries(note))))


def queries(note: sa.Derivation) -> sa.Derivation:
    """Rows of the output belong to rows of queries."""
    note = note.section("Queries").say("Every query is answered by itself, in its own row.")
    return note.claim(
        sa.prove(att(R @ Q, K, V), att(Q, K, V)),
        title="Attention is permutation invariant",
        holds=["it is equivariant in its queries:", sa.prove(att(R @ Q, K, V), R @ att(Q, K, V))],
    )


def pairs(note: sa.Derivation) -> sa.Derivation:
    """A key and its value belong together."""
    together = sa.prove(att(Q, C @ K, C @ V), att(Q, K, V))
    note = note.section("Keys and values").say(
        "A key says for which queries its value counts. Reordering one of the two gives values other keys."
    )
    note = note.claim(
        sa.prove(att(Q, C @ K, V), att(Q, K, V)),
        title="Attention does not depend on the order of the keys",
        holds=["the pairs of a key and a value are a set:", together],
    )
    return note.claim(
        sa.prove(att(Q, K, C @ V), att(Q, K, V)),
        title="Attention does not depend on the order of the values",
        holds=["values that are reordered are keys reordered back:", sa.prove(att(Q, K, C @ V), att(Q, C.T @ K, V))],
    )


def tokens(note: sa.Derivation) -> sa.Derivation:
    """Queries, keys and values of one sequence."""
    note = note.section("Tokens").say(
        "In self-attention one reordering moves queries, keys and values. Keys and values move together, which changes "
        "nothing; the queries move the output."
    )
    moved = sa.prove(self_attention(Pi @ X), Pi @ self_attention(X))
    note = note.claim(
        sa.prove(self_attention(Pi @ X), self_attention(X)),
        title="Reordering the tokens leaves the output as it is",
        holds=["each token takes its output along:", moved],
    )
    pooled = sa.prove(sa.mean(self_attention(Pi @ X), axis=0), sa.mean(self_attention(X), axis=0))
    return note.claim(
        pooled,
        title="The mean over the tokens is invariant",
        because="A mean does not depend on the order, so a pooled output knows the tokens as a set. This is why word "
        "order needs positions.",
    )


def heads(note: sa.Derivation) -> sa.Derivation:
    """Heads, and the blocks of the output matrix that they meet."""
    mixed, blocks = sa.let("H'", sa.einsum("ab,bnm->anm", F, H)), sa.let("W_o'", sa.einsum("ab,bmk->amk", F, W_o))
    note = note.section("Heads").say(
        "Heads are alike as long as nobody has read them; the output matrix has a block for each. With a prime: the "
        "same in another order."
    )
    note = note.extend(mixed, blocks, because={"H'": "heads reordered", "W_o'": "their blocks alike"})
    return note.claim(
        sa.prove(sa.sum(mixed @ W_o, axis=0), sa.sum(H @ W_o, axis=0)),
        title="The order of the heads does not matter",
        holds=[
            "each head has to keep its block of the output matrix:",
            sa.prove(sa.sum(mixed @ blocks, axis=0), sa.sum(H @ W_o, axis=0)),
        ],
    )


if __name__ == "__main__":
    print(derivation().text())
