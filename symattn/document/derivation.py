"""Derivations: sentences, steps and claims in reading order, printed as text or LaTeX, proved or else checked.

A derivation holds no second text of the mathematics: its lines are the tensors themselves.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self, TypeAlias, overload

import sympy

from ..calculus.result import Gradient
from ..core.arguments import each_of
from ..core.boxes import Number, Sign, row
from ..core.node import Tensor
from ..core.sizes import same_shape
from ..errors import OperandError, ShapeError, described
from ..graph.names import displayed_names
from ..ops.leaves import as_tensor, cotangent_op, definition, let_op, named
from ..printing.align import TEXT_WIDTH, Page, displayed, page_of, tex_text
from ..printing.counting import checked_first_index
from ..printing.index import IndexPrinter
from ..printing.matrix import Printer, membership, printer_in, text_printer
from ..printing.media.latex import latex
from ..printing.parts import Rows
from ..printing.prose import Step, sentence
from ..printing.table import Spellings
from ..printing.text_block import WIDTH
from ..probability.report import Moments
from ..proof.verdict import Verdict
from .lines import WHERE, Line, completed, occurring
from .statements import Calculation, Statement, indented_block
from .verification import BY_DEFINITION, Check, Checker, Report

Part: TypeAlias = str | Line | Statement | Calculation


class Derivation:
    """A titled derivation; ``given`` are the tensors, scalar symbols or sentences that it starts from.

    ``extend`` adds gradients, named intermediates, verdicts and moments, ``then`` continues the last line by an
    equality, and ``text("...")`` adds a paragraph. ``text()`` and ``latex()`` write it out and ``verify()`` proves what
    it can.

    >>> import symattn as sa
    >>> z = sa.tensor("z", "n")
    >>> L = sa.let("L", sa.logsumexp(z))
    >>> D = sa.Derivation("Gradient of logsumexp", given=[z]).extend(L, sa.gradient(L, z))
    >>> print(D.text())
    Gradient of logsumexp
    =====================
    <BLANKLINE>
    Given z[n].
    <BLANKLINE>
      L  = logsumexp(z)  # by definition
      dz = softmax(z)    # the derivative of logsumexp is softmax
    """

    def __init__(self, title: str, given: Iterable[Tensor | sympy.Symbol | str] = ()) -> None:
        if not isinstance(title, str) or not title.strip():
            raise OperandError(f"a derivation has a title, not {described(title)}")
        self.title = title.strip()
        self.given = tuple(given if isinstance(given, Mapping) else each_of(given))
        for x in self.given:
            if not isinstance(x, (str, Tensor, sympy.Symbol)):
                raise OperandError(f"given holds tensors, scalar symbols and sentences, not {described(x)}")
        self._parts: list[Part] = []

    @property
    def steps(self) -> tuple[Line | Statement | Calculation, ...]:
        """The lines, the claims and the calculations, without the paragraphs between them."""
        return tuple(part for part in self._parts if not isinstance(part, str))

    # --- writing it ---

    def extend(self, *parts: Gradient | Tensor | Verdict | Moments) -> Self:
        """Add gradients, whose automatic definitions come first, named intermediates, decided claims, and moments.

        A claim comes with its proof, or with the counterexample that refutes it, and moments with the lines that lead
        to mean and variance, under the assumptions that these use.
        Raises OperandError for what has no steps and no name, and for a claim that is neither proved nor refuted.
        """
        for part in parts:
            if isinstance(part, Gradient):
                defined = {(step.named, step.expression) for step in self.steps if isinstance(step, Line)}
                definitions = [(named(s.name, s.expression), s.expression) for s in part.definitions]
                self._parts += [Line(*pair, WHERE) for pair in definitions if pair not in defined]
                remarks = part.side_conditions
                self._parts += [Line(part.named[s.name], s.expression, s.reason, remarks) for s in part.steps]
            elif isinstance(part, Tensor) and part.op is let_op:
                self._parts.append(Line(part, definition(part), "by definition"))
            elif isinstance(part, Verdict) and part.status != "unknown":
                count = sum(isinstance(step, Statement) for step in self._parts)
                self._parts.append(Statement(part, count + 1))
            elif isinstance(part, Moments):
                ways = [before.moments.explanation.way for before in self._parts if isinstance(before, Calculation)]
                self._parts.append(Calculation(part, len(ways) + 1, part.explanation.way in ways))
            else:
                raise OperandError(
                    f"extend takes gradients, intermediates named by sa.let, moments, and claims that sa.prove has "
                    f"proved or refuted, not {described(part)}"
                )
        return self

    def then(self, expr: Any, relation: str = "=", because: str = "", label: str = "") -> Self:
        r"""Continue the last line: ``expr`` equals what stands there.

        By ``label``, text around the LaTeX refers to the line: ``\eqref{label}``. Raises OperandError if there is no
        line to continue, for another relation or a label that is taken, and ShapeError for another shape.
        """
        if not isinstance(relation, str) or relation != "=":
            raise OperandError(f"then states equalities by the relation '=', not {described(relation)}")
        if not isinstance(because, str):
            raise OperandError(f"because= is a sentence that says why, not {described(because)}")
        last = self.steps[-1] if self.steps else None
        if not isinstance(last, Line):
            raise OperandError("there is no line to continue: begin with extend(sa.let(...))")
        x, before = as_tensor(expr), last.expression
        if not same_shape(x.shape, before.shape):
            raise ShapeError(f"{x.brief()} cannot equal {before.brief()}: the shapes differ")
        self._parts.append(Line(None, x, because, label=self._new_label(label)))
        return self

    def _new_label(self, label: Any) -> str:
        if not isinstance(label, str) or not all(c.isalnum() or c in "-_:." for c in label):
            raise OperandError(f"label= is made of letters, digits and -_:., not {described(label)}")
        if label and any(isinstance(part, Line) and part.label == label for part in self._parts):
            raise OperandError(f"another line has the label {label!r}")
        return label

    @overload
    def text(self, sentence: str) -> Self: ...
    @overload
    def text(self) -> str: ...
    def text(self, sentence: str | None = None) -> Any:
        """Add a paragraph; without an argument, the whole derivation as text."""
        if sentence is None:
            return self._written(_as_text)
        if not isinstance(sentence, str):
            raise OperandError(f"text takes a sentence, not {described(sentence)}")
        self._parts.append(" ".join(sentence.split()))
        return self

    def latex(
        self,
        names: Spellings | None = None,
        style: str = "matrix",
        gradients: str = "d",
        *,
        environment: str = "align",
        numbered: str | None = None,
        width: float = TEXT_WIDTH,
        first_index: int = 0,
    ) -> str:
        r"""The derivation as a LaTeX fragment (amsmath, amssymb): a ``\section*``, paragraphs and blocks of rows.

        ``names``, ``style``, ``gradients`` and ``first_index`` are those of ``sa.latex``. The ``environment`` of blocks
        is "align", "align*", "gather*", "aligned" or "equation", which holds one row; ``numbered`` is "none",
        "referenced" or "all"; ``width`` is that of the text, in em. Raises OperandError for an environment that cannot
        hold the rows or their numbers, and for indices from 1 in a derivation with claims.
        """
        self._check_first_index(first_index)
        printer = partial(printer_in, style, names=names, gradients=gradients, first_index=first_index)
        return self._written(_as_latex, printer, page_of(environment, numbered, width))

    def _check_first_index(self, first_index: int) -> None:
        if checked_first_index(first_index) and any(isinstance(part, (Statement, Calculation)) for part in self._parts):
            raise OperandError("latex: first_index=1 is for gradients and lines: claims and moments count from 0")

    def __repr__(self) -> str:
        return f"<derivation {self.title!r} of {len(self.steps)} steps>"

    def __str__(self) -> str:
        return str(self.text())

    def _written(self, write: Callable[..., list[str]], *options: Any) -> str:
        return "\n\n".join(write(self, *options))

    def _roots(self) -> list[Tensor]:
        return _roots([*self.steps, *self.given])

    def all_given(self) -> list[Tensor | sympy.Symbol | str]:
        """What is given, and the tensors and scalar symbols that occur besides."""
        return [*self.given, *occurring(self._roots(), self.given)]

    def parts(self) -> list[Part]:
        """The parts as they are printed, with the definitions that they need."""
        return completed(self._parts, displayed_names(self._roots()))

    def blocks(self, parts: Iterable[Part]) -> Iterator[str | list[Line] | Statement | Calculation]:
        """Paragraphs, claims, calculations, and the lines between them; a chain resumed later says its name again."""
        block: list[Line] = []
        head: Tensor | None = None
        for part in parts:
            if isinstance(part, Line):
                head = head if part.named is None else part.named
                block.append(part if block else part._replace(named=head))
                continue
            if block:
                yield block
            block = []
            yield part
        if block:
            yield block

    # --- checking it ---

    def verify(self, budget: float = 10.0) -> Report:
        """Prove every step, and where no proof is found check it numerically; the report says which it was.

        Gradients are held against the derivatives of the entries, each line of a chain against the one before it, and
        claims against their own proof or counterexample; moments are computed again. A numeric check compares values,
        or central differences, on random arrays of two sets of generic sizes. ``budget`` is the time in seconds for
        each proof.
        Raises EvaluationError that names a false step, and shows a point at which it is false.
        """
        names = displayed_names(self._roots())
        checker = Checker(self._roots(), budget)
        checks: list[Check] = []
        before: Line | None = None
        chain, number = "", 1
        for step in self.steps:
            if not isinstance(step, Line):
                checks.append(step.checked(checker))
                before = None
                continue
            if step.named is not None:
                chain, number = names[step.named], 1
                is_gradient = step.named.op is cotangent_op
                check = checker.gradient(chain, step.named) if is_gradient else Check(chain, BY_DEFINITION)
                checks.append(replace(check, remarks=step.remarks))
            else:
                assert before is not None  # ``then`` sees to that
                number += 1
                checks.append(checker.chain(f"{chain} (line {number})", before.expression, step.expression))
            before = step
        return Report(tuple(checks))


def _roots(parts: Iterable[Any]) -> list[Tensor]:
    """The tensors that parts write out."""
    found = list[Tensor]()
    for part in parts:
        if isinstance(part, Line):
            found += [x for x in (part.named, part.expression) if x is not None]
        elif isinstance(part, Tensor):
            found.append(part)
        elif isinstance(part, (Statement, Calculation)):
            found += part.roots
    return found


# --- as text and as LaTeX ---


def _as_text(d: Derivation) -> list[str]:
    parts, given = d.parts(), d.all_given()
    printer = text_printer(_roots([*parts, *given]))
    blocks = [f"{d.title}\n{'=' * len(d.title)}"]
    if given:
        blocks.append(textwrap.fill(f"Given {', '.join(map(_given_text, given))}.", WIDTH))
    for block in d.blocks(parts):
        if isinstance(block, (Statement, Calculation)):
            blocks.append(block.text(printer))
        else:
            blocks.append(textwrap.fill(block, WIDTH) if isinstance(block, str) else _text_lines(block, printer))
    return blocks


def _text_lines(lines: Sequence[Line], printer: Printer) -> str:
    names = (None if line.named is None else printer.symbol(line.named) for line in lines)
    return indented_block(
        Step(name, printer.box(line.expression), sentence(line.reason)) for name, line in zip(names, lines, strict=True)
    )


def _given_text(x: Tensor | sympy.Symbol | str) -> str:
    if isinstance(x, sympy.Symbol):
        return f"{x} > 0" if x.is_positive else str(x)
    return x if isinstance(x, str) else x.brief() + _hypotheses(x)


def _hypotheses(x: Tensor) -> str:
    listed = ", ".join(x.params.get("hypotheses", ()))
    return f" ({listed})" if listed else ""


def _as_latex(d: Derivation, printer_of: Callable[[Sequence[Tensor]], Printer | IndexPrinter], page: Page) -> list[str]:
    parts, given = d.parts(), d.all_given()
    printer = printer_of(_roots([*parts, *given]))
    rows = Rows(printer, [part.expression for part in parts if isinstance(part, Line)])
    blocks = [rf"\section*{{{tex_text(d.title)}}}"]
    if given:
        blocks.append(f"Given {', '.join(_given_latex(x, printer) for x in given)}.")
    for block in d.blocks(parts):
        if isinstance(block, (Statement, Calculation)):
            blocks.append(block.latex(printer, page))
        else:
            blocks.append(
                tex_text(block) if isinstance(block, str) else displayed(rows.of(_named(block, printer)), page)
            )
    return blocks


def _named(lines: Iterable[Line], printer: Printer | IndexPrinter) -> Iterator[tuple[str, Tensor, str, bool, str]]:
    for line in lines:
        name = "" if line.named is None else printer.names[line.named]
        yield name, line.expression, line.reason, line.is_found, line.label


def _given_latex(x: Tensor | sympy.Symbol | str, printer: Printer | IndexPrinter) -> str:
    if isinstance(x, str):
        return tex_text(x)
    if isinstance(x, sympy.Symbol):
        positive = row(printer.scalar(x), Sign(">", "relation"), Number("0"))
        return f"${latex(positive if x.is_positive else membership(printer.scalar(x), ()))}$"
    return f"${latex(membership(printer.box(x), x.shape, printer.table))}$" + tex_text(_hypotheses(x))
