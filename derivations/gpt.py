"""GPT-2 from end to end: tokens to scores of the next token, and how gradients flow back along the stream."""

from __future__ import annotations

import sympy

import symattn as sa

T, n, C, d, h, k, f, m = sa.sizes("T n C d h k f m")
epsilon = sympy.Symbol("epsilon", positive=True)
t = sa.tensor("t", T, integer=True)
W_e, W_p = sa.tensor("W_e", n, d), sa.tensor("W_p", C, d)
GAMMA, BETA = ([sa.tensor(f"{name}_{i}", d) for i in (1, 2, 3)] for name in ("gamma", "beta"))
W_q, W_k, W_v = (sa.tensor(name, h, d, k) for name in ("W_q", "W_k", "W_v"))
b_q, b_k, b_v = (sa.tensor(name, h, k) for name in ("b_q", "b_k", "b_v"))
W_o, b_o = sa.tensor("W_o", h, k, d), sa.tensor("b_o", d)
W_1, b_1, W_2, b_2 = sa.tensor("W_1", d, f), sa.tensor("b_1", f), sa.tensor("W_2", f, d), sa.tensor("b_2", d)
ATTENTION = (W_q, b_q, W_k, b_k, W_v, b_v, W_o, b_o)
OF_ATTENTION = ("queries, for each head", "a bias", "keys", "a bias", "values", "a bias", "output", "a bias")
x_0, J_1, J_2 = sa.tensor("x_0", m), sa.tensor("J_1", m, m), sa.tensor("J_2", m, m)
x_1 = sa.let("x_1", x_0 + J_1 @ x_0)
x_2 = sa.let("x_2", x_1 + J_2 @ x_1)
GRADIENTS = sa.gradient(x_2, [x_0, x_1])
LAST = GRADIENTS.cotangent
PATHS = LAST + J_2.T @ LAST + J_1.T @ LAST + J_1.T @ (J_2.T @ LAST)
B = sa.tensor("B", T, d)
X = sa.let("X", sa.take(W_e, t, axis=0) + W_p[:T])


def derivation() -> sa.Derivation:
    """One block written out; the stream and the tied table backwards."""
    note = sa.Derivation(
        "GPT-2 from end to end",
        given={
            t: "tokens, as numbers", W_e: "table of tokens", W_p: "table of positions",
            **dict(zip(GAMMA, ("gain of a first norm", "of a second one", "of the last one"), strict=True)),
            **dict(zip(BETA, ("shift of the first norm", "of the second one", "of the last one"), strict=True)),
            epsilon: "a small number", **dict(zip(ATTENTION, OF_ATTENTION, strict=True)),
            W_1: "first layer", b_1: "its bias", W_2: "second layer", b_2: "its bias",
            x_0: "a stream, all entries in a column", J_1: "derivative of a first branch", J_2: "of a second one",
            B: "what all blocks have added",
        },
        summary="A small GPT as formulas: embedding, one block of masked attention and a feed-forward layer, scores of "
        "the next token; and how gradients flow along the residual stream to a table that is used at both ends.",
        result=[
            "Every block reads the stream and adds to it. So the gradient of the stream is a sum over paths that take "
            r"or pass each branch; with two branches, of derivatives $J_1$ and $J_2$,",
            sa.eq(GRADIENTS["dx_0"], PATHS),
        ],
        references=[
            "Radford et al., Language models are unsupervised multitask learners, 2019, section 2.3.",
            "Veit, Wilber and Belongie, Residual networks behave like ensembles, 2016 (paths).",
        ],
        letters="N",
    )  # fmt: skip
    return table(stream(forward(note)))


def normed(x: sa.Tensor, i: int) -> tuple[sa.Tensor, sa.Tensor]:
    """The deviations of each row from its mean, and its layer norm."""
    c = sa.let(f"C_{i}", x - sa.mean(x, axis=1, keepdims=True))
    spread = sa.sqrt(sa.mean(c**2, axis=1, keepdims=True) + epsilon)
    return c, sa.let(f"N_{i}", c / spread * GAMMA[i - 1] + BETA[i - 1])


def forward(note: sa.Derivation) -> sa.Derivation:
    """Embedding, a block, and the scores."""
    M = sa.let("M", sa.from_index((T, T), lambda i, j: j <= i))
    C_1, N_1 = normed(X, 1)
    pairs = (("Q", W_q, b_q), ("K", W_k, b_k), ("V", W_v, b_v))
    Q, K, V = (sa.let(name, N_1 @ w + b[:, None, :]) for name, w, b in pairs)
    P = sa.let("P", sa.softmax(Q @ K.mT / sympy.sqrt(k), where=M))
    H = sa.let("H", P @ V)
    Y = sa.let("Y", sa.sum(H @ W_o, axis=0) + b_o)
    X_1 = sa.let("X'", X + Y)
    C_2, N_2 = normed(X_1, 2)
    A = sa.let("A", sa.gelu(N_2 @ W_1 + b_1))
    F = sa.let("F", A @ W_2 + b_2)
    X_2 = sa.let("X''", X_1 + F)
    C_3, N_3 = normed(X_2, 3)
    note = note.section("Tokens to vectors").extend(X, because=r"rows of two tables, $T \times d$")
    note = note.section("A block").say("Attention reads the stream through a norm, and adds what it has to say.")
    note = note.extend(C_1, N_1, because="layer norm").extend(Q, K, V, because=r"each head, $T \times k$")
    note = note.extend(M, because="causal mask").extend(P, because=r"weights, $T \times T$")
    note = note.extend(H, because=r"$T \times k$").extend(Y, because=r"all heads, $T \times d$")
    note = note.extend(X_1, because="added to the stream").say("So does a feed-forward layer, token by token.")
    note = note.extend(C_2, N_2, because="layer norm").extend(A, because=r"hidden layer, $T \times f$")
    note = note.extend(F, because=r"$T \times d$").extend(X_2, because="added to the stream")
    note = note.section("Scores of the next token").say("After $N$ such blocks the table of tokens is read once more.")
    return note.extend(C_3, N_3, because="last norm").extend(sa.let("L", N_3 @ W_e.T), because=r"$T \times n$")


def stream(note: sa.Derivation) -> sa.Derivation:
    """To first order each branch is a linear map."""
    note = note.section("Backward along the stream").say(
        "Every branch adds to the stream, so the gradient of the stream goes past it unchanged, and what comes back "
        "through the branch is added. To first order branches are linear maps; two of them show the pattern."
    )
    note = note.extend(x_1, x_2, because="a branch is added").extend(
        GRADIENTS["dx_1"], GRADIENTS["dx_0"], because="past and through"
    )
    note = note.then(PATHS, because="multiplied out: one term a path")
    return note.say(
        "Each path takes or passes every branch, and one of them passes all: the gradient of the scores reaches the "
        "embedding without a single matrix in between but the last norm and the table."
    )


def table(note: sa.Derivation) -> sa.Derivation:
    """One table at both ends."""
    E = sa.let("E", X + B)
    S = sa.let("S", E @ W_e.T)
    g = sa.gradient(S, [W_e, E, X])
    note = note.section("One table at both ends").say(
        "The table of tokens is read twice, and has a gradient from both ends. Here the last norm is left out, and "
        "what the blocks have added is taken as given."
    )
    note = note.extend(E, because="the stream at its end").extend(S, because="scores")
    note = note.extend(g["dE"], because="product rule").extend(g["dX"], because="past all blocks")
    return note.extend(g["dW_e"], because="rows of the tokens that were read, and all rows at the end")


if __name__ == "__main__":
    print(derivation().text())
