"""Attention over blocks of keys: what is kept of a block, and how two blocks are merged."""

from __future__ import annotations

import symattn as sa


def derivation() -> sa.Derivation:
    """Two blocks of scores, each with its own maximum, merged into the attention over both."""
    A, B = sa.tensor("A", "T S_1"), sa.tensor("B", "T S_2")
    U, W = sa.tensor("U", "S_1 e"), sa.tensor("W", "S_2 e")
    rows = {"axis": -1, "keepdims": True}

    note = sa.Derivation("Attention over blocks of keys", given=[A, B, U, W])
    note = note.say(
        "The scores A and B of two blocks of keys, with values U and W, are seen one after the other. Of each block "
        "three things are kept: the largest score of a row, the sum of exponentials relative to it, and the sum of "
        "values weighted by these exponentials. No exponent is above 0, so nothing overflows."
    )
    m1, m2 = sa.let("m_1", sa.max(A, **rows)), sa.let("m_2", sa.max(B, **rows))
    l1, l2 = sa.let("l_1", sa.sum(sa.exp(A - m1), **rows)), sa.let("l_2", sa.sum(sa.exp(B - m2), **rows))
    N1, N2 = sa.let("N_1", sa.exp(A - m1) @ U), sa.let("N_2", sa.exp(B - m2) @ W)
    note = note.extend(m1, l1, N1, m2, l2, N2)

    m = sa.let("m", sa.maximum(m1, m2))
    Z, V = sa.let("Z", sa.concat([A, B], axis=-1)), sa.let("V", sa.concat([U, W], axis=0))
    note = note.say(
        "The two blocks side by side have the scores Z and the values V, and m is the larger of the maxima."
    )
    note = note.extend(Z, V, m)

    l = sa.let("l", sa.exp(m1 - m) * l1 + sa.exp(m2 - m) * l2)
    N = sa.let("N", sa.exp(m1 - m) * N1 + sa.exp(m2 - m) * N2)
    note = note.say("Merging rescales what was kept of each block to the common maximum, and adds.")
    note = note.extend(l).then(sa.sum(sa.exp(A - m), **rows) + sa.sum(sa.exp(B - m), **rows), because="exponents add")
    note = note.then(sa.sum(sa.exp(Z - m), **rows), because="side by side")
    note = note.extend(N).then(sa.exp(A - m) @ U + sa.exp(B - m) @ W, because="exponents add")
    note = note.then(sa.exp(Z - m) @ V, because="side by side")
    note = note.say(
        "So m, l and N are for both blocks together what was kept of each, and the next block is merged with them in "
        "the same way. After the last one, a division gives attention over all keys."
    )
    note = note.extend(sa.let("O", N / l))
    note = note.then((sa.exp(Z - m) @ V) / sa.sum(sa.exp(Z - m), **rows), because="the two sums above")
    note = note.then(sa.softmax(Z - m) @ V, because="the formula of softmax")
    note = note.then(sa.softmax(Z) @ V, because="a shift of each row")
    note = note.say(
        "None of these steps uses that m is the maximum: the maxima keep the numbers small, and any other numbers "
        "would give the same result."
    )
    return note


if __name__ == "__main__":
    print(derivation().text())
