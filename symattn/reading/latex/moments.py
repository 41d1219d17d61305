r"""Expectations, variances and covariances: ``\mathbb{E}[q^\top k]``, ``\operatorname{Var}(q_i)``.

They have values under the laws that the text states, ``q \sim \mathcal{N}(0, I)``, or that are given with it: those of
``sa.expectation``, ``sa.variance`` and ``sa.covariance``.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import sympy

import symattn

from ...core.node import Tensor
from ...ops.leaves import from_index
from .derived import Derived
from .shapes import Form, Slot
from .terms import Term
from .tree import Apply


class Moments(Derived):
    """Reads moments of random tensors."""

    def moment(self, tree: Apply, what: str) -> Term:
        """A moment of numbers, one for each of their indices; an expectation of a matrix is that of its entries."""
        terms = [self.term(argument) for argument in tree.arguments]
        forms = [self.form(term) for term in terms]
        if len(terms) != (2 if what == "covariance" else 1):
            raise self.error(f"a {what} is of {'two numbers' if what == 'covariance' else 'one number'}", tree)
        if what != "expectation" and not all(form.is_scalar and not form.lead for form in forms):
            raise self.error(
                rf"a {what} is read of numbers only: write entries, as \operatorname{{Cov}}(x_i, x_j)", tree
            )
        labels = forms[0].labels
        for form in forms[1:]:
            labels = self.shapes.joined_labels(labels, form.labels, None)
        out = Form(labels, forms[0].lead, forms[0].rows, forms[0].cols)
        return Term(tree.span, Slot(out), lambda: self._moment(tree, what, terms, out), tuple(terms))

    def _moment(self, tree: Apply, what: str, terms: list[Term], out: Form) -> Any:
        values = [self.tensor(term) for term in terms]
        found = {x for value in values for x in value.tensors}
        laws = {
            key: law for key, law in self.names.laws.items() if found & set(key if isinstance(key, tuple) else (key,))
        }
        told = {x for key in laws for x in (key if isinstance(key, tuple) else (key,))}
        for x in sorted(found - told, key=lambda x: str(x.name)):
            raise self.error(
                f'no law of {x.brief()}: give it by law={{{x.name}: sa.iid()}}, or "constant" for what is not random, '
                rf"or write {symattn.latex(x)} \sim \mathcal{{N}}(0, I)",
                tree,
            )
        axes = tuple(self.known_size(size, "an axis", tree.span) for size in self.shapes.resolved(out).axes)
        symbols = sympy.symbols(f"i:{len(axes)}", integer=True, nonnegative=True, cls=sympy.Dummy)
        own = [letter for letter, _ in out.labels]
        entries = []
        for value, term in zip(values, terms, strict=True):
            letters = [own.index(letter) for letter, _ in self.form(term).labels]
            places = [*letters, *range(len(own), len(own) + value.rank - len(letters))]
            entries.append(value[tuple(symbols[n] for n in places)] if value.rank else value)
        result = getattr(symattn, what)(*entries, laws)
        if not axes:
            return result
        if result.has(sympy.Indexed):
            raise self.error(
                f"this {what} depends on entries of what is not random, and is read of one number only", tree
            )
        return from_index(axes, lambda *at: result.xreplace(dict(zip(symbols, at, strict=True))))


def _tensors(key: Any) -> Set[Tensor]:
    """The tensors of a law, which may be one of a pair."""
    return set(key) if isinstance(key, tuple) else {key}
