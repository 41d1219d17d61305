"""What a verdict says: the claim, what was given, and what the names in it stand for, in print, repr and LaTeX."""

from __future__ import annotations

import pickle
import re

import pytest
import sympy

import symattn as sa
from symattn.core.stated import Condition
from symattn.errors import OperandError

n, m, d = sa.sizes("n m d")
A, x = sa.tensor("A", n, n), sa.tensor("x", n)
X, Z, Y = sa.tensor("X", n, d), sa.tensor("Z", n, m), sa.tensor("Y", n, m)
lam = sympy.Symbol("lam", positive=True)


@pytest.mark.parametrize(
    ("claim", "given", "text", "tex"),
    [
        (sa.le(sa.softmax(Z) - lam * sa.softmax(Y), 1), sa.le(0, lam), "0 <= lam", r"0 \le \mathrm{lam}"),
        (sa.eq(A.T @ A @ x, x), sa.tensor("A", n, n, orthogonal=True), "A[n, n] is orthogonal", r"n}$ is orthogonal"),
        (sa.eq(sa.sum(x), m * sa.ones()), sympy.Eq(n, m), "n = m", "n = m"),
        (sa.eq(A @ x, x), sympy.Mod(n, 2) > 0, "Mod(n, 2) > 0", r"n \bmod 2 > 0"),
        (sa.lt(x + x, 0), sa.lt(x, 0), "x < zeros(n)", r"x < 0_{n}"),
    ],
    ids=["bound", "property", "sizes", "parity", "sign"],
)
def test_a_verdict_states_what_was_given(claim, given, text, tex):
    verdict = sa.prove(claim, given=[given])
    assert f"\ngiven {text}" in str(verdict)
    assert repr(verdict).endswith(f" given {text}>")
    assert tex in verdict.latex()
    if verdict:
        assert text in verdict.proof.hypotheses


def test_several_hypotheses_are_stated_in_order():
    verdict = sa.prove(sa.lt(x, 3), given=[sa.le(x, 1), n >= 2, sympy.Eq(m, d)])
    assert str(verdict) == "proved: x < broadcast_to(3, (n,))\ngiven x <= ones(n); n >= 2; m = d"


def test_nothing_is_said_where_nothing_was_given():
    assert "given" not in str(sa.prove(x, x + 1)) + repr(sa.prove(x, x))


def test_intermediates_are_told_apart_and_defined():
    verdict = sa.prove(*(sa.attention.scaled_dot_product(X, X, X, scale=s) for s in (2, 1)))
    claim, definitions, *_ = str(verdict).splitlines()
    assert claim == "refuted: P_1 @ X = P_2 @ X"
    assert definitions == "with Z_1 = 2 * (X @ X.T); P_1 = softmax(Z_1); Z_2 = X @ X.T; P_2 = softmax(Z_2)"
    assert r"$P_{1} X = P_{2} X$ fails, where $Z_{1} = 2 X X^{\top}$;" in verdict.latex()
    assert repr(verdict) == "<refuted: P_1 @ X = P_2 @ X>"


def test_one_quantity_has_one_name():
    O = sa.attention.scaled_dot_product(X, X, X, scale=2)
    proof = sa.prove(O, O + X - X).proof
    assert "Notation: Z = 2 * (X @ X.T); P = softmax(Z); O = P @ X" in proof.text()
    assert r"\textbf{Notation.} $Z = 2 X X^{\top}$;" in proof.latex()


@pytest.mark.parametrize(
    "claim",
    [
        lambda P: sa.eq(P @ X[:1], 2 * P @ X[:1]),
        lambda P: sa.lt(2, P + P * P),
        lambda P: sa.independent(sa.cumsum(P, axis=0), X),
        lambda P: sa.eq(sa.gradient(sa.sum(P**2), [X])[X], X),
    ],
    ids=["product", "bound", "independence", "gradient"],
)
def test_a_claim_defines_what_it_mentions(claim):
    text = str(sa.prove(claim(sa.let("P", sa.softmax(X @ X[0])[:, None]))))
    assert re.search(r"^with .*\bP = (softmax\(X @ X\[0, :\]\)|P_1)\[:, None\]", text, re.MULTILINE)


def test_facts_and_the_claim_share_their_names():
    P, R = sa.let("P", sa.softmax(Z)), sa.let("P", sa.softmax(Y))
    verdict = sa.prove(sa.le(P + R, 2), given=[sa.le(P * R, 1)])
    assert "given P_1 * P_2 <= ones(n, m)\nwith P_1 = softmax(Z); P_2 = softmax(Y)" in str(verdict)


def test_many_definitions_are_counted():
    y = x
    for k in range(30):
        y = sa.let(f"h_{k}", sa.tanh(y + k))
    assert "; and 17 intermediates more" in str(sa.prove(y, x))


# --- contradictions, and examples that are not found ---


