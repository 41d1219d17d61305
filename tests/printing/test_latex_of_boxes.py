"""LaTeX of boxes, and back: what is written is read as a tree that is written the same."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings

from symattn.core.boxes import (
    Accent,
    Code,
    Differential,
    Fence,
    Fraction,
    Function,
    Matrix,
    Name,
    Number,
    Root,
    Row,
    Script,
    Sign,
    Space,
    Text,
    function,
    row,
)
from symattn.printing.media.latex import latex
from symattn.printing.media.read_latex import box_of_latex
from symattn.printing.media.spelling import ACCENTS, FONTS, LETTERS, SIGNS

from ..golden_formulas import golden_formulas
from ..random_boxes import formulas
from ..typeset import needs_pdflatex, widths

GOLDEN = golden_formulas()
BY_SYMPY = (r"\left[\begin", r"\left(\text")  # counterexamples
A, K, Z, k, x, y = map(Name, "AKZkxy")
plus, minus, times = Sign("+", "sum"), Sign("−", "prefix"), Sign("⊙", "product")
top, prime = Sign("⊤"), Sign("′")
WRITTEN = {
    "a product": (row(A, x), "A x"),
    "signs": (row(minus, x, plus, A, times, y), r"-x + A \odot y"),
    "a prefix that is a word": (row(Sign("¬", "prefix"), x), r"\lnot x"),
    "an arrow": (Script(Sign("⟶", "relation"), above=x), r"\xrightarrow{x}"),
    "a list": (Fence(row(x, Sign(",", "punctuation"), y)), "(x, y)"),
    "a tall fence": (Fence(Fraction(x, y)), r"\left( \frac{x}{y} \right)"),
    "a fence of words": (Fence(x, "⌊", "⌋"), r"\lfloor x \rfloor"),
    "a fence on one side": (Script(Fence(x, "", "|"), k), r"\left. x \right\rvert_{k}"),
    "half a fence": (row(Sign("{", "opening"), x), r"\{ x"),
    "a function": (row(function("softmax"), Fence(Z)), r"\operatorname{softmax}(Z)"),
    "a function of two words": (function("row_sum"), r"\operatorname{row\_sum}"),
    "a function that LaTeX knows": (row(function("log"), Fence(x)), r"\log(x)"),
    "a function that is a letter": (row(Function(Name("ϕ")), Fence(x)), r"\phi(x)"),
    "a factor and a fence": (row(A, Fence(row(x, plus, y))), "A (x + y)"),
    "words apart": (row(A, Name("new", "upright")), r"A \, \mathrm{new}"),
    "a word in italics": (Name("ab"), r"\mathit{ab}"),
    "a word of Greek and Latin letters": (Name("αb", "upright"), r"\mathrm{\alpha b}"),
    "a word of two": (Name("a_b", "upright"), r"\mathrm{a\_b}"),
    "bold Greek": (Name("α", "bold"), r"\boldsymbol{\alpha}"),
    "a bold capital": (Name("Σ", "bold"), r"\mathbf{\Sigma}"),
    "scripts": (Script(x, k, top), r"x_{k}^{\top}"),
    "primes": (Script(x, k, Sign("′′")), "x_{k}''"),
    "a prime and more": (Script(x, None, row(prime, top)), r"x^{\prime \top}"),
    "a script of a row": (Script(row(x, y), k), "{x y}_{k}"),
    "a script of a script": (Script(Script(x, k), y), "{x_{k}}_{y}"),
    "a transposed differential": (Script(Differential(Z), None, top), r"{\mathrm{d}Z}^{\top}"),
    "a differential as a factor": (row(Differential(Z), K), r"\mathrm{d}Z \, K"),
    "limits": (row(Script(Sign("∑", "large"), k, A), x), r"\sum_{k}^{A} x"),
    "an unusual large sign": (Script(Sign("argmax", "large"), k), r"\operatorname*{argmax}_{k}"),
    "a root": (Root(x, Number("3")), r"\sqrt[3]{x}"),
    "a root of a root": (Root(x, Root(y, k)), r"\sqrt[{\sqrt[k]{y}}]{x}"),
    "a hat": (Accent(x, "^"), r"\hat{x}"),
    "a wide hat": (Accent(row(x, plus, y), "^"), r"\widehat{x + y}"),
    "a matrix": (Matrix(((x, y), (k, A))), r"\begin{bmatrix} x & y \\ k & A \end{bmatrix}"),
    "a matrix between other marks": (
        Matrix(((x,), (y,)), "⌊", "⌋"),
        r"\left\lfloor \begin{matrix} x \\ y \end{matrix} \right\rfloor",
    ),
    "a matrix of many columns": (
        Matrix(((x,) * 11,), "(", ")"),
        r"\left( \begin{array}{ccccccccccc} " + " & ".join("x" * 11) + r" \end{array} \right)",
    ),
    "words": (Text("100% of a_b, if < 2"), r"\text{100\% of a\_b, if $<$ 2}"),
    "spaces": (row(x, Space(1), y, Space(1.5), k), r"x \quad y \hspace{1.5em} k"),
    "what is not known": (row(Code(r"\foo"), x), r"\foo x"),
    "nothing": (Row(()), ""),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_a_formula_is_written(case):
    box, written = WRITTEN[case]
    assert latex(box) == written


@given(formulas)
def test_random_formulas_are_read_back(box):
    written = latex(box)
    assume(written)
    assert latex(box_of_latex(written)) == written


@pytest.mark.parametrize("file", [name for name in GOLDEN if name != "entries_of_attention.tex"])  # SymPy's own
def test_golden_formulas_are_read_back(file):
    for formula in GOLDEN[file]:
        if not any(mark in formula for mark in BY_SYMPY):
            assert latex(box_of_latex(formula)) == formula


def test_a_tree_without_end_is_written():
    deep = x
    for _ in range(3000):
        deep = Fence(row(x, plus, deep))
    assert latex(deep).count("x") == 3001


@needs_pdflatex
@pytest.mark.tex
def test_every_letter_sign_font_and_accent_is_typeset(tmp_path):
    names = [Name(letter, style) for letter in [*"AbZ", *LETTERS] for style in FONTS]
    signs = [Sign(mark, kind) for kind, marks in SIGNS.items() for mark in marks]
    accents = [Accent(base, mark) for base in (x, Name("xy", "upright")) for mark in ACCENTS]
    assert all(em > 1 for em in widths([latex(row(x, box, y)) for box in [*names, *signs, *accents]], tmp_path))


@needs_pdflatex
@pytest.mark.tex
def test_random_formulas_are_typeset(tmp_path):
    written = []

    @settings(max_examples=500)
    @given(formulas)
    def collect(box):
        written.append(latex(box))

    collect()
    assert len(widths(written, tmp_path)) == len(written)
