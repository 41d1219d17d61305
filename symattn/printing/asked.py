r"""LaTeX of whatever is asked for: of a tensor, with what its names stand for where no user gave them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import signature
from itertools import groupby
from types import ModuleType
from typing import Any

import sympy
from sympy.logic.boolalg import Boolean

from ..core.boxes import Box, Fence, Matrix, Sign, Space, Text, commas, row
from ..core.node import Tensor
from ..errors import OperandError, described
from ..graph.names import LONGEST, mentioned_names, tree_size
from ..ops.leaves import as_tensor, definition, is_named, named_by, variable
from .align import Page, unnumbered
from .counting import checked_first_index
from .index import IndexPrinter
from .layout import Equation
from .matrix import MOST_DEFINITIONS, Printer, checked_style, latex_printer, printer_in
from .media.latex import latex as latex_text
from .media.latex import spelling_of
from .media.spelling import PLAIN
from .misleading import check_functions, words_of
from .prose import DEFINED, EQUALS, Step
from .scalars import constants_in, scalar_box
from .symbols import symbol
from .table import Spellings, check_apart, symbol_table

_WHERE = Text("where ")


def latex(
    x: Any,
    style: str = "matrix",
    names: Spellings | None = None,
    safe: str = "",
    gradients: str = "d",
    first_index: int = 0,
) -> str:
    r"""LaTeX of a tensor, of a collection of tensors and scalars, or of anything that has a ``latex`` method.

    Names that no user gave, such as those in a Jacobian, are defined in rows below the formula.
    ``style="matrix"`` writes the expression that the tensor stands for. ``style="index"`` writes one entry, with sums
    and their limits; the entry has a left side if the tensor is named. ``names`` spells tensors, sizes and scalars for
    this call, ``{P: r"\mathbf{A}"}``, and what has its name from them follows: ``\mathrm{d}\mathbf{A}``.
    ``gradients="d"`` writes the gradient by S as ``\mathrm{d}S``, "bar" as ``\bar{S}``, "nabla" as ``\nabla_{S} L``,
    and "partial" as a quotient. ``safe="github"`` uses only what GitHub shows; ``first_index=1`` counts
    all indices from 1. Raises NamingError where two names would
    look the same or one does not occur, and OperandError for another style and for an expression too large to read.

    >>> import symattn as sa
    >>> Q, K = sa.tensor("Q", "T d"), sa.tensor("K", "S d")
    >>> print(sa.latex(sa.softmax(Q @ K.T)))
    \operatorname{softmax}(Q K^{\top})
    >>> print(sa.latex(sa.let("Z", Q @ K.T), style="index"))
    Z_{i j} = \sum_{k = 0}^{d - 1} Q_{i k} K_{j k}
    """
    if isinstance(x, (sympy.Expr, Boolean)):
        return latex_text(_scalar(x, names), safe)
    method = None if isinstance(x, (type, ModuleType)) else getattr(x, "latex", None)
    if isinstance(x, Tensor) or not callable(method):
        roots = [*_tensors_in(x)]
        printer = printer_in(style, roots, names, gradients, first_index)
        below = explanations(roots, printer)
        return _explained(_collected(x, printer), below, safe)
    taken = signature(method).parameters
    asked = {
        "style": checked_style(style) != "matrix",
        "safe": spelling_of(safe) is not PLAIN,
        "names": names is not None,
        "gradients": gradients != "d",
    }
    for option in (key for key, is_asked in asked.items() if is_asked and key not in taken):
        raise OperandError(f"{option}= is for {_TAKE_OPTIONS[option]}, not for {described(x)}")
    if checked_first_index(first_index) and "first_index" not in taken:
        raise OperandError(f"first_index=1 is for tensors, gradients and derivations, not for {described(x)}")
    given = {"style": style, "names": names, "safe": safe, "gradients": gradients}
    options = {**given, "first_index": first_index}
    return method(**{key: value for key, value in options.items() if key in taken})


def named_latex(x: Tensor, safe: str = "") -> str:
    """A tensor as a notebook shows it: one that a user has named with its name, ``O = P V``."""
    printer = latex_printer([x])
    below = explanations([x], printer)
    return _explained(named_formula(x, printer), below, safe)


def named_formula(x: Tensor, printer: Printer) -> Box:
    """What a tensor stands for, behind its name where a user gave it one, or a gradient."""
    if x.op is variable or not is_named(x) or named_by(x) not in ("", "gradient"):
        return printer.shown(x)
    made = printer.row(printer.names[x], definition(x), "")
    heads = [] if made.each is None else [Space(1.0), Fence(made.each)]
    return row(printer.box(x) if made.left is None else made.left, EQUALS, made.right, *heads)


def _scalar(x: Any, names: Spellings | None) -> Box:
    if names is not None:
        return symbol_table([as_tensor(x)], names).scalar(x)
    printed = {name: symbol(name) for name in sorted(s.name for s in x.free_symbols)}
    check_apart(printed, constants_in(x))
    box = scalar_box(x)
    check_functions(words_of(printed.values()), box)
    return box


_TAKE_OPTIONS = {
    "style": "tensors, gradients and derivations",
    "safe": "tensors, scalars and gradients",
    "names": "tensors, scalars, gradients, moments and derivations",
    "gradients": "tensors, gradients and derivations",
}
_TO = Sign("↦", "relation")
_DEEPEST = 30  # collections within each other


# --- lists and mappings ---


def _tensors_in(x: Any, depth: int = 0) -> Iterator[Tensor]:
    """A tensor, or those of a list, a tuple, a set or a mapping, and of what is in it."""
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, (Mapping, list, tuple, set, frozenset)):
        if depth == _DEEPEST:
            raise OperandError(f"latex prints at most {_DEEPEST} collections within each other: does one hold itself?")
        for part in [*x, *x.values()] if isinstance(x, Mapping) else x:
            yield from _tensors_in(part, depth + 1)


def _collected(x: Any, printer: Printer | IndexPrinter) -> Box:
    """A collection of tensors and scalars, or what else SymPy prints."""
    if isinstance(x, Tensor):
        return printer.shown(x)
    if isinstance(x, Mapping):
        keys = (printer.box(key) if isinstance(key, Tensor) else _collected(key, printer) for key in x)
        values = (_collected(value, printer) for value in x.values())
        return Fence(commas(row(key, _TO, value) for key, value in zip(keys, values, strict=True)), "{", "}")
    if isinstance(x, (list, tuple, set, frozenset, sympy.Tuple)):
        is_set = isinstance(x, (set, frozenset))
        fence = ("[", "]") if isinstance(x, list) else ("{", "}") if is_set else ("(", ")")
        return Fence(commas(_collected(part, printer) for part in x), *fence)
    if isinstance(x, str):
        raise OperandError(
            f"latex prints tensors, and {described(x)} is text: sa.tensor makes a tensor of a name and a shape, and "
            "sa.parse_latex reads a formula"
        )
    if isinstance(x, sympy.MatrixBase):
        return Matrix(tuple(tuple(map(printer.scalar, entries)) for entries in x.tolist()))
    if isinstance(x, sympy.NDimArray):
        return _collected(x.tolist(), printer)
    if isinstance(x, (bool, int, float, complex, sympy.Basic)):
        return printer.scalar(x)
    raise OperandError(f"latex prints tensors, results of symattn and SymPy expressions, not {described(x)}")


# --- names that no user gave ---


def explanations(roots: Iterable[Tensor], printer: Printer | IndexPrinter) -> list[Box]:
    """What the names stand for that nobody gave, as far as somebody still reads them, by equations where it has these.

    The printer knows all of them from then on.
    """
    unknown = {printer.names[y]: y for y in mentioned_names(map(definition, roots))}
    last = [*unknown.items()][-MOST_DEFINITIONS:]
    left_out = len(unknown) - len(last)
    readable = [y for _, y in last if tree_size(y) <= LONGEST]
    equations = printer.on_the_way([*roots, *readable])
    more = [Text(f"and {left_out} intermediates more")] * bool(left_out)
    return [*_below_one_another(equations), *(_defined(name, y, printer) for name, y in last), *more]


def _below_one_another(steps: Iterable[Step]) -> Iterator[Box]:
    """Equations, and above several of them for what these hold."""
    for _, group in groupby(steps, key=lambda step: "" if step.each is None else latex_text(step.each)):
        several = [*group]
        each = several[0].each
        if each is not None and len(several) > 1:
            yield row(Text("for "), each, Text(":"))
        beside = [Space(1.0), Fence(each)] if each is not None and len(several) == 1 else []
        yield from (row(step.left, step.relation, step.right, *beside) for step in several if step.left is not None)


def _explained(formula: Box, below: Sequence[Box], safe: str) -> str:
    """A formula in LaTeX, with rows below it that define what in it no user has named."""
    page = Page("aligned", "none", safe=safe)
    if not below:
        return page.written(formula)
    lefts = [None, _WHERE, *[None] * len(below)]
    return unnumbered([Equation(*sides) for sides in zip(lefts, [formula, *below], strict=False)], page)


def _defined(name: str, y: Tensor, printer: Printer | IndexPrinter) -> Box:
    if tree_size(y) > LONGEST:
        return row(printer.table.box(name), DEFINED, Text(definition(y).brief()))
    line = printer.row(name, definition(y), "")
    assert line.left is not None
    heads = [] if line.each is None else [Space(1.0), Fence(line.each)]
    return row(line.left, DEFINED, line.right, *heads)
