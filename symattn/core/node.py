"""The Tensor node: an operation, its inputs, its parameters and the shape that follows.

Nodes are plain interned objects: one meaning is one object, compared by identity and held weakly. They are not SymPy
expressions on purpose (as such, ``sympy.exp(Q)`` would silently become a scalar whose derivative is 0). No walk
recurses, so deep chains and heavily shared graphs are ordinary.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import sympy

from ..errors import NamingError, OperandError, ShapeError, described
from .elsewhere import WRITTEN
from .exact import as_scalar
from .late import late
from .sizes import Shape, as_size, show_shape

if TYPE_CHECKING:
    from .operation import Operation

_nodes: weakref.WeakValueDictionary[Any, Tensor] = weakref.WeakValueDictionary()
_interning = threading.Lock()
_set = object.__setattr__  # for the one place that makes a node; a node does not change afterwards
_NONE: frozenset[sympy.Symbol] = frozenset()
_NOWHERE: frozenset[Any] = frozenset()
_height = attrgetter("height")


class Graph:
    """A closed graph as a parameter: the body of a loop. It has sizes of its own, and no free leaf."""

    __slots__ = ()
    own_symbols: frozenset[sympy.Symbol]
    nonsmooth: tuple[str, ...]  # where the derivative of something in it does not exist, and what is taken there

    def substituted(self, symbols: Mapping[Any, Any]) -> Any:
        """The graph with values for its symbols."""
        raise NotImplementedError


class Tracing:
    """One step of a loop while it is written: what it is made of is of no use once the step is done."""

    __slots__ = ("is_open",)

    def __init__(self) -> None:
        self.is_open = True

    def __reduce__(self) -> Any:
        raise OperandError(_ESCAPED)


_ESCAPED = (
    "a state or an element of sa.scan is used outside of the step that it was handed to: give it back from the step, "
    "as a state or an output"
)


def check_open(x: Tensor) -> None:
    """Raise OperandError for a tensor that is made from the state of a loop whose step is done."""
    if x.tracings and not all(tracing.is_open for tracing in x.tracings):
        raise OperandError(_ESCAPED)


class Tensor:
    """A symbolic tensor: ``shape`` is a tuple of sizes, and operators build larger tensors in NumPy's reading.

    Two tensors are equal only if they are one node; mathematical equality is a question for a proof.

    >>> import symattn as sa
    >>> T, S, d = sa.sizes("T S d")
    >>> Q, K = sa.tensor("Q", T, d), sa.tensor("K", S, d)
    >>> Z = Q @ K.T / d
    >>> Z.shape
    (T, S)
    >>> Z is Q @ K.T / d
    True
    """

    __slots__ = (
        "__weakref__", "height", "holds_minus_infinity", "inputs", "kind", "op", "own_symbols", "params", "shape",
        "tracings",
    )  # fmt: skip
    __array_ufunc__ = None  # NumPy arrays hand over to our operators, which refuse them with a reason
    __iter__ = None
    __contains__ = None

    op: Operation
    inputs: tuple[Tensor, ...]
    params: dict[str, Any]
    shape: Shape
    height: int  # the longest way down to a leaf; bound indices are numbered by it
    kind: str  # "real", "binary" or "integer"
    holds_minus_infinity: bool
    own_symbols: frozenset[sympy.Symbol]  # that the parameters bring in, not those of the inputs
    tracings: frozenset[Tracing]  # the loops from whose states it is made

    def __new__(cls, *_: Any, **__: Any) -> Tensor:
        raise OperandError("a tensor is made by sa.tensor('Q', 'T d'), by a constant such as sa.eye, or by operations")

    def __bool__(self) -> bool:
        raise OperandError(
            f"{self.brief()} has no truth value: == asks whether two tensors are one node; "
            "compare entries by <, <=, >, >=, sa.equal"
        )

    def __setattr__(self, *_: Any) -> None:
        raise AttributeError(f"{self.brief()} cannot be changed: a tensor is shared by all expressions that use it")

    __delattr__ = __setattr__

    def __copy__(self, *memo: Any) -> Tensor:
        return self

    __deepcopy__ = __copy__

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise OperandError(
            f"{self.brief()} is a formula, not an array: write it with the functions of symattn and the operators, "
            "and make a NumPy function of it by sa.lambdify"
        )

    def __reduce__(self) -> Any:
        return _only, (unflatten, flatten([self]))

    def _sympy_(self) -> Any:
        if sys._getframe(1).f_code.co_name == "_do_eq_sympify":
            return sympy.Dummy()  # ``symbol == tensor`` is a question that has an answer: False
        raise sympy.SympifyError(_spelling(self))

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def name(self) -> str | None:
        """The name of a tensor or of a named intermediate, else None."""
        return self.params.get("name")

    @property
    def free_symbols(self) -> set[sympy.Symbol]:
        """The sizes and scalar symbols that the tensor depends on."""
        return {symbol for node in topological([self]) for symbol in node.own_symbols}

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The named tensors that the tensor is made from, in order of appearance."""
        return tuple(node for node in topological([self]) if node.op.name == "tensor")

    @property
    def intermediates(self) -> tuple[Tensor, ...]:
        """The named intermediates that the tensor is made from, itself included, each after those it uses.

        >>> import symattn as sa
        >>> O = sa.attention.scaled_dot_product(sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e"))
        >>> [x.name for x in O.intermediates]
        ['Z', 'P', 'O']
        """
        return tuple(node for node in topological([self]) if node.op.name == "let")

    def brief(self) -> str:
        """``Q[T, d]`` for messages: the name, else a short text such as ``(Q @ K.T)[T, S]`` or ``(... @ V)[T, d]``."""
        written = self.name or self._outline()
        return (f"({written})" if " " in written else written) + show_shape(self.shape)

    def has_more_nodes(self, count: int) -> bool:
        """Whether the printed tree has more nodes than that, found without a walk through all of a large graph."""
        waiting = [self]
        while waiting and count >= 0:
            node = waiting.pop()
            count -= 1
            waiting += () if node.name else node.inputs
        return count < 0

    def subs(self, *replacement: Any) -> Tensor:
        """Put values for sizes and scalar symbols, and tensors for tensors, all at once.

        ``x.subs({d: 64, Q: W})`` or ``x.subs(d, 64)``. Raises ShapeError where the new shapes do not fit and
        NamingError for a symbol that only looks like one of the expression's.

        >>> import symattn as sa
        >>> T, d = sa.sizes("T d")
        >>> sa.tensor("Q", T, d).subs(d, 64).shape
        (T, 64)
        """
        if len(replacement) != 2 and not (len(replacement) == 1 and isinstance(replacement[0], Mapping)):
            raise OperandError(f"subs takes a mapping, or an old and a new value, not {described(replacement)}")
        given = [replacement] if len(replacement) == 2 else replacement[0].items()
        pairs: dict[Any, Any] = {}
        for key, value in given:
            if not isinstance(key, (sympy.Symbol, sympy.MatrixSymbol, Tensor)):
                raise OperandError(f"only sizes, scalar symbols and tensors can be replaced, not {described(key)}")
            pairs[late("as_tensor")(key) if isinstance(key, sympy.MatrixSymbol) else key] = value
        nodes = {key: value for key, value in pairs.items() if isinstance(key, Tensor)}
        for x in (self, *(value for value in nodes.values() if isinstance(value, Tensor))):
            check_open(x)
        symbols = _symbol_values(self, {key: value for key, value in pairs.items() if key not in nodes})
        for key, value in nodes.items():
            if not isinstance(value, Tensor) or len(value.shape) != len(key.shape):
                raise OperandError(
                    f"{key.brief()} can only be replaced by a tensor of its rank, not {described(value)}"
                )
        return rebuild([self], nodes, symbols)[0]

    def replace(self, nodes: Mapping[Tensor, Tensor]) -> Tensor:
        """Put tensors for tensors, wherever they occur."""
        return self.subs(nodes)

    if TYPE_CHECKING:  # attached by `language`, so that imports run one way

        def _outline(self) -> str: ...
        def to_sympy(self) -> Any: ...
        def as_explicit(self, sizes: Any = ...) -> Any: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __neg__(self) -> Tensor: ...
        def __add__(self, other: Any) -> Tensor: ...

        __pos__ = __abs__ = __invert__ = __neg__
        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
        __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __and__ = __or__ = __add__
        __lt__ = __le__ = __gt__ = __ge__ = __add__
        T: Tensor
        mT: Tensor


