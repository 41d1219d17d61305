r"""The formulas of sentences by the symbols of a document.

A formula speaks of the names of a derivation, of their entries, powers and transposes, and of letters that stand for
anything. What looks like a name and is none, such as ``Z''`` or ``\bar{Z}`` where there is only ``Z``, is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, starmap
from operator import eq

from ..core.boxes import (
    Accent,
    Box,
    Differential,
    Fence,
    Fraction,
    Function,
    Name,
    Number,
    Row,
    Script,
    Sign,
    Space,
    Text,
    fold,
    lowered,
    raised,
    rebuilt,
    row,
)
from ..core.naming import nearest
from ..errors import NamingError
from ..printing.gradients import at_entry
from ..printing.media.latex import latex
from ..printing.media.neighbours import Level, least
from ..printing.media.spelling import LETTERS
from ..printing.prose import Words
from ..printing.scalars import FUNCTION_LETTERS
from .families import with_letter
from .prose import Formula, Prose, every

_FUNCTIONS = frozenset(box.letters for box in FUNCTION_LETTERS.values() if isinstance(box, Name))
_CONSTANTS = {"upright": "eid", "italic": "I"}  # which every derivation has


@dataclass(frozen=True, eq=False)
class Spoken:
    """A name of the document: as a person types it, as it is printed, and how many axes it has.

    One that is ``loose`` is held together among others.
    """

    name: str
    typed: Box
    printed: Box
    rank: int = 0
    is_loose: bool = False


class Speaker:
    """Writes sentences by the symbols of a document; ``letters`` stand for anything."""

    def __init__(self, names: Iterable[Spoken], letters: Iterable[str]) -> None:
        self.by_typed = {latex(spoken.typed): spoken for spoken in names}
        self.by_name = {spoken.name: spoken for spoken in self.by_typed.values()}
        self.letters = frozenset(letters)

    def words(self, said: Prose) -> Words:
        """The sentence, with the formulas by the document's symbols. Raises NamingError for a letter it lacks."""
        return tuple(_Sentence(self, x, said).box() if isinstance(x, Formula) else x for x in said.pieces)

    def known(self, box: Box) -> Spoken | None:
        """The name of the document that a box is, or one of several numbered ones that it stands for."""
        if isinstance(box, Name) and box.style == "upright" and box.letters in self.by_name:
            return self.by_name[box.letters] if len(box.letters) > 1 else self.by_typed.get(latex(box))
        if not isinstance(box, (Name, Script, Accent, Differential)):
            return None
        if (known := self.by_typed.get(latex(box))) is not None:
            return known
        if (member := self.by_typed.get(latex(_first_of_family(box)))) is not None:
            several = with_letter(member.printed, 1, _letter_below(box))
            if latex(several) != latex(member.printed):  # else the first one has a spelling of its own
                return replace(member, typed=box, printed=several)
        return None

    def is_tensor(self, box: Box) -> bool:
        """Whether a box is the name of something that has axes, and so is no index."""
        name = self.known(box)
        return name is not None and name.rank > 0

    def gradient(self, of: Box) -> Spoken | None:
        return self.known(Differential(of))

    # --- names apart from what stands at them ---

    def apart(self, formula: Box, as_typed: bool = False) -> Box:
        """The formula, in which each name is one box with its marks around it, and each gradient is written alike.

        One that is ``as_typed`` speaks of the ways to write a gradient, and keeps them.
        """
        written = {latex(box) for box in every(formula) if isinstance(box, Differential)}

        def made(box: Box, inside: Sequence[Box]) -> Box:
            again = rebuilt(box, inside) if inside else box
            if isinstance(again, (Row, Fraction)) and as_typed:
                return again
            if isinstance(again, Row):
                return row(*self._gradients(again.parts, written))
            if isinstance(again, Fraction) and (by := _quotient(_parts(again.above), _parts(again.below))) is not None:
                return self._gradient_by(by, written) or again
            return again if self.known(again) is not None else self._split(again)

        return fold(formula, made)

    def _split(self, box: Box) -> Box:
        """A name under marks, as the name and its marks."""
        inner = box.of if isinstance(box, Differential) else box
        if not isinstance(inner, Script):
            return box
        prime, rest = _primes(inner.above)
        for below, above in ((inner.below, prime), (inner.below, None), (None, prime), (None, None)):
            core = inner.base if below is above is None else Script(inner.base, below, above)
            name = Differential(core) if isinstance(box, Differential) else core
            if core is not inner and self.known(name) is not None:
                marks = inner.below if below is None else None, inner.above if above is None else rest
                return name if marks == (None, None) else Script(name, *marks)
        return box

    def _gradients(self, parts: Sequence[Box], written: set[str]) -> Iterator[Box]:
        r"""Parts of a row, in which ``\nabla_Z L``, ``\partial L / \partial Z`` and ``dZ`` are the document's gradient.

        Where that is written beside it, the formula says what it is.
        """
        pending = list(reversed(parts))
        while pending:
            part = pending.pop()
            by, more = _differentiated(part, pending[-1]) if pending else None, 1
            if by is None and len(pending) >= 4 and isinstance(line := pending[-2], Sign) and line.mark == "/":
                by, more = _quotient((part, pending[-1]), (pending[-3], pending[-4])), 4
            found = None if by is None or self._is_size(part) else self._gradient_by(by, written)
            if found is None:
                yield part
                continue
            del pending[-more:]
            yield found

    def _gradient_by(self, by: Box, written: set[str]) -> Box | None:
        """The document's gradient by something, or an entry of one, unless the formula writes it out."""
        if latex(Differential(by)) in written:
            return None
        if self.gradient(by) is not None:
            return Differential(by)
        match by:
            case Script(base=base, below=Box() as below, above=None) if latex(Differential(base)) not in written:
                return Script(Differential(base), below) if self.gradient(base) is not None else None
        return None

    def _is_size(self, d: Box) -> bool:
        return isinstance(d, Name) and (d.letters in self.letters or self.known(d) is not None)


