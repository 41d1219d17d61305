"""Widths of printed formulas, held against TeX."""

from __future__ import annotations

from pathlib import Path

import pytest

from symattn.core.boxes import (
    Accent,
    Box,
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
from symattn.printing.widths import width

from ..golden_formulas import golden_formulas
from ..typeset import needs_pdflatex, widths

X, Y, Z, d, i, k = map(Name, "XYZdik")
EQUALS, PLUS, MINUS, ODOT, COMMA = (
    Sign(mark, kind) for mark, kind in zip("=+−⊙,", ("relation", "sum", "sum", "product", "punctuation"), strict=True)
)
SUM = Script(Sign("∑", "large"), row(k, EQUALS, Number("0")), row(d, MINUS, Number("1")))
SOFTMAX, EXP = function("softmax"), function("exp")

FORMULAS: dict[str, Box] = {
    r"X Y": row(X, Y),
    r"X + Y - Z": row(X, PLUS, Y, MINUS, Z),
    r"-X": row(MINUS, X),
    r"X \odot (Y + Z)": row(X, ODOT, Fence(row(Y, PLUS, Z))),
    r"X^{\top} Y_{i}": row(Script(X, above=Sign("⊤")), Script(Y, below=i)),
    r"Z_{i, k} = X_{1}": row(Script(Z, below=row(i, COMMA, k)), EQUALS, Script(X, below=Number("1"))),
    r"Z_{i k} = \sum_{k=0}^{d-1} X_{i k} Y_{i k}": row(
        Script(Z, below=row(i, k)), EQUALS, SUM, Script(X, below=row(i, k)), Script(Y, below=row(i, k))
    ),
    r"\sum_{\text{all pairs of rows}} X": row(Script(Sign("∑", "large"), below=Text("all pairs of rows")), X),
    r"\max_{k} X": row(Script(Sign("max", "large"), below=k), X),
    r"\frac{X Y^{\top}}{\sqrt{d}}": Fraction(row(X, Script(Y, above=Sign("⊤"))), Root(d)),
    r"\frac{\frac{X}{d}}{Y + 2}": Fraction(Fraction(X, d), row(Y, PLUS, Number("2"))),
    r"\operatorname{softmax}\left(\frac{X Y^{\top}}{\sqrt{d}}\right) Z": row(
        SOFTMAX, Fence(Fraction(row(X, Script(Y, above=Sign("⊤"))), Root(d))), Z
    ),
    r"\operatorname{softmax}(X) \exp Y": row(SOFTMAX, Fence(X), EXP, Y),
    r"\mathrm{d}X \, Y = Z \, \mathrm{d}Y": row(Differential(X), Y, EQUALS, Z, Differential(Y)),
    r"\begin{bmatrix} X & Y + Z \\ 0 & 1 \end{bmatrix}": Matrix(((X, row(Y, PLUS, Z)), (Number("0"), Number("1")))),
    r"\begin{cases} X & \text{for } i \le k \\ 0 & \text{otherwise} \end{cases}": Matrix(
        ((X, row(Text("for "), i, Sign("≤", "relation"), k)), (Number("0"), Text("otherwise"))), "{", ""
    ),
    r"\left\lfloor \frac{i}{d} \right\rfloor + \lVert X \rVert": row(
        Fence(Fraction(i, d), "⌊", "⌋"), PLUS, Fence(X, "‖", "‖")
    ),
    r"\mathbb{E}\left[\sum_{k=0}^{d-1} X\right]": row(Name("E", "blackboard"), Fence(row(SUM, X), "[", "]")),
    r"X = Y \quad \text{for all } k": row(X, EQUALS, Y, Space(1.0), Text("for all "), k),
    r"\hat{X} + \sqrt[3]{Y}": row(Accent(X, "^"), PLUS, Root(Y, Number("3"))),
    r"f(X, Y)": row(Function(Name("f")), Fence(row(X, COMMA, Y))),
    r"X_{i \bmod k}": Script(X, below=row(i, Sign("mod", "product"), k)),
    r"\mathbf{X} \in \mathbb{R}^{d \times k}": row(
        Name("X", "bold"),
        Sign("∈", "relation"),
        Script(Name("R", "blackboard"), above=row(d, Sign("×", "product"), k)),
    ),
}


@pytest.mark.tex
@needs_pdflatex
def test_the_estimate_is_near_what_tex_sets(tmp_path: Path) -> None:
    ratios = {
        formula: width(box) / em
        for (formula, box), em in zip(FORMULAS.items(), widths(FORMULAS, tmp_path), strict=True)
    }
    assert {formula: ratio for formula, ratio in ratios.items() if not 0.9 <= ratio <= 1.1} == {}


@pytest.mark.tex
@needs_pdflatex
def test_golden_formulas_are_about_as_wide_as_estimated(tmp_path: Path) -> None:
    boxes = {formula: box_of_latex(formula) for several in golden_formulas().values() for formula in several}
    measured = zip(boxes.values(), widths(map(latex, boxes.values()), tmp_path), strict=True)
    ratios = sorted(width(box) / em for box, em in measured if em)
    assert len(ratios) > 1000
    assert 0.9 < ratios[len(ratios) // 20]
    assert ratios[-len(ratios) // 20] < 1.1
    assert 0.98 < ratios[len(ratios) // 2] < 1.02


def test_a_sign_without_an_operand_takes_no_space() -> None:
    assert width(row(MINUS, X)) < width(row(Y, MINUS, X)) - width(Y)
    assert width(row(X, EQUALS, MINUS, Y)) < width(row(X, EQUALS, Z, MINUS, Y)) - width(Z)


def test_scripts_are_small_and_close() -> None:
    assert width(Script(X, below=row(i, PLUS, k))) - width(X) < 0.7 * width(row(i, PLUS, k))


def test_depth_is_no_trouble() -> None:
    box: Box = X
    for _ in range(20_000):
        box = Row((Fence(box), Y))
    assert width(box) > 20_000