def intern(op: Operation, inputs: tuple[Tensor, ...], params: dict[str, Any]) -> Tensor:
    """The one node for an operation on inputs; its shape is checked when it is first made."""
    for x in inputs:
        if x.tracings:
            check_open(x)
    key = (op, inputs, tuple(sorted(params.items())) if len(params) > 1 else tuple(params.items()))
    node = _nodes.get(key)
    if node is not None:
        return node
    node = object.__new__(Tensor)
    _set(node, "op", op)
    _set(node, "inputs", inputs)
    _set(node, "params", params)
    _set(node, "shape", _checked_shape(op, tuple(op.shape(*inputs, **params))))
    _set(node, "height", 1 + max(map(_height, inputs), default=-1))
    _set(node, "kind", _kind(op, inputs, params))
    _set(node, "holds_minus_infinity", _minus_infinity(node))
    _set(node, "own_symbols", _NONE.union(*map(_symbols_in, params.values())) if params else _NONE)
    _set(node, "tracings", _tracings(inputs, params))
    with _interning:
        return _nodes.setdefault(key, node)


def _tracings(inputs: tuple[Tensor, ...], params: dict[str, Any]) -> frozenset[Tracing]:
    own = params.get("tracing")
    found = [x.tracings for x in inputs if x.tracings]
    return _NOWHERE.union(*found, () if own is None else (own,)) if found or own is not None else _NOWHERE


