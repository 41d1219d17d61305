"""Random terms of a wanted shape over few variables.

Few variables and small terms make it likely that two terms are equal, which is what soundness is tested on. A *world*
is a set of sizes that belong together, and variables of their shapes, declared with every kind of property.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

import symattn as sa
from symattn.core.sizes import as_shape, never_negative, same_shape, same_size
from symattn.errors import SymattnError
from symattn.ops.broadcasting import broadcast_to

n, m, h, d, r = sa.sizes("n m h d r")
Shape = tuple[Any, ...]


@dataclass(frozen=True)
class World:
    """Sizes, the shapes that terms have, and the variables by their shape."""

    sizes: tuple[Any, ...]
    shapes: tuple[Shape, ...]
    variables: Mapping[Shape, tuple[sa.Tensor, ...]]


def _world(sizes: str, shapes: Sequence[str]) -> World:
    every = as_shape([sizes])
    wanted = tuple(as_shape([s]) for s in shapes)
    variables: dict[Shape, tuple[sa.Tensor, ...]] = {}
    for a, size in enumerate(every):
        variables[(size,)] = (sa.tensor(f"x{a}", size), sa.tensor(f"w{a}", size, positive=True))
        variables[size, size] = _square(a, size)
        for b, other in enumerate(every):
            plain = sa.tensor(f"X{a}{b}", size, other)
            mask = sa.tensor(f"M{a}{b}", size, other, binary=True)
            variables[size, other] = (*variables.get((size, other), ()), plain, mask)
    for places in itertools.product(range(len(every)), repeat=3):
        shape = tuple(every[k] for k in places)
        variables[shape] = (sa.tensor("T{}{}{}".format(*places), *shape),)
    return World(every, wanted, variables)


def _square(a: int, size: Any) -> tuple[sa.Tensor, ...]:
    properties = {"Pi": "permutation", "Psi": "permutation", "U": "orthogonal", "A": "invertible", "S": "symmetric"}
    return tuple(sa.tensor(f"{name}{a}", size, size, **{p: True}) for name, p in properties.items())


WORLDS: Mapping[str, World] = {
    "square": _world("n", ["n n", "n n", "n", "n n n"]),
    "rectangular": _world("n m", ["n m", "m n", "n n", "n", "n m m"]),
    "parts": _world("n m n+m", ["n+m n+m", "n n+m", "n+m n", "n m", "n+m", "n n+m m"]),
    "edges": _world("n n+1", ["n n", "n+1 n+1", "n n+1", "n+1 n", "n"]),
    "heads": _world("h d h*d", ["h*d h*d", "h d", "d h", "h h*d", "d h*d", "h*d", "h d d"]),
    "copies": _world("n r n*r", ["n*r n*r", "n r", "n*r n", "n*r"]),
    "fixed": _world("n 2 3", ["n 2", "2 2", "2 3", "3 n", "2 3 n"]),
}


class Maker:
    """Makes random terms in one world; what was made before is used again at times, so that terms share parts."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world, self.rng = world, rng
        self.made: dict[Shape, list[sa.Tensor]] = {}
        self.names = iter(f"L{k}" for k in range(10**6))

    def term(self, shape: Shape, depth: int) -> sa.Tensor:
        """A random term of the shape, at most so many operations deep."""
        shape = tuple(shape)
        known = self.made.setdefault(shape, [])
        if depth <= 0 or self.rng.random() < 0.08:
            return self.leaf(shape)
        if known and self.rng.random() < 0.25:
            return self.rng.choice(known)
        for _ in range(8):
            try:
                x = self.rng.choice(_MAKERS)(self, shape, depth - 1)
            except SymattnError:
                continue
            if x is not None and same_shape(x.shape, shape):
                if self.rng.random() < 0.04:
                    x = sa.let(next(self.names), x)
                known.append(x)
                return x
        return self.leaf(shape)

    def leaf(self, shape: Shape) -> sa.Tensor:
        """A variable, or a tensor by index."""
        named = self.world.variables.get(shape, ())
        if named and self.rng.random() < 0.85:
            return self.rng.choice(named)
        formulas = _FORMULAS.get(len(shape), ())
        if not formulas:
            return sa.ones(*shape)
        return sa.from_index(shape, self.rng.choice(formulas))

    def size(self) -> Any:
        return self.rng.choice(self.world.sizes)

    def axis(self, shape: Shape) -> int:
        return self.rng.randrange(-len(shape), 0)


