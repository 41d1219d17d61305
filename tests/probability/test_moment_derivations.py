"""How moments are written: the lines of a derivation, with letters and then values, what is assumed, and the check."""

from __future__ import annotations

import re

import pytest
import sympy

import symattn as sa
from symattn.probability.notation import Mean, Variance

from ..shares import one_in
from ..shipped import shipped
from ..typeset import compiled, needs_pdflatex

d, n, T, S, D = sa.sizes("d n T S D")
q, k, x, w = (sa.tensor(name, d) for name in "qkxw")
Q, K = sa.tensor("Q", T, d), sa.tensor("K", S, d)
X, W_q, W_k = sa.tensor("X", T, D), sa.tensor("W_q", D, d), sa.tensor("W_k", D, d)
i, j = sympy.symbols("i j", integer=True, nonnegative=True)
mu, rho = sympy.symbols("mu rho", real=True)
v = sympy.Symbol("v", positive=True)
m, C = sa.tensor("m", d), sa.tensor("C", d, d, symmetric=True)
FAN_IN = sa.iid(variance=1 / D)
SCORES = (X @ W_q) @ (X @ W_k).T
NORMAL = sa.iid("normal")
QUESTIONS = {
    "dot product": (q @ k, {q: sa.iid(), k: sa.iid("laplace")}),
    "named": (sa.let("s", q @ k / sympy.sqrt(d)), {q: sa.iid(mean=mu, variance=v), k: sa.iid(mean=mu)}),
    "pair": (q @ k, {(q, k): sa.iid_pair(correlation=rho)}),
    "square": (q @ q, {q: sa.iid(kurtosis=v)}),
    "entry": ((Q @ K.T)[i, j], {Q: sa.iid(), K: sa.iid()}),
    "weights": (SCORES[i, j], {X: "constant", W_q: FAN_IN, W_k: FAN_IN}),
    "random inputs": (SCORES[i, j], {X: NORMAL, W_q: FAN_IN, W_k: FAN_IN}),
    "sphere": (q @ k, {q: sa.sphere(), k: sa.sphere()}),
    "rows": (q @ w, {q: sa.normal(mean=m, covariance=C), w: "constant"}),
    "exponential": (sa.exp(q @ w), {q: NORMAL, w: "constant"}),
    "fourth degree": ((q @ k) ** 2, {q: NORMAL, k: NORMAL}),
    "a letter that is taken": (q @ k, {q: sa.iid(mean=sympy.Symbol("mu_k", real=True)), k: sa.iid()}),
    "its own letter": (sa.sum(q), {q: sa.iid(mean=sympy.Symbol("mu_q", real=True))}),
    "never random": (sa.sum(q), {q: "constant"}),
    "a name that is taken": (x @ w, {x: sa.iid(), w: sa.iid()}),
}


def asked(name):
    return sa.moments(*QUESTIONS[name])


def lines(found):
    """``left = right`` of each line, without reasons."""
    return [("" if line.left is None else str(line.left), str(line.right)) for line in found.explanation.lines]


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_lines_end_in_mean_and_variance(name):
    found = asked(name)
    ends, head = {}, None
    for line in found.explanation.lines:
        head = head if line.left is None else line.left
        ends[head] = line.right
    quantity = found.explanation.name
    assert (ends[Mean(quantity)], ends[Variance(quantity)]) == (found.mean, found.variance)
    assert all(line.reason for line in found.explanation.lines)


@pytest.mark.parametrize("name", QUESTIONS)
def test_lines_with_letters_are_those_with_values(name):
    """Each chain says one thing: with the values of the letters put in, all its forms are equal."""
    found = asked(name)
    letters = {}
    forms = {}
    head = None
    for line in found.explanation.lines:
        head = head if line.left is None else line.left
        if isinstance(head, Mean):
            forms.setdefault(head, []).append(line.right)
        elif head != found.explanation.name:
            letters[head] = line.right
    x = found.explanation.name
    mean, square, variance = forms[Mean(x)], forms[Mean(x**2)], forms[Variance(x)]
    known = [sympy.expand(form.subs(letters, simultaneous=True)) for form in (*mean, *square)]
    assert len(set(known[:-1])) == 1
    spread = sympy.expand(known[-1] - known[0] ** 2)
    assert all(same(form.subs(letters, simultaneous=True), spread) for form in variance[1:])


def same(a, b):
    """Equality of polynomials in sums, after sums of squares are written alike."""
    return sympy.expand(sympy.expand(a) - sympy.expand(b)) == 0


