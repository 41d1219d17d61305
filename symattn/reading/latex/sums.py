r"""Sums, products and extremes over indices, their limits, and conditions on entries."""

from __future__ import annotations

import operator
from functools import partial, reduce
from typing import Any

import sympy

import symattn

from ...core.node import Tensor
from ...core.sizes import never_negative
from ...ops import logic
from .calculus import Calculated
from .names import items_of, key_of
from .places import extremes
from .shapes import Form, Labels, Slot, Unknown
from .terms import Term
from .text import Span
from .tree import (
    Apply,
    Infix,
    Items,
    Large,
    Product,
    Relation,
    Symbol,
    Tree,
    parts_of,
)
from .values import Value, as_number, axis_of, is_condition

_COMPARED: dict[str, tuple[Any, Any]] = {
    "=": (sympy.Eq, logic.equal),
    "<": (sympy.Lt, logic.less),
    ">": (sympy.Gt, logic.greater),
    "≤": (sympy.Le, logic.less_equal),
    "≥": (sympy.Ge, logic.greater_equal),
    "≠": (sympy.Ne, lambda a, b: logic.logical_not(logic.equal(a, b))),
}
LOGIC: dict[str, tuple[Any, Any]] = {
    "∧": (sympy.And, logic.logical_and),
    "∨": (sympy.Or, logic.logical_or),
}
_REDUCTIONS = {"∑": "sum", "∏": "product", "max": "max", "min": "min"}
MOST_FACTORS = 64  # of a product of entries, which is written out


