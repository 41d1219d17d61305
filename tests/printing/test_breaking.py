"""Where printed formulas go on in a new line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symattn.core.boxes import (
    Box,
    Fence,
    Fraction,
    Function,
    Name,
    Number,
    Row,
    Script,
    Sign,
    SignKind,
    Space,
    Text,
    fold,
    function,
    row,
)
from symattn.printing.breaking import broken
from symattn.printing.media.latex import latex
from symattn.printing.media.mathml import mathml
from symattn.printing.media.read_latex import box_of_latex
from symattn.printing.media.unicode import unicode_text
from symattn.printing.stacking import stacked
from symattn.printing.widths import width

from ..random_boxes import formulas

_KINDS: dict[str, SignKind] = {"=": "relation", "+": "sum", "−": "sum", "⊙": "product", ",": "punctuation"}


def _written(box: Any, inside: Sequence[str]) -> str:
    match box:
        case Name(text) | Number(text) | Sign(text) | Text(text):
            return text
        case Space():
            return "  "
        case Fence(_, left, right):
            return left + inside[0] + right
        case _:
            return "".join(inside)


def shown(box: Box) -> str:
    return fold(box, _written)


def formula(text: str) -> Box:
    """Letters, signs and parentheses as boxes; ``f`` is a function, ``|`` a quad."""
    rows: list[list[Box]] = [[]]
    for c in text.replace(" ", ""):
        if c == "(":
            rows.append([])
        elif c == ")":
            inside = row(*rows.pop())
            rows[-1].append(Fence(inside))
        else:
            box: Box = Sign(c, _KINDS[c]) if c in _KINDS else Name(c)
            rows[-1].append(function("softmax") if c == "f" else Space(1.0) if c == "|" else box)
    return row(*rows[0])


def lines(text: str, room: float, indent: float = 2.0) -> list[str]:
    return [shown(line) for line in broken(formula(text), room, indent)]


@pytest.mark.parametrize(
    ("text", "room", "expected"),
    [
        ("A=B+C", 20, ["A=B+C"]),
        ("A=B+C=D+C", 8, ["A=B+C", "=D+C"]),
        ("A+B⊙C+D⊙E", 7, ["A+B⊙C", "+D⊙E"]),
        ("A⊙B⊙C⊙D", 6, ["A⊙B⊙C", "⊙D"]),
        ("ABC(A+B)(C+D)", 9, ["ABC(A+B)", "(C+D)"]),
        ("ABCf(A+B)f(C+D)", 14, ["ABCsoftmax(A+B)", "softmax(C+D)"]),
        ("A=B|C=D+E", 8.5, ["A=B", "C=D+E"]),
        ("A=B|C=D|E=F", 9.5, ["A=B  C=D", "E=F"]),
        ("f(A+B+C+D+E+F)", 11.5, ["softmax(A+B+C", "+D+E+F)"]),
        ("f(A+B,C+D,E+F)", 11.5, ["softmax(A+B,", "C+D,E+F)"]),
        ("A+(B+(C+D+E+F+A+B+C+D)+E)", 12, ["A+(B+(C+D+E+F", "+A+B+C+D)", "+E)"]),
        ("ABCDEFABCDEF", 5, ["ABCDEFABCDEF"]),
    ],
)
def test_where_formulas_break(text: str, room: float, expected: list[str]) -> None:
    assert lines(text, room) == expected


def test_a_sign_stays_with_what_it_belongs_to() -> None:
    assert lines("A=−B+C=−D", 6) == ["A=−B+C", "=−D"]
    assert lines("f(−A+B,−C+D,−E+F)", 12.5) == ["softmax(−A+B,", "−C+D,−E+F)"]


def test_lines_are_even_where_prices_are_the_same() -> None:
    assert lines("+".join("ABCDEFAB"), 14) == ["A+B+C+D+E", "+F+A+B"]


def test_what_is_tall_stays_whole_where_that_is_not_needed() -> None:
    tall = Fence(
        row(*(part for _ in range(6) for part in (Fraction(Name("A"), Name("B")), Sign("+", "sum"))), Name("C"))
    )
    whole = row(Name("A"), tall)
    assert [shown(line) for line in broken(whole, 8, need=None)] == ["A", shown(tall)]
    assert [shown(line) for line in broken(whole, width(whole) - 0.2, 0.0)] == ["A", shown(tall)]
    lines = broken(whole, 8)
    assert "".join(map(shown, lines)) == shown(whole)
    assert all(width(line) <= 8 - 2 * bool(n) for n, line in enumerate(lines))
    assert latex(lines[0]).endswith(r"\right.")
    assert latex(lines[-1]).startswith(r"\left. {} +")
    assert latex(lines[-1]).endswith(r"\right)")


def test_both_marks_of_a_fence_in_two_lines_are_of_one_size() -> None:
    flat = [part for _ in range(6) for part in (Sign("+", "sum"), Name("C"))]
    first, second = broken(Fence(row(Fraction(Name("A"), Name("B")), *flat)), 10)
    assert latex(first) == r"\left( \frac{A}{B} + C + C + C \right."
    assert latex(second) == r"\left. {} + C + C + C \vphantom{\frac{1}{1}} \right)"
    assert [unicode_text(first), unicode_text(second)] == ["(A / B + C + C + C", "+ C + C + C)"]
    assert latex(box_of_latex(latex(second))) == latex(second)


def test_a_tall_fence_in_two_lines_keeps_its_script_at_the_end() -> None:
    half = row(Fraction(Name("A"), Name("B")), Sign("+", "sum"), Fraction(Name("A"), Name("B")))
    first, second = broken(Script(Fence(row(half, Sign("−", "sum"), half)), above=Sign("⊤")), 7)
    assert latex(first) == r"\left( \frac{A}{B} + \frac{A}{B} - \frac{A}{B} \right."
    assert latex(second) == r"\left. {} + \frac{A}{B} \right)^{\top}"


def test_a_fence_with_a_script_keeps_it_at_its_end() -> None:
    base = formula("(A+B+C+D+E+F)")
    transposed = Script(base, above=Sign("⊤"))
    first, second = broken(row(Name("X"), transposed), 9)
    assert shown(first) == "X(A+B+C+D"
    assert second.kids[-1].kids[-1] is transposed.above
    assert broken(row(Name("X"), Sign("+", "sum"), transposed), 17)[-1].kids[-1] is transposed


def test_items_of_a_list_in_a_bracket_are_broken_between_and_not_within() -> None:
    equal, comma = Sign("=", "relation"), Sign(",", "punctuation")
    item = [Name("s"), equal, Name("A"), Sign("+", "sum"), Name("B")]
    listed = Fence(row(*item, comma, *item, comma, *item))
    assert [shown(line) for line in broken(listed, 14)] == ["(s=A+B,s=A+B,", "s=A+B)"]
    assert [shown(line) for line in broken(row(Name("X"), listed), 8)] == ["X(s=A+B,", "s=A+B,", "s=A+B)"]


def test_rows_in_characters() -> None:
    measured = [shown(line) for line in broken(formula("A+B+C+D+E+F"), 8, 2, measure=lambda box: len(shown(box)))]
    assert measured == ["A+B+C+D", "+E+F"]


def test_every_medium_writes_half_a_fence() -> None:
    base = Fence(formula("A+B+C+D+E+F"), "[", "]")
    whole = row(Name("X"), function("softmax"), Script(base, above=Sign("⊤")), Name("Y"))
    first, second = broken(whole, 12)
    assert [unicode_text(first), unicode_text(second)] == ["X softmax[A + B + C", "+ D + E + F]ᵀ Y"]
    for line in (first, second):
        assert '<mo form="' in mathml(line)
        ElementTree.fromstring(mathml(line))


_LETTERS = st.sampled_from("ABCDEFX").map(Name)
_SIGNS = st.sampled_from([Sign(mark, kind) for mark, kind in _KINDS.items()])


def _operands(inner: st.SearchStrategy[Box]) -> st.SearchStrategy[Box]:
    fences = st.tuples(st.booleans(), st.lists(st.tuples(inner, _SIGNS), min_size=1, max_size=6), inner)
    return fences.map(lambda drawn: _row(*drawn))


def _row(called: bool, terms: Sequence[tuple[Box, Sign]], last: Box) -> Box:
    fence = Fence(row(*(part for pair in terms for part in pair), last))
    return row(function("exp"), fence) if called else fence


_FORMULAS = st.lists(st.tuples(st.recursive(_LETTERS, _operands, max_leaves=30), _SIGNS), min_size=1, max_size=10).map(
    lambda terms: row(*(part for pair in terms for part in pair), Name("Z"))
)


@given(_FORMULAS, st.floats(4, 40))
@pytest.mark.slow
def test_nothing_is_lost_and_what_can_fit_fits(box: Box, room: float) -> None:
    pieces = broken(box, room)
    assert "".join(map(shown, pieces)) == shown(box)
    for before, line in pairwise(pieces):
        first = line.kids[0] if isinstance(line, Row) else line
        after_comma = shown(before).endswith(",")
        assert (
            after_comma or isinstance(first, (Fence, Function)) or (isinstance(first, Sign) and first.kind in _BREAKS)
        )
        rest = line.kids[1:]
        assert width(line) <= room - 2 + 0.5 or not any(
            isinstance(part, Sign) and part.kind in _BREAKS for part in rest
        )


_BREAKS = ("relation", "sum", "product")


@given(formulas, st.floats(1, 20))
def test_random_formulas_break_into_lines_that_every_medium_writes(box: Box, room: float) -> None:
    whole = broken(box, float("inf"))
    assert whole == [box]
    for line in broken(box, room):
        assert balanced(latex(line))
        ElementTree.fromstring(mathml(line))
        assert unicode_text(line) or not unicode_text(box)
        assert width(stacked(line)) <= width(line) + 1e-9


def balanced(source: str) -> bool:
    """Whether braces and environments are paired."""
    plain = source.replace("\\{", "").replace("\\}", "")
    return all(plain.count(left) == plain.count(right) for left, right in (("{", "}"), ("\\begin{", "\\end{")))
