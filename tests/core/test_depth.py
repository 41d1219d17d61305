"""Depth: long chains and heavily shared graphs are ordinary. No walk recurses, none visits a path twice."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import time

import pytest
import sympy

import symattn as sa
from symattn.graph.names import tree_size

from ..shares import one_in

T, d = sa.sizes("T d")
X, W = sa.tensor("X", T, d), sa.tensor("W", d, d)
c = sympy.Symbol("c", positive=True)


def chain(length, start=X):
    t = start
    for step in range(length):
        t = sa.tanh(t) if step % 2 else t + X
    return t


def doubled(levels, start=X):
    t = start
    for _ in range(levels):
        t = t + t
    return t


@pytest.fixture(scope="module", params=one_in(2, [20_000, 100_000]))
def long(request):
    return chain(request.param)


def test_a_long_chain_builds_and_counts_itself(long):
    length = long.height
    assert length >= 20_000
    assert tree_size(long) == length + 1 + length // 2
    assert str(long) == f"<tanh(...)[T, d], {length + 1} nodes>"


def test_a_long_chain_is_walked_without_recursion(long):
    assert long.free_symbols == {T, d}
    assert long.tensors == (X,)
    with pytest.raises(
        sa.OperandError, match=rf"a tree of {tree_size(long)} nodes, too large to read: name its parts by sa\.let"
    ):
        sa.latex(long)


def test_a_long_chain_is_substituted_and_put_back(long):
    other = sa.tensor("Y", T, 7)
    smaller = long.subs({d: 7})
    assert smaller.shape == (T, 7)
    assert smaller.height == long.height
    there = smaller.replace({X.subs({d: 7}): other})
    assert there.tensors == (other,)
    assert there.replace({other: X}) is long


def test_a_long_chain_is_copied_and_pickled(long):
    assert copy.deepcopy(long) is long
    stored = pickle.dumps(long)
    assert len(stored) < 30 * long.height
    assert pickle.loads(stored) is long


@pytest.mark.parametrize("length", one_in(2, [3000, 10_000]))
def test_a_long_chain_is_differentiated_forwards_and_backwards(length):
    long = chain(length)
    g = sa.gradient(long, [X])
    assert g[X].shape == X.shape
    assert sa.jvp(long, {X: sa.tensor("V", T, d)}).shape == X.shape


def test_a_long_chain_has_entries_as_a_system():
    assert 10 < len(sa.entries(chain(1000))) < 1000


@pytest.mark.parametrize("length", one_in(2, [100_000, 200_000]))
@pytest.mark.slow
def test_a_long_chain_is_freed_without_overflowing_the_stack(length):
    code = (
        "import symattn as sa\n"
        "X = t = sa.tensor('X', 'T d')\n"
        f"for step in range({length}): t = sa.tanh(t) if step % 2 else t + X\n"
        "del t\n"
        "from symattn.core.node import _nodes\n"
        "import gc; gc.collect()\n"
        "print(len(_nodes) < 1000)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"True\n")


def test_a_graph_of_2_to_the_100_paths_is_as_small_as_it_is_written():
    t = doubled(100)
    assert tree_size(t) == 2**101 - 1
    assert str(t) == "<(... + ...)[T, d], 101 nodes>"
    assert t.free_symbols == {T, d}
    assert t.subs({d: 3}).height == 100
    assert t.subs({X: doubled(20)}) is doubled(120)
    assert len(pickle.dumps(t)) < 20_000
    assert pickle.loads(pickle.dumps(t)) is t is copy.deepcopy(t)
    assert len(sa.entries(t)) < 10


@pytest.mark.parametrize(
    "step", [lambda t: t + t, lambda t: t * sa.tanh(t), lambda t: t @ t.T @ t, lambda t: sa.tanh(t) + t], ids=range(4)
)
def test_a_gradient_over_2_to_the_100_paths_stays_readable(step):
    t = X
    for _ in range(100):
        t = step(t)
    g = sa.gradient(t, [X])
    assert max(tree_size(s.expression) for s in (*g.steps, *g.definitions)) < 100


def test_named_intermediates_keep_a_deep_graph_printable():
    t = X
    for _ in range(100):
        t = sa.let("t", t + sa.softmax(t @ t.T) @ t)
    assert str(t) == "t_99 + softmax(t_99 @ t_99.T) @ t_99"
    assert sa.latex(t).startswith("t_{99} + ")


@pytest.mark.parametrize(
    "work",
    [
        lambda t: t,
        str,
        lambda t: t.subs({d: 5}),
        lambda t: t.free_symbols,
        lambda t: pickle.loads(pickle.dumps(t)),
        lambda t: sa.gradient(t, [X]),
    ],
    ids="build str subs free_symbols pickle gradient".split(),
)
@pytest.mark.slow
def test_work_grows_linearly_with_depth(work):
    assert seconds(lambda: work(chain(2000))) < 9 * seconds(lambda: work(chain(500))) + 0.05  # a quadratic walk: 16


def curvature(step, length):
    t = X
    for _ in range(length):
        t = step(t)
    return sa.hvp(sa.sum(t), X, sa.tensor("V", T, d))


@pytest.mark.parametrize(
    "step", [sa.tanh, lambda t: sa.let("t", sa.tanh(2 * t)), lambda t: sa.where(t > 0, t, sa.sin(t))], ids=range(3)
)
def test_second_derivatives_grow_linearly_with_depth(step):
    assert seconds(lambda: curvature(step, 80)) < 9 * seconds(lambda: curvature(step, 20)) + 0.05


def seconds(work):
    taken = []
    for _ in range(3):
        start = time.process_time()  # of this process alone, so that a busy machine changes little
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def scaled_by_a_symbol(length):
    t = X
    for _ in range(length):
        t = c * t - c * X  # SymPy is asked first, and is told what a tensor is
    return t


def sliced(length):
    t = X
    for _ in range(length):
        t = (t[None] @ W)[0]
    return t


@pytest.mark.slow
def test_building_by_scalar_symbols_grows_linearly_with_depth():
    assert seconds(lambda: scaled_by_a_symbol(1200)) < 9 * seconds(lambda: scaled_by_a_symbol(300)) + 0.05


def test_compiling_slices_writes_no_message_that_nobody_reads(monkeypatch):
    y = sliced(100)
    g = sa.gradient(sa.sum(y), [X, W])
    monkeypatch.setattr(sa.Tensor, "brief", lambda x: pytest.fail("a walk through the graph for each slice"))
    assert sa.lambdify([X, W], g)


@pytest.mark.parametrize("cotangent", one_in(2, [False, True]), ids="loss output".split())
def test_a_network_compiles_to_a_source_that_grows_linearly_with_its_depth(cotangent):
    def compiled(layers):
        weights = [sa.tensor(f"W_{k}", d, d) for k in range(layers)]
        t = X
        for weight in weights:
            t = sa.let("t", t + sa.tanh(t @ weight))
        g = sa.gradient(t if cotangent else sa.sum(t), weights)
        return sa.lambdify([X, *weights, *([g.cotangent] if cotangent else [])], g)

    assert len(compiled(80).source) < 5 * len(compiled(20).source)
    assert seconds(lambda: compiled(80)) < 9 * seconds(lambda: compiled(20)) + 0.05


@pytest.mark.slow
def test_an_entry_that_is_nested_too_deep_for_sympy_is_refused_with_the_way_out():
    y = x = sa.tensor("x", "n")
    for _ in range(400):
        y = sa.sigmoid(y)
    for ask in (lambda: y[sympy.Symbol("i", integer=True)], lambda: y.as_explicit({x.shape[0]: 1})):
        with pytest.raises(sa.OperandError, match=r"an entry of [\w(.)]+\[n\], a graph \d+ .* high, .*sa\.entries"):
            ask()


def _layers(count):
    y = X
    for _ in range(count):
        y = y + sa.softmax(y @ y.T) @ y
    return y


def _powers(count):
    y = X
    for _ in range(count):
        y = y * sa.tanh(y)
    return y


INDEX = sympy.symbols("i j", integer=True, nonnegative=True)
ENDLESS = {
    "an entry of 60 layers": lambda: _layers(60)[INDEX],
    "an entry of 1,000 layers": lambda: _layers(1000)[INDEX],
    "an entry of 2^60 paths": lambda: _powers(60)[INDEX],
    "an entry of 2^5,000 paths": lambda: _powers(5_000)[INDEX],
    "all entries of 2^60 paths": lambda: _powers(60).as_explicit({T: 1, d: 1}),
    "LaTeX of 2^20,000 paths": lambda: sa.latex(doubled(20_000)),
    "LaTeX of an entry of 2^5,000 paths": lambda: sa.latex(_powers(5_000), style="index"),
    "LaTeX of an entry of 60 layers": lambda: sympy.latex(_layers(60)),
}


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.slow
def test_what_would_have_no_end_is_refused_with_the_way_out(name):
    with pytest.raises(sa.OperandError, match=r"(parts|nodes), too (many|large) .*(sa\.entries|sa\.let)"):
        ENDLESS[name]()


def test_an_entry_that_stays_small_has_no_bound_on_its_paths():
    assert doubled(60)[INDEX] == 2**60 * X[INDEX]
