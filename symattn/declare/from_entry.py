"""NumPy for declared operations: from their entry formula on open grids of indices, or a given function."""

from __future__ import annotations

import builtins
import inspect
import textwrap
from collections.abc import Callable
from types import CodeType
from typing import Any

import sympy

from ..core.node import Tensor
from ..core.operation import NumPyText
from ..errors import OperandError
from ..scalars.formulas import Choice, Max, Min
from .signature import Formula, Signature, input_of, with_own_bounds


def function_code(name: str, function: Callable[..., Any]) -> NumPyText:
    """A call of a given function, whose source generated code carries along."""
    code = getattr(function, "__code__", None)
    try:
        source = textwrap.dedent(inspect.getsource(function)) if code is not None else ""
    except (OSError, TypeError):
        source = ""
    alone = code is not None and not code.co_freevars and not function.__defaults__ and not function.__kwdefaults__
    if not source.startswith("def ") or not alone or _foreign(function):
        raise OperandError(
            f"numpy= of operation {name!r} is a plain def in a file that uses nothing but its arguments, np and math: "
            "its source goes into generated code"
        )
    return lambda writer, node, *operands: writer.carried(function.__name__, source, operands)


def _foreign(function: Any) -> set[str]:
    """The names from around a function that its source would miss."""
    return (_names_used(function.__code__) & set(function.__globals__)) - {"np", "math", *dir(builtins)}


def _names_used(code: Any) -> set[str]:
    """The global names and attributes in a code object and in the functions inside it."""
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return {*code.co_names, *(name for part in inner for name in _names_used(part))}


def entry_code(signature: Signature, formula: Formula) -> NumPyText:
    """An expression that evaluates the entry formula at all indices at once."""

    def numpy(writer: Any, node: Tensor, *operands: str) -> str:
        return _Grid(writer, node, signature, formula, operands).write()

    return numpy


# How what is made of all terms is called in NumPy, and what it is of none.
_FOLDS: dict[Any, tuple[str, str]] = {sympy.Sum: ("sum", "0"), Max: ("max", "-np.inf"), Min: ("min", "np.inf")}


