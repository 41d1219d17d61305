"""What the step of a loop is written in: its state, an element of a sequence, what stays. No claim is about them.

Their record is none of the registry: a placeholder is no tensor that anybody holds once the step is written.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..core.boxes import Code, Name, Number, Script
from ..core.node import Tensor, check_open
from ..core.operation import Operation
from ..errors import OperandError
from .leaves import FLAT
from .notation import Binding, Written


def _without_value(*given: Any) -> NoReturn:
    for x in given:
        if isinstance(x, Tensor):
            check_open(x)
    raise OperandError("a state or an element of sa.scan has no value of its own: it stands for one within its step")


def _notation(p: Any, node: Tensor) -> Written:
    role, number = node.params["role"], node.params["number"]
    if p.code:
        return Code(f"{role}[{number}]"), Binding.ATOM
    return Script(Name(role), Number(str(number))), Binding.ATOM


placeholder_op = Operation(
    "placeholder",
    shape=lambda role, number, shape, kind, tracing=None, infinite=False: shape,
    entry=_without_value,
    numpy=_without_value,
    notation=_notation,
    reason="a state of a recurrence",
    kind=lambda role, number, shape, kind, tracing=None, infinite=False: kind,
    minus_infinity=lambda role, number, shape, kind, tracing=None, infinite=False: infinite,
    **FLAT,
)
