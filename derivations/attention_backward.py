"""The backward pass of scaled dot-product attention."""

from __future__ import annotations

import sympy

import symattn as sa


def derivation() -> sa.Derivation:
    """From O = softmax(Q K^T / sqrt(d)) V to the gradients of Q, K and V."""
    T, S, d, e = sa.sizes("T S d e")
    Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
    Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
    P = sa.let("P", sa.softmax(Z))
    O = sa.let("O", P @ V)
    g = sa.gradient(O, [Q, K, V])
    z = sa.tensor("z", "n")
    product = "product rule on $O = P V$"

    note = sa.Derivation(
        "The backward pass of attention",
        given={Q: "queries, one a row", K: "keys", V: "values", z: "one row of scores"},
        summary="How the gradient of a loss flows back through "
        r"$O = \operatorname{softmax}(Q K^{\top} / \sqrt{d})\, V$: five products and one softmax, each line proved.",
        result=[
            r"Let a loss $L$ depend on $O$, and write $\mathrm{d}X$ for $\partial L / \partial X$, a matrix of the "
            "shape of $X$. Then",
            *(g[x] for x in (V, Q, K)),
            r"where $\mathrm{d}Z = P \odot (\mathrm{d}P - (P \odot \mathrm{d}P) \mathbf{1} \mathbf{1}^{\top})$ and "
            r"$\mathrm{d}P = \mathrm{d}O\, V^{\top}$.",
        ],
        references=[
            "Vaswani et al., Attention is all you need, 2017.",
            "Dao et al., FlashAttention, 2022, appendix B.2 (the same backward pass, in blocks).",
        ],
        letters="X",
    )
    note = note.section("Forward").extend(Z, because=r"scores, $T \times S$")
    note = note.extend(P, because="weights: each row is positive and sums to 1")
    note = note.extend(O, because="each output is an average of the values")

    note = note.figure(
        sa.plot.flow(g),
        "Forward (solid) and backward (dashed): the backward pass visits the same three operations in reverse, and "
        "reads $P$ again.",
    )

    note = note.section("Backward").say(
        "The output is a product. A product hands its gradient to each factor, multiplied by the transpose of the "
        "other."
    )
    note = note.extend(g["dV"], g["dP"], because=product).say(
        "Softmax acts on each row by itself. From the gradients of a row it takes off their average under the weights "
        "of that row, then scales by the weights."
    )
    note = note.extend(g["dZ"], because="softmax, row by row").fold("Why: one row of softmax", one_row(z))
    note = note.say(r"The scores are a product again, divided by $\sqrt{d}$.")
    note = note.extend(g["dQ"], because=r"product rule on $Z = Q K^{\top} / \sqrt{d}$")
    note = note.extend(g["dK"], because="the same, transposed").say(
        r"Of the $T \times S$ matrices, the backward pass reads only $P$ again: this is what FlashAttention "
        "recomputes block by block."
    )

    note = note.section("In numbers").say("Two queries, three keys, $d = 4$, $e = 2$; entries to three digits.")
    values = {
        Q: [[2, 0, 0, 0], [0, 2, 0, 0]],
        K: [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]],
        V: [[1, 0], [0, 1], [2, 2]],
        g.cotangent: [[1, 0], [0, 1]],
    }
    return note.example(values, show=[Z, P, g["dP"], g["dZ"]]).say(
        "The third value is the larger one for both queries, so its score should rise and another one fall. The rows "
        r"of $\mathrm{d}Z$ sum to 0, because adding a number to a whole row of $Z$ changes nothing."
    )


def one_row(z: sa.Tensor) -> sa.Derivation:
    """The softmax of one row."""
    p = sa.let("p", sa.softmax(z))
    g = sa.gradient(p, z)
    note = sa.Derivation("One row").say(r"Take one row, with gradient $\mathrm{d}p$.").extend(p)
    note = note.extend(sa.let("J", sa.jacobian(p, z)), because="its Jacobian, symmetric")
    return note.extend(g["dz"]).then(
        (sa.diag(p) - sa.outer(p, p)) @ g.cotangent, because=r"$p$ is a factor of both terms"
    )


if __name__ == "__main__":
    print(derivation().text())
