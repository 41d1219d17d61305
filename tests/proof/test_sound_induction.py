"""No induction proves what is false: the search for a proof is asked alone, since the refuter would hide it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.core.budget import Budget, OutOfBudget
from symattn.proof.argument import Argument
from symattn.proof.engine import PROBLEMS, argued
from symattn.proof.given import applied, sorted_out
from symattn.proof.induction import closed_forms
from symattn.proof.induction.plan import Induction, plans

from ..agreement import TOLERANCE
from ..recurrences import QUESTIONS, apart, mutants_judged, of_steps

T, S, L, d, n, k = sa.sizes("T S L d n k")
x, u = sa.tensor("x", T), sa.tensor("u")
COUNT = sa.sum(sa.ones(T))
by = sa.induction


def proof_of(left: Any, right: Any, how: Induction | None = None, given: tuple[Any, ...] = ()) -> Argument | None:
    """A proof of an equality without any trial of it."""
    hypotheses, asked = sorted_out(sa.eq(left, right), given)
    put = applied(hypotheses, asked)
    try:
        found = argued(*put, Budget(10), plans(how))
    except (OutOfBudget, *PROBLEMS):
        return None
    if not isinstance(found, Argument):
        return None
    assert found.proves(put[1], put[0])
    assert found.check()
    return found


def counted(start: Any, step: Callable[..., Any], length: Any = T) -> Any:
    return sa.scan(lambda s, _: (step(*s) if isinstance(s, tuple) else step(s), None), start, None, length=length)[0]


def summed(sequence: Any, start: Any = 0) -> Any:
    return sa.scan(lambda s, x: (s + x, s + x), start, sequence)


def a_size_in_the_step() -> Any:
    """A size of the step that is called as the number of steps before would be."""
    _, total = counted((0, 0), lambda a, b: (sa.zeros() + 1, b + sa.sum(a * sa.ones(n))))
    return total, COUNT * (COUNT - 1) / 2, by((sa.ones(), COUNT * (COUNT - 1) / 2))


def a_free_state_that_stays() -> Any:
    """The next value of a free state is another than the last one."""

    def step(state: Any, x: Any) -> Any:
        m, flag, change = state
        new = sa.maximum(m, x)
        return (new, sa.ones(), change + flag * (new - m)), None

    (_, _, change), _ = sa.scan(step, (0, 0, 0), x)
    return change, sa.zeros(), by(lambda m, x: (None, sa.ones(), sa.zeros()), free=0)


def an_image(step: Callable[..., Any]) -> Any:
    """Layers that do not go along with a permutation, but where what is given holds of their states."""
    X, W = sa.tensor("X", S, d), sa.tensor("W", L, d, d)
    Pi = sa.tensor("Pi", S, S, permutation=True)
    left, right = (sa.scan(lambda X, W: (step(X) @ W, None), start, W)[0] for start in (Pi @ X, X))
    return left, Pi @ right


s, c, m = sa.tensor("s", S, d), sa.tensor("c", S, 1), [sa.tensor(name) for name in ("m", "m_1", "m_2")]
NAMES: dict[str, Callable[[], tuple[Any, ...]]] = {
    "a size in the step": a_size_in_the_step,
    "a free state that stays": a_free_state_that_stays,
    "the number of steps is given": lambda: (
        summed(x)[0], sa.sum(x) + sa.where(sa.equal(T, 5), 1, 0), None, (sympy.Le(n, 3),)
    ),
    "a count is given": lambda: (
        counted(u, lambda s: s + u), u + u + COUNT * (COUNT - 1) / 2, None, (sa.eq(sa.sum(sa.ones(n)) ** 2, u**2),)
    ),
    "a state is given": lambda: (*an_image(lambda X: X + c * sa.tanh(X)), None, (sa.eq(sa.tanh(s), 0 * s),)),
    "a sequence is given": lambda: (
        summed(2 * x, x[0])[0],
        x[0] + sa.sum(2 * x) + sa.sum(sa.tanh(2 * x)),
        by(lambda y: x[0] + sa.sum(y) + sa.sum(sa.tanh(y))),
        (sa.eq(sa.tanh(sa.tensor("y", n)), sa.zeros(n)),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_what_an_induction_brings_in_may_be_anything(name: str) -> None:
    """Sizes, states and sequences that it names are no others, be they named in a step or in what is given."""
    assert proof_of(*NAMES[name]()) is None


MEANINGLESS: dict[str, Any] = {
    "a part that is not there": lambda: sa.sum(x) + sa.sum(x[:k] - x[:k]),
    "ones that are not there": lambda: sa.sum(x) + 0 * sa.sum(sa.ones(T - 2 * k + 1)),
    "the second place": lambda: sa.sum(x) + x[1] - x[1],
    "no denominator at one step": lambda: sa.sum(x) * (COUNT - 1) / (COUNT - 1),
}


@pytest.mark.parametrize("name", MEANINGLESS)
def test_a_closed_form_has_a_meaning_at_the_first_step(name: str) -> None:
    assert proof_of(summed(x)[0], MEANINGLESS[name]()) is None


def test_there_is_at_least_one_step() -> None:
    """A loop without sequences is of a number of steps that no axis has; one of none has no values."""
    last = counted(u, lambda s: 0 * s + 1, T - 1)
    verdict = sa.prove(last, sa.ones())
    assert verdict.proof.side_conditions == ("2 <= T",)
    assert verdict.proof.check()
    with pytest.raises(sa.ShapeError, match="there would be 0 steps"):
        last.subs({T: 1})
    assert sa.prove(counted(0, lambda s: s + 1, 2 * T), sa.sum(sa.ones(2 * T))).proof.side_conditions == ()
    parts = sa.prove(counted(0, lambda s: s + 1, T / k), sa.sum(sa.ones(T / k)))
    assert parts.proof.side_conditions == ("k divides T",)


# --- traps ---


def longer(k: int) -> Any:
    """1 where there are k steps."""
    return sa.where(sa.equal(T, k), 1, 0)


A, y = sa.tensor("A", T, T), sa.tensor("y", T)
TRAPS: dict[str, tuple[str, str, Callable[[], tuple[Any, ...]]]] = {
    "false at one step": ("refuted", "", lambda: (summed(x)[0], sa.sum(x) + longer(1))),
    "false at six steps": ("refuted", "", lambda: (summed(x)[0], sa.sum(x) + longer(6))),
    "false from six steps on": ("refuted", "", lambda: (summed(x)[0], sa.sum(x) + sa.where(COUNT > 5, 1, 0))),
    "the first element as a start": ("proved", "", lambda: (summed(x, x[0])[0], sa.sum(x) + x[0])),
    "the last element as a start": (
        "unknown", "where it begins: x[-1] = x[-2]", lambda: (summed(x, x[-1])[0], sa.sum(x) + x[-1])
    ),
    "a matrix of as many rows": (
        "unknown",
        "the step uses the number of steps",
        lambda: (sa.scan(lambda s, r: (s + (A @ A).T @ r, None), sa.zeros(T), A)[0], A.T @ A.T @ sa.sum(A, axis=0)),
    ),
    "no meaning at one step": (
        "unknown", "no meaning at every number of steps", lambda: (summed(x)[0], sa.sum(x[1:]) + x[0])
    ),
    "a step that divides": (
        "proved", "", lambda: (sa.scan(lambda s, x: (s * x / x, None), 1, x)[0], sa.ones())
    ),
    "two sequences": (
        "proved", "", lambda: (sa.scan(lambda s, r: (s + r[0] * r[1], None), 0, (x, y))[0], x @ y)
    ),
    "one sequence for another": (
        "refuted", "", lambda: (sa.scan(lambda s, r: (s + r[0] * r[1], None), 0, (x, y))[0], x @ x)
    ),
    "one sequence twice": (
        "unknown",
        "one sequence is read twice",
        lambda: (
            sa.scan(lambda s, r: (s + r[0] * r[1], None), 0, (x, x))[0], x @ x, by(lambda x, y: 2 * x @ y - x @ x)
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_traps(name: str) -> None:
    status, reason, made = TRAPS[name]
    left, right, *how = made()
    verdict = sa.prove(left, right, by=how[0] if how else None)
    assert verdict.status == status, verdict
    assert reason in getattr(verdict, "reason", "")
    assert (proof_of(left, right, *how) is not None) == (status == "proved")


def test_a_step_keeps_its_states_and_the_number_of_steps_out() -> None:
    kept: list[Any] = []
    sa.scan(lambda s, x: (kept.append(s) or s + x, None), 0, x)
    for use in (
        lambda: sa.prove(kept[0], sa.sum(x)),
        lambda: sa.prove(summed(x)[0], sa.sum(x), by=by(kept[0])),
        lambda: summed(x, kept[0]),
    ):
        with pytest.raises(sa.OperandError, match="outside of the step"):
            use()
    with pytest.raises(sa.OperandError, match="the number of steps"):
        sa.scan(lambda s, x: (s + x / T, None), 0, x)


# --- where there are no values ---


def flash(start: Any, z: Any) -> tuple[Any, Any]:
    """Online sums of exponentials over blocks of logits, relative to their running maximum."""

    def step(state: Any, z: Any) -> Any:
        m, total = state
        new = sa.maximum(m, sa.max(z))
        return (new, sa.exp(m - new) * total + sa.sum(sa.exp(z - new))), None

    return sa.scan(step, (start, 0), sa.split_axis(z, 0, (B, b)))[0]


B, b, z, mask = *sa.sizes("B b"), sa.tensor("z", "B*b"), sa.tensor("M", "B*b", binary=True)
MASKED = sa.where(mask, z, -sympy.oo)


@pytest.mark.parametrize(("start", "said"), [(0, ()), (-sympy.oo, ("[0, :]) > -oo",))])
def test_the_first_block_is_not_masked_as_a_whole(start: Any, said: tuple[str, ...]) -> None:
    """From -oo its maximum would be -oo, and exp(-oo + oo) is no number; later blocks may be masked."""
    m, total = flash(start, MASKED)
    by_maximum = by(lambda m, z: (None, sa.sum(sa.exp(sa.merge_axes(z, (0, 1)) - m))), free=0)
    verdict = sa.prove(total * sa.exp(m), sa.sum(sa.exp(MASKED)), by=by_maximum)
    conditions = verdict.proof.side_conditions
    assert len(conditions) == len(said)
    assert all(map(str.endswith, conditions, said))
    value = sa.lambdify([z, mask], total)
    for row, defined in (([0, 0, 1, 1], start == 0), ([1, 0, 0, 0], True)):
        with np.errstate(invalid="ignore"):
            assert np.isfinite(value(np.ones(4), np.array(row), B=2, b=2)) == defined


def test_a_maximum_of_nothing_but_minus_infinity_is_a_condition() -> None:
    largest = sa.max(MASKED)
    verdict = sa.prove(sa.exp(MASKED - largest), sa.exp(MASKED) / sa.exp(largest))
    assert verdict.proof.side_conditions == ("max(where(M, z, -oo)) > -oo",)
    assert sa.prove(sa.maximum(largest, 0), sa.maximum(0, largest)).proof.side_conditions == ()


def test_conditions_speak_of_the_claim() -> None:
    """Not of sizes and sequences that were put for those of the claim to say more."""
    literal, flat = sa.tensor("w", 9), sa.tensor("w", "B*b")
    blocks = "1 + sum(merge_axes(split_axis(w, axis=-1, into=(B, b))[:n, :], axes=(-2, -1)))"
    for sequence, total, said in (
        (literal, sa.sum(literal), "1 + sum(w[:n]) != 0 for 1 <= n <= 9"),
        (x[1:], sa.sum(x[1:]), "1 + sum(x[1:n + 1]) != 0 for 1 <= n <= T - 1"),
        (sa.split_axis(flat, 0, (B, b)), sa.sum(flat), f"{blocks} != 0 for 1 <= n <= B"),
    ):
        last, _ = sa.scan(lambda s, x: (s / (1 + s * sa.sum(x)), None), 1, sequence)
        assert said in sa.prove(last, 1 / (1 + total)).proof.side_conditions


IMAGES: dict[str, tuple[Any, Any]] = {
    "all by a number of all": (x / COUNT, 1 / COUNT),
    "all by a sum of all": (x / sa.sum(x), 1 / sa.sum(x)),
    "all by the last": (x * x[-1], x[-1]),
}


@pytest.mark.parametrize("name", IMAGES)
def test_images_of_sequences_that_know_their_length(name: str) -> None:
    def run(sequence: Any) -> Any:
        return sa.scan(lambda s, x: (2 * s + x, None), 0, sequence)[0]

    changed, factor = IMAGES[name]
    assert proof_of(run(changed), factor * run(x)) is not None
    for wrong in (run(x[::-1]), run(sa.cumsum(x)), run(x) / x[0]):
        assert proof_of(run(changed), wrong) is None


# --- every rule is needed ---

LATE = sa.from_index((T,), lambda i: T - 1 - i)
FIRST = sa.from_index((T,), lambda i: sympy.Piecewise((1, sympy.Eq(i, 0)), (0, True)))
RULES: dict[str, tuple[str, Callable[[], tuple[Any, ...]]]] = {
    "where it begins": ("_the_same_for_all_lengths", lambda: (summed(x, COUNT - 1)[0], sa.sum(x))),
    "what a step takes": (
        "_the_same_for_all_lengths",
        lambda: (
            sa.scan(lambda s, x: (s + COUNT * x, None), 0, x)[0],
            sa.sum(x * sa.from_index((T,), lambda i: i + 1)),
        ),
    ),
    "what has been read": ("_the_same_for_all_lengths", lambda: (summed(x[-1] * sa.ones(T))[0], sa.sum(x))),
    "state 0": ("_first_step", lambda: (summed(x, 1)[0], sa.sum(x))),
    "one step more": ("_next_step", lambda: (summed(x)[0], x[0])),
    "output 0 of the first n steps": (
        "_next_step",
        lambda: (summed(x)[1], sa.cumsum(x) + LATE, by(sa.sum(x), sa.cumsum(x) + LATE)),
    ),
    "output 0 of the last step": (
        "_next_step",
        lambda: (summed(x)[1], sa.cumsum(x) * FIRST, by(sa.sum(x), sa.cumsum(x) * FIRST)),
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_what_is_false_is_proved_as_soon_as_a_claim_of_the_induction_is_left_out(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, made = RULES[name]
    assert proof_of(*made()) is None
    claims = getattr(closed_forms, part)
    monkeypatch.setattr(
        closed_forms,
        part,
        lambda form: (one for one in claims(form) if one.what != name and name != "one step more"),
    )
    assert proof_of(*made()) is not None


# --- mutants ---


def test_no_mutant_is_proved_that_is_false() -> None:
    found = mutants_judged([*list(QUESTIONS)[:8], "the last state", "backwards"], 6, seed=1)
    assert found.wrong == []
    assert found.counts["mutants"] == 60


def test_the_judge_of_mutants_sees_what_is_false() -> None:
    for name in list(QUESTIONS)[:10]:
        question = QUESTIONS[name]()
        assert apart(question) < TOLERANCE, name
        assert apart(replace(question, right=question.right + 1)) > 0.1, name


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_mutant_of_many_is_proved_that_is_false(name: str) -> None:
    question = QUESTIONS[name]()
    assert proof_of(question.left, question.right, question.how) is not None
    assert apart(question) < TOLERANCE
    found = mutants_judged([name], 60, seed=2)
    assert found.wrong == []
    assert found.counts["mutants"] >= 55


@pytest.mark.parametrize(
    ("count", "names"), [(2, ["a sum", "an average"]), pytest.param(20, list(QUESTIONS), marks=pytest.mark.slow)]
)
def test_no_mutant_of_seven_steps_is_proved_that_is_false(count: int, names: list[str]) -> None:
    """The number of steps is a symbol in the proof, and so are numbers that are one less."""
    for name in names:
        question = of_steps(QUESTIONS[name](), 7)
        assert proof_of(question.left, question.right, question.how) is not None, name
    found = mutants_judged(names, count, seed=3, steps=7)
    assert found.wrong == []
    assert found.counts["mutants"] == count * len(names)


def literal(right: Callable[[Any], Any], steps: int = 16) -> tuple[Any, Any]:
    y = sa.tensor("y", steps)
    return summed(y)[0], right(y)


NUMBERS: dict[str, tuple[str, Callable[[], tuple[Any, Any]]]] = {
    "the last place": ("proved", lambda: literal(lambda y: sa.cumsum(y)[15])),
    "the place before": ("refuted", lambda: literal(lambda y: sa.cumsum(y)[14])),
    "a mean": ("proved", lambda: literal(lambda y: 16 * sa.mean(y))),
    "by another number": ("refuted", lambda: literal(lambda y: 15 * sa.mean(y))),
    "a factor that is not the number of steps": ("proved", lambda: literal(lambda y: sa.sum(16 * y) / 16)),
    "a number that the formula has by chance": (
        "proved", lambda: literal(lambda y: sa.sum(y * sa.from_index((16,), lambda i: (i + 15) / (i + 15))))
    ),
    "all but the last": ("refuted", lambda: literal(lambda y: sa.sum(y[:15]))),
    "all but the last, and that": ("proved", lambda: literal(lambda y: sa.sum(y[:15]) + y[15])),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_may_be_the_number_of_steps(name: str) -> None:
    status, made = NUMBERS[name]
    verdict = sa.prove(*made())
    assert verdict.status == status, verdict
    assert (proof_of(*made()) is not None) == (status == "proved")


GIVEN: dict[str, tuple[Any, Any, str]] = {
    "a number of steps": (sympy.Ge(T, 2), sa.sum(x), ""),
    "signs": (sa.lt(0, x), sa.sum(x), ""),
    "signs that are needed": (sa.lt(0, x), sa.sum(abs(x)), "is given for one number of steps"),
    "a name for a sum": (sa.eq(sa.sum(x), u), u, ""),
    "a sum": (sa.eq(sa.sum(x), sa.ones()), sa.ones(), "is given for one number of steps"),
    "what has no steps": (sympy.Ge(S, 2), sa.sum(x), ""),
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_given_of_one_number_of_steps_is_not_used_for_others(name: str) -> None:
    fact, right, reason = GIVEN[name]
    verdict = sa.prove(summed(x)[0], right, given=[fact])
    assert verdict.status == ("unknown" if reason else "proved"), verdict
    assert reason in getattr(verdict, "reason", "")
    assert reason or verdict.proof.check()


def test_what_may_be_masked_is_not_taken_for_any_numbers() -> None:
    """exp(x) / exp(x) is 1 for numbers, and has no value at -oo."""
    w, M = sa.tensor("w", 9), sa.tensor("M", 9, binary=True)
    masked = sa.where(M, w, -sympy.oo)
    for start in (w[0], 0):
        last, _ = sa.scan(lambda s, x: (s + sa.exp(x) / sa.exp(x), None), start, masked)
        verdict = sa.prove(last, start + sa.sum(sa.ones(9)))
        assert not verdict or any("!= 0" in said or "defined" in said for said in verdict.proof.side_conditions)
