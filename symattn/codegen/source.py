"""Writes the NumPy source of a function: named intermediates as lines, single uses in place.

Records say how each operation is spelled; this file decides what gets a line, and supplies what the spelling of an
operation may need: sizes, dtype, helpers, the alignment of operands under loop axes. Operands come between
parentheses and Python's own unparser drops the needless ones, so precedence is never worked out by hand.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy

from ..core.exact import ARGUMENTS, INDICES
from ..core.naming import in_python, new_name
from ..core.node import Tensor, topological
from ..core.sizes import show_shape
from ..errors import NoRuleError
from ..ops.contraction import matmul_op
from ..ops.inverse import inv_op
from ..ops.leaves import computed, constant, cotangent_op, is_eye, operands, variable
from .contraction import einsum_code, matmul_code
from .graph import Graph
from .helpers import HELPERS, text_of
from .loops import loop_call
from .plan import Plan
from .scalars import ScalarCode

_RESERVED = {"np", "math", "special", "dtype", *HELPERS, *keyword.kwlist, *dir(builtins)}
_TOLD = 60  # the height of a graph that is still printed for a comment
_INLINE = 64  # characters of an unnamed expression that may still stand inside another


class Writer:
    """The source under construction; records call it back as ``code``."""

    def __init__(self, name: str, plan: Plan, graph: Graph, as_tuple: bool) -> None:
        self.name, self.plan, self.graph, self.as_tuple = name, plan, graph, as_tuple
        self.outputs = graph.outputs
        self.order = computed(self.outputs)
        self.lines: list[str] = []
        self.helpers: set[str] = set()
        self.given: dict[str, str] = {}
        self.called: dict[Any, str] = {}  # loops, and the line that holds all values of one
        self.loop_sources: dict[Any, tuple[str, dict[str, sympy.Symbol]]] = {}  # by their bodies
        self.used: dict[sympy.Symbol, None] = {}
        self.needs_dtype = False
        self.taken = set(_RESERVED)
        self.symbols = {s: self._identifier(s.name) for s in plan.symbols}
        self.names = self._names()
        self.text: dict[Tensor, str] = {}
        self.below, self.read = self._arguments_below(None), self._arguments_below(operands)
        self.whole, self.writing_whole = self._without_real_numbers(), False
        self.loops = self._with_loops()
        self.loop_shapes: dict[int, str] = {}
        self.uses = Counter(x for node in self.order for x in operands(node))
        self.solved = {node.inputs[0] for node in self.order if node.op is matmul_op and self._is_solved(node)}

    # --- names ---

    def _identifier(self, name: str) -> str:
        return new_name(in_python(name).replace("'", "_prime"), self.taken)

    def _names(self) -> dict[Tensor, str]:
        names = {a: self._identifier(a.params["name"]) for a in self.plan.tensors}
        for node, name in self.graph.names.items():
            names[node] = self._identifier(name)
        return names

    def _with_loops(self) -> set[Tensor]:
        """The nodes that may carry loop axes: those that depend on an argument, and gradients of what does."""
        looped: set[Tensor] = set()
        for node in self.order:
            widened = node.op is cotangent_op and self._loops_of_gradient(node) is not None
            if widened or node.op is variable or any(x in looped for x in operands(node)):
                looped.add(node)
        return looped

    def _arguments_below(self, inputs: Callable[[Tensor], Sequence[Tensor]] | None) -> dict[Tensor, int]:
        """For each node the arguments that it is made from, a bit of a number each; a last bit for what is missing."""
        bits = {a: 1 << k for k, a in enumerate(self.plan.tensors)}
        below: dict[Tensor, int] = {}
        for node in topological(self.outputs, inputs=inputs):
            below[node] = bits.get(node, 1 << len(bits)) if node.op is variable else 0
            for x in node.inputs if inputs is None else inputs(node):
                below[node] |= below[x]
        return below

    def _without_real_numbers(self) -> set[Tensor]:
        """What integer tensors and constants alone make, in float64 whatever the type of the real numbers is."""
        real: set[Tensor] = set()
        whole: set[Tensor] = set()
        for node in self.order:
            inputs = operands(node)
            is_number = node.kind == "real" if node.op is variable else node.op is cotangent_op
            of_constants = not self.below[node] and any(x.rank for x in inputs)
            if is_number or any(not s.is_integer for s in node.own_symbols) or any(x in real for x in inputs):
                real.add(node)
            elif of_constants or node.kind == "integer" or any(x in whole for x in inputs):
                whole.add(node)
        for node in reversed(self.order):  # and the constants that these are made with
            if node in whole:
                whole |= {x for x in operands(node) if x not in real and x.op is not variable}
        return whole

    def _is_solved(self, product: Tensor) -> bool:
        """Whether the left factor is an inverse that serves this product alone, which is then solved for."""
        left = product.inputs[0]
        kept = self.uses[left] > 1 or left in self.names or left in self.outputs
        return left.op is inv_op and product.params["core"][0] == 2 and not kept

    # --- writing ---

    def write(self) -> tuple[str, str]:
        """The imports and the helpers that the function needs, and the function."""
        for node in self.order:
            self._write_node(node)
        returned = [self._returned(k, y) for k, y in enumerate(self.outputs)]
        result = "(" + ", ".join(returned) + ",)" if len(returned) == 1 else ", ".join(returned)
        self.lines.append(f"return {result if self.as_tuple else returned[0]}")
        body = [*self._preparation(), *self.lines]
        text = f"def {self.name}({self._signature()}):\n" + textwrap.indent("\n".join(body), "    ") + "\n"
        helpers = [f.strip() + "\n" for f in (*text_of(self.helpers), *self._carried_sources())]
        return "\n\n".join([self._imports("\n".join([*helpers, text])), *helpers, ""]), text

    def _carried_sources(self) -> list[str]:
        return [re.sub(r"\Adef \w+", f"def {name}", source) for source, name in self.given.items()]

    def _write_node(self, node: Tensor) -> None:
        if node in self.names and node.op is variable:
            self.text[node] = self.names[node]
            return
        if node in self.solved:
            return
        written = self.graph.forms.get(node)
        if written is not None:
            self.lines.append(f"# {self._said(node, written)}, in a form that is equal and no less accurate")
        self.writing_whole = node in self.whole
        if node.op is cotangent_op:
            expression = self._gradient(node)
        else:
            expression = node.op.numpy(self, node, *(self._operand(node, k) for k in range(len(node.inputs))))
        if self._is_number(node) and node.op is not constant and "(" in expression:
            expression = f"np.asarray({expression}).item()"  # a Python number, which leaves the dtype of arrays alone
        elif self._compares_numbers(node):
            expression = f"np.bool_({expression})"  # of which ~ is the complement
        if node in self.names:
            self._assign(node, self.names[node], expression)
        elif self._needs_line(node, expression):
            self._assign(node, self._identifier("y" if node in self.outputs else "t"), expression)
        else:
            self.text[node] = expression

    def _said(self, node: Tensor, written: Tensor) -> str:
        """What a form stands for: as it is written, or by its name where it stands on much, which a text walks over."""
        if written.height < _TOLD:
            return written.brief()
        return f"{self.names.get(node, written.op.name)}{show_shape(written.shape)}"

    def _needs_line(self, node: Tensor, expression: str) -> bool:
        if node.op is constant or expression.isidentifier():
            return False
        if node.op is cotangent_op and self.uses[node] + (node in self.outputs) == 1:
            return False  # its value has a line already
        if node in self.outputs or len(expression) > _INLINE:
            return True
        cheap = node.op.kind == "inputs" and expression.strip("()").partition(")")[0].isidentifier()
        return self.uses[node] > 1 and not cheap

    def _assign(self, node: Tensor, name: str, expression: str) -> None:
        if node not in self.names or name != expression:
            self.lines.append(ast.unparse(ast.parse(f"{name} = {expression}")))
        self.text[node] = name

    def _operand(self, node: Tensor, k: int) -> str:
        """An input as text, of the type that it is used in."""
        x = node.inputs[k]
        text = self.text.get(x, "")
        if node.op.kind == "inputs":  # what moves entries needs an array
            text = self.array(x, text)
            return self._typed(node, x, text) if x.kind == node.kind else text
        return text if k in node.op.masks or k in node.op.places else self._typed(node, x, text)

    def _typed(self, node: Tensor, x: Tensor, text: str) -> str:
        """A mask or an integer becomes a number where it is used as one; what integers make takes the common type."""
        if node.kind == "binary" or self._is_number(x):
            return text
        number = x.kind == "binary" or (x in self.whole and node not in self.whole)
        number |= x.kind == "integer" and node.kind == "real" and not node.op.stays_whole
        return f"({text}).astype({self.dtype()})" if number else text

    def _returned(self, k: int, y: Tensor) -> str:
        text = self.text[y]
        self.writing_whole = False
        if y.op is constant or (y.kind == "binary" and self.graph.numeric[k]) or (y in self.whole and y.kind == "real"):
            text = f"np.asarray({text}, {self.dtype()})"
        beyond = self._loops_beyond(y)
        if beyond:
            loops = self._loop_shape(self.read[y] | beyond)
            core = f" + {self.shape(y.shape)}" if y.rank else ""
            text = f"np.broadcast_to({text}, {loops}{core})"
        return ast.unparse(ast.parse(text))

    def _loops_beyond(self, y: Tensor) -> int:
        """The arguments whose loop axes an output has without reading them: those that no output reads.

        An output that reads no argument, such as a second derivative that is constant, has those of all. A gradient
        has its own, as it was summed; where one was differentiated again, all arguments loop alike.
        """
        if self.graph.gradients and not self.graph.nested and not self.graph.is_free_of_gradients(y):
            return 0
        every = (1 << len(self.plan.tensors)) - 1
        read = 0
        for other in self.outputs if self.read[y] else ():
            read |= self.read[other]
        return every & ~read

    def _gradient(self, node: Tensor) -> str:
        """A gradient over all loop axes of its outputs, summed over those that its variable does not have."""
        body, of, pairs = node.inputs[0], node.inputs[1], node.inputs[2:]
        loops, text = self._loops_of_gradient(node), self._operand(node, 0)
        if body.kind != "real" or body in self.whole or self._is_number(body):
            text = f"np.asarray({text}, {self.dtype()})"
        if loops is None:
            return text
        (full, own), text = loops, self.line(text)
        core = f" + {text}.shape[-{node.rank}:]" if node.rank else ""
        given = sum(1 << k for k, a in enumerate(self.plan.tensors) if a in pairs[1::2])
        if not given & self.read[body]:  # no cotangent brings the loop axes in
            text = f"np.broadcast_to({text}, {self._loop_shape(full)}{core})"
        if full == own:
            return text
        whole = of.op is variable and node.rank == of.rank
        return self.helper("sum_to", text, f"{self.names[of]}.shape" if whole else self._loop_shape(own) + core)

    def _loops_of_gradient(self, node: Tensor) -> tuple[int, int] | None:
        """The arguments whose loop axes its outputs and its variable have; None if there are none or one is missing."""
        of, pairs = node.inputs[1], node.inputs[2:]
        full, own = 0, self.below[of]
        for y in pairs[::2]:
            full |= self.below[y]
        known = pairs and full | own and not (full | own) >> len(self.plan.tensors)
        return (full, own) if known else None

    def _loop_shape(self, below: int) -> str:
        """The loop axes of what is made from these arguments; a line of its own where that is long."""
        if below not in self.loop_shapes:
            arguments = [a for k, a in enumerate(self.plan.tensors) if below >> k & 1]
            loops = [f"{self.names[a]}.shape" + (f"[:-{a.rank}]" if a.rank else "") for a in arguments]
            text = "()" if not loops else loops[0] if len(loops) == 1 else f"np.broadcast_shapes({', '.join(loops)})"
            if len(text) > _INLINE:
                name = self._identifier("loops")
                self.lines.append(f"{name} = {text}")
                text = name
            self.loop_shapes[below] = text
        return self.loop_shapes[below]

    def _signature(self) -> str:
        positional = [self.names[a] if isinstance(a, Tensor) else self.symbols[a] for a in self.plan.arguments]
        keywords = [self.symbols[s] for s in self.keywords()]
        return ", ".join([*positional, *(["*", *keywords] if keywords else [])])

    def keywords(self) -> list[sympy.Symbol]:
        """The keywords that the code needs, once it is written."""
        return [s for s in self.plan.keywords if s in self.used]

    def _preparation(self) -> list[str]:
        """The docstring, the sizes that are used, and the dtype if constants need one."""
        shapes = [f"{self.names[a]}{show_shape(a.shape)}" for a in self.plan.tensors]
        doc = f"{', '.join(shapes) or 'no arrays'}; loop axes may stand in front."
        lines = textwrap.wrap(f'"""{doc}"""', 100)
        for symbol, (array, axis) in self.plan.source.items():
            if symbol in self.used:
                lines.append(f"{self.symbols[symbol]} = {self.names[array]}.shape[{axis}]")
        if self.needs_dtype:
            arrays = [self.names[a] for a in self.plan.tensors if a.kind == "real"]
            arrays += [name for s, name in self.symbols.items() if s in self.used and not s.is_integer]
            lines.append(f"dtype = np.result_type({', '.join(arrays)})" if arrays else "dtype = np.dtype(np.float64)")
        return lines

    def _imports(self, code: str) -> str:
        lines = ["import math\n"] if "math." in code else []
        lines.append("import numpy as np")
        if "special." in code:
            lines.append("from scipy import special")
        return "\n".join(lines) + "\n"

    # --- what records ask for ---

    def helper(self, name: str, *arguments: str) -> str:
        """A call of a helper, which the source then carries along."""
        self.helpers.add(name)
        return f"{name}({', '.join(a for a in arguments if a)})"

    def of_rows(self, name: str, node: Tensor, *operands: str) -> str:
        """A call of a helper that works along the axes of a node."""
        return self.helper(name, *operands, *self.row_options(node))

    def row_options(self, node: Tensor) -> list[str]:
        """The keywords of a helper for rows: the axes, of which the last is the default, and whether they stay."""
        axes = node.params.get("axes", (-1,))
        axis = [] if axes == (-1,) else [f"axis={axes[0] if len(axes) == 1 else axes}"]
        return axis + ["keepdims=True"] * node.params.get("keepdims", False)

    def carried(self, name: str, source: str, arguments: Sequence[str]) -> str:
        """A call of a function that somebody gave, whose source is carried along under a name of its own."""
        if source not in self.given:
            self.given[source] = self._identifier(name)
        return f"{self.given[source]}({', '.join(arguments)})"

    def scan(self, node: Tensor, operands: Sequence[str]) -> str:
        """One value of a recurrence: its loop is called once for all of them."""
        step, (what, k) = node.params["body"].step, node.params["take"]
        loop = node.params["body"], node.inputs, node.params["steps"]
        if loop not in self.called:
            typed = zip(node.inputs, step.leaves, operands, strict=True)
            given = [self.array(x, text if y.kind == "real" else self.text[x]) for x, y, text in typed]
            self.called[loop] = self.line(loop_call(self, node, given))
        return f"{self.called[loop]}[{k if what == 'final' else len(step.states) + k}]"

    def line(self, text: str) -> str:
        """A name for an expression that is needed several times."""
        if text.isidentifier():
            return text
        name = self._identifier("t")
        self.lines.append(ast.unparse(ast.parse(f"{name} = {text}")))
        return name

    def index_letter(self) -> str:
        """A name for a grid of indices."""
        return self._identifier("i")

    def dtype(self) -> str:
        """The floating type of the arguments; float64 for what integers alone make."""
        if self.writing_whole:
            return "np.float64"
        self.needs_dtype = True
        return "dtype"

    def _scalar_code(self, formula: Any, arrays: bool, names: Any = ()) -> str:
        own = dict(names)
        for symbol in sorted((s for s in formula.free_symbols if s not in own), key=str):
            if symbol not in self.symbols:
                raise NoRuleError(f"the scalar {formula} holds {symbol}, which is neither a size nor a scalar symbol")
            self.used[symbol] = None
        writer = ScalarCode({**self.symbols, **own}, own if arrays else ())
        text = writer.write(formula)
        self.helpers |= writer.helpers
        return text

    def _is_number(self, x: Tensor) -> bool:
        """Whether the code holds a Python number, not an array."""
        return not x.rank and x not in self.loops and x.kind != "binary"

    def _compares_numbers(self, x: Tensor) -> bool:
        """Whether the code would hold a Python bool."""
        bare = not x.rank and x not in self.loops and x.kind == "binary"
        return bare and not any(y.kind == "binary" for y in x.inputs)

    def array(self, x: Tensor, text: str) -> str:
        """The text of an operand as an array, also where it is a number."""
        return f"np.asarray({text}, {self.dtype()})" if self._is_number(x) else text

    def scalar(self, value: sympy.Expr) -> str:
        """A Python number, which never changes the dtype of an array."""
        return self._scalar_code(value, arrays=False)

    def size(self, value: Any) -> str:
        """A size as a Python integer."""
        return ast.unparse(ast.parse(self._whole(value)))

    def _whole(self, value: Any) -> str:
        above, below = sympy.fraction(sympy.together(sympy.sympify(value)))
        text = self._scalar_code(above, arrays=False)
        return text if below == 1 else f"({text}) // ({self._scalar_code(below, arrays=False)})"

    def shape(self, shape: Sequence[Any]) -> str:
        """A tuple of sizes."""
        return "(" + "".join(f"{self.size(size)}, " for size in shape) + ")"

    def align(self, x: Tensor, text: str, rank: int) -> str:
        """An operand of smaller rank with new axes before its own, so that loop axes meet loop axes."""
        if x.rank >= rank or x not in self.loops:
            return text
        return f"({text})[..., {'None, ' * (rank - x.rank)}{', '.join(':' * x.rank)}]".replace(", ]", "]")

    def aligned(self, node: Tensor, operands: Sequence[str]) -> list[str]:
        """All operands aligned with the node."""
        return [self.align(x, text, node.rank) for x, text in zip(node.inputs, operands, strict=True)]

    def is_written(self, x: Tensor) -> bool:
        """Whether the node has a line of its own."""
        return self.text.get(x, "").isidentifier()

    def subtracted(self, node: Tensor, x: Tensor) -> str:
        """The operand behind a minus sign, as a number, aligned with the sum."""
        return self.align(x, self._typed(node, x, self.text[x]), node.rank)

    def typed(self, inputs: Sequence[Tensor], a: str, b: str) -> str:
        """Two operands of a choice; two plain numbers take the dtype of the arguments."""
        plain = all(x.op is constant for x in inputs)
        return f"np.asarray({a}, {self.dtype()}), {b}" if plain else f"{a}, {b}"

    def from_index(self, node: Tensor) -> str:
        """A constant by its indices, on open grids."""
        formula, shape = node.params["formula"], node.shape
        if formula in (0, 1):
            return f"np.{'ones' if formula == 1 else 'zeros'}({self.shape(shape)}, {self.dtype()})"
        if is_eye(node):
            return f"np.eye({self.size(shape[0])}, dtype={self.dtype()})"
        used = [k for k in range(len(shape)) if INDICES[k] in formula.free_symbols]
        if not used:
            cast = "" if node.kind == "binary" else f", {self.dtype()}"
            return f"np.full({self.shape(shape)}, {self._scalar_code(formula, arrays=False)}{cast})"
        real = "" if node.kind == "binary" and not formula.has(sympy.Pow) else ", dtype=float"
        text = self.on_grids(formula, {INDICES[k]: (shape[k], len(shape) - 1 - k) for k in used}, real)
        if node.kind != "binary":
            text = f"np.asarray({text}, {self.dtype()})"
        return text if len(used) == len(shape) else f"np.broadcast_to({text}, {self.shape(shape)})"

    def on_grids(self, formula: Any, grids: Mapping[sympy.Symbol, tuple[Any, int]], real: str = "") -> str:
        """A formula of indices; each ranges over a size, with a number of axes behind its own."""
        letters = {index: self._identifier(index.name) for index in grids}
        for index, (size, behind) in grids.items():
            spread = "[:" + ", None" * behind + "]" if behind else ""
            self.lines.append(f"{letters[index]} = np.arange({self.size(size)}{real}){spread}")
        return self._scalar_code(formula, arrays=bool(grids), names=letters)

    def elementwise(self, node: Tensor, inputs: Sequence[str]) -> str:
        """A given scalar function of aligned operands."""
        names = {bound: f"({text})" for bound, text in zip(ARGUMENTS, self.aligned(node, inputs), strict=False)}
        text = self._scalar_code(node.params["formula"], arrays=True, names=names)
        unused = [f"0 * {name}" for bound, name in names.items() if bound not in node.params["formula"].free_symbols]
        return " + ".join([f"({text})", *unused])  # what is not used still gives its axes

    def broadcast_to(self, node: Tensor, x: str) -> str:
        source = node.inputs[0]
        if source.op is constant:
            return f"np.full({self.shape(node.shape)}, {x}, {self.dtype()})"
        return self.helper("spread", self.align(source, x, node.rank), self.shape(node.shape))

    def transpose(self, x: str, order: tuple[int, ...]) -> str:
        """The last axes in another order; those in front that stay where they are need not be told."""
        while order and order[0] == -len(order):
            order = order[1:]
        if order == (-1, -2):
            return f"({x}).mT"
        return f"np.moveaxis({x}, {order}, {tuple(range(-len(order), 0))})" if order else x

    def index(self, items: Sequence[Any]) -> str:
        """NumPy's index, with the loop axes in front."""
        return "[..., " + ", ".join(map(self._item, items)) + "]"

    def _item(self, item: Any) -> str:
        if item == ("new",):
            return "None"
        if item[0] == "at":
            return self.size(item[1])
        _, start, step, length = item
        stop = sympy.expand(start + step * length)
        below = step < 0 and sympy.expand(stop + 1).is_nonpositive
        first = "" if start == 0 and step > 0 else self.size(start)
        last = "" if below else self.size(stop)
        return f"{first}:{last}" + (f":{step}" if step != 1 else "")

    def embed(self, node: Tensor, x: str) -> str:
        items, core = node.params["items"], node.params["core"]
        rank = sum(item[0] != "at" for item in items)
        return self.helper("embed", x, f"np.s_{self.index(items)}", self.shape(core), str(rank))

    def concat(self, node: Tensor, parts: Sequence[str]) -> str:
        listed = [
            f"np.asarray({text}, {self.dtype()})" if x.kind != node.kind else text
            for x, text in zip(node.inputs, parts, strict=True)
        ]
        return self.helper("concat", f"[{', '.join(listed)}]", str(node.params["axis"]), str(node.rank))

    def label(self, x: Tensor) -> str:
        """What run-time errors call a tensor: its name, if it has one."""
        return x.name or self.graph.names.get(x) or x.brief()

    def matmul(self, node: Tensor, a: str, b: str) -> str:
        return self._solution(node, b) if node.inputs[0] in self.solved else matmul_code(self, node, a, b)

    def _solution(self, node: Tensor, b: str) -> str:
        """``inv(a) @ b`` by solving, with a vector as one column."""
        inverse, right = node.inputs
        core = node.params["core"][1]
        rank = node.rank - core + 2
        left = self.align(inverse, self._operand(inverse, 0), rank)
        b = self.align(right, b, rank - 2 + core)
        column = "" if core == 2 else "[..., None]"
        solution = self.helper("solve", left, f"({b}){column}", repr(self.label(inverse.inputs[0])))
        return solution if core == 2 else f"{solution}[..., 0]"

    def outer(self, node: Tensor, a: str, b: str) -> str:
        left, right = node.inputs
        rank = node.rank - 1
        return f"({self.align(left, a, rank)})[..., :, None] * ({self.align(right, b, rank)})[..., None, :]"

    def einsum(self, node: Tensor, inputs: Sequence[str]) -> str:
        return einsum_code(self, node, inputs)
