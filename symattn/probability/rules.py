"""The rules for expectations of what is no polynomial of random entries, in the order in which they are tried."""

from __future__ import annotations

from .cases import CASES, PRODUCT
from .gaussian import GAUSSIAN
from .radial import RADIAL
from .rule import Rule
from .symmetry import SIGNS

EXPECTATIONS: tuple[Rule, ...] = (PRODUCT, GAUSSIAN, RADIAL, CASES, SIGNS)
