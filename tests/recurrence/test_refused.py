"""What is no recurrence, and what is no tensor once a step is done."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import sympy

import symattn as sa

from .steps import A, B, K, T, cell, d, gamma, m, x


def leaked() -> list[Any]:
    kept: list[Any] = []

    def step(s: Any, k: Any) -> Any:
        kept.extend([s, k, s + k])
        return s + k, None

    sa.scan(step, sa.zeros(d), K)
    return kept


REFUSING: dict[str, Callable[[Any], Any]] = {
    "+": lambda y: y + 1, "@": lambda y: A @ y, "<": lambda y: y < B, "[0]": lambda y: y[0], "str": str, "repr": repr,
    "[i]": lambda y: y[sympy.Symbol("i", integer=True)], "latex": sa.latex, "prove": lambda y: sa.prove(y, y),
    "index style": lambda y: sa.latex(y, style="index"), "eq": lambda y: sa.eq(y, B), "le": lambda y: sa.le(y, 0),
    "gradient": lambda y: sa.gradient(sa.sum(y), [B]), "by it": lambda y: sa.gradient(sa.sum(B), [y]),
    "jvp": lambda y: sa.jvp(y, {B: B}), "jacobian": lambda y: sa.jacobian(y, B), "let": lambda y: sa.let("z", y),
    "lambdify": lambda y: sa.lambdify([B], y), "entries": sa.entries, "explicit": lambda y: y.as_explicit({d: 2}),
    "subs": lambda y: y.subs({d: 2}), "for another": lambda y: (B + 1).subs({B: y}), "sympy": lambda y: y.to_sympy(),
    "independent": lambda y: sa.independent(y, B), "softmax": sa.softmax, "sum": sa.sum,
    "where": lambda y: sa.where(y > 0, y, B),
    "in a step": lambda y: sa.scan(lambda s, k: (s + y, None), sa.zeros(d), K), "pickle": pickle.dumps,
    "as a start": lambda y: sa.scan(lambda s, k: (s + k, None), y, K), "concat": lambda y: sa.concat([y, B]),
    "expectation": lambda y: sa.expectation(y, {B: sa.iid(mean=0)}), "stop": sa.stop_gradient, "scans": sa.scans,
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSING)
def test_a_state_is_of_no_use_outside_of_its_step(name: str) -> None:
    for y in leaked():
        with pytest.raises(sa.OperandError, match="outside of the step"):
            REFUSING[name](y)


TAKE_NO_TENSOR = {"attention", "check_notes", "plot", "Tensor", "iid_pair", "normal", "operation", "sphere"}
TAKE_NO_TENSOR |= {name for name in sa.__all__ if name.endswith("Error")}


@pytest.mark.parametrize("name", sorted({*sa.__all__} - TAKE_NO_TENSOR))
def test_no_public_function_takes_a_state_of_a_step_that_is_done(name: str) -> None:
    f, refused = getattr(sa, name), False
    for y in leaked():
        many: list[Any] = [
            (y,),
            (y, y),
            (y, 0),
            (y, 0, 0),
            (y, (d,)),
            (y, [y]),
            (y, {y: y}),
            ([y],),
            ("n", y),
            (y, y, y),
        ]
        for arguments in [*many, ({y: y},), (y, {B: sa.iid()}), ("i->i", y), (B, y)]:
            try:
                f(*arguments)
            except sa.OperandError as problem:
                refused |= "outside of the step" in str(problem)
            except (sa.SymattnError, TypeError, AttributeError, sympy.SympifyError):
                pass
            else:
                pytest.fail(f"{name} takes {len(arguments)} arguments")
    assert refused


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "arity": (lambda: sa.scan(lambda s: (s, None), 0, x), sa.OperandError, "does not take 2 arguments"),
    "no function": (lambda: sa.scan(3, 0, x), sa.OperandError, "3 is not a function"),  # type: ignore[arg-type]
    "no pair": (lambda: sa.scan(lambda s, u: s + u, 0, x), sa.OperandError, "gives a pair"),
    "no output": (lambda: sa.scan(lambda s, u: (s, "a"), 0, x), sa.OperandError, "the text 'a'"),
    "states": (lambda: sa.scan(lambda s, u: ((s, s), None), 0, x), sa.OperandError, "gives 2 states"),
    "no state": (lambda: sa.scan(lambda s, u: ((), None), (), x), sa.OperandError, "neither a state nor an output"),
    "shape": (lambda: sa.scan(lambda s, k: (s + k, None), 0, K), sa.ShapeError, r"\[\] before a step and \[d\] after"),
    "kind": (lambda: sa.scan(lambda s, u: (s > u, None), 0, x), sa.OperandError, "real before a step and binary"),
    "length": (
        lambda: sa.scan(lambda s, r: (s, None), 0, (x, sa.tensor("y", "S"))),
        sa.ShapeError,
        "there are T steps",
    ),
    "another length": (lambda: sa.scan(lambda s, u: (s, None), 0, x, length=5), sa.ShapeError, "there are 5 steps"),
    "no length": (lambda: sa.scan(lambda s, u: (s, None), 0), sa.OperandError, "length=T"),
    "zero steps": (lambda: sa.scan(lambda s, u: (s, None), 0, length=0), sa.ShapeError, "not 0"),
    "no axis": (lambda: sa.scan(lambda s, u: (s, None), 0, sa.tensor("y")), sa.ShapeError, "no axis to run along"),
    "number of steps": (lambda: sa.scan(lambda s, u: (s + u / T, None), 0, x), sa.OperandError, "uses T, the number"),
    "by that size": (
        lambda: sa.scan(lambda s, u: (s + sa.from_index((T,), lambda i: T - i), None), sa.zeros(T), x),
        sa.OperandError,
        "uses T, the number",
    ),
    "stays -oo": (lambda: sa.scan(lambda s, u: (s + u, None), -sympy.oo, x), sa.OperandError, "0 may be -oo after"),
    "-oo divided": (lambda: sa.scan(lambda s, u: (s / u, None), -sympy.oo, x), sa.OperandError, "may hold -oo"),
    "-oo negated": (
        lambda: sa.scan(lambda s, u: (sa.maximum(s, u), -s), -sympy.oo, x),
        sa.OperandError,
        "may hold -oo",
    ),
    "-oo in the end": (
        lambda: sa.scan(lambda s, u: (s + u, None), 0, sa.where(m, x, -sympy.oo)),
        sa.OperandError,
        "state 0 may be -oo",
    ),
    "-oo put in": (
        lambda: sa.scan(lambda s, u: (s + u, None), B, K)[0].subs({B: sa.from_index((d,), lambda i: -sympy.oo)}),
        sa.OperandError,
        "state 0 may be -oo",
    ),
    "scalar": (
        lambda: sa.scan(
            lambda s, u: (sa.elementwise(sympy.Lambda(sympy.Symbol("u"), gamma * sympy.Symbol("u")), s), u), 0, x
        ),
        sa.OperandError,
        "gamma stands within",
    ),
    "reverse": (lambda: sa.scan(cell, B, K, reverse=1), sa.OperandError, "reverse is True or False"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_input(name: str) -> None:
    call, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        call()


def test_a_step_that_fails_leaves_no_state_behind() -> None:
    kept: list[Any] = []

    def step(s: Any, u: Any) -> Any:
        kept.append(s)
        raise KeyError("of the user")

    with pytest.raises(KeyError):
        sa.scan(step, 0, x)
    with pytest.raises(sa.OperandError, match="outside of the step"):
        sa.exp(kept[0])
