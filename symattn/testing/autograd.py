"""Derivatives of a function by the library that it is written in; neither PyTorch nor JAX is imported here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

Pullback = Callable[[Callable[..., Any], Sequence[Any], Sequence[int], Sequence[Any]], list[Any] | None]


def has_libraries() -> bool:
    """Whether a function may be written in PyTorch or JAX at all."""
    return any(library in sys.modules for library in ("torch", "jax"))


def pullback_of(fn: Callable[..., Any], result: Any, inputs: Sequence[Any]) -> Pullback | None:
    """How a function of these inputs with this result is differentiated; None where it is not."""
    if any(_is_of("torch", x) for x in inputs):
        return _by_torch
    results = result if isinstance(result, (tuple, list)) else [result]
    of_jax = any(_is_of("jax", y) or _is_of("jaxlib", y) for y in results)
    return _by_jax if of_jax or _has_rule_of_jax(fn, inputs) else None


def _has_rule_of_jax(fn: Callable[..., Any], inputs: Sequence[Any]) -> bool:
    """Whether a function of NumPy arrays calls one with ``jax.custom_vjp``, which gives NumPy arrays for them."""
    if "jax" not in sys.modules:
        return False
    try:
        traced = sys.modules["jax"].make_jaxpr(fn, static_argnums=_numbers(inputs))(*inputs)
    except Exception:  # a function of NumPy alone may refuse the tracers of JAX in any way
        return False
    return any(equation.primitive.name.startswith("custom_") for equation in traced.eqns)


def _numbers(inputs: Sequence[Any]) -> list[int]:
    return [k for k, x in enumerate(inputs) if not hasattr(x, "dtype")]


def _is_of(library: str, x: Any) -> bool:
    return any(kind.__module__.partition(".")[0] == library for kind in type(x).__mro__)


def _by_torch(
    fn: Callable[..., Any], inputs: Sequence[Any], places: Sequence[int], cotangents: Sequence[Any]
) -> list[Any] | None:
    """Gradients by autograd, for each input at one of the places; None where no output carries a graph."""
    torch = sys.modules["torch"]
    leaves = {k: inputs[k].detach().requires_grad_() for k in places}
    results = fn(*(leaves[k].clone() if k in leaves else x for k, x in enumerate(inputs)))  # a clone may be written to
    results = results if isinstance(results, (tuple, list)) else [results]
    pairs = [(y, c) for y, c in zip(results, cotangents, strict=True) if getattr(y, "requires_grad", False)]
    if not pairs:
        return None
    given = [torch.as_tensor(c, dtype=y.dtype, device=y.device) for y, c in pairs]
    found = torch.autograd.grad([y for y, _ in pairs], list(leaves.values()), given, allow_unused=True)
    return _at(len(inputs), list(leaves), found)


def _by_jax(
    fn: Callable[..., Any], inputs: Sequence[Any], places: Sequence[int], cotangents: Sequence[Any]
) -> list[Any] | None:
    """Gradients by ``jax.vjp``, for each input at one of the places."""
    jax = sys.modules["jax"]

    def of_places(*moved: Any) -> Any:
        at = dict(zip(places, moved, strict=True))
        return fn(*(at.get(k, x) for k, x in enumerate(inputs)))

    results, pull = jax.vjp(of_places, *(jax.numpy.asarray(inputs[k]) for k in places))
    alone = not isinstance(results, (tuple, list))
    pairs = zip([results] if alone else results, cotangents, strict=True)
    given = [jax.numpy.asarray(c, y.dtype) for y, c in pairs]
    return _at(len(inputs), places, pull(given[0] if alone else type(results)(given)))


def _at(count: int, places: Sequence[int], found: Sequence[Any]) -> list[Any]:
    at = dict(zip(places, found, strict=True))
    return [at.get(k) for k in range(count)]
