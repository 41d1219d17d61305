"""Disputes from public threads, a second collection: linear attention, initialisation, merging, positions and norms.

For each: the statement that holds is proved for all sizes, the other one is refuted, and the verified numbers are
found again. What is not decided yet stands in ``LEFT``, with the reason that the engine gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa

from .test_gradient_cases import compute, digits
from .test_permutation_cases import proved, refuted

T, S, d, e, n, m, h, E = sa.sizes("T S d e n m h E")
X, W, U = sa.tensor("X", n, d), sa.tensor("W", d, e), sa.tensor("U", d, d, orthogonal=True)
gain = sa.tensor("gain", d)


# --- U01: the chunk of a gated delta rule ---

CHUNK = {
    "Q": [[1.0, 0.5], [-0.3, 0.8], [0.6, -1.0]],
    "K": [[0.4, -1.0], [0.9, 0.2], [-0.5, 0.7]],
    "V": [[1.0], [-2.0], [0.5]],
    "g": [-0.1, -0.6, -0.3],
    "beta": [0.5, 0.8, 0.3],
    "S_0": [[0.7], [-0.2]],
}
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", T, d), sa.tensor("V", T, e)
g, beta, S_0 = sa.tensor("g", T), sa.tensor("beta", T), sa.tensor("S_0", d, e)
C = sa.cumsum(g)
D = sa.tril(sa.exp(C[:, None] - C[None, :]))
decay, rate = sa.exp(C)[:, None], beta[:, None]


def unsolved(overlaps: Any) -> Any:
    return sa.eye(T) + sa.tril(rate * overlaps, -1)


def system(overlaps: Any) -> Any:
    return sa.inv(unsolved(overlaps))


def chunk(weights: Any) -> Any:
    """The output of a chunk with a state coming in."""
    corrected = system(K @ K.T * D) @ (rate * V) - decay * (system(K @ K.T) @ (rate * K) @ S_0)
    return decay * (Q @ S_0) + weights @ corrected


KEYS = (decay * (system(K @ K.T) @ (rate * K)), system(K @ K.T * D) @ (rate * (decay * K)))  # two ways to c W


def test_U01_the_output_of_a_chunk_takes_the_decay_matrix():
    """NVlabs/GatedDeltaNet#15: the printed chunk output has a plain causal mask."""
    a = {name: np.array(rows) for name, rows in CHUNK.items()}
    state, outputs = a["S_0"], []
    for q, k, v, log, b in zip(a["Q"], a["K"], a["V"], a["g"], a["beta"], strict=True):
        state = np.exp(log) * state
        state = state + b * np.outer(k, v - k @ state)
        outputs.append(q @ state)
    right, printed = chunk(Q @ K.T * D), chunk(sa.tril(Q @ K.T))
    assert outputs == digits([[0.514619], [-0.122576], [-0.203745]])
    assert compute(right, CHUNK) == digits(outputs)
    assert compute(printed, CHUNK) == digits([[0.514619], [-0.23998], [-0.159017]])
    refuted(right, printed)
    first, second = (compute(x, CHUNK) for x in KEYS)
    assert np.abs(first - second).max() < 1e-14
    conjugate = sa.eq(sa.diag(sa.exp(C)) @ unsolved(K @ K.T), unsolved(K @ K.T * D) @ sa.diag(sa.exp(C)))
    proved(*conjugate.sides)
    proved(*KEYS, given=[conjugate])


# --- U04: weights packed in one matrix ---


def test_U04_packed_weights_have_half_the_variance_and_logits_a_quarter():
    """pytorch/pytorch#166378: Xavier's bound of packed weights counts the fan-out of all three."""
    packed, separate = (sympy.sqrt(6 / (E + fan)) ** 2 / 3 for fan in (3 * E, E))
    assert [sympy.simplify(v * E) for v in (packed, separate)] == [sympy.Rational(1, 2), 1]
    x, y, W_q, W_k = sa.tensor("x", E), sa.tensor("y", E), sa.tensor("W_q", E, E), sa.tensor("W_k", E, E)
    i = sympy.Symbol("i", integer=True, nonnegative=True)

    def variances(weight: Any) -> tuple[Any, ...]:
        law = dict.fromkeys((x, y), sa.iid("normal")) | dict.fromkeys((W_q, W_k), sa.iid("uniform", variance=weight))
        value, logit, own = (x @ W_q)[i], (x @ W_q) @ (y @ W_k) / sympy.sqrt(E), (x @ W_q) @ (x @ W_k) / sympy.sqrt(E)
        asked = ((value, (x, W_q)), (logit, (x, y, W_q, W_k)), (own, (x, W_q, W_k)))
        return tuple(sympy.simplify(sa.variance(what, {t: law[t] for t in tensors})) for what, tensors in asked)

    assert variances(1 / (2 * E)) == (sympy.Rational(1, 2), sympy.Rational(1, 4), sympy.simplify((1 + 2 / E) / 4))
    assert variances(sympy.sqrt(2) ** 2 / (2 * E))[:2] == (1, 1)  # with a gain of sqrt 2


