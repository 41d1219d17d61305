"""Writes generated code in a dialect: the NumPy that records say, call by call as another array library spells it."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, ClassVar

from ...core.node import Tensor
from ...errors import NoRuleError
from ...recurrence.body import Step
from .dialects import DIALECTS, Dialect, Number, called
from .source import Writer
from .spelling import Spelling


class Respelled(ast.NodeTransformer):
    """Code in NumPy as code in a dialect; ``numbers`` are names of Python numbers."""

    def __init__(self, dialect: Dialect, numbers: Collection[str] = ()) -> None:
        self.dialect, self.numbers = dialect, set(numbers)

    def text(self, code: str) -> str:
        """A text of statements."""
        return ast.unparse(ast.fix_missing_locations(self.visit(ast.parse(code))))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """What is made in a function is on the device of its first argument."""
        self.generic_visit(node)
        names = {x.id for x in ast.walk(node) if isinstance(x, ast.Name)}
        stored = {x.id for x in ast.walk(node) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
        if "device" in names - stored and node.args.args:
            read = ast.parse(f"device = {node.args.args[0].arg}.device").body
            node.body[ast.get_docstring(node) is not None : 0] = read
        return node

    def visit_With(self, node: ast.With) -> Any:
        """Floating-point warnings are NumPy's."""
        if all(ast.unparse(item.context_expr).startswith("np.errstate(") for item in node.items):
            return [x for statement in node.body for x in _listed(self.visit(statement))]
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        name = _attribute(node)
        if name is None:
            return self.generic_visit(node)
        if name in self.dialect.names:
            return _parsed(self.dialect.names[name])
        raise self._unknown(name)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = _attribute(node.func)
        method = node.func.attr if name is None and isinstance(node.func, ast.Attribute) else None
        spelled = self.dialect.calls.get(name or "") if name else self.dialect.methods.get(method or "")
        if name and spelled is None and self.dialect.same is not None:
            spelled = called(self.dialect.same(name))
        if name and spelled is None:
            raise self._unknown(name)
        if spelled is None or (isinstance(node.func, ast.Attribute) and _root(node.func) in self.dialect.imports):
            return self.generic_visit(node)
        given = [self._argument(x) for x in node.args]
        more = {x.arg: self._argument(x.value) for x in node.keywords if x.arg is not None}
        if method and isinstance(node.func, ast.Attribute):
            given.insert(0, f"({self._argument(node.func.value)})")
        try:
            return _parsed(spelled(*given, **more))
        except TypeError:
            raise self._unknown(ast.unparse(node)) from None

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """``np.s_[...]`` is an index by itself; where slices cannot run backwards a helper reads them."""
        if _attribute(node.value) == "s_":
            return self._place(node.slice)
        self.generic_visit(node)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        backwards = any(isinstance(x, ast.Slice) and isinstance(x.step, ast.UnaryOp) for x in items)
        if backwards and not self.dialect.runs_backwards:
            return ast.Call(ast.Name("read", ast.Load()), [node.value, self._place(node.slice)], [])
        return node

    def _place(self, index: ast.expr) -> ast.expr:
        items = index.elts if isinstance(index, ast.Tuple) else [index]
        return ast.Tuple([_slice(x) if isinstance(x, ast.Slice) else self.visit(x) for x in items], ast.Load())

    def _argument(self, node: ast.expr) -> str:
        is_number = self._is_number(node)
        text = ast.unparse(self.visit(node))
        return Number(text) if is_number else text

    def _is_number(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=value):
                return isinstance(value, (int, float)) and not isinstance(value, bool)
            case ast.UnaryOp(operand=x):
                return self._is_number(x)
            case ast.BinOp(left=a, right=b):
                return self._is_number(a) and self._is_number(b)
            case ast.Name(id=name):
                return name in self.numbers
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math"))) | ast.Attribute(value=ast.Name(id="math")):
                return True
            case ast.Call(func=ast.Attribute(attr="item", value=x)):
                return self._is_number(x)
            case ast.Call(func=ast.Name(id="max" | "min" | "abs" | "float" | "int"), args=given):
                return all(map(self._is_number, given))
            case ast.Call(args=given) if _attribute(node.func) is not None and _attribute(node.func) != "asarray":
                return bool(given) and all(map(self._is_number, given))
        return isinstance(node, ast.Attribute) and _attribute(node) in ("inf", "pi", "e", "nan")

    def _unknown(self, call: str) -> NoRuleError:
        return NoRuleError(
            f"{self.dialect.title} has no spelling for np.{call}: leave numpy= of the operation out, which is then "
            "made from its entry formula, or write it by other calls"
        )


