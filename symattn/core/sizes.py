"""Sizes: positive integers and SymPy expressions of size symbols, unified strictly.

Two sizes are one size only if their difference expands to zero: ``T`` and ``S`` differ until somebody says otherwise.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import sympy

from ..errors import NamingError, ParseError, ShapeError, described
from .naming import check_name, from_python, is_long, with_short_numbers
from .stated import Condition, Stated

Shape = tuple[sympy.Expr, ...]
ONE = sympy.Integer(1)


def sizes(names: str) -> Any:
    """Positive integer symbols for sizes, one for one name and a tuple for several, like ``sympy.symbols``.

    Raises NamingError for a name that is not letters, digits and underscores.

    >>> import symattn as sa
    >>> T, d = sa.sizes("T d")
    >>> T.is_positive and T.is_integer
    True
    """
    if not isinstance(names, str) or not names.replace(",", " ").split():
        raise NamingError(f"sizes takes names in one string, for example sizes('T S d'), not {described(names)}")
    made = tuple(_symbol(check_name(name)) for name in names.replace(",", " ").split())
    return made[0] if len(made) == 1 else made


def _symbol(name: str) -> sympy.Symbol:
    return sympy.Symbol(name, integer=True, positive=True)


def at_sizes(size: sympy.Expr, known: Mapping[sympy.Symbol, Any]) -> sympy.Expr:
    """A size where its symbols have values; the same few are met again and again."""
    symbols = _symbols_of(size)
    return _substituted(size, symbols, tuple(known[s] for s in symbols))


@lru_cache(maxsize=4096)
def _symbols_of(size: sympy.Expr) -> tuple[sympy.Symbol, ...]:
    return tuple(sorted(size.free_symbols, key=str))


@lru_cache(maxsize=4096)
def _substituted(size: sympy.Expr, symbols: tuple[sympy.Symbol, ...], values: tuple[int, ...]) -> sympy.Expr:
    return size.subs(dict(zip(symbols, values, strict=True)))


def least(symbol: sympy.Symbol) -> int:
    """The least value of a symbol in a size: that of a size is 1, that of an offset 0."""
    return 1 if symbol.is_positive else 0


def as_integer(value: Any) -> int | None:
    """The Python integer that a value is, as NumPy's are; None for a truth value and for what is none."""
    if isinstance(value, (bool, type)) or getattr(getattr(value, "dtype", None), "kind", "") == "b":
        return None
    try:
        return operator.index(value)
    except TypeError:  # of what has no __index__, and of arrays with axes, which have one that refuses
        return None


def as_size(value: Any) -> sympy.Expr:
    """One size from an integer, a SymPy expression of size symbols, or text such as ``"2*d"``."""
    if isinstance(value, str):
        return as_size(_read(value))
    if isinstance(value, bool) or not isinstance(value, (int, sympy.Expr)):
        number = as_integer(value)
        if number is None:
            raise ShapeError(
                f"a size is a positive integer or an expression of sizes, not {described(value)}; "
                "make size symbols by sa.sizes('T d')"
            )
        value = number
    return _checked(sympy.Integer(value) if isinstance(value, int) else value)


_PARTS = (
    sympy.AtomicExpr, sympy.Add, sympy.Mul, sympy.Pow, sympy.floor, sympy.ceiling, sympy.Mod, sympy.Max, sympy.Min,
    sympy.Abs,
)  # fmt: skip


@lru_cache(maxsize=4096)
def _checked(size: sympy.Expr) -> sympy.Expr:
    for symbol in size.free_symbols:
        if not (symbol.is_Symbol and symbol.is_integer and symbol.is_nonnegative):
            raise ShapeError(
                f"the symbol {symbol} in the size {size} is not a positive integer symbol: "
                f"make it by {symbol} = sa.sizes('{symbol}')"
            )
        check_name(symbol.name)
    offsets = {symbol: 0 for symbol in size.free_symbols if not symbol.is_positive}
    if offsets and not size.subs(offsets).is_nonzero and not size.subs(offsets).free_symbols:
        raise ShapeError(
            f"the size {size} is 0 where {' = '.join(map(str, offsets))} = 0, and an axis has at least one entry: "
            f"add 1, or make {' and '.join(map(str, offsets))} positive by sa.sizes"
        )
    if any(power.exp.is_Integer and power.exp > 8 and power.base.is_Add for power in size.atoms(sympy.Pow)):
        raise ShapeError(f"the size {size} is a power too high to be written out: give it a symbol of its own")
    if any(not isinstance(part, _PARTS) for part in sympy.preorder_traversal(size)):
        raise ShapeError(f"a size is an expression of numbers and size symbols, not {described(size)}")
    if any(map(is_long, size.atoms(sympy.Rational))):
        raise ShapeError(f"a size is a number that an axis can have, not {described(size)}")
    size = sympy.expand(size)
    whole = size.is_integer or (size.is_integer is None and size.is_rational_function())
    if not whole or size.has(sympy.Float, sympy.I):
        raise ShapeError(f"a size is a whole number, not {size}")
    if size.is_positive is False or size.is_infinite:
        raise ShapeError(f"a size is positive and finite, not {size}")
    return size


