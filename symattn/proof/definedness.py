"""Where a claim makes sense: what it divides by, what it takes roots, logarithms and inverses of, where it reads.

What the operations of a claim ask of their inputs, and what is not seen to hold anyway, is a side condition of the
claim, whatever the way in which it is proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy

from ..core.budget import Budget, OutOfBudget
from ..core.node import Tensor, rebuild
from ..core.sizes import same_shape, same_size
from ..core.stated import Condition as Formulated
from ..core.stated import Formula, Sentence, Stated
from ..errors import SymattnError
from ..graph.folding import Folding
from ..ops.domain import Condition, domain
from ..ops.index import squeeze
from ..ops.leaves import bare, computed, definition
from ..ops.template import Template, template
from ..printing.matrix import text_printer
from ..printing.stated import stated_in
from .argument import NOTHING, Given
from .bounds.prove import bound_proof
from .claims import Claim, compared, le, lt
from .equality.rewriting import rewrite
from .fitting import fitting

_NONZERO, _POSITIVE, _NONNEGATIVE = (Condition(sign, sympy.S.Zero) for sign in ("!=", ">", ">="))
_FINITE = Condition(">", sympy.S.NegativeInfinity)
_SECONDS = 1.0  # for the conditions of a claim, of which each may take a third of what is left
_MOST = 8  # conditions that are held against each other


def conditions(
    sides: Iterable[Tensor],
    given: Given = NOTHING,
    divisors: Iterable[Tensor] = (),
    fit: Iterable[Tensor] = (),
    finite: Iterable[Tensor] = (),
) -> tuple[str, ...]:
    """What must hold for the sides of a claim to have values, of sizes first, then in the order of the graph.

    ``divisors`` are what a proof divides by besides, ``fit`` what must have room besides, and ``finite`` what must not
    be -oo. What follows from the bounds of a tensor, from what is given, claims and relations between sizes, and from
    the other conditions is left out.
    """
    sides = list(sides)
    nodes = computed(sides)
    asked = [(node if c.of is None else c.of, c) for node in nodes for c in domain(node).conditions]
    asked += [(x, _NONZERO) for x in divisors]
    asked += [(x, _FINITE) for x in finite if domain(x).lowest]
    listed = _needed(_plain(asked), given)
    sized = fitting([*nodes, *computed(fit)], given.relations)
    return tuple(dict.fromkeys([*sized, *_stated(listed, sides, given)]))


def put_back(said: str, sides: Sequence[Tensor], nodes: Mapping[Tensor, Tensor], sizes: Mapping[Any, Any]) -> str:
    """A condition for a claim with these sides, in which tensors and sizes are those of a claim that says more."""
    if isinstance(said, Sentence):
        return Sentence(*(_put_back(part, sides, nodes, sizes) for part in said.parts))
    return str(said) if not isinstance(said, Stated) else _put_back(said, sides, nodes, sizes)


def _put_back(part: Any, sides: Sequence[Tensor], nodes: Mapping[Tensor, Tensor], sizes: Mapping[Any, Any]) -> Any:
    if isinstance(part, Stated) and isinstance(part.formula, Formulated):
        left, right = (_put_back(x, sides, nodes, sizes) for x in (part.formula.left, part.formula.right))
        new = Formulated(left, part.formula.relation, right)
        return stated_in(text_printer([*sides, *new.tensors]), new)
    if isinstance(part, Formula):
        return replace(part, tensors=tuple((s, _put_back(x, sides, nodes, sizes)) for s, x in part.tensors))
    if isinstance(part, Tensor):
        return rebuild([part], nodes, sizes)[0]
    return part.xreplace(sizes) if isinstance(part, sympy.Basic) else part


Asked = tuple[Tensor, Condition]


def _stated(listed: Sequence[Asked], sides: Sequence[Tensor], given: Given) -> list[Stated]:
    """The conditions by the names that the claim and what is given have."""
    roots = [*sides, *(x for g in given.claims for x in g.sides)]
    fold = Folding(map(definition, roots))
    shown = [(fold(x), condition) for x, condition in listed]
    printer = text_printer([*roots, *(x for x, _ in shown)])
    return [stated_in(printer, Formulated(_entries(x, c), c.relation, c.right)) for x, c in shown]


def _entries(x: Tensor, condition: Condition) -> Tensor | Formula:
    """What a condition compares: the entries of a tensor, or a function of them."""
    if condition.through is None:
        return x
    entry = sympy.Dummy("x")
    return Formula(condition.through(entry), ((entry, x),))


def _plain(asked: Iterable[Asked]) -> list[Asked]:
    """Each condition once: a product is not 0 where no factor is, what is >= 0 and not 0 is > 0, and that is not 0."""
    found: dict[Asked, Tensor] = {}
    for x, condition in asked:
        what = replace(condition, of=None)
        for part in _factors(x) if what == _NONZERO else (x,):
            found.setdefault((bare(part), what), part)
    for node, what in list(found):
        if what == _NONNEGATIVE and (node, _NONZERO) in found:
            found.setdefault((node, _POSITIVE), found.pop((node, what)))
    return [(x, what) for (node, what), x in found.items() if what != _NONZERO or (node, _POSITIVE) not in found]


def _needed(asked: list[Asked], given: Given) -> list[Asked]:
    """The conditions that follow neither from bounds, nor from what is given, nor from the others."""
    time = Budget(_SECONDS)
    for one in asked[::-1]:
        others = [other for other in asked if other is not one]
        known = [claim for other in others for ways in [_ways(*other)] if len(ways) == 1 for claim in ways[0]]
        near = others if len(asked) <= _MOST else ()
        if _follows(one, [*given.claims, *known], given.relations, time) or any(_is_same(one, x, time) for x in near):
            asked = others
    return asked


def _ways(x: Tensor, condition: Condition) -> Sequence[tuple[Claim, ...]]:
    """Claims of which those of one way are enough for the condition."""
    sign, end = condition.relation, condition.right
    if end is None or condition.through is not None:
        return ()
    if sign == "is a place in":
        return ((le(0, x), lt(x, end)),)
    return [(compared(x, one, end),) for one in ((">", "<") if sign == "!=" else (sign,))] if end.is_Integer else ()


def _follows(asked: Asked, given: Sequence[Claim], relations: Sequence[Any], time: Budget) -> bool:
    """Whether a condition on the entries of a tensor follows from their bounds alone."""

    def is_proved(claim: Claim) -> bool:
        proof = bound_proof(claim, given, own, relations)
        return proof is not None and not proof.assumptions

    try:
        own = time.part(1 / 3)
        return any(all(map(is_proved, claims)) for claims in _ways(*asked))
    except OutOfBudget:
        return False


def _is_same(one: Asked, other: Asked, time: Budget) -> bool:
    """Whether two conditions are one in two spellings."""
    (x, a), (y, b) = ((_squeezed(x), condition) for x, condition in (one, other))
    if a != b or not same_shape(x.shape, y.shape):
        return False
    try:
        return rewrite(x, y, time.part(1 / _MOST)) is not None
    except (OutOfBudget, SymattnError):
        return False


def _squeezed(x: Tensor) -> Tensor:
    """The tensor without its axes of size 1."""
    while 1 in x.shape:
        x = squeeze(x, x.shape.index(1) - x.rank)
    return x


def _factors(x: Tensor) -> Iterator[Tensor]:
    """The tensors of which one has an entry 0 where x has one, through products and powers."""
    waiting = [x]
    while waiting:
        node = waiting.pop()
        whole = bare(node)
        entry = template(whole)
        read = _bases(entry.formula, entry)
        if entry.reads and read is not None and all(_reads_all(whole, entry, symbol) for symbol in read):
            waiting += [whole.inputs[entry.reads[symbol][0]] for symbol in reversed(read)]
        else:
            yield node


def _bases(e: Any, entry: Template) -> list[Any] | None:
    """What a formula is 0 by, if it is a product of powers of what it reads."""
    if e in entry.reads:
        return [e]
    if e.is_positive or (e.is_number and e.is_nonzero):
        return []
    if e.is_Pow and e.exp.is_Rational:
        return _bases(e.base, entry) if e.exp.is_positive else []
    parts = [_bases(part, entry) for part in e.args] if e.is_Mul else [None]
    return None if None in parts else [symbol for part in parts if part is not None for symbol in part]


def _reads_all(node: Tensor, entry: Template, symbol: sympy.Symbol) -> bool:
    """Whether every entry of the input is read at some index, each axis by an index of its own."""
    k, where = entry.reads[symbol]
    ranges = dict(zip(entry.index, node.shape, strict=True))
    pairs = [(place, size) for place, size in zip(where, node.inputs[k].shape, strict=True) if size != 1]
    own = len({place for place, _ in pairs}) == len(pairs)
    return own and all(place in ranges and same_size(ranges[place], size) for place, size in pairs)
