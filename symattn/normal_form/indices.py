"""Index expressions: whole numbers built from index symbols, sizes, permutations and integer tensors.

An index symbol is an ``int``. Anything else is a tuple: ``("perm", name, sign, index)`` is the place that a permutation
(sign 1) or its inverse (sign -1) sends an index to, ``("entry", name, indices)`` an entry of an integer tensor, and
``("sum", constant, ((base, coefficient), ...))`` an affine combination of these, with sizes as coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import sympy

from ..scalars import affine as forms
from ..scalars.affine import ends, expanded

Index = Any  # int | tuple, see above
Affine = dict[Index, sympy.Expr]

ZERO: Index = ("sum", sympy.S.Zero, ())


def affine(index: Index) -> tuple[sympy.Expr, Affine]:
    """An index as a constant and the coefficients of its bases."""
    if isinstance(index, tuple) and index[0] == "sum":
        return index[1], dict(index[2])
    return sympy.S.Zero, {index: sympy.S.One}


def combined(constant: Any, coefficients: Mapping[Index, Any]) -> Index:
    """The index with this constant and these coefficients, in its plainest form."""
    kept = tuple((base, c) for base, c in coefficients.items() if c != 0)
    if constant == 0 and len(kept) == 1 and kept[0][1] == 1:
        return kept[0][0]
    return ("sum", constant, kept)


def number(value: Any) -> Index:
    """A size or a whole number as an index."""
    return ("sum", sympy.sympify(value), ())


@lru_cache(maxsize=16384)
def plus(a: Index, b: Index, times: Any = 1) -> Index:
    """``a + times * b``."""
    (constant, total), (more, others) = affine(a), affine(b)
    return combined(expanded(constant + times * more), forms.combined(total, times, others))


def permuted(name: str, sign: int, index: Index) -> Index:
    """Where a permutation, or its inverse, sends an index; the two cancel."""
    if isinstance(index, tuple) and index[0] == "perm" and index[1] == name and index[2] == -sign:
        return index[3]
    return ("perm", name, sign, index)


def symbols(index: Index) -> Iterator[int]:
    """The index symbols that occur."""
    if isinstance(index, int):
        yield index
    elif index[0] == "perm":
        yield from symbols(index[3])
    else:
        for part in index[2]:
            yield from symbols(part if index[0] == "entry" else part[0])


def replaced(index: Index, new: Mapping[int, Index]) -> Index:
    """The index with index symbols replaced."""
    if isinstance(index, int):
        return new.get(index, index)
    if index[0] == "perm":
        return permuted(index[1], index[2], replaced(index[3], new))
    if index[0] == "entry":
        return ("entry", index[1], tuple(replaced(part, new) for part in index[2]))
    total = number(index[1])
    for base, c in index[2]:
        total = plus(total, replaced(base, new), c)
    return total


def solved(index: Index, symbol: int, value: Index) -> Index | None:
    """The value of ``symbol`` for which ``index`` equals ``value``, where that is a whole number in any case."""
    if index == symbol:
        return value
    if isinstance(index, tuple) and index[0] == "perm":
        return solved(index[3], symbol, permuted(index[1], -index[2], value))
    if isinstance(index, tuple) and index[0] == "sum":
        constant, coefficients = affine(index)
        holders = [base for base in coefficients if symbol in symbols(base)]
        if len(holders) == 1 and coefficients[holders[0]] in (1, -1):
            sign = coefficients.pop(holders[0])
            rest = plus(value, combined(constant, coefficients), -1)
            return solved(holders[0], symbol, plus(ZERO, rest, sign))
    return None


def bounds(index: Index, ranges: Mapping[int, sympy.Expr], sizes: Mapping[str, sympy.Expr]) -> Any:
    """The least and the largest value, as expressions of sizes, or None where they are not known.

    ``ranges`` are the sizes of the index symbols, ``sizes`` those of the permutations by name.
    """
    start, slopes = affine(index)
    known = {base: ranges.get(base) if isinstance(base, int) else sizes.get(base[1]) for base in slopes}
    return ends(start, slopes, known)


@lru_cache(maxsize=4096)
def divided(value: sympy.Expr, by: sympy.Expr) -> sympy.Expr | None:
    """``value / by`` where it is a polynomial of sizes with whole coefficients, else None."""
    ratio = sympy.cancel(value / by)
    above, below = sympy.fraction(ratio)
    return sympy.expand(above) if below == 1 and ratio.is_integer else None
