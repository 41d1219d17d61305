"""Rows as blocks of LaTeX: environments, numbers, and the width of the page."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import nan
from pathlib import Path
from typing import Any

import pytest
import sympy

import symattn as sa
from symattn.core.boxes import Box, Fence, Fraction, Matrix, Name, Number, Sign, Text, function, row
from symattn.errors import OperandError
from symattn.printing.align import align, page_of
from symattn.printing.prose import Step, sentence

from ..typeset import compiled, needs_pdflatex

EQUALS, PLUS = Sign("=", "relation"), Sign("+", "sum")
LONG = "a reason that is too long for a column beside the rows, and even for one line that is below the row it is for"
ENVIRONMENTS = ("align*", "align", "gather*", "aligned", "equation")


def sum_of(terms: int) -> Box:
    return row(*[part for _ in range(terms) for part in (Name("x"), PLUS)][:-1])


def equation(left: str, terms: int, reason: str = "", label: str = "") -> Step:
    return Step(Name(left) if left else None, sum_of(terms), sentence(reason), label=label)


def test_reasons_are_a_column() -> None:
    assert align([equation("A", 2, "sum"), equation("B", 1)], page_of("align*")).splitlines() == [
        r"\begin{align*}",
        r"  A &= x + x && \text{sum} \\",
        r"  B &= x",
        r"\end{align*}",
    ]


def test_rows_go_on_below_their_relation_sign() -> None:
    assert align([equation("A", 16)], page_of("align*", width=20)).splitlines() == [
        r"\begin{align*}",
        r"  A &= x + x + x + x + x + x + x + x + x \\",
        r"  & \qquad + x + x + x + x + x + x + x",
        r"\end{align*}",
    ]


def test_long_reasons_are_small_and_below() -> None:
    written = align([equation("A", 16, LONG), equation("B", 1, "sum")], page_of("align*"))
    assert r"x \\" + "\n" + r"  & \qquad \parbox[t]{2" in written
    assert rf"\small\raggedright {LONG}" in written
    assert r"B &= x \qquad \text{\small sum}" in written


def test_what_several_rows_hold_for_stands_above_them() -> None:
    each = row(Name("h"), Sign("=", "relation"), Number("10000"))
    rows = [equation("A", 1), *(replace(equation(name, 1), each=each) for name in "BC")]
    assert align(rows, page_of()).splitlines()[1:-1] == [
        r"  A &= x \\",
        r"  & \text{for } h = 10000\text{:} \notag \\",
        r"  B &= x \\",
        r"  C &= x",
    ]
    assert align(rows[:2], page_of()).splitlines()[2] == r"  B &= x \quad (h = 10000)"


def test_what_is_short_stands_beside_each_of_several_rows() -> None:
    each = row(Name("i"), Sign("=", "relation"), Number("1"))
    rows = [replace(equation(name, 1), each=each) for name in "BC"]
    assert align(rows, page_of()).splitlines()[1:-1] == [r"  B &= x \quad (i = 1) \\", r"  C &= x \quad (i = 1)"]


def test_a_row_that_defines_a_name_says_so_by_its_sign() -> None:
    assert align([equation("A", 1, "where").defined()], page_of()).splitlines()[1] == "  A &:= x"


def test_what_is_referred_to_has_a_number() -> None:
    rows = [equation("A", 1, label="first"), equation("B", 1)]
    written = align(rows, page_of(numbered="referenced")).splitlines()
    assert written[1:3] == [r"  A &= x \label{first} \\", r"  B &= x \notag"]
    assert align(rows[1:], page_of(numbered="referenced")).startswith(r"\begin{align*}")
    assert r"\label" not in align(rows, page_of("align*"))


def test_one_number_a_row() -> None:
    rows = [equation("A", 40), equation("B", 1)]
    written = align(rows, page_of("align")).splitlines()
    assert [line.endswith((r"\notag \\", r"\notag")) for line in written[1:-1]] == [True, True, False, False]
    assert align(rows, page_of("align", "none")).startswith(r"\begin{align*}")
    assert align(rows[1:], page_of("equation", "none")).startswith(r"\begin{equation*}")


def test_a_row_and_what_goes_on_is_one_equation() -> None:
    assert align([equation("A", 1)], page_of("equation")).splitlines() == [
        r"\begin{equation}",
        r"  A = x",
        r"\end{equation}",
    ]
    chain = align([equation("A", 3), equation("", 2, "sum")], page_of("equation"))
    assert chain.count(r"\begin{aligned}") == 1
    with pytest.raises(OperandError, match="an equation holds one row, and there are 2: environment='align' holds"):
        align([equation("A", 1), equation("B", 1)], page_of("equation"))


def test_what_is_on_no_page_goes_on_over_the_next() -> None:
    many = [equation("A", 1)] * 40
    assert align(many, page_of()).startswith(r"{\allowdisplaybreaks")
    assert r"\allowdisplaybreaks" not in align(many, page_of("aligned"))


def test_conditions_of_cases_go_below_where_nothing_else_helps() -> None:
    wide = row(*(Name("x") for _ in range(40)))
    condition = row(Text("for "), Name("i"), EQUALS, wide)
    cases = Matrix(((wide, condition), (Number("0"), Text("otherwise"))), "{", "")
    written = align([Step(Name("A"), row(Fence(cases, "[", "]")))], page_of())
    assert r"\\ \quad \text{for }" in written
    assert r"0 \quad \text{otherwise}" in written


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"environment": "eqnarray"}, "environment is 'align\\*', 'align', 'gather\\*', 'aligned' or 'equation', not"),
        ({"environment": None}, "environment is 'align"),
        ({"numbered": True}, "numbered is 'none', 'referenced' or 'all', not True"),
        (
            {"environment": "gather*", "numbered": "all"},
            "gather\\* has no numbers: numbered='all' needs environment='align'",
        ),
        ({"width": 10**400}, "width is that of the text in em, 34.5 in a plain article and at least 10, not"),
        ({"width": "12cm"}, "width is that of the text in em, 34.5 in a plain article and at least 10, not '12cm'"),
        ({"width": 3}, "at least 10, not 3"),
        ({"width": nan}, "not nan"),
        ({"width": True}, "not True"),
    ],
)
def test_what_a_page_is_not(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OperandError, match=message):
        page_of(**options)


@pytest.mark.tex
@needs_pdflatex
def test_every_block_fits_the_page_of(tmp_path: Path) -> None:
    fence: Box = Fence(row(sum_of(8)))
    rows = {
        "short": [equation("A", 2, "sum"), equation("", 3), equation("B", 4, "sum rule")],
        "long": [
            equation("A", 30, "sum rule"),
            Step(Name("B"), row(function("softmax"), fence, fence), sentence(LONG)),
        ],
        "tall": [Step(Name("A"), row(Fraction(fence, Name("d")), PLUS, Fraction(fence, Name("d"))), sentence(LONG))],
        "wide": [Step(row(sum_of(14)), row(fence), sentence("sum rule"))],
    }
    for em in (20, 34.5):
        blocks = [
            align(several[:1] if environment == "equation" else several, page_of(environment, width=em))
            for environment, several in product(ENVIRONMENTS, rows.values())
        ]
        written = [rf"\[{text}\]" if text.startswith(r"\begin{aligned}") else text for text in blocks]
        narrow = rf"\hsize={em}em \textwidth=\hsize \columnwidth=\hsize \linewidth=\hsize"
        assert "Overfull" not in compiled("\n\n".join([narrow, *written]), tmp_path)


@pytest.mark.parametrize("way", ["d", "bar", "nabla", "partial"])
@pytest.mark.parametrize("style", ["matrix", "index"])
def test_a_narrow_page_holds_all_lines_or_says_that_it_does_not(way, style):
    n, d = sa.sizes("n d")
    Q, K, V = (sa.tensor(name, n, d) for name in "QKV")
    found = sa.gradient(sa.softmax(Q @ K.T / sympy.sqrt(d)) @ V, [Q, K, V])
    for em in (15, 17, 20):
        written = found.latex(gradients=way, style=style, width=em)
        assert written.count(r"\left") == written.count(r"\right")
    with pytest.raises(sa.OperandError, match="width=10 does not hold a line of about 1. em that has no place"):
        found.latex(gradients="nabla", style="index", width=10)
