"""Every golden file is a page that pdflatex sets without an error, with nothing in its margins."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from ..golden_formulas import GOLDEN
from ..typeset import compiled, needs_pdflatex


def _page(document: str) -> str:
    """The document between paragraphs, where a formula alone is displayed."""
    is_formula = "$" not in document and not document.startswith((r"\begin{align}", r"\begin{align*}", r"{\allow"))
    return rf"\[ {document.strip()} \]" if is_formula else document


@pytest.mark.tex
@needs_pdflatex
def test_every_golden_file_fits_its_page(tmp_path: Path) -> None:
    files = sorted(GOLDEN.rglob("*.tex"))
    assert len(files) > 190
    pages = [rf"\typeout{{: {file.stem}}}" + "\n" + _page(file.read_text()) for file in files]
    said = [line for line in compiled("\n\n".join(pages), tmp_path).splitlines() if line.startswith((":", "Overfull"))]
    assert [page for page, line in pairwise(said) if line.startswith("Overfull")] == []
