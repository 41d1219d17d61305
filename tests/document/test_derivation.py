"""Derivations: what they print, that they compile, what is proved, and that a wrong step is told apart."""

from __future__ import annotations

import re

import pytest
import sympy

import symattn as sa
from symattn.document import verification
from symattn.document.parts import Cases, steps
from symattn.proof.equality import gradients
from symattn.proof.verdict import Unknown

from ..shares import one_in
from ..shipped import FILES, shipped
from ..typeset import compiled, needs_pdflatex

CLAIMED = ("claim", "proposition", "lemma", "theorem", "corollary")
GRADIENTS = {"dQ", "dK", "dV", "dc", "dZ", "dP"}


@pytest.fixture
def without_proofs(monkeypatch):
    """An engine that knows nothing, so that only numbers are left."""

    def unknown(*asked, **options):  # two sides, or a claim
        return Unknown(sa.eq(*asked) if len(asked) == 2 else asked[0], "nothing is known")

    monkeypatch.setattr(verification, "prove", unknown)
    monkeypatch.setattr(gradients, "is_proved", lambda gradient, budget: False)


@pytest.fixture
def attention():
    Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    return Q, K, V, sa.softmax(Q @ K.T / sympy.sqrt(sa.sizes("d"))) @ V


# --- the files ---


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_derivation_file_is_short_and_uses_public_names_only(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 140
    assert "._" not in text
    imports = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert set(imports) <= {"from __future__ import annotations", "import sympy", "import symattn as sa"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
@pytest.mark.tex
@needs_pdflatex
def test_the_latex_compiles_in_a_minimal_article(path, tmp_path):
    assert "Overfull" not in compiled(shipped(path.stem).latex(), tmp_path)


@pytest.mark.parametrize("environment", one_in(3, ["align*", "gather*", "aligned"]))
@pytest.mark.tex
@needs_pdflatex
def test_every_environment_holds_the_rows_of_every_derivation(environment, tmp_path):
    pages = [shipped(path.stem).latex(environment=environment) for path in FILES]
    assert "Overfull \\hbox" not in compiled("\n\n".join(pages), tmp_path)


@pytest.mark.tex
@needs_pdflatex
def test_the_rows_of_a_derivation_fit_a_narrow_column(tmp_path):
    column = r"\hsize=22em \textwidth=\hsize \columnwidth=\hsize \linewidth=\hsize"
    names = ["attention_backward", "layernorm_backward", "online_softmax", "grouped_query_backward"]
    pages = [shipped(name).latex(width=22, numbered="none") for name in names]
    assert "too wide) detected" not in compiled("\n\n".join([column, *pages]), tmp_path)  # as of a display


ODD = [
    "a ≤ b", "é ñ ü Ł", "中文", "🎉", "a_b #1 100% A & B ~x^2 {}", r"\input{x}", "ends in \\", "“q” ‘s’ —…",
    "αβγ → ℝ 𝒪(n)", "[a] b", "* b",
    "a\u200bb a\u0301", "مرحبا", "½²³ ﬁ ① Ж", "<b> `code` \"x\" a|b", "°×÷±√∞·€£¥", r"costs \$3", "tab\tbell\x07",
]  # fmt: skip


@pytest.mark.tex
@needs_pdflatex
def test_odd_letters_compile_wherever_there_are_words(tmp_path):
    x = sa.tensor("x", "n")
    page = sa.Derivation("Odd", references=ODD, summary=" ".join(ODD), given={x: " ".join(ODD)})
    for odd in ODD:
        page = page.section(odd).say(odd).extend(sa.let("y", 2 * x), because=odd).cases([[odd, x]], head=[odd, "h"])
        page = page.claim(sa.prove(x, x), title=odd, because=odd).fold(odd, sa.Derivation(odd).say(odd)).code(odd)
    for options in ({"theorems": True, "standalone": True}, {"environment": "align"}):
        assert "Missing character" not in compiled(page.latex(**options), tmp_path)


def test_characters_that_tex_lacks_are_told_below_the_page():
    x = sa.tensor("x", "n")
    plain = sa.Derivation("A", summary="Σ ∀ ≤ naïve [a]").extend(sa.let("y", x + 1)).code("é")
    assert "named instead" not in plain.latex()
    odd = plain.section("中").code("# 文 ≤").fold("😀", sa.Derivation("مB").say("ا"))
    assert "Not in this type, and named instead: U+0627, U+2264, U+4E2D, U+6587, U+1F600." in odd.latex()
    many = sa.Derivation("".join(map(chr, range(0x4E00, 0x4E20))))
    assert many.latex().count("U+4E") == 12
    assert ", and 20 more." in many.latex()


def test_code_keeps_letters_under_accents_and_names_what_tex_lacks():
    listing = sa.Derivation("A").code("é = e\u0301  # ≤ 中 –").latex()
    assert "é = é  # \\u2264 \\u4e2d \\u2013" in listing
    assert "[arabic letter meem] [arabic letter reh]" in sa.Derivation("A").say("مر").latex()


def test_words_that_begin_as_an_option_does_are_words():
    x = sa.tensor("x", "n")
    page = sa.Derivation("A", references=["[1] One"]).cases([["[a]", "b"], ["*", "c"]])
    written = page.claim(sa.prove(x, x), because="[b] so").latex(theorems=True)
    for words in (r"\item {}[1] One", "{}[a] & b", "{}* & c", "\\begin{proof}\n{}[b] so"):
        assert words in written


def test_rows_with_a_label_are_referred_to(attention):
    O = sa.let("O", attention[-1])
    D = sa.Derivation("A").extend(O).then(attention[-1], because="the same", label="eq:same")
    assert D.latex(environment="align").count(r"\label{eq:same}") == 1
    assert D.latex(environment="align", numbered="referenced").count(r"\notag") == 1
    assert r"\begin{align*}" in sa.Derivation("B").extend(O).latex(environment="align", numbered="referenced")
    assert r"\label" not in D.latex(numbered="none")
    with pytest.raises(sa.OperandError, match="another line has the label 'eq:same'"):
        D.then(attention[-1], label="eq:same")
    with pytest.raises(sa.OperandError, match="label= is made of letters, digits and -_:., not 'a b'"):
        D.then(attention[-1], label="a b")


def test_an_equation_holds_one_row(attention):
    *variables, O = attention
    D = sa.Derivation("One").extend(sa.let("O", O)).then(O, because="the same")
    assert D.latex(environment="equation").count(r"\begin{equation*}") == 1
    with pytest.raises(sa.OperandError, match="an equation holds one row, and there are 7: environment='align' holds"):
        sa.gradient(O, variables).latex(environment="equation")
    with pytest.raises(sa.OperandError, match="gather\\* has no numbers"):
        D.latex(environment="gather*", numbered="all")
    with pytest.raises(sa.OperandError, match="width is that of the text in em"):
        D.latex(width="4in")


def test_attention_backward_has_the_five_lines_with_a_reason_each():
    steps = shipped("attention_backward").steps
    gradients = [s for s in steps if getattr(s, "kind", "") == "gradient" and s.left.name != "dz"]
    assert [(s.left.name, str(s.expression)) for s in gradients] == [
        ("dV", "P.T @ dO"),
        ("dP", "dO @ V.T"),
        ("dZ", "P * (dP - rowsum(P * dP))"),
        ("dQ", "dZ @ K / sqrt(d)"),
        ("dK", "dZ.T @ Q / sqrt(d)"),
    ]
    assert all(s.reason for s in gradients)


def test_the_softmax_jacobian_is_read_off_the_gradient():
    *_, matrix, jacobian = shipped("softmax_jacobian")["From the gradient to the matrix"].steps
    assert str(matrix.expression) == "(diag(p) - outer(p, p)) @ dp"
    assert str(jacobian.expression) == "diag(p) - outer(p, p)"


# --- writing one ---


def test_automatic_definitions_come_before_the_steps_that_use_them(attention):
    *variables, O = attention
    text = sa.Derivation("A").extend(sa.gradient(O, variables)).text()
    assert text.index("Z ≔ Q Kᵀ / √d") < text.index("P ≔ softmax(Z)") < text.rindex("dV = Pᵀ dO")


def test_a_single_gradient_may_be_that_of_a_scalar():
    z, tau = sa.tensor("z", "n"), sympy.Symbol("tau", positive=True)
    g = sa.gradient(sa.let("s", sa.logsumexp(z / tau)), [tau])
    report = sa.Derivation("A").extend(g["dtau"], because="chain rule").verify()
    assert [(check.name, check.how) for check in report] == [("Z", "by definition"), ("dtau", "proved")]


def test_paragraphs_and_blocks_alternate_in_latex(attention):
    *variables, O = attention
    D = sa.Derivation(r"50% of \$ & _", given=variables)
    D = D.say("First.").extend(sa.let("O", O)).say("Then, as x < y.").extend(sa.gradient(O, variables))
    latex = D.latex()
    assert latex.startswith(r"\section*{50\% of \$ \& \_}")
    assert latex.count(r"\begin{align*}") == latex.count(r"\end{align*}") == 2
    assert latex.index("First.") < latex.index(r"\begin{align*}") < latex.index("Then, as x $<$ y.")


def test_a_chain_leaves_its_left_side_empty_and_says_it_again_after_a_paragraph():
    x = sa.tensor("x", "n")
    y = sa.let("y", sa.sum(x * x))
    D = sa.Derivation("A").extend(y).then(x @ x, because="a dot product").say("So:").then(sa.sum(x**2))
    assert D.text().splitlines()[9:14] == ["  y ≔ sum(x ⊙ x)", "?   = xᵀ x  a dot product", "", "So:", ""]
    assert D.text().splitlines()[14].startswith("? y = sum(x")
    assert r"   &= x^{\top} x" in D.latex()


def test_two_gradients_of_one_name_are_numbered(attention):
    Q, K, _, O = attention
    D = sa.Derivation("A").extend(sa.gradient(sa.let("O", O), Q), sa.gradient(sa.let("R", Q @ K.T), Q))
    assert "dQ₁ = " in D.text()
    assert "dQ₂ = " in D.text()


def test_hypotheses_are_part_of_what_is_given():
    M = sa.tensor("M", "T S", binary=True)
    assert "  M   {0, 1}^(T × S)\n" in sa.Derivation("A", given=[M]).text()
    R = sa.tensor("R", "n n", orthogonal=True, integer=True)
    assert "  R   ℤ^(n × n), orthogonal matrix\n" in sa.Derivation("A", given=[R]).text()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda D, x: D.then(x), "begin with extend"),
        (lambda D, x: D.extend(x), r"not x\[n\]"),
        (lambda D, x: D.extend(sa.prove(x, x + 0)).then(x), "no line to continue"),
        (lambda D, x: D.extend(sa.prove(sa.le(1 + x + x**2 / 2 + x**3 / 6, sa.exp(x)))), "refuted, not <unknown: 1"),
        (lambda D, x: D.extend(sa.let("y", x)).then(x, relation="~"), "relates by one of"),
        (lambda D, x: sa.Derivation(""), "title"),
        (lambda D, x: D.code("x", "py```\n# h"), "language is a word, such as 'python', not 'py```"),
        (lambda D, x: D.checked_by("one\ntwo"), "a command in one line"),
        (lambda D, x: sa.Derivation("A", given=[3]), "given"),
    ],
)
def test_misuse_is_an_operand_error_that_says_what_is_meant(act, message):
    with pytest.raises(sa.OperandError, match=message):
        act(sa.Derivation("A"), sa.tensor("x", "n"))


