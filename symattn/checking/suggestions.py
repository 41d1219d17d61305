"""What was probably meant by a formula that is false: an edit of it that is proved true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..codegen import lambdify
from ..codegen.sampling import generic_arrays, generic_scalars, generic_sizes
from ..core.naming import in_python
from ..core.node import Tensor, topological
from ..errors import EvaluationError
from ..ops.leaves import variable
from ..proof.engine import prove
from .diagnosis import Compared, diagnosed
from .edits import Edited

_MOST = 4  # edits that are tried by the prover


def intended(left: Tensor, right: Tensor, others: Sequence[Tensor] = (), given: Sequence[Any] = ()) -> Iterator[Edited]:
    """Right sides that differ from the one written in one place, and that the left side is proved to equal.

    ``others`` are declared tensors that the formula does not mention, such as the projection that was meant; ``given``
    is what holds besides. The words of an edit say what is wrong with the formula as it is written, "with the factors
    of A @ B swapped", once its right side is taken for the truth.

    >>> import sympy, symattn as sa
    >>> X, W_K, W_V = sa.tensor("X", "n d"), sa.tensor("W_K", "d k"), sa.tensor("W_V", "d k")
    >>> [edit] = intended(X @ W_V, X @ W_K, others=[W_V])
    >>> edit.words, str(edit.tensor)
    ('with W_V in place of W_K', 'X @ W_V')
    """
    try:
        arrays, value = _sampled(left, [left, right, *others])
    except (EvaluationError, np.linalg.LinAlgError):  # no sizes, or no values, at which the two can be compared
        return
    diagnosis = diagnosed(Compared({"right": right}, {"right": value}, arrays, others))
    for mistake in diagnosis.mistakes[:_MOST]:
        if prove(left, mistake.made["right"], given=given):
            yield Edited(mistake.words, mistake.made["right"])


def _sampled(left: Tensor, roots: Sequence[Tensor]) -> tuple[dict[str, Any], Any]:
    """Arrays and numbers for all that formulas are made of, by name, and the value of the left side there."""
    rng, order = np.random.default_rng(0), topological(roots)
    sizes = generic_sizes(roots)
    arrays = {str(x.name): array for x, array in generic_arrays(order, sizes, rng).items()}
    numbers = {s.name: value for s, value in {**sizes, **generic_scalars(roots, rng)}.items()}
    leaves = [x for x in order if x.op is variable]
    f = lambdify(leaves, left)
    keywords = {in_python(s.name): numbers[s.name] for s in f.takes.keywords}
    with np.errstate(all="ignore"):
        value = f(*(arrays[str(x.name)] for x in leaves), **keywords)
    return {**arrays, **numbers}, value
