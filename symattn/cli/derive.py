"""``symattn derive``: a derivation, verified and written out."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..core.files import check_writable, replacing
from ..document.render.files import FORMATS, files
from ..document.render.pdf import pdf
from ..errors import OperandError
from ..printing.prose import Document
from . import notes


def add_options(command: argparse.ArgumentParser) -> None:
    """What to derive, and how to write it."""
    command.add_argument("name", metavar="NAME", help="one of those that 'symattn list' shows, or a file of yours")
    command.add_argument("--to", choices=["text", "latex", "pdf", "md", "html", "json"], help="else as FILE ends")
    command.add_argument("-o", dest="out", metavar="FILE", help="where to write it; needed for pdf")


def run(options: argparse.Namespace) -> int:
    """Write the derivation, each step with what was done to check it."""
    to = _format(options.to, options.out)
    if to == "pdf" and not options.out:
        raise OperandError("derive --to pdf needs a file to write: -o FILE")
    if options.out:
        check_writable(options.out)
    name, path = notes.one(options.name)
    note = notes.read(path).checked_by(notes.check_of(name))
    with notes.blamed(path):
        note.verify()
        document = note.composed()
    if to == "pdf":
        pdf(document, options.out)
    elif options.out:
        _write(document, to, Path(options.out))
    else:
        print(FORMATS[to].written(document).rstrip())
    return 0


def _format(asked: str | None, out: str | None) -> str:
    """The format that is asked for, or that the name of the file says; a file of neither has text."""
    ending = Path(out or "").suffix.lower()
    said = (
        "pdf" if ending == ".pdf" else next((to for to, kind in FORMATS.items() if ending == f".{kind.ending}"), None)
    )
    if asked and said and asked != said:
        raise OperandError(f"{out} is the name of a file for --to {said}, not for --to {asked}: leave out one of them")
    return asked or said or "text"


def _write(document: Document, to: str, path: Path) -> None:
    """The page, and beside it the pictures that it refers to; beside a pipe or a device there are none."""
    is_file = path.is_file() or not path.exists()
    text, pictures = files(document, to, path.stem) if is_file else (FORMATS[to].written(document), {})
    for name, content in pictures.items():
        with replacing(path.parent / name) as file:
            file.write_bytes(content)
    with replacing(path) as file:
        file.write_text(text, encoding="utf-8")