def test_a_chain_keeps_its_shape():
    x = sa.tensor("x", "n")
    with pytest.raises(sa.ShapeError, match="shapes differ"):
        sa.Derivation("A").extend(sa.let("y", x)).then(sa.sum(x))


# --- claims ---


def test_a_refuted_claim_is_marked_as_false():
    Z = sa.tensor("Z", "T S")
    D = sa.Derivation("A").extend(sa.prove(sa.softmax(2 * Z), sa.softmax(Z)))
    assert "✗ Claim 1 (false)." in D.text()


def test_conditions_are_reported_with_a_claim():
    Pi, X, Q = sa.tensor("Pi", "n n", permutation=True), sa.tensor("X", "n d"), sa.tensor("Q", "n")
    D = sa.Derivation("A").extend(sa.prove(sa.exp(Pi @ X), Pi @ sa.exp(X)), sa.prove(Q * (1 / Q), sa.ones("n")))
    assert [check.how for check in D.verify()] == ["proved", "proved"]
    assert "!= 0" in str(list(D.verify())[1])


CLAIMS = {
    "equality": lambda X, M: sa.prove(sa.sum(X @ X.T), sa.sum(sa.sum(X, 0) ** 2)),
    "bound": lambda X, M: sa.prove(sa.le(sa.softmax(X), 1)),
    "independence": lambda X, M: sa.prove(sa.independent(sa.cumsum(X, axis=0), X, lambda o, i: i[0] > o[0])),
    "dependence": lambda X, M: sa.prove(sa.independent(sa.cumsum(X, axis=0), X, lambda o, i: i[0] < o[0])),
    "false bound": lambda X, M: sa.prove(sa.lt(X, sa.exp(X) - 1)),
    "mask": lambda X, M: sa.prove(sa.softmax(X, where=M), sa.softmax(X)),
    "unknown function": lambda X, M: sa.prove(sa.unknown("phi", X + X), 2 * sa.unknown("phi", X)),
    "long": lambda X, M: sa.prove(
        sa.exp(X + X + X) * sa.exp(X * X + X), sa.exp(4 * X) * sa.exp(X * X) * sa.sqrt(X**2) / sa.abs(X)
    ),
}


