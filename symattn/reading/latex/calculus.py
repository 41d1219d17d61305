r"""Scalar calculus in a formula: read by latex2sympy2, worked out by SymPy, then a value like any other."""

from __future__ import annotations

from functools import partial
from typing import Any

import sympy

from ...core.node import Tensor
from ...ops.pointwise import elementwise
from . import latex2sympy, worked_out
from .calculus_text import Leaf, Writer
from .calls import Calls
from .names import key_of
from .shapes import SCALAR, Slot
from .terms import Term
from .text import Span
from .tree import Calculus, Large, Mark, Relation, Scripted, Tree, inside, parts_of
from .values import Value, as_number, spread


class Calculated(Calls):
    """Reads integrals, limits, products, derivatives, binomials and factorials."""

    def is_calculus(self, tree: Large) -> bool:
        """Whether a sum has no end, or its index is a number in calculus; whether a product is not one of entries."""
        below = tree.below.sides[0] if isinstance(tree.below, Relation) else tree.below
        index = "" if below is None else key_of(below)
        if tree.sign != "∑":
            return tree.sign == "∏" and not (index and index in _places(tree.body))
        endless = isinstance(tree.above, Mark) and tree.above.sign == "∞"
        calculus = (part for part in parts_of(tree.body) if isinstance(part, Calculus) or _is_product(part))
        return endless or any(index and index in _numbers(part) for part in calculus)

    def calculated(self, tree: Calculus | Large) -> Term:
        """The value of a formula as a function of the names in it, each of which is a scalar."""
        leaf = Writer(self).written(tree)
        self._check_variables(leaf)
        slot = Slot(SCALAR)
        for term in leaf.free.values():
            slot = self.shapes.entrywise(slot, term.slot, None, "the names", scalars=True)
        out = Term(tree.span, slot, lambda: None, tuple(leaf.free.values()))
        out.make = partial(self._function_of_names, leaf, out)
        return out

    def _check_variables(self, leaf: Leaf) -> None:
        """That what is differentiated by is a name of its own, on which no other name depends."""
        for letter in leaf.differentiated:
            term = leaf.free[letter]
            value = self.value(term)
            plain = value.op.name == "tensor" if isinstance(value, Tensor) else _is_variable(value)
            if not plain:
                raise self.error(
                    f"{self.shown(term.span)} is a whole number, or has a value: there is no derivative by it",
                    term.span,
                )
            others = [self.value(other) for other in leaf.free.values() if other is not term]
            if any(isinstance(other, Tensor) and other.op.name != "tensor" for other in others):
                raise self.error(
                    f"a derivative by {self.shown(term.span)} beside names with values of their own is not decided",
                    term.span,
                )

    def _function_of_names(self, leaf: Leaf, out: Term) -> Value:
        values = {letter: as_number(self.value(term)) for letter, term in leaf.free.items()}
        tensors = {letter: value for letter, value in values.items() if isinstance(value, Tensor)}
        symbols = {letter: sympy.Dummy(self.shown(leaf.free[letter].span), real=True) for letter in tensors}
        found = self._worked_out(leaf, {**values, **symbols}, out.span)
        if not tensors:
            return self.checked(found, out.span)
        form = self.form(out)
        terms = [leaf.free[letter] for letter in tensors]
        inputs = [spread(self.tensor(term), self.form(term), form, core=True) for term in terms]
        return elementwise(sympy.Lambda(tuple(symbols.values()), found), *inputs)

    def _worked_out(self, leaf: Leaf, values: dict[str, Any], span: Span) -> sympy.Expr:
        """The value in the time that is left for all of the text."""
        latex2sympy.load()
        worked_out.prepare()

        def work() -> sympy.Expr:
            formula = latex2sympy.read(leaf.text, {**values, **leaf.bound}, leaf.from_both_sides)
            return worked_out.worked_out(formula, set(leaf.bound.values()))

        return self.names.allowance.spent_on(work)


def _is_product(tree: Tree) -> bool:
    return isinstance(tree, Large) and tree.sign == "∏"


def _numbers(tree: Tree) -> set[str]:
    """The names in a formula that stand for themselves, not those in subscripts."""
    found, waiting = set(), [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Scripted):
            waiting += [side for side in (part.base, part.above) if side is not None]
        else:
            found.add(key_of(part))
            waiting += inside(part)
    return found


def _places(tree: Tree) -> set[str]:
    """The names that stand in subscripts."""
    scripts = (part.below for part in parts_of(tree) if isinstance(part, Scripted) and part.below is not None)
    return {key_of(part) for script in scripts for part in parts_of(script)}


def _is_variable(value: Any) -> bool:
    return isinstance(value, sympy.Symbol) and not value.is_integer
