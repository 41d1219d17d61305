"""The first page of a site of derivations: what there is, how it was checked, and in which formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from ...printing.prose import MARKS, Status, Words
from .guide import navigation
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


def index(entries: Sequence[Entry], links: Mapping[str, str] | None = None, title: str = "Derivations") -> str:
    """The page that leads to all others; ``links`` are what else there is, by its titles."""
    listed = "\n".join(map(_listed, entries))
    head = f"<header>\n<h1>{escaped(title)}</h1>\n{_counted(entries)}</header>"
    shown = f"{navigation(links)}\n" if links else ""
    return whole(title, f'<article class="symattn" lang="en">\n{shown}{head}\n{listed}\n</article>')


def _counted(entries: Sequence[Entry]) -> str:
    """How many there are, and how their steps were checked."""
    steps = Counter({status: 0 for status in MARKS})
    for entry in entries:
        steps.update(dict(entry.tally))
    if not (tally := _tally((status, n) for status, n in steps.items() if n)):
        return ""
    derivations = "1 derivation" if len(entries) == 1 else f"{len(entries)} derivations"
    said = f"{derivations}. Each step says how it was checked; of all steps together are"
    return f'<p class="summary">{said}</p>\n{tally}\n'


def _tally(counted: Iterable[tuple[Status, int]]) -> str:
    items = "".join(f"<li>{badge(status, f'{n} {MARKS[status].counted}')}</li>" for status, n in counted)
    return f'<ul class="tally" aria-label="How the steps were checked">{items}</ul>' if items else ""


def _listed(entry: Entry) -> str:
    links = " · ".join(f'<a href="{quote(file)}">{_called(file)}</a>' for file in entry.files)
    parts = [
        f'<section class="entry" id="{quote(entry.name)}">',
        f'<h2><a href="{quote(entry.name)}.html">{words_html(entry.title)}</a></h2>',
        f"<p>{words_html(entry.summary)}</p>" if entry.summary else "",
        _tally(entry.tally),
        f'<p class="files">{links}</p>',
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _called(file: str) -> str:
    ending = file.rpartition(".")[2]
    return _CALLED.get(ending, ending)
