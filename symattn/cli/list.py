"""``symattn list``: the derivations that come with symattn."""

from __future__ import annotations

import argparse

from . import notes


def add_options(command: argparse.ArgumentParser) -> None:
    """There are none."""


def run(options: argparse.Namespace) -> int:
    """One line a derivation: its name and its title."""
    names = notes.derivations()
    width = max(map(len, names), default=0)
    for name in names:
        print(f"{name:<{width}}  {notes.load(name).title}")
    return 0
