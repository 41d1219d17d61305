"""LaTeX through pdflatex, where that is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

needs_pdflatex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
_PACKAGES = r"\usepackage{amsmath,amssymb}"


def compiled(latex: str, folder: Path) -> str:
    """Compiles a fragment in a minimal article and gives what pdflatex says."""
    (folder / "note.tex").write_text(rf"\documentclass{{article}}{_PACKAGES}\begin{{document}}{latex}\end{{document}}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "note.tex"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-2000:]
    return run.stdout
