"""NumPy-like text in: ``"Z = Q @ K.T / sqrt(d); softmax(Z) @ V"``, read by a whitelist over Python's syntax tree.

It reads what ``str`` writes: the text of a tensor, under the same names, is the same node again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import sympy

import symattn

from ..core.exact import ARGUMENTS, INDICES
from ..core.naming import check_name, from_python, in_python
from ..core.node import Tensor
from ..errors import NamingError, ParseError, ShapeError
from ..ops.contraction import matmul, matmul_of
from ..ops.layout import transpose
from ..ops.leaves import HYPOTHESES, as_tensor, let, tensor
from ..ops.logic import equal
from .formulas import COMPARISONS, RELATIONS, Formula, functions
from .source import Source


def read(text: str, names: Mapping[str, Tensor | sympy.Symbol]) -> Tensor:
    """The tensor that a text of statements stands for: assignments name intermediates, the last statement is meant.

    ``names`` holds the declared tensors and scalar symbols; the sizes in their shapes are declared by them. Raises
    ParseError, with a caret, for everything that is not an expression of tensors, and the error of the operation,
    with a caret, where shapes do not fit.

    >>> import symattn as sa
    >>> from symattn.reading import read
    >>> Q, K = sa.tensor("Q", "T d"), sa.tensor("K", "S d")
    >>> read("softmax(Q @ K.T / sqrt(d))", {"Q": Q, "K": K}) is sa.softmax(read("Q @ K.T / sqrt(d)", {"Q": Q, "K": K}))
    True
    """
    source = Source(text)
    known = _declared(names)
    result: Any = None
    for statement in source.statements:
        if isinstance(statement, ast.Expr):
            result = as_tensor(_read_tensor(source, known, statement.value))
        elif isinstance(statement, ast.Assign):
            name = _assigned(source, known, statement)
            known[in_python(name)] = result = let(name, _read_tensor(source, known, statement.value))
        else:
            raise source.error("a statement is an expression or an assignment such as Z = Q @ K.T", statement)
    if result is None:
        raise ParseError("there is nothing to read: write an expression such as softmax(Q @ K.T) @ V")
    return result


def parse_shape(text: str) -> Tensor:
    """A tensor from a declaration, ``"Q: T d"``, ``"M: T S, binary"``, ``"X: T h*d"``; no sizes make a rank-0 tensor.

    The same without spaces, as a shell has it, is ``"Q=T,d"`` and ``"M=T,S,binary"``.

    Raises ParseError or NamingError for other text and ShapeError for what is no size.

    >>> from symattn.reading import parse_shape
    >>> parse_shape("M: T S, binary").kind
    'binary'
    """
    name, colon, rest = text.partition(":")
    dims, _, properties = rest.partition(",")
    if not colon:
        name, equals, rest = text.partition("=")
        if not equals:
            raise ParseError("a shape is declared as 'Q: T d' or 'M: T S, binary', or as 'Q=T,d'", text[:80])
        words = [word.strip() for word in rest.split(",")]
        dims = " ".join(word for word in words if word not in HYPOTHESES)
        properties = " ".join(word for word in words if word in HYPOTHESES)
    for word in properties.split():
        if word not in HYPOTHESES:
            raise ParseError(
                f"{word!r} is not a property; sizes are separated by spaces, and after the comma may come "
                f"{', '.join(HYPOTHESES)}",
                text[:200],
                len(name) + 1 + len(dims) + properties.find(word) + 1,
            )
    return tensor(check_name(from_python(name.strip())), *dims.split(), **dict.fromkeys(properties.split(), True))


def _declared(names: Mapping[str, Tensor | sympy.Symbol]) -> dict[str, Any]:
    """The names with the sizes that come with the tensors; one name has one meaning."""
    known: dict[str, Any] = {in_python(name): x for name, x in names.items()}
    for x in names.values():
        for size in sorted(x.free_symbols, key=str) if isinstance(x, Tensor) else ():
            if known.setdefault(in_python(size.name), size) != size:
                raise NamingError(f"{size.name!r} names both a size or scalar of {x.brief()} and something else")
    return known


def _assigned(source: Source, known: Mapping[str, Any], statement: ast.Assign) -> str:
    target = statement.targets[0]
    if len(statement.targets) > 1 or not isinstance(target, ast.Name):
        raise source.error("an assignment names one intermediate, as in Z = Q @ K.T", statement)
    name = source.spelling(target)
    if name in known:
        raise source.error(f"{name!r} has a meaning already: choose another name", target)
    with source.place(target):
        return check_name(from_python(name))


def _read_tensor(source: Source, known: Mapping[str, Any], tree: ast.expr) -> Any:
    value = _Expression(source, known).read(tree)
    with source.place(tree):
        return as_tensor(value)


# --- functions ---

_ROWS = ("sum", "mean", "max", "min", "logsumexp")


def _row(name: str) -> Callable[[Any], Tensor]:
    return lambda x: getattr(symattn, name)(x, axis=-1, keepdims=True)


def _order(x: Tensor, order: Any) -> tuple[int, ...]:
    axes = tuple(map(int, order))
    if sorted(axes) != list(range(-len(axes), 0)) or len(axes) > x.rank:
        raise ShapeError(f"permute of {x.brief()}: {axes} is no order of its last axes, counted from the end")
    return axes


def _of_core(a: Any, b: Any, core: Any) -> tuple[Tensor, Tensor, tuple[int, int]]:
    a, b, (left, right) = as_tensor(a), as_tensor(b), map(int, core)
    if not (1 <= left <= min(2, a.rank) and 1 <= right <= min(2, b.rank)):
        raise ShapeError(f"matmul of {a.brief()} and {b.brief()}: core is (1 or 2, 1 or 2), not {(left, right)}")
    return a, b, (left, right)


# what only printed text calls by name
_WRITTEN: Mapping[str, Callable[..., Tensor]] = {
    **{f"row{name}": _row(name) for name in _ROWS},
    "permute": lambda x, order: transpose(as_tensor(x), _order(as_tensor(x), order)),
    "matmul": lambda a, b, core=None: matmul(a, b) if core is None else matmul_of(*_of_core(a, b, core)),
}
_OPERATIONS = {name for name, home in symattn._MODULE_OF.items() if home.startswith("ops.")} - {"tensor", "let"}
KNOWN = frozenset({*_OPERATIONS, *_WRITTEN})
_OF_TENSORS: Mapping[type[ast.AST], Callable[..., Tensor]] = {
    **COMPARISONS,
    ast.Eq: equal,
    ast.NotEq: lambda a, b: ~equal(a, b),
}
_TAKES_TEXT = {"einsum": (0,)}  # arguments that are text; the keyword ``empty`` is text anywhere


class _Expression(Formula):
    """Reads expressions of tensors; what holds no tensor stays a SymPy scalar."""

    def unknown(self, name: str) -> str:
        if name in KNOWN:
            return f"{name} is a function: write {name}(...)"
        tensors = [x.brief() for x in self.names.values() if isinstance(x, Tensor)]
        scalars = [n for n, x in self.names.items() if not isinstance(x, Tensor)]
        listed = f"declared are {', '.join(tensors) or 'no tensors'}; sizes and scalars: {', '.join(scalars) or 'none'}"
        return f"{name!r} is not declared: {listed}; a size is declared by a shape that has it"

    def operate(self, tree: ast.expr, sign: str, function: Callable[..., Any], *values: Any) -> Any:
        if not any(isinstance(x, Tensor) for x in values):
            return super().operate(tree, sign, function, *values)
        with self.source.place(tree):
            return function(*values)

    def visit_Compare(self, tree: ast.Compare) -> Any:
        left, right = self.compared(tree)
        with self.source.place(tree):
            return _OF_TENSORS[type(tree.ops[0])](as_tensor(left), as_tensor(right))

    def visit_Call(self, tree: ast.Call) -> Any:
        name = self.called(tree, {*KNOWN, *functions(), *RELATIONS, "Piecewise"})
        if name == "Piecewise" or (name in RELATIONS and name not in KNOWN):
            return Formula(self.source, self._scalars()).read(tree)
        if name in ("from_index", "elementwise"):
            return self.with_lambda(tree, name)
        text_at = _TAKES_TEXT.get(name, ())
        values = [self.argument(argument, place in text_at) for place, argument in enumerate(tree.args)]
        options = {str(k.arg): self.argument(k.value, k.arg == "empty") for k in tree.keywords}
        if name in functions() and not options and all(isinstance(x, sympy.Expr) for x in values):
            return self.apply(tree, name, values)
        if name not in KNOWN:
            raise self.source.error(f"{name} is for scalars; of tensors, known are {', '.join(sorted(KNOWN))}", tree)
        return self.run(tree, name, *values, **options)

    def run(self, tree: ast.Call, name: str, *values: Any, **options: Any) -> Any:
        """The public function of that name; its own complaints get the place."""
        function = _WRITTEN.get(name) or getattr(symattn, name)
        with self.source.place(tree):
            try:
                return function(*values, **options)
            except symattn.SymattnError:
                raise
            except (TypeError, ValueError, AttributeError) as problem:
                raise self.source.error(f"{name} does not take these arguments: {problem}", tree) from None

    def argument(self, tree: ast.expr, may_be_text: bool) -> Any:
        """A tensor, a scalar, a tuple of them, True, False, None, or text where the function takes text."""
        if isinstance(tree, (ast.Tuple, ast.List)):
            return tuple(self.argument(part, False) for part in tree.elts)
        if isinstance(tree, ast.Constant):
            if tree.value is None or isinstance(tree.value, bool):
                return tree.value
            if isinstance(tree.value, str) and may_be_text:
                return tree.value
        return self.read(tree)

    def visit_Constant(self, tree: ast.Constant) -> Any:
        if isinstance(tree.value, bool):
            raise self.source.error(f"{tree.value} is not a tensor: write ones(...), zeros(...) or a comparison", tree)
        return super().visit_Constant(tree)

    # --- constants by index, and functions entry by entry ---

    def with_lambda(self, tree: ast.Call, name: str) -> Any:
        place = 1 if name == "from_index" else 0
        if len(tree.args) <= place or tree.keywords or not isinstance(tree.args[place], ast.Lambda):
            example = "from_index((T, S), lambda i, j: j <= i)" if place else "elementwise(lambda x: x*exp(x), X)"
            raise self.source.error(f"{name} is written as {example}", tree)
        others = [self.argument(a, False) for k, a in enumerate(tree.args) if k != place]
        lambda_tree = tree.args[place]
        assert isinstance(lambda_tree, ast.Lambda)
        if place:
            shape = others[0] if isinstance(others[0], tuple) else (others[0],)
            formula = self.formula(lambda_tree, INDICES, len(shape))
            return self.run(tree, name, shape, lambda *_: formula, *others[1:])
        formula = self.formula(lambda_tree, ARGUMENTS, len(others))
        return self.run(tree, name, sympy.Lambda(ARGUMENTS[: len(others)], formula), *others)

    def formula(self, tree: ast.Lambda, symbols: tuple[sympy.Symbol, ...], count: int) -> Any:
        """The body of a lambda as a SymPy formula of ``count`` symbols."""
        given = tree.args
        plain = not (given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg or given.defaults)
        if not plain or len(given.args) != count or count > len(symbols):
            raise self.source.error(f"the lambda takes {count} plain names, at most {len(symbols)}", tree)
        bound = {self.source.spelling(argument): symbol for argument, symbol in zip(given.args, symbols, strict=False)}
        return Formula(self.source, {**self._scalars(), **bound}).read(tree.body)

    def _scalars(self) -> dict[str, Any]:
        return {name: x for name, x in self.names.items() if not isinstance(x, Tensor)}

    # --- attributes and subscripts ---

    def visit_Attribute(self, tree: ast.Attribute) -> Any:
        base = self.read(tree.value)
        if tree.attr not in ("T", "mT") or not isinstance(base, Tensor):
            raise self.source.error("only .T and .mT of tensors are read", tree)
        with self.source.place(tree):
            return base.T if tree.attr == "T" else base.mT

    def visit_Subscript(self, tree: ast.Subscript) -> Any:
        base = self.read(tree.value)
        if not isinstance(base, Tensor):
            raise self.source.error("only tensors are indexed", tree)
        parts = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
        keys = [self.key(part) for part in parts]
        first = tuple(slice(k, k + 1) if isinstance(k, sympy.Expr) else k for k in keys)
        then = tuple(_again(k) for k in keys if not isinstance(k, int))
        with self.source.place(tree):
            part = base[first]
            return part[then] if any(k == 0 for k in then) else part

    def key(self, tree: ast.expr) -> Any:
        """An index: an integer, a slice, None, ..., or a place such as ``S - 1``, which is a SymPy expression."""
        if isinstance(tree, ast.Slice):
            lower, upper, step = (None if e is None else self.edge(e) for e in (tree.lower, tree.upper, tree.step))
            return slice(lower, upper, step)
        if isinstance(tree, ast.Constant) and (tree.value is None or tree.value is Ellipsis):
            return tree.value
        return self.edge(tree)

    def edge(self, tree: ast.expr) -> Any:
        value = self.read(tree)
        if not isinstance(value, sympy.Expr) or not value.is_integer:
            raise self.source.error("an index is an integer, a slice, None, ..., or an expression of sizes", tree)
        return int(value) if value.is_Integer else value


def _again(key: Any) -> Any:
    """The key of the second index, which takes off the axes of length 1 left by places such as ``S - 1``."""
    return 0 if isinstance(key, sympy.Expr) else Ellipsis if key is Ellipsis else slice(None)
