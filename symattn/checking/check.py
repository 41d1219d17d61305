r"""A document's statements, one after the other, by what it declared and defined before.

The first equation of a declared name says what it is; every other equation is a claim. Within a section declarations
come first, wherever they stand, and a statement that needs a later one waits for it. In a new section a name may be
declared anew. What cannot be read is listed with the reason, and never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

import sympy

from ..core.node import Tensor
from ..core.sizes import show_shape
from ..errors import ParseError, ShapeError, SymattnError
from ..ops.leaves import HYPOTHESES, constant, let_op, variable
from ..proof.claims import Claim
from ..reading.latex.answers import Declaration, Definition
from ..reading.latex.names import Names, key_of
from ..reading.latex.read import Read, read_each
from ..reading.latex.text import FormulaText
from ..reading.latex.tree import Apply, Fence, Grid, Items, Mark, Number, Product, Relation, Scripted, Symbol, Tree
from . import claims, lints
from .declared import declare
from .documents import Document, Kind, Passage, scan
from .known import Known, declared_names, whole, whole_span
from .report import Finding, Report, Status
from .suggestions import projected, suggested

Progress = Callable[[int, int], None]
_ROUNDS = 6  # in which statements wait for each other
_FEW = 1.0  # seconds for an edit that is only offered
_HYPOTHESES = {"permutation": "permutation", "permuting": "permutation", "orthogonal": "orthogonal",
               "orthonormal": "orthogonal", "invertible": "invertible", "symmetric": "symmetric",
               "binary": "binary", "positive": "positive"}  # fmt: skip
assert set(_HYPOTHESES.values()) <= set(HYPOTHESES)
_ASKS = re.compile(r"(?:declare it by |give it by )?(?:names|law)=\{[^}]*\}")


def check_notes(
    text: str,
    names: Mapping[str, Any] | None = None,
    *,
    kind: Kind = "markdown",
    name: str = "",
    budget: float = 2.0,
    progress: Progress | None = None,
) -> Report:
    r"""Whether the formulas of a document hold: its shapes, equations, gradients, and what looks like a slip.

    The formulas of Markdown, LaTeX, plain text or a notebook are read in order by ``sa.parse_latex``, with what was
    declared before, ``Q \in \mathbb{R}^{T \times d}``; ``names`` declares more. Every statement is ok (proved, holds
    numerically only, defined, declared, typed), refuted, a shape error, a warning, ambiguous, or skipped with the
    reason. ``budget`` is the time for one claim in seconds; ``progress`` is called with how many of how many formulas
    are done. Raises OperandError for what is no text and ParseError for a notebook that is none.

    >>> import symattn as sa
    >>> print(sa.check_notes(r"Let $X \in \mathbb{R}^{n \times d}$, $W^V \in \mathbb{R}^{d \times e}$ and $V = W^V X$."))
    1:67 error[shape]: V = W^V X: the product: the left is d×e, the right is n×d; W^V[d, e] (line 1), X[n, d] (line 1)
        did you mean: V = X W^V
    checked 3, skipped 0, failed 1
    """
    documents = scan(text, kind)
    total, done = sum(len(document.passages) for document in documents), 0
    known = Known(Names({} if names is None else names))
    findings, mentions = list[Finding](), 0

    def told() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    for document in documents:
        for _, passages in groupby(document.passages, key=lambda passage: passage.section):
            section = _Section(known, list(passages), budget, told)
            section.check()
            findings += section.findings
            mentions += section.mentions
        findings += _invariances(document)
    findings += _unused(known)
    findings.sort(key=lambda f: (f.cell or 0, f.line, f.column))
    return Report(tuple(findings), mentions, name)


def _invariances(document: Document) -> Iterator[Finding]:
    for start, prose in document.prose:
        for at, sentence in lints.invariance(prose):
            line, column = document.place(start + at)
            yield Finding(
                "warning", line, column, sentence,
                "attention is equivariant: rows of the output are permuted as those of the queries; invariant it is "
                "only where keys and values are permuted together", "equivariance", "f(P X) = P f(X)", document.cell,
            )  # fmt: skip


def _unused(known: Known) -> Iterator[Finding]:
    """Projections that nothing uses, though others with their letter are used."""
    for key, line in known.lines.items():
        entry = known.names.entries.get(key)
        value = None if entry is None else entry.value
        siblings = [k for k in known.lines if k != key and k[0] == key[0] and k in known.used and len(k) > 1]
        if len(key) < 2 or key in known.used or not isinstance(value, Tensor) or not known.is_free(value):
            continue
        twice = [told for told in known.twice if told[0] in siblings]
        if value.rank == 2 and twice:
            other, statement = twice[-1]
            yield Finding(
                "warning", line, 1, known.spelled[key],
                f"it is declared and never used, while {known.spelled.get(other, other)} stands in two equations",
                "unused projection", next(projected(statement, known), ""),
            )  # fmt: skip


class _Section:
    """The passages between two headings."""

    def __init__(self, known: Known, passages: list[Passage], budget: float, told: Callable[[], None]) -> None:
        self.known, self.passages, self.budget, self.told = known, passages, budget, told
        self.findings: list[Finding] = []
        self.mentions = 0

    def check(self) -> None:
        waiting = [p for p in self.passages if not self._declares(p)]
        for _ in range(_ROUNDS):
            left = [passage for passage in waiting if not self._tried(passage)]
            if not left or len(left) == len(waiting):
                waiting = left
                break
            waiting = left
        for passage in waiting:
            self._settled(passage)

    # --- reading ---

    def _declares(self, passage: Passage) -> bool:
        """Takes a declaration, and leaves everything else for later."""
        if passage.declares:
            self._comment(passage)
            self.told()
            return True
        if "=" in passage.text or not re.search(r"\\in\b|∈|:|\\sim", passage.text):
            return False
        return self._tried(passage, declarations=True)

    def _comment(self, passage: Passage) -> None:
        try:
            declare(passage.text, self.known, passage.line, passage.section)
        except (SymattnError, ValueError) as problem:
            self._add(passage, "skipped", f"this comment is not read: {_line(problem)}")
        else:
            self._add(passage, "ok", "declared", "declared")

    def _tried(self, passage: Passage, declarations: bool = False) -> bool:
        """Reads a passage and takes what it says, where all of it is read."""
        branch = self.known.branch()
        try:
            reads = _read(passage, branch)
        except (SymattnError, RecursionError):
            return False
        if any(read.problem is not None for read in reads):
            return False
        if declarations and not all(isinstance(a, Declaration) for read in reads for a in read.answers):
            return False
        self._take(branch)
        self._judge(passage, reads)
        self.told()
        return True

    def _take(self, branch: Known) -> None:
        vars(self.known).update(vars(branch))

    def _settled(self, passage: Passage) -> None:
        """Reads what can be read of a passage, and says of the rest why it is not."""
        self.told()
        branch = self.known.branch()
        try:
            reads = _read(passage, branch)
        except (SymattnError, RecursionError) as problem:
            self._problem(passage, passage.text, problem, None)
            return
        if self._declared_anew(passage, reads):
            return
        self._take(branch)
        self._judge(passage, reads)

    def _declared_anew(self, passage: Passage, reads: list[Read]) -> bool:
        """Takes a declaration in place of one of an earlier section."""
        if not all(isinstance(read.problem, ShapeError) or read.problem is None for read in reads):
            return False
        branch = self.known.branch()
        keys = {key_of(tree) for read in reads if read.problem is not None for tree in declared_names(read.tree)}
        old = {key for key in keys if branch.sections.get(key, passage.section) < passage.section}
        if not old or "=" in passage.text:
            return False
        for key in old:
            branch.forget(key)
        try:
            again = read_each(FormulaText(passage.text), branch.names)
        except SymattnError:
            return False
        if any(read.problem is not None for read in again):
            return False
        self._take(branch)
        self._judge(passage, again)
        return True

    # --- judging ---

    def _judge(self, passage: Passage, reads: list[Read]) -> None:
        start = len(self.findings)
        supposed = False
        for n, read in enumerate(reads):
            first = len(self.findings)
            self._statement(passage, read)
            follows = n + 1 < len(reads) and reads[n + 1].follows is not None
            supposed = (supposed and read.follows is not None) or follows
            if supposed and any(f.status == "refuted" for f in self.findings[first:]):
                self.findings[first:] = [self._only_supposed(f) for f in self.findings[first:]]
        if len(self.findings) == start:
            self.mentions += 1

    def _only_supposed(self, finding: Finding) -> Finding:
        if finding.status != "refuted":
            return finding
        return replace(finding, status="skipped", message="it stands in an implication, and may only be supposed")

    def _statement(self, passage: Passage, read: Read) -> None:
        text = whole(passage.text, read.span)
        if read.tree is not None:
            if _is_mention(read.tree):
                return
            self._uses(read.tree, text)
            for found in lints.tree_suspicions(read.tree):
                self._add(passage, "warning", found.message, found.lint, found.suggestion, read)
        if read.problem is not None:
            self._problem(passage, text, read.problem, read)
            return
        for n, answer in enumerate(read.answers):
            self._answer(passage, read, answer, n)

    def _uses(self, tree: Tree, text: str) -> None:
        """Notes the names on the right side, and a projection that stands in two equations."""
        sides = tree.sides[1:] if isinstance(tree, Relation) and "∈" not in tree.signs[:1] else ()
        for side in sides if isinstance(tree, Relation) else (tree,):
            for _, key, x in self.known.tensors_in(side):
                left = key_of(tree.sides[0]) if isinstance(tree, Relation) else ""
                roles = self.known.left.setdefault(key, set())
                if roles and left[:1].lower() not in roles and self.known.is_free(x):
                    self.known.twice.append((key, text))
                roles.add(left[:1].lower())
                self.known.used.add(key)

    def _answer(self, passage: Passage, read: Read, answer: Any, n: int) -> None:
        if isinstance(answer, Definition):
            self._definition(passage, read, answer)
        elif isinstance(answer, Claim):
            self._claim(passage, read, answer, n)
        elif isinstance(answer, (Tensor, sympy.Basic)):
            shape = answer.shape if isinstance(answer, Tensor) else ()
            self._add(passage, "ok", f"its shape is {show_shape(shape)}", "typed", read=read)
            self._suspect(passage, read, answer)
        else:
            self._declaration(passage, read, answer)

    def _declaration(self, passage: Passage, read: Read, answer: Any) -> None:
        for tree in declared_names(read.tree):
            self.known.note(tree, whole(passage.text, tree.span), passage.line, passage.section)
            for word, hypothesis in _HYPOTHESES.items():
                if re.search(rf"\b{word}\b", f"{passage.before} {passage.after}", re.IGNORECASE):
                    self.known.assume(key_of(tree), hypothesis)
        if isinstance(answer, Declaration) and isinstance(answer.value, Tensor):
            self._like_a_row(passage, read, answer)
        self._add(passage, "ok", str(answer), "declared", read=read)

    def _like_a_row(self, passage: Passage, read: Read, answer: Declaration) -> None:
        """A vector x beside a matrix X whose widths are D and d."""
        entry = self.known.names.entries.get(answer.name.upper()) if len(answer.name) == 1 else None
        if entry is None or not isinstance(entry.value, Tensor) or not answer.value.shape or not entry.value.shape:
            return
        own, other = answer.value.shape[-1], entry.value.shape[-1]
        if own != other and str(own).lower() == str(other).lower():
            self._add(passage, "warning", f"{answer} looks like a row of {entry.value.brief()}: {own} and {other} are "
                      "two sizes", "two names of one size", read=read)  # fmt: skip

    def _definition(self, passage: Passage, read: Read, answer: Definition) -> None:
        left = read.tree.sides[0] if isinstance(read.tree, Relation) else None
        if key := claims.gradient_of(answer, self.known):
            self._gradient(passage, read, key, answer)
            return
        for tree in declared_names(read.tree):
            self.known.note(tree, whole(passage.text, tree.span), passage.line, passage.section)
            self.known.told[key_of(tree)] = (whole(passage.text, read.span), passage.line, passage.column)
        value = answer.value
        if isinstance(left, Apply) and isinstance(value, Tensor):
            self.known.define_function(left, value)
        shape = show_shape(value.shape) if isinstance(value, Tensor) else ""
        self._add(passage, "ok", f"defines {answer.name}{shape}", "defined", read=read)
        self._suspect(passage, read, value)

    def _gradient(self, passage: Passage, read: Read, key: str, answer: Definition) -> None:
        try:
            found = claims.derived(key, answer, self.known)
            if isinstance(found, str):
                self._add(passage, "skipped", found, read=read)
                return
            result = claims.judged_gradient(key, found, self.budget)
        except SymattnError as problem:
            self._add(passage, "skipped", f"the derivative is not found: {_line(problem)}", read=read)
            return
        self._add(passage, *self._in_context(passage, result), read)
        if result.status == "refuted":
            for name, entry in self.known.names.entries.items():
                if entry.name == answer.name or name == answer.name:
                    self.known.names.entries[name] = replace(entry, value=found.right)

    def _suspect(self, passage: Passage, read: Read, value: Any) -> None:
        if isinstance(value, Tensor):
            for found in lints.value_suspicions(self.known.resolved(value)):
                self._add(passage, "warning", found.message, found.lint, found.suggestion, read)

    # --- claims ---

    def _claim(self, passage: Passage, read: Read, claim: Claim, n: int) -> None:
        left, right = claim.sides
        if claim.relation == "=" and n == 0:
            told = Definition(str(left.name), right)
            if left.op in (variable, let_op) and (key := claims.gradient_of(told, self.known)):
                self._gradient(passage, read, key, told)
                return
            if self.known.is_free(left) and self.known.give(left, right):
                self._add(passage, "ok", f"defines {left.brief()}", "defined", read=read)
                self._suspect(passage, read, right)
                return
        if self._of_sizes(passage, read, claim):
            return
        try:
            result = claims.judged(claims.asked(claim, self.known, self.budget))
        except SymattnError as problem:
            self._add(passage, "skipped", f"the claim is not decided: {_line(problem)}", read=read)
            return
        if result.status == "refuted":
            if claims.is_property(claim, self.known):
                result = claims.Judged("skipped", "it does not hold in general, and may be what is asked of declared "
                                                  f"tensors: it is not checked. {result.message}")  # fmt: skip
            elif n == 0 and self._is_restated(passage, read, claim):
                return
            elif read.tree is not None:
                result = replace(result, suggestion=suggested(passage.text, read.tree, self.known, self._holds))
        self._add(passage, *self._in_context(passage, result), read)

    def _holds(self, reads: list[Read], known: Known) -> bool:
        """Whether all claims of an edited formula are proved, and it has some."""
        found = [answer for read in reads for answer in read.answers if isinstance(answer, Claim)]
        return bool(found) and all(claims.asked(claim, known, _FEW) for claim in found)

    def _in_context(self, passage: Passage, found: claims.Judged) -> tuple[Status, str, str, str]:
        """What came out, where the words around a formula do not say that it is no claim."""
        if found.status == "refuted" and claims.is_supposed(passage.before):
            return "skipped", "the words in front of it say that it is a condition", "", ""
        if found.status == "refuted" and claims.is_denied(passage.before, passage.after):
            return "skipped", f"its sentence may deny it. {found.message}", "", ""
        return found.status, found.message, found.how, found.suggestion

    def _is_restated(self, passage: Passage, read: Read, claim: Claim) -> bool:
        """Has a name be defined anew: in a new section it may be something else, in the same one that is suspicious."""
        name = read.tree.sides[0] if isinstance(read.tree, Relation) else None
        key = "" if name is None else key_of(name)
        line = self.known.lines.get(key)
        if line is None or not key:
            return False
        earlier = self.known.sections[key] < passage.section
        status: Status = "ambiguous" if earlier else "warning"
        said = "it is taken as another one from here on" if earlier else "the two differ"
        self._add(passage, status, f"{key} is defined in line {line} as something else: {said}", "defined twice", read=read)
        if earlier:
            branch = self.known.branch()
            branch.forget(key)
            try:
                reads = read_each(FormulaText(passage.text), branch.names)
            except SymattnError:
                return True
            if all(r.problem is None for r in reads):
                self._take(branch)
                self.known.lines[key], self.known.sections[key] = passage.line, passage.section
                self.known.spelled[key] = key
        return True

    def _of_sizes(self, passage: Passage, read: Read, claim: Claim) -> bool:
        """Takes ``d_q = d_k`` for what is given; a size that is a number is an example."""
        if any(side.rank or side.op is not constant for side in claim.sides):
            return False
        left, right = (side.params["formula"] for side in claim.sides)
        symbols = left.free_symbols | right.free_symbols
        if not symbols:
            return False
        if right.is_Symbol and not left.is_Symbol:
            left, right = right, left
        if claim.relation == "=" and left.is_Symbol and left not in right.free_symbols and right.free_symbols:
            self.known.equate(left, right)
            self._add(passage, "ok", f"taken as given: {left} is {right}", "declared", read=read)
        else:
            self._add(passage, "skipped", "a relation of sizes is no claim, and numbers are an example", read=read)
        return True

    # --- problems ---

    def _problem(self, passage: Passage, text: str, problem: Exception, read: Read | None) -> None:
        said = _line(problem)
        tree = None if read is None else read.tree
        if isinstance(problem, ShapeError) and _run_together(tree):
            self._add(passage, "ambiguous", "two equations stand side by side: put \\quad between them", read=read)
        elif isinstance(problem, ShapeError) and (again := self._declared_again(passage, tree)):
            self._add(passage, "ambiguous", f"{said}; {again} is declared twice, and which one is meant is not decided",
                      read=read)  # fmt: skip
        elif isinstance(problem, ShapeError):
            if self._blames(passage, tree):
                self._add(passage, "ok", "its shapes fit with the other definition that is offered", "typed", read=read)
                return
            told = () if tree is None else self._told_of(tree)
            declared = "; " + ", ".join(told) if told else ""
            fits = suggested(passage.text, tree, self.known, lambda reads, known: True)
            found = claims.Judged("shape", said + declared, "", fits)
            self._add(passage, *self._in_context(passage, replace(found, status="shape")), read)
        elif "not decided" in said:  # as the reader words what people read in two ways
            self._add(passage, "ambiguous", said, read=read)
        else:
            self._add(passage, "skipped", said, read=read)

    def _declared_again(self, passage: Passage, tree: Tree | None) -> str:
        """A name in a formula that an earlier section than this one declared anew."""
        found = () if tree is None else self.known.tensors_in(tree)
        return next((key for _, key, _ in found if key in self.known.anew
                     and self.known.sections.get(key, passage.section) < passage.section), "")  # fmt: skip

    def _blames(self, passage: Passage, tree: Tree | None) -> bool:
        """Whether a name would fit if it were defined by a projection that nothing uses: then that is what is wrong."""
        for _, key, _ in list(() if tree is None else self.known.tensors_in(tree)):
            if key not in self.known.told:
                continue
            text, line, column = self.known.told[key]
            for edit in projected(text, self.known):
                branch = self.known.branch()
                branch.forget(key)
                try:
                    reads = [r for t in (edit, passage.text) for r in read_each(FormulaText(t), branch.names)]
                except SymattnError:
                    continue
                if all(r.problem is None for r in reads):
                    said = f"as it stands, {key} does not fit {' '.join(passage.text.split())} in line {passage.line}"
                    self.findings.append(Finding("shape", line, column, text, said, "", edit, passage.cell))
                    self.known.names = branch.names
                    self.known.used.update(k for r in reads if r.tree for _, k, _ in self.known.tensors_in(r.tree))
                    return True
        return False

    def _told_of(self, tree: Tree) -> Iterable[str]:
        """The shapes of the names in a formula, and where they were declared."""
        found: dict[str, str] = {}
        for _, key, x in self.known.tensors_in(tree):
            line = self.known.lines.get(key)
            where = "" if line is None else f" (line {line})"
            found[key] = f"{self.known.spelled.get(key, key)}{show_shape(x.shape)}{where}"
        return list(found.values())

    def _add(
        self, passage: Passage, status: Status, message: str, how: str = "", suggestion: str = "",
        read: Read | None = None,
    ) -> None:  # fmt: skip
        start, end = (0, len(passage.text)) if read is None else whole_span(passage.text, read.span)
        text, before = passage.text[start:end], passage.text[:start]
        line = passage.line + before.count("\n")
        column = len(before) - before.rfind("\n") if "\n" in before else passage.column + len(before)
        self.findings.append(Finding(status, line, column, text, message, how, suggestion, passage.cell))


def _read(passage: Passage, known: Known) -> list[Read]:
    """What a passage says: an index that it counts otherwise than the text before is another one here."""
    reads = read_each(FormulaText(passage.text), known.names)
    ranges, wrong = known.names.ranges, _misfits(reads)
    if not ranges or not wrong:
        return reads
    again = known.branch()
    again.names.ranges = {letter: r for letter, r in ranges.items() if letter in known.names.given_ranges}
    other = read_each(FormulaText(passage.text), again.names)
    if _misfits(other) >= wrong or sum(r.problem is not None for r in other) > sum(r.problem is not None for r in reads):
        return reads
    again.names.ranges |= ranges
    vars(known).update(vars(again))
    return other


def _misfits(reads: Iterable[Read]) -> int:
    return sum(isinstance(read.problem, ShapeError) for read in reads)


def _run_together(tree: Tree | None) -> bool:
    """Whether a side of a chain is a matrix and then a name, ``Q = [...] K = [...]``: two equations."""
    inner = tree.sides[1:-1] if isinstance(tree, Relation) else ()
    return any(isinstance(side, Product) and any(isinstance(x, Grid) for x in side.factors[:-1])
               and not isinstance(side.factors[-1], Grid) for side in inner)  # fmt: skip


def _is_mention(tree: Tree) -> bool:
    """Whether a formula is no more than a name, a number, or some of them."""
    match tree:
        case Symbol() | Number() | Mark():
            return True
        case Scripted(base=Symbol()):
            return bool(key_of(tree))
        case Items(items=items) | Fence(items=items):
            return all(map(_is_mention, items))
    return False


def _line(problem: Exception) -> str:
    """What is wrong in one line, with a way out that a document has."""
    said = problem.problem if isinstance(problem, ParseError) else str(problem)
    said = said.split("\n", 1)[0].partition("; declared are")[0]
    said = _ASKS.sub(r"declare it, as by \\in \\mathbb{R}^{n \\times d}, or in a comment", said)
    return said or type(problem).__name__


