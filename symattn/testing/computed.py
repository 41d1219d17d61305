"""The assertion that somebody's own function of arrays computes an expression, and its backward the gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..checking.arrays import TOLERANCES, checked_tolerance
from ..checking.diagnosis import diagnose
from ..core.arguments import seeded
from ..errors import OperandError, SymattnError, described, listed
from .autograd import has_libraries, pullback_of
from .calls import Adaptation, called
from .comparing import dtype_name, problems
from .reference import Point, Reference


def assert_matches(
    fn: Callable[..., Any],
    expr: Any,
    args: Sequence[Any],
    *,
    grad: Callable[..., Any] | None = None,
    sizes: Sequence[Mapping[Any, int]] | None = None,
    values: Mapping[Any, Any] | Sequence[Mapping[Any, Any]] | None = None,
    constant: Sequence[Any] = (),
    given: Sequence[Any] = (),
    dtype: Any = "float64",
    tolerance: float | None = None,
    adapt: Callable[..., Any] | None = None,
    seed: int = 0,
) -> None:
    """Assert that a NumPy, PyTorch or JAX function computes an expression, and its backward the gradients.

    ``fn(*arrays)`` takes arrays and numbers for ``args``, named tensors and scalar symbols in the order of ``fn``,
    and gives the value of ``expr``, or several for a list. ``grad(*arrays, *cotangents)`` gives the gradients in
    the order of ``args``, with None for what has none. Without ``grad``, what gives PyTorch tensors that carry a
    graph, or JAX arrays, is differentiated by its own library. ``constant`` lists the args that are not
    differentiated: no gradient is asked by them.

    What is tried: random arrays and cotangents at three choices of generic sizes, or at each of ``sizes``, as
    ``{symbol or name: int}``; then, where the expression is finite there, entries so large that an unprotected
    exponential overflows, and an empty row in every binary tensor; and, unless ``sizes`` are given, each size as 1.
    ``values`` gives arrays, as ``{tensor or name: array}`` or several of these, which are tried instead; what they
    leave out is drawn. Arrays have the ``dtype`` (bfloat16: float32 arrays that it holds exactly), and so must what
    comes back; the reference is computed in float64. ``adapt`` of one parameter turns each array and cotangent into
    what ``fn`` takes (``torch.from_numpy``); of several, it takes all arrays and gives all arguments. ``given`` are
    relations of sizes that the generic sizes satisfy, and ``seed`` is that of all draws.

    Errors are relative to the largest entry, and ``tolerance`` goes by the dtype unless given; at large entries,
    and where a size is 1, the result may also move by what such an error of the arrays and of every step makes of it.

    Raises AssertionError with each output or gradient that differs, the sizes, the largest error, the tolerance and
    the first entry that differs, or with what ``fn`` raised; OperandError for arguments that do not fit together.

    >>> import numpy as np, symattn as sa
    >>> from symattn.testing import assert_matches
    >>> Z = sa.tensor("Z", "T S")
    >>> def softmax(z):
    ...     weights = np.exp(z - z.max(axis=-1, keepdims=True))
    ...     return weights / weights.sum(axis=-1, keepdims=True)
    >>> assert_matches(softmax, sa.softmax(Z), [Z], dtype="float32")
    """
    __tracebackhide__ = True
    for role, function in (("fn", fn), ("grad", grad), ("adapt", adapt)):
        if not callable(function) and (function is not None or role == "fn"):
            raise OperandError(f"assert_matches: {role} is a function of arrays, not {described(function)}")
    seeded("assert_matches", seed)
    name = dtype_name(dtype)
    allowed = checked_tolerance(TOLERANCES[name] if tolerance is None else tolerance)
    reference = Reference(expr, args, constant, given, name, allowed)
    tested = _Tested(fn, grad, Adaptation(adapt, len(reference.args)), allowed)
    if tested.has_derivative(next(reference.points(sizes, values, seed)) if has_libraries() else None):
        reference = reference.differentiated()
    if grad is not None and not reference.wrt:
        raise OperandError(f"there is no gradient by {listed(reference.args)}: leave out grad")
    for point in reference.points(sizes, values, seed):
        if found := tested.problems(reference, point):
            raise AssertionError("\n  ".join([f"no match with {listed(reference.outputs)} at {point.where}:", *found]))


class _Tested(NamedTuple):
    """Somebody's function, with the derivative that is given or that its library makes, and what errors it may have."""

    fn: Callable[..., Any]
    grad: Callable[..., Any] | None
    adapted: Adaptation
    allowed: float

    def has_derivative(self, point: Point | None) -> bool:
        """Whether there may be gradients to compare; what a library makes shows by a call at the point."""
        __tracebackhide__ = True
        if self.grad is not None or point is None:
            return self.grad is not None
        arguments = self.adapted(point.arrays)
        return pullback_of(self.fn, called("fn", self.fn, arguments, point.where), arguments) is not None

    def problems(self, reference: Reference, point: Point) -> list[str]:
        """A line for each output and gradient that is wrong at a point."""
        __tracebackhide__ = True
        arguments = self.adapted(point.arrays)
        result = called("fn", self.fn, arguments, point.where)
        found = problems("fn", result, reference.labels, point.outputs, self.allowed, arguments)
        if found:
            found += self._explained(reference, point, reference.outputs, reference.outputs, result)
        if self.grad is not None:
            gradients = called("grad", self.grad, self.adapted(point.arrays, point.cotangents), point.where)
            return found + self._of_gradients("grad", reference, point, gradients, reference.wrt, arguments)
        return found or (self._of_its_library(reference, point, result) if reference.wrt else [])

    def _of_gradients(
        self, what: str, reference: Reference, point: Point, gradients: Any, by: Sequence[Any], arguments: Sequence[Any]
    ) -> list[str]:
        """A line for each gradient that is wrong, and what explains them."""
        wanted = [point.gradients.get(a) if a in by else None for a in reference.args]
        labels = [f"gradient by {described(a)}" for a in reference.args]
        found = problems(what, gradients, labels, wanted, self.allowed, arguments)
        if found:
            found += self._explained(reference, point, reference.gradient, reference.args, gradients)
        return found

    def _explained(self, reference: Reference, point: Point, of: Any, names: Sequence[Any], results: Any) -> list[str]:
        """The known mistakes that explain what was found."""
        several = results if isinstance(results, (tuple, list)) else [results]
        found = {x: y for x, y in zip(names, several, strict=False) if y is not None and x in of}
        arguments = zip([*reference.args, *reference.cotangents], [*point.arrays, *point.cotangents], strict=True)
        if not found:
            return []
        try:
            diagnosis = diagnose(found, of, dict(arguments), tolerance=self.allowed)
        except SymattnError:  # what was found are no arrays, as the lines above say
            return []
        return [f"known mistake: {mistake}" for mistake in diagnosis.likeliest]

    def _of_its_library(self, reference: Reference, point: Point, result: Any) -> list[str]:
        """What is wrong with the gradients by PyTorch or JAX; nothing where the function has no derivative."""
        __tracebackhide__ = True
        arguments = self.adapted(point.arrays, point.cotangents)
        inputs, cotangents = arguments[: -len(point.cotangents)], arguments[-len(point.cotangents) :]
        pullback = pullback_of(self.fn, result, inputs)
        if pullback is None:
            return []
        if [tuple(np.shape(x)) for x in point.arrays] != [tuple(getattr(x, "shape", ())) for x in inputs]:
            raise OperandError(
                "adapt gives arguments of other shapes than args, so that their derivatives are not those by args: "
                "give grad=, or constant=args to compare values alone"
            )
        places = [k for k, a in enumerate(reference.args) if a in reference.wrt and hasattr(inputs[k], "dtype")]
        gradients = called("the derivative of fn", pullback, [self.fn, inputs, places, cotangents], point.where)
        if gradients is None:
            return []
        by = [reference.args[k] for k in places]
        return self._of_gradients("the derivative of fn", reference, point, gradients, by, inputs)
