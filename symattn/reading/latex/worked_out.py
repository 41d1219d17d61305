"""Integrals, limits, sums and derivatives worked out by SymPy: in time, held against numbers, or refused."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from functools import cache
from types import FrameType
from typing import Any, TypeVar

import numpy as np
import sympy
from sympy.core.relational import Relational
from sympy.logic.boolalg import And, BooleanAtom, Or

from ...errors import OperandError, SymattnError, described
from ...scalars.functions import FUNCTIONS

T = TypeVar("T")
SECONDS = 2.0  # for all that is worked out of one text
_OPEN = (sympy.Integral, sympy.Limit, sympy.Derivative, sympy.Sum, sympy.Product, sympy.Subs)
_NODES = (sympy.Add, sympy.Mul, sympy.Pow, sympy.Rational, sympy.Symbol, sympy.Piecewise, type(sympy.pi), type(sympy.E))
_UNREAL = (sympy.nan, sympy.zoo, sympy.oo, -sympy.oo, sympy.I, sympy.AccumBounds)
_CONDITIONS = (Relational, And, Or, BooleanAtom, sympy.functions.elementary.piecewise.ExprCondPair)
_GROWING = (sympy.factorial, sympy.binomial, sympy.Sum, sympy.Product, sympy.Integral)
_SMALL = 100  # the numbers in exponents that have names, so that no place makes them fill the memory
_AGREE, _NEAR = 1e-3, 5e-3  # of two quadratures, and of numbers and value
_FAR = sympy.Integer(10) ** 5
_SCALES = tuple(sympy.Rational(*pair) for pair in ((1, 1), (3, 1), (-1, 2), (-7, 3)))


def worked_out(expr: sympy.Expr, bound: Collection[sympy.Dummy]) -> sympy.Expr:
    """The value of an expression by functions that symattn has, without the names that are bound.

    Raises OperandError where it has none.
    """
    _check_growth(expr)
    try:
        value = _rewritten(expr.replace(lambda node: type(node) in _DONE, lambda node: _DONE[type(node)](node)).doit())
    except SymattnError:
        raise
    except Exception as problem:  # SymPy raises what it likes
        raise OperandError(f"SymPy does not work this out: {described(problem)}") from None
    _check_value(value, bound)
    return value


def _rewritten(value: Any) -> Any:
    """By the functions that symattn has, as far as there are rules."""
    value = value.replace(sympy.erfc, lambda x: 1 - sympy.erf(x))
    if value.has(sympy.binomial, sympy.factorial):
        value = sympy.expand_func(value)
    return value


def _check_value(value: Any, bound: Collection[sympy.Dummy]) -> None:
    if isinstance(value, sympy.Expr) and value.has(*_OPEN):
        left = next(node for node in sympy.preorder_traversal(value) if isinstance(node, _OPEN))
        raise OperandError(
            f"SymPy does not work this out for all values of its names: what is left is {_shown(left)}; a name that is "
            "positive is declared as sympy.Symbol('s', positive=True)"
        )
    if not isinstance(value, sympy.Expr) or value.has(*_UNREAL):
        raise OperandError(f"this has no value among real numbers: it would be {_shown(value)}")
    for node in sympy.preorder_traversal(value):
        if not isinstance(node, (*_NODES, *_CONDITIONS)) and node.func not in FUNCTIONS:
            raise OperandError(f"its value has {node.func.__name__}, which is no function of symattn: {_shown(value)}")
    if not value.free_symbols.isdisjoint(bound):
        raise OperandError(f"a bound name is left over in {_shown(value)}")


def _shown(value: Any) -> str:
    """With bound names as they are written."""
    return str(value.xreplace({name: sympy.Symbol(name.name) for name in value.atoms(sympy.Dummy)}))


# --- no number that fills the memory ---


def _check_growth(expr: sympy.Expr) -> None:
    """That exponents grow by steps only, whatever places are put in, and that sums begin before they end."""
    for node in sympy.preorder_traversal(expr):
        if isinstance(node, (sympy.Sum, sympy.Product)):
            _check_ends(*node.limits[0][1:])
        elif isinstance(node, (sympy.factorial, sympy.binomial)):
            for argument in node.args:
                _check_exponent(argument)
        elif isinstance(node, sympy.Pow) and not node.exp.is_number:
            _check_exponent(node.exp)
            if any(_grows(part) for part in sympy.preorder_traversal(node.base)):
                raise OperandError("a power with a name in its exponent does not stand below another")
        elif isinstance(node, sympy.exp) and _towers(node) > 2:
            raise OperandError("three exponentials, one in the exponent of the other, are not worked out")


def _check_ends(low: sympy.Expr, high: sympy.Expr) -> None:
    """That no sum is empty, which is 0, but has a value of another kind in SymPy."""
    if not (low.is_integer and (high.is_integer or high is sympy.oo)):
        raise OperandError(f"a sum or a product runs over whole numbers, not from {_shown(low)} to {_shown(high)}")
    if not (high - low + 1).is_extended_nonnegative:
        raise OperandError(f"whether {_shown(high)} comes before {_shown(low)} is not decided")


def _check_exponent(exponent: sympy.Expr) -> None:
    for part in sympy.preorder_traversal(exponent):
        if _grows(part) or isinstance(part, sympy.exp):
            raise OperandError(f"the exponent {_shown(exponent)} grows too fast")
        if part.is_Rational and max(abs(part.p), part.q) > _SMALL:
            raise OperandError(f"an exponent, or a factorial, of names and a number beyond {_SMALL}")


def _grows(part: Any) -> bool:
    return isinstance(part, _GROWING) or (
        isinstance(part, sympy.Pow) and (not part.exp.is_number or bool(abs(part.exp.evalf(15)) > 2))
    )


def _towers(node: sympy.Basic) -> int:
    """How many exponentials stand in each other."""
    return int(isinstance(node, sympy.exp)) + max(map(_towers, node.args), default=0)


# --- integrals and limits, held against numbers ---


def _integrated(integral: Any) -> Any:
    """The value of an integral, variable by variable, each held against quadrature."""
    value = integral.function
    for limits in integral.limits:
        one = sympy.Integral(value, limits)
        value = _rewritten(one.doit())
        if value.has(*_OPEN, *_UNREAL):
            return value
        _check_by_numbers(value, one, _by_quadrature)
    return value


@cache
def prepare() -> None:
    """Has SymPy fill the tables by which it integrates: that is done once, and is in nobody's time."""
    x, width = sympy.Dummy("x", real=True), sympy.Dummy("w", positive=True)
    _integrated(sympy.Integral(sympy.exp(-((x / width) ** 2)), (x, -sympy.oo, sympy.oo)))


