"""NumPy for declared operations: from their entry formula on open grids of indices, or a given function."""

from __future__ import annotations

import builtins
import inspect
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import sympy

from ..errors import OperandError
from ..ops.formulas import Choice, Max, Min
from ..tensor import Tensor

if TYPE_CHECKING:
    from ..signature import Formula, Signature


def function_code(name: str, function: Callable[..., Any]) -> Callable[..., str]:
    """A call of a given function, whose source generated code carries along."""
    code = getattr(function, "__code__", None)
    try:
        source = textwrap.dedent(inspect.getsource(function)) if code is not None else ""
    except (OSError, TypeError):
        source = ""
    foreign = set(code.co_names) - {"np", "math", *dir(builtins)} if code is not None else set()
    globals_used = {n for n in foreign if n in getattr(function, "__globals__", {})}
    if not source.startswith("def ") or code is None or code.co_freevars or globals_used:
        raise OperandError(
            f"numpy= of operation {name!r} is a plain def in a file that uses nothing but its arguments, np and math: "
            "its source goes into generated code"
        )
    return lambda writer, node, *operands: writer.carried(function.__name__, source, operands)


def entry_code(signature: Signature, formula: Formula) -> Callable[..., str]:
    """An expression that evaluates the entry formula at all indices at once."""

    def numpy(writer: Any, node: Tensor, *operands: str) -> str:
        return _Grid(writer, node, signature, formula, operands).write()

    return numpy


