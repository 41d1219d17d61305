"""Assertions that something is proved: a claim, an identity, a gradient."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..calculus.gradient import gradient
from ..core.arguments import each_of
from ..core.node import Tensor
from ..errors import OperandError, described, listed
from ..printing.matrix import text
from ..proof.claims import Claim, Independence, eq
from ..proof.engine import prove


def assert_proved(
    claim: Any, given: Iterable[Any] = (), *, by: Any = None, budget: float = 10.0, seed: int = 0
) -> None:
    """Assert that a claim made by ``sa.eq``, ``sa.le``, ``sa.lt`` or ``sa.independent`` is proved.

    ``given`` are hypotheses, ``by`` the induction for a recurrence, ``budget`` the time in seconds and ``seed`` that
    of the search for a counterexample, as in ``sa.prove``. Raises AssertionError with the counterexample if the claim
    is refuted, and with what is left open if it is neither proved nor refuted; OperandError for what is no claim.

    >>> import symattn as sa
    >>> from symattn.testing import assert_proved
    >>> Z, x = sa.tensor("Z", "T S"), sa.tensor("x", "T")
    >>> assert_proved(sa.le(sa.softmax(Z), 1))
    >>> assert_proved(sa.le(0, x * sa.exp(x)), given=[sa.le(0, x)])
    """
    __tracebackhide__ = True
    if not isinstance(claim, (Claim, Independence)):
        raise OperandError(
            f"assert_proved takes a claim such as sa.eq(a, b), sa.le(a, b) or sa.independent(a, x), "
            f"not {described(claim)}"
        )
    demand(f"the claim {claim}", claim, given, budget, seed, by)


def assert_identity(
    lhs: Any, rhs: Any, given: Iterable[Any] = (), *, by: Any = None, budget: float = 10.0, seed: int = 0
) -> None:
    """Assert that ``lhs = rhs`` is proved, entry by entry, for all sizes and all values of the tensors.

    Hypotheses, the induction for a recurrence, time and seed are those of ``sa.prove``. Raises AssertionError with
    the counterexample if the identity is refuted, and with what is left open if it is neither proved nor refuted;
    ShapeError where the shapes differ.

    >>> import symattn as sa
    >>> from symattn.testing import assert_identity
    >>> Z, b = sa.tensor("Z", "T S"), sa.tensor("b", "T 1")
    >>> assert_identity(sa.softmax(Z + b), sa.softmax(Z))
    >>> x = sa.tensor("x", "T")
    >>> total, _ = sa.scan(lambda s, u: (s + u, None), 0, x)
    >>> assert_identity(total / x.shape[0], sa.mean(x), by=sa.induction(final=sa.sum(x)))
    """
    __tracebackhide__ = True
    claim = eq(lhs, rhs)
    demand(f"the identity {claim}", claim, given, budget, seed, by)


def assert_gradient(
    expr: Any, wrt: Any, claimed: Any, given: Iterable[Any] = (), *, budget: float = 10.0, seed: int = 0
) -> None:
    """Assert that a claimed gradient is proved equal to ``sa.gradient(expr, wrt)``.

    ``wrt`` is a tensor with one claimed gradient, or a list with one for each, in order or as ``{tensor: claimed}``.
    A claim is written in the cotangent, which ``sa.gradient(expr, wrt).cotangent`` names (``dO`` for an output
    named O); a function as ``claimed`` is called with it. In a counterexample the gradient stands left, the claim
    right. Hypotheses, time (for each claim) and seed are those of ``sa.prove``. Raises as ``assert_identity``, and
    OperandError if the claims do not go with ``wrt``.

    >>> import symattn as sa
    >>> from symattn.testing import assert_gradient
    >>> X, W = sa.tensor("X", "T d"), sa.tensor("W", "d e")
    >>> assert_gradient(X @ W, X, lambda dY: dY @ W.T)
    >>> assert_gradient(X @ W, [X, W], lambda dY: {X: dY @ W.T, W: X.T @ dY})
    """
    __tracebackhide__ = True
    several = isinstance(wrt, (list, tuple))
    variables, hypotheses = list(wrt) if several else [wrt], each_of(given)
    g = gradient(expr, variables)
    if callable(claimed) and not isinstance(claimed, Tensor):
        claimed = claimed(g.cotangent)
    output = ", ".join(map(_written, g.cotangents))
    for x, right in _paired(variables, claimed, several):
        what = f"the claimed gradient of {output} with respect to {described(x)}, {_written(right)},"
        demand(what, eq(g[x], right), hypotheses, budget, seed)


def _written(x: Any) -> str:
    """The name and shape of what has a name, else the whole expression."""
    return x.brief() if isinstance(x, Tensor) and x.name else text(x) if isinstance(x, Tensor) else str(x)


def _paired(variables: Sequence[Any], claimed: Any, several: bool) -> list[tuple[Any, Any]]:
    """Each variable with the gradient that is claimed for it."""
    if isinstance(claimed, Mapping):
        pairs = list(claimed.items())
    elif isinstance(claimed, (list, tuple)) and several:
        pairs = list(zip(variables, claimed, strict=False)) if len(claimed) == len(variables) else []
    else:
        pairs = [] if several and len(variables) > 1 else [(variables[0], claimed)]
    if {x for x, _ in pairs} != set(variables):
        raise OperandError(
            f"assert_gradient takes one claimed gradient for each of {listed(variables)}: give a "
            "list in that order, or {tensor: claimed}"
        )
    return pairs


def demand(
    what: str, claim: Claim | Independence, given: Iterable[Any], budget: float, seed: int, by: Any = None
) -> None:
    """AssertionError with the counterexample, or with what is left open, unless the claim is proved."""
    __tracebackhide__ = True
    verdict = prove(claim, given=each_of(given), by=by, budget=budget, seed=seed)
    if verdict.status == "refuted":
        raise AssertionError(f"{what} is refuted\n{verdict.counterexample}")
    if not verdict:
        raise AssertionError(f"{what} is not proved, and nothing was found against it\n{verdict}")
