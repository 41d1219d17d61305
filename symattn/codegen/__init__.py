"""From tensors to NumPy functions."""

from .function import NumPyFunction, lambdify

__all__ = ["NumPyFunction", "lambdify"]
