"""Assertions for test suites: a claim is proved, or somebody's own function computes what an expression says.

A claim that does not hold is an AssertionError that prints the counterexample; a question that cannot be asked, such
as sides of different shapes, is an error of symattn.
"""

from .computed import assert_matches
from .proved import assert_gradient, assert_identity, assert_proved
from .symmetry import assert_equivariant

__all__ = ["assert_equivariant", "assert_gradient", "assert_identity", "assert_matches", "assert_proved"]
