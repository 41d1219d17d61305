"""Random declared operations: their NumPy, derivatives and entries against the entry formula, spelled out by hand."""

import random

import numpy as np
import pytest
import sympy

import symattn as sa

from ..shares import one_in

N = 4
SHAPES = {"n -> n": ("n",), "n ->": ("n",), "n, n -> n": ("n", "n"), "n n -> n": ("n n",), "n -> n n": ("n",)}


class Drawn:
    """A random entry formula: a function of an index and of readers, the same one each time it is called."""

    def __init__(self, seed):
        self.seed = seed

    def __call__(self, index, *inputs):
        self.rng = random.Random(self.seed)
        size = inputs[0].shape[0]
        at = list(index) or [0, size - 1]
        return self.formula(at, inputs, size, 3)

    def index(self, at, size):
        i, j = self.rng.choice(at), self.rng.choice(at)
        choices = (i, size - 1 - i, sympy.floor(i / 2), sympy.Mod(i + j, size), sympy.Mod(2 * i + 1, size))
        return sympy.sympify(self.rng.choice(choices))

    def read(self, at, inputs, size):
        x = self.rng.choice(inputs)
        return x[tuple(self.index(at, size) for _ in x.shape)]

    def formula(self, at, inputs, size, depth):
        part = lambda more=(): self.formula([*at, *more], inputs, size, depth - 1)  # noqa: E731
        kind = self.rng.choice(("read", "sum", "sum", "part", "case", "add", "times", "smooth", "place"))
        if depth == 0 or kind == "read":
            return self.read(at, inputs, size)
        if kind in ("sum", "part"):
            k = sympy.Symbol(f"k{depth}", integer=True)  # sums side by side share it
            low, high = (0, size - 1) if kind == "sum" else self.rng.choice(((0, at[0] - 1), (at[0], size - 1)))
            return sympy.Sum(part((k,)), (k, low, high))
        if kind == "case":
            i, j = self.rng.choice(at), self.rng.choice([*at, 1, size - 2])
            condition = self.rng.choice((i < j, i >= j, sympy.Eq(i, j), sympy.Ne(i, j)))
            return sympy.Piecewise((part(), condition), (part(), True))
        if kind == "add":
            return part() - 2 * part()
        if kind == "times":
            return part() * part()
        if kind == "place":
            return (1 + self.rng.choice(at)) * part()
        return self.rng.choice((sympy.tanh, sympy.sin, lambda e: sympy.exp(-(e**2)), lambda e: 1 / (2 + sympy.cos(e))))(
            part()
        )


class Spelled:
    """An input whose entries are symbols, read where the index is a number at last."""

    def __init__(self, name, rank):
        self.shape = (sympy.Integer(N),) * rank
        self.array = sympy.Function(name)

    def __getitem__(self, index):
        return self.array(*index)


def spelled(value):
    """The formula with every sum and every choice written out, outermost first."""
    value = sympy.sympify(value)
    if isinstance(value, sympy.Sum):
        *inner, (k, low, high) = value.limits  # the last one is the outermost
        term = sympy.Sum(value.function, *inner) if inner else value.function
        return sum((spelled(term.subs(k, at)) for at in range(int(low), int(high) + 1)), sympy.S.Zero)
    if isinstance(value, sympy.Piecewise):
        return spelled(next(part for part, condition in value.args if condition == sympy.true))
    return value.func(*map(spelled, value.args)) if value.args else value


def entries(entry, shape, rank_out):
    """All entries as formulas of symbols, and the symbols of each input."""
    readers = [Spelled(f"x{j}", len(axes.split())) for j, axes in enumerate(shape)]
    found = {at: spelled(entry(tuple(map(sympy.Integer, at)), *readers)) for at in np.ndindex((N,) * rank_out)}
    return found, [r.array for r in readers]


def numbers(formula, functions, arrays):
    by_name = dict(zip(functions, arrays, strict=True))
    reads = formula.atoms(sympy.Function) & {a for a in formula.atoms(sympy.Function) if a.func in by_name}
    return float(formula.xreplace({r: sympy.Float(by_name[r.func][tuple(map(int, r.args))], 30) for r in reads}))


@pytest.mark.parametrize("seed", one_in(4, range(60)))
def test_a_random_operation_is_what_its_entry_says(seed):
    shape, ranks = random.Random(seed).choice(list(SHAPES.items()))
    entry = Drawn(seed)
    op = sa.operation("f", shape=shape, entry=entry)
    inputs = [sa.tensor(f"x{j}", axes) for j, axes in enumerate(ranks)]
    out = op(*inputs)
    right, functions = entries(entry, ranks, out.rank)
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=(N,) * x.rank) for x in inputs]
    g = sa.gradient(sa.sum(sa.tanh(out)) if out.rank else sa.tanh(out), inputs)
    with np.errstate(over="ignore"):  # 1 / exp(x) of a large x
        value, *slopes = sa.lambdify(inputs, [out, g])(*arrays)
    want = np.array([numbers(formula, functions, arrays) for formula in right.values()]).reshape(np.shape(value))
    np.testing.assert_allclose(value, want, rtol=1e-9, atol=1e-11)
    weights = 1 - np.tanh(want) ** 2
    for number, (slope, x) in enumerate(zip(slopes, arrays, strict=True)):
        for place in np.ndindex(x.shape):
            moved = []
            for step in (1e-6, -1e-6):
                shifted = [a.copy() for a in arrays]
                shifted[number][place] += step
                moved.append([numbers(f, functions, shifted) for f in right.values()])
            difference = (np.array(moved[0]) - np.array(moved[1])) / 2e-6
            assert slope[place] == pytest.approx(float((difference * weights.ravel()).sum()), rel=1e-5, abs=1e-6)
