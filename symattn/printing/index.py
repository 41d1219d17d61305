r"""Printing in index style: one entry, with its sums and their limits, ``Z_{i j} = \sum_{k=0}^{d-1} Q_{i k} K_{j k}``.

What is printed is the entry formula of each operation, so it needs no notation of its own. The last two axes of a
left side have the indices i and j, axes in front of them a, b, c, and an axis of size 1 has none; indices that are
summed are k, l, m, ... None of them is the name of anything else. A condition between brackets is 1 where it holds and
else 0. A name of several parts keeps together: ``(W_{q})_{i j}``, ``\mathrm{mask}_{i j}``, ``\mathrm{d}Q_{i j}``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import sympy
from sympy.printing.latex import LatexPrinter

from ..core.naming import counted, free_letters, latex_name
from ..core.node import Tensor, topological
from ..core.sizes import Shape
from ..errors import OperandError
from ..graph.entries import BOUND_LETTERS, _expand, entry_size
from ..graph.names import symbol_names
from ..ops.broadcasting import sum_op
from ..ops.gather import reads_outside, shift_op
from ..ops.index import index_op
from ..ops.layout import concat_op, swaps_last_two
from ..ops.leaves import constant, definition, indexed, is_named
from ..ops.notation import Binding
from ..scalars.formulas import Choice, Max, Min
from .align import Row

LONGEST = 200  # parts of one printed entry; a larger one is asked to be named in parts
_INNER, _OUTER = "ij", "abcfghostuvwxyz"
_TALL = re.compile(r"\\(sum|max|min|frac|begin|left)")  # what does not fit into an exponent


def spelled(name: str) -> str:
    r"""A name in LaTeX, the d of a differential and words upright, so that it is never read as a product."""
    written = latex_name(name)
    if re.match(r"d([A-Za-z](?![A-Za-z])|\\)", written):
        return r"\mathrm{d}" + written[1:]
    return _upright(written)


def _upright(written: str) -> str:
    word = re.match(r"[A-Za-z]{2,}", written)
    return rf"\mathrm{{{word[0]}}}{written[word.end() :]}" if word else written


def moves_entries(x: Tensor) -> bool:
    """Whether a node moves entries in a way for which matrix notation has no sign, or is a slice or a sum of such."""
    if _lies_along_rows(x) or (x.op is shift_op and reads_outside(x)):
        return True
    while x.op in (index_op, sum_op):
        x = x.inputs[0]
    return x.op.spreads and not swaps_last_two(x.params.get("order", ()))


def _lies_along_rows(x: Tensor) -> bool:
    """Whether a vector meets the rows of a matrix, where matrix notation would be read as columns."""
    return x.rank > 1 and x.op.broadcasts and any(y.rank == 1 and y.shape != (1,) for y in x.inputs)


def _is_entrywise_vector(x: Tensor) -> bool:
    return x.rank == 1 and x.op.broadcasts


class Operands(Protocol):
    """The printer in matrix style: it writes what is read in an entry."""

    names: Mapping[Tensor, str]

    @property
    def symbols(self) -> set[str]: ...

    def name(self, node: Tensor) -> str: ...

    def operand(self, x: Tensor, at_least: int) -> str: ...


def by_entry(p: Operands, x: Tensor) -> str:
    r"""A node that moves entries as ``\left[X_{i, a d + j}\right]_{a i j}``, within matrix style."""
    moved, read = [x], dict[Tensor, str]()
    while moved:
        for y in moved.pop().inputs:
            if y in p.names:
                read[y] = p.name(y)
            elif y.op.spreads or y.op in (concat_op, index_op) or moves_entries(y) or _is_entrywise_vector(y):
                moved.append(y)
            elif y.op is not constant:
                read[y] = rf"\left({p.operand(y, Binding.OR)}\right)"
    names = {**p.names, **{y: f" {n}" for n, y in enumerate(read)}}
    symbols = p.symbols | symbol_names([x], p.names)
    return IndexPrinter([x, *read], names, {names[y]: text for y, text in read.items()}, symbols).refer(x)


class IndexPrinter:
    """Writes tensors by one entry each; named ones are read by their names."""

    def __init__(
        self,
        roots: Sequence[Tensor],
        names: Mapping[Tensor, str],
        spelling: Mapping[str, str],
        symbols: Collection[str] | None = None,
    ) -> None:
        self.names = names
        symbols = symbol_names([*roots, *names]) if symbols is None else symbols
        taken = {*names.values(), *spelling.values(), *symbols}
        pool = [c for c in _INNER + _OUTER if c not in taken]
        self.letters = [*pool, *(c for n in range(1, 20) if (c := f"i_{n}") not in taken)]
        shapes = {name: node.shape for node, name in names.items()}
        self.scalars = _Scalars(spelling, shapes, taken, self.letters)

    def write(self, x: Tensor) -> str:
        """``left = right`` of a named intermediate, the left side of a named tensor, and the entry of any other."""
        if not is_named(x):
            return self._entry(x)
        if definition(x) is x:
            return self._left(self.names[x], x)
        return f"{self._left(self.names[x], x)} = {self._entry(definition(x))}"

    def row(self, name: str, x: Tensor, reason: str) -> Row:
        """The line ``name = x``; no name continues the line above."""
        return Row(self._left(name, x) if name else "", self._entry(x), reason)

    def refer(self, x: Tensor) -> str:
        """The whole tensor: its name, or its entries between brackets."""
        if x in self.names:
            return self.scalars.name(self.names[x])
        below = self.scalars.script([i for i in self._index(x) if i != 0])
        return rf"\left[{self._entry(x)}\right]" + (f"_{{{below}}}" if below else "")

    def scalar(self, value: Any) -> str:
        """A SymPy scalar or a size."""
        return self.scalars.doprint(value)

    def _left(self, name: str, x: Tensor) -> str:
        return self.scalars.entry_of(name, x.shape, self._index(x))

    def _index(self, x: Tensor) -> tuple[Any, ...]:
        """One letter an axis; of one of size 1 there is only entry 0."""
        inner, outer = self.letters[:2], self.letters[2:]
        letters = [*outer[: max(0, x.rank - 2)], *inner[: x.rank]]
        return tuple(
            sympy.S.Zero if size == 1 else sympy.Symbol(letter, integer=True, nonnegative=True)
            for size, letter in zip(x.shape, letters, strict=True)
        )

    def _entry(self, x: Tensor) -> str:
        index = self._index(x)
        if x in self.names:
            return self.scalars.doprint(indexed(self.names[x], index))
        size = entry_size(x, self.names)
        if size > LONGEST:
            shown = counted(size)
            raise OperandError(f"an entry of {x.brief()} has {shown} parts, too many to read: name parts by sa.let")
        order = [node for node in topological([x], stop=self.names) if node in self.names]
        inside = {sympy.Lt(i, size): sympy.true for i, size in zip(index, x.shape, strict=True)}
        formula = sympy.sympify(_expand(x, index, self.names)).xreplace(inside)
        return self.scalars.ordered(formula, [self.names[node] for node in order])


class _Scalars(LatexPrinter):  # type: ignore[misc, unused-ignore]
    """SymPy's printer of scalars, with entries by the spellings of names and factors in the order of the tensor."""

    def __init__(
        self, spelling: Mapping[str, str], shapes: Mapping[str, Shape], taken: Collection[str], letters: Collection[str]
    ) -> None:
        super().__init__()
        self.spelling, self.shapes, self.letters = spelling, shapes, letters
        self.taken = {*taken, *letters}
        self.plain_e, self.plain_delta = "e" not in taken, "delta" not in taken
        self.inline = False
        self.ordered(sympy.S.Zero, ())

    def ordered(self, formula: sympy.Expr, order: Sequence[str]) -> str:
        """The formula with the factors and terms of each product and sum as the names come in ``order``."""
        self.place = {name: number for number, name in enumerate(order)}
        self.bound: dict[sympy.Dummy, str] = {}
        self.free = free_letters(BOUND_LETTERS, self.taken)
        return str(self.doprint(formula))

    # --- names and indices ---

    def name(self, name: str) -> str:
        """A tensor's name, as a whole."""
        return self.spelling.get(name) or spelled(name)

    def entry_of(self, name: str, shape: Shape, index: Sequence[Any]) -> str:
        """``Q_{i k}``; axes of size 1 have no index."""
        below = [i for i, size in zip(index, shape, strict=True) if size != 1]
        base = self.name(name)
        if not below:
            return base
        apart = re.match("[A-Za-z]{2}", base) or (re.search("[_^]", base) and not base.startswith(r"\left"))
        return (f"({base})" if apart else base) + f"_{{{self.script(below)}}}"

    def script(self, indices: Sequence[Any]) -> str:
        """Indices side by side if each is one letter, else between commas."""
        written = [self._small(i) for i in indices]
        return (" " if all(re.fullmatch("[A-Za-z]", i) for i in written) else ", ").join(written)

    def _small(self, value: Any) -> str:
        outer, self.inline = self.inline, True
        written = str(self._print(sympy.together(value) if value.is_Add else value))
        self.inline = outer
        return written

    def _print_Indexed(self, expr: Any, exp: str | None = None) -> str:
        name = str(expr.base.label)
        return _raised(self.entry_of(name, self.shapes[name], expr.indices), exp)

    def _print_Symbol(self, expr: Any, style: str = "plain") -> str:
        known = self.spelling.get(expr.name)
        return known or _upright(str(self._deal_with_super_sub(expr.name)))

    def _print_Dummy(self, expr: Any) -> str:
        """A bound index, by the next letter where it is first written; the same one keeps its letter."""
        if expr not in self.bound:
            self.bound[expr] = next(self.free)
        return str(self._deal_with_super_sub(self.bound[expr]))

    def _print_KroneckerDelta(self, expr: Any, exp: str | None = None) -> str:
        i, j = expr.args
        if self.plain_delta:
            return _raised(rf"\delta_{{{self.script((i, j))}}}", exp)
        return _raised(rf"\left[{self._print(i)} = {self._print(j)}\right]", exp)

    # --- sums, choices, functions ---

    def _print(self, expr: Any, **kwargs: Any) -> Any:
        if isinstance(expr, Max | Min):
            return self._limited(rf"\{type(expr).__name__.lower()}", expr)
        if _is_indicator(expr) and self._print_level:
            return _raised(rf"\left[{super()._print(expr.args[0])}\right]", kwargs.get("exp"))
        return super()._print(expr, **kwargs)

    def _print_Sum(self, expr: Any) -> str:
        return self._limited(r"\sum", expr)

    def _limited(self, sign: str, expr: Any) -> str:
        limits = sorted(expr.limits, key=lambda limit: outermost_first(limit[0]))
        below = (f"{self._small(k)}={self._small(low)}" for k, low, _ in limits)
        above = (re.sub(r" ([+-]) ", r"\1", self._small(high)) for _, _, high in limits)
        signs = " ".join(rf"{sign}_{{{b}}}^{{{a}}}" for b, a in zip(below, above, strict=True))
        body = self._print(expr.function)
        loose = expr.function.is_Add or body.startswith("-")
        return rf"{signs} \left({body}\right)" if loose else f"{signs} {body}"

    def _print_Relational(self, expr: Any) -> str:
        """``i < T`` for ``i - 1 < T - 1``: the indices alone on the left."""
        offset = sympy.Add(*(term for term in sympy.Add.make_args(expr.lhs) if not self._is_letter(term)))
        if expr.lhs.is_Add and offset != expr.lhs and not offset.has(sympy.Indexed, sympy.Dummy):
            expr = expr.func(expr.lhs - offset, expr.rhs - offset, evaluate=False)
        return str(super()._print_Relational(expr))

    def _print_ExpBase(self, expr: Any, exp: str | None = None) -> str:
        power = self._print(expr.args[0])
        if self.plain_e and not _TALL.search(power):
            return _raised(f"e^{{{power}}}", exp)
        return _raised(rf"\exp\left({power}\right)", exp)

    _print_exp = _print_ExpBase

    def _print_floor(self, expr: Any, exp: str | None = None) -> str:
        size = ("", "") if self.inline else (r"\left", r"\right")
        return _raised(rf"{size[0]}\lfloor {self._print(expr.args[0])} {size[1]}\rfloor", exp)

    def _print_Mod(self, expr: Any, exp: str | None = None) -> str:
        sides = (f"({self._print(x)})" if x.args else self._print(x) for x in expr.args)
        return _raised(r" \bmod ".join(sides), exp)

    def parenthesize(self, item: Any, level: Any, is_neg: bool = False, strict: bool = False) -> str:
        if isinstance(item, Max | Min | sympy.Mod):
            return rf"\left({self._print(item)}\right)"
        return str(super().parenthesize(item, level, is_neg, strict))

    # --- products and sums, in a readable order ---

    def _print_Mul(self, expr: Any) -> str:
        number, rest = expr.as_coeff_Mul()
        number, rest = (number, rest) if number.is_Rational else (sympy.S.One, expr)
        halves = [sympy.fraction(factor, exact=True) for factor in sympy.Mul.make_args(rest)]
        above = [sympy.Integer(abs(number.p)), *(up for up, _ in halves)]
        below = [sympy.Integer(number.q), *(down for _, down in halves)]
        sign = "-" if number.is_negative else ""
        return sign + self._quotient([f for f in above if f != 1], [f for f in below if f != 1])

    def _quotient(self, above: list[Any], below: list[Any]) -> str:
        if not below:
            return self._product(above)
        if self.inline:
            bottom = self._product(below)
            return f"{self._product(above, alone=False) or 1} / " + (f"({bottom})" if " " in bottom else bottom)
        bodies = [f for f in above if _extends(f)] if not any(f.has(sympy.Sum) for f in below) else []
        top = self._product([f for f in above if f not in bodies]) or "1"
        fraction = rf"\frac{{{top}}}{{{self._product(below)}}}"
        return f"{fraction} {self._product(bodies, alone=False)}" if bodies else fraction

    def _product(self, factors: list[Any], alone: bool = True) -> str:
        """Factors side by side; what would be read together with its neighbour stands between parentheses."""
        product = ""
        for left, factor in zip(range(len(factors) - 1, -1, -1), sorted(factors, key=self._factor_key), strict=True):
            text = self._print(factor)
            inside = isinstance(factor, sympy.Add | sympy.Mod) or text.startswith("-")
            if (inside and not (alone and len(factors) == 1)) or (left and _extends(factor)):
                text = rf"\left({text}\right)"
            if product:
                product += _space(product, text)
            product += text
        return product

    def _print_Add(self, expr: Any, order: Any = None) -> str:
        total = ""
        terms = sorted(expr.args, key=lambda term: self._term_key(term, expr.has(sympy.Indexed)))
        for left, term in zip(range(len(terms) - 1, -1, -1), terms, strict=True):
            text = self._print(term)
            sign, text = (" - ", text[1:].lstrip()) if text.startswith("-") else (" + ", text)
            if isinstance(term, sympy.Mod) or (left and text.endswith(r"\end{cases}")):
                text = rf"\left({text}\right)"
            total += sign + text if total else sign.strip(" +") + text
        return total

    def _factor_key(self, factor: Any) -> tuple[Any, ...]:
        """Numbers, indices, other scalars, entries, sums between parentheses, and what extends to the right."""
        if factor.is_number:
            kind = 0
        elif _extends(factor):
            kind = 5 + _is_choice([factor])
        elif factor.as_base_exp()[0].is_Add or _is_indicator(factor) or isinstance(factor, sympy.KroneckerDelta):
            kind = 4
        else:
            kind = 3 if factor.has(sympy.Indexed) else 2 - self._is_letter(factor)
        return kind, self._first(factor), str(factor)

    def _term_key(self, term: Any, among_entries: bool) -> tuple[Any, ...]:
        """``1 + x``, ``x + c``, ``n - 1``: what is subtracted after what is added, and sums and choices last."""
        number, rest = term.as_coeff_Mul()
        factors = sympy.Mul.make_args(rest)
        last = max((1 + _is_choice([f]) for f in factors if _extends(f)), default=0)
        kind = (0 if among_entries else 3) if term.is_number else 1 + (not term.has(sympy.Indexed))
        return last, bool(number.is_negative), kind, self._first(term), -len(factors), str(rest)

    def _first(self, part: Any) -> int:
        """Where the first name of a part comes in the tensor."""
        names = [str(e.base.label) for e in part.atoms(sympy.Indexed)] + [s.name for s in part.free_symbols]
        return min((self.place[name] for name in names if name in self.place), default=len(self.place))

    def _is_letter(self, part: Any) -> bool:
        letter = part.as_coeff_Mul()[1]
        return isinstance(letter, sympy.Dummy) or (letter.is_Symbol and letter.name in self.letters)


def outermost_first(k: sympy.Dummy) -> tuple[int, int]:
    """Bound indices are numbered by the height of their node, and within one node by axis (``scalars/formulas.py``)."""
    return -((k.dummy_index - 100) // 64), k.dummy_index


def _is_indicator(expr: Any) -> bool:
    return isinstance(expr, Choice) and expr.args[1:] == (1, 0)


def _is_choice(factors: Sequence[Any]) -> bool:
    return any(isinstance(f, Choice) and not _is_indicator(f) for f in factors)


def _extends(factor: Any) -> bool:
    """Whether what is written after a factor would be read as a part of it."""
    return isinstance(factor, sympy.Sum | Max | Min) or _is_choice([factor])


def _space(before: str, after: str) -> str:
    if before[-1].isdigit() and after[0].isdigit():
        return r" \cdot "
    return r" \, " if after.startswith((r"\mathrm", "(")) else " "


def _raised(text: str, exp: str | None) -> str:
    return text if exp is None else rf"{{{text}}}^{{{exp}}}"
