"""The pytest plugin: the assertions of ``symattn.testing`` as fixtures, and what ``assert sa.prove(...)`` failed on.

pytest imports this file in every run, so it loads neither SymPy nor NumPy: a fixture does, when a test asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

_BEGINNING = 100  # characters of a verdict's repr that pytest shows even where it shortens it


def _offered(name: str) -> Callable[..., Any]:
    def fixture() -> Callable[..., None]:
        from . import testing  # which loads SymPy and NumPy

        assertion: Callable[..., None] = getattr(testing, name)
        return assertion

    fixture.__doc__ = f"``symattn.testing.{name}``."
    return pytest.fixture(name=name, scope="session")(fixture)


assert_proved = _offered("assert_proved")
assert_identity = _offered("assert_identity")
assert_gradient = _offered("assert_gradient")
assert_equivariant = _offered("assert_equivariant")
assert_matches = _offered("assert_matches")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--symattn-check`` has documents checked: with it, Markdown and LaTeX files that pytest is given are tests."""
    parser.addoption("--symattn-check", action="store_true", help="check the mathematics of documents")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.File | None:
    """A document is a test of its own."""
    if file_path.suffix not in (".md", ".tex", ".ipynb") or not parent.config.getoption("--symattn-check"):
        return None
    return _Document.from_parent(parent, path=file_path)


class _Document(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        yield _Checked.from_parent(self, name="mathematics")


class _Checked(pytest.Item):
    def runtest(self) -> None:
        from .checking.report import check_notes  # which loads SymPy and NumPy

        report = check_notes(self.path.read_text(encoding="utf-8"), self.path.suffix, self.path.name)
        if report.exit_code == 1:
            raise AssertionError(str(report))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """What was found, for a document that is wrong; anything else is a fault of ours."""
        return str(excinfo.value) if excinfo.errisinstance(AssertionError) else str(super().repr_failure(excinfo))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Iterator[None]:
    """Adds the verdicts that a failed assertion shows by their repr: the counterexample, or what is left open."""
    outcome: Any = yield
    report = outcome.get_result()
    if call.excinfo is None or not call.excinfo.errisinstance(AssertionError):
        return
    for verdict in _verdicts(call.excinfo):
        report.sections.append((f"the verdict of symattn, {verdict.status}", str(verdict)))


def _verdicts(failure: pytest.ExceptionInfo[BaseException]) -> list[Any]:
    """The verdicts at hand where an assertion failed, among them those that pytest keeps for its message."""
    module = sys.modules.get("symattn.proof.verdict")
    if module is None:
        return []
    message, values = str(failure.value), failure.traceback[-1].frame.f_locals.items()
    found = ((name, verdict) for name, value in values for verdict in _within(value, module.Verdict))
    kept = (v for name, v in found if name.startswith("@py_") or repr(v)[:_BEGINNING] in message)
    return list(dict.fromkeys(kept))


def _within(value: Any, kind: type) -> list[Any]:
    """A verdict, or those in a collection: the ones that are not proved, if there are such."""
    if isinstance(value, dict):
        value = list(value.values())
    found = [v for v in (value if type(value) in (list, tuple, set) else [value]) if isinstance(v, kind)]
    return [v for v in found if not v] or found
