"""What can be asked: equalities, bounds and dependence patterns of tensors, entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy
from sympy.logic.boolalg import Boolean

from ..core.arguments import check_takes
from ..core.boxes import Box, Fence, Sign
from ..core.comparisons import check_comparisons
from ..core.naming import free_letters
from ..core.node import Tensor
from ..core.sizes import same_shape
from ..errors import OperandError, ShapeError, described
from ..graph.names import displayed_names
from ..ops.broadcasting import broadcast_to
from ..ops.leaves import as_tensor, definition
from ..ops.leaves import variable as named_tensor
from ..printing.index import entry_box
from ..printing.matrix import Printer, latex_printer, names_in, text_in, text_printer
from ..printing.prose import Words, listed
from ..printing.scalars import scalar_box

RELATIONS = {sign: Sign(mark, "relation") for sign, mark in {"=": "=", "<=": "≤", "<": "<"}.items()}


@dataclass(frozen=True)
class Claim:
    """``left relation right``, entry by entry, for all sizes and all values of the tensors."""

    left: Tensor
    relation: str
    right: Tensor

    @property
    def sides(self) -> tuple[Tensor, Tensor]:
        return self.left, self.right

    def latex(self) -> str:
        """The claim in matrix style."""
        return self.written(latex_printer(self.sides))

    def box(self, printer: Printer) -> Box:
        """The claim as mathematics."""
        return printer.related(self.left, RELATIONS[self.relation], self.right)

    def written(self, printer: Printer) -> str:
        """The claim by the names of a printer."""
        if not printer.code:
            return printer.written(self.box(printer))
        return f"{text_in(printer, self.left)} {self.relation} {text_in(printer, self.right)}"

    def __str__(self) -> str:
        return self.written(text_printer(self.sides))

    __repr__ = __str__


@dataclass(frozen=True)
class Independence:
    """``output[out]`` does not depend on ``variable[inp]`` wherever ``condition`` holds of the two indices."""

    output: Tensor
    variable: Tensor
    out: tuple[sympy.Symbol, ...]
    inp: tuple[sympy.Symbol, ...]
    condition: Boolean

    @property
    def sides(self) -> tuple[Tensor, Tensor]:
        return self.output, self.variable

    def written(self, printer: Printer) -> str:
        """The claim as a sentence, by the names of a printer of text."""
        output, variable = (
            (printer.names.get(x) or f"({text_in(printer, x)})") + f"[{', '.join(map(str, index))}]"
            for x, index in zip(self.sides, (self.out, self.inp), strict=True)
        )
        where = "" if self.condition == sympy.true else f" where {condition_text(self.condition)}"
        return f"{output} is independent of {variable}{where}"

    def words(self, printer: Printer) -> Words:
        """The same as mathematics."""
        shown = [printer.box(x) if x in printer.names else Fence(printer.box(definition(x))) for x in self.sides]
        output, variable = map(entry_box, shown, (list(map(scalar_box, index)) for index in (self.out, self.inp)))
        asked = (output, " is independent of ", variable)
        if self.condition == sympy.true:
            return asked
        return *asked, " where ", *condition_words(self.condition, printer.table.scalar)

    def __str__(self) -> str:
        return self.written(text_printer(self.sides))

    __repr__ = __str__


_SIGNS = {sympy.Eq: "=", sympy.Ne: "!=", sympy.Le: "<=", sympy.Lt: "<", sympy.Ge: ">=", sympy.Gt: ">"}


def condition_text(condition: Any) -> str:
    """A condition on indices in words and signs."""
    return "".join(map(str, _in_words(condition, _comparison)))


def condition_words(condition: Any, write: Callable[[Any], Box] = scalar_box) -> Words:
    """The same as mathematics."""
    return _in_words(condition, write)


def _in_words(condition: Any, write: Callable[[Any], str | Box]) -> Words:
    if not isinstance(condition, (sympy.And, sympy.Or)):
        return (write(condition),)
    parts = sorted(condition.args, key=sympy.default_sort_key)
    several = [_in_words(part, write) for part in parts]
    nested = [isinstance(part, (sympy.And, sympy.Or)) for part in parts]
    joined = [("(", *words, ")") if fenced else words for words, fenced in zip(several, nested, strict=True)]
    return listed(joined, " and " if isinstance(condition, sympy.And) else " or ")


def _comparison(condition: Any) -> str:
    sign = _SIGNS.get(type(condition))
    return str(condition) if sign is None else f"{condition.lhs} {sign} {condition.rhs}"


def eq(a: Any, b: Any) -> Claim:
    """The claim that two tensors are equal, entry by entry: ``a[i, j] = b[i, j]`` for all indices.

    A scalar stands for a tensor with that entry everywhere. Raises ShapeError where the shapes differ, and
    NamingError where one name has two meanings.

    >>> import symattn as sa
    >>> Q, K = sa.tensor("Q", "T d"), sa.tensor("K", "S d")
    >>> sa.eq((Q @ K.T).T, K @ Q.T)
    (Q @ K.T).T = K @ Q.T
    """
    return _claim(a, "=", b)


def le(a: Any, b: Any) -> Claim:
    """The claim ``a <= b``, entry by entry. Raises as ``eq``.

    >>> import symattn as sa
    >>> sa.le(sa.softmax(sa.tensor("Z", "T S")), 1)
    softmax(Z) <= ones(T, S)
    """
    return _claim(a, "<=", b)


def lt(a: Any, b: Any) -> Claim:
    """The claim ``a < b``, entry by entry. Raises as ``eq``.

    >>> import symattn as sa
    >>> sa.lt(0, sa.exp(sa.tensor("x", "n")))
    zeros(n) < exp(x)
    """
    return _claim(a, "<", b)


def compared(a: Any, sign: str, b: Any) -> Claim:
    """The claim that a sign of comparison makes: one of = < <= > >= between two tensors."""
    return _claim(b, sign.replace(">", "<"), a) if ">" in sign else _claim(a, sign, b)


def _claim(a: Any, relation: str, b: Any) -> Claim:
    left, right = as_tensor(a), as_tensor(b)
    if left.rank and not right.rank and not right.inputs:
        right = broadcast_to(right, left.shape)
    if right.rank and not left.rank and not left.inputs:
        left = broadcast_to(left, right.shape)
    if not same_shape(left.shape, right.shape):
        raise ShapeError(
            f"{left.brief()} and {right.brief()} cannot be compared entry by entry: the shapes differ; "
            "insert axes by x[:, None], or state relations between sizes by .subs"
        )
    displayed_names([left, right])  # one name has one meaning
    return Claim(left, relation, right)


def independent(output: Any, variable: Any, when: Callable[..., Any] | None = None) -> Independence:
    """The claim that entries of a tensor do not depend on entries of a variable: causality, for example.

    ``when(out, inp)`` takes the index of an entry of ``output`` and that of an entry of ``variable``, as tuples of
    symbols, and gives the relation under which the one must not depend on the other; by default always.
    Raises OperandError if ``variable`` is not a named tensor, or ``when`` gives no relation or compares by ``==``.

    >>> import symattn as sa
    >>> X = sa.tensor("X", "T d")
    >>> sa.independent(sa.cumsum(X, axis=0), X, when=lambda out, inp: inp[0] > out[0])
    (cumsum(X, axis=-2))[i, j] is independent of X[k, l] where k > i
    """
    y, x = as_tensor(output), as_tensor(variable)
    if x.op is not named_tensor:
        raise OperandError(f"independent takes a named tensor as its variable, not {x.brief()}")
    asked = (lambda out, inp: True) if when is None else when
    if not callable(asked):
        raise OperandError(f"independent: when is a function of two tuples of indices, not {described(when)}")
    check_takes("independent: when", asked, 2)

    def at(*place: Any) -> Any:
        return asked(place[: y.rank], place[y.rank :])

    taken = names_in([y, x])
    for _ in range(2):  # once more with letters that no size of the condition has
        letters = free_letters("ijklmnpqrtuvw", taken)
        symbols = [sympy.Symbol(next(letters), integer=True, nonnegative=True) for _ in range(y.rank + x.rank)]
        condition = at(*symbols)
        condition = sympy.sympify(condition) if isinstance(condition, bool) else condition
        if not isinstance(condition, Boolean) or isinstance(condition, sympy.Symbol):
            raise OperandError(f"independent: when(out, inp) gives a relation of indices, not {described(condition)}")
        taken |= {s.name for s in condition.free_symbols.difference(symbols)}
    check_comparisons("independent: when", at, symbols, (*y.shape, *x.shape), condition)
    return Independence(y, x, tuple(symbols[: y.rank]), tuple(symbols[y.rank :]), condition)
