"""Programs, block by block, against the same function without blocks: the library of variants, and hostile data."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.codegen.call.takes import Takes
from symattn.codegen.forms.planned import Planned
from symattn.codegen.graph import Graph
from symattn.codegen.program.axes import axes_of
from symattn.codegen.program.schedule import Loop
from symattn.ops.broadcasting import broadcast_to
from symattn.ops.leaves import computed, variable

from ..attention.zoo import SIZES, ZOO, arrays
from ..shares import one_in

LONG = {s: {"T": 1024, "S": 1024, "h": 8}.get(s.name, 64) for s in SIZES}  # which axes are worth cutting
T, S, d, e = sa.sizes("T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
B, M = sa.tensor("B", T, S), sa.tensor("M", T, S, binary=True)
X = sa.tensor("X", T, d)
W = sa.tensor("W", d, d)


def planned(arguments, outputs, sizes, **options):
    flat = [y for x in outputs for y in ([x] if isinstance(x, sa.Tensor) else x.values())]
    graph = Graph(flat)
    free = {s for x in computed(graph.outputs) for s in x.own_symbols if x.op is not variable}
    return Planned(graph, Takes(arguments, free), sizes, True, **options)


def with_gradient(y, wrt):
    G = sa.tensor("G", *y.shape)
    return G, [y, sa.gradient({y: G}, wrt)]


def assert_same(arguments, outputs, values, sizes, tolerance=1e-12, **options):
    """The program in blocks of few rows gives what the function without blocks gives; and the program."""
    program = planned(arguments, outputs, sizes, **options)
    f = sa.lambdify(arguments, outputs)
    known = {s: SIZES[s] for s in program.keywords}
    with np.errstate(all="ignore"):
        got = program.function(*values, **{name: known[s] for s, name in program.keywords.items()})
        want = f(*values, **{s.name: SIZES[s] for s in f.takes.keywords})
    for y, x in zip(got, want, strict=True):
        assert y.shape == np.shape(x)
        assert y.dtype == np.asarray(x).dtype
        scale = 1 + np.abs(np.where(np.isfinite(x), x, 0)).max(initial=0)
        np.testing.assert_allclose(y / scale, x / scale, rtol=0, atol=tolerance)
    return program


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("name", one_in(12, ZOO))
def test_variants_and_their_gradients_in_blocks(name, eager, rng):
    v = ZOO[name]()
    G, outputs = with_gradient(v.output, v.wrt)
    values = [*arrays(v, rng), rng.normal(size=[int(size.subs(SIZES)) for size in G.shape])]
    options = {"puts_off": not eager, "rows": 2 if eager else 3}
    assert_same([*v.wrt, *v.data, G], outputs, values, LONG, **options)
    assert_same([*v.wrt, *v.data], [v.output], values[:-1], LONG, **options)


def attention(scores=lambda z: z, **options):
    return sa.softmax(scores(Q @ K.T / sympy.sqrt(d)), **options) @ V


def by_index(formula):
    return sa.from_index((T, S), formula)


EMPTY = np.random.default_rng(0).random((7, 9)) < 0.4
EMPTY[2] = False
LOW = np.zeros((7, 9))
LOW[5], LOW[:, 7] = -np.inf, -np.inf
NOT = np.ones((7, 4))
NOT[2, 3] = np.nan
PEAKED = 50 * np.eye(7, 9)
HOSTILE = {  # what is computed, what more it is given, and what arguments are multiplied by
    "plain": (attention, {}, {}),
    "empty rows": (lambda: attention(where=M), {M: EMPTY}, {}),
    "empty rows by index": (lambda: attention(where=by_index(lambda i, j: j <= i - 3)), {}, {}),
    "a window that leaves the keys": (
        lambda: attention(where=by_index(lambda i, j: (j >= i + 3) & (j < i + 5))),
        {},
        {},
    ),
    "-oo in data": (lambda: attention(lambda z: z + B), {B: LOW}, {}),
    "nan in data": (attention, {}, {Q: NOT}),
    "large scores": (attention, {}, {Q: 1e3, K: 1e3}),
    "one share nearly 1": (lambda: attention(lambda z: z + B), {B: PEAKED}, {}),
    "a column that is nowhere seen": (lambda: attention(where=by_index(lambda i, j: j < 4)), {}, {}),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hostile_data_in_blocks(name, dtype, rng):
    build, more, factors = HOSTILE[name]
    y = build()
    sizes = {Q: (7, 4), K: (9, 4), V: (9, 3)}
    values = [(rng.normal(size=sizes[x]) * factors.get(x, 1)).astype(dtype) for x in (Q, K, V)]
    values += [x if x.dtype == bool else x.astype(dtype) for x in more.values()]
    G, outputs = with_gradient(y, [Q, K, V])
    values.append(rng.normal(size=(7, 3)).astype(dtype))
    tolerance = 2e-5 if dtype == np.float32 else 1e-12
    program = assert_same([Q, K, V, *more, G], outputs, values, LONG, tolerance, rows=3)
    [loop] = program.program.loops
    assert (loop.columns is not None) == ("index" in name or "window" in name)


LOOPS = [  # loop axes of queries, keys, values and the cotangent
    ((2, 3), (2, 3), (2, 3), (2, 3)),
    ((2, 3), (3,), (), (2, 3)),
    ((2, 1), (1, 3), (3,), (2, 3)),
    ((), (), (2,), (2,)),
]


@pytest.mark.parametrize("loops", LOOPS)
def test_gradients_are_summed_over_loop_axes_that_an_argument_lacks(loops, rng):
    G, outputs = with_gradient(attention(), [Q, K, V])
    cores = ((7, 4), (9, 4), (9, 3), (7, 3))
    values = [rng.normal(size=(*lead, *core)) for lead, core in zip(loops, cores, strict=True)]
    for x in values:
        x.flags.writeable = False
    assert_same([Q, K, V, G], outputs, values, LONG, rows=3)


def test_arrays_that_are_not_contiguous_in_blocks(rng):
    G, outputs = with_gradient(attention(), [Q, K, V])
    values = [rng.normal(size=(2 * n, m, 2)).transpose(2, 0, 1)[:, ::2] for n, m in ((7, 4), (9, 4), (9, 3), (7, 3))]
    assert_same([Q, K, V, G], outputs, values, LONG, rows=3)


def test_a_graph_and_its_lowered_graph_are_equal():
    P = sa.softmax(Q @ K.T / sympy.sqrt(d))
    lowered = planned([Q, K, V], [P @ V], LONG).program.outputs[0]
    program = sa.lambdify([Q, K, V], lowered)
    rng = np.random.default_rng(0)
    values = [rng.normal(size=n) for n in ((7, 4), (9, 4), (9, 3))]
    np.testing.assert_allclose(program(*values), sa.lambdify([Q, K, V], P @ V)(*values), rtol=1e-12)


def stored(program):
    return [sorted((str(x.shape), x in loop.added) for x in loop.stored) for loop in program.loops]


def test_attention_and_its_gradient_are_one_loop_over_queries_that_keeps_outputs_alone():
    G, outputs = with_gradient(attention(), [Q, K, V])
    [kept] = stored(planned([Q, K, V, G], outputs, LONG).program)
    assert kept == [("(S, d)", True), ("(S, e)", True), ("(T, d)", False), ("(T, e)", False)]


def test_what_is_larger_than_arguments_and_outputs_is_computed_again():
    H = X
    for k in range(2):
        H = sa.let(f"H{k}", sa.softmax(H @ W @ H.T) @ H)
    G, outputs = with_gradient(H, [X, W])
    loops = planned([X, W, G], outputs, LONG).program.loops
    assert any(loop.again for loop in loops)
    assert all(x.shape != (T, T) for loop in loops for x in loop.stored)


@pytest.mark.parametrize(
    ("build", "cuts", "sums"),
    [
        (lambda: Q @ K.T, {-2, -1}, 1),
        (lambda: sa.softmax(B), {-2}, 0),
        (lambda: sa.cumsum(B, axis=-1), {-2}, 0),
        (lambda: sa.sum(B, axis=0), {-1}, 1),
        (lambda: broadcast_to(sa.tensor("b", S), (T, S)), {-2, -1}, 0),
        (lambda: B[:, 1:], {-2}, 0),
        (lambda: sa.mean(B, axis=-1), {-1}, 0),
    ],
)  # fmt: skip
def test_axes_that_can_be_cut_follow_from_the_entry_formula(build, cuts, sums):
    axes = axes_of(build())
    assert (set(axes.cuts), len(axes.sums)) == (cuts, sums)


def test_an_operation_that_knows_its_size_is_not_cut():
    entries = {"over_length": lambda i, x: x[i] / x.shape[0], "twice": lambda i, x: 2 * x[i]}
    made = {name: sa.operation(name, shape="n -> n", entry=entry)(sa.tensor("x", T)) for name, entry in entries.items()}
    assert {name: set(axes_of(x).cuts) for name, x in made.items()} == {"over_length": set(), "twice": {-1}}


def test_every_loop_says_how_long_it_is():
    [loop] = planned([Q, K, V], [attention()], LONG).program.loops
    assert isinstance(loop, Loop)
    assert loop.length == T


# --- calls that are large enough ---

CORES = ((260, 8), (300, 8), (300, 4), (260, 4))


def large(rng, dtype=np.float32, loops=((2, 2),) * 4):
    return [rng.normal(size=(*lead, *core)).astype(dtype) for lead, core in zip(loops, CORES, strict=True)]


def set_entry(x, value):
    x[(0,) * (x.ndim - 2) + (5, 3)] = value
    return x


CALLS = {  # what is done with the arrays, and how many programs are used: none, one, or a second one as it is written
    "single": (lambda xs: xs, 1),
    "double": (lambda xs: [x.astype(np.float64) for x in xs], 1),
    "half": (lambda xs: [x.astype(np.float16) for x in xs], 0),
    "complex": (lambda xs: [x.astype(np.complex64) for x in xs], 0),
    "mixed": (lambda xs: [xs[0].astype(np.float64), *xs[1:]], 0),
    "nan": (lambda xs: [set_entry(xs[0], np.nan), *xs[1:]], 2),
    "inf": (lambda xs: [*xs[:2], set_entry(xs[2], np.inf), xs[3]], 2),
    "what overflows without its normaliser": (lambda xs: [*xs[:3], xs[3] * np.float32(2e37)], 2),
    "loop axes": (lambda xs: [xs[0], xs[1][0], xs[2][0, 0], xs[3]], 1),
    "small": (lambda xs: [x[..., :9, :] for x in xs], 0),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_large_calls_are_computed_in_blocks_with_the_same_values(name, rng):
    change, programs = CALLS[name]
    G, outputs = with_gradient(attention(), [Q, K, V])
    f = sa.lambdify([Q, K, V, G], outputs)
    values = change(large(rng))
    before = [x.copy() for x in values]
    tolerance = 1e-12 if values[-1].dtype == np.float64 else 2e-5
    for got, want in zip(f(*values), f._run(*values), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        scale = 1 + np.abs(np.where(np.isfinite(want), want, 0)).max()
        np.testing.assert_allclose(got / scale, want / scale, rtol=0, atol=tolerance)
    assert sum(x is not None for x in f._in_blocks.planned.values()) == programs
    for x, kept in zip(values, before, strict=True):
        np.testing.assert_array_equal(x, kept)


def test_threads_may_call_one_function_in_blocks(rng):
    f = sa.lambdify([Q, K, V], attention())
    values = large(rng)[:3]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: f(*values), range(16)))
    want = f._run(*values)
    assert all(np.allclose(got, want, rtol=1e-4, atol=1e-6) for got in results)


def test_no_matrix_of_queries_and_keys_is_kept_whole():
    G, outputs = with_gradient(attention(), [Q, K, V])
    f = sa.lambdify([Q, K, V, G], outputs)
    values = [np.ones((1500, 16), np.float32) for _ in range(4)]
    f(*values)
    tracemalloc.start()
    f(*values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 << 20 < 1500 * 1500 * 4


# --- masks ---

CONDITIONS = {  # of the row i and the column j, and whether blocks see a part of the columns alone
    "causal": (lambda i, j: j <= i, True),
    "the other way": (lambda i, j: j > i, True),
    "window": (lambda i, j: (j <= i) & (i - j < 3), True),
    "ahead": (lambda i, j: (j >= i + 3) & (j < i + 5), True),
    "never": (lambda i, j: (j <= i) & (j > i + 2), True),
    "aligned at the ends": (lambda i, j: j - i <= S - T, True),
    "two rows a column": (lambda i, j: 2 * j <= i, False),
    "either side": (lambda i, j: (j < i - 2) | (j > i + 2), False),
    "rows": (lambda i, j: i > 3, False),
}


@pytest.mark.parametrize("fill", ["softmax", "product"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_blocks_see_the_columns_that_a_mask_allows(name, fill, rng):
    condition, skips = CONDITIONS[name]
    M = by_index(condition)
    y = attention(where=M) if fill == "softmax" else sa.where(M, Q @ K.T, 0) @ V
    G, outputs = with_gradient(y, [Q, K, V])
    for rows, (t, s) in ((3, (7, 9)), (2, (9, 5)), (4, (8, 8))):
        values = [rng.normal(size=size) for size in ((t, 4), (s, 4), (s, 3), (t, 3))]
        program = assert_same([Q, K, V, G], outputs, values, LONG, rows=rows)
        assert all((loop.columns is not None) == skips for loop in program.program.loops)


PAD = sa.tensor("p", S, binary=True)
WRITTEN = {  # masks that are written otherwise than as one condition
    "two conditions": lambda: attention(where=by_index(lambda i, j: j <= i) & by_index(lambda i, j: i - j < 4)),
    "a condition and an argument": lambda: attention(where=by_index(lambda i, j: j <= i) & PAD),
    "an argument and a condition": lambda: attention(where=PAD & by_index(lambda i, j: j <= i)),
    "zeros and -oo": lambda: attention(lambda z: z + by_index(lambda i, j: choice((0, j <= i), (-sympy.oo, True)))),
    "slope": lambda: attention(lambda z: z + by_index(lambda i, j: choice((-sympy.oo, j > i), (j - i, True)))),
}
choice = sympy.Piecewise


@pytest.mark.parametrize("name", WRITTEN)
def test_blocks_see_the_columns_that_a_mask_allows_however_it_is_written(name, rng):
    G, outputs = with_gradient(WRITTEN[name](), [Q, K, V])
    values = [rng.normal(size=size) for size in ((7, 4), (9, 4), (9, 3), (7, 3))]
    arguments = [Q, K, V, G]
    if "argument" in name:
        arguments.append(PAD)
        values.append(rng.random(9) < 0.6)
    program = assert_same(arguments, outputs, values, LONG, rows=3)
    assert [loop.columns is not None for loop in program.program.loops] == [True]


def test_what_is_returned_is_zero_outside_of_the_mask(rng):
    P = sa.softmax(Q @ K.T, where=by_index(lambda i, j: j <= i))
    values = [rng.normal(size=size) for size in ((7, 4), (9, 4), (9, 3))]
    program = assert_same([Q, K, V], [P @ V, P], values, LONG, rows=3)
    assert all(loop.columns is not None for loop in program.program.loops)


def test_infinite_values_behind_a_mask_are_met_as_without_blocks(rng):
    f = sa.lambdify([Q, K, V], attention(where=by_index(lambda i, j: j <= i)))
    values = large(rng)[:3]
    values[2][..., 280, :] = np.inf
    with np.errstate(invalid="ignore"):
        got, want = f(*values), f._run(*values)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))


def test_gradients_that_others_are_made_from_are_summed_over_loop_axes_first(rng):
    G = sa.tensor("G", T, d)
    g = sa.gradient({sa.softmax(X @ X.T) @ X @ W: G}, [W])
    f = sa.lambdify([X, W, G], [W - g[W] / 100])
    values = [rng.normal(size=(2, 400, 8)), rng.normal(size=(8, 8)), rng.normal(size=(2, 400, 8))]
    [got], [want] = f(*values), f._run(*values)
    assert got.shape == (8, 8)
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_plan_says_what_is_blocked_written_added_up_and_skipped():
    G, outputs = with_gradient(sa.let("O", attention(where=by_index(lambda i, j: j <= i))), [Q, K, V])
    f = sa.lambdify([Q, K, V, G], outputs)
    plan = f.plan(T=4096, S=4096)
    first, loop, last = str(plan).splitlines()
    assert first == "At T = 4096, d = 64, S = 4096, e = 64, at each place of the loop axes:"
    assert loop == (
        "1. T in blocks of 128: 25 values; written O[T, e], dQ[T, d]; added up dK[S, d], dV[S, e]; "
        "rows i0 to i1 see the columns 0 to i1 of S, and others are skipped."
    )
    assert last == f"Beside arguments and outputs this takes {plan.memory / 2**20:.1f} MiB in float32."
    assert plan.memory < 8 << 20
    exec(plan.source, space := {})
    assert callable(space["f"])
    with pytest.raises(sa.errors.EvaluationError, match="'n' is no size of this function; it knows T, d, S, e"):
        f.plan(n=3)


def test_what_has_no_loop_is_computed_straight():
    assert str(sa.lambdify([W], sa.inv(W)).plan()) == "All is computed straight: nothing can be had block by block."


def test_what_fails_in_a_block_is_said_by_its_own_name(rng):
    t = sa.tensor("t", T, integer=True)
    f = sa.lambdify([X, t], sa.sum(sa.softmax(X @ X.T, axis=0) @ sa.take(X, t, 0), axis=0))
    x, places = rng.normal(size=(400, 8)), rng.integers(0, 400, 400)
    np.testing.assert_allclose(f(x, places), f._run(x, places), rtol=1e-12)
    places[300] = 400
    with pytest.raises(sa.errors.EvaluationError, match="index 400 of t is not a whole number from 0 to 399"):
        f(x, places)


def test_a_large_recurrence_with_a_mask_beside_it(rng):
    x, m = sa.tensor("x", T, d), sa.tensor("m", T, d, binary=True)

    def step(state, read):
        now, kept = read
        after = sa.where(kept, state / 2 + now, state)
        return after, after

    _, y = sa.scan(step, sa.zeros(d), (x, m))
    f = sa.lambdify([x, m], y)
    values = rng.normal(size=(64, 4096)), rng.random((64, 4096)) < 0.5
    np.testing.assert_array_equal(f(*values), f._run(*values))


def test_a_sum_over_a_part_of_an_axis_cuts_nothing_nor_does_its_derivative():
    x, k = sa.tensor("x", T), sympy.Symbol("k", integer=True)
    rest = sa.operation("rest", shape="n -> n", entry=lambda i, s: sympy.Sum(s[k] ** 2, (k, i[0] + 1, s.shape[0] - 1)))
    nodes = computed([rest(x), *sa.gradient(rest(x), x).values()])
    declared = [node for node in nodes if "rest" in node.op.name]
    assert declared
    assert not any(axes_of(node).cuts for node in declared)


@pytest.mark.parametrize("k", [-2, 0, 3])
@pytest.mark.parametrize("triangle", [sa.tril, sa.triu])
def test_blocks_see_the_columns_of_their_triangle_alone(triangle, k, rng):
    y = triangle(Q @ K.T, k) @ V
    G, outputs = with_gradient(y, [Q, K, V])
    values = [rng.normal(size=shape) for shape in ((7, 4), (9, 4), (9, 3), (7, 3))]
    program = assert_same([Q, K, V, G], outputs, values, LONG, rows=3)
    assert all(loop.columns is not None for loop in program.program.loops)


def test_what_is_infinite_beside_a_triangle_is_as_it_is_written(rng):
    y = sa.tril(Q @ K.T) @ V
    f = sa.lambdify([Q, K, V], [y])
    values = large(rng)[:3]
    f(*values)
    set_entry(values[2], np.inf)
    with np.errstate(all="ignore"):
        for got, want in zip(f(*values), f._run(*values), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
