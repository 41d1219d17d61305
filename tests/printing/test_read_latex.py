import pytest
from hypothesis import given
from hypothesis import strategies as st

from symattn.core.boxes import Accent, Box, Code, Differential, Fence, Fraction, Function, Matrix, Name, Script, Sign
from symattn.errors import OperandError
from symattn.printing.media.mathml import mathml
from symattn.printing.media.read_latex import box_of_latex
from symattn.printing.media.spelling import ACCENTS, FONTS, LETTERS, SIGNS
from symattn.printing.media.unicode import unicode_text

from ..shares import one_in

READ = {
    r"\mathbf{A}": "𝐀",
    r"\mathbb R": "ℝ",
    r"\mathcal{L}": "ℒ",
    r"\mathfrak{g}": "𝔤",
    r"\mathsf{Q}": "𝖰",
    r"\mathtt{x1}": "𝚡𝟷",
    r"\boldsymbol{\alpha}_1": "𝛂₁",
    r"\mathbf{x_i}": "𝐱_𝐢",
    r"\hat{\mathbf{A}}_{ij}^{\top}": "𝐀̂ᵢⱼᵀ",
    r"\bar{\mathbf x}^2": "𝐱̄²",
    r"\dot x \ddot y \vec v \check a \breve b \acute c \grave d \underline e": "ẋ ÿ v⃗ ǎ b̆ ć d̀ e̲",
    r"\overline{AB}": "bar(A B)",
    r"\tilde{Q}'": "Q̃′",
    "Q''": "Q′′",
    r"x'^{\top}": "x′ᵀ",
    r"Q_{\mathrm{new}}'": "Q_new′",
    r"{x_i}_j": "(xᵢ)ⱼ",
    "x^23": "x² 3",
    r"\frac12": "1 / 2",
    r"\frac{QK^\top}{\sqrt{d_k}}": "Q Kᵀ / √dₖ",
    r"\sqrt[3]{x + 1}": "∛(x + 1)",
    r"\sqrt[n]{x}": "x^(1 / n)",
    r"\phi(x)": "ϕ(x)",
    r"A (x + y)": "A (x + y)",
    r"f_1\left(x\right)": "f₁(x)",
    r"\mathrm{softmax}\left(Z\right) V": "softmax(Z) V",
    r"\operatorname{row\_sum}(x)": "row_sum(x)",
    r"\operatorname*{argmax}_i x_i": "argmaxᵢ xᵢ",
    r"\max_{i} x_i": "maxᵢ xᵢ",
    r"\log x": "log x",
    r"\mathrm{d}Z": "dZ",
    r"\nabla_{\!S} L": "∇_S L",
    r"\partial L/\partial S": "∂L/∂S",
    r"p(x | y)": "p(x|y)",
    r"|x| + |y|": "|x| + |y|",
    r"\|x\|": "‖x‖",
    r"\left\lVert x \right\rVert_2": "‖x‖₂",
    r"\left. f \right|_{x=0}": "f|ₓ₌₀",
    r"\lfloor x \rfloor \langle x, y \rangle \{1, 2\}": "⌊x⌋ ⟨x, y⟩ {1, 2}",
    r"\bigl( x \bigr)": "(x)",
    "[0, 1)": "[0, 1)",
    "-x + -y": "−x + −y",
    r"A \odot B \le C": "A ⊙ B ≤ C",
    "α ⊙ β": "α ⊙ β",
    r"\text{if } x > 0": "if x > 0",
    r"\text{100\% of a\_b $<$ c}": "100% of a_b < c",
    r"\begin{bmatrix} a & b \\ c & d \\ \end{bmatrix}^T": "[a, b; c, d]^T",
    r"\begin{cases} a & \text{if } x \\ 0 & \text{otherwise} \end{cases}": "{a if x; 0 otherwise}",
    r"\foo{A}{B} x": "foo A B x",
    r"\begin{array}{c} a \end{array}": "begin array c a end array",
}


@pytest.mark.parametrize("source", READ)
def test_latex_that_people_give_is_read(source):
    assert unicode_text(box_of_latex(source)) == READ[source]


def test_boxes_of_what_is_read():
    assert isinstance(box_of_latex(r"\hat{\mathbf{A}}"), Accent)
    assert isinstance(box_of_latex(r"\mathrm{d}Z"), Differential)
    assert isinstance(box_of_latex(r"\phi(x)").kids[0], Function)
    assert isinstance(box_of_latex(r"\operatorname*{argmax}_i").kids[0], Sign)
    assert isinstance(box_of_latex(r"\begin{pmatrix} a \end{pmatrix}"), Matrix)


@pytest.mark.parametrize(("kind", "mark"), [(kind, mark) for kind, marks in SIGNS.items() for mark in marks])
def test_every_sign_is_read(kind, mark):
    sign = box_of_latex(f"x {SIGNS[kind][mark]} y").kids[1]
    assert unicode_text(sign) == mark
    assert isinstance(sign, Function) or sign.kind == kind  # max is a large sign where it has limits


