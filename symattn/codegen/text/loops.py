"""The loop of a recurrence as a function of its own, called once for all values of it that are needed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import sympy

from ...core.node import Tensor
from ...ops.leaves import computed, variable
from ...recurrence.body import Step, number_of_steps
from ..call.takes import Takes
from ..graph import Graph

if TYPE_CHECKING:
    from .spelling import Spelling


def loop_call(code: Spelling, node: Tensor, operands: Sequence[str]) -> str:
    """A call of the loop: it gives the last states, then the outputs."""
    body = node.params["body"]
    if body not in code.loop_sources:
        code.loop_sources[body] = _written(code, body.opened(code.taken))
    source, symbols = code.loop_sources[body]
    keywords = (f"{name}={code.scalar(s)}" for name, s in symbols.items())
    return code.carried("loop", source, [code.size(number_of_steps(node)), *operands, *keywords])


def _written(code: Spelling, step: Step) -> tuple[str, dict[str, sympy.Symbol]]:
    """The source of the loop, and the sizes that it takes by keyword."""
    graph = Graph(step.roots)
    symbols = {s for x in computed(graph.outputs) for s in x.own_symbols if x.op is not variable}
    inner = code.writer("step", Takes(step.leaves, symbols), graph, as_tuple=True)
    inner.given, inner.taken = code.given, inner.taken | code.taken
    _, own = inner.write()
    code.helpers |= inner.helpers
    code.taken |= set(code.given.values())
    keywords = {inner.symbols[s]: s for s in inner.keywords()}
    return code.loop_source(step, [inner.names[x] for x in step.leaves], [*keywords], own), keywords


def loop_source(step: Step, names: Sequence[str], keywords: Sequence[str], own: str) -> str:
    states, reads = names[: len(step.states)], names[len(step.states) : len(step.states) + len(step.reads)]
    ranks = [x.rank + (n in range(len(states), len(states) + len(reads))) for n, x in enumerate(step.leaves)]
    loops = ", ".join(f"{name}.shape[: {name}.ndim - {rank}]" for name, rank in zip(names, ranks, strict=True))
    at = [f"{name}[..., t{', :' * x.rank}]" for name, x in zip(reads, step.reads, strict=True)]
    made = [f"out{n}" for n in range(len(step.outputs))]
    now = [f"now{n}" for n in range(len(step.outputs))]
    passed = ", ".join([*states, *at, *names[len(states) + len(reads) :], *(f"{k}={k}" for k in keywords)])
    last = [f"np.broadcast_to({s}, (*loops, *np.shape({s})[np.ndim({s}) - {x.rank} :]))"
            for s, x in zip(states, step.states, strict=True)]  # fmt: skip
    lines = [
        f"def loop({', '.join(['steps', *names, *(['*', *keywords] if keywords else [])])}):",
        '    """The last states and all outputs of a recurrence; loop axes may stand in front."""',
        textwrap.indent(own.rstrip(), "    "),
        "",
        *_in_one_dtype(step, names),
        f"    loops = np.broadcast_shapes({loops})",
        "    for t in range(steps):",
        f"        {', '.join([*states, *now])}{',' * (len(states) + len(now) == 1)} = step({passed})",
    ]
    for name, value, x in zip(made, now, step.outputs, strict=True):
        core = f"*np.shape({value})[np.ndim({value}) - {x.rank} :]"
        lines += [
            "        if t == 0:",
            f"            {name} = np.empty((*loops, steps, {core}), np.asarray({value}).dtype)",
            f"        {name}[..., t{', :' * x.rank}] = {value}",
        ]
    return "\n".join([*lines, f"    return {', '.join([*last, *made])}{',' * (len(last) + len(made) == 1)}", ""])


def _in_one_dtype(step: Step, names: Sequence[str]) -> Iterator[str]:
    """The first states in the type of all that goes in: what a step gives of them then fits what later ones give.

    A number for a tensor without axes may come as Python's own, and is an array from here on.
    """
    real = [(name, x) for name, x in zip(names, step.leaves, strict=True) if x.kind == "real"]
    made = [name for name, x in real if x in step.states or (x in step.fixed and not x.rank)]
    if made:
        yield f"    dtype = np.result_type({', '.join(name for name, _ in real)})"
        yield from (f"    {name} = np.asarray({name}, dtype)" for name in made)