# --- U06: partial results merged by their log-sum-exp ---


def test_U06_a_merge_reads_its_log_sum_exp_to_the_base_it_was_written_in():
    """sgl-project/sglang#40903: base 2 is read as base e, so the odds are taken to the power 1/ln 2."""
    s1, s2, V1, V2 = sa.tensor("s1", T, n), sa.tensor("s2", T, m), sa.tensor("V1", n, e), sa.tensor("V2", m, e)
    whole = sa.softmax(sa.concat([s1, s2], axis=-1)) @ sa.concat([V1, V2], axis=0)

    def merged(scale: Any) -> Any:
        first = sa.sigmoid((sa.logsumexp(s1, keepdims=True) - sa.logsumexp(s2, keepdims=True)) * scale)
        return first * (sa.softmax(s1) @ V1) + (1 - first) * (sa.softmax(s2) @ V2)

    in_base_2 = 1 / sympy.log(2)
    proved(merged(1), whole)
    proved(merged(in_base_2 * sympy.log(2)), whole)
    refuted(merged(in_base_2), whole)
    arrays = {"s1": [[2.0, 0.0, 1.0]], "s2": [[0.5]], "V1": [[1.0], [2.0], [3.0]], "V2": [[-1.0]]}
    assert compute(merged(1), arrays) == digits([[1.246089]])
    assert compute(merged(in_base_2), arrays) == digits([[1.424799]])


# --- U08: the relative shift ---


def relative_shift(x: Any, first: bool) -> Any:
    """A column of zeros in front, other row lengths, and one row dropped."""
    rows, columns = x.shape
    padded = sa.merge_axes(sa.concat([sa.zeros(rows, 1), x], axis=1), (0, 1))
    read = sa.split_axis(padded, 0, (columns + 1, rows))
    return sa.split_axis(sa.merge_axes(read[1:] if first else read[:-1], (0, 1)), 0, (rows, columns))


def wanted_entry(index: Any, x: Any) -> Any:
    i, j = index
    rows, columns = x.shape
    return sympy.Piecewise((x[i, j + rows - 1 - i], j <= columns - rows + i), (0, True))


wanted = sa.operation("wanted", shape="T S -> T S", entry=wanted_entry)
POSITIONS, SMALL = sa.tensor("X", T, S), sa.tensor("X", 3, 5)
SEEN = sa.from_index((T, S), lambda i, j: j <= S - T + i)


def test_U08_the_relative_shift_drops_the_first_row():
    """labmlai/annotated_deep_learning_paper_implementations#185: one implementation drops the last row."""
    right, wrong = relative_shift(SMALL, True), relative_shift(SMALL, False)
    rows = np.arange(1.0, 16).reshape(3, 5)
    first, last = compute(right, {"X": rows}), compute(wrong, {"X": rows})
    assert first.tolist() == [[3, 4, 5, 0, 6], [7, 8, 9, 10, 0], [11, 12, 13, 14, 15]]
    assert last.tolist() == [[0, 1, 2, 3, 4], [5, 0, 6, 7, 8], [9, 10, 0, 11, 12]]
    seen = np.arange(5) <= 2 + np.arange(3)[:, None]
    assert np.where(seen, first, 0).tolist() == compute(wanted(SMALL), {"X": rows}).tolist()
    refuted(sa.where(SEEN, relative_shift(POSITIONS, False), 0), wanted(POSITIONS))


# --- U11: norms and rotations of the features ---


def rms_norm(x: Any) -> Any:
    return x / sa.sqrt(sa.mean(x * x, -1, keepdims=True))


def layer_norm(x: Any) -> Any:
    return rms_norm(x - sa.mean(x, -1, keepdims=True))


ONES = sa.ones(d)


def test_U11_a_gain_is_merged_before_the_features_are_rotated():
    """spcl/QuaRot#8: RMSNorm commutes with an orthogonal matrix without a gain, LayerNorm if it keeps the ones."""
    proved(rms_norm(X @ U), rms_norm(X) @ U)
    refuted((rms_norm(X @ U) * gain) @ U.T @ W, (rms_norm(X) * gain) @ W)
    proved(rms_norm(X @ U) @ (U.T @ sa.diag(gain) @ W), (rms_norm(X) * gain) @ W)
    refuted(layer_norm(X @ U), layer_norm(X) @ U)
    proved(layer_norm(X @ U), layer_norm(X) @ U, given=[sa.eq(U @ ONES, ONES)])
    c = sa.sqrt(sa.mean((X - sa.mean(X, -1, keepdims=True)) ** 2, -1, keepdims=True))
    proved((X - sa.mean(X, -1, keepdims=True)) / c, rms_norm(X - sa.mean(X, -1, keepdims=True)))
    turned = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)
    arrays = {"X": [[3.0, 4.0]], "U": turned.T, "gain": [1.0, 2.0]}
    found = compute(rms_norm(X @ U), arrays)
    assert np.sort(np.abs(found)).tolist() == [digits([0.2, 1.4])]
    assert found == digits(compute(rms_norm(X) @ U, arrays))
    assert compute(rms_norm(X) * gain, arrays) == digits([[0.848528, 2.262742]])
    assert np.sort(np.abs(compute(layer_norm(X) @ U, arrays))) == digits([[0, 1.414214]])
    assert np.abs(compute(layer_norm(X @ U), arrays)) == digits([[1, 1]])


