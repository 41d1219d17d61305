"""Edits of printed formulas: that they are single and are what they say, and that the judge finds careless readers."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile

import pytest

import symattn as sa

from ..shares import one_in
from .formulas import formulas
from .mutations import SAME, SAME_PARTS, Refusal, edits, edits_of, fault, printed, published_edits, tokens

EDITS = edits()
FORMULAS = {edit.original.latex: edit.original for edit in EDITS}


def test_tokens_are_the_text_again():
    assert tokens(r"\frac{Q K^{\top}}{\sqrt d}\,V") == [
        r"\frac", "{", "Q", " ", "K", "^", "{", r"\top", "}", "}", "{", r"\sqrt", " ", "d", "}", r"\,", "V",
    ]  # fmt: skip
    assert all("".join(tokens(original.latex)) == original.latex for original in printed())


def test_edits_are_many_and_of_all_kinds():
    assert len(EDITS) == 400
    assert len({(edit.original.latex, edit.latex) for edit in EDITS}) == 400
    assert [edit.latex for edit in edits()] == [edit.latex for edit in EDITS]
    assert min(Counter(edit.kind for edit in EDITS).values()) > 50
    assert len(FORMULAS) == len(printed())
    assert sum(edit.expected is not None for edit in EDITS) > 180


def alike(left, right):
    """How many tokens two texts begin with alike."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))))


@pytest.mark.parametrize("original", FORMULAS.values(), ids=lambda original: f"{original.id} {original.style}")
def test_an_edit_is_one_change_of_a_balanced_text(original):
    for edit in edits_of(original):
        before, after = tokens(original.latex), tokens(edit.latex)
        head = alike(before, after)
        tail = alike(before[head:][::-1], after[head:][::-1])
        assert before != after
        assert max(len(before), len(after)) - head - tail <= 12
        assert after.count("{") == after.count("}")


def test_what_edits_say():
    said = {edit.latex: edit.expected for edit in edits_of(printed()[1])}
    Q, K = (printed()[1].names[name] for name in "QK")
    assert said[r"-Q K^{\top}"] is -(Q @ K.T)
    assert said[r"2 Q K^{\top}"] is 2 * Q @ K.T
    assert said[r"Q Q^{\top}"] is Q @ Q.T
    assert isinstance(said["Q K"], Refusal)
    assert said[r"Q "] is None


KNOWN = [edit for edit in EDITS if isinstance(edit.expected, sa.Tensor)]


@pytest.mark.parametrize("edit", one_in(4, KNOWN), ids=lambda edit: edit.latex)
def test_edited_formulas_are_other_formulas(edit):
    before, after = edit.original.value, edit.expected
    assert before.shape != after.shape or sa.prove(before, after).status == "refuted"


# --- published formulas ---


def test_published_formulas_are_edited_once():
    edited = published_edits()
    assert len(edited) == len({(edit.id, edit.latex) for edit in edited}) == 316
    assert {edit.kind for edit in edited} == {"sign", "transpose", "factor"}
    for edit in edited:
        before, after = tokens(formulas()[edit.id].latex), tokens(edit.latex)
        head = alike(before, after)
        assert max(len(before), len(after)) - head - alike(before[head:][::-1], after[head:][::-1]) <= 6


def test_exceptions_leave_other_edits_of_a_formula():
    assert all(part not in formulas()[id].latex for id, parts in SAME_PARTS.items() for part in parts)


# --- readers ---


def heedless(original):
    """A reader that finds the formula it knows in all that it is given."""
    return lambda latex, names: original.value


def exact(edit):
    """A reader that reads what stands there, or nothing where that is not known."""

    def read(latex, names):
        if isinstance(edit.expected, sa.Tensor):
            return edit.expected
        raise sa.ParseError("not read", latex)

    return read


@pytest.mark.parametrize("original", FORMULAS.values(), ids=lambda original: f"{original.id} {original.style}")
def test_a_heedless_reader_is_found_out(original):
    for edit in edits_of(original)[::3]:
        assert bool(fault(edit, heedless(original))) != ((original.id, edit.latex) in SAME)


@pytest.mark.parametrize("original", FORMULAS.values(), ids=lambda original: f"{original.id} {original.style}")
def test_a_reader_of_what_stands_there_is_not_blamed(original):
    assert not any(fault(edit, exact(edit)) for edit in edits_of(original))


def test_what_the_judge_says():
    edit = next(edit for edit in edits_of(printed()[1]) if edit.latex == "Q K")
    assert fault(edit, heedless(edit.original)).startswith("read, though matmul of Q[L, d'] and K[L, d']")
    doubled = next(edit for edit in edits_of(printed()[1]) if edit.latex == r"2 Q K^{\top}")
    assert fault(doubled, heedless(edit.original)) == "read as something else than it says"
