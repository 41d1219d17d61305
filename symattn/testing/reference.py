"""The expression and its gradients in float64, and the points at which a function is held against them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import sympy

from ..calculus.gradient import gradient
from ..codegen import NumPyFunction, lambdify
from ..codegen.sampling import generic_arrays, generic_scalars, generic_sizes
from ..core.arguments import each_of
from ..core.naming import fresh_name, in_python
from ..core.node import Tensor, topological
from ..errors import EvaluationError, OperandError, described, listed
from ..ops.leaves import as_tensor, is_fixed, tensor
from ..printing.matrix import names_in
from .comparing import Wanted
from .rounding import with_errors

_TRIALS, _DRAWS = 3, 40
# Entries whose exponential overflows in the dtype, with room for a product of two; smaller ones where these fail.
_LARGE = {"float16": 16, "bfloat16": 128, "float32": 128, "float64": 1024}
_LARGEST = {"float16": 6e4, "bfloat16": 3e38, "float32": 3e38, "float64": 1e300}
_PERTURBATIONS = 3


class Point(NamedTuple):
    """What one comparison is made at: arguments of ``fn``, cotangents, and the values that are right."""

    where: str
    arrays: list[Any]
    cotangents: list[Any]
    outputs: list[Wanted]
    gradients: dict[Any, Wanted]


class _Draw(NamedTuple):
    """How the arrays of one point are drawn."""

    sizes: dict[sympy.Symbol, int]
    seed: int
    values: Mapping[Any, Any]
    large: int = 1
    empty_rows: bool = False

    @property
    def may_cancel(self) -> bool:
        """Whether large terms may cancel exactly, as in the gradients of a saturated softmax and of a row of one."""
        return self.large > 1 or 1 in self.sizes.values()

    @property
    def where(self) -> str:
        told = [", ".join(f"{s} = {v}" for s, v in self.sizes.items()) or "no sizes"]
        told += ["with the values given"] * bool(self.values)
        told += [f"entries near {self.large}"] * (self.large > 1)
        return ", ".join(told + ["empty rows"] * self.empty_rows)


class Reference:
    """The expression and its gradients as one compiled function in float64."""

    def __init__(
        self,
        expr: Any,
        args: Sequence[Any],
        constant: Sequence[Any],
        given: Sequence[Any],
        dtype: str,
        tolerance: float,
    ) -> None:
        if not isinstance(args, (list, tuple)):
            raise OperandError(
                f"assert_matches takes a list of tensors and scalar symbols as args, not {described(args)}"
            )
        self.dtype, self.tolerance = dtype, tolerance
        self.args = [_argument(a) for a in args]
        self.outputs = [as_tensor(y) for y in (expr if isinstance(expr, (list, tuple)) else [expr])]
        if len(set(self.outputs)) < len(self.outputs):
            raise OperandError("assert_matches was given one output twice")
        self.relations = [_relation(r) for r in each_of(given)]
        held = self._held(constant)
        self._differentiable = [a for a in self.args if a not in held and _is_differentiable(a)]
        self._compile([])

    def differentiated(self) -> Reference:
        """The same with its gradients."""
        found = copy.copy(self)
        found._compile(self._differentiable)
        return found

    def _compile(self, wrt: list[Any]) -> None:
        self.wrt = wrt
        taken = names_in([*self.outputs, *map(as_tensor, self.args)])
        outputs = self.outputs if wrt else []
        self.cotangents = [tensor(fresh_name(f"G{k}", taken), *y.shape) for k, y in enumerate(outputs)]
        self.gradient = gradient(dict(zip(outputs, self.cotangents, strict=True)), wrt) if wrt else None
        results = [self.gradient[a] for a in wrt] if self.gradient is not None else []
        self.roots = [*self.outputs, *map(as_tensor, self.args), *self.cotangents, *results]
        self.wanted = [*self.outputs, *results]
        self.compute = self._compiled(self.wanted)

    def _compiled(self, results: Sequence[Tensor]) -> NumPyFunction:
        return lambdify([*self.args, *self.cotangents], results)

    def _held(self, constant: Sequence[Any]) -> set[Any]:
        """The arguments that are not differentiated, which are args, by themselves or by name."""
        named = {a.name: a for a in self.args}
        given = each_of(constant)
        held = [named.get(a) if isinstance(a, str) else _argument(a) for a in given]
        for a, found in zip(given, held, strict=True):
            if found not in self.args:
                raise OperandError(f"constant lists some of {listed(self.args)}, not {described(a)}")
        return set(held)

    @property
    def labels(self) -> list[str]:
        return [y.name or f"output {k}" for k, y in enumerate(self.outputs)]

    # --- what is tried ---

    def points(self, sizes: Any, values: Any, seed: int) -> Iterator[Point]:
        """Points of every kind; those beyond the first ones are left out where the expression is not finite."""
        if values is not None:
            if sizes is not None:
                raise OperandError("give sizes= or values=, not both: given arrays have their sizes")
            yield from (self._asked(draw) for draw in self._given_draws(values, seed))
            return
        first = [_Draw(chosen, seed + k, {}) for k, chosen in enumerate(self._chosen_sizes(sizes, seed))]
        yield from map(self._asked, first)
        for draw in self._further(first[0], alone=sizes is None):
            if (point := self._sampled(draw)) is not None:
                yield point

    def _further(self, first: _Draw, alone: bool) -> Iterator[_Draw]:
        """Empty rows, large entries, and every size as 1 where the sizes are not given."""
        if any(isinstance(a, Tensor) and a.kind == "binary" and a.rank for a in self.args):
            yield first._replace(empty_rows=True)
        yield first._replace(large=_LARGE[self.dtype])
        for symbol in first.sizes if alone else ():
            if (sizes := self._sizes_with({symbol: 1}, first.seed)) is not None:
                yield _Draw(sizes, first.seed, {})

    def _chosen_sizes(self, given: Any, seed: int) -> list[dict[sympy.Symbol, int]]:
        """The sizes that the user gave, complete and checked, or generic ones."""
        if given is None:
            return [generic_sizes(self.roots, seed + k, relations=self.relations) for k in range(_TRIALS)]
        if not isinstance(given, (list, tuple)) or not given or not all(isinstance(one, Mapping) for one in given):
            raise OperandError(f"sizes is a list of {{size: value}}, at least one, not {described(given)}")
        symbols = {s.name: s for s in sorted(generic_sizes(self.roots), key=str)}
        return [self._complete(one, symbols) for one in given]

    def _complete(self, given: Mapping[Any, int], symbols: Mapping[str, sympy.Symbol]) -> dict[sympy.Symbol, int]:
        named = {str(key): value for key, value in given.items()}
        if named.keys() != symbols.keys():
            raise OperandError(f"the sizes to choose are {', '.join(symbols)}, not {', '.join(named)}")
        for name, value in named.items():
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise OperandError(f"the size {name} is a positive integer, not {described(value)}")
        chosen = {s: int(named[name]) for name, s in symbols.items()}
        for size in dict.fromkeys(size for node in topological(self.roots) for size in node.shape):
            if not (value := size.subs(chosen)).is_Integer or value < 1:
                raise OperandError(f"the size {size} would be {value} at {chosen}")
        return chosen

    def _sizes_with(self, fixed: Mapping[sympy.Symbol, int], seed: int) -> dict[sympy.Symbol, int] | None:
        try:
            return generic_sizes(self.roots, seed, trials=200, fixed=fixed, relations=self.relations)
        except EvaluationError:
            return None

    # --- values that are given ---

    def _given_draws(self, values: Any, seed: int) -> Iterator[_Draw]:
        listed_values = each_of(values)
        if not listed_values or not all(isinstance(one, Mapping) for one in listed_values):
            raise OperandError(
                f"values is {{tensor or name: array}}, or a list of these, at least one, not {described(values)}"
            )
        named = {a.name: a for a in self.args}
        for k, one in enumerate(listed_values):
            found = {}
            for key, value in one.items():
                arg = named.get(key if isinstance(key, str) else getattr(key, "name", None))
                if arg is None:
                    raise OperandError(f"values names {described(key)}, which is none of {listed(self.args)}")
                found[arg] = value if isinstance(arg, sympy.Symbol) else np.asarray(value)
            yield _Draw(self._sizes_of(found, seed + k), seed + k, found)

    def _sizes_of(self, values: Mapping[Any, Any], seed: int) -> dict[sympy.Symbol, int]:
        """Sizes at which the given arrays have their shapes."""
        arrays = {x: np.shape(v) for x, v in values.items() if isinstance(x, Tensor)}
        for x, shape in arrays.items():
            if len(shape) != x.rank:
                raise OperandError(f"the array of {x.brief()} has shape {shape}")
        pairs = [(size, n) for x, shape in arrays.items() for size, n in zip(x.shape, shape, strict=True)]
        numbers = [(x, int(v)) for x, v in values.items() if isinstance(x, sympy.Symbol) and x.is_integer]
        fixed = {size: n for size, n in [*pairs, *numbers] if size.is_Symbol}
        equations = [sympy.Eq(size, n) for size, n in pairs]
        try:
            return generic_sizes(self.roots, seed, fixed=fixed, relations=[*self.relations, *equations])
        except EvaluationError:
            shapes = ", ".join(f"{x.brief()} of shape {shape}" for x, shape in arrays.items())
            raise OperandError(f"no sizes were found for the arrays {shapes}") from None

    # --- arrays ---

    def _asked(self, draw: _Draw) -> Point:
        """The point of a draw that has to be made."""
        point = self._sampled(draw)
        if point is None:
            raise EvaluationError(f"no arrays were found at which {listed(self.outputs)} is finite")
        return point

    def _sampled(self, draw: _Draw) -> Point | None:
        """Arrays at which everything is defined and finite; every second draw is of positive ones."""
        while True:
            for k in range(_DRAWS if draw.large == 1 else 2):
                arrays, cotangents, known = self._arrays(draw, k)
                wanted = self._exactly([*arrays, *cotangents], known)
                if wanted is not None and self._is_representable(wanted):
                    moved = self._moved(arrays, cotangents, known, wanted) if draw.may_cancel else [0.0] * len(wanted)
                    right = list(map(Wanted, wanted, moved))
                    outputs, gradients = right[: len(self.outputs)], right[len(self.outputs) :]
                    return Point(draw.where, arrays, cotangents, outputs, dict(zip(self.wrt, gradients, strict=True)))
            if draw.large < 32:
                return None
            draw = draw._replace(large=draw.large // 4)

    def _arrays(self, draw: _Draw, k: int) -> tuple[list[Any], list[Any], dict[sympy.Symbol, Any]]:
        rng = np.random.default_rng([draw.seed, k])
        given = {a: v for a, v in draw.values.items() if isinstance(a, sympy.Symbol)}
        known = {**draw.sizes, **generic_scalars(self.roots, np.random.default_rng(draw.seed)), **given}
        found = {**generic_arrays(self.roots, draw.sizes, rng, positive=k % 2 == 1), **draw.values}
        arrays = [self._of_dtype(_made(a, found[a], draw)) if isinstance(a, Tensor) else known[a] for a in self.args]
        return arrays, [self._of_dtype(found[c]) for c in self.cotangents], known

    def _of_dtype(self, x: Any) -> np.ndarray:
        """An array in the dtype; numbers of bfloat16 are held by float32, of which they are the upper 16 bits."""
        array = np.asarray(x)
        if not _is_floating(array):
            return array
        if self.dtype != "bfloat16":
            return np.asarray(array, self.dtype)
        bits = np.asarray(array, np.float32).view(np.uint32)
        return np.asarray((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000, np.uint32).view(np.float32)

    def _is_representable(self, wanted: Sequence[np.ndarray]) -> bool:
        return all(bool((np.abs(y) <= _LARGEST[self.dtype]).all()) for y in wanted)

    def _moved(
        self,
        arrays: Sequence[Any],
        cotangents: Sequence[Any],
        known: Mapping[sympy.Symbol, Any],
        wanted: Sequence[np.ndarray],
    ) -> list[float]:
        """How far the values move when the arrays, or all steps, are off by the tolerance: it stands for rounding."""
        rng, moved = np.random.default_rng(len(wanted)), [0.0] * len(wanted)
        error = sympy.Symbol(fresh_name("error", names_in(self.roots)), real=True)
        inexact = self._compiled(with_errors(self.wanted, error))
        for sign in (1, -1) * _PERTURBATIONS:
            near = [x * (1 + self.tolerance * rng.choice([-1, 1], x.shape)) if _is_floating(x) else x for x in arrays]
            for compute in (self.compute, inexact):
                values = self._exactly([*near, *cotangents], {**known, error: sign * self.tolerance}, compute)
                for k, (value, right) in enumerate(zip(values or wanted, wanted, strict=True)):
                    step = float(np.abs(np.subtract(value, right, dtype=float)).max())
                    moved[k] = max(moved[k], 2 * step) if np.isfinite(step) else moved[k]
        return moved

    def _exactly(
        self, arguments: Sequence[Any], known: Mapping[sympy.Symbol, Any], compute: NumPyFunction | None = None
    ) -> list[np.ndarray] | None:
        """The values in float64; None where the expression has none, as a softmax that refuses empty rows."""
        compute = self.compute if compute is None else compute
        exact = [np.asarray(x, np.float64) if _is_floating(x) else x for x in arguments]
        try:
            with np.errstate(all="ignore"):
                values = compute(*exact, **{in_python(s.name): known[s] for s in compute.takes.keywords})
        except (EvaluationError, np.linalg.LinAlgError):
            return None
        return list(map(np.asarray, values))


def _made(x: Tensor, array: Any, draw: _Draw) -> Any:
    """The array of one tensor, as the draw asks: large, or with an empty row."""
    if x in draw.values:
        return array
    if draw.empty_rows and x.kind == "binary" and x.rank:
        array = array.copy()
        array[(0,) * (x.rank - 1)] = False
    if draw.large > 1 and not {"orthogonal", "permutation"} & set(x.params["hypotheses"]) and _is_floating(array):
        return draw.large * array
    return array


def _argument(a: Any) -> Any:
    return a if isinstance(a, sympy.Symbol) else as_tensor(a)


def _relation(relation: Any) -> Any:
    if not isinstance(relation, sympy.core.relational.Relational):
        raise OperandError(f"given takes relations of sizes, such as sympy.Le(T, S), not {described(relation)}")
    return relation


def _is_differentiable(a: Any) -> bool:
    return not (a.is_integer if isinstance(a, sympy.Symbol) else is_fixed(a))


def _is_floating(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"
