"""Layers are folders, and imports run one way: downwards in this list, wherever in a file they stand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import symattn

PACKAGE = Path(symattn.__file__).parent
LAYERS = (
    "cli _pytest_plugin testing checking plot document reading attention language sympy_bridge declare probability "
    "proof codegen recurrence calculus normal_form printing facts graph ops scalars core errors"
).split()
PUBLIC = LAYERS[: LAYERS.index("attention") + 1]  # which may use the public names of the whole
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def module(path: Path) -> list[str]:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return list(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(source: ast.Module, home: list[str], is_package: bool) -> Iterator[str]:
    """What a source imports, anywhere in it: also inside functions, for type checking, and by a string."""
    package = home if is_package else home[:-1]
    for node in ast.walk(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{start}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
            yield ".".join(package) if is_inside(node) else named(node.args[0])


def named(written: ast.expr) -> str:
    return str(written.value) if isinstance(written, ast.Constant) else "symattn.?"


def is_inside(call: ast.Call) -> bool:
    """Whether ``import_module(f".{verb}", __name__)`` loads a module of the package that it stands in."""
    first, *others = call.args[0].values if isinstance(call.args[0], ast.JoinedStr) else [call.args[0]]
    of_own = [ast.unparse(package) for package in call.args[1:]] == ["__name__"]
    return bool(others) and of_own and named(first) == "."


def layer(name: str) -> str | None:
    """The layer of what is imported; the package itself is ``""``."""
    first, _, rest = name.partition(".")
    if first != "symattn":
        return None
    found = rest.partition(".")[0]
    return found if found in LAYERS or found == "?" else ""


def upward(source: ast.Module, home: list[str], is_package: bool) -> list[str]:
    own = LAYERS.index(home[1])
    wrong = []
    for name in imported(source, home, is_package):
        to = layer(name)
        public = to == "" and home[1] in PUBLIC
        if to is not None and not public and (to not in LAYERS or LAYERS.index(to) < own):
            wrong.append(name)
    return wrong


def test_imports_run_one_way() -> None:
    wrong = {
        str(path.relative_to(PACKAGE)): upward(tree(path), module(path), path.name == "__init__.py")
        for path in FILES
        if path != PACKAGE / "core" / "late.py"  # the one table of doors that open upwards
    }
    assert not {path: names for path, names in wrong.items() if names}


STARTING = {"__init__.py", "_pytest_plugin.py", "sympy_bridge/outgoing.py"}  # which load SymPy or NumPy when asked to


def test_imports_stand_at_the_top_but_where_start_up_is_light() -> None:
    inside = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for function in ast.walk(tree(path))
        if isinstance(function, ast.FunctionDef)
        and any(isinstance(part, (ast.Import, ast.ImportFrom)) for part in ast.walk(function))
    }
    assert inside == STARTING


def test_every_folder_is_a_layer() -> None:
    assert {module(path)[1] for path in FILES} == set(LAYERS)


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("from ..proof import engine", ["symattn.proof.engine"]),
        ("def f():\n    from ..proof.engine import prove", ["symattn.proof.engine.prove"]),
        ("if TYPE_CHECKING:\n    import symattn.proof.engine", ["symattn.proof.engine"]),
        ("from importlib import import_module\nimport_module('symattn.proof')", ["symattn.proof"]),
        ("import_module(name)", ["symattn.?"]),
        ("import_module(f'.{name}', 'symattn')", ["symattn.?"]),
        ("import_module(f'..{name}', __name__)", ["symattn.?"]),
        ("import_module(f'.{name}', __name__)", []),
        ("import symattn", ["symattn"]),
        ("from symattn import prove", ["symattn.prove"]),
        ("from ..ops import rows\nfrom . import deltas\nimport sympy", []),
    ],
)
def test_an_import_that_runs_upwards_is_found_wherever_it_stands(source: str, wrong: list[str]) -> None:
    assert upward(ast.parse(source), ["symattn", "normal_form", "here"], False) == wrong
