"""Rows as lines of text."""

from __future__ import annotations

from symattn.core.boxes import Code, Fence, Name, Sign, row
from symattn.printing.layout import Equation
from symattn.printing.media.unicode import unicode_text
from symattn.printing.prose import Step, sentence
from symattn.printing.text_block import numpy_block, text_block

EQUALS, PLUS = Sign("=", "relation"), Sign("+", "sum")


def equation(left: str, terms: int, reason: str = "") -> Equation:
    parts = [part for _ in range(terms) for part in (Name("x"), PLUS)]
    return Equation(Name(left) if left else None, row(EQUALS, *parts[:-1]), sentence(reason))


def lines(*equations: Equation) -> list[str]:
    return text_block(equations, unicode_text, 41)


def test_relation_signs_and_reasons_stand_below_each_other() -> None:
    rows = [equation("A", 2, "sum"), equation("dB", 5), equation("", 3, "sum rule")]
    assert lines(*rows) == [
        "A  = x + x      # sum",
        "dB = x + x + x + x + x",
        "   = x + x + x  # sum rule",
    ]


def test_what_is_too_wide_goes_on_under_the_relation_sign() -> None:
    assert lines(equation("dB", 12), equation("A", 1)) == [
        "dB = x + x + x + x + x + x",
        "     + x + x + x + x + x + x",
        "A  = x",
    ]


def test_reasons_that_do_not_fit_beside_stand_behind_or_below() -> None:
    assert lines(equation("A", 8, "a reason of some length"), equation("B", 2, "a reason of some length")) == [
        "A = x + x + x + x + x + x + x + x",
        "           # a reason of some length",
        "B = x + x  # a reason of some length",
    ]


def test_a_left_side_that_is_too_wide_has_no_column() -> None:
    wide = Equation(equation("", 6).right, row(EQUALS, Name("y")))
    assert lines(wide) == ["= x + x + x + x + x + x = y"]


def test_left_sides_of_their_own_width() -> None:
    assert text_block([equation("A", 2, "sum"), equation("dB", 12)], unicode_text, 41, ragged=True) == [
        "A = x + x  # sum",
        "dB = x + x + x + x + x + x",
        "     + x + x + x + x + x + x",
    ]


def test_source_text_does_not_break_where_neighbours_are_no_factors() -> None:
    called = row(Code("x.reshape"), Fence(row(Code("n"), Sign(",", "punctuation"), Code("m"))), Code("[:, 0]"))
    terms = row(called, Sign("@", "product"), called, Sign("+", "sum"), called)
    assert numpy_block([Step(Name("y"), terms, sentence("a reason"))], 46) == [
        "y = x.reshape(n, m)[:, 0]",
        "    @ x.reshape(n, m)[:, 0]",
        "    + x.reshape(n, m)[:, 0]  # a reason",
    ]
