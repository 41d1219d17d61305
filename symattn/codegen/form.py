"""Operations of generated code alone: never differentiated, printed or proved about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.operation import Operation
from ..ops.notation import call


def form(name: str, shape: Callable[..., Any], numpy: Callable[..., str]) -> Operation:
    """The record of a form: its shape and its NumPy."""

    def entry(read: Any, index: Any, node: Any) -> Any:
        raise NotImplementedError(f"{name} is a form of generated code, which has no entries of its own")

    return Operation(
        name,
        shape=shape,
        entry=entry,
        vjp=None,
        jvp=None,
        numpy=numpy,
        notation=lambda p, node: call(p, name, node),
        reason="a form of generated code",
        minus_infinity="absorbed",
    )
