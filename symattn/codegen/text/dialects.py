"""The dialects of generated code: one table an array library of the calls that NumPy spells in another way.

Records say their NumPy, and generated code is first written in it; a dialect then spells its calls, call by call.
Scalar functions have their names in each library in their own records. What a table does not have is no part of the
dialect: NoRuleError.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from ...scalars.functions import FUNCTIONS
from .carried import Helpers
from .helpers import HELPERS
from .in_jax import IN_JAX
from .in_torch import IN_TORCH
from .traced import TRACED

Call = Callable[..., str]  # the text of a call from the texts of its arguments


class Number(str):
    """The text of an argument that is a Python number, not an array."""


@dataclass(frozen=True)
class Dialect:
    """How an array library spells what NumPy does.

    ``calls`` are those of ``np``, of which others are ``same`` or not known; ``methods`` those of arrays that differ;
    ``names`` are types and constants.
    """

    backend: str
    title: str
    calls: Mapping[str, Call]
    methods: Mapping[str, Call]
    names: Mapping[str, str]
    helpers: Helpers
    imports: Mapping[str, str]  # the line for a name in the code
    floating: str  # the type of numbers where no argument has one
    same: Callable[[str], str] | None = None  # the name of a call that the table does not have
    runs_backwards: bool = True  # whether slices may have a negative step

    @property
    def reserved(self) -> Collection[str]:
        """The names that code uses itself."""
        return {*self.helpers, *self.imports, "device"}


def called(name: str) -> Call:
    """A call of that name with the same arguments."""
    return lambda *given, **more: f"{name}({', '.join([*given, *(f'{key}={text}' for key, text in more.items())])})"


# --- PyTorch ---

_TYPES = {"float": "torch.float64", "int": "torch.int64", "bool": "torch.bool"}


def _type(text: str) -> str:
    return _TYPES.get(text, text)


def _made(name: str) -> Call:
    """What makes an array, on the device of the others."""

    def spelled(*given: str, dtype: str = "") -> str:
        return called(f"torch.{name}")(*given, **({"dtype": _type(dtype)} if dtype else {}), device="device")

    return spelled


def _tensor(x: str, dtype: str = "") -> str:
    return _made("as_tensor")(x, dtype=dtype)


def _full(shape: str, value: str, dtype: str = "") -> str:
    if isinstance(value, Number):
        return _made("full")(shape, value, dtype=dtype)
    return f"torch.broadcast_to({_tensor(value, dtype)}, {shape})"


def _of_entries(name: str, math: str) -> Call:
    """A scalar function: of a Python number by ``math``, of a number and an array with the number as an array."""

    def spelled(*given: str) -> str:
        if all(isinstance(x, Number) for x in given):
            return called(f"math.{math}")(*given)
        return called(f"torch.{name}")(*(_number(x) if isinstance(x, Number) else x for x in given))

    return spelled


def _number(x: str) -> str:
    """A number as an array without axes, which does not change the type of others."""
    return _tensor(x, "torch.float64")


def _bounded(name: str, side: str) -> Call:
    def spelled(a: str, b: str) -> str:
        if isinstance(a, Number):
            a, b = b, a
        return f"torch.clamp({a}, {side}={b})" if isinstance(b, Number) else f"torch.{name}({a}, {b})"

    return spelled


def _where(chosen: str, a: str, b: str) -> str:
    both = isinstance(a, Number) and isinstance(b, Number)
    return f"torch.where({chosen}, {_number(a) if both and not a.isdigit() else a}, {b})"


def _extreme(name: str, side: str) -> Call:
    def spelled(x: str, *axis: str, initial: str = "", **more: str) -> str:
        text = called(f"{x}.{name}")(*axis, **more)
        return f"{text}.clamp({side}={initial})" if initial else text

    return spelled


def _total(x: str, *axis: str, initial: str = "", **more: str) -> str:
    text = called(f"{x}.sum")(*axis, **more)
    return f"({text} + {initial})" if initial else text


_SAME_IN_TORCH = (
    "abs broadcast_shapes broadcast_to clip cumsum exp expm1 finfo isfinite log1p logical_not logical_and logical_or "
    "matmul moveaxis tril triu concatenate broadcast_tensors frexp square stack linalg.inv linalg.solve"
).split()
_TORCH_SCALARS: dict[str, Call] = {
    f.spelled("numpy"): _of_entries(f.spelled("torch"), f.math or f.name) for f in FUNCTIONS.values()
}

TORCH = Dialect(
    "torch",
    "PyTorch",
    calls={
        **{name: called(f"torch.{name}") for name in _SAME_IN_TORCH},
        **_TORCH_SCALARS,
        **{name: _of_entries(name, name) for name in ("sqrt", "log1p", "expm1", "exp2", "log2", "log10")},
        **{name: _made(name) for name in ("arange", "eye")},
        "abs": called("abs"),
        "equal": called("torch.eq"),
        "mod": called("torch.remainder"),
        "power": lambda a, b: f"({a}) ** ({b})",
        "float_power": lambda a, b: f"({a}) ** ({b})",
        "square": lambda x: f"({x}) ** 2",
        "maximum": _bounded("maximum", "min"),
        "minimum": _bounded("minimum", "max"),
        "where": _where,
        "asarray": _tensor,
        "array": _tensor,
        "bool_": lambda x: _tensor(x, "bool"),
        "ones": lambda shape, dtype="float": _made("ones")(shape, dtype=dtype),
        "zeros": lambda shape, dtype="float": _made("zeros")(shape, dtype=dtype),
        "full": _full,
        "result_type": called("result_type"),
        "vecdot": called("torch.linalg.vecdot"),
        "ldexp": called("ldexp"),
        "einsum": lambda spec, *given, optimize="": called("torch.einsum")(spec, *given),
        "diagonal": lambda x, axis1, axis2: f"torch.diagonal({x}, dim1={axis1}, dim2={axis2})",
        "trace": lambda x, axis1, axis2: f"torch.diagonal({x}, dim1={axis1}, dim2={axis2}).sum(-1)",
        "flip": lambda x, axis: f"torch.flip({x}, ({axis},))",
        "repeat": lambda x, times, axis: f"torch.repeat_interleave({x}, {times}, dim={axis})",
        "sort": lambda x, axis="-1": f"torch.sort({x}, dim={axis}).values",
        "take_along_axis": lambda x, index, axis: f"torch.take_along_dim({x}, {index}, {axis})",
        "sum": lambda x, **more: _total(x, **more),
        "max": lambda x, **more: _extreme("amax", "min")(x, **more),
        "min": lambda x, **more: _extreme("amin", "max")(x, **more),
    },
    methods={
        "astype": lambda x, dtype, copy="": f"{x}.to({_type(dtype)})",
        "max": _extreme("amax", "min"),
        "min": _extreme("amin", "max"),
        "sum": _total,
        "copy": lambda x: f"{x}.clone()",
        "item": lambda x: x,
    },
    names={
        "pi": "math.pi", "e": "math.e", "inf": "math.inf", "nan": "math.nan", "newaxis": "None", "intp": "torch.int64",
        **{name: f"torch.{name}" for name in ("float16", "float32", "float64", "int64", "int32")},
    },
    helpers=Helpers({**HELPERS, **TRACED, **IN_TORCH}),
    imports={"functools": "import functools", "math": "import math", "torch": "import torch"},
    floating="torch.float64",
    runs_backwards=False,
)  # fmt: skip


# --- JAX ---

_JAX_SCALARS: dict[str, Call] = {f.spelled("numpy"): called(f"jnp.{f.spelled('jax')}") for f in FUNCTIONS.values()}

JAX = Dialect(
    "jax",
    "JAX",
    calls={**_JAX_SCALARS, "asarray": called("jnp.asarray"), "bool_": lambda x: f"jnp.asarray({x}, bool)"},
    methods={"item": lambda x: x},
    names={
        "pi": "math.pi", "e": "math.e", "inf": "math.inf", "nan": "math.nan", "newaxis": "None",
        "float64": "float", "int64": "int", "intp": "int", "float32": "jnp.float32", "float16": "jnp.float16",
    },
    helpers=Helpers({**HELPERS, **TRACED, **IN_JAX}),
    imports={
        "math": "import math", "jax": "import jax", "jnp": "import jax.numpy as jnp",
    },
    floating="jnp.result_type(float)",
    same=lambda name: f"jnp.{name}",
)  # fmt: skip

DIALECTS = {dialect.backend: dialect for dialect in (TORCH, JAX)}
