r"""Declarations in comments, ``<!-- symattn: Q: T d; K: S d -->`` and ``% symattn: Q: T d``.

They say what prose says to people: shapes with properties, ``P: n n, permutation``; ranges of indices, ``i: 1..n``;
sizes that are equal, ``d_q = d_k``; scalars, ``beta: scalar``.
"""

from __future__ import annotations

import sympy

from ..core.naming import check_name
from ..core.sizes import as_size
from ..errors import ParseError, SymattnError
from ..reading import parse_shape
from ..reading.latex.names import Range, key_of, tree_of
from .known import Known


def declare(text: str, known: Known, line: int, section: int) -> list[str]:
    """Has the names of a comment be known. Raises SymattnError for what is no declaration."""
    return [_declared(part.strip(), known, line, section) for part in text.split(";") if part.strip()]


def _declared(text: str, known: Known, line: int, section: int) -> str:
    name, colon, says = (part.strip() for part in text.partition(":"))
    if not colon and text.count("=") == 1:
        return _equal(text, known)
    if not colon:
        raise ParseError(f"{text!r} declares nothing: write Q: T d, i: 1..n or d_q = d_k")
    tree = tree_of(name)
    key = key_of(tree)
    if ".." in says:
        first, _, last = says.partition("..")
        low, high = sympy.Integer(int(first)) if first.strip().isdigit() else as_size(first), as_size(last)
        known.names.ranges[key] = Range(low, sympy.expand(high - low + 1))
        known.names.indices = frozenset({*known.names.indices, key})
        return text
    value = sympy.Symbol(check_name(name), real=True) if says == "scalar" else parse_shape(text)
    if key in known.names.entries:
        known.forget(key)
    known.names.declare(tree, value, name)
    known.note(tree, sympy.latex(value), line, section)
    return text


def _equal(text: str, known: Known) -> str:
    left, right = (as_size(side.strip()) for side in text.split("="))
    if not left.is_Symbol or left in right.free_symbols:
        raise SymattnError(f"{text!r} is read with a size on the left, and others on the right")
    known.equate(left, right)
    return text
