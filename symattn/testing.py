"""Assertions for test suites: a claim is proved, or somebody's own function computes what an expression says.

A claim that does not hold is an AssertionError that prints the counterexample; a question that cannot be asked, such
as sides of different shapes, is an error of symattn.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import sympy

from .calculus import gradient
from .codegen import lambdify
from .codegen.sampling import generic_arrays, generic_scalars, generic_sizes
from .errors import EvaluationError, OperandError, ShapeError
from .latex import displayed_names
from .naming import fresh_name
from .ops.contraction import matmul
from .ops.leaves import as_tensor, tensor
from .proof.claims import eq
from .proof.engine import prove
from .tensor import Tensor, topological

# --- proved ---


def assert_identity(lhs: Any, rhs: Any, given: Iterable[Any] = ()) -> None:
    """Assert that ``lhs = rhs`` is proved, entry by entry, for all sizes and all values of the tensors.

    ``given`` are hypotheses, as in ``sa.prove``. Raises AssertionError with the counterexample if the identity is
    refuted, and with what is left open if it is neither proved nor refuted; ShapeError where the shapes differ.

    >>> import symattn as sa
    >>> from symattn.testing import assert_identity
    >>> Z, b = sa.tensor("Z", "T S"), sa.tensor("b", "T 1")
    >>> assert_identity(sa.softmax(Z + b), sa.softmax(Z))
    """
    __tracebackhide__ = True
    _assert_proved(f"the identity {eq(lhs, rhs)}", lhs, rhs, given)


def assert_gradient(expr: Any, wrt: Any, claimed: Any) -> None:
    """Assert that a claimed gradient is proved equal to ``sa.gradient(expr, wrt)``.

    ``wrt`` is a tensor with one claimed gradient, or a list with one for each, in order or as ``{tensor: claimed}``.
    A claim is written in the cotangent, which ``sa.gradient(expr, wrt).cotangent`` names (``dO`` for an output
    named O); a function as ``claimed`` is called with it. In a counterexample the gradient stands left, the claim
    right. Raises as ``assert_identity``, and OperandError if the claims do not go with ``wrt``.

    >>> import symattn as sa
    >>> from symattn.testing import assert_gradient
    >>> X, W = sa.tensor("X", "T d"), sa.tensor("W", "d e")
    >>> assert_gradient(X @ W, X, lambda dY: dY @ W.T)
    >>> assert_gradient(X @ W, [X, W], lambda dY: {X: dY @ W.T, W: X.T @ dY})
    """
    __tracebackhide__ = True
    variables = list(wrt) if isinstance(wrt, (list, tuple)) else [wrt]
    g = gradient(expr, variables)
    if callable(claimed) and not isinstance(claimed, Tensor):
        claimed = claimed(g.cotangent)
    output = ", ".join(map(_shown, g.cotangents))
    for x, right in _paired(variables, claimed, isinstance(wrt, (list, tuple))):
        _assert_proved(f"the claimed gradient of {output} with respect to {_shown(x)}, {_shown(right)},", g[x], right)


def _paired(variables: Sequence[Any], claimed: Any, several: bool) -> list[tuple[Any, Any]]:
    """Each variable with the gradient that is claimed for it."""
    if isinstance(claimed, Mapping):
        pairs = list(claimed.items())
    elif isinstance(claimed, (list, tuple)) and several:
        pairs = list(zip(variables, claimed, strict=False)) if len(claimed) == len(variables) else []
    else:
        pairs = [] if several and len(variables) > 1 else [(variables[0], claimed)]
    if {x for x, _ in pairs} != set(variables):
        raise OperandError(
            f"assert_gradient takes one claimed gradient for each of {', '.join(map(_shown, variables))}: give a list "
            "in that order, or {tensor: claimed}"
        )
    return pairs


class _Action(NamedTuple):
    """How the elements of a group act: on rows from the left, on features from the right."""

    letter: str
    hypothesis: str
    on_rows: bool

    def size(self, x: Tensor) -> Any:
        return x.shape[-2 if self.on_rows and x.rank > 1 else -1]

    def act(self, element: Tensor, x: Tensor) -> Tensor:
        return matmul(element, x) if self.on_rows else matmul(x, element)

    def text(self, element: Tensor, x: str) -> str:
        return f"{element.name} @ {x}" if self.on_rows else f"{x} @ {element.name}"


_GROUPS = {
    "permutation": _Action("Pi", "permutation", on_rows=True),
    "orthogonal": _Action("U", "orthogonal", on_rows=False),
}


def assert_equivariant(f: Callable[[Tensor], Any], X: Any, group: str) -> None:
    """Assert that a function commutes with a group, proved for every element of it.

    ``"permutation"`` reorders the rows, ``f(Pi @ X) = Pi @ f(X)``; ``"orthogonal"`` changes the basis of the
    features, ``f(X @ U) = f(X) @ U``. X is a tensor of rank 1 (its entries are the rows) or more. Invariance is
    ``assert_identity(f(Pi @ X), f(X))``; what else holds of a function is told by ``sa.equivariance``. Raises as
    ``assert_identity``, and OperandError for a group that is not known or an f that is no function of a tensor.

    >>> import symattn as sa
    >>> from symattn.testing import assert_equivariant
    >>> X = sa.tensor("X", "T d")
    >>> assert_equivariant(lambda x: sa.softmax(x @ x.T) @ x, X, "permutation")
    """
    __tracebackhide__ = True
    if group not in _GROUPS:
        raise OperandError(f"assert_equivariant knows the groups {', '.join(map(repr, _GROUPS))}, not {group!r}")
    if not callable(f):
        raise OperandError(f"assert_equivariant takes a function of a tensor, not {_shown(f)}")
    x, action = as_tensor(X), _GROUPS[group]
    if not x.rank:
        raise OperandError(f"{x.brief()} has no rows: assert_equivariant takes a tensor of rank 1 or more")
    y = as_tensor(f(x))
    size, shown = action.size(x), x.name or "x"
    element = tensor(fresh_name(action.letter, _names([x, y])), size, size, **{action.hypothesis: True})
    try:
        moved = action.act(element, y)
    except ShapeError:
        raise ShapeError(
            f"f(x) is {y.brief()}, on which {element.brief()} cannot act: of an invariant function, state "
            f"assert_identity(f({action.text(element, shown)}), f({shown}))"
        ) from None
    claim = f"f({action.text(element, shown)}) = {action.text(element, f'f({shown})')}"
    _assert_proved(f"the equivariance {claim}", f(action.act(element, x)), moved)


def _assert_proved(what: str, lhs: Any, rhs: Any, given: Iterable[Any] = ()) -> None:
    __tracebackhide__ = True
    verdict = prove(lhs, rhs, given=list(given))
    if verdict.status == "refuted":
        raise AssertionError(f"{what} is refuted\n{verdict.counterexample}")
    if not verdict:
        raise AssertionError(f"{what} is not proved, and nothing was found against it\n{verdict}")


def _shown(x: Any) -> str:
    return x.brief() if isinstance(x, Tensor) else str(x)


# --- computed ---

# The errors that rounding may leave in a chain of a few products and a softmax, in units of the largest entry.
_TOLERANCES = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-5, "float64": 1e-9}
_SMALLEST_SCALE = 0.1  # below it errors are absolute: a gradient that is zero comes out as rounding
_TRIALS, _DRAWS = 3, 40


def assert_matches(
    fn: Callable[..., Any],
    expr: Any,
    args: Sequence[Any],
    *,
    grad: Callable[..., Any] | None = None,
    sizes: Sequence[Mapping[Any, int]] | None = None,
    dtype: Any = "float64",
    tolerance: float | None = None,
    adapt: Callable[..., Any] | None = None,
) -> None:
    """Assert that a NumPy, PyTorch or JAX function computes an expression, and its backward the gradients.

    ``fn(*arrays)`` takes arrays and numbers for ``args``, named tensors and scalar symbols in the order of ``fn``,
    and gives the value of ``expr``, or several for a list. ``grad(*arrays, *cotangents)`` gives the gradients in
    the order of ``args``, with None for what has none. Both are called at several generic ``sizes``, chosen or given
    as ``{symbol or name: int}``, with random arrays of the dtype (bfloat16: float32 arrays that it holds exactly)
    and random cotangents; the reference is computed in float64. ``adapt`` of one parameter turns each array and
    cotangent into what ``fn`` takes (``torch.from_numpy``); of several, it takes all arrays and gives all arguments.
    Errors are relative to the largest entry; ``tolerance`` goes by the dtype unless given.

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
    name = _dtype_name(dtype)
    allowed = _checked_tolerance(_TOLERANCES[name] if tolerance is None else tolerance)
    reference = _Reference(expr, args, grad is not None)
    adapted = _adaptation(adapt, len(args))
    for seed, chosen in enumerate(reference.chosen_sizes(sizes)):
        point = reference.sample(chosen, name, seed)
        where = ", ".join(f"{s} = {v}" for s, v in chosen.items()) or "no sizes"
        outputs, gradients = point.wanted[: len(reference.outputs)], point.wanted[len(reference.outputs) :]
        problems = _problems(
            "fn", _called("fn", fn, adapted(point.arrays, []), where), reference.labels, outputs, allowed
        )
        if grad is not None:
            got = _called("grad", grad, adapted(point.arrays, point.cotangents), where)
            of = dict(zip(reference.wrt, gradients, strict=True))
            wanted = [of.get(a) for a in reference.args]
            problems += _problems("grad", got, [f"gradient by {_shown(a)}" for a in reference.args], wanted, allowed)
        if problems:
            raise AssertionError("\n  ".join([f"no match with {_listed(reference.outputs)} at {where}:", *problems]))