def _limited(limit: Any) -> Any:
    """The value of a limit, held against a place that is near."""
    value = limit.doit()
    if not value.has(*_OPEN, *_UNREAL):
        _check_by_numbers(value, limit, _nearby)
    return value


def _check_by_numbers(value: sympy.Expr, formula: Any, judge: Callable[[Any], float | None]) -> None:
    """That numbers give the same at several places of the names, at one of them at least."""
    names = sorted(formula.free_symbols | value.free_symbols, key=str)
    judged = False
    for scale in _SCALES if names else _SCALES[:1]:
        at = {name: _place(name, n, scale) for n, name in enumerate(names)}
        found = complex(value.xreplace(at).evalf(15))
        if abs(found.imag) > _NEAR * abs(found) or not np.isfinite(found):
            continue  # none of the places where it is defined
        wanted = judge(formula.xreplace(at))
        if wanted is None or abs(wanted - found) > _NEAR * max(1.0, abs(found)):
            raise OperandError(f"by symbols this is {_shown(value)}, which numbers do not confirm: it is not read")
        judged = True
    if not judged:
        raise OperandError(f"by symbols this is {_shown(value)}, which has no value at the places that are tried")


def _place(name: Any, n: int, scale: sympy.Rational) -> sympy.Expr:
    """A place for a name: whole numbers for sizes and indices, positive ones where it is declared so."""
    place = sympy.Rational(2 * n + 3, 4) * scale
    if name.is_nonnegative or name.is_integer:
        place = abs(place)
    return sympy.ceiling(place) if name.is_integer else place


