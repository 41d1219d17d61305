"""The backward pass of self-attention with several heads, to the tokens and to all weights."""

from __future__ import annotations

import symattn as sa


def derivation() -> sa.Derivation:
    """From the output of a multi-head layer to the gradients of its input and of its four weights."""
    h, T, D, d, e, M = sa.sizes("h T D d e M")
    X, W_o = sa.tensor("X", T, D), sa.tensor("W_o", h * e, M)
    weights = [sa.tensor("W_q", D, h * d), sa.tensor("W_k", D, h * d), sa.tensor("W_v", D, h * e)]

    projections = sa.attention.project(X, *weights)
    heads = [sa.let(f"{x.name}'", sa.attention.split_heads(x, h)) for x in projections]
    Z = sa.attention.scores(*heads[:2])
    P = sa.attention.probabilities(Z)
    O = sa.attention.attention_pooling(P, heads[2])
    H = sa.let("H", sa.attention.merge_heads(O))
    Y = sa.let("Y", H @ W_o)
    last = sa.gradient(Y, [W_o, O])
    middle = sa.gradient({O: last[O]}, heads)
    first = sa.gradient({x: middle[x] for x in heads}, [*weights, X])

    note = sa.Derivation("Backward pass of attention with several heads", given=[X, *weights, W_o, last.cotangent])
    note = note.say(
        "T tokens attend to each other. Three matrices make the queries, keys and values of all heads at once, and "
        "the columns of each product are divided among h heads: d columns a head for queries and keys, e for values."
    )
    note = note.extend(*projections, *heads)
    note = note.say(
        "Each head attends by itself, and the last matrix mixes the outputs of all heads, put side by side."
    )
    note = note.extend(Z, P, O, H, Y)
    note = note.say(
        "Let a loss depend on Y, and write dX for its gradient by X. The last step is an ordinary linear layer. "
        "Putting heads side by side moves entries and computes nothing, so that the cotangent is moved back."
    )
    note = note.extend(last)
    note = note.say(
        "From here on each head has the backward pass of a single head, and nothing is exchanged between heads."
    )
    note = note.extend(middle)
    note = note.say(
        "The cotangents of the heads are put side by side again, and three linear layers are left. The heads meet in "
        "the tokens, which were read three times."
    )
    note = note.extend(first)
    note = note.say(
        "The scale of the scores is that of one head, the root of d, not of all the h d columns, in the backward pass"
        " too."
    )
    return note


if __name__ == "__main__":
    print(derivation().text())
