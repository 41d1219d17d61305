"""``symattn list``: the derivations that come with symattn."""

from __future__ import annotations

import argparse

from . import notes


def add_options(command: argparse.ArgumentParser) -> None:
    """There are none."""


def run(options: argparse.Namespace) -> int:
    """One line a derivation: its name, and what it is about."""
    found = notes.derivations()
    width = max(map(len, found), default=0)
    for name, path in found.items():
        print(f"{name:<{width}}  {notes.about(path)}")
    return 0
