"""Pages that are written in Markdown, those of the guide and of the reference, in the looks of derivations."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

from ...errors import OperandError
from .html import whole
from .html_words import escaped

_BLANK = "<BLANKLINE>"  # of what an example prints


class Page(NamedTuple):
    """A page: what it is called in addresses, its title, its first sentences, and all of it."""

    name: str
    title: str
    summary: str
    article: str


def pages(sources: Mapping[str, str]) -> list[Page]:
    """The pages of Markdown sources, by their names. Raises OperandError where markdown-it-py is not installed."""
    reader = _reader()
    return [_page(reader, name, source) for name, source in sources.items()]


def written(page: Page, links: Mapping[str, str]) -> str:
    """The file of a page, with what it leads to by its titles."""
    return whole(page.title, f'<article class="symattn" lang="en">\n{navigation(links)}\n{page.article}</article>')


def contents(listed: Iterable[Page], links: Mapping[str, str]) -> str:
    """The page that leads to all of them."""
    entries = "\n".join(
        f'<section class="entry">\n<h2><a href="{escaped(page.name)}.html">{escaped(page.title)}</a></h2>\n'
        f"<p>{page.summary}</p>\n</section>"
        for page in listed
    )
    article = f'<article class="symattn" lang="en">\n{navigation(links)}\n<h1>Guide</h1>\n{entries}\n</article>'
    return whole("Guide", article)


def navigation(links: Mapping[str, str]) -> str:
    """What a page leads to, by its titles."""
    shown = " · ".join(f'<a href="{escaped(path)}">{escaped(title)}</a>' for title, path in links.items())
    return f'<nav class="files">{shown}</nav>'


def _reader() -> Any:
    """What reads Markdown: CommonMark with tables, and no HTML."""
    try:
        markdown_it = import_module("markdown_it")
    except ImportError:
        raise OperandError(
            "the guide is read by markdown-it-py, which is not installed: pip install 'symattn[docs]'"
        ) from None
    reader = markdown_it.MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.add_render_rule("fence", _fence)
    reader.add_render_rule("table_open", lambda *_: '<div class="scroll">\n<table class="guide">\n')
    reader.add_render_rule("table_close", lambda *_: "</table>\n</div>\n")
    return reader


def _fence(renderer: Any, tokens: Sequence[Any], at: int, options: Any, environment: Any) -> str:
    lines = ("" if line == _BLANK else line for line in tokens[at].content.rstrip().split("\n"))
    return f'<pre tabindex="0"><code>{escaped(chr(10).join(lines).rstrip())}</code></pre>\n'


def _page(reader: Any, name: str, source: str) -> Page:
    tokens = reader.parse(source)
    _lead_to_pages(tokens)
    title, summary = "", ""
    for before, inside in pairwise(tokens):
        if before.type == "heading_open":
            before.attrSet("id", _anchor(inside.content))
            title = title or _plain(inside)
        elif before.type == "paragraph_open" and not summary:
            summary = reader.renderer.render([inside], reader.options, {})
    return Page(name, title, summary, reader.renderer.render(tokens, reader.options, {}))


def _lead_to_pages(tokens: Iterable[Any]) -> None:
    """What leads to a source leads to its page."""
    for link in (child for token in tokens for child in token.children or () if child.type == "link_open"):
        address, mark, place = link.attrGet("href").partition("#")
        path, ending = os.path.splitext(address)
        if ending == ".md":
            link.attrSet("href", f"{path}.html{mark}{place}")


def _plain(inline: Any) -> str:
    return "".join(child.content for child in inline.children)


def _anchor(heading: str) -> str:
    """As Markdown elsewhere leads to a heading: in small letters."""
    return "-".join("".join(c if c.isalnum() or c in "_." else " " for c in heading.lower()).split()) or "section"
