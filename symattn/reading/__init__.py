"""Reading text: NumPy-like expressions and shapes, by a whitelist; nothing is ever evaluated as Python."""

from __future__ import annotations

from ..language import attach  # noqa: F401  (operators and printing come with any tensor)
from .expressions import parse_shape as parse_shape
from .expressions import read as read
