"""Calls of the public functions and methods with wrong values, drawn by a seed, and how they end.

Only SymattnError may come out, a TypeError of Python's own for a wrong signature, or what the caller's own object
raises; and none takes longer than LONGEST seconds.
"""

from __future__ import annotations

import inspect
import random
import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import symattn as sa
from symattn import testing

from .wrong_values import KEYWORDS, K, M, Own, P, Q, T, X, Y, a, d, u, value, x

LONGEST = 2.0  # seconds of processor time
_OPERATORS = {
    f"__{name}__"
    for name in (
        "add radd sub rsub mul rmul truediv rtruediv matmul rmatmul pow rpow and or lt le gt ge getitem call contains"
    ).split()
}
_BETWEEN_PARTS = {
    "latex_in",
    "text_in",
    "sentence",
    "known",
    "printer",
    "lines",
    "has_more_nodes",
}  # called by the package
Drawn = tuple[list[Any], dict[str, Any]]


def subjects() -> dict[str, Callable[[], Any]]:
    """What has public methods, by name, each made anew where a call may change it."""
    Z = sa.let("Z", Q @ K.T)
    g = sa.gradient(sa.sum(sa.softmax(X) * Y), [X, Y])
    moments = sa.moments(sa.sum(X[0] * Y[0]), {X: sa.iid(), Y: sa.iid()})
    proved, refuted = sa.prove(sa.exp(X) / sa.exp(Y), sa.exp(X - Y)), sa.prove(X @ Y.T, Y @ X.T)
    unknown = sa.prove(sa.unknown("phi", X + 1), sa.unknown("phi", X), budget=0.2)
    symmetries = sa.equivariance(sa.softmax, X)
    written_out = sa.attention.recurrence(*(sa.tensor(name, 3, d) for name in "QKV"))
    tripled = sa.operation("tripled", shape="n -> n", entry=lambda i, z: 3 * z[i[0]])

    def derivation() -> sa.Derivation:
        return sa.Derivation("Scores", given=[Q, K]).extend(Z, proved, moments)

    fixed = {
        "Tensor": X, "let": P, "scalar": a, "vector": x, "binary": M, "gradient": g, "moments": moments,
        "proved": proved, "refuted": refuted, "unknown": unknown, "proof": proved.proof,
        "counterexample": refuted.counterexample, "equivariance": symmetries, "symmetry": symmetries["rows of X"],

        "entries": sa.entries(P), "claim": sa.le(X, Y), "independence": sa.independent(X, Y),
        "function": sa.lambdify([X, Y], [sa.softmax(X) + Y]), "scalars": sa.lambdify([u], u * sa.ones(T)),
        "report": derivation().verify(budget=1), "declared": tripled, "iid": sa.iid(), "normal": sa.normal(),
        "sphere": sa.sphere(), "pair": sa.iid_pair(correlation=u), "recurrence": written_out,
    }  # fmt: skip
    return {**{name: partial(_itself, subject) for name, subject in fixed.items()}, "derivation": derivation}


def _itself(subject: Any) -> Any:
    return subject


def public() -> dict[str, Callable[..., Any]]:
    """The functions and classes of ``sa``, ``sa.attention`` and ``symattn.testing``, and the methods of results."""
    found = {f"{m.__name__}.{name}": getattr(m, name) for m in (sa, sa.attention, testing) for name in m.__all__}
    found = {name: f for name, f in found.items() if callable(f) and not _is_error(f)}
    for label, make in subjects().items():
        kind = type(make())
        written = {name for base in kind.__mro__ if base.__module__.startswith("symattn") for name in vars(base)}
        for name in sorted(written | {"get"}):
            asked = name in _OPERATORS or not (name.startswith("_") or name in _BETWEEN_PARTS)
            if asked and callable(getattr(kind, name, None)):
                found[f"{label}.{name}"] = partial(_method, make, name)
                found[f"{label}.{name}"].__signature__ = _signature(getattr(make(), name))  # type: ignore[attr-defined]
    return found


def _is_error(f: Any) -> bool:
    return isinstance(f, type) and issubclass(f, Exception)


def _method(make: Callable[[], Any], name: str, *positional: Any, **keywords: Any) -> Any:
    return getattr(make(), name)(*positional, **keywords)


