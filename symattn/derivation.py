"""Derivations: sentences and steps in reading order, printed as text or LaTeX, and checked numerically.

A derivation holds no second text of the mathematics: its lines are the tensors themselves.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, overload

import numpy as np

from .codegen import lambdify
from .codegen.check import Point, compare, difference_gradient, sample_point
from .errors import OperandError, ShapeError
from .gradients import Gradient
from .index_style import IndexPrinter
from .latex import Printer, align, displayed_names, printer_in, tex_text
from .ops.leaves import as_tensor, cotangent_op, definition, let, let_op, variable
from .sizes import same_shape
from .tensor import Tensor, topological

WIDTH = 100  # of a line of text
TOLERANCE = 1e-6  # of numeric agreement, relative to the largest entry


class Line(NamedTuple):
    """One line: what it names (None where it continues a chain), what that equals, and why."""

    named: Tensor | None
    expression: Tensor
    reason: str


class Derivation:
    """A titled derivation; ``given`` are the tensors, or sentences, that it starts from.

    ``extend`` adds gradients and named intermediates as lines, ``then`` continues the last line by an equality, and
    ``text("...")`` adds a paragraph. ``text()`` and ``latex()`` write it out and ``verify()`` checks it numerically.

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

    def __init__(self, title: str, given: Iterable[Tensor | str] = ()) -> None:
        if not isinstance(title, str) or not title.strip():
            raise OperandError(f"a derivation has a title, not {title!r}")
        self.title = title.strip()
        self.given = (given,) if isinstance(given, (str, Tensor)) else tuple(given)
        for x in self.given:
            if not isinstance(x, (str, Tensor)):
                raise OperandError(f"given holds tensors and sentences, not {x!r}")
        self._parts: list[str | Line] = []

    @property
    def steps(self) -> tuple[Line, ...]:
        """The lines, without the paragraphs between them."""
        return tuple(part for part in self._parts if isinstance(part, Line))

    # --- writing it ---

    def extend(self, *parts: Gradient | Tensor) -> Self:
        """Add gradients, whose automatic definitions come first, and named intermediates, each as a line.

        Raises OperandError for what has no steps and no name.
        """
        for part in parts:
            if isinstance(part, Gradient):
                self._parts += [Line(let(s.name, s.expression), s.expression, "where") for s in part.definitions]
                self._parts += [Line(part.named[s.name], s.expression, s.reason) for s in part.steps]
            elif isinstance(part, Tensor) and part.op is let_op:
                self._parts.append(Line(part, definition(part), "by definition"))
            else:
                shown = part.brief() if isinstance(part, Tensor) else repr(part)
                raise OperandError(f"extend takes gradients and intermediates named by sa.let, not {shown}")
        return self

    def then(self, expr: Any, relation: str = "=", because: str = "") -> Self:
        """Continue the last line: ``expr`` equals what stands there.

        Raises OperandError if there is no line yet, or for another relation, and ShapeError for another shape.
        """
        if relation != "=":
            raise OperandError(f"then states equalities by the relation '=', not {relation!r}")
        if not self.steps:
            raise OperandError("there is no line yet to continue: begin with extend")
        x, before = as_tensor(expr), self.steps[-1].expression
        if not same_shape(x.shape, before.shape):
            raise ShapeError(f"{x.brief()} cannot equal {before.brief()}: the shapes differ")
        self._parts.append(Line(None, x, because))
        return self

    @overload
    def text(self, sentence: str) -> Self: ...
    @overload
    def text(self) -> str: ...
    def text(self, sentence: str | None = None) -> Any:
        """Add a paragraph; without an argument, the whole derivation as text."""
        if sentence is None:
            return self._written(_as_text)
        if not isinstance(sentence, str):
            raise OperandError(f"text takes a sentence, not {sentence!r}")
        self._parts.append(" ".join(sentence.split()))
        return self

    def latex(self, names: Mapping[Tensor, str] | None = None, style: str = "matrix") -> str:
        r"""The derivation as a LaTeX fragment (amsmath, amssymb): a ``\section*``, paragraphs and ``align`` blocks.

        ``names`` and ``style`` are those of ``sa.latex``.
        """
        return self._written(_as_latex, names, style)

    def __repr__(self) -> str:
        return f"<derivation {self.title!r} of {len(self.steps)} steps>"

    def __str__(self) -> str:
        return str(self.text())

    def _written(self, write: Callable[..., list[str]], *options: Any) -> str:
        return "\n\n".join(write(self, *options))

    def _roots(self) -> list[Tensor]:
        lines = [x for line in self.steps for x in (line.named, line.expression) if x is not None]
        return [*lines, *(x for x in self.given if isinstance(x, Tensor))]

    def blocks(self) -> Iterator[str | list[Line]]:
        """The paragraphs, and the lines between them; a chain resumed after a paragraph says its name again."""
        block: list[Line] = []
        head: Tensor | None = None
        for part in self._parts:
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

    def verify(self) -> Report:
        """Check every line numerically: gradients against central differences, chains by their values.

        Each is tried on random arrays of two sets of generic sizes. Numbers prove nothing, and the report claims no
        more than that they agree. Raises EvaluationError naming the step, the sizes and the first entry that differs.
        """
        points = _points(self._roots())
        names = displayed_names(self._roots())
        checks: list[Check] = []
        chain, number = "", 1
        for before, line in zip((None, *self.steps), self.steps, strict=False):
            if line.named is None and before is not None:
                number += 1
                checks.append(_check_chain(f"{chain} (line {number})", before.expression, line.expression, points))
                continue
            assert line.named is not None
            chain, number = names[line.named], 1
            is_gradient = line.named.op is cotangent_op
            checks.append(_check_gradient(chain, line.named, points) if is_gradient else Check(chain, "by definition"))
        return Report(tuple(checks))


