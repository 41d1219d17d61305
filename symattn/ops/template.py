"""The recording reader: the entry formula of a node, with a symbol for each entry that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy

from ..core.node import Tensor
from .leaves import constant


@dataclass(frozen=True)
class Template:
    """The entry formula of a node: its index symbols, and what each placeholder reads."""

    formula: Any
    index: tuple[sympy.Symbol, ...]
    reads: Mapping[sympy.Symbol, tuple[int, tuple[Any, ...]]]


@lru_cache(maxsize=1024)
def _placeholder(letter: str, number: int, known: str) -> sympy.Dummy:
    """A symbol for an index or for an entry that is read; one template never holds one twice."""
    return sympy.Dummy(f"{letter}{number}", **dict.fromkeys(known.split(), True))


def template(node: Tensor, zero: sympy.Expr = sympy.S.Zero) -> Template:
    """The entry formula of a node, with a symbol for each entry that it reads; scalar constants are written in.

    ``zero`` is what is written for the constant 0: SymPy forgets what is multiplied by the number.
    """
    index = tuple(_placeholder("i", n, "nonnegative integer") for n in range(node.rank))
    reads: dict[sympy.Symbol, tuple[int, tuple[Any, ...]]] = {}
    kept: dict[tuple[int, tuple[Any, ...]], sympy.Symbol] = {}

    def read(k: int, where: tuple[Any, ...]) -> sympy.Expr:
        if node.inputs[k].op is constant:
            return node.inputs[k].params["formula"] or zero
        where = tuple(where)
        symbol = kept.get((k, where))
        if symbol is None:
            whole, masked = node.inputs[k].kind == "integer", node.inputs[k].holds_minus_infinity
            known = "integer" if whole else "extended_real" if masked else "real"
            kept[k, where] = symbol = _placeholder("x", len(kept), known)
            reads[symbol] = k, where
        return symbol

    return Template(sympy.sympify(node.op.entry(read, index, node)), index, reads)


def merged(node: Tensor, entry: Template) -> dict[sympy.Symbol, sympy.Symbol]:
    """Each symbol by the first one that reads the same entry of the same tensor, as both do in ``x * x``."""
    first: dict[tuple[Tensor, tuple[Any, ...]], sympy.Symbol] = {}
    return {symbol: first.setdefault((node.inputs[k], where), symbol) for symbol, (k, where) in entry.reads.items()}
