"""Claims that say more, to which an induction on the number of steps applies: in blocks, and of any length."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import sympy

from ...core.naming import new_name
from ...core.node import Tensor, rebuild, topological
from ...core.sizes import sizes
from ...errors import SymattnError
from ...ops.layout import merge_axes, split_axis_op
from ...ops.leaves import computed, from_index_op, variable
from ...printing.matrix import names_in
from ...recurrence.body import loop_of
from ...recurrence.record import scan_op
from ...recurrence.scans import is_value_of
from ..argument import Given
from ..claims import Claim
from ..generalised import ENTRYWISE, any_tensor, is_finite
from .closed_forms import loop_symbols
from .plan import Forms, FormsOf, Induction, called
from .stated_sizes import Numbers, in_numbers, numbers_of, restated

_MOST_WAYS = 64  # in which the axes of tensors may be those of a new length
_SIZED = (variable, from_index_op)  # whose shapes are given, and not computed


@dataclass(frozen=True)
class Wider:
    """What is put for tensors and sizes to say more, and what to put for that in turn to say the same."""

    nodes: dict[Tensor, Tensor] = field(default_factory=dict)
    sizes: dict[sympy.Symbol, sympy.Expr] = field(default_factory=dict)
    nodes_back: dict[Tensor, Tensor] = field(default_factory=dict)
    sizes_back: dict[sympy.Symbol, sympy.Expr] = field(default_factory=dict)
    numbers: Numbers = field(default_factory=dict)  # what those become that operations state
    in_formulas: bool = False  # and formulas

    def put(self, roots: Sequence[Tensor]) -> list[Tensor]:
        """What says more."""
        if self.numbers:
            return restated(roots, self.nodes, self.numbers, self.in_formulas)
        return rebuild(roots, self.nodes, self.sizes)

    def claim(self, claim: Claim) -> Claim:
        """The claim that says more."""
        left, right = self.put(claim.sides)
        return Claim(left, claim.relation, right)

    def plan(self, plan: Induction) -> Induction:
        """The closed forms of it."""
        inner = tuple(map(self.plan, plan.inner))
        return replace(plan, final=self._forms(plan.final), outputs=self._forms(plan.outputs), inner=inner)

    def _forms(self, forms: FormsOf) -> FormsOf:
        if callable(forms):
            return lambda *arguments: self._called(forms, arguments)
        return self._several(forms)

    def _called(self, forms: FormsOf, arguments: Sequence[Tensor]) -> Forms:
        """The closed forms of some sequences, where the function may speak of the old length."""
        if not self.numbers:
            return self._several(called(forms, arguments))
        old = rebuild(arguments, {}, self.sizes_back)
        made = called(forms, old)
        constants = [x for x in topological([x for x in made if x is not None]) if x.op is from_index_op]
        longer = {x: _with_axes(x, _axes_of(x, self.numbers), self.numbers) for x in constants}
        stood = {**longer, **self.nodes, **dict(zip(old, arguments, strict=True))}
        return replace(self, nodes=stood)._several(made)

    def _several(self, forms: Forms) -> Forms:
        made = iter(self.put([x for x in forms if x is not None]))
        return tuple(None if x is None else next(made) for x in forms)


def in_blocks(roots: Sequence[Tensor], given: Given) -> Wider | None:
    """Named tensors that are read in blocks along an axis, by tensors of blocks, whose axes are merged."""
    new, back = dict[Tensor, Tensor](), dict[Tensor, Tensor]()
    for node in topological(roots):
        for x, split in _read_in_blocks(node) if node.op is split_axis_op else ():
            if set(x.params["hypotheses"]) <= set(ENTRYWISE) and x.name not in given.names and x not in new:
                axis = x.rank + split.params["axis"]
                shape = (*x.shape[:axis], *split.params["into"], *x.shape[axis + 1 :])
                blocks = variable(name=x.name, shape=shape, hypotheses=x.params["hypotheses"])
                new[x], back[blocks] = merge_axes(blocks, (axis, axis + 1)), split
    return Wider(new, nodes_back=back) if new else None


def _read_in_blocks(node: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The named tensor that is split, or those of which what is split is made, and these in blocks."""
    (whole,), into = node.inputs, node.params["into"]
    if whole.op is variable:
        yield whole, node
        return
    size = whole.shape[node.params["axis"]]
    for x in topological([whole]):
        axes = [axis - x.rank for axis, own in enumerate(x.shape) if own == size] if x.op is variable else ()
        if len(axes) == 1:
            yield x, split_axis_op(x, axis=axes[0], into=into)