def test_every_letter_font_and_accent_is_read():
    assert [box_of_latex(word).letters for word in LETTERS.values()] == [*LETTERS]
    assert [box_of_latex(word + "{Q}").style for word in FONTS.values()] == [*FONTS]
    assert [box_of_latex(word + "{Q}").mark for word in ACCENTS.values()] == [*ACCENTS]


def test_what_is_not_known_is_kept_as_it_stands():
    known = box_of_latex(r"\xleftarrow{a}_{\foo}")
    assert isinstance(known, Script)
    assert [box.source for box in known.kids if isinstance(box, Code)] == [r"\xleftarrow{a}", r"\foo"]


def test_places_of_a_template():
    P, Q = Name("P"), Name("Q")
    ratio = box_of_latex(r"\frac{{0}}{\phi\left({1}\right)}", [P, Q])
    assert unicode_text(ratio) == "P / ϕ(Q)"
    assert unicode_text(box_of_latex(r"\frac{0}{1}", [P, Q])) == "P / Q"
    assert unicode_text(box_of_latex(r"{0}^{1}", [P, Q])) == "P^Q"
    assert unicode_text(box_of_latex("x_{0}")) == "x₀"


REFUSED = {
    "": "text that is not empty",
    "  ": "text that is not empty",
    "{a": "{ is not closed",
    "a}": "} closes nothing that is open here",
    r"\left(a}": "} closes nothing that is open here, but \\left",
    r"\frac{a}": r"\frac needs something behind it, in braces",
    r"\hat": r"\hat needs something behind it, in braces",
    "x^": "^ needs something behind it, in braces",
    "x_^2": "_ needs something behind it, in braces",
    "x^a^b": "a second ^ behind one base: put the first into braces, as in {x_{i}}_{j}",
    "x^2'": "a second ^ behind one base",
    r"\left( x": r"\left is not closed",
    r"\left x \right)": r"x is no fence: write one of ( ) [ ] \{ \} | or a dot for none",
    r"\left": "the end is no fence",
    r"x \right)": r"\right closes nothing that is open here",
    "$A$": "leave out the $ signs",
    "50%": r"write \%",
    "a # b": r"write \#",
    "a & b": r"write \&",
    r"a \\ b": r"\\ ends a row of a matrix, and none is open here",
    r"\begin{bmatrix} a": r"\begin{bmatrix} is not closed",
    r"\begin{array} a": r"\begin{array} is not closed",
    r"\end{bmatrix}": r"\end{bmatrix} closes nothing that is open here",
    r"\text": r"\text needs something in braces behind it",
    r"\operatorname{a": r"\operatorname needs something in braces behind it",
    r"{a \over b}": r"write \frac{...}{...}",
    r"{\bf x}": r"write \mathbf{...}",
    "\\": "a backslash needs a command behind it",
}


@pytest.mark.parametrize("source", REFUSED)
def test_what_cannot_be_read_says_what_to_do(source):
    with pytest.raises(OperandError) as caught:
        box_of_latex(source)
    assert REFUSED[source] in str(caught.value)


def test_what_is_no_text_is_refused():
    with pytest.raises(OperandError, match="not 3"):
        box_of_latex(3)


def test_a_place_that_there_is_not():
    with pytest.raises(OperandError, match="there is no input 2: they are counted from 0 to 1"):
        box_of_latex("{0} + {2}", [Name("P"), Name("Q")])


_WORDS = [
    *"ab12{}{}()[]|^_'.,+-=&$ ", r"\left", r"\right", r"\frac", r"\sqrt", r"\hat", r"\mathbf", r"\text", r"\sum", r"\\",
    r"\begin{bmatrix}", r"\end{bmatrix}", r"\operatorname", r"\lvert", r"\rvert", r"\{", r"\}", r"\foo", r"\,", "{x}",
]  # fmt: skip


@given(st.lists(st.sampled_from(_WORDS), max_size=14).map("".join) | st.text(max_size=8))
def test_any_text_is_read_or_refused(source):
    try:
        box = box_of_latex(source)
    except OperandError:
        return
    assert isinstance(box, Box)
    assert mathml(box)
    unicode_text(box)


ENDLESS = [("{", "}"), ("(", ")"), (r"\hat{", "}"), (r"\left(", r"\right)")]


@pytest.mark.parametrize(("before", "after"), one_in(2, ENDLESS))
@pytest.mark.slow
def test_source_without_end_is_read(before, after):
    box = box_of_latex(before * 3000 + "x" + after * 3000)
    assert unicode_text(box).count("x") == 1


def test_fractions_and_fences_may_hold_each_other():
    box = box_of_latex(r"\left(\frac{(a)}{[b]}\right)")
    assert isinstance(box, Fence)
    assert isinstance(box.inside, Fraction)
