r"""What one statement says: an expression, a definition, or claims, read under the convention on vectors that fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sympy

from ...core.naming import check_name, fresh_name
from ...core.node import Tensor
from ...errors import NamingError, SymattnError
from ...ops.broadcasting import broadcast_to
from ...ops.leaves import as_tensor, let
from ...proof.claims import compared
from ...proof.engine import prove
from .algebra import behind_partial, differential
from .answers import Declaration, Definition
from .calls import KNOWN
from .declarations import Declarations, abbreviated
from .names import is_hessian, is_read_at_places, is_square, is_starred, items_of, key_of, name_of, named_inside
from .parser import INDICES
from .parts import Parts
from .shapes import ClashError, Form, Unknown
from .terms import Conventions, Term, UndecidedError
from .tree import (
    Apply,
    Fence,
    Fraction,
    Items,
    Large,
    Mark,
    Product,
    Relation,
    Scripted,
    Slice,
    Symbol,
    Total,
    Tree,
    is_turn,
    moment_of,
    parts_of,
)
from .values import as_number, is_condition, spread, with_labels

_CLAIMED = {"=": "=", "≤": "<=", "≥": ">=", "<": "<", ">": ">", "≡": "="}
_CONVENTIONS = tuple(Conventions(*pair) for pair in ((False, False), (False, True), (True, True), (True, False)))


def defined_names(tree: Tree) -> set[str]:
    """What the left side of an equation may define, with and without its indices."""
    if not isinstance(tree, Relation) or tree.signs[0] not in "=≔":
        return set()
    left: Tree | None = named_inside(tree.sides[0])
    if isinstance(left, Apply):
        left = left.head
    elif isinstance(left, Fraction):
        below = behind_partial(left.below)
        left = None if below is None else differential(below)
    elif isinstance(left, Product) and len(left.factors) == 2:
        first, second = left.factors
        nabla = isinstance(first, Scripted) and isinstance(first.base, Mark) and first.base.sign == "∇"
        of = first.below if nabla and isinstance(first, Scripted) else second
        is_d = isinstance(first, Symbol) and first.letters == "d"
        left = differential(of) if (nabla or is_d) and of is not None else None
    bare = replace(left, below=None) if isinstance(left, Scripted) and (left.above or left.primes) else left
    if isinstance(bare, Scripted):
        bare = bare.base
    return {key_of(name) for name in (left, bare) if name is not None} - {""}


class Statement(Declarations):
    """One statement, read by the names and what was defined before it."""

    def answers(self) -> list[Any]:
        tree = self.tree
        if isinstance(tree, Items):
            return self.listed(tree)
        if not isinstance(tree, Relation):
            space = self.space_of(tree)
            return [Declaration("", space)] if space is not None else [self._expression(tree)]
        return self._related(tree)

    # --- relations ---

    def _related(self, tree: Relation) -> list[Any]:
        sides, signs = list(tree.sides), list(tree.signs)
        if signs[0] == ":" and "→" in signs:
            return [self.signature(tree)]
        if signs == ["∼"]:
            return [self.distribution(*sides)]
        shape = None
        known = set(self.names.sizes)
        if signs[-1] in ("∈", ":"):
            if len(signs) == 1 and self._is_new(sides[0]):
                return self.declared(sides[0], sides[1])
            signs.pop()
            shape = self.shape_of(last := sides.pop())
            if shape == "N" and not signs and (size := self.names.sizes.get(key_of(sides[0]))) is not None:
                return [Declaration(name_of(sides[0]), size)]
            if shape is None or shape == "N":
                raise self.error(f"{self.text.part(last.span)} is no shape", last)
            new = {size for key, size in self.names.sizes.items() if key not in known}
            shape = tuple(Unknown(str(size)) if size in new else size for size in shape)
        if not signs:
            return [self._expression(sides[0], shape)]
        if signs[-1] == "≕":
            signs[-1:] = []
            defined = sides.pop()
            return [*self._chain(sides, signs), self._definition(defined, sides[-1], shape)]
        return self._chain(sides, signs, shape)

    def _is_new(self, tree: Tree) -> bool:
        names = abbreviated(tree)
        return all(key_of(name) and self.names.find(name) is None and not self._is_part(name) for name in names)

    def _is_part(self, tree: Tree) -> bool:
        """Whether a name with scripts is an entry, a row or a stretch of what is declared without them."""
        if not isinstance(tree, Scripted) or self._of_new_name(tree):
            return False
        below = () if tree.below is None else items_of(tree.below)
        return isinstance(tree.above, Fence) or all(isinstance(x, Slice) or key_of(x) in INDICES for x in below)

    def _chain(self, sides: list[Tree], signs: list[str], shape: Any = None) -> list[Any]:
        """``a = b = c``: a definition of a where a is new, and claims between the rest."""
        made: list[Any] = []
        for n, sign in enumerate(signs):
            left, right = sides[n], sides[n + 1]
            told = shape if len(signs) == n + 1 else None
            if sign == "≔" or (not n and sign == "=" and self._defines(left)):
                made.append(self._definition(left, right, told))
                if sign == "≔":
                    self._define_declared(left)
            elif sign in _CLAIMED:
                made.append(self._claim(left, sign, right, told))
            else:
                raise self.error(f"{sign} is not read: claims are written by = ≤ ≥ < >", right)
        return made

    # --- definitions and claims ---

    def _define_declared(self, left: Tree) -> None:
        """Has a declared name that ``:=`` defines stand nowhere else: there it might be the one or the other."""
        base = left.base if isinstance(left, Scripted) and self._is_part(left) else left
        entry = self.names.find(base)
        if entry is None or key_of(base) not in self.names.given or not isinstance(entry.value, Tensor):
            return
        self.names.defined_again.add(entry.name)
        if entry.name in self.names.used:
            raise self.error(f"{entry.name} is declared, and defined here: leave it out of names", left)

    def _defines(self, left: Tree) -> bool:
        """Whether the left side of an equation is new."""
        if isinstance(left, Apply):
            base = left.head.base if isinstance(left.head, Scripted) else left.head
            known = moment_of(left.head) or (isinstance(base, Symbol) and base.letters in KNOWN)
            return self.names.find(left.head) is None and self.names.called(left) is None and not known
        if (name := named_inside(left)) is not left:
            return self.names.find(name) is None and self._of_new_name(name)
        if isinstance(left, (Symbol, Scripted)) and key_of(left):
            if self.names.find(left) is not None or self.names.family(left) is not None:
                return False
            return self._of_new_name(left)
        return self._derivative(left) is not None

    def _of_new_name(self, left: Tree) -> bool:
        if not isinstance(left, Scripted):
            return True
        if left.above is not None and not isinstance(left.above, Fence) and self._is_number(left):
            return False  # a power
        words = any(isinstance(script, Symbol) and len(script.letters) > 1 for script in (left.below, left.above))
        if words or is_starred(left):
            return True
        bare = Scripted(left.span, left.base, None, left.above, left.primes)
        plainly = [bare if left.above is not None or left.primes else left.base, *([] if left.primes else [left.base])]
        entries = [self.names.find(tree) for tree in plainly]
        return not any(e is not None and isinstance(e.value, Tensor) for e in entries)

    def _is_number(self, left: Scripted) -> bool:
        """Whether what a superscript stands at is a number that has a value: its powers are no names."""
        base = left.base if left.below is None else replace(left, above=None)
        entry = self.names.find(base)
        return isinstance(entry.value, sympy.Basic) if entry is not None else key_of(base) == "e"

    def _derivative(self, left: Tree) -> Tree | None:
        """The name of the derivative on a left side, where nobody declared it."""
        reader = Parts(self.text, self.names)
        if reader.is_derived(left):
            return None  # of what is defined, so that it has a value
        if isinstance(left, Product) and is_hessian(left):
            return left
        if isinstance(left, Fraction) and reader.jacobian_letters(left):
            return left
        if isinstance(left, Product):
            factors, _ = reader.gathered(left)
            found = factors[0] if len(factors) == 1 else None
        elif isinstance(left, Fraction):
            found = reader.derivative_of(left)
        else:
            found = None
        return found if found is not None and self._is_derived(found) else None

    def _jacobian_letters(self, left: Tree) -> tuple[str, ...]:
        return Parts(self.text, self.names).jacobian_letters(left) if isinstance(left, Fraction) else ()

    def _letters_of(self, derivative: Tree, left: Tree) -> tuple[str, ...]:
        """The indices of a derivative: of a Jacobian, or of the entry that a loss is differentiated by."""
        is_name = derivative is left or self.names.find(derivative) is not None
        return self._jacobian_letters(left) or (() if is_name else self._index_letters(derivative))

    def _is_derived(self, name: Tree) -> bool:
        bare = name.base if isinstance(name, Scripted) else name
        return bool({key_of(name), key_of(bare)} & self.names.derived)

    def _definition(self, left: Tree, right: Tree, shape: Any) -> Definition:
        derivative = self._derivative(left)
        if isinstance(derivative, Scripted) and is_turn(derivative.above):
            raise self.error("a derivative by a transpose is not defined: say what the one by the name itself is", left)
        if derivative is None:
            left, right, shape = self._solved(left, right, shape)
            for name in {left, named_inside(left)} - ({left} if is_square(left) else set()):
                self.check_new(name)
        name_tree = derivative or left
        parameters: tuple[str, ...] = ()
        if isinstance(left, Apply):
            name_tree = left.head
            parameters = tuple(self.text.part(argument.span) for argument in left.arguments)
        letters = self._index_letters(left) if derivative is None else self._letters_of(derivative, left)
        self._check_no_recursion(left, right)
        reader, term = self._under_conventions(
            lambda r: r.term(right), letters, scalar=len(letters) > 1, where=right, shape=shape
        )
        free = tuple(letter for letter, _ in reader.form(term).labels)
        self._check_no_recursion(left, right, free)
        self._check_indices(left, right, letters, free)
        if set(letters) - set(free) and all(letter in free or letter in reader.ranges for letter in letters):
            term = reader.repeated(term, letters)
            free = tuple(letter for letter, _ in reader.form(term).labels)
        indices = tuple(letter for letter in letters if letter in free)
        if indices and len(indices) != len(letters):
            raise self.error(f"not all indices on the left stand on the right: there are {', '.join(free)}", left)
        places = parts_of(left.below) if isinstance(left, Scripted) and left.below is not None else ()
        if free and not letters and derivative is None and any(key_of(place) in free for place in places):
            raise self.error("the places on the left are not read: write all entries, as W_{ij}", left)
        order = indices or free
        if set(free) != set(order):
            extra = ", ".join(sorted(set(free) - set(order)))
            raise self.error(f"the index {extra} is free on the right, and not on the left", left)
        value = self._value(reader, term, order, entries=bool(indices))
        of_numbers = not isinstance(value, Tensor) or value.rank == len(indices)
        if derivative is None and isinstance(value, Tensor) and value.rank and not (is_square(left) and of_numbers):
            self.check_no_power(named_inside(left))
        value = reader.with_axes_of_one(term, value, shape)
        if is_square(left) and not of_numbers:
            self.check_new(left)
        self._check_shape(value, shape, len(order), right)
        entry = self.names.find(name_tree) if key_of(name_tree) and derivative is None else None
        if entry is not None and isinstance(entry.value, Tensor):
            self._check_shape(value, entry.value.shape, 0, right)
        return self._defined(name_tree, left, value, parameters, order if indices else ())

    def _check_indices(self, left: Tree, right: Tree, letters: Sequence[str], free: Sequence[str]) -> None:
        """That the left side has the indices that are free on the right, each of them once, and none that is bound."""
        limits = [part.below for part in parts_of(right) if isinstance(part, Large) and part.below is not None]
        bound = {key_of(x) for below in limits for x in parts_of(below)}
        if not free and bound.intersection(letters):
            raise self.error("an index on the left is bound by a sum on the right: use another letter there", left)
        if len(set(letters)) < len(letters):
            raise self.error("an index twice on the left says a diagonal only: write all entries, as W_{ij}", left)
        told = {*letters, *map(key_of, parts_of(left))}
        extra = [letter for letter in free if letter not in told]
        if extra:
            raise self.error(
                f"the index {extra[0]} is free on the right, and not on the left: write it there too, or a sum over it",
                left,
            )

    def _check_no_recursion(self, left: Tree, right: Tree, free: Sequence[str] | None = None) -> None:
        """That nothing is defined by what it was a step before: of a declared step, at all places of an index."""
        if not isinstance(left, Scripted) or left.below is None:
            return
        places = {key_of(x) for x in parts_of(left.below)} - {""}
        for part in parts_of(right):
            if not isinstance(part, Scripted) or part.below is None or self.names.family(part) is not None:
                continue
            stepped = any(isinstance(place, Total) for below in (left.below, part.below) for place in items_of(below))
            moved = stepped and places & {key_of(x) for x in parts_of(part.below)}
            known = self.names.find(part) is not None and places.isdisjoint(free or ())
            if moved and not known and key_of(part.base) == key_of(left.base):
                raise self.error(
                    f"{self.text.part(left.span)} by {self.text.part(part.span)} is a recurrence, which is not read: "
                    "write it by sa.scan, or declare all names of one step by shapes of their own",
                    part,
                )

    def _solved(self, left: Tree, right: Tree, shape: Any) -> tuple[Tree, Tree, Any]:
        r"""``W^\top = B`` as ``W = B^\top``; any other equation as it is."""
        if not isinstance(left, Scripted) or not isinstance(left.above, Mark) or self.names.find(left) is not None:
            return left, right, shape
        if not isinstance(left.base, Symbol) or len(self._index_letters(left)) > 1 or left.above.sign != "⊤":
            return left, right, shape
        plain = left.base if left.below is None and not left.primes else replace(left, above=None)
        turned = shape[::-1] if isinstance(shape, tuple) and len(shape) == 2 else shape
        return plain, Scripted(right.span, right, None, left.above), turned

    def _defined(
        self, tree: Tree, left: Tree, value: Any, parameters: tuple[str, ...], indices: tuple[str, ...]
    ) -> Definition:
        base = named_inside(tree)
        places = items_of(tree.below) if isinstance(tree, Scripted) and tree.below is not None else ()
        if base is tree and isinstance(tree, Scripted) and any(key_of(place) in indices for place in places):
            base = replace(tree, below=None) if tree.above is not None or tree.primes else tree.base
        name = name_of(base) if key_of(base) else self.text.part(left.span)
        if isinstance(value, Tensor):
            value = self._with_name(name, value, key_of(base))
        if key_of(base) and not parameters and not is_condition(value):
            self.names.define(base, value, indices)
        if isinstance(left, Apply) and isinstance(value, Tensor):
            self.names.define_call(left, value)
        return Definition(name, value, parameters, indices)

    def _with_name(self, name: str, value: Tensor, key: str) -> Tensor:
        """The tensor under its name, where symattn allows it and neither a size nor another name has it."""
        try:
            return let(fresh_name(check_name(name), self.names.taken(key)), value)
        except NamingError:  # such as Self-Attention
            return value

    def _index_letters(self, left: Tree) -> tuple[str, ...]:
        """The indices on the left side of a definition: ``S_{ij} = ...``, ``A^{(i)} = ...``."""
        if not isinstance(left, Scripted):
            return ()
        reader = Parts(self.text, self.names)
        below = () if left.below is None else items_of(left.below)
        letters = [reader.index_letter(item) for item in below]
        if not all(letters) or not all(reader.is_place(item) for item in below):
            letters = []
        above = left.above
        if isinstance(above, Fence) and len(above.items) == 1 and key_of(above.items[0]) in self.names.indices:
            letters.append(key_of(above.items[0]))
        return tuple(letters)

    def _claim(self, left: Tree, sign: str, right: Tree, shape: Any) -> Any:
        letters = self._index_letters(left)

        def both(reader: Parts) -> Term:
            a, b = reader.term(left), reader.term(right)
            zero = [reader.form(t).is_scalar and not reader.form(t).labels for t in (a, b)]
            plain = any(zero) and not all(zero)
            if plain and sign in "=≡" and reader.form((a, b)[zero.index(False)]).core:
                self._check_zero(reader, (a, b)[zero.index(True)])
            slot = reader.shapes.entrywise(a.slot, b.slot, None, "the two sides", scalars=plain)
            out = Term(right.span, slot, lambda: (a, b))
            return out

        reader, out = self._under_conventions(both, letters, scalar=False, where=right, shape=shape)
        a, b = out.make()
        form = reader.form(out)
        free = {letter for letter, _ in reader.form(a).labels}
        extra = [letter for letter, _ in form.labels if letter not in free]
        if extra and free:
            raise self.error(f"the index {extra[0]} is free on the right, and not on the left", right)
        axes = tuple(reader.known_size(size, reader.shown(right), right.span) for size in form.axes)
        values = []
        for term in (a, b):
            x = reader.tensor(term)
            of_x = reader.form(term)
            values.append(broadcast_to(spread(x, of_x, form, core=True) if of_x.axes else x, axes))
        self._check_shape(reader.with_axes_of_one(out, values[0], shape), shape, len(form.labels), right)
        return compared(values[0], _CLAIMED[sign], values[1])

    def _check_zero(self, reader: Parts, number: Term) -> None:
        """That the number that a vector or matrix is equal to is 0: another one may be meant on a diagonal."""
        value = reader.value(number)
        if isinstance(value, Tensor) or value != 0:
            raise reader.undecided(
                r"a number beside a vector or matrix is not decided: write \mathbf{1} \mathbf{1}^\top, or c I",
                number.span,
            )

    # --- expressions ---

    def _expression(self, tree: Tree, shape: Any = None) -> Any:
        reader, term = self._under_conventions(lambda r: r.term(tree), (), scalar=False, where=tree, shape=shape)
        order = tuple(letter for letter, _ in reader.form(term).labels)
        value = self._value(reader, term, order, entries=False)
        value = reader.with_axes_of_one(term, value, shape)
        self._check_shape(value, shape, len(order), tree)
        return value

    def _value(self, reader: Parts, term: Term, order: Sequence[str], entries: bool) -> Any:
        """A tensor with its labelled axes in an order, or a scalar."""
        value, form = reader.value(term), reader.form(term)
        free = set() if entries else {letter for letter, _ in form.labels}
        for span, letters in reader.mixed:
            if left_over := sorted(letters & free):
                raise reader.error(
                    f"{left_over[0]} is an index of entries here, beside a matrix or vector that is whole: write its "
                    "entries too, as A_{ij}, or say by an index on a left side that there is one for each "
                    f"{left_over[0]}",
                    span,
                )
        if not isinstance(value, Tensor) and not form.labels:
            return value if is_condition(value) else as_number(value)
        x = reader.tensor(term)
        if entries and form.core and all(reader.shapes.is_one(size) for size in form.core):
            x, form = x[(..., *(0 for _ in form.core))], Form(form.labels, form.lead)
        have = [letter for letter, _ in form.labels]
        wanted = Form(tuple((letter, dict(form.labels)[letter]) for letter in order))
        return x if have == list(order) else with_labels(x, have, wanted)

    def _check_shape(self, value: Any, shape: Any, indices: int, tree: Tree) -> None:
        if shape is None:
            return
        found = as_tensor(value).shape[indices:] if not isinstance(value, Tensor) else value.shape[indices:]
        wanted = tuple(shape)
        reader = Parts(self.text, self.names)
        if len(found) != len(wanted) or not all(map(reader.shapes.unify, found, wanted)):
            raise reader.shape_error(f"the shape is {found}, and the formula says {tuple(shape)}", tree)

    def _under_conventions(
        self, build: Any, letters: Sequence[str], scalar: bool, where: Tree, shape: Any
    ) -> tuple[Parts, Term]:
        """The reading under the first convention on vectors that fits; two that fit and differ are an error."""
        first: Exception | None = None
        fits: list[tuple[Parts, Term]] = []
        for convention in _CONVENTIONS:
            if self.names.vectors_are_rows not in (None, convention.vectors_are_rows):
                continue
            if convention.vectors_are_rows and (fits and not (scalar and not self._scalar(*fits[0]))):
                break
            reader = Parts(self.text, self.names, convention)
            reader.given_letters = frozenset(letters)
            try:
                with reader.bound([*letters, *self._free_letters()]):
                    term = build(reader)
                    reader.expect(term, shape)
                self._check_outer(reader, where)
                if not self._makes_numbers_of_matrices(reader):
                    fits.append((reader, term))
            except UndecidedError:
                raise
            except SymattnError as problem:
                first = first or problem
            except ClashError as clash:
                if clash.is_undecided:
                    raise reader.clashing(clash, where) from None
                first = first or reader.clashing(clash, where)
            if not reader.uses_vectors and not reader.uses_parts:
                break
            if not reader.uses_parts and fits:
                break
        if not fits:
            assert first is not None
            raise first
        reader, term = self._decided(fits, scalar, where)
        if reader.uses_vectors:
            self.names.vectors_are_rows = reader.conventions.vectors_are_rows
        return reader, term

    def _check_outer(self, reader: Parts, where: Tree) -> None:
        r"""That ``x^\top y`` is no matrix unless something else in the text says that vectors are rows."""
        rows = reader.uses_vectors and reader.conventions.vectors_are_rows
        if rows and self.names.vectors_are_rows is None and reader.has_outer_product():
            raise self.error(
                r"a vector is a column, and its product with another is a number: write a matrix as x \otimes y", where
            )

    def _makes_numbers_of_matrices(self, reader: Parts) -> bool:
        r"""Whether ``x y^\top``, the matrix of a column and a row, is a number by vectors as rows, and nothing else in
        the text makes them rows."""
        rows = reader.uses_vectors and reader.conventions.vectors_are_rows
        undecided = rows and self.names.vectors_are_rows is None
        return undecided and reader.has_inner_product() and not reader.has_row_before_matrix()

    def _free_letters(self) -> list[str]:
        """The indices that names of this statement have, which may stand for themselves too."""
        found: dict[str, None] = {}
        for part in parts_of(self.tree):
            if isinstance(part, Scripted) and part.below is not None and is_read_at_places(part.base):
                for item in items_of(part.below):
                    is_index = key_of(item).rstrip("′") in INDICES or key_of(item) in self.names.quantified
                    if is_index and self.names.find(item) is self.names.find(part) is None:
                        found[key_of(item)] = None
        return list(found)

    def _scalar(self, reader: Parts, term: Term) -> bool:
        return reader.form(term).is_scalar

    def _agree(self, fits: list[tuple[Parts, Term]]) -> bool:
        """Whether all readings have one value."""
        if len({reader.form(term).is_scalar for reader, term in fits}) > 1:
            return False
        first, *others = (self._tensors(*fit) for fit in fits)
        pairs = [pair for other in others for pair in zip(first, other, strict=True)]
        return all(x is y or bool(prove(x, y)) for x, y in pairs)

    def _tensors(self, reader: Parts, term: Term) -> list[Tensor]:
        """The value of a term, or the values of both sides of a claim."""
        value = reader.value(term)
        return [reader.tensor(part) for part in (value if isinstance(value, tuple) else (term,))]

    def _decided(self, fits: list[tuple[Parts, Term]], scalar: bool, where: Tree) -> tuple[Parts, Term]:
        if scalar:  # an entry is a number where it may be one
            fits = [fit for fit in fits if self._scalar(*fit)] or fits
        if len(fits) == 1:
            return fits[0]
        forms = [reader.form(term) for reader, term in fits]
        if len({str(form.axes) for form in forms}) == 1 and self._agree(fits):
            return fits[0]
        shown = [reader.shapes.shown(form) for (reader, _), form in zip(fits, forms, strict=True)]
        raise self.error(
            f"whether rows are taken as columns ({shown[0]}) or as rows ({shown[-1]}) is not decided: "
            r"write an inner product as \langle q_i, k_j \rangle, or declare the vectors",
            where,
        )
