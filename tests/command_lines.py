"""Command lines drawn at random, right and wrong ones, and how the command line ends on them."""

from __future__ import annotations

import io
import random
import time
import traceback
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np

from symattn.cli import main

from .soundness import Tally
from .time_limit import LONGEST, TooLong, limited

NAMES = ("Q", "K", "V", "x", "A", "M", "c", "n", "T", "Z", "lam", "E", "oo", "pi", "I", "_", "x'", "\u211a", "O", "sum")
SHAPES = (
    "Q: T d",
    "K: S d",
    "V: S e",
    "x: n",
    "A: n n",
    "M: T S, binary",
    "c:",
    "A: n n, invertible",
    "x: n, positive",
)
SQUARE = ("Q: n n", "K: n n", "V: n n", "A: n n", "M: n n, binary", "x: n")
WRONG_SHAPES = (
    "Q=T#d",
    "Q=T,d,odd",
    "Q: T#d",
    "Q",
    ":",
    "Q: 0",
    "x: n**n",
    "Q: T d, odd",
    "\u211a: T",
    "x: 10**40",
    "n: n",
    "Q: -1",
    "x: 1/n",
)
NUMBERS = ("0", "1", "2", "-1", "1/2", "0.5", "1e9999999999999999999999", "10**30", "oo", "-oo", "nan", "1e-400", "")
FUNCTIONS = ("exp", "log", "sqrt", "softmax", "abs", "inv", "relu", "tanh", "cumsum", "sign", "sigmoid", "tril", "erf")
OPERATORS = ("+", "-", "*", "/", "@")
UNFIT_FUNCTIONS = ("sum", "max", "mean", "diag", "trace", "foo", "logsumexp", "floor", "concat", "Eq", "lambda")
UNFIT_OPERATORS = ("**", "<", "<=", "==", "&", "%", "//", ",", "and")
AFTER = (".T", ".mT", ".T", "[::-1]", "", "[0]", "[:, 0]", "[n]", "[None]", "[::2]", ".shape", "[-1:]")
SQUARE_LAWS = ("Q: iid", "K: iid rademacher", "V: iid variance=s", "A: constant", "x: iid")
LAWS = (
    "q: iid",
    "x: iid",
    "Q: iid",
    "K: iid mean=1",
    "x: iid variance=-1",
    "x: normal",
    "Q, K: iid_pair correlation=2",
)
GIVEN = (
    "T = S",
    "n = 0",
    "A: invertible",
    "x: positive",
    "c: positive",
    "0 <= x",
    "T <= S",
    "n = d",
    "= 2",
    "x",
    "-x <= 0",
)
COMMANDS = ("grad", "eval", "code", "prove", "variance", "list", "derive", "verify", "", "foo")


class Ending(NamedTuple):
    """How one command line ended."""

    argv: list[str]
    code: object
    seconds: float
    told: str


