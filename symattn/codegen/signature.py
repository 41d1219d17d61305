"""What is compared between one call of a compiled function and the next: all that decides whether arguments fit.

Shapes, types and classes of arrays decide every check but those of values. Arrays whose values need none (floating
ones for real tensors, booleans for binary ones, int64 for integers) are let in by the signature of a call that was let
in before; numbers are held against their declared signs each time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any

import numpy as np
import sympy

from ..core.node import Tensor
from .gate import DECLARED

_of_array: Callable[[Any], Hashable] = attrgetter("shape", "dtype", "__class__")


def signatures(
    arguments: Sequence[Tensor | sympy.Symbol], keywords: Mapping[str, sympy.Symbol]
) -> Callable[..., Hashable]:
    """What reads the signature of a call; it raises one of REFUSED where the gate has to look."""
    readers = list(map(_reader, arguments))
    if not keywords and all(reader is _of_array for reader in readers):
        return _of_arrays(len(arguments))
    named = {name: _reader(s) for name, s in keywords.items()}

    def signature(*arrays: Any, **given: Any) -> Hashable:
        positional = tuple(read(x) for read, x in zip(readers, arrays, strict=True))
        return positional, tuple((name, named[name](x)) for name, x in given.items())

    return signature


@lru_cache
def _of_arrays(count: int) -> Callable[..., Hashable]:
    """What reads the signature of so many arrays; written out, since a loop over them takes longer than small calls."""
    names = [f"x{k}" for k in range(count)]
    parts = "".join(f"{x}.shape, {x}.dtype, {x}.__class__, " for x in names)
    read: Callable[..., Hashable] = eval(f"lambda {', '.join(names)}: ({parts})")
    return read


def _reader(a: Tensor | sympy.Symbol) -> Callable[[Any], Hashable]:
    """What a signature holds of one argument; raises ValueError for what the gate has to look at."""
    if isinstance(a, Tensor):
        return _of_array if a.rank or a.kind != "real" else _of_number_or_array
    if a.is_integer:
        return _of_size
    return partial(_of_number, [holds for declared, holds in DECLARED.items() if getattr(a, f"is_{declared}")])


def _of_number_or_array(x: Any) -> Hashable:
    return float if x.__class__ is float else _of_array(x)


def _of_size(x: Any) -> Hashable:
    if x.__class__ is not int:
        raise ValueError
    return x


def _of_number(signs: Sequence[Callable[[float], bool]], x: Any) -> Hashable:
    if x.__class__ is not float or not all(holds(x) for holds in signs):
        raise ValueError
    return float


def needs_no_check(arguments: Sequence[Tensor | sympy.Symbol], given: Sequence[Any], admitted: Sequence[Any]) -> bool:
    """Whether all arrays of the shapes and types that were given may pass as they are."""
    return all(
        not isinstance(a, Tensor) or x.__class__ is float or (x.__class__ is np.ndarray and _passes(a, x, bound))
        for a, x, bound in zip(arguments, given, admitted, strict=True)
    )


def _passes(a: Tensor, x: np.ndarray, admitted: Any) -> bool:
    if a.kind == "real":
        return admitted is x and x.dtype.kind in "fc"
    return x.dtype == (np.bool_ if a.kind == "binary" else np.int64) and x.dtype.isnative
