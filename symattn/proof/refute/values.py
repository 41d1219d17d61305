"""Values of tensors at a point, by their entry formulas alone, in exact numbers and balls.

A formula is written once as a Python expression for each operation and shape, and then serves every node and every
point. The text holds only names and numbers that are made here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any, TypeAlias

import sympy
from flint import fmpq
from sympy.core.relational import Relational

from ...core.naming import is_long
from ...core.node import Tensor, topological
from ...core.operation import Operation
from ...errors import NoRuleError
from ...ops.leaves import cotangent_op, definition, indexed, let_op, operands, stand_in, variable
from ...ops.opaque import unknown_op
from ...ops.rows import softmax_op
from ...scalars.formulas import Choice, Held, InverseEntry, Max, Min, Unknown, UnknownOfRow
from ...scalars.functions import FUNCTIONS
from .balls import Arithmetic, Number, Outside, shortened

Array: TypeAlias = dict[tuple[int, ...], Number]
Values: TypeAlias = dict[Tensor, Array]
Code: TypeAlias = tuple[Callable[..., Array], Sequence[sympy.Symbol], Any]  # of arrays and symbols; and the formula

_CALLS: dict[Any, str] = {
    sympy.Mod: "remainder", sympy.KroneckerDelta: "delta", sympy.atan2: "atan2", sympy.Not: "negation",
    sympy.And: "conjunction", sympy.Or: "disjunction", Held: "",
}  # fmt: skip
_RELATIONS = {  # between numbers that may be balls
    "<": "less({0}, {1})", ">": "less({1}, {0})", "<=": "negation(less({1}, {0}))", ">=": "negation(less({0}, {1}))",
    "==": "equal({0}, {1})", "!=": "negation(equal({0}, {1}))",
}  # fmt: skip
_LOGIC: dict[Any, str] = {sympy.And: " and ", sympy.Or: " or "}
_FOLDS: dict[Any, str] = {sympy.Sum: "sum", Max: "largest", Min: "smallest", UnknownOfRow: "", InverseEntry: ""}
_A_NODE = 3  # what a node costs beyond its entries, in entries
_INDEX = tuple(sympy.Dummy(f"i{k}", integer=True, nonnegative=True) for k in range(32))


@dataclass(frozen=True)
class Point:
    """Sizes, scalars and arrays to evaluate at, and which instance stands for the unknown functions."""

    sizes: Mapping[sympy.Symbol, int]
    scalars: Mapping[sympy.Symbol, Number]
    arrays: Mapping[Tensor, Array]
    instance: int = 0

    def symbol(self, s: sympy.Symbol) -> Number:
        return self.sizes[s] if s in self.sizes else self.scalars[s]


@dataclass(frozen=True)
class Program:
    """Python code for a formula, to be run by any arithmetic, with its numbers under names of their own."""

    code: CodeType
    constants: Mapping[str, Any]

    def function(self, arithmetic: Arithmetic) -> Callable[..., Any]:
        """The code as a function."""
        return eval(self.code, {**arithmetic.names, **self.constants})  # names and numbers made here


class Compiled:
    """A formula, or several, as a Python function of symbols; ``reads`` are arrays by the names that formulas use."""

    def __init__(self, given: Sequence[sympy.Symbol] = (), reads: Sequence[str] = ()) -> None:
        self._names: dict[Any, str] = {s: f"v{n}" for n, s in enumerate(given)}
        self._arguments = [*reads, *self._names.values()]
        self._reads = set(reads)
        self._constants: dict[str, Any] = {}
        self.symbols: list[sympy.Symbol] = []  # those that the point gives, in the order of the arguments

    def program(self, body: str) -> Program:
        """The code of the function of the arrays, the given symbols, and then ``symbols``."""
        arguments = [*self._arguments, *(self._names[s] for s in self.symbols)]
        source = f"lambda {', '.join(arguments)}: {body}"
        return Program(compile(source, "<entry formula>", "eval"), self._constants)

    def write(self, e: Any) -> str:
        """The formula as Python text, between parentheses where it needs them."""
        if e.is_Symbol:
            return f"{e.name}[()]" if e.name in self._reads else self._name(e)
        if e.is_Integer:
            return self.constant(int(e)) if is_long(e) else f"({e})" if e < 0 else str(e)
        if isinstance(e, sympy.Indexed):
            return f"{e.base}[{' '.join(self._whole(i) + ',' for i in e.indices)}]"
        for kind, writer in _WRITERS:
            if isinstance(e, kind):
                return writer(self, e)
        known = FUNCTIONS.get(type(e))
        call = _CALLS.get(type(e)) if known is None else known.ball or known.name
        if call is None:
            raise NoRuleError(f"no value is known for {type(e).__name__} in {e}")
        return f"{call}({', '.join(map(self.write, e.args))})"

    def _name(self, s: sympy.Symbol) -> str:
        if s not in self._names:
            self._names[s] = f"s{len(self.symbols)}"
            self.symbols.append(s)
        return self._names[s]

    def bind(self, s: sympy.Symbol) -> str:
        """A name for a bound index; one that is bound twice, side by side, may keep its name."""
        return self._names.setdefault(s, f"k{len(self._names)}")

    def _whole(self, e: Any) -> str:
        """An index or a bound: an integer."""
        written = self.write(e)
        return written if _is_integral(e) else f"whole({written})"

    def rows(self, limits: Sequence[Any]) -> str:
        """``for k in range(..)`` for limits whose last is outermost: the bounds of the others may hold its index."""
        loops = []
        for k, low, high in limits[::-1]:
            ends = self._whole(low), self._whole(high + 1)
            loops.append(f"for {self.bind(k)} in range({', '.join(ends)})")
        return " ".join(loops)

    def constant(self, value: Any) -> str:
        """A number under a name of its own."""
        name = f"c{len(self._constants)}"
        self._constants[name] = value
        return name

    def _sum(self, e: Any) -> str:
        return "(" + " + ".join(map(self.write, e.args)) + ")"

    def _product(self, e: Any) -> str:
        return "(" + " * ".join(map(self.write, e.args)) + ")"

    def _power(self, e: Any) -> str:
        if e.exp == 2:
            return f"({self.write(e.base)} * {self.write(e.base)})" if e.base.is_Symbol else self._called("power", e)
        return self._called("power", e)

    def _called(self, name: str, e: Any) -> str:
        return f"{name}({', '.join(map(self.write, e.args))})"

    def _fold(self, e: Any) -> str:
        loops = self.rows(e.limits)
        return f"{_FOLDS[type(e)]}([{self.write(e.function)} {loops}])"

    def _largest(self, e: Any) -> str:
        return f"{'largest' if type(e) is sympy.Max else 'smallest'}([{', '.join(map(self.write, e.args))}])"

    def _unknown(self, e: Any) -> str:
        return f"unknown({str(e.args[0])!r}, {self.write(e.args[1])})"

    def _unknown_of_row(self, e: Any) -> str:
        loops = self.rows(e.limits)
        row = f"[{self.write(e.function)} {loops}]"
        return f"unknown_of_row({str(e.args[3])!r}, {row}, {self.write(e.places[0])})"

    def _inverse(self, e: Any) -> str:
        outer, inner = self.rows(e.limits[:1]), self.rows(e.limits[1:])
        matrix = f"[[{self.write(e.function)} {inner}] {outer}]"
        arrays = {x.base.label for x in e.function.atoms(sympy.Indexed)}
        bound = {k for k, _, _ in e.limits}
        symbols = e.function.atoms(sympy.Symbol).union(*(end.free_symbols for limit in e.limits for end in limit[1:]))
        others = sorted(symbols - arrays - bound, key=str)
        parts = [self.constant(e), *sorted(map(str, arrays)), *map(self.write, others)]
        return f"inverse_entry(({', '.join(parts)},), lambda: {matrix}, {', '.join(map(self.write, e.places))})"

    def _choice(self, e: Any) -> str:
        condition, a, b = map(self.write, e.args)
        if _is_decided(e.args[0]):
            return f"({a} if {condition} else {b})"
        return f"choose({condition}, lambda: {a}, lambda: {b})"

    def _relation(self, e: Any) -> str:
        form = f"{{0}} {e.rel_op} {{1}}" if _is_decided(e) else _RELATIONS[e.rel_op]
        return "(" + form.format(*map(self.write, e.args)) + ")"

    def _logic(self, e: Any) -> str:
        if _is_decided(e):
            return "(" + _LOGIC[type(e)].join(map(self.write, e.args)) + ")"
        return self._called(_CALLS[type(e)], e)


_WRITERS: tuple[tuple[Any, Callable[[Compiled, Any], str]], ...] = (
    (sympy.Add, Compiled._sum),
    (sympy.Mul, Compiled._product),
    (sympy.Pow, Compiled._power),
    ((sympy.Sum, Max, Min), Compiled._fold),
    ((sympy.Max, sympy.Min), Compiled._largest),
    (Choice, Compiled._choice),
    (Unknown, Compiled._unknown),
    (UnknownOfRow, Compiled._unknown_of_row),
    (InverseEntry, Compiled._inverse),
    (Relational, Compiled._relation),
    ((sympy.And, sympy.Or), Compiled._logic),
    (sympy.Rational, lambda code, e: code.constant(fmpq(int(e.p), int(e.q)))),
    (type(sympy.pi), lambda code, e: "pi()"),
    (type(sympy.E), lambda code, e: "exp(1)"),
    (type(sympy.S.NegativeInfinity), lambda code, e: "minus_infinity"),
    (type(sympy.true), lambda code, e: "True"),
    (type(sympy.false), lambda code, e: "False"),
)


def _is_integral(e: Any) -> bool:
    """Whether the text of an expression gives a Python integer: sums and products of indices and sizes."""
    if e.is_Add or e.is_Mul:
        return all(map(_is_integral, e.args))
    return bool(e.is_Integer or (e.is_Symbol and e.is_integer and e.is_nonnegative))


def _is_decided(condition: Any) -> bool:
    """Whether a condition is about integers, and so either True or False."""
    if isinstance(condition, Relational):
        return all(map(_is_integral, condition.args))
    return isinstance(condition, (sympy.And, sympy.Or)) and all(map(_is_decided, condition.args))


def ordered(roots: Sequence[Tensor], definitions: Mapping[Tensor, Tensor]) -> list[Tensor]:
    """The nodes whose values the roots need, inputs before users; a defined tensor needs its definition."""

    def needed(node: Tensor) -> Sequence[Tensor]:
        return (definitions[node],) if node in definitions else operands(node)

    return topological(roots, inputs=needed)


class Evaluator:
    """Values of nodes at points; each kind of node is compiled once."""

    def __init__(self, arithmetic: Arithmetic, definitions: Mapping[Tensor, Tensor]) -> None:
        self.arithmetic, self.definitions = arithmetic, definitions
        self._entries_made = 0
        self._compiled: dict[Any, Code] = {}
        self._codes: dict[Tensor, Code] = {}
        self._folds: dict[Tensor, bool] = {}

    @property
    def work(self) -> int:
        """How many entries were computed and terms added up so far."""
        return self._entries_made + self.arithmetic.terms

    def values(self, order: Sequence[Tensor], point: Point) -> Values:
        """The entries of every node; raises Outside and Undecided where there are none, and NoRuleError."""
        self.arithmetic.instance = point.instance
        found: Values = {}
        for node in order:
            if node in self.definitions:
                found[node] = found[self.definitions[node]]
            elif node.op is variable:
                found[node] = point.arrays[node]
            elif node.op in (let_op, cotangent_op):
                found[node] = found[definition(node)]
            else:
                self.arithmetic.budget.check()
                found[node] = self._entries(node, found, point)
        return found

    def _entries(self, node: Tensor, found: Values, point: Point) -> Array:
        entries, symbols, _ = self._codes.get(node) or self._code(node)
        arguments = [*(found.get(x) for x in node.inputs), *map(point.symbol, symbols)]
        try:
            array = entries(*arguments)
        except (KeyError, ZeroDivisionError, OverflowError) as problem:  # KeyError: an index that is out of range
            raise Outside(f"{node.op.title}: {problem}") from None
        self._entries_made += len(array) + _A_NODE
        if node.op is softmax_op and node.params["empty"] == "error" and _has_empty_row(array, node.params["axes"]):
            raise Outside("a row with nothing to attend to")
        return {at: shortened(x) for at, x in array.items()}

    def _code(self, node: Tensor) -> Code:
        """The compiled formula of a node, shared by all nodes of the same operation, parameters and shapes."""
        inputs = tuple((x.shape, x.kind, x.holds_minus_infinity) for x in node.inputs)
        key = (node.op, tuple(sorted(node.params.items())), inputs)
        if key not in self._compiled:
            try:
                program, symbols, formula = _program(*key)
                self._compiled[key] = program.function(self.arithmetic), symbols, formula
            except (SyntaxError, MemoryError, RecursionError):  # Python's parser has its limits
                raise NoRuleError(
                    f"the entry formula of {node.op.title} is nested too deeply to be evaluated"
                ) from None
        self._codes[node] = self._compiled[key]
        return self._codes[node]

    @property
    def formulas(self) -> list[Any]:
        """The entry formulas that were met so far."""
        return [formula for _, _, formula in self._compiled.values()]

    def folds(self, node: Tensor) -> bool:
        """Whether an entry of the node is made of many entries: a sum, a maximum, an inverse."""
        if node not in self._folds:
            self._folds[node] = node.op not in (variable, let_op, cotangent_op) and self._formula(node).has(*_FOLDS)
        return self._folds[node]

    def _formula(self, node: Tensor) -> Any:
        return (self._codes.get(node) or self._code(node))[2]

    def expected_work(self, order: Sequence[Tensor], sizes: Mapping[sympy.Symbol, int]) -> int:
        """About how much work values at such sizes are, where the same nodes had values before."""
        shapes = {x.shape for node in order for x in (node, *node.inputs)}
        lengths = {size: _length(size, sizes) for size in set(itertools.chain(*shapes))}
        total = 0
        for node in order:
            entries = math.prod(lengths[size] for size in node.shape)
            if node in self._codes and self.folds(node):
                entries *= max((lengths[size] for x in node.inputs for size in x.shape), default=1)
            total += entries + _A_NODE
        return total


@lru_cache(maxsize=1024)
def _program(op: Operation, params: Any, inputs: Any) -> tuple[Program, Sequence[sympy.Symbol], Any]:
    """The entry formula at every index, as a function of the arrays of the inputs and of symbols; and the formula."""
    reads = [f"_{k}" for k in range(len(inputs))]  # no symbol of the user's has such a name
    node = op.node(*(stand_in(f"x{k}", *known) for k, known in enumerate(inputs)), **dict(params))
    code = Compiled((), reads)

    def read(k: int, index: tuple[Any, ...]) -> Any:
        return indexed(reads[k], index, finite=not node.inputs[k].holds_minus_infinity)

    index = _INDEX[: node.rank]
    limits = [(i, sympy.S.Zero, size - 1) for i, size in zip(index, node.shape, strict=True)]
    loops = code.rows(limits[::-1])
    formula = sympy.sympify(node.op.entry(read, index, node))
    at = "".join(f"{code.bind(i)}, " for i in index)
    body = f"{{({at}): {code.write(formula)} {loops}}}" if index else f"{{(): {code.write(formula)}}}"
    return code.program(body), code.symbols, formula


def _has_empty_row(array: Array, axes: Sequence[int]) -> bool:
    rows: dict[tuple[int, ...], bool] = {}
    for at, x in array.items():
        row = tuple(i for axis, i in enumerate(at, -len(at)) if axis not in axes)
        rows[row] = rows.get(row, False) or not _is_zero(x)
    return not all(rows.values())


def _is_zero(x: Number) -> bool:
    return (isinstance(x, (int, fmpq)) and x == 0) or bool(x == 0)


def unknown_names(nodes: Sequence[Tensor]) -> list[str]:
    """The unknown functions among the nodes, in alphabetical order, without their primes."""
    return sorted({node.params["function"].rstrip("'") for node in nodes if node.op is unknown_op})


def shape_at(x: Tensor, sizes: Mapping[sympy.Symbol, int]) -> tuple[int, ...]:
    """The shape with numbers for the sizes."""
    return tuple(_length(size, sizes) for size in x.shape)


def _length(size: Any, sizes: Mapping[sympy.Symbol, int]) -> int:
    return sizes[size] if size.is_Symbol else _number(size, tuple(sizes[s] for s in _symbols(size)))


@lru_cache(maxsize=4096)
def _symbols(size: Any) -> tuple[sympy.Symbol, ...]:
    return tuple(sorted(size.free_symbols, key=str))


@lru_cache(maxsize=4096)
def _number(size: Any, values: tuple[int, ...]) -> int:
    """A size where its symbols have values; the same few are met again and again."""
    return int(size.subs(dict(zip(_symbols(size), values, strict=True))))


def indices(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All indices below a shape, in order."""
    return itertools.product(*map(range, shape))
