"""A pre-norm block: what it computes, and the path on which gradients pass through it unchanged."""

from __future__ import annotations

import sympy

import symattn as sa

n, d, f = sa.sizes("n d f")
X, U = sa.tensor("X", n, d), sa.tensor("U", n, d)
W_q, W_k, W_v, W_o = (sa.tensor(f"W_{x}", d, d) for x in "qkvo")
W_1, W_2 = sa.tensor("W_1", d, f), sa.tensor("W_2", f, d)
epsilon = sympy.Symbol("epsilon", positive=True)


def inverse_size(name: str, x: sa.Tensor) -> sa.Tensor:
    """One over the root mean square of each row."""
    return sa.let(name, sa.rsqrt(sa.mean(x**2, axis=-1, keepdims=True) + epsilon))


r_1, r_2 = inverse_size("r_1", X), inverse_size("r_2", U)
N_1, N_2 = sa.let("N_1", X * r_1), sa.let("N_2", U * r_2)
Q, K, V = sa.let("Q", N_1 @ W_q), sa.let("K", N_1 @ W_k), sa.let("V", N_1 @ W_v)
Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
P = sa.let("P", sa.softmax(Z))
O = sa.let("O", P @ V)
A = sa.let("A", O @ W_o)
H = sa.let("H", X + A)
B = sa.let("B", N_2 @ W_1)
F = sa.let("F", sa.relu(B) @ W_2)
Y = sa.let("Y", U + F)
second, first = sa.gradient(Y, [W_2, W_1, U]), sa.gradient(H, [A, N_1, X])


def derivation() -> sa.Derivation:
    """Two parts that add to a stream, forward and backward, and the number of their parameters."""
    note = sa.Derivation(
        "A pre-norm block",
        given={
            X: "the stream, one token a row", U: "the stream after attention, $H$", W_q: "makes queries",
            W_k: "makes keys", W_v: "makes values", W_o: "output matrix", W_1: "widens; often $f = 4 d$",
            W_2: "narrows", epsilon: "a small number",
        },
        summary="A block of a language model adds two terms to its input: what attention has read, and what a "
        "feed-forward layer makes of it. The input itself passes, and so does the gradient.",
        result=[
            r"The output is the input plus two terms. Backwards, each part adds to the gradient what comes back "
            r"through its norm, and lets the rest pass as it is:",
            first[X],
            second[U],
            "So a stack of blocks has a path from its loss to each of its streams on which nothing is multiplied.",
        ],
        references=["Xiong et al., On layer normalization in the transformer architecture, 2020, table 1."],
    )  # fmt: skip
    note = note.figure(sa.plot.flow(outline()), "The stream, with two parts that read it through a norm and add to it.")
    return parameters(feed_forward(attention(note)))


def outline() -> sa.Tensor:
    """The block with its parts as functions that are known by name."""
    n_1 = sa.let("N_1", sa.unknown("norm", X))
    h = sa.let("H", X + sa.let("A", sa.unknown("attention", n_1)))
    n_2 = sa.let("N_2", sa.unknown("norm", h))
    return sa.let("Y", h + sa.let("F", sa.unknown("layer", n_2)))


def attention(note: sa.Derivation) -> sa.Derivation:
    """Norm, attention, sum."""
    note = note.section("Attention").say(
        "Attention reads normalised tokens, here in one head and without a mask. What it makes is added to the stream."
    )
    said = {
        "r_1": "inverse size of each token", "N_1": "tokens of one size", "Q": "queries", "K": "keys", "V": "values",
        "Z": "scores", "P": "weights", "O": "what is read", "A": "what is added", "H": "the stream after it",
    }  # fmt: skip
    note = note.extend(r_1, N_1, Q, K, V, Z, P, O, A, H, because=said)
    note = note.say(
        "A sum hands its gradient to both terms. One copy goes back through attention and the norm, the other one "
        "passes. The norm keeps of the first what changes the direction of a token, and scales it."
    )
    said = {
        "dA": "a sum hands its gradient on", "dO": "product rule on $A = O W_o$", "dV": "product rule on $O = P V$",
        "dP": "product rule on $O = P V$", "dQ": "product rule, with the scale", "dK": "the same, transposed",
        "dN_1": "three uses of $N_1$", "dX": "through the norm, and past it",
    }  # fmt: skip
    return note.extend(first, because=said)


def feed_forward(note: sa.Derivation) -> sa.Derivation:
    """Norm, two linear layers, sum."""
    note = note.section("Feed-forward layer").say(
        "The second part has the same form, and treats each token by itself. Its stream is written $U$."
    )
    said = {
        "r_2": "inverse size of each token", "N_2": "tokens of one size", "B": r"wider, $n \times f$",
        "F": "what is added", "Y": r"the stream after it, $n \times d$ as before",
    }  # fmt: skip
    note = note.extend(r_2, N_2, B, F, Y, because=said).say("Backwards it is the same again.")
    said = {
        "dF": "a sum hands its gradient on", "dW_2": "product rule", "dB": "where $B$ is positive",
        "dW_1": "product rule on $B = N_2 W_1$", "dN_2": "product rule on $B = N_2 W_1$",
        "dU": "through the norm, and past it",
    }  # fmt: skip
    return note.extend(second, because=said)


def parameters(note: sa.Derivation) -> sa.Derivation:
    """How many numbers are learned."""
    note = note.section("Size").say(
        r"The stream keeps its shape, so blocks can be stacked. With $f = 4 d$ a block has $12 d^2$ parameters, a "
        "third of them in attention."
    )
    rows = [
        ("$W_q$, $W_k$, $W_v$, $W_o$", r"$d \times d$ each", 4 * d**2),
        ("$W_1$, $W_2$", r"$d \times f$ and $f \times d$", 2 * d * f),
        ("all", "", 4 * d**2 + 2 * d * f),
    ]
    return note.cases(rows, head=("Matrices", "shape", "parameters"))


if __name__ == "__main__":
    print(derivation().text())
