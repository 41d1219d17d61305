"""From tensors to NumPy functions."""

from .. import language  # noqa: F401  (operators and printing)
from .function import NumPyFunction, lambdify

__all__ = ["NumPyFunction", "lambdify"]
