"""Charts that Matplotlib draws: SVG in the colour of the text around it, and PDF for paper."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from typing import Any

from ..core.boxes import Box
from ..errors import TypesettingError
from ..printing.media.latex import latex

FIRST, SECOND, THIRD = "#3a7bd5", "#c8691a", "#6a8f3c"  # which are seen on white paper and on black
INK = "#010203"  # becomes the colour of the text around
_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "sans-serif"],
    "font.size": 11,
    "mathtext.fontset": "stix",
    "svg.fonttype": "none",
    "svg.hashsalt": "symattn",
    "pdf.fonttype": 42,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.8,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}
_UNDATED = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
}


class Chart:
    """A picture of so many inches, which ``paint`` draws into an empty figure of Matplotlib."""

    def __init__(self, width: float, height: float, paint: Callable[[Any], None]) -> None:
        self._size, self._paint = (width, height), paint

    @property
    def lacking(self) -> str:
        """What has to be installed for the picture to be drawn, or nothing."""
        return "" if find_spec("matplotlib") else "Matplotlib, by pip install 'symattn[plot]'"

    def svg(self) -> str:
        """The picture as SVG, the same each time. Raises TypesettingError where Matplotlib is not installed."""
        return self._svg

    def pdf(self) -> bytes:
        """The picture as PDF, the same each time. Raises TypesettingError where Matplotlib is not installed."""
        return self._drawn("pdf")

    @cached_property
    def _svg(self) -> str:
        text = self._drawn("svg").decode()
        text = _without(text[text.index("<svg") :], "<style", "</style>")  # which would hold for the whole page
        return text.replace(INK, "currentColor").replace("<svg ", '<svg stroke-linejoin="round" ', 1).strip()

    def _drawn(self, form: str) -> bytes:
        if self.lacking:
            raise TypesettingError(f"for this picture, install {self.lacking}")
        matplotlib, figures = import_module("matplotlib"), import_module("matplotlib.figure")
        written = BytesIO()
        with matplotlib.rc_context(_STYLE):
            figure = figures.Figure(figsize=self._size, layout="constrained")
            self._paint(figure)
            figure.savefig(written, format=form, transparent=True, metadata=_UNDATED[form])
        return written.getvalue()


def _without(text: str, start: str, end: str) -> str:
    first, last = text.index(start), text.index(end) + len(end)
    return text[:first] + text[last:]


def label(box: Box) -> str:
    """A formula as Matplotlib reads it."""
    return f"${latex(box)}$"
