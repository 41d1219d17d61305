"""The compiled function: binding arrays to arguments, with errors that name what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import sympy

from ..calculus.result import Gradient
from ..core.arguments import one_of, whole_number
from ..core.node import Tensor
from ..errors import EvaluationError, OperandError
from ..ops.leaves import as_tensor
from .call.gate import REFUSED, admitted
from .call.signature import needs_no_check, signatures
from .compiled import Compiled
from .differentiable import ELSEWHERE
from .forms.described import Description, described, told_sizes
from .forms.planned import InBlocks
from .forms.straight import Signature, Straight, bytes_kept

FAILED = (ArithmeticError, IndexError, MemoryError, TypeError, ValueError)  # what code raises on values
_MOST = 256  # signatures that are remembered
_MOST_THREADS = 1024
_SMALL = 2**16  # bytes of arguments, and of what is computed before a call, for which a call counts


def lambdify(arguments: Any, outputs: Any, *, backend: str = "numpy", threads: int = 1) -> Any:
    """A function of the arguments in NumPy, PyTorch or JAX, from a tensor, a gradient, or several of them.

    ``arguments`` are named tensors and scalar symbols, in order. Axes left of an argument's declared rank are loop
    axes, as in NumPy's generalized ufuncs: an output has those of the arguments that it reads and of those that no
    output reads, or of all if it reads none. Sizes come from the arrays; what cannot be read off a shape is a keyword.
    A tensor gives an array; a list or a gradient a flat tuple, a gradient in its own order. A gradient with respect
    to an argument without loop axes is summed over them. ``.source`` is the code and ``.check()`` holds it against
    entries and finite differences. ``threads`` share the places of the loop axes of large calls, which pays where each
    matrix product keeps to one thread (``OPENBLAS_NUM_THREADS=1``, set before NumPy is imported); results are the same
    in each run. Raises OperandError if an output needs a tensor that is no argument, or for another number of threads.

    >>> import numpy as np, symattn as sa
    >>> Q, K = sa.tensor("Q", "T d"), sa.tensor("K", "S d")
    >>> f = sa.lambdify([Q, K], sa.softmax(Q @ K.T))
    >>> f(np.ones((2, 3)), np.ones((4, 3))).shape
    (2, 4)
    >>> f(np.ones((5, 2, 3)), np.ones((4, 3))).shape
    (5, 2, 4)
    """
    listed = list(arguments) if isinstance(arguments, (list, tuple)) else [arguments]
    several = isinstance(outputs, (list, tuple, Gradient))
    flat = _flat(outputs)
    if not flat:
        raise OperandError("lambdify was given no output")
    used = whole_number("lambdify", "threads", threads, 1, _MOST_THREADS)
    if one_of("lambdify", "backend", backend, "numpy", *ELSEWHERE) == "numpy":
        return NumPyFunction(listed, flat, several, used)
    if used > 1:
        raise OperandError(f"lambdify: threads are of the NumPy code; {backend} has its own")
    return ELSEWHERE[backend](listed, flat, several)


def _flat(outputs: Any) -> list[Tensor]:
    if isinstance(outputs, Gradient):
        return list(outputs.values())
    if isinstance(outputs, (list, tuple)):
        return [y for part in outputs for y in _flat(part)]
    return [as_tensor(outputs)]


class NumPyFunction(Compiled):
    """A function made by ``lambdify``; call it on arrays."""

    def __init__(self, arguments: Sequence[Any], outputs: Sequence[Tensor], several: bool, threads: int = 1) -> None:
        super().__init__(arguments, outputs, several)
        self.threads = threads
        self._straight = Straight(self._text[1], self._namespace, [not y.rank for y in self.graph.outputs])
        self._in_blocks = InBlocks(self.graph, self.takes, threads)
        self._signature = signatures(self.takes.arguments, self.by_keyword())
        self._known: dict[Hashable, Callable[..., Any]] = {}

    def __reduce__(self) -> Any:
        return type(self), (self.takes.arguments, self.outputs, self.several, self.threads)

    def plan(self, **sizes: int) -> Description:
        """How large calls are computed: what is done block by block, kept, or done again, and the memory that takes.

        Sizes are given by name, and usual ones are taken for the others; small calls are computed straight.

        >>> import symattn as sa
        >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
        >>> f = sa.lambdify([Q, K, V], sa.let("O", sa.softmax(Q @ K.T) @ V))
        >>> print(f.plan(T=4096, S=4096))
        At T = 4096, d = 64, S = 4096, e = 64, at each place of the loop axes:
        1. T in blocks of 128: 10 values; written O[T, e].
        Beside arguments and outputs this takes 2.0 MiB in float32.
        """
        known = told_sizes(self.takes, sizes)
        return described(self._in_blocks.at(known), known)

    def __call__(self, /, *arrays: Any, **keywords: Any) -> Any:
        try:
            known = self._known.get(self._signature(*arrays, **keywords))
        except REFUSED:  # of what is no array, or of a number that the gate has to see
            known = None
        if known is None:
            return self._first(arrays, keywords)
        try:
            return known(*arrays, **keywords)
        except np.linalg.LinAlgError:
            raise  # NumPy's own, which names the matrix
        except FAILED as problem:
            raise EvaluationError(f"the compiled code failed on these values: {problem}") from problem

    def _first(self, arrays: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
        """The first call of its signature, with all checks; later ones need none where values need none."""
        self._check_number(arrays)
        bound, narrow = admitted(self.takes.arguments, arrays)
        scalars = self.binding.sizes(bound, keywords)
        self._check_loops(bound)
        given = {name: scalars[s] for s, name in self.keywords.items()}
        try:
            run = self._run_of(bound, scalars)
            result = (run or self._run)(*bound, **given)
        except np.linalg.LinAlgError:
            raise
        except FAILED as problem:
            raise EvaluationError(f"the compiled code failed on these values: {problem}") from problem
        if narrow is not None:
            result = tuple(map(partial(_narrowed, dtype=narrow), result)) if self.several else _narrowed(result, narrow)
        elif needs_no_check(self.takes.arguments, arrays, bound, self.by_keyword(), keywords):
            sizes = {name: given[name] for s, name in self.keywords.items() if s.is_integer}
            self._remember(arrays, keywords, sizes, run)
        return result

    def _remember(
        self,
        arrays: tuple[Any, ...],
        keywords: Mapping[str, Any],
        sizes: Mapping[str, int],
        run: Callable[..., Any] | None,
    ) -> None:
        """From now on this signature is known; the second call of it chooses the function for later ones."""
        try:
            seen = self._signature(*arrays, **keywords)
        except REFUSED:  # as for a size that was told, though the arrays have it
            return

        def second(*arrays: Any, **keywords: Any) -> Any:
            chosen = self._chosen(arrays, keywords, sizes) if run is None else partial(run, **sizes)
            function = self._known[seen] = chosen
            return function(*arrays, **keywords)

        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[seen] = second

    def _chosen(
        self, arrays: Sequence[Any], keywords: Mapping[str, Any], sizes: Mapping[str, int]
    ) -> Callable[..., Any]:
        """The function for arrays of these shapes and types."""
        if sum(x.nbytes for x in arrays if isinstance(x, np.ndarray)) <= _SMALL:
            made = self._small(arrays, sizes)
            if bytes_kept(made) <= _SMALL:
                return partial(_without, sizes, made) if sizes.keys() & keywords else made
        return partial(self._run, **sizes)

    def _small(self, arrays: Sequence[Any], sizes: Mapping[str, int]) -> Callable[..., Any]:
        """The function for small arrays of these shapes and types."""
        rows = list(zip(self.takes.arguments, arrays, strict=True))
        real = [x for a, x in rows if isinstance(a, Tensor) and a.kind == "real"]
        signature = Signature([np.shape(x) for x in arrays], np.result_type(*real, 1.0), sizes)
        loops = {np.shape(x)[: np.ndim(x) - a.rank] for a, x in rows if isinstance(a, Tensor)}
        return self._straight.made(signature, len(loops) <= 1)

    def _run_of(self, arrays: Sequence[Any], known: Mapping[sympy.Symbol, Any]) -> Callable[..., Any] | None:
        """What computes the results for such arrays in blocks, where these pay."""
        blocked = self._in_blocks.function(arrays, known)
        return None if blocked is None else partial(self._run_in_blocks, blocked)

    def _run_in_blocks(self, blocked: Callable[..., Any], /, *arrays: Any, **given: Any) -> Any:
        try:
            results = blocked(*arrays, **given)
        except FAILED:  # which the other says by its own name
            results = None
        if results is None:
            return self._run(*arrays, **given)
        return results if self.several else results[0]

    def _run(self, /, *arrays: Any, **given: Any) -> Any:
        """The results for what fits, which may be written to without changing an argument or another result."""
        result = self._function(*arrays, **given)
        owned: list[Any] = []
        for r in result if self.several else (result,):
            owned.append(_owned(r, [*arrays, *owned]))
        return tuple(owned) if self.several else owned[0]


def _without(sizes: Mapping[str, int], function: Callable[..., Any], /, *arrays: Any, **keywords: Any) -> Any:
    return function(*arrays, **{name: x for name, x in keywords.items() if name not in sizes})


def _narrowed(x: Any, dtype: Any) -> Any:
    return x.astype(dtype) if x.dtype.kind == "f" else x


def _owned(result: Any, others: Sequence[Any]) -> Any:
    """A result that may be written to without changing an argument or another result."""
    x = np.asarray(result)
    if x.base is None and x.flags.writeable:
        shared = any(x is a for a in others)
    else:
        shared = not x.flags.writeable or any(isinstance(a, np.ndarray) and np.may_share_memory(x, a) for a in others)
    return x.copy() if shared else result if isinstance(result, (np.ndarray, np.generic)) else x[()]
