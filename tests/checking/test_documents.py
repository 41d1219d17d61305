"""Formulas are found where they stand, in documents of every kind."""

from __future__ import annotations

import json
import random

import pytest

from symattn.checking.documents import Document
from symattn.errors import OperandError

from ..time_limit import limited

FOUND = {
    "Let $x = y$ and $$z = 1$$.": [("inline", "x = y", (1, 6)), ("display", "z = 1", (1, 19))],
    "a \\(b\\)\n\\[c\n= d\\]": [("inline", "b", (1, 5)), ("display", "c\n= d", (2, 3))],
    "\\begin{align*}a &= b\\end{align*}": [("display", "\\begin{align*}a &= b\\end{align*}", (1, 1))],
    "```math\na = b\n```\n`$c$` and ```\n$d$\n```": [("display", "a = b", (2, 1))],
    "It costs $5 and then $6, \\$7 for $n$ of them.": [("inline", "n", (1, 35))],
    "<!-- symattn: Q: T d -->\n<!-- $a = b$ -->": [("declared", "Q: T d", (1, 1))],
    "W^Q: d_{\\text{model}} \\times d_k\nplain words": [("undelimited", "W^Q: d_{\\text{model}} \\times d_k", (1, 1))],
    "an open $ dollar\n\nand $x$": [("inline", "x", (3, 6))],
    "| $Q$ | $\\mathbb{R}^{T \\times d}$ | $q$ |": [
        ("inline", "Q \\in \\mathbb{R}^{T \\times d}", (1, 4)), ("inline", "q", (1, 38)),
    ],
    "$`a_b`$ of GitHub": [("inline", "a_b", (1, 2))],
}


@pytest.mark.parametrize(("text", "wanted"), FOUND.items(), ids=FOUND)
def test_formulas_are_found_with_their_places(text, wanted):
    document = Document(text)
    found = [(one.kind, one.text.strip(), document.place(one.at)) for one in document.passages if one.kind != "words"]
    assert found == wanted


def test_comments_of_latex_declare_or_hide():
    document = Document("% symattn: Q: T d\n% $a = b$\n50\\% of $c$ % $d$\n", ".tex")
    assert [one.text for one in document.passages if one.kind != "words"] == ["Q: T d", "c"]


def test_the_markdown_of_a_notebook_is_read_and_its_cells_are_counted():
    cells = [("markdown", ["# One\n", "$a = b$"]), ("code", ["x = '$c$'"]), ("markdown", ["so $d$"])]
    text = json.dumps({"cells": [{"cell_type": kind, "source": lines} for kind, lines in cells]})
    document = Document(text, ".ipynb")
    found = [(one.text, document.where(one.at)) for one in document.passages if one.kind == "inline"]
    assert found == [("a = b", "cell 1, 2:2"), ("d", "cell 3, 1:5")]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 3}', "[" * 100_000])
def test_what_is_no_notebook_is_said(text):
    with pytest.raises(OperandError, match="JSON with a list of cells"):
        Document(text, ".ipynb")


@pytest.mark.parametrize("mark", ["$", "$$", "\\[", "\\(", "`", "```\n", "<!--", "\\begin{align}", "{", "\\"])
def test_a_document_of_marks_comes_to_its_end(mark):
    with limited():
        Document(mark * 20_000)


def test_every_character_is_in_at_most_one_passage():
    marks = ["$", "$$", "\\[", "\\]", "\\(", "\\)", "`", "```\n", "<!--", "-->", " a ", "\n"]
    marks += ["\\begin{align}", "\\end{align}"]
    for seed in range(200):
        text = "".join(random.Random(seed).choices(marks, k=30))
        ends = 0
        for passage in Document(text).passages:
            assert passage.at >= ends
            ends = passage.at + (len(passage.text) if passage.kind != "declared" else 1)
