"""What a refutation shows: small sizes, exact arrays, the entry that differs and both of its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from ...core.naming import is_long, with_short_numbers
from ...core.node import Tensor
from ...printing.symbols import latex_name
from .balls import Number, ball, exact_form
from .values import Point

_DIGITS = 10
_SHOWN = 256  # entries of an array that is printed
_LONGEST = 14  # operations in an exact value that somebody still wants to read


_ABREAST = 4  # arrays in one row of LaTeX


@dataclass(frozen=True)
class EntryValue:
    """A value of an entry: exact where it is short, and as a decimal whose digits are all right."""

    exact: sympy.Expr | None
    decimal: str

    @property
    def value(self) -> sympy.Expr:
        """The exact value, or else the decimal as a SymPy number."""
        return sympy.Float(self.decimal) if self.exact is None else self.exact

    def __str__(self) -> str:
        if self.exact is None:
            return self.decimal
        return str(self.exact) if self.exact.is_Rational else f"{self.exact} = {self.decimal}..."

    def latex(self) -> str:
        if self.exact is None:
            return self.decimal
        written = sympy.latex(self.exact)
        return written if self.exact.is_Rational else rf"{written} \approx {self.decimal}"


def entry_value(x: Number) -> EntryValue:
    """What is shown of a number."""
    exact = exact_form(x)
    if exact is not None and (exact.count_ops() > _LONGEST or any(map(is_long, exact.atoms(sympy.Rational)))):
        exact = None
    value = ball(x)
    infinite = not value.is_finite()
    return EntryValue(-sympy.oo if infinite else exact, "-oo" if infinite else value.str(_DIGITS, radius=False))


def as_array(entries: Mapping[tuple[int, ...], Number], shape: tuple[int, ...]) -> sympy.ImmutableDenseNDimArray:
    """The entries as a SymPy array; those that are not rational by their closed forms or decimals."""
    values = [entry_value(x).value for x in entries.values()]
    return sympy.ImmutableDenseNDimArray(values, shape)


def _array_text(array: sympy.ImmutableDenseNDimArray) -> str:
    return str(array) if len(array) <= _SHOWN else "..."


def _array_latex(array: sympy.ImmutableDenseNDimArray) -> str:
    if len(array) > _SHOWN:
        return r"\ldots"
    return sympy.latex(array.tomatrix() if array.rank() == 2 else array)


@dataclass(frozen=True, eq=False)
class Example:
    """A point as it is shown: sizes, scalars, arrays, and what stands for the unknown functions."""

    sizes: Mapping[sympy.Symbol, int]
    scalars: Mapping[sympy.Symbol, sympy.Expr]
    arrays: Mapping[Tensor, sympy.ImmutableDenseNDimArray]
    functions: Mapping[str, str]

    def _parts(self, latex: bool) -> tuple[list[str], list[str], list[str]]:
        """The numbers, the longest told roughly, then the arrays and the functions."""
        scalar, named, entries = (sympy.latex, latex_name, _array_latex) if latex else (str, str, _array_text)
        pairs = (*self.sizes.items(), *self.scalars.items())
        function = r"{}: \text{{{}}}" if latex else "{}: {}"
        return (
            [f"{scalar(s)} = {scalar(with_short_numbers(sympy.sympify(v)))}" for s, v in pairs],
            [f"{named(str(x.name))} = {entries(array)}" for x, array in self.arrays.items()],
            [function.format(named(name), formula) for name, formula in self.functions.items()],
        )

    def text(self) -> str:
        """The point in one line."""
        return ", ".join(part for row in self._parts(latex=False) for part in row)

    def latex(self) -> str:
        """The same, each part in mathematics of its own."""
        return ", ".join(f"${part}$" for row in self._parts(latex=True) for part in row)


@dataclass(frozen=True, eq=False)
class Counterexample(Example):
    """A point at which a claim is false, for sure.

    ``sizes``, ``scalars`` and ``arrays`` are the point; ``functions`` say what stands for the unknown functions.
    At ``index``, the entry of the left side has the value ``left`` and that of the right side ``right``. For a claim
    of independence, the right side is the same output at the second value of the variable, the last of the arrays.
    """

    index: tuple[int, ...]
    left_value: EntryValue
    right_value: EntryValue
    twin: Tensor | None = None

    @property
    def left(self) -> sympy.Expr:
        """The entry of the left side: exact where that is short, else a decimal."""
        return self.left_value.value

    @property
    def right(self) -> sympy.Expr:
        """The entry of the right side."""
        return self.right_value.value

    @property
    def total(self) -> int:
        """How many entries all arrays have together."""
        return sum(len(array) for array in self.arrays.values())

    def arrays_numpy(self) -> dict[Tensor, Any]:
        """The arrays as NumPy's, to run a function on."""
        kinds: dict[str, type] = {"binary": bool, "integer": int}
        return {
            x: np.array(a.reshape(len(a)).tolist()).astype(kinds.get(x.kind, float)).reshape(a.shape)
            for x, a in self.arrays.items()
        }

    def text(self) -> str:
        """Sizes, arrays and the two values, line by line."""
        numbers, arrays, _ = self._parts(latex=False)
        lines = [", ".join(numbers)] if numbers else []
        lines += [*arrays, *(f"{name} = {shown}" for name, shown in self.functions.items())]
        sides = ("left", "right") if self.twin is None else ("the first", "the second")
        if self.twin is not None:
            lines.append(f"({self.twin.name} is the second value of the variable)")
        at = f"entry {list(self.index)}: " if self.index else ""
        return "\n".join([*lines, f"{at}{sides[0]} is {self.left_value}, {sides[1]} is {self.right_value}"])

    __str__ = text

    def latex(self) -> str:
        """The same as an aligned block."""
        numbers, arrays, functions = self._parts(latex=True)
        rows = [numbers, *(arrays[k : k + _ABREAST] for k in range(0, len(arrays), _ABREAST)), functions]
        lines = ["  &" + r", \quad ".join(row) for row in rows if row]
        below = f"_{{{', '.join(map(str, self.index))}}}" if self.index else ""
        values = (("left", self.left_value), ("right", self.right_value))
        sides = [rf"\left(\text{{{side}}}\right){below} = {v.latex()}" for side, v in values]
        lines.append("  &" + r" \quad ".join(sides))
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"


