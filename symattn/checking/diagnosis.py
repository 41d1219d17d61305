"""Which known mistake explains arrays that are not what a formula gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Any

import numpy as np
import sympy

from ..calculus.result import Gradient
from ..codegen import lambdify
from ..core.arguments import each_of
from ..core.naming import in_python
from ..core.node import Tensor
from ..errors import EvaluationError, OperandError, described
from ..graph.names import displayed_names
from ..ops.leaves import as_tensor, computed, cotangent_op, variable
from .arrays import TOLERANCES, as_array, checked_tolerance, floating, scale_of
from .equations import Candidate, Equations

_AT_ONCE = 48  # edited formulas that are compiled together, so that what they share is computed once


@dataclass(frozen=True)
class Mistake:
    """One known mistake: how ``made`` is written with it, and the largest error that it leaves.

    ``places`` are the names of what is written differently, ``of`` those of the arrays that it explains; errors are
    in units of the largest entry.
    """

    words: str
    places: tuple[str, ...]
    of: tuple[str, ...]
    error: float
    made: Mapping[str, Tensor]

    def __str__(self) -> str:
        is_right = "are the right ones" if len(self.places) > 1 else "is the right one"
        followed = [name for name in self.of if name not in self.places]
        follow = f"; {_named(followed)} {'follow' if len(followed) > 1 else 'follows'}" if followed else ""
        return f"{_named(self.places)} {is_right} {self.words}{follow}"


@dataclass(frozen=True)
class Diagnosis:
    """What is right, what is wrong and by how much, and which known mistakes explain it.

    Of several mistakes that give the same arrays the first is the one written nearest to them; it is the one printed.
    """

    right: tuple[str, ...]
    wrong: Mapping[str, float]
    mistakes: tuple[Mistake, ...]
    unexplained: tuple[str, ...]
    tried: int

    def __bool__(self) -> bool:
        raise OperandError("a diagnosis has no truth value: see .wrong and .mistakes")

    @property
    def likeliest(self) -> tuple[Mistake, ...]:
        """The first mistake that explains all arrays that any explains, or one for each."""
        chosen: list[Mistake] = []
        for mistake in self.mistakes:
            if not {name for other in chosen for name in other.of}.issuperset(mistake.of):
                chosen.append(mistake)
        return tuple(chosen)

    def __str__(self) -> str:
        lines = [*map(str, self.likeliest), *map(self._unexplained, self.unexplained)]
        if self.right:
            lines.append(f"{_named(self.right)} {'agree' if len(self.right) > 1 else 'agrees'}")
        return "\n".join(lines)

    __repr__ = __str__

    def _unexplained(self, name: str) -> str:
        off = self.wrong[name]
        size = f"off by {off:.2g} of its largest entry" if off < inf else "not finite, or of another shape"
        which = ", the first that is computed" if self.unexplained.index(name) == 0 < len(self.unexplained) - 1 else ""
        told = f"{name}{which}, is {size}" if which else f"{name} is {size}"
        return f"{told}; none of {self.tried} known mistakes explains it"


def _named(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def diagnose(
    found: Mapping[Any, Any], of: Any, arrays: Mapping[Any, Any], *, tolerance: float | None = None
) -> Diagnosis:
    """Which known mistake explains arrays that somebody's own code gave for a gradient or a formula.

    ``found`` are the arrays to explain, by the names of steps and intermediates or by variables, as
    ``{"dK": array}``; ``of`` is the gradient, a tensor or a list of tensors; ``arrays`` are the arguments at which
    they were computed, cotangents included, by name or tensor. The formulas are edited in the ways in which people
    get them wrong, one edit at a time: a factor that is missing or stands twice, a transpose, another width, another
    tensor, a sign, a term, an axis, a mask, a group of heads. An edit is named that gives the arrays found, in the
    first place where the formula is edited nearest to them. ``tolerance`` is relative to the largest entry, by default
    that of the dtype.

    Raises OperandError for names that do not occur, missing arguments, and arrays of other shapes.

    >>> import numpy as np, symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> g = sa.gradient(sa.attention.scaled_dot_product(Q, K, V), [Q, K, V])
    >>> rng = np.random.default_rng(0)
    >>> shapes = {"Q": (4, 3), "K": (5, 3), "V": (5, 2), "dO": (4, 2)}
    >>> arrays = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    >>> f = sa.lambdify([Q, K, V, g.cotangent], g)
    >>> dq, dk, dv = f(*arrays.values())
    >>> sa.diagnose({"dQ": dq, "dK": dk * 3**0.5, "dV": dv}, g, arrays)
    dK is the right one without the factor 1/sqrt(d)
    dV and dQ agree
    """
    return diagnosed(Compared.of(found, of, arrays, tolerance))


def diagnosed(compared: Compared) -> Diagnosis:
    """Edits of the formulas in order, until one explains all that is wrong."""
    wrong, tried = compared.wrong, 0
    fitting: list[Mistake] = []
    for equations, several in ((x, one) for x in compared.equations() for one in _batched(x.candidates(wrong))):
        tried += len(several)
        fitting += [mistake for mistake in compared.measured(equations, several) if mistake.of]
        if any(set(mistake.of) == wrong.keys() for mistake in fitting):
            break
    fitting.sort(key=lambda mistake: -len(mistake.of))  # one mistake for all arrays before one for each
    explained = {name for mistake in fitting for name in mistake.of}
    right = tuple(name for name in compared.found if name not in wrong)
    return Diagnosis(right, wrong, tuple(fitting), tuple(n for n in wrong if n not in explained), tried)


def _batched(candidates: Iterator[Candidate]) -> Iterator[list[Candidate]]:
    while several := list(islice(candidates, _AT_ONCE)):
        yield several


# --- arrays ---


class Compared:
    """The arrays that were found, what is right at the same arguments, and how far they are off."""

    def __init__(
        self,
        targets: Mapping[str, Tensor],
        found: Mapping[str, Any],
        arrays: Mapping[str, Any],
        others: Sequence[Tensor] = (),
    ) -> None:
        self.targets, self.arrays, self.others = targets, arrays, others
        self.found = {name: _array(name, found[name]) for name in targets}
        right = self._computed(list(targets.values()), targets)
        errors = {name: _error(self.found[name], value) for name, value in zip(targets, right, strict=True)}
        self.allowed = max(TOLERANCES.get(floating(x) or "float64", 0.0) for x in found.values())
        self.errors = errors

    @classmethod
    def of(cls, found: Any, of: Any, arrays: Any, tolerance: float | None) -> Compared:
        for what, given in (("found", found), ("arrays", arrays)):
            if not isinstance(given, Mapping) or not given:
                raise OperandError(f"diagnose: {what} is {{name or tensor: array}}, not {described(given)}")
        known = _by_name(of)
        wanted = {_name_of(key, known): value for key, value in found.items()}
        if len(wanted) < len(found):
            raise OperandError(f"diagnose: found gives one array twice: {', '.join(map(described, found))}")
        for name in wanted:
            if name not in known:
                raise OperandError(f"diagnose: {name} is none of {', '.join(known)}")
        targets = {name: known[name] for name in known if name in wanted}
        compared = cls(targets, wanted, {_name_of(key, {}): value for key, value in arrays.items()})
        compared.allowed = compared.allowed if tolerance is None else checked_tolerance(tolerance)
        return compared

    @property
    def wrong(self) -> dict[str, float]:
        """What differs, in the order in which it is computed."""
        return {name: error for name, error in self.errors.items() if not error <= self.allowed}

    def equations(self) -> Iterator[Equations]:
        """The formulas, then those in which sizes that have one value are one size: there more products fit."""
        if not self.wrong:
            return
        yield Equations(self.targets, self.others)
        symbols: dict[int, sympy.Symbol] = {}
        one: dict[Any, Any] = {}
        for size, value in self._sizes().items():
            if (first := symbols.setdefault(value, size)) is not size:
                one[size] = first
        if one:
            yield Equations({name: x.subs(one) for name, x in self.targets.items()}, [x.subs(one) for x in self.others])

    def measured(self, equations: Equations, candidates: Sequence[Candidate]) -> Iterator[Mistake]:
        """Each candidate with the wrong arrays that it explains; one that spoils a right array explains none."""
        edited = [x for candidate in candidates for x in candidate.made.values()]
        values = iter(self._values(edited, equations.targets))
        for words, places, made in candidates:
            errors = {name: _error(self.found[name], next(values)) for name in made}
            fits = {name for name, error in errors.items() if error <= self.allowed}
            spoils = made.keys() - fits - self.wrong.keys()
            explained = () if spoils else tuple(name for name in self.wrong if name in fits)
            yield Mistake(words, places, explained, max((errors[n] for n in explained), default=inf), made)

    def _sizes(self) -> dict[sympy.Symbol, int]:
        leaves = [x for x in computed(self.targets.values()) if x.op is variable]
        shapes = [(x, np.shape(self._given(x))[-x.rank :]) for x in leaves if x.rank]
        return {size: n for x, shape in shapes for size, n in zip(x.shape, shape, strict=True) if size.is_Symbol}

    def _values(self, tensors: Sequence[Tensor], targets: Mapping[str, Tensor]) -> list[np.ndarray | None]:
        """The values of tensors; None where one has none, as a softmax that refuses empty rows."""
        try:
            return [*self._computed(tensors, targets)]
        except (EvaluationError, np.linalg.LinAlgError):
            if len(tensors) == 1:
                return [None]
            return [value for x in tensors for value in self._values([x], targets)]

    def _computed(self, tensors: Sequence[Tensor], targets: Mapping[str, Tensor]) -> list[np.ndarray]:
        """The values of tensors in float64. Sizes are read off all that the targets are made of: zeros have none."""
        leaves = [x for x in computed([*targets.values(), *tensors]) if x.op is variable]
        f = lambdify(leaves, list(tensors))
        arguments = [self._given(x) for x in leaves]
        asked = (s for s in f.takes.keywords if s.name in self.arrays or not (s.is_integer and s.is_positive))
        keywords = {in_python(s.name): self._given(s) for s in asked}  # a size is read off shapes where it can be
        with np.errstate(all="ignore"):
            return list(map(np.asarray, f(*arguments, **keywords)))

    def _given(self, x: Tensor | sympy.Symbol) -> Any:
        if x.name not in self.arrays:
            raise OperandError(f"diagnose: the arrays hold {', '.join(self.arrays)}; {described(x)} is missing")
        array = self.arrays[str(x.name)]
        return _array(str(x.name), array) if floating(array) or np.iscomplexobj(array) else array


def _by_name(of: Any) -> dict[str, Tensor]:
    """What arrays may be given for: all that has a name in a gradient or in formulas, inputs before users."""
    outputs = list(of.values()) if isinstance(of, Gradient) else [as_tensor(x) for x in each_of(of)]
    roots = [*of.cotangents, *of.named.values(), *outputs] if isinstance(of, Gradient) else outputs
    names = displayed_names(roots)
    unnamed = {x: f"output {k}" if len(outputs) > 1 else "output" for k, x in enumerate(outputs) if x not in names}
    return {name: x for x in computed(roots) if x.op is not variable and (name := {**names, **unnamed}.get(x))}


def _name_of(key: Any, known: Mapping[str, Tensor]) -> str:
    """A name as it is; of a tensor the name under which it is known, and of a variable that of its gradient."""
    if isinstance(key, str):
        return key
    names = {x: name for name, x in known.items()}
    by = {x.inputs[1]: name for x, name in names.items() if x.op is cotangent_op}
    return str(names.get(key) or by.get(key) or getattr(key, "name", None) or described(key))


def _array(name: str, x: Any) -> np.ndarray:
    try:
        return as_array(x)
    except (TypeError, ValueError) as problem:
        raise OperandError(f"diagnose: {name} is no array of real numbers: {problem}") from None


def _error(found: np.ndarray, right: np.ndarray | None) -> float:
    """The largest error, in units of the largest entry; infinite for another shape and for what is not finite."""
    if right is None or found.shape != right.shape or not np.isfinite(right).all():
        return inf
    error = np.abs(found - right).max(initial=0.0) / scale_of(right) if right.size else 0.0
    return float(error) if np.isfinite(error) else inf
