"""The rewrite rules as one table, in the order in which they are tried."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from ...core.operation import Operation
from .algebra import ALGEBRA
from .layout import LAYOUT
from .permutations import PERMUTATIONS
from .products import PRODUCTS
from .rows import ROWS
from .rule import Rule

RULES: tuple[Rule, ...] = (*PERMUTATIONS, *ROWS, *LAYOUT, *PRODUCTS, *ALGEBRA)
PHASES = tuple(sorted({rule.phase for rule in RULES}))


def rule(name: str) -> Rule:
    """The rule of a name."""
    return next(rule for rule in RULES if rule.name == name)


copyreg.pickle(Rule, lambda found: (rule, (found.name,)))  # by name, as records are: rules hold functions


@cache
def rules_for(phase: int) -> Mapping[Operation | None, tuple[Rule, ...]]:
    """The rules of the phases up to this one by the operation at the top of the left side; None is any other."""
    listed = [rule for rule in RULES if rule.phase <= phase]
    heads = {op for rule in listed for op in rule.heads}
    table = {op: tuple(rule for rule in listed if not rule.heads or op in rule.heads) for op in heads}
    return MappingProxyType({**table, None: tuple(rule for rule in listed if not rule.heads)})


__all__ = ["PHASES", "RULES", "Rule", "rule", "rules_for"]
