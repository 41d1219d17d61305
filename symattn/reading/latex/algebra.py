r"""Sums, products and quotients, and the names of derivatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sympy

from ...core.node import Tensor
from ...ops.arithmetic import add, divide, multiply, subtract
from ...ops.pointwise import power, sqrt
from .names import Entry, items_of, key_of
from .parser import INDICES
from .runs import LETTER, is_dots, reduced_run
from .scripts import Scripts
from .shapes import SCALAR
from .terms import Term
from .text import Span
from .tree import (
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
    Slice,
    Symbol,
    Total,
    Tree,
)
from .values import Value, as_number


class Algebra(Scripts):
    """Reads sums, products, quotients, roots, and derivatives of a scalar."""

    # --- sums, products, quotients ---

    def total(self, tree: Total) -> Term:
        if any(is_dots(part) for _, part in tree.terms):
            return self._with_dots(tree, "∑", [part for _, part in tree.terms], all(s == "+" for s, _ in tree.terms))
        terms = [self.term(part) for _, part in tree.terms]
        ended: dict[str, Tree] = {}  # the indices of sums, and the terms that end with these
        out: Term | None = None
        for (sign, part), term in zip(tree.terms, terms, strict=True):
            if out is None:
                out = self._negated(tree.span, term) if sign == "−" else term
            else:
                self._check_end_of_sum(ended, term)
                function = add if sign == "+" else subtract
                of_scalars = _plus if sign == "+" else _minus
                out = self.entrywise(term.span, out, term, function, of_scalars, "the sum", scalars=False)
            ended.update(dict.fromkeys(_bound_at_the_end(part) - ended.keys(), part))
        assert out is not None
        return out

    def _check_end_of_sum(self, ended: dict[str, Tree], term: Term) -> None:
        """That no later term has an index of a sum that stands before it: ``\\sum_i x_i + y_i``."""
        open_letters = [letter for letter, _ in (term.slot.form or SCALAR).labels if letter in ended]
        if open_letters:
            raise self.undecided(
                f"where the sum over {', '.join(open_letters)} ends is not decided: put it, or what it is "
                "of, in parentheses",
                ended[open_letters[0]],
            )

    def _negated(self, span: Span, x: Term) -> Term:
        return self.kept(span, x, lambda: -as_number(self.value(x)))

    def _with_dots(self, tree: Tree, sign: str, parts: list[Tree], alike: bool) -> Term:
        """A sum or a product of all values of an index."""
        found = reduced_run(tree.span, sign, parts) if alike and LETTER not in self.letters else None
        if found is None:
            raise self.error(r"these dots are not read: write x_1 + \dots + x_n, or a sum with limits", tree)
        return self.term(found)

    def product(self, tree: Product) -> Term:
        if any(map(is_dots, tree.factors)):
            return self._with_dots(tree, "∏", list(tree.factors), len(set(tree.signs)) == 1)
        factors, signs = self.gathered(tree)
        terms = [self.term(factor) for factor in factors]
        if not any(signs):
            self.factors_of[tree] = terms
        signs, terms = self._with_inner_products(["", *signs], terms)
        out = terms[0]
        for sign, right in zip(signs[1:], terms[1:], strict=True):
            if sign == "⋅":
                self._check_dot(out, right)
            out = self._times(Span(tree.span.start, right.span.end), sign, out, right)
        return out

    def _with_inner_products(self, signs: list[str], terms: list[Term]) -> tuple[list[str], list[Term]]:
        r"""The factors, with ``x^\top y`` as one number where what stands before it has columns: ``A x^\top y``."""
        if len(terms) < 3:
            return signs, terms
        self.shapes.solve()
        out_signs, out = signs[:1], terms[:1]
        for sign, term in zip(signs[1:], terms[1:], strict=True):
            if not sign and not out_signs[-1] and len(out) > 1 and self._is_inner(out[-2], out[-1], term):
                row = out.pop()
                out.append(self.multiplied(Span(row.span.start, term.span.end), row, term))
            else:
                out_signs.append(sign)
                out.append(term)
        return out_signs, out

    def _check_dot(self, left: Term, right: Term) -> None:
        r"""That ``x \cdot y A`` is not decided by vectors as rows: it may be the number times A."""
        first = next((a for a, b in self.side_by_side if a.span.start == right.span.start != b.span.start), None)
        forms = [None if term is None else term.slot.form for term in (left, first, right)]
        vectors = all(form is not None and len(form.core) == 1 for form in forms)
        if vectors and self.names.vectors_are_rows is None and self.conventions.vectors_are_rows:
            raise self.undecided(r"where this \cdot ends is not decided: put the product in parentheses", left.span)

    def _is_inner(self, before: Term, row: Term, column: Term) -> bool:
        """Whether a row and a column make a number that the factor before them is scaled by."""
        forms = [term.slot.form for term in (before, row, column)]
        if any(form is None for form in forms):
            return False
        has = [(form.rows is not None, form.cols is not None) for form in forms if form is not None]
        return has[0][1] and has[1:] == [(False, True), (True, False)]

    def gathered(self, tree: Product) -> tuple[list[Tree], list[str]]:
        """The factors, with derivatives as one."""
        factors, signs = list(tree.factors), ["", *tree.signs]
        for n in range(len(factors) - 1, 0, -1):
            if _is_lookup(factors[n]) and not signs[n]:
                raise self.error("an entry is written as x_i, not as x[i]", factors[n])
            if not signs[n]:
                self._check_no_call(factors[n - 1], factors[n])
            if _is_indicator(factors[n - 1], factors[n]):  # ``\\mathbf{1}[j \\le i]``
                del factors[n - 1], signs[n]
                continue
            if not signs[n] and _is_nabla(factors[n - 1]) and n + 1 < len(factors) and not signs[n + 1]:
                self._check_behind(factors[n + 1])
            before = factors[n - 2] if n > 1 else None
            if not signs[n] and (joined := self.derivative(factors[n - 1], factors[n], before)) is not None:
                factors[n - 1 : n + 1] = [joined]
                del signs[n]
        return factors, signs[1:]

    def _check_no_call(self, left: Tree, right: Tree) -> None:
        """That ``x(t)`` of a declared x is no value of a function: a factor by itself needs no parentheses."""
        entry = self.names.find(left)
        alone = isinstance(right, Fence) and right.left == "(" and len(right.items) == 1
        if not alone or not isinstance(right, Fence):
            return
        if key_of(left) == "π" and entry is None and key_of(right.items[0]):
            entry = Entry(sympy.pi, "π")
        if entry is None or entry.is_function:
            return
        inside = right.items[0]
        of = self.names.find(inside)
        number = isinstance(inside, Number) or (of is not None and not isinstance(of.value, Tensor))
        if number or (key_of(inside) and not isinstance(entry.value, Tensor)):
            shown = f"{self.shown(left)} {self.shown(inside)}"
            raise self.undecided(
                f"whether this is a product or the value of a function is not decided: write {shown}, or declare "
                f"{self.shown(left)} as a function",
                Span(left.span.start, right.span.end),
            )

    def derivative(self, left: Tree, right: Tree, before: Tree | None = None) -> Tree | None:
        r"""``dQ`` and ``\nabla_Q L`` as the name of a derivative."""
        if isinstance(left, Symbol) and left.letters == "d" and not left.accents:
            return self._after_d(left, right, isinstance(before, (Number, Fraction)))
        if isinstance(left, Scripted) and isinstance(left.base, Mark) and left.base.sign == "∇":
            if left.above is not None or left.below is None:
                raise self.error(f"{self.shown(left)} is not read: write \\nabla_Q L", left)
            return self.derivative_by(left.below, right)
        return None

    def _check_behind(self, tree: Tree) -> None:
        """That what stands behind a gradient is no scalar, which the loss may be multiplied by."""
        if key_of(tree) and not self.is_tensor(tree) and not self.is_derivative(tree):
            raise self.error(r"what \nabla is of is not decided: write (\nabla_Q L) before another factor", tree)

    def is_tensor(self, tree: Tree) -> bool:
        """Whether a name, perhaps with an index, is that of a declared tensor."""
        bare = tree.base if isinstance(tree, Scripted) else tree
        entries = (self.names.find(tree), self.names.find(bare))
        return any(entry is not None and isinstance(entry.value, Tensor) for entry in entries)

    def is_derivative(self, tree: Tree) -> bool:
        base = tree.base if isinstance(tree, Scripted) else tree
        if not isinstance(base, Symbol) or len(base.letters) < 2 or base.letters[0] != "d":
            return False
        of = replace(base, letters=base.letters[1:])
        variable: Tree = replace(tree, base=of) if isinstance(tree, Scripted) else of
        bare = key_of(base)
        if isinstance(tree, Scripted) and isinstance(tree.above, Fence) and tree.below is not None:
            bare = key_of(replace(tree, above=None))
        return self.names.find(tree) is None and bare not in self.names.entries and self.differentiable(variable, tree)

    def _after_d(self, left: Symbol, right: Tree, scaled: bool) -> Tree | None:
        """``dQ`` of a declared Q is a derivative; beside a size d, of a capital close to it and behind no number."""
        name = differential(right)
        if name is None or not self.is_tensor(right):
            return None
        declared = bool(self.names.given & {key_of(name), key_of(_base(name))})
        matrix = left.span.end == right.span.start and key_of(_base(right))[0].isupper() and not scaled
        if not declared and ("d" in self.names.given or (not matrix and self.names.find(left) is not None)):
            raise self.error(
                f"{self.shown(left)} {self.shown(right)} is not decided: d is declared as well; write "
                r"\mathrm{d} for a derivative, d \cdot for a product",
                left,
            )
        return name if self.differentiable(right, name) else None

    def derivative_by(self, variable: Tree, of: Tree) -> Tree:
        """The name of the derivative of a scalar by a tensor."""
        entry = self.names.find(of)
        if entry is not None and isinstance(entry.value, Tensor) and entry.value.rank:
            raise self.error(
                f"a derivative of {entry.value.brief()} is a Jacobian: say what {self.shown(of)} is, by a definition "
                "or by a tensor of sa.let",
                of,
            )
        self._check_loss(of)
        name = differential(variable)
        if name is None or not self.differentiable(variable, name):
            raise self.error(f"the derivative by {self.shown(variable)} has its shape: declare that", variable)
        return name

    def _check_loss(self, of: Tree) -> None:
        """That a derivative is of a name by itself that has no value of its own, and of one in all of a text."""
        key = key_of(of)
        self.wait_for(key, of)
        entry = self.names.find(of)
        is_loss = entry is None or (key == "L" and key in self.names.sizes)  # L is the loss beside a length L
        value = None if is_loss or entry is None else entry.value
        is_name = isinstance(value, sympy.Symbol) or (isinstance(value, Tensor) and value.name is not None)
        known = key in self.names.sizes or key in self.letters or key not in self.names.given
        part_of_another = entry is None and isinstance(of, Scripted) and self._is_of_another(of)
        if not key or part_of_another or (value is not None and (known or not is_name)):
            raise self.error(
                f"a derivative is read of the name of a loss by itself, not of {self.shown(of)}: define "
                "L = ... outside, and declare L as a loss by names={'L': None}",
                of,
            )
        if self.names.loss not in ("", key):
            raise self.error(
                f"derivatives of two losses, {self.names.loss} and {key}, in one text are not read: "
                "declare each derivative by a name of its own",
                of,
            )
        self.names.loss = key

    def _is_of_another(self, tree: Scripted) -> bool:
        """Whether scripts make something else of a name: a power, a transpose, an entry, one of a family."""
        below = () if tree.below is None else items_of(tree.below)
        indexed = any(key_of(item) in INDICES or key_of(item) in self.letters for item in below)
        return indexed or isinstance(tree.above, (Mark, Number, Total)) or self.names.find(tree.base) is not None

    def differentiable(self, variable: Tree, name: Tree) -> bool:
        """Declares the derivative by a tensor, which has its shape."""
        if self.names.find(name) is not None or self.names.family(name) is not None:
            return True
        self.wait_for(key_of(name), name)
        if isinstance(name, Scripted):
            self.wait_for(key_of(name.base), name)
        entry, bare = self.names.find(variable), variable
        family = self.names.family(variable)
        if entry is None and family is not None:
            return self._differentiable_family(variable, family[0])
        if entry is None and isinstance(variable, Scripted) and isinstance(variable.above, Fence) and variable.below:
            bare = replace(variable, above=None)  # of each head
            entry = self.names.find(bare)
        elif entry is None and isinstance(variable, Scripted):
            bare = (
                Scripted(variable.span, variable.base, None, None, variable.primes)
                if variable.primes
                else variable.base
            )
            entry = self.names.find(bare)
        named = differential(bare)
        if entry is None or not isinstance(entry.value, Tensor) or named is None:
            return False
        if self.names.find(named) is None:
            self.names.declare(named, self.names.tensor_of(named, entry.value.shape))
            self.names.derived.add(key_of(named))
        return True

    def _differentiable_family(self, variable: Tree, entry: Entry) -> bool:
        """Declares the derivatives by all values of a family."""
        named = differential(variable)
        if named is None or not isinstance(entry.value, Tensor) or not entry.family:
            return False
        self.names.declare(named, self.names.tensor_of(named, entry.value.shape[len(entry.family) :]))
        self.names.derived.add(key_of(named))
        return True

    def _times(self, span: Span, sign: str, a: Term, b: Term) -> Term:
        if sign in ("⋅", "×", "∗", "•"):
            self.shapes.solve()
            of_a, of_b = a.slot.form, b.slot.form
            if sign != "⋅" and not (of_a and of_a.is_scalar) and not (of_b and of_b.is_scalar):
                raise self.error(
                    f"{sign} between {self.shown(a.span)} and {self.shown(b.span)} is not decided: "
                    r"write a matrix product side by side, one of entries by \odot",
                    span,
                )
            if of_a is not None and of_b is not None and len(of_a.core) == len(of_b.core) == 1:
                if of_a.cols is None and of_b.rows is None:
                    raise self.undecided(
                        r"whether a column \cdot a row is a number or a matrix is not decided: write x \cdot y, or "
                        r"x y^\top",
                        span,
                    )
                return self.inner(span, a, b)
        self.side_by_side.append((a, b))
        return self.multiplied(span, a, b)

    def inner(self, span: Span, a: Term, b: Term) -> Term:
        """The inner product of two vectors, whichever way they lie."""
        left = a if self.form(a).cols is not None else self.transposed(a.span, a)
        right = b if self.form(b).rows is not None else self.transposed(b.span, b)
        return self.multiplied(span, left, right)

    def fraction(self, tree: Fraction) -> Term:
        derivative = self.derivative_of(tree)
        if derivative is not None:
            return self.term(derivative)
        return self.divided(tree.span, self.term(tree.above), self.term(tree.below))

    def derivative_of(self, tree: Fraction) -> Tree | None:
        r"""``\frac{\partial L}{\partial Q}`` as the name of the derivative."""
        above, below = (behind_partial(part) for part in (tree.above, tree.below))
        if below is None or (above is None and not isinstance(tree.below, Product)):
            return None
        if above is None and self._is_declared_d(tree.below):
            return None  # a product of sizes
        if above is None:
            raise self.error(f"{self.shown(tree)} is not read: write \\frac{{\\partial L}}{{\\partial Q}}", tree)
        return self.derivative_by(below, above)

    def _is_declared_d(self, tree: Tree) -> bool:
        """Whether a product begins with a d that is declared."""
        first = tree.factors[0] if isinstance(tree, Product) else tree
        return isinstance(first, Symbol) and first.style == "italic" and self.names.find(first) is not None

    def infix(self, tree: Infix) -> Term:
        a, b = self.term(tree.left), self.term(tree.right)
        if tree.sign == "/":
            return self.divided(tree.span, a, b)
        if tree.sign in ("⊙", "∘"):
            self._check_beside_entrywise(tree, a, b)
            return self.entrywise(tree.span, a, b, multiply, lambda x, y: x * y, "the entrywise product", scalars=True)
        if tree.sign == "⊘":
            return self.entrywise(tree.span, a, b, divide, self.quotient(tree.right.span), "the quotient", scalars=True)
        if tree.sign == "⊗":
            return self._outer(tree, a, b)
        raise self.error(f"what {tree.sign} means here is not read", tree)

    def _check_beside_entrywise(self, tree: Infix, a: Term, b: Term) -> None:
        r"""That ``A \odot B C`` is not of matrices that fit as ``(A \odot B) C`` too, which people also mean by it."""
        for side, other, step in ((tree.right, a, 1), (tree.left, b, -1)):
            forms = [term.slot.form for term in self.factors_of.get(side, ())[::step]]
            whole = [form for form in forms if form is not None and not form.is_scalar]
            if len(whole) > 1 and other.slot.form is not None and self.shapes.alike(whole[0], other.slot.form):
                sides = (tree.left, tree.right)
                shown = [f"({self.shown(x)})" if isinstance(x, Product) else self.shown(x) for x in sides]
                raise self.undecided(
                    rf"whether \odot or the product comes first is not decided: write {shown[0]} \odot {shown[1]}, or "
                    "parentheses around the entrywise product",
                    tree,
                )

    def _outer(self, tree: Infix, a: Term, b: Term) -> Term:
        of_a, of_b = self.form(a), self.form(b)
        if len(of_a.core) != 1 or len(of_b.core) != 1:
            raise self.error(r"\otimes is read between two vectors only", tree)
        left = a if of_a.rows is not None else self.transposed(a.span, a)
        right = b if of_b.cols is not None else self.transposed(b.span, b)
        return self.multiplied(tree.span, left, right)

    def root(self, tree: Root) -> Term:
        inside = self.term(tree.inside)
        degree = sympy.Integer(2) if tree.degree is None else self.size_of(tree.degree)
        if degree == 0:
            raise self.error("a root of degree 0 has no value", tree)

        def make() -> Value:
            value = as_number(self.value(inside))
            if isinstance(value, Tensor):
                return sqrt(value) if degree == 2 else power(value, 1 / degree)
            return self.checked(value ** (1 / degree), tree.span)

        return self.kept(tree.span, inside, make)

    def unread(self, tree: Tree) -> Term:
        raise self.error(f"{self.shown(tree)} has no value of its own here", tree)


def differential(tree: Tree) -> Tree | None:
    """The name of the derivative by what has a name."""
    match tree:
        case Symbol():
            return replace(tree, letters=f"d{tree.letters}")
        case Scripted(base=Symbol() as base):
            return replace(tree, base=replace(base, letters=f"d{base.letters}"))
    return None


def _is_nabla(tree: Tree) -> bool:
    return isinstance(tree, Scripted) and isinstance(tree.base, Mark) and tree.base.sign == "∇"


def _base(tree: Tree) -> Tree:
    return tree.base if isinstance(tree, Scripted) else tree


def behind_partial(tree: Tree) -> Tree | None:
    r"""What stands behind ``\partial`` or an upright d."""
    match tree:
        case Product(factors=(Mark(sign="∂") | Symbol(letters="d"), inside), signs=("",)):
            return inside
        case Symbol(letters=letters) if len(letters) == 2 and letters[0] == "d":  # with an upright d
            return replace(tree, letters=letters[1:])
        case Product(factors=(Mark(sign="∂"), *more), signs=signs):
            return Product(tree.span, tuple(more), signs[1:])
    return None


def _is_lookup(tree: Tree) -> bool:
    """``[1]``, ``[i]`` and ``[i, j]`` behind a name are entries in code."""
    if not isinstance(tree, Fence) or tree.left != "[":
        return False
    return all(isinstance(item, (Number, Slice)) or key_of(item) in INDICES for item in tree.items)


def _is_indicator(left: Tree, right: Tree) -> bool:
    bold = isinstance(left, Number) and left.bold and left.digits == "1"
    return bold and isinstance(right, Fence) and len(right.items) == 1 and isinstance(right.items[0], Relation)


def _bound_at_the_end(tree: Tree) -> set[str]:
    """The indices of the large signs that a term ends with."""
    found: set[str] = set()
    while isinstance(tree, (Product, Large, Total)):
        if isinstance(tree, Large):
            below = tree.below.sides[0] if isinstance(tree.below, Relation) else tree.below
            found |= {key_of(item) for item in (() if below is None else items_of(below))}
            tree = tree.body
        else:
            tree = tree.factors[-1] if isinstance(tree, Product) else tree.terms[-1][1]
    return found


def _plus(x: Any, y: Any) -> Any:
    return x + y


def _minus(x: Any, y: Any) -> Any:
    return x - y
