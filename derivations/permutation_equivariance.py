"""What attention does when rows are permuted: what holds, and what does not."""

from __future__ import annotations

import sympy

import symattn as sa

T, S, d, e, n = sa.sizes("T S d e n")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
R, C = sa.tensor("R", T, T, permutation=True), sa.tensor("C", S, S, permutation=True)
X, W, E = sa.tensor("X", n, d), sa.tensor("W", d, d), sa.tensor("E", n, d)
Pi = sa.tensor("Pi", n, n, permutation=True)


def derivation() -> sa.Derivation:
    """Query rows, key-value pairs and self-attention; then three false claims with their counterexamples."""
    note = sa.Derivation(
        "Attention and permutations",
        given={
            Q: "queries", K: "keys", V: "values", R: "reorders the queries", C: "reorders keys and values",
            X: "tokens of self-attention", W: "any matrix (queries times keys)", Pi: "reorders the tokens",
            E: "positions",
        },
        summary="What happens to the output when queries, keys, values or tokens are reordered: three statements that "
        "hold, and three that are often made and are false.",
        result=[
            r"Write $\operatorname{Att}(Q, K, V) = \operatorname{softmax}(Q K^{\top} / \sqrt{d})\, V$, and let $R$, "
            r"$C$ and $\Pi$ be permutation matrices. Then "
            r"$\operatorname{Att}(R Q, C K, C V) = R \operatorname{Att}(Q, K, V)$: attention is equivariant in its "
            "queries and invariant in its key-value pairs, which are a set and not a sequence. So self-attention is "
            "equivariant: reordered tokens give the same outputs, reordered alike.",
        ],
        references=["Lee et al., Set Transformer, 2019, property 1."],
    )  # fmt: skip
    return false_claims(self_attention(queries_and_keys(note)))


def queries_and_keys(note: sa.Derivation) -> sa.Derivation:
    """Rows of queries, and pairs of keys and values."""
    Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
    P = sa.let("P", sa.softmax(Z))
    O = sa.let("O", P @ V)
    Z2 = sa.let("Z'", R @ Q @ (C @ K).T / sympy.sqrt(d))
    P2 = sa.let("P'", sa.softmax(Z2))
    O2 = sa.let("O'", P2 @ C @ V)
    note = note.section("Queries, and key-value pairs").extend(Z, because="scores").extend(P, because="weights")
    note = note.extend(O, because="output").say(
        "A permutation matrix has a single 1 in every row and every column, so its transpose is its inverse: "
        r"$C^{\top} C = I$. From the left it reorders rows; transposed, from the right, columns. With a prime: the "
        "same from reordered inputs. Every score is still the product of one query and one key, so the scores are the "
        "same numbers in other places."
    )
    note = note.extend(Z2).then(R @ Z @ C.T, because=r"$(C K)^{\top} = K^{\top} C^{\top}$")
    note = note.say("Softmax treats all rows alike, and within a row all columns alike.")
    note = note.extend(P2).then(sa.softmax(R @ Z @ C.T), because="the scores above")
    note = note.then(R @ P @ C.T, because="softmax commutes with reordering")
    note = note.say("In the product with the values, the sum over the keys does not depend on their order.")
    note = note.extend(O2).then(R @ P @ C.T @ C @ V, because="the weights above")
    return note.then(R @ P @ V, because=r"$C^{\top} C = I$").then(R @ O, because="$O = P V$")


def self_attention(note: sa.Derivation) -> sa.Derivation:
    """Queries, keys and values of one sequence."""
    A, A2 = sa.let("A", sa.softmax(X @ W @ X.T)), sa.let("A'", sa.softmax(Pi @ X @ W @ (Pi @ X).T))
    Y, Y2 = sa.let("Y", A @ X), sa.let("Y'", A2 @ Pi @ X)
    note = note.section("Self-attention").say("All three come from one $X$, so one permutation moves all of them.")
    note = note.extend(A, Y, A2).then(Pi @ A @ Pi.T, because="as above")
    note = note.extend(Y2).then(Pi @ A @ Pi.T @ Pi @ X, because="the weights above")
    return note.then(Pi @ Y, because=r"$\Pi^{\top} \Pi = I$")


def false_claims(note: sa.Derivation) -> sa.Derivation:
    """Keys without their values, causal masks, and positions."""
    L = sa.let("L", sa.from_index((n, n), lambda i, j: j <= i))
    att, moved = sa.softmax(Q @ K.T) @ V, Pi @ X + E
    keys_alone = sa.prove(sa.softmax(Q @ (C @ K).T) @ V, att)
    together = sa.prove(sa.softmax(Q @ (C @ K).T) @ (C @ V), att)
    causal = sa.prove(sa.softmax(Pi @ X @ (Pi @ X).T, where=L) @ (Pi @ X), Pi @ sa.softmax(X @ X.T, where=L) @ X)
    positions = sa.prove(sa.softmax(moved @ moved.T) @ moved, Pi @ sa.softmax((X + E) @ (X + E).T) @ (X + E))
    note = note.section("Three false claims")
    note = note.claim(
        keys_alone,
        title="The order of the keys does not matter",
        holds=["values have to move with their keys:", together],
    )
    note = note.extend(L, because="the causal mask: a token sees itself and those before it").claim(
        causal,
        title="Causal self-attention is equivariant too",
        holds="a causal mask gives every row a set of keys of its own, which depends on its place.",
    )
    return note.claim(
        positions,
        title="Positions that are added do not matter",
        holds="positions are added to the places and do not move with the rows.",
    )


if __name__ == "__main__":
    print(derivation().text())
