"""``symattn derive``: a derivation that comes with symattn, written out."""

from __future__ import annotations

import argparse

from . import notes
from .expressions import add_formats, show


def add_options(command: argparse.ArgumentParser) -> None:
    """What to derive, and how to write it."""
    command.add_argument("name", metavar="NAME", help="one of those that 'symattn list' shows")
    add_formats(command, "text", "latex")


def run(options: argparse.Namespace) -> int:
    """Print the derivation."""
    note = notes.load(options.name)
    return show(options, text=note.text, latex=note.latex)