def _checked_shape(op: Operation, shape: Shape) -> Shape:
    for size in shape:
        if size.is_number and not (size.is_Integer and size.is_positive):
            raise ShapeError(f"{op.title} would have the shape {show_shape(shape)}: a size is a positive whole number")
    return shape


def _kind(op: Operation, inputs: tuple[Tensor, ...], params: dict[str, Any]) -> str:
    if callable(op.kind):
        return op.kind(**params)
    if op.kind != "inputs":
        return op.kind
    kinds = {x.kind for x in inputs}
    return kinds.pop() if len(kinds) == 1 else "real"


def _minus_infinity(node: Tensor) -> bool:
    formula = node.params.get("formula")
    if formula is not None and formula.has(sympy.S.NegativeInfinity):
        return True
    rule = node.op.minus_infinity
    if callable(rule):
        return rule(*node.inputs, **node.params)
    for x in node.inputs:
        if x.holds_minus_infinity:
            if rule == "refused":
                raise refused_minus_infinity(node.op.title, x)
            return rule == "kept"
    return False


def refused_minus_infinity(title: str, x: Tensor) -> OperandError:
    """The error of an operation that takes no -oo, and met a tensor that may hold it."""
    return OperandError(
        f"{title} of {x.brief()}, which may hold -oo: -oo is allowed in additive masks only, "
        "that is, added to logits on their way into softmax, logsumexp or exp"
    )


def topological(
    roots: Iterable[Tensor], stop: Collection[Tensor] = (), inputs: Callable[[Tensor], Sequence[Tensor]] | None = None
) -> list[Tensor]:
    """All nodes below the roots, inputs before users; the walk does not go below ``stop``.

    ``inputs`` chooses which inputs of a node are followed, by default all.
    """
    order: dict[Tensor, None] = {}
    opened: set[Tensor] = set()  # whose inputs have been put on the stack
    stack = list(roots)[::-1]
    while stack:
        node = stack.pop()
        if node in order:
            continue
        if node not in opened and node not in stop and (below := node.inputs if inputs is None else inputs(node)):
            opened.add(node)
            stack.append(node)
            stack += below[::-1]
        else:
            order[node] = None
    return list(order)


