"""Writes the NumPy source of a function: named intermediates as lines, single uses in place.

Records say how each operation is spelled; this file decides what gets a line, and gives values their loop axes.
"""

from __future__ import annotations

import textwrap
from collections import Counter

from ...core.node import Tensor
from ...core.sizes import show_shape
from ...ops.contraction import matmul_op
from ...ops.inverse import inv_op
from ...ops.leaves import computed, constant, cotangent_op, operands, variable
from ..call.takes import Takes
from ..graph import Graph
from .loop_axes import LoopAxes, without_real_numbers
from .spelling import Spelling
from .statements import tidied

_TOLD = 60  # the height of a graph that is still printed for a comment
_INLINE = 64  # characters of an unnamed expression that may still stand inside another


class Writer(Spelling):
    """The source under construction; records call it back as ``code``."""

    def __init__(self, name: str, takes: Takes, graph: Graph, as_tuple: bool) -> None:
        super().__init__(takes, graph, graph.names)
        self.name, self.as_tuple, self.writer = name, as_tuple, type(self)
        self.outputs = graph.outputs
        self.order = computed(self.outputs)
        self.axes = LoopAxes(takes, graph)
        self.whole = without_real_numbers(self.order, self.axes.below)
        self.loops = self._with_loops()
        self.loop_shapes: dict[int, str] = {}
        self.uses = Counter(x for node in self.order for x in operands(node))
        self.solved = {node.inputs[0] for node in self.order if node.op is matmul_op and self._is_solved(node)}

    # --- what carries loop axes, and what is solved for ---

    def _with_loops(self) -> set[Tensor]:
        """The nodes that may carry loop axes: those that depend on an argument, and gradients of what does."""
        looped: set[Tensor] = set()
        for node in self.order:
            widened = node.op is cotangent_op and self.axes.of_gradient(node) is not None
            if widened or node.op is variable or any(x in looped for x in operands(node)):
                looped.add(node)
        return looped

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
        lines = self.spelled(self.lines)
        body = [*self._preparation(), *lines]
        text = f"def {self.name}({self.signature()}):\n" + textwrap.indent("\n".join(body), "    ") + "\n"
        return self.needed(text), text

    def spelled(self, lines: list[str]) -> list[str]:
        """The lines in the array library of the code, which here is NumPy."""
        return lines

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
            expression = node.op.numpy(self, node, *(self.operand(node, k) for k in range(len(node.inputs))))
        if self.is_number(node) and node.op is not constant and "(" in expression:
            expression = f"np.asarray({expression}).item()"  # a Python number, which leaves the dtype of arrays alone
        elif self.compares_numbers(node):
            expression = f"np.bool_({expression})"  # of which ~ is the complement
        if node in self.names:
            self._assign(node, self.names[node], expression)
        elif self._needs_line(node, expression):
            self._assign(node, self.identifier("y" if node in self.outputs else "t"), expression)
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
            self.lines.append(f"{name} = {tidied(expression)}")
        self.text[node] = name

    def _returned(self, k: int, y: Tensor) -> str:
        text = self.text[y]
        self.writing_whole = False
        if y.op is constant or (y.kind == "binary" and self.graph.numeric[k]) or (y in self.whole and y.kind == "real"):
            text = f"np.asarray({text}, {self.dtype()})"
        beyond = self.axes.beyond(y)
        if beyond:
            loops = self._loop_shape(self.axes.read[y] | beyond)
            core = f" + {self.shape(y.shape)}" if y.rank else ""
            text = f"np.broadcast_to({text}, {loops}{core})"
        return tidied(text)

    def _gradient(self, node: Tensor) -> str:
        """A gradient over all loop axes of its outputs, summed over those that its variable does not have."""
        body, of, pairs = node.inputs[0], node.inputs[1], node.inputs[2:]
        loops, text = self.axes.of_gradient(node), self.operand(node, 0)
        if body.kind != "real" or body in self.whole or self.is_number(body):
            text = f"np.asarray({text}, {self.dtype()})"
        if loops is None:
            return text
        (full, own), text = loops, self.line(text)
        core = f" + {text}.shape[-{node.rank}:]" if node.rank else ""
        given = sum(1 << k for k, a in enumerate(self.takes.tensors) if a in pairs[1::2])
        if not given & self.axes.read[body]:  # no cotangent brings the loop axes in
            text = f"np.broadcast_to({text}, {self._loop_shape(full)}{core})"
        if full == own:
            return text
        whole = of.op is variable and node.rank == of.rank
        return self.helper("sum_to", text, f"{self.names[of]}.shape" if whole else self._loop_shape(own) + core)

    def _loop_shape(self, below: int) -> str:
        """The loop axes of what is made from these arguments; a line of its own where that is long."""
        if below not in self.loop_shapes:
            arguments = [a for k, a in enumerate(self.takes.tensors) if below >> k & 1]
            loops = [f"{self.names[a]}.shape" + (f"[:-{a.rank}]" if a.rank else "") for a in arguments]
            text = "()" if not loops else loops[0] if len(loops) == 1 else f"np.broadcast_shapes({', '.join(loops)})"
            if len(text) > _INLINE:
                name = self.identifier("loops")
                self.lines.append(f"{name} = {text}")
                text = name
            self.loop_shapes[below] = text
        return self.loop_shapes[below]

    def _preparation(self) -> list[str]:
        """The docstring, the sizes that are used, and the dtype if constants need one."""
        shapes = [f"{self.names[a]}{show_shape(a.shape)}" for a in self.takes.tensors]
        doc = f"{', '.join(shapes) or 'no arrays'}; loop axes may stand in front."
        lines = textwrap.wrap(f'"""{doc}"""', 100)
        return [*lines, *self.sizes_read(), *([self.dtype_read()] if self.needs_dtype else [])]
