"""Joins of many parts: what grew with the square of their number grows with the number."""

import time

import numpy as np
import pytest
import sympy

import symattn as sa

n, m, T, d = sa.sizes("n m T d")
i = sympy.Symbol("i", integer=True, nonnegative=True)
MANY = 700
SECONDS = 15  # of a slow machine; each took minutes, or did not end, when it was quadratic


def parts(count, size=n, name="x"):
    return [sa.tensor(f"{name}{k}", size) for k in range(count)]


def within_time(ask):
    start = time.process_time()
    found = ask()
    assert time.process_time() - start < SECONDS
    return found


@pytest.mark.parametrize("count", [2, 8, 9, 16, 17, 33])
def test_an_entry_of_a_join_is_the_entry_of_its_part(count):
    sizes = [1 + k % 3 for k in range(count)]
    xs = [sa.tensor(f"x{k}", size) for k, size in enumerate(sizes)]
    entry = sa.concat(xs)[i]
    places = [(k, at) for k, size in enumerate(sizes) for at in range(size)]
    for place, (k, at) in enumerate(places):
        assert str(entry.xreplace({i: sympy.Integer(place)})) == f"x{k}[{at}]"


@pytest.mark.parametrize("count", [3, 9, 20])
def test_a_join_computes_what_its_entries_say(count):
    xs = parts(count)
    y = sa.concat([k * x for k, x in enumerate(xs)]) ** 2
    f = sa.lambdify(xs, [y, sa.gradient(sa.sum(y), xs)])
    f.check()
    arrays = list(np.random.default_rng(0).normal(size=(count, 4)))
    np.testing.assert_allclose(f(*arrays)[0], np.concatenate([k * x for k, x in enumerate(arrays)]) ** 2)
    np.testing.assert_allclose(f(*arrays)[-1], 2 * (count - 1) ** 2 * arrays[-1])


def test_an_entry_of_many_parts_is_found_and_is_not_nested_deep():
    xs = parts(MANY)
    entry = within_time(lambda: sa.concat(xs)[i])
    depth, level = 0, [entry]
    while level:
        depth, level = depth + 1, [part for node in level for part in node.args if part.func == entry.func]
    assert depth < 20
    assert len(within_time(lambda: sa.entries(sa.concat(xs)))) == 1
    assert str(sa.concat(parts(MANY, 3))[i].xreplace({i: sympy.Integer(1234)})) == "x411[1]"


def test_entries_of_what_reads_many_tensors_are_found_at_once():
    xs = [sa.exp(x) for x in parts(MANY)]
    assert within_time(lambda: sa.concat(xs)[i]).has(sympy.exp)


def test_gradients_of_many_parts_compile():
    xs = parts(MANY)
    g = within_time(lambda: sa.gradient(sa.sum(sa.concat(xs) ** 2), xs))
    f = within_time(lambda: sa.lambdify(xs, g))
    arrays = np.arange(2.0 * MANY).reshape(MANY, 2)
    np.testing.assert_allclose(f(*arrays), 2 * arrays)


PROVED = {
    "a number": lambda xs: (sa.concat([2 * x for x in xs]), 2 * sa.concat(xs)),
    "two joins": lambda xs: (sa.concat([x * sa.exp(x) for x in xs]), sa.concat(xs) * sa.exp(sa.concat(xs))),
    "a sum": lambda xs: (sa.concat([x + x for x in xs]), sa.concat([2 * x for x in xs])),
}


@pytest.mark.parametrize("name", PROVED)
def test_two_joins_of_many_parts_are_equal(name):
    assert within_time(lambda: sa.prove(*PROVED[name](parts(400))))


A, B = sa.tensor("A", T, n), sa.tensor("B", T, m)
C, D = sa.tensor("C", T, n), sa.tensor("D", T, m)
c, w = sa.tensor("c", T, 1), sa.tensor("w", n)
FEW = {
    "constant along the join": (sa.concat([A, B], axis=1) * c, sa.concat([A * c, B * c], axis=1)),
    "a mask": (
        sa.where(sa.concat([A > 0, B > 0], axis=1), sa.concat([A, B], axis=1), c),
        sa.concat([sa.where(A > 0, A, c), sa.where(B > 0, B, c)], axis=1),
    ),
    "cut alike": (sa.concat([A, B], 1) / sa.concat([C, D], 1), sa.concat([A / C, B / D], axis=1)),
    "one vector for all rows": (sa.concat([A, C], 0) * w, sa.concat([A * w, C * w], 0)),
    "cut elsewhere": (
        sa.concat([A, B], axis=1) + sa.concat([D, C], axis=1),
        sa.concat([D, C], axis=1) + sa.concat([A, B], axis=1),
    ),
}


@pytest.mark.parametrize("name", FEW)
def test_what_works_entry_by_entry_works_on_each_part(name):
    assert sa.prove(*FEW[name])


def test_parts_in_another_order_are_another_join():
    xs = parts(300)
    assert sa.prove(sa.concat(xs), sa.concat(xs[::-1])).status == "refuted"
