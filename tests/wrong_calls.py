"""Calls of the public functions and methods with wrong values, drawn by a seed, and how they end.

Only SymattnError may come out, a TypeError of Python's own for a wrong signature, or what the caller's own object
raises; and none takes longer than LONGEST seconds.
"""

from __future__ import annotations

import inspect
import random
import time
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import symattn as sa
from symattn import testing

from .soundness import Tally
from .time_limit import LONGEST, TooLong, limited
from .wrong_values import KEYWORDS, K, M, Own, P, Q, T, X, Y, a, d, u, value, x

_OPERATORS = {
    f"__{name}__"
    for name in (
        "add radd sub rsub mul rmul truediv rtruediv matmul rmatmul pow rpow and or lt le gt ge getitem call contains"
    ).split()
}
_BETWEEN_PARTS = {
    "written",
    "box",
    "words",
    "assumed",
    "told",
    "hypotheses_in",
    "sentence",
    "known",
    "printer",
    "lines",
    "has_more_nodes",
}  # called by the package
_WRITES = {"pdf"}  # files, where somebody runs tests
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
    """The functions and classes of ``sa``, its modules and ``symattn.testing``, and the methods of results."""
    modules = (sa, sa.attention, sa.plot, testing)
    found = {f"{m.__name__}.{name}": getattr(m, name) for m in modules for name in m.__all__}
    found = {name: f for name, f in found.items() if callable(f) and not _is_error(f)}
    for label, make in subjects().items():
        kind = type(make())
        written = {name for base in kind.__mro__ if base.__module__.startswith("symattn") for name in vars(base)}
        for name in sorted(written | {"get"}):
            asked = name in _OPERATORS or not (name.startswith("_") or name in _BETWEEN_PARTS | _WRITES)
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


def run(calls: int, seed: int) -> Tally:
    """How the calls of a seed end, function after function; of each kind of finding, and place, one call is told."""
    rng, tally, functions = random.Random(seed), Tally(), public()
    names, told = sorted(functions), set[str]()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number in range(calls):
            name = names[number % len(names)]
            positional, keywords = drawn(functions[name], rng)
            shown = ", ".join([*map(_brief, positional), *(f"{k}={_brief(v)}" for k, v in keywords.items())])
            call, start = f"call {number} of seed {seed}, {name}({shown})", time.process_time()
            ended, problem = _ended(functions[name], positional, keywords)
            seconds = time.process_time() - start
            tally.slowest = max(tally.slowest, (seconds, call))
            ended = "slow" if seconds > LONGEST and ended != "raw" else ended
            tally.counts[ended] += 1
            place = f"{ended}: {_place(problem, name)}"
            if ended in ("raw", "slow") and place not in told:
                told.add(place)
                tally.wrong.append(f"{place}, {seconds:.1f} s, {call}: {_brief(problem)}")
    return tally


def _ended(f: Callable[..., Any], positional: list[Any], keywords: dict[str, Any]) -> tuple[str, BaseException | None]:
    """Make one call, print the tensor that it answers, and tell how it ended."""
    try:
        with limited():
            answer = f(*positional, **keywords)
            if isinstance(answer, sa.Tensor):
                str(answer), sa.latex(answer)
        return "answered", None
    except (sa.SymattnError, AssertionError) as problem:
        str(problem)
        return "refused", problem
    except (Exception, TooLong) as problem:
        if isinstance(problem, TypeError) and not _fits(f, positional, keywords):
            return "wrong signature", problem
        return "raised by the caller's object" if _is_of_the_caller(problem) else "raw", problem


def _place(problem: BaseException | None, name: str) -> str:
    """The kind of an exception, and the line of the package where it arose."""
    frames = traceback.extract_tb(problem.__traceback__) if problem is not None else []
    lines = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if "symattn" in Path(f.filename).parts]
    return f"{type(problem).__name__} at {lines[-1]}" if lines else name


def _is_of_the_caller(problem: BaseException) -> bool:
    """Whether an object that was given raised it, or a function that was given, or what it called."""
    frames = traceback.extract_tb(problem.__traceback__)
    return isinstance(problem, Own) or any(Path(frame.filename).name == "wrong_values.py" for frame in frames)


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
