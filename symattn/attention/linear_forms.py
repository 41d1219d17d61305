"""Linear attention: weights that are products of features, so that keys and values may be contracted first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Unpack

import sympy

from ..core.arguments import flag, one_of
from ..core.exact import as_scalar
from ..core.node import Tensor
from ..core.sizes import same_size
from ..errors import OperandError, ShapeError, described
from ..ops import rows
from ..ops.arithmetic import multiply
from ..ops.contraction import einsum_op
from ..ops.layout import concat, matrix_transpose, merge_axes
from ..ops.leaves import as_tensor, from_index, named, ones
from ..ops.logic import where
from ..ops.pointwise import exp, maximum, minimum, relu
from ..ops.scans import cumsum, tril
from .dot_product import attention_pooling, scores
from .linear_state import start, step_by_step
from .options import Masking, epsilon, kept_or_zero, nonempty, operand, queries_and_keys, same
from .rules import RULES, Positions, divided_by_sums

Form = Literal["state", "weights"]


def linear(
    Q: Any,
    K: Any,
    V: Any,
    *,
    feature: Callable[[Tensor], Any] | Literal["elu+1"] | None = "elu+1",
    normalise: bool = True,
    form: Form = "state",
    **masking: Unpack[Masking],
) -> Tensor:
    """Linear attention, ``O = F_Q @ (F_K.mT @ V) / (F_Q @ (F_K.mT @ 1))`` with features ``F_Q = feature(Q)``.

    Q[.., T, d] or one query Q[d], K[.., S, d], V[.., S, e]; O[.., T, e]. ``feature`` is ``"elu+1"`` (the default of the
    paper), a function of the last axis such as ``taylor_features``, or None for none. ``form`` is the order of the
    products: ``"state"`` (the default) contracts keys and values first, ``"weights"`` makes ``A = F_Q @ F_K.mT``.
    ``normalise=False`` leaves the denominator out. ``mask`` broadcasts with A (True = attend, or as
    ``mask_polarity`` says); the state takes a mask of keys only, S or [.., 1, S]. A row without keys gives zeros.
    Raises ShapeError for shapes that do not fit and OperandError for another ``feature``, ``form`` or mask.
    Source: Katharopoulos et al. 2020 (arXiv:2006.16236), equations 4 to 7.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> for x in sa.attention.linear(Q, K, V, feature=None).intermediates:
    ...     print(x.name, "=", x.inputs[0])
    H = K.T @ V
    z = sum(K, axis=-2)
    O = Q @ H / (Q @ z[:, None])
    """
    f_q, f_k, values = _features("linear", feature, Q, K, V)
    normalise = flag("linear", "normalise", normalise)
    if one_of("linear", "form", form, "state", "weights") == "weights":
        weights = named("A", f_q @ matrix_transpose(f_k))
        if normalise:
            return attention_pooling(normalised(weights, **masking), values)
        keep = kept_or_zero("linear", weights, masking)
        return attention_pooling(weights if keep is None else where(keep, weights, 0), values)
    keep = kept_or_zero("linear", f_q @ matrix_transpose(f_k), masking)
    if keep is not None:
        f_k = named("F_kept", where(_of_keys(keep), f_k, 0))
    output = f_q @ named("H", matrix_transpose(f_k) @ values)
    if not normalise:
        return named("O", output)
    total = f_q @ named("z", rows.sum(f_k, axis=-2))[..., None]
    return named("O", output / (total if keep is None else nonempty(total, keep)))


def causal_linear(
    Q: Any,
    K: Any,
    V: Any,
    *,
    feature: Callable[[Tensor], Any] | Literal["elu+1"] | None = "elu+1",
    normalise: bool = True,
    form: Literal["state", "weights", "recurrent"] = "weights",
) -> Tensor:
    """Causal linear attention, ``A = tril(F_Q @ F_K.mT)``, ``O = A @ V / rowsum(A)``: position i sees all j <= i.

    Q[.., T, d], K[.., T, d], V[.., T, e]; O[.., T, e]. ``form="weights"`` (the default) is that; ``form="state"``
    keeps the states of all positions, ``H[i]``, the sum of ``outer(F_K[j], V[j])`` over j <= i, and gives
    ``F_Q[i] @ H[i] / (F_Q[i] @ cumsum(F_K)[i])``; ``form="recurrent"`` is a ``sa.scan`` that keeps only the last state.
    ``feature`` and ``normalise`` are those of ``linear``. Raises ShapeError for shapes that do not fit and OperandError
    for another ``feature`` or ``form``.
    Source: Katharopoulos et al. 2020 (arXiv:2006.16236), equations 8 to 12.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "T d"), sa.tensor("V", "T e")
    >>> for x in sa.attention.causal_linear(Q, K, V, feature=None).intermediates:
    ...     print(x.name, "=", x.inputs[0])
    A = tril(Q @ K.T)
    P = A / rowsum(A)
    O = P @ V
    """
    queries, keys = operand("causal_linear", Q, 2, "Q[.., T, d]"), operand("causal_linear", K, 2, "K[.., T, d]")
    same("causal_linear", queries, -2, keys, -2, "the number of positions")
    f_q, f_k, values = _features("causal_linear", feature, queries, keys, V)
    normalise = flag("causal_linear", "normalise", normalise)
    if one_of("causal_linear", "form", form, "state", "weights", "recurrent") == "recurrent":
        run, rule = Positions(f_q, f_k, values), RULES["linear"]
        steps = divided_by_sums(rule, None) if normalise else rule
        return named("O", step_by_step(steps, run, start(run, None, normalise))[0])
    if form == "weights":
        weights = named("A", tril(f_q @ matrix_transpose(f_k)))
        return attention_pooling(normalised(weights) if normalise else weights, values)
    states = named("H", cumsum(f_k[..., :, None] * values[..., None, :], axis=-3))
    output = einsum_op(f_q, states, spec=(("ic", "icv"), "iv"))
    if not normalise:
        return named("O", output)
    return named("O", output / rows.sum(f_q * named("z", cumsum(f_k, axis=-2)), axis=-1, keepdims=True))


def normalised(A: Any, **masking: Unpack[Masking]) -> Tensor:
    """Weights divided by their sum, ``P = A / rowsum(A)``, over the keys that the mask leaves.

    A[.., T, S] or A[S]; P has its shape. ``mask`` broadcasts with A (True = attend, or as ``mask_polarity`` says);
    a row without keys gives zeros. A row whose weights have the sum zero is not defined. Raises ShapeError for a mask
    of another shape and OperandError for one that is not binary.
    Source: Katharopoulos et al. 2020 (arXiv:2006.16236), equation 3.

    >>> import symattn as sa
    >>> print(sa.attention.normalised(sa.tensor("A", "T S")).inputs[0])
    A / rowsum(A)
    """
    weights = operand("normalised", A, 1, "A[.., T, S]")
    keep = kept_or_zero("normalised", weights, masking)
    if keep is None:
        return named("P", weights / rows.sum(weights, axis=-1, keepdims=True))
    left = named("A_kept", where(keep, weights, 0))
    return named("P", left / nonempty(rows.sum(left, axis=-1, keepdims=True), keep))


# --- features ---


def elu_plus_one(X: Any) -> Tensor:
    """The positive feature ``elu(x) + 1``, entry by entry: ``x + 1`` above 0 and ``exp(x)`` below.

    Source: Katharopoulos et al. 2020 (arXiv:2006.16236), equation 7.

    >>> import symattn as sa
    >>> print(sa.attention.elu_plus_one(sa.tensor("X", "T d")))
    relu(X) + exp(minimum(X, 0))
    """
    x = as_tensor(X)  # a sum, so that the exponential is never taken of a large entry
    return relu(x) + exp(minimum(x, 0))


def performer_features(X: Any, W: Any) -> Tensor:
    r"""Positive random features of the softmax kernel, ``exp(Y @ W.mT - rowsum(Y * Y) / 2) / sqrt(m)``.

    ``Y = X / d**(1/4)``; X[.., T, d], and W[m, d] is drawn, its rows standard normal: then ``F(Q) @ F(K).mT`` is
    ``exp(Q @ K.mT / sqrt(d))`` in expectation. For ``linear``: ``feature=lambda x: performer_features(x, W)``.
    Raises ShapeError for widths that differ.
    Source: Choromanski et al. 2021 (arXiv:2009.14794), lemma 1.

    >>> import symattn as sa
    >>> sa.attention.performer_features(sa.tensor("X", "T d"), sa.tensor("W", "m d")).shape
    (T, m)
    """
    x = operand("performer_features", X, 1, "X[.., T, d]")
    w = operand("performer_features", W, 2, "W[m, d]")
    same("performer_features", x, -1, w, -1, "their width")
    scaled = multiply(x.shape[-1] ** sympy.Rational(-1, 4), x)
    half_norm = rows.sum(scaled * scaled, axis=-1, keepdims=True) / 2
    return multiply(1 / sympy.sqrt(w.shape[-2]), exp(scaled @ matrix_transpose(w) - half_norm))


def taylor_features(X: Any) -> Tensor:
    """The features of which ``taylor`` is the linear attention: 1, the entries of X, and all their products.

    ``F(x) = concat([1, x / d**(1/4), outer(x, x) / sqrt(2 * d)])``, so that ``F(q) @ F(k) = 1 + s + s**2 / 2`` with
    ``s = q @ k / sqrt(d)``. X[.., d]; F[.., 1 + d + d*d].
    Source: Arora et al. 2024 (arXiv:2402.18668).

    >>> import symattn as sa
    >>> sa.attention.taylor_features(sa.tensor("X", "T d")).shape
    (T, d**2 + d + 1)
    """
    x = operand("taylor_features", X, 1, "X[.., d]")
    d = x.shape[-1]
    products = merge_axes(x[..., :, None] * x[..., None, :], (-2, -1))
    parts = [ones(*x.shape[:-1], 1), multiply(d ** sympy.Rational(-1, 4), x), multiply(1 / sympy.sqrt(2 * d), products)]
    return concat(parts, axis=-1)


# --- weights that have linear forms ---


def taylor(Q: Any, K: Any, V: Any, *, scale: Any = None, **masking: Unpack[Masking]) -> Tensor:
    """Attention with the exponential cut after its square, ``A = 1 + Z + Z**2 / 2``, ``P = A / rowsum(A)``.

    Q[.., T, d] or one query Q[d], K[.., S, d], V[.., S, e]; O[.., T, e]. A is at least 1/2. ``scale`` is that of
    ``scores``; with its default this is ``linear(Q, K, V, feature=taylor_features)``. The mask is that of
    ``normalised``.
    Raises ShapeError for shapes that do not fit and OperandError for a mask that is not binary.
    Source: Arora et al. 2024 (arXiv:2402.18668).

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> print(sa.attention.taylor(Q, K, V).intermediates[1].inputs[0])
    1 + Z + Z**2 / 2
    """
    z = scores(Q, K, scale=scale)
    weights = named("A", 1 + z + z**2 / 2)
    return attention_pooling(normalised(weights, **masking), V)


def cosformer(Q: Any, K: Any, V: Any, *, length: Any = None, eps: Any = 1e-6, form: Form = "weights") -> Tensor:
    """Relu features with a cosine of the distance, ``A = relu(Q) @ relu(K).mT * C``, ``C = cos(pi/2 * (i - j) / M)``.

    ``O = A @ V / maximum(rowsum(A), eps)``. Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]. ``length`` is M, by
    default the larger of T and S, so that A is not negative; ``eps`` (1e-6, as in the authors' code) is for rows of
    zeros. ``form="state"`` writes the cosine of a difference as two products, which makes it linear attention.
    Raises ShapeError for shapes that do not fit and OperandError for another ``form`` or a negative eps.
    Source: Qin et al. 2022 (arXiv:2202.08791), section 3.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "T d"), sa.tensor("V", "T e")
    >>> print(sa.attention.cosformer(Q, K, V).intermediates[1].inputs[0])
    relu(Q) @ relu(K).T * C
    """
    queries, keys = operand("cosformer", Q, 2, "Q[.., T, d]"), operand("cosformer", K, 2, "K[.., S, d]")
    same("cosformer", queries, -1, keys, -1, "their width")
    values = operand("cosformer", V, 2, "V[.., S, e]")
    same("cosformer", keys, -2, values, -2, "the number of keys and values")
    T, S = queries.shape[-2], keys.shape[-2]
    least = epsilon("cosformer", eps)
    M = sympy.Max(T, S) if length is None else as_scalar(length)
    if M.is_nonpositive:
        raise OperandError(f"cosformer: length is positive, not {M}")
    quarter = sympy.pi / (2 * M)
    if one_of("cosformer", "form", form, "state", "weights") == "weights":
        nearness = named("C", from_index((T, S), lambda i, j: sympy.cos(quarter * (i - j))))
        weights = named("A", relu(queries) @ matrix_transpose(relu(keys)) * nearness)
        total, output = rows.sum(weights, axis=-1, keepdims=True), weights @ values
    else:
        f_q, f_k = named("F_Q", _turned(relu(queries), quarter)), named("F_K", _turned(relu(keys), quarter))
        output = f_q @ named("H", matrix_transpose(f_k) @ values)
        total = f_q @ named("z", rows.sum(f_k, axis=-2))[..., None]
    return named("O", output / maximum(total, least))


# --- what they share ---


def _features(what: str, feature: Any, Q: Any, K: Any, V: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The features of queries and keys, named unless there are none, and the values; their sizes are checked."""
    queries, keys = queries_and_keys(what, Q, K)
    values = operand(what, V, 2, "V[.., S, e]")
    same(what, keys, -2, values, -2, "the number of keys and values")
    if feature is None:
        return queries, keys, values
    if isinstance(feature, str) and feature == "elu+1":
        feature = elu_plus_one
    elif not callable(feature):
        raise OperandError(f"{what}: feature is 'elu+1', a function of a tensor, or None, not {described(feature)}")
    made = []
    for x in (queries, keys):
        features = as_tensor(feature(x))
        if features.rank != x.rank or not all(map(same_size, features.shape[:-1], x.shape[:-1])):
            raise ShapeError(
                f"{what}: feature makes {features.brief()} of {x.brief()}: only the last axis may have another size"
            )
        made.append(features)
    same(what, made[0], -1, made[1], -1, "the number of features")
    return named("F_Q", made[0]), named("F_K", made[1]), values


def _of_keys(keep: Tensor) -> Tensor:
    """A mask of keys as a column; a mask that differs from query to query is an error."""
    row = keep if keep.rank > 1 else keep[None, :]
    if row.shape[-2] != 1:
        raise OperandError(
            f"linear: the mask {keep.brief()} differs from query to query, and keys are summed once for all of them: "
            f"give a mask of keys, or form='weights'"
        )
    return matrix_transpose(row)


def _turned(features: Tensor, quarter: sympy.Expr) -> Tensor:
    """The features times the cosine, and times the sine, of their angle: row i is turned by i quarters."""
    n = features.shape[-2]
    angles = [from_index((n, 1), lambda i, _, part=part: part(quarter * i)) for part in (sympy.cos, sympy.sin)]
    return concat([features * angle for angle in angles], axis=-1)
