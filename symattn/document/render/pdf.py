"""A page as a PDF file, set by the TeX that is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from ...core.files import check_writable, replacing
from ...errors import TypesettingError
from ...printing.prose import Document
from .files import with_pictures
from .latex import latex

_QUIET = ("-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape")
_ENGINES = {"pdflatex": _QUIET, "lualatex": _QUIET, "xelatex": _QUIET, "tectonic": ("--untrusted",)}
_SECONDS = 120.0
_WIDTH = 40.0  # em of the text


def pdf(document: Document, path: str | os.PathLike[str]) -> None:
    """Write the page as a PDF file, by the first of pdflatex, lualatex, xelatex and tectonic that is installed.

    Raises FileError where none can be written there, and TypesettingError where no engine is installed, and where it
    fails or takes longer than two minutes; no file is left then.
    """
    check_writable(path)
    engine = _installed()
    if engine is None:
        raise TypesettingError(
            f"a PDF file is set by TeX, and none of {', '.join(_ENGINES)} is installed: "
            "install one (Debian: texlive-latex-extra), or write LaTeX and compile it elsewhere"
        )
    with replacing(path) as beside, tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "page.tex")
        document, pictures = with_pictures(document, "pdf")
        for name, content in pictures.items():
            Path(folder, name).write_bytes(content)
        text = latex(document, width=_WIDTH, standalone=True, theorems=True)
        source.write_text(text, encoding="utf-8")
        shutil.copyfile(_typeset(engine, source), beside)


def is_possible() -> bool:
    """Whether a TeX is installed."""
    return _installed() is not None


def _installed() -> str | None:
    return next((name for name in _ENGINES if shutil.which(name)), None)


def _typeset(engine: str, source: Path) -> Path:
    """What the engine makes of the source, beside it."""
    command = [engine, *_ENGINES[engine], source.name]
    try:
        run = subprocess.run(
            command, cwd=source.parent, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise TypesettingError(f"{engine} took longer than {_SECONDS:g} seconds, and was stopped") from None
    made = source.with_suffix(".pdf")
    if run.returncode or not made.exists():
        said = (run.stdout + run.stderr).decode(errors="replace").splitlines()
        problem = next((line for line in said if line.startswith(("!", "error:"))), f"it ended with {run.returncode}")
        raise TypesettingError(f"{engine} could not set the page: {problem.lstrip('! ')}")
    return made
