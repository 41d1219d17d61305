"""``symattn derive``: a derivation, verified and written out."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..core.files import replacing
from ..errors import OperandError
from . import notes
from .writing import FORMATS


def add_options(command: argparse.ArgumentParser) -> None:
    """What to derive, and how to write it."""
    command.add_argument("name", metavar="NAME", help="one of those that 'symattn list' shows, or a file of yours")
    command.add_argument("--to", choices=["text", "latex", "pdf", "md", "html", "json"], default="text")
    command.add_argument("-o", dest="out", metavar="FILE", help="where to write it; needed for pdf")


def run(options: argparse.Namespace) -> int:
    """Write the derivation, each step with what was done to check it."""
    if options.to == "pdf" and not options.out:
        raise OperandError("derive --to pdf needs a file to write: -o FILE")
    if options.out and not Path(options.out).absolute().parent.is_dir():
        raise OperandError(f"{options.out} cannot be written: there is no folder {Path(options.out).parent}")
    name, path = notes.one(options.name)
    note = notes.read(path).checked_by(f"symattn verify {name}")
    with notes.blamed(path):
        note.verify()
        written = "" if options.to == "pdf" else FORMATS[options.to][1](note)
    if options.to == "pdf":
        note.pdf(options.out)
    elif options.out:
        with replacing(options.out) as file:
            file.write_text(written, encoding="utf-8")
    else:
        print(written.rstrip())
    return 0
