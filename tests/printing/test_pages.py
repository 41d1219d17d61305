"""Every golden file is a page that pdflatex sets without an error, with nothing in its margins."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..golden_formulas import GOLDEN
from ..typeset import compiled, needs_pdflatex


def _page(document: str) -> str:
    """The document between paragraphs, where a formula alone is displayed."""
    blocks = (r"\section*", r"\begin{align}", r"{\allowdisplaybreaks")
    return document if document.startswith(blocks) else rf"\[ {document.strip()} \]"


@pytest.mark.tex
@needs_pdflatex
def test_every_golden_file_fits_its_page(tmp_path: Path) -> None:
    files = sorted(GOLDEN.rglob("*.tex"))
    assert len(files) > 190
    said = compiled("\n\n".join(_page(file.read_text()) for file in files), tmp_path)
    assert [line for line in said.splitlines() if "Overfull" in line] == []
