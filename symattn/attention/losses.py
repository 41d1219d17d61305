"""The loss of a language model: log-probabilities of the classes, and the cross-entropy of scores and targets."""

from __future__ import annotations

from typing import Any, Literal

from ..core.arguments import one_of
from ..core.node import Tensor
from ..core.sizes import broadcast_shapes, same_shape, same_size
from ..errors import OperandError, ShapeError
from ..ops import rows
from ..ops.arithmetic import add, divide, multiply, negative, subtract
from ..ops.classes import one_hot
from ..ops.leaves import as_tensor, named, scalar_value
from ..ops.logic import equal, logical_not, where
from .options import operand

Reduction = Literal["mean", "sum", "none"]


def log_softmax(Z: Any, axis: int = -1) -> Tensor:
    """The logarithm of the probabilities, ``Z - logsumexp(Z)``, which does not overflow.

    Z[.., n]; the result has its shape. Raises ShapeError for an axis that is not there.

    >>> import symattn as sa
    >>> print(sa.attention.log_softmax(sa.tensor("Z", "T n")).inputs[0])
    Z - rowlogsumexp(Z)
    """
    z = as_tensor(Z)
    return named("ell", subtract(z, rows.logsumexp(z, axis, keepdims=True)))


def cross_entropy(
    Z: Any,
    Y: Any,
    *,
    reduction: Reduction = "mean",
    weight: Any = None,
    ignore: Any = None,
    smoothing: Any = 0,
) -> Tensor:
    """How improbable the targets are, ``-sum(Y * log(softmax(Z)))`` for each row, and the mean of that.

    Z[.., T, n] are the scores of n classes and Y the targets: Y[.., T], declared ``integer=True``, the class of
    each row, from 0 to n - 1, or Y[.., T, n], their probabilities, which need not add up to 1. ``smoothing`` s puts
    ``(1 - s) * Y + s/n`` in place of Y. ``weight``[n] multiplies the term of each class. ``ignore`` is a class or
    any other integer, such as PyTorch's -100: rows with that target are 0, and do not count in the mean.
    ``reduction`` is "mean" (the default; over all rows, by the weights of their classes where Y gives classes),
    "sum" or "none". All as in PyTorch's ``cross_entropy`` and ONNX's SoftmaxCrossEntropyLoss, except that their
    classes are axis 1: bring them last by ``moveaxis``. A mean over no rows is 0/0. Raises ShapeError for sizes
    that differ, and OperandError for classes not declared integers, for ``ignore`` with probabilities and for a
    smoothing outside 0 to 1; the compiled function raises EvaluationError for a class that is not there.
    Source: Szegedy et al. 2016 (arXiv:1512.00567), section 7, for the smoothing.

    >>> import symattn as sa
    >>> Z, y = sa.tensor("Z", "T n"), sa.tensor("y", "T", integer=True)
    >>> for x in sa.attention.cross_entropy(Z, y).intermediates:
    ...     print(x.name, "=", x.inputs[0])
    Y = one_hot(y, size=n)
    L = mean(rowlogsumexp(Z) - rowsum(where(Y, Z, 0)))
    """
    what = "cross_entropy"
    one_of(what, "reduction", reduction, "mean", "sum", "none")
    z, y = operand(what, Z, 1, "Z[.., T, n]"), as_tensor(Y)
    by_class = _by_class(what, z, y)
    classes = None if weight is None else _class_weights(what, weight, z)
    kept = None if ignore is None else _kept(what, y, ignore, by_class)
    target = named("Y", one_hot(_classes(y, ignore), z.shape[-1])) if by_class else y
    wanted = target if classes is None else named("A", multiply(target, classes))
    share = kept  # of a row in the mean; None where all rows are alike
    if by_class and classes is not None:
        share = named("a", _times(rows.sum(wanted, -1, keepdims=True), kept))
    loss = _times(_row_losses(z, _smoothed(what, wanted, smoothing, classes), by_class and classes is None), kept)
    if reduction == "none":
        return named("L", loss[..., 0])
    if reduction == "mean" and share is None:
        return named("L", rows.mean(loss))
    total = rows.sum(loss)
    return named("L", total if reduction == "sum" or share is None else divide(total, rows.sum(share)))


def _by_class(what: str, z: Tensor, y: Tensor) -> bool:
    """Whether the targets are one class a row (True) or the probabilities of all classes."""
    if y.rank == z.rank:
        if broadcast_shapes(y.shape, z.shape) != z.shape or not same_size(y.shape[-1], z.shape[-1]):
            raise ShapeError(f"{what}: the probabilities {y.brief()} do not have the shape of the scores {z.brief()}")
        return False
    if y.rank != z.rank - 1 or not same_shape(y.shape, z.shape[:-1]):
        raise ShapeError(
            f"{what}: the targets {y.brief()} do not fit the scores {z.brief()}: they are one class a row, or "
            "probabilities of the shape of the scores"
        )
    if y.kind != "integer":
        raise OperandError(f"{what}: the targets {y.brief()} are classes of the rows: declare them integer=True")
    return True


def _classes(y: Tensor, ignore: Any) -> Tensor:
    """The classes, with any of them where a row does not count."""
    return y if ignore is None else where(equal(y, as_tensor(ignore)), 0, y)


def _class_weights(what: str, weight: Any, z: Tensor) -> Tensor:
    made = as_tensor(weight)
    if made.rank != 1 or not same_size(made.shape[0], z.shape[-1]):
        raise ShapeError(f"{what}: the weights {made.brief()} are one of each class, [{z.shape[-1]}]")
    return made


def _kept(what: str, y: Tensor, ignore: Any, by_class: bool) -> Tensor:
    """A column with 1 for the rows that count."""
    number = scalar_value(as_tensor(ignore))
    if number is None or not number.is_integer:
        raise OperandError(f"{what}: ignore is an integer, the target of rows that do not count, not {ignore}")
    if not by_class:
        raise OperandError(
            f"{what}: ignore={ignore} is for targets that are classes, and {y.brief()} are probabilities"
        )
    return named("m", logical_not(equal(y, number))[..., None])


def _smoothed(what: str, wanted: Tensor, smoothing: Any, classes: Tensor | None) -> Tensor:
    """``(1 - s) * wanted + s/n``, the last term times the weights of the classes."""
    s = as_tensor(smoothing)
    value = scalar_value(s)
    if s.rank or (value is not None and (value.is_negative or (1 - value).is_negative)):
        raise OperandError(f"{what}: smoothing is a number from 0 to 1, not {smoothing}")
    if value == 0:
        return wanted
    everywhere = _times(divide(s, wanted.shape[-1]), classes)
    return named("Y_s" if classes is None else "A_s", add(multiply(subtract(1, s), wanted), everywhere))


def _row_losses(z: Tensor, wanted: Tensor, sums_to_one: bool) -> Tensor:
    """A column: ``-sum(wanted * log_softmax(z))``, with one logsumexp a row."""
    normaliser = rows.logsumexp(z, -1, keepdims=True)
    one_hot = wanted.kind == "binary"  # a score of -oo that is not wanted then has no part
    if one_hot and sums_to_one:
        return subtract(normaliser, rows.sum(where(wanted, z, 0), -1, keepdims=True))
    logs = subtract(z, normaliser)
    shown = where(wanted, logs, 0) if one_hot else multiply(wanted, logs)
    return negative(rows.sum(shown, -1, keepdims=True))


def _times(x: Tensor, factor: Tensor | None) -> Tensor:
    return x if factor is None else multiply(x, factor)
