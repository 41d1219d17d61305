r"""Shapes by unification: what a product means, and which way a vector lies, follows from the shapes that are declared.

A form has labelled axes, one for each index that is free (``i`` in ``q_i``), then leading axes without a name (heads),
then rows and columns. A column has no second axis and a row no first one; a scalar has neither. A product contracts the
columns of the left with the rows of the right; where both lack that axis it is an outer product or a scaling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, TypeAlias

from ...core.sizes import ONE, same_size


@dataclass(eq=False)
class Unknown:
    """A size that has to follow from the rest, and what it is the size of."""

    of: str = ""


Size: TypeAlias = Any  # a SymPy expression, or Unknown
Labels = tuple[tuple[str, Size], ...]


@dataclass(frozen=True)
class Form:
    """The axes of a value: labelled ones by their letters, leading ones, rows and columns.

    ``of_rows``: a column that has a number for each row of a matrix by its name, as ``rowsum(A)``, may meet a matrix.
    ``of_vectors``: a number that a row and a column make, which may be meant as their outer product.
    """

    labels: Labels = ()
    lead: tuple[Size, ...] = ()
    rows: Size | None = None
    cols: Size | None = None
    of_rows: bool = False
    of_vectors: bool = field(default=False, compare=False)

    @property
    def is_scalar(self) -> bool:
        """Whether it has neither rows nor columns."""
        return self.rows is None and self.cols is None

    @property
    def core(self) -> tuple[Size, ...]:
        """The rows and columns that there are."""
        return tuple(size for size in (self.rows, self.cols) if size is not None)

    @property
    def axes(self) -> tuple[Size, ...]:
        """All axes, in the order in which a tensor of this form has them."""
        return (*(size for _, size in self.labels), *self.lead, *self.core)


SCALAR = Form()


@dataclass(eq=False)
class Slot:
    """The form of one part of a formula, once it is known."""

    form: Form | None = None


class ClashError(Exception):
    """Forms that do not fit, or that people read in two ways; the reader says where."""

    def __init__(self, problem: str, place: Any, is_undecided: bool = False) -> None:
        super().__init__(problem)
        self.problem, self.place, self.is_undecided = problem, place, is_undecided


class Shapes:
    """Collects what has to hold of forms, and finds those that follow.

    >>> from symattn.core.sizes import sizes
    >>> n, d = sizes("n d")
    >>> shapes = Shapes()
    >>> q, k = Slot(Form(rows=n, cols=d)), Slot(Form(rows=d))
    >>> shapes.shown(shapes.product(q, k, None).form)
    'a column of n'
    """

    def __init__(self) -> None:
        self.known: dict[Unknown, Size] = {}
        self.waiting: list[Callable[[], bool]] = []

    # --- sizes ---

    def size(self, size: Size) -> Size:
        """What is known of a size."""
        while isinstance(size, Unknown) and size in self.known:
            size = self.known[size]
        return size

    def unify(self, a: Size, b: Size) -> bool:
        """Whether two sizes are one, which decides those that were not known."""
        a, b = self.size(a), self.size(b)
        if a is b:
            return True
        if isinstance(a, Unknown):
            self.known[a] = b
            return True
        if isinstance(b, Unknown):
            self.known[b] = a
            return True
        return same_size(a, b)

    def is_one(self, size: Size | None) -> bool:
        """Whether a size is known to be 1."""
        return size is not None and self.size(size) == ONE

    def resolved(self, form: Form) -> Form:
        """The form by what is known of its sizes."""
        return Form(
            tuple((letter, self.size(size)) for letter, size in form.labels),
            tuple(map(self.size, form.lead)),
            None if form.rows is None else self.size(form.rows),
            None if form.cols is None else self.size(form.cols),
            form.of_rows,
            form.of_vectors,
        )

    # --- what has to hold ---

    def require(self, rule: Callable[[], bool]) -> None:
        """A rule that says whether it has done all that it can; one that has not is tried again."""
        if not rule():
            self.waiting.append(rule)

    def solve(self) -> None:
        """Tries the rules that wait until nothing more follows."""
        count = -1
        while self.waiting and count != len(self.waiting):
            count = len(self.waiting)
            self.waiting = [rule for rule in self.waiting if not rule()]

    def settle(self, slot: Slot, form: Form, place: Any, what: str) -> bool:
        """The form of a slot, which has to be the one that it has already."""
        if slot.form is None:
            slot.form = form
        elif not self._same(slot.form, form):
            raise ClashError(f"{what}: {self.shown(slot.form)} is no {self.shown(form)}", place)
        return True

    def same(self, a: Slot, b: Slot, place: Any, what: str) -> None:
        """Two parts of one form."""

        def rule() -> bool:
            if a.form is not None:
                return self.settle(b, a.form, place, what)
            return b.form is not None and self.settle(a, b.form, place, what)

        self.require(rule)

    def mapped(self, x: Slot, change: Callable[[Form], Form], back: Callable[[Form], Form] | None = None) -> Slot:
        """The form that an operation of one argument makes; ``back`` finds that of the argument."""
        out = Slot()

        def rule() -> bool:
            if x.form is not None:
                out.form = change(x.form)
            elif out.form is not None and back is not None:
                x.form = back(out.form)
            return x.form is not None

        self.require(rule)
        return out

    def transposed(self, x: Slot) -> Slot:
        """Rows and columns change places."""

        def turned(form: Form) -> Form:
            return replace(form, rows=form.cols, cols=form.rows)

        return self.mapped(x, turned, turned)

    def product(self, a: Slot, b: Slot, place: Any) -> Slot:
        """A matrix product, an inner or an outer product, or a scaling: what the forms allow."""
        out = Slot()

        def rule() -> bool:
            if a.form is not None and b.form is not None:
                return self.settle(out, self._product(a.form, b.form, place), place, "the product")
            if out.form is not None and not out.form.labels:
                if a.form is not None and a.form.cols is not None:
                    b.form = Form(rows=a.form.cols, cols=out.form.cols)
                    return True
                if b.form is not None and b.form.rows is not None:
                    a.form = Form(rows=out.form.rows, cols=b.form.rows)
                    return True
            return False

        self.require(rule)
        return out

    def entrywise(self, a: Slot, b: Slot, place: Any, what: str, scalars: bool = True) -> Slot:
        """Entry by entry, where an axis of size 1 is repeated; ``scalars`` says whether a scalar meets any form."""
        out = Slot()

        def rule() -> bool:
            if a.form is not None and b.form is not None:
                return self.settle(out, self._entrywise(a.form, b.form, place, what, scalars), place, what)
            for one, other in ((a, b), (b, a)):
                found = one.form if one.form is not None else out.form
                if found is not None and other.form is None and not found.is_scalar:
                    other.form = found
                    return rule()
            return False

        self.require(rule)
        return out

    # --- forms of results ---

    def joined_labels(self, a: Labels, b: Labels, place: Any) -> Labels:
        """The labels of both: one letter is one axis."""
        labels = dict(a)
        for letter, size in b:
            if not self.unify(labels.setdefault(letter, size), size):
                raise ClashError(
                    f"the index {letter} runs over {self.size_text(labels[letter])} in one place and over "
                    f"{self.size_text(size)} in another",
                    place,
                )
        return tuple(sorted(labels.items()))

    def _product(self, a: Form, b: Form, place: Any) -> Form:
        labels, lead = self.joined_labels(a.labels, b.labels, place), self._joined_lead(a, b, place, "the product")
        if a.is_scalar or b.is_scalar:
            return self._scaled(a, b, labels, lead)
        inner, outer = a.cols, b.rows
        fits = (
            self.unify(inner, outer)
            if inner is not None and outer is not None
            else inner is outer or self.is_one(inner) or self.is_one(outer)
        )
        if not fits:
            problem = f"the product: the left is {self.shown(a)}, the right is {self.shown(b)}"
            if self._is_number_beside_vector(a, b) or self._is_number_beside_vector(b, a):
                raise ClashError(f"{problem}, which may be meant as a number: declare it as one", place, True)
            raise ClashError(problem, place)
        return Form(labels, lead, a.rows, b.cols, of_vectors=a.rows is b.cols is None)

    def _scaled(self, a: Form, b: Form, labels: Labels, lead: tuple[Size, ...]) -> Form:
        """The form of anything and a scalar."""
        rows, cols = (b.rows, b.cols) if a.is_scalar else (a.rows, a.cols)
        of_vectors = a.is_scalar and b.is_scalar and (a.of_vectors or b.of_vectors)
        return Form(labels, lead, rows, cols, of_vectors=of_vectors)

    def _is_number_beside_vector(self, a: Form, b: Form) -> bool:
        """Whether a matrix has one entry, by which people scale a vector whichever way it lies."""
        return self.is_one(a.rows) and self.is_one(a.cols) and len(b.core) == 1

    def _entrywise(self, a: Form, b: Form, place: Any, what: str, scalars: bool) -> Form:
        labels, lead = self.joined_labels(a.labels, b.labels, place), self._joined_lead(a, b, place, what)
        if (scalars and (a.is_scalar or b.is_scalar)) or (a.is_scalar and b.is_scalar):
            return self._scaled(a, b, labels, lead)
        if a.is_scalar != b.is_scalar and not self._meets_scalar(*((b, a) if a.is_scalar else (a, b))):
            raise ClashError(
                f"{what}: {self.shown(a)} and {self.shown(b)}; write a number in every entry as "
                r"c \mathbf{1}\mathbf{1}^\top, a multiple of the identity as c I",
                place,
            )
        if a.is_scalar != b.is_scalar:
            return self._scaled(a, b, labels, lead)
        rows = self._joined(a.rows, b.rows)
        meets_rows = (a.of_rows and a.cols is None) or (b.of_rows and b.cols is None)
        cols = (b.cols if a.cols is None else a.cols) if meets_rows else self._joined(a.cols, b.cols)
        if rows is NotImplemented or cols is NotImplemented:
            raise ClashError(f"{what}: {self.shown(a)} and {self.shown(b)}", place)
        return Form(labels, lead, rows, cols)

    def _meets_scalar(self, form: Form, scalar: Form) -> bool:
        """Whether a sum with a number has one meaning: of a matrix, it may be meant on the diagonal, or as a matrix."""
        if len(form.core) < 2 or all(map(self.is_one, form.core)):
            return True
        if scalar.of_vectors:
            return False
        rows, cols = map(self.size, form.core)
        return not isinstance(rows, Unknown) and not isinstance(cols, Unknown) and not same_size(rows, cols)

    def _joined(self, a: Size | None, b: Size | None) -> Any:
        """One axis of both, or NotImplemented; no axis is as good as one of size 1."""
        if a is None or b is None:
            known = b if a is None else a
            return known if known is None or self.is_one(known) else NotImplemented
        if self.is_one(a) and not isinstance(self.size(b), Unknown):
            return b
        if self.is_one(b) and not isinstance(self.size(a), Unknown):
            return a
        return a if self.unify(a, b) else NotImplemented

    def _joined_lead(self, a: Form, b: Form, place: Any, what: str) -> tuple[Size, ...]:
        joined = []
        for x, y in zip_longest(reversed(a.lead), reversed(b.lead)):
            size = (y if x is None else x) if x is None or y is None else self._joined(x, y)
            if size is NotImplemented:
                raise ClashError(f"{what}: {self.shown(a)} and {self.shown(b)}", place)
            joined.append(size)
        return tuple(reversed(joined))

    def alike(self, a: Form, b: Form) -> bool:
        """Whether two forms are matrices of one shape, as far as their sizes are known."""
        if len(a.core) != 2 or len(b.core) != 2:
            return False
        pairs = [(self.size(x), self.size(y)) for x, y in zip(a.core, b.core, strict=True)]
        return all(isinstance(x, Unknown) or isinstance(y, Unknown) or same_size(x, y) for x, y in pairs)

    def _same(self, a: Form, b: Form) -> bool:
        alike = [letter for letter, _ in a.labels] == [letter for letter, _ in b.labels]
        shapes = (a.rows is None, a.cols is None, len(a.lead)) == (b.rows is None, b.cols is None, len(b.lead))
        return alike and shapes and all(self.unify(x, y) for x, y in zip(a.axes, b.axes, strict=True))

    # --- for people ---

    def size_text(self, size: Size) -> str:
        size = self.size(size)
        return "?" if isinstance(size, Unknown) else str(size)

    def shown(self, form: Form | None) -> str:
        """``n×d``, ``a column of n``, ``a row of n``, ``a scalar``."""
        if form is None:
            return "not known"
        sizes = [*form.lead, *form.core]
        if not sizes:
            return "a scalar"
        text = "×".join(map(self.size_text, sizes))
        if form.lead or len(sizes) == 2:
            return text
        return f"a column of {text}" if form.cols is None else f"a row of {text}"


def form_of(shape: Iterable[Size], row: bool = False) -> Form:
    """The form of a tensor: a vector is a column unless it is a row."""
    sizes = tuple(shape)
    if len(sizes) == 1:
        return Form(cols=sizes[0]) if row else Form(rows=sizes[0])
    return Form(lead=sizes[:-2], rows=sizes[-2], cols=sizes[-1]) if sizes else SCALAR
