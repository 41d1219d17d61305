"""``import symattn`` is light: it brings in neither SymPy nor NumPy."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
import time

import pytest

import symattn as sa

LOADED = "import sys; print(sorted({'sympy', 'numpy', 'scipy', 'flint'} & set(sys.modules)))"


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_import_brings_in_neither_sympy_nor_numpy():
    assert run(f"import symattn; {LOADED}") == "[]"


@pytest.mark.slow
def test_the_first_name_used_brings_in_sympy_so_the_test_above_can_fail():
    assert "'sympy'" in run(f"import symattn; symattn.tensor; {LOADED}")


def test_errors_and_the_command_line_are_light_too():
    assert run(f"import symattn.cli; symattn.ShapeError; {LOADED}") == "[]"
    helped = f"from symattn.cli import main\ntry: main(['--help'])\nexcept SystemExit: {LOADED}"
    assert run(helped).endswith("[]")


def test_import_time_is_printed():
    def best(code: str) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            run(code)
            times.append(time.perf_counter() - start)
        return min(times)

    print(f"import symattn: {1000 * (best('import symattn') - best('pass')):.1f} ms over bare Python")


def test_every_public_name_is_there_and_nothing_else_is():
    for name in sa.__all__:
        assert getattr(sa, name) is getattr(sa, name)
    assert set(sa.__all__) <= set(dir(sa))


def test_public_names_are_those_of_two_modules_and_of_none_which_would_take_their_place():
    modules = {module.name for module in pkgutil.iter_modules(sa.__path__)}
    assert modules & set(sa.__all__) == {"attention", "plot"}


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="symattn' has no name 'softmin'"):
        _ = sa.softmin


def test_version_is_that_of_the_package():
    assert sa.__version__.split(".")[0].isdigit()
