r"""What the names of a formula stand for, by what they look like: ``W_i^Q`` and ``W^Q_i`` are one name.

A name is looked up with its scripts first, then as an entry of what is declared without them: where ``q_i`` is not
declared but ``Q`` is, ``Q_i`` is row i of Q. A letter whose range is declared (``"i": "1..n"``) is an index, and a name
with it, as ``q_i``, is a family: a tensor with an axis for the index in front.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy

from ...core.naming import check_name
from ...core.node import Tensor
from ...core.sizes import as_shape, as_size
from ...errors import NamingError, OperandError, SymattnError, described
from ...ops.leaves import as_tensor, tensor
from ...printing.media.spelling import LETTERS
from ...printing.symbols import latex_name
from .lexer import tokens_of
from .parser import INDICES, Parser
from .text import FormulaText
from .tree import Apply, Fence, Infix, Items, Mark, Number, Product, Scripted, Symbol, Total, Tree
from .worked_out import Allowance

_ACCENTS = {"^": "hat", "~": "tilde", "‾": "bar", "˙": "dot", "¨": "ddot", "→": "vec", "ˇ": "check", "˘": "breve",
            "´": "acute", "ˋ": "grave", "_": "under"}  # fmt: skip
_GREEK = {letter: word[1:] for letter, word in LETTERS.items()}
_FONTS = {"calligraphic": "cal", "fraktur": "frak"}  # as symattn spells them
_SIGNS = {"−": "_minus_", "+": "_plus_", "∗": "_star_", "⋆": "_star_", "†": "_dagger_"}
_STYLED = {"calligraphic": "𝒞", "fraktur": "𝔉", "blackboard": "𝔹"}  # a bold letter may be the plain one
INDEX = "•"  # stands for an index in the key of a family


@dataclass(frozen=True)
class Entry:
    """What a declared name stands for: a tensor, a scalar, a function, or None for what only derivatives speak of.

    ``family`` has the ranges of the indices that the name is written with: for each an axis in front. ``call`` is how
    it is written where it is a function of indices, ``score(i, j)``.
    """

    value: Any
    name: str
    family: tuple[str, ...] = ()
    call: Apply | None = None

    @property
    def is_function(self) -> bool:
        return callable(self.value) and not isinstance(self.value, (Tensor, sympy.Basic))


@dataclass(frozen=True)
class Range:
    """The first place that an index has, and how many there are."""

    first: sympy.Expr
    size: sympy.Expr


# --- keys ---


def key_of(tree: Tree, indices: frozenset[str] = frozenset()) -> str:
    """What a name looks like, as text; letters that are indices are all alike. "" where it is no name."""
    if isinstance(tree, Symbol):
        return tree.letters + _STYLED.get(tree.style, "") + tree.accents
    if not isinstance(tree, Scripted) or not isinstance(tree.base, Symbol):
        return ""
    key = key_of(tree.base) + tree.primes
    below, above = (_script_key(script, indices) for script in (tree.below, tree.above))
    return key + (f"_{below}" if below else "") + (f"^{above}" if above else "")


def _script_key(script: Tree | None, indices: frozenset[str]) -> str:
    """The pieces of a script; a word is its letters, so that ``K^{sq}`` and ``K^{\\mathrm{sq}}`` are one name."""
    return ",".join(piece for item in (() if script is None else items_of(script)) for piece in _pieces(item, indices))


def _pieces(item: Tree, indices: frozenset[str]) -> list[str]:
    piece = _piece(item, indices)
    return list(piece) if isinstance(item, Symbol) and len(item.letters) > 1 and piece.isalpha() else [piece]


def items_of(script: Tree) -> tuple[Tree, ...]:
    """The parts of a script: between commas, or letters side by side."""
    if isinstance(script, Items):
        return script.items
    if isinstance(script, Product) and not any(script.signs):
        return script.factors
    return (script,)


def _piece(tree: Tree, indices: frozenset[str]) -> str:
    match tree:
        case Symbol() | Scripted(base=Symbol()):
            key = key_of(tree)
            return INDEX if key in indices else key
        case Number(digits=digits):
            return digits
        case Mark(sign=sign):
            return sign
        case Fence(items=items, left=left, right=right):
            return left + ",".join(_piece(item, indices) for item in items) + right
        case Product(factors=factors):
            return "".join(_piece(factor, indices) for factor in factors)
        case Total(terms=terms):
            return "".join((sign if n or sign == "−" else "") + _piece(x, indices) for n, (sign, x) in enumerate(terms))
        case Infix(sign=sign, left=left_side, right=right_side):
            return _piece(left_side, indices) + sign + _piece(right_side, indices)
    return "?"


def name_of(tree: Tree) -> str:
    """A name as symattn spells it: ``W_i^Q`` is W_i_Q, ``\\hat{q}`` is qhat, ``\\mathcal{A}`` is Acal."""
    if isinstance(tree, Apply):
        return "_".join(map(name_of, (tree.head, *tree.arguments)))
    base = tree.base if isinstance(tree, Scripted) else tree
    assert isinstance(base, Symbol)
    scripts = (tree.below, tree.above) if isinstance(tree, Scripted) else ()
    told = "_".join("".join(_piece(item, frozenset()) for item in items_of(s)) for s in scripts if s is not None)
    primes = told.count("′") + (len(tree.primes) if isinstance(tree, Scripted) else 0)
    stem = "".join(_GREEK.get(c, c) for c in base.letters) + _FONTS.get(base.style, "")
    stem += "".join(_ACCENTS.get(a, "") for a in base.accents)
    told = "".join(_GREEK.get(c, _SIGNS.get(c, c)) for c in told.replace("′", ""))
    parts = "".join(c if c.isascii() and c.isalnum() else "_" for c in told).split("_")
    return "_".join([stem, *filter(None, parts)]) + "'" * primes


@lru_cache(maxsize=1024)
def tree_of(name: str) -> Tree:
    """The tree of a name: of one that symattn allows by how it prints, else of LaTeX."""
    try:
        source = latex_name(check_name(name))
    except NamingError:
        word = re.match("[A-Za-z]{2,}", name)  # ``bias_{ij}``
        source = rf"\mathrm{{{word[0]}}}{name[word.end() :]}" if word else name
    text = FormulaText(source)
    return Parser(text, tokens_of(text)[:-1], lambda head: True).read()


# --- what stands on a left side ---


def is_read_at_places(base: Tree) -> bool:
    """Whether a subscript says where an entry stands, and binds no index of its own."""
    return isinstance(base, Symbol) or (isinstance(base, Fence) and base.left != "[")


def named_inside(left: Tree) -> Tree:
    """``(W_{q})_{ij}`` on a left side as W_q with a subscript of its own; any other left side as it is."""
    if isinstance(left, Scripted) and isinstance(left.base, Fence) and len(left.base.items) == 1:
        inside = left.base.items[0]
        if left.base.left == "(" and key_of(inside) and left.above is None:
            return inside
    return left


def is_square(tree: Tree) -> bool:
    """Whether a letter stands with a 2, ``s^2`` or ``s_i^2``, which is a name where it is that of a number."""
    if not isinstance(tree, Scripted) or not isinstance(tree.base, Symbol):
        return False
    return isinstance(tree.above, Number) and tree.above.digits == "2"


def is_starred(tree: Scripted) -> bool:
    """Whether a name has a star, ``W^*``, which is another name than the one without it."""
    return isinstance(tree.above, Mark) and tree.above.sign in "∗⋆"


def is_hessian(tree: Product) -> bool:
    r"""``\nabla_z^2 L``."""
    first = tree.factors[0]
    return isinstance(first, Scripted) and isinstance(first.base, Mark) and first.base.sign == "∇" and bool(first.above)


# --- the table ---


class Names:
    """The declared names, the sizes in their shapes, and the ranges of indices.

    Raises NamingError for two that look alike, and OperandError for what is no meaning of a name.
    """

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.entries: dict[str, Entry] = {}
        self.ranges: dict[str, Range] = {}
        self.sizes: dict[str, sympy.Symbol] = {}
        self.derived: set[str] = set()  # derivatives that nobody declared
        self.waiting: set[str] = set()  # what statements define that are still to be read
        self.used: set[str] = set()  # declared names of tensors that stand in what was read
        self.defined_again: set[str] = set()  # those that the text defines
        self.vectors_are_rows: bool | None = None  # once a statement has decided it
        self.letters: dict[str, tuple[str, ...]] = {}  # of names that were defined by their entries
        self.made: dict[str, str] = {}  # the names of tensors that were made here, and what they stand for
        self.bases: set[int] = set()  # where the indices of a text begin: 0 or 1
        self.first_index: int | None = None  # the same, where it is given
        self.quantified: set[str] = set()  # letters that the text says to be indices, "for all i"
        self.laws: dict[Any, Any] = {}  # of random tensors
        self.layout = ""  # of Jacobians, where it is given
        self.heads: frozenset[str] = frozenset()  # indices that stand in superscripts only, as in Q^{(a)}
        self.allowance = Allowance()  # of time
        self.loss = ""  # the one scalar that all derivatives of a text are of
        if not isinstance(names, Mapping):
            raise OperandError(f"names says what names are, {{'Q': (T, d)}}, and is not {described(names)}")
        for name in names:
            if not isinstance(name, str):
                raise OperandError(f"a name is text, not {described(name)}")
        for name, value in names.items():
            if isinstance(value, str) and ".." in value:
                self.ranges[key_of(tree_of(name))] = _range(name, value)
        self.given_ranges = self.indices = frozenset(self.ranges)
        for name, value in names.items():
            if not (isinstance(value, str) and ".." in value):
                self.declare(tree_of(name), value, name)
        self.given = frozenset(self.entries)  # not by the text itself

    def branch(self) -> Names:
        """A table that knows the same, and whose own additions this one does not learn."""
        other = copy(self)
        for name, held in vars(self).items():
            if isinstance(held, (dict, set)):
                setattr(other, name, held.copy())
        return other

    def declare(self, tree: Tree, value: Any, shown: str = "") -> None:
        """One more name; a shape makes a tensor of that name."""
        key = _call_key(tree, self.indices) if isinstance(tree, Apply) else key_of(tree, self.indices)
        if not key:
            raise NamingError(f"{shown!r} is no name: write a letter or a word, with scripts, as in W_i^Q")
        if key in self.entries:
            raise NamingError(f"{shown or key!r} looks like the name {self.entries[key].name!r}: rename one of them")
        family = self._family(tree)
        self._check_apart(key, value)
        call = tree if isinstance(tree, Apply) else None
        entry = Entry(self._meant(tree, value, shown or key), shown or name_of(tree), family, call)
        self.entries[key] = entry
        meant = entry.value
        if isinstance(meant, (Tensor, sympy.Basic)):
            for symbol in meant.free_symbols:
                if isinstance(symbol, sympy.Symbol):
                    self.sizes.setdefault(key_of(tree_of(symbol.name)), symbol)

    def _check_apart(self, key: str, value: Any) -> None:
        """That a tensor that is given is not taken for one that was made here."""
        of = value.name if isinstance(value, Tensor) else None
        if of is not None and self.made.get(of, key) != key:
            raise NamingError(f"{key} is the tensor {of}, and so is {self.made[of]}: rename one of them")

    def tensor_of(self, tree: Tree, shape: Sequence[Any]) -> Tensor:
        """A tensor for a name, with the axes of its family. Raises NamingError where another name has it already."""
        name, key = name_of(tree), key_of(tree, self.indices)
        given = {e.value.name: k for k, e in self.entries.items() if isinstance(e.value, Tensor)}
        other = self.made.get(name, given.get(name, key))
        if other != key:
            raise NamingError(
                f"{key} and {other} would both be the tensor {name}: declare one of them by a tensor with a name of "
                f"its own, as sa.tensor('{name}_other', ...)"
            )
        self.made[name] = key
        return tensor(name, *(r.size for r in self.family_ranges(tree)), *shape)

    def taken(self, key: str) -> set[str]:
        """The names of the sizes, and of the tensors that other names than this one stand for."""
        tensors = {e.value.name for of, e in self.entries.items() if isinstance(e.value, Tensor) and of != key}
        return self.size_names | {name for name in tensors if name is not None}

    def _family(self, tree: Tree) -> tuple[str, ...]:
        """The indices that a name is written with."""
        if isinstance(tree, Apply):
            found = [key_of(x) for x in tree.arguments for x in _places(x) if key_of(x) in self.indices]
            return tuple(found)
        if not isinstance(tree, Scripted):
            return ()
        found = []
        for script in (tree.below, tree.above):
            for item in () if script is None else items_of(script):
                inside = item.items[0] if isinstance(item, Fence) and len(item.items) == 1 else item
                found += [key_of(part) for part in _summands(inside) if key_of(part) in self.indices]
        return tuple(found)

    def family_ranges(self, tree: Tree) -> list[Range]:
        """How far the indices of a family run."""
        return [self.ranges[letter] for letter in self._family(tree)]

    def _meant(self, tree: Tree, value: Any, shown: str) -> Any:
        if value is None or isinstance(value, Tensor) or (callable(value) and not isinstance(value, sympy.Basic)):
            return value
        if getattr(value, "is_Matrix", False):
            return as_tensor(value)
        if isinstance(value, (str, tuple, list)):
            return self.tensor_of(tree, as_shape((value,)))
        if isinstance(value, (int, float, sympy.Expr)) and not isinstance(value, bool):
            return sympy.sympify(value)
        raise OperandError(
            f"{shown} is declared by its shape, a tensor, a scalar or a function, not {described(value)}"
        )

    def define(self, base: Tree, value: Any, indices: tuple[str, ...]) -> None:
        """A name that the text defines, by its entries where it has indices."""
        key = key_of(base)
        if key in self.derived:  # until now, a tensor of its own
            self.derived.remove(key)
            del self.entries[key]
        if key in self.sizes and indices and isinstance(base, Symbol):  # ``m_i`` beside a size m
            self.entries[f"{key}_{','.join(INDEX for _ in indices)}"] = Entry(value, key, indices)
        elif self.find(base) is None:
            self.declare(base, value)
            self.letters[key] = indices

    def define_call(self, call: Apply, value: Tensor) -> None:
        """A function that the text defines, of the arguments with which it does: of others it is not known."""
        keys = [key_of(argument) for argument in call.arguments]
        if all(keys) and isinstance(call.head, Symbol) and not INDICES.intersection(keys):
            self.entries.setdefault(f"{key_of(call.head)}({';'.join(keys)})", Entry(value, key_of(call.head), (), call))

    def find(self, tree: Tree) -> Entry | None:
        """What a name stands for, with all of its scripts."""
        key = key_of(tree)
        if key in self.entries:
            return self.entries[key]
        if key in self.sizes:
            return Entry(self.sizes[key], key)
        plain = key.replace("^", ",") if "_" in key else key.replace("^", "_")
        entry = self.entries.get(plain) if "^" in key and not _is_power(tree) else None
        return None if entry is not None and self._is_raised(tree, entry) else entry

    def _is_raised(self, tree: Tree, entry: Entry) -> bool:
        """Whether ``d^k`` is a power rather than the number d_k: of a number that is declared without its script."""
        number = not isinstance(entry.value, Tensor) and not entry.is_function
        return number and isinstance(tree, Scripted) and key_of(tree.base) in {*self.entries, *self.sizes}

    def family(self, tree: Tree) -> tuple[Entry, tuple[Tree, ...]] | None:
        """The family that a name with indices belongs to, and the indices."""
        if not isinstance(tree, Scripted):
            return None
        below = () if tree.below is None else items_of(tree.below)
        above = () if tree.above is None else items_of(tree.above)
        for key, entry in self.entries.items():
            if INDEX in key and (indices := _matched(key, tree, below, above)) is not None:
                return entry, indices
        return None

    def called(self, tree: Apply) -> tuple[Entry, tuple[Tree, ...]] | None:
        """The declared function of indices that an application is of, and its indices."""
        for entry in self.entries.values():
            if entry.call is not None and (found := _same_call(entry.call, tree, self.indices)) is not None:
                return entry, found
        return None

    @contextmanager
    def within(self, ranges: Mapping[str, Range]) -> Iterator[None]:
        """Has indices run over other ranges in here."""
        outer = self.ranges
        self.ranges = {**outer, **ranges}
        try:
            yield
        finally:
            self.ranges = outer

    @property
    def first_place(self) -> int:
        """What the first place of an axis is called: 0, as in NumPy, unless it is given."""
        return self.first_index or 0

    def declared_bases(self) -> set[int]:
        """Where indices begin, 0 or 1, by the declared ranges; heads are counted apart from places of axes."""
        return {0 if r.first == 0 else 1 for letter, r in self.ranges.items() if letter not in self.heads}

    @property
    def size_names(self) -> set[str]:
        """What the sizes are called, also those of which a size is made, as D of d = D/h."""
        return {str(symbol) for size in self.sizes.values() for symbol in size.free_symbols}

    def known(self) -> str:
        """The names that there are, for messages."""
        tensors = [e.value.brief() for e in self.entries.values() if isinstance(e.value, Tensor)]
        others = [e.name for e in self.entries.values() if not isinstance(e.value, Tensor)]
        scalars = sorted({*others, *self.size_names})
        return f"declared are {', '.join(tensors) or 'no tensors'}; sizes and scalars: {', '.join(scalars) or 'none'}"


def _call_key(tree: Apply, indices: frozenset[str]) -> str:
    arguments = [key_of(argument, indices) for argument in tree.arguments]
    called = any(key_of(x) in indices for argument in tree.arguments for x in _places(argument))
    return f"{key_of(tree.head)}({';'.join(arguments)})" if called and all(arguments) else ""


def _places(argument: Tree) -> tuple[Tree, ...]:
    """The indices that an argument may be, or may have."""
    below = argument.below if isinstance(argument, Scripted) else None
    return (argument,) if below is None else items_of(below)


def _same_call(pattern: Apply, tree: Apply, indices: frozenset[str]) -> tuple[Tree, ...] | None:
    """The indices of an application where it is of the declared function."""
    if key_of(pattern.head) != key_of(tree.head) or len(pattern.arguments) != len(tree.arguments):
        return None
    found: list[Tree] = []
    for told, argument in zip(pattern.arguments, tree.arguments, strict=True):
        if key_of(told) in indices:
            found.append(argument)
            continue
        own, others = _places(argument), _places(told)
        bases = [key_of(x.base if isinstance(x, Scripted) else x) for x in (told, argument)]
        if bases[0] != bases[1] or len(own) != len(others):
            return None
        for place, other in zip(own, others, strict=True):
            if key_of(other) in indices:
                found.append(place)
            elif key_of(place) != key_of(other):
                return None
    return tuple(found)


def _summands(tree: Tree) -> list[Tree]:
    return [part for _, part in tree.terms] if isinstance(tree, Total) else [tree]


def _is_power(tree: Tree) -> bool:
    above = tree.above if isinstance(tree, Scripted) else None
    return above is not None and not isinstance(above, (Symbol, Fence, Scripted))


def _matched(key: str, tree: Scripted, below: tuple[Tree, ...], above: tuple[Tree, ...]) -> tuple[Tree, ...] | None:
    """The indices of a name that a key of a family fits."""
    head, _, scripts = key.partition("_") if "_" in key else (key.partition("^")[0], "", "")
    low, _, high = scripts.partition("^") if scripts else ("", "", key.partition("^")[2])
    if head != key_of(tree.base) + tree.primes:
        return None
    found: list[Tree] = []
    for pattern, items in ((low, below), (high, above)):
        pieces = pattern.split(",") if pattern else []
        told = [(item, piece) for item in items for piece in _pieces(item, frozenset())]
        if len(pieces) != len(told):
            return None
        for piece, (item, own) in zip(pieces, told, strict=True):
            inside = item.items[0] if piece == f"({INDEX})" and isinstance(item, Fence) and item.items else item
            if piece in (INDEX, f"({INDEX})") and (inside is not item or piece == INDEX):
                found.append(inside)
            elif INDEX in piece:  # ``s_{t-1}``
                shifted = [part for part in _summands(item) if _piece(item, frozenset({key_of(part)})) == piece]
                if len(shifted) != 1:
                    return None
                found += shifted
            elif piece != own:
                return None
    return tuple(found)


_FAR = 10**6  # sizes are positive, and bounds of indices need not be


def _range(name: str, text: str) -> Range:
    first, _, last = text.partition("..")
    try:
        low, high = (as_size(f"{_FAR} + {bound}") - _FAR for bound in (first, last))
    except SymattnError:
        raise OperandError(f"{name}: a range is written as '1..n', not {text!r}") from None
    return Range(low, sympy.expand(high - low + 1))
