"""Linear forms: the coefficient of each base, such as a monomial or an index, and that of 1 for the constant."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import sympy

Form = Mapping[Any, Any]


@lru_cache(maxsize=8192)
def coefficients(e: Any) -> Form:
    """The number before each monomial of an expression, which is multiplied out."""
    return sympy.expand(e).as_coefficients_dict()
