"""The backward pass of grouped-query attention: a shared key collects the gradients of its group."""

from __future__ import annotations

import symattn as sa

g, r, T, S, d, e = sa.sizes("g r T S d e")
Q, K, V = sa.tensor("Q", g * r, T, d), sa.tensor("K", g, S, d), sa.tensor("V", g, S, e)
O = sa.attention.grouped_query(Q, K, V)
K_r, V_r = (x for x in O.intermediates if x.name in ("K_r", "V_r"))
Z, P = (x for x in O.intermediates if x.name in ("Z", "P"))
back = sa.gradient(O, [Q, K, V])


def derivation() -> sa.Derivation:
    """The gradients of g heads of keys and values that r query heads each share."""
    note = sa.Derivation(
        "The backward pass of grouped-query attention",
        given={Q: "queries of $g r$ heads", K: "keys of $g$ heads", V: "values of $g$ heads"},
        summary="Several query heads share one head of keys and values. The gradient of what is shared is a sum over "
        "those who share it.",
        result=[
            "The gradients of keys and values are those of ordinary attention with $g r$ heads, added up over the $r$ "
            "heads of each group. A mean over the group, or the gradient of one of its heads, is wrong.",
        ],
        references=["Ainslie et al., GQA, 2023, section 2.2.", "Shazeer, Fast transformer decoding, 2019 ($g = 1$)."],
        letters="a",
    )
    return shared(backward(forward(note)))


def forward(note: sa.Derivation) -> sa.Derivation:
    """Copies, and attention as usual."""
    note = note.section("Forward").say(
        r"Query head $a$ reads the keys and values of head $\lfloor a / r \rfloor$: each of these stands $r$ times in "
        "a row, once for each query head of its group. From there on it is attention of $g r$ heads."
    )
    note = note.extend(K_r, V_r, because="$r$ copies of each head")
    return note.extend(Z, P, O, because={"Z": "scores", "P": "weights", "O": "outputs"})


def backward(note: sa.Derivation) -> sa.Derivation:
    """That of attention, and sums over groups."""
    note = note.section("Backward").say("The backward pass is that of attention, up to the copies.")
    note = note.extend(back["dV_r"], back["dP"], because="product rule")
    note = note.extend(back["dZ"], because="softmax, row by row")
    note = note.extend(back["dQ"], back["dK_r"], because="product rule").say(
        "Then one step more: an entry that was copied gets the sum of the gradients of its copies."
    )
    return note.extend(back["dK"], back["dV"], because="sum over the copies")


def shared(note: sa.Derivation) -> sa.Derivation:
    """A claim that halves the gradient."""
    copies = sa.split_axis(back["dK_r"], 0, (g, r))
    note = note.section("A sum, not a mean")
    return note.claim(
        sa.prove(back["dK"], sa.sum(copies, axis=1) / r),
        title="The gradient of a shared key is the mean over its group",
        holds="it is the sum, since every copy has acted on the loss by itself.",
    ).say("With $g = 1$, multi-query attention, all query heads share one head, and the sum is over all of them.")


if __name__ == "__main__":
    print(derivation().text())
