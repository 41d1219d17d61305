"""Mathematics in sentences: it is read with the names of a derivation, and follows how these are printed."""

from __future__ import annotations

import pytest
import sympy

import symattn as sa
from symattn.document.checks import Check
from symattn.document.render.text import said
from symattn.printing.prose import Paragraph

T, S, d, e = sa.sizes("T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
P = sa.let("P", sa.softmax(Z))
O = sa.let("O", P @ V)
G = sa.gradient(O, [Q, K, V])
NOTE = sa.Derivation("Attention", given={Q: "queries"}).extend(Z, P, O, G)


def spoken(sentence: str, note: sa.Derivation = NOTE, **options: object) -> str:
    """The sentence as text."""
    parts = note.say(sentence).composed(**options).sections[-1].parts
    (*_, paragraph) = (part for part in parts if isinstance(part, Paragraph))
    return said(paragraph.words)


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("The output is $O = P V$.", "The output is O = P V."),
        (r"a $T \times S$ matrix, $P^{\top} \mathrm{d}O$", "a T × S matrix, Pᵀ dO"),
        (r"row $i$ of $P$ sums to 1, $\sum_{j} P_{i j} = 1$", "row i of P sums to 1, ∑ⱼ Pᵢⱼ = 1"),
        (r"in $(0, 1)$, at $\mathrm{e}^{-1}$, with $I$", "in (0, 1), at ℯ⁻¹, with I"),
        (r"a loss $L$ with $\mathrm{d}Q = \partial L / \partial Q$", "a loss L with dQ = ∂L/∂Q"),
        (r"$2 \partial L / \partial Z + Z$, $\frac{\partial L}{\partial Z}$", "2 dZ + Z, dZ"),
        (r"$\max_{S} \partial O / \partial Q$", "max_S ∂O/∂Q"),
        (r"$\operatorname{Att}(Q, K, V)$ for \$5", "Att(Q, K, V) for $5"),
        (r"$Z^{2} Z^{-1}$, $d^{1/2}$, $P^{\circ 2}$", "Z² Z⁻¹, d^(1/2), P^(∘ 2)"),
        (r"row $P_i$, $P_{i, :}$, $Z_{1 2}$, $K_{j + 1}$", "row Pᵢ, P_(i, :), Z_(1 2), Kⱼ₊₁"),
        (r"$\nabla_Z L$ and $\mathrm{dZ}$ are $\mathrm{d}Z = \nabla_{\!Z} L$", "dZ and dZ are dZ = ∇_Z L"),
        (r"$d \cdot K$ and $d$", "d ⋅ K and d"),
    ],
)
def test_formulas_are_read_with_the_names_of_the_derivation(sentence, text):
    assert spoken(sentence) == text


def test_formulas_follow_spellings_and_gradients():
    sentence = r"Then $\mathrm{d}P = \mathrm{d}O V^{\top}$ weighs $P_{i j}$."
    assert spoken(sentence, names={P: r"\mathbf{A}"}) == "Then d𝐀 = dO Vᵀ weighs 𝐀ᵢⱼ."
    assert spoken(sentence, gradients="bar") == "Then P̄ = Ō Vᵀ weighs Pᵢⱼ."
    assert spoken(r"$\mathrm{d}Z_{i j}$, $\nabla_Z L$", gradients="bar") == "Z̄ᵢⱼ, Z̄"
    assert spoken(r"$\mathrm{d}Z_{i j} + \mathrm{d}Z$", gradients="nabla") == "(∇_Z L)ᵢⱼ + ∇_Z L"
    assert spoken("$Z_{i j}^2$", names={Z: "A_1"}) == "(A₁)ᵢⱼ²"


def test_a_letter_below_a_symbol_stands_for_each_of_several():
    several = [sa.let(f"H_{k}", k * Q) for k in (1, 2)]
    note = sa.Derivation("Heads").extend(*several)
    assert spoken(r"$H_i^{\top}$ for each $i$", note) == "Hᵢᵀ for each i"
    assert "Hᵢ" not in spoken("$H_1 + H_2$", note)
    (chain,) = (
        sa.Derivation("A")
        .extend(*[sa.let(f"H_{k}", sa.exp(Q) @ sa.tensor(f"W_{k}", d, d)) for k in (1, 2)])
        .composed()
        .sections[0]
        .parts
    )
    assert len(chain.steps) == 1


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("see $X V$", "the paragraph speaks of 'X', in .X V., which is no name of the derivation: .*letters='X'"),
        (r"see $\mathrm{d}R$", "speaks of 'R'"),
        (r"see $\omega Q$", "speaks of 'omega'"),
        (r"see $H_i$", "speaks of 'H'"),
    ],
)
def test_a_letter_that_nobody_knows_is_an_error_with_the_nearest(sentence, message):
    with pytest.raises(sa.NamingError, match=message):
        spoken(sentence)


