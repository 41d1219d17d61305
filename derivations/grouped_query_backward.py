"""The backward pass of grouped-query attention: a shared key collects the gradients of its group."""

from __future__ import annotations

import symattn as sa


def derivation() -> sa.Derivation:
    """The gradients of g heads of keys and values that r query heads each share, and the case g = 1."""
    g, r, T, S, d, e = sa.sizes("g r T S d e")
    Q, K, V = sa.tensor("Q", g * r, T, d), sa.tensor("K", g, S, d), sa.tensor("V", g, S, e)
    O = sa.attention.grouped_query(Q, K, V)
    back = sa.gradient(O, [Q, K, V])

    note = sa.Derivation("Backward pass of grouped-query attention", given=[Q, K, V, back.cotangent])
    note = note.say(
        "There are g r query heads and g heads of keys and values. Query head a reads the keys and values of head a "
        "div r: each of them stands r times in a row, once for each query head of its group, and attention goes on as"
        " usual."
    )
    note = note.extend(*O.intermediates)
    note = note.say(
        "The backward pass is that of attention with as many keys as queries, with one step more: an entry that was "
        "copied gets the sum of the cotangents of its copies. So the gradient of a shared key is the sum over its "
        "group. A mean, or the gradient of one head of the group, would be wrong."
    )
    note = note.extend(back)
    note = note.say("With g = 1 all query heads share one head, and its gradient is the sum over all of them.")
    return note


if __name__ == "__main__":
    print(derivation().text())
