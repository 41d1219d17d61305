r"""The symbols of one output, each once: its role, how it is printed, what it stands for.

Who prints asks for a symbol by its name. What has its name from another symbol follows it where that is spelled by the
user: its gradient, its tangent, its parts, what has its letter and a number or a prime, and the letters of its law.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import sympy

from ..core.boxes import Box, Fence, Name, Number, Row, Script, Sign, boxes_in, row
from ..core.naming import nearest
from ..core.node import Tensor, topological
from ..core.sizes import Shape
from ..errors import NamingError, OperandError, described
from ..graph.canonical import without_names
from ..graph.names import names_among
from ..ops.leaves import constant, cotangent_op, definition, is_eye, is_named, let_op, named_by, variable
from ..ops.notation import Binding, Written
from .gradients import Gradients, accented, differential, gradient_box, names_the_loss, subscripted
from .media.latex import latex
from .media.neighbours import edge
from .media.read_latex import box_of_latex
from .media.unicode import unicode_text
from .misleading import as_shown, by_shape, check_functions, check_spellings, ink, is_unseen, words_of
from .scalars import FUNCTION_LETTERS, Scalars, constants_in, scalar_box
from .symbols import letters_of, symbol

Role = Literal[
    "given", "let", "named on the way", "gradient", "cotangent", "size", "scalar", "loss", "law letter", "function"
]
Spellings = Mapping[Any, str]
_LOSSES = (Name("L"), Name("L", "calligraphic"), Name("J"), Name("J", "calligraphic"), Name("E", "calligraphic"))
_ONE = sympy.S.One


class Symbol(NamedTuple):
    """A symbol of an output: ``box`` is how it is printed, and ``binding`` how tightly that holds together."""

    name: str
    role: Role
    box: Box
    binding: int
    shape: Shape | None = None
    meaning: Tensor | None = None


class SymbolTable(Mapping[str, Symbol]):
    """The symbols by their names, and the name under which each node is shown.

    ``loops`` are the recurrences whose equations the page has by then, as what writes these knows them.
    """

    def __init__(
        self,
        names: Mapping[Tensor, str],
        symbols: Mapping[str, Symbol] | None = None,
        loops: dict[Any, Any] | None = None,
    ) -> None:
        self.names = names
        self.loops = {} if loops is None else loops
        self._symbols = {} if symbols is None else symbols
        self._scripted: tuple[dict[str, list[Box]], ...] | None = None  # by their ink, without and with superscripts
        self._words: Mapping[str, Collection[Name]] | None = None
        self._spelled = {s.name for s in self._symbols.values() if not s.shape and s.box is not symbol(s.name)}

    @classmethod
    def spelled(cls, names: Mapping[Tensor, str], boxes: Mapping[Tensor, Box]) -> SymbolTable:
        """The table of some names, with the boxes of some of them."""
        return cls(
            names, {names[x]: Symbol(names[x], "let", box, Binding.ATOM, x.shape, x) for x, box in boxes.items()}
        )

    def over(self, own: SymbolTable) -> SymbolTable:
        """The symbols of a document, and those of a part of it that it lacks."""
        return SymbolTable({**own.names, **self.names}, {**own, **self}, self.loops)

    def __getitem__(self, name: str) -> Symbol:
        return self._symbols[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._symbols)

    def __len__(self) -> int:
        return len(self._symbols)

    def written(self, name: str) -> Written:
        """How a name is printed, and how tightly that holds together."""
        known = self._symbols.get(name)
        return (symbol(name), Binding.ATOM) if known is None else (known.box, known.binding)

    def box(self, name: str) -> Box:
        """How a name is printed."""
        return self.written(name)[0]

    def scalars(self) -> Scalars:
        """What prints SymPy scalars by these names."""
        return Scalars(self.spelling())

    def scalar(self, value: Any) -> Box:
        """A SymPy scalar by these names."""
        if self._spelled and any(s.name in self._spelled for s in value.free_symbols):
            return self.scalars().box(value)
        return scalar_box(value)

    def spelling(self) -> dict[str, Box]:
        """How each name is printed that is known."""
        return {name: known.box for name, known in self._symbols.items()}

    def is_name(self, box: Box) -> bool:
        """Whether something with a subscript is printed as a symbol is: the entry 2 of x as what has the name x_2."""
        if not isinstance(box, Script):
            return False
        if self._scripted is None:
            self._scripted = {}, {}
            for known in self._symbols.values():
                if isinstance(known.box, Script):
                    of_kind = self._scripted[known.box.above is not None]
                    of_kind.setdefault(ink(known.box), []).append(known.box)
        scripted = self._scripted[box.above is not None]
        alike = scripted.get(ink(box)) if scripted else None
        return alike is not None and as_seen(box) in map(as_seen, alike)

    def told_apart(self, formula: Box) -> Box:
        """A formula, of which no function is written by the word of a name; raises NamingError."""
        if self._words is None:
            others = (symbol(name) for name in self.names.values() if name not in self._symbols)
            self._words = words_of([*self.spelling().values(), *others])
        check_functions(self._words, formula)
        return formula

    def has_letter(self, letter: str) -> bool:
        """Whether a symbol is printed by a letter, maybe with scripts."""
        return any(isinstance(base := edge(s.box, 0), Name) and base.letters == letter for s in self._symbols.values())

    def letters(self) -> set[str]:
        """What no index may be called: each name, its letter without a subscript, and the letter that is printed.

        Of a tensor that is spelled by the user it is all letters: where ``A`` is ``X_{t}``, no entry is.
        """
        names = {*self._symbols, *self.names.values()}
        spelled = [known for known in self._symbols.values() if known.shape and known.box is not symbol(known.name)]
        boxes = [known.box for known in self._symbols.values()]
        parts = [*boxes, *(part for known in spelled for part in boxes_in(known.box))]
        printed = {part.letters for part in parts if isinstance(part, Name)}
        return {*names, *(name.partition("_")[0].rstrip("'") for name in names), *printed}


def checked_table(within: SymbolTable | None) -> SymbolTable:
    """The symbols of the document that something stands in, none if it stands alone; raises OperandError."""
    if within is not None and not isinstance(within, SymbolTable):
        raise OperandError(f"within= is the symbol table of a document, not {described(within)}")
    return SymbolTable({}) if within is None else within


def symbol_table(roots: Iterable[Tensor], spelled: Spellings | None = None, gradients: Gradients = "d") -> SymbolTable:
    """The symbols of some expressions, some of them as the user spells them.

    Raises NamingError for a spelling of what does not occur, and where two symbols would be printed alike.
    """
    roots = list(roots)
    found = _Occurring(roots)
    by_user = _Spelled(found, spelled)
    boxes = _Boxes(found, by_user, gradients)
    symbols = {name: Symbol(name, role, *boxes.written(name), *found.kept(name)) for name, role in found.roles.items()}
    symbols |= {name: Symbol(name, "loss", box, Binding.ATOM, ()) for name, box in boxes.losses_named()}
    table = SymbolTable(found.names, symbols)
    if by_user.boxes:
        sizes = [name for name, role in found.roles.items() if role == "size"]
        with_heads = [name for name, symbol in symbols.items() if symbol.shape and len(symbol.shape) > 2]
        check_spellings(by_user.boxes, table.spelling(), sizes, with_heads)
    check_apart(table.spelling(), signs_in(found.order, table))
    return table


def check_apart(printed: Mapping[str, Box], signs: Iterable[tuple[str, Box]] = ()) -> None:
    """No two symbols look alike in any medium, and none like a sign of the library; raises NamingError."""
    named = ((repr(name), box) for name, box in printed.items())
    alike: dict[str, list[tuple[str, Box]]] = {}
    for name, box in (*named, *signs):
        alike.setdefault(ink(box), []).append((name, box))
    for several in alike.values():
        if len(several) > 1:
            _check_apart(several)


def _check_apart(alike: Iterable[tuple[str, Box]]) -> None:
    shown_as: dict[str, str] = {}
    for name, box in alike:
        is_e = isinstance(box, Name) and (box.letters, box.style) == ("e", "upright")  # it leans where it is a size
        for written in (_in_latex(box),) if is_e else (_in_latex(box), _in_text(box)):
            other = shown_as.setdefault(written.replace(" ", ""), name)
            if other != name:
                raise NamingError(f"{other} and {name} would both print as {written}: rename one")


def as_seen(box: Box) -> str:
    """A symbol in LaTeX without spaces, which are not seen: the entry (1, 2) is printed as entry 12."""
    return _in_latex(box).replace(" ", "")


def signs_in(order: Iterable[Tensor], table: SymbolTable) -> Iterator[tuple[str, Box]]:
    """What the library prints by a letter in some nodes: the identity, functions and constants."""
    for node in order:
        if node.op.name in FUNCTION_LETTERS:
            yield f"the function {node.op.name}", FUNCTION_LETTERS[node.op.name]
        if isinstance(formula := node.params.get("formula"), sympy.Basic):
            if is_eye(node):
                yield "the identity", Script(Name("I"), table.scalar(node.shape[0]))
            yield from constants_in(formula)


_in_latex = lru_cache(maxsize=4096)(latex)  # names are asked for again and again
_in_text = lru_cache(maxsize=4096)(lambda box: by_shape(unicode_text(box)))


# --- what occurs ---


class _Gradient(NamedTuple):
    """What a gradient is by, and of which outputs under which cotangents."""

    by: str
    losses: tuple[Tensor, ...]


class _Occurring:
    """The symbols that occur in some expressions, by their names: with their roles, nodes and labels."""

    def __init__(self, roots: Sequence[Tensor]) -> None:
        self.order = topological(roots)
        self.names = names_among(self.order)
        self.nodes: dict[str, Tensor] = {}
        self.roles: dict[str, Role] = {}
        self.gradients: dict[str, _Gradient] = {}
        functions = {node.params["function"] for node in self.order if "function" in node.params}
        symbols = set[sympy.Symbol]()
        for node in self.order:
            name = self.names.get(node)
            if name is not None and name not in self.nodes:
                self.nodes[name], self.roles[name] = node, _role(node)
            if new := node.own_symbols - symbols:
                named = sorted(new, key=attrgetter("name"))
                self.roles |= {s.name: "size" if s.is_integer else "scalar" for s in named}
                symbols |= new
        if clash := functions & self.roles.keys():
            raise NamingError(f"{min(clash)!r} names both a function and a tensor, a size or a scalar: rename one")
        self.roles |= dict.fromkeys(sorted(functions), "function")
        for node in self.order:
            if node.op is cotangent_op:
                self._read(node)

    def _read(self, gradient: Tensor) -> None:
        _, by, *pairs = gradient.inputs
        losses = tuple(pairs)
        name, label = self.names[gradient], str(gradient.params["name"])
        self.gradients.setdefault(name, _Gradient(self._called(by, label), losses))
        for output, cotangent in zip(losses[::2], losses[1::2], strict=True):
            shown = self.names.get(cotangent)
            called = self._called(output, shown or "")
            if shown is not None and cotangent.op is variable and _is_number(shown.removeprefix(f"d{called}")):
                self.roles[shown] = "cotangent"
                self.gradients.setdefault(shown, _Gradient(called, losses))

    def _called(self, x: Tensor, differential: str) -> str:
        """The name of what a gradient is by; what has none is told by the name of the gradient."""
        if x.op is constant and x.params["formula"].is_Symbol:
            return str(x.params["formula"])
        return self.names.get(x) or differential.removeprefix("d")

    def kept(self, name: str) -> tuple[Shape | None, Tensor | None]:
        """The shape of what a name stands for, and what defines it."""
        node = self.nodes.get(name)
        if node is None:
            return (None if self.roles[name] == "function" else ()), None
        return node.shape, (None if node.op is variable else definition(node))

    def label(self, name: str) -> str:
        """The name that was given to what is shown under this one, which may be numbered."""
        node = self.nodes.get(name)
        return name if node is None else str(node.params["name"])


def _is_number(ending: str) -> bool:
    """Whether an ending of a name tells apart what has one label, or is none."""
    return not ending or (ending.startswith("_") and ending[1:].isdigit())


def _role(node: Tensor) -> Role:
    if node.op is variable:
        return "given"
    if node.op is cotangent_op:
        return "gradient"
    return "named on the way" if named_by(node) else "let"


# --- as the user spells it ---


class _Spelled:
    """The boxes that a user gave, by the names of symbols or by the label of several that are numbered."""

    def __init__(self, found: _Occurring, spelled: Spellings | None) -> None:
        if spelled is not None and not isinstance(spelled, Mapping):
            raise OperandError(f"names spells named tensors, {{P: r'\\mathbf{{A}}'}}, and is not {described(spelled)}")
        self.found = found
        self.boxes: dict[str, Box] = {}
        for key, written in (spelled or {}).items():
            box = _box_of(key, written)
            for name in self._meant(key):
                if name in self.boxes and latex(self.boxes[name]) != latex(box):
                    raise NamingError(f"names spells {name!r} twice: as {latex(self.boxes[name])} and as {latex(box)}")
                self.boxes[name] = box

    def _meant(self, key: Any) -> list[str]:
        """The names that a key stands for."""
        if isinstance(key, Tensor):
            if not is_named(key):
                raise OperandError(f"names spells named tensors, and {described(key)} is none: name it by sa.let first")
            return self._of_tensor(key)
        if isinstance(key, (str, sympy.Symbol)):
            return self._of_name(str(key))
        raise OperandError(f"names spells tensors, symbols and names of them, and {described(key)} is none of these")

    def _of_name(self, name: str) -> list[str]:
        labels = {self.found.label(shown) for shown in self.found.nodes}
        if name not in self.found.roles and name not in labels:
            raise _does_not_occur(name, {*self.found.roles, *labels})
        return [name]

    def _of_tensor(self, x: Tensor) -> list[str]:
        """The name under which it is shown, or a tensor that differs from it in names inside."""
        found = self.found
        if x in found.names:
            return [found.names[x]]
        label = str(x.params["name"])
        alike = [y for y in found.nodes.values() if y.params["name"] == label and y.shape == x.shape]
        if len(alike) > 1:
            bare: dict[Tensor, Tensor] = {}
            for node in topological([x, *alike]):
                bare[node] = without_names(node, bare)
            alike = [y for y in alike if bare[y] is bare[x]] or alike
        if not alike:
            raise _does_not_occur(label, found.roles)
        return [found.names[y] for y in alike]


def _box_of(key: Any, written: Any) -> Box:
    if not isinstance(written, str) or not written.strip():
        shown = key.brief() if isinstance(key, Tensor) else str(key)
        raise OperandError(f"names spells {shown} by LaTeX text, not {described(written)}")
    box = as_shown(box_of_latex(written))
    if is_unseen(box):
        shown = key.brief() if isinstance(key, Tensor) else str(key)
        raise OperandError(f"names spells {shown} as {written}, of which nothing is seen")
    return box


def _does_not_occur(name: str, known: Iterable[str]) -> NamingError:
    return NamingError(f"names spells {name!r}, which does not occur in what is printed: {nearest(name, known)}")


# --- as it is printed ---


class _Boxes:
    """The boxes of names, those of derived ones from the ones that they derive from."""

    def __init__(self, found: _Occurring, spelled: _Spelled, way: Gradients) -> None:
        self.found, self.spelled, self.way = found, spelled.boxes, way
        self._done: dict[str, Written] = {}
        self._follows: dict[str, Box | None] = {}
        self._losses = self._loss_letters() if names_the_loss(way) else {}
        by = ((g.by, g.losses if names_the_loss(way) else ()) for g in found.gradients.values())
        self._alike = Counter(by)

    def written(self, name: str) -> Written:
        """How a name is printed, and how tightly that holds together."""
        if name not in self._done:
            spelled = self.spelled.get(name)
            gradient = self.found.gradients.get(name) if spelled is None else None
            box = None if gradient else self._following(name)
            self._done[name] = self._gradient(name, gradient) if gradient else _held(box or symbol(name))
        return self._done[name]

    def _gradient(self, name: str, gradient: _Gradient) -> Written:
        """The gradient by what has a name, with a number where that is not enough to tell it."""
        by = self._number(name, gradient, self.written(gradient.by)[0])
        return gradient_box(self.way, by, self._losses.get(gradient.losses, _LOSSES[0]))

    def _number(self, name: str, gradient: _Gradient, by: Box) -> Box:
        plain = self.found.label(name) == f"d{self.found.label(gradient.by)}"
        free = plain or names_the_loss(self.way) or f"d{gradient.by}" not in self.found.roles
        if free and self._alike[gradient.by, gradient.losses if names_the_loss(self.way) else ()] == 1:
            return by
        _, _, number = name.rpartition("_")
        return subscripted(by, Number(number)) if number.isdigit() and name != f"d{gradient.by}" else by

    def _following(self, name: str) -> Box | None:
        """How a name is printed that the user spelled, or that derives from one; None for any other."""
        if not self.spelled:
            return None
        if name not in self._follows:
            self._follows[name] = None  # what derives from itself is not spelled
            self._follows[name] = self.spelled.get(name) or self._derived(name)
        return self._follows[name]

    def _derived(self, name: str) -> Box | None:
        stem, label = name.rstrip("'"), self.found.label(name)
        if stem != name and (base := self._following(stem)):
            return Script(base, above=Sign("′" * (len(name) - len(stem))))
        if label != name and (base := self._following(label)):
            return subscripted(base, Number(name.rpartition("_")[2]))
        return self._by_word(name) or self._part(name)

    def _by_word(self, name: str) -> Box | None:
        """A tangent, or what is called a differential."""
        letter, line, number = name.partition("_")
        if letter.endswith("dot") and (base := self._following(letter[:-3] + line + number)):
            return accented(base, "˙")
        if name.startswith("d") and (base := self._following(name[1:])):
            return differential(base)
        return None

    def _part(self, name: str) -> Box | None:
        """A part that a function of the library or a gradient named after the whole."""
        node = self.found.nodes.get(name)
        whole, _, part = name.rpartition("_")
        if node is None or node.op is not let_op or not named_by(node) or not whole or part.isdigit():
            return None
        base = self._following(whole)
        return base and subscripted(base, letters_of(part))

    # --- losses ---

    def _loss_letters(self) -> dict[tuple[Tensor, ...], Box]:
        """A letter for each loss: that of the output where it is one number, else a letter that is free."""
        all_losses = dict.fromkeys(g.losses for g in self.found.gradients.values())
        letters: dict[tuple[Tensor, ...], Box] = {}
        unnamed = []
        for loss in all_losses:
            name = self.found.names.get(loss[0]) if len(loss) == 2 and _is_one(loss[1]) else None
            if name is None:
                unnamed.append(loss)
            else:
                letters[loss] = self._following(name) or symbol(name)
        taken = self._printed_names()
        free = next(box for box in _LOSSES if _in_latex(box) not in taken)
        many = len(unnamed) > 1
        return letters | {loss: Script(free, Number(str(k))) if many else free for k, loss in enumerate(unnamed, 1)}

    def _printed_names(self) -> set[str]:
        return {_in_latex(self._following(name) or symbol(name)) for name in self.found.roles}

    def losses_named(self) -> list[tuple[str, Box]]:
        """The letters of losses that are no symbol of the expressions."""
        if not self._losses:
            return []
        named = self._printed_names()
        boxes = {latex(box): box for box in self._losses.values()}
        return [(f"loss {written}", box) for written, box in boxes.items() if written not in named]


def _held(box: Box) -> Written:
    """A name with how tightly it holds together: of several parts, what a function is applied to ends in a fence."""
    if not isinstance(box, Row) or isinstance(box.parts[-1], Fence):
        return box, Binding.ATOM
    loose = any(isinstance(part, Sign) and part.kind in ("sum", "relation", "prefix") for part in box.parts)
    return box, Binding.SUM if loose else Binding.PRODUCT


def _is_one(x: Tensor) -> bool:
    return x.op is constant and x.params["formula"] == _ONE


# --- laws ---


def with_laws(table: SymbolTable, tensors: Iterable[Tensor], letters: Iterable[str]) -> SymbolTable:
    r"""The table with letters of the laws of tensors: the mean ``\mu_{q}``, the covariance ``c_{q k}``."""
    boxes = {str(x.name): table.box(table.names.get(x, str(x.name))) for x in tensors}
    pairs = {f"{a}{b}": row(p, q) for a, p in boxes.items() for b, q in boxes.items() if a != b}
    laws: dict[str, Symbol] = {}
    for name in letters:
        letter, _, of = name.partition("_")
        below = boxes.get(of) or (pairs.get(of) if letter == "c" else None)
        if below is not None:
            laws[name] = Symbol(name, "law letter", subscripted(symbol(letter), below), Binding.ATOM, ())
    lettered = SymbolTable(table.names, {**table, **laws})
    if laws:
        check_apart(lettered.spelling())
    return lettered
