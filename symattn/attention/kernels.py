"""Attention as a weighted average: pooling, kernel regression, associative memory, and weights by exponentials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from ..core.arguments import few, one_of
from ..core.node import Tensor
from ..core.sizes import same_shape
from ..errors import OperandError, ShapeError, described
from ..ops import rows
from ..ops.arithmetic import multiply
from ..ops.layout import matrix_transpose
from ..ops.leaves import as_tensor, named, ones
from ..ops.logic import equal, where
from ..ops.opaque import stop_gradient
from ..ops.pointwise import abs, exp, relu, sigmoid, sqrt
from .dot_product import attention_pooling, probabilities, scores
from .normalisers import masked
from .options import Masking, one_query, operand, same
from .similarities import differences, points, positive, squared

Kernel = str | Callable[[Tensor], Tensor]


# --- pooling ---


def average_pooling(V: Any, T: Any = None) -> Tensor:
    """The mean of the values, ``alpha[i, j] = 1/S``: attention that looks at neither queries nor keys.

    V[.., S, e]; O[.., e], or the same row T times, O[.., T, e]. Raises ShapeError for values of one axis.
    Source: the constant estimate of Nadaraya 1964 and Watson 1964 for an infinite bandwidth.

    >>> import symattn as sa
    >>> print(sa.attention.average_pooling(sa.tensor("V", "S e"), "T").inputs[0])
    ones(T, S) / S @ V
    """
    values = operand("average_pooling", V, 2, "V[.., S, e]")
    size = values.shape[-2]
    return attention_pooling((ones(size) if T is None else ones(T, size)) / size, values)


# --- kernel regression ---


# Of the squared distances D, the distances r and the bandwidth h: the logarithm of a kernel that is nowhere 0, or a
# kernel. The tensors of distances that a kernel does not use are not computed.
Formula = Callable[[Tensor, Tensor, Tensor], Tensor]
_LOGARITHMS: dict[str, Formula] = {
    "gaussian": lambda D, r, h: -D / (2 * h**2),
    "laplace": lambda D, r, h: -r / h,
}
_WEIGHTS: dict[str, Formula] = {
    "epanechnikov": lambda D, r, h: relu(1 - D / h**2),
    "boxcar": lambda D, r, h: where(D <= h**2, 1, 0),
    "triangular": lambda D, r, h: relu(1 - r / h),
}


def kernel_regression(
    X: Any, Z: Any, Y: Any, *, kernel: Kernel = "gaussian", bandwidth: Any = 1, **masking: Unpack[Masking]
) -> Tensor:
    """Nadaraya-Watson regression, ``O[i] = sum_j k((x_i - z_j)/h) y_j / sum_j k((x_i - z_j)/h)``.

    Queries X[.., T, d], keys Z[.., S, d], values Y[.., S, e]; O[.., T, e]. On a line X[T] and Z[S]; with Y[S] the
    result is O[.., T]. ``bandwidth`` is a positive scalar h. ``kernel`` is ``"gaussian"`` exp(-u^2/2) (the
    default), ``"laplace"`` exp(-u), ``"epanechnikov"`` max(1 - u^2, 0), ``"boxcar"`` (1 for u <= 1),
    ``"triangular"`` max(1 - u, 0), where u is the Euclidean length of (x - z)/h, or a function of the tensor of all
    (x_i - z_j)/h that gives the weights [.., T, S]. The first two are a softmax, which does not overflow. Where all
    weights of a row are 0, O is 0. By X and Z, kernels of u itself have no derivative at u = 0: it is not finite
    there, and 0 on a line. A mask hides keys (the query itself, to leave one out). Raises ShapeError for shapes
    that do not fit, OperandError for another kernel.
    Source: Nadaraya 1964, Watson 1964.

    >>> import symattn as sa
    >>> x, z, y = sa.tensor("x", "T"), sa.tensor("z", "S"), sa.tensor("y", "S")
    >>> for u in sa.attention.kernel_regression(x, z, y, bandwidth=sa.tensor("h")).intermediates:
    ...     print(u.name, "=", u.inputs[0])
    D = (x[:, None] - z)**2
    P = softmax(-D / (2 * h**2))
    O = P @ y
    """
    return _pooled("kernel_regression", _kernel_weights(X, Z, kernel, bandwidth, masking), Y)


def kernel_regression_dot(X: Any, Z: Any, Y: Any, *, bandwidth: Any = 1, **masking: Unpack[Masking]) -> Tensor:
    """Gaussian kernel regression by dot products, ``softmax((2 * X @ Z.mT - |z|^2) / (2 * h^2)) @ Y``.

    Shapes are those of ``kernel_regression``, to which it is equal: |x|^2 is common to a row and cancels. Faster,
    with fewer digits where points are far from 0 and close to each other. Raises as ``kernel_regression``.
    Source: Nadaraya 1964, Watson 1964, with the square multiplied out.

    >>> import symattn as sa
    >>> X, Z, Y = sa.tensor("X", "T d"), sa.tensor("Z", "S d"), sa.tensor("Y", "S e")
    >>> f, g = sa.attention.kernel_regression, sa.attention.kernel_regression_dot
    >>> sa.prove(f(X, Z, Y), g(X, Z, Y)).status
    'proved'
    """
    what, h = "kernel_regression_dot", _bandwidth("kernel_regression_dot", bandwidth)
    x, z = points(what, X, Z)
    one_query(what, x, z)
    if z.rank == 1:
        x, z = x[..., None], z[:, None]
    single = x.rank == 1
    norms = rows.sum(z**2, axis=-1, keepdims=not single)
    affinities = 2 * (x @ matrix_transpose(z)) - (norms if single else matrix_transpose(norms))
    return _pooled(what, probabilities(named("A", affinities / (2 * h**2)), **masking), Y)


def _kernel_weights(X: Any, Z: Any, kernel: Kernel, bandwidth: Any, masking: Masking) -> Tensor:
    what, h = "kernel_regression", _bandwidth("kernel_regression", bandwidth)
    one_query(what, *points(what, X, Z))
    u, on_a_line = differences(what, X, Z), as_tensor(Z).rank == 1
    if callable(kernel):
        scaled = named("U", u / h)
        weights, meant = as_tensor(kernel(scaled)), u.shape if on_a_line else u.shape[:-1]
        if not same_shape(weights.shape, meant):
            listed = ", ".join(map(str, meant))
            raise ShapeError(f"{what}: of {scaled.brief()} the kernel makes {weights.brief()}, not weights [{listed}]")
    else:
        name = one_of(what, "kernel", kernel, *_LOGARITHMS, *_WEIGHTS)
        D = squared(u, on_a_line)
        r = named("r", abs(u) if on_a_line else sqrt(D))
        if name in _LOGARITHMS:
            return probabilities(_LOGARITHMS[name](D, r, h), **masking)
        weights = _WEIGHTS[name](D, r, h)
    shown = named("W", masked(what, weights, masking))
    total = named("s", rows.sum(shown, axis=-1, keepdims=shown.rank > 1))
    return named("P", shown / where(equal(total, 0), 1, total))


def _bandwidth(what: str, h: Any) -> Tensor:
    made = positive(what, "the bandwidth", h)
    if made.rank:
        raise ShapeError(f"{what}: the bandwidth is a scalar, not {made.brief()}")
    return made


def _pooled(what: str, weights: Tensor, Y: Any) -> Tensor:
    """The average of the values; a vector of values has no features."""
    values = operand(what, Y, 1, "Y[.., S, e] or Y[S]")
    if values.rank > 1:
        return attention_pooling(weights, values)
    same(what, weights, -1, values, -1, "the number of keys and values")
    return named("O", weights @ values)


# --- weights by exponentials, memory, and attention without products ---


def compatibility(Q: Any, K: Any, *, scale: Any = None) -> Tensor:
    """The weights of attention by their exponentials, ``P[i, j] = exp(Z[i, j]) / sum_k exp(Z[i, k])``.

    Q[.., T, d], K[.., S, d]; P[.., T, S]. It is equal to ``probabilities(scores(Q, K))``, which is the form to
    compute: here a score above 709 overflows in float64. ``scale`` is 1/sqrt(d) by default. Raises ShapeError for
    widths that differ.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.

    >>> import symattn as sa
    >>> print(sa.attention.compatibility(sa.tensor("Q", "T d"), sa.tensor("K", "S d")).inputs[0])
    E / rowsum(E)
    """
    z = scores(Q, K, scale=scale)
    weights = named("E", exp(z))
    return named("P", weights / rows.sum(weights, axis=-1, keepdims=z.rank > 1))


def hopfield(Q: Any, M: Any, beta: Any, *, steps: int = 1, **masking: Unpack[Masking]) -> Tensor:
    """A modern Hopfield network, whose states move to stored patterns: ``Q <- softmax(beta * Q @ M.mT) @ M``.

    States Q[.., T, d] or one state Q[d], patterns M[.., S, d]; O has the shape of Q. ``beta`` is a scalar,
    ``steps`` how often the states move (default 1: attention with M as keys and as values). Raises ShapeError for
    widths that differ and OperandError for ``steps`` that are not a positive integer.
    Source: Ramsauer et al. 2020 (arXiv:2008.02217), equation 3.

    >>> import symattn as sa
    >>> O = sa.attention.hopfield(sa.tensor("q", "d"), sa.tensor("M", "S d"), sa.tensor("beta"), steps=2)
    >>> print(O)
    P_2 @ M
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise OperandError(f"hopfield: steps is a positive integer, not {described(steps)}")
    few("hopfield", steps, "steps", 1000)
    state = as_tensor(Q)
    for _ in range(steps):
        state = attention_pooling(probabilities(scores(state, M, scale=beta), **masking), M)
    return state


