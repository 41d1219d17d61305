"""What a tensor means: one entry, or the system of entries, as SymPy scalars.

No walk recurses: an operation's entry formula asks for entries of its inputs, and an entry that is not known yet is
worked out first. Bound indices are numbered by height (see ``scalars/formulas.py``), so nothing is captured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
from sympy.concrete.expr_with_limits import ExprWithLimits

from ..core.late import late
from ..core.naming import counted, free_letters, new_name
from ..core.node import Tensor, topological
from ..errors import AbsentError, OperandError, ShapeError, described
from ..ops.leaves import constant, definition, from_index_op, indexed, is_named, variable
from ..ops.template import merged, template
from ..scalars.formulas import _Extreme
from .names import displayed_names

FREE_LETTERS, BOUND_LETTERS = "ijabcdefghkl", "klmnpqrtuvw"


MOST_PARTS = 100_000  # of one entry as a formula, which SymPy still works through
_FLAT = 16  # operations above each other that no entry grows too large by
Read = tuple[Tensor, tuple[Any, ...]]
_UNREAD = sympy.Dummy(real=True)  # an entry that has to be worked out first


def entry(x: Tensor, index: Any) -> sympy.Expr:
    """One entry of a tensor as a SymPy scalar, ``x[i, j]``; named intermediates are written out.

    Raises ShapeError for the wrong number of indices or a number out of range, and OperandError for an index that is
    not an integer and for a formula nested deeper than SymPy can go.
    """
    at = checked_index(x, index)
    try:
        return readable(_expand(x, at, {}))
    except RecursionError:
        raise too_long(x) from None


def entry_by_names(x: Tensor, index: tuple[Any, ...], names: Mapping[Tensor, str]) -> sympy.Expr:
    """The entry of what a tensor stands for, in which the tensors in ``names`` are read by these names."""
    return _expand(definition(x), index, names)


def too_long(x: Tensor, why: str = "is nested too deep for one") -> OperandError:
    """The error for a tensor whose entry SymPy, which recurses and walks through shared parts again, cannot hold."""
    return OperandError(
        f"an entry of {x.brief()}, a graph {x.height} operations high, {why} formula of SymPy: "
        "sa.entries gives it as a system of equations"
    )


def too_large(x: Tensor, count: int) -> OperandError:
    """The error for one that has too many parts."""
    return too_long(x, f"has {counted(count)} parts, too many for one")


def checked_index(x: Tensor, index: Any) -> tuple[sympy.Expr, ...]:
    """Indices as SymPy integers, one an axis."""
    given = index if isinstance(index, tuple) else (index,)
    if len(given) != x.rank:
        raise ShapeError(f"an entry of {x.brief()} has {x.rank} indices, not {len(given)}")
    checked = []
    for i, size in zip(given, x.shape, strict=True):
        plain = isinstance(i, int) or (isinstance(i, sympy.Expr) and not i.has(ExprWithLimits))
        if isinstance(i, bool) or not plain or sympy.sympify(i).is_integer is False:
            raise OperandError(f"{x.brief()} is indexed by {described(i)}: an entry takes integers or index symbols")
        at = sympy.sympify(i)
        at = sympy.expand(size + at) if at.is_negative else at
        if at.is_negative or sympy.expand(size - 1 - at).is_negative:
            raise ShapeError(f"index {described(i)} is out of range for the size {size} in {x.brief()}")
        for symbol in at.replace(lambda part: isinstance(part, sympy.Indexed), lambda _: sympy.S.Zero).free_symbols:
            if not symbol.is_integer:
                raise OperandError(
                    f"the index symbol {symbol} is not an integer: make it by sympy.Symbol('{symbol}', integer=True)"
                )
        checked.append(at)
    return tuple(checked)


def _expand(root: Tensor, index: tuple[Any, ...], names: Mapping[Tensor, str]) -> sympy.Expr:
    """The entry of the root; the nodes in ``names`` are read as named arrays."""
    known: dict[Read, sympy.Expr] = {}
    if root.height > _FLAT and (count := entry_size(root, names)) > MOST_PARTS:
        raise too_large(root, count)
    pending: list[Read] = [(root, index)]
    while pending:
        node, at = pending[-1]
        missing: list[Read] = []

        def read(k: int, where: tuple[Any, ...], node: Tensor = node, missing: list[Read] = missing) -> sympy.Expr:
            x = node.inputs[k]
            if x in names:
                return indexed(names[x], where, finite=not x.holds_minus_infinity)
            if missing and any(_UNREAD in getattr(place, "free_symbols", ()) for place in where):
                return _UNREAD
            if (x, where) not in known:
                missing.append((x, where))
            return known.get((x, where), _UNREAD)

        if (node, at) not in known:
            entry = node.op.entry(read, at, node)
            if missing:
                pending += reversed(missing)
                continue
            known[node, at] = entry
        pending.pop()
    return known[root, index]


def entry_size(x: Tensor, names: Collection[Tensor]) -> int:
    """How many parts the entry of a tensor has where ``names`` are read by name; exact, however large."""
    parts = dict[Tensor, int]()
    for node in topological([x], stop=names):
        parts[node] = 1 if node in names else 1 + sum(parts[i] for i in _reads(node))
    return parts[x]


def count_parts(formula: sympy.Basic, known: dict[sympy.Basic, int]) -> int:
    """How many parts a formula has, shared ones as often as they stand in it; ``known`` has those of smaller ones."""
    waiting = [formula]
    while waiting:
        part = waiting[-1]
        if missing := [x for x in part.args if x not in known]:
            waiting += missing
            continue
        known[part] = 1 + sum(known[x] for x in part.args)
        waiting.pop()
    return known[formula]


def readable(formula: sympy.Expr) -> sympy.Expr:
    """The formula with its bound indices under readable names, different ones for nested and for separate sums."""
    bound = sorted(_bound_indices(formula), key=lambda k: -k.dummy_index)
    if not bound:
        return formula
    taken = {s.name for s in formula.free_symbols if s not in bound}
    letters = free_letters(BOUND_LETTERS, taken)
    return formula.xreplace(
        {k: sympy.Dummy(next(letters), integer=True, nonnegative=True, dummy_index=50 + n) for n, k in enumerate(bound)}
    )


def _bound_indices(formula: sympy.Expr) -> set[sympy.Dummy]:
    return {limit[0] for total in formula.atoms(sympy.Sum, _Extreme) for limit in total.limits}


@dataclass(frozen=True)
class Equation:
    """One line of a system of entries: ``name[index] = entry``, for every index below the shape."""

    name: str
    index: tuple[sympy.Symbol, ...]
    shape: tuple[sympy.Expr, ...]
    entry: sympy.Expr

    @property
    def left(self) -> sympy.Expr:
        """``name[index]`` as a SymPy scalar."""
        return indexed(self.name, self.index)

    def __str__(self) -> str:
        return f"{self.left} = {self.entry}"


@dataclass(frozen=True)
class Entries:
    """A tensor as a system: one equation a named or shared node, inputs before users; the last is the tensor's."""

    equations: tuple[Equation, ...]

    def __iter__(self) -> Iterator[Equation]:
        return iter(self.equations)

    def __len__(self) -> int:
        return len(self.equations)

    def __getitem__(self, name: str) -> Equation:
        named = {equation.name: equation for equation in self.equations}
        if not isinstance(name, str) or name not in named:
            raise AbsentError(f"{described(name)} is none of the equations {', '.join(named)}")
        return named[name]

    def __str__(self) -> str:
        return "\n".join(map(str, self.equations))

    def latex(self) -> str:
        """The equations as an aligned block."""
        written = late("scalar_latex")
        lines = (f"  {written(e.left)} &= {written(e.entry)}" for e in self.equations)
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"


