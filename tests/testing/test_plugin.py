"""The pytest plugin: it is registered, offers its fixtures, costs nothing until one is used, and points at the test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import symattn as sa

from ..shares import one_in

Z = sa.tensor("Z", "T S")

HEAVY = """
import sys

def test_nothing_heavy_is_loaded():
    assert not {"sympy", "numpy", "flint", "scipy"} & set(sys.modules)
"""
USES = """
def test_a_fixture(assert_identity):
    pass
"""
FIXTURES = """
import symattn as sa
import symattn.testing

X = sa.tensor("X", "T d")

def test_fixtures(assert_proved, assert_identity, assert_gradient, assert_equivariant, assert_matches):
    assert assert_proved is symattn.testing.assert_proved
    assert assert_identity is symattn.testing.assert_identity
    assert assert_gradient is symattn.testing.assert_gradient
    assert assert_equivariant is symattn.testing.assert_equivariant
    assert assert_matches is symattn.testing.assert_matches
    assert_identity((X.T).T, X)
"""
FAILS = """
import symattn as sa

X = sa.tensor("X", "T d")

def test_identity(assert_identity):
    assert_identity(sa.exp(X), X)  # the line that is shown

def test_gradient(assert_gradient):
    assert_gradient(2 * X, X, lambda g: g)  # the line that is shown

def test_equivariant(assert_equivariant):
    assert_equivariant(sa.exp, X, "orthogonal")  # the line that is shown

def test_matches(assert_matches):
    assert_matches(lambda x: x + 1, sa.exp(X), [X])  # the line that is shown
"""


ASSERTS = """
import sympy
import symattn as sa

Z, x = sa.tensor("Z", "T S"), sa.tensor("x", "n")

def test_refuted():
    assert sa.prove(sa.softmax(2 * Z), sa.softmax(Z))

def test_by_name():
    verdict = sa.prove(sa.le(x, 1))
    assert verdict, "x is at most one"

def test_by_status():
    assert sa.prove(sa.exp(x), x).status == "proved"

def test_open():
    t = sympy.Symbol("t")
    arsinh = sa.elementwise(sympy.Lambda(t, sympy.asinh(t)), x)
    assert sa.prove(arsinh, sa.log(x + sa.sqrt(x**2 + 1)), budget=2)

def test_long():
    total = sum((k * x**k for k in range(1, 60)), x)
    assert sa.prove(total, total + 1)

def test_of_no_verdict():
    assert x is Z
"""
SIBLINGS = """
import pytest
import symattn as sa

Z, x = sa.tensor("Z", "T S"), sa.tensor("x", "n")
RIGHT, WRONG = (sa.softmax(Z + 1), sa.softmax(Z)), (sa.exp(x), x)

def test_not():
    assert not sa.prove(*RIGHT)

def test_both():
    assert sa.prove(*RIGHT) and sa.prove(*WRONG)

def test_either():
    verdict = sa.prove(*RIGHT)
    assert not verdict or sa.prove(*WRONG)

@pytest.mark.parametrize("sides", [WRONG])
def test_of_a_parameter(sides):
    assert bool(sa.prove(*sides)) is True

@pytest.fixture
def verdict():
    return sa.prove(*WRONG)

def test_of_a_fixture(verdict):
    assert verdict

def test_all():
    assert all([sa.prove(*RIGHT), sa.prove(*WRONG)])

def test_all_by_name():
    verdicts = {"right": sa.prove(*RIGHT), "wrong": sa.prove(*WRONG)}
    assert all(list(verdicts.values()))

def test_without_a_counterexample():
    assert sa.prove(*WRONG).counterexample is None
"""
SHOWN = {
    "test_not": ["proved"],
    "test_both": ["proved", "refuted"],
    "test_either": ["proved", "refuted"],
    "test_of_a_parameter[sides0]": ["refuted"],
    "test_of_a_fixture": ["refuted"],
    "test_all": ["refuted"],
    "test_all_by_name": ["refuted"],
    "test_without_a_counterexample": ["refuted"],
}


def run_pytest(folder: Path, *options: str, **files: str) -> subprocess.CompletedProcess[str]:
    """pytest in a folder of its own, with this plugin and no other from outside."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    alone = ["-c", os.devnull, "--rootdir", str(folder), "--confcutdir", str(folder), "-p", "no:cacheprovider"]
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": path}
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", *alone, "-p", "symattn._pytest_plugin", *options, str(folder)]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)


