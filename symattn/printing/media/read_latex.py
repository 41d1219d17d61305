r"""LaTeX that people give for a name, ``r"\mathbf{A}"``, or for an operation, ``r"\phi({0})"``, as a tree of boxes.

What is not known becomes ``Code``, which LaTeX writes back as it stands. Groups, fences and matrices are frames on a
stack, and what takes an argument, as ``\frac``, ``\hat`` and ``^`` do, waits in its frame until that is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from ...core.boxes import (
    Accent,
    Box,
    Code,
    Fence,
    Fraction,
    Function,
    Matrix,
    Name,
    Root,
    Row,
    Script,
    Sign,
    Space,
    Style,
    Text,
    function,
)
from ...errors import OperandError, described
from .latex_source import Source
from .latex_words import (
    ACCENTED,
    BARS,
    CLOSING,
    ENVIRONMENTS,
    MEANT,
    OPENING,
    SIZES,
    STYLES,
    TEXT_STYLES,
    UNSEEN,
    as_word,
    leaf,
    side_by_side,
    with_script,
    words_of,
)
from .neighbours import Level, is_prime, least, level_of
from .spelling import STRUT

_PLACE = re.compile(r"\{(\d+)\}")
_DEGREE = r"\sqrt["


def box_of_latex(source: str, places: Sequence[Box] = ()) -> Box:
    r"""The tree of a piece of LaTeX; where there are places, ``{0}`` and ``{1}`` stand for them, held together.

    >>> from symattn.printing.media.unicode import unicode_text
    >>> print(unicode_text(box_of_latex(r"\hat{\mathbf{A}}_{ij}^{\top} \frac{1}{\sqrt{d}}")))
    𝐀̂ᵢⱼᵀ (1 / √d)
    """
    if not isinstance(source, str) or not source.strip():
        raise OperandError(f"LaTeX is text that is not empty, not {described(source)}")
    return _Reader(source, places).read()


@dataclass(slots=True)
class _Pending:
    """A command that waits for what it is about."""

    word: str
    column: int
    needed: int
    build: Callable[..., Box]
    given: list[Box] = field(default_factory=list)


@dataclass(slots=True)
class _Frame:
    """What has been opened and not yet closed, with the boxes that it holds so far."""

    opened: str = ""
    mark: str = ""  # of a fence that need not be closed, as in ``p(x | y)``
    column: int = 0
    close: Callable[[Box], Box] = lambda inside: inside
    parts: list[Box] = field(default_factory=list)
    pending: list[_Pending] = field(default_factory=list)
    is_script: bool = False  # whether the last box is one that may get its other script
    rows: list[list[Box]] = field(default_factory=list)


class _Reader(Source):
    def __init__(self, source: str, places: Sequence[Box]) -> None:
        super().__init__(source)
        self.places = places
        self.frames = [_Frame()]

    def read(self) -> Box:
        while self.at < len(self.source):
            self.step(self.word(short=bool(self.frames[-1].pending)))
        self.soften()
        frame = self.frames.pop()
        if frame.opened:
            raise self.error(f"{frame.opened} is not closed", frame.column)
        return self.row_of(frame)

    def step(self, word: str) -> None:
        place = _PLACE.match(self.source, self.column) if word == "{" and self.places else None
        if place is not None:
            self.at = place.end()
            self.add(self.place(int(place[1])))
        elif word in _STEPS:
            _STEPS[word](self, word)
        elif word == ":":  # of a slice, or of a relation
            apart = self.source[self.column - 1 : self.at + 1] == " : "
            self.add(Sign(":", "relation" if apart else "ordinary"))
        elif word[0] == "'":
            self.primes(word)
        elif word == r"\vphantom" and self.source.startswith(STRUT, self.at):
            self.at += len(STRUT)
            self.add(Space(0.0, is_tall=True))
        elif word in MEANT:
            raise self.error(MEANT[word])
        elif (box := leaf(word, self.style())) is not None:
            self.add(box)
        elif not word.isspace():
            self.add(Code(word + self.groups()))

    def place(self, number: int) -> Box:
        if number >= len(self.places):
            raise self.error(f"there is no input {number}: they are counted from 0 to {len(self.places) - 1}")
        return self.places[number]

    def add(self, box: Box) -> None:
        """A box that has been read: an argument of what waits, or one more part."""
        frame = self.frames[-1]
        frame.is_script = False
        while frame.pending:
            waiting = frame.pending[-1]
            waiting.given.append(box)
            if len(waiting.given) < waiting.needed:
                return
            box = frame.pending.pop().build(*waiting.given)
            frame.is_script = waiting.word in "^_"
        frame.parts.append(box)

    def style(self) -> Style:
        """The font that a letter is in."""
        words = (waiting.word for frame in reversed(self.frames) for waiting in reversed(frame.pending))
        return next((STYLES[word] for word in words if word in STYLES), "italic")

    def wait(self, word: str, needed: int, build: Callable[..., Box]) -> None:
        self.frames[-1].pending.append(_Pending(word, self.column, needed, build))

    def row_of(self, frame: _Frame) -> Box:
        """What a frame holds, side by side."""
        self.refuse_waiting(frame)
        parts, frame.parts = frame.parts, []
        parts = [self.held(part, least(parts, k)) for k, part in enumerate(parts)]
        return side_by_side(parts, in_word=self.style() == "upright")

    def held(self, part: Box, at_least: Level) -> Box:
        """What was put into a place, between parentheses where it is looser than its place needs."""
        is_loose = isinstance(part, Row) and level_of(part.parts) < at_least
        return Fence(part) if is_loose and any(part is given for given in self.places) else part

    def refuse_waiting(self, frame: _Frame) -> None:
        for waiting in frame.pending[-1:]:
            raise self.error(f"{waiting.word} needs something behind it, in braces", waiting.column)

    def open(self, word: str, mark: str = "", close: Callable[[Box], Box] = lambda inside: inside) -> None:
        self.frames.append(_Frame(word, mark, self.column, close))

    def loosen(self) -> None:
        """A mark that nothing closes is a sign: ``(a`` and ``x | y``."""
        frame = self.frames.pop()
        inside = self.row_of(frame)
        self.add(Sign(frame.mark, "ordinary" if frame.opened in BARS else "opening"))
        if inside.kids or not isinstance(inside, Row):
            self.add(inside)

    def opening(self, word: str) -> None:
        self.apply()
        self.open(word, OPENING[word])

    def apply(self) -> None:
        """A letter right before a fence is a function: ``\\phi(x)``; in a product there is a space, ``A (x + y)``."""
        frame, before = self.frames[-1], self.source[self.column - 1 : self.column]
        if not frame.parts or frame.pending or before.isspace():
            return
        last = frame.parts[-1]
        name = last.base if isinstance(last, Script) else last
        if isinstance(name, Sign) and name.kind == "large" and name.mark.isalpha():
            applied = function(name.mark)
        elif isinstance(name, Name) and (name.letters, name.style) != ("d", "upright"):
            applied = Function(name)
        else:
            return
        frame.parts[-1] = Script(applied, last.below, last.above) if isinstance(last, Script) else applied

    def soften(self) -> None:
        while self.frames[-1].mark:
            self.loosen()

    def close(self, opened: str, word: str) -> None:
        self.soften()
        frame = self.frames[-1]
        if frame.opened != opened:
            raise self.error(f"{word} closes nothing that is open here" + f", but {frame.opened}" * bool(frame.opened))
        self.frames.pop()
        self.add(frame.close(self.row_of(frame)))

    def closing(self, word: str) -> None:
        """A bracket closes the nearest one, over bars that stand alone; one without a partner is a sign."""
        soft = [frame.opened for frame in takewhile(lambda frame: frame.mark, reversed(self.frames))]
        while soft and soft[0] in BARS and any(opened not in BARS for opened in soft):
            self.loosen()
            soft.pop(0)
        if not soft or soft[0] in BARS:
            self.without_partner(word)
            return
        frame = self.frames.pop()
        self.add(Fence(self.row_of(frame), frame.mark, CLOSING[word]))

    def without_partner(self, word: str) -> None:
        """The end of the degree of a root, or a sign."""
        if word != "]" or all(frame.opened != _DEGREE for frame in self.frames):
            self.add(Sign(CLOSING[word], "closing"))
            return
        self.soften()
        degree = self.row_of(self.frames.pop())
        self.wait(r"\sqrt", 1, lambda inside: Root(inside, degree))

    def bar(self, word: str) -> None:
        frame, mark = self.frames[-1], BARS[word]
        if frame.opened not in BARS or frame.mark != mark or not frame.parts or frame.pending:
            self.open(word, mark)
            return
        self.frames.pop()
        self.add(Fence(self.row_of(frame), mark, mark))

    def left(self, word: str) -> None:
        self.apply()
        mark = self.delimiter()
        self.open(word)
        self.frames[-1].close = lambda inside: Fence(inside, mark, self.delimiter())

    def script(self, word: str) -> None:
        if self.frames[-1].mark and not self.frames[-1].parts:
            self.loosen()  # a script of a bar, which opens nothing
        frame = self.frames[-1]
        self.refuse_waiting(frame)
        last = self.held(frame.parts.pop(), Level.ATOM) if frame.parts else Row(())
        base = last if frame.is_script and isinstance(last, Script) else Script(last)
        taken = base.below if word == "_" else base.above
        if taken is not None and not (word == "^" and is_prime(taken)):
            raise self.error(f"a second {word} behind one base: put the first into braces, as in {{x_{{i}}}}_{{j}}")
        self.wait(word, 1, lambda box: with_script(base, word, box))

    def primes(self, word: str) -> None:
        self.script("^")
        self.add(Sign("′" * len(word)))

    def fraction(self, word: str) -> None:
        self.wait(word, 2, Fraction)

    def root(self, word: str) -> None:
        if self.follows("["):
            self.word()
            self.open(_DEGREE)
        else:
            self.wait(word, 1, Root)

    def arrow(self, word: str) -> None:
        self.wait(word, 1, lambda above: Script(Sign("⟶", "relation"), above=above))

    def accent(self, word: str) -> None:
        self.wait(word, 1, lambda base: Accent(base, ACCENTED[word]))

    def font(self, word: str) -> None:
        self.wait(word, 1, lambda box: as_word(box, STYLES[word]))

    def text(self, word: str) -> None:
        source = self.group(word)
        style, words = TEXT_STYLES.get(word), words_of(source)
        if style and source.isalnum():
            self.add(Name(source, style))
        else:
            self.add(Code(f"{word}{{{source}}}") if style or words is None else Text(words))

    def operator(self, word: str) -> None:
        starred = self.follows("*")
        self.at += starred
        source = self.group(word)
        name = source.replace(r"\_", "_")
        if not name.replace("_", "").isalnum():
            self.add(Code(f"{word}{'*' * starred}{{{source}}}"))
        else:
            self.add(Sign(name, "large") if starred else function(name))

    def begin(self, word: str) -> None:
        column, name = self.column, self.group(word)
        opened = rf"\begin{{{name}}}"
        if name in ENVIRONMENTS:
            self.column = column
            self.open(opened)
            self.frames[-1].rows.append([])
            return
        end = rf"\end{{{name}}}"
        if end not in self.source[self.at :]:
            raise self.error(f"{opened} is not closed", column)
        self.at = self.source.index(end, self.at) + len(end)
        self.add(Code(self.source[column : self.at]))

    def cell(self, word: str) -> None:
        self.soften()
        frame = self.frames[-1]
        if not frame.rows:
            raise self.error(MEANT["&"] if word == "&" else f"{word} ends a row of a matrix, and none is open here")
        frame.rows[-1].append(self.row_of(frame))
        if word != "&":
            frame.rows.append([])

    def end(self, word: str) -> None:
        column, name = self.column, self.group(word)
        self.soften()
        frame = self.frames[-1]
        if frame.opened != rf"\begin{{{name}}}":
            raise self.error(rf"\end{{{name}}} closes nothing that is open here", column)
        self.frames.pop()
        last = self.row_of(frame)
        if frame.rows[-1] or last.kids or not isinstance(last, Row):  # the last row may end as the others do
            frame.rows[-1].append(last)
        self.add(Matrix(tuple(tuple(cells) for cells in frame.rows if cells), *ENVIRONMENTS[name]))


_STEPS: Mapping[str, Callable[[_Reader, str], None]] = {
    "{": lambda reader, word: reader.open("{"),
    "}": lambda reader, word: reader.close("{", word),
    r"\left": _Reader.left,
    r"\right": lambda reader, word: reader.close(r"\left", word),
    "^": _Reader.script,
    "_": _Reader.script,
    r"\sqrt": _Reader.root,
    r"\operatorname": _Reader.operator,
    r"\begin": _Reader.begin,
    r"\end": _Reader.end,
    **dict.fromkeys(OPENING, lambda reader, word: reader.opening(word)),
    **dict.fromkeys(CLOSING, _Reader.closing),
    **dict.fromkeys(BARS, _Reader.bar),
    **dict.fromkeys(STYLES, _Reader.font),
    **dict.fromkeys(ACCENTED, _Reader.accent),
    r"\xrightarrow": _Reader.arrow,
    **dict.fromkeys((r"\frac", r"\dfrac", r"\tfrac"), _Reader.fraction),
    **dict.fromkeys(UNSEEN, lambda reader, word: reader.wait(word, 1, lambda box: box)),
    **dict.fromkeys((r"\text", r"\textrm", r"\mbox", r"\hbox", *TEXT_STYLES), _Reader.text),
    **dict.fromkeys(("&", r"\\", r"\cr"), _Reader.cell),
    **dict.fromkeys(SIZES, lambda reader, word: None),
}