def entries(x: Tensor) -> Entries:
    """The entries of a tensor as a system of equations, one for each named or shared node.

    Its length is linear in the graph, however often parts are shared.

    >>> import symattn as sa
    >>> Z = sa.let("Z", sa.tensor("Q", "T d") @ sa.tensor("K", "S d").T)
    >>> print(sa.entries(sa.softmax(Z)))
    Z[i, j] = Sum(K[j, _k]*Q[i, _k], (_k, 0, d - 1))
    y[i, j] = exp(Z[i, j])/Sum(exp(Z[i, _k]), (_k, 0, S - 1))
    """
    if not isinstance(x, Tensor):
        raise OperandError(f"entries takes a tensor, not {described(x)}")
    names = system_names(x)
    taken = {symbol.name for symbol in x.free_symbols}
    equations = []
    for node, name in names.items():
        index = index_symbols(node, taken)
        equations.append(Equation(name, index, node.shape, readable(_expand(node, index, names))))
    return Entries(tuple(equations))


def index_symbols(x: Tensor, taken: Collection[str]) -> tuple[sympy.Symbol, ...]:
    """Readable index symbols for the axes of a tensor, under names that are not taken."""
    letters = free_letters(FREE_LETTERS, taken)
    return tuple(sympy.Symbol(next(letters), integer=True, nonnegative=True) for _ in x.shape)


def system_names(x: Tensor) -> dict[Tensor, str]:
    """The nodes that get an equation of their own: named ones, shared ones, sums of sums, and the root."""
    shown = displayed_names([x])
    order = topological([x])
    taken = {*shown.values(), *(symbol.name for symbol in x.free_symbols)}
    uses = Counter[Tensor]()
    for node in order:
        uses.update(_reads(node))
    names: dict[Tensor, str] = {}
    for node in order:
        if node.op in (variable, constant, from_index_op):
            continue
        if is_named(node):
            names[node] = shown[node]
        elif node is x or uses[node] > 1 or _deep(node, names):
            names[node] = new_name("y" if node is x else "t", taken)
    if x not in names:
        names[x] = new_name("y", taken)
    return names


def _reads(node: Tensor) -> list[Tensor]:
    """The inputs of a node as often as its entry formula shows them: a softmax reads its row twice."""
    if not node.inputs:
        return []
    entry = template(node)
    formula = entry.formula.xreplace(merged(node, entry))
    return [node.inputs[entry.reads[part][0]] for part in sympy.preorder_traversal(formula) if part in entry.reads]


def _deep(node: Tensor, names: Mapping[Tensor, str]) -> bool:
    """Whether the node is far enough above the next named ones that its formula would grow long."""
    return node.height % 24 == 0 and any(i not in names for i in node.inputs)
