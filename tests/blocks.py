"""The rows of a derivation as LaTeX, without the page around them: what golden files of formulas hold."""

from __future__ import annotations

import symattn as sa
from symattn.printing.prose_latex import parts_latex


def rows_of(named: object, style: str = "matrix", first_index: int = 0) -> str:
    """The definitions of named tensors as one block."""
    document = sa.Derivation("Rows").extend(*named).composed(style=style, first_index=first_index)
    return "\n\n".join(parts_latex(section.parts) for section in document.sections)
