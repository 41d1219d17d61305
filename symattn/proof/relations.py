"""Relations between sizes that are given: which are understood, where they hold, and which give one size by others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

from ..core.budget import Budget
from ..core.sizes import never_negative
from ..errors import NoRuleError, OperandError
from ..scalars.affine import solved
from ..scalars.evaluate import Compiled
from .dependence.formula_walk import FormulaWalk
from .dependence.index_constraints import possible
from .refute.balls import Arithmetic, Number, Outside, Undecided

_UNDERSTOOD = (
    "relations between sizes are equalities and inequalities of sizes and integers, made with +, -, *, /, powers, "
    "sympy.Mod, floor, ceiling, Max, Min and Abs, and joined by &, | and ~"
)


def is_relation(given: Any) -> bool:
    """Whether it is a relation of SymPy's, or several that are joined."""
    return isinstance(given, Boolean) and not given.is_Symbol


class Relations:
    """Relations between numbers as one condition: compiled once, and then asked at many points.

    Raises NoRuleError for a relation that is not understood.
    """

    def __init__(self, relations: Sequence[Boolean]) -> None:
        self.symbols = tuple(sorted({s for r in relations for s in r.free_symbols}, key=str))
        code, arithmetic = Compiled(self.symbols), Arithmetic((), Budget(float("inf")))
        self._conditions = [code.program(code.write(r)).function(arithmetic.names) for r in relations]

    def hold(self, point: Mapping[sympy.Symbol, Number]) -> bool:
        """Whether all of them hold for sure at these numbers."""
        values = [point[s] for s in self.symbols]
        try:
            return all(condition(*values) is True for condition in self._conditions)
        except (Outside, Undecided, ZeroDivisionError, OverflowError):  # a quotient that has no value, for example
            return False


def check_relations(relations: Sequence[Boolean], stated: Sequence[Boolean]) -> None:
    """Raise OperandError for relations of what is no size, and for those that are seen to leave no sizes.

    ``stated`` are the relations as they were given, of which the error speaks.
    """
    for relation in relations:
        for symbol in sorted(relation.free_symbols, key=str):
            if not (symbol.is_integer and symbol.is_positive):
                raise OperandError(
                    f"{relation} is given, and {symbol} is no size: relations are between sizes made by sa.sizes; "
                    f"declare properties of scalars by sympy.Symbol({str(symbol)!r}, positive=True), and give their "
                    f"values and bounds by sa.eq({symbol}, 2), sa.le(0, {symbol})"
                )
        try:
            Relations([relation])
        except NoRuleError:
            raise OperandError(f"{relation} is given, which is not understood: {_UNDERSTOOD}") from None
    cases = FormulaWalk((), {}).condition(sympy.And(*map(_tidied, relations)))
    if not any(map(possible, cases)):
        written = " and ".join(str(r) for r in stated if r not in (sympy.true, sympy.false))
        raise OperandError(
            "what is given contradicts itself: "
            + (f"no sizes satisfy {written}" if written else "a relation of sizes is false")
        )


def solution(relation: Boolean) -> tuple[sympy.Symbol, sympy.Expr] | None:
    """A size and its only value by the other sizes, if an equality is linear in it with the coefficient 1 or -1.

    Of several sizes, one whose value is positive whatever the others are: n = m - 1 gives m = n + 1.
    """
    tidy = _tidied(relation)
    if not isinstance(tidy, sympy.Eq) or not is_polynomial(tidy.lhs - tidy.rhs):
        return None
    sides = [s for s in relation.args if s in tidy.free_symbols]
    values = {s: solved(tidy.lhs - tidy.rhs, s) for s in (*sides, *sorted(tidy.free_symbols, key=str))}
    found = [(s, value) for s, value in values.items() if value is not None]
    return next((pair for pair in found if is_size(pair[1])), found[0] if found else None)


def in_order(relation: Boolean) -> Iterator[tuple[sympy.Expr, sympy.Expr]]:
    """Pairs of which a relation says that the first is at most the second; whole numbers that differ are 1 apart."""
    if isinstance(relation, sympy.And):
        yield from (pair for part in relation.args for pair in in_order(part))
    elif isinstance(relation, sympy.Eq):
        yield from (relation.args, relation.args[::-1])
    elif isinstance(relation, Relational) and not isinstance(relation, sympy.Ne):
        apart = isinstance(relation, (sympy.Lt, sympy.Gt)) and (relation.gts - relation.lts).is_integer
        yield relation.lts, relation.gts - 1 if apart else relation.gts


def is_size(value: sympy.Expr) -> bool:
    """Whether an expression of sizes is at least 1 for all of them, as far as its coefficients show it."""
    return never_negative(value - 1)


def _tidied(relation: Boolean) -> Boolean:
    """An equality without the factors that no sizes make zero: n**2 = m**2 is n - m = 0."""
    if not isinstance(relation, sympy.Eq):
        return relation
    above, below = sympy.fraction(sympy.together(relation.lhs - relation.rhs))
    if not (is_polynomial(above) and is_polynomial(below) and is_size(below)):
        return relation
    factors = [f for f, _ in sympy.factor_list(above)[1] if not (is_size(f) or is_size(-f))]
    if len(factors) > 1:
        return relation
    return sympy.Eq(factors[0], 0) if factors else sympy.sympify(above == 0)


def is_polynomial(e: sympy.Expr) -> bool:
    """Whether it is a polynomial of sizes with rational coefficients."""
    if not e.free_symbols:
        return bool(e.is_Rational)
    return e.is_polynomial(*e.free_symbols) and sympy.Poly(e, *e.free_symbols).domain in (sympy.ZZ, sympy.QQ)
