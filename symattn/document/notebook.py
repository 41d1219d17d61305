"""Answers in a notebook: the parts in which they tell themselves, written as those of a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.node import Tensor
from ..errors import SymattnError
from ..printing.asked import explanations, named_formula, named_latex
from ..printing.matrix import latex_printer
from ..printing.media.mathml import mathml
from ..printing.prose import Display, Paragraph, Part
from ..printing.prose_latex import parts_latex
from .render.html import parts_html
from .render.markdown import parts_markdown

_WRITERS: dict[str, Callable[[Sequence[Part]], str]] = {
    "html": parts_html, "markdown": parts_markdown, "latex": parts_latex,
}  # fmt: skip
_OF_A_TENSOR: dict[str, Callable[[Tensor], str]] = {
    "html": lambda x: _html(x),
    "markdown": lambda x: f"$$\n{named_latex(x, safe='github')}\n$$",
    "latex": lambda x: rf"$\displaystyle {named_latex(x)}$",
}


def shown(x: Any, medium: str) -> str | None:
    """An answer, or a tensor, as "html", "markdown" or "latex"; none where it is too large to be read."""
    try:
        return _OF_A_TENSOR[medium](x) if isinstance(x, Tensor) else _WRITERS[medium](x.told())
    except SymattnError:  # which is told to who asks for it; a notebook shows the text instead
        return None


def _html(x: Tensor) -> str:
    """One formula, which needs no style; with what is named in it by nobody, a part of a page."""
    printer = latex_printer([x])
    defined = explanations([x], printer)
    formula = named_formula(x, printer)
    if not defined:
        return mathml(formula)
    return parts_html([Display((formula,)), Paragraph(("where",)), *(Display((box,)) for box in defined)])
