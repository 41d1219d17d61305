"""``symattn build``: a site of derivations, each page in every format, with an index."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..document.render.pdf import is_possible
from ..document.render.site import Entry, index
from ..errors import OperandError
from . import notes
from .writing import FORMATS, all_of


def add_options(command: argparse.ArgumentParser) -> None:
    """What to build, and where."""
    command.add_argument("names", metavar="NAME", nargs="*", help="names, files, folders; all that come with symattn")
    command.add_argument("-o", dest="out", metavar="DIR", required=True, help="the folder of the site")


def run(options: argparse.Namespace) -> int:
    """Write the site; 1 if one of the derivations is left out since something is wrong with it."""
    paths = notes.chosen(options.names)
    if not paths:
        raise OperandError(f"there is no derivation in {', '.join(options.names)}")
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    formats = [*FORMATS, *(["pdf"] if is_possible() else [])]
    if "pdf" not in formats:
        print("no TeX is installed, so there are no PDF files", file=sys.stderr)
    done = {}
    for outcome in all_of(paths, formats):
        done[outcome.name] = outcome
        for name, content in (outcome.files or {}).items():
            (folder / name).write_bytes(content)
        if outcome.problem:
            print(f"{outcome.name}: {outcome.problem}", file=sys.stderr)
    built = [done[name] for name in paths if not done[name].problem]
    entries = [Entry(x.name, x.title, x.summary, x.tally, tuple(x.files or ())) for x in built]
    (folder / "index.html").write_text(index(entries), encoding="utf-8")
    print(f"{len(built)} derivations in {folder / 'index.html'}")
    return int(len(built) < len(paths))
