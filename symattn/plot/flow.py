"""The flow of shapes: what is computed from what, as boxes and arrows, and as one formula of arrows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..calculus.result import Gradient
from ..core.boxes import Box, Fence, Function, Row, Script, Sign, commas, row
from ..core.node import Tensor, topological
from ..document.derivation import Derivation
from ..document.parts import Line
from ..errors import OperandError, described
from ..graph.canonical import without_names
from ..graph.names import unnamed_inputs
from ..ops.leaves import cotangent_op, definition, is_named, variable
from ..ops.notation import sizes_apart
from ..printing.matrix import Printer, latex_printer
from ..printing.media.unicode import is_token, unicode_text
from ..printing.prose import Figure, Words
from ..printing.table import SymbolTable
from .arrays import captioned
from .words import Runs, columns_of, runs_of, svg_text

_NAME, _SMALL = 17.0, 14.0  # sizes of letters
_HEIGHT, _PITCH, _GAP, _MARGIN = 48.0, 98.0, 64.0, 6.0  # of boxes and between them
_LEAST = 54.0  # width of a box
_MANY = 8  # columns; more of them stand closer, with short formulas only
_LONGEST = 15.0  # em of a formula that a box holds
_LANE, _BELOW = 18.0, 52.0  # above boxes that an arrow passes, and below their middle
_APART = 5.0  # of an arrow and the one that goes back
_LABELLED = 24.0  # height of an arrow back over boxes, with its label
_HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 6" refX="7.4" refY="3" markerWidth="8" markerHeight="6" '
    'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 3L0 6z" fill="currentColor"/></marker></defs>'
)
_FONT = "'STIX Two Text', 'Latin Modern Roman', Cambria, Georgia, serif"


def flow(of: Tensor | Gradient | Derivation, caption: str = "") -> Figure:
    """What is computed from what, with the shape of each: the named tensors below an expression or of a derivation.

    Of a gradient, and of a derivation with gradients, dashed arrows show the way back. In LaTeX and Markdown it is a
    formula of arrows, from what is given to the output. Raises OperandError for an expression without a name.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> Z = sa.let("Z", Q @ K.T)
    >>> print(sa.plot.flow(sa.let("O", sa.let("P", sa.softmax(Z)) @ V)).text)
    Q, K ──Q Kᵀ──→ Z ──softmax──→ P ──P V──→ O
    """
    output, gradients = _asked(of)
    return _figure(output, gradients, captioned("flow", caption))


def _figure(
    output: Tensor, gradients: Mapping[Tensor, Tensor], caption: Words, table: SymbolTable | None = None
) -> Figure:
    """The figure alone, or by the symbols of a document."""
    graph = _Graph(output, gradients, latex_printer([*gradients.values(), output], within=table))
    formula = graph.formula()
    within = partial(_figure, output, gradients, caption)
    return Figure(_Picture(graph).svg(), graph.in_words(), caption, formula, unicode_text(formula), within=within)


def _asked(of: Any) -> tuple[Tensor, dict[Tensor, Tensor]]:
    """The output, and the gradients by what is computed on the way to it."""
    match of:
        case Tensor() if _is_drawn(of):
            return of, {}
        case Gradient() if _is_drawn(output := next(iter(of.cotangents))):
            return output, _by_variable(of.named[step.name] for step in of.steps)
        case Derivation():
            lines = [line for line in of.steps if isinstance(line, Line) and line.left is not None]
            defined = [line.left for line in lines if line.is_definition]
            back = _by_variable(line.left for line in lines if line.kind == "gradient")
            outputs = [x.inputs[2] for x in back.values()] or defined[-1:]
            if outputs and outputs[0] is not None and _is_drawn(outputs[0]):
                return outputs[0], back
    raise OperandError(
        "flow draws what leads to a tensor named by sa.let, its gradient, or what leads to the last definition of a "
        f"derivation, not {described(of)}"
    )


def _is_drawn(x: Tensor) -> bool:
    return is_named(x) and x.op is not variable


def _by_variable(gradients: Iterable[Any]) -> dict[Tensor, Tensor]:
    return {x.inputs[1]: x for x in gradients if isinstance(x, Tensor) and x.op is cotangent_op}


class _Graph:
    """The named tensors below an output, which of them each is computed from, and how they are written."""

    def __init__(self, output: Tensor, gradients: Mapping[Tensor, Tensor], printer: Printer) -> None:
        self.output, self.printer = output, printer
        self.nodes = [x for x in topological([output]) if is_named(x) or x.op is variable]
        self.inputs = {x: self._read_by(x) for x in self.nodes}
        self.cotangent = next((x.inputs[3] for x in gradients.values()), None)
        self.gradients = self._drawn_back(gradients)
        self.ranks = self._ranks()
        self.spine = self._spine()

    def _read_by(self, x: Tensor) -> list[Tensor]:
        if x.op is variable:
            return []
        below = topological([definition(x)], inputs=unnamed_inputs)
        return [y for y in dict.fromkeys(below) if is_named(y) or y.op is variable]

    def _drawn_back(self, gradients: Mapping[Tensor, Tensor]) -> dict[Tensor, Tensor]:
        """The gradients by what is in the picture: a gradient names parts on its way, in which a node reads else."""
        plain: dict[Tensor, Tensor] = {}
        for x in topological([self.output, *gradients]):
            plain[x] = without_names(x, plain)
        known = {(x.params["name"], plain[x]): x for x in self.nodes if x is not self.output}
        found = ((known.get((x.params["name"], plain[x])), by) for x, by in gradients.items() if is_named(x))
        return {x: by for x, by in found if x is not None}

    def _ranks(self) -> dict[Tensor, int]:
        """The column of each: behind all that it is computed from; what is given stands just before its first use."""
        ranks: dict[Tensor, int] = {}
        for x in self.nodes:
            if self.inputs[x]:
                ranks[x] = 1 + max((ranks[y] for y in self.inputs[x] if y in ranks), default=0)
        for x in self.nodes:
            if x not in ranks:
                ranks[x] = min((ranks[y] - 1 for y in self.nodes if x in self.inputs[y] and y in ranks), default=0)
        return ranks

    def _spine(self) -> list[Tensor]:
        """The longest way to the output."""
        way = [self.output]
        while before := [y for y in self.inputs[way[-1]] if self.inputs[y]]:
            way.append(max(before, key=self.ranks.__getitem__))
        return way[::-1]

    def name(self, x: Tensor) -> Box:
        return self.printer.box(x)

    def shape(self, x: Tensor) -> Box:
        return sizes_apart(x.shape, map(self.printer.table.scalar, x.shape))

    def formula(self) -> Box:
        """Arrows along the longest way, under what is done there."""
        first = self.spine[0]
        parts: list[Box] = [commas(map(self.name, self.inputs[first]))]
        for x in self.spine:
            parts += [Script(Sign("⟶", "relation"), above=_without_argument(self.printer.shown(x))), self.name(x)]
        return row(*parts)

    def in_words(self) -> str:
        def told(x: Tensor) -> str:
            size = f" ({unicode_text(self.shape(x))})" if x.rank else ""
            return unicode_text(self.name(x)) + size

        def step(x: Tensor) -> str:
            inputs = self.inputs[x]
            return f"{' and '.join(map(told, inputs))} {'give' if len(inputs) > 1 else 'gives'} {told(x)}"

        made = (step(x) for x in self.nodes if self.inputs[x])
        back = [unicode_text(self.name(x)) for x in self.gradients.values()]
        backward = f" Backward, dashed arrows in the opposite direction: {', '.join(back)}." if back else ""
        return f"Flow of shapes: {'; '.join(made)}.{backward}"


def _without_argument(box: Box) -> Box:
    """A function alone where it is applied to one name."""
    match box:
        case Row(parts=(Function() as function, Fence(inside=argument))) if is_token(argument):
            return function.name
    return box


@dataclass(frozen=True)
class _Place:
    """A box of the drawing: its middle, its width, and what stands in it and below it."""

    x: float
    y: float
    width: float
    name: Runs
    formula: Runs
    shape: Runs


class _Picture:
    """Places the boxes in columns, the longest way in the middle row."""

    def __init__(self, graph: _Graph) -> None:
        self.graph = graph
        self.is_long = max(graph.ranks.values()) > _MANY
        self.rows = self._rows()
        self.places = self._places()

    def _rows(self) -> dict[Tensor, float]:
        """The row of each, the last columns first: what is given stands beside what reads it."""
        rows: dict[Tensor, float] = {}
        for rank in sorted(set(self.graph.ranks.values()), reverse=True):
            inside = [x for x in self.graph.nodes if self.graph.ranks[x] == rank]
            middle = [x for x in inside if x in self.graph.spine]
            others = [x for x in inside if x not in middle]
            if middle:
                rows |= {middle[0]: 0.0} | {x: (k // 2 + 1) * (-1.0) ** k for k, x in enumerate(others)}
            else:
                others.sort(key=lambda x: (not self._goes_far(x), self._row_of_readers(x, rows)))
                rows |= {x: k - (len(others) - 1) / 2 for k, x in enumerate(others)}
        return rows

    def _goes_far(self, x: Tensor) -> bool:
        """Whether an arrow from it passes over boxes, so that it stands on top."""
        return any(self._spans(x, y) > 1 for y in self.graph.nodes if x in self.graph.inputs[y])

    def _row_of_readers(self, x: Tensor, rows: dict[Tensor, float]) -> float:
        """The mean row of what is computed from a tensor in the next column."""
        readers = [rows[y] for y in self.graph.nodes if x in self.graph.inputs[y] and self._spans(x, y) == 1]
        return sum(readers) / len(readers)

    def _places(self) -> dict[Tensor, _Place]:
        graph, top = self.graph, min(self.rows.values())
        places: dict[Tensor, _Place] = {}
        left = _MARGIN
        for rank in sorted(set(graph.ranks.values())):
            inside = [x for x in graph.nodes if graph.ranks[x] == rank]
            written = {x: self._written(x) for x in inside}
            width = max(map(_width_of, written.values()))
            for x in inside:
                y = _MARGIN + self._above() + _HEIGHT / 2 + (self.rows[x] - top) * _PITCH
                places[x] = _Place(left + width / 2, y, _width_of(written[x]), *written[x])
            left += width + (_GAP if not self.is_long else _GAP / 2)
        return places

    def _above(self) -> float:
        """The height that arrows need which go over boxes."""
        over = [x for x in self.graph.nodes if self._goes_far(x) and not self._is_lowest(x)]
        labelled = any(self._spans(x, y) > 1 for x, y in self._back().items() if x in over)
        return _LANE + 6.0 + (_LABELLED if labelled else 0.0) if over else 0.0

    def _written(self, x: Tensor) -> tuple[Runs, Runs, Runs]:
        formula = runs_of(self.graph.printer.shown(x)) if self.graph.inputs[x] else ()
        short = formula if columns_of(formula) <= (_LONGEST if not self.is_long else _LONGEST / 2) else ()
        return runs_of(self.graph.name(x)), short, runs_of(self.graph.shape(x)) if x.rank else ()

    def _arrows(self) -> list[tuple[Tensor, Tensor]]:
        return [(x, y) for y in self.graph.nodes for x in self.graph.inputs[y]]

    def _spans(self, x: Tensor, y: Tensor) -> int:
        return self.graph.ranks[y] - self.graph.ranks[x]

    def svg(self) -> str:
        boxes = [part for place in self.places.values() for part in _boxed(place)]
        back = self._back()
        arrows = [part for x, y in self._arrows() for part in self._arrow(x, y, back.get(x) is y)]
        arrows += self._from_the_loss()
        right = max(place.x + place.width / 2 for place in self.places.values())
        width = right + _MARGIN + (_GAP if self.graph.cotangent is not None else 0)
        under = any(self._spans(x, y) > 1 and self._is_lowest(x) for x, y in back.items())
        height = max(place.y for place in self.places.values()) + _BELOW + _MARGIN + (_LABELLED if under else 0)
        inside = "".join([_HEAD, *arrows, *boxes])
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" font-family="{_FONT}" fill="currentColor">{inside}</svg>'
        )

    def _back(self) -> dict[Tensor, Tensor]:
        """From where the gradient of each comes: of what reads it, the nearest."""
        readers = {x: [z for y, z in self._arrows() if y is x] for x in self.graph.gradients}
        return {x: min(after, key=self.graph.ranks.__getitem__) for x, after in readers.items()}

    def _arrow(self, x: Tensor, y: Tensor, goes_back: bool) -> list[str]:
        """From one box to the next, and back where there is a gradient."""
        start, end = self.places[x], self.places[y]
        a, b = (start.x + start.width / 2, start.y), (end.x - end.width / 2 - 2, end.y)
        if self._spans(x, y) > 1:
            return self._around(x, y, goes_back)
        if not goes_back:
            return [_line(a, b)]
        up, down = (-_APART, _APART)
        back = _line((b[0], b[1] + down), (a[0] + 2, a[1] + down), dashed=True)
        middle = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2 + down + _beside(a, b)
        label = _label(self.graph.name(self.graph.gradients[x]), middle)
        return [_line((a[0], a[1] + up), (b[0], b[1] + up)), back, label]

    def _around(self, x: Tensor, y: Tensor, goes_back: bool) -> list[str]:
        """An arrow over the boxes that stand between two, or under them, beside the shapes there; and one back."""
        start, end, ranks = self.places[x], self.places[y], self.graph.ranks
        between = [place.y for z, place in self.places.items() if ranks[x] <= ranks[z] <= ranks[y]]
        under = self._is_lowest(x)
        side, aside = (1, 8.0) if under else (-1, 0.0)
        lane = max(between) + _BELOW if under else min(between) - _HEIGHT / 2 - _LANE
        a = start.x + (start.width / 2 - aside if under else 0), start.y + side * _HEIGHT / 2
        b = end.x - (end.width / 2 - aside if under else 0), end.y + side * (_HEIGHT / 2 + 2)
        if not goes_back:
            return [_turned(a, b, lane, side)]
        back = _turned((b[0] + _APART, b[1]), (a[0] - _APART, a[1]), lane + side * 2 * _APART, side, dashed=True)
        label = (a[0] + b[0]) / 2, lane + side * (2 * _APART + (6 if side < 0 else 16))
        there = _turned((a[0] + _APART, a[1]), (b[0] - _APART, b[1]), lane, side)
        return [there, back, _label(self.graph.name(self.graph.gradients[x]), label)]

    def _is_lowest(self, x: Tensor) -> bool:
        """Whether a box stands below others of its column, and none below it."""
        column = [self.rows[y] for y in self.graph.nodes if self.graph.ranks[y] == self.graph.ranks[x]]
        return len(column) > 1 and self.rows[x] == max(column)

    def _from_the_loss(self) -> list[str]:
        """The gradient that comes in from the loss."""
        cotangent = self.graph.cotangent
        if cotangent is None:
            return []
        place = self.places[self.graph.output]
        a = place.x + place.width / 2 + 2, place.y + _APART
        start = a[0] + _GAP - 8, a[1]
        return [_line(start, a, dashed=True), _label(self.graph.name(cotangent), ((a[0] + start[0]) / 2, a[1] + 16))]


def _width_of(written: Sequence[Runs]) -> float:
    name, formula, shape = written
    return max(_LEAST, columns_of(name) * _NAME + 20, columns_of(formula) * _SMALL + 18, columns_of(shape) * _SMALL)


def _boxed(place: _Place) -> list[str]:
    left, top = place.x - place.width / 2, place.y - _HEIGHT / 2
    frame = (
        f'<rect x="{left:g}" y="{top:g}" width="{place.width:g}" height="{_HEIGHT:g}" rx="5" fill="none" '
        f'stroke="currentColor" stroke-width="{1.4 if place.formula else 1:g}"/>'
    )
    middle, soft = ' text-anchor="middle"', ' text-anchor="middle" opacity=".75"'
    name = svg_text(place.name, place.x, place.y + (-3 if place.formula else 6), _NAME, middle)
    formula = [svg_text(place.formula, place.x, place.y + 16, _SMALL, soft)] if place.formula else []
    shape = [svg_text(place.shape, place.x, place.y + _HEIGHT / 2 + 16, _SMALL, soft)] if place.shape else []
    return [frame, name, *formula, *shape]


def _line(a: tuple[float, float], b: tuple[float, float], dashed: bool = False) -> str:
    kind = ' stroke-dasharray="4 3"' if dashed else ""
    return (
        f'<path d="M{a[0]:.4g} {a[1]:.4g}L{b[0]:.4g} {b[1]:.4g}" stroke="currentColor" fill="none"{kind} '
        'marker-end="url(#head)"/>'
    )


def _turned(a: tuple[float, float], b: tuple[float, float], lane: float, side: int, dashed: bool = False) -> str:
    """An arrow that goes along a lane above its ends, or below them."""
    kind, on, down = ' stroke-dasharray="4 3"' if dashed else "", 8 if a[0] < b[0] else -8, side * 8
    turned = f"V{lane - down:.4g}q0 {down} {on} {down}H{b[0] - on:.4g}q{on} 0 {on} {-down}V{b[1]:.4g}"
    return f'<path d="M{a[0]:.4g} {a[1]:.4g}{turned}" stroke="currentColor" fill="none"{kind} marker-end="url(#head)"/>'


def _label(box: Box, at: tuple[float, float]) -> str:
    return svg_text(runs_of(box), at[0], at[1], _SMALL, ' text-anchor="middle"')


def _beside(a: tuple[float, float], b: tuple[float, float]) -> float:
    """How far below a dashed arrow its label stands, which a steep one would else cross."""
    return 15.0 + 0.12 * abs(b[1] - a[1])
