"""Sizes under linear inequalities are solved for: witnesses and counterexamples that blind draws do not meet."""

import pytest
import sympy

import symattn as sa
from symattn.proof.refute.samples import Sizes

k, m, n, q = sa.sizes("k m n q")
x, y, W = sa.tensor("x", n), sa.tensor("y", m), sa.tensor("W", n, m)
s = sympy.Symbol("s", integer=True, nonnegative=True)

READ = {
    "a sum of sizes": x[k + m : k + m + 3],
    "far behind them": x[k + m : k + m + 30],
    "a size and an offset": x[m + s : m + s + 3],
    "rows from a size on": W[k : k + 2],
    "twice a size": x[2 * k + 5 : 2 * k + 9],
    "a chain": x[m + 4 : m + 6] + y[k + 3 : k + 5],
    "what is left": x[k + m + 8 :][:4],
}


@pytest.mark.parametrize("name", READ)
def test_a_point_is_found_where_what_is_read_lies_inside(name):
    part = READ[name]
    verdict = sa.prove(2 * part, part + part)
    assert verdict.status == "proved"
    assert verdict.proof.witness is not None
    assert verdict.proof.check()
    assert sa.prove(2 * part, part).status == "refuted"


GIVEN = {
    "one": [k + m + 30 <= n],
    "several": [sympy.Le(2 * m + 3 * k + 70, n), k >= m + 5, m > 40],
    "from above": [k + m + q <= n, n <= 7, m >= 3],
    "joined": [(k + 20 <= m) & (m + 20 <= n)],
    "an equality": [sympy.Eq(2 * n, 3 * m), m >= 50],
    "fractions": [n / 3 >= m + 15],
}


@pytest.mark.parametrize("name", GIVEN)
def test_relations_that_hold_somewhere_are_shown_to(name):
    given = GIVEN[name]
    sizes = Sizes([x], given).least()
    assert all(relation.subs(sizes) == sympy.true for relation in given)
    verdict = sa.prove(2 * x, x + x, given=given)
    assert verdict.proof.witness is not None
    assert "no example" not in str(verdict)
    assert verdict.proof.check()
    assert sa.prove(2 * x, x, given=given).status == "refuted"


def test_sizes_that_fit_nowhere_are_not_made_up():
    assert Sizes([x], [n * n + 5 <= n]).least() is None
    assert Sizes([x], [m + k + 3 <= n, n <= 4]).least() is None
