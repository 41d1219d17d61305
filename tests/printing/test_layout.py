"""Rows of a block: where they break, and where reasons stand."""

from __future__ import annotations

from symattn.core.boxes import Box, Name, Sign, row
from symattn.printing.layout import Block, Equation, Room, laid_out
from symattn.printing.prose import sentence
from symattn.printing.widths import width, width_of_words

EQUALS, PLUS = Sign("=", "relation"), Sign("+", "sum")
ROOM = Room(width=20, measure=width, words=width_of_words, indent=2, apart=2, narrow=7)


def equation(left: str, terms: int, reason: str = "") -> Equation:
    """``left = x + x + ... + x``, an em and three quarters for a term."""
    parts = [part for _ in range(terms) for part in (Name("x"), PLUS)]
    return Equation(Name(left) if left else None, row(EQUALS, *parts[:-1]), sentence(reason))


def kinds(block: Block) -> str:
    return "".join(line.kind[0] + ("!" if line.reason and line.kind != "reason" else "") for line in block.lines)


def test_reasons_stand_beside_rows_that_leave_room() -> None:
    block = laid_out([equation("A", 3, "sum"), equation("B", 6, "sum rule"), equation("", 2)], ROOM)
    assert block.beside
    assert kinds(block) == "f!f!f"
    assert block.left == width(Name("A"))


def test_rows_are_broken_for_short_reasons() -> None:
    block = laid_out([equation("A", 9, "sum rule"), equation("B", 2, "sum")], ROOM)
    assert block.beside
    assert kinds(block) == "f!mf!"


def test_long_reasons_stand_below() -> None:
    long = "the sum of all rows is known"
    block = laid_out([equation("A", 9, long), equation("B", 2, long), equation("C", 2, "sum")], ROOM)
    assert not block.beside
    assert kinds(block) == "frf!f!"
    assert kinds(laid_out([equation("A", 20, long)], ROOM)) == "fmmr"


def test_one_decision_for_a_block() -> None:
    wide = Equation(Name("B"), row(EQUALS, *(Name("x") for _ in range(28))), sentence("sum"))  # no place for a break
    block = laid_out([equation("A", 9, "sum rule"), wide], ROOM)
    assert not block.beside
    assert kinds(block) == "frfr"


def test_a_wide_left_side_stands_in_the_row() -> None:
    left: Box = row(*(Name("w") for _ in range(15)))
    block = laid_out([equation("A", 3), Equation(left, row(EQUALS, Name("B"), PLUS, Name("C")))], ROOM)
    assert block.left == width(Name("A"))
    assert block.lines[1].left is None
    block = laid_out([Equation(left, equation("", 8).right)], ROOM)
    assert kinds(block) == "fm"
    assert block.lines[0].right.kids == left.kids


def test_lines_fit() -> None:
    for terms in range(1, 40):
        for reason in ("", "sum", "a reason of some length", "a reason of quite some length, too long for a column"):
            block = laid_out([equation("A", terms, reason)], ROOM)
            for line in block.lines:
                indent = ROOM.indent if line.kind == "more" else 0
                assert block.left + ROOM.measure(line.right) + indent <= ROOM.width
