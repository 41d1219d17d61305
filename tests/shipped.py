"""The derivations that come with symattn, each run once in a process: nothing changes them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import symattn as sa
from symattn.cli import notes

FOLDER = Path(__file__).resolve().parents[1] / "derivations"
FILES = sorted(FOLDER.glob("[!_]*.py"))
SHIPPED = [path.stem for path in FILES]


def fresh(name: str) -> sa.Derivation:
    """The derivation of a file, run again."""
    return notes.read(FOLDER / f"{name}.py")


shipped = cache(fresh)