class CommandLines:
    """Random command lines; the same seed draws the same ones."""

    def __init__(self, seed: int, data: Path) -> None:
        self.random, self.data = random.Random(seed), data

    def expression(self, depth: int = 3) -> str:
        """An expression of square matrices, most of which are right, with a word out of place now and then."""
        r, kind = self.random, self.random.random()
        if depth == 0 or kind < 0.25:
            return (
                r.choice(("Q", "K", "V", "A", "M"))
                if r.random() < 0.85
                else r.choice((*NAMES, *NUMBERS, "x", "2", "n"))
            )
        a = self.expression(depth - 1)
        if kind < 0.5:
            return f"{r.choice(FUNCTIONS if r.random() < 0.95 else UNFIT_FUNCTIONS)}({a})"
        if kind < 0.8:
            return f"({a} {r.choice(OPERATORS if r.random() < 0.95 else UNFIT_OPERATORS)} {self.expression(depth - 1)})"
        if kind < 0.92:
            return f"{a}{r.choice(AFTER)}"
        return r.choice(
            (f"-{a}", f"Y = {a}; Y", f"from_index((T, S), lambda i, j: {a})", f"where({a} > 0, 1, 0)", f"~{a}")
        )

    def number(self) -> str:
        return self.random.choice(NUMBERS)

    def argv(self) -> list[str]:
        r = self.random
        command = r.choice(COMMANDS[:5] if r.random() < 0.95 else COMMANDS[5:7] + COMMANDS[8:])
        words = [command]
        if command in COMMANDS[:5]:
            words.append(self.expression() if r.random() < 0.98 else self.mangled())
        if command == "prove":
            words[-1:] = (
                [words[-1], self.expression()] if r.random() < 0.7 else [words[-1] + r.choice((" <= 1", " = x", ""))]
            )
        for shape in SQUARE if r.random() < 0.9 else r.sample(SHAPES, r.randint(3, 6)):
            words += ["--shape", shape]
        if r.random() < 0.04:
            words += ["--shape", r.choice(WRONG_SHAPES)]
        if r.random() < 0.05:
            words += ["--scalar", r.choice(NAMES)]
        return words + self.options(command)

    def options(self, command: str) -> list[str]:
        r, words = self.random, list[str]()
        if command in ("grad", "eval", "code") and r.random() < 0.4:
            words += ["--wrt", r.choice((r.choice(NAMES), "Q,K", "", "Q,,K"))]
        if command == "eval":
            words += ["--data", str(self.data if r.random() < 0.95 else self.data.with_suffix(".none"))]
            words += ["--set", f"{r.choice(NAMES)}={self.number()}"] if r.random() < 0.4 else []
            words += ["--grad"] if r.random() < 0.3 else []
        if command == "code":
            words += ["--grad"] if r.random() < 0.5 else []
        if command == "prove":
            words += ["--budget", "0.5"] if r.random() < 0.97 else ["--budget", self.number()]
            words += ["--given", r.choice(GIVEN)] if r.random() < 0.25 else []
        if command == "variance":
            for law in r.sample(LAWS if r.random() < 0.2 else SQUARE_LAWS, r.randint(1, 3)):
                words += ["--law", law]
            words += (
                ["--entry", r.choice(("i,j", "0,j", "i,i") if r.random() < 0.9 else ("i", "-1", "n", ""))]
                if r.random() < 0.6
                else []
            )
        if command not in ("eval", "code") and r.random() < 0.3:
            words += ["--to", r.choice(("latex", "json") if r.random() < 0.95 else ("pdf", ""))]
        return words

    def mangled(self) -> str:
        r, text = self.random, list(self.expression())
        for _ in range(r.randint(1, 4)):
            text.insert(r.randrange(len(text) + 1), r.choice("()[]{}.,;:=#'\"\\\n\t@*-+~!\u211a\u00b2$\0"))
        return "".join(text)


def data_of_all_names(folder: Path) -> Path:
    """A file of arrays for the declared tensors; A is singular."""
    rng, path = np.random.default_rng(0), folder / "data.npz"
    arrays = {name: rng.normal(size=(6, 6)) for name in ("Q", "K", "V", "dO")}
    np.savez(path, **arrays, x=rng.normal(size=6), A=np.ones((6, 6)), M=rng.random((6, 6)) < 0.5, c=2.0)
    return path


def ended(argv: list[str]) -> Ending:
    """One command line, run in this process: its exit code, or the traceback."""
    out, err, start = io.StringIO(), io.StringIO(), time.process_time()
    code: object
    try:
        with limited(), redirect_stdout(out), redirect_stderr(err), np.errstate(all="ignore"):
            code = main(argv)
    except SystemExit as problem:
        code = problem.code
    except (Exception, TooLong):
        code = traceback.format_exc()
    return Ending(argv, code, time.process_time() - start, err.getvalue())


def endings(seed: int, count: int, folder: Path) -> Iterator[Ending]:
    lines = CommandLines(seed, data_of_all_names(folder))
    for _ in range(count):
        yield ended(lines.argv())


def is_bad(ending: Ending) -> bool:
    """No exit code of ours, or 2 without a word; what is slow is seen by its seconds."""
    return ending.code not in (0, 1, 2, 3) or (ending.code == 2 and not ending.told.startswith("symattn: error: "))


def judged(seed: int, count: int, folder: Path) -> Iterator[Tally]:
    """How the command lines of a seed end, and each that ends badly or takes too long."""
    for ending in endings(seed, count, folder):
        line = " ".join(map(repr, ending.argv))
        tally = Tally(slowest=(ending.seconds, line))
        tally.counts["traceback" if isinstance(ending.code, str) else f"exit {ending.code}"] += 1
        if is_bad(ending) or ending.seconds > LONGEST:
            tally.wrong.append(f"{ending.seconds:.1f} s, {line}: {ending.code} {ending.told}")
        yield tally
