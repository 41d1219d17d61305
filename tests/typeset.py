"""LaTeX through pdflatex, where that is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

needs_pdflatex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
_PACKAGES = r"\usepackage{amsmath,amssymb}"


def compiled(latex: str, folder: Path, width: float | None = None) -> str:
    """Compiles an article, or a fragment in a minimal one, with a text of so many em, and gives what pdflatex says."""
    text_width = "" if width is None else rf"\setlength{{\textwidth}}{{{width}em}}"
    head = "" if latex.startswith(r"\documentclass") else rf"\documentclass{{article}}{_PACKAGES}{text_width}"
    (folder / "note.tex").write_text(f"{head}\\begin{{document}}\n{latex}\\end{{document}}" if head else latex)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "note.tex"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    assert run.returncode == 0, run.stdout[-2000:]
    return run.stdout


def widths(formulas: Iterable[str], folder: Path) -> list[float]:
    """How wide TeX sets each formula in display style, in em."""
    measured = (
        rf"\setbox0\hbox{{$\displaystyle {formula}$}}\immediate\write\widths{{\the\wd0}}" + "\n" for formula in formulas
    )
    compiled(r"\newwrite\widths\immediate\openout\widths=widths.txt" + "\n" + "".join(measured), folder)
    em = 10.00002  # points
    return [float(line.removesuffix("pt")) / em for line in (folder / "widths.txt").read_text().split()]
