"""Which symmetries a function of tensors has: each is a pair of claims, asked of the engine and reported.

A symmetry moves some arguments; the claims are that the result stays (invariant), or moves likewise (equivariant).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.arguments import check_takes
from ..core.naming import fresh_name
from ..core.node import Tensor
from ..core.sizes import same_shape, same_size
from ..errors import AbsentError, OperandError, SymattnError, described
from ..ops.leaves import as_tensor, tensor
from ..printing.align import tex_text
from ..printing.matrix import names_in
from .engine import prove
from .verdict import Verdict

Move = Callable[[Tensor], Tensor]
Answer = tuple[str, Tensor]  # how the result would move, as text, and as a tensor


@dataclass(frozen=True, eq=False)
class Symmetry:
    """One symmetry: its ``kind`` is "equivariant", "invariant", "neither" or "unknown".

    ``verdicts`` has the verdict of each claim by its text, such as ``"f(Pi @ X) = Pi @ f(X)"``. A result that both
    stays and moves likewise counts as invariant; "neither" means that every claim is refuted.
    """

    name: str
    kind: str
    verdicts: Mapping[str, Verdict]

    @property
    def verdict(self) -> Verdict:
        """The verdict that decides the kind: a proved one if there is any, else the first that is not refuted."""
        found = list(self.verdicts.values())
        ranks = ("proved", "unknown", "refuted")
        return min(found, key=lambda v: ranks.index(v.status))


class Equivariance(Mapping[str, Symmetry]):
    """The symmetries of a function by name, and in ``not_applicable`` those whose shapes make no sense, and why."""

    def __init__(self, symmetries: Sequence[Symmetry], not_applicable: Mapping[str, str]) -> None:
        self._symmetries = {symmetry.name: symmetry for symmetry in symmetries}
        self.not_applicable = dict(not_applicable)

    def __getitem__(self, name: str) -> Symmetry:
        if not isinstance(name, str) or name not in self._symmetries:
            raise AbsentError(f"{described(name)} is none of the symmetries {', '.join(self._symmetries)}")
        return self._symmetries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._symmetries)

    def __len__(self) -> int:
        return len(self._symmetries)

    def text(self) -> str:
        """A table: one line a symmetry, with its kind and the verdict of each claim."""
        width = max(map(len, self._symmetries), default=0)
        lines = [
            f"{s.name:<{width}}  {s.kind:<11}  "
            + "; ".join(f"{claim}: {verdict.status}" for claim, verdict in s.verdicts.items())
            for s in self.values()
        ]
        return "\n".join(lines + [f"not applicable: {name}: {reason}" for name, reason in self.not_applicable.items()])

    def latex(self) -> str:
        """The table as a ``tabular``."""
        rows = [
            " & ".join([tex_text(s.name), s.kind, tex_text(f"{claim}: {verdict.status}")])
            for s in self.values()
            for claim, verdict in s.verdicts.items()
        ]
        rows += [f"{tex_text(name)} & not applicable & {tex_text(why)}" for name, why in self.not_applicable.items()]
        return "\\begin{tabular}{lll}\n" + " \\\\\n".join(f"  {row}" for row in rows) + "\n\\end{tabular}"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<equivariance: {', '.join(f'{s.name} {s.kind}' for s in self.values())}>"


def equivariance(f: Callable[..., Any], X: Any, budget: float = 10.0) -> Equivariance:
    """Which symmetries a function of tensors has: permutations, orthogonal changes, shifts and scaling, each decided.

    ``X`` is a tensor, or a tuple of tensors for ``f(Q, K, V)``. For each argument: its rows permuted, shifted each by
    a number (``X + c 1^T``), and scaled by a positive number. The features of a single argument, or of the first two
    together, are changed by an orthogonal matrix, and those of a third alone. A single argument, or the second (the
    keys), is translated by ``1 b^T``. With three arguments the rows of the last two are also permuted together.
    ``budget`` is in seconds for each claim. Raises OperandError if f gives no tensor, and what f itself raises; a
    symmetry that symattn cannot state for f is listed as not applicable.

    >>> import symattn as sa
    >>> from symattn.proof.equivariance import equivariance
    >>> found = equivariance(lambda Z: sa.softmax(Z), sa.tensor("Z", "T S"))
    >>> found["rows of Z"].kind, found["row shifts of Z"].kind, found["scaling of Z"].kind
    ('equivariant', 'invariant', 'neither')
    """
    return _Questions(f, tuple(map(as_tensor, X)) if isinstance(X, (tuple, list)) else (as_tensor(X),), budget).report()


_MOST_ARGUMENTS = 16


class _Questions:
    """The symmetries that are asked of one function."""

    def __init__(self, f: Callable[..., Any], arguments: tuple[Tensor, ...], budget: float) -> None:
        if not arguments:
            raise OperandError("equivariance takes a tensor, or a tuple of tensors, that f is a function of")
        if not callable(f):
            raise OperandError(
                f"equivariance takes a function of tensors first, such as sa.softmax, not {described(f)}"
            )
        if len(arguments) > _MOST_ARGUMENTS:
            raise OperandError(
                f"equivariance asks of each argument by itself, of at most {_MOST_ARGUMENTS}, not of {len(arguments)}: "
                "give those that move, and let f hold the others"
            )
        check_takes("equivariance", f, len(arguments))
        self.f, self.arguments, self.budget = f, arguments, budget
        self.result = self._called(arguments)
        self.taken = {*names_in([self.result, *arguments]), "f"}
        self.shown = f"f({', '.join(map(self._label, range(len(arguments))))})"
        self.found: list[Symmetry] = []
        self.left_out: dict[str, str] = {}

    def _called(self, arguments: Sequence[Tensor]) -> Tensor:
        y = self.f(*arguments)
        if not isinstance(y, Tensor):
            shown = ", ".join(x.brief() for x in arguments)
            raise OperandError(f"equivariance: f of {shown} gives {described(y)}, which is not a tensor")
        return y

    def _label(self, k: int) -> str:
        name = self.arguments[k].name
        unique = [x.name for x in self.arguments].count(name) == 1
        return name if name and unique else f"argument {k + 1}"

    def _new(self, name: str, *shape: Any, **hypotheses: bool) -> Tensor:
        return tensor(fresh_name(name, self.taken), *shape, **hypotheses)

    def report(self) -> Equivariance:
        for k in range(len(self.arguments)):
            self._rows((k,), f"rows of {self._label(k)}")
        if len(self.arguments) == 3:
            self._rows((1, 2), f"pairs of {self._label(1)} and {self._label(2)}")
        self._features(tuple(range(min(2, len(self.arguments)))))
        if len(self.arguments) == 3:
            self._features((2,))
        self._translation(min(1, len(self.arguments) - 1))
        for k in range(len(self.arguments)):
            self._row_shifts(k)
        for k in range(len(self.arguments)):
            self._scaling(k)
        return Equivariance(self.found, self.left_out)

    def _ask(self, name: str, moved: Mapping[int, str], move: Move, answers: Sequence[Answer]) -> None:
        """Ask whether f of the moved arguments is f of the arguments, or one of the answers."""
        labels = [moved.get(k, self._label(k)) for k in range(len(self.arguments))]
        asked = [(self.shown, self.result), *answers]
        try:
            given = [move(x) if k in moved else x for k, x in enumerate(self.arguments)]
            left = self._called(given)
            if not same_shape(left.shape, self.result.shape):
                self.left_out[name] = f"f then has the shape {left.brief()}, not {self.result.brief()}"
                return
            verdicts = {f"f({', '.join(labels)}) = {text}": prove(left, y, budget=self.budget) for text, y in asked}
        except SymattnError as problem:
            self.left_out[name] = str(problem)
            return
        self.found.append(Symmetry(name, _kind(list(verdicts.values())), verdicts))

    # --- the symmetries ---

    def _rows(self, moved: tuple[int, ...], name: str) -> None:
        """``f(Pi X) = Pi f(X)``, or ``Pi f(X) Pi^T`` for weights of rows by rows."""
        size = self._common_size(name, moved, "rows", _row_size)
        if size is None:
            return
        if size == 1:
            self.left_out[name] = f"{self._shown(moved)} has one row only"
            return
        pi = self._new("Pi", size, size, permutation=True)
        y, answers = self.result, list[Answer]()
        if y.rank and same_size(_row_size(y), size):
            answers.append((f"{pi} @ {self.shown}", pi @ y))
            if y.rank > 1 and same_size(y.shape[-1], size):
                answers.append((f"{pi} @ {self.shown} @ {pi}.T", pi @ y @ pi.T))
        elif y.rank and same_size(y.shape[-1], size):
            answers.append((f"{self.shown} @ {pi}.T", y @ pi.T))
        self._ask(name, {k: f"{pi} @ {self._label(k)}" for k in moved}, lambda x: pi @ x, answers)

    def _features(self, moved: tuple[int, ...]) -> None:
        """``f(X U) = f(X) U``."""
        name = f"features of {' and '.join(map(self._label, moved))}"
        size = self._common_size(name, moved, "features", lambda x: x.shape[-1])
        if size is None:
            return
        u, y = self._new("U", size, size, orthogonal=True), self.result
        fits = y.rank and same_size(y.shape[-1], size)
        answers = [(f"{self.shown} @ {u}", y @ u)] if fits else []
        self._ask(name, {k: f"{self._label(k)} @ {u}" for k in moved}, lambda x: x @ u, answers)

    def _translation(self, k: int) -> None:
        """``f(X + 1 b^T) = f(X) + 1 b^T``."""
        name, y = f"translation of {self._label(k)}", self.result
        size = self._common_size(name, (k,), "features", lambda x: x.shape[-1])
        if size is None:
            return
        b = self._new("b", size)
        fits = y.rank and same_size(y.shape[-1], size)
        self._ask(
            name, {k: f"{self._label(k)} + {b}"}, lambda x: x + b, [(f"{self.shown} + {b}", y + b)] if fits else []
        )

    def _row_shifts(self, k: int) -> None:
        """``f(X + c 1^T) = f(X) + c 1^T``, or ``f(X) + c`` where f gives one number a row."""
        name, x, y = f"row shifts of {self._label(k)}", self.arguments[k], self.result
        if self._common_size(name, (k,), "rows", _row_size) is None:
            return
        c = self._new("c", *x.shape[:-1])
        column = c[..., None] if c.rank else c
        shown = f"{c}[..., None]" if c.rank else str(c)
        answers = list[Answer]()
        if same_shape(y.shape, c.shape):
            answers = [(f"{self.shown} + {c}", y + c)]
        elif y.rank and same_shape(y.shape[:-1], c.shape):
            answers = [(f"{self.shown} + {shown}", y + column)]
        self._ask(name, {k: f"{self._label(k)} + {shown}"}, lambda x: x + column, answers)

    def _scaling(self, k: int) -> None:
        """``f(a X) = a f(X)``."""
        a = self._new("a", positive=True)
        name = f"scaling of {self._label(k)}"
        self._ask(name, {k: f"{a} * {self._label(k)}"}, lambda x: a * x, [(f"{a} * {self.shown}", a * self.result)])

    def _common_size(self, name: str, moved: tuple[int, ...], of: str, size: Callable[[Tensor], Any]) -> Any:
        """The size of the axis along which arguments move, None, and why, where they have no common one."""
        if any(not self.arguments[k].rank for k in moved):
            self.left_out[name] = f"{self._shown(moved)} has no {of}"
            return None
        first, *others = (size(self.arguments[k]) for k in moved)
        if all(same_size(first, other) for other in others):
            return first
        self.left_out[name] = f"{self._shown(moved)} have different numbers of {of}"
        return None

    def _shown(self, moved: tuple[int, ...]) -> str:
        return " and ".join(self.arguments[k].brief() for k in moved)


def _row_size(x: Tensor) -> Any:
    """The number of rows; the entries of a vector are its rows."""
    return x.shape[-2] if x.rank > 1 else x.shape[-1]


def _kind(verdicts: Sequence[Verdict]) -> str:
    """What the verdicts amount to: that of invariance comes first."""
    invariant, *equivariant = (verdict.status for verdict in verdicts)
    if invariant == "proved":
        return "invariant"
    if "proved" in equivariant:
        return "equivariant"
    return "neither" if {invariant, *equivariant} == {"refuted"} else "unknown"
