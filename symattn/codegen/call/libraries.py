"""The gate for arrays of PyTorch and JAX: of one library and on one device, of the types that are asked for, or an
error by name. Values are not looked at, for they may be traced."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import sympy

from ...core.node import Tensor
from ...errors import EvaluationError
from .gate import checked_scalar


class Library:
    """An array library, imported when it is used."""

    backend: str
    title: str
    convert: str  # how a NumPy array becomes one of its own
    type_of_kind: ClassVar[dict[str, str]]  # how an array gets the type of a kind of tensors

    def __init__(self) -> None:
        try:
            self.np: Any = self.imported()
        except ImportError:
            raise EvaluationError(
                f'backend="{self.backend}" needs {self.title}, which is not installed: '
                f"pip install 'symattn[{self.backend}]'"
            ) from None

    def imported(self) -> Any:
        """The module of the library."""
        raise NotImplementedError

    def is_own(self, x: Any) -> bool:
        """Whether it is an array of this library."""
        raise NotImplementedError

    def kind(self, x: Any) -> str:
        """What an array holds: "real", "complex", "integer" or "binary"."""
        raise NotImplementedError

    def common(self, arrays: Sequence[Any]) -> Any:
        """The floating type of several arrays."""
        raise NotImplementedError

    def cast(self, x: Any, dtype: Any, like: Any) -> Any:
        """An array or a number in a type, on the device of another array."""
        raise NotImplementedError

    def device(self, x: Any) -> Any:
        """Where it is, if that is known and fixed."""
        raise NotImplementedError

    def from_numpy(self, x: Any) -> Any:
        """An array of NumPy as one of this library."""
        raise NotImplementedError

    def to_numpy(self, x: Any) -> Any:
        """An array of this library as one of NumPy."""
        raise NotImplementedError

    def in_float64(self) -> AbstractContextManager[Any]:
        """Where float64 is a type."""
        return nullcontext()

    def admitted(self, arguments: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """The values of the arguments: arrays, of which the real ones have one type and all are on one device."""
        for a, x in zip(arguments, values, strict=True):
            self._check(a, x)
        self._check_devices(arguments, values)
        real = [x for a, x in zip(arguments, values, strict=True) if _is_real(a) and self.is_own(x)]
        tensors = [x for a, x in zip(arguments, values, strict=True) if isinstance(a, Tensor) and self.is_own(x)]
        floating = [x for x, a in zip(values, arguments, strict=True) if isinstance(a, Tensor) and self.is_own(x)]
        of_tensors = [x for x in floating if self.kind(x) == "real"]
        dtype, like = self.common(of_tensors or real), next(iter(tensors or real), None)
        rows = zip(arguments, values, strict=True)
        return [self.cast(x, dtype, like) if _is_real(a) else x for a, x in rows]

    def _check(self, a: Any, x: Any) -> None:
        if isinstance(a, sympy.Symbol) and a.is_integer:
            checked_scalar(a, x)
            return
        wanted = a.kind if isinstance(a, Tensor) else "real"
        shown = a.brief() if isinstance(a, Tensor) else f"the number {a.name}"
        rank = a.rank if isinstance(a, Tensor) else 0
        if not self.is_own(x):
            if wanted == "real" and not rank and isinstance(x, (int, float)) and not isinstance(x, bool):
                return
            given = f"{type(x).__module__.partition('.')[0]}.{type(x).__name__}"
            raise EvaluationError(
                f"{a.name} is {given}, and this function takes arrays of {self.title} alone: {shown} is given as "
                f"{self.convert.format(a.name)}"
            )
        if self.kind(x) != wanted:
            raise EvaluationError(
                f"{a.name} has dtype {x.dtype}, and {shown} is {_ARTICLE[wanted]}: convert it first, as in "
                f"{self.type_of_kind[wanted].format(a.name)}"
            )
        if x.ndim < rank or (isinstance(a, sympy.Symbol) and x.ndim):
            raise EvaluationError(f"{a.name} has shape {tuple(x.shape)}, of {x.ndim} axes: {shown} has {rank}")
        if 0 in x.shape:
            raise EvaluationError(f"{a.name} has shape {tuple(x.shape)}, which is empty: sizes are positive")

    def _check_devices(self, arguments: Sequence[Any], values: Sequence[Any]) -> None:
        where = {a: self.device(x) for a, x in zip(arguments, values, strict=True) if self.is_own(x)}
        fixed = {a: device for a, device in where.items() if device is not None}
        if len(set(fixed.values())) > 1:
            shown = ", ".join(f"{a.name} on {device}" for a, device in fixed.items())
            raise EvaluationError(f"the arrays are on different devices: {shown}; bring them to one first")


_ARTICLE = {"real": "a tensor of real numbers", "integer": "declared integer", "binary": "declared binary"}


def _is_real(a: Any) -> bool:
    return a.kind == "real" if isinstance(a, Tensor) else not a.is_integer


class Torch(Library):
    """PyTorch."""

    backend, title, convert = "torch", "PyTorch", "torch.as_tensor({})"
    type_of_kind: ClassVar = {
        "real": "{}.to(torch.float32)",
        "integer": "{}.to(torch.int64)",
        "binary": "{}.to(torch.bool)",
    }

    def imported(self) -> Any:
        return import_module("torch")

    def is_own(self, x: Any) -> bool:
        return isinstance(x, self.np.Tensor)

    def kind(self, x: Any) -> str:
        if x.dtype == self.np.bool:
            return "binary"
        return "real" if x.dtype.is_floating_point else "complex" if x.dtype.is_complex else "integer"

    def common(self, arrays: Sequence[Any]) -> Any:
        dtypes = [x.dtype for x in arrays] or [self.np.float64]
        found = dtypes[0]
        for dtype in dtypes[1:]:
            found = self.np.promote_types(found, dtype)
        return found

    def cast(self, x: Any, dtype: Any, like: Any) -> Any:
        if isinstance(x, self.np.Tensor):
            return x if x.dtype == dtype else x.to(dtype)
        return self.np.as_tensor(x, dtype=dtype, device=None if like is None else like.device)

    def device(self, x: Any) -> Any:
        return x.device

    def from_numpy(self, x: Any) -> Any:
        return self.np.from_numpy(x)

    def to_numpy(self, x: Any) -> Any:
        return x.detach().cpu().numpy()


class Jax(Library):
    """JAX."""

    backend, title, convert = "jax", "JAX", "jnp.asarray({})"
    type_of_kind: ClassVar = {
        "real": "{}.astype(jnp.float32)",
        "integer": "{}.astype(int)",
        "binary": "{}.astype(bool)",
    }

    def imported(self) -> Any:
        import_module("jax.numpy")
        return import_module("jax")

    @property
    def jnp(self) -> Any:
        """What has the names of NumPy."""
        return self.np.numpy

    def is_own(self, x: Any) -> bool:
        return isinstance(x, self.np.Array)

    def kind(self, x: Any) -> str:
        if x.dtype == bool:
            return "binary"
        if self.jnp.issubdtype(x.dtype, self.jnp.floating):
            return "real"
        return "complex" if self.jnp.issubdtype(x.dtype, self.jnp.complexfloating) else "integer"

    def common(self, arrays: Sequence[Any]) -> Any:
        return self.jnp.result_type(*(x.dtype for x in arrays)) if arrays else self.jnp.result_type(float)

    def cast(self, x: Any, dtype: Any, like: Any) -> Any:
        return self.jnp.asarray(x, dtype)

    def device(self, x: Any) -> Any:
        """One device where it is told; an array over several, or a traced one, is brought together by JAX."""
        if isinstance(x, self.np.core.Tracer) or not x.committed or len(x.devices()) > 1:
            return None
        return next(iter(x.devices()))

    def from_numpy(self, x: Any) -> Any:
        return self.jnp.asarray(x)

    def to_numpy(self, x: Any) -> Any:
        return np.asarray(x)

    def in_float64(self) -> AbstractContextManager[Any]:
        return self.np.enable_x64(True)
