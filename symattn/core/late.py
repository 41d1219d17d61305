"""The doors that open upwards, one closed table: what lower layers need of upper ones, found when it is asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

_HOMES = {
    "record": "ops",  # a record of an operation is pickled by its name
    "scan_op": "recurrence.record",  # which is above the calculus, and so is no record of ``ops``
    "placeholder_op": "ops.placeholders",
    "attach": "language",  # operators and printing, in a process that has only unpickled
    "as_tensor": "ops.leaves",  # a MatrixSymbol stands for its tensor, also in ``subs``
    "from_sympy": "sympy_bridge",  # matrix expressions as operands
    "broadcast_to": "ops.broadcasting",  # a number with new axes is repeated; copies lie above indexing
    "check_function": "codegen.check",  # which compiles functions itself
    "scalar_latex": "printing.scalars",  # SymPy's printer asks our classes for LaTeX
    "shown": "document.notebook",  # in a notebook, as a part of a page
    "Derivation": "document.derivation",  # of an answer: documents write answers, among other things
}


@cache
def late(name: str) -> Any:
    """What has that name in an upper layer."""
    return getattr(import_module(f"symattn.{_HOMES[name]}"), name)
