"""No formula hangs, crashes or runs: whatever it holds, it is read or refused at once."""

from __future__ import annotations

import random
import time

import pytest

import symattn as sa
from symattn.errors import SymattnError

T, S, d, n = sa.sizes("T S d n")
NAMES = {"Q": (T, d), "K": (S, d), "A": (n, n), "x": (n,), "beta": ()}
CAP = 2.0

HOSTILE = {
    "parentheses": "(" * 400 + "x" + ")" * 400,
    "braces": "{" * 400 + "x" + "}" * 400,
    "fractions": r"\frac{1}{" * 400 + "2" + "}" * 400,
    "scripts": "x" + "_{x" * 400 + "}" * 400,
    "powers": "9^{9^{9}}",
    "many powers": "2" + "^{9" * 50 + "}" * 50,
    "roots": r"\sqrt" * 3000 + " 2",
    "logarithms": r"\log" * 2000 + " 2",
    "accents": r"\hat" * 2000 + " x",
    "minus signs": "-" * 3000 + "x",
    "negations": r"\lnot" * 2000 + " x",
    "sums": r"\sum_i" * 1500 + " x_i",
    "a long line": "Q K + " * 200_000,
    "a long number": "9" * 9000,
    "many terms": " + ".join(["x"] * 500),
    "many factors": " ".join(["A"] * 500),
    "many entries": r"\sum_i (" + " + ".join(["x_i"] * 500) + ")",
    "unbalanced": "}" * 300,
    "half open": "(" * 50,
    "a matrix that does not end": r"\begin{bmatrix}" * 300,
    "ends": r"\end{bmatrix}" * 300,
    "a macro that recurses": r"\def\a{\a\a}\a",
    "a new command": r"\newcommand{\x}{\x\x}\x",
    "input": r"\input{/etc/passwd}",
    "write": r"\immediate\write18{touch owned}",
    "names of Python": r"\mathrm{__import__}(\text{os})",
    "a call": "os.system('id')",
    "a null": "Q\0K",
    "control characters": "\x01\x02\x1b[2J",
    "surrogates": "Q \ud800 K",
    "other scripts": "مرحبا 你好 ＱＫ",
    "a lone backslash": "\\",
    "scripts alone": "_^_^",
    "an empty group": "{}",
    "a large exponent": "e^{10^{20}}",
    "a tower": r"\exp(\exp(\exp(1000)))",
    "a factor by nothing": r"\frac{A}{0}",
    "a bar": "|" * 501,
    "ampersands": "&" * 500,
    "rows": r"\\" * 500,
    "colons": ":" * 300,
    "relations": "x" + " = x" * 300,
    "commas": "," * 500,
    "dots": r"\dots" * 300,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_read_or_refused_at_once(text: str) -> None:
    began = time.perf_counter()
    said = _refusal(text)
    assert len(said) < 2000
    assert time.perf_counter() - began < CAP


def _refusal(text: str) -> str:
    try:
        sa.parse_latex(text, NAMES)
    except SymattnError as problem:
        return str(problem)
    return ""


_PIECES = (
    r"Q K A x \beta d n i j 1 0 2.5 + - \cdot \odot \times / = \le \in : , ; ( ) [ ] { } | \| _ ^ ' & \\ \top \frac "
    r"\sqrt "
    r"\sum \max \exp \mathrm{softmax} \operatorname{diag} \mathbf{1} I \text{if } \begin{cases} \end{cases} "
    r"\begin{bmatrix} \end{bmatrix} \left( \right) \langle \rangle \dots \partial \nabla \mathbb{R} \infty \quad "
    r"\mathrm{d} \hat _{ij} ^{-1} ^{(h)} \log \sim \to"
).split(" ")


def _generated(seed: int) -> str:
    rng = random.Random(seed)
    return " ".join(rng.choice(_PIECES) for _ in range(rng.randrange(1, 25)))


def test_generated_text_is_read_or_refused() -> None:
    slowest = 0.0
    for seed in range(2000):
        text = _generated(seed)
        began = time.perf_counter()
        try:
            sa.parse_latex(text, NAMES)
        except SymattnError:
            pass
        except Exception as problem:
            raise AssertionError(f"{text!r} is not refused in our own words") from problem
        slowest = max(slowest, time.perf_counter() - began)
    assert slowest < CAP