@pytest.mark.parametrize("way", ["d", "nabla"])
@pytest.mark.parametrize(
    ("formula", "way_out"),
    [
        *[(formula, r"there is Z, above which stand powers and \\top") for formula in (
            "Z'", "Z''", "Z^{\\prime}", "Z^{(1)}", "Z^*", "Z^\\star", "Z^{\\dagger}", "Z^+", "Z^{Q}",
            r"Z^{\text{new}}", "Z_{i j}'", r"Z'^{\top}",
        )],
        *[(formula, "there is Z, of which an entry is .Z_{i j}.") for formula in (
            "Z_3", "Z_{12}", "Z_{i j k}", r"Z_{\mathrm{max}}", r"Z_{\text{max}}", r"Z_{\max}", "Z_+", "Z_3^{\\top}",
            "Z_Q",
        )],
        *[(rf"\{font}{{Z}}", r"Z is written \$Z\$, .* its gradient is written \$\\mathrm{d}Z") for font in (
            "mathbf", "mathcal", "mathrm", "mathsf", "boldsymbol", "bar", "hat", "tilde", "dot", "vec", "underline",
        )],
        *[(formula, "there is [Td], which is one number") for formula in ("T_1", "T_{i}", "d_k")],
        *[(formula, r"Z is written \$Z\$, .* its gradient is written \$\\mathrm{d}Z") for formula in (
            r"\operatorname{Z}", r"\operatorname{Z}(Q)", r"\text{Z}", r"\text{ Z }", r"\textrm{Z}_{ij}", r"\mbox{Z}",
            r"\text{where Z is}", r"\operatorname{Z}^{\top}", r"\mathrm{Z}(Q)",
        )],
        *[(rf"{text}{{dZ}}", r"dZ is written \$\\mathrm{d}Z\$") for text in (r"\text", r"\mbox", r"\mathit")],
        *[(formula, "there are K, O, P") for formula in (
            "f(Q)", r"\operatorname{F}(Q)", r"\phi(Q)", r"\mathrm{F}(Q)", r"\frac{\partial L}{\partial R_{ij}}",
        )],
        (r"\nabla_Z L$ and $\bar{Z}", r"Z is written \$Z\$"),
        (r"Z_{i j} = \nabla_q L", "there are K, O, P"),
        ("T'", "there is T, above which"),
        (r"\hat{d}", "d is written .d., and printed as names= says;"),
        *[(formula, r"Z transposed is written \$Z\^{\\top}") for formula in (
            "Z^T", r"Z^{\mathrm{T}}", r"Z^{\mathsf{T}}", r"Z^\intercal", r"Z^{\text{T}}", "Z_{i j}^T",
        )],
        ("e^Z", r"there is e, above .*; Euler's number is written \$\\mathrm{e}"),
        (r"\mathrm{d}Z'", "there is dZ, above which"),
        (r"\mathrm{d}Z_3", "there is dZ, of which an entry"),
        (r"\mathrm{d}Y", "there is Y, and no gradient by it"),
        (r"\mathbf{dZ}", "dZ is written"),
        ("dZ", r"a gradient is written \$\\mathrm{d}Z\$, and the size d times it \$d \\cdot Z"),
        ("2dZ_{i j}", "a gradient is written"),
    ],
)  # fmt: skip
def test_what_looks_like_a_name_and_is_none_is_an_error_with_the_way_out(formula, way_out, way):
    note = NOTE.extend(sa.let("Y", Q + 1))
    with pytest.raises(sa.NamingError, match=f"paragraph speaks of .* which is no name of the derivation: {way_out}"):
        spoken(f"${formula}$", note, gradients=way)