def _signature(f: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(f)
    except ValueError:  # written in C
        return inspect.signature(lambda *values: None)


def drawn(f: Callable[..., Any], rng: random.Random) -> Drawn:
    """Values for a call: rarely all are wrong, often one in four is; now and then the signature is."""
    wrong = rng.choice((0.15, 0.3, 0.3, 0.6, 1.0))
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for p in _signature(f).parameters.values():
        needed = p.default is p.empty
        if p.kind is p.VAR_POSITIONAL:
            positional += [value(rng, p.name, wrong) for _ in range(rng.randrange(4))]
        elif p.kind is p.VAR_KEYWORD:
            keywords |= {k: value(rng, k, wrong) for k in rng.sample(KEYWORDS, rng.choice((0, 0, 1, 2)))}
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and needed:
            positional.append(value(rng, p.name, wrong))
        elif needed or p.name == "budget" or rng.random() < 0.3:
            keywords[p.name] = value(rng, p.name, wrong)
    budget = keywords.get("budget")
    if isinstance(budget, (int, float)) and budget > 1:
        keywords["budget"] = 0.3  # what takes as long as it was told to is no finding
    if rng.random() < 0.02:
        positional.append(value(rng, "", 1.0))
    return positional, keywords


class TooLong(BaseException):
    """The call is stopped; no handler of the package takes this for its own."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TooLong where the processor time is used up."""

    def stop(number: int, frame: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@dataclass
class Endings:
    """How calls ended, and for each kind of what should not come out, and where it arose, one call that showed it."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: dict[str, str] = field(default_factory=dict)
    slowest: tuple[float, str] = (0.0, "")

    def found(self, kind: str, name: str, problem: BaseException, call: str) -> None:
        self.counts[kind] += 1
        frames = traceback.extract_tb(problem.__traceback__)
        lines = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if "symattn" in Path(f.filename).parts]
        self.findings.setdefault(
            f"{type(problem).__name__} at {lines[-1] if lines else name}", f"{call}: {_brief(problem)}"
        )


def run(calls: int, seed: int) -> Endings:
    """The calls of a seed, function after function."""
    rng, endings, functions = random.Random(seed), Endings(), public()
    names = sorted(functions)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number in range(calls):
            name = names[number % len(names)]
            _end(endings, name, functions[name], drawn(functions[name], rng), f"call {number} of seed {seed}")
    return endings


def _end(endings: Endings, name: str, f: Callable[..., Any], values: Drawn, where: str) -> None:
    """Make one call, print what it answers, and count how it ended."""
    positional, keywords = values
    shown = ", ".join([*map(_brief, positional), *(f"{k}={_brief(v)}" for k, v in keywords.items())])
    call, start = f"{where}, {name}({shown})", time.process_time()
    try:
        with limited(5 * LONGEST):
            answer = f(*positional, **keywords)
            if isinstance(answer, sa.Tensor):
                str(answer), sa.latex(answer)
        endings.counts["answered"] += 1
    except (sa.SymattnError, AssertionError) as problem:
        str(problem)
        endings.counts["refused"] += 1
    except Own:
        endings.counts["raised by the caller's object"] += 1
    except (Exception, TooLong) as problem:
        if isinstance(problem, TypeError) and not _fits(f, positional, keywords):
            endings.counts["wrong signature"] += 1
        elif _is_of_the_caller(problem):
            endings.counts["raised by the caller's object"] += 1
        else:
            endings.found("raw", name, problem, call)
    seconds = time.process_time() - start
    endings.slowest = max(endings.slowest, (seconds, call))
    if seconds > LONGEST:
        endings.found("slow", name, TooLong(f"{seconds:.1f} s"), call)


def _is_of_the_caller(problem: BaseException) -> bool:
    """Whether a function that was given raised it, or what it called."""
    return any(Path(frame.filename).name == "wrong_values.py" for frame in traceback.extract_tb(problem.__traceback__))


def _fits(f: Callable[..., Any], positional: list[Any], keywords: dict[str, Any]) -> bool:
    try:
        _signature(f).bind(*positional, **keywords)
    except TypeError:
        return False
    return True


def _brief(value: Any) -> str:
    try:
        return f"{type(value).__name__} {value!r}"[:120]
    except Exception:  # it has none, or is a number too long to write
        return type(value).__name__
