"""Compiled functions of PyTorch and JAX: arrays of the library in and out, with our derivative as theirs.

The derivative is generated as the function is: the vector-Jacobian product of its outputs, compiled in the same dialect
when it is first asked for. It is a function of the same kind, and so has a derivative in its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import sympy

from ..calculus.gradient import gradient
from ..core.late import late
from ..core.naming import new_name
from ..core.node import Tensor, topological
from ..errors import EvaluationError
from ..ops.leaves import constant, cotangent_op, variable
from .call.gate import checked_scalar
from .call.libraries import Jax, Library, Torch
from .compiled import Compiled
from .text.elsewhere import InJax, InTorch


class Differentiable(Compiled):
    """A function in another library than NumPy; call it on arrays of that library."""

    _library: ClassVar[type[Library]]

    def __init__(self, arguments: Sequence[Any], outputs: Sequence[Tensor], several: bool) -> None:
        self.library = self._library()
        super().__init__(arguments, outputs, several)
        self.scalars = [s for s in self.keywords if not s.is_integer]
        self.inputs = [*self.takes.arguments, *self.scalars]  # what goes in as arrays, or as a size in its place
        self._sizes: dict[Hashable, dict[str, int]] = {}
        self._pullbacks: dict[tuple[bool, ...], Pullback] = {}

    def __call__(self, /, *arrays: Any, **keywords: Any) -> Any:
        self._check_number(arrays)
        lacking = [s.name for s in self.scalars if self.keywords[s] not in keywords]
        if lacking:
            raise EvaluationError(f"give {', '.join(f'{name}=...' for name in lacking)}: it is no argument by position")
        names = {self.keywords[s] for s in self.scalars}
        values = [*arrays, *(keywords[self.keywords[s]] for s in self.scalars)]
        inputs = self.library.admitted(self.inputs, values)
        told = {name: value for name, value in keywords.items() if name not in names}
        sizes = self._sizes_of(inputs[: len(arrays)], told)
        try:
            results = self.run(tuple(sizes.items()), inputs)
        except (IndexError, RuntimeError, TypeError, ValueError) as problem:
            raise EvaluationError(f"the compiled code failed on these values: {problem}") from problem
        return tuple(results) if self.several else results[0]

    def on_numpy(self, /, *arrays: Any, **keywords: Any) -> Any:
        """The function of NumPy's arrays, in their types."""
        with self.library.in_float64():
            given = [x if isinstance(x, int) else self.library.from_numpy(np.asarray(x)) for x in arrays]
            results = self(*given, **keywords)
            made = [self.library.to_numpy(y) for y in (results if self.several else (results,))]
        return tuple(made) if self.several else made[0]

    def check(self) -> str:
        """Hold the code, and that of its derivative, against entries and finite differences; say what agreed.

        Raises EvaluationError with the output, the sizes and the first entry that differs.
        """
        own = super().check()
        if not (any(self.is_real) and any(self.numeric)):
            return own
        return "\n".join([own, str(late("check_function")(self.pullback(self.is_real).function))])

    def _sizes_of(self, arrays: Sequence[Any], told: Mapping[str, Any]) -> dict[str, int]:
        """All sizes by their names, once all shapes have been held against each other."""
        at = [tuple(map(int, x.shape)) if isinstance(a, Tensor) else x
              for a, x in zip(self.takes.arguments, arrays, strict=True)]  # fmt: skip
        key = *(x if isinstance(x, (tuple, int)) else None for x in at), *sorted(told.items())
        if key not in self._sizes:
            stand_ins = [SimpleNamespace(shape=x, ndim=len(x)) if isinstance(x, tuple) else 1 for x in at]
            positional = [x if isinstance(x, int) else y for x, y in zip(at, stand_ins, strict=True)]
            scalars = dict.fromkeys((self.keywords[s] for s in self.scalars), 1)
            known = self.binding.sizes(positional, {**told, **{k: _allowed(self.binding.keywords[k]) for k in scalars}})
            self._check_loops(positional)
            self._sizes[key] = {
                name: known[s] for name, s in self.binding.keywords.items() if s in known and s.is_integer
            }
        return self._sizes[key]

    def computed(self, sizes: Mapping[str, int], inputs: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs by the generated code."""
        places = len(self.takes.arguments)
        scalars = {self.keywords[s]: x for s, x in zip(self.scalars, inputs[places:], strict=True)}
        told = {name: sizes[key] for key, name in self._told.items()}
        result = self._function(*inputs[:places], **told, **scalars)
        return result if self.several else (result,)

    def run(self, sizes: tuple[tuple[str, int], ...], inputs: Sequence[Any]) -> Sequence[Any]:
        """The outputs for arrays that fit, with their derivative."""
        raise NotImplementedError

    def pullback(self, wanted: Sequence[bool]) -> Pullback:
        """The derivative with respect to some of the inputs."""
        key = tuple(wanted)
        if key not in self._pullbacks:
            self._pullbacks[key] = Pullback(self, [x for x, yes in zip(self.inputs, key, strict=True) if yes])
        return self._pullbacks[key]

    @cached_property
    def _told(self) -> dict[str, str]:
        """What the code calls the sizes that are its keywords."""
        return {
            name: self.keywords[s] for name, s in self.binding.keywords.items() if s in self.keywords and s.is_integer
        }

    @cached_property
    def is_real(self) -> list[bool]:
        """Which inputs have derivatives."""
        return [x.kind == "real" if isinstance(x, Tensor) else not x.is_integer for x in self.inputs]

    @cached_property
    def numeric(self) -> list[bool]:
        """Which outputs have cotangents."""
        return [y.kind == "real" or number for y, number in zip(self.outputs, self.graph.numeric, strict=True)]


def _allowed(s: sympy.Symbol) -> float:
    """A number that a scalar symbol may be, where its value is not looked at."""
    for value in (1.0, -1.0, 2.0, 0.0):
        try:
            return float(checked_scalar(s, value))
        except EvaluationError:
            continue
    return 1.0


class Pullback:
    """The vector-Jacobian product of a function, as a function of its inputs and of one cotangent a real output.

    Outputs that depend on the same arguments have the same loop axes and are differentiated together.
    """

    def __init__(self, f: Differentiable, by: Sequence[Any]) -> None:
        taken = {x.name for x in f.inputs} | {x.name for x in topological(f.outputs) if x.name}
        self.inputs, self.several = f.inputs, len(by)
        outputs = [y for y, yes in zip(f.outputs, f.numeric, strict=True) if yes]
        self.cotangents = [
            variable(name=new_name(f"d{y.name or 'y'}", taken), shape=y.shape, hypotheses=()) for y in outputs
        ]
        groups: list[tuple[frozenset[Tensor], dict[Tensor, Tensor]]] = []
        self.below: list[frozenset[Tensor]] = []
        for y, c in zip(outputs, self.cotangents, strict=True):
            below = frozenset(x for x in topological([y]) if x.op is variable)
            self.below.append(below)
            for known, pairs in groups:
                if known == below and y not in pairs:
                    pairs[y] = c
                    break
            else:
                groups.append((below, {y: c}))
        results = [x for _, pairs in groups for x in gradient(pairs, list(by)).values()]
        self.number = len(groups)
        self.function = type(f)([*f.inputs, *self.cotangents], results, True)

    def __call__(self, sizes: Mapping[str, int], inputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """The cotangents of the wanted inputs."""
        shapes = {a: tuple(x.shape) for a, x in zip(self.inputs, inputs, strict=True) if isinstance(a, Tensor)}
        fitted = [
            _over(c, [shapes[a][: len(shapes[a]) - a.rank] for a in below], y.rank)
            for c, y, below in zip(cotangents, self.cotangents, self.below, strict=True)
        ]
        told = {name: n for name, n in sizes.items() if name in self.function.binding.keywords}
        parts = self.function(*inputs, *fitted, **told)
        every = [parts[k :: self.several] for k in range(self.several)]
        return [sum(found[1:], found[0]) for found in every]


def _over(c: Any, loops: Sequence[tuple[int, ...]], rank: int) -> Any:
    """A cotangent summed over the loop axes that its output was only repeated over."""
    shape = (*np.broadcast_shapes(*loops), *c.shape[c.ndim - rank :])
    front = c.ndim - len(shape)
    axes = (*range(front), *(front + k for k, n in enumerate(shape) if n == 1 != c.shape[front + k]))
    return c.sum(axes).reshape(shape) if axes else c


class TorchFunction(Differentiable):
    """A function in PyTorch made by ``lambdify``; call it on tensors."""

    backend, title, _writer, _library = "torch", "PyTorch", InTorch, Torch

    def __init__(self, arguments: Sequence[Any], outputs: Sequence[Tensor], several: bool) -> None:
        super().__init__(arguments, outputs, several)
        compiler = self.library.np.compiler
        self._is_compiling = compiler.is_compiling
        self._as_one = compiler.allow_in_graph(super().__call__)  # one node of a graph, which is not looked into

    def __call__(self, /, *arrays: Any, **keywords: Any) -> Any:
        if self._is_compiling():
            return self._as_one(*arrays, **keywords)
        return super().__call__(*arrays, **keywords)

    def run(self, sizes: tuple[tuple[str, int], ...], inputs: Sequence[Any]) -> Sequence[Any]:
        return self._autograd.apply(sizes, *inputs)

    @cached_property
    def _is_fresh(self) -> list[bool]:
        """Which outputs are new arrays: no argument, no view, and no output before."""
        known = self.graph.outputs
        return [
            bool(y.inputs) and y.op.kind != "inputs" and not y.op.is_view and y.op is not cotangent_op
            and y.op not in (constant,) and y not in known[:k]
            for k, y in enumerate(known)
        ]  # fmt: skip

    @cached_property
    def _autograd(self) -> Any:
        f, torch = self, self.library.np
        base: Any = torch.autograd.Function

        class Function(base):
            generate_vmap_rule = True

            @staticmethod
            def forward(sizes: Any, *inputs: Any) -> Any:
                made = f.computed(dict(sizes), inputs)
                return tuple(
                    y if fresh else y.clone(memory_format=torch.contiguous_format)
                    for y, fresh in zip(made, f._is_fresh, strict=True)
                )

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                ctx.sizes, ctx.arrays = inputs[0], [torch.is_tensor(x) for x in inputs[1:]]
                ctx.others = [None if torch.is_tensor(x) else x for x in inputs[1:]]
                ctx.save_for_backward(*(x for x in inputs[1:] if torch.is_tensor(x)))
                ctx.mark_non_differentiable(*(y for y, yes in zip(output, f.numeric, strict=True) if not yes))

            @staticmethod
            def backward(ctx: Any, *cotangents: Any) -> Any:
                saved = iter(ctx.saved_tensors)
                inputs = [next(saved) if yes else x for yes, x in zip(ctx.arrays, ctx.others, strict=True)]
                wanted = [needed and real for needed, real in zip(ctx.needs_input_grad[1:], f.is_real, strict=True)]
                if not any(wanted):
                    return (None,) * (1 + len(inputs))
                given = [c for c, yes in zip(cotangents, f.numeric, strict=True) if yes]
                found = iter(f.pullback(wanted)(dict(ctx.sizes), inputs, given))
                return None, *(next(found) if yes else None for yes in wanted)

        return Function


class JaxFunction(Differentiable):
    """A function in JAX made by ``lambdify``; call it on arrays of JAX, also under its transformations."""

    backend, title, _writer, _library = "jax", "JAX", InJax, Jax

    def __init__(self, arguments: Sequence[Any], outputs: Sequence[Tensor], several: bool) -> None:
        super().__init__(arguments, outputs, several)
        self._compiled: dict[Hashable, Callable[..., Any]] = {}

    def run(self, sizes: tuple[tuple[str, int], ...], inputs: Sequence[Any]) -> Sequence[Any]:
        fixed = tuple((k, int(x)) for k, (a, x) in enumerate(zip(self.inputs, inputs, strict=True)) if _is_size(a))
        if (sizes, fixed) not in self._compiled:
            self._compiled[sizes, fixed] = self._with_derivative(dict(sizes), dict(fixed))
        return self._compiled[sizes, fixed](*(x for a, x in zip(self.inputs, inputs, strict=True) if not _is_size(a)))

    def _with_derivative(self, sizes: dict[str, int], fixed: dict[int, int]) -> Callable[..., Any]:
        jax = self.library.np
        real = [yes for a, yes in zip(self.inputs, self.is_real, strict=True) if not _is_size(a)]

        def every(arrays: Sequence[Any]) -> list[Any]:
            left = iter(arrays)
            return [fixed[k] if k in fixed else next(left) for k in range(len(self.inputs))]

        def forward(*arrays: Any) -> Any:
            return self.computed(sizes, every(arrays))

        def backward(arrays: Any, cotangents: Any) -> Any:
            given = [c for c, yes in zip(cotangents, self.numeric, strict=True) if yes]
            found = iter(self.pullback(self.is_real)(sizes, every(arrays), given) if any(real) else ())
            return tuple(next(found) if yes else None for yes in real)

        f = jax.custom_vjp(forward)
        f.defvjp(lambda *arrays: (forward(*arrays), arrays), backward)
        jitted: Callable[..., Any] = jax.jit(f)
        return jitted


def _is_size(a: Any) -> bool:
    return isinstance(a, sympy.Symbol) and bool(a.is_integer)


ELSEWHERE: dict[str, type[Differentiable]] = {"torch": TorchFunction, "jax": JaxFunction}
