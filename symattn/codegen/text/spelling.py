"""What records ask for when they write themselves in NumPy: sizes, dtypes, helpers, the alignment of loop axes.

Operands come between parentheses and Python's own unparser drops the needless ones, so precedence is never worked out
by hand.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import sympy

from ...core.exact import ARGUMENTS, INDICES
from ...core.naming import fresh_name, in_python
from ...core.node import Tensor
from ...core.sizes import never_negative
from ...errors import NoRuleError
from ...ops.leaves import constant, is_eye
from ..call.takes import Takes
from ..graph import Graph
from .contraction import einsum_code, matmul_code
from .helpers import HELPERS
from .loops import loop_call, loop_source
from .scalars import ScalarCode
from .statements import tidied

_RESERVED = {"np", "math", "special", "dtype", *HELPERS, *keyword.kwlist, *dir(builtins)}

_STANDARD = {  # what needs an import of the standard library
    "math.": "import math",
    "ThreadPoolExecutor(": "from concurrent.futures import ThreadPoolExecutor",
    "copy_context(": "from contextvars import copy_context",
    "islice(": "from itertools import islice",
}


class Spelling:
    """The text of nodes, and what it needs; records call it back as ``code``."""

    loops: Collection[Tensor] = frozenset()  # the nodes that may carry loop axes
    whole: Collection[Tensor] = frozenset()  # what integers alone make, in float64
    writer: Callable[..., Any]  # of a function inside, such as a step
    solved: Collection[Tensor] = frozenset()  # inverses that serve one product alone
    reserved: Collection[str] = _RESERVED  # the names that code uses itself
    array_symbols: Collection[sympy.Symbol] = frozenset()  # scalars that are arrays without axes, not Python numbers

    loop_source: Callable[..., str] = staticmethod(loop_source)  # of a recurrence

    def __init__(self, takes: Takes, graph: Graph, names: Mapping[Tensor, str]) -> None:
        self.takes, self.graph = takes, graph
        self.lines: list[str] = []
        self.helpers: set[str] = set()
        self.given: dict[str, str] = {}
        self.called: dict[Any, str] = {}  # loops, and the line that holds all values of one
        self.loop_sources: dict[Any, tuple[str, dict[str, sympy.Symbol]]] = {}  # by their bodies
        self.used: dict[sympy.Symbol, None] = {}
        self.needs_dtype, self.writing_whole = False, False
        self.taken = set(self.reserved)
        self._numbers: dict[str, int] = {}  # how often a name was asked for: smaller numbers are taken
        self._sizes: dict[Any, str] = {}
        self.symbols = {s: self.identifier(s.name) for s in takes.symbols}
        self.names = {a: self.identifier(a.params["name"]) for a in takes.tensors}
        self.names.update((node, self.identifier(name)) for node, name in names.items())
        self.text: dict[Tensor, str] = {}

    def identifier(self, name: str) -> str:
        """A name of its own for what is called so."""
        wanted = in_python(name).replace("'", "_prime")
        number = self._numbers.get(wanted, 0)
        self._numbers[wanted] = number + 1
        found = fresh_name(wanted, self.taken, number)
        self.taken.add(found)
        return found

    def keywords(self) -> list[sympy.Symbol]:
        """The keywords that the code needs, once it is written."""
        return [s for s in self.takes.keywords if s in self.used]

    # --- parts of a module ---

    def signature(self) -> str:
        positional = [self.names[a] if isinstance(a, Tensor) else self.symbols[a] for a in self.takes.arguments]
        keywords = [self.symbols[s] for s in self.keywords()]
        return ", ".join([*positional, *(["*", *keywords] if keywords else [])])

    def sizes_read(self) -> list[str]:
        """The sizes that are used, each read off a shape."""
        return [
            f"{self.symbols[symbol]} = {self.names[array]}.shape[{axis}]"
            for symbol, (array, axis) in self.takes.source.items()
            if symbol in self.used
        ]

    def dtype_read(self) -> str:
        """The common floating type of the arguments."""
        arrays = [self.names[a] for a in self.takes.tensors if a.kind == "real"]
        arrays += [name for s, name in self.symbols.items() if s in self.used and not s.is_integer]
        return f"dtype = np.result_type({', '.join(arrays)})" if arrays else "dtype = np.dtype(np.float64)"

    def needed(self, text: str) -> str:
        """The imports and the helpers that a text needs."""
        helpers = [f.strip() + "\n" for f in (*HELPERS.text_of(self.helpers), *self._carried_sources())]
        return "\n\n".join([self._imports("\n".join([*helpers, text])), *helpers, ""])

    def _carried_sources(self) -> list[str]:
        return [re.sub(r"\Adef \w+", f"def {name}", source) for source, name in self.given.items()]

    def _imports(self, code: str) -> str:
        standard = [line for word, line in _STANDARD.items() if word in code]
        lines = ["\n".join(standard) + "\n", "import numpy as np"] if standard else ["import numpy as np"]
        if "special." in code:
            lines.append("from scipy import special")
        return "\n".join(lines) + "\n"

    # --- operands ---

    def operand(self, node: Tensor, k: int) -> str:
        """An input as text, of the type that it is used in."""
        x = node.inputs[k]
        text = self.text.get(x, "")
        if node.op.kind == "inputs":  # what moves entries needs an array
            text = self.array(x, text)
            return self._typed(node, x, text) if x.kind == node.kind else text
        return text if k in node.op.masks or k in node.op.places else self._typed(node, x, text)

    def _typed(self, node: Tensor, x: Tensor, text: str) -> str:
        """A mask or an integer becomes a number where it is used as one; what integers make takes the common type."""
        if node.kind == "binary" or self.is_number(x):
            return text
        number = x.kind == "binary" or (x in self.whole and node not in self.whole)
        number |= x.kind == "integer" and node.kind == "real" and not node.op.stays_whole
        return f"({text}).astype({self.dtype()})" if number else text

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
            self.given[source] = self.identifier(name)
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
        name = self.identifier("t")
        self.lines.append(f"{name} = {tidied(text)}")
        return name

    def index_letter(self) -> str:
        """A name for a grid of indices."""
        return self.identifier("i")

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
        writer = ScalarCode({**self.symbols, **own}, {*self.array_symbols, *(own if arrays else ())})
        text = writer.write(formula)
        self.helpers |= writer.helpers
        return text

    def is_number(self, x: Tensor) -> bool:
        """Whether the code holds a Python number, not an array."""
        return not x.rank and x not in self.loops and x.kind != "binary"

    def compares_numbers(self, x: Tensor) -> bool:
        """Whether the code would hold a Python bool."""
        bare = not x.rank and x not in self.loops and x.kind == "binary"
        return bare and not any(y.kind == "binary" for y in x.inputs)

    def array(self, x: Tensor, text: str) -> str:
        """The text of an operand as an array, also where it is a number."""
        return f"np.asarray({text}, {self.dtype()})" if self.is_number(x) else text

    def scalar(self, value: sympy.Expr) -> str:
        """A Python number, which never changes the dtype of an array."""
        return self._scalar_code(value, arrays=False)

    def size(self, value: Any) -> str:
        """A size as a Python integer."""
        if value not in self._sizes:
            self._sizes[value] = tidied(self._whole(value))
        return self._sizes[value]

    def _whole(self, value: Any) -> str:
        above, below = sympy.fraction(sympy.together(sympy.sympify(value)))
        text = self._scalar_code(above, arrays=False)
        return text if below == 1 else f"({text}) // ({self._scalar_code(below, arrays=False)})"

    def shape(self, shape: Sequence[Any]) -> str:
        """A tuple of sizes."""
        sizes = [self.size(size) for size in shape]
        return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"

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
        letters = {index: self.identifier(index.name) for index in grids}
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
        if step < 0 and not below and not never_negative(stop):  # a place before the first one is no number in NumPy
            last = f"{last} if {last} >= 0 else None"
        return f"{first}:{last}" + (f":{self.size(step)}" if step != 1 else "")

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
        left = self.align(inverse, self.operand(inverse, 0), rank)
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
