"""Cross-entropy: targets by class and as probabilities, weights of the classes, rows that do not count, smoothing."""

from __future__ import annotations

import symattn as sa

from .entry import S, T, Variant, e, h, torch, variant

Z, y = sa.tensor("Z", T, S), sa.tensor("y", T, integer=True)
Y, w = sa.tensor("Y", T, S, positive=True), sa.tensor("w", S, positive=True)


def loss(**options):
    return lambda z, y, *w: torch.nn.functional.cross_entropy(z, y, *w, **options)


def classes(rng, shape):
    return rng.integers(0, 5, shape)


def some_ignored(rng, shape):
    found = classes(rng, shape)
    found[..., 1:3] = -100
    return found


@variant
def log_softmax():
    return Variant(sa.attention.log_softmax(Z), [Z], lambda z: torch.log_softmax(z, -1))


@variant
def cross_entropy():
    return Variant(sa.attention.cross_entropy(Z, y), [Z], loss(), data=(y,), draw={y: classes})


@variant
def cross_entropy_by_row():
    ZH, yh = sa.tensor("Z", h, T, e), sa.tensor("y", h, T, integer=True)

    def torch_loss(z, y):
        return torch.nn.functional.cross_entropy(z.mT, y, reduction="none")  # PyTorch's classes are its second axis

    output = sa.attention.cross_entropy(ZH, yh, reduction="none")
    return Variant(output, [ZH], torch_loss, data=(yh,), draw={yh: lambda rng, shape: rng.integers(0, 3, shape)})


@variant
def cross_entropy_weighted():
    output = sa.attention.cross_entropy(Z, y, weight=w, ignore=-100)
    return Variant(output, [Z], lambda z, w, y: loss()(z, y, w), data=(w, y), draw={y: some_ignored})


@variant
def cross_entropy_smoothed():
    output = sa.attention.cross_entropy(Z, y, weight=w, ignore=2, smoothing=0.1)
    torch_loss = loss(ignore_index=2, label_smoothing=0.1)
    return Variant(output, [Z], lambda z, w, y: torch_loss(z, y, w), data=(w, y), draw={y: classes})


@variant
def cross_entropy_sum():
    output = sa.attention.cross_entropy(Z, y, reduction="sum", ignore=0, smoothing=0.25)
    torch_loss = loss(reduction="sum", ignore_index=0, label_smoothing=0.25)
    return Variant(output, [Z], torch_loss, data=(y,), draw={y: classes})


@variant
def cross_entropy_of_probabilities():
    return Variant(sa.attention.cross_entropy(Z, Y), [Z, Y], loss())


@variant
def cross_entropy_of_probabilities_weighted():
    output = sa.attention.cross_entropy(Z, Y, weight=w, smoothing=0.1)
    return Variant(output, [Z], lambda z, Y, w: loss(label_smoothing=0.1)(z, Y, w), data=(Y, w))
