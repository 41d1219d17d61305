"""The backward pass of FlashAttention: weights are made again, block by block, from one logarithm for each row."""

from __future__ import annotations

import sympy

import symattn as sa

T, S_1, S_2, d, e = sa.sizes("T S_1 S_2 d e")
Q = sa.tensor("Q", T, d)
K = [sa.tensor("K_1", S_1, d), sa.tensor("K_2", S_2, d)]
V = [sa.tensor("V_1", S_1, e), sa.tensor("V_2", S_2, e)]
Z = [sa.let(f"Z_{i}", Q @ k.T / sympy.sqrt(d)) for i, k in enumerate(K, 1)]
SCORES = sa.let("Z", sa.concat(Z, axis=1))
ell = sa.let("ell", sa.logsumexp(SCORES))
W = sa.let("W", sa.softmax(SCORES))
O = sa.let("O", W @ sa.concat(V, axis=0))
P = [sa.let(f"P_{i}", sa.exp(z - ell[:, None])) for i, z in enumerate(Z, 1)]
g = sa.gradient(O, [Q, *K, *V])
dO = g.cotangent
delta = sa.let("delta", sa.sum(dO * O, axis=1))
D = [g["dZ_1"], g["dZ_2"]]
BY_SCORES = [sa.eq(x, p * (dO @ v.T - delta[:, None])) for x, p, v in zip(D, P, V, strict=True)]


def derivation() -> sa.Derivation:
    """What the forward pass keeps; one block; all gradients as sums over blocks; what is stored."""
    note = sa.Derivation(
        "The backward pass of FlashAttention",
        given={
            Q: "queries", K[0]: "keys of a first block", K[1]: "of a second one", V[0]: "values of the first block",
            V[1]: "of the second one",
        },
        summary="Keys and values come in blocks, and no matrix of all weights is stored. Backwards, each block makes "
        "its weights again, and needs of the others only two numbers a query.",
        result=[
            r"Keep $\ell$, the logarithm of the softmax denominator of each row, and "
            r"$\delta = (O \odot \mathrm{d}O) \mathbf{1}$. Then every block by itself gives",
            *P,
            *BY_SCORES,
            r"and from these the gradients by its keys and values; that by the queries is a sum over the blocks.",
        ],
        references=["Dao et al., FlashAttention, 2022, algorithm 4 and appendix B.2."],
    )  # fmt: skip
    return gradients(weights(forward(note)))


def forward(note: sa.Derivation) -> sa.Derivation:
    """Attention over both blocks."""
    note = note.section("Forward").extend(*Z, because="scores of each block").extend(SCORES, because="side by side")
    note = note.extend(W, because="weights, over both blocks").extend(O, because="output")
    return note.extend(ell, because="kept: one number for each query").say(
        r"The forward pass has $O$ and $\ell$ from one pass over the blocks. It keeps both, and drops the weights."
    )


def weights(note: sa.Derivation) -> sa.Derivation:
    """The weights of one block, from its scores and the kept logarithm."""
    note = note.section("Weights made again").say(
        r"With $\ell$ at hand, a block of weights is a function of the scores of that block alone."
    )
    note = note.extend(*P, because="one product and one exponential")
    return note.claim(
        sa.prove(sa.concat(P, axis=1), W),
        title="These are the weights",
        because=r"Softmax divides by the sum of exponentials, which is $\mathrm{e}^{\ell}$.",
    )


def gradients(note: sa.Derivation) -> sa.Derivation:
    """Block by block; the gradient of the queries adds up."""
    note = note.section("Backward").say(
        "Softmax takes off each row the average of the gradients of its weights. This is a sum over the keys of all "
        r"blocks, but it is also $\delta$, which needs the output only."
    )
    note = note.extend(delta, because=r"one number for each query, $\delta \in \mathbb{R}^{T}$")
    averages = [sa.sum(p * (dO @ v.T), axis=1) for p, v in zip(P, V, strict=True)]
    note = note.then(averages[0] + averages[1], because="$O = P_1 V_1 + P_2 V_2$")
    note = note.say("So each block by itself has the gradient by its scores,")
    note = note.extend(*BY_SCORES, because="softmax, row by row")
    note = note.say("and from it those of its keys and values. The gradient by the queries adds up over the blocks.")
    note = note.extend(*(sa.eq(g[f"dV_{i}"], P[i - 1].T @ dO) for i in (1, 2)), because="product rule")
    note = note.extend(g["dK_1"], g["dK_2"], because="product rule")
    note = note.extend(g["dQ"], because="all blocks read the queries")
    own = [sa.softmax(z) for z in Z]
    note = note.claim(
        sa.prove(g["dV_1"], own[0].T @ dO),
        title="The softmax of a block by itself will do",
        holds=r"its denominator is that of its own keys. The weights need $\ell$ of all blocks, which is why the "
        "forward pass keeps it.",
    )
    return note.say(
        "Beside the inputs, the output and their gradients, two numbers a query are stored, $2 T$ in place of the "
        "$T (S_1 + S_2)$ weights. The price is that scores are computed once more."
    )


if __name__ == "__main__":
    print(derivation().text())
