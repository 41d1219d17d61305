"""What a function of arrays gave beside what is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..checking.arrays import TOLERANCES, as_array, floating, scale_of
from ..errors import OperandError, described


class Wanted(NamedTuple):
    """An array that is right, and how far rounding of the arguments may move it, beside the tolerance."""

    value: np.ndarray
    moved: float = 0.0


def dtype_name(dtype: Any) -> str:
    """``float32`` of a name, a NumPy dtype or type, or a dtype of PyTorch or JAX."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or getattr(dtype, "name", None)
    name = described(dtype).rpartition(".")[2] if name is None else name  # torch.float32
    if not isinstance(name, str) or name not in TOLERANCES:
        raise OperandError(f"assert_matches knows the dtypes {', '.join(TOLERANCES)}, not {described(dtype)}")
    return str(name)


def problems(
    what: str,
    result: Any,
    labels: Sequence[str],
    wanted: Sequence[Wanted | None],
    tolerance: float,
    arguments: Sequence[Any],
) -> list[str]:
    """A line for each result that is not what is wanted; nothing is asked of a result that no value is wanted for."""
    alone = len(labels) == 1 and not (isinstance(result, (tuple, list)) and len(result) == 1)
    results = [result] if alone and not isinstance(result, tuple) else result
    if not isinstance(results, (tuple, list)) or len(results) != len(labels):
        count = f"{len(results)} results" if isinstance(results, (tuple, list)) else f"one {type(results).__name__}"
        return [f"{what} gave {count}, not {len(labels)}: {', '.join(labels)}"]
    dtypes = {name for x in arguments if (name := floating(x)) is not None}
    lines = []
    for label, got, want in zip(labels, results, wanted, strict=True):
        problem = None if want is None else _problem(got, want, tolerance) or _other_dtype(got, dtypes)
        lines += [f"{label}: {problem}"] if problem else []
    return lines


def _other_dtype(result: Any, dtypes: set[str]) -> str | None:
    """That a result has another floating dtype than the arguments, which have one."""
    found = floating(result)
    if found is None or len(dtypes) != 1 or found in dtypes:
        return None
    (wanted,) = dtypes
    return f"dtype {found}, but the arguments have {wanted}"


def _problem(result: Any, want: Wanted, tolerance: float) -> str | None:
    """What is wrong with the values of one result, if anything is."""
    right = want.value
    scale = scale_of(right)
    allowed = tolerance + want.moved / scale
    if result is None:
        return None if np.abs(right).max() <= allowed * scale else "None was given, but it is not zero"
    try:
        got = as_array(result)
    except (TypeError, ValueError) as problem:
        return f"a {type(result).__name__} is no array of real numbers: {problem}"
    if got.shape != right.shape:
        return f"shape {got.shape}, not {right.shape}"
    with np.errstate(all="ignore"):
        error = np.abs(got - right) / scale
    wrong = np.argwhere(~(error <= allowed))  # so that what is not finite is wrong
    if not len(wrong):
        return None
    place = tuple(int(i) for i in wrong[0])
    broken = int((~np.isfinite(got)).sum())
    size = f"{broken} entries are not finite" if broken else f"largest error {error.max():.2g} of the largest entry"
    entry = f"first differing entry {list(place)} is {got[place]:.8g}, but {right[place]:.8g} is right"
    return f"{size}, tolerance {allowed:.0e}; {len(wrong)} of {right.size} entries differ; {entry}"
