"""The backward pass of FlashAttention is exact: one pass over any number of blocks, from two numbers for each query."""

from __future__ import annotations

import sympy

import symattn as sa

S, B, b, d, e = sa.sizes("S B b d e")
Q, K, V = sa.tensor("Q", S, d), sa.tensor("K", B * b, d), sa.tensor("V", B * b, e)
ell, delta, dO = sa.tensor("ell", S), sa.tensor("delta", S), sa.tensor("dO", S, e)
Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
A = sa.let("A", sa.softmax(Z))
O = sa.let("O", A @ V)
g = sa.gradient({O: dO}, [Q, K, V])


def blocks(x):
    """What has a row for each key, in blocks of keys."""
    return sa.split_axis(x, 0, (B, b))


def step(X, block):
    """One block of keys: the gradient by queries grows, those by its keys and values are complete."""
    k, v = block
    P = sa.exp(Q @ k.T / sympy.sqrt(d) - ell[:, None])
    D = P * (dO @ v.T - delta[:, None])
    return X + D @ k / sympy.sqrt(d), (D.T @ Q / sympy.sqrt(d), P.T @ dO)


def at_once(ell, delta, mark=""):
    """The same with all keys, of these two numbers: weights, gradients by scores, by queries, keys and values."""
    P = sa.let(f"P{mark}", sa.exp(Z - ell[:, None]))
    D = sa.let(f"D{mark}", P * (dO @ V.T - delta[:, None]))
    return P, D, (D @ K / sympy.sqrt(d), D.T @ Q / sympy.sqrt(d), P.T @ dO)


STATE, OUTPUTS = sa.scan(step, sa.zeros(S, d), (blocks(K), blocks(V)))
X, Y, W = (sa.let(name, x) for name, x in zip("XYW", (STATE, *OUTPUTS), strict=True))
P, D, WHOLE = at_once(ell, delta)
BY = sa.induction(final=WHOLE[0], outputs=[blocks(x) for x in WHOLE[1:]])


def derivation() -> sa.Derivation:
    """The loop for any saved numbers, and which numbers make it the gradient."""
    by_blocks = sa.prove(X, WHOLE[0], by=BY)
    note = sa.Derivation(
        "The backward pass of FlashAttention is exact",
        given={
            Q: "queries", K: "keys, in $B$ blocks of $b$", V: "values, in the same blocks",
            dO: "gradient by the output", ell: "a number for each query", delta: "another one",
        },
        summary="Backwards, too, one pass over blocks of keys is enough: weights are made again, block by block, from "
        "two numbers for each query. For every number and size of blocks that gives the gradients of attention.",
        result=[
            "The pass over all blocks gives, whatever the two numbers are, what all weights at once would give,",
            by_blocks,
            r"and this is the gradient by the queries where $\ell$ is the logarithm of the softmax denominator, and "
            r"$\delta$ the product of the output and its gradient, row by row.",
        ],
        references=[
            "Dao et al., FlashAttention, 2022, algorithm 4 and appendix B.2.",
            "Milakov and Gimelshein, Online normalizer calculation for softmax, 2018.",
        ],
        letters="t",
    )  # fmt: skip
    note = note.section("One block after the other").say(
        r"From $\ell$ a block of weights is made again, and with $\delta$ the gradients by its scores. For the queries "
        "these are added up; those by the keys and the values of block $t$ are done with."
    )
    note = note.extend(X, Y, W, because={"X": "by the queries", "Y": "by keys, of each block", "W": "by values"})
    note = note.section("All at once").say("The same for all keys, with all weights:")
    note = note.extend(Z, because="scores").extend(P, because="weights").extend(D, because="by the scores")
    note = note.claim(by_blocks, kind="Theorem", title="For every number and size of blocks")
    return gradients(note)


def gradients(note: sa.Derivation) -> sa.Derivation:
    """Which numbers are kept."""
    note = note.section("What the forward pass keeps").say(
        r"Nothing was said of $\ell$ and $\delta$ so far. With $\ell = \operatorname{rowlogsumexp}(Z)$ the weights are "
        r"those of softmax, and with $\delta = (\mathrm{d}O \odot O) \mathbf{1}$ the sums are the gradients."
    )
    weights, slopes, kept = at_once(sa.logsumexp(Z), sa.sum(dO * O, axis=1), "'")
    note = note.extend(A, O, weights, slopes, because={"P'": "made again", "D'": "by the scores"})
    note = note.extend(sa.eq(weights, A), because=r"softmax divides by $\mathrm{e}^{\ell}$")
    note = note.extend(*map(sa.eq, (g[Q], g[K], g[V]), kept), because="product rule, and softmax row by row")
    note = note.claim(
        sa.prove(g[Q], (weights * (dO @ V.T)) @ K / sympy.sqrt(d)),
        title=r"The number $\delta$ can be left out",
        holds="softmax takes off each row the average of the gradients of its weights. That is $\\delta$.",
    )
    return numbers(note)


def numbers(note: sa.Derivation) -> sa.Derivation:
    """One query, two blocks of one key."""
    note = note.section("In numbers").say(
        r"One query and two blocks of one key, with $\ell$ and $\delta$ as the forward pass has them."
    )
    values = {
        Q: [[1]], K: [[0], [1]], V: [[1], [3]], dO: [[1]], ell: [sympy.log(1 + sympy.E)],
        delta: [(1 + 3 * sympy.E) / (1 + sympy.E)],
    }  # fmt: skip
    return note.example(values, sizes={B: 2, b: 1}, show=[P, D, X, g["dQ"]])


if __name__ == "__main__":
    print(derivation().text())
