r"""Cases, what stands between fences, and matrices; with these all parts of formulas are read."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

import sympy

import symattn

from ...core.node import Tensor
from ...ops import logic
from ...ops.leaves import as_tensor, from_index, zeros
from .names import key_of
from .runs import is_dots
from .shapes import SCALAR, Form, Slot
from .sums import LOGIC, Sums
from .terms import Term
from .text import Span
from .tree import (
    Fence,
    Grid,
    Infix,
    Number,
    Prefix,
    Product,
    Scripted,
    Symbol,
    Tree,
)
from .values import Value, as_number, is_condition

_MATRICES = frozenset("matrix pmatrix bmatrix smallmatrix array".split())


class Parts(Sums):
    """Reads all parts of formulas."""

    # --- logic ---

    def infix(self, tree: Infix) -> Term:
        if tree.sign in LOGIC:
            return self.logical(tree.span, self.term(tree.left), self.term(tree.right), tree.sign)
        if tree.sign == "mod":
            a, b = self.term(tree.left), self.term(tree.right)
            return self.entrywise(tree.span, a, b, symattn.mod, sympy.Mod, "mod", scalars=True)
        if tree.sign == "‖":
            parts = [self.term(tree.left), self.term(tree.right)]
            return self.joined(tree.span, parts, across=any(self.form(part).cols is not None for part in parts))
        return super().infix(tree)

    def prefix(self, tree: Prefix) -> Term:
        if tree.sign != "¬":
            raise self.error(f"{tree.sign} stands between two operands", tree)
        x = self.term(tree.operand)

        def make() -> Value:
            value = self.value(x)
            return logic.logical_not(value) if isinstance(value, Tensor) else sympy.Not(value)

        return self.kept(tree.span, x, make)

    # --- fences ---

    def fence(self, tree: Fence) -> Term:
        """What stands between fences: the same, an indicator, a block matrix, a modulus, a norm, an inner product."""
        if tree.left == "⟨":
            return self._inner(tree)
        if tree.left == "{" or not tree.items:
            raise self.error(f"{self.shown(tree)} is not read", tree)
        if tree.left == "[" and len(tree.items) > 1:
            return self._listed(tree)
        if len(tree.items) > 1:
            raise self.error(f"{self.shown(tree)} is a tuple, which has no value of its own", tree)
        inside = self.term(tree.items[0])
        if tree.left == "[":
            self._check_no_blocks(tree, tree.items[0])
        if tree.left == "|":
            return self._modulus(tree, inside)
        if tree.left == "‖":
            return self._norm(tree, inside, None)
        if tree.left == "⌊":
            return self.of_entries(tree.span, inside, "floor")
        if tree.left == "⌈":
            return self._ceiling(tree, inside)
        return Term(tree.span, inside.slot, inside.make)

    def _check_no_blocks(self, tree: Fence, inside: Tree) -> None:
        """That brackets around names side by side do not hold blocks: ``[A B]`` of matrices of as many rows."""
        names = isinstance(inside, Product) and not any(inside.signs) and all(map(key_of, inside.factors))
        if not isinstance(inside, Product) or not names or self.text.text.startswith("_", tree.span.end):
            return
        forms = [self.form(self.term(factor)) for factor in inside.factors]
        if all(len(form.core) == 2 and self.shapes.unify(form.rows, forms[0].rows) for form in forms):
            raise self.error("whether these are blocks or factors is not decided: write [A, B], or (A B)", tree)

    def _ceiling(self, tree: Fence, x: Term) -> Term:
        def make() -> Value:
            value = self.value(x)
            return -symattn.floor(-value) if isinstance(value, Tensor) else sympy.ceiling(value)

        return self.kept(tree.span, x, make)

    def _modulus(self, tree: Fence, x: Term) -> Term:
        form = self.form(x)
        if isinstance(tree.items[0], Grid):
            raise self.undecided("a determinant is not read", tree)
        square = len(form.core) == 1 or (len(form.core) == 2 and self.shapes.unify(*form.core))
        if square and not self.text.text.startswith(r"\lvert", tree.span.start):
            raise self.undecided(
                r"| | is not decided: write \lvert X \rvert for moduli of entries, \|x\| for a norm", tree
            )
        return self.of_entries(tree.span, x, "abs")

    def _norm(self, tree: Fence, x: Term, kind: Tree | None) -> Term:
        form = self.form(x)
        letter = "" if kind is None else key_of(kind)
        if len(form.core) == 2 and letter != "F":
            raise self.error("a norm of a matrix is not decided: write it with _F", tree)
        if kind is not None and letter != "F" and not (isinstance(kind, Number) and kind.digits == "2"):
            raise self.error("only Euclidean norms are read", tree)
        if form.is_scalar:
            return self.of_entries(tree.span, x, "abs")
        axes = tuple(range(-len(form.core), 0))
        out = Form(form.labels, form.lead)
        return Term(tree.span, Slot(out), lambda: symattn.sqrt(symattn.sum(self.tensor(x) * self.tensor(x), axis=axes)))

    def _scripted_part(self, tree: Scripted) -> Term:
        base = tree.base
        if isinstance(base, Fence) and base.left == "‖" and tree.below is not None:
            norm = self._norm(base, self.term(base.items[0]), tree.below)
            return norm if tree.above is None else self.raised(tree, norm, tree.above)
        if isinstance(base, Fence) and base.left == "⟨" and tree.below is not None:
            product = self._inner(base, tree.below)
            return product if tree.above is None else self.raised(tree, product, tree.above)
        return super()._scripted_part(tree)

    def _inner(self, tree: Fence, kind: Tree | None = None) -> Term:
        if len(tree.items) != 2:
            raise self.error("an inner product has two arguments", tree)
        a, b = (self.term(item) for item in tree.items)
        if kind is not None and key_of(kind) == "F":
            return self._frobenius(tree, a, b)
        if kind is not None:
            raise self.error("an inner product with another subscript than F is not read: write x^\\top A y", tree)
        if not len(self.form(a).core) == len(self.form(b).core) == 1:
            raise self.error("an inner product is read of two vectors only", tree)
        return self.inner(tree.span, a, b)

    def _frobenius(self, tree: Fence, a: Term, b: Term) -> Term:
        r"""``\langle A, B \rangle_F``: the sum of the products of entries."""
        if self.form(a).is_scalar or self.form(b).is_scalar:
            raise self.error("an inner product is read of two vectors or matrices", tree)
        both = self.entrywise(tree.span, a, b, operator.mul, operator.mul, "the inner product", scalars=False)
        form = self.form(both)
        axes = tuple(range(-len(form.core), 0))
        out = Slot(Form(form.labels, form.lead))
        return Term(tree.span, out, lambda: symattn.sum(self.tensor(both), axis=axes), (both,))

    def _listed(self, tree: Fence) -> Term:
        """``[A, B]`` side by side, ``[A; B]`` one below the other."""
        if len(set(tree.separators)) > 1:
            raise self.error("commas and semicolons in one list: write a bmatrix", tree)
        across = tree.separators[0] == ","
        if any(map(is_dots, tree.items)):
            return self.run(tree.span, tree.items, across)
        return self.joined(tree.span, [self.term(item) for item in tree.items], across)

    # --- matrices and cases ---

    def grid(self, tree: Grid) -> Term:
        if not tree.rows:
            raise self.error("there is nothing in it", tree)
        if tree.environment in ("cases", "dcases"):
            return self._cases(tree)
        if tree.environment not in _MATRICES:
            raise self.error(f"\\begin{{{tree.environment}}} is not read here", tree)
        if len({len(row) for row in tree.rows}) != 1:
            raise self.error("the rows of this matrix are not of one length", tree)
        if len(tree.rows[0]) == 1 and any(is_dots(row[0]) for row in tree.rows):
            return self.run(tree.span, [row[0] for row in tree.rows], across=False)
        if len(tree.rows) == 1 and any(map(is_dots, tree.rows[0])):
            return self.run(tree.span, tree.rows[0], across=True)
        cells = [[self.term(cell) for cell in row] for row in tree.rows]
        forms = [self.form(cell) for row in cells for cell in row]
        if all(form == SCALAR for form in forms):
            values = [[self.value(cell) for cell in row] for row in cells]
            if not any(isinstance(value, Tensor) for row in values for value in row):
                return self._of_numbers(tree, [[as_number(value) for value in row] for row in values])
        self._fill(cells)
        rows = [self._row(tree, row) for row in cells]
        return rows[0] if len(rows) == 1 else self.joined(tree.span, rows, across=False)

    def _fill(self, cells: list[list[Term]]) -> None:
        """Blocks of zeros where a 0 stands in a row and a column with matrices, which say its size."""
        forms = [[self.form(cell) for cell in row] for row in cells]
        for n, row in enumerate(cells):
            for m, cell in enumerate(row):
                if forms[n][m] != SCALAR or self.value(cell) != 0:
                    continue
                rows = next((form.rows for form in forms[n] if len(form.core) == 2), None)
                cols = next((line[m].cols for line in forms if len(line[m].core) == 2), None)
                if rows is not None and cols is not None:
                    shape = Form(rows=rows, cols=cols)
                    row[m] = Term(cell.span, Slot(shape), partial(self._zeros, shape, cell.span))

    def _zeros(self, form: Form, span: Span) -> Tensor:
        return zeros(*(self.known_size(size, "a block", span) for size in form.core))

    def _of_numbers(self, tree: Grid, values: list[list[Any]]) -> Term:
        """A matrix of numbers; those in one column, or in one row, are a vector."""
        flat = [value for row in values for value in row]
        if len(flat) == 1 or (len(values) > 1 and len(values[0]) > 1):
            return self.of_tensor(tree.span, symattn.from_sympy(sympy.ImmutableMatrix(values)))
        x = from_index((len(flat),), lambda i: sum(v * sympy.KroneckerDelta(i, n) for n, v in enumerate(flat)))
        return self.of_tensor(tree.span, x, row=len(values) == 1)

    def _row(self, tree: Grid, cells: list[Term]) -> Term:
        return cells[0] if len(cells) == 1 else self.joined(tree.span, cells, across=True)

    def _cases(self, tree: Grid) -> Term:
        """Values with their conditions; the last one is for all that is left."""
        if any(len(row) != 2 for row in tree.rows):
            raise self.error("a case is a value and a condition", tree)
        pairs = [(self.term(value), self._case(condition)) for value, condition in tree.rows]
        last, held = pairs[-1]
        if held is not None and not self._covers([c for _, c in pairs if c is not None]):
            raise self.error("the cases do not cover all places: end them by 'otherwise'", tree)
        out = last
        for value, condition in reversed(pairs[:-1]):
            if condition is None:
                raise self.error("'otherwise' is the last case", tree)
            out = self.chosen(tree.span, condition, value, out)
        return out

    def _case(self, tree: Tree) -> Term | None:
        return None if isinstance(tree, Symbol) and tree.letters == "otherwise" else self.term(tree)

    def _covers(self, conditions: list[Term]) -> bool:
        values = [self.value(condition) for condition in conditions]
        if not all(map(is_condition, values)):
            return False
        return bool(
            sympy.simplify_logic(sympy.Or(*values)) == sympy.true or _complementary(values) or _three_ways(values)
        )

    def with_axes_of_one(self, term: Term, value: Any, shape: Sequence[Any] | None) -> Any:
        """A column as a matrix of one column, a row as one of one row, where the text says such a shape."""
        form = self.form(term)
        missing = [n for n, size in ((-2, form.rows), (-1, form.cols)) if size is None]
        if shape is None or len(shape) != len(form.lead) + 2 or not all(self.shapes.is_one(shape[n]) for n in missing):
            return value
        x = as_tensor(value)
        for axis in missing:
            x = x[..., None] if axis == -1 or form.cols is None else x[..., None, :]
        return x if missing else value


def _complementary(values: list[Any]) -> bool:
    comparisons = all(isinstance(value, sympy.core.relational.Relational) for value in values)
    return comparisons and len(values) == 2 and sympy.Not(values[0]) in (values[1], values[1].reversed)


_SIGNS: dict[str, set[int]] = {"==": {0}, "!=": {-1, 1}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}


def _three_ways(values: list[Any]) -> bool:
    """Whether comparisons of the same two sides leave neither less, nor equal, nor greater."""
    signs, differences = set[int](), set[sympy.Expr]()
    for value in values:
        if not isinstance(value, sympy.core.relational.Relational):
            return False
        difference = sympy.expand(value.lhs - value.rhs)
        turn = -1 if difference.could_extract_minus_sign() else 1
        differences.add(turn * difference)
        signs |= {turn * sign for sign in _SIGNS[value.rel_op]}
    return len(differences) == 1 and signs == {-1, 0, 1}
