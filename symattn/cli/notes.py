"""Derivations by name, those that come with symattn, or by path, those that somebody wrote."""

from __future__ import annotations

import ast
import shlex
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from ..core.naming import nearest
from ..document.derivation import Derivation
from ..errors import OperandError, SymattnError, described


def derivations() -> dict[str, Path]:
    """The derivations that come with symattn, by name."""
    return in_folder(shipped("derivations"))


def shipped(name: str) -> Path:
    """A folder inside the installed package, else of the checkout it runs from."""
    here = Path(__file__).resolve().parent.parent
    return here / name if (here / name).is_dir() else here.parent / name


def in_folder(folder: Path) -> dict[str, Path]:
    """The files of a folder by their names as people type them."""
    return {path.stem.replace("_", "-"): path for path in sorted(folder.glob("[!_]*.py"))}


def chosen(names: list[str]) -> dict[str, Path]:
    """The files of some names, files and folders, of all that come with symattn unless there are any.

    Raises OperandError for any other name, with the nearest of those that are known, and for two files of one name.
    """
    known, found = derivations(), dict[str, Path]()
    for name in names or known:
        for called, path in _meant(name, known).items():
            if found.setdefault(called, path) != path:
                raise OperandError(f"{found[called]} and {path} are both called {called!r}: rename one of them")
    return found


def _meant(name: str, known: dict[str, Path]) -> dict[str, Path]:
    path = Path(name)
    if name in known:
        return {name: known[name]}
    if name and path.is_dir():
        if files := in_folder(path):
            return files
        raise OperandError(f"there is no derivation in the folder {name}")
    if path.suffix == ".py":
        return {path.stem.replace("_", "-"): path}
    raise OperandError(f"there is no derivation {name!r}: {nearest(name, known)}")


def one(name: str) -> tuple[str, Path]:
    """A name, as people type it again, and its file. Raises OperandError for what is none, or several."""
    if name and Path(name).is_dir():
        raise OperandError(f"{name} is a folder: name one of its files, or build it")
    ((called, path),) = chosen([name]).items()
    return (called if called == name else str(path)), path


def check_of(called: str) -> str:
    """The command that checks a derivation again, as a shell reads it."""
    return f"symattn verify {shlex.quote(called)}"


@contextmanager
def blamed(path: Path) -> Iterator[None]:
    """What is wrong here is said of a file, in one line."""
    try:
        yield
    except SymattnError as problem:
        raise OperandError(f"{path}: {in_one_line(problem)}") from None


def about(path: Path) -> str:
    """What a file says of itself in its first line, without being run."""
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return said.partition("\n")[0]


def read(path: Path) -> Derivation:
    """The derivation in a file, which is run. Raises OperandError that says what is wrong with it, in one line."""
    if not path.is_file():
        raise OperandError(f"there is no file {path}")
    spec = spec_from_file_location(f"symattn_derivation_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    try:
        with redirect_stdout(sys.stderr):  # what the file prints is no part of the page
            spec.loader.exec_module(module)
            made = getattr(module, "derivation", None)
            note = made() if callable(made) else made
    except (Exception, SystemExit) as problem:  # of somebody's file, whatever it is
        called = "" if isinstance(problem, SymattnError) else f"{type(problem).__name__}: "
        raise OperandError(f"{path}{_line(problem, path)}: {called}{in_one_line(problem)}") from problem
    if made is None:
        raise OperandError(f"{path} has no function derivation() that returns a sa.Derivation")
    if note is made:
        raise OperandError(
            f"{path}: derivation is {described(made)}, and not a function: write def derivation(): return ..."
        )
    if not isinstance(note, Derivation):
        raise OperandError(f"{path}: derivation() returns {described(note)}, and not a sa.Derivation")
    return note


def in_one_line(problem: BaseException) -> str:
    """What is wrong, without the row that points with a caret at a place of the row above."""
    said = problem.msg if isinstance(problem, SyntaxError) else str(problem)  # which has its line twice else
    return "; ".join(line.strip() for line in said.splitlines() if line.strip(" ^"))


def _line(problem: BaseException, path: Path) -> str:
    """Where in the file it happened."""
    if isinstance(problem, SyntaxError):
        return f", line {problem.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == str(path)]
    return f", line {lines[-1]}" if lines else ""
