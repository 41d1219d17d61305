"""Pictures of matrices: attention maps with their tokens, and patterns of masks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ..core.arguments import text_of
from ..errors import OperandError, ShapeError, described
from ..printing.prose import Figure
from .arrays import array_of, captioned
from .chart import FIRST, INK, Chart

_STRONGEST = 0.85  # opacity of the largest weight, on which numbers can still be read
_WRITTEN = 8  # rows and columns of which the numbers are written into the cells
_LISTED = 12  # of which labels are shown, and rows told
_NAMED = 3  # keys of the same weight
_ALIKE = 1e-6  # relative difference of weights that are the same, as in single precision
_ACROSS = 4  # pictures side by side
_SHADES = " ░▒▓█"


def attention_map(
    weights: Any,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    values: Mapping[Any, Any] | None = None,
    caption: str = "",
) -> Figure:
    """Weights as a matrix of shades, a row for each query and a column for each key, with their tokens.

    ``weights`` are an array [T, S] or [h, T, S], a picture for each head, or an expression with the ``values`` of its
    tensors and sizes. Raises OperandError for tokens that are not as many as rows or columns, and ShapeError for other
    shapes.

    >>> import symattn as sa
    >>> print(sa.plot.attention_map([[0.9, 0.1], [0.25, 0.75]], keys=["the", "cat"]).text)
        the cat
      0  ██  ░░
      1  ▒▒  ██
    """
    array = array_of("attention_map", weights, values)
    if array.ndim not in (2, 3):
        raise ShapeError(f"attention_map draws weights [T, S], or [h, T, S] by heads, not {list(array.shape)}")
    if array.min() < 0:
        raise OperandError(f"attention_map draws weights, which are not negative, and one of them is {array.min():.3g}")
    heads = array if array.ndim == 3 else array[None]
    rows, columns = _tokens("queries", queries, array.shape[-2]), _tokens("keys", keys, array.shape[-1])
    titles = [f"head {k}" for k in range(len(heads))] if array.ndim == 3 else [""]
    panels = dict(zip(titles, heads, strict=True))
    said = [f'"{token}"' for token in rows] if queries is not None else [f"query {token}" for token in rows]
    seen = [f'"{token}"' for token in columns] if keys is not None else [f"key {token}" for token in columns]
    told = " ".join(_told(title, head, said, seen, _LISTED // len(heads)) for title, head in panels.items())
    text = "\n\n".join(_shaded(title, head, rows, columns) for title, head in panels.items())
    chart = _chart(panels, rows, columns)
    return Figure(chart, f"Attention map. {told}", captioned("attention_map", caption), text=text)


def mask(masks: Any, values: Mapping[Any, Any] | None = None, caption: str = "") -> Figure:
    """Which keys each query may attend to, as filled squares; several masks side by side by their titles.

    A mask is an array [T, S], or an expression with the ``values`` of its sizes. Raises ShapeError for other shapes.

    >>> import symattn as sa
    >>> T = sa.sizes("T")
    >>> print(sa.plot.mask({"causal": sa.attention.causal_mask(T)}, {T: 3}).text)
    causal
      ■ · ·
      ■ ■ ·
      ■ ■ ■
    """
    given = masks if isinstance(masks, Mapping) else {"": masks}
    if not given:
        raise OperandError("mask draws a mask, or several by their titles: there is none")
    panels = {text_of("mask", "a title", title): _allowing(x, values) for title, x in given.items()}
    told = " ".join(_allowed(title, array) for title, array in panels.items())
    text = "\n\n".join(_squares(title, array) for title, array in panels.items())
    chart = _chart(panels, [], [])
    return Figure(chart, f"Masks. {told}", captioned("mask", caption), text=text)


def _allowing(x: Any, values: Mapping[Any, Any] | None) -> np.ndarray:
    array = array_of("mask", x, values)
    if array.ndim != 2:
        raise ShapeError(f"mask draws masks [T, S], not {list(array.shape)}")
    if not np.isin(array, (0, 1)).all():
        raise OperandError("mask draws masks, 0 where a key is hidden and 1 elsewhere; attention_map draws weights")
    return array != 0


def _tokens(what: str, tokens: Sequence[str] | None, size: int) -> list[str]:
    if tokens is None:
        return [str(k) for k in range(size)]
    is_list = isinstance(tokens, (list, tuple)) and len(tokens) == size
    if not is_list or not all(isinstance(token, (str, int)) for token in tokens):
        raise OperandError(f"{what}= are {size} tokens, one for each of them, not {described(tokens)}")
    return [str(token) for token in tokens]


# --- in words ---


def _told(title: str, array: np.ndarray, rows: list[str], columns: list[str], most: int) -> str:
    """To which key each query attends most."""
    head = f"{title.capitalize()}: " if title else ""
    listed = [f"{query} attends {_most(weights, columns)}" for query, weights in zip(rows, array, strict=True)]
    left = len(listed) - most
    more = [f"and {left} more {'query' if left == 1 else 'queries'}"] if left > 0 else []
    return f"{head}{'; '.join([_size(array), *listed[:most], *more])}."


def _most(weights: np.ndarray, columns: list[str]) -> str:
    """The key of the largest weight, or the keys where there are several of it."""
    largest = weights.max()
    first, *others = np.flatnonzero(np.isclose(weights, largest, rtol=_ALIKE, atol=0))
    if largest == 0:
        return "to no key"
    if not others:
        return f"most to {columns[first]} ({largest:.2f})"
    if len(others) + 1 == len(columns):
        return f"equally to {'both' if len(columns) == 2 else 'all'} keys ({largest:.2f})"
    listed = [columns[k] for k in (first, *others)]
    named = " and ".join((", ".join(listed[:-1]), listed[-1])) if len(listed) <= _NAMED else f"{len(listed)} keys"
    return f"most, and equally, to {named} ({largest:.2f})"


def _size(array: np.ndarray) -> str:
    queries, keys = array.shape
    return f"{queries} {'query' if queries == 1 else 'queries'} by {keys} {'key' if keys == 1 else 'keys'}"


def _allowed(title: str, array: np.ndarray) -> str:
    head = f"{title.capitalize()}: " if title else ""
    pairs = f"{int(array.sum())} of {array.size} {'pair' if array.size == 1 else 'pairs'} allowed"
    return f"{head}{_size(array)}, {pairs}; the last query sees {_runs(array[-1])}."


def _runs(row: np.ndarray) -> str:
    """The keys of one query."""
    spans = [(k, k + n - 1) for k, n in _spans(row)]
    told = ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in spans)
    return "no key" if not spans else f"{'key' if told.isdigit() else 'keys'} {told}"


def _spans(row: np.ndarray) -> Iterator[tuple[int, int]]:
    """Where neighbours begin that are allowed, and how many there are."""
    at = 0
    for allowed, several in groupby(bool(x) for x in row):
        n = len(list(several))
        if allowed:
            yield at, n
        at += n


def _shaded(title: str, array: np.ndarray, rows: list[str], columns: list[str]) -> str:
    """The matrix in shades of text, each column as wide as its token."""
    left = max(map(len, rows)) + 2
    widths = [max(2, len(token)) for token in columns]
    lines = [f"{title}"] * bool(title)
    lines.append(" " * left + " ".join(["", *(f"{token:>{w}}" for token, w in zip(columns, widths, strict=True))]))
    largest = max(float(array.max()), 1e-300)
    for token, line in zip(rows, array, strict=True):
        shades = (_SHADES[min(4, int(np.ceil(4 * x / largest)))] for x in line)
        cells = " ".join(f"{shade * 2:>{w}}" for shade, w in zip(shades, widths, strict=True))
        lines.append(f"{token:>{left}} {cells}".rstrip())
    return "\n".join(lines)


def _squares(title: str, array: np.ndarray) -> str:
    lines = [f"  {' '.join('■' if x else '·' for x in row)}" for row in array]
    return "\n".join([*([title] if title else []), *lines])


# --- as a picture ---


def _chart(panels: Mapping[str, np.ndarray], rows: list[str], columns: list[str]) -> Chart:
    """The matrices side by side."""
    across = min(_ACROSS, len(panels))
    down = -(-len(panels) // across)
    height, width = next(iter(panels.values())).shape
    side = 4.2 if across == 1 else 6.8 / across
    tall = side * min(1.6, max(0.35, height / width)) + (0.35 if across > 1 else 0.1)

    def paint(figure: Any) -> None:
        grid = figure.subplots(down, across, squeeze=False).ravel()
        for place in grid[len(panels) :]:
            place.set_axis_off()
        for place, (title, array) in zip(grid, panels.items(), strict=False):
            _matrix(place, array)
            _ticks(place, rows, columns, across)
            place.set_title(title, fontsize=11)
            place.set(xlabel="keys", ylabel="queries")
            place.label_outer()

    return Chart(side * across + 0.3, tall * down + 0.4, paint)


def _matrix(place: Any, array: np.ndarray) -> None:
    """Cells, each as opaque as its weight is large, with its number in it where there are few."""
    height, width = array.shape
    largest = max(float(array.max()), 1e-300)
    place.set(xlim=(0, width), ylim=(height, 0), aspect="equal")
    for side in ("top", "right"):
        place.spines[side].set_visible(True)
    colours = np.zeros((height, width, 4))
    colours[..., :3] = [int(FIRST[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    colours[..., 3] = _STRONGEST * array / largest
    place.imshow(colours, extent=(0, width, height, 0), interpolation="nearest")
    if max(height, width) <= 2 * _WRITTEN:
        place.hlines(range(1, height), 0, width, color=INK, alpha=0.15, linewidth=0.5)
        place.vlines(range(1, width), 0, height, color=INK, alpha=0.15, linewidth=0.5)
    if array.dtype != bool and height <= _WRITTEN and width <= _WRITTEN:
        for i, j in np.ndindex(height, width):
            place.text(j + 0.5, i + 0.5, f"{array[i, j]:.2f}", ha="center", va="center", fontsize=10)


def _ticks(place: Any, rows: list[str], columns: list[str], across: int) -> None:
    """The tokens, where there is room for all of them."""
    place.tick_params(length=0)
    most = 3 * _LISTED // across
    if not rows or max(len(rows), len(columns)) > most:
        place.set(xticks=[], yticks=[])
        return
    turned = max(map(len, columns)) > 3 or 2 * len(columns) > most
    style = {"rotation": 55, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    place.set_xticks(np.arange(len(columns)) + 0.5, columns, **style)
    place.set_yticks(np.arange(len(rows)) + 0.5, rows)