@dataclass(frozen=True)
class Agreement:
    """No difference was found: how many points were tried, which proves nothing.

    ``trials`` counts the points at which the claim holds, as far as digits tell, and ``sizes`` are those they had;
    ``outside`` counts the points at which a side has no value, and ``undecided`` those where the values are too close
    to call. ``reason`` says why there are no trials, if so; ``point`` is the first at which the claim holds.
    """

    trials: int
    outside: int
    undecided: int
    sizes: tuple[dict[sympy.Symbol, int], ...]
    reason: str = ""
    point: Point | None = None

    @property
    def inconclusive(self) -> int:
        """How many points told nothing."""
        return self.outside + self.undecided

    @property
    def points(self) -> int:
        """How many points were found at which all holds that is given."""
        return self.trials + self.inconclusive

    def __str__(self) -> str:
        if not self.trials:
            counted = f" ({self._left_out})" if self.inconclusive else ""
            return f"nothing was compared: {self.reason}{counted}"
        sizes = sorted({n for point in self.sizes for n in point.values()})
        shown = f" of sizes {', '.join(map(str, sizes))}" if sizes else ""
        left_out = f"; {self._left_out}" if self.inconclusive else ""
        return f"the claim holds at {_points(self.trials)}{shown}{left_out}"

    @property
    def _left_out(self) -> str:
        parts = [f"{_points(self.undecided)} could not be decided"] if self.undecided else []
        parts += [f"a side has no value at {_points(self.outside)}"] if self.outside else []
        return "; ".join(parts)


def _points(n: int) -> str:
    return "1 point" if n == 1 else f"{n} points"
