"""``sa.scan``: a loop with a symbolic number of steps, held against the loop written out and against PyTorch."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.core.node import topological
from symattn.facts.alike import facts
from symattn.proof.refute.refuter import Search
from symattn.recurrence.body import loop_of
from symattn.recurrence.record import scan_op
from symattn.recurrence.scans import states_and_outputs
from symattn.recurrence.unrolled import unrolled

from ..compiled import code
from .steps import (
    LOOPS,
    STEPS,
    A,
    B,
    K,
    Q,
    T,
    V,
    cell,
    d,
    drawn,
    e,
    gamma,
    linear,
    online,
    online_mean,
    x,
)


def with_gradients(y: Any, arguments: list[Any]) -> Any:
    """A function of the arguments that gives a tensor and its gradients."""
    wanted = [a for a in arguments if a is gamma or a.kind == "real"]
    return sa.lambdify(arguments, [y, sa.gradient(sa.sum(sa.sin(y)), wanted)])


@pytest.mark.parametrize("name", LOOPS)
def test_values_and_gradients_are_those_of_the_loop_written_out(name: str) -> None:
    y = LOOPS[name]()
    written_out = unrolled(y.subs(T, STEPS))
    assert any(node.op is scan_op for node in topological([y]))
    assert not any(node.op is scan_op and node.shape[:1] == (STEPS,) for node in topological([written_out]))
    arguments = [*y.tensors, *([gamma] if gamma in y.free_symbols else [])]
    f = with_gradients(y, arguments)
    g = with_gradients(written_out, [a if a is gamma else a.subs(T, STEPS) for a in arguments])
    values = drawn(arguments, np.random.default_rng(0))
    for a, b in zip(f(*values), g(*values), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_code_is_entries_and_gradients_are_differences() -> None:
    y = LOOPS["gated linear attention"]()
    assert "central differences" in sa.lambdify([K, V, Q, gamma], sa.gradient(sa.sum(y**2), [K, V, Q, gamma])).check()


def test_tangents_and_second_derivatives() -> None:
    y = sa.scan(cell, sa.zeros(d), K)[1]
    short, k = unrolled(y.subs(T, 3)), K.subs(T, 3)
    rng = np.random.default_rng(1)
    values = rng.normal(size=(3, 2)), rng.normal(size=(2, 2))
    for of in (
        lambda y, k: sa.jacobian(y, k),
        lambda y, k: sa.hvp(sa.sum(sa.sin(y)), k, k),
        lambda y, k: sa.jvp(y, {k: k}),
    ):
        one, other = (sa.lambdify([k, A], of(y, k))(*values) for y, k in ((y, K), (short, k)))
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_one_loop_gives_all_values_and_takes_loop_axes() -> None:
    S, O = sa.scan(linear, sa.zeros(d, e), (K, V, Q))
    f = sa.lambdify([K, V, Q, gamma], [S, O])
    assert f.source.count("for t in") == f.source.count("def loop") == 1
    rng = np.random.default_rng(2)
    k, v, q = rng.normal(size=(5, 2, STEPS, 3)), rng.normal(size=(2, STEPS, 2)), rng.normal(size=(STEPS, 3))
    state, out = f(k, v, q, 0.5)
    assert state.shape == (5, 2, 3, 2)
    assert out.shape == (5, 2, STEPS, 2)
    np.testing.assert_allclose(out[3, 1], f(k[3, 1], v[1], q, 0.5)[1], rtol=1e-12)


def test_a_gradient_runs_forward_once_and_keeps_no_more_than_is_used() -> None:
    S, O = sa.scan(linear, sa.zeros(d, e), (K, V, Q))
    g = sa.gradient(O, [K, V, Q])
    everything = sa.lambdify([K, V, Q, gamma, g.cotangent], [S, O, g]).source
    assert everything.count("def loop") == everything.count("for t in") == 2
    of_keys = sa.gradient(O, [K])
    assert sa.lambdify([V, Q, gamma, of_keys.cotangent], of_keys).source.count("for t in") == 1
    out = sa.lambdify([K, V, gamma], S).source
    assert "out0" not in out
    assert "x_2" not in out


def test_what_one_loop_runs_through_another_may_take_whole() -> None:
    runs = sa.scan(lambda s, u: (s + 1, s * u), sa.zeros(T), x)[1]
    takes = sa.scan(lambda s, _: (s + 1, s * x), sa.zeros(T), length=T)[1]
    assert "code equals entries" in sa.lambdify([x], [runs, takes]).check()


def test_a_sequence_may_be_read_twice() -> None:
    """As a tangent that is the sequence itself: the step is linear in all three."""
    S, O = sa.scan(linear, sa.zeros(d, e), (K, V, Q))
    tangent = sa.jvp(O, {K: K, V: V, Q: Q})
    f = sa.lambdify([K, V, Q, gamma], [O, S, tangent])
    out, _, moved = f(*drawn([K, V, Q], np.random.default_rng(6)), 0.5)
    np.testing.assert_allclose(moved, 3 * out, rtol=1e-12)


def test_a_gradient_runs_no_loop_again_for_the_names_that_it_gives_to_sequences() -> None:
    """Sequences that are computed themselves have names there."""
    W = sa.tensor("W", d, d)
    S, O = sa.scan(linear, sa.zeros(d, e), (sa.softmax(K @ W), V, sa.tanh(Q @ W)))
    g = sa.gradient(sa.sum(O**2) + sa.sum(S), [K, V, Q, W])
    f = sa.lambdify([K, V, Q, W, gamma], [O, g])
    assert f.source.count("for t in") == 2  # forward, with the states that the way back reads, and back
    assert "code equals entries" in f.check()
    second = sa.lambdify([K, V, Q, W, gamma], [g[V], sa.gradient(sa.sum(g[V] ** 2), [V])])
    assert "code equals entries" in second.check()


def test_loops_that_read_one_another_stay_apart() -> None:
    """The second begins as the first does and makes the same states, and reads what the first gives."""
    first = sa.scan(lambda s, k: (s + k, s), B, K)[1]
    second = sa.scan(lambda s, r: (s + r[0], s * r[1]), B, (K, first))[1]
    f = sa.lambdify([B, K], [first, second])
    assert f.source.count("for t in") == 2
    assert "code equals entries" in f.check()


# --- one node ---


def test_loops_that_are_written_alike_are_one() -> None:
    y = sa.scan(linear, sa.zeros(d, e), (K, V, Q))[1]
    assert y is sa.scan(lambda W, r: linear(W, r), sa.zeros(d, e), [K, V, Q])[1]
    assert y is not sa.scan(linear, sa.ones(d, e), (K, V, Q))[1]
    assert y.free_symbols == {T, d, e, gamma}
    assert set(y.tensors) == {K, V, Q}
    assert len(topological([y])) <= 10
    assert pickle.loads(pickle.dumps(y)) is y
    assert y.subs({T: 2, gamma: 3}).shape == (2, e)
    assert gamma not in y.subs({gamma: 3}).free_symbols
    assert y.subs({K: Q + K}) is sa.scan(linear, sa.zeros(d, e), (Q + K, V, Q))[1]
    assert y.subs({d: 5}) is sa.scan(linear, sa.zeros(5, e), (K.subs(d, 5), V, Q.subs(d, 5)))[1]
    with pytest.raises(sa.ShapeError, match="differ in the number of steps"):
        y.subs({K: sa.tensor("L", "S d")})


@pytest.mark.parametrize("name", LOOPS)
def test_graphs_and_code_are_as_large_for_any_number_of_steps(name: str) -> None:
    y = LOOPS[name]().subs(gamma, 2)
    sizes = set()
    for steps in (5, 1_000_005):
        made = y.subs(T, steps)
        gradients = sa.gradient(sa.sum(made), [x for x in made.tensors if x.kind == "real"])
        source = code(sa.lambdify(list(made.tensors), [made, gradients])).partition("def check_gradient")[0].strip()
        sizes.add((len(topological([made])), len(topological(gradients.values())), source.count("\n")))
    assert len(sizes) == 1


def test_entries_at_sizes() -> None:
    state, _ = sa.scan(linear, sa.zeros(d, e), (K, V, Q))
    assert str(state.as_explicit({T: 2, d: 1, e: 1})[0]) == "gamma*K[0, 0]*V[0, 0] + K[1, 0]*V[1, 0]"
    with pytest.raises(sa.ShapeError, match="give a number for T"):
        state.as_explicit({d: 1, e: 1})


def test_the_loops_of_an_expression_are_listed_inputs_first() -> None:
    (S, O), first = sa.scan(linear, sa.zeros(d, e), (K, V, Q)), sa.scan(cell, B, K)[1]
    assert sa.scans(sa.sum(O) + sa.sum(S)) == (O,)
    second = sa.scan(cell, first[0], first)[0]
    assert sa.scans(second) == (first, second)
    assert sa.scans(K @ A) == ()
    assert len(sa.scans(sa.gradient(second, [K]))) == 4  # two forwards, and both backwards
    with pytest.raises(sa.OperandError, match="takes a tensor or a gradient"):
        sa.scans(3)


def test_the_values_of_a_loop_are_differentiated_by_one_loop() -> None:
    y = LOOPS["all of its values"]()
    assert len(sa.scans(y)) == 1
    assert len(sa.scans(sa.gradient(y, [A, B, K, x]))) == 3  # itself, with its states, and backwards
    assert len(sa.scans(sa.jacobian(y, K))) == 3


def test_a_loop_is_its_step_from_place_to_place() -> None:
    S, O = sa.scan(linear, sa.zeros(d, e), (K, V, Q))
    assert states_and_outputs(O) == ((S,), (O,))
    loop = loop_of(O)
    assert (loop.first, loop.sequences, loop.length) == ((sa.zeros(d, e),), (K, V, Q), T)
    elements, run = [x[0] for x in loop.sequences], O.params["body"].run
    after, outputs = run([*loop.first, *elements, *loop.given])
    assert sa.prove(outputs[0], sa.sum(Q[0] * K[0]) * V[0])
    assert run([*after, *elements, *loop.given])[0][0] is linear(after[0], (K[0], V[0], Q[0]))[0]


def test_a_step_may_descend_along_a_gradient_by_its_state() -> None:
    def step(W: Any, read: Any) -> Any:
        k, v = read
        return W - gamma * sa.gradient(sa.sum((k @ W - v) ** 2) / 2, [W])[W], None

    W = sa.scan(step, sa.zeros(d, e), (K, V))[0]
    assert str(W) == "scan(lambda s, x: (s - gamma * outer(x[0], x[0] @ s - x[1]), None), zeros(d, e), (K, V))[0]"
    moved = sa.scan(lambda s, u: (s + sa.jvp(sa.sin(s) * u, {s: u}), sa.gradient(u * u, [s])[s]), 0, x)
    assert str(moved[0]) == "scan(lambda s, x_1: (s + x_1 * (x_1 * cos(s)), None), 0, x)[0]"
    np.testing.assert_array_equal(sa.lambdify([x], moved[1] + 0 * x)(np.ones(3)), np.zeros(3))


# --- proofs ---


def cells(**changed: Any) -> Any:
    given = {"init": sa.zeros(d), "xs": K, "matrix": A, "sign": 1, "of": sa.tanh, "reverse": False, **changed}
    return sa.scan(
        lambda s, k: (given["of"](given["matrix"] @ s) + given["sign"] * k, None),
        given["init"],
        given["xs"],
        reverse=given["reverse"],
    )[0]


Pi, square = sa.tensor("Pi", T, T, permutation=True), sa.tensor("X", 3, 3)
DIFFERENT: list[Callable[[], Any]] = [  # the last states, no two of which are equal
    cells, lambda: cells(init=sa.ones(d)), lambda: cells(xs=Q), lambda: cells(matrix=A.T), lambda: cells(sign=-1),
    lambda: cells(of=sa.sin), lambda: cells(reverse=True), lambda: cells(xs=Pi @ K), lambda: cells(xs=2 * K),
    lambda: cells(xs=K + Q), lambda: cells(init=B),
]  # fmt: skip
R = sa.tensor("R", d, d, permutation=True)
FALSE: list[Callable[[], tuple[Any, Any]]] = [
    lambda: (cells(xs=K @ R), cells() @ R),
    lambda: (sa.scan(cell, B, Pi @ K)[1], Pi @ sa.scan(cell, B, K)[1]),
    lambda: (sa.scan(cell, B, K[::-1])[1], sa.scan(cell, B, K)[1][::-1]),
    lambda: (Pi @ sa.scan(cell, B, K)[1], sa.scan(cell, B, K)[1]),
    lambda: (sa.sum(sa.scan(cell, B, K)[1], axis=0), sa.scan(cell, B, K)[0]),
    lambda: (cells(xs=2 * K), 2 * cells()),
    lambda: (sa.scan(lambda s, _: (2 * s, s), 1, length=T)[0], sa.scan(lambda s, _: (2 * s, s), 1, length=d)[0]),
    lambda: (sa.scan(lambda s, _: (2 * s, s), 1, length=T + 1)[0], sa.scan(lambda s, _: (2 * s, s), 1, length=T)[0]),
    lambda: tuple(sa.scan(lambda s, r: (s * r[0] + r[1], s), 1, r)[0] for r in ((x, x**2), (x**2, x))),  # type: ignore[return-value]
    lambda: (sa.gradient(sa.sum(cells()), [K])[K], sa.ones(T, d)),
]
OF_THREE: list[Callable[[], Any]] = [
    lambda: sa.scan(lambda s, k: (s + k**2, None), sa.zeros(3), square)[0],
    lambda: sa.scan(lambda s, k: (s + k**2, None), sa.zeros(3), square.T)[0],
    lambda: sa.scan(lambda s, k: (s * k, None), sa.ones(3), square)[0],
    lambda: sa.scan(lambda s, k: (s * k, None), sa.ones(3), square.T)[0],
]


def is_proved(left: Any, right: Any) -> bool:
    return bool(sa.prove(left, right).status == "proved")


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_no_false_claim_is_proved_where_nothing_refutes_it(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Search, "compared", lambda self, point: None)
    pairs = [*itertools.combinations(DIFFERENT, 2), *itertools.combinations(OF_THREE, 2)]
    assert len(pairs) > 50
    assert [n for n, (a, b) in enumerate(pairs) if n % every == 0 and is_proved(a(), b())] == []
    assert [n for n, claim in enumerate(FALSE) if is_proved(*claim())] == []


@pytest.mark.parametrize("n", range(1, len(DIFFERENT)))
def test_what_differs_is_refuted(n: int) -> None:
    assert sa.prove(DIFFERENT[n](), DIFFERENT[0]()).status == "refuted"


def test_equal_inputs_give_equal_values() -> None:
    assert is_proved(cells(xs=K + K), cells(xs=2 * K))
    assert is_proved(sa.softmax(cells(init=A @ B)), sa.softmax(cells(init=sa.sum(A * B, axis=-1))))
    first, second = (sa.scan(lambda s, u: (s + u, s + u), 0, y)[1] for y in (x, x + x - x))
    assert is_proved(first, second)
    assert is_proved(first, sa.cumsum(x))  # by induction


def test_a_step_is_tidied_as_any_expression_is() -> None:
    assert sa.scan(lambda s, u: (u + 0 * s, None), 0, x)[0] is sa.scan(lambda s, u: (u, None), 0, x)[0]
    divided = sa.scan(lambda s, u: (u + 0 * (s / u), None), 0, x)[0]
    assert "is defined" in str(sa.prove(divided + x[0] - x[0], divided))


def test_a_step_without_a_value_is_a_condition() -> None:
    found = sa.prove(*(sa.scan(lambda s, u: (s / u, None), 1, y)[0] for y in (x + x, 2 * x)))
    assert "is defined" in str(found)
    assert "is defined" not in str(sa.prove(cells(xs=K + K), cells(xs=2 * K)))


def test_no_output_reads_what_comes_later() -> None:
    y, z = sa.scan(cell, sa.zeros(d), K)[1], sa.scan(cell, sa.zeros(d), K, reverse=True)[1]
    later, earlier = (lambda out, inp: inp[0] > out[0]), (lambda out, inp: inp[0] < out[0])
    asked = [(y, later), (z, earlier), (y, earlier), (z, later)]
    told = [sa.prove(sa.independent(of, K, when=when)).status for of, when in asked]
    assert told == ["proved", "proved", "refuted", "refuted"]


def test_what_does_not_matter_to_a_value_is_no_part_of_it() -> None:
    S, O = sa.scan(linear, sa.zeros(d, e), (K, V, Q))
    assert sa.prove(sa.independent(S, Q)).status == "proved"
    assert sa.prove(sa.independent(O, Q, when=lambda out, inp: inp[0] > out[0])).status == "proved"
    before = sa.scan(lambda s, u: (sa.tanh(s * u), s), 1, x)[1]
    told = [
        sa.prove(sa.independent(before, x, when=when)).status
        for when in (lambda out, inp: inp[0] >= out[0], lambda out, inp: inp[0] + 1 >= out[0])
    ]
    assert told == ["proved", "refuted"]
    begin, other = (-sympy.oo, 0, 0), sa.scan(online, (-sympy.oo, 0), x)[0][1]
    assert is_proved(sa.scan(online_mean, begin, (x, V[:, 0]))[0][1], other)
    assert not is_proved(sa.scan(online_mean, begin, (x, V[:, 0]))[0][2], other)


def test_a_value_that_may_be_minus_infinity_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Search, "compared", lambda self, point: None)
    before = sa.scan(lambda s, u: (sa.maximum(s, u), s), -sympy.oo, x)[1]
    for claim in (
        sa.lt(0, sa.exp(before)),
        sa.eq(sa.exp(before) > 0, sa.ones(T)),
        sa.eq(sa.maximum(before, x), before),
    ):
        assert sa.prove(claim).status == "unknown"
    assert "exp(scan(" in str(sa.prove(sa.exp(before) / sa.exp(before), sa.ones(T)).proof.side_conditions)
    assert is_proved(sa.exp(before + x) / sa.exp(x), sa.exp(before))


def test_bounds_and_moments_take_nothing_for_granted() -> None:
    total = sa.scan(lambda s, u: (s + u, None), 0, x)[0]
    assert sa.prove(sa.le(0, total)).status == "refuted"
    with pytest.raises(sa.NoRuleError):
        sa.expectation(total, {x: sa.iid(mean=1, variance=1)})


# --- gradients ---


def test_a_gradient_says_where_it_comes_from() -> None:
    assert str(sa.gradient(sa.scan(lambda s, u: (s + u**2, None), 0, x)[0], [x])).endswith("step by step backwards")


def test_gradients_stop_within_a_step_as_elsewhere() -> None:
    y = sa.scan(lambda s, u: (s + u * sa.stop_gradient(u), None), 0, x)[0]
    f = sa.lambdify([x], sa.gradient(y, [x]))
    np.testing.assert_allclose(f(np.array([1.0, 2.0]))[0], [1, 2])
    assert "differences" not in f.check()


def test_what_is_not_smooth_in_a_step_is_said() -> None:
    y = sa.scan(lambda s, u: (s + sa.relu(u), None), 0, x)[0]
    assert any("relu" in condition for condition in sa.gradient(y, [x]).side_conditions)


def test_no_permutation_passes_through_a_recurrence_or_a_function_of_rows() -> None:
    assert facts(sa.scan(cell, B, K)[1]).groups == ()
    assert [group.outputs for group in facts(sa.unknown("f", K, rowwise=True)).groups] == [(-2,)]