@pytest.mark.parametrize(
    "given",
    [
        [sa.eq(x, sa.zeros(n)), sa.eq(x, sa.ones(n))],
        [sa.lt(x, 0), sa.lt(0, x)],
        [sa.eq(sa.exp(x), 0)],
        [sa.eq(sa.softmax(x), 2)],
        [sa.le(x, -2), sa.eq(sa.sum(x * x), 1)],
        [sa.le(sa.exp(x) + 1, sa.tanh(A @ x))],
    ],
    ids=["two values", "two signs", "exponential", "softmax", "norm", "bound"],
)
def test_claims_that_contradict_each_other(given):
    y = sa.tensor("y", n)
    with pytest.raises(OperandError, match=r"what is given contradicts itself: .* does not hold, since "):
        sa.prove(0 * y, sa.ones(n), given=given)


def test_a_proof_says_that_no_example_of_what_is_given_was_found():
    given = sa.eq(sa.sum(x * x) + sa.sum(A * A), sympy.Rational(7, 1000003))
    verdict = sa.prove(A @ x + x, x + A @ x, given=[given, sa.lt(0, sa.sum(x))])
    assert verdict.status == "proved"
    assert str(verdict).endswith("no example of what is given was found")


def test_where_examples_are_found_nothing_is_said():
    assert "no example" not in str(sa.prove(A @ x + x, x + A @ x, given=[sa.lt(0, sa.sum(x))]))
    assert "no example" not in str(sa.prove(A @ x + x, x + A @ x))


# --- what the parts of the engine raise ---


@pytest.mark.parametrize(
    ("left", "reason"),
    [
        (x / (x / 2 + x / 2 - x), "a division by zero"),
        (1 / (x - x), "a division by zero"),
        (sa.log(x - x), "the logarithm of zero"),
        (sa.rsqrt(x + x - 2 * x), "a division by zero"),
    ],
    ids=str,
)
def test_a_side_without_values_is_an_answer(left, reason):
    verdict = sa.prove(left, x)
    assert verdict.status == "unknown"
    assert reason in str(verdict)


@pytest.mark.parametrize(
    "claim",
    [
        sa.independent(A @ x, Z),
        sa.independent(sa.ones(n), Z),
        sa.independent(x, Z, when=lambda out, inp: inp[0] > out[0]),
        sa.independent(sa.softmax(A), X, when=lambda out, inp: sympy.Eq(inp[0], 0)),
    ],
    ids=str,
)
def test_nothing_depends_on_a_variable_that_does_not_occur(claim):
    verdict = sa.prove(claim)
    assert verdict.status == "proved"
    assert verdict.proof.check()
    assert "does not depend on" in verdict.proof.text()


LARGE = sympy.factorial(2004)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1 / LARGE * sa.ones(), 1 / sympy.factorial(2006) * sa.ones()),
        (LARGE * x, 2 * LARGE * x),
        (10**5000 * sa.ones(), 10**5001 * sa.ones()),
        (x / 10**5000, x / 10**5001),
        (sa.exp(x) + x**2 * LARGE, x),
    ],
    ids=range(5),
)
def test_numbers_that_are_too_long_to_be_written_are_rounded(left, right):
    verdict = sa.prove(left, right)
    assert verdict.status == "refuted"
    assert re.search(r"\(about \d\.\d{5}e-?5\d{3}\)", str(verdict))
    assert re.search(r"\(\\approx \d\.\d{5} \\cdot 10\^\{-?5\d{3}\}", verdict.latex())


def test_hypotheses_are_mathematics_in_latex():
    """Of a proved claim, a refuted one, and one of independence; names with a subscript take no second one."""
    W, Pi = sa.tensor("W_q", n, d), sa.tensor("Pi'", n, n, permutation=True)
    proved = sa.prove(sa.softmax(Pi @ W), Pi @ sa.softmax(W), given=[n >= 2]).latex()
    assert r"\textbf{Hypotheses.} $\Pi' \in \mathbb{R}^{n \times n}$ is a permutation; $n \ge 2$." in proved
    positive = sa.tensor("W_q", n, d, positive=True)
    assert r"given $W_{q} \in \mathbb{R}^{n \times d}$ is positive." in sa.prove(W, 2 * W, given=[positive]).latex()
    c = sa.tensor("c", integer=True)
    assert r"\textbf{Hypotheses.} $c \in \mathbb{R}$ is integer." in sa.prove(sa.floor(c) + 0 * c, c).latex()
    later = sa.independent(sa.cumsum(W, axis=0), W, when=lambda out, inp: out[0] < inp[0])
    tex = sa.prove(later).latex()
    assert r"_{i j}$ is independent of $(W_{q})_{k l}$ where $i < k$" in tex
    assert "W_{q}_" not in tex
    assert "W\\_q, axis=-2))[i" not in tex


def test_a_proof_in_latex_shows_its_example():
    tex = sa.prove(x / x, sa.ones(n)).latex()
    assert r"\textbf{Example.} $n = 2$, $x = \begin{bmatrix} 1 & 1 \end{bmatrix}^{\top}$." in tex
    phi = sa.unknown("phi", x) / x
    assert r"$\phi(x) = " in sa.prove(phi * x, sa.unknown("phi", x)).latex().split("Example")[1]
    assert "Example" not in sa.prove(x + x, 2 * x).latex()


