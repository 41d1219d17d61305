"""The command line: ``symattn list``, ``derive``, ``verify``, ``grad``, ``eval``, ``prove`` and ``variance``.

What a user gets wrong ends in one line on stderr and exit code 2; nothing is left half-written.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from ..errors import SymattnError
from . import arrays, claims, expressions, moments, notes


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(argv)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has gone, as in ``symattn list | head -1``
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (SymattnError, OSError) as problem:
        print(f"symattn: error: {problem}", file=sys.stderr)
        return 2
    return code


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"symattn: error: {message}\n(see {self.prog} --help)", file=sys.stderr)
        sys.exit(2)


def _parser() -> _Parser:
    parser = _Parser(prog="symattn", description="Attention mathematics: derived, proved, printed and run.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for family in (notes, expressions, arrays, claims, moments):
        family.add_commands(commands)
    return parser


__all__ = ["main"]