@pytest.mark.parametrize("name", CLAIMS)
@pytest.mark.tex
@needs_pdflatex
def test_claims_of_every_kind_are_checked_and_compile(name, tmp_path):
    verdict = CLAIMS[name](sa.tensor("X", "T d"), sa.tensor("M", "T d", binary=True))
    D = sa.Derivation("A").extend(verdict)
    assert verdict.status != "unknown"
    assert [check.how for check in D.verify()] == ["proved" if verdict else "refuted, as stated"]
    assert "Claim 1 (" in D.text()
    compiled(D.latex(), tmp_path)


def test_a_counterexample_that_does_not_hold_is_told():
    from dataclasses import replace

    from symattn.proof.refute.counterexample import EntryValue

    Z = sa.tensor("Z", "T S")
    verdict = sa.prove(sa.softmax(2 * Z), sa.softmax(Z))
    found = replace(verdict.counterexample, left_value=EntryValue(None, "0.25"))
    with pytest.raises(sa.EvaluationError, match="claim 1 has other values there"):
        sa.Derivation("A").extend(replace(verdict, found=found)).verify()


def test_a_proof_that_does_not_hold_is_told():
    from dataclasses import replace

    Z = sa.tensor("Z", "T S")
    verdict = sa.prove(sa.softmax(Z + 1), sa.softmax(Z))
    argument = verdict.proof.argument
    proof = replace(verdict.proof, argument=replace(argument, right=sa.softmax(2 * Z)))
    with pytest.raises(sa.EvaluationError, match="the proof of claim 1 does not hold"):
        sa.Derivation("A").extend(replace(verdict, found=proof)).verify()


