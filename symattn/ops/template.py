"""Entry formulas of nodes: recorded, with a symbol for each entry that is read, and compiled, for any arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import sympy

from ..core.node import Tensor
from ..core.operation import Operation
from ..errors import NoRuleError
from ..scalars.evaluate import Compiled, Program
from .leaves import constant, indexed, stand_in


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


_templates: WeakKeyDictionary[Tensor, Template] = WeakKeyDictionary()


def template(node: Tensor, zero: sympy.Expr = sympy.S.Zero) -> Template:
    """The entry formula of a node, with a symbol for each entry that it reads; scalar constants are written in.

    ``zero`` is what is written for the constant 0: SymPy forgets what is multiplied by the number.
    """
    if any(x.op is constant and x.params["formula"] == 0 for x in node.inputs):
        return _recorded(node, zero)
    found = _templates.get(node)
    if found is None:
        _templates[node] = found = _recorded(node, zero)
    return found


def _recorded(node: Tensor, zero: sympy.Expr) -> Template:
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


@dataclass(frozen=True, eq=False)
class Entries:
    """All entries of a node, by their indices: a function of the arrays of its inputs and of the values of symbols."""

    program: Program
    symbols: Sequence[sympy.Symbol]
    formula: Any


def entries_of(node: Tensor) -> Entries:
    """The compiled entry formula of a node, one for all nodes of the same operation, parameters and shapes."""
    inputs = tuple((x.shape, x.kind, x.holds_minus_infinity) for x in node.inputs)
    try:
        return _entries(node.op, tuple(sorted(node.params.items())), inputs)
    except (SyntaxError, MemoryError, RecursionError):  # Python's parser has its limits
        raise NoRuleError(f"the entry formula of {node.op.title} is nested too deeply to be evaluated") from None


@lru_cache(maxsize=1024)
def _entries(op: Operation, params: Any, inputs: Any) -> Entries:
    reads = [f"_input{k}" for k in range(len(inputs))]  # no symbol of the user's has such a name
    node = op.node(*(stand_in(f"x{k}", *known) for k, known in enumerate(inputs)), **dict(params))
    code = Compiled((), reads)

    def read(k: int, index: tuple[Any, ...]) -> Any:
        return indexed(reads[k], index, finite=not node.inputs[k].holds_minus_infinity)

    index = tuple(_placeholder("i", n, "nonnegative integer") for n in range(node.rank))
    limits = [(i, sympy.S.Zero, size - 1) for i, size in zip(index, node.shape, strict=True)]
    loops = code.rows(limits[::-1])
    formula = sympy.sympify(node.op.entry(read, index, node))
    at = "".join(f"{code.bind(i)}, " for i in index)
    body = f"{{({at}): {code.write(formula)} {loops}}}" if index else f"{{(): {code.write(formula)}}}"
    return Entries(code.program(body), code.symbols, formula)