# --- as text and as LaTeX ---


def _as_text(d: Derivation) -> list[str]:
    printer = Printer(displayed_names(d._roots()), latex=False)
    blocks = [f"{d.title}\n{'=' * len(d.title)}"]
    if d.given:
        blocks.append(textwrap.fill(f"Given {', '.join(map(_given_text, d.given))}.", WIDTH))
    for block in d.blocks():
        blocks.append(textwrap.fill(block, WIDTH) if isinstance(block, str) else _text_lines(block, printer))
    return blocks


def _text_lines(lines: Sequence[Line], printer: Printer) -> str:
    names = ["" if line.named is None else printer.name(line.named) for line in lines]
    width = max(map(len, names))
    left = [f"{name:<{width}} = {printer.refer(line.expression)}" for name, line in zip(names, lines, strict=True)]
    column = max((len(x) for x in left if len(x) <= WIDTH // 2), default=0)
    return "\n".join(
        f"  {x:<{column}}  # {line.reason}" if line.reason else f"  {x}" for x, line in zip(left, lines, strict=True)
    )


def _given_text(x: Tensor | str) -> str:
    return x if isinstance(x, str) else x.brief() + _hypotheses(x)


def _hypotheses(x: Tensor) -> str:
    listed = ", ".join(x.params.get("hypotheses", ()))
    return f" ({listed})" if listed else ""


def _as_latex(d: Derivation, spellings: Mapping[Tensor, str] | None, style: str) -> list[str]:
    printer = printer_in(style, d._roots(), spellings)
    blocks = [rf"\section*{{{tex_text(d.title)}}}"]
    if d.given:
        blocks.append(f"Given {', '.join(_given_latex(x, printer) for x in d.given)}.")
    for block in d.blocks():
        blocks.append(tex_text(block) if isinstance(block, str) else align(_latex_rows(block, printer)))
    return blocks


def _latex_rows(lines: Iterable[Line], printer: Printer | IndexPrinter) -> Iterator[tuple[str, str, str]]:
    for line in lines:
        name = "" if line.named is None else printer.names[line.named]
        yield *printer.row(name, line.expression), line.reason


def _given_latex(x: Tensor | str, printer: Printer | IndexPrinter) -> str:
    if isinstance(x, str):
        return tex_text(x)
    shape = r" \times ".join(map(printer.scalar, x.shape))
    space = r"\mathbb{R}" + (f"^{{{shape}}}" if shape else "")
    return rf"${printer.refer(x)} \in {space}$" + tex_text(_hypotheses(x))


# --- numeric checks ---


@dataclass(frozen=True)
class Check:
    """What was done for one step: how, the largest error met, and the sizes."""

    name: str
    how: str
    error: float | None = None
    sizes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.error is None:
            return f"{self.name}: {self.how}"
        return f"{self.name}: {self.how}, largest error {self.error:.1e}, at {'; '.join(self.sizes)}"


@dataclass(frozen=True)
class Report:
    """One check a step. It says what agreed numerically, and nothing more."""

    checks: tuple[Check, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.checks))

    def __len__(self) -> int:
        return len(self.checks)

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)


Comparison = tuple[Point, np.ndarray, np.ndarray]  # where, what is claimed, what is right


def _points(roots: Sequence[Tensor]) -> list[Point]:
    """Two generic points: distinct sizes, random arrays that have the declared properties."""
    order = topological(roots)
    tensors = [x for x in order if x.op is variable]
    outputs = [x for x in roots if not x.holds_minus_infinity]
    return [sample_point(outputs, tensors, seed) for seed in (0, 1)]


def _values(roots: Sequence[Tensor], point: Point) -> list[np.ndarray]:
    known = {**point.sizes, **point.scalars}
    f = lambdify(list(point.arrays), list(roots))
    keywords = {s.name: known[s] for s in f.plan.keywords}
    return [np.asarray(value) for value in f(*point.arrays.values(), **keywords)]


def _check_chain(name: str, before: Tensor, after: Tensor, points: Sequence[Point]) -> Check:
    tried: list[Comparison] = []
    for point in points:
        claimed, wanted = _values([after, before], point)
        tried.append((point, claimed, wanted))
    return _agreement(name, tried)


def _check_gradient(name: str, gradient: Tensor, points: Sequence[Point]) -> Check:
    tried: list[Comparison] = []
    for point in points:
        wanted = difference_gradient(gradient, point)
        if wanted is None:
            return Check(name, "not checked, since its cotangents are a batch")
        tried.append((point, _values([gradient], point)[0], wanted))
    return _agreement(name, tried)


def _agreement(name: str, tried: Sequence[Comparison]) -> Check:
    worst = max(compare(f"step {name}", claimed, wanted, TOLERANCE, point) for point, claimed, wanted in tried)
    return Check(name, "checked numerically", worst, tuple(str(point) for point, *_ in tried))


__all__ = ["Check", "Derivation", "Line", "Report"]
