"""What is said of a recurrence to prove a claim by induction: the closed forms of its states and outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.arguments import check_takes, each_of
from ...core.node import Tensor
from ...errors import OperandError, described
from ...ops.leaves import as_tensor

Forms = tuple[Tensor | None, ...]  # None where nothing is said of a state or an output
FormsOf = Forms | Callable[..., Any]  # of free states and of sequences


@dataclass(frozen=True, eq=False)
class Induction:
    """The closed forms of one recurrence, which ``sa.prove`` takes as ``by``; none where the claim shows them."""

    final: FormsOf = ()
    outputs: FormsOf = ()
    free: tuple[int, ...] = ()
    inner: tuple[Induction, ...] = ()


def induction(final: Any = (), outputs: Any = (), free: Any = (), inner: Any = ()) -> Induction:
    """The invariant by which ``sa.prove`` proves a claim about a recurrence, for every number of steps.

    ``final`` holds the closed form of each state after T steps, and ``outputs`` those of the outputs that the claim
    reads (None for another): a tensor or a tuple. A function in their place takes the sequences, and its closed form
    is proved for any sequences. Of a loop in ``reverse``, sequences and outputs are in the order in which the loop
    takes and gives them, so that a running sum from the end is ``sa.cumsum(x, reverse=True)``. ``free`` lists states
    by whose last value the others are given, as the running maximum of online softmax; ``final`` is then a function of
    these, before the sequences. ``inner`` holds the inductions for recurrences within a step. Raises OperandError for
    what is none of this.

    >>> import symattn as sa
    >>> T, d, e = sa.sizes("T d e")
    >>> Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", T, d), sa.tensor("V", T, e)
    >>> def step(S, x):
    ...     S = S + sa.outer(x[1], x[2])
    ...     return S, x[0] @ S
    >>> S, O = sa.scan(step, sa.zeros(d, e), (Q, K, V))
    >>> Y = sa.tril(Q @ K.T) @ V
    >>> sa.prove(O, Y, by=sa.induction(final=K.T @ V, outputs=Y)).status
    'proved'
    """
    states = tuple(each_of(free)) if isinstance(free, (tuple, list)) else (free,)
    for k in states:
        if not isinstance(k, int) or isinstance(k, bool) or k < 0:
            raise OperandError(f"induction: free holds numbers of states, from 0 on, not {described(k)}")
    if states and not callable(final):
        raise OperandError("induction: with free states, final is a function of them and of the sequences")
    return Induction(_forms(final), _forms(outputs), states, plans(inner))


def plans(by: Any) -> tuple[Induction, ...]:
    """One induction, or several, one for each recurrence."""
    several = tuple(by) if isinstance(by, (tuple, list)) else () if by is None else (by,)
    for plan in several:
        if not isinstance(plan, Induction):
            raise OperandError(f"an induction is made by sa.induction(final=, outputs=), not {described(plan)}")
    return several


def listed(forms: Any) -> tuple[Any, ...]:
    """A closed form, or several."""
    return tuple(forms) if isinstance(forms, (tuple, list)) else (forms,)


def _forms(forms: Any) -> FormsOf:
    if callable(forms) and not isinstance(forms, Tensor):
        return forms
    return tuple(None if x is None else as_tensor(x) for x in listed(forms))


def called(forms: FormsOf, arguments: Sequence[Tensor]) -> Forms:
    """The closed forms, of these free states and sequences where they are a function of them."""
    if callable(forms):
        check_takes("a closed form of an induction", forms, len(arguments))
        return tuple(None if x is None else as_tensor(x) for x in listed(forms(*arguments)))
    return forms
