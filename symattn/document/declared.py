"""Whether the values of an example have what is declared of a tensor: which entry speaks against it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core.node import Tensor
from ..errors import OperandError

_TOLERANCE = 1e-6
_Problem = str | None  # what speaks against a property, or nothing


def check_declared(x: Tensor, array: np.ndarray) -> None:
    """Values have the declared properties of their tensor; raises OperandError that names the property and an entry."""
    if (wrong := np.isnan(array)).any():
        raise OperandError(f"example has values for {x.brief()}, of which entry {_first(wrong)} is not a number")
    for said in x.params["hypotheses"]:
        if array.size and said in _PROBLEMS and (problem := _PROBLEMS[said](array)) is not None:
            raise OperandError(f"example has values for {x.brief()}, which is declared {said}, but {problem}")


def _first(wrong: np.ndarray) -> str:
    """The first entry that something is said of, as it is indexed."""
    return str([int(k) for k in np.argwhere(wrong)[0]])


def _entries(array: np.ndarray, wrong: np.ndarray) -> _Problem:
    if not wrong.any():
        return None
    return f"entry {_first(wrong)} is {array[tuple(np.argwhere(wrong)[0])]:g}"


def _of_binary(array: np.ndarray) -> _Problem:
    return _entries(array, (array != 0) & (array != 1))


def _of_integer(array: np.ndarray) -> _Problem:
    return _entries(array, ~np.isfinite(array) | (array != np.floor(array)))


def _of_positive(array: np.ndarray) -> _Problem:
    return _entries(array, ~(array > 0))


def _of_symmetric(array: np.ndarray) -> _Problem:
    across = np.swapaxes(array, -1, -2)
    wrong = ~np.isclose(array, across, rtol=_TOLERANCE, atol=0)
    return f"{_entries(array, wrong)}, and the one across from it {_at(across, wrong)}" if wrong.any() else None


def _of_orthogonal(array: np.ndarray) -> _Problem:
    product = np.swapaxes(array, -1, -2) @ array
    wrong = ~np.isclose(product, np.eye(array.shape[-1]), rtol=0, atol=_TOLERANCE)
    return f"in the product of its transpose and it {_entries(product, wrong)}" if wrong.any() else None


def _of_permutation(array: np.ndarray) -> _Problem:
    if (problem := _of_binary(array)) is not None:
        return problem
    for axis, line in ((-1, "row"), (-2, "column")):
        sums = array.sum(axis=axis)
        if (wrong := sums != 1).any():
            return f"{line} {_first(wrong)} has {_at(sums, wrong)} ones"
    return None


def _of_invertible(array: np.ndarray) -> _Problem:
    if not np.isfinite(array).all():
        return f"entry {_first(~np.isfinite(array))} is infinite"
    ranks = np.linalg.matrix_rank(array)
    size = array.shape[-1]
    return None if (ranks == size).all() else f"it has rank {int(np.min(ranks))} of {size}"


def _at(array: np.ndarray, wrong: np.ndarray) -> str:
    return f"{array[tuple(np.argwhere(wrong)[0])]:g}"


_PROBLEMS: dict[str, Callable[[np.ndarray], _Problem]] = {
    "binary": _of_binary,
    "integer": _of_integer,
    "positive": _of_positive,
    "symmetric": _of_symmetric,
    "orthogonal": _of_orthogonal,
    "permutation": _of_permutation,
    "invertible": _of_invertible,
}