# --- U14: a norm and rotary positions ---

FEATURES, ANGLES = sa.tensor("X", T, 2 * h), sa.tensor("t", T, h)
EACH, PAIRED = sa.tensor("gain", 2 * h), sa.tensor("p", h)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_U14_a_norm_commutes_with_rotary_positions_if_its_gain_is_that_of_pairs(layout: str):
    """karpathy/nanochat#743: the order is declared irrelevant, with or without a gain."""

    def turned(x: Any) -> Any:
        return sa.attention.rotate(x, sa.cos(ANGLES), sa.sin(ANGLES), layout=layout)

    pairs = sa.concat([PAIRED, PAIRED]) if layout == "half" else sa.repeat(PAIRED, 2, axis=0)
    proved(rms_norm(turned(FEATURES)), turned(rms_norm(FEATURES)))
    proved(rms_norm(turned(FEATURES)) * pairs, turned(rms_norm(FEATURES) * pairs))
    refuted(rms_norm(turned(FEATURES)) * EACH, turned(rms_norm(FEATURES) * EACH))


# --- U15: the gate of a recurrent layer ---


def test_U15_the_gate_in_log_space_is_a_softplus_of_minus_L():
    """kyegomez/Griffin#6: the printed formula lacks a minus, and an implementation starts L wrongly."""
    L, r = sa.tensor("L", n), sa.tensor("r", n)
    gate = sa.exp(8 * r * sa.log(sa.sigmoid(L)))
    proved(gate, sa.exp(-8 * r * sa.softplus(-L)))
    refuted(gate, sa.exp(-8 * r * sa.softplus(L)))
    proved(sa.sigmoid(L) ** 8, sa.exp(-8 * sa.softplus(-L)))
    arrays = {"L": [2.0, -1.0], "r": [0.3, 0.9]}
    assert compute(sa.exp(-8 * r * sa.softplus(-L)), arrays) == digits([0.737398, 7.8e-05])
    assert compute(sa.exp(-8 * r * sa.softplus(L)), arrays) == digits([0.006069, 0.104823])
    over = sa.tensor("u", positive=True)  # a^(-1/c) - 1, so that sigmoid(L) = a^(1/c)
    proved(sa.sigmoid(-sa.log(over)), 1 / (1 + over))
    assert -np.log(0.95 ** (-1 / 8) - 1) == pytest.approx(5.046429246931405, rel=1e-12)


# --- U16: reverse distillation at a small temperature ---


def test_U16_the_gradient_of_a_reverse_divergence_is_finite():
    """MakazhanAlpamys/Soup#719: a finite loss with gradients that are not finite."""
    z, y, tau = sa.tensor("z", n), sa.tensor("y", n), sa.tensor("tau", positive=True)
    p = sa.softmax(z / tau)
    gap = (z / tau - sa.logsumexp(z / tau)) - (y / tau - sa.logsumexp(y / tau))
    loss = sa.sum(p * gap)
    slope = sa.gradient(loss, z)[z]
    proved(slope, p * (gap - loss) / tau)
    refuted(slope, p * gap / tau)
    arrays = {"z": [0.0, 20.0, 39.0], "y": [40.0, 0.0, 10.0], "tau": 0.05}
    assert compute(loss, arrays) == pytest.approx(600, rel=1e-12)
    found = compute(slope, arrays)
    assert np.isfinite(found).all()
    assert found.tolist() == [0, pytest.approx(-3.3450251e-162, rel=1e-6), pytest.approx(0, abs=1e-9)]


# --- what is not decided yet ---

LEFT: dict[str, tuple[Callable[[], Any], str]] = {
    "U08: the shift, where it is seen": (
        lambda: sa.prove(sa.where(SEEN, relative_shift(POSITIONS, True), 0), wanted(POSITIONS)),
        "a quotient of an index whose range is not a multiple of the divisor",
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_decided_says_why(name: str):
    ask, reason = LEFT[name]
    verdict = ask()
    assert verdict.status == "unknown"
    assert reason in verdict.reason