_FORMULAS: Mapping[int, Sequence[Callable[..., Any]]] = {
    1: (lambda i: i, lambda i: sympy.Rational(1) / (i + 1), lambda i: i < 1, lambda i: sympy.Eq(i, 1)),
    2: (
        lambda i, j: j <= i,
        lambda i, j: j < i,
        lambda i, j: sympy.Eq(i, j),
        lambda i, j: sympy.Eq(j, i + 1),
        lambda i, j: i - j,
        lambda i, j: i < n,
        lambda i, j: j < 1,
        lambda i, j: sympy.cos(i - 2 * j),
        lambda i, j: sympy.floor(j / 2),
    ),
    3: (lambda i, j, k: k <= j, lambda i, j, k: i + j - k),
}


def _with(shape: Shape, axis: int, *sizes: Any) -> Shape:
    place = len(shape) + axis
    return (*shape[:place], *sizes, *shape[place + 1 :])


def letters_of(size: Any) -> str:
    """A size as a part of a name."""
    return "".join(c for c in str(size) if c.isalnum())


# --- makers: each gives a term of the shape, or None where it has none ---


def _function(t: Maker, shape: Shape, depth: int) -> sa.Tensor:
    f = t.rng.choice([sa.exp, sa.exp, sa.tanh, sa.sigmoid, sa.relu, sa.sin, sa.abs, sa.sign, sa.softplus, _phi, _psi])
    return f(t.term(shape, depth))


def _phi(x: Any) -> sa.Tensor:
    return sa.unknown("phi", x)


def _psi(x: Any) -> sa.Tensor:
    return sa.unknown("psi", x, rowwise=True) if x.rank else sa.unknown("phi", x)


def _rooted(t: Maker, shape: Shape, depth: int) -> sa.Tensor:
    x = t.term(shape, depth)
    return t.rng.choice([lambda: sa.sqrt(x**2), lambda: sa.log(sa.exp(x)), lambda: sa.sqrt(sa.exp(x)), lambda: x**2])()


def _sum_of_two(t: Maker, shape: Shape, depth: int) -> sa.Tensor:
    a, b = t.term(shape, depth), t.term(shape, depth)
    return t.rng.choice([lambda: a + b, lambda: a - b, lambda: a - 2 * b, lambda: sa.maximum(a, b)])()


def _product_of_two(t: Maker, shape: Shape, depth: int) -> sa.Tensor:
    a, b = t.term(shape, depth), t.term(shape, depth)
    return t.rng.choice([lambda: a * b, lambda: a / sa.exp(b), lambda: a / (1 + b**2), lambda: a / b])()