class _Point(NamedTuple):
    """What one comparison is made at: arguments of ``fn``, cotangents, and the values that are right."""

    arrays: list[Any]
    cotangents: list[Any]
    wanted: list[np.ndarray]


class _Reference:
    """The expression and its gradients as one compiled function in float64."""

    def __init__(self, expr: Any, args: Sequence[Any], with_gradients: bool) -> None:
        if isinstance(args, (str, bytes)) or not isinstance(args, Sequence):
            raise OperandError(f"assert_matches takes a list of tensors and scalar symbols as args, not {args!r}")
        self.args = [a if isinstance(a, sympy.Symbol) else as_tensor(a) for a in args]
        self.outputs = [as_tensor(y) for y in (expr if isinstance(expr, (list, tuple)) else [expr])]
        if len(set(self.outputs)) < len(self.outputs):
            raise OperandError("assert_matches was given one output twice")
        self.wrt = [a for a in self.args if _is_differentiable(a)] if with_gradients else []
        self.cotangents: list[Tensor] = []
        results: list[Tensor] = []
        if with_gradients:
            if not self.wrt:
                raise OperandError(f"there is no gradient by {_listed(self.args)}: leave out grad")
            taken = _names([*self.outputs, *map(as_tensor, self.args)])
            self.cotangents = [tensor(fresh_name(f"G{k}", taken), *y.shape) for k, y in enumerate(self.outputs)]
            g = gradient(dict(zip(self.outputs, self.cotangents, strict=True)), self.wrt)
            results = [g[a] for a in self.wrt]
        self.roots = [*self.outputs, *map(as_tensor, self.args), *self.cotangents, *results]
        self.compute = lambdify([*self.args, *self.cotangents], [*self.outputs, *results])

    @property
    def labels(self) -> list[str]:
        return [y.name or f"output {k}" for k, y in enumerate(self.outputs)]

    def chosen_sizes(self, given: Sequence[Mapping[Any, int]] | None) -> list[dict[sympy.Symbol, int]]:
        """The sizes that the user gave, complete and checked, or generic ones."""
        if given is None:
            return [generic_sizes(self.roots, seed) for seed in range(_TRIALS)]
        if isinstance(given, Mapping) or not given:
            raise OperandError(f"sizes is a list of {{size: value}}, at least one, not {given!r}")
        symbols = {s.name: s for s in sorted(generic_sizes(self.roots), key=str)}
        return [self._complete(one, symbols) for one in given]

    def _complete(self, given: Mapping[Any, int], symbols: Mapping[str, sympy.Symbol]) -> dict[sympy.Symbol, int]:
        named = {str(key): value for key, value in given.items()}
        if named.keys() != symbols.keys():
            raise OperandError(f"the sizes to choose are {', '.join(symbols)}, not {', '.join(named)}")
        for name, value in named.items():
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise OperandError(f"the size {name} is a positive integer, not {value!r}")
        chosen = {s: int(named[name]) for name, s in symbols.items()}
        for size in dict.fromkeys(size for node in topological(self.roots) for size in node.shape):
            if not (value := size.subs(chosen)).is_Integer or value < 1:
                raise OperandError(f"the size {size} would be {value} at {chosen}")
        return chosen

    def sample(self, sizes: dict[sympy.Symbol, int], dtype: str, seed: int) -> _Point:
        """Arrays of the dtype at which everything is defined and finite; every second draw is of positive ones."""
        known = {**sizes, **generic_scalars(self.roots, np.random.default_rng(seed))}
        for draw in range(_DRAWS):
            found = generic_arrays(self.roots, sizes, np.random.default_rng([seed, draw]), positive=draw % 2 == 1)
            arrays = [_rounded(found[a], dtype) if isinstance(a, Tensor) else known[a] for a in self.args]
            cotangents = [_rounded(found[c], dtype) for c in self.cotangents]
            wanted = self._exactly([*arrays, *cotangents], known)
            if wanted is not None and all(np.isfinite(y).all() for y in wanted):
                return _Point(arrays, cotangents, wanted)
        raise EvaluationError(f"no arrays were found at which {_listed(self.outputs)} is finite")

    def _exactly(self, arguments: Sequence[Any], known: Mapping[sympy.Symbol, Any]) -> list[np.ndarray] | None:
        """The values in float64; None where the expression has none, as a softmax that refuses empty rows."""
        exact = [np.asarray(x, np.float64) if _is_floating(x) else x for x in arguments]
        try:
            with np.errstate(all="ignore"):
                values = self.compute(*exact, **{s.name: known[s] for s in self.compute.plan.keywords})
        except (EvaluationError, np.linalg.LinAlgError):
            return None
        return list(map(np.asarray, values))


