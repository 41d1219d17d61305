"""SymPy's matrix expressions in (``from_sympy``), out (``to_sympy``), and written out entry by entry."""

from .explicit import as_explicit
from .incoming import from_sympy
from .outgoing import TensorExpr, TensorScalar, to_sympy

__all__ = ["TensorExpr", "TensorScalar", "as_explicit", "from_sympy", "to_sympy"]
