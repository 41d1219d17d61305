"""Scalar formulas: Python's syntax read into SymPy by a whitelist, as ``str`` writes them."""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import sympy
from sympy.logic.boolalg import Boolean

from ..core.naming import CONSTANTS
from ..scalars.functions import FUNCTIONS
from .source import Source

LARGEST = 10**1000  # whole numbers that may be written: as many digits as are written out
BITS = 512  # of the largest number that a power may make
EXPONENT = 64
POWER_OF_E = 1000

_SIGNS: Mapping[type[ast.AST], tuple[str, Callable[..., Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.Pow: ("**", operator.pow),
    ast.MatMult: ("@", operator.matmul),
    ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_),
    ast.USub: ("-", operator.neg),
    ast.UAdd: ("+", operator.pos),
    ast.Invert: ("~", operator.invert),
}
COMPARISONS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: sympy.Eq,
    ast.NotEq: sympy.Ne,
}
_COMPOSED: Mapping[str, Callable[..., Any]] = {
    "sqrt": sympy.sqrt,
    "rsqrt": lambda x: 1 / sympy.sqrt(x),
    "log1p": lambda x: sympy.log(1 + x),
}
RELATIONS = {"Eq": sympy.Eq, "Ne": sympy.Ne, "equal": sympy.Eq}


def functions() -> dict[str, tuple[int, Callable[..., Any]]]:
    """The scalar functions by the names that are read, with how many arguments they take."""
    named = {name: (f.arity, f.head) for f in FUNCTIONS.values() for name in (f.name, *f.also)}
    return {**named, **{name: (1, function) for name, function in _COMPOSED.items()}}


def is_relation(value: Any) -> bool:
    """Whether a value is true or false; SymPy's symbols are not, though they count as Boolean there."""
    return isinstance(value, Boolean) and not isinstance(value, sympy.Expr)


def power_problem(base: Any, exponent: Any) -> str:
    """What keeps a power from being made: a number that would fill the memory, or minus infinity for masks; or ""."""
    if base.is_infinite:
        return "an infinite number has no powers here: -oo stands in masks alone"
    if not exponent.is_number:
        return ""
    large = abs(exponent.evalf(15)) > EXPONENT
    large = large or (base.is_Rational and abs(exponent) * max(base.p.bit_length(), base.q.bit_length()) > BITS)
    if large or (base.is_number and base != 0 and abs(exponent * sympy.log(abs(base)).evalf(15)) > BITS):
        return "the power is too large to be written out"
    return "division by zero" if base == 0 and exponent.is_negative else ""


