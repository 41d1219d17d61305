r"""Derivatives of what a text defines: gradients, Jacobians of vectors, and Hessians.

Which way a Jacobian lies is decided by how it is written: ``\frac{\partial p_i}{\partial z_j}`` has the axes i and j,
``\frac{\partial p}{\partial z^\top}`` rows for p, ``\frac{\partial p^\top}{\partial z}`` rows for z. Without a mark it
is decided by the layout that is given, or where both are one.
"""

from __future__ import annotations

from dataclasses import replace

from ...calculus.gradient import gradient
from ...calculus.jacobians import hessian, jacobian
from ...core.node import Tensor, topological
from ...ops.layout import transpose
from ...ops.leaves import variable
from ...proof.engine import prove
from .algebra import Algebra, behind_partial
from .names import items_of
from .terms import Term
from .tree import Fraction, Mark, Number, Product, Scripted, Tree

LAYOUTS = ("numerator", "denominator")


class Derived(Algebra):
    """Reads derivatives of defined names by names in their definitions."""

    def fraction(self, tree: Fraction) -> Term:
        pair = self.differentiated(tree)
        if pair is None:
            return super().fraction(tree)
        of, by = pair
        return self._derivative_of(tree, of, by)

    def is_derived(self, tree: Tree) -> bool:
        """Whether this is a derivative of what the text defines."""
        if isinstance(tree, Fraction):
            return self.differentiated(tree) is not None
        return isinstance(tree, Product) and self._behind_nabla(tree) is not None

    def jacobian_letters(self, tree: Fraction) -> tuple[str, ...]:
        r"""The indices of ``\frac{\partial p_i}{\partial z_j}`` of declared vectors, neither of which is defined."""
        of, by = behind_partial(tree.above), behind_partial(tree.below)
        if not isinstance(of, Scripted) or not isinstance(by, Scripted):
            return ()
        y, x = self._value_of(of), self._value_of(by)
        if y is None or x is None or y.op is not variable:
            return ()
        return tuple(map(self.index_letter, (*self._indices(of, y), *self._indices(by, x))))

    def _behind_nabla(self, tree: Product) -> tuple[Tensor, Tensor, Scripted] | None:
        r"""What is differentiated by what in ``\nabla_z L``, and the sign with its scripts."""
        first = tree.factors[0]
        if len(tree.factors) != 2 or not isinstance(first, Scripted) or not isinstance(first.base, Mark):
            return None
        if first.base.sign != "∇" or first.below is None:
            return None
        y, x = self._value_of(tree.factors[1]), self._value_of(first.below)
        return (y, x, first) if y is not None and x is not None and not y.rank and self._reaches(y, x) else None

    def product(self, tree: Product) -> Term:
        r"""``\nabla_z L`` and ``\nabla_z^2 L`` of a defined L, and any other product."""
        found = self._behind_nabla(tree)
        if found is None:
            return super().product(tree)
        y, x, first = found
        if first.above is None:
            return self.of_tensor(tree.span, gradient(y, [x])[x], self.conventions.vectors_are_rows)
        if not isinstance(first.above, Number) or first.above.digits != "2":
            raise self.error(f"{self.shown(first)} is not read: write \\nabla_z L, or \\nabla_z^2 L", first)
        return self.of_tensor(tree.span, hessian(y, x))

    def differentiated(self, tree: Fraction) -> tuple[Tree, Tree] | None:
        """What is differentiated by what, where the first is defined in terms of the second."""
        of, by = behind_partial(tree.above), behind_partial(tree.below)
        if of is None or by is None:
            return None
        y, x = self._value_of(of), self._value_of(by)
        return (of, by) if y is not None and x is not None and self._reaches(y, x) else None

    def _value_of(self, tree: Tree) -> Tensor | None:
        """The tensor that a name stands for, which may have an index, or a transpose for its layout."""
        entry = self.names.find(tree)
        if entry is None and isinstance(tree, Scripted):
            if tree.primes or (tree.above is not None and not self._is_turned(tree)):
                return None  # a power, or another name
            without = replace(tree, above=None) if self._is_turned(tree) and tree.below is not None else tree.base
            entry = self.names.find(without) or self.names.find(tree.base)
        return entry.value if entry is not None and isinstance(entry.value, Tensor) else None

    def _reaches(self, y: Tensor, x: Tensor) -> bool:
        return y.op is not variable and any(node is x for node in topological([y]))

    def _is_turned(self, tree: Tree) -> bool:
        above = tree.above if isinstance(tree, Scripted) else None
        return isinstance(above, Mark) and above.sign == "⊤"

    def _derivative_of(self, tree: Fraction, of: Tree, by: Tree) -> Term:
        y, x = self._value_of(of), self._value_of(by)
        assert y is not None
        assert x is not None
        letters = [*self._indices(of, y), *self._indices(by, x)]
        if letters:
            if len(letters) != y.rank + x.rank:
                raise self.error("a derivative of an entry is by an entry: write both with all of their indices", tree)
            return self.indexed_by(tree, jacobian(y, x) if y.rank else gradient(y, [x])[x], letters, tree)
        if not y.rank:
            found = self.of_tensor(tree.span, gradient(y, [x])[x], self.conventions.vectors_are_rows)
            return self.transposed(tree.span, found) if self._is_turned(by) else found
        if (y.rank, x.rank) != (1, 1):
            raise self.error(
                rf"{self.shown(tree)} has {y.rank + x.rank} axes: write its entries, as "
                r"\frac{\partial p_i}{\partial z_j}",
                tree,
            )
        return self.of_tensor(tree.span, self._laid_out(tree, of, by, jacobian(y, x)))

    def _indices(self, tree: Tree, x: Tensor) -> list[Tree]:
        """The indices of an entry, of a name that is declared without them."""
        if not isinstance(tree, Scripted) or tree.below is None or self.names.find(tree) is not None:
            return []
        if self._is_turned(tree) and self.names.find(replace(tree, above=None)) is not None:
            return []
        items = list(items_of(tree.below))
        if self._is_turned(tree) or len(items) != x.rank or not all(map(self.is_place, items)):
            raise self.error(f"{self.shown(tree)} is no entry of {x.brief()}", tree)
        return items

    def _laid_out(self, tree: Fraction, of: Tree, by: Tree, found: Tensor) -> Tensor:
        """The Jacobian, whose rows are those of what is differentiated, or the transpose of it."""
        marks = self._is_turned(of), self._is_turned(by)
        layout = self.names.layout or {(False, True): "numerator", (True, False): "denominator"}.get(marks, "")
        if any(marks) and self.names.layout:
            raise self.error("a layout is given, and the transpose says one as well: leave one of them out", tree)
        turned = transpose(found, (-1, -2))
        if layout:
            return found if layout == "numerator" else turned
        if found.shape[0] == found.shape[1] and prove(found, turned):
            return found
        raise self.error(
            r"which way this Jacobian lies is not decided: write \frac{\partial p_i}{\partial z_j}, or "
            r'\frac{\partial p}{\partial z^\top} for rows of p, or give layout="numerator"',
            tree,
        )
