"""``symattn check``: whether the mathematics of documents is right."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..checking.report import SUFFIXES, NotesReport, check_notes, sarif
from ..core.files import reading


def add_options(command: argparse.ArgumentParser) -> None:
    """The files, and how to say what was found."""
    command.add_argument("files", nargs="+", metavar="FILE", help="Markdown, LaTeX, plain text or a notebook")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="all findings, for programs")
    form.add_argument("--sarif", action="store_true", help="what is wrong, as code hosts show it beside lines")


def run(options: argparse.Namespace) -> int:
    """Print what was found; 0 if nothing is wrong, 1 if something is, 3 if nothing could be decided."""
    reports = [_checked(name) for name in options.files]
    if options.json:
        print(json.dumps([report.json() for report in reports], indent=2))
    elif options.sarif:
        print(json.dumps(sarif(reports), indent=2))
    else:
        print("\n".join(f"{report}" if len(reports) == 1 else f"{report.name}\n{report}" for report in reports))
    codes = {report.exit_code for report in reports}
    return 1 if 1 in codes else 0 if 0 in codes else 3


def _checked(name: str) -> NotesReport:
    if sys.stderr.isatty():
        print(f"checking {name} ...", end="\r", file=sys.stderr, flush=True)
    with reading(name):
        text = Path(name).read_text(encoding="utf-8", errors="replace")
    suffix = Path(name).suffix.lower()
    return check_notes(text, suffix if suffix in SUFFIXES else ".txt", name)
