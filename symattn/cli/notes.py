"""The derivations that come with symattn, by name."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from ..document.derivation import Derivation
from ..errors import OperandError


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
