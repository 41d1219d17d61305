"""Masks: which keys each query may attend to, as binary tensors (True = attend) that ``& | ~`` combine.

Their last two axes are queries and keys, of symbolic sizes. What differs within a batch is an integer tensor, whose
axes stand in front of them; ``mask[..., None, :, :]`` makes a place for the heads of the scores behind the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import sympy

from ..core.arguments import flag, one_of
from ..core.node import Tensor
from ..core.sizes import as_size
from ..errors import OperandError, ShapeError
from ..ops.arithmetic import add
from ..ops.classes import holds_integers
from ..ops.leaves import as_tensor, from_index, scalar_value
from ..ops.logic import as_mask, equal, less, logical_or, where
from ..ops.pointwise import mod
from ..ops.slicing import getitem
from .options import operand

Align = Literal["top-left", "bottom-right"]
_UNBOUNDED = dict.fromkeys(("left", "right"), "; None is a window without a bound on this side")
_ROW, _LAST = (..., None, slice(None)), (..., None)


def causal_mask(T: Any, S: Any = None, *, align: Align = "top-left", offset: Any = None) -> Tensor:
    """No query attends to a later key: ``j <= i + o``.

    [T, S], with S = T by default. ``align`` says where queries and keys meet: at their first (the default
    "top-left", o = 0; PyTorch's ``is_causal``, JAX, ONNX without a cache) or at their last ("bottom-right", o = S - T;
    FlashAttention, MLX). ``offset`` is o itself, the number of keys before the first query: an integer, an expression
    of sizes or an integer tensor, where offset[..] gives [.., T, S]. It may be negative: a query before all keys has an
    empty row. Raises OperandError for an offset that is not whole, and for bottom-right with an offset.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.3.

    >>> import symattn as sa
    >>> print(sa.attention.causal_mask(*sa.sizes("T S"), align="bottom-right"))
    from_index((T, S), lambda i, j: j <= S - T + i)
    """
    return _placed("causal_mask", T, S, align, offset, lambda q, j: j <= q)


def sliding_window_mask(
    T: Any,
    S: Any = None,
    *,
    left: Any = None,
    right: Any = None,
    includes_self: bool = False,
    align: Align = "top-left",
    offset: Any = None,
) -> Tensor:
    """Each query attends to the keys around its own place: ``i + o - left <= j <= i + o + right``.

    [T, S], or [.., T, S] for offset[..]. ``left`` and ``right`` are integers or expressions of sizes, >= 0; None is no
    bound, and ``right=0`` is causal. They count the keys besides the query's own (ONNX, FlashAttention, JAX's
    ``local_window_size``); ``includes_self=True`` counts that one in ``left``: ``i + o - left < j`` (Mistral,
    Transformers). ``align`` and ``offset`` are those of ``causal_mask``. Raises ShapeError for a window below 0,
    or of 0 keys that is to include one.
    Source: Beltagy et al. 2020 (arXiv:2004.05150), section 3.1; Jiang et al. 2023 (arXiv:2310.06825), section 2.

    >>> import symattn as sa
    >>> T, w = sa.sizes("T w")
    >>> print(sa.attention.sliding_window_mask(T, left=w, right=0))
    from_index((T, T), lambda i, j: (j <= i) & (j >= i - w))
    """
    what = "sliding_window_mask"
    lowest = 1 if flag(what, "includes_self", includes_self) else 0
    before = None if left is None else _count(what, "left", left, lowest) - lowest
    after = None if right is None else _count(what, "right", right)
    if includes_self and before is None:
        raise OperandError(f"{what}: includes_self=True says how left counts, and there is no left")

    def seen(q: Any, j: Any) -> Any:
        low = before is None or j >= q - before
        high = after is None or j <= q + after
        return high if low is True else low if high is True else low & high

    return _placed(what, T, S, align, offset, seen)


def key_padding_mask(S: Any, lengths: Any) -> Tensor:
    """The first keys are real and the others padding: ``j < length``.

    ``lengths`` is an integer, an expression of sizes or an integer symbol, which give [S], or an integer tensor:
    lengths[..] gives [.., 1, S]. With heads, ``lengths[:, None]`` gives [B, 1, 1, S]. A length of 0 leaves an empty
    row. Raises OperandError for lengths that are not whole and ShapeError for one below 0.
    Source: ONNX operator Attention, version 24, input ``nonpad_kv_seqlen``.

    >>> import symattn as sa
    >>> n = sa.tensor("n", "B", integer=True)
    >>> sa.attention.key_padding_mask("S", n).shape
    (B, 1, S)
    """
    size, what = as_size(S), "key_padding_mask"
    many = _whole(what, "lengths", lengths)
    if isinstance(many, Tensor):
        return less(from_index((1, size), lambda i, j: j), getitem(getitem(many, _LAST), _LAST))
    _count(what, "lengths", many)
    return from_index(size, lambda j: j < many)


def prefix_mask(T: Any, S: Any = None, *, prefix: Any, align: Align = "top-left", offset: Any = None) -> Tensor:
    """Prefix language models: all queries see the first keys, and the others causally, ``j < prefix or j <= i + o``.

    [T, S], or [.., T, S] for an integer tensor prefix[..] or offset[..]. ``align`` and ``offset`` are those of
    ``causal_mask``. Raises ShapeError for a prefix below 0 and OperandError for one that is not whole.
    Source: Raffel et al. 2019 (arXiv:1910.10683), section 3.2.1.

    >>> import symattn as sa
    >>> print(sa.attention.prefix_mask("T", prefix=sa.sizes("p")))
    from_index((T, T), lambda i, j: (j <= i) | (j < p))
    """
    first = _whole("prefix_mask", "prefix", prefix)
    if isinstance(first, Tensor):
        causal = _placed("prefix_mask", T, S, align, offset, lambda q, j: j <= q)
        return logical_or(key_padding_mask(T if S is None else S, first), causal)
    _count("prefix_mask", "prefix", first)
    return _placed("prefix_mask", T, S, align, offset, lambda q, j: (j < first) | (j <= q))


def dilated_mask(T: Any, S: Any = None, *, step: Any, align: Align = "top-left", offset: Any = None) -> Tensor:
    """Each query sees every ``step``-th key, counted from its own place: ``(i + o - j) mod step = 0``.

    [T, S], or [.., T, S] for offset[..]. ``step`` is an integer or an expression of sizes. Its ``&`` with a
    ``sliding_window_mask`` of left = right = w step is a dilated window with w keys on each side. ``align`` and
    ``offset`` are those of ``causal_mask``. Raises ShapeError for a step that is not positive.
    Source: Beltagy et al. 2020 (arXiv:2004.05150), section 3.1; Child et al. 2019 (arXiv:1904.10509), section 4.

    >>> import symattn as sa
    >>> print(sa.attention.dilated_mask("T", step=3))
    from_index((T, T), lambda i, j: Eq(Mod(i - j, 3), 0))
    """
    every = as_size(_count("dilated_mask", "step", step, 1))

    def seen(q: Any, j: Any) -> Any:
        return equal(mod(q - j, every), 0) if isinstance(q, Tensor) else sympy.Eq(sympy.Mod(q - j, every), 0)

    return _placed("dilated_mask", T, S, align, offset, seen)


def global_mask(T: Any, S: Any = None, *, tokens: Any, align: Align = "top-left", offset: Any = None) -> Tensor:
    """The first tokens see all keys and are seen by all queries: ``i + o < tokens or j < tokens``.

    [T, S], or [.., T, S] for offset[..]. ``tokens`` is an integer or an expression of sizes. ``|`` joins it to a local
    mask. ``align`` and ``offset`` are those of ``causal_mask``. Raises ShapeError for a number below 0.
    Source: Beltagy et al. 2020 (arXiv:2004.05150), section 3.1.

    >>> import symattn as sa
    >>> T = sa.sizes("T")
    >>> print(sa.attention.global_mask(T, tokens=1))
    from_index((T, T), lambda i, j: (i < 1) | (j < 1))
    """
    first = _count("global_mask", "tokens", tokens)
    return _placed("global_mask", T, S, align, offset, lambda q, j: (q < first) | (j < first))


def document_mask(segments_q: Any, segments_k: Any = None) -> Tensor:
    """Packed sequences: a query sees the keys of its own document, ``segments_q[i] = segments_k[j]``.

    Integer tensors segments_q[.., T] and segments_k[.., S] (by default the same) give [.., T, S]; a constant by index,
    floor(i/b), makes blocks of b tokens. Raises OperandError for segments that are not whole numbers.
    Source: Krell et al. 2021 (arXiv:2107.02027).

    >>> import symattn as sa
    >>> s = sa.tensor("s", "T", integer=True)
    >>> print(sa.attention.document_mask(s) & sa.attention.causal_mask("T"))
    (s[:, None] == s[None, :]) & from_index((T, T), lambda i, j: j <= i)
    """
    what = "document_mask"
    given = {"segments_q": segments_q, "segments_k": segments_q if segments_k is None else segments_k}
    of_queries, of_keys = (_whole(what, name, operand(what, x, 1, f"{name}[.., T]")) for name, x in given.items())
    return equal(getitem(of_queries, _LAST), getitem(of_keys, _ROW))


def as_bias(mask: Any) -> Tensor:
    """The mask as something to add to the scores: 0 where it lets attend, and -oo elsewhere.

    It has the shape of the mask. An added -oo and the mask itself mean the same, also in rows without keys. Raises
    OperandError for a mask that is not binary.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.3.

    >>> import symattn as sa
    >>> Z, M = sa.tensor("Z", "T S"), sa.tensor("M", "T S", binary=True)
    >>> sa.prove(sa.softmax(Z + sa.attention.as_bias(M)), sa.softmax(Z, where=M)).status
    'proved'
    """
    return where(as_mask(mask, "as_bias"), 0, -sympy.oo)


# --- positions and numbers ---


def _placed(what: str, T: Any, S: Any, align: str, offset: Any, seen: Callable[[Any, Any], Any]) -> Tensor:
    """The mask that is ``seen(q, j)`` of the position q = i + o of each query and the position j of each key."""
    queries = as_size(T)
    keys = queries if S is None else as_size(S)
    if one_of(what, "align", align, "top-left", "bottom-right") == "top-left":
        first = sympy.S.Zero if offset is None else _whole(what, "offset", offset)
    elif offset is not None:
        raise OperandError(f"{what}: align='bottom-right' is offset=S - T; give only one of them")
    else:
        first = keys - queries
    if not isinstance(first, Tensor):
        return from_index((queries, keys), lambda i, j: seen(i + first, j))
    position = add(from_index((queries, 1), lambda i, j: i), getitem(getitem(first, _LAST), _LAST))
    made = seen(position, from_index((1, keys), lambda i, j: j))
    return made if isinstance(made, Tensor) else from_index((queries, keys), lambda i, j: made)


def _count(what: str, keyword: str, value: Any, lowest: int = 0) -> sympy.Expr:
    """A whole number that is not known to be below the lowest."""
    number = _whole(what, keyword, value)
    if isinstance(number, Tensor):
        raise OperandError(f"{what}: {keyword} is one number, not the tensor {number.brief()}")
    if (number - lowest).is_negative:
        raise ShapeError(f"{what}: {keyword} is {number}, and has to be >= {lowest}{_UNBOUNDED.get(keyword, '')}")
    return number


def _whole(what: str, keyword: str, value: Any) -> Any:
    """A whole number as a SymPy scalar, or a tensor of whole numbers."""
    made = as_tensor(value)
    number = scalar_value(made)
    if not (holds_integers(made) if number is None else number.is_integer):
        raise OperandError(
            f"{what}: {keyword} holds whole numbers: integers, expressions of sizes, or tensors declared integer=True, "
            f"not {made.brief() if number is None else number}"
        )
    return made if number is None else number