@pytest.mark.parametrize("way", ["d", "bar", "nabla", "partial"])
def test_an_entry_of_a_gradient_is_the_documents_however_it_is_typed(way):
    wanted = spoken(r"$\mathrm{d}Z_{i j}$", gradients=way)
    typed = (
        r"\nabla_{Z_{ij}} L", r"\partial L / \partial Z_{ij}", r"\frac{\partial L}{\partial Z_{i j}}",
        r"\frac{\partial L}{\partial Z}_{ij}",
    )  # fmt: skip
    assert {spoken(f"${formula}$", gradients=way) for formula in typed} == {wanted}


@pytest.mark.parametrize(
    ("formula", "as_typed"),
    [
        (r"\partial L / \partial Z = \nabla_Z L", "∂L/∂Z = ∇_Z L"),
        (r"\mathrm{d}Z = \nabla_Z L", "dZ = ∇_Z L"),
        (r"\mathrm{d}Z = \partial L / \partial Z", "dZ = ∂L/∂Z"),
        (r"\nabla_{Z_{ij}} L = \partial L / \partial Z_{ij}", "∇_(Zᵢⱼ) L = ∂L/∂Zᵢⱼ"),
    ],
)
@pytest.mark.parametrize("way", ["d", "bar", "nabla", "partial"])
def test_two_ways_to_write_a_gradient_are_not_printed_as_one(formula, as_typed, way):
    left, right = spoken(f"${formula}$", gradients=way).split("=")
    assert left.strip() != right.strip()
    assert spoken(f"${formula}$") == as_typed


def test_words_that_are_no_names_stand_in_formulas():
    sentence = r"$\text{A row}$, $\text{if } Z > 0$, $\operatorname{rank}(Z)$, $\sigma(Z)$"
    assert spoken(sentence) == "A row, if Z > 0, rank(Z), σ(Z)"


def test_letters_that_stand_for_anything_have_any_marks():
    note = sa.Derivation("Any", letters="Z A").extend(Z)
    assert spoken(r"$Z'' A_3 \mathbf{A} \hat{Z} Z^{(1)}$", note) == "Z′′ A₃ 𝐀 Ẑ Z⁽¹⁾"


def test_heads_are_said_above_what_has_them():
    X = sa.tensor("X", "h T d")
    note = sa.Derivation("Heads", given={X: "tokens"}, letters="a")
    assert spoken(r"$X^{(a)}_{i j} X^{(1)\top}$", note) == "Xᵢⱼ⁽ᵃ⁾ X⁽¹⁾ᵀ"


def test_parts_of_a_tensor_are_names():
    one, two = sa.tensor("A_1", T, d), sa.tensor("A_2", T, S)
    P = sa.let("P", sa.softmax(sa.concat([one, two], axis=1)))
    note = sa.Derivation("Parts").extend(P, sa.let("O", P[:, :d] @ one.T + P[:, d:] @ two.T))
    assert spoken("$P_1 A_1$ and $P_2$", note, names={P: "W"}) == "W₁ A₁ and W₂"
    assert spoken("$P_1$", note, style="index") == "P₁"
    with pytest.raises(sa.NamingError, match="there is P, of which"):
        spoken("$P_3$", note)


def test_a_letter_of_which_there_are_several_names_them():
    note = sa.Derivation("Two").extend(sa.let("p", sa.softmax(Q)), sa.let("p", sa.softmax(Q.T)))
    with pytest.raises(sa.NamingError, match="speaks of 'p', .*: of that letter there are p_1, p_2"):
        spoken("$p$", note)


