"""The wheel and the editable checkout: what is in them, and that the derivations are found from both."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def pip(*arguments: str | Path) -> None:
    """pip without the network and without build isolation."""
    offline = ["--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check", "-q"]
    subprocess.run([sys.executable, "-m", "pip", *map(str, arguments), *offline], check=True, cwd=ROOT)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", ROOT, "-w", folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    pip("install", wheel, "--target", folder, "--no-compile")
    return folder


def symattn(*arguments: str, path: Path, cwd: Path) -> str:
    command = [sys.executable, "-m", "symattn.cli", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(path)}
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=True).stdout


def derivation_files() -> set[str]:
    return {path.name for path in (ROOT / "derivations").glob("*.py")}


def test_the_wheel_holds_the_package_its_types_and_the_derivations(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "symattn/py.typed" in names
    assert "symattn/ops/rows.py" in names
    assert derivation_files() == {Path(n).name for n in names if re.fullmatch(r"symattn/derivations/[^/]+\.py", n)}
    assert not [n for n in names if n.startswith(("tests/", "derivations/"))]
    assert "symattn/document/render/page.css" in names
    assert {Path(n).suffix for n in names if n.startswith("symattn/")} == {".py", ".typed", ".css", ".md", ".png"}


@pytest.mark.slow
def test_derivations_are_found_from_a_wheel_in_another_folder(installed, tmp_path):
    shown = (
        "import symattn; from symattn.cli import main, notes; print(symattn.__file__); "
        "print(*notes.derivations()); main(['derive', 'attention-backward'])"
    )
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    run = subprocess.run([sys.executable, "-c", shown], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert run.stdout.startswith(str(installed)), "the installed copy is the one that is tested"
    assert "attention-backward" in run.stdout.partition("dV")[0]
    assert "dV = Pᵀ dO" in run.stdout


def test_derivations_are_found_from_the_checkout(tmp_path):
    assert "dV = Pᵀ dO" in symattn("derive", "attention-backward", path=ROOT, cwd=tmp_path)


def test_a_derivation_runs_as_a_script():
    script = ROOT / "derivations" / "softmax_jacobian.py"
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert "diag(p) − p pᵀ" in run.stdout


def test_the_readme_gives_its_two_commands_each_alone_in_a_block():
    blocks = re.findall(r"^```bash\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    assert blocks == [
        "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/symattn derive attention-backward\n",
        ".venv/bin/pytest -n auto\n",
    ]


def test_the_readme_shows_what_its_derivation_prints():
    readme = (ROOT / "README.md").read_text()
    variables: dict = {}
    for example in doctest.DocTestParser().get_examples(readme):
        exec(example.source, variables)
    assert f"```text\n{variables['D'].text().strip()}\n```" in readme


def test_pages_of_the_guide_lead_to_files_that_are_there():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        linked = re.findall(r"\]\(([^):#]+)\)", page.read_text())
        assert not [path for path in linked if not (page.parent / path).is_file()], page
    assert {path.name for path in (ROOT / "docs").glob("*.md")} == set(
        re.findall(r"\(docs/(\w+\.md)\)", (ROOT / "README.md").read_text())
    )


def test_the_project_states_what_it_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    assert project["dependencies"] == ["sympy>=1.14", "numpy>=2.0", "python-flint"]
    assert project["scripts"] == {"symattn": "symattn.cli:main"}


def test_the_recipes_name_files_that_are_there():
    named = re.findall(r"`((?:symattn|tests|derivations|\.ci)/[\w./*]*)`", (ROOT / "CONTRIBUTING.md").read_text())
    assert len(named) > 12
    assert not [path for path in named if not list(ROOT.glob(path))]


def test_our_helpers_are_found_before_a_package_that_others_install_as_tests(tmp_path: Path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "__init__.py").write_text("")
    found = PathFinder.find_spec("tests", [str(ROOT), str(tmp_path)])
    assert found is not None
    assert found.origin == str(ROOT / "tests" / "__init__.py")
