"""Recurrences of a known number of steps written out, step after step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.arguments import few
from ..core.node import Tensor, topological, with_inputs
from ..ops.layout import concat
from .body import loop_key, loop_of
from .record import scan_op

_MOST = 10_000  # operations of one recurrence that are written out


def unrolled(x: Tensor) -> Tensor:
    """The tensor with every recurrence of a known number of steps written out; others stay as they are."""
    new: dict[Tensor, Tensor] = {}
    done: dict[Any, tuple[Sequence[Tensor], list[Sequence[Tensor]]]] = {}
    for node in topological([x]):
        made = with_inputs(node, new)
        new[node] = made
        if made.op is not scan_op or not loop_of(made).length.is_Integer:
            continue
        key = loop_key(made)
        if key not in done:
            done[key] = _run(made)
        (what, k), (states, rows) = made.params["take"], done[key]
        new[node] = states[k] if what == "final" else concat([row[k][None] for row in rows], axis=0)
    return new[x]


def _run(node: Tensor) -> tuple[Sequence[Tensor], list[Sequence[Tensor]]]:
    """The last states, and the outputs of every step."""
    body, loop = node.params["body"], loop_of(node)
    few(f"{node.brief()} step by step", loop.length * len(topological(loop.step.roots)), "operations", _MOST)
    states: Sequence[Tensor] = loop.first
    rows: list[Sequence[Tensor]] = []
    for t in range(int(loop.length)):
        states, outputs = body.run([*states, *(x[t] for x in loop.sequences), *loop.given])
        states = [unrolled(y) for y in states]
        rows.append([unrolled(y) for y in outputs])
    return states, rows