def _attribute(node: ast.expr) -> str | None:
    """What is taken from ``np``: the name of a call or a constant."""
    if isinstance(node, ast.Attribute) and _root(node) == "np":
        return ast.unparse(node).removeprefix("np.")
    return "s_" if isinstance(node, ast.Attribute) and node.attr == "s_" else None


def _listed(made: Any) -> list[Any]:
    return made if isinstance(made, list) else [made]


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _slice(node: ast.Slice) -> ast.expr:
    parts = (part or ast.Constant(None) for part in (node.lower, node.upper, node.step))
    return ast.Call(ast.Name("slice", ast.Load()), list(parts), [])


class Elsewhere(Writer):
    """The source under construction in a dialect."""

    dialect: ClassVar[Dialect]

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.array_symbols = {s for s in self.symbols if not s.is_integer}

    def operand(self, node: Tensor, k: int) -> str:
        """An input as text; a number stays one only between operators."""
        text, x = super().operand(node, k), node.inputs[k]
        return self.array(x, text) if self.is_number(x) and not node.op.broadcasts else text

    def spelled(self, lines: list[str]) -> list[str]:
        respelled = Respelled(self.dialect, {name for s, name in self.symbols.items() if s.is_integer})
        made = [line if line.startswith("#") else respelled.text(line) for line in lines]
        self.needs_device = any("device" in _names(line) for line in made if not line.startswith("#"))
        return made

    def _preparation(self) -> list[str]:
        """The docstring, the sizes, the device and the type of arrays, and scalars as such arrays."""
        scalars = [self.symbols[s] for s in self.used if s in self.array_symbols]
        self.needs_dtype |= bool(scalars)
        lines = super()._preparation()
        made = [f"{name} = {self.dialect.calls['asarray'](name, 'dtype')}" for name in scalars]
        if self.needs_device or any("device" in _names(line) for line in made):
            first = next((self.names[a] for a in self.takes.tensors), None)
            lines.insert(len(lines) - self.needs_dtype, f"device = {f'{first}.device' if first else 'None'}")
        return [*lines, *made]

    def dtype_read(self) -> str:
        arrays = [self.names[a] for a in self.takes.tensors if a.kind == "real"]
        if not arrays:
            return f"dtype = {self.dialect.floating}"
        if len(arrays) == 1:
            return f"dtype = {arrays[0]}.dtype"
        return Respelled(self.dialect).text(f"dtype = np.result_type({', '.join(arrays)})")

    def needed(self, text: str) -> str:
        """The imports and the helpers that a text needs."""
        given = [Respelled(self.dialect).text(source) for source in self._carried_sources()]
        carried = self.dialect.helpers
        wanted = _names("\n".join([text, *given])) & carried.keys()
        known, waiting = set[str](), wanted
        while waiting:
            known |= waiting
            called = {x for name in waiting for x in _names(_respelled(self.dialect.backend, name))}
            waiting = (called & carried.keys()) - known
        parts = [_respelled(self.dialect.backend, name) for name in carried if name in known]
        parts = [part.strip() + "\n" for part in (*parts, *given)]
        met = _names("\n".join([text, *parts]))
        imports = "".join(f"{line}\n" for name, line in self.dialect.imports.items() if name in met)
        return "\n\n".join([imports, *parts, ""])


def _names(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(textwrap.dedent(text))) if isinstance(node, ast.Name)}


@cache
def _respelled(backend: str, name: str) -> str:
    dialect = DIALECTS[backend]
    return Respelled(dialect).text(dialect.helpers.source(name))


# --- recurrences ---


def _axes(rank: int) -> str:
    return ", :" * rank


class InTorch(Elsewhere):
    """PyTorch, in which a recurrence is a loop."""

    dialect = DIALECTS["torch"]
    reserved = frozenset({*Spelling.reserved, *dialect.reserved})

    @staticmethod
    def loop_source(step: Step, names: Sequence[str], keywords: Sequence[str], own: str) -> str:
        states, reads, fixed = _roles(step, names)
        at = [f"{name}[..., t{_axes(x.rank)}]" for name, x in zip(reads, step.reads, strict=True)]
        passed = ", ".join([*states, *at, *fixed, *(f"{k}={k}" for k in keywords)])
        made = [f"out{n}" for n in range(len(step.outputs))]
        now = [f"now{n}" for n in range(len(step.outputs))]
        last = [_broadcast("torch", s, "loops", x.rank) for s, x in zip(states, step.states, strict=True)]
        every = [_broadcast("torch", name, "loops", x.rank) for name, x in zip(now, step.outputs, strict=True)]
        stacked = [f"torch.stack({name}, -{x.rank + 1})" for name, x in zip(made, step.outputs, strict=True)]
        lines = [
            *_head(step, names, keywords, own, "torch"),
            *(f"    {name} = []" for name in made),
            "    for t in range(steps):",
            f"        {_tuple([*states, *now])} = step({passed})",
            *(f"        {name}.append({value})" for name, value in zip(made, every, strict=True)),
        ]
        return "\n".join([*lines, f"    return {_tuple([*last, *stacked])}", ""])


