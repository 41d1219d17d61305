"""What is compared between one call of a compiled function and the next: all that decides whether arguments fit.

Shapes, types and classes of arrays decide every check but those of values. Arrays whose values need none (floating
ones for real tensors, booleans for binary ones, int64 for integers) are let in by the signature of a call that was let
in before; numbers are held against their declared signs each time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import sympy

from ...core.naming import new_name
from ...core.node import Tensor
from .gate import DECLARED

Argument: TypeAlias = Tensor | sympy.Symbol


def signatures(arguments: Sequence[Argument], keywords: Mapping[str, sympy.Symbol]) -> Callable[..., Hashable]:
    """What reads the signature of a call; it raises one of REFUSED where the gate has to look.

    It is written out as text, for a loop over the arguments takes longer than the rest of a small call. A number of
    the wrong sign gives a signature that no call has had.
    """
    taken, namespace = {*keywords}, dict[str, Any]()
    names = [new_name("x", taken) for _ in arguments]
    parts = [_part(a, name, taken, namespace) for a, name in [*zip(arguments, names, strict=True)]]
    parts += [_part(s, name, taken, namespace) for name, s in keywords.items()]
    optional = ", ".join(f"{name}=None" for name in keywords)
    given = ", ".join([*names, *(["/"] if names else []), *(["*", optional] if optional else [])])
    read: Callable[..., Hashable] = eval(f"lambda {given}: ({''.join(parts)})", namespace)
    return read


def _part(a: Argument, x: str, taken: set[str], namespace: dict[str, Any]) -> str:
    """The text of what a signature holds of one argument."""
    if isinstance(a, Tensor):
        return f"{x}.shape, {x}.dtype, {x}.__class__, "
    if a.is_integer:
        return f"{x}.__class__, {x}, "
    signs = []
    for declared, holds in DECLARED.items():
        if getattr(a, f"is_{declared}"):
            signs.append(new_name(declared, taken))
            namespace[signs[-1]] = holds
    holding = " and ".join(f"{sign}({x})" for sign in signs)
    return f"{x}.__class__ if {holding} else None, " if signs else f"{x}.__class__, "


def needs_no_check(
    arguments: Sequence[Argument],
    given: Sequence[Any],
    admitted: Sequence[Any],
    keywords: Mapping[str, sympy.Symbol],
    by_name: Mapping[str, Any],
) -> bool:
    """Whether all that has this signature may pass as it is."""
    numbers = ((keywords[name], x) for name, x in by_name.items() if name in keywords)
    return all(map(_passes, arguments, given, admitted)) and all(_passes(s, x, x) for s, x in numbers)


def _passes(a: Argument, x: Any, admitted: Any) -> bool:
    if not isinstance(a, Tensor):
        return x.__class__ is (int if a.is_integer else float)
    if x.__class__ is not np.ndarray:
        return False  # for a tensor of rank 0 a number is made an array of, which code may give axes
    if a.kind == "real":
        return admitted is x and x.dtype.kind in "fc"
    return x.dtype == (np.bool_ if a.kind == "binary" else np.int64) and x.dtype.isnative