def test_a_dot_product_in_full():
    assert lines(asked("dot product")) == [
        ("mu_q", "0"),
        ("mu_k", "0"),
        ("sigma_q**2", "1"),
        ("sigma_k**2", "1"),
        ("x", "q @ k"),
        ("", "Sum(k[l]*q[l], (l, 0, d - 1))"),
        ("E[x]", "d*mu_k*mu_q"),
        ("", "0"),
        ("E[x**2]", "d*sigma_k**2*sigma_q**2"),
        ("Var[x]", "E[x**2] - E[x]**2"),
        ("", "d*sigma_k**2*sigma_q**2"),
        ("", "d"),
    ]


def test_assumptions_come_first_and_only_those_that_are_used():
    text = str(sa.moments(sa.sum(q), {q: sa.iid("normal")}).derivation)
    assert text.index("It is assumed that the entries of q") < text.rindex("𝔼[x]")
    assert "cumulant" not in text
    assert "fourth cumulant of q" in str(asked("square").derivation)
    assert "w is not random" in asked("rows").assumptions


def test_nothing_is_assumed_where_nothing_is_random():
    found = asked("never random")
    assert found.assumptions == ("q is not random",)
    assert found.variance == 0
    with pytest.raises(sa.NoRuleError, match="neither skewness nor kurtosis"):
        _ = found.kurtosis


def test_a_letter_with_another_meaning_is_not_used():
    """The mean of q is called mu_k: as a letter that would be the mean of k."""
    found = asked("a letter that is taken")
    assert "mean of q: mu_k" in found.explanation.premises
    assert ("E[x]", "0") in lines(found)
    own = asked("its own letter")
    assert ("E[x]", "d*mu_q") in lines(own)
    assert "mean of q: mu_q" in own.explanation.premises


def test_a_quantity_has_its_own_name_or_a_free_letter():
    assert asked("named").explanation.name == sympy.Symbol("s")
    assert asked("a name that is taken").explanation.name == sympy.Symbol("y")


def test_two_quantities_of_one_name_are_numbered_in_a_derivation():
    law = {q: sa.iid(), k: sa.iid()}
    note = sa.Derivation("A").extend(*(sa.moments(sa.let("s", c * (q @ k)), law) for c in (2, 3)))
    text = note.text()
    assert "Var[s₁]" in text
    assert "Var[s₂]" in text
    assert r"\operatorname{Var}[s_{2}]" in note.latex()
    assert text.count("multiplied out.") == 1, "the way is told once"


def test_text_lists_what_is_known():
    assert str(sa.moments(q @ k, {q: NORMAL, k: NORMAL})).splitlines()[:5] == [
        "mean: 0", "variance: d", "skewness: 0", "kurtosis: 3 + 6/d", "assumed:",
    ]  # fmt: skip
    given = sa.moments(sa.sum(q), {q: sa.iid(kurtosis=v)})
    assert "fourth cumulant of q: v - 3" in str(given), "what kurtosis uses is assumed as well"
    assert "fourth cumulant of q: v - 3" not in given.assumptions
    assert "skewness" not in str(given)
    assert repr(given) == "<Moments of sum(q): mean 0, variance d>"


# --- in a derivation ---


@pytest.mark.parametrize("name", one_in(3, QUESTIONS))
def test_a_calculation_is_verified_by_doing_it_again(name):
    report = asked(name).derivation.verify()
    assert str(report) == "calculation 1: computed again, exactly"
    assert report.proved


@pytest.mark.parametrize("attribute", ["mean", "variance"])
def test_a_wrong_result_is_told(attribute):
    found = asked("dot product")
    setattr(found, attribute, getattr(found, attribute) + 1)
    with pytest.raises(sa.EvaluationError, match="calculation 1 comes out otherwise"):
        found.derivation.verify()


def test_a_wrong_line_is_told():
    found = asked("dot product")
    *rest, last = found.explanation.lines
    found.explanation = found.explanation._replace(lines=(*rest, last._replace(right=last.right + 1)))
    with pytest.raises(sa.EvaluationError, match="calculation 1 comes out otherwise"):
        found.derivation.verify()


def test_calculations_stand_between_other_steps_and_are_numbered_apart():
    law = {q: sa.iid(), k: sa.iid()}
    note = sa.Derivation("A", given=[q, k]).extend(sa.let("s", q @ k), sa.moments(q @ k, law))
    note = note.extend(sa.prove(q @ k, k @ q), sa.moments(2 * (q @ k), law))
    assert [check.name for check in note.verify()] == ["s", "calculation 1", "claim 1", "calculation 2"]
    assert [type(step).__name__ for step in note.steps] == ["Line", "Calculation", "Statement", "Calculation"]
    with pytest.raises(sa.OperandError, match="no line to continue"):
        note.then(q @ k)


