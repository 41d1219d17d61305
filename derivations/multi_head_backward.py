"""The backward pass of self-attention with several heads, to the tokens and to all weights."""

from __future__ import annotations

import symattn as sa

h, T, D, d, e, m = sa.sizes("h T D d e m")
X, W_o = sa.tensor("X", T, D), sa.tensor("W_o", h * e, m)
W_q, W_k, W_v = sa.tensor("W_q", D, h * d), sa.tensor("W_k", D, h * d), sa.tensor("W_v", D, h * e)
Q, K, V = sa.attention.project(X, W_q, W_k, W_v)
HEADS = [sa.let(f"{x.name}'", sa.attention.split_heads(x, h)) for x in (Q, K, V)]
Z = sa.attention.scores(*HEADS[:2])
P = sa.attention.probabilities(Z)
O = sa.attention.attention_pooling(P, HEADS[2])
H = sa.let("H", sa.attention.merge_heads(O))
Y = sa.let("Y", H @ W_o)
last = sa.gradient(Y, [W_o, O])
middle = sa.gradient({O: last[O]}, HEADS)
first = sa.gradient({x: middle[x] for x in HEADS}, [W_q, W_k, W_v, X])


def derivation() -> sa.Derivation:
    """From the output of a multi-head layer to the gradients of its input and of its four weights."""
    note = sa.Derivation(
        "The backward pass of several heads",
        given={
            X: "tokens, one a row", W_q: "makes the queries of all heads", W_k: "makes their keys",
            W_v: "makes their values", W_o: "mixes the outputs of the heads",
        },
        summary="A layer of several heads, backwards: a linear layer, the backward pass of each head by itself, and "
        "three linear layers.",
        result=[
            r"Let $\mathrm{d}Q$, $\mathrm{d}K$ and $\mathrm{d}V$ be the gradients of all heads side by side. Then",
            *(first[x] for x in (W_q, W_k, W_v, X)),
            last[W_o],
            "Heads meet in the first and the last step only.",
        ],
        references=["Vaswani et al., Attention is all you need, 2017, section 3.2.2."],
    )  # fmt: skip
    return backward(forward(note))


def forward(note: sa.Derivation) -> sa.Derivation:
    """One product for all heads, each head by itself, and one product again."""
    note = note.section("Forward").say("Three matrices make the queries, keys and values of all heads at once.")
    note = note.extend(Q, K, V, because={"Q": "queries of all heads", "K": "keys", "V": "values"}).say(
        "The columns are divided among the heads, $d$ for queries and keys and $e$ for values. With a prime: by head."
    )
    note = note.extend(*HEADS, because="cut into heads").say("Each head attends by itself.")
    note = note.extend(Z, P, O, because={"Z": "scores", "P": "weights", "O": "outputs of the heads"})
    note = note.say("The outputs are put side by side and mixed.")
    return note.extend(H, Y, because={"H": "side by side", "Y": "the layer"})


def backward(note: sa.Derivation) -> sa.Derivation:
    """The same way back."""
    note = note.section("Backward").say(
        "The last step is a linear layer. Putting heads side by side computes nothing, so its gradient is cut apart "
        "again."
    )
    note = note.extend(last["dW_o"], last["dH"], because="product rule").extend(last["dO"], because="cut into heads")
    note = note.say("Then each head has the backward pass of a single head; nothing goes from one to another.")
    said = {
        "dV'": "product rule on $O = P V'$", "dP": "product rule on $O = P V'$", "dZ": "softmax, row by row",
        "dQ'": "product rule, with the scale", "dK'": "the same, transposed",
    }  # fmt: skip
    note = note.extend(middle, because=said).say(
        "The gradients of the heads are put side by side, and three linear layers are left. The tokens were read three "
        "times, so their gradient has three terms."
    )
    said = {x: "side by side again" for x in ("dQ", "dK", "dV")} | {x: "product rule" for x in ("dW_q", "dW_k", "dW_v")}
    return note.extend(first, because={**said, "dX": "three uses of $X$"}).say(
        r"The scale of the scores is that of one head, $\sqrt{d}$, and not of all $h d$ columns; in the backward pass "
        "too."
    )


if __name__ == "__main__":
    print(derivation().text())
