"""The chunked delta rule: a memory that is corrected token by token, for a whole chunk by one triangular system."""

from __future__ import annotations

import symattn as sa

T, d, e, M, b = sa.sizes("T d e M b")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", T, d), sa.tensor("V", T, e)
beta, R = sa.tensor("beta", T), sa.tensor("R", d, e)
x, a, rho = sa.tensor("x", d), sa.tensor("a", e), sa.tensor("rho")


def corrected(S, k, v, b):
    """A memory in which the key finds more of the value than before."""
    return S + sa.outer(k, b * (v - k @ S))


def step(S, token):
    """One token: the memory is corrected, and read."""
    q, k, v, b = token
    S = corrected(S, k, v, b)
    return S, q @ S


S, Y = (sa.let(name, x) for name, x in zip("SY", sa.scan(step, R, (Q, K, V, beta)), strict=True))


def solved(tokens, R, name=lambda letter, x: x):
    """All tokens at once, from the memory before: reads, overlaps, what is written, outputs, and the memory after."""
    Q, K, V, beta = tokens
    A = name("A", sa.tril(Q @ K.T))
    L = name("L", sa.tril(sa.diag(beta) @ K @ K.T, -1))
    U = name("U", sa.inv(sa.eye(K.shape[0]) + L) @ sa.diag(beta) @ (V - K @ R))
    return A, L, U, A @ U + Q @ R, R + K.T @ U


A, L, U, AT_ONCE, AFTER = solved((Q, K, V, beta), R, sa.let)
BY = sa.induction(final=AFTER, outputs=AT_ONCE)
MEMORY, OUTPUT = sa.prove(S, AFTER, by=BY), sa.prove(Y, AT_ONCE, by=BY)


def next_chunk(S, tokens):
    """A chunk of tokens at once, from the memory that those before have left."""
    return solved(tokens, S)[-1], None


LONG = [sa.tensor(f"{x.name}bar", *(M * b if size == T else size for size in x.shape)) for x in (Q, K, V, beta)]
_, LBAR, UBAR, _, WHOLE = solved(LONG, R, lambda letter, x: sa.let(f"{letter}bar", x))
SBAR = sa.let("Sbar", sa.scan(next_chunk, R, tuple(sa.split_axis(x, 0, (M, b)) for x in LONG))[0])
IN_CHUNKS = sa.prove(SBAR, WHOLE)


def derivation() -> sa.Derivation:
    """The rule, its form for a chunk, and what the triangular system is for."""
    note = sa.Derivation(
        "The chunked delta rule",
        given={
            Q: "queries", K: "keys", V: "values", beta: "rates", R: "the memory before the chunk",
            x: "a key", a: "its value", rho: "its rate",
        },
        summary="The delta rule writes into a memory only what the memory does not give back yet. Token by token that "
        "is a chain of small corrections; for a chunk of any length it is one triangular system and matrix products.",
        result=[
            "A chunk of tokens leaves the memory and gives the output",
            MEMORY,
            OUTPUT,
            "where $U$ solves a triangular system.",
        ],
        references=[
            "Schlag et al., Linear Transformers are secretly fast weight programmers, 2021, section 4.",
            "Yang et al., Parallelizing linear Transformers with the delta rule over sequence length, 2024, section 3.",
        ],
        letters="t",
    )  # fmt: skip
    note = note.section("What a correction does").say(
        "A key finds in the corrected memory what it found before, moved towards its value. For a key of length 1 and "
        "at rate 1 that is the value."
    )
    found = x @ R + rho * (x @ x) * (a - x @ R)
    note = note.extend(sa.eq(x @ corrected(R, x, a, rho), found), because=r"$x^{\top} x$ comes out")
    note = note.section("Token by token").say("Each token corrects the memory, and reads it.").extend(S, Y)
    return numbers(chunk(note))


def chunk(note: sa.Derivation) -> sa.Derivation:
    """All tokens of a chunk at once."""
    note = note.section("A chunk at once").say(
        "What token $t$ writes depends on what those before it in the chunk have written, as far as their keys "
        "overlap with its own. So all that is written, the rows of $U$, solves a triangular system with ones on its "
        "diagonal, which always has a solution."
    )
    note = note.extend(A, because="queries and the keys up to them").extend(L, because="overlaps with earlier keys")
    note = note.extend(U, because="what is written, row by row")
    note = note.claim(OUTPUT, kind="Theorem", title="For every length of the chunk, and every memory before it")
    note = note.say(
        r"The next chunk begins with the memory $S = R + K^{\top} U$ that this one leaves. So a long sequence is one "
        "triangular system a chunk, and a chain that has a link for each chunk and not for each token. "
        r"Let $\bar{K}$, $\bar{V}$ and $\bar{\beta}$ be $M$ chunks of $b$ tokens:"
    )
    note = note.extend(LBAR, UBAR, SBAR)
    note = note.claim(
        IN_CHUNKS, title="Chunk after chunk leaves what one system for all leaves, for every number and size of chunks"
    )
    return note.claim(
        sa.prove(Y, A @ sa.diag(beta) @ (V - K @ R) + Q @ R),
        title="Each token may be held against the memory before the chunk",
        holds="tokens with overlapping keys would correct the same thing twice. It is so where the keys of a chunk are "
        "orthogonal, for then $L$ is 0.",
    )


def numbers(note: sa.Derivation) -> sa.Derivation:
    """Two tokens with the same key."""
    note = note.section("In numbers").say(
        "Three tokens with rate 1. The first two have the same key: the second value replaces the first."
    )
    values = {
        Q: [[1, 0], [1, 0], [1, 1]], K: [[1, 0], [1, 0], [0, 1]], V: [[4], [6], [1]], beta: [1, 1, 1],
        R: [[0], [0]],
    }  # fmt: skip
    return note.example(values, show=[L, U, Y, S])


if __name__ == "__main__":
    print(derivation().text())
