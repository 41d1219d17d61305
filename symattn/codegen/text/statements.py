"""NumPy expressions as statements that write into an array which is there: ``a + b`` as ``np.add(a, b, out=c)``.

What is rewritten is the text alone, so records need not know of it. Sums along rows become matrix products with ones,
which BLAS is fast at, and those of products inner products of rows.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from functools import cache

import numpy as np

from .helpers import HELPERS

_UFUNCS = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.MatMult: "matmul",
    ast.Pow: "power",
}  # fmt: skip


def parsed(text: str) -> ast.expr:
    """The tree of an expression."""
    return ast.parse(text, mode="eval").body


_PART = r"[A-Za-z_][\w.]*(?:\[[\w:]+(?:, [\w:]+)*\])?(?:\.mT)?"  # a name, or a part of an array
_GIVEN = rf"(?:\w+=)?(?:{_PART}|-?\d+)"
_BRACED = re.compile(rf"(?<![\w\])])\(({_PART})\)")
_PLAIN = re.compile(rf"-?\d+|{_PART}|{_PART} [-+*/@] {_PART}|[A-Za-z_][\w.]*\({_GIVEN}(?:, {_GIVEN})*\)")


def tidied(text: str) -> str:
    """An expression without needless parentheses, by Python's own unparser; the plainest need no parser for that."""
    plain = _BRACED.sub(r"\1", text)
    return plain if _PLAIN.fullmatch(plain) else ast.unparse(ast.parse(text))


def is_atom(tree: ast.expr) -> bool:
    """Whether an expression reads an array or a number, or a view of one, and computes nothing."""
    if isinstance(tree, ast.Attribute):
        return tree.attr in ("mT", "T") and is_atom(tree.value)
    if isinstance(tree, ast.Subscript):
        return is_atom(tree.value)
    return isinstance(tree, (ast.Name, ast.Constant))


def written_into(text: str, out: str) -> list[str] | None:
    """The statements that write an expression into an array; None where NumPy has no such form for it."""
    tree = parsed(text)
    if isinstance(tree, ast.BinOp) and type(tree.op) in _UFUNCS:
        return _binary(text, tree, out)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return [f"np.negative({_piece(text, tree.operand)}, out={out})"]
    if not isinstance(tree, ast.Call):
        return None
    name = _piece(text, tree.func)
    if name == "np.where":
        return _chosen([_piece(text, a) for a in tree.args], out)
    return [f"{text.rstrip()[:-1]}, out={out})"] if _takes_out(name) else None


def _piece(text: str, part: ast.expr) -> str:
    """The text of a part of an expression that is tidy, so that its own parentheses are those it needs inside."""
    return text[part.col_offset : part.end_col_offset]


def _binary(text: str, tree: ast.BinOp, out: str) -> list[str]:
    left, right, name = _piece(text, tree.left), _piece(text, tree.right), _UFUNCS[type(tree.op)]
    if name == "power" and right in ("2", "2.0"):
        return [f"np.square({left}, out={out})"]
    if _is_number(tree.right) and not is_atom(tree.left) and not isinstance(tree.op, ast.MatMult):
        before = written_into(left, out)  # 2 * x / 3, one after the other
        if before is not None:
            return [*before, f"np.{name}({out}, {right}, out={out})"]
    return [f"np.{name}({left}, {right}, out={out})"]


def _is_number(tree: ast.expr) -> bool:
    """Whether a factor is certainly a Python number."""
    if isinstance(tree, ast.Call):
        return ast.unparse(tree.func).startswith("math.")
    return isinstance(tree, ast.Constant)


def _chosen(parts: list[str], out: str) -> list[str] | None:
    """``np.where(c, a, b)``: one side, and then the other where it is chosen."""
    condition, a, b = parts
    if not _reads(b, out):
        first = [] if a == out else [f"np.copyto({out}, {a})"]
        return [*first, f"np.copyto({out}, {b}, where=~({condition}))"]
    if not _reads(a, out):
        first = [] if b == out else [f"np.copyto({out}, {b})"]
        return [*first, f"np.copyto({out}, {a}, where={condition})"]
    return None


def _reads(text: str, name: str) -> bool:
    """Whether an expression reads what has that name, or is written that way."""
    return text == name or any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(parsed(text)))


@cache
def _takes_out(name: str) -> bool:
    if name.startswith("np."):
        f = getattr(np, name[3:], None)
        return isinstance(f, np.ufunc) and f.nout == 1
    return name in HELPERS and "out" in inspect.signature(HELPERS[name]).parameters


def sum_of_rows(text: str, ones: Callable[[], str]) -> str | None:
    """A sum along the last axis as a product with ones, or of rows with rows; None for any other expression."""
    tree = parsed(text)
    if not (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) and tree.func.attr == "sum"):
        return None
    options = {k.arg: ast.unparse(k.value) for k in tree.keywords}
    if options.get("axis") != "-1":
        return None
    keep = "[..., None]" if options.get("keepdims") == "True" else ""
    of = tree.func.value
    if isinstance(of, ast.BinOp) and isinstance(of.op, ast.Mult):
        return f"np.vecdot({ast.unparse(of.left)}, {ast.unparse(of.right)}){keep}"
    return f"np.matmul({ast.unparse(of)}, {ones()}){keep}" if is_atom(of) else None
