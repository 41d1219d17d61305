r"""LaTeX in: a tensor, a scalar, a definition or a claim, or several of these.

What is not declared, and what people read in two ways, is an error that says what to declare or how to write it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias, get_args

from ...core.naming import check_name, fresh_name
from ...core.node import Tensor
from ...errors import NamingError, OperandError, SymattnError, described
from ...ops.broadcasting import broadcast_to
from ...ops.leaves import as_tensor, let
from ...printing.counting import checked_first_index
from ...printing.gradients import Gradients
from ...proof.claims import Claim, compared
from ...proof.engine import prove
from .answers import Declaration, Definition
from .calls import KNOWN
from .declarations import Declarations, abbreviated
from .derived import LAYOUTS
from .lexer import Token, tokens_of
from .names import Names, Range, is_hessian, is_read_at_places, is_square, items_of, key_of, name_of, named_inside
from .parser import INDICES, Parser
from .parts import Parts
from .quantifiers import Quantifier
from .shapes import ClashError, Form, Unknown
from .statements import FOLLOWS, statements
from .terms import Conventions, Term, UndecidedError
from .text import FormulaText
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
GRADIENTS = get_args(Gradients)


def parse_latex(
    text: str,
    names: Mapping[str, Any] | None = None,
    *,
    law: Mapping[Any, Any] | None = None,
    layout: str = "",
    gradients: str = "d",
    first_index: int | None = None,
) -> Any:
    r"""What a formula in LaTeX stands for: a tensor, a SymPy scalar, a Definition, a claim; several make a tuple.

    ``names`` says what its names are: shapes, tensors, scalars, functions, and ranges of indices such as "1..n", which
    make a name like ``q_i`` a family with an axis for i. Shapes decide which product is meant and which way a vector
    lies: a declared vector is a column unless only a row fits. Integrals, limits, products, derivatives by scalars,
    binomials and factorials are worked out, where ``symattn[latex]`` is installed. Raises ParseError, with a caret, for
    what is not LaTeX, not declared, or not decided, and ShapeError where shapes do not fit.

    ``law`` has the laws of random tensors, as for ``sa.variance``; without them a text states them, x \sim
    \mathcal{N}(0, I). ``layout`` is "numerator" or "denominator", where Jacobians do not say by a transpose which way
    they lie. ``gradients="bar"`` takes a bar on a declared name for the derivative by it, as ``sa.latex`` writes
    it; the other spellings are read without being asked for. ``first_index`` is 0 or 1, from where all indices are
    counted, as for ``sa.latex``; without it sums say so, and places that are numbers are counted from 0. All that is
    read is listed in docs/reading_latex.md.

    >>> import symattn as sa
    >>> T, S, d, e = sa.sizes("T S d e")
    >>> O = sa.parse_latex(r"\mathrm{softmax}(Q K^\top / \sqrt{d}) V", {"Q": (T, d), "K": (S, d), "V": (S, e)})
    >>> print(O)
    softmax(Q @ K.T / sqrt(d)) @ V
    """
    source = FormulaText(text)
    table = Names({} if names is None else names)
    table.laws, table.layout = {} if law is None else dict(law), layout
    if first_index is not None:
        table.first_index = checked_first_index(first_index, "parse_latex")
        table.bases.add(table.first_index)
    if layout not in ("", *LAYOUTS):
        raise OperandError(f"a layout is {' or '.join(LAYOUTS)}, not {described(layout)}")
    tokens = _spelled(source, table, gradients)
    parts, local = _ranges_taken(source, table, statements(source, tokens))
    parts = _shapes_below(source, table, parts)
    table.heads = _heads(parts)
    found = _in_order(source, table, parts, local)
    _check_implications(source, tokens, parts, found)
    answers = [answer for part in found for answer in part]
    return answers[0] if len(answers) == 1 else tuple(answers)


def _spelled(text: FormulaText, names: Names, gradients: str) -> list[Token]:
    """The tokens, with bars for derivatives as differentials where that is asked for."""
    if gradients not in GRADIENTS:
        raise OperandError(f"gradients are spelled {', '.join(GRADIENTS)}, not {described(gradients)}")
    tokens = tokens_of(text)
    if gradients != "bar":
        return tokens
    out, at = list[Token](), 0
    while at < len(tokens):
        token = tokens[at]
        braced = [t.kind for t in tokens[at + 1 : at + 4 : 2]] == ["{", "}"]
        barred = tokens[at + 1 + braced] if token.kind == "accent" else token
        declared = names.find(Symbol(barred.span, barred.mark, barred.style, token.mark)) is not None
        if token.mark == "‾" and token.kind == "accent" and barred.kind == "letter" and not declared:
            out += [Token("letter", "d", token.span, "upright", token.apart), barred]
            at += 4 if braced else 2
        else:
            out.append(token)
            at += 1
    return out


_Local: TypeAlias = dict[int, dict[str, Range]]  # ranges that hold for one statement, by its tokens


def _ranges_taken(text: FormulaText, names: Names, parts: Sequence[list[Token]]) -> tuple[list[list[Token]], _Local]:
    """The statements without those that say where indices run, which is known before what uses them is read.

    Where a letter has another range already, ``(a = 1, \\ldots, h)`` is that of the statement in front alone.
    """
    kept: list[list[Token]] = []
    local: _Local = {}
    for part in parts:
        quantifier = Quantifier(text, names, part)
        tree = quantifier.tree()
        if tree is None:
            kept.append(part)
            continue
        quantifier.declare(tree, _Statement(text, names, quantifier.tokens).size)
        if quantifier.local:
            if not kept:
                raise text.error("a range of an index stands behind what it is of", tree.span)
            local[id(kept[-1])] = quantifier.local
    return kept, local


def _shapes_below(text: FormulaText, names: Names, parts: list[list[Token]]) -> list[list[Token]]:
    """The statements without rows that only say the shapes of the factors above them, which are checked."""
    kept: list[list[Token]] = []
    for part in parts:
        row = _shape_row(text, part)
        if row is None or not kept:
            kept.append(part)
        else:
            _Statement(text, names, kept[-1]).check_factors(row)
    return kept


def _heads(parts: Sequence[Sequence[Token]]) -> frozenset[str]:
    """The letters that stand as heads, ``Q^{(a)}``, and nowhere else."""
    heads, others = set[str](), set[str]()
    for part in parts:
        named = False  # within the braces of an environment
        for n, token in enumerate(part):
            named = token.mark in (r"\begin", r"\end") or (named and token.kind != "}")
            around = [t.mark for t in (*part[max(n - 3, 0) : n], *part[n + 1 : n + 2])]
            if token.kind == "letter" and not named:
                (heads if around == ["^", "{", "(", ")"] else others).add(token.mark)
    return frozenset(heads - others)


def _shape_row(text: FormulaText, part: Sequence[Token]) -> list[Fence] | None:
    """``(T, D) (D, e)``: shapes one beside the other."""
    if any(token.kind not in ("open", "close", "letter", "word", "number", "_", "{", "}", "sign") for token in part):
        return None
    tree = Parser(text, part, lambda head: False).read()
    fences = [f for f in tree.factors if isinstance(f, Fence)] if isinstance(tree, Product) else []
    whole = isinstance(tree, Product) and len(fences) == len(tree.factors) and not any(tree.signs)
    return fences if whole and all(f.left == "(" and len(f.items) == 2 for f in fences) else None


def _in_order(text: FormulaText, names: Names, parts: Sequence[Sequence[Token]], local: _Local) -> list[list[Any]]:
    """The answers of all statements: one that needs what a later one defines waits for it."""
    found: dict[int, list[Any]] = {}
    while len(found) < len(parts):
        first, before = None, len(found)
        for n, part in enumerate(parts):
            try:
                if n not in found:
                    with names.within(local.get(id(part), {})):
                        found[n] = _Statement(text, names, part).answers()
            except SymattnError as problem:
                first = first or problem
        if first is not None and len(found) == before:
            raise first
    return [found[n] for n in range(len(parts))]


def _check_implications(
    text: FormulaText, tokens: Sequence[Token], parts: Sequence[Sequence[Token]], found: Sequence[Sequence[Any]]
) -> None:
    r"""That what ``\implies`` stands behind is a definition, or holds: no claim is made of what is only supposed."""
    for n, (before, after) in enumerate(pairwise(parts)):
        ends, begins = before[-1].span.end, after[0].span.start
        arrow = next((t for t in tokens if t.mark in FOLLOWS and ends <= t.span.start < begins), None)
        if arrow is not None and any(isinstance(answer, Claim) and not prove(answer) for answer in found[n]):
            raise text.error("an implication is not read: write what follows by itself", arrow.span)


class _Statement(Declarations):
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
            elif sign in _CLAIMED:
                made.append(self._claim(left, sign, right, told))
            else:
                raise self.error(f"{sign} is not read: claims are written by = ≤ ≥ < >", right)
        return made

    # --- definitions and claims ---

    def _defines(self, left: Tree) -> bool:
        """Whether the left side of an equation is new."""
        if isinstance(left, Apply):
            base = left.head.base if isinstance(left.head, Scripted) else left.head
            known = moment_of(left.head) or (isinstance(base, Symbol) and base.letters in KNOWN)
            return self.names.find(left.head) is None and not known
        if (name := named_inside(left)) is not left:
            return self.names.find(name) is None
        if isinstance(left, (Symbol, Scripted)) and key_of(left):
            if self.names.find(left) is not None or self.names.family(left) is not None:
                return False
            return self._of_new_name(left)
        return self._derivative(left) is not None

    def _of_new_name(self, left: Tree) -> bool:
        if not isinstance(left, Scripted):
            return True
        bare = Scripted(left.span, left.base, None, left.above, left.primes)
        plainly = [bare if left.above is not None or left.primes else left.base, *([] if left.primes else [left.base])]
        entries = [self.names.find(tree) for tree in plainly]
        return not any(e is not None and isinstance(e.value, Tensor) for e in entries)

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
            raise self.error("the derivative by a transpose is not defined: say what the one by the name itself is", left)
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
        if derivative is None and isinstance(value, Tensor) and value.rank:
            self.check_no_power(named_inside(left))
        value = reader.with_axes_of_one(term, value, shape)
        if is_square(left) and isinstance(value, Tensor) and value.rank:
            self.check_new(left)
        self._check_shape(value, shape, len(order), right)
        entry = self.names.find(name_tree) if key_of(name_tree) and derivative is None else None
        if entry is not None and isinstance(entry.value, Tensor):
            self._check_shape(value, entry.value.shape, 0, right)
        return self._defined(name_tree, left, value, parameters, order if indices else ())

    def _check_indices(self, left: Tree, right: Tree, letters: Sequence[str], free: Sequence[str]) -> None:
        """That the left side has the indices that are free on the right, each of them once, and none that is bound."""
        bound = {key_of(x) for part in parts_of(right) if isinstance(part, Large) and part.below for x in parts_of(part.below)}
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
                r"a number beside a vector or matrix is not decided: write \mathbf{1}, c I, or c \mathbf{1} \mathbf{1}^\top",
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
