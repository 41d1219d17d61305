r"""From the syntax tree to terms: each has a form, found by unification, and a value that is built once all forms are.

An index that is free is a labelled axis, so that ``A_{ij}`` is a scalar for each i and j, ``Q_i`` a vector for each i,
and ``Q^{(h)}`` a matrix for each head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy

from ...core.exact import INDICES
from ...core.node import Tensor
from ...errors import ParseError, ShapeError, SymattnError
from ...ops.arithmetic import divide, multiply
from ...ops.layout import transpose
from ...ops.leaves import from_index
from .names import Names, Range
from .parser import INDICES as LETTERS
from .shapes import SCALAR, ClashError, Form, Shapes, Size, Slot, Unknown, form_of
from .text import FormulaText, Span
from .tree import (
    Apply,
    Calculus,
    Fence,
    Fraction,
    Grid,
    Infix,
    Large,
    Mark,
    Number,
    Prefix,
    Product,
    Relation,
    Root,
    Scripted,
    Symbol,
    Total,
    Tree,
)
from .values import Value, as_number, entrywise, plain, product, shifts


class Conventions(NamedTuple):
    """Which way declared vectors lie, and rows that are taken from matrices: as columns, or as rows."""

    vectors_are_rows: bool = False
    parts_are_rows: bool = False


@dataclass(eq=False)
class Term:
    """A part of a formula with its form, and how its value is made once all forms are known."""

    span: Span
    slot: Slot
    make: Callable[[], Value]
    needs: tuple[Term, ...] = ()  # whose values are built before its own, so that long sums do not recurse


class UndecidedError(ParseError):
    """What people read in two ways, whichever way vectors lie."""


class Terms:
    """Reads trees by the names; ``letters`` are the indices that are in scope."""

    def __init__(self, text: FormulaText, names: Names, conventions: Conventions = Conventions()) -> None:  # noqa: B008
        self.text, self.names, self.conventions = text, names, conventions
        self.shapes = Shapes()
        self.letters: dict[str, Unknown] = {}
        self.bound_letters: frozenset[str] = frozenset()  # by sums
        self.given_letters: frozenset[str] = frozenset()  # on the left side of a definition or claim
        self.ranges: dict[str, Range] = dict(names.ranges)
        self.firsts: dict[str, sympy.Expr] = {letter: r.first for letter, r in names.ranges.items()}
        given = names.first_index
        self.given_first = None if given is None else sympy.Integer(given)
        self.assumed: set[str] = set()  # indices that are counted as places are, as nothing says where they begin
        self.uses_vectors = self.uses_parts = False
        self.factors_of: dict[Tree, list[Term]] = {}  # of products side by side
        self.side_by_side: list[tuple[Term, Term]] = []  # the factors of products
        self.undeclared: dict[str, tuple[Tree, Slot]] = {}
        self.made: dict[Term, Value] = {}
        self.mixed: list[tuple[Span, frozenset[str]]] = []  # entries beside what is whole, and their indices

    # --- errors ---

    def error(self, problem: str, where: Tree | Span) -> ParseError:
        return self.text.error(problem, where.span if isinstance(where, Tree) else where)

    def undecided(self, problem: str, where: Tree | Span) -> UndecidedError:
        """What is wrong whichever way vectors lie."""
        error = self.error(problem, where)
        return UndecidedError(error.problem, error.source, error.column)

    def shape_error(self, problem: str, where: Tree | Span) -> ShapeError:
        return ShapeError(str(self.error(problem, where)))

    def shown(self, where: Tree | Span) -> str:
        return self.text.part(where.span if isinstance(where, Tree) else where)

    # --- values ---

    def term(self, tree: Tree) -> Term:
        """The term of a tree. Raises ParseError where it has no meaning, and ShapeError where shapes do not fit."""
        reader = getattr(self, READERS.get(type(tree), "unread"))
        try:
            made: Term = reader(tree)
        except ClashError as clash:
            raise self.clashing(clash, tree) from None
        return made

    def clashing(self, clash: ClashError, where: Tree) -> SymattnError:
        return (self.undecided if clash.is_undecided else self.shape_error)(clash.problem, where)

    def form(self, term: Term) -> Form:
        """The form of a term, known as far as it can be. Raises ParseError where it stays open."""
        if term.slot.form is None:
            self.shapes.solve()
        if term.slot.form is None:
            self.report_undeclared()
            raise self.error(f"the shape of {self.shown(term.span)} does not follow from what is declared", term.span)
        return self.shapes.resolved(term.slot.form)

    def has_outer_product(self) -> bool:
        """Whether a column stands beside a row in a product."""
        return any(a.cols is None and b.rows is None for a, b in self._factors())

    def has_inner_product(self) -> bool:
        """Whether a row stands beside a column in a product, and neither of them has an index."""
        return any(a.rows is None and b.cols is None and not a.labels and not b.labels for a, b in self._factors())

    def has_row_before_matrix(self) -> bool:
        r"""Whether a product is of a row and a matrix, ``x A``, or of a matrix and a column, ``A x^\top``."""
        return any({len(a.core), len(b.core)} == {1, 2} for a, b in self._factors())

    def _factors(self) -> list[tuple[Form, Form]]:
        """The forms of factors side by side that are vectors or matrices."""
        forms = [(a.slot.form, b.slot.form) for a, b in self.side_by_side]
        return [(a, b) for a, b in forms if a is not None and b is not None and a.core and b.core]

    def expect(self, term: Term, shape: Sequence[Size] | None) -> Form:
        """The form of a term, whose sizes may follow from the shape that a text says; whether it has it is checked
        once its value is known."""
        form = self.form(term)
        sizes = (*form.lead, *form.core)
        wanted = [] if shape is None else list(shape)
        if len(wanted) == len(sizes) + 1 and len(form.core) == 1:
            del wanted[-1 if form.cols is None else -2]
        if len(wanted) == len(sizes):
            for size, told in zip(sizes, wanted, strict=True):
                self.shapes.unify(size, told)
        return self.form(term)

    def report_undeclared(self) -> None:
        """The first name that is not declared, with the shape that it has to have where that follows."""
        for name, (tree, slot) in self.undeclared.items():
            if slot.form is None and name in LETTERS:
                raise self.error(
                    f"no shape for {name}, which is no index here: write entries with it, as A_{{ij}}, or an index on "
                    "a left side",
                    tree,
                )
            if slot.form is None:
                raise self.error(
                    f"no shape for {name}: declare it by names={{{name!r}: (...)}}; {self.names.known()}", tree
                )
            form = self.shapes.resolved(slot.form)
            sizes = form.axes
            says = f"it must be {self.shapes.shown(form)}"
            if any(isinstance(size, Unknown) for size in sizes):
                raise self.error(f"no shape for {name}; {says}: declare it by names={{{name!r}: (...)}}", tree)
            latex = r" \times ".join(map(sympy.latex, sizes))
            add_it = rf"{self.shown(tree)} \in \mathbb{{R}}^{{{latex}}}" if sizes else f"names={{{name!r}: ()}}"
            raise self.error(f"no shape for {name}; {says}. Add: {add_it}", tree)

    def value(self, term: Term) -> Value:
        """The value of a term, built once."""
        waiting = [term]
        while waiting:
            needed = [part for part in waiting[-1].needs if part not in self.made]
            waiting += needed
            if not needed:
                self._build(waiting.pop())
        return self.made[term]

    def _build(self, term: Term) -> None:
        if term not in self.made:
            try:
                self.made[term] = term.make()
            except ParseError:
                raise
            except SymattnError as problem:
                if "\n" in str(problem):
                    raise
                raise type(problem)(str(self.error(str(problem), term.span))) from None

    def tensor(self, term: Term) -> Tensor:
        """The value as a tensor: a scalar of indices is a constant by index."""
        value, form = self.value(term), self.form(term)
        if isinstance(value, Tensor):
            return value
        if value is sympy.oo:
            raise self.error(
                r"infinity is no entry of a tensor: what a mask leaves out is - \infty in cases", term.span
            )
        return plain(value) if not form.labels else self.by_index(value, form, term.span)

    def by_index(self, value: Value, form: Form, span: Span) -> Tensor:
        """A scalar of indices as the constant that has it for its entry."""
        letters = [letter for letter, _ in form.labels]
        dummies = [self.dummy(letter) for letter in letters]
        shape = tuple(self.known_size(size, f"the index {letter}", span) for letter, size in form.labels)
        first = [self.firsts.get(letter, self.given_first) for letter in letters]
        if self.assumed.intersection(letters) and not shifts(value, tuple(dummies)):
            self.check_begins(span)
            self.set_base(self.names.first_place, span)
        if None in first and not shifts(value, tuple(dummies)):
            raise self.error(
                f"where {' and '.join(letters)} begin is not decided: declare it by names={{{letters[0]!r}: '1..n'}}",
                span,
            )
        begin = next((f for f in first if f is not None), sympy.S.One)
        at = {
            dummy: index + (begin if f is None else f) for dummy, index, f in zip(dummies, INDICES, first, strict=False)
        }
        return from_index(shape, lambda *_: value.xreplace(at))

    def known_size(self, size: Any, of: str, span: Span) -> sympy.Expr:
        size = self.shapes.size(size)
        if isinstance(size, Unknown):
            raise self.error(
                f"how long {of} is does not follow from what is declared: say it, as by i = 1, \\ldots, n for an index "
                r"i, or by \mathbf{1}_n",
                span,
            )
        return size

    def dummy(self, letter: str) -> sympy.Symbol:
        """The symbol of an index in scalars of indices."""
        return sympy.Symbol(f"index {letter}", integer=True)

    @contextmanager
    def bound(self, letters: Sequence[str], summed: bool = False) -> Iterator[None]:
        """The letters are indices in here."""
        outer, bound_letters = dict(self.letters), self.bound_letters
        if summed:
            self.bound_letters = bound_letters | set(letters)
        for letter in letters:
            known = self.ranges.get(letter)
            fresh = Unknown(letter)
            if known is not None:
                self.shapes.unify(fresh, known.size)
            self.letters[letter] = fresh
        try:
            yield
        finally:
            self.letters, self.bound_letters = outer, bound_letters

    def checked(self, value: Value, span: Span) -> Value:
        """A scalar that is a real number."""
        if isinstance(value, sympy.Expr) and (
            value.is_extended_real is False or value.has(sympy.nan, sympy.zoo, sympy.I, sympy.AccumBounds)
        ):
            raise self.error(f"{self.shown(span)} has no value among real numbers", span)
        return value

    # --- making terms ---

    def scalar(self, span: Span, value: Value) -> Term:
        return Term(span, Slot(SCALAR), lambda: value)

    def of_tensor(self, span: Span, x: Tensor, row: bool = False) -> Term:
        return Term(span, Slot(form_of(x.shape, row)), lambda: x)

    def changed(
        self, span: Span, x: Term, change: Callable[[Form], Form], make: Callable[[], Value], back: Any = None
    ) -> Term:
        return Term(span, self.shapes.mapped(x.slot, change, back), make, (x,))

    def kept(self, span: Span, x: Term, make: Callable[[], Value]) -> Term:
        """A term of the form of another."""
        return self.changed(span, x, lambda form: form, make, lambda form: form)

    def _joined(self, span: Span, a: Term, b: Term, slot: Slot, function: Any, of_scalars: Any) -> Term:
        out = Term(span, slot, lambda: None, (a, b))

        def make() -> Value:
            x, y = self.value(a), self.value(b)
            if not isinstance(x, Tensor) and not isinstance(y, Tensor):
                joined = of_scalars(as_number(x), as_number(y))
                if joined is sympy.nan:
                    raise self.error("infinity less infinity, over infinity or times 0 has no value", span)
                return joined
            self._note_mixed(span, a, b, 2 if function is multiply else 1)
            return entrywise(function, self.tensor(a), self.form(a), self.tensor(b), self.form(b), self.form(out))

        out.make = make
        return out

    def _note_mixed(self, span: Span, a: Term, b: Term, rank: int) -> None:
        """Notes an entry beside a whole matrix, which is a matrix for each place, and hardly meant."""
        for entry, whole in ((self.form(a), self.form(b)), (self.form(b), self.form(a))):
            if entry.is_scalar and entry.labels and not whole.labels and len(whole.core) >= rank:
                self.mixed.append((span, frozenset(letter for letter, _ in entry.labels)))

    def entrywise(self, span: Span, a: Term, b: Term, function: Any, of_scalars: Any, what: str, scalars: bool) -> Term:
        """A function of two terms, entry by entry."""
        slot = self.shapes.entrywise(a.slot, b.slot, None, what, scalars)
        return self._joined(span, a, b, slot, function, of_scalars)

    def multiplied(self, span: Span, a: Term, b: Term) -> Term:
        """The product that the forms allow."""
        slot = self.shapes.product(a.slot, b.slot, None)
        out = Term(span, slot, lambda: None, (a, b))
        scaled = self._joined(span, a, b, slot, multiply, lambda x, y: x * y)

        def make() -> Value:
            of_a, of_b = self.form(a), self.form(b)
            if of_a.is_scalar or of_b.is_scalar:
                return scaled.make()
            return product(self.tensor(a), of_a, self.tensor(b), of_b, self.form(out))

        out.make = make
        return out

    def divided(self, span: Span, a: Term, b: Term) -> Term:
        """Entry by entry, by a scalar or by what has the same form; matrices are divided by ``⊘`` only."""
        self.shapes.solve()
        below, above = b.slot.form, a.slot.form
        if below is not None and not below.is_scalar:
            vectors = above is not None and len(above.core) == len(below.core) == 1
            if not vectors:
                raise self.error(
                    f"{self.shown(b.span)} is no scalar: write quotients of entries by \\oslash, an inverse by ^{{-1}}",
                    b.span,
                )
        return self.entrywise(span, a, b, divide, self.quotient(b.span), "the quotient", scalars=True)

    def quotient(self, span: Span) -> Callable[[Any, Any], Any]:
        def of_scalars(x: Any, y: Any) -> Any:
            if y == 0:
                raise self.error("division by zero", span)
            return x / y

        return of_scalars

    def transposed(self, span: Span, x: Term) -> Term:
        out = Term(span, self.shapes.transposed(x.slot), lambda: None, (x,))

        def make() -> Value:
            form = self.form(x)
            if len(form.core) < 2:
                return self.value(x)
            y = self.tensor(x)
            return transpose(y, (*range(-y.rank, -2), -1, -2))

        out.make = make
        return out

    # --- leaves ---

    # --- where a text counts from ---

    def set_base(self, base: int, where: Tree | Span) -> None:
        """Where a text counts from, 0 or 1: there is one such place for all of it."""
        declared = self.names.declared_bases()
        self.names.bases.add(base)
        if len(self.names.bases | declared) > 1:
            raise self.undecided(
                "indices are counted from 0 in one place and from 1 in another: literal places are counted from 0, "
                r"so write sums as \sum_{i=0}^{n-1}, or give first_index=1 where all is counted from 1",
                where,
            )

    def check_begins(self, where: Tree | Span) -> None:
        """That something says where a text counts from, where a value depends on it."""
        if not self.names.bases | self.names.declared_bases():
            raise self.not_decided(where)

    def not_decided(self, where: Tree | Span) -> ParseError:
        return self.error(
            f"{self.shown(where)}: whether it is counted from 0 or from 1 is not decided: give first_index=0, or "
            "first_index=1",
            where,
        )


READERS: dict[type[Tree], str] = {
    Number: "number",
    Symbol: "symbol",
    Mark: "mark",
    Scripted: "scripted",
    Total: "total",
    Product: "product",
    Fraction: "fraction",
    Infix: "infix",
    Prefix: "prefix",
    Root: "root",
    Fence: "fence",
    Apply: "call",
    Large: "large",
    Grid: "grid",
    Relation: "condition",
    Calculus: "calculated",
}
