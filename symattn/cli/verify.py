"""``symattn verify``: every step of derivations, proved or checked by numbers only."""

from __future__ import annotations

import argparse
import sys

from ..printing.prose import MARKS
from . import notes
from .writing import Outcome, all_of


def add_options(command: argparse.ArgumentParser) -> None:
    """Which derivations."""
    command.add_argument("names", metavar="NAME", nargs="*", help="names, files, folders; all that come with symattn")


def run(options: argparse.Namespace) -> int:
    """The steps of those that are named, or else a table; 1 if a step is false."""
    paths = notes.chosen(options.names)
    done = all_of(paths)
    width = max(map(len, paths))
    for name in paths:
        outcome = done[name]
        if outcome.problem:
            print(outcome.problem, file=sys.stderr)
        elif options.names:
            print("\n".join(f"{name}: {line}" for line in outcome.lines))
        else:
            print(f"{name:<{width}}  {outcome.seconds:5.1f} s   {_counted(outcome)}")
    return int(any(outcome.problem for outcome in done.values()))


def _counted(outcome: Outcome) -> str:
    return ", ".join(f"{n} {MARKS[status].counted}" for status, n in outcome.tally) or outcome.lines[0]
