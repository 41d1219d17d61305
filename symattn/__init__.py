"""symattn: attention mathematics, derived, checked and run.

``import symattn as sa`` imports neither SymPy nor NumPy; each name loads what it needs when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "core.sizes": "sizes",
    "ops.leaves": "tensor let from_index eye ones zeros",
    "ops.logic": "where equal",
    "ops.pointwise": (
        "exp log log1p tanh sigmoid softplus relu gelu silu sqrt rsqrt sin cos abs sign erf floor maximum minimum mod "
        "elementwise"
    ),
    "ops.rows": "sum mean max min softmax logsumexp",
    "ops.layout": "concat split_axis merge_axes moveaxis repeat",
    "ops.composed": "broadcast_to reshape transpose matmul pad clip expm1",
    "ops.contraction": "einsum diag outer trace",
    "ops.gather": "take shift flip tile",
    "ops.scans": "cumsum tril triu",
    "ops.inverse": "inv",
    "ops.sparse": "sparsemax entmax15",
    "ops.opaque": "unknown stop_gradient",
    "graph.entries": "entries",
    "calculus.gradient": "gradient jvp",
    "recurrence.loop": "scan",
    "recurrence.scans": "scans",
    "calculus.jacobians": "jacobian hessian hvp",
    "codegen": "lambdify",
    "printing.asked": "latex",
    "sympy_bridge": "from_sympy",
    "reading.latex.read": "parse_latex",
    "document.derivation": "Derivation",
    "checking.diagnosis": "diagnose",
    "checking.report": "check_notes",
    "declare.operation": "operation",
    "declare.verify": "verify",
    "probability.laws": "iid iid_pair normal sphere",
    "probability.moments": "expectation variance covariance moments",
    "proof.claims": "eq le lt independent",
    "proof.engine": "prove",
    "proof.equivariance": "equivariance",
    "proof.induction.plan": "induction",
    "core.node": "Tensor",
    "errors": "SymattnError ShapeError NamingError OperandError NoRuleError EvaluationError AbsentError ParseError "
    "FileError",
}
_MODULES = ("attention", "plot")  # reached as they are: sa.attention.multi_head
_MODULE_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted([*_MODULE_OF, *_MODULES])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("symattn")  # slow to import, seldom asked for
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'symattn' has no name {name!r}{_suggestion(name)}")
    home = _MODULE_OF[name]
    if home != "errors":
        import_module(".language", __name__)  # operators and printing come with any tensor
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def _suggestion(name: str) -> str:
    if name.startswith("_"):  # what Python's own machinery asks for
        return ""
    from difflib import get_close_matches  # for a message only

    from . import attention
    from .core.elsewhere import WRITTEN

    if name in attention.__all__:
        return f"; did you mean 'sa.attention.{name}'?"
    if name in WRITTEN:
        return f": write {WRITTEN[name]}"
    close = get_close_matches(name, __all__, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
