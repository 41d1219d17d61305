"""Names: checked once, where they are made, so that everything printed or compiled later is safe."""

from __future__ import annotations

import difflib
import keyword
import re
from collections.abc import Container, Iterable, Iterator
from itertools import chain, count

import sympy

from ..errors import NamingError, described

_IN_PYTHON = {"lambda": "lambda_"}  # a letter of mathematics whose name Python keeps for itself
_FROM_PYTHON = {word: name for name, word in _IN_PYTHON.items()}
CONSTANTS = {str(c): c for c in (sympy.pi, sympy.E, sympy.oo, sympy.EulerGamma, sympy.Catalan, sympy.GoldenRatio)}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*'*")


def check_name(name: object) -> str:
    """Return ``name`` if it may name a tensor, a size or a scalar, else raise NamingError."""
    if not isinstance(name, str):
        raise NamingError(f"a name is a string, not {described(name)}")
    if len(name) > 60:
        raise NamingError(f"{name[:20] + '...'!r} cannot be a name: it has {len(name)} characters, and 60 are the most")
    if not _NAME.fullmatch(name):
        raise NamingError(
            f"{name!r} cannot be a name: use ASCII letters and digits, single underscores between them, "
            "and trailing primes, for example W_q, d_k, P1, x'"
        )
    if keyword.iskeyword(name) and name not in _IN_PYTHON:
        short = f"{name[:3]!r} or " if len(name) > 3 else ""
        raise NamingError(f"{name!r} is a Python keyword and cannot be a name: write {short}{name + '1'!r}")
    return name


def in_python(name: str) -> str:
    """A name as Python source and NumPy text have it."""
    return _IN_PYTHON.get(name, name)


def from_python(word: str) -> str:
    """The name that a word of Python source or of NumPy text stands for."""
    return _FROM_PYTHON.get(word, word)


def spelled_in_python(value: sympy.Basic) -> sympy.Basic:
    """A formula with its symbols as NumPy text has them."""
    kept = {s: sympy.Symbol(in_python(s.name), **s.assumptions0) for s in value.free_symbols if s.name in _IN_PYTHON}
    return value.xreplace(kept) if kept else value


def fresh_name(wanted: str, taken: Container[str], number: int = 0) -> str:
    """``wanted``, or ``wanted_1``, ``wanted_2``, ... when it is taken; no number below ``number`` is tried."""
    name = f"{wanted}_{number}" if number else wanted
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def new_name(wanted: str, taken: set[str]) -> str:
    """A fresh name, which is taken from then on."""
    name = fresh_name(wanted, taken)
    taken.add(name)
    return name


def marked(name: str, mark: str) -> str:
    """A name with a mark on its letter, before a number that tells it from others: the tangent of U_1 is Udot_1."""
    stem, _, number = name.rpartition("_")
    return f"{stem}{mark}_{number}" if stem and number.isdigit() else f"{name}{mark}"


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message on an unknown name: which known one is nearest, or all of them; those of its case first."""
    listed = sorted(known, key=lambda other: (other[:1].lower() != name[:1].lower(), other))
    near = difflib.get_close_matches(name, listed, 1, cutoff=0.4)
    return f"nearest to it is {near[0]!r}" if near else f"there are {', '.join(sorted(listed)) or 'none'}"


def free_letters(wanted: str, taken: Container[str]) -> Iterator[str]:
    """Names for indices that are not taken: the wanted letters, then ``k_1``, ``k_2``, ... without end."""
    return (letter for letter in chain(wanted, (f"k_{n}" for n in count(1))) if letter not in taken)


def counted(count: int) -> str:
    """A number of parts as text; of a large one, which Python may refuse to write out, the power of ten."""
    return str(count) if count < 10**9 else f"about 10**{int(count.bit_length() * 0.30103)}"


_DIGITS = 1000  # of a number that is written out


def is_long(q: sympy.Rational) -> bool:
    """Whether a number has too many digits to be written out."""
    return max(int(q.p).bit_length(), int(q.q).bit_length()) > 3.32 * _DIGITS


def with_short_numbers(value: sympy.Basic) -> sympy.Basic:
    """The value with symbols for its longest numbers, which say roughly what they are."""
    return value.xreplace({q: _roughly(q) for q in value.atoms(sympy.Rational) if is_long(q)})


def _roughly(q: sympy.Rational) -> sympy.Symbol:
    digits, _, power = str(q.evalf(6)).partition("e")
    return sympy.Symbol(f"(about {digits}e{int(power or 0)})")