# --- verify ---


def test_a_false_line_of_a_chain_is_named_with_a_point_at_which_it_is_false():
    p, dp = sa.tensor("p", "n"), sa.tensor("dp", "n")
    D = sa.Derivation("A").extend(sa.let("y", p * (dp - p @ dp))).then((sa.diag(p) + sa.outer(p, p)) @ dp)
    with pytest.raises(sa.EvaluationError, match=r"step y \(line 2\) is false: (.|\n)*entry \[0\]: left is"):
        D.verify()


def test_without_a_proof_a_false_line_is_found_by_numbers(without_proofs):
    p, dp = sa.tensor("p", "n"), sa.tensor("dp", "n")
    D = sa.Derivation("A").extend(sa.let("y", p * (dp - p @ dp))).then((sa.diag(p) + sa.outer(p, p)) @ dp)
    with pytest.raises(sa.EvaluationError, match=r"step y \(line 2\) at n = \d+: entry \[0\] is .* but"):
        D.verify()


def test_without_a_proof_equal_sides_are_not_less(without_proofs):
    x, y = sa.tensor("x", "n", positive=True), sa.tensor("y", "n", positive=True)
    assert sa.Derivation("A").extend(sa.lt(x, x + y)).then(x + 2 * y, "<").verify()
    for D in (
        sa.Derivation("A").extend(sa.lt(x + y, y + x)),
        sa.Derivation("B").extend(sa.let("z", x)).then(x * 1, ">"),
    ):
        with pytest.raises(sa.EvaluationError, match=r"step .* at n = \d+: entry \[0\] of both sides is \d\.\d+"):
            D.verify()


def test_a_wrong_gradient_is_told_apart_from_central_differences():
    from symattn.ops import RECORDS

    rule = RECORDS["matmul"].vjp
    halved = lambda g, y, a, b, core: (rule(g, y, a, b, core=core)[0] / 2, rule(g, y, a, b, core=core)[1])  # noqa: E731
    object.__setattr__(RECORDS["matmul"], "vjp", halved)
    try:
        Q, K = sa.tensor("Q", "T d"), sa.tensor("K", "S d")
        D = sa.Derivation("A").extend(sa.gradient(Q @ K.T, [Q, K]))
    finally:
        object.__setattr__(RECORDS["matmul"], "vjp", rule)
    with pytest.raises(sa.EvaluationError, match="step dQ at .*entry"):
        D.verify()


@pytest.fixture
def everything():
    """A derivation with intermediates, a scalar, a mask and a loss."""
    Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    M = sa.tensor("M", "T S", binary=True)
    c = sympy.Symbol("c", real=True)
    Z = sa.let("Z", c * sa.tanh(Q @ K.T / c))
    P = sa.let("P", sa.softmax(Z, where=M))
    loss = sa.let("L", sa.sum((P @ V) ** 2))
    return sa.Derivation("A").extend(Z, P, loss, sa.gradient(loss, [Q, K, V, c, Z, P]))


