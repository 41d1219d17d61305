"""``symattn build``: a site of derivations, each page in every format, with an index."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from unicodedata import normalize

from ..core.files import check_folder, replacing, writing
from ..document.render import guide
from ..document.render.files import FORMATS
from ..document.render.pdf import is_possible
from ..document.render.site import Entry, index
from ..errors import OperandError
from . import notes
from .reference import reference
from .writing import all_of

_GUIDE = (
    "attention gradients proofs recurrences moments numbers libraries documents reading_latex command_line "
    "testing checking_notes operations conventions from_sympy from_pytorch"
).split()  # in the order in which it is read


def add_options(command: argparse.ArgumentParser) -> None:
    """What to build, and where."""
    command.add_argument("names", metavar="NAME", nargs="*", help="names, files, folders; all that come with symattn")
    command.add_argument("--docs", action="store_true", help="with the guide, and the reference from the docstrings")
    command.add_argument("-o", dest="out", metavar="DIR", required=True, help="the folder of the site")


def run(options: argparse.Namespace) -> int:
    """Write the site; 1 if one of the derivations is left out since something is wrong with it."""
    paths, folder = notes.chosen(options.names), Path(options.out)
    _check_apart(paths)
    check_folder(folder, folder)
    docs = documented() if options.docs else {}
    formats = [*FORMATS, *(["pdf"] if is_possible() else [])]
    if "pdf" not in formats:
        print("no TeX is installed, so there are no PDF files", file=sys.stderr)
    outcomes = all_of(paths, formats).values()
    built = [outcome for outcome in outcomes if not outcome.problem]
    entries = [Entry(x.name, x.title, x.summary, x.tally, tuple(x.files)) for x in built]
    front = index(entries, {"Guide": "docs/index.html", "Reference": "docs/reference.html"} if docs else {})
    _write(
        folder, {name: content for outcome in built for name, content in {**outcome.files, **outcome.pictures}.items()}
    )
    _write(folder, {**docs, "index.html": front.encode()})
    for outcome in outcomes:
        if outcome.problem:
            print(f"symattn: {outcome.name} is left out: {outcome.problem}", file=sys.stderr)
    print(f"{len(built)} of {len(paths)} derivations are in {folder / 'index.html'}")
    return int(len(built) < len(paths))


def _check_apart(names: Iterable[str]) -> None:
    """Raises OperandError for names that would be one file where letters of both cases are one, and for the index."""
    found = {"index": ""}
    for name in names:
        other = found.setdefault(normalize("NFC", name).casefold(), name)
        if not other:
            raise OperandError("a derivation of a site is not called index: that is the page that leads to all others")
        if other != name:
            raise OperandError(f"{other} and {name} are one file where case tells nothing apart: rename one of them")


def documented() -> dict[str, bytes]:
    """The pages of the guide and of the reference, by their names in the site."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(notes.shipped("docs").glob("*.md"))}
    sources = {name: found[name] for name in sorted(found, key=_place)}
    links = {"Derivations": "../index.html", "Guide": "index.html", "Reference": "reference.html"}
    made = guide.pages({**sources, **reference()})
    files = {page.name: guide.written(page, links) for page in made}
    files["index"] = guide.contents(made, links)
    return {f"docs/{name}.html": text.encode() for name, text in files.items()}


def _place(page: str) -> int:
    """Where a page of the guide stands among the others."""
    return _GUIDE.index(page) if page in _GUIDE else len(_GUIDE)


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as beside:
            beside.write_bytes(content)
