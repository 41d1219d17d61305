"""A page as files: its text, and the pictures that this refers to beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from ...printing.prose import Document, Figure, Fold, Part, Statement
from .html import html
from .json import as_json
from .latex import latex
from .markdown import markdown
from .text import text

_DARK = "<style>@media (prefers-color-scheme: dark) { svg { color: #e6e6e6 } }</style>"  # of a file, as of a page


@dataclass(frozen=True)
class Format:
    """The ending of a file, what writes it, and the ending of pictures that stand beside it."""

    ending: str
    written: Callable[[Document], str]
    pictures: str = ""


FORMATS: Mapping[str, Format] = {
    "html": Format("html", html),
    "md": Format("md", markdown, "svg"),
    "latex": Format("tex", latex, "pdf"),
    "text": Format("txt", text),
    "json": Format("json", as_json),
}


def files(document: Document, to: str, name: str) -> tuple[str, dict[str, bytes]]:
    """The page in a format, and the pictures that it refers to, which have its name and a number."""
    kind = FORMATS[to]
    if kind.pictures:
        document, pictures = with_pictures(document, kind.pictures, _plain(name))
        return kind.written(document), pictures
    return kind.written(document), {}


def with_pictures(document: Document, ending: str, name: str = "") -> tuple[Document, dict[str, bytes]]:
    """The page with the name of a file for each figure that can be drawn, and what the files hold.

    A figure that takes a program for it that is not installed says so.
    """
    drawn: dict[str, bytes] = {}

    def placed(part: Part) -> Part:
        if isinstance(part, Figure) and (content := _content(part, ending)):
            file = f"{name}-picture-{len(drawn) + 1}.{ending}".lstrip("-")
            drawn[file] = content
            return replace(part, file=file)
        if isinstance(part, Figure):
            return replace(part, caption=part.told) if _is_wanted(part, ending) else part
        return replace(part, parts=all_of(part.parts)) if isinstance(part, (Statement, Fold)) else part

    def all_of(parts: Iterable[Part]) -> tuple[Part, ...]:
        return tuple(map(placed, parts))

    result = all_of(document.result)
    sections = tuple(replace(section, parts=all_of(section.parts)) for section in document.sections)
    return replace(document, result=result, sections=sections), drawn


def _content(figure: Figure, ending: str) -> bytes:
    """The picture of a figure; none where it cannot be drawn."""
    if figure.lacking or not _is_wanted(figure, ending):
        return b""
    if ending == "pdf":
        return figure.pdf
    head, end, rest = figure.svg.partition(">")
    return f"{head}{end}{_DARK}{rest}".encode()


def _is_wanted(figure: Figure, ending: str) -> bool:
    """Whether a picture belongs here; on paper a formula that says the same takes its place."""
    return bool(figure.picture) and (ending != "pdf" or figure.formula is None)


def _plain(name: str) -> str:
    """A name of letters that neither TeX nor Markdown reads as anything else; no two names become one."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else f"-{ord(c):x}-" for c in name)
