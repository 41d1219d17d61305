"""What a document has said so far: its names, what they are equal to, where it said so, and what it takes as given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import sympy

from ..core.node import Tensor, rebuild
from ..errors import OperandError, SymattnError, listed
from ..ops.leaves import HYPOTHESES, let, let_op, tensor, variable
from ..proof.claims import Claim
from ..reading.latex.names import Entry, Names, key_of
from ..reading.latex.tree import Apply, Relation, Scripted, Symbol, Tree, parts_of
from ..reading.latex.worked_out import Allowance


@dataclass
class Known:
    """The state of a document; ``values`` are what declared tensors are equal to by their first equation."""

    names: Names
    values: dict[Tensor, Tensor] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)  # where a name was declared or defined, by its key
    sections: dict[str, int] = field(default_factory=dict)
    spelled: dict[str, str] = field(default_factory=dict)  # its LaTeX
    told: dict[str, tuple[str, int, int]] = field(default_factory=dict)  # the equation of a name, and its place
    anew: set[str] = field(default_factory=set)  # names that a later section declares again
    used: set[str] = field(default_factory=set)  # keys of names that stand on a right side
    given: list[Any] = field(default_factory=list)  # relations of sizes, and what tensors are said to fulfil
    examples: dict[Any, Any] = field(default_factory=dict)  # sizes that are numbers in an example

    def branch(self) -> Known:
        """The same state, to be changed by what may turn out not to be read."""
        other = copy(self)
        for name, held in vars(self).items():
            if isinstance(held, (dict, set, list)):
                setattr(other, name, held.copy())
        other.names = self.names.branch()
        other.names.allowance = Allowance()
        return other

    # --- values ---

    def resolved(self, x: Tensor) -> Tensor:
        """A tensor in which what has a value by an equation is that value, under its name."""
        return rebuild([x], self.values)[0]

    def claim(self, claim: Claim) -> Claim:
        return Claim(self.resolved(claim.left), claim.relation, self.resolved(claim.right))

    def is_free(self, x: Tensor) -> bool:
        """Whether a tensor is declared, and nothing says yet what it is equal to."""
        return x.op is variable and x not in self.values

    def give(self, leaf: Tensor, value: Tensor) -> bool:
        """Takes an equation for what a declared tensor is; False where the tensor is a part of the value."""
        value = self.resolved(value)
        if leaf in value.tensors:
            return False
        named = value if value.op is let_op else let(str(leaf.name), value)
        self.values = {x: rebuild([y], {leaf: named})[0] for x, y in self.values.items()} | {leaf: named}
        return True

    def define_function(self, call: Apply, value: Tensor) -> None:
        """A function that the document defines of declared tensors, to be applied to others of the same shapes."""
        found = [self.names.find(argument) for argument in call.arguments]
        taken = [e.value for e in found if e is not None and isinstance(e.value, Tensor)]
        key = key_of(call.head)
        if len(taken) < len(found) or not key:
            return

        def applied(*given: Tensor) -> Tensor:
            if [x.shape for x in given] != [x.shape for x in taken]:
                raise OperandError(f"{key} is defined of {listed(taken)}, and is applied to {listed(given)}")
            return rebuild([value], dict(zip(taken, given, strict=True)))[0]

        self.names.entries[key] = Entry(applied, key)

    # --- names ---

    def note(self, tree: Tree, shown: str, line: int, section: int) -> None:
        """Where a name was said to be something."""
        key = key_of(tree)
        if key and key not in self.lines:
            self.lines[key], self.sections[key], self.spelled[key] = line, section, shown

    def forget(self, key: str) -> None:
        """A name that is declared anew."""
        self.anew.add(key)
        entry = self.names.entries.pop(key, None)
        if entry is not None and isinstance(entry.value, Tensor):
            self.names.made.pop(str(entry.value.name), None)
        for held in (self.lines, self.sections, self.spelled, self.names.letters):
            held.pop(key, None)

    def assume(self, key: str, hypothesis: str) -> None:
        """Has a declared tensor have a property that the prose gives it."""
        entry = self.names.entries.get(key)
        if entry is None or not isinstance(entry.value, Tensor) or entry.value.op is not variable:
            return
        x = entry.value
        told = {*x.params["hypotheses"], hypothesis}
        if hypothesis not in HYPOTHESES:
            return
        try:
            again = tensor(str(x.name), *x.shape, **dict.fromkeys(told, True))
        except SymattnError:  # such as a permutation that is not square
            return
        self.names.entries[key] = replace(entry, value=again)

    def equate(self, size: sympy.Symbol, value: sympy.Expr) -> None:
        """Has two sizes be one in all that is declared so far."""
        for key, entry in self.names.entries.items():
            if isinstance(entry.value, (Tensor, sympy.Basic)):
                meant = entry.value.subs({size: value})
                self.names.entries[key] = replace(entry, value=meant)
        self.values = {x.subs({size: value}): y.subs({size: value}) for x, y in self.values.items()}
        for key, symbol in [*self.names.sizes.items()]:
            if symbol == size:
                self.names.sizes[key] = value

    def tensors_in(self, tree: Tree) -> Iterator[tuple[Tree, str, Tensor]]:
        """The names in a tree that stand for tensors, with the part of the text that they are, and their keys."""
        inside = set[int]()
        for part in parts_of(tree):
            if id(part) in inside or not isinstance(part, (Symbol, Scripted)):
                continue
            if key_of(part) in self.names.sizes:  # d_q is a size, and no q stands in it
                inside.update(map(id, parts_of(part)))
                continue
            for name in _names_of(part):
                entry = self.names.find(name)
                if entry is not None and isinstance(entry.value, Tensor):
                    inside.update(map(id, parts_of(part)))
                    yield name, key_of(name), entry.value
                    break


def _names_of(part: Tree) -> Iterator[Tree]:
    """A name with all of its scripts, then without those that may be places or transposes."""
    yield part
    if isinstance(part, Scripted):
        if part.above is not None and (part.below is not None or part.primes):
            yield replace(part, above=None)
        if part.below is not None and (part.above is not None or part.primes):
            yield replace(part, below=None)
        yield part.base


def whole(text: str, span: tuple[int, int]) -> str:
    """The LaTeX of a part, as it stands in the text."""
    return text[slice(*whole_span(text, span))]


def whole_span(text: str, span: tuple[int, int]) -> tuple[int, int]:
    r"""Where a part stands with the braces and the font, ``\mathbf{``, that it begins or ends within."""
    start, end = span
    opened = closed = 0
    for sign in text[start:end]:
        opened += sign == "{"
        if sign == "}":
            opened, closed = (opened - 1, closed) if opened else (opened, closed + 1)
    while closed and (at := text.rfind("{", 0, start)) >= 0:
        start, closed = at, closed - 1
    while opened and (at := text.find("}", end)) >= 0:
        end, opened = at + 1, opened - 1
    lead = _FONT.search(text[max(0, start - 30) : start]) if text[start : start + 1] == "{" else None
    return start if lead is None else start - len(lead.group()), end


_FONT = re.compile(r"\\[A-Za-z]+\s*\Z")


def declared_names(tree: Tree | None) -> list[Tree]:
    r"""The names of ``Q, K \in \mathbb{R}^{n \times d}``, of ``X = \ldots`` and of ``f(X) = \ldots``."""
    if not isinstance(tree, Relation):
        items = getattr(tree, "items", ())
        last = items[-1] if items else None
        found = declared_names(last) if isinstance(last, Relation) else []
        return [*items[:-1], *found] if found else []
    left = tree.sides[0]
    if isinstance(left, Apply):
        left = left.head
    return [part for part in _apart(left) if key_of(part)]


def _apart(tree: Tree) -> list[Tree]:
    from_slash = getattr(tree, "sign", "") == "/"
    return [*_apart(tree.left), *_apart(tree.right)] if from_slash else [tree]  # type: ignore[attr-defined]
