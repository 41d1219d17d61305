"""Each argument of a derivation and of a picture, one at a time, with what it is not: the error is one of symattn."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.printing import prose as page

T, S, d, e = sa.sizes("T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
q, k = sa.tensor("q", d), sa.tensor("k", d)
Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
P = sa.let("P", sa.softmax(Z))
O = sa.let("O", P @ V)
G = sa.gradient(O, [Q, K, V])
RIGHT = sa.prove(sa.sum(P, axis=-1), sa.ones(T))
MOMENTS = sa.moments(q @ k, {q: sa.iid(), k: sa.iid()})
NOTE = sa.Derivation("Attention", given={Q: "queries"}).section("One").extend(Z, P, O, G)
MAP = sa.plot.attention_map([[0.9, 0.1], [0.25, 0.75]])

WRONG: tuple[Any, ...] = (
    None, True, 0, 3, -1, 2.5, float("nan"), 1j, "", "no such word", "$x", b"x", [], (), {}, {"a": 1}, {3: "x"}, [None],
    [3], ["a"], [[1, 2], [3]], [[2, -1]], {Q: 3}, {Q: None}, {T: "x"}, {T: 0}, object(), np.ones(2), np.ones((2, 2)),
    np.array(["x"]), np.array(1.0), np.zeros((0, 2)), sympy.Symbol("u"), sympy.oo, T, Q, P, sa.eq(P, 2 * P), RIGHT, G,
    MOMENTS, MAP, sa, [Q, 3], ["x", None], slice(None),
)  # fmt: skip

CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Derivation": (sa.Derivation, {"title": "A"}),
    "section": (NOTE.section, {"title": "Two"}),
    "say": (NOTE.say, {"sentences": "So."}),
    "then": (NOTE.extend(sa.let("Y", Q)).then, {"expr": Q}),
    "claim": (NOTE.claim, {"verdict": RIGHT}),
    "cases": (NOTE.cases, {"table": [["a", P]]}),
    "example": (NOTE.example, {"sizes": {T: 2, S: 2, d: 2, e: 2}}),
    "figure": (NOTE.figure, {"figure": MAP}),
    "fold": (NOTE.fold, {"title": "More", "derivation": NOTE}),
    "code": (NOTE.code, {"source": "x"}),
    "checked_by": (NOTE.checked_by, {"command": "x"}),
    "getitem": (lambda title: NOTE[title], {"title": "One"}),
    "verify": (NOTE["One"].verify, {}),
    "composed": (NOTE.composed, {}),
    **{name: (getattr(NOTE, name), {}) for name in ("latex", "markdown", "html", "text", "json")},
    "attention_map": (sa.plot.attention_map, {"weights": [[0.9, 0.1]]}),
    "mask": (sa.plot.mask, {"masks": [[1, 0]]}),
    "flow": (sa.plot.flow, {"of": O}),
    "kernel_regression": (sa.plot.kernel_regression, {"x": [0, 1], "y": [1, 3], "bandwidths": [1]}),
    "saturation": (sa.plot.saturation, {}),
    "variance": (
        sa.plot.variance,
        {"quantities": q @ k, "law": {q: sa.iid(), k: sa.iid()}, "size": d, "at": (1, 2), "samples": 3},
    ),
}


def ended(call: Callable[..., Any], **arguments: Any) -> str:
    """How a call and the writing of what it answers end, where that is no error of symattn."""
    try:
        answer = call(**arguments)
        if isinstance(answer, page.Figure):
            NOTE.figure(answer).text()
        if isinstance(answer, sa.Derivation):
            answer.latex(), answer.text(), answer.html()
    except sa.SymattnError:
        return ""
    except Exception as problem:
        return f"{arguments}: {problem!r}"
    return ""


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.slow
def test_each_argument_with_what_it_is_not_ends_in_an_error_of_symattn(name):
    call, right = CALLS[name]
    call(**right)
    found = [ended(call, **{**right, x: value}) for x in inspect.signature(call).parameters for value in WRONG]
    assert not any(found), "\n".join(filter(None, found))


def test_what_is_added_with_what_it_is_not_ends_in_an_error_of_symattn():
    found = [ended(partial(NOTE.extend, value)) for value in WRONG]
    found += [ended(partial(NOTE.extend, P), because=value) for value in WRONG]
    assert not any(found), "\n".join(filter(None, found))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: sa.plot.saturation("x"), "saturation: gaps are finite numbers, one at least, not 'x'"),
        (lambda: sa.plot.saturation(n=1), "saturation: n is a whole number from 2 to 1000, not 1"),
        (lambda: sa.plot.mask({}), "mask draws a mask, or several by their titles"),
        (lambda: sa.plot.mask([[0.5]]), "mask draws masks, 0 where a key is hidden .*; attention_map draws weights"),
        (lambda: sa.plot.attention_map([[2, -1]]), "draws weights, which are not negative, and one of them is -1"),
        (lambda: sa.plot.attention_map([[1]], caption=3), "attention_map: caption is text, not 3"),
        (lambda: sa.plot.variance(q @ k, {}, 3), "draws quantities against a size, not .* against 3"),
        (lambda: NOTE.pdf(""), "a file is written by its path, not ''"),
        (lambda: NOTE.latex(standalone=3), "latex: standalone is True or False, not 3"),
        (lambda: NOTE.claim(RIGHT, proof=[3]), r"is no step of a proof from \(sum.*: the shapes differ"),
        (lambda: sa.Derivation("A", letters="A_1"), "letters= are letters with spaces between them, not 'A_1'"),
    ],
)
def test_what_was_asked_is_said_with_the_way_out(ask, message):
    with pytest.raises(sa.SymattnError, match=message):
        ask()


def test_one_number_is_a_list_of_one():
    assert sa.plot.saturation(3).text == sa.plot.saturation([3.0]).text
