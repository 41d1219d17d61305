"""Plans of deep graphs: each layer as the one before, nothing planned twice, and no graph too large."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.codegen.program import schedule

from .test_programs import assert_same, planned

T, d, f = sa.sizes("T d f")
X, G = sa.tensor("X", T, d), sa.tensor("G", T, d)
LONG = {T: 1024, d: 64, f: 256}


def layers(count):
    """Attention and a feed-forward layer with a residual stream, so often; and all arguments."""
    y, given = X, [X]
    for k in range(count):
        W_q, W_k, W_v = (sa.tensor(f"W_{c}_{k}", d, d) for c in "qkv")
        U, D = sa.tensor(f"U_{k}", d, f), sa.tensor(f"D_{k}", f, d)
        y = y + sa.softmax(y @ W_q @ (y @ W_k).T / sympy.sqrt(d)) @ (y @ W_v)
        y = y + sa.tanh(y @ U) @ D
        given += [W_q, W_k, W_v, U, D]
    return y, given


def with_gradients(count):
    y, given = layers(count)
    return [*given, G], [y, sa.gradient({y: G}, given)]


def loops(program):
    return program.program.loops


def test_each_layer_more_takes_as_many_loops_more_forward_and_backward():
    counts = [len(loops(planned(*with_gradients(n), LONG))) for n in (1, 2, 3)]
    assert counts[2] - counts[1] == counts[1] - counts[0] <= 3


def test_no_matrix_of_scores_is_kept_for_the_way_back():
    scores = LONG[T] ** 2
    program = planned(*with_gradients(3), LONG)
    inside = [x for loop in loops(program) for x in loop.order]
    kept = [x for loop in loops(program) for x in loop.stored]
    whole = [x for stage in program.program.stages if isinstance(stage, list) for x in stage]
    extent = program.program.extent
    assert max(map(extent.of, inside)) == scores
    assert max(map(extent.of, [*kept, *whole])) < scores


def test_gradients_of_all_weights_are_added_up_in_the_loops_of_their_layer():
    arguments, outputs = with_gradients(2)
    program = planned(arguments, outputs, LONG)
    added = {x for loop in loops(program) for x in loop.added}
    names = {y.name for y in program.writer.outputs if y.node in added}
    assert {"dD_0", "dD_1", "dU_0", "dU_1", "dW_q_1"} <= names


def test_the_walks_of_a_plan_grow_with_the_number_of_layers(monkeypatch):
    walked = []

    def counted(*arguments):
        cut = cut_from(*arguments)
        walked.append(0 if cut is None else len(cut.axes) + len(cut.added))
        return cut

    cut_from = schedule.cut_from
    monkeypatch.setattr(schedule, "cut_from", counted)
    totals = []
    for n in (2, 4, 8):
        walked.clear()
        planned(*with_gradients(n), LONG)
        totals.append(sum(walked))
    assert totals[2] - totals[1] <= 2.2 * (totals[1] - totals[0])


def values(given, rng, length=9):
    sizes = {T: length, d: 4, f: 6}
    return [rng.normal(size=[sizes[n] for n in x.shape]) / 2 for x in given]


def test_layers_in_blocks_are_layers(rng):
    arguments, outputs = with_gradients(2)
    assert_same(arguments, outputs, values(arguments, rng), LONG, tolerance=1e-11, rows=4)


@pytest.mark.slow
def test_a_graph_of_thousands_of_nodes_is_planned(rng):
    arguments, outputs = with_gradients(48)
    program = planned(arguments, outputs, LONG, rows=4)
    assert len(program.writer.program.outputs) == 2 + 5 * 48
    assert sum(len(loop.order) for loop in loops(program)) > 3000
    small = values(arguments, rng, length=6)
    got = program.function(*small)
    want = sa.lambdify(arguments, outputs)(*small)
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-9 * (1 + np.abs(y).max()))