class _Grid:
    """One axis for each output axis, then one for each bound index; every array is read on these axes."""

    def __init__(self, writer: Any, node: Tensor, signature: Signature, formula: Formula, operands: Any) -> None:
        from ..signature import bound_names  # which declares operations in terms of this file

        self.writer, self.node, self.operands = writer, node, operands
        self.out = len(signature.output)
        self.places = tuple(sympy.Dummy(f"i{k}", integer=True, nonnegative=True) for k in range(self.out))
        value = formula(self.places, signature.cores(node.inputs))
        names = bound_names(node, value)
        self.value = value.xreplace(names)
        self.axes = [*self.places, *names.values()]
        self.letters = {s: writer.index_letter() for s in self.axes}
        self.used: set[Any] = set()

    def write(self) -> str:
        core = self.node.shape[self.node.rank - self.out :]
        for place, size in zip(self.places, core, strict=True):
            self._grid(place, f"np.arange({self.writer.size(size)})")
        text = self._value(self.value, guarded=False)
        dropped = ", ".join("0" for _ in self.axes[self.out :])
        text = f"np.asarray({text}, {self.writer.dtype()})" if not self._reads(self.value) else f"({text})"
        text = f"{text}[..., {dropped}]" if dropped else text
        return self.writer.helper("spread", text, self.writer.shape(core)) if self.out else text

    def _grid(self, symbol: Any, values: str) -> None:
        if symbol not in self.used:
            self.used.add(symbol)
            slots = [":" if axis == symbol else "None" for axis in self.axes]  # all grids have all axes
            spread = f"[{', '.join(slots)}]" if len(slots) > 1 else ""
            self.writer.lines.append(f"{self.letters[symbol]} = {values}{spread}")

    def _reads(self, value: Any) -> bool:
        return bool(value.has(sympy.Indexed)) or any(s.name.startswith("input") for s in value.free_symbols)

    def _value(self, value: Any, guarded: bool) -> str:
        """A formula as array code: sums, choices and reads first, the rest as a scalar expression of their texts."""
        texts: dict[Any, str] = {}

        def keep(part: Any, text: str) -> Any:
            symbol = sympy.Dummy(f"part{len(texts)}", real=True)
            texts[symbol] = f"({text})"
            return symbol

        outer = self._outermost(value)
        replaced = value.xreplace({part: keep(part, self._part(part, guarded)) for part in outer})
        names = {s: f"{self.letters[s]}.astype({self.writer.dtype()})" for s in self.axes if replaced.has(s)}
        for s in replaced.free_symbols:
            if s not in texts and s.name.startswith("input"):
                names[s] = self._read(int(s.name[5:]), (), guarded)
        return str(self.writer._scalar_code(replaced, arrays=True, names={**names, **texts}))

    def _outermost(self, value: Any) -> list[Any]:
        found: list[Any] = []
        walk = sympy.preorder_traversal(value)
        for part in walk:
            if isinstance(part, (sympy.Sum, Max, Min, Choice, sympy.Indexed)):
                found.append(part)
                walk.skip()
        return list(dict.fromkeys(found))

    def _part(self, part: Any, guarded: bool) -> str:
        if isinstance(part, sympy.Indexed):
            return self._read(int(str(part.base)[5:]), part.indices, guarded)
        if isinstance(part, Choice):
            condition, a, b = part.args
            chosen = [self._value(x, guarded=True) for x in (a, b)]
            return f"np.where({self._condition(condition, guarded)}, {chosen[0]}, {chosen[1]})"
        return self._fold(part, guarded)

    def _condition(self, condition: Any, guarded: bool) -> str:
        if condition in (sympy.true, sympy.false):
            return str(condition == sympy.true)
        if isinstance(condition, (sympy.And, sympy.Or)):
            sign = " & " if isinstance(condition, sympy.And) else " | "
            return sign.join(f"({self._condition(c, guarded)})" for c in condition.args)
        if isinstance(condition, sympy.Not):
            return f"~({self._condition(condition.args[0], guarded)})"
        signs = {"==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
        left, right = (self._value(side, guarded) for side in (condition.lhs, condition.rhs))
        return f"({left}) {signs[condition.rel_op]} ({right})"

    def _index(self, at: Any) -> str:
        names = {s: self.letters[s] for s in self.axes if at.has(s)}
        text = self.writer._scalar_code(at, arrays=False, names=names) if not at.has(sympy.floor, sympy.Mod) else (
            f"({self.writer._scalar_code(at, arrays=True, names=names)}).astype(int)"
        )
        return text if names else f"np.full({(1,) * len(self.axes)}, {text})"

    def _read(self, k: int, index: Any, guarded: bool) -> str:
        array = f"np.asarray({self.operands[k]})"
        if not index:
            return f"{array}[..., {', '.join(['None'] * len(self.axes))}]" if self.axes else array
        if not self.axes:
            return f"{array}[..., {', '.join(self._scalar_index(at) for at in index)}]"
        shape = self.node.inputs[k].shape[-len(index) :]
        places = [self._index(at) for at in index]
        if guarded:  # the other side of a choice may read outside
            places = [f"np.clip({p}, 0, {self.writer.size(s)} - 1)" for p, s in zip(places, shape, strict=True)]
        return f"{array}[..., {', '.join(places)}]"

    def _scalar_index(self, at: Any) -> str:
        return str(self.writer.size(at))

    def _fold(self, total: Any, guarded: bool) -> str:
        masks = []
        for symbol, low, high in total.limits:
            fixed = not any(high.has(s) or low.has(s) for s in self.axes)
            if fixed:
                self._grid(symbol, f"np.arange({self.writer.size(low)}, {self.writer.size(high + 1)})")
            else:
                top = self._index(high)
                self._grid(symbol, f"np.arange(int(np.max({top})) + 1)")
                letter = self.letters[symbol]
                masks.append(f"({letter} >= ({self._index(low)})) & ({letter} <= ({top}))")
        term = self._value(total.function, guarded or bool(masks))
        empty = {sympy.Sum: "0", Max: "-np.inf", Min: "np.inf"}[type(total)]
        if masks:
            term = f"np.where({' & '.join(f'({m})' for m in masks)}, {term}, {empty})"
        name = {sympy.Sum: "sum", Max: "max", Min: "min"}[type(total)]
        for symbol, low, high in total.limits:
            axis = self.axes.index(symbol) - len(self.axes)
            missing = not masks and not total.function.has(symbol)
            if missing and isinstance(total, sympy.Sum):
                term = f"({term}) * ({self.writer.size(high - low + 1)})"
            elif not missing:
                term = f"np.asarray({term}).{name}(axis={axis}, keepdims=True)"
        return term

