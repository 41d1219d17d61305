"""The assertion that a function commutes with a group: proved for tensors, tried by numbers for arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..checking.arrays import TOLERANCES, as_array
from ..codegen.sampling import generic_arrays, generic_sizes
from ..core.arguments import one_of, seeded
from ..core.naming import fresh_name
from ..core.node import Tensor
from ..errors import OperandError, ShapeError, described
from ..ops.contraction import matmul
from ..ops.leaves import as_tensor, tensor, variable
from ..printing.matrix import names_in
from ..proof.claims import eq
from .calls import called
from .comparing import Wanted, problems
from .proved import demand

_TRIALS, _ELEMENTS = 3, 3


class _Action(NamedTuple):
    """How the elements of a group act: on rows from the left, on features from the right."""

    letter: str
    hypothesis: str
    on_rows: bool

    def axis(self, rank: int) -> int:
        return -2 if self.on_rows and rank > 1 else -1

    def act(self, element: Tensor, x: Tensor) -> Tensor:
        return matmul(element, x) if self.on_rows else matmul(x, element)

    def text(self, element: str, x: str) -> str:
        return f"{element} @ {x}" if self.on_rows else f"{x} @ {element}"


_GROUPS = {
    "permutation": _Action("Pi", "permutation", on_rows=True),
    "orthogonal": _Action("U", "orthogonal", on_rows=False),
}


def assert_equivariant(
    f: Callable[[Any], Any], X: Any, group: str, given: Iterable[Any] = (), *, budget: float = 10.0, seed: int = 0
) -> None:
    """Assert that a function commutes with a group: proved for every element, or tried by numbers for arrays.

    ``"permutation"`` reorders the rows, ``f(Pi @ X) = Pi @ f(X)``; ``"orthogonal"`` changes the basis of the
    features, ``f(X @ U) = f(X) @ U``. X is a tensor of rank 1 (its entries are the rows) or more. Invariance is
    ``assert_identity(f(Pi @ X), f(X))``; what else holds of a function is told by ``sa.equivariance``. Hypotheses,
    time and seed are those of ``sa.prove``.

    Where X is an array, of NumPy, PyTorch or JAX, f is a function of arrays, and nothing is proved: three random
    elements of the group are tried at X, to the tolerance of its dtype. A function of arrays with a tensor X is tried
    so at random float64 arrays of three choices of sizes, one of them 3, with a warning that says it.

    Raises as ``assert_identity``, and OperandError for a group that is not known or an f that is no function of X.

    >>> import numpy as np, symattn as sa
    >>> from symattn.testing import assert_equivariant
    >>> X = sa.tensor("X", "T d")
    >>> assert_equivariant(lambda x: sa.softmax(x @ x.T) @ x, X, "permutation")
    >>> assert_equivariant(lambda x: np.tanh(x @ x.T) @ x, np.eye(3, 2), "orthogonal")
    """
    __tracebackhide__ = True
    one_of("assert_equivariant", "group", group, *_GROUPS)
    seeded("assert_equivariant", seed)
    if not callable(f):
        raise OperandError(f"assert_equivariant takes a function of a tensor, not {described(f)}")
    action, is_array = _GROUPS[group], hasattr(X, "dtype")
    x = X if is_array else as_tensor(X)
    if 0 in x.shape:
        raise OperandError("assert_equivariant takes an array that has entries")
    if not len(x.shape):
        what = x.brief() if isinstance(x, Tensor) else "a number"
        raise OperandError(f"{what} has no rows: assert_equivariant takes a tensor or array of rank 1 or more")
    if is_array:
        _try(f, [x], action, seed)
        return
    try:
        y = as_tensor(f(x))
    except (TypeError, AttributeError) as problem:  # what functions of arrays do with a tensor
        _try(f, _generic(x, problem, f, seed), action, seed)
        warnings.warn(
            f"f is no function of tensors ({_first_line(problem)}): its equivariance was tried by numbers, and not "
            "proved; give an array as X to ask for that",
            stacklevel=2,
        )
        return
    size, name = x.shape[action.axis(x.rank)], x.name or "x"
    element = tensor(fresh_name(action.letter, names_in([x, y])), size, size, **{action.hypothesis: True})
    moved_text = action.text(str(element.name), name)
    try:
        moved = action.act(element, y)
    except ShapeError:
        raise ShapeError(
            f"f(x) is {y.brief()}, on which {element.brief()} cannot act: of an invariant function, state "
            f"assert_identity(f({moved_text}), f({name}))"
        ) from None
    claim = f"f({moved_text}) = {action.text(str(element.name), f'f({name})')}"
    demand(f"the equivariance {claim}", eq(f(action.act(element, x)), moved), given, budget, seed)


# --- by numbers ---


def _generic(x: Tensor, problem: Exception, f: Callable[[Any], Any], seed: int) -> Iterator[np.ndarray]:
    """Random arrays of the tensor at generic sizes, once with 3 rows or features; the problem, if f takes none."""
    if x.op is not variable:
        raise OperandError(
            f"f is no function of tensors ({_first_line(problem)}), and {described(x)} is none by name, of which "
            "arrays could be tried: give an array"
        ) from problem
    for k in range(_TRIALS):
        sizes = generic_sizes([x], seed + k)
        if k == 0 and sizes:
            sizes[next(iter(sizes))] = 3
        array = generic_arrays([x], sizes, np.random.default_rng([seed, k]))[x]
        if k == 0:
            try:
                f(array)
            except Exception:  # then it is the first problem that tells what is wrong with f
                raise problem from None
        yield array


def _try(f: Callable[[Any], Any], arrays: Iterable[Any], action: _Action, seed: int) -> None:
    """AssertionError where a random element of the group does not commute with f at one of the arrays."""
    __tracebackhide__ = True
    rng = np.random.default_rng(seed)
    for x in arrays:
        where = f"an array of shape {tuple(x.shape)}"
        plain = _of_numbers(called("f", f, [x], where))
        tolerance = TOLERANCES.get(str(x.dtype).rpartition(".")[2], TOLERANCES["float64"])
        for _ in range(_ELEMENTS):
            element = _element(action, x.shape[action.axis(len(x.shape))], rng)
            left = called("f", f, [_acted(action, element, x)], where)
            claim = f"f({action.text(action.letter, 'X')}) = {action.text(action.letter, 'f(X)')}"
            try:
                right = _acted(action, element, plain)
            except (ValueError, IndexError):
                raise ShapeError(
                    f"f(X) has shape {plain.shape}, on which a {action.hypothesis} matrix of size {len(element)} "
                    "cannot act: of an invariant function, compare f at both arrays"
                ) from None
            found = problems("f", left, [claim], [Wanted(right)], tolerance, [])
            if found:
                raise AssertionError(f"the equivariance fails at {where}, by numbers:\n  {found[0]}")


def _of_numbers(result: Any) -> np.ndarray:
    try:
        return as_array(result)
    except (TypeError, ValueError) as problem:
        raise OperandError(f"assert_equivariant compares arrays of real numbers, and f(X) is none: {problem}") from None


def _element(action: _Action, size: int, rng: np.random.Generator) -> np.ndarray:
    if action.on_rows:
        return np.eye(size)[np.roll(np.arange(size), 1) if size < 3 else rng.permutation(size)]
    return np.linalg.qr(rng.normal(size=(size, size)))[0]


def _acted(action: _Action, element: np.ndarray, x: Any) -> Any:
    """The element acting on an array of any library, in its dtype."""
    own = x.new_tensor(element) if hasattr(x, "new_tensor") else element.astype(x.dtype)
    if not len(x.shape):
        raise ValueError("a number has no rows")
    return own @ x if action.on_rows else x @ own


def _first_line(problem: Exception) -> str:
    return str(problem).partition("\n")[0]
