"""python-flint changes SymPy's ground types; the results are the same with and without."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sympy, symattn as sa
Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
O = sa.softmax(0.1 * Q @ K.T / sympy.sqrt(sa.sizes("d"))) @ V
g = sa.gradient(O, [Q, K, V])
sa.lambdify([Q, K, V, g.cotangent], [O, g]).check()
print(sympy.external.gmpy.GROUND_TYPES)
print(g.latex())
print(sa.entries(O))
"""


@pytest.fixture(scope="module")
def printed():
    out = {}
    for types in ("python", "flint"):
        environment = {**os.environ, "SYMPY_GROUND_TYPES": types}
        command = [sys.executable, "-c", PROGRAM]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        out[types], _, rest = run.stdout.partition("\n")
        out[types, "rest"] = rest
    return out


@pytest.mark.slow
def test_both_ground_types_are_in_use(printed):
    assert (printed["python"], printed["flint"]) == ("python", "flint")


def test_results_do_not_depend_on_the_ground_types(printed):
    assert printed["python", "rest"] == printed["flint", "rest"]
    assert r"\frac{\mathrm{d}Z \, K}{10 \sqrt{d}}" in printed["flint", "rest"]
