"""``symattn prove``: whether a claim is true, with its proof, its counterexample, or what is left open."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Any

import sympy

from ..core.node import Tensor
from ..errors import OperandError, ParseError, described
from ..ops.leaves import HYPOTHESES, constant, tensor
from ..proof.claims import Claim, compared, eq
from ..proof.engine import prove
from ..proof.refute.counterexample import Counterexample, EntryValue, Example
from ..proof.verdict import Unknown, Verdict
from .expressions import add_declarations, add_formats, answer, declarations, is_latex, read, show

_EXIT_CODES = {"proved": 0, "refuted": 1, "unknown": 3}
_EPILOG = """
A single argument states an equality or a bound, "softmax(Z) <= 1"; definitions may come before it, separated by ";".
--given takes properties of what is declared, "Pi: permutation", "c: positive"; relations of sizes, "T = S", "T <= S";
and claims of the same form, "sum(K*K, axis=-1) = ones(n)".
The exit code is 0 if the claim is proved, 1 if it is refuted, 3 if neither, and 2 for a mistake in the question.
"""
_PROPERTIES = re.compile(r"\s*([A-Za-z][\w']*)\s*:(.*)", re.S)
_RELATION = re.compile(r"<=|>=|==|=|<|>")
_WORD = re.compile(r"[A-Za-z_]\w*'*")
_OPENING, _CLOSING = "([{", ")]}"


def add_options(command: argparse.ArgumentParser) -> None:
    """The claim, what is given, and how long to try."""
    command.epilog, command.formatter_class = _EPILOG, argparse.RawDescriptionHelpFormatter
    command.add_argument("left", metavar="LHS", help="one side of an equality, or a whole claim")
    command.add_argument("right", metavar="RHS", nargs="?", help="the other side")
    add_declarations(command)
    command.add_argument("--given", action="append", default=[], metavar="HYPOTHESIS", help="see below")
    command.add_argument("--budget", type=float, default=10.0, metavar="SECONDS", help="10 unless given")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="of the search for a counterexample")
    add_formats(command, "text", "latex", "json")


def run(options: argparse.Namespace) -> int:
    """Print the verdict; the exit code tells it too."""
    names, given = _hypotheses(options)
    if options.right is None:
        claim = _claim(options.left, names, options.first_index)
    else:
        claim = eq(*(read(side, names, options.first_index) for side in (options.left, options.right)))
    verdict = prove(claim, given=given, budget=options.budget, seed=options.seed)
    show(options, text=lambda: _as_text(verdict), latex=verdict.latex, json=lambda: as_json(verdict))
    return _EXIT_CODES[verdict.status]


# --- claims as text ---


def _claim(text: str, names: Mapping[str, Any], first_index: int | None) -> Claim:
    """The claim that a text states; what it defines serves both sides."""
    if is_latex(text):
        claim = answer(text, names, first_index)
        if not isinstance(claim, Claim):
            raise OperandError(f"{text} is {described(claim)}, and no claim, such as Z = Q K^\\top")
        return claim
    definitions, left, relation, right = _taken_apart(text)
    a, b = (read(f"{definitions}{side}", names) for side in (left, right))
    return compared(a, "=" if relation == "==" else relation, b)


def _taken_apart(text: str) -> tuple[str, str, str, str]:
    """Definitions, left side, relation and right side: the relation is the one outside of all brackets."""
    start = max(text.rfind(";"), text.rfind("\n")) + 1
    last = text[start:]
    found = [match for match in _RELATION.finditer(last) if _depth(last, match.start()) == 0]
    if len(found) != 1:
        raise ParseError("a claim has one of = <= < >= > between its two sides, as in softmax(Z) <= 1", text[:200])
    (match,) = found
    return text[:start], last[: match.start()].strip(), match.group(), last[match.end() :].strip()


def _depth(text: str, place: int) -> int:
    before = text[:place]
    return sum(map(before.count, _OPENING)) - sum(map(before.count, _CLOSING))


# --- hypotheses ---


def _hypotheses(options: argparse.Namespace) -> tuple[dict[str, Any], list[Any]]:
    """What is declared, with its properties and with equal sizes as one, and the other hypotheses."""
    names, given = declarations(options), list[Any]()
    properties = [match for text in options.given if (match := _PROPERTIES.fullmatch(text))]
    stated = [text for text in options.given if not _PROPERTIES.fullmatch(text)]
    tensors = {name for name, x in names.items() if isinstance(x, Tensor)}
    claims = [text for text in stated if tensors & set(_WORD.findall(text))]
    for text in stated:
        if text not in claims:
            names, relation = _related(names, text)
            given.append(relation)
    for match in properties:
        name, text = match[1], match.string
        if name not in names:
            raise OperandError(f"--given {text}: {name!r} is none of {', '.join(names) or 'the declared names'}")
        names[name] = _with_properties(names[name], match[2].replace(",", " ").split(), text)
    return names, [*given, *(_claim(text, names, options.first_index) for text in claims)]


def _with_properties(declared: Any, properties: list[str], text: str) -> Any:
    is_scalar = isinstance(declared, sympy.Symbol)
    known = ("positive",) if is_scalar else HYPOTHESES
    for word in properties:
        if word not in known:
            raise OperandError(f"--given {text}: {word!r} is not a property, which are {', '.join(known)}")
    if not properties:
        raise OperandError(f"--given {text}: name a property after the colon, which are {', '.join(known)}")
    if is_scalar:
        return sympy.Symbol(declared.name, real=True, positive=True)
    declared_as = (*declared.params["hypotheses"], *properties)
    return tensor(declared.name, *declared.shape, **dict.fromkeys(declared_as, True))


def _related(names: Mapping[str, Any], text: str) -> tuple[dict[str, Any], Any]:
    """A relation between sizes; where it makes a size equal to others, these take its place in all shapes."""
    definitions, left, sign, right = _taken_apart(text)
    sizes = {s.name: s for x in names.values() if isinstance(x, Tensor) for s in sorted(x.free_symbols, key=str)}
    known = {**sizes, **{name: x for name, x in names.items() if not isinstance(x, Tensor)}}
    sides = [read(f"{definitions}{side}", known) for side in (left, right)]
    symbols = sorted({s for side in sides for s in side.free_symbols}, key=str)
    if any(side.op is not constant for side in sides) or not all(s.is_integer and s.is_positive for s in symbols):
        raise OperandError(f"--given {text}: this is no relation of sizes; of a scalar, say by its name: c: positive")
    a, b = (side.params["formula"] for side in sides)
    if sign not in ("=", "=="):
        return dict(names), sympy.Rel(a, b, sign)
    symbol, other = (a, b) if a.is_Symbol else (b, a)
    if symbol.is_Symbol and symbol not in other.free_symbols:
        replaced = {name: x.subs({symbol: other}) for name, x in names.items()}
        return {**replaced, symbol.name: other}, sympy.Eq(a, b)
    return dict(names), sympy.Eq(a, b)


# --- what is printed ---


def _as_text(verdict: Verdict) -> str:
    return f"proved\n{verdict.proof.text()}" if verdict.proof is not None else str(verdict)


def as_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict as data for JSON: the proof with what it rests on, the counterexample, or what is left open."""
    found: dict[str, Any] = {"status": verdict.status, "claim": str(verdict.claim)}
    if verdict.proof is not None:
        found["hypotheses"] = list(verdict.proof.hypotheses)
        found["side_conditions"] = list(verdict.proof.side_conditions)
        found["assumptions"] = list(verdict.proof.assumptions)
        found["witness"] = None if verdict.proof.witness is None else _point(verdict.proof.witness.shown)
        found["proof"] = verdict.proof.argument.text().splitlines()
    elif verdict.counterexample is not None:
        found["counterexample"] = {**_point(verdict.counterexample), **_values(verdict.counterexample)}
    else:
        unknown: Unknown = verdict  # type: ignore[assignment]  # the only verdict with neither
        found["reason"], (found["left"], found["right"]) = unknown.reason, unknown.forms
        found["residual"], found["tried"] = unknown.residual, str(unknown.agreement or "")
    return found


def _point(found: Example) -> dict[str, Any]:
    def entries(array: Any) -> Any:
        return str(array[()]) if not array.shape else nested(array.tolist())

    def nested(part: Any) -> Any:
        return list(map(nested, part)) if isinstance(part, list) else str(part)

    return {
        "sizes": {str(s): n for s, n in found.sizes.items()},
        "scalars": {str(s): str(q) for s, q in found.scalars.items()},
        "arrays": {str(x.name): entries(array) for x, array in found.arrays.items()},
        "functions": dict(found.functions),
    }


def _values(found: Counterexample) -> dict[str, Any]:
    def value(x: EntryValue) -> dict[str, str | None]:
        return {"exact": None if x.exact is None else str(x.exact), "decimal": x.decimal}

    return {"index": list(found.index), "left": value(found.left_value), "right": value(found.right_value)}
