"""The form of a function for small arrays: what the signature of a call decides is worked out once.

``make`` gives the function for one signature. It has the statements of the general text in the same order, and so the
same numbers to the last bit; but what depends on shapes and sizes alone (factors, masks, grids of indices) is computed
before, sums over loop axes that all arguments share are left out, and rows are handled by quick helpers.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.naming import new_name
from ..text.helpers import HELPERS
from ..text.quick import Quick, quick

_KNOWN = {"np", "math", "special", *HELPERS, *dir(builtins)}
_FRESH = {"softmax", "masked_softmax", "softmax_vjp", "log_softmax", "sigmoid", "silu", "unit_rows", "over_length"}


class Signature(NamedTuple):
    """What the arguments of a small call are: the shape of each array, the type of real numbers, and sizes by name."""

    shapes: Sequence[tuple[int, ...]]
    dtype: Any
    sizes: Mapping[str, int]


class Straight:
    """Makes functions for small arrays out of the text for all sizes."""

    def __init__(self, source: str, namespace: Mapping[str, Any], numbers: Sequence[bool]) -> None:
        self.source, self.namespace, self.numbers = source, namespace, numbers
        self._makers: dict[tuple[bool, frozenset[str]], Callable[..., Any]] = {}

    def made(self, signature: Signature, shared_loops: bool) -> Callable[..., Any]:
        """The function for one signature; ``shared_loops`` says whether all arguments have the same loop axes."""
        kind = shared_loops, frozenset(signature.sizes)
        if kind not in self._makers:
            writer = _Writer(self.source, sorted(signature.sizes), shared_loops)
            namespace = dict(self.namespace)  # its own, since others may write theirs at the same time
            exec(compile(writer.made(self.numbers), "<symattn>", "exec"), namespace)
            self._makers[kind] = namespace[writer.name]
        sizes = [signature.sizes[name] for name in sorted(signature.sizes)]
        return self._makers[kind](*signature.shapes, signature.dtype, *sizes, quick(signature.dtype), _owned)


def bytes_kept(function: Callable[..., Any]) -> int:
    """The memory of the arrays that were computed before the call."""
    cells = getattr(function, "__closure__", None) or ()
    return sum(cell.cell_contents.nbytes for cell in cells if isinstance(cell.cell_contents, np.ndarray))


def _owned(result: Any) -> Any:
    """A result that is nobody else's."""
    x = np.asarray(result)
    return x.copy() if isinstance(result, np.ndarray) else x[()]