class _Sentence:
    """One formula of a sentence, which says where it stands if something is wrong with it."""

    def __init__(self, speaker: Speaker, formula: Formula, said: Prose) -> None:
        self.speaker, self.formula, self.said = speaker, formula, said
        self.as_typed = False
        self.free = speaker.letters | {letter for letter in said.indices if not speaker.is_tensor(Name(letter))}

    def box(self) -> Box:
        """The formula by the symbols of the document; gradients as typed where two would be printed alike."""
        found = self._found()
        if _has_equal_sides(found) and not _has_equal_sides(self.formula.box):
            self.as_typed = True
            return self._found()
        return found

    def _found(self) -> Box:
        found = fold(self.speaker.apart(self.formula.box, self.as_typed), self._written)
        if found.unknown is not None:
            raise self._unknown(found.unknown)
        return found.box

    def _written(self, box: Box, inside: Sequence[_Found]) -> _Found:
        """A box by the symbols of the document: the whole of it where it is one, else what it holds."""
        is_gradient = isinstance(box, Differential)
        if not (is_gradient and self.as_typed) and (name := self.speaker.known(box)) is not None:
            return _Found(name.printed, is_loose=name.is_loose)
        if isinstance(box, Name) and not self._is_free(box):
            return _Found(box, box)
        if isinstance(box, Accent) and not _letters_of(box) & self.free:
            return _Found(box, box)
        if isinstance(box, Text) and (named := self._named_in(box)):
            return _Found(box, named)
        self._check(box)
        for part in inside:
            if part.unknown is not None and not (isinstance(box, Function) and _is_of_library(box)):
                raise self._unknown(part.unknown)
        made = [part.box for part in inside]
        if isinstance(box, Script) and (name := self.speaker.known(box.base)) is not None:
            if box.above is None and isinstance(name.printed, Fraction):
                return _Found(at_entry(name.printed, made[1]))
            return _Found(_marked(box, [Fence(name.printed) if name.is_loose else name.printed, *made[1:]]))
        if isinstance(box, Row):
            loose = [part.is_loose and _is_among(made, k) for k, part in enumerate(inside)]
            made = [Fence(x) if fenced else x for x, fenced in zip(made, loose, strict=True)]
        return _Found(rebuilt(box, made))

    def _check(self, box: Box) -> None:
        """Raise NamingError for a name under marks that make another one of it, and for what may be two things."""
        if _letters_of(box) & self.speaker.letters and isinstance(box, (Script, Differential)):
            return
        match box:
            case Script(base=base) if (name := self.speaker.known(base)) is not None:
                if problem := self._misplaced(name, box):
                    raise self._none(latex(box), f"{problem}; {_declared(name.name)}")
            case Differential(of=of) if (name := self._without_gradient(of)) is not None:
                raise self._none(latex(box), f"there is {name.name}, and no gradient by it")
            case Row(parts=parts):
                for first, second in pairwise(parts):
                    self._check_product(first, second)

    def _without_gradient(self, of: Box) -> Spoken | None:
        """A tensor by which the document has no gradient."""
        name = None if self.speaker.gradient(of) is not None else self.speaker.known(of)
        return name if name is not None and name.rank else None

    def _check_product(self, first: Box, second: Box) -> None:
        r"""Raise NamingError for ``dZ``, which may be a size times Z or a gradient."""
        of = second.base if isinstance(second, Script) and self.speaker.known(second) is None else second
        name = self.speaker.known(of) if _is_d(first) and "d" not in self.free else None
        if name is not None and name.rank:
            typed = latex(of)
            raise self._none(
                f"d{typed}", rf"a gradient is written $\mathrm{{d}}{typed}$, and the size d times it $d \cdot {typed}$"
            )

    # --- above and below a name ---

    def _misplaced(self, name: Spoken, box: Script) -> str:
        """Why what stands above or below a name makes another one of it, or nothing."""
        if box.above is not None and name.rank and _transposes(box.above):
            return rf"{name.name} transposed is written ${latex(name.typed)}^{{\top}}$"
        if box.above is not None and not self._is_above(name, box.above):
            euler = r"; Euler's number is written $\mathrm{e}$" if name.name == "e" else ""
            return rf"there is {name.name}, above which stand powers and \top{euler}"
        if box.below is not None and not self._are_places(box.below, name.rank):
            entry = f"of which an entry is ${latex(name.typed)}_{{{' '.join('ijklmn'[: name.rank])}}}$"
            return f"there is {name.name}, {entry if name.rank else 'which is one number'}"
        return ""

    def _are_places(self, below: Box, rank: int) -> bool:
        """Whether something below a name says which entries or rows are meant: no tensor does."""
        return _are_indices(below, rank) and not any(map(self.speaker.is_tensor, every(below)))

    def _is_above(self, name: Spoken, above: Box) -> bool:
        """Whether something above a name is a power, a transposition, or says which of several heads is meant."""
        parts = above.parts if isinstance(above, Row) else (above,)
        if isinstance(parts[0], Fence) and name.rank > 2:
            parts = parts[1:] or (Sign("⊤"),)
        if isinstance(parts[-1], Sign):
            return [part.mark for part in parts if isinstance(part, Sign)] in (["⊤"], ["−", "⊤"]) and len(parts) < 3
        known = [self.speaker.known(part) for part in parts]
        return not any(_is_word(part) for part in parts) and not any(x is not None and x.rank for x in known)

    def _named_in(self, text: Text) -> Name | None:
        """A name of the document among upright words, which are words alone: one that is no word of English."""
        words = text.words.split()
        named = (word for word in words if word in self.speaker.by_name and (len(words) == 1 or _is_symbol(word)))
        return next((Name(word, "upright") for word in named), None)

    def _is_free(self, name: Name) -> bool:
        """Whether a name needs no document: a word, a constant, an index, or a letter that stands for anything."""
        if name.letters.isdigit() or name.letters in self.free:
            return True
        if len(name.letters) != 1:
            return name.letters not in self.speaker.by_name
        return (name.letters in _CONSTANTS[name.style]) if name.style in _CONSTANTS else name.style == "blackboard"

    # --- what is said of others ---

    def _unknown(self, box: Box) -> NamingError:
        letters = next(part.letters for part in every(box) if isinstance(part, Name))
        spelled = LETTERS.get(letters, letters).removeprefix("\\")
        name = self.speaker.by_name.get(spelled)
        if name is None:
            return self._none(spelled, f"{self._nearest(spelled)}; {_declared(spelled)}")
        typed = latex(name.typed)
        why = f"{spelled} is written ${typed}$, and printed as names= says"
        if self.speaker.gradient(name.typed) is not None:
            why += rf"; its gradient is written $\mathrm{{d}}{typed}$, and printed as gradients= says"
        return self._none(latex(box), f"{why}; {_declared(spelled)}")

    def _nearest(self, spelled: str) -> str:
        names = list(self.speaker.by_name)
        numbered = ", ".join(name for name in names if name.rpartition("_")[0] == spelled and name[-1].isdigit())
        return f"of that letter there are {numbered}" if numbered else nearest(spelled, names)

    def _none(self, spelled: str, why: str) -> NamingError:
        return NamingError(
            f"{self.said.where} speaks of '{spelled}', in ${self.formula.source}$, which is no name of the derivation: "
            f"{why}"
        )


