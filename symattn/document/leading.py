"""Whether steps for people lead to the claim that they are the proof of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..core.node import Tensor, topological
from ..errors import OperandError
from ..graph.canonical import without_names
from ..proof.claims import Claim, Independence
from ..proof.verdict import Verdict
from .parts import Folded, Line, Statement

Related = tuple[Tensor, str, Tensor]  # what is "=", "<=" or "<" than what

_TURNED = {">=": "<=", ">": "<"}


def check_leads(verdict: Verdict, parts: Sequence[Any]) -> None:
    """Raise OperandError for parts that do not prove a claim: whose lines do not lead from one side to the other.

    Each line is one step, in any order, and names stand for what they name; whether a line holds is said by verifying.
    A claim among them is a step where it takes no more as given than the one that is proved.
    """
    if not verdict:
        raise OperandError("proof= is of a claim that is proved, and this one is refuted")
    claim = verdict.claim
    start, other, steps = _bare(claim, [*_related(parts, verdict)])
    if isinstance(claim, Claim):
        leads = other in _reached(start, steps, claim.relation)
        wanted = "from its left side to its right"
    else:
        leads = _is_proved_within(parts, verdict) or any(
            other not in topological([x]) for x in _reached(start, steps, "=")
        )
        wanted = f"from {claim.output.brief()} to what has no {claim.variable.brief()} in it"
    if not leads:
        raise OperandError(
            f"proof= has no lines that lead to the claim {claim}: they go {wanted}, or one of them is the claim "
            "itself. What is only said of a claim is its because="
        )


def is_said(claim: Claim, parts: Sequence[Any]) -> bool:
    """Whether lines and claims say the same as a claim, under what is given there."""
    start, other, steps = _bare(claim, [*_related(parts, None)])
    return start is other or other in _reached(start, steps, claim.relation)


def _related(parts: Iterable[Any], verdict: Verdict | None) -> Iterator[Related]:
    """What lines say, each in the direction in which it grows, and claims that hold under what is given for one."""
    before: Tensor | None = None
    for part in parts:
        if isinstance(part, Line):
            left = before if part.left is None else part.left
            assert left is not None  # ``then`` sees to that
            before = part.expression
            turned = _TURNED.get(part.relation)
            yield (left, part.relation, before) if turned is None else (before, turned, left)
        elif isinstance(part, Statement) and _holds_under(part, verdict) and isinstance(part.verdict.claim, Claim):
            said = part.verdict.claim
            yield said.left, said.relation, said.right
        elif isinstance(part, Folded):
            yield from _related(part.parts, verdict)


def _holds_under(part: Statement, verdict: Verdict | None) -> bool:
    """Whether a claim is proved, under no more than what is given for another one where there is one."""
    return bool(part.verdict) and (verdict is None or all(fact in verdict.given for fact in part.verdict.given))


def _bare(claim: Claim | Independence, related: Sequence[Related]) -> tuple[Tensor, Tensor, list[Related]]:
    """The sides of a claim, and what is related, without names."""
    roots = [*claim.sides, *(x for a, _, b in related for x in (a, b))]
    bare = dict[Tensor, Tensor]()
    for node in topological(roots):
        bare[node] = without_names(node, bare)
    start, other = (bare[x] for x in claim.sides)
    return start, other, [(bare[a], sign, bare[b]) for a, sign, b in related]


def _reached(start: Tensor, steps: Sequence[Related], relation: str) -> set[Tensor]:
    """What a tensor is related to by one step or several; for < one of them is strict."""
    ways = [*steps, *((b, sign, a) for a, sign, b in steps if sign == "=")]
    ways = [way for way in ways if relation != "=" or way[1] == "="]
    seen, pending = set[tuple[Tensor, bool]](), [(start, False)]
    while pending:
        at, strict = pending.pop()
        for a, sign, b in ways:
            there = (b, strict or sign == "<")
            if a is at and there not in seen:
                seen.add(there)
                pending.append(there)
    return {x for x, strict in seen if strict or relation != "<"}


def _is_proved_within(parts: Iterable[Any], verdict: Verdict) -> bool:
    """Whether a claim of the proof is the one that is to be proved."""
    claims = (part for part in parts if isinstance(part, Statement) and _holds_under(part, verdict))
    return any(part.verdict.claim == verdict.claim for part in claims)
