"""The reverse pass: cotangents from the outputs down, by the rules of the records, each named node a step."""

from __future__ import annotations

import heapq
from collections import ChainMap, Counter
from collections.abc import Mapping, Sequence
from typing import Any

import sympy

from ..core.naming import fresh_name, new_name
from ..core.node import Graph, Tensor, topological, with_inputs
from ..core.sizes import Shape, divisibility, same_shape, show_shape
from ..errors import NoRuleError, ShapeError
from ..graph.names import numbered
from ..ops.arithmetic import multiply, split_scalar, sum_of
from ..ops.broadcasting import broadcast_to_op, summed
from ..ops.index import index_op, only_adds_axes
from ..ops.layout import transpose_op
from ..ops.leaves import (
    constant,
    cotangent_op,
    definition,
    from_index_op,
    is_named,
    is_zero,
    let_op,
    named,
    named_by,
    operands,
    variable,
    zeros,
)
from .forward import Forward, Variable, dependent, partial, scalars_of
from .result import Gradient, Step
from .tidying import tidy

_CHEAP = (transpose_op, index_op, broadcast_to_op)


class Reverse:
    """The reverse pass: cotangents from the outputs down, each named node a step."""

    def __init__(self, forward: Forward, given: Mapping[Tensor, Tensor | None], variables: Sequence[Variable]) -> None:
        self.forward = forward
        self.variables = variables
        self.keys: dict[Variable, Any] = {v: forward.new[v] if isinstance(v, Tensor) else v for v in variables}
        self.targets = {forward.new[v] for v in variables if isinstance(v, Tensor)}
        self.symbols = {v for v in variables if isinstance(v, sympy.Symbol)}
        self.outputs = {forward.new[y]: y for y in given}
        self.names = {node: node.name for node in forward.order if is_named(node)}
        self.cotangents = self._seed(given)
        self.pairs = tuple(x for y, c in self.cotangents.items() for x in (forward.new[y], c))
        self.batch = self._batch()
        self.needed = dependent(forward.order, [*self.targets, *self.symbols])
        self.bar: dict[Tensor, list[tuple[int, Tensor, str]]] = {}
        self.symbol_bar: dict[Any, list[Tensor]] = {}
        self.tidied: dict[Tensor, Tensor] = {n: forward.label.get(n, n) for n in forward.order}
        self.steps: dict[Tensor, str] = {}  # the named cotangents, and why
        self.results: dict[Any, Tensor] = {}
        self.because: dict[Tensor, str] = {}
        self.shared: dict[Tensor, str] = {}  # forward nodes named on the way, under provisional names
        self.conditions: list[str] = []
        self.awaited: Counter[Any] = Counter()  # how many results of a computation have no cotangent yet
        self.known: dict[Any, dict[Tensor, Tensor]] = {}  # the cotangents of those that have
        self.parts: dict[Any, Sequence[Tensor | None]] = {}  # what the rules have given, by the cotangents

    # --- set-up ---

    def _seed(self, given: Mapping[Tensor, Tensor | None]) -> dict[Tensor, Tensor]:
        cotangents = {}
        for y, cotangent in given.items():
            new = self.forward.new[y]
            name = self.names.setdefault(new, None) or fresh_name("O" if y.rank else "L", self.forward.taken)
            self.names[new] = name
            self.forward.taken.add(name)
            if cotangent is None:
                wanted = new_name(f"d{name}", self.forward.taken)
                cotangent = (
                    variable(name=wanted, shape=y.shape, hypotheses=()) if y.rank else constant(formula=sympy.S.One)
                )
            elif not same_shape(cotangent.shape[cotangent.rank - y.rank :], y.shape) or cotangent.rank < y.rank:
                raise ShapeError(
                    f"the cotangent {cotangent.brief()} of {y.brief()} must have the shape {show_shape(y.shape)}, "
                    "with a batch in front if wanted"
                )
            cotangents[y] = cotangent
        return cotangents

    def _batch(self) -> Shape:
        batches = {c.shape[: c.rank - y.rank] for y, c in self.cotangents.items()}
        if len(batches) > 1:
            raise ShapeError("the cotangents have different leading axes; a batch is the same for all outputs")
        return batches.pop()

    # --- the pass ---

    def run(self) -> Gradient:
        needed = [node for node in topological(self.outputs) if node in self.needed]
        waiting = Counter(x for node in needed for x in dict.fromkeys(node.inputs))  # how many needed nodes read each
        self.awaited.update(map(_computation, needed))
        ready: list[tuple[int, int, Tensor]] = []
        for y, cotangent in self.cotangents.items():
            new = self.forward.new[y]
            self.bar.setdefault(new, []).append((len(self.forward.order), cotangent, "the given cotangent"))
        for node in self.outputs:
            if not waiting.get(node) and node in self.needed:
                heapq.heappush(ready, self._priority(node))
        while ready:
            node = heapq.heappop(ready)[-1]
            self._propagate(self._complete(node, self._visit(node)))
            for x in dict.fromkeys(node.inputs):
                waiting[x] = waiting.get(x, 1) - 1
                if not waiting[x] and x in self.needed:
                    heapq.heappush(ready, self._priority(x))
        self._finish_symbols()
        self._finish_absent()
        return self._collect()

    def _priority(self, node: Tensor) -> tuple[int, int, Tensor]:
        """Shallow nodes first: a person writes dV before following P further down."""
        return node.height, self.forward.place[node], node

    def _visit(self, node: Tensor) -> Tensor | None:
        """The cotangent of a node, if there is any."""
        contributions = sorted(self.bar.pop(node, ()), key=lambda part: part[0])
        if not contributions:
            return None
        parts = sorted((part for _, part, _ in contributions), key=_is_subtracted)
        cotangent = sum_of(parts)
        if len(parts) > 1:
            cotangent = tidy(cotangent, self.tidied, self.forward.place)
        reasons = list(dict.fromkeys(reason for _, _, reason in contributions))
        self.because[node] = "; ".join(reasons)
        cotangent = self._name(node, cotangent, reasons, len(contributions))
        if node in self.targets:
            self.results[node] = cotangent
        return None if is_zero(cotangent) else cotangent

    def _complete(self, node: Tensor, cotangent: Tensor | None) -> Mapping[Tensor, Tensor]:
        """The cotangents of all results of one computation, once the last of them is known."""
        computation = _computation(node)
        known = self.known.setdefault(computation, {})
        if cotangent is not None:
            known[node] = cotangent
        self.awaited[computation] -= 1
        return {} if self.awaited[computation] else known

    def _name(self, node: Tensor, cotangent: Tensor, reasons: list[str], paths: int) -> Tensor:
        """Give the cotangent a name and a step where the node has a name, or needs one because it is used twice."""
        only_given = node in self.outputs and reasons == ["the given cotangent"]
        if only_given and (is_named(cotangent) or not (cotangent.rank or node in self.targets)):
            return cotangent
        if node in self.forward.automatic and node not in self.targets and _is_cheap(cotangent):
            return cotangent  # a name that nobody asked for, of something as short as the name
        if node not in self.names:
            once = _is_cheap(cotangent) or not self._is_used_twice(node, cotangent)
            if once and node not in self.targets:
                return cotangent
            self._share(node)
        return self._step(node, f"d{self.names[node]}", cotangent, _reason(reasons, paths))

    def _is_used_twice(self, node: Tensor, cotangent: Tensor) -> bool:
        """Whether the parts of the rule of a node, taken together, mention its cotangent more than once."""
        branches = sum(x in self.needed for x in dict.fromkeys(node.inputs))
        if branches != 1 or node.op.vjp is None:
            return branches > 1
        rule = zip(node.inputs, self._parts({node: cotangent}), strict=True)
        parts = [p for x, p in rule if x in self.needed and p is not None]
        known = ChainMap[Tensor, Any]({cotangent: 0}, self.forward.place, self.steps)
        fresh = topological([p for p in parts if p is not cotangent], stop=known)
        return sum(x is cotangent for new in fresh if new is not cotangent for x in new.inputs) > 1

    def _parts(self, cotangents: Mapping[Tensor, Tensor]) -> Sequence[Tensor | None]:
        """What the results of one computation give each of its inputs, worked out once."""
        key = tuple(cotangents.items())
        if key not in self.parts:
            self.parts[key] = self._given_by_rule(cotangents)
        return self.parts[key]

    def _given_by_rule(self, cotangents: Mapping[Tensor, Tensor]) -> Sequence[Tensor | None]:
        (node, cotangent), *_ = cotangents.items()
        op, label = node.op, self.forward.label
        assert op.vjp is not None
        whole = self.forward.norm(node)
        if whole is not None:
            part = whole.slope(cotangent, label.get(node, node))
            return [part if x is whole.x else None for x in node.inputs]
        if not op.part:
            return op.vjp(cotangent, label.get(node, node), *node.inputs, **node.params)
        by_part = {y.params[op.part]: c for y, c in cotangents.items()}
        results = {y.params[op.part]: label.get(y, y) for y in cotangents}
        shared = {name: value for name, value in node.params.items() if name != op.part}
        wanted = [x in self.needed for x in node.inputs]
        return op.vjp(by_part, results, *node.inputs, wanted=wanted, **shared)

    def _share(self, node: Tensor) -> None:
        """Name a forward node that the writer left unnamed."""
        self.names[node] = self.shared[node] = f"U#{len(self.shared)}"

    def _step(self, of: Tensor, wanted: str, expression: Tensor, reason: str) -> Tensor:
        step = cotangent_op(expression, of, *self.pairs, name=new_name(wanted, self.forward.taken))
        self.tidied[step] = step
        self.steps[step] = reason
        return step

    def _propagate(self, cotangents: Mapping[Tensor, Tensor]) -> None:
        if not cotangents:
            return
        for result, cotangent in cotangents.items():
            self._to_symbols(result, cotangent)
        node = next(iter(cotangents))
        wanted = [x in self.needed for x in node.inputs]
        if not any(wanted):
            return
        op = node.op
        if op.vjp is None:
            raise NoRuleError(f"no derivative is known for {op.title}, met at {node.brief()}")
        if op.nonsmooth:
            self.conditions.append(op.nonsmooth)
        loops = [body for body in node.params.values() if isinstance(body, Graph)]
        self.conditions += [said for body in loops for said in body.nonsmooth]
        why = op.reason if self.forward.norm(node) is None else "a norm, row by row"
        for x, need, part in zip(node.inputs, wanted, self._parts(cotangents), strict=True):
            if not need or part is None:
                continue
            part = tidy(part, self.tidied, self.forward.place)
            if not same_shape(part.shape, self.batch + x.shape):
                raise ShapeError(f"the rule of {op.title} gave {part.brief()} for the cotangent of {x.brief()}")
            scaled = node.inputs[0].op is constant and not loops
            passed_on = op is transpose_op or only_adds_axes(node) or scaled
            reason = self.because[node] if passed_on else why
            self.bar.setdefault(x, []).append((self.forward.place[node], part, reason))

    def _to_symbols(self, node: Tensor, cotangent: Tensor) -> None:
        for symbol in scalars_of(node, self.symbols):
            product = multiply(cotangent, partial(node, symbol))
            part = summed(product, tuple(range(-node.rank, 0)), False)
            self.symbol_bar.setdefault(symbol, []).append(tidy(part, self.tidied, self.forward.place))

    # --- the end ---

    def _finish_symbols(self) -> None:
        reason = "derivative by a scalar, summed over all entries"
        for symbol in self.variables:
            if parts := self.symbol_bar.get(symbol):
                self.results[symbol] = self._step(constant(formula=symbol), f"d{symbol.name}", sum_of(parts), reason)

    def _finish_absent(self) -> None:
        for v, key in self.keys.items():
            if key in self.results:
                continue
            of = key if isinstance(v, Tensor) else constant(formula=v)
            shown = (v.name if isinstance(v, Tensor) else str(v)) or "U"
            outputs = ", ".join(str(self.names[y]) for y in self.outputs)
            reason = f"{outputs} does not depend on {shown}, or is flat in it"
            self.results[key] = self._step(of, f"d{shown}", zeros(*self.batch, *of.shape), reason)

    def _collect(self) -> Gradient:
        roots = [*self.steps]
        outputs = self._share_forward(roots)
        groups = {"U": sorted(self.shared, key=self.forward.place.__getitem__)} if self.shared else {}
        for x in self._named_by_rules([*roots, *self.results.values()]):
            groups.setdefault(str(x.name), []).append(x)
        lets = {**outputs, **numbered(groups, self.forward.taken)}
        final = _with_lets([*roots, *self.results.values()], lets)
        steps = tuple(Step(str(final[r].name), final[r].inputs[0], why) for r, why in self.steps.items())
        by_name = {str(final[r].name): final[r] for r in roots}
        return Gradient(
            {v: final.get(self.results[key], self.results[key]) for v, key in self.keys.items()},
            by_name,
            steps,
            dict(self.cotangents),
            tuple(dict.fromkeys([*self.conditions, *self._stated()])),
        )

    def _share_forward(self, roots: Sequence[Tensor]) -> dict[Tensor, str]:
        """Name the unnamed forward nodes that the steps mention twice; the outputs among them, by their names."""
        below = topological([r.inputs[0] for r in roots], stop=self.forward.place)
        uses = Counter(x for node in below if node not in self.forward.place for x in operands(node))
        outputs = {}
        for node in self.forward.order:
            if uses[node] > 1 and not _is_cheap(node):
                while node.op in _CHEAP:  # name what is moved, not each of its layouts
                    node = node.inputs[0]
                if node not in self.names:
                    self._share(node)
                elif not is_named(node) and node in self.outputs:
                    outputs[node] = str(self.names[node])
        return outputs

    def _named_by_rules(self, roots: Sequence[Tensor]) -> list[Tensor]:
        """What the rules of records made and named: the states of all steps of a loop."""
        made = topological(roots, stop=self.forward.place)
        return [x for x in made if x.op is let_op and x not in self.forward.place and named_by(x) == "gradient"]

    def _stated(self) -> list[str]:
        stated: list[str] = [*divisibility(size for node in self.forward.order for size in node.shape)]
        for v in self.variables:
            tied = [h for h in ("symmetric", "orthogonal", "permutation") if isinstance(v, Tensor) and h in
                    v.params.get("hypotheses", ())]  # fmt: skip
            if tied:
                stated.append(f"the gradient by {v.name} is the ambient one: that {v.name} is {tied[0]} is not imposed")
        return stated


