"""What a notebook shows of an answer: itself as mathematics, by what writes documents."""

from __future__ import annotations

from .late import late


class Displayed:
    """An answer that tells itself in parts of a page: a notebook shows these, and text where they cannot be written."""

    def _repr_html_(self) -> str | None:
        return _shown(self, "html")

    def _repr_markdown_(self) -> str | None:
        return _shown(self, "markdown")

    def _repr_latex_(self) -> str | None:
        return _shown(self, "latex")


def _shown(x: Displayed, medium: str) -> str | None:
    shown: str | None = late("shown")(x, medium)
    return shown
