"""FlashAttention is exact: one pass over any number of blocks of keys, with any reference and any mask."""

from __future__ import annotations

import sympy

import symattn as sa

S, B, b, d, e = sa.sizes("S B b d e")
Q, K, V = sa.tensor("Q", S, d), sa.tensor("K", B * b, d), sa.tensor("V", B * b, e)
BLOCKS = sa.split_axis(K, 0, (B, b)), sa.split_axis(V, 0, (B, b))
START = sa.from_index((S,), lambda i: -sympy.oo), sa.zeros(S), sa.zeros(S, e)


def step(state, block):
    """One block of keys: the reference becomes the running maximum; a mask leaves out keys."""
    (m, l, N), (k, v, *keep) = state, block
    Z = Q @ k.T / sympy.sqrt(d)
    new = sa.maximum(m, sa.max(sa.where(keep[0], Z, m[:, None]) if keep else Z, axis=-1))
    E = sa.exp(Z - new[:, None])
    E, scale = sa.where(keep[0], E, 0) if keep else E, sa.exp(m - new)
    return (new, scale * l + sa.sum(E, axis=-1), scale[:, None] * N + E @ v), None


def forgetful(state, block):
    """The same without the rescaling of what was summed before."""
    m, l, N = state
    (new, more, values), _ = step((m, sa.zeros(S), sa.zeros(S, e)), block)
    return (new, l + more, N + values), None


def relative(m, K, V, *M):
    """The sums over all keys, or what a mask leaves of them, relative to any reference m."""
    E = sa.exp(Q @ sa.merge_axes(K, (0, 1)).T / sympy.sqrt(d) - m[:, None])
    E = sa.where(side_by_side(M[0]), E, 0) if M else E
    return None, sa.sum(E, axis=-1), E @ sa.merge_axes(V, (0, 1))


def side_by_side(M):
    """The masks of all blocks."""
    return sa.merge_axes(sa.moveaxis(M, 0, 1), (1, 2))


def values(names, step, start, blocks):
    """What the loop over blocks comes to, by these names; a name that is empty is left out."""
    last, _ = sa.scan(step, start, blocks)
    return [sa.let(name, x) for name, x in zip(names, last, strict=True) if name]


m, l, N = values("mlN", step, START, BLOCKS)
O, Z = sa.let("O", sa.diag(1 / l) @ N), sa.let("Z", Q @ K.T / sympy.sqrt(d))
L = sa.let("L", m + sa.log(l))
M = sa.tensor("M", B, S, b, binary=True)
C = sa.let("C", side_by_side(M))
BY = sa.induction(final=relative, free=0)


def derivation() -> sa.Derivation:
    """The loop, its invariant, what it gives, and what goes wrong without the rescaling."""
    exact = sa.prove(O, sa.softmax(Z) @ V, by=BY)
    note = sa.Derivation(
        "FlashAttention is exact",
        given={
            Q: "queries", K: "keys, in $B$ blocks of $b$", V: "values, in the same blocks", M: "masks of the blocks",
        },
        summary="Softmax attention in one pass over blocks of keys, in memory that does not grow with their number. "
        "It is no approximation: for every number and every size of blocks the output is that of softmax attention.",
        result=[
            "Of all blocks up to now three things are kept: a reference $m$ for each query, the sum $l$ of "
            r"exponentials relative to it, and the values $N$ summed with these. After the last one",
            exact,
            sa.prove(L, sa.logsumexp(Z), by=BY),
        ],
        references=[
            "Milakov and Gimelshein, Online normalizer calculation for softmax, 2018, algorithm 3.",
            "Dao et al., FlashAttention, 2022, algorithm 1 and theorem 1.",
        ],
        letters="t",
    )  # fmt: skip
    note = note.section("One block after the other").say(
        "With block $t$ of the keys the reference becomes the largest score so far. What was summed before is relative "
        "to the old one, and is rescaled to the new one."
    )
    note = note.extend(m, l, N)
    note = note.section("After the last block").say("A division gives the output, and a logarithm what backward needs.")
    note = note.extend(O, L, because={"L": "of each query"}).extend(Z, because="all scores")
    return numbers(wrong(masked(proved(note, exact))))


def proved(note: sa.Derivation, exact: object) -> sa.Derivation:
    """Both results, by one invariant."""
    note = note.section("Why it is exact").say(
        "The invariant does not say what $m$ is: $l$ and $N$ are the sums over all keys so far, relative to whatever "
        "reference is held. So any rule for it is exact: the running maximum, which keeps exponents at most 0, or one "
        "that moves only when it has to."
    )
    title = "For every number and size of blocks, and any reference"
    note = note.claim(exact, kind="Theorem", title=title)
    return note.extend(sa.eq(L, sa.logsumexp(Z)), because="by the same invariant", by=BY)


def masked(note: sa.Derivation) -> sa.Derivation:
    """With a mask, such as a causal one."""
    l, N = values(("", "l'", "N'"), step, (sa.zeros(S), *START[1:]), (*BLOCKS, M))
    note = note.section("With a mask").say(
        "A mask $M_t$ of each block leaves out keys, in the sums and in the maximum; where it leaves none, the "
        "reference stays. With a causal one, each query reads the keys up to its own."
    )
    note = note.extend(l, N).extend(C, because="the masks side by side")
    both = sa.eq(sa.diag(1 / l) @ N, sa.softmax(Z, where=C) @ V)
    return note.extend(both, because="by the same induction", by=BY)


def wrong(note: sa.Derivation) -> sa.Derivation:
    """What goes wrong without the rescaling."""
    u, U = values(("", "u", "U"), forgetful, START, BLOCKS)
    note = note.section("Without the rescaling").say("The sums of early blocks would stay as they are:").extend(u, U)
    return note.claim(
        sa.prove(sa.diag(1 / u) @ U, sa.softmax(Z) @ V),
        title="The sums may be left as they are when the reference moves",
        holds="early blocks would count too much, by the exponential of how far the reference has moved since.",
    )


def numbers(note: sa.Derivation) -> sa.Derivation:
    """One query, three blocks of two keys."""
    note = note.section("In numbers").say(
        "One query and three blocks of two keys, of which the second has the largest score. Relative to zero its "
        "exponential would be larger than half precision can hold."
    )
    values = {Q: [[1]], K: [[1], [3], [20], [19], [18], [5]], V: [[1], [0], [2], [4], [1], [7]]}
    return note.example(values, sizes={B: 3, b: 2}, show=[m, l, N, O, L])


if __name__ == "__main__":
    print(derivation().text())
