r"""Scalar calculus as a string for latex2sympy2: each name a letter, each product a ``\cdot``, groups in brackets.

What stands on none of the lists here is refused: a tensor with axes, a condition, a function that latex2sympy2 reads
in another sense. So no pitfall of it is ever met: logarithms are ``\ln``, primes are part of a name of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import sympy

from . import latex2sympy
from .calculus_trees import factors_of
from .names import items_of, key_of
from .tree import (
    Apply,
    Calculus,
    Fence,
    Fraction,
    Infix,
    Large,
    Mark,
    Number,
    Product,
    Relation,
    Root,
    Scripted,
    Symbol,
    Total,
    Tree,
    parts_of,
)

if TYPE_CHECKING:
    from .leaves import Leaves
    from .terms import Term

_FUNCTIONS = {
    "exp": r"\exp", "log": r"\ln", "ln": r"\ln", "sin": r"\sin", "cos": r"\cos", "tan": r"\tan", "sinh": r"\sinh",
    "cosh": r"\cosh", "tanh": r"\tanh", "arcsin": r"\arcsin", "arccos": r"\arccos", "arctan": r"\arctan",
}  # fmt: skip
_LOOSE = (Total, Product, Infix, Large)
_SIGNS = frozenset({"", "⋅", "×"})


@dataclass
class Leaf:
    """A scalar formula as a string, and what its letters are."""

    text: str = ""
    free: dict[str, Term] = field(default_factory=dict)
    bound: dict[str, sympy.Dummy] = field(default_factory=dict)
    from_both_sides: set[str] = field(default_factory=set)
    differentiated: set[str] = field(default_factory=set)


class Writer:
    """Writes one formula, by the names of its reader."""

    def __init__(self, reader: Leaves) -> None:
        self.reader = reader
        self.leaf = Leaf()
        self.scope: dict[str, str] = {}  # the letters of bound names, by their keys
        self.letters: dict[str, str] = {}  # those of free names

    def written(self, tree: Tree) -> Leaf:
        """The formula as a string. Raises ParseError for what is on no list."""
        self.leaf.text = self.text(tree)
        return self.leaf

    def text(self, tree: Tree) -> str:
        writer: Callable[[Any], str] = getattr(self, _WRITERS.get(type(tree), "_unread"))
        return writer(tree)

    def _tight(self, tree: Tree) -> str:
        """A factor or a base: in parentheses where it is composed."""
        text = self.text(tree)
        loose = isinstance(tree, _LOOSE) or (isinstance(tree, Calculus) and tree.kind != "binom")
        return f"({text})" if loose or text[0] == "-" or isinstance(tree, (Fence, Scripted)) else text

    def _unread(self, tree: Tree) -> str:
        raise self.reader.error(
            f"{self.reader.shown(tree)} is not read in integrals, limits, products, derivatives, binomials and "
            "factorials: define it outside, and write its name here",
            tree,
        )

    # --- arithmetic ---

    def _number(self, tree: Number) -> str:
        if tree.bold:
            return self._unread(tree)
        self.reader.number(tree)  # which refuses what is too long
        return tree.digits

    def _total(self, tree: Total) -> str:
        signs = {"+": "+", "−": "-"}
        text = "".join(signs[sign] + self._tight(part) for sign, part in tree.terms)
        return text.removeprefix("+")

    def _product(self, tree: Product) -> str:
        if not _SIGNS.issuperset(tree.signs):
            return self._unread(tree)
        return r"\cdot ".join(map(self._tight, tree.factors))

    def _infix(self, tree: Infix) -> str:
        return self._over(tree.left, tree.right) if tree.sign == "/" else self._unread(tree)

    def _fraction(self, tree: Fraction) -> str:
        return self._over(tree.above, tree.below)

    def _over(self, above: Tree, below: Tree) -> str:
        return rf"\frac{{{self.text(above)}}}{{{self.text(below)}}}"

    def _root(self, tree: Root) -> str:
        degree = "" if tree.degree is None else f"[{self.text(tree.degree)}]"
        return rf"\sqrt{degree}{{{self.text(tree.inside)}}}"

    def _fence(self, tree: Fence) -> str:
        if len(tree.items) != 1 or tree.left not in "([|":
            return self._unread(tree)
        inside = self.text(tree.items[0])
        return f"|({inside})|" if tree.left == "|" else inside

    def _apply(self, tree: Apply) -> str:
        head: Tree = tree.head
        power = ""
        if isinstance(head, Scripted) and head.below is None and not head.primes and isinstance(head.above, Number):
            power = f"^{{{head.above.digits}}}"
            head = head.base
        known = isinstance(head, Symbol) and head.letters in _FUNCTIONS and self.reader.names.find(head) is None
        if not known or not isinstance(head, Symbol) or len(tree.arguments) != 1:
            return self._unread(tree)
        text = f"{_FUNCTIONS[head.letters]}({self.text(tree.arguments[0])})"
        return f"({text}){power}" if power else text

    # --- names and powers ---

    def _mark(self, tree: Mark) -> str:
        return r"\infty" if tree.sign == "∞" else self._unread(tree)

    def _symbol(self, tree: Symbol) -> str:
        if key_of(tree) not in self.scope and self.reader.names.find(tree) is None:
            if tree.letters == "π":
                return r"\pi"
            if tree.letters == "e":
                return r"\exp(1)"
        return self._named(tree)

    def _scripted(self, tree: Scripted) -> str:
        names = self.reader.names
        is_name = key_of(tree) in self.scope or names.find(tree) is not None or names.family(tree) is not None
        if tree.above is None or is_name:
            return self._named(tree)
        if isinstance(tree.above, (Mark, Fence)):
            return self._unread(tree)
        base = tree.base if tree.below is None and not tree.primes else replace(tree, above=None)
        if tree.below is not None and len(items_of(tree.below)) > 1:
            raise self.reader.error("a power of an entry is not decided: write (A_{ij})^2", tree)
        if isinstance(base, Symbol) and base.letters == "e" and key_of(base) not in self.scope:
            if names.find(base) is None:
                return rf"\exp({self.text(tree.above)})"
        return f"{self._tight(base)}^{{{self.text(tree.above)}}}"

    def _named(self, tree: Tree) -> str:
        """The letter of a name; a free one is a scalar that is declared, and does not depend on what is bound."""
        key = key_of(tree)
        if key in self.scope:
            return self.scope[key]
        if not key or any(key_of(part) in self.scope for part in parts_of(tree)):
            return self._unread(tree)
        if key not in self.letters:
            term = self.reader.term(tree)
            form = self.reader.form(term)
            if not form.is_scalar:
                raise self.reader.error(
                    f"{self.reader.shown(tree)} is {self.reader.shapes.shown(form)}: calculus is read of scalars, "
                    r"and gradients as \frac{\partial L}{\partial Q}",
                    tree,
                )
            self.letters[key] = self._letter(tree)
            self.leaf.free[self.letters[key]] = term
        return self.letters[key]

    def _letter(self, tree: Tree) -> str:
        used = len(self.leaf.free) + len(self.leaf.bound)
        if used == len(latex2sympy.LETTERS):
            raise self.reader.error(f"a formula of calculus has at most {used} names", tree)
        return latex2sympy.LETTERS[used]

    @contextmanager
    def _bound(self, variable: Tree | None, **kind: bool) -> Iterator[str]:
        """The letter of a name that is bound in here, which is declared nowhere else."""
        assert variable is not None
        key = key_of(variable)
        if not key:
            self._unread(variable)
        taken = key in self.scope or self.reader.names.find(variable) is not None
        if key in self.reader.letters:
            raise self.reader.error(
                f"{self.reader.shown(variable)} is an index of names too: calculus over entries is not read",
                variable,
            )
        if taken or key in self.letters:
            raise self.reader.error(
                f"{self.reader.shown(variable)} is bound here, and has a meaning outside: take another letter", variable
            )
        letter = self._letter(variable)
        self.leaf.bound[letter] = sympy.Dummy(self.reader.shown(variable), **kind)
        self.scope[key] = letter
        try:
            yield letter
        finally:
            del self.scope[key]

    # --- calculus ---

    def _calculus(self, tree: Calculus) -> str:
        kinds = {"∫": self._integral, "lim": self._limit, "d": self._derivative, "binom": self._binomial}
        return kinds.get(tree.kind, self._factorial)(tree)

    def _binomial(self, tree: Calculus) -> str:
        return rf"\binom{{{self.text(tree.body)}}}{{{self.text(tree.limits[0])}}}"

    def _factorial(self, tree: Calculus) -> str:
        return f"({self.text(tree.body)})!"

    def _integral(self, tree: Calculus) -> str:
        low, high = map(self.text, tree.limits)
        with self._bound(tree.variable, real=True) as letter:
            return rf"\int_{{{low}}}^{{{high}}} ({self.text(tree.body)}) d{letter}"

    def _limit(self, tree: Calculus) -> str:
        place = self.text(tree.limits[0])
        with self._bound(tree.variable, real=True) as letter:
            side = ""
            if len(tree.limits) > 1:
                side = "^{+}" if getattr(tree.limits[1], "sign", "") == "+" else "^{-}"
            else:
                self.leaf.from_both_sides.add(letter)
            return rf"\lim_{{{letter} \to {place}{side}}} ({self.text(tree.body)})"

    def _derivative(self, tree: Calculus) -> str:
        assert tree.variable is not None
        order = getattr(tree.limits[0], "digits", "")
        if order not in ("1", "2", "3", "4"):
            raise self.reader.error("derivatives are read up to the fourth", tree.limits[0])
        key = key_of(tree.variable)
        letter = self._named(tree.variable)
        if key not in self.scope:
            self.leaf.differentiated.add(letter)
        if sum(any(key_of(part) == key for part in parts_of(factor)) for factor in factors_of(tree.body)) > 1:
            raise self.reader.error("what the derivative is of is not decided: put it in parentheses", tree)
        text = self.text(tree.body)
        for _ in range(int(order)):
            text = rf"\frac{{d}}{{d{letter}}} ({text})"
        return text

    def _large(self, tree: Large) -> str:
        """A sum or a product with both limits."""
        below = tree.below
        if (
            tree.sign not in ("∑", "∏")
            or tree.above is None
            or not isinstance(below, Relation)
            or below.signs != ("=",)
            or len(below.sides) != 2
        ):
            raise self.reader.error(rf"{tree.sign} is read with both limits here, as in \prod_{{k=1}}^n", tree)
        low, high = self.text(below.sides[1]), self.text(tree.above)
        sign_of_index = {"nonnegative": True} if low == "0" else {"positive": True} if low.isdecimal() else {}
        with self._bound(below.sides[0], integer=True, **sign_of_index) as letter:
            sign = r"\sum" if tree.sign == "∑" else r"\prod"
            return rf"{sign}_{{{letter}={low}}}^{{{high}}} ({self.text(tree.body)})"


_WRITERS: dict[type[Tree], str] = {
    Number: "_number",
    Symbol: "_symbol",
    Mark: "_mark",
    Scripted: "_scripted",
    Total: "_total",
    Product: "_product",
    Infix: "_infix",
    Fraction: "_fraction",
    Root: "_root",
    Fence: "_fence",
    Apply: "_apply",
    Calculus: "_calculus",
    Large: "_large",
}