class _Grid:
    """One axis for each output axis, then one for each bound index; every array is read on these axes."""

    def __init__(self, writer: Any, node: Tensor, signature: Signature, formula: Formula, operands: Any) -> None:
        self.writer, self.node, self.signature = writer, node, signature
        self.out = len(signature.output)
        lead = node.rank - self.out
        aligned = [
            writer.align(x, text, lead + len(axes))
            for x, text, axes in zip(node.inputs, operands, signature.inputs, strict=True)
        ]
        dtypes = [f", {writer.dtype()}" if x.kind == "binary" else "" for x in node.inputs]
        self.operands = [writer.line(f"np.asarray({x}{dtype})") for x, dtype in zip(aligned, dtypes, strict=True)]
        self.places = tuple(sympy.Dummy(f"i{k}", integer=True, nonnegative=True) for k in range(self.out))
        self.value = with_own_bounds(node, formula(self.places, signature.cores(node.inputs)))
        folds = [p for p in sympy.preorder_traversal(self.value) if isinstance(p, (sympy.Sum, Max, Min))]
        self.axes = [*self.places, *dict.fromkeys(s for fold in folds for s, *_ in fold.limits)]
        self.letters = {s: writer.index_letter() for s in self.axes}
        self.counted = set(self.places)  # the indices that start from 0
        self.used: set[Any] = set()

    def write(self) -> str:
        core = self.node.shape[self.node.rank - self.out :]
        for place, size in zip(self.places, core, strict=True):
            self._grid(place, f"np.arange({self.writer.size(size)})")
        dtype = {"binary": "bool", "integer": "np.int64"}.get(self.node.kind, self.writer.dtype())
        text = f"np.asarray({self._value(self.value, where='')}, {dtype})"
        dropped = ", ".join("0" for _ in self.axes[self.out :])
        text = f"{text}[..., {dropped}]" if dropped and self._has_axes(self.value) else text
        loops = [
            f"{x}.shape[:{x}.ndim - {len(axes)}]" for x, axes in zip(self.operands, self.signature.inputs, strict=True)
        ]
        return f"np.broadcast_to({text}, np.broadcast_shapes({', '.join(loops)}) + {self.writer.shape(core)})"

    def _has_axes(self, value: Any) -> bool:
        """Whether its text is an array on the grid, not a plain number."""
        return any(self._input_of(part) is not None for part in value.atoms(sympy.Dummy)) or value.has(*self.axes)

    def _input_of(self, part: Any) -> int | None:
        """Which input a part of the formula reads."""
        return input_of(part, len(self.operands)) if isinstance(part, (sympy.Indexed, sympy.Dummy)) else None

    def _grid(self, symbol: Any, values: str) -> None:
        if symbol not in self.used:
            self.used.add(symbol)
            slots = [":" if axis == symbol else "None" for axis in self.axes]  # all grids have all axes
            spread = f"[{', '.join(slots)}]" if len(slots) > 1 else ""
            self.writer.lines.append(f"{self.letters[symbol]} = {values}{spread}")

    def _value(self, value: Any, where: str) -> str:
        """A formula as array code: sums, choices and reads first, the rest as a scalar expression of their texts.

        ``where`` names the mask of the entries that count; outside of it a read may leave its input.
        """
        texts: dict[Any, str] = {}
        replacement: dict[Any, Any] = {}
        for part in self._outermost(value):
            symbol = sympy.Dummy(f"part{len(texts)}", real=True)
            texts[symbol], replacement[part] = f"({self._part(part, where)})", symbol
        replaced = value.xreplace(replacement)
        grids = {s: f"{self.letters[s]}.astype({self.writer.dtype()})" for s in self.axes if replaced.has(s)}
        return str(self.writer._scalar_code(replaced, arrays=True, names={**grids, **texts}))

    def _outermost(self, value: Any) -> list[Any]:
        found: list[Any] = []
        walk = sympy.preorder_traversal(value)
        for part in walk:
            if self._input_of(part) is not None or isinstance(part, (*_FOLDS, Choice)):
                found.append(part)
                walk.skip()
        return list(dict.fromkeys(found))

    def _part(self, part: Any, where: str) -> str:
        if (k := self._input_of(part)) is not None:
            return self._read(k, part.indices if isinstance(part, sympy.Indexed) else (), where)
        if isinstance(part, Choice):
            condition, a, b = part.args
            chosen = self.writer.line(self._condition(condition, where))
            first = self._value(a, self._both(where, chosen))
            second = self._value(b, self._both(where, f"np.logical_not({chosen})"))
            return f"np.where({chosen}, {first}, {second})"
        return self._fold(part, where)

    def _both(self, where: str, mask: str) -> str:
        return self.writer.line(f"{where} & {mask}" if where else mask)

    def _condition(self, condition: Any, where: str) -> str:
        if condition in (sympy.true, sympy.false):
            return str(condition == sympy.true)
        if isinstance(condition, (sympy.And, sympy.Or)):
            sign = " & " if isinstance(condition, sympy.And) else " | "
            return sign.join(f"({self._condition(c, where)})" for c in condition.args)
        if isinstance(condition, sympy.Not):
            return f"np.logical_not({self._condition(condition.args[0], where)})"
        left, right = (self._value(side, where) for side in (condition.lhs, condition.rhs))
        return f"({left}) {condition.rel_op} ({right})"

    def _index(self, at: Any, where: str = "") -> str:
        """A whole number on the grid, as an index."""
        if isinstance(at, Choice):
            condition, a, b = at.args
            chosen = self._condition(condition, where)
            return f"np.where({chosen}, {self._index(a, where)}, {self._index(b, where)})"
        names = {s: self.letters[s] for s in self.axes if at.has(s)}
        if not names:
            return f"np.full({(1,) * len(self.axes)}, {self.writer.size(at)})"
        text = str(self.writer._scalar_code(at, arrays=True, names=names))
        return text if at.is_Symbol else f"np.asarray({text}).astype(int)"

    def _read(self, k: int, index: Any, where: str) -> str:
        array = self.operands[k]
        if not index:
            return f"{array}[..., {', '.join(['None'] * len(self.axes))}]" if self.axes else array
        shape = self.node.inputs[k].shape[-len(index) :]
        places = []
        for at, size in zip(index, shape, strict=True):
            text, top = self._index(at, where), self.writer.size(size)
            if where or at not in self.counted:
                text = self.writer.helper("inside", text, top, where or "True")
            places.append(text)
        return f"{array}[..., {', '.join(places)}]"

    def _fold(self, total: Any, where: str) -> str:
        masks, masked = [], set()
        for symbol, low, high in reversed(total.limits):  # the last limit is the outermost sum
            if low == 0:
                self.counted.add(symbol)
            depends = {s for s in self.axes if high.has(s) or low.has(s)}
            if not depends:
                self._grid(symbol, f"np.arange({self.writer.size(low)}, {self.writer.size(high + 1)})")
                continue
            top, letter = self._index(high), self.letters[symbol]
            bottom = self._index(low)
            self._grid(symbol, f"np.arange(int(np.min({bottom})), int(np.max({top})) + 1)")
            masks.append(self.writer.line(f"({letter} >= {bottom}) & ({letter} <= {top})"))
            where = self._both(where, masks[-1])
            masked |= {symbol, *depends}
        term = self._value(total.function, where)
        name, empty = _FOLDS[type(total)]
        if masks:
            term = f"np.where({' & '.join(masks)}, {term}, {empty})"
        for symbol, low, high in total.limits:
            if symbol in masked or total.function.has(symbol):
                axis = self.axes.index(symbol) - len(self.axes)
                term = f"np.asarray({term}).{name}(axis={axis}, keepdims=True)"
            elif isinstance(total, sympy.Sum):  # every term is the same
                term = f"({term}) * ({self.writer.size(high - low + 1)})"
        return term
