"""Statements of a document, read one after the other by what was declared and defined before them.

The first equation of a declared name says what it is; every other equation is a claim, and that of a derivative is held
against the derivative that follows. Within a section declarations come first, wherever they stand, and a statement that
needs a later one waits for it; under a new heading a name may be another one. What cannot be read is told with the
reason, and never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import sympy

from ..core.node import Tensor
from ..errors import ParseError, ShapeError, SymattnError
from ..ops.leaves import let_op, scalar_value, variable
from ..printing.asked import latex
from ..proof.claims import Claim
from ..reading import parse_shape
from ..reading.latex.answers import Declaration, Definition, Distribution
from ..reading.latex.names import Names, key_of, tree_of
from ..reading.latex.read import Read, read_each
from ..reading.latex.text import FormulaText
from ..reading.latex.tree import (
    Apply,
    Grid,
    Product,
    Relation,
    Tree,
)
from . import claims
from .documents import Document, Passage
from .findings import WRONG, Finding
from .known import Known, declared_names, whole_span
from .respelled import projected, respelled
from .suggestions import intended

_BUDGET = 3.0  # seconds for one claim
_ROUNDS = 6  # in which statements wait for each other
_RELATED = re.compile(r"=|\\(?:le|ge|leq|geq|in|sim|coloneqq|eqqcolon|equiv|approx|to|neq)(?![a-zA-Z])|[<>:]")
_DECLARES = re.compile(r"\\in(?![a-z])|∈|:|\\sim(?![a-z])")
_OPERATION = re.compile(r"\^\{?\\top|\\(?:d?frac|odot|operatorname)|softmax")  # names side by side are no product
_IN_NUMBERS = re.compile(r"=\s*(?:\\begin\{[bpv]?(?:matrix|array)\}(?:\{\w+\})?\s*)+-?\d")  # values of an example
_PROPERTY = re.compile(r"\b(permutation|orthogonal|symmetric|invertible)\b")
_ASKS = re.compile(r": (?:declare|give) it by (?:names|law)=.*")
_HOW_TO_DECLARE = r": declare it, X \\in \\mathbb{R}^{n \\times d}, or in a comment, <!-- symattn: X: n d -->"
_SIGN = re.compile(r"\\mathrel\{:=\}|\\(?:odot|coloneqq|le|ge|leq|geq|in|sim|approx|to|neq|equiv)|[:=<>]+")  # alone
_REASON = re.compile(r"&&\s*\\text\{(?:(?!\\\\|\\cr(?![a-zA-Z])|\\end\{).)*", re.S)  # the column of reasons of a row
_BULLET = re.compile(r"^(?:[•*+\-–]|\d+[.)])\s+")


class Notes:
    """What a document says, and what was found of it."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.state = Known(Names({}))
        self.built: list[tuple[Passage, Tensor]] = []
        self.used: set[Tensor] = set()
        self.found: list[Finding] = []

    @property
    def known(self) -> dict[str, Any]:
        """Names with their meanings."""
        return {entry.name: entry.value for entry in self.state.names.entries.values()}

    @property
    def declared_at(self) -> dict[str, int]:
        """The lines in which names were declared."""
        entries = self.state.names.entries
        return {entries[key].name: line for key, line in self.state.lines.items() if key in entries}

    def findings(self) -> Iterator[Finding]:
        """Each statement in the order in which it could be read."""
        passages = (one for one in self.document.passages if one.kind != "words")
        for _, within in groupby(passages, key=lambda one: self.document.section(one.at)):
            self._section([_plain(one) for one in within])
        yield from self.found

    # --- reading ---

    def _section(self, passages: Sequence[Passage]) -> None:
        waiting = [one for one in passages if not self._comes_first(one)]
        for _ in range(_ROUNDS):
            left = [one for one in waiting if not self._is_read(one)]
            is_stuck, waiting = len(left) == len(waiting), left
            if is_stuck or not waiting:
                break
        for passage in waiting:
            self._read_in_part(passage)

    def _comes_first(self, passage: Passage) -> bool:
        """Takes what declares names, and formulas that relate nothing."""
        if passage.kind == "declared":
            self._declared_in_comment(passage)
            return True
        says = _RELATED.search(passage.text) or _OPERATION.search(passage.text)
        if _IN_NUMBERS.search(passage.text) or _SIGN.fullmatch(passage.text) or not says:
            self._say("mention", passage)
            return True
        if "=" in passage.text or not _DECLARES.search(passage.text) or self._of_new_sizes(passage):
            return False
        return self._is_read(passage, declarations=True)

    def _is_read(self, passage: Passage, declarations: bool = False) -> bool:
        """Takes what a passage says, where all of it is read."""
        if (keys := self._of_new_sizes(passage)) and self._is_declared_anew(passage, keys):
            return True
        branch = self.state.branch()
        try:
            reads = _read(passage, branch)
        except (SymattnError, RecursionError):
            return False
        if any(read.problem is not None for read in reads):
            wrong = [read for read in reads if read.problem is not None]
            keys = {key_of(tree) for read in wrong for tree in declared_names(read.tree)}
            are_shapes = all(isinstance(read.problem, ShapeError) for read in wrong)
            return not declarations and are_shapes and self._is_declared_anew(passage, keys)
        kinds = (Declaration, Distribution)
        if declarations and not all(isinstance(answer, kinds) for read in reads for answer in read.answers):
            return False
        self.state = branch
        self._all_said(passage, reads)
        return True

    def _read_in_part(self, passage: Passage) -> None:
        """Takes what can be read of a passage, and says of the rest why it is not."""
        branch = self.state.branch()
        try:
            reads = _read(passage, branch)
        except (SymattnError, RecursionError) as problem:
            self._unread(passage, None, problem)
            return
        if any(read.problem is None for read in reads):
            self.state = branch
        self._all_said(passage, reads)

    def _of_new_sizes(self, passage: Passage) -> set[str]:
        """The declared names of which a passage says a shape with sizes that nothing before has."""
        try:
            reads = read_each(FormulaText(passage.text), Names({})) if _DECLARES.search(passage.text) else []
        except (SymattnError, RecursionError):
            return set()
        entries, sizes = self.state.names.entries, set(self.state.names.sizes.values())
        found = set[str]()
        for answer in (answer for read in reads for answer in read.answers if isinstance(answer, Declaration)):
            key = next((key for key, entry in entries.items() if entry.name == answer.name), "")
            old = entries[key].value if key else None
            if isinstance(old, Tensor) and isinstance(answer.value, Tensor) and self.state.is_free(old):
                new = {symbol for size in answer.value.shape for symbol in size.free_symbols} - sizes
                found |= {key} if new else set()
        return found

    def _is_declared_anew(self, passage: Passage, keys: set[str]) -> bool:
        """Takes a declaration in place of an earlier one, unless an equation of this section says what the name is."""
        if "=" in passage.text or not keys:
            return False
        branch, section = self.state.branch(), self.document.section(passage.at)
        for key in keys:
            entry = branch.names.entries.get(key)
            is_free = entry is not None and isinstance(entry.value, Tensor) and branch.is_free(entry.value)
            if not is_free and branch.sections.get(key, section) >= section:
                return False
            branch.forget(key)
        try:
            again = _read(passage, branch)
        except SymattnError:
            return False
        if any(read.problem is not None for read in again):
            return False
        self.state = branch
        self._all_said(passage, again)
        return True

    # --- declarations ---

    def _declared_in_comment(self, passage: Passage) -> None:
        """``Q: T d; K: S d``, in a comment that is meant for us."""
        for text in filter(None, map(str.strip, re.split(r"[;\n]", passage.text))):
            try:
                x = parse_shape(text)
                tree = tree_of(str(x.name))
                if key_of(tree) in self.state.names.entries:
                    self.state.forget(key_of(tree))
                self.state.names.declare(tree, x, str(x.name))
            except SymattnError as problem:
                self._say("skipped", passage, f"this declares nothing: {_first_line(problem)}")
                continue
            self._note(passage, tree, latex(x))
            self._say("declared", passage, x.brief())

    def _note(self, passage: Passage, tree: Tree, shown: str = "") -> None:
        """Where a name was said to be something."""
        shown = shown or passage.text[slice(*whole_span(passage.text, tree.span))]
        line, _ = self.document.place(passage.at + (tree.span.start if passage.kind != "declared" else 0))
        self.state.note(tree, shown, line, self.document.section(passage.at))

    def _declared(self, passage: Passage, piece: Passage, read: Read, answer: Any) -> None:
        said = _PROPERTY.search(self.document.words_behind(passage)) or _PROPERTY.search(
            f"{self.document.words_before(passage.at)[-80:]}"
        )
        for tree in declared_names(read.tree):
            self._note(passage, tree)
            if said is not None:
                self.state.assume(key_of(tree), said[1])
        self._say("declared", piece, str(answer))
        if isinstance(answer, Declaration) and isinstance(answer.value, Tensor):
            self._like_a_row(piece, answer)

    def _like_a_row(self, piece: Passage, answer: Declaration) -> None:
        """Warns of a vector x beside a matrix X where their widths are D and d."""
        matrix = self.known.get(answer.name.upper()) if len(answer.name) == 1 else None
        if isinstance(matrix, Tensor) and matrix is not answer.value and matrix.shape and answer.value.shape:
            own, other = answer.value.shape[-1], matrix.shape[-1]
            if own != other and str(own).lower() == str(other).lower():
                said = f"{answer} looks like a row of {matrix.brief()}, and {own} and {other} are two sizes"
                self._say("warning", piece, said, (f"{other} in place of {own}",), rule="sizes")

    # --- statements ---

    def _all_said(self, passage: Passage, reads: Sequence[Read]) -> None:
        is_supposed = False
        for n, read in enumerate(reads):
            first = len(self.found)
            self._said(passage, read)
            leads = n + 1 < len(reads) and reads[n + 1].follows is not None
            is_supposed = (is_supposed and read.follows is not None) or leads
            for k in range(first, len(self.found)) if is_supposed else ():
                if self.found[k].status == "refuted":
                    said = "it stands in an implication, and may only be supposed"
                    self.found[k] = replace(self.found[k], status="skipped", message=said)

    def _said(self, passage: Passage, read: Read) -> None:
        start, end = whole_span(passage.text, read.span)
        piece = replace(passage, text=passage.text[start:end], at=passage.at + start)
        self._uses(read.tree)
        if read.problem is not None:
            self._unread(piece, read, read.problem)
        for n, answer in enumerate(read.answers):
            if n == 0 and isinstance(answer, (Definition, Claim)):
                self._named(passage, piece, read)
            if isinstance(answer, Definition):
                self._defined(piece, read, answer)
            elif isinstance(answer, Claim):
                self._claimed(piece, read, answer, n)
            elif isinstance(answer, (Tensor, sympy.Basic)):
                self._say("mention", piece)
                self._built(piece, answer)
            else:
                self._declared(passage, piece, read, answer)

    def _uses(self, tree: Tree | None) -> None:
        """Notes the names that stand in a formula, but for those on its left side."""
        sides = tree.sides[1:] if isinstance(tree, Relation) else () if tree is None else (tree,)
        for _, key, x in (found for side in sides for found in self.state.tensors_in(side)):
            self.state.used.add(key)
            self.used.add(x)

    def _named(self, passage: Passage, piece: Passage, read: Read) -> None:
        """Notes which equation is the first of a name."""
        for tree in declared_names(read.tree):
            if self.state.names.find(tree) is not None:
                self._note(passage, tree)
                self.state.told.setdefault(key_of(tree), (piece.text, *self.document.place(piece.at)))

    def _built(self, piece: Passage, value: Any) -> None:
        if isinstance(value, Tensor):
            self.used.update(value.tensors)
            self.built.append((piece, value))

    def _defined(self, piece: Passage, read: Read, answer: Definition) -> None:
        if key := claims.gradient_of(answer, self.state):
            self._derived(piece, key, answer)
            return
        left = read.tree.sides[0] if isinstance(read.tree, Relation) else None
        if isinstance(left, Apply) and isinstance(answer.value, Tensor):
            self.state.define_function(left, answer.value)
        self._built(piece, answer.value)
        self._say("defined", piece, answer.name)

    def _derived(self, piece: Passage, key: str, answer: Definition) -> None:
        """A derivative, held against the one that follows from what is defined; below, it is the right one."""
        self._built(piece, answer.value)
        try:
            found = claims.derived(key, answer, self.state)
            if isinstance(found, str):
                self._say("defined", piece, f"{answer.name}, which is not checked: {found}")
                return
            result = claims.judged_gradient(key, found, _BUDGET)
        except SymattnError as problem:
            self._say("unknown", piece, _first_line(problem))
            return
        self._judged(piece, result)
        if result.status == "refuted":
            self.state.values[answer.value] = found.right

    # --- claims ---

    def _claimed(self, piece: Passage, read: Read, claim: Claim, n: int) -> None:
        """Takes the ``n``-th equation or inequality of a chain."""
        left, right = claim.sides
        first = n == 0
        if claim.relation == "=" and first:
            told = Definition(str(left.name), right)
            if left.op in (variable, let_op) and (key := claims.gradient_of(told, self.state)):
                self._derived(piece, key, told)
                return
            if self.state.is_free(left) and self.state.give(left, right):
                self._built(piece, right)
                self._say("defined", piece, str(left.name))
                return
        sides = read.tree.sides[n : n + 2] if isinstance(read.tree, Relation) else ()
        is_of_tensors = any(True for side in sides for _ in self.state.tensors_in(side))  # as a moment, which is a size
        if not is_of_tensors and self._is_of_sizes(piece, claim):
            return
        for side in claim.sides:
            self._built(piece, self.state.resolved(side))
        try:
            result = claims.judged(claims.asked(claim, self.state, _BUDGET))
        except SymattnError as problem:  # such as what was taken as given contradicting itself
            self._say("unknown", piece, _first_line(problem))
            return
        if result.status == "refuted" and claims.is_property(claim, self.state):
            self.state.given.append(self.state.claim(claim))
            self._say("given", piece, f"taken as given: {claim}")
        elif result.status == "refuted" and self._is_in_example(claim):
            self._say("given", piece, f"it holds for the numbers of an example: {claim}")
        elif not (result.status == "refuted" and first and self._is_another(piece, read, claim)):
            self._judged(piece, result, claim)

    def _judged(self, piece: Passage, found: claims.Judged, claim: Claim | None = None) -> None:
        """What came out, unless the words around a formula may say that it does not hold."""
        if found.status in WRONG:
            if why := self._is_no_claim(piece):
                self._say("skipped", piece, f"{why}\n{found.message}")
                return
            if claim is not None and claim.relation == "=":
                found = replace(found, suggestions=self._meant(self.state.claim(claim)) or _value_of_left(piece, claim))
        self._say(found.status, piece, found.message, found.suggestions, verdict=found.verdict)

    def _is_no_claim(self, piece: Passage) -> str:
        """Why a formula that does not hold may not be meant to, by the words around it; ""."""
        before, after = self.document.words_before(piece.at), self.document.words_after(piece)
        if claims.is_supposed(before):
            return "a condition, as the words in front of it say"
        return "its sentence may deny it" if claims.is_denied(before, after) else ""

    def _meant(self, claim: Claim) -> tuple[str, ...]:
        """Formulas that are true and differ from the one written in one place."""
        left, right = claim.sides
        others = [x for x in self.known.values() if isinstance(x, Tensor) and self.state.is_free(x)]
        edits = intended(left, right, [x for x in others if x not in right.tensors], self.state.given)
        return tuple(f"{latex(left)} = {latex(edit.tensor)}" for edit in edits)

    def _is_in_example(self, claim: Claim) -> bool:
        """Whether two numbers are equal once sizes have the values that the document gave them in an example."""
        left, right = map(scalar_value, claim.sides)
        if left is None or right is None or claim.relation != "=" or not self.state.examples:
            return False
        return bool(sympy.simplify((left - right).subs(self.state.examples)) == 0)

    def _is_another(self, piece: Passage, read: Read, claim: Claim) -> bool:
        """Has a name mean something else from here on, where an earlier section says what it was; else warns."""
        name = read.tree.sides[0] if isinstance(read.tree, Relation) else None
        key = "" if name is None else key_of(name)
        line = self.state.lines.get(key) if key else None
        if line is None:
            return False
        said = f"line {line} gives {key} another meaning"
        if self.state.sections[key] >= self.document.section(piece.at):
            meant = self._meant(self.state.claim(claim)) if claim.relation == "=" else ()
            self._say("warning", piece, said, meant, rule="defined twice")
            return True
        branch = self.state.branch()
        branch.forget(key)
        try:
            reads = _read(piece, branch)
        except SymattnError:
            reads = []
        if reads and all(read.problem is None for read in reads):
            self.state = branch
            for read_ in reads:
                for tree in declared_names(read_.tree):
                    self._note(piece, tree)
        self._say("ambiguous", piece, f"{said}: from here on it has this one")
        return True

    def _is_of_sizes(self, piece: Passage, claim: Claim) -> bool:
        """Takes ``d_q = d_k`` for what is given; a size that is a number is one in an example."""
        left, right = map(scalar_value, claim.sides)
        if left is None or right is None or not (left.free_symbols or right.free_symbols):
            return False
        if right.is_Symbol and not left.is_Symbol:
            left, right = right, left
        if claim.relation != "=" or not left.is_Symbol or left in right.free_symbols:
            self._say("given", piece, f"a relation of sizes, which nothing here rests on: {claim}")
        elif right.free_symbols:
            self.state.equate(left, right)
            self._say("given", piece, f"taken as given: {claim}")
        else:
            self.state.examples[left] = right
            self._say("given", piece, f"the value in an example: {claim}")
        return True

    # --- what does not read ---

    def _unread(self, piece: Passage, read: Read | None, problem: Exception) -> None:
        """What is said of a statement that does not read: shapes that do not fit are wrong, the rest is skipped."""
        said, tree = _first_line(problem), None if read is None else read.tree
        if isinstance(problem, ShapeError):
            self._of_other_shape(piece, read, said)
        elif said.startswith("no law of"):
            asks = "a moment is stated, and no law: are entries independent, of mean 0 and variance 1?"
            self._say("warning", piece, asks, (r"x_i \sim \mathcal{N}(0, 1)",), rule="law")
        elif tree is not None and not isinstance(tree, Relation):
            self._say("mention", piece)
        elif "not decided" in said:  # as the reader words what people read in two ways
            self._say("ambiguous", piece, said)
        else:
            self._say("skipped", piece, _ASKS.sub(_HOW_TO_DECLARE, said))

    def _of_other_shape(self, piece: Passage, read: Read | None, said: str) -> None:
        """Shapes that do not fit, with where they were declared, and a formula whose shapes do."""
        tree = None if read is None else read.tree
        names = {key: x for _, key, x in (() if tree is None else self.state.tensors_in(tree))}
        again = next((key for key in names if self._is_declared_later(key, piece)), "")
        if _runs_together(tree):
            self._say("ambiguous", piece, "two equations stand side by side: put \\quad between them")
        elif again:
            self._say("ambiguous", piece, f"{said}; which {again} is meant is not decided, as it was declared twice")
        elif why := self._is_no_claim(piece):
            self._say("skipped", piece, f"{why}; {said}")
        elif not self._blames(piece, names):
            lines = [(line, names[key]) for key, line in self.state.lines.items() if key in names]
            at = [f"{x.brief()} is declared in line {line}" for line, x in sorted(lines, key=lambda one: one[0])]
            meant = respelled(piece.text, self.state)
            entries = self.state.names.entries
            self.used.update(entries[key].value for key, shown in self.state.spelled.items() if shown in meant)
            self._say("shape", piece, "; ".join([said, *at]), (meant,) if meant else ())

    def _is_declared_later(self, key: str, piece: Passage) -> bool:
        """Whether an earlier section than this one declared a name again."""
        section = self.document.section(piece.at)
        return key in self.state.anew and self.state.sections.get(key, section) < section

    def _blames(self, piece: Passage, names: Iterable[str]) -> bool:
        """Whether a name would fit if it were made by a projection that nothing uses: then that is what is wrong."""
        for key in [key for key in names if key in self.state.told]:
            text, line, column = self.state.told[key]
            for edit in projected(text, self.state):
                branch = self.state.branch()
                branch.forget(key)
                try:
                    reads = [one for said in (edit, piece.text) for one in read_each(FormulaText(said), branch.names)]
                except SymattnError:
                    continue
                if all(one.problem is None for one in reads):
                    shown = " ".join(piece.text.split())
                    says = f"{key} does not fit {shown} in line {self.document.place(piece.at)[0]}"
                    self.found.append(Finding("shape", text, line, column, says, (edit,)))
                    self.state = branch
                    self._uses(next((one.tree for one in reads), None))
                    self._say("mention", piece, f"it fits once {key} is corrected")
                    return True
        return False

    def _say(
        self, status: Any, passage: Passage, message: str = "", suggestions: tuple[str, ...] = (), **more: Any
    ) -> None:
        line, column = self.document.place(passage.at)
        shown = " ".join(passage.text.split())
        self.found.append(Finding(status, shown, line, column, message, suggestions, **more))