def test_verify_proves_intermediates_scalars_masks_and_losses(everything):
    assert {check.name for check in everything.verify() if check.how == "proved"} >= GRADIENTS


def test_verify_covers_intermediates_scalars_masks_and_losses_by_numbers(everything, without_proofs):
    checked = {check.name: check.sizes for check in everything.verify() if check.error is not None}
    assert set(checked) >= GRADIENTS
    assert all(len(sizes) == 2 for sizes in checked.values())


def test_a_report_says_what_is_proved():
    D = shipped("softmax_jacobian")["From the gradient to the matrix"]
    report = D.verify()
    assert str(report) == "p: by definition\ndz: proved\ndz (line 2): proved\nJ: by definition"
    assert report.proved
    assert r"dz (line 2) & proved" in report.latex()
    assert len(report) == len(D.steps)


@pytest.mark.parametrize("path", one_in(8, FILES), ids=lambda p: p.stem)
def test_every_step_of_a_derivation_agrees_numerically_too(path, without_proofs):
    D = shipped(path.stem)
    try:
        report = D.verify()
    except sa.NoRuleError as problem:  # a function that is known by its name only
        pytest.skip(str(problem))
    each = [len(step.moments) if isinstance(step, Cases) else 1 for step in steps(D._completed(D.parts))]
    besides = [check for check in report if check.name.endswith((", what holds", "$")) or check.name[:7] == "result "]
    assert len(report) - len(besides) == sum(each)
    alike = ("by definition", "computed again, exactly")
    lines = [
        check for check in report if check.how not in alike and not check.name.startswith((*CLAIMED, "the result,"))
    ]
    assert all("checked numerically only, largest error" in str(check) for check in lines)
    assert report.proved == (not lines), "without proofs, lines rest on numbers"
    assert all(check.error is None or check.error < 1e-8 for check in report)


def test_the_conditions_of_a_proof_are_reported():
    Q = sa.tensor("Q", "n")
    report = sa.Derivation("A").extend(sa.let("y", Q * (1 / Q))).then(sa.ones("n")).verify()
    assert re.fullmatch(r"y \(line 2\): proved, where Q.* != 0", str(report).splitlines()[-1])


def test_a_point_without_derivative_is_reported():
    x = sa.tensor("x", "n")
    report = sa.Derivation("A").extend(sa.gradient(sa.sum(sa.relu(x)), x)).verify()
    assert str(report) == "dx: proved; relu is not differentiable at 0; 0 is taken there"


def test_a_batch_of_cotangents_is_checked_too():
    x, G = sa.tensor("x", "n"), sa.tensor("G", "m n")
    y = sa.let("y", sa.softmax(x))
    D = sa.Derivation("A").extend(sa.gradient({y: G}, x))
    assert [check.how for check in D.verify()] == ["by definition", "checked numerically only"]
    assert D.verify().checks[-1].error < 1e-8


def test_no_step_passes_without_a_check(without_proofs):
    f = sa.unknown("phi", sa.tensor("x", "n"))
    D = sa.Derivation("A").extend(sa.let("y", f)).then(f + f - f)
    with pytest.raises(sa.NoRuleError, match="step y .line 2. is not proved, and has no numbers .* for phi"):
        D.verify()


def test_scalar_symbols_are_given_with_what_is_declared_of_them():
    tau, mu = sympy.Symbol("tau", positive=True), sympy.Symbol("mu", real=True)
    note = sa.Derivation("Temperature", given={sa.tensor("Z", "T S"): "scores", tau: "temperature", mu: ""})
    lines = ["  Z   ℝ^(T × S)     scores", "  τ   ℝ, positive   temperature", "  μ   ℝ"]
    assert note.text().splitlines()[5:8] == lines


@pytest.mark.parametrize("shown", [True, False])
def test_what_names_stand_for_is_said_once_in_a_derivation(shown):
    Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    O = sa.attention.scaled_dot_product(Q, K, V)
    D = sa.Derivation("A").extend(*(O.intermediates if shown else ()))
    D = D.extend(sa.gradient(O, [Q])).extend(sa.gradient(O, [V]))
    lines = [step.left.name for step in D.steps]
    assert lines == [*(["Z", "P", "O"] if shown else ["Z", "P"]), "dP", "dZ", "dQ", "dV"]


def test_a_report_of_no_steps_says_so():
    report = sa.Derivation("A").say("No steps.").verify()
    assert (str(report), len(report)) == ("there is nothing to check", 0)
    assert report.latex() == report._repr_markdown_().strip() == "There is nothing to check."
