r"""What a statement declares: shapes, ``X \in \mathbb{R}^{n \times d}``, sizes, laws, and signatures of functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sympy

from ...core.naming import check_name
from ...core.node import Tensor
from ...errors import ParseError
from ...ops.leaves import tensor
from ...probability.laws import iid
from .answers import Declaration, Distribution, Signature
from .calls import KNOWN
from .lexer import Token
from .names import Names, items_of, key_of, name_of
from .parser import INDICES, Parser
from .parts import Parts
from .text import FormulaText
from .tree import (
    Apply,
    Fence,
    Fraction,
    Infix,
    Items,
    Number,
    Prefix,
    Product,
    Relation,
    Scripted,
    Slice,
    Symbol,
    Total,
    Tree,
    is_turn,
)

_SETS = frozenset("RNZ")


class Declarations:
    """One statement as a tree, and what it declares."""

    def __init__(self, text: FormulaText, names: Names, tokens: Sequence[Token]) -> None:
        self.text, self.names = text, names
        self.tree = Parser(text, tokens, self.applies).read()

    def applies(self, head: Tree) -> bool:
        """Whether a letter in front of a fence is a function: unless it is declared to be something else."""
        base = head.base if isinstance(head, Scripted) else head
        for tree in (head, base):
            entry = self.names.find(tree)
            if entry is not None:
                return entry.is_function
        if self.names.family(head) is not None:
            return False
        assert isinstance(base, Symbol)
        if not isinstance(head, Scripted) or base.letters in KNOWN:
            return base.letters != "π"
        is_delta = base.letters == "δ" and head.below is not None and len(items_of(head.below)) == 2
        return head.above is None and not is_delta

    def error(self, problem: str, tree: Tree) -> ParseError:
        return self.text.error(problem, tree.span)

    def check_factors(self, shapes: list[Fence]) -> None:
        """That the factors on the right have these shapes."""
        right = self.tree.sides[1] if isinstance(self.tree, Relation) else self.tree
        factors = right.factors if isinstance(right, Product) else (right,)
        if len(factors) != len(shapes):
            raise self.error(f"{len(shapes)} shapes below {len(factors)} factors", shapes[0])
        reader = Parts(self.text, self.names)
        for factor, shape in zip(factors, shapes, strict=True):
            form = reader.form(reader.term(factor))
            wanted = [self.size(item) for item in shape.items]
            if len(form.core) != 2 or not all(map(reader.shapes.unify, form.core, wanted)):
                raise reader.shape_error(f"{reader.shown(factor)} is {reader.shapes.shown(form)}", shape)

    # --- shapes and sizes ---

    def listed(self, tree: Items) -> list[Any]:
        last = tree.items[-1]
        if isinstance(last, Relation) and last.signs == ("∼",):
            return [self.distribution(item, last.sides[1]) for item in (*tree.items[:-1], last.sides[0])]
        if isinstance(last, Relation) and last.signs in (("∈",), (":",)):
            return [made for item in (*tree.items[:-1], last.sides[0]) for made in self.declared(item, last.sides[1])]
        raise self.error(
            "several things where one is meant: write one formula, or relations with commas between", tree.items[1]
        )

    def declared(self, name: Tree, of: Tree) -> list[Any]:
        """``X \\in \\mathbb{R}^{L \\times d}``, ``X : (S, D)``, ``T \\in \\mathbb{N}``."""
        made: list[Any] = []
        for tree in abbreviated(name):
            if not key_of(tree):
                raise self.error("a name is declared: a letter or a word with scripts", tree)
            self.check_new(tree)
            self.check_no_power(tree)
            shape = self.shape_of(of)  # () is that of a scalar
            shape = self.plain_space_of(of) if shape is None else shape
            if shape is None:
                raise self.error(f"{self.text.part(of.span)} is no shape: write \\mathbb{{R}}^{{n \\times d}}", of)
            if shape == "N":
                value: Any = sympy.Symbol(check_name(name_of(tree)), integer=True, positive=True)
            else:
                value = self._tensor(tree, shape)
            if self.names.find(tree) is None:
                self.names.declare(tree, value)
            made.append(Declaration(name_of(tree), value))
        return made

    def check_new(self, tree: Tree) -> None:
        """That the scripts of a new name are a part of the name, or places: no transpose, no stretch."""
        if not isinstance(tree, Scripted) or self.names.find(tree) is not None:
            return
        above, below = tree.above, () if tree.below is None else items_of(tree.below)
        if isinstance(above, (Infix, Fraction)) or (isinstance(above, Total) and self._is_exponent(above)):
            raise self.error(f"a power is not declared: say what {self.text.part(tree.base.span)} is", tree)
        last = above.factors[-1] if isinstance(above, Product) else above
        if is_turn(last):
            raise self.error(f"a transpose is not declared: say what {self.text.part(tree.base.span)} is", tree)
        letters = [key for key in map(key_of, below) if key in self.names.indices or key in INDICES]
        if any(isinstance(item, Slice) for item in below) or len(set(letters)) < len(letters):
            raise self.error("a part is not declared: write all entries, as W_{ij}", tree)

    def _is_exponent(self, tree: Total) -> bool:
        """Whether a sum in a superscript is a number, and no step such as l + 1."""
        letters = [part for _, part in tree.terms if not isinstance(part, Number)]
        return tree.terms[0][0] == "−" or all(self.names.find(part) is not None for part in letters)

    def check_no_power(self, tree: Tree) -> None:
        """That a new name of a vector or matrix is no power; of a scalar it may be one, as a variance is."""
        above = tree.above if isinstance(tree, Scripted) and self.names.find(tree) is None else None
        negative = isinstance(above, Total) and above.terms[0][0] == "−"
        if isinstance(tree, Scripted) and (isinstance(above, (Number, Prefix)) or negative):
            raise self.error(
                f"a power is not declared: write a name as {self.text.part(tree.base.span)}^{{(2)}}, or declare it in "
                "names",
                tree,
            )

    def _tensor(self, tree: Tree, shape: Any) -> Tensor:
        """The tensor that a declaration makes; of a name that is known already it says the shape."""
        if self.names.find(tree) is None:
            return self.names.tensor_of(tree, shape)
        return tensor(name_of(tree), *(r.size for r in self.names.family_ranges(tree)), *shape)

    def shape_of(self, tree: Tree) -> Any:
        """The sizes of a shape, "N" for the natural numbers, None for what is none."""
        space = self.space_of(tree)
        if space is not None:
            return space
        if isinstance(tree, Fence) and tree.left == "(":
            return tuple(self.size(item) for item in tree.items)
        if isinstance(tree, Product) and set(tree.signs) == {"×"}:
            return tuple(self.size(factor) for factor in tree.factors)
        return None

    def space_of(self, tree: Tree) -> Any:
        base = tree.base if isinstance(tree, Scripted) else tree
        if (
            not isinstance(base, Symbol)
            or base.letters not in _SETS
            or base.style not in ("blackboard", "calligraphic")
        ):
            return None
        if base.letters != "R":
            return "N"
        above = tree.above if isinstance(tree, Scripted) else None
        if above is None:
            return ()
        if isinstance(above, Product) and set(above.signs) == {"×"}:
            return tuple(self.size(factor) for factor in above.factors)
        return tuple(self.size(item) for item in (above.items if isinstance(above, Items) else (above,)))

    def plain_space_of(self, tree: Tree) -> Any:
        r"""The sizes of ``\mathbf{R}^{n \times d}`` and ``R^{n x d}``, where no tensor is called R."""
        base = tree.base if isinstance(tree, Scripted) else tree
        above = tree.above if isinstance(tree, Scripted) and tree.below is None else None
        if not isinstance(base, Symbol) or base.letters != "R" or base.accents or above is None:
            return None
        if self.names.find(base) is not None or not isinstance(above, (Product, Symbol, Scripted, Number)):
            return None
        if not isinstance(above, Product) or set(above.signs) == {"×"}:
            return tuple(self.size(factor) for factor in (above.factors if isinstance(above, Product) else (above,)))
        is_written_x = [isinstance(factor, Symbol) and factor.letters == "x" for factor in above.factors[1::2]]
        if set(above.signs) != {""} or len(above.factors) % 2 == 0 or not all(is_written_x):
            return None
        return tuple(self.size(factor) for factor in above.factors[::2])

    def size(self, tree: Tree) -> sympy.Expr:
        """A size, whose letters are sizes from here on."""
        for name in _letters(tree):
            if self.names.find(name) is None:
                size = sympy.Symbol(check_name(name_of(name)), integer=True, positive=True)
                if size in self.names.sizes.values():
                    raise self.error(f"{self.text.part(name.span)} would be the size {size}, as another name is", name)
                self.names.sizes[key_of(name)] = size
        return Parts(self.text, self._only_sizes()).size_of(tree)

    def _only_sizes(self) -> Names:
        table = Names({})
        table.sizes = self.names.sizes
        for key, entry in self.names.entries.items():
            if not isinstance(entry.value, Tensor):
                table.entries[key] = entry
        return table

    # --- laws and signatures ---

    def distribution(self, name: Tree, law: Tree) -> Distribution:
        r"""``x \sim \mathcal{N}(\mu, \sigma^2 I)``: independent normal entries; the second argument is the variance."""
        normal = isinstance(law, Apply) and isinstance(law.head, Symbol) and law.head.letters == "N"
        if not normal or not isinstance(law, Apply) or len(law.arguments) != 2 or not key_of(name):
            raise self.error(r"a law is written as x \sim \mathcal{N}(\mu, \sigma^2)", law)
        mean, variance = (Parts(self.text, self.names).size_of(self._multiple(argument)) for argument in law.arguments)
        made = iid("normal", mean=mean, variance=variance)
        bare = name.base if isinstance(name, Scripted) and self.names.find(name) is None else name
        entry = self.names.find(name) or self.names.family(name) or self.names.find(bare)
        found = entry[0] if isinstance(entry, tuple) else entry
        if found is not None and isinstance(found.value, Tensor):
            if self.names.laws.setdefault(found.value, made) is not made:
                raise self.error(f"{self.text.part(name.span)} has a law already", name)
        return Distribution(name_of(name), made)

    def _multiple(self, tree: Tree) -> Tree:
        r"""The number c of ``c I``, the covariance of independent entries; 0 where a mean is a vector of zeros."""
        if isinstance(tree, Number) and tree.digits == "0":
            return replace(tree, bold=False)
        if isinstance(tree, Infix) and tree.sign == "/":
            return replace(tree, left=self._multiple(tree.left))
        if isinstance(tree, Fraction):
            return replace(tree, above=self._multiple(tree.above))
        factors = tree.factors if isinstance(tree, Product) else (tree,)
        last = factors[-1].base if isinstance(factors[-1], Scripted) else factors[-1]
        identity = isinstance(last, Symbol) and last.letters == "I" and self.names.find(last) is None
        if not identity:
            return tree
        kept = factors[:-1]
        if not kept:
            return Number(tree.span, "1")
        return kept[0] if len(kept) == 1 else Product(tree.span, kept, ("",) * (len(kept) - 1))

    def signature(self, tree: Relation) -> Signature:
        if tree.signs != (":", "→"):
            raise self.error("a signature is written as f : (n, d) \\times (m, d) \\to (n, m)", tree)
        name, taken, given = tree.sides
        arguments = taken.factors if isinstance(taken, Product) and set(taken.signs) == {"×"} else (taken,)
        shapes = [self.shape_of(argument) for argument in arguments]
        result = self.shape_of(given)
        if None in shapes or result is None or not key_of(name):
            raise self.error("a signature is written as f : (n, d) \\times (m, d) \\to (n, m)", tree)
        return Signature(name_of(name), tuple(shapes), result)


def abbreviated(tree: Tree) -> list[Tree]:
    """``Q/K/V`` and ``W_{q/k/v}`` as three names."""
    if isinstance(tree, Infix) and tree.sign == "/":
        return [*abbreviated(tree.left), *abbreviated(tree.right)]
    if isinstance(tree, Scripted) and isinstance(tree.below, Infix) and tree.below.sign == "/":
        return [replace(tree, below=part) for part in abbreviated(tree.below)]
    return [tree]


def _letters(tree: Tree) -> list[Tree]:
    """The names in a size."""
    if isinstance(tree, Symbol) or (isinstance(tree, Scripted) and key_of(tree)):
        return [tree]
    inside: list[Tree] = []
    for part in (
        tree.factors
        if isinstance(tree, Product)
        else (tree.left, tree.right)
        if isinstance(tree, Infix)
        else tuple(x for _, x in getattr(tree, "terms", ()))
    ):
        inside += _letters(part)
    return inside