def _nearby(limit: Any) -> float | None:
    """What a limit is of, near to its place, from each of its sides; None where these differ."""
    content, variable, place, side = limit.args
    if place.is_infinite:
        near = [_FAR if place.is_positive else -_FAR]
    else:
        near = [place + step / _FAR for step in ({"+": (1,), "-": (-1,)}.get(str(side), (1, -1)))]
    found = [complex(content.doit().subs(variable, sympy.Float(at, 30)).evalf(30)) for at in near]
    is_one = abs(found[0] - found[-1]) <= _NEAR * max(1.0, abs(found[0]))
    return found[0].real if is_one and abs(found[0].imag) <= _NEAR else None


def _by_quadrature(integral: Any) -> float | None:
    """The value by two quadratures; None where they differ, as where there is none."""
    variable, *bounds = integral.limits[0]
    first, second = (_quadrature(integral.function, variable, bounds, steps) for steps in (161, 320))
    return second if abs(first - second) <= _AGREE * max(1.0, abs(second)) else None


def _quadrature(function: Any, variable: Any, bounds: Any, steps: int) -> float:
    """The integral by double exponential substitution; what is no number counts as nothing."""
    u = np.linspace(-3.5, 3.5, steps + 1)
    step, turned = 7.0 / steps, np.pi / 2 * np.sinh(u)
    low, high = (float(bound) for bound in bounds)
    sign = 1.0
    if low > high:
        low, high, sign = high, low, -1.0
    with np.errstate(all="ignore"):
        if np.isfinite(low) and np.isfinite(high):
            x, slope = (low + high) / 2 + (high - low) / 2 * np.tanh(turned), (high - low) / 2 / np.cosh(turned) ** 2
        elif np.isfinite(low) or np.isfinite(high):
            slope = np.exp(turned)
            x = low + slope if np.isfinite(low) else high - slope
        else:
            x, slope = np.sinh(turned), np.cosh(turned)
        y = sympy.lambdify(variable, function, "numpy")(x) * slope * np.pi / 2 * np.cosh(u)
    return float(sign * step * np.sum(np.where(np.isfinite(y), y, 0.0)))


_DONE: dict[type, Callable[[Any], Any]] = {sympy.Integral: _integrated, sympy.Limit: _limited}


# --- in time ---


class _Late(BaseException):
    """Stops what is too late; SymPy does not take it for an error of its own."""


class Allowance:
    """The processor time that is left for what is worked out of one text."""

    def __init__(self) -> None:
        self.left = SECONDS

    def spent_on(self, work: Callable[[], T]) -> T:
        """What some work gives, in a thread of its own. Raises OperandError when it takes longer than is left."""
        future: Future[T] = Future()
        threading.Thread(target=self._run, args=(future, work), daemon=True).start()
        try:
            return future.result(timeout=max(self.left, 0.0) * _PATIENCE)
        except (TimeoutError, _Late):
            raise OperandError(f"this is not worked out within {SECONDS:g} s") from None

    def _run(self, future: Future[T], work: Callable[[], T]) -> None:
        calls = 0

        def watch(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal calls
            calls += 1
            late = calls % _SOMETIMES == 0 and time.thread_time() > self.left
            if late and frame.f_globals.get("__name__", "").partition(".")[0] in _STOPPED:
                raise _Late

        sys.settrace(watch)  # in this thread, at every call of a function
        try:
            result = work()
        except (Exception, _Late) as problem:
            self.left -= time.thread_time()
            future.set_exception(problem)
        else:
            self.left -= time.thread_time()
            future.set_result(result)
        finally:
            sys.settrace(None)


_SOMETIMES = 100  # calls between two looks at the clock
_PATIENCE = 4  # on a machine that is busy with other things
_STOPPED = frozenset({"sympy", "mpmath", "antlr4", "latex2sympy2"})