def _read(passage: Passage, known: Known) -> list[Read]:
    """What a passage says: an index that it counts otherwise than the text before is another one here."""
    reads = read_each(FormulaText(passage.text), known.names)
    ranges, wrong = known.names.ranges, _misfits(reads)
    if not ranges or not wrong:
        return reads
    again = known.branch()
    again.names.ranges = {letter: r for letter, r in ranges.items() if letter in known.names.given_ranges}
    other = read_each(FormulaText(passage.text), again.names)
    if _misfits(other) >= wrong or _unread(other) > _unread(reads):
        return reads
    again.names.ranges |= ranges
    vars(known).update(vars(again))
    return other


def _misfits(reads: Iterable[Read]) -> int:
    return sum(isinstance(read.problem, ShapeError) for read in reads)


def _unread(reads: Iterable[Read]) -> int:
    return sum(read.problem is not None for read in reads)


def _runs_together(tree: Tree | None) -> bool:
    """Whether a side of a chain is a matrix and then a name, ``Q = [...] K = [...]``: two equations."""
    inner = tree.sides[1:-1] if isinstance(tree, Relation) else ()
    products = (side.factors for side in inner if isinstance(side, Product))
    return any(any(isinstance(x, Grid) for x in factors) and not isinstance(factors[-1], Grid) for factors in products)


def _plain(passage: Passage) -> Passage:
    """A formula as the reader takes it: without the mark of a list in front, and without space around it."""
    text = passage.text
    lead = _BULLET.match(text) if passage.kind == "undelimited" else None
    start = lead.end() if lead else len(text) - len(text.lstrip())
    text = _REASON.sub(lambda found: " " * len(found.group()), text)  # what is left keeps its place
    return replace(passage, text=text[start:].strip(), at=passage.at + start)


def _value_of_left(piece: Passage, claim: Claim) -> tuple[str, ...]:
    """The left side of an equation as it is written, and the number that it is, as a moment or a count may be."""
    value = scalar_value(claim.left)
    return () if value is None else (f"{piece.text.partition('=')[0].strip(' &')} = {sympy.latex(value)}",)


def _first_line(problem: Any) -> str:
    said = problem.problem if isinstance(problem, ParseError) else str(problem)
    return said.partition("\n")[0].partition("; declared are")[0]