def test_letters_may_stand_for_anything():
    note = sa.Derivation("Any", letters="A B").extend(Z)
    assert spoken(r"$\langle A, B \rangle$", note) == "⟨A, B⟩"
    with pytest.raises(sa.NamingError, match="speaks of 'C'"):
        spoken("$C$", note)


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (lambda: NOTE.say(r"see $\frac{1}{$"), "has a formula that does not read"),
        (lambda: NOTE.say("it costs 5$"), "a dollar sign that is not closed"),
        (lambda: NOTE.say(3), "is a sentence with mathematics"),
        (lambda: NOTE.say(r"see $\input{/etc/passwd}$"), "is not known here"),
        (lambda: NOTE.say(r"see $\foo$"), "foo is not known here"),
        (lambda: NOTE.section("A").section("A"), "there is a section 'A' already"),
        (lambda: NOTE.checked_by(3), "checked_by takes a command"),
        (lambda: sa.Derivation("x", letters=["A"]), "letters= are letters"),
        (lambda: NOTE.section(" "), "a section has a title"),
        (lambda: NOTE.extend(P, because=3), "because= is a sentence"),
        (lambda: NOTE.claim(Z), "claim takes what sa.prove has proved or refuted"),
        (lambda: NOTE.claim(sa.prove(P, P), kind="Guess"), "kind= is one of Claim, Lemma"),
        (lambda: NOTE.claim(sa.prove(P, P), holds=3), "holds= takes sentences and proved claims"),
        (lambda: NOTE.claim(sa.prove(P, P), proof=[sa]), "is neither a tensor nor a real scalar"),
        (lambda: NOTE.cases([]), "rows of one length"),
        (lambda: NOTE.cases({"a": 3}), "or moments by the case"),
        (lambda: NOTE.cases([("a", sa)]), "sentences, tensors, scalars and verdicts"),
        (lambda: NOTE.figure("x"), "figure takes what sa.plot has drawn"),
        (lambda: NOTE.fold("x", 3), "fold takes a derivation"),
        (lambda: NOTE.code(3), "code takes text"),
        (lambda: NOTE.example(values=3), "example takes values and sizes by what they are for"),
        (lambda: NOTE.example(values={P: [[1]]}), "what is shown needs those of"),
        (lambda: NOTE.example(values={Q: [1]}), "an array of 1 axes"),
        (lambda: NOTE.example(sizes={T: 2}), "no size for"),
        (lambda: NOTE.example(sizes={T: 2.5}), "whole numbers from 1: not T = 2.5"),
        (lambda: NOTE.example(values={Q: [["a"]]}), "no array of real numbers"),
        (lambda: NOTE.then(P, relation="~"), "relates by one of"),
        (lambda: sa.Derivation("x", given={P: "weights"}), "given holds tensors and scalar symbols"),
        (lambda: sa.Derivation("x", result=[3]), "result holds sentences, named tensors, claims and moments"),
        (lambda: NOTE["Nowhere"], "there is no section 'Nowhere'; there are none"),
    ],
)
def test_misuse_says_what_is_meant(give, message):
    with pytest.raises(sa.SymattnError, match=message):
        give()


def test_reasons_by_name_are_given_to_their_lines_alone():
    note = sa.Derivation("A").extend(Z, P, because={"P": "weights", "Z": "scores"})
    assert [step.reason for step in note.composed().sections[0].parts[0].steps] == [("scores",), ("weights",)]
    with pytest.raises(sa.NamingError, match="because= speaks of 'O', the name of no line here"):
        sa.Derivation("A").extend(Z, because={"O": "no"})


def test_a_gradient_keeps_together_among_factors_and_below_a_mark():
    assert spoken(r"$\mathrm{d}Z K$, $\mathrm{d}Z^{\top} Q$, $\mathrm{d}Z$", gradients="nabla") == (
        "(∇_Z L) K, (∇_Z L)ᵀ Q, ∇_Z L"
    )


def test_a_letter_under_a_mark_is_another_letter():
    with pytest.raises(sa.NamingError, match=r"speaks of .*bar"):
        spoken(r"$\bar{Z}$")


def test_claims_are_said_with_what_is_given():
    zero = sa.eq(K, 0 * K)
    given, bare = sa.prove(Q @ K.T, 0 * (Q @ K.T), given=[zero]), sa.prove(Q @ K.T, 0 * (Q @ K.T))
    notes = (
        sa.Derivation("A").claim(given),
        sa.Derivation("A").claim(bare, holds=given),
        sa.Derivation("A").cases([("a", given)]),
    )
    assert all("given K = " in note.text() for note in notes)
    with pytest.raises(sa.OperandError, match="result holds what is proved"):
        sa.Derivation("A", result=[bare])


def test_what_the_result_alone_mentions_is_defined():
    for result in (sa.prove(sa.sum(P, axis=-1), sa.ones(T)), sa.eq(P + P, 2 * P), P):
        page = sa.Derivation("A", result=[result]).composed()
        (chain,) = page.sections[0].parts
        assert [said((step.left,)) for step in chain.steps] == ["Z", "P"]
        assert [said((row.symbol,)) for row in page.given] == ["Q", "K"]


