"""Where the conditions of an induction hold both sides have equal values; each is said once, and of the claim."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.core.node import topological
from symattn.core.stated import Sentence
from symattn.ops.leaves import variable
from symattn.proof.verdict import Proof

from ..recurrences import QUESTIONS, B, K, Question, V, b, beta, d, e, mutants, proof_of, x

u, w, literal = sa.tensor("u"), sa.tensor("w", B * b), sa.tensor("x", 9)
_SIGNS = {"!=": operator.ne, ">": operator.gt, ">=": operator.ge, "<=": operator.le, "<": operator.lt}


def run(step: Callable[..., Any], start: Any, xs: Any) -> Any:
    return sa.scan(lambda s, x: (step(s, x), None), start, xs)[0]


def quotient(s: Any, x: Any) -> Any:
    return s / (1 + s * sa.sum(x))


def divided_delta() -> Question:
    def step(S: Any, read: Any) -> Any:
        rate, k, v = read
        return S + sa.outer(k, (v - k @ S) / rate), None

    weights = sa.inv(sa.diag(beta) + sa.tril(K @ K.T, -1)) @ V
    return Question(sa.scan(step, sa.zeros(d, e), (beta, K, V))[0], K.T @ weights)


def relative(start: Any) -> Question:
    """A sum relative to a running maximum, which may be 0."""

    def step(state: Any, x: Any) -> Any:
        (m, l), new = state, sa.maximum(state[0], x)
        return (new, l * m / new + x / new), None

    (m, l), _ = sa.scan(step, (start, 0), x)
    return Question(l * m, sa.sum(x), sa.induction(final=lambda m, x: (None, sa.sum(x) / m), free=0))


def unread() -> Question:
    """A free state that has no value where the other one has."""
    (_, total), _ = sa.scan(lambda s, x: ((sa.log(x), s[1] + x), None), (0, 0), x)
    return Question(total, sa.sum(x), sa.induction(final=lambda m, x: (None, sa.sum(x)), free=0))


def outputs() -> Question:
    made = x / sa.cumsum(x)
    return Question(sa.scan(lambda s, x: (s + x, x / (s + x)), 0, x)[1], made, sa.induction(sa.sum(x), made))


ALL = "scan(lambda s, x_1: (t := {}, t), {}, x)[1]"
CONDITIONS: dict[str, tuple[Callable[[], Question], tuple[str, ...]]] = {
    "elements": (lambda: Question(run(lambda s, x: s + x * x / x, 0, x), sa.sum(x)), ("x != 0",)),
    "a factor": (lambda: Question(run(lambda s, x: s * x / x, 1, x), sa.ones()), ("x != 0",)),
    "what is multiplied by 0": (lambda: Question(run(lambda s, x: s + 0 * sa.log(x), 1, x), sa.ones()), ("x > 0",)),
    "both sides": (lambda: Question(run(lambda s, x: s + sa.log(x), 0, x), sa.sum(sa.log(x))), ("x > 0",)),
    "states": (
        lambda: Question(run(lambda s, x: s * s / s + x, 1, x), 1 + sa.sum(x)),
        ("1 + sum(x[:n]) != 0 for 1 <= n <= T - 1",),
    ),
    "the closed form": (
        lambda: Question(run(lambda s, x: s + x, 0, x), sa.exp(sa.log(sa.sum(x)))),
        ("sum(x[:n]) > 0 for 1 <= n <= T",),
    ),
    "entries of the closed form": (
        lambda: Question(run(lambda s, x: s + x, 0, x), sa.sum(sa.sqrt(x) ** 2)),
        ("x >= 0",),
    ),
    "the first element": (lambda: Question(run(lambda s, x: s + x, 0, x), sa.sum(x) * x[0] / x[0]), ("x[0] != 0",)),
    "outputs": (
        outputs,
        ("cumsum(x[:n]) != 0 for 1 <= n <= T",),
    ),
    "an image that divides": (
        lambda: Question(run(lambda s, x: s + x, u, x), run(lambda s, x: s + x * x / x, u, x)),
        ("x != 0",),
    ),
    "states of an image": (
        lambda: Question(run(lambda s, x: s * s / s * x, 2 * u, x), 2 * run(lambda s, x: s * x, u, x)),
        ("u != 0", f"{ALL.format('s * x_1', 'u')}[n - 1] != 0 for 1 <= n <= T - 1"),
    ),
    "what a state is relative to": (
        lambda: relative(0),
        ("scan(lambda s, x_1: (maximum(s, x_1), None), 0, x)[0] != 0", f"{ALL.format('maximum(s, x_1)', 0)} != 0"),
    ),
    "relative to what is not 0": (
        lambda: relative(1),
        ("scan(lambda s, x_1: (maximum(s, x_1), None), 1, x)[0] != 0", f"{ALL.format('maximum(s, x_1)', 1)} != 0"),
    ),
    "a free state": (unread, ("x > 0",)),
    "a number of steps": (
        lambda: Question(run(quotient, 1, literal), 1 / (1 + sa.sum(literal))),
        ("1 + sum(x[:n]) != 0 for 1 <= n <= 9",),
    ),
    "all but the first": (
        lambda: Question(run(quotient, 1, x[1:]), 1 / (1 + sa.sum(x[1:]))),
        (
            "2 <= T",
            "1 + sum(x[1:n + 1]) != 0 for 1 <= n <= T - 1",
        ),
    ),
    "what is positive": (
        lambda: Question(run(lambda s, x: s / x, 1, x), sa.exp(-sa.sum(sa.log(x)))),
        ("x > 0",),
    ),
    "no conditions": (lambda: Question(run(lambda s, x: s * x, sa.exp(u), sa.exp(x)), sa.exp(u + sa.sum(x))), ()),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_the_conditions_of_an_induction(name: str) -> None:
    made, said = CONDITIONS[name]
    question = made()
    assert judged(question) == said


def test_matrices_that_grow_are_invertible_at_every_step() -> None:
    said = judged(divided_delta())
    assert said[0] == "beta != 0"
    assert said[1] == "diag(beta[:n]) + tril(K[:n, :] @ K[:n, :].T, k=-1) is invertible for 1 <= n <= T"


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_mutants_have_values_where_their_conditions_hold(name: str) -> None:
    for question in (QUESTIONS[name](), *mutants(name, 40, seed=7)):
        if proof_of(question) is not None:
            judged(question)


# --- conditions in numbers ---


def judged(question: Question) -> tuple[str, ...]:
    """The conditions of a question; where they hold at a point, both sides have values there, which are equal."""
    argument = proof_of(question)
    assert argument is not None, question
    proof = Proof(sa.eq(question.left, question.right), (), argument)
    held = 0
    for point in points(question):
        if all(holds(c, point) for c in proof.side_conditions):
            held += 1
            values = [value_of(x, point) for x in (question.left, question.right)]
            assert all(np.isfinite(value).all() for value in values), (str(question), proof.side_conditions, point)
            np.testing.assert_allclose(*values, rtol=1e-6, atol=1e-6)
    assert held, proof.side_conditions
    return proof.side_conditions


Point = tuple[dict[sa.Tensor, np.ndarray], dict[sympy.Symbol, Any]]


def points(question: Question, count: int = 16) -> Iterator[Point]:
    """Arrays of small numbers, 0 and negative ones among them, and numbers for sizes and scalars."""
    roots = [question.left, question.right]
    symbols = sorted({s for root in roots for s in root.free_symbols}, key=str)
    for seed in range(count):
        rng = np.random.default_rng(seed)
        sizes = iter((2, 1, 2) if seed % 2 else (1, 2, 2))
        known = {s: 1 + seed % 4 if s.name in "TBL" else next(sizes) for s in symbols if s.is_integer}
        known |= {s: 0.5 + rng.uniform() for s in symbols if not s.is_integer}
        arrays = {}
        for y in (y for y in topological(roots) if y.op is variable):
            shape = tuple(int(size.subs(known)) for size in y.shape)
            arrays[y] = rng.choice([-1.0, 0.0, 1.0, 2.0, -0.5], size=shape)
            if "permutation" in y.params["hypotheses"]:
                arrays[y] = np.eye(*shape)
        yield arrays, known


def value_of(y: sa.Tensor, point: Point) -> np.ndarray:
    arrays, known = point
    needed = [a for a in arrays if a in topological([y])]
    scalars = [s for s in known if not s.is_integer and s in y.free_symbols]
    compute = sa.lambdify([*needed, *scalars], y)
    sizes = {key.name: known[key] for key in compute.takes.keywords}
    with np.errstate(all="ignore"):
        try:
            return np.asarray(compute(*map(arrays.__getitem__, needed), *map(known.__getitem__, scalars), **sizes))
        except np.linalg.LinAlgError:
            return np.array(np.nan)


def holds(said: Any, point: Point) -> bool:
    """Whether a condition holds at a point, for every n that it is said of."""
    arrays, known = point
    if isinstance(said, Sentence):
        condition, _, first, _, n, _, last = said.parts
        assert str(first) == "1"
        return all(holds(condition, (arrays, {**known, n: k})) for k in range(1, int(last.subs(known)) + 1))
    left, sign, right = said.formula.left, said.formula.relation, said.formula.right
    if isinstance(left, sympy.Basic):
        return bool(_SIGNS[sign](sympy.sympify(left).subs(known), right.subs(known)))
    value = value_of(left, point)
    if sign == "is invertible":
        return bool(abs(np.linalg.det(value)) > 1e-9)
    return bool(np.isfinite(value).all()) and (sign == "is defined" or bool(_SIGNS[sign](value, float(right)).all()))


T, gamma = x.shape[0], sympy.Symbol("gamma", real=True)
count = sa.scan(lambda s, _: (s + 1, None), 0, None, length=T)[0]


def divided(start, step, x=1):
    """A state that is a number, and an output or a state that is divided by it, which SymPy would cancel."""
    return sa.scan(lambda s, _: ((step(s[0]), s[1] * s[0] / s[0]), None), (start, x), None, length=T)[0][1]


CANCELLED = {
    "a count": (divided(-2, lambda s: s + 1), sa.induction(final=(T - 2, 1)), 1, "n - 2 != 0 for 1 <= n <= T - 1"),
    "a start": (divided(gamma, lambda s: s), sa.induction(final=(gamma, 1)), 1, "gamma != 0"),
    "a power": (divided(gamma, lambda s: 2 * s), sa.induction(final=(gamma * 2**T, 1)), 1, "gamma != 0"),
    "an output": (
        sa.scan(lambda s, x: (s + 1, x * (s - 3) / (s - 3)), 0, x)[1], sa.induction(final=T, outputs=x), x,
        "n - 3 != 0 for 1 <= n <= T - 1",
    ),
    "the claim": ((count - 3) / (count - 3), sa.induction(final=T), 1, "T - 3 != 0"),
    "the claim, beside others": (x * (count - 3) / (count - 3), sa.induction(final=T), x, "T - 3 != 0"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "by", "form", "condition"), CANCELLED.values(), ids=CANCELLED)
def test_what_numbers_of_steps_are_divided_by_is_a_condition(value, by, form, condition):
    """The loop gives NaN where it does not hold, though SymPy cancels (n - 2)/(n - 2)."""
    verdict = sa.prove(value, form, by=by)
    assert verdict.status == "proved"
    assert condition in verdict.proof.side_conditions
    assert verdict.proof.check()


def test_a_count_that_is_divided_by_nowhere_asks_for_nothing():
    assert sa.prove(count, T, by=sa.induction(final=T)).proof.side_conditions == ()
    assert sa.prove(x * (count + 1) / (count + 1), x, by=sa.induction(final=T)).proof.side_conditions == ()