def of_any_length(roots: Sequence[Tensor], node: Tensor, given: Given) -> Iterator[Wider]:
    """A size of its own for the number of steps, where that is none: a number, T - 1, or the size of something else."""
    loop = loop_of(node)
    T = loop.length
    taken = names_in(roots) | given.names
    if not T.is_Symbol and len(T.free_symbols) == 1:
        (size,) = T.free_symbols
        rest = sympy.expand(T - size)
        if rest.is_Integer:  # T - 1 steps: T is one more than they are
            n = sizes(new_name(size.name, taken))
            yield Wider(sizes={size: n - rest}, sizes_back={n: size + rest})
            return
    held = {s for x in (*loop.first, *loop.given) for size in x.shape for s in size.free_symbols}
    if T.is_Symbol and T not in held | loop_symbols(loop):
        return
    alike = [x for x in computed(roots) if x.op is scan_op and loop_of(x).length == T]
    N = sizes(new_name("N", taken))
    found = list(_of_a_new_length(roots, alike, N, {*taken}))
    yield from found or _of_a_new_length(roots, [x for x in alike if is_value_of(node, x)], N, {*taken})


def _of_a_new_length(
    roots: Sequence[Tensor], values: Sequence[Tensor], N: sympy.Symbol, taken: set[str]
) -> Iterator[Wider]:
    """Claims about a new length of the loops of some values, of which the last one has it in no formula."""
    loops = [*map(loop_of, values)]
    T, sequences = loops[0].length, list(dict.fromkeys(x for loop in loops for x in loop.sequences))
    fixed = {x for x in topological([x for loop in loops for x in (*loop.first, *loop.given)]) if x.op in _SIZED}
    new, back = dict[Tensor, Tensor](), dict[Tensor, Tensor]()
    sized: dict[Tensor, list[tuple[int, ...]]] = {}
    numbers = numbers_of(T, N, [k for x in sequences for k in x.shape[1:] if k.is_Integer and k > 1])
    for x in sequences:
        leaves = [leaf for leaf in topological([x]) if leaf.op in _SIZED and _axes_of(leaf, numbers)]
        if x.op is not variable and (fixed & set(leaves) or not leaves):
            if not is_finite(x):
                return  # conditions of a step on numbers say nothing of -oo
            own = _with_axes(any_tensor(new_name("y", taken), x), (0,), {T: N})
            new[x], back[own] = own, x
        elif x not in new:
            sized |= {leaf: _ways_to_grow(leaf, numbers) for leaf in leaves}
    new |= {x: x.op.node(*x.inputs, **{**x.params, "steps": N}) for x in values if not loop_of(x).sequences}
    constants = [x for x in topological(roots) if x.op is from_index_op and _axes_of(x, numbers)]
    sized |= {x: list(_subsets(x, numbers)) for x in constants if x not in sized}
    for in_formulas in (True, False):
        for way in itertools.islice(itertools.product(*sized.values()), _MOST_WAYS):
            longer = {x: _with_axes(x, axes, numbers) for x, axes in zip(sized, way, strict=True) if axes}
            if in_formulas:
                longer = {x: in_numbers(y, numbers) if y.op is from_index_op else y for x, y in longer.items()}
            found = Wider({**new, **longer}, {}, back, {N: T}, numbers, in_formulas)
            if _fits(found, roots):
                yield found
                break


def _with_axes(x: Tensor, axes: Iterable[int], numbers: Numbers) -> Tensor:
    """The tensor with axes of another length; a size T b is N b there."""
    shape = tuple(size.xreplace(numbers) if axis in axes else size for axis, size in enumerate(x.shape))
    return x.op.node(**{**x.params, "shape": shape})


def _axes_of(x: Tensor, numbers: Numbers) -> list[int]:
    """The axes as long as the steps, or as many times as long."""
    lengths = {size for size, new in numbers.items() if not (size.is_Integer and new.is_Add)}
    return [axis for axis, size in enumerate(x.shape) if not lengths.isdisjoint((size, *size.free_symbols))]


def _subsets(x: Tensor, numbers: Numbers) -> Iterator[tuple[int, ...]]:
    axes = _axes_of(x, numbers)
    for count in range(len(axes), -1, -1):
        yield from itertools.combinations(axes, count)


def _ways_to_grow(x: Tensor, numbers: Numbers) -> list[tuple[int, ...]]:
    """The axes of a sequence that may be of a new length; together where what it is declared to be needs them."""
    several = set(x.params.get("hypotheses", ())) <= set(ENTRYWISE)
    return [axes for axes in _subsets(x, numbers) if axes] if several else [tuple(_axes_of(x, numbers))]


def _fits(wider: Wider, roots: Sequence[Tensor]) -> bool:
    """Whether all can be said of the new length, and the old one put back gives what there was."""
    try:
        made = wider.put(roots)
        back = rebuild(made, wider.nodes_back, wider.sizes_back)
    except SymattnError:
        return False
    return back == list(roots) and made[0].shape == made[1].shape and not any(map(_holds_its_length, computed(made)))


def _holds_its_length(x: Tensor) -> bool:
    """Whether a step of a loop is about as much as there are steps."""
    if x.op is not scan_op:
        return False
    loop = loop_of(x)
    return loop.length in loop_symbols(loop)


def forms_of(plans: Sequence[Induction]) -> list[Tensor]:
    """The closed forms that are given as tensors."""
    forms = [x for plan in plans for given in (plan.final, plan.outputs) if not callable(given) for x in given]
    return [x for x in forms if x is not None]
