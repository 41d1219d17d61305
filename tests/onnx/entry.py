"""How an operator of ONNX is written with symattn: one adapter an operator, from attributes and arrays to arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import symattn as sa

from .cases import Case


class Adapter(NamedTuple):
    """``run`` gives the outputs of a case by name, or more of them; ``module`` is where the package makes the cases."""

    module: str
    run: Callable[[Case], Mapping[str, np.ndarray]]


ADAPTERS: dict[str, Adapter] = {}


def adapter(operator: str, module: str) -> Callable[[Any], Any]:
    """Enter the function below as the adapter of an operator."""

    def entered(run: Any) -> Any:
        assert operator not in ADAPTERS
        ADAPTERS[operator] = Adapter(module, run)
        return run

    return entered


def tensor(name: str, rank: int, **hypotheses: bool) -> sa.Tensor:
    """A tensor with a symbolic size of its own on each axis, the same sizes for all of them."""
    return sa.tensor(name, *(sa.sizes(f"n{axis}") for axis in range(rank)), **hypotheses)
