"""Claims about recurrences in documents: lines that are proved by induction, and inductions as people tell them."""

from __future__ import annotations

import pytest
import sympy

import symattn as sa

T, d, e = sa.sizes("T d e")
z, V = sa.tensor("z", T), sa.tensor("V", T, e)
Q, K = sa.tensor("Q", T, d), sa.tensor("K", T, d)


def online(state, read):
    (m, l, n), (s, v) = state, read
    new = sa.maximum(m, s)
    old, weight = sa.exp(m - new), sa.exp(s - new)
    return (new, old * l + weight, old * n + weight * v), None


def linear(S, read):
    q, k, v = read
    S = S + sa.outer(k, v)
    return S, q @ S


S, O = (sa.let(name, x) for name, x in zip("SO", sa.scan(linear, sa.zeros(d, e), (Q, K, V)), strict=True))
CAUSAL = sa.tril(Q @ K.T) @ V
BY = sa.induction(final=K.T @ V, outputs=CAUSAL)


def written(note: sa.Derivation) -> str:
    return note.text(width=88)


def test_a_line_about_a_recurrence_is_proved_by_induction():
    note = sa.Derivation("Linear attention").extend(S, O).extend(sa.eq(O, CAUSAL), because="by induction", by=BY)
    assert [check.how for check in note.verify()] == ["by definition", "by definition", "proved"]
    note = sa.Derivation("Linear attention").extend(sa.let("Y", 2 * O)).then(2 * CAUSAL, by=BY)
    assert [check.how for check in note.verify()][-1] == "proved"
    (_, l, n), _ = sa.scan(online, (0, 0, sa.zeros(e)), (z, V))
    assert not sa.Derivation("Without it").extend(sa.eq(n / l, sa.softmax(z) @ V)).verify().proved


def test_an_induction_of_no_equation_is_refused():
    with pytest.raises(sa.OperandError, match="by= says how equations are proved, and none is given"):
        sa.Derivation("Linear attention").extend(S, by=BY)
    with pytest.raises(sa.OperandError, match="made by sa.induction"):
        sa.Derivation("Linear attention").extend(S).then(K.T @ V, by=3)


def test_a_state_stands_in_the_closed_forms_of_others_by_its_letter():
    """By its name where the user gave one; what nothing is said of has any value."""
    (m, l, n), _ = sa.scan(online, (-sympy.oo, 0, sa.zeros(e)), (z, V))
    m, l, n = sa.let("m", m), sa.let("l", l), sa.let("N", n)
    E = sa.exp(z - sa.max(z))
    known = sa.prove(n / l, sa.softmax(z) @ V, by=sa.induction(final=(sa.max(z), sa.sum(E), E @ V)))
    any_reference = sa.prove(
        n / l,
        sa.softmax(z) @ V,
        by=sa.induction(final=lambda m, z, V: (None, sa.sum(sa.exp(z - m)), sa.exp(z - m) @ V), free=0),
    )
    told = written(sa.Derivation("Online softmax", given=[z, V]).extend(m, l, n).claim(known))
    for line in (
        "lₜ₊₁ ≔ exp(m_t − mₜ₊₁) l_t + exp(zₜ − mₜ₊₁)",
        "N ≔ N_T",
        "m_T = max(z)",
        "l_T = sum(exp(z − m_T))",
        "N / l = Vᵀ exp(z − m_T) / sum(exp(z − m_T))",
    ):
        assert line in told, told
    told = written(sa.Derivation("Online softmax", given=[z, V]).extend(m, l, n).claim(any_reference))
    assert "To be shown: for every T ≥ 1 and whatever m_T is," in told, told
    assert "= max(z)" not in told.partition("To be shown")[2]


def test_an_induction_is_the_proof_that_people_read():
    told = written(sa.Derivation("Linear attention", given=[Q, K, V]).claim(sa.prove(O, CAUSAL, by=BY)))
    assert "Proof by the machine" not in told
    for line in (
        "Proof. By induction on T, the number of steps.",
        "Sₜ₊₁ ≔ S_t + kₜ vₜᵀ    (t = 0, …, T − 1)",
        "Places are counted from 0, and states by the steps before them",
        "S_T = Kᵀ V",
        "o₀ = S_1ᵀ q₀",
        "= K_(:n)ᵀ V_(:n) + kₙ vₙᵀ    by hypothesis",
        "= (tril(Q_(:n + 1) K_(:n + 1)ᵀ) V_(:n + 1))ₙ",
    ):
        assert line in told, told


def test_two_recurrences_go_along_with_each_other():
    n, D = sa.sizes("n D")
    X, W, Pi = sa.tensor("X", n, d), sa.tensor("W", D, d, d), sa.tensor("Pi", n, n, permutation=True)
    Y, Z = (
        sa.let(name, sa.scan(lambda X, W: (sa.softmax(X @ W @ X.T) @ X, None), start, W)[0])
        for name, start in (("Y", X), ("Z", Pi @ X))
    )
    told = written(sa.Derivation("Depth", given=[X, W, Pi]).extend(Y, Z).claim(sa.prove(Z, Pi @ Y)))
    for line in (
        "Z_k = Π Y_k",
        "Z_0 = Π X",
        "= Π Y_0",
        "Zₖ₊₁ = softmax(Π Y_k Wₖ (Π Y_k)ᵀ) (Π Y_k)  by hypothesis",
        "= Π Yₖ₊₁",
    ):
        assert line in told, told


def test_a_recurrence_of_another_start_has_no_letters_of_a_named_one():
    R = sa.tensor("R", d, e)
    other = sa.scan(linear, R, (Q, K, V))[0]
    told = written(sa.Derivation("Two starts", given=[K, V, R]).extend(S).claim(sa.prove(other, R + K.T @ V)))
    assert "S_T = R" not in told, told


def test_what_a_document_names_stands_in_a_proof_by_its_name():
    A = sa.let("A", sa.tril(Q @ K.T))
    told = written(sa.Derivation("Named", given=[Q, K, V]).extend(S, O, A).claim(sa.prove(O, A @ V, by=BY)))
    assert "= (A_(:n + 1) V_(:n + 1))ₙ" in told, told
    assert "so for the first n of each: Q_(:n), K_(:n), V_(:n) and" in told, told


def test_a_sentence_of_the_author_stands_before_the_induction_and_his_steps_in_its_place():
    verdict = sa.prove(S, K.T @ V)
    note = sa.Derivation("Sums", given=[K, V]).extend(S)
    said = written(note.claim(verdict, because="Each token adds a product."))
    assert said.index("Each token adds") < said.index("By induction on T")
    steps = written(note.claim(verdict, proof=[(K.T @ V, "a sum of products")]))
    assert "a sum of products" in steps
    assert "By induction on T" not in steps.partition("Proof by the machine")[0]
