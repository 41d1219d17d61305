"""Attention over blocks of keys: what is kept of a block, and how two blocks are merged."""

from __future__ import annotations

import symattn as sa

A, B = sa.tensor("Z_1", "T S_1"), sa.tensor("Z_2", "T S_2")
V = [sa.tensor("V_1", "S_1 e"), sa.tensor("V_2", "S_2 e")]
ROWS = {"axis": -1, "keepdims": True}
m_i = [sa.let(f"m_{k}", sa.max(z, **ROWS)) for k, z in ((1, A), (2, B))]
E = [sa.let("E_1", sa.exp(A - m_i[0])), sa.let("E_2", sa.exp(B - m_i[1]))]
l_i = [sa.let(f"l_{k}", sa.sum(x, **ROWS)) for k, x in ((1, E[0]), (2, E[1]))]
N_i = [sa.let(f"N_{k}", x @ v) for k, x, v in ((1, E[0], V[0]), (2, E[1], V[1]))]
m = sa.let("m", sa.maximum(*m_i))
Z, VALUES = sa.let("Z", sa.concat([A, B], axis=-1)), sa.let("V", sa.concat(V, axis=0))
l = sa.let("l", sa.exp(m_i[0] - m) * l_i[0] + sa.exp(m_i[1] - m) * l_i[1])
N = sa.let("N", sa.exp(m_i[0] - m) * N_i[0] + sa.exp(m_i[1] - m) * N_i[1])
O = sa.let("O", N / l)


def derivation() -> sa.Derivation:
    """Two blocks of scores, each with its own maximum, merged into the attention over both."""
    note = sa.Derivation(
        "Attention over blocks of keys",
        given={
            A: "scores of a first block of keys", B: "of a second one", V[0]: "values of the first",
            V[1]: "of the second",
        },
        summary="Softmax needs the sum over all keys, and still attention can be computed in one pass over blocks of "
        "them: three small things are kept of each block, and two blocks are merged into one.",
        result=[
            "Of each block keep the largest score of a row, the sum of exponentials relative to it, and the values "
            "summed with these exponentials. Rescaled to a common maximum, the sums add up, and",
            sa.prove(O, sa.softmax(Z) @ VALUES),
        ],
        references=[
            "Milakov and Gimelshein, Online normalizer calculation for softmax, 2018, algorithm 3.",
            "Dao et al., FlashAttention, 2022, algorithm 1.",
        ],
        letters="x y",
    )  # fmt: skip
    note = note.section("What is kept of a block").say(
        "No exponent is above 0, so nothing overflows. Of a block of any width, one column, one more and a matrix of "
        "the shape of the output are left."
    )
    note = note.extend(*m_i, because="largest score of each row").extend(*E, because="exponentials relative to it")
    note = note.extend(*l_i, because="their sum").extend(*N_i, because="values summed with them")
    note = note.section("Merging two blocks").say("Side by side, the two blocks have the scores and values")
    note = note.extend(Z, because="side by side").extend(VALUES, because="one above the other")
    note = note.extend(m, because="the larger of the two maxima")
    return numbers(merged(note))


def merged(note: sa.Derivation) -> sa.Derivation:
    """The two sums of both blocks, and their quotient."""
    shifted = [sa.exp(A - m), sa.exp(B - m)]
    add_up = r"$\mathrm{e}^{x}\, \mathrm{e}^{y} = \mathrm{e}^{x + y}$"
    note = note.say("What was kept of each block is rescaled to the common maximum, and added.")
    note = note.extend(l).then(sa.sum(shifted[0], **ROWS) + sa.sum(shifted[1], **ROWS), because=add_up)
    note = note.then(sa.sum(sa.exp(Z - m), **ROWS), because="a sum over both blocks")
    note = note.extend(N).then(shifted[0] @ V[0] + shifted[1] @ V[1], because=add_up)
    note = note.then(sa.exp(Z - m) @ VALUES, because="a sum over both blocks")
    note = note.say(
        "So $m$, $l$ and $N$ are for both blocks together what was kept of each, and the next block is merged with "
        "them likewise: by induction for any number of blocks. After the last one, a division gives attention over "
        "all keys."
    )
    note = note.section("The output").extend(O)
    note = note.then((sa.exp(Z - m) @ VALUES) / sa.sum(sa.exp(Z - m), **ROWS), because="the two sums above")
    note = note.then(sa.softmax(Z - m) @ VALUES, because="definition of softmax")
    note = note.then(sa.softmax(Z) @ VALUES, because="a shift of each row changes nothing")
    unscaled = sa.prove((N_i[0] + N_i[1]) / (l_i[0] + l_i[1]), sa.softmax(Z) @ VALUES)
    return note.claim(
        unscaled,
        title="The sums may be added as they are",
        holds="they are relative to two maxima, and have to be rescaled to one number first. Any number would do: "
        "none of the steps uses that $m$ is the maximum, which only keeps exponents at most 0.",
    )


def numbers(note: sa.Derivation) -> sa.Derivation:
    """One query, two blocks of two keys."""
    note = note.section("In numbers").say(
        "One query, two blocks of two keys. The scores of the second block would overflow in half precision, were "
        "their exponentials taken as they are."
    )
    values = {A: [[1, 3]], B: [[20, 19]], V[0]: [[1], [0]], V[1]: [[2], [4]]}
    return note.example(values, show=[*l_i, m, l, N, O])


if __name__ == "__main__":
    print(derivation().text())
