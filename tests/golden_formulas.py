r"""The formulas of the golden files: what stands between dollars, and the cells of aligned rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
_ALIGNED = re.compile(r"\\begin\{(align\*?|aligned)\}(.*?)\\end\{\1\}", re.DOTALL)
_MARKS = re.compile(r"\\begin\{|\\end\{|\\.|[{}&]", re.DOTALL)


def golden_formulas() -> dict[str, list[str]]:
    """The formulas by the name of their file, each once."""
    files = sorted(GOLDEN.rglob("*.tex"))
    return {str(file.relative_to(GOLDEN)): [*dict.fromkeys(formulas_in(file.read_text()))] for file in files}


def formulas_in(document: str) -> Iterator[str]:
    """The formulas of a LaTeX document."""
    for aligned in _ALIGNED.finditer(document):
        rows = aligned[2].replace(r"\notag", "").replace(r"\tag*{$\square$}", "").replace(r"\text{\small ", r"\text{")
        for cell in map(str.strip, _cells(rows)):
            within = cell.split("$")[1::2] if cell.startswith(r"\text{") else []  # of a reason
            yield from within or ([cell] if cell and r"\parbox" not in cell else [])
    prose = _ALIGNED.sub("", document)
    yield from (formula for k, formula in enumerate(prose.split("$")) if k % 2)


def _cells(rows: str) -> Iterator[str]:
    """What stands between ``&`` and ``\\\\`` outside matrices and braces."""
    start = braces = matrices = 0
    for mark in _MARKS.finditer(rows):
        braces += mark[0].endswith("{") and mark[0] != "\\{"
        braces -= mark[0] == "}"
        matrices += (mark[0] == "\\begin{") - (mark[0] == "\\end{")
        if not braces and not matrices and mark[0] in ("&", "\\\\"):
            yield rows[start : mark.start()]
            start = mark.end()
    yield rows[start:]