def test_a_claim_of_the_result_is_checked_too():
    right = sa.eq(sa.sum(P, axis=-1), sa.ones(T))
    assert str(sa.Derivation("A", result=[right]).extend(P).verify()).splitlines()[-1] == "result 1: proved"
    assert len(sa.Derivation("A", result=[right]).claim(sa.prove(right)).verify()) == 3
    with pytest.raises(sa.EvaluationError, match="step result 1 is false"):
        sa.Derivation("A", result=[sa.eq(P, 2 * P)]).extend(P).verify()


def test_what_only_the_result_says_is_marked_until_it_is_checked():
    x = sa.tensor("x", "n")
    right, moments = sa.eq(sa.sum(P, axis=-1), sa.ones(T)), sa.moments(sa.sum(x), {x: sa.iid()})
    note = sa.Derivation("A", result=[right, moments]).extend(P)
    assert note.text().count("(not verified)") == 3
    assert note.composed().tally == (("unverified", 2), ("defined", 2))
    assert [str(check) for check in note.verify()][-2:] == ["result 1: proved", "result 2: computed again, exactly"]
    assert "(not verified)" not in note.text()
    assert note.composed().tally == (("proved", 1), ("computed", 1), ("defined", 2))
    assert "(not verified)" not in sa.Derivation("A", result=[moments]).extend(moments).text()
    assert note.extend(Z).text().count("(not verified)") == 3  # another derivation


def test_gradients_and_equations_of_the_result_are_checked_once():
    g = sa.gradient(P, Q)
    note = sa.Derivation("A", result=[g["dQ"], P, sa.eq(P, P + 0)]).extend(sa.eq(P, P + 0))
    assert next(line for line in note.text().splitlines() if "(not verified)" in line).startswith("    dQ = ")
    proved = [str(check) for check in note.verify() if check.how != "by definition"]
    assert proved == ["P: proved", "result 1: proved"]
    assert "(not verified)" not in note.extend(g).text()


def test_a_claim_that_stands_twice_is_one_result():
    claim = sa.prove(sa.softmax(Z + 1), P)
    assert len(sa.Derivation("A").claim(claim).claim(claim).composed().result[0].formulas) == 1


def test_what_is_independent_instead_is_said_with_what_is_given():
    free = sa.prove(sa.independent(sa.cumsum(K, axis=0), K, lambda out, inp: inp[0] > out[0]), given=[sa.le(0, V)])
    text = sa.Derivation("A").claim(sa.prove(P, 2 * P), holds=free).text()
    assert "is independent of" in text
    assert "given 0" in " ".join(text.split())
    assert "✓ proved" in text


def test_a_line_of_text_says_under_which_conditions_it_is_proved():
    x = sa.tensor("x", "n")
    note = sa.Derivation("A").extend(sa.eq(x / x, sa.ones("n")))
    note.verify()
    assert "where x ≠ 0" in note.text()


def test_members_of_a_family_are_counted_and_have_one_mark():
    one, two = sa.tensor("X_1", T, d), sa.tensor("X_2", T, d)
    own = [sa.let("M_1", one / one), sa.let("M_2", two / two)]
    same = [sa.eq(x, sa.ones(T, d)) for x in own]
    note = sa.Derivation("A").extend(*own, *same)
    note.verify()
    assert note.composed().tally == (("proved", 2), ("defined", 2))
    assert "✓ Mᵢ = 𝟏_(T × d)    (i = 1, 2)  where Xᵢ ≠ 0\n" in note.text()
    steps = list(note._verified)
    steps[-1] = steps[-1]._replace(check=Check("M_2", "checked numerically only", error=1e-9))
    apart = note._changed(_verified=tuple(steps)).text()
    assert "✓ M₁ = " in apart
    assert "≈ M₂ = " in apart


def test_letters_of_families_are_free():
    one, two, other = (sa.tensor(name, T, d) for name in ("X_1", "X_2", "X_i"))
    shifted = [sa.let("M_1", one + 2 * other), sa.let("M_2", two + 2 * other)]
    (chain,) = sa.Derivation("A").extend(*shifted).composed().sections[0].parts
    assert [said((step.left, " ", step.right)) for step in chain.steps] == ["Mⱼ Xⱼ + 2 Xᵢ"]
    doubled = [sa.let("M_1", one * 2), sa.let("M_2", two * 2)]
    entries = sa.Derivation("A").extend(*doubled).composed(style="index")
    assert len(entries.sections[0].parts[0].steps) == 2