def _is_differentiable(a: Any) -> bool:
    if isinstance(a, sympy.Symbol):
        return not a.is_integer
    return a.kind == "real" and not {"constant", "integer", "binary"} & set(a.params.get("hypotheses", ()))


def _names(roots: Sequence[Tensor]) -> set[str]:
    return {*displayed_names(roots).values(), *(s.name for x in roots for s in x.free_symbols)}


def _listed(items: Iterable[Any]) -> str:
    return ", ".join(map(_shown, items))


def _dtype_name(dtype: Any) -> str:
    """``float32`` of a name, a NumPy dtype or type, or a dtype of PyTorch or JAX."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", str(dtype).rpartition(".")[2])
    if name not in _TOLERANCES:
        raise OperandError(f"assert_matches knows the dtypes {', '.join(_TOLERANCES)}, not {dtype!r}")
    return str(name)


def _checked_tolerance(tolerance: Any) -> float:
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not 0 <= tolerance < 1:
        raise OperandError(f"a tolerance is a number from 0 to 1, of the largest entry, not {tolerance!r}")
    return float(tolerance)


def _is_floating(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def _rounded(x: Any, dtype: str) -> np.ndarray:
    """An array in the dtype; numbers of bfloat16 are held by float32, of which they are the upper 16 bits."""
    array = np.asarray(x)
    if not _is_floating(array):
        return array
    if dtype != "bfloat16":
        return np.asarray(array, dtype)
    bits = np.asarray(array, np.float32).view(np.uint32)
    return np.asarray((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000, np.uint32).view(np.float32)


def _adaptation(adapt: Callable[..., Any] | None, count: int) -> Callable[[list[Any], list[Any]], list[Any]]:
    """How fresh copies of arrays, and the cotangents after them, become the arguments of a call."""

    def copied(x: Any) -> Any:
        return x.copy() if isinstance(x, np.ndarray) else x

    def each(arrays: list[Any], cotangents: list[Any]) -> list[Any]:
        return [adapt(copied(x)) if adapt and isinstance(x, np.ndarray) else x for x in (*arrays, *cotangents)]

    def together(arrays: list[Any], cotangents: list[Any]) -> list[Any]:
        assert adapt is not None
        return [*adapt(*map(copied, arrays)), *map(copied, cotangents)]

    return together if adapt is not None and count > 1 and _takes_several(adapt) else each


def _takes_several(adapt: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(adapt).parameters.values()
    except ValueError:  # a built-in such as torch.from_numpy shows no signature
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in parameters if p.kind in positional and p.default is p.empty]
    return len(required) > 1 or (not required and any(p.kind is p.VAR_POSITIONAL for p in parameters))


def _called(what: str, function: Callable[..., Any], arguments: list[Any], where: str) -> Any:
    __tracebackhide__ = True
    try:
        return function(*arguments)
    except Exception as problem:  # somebody's own code may fail in any way; the test fails with it
        raise AssertionError(f"{what} raised {type(problem).__name__} at {where}: {problem}") from problem


def _problems(
    what: str, result: Any, labels: Sequence[str], wanted: Sequence[np.ndarray | None], tolerance: float
) -> list[str]:
    """A line for each result that is not what is wanted; nothing is asked of a result that no value is wanted for."""
    alone = len(labels) == 1 and not (isinstance(result, (tuple, list)) and len(result) == 1)
    results = [result] if alone and not isinstance(result, tuple) else result
    if not isinstance(results, (tuple, list)) or len(results) != len(labels):
        count = f"{len(results)} results" if isinstance(results, (tuple, list)) else f"one {type(results).__name__}"
        return [f"{what} gave {count}, not {len(labels)}: {', '.join(labels)}"]
    lines = []
    for label, got, want in zip(labels, results, wanted, strict=True):
        problem = None if want is None else _problem(got, want, tolerance)
        lines += [f"{label}: {problem}"] if problem else []
    return lines


def _problem(result: Any, want: np.ndarray, tolerance: float) -> str | None:
    """What is wrong with one result, if anything is."""
    scale = max(_SMALLEST_SCALE, float(np.abs(want).max()))
    if result is None:
        return None if np.abs(want).max() <= tolerance * scale else "None was given, but it is not zero"
    try:
        got = _as_array(result)
    except (TypeError, ValueError) as problem:
        return f"a {type(result).__name__} is no array of real numbers: {problem}"
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    with np.errstate(all="ignore"):
        error = np.abs(got - want) / scale
    wrong = np.argwhere(~(error <= tolerance))  # so that what is not finite is wrong
    if not len(wrong):
        return None
    place = tuple(int(i) for i in wrong[0])
    broken = int((~np.isfinite(got)).sum())
    size = f"{broken} entries are not finite" if broken else f"largest error {error.max():.2g} of the largest entry"
    entry = f"first differing entry {list(place)} is {got[place]:.8g}, but {want[place]:.8g} is right"
    return f"{size}, tolerance {tolerance:.0e}; {len(wrong)} of {want.size} entries differ; {entry}"


def _as_array(result: Any) -> np.ndarray:
    """A float64 array of anything NumPy reads; a PyTorch tensor is first taken off its graph and its device."""
    if hasattr(result, "detach"):
        result = result.detach().cpu()
        result = result.double() if hasattr(result, "double") else result  # NumPy has no bfloat16
        result = result.numpy()
    array = np.asarray(result)
    if np.iscomplexobj(array):
        raise TypeError("its entries are complex")
    return np.asarray(array, np.float64)


__all__ = ["assert_equivariant", "assert_gradient", "assert_identity", "assert_matches"]
