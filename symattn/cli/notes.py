"""Derivations by name, those that come with symattn, or by path, those that somebody wrote."""

from __future__ import annotations

import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from ..core.naming import nearest
from ..document.derivation import Derivation
from ..errors import OperandError, described


def derivations() -> dict[str, Path]:
    """The derivations by name: those inside the installed package, else those of the checkout it runs from."""
    here = Path(__file__).resolve().parent.parent
    folder = here / "derivations"
    if not folder.is_dir():
        folder = here.parent / "derivations"
    return in_folder(folder)


def in_folder(folder: Path) -> dict[str, Path]:
    """The files of a folder by their names as people type them."""
    return {path.stem.replace("_", "-"): path for path in sorted(folder.glob("[!_]*.py"))}


def chosen(names: list[str]) -> dict[str, Path]:
    """The files of some names, files and folders, of all that come with symattn unless there are any.

    Raises OperandError, which lists the known ones, for any other name.
    """
    known = derivations()
    found = dict[str, Path]()
    for name in names or known:
        path = Path(name)
        if name in known:
            found[name] = known[name]
        elif name and path.is_dir():
            found |= in_folder(path)
        elif path.suffix == ".py":
            found[path.stem.replace("_", "-")] = path
        else:
            raise OperandError(f"there is no derivation {name!r}: {nearest(name, known)}; known are {', '.join(known)}")
    return found


def load(name: str) -> Derivation:
    """The derivation of a name or in a file. Raises OperandError where there is none."""
    ((called, path),) = chosen([name]).items()
    return read(path).checked_by(f"symattn verify {called if called == name else path}")


def read(path: Path) -> Derivation:
    """The derivation in a file, which is run. Raises OperandError that says what is wrong with it, in one line."""
    if not path.is_file():
        raise OperandError(f"there is no file {path}")
    spec = spec_from_file_location(f"symattn_derivation_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        made = getattr(module, "derivation", None)
        note = made() if callable(made) else None
    except Exception as problem:  # of somebody's file, whatever it is
        raise OperandError(f"{path}{_line(problem, path)}: {type(problem).__name__}: {problem}") from problem
    if made is None:
        raise OperandError(f"{path} has no function derivation() that returns a sa.Derivation")
    if not isinstance(note, Derivation):
        raise OperandError(f"{path}: derivation() returns {described(note)}, and not a sa.Derivation")
    return note


def _line(problem: Exception, path: Path) -> str:
    """Where in the file it happened."""
    if isinstance(problem, SyntaxError):
        return f", line {problem.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == str(path)]
    return f", line {lines[-1]}" if lines else ""
