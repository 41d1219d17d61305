"""The page on reading LaTeX: each row of its tables is read as it says, or refused as it says."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest

import symattn as sa
from symattn.proof.claims import Claim

PAGE = (Path(__file__).parents[2] / "docs" / "reading_latex.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The rows of all tables with these words above them, without the marks of code."""
    found: list[list[str]] = []
    inside = False
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("|"):
            inside = False
        elif heading in cells:
            inside = True
        elif inside and not line.startswith("|---"):
            found.append([cell.removeprefix("`").removesuffix("`") for cell in cells])
    return found


def names() -> dict[str, Any]:
    """What the page declares at its beginning."""
    known: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(PAGE):
        exec(example.source, known)
        if "names" in known:
            return dict(known["names"])
    raise ValueError("the page declares no names")


NAMES = names()
OF_SOME_VALUES = {"claim for all values of an index", "the same in words", "range of an index"}  # examples of claims


@pytest.mark.parametrize(("what", "latex", "meaning"), rows("what is read"))
def test_a_row_is_read_as_it_says(what: str, latex: str, meaning: str) -> None:
    answer = sa.parse_latex(latex, NAMES)
    parts = answer if isinstance(answer, tuple) else (answer,)
    assert "; ".join(map(str, parts)) == meaning
    if what not in OF_SOME_VALUES:
        assert all(sa.prove(part) for part in parts if isinstance(part, Claim))


@pytest.mark.parametrize(("latex", "why", "instead"), rows("because"))
def test_a_row_is_refused_as_it_says(latex: str, why: str, instead: str) -> None:
    with pytest.raises(sa.SymattnError) as caught:
        sa.parse_latex(latex, NAMES)
    assert why in str(caught.value)
    assert sa.parse_latex(instead, NAMES) is not None


def test_the_page_has_its_tables() -> None:
    assert len(rows("what is read")) > 80
    assert len(rows("because")) > 12