class InJax(Elsewhere):
    """JAX, in which a recurrence is ``jax.lax.scan``."""

    dialect = DIALECTS["jax"]
    reserved = frozenset({*Spelling.reserved, *dialect.reserved})

    @staticmethod
    def loop_source(step: Step, names: Sequence[str], keywords: Sequence[str], own: str) -> str:
        states, reads, fixed = _roles(step, names)
        passed = ", ".join([*states, *reads, *fixed, *(f"{k}={k}" for k in keywords)])
        now = [f"now{n}" for n in range(len(step.outputs))]
        made = [f"out{n}" for n in range(len(step.outputs))]
        next_ = [f"new{n}" for n in range(len(states))]
        kept = [f"jnp.broadcast_to({b}, {a}.shape).astype({a}.dtype)" for a, b in zip(states, next_, strict=True)]
        first = [_broadcast("jnp", s, "loops", x.rank) for s, x in zip(states, step.states, strict=True)]
        xs = [f"jnp.moveaxis({n}, -{x.rank + 1}, 0)" for n, x in zip(reads, step.reads, strict=True)]
        lines = [
            *_head(step, names, keywords, own, "jnp"),
            "",
            "    def body(states, reads):",
            *([f"        {_tuple(states)} = states"] if states else []),
            *([f"        {_tuple(reads)} = reads"] if reads else []),
            f"        {_tuple([*next_, *now])} = step({passed})",
            f"        return ({_tuple(kept)}), ({_tuple(now)})",
            "",
            f"    states, made = jax.lax.scan(body, ({_tuple(first)}), ({_tuple(xs)}), length=steps)",
            *([f"    {_tuple(made)} = made"] if made else []),
        ]
        every = [
            _broadcast("jnp", f"jnp.moveaxis({name}, 0, -{x.rank + 1})", "loops", x.rank + 1, name)
            for name, x in zip(made, step.outputs, strict=True)
        ]
        return "\n".join([*lines, f"    return {_tuple(['*states', *every])}", ""])


def _roles(step: Step, names: Sequence[str]) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    a, b = len(step.states), len(step.states) + len(step.reads)
    return names[:a], names[a:b], names[b:]


def _tuple(parts: Sequence[str]) -> str:
    return ", ".join(parts) + "," * (len(parts) == 1)


def _broadcast(module: str, text: str, loops: str, rank: int, of: str = "") -> str:
    """An array over all loop axes."""
    name = of or text
    if not of:
        return f"{module}.broadcast_to({text}, (*{loops}, *{name}.shape[{name}.ndim - {rank} :]))"
    core = f"*({text}).shape[{name}.ndim - {rank} :]"
    return f"{module}.broadcast_to({text}, (*{loops}, {core}))"


def _head(step: Step, names: Sequence[str], keywords: Sequence[str], own: str, module: str) -> list[str]:
    """The first lines of a loop: its step, the first states in one type with the rest, and the loop axes."""
    reads = range(len(step.states), len(step.states) + len(step.reads))
    ranks = [x.rank + (n in reads) for n, x in enumerate(step.leaves)]
    loops = ", ".join(f"{name}.shape[: {name}.ndim - {rank}]" for name, rank in zip(names, ranks, strict=True))
    real = [name for name, x in zip(names, step.leaves, strict=True) if x.kind == "real"]
    dtype = f"result_type({', '.join(real)})" if module == "torch" else f"jnp.result_type({', '.join(real)})"
    cast = "to" if module == "torch" else "astype"
    starts = [n for n, x in zip(names, step.states, strict=False) if x.kind == "real"]
    return [
        f"def loop({', '.join(['steps', *names, *(['*', *keywords] if keywords else [])])}):",
        '    """The last states and all outputs of a recurrence; loop axes may stand in front."""',
        textwrap.indent(own.rstrip(), "    "),
        "",
        *([f"    dtype = {dtype}"] if starts else []),
        *(f"    {name} = {name}.{cast}(dtype)" for name in starts),
        f"    loops = {module}.broadcast_shapes({loops})",
    ]


WRITERS: dict[str, type[Elsewhere]] = {"torch": InTorch, "jax": InJax}