def test_the_plugin_is_registered():
    assert [e.value for e in entry_points(group="pytest11", name="symattn")] == ["symattn._pytest_plugin"]


def test_an_unrelated_run_loads_nothing_heavy(tmp_path):
    done = run_pytest(tmp_path, test_unrelated=HEAVY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


@pytest.mark.slow
def test_the_test_above_can_fail(tmp_path):
    """By a plugin that loads SymPy, and by a fixture that is used first."""
    loads = run_pytest(tmp_path, "-p", "loads_sympy", test_unrelated=HEAVY, loads_sympy="import sympy\n")
    assert loads.returncode == 1
    assert "1 failed" in loads.stdout
    used = run_pytest(tmp_path, test_a_user=USES, test_unrelated=HEAVY)
    assert "1 failed, 1 passed" in used.stdout


def test_the_fixtures_are_the_assertions(tmp_path):
    done = run_pytest(tmp_path, test_fixtures=FIXTURES)
    assert done.returncode == 0, done.stdout + done.stderr


def test_failures_point_at_the_line_of_the_test(tmp_path):
    done = run_pytest(tmp_path, "--tb=long", test_fails=FAILS)
    assert "4 failed" in done.stdout
    assert done.stdout.count("# the line that is shown") == 4
    assert done.stdout.count("is refuted") >= 3
    assert "__tracebackhide__" not in done.stdout
    assert "testing.py" not in done.stdout


def test_a_failed_assertion_of_a_verdict_shows_the_counterexample(tmp_path):
    done = run_pytest(tmp_path, test_asserts=ASSERTS)
    assert "6 failed" in done.stdout
    assert done.stdout.count("- the verdict of symattn, refuted -") == 4
    assert done.stdout.count("- the verdict of symattn, unknown -") == 1
    shown = done.stdout.partition("the verdict of symattn, refuted")[2].partition("____")[0]
    assert str(sa.prove(sa.softmax(2 * Z), sa.softmax(Z)).counterexample) in shown
    assert "nothing was found" in done.stdout or "tried: " in done.stdout


@pytest.mark.parametrize("options", one_in(3, [["--tb=long"], ["-q", "--tb=short"], ["-p", "xdist", "-n", "1"]]))
def test_verdicts_are_shown_in_every_kind_of_assertion_and_run(tmp_path, options):
    done = run_pytest(tmp_path, *options, test_siblings=SIBLINGS)
    assert f"{len(SHOWN)} failed" in done.stdout
    parts = re.split(r"\n_{3,} (test\S+) _{3,}\n", done.stdout.partition("short test summary")[0])
    shown = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert {name: re.findall(r"- the verdict of symattn, (\w+) -", text) for name, text in shown.items()} == SHOWN


def test_fixtures_are_listed_with_what_they_are(tmp_path):
    done = run_pytest(tmp_path, "--fixtures", test_unrelated=HEAVY)
    for name in ("assert_proved", "assert_identity", "assert_gradient", "assert_equivariant", "assert_matches"):
        assert f"{name} [session scope]" in done.stdout
        assert f"``symattn.testing.{name}``." in done.stdout


def test_documents_are_tests_where_that_is_asked_for(tmp_path):
    (tmp_path / "right.md").write_text("$A \\in \\mathbb{R}^{n \\times n}$, $(A^\\top)^\\top = A$")
    (tmp_path / "wrong.md").write_text("$A \\in \\mathbb{R}^{n \\times n}$, $A A^\\top = A^\\top A$")
    found = run_pytest(tmp_path, "--symattn-check")
    assert "1 failed, 1 passed" in found.stdout
    assert "wrong.md:1:35 refuted: A A^" in found.stdout
    assert run_pytest(tmp_path).returncode == 5  # no tests without it
