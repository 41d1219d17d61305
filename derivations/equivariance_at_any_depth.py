"""Equivariance at any depth: what holds of one layer of attention holds of a stack of any number of them."""

from __future__ import annotations

import sympy

import symattn as sa

n, d, D = sa.sizes("n d D")
X, W = sa.tensor("X", n, d), sa.tensor("W", D, d, d)
Pi = sa.tensor("Pi", n, n, permutation=True)


def attention(X, W, **masking):
    """Tokens that attend to each other."""
    return sa.softmax(X @ W @ X.T / sympy.sqrt(d), **masking) @ X


def layer(X, W):
    """Attention, and a function of each token by itself, which may be any."""
    return X + sa.unknown("f", attention(X, W), rowwise=True), None


def causal(X, W):
    """The same, where a token attends to itself and to those before it."""
    return X + attention(X, W, where=sa.attention.causal_mask(n)), None


def net(X, one=layer):
    """The tokens after all layers."""
    return sa.scan(one, X, W)[0]


Y, Z = sa.let("Y", net(X)), sa.let("Z", net(Pi @ X))
A, B = sa.let("A", net(X, causal)), sa.let("B", net(Pi @ X, causal))
POOLED = sa.mean(Y, axis=0)
EQUIVARIANT = sa.prove(Z, Pi @ Y)


def derivation() -> sa.Derivation:
    """A stack of layers, the induction, what is pooled, and what a causal mask breaks."""
    note = sa.Derivation(
        "Equivariance at any depth",
        given={
            X: "tokens, one a row", W: r"weights $W_t$ of each layer", Pi: "another order of the tokens",
        },
        summary="A stack of attention layers, each with a function of each token by itself that may be any, does not "
        "know the order of its tokens, however deep it is.",
        result=["Tokens in another order come out in that order, after any number $D$ of layers:", EQUIVARIANT],
        references=[
            "Lee et al., Set Transformer, 2019, property 1.",
            "Yun et al., Are Transformers universal approximators of sequence-to-sequence functions?, 2020, claim 1.",
        ],
        letters="t f",
    )  # fmt: skip
    note = note.section("A stack of layers").say(
        "Each layer adds to a token a function $f$ of what it has attended to; the weights differ from layer to layer."
    )
    note = note.extend(Y, because="from the tokens as they are").extend(Z, because="from another order of them")
    note = note.section("By induction on the depth").say(
        "One layer takes tokens in another order to what it gives, in that order: softmax and $f$ act on each row, and "
        r"$\Pi^{\top} \Pi = I$. So after each layer both stacks hold the same tokens."
    )
    note = note.claim(EQUIVARIANT, kind="Theorem", title="A stack of any depth is equivariant")
    note = note.say("What is pooled over all tokens then does not depend on their order at all.")
    note = note.extend(sa.eq(sa.mean(Z, axis=0), POOLED), because="the mean of the same rows")
    return numbers(mask(note))


def mask(note: sa.Derivation) -> sa.Derivation:
    """With a causal mask."""
    note = note.section("With a causal mask").say("A causal mask knows the order, and already one layer tells it.")
    return note.extend(A, B).claim(
        sa.prove(B, Pi @ A),
        title="It is so with a causal mask",
        holds="the first token attends to itself only, and another one is first in another order.",
    )


def numbers(note: sa.Derivation) -> sa.Derivation:
    """Three tokens, two layers."""
    note = note.section("In numbers").say("Two layers on three tokens that are numbers, with $f$ left out and a mask.")
    values = {X: [[0], [1], [2]], W: [[[1]], [[-1]]], Pi: [[0, 1, 0], [0, 0, 1], [1, 0, 0]]}
    return note.example(values, show=[A, B])


if __name__ == "__main__":
    print(derivation().text())
