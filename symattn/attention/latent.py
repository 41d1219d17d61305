"""Multi-head latent attention: keys and values of all heads from one short vector of each token."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Unpack

import sympy

from ..core.node import Tensor
from ..ops.arithmetic import add
from ..ops.layout import matrix_transpose
from ..ops.leaves import as_tensor, named
from .dot_product import attention_pooling, probabilities, scaled
from .heads import joined
from .options import Masking, exactly, known, masking_of, same
from .positions import rotary
from .projections import projected


class Latent(Masking, total=False):
    """The keywords of ``latent`` and ``latent_absorbed``."""

    W_dq: Any
    W_o: Any
    scale: Any
    base: Any
    layout: Literal["half", "interleaved"]


def latent(
    X: Any, W_dkv: Any, W_uk: Any, W_uv: Any, W_q: Any, W_qr: Any, W_kr: Any, **options: Unpack[Latent]
) -> Tensor:
    """Latent attention (MLA): ``C = X @ W_dkv`` is kept of each token, and gives the keys and values of every head.

    For each head ``K = C @ W_uk``, ``V = C @ W_uv``, ``Q = X @ W_q``. Positions enter by rotated features, Q_R of
    X @ W_qr by head and K_R of X @ W_kr for all heads: ``Z = (Q @ K.mT + Q_R @ K_R.mT) * scale``, ``scale`` by default
    1/sqrt(d + m). X[.., T, D], W_dkv[D, c], W_uk[h, c, d], W_uv[h, c, e], W_q[h, D, d], W_qr[h, D, m], W_kr[D, m]. With
    ``W_dq``[D, b] queries come from the latent X @ W_dq by W_q[h, b, d] and W_qr[h, b, m] (default none, as in
    DeepSeek-V2-Lite). ``W_o`` is that of ``multi_head``; ``base`` and ``layout`` ("half") are those of ``rotary``
    (DeepSeek's own code pairs neighbours, "interleaved"). Raises ShapeError for weights that do not fit.
    Source: DeepSeek-AI 2024 (arXiv:2405.04434), section 2.1.

    >>> import symattn as sa
    >>> shapes = {"W_dkv": "D c", "W_uk": "h c d", "W_uv": "h c e", "W_q": "h D d", "W_qr": "h D 2*m", "W_kr": "D 2*m"}
    >>> weights = {name: sa.tensor(name, shape) for name, shape in shapes.items()}
    >>> sa.attention.latent(sa.tensor("X", "T D"), **weights).shape
    (T, e*h)
    """
    part = _parts("latent", X, (W_dkv, W_uk, W_uv, W_q, W_qr, W_kr), options)
    k = named("K", projected("latent", part.c, W_uk))
    v = named("V", projected("latent", part.c, W_uv))
    weights = _weights(part, part.q, k, options)
    return joined("latent", attention_pooling(weights, v), options.get("W_o"))


def latent_absorbed(
    X: Any, W_dkv: Any, W_uk: Any, W_uv: Any, W_q: Any, W_qr: Any, W_kr: Any, **options: Unpack[Latent]
) -> Tensor:
    """Latent attention without keys and values of each head: queries and outputs are taken to the latent instead.

    The same as ``latent`` in another order of products, as a cache of latents is read: ``Q @ (C @ W_uk).mT`` is
    ``(Q @ W_uk.mT) @ C.mT``, and ``P @ (C @ W_uv)`` is ``(P @ C) @ W_uv``. Arguments are those of ``latent``.
    Raises ShapeError for weights that do not fit.
    Source: DeepSeek-AI 2024 (arXiv:2405.04434), section 2.1.2.

    >>> import symattn as sa
    >>> shapes = {"W_dkv": "D c", "W_uk": "h c d", "W_uv": "h c e", "W_q": "h D d", "W_qr": "h D 2*m", "W_kr": "D 2*m"}
    >>> weights = {name: sa.tensor(name, shape) for name, shape in shapes.items()}
    >>> sa.attention.latent_absorbed(sa.tensor("X", "T D"), **weights).shape
    (T, e*h)
    """
    what = "latent_absorbed"
    part = _parts(what, X, (W_dkv, W_uk, W_uv, W_q, W_qr, W_kr), options)
    w_uv = as_tensor(W_uv)
    shared = part.c if part.c.rank == 2 else part.c[..., None, :, :]
    q = named("Q_C", part.q @ matrix_transpose(as_tensor(W_uk)))
    latents = named("O_C", _weights(part, q, shared, options) @ shared)
    return joined(what, named("O", latents @ w_uv), options.get("W_o"))


class _Parts(NamedTuple):
    """The latent of each token, queries, rotated queries and keys, and the width of the whole query."""

    c: Tensor
    q: Tensor
    q_r: Tensor
    k_r: Tensor
    width: sympy.Expr


def _parts(what: str, X: Any, weights: tuple[Any, ...], options: Latent) -> _Parts:
    shapes = ("W_dkv[D, c]", "W_uk[h, c, d]", "W_uv[h, c, e]", "W_q[h, D, d]", "W_qr[h, D, m]", "W_kr[D, m]")
    w_dkv, w_uk, w_uv, w_q, w_qr, w_kr = (exactly(what, w, shape) for w, shape in zip(weights, shapes, strict=True))
    known(what, options, Latent)
    for w in (w_uv, w_q, w_qr):
        same(what, w_uk, 0, w, 0, "the number of heads")
    for w in (w_uk, w_uv):
        same(what, w_dkv, -1, w, -2, "the width of the latent")
    same(what, w_q, -1, w_uk, -1, "the width of queries and keys")
    same(what, w_qr, -1, w_kr, -1, "the width of rotated queries and keys")
    down = options.get("W_dq")
    source = X if down is None else named("C_q", projected(what, X, exactly(what, down, "W_dq[D, b]")))
    turn: dict[str, Any] = {key: options[key] for key in ("base", "layout") if key in options}
    return _Parts(
        named("C", projected(what, X, w_dkv)),
        named("Q", projected(what, source, w_q)),
        rotary(named("Q_R", projected(what, source, w_qr)), **turn),
        rotary(named("K_R", projected(what, X, w_kr)), **turn),
        w_q.shape[-1] + w_qr.shape[-1],
    )


def _weights(part: _Parts, q: Tensor, k: Tensor, options: Latent) -> Tensor:
    """The probabilities of queries and keys, whose rotated features are added to the scores."""
    k_r = part.k_r if part.k_r.rank == 2 else part.k_r[..., None, :, :]
    products = add(q @ matrix_transpose(k), part.q_r @ matrix_transpose(k_r))
    z = named("Z", scaled("latent", products, part.width, options.get("scale")))
    return probabilities(z, **masking_of(options))