def as_shape(dims: Sequence[Any]) -> Shape:
    """A shape from sizes, or from one string such as ``"T d"``."""
    if len(dims) == 1 and isinstance(dims[0], str):
        dims = dims[0].replace(",", " ").split()
    elif len(dims) == 1 and isinstance(dims[0], (tuple, list)):
        dims = dims[0]
    return tuple(map(as_size, dims))


def same_size(a: sympy.Expr, b: sympy.Expr) -> bool:
    """Whether two sizes are provably one size."""
    return a is b or a == b or _difference(a, b) == 0


@lru_cache(maxsize=4096)
def _difference(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr:
    return sympy.expand(a - b)


def same_shape(a: Shape, b: Shape) -> bool:
    """Whether two shapes are provably one shape."""
    return a == b or (len(a) == len(b) and all(map(same_size, a, b)))


def broadcast_shapes(*shapes: Shape) -> Shape | None:
    """NumPy's broadcast of the shapes, or None if two sizes differ and neither is 1."""
    first = shapes[0]
    if shapes.count(first) == len(shapes):
        return first
    out = [ONE] * max(map(len, shapes))
    for shape in shapes:
        for axis, size in enumerate(shape, len(out) - len(shape)):
            if out[axis] is ONE:
                out[axis] = size
            elif size is not ONE and not same_size(out[axis], size):
                return None
    return tuple(out)


@lru_cache(maxsize=4096)
def never_negative(value: sympy.Expr) -> bool:
    """Whether an expression of sizes and offsets is >= 0 for all of them, as far as its coefficients show it."""
    coefficients = value.as_coefficients_dict()
    if all(part.is_Symbol or part == 1 for part in coefficients):  # linear, as most are
        rising = all(c >= 0 for part, c in coefficients.items() if part.is_Symbol)
        return rising and bool(sum(c for part, c in coefficients.items() if part.is_positive) >= 0)
    least = {size: size + 1 for size in value.free_symbols if size.is_positive}
    terms = sympy.Add.make_args(sympy.expand(value.xreplace(least)))
    return all(term.as_coeff_Mul()[0].is_nonnegative for term in terms)


@lru_cache(maxsize=4096)
def quotient(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr:
    """``a / b`` as a size; where b does not divide a as polynomials, "b divides a" is a side condition."""
    return _checked(sympy.cancel(a / b))


def divisibility(sizes_used: Iterable[sympy.Expr]) -> list[Stated]:
    """The conditions "b divides a" that fractions among the sizes stand for."""
    stated = []
    for size in dict.fromkeys(sizes_used):
        if size.is_Symbol or size.is_Integer:
            continue
        parts = sympy.Add.make_args(sympy.expand(size))
        broken = sympy.Add(*(part for part in parts if sympy.fraction(part)[1] != 1))
        above, below = sympy.fraction(sympy.together(broken))
        if below != 1:
            stated.append(Stated(f"{below} divides {above}", Condition(below, "divides", above)))
    return list(dict.fromkeys(stated))


def inequality(value: sympy.Expr) -> Stated | None:
    """The condition that an expression of sizes and offsets is >= 0, without minus signs; None if it always is."""
    if never_negative(value):
        return None
    value = sympy.expand(value)
    taken = [term for term in sympy.Add.make_args(value) if term.as_coeff_Mul()[0].is_negative]
    low, high = -sympy.Add(*taken), value - sympy.Add(*taken)
    says = " <= ".join(str(with_short_numbers(side)) for side in (low, high))
    return Stated(says, Condition(low, "<=", high))


def show_shape(shape: Shape) -> str:
    """``[T, d]``."""
    return "[" + ", ".join(map(str, shape)) + "]"


_ARITHMETIC = {ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__", ast.Div: "__truediv__"}


def _read(text: str) -> sympy.Expr:
    """A size from text, by a whitelist over Python's syntax tree; nothing is evaluated as Python."""
    try:
        if len(text) > 200 or not text.isascii() or "#" in text:  # Python reads letters of other alphabets as ASCII
            raise SyntaxError
        return _walk(ast.parse(text.strip(), mode="eval").body, text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        if isinstance(problem, (ParseError, NamingError)):
            raise
        raise ParseError("not a size: write an integer or names with + - * /, for example 2*d", text[:80]) from None


def _walk(tree: ast.expr, text: str) -> sympy.Expr:
    if isinstance(tree, ast.Name):
        return _symbol(check_name(from_python(tree.id)))
    if isinstance(tree, ast.Constant) and type(tree.value) is int and tree.value < 10**12:
        return sympy.Integer(tree.value)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return -_walk(tree.operand, text)
    if isinstance(tree, ast.BinOp) and type(tree.op) in _ARITHMETIC:
        method = _ARITHMETIC[type(tree.op)]
        return getattr(_walk(tree.left, text), method)(_walk(tree.right, text))
    raise ParseError("not a size: write an integer or names with + - * /, for example 2*d", text, tree.col_offset)