def _has_equal_sides(formula: Box) -> bool:
    """Whether two sides of an equation are printed alike, so that it says nothing."""
    parts = formula.parts if isinstance(formula, Row) else ()
    sides: list[list[Box]] = [[]]
    for part in parts:
        if isinstance(part, Sign) and part.kind == "relation":
            sides.append([])
        else:
            sides[-1].append(part)
    written = [latex(row(*side)) for side in sides if side]
    return any(starmap(eq, pairwise(written)))


def _declared(letters: str) -> str:
    return f"a letter that stands for anything is declared by letters={letters!r}"


def _marked(box: Script, made: Sequence[Box]) -> Box:
    """A printed name with what stands below and above it."""
    base, *scripts = made
    base = lowered(base, scripts.pop(0)) if box.below is not None else base
    return raised(base, scripts[0]) if scripts else base


def _is_among(parts: Sequence[Box], k: int) -> bool:
    """Whether one of several parts, which holds loosely together, is a factor among others."""
    return isinstance(parts[k], Row) and least(parts, k) >= Level.FACTORS


def _are_indices(below: Box, rank: int) -> bool:
    """Whether something below a name of so many axes says which of its entries or rows are meant."""
    parts = below.parts if isinstance(below, Row) else (below,)
    if any(_is_word(part) for part in parts) or (isinstance(below, Sign) and below.mark not in ":⋅"):
        return False
    commas = sum(isinstance(part, Sign) and part.mark == "," for part in parts)
    side_by_side = all(isinstance(part, (Name, Number)) for part in parts)
    count = len(parts) if side_by_side else commas + 1
    return count <= rank and not (count < rank and all(isinstance(part, Number) for part in parts))


