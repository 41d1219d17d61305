r"""SymPy scalars as boxes: numbers, sizes, conditions, functions, sums with their limits.

Factors come as numbers, indices, other scalars, entries, sums between parentheses, and last what extends to the right;
terms as they come in the tensor, and what is subtracted after what is added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import sympy
from mpmath.libmp import mpf_abs, prec_to_dps, to_str  # type: ignore[import-untyped]
from sympy.printing.printer import Printer

from ..core.boxes import (
    Accent,
    Box,
    Code,
    Fence,
    Fraction,
    Function,
    Matrix,
    Name,
    Number,
    Root,
    Row,
    Script,
    Sign,
    Text,
    applied,
    function,
    juxtaposed,
    raised,
    row,
    separated,
    subscripts,
)
from ..core.naming import is_long
from ..ops.notation import by_indices
from ..scalars.formulas import Choice, Max, Min
from .media.latex import latex
from .symbols import symbol

_RELATIONS = {"==": "=", "!=": "≠", "<": "<", "<=": "≤", ">": ">", ">=": "≥"}
_FENCES = {"Abs": ("|", "|"), "floor": ("⌊", "⌋"), "ceiling": ("⌈", "⌉")}
_LOOSE = ("mod", "∧", "∨", "¬")
_CONSTANTS = {
    "E": Name("e", "upright"), "pi": Name("π"), "EulerGamma": Name("γ"), "GoldenRatio": Name("ϕ"),
    "Catalan": Name("G", "upright"),
}  # fmt: skip
FUNCTION_LETTERS: Mapping[str, Box] = {"gamma": Name("Γ"), "sigmoid": Name("σ")}
_MINUS, _TIMES = Sign("−", "prefix"), Sign("⋅", "product")


class Scalars(Printer):  # type: ignore[misc, unused-ignore]
    """Writes SymPy expressions as boxes; ``spelling`` has the boxes of names that are not read by their letters."""

    printmethod = "_boxes"

    def __init__(self, spelling: Mapping[str, Box] | None = None) -> None:
        super().__init__()
        self.emptyPrinter = lambda expr: Code(sympy.latex(expr))
        self.spelling = {} if spelling is None else spelling
        self.place: Mapping[str, int] = {}  # in which order names come
        self.inline = False  # in scripts, quotients stand on one line

    def box(self, value: Any) -> Box:
        """A scalar as a tree of boxes."""
        made: Box = self._print(sympy.sympify(value))
        return made

    def small(self, value: Any) -> Box:
        """A scalar in a script, on one line."""
        outer, self.inline = self.inline, True
        whole = sympy.together(value) if value.is_Add else value
        made = self.box(value if sympy.denom(whole) == 1 else whole)
        self.inline = outer
        return made

    # --- numbers, names, constants ---

    def _print_Integer(self, expr: Any) -> Box:
        if is_long(expr):
            return _roughly(expr)
        return row(_MINUS, Number(str(-expr))) if expr < 0 else Number(str(expr))

    def _print_Rational(self, expr: Any) -> Box:
        if is_long(expr):
            return _roughly(expr)
        return self._print_Mul(expr)

    def _print_Float(self, expr: Any) -> Box:
        digits, _, power = to_str(mpf_abs(expr._mpf_), prec_to_dps(expr._prec), strip_zeros=True).partition("e")
        number: Box = Number(digits)
        if power:
            number = row(number, _TIMES, Script(Number("10"), above=self.box(sympy.Integer(power))))
        return row(_MINUS, number) if expr < 0 else number

    def _print_Symbol(self, expr: Any) -> Box:
        return self.spelling.get(expr.name) or symbol(expr.name)

    def _print_Dummy(self, expr: Any) -> Box:
        return symbol(expr.name)

    def _print_Indexed(self, expr: Any) -> Box:
        return Script(symbol(str(expr.base.label)), self.script(expr.indices))

    def script(self, indices: Sequence[Any]) -> Box:
        """Indices of an entry."""
        return subscripts([self.small(i) for i in indices])

    def family(self, term: Any, limits: Sequence[Any]) -> Box:
        """The tensor of all values of a term over bound indices."""
        return by_indices(self.box(term), [self.box(k) for k, *_ in limits], [])

    def _print_NumberSymbol(self, expr: Any) -> Box:
        return _CONSTANTS.get(str(expr)) or Name(str(expr), "upright")

    def _print_ImaginaryUnit(self, expr: Any) -> Box:
        return Name("i", "upright")

    def _print_Infinity(self, expr: Any) -> Box:
        return Sign("∞")

    def _print_NegativeInfinity(self, expr: Any) -> Box:
        return row(_MINUS, Sign("∞"))

    def _print_UnevaluatedExpr(self, expr: Any) -> Box:
        return self.box(expr.args[0])

    def _print_BooleanAtom(self, expr: Any) -> Box:
        return Text(str(expr))

    # --- functions and powers ---

    def _print_Function(self, expr: Any) -> Box:
        name = type(expr).__name__
        if name in _FENCES:
            over_one = name != "Abs" and expr.args[0].is_Add  # (i - 1)/2 and not i/2 - 1/2
            return Fence(self.box(sympy.together(expr.args[0]) if over_one else expr.args[0]), *_FENCES[name])
        return applied(function(name), map(self.box, expr.args))

    def _print_MinMaxBase(self, expr: Any) -> Box:
        return applied(function(type(expr).__name__.lower()), map(self.box, expr.args))

    def _print_exp(self, expr: Any) -> Box:
        power = self.small(expr.args[0])
        if power.tall:
            return applied(function("exp"), [self.box(expr.args[0])])
        return Script(Name("e", "upright"), above=power)

    def _print_factorial(self, expr: Any) -> Box:
        return row(_tight(self.box(expr.args[0])), Sign("!"))

    def _print_gamma(self, expr: Any) -> Box:
        return applied(Function(FUNCTION_LETTERS["gamma"]), map(self.box, expr.args))

    def _print_Mod(self, expr: Any) -> Box:
        return separated(Sign("mod", "product"), [Fence(self.box(x)) if x.args else self.box(x) for x in expr.args])

    def _print_KroneckerDelta(self, expr: Any) -> Box:
        return Fence(separated(Sign("=", "relation"), [self.box(x) for x in expr.args]), "[", "]")

    def _print_Pow(self, expr: Any) -> Box:
        base, exponent = expr.as_base_exp()
        if exponent.is_Rational and exponent.is_negative:
            return self._quotient([], [sympy.Pow(base, -exponent)])
        box = self.box(base)
        if exponent.is_Rational and exponent.p == 1 and exponent.q != 1:
            return Root(box, Number(str(exponent.q)) if exponent.q != 2 else None)
        return power(box, self.small(exponent))

    # --- sums over indices, choices, conditions ---

    def _print(self, expr: Any, **kwargs: Any) -> Any:
        if isinstance(expr, (Max, Min)):
            return self.limited(Sign(type(expr).__name__.lower(), "large"), expr)
        if is_indicator(expr) and self._print_level:
            return Fence(super()._print(expr.args[0]), "[", "]")
        return super()._print(expr, **kwargs)

    def _print_Sum(self, expr: Any) -> Box:
        return self.limited(Sign("∑", "large"), expr)

    def limited(self, sign: Sign, expr: Any) -> Box:
        """A large sign with the limits of each bound index of several values, and what it extends over."""
        signs = []
        for k, low, high in in_order(expr.limits):
            if low != high:
                below = row(self.small(k), Sign("=", "relation"), self.small(low))
                signs.append(Script(sign, below, self.small(high)))
        body = self.box(expr.function.xreplace({k: low for k, low, high in expr.limits if low == high}))
        return row(*signs, Fence(body) if is_loose(body) else body)

    def _print_Choice(self, expr: Any) -> Box:
        pairs, rest = [], expr
        while isinstance(rest, Choice):
            condition, value, rest = rest.args
            pairs.append((value, condition))
        return self._cases([*pairs, (rest, sympy.true)])

    def _print_Piecewise(self, expr: Any) -> Box:
        return self._cases(expr.args)

    def _cases(self, pairs: Sequence[tuple[Any, Any]]) -> Box:
        conditions = (Text("otherwise") if c == sympy.true else row(Text("for "), self.box(c)) for _, c in pairs)
        values = (self.box(value) for value, _ in pairs)
        return Matrix(tuple(zip(values, conditions, strict=True)), "{", "")

    def _print_Relational(self, expr: Any) -> Box:
        return row(self.box(expr.lhs), Sign(_RELATIONS[expr.rel_op], "relation"), self.box(expr.rhs))

    def _print_And(self, expr: Any) -> Box:
        return self._logical("∧", expr)

    def _print_Or(self, expr: Any) -> Box:
        return self._logical("∨", expr)

    def _logical(self, mark: str, expr: Any) -> Box:
        args = sorted(expr.args, key=sympy.default_sort_key)
        return separated(Sign(mark, "product"), [Fence(self.box(x)) if _is_joined(x) else self.box(x) for x in args])

    def _print_Not(self, expr: Any) -> Box:
        return row(Sign("¬", "prefix"), Fence(self.box(expr.args[0])))

    # --- products ---

    def _print_Mul(self, expr: Any) -> Box:
        number, rest = expr.as_coeff_Mul()
        number, rest = (number, rest) if number.is_Rational else (sympy.S.One, expr)
        halves = [_halves(factor) for factor in sympy.Mul.make_args(rest)]
        above = [sympy.Integer(abs(number.p)), *(up for up, _ in halves)]
        below = [sympy.Integer(number.q), *(down for _, down in halves)]
        quotient = self._quotient([f for f in above if f != 1], [f for f in below if f != 1])
        if not number.is_negative:
            return quotient
        return row(_MINUS, Fence(quotient) if begins_with_minus(quotient) else quotient)

    def _quotient(self, above: list[Any], below: list[Any]) -> Box:
        if not below:
            return self.product(above)
        if self.inline:
            top, bottom = self.product(above, alone=False), self.product(below)
            return row(top, Sign("/"), Fence(bottom) if isinstance(bottom, Row) else bottom)
        bodies = [f for f in above if extends(f)] if not any(f.has(sympy.Sum) for f in below) else []
        tops = [f for f in above if f not in bodies]
        fraction = Fraction(self.product(tops), self.product(below))
        return row(fraction, self.product(bodies, alone=False)) if bodies else fraction

    def product(self, factors: Sequence[Any], alone: bool = True) -> Box:
        """Factors side by side; what would be read together with its neighbour stands between parentheses."""
        boxes: list[Box] = []
        for left, factor in zip(range(len(factors) - 1, -1, -1), sorted(factors, key=self._factor_key), strict=True):
            box = self.box(factor)
            if (is_loose(box) and not (alone and len(factors) == 1)) or (left and extends(factor)):
                box = Fence(box)
            boxes.append(box)
        return juxtaposed(*boxes) if boxes else Number("1")

    def _factor_key(self, factor: Any) -> tuple[Any, ...]:
        """Numbers, indices, other scalars, entries, sums between parentheses, and what extends to the right."""
        if factor.is_number:
            kind = 0
        elif extends(factor):
            kind = 5 + is_choice(factor)
        elif factor.as_base_exp()[0].is_Add or is_indicator(factor) or isinstance(factor, sympy.KroneckerDelta):
            kind = 4
        else:
            kind = 3 if factor.has(sympy.Indexed) else 2 - self.is_letter(factor)
        return kind, self._first(factor), str(factor)

    # --- sums ---

    def _print_Add(self, expr: Any, order: Any = None) -> Box:
        parts: list[Box] = []
        terms = sorted(expr.args, key=lambda term: self._term_key(term, expr.has(sympy.Indexed)))
        for left, term in zip(range(len(terms) - 1, -1, -1), terms, strict=True):
            minus, box = split_minus(self.box(term))
            if isinstance(term, sympy.Mod) or (left and ends_with_cases(box)):
                box = Fence(box)
            if parts:
                parts.append(Sign("−" if minus else "+", "sum"))
            elif minus:
                parts.append(_MINUS)
            parts.append(box)
        return row(*parts)

    def _term_key(self, term: Any, among_entries: bool) -> tuple[Any, ...]:
        """``1 + x``, ``x + c``, ``n - 1``: what is subtracted after what is added, and sums and choices last."""
        number, rest = term.as_coeff_Mul()
        factors = sympy.Mul.make_args(rest)
        last = max((1 + is_choice(f) for f in factors if extends(f)), default=0)
        kind = (0 if among_entries else 3) if term.is_number else 1 + (not term.has(sympy.Indexed))
        return last, bool(number.is_negative), kind, self._first(term), -len(factors), str(rest)

    def _first(self, part: Any) -> int:
        """Where the first name of a part comes in the tensor."""
        if not self.place:
            return 0
        names = [str(e.base.label) for e in part.atoms(sympy.Indexed)] + [s.name for s in part.free_symbols]
        return min((self.place[name] for name in names if name in self.place), default=len(self.place))

    def is_letter(self, part: Any) -> bool:
        """Whether a part is an index, or a multiple of one."""
        return isinstance(part.as_coeff_Mul()[1], sympy.Dummy)


# --- what a box begins and ends with ---


def split_minus(box: Box) -> tuple[bool, Box]:
    """Whether a minus sign stands in front, and what stands behind it."""
    if begins_with_minus(box):
        assert isinstance(box, Row)
        return True, row(*box.parts[1:])
    return False, box


def is_loose(box: Box) -> bool:
    """Whether a factor beside it would be read as a part of its first or of its last term."""
    if not isinstance(box, Row):
        return False
    signs = (part for part in box.parts if isinstance(part, Sign))
    return begins_with_minus(box) or any(sign.kind in ("sum", "relation") or sign.mark in _LOOSE for sign in signs)


def begins_with_minus(box: Box) -> bool:
    return isinstance(box, Row) and isinstance(box.parts[0], Sign) and box.parts[0].mark == "−"


def ends_with_cases(box: Box) -> bool:
    return isinstance(box.parts[-1] if isinstance(box, Row) else box, Matrix)


def power(base: Box, exponent: Box) -> Box:
    """A power; that of a value of a function stands at the function: ``sin^2(x)``."""
    match base:
        case Row(parts=(Function() as head, Fence(left="(") as inside)):
            return Row((Script(head, above=exponent), inside))
        case Script(above=None):
            return raised(base, exponent)
        case Row(parts=(*_, Fence(left="["))):
            return raised(base, exponent)
    return raised(_tight(base), exponent)


def _tight(box: Box) -> Box:
    """Something that scripts may stand at."""
    return box if isinstance(box, (Name, Number, Fence, Accent, Script)) and not _is_power(box) else Fence(box)


def _is_power(box: Box) -> bool:
    return isinstance(box, Script) and box.above is not None and not isinstance(box.above, Sign)


def _halves(factor: Any) -> tuple[Any, Any]:
    """What a factor gives to the numerator and to the denominator of a product."""
    base, exponent = factor.as_base_exp()
    if exponent.is_Rational and exponent.is_negative and not isinstance(factor, sympy.exp):
        return sympy.S.One, base**-exponent
    return (sympy.Integer(factor.p), sympy.Integer(factor.q)) if factor.is_Rational else (factor, sympy.S.One)


def _roughly(q: sympy.Rational) -> Box:
    """A number of too many digits, by what it roughly is."""
    digits, _, power = str(q.evalf(6)).partition("e")
    return Fence(
        row(Sign("≈", "prefix"), Number(digits), _TIMES, Script(Number("10"), above=Number(str(int(power or 0)))))
    )


# --- what an expression is ---


def outermost_first(k: sympy.Dummy) -> tuple[int, int]:
    """Bound indices are numbered by the height of their node, and within one node by axis (``scalars/formulas.py``)."""
    return -((k.dummy_index - 100) // 64), k.dummy_index


def in_order(limits: Sequence[Any]) -> list[Any]:
    """Limits from the outermost on; letters that a person bound stay in their order."""
    numbered = all(isinstance(limit[0], sympy.Dummy) for limit in limits)
    return sorted(limits, key=lambda limit: outermost_first(limit[0])) if numbered else list(limits)


def is_indicator(expr: Any) -> bool:
    return isinstance(expr, Choice) and expr.args[1:] == (1, 0)


def is_choice(factor: Any) -> bool:
    return isinstance(factor, Choice) and not is_indicator(factor)


def extends(factor: Any) -> bool:
    """Whether what is written after a factor would be read as a part of it."""
    return isinstance(factor, sympy.Sum | Max | Min) or is_choice(factor)


def _is_joined(expr: Any) -> bool:
    return isinstance(expr, (sympy.And, sympy.Or))


@lru_cache(maxsize=4096)
def scalar_box(value: sympy.Basic) -> Box:
    """A scalar as boxes, by the letters of its names."""
    return Scalars().box(value)


@lru_cache(maxsize=4096)
def constants_in(formula: sympy.Basic) -> tuple[tuple[str, Box], ...]:
    """The constants and entries of a formula, and its functions that are written by a letter, as they are printed."""
    functions = [("the function gamma", FUNCTION_LETTERS["gamma"])] * formula.has(sympy.gamma)
    entries = ((f"the entry {e}", scalar_box(e)) for e in formula.atoms(sympy.Indexed))
    numbers = formula.atoms(sympy.NumberSymbol, type(sympy.I))
    return (*functions, *((f"the number {c}", scalar_box(c)) for c in numbers), *entries)


def scalar_latex(value: Any) -> str:
    """A scalar in LaTeX."""
    return latex(scalar_box(sympy.sympify(value)))
