"""What a score says of two tokens, and what it does not."""

from __future__ import annotations

import symattn as sa

n, d, k = sa.sizes("n d k")
q, x, y, c = sa.tensor("q", d), sa.tensor("x", d), sa.tensor("y", d), sa.tensor("c", positive=True)
X, W_q, W_k, W = sa.tensor("X", n, d), sa.tensor("W_q", d, k), sa.tensor("W_k", d, k), sa.tensor("W", d, k)


def cosine(a: sa.Tensor, b: sa.Tensor) -> sa.Tensor:
    """The cosine of the angle between two vectors."""
    return a @ b / (sa.sqrt(a @ a) * sa.sqrt(b @ b))


def derivation() -> sa.Derivation:
    """Lengths beside angles, a token and itself, and whether it is mutual."""
    note = sa.Derivation(
        "What a score says",
        given={
            q: "a query", x: "a key", y: "another key", c: "a factor", X: "tokens", W_q: "makes queries",
            W_k: "makes keys", W: "one matrix for both",
        },
        summary="A score is the product of two lengths and a cosine. It is no measure of likeness: not across keys of "
        "different lengths, not of a token with itself, and not in both directions.",
        result=[
            r"A larger score does not mean a smaller angle, a token need not have its own score as the largest, and "
            r"$Z_{i j}$ is not $Z_{j i}$. With keys of one length, though, the largest score is the nearest key; and "
            r"with $W_q = W_k$ scores are mutual.",
        ],
        references=["Henry et al., Query-key normalization for transformers, 2020."],
        letters="i j",
    )  # fmt: skip
    return mutual(own(lengths(note)))


def lengths(note: sa.Derivation) -> sa.Derivation:
    """A long key wins."""
    longer = sa.prove(sa.le(cosine(q, y), cosine(q, x)), given=[sa.le(q @ y, q @ x)])
    gamma = sa.let("gamma", cosine(q, x))
    note = note.section("Lengths and angles").say(
        "The cosine of the angle between query and key does not depend on their lengths. The score is that times both."
    )
    note = note.extend(gamma, because="cosine of the angle")
    note = note.extend(sa.eq(q @ x, sa.sqrt(q @ q) * sa.sqrt(x @ x) * gamma), because="both lengths cancel")
    note = note.extend(sa.eq(cosine(q, c * x), gamma), because="the length cancels")
    note = note.extend(sa.eq(q @ (c * x), c * (q @ x)), because="the score grows with the key")
    note = note.claim(
        longer,
        title="A larger score means a smaller angle",
        holds="a long key is preferred by all queries that point its way; a cosine takes keys of one length.",
    )
    return note.claim(
        sa.prove(2 * (q @ x), q @ q + 1 - (q - x) @ (q - x), given=[sa.eq(x @ x, 1)]),
        title="Among keys of length 1, the largest score is the nearest key",
        because="All that depends on the key is its distance from the query.",
    )


def own(note: sa.Derivation) -> sa.Derivation:
    """The diagonal."""
    Z = sa.let("Z", X @ W_q @ (X @ W_k).T)
    own_scores, squares = sa.sum(Z * sa.eye(n), axis=1), sa.let("s", sa.sum(X**2, axis=1))
    note = note.section("A token and itself").say("The scores of self-attention, but for their scale:")
    note = note.extend(Z, because="queries times keys")
    note = note.claim(
        sa.prove(sa.max(Z, axis=1), own_scores),
        title="The largest score of a token is its own",
        holds=r"queries and keys come from two matrices, and a token may look for what it is not. Even where both are "
        "the identity, a longer token scores higher.",
    )
    note = note.say(
        r"What is left without matrices: two tokens score at most the mean of their own scores, so at least one of "
        "them scores itself no lower than the other."
    )
    note = note.extend(squares, because="own scores, without matrices")
    mean = (squares[:, None] + squares[None, :]) / 2
    return note.extend(sa.le(X @ X.T, mean), because="the difference is half a square")


def mutual(note: sa.Derivation) -> sa.Derivation:
    """Whether i looks at j as j looks at i."""
    note = note.section("Both directions")
    scores = X @ W_q @ (X @ W_k).T
    return note.claim(
        sa.prove(scores, scores.T),
        title="Scores are mutual",
        holds=["with one matrix for queries and keys they are:", sa.prove(X @ W @ (X @ W).T, (X @ W @ (X @ W).T).T)],
    )


if __name__ == "__main__":
    print(derivation().text())