def test_a_proof_leads_to_the_right_side():
    verdict = sa.prove(sa.softmax(Z + 1), sa.softmax(Z))
    note = sa.Derivation("A").claim(verdict, proof=[sa.softmax(Z + 2)])
    assert [check.how for check in note.verify()].count("proved") == 3
    with pytest.raises(sa.OperandError, match="this one is refuted"):
        sa.Derivation("A").claim(sa.prove(sa.softmax(2 * Z), sa.softmax(Z)), proof=[sa.softmax(Z)])


ROWS = sa.sum(P, axis=-1)
SUMS = sa.prove(ROWS, sa.ones(T))
SHARES = sa.sum(P / sa.sum(P, axis=-1, keepdims=True), axis=-1)
LINES = sa.Derivation("Proof")


@pytest.mark.parametrize(
    "steps",
    [
        LINES.extend(sa.eq(Z, Z), because="obviously"),
        LINES.extend(sa.le(ROWS, sa.ones(T))),
        LINES.extend(sa.eq(ROWS, SHARES)),
        LINES.say("It is so."),
        LINES,
    ],
)
def test_what_does_not_lead_to_a_claim_is_no_proof_of_it(steps):
    with pytest.raises(sa.OperandError, match="proof= has no lines that lead to the claim"):
        NOTE.claim(SUMS, proof=steps)
    with pytest.raises(sa.OperandError, match="this one is refuted"):
        NOTE.claim(sa.prove(sa.softmax(2 * Z), sa.softmax(Z)), proof=steps)


@pytest.mark.parametrize(
    ("verdict", "steps"),
    [
        (SUMS, LINES.extend(sa.eq(ROWS, SHARES)).say("So").then(sa.ones(T))),
        (SUMS, LINES.extend(sa.eq(Z, Z), sa.eq(sa.ones(T), sa.sum(sa.softmax(Z), axis=-1)))),
        (SUMS, LINES.extend(sa.eq(SHARES, sa.ones(T)), sa.eq(ROWS, SHARES))),
        (SUMS, LINES.claim(SUMS)),
        (sa.prove(sa.le(ROWS, sa.ones(T))), LINES.extend(sa.eq(sa.ones(T), ROWS))),
        (sa.prove(sa.lt(ROWS, 2 * sa.ones(T))), LINES.extend(sa.eq(ROWS, sa.ones(T))).then(2 * sa.ones(T), "<")),
        (sa.prove(sa.independent(0 * Z, Q)), LINES.extend(sa.eq(0 * Z, sa.zeros(T, "S")))),
    ],
)
def test_steps_lead_to_a_claim_in_any_order_and_by_its_names(verdict, steps):
    assert NOTE.claim(verdict, proof=steps).steps[-1]


A, B = sa.tensor("A", T, T), sa.tensor("B", T, T)
FIRST, OTHER = sa.let("M", A @ B), sa.let("M", B @ A)  # two things of one name
TURNED = sa.prove(FIRST.T, B.T @ A.T)
GIVEN = [sa.eq(A, B)]
GRADIENTS = [sa.gradient(sa.let("Y", y), [A])["dA"] for y in (A @ B, A @ B @ B)]


@pytest.mark.parametrize(
    ("verdict", "steps"),
    [
        (TURNED, LINES.extend(sa.eq(OTHER.T, A.T @ B.T))),
        (TURNED, LINES.extend(OTHER).then(B.T @ A.T)),
        (TURNED, LINES.claim(sa.prove(OTHER.T, A.T @ B.T))),
        (TURNED, LINES.claim(sa.prove(FIRST.T, B.T @ A.T, given=GIVEN))),
        (sa.prove(GRADIENTS[0].T, (GRADIENTS[0] + 0 * A).T), LINES.extend(sa.eq(GRADIENTS[1].T, GRADIENTS[1].T))),
        (SUMS, LINES.extend(sa.eq(sa.sum(sa.let("P", 2 * P), axis=-1), sa.ones(T)))),
    ],
)
def test_a_proof_about_other_things_of_the_same_names_is_refused(verdict, steps):
    with pytest.raises(sa.OperandError, match="proof= has no lines that lead to the claim"):
        NOTE.claim(verdict, proof=steps)


