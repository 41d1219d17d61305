"""Rotary positions: scores depend on the distance of query and key alone, and lengths are kept."""

from __future__ import annotations

import sympy

import symattn as sa

T, S, m = sa.sizes("T S m")
s = sympy.Symbol("s", real=True)
i, j = sympy.symbols("i j", real=True)
omega, q, k = sa.tensor("omega", m), sa.tensor("q", 2 * m), sa.tensor("k", 2 * m)
Q, K = sa.tensor("Q", T, 2 * m), sa.tensor("K", S, 2 * m)
p, r = sa.tensor("p", T), sa.tensor("r", S)
Pair = tuple[sa.Tensor, sa.Tensor]
QUERIES = (sa.tensor("Q_1", T, m), sa.tensor("Q_2", T, m))
C_p, S_p = sa.let("C_p", sa.cos(sa.outer(p, omega))), sa.let("S_p", sa.sin(sa.outer(p, omega)))
C_r, S_r = sa.let("C_r", sa.cos(sa.outer(r, omega))), sa.let("S_r", sa.sin(sa.outer(r, omega)))
KEYS = (sa.tensor("K_1", S, m), sa.tensor("K_2", S, m))


def rotation(t: sympy.Expr) -> sa.Tensor:
    """Pair c of the features turned by the angle t omega[c]; the pair is feature c and feature c + m."""
    cosines, sines = sa.diag(sa.cos(t * omega)), sa.diag(sa.sin(t * omega))
    return sa.concat([sa.concat([cosines, -sines], axis=1), sa.concat([sines, cosines], axis=1)], axis=0)


def derivation() -> sa.Derivation:
    """One query and one key; tables of all positions in both layouts; what is false."""
    R, R_j, Rd = sa.let("R_i", rotation(i)), sa.let("R_j", rotation(j)), sa.let("R", rotation(i - j))
    note = sa.Derivation(
        "Rotary positions are relative",
        given={
            q: "a query", k: "a key", i: "position of the query", j: "position of the key",
            omega: "frequencies, one for each pair of features", p: "positions of many queries", r: "of many keys",
            QUERIES[0]: "first features of their pairs", QUERIES[1]: "second features", KEYS[0]: "the same of the keys",
            KEYS[1]: "the same", Q: "queries with all features", K: "keys with all features", s: "a shift",
        },
        summary="RoPE turns pairs of features of queries and keys by angles that grow with their position. Scores then "
        "depend on the distance alone, and lengths stay as they are.",
        result=[
            "The score of a turned query and a turned key has their distance for its only position:",
            sa.prove((R @ q) @ (R_j @ k), (Rd @ q) @ k),
        ],
        references=["Su et al., RoFormer, 2021, equations 14 to 16 and 34."],
        letters="c x y",
    )  # fmt: skip
    note = note.section("One query and one key").say(
        r"At position $i$, features $c$ and $c + m$ are turned together by the angle $i \omega_c$."
    )
    note = note.extend(R, because="the rotation of position $i$")
    note = note.extend(R_j, because="that of position $j$").extend(Rd, because="that of their distance")
    note = note.say("Rotations of one plane are undone by their transposes, and their angles add up.")
    note = note.extend(sa.eq(R.T @ R, sa.eye(2 * m)), because=r"$\cos^2 x + \sin^2 x = 1$")
    note = note.extend(sa.eq(R_j.T @ R, Rd), because=r"$\cos(x - y) = \cos x \cos y + \sin x \sin y$")
    note = note.say("So the score reads both positions only through their distance.")
    note = note.extend(sa.let("z", (R @ q) @ (R_j @ k)))
    note = note.then(k @ (R_j.T @ R @ q), because="a scalar is its own transpose")
    note = note.then((Rd @ q) @ k, because="the rotation of the distance")
    return layouts(many(note))


def turned(pair: Pair, cosines: sa.Tensor, sines: sa.Tensor) -> Pair:
    """Each pair of features turned by its angle."""
    return pair[0] * cosines - pair[1] * sines, pair[0] * sines + pair[1] * cosines


def scores(queries: Pair, keys: Pair) -> sa.Tensor:
    """The product of queries and keys, of which the first and the second features are given."""
    return queries[0] @ keys[0].T + queries[1] @ keys[1].T


def many(note: sa.Derivation) -> sa.Derivation:
    """All queries and keys at once; a shift of all, and of queries alone."""
    note = note.section("All positions at once").say(
        "Of many queries and keys, let the first and the second features of all pairs be matrices of their own. "
        "A score is the sum of the products of both."
    )
    note = note.extend(C_p, S_p, because="of the angles of queries").extend(C_r, S_r, because="of those of keys")
    queries, keys = named("Q", "'", turned(QUERIES, C_p, S_p)), named("K", "'", turned(KEYS, C_r, S_r))
    Z = sa.let("Z", scores(queries, keys))
    note = note.extend(*queries, because="queries, turned").extend(*keys, because="keys, turned")
    note = note.extend(Z, because="scores")
    lengths = [sa.sum(x[0] ** 2 + x[1] ** 2, axis=-1) for x in (queries, QUERIES)]
    note = note.claim(sa.prove(*lengths), title="Lengths are kept", because="Each pair is turned in its plane.")
    later = named("Q", "''", turned(QUERIES, *of_angles(p + s))), named("K", "''", turned(KEYS, *of_angles(r + s)))
    note = note.say("With two primes: turned by positions that are all shifted by $s$.")
    note = note.extend(*later[0], *later[1])
    note = note.claim(
        sa.prove(scores(*later), Z),
        title="A shift of all positions changes no score",
        because="All distances stay as they are, so no score knows where in its context a text stands.",
    )
    return note.claim(
        sa.prove(scores(later[0], keys), Z),
        title="Queries may be shifted alone",
        holds="distances change, so keys in a cache have to be turned by positions that count from the same place.",
    )


def layouts(note: sa.Derivation) -> sa.Derivation:
    """The two conventions of what a pair is."""
    halves = named("A", "", (Q[:, :m], Q[:, m:])), named("B", "", (K[:, :m], K[:, m:]))
    beside = named("F", "", (Q[:, 0::2], Q[:, 1::2])), named("G", "", (K[:, 0::2], K[:, 1::2]))
    note = note.section("Two layouts").say(
        "A pair is made of features $c$ and $c + m$ in GPT-NeoX and in the Llama of transformers, of $2 c$ and "
        "$2 c + 1$ in RoFormer, GPT-J and Meta's Llama. All of the above holds for both."
    )
    note = note.extend(*halves[0], *halves[1], because="halves").extend(
        *beside[0], *beside[1], because="even and odd features"
    )
    z = [scores(turned(x, C_p, S_p), turned(y, C_r, S_r)) for x, y in (halves, beside)]
    return note.claim(
        sa.prove(*z),
        title="Both layouts give the same scores",
        holds="they do for features that are reordered alike in queries and keys, even ones first: so the columns of "
        "the two projections are reordered, once, where a model is used with the other layout.",
    )


def of_angles(at: sa.Tensor) -> Pair:
    """Cosines and sines of positions times frequencies."""
    return sa.cos(sa.outer(at, omega)), sa.sin(sa.outer(at, omega))


def named(letter: str, primes: str, pair: Pair) -> Pair:
    """The two matrices of a pair under a name."""
    return sa.let(f"{letter}_1{primes}", pair[0]), sa.let(f"{letter}_2{primes}", pair[1])


if __name__ == "__main__":
    print(derivation().text())