def rebuild(
    roots: Sequence[Tensor], nodes: Mapping[Tensor, Tensor], symbols: Mapping[Any, Any] | None = None
) -> list[Tensor]:
    """The roots with ``nodes`` and ``symbols`` replaced, every shape checked again; shared parts stay shared."""
    new: dict[Tensor, Tensor] = {}
    for node in topological(roots, stop=nodes):
        if node in nodes:
            new[node] = nodes[node]
            continue
        changed = {k: _substitute(v, symbols) for k, v in node.params.items()} if symbols else {}
        new[node] = with_inputs(node, new, **changed)
    return [new[root] for root in roots]


def with_inputs(node: Tensor, new: Mapping[Tensor, Tensor], /, **changed: Any) -> Tensor:
    """The node on what stands for its inputs, with parameters changed: itself where all is as it was."""
    inputs = tuple(map(new.__getitem__, node.inputs))
    same = inputs == node.inputs and changed.items() <= node.params.items()
    return node if same else node.op(*inputs, **{**node.params, **changed})


def _substitute(value: Any, symbols: Mapping[Any, Any]) -> Any:
    if isinstance(value, sympy.Basic):
        return value.xreplace(symbols) if symbols.keys() & value.free_symbols else value
    if isinstance(value, tuple):
        return tuple(_substitute(part, symbols) for part in value)
    return value.substituted(symbols) if isinstance(value, Graph) else value


def _symbol_values(x: Tensor, values: Mapping[Any, Any]) -> dict[sympy.Symbol, sympy.Expr]:
    """Checked replacements of symbols: sizes by sizes, scalars by scalars."""
    if not values:
        return {}
    known = x.free_symbols
    checked = {}
    for key, value in values.items():
        if key not in known and any(symbol.name == key.name for symbol in known):
            raise NamingError(f"the symbol {key} differs from the expression's {key} in its assumptions: use that one")
        checked[key] = as_size(value) if key.is_integer and key.is_positive else as_scalar(value)
    return checked


@lru_cache(maxsize=4096)
def _symbols_in(value: Any) -> frozenset[sympy.Symbol]:
    if isinstance(value, sympy.Basic):
        return frozenset(
            s for s in value.free_symbols if isinstance(s, sympy.Symbol) and not isinstance(s, sympy.Dummy)
        )
    if isinstance(value, Graph):
        return value.own_symbols
    return _NONE.union(*map(_symbols_in, value)) if isinstance(value, tuple) else _NONE


Table = tuple[list[tuple[Any, tuple[int, ...], dict[str, Any]]], list[int]]  # operations, inputs, parameters; roots


def flatten(roots: Sequence[Tensor]) -> Table:
    """The graph as a flat table, and the places of the roots: pickling neither recurses nor repeats a shared node."""
    order = topological(roots)
    place = {node: number for number, node in enumerate(order)}
    rows = [(node.op, tuple(place[x] for x in node.inputs), node.params) for node in order]
    return rows, [place[root] for root in roots]


def unflatten(table: Table) -> list[Tensor]:
    """The roots of a flat table, as pickling stores it."""
    late("attach")  # operators and printing, in a process that has only unpickled
    nodes: list[Tensor] = []
    for op, inputs, params in table[0]:
        nodes.append(op.node(*(nodes[k] for k in inputs), **params))
    return [nodes[place] for place in table[1]]


def _only(restore: Any, table: Table) -> Tensor:
    """The one root of a table."""
    return restore(table)[0]


def _spelling(x: Tensor) -> str:
    """Which SymPy function met a tensor, and what to write instead: found on the call stack."""
    called = ""
    frame: Any = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("sympy."):
        owner = frame.f_locals.get("cls")
        if frame.f_code.co_name == "__new__" and isinstance(owner, type):
            called = owner.__name__
        elif not frame.f_code.co_name.startswith("_") and frame.f_code.co_name not in ("wrapper", "sympify"):
            called = frame.f_code.co_name
        frame = frame.f_back
    what = f"sympy.{called}" if called else "a SymPy function"
    public = called in sys.modules["symattn"].__all__
    other = "the formula with the functions of symattn, or sa.elementwise(sympy.Lambda(u, f(u)), x)"
    way_out = f"sa.{called}(x)" if public else WRITTEN.get(called, other)
    return f"{what} was given the tensor {x.brief()}, which is not a SymPy scalar: write {way_out}"
