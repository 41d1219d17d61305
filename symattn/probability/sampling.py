"""Moments held against samples, with numbers as sizes: nothing of the symbolic calculation is used."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from ..codegen import lambdify
from ..core.node import Tensor
from ..errors import SymattnError
from ..scalars.explicit import written_out
from .laws import Iid, IidPair, Law, NormalRows, Sphere

_SIZES = (9, 4, 6, 5)  # where moments exist that need a few degrees of freedom
_SCALARS = (0.7, 0.4, 0.55, 0.3)
_DRAWS, _MOST = 40000, 10**7  # samples, and numbers in them
_ERRORS = 5.0  # standard errors
_STEADY = 2.0  # by which the fourth moments of two halves may differ, else they are not taken for estimates

Bound = Sequence[tuple[tuple[Tensor, ...], Law]]


@dataclass(frozen=True)
class Checked:
    """Whether an answer holds, and by which way that was seen: false as a condition if it does not."""

    holds: bool
    way: str

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'does not hold'}, by {self.way}"


def sampled(
    quantity: Any, bound: Bound, moments: tuple[sympy.Expr, sympy.Expr], conditions: Sequence[sympy.Expr] = ()
) -> Checked | None:
    """Mean and variance held against samples, with five standard errors.

    None where a law or a value has no numbers, or where one of the ``conditions`` is not positive.
    """
    if not isinstance(quantity, Tensor):
        return None
    tensors = [x for own, _ in bound for x in own]
    try:
        sample = _Sample([quantity, *tensors], bound, moments)
        drawn = sample.values(quantity)
        mean, variance = map(sample.number, moments)
        outside = any(sample.number(e) <= 0 for e in conditions)
    except (SymattnError, TypeError, ValueError, NotImplementedError, ArithmeticError):
        return None  # no numbers: sizes that do not fit, a law that is not drawn from, an integral that is not solved
    if outside or not (np.isfinite(drawn).all() and math.isfinite(mean) and math.isfinite(variance)):
        return None
    return _compared(drawn, mean, variance)


def _compared(drawn: np.ndarray, mean: float, variance: float) -> Checked:
    count = len(drawn)
    slack = 1e-9 * max(1.0, abs(mean), float(np.abs(drawn).max(initial=0)))
    errors = abs(float(drawn.mean()) - mean), math.sqrt(max(variance, 0.0) / count)
    way = f"{count} samples of the mean with five standard errors"
    if errors[0] > _ERRORS * errors[1] + slack:
        return Checked(False, way)
    with np.errstate(over="ignore"):
        squares = (drawn - mean) ** 2
        halves = [float(np.var(half)) for half in np.array_split(squares, 2)]
    if not all(map(math.isfinite, halves)):
        return Checked(True, way)
    if max(halves) > _STEADY * min(halves) + slack**2:
        return Checked(True, way)
    way = f"{count} samples of mean and variance with five standard errors"
    error = abs(float(squares.mean()) - variance)
    return Checked(error <= _ERRORS * math.sqrt(sum(halves) / 2 / count) + slack**2, way)


class _Sample:
    """Numbers for sizes, symbols and fixed tensors, and draws of the random ones."""

    def __init__(self, tensors: Sequence[Tensor], bound: Bound, told: Sequence[sympy.Expr]) -> None:
        self.rng = np.random.default_rng(0)
        formulas = [*told, *(e for _, law in bound for e in _parameters(law))]
        symbols = {s for part in (*tensors, *formulas) for s in part.free_symbols if s.is_Symbol}
        names = {str(x.name) for own, _ in bound for x in own}
        free = sorted((s for s in symbols if s.name not in names), key=str)
        self.sizes = dict(
            zip((s for s in free if s.is_integer and s.is_positive), itertools.cycle(_SIZES), strict=False)
        )
        scalars = [s for s in free if s not in self.sizes and s.is_integer is not True]
        self.scalars = dict(zip(scalars, itertools.cycle(_SCALARS), strict=False))
        self.bound = bound
        self.arrays: dict[str, np.ndarray] = {}
        parameters = [p for _, law in bound if isinstance(law, NormalRows) for p in (law.mean, law.covariance)]
        fixed = [p for p in parameters if isinstance(p, Tensor)]
        fixed += [x for own, law in bound for x in own if getattr(law, "name", None) == "constant"]
        for x in fixed:
            self.arrays[str(x.name)] = self._fixed(x)
        total = sum(math.prod(self.shape(x)) for own, _ in bound for x in own)
        self.count = max(2, min(_DRAWS, _MOST // max(1, total)))
        self.random: set[str] = set()
        for own, law in bound:
            if getattr(law, "name", None) != "constant":
                self._draw(own, law)

    def shape(self, x: Tensor) -> tuple[int, ...]:
        return tuple(int(sympy.sympify(size).subs(self.sizes)) for size in x.shape)

    def _fixed(self, x: Tensor) -> np.ndarray:
        """Any array of the declared kind; a symmetric one is a covariance."""
        hypotheses, shape = set(x.params["hypotheses"]), self.shape(x)
        law = next((law for own, law in self.bound if x in own), None)
        if isinstance(law, Iid) and law.known(1) is not None:
            return np.full(shape, self.number(law.known(1)))
        if hypotheses - {"symmetric", "positive", "constant"}:
            raise ValueError(f"no array of {x.name} is drawn")
        values = self.rng.normal(size=shape)
        if "symmetric" in hypotheses or (
            x.rank == 2 and any(x is getattr(other, "covariance", None) for _, other in self.bound)
        ):
            return values @ np.swapaxes(values, -1, -2) / shape[-1]
        return np.abs(values) + 0.1 if "positive" in hypotheses else values

    def number(self, e: Any) -> float:
        """A formula of sizes, symbols and entries of fixed tensors as a number."""
        values = {**self.sizes, **{s: sympy.Float(v) for s, v in self.scalars.items()}}
        whole = {s: sympy.Integer(v) if s in self.sizes else v for s, v in values.items()}

        def element(base: Any, index: tuple[Any, ...]) -> sympy.Expr:
            return sympy.Float(float(self.arrays[str(base)][tuple(map(int, index))]))

        found = complex(sympy.N(written_out(sympy.sympify(e), element, whole)))
        if abs(found.imag) > 1e-9 * max(1.0, abs(found)):
            raise ValueError("a moment that is not real")
        return found.real

    def values(self, quantity: Tensor) -> np.ndarray:
        """The quantity at all draws."""
        tensors = [x for own, _ in self.bound for x in own]
        function = lambdify(tensors, quantity)
        arrays = [self.arrays[str(x.name)] for x in tensors]
        given = {s.name: self.scalars[s] for s in quantity.free_symbols if s in self.scalars}
        with np.errstate(all="ignore"):  # what is not finite is seen later
            return np.broadcast_to(np.asarray(function(*arrays, **given), float), (self.count,))

    # --- laws ---

    def _draw(self, own: Sequence[Tensor], law: Law) -> None:
        shape = (self.count, *self.shape(own[0]))
        for kind, draw in _DRAWN.items():
            if isinstance(law, kind):
                for x, values in zip(own, draw(self, law, shape), strict=True):
                    self.arrays[str(x.name)] = values
                return
        raise ValueError("a law that is not drawn from")

    def iid(self, law: Iid, shape: tuple[int, ...]) -> list[np.ndarray]:
        if law.name not in _STANDARD or (law.name is None and law.known(3) is not None):
            raise ValueError("a law that is not drawn from")
        if law.name == "bernoulli":
            return [(self.rng.random(shape) < self.number(law.known(1))).astype(float)]
        mean, deviation = self.number(law.known(1)), math.sqrt(self.number(law.known(2)))
        return [mean + deviation * _STANDARD[law.name](self.rng, shape)]

    def pair(self, law: IidPair, shape: tuple[int, ...]) -> list[np.ndarray]:
        if not law.is_normal:
            raise ValueError("a law that is not drawn from")
        means = [self.number(law.known(*n)) for n in ((1, 0), (0, 1))]
        (a, b), c = (self.number(law.known(*n)) for n in ((2, 0), (0, 2))), self.number(law.known(1, 1))
        first, second = self.rng.normal(size=(2, *shape))
        along = c / math.sqrt(a)
        return [
            means[0] + math.sqrt(a) * first,
            means[1] + along * first + math.sqrt(max(0.0, b - along**2)) * second,
        ]

    def rows(self, law: NormalRows, shape: tuple[int, ...]) -> list[np.ndarray]:
        values = self.rng.normal(size=shape)
        if isinstance(law.covariance, Tensor):
            values = values @ np.linalg.cholesky(self.arrays[str(law.covariance.name)]).T
        else:
            values *= math.sqrt(self.number(law.covariance))
        return [values + (self.arrays[str(law.mean.name)] if isinstance(law.mean, Tensor) else self.number(law.mean))]

    def sphere(self, law: Sphere, shape: tuple[int, ...]) -> list[np.ndarray]:
        values = self.rng.normal(size=shape)
        return [values / np.linalg.norm(values, axis=-1, keepdims=True)]


def _parameters(law: Law) -> list[sympy.Expr]:
    """The numbers and formulas that a law is drawn by."""
    if isinstance(law, Iid):
        found = [law.known(order) for order in (1, 2)]
    elif isinstance(law, IidPair):
        found = [law.known(*orders) for orders in ((1, 0), (0, 1), (2, 0), (0, 2), (1, 1))]
    else:
        found = [getattr(law, name, None) for name in ("mean", "covariance")]
    return [e for e in found if isinstance(e, sympy.Expr)]


_DRAWN: Mapping[type, Callable[[_Sample, Any, tuple[int, ...]], list[np.ndarray]]] = {
    Iid: _Sample.iid, IidPair: _Sample.pair, NormalRows: _Sample.rows, Sphere: _Sample.sphere,
}  # fmt: skip
_STANDARD: Mapping[str | None, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {  # variance 1
    None: lambda rng, shape: rng.normal(size=shape),  # any law of that mean and variance will do
    "normal": lambda rng, shape: rng.normal(size=shape),
    "rademacher": lambda rng, shape: 2.0 * rng.integers(0, 2, shape) - 1,
    "uniform": lambda rng, shape: rng.uniform(-math.sqrt(3), math.sqrt(3), shape),
    "laplace": lambda rng, shape: rng.laplace(0, math.sqrt(0.5), shape),
    "bernoulli": lambda rng, shape: rng.random(shape),
}
