"""The first page of a site of derivations: what there is, how it was checked, and in which formats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...printing.prose import MARKS, Status, Words
from .html import whole
from .html_words import badge, escaped, words_html

_CALLED = {"html": "HTML", "md": "Markdown", "tex": "LaTeX", "txt": "text", "json": "JSON", "pdf": "PDF"}


class Entry(NamedTuple):
    """A derivation of the site and its files."""

    name: str
    title: Words
    summary: Words
    tally: tuple[tuple[Status, int], ...]
    files: Sequence[str]


def index(entries: Iterable[Entry], title: str = "Derivations") -> str:
    """The page that leads to all others."""
    listed = "\n".join(map(_listed, entries))
    return whole(title, f'<article class="symattn" lang="en">\n<h1>{escaped(title)}</h1>\n{listed}\n</article>')


def _listed(entry: Entry) -> str:
    tally = "".join(f"<li>{badge(status, f'{n} {MARKS[status].counted}')}</li>" for status, n in entry.tally)
    links = " · ".join(f'<a href="{escaped(file)}">{_called(file)}</a>' for file in entry.files)
    parts = [
        f'<section class="entry" id="{escaped(entry.name)}">',
        f'<h2><a href="{escaped(entry.name)}.html">{words_html(entry.title)}</a></h2>',
        f"<p>{words_html(entry.summary)}</p>" if entry.summary else "",
        f'<ul class="tally" aria-label="How the steps were checked">{tally}</ul>' if tally else "",
        f'<p class="files">{links}</p>',
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _called(file: str) -> str:
    ending = file.rpartition(".")[2]
    return _CALLED.get(ending, ending)