def _is_word(box: Box) -> bool:
    return isinstance(box, (Text, Fence, Function)) or (isinstance(box, Name) and len(box.letters) > 1)


def _is_symbol(word: str) -> bool:
    return word not in ("A", "I") and any(c.isupper() for c in word)


def _is_of_library(function: Function) -> bool:
    """Whether a function of one letter is one that needs no declaration, as ``\\sigma``."""
    return isinstance(function.name, Name) and function.name.letters in _FUNCTIONS


def _transposes(above: Box) -> bool:
    """Whether a superscript is what others write for a transposition, which would be a power here."""
    match above:
        case Name(letters="T") | Text(words="T") | Sign(mark="⊺"):
            return True
    return False


def _is_d(box: Box) -> bool:
    return isinstance(box, Name) and (box.letters, box.style) == ("d", "italic")


def _differentiated(first: Box, second: Box) -> Box | None:
    r"""What a gradient of L is by, that is written ``\nabla_Z L`` or ``dZ``."""
    match first, second:
        case Script(base=Sign(mark="∇"), below=Row(parts=(Space(), by)), above=None), Name(letters="L"):
            return by
        case Script(base=Sign(mark="∇"), below=Box() as by, above=None), Name(letters="L"):
            return by
        case Name(letters="d", style="italic"), _:
            return second
    return None


def _quotient(above: Sequence[Box], below: Sequence[Box]) -> Box | None:
    r"""What a gradient of L is by, that is written ``\partial L / \partial Z``."""
    match (*above, *below):
        case (Sign(mark="∂"), Name(letters="L"), Sign(mark="∂"), by):
            return by
    return None


def _parts(box: Box) -> tuple[Box, ...]:
    return box.parts if isinstance(box, Row) else (box,)


def _primes(above: Box | None) -> tuple[Box | None, Box | None]:
    """The primes of a name, and what stands above it besides."""
    match above:
        case Sign(mark=mark) if mark.strip("′") == "":
            return above, None
        case Row(parts=(Sign(mark=mark) as primes, *rest)) if mark.strip("′") == "":
            return primes, row(*rest)
    return None, above


def _letters_of(box: Box) -> set[str]:
    return {part.letters for part in every(box) if isinstance(part, Name)}


def _letter_below(box: Box) -> Box:
    """The letter for one of several numbered symbols, as in ``Z_{i}``; the box itself where there is none."""
    inner = box.of if isinstance(box, Differential) else box
    match inner:
        case Script(below=Name() as letter) if len(letter.letters) == 1:
            return letter
    return box


def _first_of_family(box: Box) -> Box:
    """The first of the numbered symbols that a letter stands for."""
    match box:
        case Differential(of=Script(below=Name()) as inner):
            return Differential(_first_of_family(inner))
        case Script(below=Name(), above=None):
            return Script(box.base, Number("1"))
    return box


@dataclass(frozen=True, eq=False)
class _Found:
    """A box that was written, or a name that nobody knows unless it is part of what is known."""

    box: Box
    unknown: Box | None = None
    is_loose: bool = False