s = sympy.Symbol("s", integer=True, nonnegative=True)
B, W = sa.tensor("B_1", n, n), sa.tensor("W", n, m)


@pytest.mark.parametrize(
    ("left", "right", "condition"),
    [
        (sa.exp(sa.log(W)), W, "$W > 0$"),
        (W / W, sa.ones(n, m), r"$W \neq 0$"),
        (sa.sqrt(W) ** 2, W, r"$W \ge 0$"),
        ((W @ W.T) / (W @ W.T), sa.ones(n, n), r"$W W^{\top} \neq 0$"),
        (B @ sa.inv(B), sa.eye(n), "$B_{1}$ is invertible"),
        (W[s : s + 2], W[s : s + 2], r"$s + 2 \le n$"),
        (sa.tensor("U", n / m), sa.tensor("U", n / m), r"$m \mid n$"),
    ],
)
def test_side_conditions_are_mathematics_in_latex(left, right, condition):
    proof = sa.prove(left, right).proof
    assert f"\\textbf{{Side conditions.}} {condition}" in proof.latex()
    assert pickle.loads(pickle.dumps(proof.side_conditions)) == proof.side_conditions


def test_signs_of_comparison_in_a_sentence_are_mathematics():
    assert sa.latex(sa.Derivation("a <= b, c != d, e >= f < g")).startswith(
        r"\section*{a $\le$ b, c $\neq$ d, e $\ge$ f $<$ g}"
    )


def test_a_condition_speaks_of_what_the_claim_shows():
    y = sa.tensor("y", n)
    a, b = sa.let("u", x + y), sa.let("u", x - y)
    verdict = sa.prove(1 / a + 1 / b, (a + b) / (a * b))
    assert "where u_1 != 0; u_2 != 0" in str(verdict)
    assert r"$u_{1} \neq 0$; $u_{2} \neq 0$" in verdict.latex()
    z = x
    for k in range(16):
        z = sa.let(f"h{k}", sa.tanh(z) + k)
    w = sa.let("w", z - y)
    long = str(sa.prove(x / w * 2, 2 * (x / w)))
    assert "where w != 0" in long
    assert "; w = h15 - y; and 5 intermediates more\n" in long


def test_a_tangent_keeps_the_number_of_its_name_behind_the_mark():
    y = sa.tensor("y", n)
    a = sa.let("U_1", sa.tanh(x * y))
    tangent = sa.jvp(a * sa.exp(a), {x: y})
    assert "Udot_1" in str(tangent)
    assert r"\dot{U}_{1}" in sa.latex(tangent)


def test_hypotheses_are_text_that_knows_what_it_says():
    Pi, given = sa.tensor("Pi", n, n, permutation=True), [sa.le(0, x), sympy.Eq(m, d)]
    proof = sa.prove(Pi @ x + x, x + Pi @ x, given=given).proof
    assert proof.hypotheses == ("Pi[n, n] is a permutation", "zeros(n) <= x", "m = d")
    declared, claim, relation = (stated.formula for stated in proof.hypotheses)
    assert declared == Condition(Pi, "is a permutation")
    assert (claim, relation) == tuple(given)
    assert pickle.loads(pickle.dumps(proof.hypotheses)) == proof.hypotheses
    assert [stated.formula for stated in sa.prove(x, 2 * x, given=given).wording.given] == given


def test_what_is_given_and_assumed_follows_the_names_of_a_document():
    y = sa.tensor("y", n)
    verdict = sa.prove(x * y / x, y, given=[sa.le(y, 1)])
    tex = sa.Derivation("A").extend(verdict).latex(names={x: r"\xi", y: r"\upsilon"})
    assert r"$\upsilon \le \mathbf{1}_{n}$; $\xi \neq 0$" in tex


@pytest.mark.parametrize(
    ("claim", "shown"),
    [
        (sa.eq(sa.sum(X @ X.T, axis=1) * sa.max(x), sa.sum(X.T.T @ X.T, axis=-1) * sa.max(x)), r"\zeta"),
        (sa.eq(sa.sum(sa.exp(X) * sa.exp(X), axis=1), sa.sum(sa.exp(2 * X), axis=1)), r"\zeta_{i k}"),
        (sa.le(sa.max(X, axis=-1), sa.logsumexp(X)), r"\zeta_{i k} \le"),
        (sa.independent(X[:, :1] + X, X, when=lambda out, inp: inp[0] > out[0]), r"it reads $\zeta_{i"),
        (sa.eq(X, 2 * X), r"\zeta = \begin{bmatrix}"),
    ],
    ids=["steps", "entries", "bounds", "dependence", "counterexample"],
)
def test_a_proof_follows_the_names_of_a_document(claim, shown):
    tex = sa.Derivation("A").extend(sa.prove(claim)).latex(names={X: r"\zeta"})
    assert shown in tex
    assert "X" not in tex