def aft(Q: Any, K: Any, V: Any, W: Any) -> Tensor:
    """The attention-free transformer, ``sigmoid(Q) * (exp(W) @ (exp(K) * V)) / (exp(W) @ exp(K))``.

    Q[.., T, d], K[.., S, d], V[.., S, d], W[.., T, S]; O[.., T, d]. W is the bias of each pair of positions, and
    may hold -oo as a mask that leaves a key in every row. For each feature c it is a softmax over the keys of W[i,
    j] + K[j, c]. The largest entry of each row of W and of each column of K is taken off, which cancels, so nothing
    overflows; where no key comes within 700 of both, the result is NaN. Raises ShapeError for shapes that do not
    fit.
    Source: Zhai et al. 2021 (arXiv:2105.14103), equation 2.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S d")
    >>> for x in sa.attention.aft(Q, K, V, sa.tensor("W", "T S")).intermediates:
    ...     print(x.name, "=", x.inputs[0])
    A = exp(W - stop_gradient(rowmax(W)))
    B = exp(K - stop_gradient(max(K, axis=-2, keepdims=True)))
    O = sigmoid(Q) * (A @ (B * V) / (A @ B))
    """
    queries, keys = operand("aft", Q, 2, "Q[.., T, d]"), operand("aft", K, 2, "K[.., S, d]")
    values, biases = operand("aft", V, 2, "V[.., S, d]"), operand("aft", W, 2, "W[.., T, S]")
    same("aft", queries, -1, keys, -1, "their width")
    same("aft", keys, -1, values, -1, "their width")
    same("aft", keys, -2, values, -2, "the number of keys and values")
    same("aft", biases, -2, queries, -2, "the number of queries")
    same("aft", biases, -1, keys, -2, "the number of keys")
    a = named("A", exp(biases - stop_gradient(rows.max(biases, axis=-1, keepdims=True))))
    b = named("B", exp(keys - stop_gradient(rows.max(keys, axis=-2, keepdims=True))))
    return named("O", multiply(sigmoid(queries), (a @ (b * values)) / (a @ b)))
