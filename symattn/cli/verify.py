"""``symattn verify``: every step of derivations, proved or checked by numbers only."""

from __future__ import annotations

import argparse
import sys

from ..errors import EvaluationError
from . import notes


def add_options(command: argparse.ArgumentParser) -> None:
    """Which derivations."""
    command.add_argument("names", metavar="NAME", nargs="*", help="those to check; all of them unless given")


def run(options: argparse.Namespace) -> int:
    """One line a step; 1 if a step is false."""
    code = 0
    for name, note in {name: notes.load(name) for name in options.names or notes.derivations()}.items():
        try:
            report = note.verify()
        except EvaluationError as problem:
            print(f"{name}: {problem}", file=sys.stderr)
            code = 1
        else:
            print("\n".join(f"{name}: {check}" for check in report))
    return code