# --- LaTeX ---


@pytest.mark.parametrize("style", ["matrix", "index"])
@pytest.mark.tex
@needs_pdflatex
def test_all_of_them_compile(style, tmp_path):
    found = [asked(name) for name in QUESTIONS]
    body = "\n\n".join([*(x.derivation.latex(style=style) for x in found), *(x.latex() for x in found)])
    compiled(body, tmp_path)


def test_latex_writes_entries_in_index_style_and_the_quantity_in_matrix_style():
    latex = asked("dot product").derivation.latex()
    assert r"x &:= q^{\top} k" in latex
    assert r"&= \sum_{l = 0}^{d - 1} q_{l} k_{l} &&" in latex
    assert r"\operatorname{Var}[x] &= \mathbb{E}[x^{2}] - \mathbb{E}[x]^{2}" in latex
    assert r"\sigma_{q}^{2} &= 1 && \text{variance of $q$}" in latex
    assert r"\mathrm{q}" in asked("dot product").derivation.latex(names={q: r"\mathrm{q}"})


def test_letters_of_sums_do_not_meet_the_indices_of_an_entry():
    l = sympy.Symbol("k", integer=True, nonnegative=True)
    latex = sa.moments(SCORES[l, j], QUESTIONS["weights"][1]).derivation.latex()
    assert re.search(r"\\sum_\{l = 0\}\^\{D - 1\} X_\{k l\}\^\{2\}", latex)


# --- the derivations that come with symattn ---


def test_the_variance_of_a_scaled_dot_product():
    calculation, scaled, cases, general = shipped("scaled_dot_product_variance").steps
    found = [calculation.moments, scaled.moments, general.moments, *cases.moments[1:]]
    h = sa.sizes("h")
    a, b = sympy.symbols("mu_q mu_k", real=True)
    u, c = (s**2 for s in sympy.symbols("sigma_q sigma_k", positive=True))
    results = [(x.mean, x.variance) for x in found[:6]]
    wanted = [
        (0, d),
        (0, 1),
        (sympy.sqrt(d) * a * b, a**2 * c + b**2 * u + u * c),
        (d * rho, d * (1 + rho**2)),
        (rho, (1 + rho**2) / d),
        (0, 1 / h),
    ]
    assert all(same(x, y) for got, want in zip(results, wanted, strict=True) for x, y in zip(got, want, strict=True))
    assert found[6].assumptions[0] == "x is not random"


def test_saturation_is_proved_with_a_gap_that_is_given():
    verdicts = [step.verdict for step in shipped("softmax_saturation").steps if hasattr(step, "verdict")]
    assert all(verdicts)
    assert [str(v.claim) for v in verdicts][2:4] == [
        "sum(E) * r[0] <= m * exp(-beta*gamma)",
        "sum(E) * r[0]**2 <= m * exp(-beta*gamma)",
    ]
    assert verdicts[2].proof.hypotheses == ("zeros(m) <= x",)
    assert str(verdicts[1].claim) == "abs(J) <= broadcast_to(1/4, (n, n))"


def test_the_bound_of_saturation_is_the_one_of_the_weights():
    """1 - p_max of softmax(beta z) is what the claim bounds, with m = n - 1 other logits."""
    c, y = sa.tensor("c"), sa.tensor("x", n)
    beta, gamma = sympy.symbols("beta gamma", positive=True)
    p = sa.softmax(beta * sa.concat([c[None], c - gamma - y], axis=0))
    assert sa.prove(1 - p[0], sa.sum(sa.exp(-beta * (gamma + y))) * p[0])


@pytest.mark.parametrize(
    ("quantity", "first"),
    [
        (q @ k, r"x &:= \mathbf{q}^{\top} k"),
        (sa.let("s", q @ k), r"s &:= \mathbf{q}^{\top} k"),
        (sa.tensor("t"), r"\mathbb{E}[t] &= "),
    ],
)
def test_latex_says_what_the_quantity_is_and_its_sentences_follow_the_names(quantity, first):
    law = {x: sa.iid() for x in quantity.tensors}
    found = sa.moments(quantity, law)
    shown = sa.latex(found, names={q: r"\mathbf{q}"} if q in law else None)
    assert shown.splitlines()[1].strip().startswith(first)
    if q in law:
        assert r"the entries of $\mathbf{q}$ are independent" in shown
        with pytest.raises(sa.NamingError, match="would both print as"):
            sa.latex(found, names={k: str(found.explanation.name)})
