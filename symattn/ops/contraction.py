"""Products that sum: matmul, outer, einsum, and the diagonal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy

from ..core.boxes import Box, Code, Fence, Script, Sign, commas, juxtaposed, row
from ..core.boxes import function as named_function
from ..core.node import Tensor
from ..core.operation import Operation, ShapeRule
from ..core.sizes import Shape, same_size
from ..errors import OperandError, ShapeError, described
from ..scalars.formulas import bound
from .arithmetic import multiply, sum_of
from .broadcasting import broadcast_index, broadcast_to_op, expand_axes, loops_of, named_sizes, unbroadcast
from .domain import vanished
from .index import linear, moved, without_new_axes
from .layout import matrix_transpose
from .leaves import as_tensor, eye, is_zero, ones
from .notation import Binding, Written, call, fenced, flipped, function, source

Spec = tuple[tuple[str, ...], str]  # a letter for each axis of the inputs and of the result, as einsum has them


def _product(name: str, spec: Callable[..., Spec], shape: ShapeRule, back: Any, **record: Any) -> Operation:
    """A sum of products: a tangent has a term for each factor that moves, and a product with zeros is zeros.

    ``spec(**params)`` are the letters of the axes that take part, those in front broadcast; ``back`` is the vjp of the
    former, which is summed over what was broadcast.
    """

    def entry(read: Any, index: Any, node: Tensor) -> Any:
        ins, out = spec(**node.params)
        loops, own = index[: len(index) - len(out)], index[len(index) - len(out) :]
        at = dict(zip(out, own, strict=True))
        limits: list[Any] = []
        factors = []
        for k, (labels, x) in enumerate(zip(ins, node.inputs, strict=True)):
            lead = x.rank - len(labels)
            for label, size in zip(labels, x.shape[lead:], strict=True):
                if label not in at:
                    limits.append(bound(node, len(limits), size))
                    at[label] = limits[-1][0]
            factors.append(read(k, (*broadcast_index(x.shape[:lead], loops), *(at[label] for label in labels))))
        return sympy.Sum(sympy.Mul(*factors), *limits) if limits else sympy.Mul(*factors)

    def vjp(g: Tensor, y: Tensor, *inputs: Tensor, **params: Any) -> tuple[Tensor, ...]:
        cores = tuple(map(len, spec(**params)[0]))
        loops = loops_of(inputs, cores)
        assert loops is not None
        parts = zip(back(g, *inputs, **params), inputs, cores, strict=True)
        return tuple(unbroadcast(part, x.shape, loops + x.shape[x.rank - own :], own) for part, x, own in parts)

    def jvp(tangents: Sequence[Tensor | None], y: Tensor, *inputs: Tensor, **params: Any) -> Tensor:
        moving = [(k, t) for k, t in enumerate(tangents) if t is not None]
        return sum_of([made(*inputs[:k], t, *inputs[k + 1 :], **params) for k, t in moving])

    def build(*inputs: Tensor, **params: Any) -> Tensor:
        whole = made.node(*inputs, **params)
        return vanished(whole) if any(map(is_zero, inputs)) else whole

    made = Operation(name, shape, entry, vjp, jvp, **{"build": build, **record})
    return made


# --- matmul ---

Core = tuple[int, int]  # how many axes of each factor belong to the product; those in front broadcast


def _matmul_shape(a: Tensor, b: Tensor, core: Core) -> Shape:
    inner = b.shape[-core[1]]
    if not same_size(a.shape[-1], inner):
        raise ShapeError(
            f"matmul of {a.brief()} and {b.brief()}: axis -1 of the first has size {a.shape[-1]}, "
            f"axis -{core[1]} of the second has size {inner}{_transposed_hint(a, b, core)}"
        )
    loops = loops_of((a, b), core)
    if loops is None:
        raise ShapeError(f"matmul of {a.brief()} and {b.brief()}: the axes in front do not broadcast")
    return loops + (a.shape[-2:-1] if core[0] == 2 else ()) + (b.shape[-1:] if core[1] == 2 else ())


def _transposed_hint(a: Tensor, b: Tensor, core: Core) -> str:
    def turned(x: Tensor, which: str) -> str:
        mark = ".T" if x.rank == 2 else ".mT"
        return f"; did you mean {x.name}{mark}?" if x.name else f"; did you mean {mark} of the {which}?"

    if core[1] == 2 and same_size(a.shape[-1], b.shape[-1]):
        return turned(b, "second")
    return turned(a, "first") if core[0] == 2 and same_size(a.shape[-2], b.shape[-core[1]]) else ""


def _matmul_spec(core: Core) -> Spec:
    left, right = "ik"[-core[0] :], "kj"[: core[1]]
    return (left, right), left[:-1] + right[1:]


def _matmul_back(g: Tensor, a: Tensor, b: Tensor, core: Core) -> tuple[Tensor, Tensor]:
    if core == (2, 2):
        return matmul_of(g, matrix_transpose(b), core), matmul_of(matrix_transpose(a), g, core)
    if core == (2, 1):
        return outer_op(g, b), matmul_of(matrix_transpose(a), g, core)
    if core == (1, 2):
        return matmul_of(b, g, (2, 1)), outer_op(a, g)
    column = expand_axes(g, (-1,))
    return multiply(column, b), multiply(column, a)


def _matmul_notation(p: Any, node: Tensor) -> Written:
    a, b = node.inputs
    core = node.params["core"]
    if p.code and core != (min(a.rank, 2), min(b.rank, 2)):
        return call(p, "matmul", node, core=core)
    if p.code:
        left, right = p.operand(a, Binding.PRODUCT), p.operand(b, Binding.PRODUCT + 1)
        return row(left, Sign("@", "product"), right), Binding.PRODUCT
    if core == (1, 2):  # a value of rank 1 is a column
        left = fenced(flipped(p, b), Binding.PRODUCT)
        return juxtaposed(left, p.operand(a, Binding.PRODUCT)), Binding.PRODUCT
    left = fenced(flipped(p, a), Binding.PRODUCT) if core[0] == 1 else p.operand(a, Binding.PRODUCT)
    return juxtaposed(left, p.operand(b, Binding.PRODUCT + 1)), Binding.PRODUCT


matmul_op = _product(
    "matmul",
    spec=_matmul_spec,
    shape=_matmul_shape,
    back=_matmul_back,
    numpy=lambda code, node, a, b: code.matmul(node, a, b),
    notation=_matmul_notation,
    bounded="each term of the sum, or a mean with weights that sum to 1",
    reason="matrix product rule",
    called="the matrix product",
    build=lambda a, b, core: _matmul(a, b, core),
)


def _matmul(a: Tensor, b: Tensor, core: Core) -> Tensor:
    """A product with zeros is zeros, and a factor is not repeated along axes that the other one has."""
    if is_zero(a) or is_zero(b):
        return vanished(matmul_op.node(a, b, core=core))
    if broadcast_to_op in (a.op, b.op) and (loops := loops_of((a, b), core)):
        if loops_of((bare := _once(a, core[0]), b), core) == loops:
            a = bare
        if loops_of((a, bare := _once(b, core[1])), core) == loops:
            b = bare
    return matmul_op.node(a, b, core=core)


def _once(x: Tensor, own: int) -> Tensor:
    """The factor before it was repeated along axes in front of its own."""
    if x.op is not broadcast_to_op or x.inputs[0].shape[-own:] != x.shape[-own:]:
        return x
    return without_new_axes(x.inputs[0])


def matmul_of(a: Tensor, b: Tensor, core: Core) -> Tensor:
    """The product with ``core`` axes of each factor taking part."""
    return matmul_op(a, b, core=core)


def matmul(a: Any, b: Any) -> Tensor:
    """``a @ b``: matrix products of the last two axes, vectors where the rank is 1, leading axes broadcast."""
    a, b = as_tensor(a), as_tensor(b)
    if not a.rank or not b.rank:
        raise ShapeError(f"matmul of {a.brief()} and {b.brief()}: a rank-0 tensor has no axis to sum; write *")
    return matmul_of(a, b, (min(a.rank, 2), min(b.rank, 2)))


# --- outer ---


def _outer_shape(a: Tensor, b: Tensor) -> Shape:
    loops = loops_of((a, b), (1, 1))
    if loops is None or not a.rank or not b.rank:
        raise ShapeError(f"outer of {a.brief()} and {b.brief()}: it takes two vectors")
    return (*loops, a.shape[-1], b.shape[-1])


def _outer_notation(p: Any, node: Tensor) -> Written:
    if p.code:
        return call(p, "outer", node)
    a, b = node.inputs
    return juxtaposed(p.operand(a, Binding.POWER), fenced(flipped(p, b), Binding.PRODUCT)), Binding.PRODUCT


outer_op = _product(
    "outer",
    spec=lambda: (("i", "j"), "ij"),
    shape=_outer_shape,
    back=lambda g, a, b: (matmul_of(g, b, (2, 1)), matmul_of(matrix_transpose(g), a, (2, 1))),
    numpy=lambda code, node, a, b: code.outer(node, a, b),
    notation=_outer_notation,
    reason="product rule for an outer product",
)


def outer(a: Any, b: Any) -> Tensor:
    """The outer product of two vectors, ``y[i, j] = a[i] * b[j]``.

    Raises ShapeError for what is not of rank 1.

    >>> import symattn as sa
    >>> sa.outer(sa.tensor("a", "n"), sa.tensor("b", "m")).shape
    (n, m)
    """
    a, b = as_tensor(a), as_tensor(b)
    if a.rank != 1 or b.rank != 1:
        raise ShapeError(f"outer of {a.brief()} and {b.brief()}: it takes two vectors")
    return outer_op(a, b)


# --- einsum ---


def _label_sizes(inputs: Sequence[Tensor], spec: Spec) -> dict[str, sympy.Expr]:
    def what() -> str:
        return f"einsum {_spec_text(spec)!r} of {', '.join(x.brief() for x in inputs)}: the label"

    return named_sizes(inputs, spec[0], what)


def _spec_text(spec: Spec) -> str:
    return f"{','.join(spec[0])}->{spec[1]}"


def label_roles(a: str, b: str, out: str) -> tuple[list[str], ...] | None:
    """The labels of two factors: in both and kept, in both and summed, of the first alone, of the second alone.

    None where a label occurs twice in a factor, or is summed in one factor alone.
    """
    batch, summed = [c for c in out if c in a and c in b], [c for c in a if c in b and c not in out]
    rows, columns = [c for c in out if c in a and c not in b], [c for c in out if c in b and c not in a]
    plain = all(len(set(s)) == len(s) == len(batch + summed + own) for s, own in ((a, rows), (b, columns)))
    return (batch, summed, rows, columns) if plain else None


def _einsum_shape(*inputs: Tensor, spec: Spec) -> Shape:
    sizes, loops = _label_sizes(inputs, spec), loops_of(inputs, map(len, spec[0]))
    if loops is None:
        raise ShapeError(f"einsum {_spec_text(spec)!r}: the axes in front do not broadcast")
    return loops + tuple(sizes[label] for label in spec[1])


def _einsum_back(g: Tensor, k: int, inputs: Sequence[Tensor], spec: Spec) -> Tensor:
    """The same einsum with the cotangent in the place of input k; a label that only k has is spread by ones."""
    ins, out = spec
    sizes = _label_sizes(inputs, spec)
    spare = iter(c for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in sizes)
    factors, labels = [g], [out]
    for other, x in enumerate(inputs):
        if other != k:
            factors.append(x)
            labels.append(ins[other])
    target = ""
    for label in ins[k]:
        if label in target:  # a diagonal: the repeated axis is tied to the first by an identity
            again = next(spare)
            factors.append(eye(sizes[label]))
            labels.append(label + again)
            label = again
        elif not any(label in known for known in labels):
            factors.append(ones(sizes[label]))
            labels.append(label)
        target += label
    return einsum_op(*factors, spec=(tuple(labels), target))


def _einsum_notation(p: Any, node: Tensor) -> Written:
    ins, out = node.params["spec"]
    if p.code:
        spec = Code(f'"{_spec_text((ins, out))}"')
        return source("einsum", spec, *(p.operand(x, Binding.OR) for x in node.inputs)), Binding.ATOM
    labels = [sympy.Symbol(c, integer=True) for c in dict.fromkeys("".join(ins) + out)]
    drawn = p.index_names(node, sympy.S.Zero, labels)  # not those of sizes
    letter = {str(c): p.scalar(index) for c, index in zip(labels, drawn, strict=True)}

    def entry(base: Box, at: str) -> Box:
        return Script(base, row(*(letter[c] for c in at))) if at else base

    summed = sorted({c for at in ins for c in at} - set(out))
    factors = (entry(p.operand(x, Binding.ATOM), at) for at, x in zip(ins, node.inputs, strict=True))
    signs = [Script(Sign("∑", "large"), commas(letter[c] for c in summed))] if summed else []
    total = row(*signs, juxtaposed(*factors))
    return (entry(Fence(total, "[", "]"), out) if out else Fence(total)), Binding.ATOM


einsum_op = _product(
    "einsum",
    spec=lambda spec: spec,
    shape=_einsum_shape,
    back=lambda g, *inputs, spec: [_einsum_back(g, k, inputs, spec) for k in range(len(inputs))],
    numpy=lambda code, node, *inputs: code.einsum(node, inputs),
    notation=_einsum_notation,
    reason="product rule for a contraction",
)


def einsum(subscripts: str, *inputs: Any) -> Tensor:
    """A sum of products over labelled axes, ``einsum("htd,hsd->hts", Q, K)``, as in NumPy without ellipsis.

    Raises OperandError for subscripts that cannot be read and ShapeError for labels whose sizes differ.

    >>> import symattn as sa
    >>> Q, K = sa.tensor("Q", "h T d"), sa.tensor("K", "h S d")
    >>> sa.einsum("htd,hsd->hts", Q, K).shape
    (h, T, S)
    """
    operands = tuple(map(as_tensor, inputs))
    if not isinstance(subscripts, str):
        raise OperandError(f"einsum takes its subscripts as text first, not {described(subscripts)}")
    left, arrow, out = subscripts.replace(" ", "").partition("->")
    ins = tuple(left.split(","))
    if not arrow:  # NumPy's implicit form: the labels that occur once, in alphabetical order
        out = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    letters = set(left.replace(",", "") + out)
    if not all(c.isascii() and c.isalpha() for c in letters) or len(set(out)) < len(out) or not set(out) <= set(left):
        raise OperandError(f"einsum: {described(subscripts)} is not of the form 'htd,hsd->hts'")
    if len(ins) != len(operands) or any(len(labels) != x.rank for labels, x in zip(ins, operands, strict=False)):
        shown = ", ".join(x.brief() for x in operands)
        raise ShapeError(f"einsum {described(subscripts)} of {shown}: give one label an axis")
    return einsum_op(*operands, spec=(ins, out))


# --- diagonals ---

diag_op: Operation = moved(
    "diag",
    shape=lambda x: (*x.shape, x.shape[-1]),
    entry=lambda read, index, node: read(0, index[:-1]) * sympy.KroneckerDelta(index[-2], index[-1]),
    back=lambda g, x: diagonal_op(g),
    numpy=lambda code, node, x: code.helper("diag", x),
    notation=lambda p, node: call(p, "diag", node),
    reason="only the diagonal of the cotangent counts",
    minus_infinity="refused",
)


def _square(x: Tensor, what: str) -> Tensor:
    if x.rank < 2 or not same_size(x.shape[-1], x.shape[-2]):
        raise ShapeError(f"{what} of {x.brief()}: the last two sizes must be the same")
    return x


diagonal_op: Operation = moved(
    "diagonal",
    shape=lambda x: _square(x, "diag").shape[:-1],
    entry=lambda read, index, node: read(0, (*index, index[-1])),
    back=lambda g, x: diag_op(g),
    numpy=lambda code, node, x: f"np.diagonal({x}, axis1=-2, axis2=-1)",
    notation=lambda p, node: call(p, "diag", node),
    reason="the cotangent stands on the diagonal",
)


def diag(x: Any) -> Tensor:
    """The diagonal matrix of a vector, or the diagonal of a square matrix, as ``np.diag``.

    Raises ShapeError for other ranks and for a matrix that is not square.

    >>> import symattn as sa
    >>> sa.diag(sa.tensor("p", "n")).shape, sa.diag(sa.tensor("A", "n n")).shape
    ((n, n), (n,))
    """
    operand = as_tensor(x)
    if operand.rank not in (1, 2):
        raise ShapeError(f"diag of {operand.brief()}: it takes a vector or a square matrix")
    return diag_op(operand) if operand.rank == 1 else diagonal_op(operand)


def _trace_entry(read: Any, index: Any, node: Tensor) -> Any:
    k, low, high = bound(node, 0, node.inputs[0].shape[-1])
    return sympy.Sum(read(0, (*index, k, k)), (k, low, high))


trace_op = linear(
    "trace",
    shape=lambda x: _square(x, "trace").shape[:-2],
    entry=_trace_entry,
    back=lambda g, x: multiply(expand_axes(g, (-2, -1)) if g.rank else g, eye(x.shape[-1])),
    numpy=lambda code, node, x: f"np.trace({x}, axis1=-2, axis2=-1)",
    notation=function("trace", named_function("tr")),
    reason="the trace has the identity as its gradient",
)


def trace(x: Any) -> Tensor:
    """The trace of a square matrix, ``sum_i x[i, i]``, of the last two axes.

    Raises ShapeError if they differ.

    >>> import symattn as sa
    >>> sa.trace(sa.tensor("A", "n n")).shape
    ()
    """
    return trace_op(as_tensor(x))
