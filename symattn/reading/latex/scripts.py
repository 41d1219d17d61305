r"""Names with scripts, and what else has them: entries, rows, powers, transposes, heads, families."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sympy

from ...core.node import Tensor
from ...core.sizes import same_size
from ...ops.broadcasting import broadcast_to
from ...ops.contraction import diag_op
from ...ops.inverse import inv
from ...ops.layout import transpose
from ...ops.leaves import ones, zeros
from ...ops.logic import equal
from ...ops.pointwise import power
from ..formulas import power_problem
from .names import items_of, key_of
from .places import Places
from .shapes import Form, Slot, form_of
from .terms import Term
from .text import Span
from .tree import (
    Fence,
    Mark,
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
    parts_of,
)
from .values import exponential, spread


class Scripts(Places):
    """Reads what has subscripts and superscripts."""

    # --- scripts ---

    def scripted(self, tree: Scripted) -> Term:
        """A name with its scripts, an entry, a power, a transpose."""
        above, turned = self._without_transposition(tree)
        plainly = replace(tree, above=above) if turned else tree
        if turned and not isinstance(tree.base, (Symbol, Number)) and _is_at_places(tree.below):
            return self._transposed_part(tree, above)
        bare = turned and above is None and tree.below is None and not tree.primes
        term = self.term(tree.base) if bare else self._without_turn(plainly)
        if turned and self._is_power(tree, term):
            return self._without_turn(tree)
        if bare:
            return self.transposed(tree.span, term)
        if turned and tree.below is not None and isinstance(tree.base, Symbol):
            if self._is_entry(tree, term) or (_comes_first(tree) and self.is_part(items_of(tree.below))):
                raise self.error("a transposed entry is not decided: write (A^\\top)_{ij}, or A_{ji}", tree)
        return self.transposed(tree.span, term) if turned else term

    def _transposed_part(self, tree: Scripted, above: Tree | None) -> Term:
        r"""``(A B)^\top_{ij}``, an entry of the transpose, or ``(A B)_{i}^\top``, a row that is turned."""
        assert tree.below is not None
        whole = self.term(tree.base)
        if len(self.form(whole).core) < 2 or above is not None:
            part = self._without_turn(replace(tree, above=above))
            return self._without_turn(tree) if self._is_power(tree, part) else self.transposed(tree.span, part)
        if not _comes_first(tree):
            part = self._without_turn(replace(tree, above=None))
            if not self.form(part).is_scalar:
                return self.transposed(tree.span, part)
        elif not self._is_power(tree, whole):
            part = self.entry_of(tree, self.transposed(tree.base.span, whole), items_of(tree.below))
            if self.form(part).is_scalar:
                return part
        shown = self.shown(tree.base)
        raise self.error(
            f"whether the whole or its part is transposed is not decided: write ({shown}^\\top)_{{ij}}, or "
            f"({shown}_{{i, :}})^\\top",
            tree,
        )

    def _is_power(self, tree: Scripted, term: Term) -> bool:
        """Whether ``^T`` is a power of a scalar; of a square matrix it is not decided where T is declared."""
        if isinstance(tree.base, Number) and tree.base.digits == "1" and not tree.base.bold:
            raise self.undecided(r"a transposed 1 is no number: write ones as \mathbf{1}^\top", tree)
        letter = next((x for x in parts_of(tree.above) if _is_plain_turn(x)), None) if tree.above is not None else None
        if letter is None:
            return False
        self.shapes.solve()
        form = term.slot.form
        declared = self.names.find(letter) is not None or key_of(letter) in {*self.letters, *self.ranges}
        if form is not None and form.is_scalar:
            if not declared:
                raise self.undecided("^T of a scalar is not decided: declare T, or leave it out", tree)
            if isinstance(tree.base, Symbol) and form.labels:
                raise self.undecided(
                    "a power of an entry or its transpose is not decided: write (A_{ij})^{T}, or A_{ji}", tree
                )
            return True
        square = form is not None and len(form.core) == 2 and same_size(*map(self.shapes.size, form.core))
        if declared and square:
            raise self.undecided(r"whether ^T is a power is not decided, as T is declared: write ^\top", tree)
        return False

    def _is_entry(self, tree: Scripted, term: Term) -> bool:
        """Whether a name with a subscript is one number of a matrix."""
        form = term.slot.form
        return form is not None and form.is_scalar and tree.below is not None and len(items_of(tree.below)) > 1

    def _without_transposition(self, tree: Scripted) -> tuple[Tree | None, bool]:
        r"""The superscript before ``\top``, and whether there is one; T is one unless it is a power."""
        above = tree.above
        parts = above.factors if isinstance(above, Product) and not any(above.signs) else (above,)
        last = parts[-1]
        if isinstance(last, Total) and len(last.terms) == 1 and last.terms[0][0] == "−" and is_turn(last.terms[0][1]):
            return Total(last.span, (("−", Number(last.span, "1")),)), True
        if not is_turn(last) or self.names.find(tree) is not None:
            return above, False
        if len(parts) == 1:
            return None, True
        rest = parts[:-1]
        return (rest[0] if len(rest) == 1 else Product(tree.span, rest, ("",) * (len(rest) - 1))), True

    def _without_turn(self, tree: Scripted) -> Term:
        if tree.below is tree.above is None and not tree.primes:
            return self.term(tree.base)
        base = tree.base
        if not isinstance(base, Symbol):
            return self._scripted_part(tree)
        entry = self.names.find(tree)
        if entry is not None:
            return self.entry(tree, entry)
        found = self.names.family(tree)
        if found is not None:
            if not all(map(self.is_place, found[1])):
                return self.unknown(tree)
            return self.indexed_by(tree, found[0].value, list(found[1]), tree)
        entries = self._of_entries(tree)
        if entries is not None:
            return entries
        if self.is_derivative(tree):
            return self._without_turn(tree)
        if tree.above is not None:
            if self._is_head_in_part(tree):
                return self._part_of_head(tree)
            lower = replace(tree, above=None)
            if tree.below is not None and len(items_of(tree.below)) > 1 and not isinstance(tree.above, Fence):
                if isinstance(tree.above, Total) or tree.above.span.start < tree.below.span.start:
                    raise self.error("a power of an entry is not decided: write (A_{ij})^2, or (A^2)_{ij}", tree)
            inside = self._without_turn(lower) if tree.below is not None or tree.primes else None
            if inside is None and self._is_exponential(base):
                return self.exponential(tree.span, self.term(tree.above))
            return self.raised(tree, inside or self.term(base), tree.above)
        return self._with_index(tree, base)

    def _of_entries(self, tree: Scripted) -> Term | None:
        """``f_i^{(1)}`` of a name with a superscript that is defined by its entries, or is declared as it is."""
        if tree.above is None or tree.below is None:
            return None
        whole = replace(tree, below=None)
        entry, items = self.names.find(whole), list(items_of(tree.below))
        if entry is None or not isinstance(entry.value, Tensor) or not all(map(self.is_place, items)):
            return None
        told = len(self.names.letters.get(key_of(whole), ())) or entry.value.rank
        return self.indexed_by(tree, entry.value, items, tree) if len(items) == told else None

    def _is_exponential(self, base: Symbol) -> bool:
        if base.letters != "e":
            return False
        if base.style != "upright" and self.names.find(base) is not None:
            raise self.error(r"e is declared, and is the base of exponentials too: write \exp(...)", base)
        return True

    def _with_index(self, tree: Scripted, base: Symbol) -> Term:
        """A name that is declared without its subscript: an entry or a row of it."""
        bare: Tree = Scripted(tree.span, base, None, None, tree.primes) if tree.primes else base
        entry = self.names.find(bare)
        if tree.below is None:
            return self.named(tree, base)
        if base.letters == "I" and entry is None and not self._is_of_identity(items_of(tree.below)):
            return self._identity(tree, self.size_of(tree.below))
        if base.letters in ("δ", "I") and entry is None and len(items_of(tree.below)) == 2:
            return self._delta(tree, items_of(tree.below))
        if entry is None and key_of(tree) in self.letters:
            return self.named(tree, base)
        if entry is None or not isinstance(entry.value, Tensor):
            return self.unknown(tree)
        self.use(entry, tree)
        items = items_of(tree.below)
        if self.is_part(items) or (len(items) == entry.value.rank and self.has_numbers(items)):
            return self.entry_of(tree, self._leaf(tree.span, entry.value), items)
        if len(items) == entry.value.rank and self.is_calculated(items):
            return self.entry_of(tree, self._leaf(tree.span, entry.value), items)
        if len(items) > entry.value.rank or not all(map(self.is_place, items)):
            return self.unknown(tree)
        return self.indexed_by(tree, entry.value, list(items), tree)

    def _is_of_identity(self, items: tuple[Tree, ...]) -> bool:
        """Whether ``I_{ij}`` is an entry: its indices are no sizes."""
        return len(items) == 2 and all(self.is_place(item) and self.names.find(item) is None for item in items)

    def _delta(self, tree: Scripted, items: tuple[Tree, ...]) -> Term:
        """1 where two indices are one, else 0."""
        if not all(map(self.is_place, items)):
            return self.unknown(tree)
        with self.bound([key_of(item) for item in items if key_of(item) and key_of(item) not in self.letters]):
            a, b = (self.term(item) for item in items)
        return self.entrywise(tree.span, a, b, equal, sympy.KroneckerDelta, "the indices", scalars=True)

    # --- powers ---

    def raised(self, tree: Scripted, base: Term, exponent: Tree) -> Term:
        """A power, an inverse, or one head of several."""
        if isinstance(exponent, Fence) and exponent.left == "(" and len(exponent.items) == 1:
            return self._head(tree, base, exponent.items[0])
        if isinstance(exponent, Prefix) and exponent.sign == "⊙":
            return self._power(tree.span, base, self.term(exponent.operand), entrywise=True)
        if isinstance(exponent, Mark):
            raise self.error(f"what ^{exponent.sign} means here is not decided: declare {self.shown(tree)}", tree)
        form = self.form(base)
        if not form.is_scalar:
            return self._matrix_power(tree, base, exponent, form)
        return self._power(tree.span, base, self.term(exponent), entrywise=False)

    def _matrix_power(self, tree: Scripted, base: Term, exponent: Tree, form: Form) -> Term:
        number = self.value(self.term(exponent)) if isinstance(exponent, (Number, Total)) else None
        square = form.rows is not None and form.cols is not None and self.shapes.unify(form.rows, form.cols)
        if number == -1 and square:
            return self.kept(tree.span, base, lambda: _inverse(self.tensor(base)))
        if square and isinstance(number, sympy.Integer) and 1 < number <= 8:
            out = base
            for _ in range(int(number) - 1):
                out = self.multiplied(tree.span, out, base)
            return out
        raise self.error(
            f"a power of {self.shapes.shown(form)} is not decided: write entries as X^{{\\odot 2}}, an inverse of a "
            "square matrix as X^{-1}",
            tree,
        )

    def _power(self, span: Span, base: Term, exponent: Term, entrywise: bool) -> Term:
        if not entrywise and not self.form(exponent).is_scalar:
            raise self.error(
                "an exponent that is a matrix is not decided: write X^{\\odot Y} for powers of entries", span
            )

        def of_scalars(x: Any, y: Any) -> Any:
            problem = power_problem(x, y)
            if problem:
                raise self.error(problem, span)
            return self.checked(x**y, span)

        return self.entrywise(span, base, exponent, power, of_scalars, "the power", scalars=True)

    def exponential(self, span: Span, exponent: Term) -> Term:
        """``e`` to a scalar."""
        if not self.form(exponent).is_scalar:
            raise self.error(r"e to a matrix is not decided: write \exp(X) for the exponentials of its entries", span)
        return self.kept(span, exponent, lambda: exponential(self.value(exponent)))

    def _head(self, tree: Scripted, base: Term, index: Tree) -> Term:
        """``Q^{(h)}``: the first axis is that of the heads."""
        letter = self.index_letter(index)
        value = self.value(base)
        told = letter in self.ranges or (isinstance(value, Tensor) and str(value.shape[:1]) == f"({letter},)")
        of_heads = isinstance(value, Tensor) and value.rank and (value.rank > 2 or told)
        if not letter or not of_heads or not isinstance(tree.base, Symbol):
            raise self.error(f"{self.shown(tree)} is not declared: {self.names.known()}", tree)
        if self.form(base).labels:
            raise self.error("a head of an entry is not read: declare the name with its superscript", tree)
        reach = self.ranges[letter].size if letter in self.ranges else value.shape[0]
        for size in (reach, self.letters.get(letter, value.shape[0])):
            if not self.shapes.unify(size, value.shape[0]):
                raise self.shape_error(
                    f"{letter} runs over {size}, and {self.shown(tree.base)} has {value.shape[0]}", tree
                )
        form = replace(form_of(value.shape[1:], self.conventions.vectors_are_rows), labels=((letter, value.shape[0]),))
        self.uses_vectors |= value.rank == 2
        return Term(tree.span, Slot(form), lambda: value)

    def _is_head_in_part(self, tree: Scripted) -> bool:
        """``Q^{(a)}_{:, :2}``, of a Q that is declared without scripts."""
        head = isinstance(tree.above, Fence) and tree.above.left == "(" and len(tree.above.items) == 1
        entry = self.names.find(tree.base)
        items = () if tree.below is None else items_of(tree.below)
        calculated = self.is_part(items) or self.is_calculated(items)
        return head and calculated and entry is not None and isinstance(entry.value, Tensor) and not tree.primes

    def _part_of_head(self, tree: Scripted) -> Term:
        entry = self.names.find(tree.base)
        assert isinstance(tree.above, Fence)
        assert tree.below is not None
        assert entry is not None
        self.use(entry, tree)
        head = self._head(replace(tree, below=None), self._leaf(tree.base.span, entry.value), tree.above.items[0])
        return self.entry_of(tree, head, items_of(tree.below))

    # --- what has no name ---

    def _scripted_part(self, tree: Scripted) -> Term:
        """A number, something between fences, or the value of a function, with scripts."""
        base, below, above = tree.base, tree.below, tree.above
        if tree.primes:
            raise self.error("a prime stands at a name", tree)
        if isinstance(base, Number) and below is not None:
            inside = self._filled(tree, base, below)
        elif below is not None:
            inside = self._part_at(tree, base, below)
        else:
            inside = self.term(base)
        if above is None or self._is_binder(below):
            return inside
        self._check_power_of_part(tree, inside)
        return self.raised(tree, inside, above)

    def _check_power_of_part(self, tree: Scripted, part: Term) -> None:
        """That a power is not of an entry, where it may be of the matrix that has the entry."""
        above = tree.above
        if isinstance(tree.base, Number) or not _is_at_places(tree.below) or isinstance(above, (Prefix, Fence)):
            return
        of_entry = self.form(part).is_scalar and len(self.form(self.term(tree.base)).core) > 1
        if of_entry and (isinstance(above, Total) or _comes_first(tree)):
            shown, power = self.shown(tree.base), self.shown(above) if above is not None else ""
            raise self.error(
                f"a power of an entry is not decided: write ({shown}^{{{power}}})_{{ij}}, or "
                f"({shown}_{{ij}})^{{{power}}}",
                tree,
            )

    def _filled(self, tree: Tree, base: Number, below: Tree) -> Term:
        r"""``\mathbf{1}_{n}``, ``\mathbf{1}_{T \times d}``, ``0_{n}``."""
        if base.digits not in ("0", "1") or (base.digits == "1" and not base.bold):
            raise self.error("a subscript stands at a name", tree)
        factors = below.factors if isinstance(below, Product) and set(below.signs) == {"×"} else (below,)
        shape = tuple(map(self.size_of, factors))
        x = (ones if base.digits == "1" else zeros)(*shape)
        return self.of_tensor(tree.span, x, x.rank == 1 and self.conventions.vectors_are_rows)

    def _is_binder(self, below: Tree | None) -> bool:
        return isinstance(below, Relation)

    def _part_at(self, tree: Scripted, base: Tree, below: Tree) -> Term:
        r"""``[f(i, j)]_{ij}``, which binds its indices, or an entry of what has no name, ``(Q K^\top)_{ij}``."""
        if isinstance(below, Relation):
            return self._family(tree, base, below)
        items = list(items_of(below))
        ends = _ends_of_indices(items)
        if ends:
            assert isinstance(items[0], Slice)
            assert items[0].parts[0] is not None
            items = list(items_of(items[0].parts[0]))
        letters = [self.index_letter(item) for item in items]
        binds = isinstance(base, Fence) and base.left == "[" and len(base.items) == 1
        if binds and all(letters) and not self.bound_letters & set(letters):
            with self.bound(letters):
                self._end_indices(ends)
                inside = self.term(base)
                if self.form(inside).is_scalar:
                    if len(set(letters)) < len(letters):
                        raise self.undecided("an index twice has one axis: write two, as [x_i y_j]_{ij}", tree)
                    for letter in letters:
                        if letter not in self.firsts:
                            self.firsts[letter] = sympy.Integer(self.names.first_place)
                            self.assumed.add(letter)
                    return self.collected(tree.span, inside, letters, {le: self.letters[le] for le in letters})
        inside = self.term(base)
        if binds and all(letters) and any(map(self.shapes.is_one, self.form(inside).core)):
            raise self.undecided("an index of what has one entry there is not decided: it may say how often", tree)
        return self.entry_of(tree, inside, items)

    def _end_indices(self, ends: Sequence[Relation]) -> None:
        r"""Has indices run as far as ``a < h`` says, counted from 0, or ``a \le h``, counted from 1."""
        for end in ends:
            letter, first = key_of(end.sides[0]), sympy.Integer(end.signs[0] == "≤")
            if letter not in self.letters or not self.shapes.unify(self.letters[letter], self.size_of(end.sides[1])):
                raise self.error(f"{self.shown(end)} is no range of an index here", end)
            self.set_base(int(first), end)
            self.firsts.setdefault(letter, first)

    def _family(self, tree: Scripted, base: Tree, below: Relation) -> Term:
        """``(f(i))_{i=1}^{n}``: a column of the values."""
        letter = key_of(below.sides[0])
        if below.signs != ("=",) or not letter or tree.above is None:
            raise self.error("a family is written as (...)_{i=1}^{n}", tree)
        first = self.size_of(below.sides[1])
        size = sympy.expand(self.size_of(tree.above) - first + 1)
        self.set_base(0 if first == 0 else 1, tree)
        with self.bound([letter]):
            self.firsts[letter] = first
            self.shapes.unify(self.letters[letter], size)
            inside = self.term(base)
            if not self.form(inside).is_scalar:
                raise self.error("a family of vectors is not read: write a matrix", tree)
            return self.collected(tree.span, inside, [letter], {letter: self.letters[letter]})

    def repeated(self, x: Term, letters: Sequence[str]) -> Term:
        """The same for all places of the indices that it has not, which have ranges."""
        form = self.form(x)
        told = dict(form.labels)
        sizes = {**{letter: self.ranges[letter].size for letter in letters if letter not in told}, **told}
        full = replace(form, labels=tuple(sorted(sizes.items())))

        def make() -> Tensor:
            whole = self.shapes.resolved(full)
            return broadcast_to(spread(self.tensor(x), self.form(x), whole, core=True), whole.axes)

        return Term(x.span, Slot(full), make, (x,))

    def collected(self, span: Span, x: Term, letters: list[str], sizes: dict[str, Any]) -> Term:
        """A scalar of indices as a vector or matrix: the indices are its rows and columns."""
        if len(letters) > 4:
            raise self.error("entries by more than four indices are not read", span)
        form = self.form(x)
        rest = tuple((letter, size) for letter, size in form.labels if letter not in letters)
        self.uses_parts |= len(letters) == 1
        core = form_of([sizes[letter] for letter in letters], self.conventions.parts_are_rows)
        out = replace(core, labels=rest)

        def make() -> Tensor:
            full = Form(labels=tuple(sorted({**dict(form.labels), **sizes}.items())))
            full = Form(tuple((le, self.known_size(size, f"the index {le}", span)) for le, size in full.labels))
            value = self.value(x)
            if isinstance(value, Tensor):
                y = broadcast_to(spread(value, self.form(x), full, core=False), full.axes)
            else:
                y = self.by_index(value, full, span)
            have = [letter for letter, _ in full.labels]
            order = [have.index(letter) for letter in (*(le for le, _ in rest), *letters)]
            return transpose(y, tuple(n - len(have) for n in order)) if order != sorted(order) else y

        return Term(span, Slot(out), make)


def _ends_of_indices(items: Sequence[Tree]) -> list[Relation]:
    """What stands behind a colon in ``_{a i j : a < h, j < d}``."""
    first = items[0] if items else None
    if not isinstance(first, Slice) or len(first.parts) != 2 or first.parts[0] is None:
        return []
    told = [first.parts[1], *items[1:]]
    ends = [x for x in told if isinstance(x, Relation) and len(x.signs) == 1 and x.signs[0] in "<≤"]
    return ends if len(ends) == len(told) else []


def _is_at_places(below: Tree | None) -> bool:
    """Whether a subscript says where a part stands."""
    return below is not None and not isinstance(below, Relation)


def _comes_first(tree: Scripted) -> bool:
    """Whether the superscript is written before the subscript."""
    return tree.above is not None and tree.below is not None and tree.above.span.start < tree.below.span.start


def _is_plain_turn(tree: Tree) -> bool:
    """Whether a superscript is the plain letter T, which may be a power too."""
    return isinstance(tree, Symbol) and tree.letters == "T" and tree.style not in ("upright", "sans")


def _inverse(x: Tensor) -> Tensor:
    """The inverse of a matrix: of the diagonal matrix of a vector, that of its reciprocals."""
    return diag_op(1 / x.inputs[0]) if x.op is diag_op else inv(x)
