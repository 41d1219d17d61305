"""The command line: ``symattn list``, ``derive``, ``verify``, ``build``, ``grad``, ``eval``, ``code``,
``diagnose``, ``check``, ``prove``, ``variance``.

Each verb is a file, which is loaded when the verb is chosen: ``symattn --help`` needs no SymPy. What a user gets wrong
ends in one line on stderr and exit code 2; nothing is left half-written, by ctrl-C neither.
"""

from __future__ import annotations

import argparse
import atexit
import errno
import gc
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

from ..errors import SymattnError

_VERBS = {
    "list": "the derivations that come with symattn",
    "derive": "print a derivation",
    "verify": "check every step of derivations: proved, or by numbers only",
    "build": "a site of derivations: each page in every format, with an index",
    "grad": "gradients of an expression, in closed form, with the steps",
    "eval": "an expression, and its gradients, on arrays",
    "code": "an expression, and its gradients, as a module of code that stands alone",
    "diagnose": "which known mistake explains the gradients of somebody's own code",
    "check": "whether the mathematics of your own documents is right",
    "prove": "whether a claim is true for all sizes and values",
    "variance": "mean and variance of what random tensors make",
}
SELDOM = (200_000, 10, 10)  # objects that are made before the collector of cycles looks at them
_OPTION = re.compile(r"-|-h|-o(.*\.npz)?|--([a-z]+(-[a-z]+)*(=.*)?)?", re.S)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if sys.stdout is None or sys.stdout.closed:
        print("symattn: error: standard output is closed: give it a file or a terminal", file=sys.stderr)
        return 2
    words = [_as_text(word) for word in (sys.argv[1:] if argv is None else argv)]
    try:
        with _collected_seldom():  # also while the verb is loaded
            options = _parser().parse_args(words)
            code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has gone, as in ``symattn list | head -1``
        _give_up_output()
        return 1
    except KeyboardInterrupt:
        print("symattn: stopped", file=sys.stderr)
        return 130
    except (SymattnError, OSError) as problem:
        print(f"symattn: error: {_said(problem)}", file=sys.stderr)
        if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
            _give_up_output()
        return 2
    return code


@contextmanager
def _collected_seldom() -> Iterator[None]:
    """Cycles are looked for now and then only: a command ends soon, and each look goes through all that is loaded."""
    before = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    atexit.register(gc.freeze)  # nor at the end, when Python would take all of SymPy apart
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _said(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.filename and not isinstance(problem, SymattnError):
        return f"{problem.filename}: {problem.strerror}"
    return str(problem)


def _give_up_output() -> None:
    """Sends what is still to be written nowhere, so that Python does not fail on it at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _as_text(word: str) -> str:
    """An expression such as ``-abs(Z)`` with a space before it, by which argparse knows it from an option."""
    return f" {word}" if word.startswith("-") and not _OPTION.fullmatch(word) else word


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"symattn: error: {message}\n(see {self.prog} --help)", file=sys.stderr)
        sys.exit(2)


class _Verb(_Parser):
    """The options of one verb, which has parsing done only where it is chosen."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        verb = import_module(f".{self.prog.rpartition(' ')[2]}", __name__)
        verb.add_options(self)
        self.set_defaults(run=verb.run)
        return super().parse_known_args(args, namespace)


def _parser() -> _Parser:
    parser = _Parser(prog="symattn", description="Attention mathematics: derived, proved, printed and run.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Verb)
    for name, does in _VERBS.items():
        commands.add_parser(name, help=does)
    return parser


__all__ = ["main"]