def _broadcast(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if len(shape) < 2:
        return None
    a, b = t.term(shape, depth), t.term(shape[1:], depth)
    column = t.term(shape[:-1], depth)[..., None]
    return t.rng.choice([lambda: a + b, lambda: a * b, lambda: a * column, lambda: b + column])()


def _choice(t: Maker, shape: Shape, depth: int) -> sa.Tensor:
    a, b = t.term(shape, depth), t.term(shape, depth)
    condition = t.rng.choice([lambda: a < b, lambda: sa.equal(a, b), lambda: a >= 0, lambda: sa.equal(a, 0)])()
    return sa.where(condition, t.term(shape, depth), t.term(shape, depth))


def _scaled(t: Maker, shape: Shape, depth: int) -> sa.Tensor:
    return t.rng.choice([-1, 2, sympy.Rational(1, 2), 1 / sympy.sqrt(t.size())]) * t.term(shape, depth)


def _matmul(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if not shape:
        return None
    k = t.size()
    if len(shape) == 1:
        return t.term((*shape, k), depth) @ t.term((k,), depth)
    lead = shape[:-2] if t.rng.random() < 0.5 else ()
    return broadcast_to(t.term((*shape[:-1], k), depth) @ t.term((*lead, k, shape[-1]), depth), shape)


def _transposed(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if len(shape) < 2:
        return None
    axis = t.rng.randrange(-len(shape), -1)
    return sa.moveaxis(t.term(_with(_with(shape, axis), -1, shape[-1], shape[axis]), depth), -1, axis)


def _moved(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    """By a permutation, an orthogonal or an invertible matrix, or its transpose or inverse."""
    if not shape:
        return None
    k = shape[-2] if len(shape) > 1 else shape[-1]
    square = [x for x in t.world.variables.get((k, k), ()) if x.params["hypotheses"] and x.kind == "real"]
    if not square:
        return None
    by = t.rng.choice(square)
    return t.rng.choice([lambda: by, lambda: by.T, lambda: sa.inv(by)])() @ t.term(shape, depth)


def _inverse(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if len(shape) != 2 or not same_size(*shape):
        return None
    named = {x.params["hypotheses"]: x for x in t.world.variables.get(shape, ())}
    if not named:
        return None
    a, u = named["invertible",], t.rng.choice([named["orthogonal",], named["permutation",]])
    of = t.rng.choice([lambda: a, lambda: a @ u, lambda: u, lambda: 2 * a.T, lambda: sa.diag(sa.exp(a[0]))])()
    if t.rng.random() < 0.3:  # of a block, where the matrix has one
        for size in t.world.sizes:
            if same_size(size, sum(t.world.sizes[:2])) and same_size(shape[0], t.world.sizes[0]):
                of = named["invertible",].op(**{**a.params, "name": "B", "shape": (size, size)})[: shape[0], : shape[0]]
    return sa.inv(of)


def _reduced(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if len(shape) > 2:
        return None
    axis = t.rng.randrange(-len(shape) - 1, 0)
    place = len(shape) + 1 + axis
    x = t.term((*shape[:place], t.size(), *shape[place:]), depth)
    return t.rng.choice([sa.sum, sa.sum, sa.sum, sa.mean, sa.max, sa.min, sa.logsumexp])(x, axis=axis)


def _kept_reduction(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if not shape:
        return None
    f = t.rng.choice([sa.sum, sa.sum, sa.mean, sa.max])
    return broadcast_to(f(t.term(shape, depth), axis=t.axis(shape), keepdims=True), shape)


def _softmax(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if not shape:
        return None
    x, masks = t.term(shape, depth), [y for y in t.world.variables.get(shape, ()) if y.kind == "binary"]
    if masks and t.rng.random() < 0.4:
        return sa.softmax(x, where=t.rng.choice(masks))
    if len(shape) == 2 and same_size(*shape) and t.rng.random() < 0.3:
        return sa.softmax(x, where=sa.from_index(shape, lambda i, j: j <= i))
    return sa.softmax(x, axis=t.axis(shape))


def _einsum(t: Maker, shape: Shape, depth: int) -> sa.Tensor:
    out = "abc"[: len(shape)]
    sizes = {**dict(zip(out, shape, strict=True)), "k": t.size(), "l": t.size()}
    inside = t.rng.choice(["", "k", "k", "kl"])
    parts = ["".join(t.rng.sample(out + inside, t.rng.randint(1, min(3, len(out + inside))))) for _ in range(2)]
    parts = [p + p[-1] if len(p) < 3 and t.rng.random() < 0.1 else p for p in parts if p] or ["k"]
    missing = [c for c in out if not any(c in p for p in parts)]
    parts += ["".join(missing)] if missing else []
    inputs = [t.term(tuple(sizes[c] for c in p), depth) for p in parts]
    return sa.einsum(f"{','.join(parts)}->{out}", *inputs)


def _diagonal(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if len(shape) != 2 or not same_size(*shape):
        return None
    return sa.diag(t.term(shape[:1], depth))


def _outer(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    return sa.outer(t.term(shape[:1], depth), t.term(shape[1:], depth)) if len(shape) == 2 else None


def _scanned(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if not shape:
        return None
    return sa.cumsum(t.term(shape, depth), axis=t.axis(shape), reverse=t.rng.random() < 0.3)


def _triangle(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    return (
        t.rng.choice([sa.tril, sa.triu])(t.term(shape, depth), t.rng.choice([0, 0, -1, 1])) if len(shape) > 1 else None
    )


def _rearranged(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if not shape:
        return None
    x, axis = t.term(shape, depth), t.axis(shape)
    return t.rng.choice([lambda: sa.flip(x, axis), lambda: sa.shift(x, t.rng.choice([1, -1]), axis=axis)])()


def _joined(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if not shape:
        return None
    axis, either = t.axis(shape), (*t.world.sizes, sympy.S.One)
    pairs = [(a, b) for a in either for b in either if same_size(a + b, shape[axis])]
    if not pairs:
        return None
    a, b = t.rng.choice(pairs)
    return sa.concat([t.term(_with(shape, axis, a), depth), t.term(_with(shape, axis, b), depth)], axis=axis)


def _sliced(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if not shape:
        return None
    axis, whole = t.axis(shape), t.size()
    if not never_negative(whole - shape[axis]):
        return None
    x = t.term(_with(shape, axis, whole), depth)
    start = t.rng.choice([0, sympy.expand(whole - shape[axis])])
    place = len(shape) + axis
    return x[(slice(None),) * place + (slice(start, sympy.expand(start + shape[axis])),)]


def _one_place(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if len(shape) > 2:
        return None
    axis = t.rng.randrange(-len(shape) - 1, 0)
    place = len(shape) + 1 + axis
    x = t.term((*shape[:place], t.size(), *shape[place:]), depth)
    return x[(slice(None),) * place + (t.rng.choice([0, -1]),)]


def _split(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if len(shape) < 2:
        return None
    axis = t.rng.randrange(-len(shape) + 1, 0)
    a, b = shape[axis - 1], shape[axis]
    whole = _with(_with(shape, axis - 1), axis, sympy.expand(a * b))
    return sa.split_axis(t.term(whole, depth), axis, (a, b)) if sympy.expand(a * b) in t.world.sizes else None


def _merged(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if not shape:
        return None
    axis = t.axis(shape)
    pairs = [(a, b) for a in t.world.sizes for b in t.world.sizes if same_size(sympy.expand(a * b), shape[axis])]
    if not pairs:
        return None
    a, b = t.rng.choice(pairs)
    place = len(shape) + axis
    make = t.rng.choice(["merge", "merge", "repeat", "tile"])
    if make == "merge":
        return sa.merge_axes(t.term(_with(shape, axis, a, b), depth), (place, place + 1))
    return (sa.repeat if make == "repeat" else sa.tile)(t.term(_with(shape, axis, a), depth), b, axis)


def _taken(t: Maker, shape: Shape, depth: int) -> sa.Tensor | None:
    if not shape:
        return None
    axis, k = t.axis(shape), t.size()
    index = sa.tensor(f"g{t.world.sizes.index(k)}_{letters_of(shape[axis])}", shape[axis], integer=True)
    return sa.take(t.term(_with(shape, axis, k), depth), index, axis)


_MAKERS: Sequence[Callable[[Maker, Shape, int], sa.Tensor | None]] = (
    *(_function, _rooted, _sum_of_two, _sum_of_two, _product_of_two, _broadcast, _choice, _scaled),
    *(_matmul, _matmul, _matmul, _transposed, _transposed, _moved, _moved, _moved, _inverse, _reduced, _reduced),
    *(_kept_reduction, _softmax, _softmax, _einsum, _diagonal, _outer, _scanned, _triangle, _rearranged, _joined),
    *(_joined, _sliced, _sliced, _one_place, _split, _merged, _merged, _taken),
)


__all__ = ["WORLDS", "Maker", "World", "letters_of"]
