"""Statements of a document, read one after the other by what was declared and defined before them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..core.node import Tensor
from ..errors import ShapeError, SymattnError
from ..ops.leaves import let, scalar_value, tensor, variable
from ..printing.asked import latex
from ..proof.claims import Claim
from ..proof.engine import prove
from ..proof.verdict import Proved, Refuted
from ..reading import parse_shape
from ..reading.latex.answers import Declaration, Definition, Distribution, Signature
from ..reading.latex.read import parse_latex
from .documents import Document, Passage
from .findings import Finding
from .suggestions import intended

_BUDGET = 3.0  # seconds for one claim
_RELATED = re.compile(r"=|\\(?:le|ge|leq|geq|in|sim|coloneqq|eqqcolon|equiv|approx|to|neq)(?![a-zA-Z])|[<>:]")
_IN_NUMBERS = re.compile(r"=\s*(?:\\begin\{[bpv]?(?:matrix|array)\}(?:\{\w+\})?\s*)+-?\d")  # values of an example
_PROPERTY = re.compile(r"\b(permutation|orthogonal|symmetric|invertible)\b")
_NAME = re.compile(r"[A-Za-z]\w*'*|\\[a-zA-Z]+\w*")
_FAMILY = re.compile(r"_[a-z]$")  # a value for each index, along an axis that the range of the index says
_DECLARE = re.compile(r": declare it by names=.*")
_HOW_TO_DECLARE = r": declare it, X \\in \\mathbb{R}^{n \\times d}, or in a comment, <!-- symattn: X: n d -->"
_BULLET = re.compile(r"^(?:[•*+\-–]|\d+[.)])\s+")


@dataclass
class Notes:
    """What a document has said so far: names with their meanings, laws, and what was taken as given."""

    document: Document
    names: dict[str, Any] = field(default_factory=dict)
    laws: dict[Any, Any] = field(default_factory=dict)
    given: list[Claim] = field(default_factory=list)
    declared_at: dict[str, int] = field(default_factory=dict)  # lines
    defined_at: dict[str, int] = field(default_factory=dict)
    used: set[Tensor] = field(default_factory=set)
    built: list[tuple[Passage, Tensor]] = field(default_factory=list)
    ahead: dict[str, Any] = field(default_factory=dict)  # what is declared further below

    def findings(self) -> Iterator[Finding]:
        """Each statement in order. What is declared below its first use is known from the beginning."""
        self._look_ahead()
        for passage in self.document.passages:
            if passage.kind == "declared":
                yield from self._declared_in_comment(passage)
            elif passage.kind != "words":
                yield from self._read(passage)

    # --- declarations ---

    def _look_ahead(self) -> None:
        for passage in self.document.passages:
            if passage.kind == "words" or not re.search(r"\\in(?![a-z])|:|\\sim", passage.text):
                continue
            try:
                answers = self._parsed(_plain(passage), self.ahead)
            except SymattnError:
                continue
            for answer in answers:
                if isinstance(answer, Declaration) and answer.name:
                    self.ahead.setdefault(answer.name, self._with_properties(answer.value, passage))

    def _declared_in_comment(self, passage: Passage) -> Iterator[Finding]:
        """``Q: T d; K: S d``, in a comment that is meant for us."""
        for text in filter(None, map(str.strip, re.split(r"[;\n]", passage.text))):
            try:
                x = parse_shape(text)
            except SymattnError as problem:
                yield self._found("skipped", passage, f"this declares nothing: {_first_line(problem)}")
                continue
            self._declare(str(x.name), x, passage)
            yield self._found("declared", passage, x.brief())

    def _declare(self, name: str, value: Any, passage: Passage) -> None:
        self.names[name] = value
        self.declared_at[name] = self.document.place(passage.at)[0]
        self.defined_at.pop(name, None)

    def _with_properties(self, value: Any, passage: Passage) -> Any:
        """A tensor with the property that the words behind its declaration give it, ``a permutation matrix``."""
        said = _PROPERTY.search(self.document.words_behind(passage))
        if said is None or not _is_leaf(value) or value.rank != 2 or value.shape[0] != value.shape[1]:
            return value
        return tensor(str(value.name), *value.shape, **{said[1]: True})

    # --- statements ---

    def _read(self, passage: Passage) -> Iterator[Finding]:
        text = _plain(passage)
        if not _RELATED.search(text) or _IN_NUMBERS.search(text):
            yield self._found("mention", passage)
            return
        declared = self._declarations(text)
        if any(answer.name not in self.names for answer in declared):
            answers = declared
        else:
            try:
                answers = self._parsed(text, self.known)
            except (SymattnError, RecursionError) as problem:
                answers = declared
                if not declared:
                    yield self._unread(passage, problem)
        for answer in answers:
            yield from self._said(passage, answer)

    @property
    def known(self) -> dict[str, Any]:
        """Names with their meanings here; those that are declared further below, as they are there."""
        return {**self.ahead, **self.names}

    def _declarations(self, text: str) -> tuple[Any, ...]:
        """What a statement declares by itself, whatever is known of its names; nothing where it says more."""
        try:
            answers = self._parsed(text, {})
        except (SymattnError, RecursionError):
            return ()
        return answers if all(isinstance(answer, (Declaration, Distribution)) for answer in answers) else ()

    def _unread(self, passage: Passage, problem: Exception) -> Finding:
        """What is said of a statement that does not read: shapes that do not fit are wrong, the rest is skipped."""
        families = (name for name, x in self.known.items() if _FAMILY.search(name) and _is_leaf(x) and _is_long(x))
        if isinstance(problem, ShapeError) and not any(mentions(passage.text, name) for name in families):
            return self._of_other_shape(passage, problem)
        if str(problem).startswith("no law of"):
            said = "a moment is stated, and no law: are entries independent, of mean 0 and variance 1?"
            return self._found("warning", passage, said, (r"x_i \sim \mathcal{N}(0, 1)",), rule="law")
        return self._found("skipped", passage, _DECLARE.sub(_HOW_TO_DECLARE, _first_line(problem)))

    def _parsed(self, text: str, names: Mapping[str, Any]) -> tuple[Any, ...]:
        answers = parse_latex(text, names, law=self.laws)
        return answers if isinstance(answers, tuple) else (answers,)

    def _said(self, passage: Passage, answer: Any) -> Iterator[Finding]:
        if isinstance(answer, Declaration):
            if answer.name:
                self._declare(answer.name, self._with_properties(answer.value, passage), passage)
            yield self._found("declared", passage, str(answer))
        elif isinstance(answer, Definition):
            yield self._define(passage, answer.name, answer.value, answer.parameters)
        elif isinstance(answer, Distribution):
            x = self.known.get(answer.name)
            self.laws.update({x: answer.law} if x is not None else {})
            yield self._found("declared", passage, str(answer))
        elif isinstance(answer, Signature):
            yield self._found("declared", passage, str(answer))
        elif isinstance(answer, Claim):
            yield self._claimed(passage, answer)
        elif answer in (True, False) or getattr(answer, "is_Boolean", False):
            yield self._found("proved" if answer else "refuted", passage)
        else:
            yield self._found("mention", passage)

    def _define(self, passage: Passage, name: str, value: Any, parameters: tuple[str, ...]) -> Finding:
        self._use(passage, value)
        inputs = [x for p in parameters for x in value.tensors if x.name == p]
        if len(inputs) < len(parameters):
            return self._found("skipped", passage, f"{name} has parameters that its formula does not mention")
        again = f"; line {self.defined_at[name]} gives it another meaning" if name in self.defined_at else ""
        if _NAME.fullmatch(name):  # others are read, and mean nothing further below
            self.names[name] = partial(_applied, value, inputs) if parameters else value
            self.defined_at[name] = self.document.place(passage.at)[0]
        return self._found("defined", passage, f"{name}{again}")

    def _claimed(self, passage: Passage, claim: Claim) -> Finding:
        left, right = claim.sides
        self._use(passage, right)
        if claim.relation == "=" and left.op is variable and left not in right.tensors:
            return self._define(passage, str(left.name), let(str(left.name), right), ())
        self._use(passage, left)
        if claim.relation == "=" and _is_value_of_a_size(claim):
            return self._found("given", passage, f"taken as given: {claim}")
        try:
            verdict = prove(claim, given=self.given, budget=_BUDGET)
        except SymattnError as problem:  # such as what was taken as given contradicting itself
            return self._found("unknown", passage, _first_line(problem))
        if isinstance(verdict, Proved):
            return self._found("proved", passage, _conditions(verdict), verdict=verdict)
        if not isinstance(verdict, Refuted):
            return self._found("unknown", passage, _first_line(getattr(verdict, "reason", "")), verdict=verdict)
        if _is_assumption(claim):
            self.given.append(claim)
            return self._found("given", passage, f"taken as given: {claim}")
        meant = self._meant(claim) if claim.relation == "=" else ()
        return self._found("refuted", passage, str(verdict.counterexample), meant, verdict=verdict)

    def _meant(self, claim: Claim) -> tuple[str, ...]:
        """Formulas that are true and differ from the one written in one place."""
        left, right = claim.sides
        others = [x for x in self.known.values() if _is_leaf(x) and x not in right.tensors]
        edits = intended(left, right, others, self.given)
        return tuple(f"{latex(left)} = {latex(edit.tensor)}" for edit in edits)

    def _use(self, passage: Passage, value: Any) -> None:
        if isinstance(value, Tensor):
            self.used.update(value.tensors)
            self.built.append((passage, value))

    # --- shapes that do not fit ---

    def _of_other_shape(self, passage: Passage, problem: ShapeError) -> Finding:
        """With what else of what is declared the shapes would fit."""
        known = self.known
        mentioned = {name: x for name, x in known.items() if _is_leaf(x) and mentions(passage.text, name)}
        meant = []
        for name, x in mentioned.items():
            for told, other in self._instead(name, x, known):
                try:
                    self._parsed(_plain(passage), {**known, name: other})
                except (SymattnError, RecursionError):
                    continue
                meant.append(told)
        places = {name: self.declared_at.get(name) for name in mentioned}
        at = [f"{mentioned[name].brief()} is declared in line {line}" for name, line in places.items() if line]
        return self._found("shape", passage, "; ".join([_first_line(problem), *at]), tuple(meant[:3]))

    def _instead(self, name: str, x: Tensor, known: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
        alike = {o: y for o, y in known.items() if o != name and _is_leaf(y) and y.rank == x.rank and _alike(name, o)}
        for other in sorted(alike, key=lambda o: alike[o] in self.used):  # what nothing has used yet comes first
            yield f"{other} in place of {name}", alike[other]
        if x.rank == 2 and 1 not in x.shape:
            yield f"{name} transposed", x.mT

    def _found(
        self, status: Any, passage: Passage, message: str = "", suggestions: tuple[str, ...] = (), **more: Any
    ) -> Finding:
        line, column = self.document.place(passage.at)
        return Finding(status, " ".join(passage.text.split()), line, column, message, suggestions, **more)


def _applied(value: Tensor, parameters: Sequence[Tensor], *arguments: Any) -> Tensor:
    return value.subs(dict(zip(parameters, arguments, strict=True)))


def _plain(passage: Passage) -> str:
    """A formula as the reader takes it: without the mark of a list in front."""
    return _BULLET.sub("", passage.text) if passage.kind == "undelimited" else passage.text


def _first_line(problem: Any) -> str:
    return str(problem).partition("\n")[0]


def _conditions(verdict: Proved) -> str:
    conditions = verdict.proof.side_conditions
    return f"where {', '.join(conditions)}" if conditions else ""


def _is_assumption(claim: Claim) -> bool:
    """Whether a claim that is not true of all tensors says something of tensors that nothing else is said of."""
    kinds = [(side.op is variable, bool(side.tensors)) for side in claim.sides]
    of_some = any(has_tensors for _, has_tensors in kinds)
    return claim.relation == "=" and of_some and any(is_leaf or not has_tensors for is_leaf, has_tensors in kinds)


def _is_value_of_a_size(claim: Claim) -> bool:
    """``T = 2`` or ``d = D/h``: what a size is in an example, or in what follows."""
    left, right = map(scalar_value, claim.sides)
    return left is not None and right is not None and left.is_Symbol


def _is_leaf(x: Any) -> bool:
    return isinstance(x, Tensor) and x.op is variable


def _is_long(x: Tensor) -> bool:
    return bool(x.shape) and x.shape[0] != 1


def mentions(text: str, name: str) -> bool:
    """Whether a formula holds the letters of a name, however its scripts are written."""
    letters = [re.escape(part) for part in re.split(r"[_^{}\\']+", name) if part]
    return re.search(r"[\s_^{}\\a-z]*".join(letters), text) is not None


def _alike(name: str, other: str) -> bool:
    """Whether two names are of one kind: ``W_K`` and ``W_V``, ``d_k`` and ``d_v``."""
    return name[0] == other[0]

