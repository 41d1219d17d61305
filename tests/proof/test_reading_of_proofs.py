"""Proofs are read by the names of their claim, and each step says what it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
import sympy

import symattn as sa
from symattn.proof.equality.rewriting import RewritingProof

from ..claims_corpus import CLAIMS

T, S, d, e, n = sa.sizes("T S d e n")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
P = sa.let("P", sa.softmax(Z))
O = sa.let("O", P @ V)
X, PI = sa.tensor("X", n, d), sa.tensor("Pi", n, n, permutation=True)
W = {name: sa.tensor(f"W_{name}", d, e) for name in "qkv"}


def attention(x: sa.Tensor) -> sa.Tensor:
    q, k, v = (sa.let(name.upper(), x @ w) for name, w in W.items())
    return sa.let("O", sa.let("P", sa.softmax(sa.let("Z", q @ k.T / sympy.sqrt(e)))) @ v)


def steps(verdict: sa.Verdict) -> list[str]:
    """The steps of a proof without numbers and reasons."""
    rows = (line.split("  # ")[0] for line in verdict.proof.argument.text().splitlines() if line.startswith("  ("))
    return [row.partition(") ")[2] for row in rows]


def test_intermediates_stay_named_in_a_proof_of_equivariance():
    verdict = sa.prove(attention(PI @ X), PI @ attention(X))
    found, proof = steps(verdict), verdict.proof
    assert found[0] == "Q_1 = Pi @ X @ W_q = Pi @ Q_2"
    assert "softmax(Z_2 @ Pi.T) = P_2 @ Pi.T" in found
    assert proof.argument.text().endswith("Both sides are Pi @ O_2.")
    assert "softmax(X @ W_q" not in proof.text()
    assert proof.check()


def test_rows_of_the_gradient_of_logits_sum_to_0():
    dZ = sa.gradient(O, [Q])["dZ"]
    assert steps(sa.prove(sa.sum(dZ, axis=1), sa.zeros(T))) == [
        "dZ = P * (dP - rowsum(P * dP)) = P * dP - P * rowsum(P * dP)",
        "sum(P * dP - P * rowsum(P * dP), axis=-1) = sum(P * dP, axis=-1) + sum(-P * rowsum(P * dP), axis=-1)",
        "sum(-P * rowsum(P * dP), axis=-1) = sum(-P, axis=-1) * rowsum(P * dP)[:, 0]",
        "sum(-P, axis=-1) = -sum(P, axis=-1)",
        "sum(P, axis=-1) = ones(T)",
        "rowsum(P * dP)[:, 0] = sum(P * dP, axis=-1)",
        "sum(P * dP, axis=-1) - sum(P * dP, axis=-1) = zeros(T)",
    ]


def test_a_step_to_what_has_a_name_says_what_that_is():
    c = sa.tensor("c", T)
    assert steps(sa.prove(sa.softmax(Z + c[:, None]) @ V, O)) == ["softmax(Z + c[:, None]) = softmax(Z) = P"]
    assert steps(sa.prove((Q / sympy.sqrt(d)) @ K.T @ V, Z @ V))[-1].endswith("= Q @ K.T / sqrt(d) = Z")


def test_a_step_that_latex_has_one_spelling_of_is_left_out_there():
    dZ = sa.gradient(O, [Q])["dZ"]
    proof = sa.prove(sa.sum(dZ, axis=1), sa.zeros(T)).proof
    assert proof.latex().count(r"\item ") == len(proof.argument.reading.steps) - 1


def test_steps_that_only_regroup_are_told_where_nothing_else_is():
    a, b, c = (sa.tensor(name, n, n) for name in "ABC")
    assert steps(sa.prove(a @ (b @ c), a @ b @ c)) == ["A @ (B @ C) = A @ B @ C"]
    product = sa.let("M", a @ b)
    verdict = sa.prove((product @ c).T, c.T @ (b.T @ a.T))
    assert steps(verdict)
    assert verdict.proof.check()


def test_a_long_proof_says_that_steps_were_left_out_and_is_checked_whole():
    argument = sa.prove(attention(PI @ X), PI @ attention(X)).proof.argument
    assert "only regroup, reorder or transpose" in argument.text()
    assert len(argument.reading.steps) < len(argument.lemmas)
    assert [step.number for step in argument.reading.steps] == list(range(1, len(argument.reading.steps) + 1))


def reasons(verdict: sa.Verdict) -> list[str]:
    rows = (line.split("  # ") for line in verdict.proof.argument.text().splitlines() if line.startswith("  ("))
    return [row[1] for row in rows]


def test_a_reason_names_the_operation_and_the_permutation():
    psi = sa.tensor("Psi", n, n, permutation=True)
    A = sa.tensor("A", n, n)
    assert reasons(sa.prove(sa.softmax(PI @ X), PI @ sa.softmax(X))) == [
        "softmax commutes with a reordering of rows by Pi."
    ]
    assert reasons(sa.prove(sa.exp(A @ psi), sa.exp(A) @ psi)) == [
        "exp works entry by entry, and so it commutes with a reordering of columns by Psi.T."
    ]
    assert reasons(sa.prove(sa.sum(PI @ X, axis=0), sa.sum(X, axis=0))) == [
        "A sum over rows does not depend on their order."
    ]
    assert reasons(sa.prove(2 * (PI @ X), PI @ (2 * X)))[-1].startswith("A scalar factor commutes")
    assert r"commutes with a reordering of rows by $\Pi$." in sa.prove(sa.softmax(PI @ X), PI @ sa.softmax(X)).latex()


def test_terms_that_cancel_are_not_only_reordered():
    a, b = sa.tensor("a", n), sa.tensor("b", n)
    assert reasons(sa.prove(a + b - a, b))[-1] == "Equal terms cancel."
    assert reasons(sa.prove(b + a, a + b)) == ["The order of terms does not matter."]
    assert reasons(sa.prove(a + a + b, 2 * a + b))[0] == "Like terms are added."


@pytest.mark.slow
def test_no_sentence_is_the_reason_of_most_steps():
    """Over the true claims of the corpus that are proved by rewriting."""
    said: Counter[str] = Counter()
    for build in CLAIMS.values():
        case = build()
        proof = sa.prove(case.left, case.right, case.given).proof if case.true else None
        if proof is not None and isinstance(proof.argument, RewritingProof):
            said.update("".join(map(str, step.why)) for step in proof.argument.reading.steps)
    assert said.total() > 500
    assert max(said.values()) < said.total() / 5


# --- bounds ---


def links(claim: sa.Claim, given: Sequence[sa.Claim] = ()) -> list[str]:
    """The lines of a proof by bounds, without the conclusion."""
    return sa.prove(claim, given=given).proof.argument.text().splitlines()[:-1]


def test_a_proof_by_bounds_prints_its_chain():
    assert links(sa.le(sa.max(Z, axis=-1), sa.logsumexp(Z))) == [
        "max(Z, axis=-1)[i] = Z[i, k]: at an index at which it is attained",
        "Z[i, k] <= logsumexp(Z)[i]: the logarithm of a sum of exponentials is at least each of the exponents",
    ]
    x, y, z = (sa.tensor(name, n) for name in "xyz")
    assert links(sa.lt(x, z), [sa.le(x, y), sa.lt(y, z)]) == ["x[i] <= y[i]: given", "y[i] < z[i]: given"]
    assert "x[i]**2 - 2*x[i]*y[i] + y[i]**2 = (x[i] - y[i])**2: as a product" in links(sa.le(2 * x * y, x**2 + y**2))
    assert "where x[i] <= 0, x[i] <= 0: in this case" in links(sa.le(x, sa.relu(x)))
    assert links(sa.lt(sa.exp(x), sa.exp(y)), [sa.lt(x, y)])[-1] == "exp(x[i]) < exp(y[i]): exp is strictly increasing"


def test_a_chain_is_mathematics_in_latex():
    tex = sa.prove(sa.le(sa.max(Z, axis=-1), sa.logsumexp(Z))).latex()
    assert r"= Z_{i k}$: at an index at which it is attained" in tex
    assert r"$Z_{i k} \le \operatorname{rowlogsumexp}(Z)_{i}$: the logarithm of a sum" in tex


def test_what_the_bounds_of_a_tensor_say_is_not_said_again():
    rows = sa.sum(P, axis=-1)
    assert links(sa.le(rows, 1)) == [
        "0 < P <= 1: the rows of softmax are positive probabilities",
        "sum(P, axis=-1) = 1: each term of the sum, or weights that sum to 1",
    ]


# --- proofs by entries ---


def test_a_proof_by_entries_names_what_the_claim_names_and_shows_the_step():
    g = sa.gradient(O, [Q])
    dO = g.cotangent
    by_hand = (P * (dO @ V.T - sa.sum(O * dO, axis=1, keepdims=True))) @ K / sympy.sqrt(d)
    lines = sa.prove(g[Q], by_hand).proof.argument.text().splitlines()
    assert lines[1:] == [
        "  left[i, j] = sum_k (K[k, j]*P[i, k]*dP[i, k]/sqrt(d))"
        " - sum_k sum_l (K[k, j]*P[i, k]*P[i, l]*dP[i, l]/sqrt(d))",
        "  right[i, j] = sum_k (K[k, j]*P[i, k]*dP[i, k]/sqrt(d))"
        " - sum_k sum_l sum_m (K[k, j]*P[i, k]*P[i, m]*V[m, l]*dO[i, l]/sqrt(d))",
        "  with dP written out, both are sum_k sum_l (K[k, j]*P[i, k]*V[k, l]*dO[i, l]/sqrt(d))"
        " - sum_k sum_l sum_m (K[k, j]*P[i, k]*P[i, m]*V[m, l]*dO[i, l]/sqrt(d))",
        "  where dP[i, j] = sum_k (V[j, k]*dO[i, k])",
    ]


def test_what_the_claim_has_no_name_for_is_said_to_be_an_entry():
    R = sa.tensor("R", d, d, orthogonal=True)
    eps = sympy.Symbol("epsilon", positive=True)

    def norm(x: sa.Tensor) -> sa.Tensor:
        return x / sa.sqrt(sa.mean(x**2, axis=-1)[:, None] + eps)

    proof = sa.prove(norm(X @ R), norm(X) @ R).proof
    assert "with t_1 written out, the left becomes the right" in proof.text()
    assert "in it d*epsilon + sum_k (t_1[i, k]**2) = d*epsilon + sum_k (X[i, k]**2)" in proof.text()
    assert "where t_1[i, j] = (X @ R)[i, j] = sum_k (R[k, j]*X[i, k])" in proof.text()
    assert "With $t_{1}$ written out, the left becomes the right." in proof.latex()
    assert proof.text().count("> 0: a sum of positive terms") == 1  # in one spelling
    assert proof.argument.rules[0] == "R is orthogonal"
    assert r"\item $R$ is orthogonal" in proof.latex()


def test_sides_that_are_one_sum_are_written_in_one_way():
    g = sa.gradient(O, [Q])
    text = sa.prove(sa.sum(P * g["dP"], axis=1), sa.sum(O * g.cotangent, axis=1)).proof.text()
    left, right = (line.split(" = ")[1] for line in text.splitlines() if line.startswith("  "))
    assert left == right == "sum_k sum_l (P[i, k]*V[k, l]*dO[i, l])"


def test_reading_a_proof_changes_nothing_that_is_checked():
    R = sa.tensor("R", d, d, orthogonal=True)
    proof = sa.prove(sa.sum((X @ R) ** 2, axis=1), sa.sum(X**2, axis=1)).proof
    used = proof.argument.rules
    assert (proof.text(), proof.latex()) == (proof.text(), proof.latex())
    assert proof.argument.rules == used
    assert proof.check()


def test_what_stays_open_is_mathematics_in_latex():
    verdict = sa.prove(sa.max(sa.cumsum(P * P, axis=0), axis=0), sa.sum(P * P, axis=0))
    assert verdict.forms == ("max_k(sum_l (P[l, i]**2*[k - l >= 0]))", "sum_k (P[k, i]**2)")
    tex = verdict.latex()
    assert tex.startswith("{\\sloppy\n\\textbf{Unknown.} $")
    assert r"\text{right} &= \sum_{k}" in tex
    assert r"\_" not in tex


# --- points, and what is too wide for a line ---


def test_a_point_is_mathematics_in_latex():
    x = sa.tensor("x", n)
    rows = sa.unknown("phi", X, rowwise=True)
    tex = sa.prove(rows @ W["q"], rows @ W["k"]).latex()
    assert r"\phi(x)_{i} = (i + 1) (" in tex
    assert r"\sum_{j} (j + 1) x_{j}" in tex
    assert "->" not in tex
    value = sa.prove(sa.exp(x), sa.exp(x) + sa.ones(n) * sympy.Symbol("e", positive=True)).counterexample
    assert "e^{" not in value.latex().replace(r"\mathrm{e}^{", "")


def test_what_is_too_wide_for_a_line_is_displayed():
    long = sum((sa.tanh(X @ W[name]) @ sa.exp(W[name].T) for name in "qkv"), X) + 2 * sa.cos(X) + sa.sin(X) + X
    tex = sa.prove(long + X - X, long).latex()
    assert r"\textbf{Claim.} \begin{align*}" in tex
    named = sa.let("L", long)
    tex = sa.prove(named * named, named**2).latex()
    assert "\\textbf{Notation.}\n\\begin{align*}" in tex


def test_a_large_example_is_displayed_and_a_small_one_ends_a_sentence():
    A, B = sa.tensor("A", "h n n", orthogonal=True), sa.tensor("B", "h n n")
    C = sa.tensor("C", "h n n")
    tex = sa.prove(A.mT @ (A @ B) + C, B + C).latex()
    assert "\\textbf{Example.} $h = 2$, $n = 2$:\n\\begin{gather*}\n" in tex
    x = sa.tensor("x", n)
    assert r"$x = \begin{bmatrix} 1 & 1 \end{bmatrix}^{\top}$." in sa.prove(x / x, sa.ones(n)).latex()
