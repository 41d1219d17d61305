"""The lines of a derivation in numbers: arrays that go in, and the values of what is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from ..codegen import lambdify
from ..codegen.check import Point
from ..core.boxes import Box, Matrix, Number, Script, Sign, Text, juxtaposed, row
from ..core.node import Tensor, topological
from ..errors import OperandError, described
from ..ops.leaves import computed, is_named, variable
from ..printing.media.unicode import unicode_text
from ..printing.prose import EQUALS
from .declared import check_declared
from .exactly import Exact, decimal, exact_values
from .parts import Example, Line

if TYPE_CHECKING:
    from .derivation import Derivation

_SMALL = 5e-4  # what three digits do not show
_LARGE = 1e6  # from which on it is a power of ten
_MOST = 8  # entries of a row, or rows, that are shown
_ROOM = 56  # letters in a row, with two between numbers
_DIGITS = 12  # of a number that is given, which are shown


def example(
    derivation: Derivation, values: Mapping[Any, Any], sizes: Mapping[Any, int], show: Sequence[Any]
) -> Example:
    """What goes in and what comes out. Raises OperandError for a value of what does not occur, and for none at all."""
    if not isinstance(values, Mapping) or not isinstance(sizes, Mapping):
        raise OperandError("example takes values and sizes by what they are for: {Q: [[1, 0]], T: 2}")
    shown = list(show) or [line.left for line in derivation.steps if isinstance(line, Line) and line.name is not None]
    if not shown:
        raise OperandError("example shows what lines define: there are none yet")
    for x in shown:
        if not isinstance(x, Tensor) or not is_named(x):
            raise OperandError(f"example shows named tensors, not {described(x)}")
    order = computed(shown)
    variables = [x for x in order if x.op is variable]
    symbols = {s for x in topological(shown) for s in x.own_symbols}
    if others := [s for s in sizes if not isinstance(s, sympy.Symbol)]:
        raise OperandError(f"example has sizes by their symbols, {{T: 2}}, and {described(others[0])} is none")
    numbers = {s: v for s, v in {**values, **sizes}.items() if isinstance(s, sympy.Symbol)}
    if unknown := [s for s in numbers if s not in symbols]:
        raise OperandError(f"example has a value for {unknown[0]}, which does not occur in what is shown")
    scalars = {s: _scalar(s, v) for s, v in numbers.items() if not s.is_integer}
    arrays = _arrays(values, variables)
    bound = _sizes(arrays, {s: _size(s, n) for s, n in numbers.items() if s.is_integer})
    for x, array in arrays.items():
        check_declared(x, array)
    arrays |= {x: _made_up(x, bound, seed) for seed, x in enumerate(variables) if x not in arrays}
    if missing := [s for s in symbols if s not in scalars and s not in bound]:
        where = "sizes" if missing[0].is_integer else "values"
        raise OperandError(f"example has no value for {missing[0]}: give it in {where}=")
    point = Point(bound, {s: float(v) for s, v in scalars.items()}, arrays)
    with np.errstate(all="ignore"):  # what is not finite is shown as such
        found = point.called(lambdify(list(arrays), shown))
    results = {x: y for x, y in zip(shown, found, strict=True) if x not in arrays}
    exact = exact_values(list(results), bound, scalars, arrays)
    return Example({**arrays, **results}, bound, scalars, tuple(results), exact)


def _size(s: sympy.Symbol, n: Any) -> int:
    if not isinstance(n, int) or isinstance(n, bool) or (s.is_positive and n < 1):
        raise OperandError(f"example has sizes that are whole numbers from 1: not {s} = {described(n)}")
    return n


def _scalar(s: sympy.Symbol, value: Any) -> sympy.Expr:
    """A number that has what is declared of its symbol."""
    number = sympy.sympify(value) if isinstance(value, (int, float, sympy.Basic)) else None
    if number is None or not number.is_number or not number.is_real:
        raise OperandError(f"example has a real number for {s}, not {described(value)}")
    for said in ("positive", "negative", "nonnegative", "nonpositive", "nonzero"):
        if getattr(s, f"is_{said}") and getattr(number, f"is_{said}") is False:
            raise OperandError(f"example has {s} = {number}, which is declared {said}")
    return number


def _arrays(values: Mapping[Any, Any], variables: Sequence[Tensor]) -> dict[Tensor, np.ndarray]:
    found = dict[Tensor, np.ndarray]()
    for x, value in values.items():
        if isinstance(x, sympy.Symbol):
            continue
        if x not in variables:
            known = ", ".join(str(y.name) for y in variables)
            raise OperandError(f"example has values for {described(x)}; what is shown needs those of {known}")
        try:
            found[x] = np.array(value, dtype=float)  # its own: the caller's may change
        except (TypeError, ValueError):
            raise OperandError(
                f"example has no array of real numbers for {x.brief()}, but {described(value)}"
            ) from None
        if found[x].ndim != x.rank:
            raise OperandError(f"example has an array of {found[x].ndim} axes for {x.brief()}")
    return found


def _sizes(arrays: Mapping[Tensor, np.ndarray], sizes: dict[Any, int]) -> dict[Any, int]:
    """The sizes, as far as arrays tell them."""
    bound = dict(sizes)
    lengths = [(x, size, n) for x, array in arrays.items() for size, n in zip(x.shape, array.shape, strict=True)]
    for _, size, n in lengths:
        if size.is_Symbol:
            bound.setdefault(size, n)
    for x, size, n in lengths:
        if (known := size.subs(bound)).is_Integer and known != n:
            raise OperandError(f"example: {_equal(size, known)}, but {x.brief()} has {n} there")
    return bound


def _equal(size: sympy.Expr, known: sympy.Expr) -> str:
    return f"a size is {known}" if size == known else f"{size} is {known}"


def _made_up(x: Tensor, bound: Mapping[Any, int], seed: int) -> np.ndarray:
    """Small whole numbers, which a reader can follow."""
    shape = [size.subs(bound) for size in x.shape]
    if free := [size for size in shape if not size.is_Integer]:
        raise OperandError(f"example has no values for {x.brief()}, and no size for {free[0]}: give values= or sizes=")
    if x.params["hypotheses"]:
        raise OperandError(f"example has no values for {x.brief()}, which is {', '.join(x.params['hypotheses'])}")
    return np.random.default_rng(seed).integers(-1, 3, size=[int(n) for n in shape]).astype(float)


# --- as boxes ---


def array_equation(left: Box, array: np.ndarray, exact: Exact | None = None) -> Box:
    """An array by its name, behind = where all that is shown is exact, and behind ≈ where digits are left out.

    What is given has no other value than its digits, which are shown; ``exact`` are the values of what is computed.
    """
    cells = _Cells(array, exact)
    box = _array_box(array, cells)
    return row(left, EQUALS if cells.are_exact else Sign("≈", "relation"), box)


class _Cells:
    """The entries of an array as boxes; whether they are exact is known when they are made."""

    def __init__(self, array: np.ndarray, exact: Exact | None) -> None:
        self._array, self._exact = array, exact
        self._whole = bool(np.all(array == np.round(array)))
        self.are_exact = True

    def box(self, at: tuple[int, ...]) -> Box:
        x = float(self._array[at])
        if not np.isfinite(x):
            self.are_exact &= self._exact is None or self._exact.get(at) == x
            return _infinite(x)
        digits = _short(x, self._whole)
        wanted = decimal(x) if self._exact is None else self._exact.get(at)
        if self._exact is None and Fraction(digits) != wanted:
            digits = _long(x) or digits
        self.are_exact &= Fraction(digits) == wanted
        return _number(digits)


def _array_box(array: np.ndarray, cells: _Cells) -> Box:
    """An array of two axes at most as a matrix, a vector as a column; of a large one some entries and the size."""
    if array.ndim == 0:
        return cells.box(())
    if array.ndim > 2:
        return Text(f"an array of {' × '.join(map(str, array.shape))} numbers")
    width = 1 if array.ndim == 1 else array.shape[1]
    rows = _shown(len(array), _MOST)
    boxes = [[cells.box((i, j)[: array.ndim]) for j in range(width)] if i >= 0 else [] for i in rows]
    widest = max((len(unicode_text(box)) for line in boxes for box in line), default=0)
    columns = _shown(width, max(3, min(_MOST, _ROOM // (widest + 2))))
    lines = [tuple(line[j] if line and j >= 0 else _DOTS[not line, j < 0] for j in columns) for line in boxes]
    counted = f"{len(array)} entries" if array.ndim == 1 else f"{len(array)} × {array.shape[1]}"
    return row(Matrix(tuple(lines)), *([Text(f" ({counted})")] if -1 in (*rows, *columns) else []))


_DOTS = {(True, False): Sign("⋮"), (False, True): Sign("⋯"), (True, True): Sign("⋱")}  # rows left out, columns left out


def _shown(length: int, most: int) -> list[int]:
    """Which places of an axis are shown, with -1 for those that are not."""
    return [*range(length)] if length <= most else [*range(most - 2), -1, length - 1]


def _short(x: float, whole: bool) -> str:
    """A number to three digits behind the point, or to three digits times a power of ten."""
    if x == 0:
        return "0"
    if (whole or abs(x) >= _SMALL) and abs(x) < _LARGE:
        return f"{x:.0f}" if whole else f"{x:.3f}"
    return f"{x:.2e}"


def _long(x: float) -> str:
    """All digits of a number, or nothing where these are too many to read."""
    number = Decimal(repr(x)).normalize()
    if len(number.as_tuple().digits) > _DIGITS:
        return ""
    return f"{number:f}" if -_DIGITS // 2 < number.adjusted() < _DIGITS else f"{number:e}"


def _infinite(x: float) -> Box:
    if np.isnan(x):
        return Text("undefined")
    return Sign("∞") if x > 0 else row(Sign("−", "prefix"), Sign("∞"))


def _number(written: str) -> Box:
    """A number from its digits, with the power of ten behind e."""
    digits, _, exponent = written.partition("e")
    if not exponent:
        return _signed(digits)
    power = Script(Number("10"), above=_signed(str(int(exponent))))
    short = digits.rstrip("0").rstrip(".") if "." in digits else digits
    if short in ("1", "-1"):
        return power if short == "1" else row(Sign("−", "prefix"), power)
    return juxtaposed(_signed(short), Sign("⋅", "product"), power)


def _signed(digits: str) -> Box:
    return row(Sign("−", "prefix"), Number(digits[1:])) if digits.startswith("-") else Number(digits)
