"""Derivations: sentences, lines, claims and examples in reading order, each step with what was done to check it.

A derivation holds no second text of the mathematics: its lines are the tensors themselves.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Self, TypeAlias

import sympy

from ..calculus.gradient import gradient
from ..calculus.result import Gradient
from ..core.arguments import each_of, text_of
from ..core.boxes import Name
from ..core.naming import nearest
from ..core.node import Tensor
from ..core.sizes import same_shape
from ..errors import AbsentError, NamingError, OperandError, ShapeError, described
from ..graph.names import displayed_names
from ..ops.leaves import as_tensor, cotangent_op, definition, is_named, let_op, named, scalar_value, variable
from ..printing import prose as page
from ..printing.align import TEXT_WIDTH
from ..printing.symbols import letters_of
from ..printing.table import Spellings
from ..probability.report import Moments
from ..proof.claims import Claim
from ..proof.induction.plan import plans
from ..proof.verdict import Verdict
from .asserting import asserted, names_of
from .checks import Check, Report
from .completing import completed
from .composing import Composer
from .leading import check_leads
from .numbers import example
from .parts import (
    Calculation,
    Cases,
    Folded,
    Heading,
    Illustration,
    Line,
    Listing,
    Part,
    Statement,
    numbered,
    roots,
    steps,
)
from .prose import Formula, Prose, prose
from .render.html import html
from .render.json import as_json
from .render.latex import latex
from .render.markdown import markdown
from .render.pdf import pdf
from .render.text import WIDTH, text
from .verification import RELATIONS, Checker, checks_of, verified

Because: TypeAlias = str | Mapping[Any, str]
_KINDS = ("Claim", "Lemma", "Proposition", "Theorem", "Corollary")


class Derivation:
    """A titled derivation; ``given`` are the tensors and scalar symbols that it starts from, with what they mean.

    Each method returns a new derivation. ``section`` begins a section and ``say`` adds sentences, with mathematics
    between dollar signs; ``extend`` adds named intermediates, gradients, equations, claims and moments, and ``then``
    goes on from the last line. ``verify`` proves what it can; ``latex``, ``markdown``, ``html``, ``text``, ``json`` and
    ``pdf`` write it out. ``result`` is what stands first: sentences, named tensors, claims, moments; unless given, the
    gradients by what is given. ``letters`` stand for anything in sentences: ``letters="A B"``.

    >>> import symattn as sa
    >>> z = sa.tensor("z", "n")
    >>> L = sa.let("L", sa.logsumexp(z))
    >>> D = sa.Derivation("Gradient of logsumexp", given={z: "scores"}).extend(L, sa.gradient(L, z))
    >>> D.verify().text()
    'L: by definition\\ndz: proved'
    """

    def __init__(
        self,
        title: str,
        given: Mapping[Any, str] | Iterable[Any] = (),
        summary: str = "",
        result: Any = (),
        references: Iterable[str] = (),
        letters: str = "",
    ) -> None:
        if not isinstance(title, str) or not title.strip():
            raise OperandError(f"a derivation has a title, not {described(title)}")
        self.title = title.strip()
        self.titled = prose(self.title, "the title")
        self.summary = prose(summary, "the summary")
        self.given = _given(given)
        self.result = tuple(prose(x, "the result") if isinstance(x, str) else _shown(x) for x in each_of(result))
        self.references = tuple(prose(x, "a reference") for x in each_of(references))
        self.letters = frozenset(_letters(letters))
        self.parts: tuple[Part, ...] = ()
        self.command = ""
        self._verified: tuple[Part, ...] | None = None
        self._of_result: tuple[Check, ...] = ()
        self.sentences: Mapping[Formula, Check] = {}

    def _with(self, *parts: Part) -> Self:
        return self._changed(parts=numbered((*self.parts, *parts)), _verified=None, _of_result=(), sentences={})

    @property
    def steps(self) -> tuple[Line | Statement | Calculation | Cases, ...]:
        """What is checked: lines, claims, calculations and tables."""
        return tuple(steps(self.parts))

    # --- writing it ---

    def section(self, title: str) -> Self:
        """Begin a section."""
        heading = prose(title, "the title of a section")
        if not heading.source:
            raise OperandError("a section has a title")
        if any(isinstance(part, Heading) and part.title.source == heading.source for part in self.parts):
            raise OperandError(f"there is a section {heading.source!r} already")
        return self._with(Heading(heading))

    def say(self, sentences: str) -> Self:
        """Add a paragraph, with mathematics between dollar signs: ``"The output is a product, $O = P V$."``.

        Raises OperandError for a formula that does not read. The letters of formulas are those of the derivation;
        another one is a NamingError when the derivation is written or verified.
        """
        return self._with(prose(sentences, "the paragraph"))

    def extend(self, *parts: Any, because: Because = "", by: Any = None) -> Self:
        """Add named intermediates, gradients, single ones (``g["dV"]``), equations, claims, moments, derivations.

        An equation, ``sa.eq(a, b)``, ``sa.le(a, b)`` or ``sa.lt(a, b)``, is a line of its own and is proved when the
        derivation is verified; a verdict is a claim, see ``claim``. ``because`` says why, for all of it or by name:
        ``because={"dV": "product rule on $O = P V$"}``. ``by`` is the induction, or several, by which equations about
        recurrences are proved, ``sa.induction(...)``.
        Raises OperandError for what has no steps and no name, and for a claim that is neither proved nor refuted.
        """
        reasons, inductions = _Reasons(because), plans(by)
        done, added = self, list[Part]()
        for part in parts:
            found = list(_lines_of(part, [*steps(self.parts), *added]))
            if inductions and isinstance(part, Claim):
                found = [line._replace(by=inductions) if isinstance(line, Line) else line for line in found]
            added += [reasons.given(line) if isinstance(line, Line) else line for line in found]
        if inductions and not any(isinstance(part, Claim) for part in parts):
            raise OperandError("by= says how equations are proved, and none is given")
        reasons.check([line for line in added if isinstance(line, Line)])
        return done._with(*added)

    def then(self, expr: Any, relation: str = "=", because: str = "", label: str = "", by: Any = None) -> Self:
        r"""Go on from the last line: what stands there is equal to ``expr``, or ``<=``, ``<``, ``>=`` or ``>`` than it.

        ``by`` is the induction that proves it, of a recurrence. By ``label``, text around the LaTeX refers to the line:
        ``\eqref{label}``. Raises OperandError if there is no line to go on from, for another relation, one in the other
        direction than those before it or a label that is taken, and ShapeError for another shape.
        """
        if not isinstance(relation, str) or relation not in RELATIONS:
            raise OperandError(f"then relates by one of {', '.join(RELATIONS)}, not {described(relation)}")
        last = next((part for part in reversed(self.parts) if not isinstance(part, Prose)), None)
        if not isinstance(last, Line):
            raise OperandError("there is no line to continue: begin with extend(sa.let(...))")
        x, before = as_tensor(expr), last.expression
        if not same_shape(x.shape, before.shape):
            raise ShapeError(f"{x.brief()} cannot equal {before.brief()}: the shapes differ")
        self._check_direction(relation)
        reason = prose(because, "because=")
        return self._with(Line(None, x, "further", reason, relation, self._new_label(label), by=plans(by)))

    def _check_direction(self, relation: str) -> None:
        """A chain that goes up and down says nothing about its ends; raises OperandError."""
        for line in reversed([part for part in self.parts if isinstance(part, Line)]):
            if {relation[0], line.relation[0]} == {"<", ">"}:
                raise OperandError(
                    f"a chain that has {line.relation} cannot go on with {relation}, which says nothing about its "
                    "ends: begin another one with extend(sa.le(...))"
                )
            if line.left is not None:
                return

    def _new_label(self, label: Any) -> str:
        if not isinstance(label, str) or not all(c.isalnum() or c in "-_:." for c in label):
            raise OperandError(f"label= is made of letters, digits and -_:., not {described(label)}")
        if label and any(isinstance(part, Line) and part.label == label for part in self.steps):
            raise OperandError(f"another line has the label {label!r}")
        return label

    def claim(
        self, verdict: Verdict, title: str = "", holds: Any = (), proof: Any = (), kind: str = "", because: str = ""
    ) -> Self:
        """Add a claim that was proved or refuted, with its proof or its counterexample.

        ``holds`` says what is true instead, in sentences or as a verdict; ``proof`` are steps for people: a derivation
        whose lines lead from the left side to the right, or of an equation expressions, each with a reason or without.
        ``kind`` is "Claim", "Lemma", "Proposition", "Theorem" or "Corollary"; a proved claim is a proposition unless it
        says otherwise.
        """
        if not isinstance(verdict, Verdict) or verdict.status == "unknown":
            raise OperandError(f"claim takes what sa.prove has proved or refuted, not {described(verdict)}")
        kind = text_of("claim", "kind", kind) or ("Proposition" if verdict else "Claim")
        if kind not in _KINDS:
            raise OperandError(f"kind= is one of {', '.join(_KINDS)}, not {described(kind)}")
        held = tuple(prose(x, "holds=") if isinstance(x, str) else _proved(x) for x in each_of(holds))
        heading, why = _said(title, "the title of a claim"), _said(because, "because=")
        lead = () if why is None else (why,)
        return self._with(Statement(verdict, kind, heading, held, (*lead, *_proof_of(verdict, proof))))

    def cases(self, table: Mapping[str, Any] | Iterable[Sequence[Any]], head: Sequence[str] = ()) -> Self:
        """Add a table: rows of sentences, formulas and verdicts, or moments by the case that they are of.

        ``cases({"the entries have means": sa.moments(...)})`` shows quantity, mean and variance of each.
        """
        return self._with(_cases(table, head))

    def example(
        self, values: Mapping[Any, Any] | None = None, sizes: Mapping[Any, int] | None = None, show: Iterable[Any] = ()
    ) -> Self:
        """Add the lines in numbers: ``values`` are arrays and scalars by what they are for.

        Of what is given and has no values some are made up, of ``sizes``. ``show`` are the tensors that are shown,
        unless given all that lines define.
        """
        arrays, numbers = ({} if given is None else given for given in (values, sizes))
        return self._with(example(self, arrays, numbers, tuple(each_of(show))))

    def figure(self, figure: page.Figure, caption: str = "") -> Self:
        """Add a picture that ``sa.plot`` has made."""
        if not isinstance(figure, page.Figure):
            raise OperandError(f"figure takes what sa.plot has drawn, not {described(figure)}")
        return self._with(Illustration(figure, _said(caption, "the caption")))

    def fold(self, title: str, derivation: Derivation) -> Self:
        """Add what is opened by those who want it: the parts of another derivation."""
        if not isinstance(derivation, Derivation):
            raise OperandError(f"fold takes a derivation, not {described(derivation)}")
        return self._with(Folded(prose(title, "the title of a fold"), derivation.parts))

    def code(self, source: str, language: str = "python") -> Self:
        """Add source code."""
        if not isinstance(source, str):
            raise OperandError(f"code takes text, not {described(source)}")
        if not all(c.isalnum() or c in "+-#._" for c in text_of("code", "language", language)):
            raise OperandError(f"code: language is a word, such as 'python', not {described(language)}")
        return self._with(Listing(source, language))

    def checked_by(self, command: str) -> Self:
        """Say by which command the derivation is checked again."""
        if not isinstance(command, str) or not command.isprintable():
            raise OperandError(f"checked_by takes a command in one line, not {described(command)}")
        return self._changed(command=command)

    def _changed(self, **values: Any) -> Self:
        changed = copy.copy(self)
        for name, value in values.items():
            setattr(changed, name, value)
        return changed

    def __getitem__(self, title: str) -> Self:
        """One section, by its title, as a derivation. Raises AbsentError, which lists the sections."""
        titles = [part.title.source for part in self.parts if isinstance(part, Heading)]
        if not isinstance(title, str) or title not in titles:
            raise AbsentError(f"there is no section {described(title)}; there are {', '.join(titles) or 'none'}")
        start = self._place(title) + 1
        end = next((k for k in range(start, len(self.parts)) if isinstance(self.parts[k], Heading)), len(self.parts))
        verified = None if self._verified is None else self._verified[start:end]
        titled, summary = prose(title, "the title"), prose("", "the summary")
        parts = self.parts[start:end]
        section = self._changed(title=title, titled=titled, parts=parts, summary=summary, result=(), _verified=verified)
        return section._changed(_of_result=(), sentences={})

    def _place(self, title: str) -> int:
        return next(k for k, part in enumerate(self.parts) if isinstance(part, Heading) and part.title.source == title)

    # --- checking it ---

    def verify(self, budget: float = 10.0) -> Report:
        """Prove every step, and where no proof is found check it numerically; the report says which it was.

        Gradients are held against the derivatives of the entries, each line of a chain against the one before it, and
        claims against their own proof or counterexample; moments are computed again. A numeric check compares values,
        or central differences, on random arrays of two sets of generic sizes. ``budget`` is the time in seconds for
        each proof. Claims of the result that no claim below says are held in the same way; those in its sentences are
        proved, or else marked with the reason. What is written afterwards shows how each step was checked.
        Raises EvaluationError that names a false step, and shows a point at which it is false, and NoRuleError
        that names one without a proof or numbers.
        """
        names = self._names
        checker = Checker([*roots(self.parts), *roots(self.result)], budget)
        parts = tuple(verified(self.parts, checker, names))
        of_result = tuple(_checked(x, f"result {k}", checker) for k, (x, _) in enumerate(self.asserted, 1))
        self._verified, self._of_result = parts, of_result
        self.sentences = asserted(self._sayings, self.parts, self._spoken, checker)
        return Report((*checks_of(self._completed(parts), names), *of_result, *self.sentences.values()))

    def _completed(self, parts: Sequence[Part]) -> list[Part]:
        """Its parts, with a line for each name that nobody has defined."""
        mentioned = roots(x for x in self.result if not isinstance(x, Moments))
        return completed(parts, self._names, mentioned)

    @property
    def _names(self) -> Mapping[Tensor, str]:
        """The names under which tensors are shown."""
        tensors = (x for x in self.given if isinstance(x, Tensor))
        return displayed_names([*roots(self.parts), *roots(self.result), *tensors])

    @property
    def _sayings(self) -> list[Prose]:
        """The sentences of the result, and those that say what holds instead of a claim."""
        held = (x for step in self.steps if isinstance(step, Statement) for x in step.holds)
        return [x for x in (*self.result, *held) if isinstance(x, Prose)]

    @property
    def _spoken(self) -> dict[str, Any]:
        """What sentences speak of, by its names."""
        return names_of(self._names, [x for x in self.given if isinstance(x, sympy.Symbol)])

    @property
    def asserted(self) -> list[tuple[Claim | Moments | Tensor, Check | None]]:
        """The claims, moments and gradients that the result alone says, with what was done to check them."""
        said = {key for step in self.steps for key in _keys(step)}
        claimed: list[Any] = [x for x in self.result if isinstance(x, (Claim, Moments)) or _is_gradient(x)]
        return [*zip_longest((x for x in claimed if said.isdisjoint(_keys(x))), self._of_result)]

    # --- printing it ---

    def composed(
        self, names: Spellings | None = None, style: str = "matrix", gradients: str = "d", first_index: int = 0
    ) -> page.Document:
        """The page, which knows no medium: see ``symattn.printing.prose``."""
        return Composer(self, self._verified or self.parts, names, style, gradients, first_index).document()

    def latex(
        self,
        names: Spellings | None = None,
        style: str = "matrix",
        gradients: str = "d",
        *,
        environment: str = "align*",
        numbered: str = "referenced",
        width: float = TEXT_WIDTH,
        first_index: int = 0,
        standalone: bool = False,
        theorems: bool = False,
    ) -> str:
        r"""The derivation in LaTeX (amsmath, amssymb): a fragment, or ``standalone`` a whole article.

        ``names``, ``style``, ``gradients`` and ``first_index`` are those of ``sa.latex``. The ``environment`` of blocks
        is "align*", "align", "gather*", "aligned" or "equation", which holds one row; ``numbered`` is "none",
        "referenced" or "all"; ``width`` is that of the text, in em; ``theorems`` uses amsthm. Raises OperandError for
        an environment that cannot hold the rows or their numbers.
        """
        document = self.composed(names, style, gradients, first_index)
        return latex(document, environment, numbered, width, standalone, theorems)

    def pdf(self, path: str | Path, names: Spellings | None = None, gradients: str = "d") -> None:
        """Write the derivation as PDF, by a TeX that is installed.

        Raises TypesettingError where there is none, and FileError for a path at which no file can be written.
        """
        pdf(self.composed(names, gradients=gradients), path)

    def markdown(self, names: Spellings | None = None, gradients: str = "d", first_index: int = 0) -> str:
        """The derivation in Markdown, as GitHub and Jupyter show it."""
        return markdown(self.composed(names, "matrix", gradients, first_index))

    def html(
        self, names: Spellings | None = None, gradients: str = "d", first_index: int = 0, standalone: bool = True
    ) -> str:
        """The derivation as one file of HTML that needs nothing else, or as a part of a page."""
        return html(self.composed(names, "matrix", gradients, first_index), standalone)

    def text(self, names: Spellings | None = None, gradients: str = "d", width: int = WIDTH) -> str:
        """The derivation for a terminal."""
        return text(self.composed(names, gradients=gradients), width)

    def json(self, names: Spellings | None = None, gradients: str = "d") -> str:
        """The derivation as JSON: what it says, each formula as LaTeX and as text, and how each step was checked."""
        return as_json(self.composed(names, gradients=gradients))

    def __repr__(self) -> str:
        return f"<derivation {self.title!r} of {len(self.steps)} steps>"

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html(standalone=False)

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def _repr_latex_(self) -> str:
        return self.latex()


# --- what is given to it ---


def _letters(given: Any) -> Iterator[str]:
    """Letters with spaces between them, Greek ones by their names."""
    for word in given.split() if isinstance(given, str) else [given]:
        letter = letters_of(word.removeprefix("\\")) if isinstance(word, str) else None
        if not isinstance(letter, Name) or len(letter.letters) != 1 or not letter.letters.isalpha():
            raise OperandError(f"letters= are letters with spaces between them, not {described(word)}")
        yield letter.letters


def _said(sentence: Any, where: str) -> Prose | None:
    """A sentence, or none."""
    said = prose(sentence, where)
    return said if said.source else None


def _given(given: Any) -> dict[Any, Prose]:
    pairs = list(given.items()) if isinstance(given, Mapping) else [(x, "") for x in each_of(given)]
    for x, _ in pairs:
        if not isinstance(x, sympy.Symbol) and not (isinstance(x, Tensor) and x.op is variable):
            raise OperandError(f"given holds tensors and scalar symbols with what they mean, not {described(x)}")
    return {x: prose(meaning, f"what {x.name} means") for x, meaning in pairs}


def _shown(x: Any) -> Any:
    if isinstance(x, Verdict) and x.status != "proved":
        raise OperandError(f"result holds what is proved, not {described(x)}")
    if isinstance(x, (Verdict, Moments, Claim)) or (isinstance(x, Tensor) and is_named(x)):
        return x
    raise OperandError(f"result holds sentences, named tensors, claims and moments, not {described(x)}")


def _proved(x: Any) -> Verdict:
    if isinstance(x, Verdict) and x.status == "proved":
        return x
    raise OperandError(f"holds= takes sentences and proved claims, not {described(x)}")


def _is_gradient(x: Any) -> bool:
    return isinstance(x, Tensor) and x.op is cotangent_op


def _keys(x: Any) -> Iterator[tuple[Any, ...]]:
    """What a step or a part of the result says, to be compared."""
    match x:
        case Claim():
            yield x.sides, x.relation
        case Moments():
            yield x.quantity, x.mean, x.variance, x.assumptions
        case Tensor():
            yield (x,)
        case Line(left=Tensor() as left):
            yield ((left, x.expression), x.relation) if x.kind == "equation" else (left,)
        case Statement():
            yield from _keys(x.verdict.claim)
        case Calculation() | Cases():
            for moments in x.every:
                yield from _keys(moments)


def _checked(x: Claim | Moments | Tensor, name: str, checker: Checker) -> Check:
    match x:
        case Moments():
            return checker.moments(name, x)
        case Claim():
            return checker.related(name, x.left, x.relation, x.right)
    return checker.gradient(name, x)


class _Reasons:
    """Why lines hold: one sentence for all, or one by name."""

    def __init__(self, because: Because) -> None:
        if not isinstance(because, (str, Mapping)):
            raise OperandError(
                f"because= is a sentence that says why, or such sentences by name, not {described(because)}"
            )
        self._by_name = {
            str(key.name) if isinstance(key, Tensor) else str(key): prose(said, "because=")
            for key, said in (because.items() if isinstance(because, Mapping) else ())
        }
        self._all = prose(because, "because=") if isinstance(because, str) and because else None

    def given(self, line: Line) -> Line:
        if line.kind == "where":
            return line
        said = self._by_name.get(_name_of(line), self._all)
        return line if said is None else line._replace(reason=said)

    def check(self, lines: Sequence[Line]) -> None:
        """Raises NamingError for a name that no line has."""
        names = [_name_of(line) for line in lines]
        for name in self._by_name:
            if name not in names:
                raise NamingError(
                    f"because= speaks of {name!r}, the name of no line here: {nearest(name, filter(None, names))}"
                )


def _name_of(line: Line) -> str:
    return str(line.left.name) if line.left is not None and is_named(line.left) else ""


def _lines_of(part: Any, before: Sequence[Any]) -> Iterator[Part]:
    """The parts that something is."""
    match part:
        case Gradient():
            yield from _of_gradient(part, before)
        case Tensor() if part.op is let_op:
            yield Line(part, definition(part), "definition")
        case Tensor() if part.op is cotangent_op:
            yield from _of_single_gradient(part)
        case Claim():
            left, relation, right = part.left, part.relation, part.right
            yield Line(left, right, "equation", relation=relation)
        case Verdict() if part.status != "unknown":
            yield Statement(part, "Claim")
        case Moments():
            yield Calculation(part)
        case Derivation():
            yield from part.parts
        case _:
            raise OperandError(
                f"extend takes gradients, intermediates named by sa.let, equations, moments, and claims that sa.prove "
                f"has proved or refuted, not {described(part)}"
            )


def _of_gradient(gradient: Gradient, before: Sequence[Any]) -> Iterator[Line]:
    defined = {(line.left, line.expression) for line in before if isinstance(line, Line)}
    for step in gradient.definitions:
        if (pair := (named(step.name, step.expression), step.expression)) not in defined:
            yield Line(*pair, "where")
    for step in gradient.steps:
        left = gradient.named[step.name]
        yield Line(left, step.expression, "gradient", step.reason, remarks=gradient.side_conditions)


def _of_single_gradient(x: Tensor) -> Iterator[Line]:
    """One step of a gradient, which is taken again: for why it holds, and where it does not exist."""
    _, of, *pairs = x.inputs
    symbol = scalar_value(of)  # of a scalar symbol, which is a constant where it is a tensor
    again = gradient(dict(zip(pairs[::2], pairs[1::2], strict=True)), [of if symbol is None else symbol])
    reasons = [step.reason for step in again.steps if again.named[step.name] is x]
    yield Line(x, definition(x), "gradient", "".join(reasons[:1]), remarks=again.side_conditions)


def _proof_of(verdict: Verdict, proof: Any) -> tuple[Part, ...]:
    """Steps for people: those of a derivation, or from one side of the claim to the other."""
    if isinstance(proof, Derivation):
        check_leads(verdict, proof.parts)
        return proof.parts
    given = list(each_of(proof)) if not isinstance(proof, tuple) else list(proof)
    if not given:
        return ()
    if not verdict:
        raise OperandError("proof= is of a claim that is proved, and this one is refuted")
    if not isinstance(verdict.claim, Claim):
        raise OperandError("proof= leads from one side of an equation to the other: this claim has no sides")
    if verdict.claim.relation != "=":
        raise OperandError(
            f"proof= of a claim with {verdict.claim.relation} is a derivation, which says by which relation each line "
            "goes on: sa.Derivation('Proof').extend(sa.le(a, b)).then(c, '<=')"
        )
    lines, left = list[Line](), verdict.claim.left
    for k, step in enumerate(given):
        expr, why = step if isinstance(step, tuple) and len(step) == 2 else (step, "")
        x = as_tensor(expr)
        if not same_shape(x.shape, left.shape):
            raise ShapeError(f"{x.brief()} is no step of a proof from {left.brief()}: the shapes differ")
        first = Line(left, x, "equation", prose(why, "proof="))
        lines.append(first._replace(left=None, kind="further") if k else first)
    if lines[-1].expression is not verdict.claim.right:
        lines.append(Line(None, verdict.claim.right, "further"))
    return tuple(lines)


def _cases(table: Any, head: Any) -> Cases:
    titles = tuple(prose(said, "the head of a table") for said in each_of(head))
    if isinstance(table, Mapping):
        moments = tuple(table.values())
        if not moments or not all(isinstance(m, Moments) for m in moments):
            raise OperandError("cases takes a table of rows, or moments by the case that they are of")
        titles = titles or tuple(prose(said, "the head of a table") for said in ("If", "quantity", "mean", "variance"))
        rows = tuple((prose(case, "a case"), m.quantity, m.mean, m.variance) for case, m in table.items())
        return Cases(titles, rows, moments)
    listed = [each_of(row) for row in each_of(table) if isinstance(row, (list, tuple))]
    if not listed or len(listed) < len(each_of(table)) or any(len(row) != len(titles or listed[0]) for row in listed):
        raise OperandError("cases takes rows of one length, that of their head, or moments by the case they are of")
    return Cases(titles, tuple(tuple(map(_cell, row)) for row in listed))


def _cell(cell: Any) -> Any:
    if isinstance(cell, str):
        return prose(cell, "a cell")
    if isinstance(cell, (Tensor, sympy.Basic, Verdict, int, float)):
        return cell
    raise OperandError(f"cases has sentences, tensors, scalars and verdicts in its cells, not {described(cell)}")
