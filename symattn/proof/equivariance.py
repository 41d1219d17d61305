"""Which symmetries a function of tensors has: each is a pair of claims, asked of the engine and reported.

A symmetry moves some arguments; the claims are that the result stays (invariant), or moves likewise (equivariant).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..core.arguments import check_takes
from ..core.boxes import Box, Function, Name, Text, applied, row
from ..core.displayed import Displayed
from ..core.naming import fresh_name, new_name
from ..core.node import Tensor
from ..core.sizes import same_shape, same_size
from ..core.stated import Sentence
from ..errors import AbsentError, OperandError, ShapeError, SymattnError, described
from ..graph.names import displayed_names
from ..ops.leaves import as_tensor, stand_in, tensor
from ..printing.matrix import Printer, names_in
from ..printing.media.numpy import numpy_text
from ..printing.prose import EQUALS, Items, Paragraph, Part, Table, listed
from ..printing.prose_latex import parts_latex
from ..printing.stated import sentence_words
from ..printing.symbols import symbol
from ..printing.table import SymbolTable
from .engine import prove
from .verdict import Verdict

Places = tuple[int, ...]  # of arguments
Move = Callable[[Tensor], Tensor]


class _Question(NamedTuple):
    """How arguments move, and how the result may move then."""

    move: Move
    answers: Sequence[Move]


@dataclass(frozen=True, eq=False)
class Symmetry:
    """One symmetry: its ``kind`` is "equivariant", "invariant", "neither" or "unknown".

    ``verdicts`` has the verdict of each claim by its text, such as ``"f(Pi @ X) = Pi @ f(X)"``, and ``formulas`` the
    claim as mathematics. A result that both stays and moves likewise counts as invariant; "neither" means that every
    claim is refuted.
    """

    name: str
    kind: str
    verdicts: Mapping[str, Verdict]
    formulas: Mapping[str, Box]

    @property
    def verdict(self) -> Verdict:
        """The verdict that decides the kind: a proved one if there is any, else the first that is not refuted."""
        found = list(self.verdicts.values())
        ranks = ("proved", "unknown", "refuted")
        return min(found, key=lambda v: ranks.index(v.status))


class Equivariance(Mapping[str, Symmetry], Displayed):
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

    def told(self) -> tuple[Part, ...]:
        """The table with the claims as mathematics, and below it what is not applicable."""
        rows = tuple(
            (sentence_words(s.name), (s.kind,), (s.formulas[claim],), (verdict.status,))
            for s in self.values()
            for claim, verdict in s.verdicts.items()
        )
        table = Table((("symmetry",), ("kind",), ("claim",), ("verdict",)), rows)
        left_out = ((*sentence_words(name), f": {why}") for name, why in self.not_applicable.items())
        below = (Paragraph(("Not applicable:",)), Items(tuple(left_out))) if self.not_applicable else ()
        return *((table,) if rows else ()), *below

    def latex(self) -> str:
        """The table as a ``tabular``."""
        return parts_latex(self.told())

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
        names = [x.name for x in arguments]
        self.labels = [x if x and names.count(x) == 1 else f"argument {k}" for k, x in enumerate(names, 1)]
        self.called = [x if x.name == label else label for x, label in zip(arguments, self.labels, strict=True)]
        self.letter = Function(Name("f"))
        self.plain, self.value = [self._stand_in(x) for x in arguments], self._stand_in(self.result)

    def _called(self, arguments: Sequence[Tensor]) -> Tensor:
        y = self.f(*arguments)
        if not isinstance(y, Tensor):
            shown = ", ".join(x.brief() for x in arguments)
            raise OperandError(f"equivariance: f of {shown} gives {described(y)}, which is not a tensor")
        return y

    def _stand_in(self, x: Tensor) -> Tensor:
        """A leaf for an argument or for the result, where claims are written with letters for them."""
        return stand_in(new_name("x", self.taken), x.shape, x.kind, x.holds_minus_infinity)

    def _new(self, name: str, *shape: Any, **hypotheses: bool) -> Tensor:
        return tensor(fresh_name(name, self.taken), *shape, **hypotheses)

    def report(self) -> Equivariance:
        count = len(self.arguments)
        each, three = [(k,) for k in range(count)], count == 3
        asked = [
            *(("rows", self._rows, moved) for moved in each),
            *([("pairs", self._rows, (1, 2))] if three else []),
            ("features", self._features, tuple(range(min(2, count)))),
            *([("features", self._features, (2,))] if three else []),
            ("translation", self._translation, each[:2][-1]),
            *(("row shifts", self._row_shifts, moved) for moved in each),
            *(("scaling", self._scaling, moved) for moved in each),
        ]
        found: list[Symmetry] = []
        left_out: dict[str, str] = {}
        for what, put, moved in asked:
            name = Sentence(what, " of ", *listed(((self.called[k],) for k in moved), " and "))
            try:
                found.append(self._answered(name, moved, put(moved)))
            except SymattnError as problem:
                left_out[name] = str(problem)
        return Equivariance(found, left_out)

    def _answered(self, name: str, moved: Places, asked: _Question) -> Symmetry:
        left = self._called([asked.move(x) if k in moved else x for k, x in enumerate(self.arguments)])
        if not same_shape(left.shape, self.result.shape):
            raise ShapeError(f"f then has the shape {left.brief()}, not {self.result.brief()}")
        verdicts, formulas = {}, {}
        for answer in (lambda y: y, *asked.answers):
            claim = numpy_text(self._claim(moved, asked.move, answer, code=True))
            verdicts[claim] = prove(left, answer(self.result), budget=self.budget)
            formulas[claim] = self._claim(moved, asked.move, answer, code=False)
        return Symmetry(name, _kind(list(verdicts.values())), verdicts, formulas)

    def _claim(self, moved: Places, move: Move, answer: Move, code: bool) -> Box:
        """``f(Pi Q, K) = Pi f(Q, K)``, with letters for f and for its arguments."""
        inside = [move(x) if k in moved else x for k, x in enumerate(self.plain)]
        called, y = applied(self.letter, map(Name, self.labels)), answer(self.value)
        names = {**displayed_names([*inside, y]), **dict(zip(self.plain, self.labels, strict=True))}
        names[self.value] = numpy_text(called)
        letters = {x: _letters(label) for x, label in zip(self.plain, self.labels, strict=True)}
        spellings = {**letters, self.value: applied(self.letter, letters.values())}
        printer = Printer(SymbolTable.spelled(names, spellings), code)
        left = applied(self.letter, map(printer.box, inside))
        return row(left, EQUALS, printer.box(y))

    # --- the symmetries ---

    def _rows(self, moved: Places) -> _Question:
        """``f(Pi X) = Pi f(X)``, or ``Pi f(X) Pi^T`` for weights of rows by rows."""
        size, y = self._common_size(moved, "rows", _row_size), self.result
        if size == 1:
            raise ShapeError(f"{self._shown(moved)} has one row only")
        pi = self._new("Pi", size, size, permutation=True)
        answers: list[Move] = [lambda y: pi @ y] if y.rank and same_size(_row_size(y), size) else []
        if y.rank > 1 and same_size(y.shape[-1], size):
            answers.append((lambda y: pi @ y @ pi.T) if answers else (lambda y: y @ pi.T))
        return _Question(lambda x: pi @ x, answers)

    def _features(self, moved: Places) -> _Question:
        """``f(X U) = f(X) U``."""
        size = self._common_size(moved, "features", _feature_size)
        u = self._new("U", size, size, orthogonal=True)
        return self._likewise(lambda x: x @ u, self._has_features(size))

    def _translation(self, moved: Places) -> _Question:
        """``f(X + 1 b^T) = f(X) + 1 b^T``."""
        size = self._common_size(moved, "features", _feature_size)
        b = self._new("b", size)
        return self._likewise(lambda x: x + b, self._has_features(size))

    def _row_shifts(self, moved: Places) -> _Question:
        """``f(X + c 1^T) = f(X) + c 1^T``, or ``f(X) + c`` where f gives one number a row."""
        self._common_size(moved, "rows", _row_size)
        c, y = self._new("c", *self.arguments[moved[0]].shape[:-1]), self.result
        column = c[..., None] if c.rank else c
        answers: list[Move] = [lambda y: y + column] if y.rank and same_shape(y.shape[:-1], c.shape) else []
        answers += [lambda y: y + c] if same_shape(y.shape, c.shape) else []
        return _Question(lambda x: x + column, answers)

    def _scaling(self, moved: Places) -> _Question:
        """``f(a X) = a f(X)``."""
        a = self._new("a", positive=True)
        return self._likewise(lambda x: a * x, True)

    def _likewise(self, move: Move, applies: bool) -> _Question:
        return _Question(move, [move] if applies else [])

    def _has_features(self, size: Any) -> bool:
        return bool(self.result.rank) and same_size(self.result.shape[-1], size)

    def _common_size(self, moved: Places, of: str, size: Callable[[Tensor], Any]) -> Any:
        """The size of the axis along which arguments move; raises ShapeError where they have no common one."""
        if any(not self.arguments[k].rank for k in moved):
            raise ShapeError(f"{self._shown(moved)} has no {of}")
        first, *others = (size(self.arguments[k]) for k in moved)
        if not all(same_size(first, other) for other in others):
            raise ShapeError(f"{self._shown(moved)} have different numbers of {of}")
        return first

    def _shown(self, moved: Places) -> str:
        return " and ".join(self.arguments[k].brief() for k in moved)


def _letters(label: str) -> Box:
    return symbol(label) if label.isidentifier() else Text(label)


def _row_size(x: Tensor) -> Any:
    """The number of rows; the entries of a vector are its rows."""
    return x.shape[-2] if x.rank > 1 else x.shape[-1]


def _feature_size(x: Tensor) -> Any:
    return x.shape[-1]


def _kind(verdicts: Sequence[Verdict]) -> str:
    """What the verdicts amount to: that of invariance comes first."""
    invariant, *equivariant = (verdict.status for verdict in verdicts)
    if invariant == "proved":
        return "invariant"
    if "proved" in equivariant:
        return "equivariant"
    return "neither" if {invariant, *equivariant} == {"refuted"} else "unknown"
