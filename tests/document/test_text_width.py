"""Pages for a terminal: every line fits the width that is asked for, or it is said how many columns are needed."""

from __future__ import annotations

import pytest
import sympy

import symattn as sa
from symattn.printing.media.drawing import columns

from ..shares import one_in
from ..shipped import SHIPPED, shipped

T, S, d = sa.sizes("T S d")
Q, K = sa.tensor("Q", T, d), sa.tensor("K", S, d)
Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))


def longest(page: str) -> int:
    return max(map(columns, page.splitlines()))


@pytest.mark.parametrize("name", one_in(9, SHIPPED))
def test_every_line_of_a_derivation_fits_a_narrow_terminal(name):
    assert longest(shipped(name).text(width=40)) <= 40


HOSTILE = {
    "title": lambda D: sa.Derivation("A title that is longer than forty columns, and goes on"),
    "chinese": lambda D: sa.Derivation("注意力机制的数学推导" * 3).section("反向传播" * 10).say("查询键值" * 20),
    "meaning": lambda D: sa.Derivation("A", given={Q: "queries " * 12, K: "a meaning of one wordwordwordwordword"}),
    "space": lambda D: sa.Derivation("A", given=[sa.tensor("W_long", "T S d T S d T S d", integer=True)]),
    "code": lambda D: D.code("x = " + " + ".join(["something"] * 12)),
    "table": lambda D: D.cases([["a case " * 9, Z, "words " * 12]], head=["case", "formula", "a head of words"]),
    "numbers": lambda D: D.extend(Z).example({Q: [[0.123] * 7] * 2, K: [[-1e-9] * 7] * 3}),
    "reason": lambda D: D.extend(Z, because="a reason " * 12),
    "product": lambda D: D.extend(sa.let("Y", Z @ Z.T @ Z @ (Q @ K.T).T @ (Q @ K.T) @ Z.T @ Q @ K.T / sympy.sqrt(d))),
    "emoji": lambda D: D.say("🎉 " * 30),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_every_line_of_any_part_fits(kind):
    page = HOSTILE[kind](sa.Derivation("A"))
    for width in (40, 50, 88):
        assert longest(page.text(width=width)) <= width


def test_a_name_that_does_not_fit_is_told_with_the_columns_that_it_needs():
    word = sa.tensor("name" * 12, "n")
    page = sa.Derivation("A").extend(sa.let("y", 2 * word))
    with pytest.raises(sa.OperandError, match="a line of this page needs 56 columns, and width is 40"):
        page.text(width=40)
    assert longest(page.text()) <= 88


def test_a_command_stands_in_one_line():
    command = "symattn verify /home/" + "a_folder_in_a_folder/" * 3
    assert f"Check again:\n  {command}\n" in sa.Derivation("A").checked_by(command).text(width=40)
    assert f"Check again: {command}\n" in sa.Derivation("A").checked_by(command).text(width=100)