class Sums(Calculated):
    """Reads what extends over indices, and comparisons."""

    # --- sums with limits ---

    def large(self, tree: Large) -> Term:
        """A sum, or an extreme, over all places of an index, or those that its limits leave."""
        if self.is_calculus(tree):
            return self.calculated(tree)
        if tree.sign not in _REDUCTIONS:
            raise self.error(f"{tree.sign} is not read: write sums, products, maxima and minima", tree)
        if tree.below is None:
            raise self.error(f"{tree.sign} without an index is not decided: write the index below it", tree)
        last = tree.below.items[-1] if isinstance(tree.below, Items) else None
        if isinstance(tree.below, Items) and isinstance(last, Relation) and last.signs == ("=",):
            several = [*tree.below.items[:-1], last.sides[0]]
            if len(set(map(key_of, several))) < len(several):
                raise self.error("an index stands twice below one sign", tree.below)
            return self.term(_one_by_one(tree, several, last.sides[1]))
        letters, condition = self._bound_letters(tree)
        if tree.sign in ("max", "min"):
            self._check_end_of_extreme(tree, letters)
        if condition is not None:
            self._check_others(tree, letters, condition)
        with self.bound(letters, summed=True):
            if isinstance(tree.below, Relation) and tree.below.signs == ("=",):
                return self._between(tree, letters[0], tree.below.sides[1])
            body = self.term(tree.body)
            if condition is not None:
                body = self._where(tree, body, self.term(condition))
            if tree.above is not None and not self.shapes.unify(self.letters[letters[-1]], self.size_of(tree.above)):
                raise self.error(f"{letters[-1]} runs over another range than the limits say", tree)
            for letter in letters:
                body = self._over(tree, body, letter)
            return body

    def _check_end_of_extreme(self, tree: Large, letters: list[str]) -> None:
        """That no factor behind an extreme may be meant of it as a whole, which differs where it is negative."""
        body = tree.body
        last = body.factors[-1] if isinstance(body, Product) else body.right if isinstance(body, Infix) else None
        if last is None or any(key_of(part) in letters for part in parts_of(last)):
            return
        if not self._is_positive(last):
            raise self.undecided(
                f"whether {self.shown(last)} is a part of what \\{tree.sign} is of is not decided: write parentheses",
                tree,
            )

    def _is_positive(self, tree: Tree) -> bool:
        """Whether this is seen to be a positive number."""
        if any(isinstance(part, (Large, Apply)) for part in parts_of(tree)):
            return False
        value = self.value(self.term(tree))
        return isinstance(value, sympy.Expr) and bool(value.is_positive)

    def _check_others(self, tree: Large, letters: list[str], condition: Tree) -> None:
        """That other indices of a condition are bound elsewhere: ``\\sum_{i < j}`` may be over both."""
        for part in parts_of(condition):
            key = key_of(part)
            if key in self.letters and key not in {*letters, *self.bound_letters, *self.given_letters}:
                raise self.undecided(f"whether the sum is over {key} as well is not decided: write two sums", tree)

    def _bound_letters(self, tree: Large) -> tuple[list[str], Tree | None]:
        """The indices below a sign, and the condition on them."""
        below = tree.below
        assert below is not None
        if isinstance(below, Relation):
            letter = self.index_letter(below.sides[0])
            if not letter or len(below.sides) != 2 or below.signs[0] not in _COMPARED:
                raise self.error(f"the limits {self.shown(below)} are not read", below)
            return [letter], None if below.signs[0] == "=" else below
        letters = [self.index_letter(item) for item in items_of(below)]
        if not all(letters) or len(set(letters)) < len(letters):
            raise self.error(f"the limits {self.shown(below)} are not read", below)
        return letters, None

    def _between(self, tree: Large, letter: str, first: Tree) -> Term:
        """A sum from one limit to another: over a whole axis, or over the places that its limits leave."""
        low, last = (None if limit is None else self._limit(limit, letter) for limit in (first, tree.above))
        assert low is not None
        known = self.firsts.get(letter, self.given_first)
        begins = not self.form(low).labels and self.value(low) in (0, 1) and letter not in self.ranges
        if begins:
            self.set_first(letter, self.value(low), tree)
        body = self.term(tree.body)
        size = self.shapes.size(self.letters[letter])
        if last is None:
            if self.value(low) != self.firsts.get(letter):
                raise self.error(f"the sum over {letter} has no upper limit", tree)
            return self._over(tree, body, letter)
        fixed = not self.form(low).labels and not self.form(last).labels
        if fixed and isinstance(size, Unknown):  # no axis has the index
            self.firsts.setdefault(letter, self.value(low))
            size = sympy.expand(self.value(last) - self.firsts[letter] + 1)
            self.shapes.unify(self.letters[letter], size)
        begin = self._begin(letter, self.value(low), self.value(last), size)
        if begins and known is None and fixed and self._conditions(tree, letter, low, last, begin):
            hint = f": declare where it begins by names={{{letter!r}: '1..n'}}" if letter.isalpha() else ""
            raise self.error(
                f"{letter} runs over {self.shapes.size_text(size)} places, and the limits say "
                f"{self.shown(tree.above or tree)}{hint}",
                tree,
            )
        return self._partly(tree, body, letter, low, last, begin)

    def _limit(self, tree: Tree, letter: str) -> Term:
        """A limit of a sum: a number, or one for each place of other indices."""
        limit = self.term(tree)
        if letter in dict(self.form(limit).labels):
            raise self.error(f"{letter} is summed over, and cannot stand in its own limits", tree)
        value = self.value(limit)
        if isinstance(value, Tensor) or is_condition(value):
            raise self.error("a limit of a sum is a size or an index", tree)
        if not value.is_integer:
            raise self.error(f"that the limit {self.shown(tree)} is a whole number is not seen", tree)
        return limit

    def _begin(self, letter: str, low: Any, high: Any, size: Any) -> Any:
        """Where an index begins, as far as its limits or the text say; None where that is not known."""
        if letter not in self.firsts:
            bases = {sympy.Integer(base) for base in self.names.bases | self.names.declared_bases()}
            if size in _alternatives(high, "min"):  # of places that are counted from 0 there is none
                bases.add(sympy.S.One)
            bases |= {part for part in _alternatives(low, "max") if part in (0, 1)}
            if len(bases) == 1:
                (self.firsts[letter],) = bases
        return self.firsts.get(letter)

    def _conditions(self, tree: Large, letter: str, low: Term, last: Term, begin: Any) -> list[Term]:
        """What the limits say beyond that the places are those of the axis."""
        own = self.letters[letter]
        at = Term(tree.span, Slot(Form(labels=((letter, own),))), lambda: self.dummy(letter))
        size = self.shapes.size(own)
        ends = (begin, None if begin is None or isinstance(size, Unknown) else sympy.expand(begin + size - 1))
        pairs = []
        for name, limit, end in zip(("max", "min"), (low, last), ends, strict=True):
            kept = [part for part in _alternatives(self.value(limit), name) if end is None or part != end]
            if kept:  # else it is the end of the axis, as is the other argument of a maximum
                told = Term(limit.span, limit.slot, partial(sympy.Max if name == "max" else sympy.Min, *kept))
                pairs.append((told, at) if name == "max" else (at, told))
        return [
            self.entrywise(tree.span, left, right, logic.less_equal, sympy.Le, "the limits", scalars=True)
            for left, right in pairs
        ]

    def _partly(self, tree: Large, body: Term, letter: str, low: Term, last: Term, begin: Any) -> Term:
        """A sum over the places between two limits."""
        conditions = self._conditions(tree, letter, low, last, begin)
        if not conditions:
            return self._over(tree, body, letter)
        own = self.letters[letter]
        if begin is not None:  # which is one place for all indices of a text
            for other, _ in (*self.form(low).labels, *self.form(last).labels):
                self.firsts.setdefault(other, begin)
        seen = reduce(lambda a, b: self.logical(tree.span, a, b, "∧"), conditions)

        def make() -> Value:
            self._check_limits(tree, letter, self.known_size(own, f"the index {letter}", tree.span), (low, last), begin)
            return self.value(seen)

        checked = Term(tree.span, seen.slot, make)
        return self._over(tree, self._where(tree, body, checked), letter)

    def _check_limits(self, tree: Large, letter: str, size: Any, limits: tuple[Term, Term], begin: Any) -> None:
        """That limits are seen not to leave the axis, which has no other places."""
        assert isinstance(tree.below, Relation)
        ends = (None, None) if begin is None else (begin, begin + size - 1)
        for limit, written, end, name, sign in zip(
            limits, (tree.below.sides[1], tree.above or tree), ends, ("max", "min"), (1, -1), strict=True
        ):
            value, labels = self.value(limit), self.form(limit).labels
            if len(labels) == 1 and value == self.dummy(labels[0][0]):
                if self.firsts.get(labels[0][0], begin) == begin:
                    continue  # an index itself
            if end is None:
                raise self.error(
                    f"where {letter} begins is not decided: declare it by names={{{letter!r}: '1..n'}}", written
                )
            least = [self._least(tree, sign * part, labels, begin) for part in _alternatives(value, name)]
            if not any(x is not None and never_negative(sympy.expand(x - sign * end)) for x in least):
                raise self.error(
                    f"{letter} = {self.shown(written)} may leave its places, {begin} to {ends[1]}: write the limit as "
                    f"\\{name}({end}, {self.shown(written)})",
                    written,
                )

    def _least(self, tree: Large, value: Any, labels: Labels, begin: Any) -> Any:
        """The least value of a limit over all places of its indices, None where it is not seen."""
        moved, sizes = value, {}
        for letter, size in labels:
            dummy = self.dummy(letter)
            moved = moved.xreplace({dummy: dummy + self.firsts.get(letter, begin)})
            sizes[dummy] = self.known_size(size, f"the index {letter}", tree.span)
        ends = extremes(moved, sizes)
        return None if ends is None else ends[0]

    def _normalises(self, tree: Tree) -> bool:
        """Whether there is a softmax, which may run over all places or over those of the sum."""
        return any(isinstance(part, Symbol) and part.letters.lower() == "softmax" for part in parts_of(tree))

    def set_first(self, letter: str, first: Any, tree: Tree) -> None:
        """Where an index begins, which is one place for all of a text."""
        self.set_base(0 if first == 0 else 1, tree)
        known = self.firsts.setdefault(letter, first)
        if known != first:
            raise self.error(f"the index {letter} begins at {known} in one place and at {first} here", tree)

    def _where(self, tree: Large, body: Term, condition: Term) -> Term:
        if tree.sign not in ("∑", "∏"):
            raise self.error("an extreme over some places only is not read", tree)
        if self._normalises(tree.body):
            raise self.error("whether softmax runs over all places or over those of the sum is not decided", tree)
        left_out = sympy.S.Zero if tree.sign == "∑" else sympy.S.One
        return self.chosen(tree.span, condition, body, self.scalar(tree.span, left_out))

    def _over(self, tree: Large, body: Term, letter: str) -> Term:
        form = self.form(body)
        if tree.sign == "∏":
            return self._product_over(tree, body, letter)
        if letter not in dict(form.labels):
            return self._of_constant(tree, body, letter)
        out = Form(tuple(pair for pair in form.labels if pair[0] != letter), form.lead, form.rows, form.cols)
        name = _REDUCTIONS[tree.sign]

        def make() -> Value:
            value, whole = self.value(body), self.form(body)
            if isinstance(value, Tensor):
                return getattr(symattn, name)(value, axis=axis_of(whole, letter))
            if name != "sum" or len(whole.labels) > 1:
                return getattr(symattn, name)(self.tensor(body), axis=axis_of(whole, letter))
            size = self.known_size(dict(whole.labels)[letter], f"the index {letter}", tree.span)
            terms, at = as_number(value), self.dummy(letter)
            first = self.firsts.get(letter, self.given_first)
            if first is None:
                raise self.error(rf"where {letter} begins is not decided: write \sum_{{{letter}=1}}^{{...}}", tree)
            bound = sympy.Symbol(letter, integer=True)
            bound = sympy.Dummy(letter, integer=True) if bound in terms.free_symbols else bound
            whole = sympy.Sum(terms.xreplace({at: bound}), (bound, first, first + size - 1))
            return sympy.expand(whole.doit()) if terms.is_polynomial(at) else whole

        return Term(tree.span, Slot(out), make)

    def _product_over(self, tree: Large, body: Term, letter: str) -> Term:
        """A product of numbers: of entries, of a number of places, which is written out."""
        form = self.form(body)
        if not form.is_scalar or form.lead:
            raise self.error("a product of matrices or vectors is read with all of its factors only", tree)
        out = Form(tuple(pair for pair in form.labels if pair[0] != letter))
        reach = self.letters[letter]

        def make() -> Value:
            size = self.known_size(reach, f"the index {letter}", tree.span)
            if not size.is_Integer or size > MOST_FACTORS:
                raise self.error(
                    f"a product of entries over {size} places has no operation here: write it over a number of places, "
                    r"or, of what is positive, as \exp(\sum_i \log x_i)",
                    tree,
                )
            x, axis = self.tensor(body), axis_of(self.form(body), letter)
            factors = (x[(*(slice(None),) * axis, n)] for n in range(int(size)))
            return reduce(operator.mul, factors)

        return Term(tree.span, Slot(out), make, (body,))

    def _of_constant(self, tree: Large, body: Term, letter: str) -> Term:
        """A sum of equal terms."""
        if tree.sign != "∑":
            raise self.undecided(
                f"{letter} below \\{tree.sign} is no index of what stands behind it: an extreme over all vectors, "
                "matrices or numbers is not read",
                tree,
            )
        size = self.known_size(self.letters[letter], f"the index {letter}", tree.span)
        return self.multiplied(tree.span, self.scalar(tree.span, size), body)

    # --- conditions ---

    def condition(self, tree: Relation) -> Term:
        """A comparison: true or false for every entry."""
        out: Term | None = None
        terms = [self.term(side) for side in tree.sides]
        for sign, left, right in zip(tree.signs, terms, terms[1:], strict=False):
            if sign not in _COMPARED:
                raise self.error(f"{sign} is not read here", tree)
            of_scalars, of_tensors = _COMPARED[sign]
            held = self.entrywise(tree.span, left, right, of_tensors, of_scalars, "the comparison", scalars=True)
            if out is None:
                out = held
            else:
                out = self.logical(tree.span, out, held, "∧")
        assert out is not None
        return out

    def logical(self, span: Span, a: Term, b: Term, sign: str) -> Term:
        of_scalars, of_tensors = LOGIC[sign]
        slot = self.shapes.entrywise(a.slot, b.slot, None, "the conditions", True)
        out = Term(span, slot, lambda: None)
        joined = self._joined(span, a, b, slot, of_tensors, None)

        def make() -> Value:
            x, y = self.value(a), self.value(b)
            for value in (x, y):
                if not isinstance(value, Tensor) and not is_condition(value):
                    raise self.error(f"{sign} stands between conditions", span)
            if isinstance(x, Tensor) or isinstance(y, Tensor):
                return joined.make()
            return of_scalars(x, y)

        out.make = make
        return out


def _one_by_one(tree: Large, letters: list[Tree], first: Tree) -> Tree:
    r"""``\\sum_{i, j = 1}^n`` as a sum over i of sums over j."""
    body = tree.body
    for letter in reversed(letters):
        body = Large(tree.span, tree.sign, Relation(first.span, (letter, first), ("=",)), tree.above, body)
    return body


def _alternatives(value: Any, name: str) -> tuple[Any, ...]:
    """The arguments of a maximum or a minimum: that one of them stays is enough."""
    return tuple(value.args) if isinstance(value, {"max": sympy.Max, "min": sympy.Min}[name]) else (value,)
