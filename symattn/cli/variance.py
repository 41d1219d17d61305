"""``symattn variance``: mean and variance of an expression of random tensors, exactly, with what they assume."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

import sympy

from ..core.naming import check_name, from_python
from ..core.node import Tensor
from ..errors import OperandError, ParseError, SymattnError
from ..ops.leaves import constant
from ..probability import laws
from ..probability.moments import moments
from ..probability.report import Moments
from .expressions import add_declarations, add_formats, declarations, read, show

_EPILOG = """
A law is a kind with what is known: "q: iid" (mean 0, variance 1), "k: iid mean=mu variance=s kurtosis=3", "k: iid
laplace", "k: iid bernoulli probability=1/4", "q, k: iid_pair correlation=rho", "x: normal mean=mu covariance=C" (of
rows, by declared tensors), "x: sphere" (rows of norm 1) and "x: constant" (not random). Values are scalar expressions;
names in them that are not declared become real symbols, positive ones in a variance.
"""
_KINDS = ("iid", "iid_pair", "normal", "sphere", "constant")
_KEY = re.compile(r"\b([a-z]+)\s*=(?!=)")
_WORD = re.compile(r"(?<![\w.])[A-Za-z]\w*'*(?!\s*[\w(])")
_INDEX = re.compile(r"[A-Za-z]\w*|\d+", re.ASCII)


def add_options(command: argparse.ArgumentParser) -> None:
    """The expression and the laws of its tensors."""
    command.epilog, command.formatter_class = _EPILOG, argparse.RawDescriptionHelpFormatter
    command.add_argument("expression", metavar="EXPR", help='for example "q @ k / sqrt(d)"')
    add_declarations(command)
    command.add_argument("--law", action="append", default=[], metavar='"q: iid"', help="of a tensor; see below")
    command.add_argument("--entry", metavar="i,j", help="of an expression with axes: the entry at these indices")
    add_formats(command, "text", "latex", "json")


def run(options: argparse.Namespace) -> int:
    """Print the moments, and what they assume."""
    names = declarations(options)
    quantity = _quantity(read(options.expression, names, options.first_index), options.entry, names)
    found = moments(quantity, _laws(options.law, names))
    return show(options, text=found.text, latex=found.latex, json=lambda: _as_json(options, found))


def _quantity(x: Tensor, entry: str | None, names: Mapping[str, Any]) -> Any:
    """The tensor without axes, or the entry at the indices that are named."""
    if entry is None:
        if x.rank:
            letters = ",".join("ijabcdefgh"[: x.rank])
            raise OperandError(f"{x.brief()} has axes, and moments are of one number: add --entry {letters}")
        return x
    taken = {*names, *(s.name for s in x.free_symbols)}
    indices: list[Any] = []
    for word in (part.strip() for part in entry.split(",")):
        if not _INDEX.fullmatch(word):
            raise ParseError(f"--entry takes letters and numbers, as in i,j or 0,j, not {word!r}", entry[:80])
        if word in taken:
            raise OperandError(f"--entry {entry}: {word!r} is a name already: choose another letter")
        indices.append(int(word) if word.isdigit() else sympy.Symbol(word, integer=True, nonnegative=True))
    return x[tuple(indices)]


# --- laws as text ---


class Stated(NamedTuple):
    """A law as it is written: its tensors, its kind, the words after it, and what is known, all as text."""

    text: str
    tensors: list[str]
    kind: str
    words: list[str]
    known: dict[str, str]


def _laws(texts: Sequence[str], names: Mapping[str, Any]) -> dict[Any, Any]:
    """The laws that the command line gives, by their tensors."""
    laws: dict[Any, Any] = {}
    stated = [_taken_apart(text) for text in texts]
    known = {**names, **_scalars(stated, names)}
    for law in stated:
        for name in law.tensors:
            if getattr(names.get(name), "rank", None) is None:
                raise OperandError(f"--law {law.text}: {name!r} is not declared by --shape")
        key = tuple(names[name] for name in law.tensors)
        laws[key if len(key) > 1 else key[0]] = _made(law, known)
    if len(laws) < len(stated):
        raise OperandError("a tensor has one law, and --law gives two to the same")
    return laws


def _taken_apart(text: str) -> Stated:
    names, colon, rest = text.partition(":")
    keys = list(_KEY.finditer(rest))
    ends = [*(match.start() for match in keys), len(rest)]
    kind, *words = rest[: ends[0]].split() or [""]
    if not colon or kind not in _KINDS:
        raise ParseError(f"a law is written as 'q: iid mean=mu'; the kinds are {', '.join(_KINDS)}", text[:200])
    known = {match[1]: rest[match.end() : end].strip(" ,") for match, end in zip(keys, ends[1:], strict=True)}
    return Stated(text, [name.strip() for name in names.split(",")], kind, words, known)


def _scalars(stated: Sequence[Stated], names: Mapping[str, Any]) -> dict[str, Any]:
    """Real symbols for the names in laws that are not declared; positive ones where one is part of a variance."""
    sizes = {s.name for x in names.values() if isinstance(x, Tensor) for s in x.free_symbols}
    met = {name: key for law in stated for key, value in law.known.items() for name in _WORD.findall(value)}
    positive = {name for law in stated for name in _WORD.findall(law.known.get("variance", ""))}
    return {
        name: sympy.Symbol(check_name(from_python(name)), real=True, positive=True if name in positive else None)
        for name in met
        if name not in names and name not in sizes
    }


def _made(law: Stated, names: Mapping[str, Any]) -> Any:
    """The law, by the function of the library that makes it."""
    make = partial(laws.iid, "constant") if law.kind == "constant" else getattr(laws, law.kind)
    known = {key: _value(text, names) for key, text in law.known.items()}
    try:
        return make(*law.words, **known)
    except SymattnError:
        raise
    except TypeError:  # a word too many, or one that this kind of law does not take
        takes = [name for name in signature(make).parameters if name != "name"]
        raise OperandError(
            f"--law {law.text}: {law.kind} takes {', '.join(takes) or 'nothing'}, each as in mean=mu"
        ) from None


def _value(text: str, names: Mapping[str, Any]) -> Any:
    """A scalar, a declared tensor, or a pair or list of scalars between parentheses."""
    if not text:
        raise ParseError("a law says what is known by values, as in mean=mu", text)
    if text.startswith("(") and "," in text:
        return tuple(_value(part, names) for part in text[1:].removesuffix(")").split(","))
    x = read(text, names)
    return x.params["formula"] if x.op is constant else x


# --- what is printed ---


def _as_json(options: argparse.Namespace, found: Moments) -> dict[str, Any]:
    values, used = found.known()
    return {
        "expression": options.expression,
        "entry": options.entry,
        **{
            name: str(values[name]) if name in values else None for name in ("mean", "variance", "skewness", "kurtosis")
        },
        "assumptions": list(used),
    }
