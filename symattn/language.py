"""Puts the operators, printing and entries on Tensor, so that the files below import one way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
from sympy.printing.pretty.stringpict import prettyForm

from .core.late import late
from .core.node import Tensor
from .errors import OperandError
from .graph.entries import entry
from .ops import arithmetic, contraction, layout, logic, pointwise
from .ops.slicing import getitem
from .printing.asked import latex
from .printing.matrix import latex_printer, outline, text, text_and_names
from .scalars.formulas import ranged
from .sympy_bridge import as_explicit, to_sympy


def _turned(function: Any) -> Any:
    return lambda self, other: function(other, self)


def _entrywise(function: Any) -> Any:
    """``*`` and ``/`` of NumPy, which a SymPy matrix would read as the matrix product."""

    def checked(a: Any, b: Any) -> Tensor:
        for x in (a, b):
            if getattr(x, "is_Matrix", False) or isinstance(x, sympy.MatrixBase):
                raise OperandError(
                    f"* and / of a tensor and the SymPy matrix {x} are ambiguous, since SymPy means the matrix "
                    "product by *: write @ for the matrix product, or make both tensors by sa.tensor"
                )
        return function(a, b)

    return checked


def _getitem(self: Tensor, key: Any) -> Any:
    """An entry where an index is a symbol, else NumPy's basic indexing."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(isinstance(k, sympy.Expr) and not k.is_Integer for k in keys):
        return ranged(
            entry(self, keys), {i: n for i, n in zip(keys, self.shape, strict=True) if isinstance(i, sympy.Symbol)}
        )
    return getitem(self, key)


def _within_sympy(self: Tensor, printer: Any) -> str:
    """What SymPy prints of a tensor: alone as we do, and inside of a list the formula."""
    return latex(self) if printer._print_level == 1 else latex_printer([self]).write(self)


_BINARY = {
    "add": arithmetic.add,
    "sub": arithmetic.subtract,
    "mul": _entrywise(arithmetic.multiply),
    "truediv": _entrywise(arithmetic.divide),
    "pow": pointwise.power,
    "matmul": contraction.matmul,
    "and": logic.logical_and,
    "or": logic.logical_or,
}
_OTHER = {
    "lt": logic.less,
    "le": logic.less_equal,
    "gt": logic.greater,
    "ge": logic.greater_equal,
    "neg": arithmetic.negative,
    "invert": logic.logical_not,
    "abs": pointwise.abs,
    "pos": lambda x: x,
    "getitem": _getitem,
    "str": text_and_names,
    "repr": text,  # one line, also inside of lists and mappings
}


def _shown_as(medium: str) -> Callable[[Tensor], str | None]:
    """What a notebook asks a tensor for."""
    return lambda x: late("shown")(x, medium)


def attach() -> None:
    """Operators, printing and entries, on every tensor."""
    for name, function in {**_BINARY, **_OTHER}.items():
        setattr(Tensor, f"__{name}__", function)
    for name, function in _BINARY.items():
        setattr(Tensor, f"__r{name}__", _turned(function))
    Tensor._outline = outline  # type: ignore[method-assign,assignment]
    Tensor.T = property(layout.rank_two_transpose)  # type: ignore[assignment]
    Tensor.mT = property(layout.matrix_transpose)  # type: ignore[assignment]
    Tensor.to_sympy = to_sympy  # type: ignore[method-assign,assignment]
    Tensor.as_explicit = as_explicit  # type: ignore[method-assign,assignment]
    Tensor._latex = _within_sympy  # type: ignore[attr-defined]
    Tensor._sympystr = Tensor._sympyrepr = lambda self, printer: text(self)  # type: ignore[attr-defined]
    Tensor._pretty = lambda self, printer: prettyForm(text(self))  # type: ignore[attr-defined]
    for medium in ("html", "markdown", "latex"):
        setattr(Tensor, f"_repr_{medium}_", _shown_as(medium))


attach()