def test_the_steps_of_a_proof_hold_under_what_is_given_for_the_claim():
    commuting = sa.prove(A @ B, B @ A, given=GIVEN)
    for steps in ([A @ A], LINES.extend(sa.eq(A @ B, A @ A)).then(B @ A), LINES.claim(commuting)):
        note = sa.Derivation("A").claim(commuting, proof=steps)
        assert {check.how for check in note.verify()} == {"proved"}
    with pytest.raises(sa.EvaluationError, match="equation 1 is false"):
        sa.Derivation("A").claim(commuting, proof=[2 * A @ A]).verify()


def test_claims_of_one_wording_are_two_results_where_they_are_about_two_things():
    note = sa.Derivation("A").claim(TURNED).claim(sa.prove(OTHER.T, A.T @ B.T))
    assert len(note.composed().result[0].formulas) == 2


# --- sentences that say what holds ---


NOTE_PARTS = (Z, P, O, G)


@pytest.mark.parametrize(
    ("sentence", "outcomes"),
    [
        ("The output is $O = P V$.", []),  # a line says it
        (r"Weights are $P = \operatorname{softmax}(Q K^{\top} / \sqrt{d})$.", []),
        (r"$P \mathbf{1} = \mathbf{1}$, so $\mathrm{d}P = \mathrm{d}O V^{\top}$ and $0 \leq P$.", ["proved", "proved"]),
        (r"The sum is $\sum_j P_{i j} = 1$.", ["proved"]),
        ("It is $O = P K$, of another shape.", ["not proved; it is not read as a claim"]),
        ("It is $O = 2 P V$.", ["not proved; it does not hold for all values"]),
        (r"It is $\operatorname{f}(Q) = Z$ and $\operatorname{f}(2 Q) = 2 Z$.", ["proved"]),
        ("It is so if $O = 0$, with $Z = 0$, and for $d > 1$, at $i = 1$; $d = 4$.", []),
        (r"It takes $P \times V$, as $\log 1 = 0$ and $i \leq j$ and $d = 4$.", []),
    ],
)
def test_what_sentences_of_a_result_claim_is_proved_or_marked(sentence, outcomes):
    note = sa.Derivation("A", given=[Q, K, V], result=sentence, letters="i j f").extend(*NOTE_PARTS)
    found = [check for check in note.verify() if "$" in check.name]
    assert [check.outcome for check in found] == outcomes
    assert note.verify().proved is (set(outcomes) <= {"proved"})
    told = [outcome.partition("; ")[2] for outcome in outcomes if outcome != "proved"]
    for written in (note.text(), note.markdown(), note.html(), note.latex()):
        assert all(f"(not proved: {why})" in " ".join(written.split()) for why in told)
    counted = dict(note.composed().tally)
    assert counted.get("unproved", 0) == len(told)
    assert counted["proved"] == 5 + outcomes.count("proved")
    assert not note.say("More.").sentences


@pytest.mark.parametrize(
    ("said", "outcome", "told"),
    [
        (r"each row of $P$ has $P \mathbf{1} = \mathbf{1}$.", "proved", ""),
        ("$P = Z$.", "not proved; it does not hold for all values", "(not proved: it does not hold for all values)"),
    ],
)
def test_what_holds_instead_is_held_where_sentences_say_it(said, outcome, told):
    note = NOTE.claim(sa.prove(sa.softmax(2 * Z), P), holds=said)
    assert [check.outcome for check in note.verify() if "$" in check.name] == [outcome]
    assert told in " ".join(note.text().split())


# --- values, sections, results ---


def test_methods_leave_a_derivation_as_it_is():
    note = sa.Derivation("A")
    note.say("Nothing.").extend(Z)
    assert note.parts == ()
    assert len(NOTE.extend(Z).steps) == len(NOTE.steps) + 1


def test_a_section_is_a_derivation():
    note = sa.Derivation("A").section("One").extend(Z).section("Two").extend(P)
    assert [step.left for step in note["One"].steps] == [Z]
    assert note["Two"].title == "Two"


def test_gradients_by_scalars_are_results_too():
    y = sa.let("Y", sa.softmax(Q @ K.T / sympy.Symbol("tau", positive=True)) @ V)
    note = sa.Derivation("A").extend(sa.gradient(y, [Q, sympy.Symbol("tau", positive=True)]))
    assert [said((box,)).partition(" ")[0] for box in note.composed().result[0].formulas] == ["dQ", "dτ"]