def _computation(node: Tensor) -> Any:
    """What all results of one computation have in common; most operations have one result."""
    part = node.op.part
    return (node.op, node.inputs, *(pair for pair in node.params.items() if pair[0] != part)) if part else node


def _reason(reasons: Sequence[str], paths: int) -> str:
    listed = [r for r in reasons if r != "the given cotangent"]
    if paths == 1:
        return "; ".join(listed) or "the given cotangent"
    return f"sum over {paths} paths" + (f": {listed[0]}" if len(listed) == 1 else "")


def _is_cheap(x: Tensor) -> bool:
    """Short enough to be written twice: a name, a constant, or one with a factor, transposed, indexed or broadcast."""
    while True:
        _, rest = split_scalar(x)
        if rest is None or is_named(rest) or rest.op is from_index_op:
            return True
        if rest.op not in _CHEAP:
            return False
        x = rest.inputs[0]


def _with_lets(roots: Sequence[Tensor], lets: Mapping[Tensor, str]) -> dict[Tensor, Tensor]:
    """All nodes below the roots, with the ones in ``lets`` under their names wherever they are read."""
    order = topological(roots)
    if not lets:
        return {node: node for node in order}
    new: dict[Tensor, Tensor] = {}
    for node in order:
        follows = node.op is cotangent_op and node.inputs[1] in lets  # its provisional name follows its node's
        new[node] = with_inputs(node, new, **({"name": f"d{lets[node.inputs[1]]}"} if follows else {}))
        if node in lets:
            new[node] = named(lets[node], definition(new[node]), by="gradient")
    return new


def _is_subtracted(x: Tensor) -> bool:
    return bool(split_scalar(x)[0].could_extract_minus_sign())