class _Writer(ast.NodeTransformer):
    """Takes out of the statements what is known before the call."""

    def __init__(self, source: str, sizes: Sequence[str], shared_loops: bool) -> None:
        function = _defined(source)
        self.function, self.sizes, self.shared_loops = function, sizes, shared_loops
        names = [a.arg for a in function.args.args]
        self.taken = {*_KNOWN, *names, *sizes, "dtype", function.name}
        self.taken |= {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        self.shapes = {name: new_name(f"{name}_shape", self.taken) for name in names}
        own = ("make", "straight", "quick", "owned")
        self.name, self.inner, self.quick, self.owned = (new_name(name, self.taken) for name in own)
        self.known = {*self.shapes.values(), *sizes, "dtype"}
        self.before: list[ast.stmt] = []
        self.named: dict[str, str] = {}  # parts that are known, by their text
        self.values: dict[str, ast.expr] = {}  # of the names that are not known before

    def made(self, numbers: Sequence[bool]) -> ast.Module:
        """The text of ``make``."""
        function = self.function
        *statements, last = function.body[1:]  # behind the docstring
        assert isinstance(last, ast.Return)
        body = [kept for statement in statements for kept in self._statement(statement)]
        body.append(ast.Return(self._returned(last, numbers)))
        inner = _defined(f"def {self.inner}({self._signature()}):\n    pass")
        given = [*self.shapes.values(), "dtype", *self.sizes, self.quick, self.owned]
        outer = _defined(f"def {self.name}({', '.join(given)}):\n    return {self.inner}")
        inner.body = body
        used = sorted({node.id for node in ast.walk(function) if isinstance(node, ast.Name)} & set(Quick._fields))
        helpers = ast.parse("\n".join(f"{name} = {self.quick}.{name}" for name in used)).body
        outer.body = [*helpers, *self.before, inner, *outer.body]
        return ast.fix_missing_locations(ast.Module([outer], []))

    def _signature(self) -> str:
        scalars = [a.arg for a in self.function.args.kwonlyargs if a.arg not in self.sizes]
        return ", ".join([*self.shapes, *(["*", *scalars] if scalars else [])])

    def _statement(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        """A line of the function, or none where it is known before."""
        assert isinstance(statement, ast.Assign)
        (target,) = statement.targets
        assert isinstance(target, ast.Name)
        name = target.id
        if name == "dtype":
            return
        value = self._settled(statement.value)
        if self.is_known(value):
            self.known.add(name)
            self.before.append(ast.Assign([target], value))
        else:
            self.values[name] = value = self.visit(value)
            yield ast.Assign([target], value)

    def _settled(self, value: ast.expr) -> ast.expr:
        settled: ast.expr = _Settled(self).visit(value)
        return settled

    def is_known(self, value: ast.AST) -> bool:
        """Whether shapes and sizes alone decide this."""
        names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        return names <= self.known | _KNOWN

    def visit(self, node: ast.AST) -> Any:
        """An expression in which each part that is known has a name."""
        if not (isinstance(node, ast.expr) and _is_worth_a_name(node) and self.is_known(node)):
            return self.generic_visit(node)
        text = ast.unparse(node)
        if text not in self.named:
            self.named[text] = new_name("known", self.taken)
            self.known.add(self.named[text])
            self.before.append(ast.Assign([ast.Name(self.named[text], ast.Store())], node))
        return ast.Name(self.named[text], ast.Load())

    def _returned(self, last: ast.Return, numbers: Sequence[bool]) -> ast.expr:
        """The results, each of which may be written to without changing an argument or another result."""
        assert last.value is not None
        value = self._settled(last.value)
        if not isinstance(value, ast.Tuple):
            return self._own(value, numbers[0], set())
        met = set[str]()
        return ast.Tuple([self._own(x, number, met) for x, number in zip(value.elts, numbers, strict=True)], ast.Load())

    def _own(self, value: ast.expr, is_number: bool, met: set[str]) -> ast.expr:
        name = value.id if isinstance(value, ast.Name) else ""
        fresh = not is_number and name not in met and _is_fresh(self.values.get(name, value))
        met.add(name)
        value = self.visit(value)
        return value if fresh else ast.Call(ast.Name(self.owned, ast.Load()), [value], [])


class _Settled(ast.NodeTransformer):
    """Puts in the shapes of arguments, and leaves out sums over loop axes where there are none to sum over."""

    def __init__(self, of: _Writer) -> None:
        self.of = of

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr == "shape" and isinstance(node.value, ast.Name) and node.value.id in self.of.shapes:
            return ast.Name(self.of.shapes[node.value.id], ast.Load())
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if self.of.shared_loops and isinstance(node.func, ast.Name) and node.func.id == "sum_to":
            if any(isinstance(part, ast.Attribute) for part in ast.walk(node.args[1])):  # of an argument, unlike ()
                return self.visit(node.args[0])
        return self.generic_visit(node)


def _is_worth_a_name(node: ast.expr) -> bool:
    """Whether this is computed at all, and may stand by itself."""
    if isinstance(node, ast.Tuple):
        own = any(isinstance(part, (ast.Slice, ast.Starred)) for part in node.elts)
        return not own and any(isinstance(part, ast.Name) for part in ast.walk(node))
    return isinstance(node, (ast.BinOp, ast.Call, ast.Compare, ast.Subscript, ast.BoolOp, ast.IfExp))


def _is_fresh(value: ast.expr) -> bool:
    """Whether an array that is computed so shares no memory with what it is computed from."""
    if not isinstance(value, ast.Call):
        return isinstance(value, (ast.BinOp, ast.Compare))
    if isinstance(value.func, ast.Name):
        return value.func.id in _FRESH
    module, _, name = ast.unparse(value.func).rpartition(".")
    return module == "np" and isinstance(getattr(np, name, None), np.ufunc)


def _defined(source: str) -> ast.FunctionDef:
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    return function
