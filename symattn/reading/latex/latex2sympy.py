r"""latex2sympy2 behind a wall: it reads scalar calculus, of strings admitted here, and what it gives is checked.

By itself it keeps what it read in tables of its module, where ``=`` and a stray differential change what later calls
give; it takes ``\log`` to base 10, drops primes, reads ``x(y)`` as a function, ``a/bc`` as a/(bc), and a limit as that
from the right. So it is called under a lock, with its tables empty, and on words of one list only; names are single
letters, which stand for symbols of ours; nothing but these, exact numbers and functions of a table comes back.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import threading
import types
import typing
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import sympy

from ...errors import OperandError
from ...scalars.functions import FUNCTIONS
from ..formulas import LARGEST, POWER_OF_E, power_problem

LETTERS = "abcfghkmnpqrstuvwxyzABCFGHKLMNPQRSUVWXYZ"  # without those that are numbers, differentials or transposes
_WORD = re.compile(r"\\[A-Za-z]+|\d+(?:\.\d+)?|\s+|.", re.DOTALL)
_COMMANDS = frozenset(
    r"\frac \sqrt \ln \exp \sin \cos \tan \sinh \cosh \tanh \arcsin \arccos \arctan \binom \int \sum \prod \lim \to "
    r"\infty \pi \cdot".split()
)
_SIGNS = frozenset("+-^_(){}[]|!=")
LONGEST = 2000  # characters
_NAME = "latex2sympy2"
_LOCK = threading.Lock()
_FIRST = (
    r"\int_{0}^{1} (\frac{\exp(a)}{b^{2}}) da"  # the first formula fills the tables of its parser, which takes long
)
_TABLES: Mapping[str, Any] = {"variances": dict, "var": dict, "VARIABLE_VALUES": dict, "is_real": lambda: None}
_HEADS = {
    *(head for head in FUNCTIONS if FUNCTIONS[head].arity == 1),
    sympy.Add, sympy.Mul, sympy.Pow, sympy.binomial, sympy.factorial, sympy.Integral, sympy.Limit, sympy.Derivative,
    sympy.Sum, sympy.Product, sympy.Tuple,
}  # fmt: skip
MOST = 1000  # of what a factorial, a binomial or the limit of a sum may have for a number


# --- the module ---


def load() -> Any:
    """The module latex2sympy2. Raises OperandError where it is not installed, or cannot be imported."""
    with _LOCK:
        if _NAME not in sys.modules and importlib.util.find_spec(_NAME) is None:
            raise OperandError(
                "this is read by latex2sympy2, which is not installed: pip install 'symattn[latex]', or declare a name "
                "for it and write its value"
            )
        try:
            return sys.modules.get(_NAME) or _imported()
        except ImportError as problem:
            raise OperandError(f"latex2sympy2 is installed, and cannot be imported: {problem}") from None


def _imported() -> Any:
    r"""The module, imported beside ``typing.io``, which Python has no longer from 3.13 on, and its own ``gen``."""
    spec = importlib.util.find_spec(_NAME)
    assert spec is not None
    borrowed = types.ModuleType("typing.io")
    borrowed.TextIO = typing.TextIO  # type: ignore[attr-defined]
    names = [name for name in sys.modules if name.split(".")[0] == "gen" or name == "typing.io"]
    kept = {name: sys.modules.pop(name) for name in names}
    sys.modules["typing.io"] = borrowed
    sys.path.insert(0, str(Path(str(spec.origin)).parent))  # another ``gen`` may stand before it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its sources are of an older Python
            module = importlib.import_module("latex2sympy2")
        with _empty_tables(module):
            module.latex2sympy(_FIRST)
        return module
    finally:
        del sys.path[0], sys.modules["typing.io"]
        for name in [name for name in sys.modules if name.split(".")[0] == "gen"]:
            del sys.modules[name]
        sys.modules.update(kept)


@contextmanager
def _empty_tables(module: Any) -> Iterator[None]:
    """The tables of the module empty, and afterwards as they were."""
    kept = {name: getattr(module, name) for name in _TABLES}
    for name, made in _TABLES.items():
        setattr(module, name, made())
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(module, name, value)


# --- what goes in ---


def check(text: str) -> None:
    """Raises OperandError for a string that latex2sympy2 might read as something else than it says."""
    if len(text) > LONGEST:
        raise OperandError(f"the scalar formula has {len(text)} characters; at most {LONGEST} are read")
    words = [word for word in _WORD.findall(text) if not word.isspace()]
    around = ["", "", "", "", *words, ""]
    for n, word in enumerate(words, 4):
        problem = _problem(word, around[n - 4 : n], around[n + 1])
        if problem:
            raise OperandError(f"{word!a} is not given to latex2sympy2: {problem}")
    if _differentials(words) != _wanted(words):
        raise OperandError("a d is not given to latex2sympy2 but behind an integral and in a derivative")


def _problem(word: str, before: list[str], after: str) -> str:
    """What is wrong with a word between others, or ""."""
    if word[0] == "\\":
        return "" if word in _COMMANDS else _UNKNOWN
    if word.isascii() and word.isalpha():
        return _of_letter(word, after)
    if word.isascii() and word[0].isdecimal():
        return "two numbers side by side" if before[-1][-1:].isdecimal() else ""
    if word in _SIGNS:
        return _of_sign(word, before, after)
    return _UNKNOWN


_UNKNOWN = "it is on no list of what is read rightly"
_WITH_SUBSCRIPT = frozenset({*LETTERS, "d", r"\int", r"\sum", r"\prod", r"\lim"})


def _of_sign(word: str, before: list[str], after: str) -> str:
    if word == "_" and before[-1] not in _WITH_SUBSCRIPT:
        return "a subscript of a formula"
    if word == "^" and after == "T":
        return "it would be a transpose"
    if word == "|" and before[-1] != ")" and after != "(":
        return "where this modulus ends is not decided"
    bound = before[0] in (r"\sum", r"\prod") and before[1:3] == ["_", "{"]
    return "it would set the value of a name" if word == "=" and not bound else ""


def _of_letter(word: str, after: str) -> str:
    if word == "d":
        return ""
    if word not in LETTERS:
        return "this letter is a number there, or a transpose"
    return "a letter in front of a parenthesis would be a function" if after == "(" else ""


def _differentials(words: list[str]) -> int:
    """How often a d stands in front of a letter or a command."""
    return sum(a == "d" and b != "_" and (b in LETTERS or b[0] == "\\") for a, b in pairwise(words))


def _wanted(words: list[str]) -> int:
    """How many differentials there are to be: one of each integral, one of each derivative."""
    pieces = zip(words, words[1:], words[2:], words[3:], strict=False)
    derivatives = sum(piece == (r"\frac", "{", "d", "}") for piece in pieces)
    return words.count(r"\int") + derivatives


# --- what comes back ---


def read(text: str, symbols: Mapping[str, Any], from_both_sides: Collection[str] = ()) -> sympy.Expr:
    """The formula that a string stands for, with a value for each name, and nothing worked out.

    The limits by the names ``from_both_sides`` are those from the left and the right, which latex2sympy2 does not know.
    Raises OperandError for what is not admitted, not read, or none of what a scalar formula may hold.
    """
    check(text)
    module = load()
    with _LOCK, _empty_tables(module):
        try:
            found = module.latex2sympy(text)
        except Exception as problem:  # which is the one kind of error that it raises
            raise OperandError(f"latex2sympy2 does not read this: {str(problem).splitlines()[0]}") from None
    if not isinstance(found, sympy.Expr):
        raise OperandError(f"latex2sympy2 gives no scalar here, but {type(found).__name__}")
    return _rebuilt(found, symbols, from_both_sides)


def _rebuilt(expr: Any, symbols: Mapping[str, Any], from_both_sides: Collection[str]) -> Any:
    """An expression with our symbols, each node made anew from a table of what there may be."""
    if isinstance(expr, sympy.Symbol):
        if expr.name not in symbols:
            raise OperandError(f"latex2sympy2 gives the name {expr.name}, which is none of the formula")
        return symbols[expr.name]
    if isinstance(expr, sympy.Rational) or expr in (sympy.pi, sympy.E, sympy.oo, -sympy.oo):
        if isinstance(expr, sympy.Rational) and max(abs(expr.p), expr.q) > LARGEST:
            raise OperandError("the number has too many digits")
        return expr
    if expr.func not in _HEADS:
        raise OperandError(f"latex2sympy2 gives {type(expr).__name__}, which no scalar formula holds here")
    parts = expr.args[:3] if isinstance(expr, sympy.Limit) else expr.args
    arguments = [_rebuilt(part, symbols, from_both_sides) for part in parts]
    if isinstance(expr, sympy.Limit):
        return sympy.Limit(*arguments, "+-" if expr.args[1].name in from_both_sides else str(expr.args[3]))
    _check_size(expr.func, arguments)
    return sympy.Tuple(*arguments) if isinstance(expr, sympy.Tuple) else expr.func(*arguments)


def _check_size(head: Any, arguments: list[Any]) -> None:
    """That no number is worked out that would fill the memory."""
    problem = ""
    if head is sympy.Pow:
        problem = power_problem(*arguments)
    elif head in (sympy.exp, sympy.sinh, sympy.cosh) and arguments[0].is_number:
        problem = f"{head.__name__} of a number beyond {POWER_OF_E} in size" * bool(
            abs(arguments[0].evalf(15)) > POWER_OF_E
        )
    elif head in (sympy.factorial, sympy.binomial):
        problem = f"a {head.__name__} of a number beyond {MOST} in size" * any(map(_is_large, arguments))
    elif head in (sympy.Sum, sympy.Product):
        problem = f"a limit beyond {MOST} in size" * any(_is_large(bound) for bound in arguments[1][1:])
    if problem:
        raise OperandError(problem)


def _is_large(value: Any) -> bool:
    return bool(value.is_number and value.is_finite and abs(value.evalf(15)) > MOST)