def test_capitals_of_a_title_leave_its_formulas_as_they_are():
    title = r"Rows of $P$, if $d = e$ and $\sqrt{d}$"
    assert "\nROWS OF P, IF d = e AND √d\n" in NOTE.section(title).extend(P).text()


def test_a_document_that_was_not_verified_says_so():
    assert dict(NOTE.composed().tally) == {"unverified": 5, "defined": 3}
    verified = sa.Derivation("A").extend(Z, P, O, G)
    verified.verify()
    assert dict(verified.composed().tally) == {"proved": 5, "defined": 3}
    assert dict(verified.say("More.").composed().tally)["unverified"] == 5


def test_what_is_mentioned_is_defined_in_claims_too():
    note = sa.Derivation("A").claim(sa.prove(sa.sum(P, axis=-1), sa.ones(T)))
    chain, statement = note.composed().sections[0].parts
    assert [step.status for step in chain.steps] == ["defined"] * 2
    assert statement.kind == "Proposition"


def test_one_gradient_has_its_reason_and_where_it_does_not_exist():
    x = sa.tensor("x", "n")
    g = sa.gradient(sa.let("L", sa.sum(sa.relu(x))), x)
    line = sa.Derivation("A").extend(g["dx"]).steps[-1]
    assert line.reason == g.steps[-1].reason
    assert line.remarks == g.side_conditions


def test_relations_of_a_chain_are_proved():
    note = sa.Derivation("A").extend(sa.eq(sa.sum(P, axis=-1), sa.ones(T))).then(2 * sa.ones(T), relation="<=")
    assert [check.how for check in note.verify()] == ["by definition", "by definition", "proved", "proved"]
    with pytest.raises(sa.EvaluationError, match="line 2"):
        sa.Derivation("A").extend(P).then(2 * P, relation=">=").verify()


def test_a_chain_goes_in_one_direction():
    x, y = sa.tensor("x", "n", positive=True), sa.tensor("y", "n", positive=True)
    up = (
        sa.Derivation("A").extend(sa.eq(x, x + 0 * y)).then(x + y, "<").say("And on.").then(x + y).then(x + 2 * y, "<=")
    )
    assert [check.how for check in up.verify()] == ["proved"] * 4
    for relation in (">", ">="):
        with pytest.raises(sa.OperandError, match=f"a chain that has <= cannot go on with {relation}, which says"):
            up.then(x, relation)
    with pytest.raises(sa.OperandError, match="a chain that has > cannot go on with <="):
        sa.Derivation("A").extend(sa.eq(x + y, y + x)).then(x, ">").then(x).then(x + y, "<=")
    assert up.extend(sa.eq(x + y, y + x)).then(x, ">").verify()  # another chain
    less = sa.prove(sa.le(x, x + y))
    with pytest.raises(sa.OperandError, match="proof= of a claim with <= is a derivation, which says by which"):
        up.claim(less, proof=[(x + y / 2, "half of it")])
    steps = sa.Derivation("Proof").extend(sa.le(x, x + y / 2)).then(x + y, "<=")
    assert "≤ x + y" in up.claim(less, proof=steps).text()


def test_numbers_are_those_of_the_lines():
    note = sa.Derivation("A").extend(Z, P).example(values={Q: [[0, 0]], K: [[1, 2], [3, 4]]})
    inputs, outputs = note.composed().sections[0].parts[-2:]
    assert [said((box,)) for box in outputs.formulas] == ["Z = [0, 0]", "P = [0.500, 0.500]"]
    assert len(inputs.formulas) == 2


def test_a_definition_that_nobody_wrote_is_a_step_of_the_report_and_of_the_tally():
    shifted = sa.prove(sa.softmax(Z + 1), P)
    for note in (sa.Derivation("A").claim(shifted), sa.Derivation("A", result=[Z]), sa.Derivation("A").extend(G)):
        before = dict(note.composed().tally)["defined"]
        shown = note.text().count("≔") - 1  # in the tally itself
        report = note.verify()
        assert [check.how for check in report].count("by definition") == before == shown > 0
        assert sum(n for _, n in note.composed().tally) == len(report)
