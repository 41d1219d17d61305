"""State space duality: a state space model with scalar decays is attention with a mask of decays, also in chunks."""

from __future__ import annotations

import sympy

import symattn as sa

T, N, P, M, b = sa.sizes("T N P M b")
g, R = sa.tensor("g", T), sa.tensor("R", N, P)
B, C, X = sa.tensor("B", T, N), sa.tensor("C", T, N), sa.tensor("X", T, P)


def step(H, token):
    """One token: the state fades, takes in the token, and is read."""
    g, b, c, x = token
    H = sa.exp(g) * H + sa.outer(b, x)
    return H, c @ H


H, Y = (sa.let(name, x) for name, x in zip("HY", sa.scan(step, R, (g, B, C, X)), strict=True))


def parallel(tokens, R, name=lambda letter, x: x):
    """All tokens at once, from the state before: sums of logarithms, what is left, outputs, and the last state."""
    g, B, C, X = tokens
    s = name("s", sa.cumsum(g))
    causal = sa.attention.causal_mask(g.shape[0])
    L = name("L", sa.exp(sa.where(causal, s[:, None] - s[None, :], -sympy.oo)))
    output = (C @ B.T * L) @ X + sa.diag(sa.exp(s)) @ C @ R
    return s, L, output, sa.exp(sa.sum(g)) * R + B.T @ sa.diag(sa.exp(sa.sum(g) - s)) @ X


s, L, OUTPUT, STATE = parallel((g, B, C, X), R, sa.let)
WITHIN = (C @ B.T * L) @ X
BY = sa.induction(final=STATE, outputs=OUTPUT)
LAST, DUALITY = sa.prove(H, STATE, by=BY), sa.prove(Y, OUTPUT, by=BY)


def chunk(H, tokens):
    """A chunk of tokens in parallel, from the state that those before have left."""
    *_, output, state = parallel(tokens, H)
    return state, output


LONG = [sa.tensor(f"{x.name}bar", *(M * b if size == T else size for size in x.shape)) for x in (g, B, C, X)]
SBAR, LBAR, WHOLE, AT_END = parallel(LONG, R, lambda letter, x: sa.let(f"{letter}bar", x))
_, parts = sa.scan(chunk, R, tuple(sa.split_axis(x, 0, (M, b)) for x in LONG))
PARTS = sa.let("O", parts)
YBAR = sa.let("Ybar", sa.merge_axes(PARTS, (0, 1)))
IN_CHUNKS = sa.prove(YBAR, WHOLE, by=sa.induction(final=AT_END, outputs=sa.split_axis(WHOLE, 0, (M, b))))


def derivation() -> sa.Derivation:
    """The recurrence, its dual, and what both are for a chunk that begins with a state."""
    note = sa.Derivation(
        "State space duality",
        given={
            g: "logarithms of the decays", B: "what writes the state", C: "what reads it", X: "inputs",
            R: "the state before the first token",
        },
        summary="A state space model whose state fades by one number a token computes causal linear attention with a "
        "mask of decays. Both forms are equal for every number of tokens and from every state, so a sequence may be "
        "cut into chunks.",
        result=[
            "Token by token with a state, or in parallel with a matrix of decays and what is left of the state before, "
            "the output and the last state are the same:",
            DUALITY,
            LAST,
        ],
        references=[
            "Dao and Gu, Transformers are SSMs, 2024, sections 3 to 6.",
            "Gu and Dao, Mamba, 2023, algorithm 2.",
        ],
        letters="t i j",
    )  # fmt: skip
    note = note.section("Token by token").say(
        "A token lets the state fade, adds the outer product of its two vectors, and reads what is there then."
    )
    note = note.extend(H, Y)
    return numbers(chunks(dual(note)))


def dual(note: sa.Derivation) -> sa.Derivation:
    """The parallel form."""
    note = note.section("In parallel").say(
        r"What came in with token $j$ has faded by $\mathrm{e}^{s_i - s_j}$ when token $i$ reads it, where $s$ adds up "
        "the logarithms. So the products of $C$ and $B$, the queries and keys, are weighted by a matrix of decays."
    )
    note = note.extend(s, because="sums of logarithms up to each token")
    note = note.extend(L, because="what is left of earlier tokens, and nothing of later ones")
    return note.claim(DUALITY, kind="Theorem", title="State space duality, for every number of tokens")


def chunks(note: sa.Derivation) -> sa.Derivation:
    """Chunk after chunk."""
    note = note.section("In chunks").say(
        "The theorem holds from every state $R$, so it holds of each chunk of a longer sequence, with what the chunk "
        "before has left. Within a chunk everything is a matrix product; from one to the next goes only the state $H$. "
        "The cost grows with the length of the sequence times that of a chunk, and not with its square. "
        r"Let $\bar{g}$, $\bar{B}$, $\bar{C}$ and $\bar{X}$ be $M$ chunks of $b$ tokens:"
    )
    note = note.extend(SBAR, LBAR, PARTS, YBAR)
    note = note.claim(IN_CHUNKS, title="Chunk after chunk is all at once, for every number and every size of chunks")
    return note.claim(
        sa.prove(Y, WITHIN),
        title="A chunk needs nothing of those before it",
        holds=r"that is so only with $R = 0$: else $\operatorname{diag}(\mathrm{e}^{s}) C R$ is missing.",
    )


def numbers(note: sa.Derivation) -> sa.Derivation:
    """Three tokens, a state of two numbers."""
    note = note.section("In numbers").say("Three tokens, of which each halves the state of one channel of two numbers.")
    values = {
        g: [-sympy.log(2)] * 3, B: [[1, 0], [0, 1], [1, 1]], C: [[1, 0], [1, 1], [0, 1]], X: [[4], [2], [8]],
        R: [[16], [8]],
    }  # fmt: skip
    return note.example(values, show=[L, Y, H])


if __name__ == "__main__":
    print(derivation().text())
