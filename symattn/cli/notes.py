"""``symattn list``, ``derive`` and ``verify``: the derivations that come with symattn."""

from __future__ import annotations

import argparse
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import EvaluationError, OperandError

if TYPE_CHECKING:
    from ..document.derivation import Derivation


def add_commands(commands: Any) -> None:
    """The three commands and their options."""
    command = commands.add_parser("list", help="the derivations that come with symattn")
    command.set_defaults(run=_list)

    command = commands.add_parser("derive", help="print a derivation")
    command.add_argument("name", metavar="NAME", help="one of those that 'symattn list' shows")
    command.add_argument("--to", choices=("text", "latex"), default="text")
    command.set_defaults(run=_derive)

    command = commands.add_parser("verify", help="check every step of derivations: proved, or by numbers only")
    command.add_argument("names", metavar="NAME", nargs="*", help="those to check; all of them unless given")
    command.set_defaults(run=_verify)


def derivations() -> dict[str, Path]:
    """The derivations by name: those inside the installed package, else those of the checkout it runs from."""
    here = Path(__file__).resolve().parent.parent
    folder = here / "derivations"
    if not folder.is_dir():
        folder = here.parent / "derivations"
    return {path.stem.replace("_", "-"): path for path in sorted(folder.glob("[!_]*.py"))}


def load(name: str) -> Derivation:
    """The derivation of a name. Raises OperandError, which lists the known ones, for any other name."""
    known = derivations()
    if name not in known:
        raise OperandError(f"there is no derivation {name!r}; known are {', '.join(known) or 'none'}")
    spec = spec_from_file_location(f"symattn_derivation_{known[name].stem}", known[name])
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.derivation()


def _list(options: argparse.Namespace) -> int:
    names = list(derivations())
    width = max(map(len, names), default=0)
    for name in names:
        print(f"{name:<{width}}  {load(name).title}")
    return 0


def _derive(options: argparse.Namespace) -> int:
    note = load(options.name)
    print(note.latex() if options.to == "latex" else note.text())
    return 0


def _verify(options: argparse.Namespace) -> int:
    """One line a step; 1 if a step is false."""
    notes = {name: load(name) for name in options.names or derivations()}
    code = 0
    for name, note in notes.items():
        try:
            report = note.verify()
        except EvaluationError as problem:
            print(f"{name}: {problem}", file=sys.stderr)
            code = 1
        else:
            print("\n".join(f"{name}: {check}" for check in report))
    return code
