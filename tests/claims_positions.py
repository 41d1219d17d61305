"""Claims about positions: rotations in both layouts, shifts by a symbol, slopes."""

from __future__ import annotations

from typing import Any

import sympy

import symattn as sa

from .claims import CAUSAL, K, Q, V, Z, attend, d, false, h, m, n, r, s, true

# --- rotations by any frequencies ---


def rotation(t: Any) -> Any:
    """The rotation of position t: pair a of the features turns by ``t omega_a``."""
    omega = sa.tensor("omega", r)
    cos, sin = sa.diag(sa.cos(t * omega)), sa.diag(sa.sin(t * omega))
    return sa.concat([sa.concat([cos, -sin], axis=1), sa.concat([sin, cos], axis=1)], axis=0)


POSITIONS = sympy.symbols("i j", real=True)
ROW, KEY = sa.tensor("q", 2 * r), sa.tensor("k", 2 * r)


@true
def rope_relative():
    i, j = POSITIONS
    return (rotation(i) @ ROW) @ (rotation(j) @ KEY), ROW @ (rotation(j - i) @ KEY)


@true
def rope_shift():
    i, j = POSITIONS
    return (rotation(i + s) @ ROW) @ (rotation(j + s) @ KEY), (rotation(i) @ ROW) @ (rotation(j) @ KEY)


@false
def not_rope_relative_the_other_way():
    i, j = POSITIONS
    return (rotation(i) @ ROW) @ (rotation(j) @ KEY), ROW @ (rotation(i - j) @ KEY)


# --- rotary tables ---

QR, KR = sa.tensor("Q", n, 2 * r), sa.tensor("K", m, 2 * r)


def angle(t: Any, a: Any) -> Any:
    return t * sympy.Integer(10000) ** (-a / r)


def tables(positions: Any, offset: Any) -> tuple[Any, Any]:
    def table(fn: Any) -> Any:
        return sa.from_index((positions, r), lambda t, a: fn(angle(t + offset, a)))

    return table(sympy.cos), table(sympy.sin)


def in_halves(x: Any, offset: Any = 0) -> Any:
    cos, sin = tables(x.shape[0], offset)
    first, second = x[:, :r], x[:, r:]
    return sa.concat([first * cos - second * sin, first * sin + second * cos], axis=-1)


def interleaved(x: Any, offset: Any = 0) -> Any:
    cos, sin = tables(x.shape[0], offset)
    even, odd = x[:, 0::2], x[:, 1::2]
    turned = sa.concat([(even * cos - odd * sin)[..., None], (even * sin + odd * cos)[..., None]], axis=-1)
    return sa.merge_axes(turned, (-2, -1))


def relative_scores(halves: Any) -> Any:
    """The scores by ``i - j`` alone: tables of three indices, no table of one position."""
    (q1, q2), (k1, k2) = halves(QR), halves(KR)
    cos, sin = (sa.from_index((n, m, r), lambda i, j, a, fn=fn: fn(angle(i - j, a))) for fn in (sympy.cos, sympy.sin))
    q1, q2, k1, k2 = q1[:, None], q2[:, None], k1[None], k2[None]
    return sa.sum((q1 * k1 + q2 * k2) * cos + (q1 * k2 - q2 * k1) * sin, axis=-1)


def first_and_second(x: Any) -> tuple[Any, Any]:
    return x[:, :r], x[:, r:]


def even_and_odd(x: Any) -> tuple[Any, Any]:
    return x[:, 0::2], x[:, 1::2]


@true
def rope_halves_relative():
    return in_halves(QR) @ in_halves(KR).T, relative_scores(first_and_second)


@true
def rope_interleaved_relative():
    return interleaved(QR) @ interleaved(KR).T, relative_scores(even_and_odd)


@false
def not_rope_relative_in_the_other_layout():
    return interleaved(QR) @ interleaved(KR).T, relative_scores(first_and_second)


@true
def rope_halves_shift():
    return in_halves(QR, s) @ in_halves(KR, s).T, in_halves(QR) @ in_halves(KR).T


@true
def rope_interleaved_shift():
    return interleaved(QR, s) @ interleaved(KR, s).T, interleaved(QR) @ interleaved(KR).T


@true
def rope_attention_shift():
    return attend(in_halves(QR, s), in_halves(KR, s), V), attend(in_halves(QR), in_halves(KR), V)


@false
def not_rope_shift_of_the_queries():
    return in_halves(QR, s) @ in_halves(KR).T, in_halves(QR) @ in_halves(KR).T


@false
def not_rope_shift_opposite():
    return interleaved(QR, s) @ interleaved(KR, -s).T, interleaved(QR) @ interleaved(KR).T


@true
def rope_layouts_differ_by_the_order_of_features():
    def reordered(x):
        return sa.concat([x[:, 0::2], x[:, 1::2]], axis=-1)

    return in_halves(reordered(QR)) @ in_halves(reordered(KR)).T, interleaved(QR) @ interleaved(KR).T


@false
def not_rope_layouts_equal():
    return in_halves(QR) @ in_halves(KR).T, interleaved(QR) @ interleaved(KR).T


@true
def rope_keeps_norms():
    return sa.sum(in_halves(QR) ** 2, axis=-1), sa.sum(QR**2, axis=-1)


@false
def not_rope_keeps_features():
    return sa.sum(in_halves(QR), axis=-1), sa.sum(QR, axis=-1)


@true
def rope_of_any_frequencies():
    omega, (i, j) = sa.tensor("omega", r), sympy.symbols("i j", real=True)

    def turned(x, t):
        first, second = x[:r], x[r:]
        cos, sin = sa.cos(t * omega), sa.sin(t * omega)
        return sa.concat([first * cos - second * sin, first * sin + second * cos])

    return turned(ROW, i + s) @ turned(KEY, j + s), turned(ROW, i - j) @ KEY


@false
def not_absolute_positions_relative():
    def placed(x, offset):
        return x + sa.from_index((x.shape[0], d), lambda t, a: sympy.sin((t + offset) * angle(1, a)))

    return placed(Q, s) @ placed(K, s).T, placed(Q, 0) @ placed(K, 0).T


# --- slopes ---


@true
def alibi_row_constant():
    slope = sa.tensor("slope")
    bias = sa.from_index((n, m), lambda i, j: j - i)
    return sa.softmax(Z + slope * bias), sa.softmax(Z + slope * sa.from_index((m,), lambda j: j))


@true
def alibi_heads_causal():
    slopes, z = sa.tensor("slope", h)[:, None, None], sa.tensor("Z", h, n, n)
    distance, place = sa.from_index((n, n), lambda i, j: sympy.Abs(i - j)), sa.from_index((n,), lambda j: j)
    return sa.softmax(z - slopes * distance, where=CAUSAL), sa.softmax(z + slopes * place, where=CAUSAL)


@false
def not_alibi_without_the_mask():
    slopes, z = sa.tensor("slope", h)[:, None, None], sa.tensor("Z", h, n, n)
    distance, place = sa.from_index((n, n), lambda i, j: sympy.Abs(i - j)), sa.from_index((n,), lambda j: j)
    return sa.softmax(z - slopes * distance), sa.softmax(z + slopes * place)


@false
def not_alibi_of_the_query_place():
    bias = sa.from_index((n, m), lambda i, j: j - i)
    return sa.softmax(Z + s * bias), sa.softmax(Z - s * sa.from_index((n, 1), lambda i, j: i))