class Formula(ast.NodeVisitor):
    """Reads scalar formulas over named symbols."""

    def __init__(self, source: Source, names: Mapping[str, Any]) -> None:
        self.source = source
        self.names = names

    def read(self, tree: ast.expr) -> Any:
        """The SymPy value of a tree. Raises ParseError for what is not on the whitelist: what has no method here."""
        return self.visit(tree)

    def generic_visit(self, tree: ast.AST) -> Any:
        raise self.source.error(f"{_called(tree)} is not read here", tree)

    # --- leaves ---

    def visit_Name(self, tree: ast.Name) -> Any:
        name = self.source.spelling(tree)
        if name in self.names:
            return self.names[name]
        if name in CONSTANTS:
            return CONSTANTS[name]
        raise self.source.error(self.unknown(name), tree)

    def unknown(self, name: str) -> str:
        return f"{name!r} is not declared: a formula knows {', '.join(sorted(self.names)) or 'no names'}"

    def visit_Constant(self, tree: ast.Constant) -> Any:
        if isinstance(tree.value, bool):
            return sympy.true if tree.value else sympy.false
        if isinstance(tree.value, (int, float)):
            return self.number(tree)
        raise self.source.error(f"{tree.value!r} is not a number", tree)

    def number(self, tree: ast.Constant) -> sympy.Expr:
        """Exactly the number as it is spelled."""
        if isinstance(tree.value, int):
            if tree.value > LARGEST:
                raise self.source.error("the number is larger than 10**1000", tree)
            return sympy.Integer(tree.value)
        try:
            decimal = Decimal(self.source.spelling(tree))
        except InvalidOperation:  # an exponent beyond all limits of decimal numbers
            raise self.source.error(
                f"the number has more than {EXPONENT} digits before or after the point", tree
            ) from None
        if decimal and (abs(decimal.adjusted()) > EXPONENT or len(decimal.as_tuple().digits) > EXPONENT):
            raise self.source.error(f"the number has more than {EXPONENT} digits before or after the point", tree)
        return sympy.Rational(*decimal.as_integer_ratio())

    # --- operators ---

    def visit_BinOp(self, tree: ast.BinOp) -> Any:
        if type(tree.op) not in _SIGNS:
            raise self.source.error(f"{_called(tree.op)} is not an operator here: use + - * / @ ** & | ~", tree)
        return self.operate(tree, *_SIGNS[type(tree.op)], self.read(tree.left), self.read(tree.right))

    def visit_UnaryOp(self, tree: ast.UnaryOp) -> Any:
        if type(tree.op) not in _SIGNS:
            raise self.source.error("write ~ for not", tree)
        return self.operate(tree, *_SIGNS[type(tree.op)], self.read(tree.operand))

    def operate(self, tree: ast.expr, sign: str, function: Callable[..., Any], *values: Any) -> Any:
        """A scalar operator: logic on relations, arithmetic on the rest."""
        if any(is_relation(x) != (sign in "&|~") for x in values) or sign == "@":
            raise self.source.error(f"{sign} does not apply here", tree)
        if sign == "/" and values[1] == 0:
            raise self.source.error("division by zero", tree)
        if sign == "**":
            self.check_power(tree, *values)
        return self.valued(tree, sign, function, *values)

    def valued(self, tree: ast.expr, name: str, function: Callable[..., Any], *values: Any) -> Any:
        """The value of a function or relation of scalars, where it has one."""
        try:
            value = function(*values)
        except (TypeError, ValueError, ZeroDivisionError) as problem:
            raise self.source.error(f"{name} has no value here: {problem}", tree) from None
        if isinstance(value, sympy.Basic) and value.has(sympy.nan, sympy.zoo, sympy.AccumBounds):
            raise self.source.error(f"{name} has no value here: of real numbers, it would be {value}", tree)
        return value

    def check_power(self, tree: ast.expr, base: Any, exponent: Any) -> None:
        problem = power_problem(base, exponent)
        if problem:
            raise self.source.error(problem, tree)

    def visit_Compare(self, tree: ast.Compare) -> Any:
        left, right = self.compared(tree)
        if is_relation(left) or is_relation(right):
            raise self.source.error("relations are not compared: put & or | between them", tree)
        return self.valued(tree, "the comparison", COMPARISONS[type(tree.ops[0])], left, right)

    def compared(self, tree: ast.Compare) -> tuple[Any, Any]:
        """The two sides."""
        if len(tree.ops) > 1:
            raise self.source.error("a comparison has two sides: write (a < b) & (b < c)", tree)
        if type(tree.ops[0]) not in COMPARISONS:
            raise self.source.error("compare by <, <=, >, >=, == or !=", tree)
        return self.read(tree.left), self.read(tree.comparators[0])

    # --- calls ---

    def visit_Call(self, tree: ast.Call) -> Any:
        name = self.called(tree, [*functions(), *RELATIONS, "Piecewise", "where"])
        if tree.keywords:
            raise self.source.error(f"{name} of scalars takes no keywords", tree.keywords[0].value)
        if name == "Piecewise":
            return self.piecewise(tree)
        values = [self.read(argument) for argument in tree.args]
        if name == "where":
            self.check_count(tree, name, 3)
            self.check_relation(tree.args[0], values[0])
            return sympy.Piecewise((values[1], values[0]), (values[2], True))
        if name in RELATIONS:
            self.check_count(tree, name, 2)
            return self.valued(tree, name, RELATIONS[name], *values)
        return self.apply(tree, name, values)

    def called(self, tree: ast.Call, known: Collection[str]) -> str:
        """The name of the function that is called, if it is known."""
        if not isinstance(tree.func, ast.Name):
            raise self.source.error("only functions called by name are read", tree.func)
        name = self.source.spelling(tree.func)
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
            raise self.source.error(f"unknown function {name!r}: {hint}", tree)
        for argument in [*tree.args, *(k for k in tree.keywords if k.arg is None)]:
            if isinstance(argument, (ast.Starred, ast.keyword)):
                raise self.source.error("arguments are written one by one, without *", argument)
        return name

    def apply(self, tree: ast.Call, name: str, values: list[Any]) -> Any:
        """A scalar function of scalars."""
        count, function = functions()[name]
        if count == 1:
            self.check_count(tree, name, 1)
        elif len(values) < 2:
            raise self.source.error(f"{name} takes two arguments", tree)
        for argument, value in zip(tree.args, values, strict=True):
            if is_relation(value):
                raise self.source.error(f"{name} takes numbers, not relations: write where(relation, 1, 0)", argument)
        if name in ("exp", "sinh", "cosh") and values[0].is_number and abs(values[0].evalf(15)) > POWER_OF_E:
            raise self.source.error(f"{name} of a number beyond {POWER_OF_E} in size", tree)
        if name in ("mod", "Mod") and values[1] == 0:
            raise self.source.error("division by zero", tree)
        return self.valued(tree, name, function, *values)

    def piecewise(self, tree: ast.Call) -> Any:
        """``Piecewise((value, relation), ...)``."""
        pieces = []
        for argument in tree.args:
            if not isinstance(argument, ast.Tuple) or len(argument.elts) != 2:
                raise self.source.error("Piecewise takes pairs (value, relation)", argument)
            value, relation = map(self.read, argument.elts)
            self.check_relation(argument.elts[1], relation)
            pieces.append((value, relation))
        if not pieces:
            raise self.source.error("Piecewise takes pairs (value, relation)", tree)
        return sympy.Piecewise(*pieces)

    def check_count(self, tree: ast.Call, name: str, count: int) -> None:
        if len(tree.args) != count:
            raise self.source.error(f"{name} takes {count} argument{'s' * (count > 1)}, not {len(tree.args)}", tree)

    def check_relation(self, tree: ast.expr, value: Any) -> None:
        if not is_relation(value):
            raise self.source.error("a relation such as i < j is meant here", tree)

    # --- what only expressions of tensors have ---

    def visit_Attribute(self, tree: ast.Attribute) -> Any:
        raise self.source.error(f"a scalar has no .{tree.attr}", tree)

    def visit_Subscript(self, tree: ast.Subscript) -> Any:
        raise self.source.error("a scalar has no entries; a tensor cannot stand inside a formula of indices", tree)


_CALLED: dict[type[ast.AST], str] = {
    ast.Lambda: "a lambda (only from_index and elementwise take one)",
    ast.Tuple: "a tuple",
    ast.List: "a list",
    ast.BoolOp: "and / or (write & or |)",
    ast.IfExp: "if / else (write where(condition, a, b))",
    ast.JoinedStr: "text",
}


def _called(tree: ast.AST) -> str:
    return _CALLED.get(type(tree), f"{type(tree).__name__}")
