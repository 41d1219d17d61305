"""Disputes about gradients from public threads, each settled through the public API.

For each: the form that is right, as printed and in the numbers that were verified once (six digits), and the form that
was proposed or run instead, with the first entry where it differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy

import symattn as sa

T, S, d, e, n = sa.sizes("T S d e n")
Q, K, V, dO = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e), sa.tensor("dO", T, e)
Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
P = sa.let("P", sa.softmax(Z))

# Three queries and keys, d = e = 2.
STANDARD = {
    "Q": [[1.0, -0.5], [0.3, 0.8], [-1.2, 0.4]],
    "K": [[0.5, 1.0], [-0.7, 0.2], [0.9, -1.1]],
    "V": [[1.0, 2.0], [-1.0, 0.5], [0.3, -0.4]],
    "dO": [[0.2, -0.1], [0.5, 0.3], [-0.4, 0.7]],
}
DROPPED = {**STANDARD, "M": [[1, 0, 1], [1, 1, 0], [0, 1, 1]]}
SEQUENCE = [[0.4, -1.0, 0.7], [1.1, 0.2, -0.3], [-0.6, 0.9, 0.5]]
LOGITS = [0.5, -1.0, 2.0]


class Difference(NamedTuple):
    """The first entry where two forms differ, both values there, and the largest difference anywhere."""

    entry: tuple[int, ...]
    right: float
    wrong: float
    largest: float


def compute(x: sa.Tensor, arrays: Mapping[str, Any], dtype: type = np.float64) -> np.ndarray:
    given = {name: np.asarray(array) for name, array in arrays.items()}
    used = [given[t.name] if "binary" in t.params["hypotheses"] else given[t.name].astype(dtype) for t in x.tensors]
    return np.asarray(sa.lambdify(list(x.tensors), x)(*used))


def same(x: sa.Tensor, y: sa.Tensor, arrays: Mapping[str, Any]) -> bool:
    """Whether two expressions are equal to rounding on the arrays of a case."""
    return bool(np.abs(compute(x, arrays) - compute(y, arrays)).max() <= 1e-14)


def first_difference(right: sa.Tensor, wrong: sa.Tensor, arrays: Mapping[str, Any], dtype: type = np.float64) -> Any:
    a, b = compute(right, arrays, dtype), compute(wrong, arrays, dtype)
    apart = np.abs(a - b)
    place = tuple(int(i) for i in np.argwhere(~(apart <= 1e-6))[0])
    return Difference(place, float(a[place]), float(b[place]), float(apart.max()))


def line(g: Any, name: str) -> str:
    """How the step of a gradient prints, without its reason."""
    found = next(text for text in str(g).splitlines() if text.startswith(f"{name} = "))
    return found.removeprefix(f"{name} = ").split("  #")[0].rstrip()


def digits(values: Any) -> Any:
    """Equal to the verified numbers in the six decimals they are kept in."""
    return pytest.approx(np.array(values), rel=0, abs=6e-7)


def test_G01_key_gradient_is_dS_transposed_Q():
    """Dao-AILab/flash-attention#373: a paper prints Q times dS-transposed."""
    g = sa.gradient(P @ V, [K])
    assert line(g, "dK") == "dZ.T @ Q / sqrt(d)"
    with pytest.raises(sa.ShapeError, match=r"Q\[T, d\].*\[S, T\]"):
        Q @ g["dZ"].T

    q, k, v = (sa.tensor(name, n, n) for name in "QKV")  # square: now both forms have a type
    g = sa.gradient(sa.softmax(q @ k.T / sympy.sqrt(n)) @ v, [k])
    square = {name: rows[:2] for name, rows in STANDARD.items()}
    assert compute(g[k], square) == digits([[0.108872, 0.161003], [-0.108872, -0.161003]])
    apart = first_difference(g[k], q @ g["dZ"].T / sympy.sqrt(n), square)
    assert apart.entry == (0, 0)
    assert apart.right == digits(0.108872)
    assert apart.largest == digits(0.179164)


def dropout(keep: sympy.Rational) -> tuple[sa.Tensor, sa.Tensor, sa.Tensor]:
    M = sa.tensor("M", T, S, binary=True)
    O = sa.let("O", (P * M / keep) @ V)
    return M, O, sa.sum(dO * O, axis=-1, keepdims=True)


def test_G03_sign_bit_dropout_needs_the_conditional_kernel():
    """HKUSTDial/flash-sparse-attention#109: the conditional on the sign of p is called wrong, and is right."""
    keep = sympy.Rational(3, 4)
    M, O, D = dropout(keep)
    dP = dO @ V.T
    g = sa.gradient({O: dO}, [Q])
    assert line(g, "dQ") == "dZ @ K / sqrt(d)"

    signed = sa.where(M, P, -P)
    conditional = signed * sa.where(signed >= 0, dP - keep * D, keep * D) / keep
    plain = signed * (dP - keep * D) / keep
    right, wrong = (x @ K / sympy.sqrt(d) for x in (conditional, plain))
    assert same(g[Q], right, DROPPED)
    assert compute(g[Q], DROPPED) == digits([[0.01813, -0.03932], [0.227486, 0.357859], [-0.265187, 0.022069]])
    apart = first_difference(right, wrong, DROPPED)
    assert apart.entry == (0, 0)
    assert apart.largest == digits(0.186022)

    D = sa.sum(dO * (P @ V), axis=-1, keepdims=True)  # without dropout p >= 0, and the forms are one
    assert same(P * sa.where(P >= 0, dP - D, D), P * (dP - D), STANDARD)


def test_G05_scale_inside_or_outside_the_tanh_cap():
    """huggingface/trl#5691: a trainer caps raw logits and scales afterwards, the model scales first."""
    a, c = sympy.symbols("a c", positive=True)
    x = sa.tensor("x", n)
    inside, outside = c * sa.tanh(a * x / c), a * c * sa.tanh(x / c)
    slopes = [sa.gradient({y: sa.ones(n)}, [x]) for y in (inside, outside)]
    right, wrong = (y.subs({a: sympy.Rational(1, 4), c: 30}) for y in (inside, outside))
    logits = {"x": [-60, -10, 0, 10, 60]}
    assert compute(right, logits) == digits([-13.863515, -2.494229, 0.0, 2.494229, 13.863515])
    assert compute(wrong, logits) == digits([-7.230207, -2.411346, 0.0, 2.411346, 7.230207])
    apart = first_difference(right, wrong, logits)
    assert apart.entry == (0,)
    assert (apart.right, apart.wrong, apart.largest) == digits([-13.863515, -7.230207, 6.633308])

    closed = [a * (1 - sa.tanh(a * x / c) ** 2), a * (1 - sa.tanh(x / c) ** 2)]
    values = {a: sympy.Rational(1, 4), c: 30}
    for g, form in zip(slopes, closed, strict=True):
        assert same(g[x].subs(values), form.subs(values), logits)
    apart = first_difference(*(form.subs(values) for form in closed), logits)  # x = 0 alone agrees
    assert apart.entry == (0,)
    assert first_difference(*(form.subs(values) for form in closed), {"x": [0, 10]}).entry == (1,)


def test_G07_cap_factor_is_taken_before_the_mask():
    """openxla/tokamax#1121: taken from the mask's fill value, the factor overflows and 0 times it is nan."""
    cap, fill = 30, -(10**30)
    X, keep, dP = sa.tensor("X", T, S), sa.tensor("keep", T, S, binary=True), sa.tensor("dP", T, S)
    capped = sa.let("C", cap * sa.tanh(X / cap))
    p = sa.let("P", sa.softmax(capped, where=keep))
    right = sa.gradient({p: dP}, [X])[X]
    masked = sa.where(keep, capped, fill)
    wrong = p * (dP - sa.sum(p * dP, axis=-1, keepdims=True)) * (1 - (masked / cap) ** 2)
    arrays = {"X": [[0.4, -0.2, 0.9]], "keep": [[1, 1, 0]], "dP": [[0.3, -0.7, 0.5]]}

    slope = compute(right, arrays)
    assert slope == pytest.approx(np.array([[0.228745349334, -0.228775849617, 0.0]]), rel=0, abs=1e-12)
    assert slope[0, 2] == 0
    single = compute(right, arrays, np.float32)
    assert single.dtype == np.float32
    assert single == digits(slope)
    with np.errstate(over="ignore", invalid="ignore"):
        apart = first_difference(right, wrong, arrays, np.float32)
    assert (apart.entry, apart.right) == ((0, 2), 0)
    assert np.isnan(apart.wrong)
    with pytest.raises(sa.OperandError, match="-oo is allowed in additive masks only"):
        (sa.where(keep, capped, -sympy.oo) / cap) ** 2


def test_G09_sink_logit_has_a_gradient():
    """ISEEKYAN/Megatron-LM#205: a bridge drops the gradient of the learnable sink."""
    b = sa.tensor("b")
    extended = sa.let("E", sa.concat([Z, b * sa.ones(T, 1)], axis=-1))
    O = sa.let("O", sa.softmax(extended)[:, :S] @ V)
    g = sa.gradient({O: dO}, [b])
    p_sink = sa.exp(b - sa.logsumexp(extended))
    closed = -sa.sum(p_sink * sa.sum(dO * O, axis=-1))
    arrays = {**STANDARD, "b": 0.7}
    assert same(g[b], closed, arrays)
    assert compute(g[b], arrays) == pytest.approx(-0.29054334, rel=0, abs=6e-9)
    apart = first_difference(g[b], 0 * b, arrays)
    assert (apart.entry, apart.wrong) == ((), 0)


def test_G11_a_loss_on_logsumexp_shifts_D():
    """Dao-AILab/flash-attention#1137: the cotangent of logsumexp is ignored; it enters as D - dL."""
    O, L = sa.let("O", P @ V), sa.let("L", sa.logsumexp(Z))
    dL = sa.tensor("dL", T)
    g = sa.gradient({O: dO, L: dL}, [Q])
    D = sa.sum(P * (dO @ V.T), axis=-1, keepdims=True)
    arrays = {**STANDARD, "dL": [0.3, -0.2, 0.5]}
    assert same(g[Q], P * (dO @ V.T - (D - dL[:, None])) @ K / sympy.sqrt(d), arrays)
    assert compute(g[Q], arrays) == digits([[0.170735, -0.139553], [0.137983, 0.205751], [-0.130892, 0.256963]])
    apart = first_difference(g[Q], P * (dO @ V.T - D) @ K / sympy.sqrt(d), arrays)
    assert apart.entry == (0, 0)
    assert apart.largest == digits(0.127183)


def test_G13_log_softmax_subtracts_p_times_the_sum():
    """mlpack/mlpack#2364: the backward of softmax is used for that of log-softmax."""
    z, dy = sa.tensor("z", n), sa.tensor("dy", n)
    g = sa.gradient({z - sa.logsumexp(z): dy}, [z])
    p = sa.softmax(z)
    arrays = {"z": LOGITS, "dy": [0.3, -0.2, 0.7]}
    assert same(g[z], dy - p * sa.sum(dy), arrays)
    assert compute(g[z], arrays) == digits([0.159768, -0.23129, 0.071522])
    apart = first_difference(g[z], p * (dy - dy @ p), arrays)
    assert apart.entry == (0,)
    assert apart.largest == digits(0.211423)


def normalised(x: sa.Tensor, eps: sympy.Rational) -> tuple[sa.Tensor, sa.Tensor]:
    """Centred and scaled entries, and the scale."""
    centred = x - sa.mean(x)
    scale = sa.sqrt(sa.mean(centred**2) + eps)
    return sa.let("xhat", centred / scale), sa.let("sigma", scale)


def test_G15_layer_norm_gradient_needs_both_means_of_the_weighted_cotangent():
    """openxla/xla#8225: two published forms, and hours to decide between them."""
    x, w, b, dy = (sa.tensor(name, n) for name in ("x", "w", "b", "dy"))
    xhat, sigma = normalised(x, sympy.Rational(1, 100))
    g = sa.gradient({w * xhat + b: dy}, [x, w, b])
    arrays = {
        "x": [0.4, -1.0, 0.7, 2.0],
        "w": [1.5, 0.5, -1.0, 2.0],
        "b": [0.2, -0.6, 0.3, 0.9],
        "dy": [0.1, -0.3, 0.8, 0.2],
    }
    a = w * dy
    assert same(g[x], (a - sa.mean(a) - xhat * sa.mean(xhat * a)) / sigma, arrays)
    assert compute(g[x], arrays) == digits([0.250236, 0.158182, -0.677152, 0.268734])
    wrong = {
        0.093377: a - xhat * sa.mean(xhat * a),
        0.204871: a - sa.mean(a),
        0.346183: a - sa.mean(dy) - xhat * sa.mean(xhat * dy),
    }
    for largest, form in wrong.items():
        apart = first_difference(g[x], form / sigma, arrays)
        assert apart.entry == (0,)
        assert apart.largest == digits(largest)
    assert same(g[w], dy * xhat, arrays)
    assert same(g[b], dy, arrays)


def test_G17_rms_norm_row_sum_is_a_column():
    """BobMcDear/attorch#17: the row sum is broadcast along the batch; a square batch hides it."""

    def forms(rows, columns):
        X, w, dY = sa.tensor("X", rows, columns), sa.tensor("w", columns), sa.tensor("dY", rows, columns)
        R = sa.let("R", sa.rsqrt(sa.mean(X**2, axis=-1) + sympy.Rational(1, 100)))
        column = R[:, None]
        right = column * (w * dY) - column**3 / columns * X * sa.sum(X * w * dY, axis=-1, keepdims=True)
        g = sa.gradient({X * column * w: dY}, [X])[X]
        return g, right, lambda: column * (w * dY) - R**3 / columns * X * sa.sum(X * w * dY, axis=-1)

    *_, wrong = forms(T, d)
    with pytest.raises(sa.ShapeError, match=r"\[T, d\].*\[T\]|\[T\].*\[T, d\]"):
        wrong()
    g, right, wrong = forms(n, n)
    arrays = {"X": SEQUENCE, "w": [1.5, 0.5, -1.0], "dY": [[0.2, -0.1, 0.4], [0.5, 0.3, -0.2], [-0.4, 0.7, 0.1]]}
    assert same(g, right, arrays)
    assert compute(g, arrays) == digits(
        [[0.43589, -0.154312, -0.473275], [0.165261, 0.050226, 0.553571], [-0.491037, -0.05456, -0.453837]]
    )
    apart = first_difference(right, wrong(), arrays)
    assert apart.entry == (0, 1)
    assert apart.largest == digits(1.040828)


def test_G19_all_ones_is_a_vacuous_cotangent_for_a_normalisation():
    """HomericIntelligence/Mnemosyne#310: a gradient of 0 against a difference quotient made of rounding noise."""
    x, dy = sa.tensor("x", n), sa.tensor("dy", n)
    row = [0.4, -1.0, 0.7, 2.0]
    xhat, sigma = normalised(x, sympy.Rational(1, 10**5))
    right = sa.gradient({xhat: dy}, [x])[x]
    total = sa.gradient(sa.sum(xhat), [x])[x]
    assert np.abs(compute(total, {"x": row})).max() <= 1e-15
    exact, _ = normalised(x, sympy.Integer(0))
    along = sa.gradient({exact: dy}, [x])[x]
    assert np.abs(compute(along, {"x": row, "dy": compute(exact, {"x": row})})).max() <= 1e-14

    f, step = sa.lambdify([x], sa.sum(xhat)), np.float32(1e-4)
    moves = step * np.eye(4, dtype=np.float32)
    at = np.array(row, np.float32)
    noise = max(abs(float(f(at + m) - f(at - m))) / (2 * step) for m in moves)
    assert 1e-4 < noise < 1e-2

    half = (dy - sa.mean(dy)) / sigma  # a wrong backward, which all ones cannot see
    with pytest.raises(IndexError):
        first_difference(right, half, {"x": row, "dy": [1, 1, 1, 1]})
    assert first_difference(right, half, {"x": row, "dy": [0.1, -0.3, 0.8, 0.2]}).entry == (0,)


def test_G21_dropout_scale_may_be_deferred_if_D_is_compensated():
    """Dao-AILab/flash-attention#93: the factor 1/(1-p) at write-back is suspected to be a double scaling."""
    keep = sympy.Rational(3, 4)
    M, O, D = dropout(keep)
    assert same(O, P * M @ V / keep, DROPPED)
    assert first_difference(O, O / keep, DROPPED).entry == (0, 0)

    g = sa.gradient({O: dO}, [Q])
    deferred, uncompensated = (P * ((dO @ V.T) * M - shift) / keep @ K / sympy.sqrt(d) for shift in (keep * D, D))
    assert same(g[Q], deferred, DROPPED)
    apart = first_difference(g[Q], uncompensated, DROPPED)
    assert apart.entry == (0, 0)
    assert apart.largest == digits(0.064202)


def test_G23_cross_entropy_gradient_is_p_times_the_label_sum_minus_the_labels():
    """hankcs/CS224n#17: a student misses the softmax derivative, which is already in p - y."""
    z, y = sa.tensor("z", n), sa.tensor("y", n)
    p = sa.softmax(z)
    g = sa.gradient(-sa.sum(y * sa.log(p)), [z])
    verified = {
        (0, 0, 1): [0.17529, 0.039113, -0.214403],
        (0.2, 0.3, 0.5): [-0.02471, -0.260887, 0.285597],
        (1, 0, 1): [-0.649419, 0.078225, 0.571194],
    }
    for labels, numbers in verified.items():
        arrays = {"z": LOGITS, "y": labels}
        assert same(g[z], p * sa.sum(y) - y, arrays)
        assert compute(g[z], arrays) == digits(numbers)
    apart = first_difference(g[z], (sa.diag(p) - sa.outer(p, p)) @ (p - y), {"z": LOGITS, "y": (0, 0, 1)})
    assert apart.entry == (0,)
    assert apart.largest == digits(0.15295)
    apart = first_difference(g[z], p - y, {"z": LOGITS, "y": (1, 0, 1)})  # labels that do not sum to 1
    assert apart.entry == (0,)


def test_G25_self_attention_sums_three_paths_into_dX():
    """ai.stackexchange.com/questions/25055: the four gradients, and a score without its transpose."""
    D = sa.sizes("D")
    X = sa.tensor("X", T, D)
    W_q, W_k, W_v = sa.tensor("W_q", D, d), sa.tensor("W_k", D, d), sa.tensor("W_v", D, e)
    q, k, v = sa.let("Q", X @ W_q), sa.let("K", X @ W_k), sa.let("V", X @ W_v)
    O = sa.softmax(q @ k.T / sympy.sqrt(d)) @ v
    g = sa.gradient({O: dO}, [X, W_q, W_k, W_v, q])
    for letter in "qkv":
        assert line(g, f"dW_{letter}") == f"X.T @ d{letter.upper()}"
    assert sorted(line(g, "dX").split(" + ")) == ["dK @ W_k.T", "dQ @ W_q.T", "dV @ W_v.T"]

    arrays = {
        "X": SEQUENCE,
        "W_q": [[0.5, -0.2], [0.1, 0.8], [-0.6, 0.3]],
        "W_k": [[0.2, 0.7], [-0.5, 0.1], [0.4, -0.9]],
        "W_v": [[1.0, 0.0], [0.3, -0.4], [-0.2, 0.6]],
        "dO": STANDARD["dO"],
    }
    assert compute(g[X], arrays) == digits(
        [[0.293274, 0.062523, -0.003467], [-0.206099, -0.206475, 0.558563], [0.279018, -0.181884, -0.159462]]
    )
    apart = first_difference(g[X], g[q] @ W_q.T, arrays)
    assert apart.entry == (0, 0)
    assert apart.largest == digits(0.546227)
    with pytest.raises(sa.ShapeError, match=r"X\[T, D\]"):
        X @ W_q @ W_k.T @ X


def test_G27_hessian_of_cross_entropy_is_the_softmax_jacobian():
    """tensorflow/tensorflow#7403: a fused op returns an all-zero Hessian without an error."""
    z, y = sa.tensor("z", n), sa.tensor("y", n, constant=True)
    p = sa.let("p", sa.softmax(z))
    first = sa.gradient(sa.logsumexp(z) - y @ z, [z])[z]
    hessian = sa.gradient({first: sa.eye(n)}, [z])[z]  # one row of the identity a cotangent
    assert hessian.shape == (n, n)
    arrays = {"z": LOGITS, "y": [1, 0, 0]}
    assert same(hessian, sa.diag(p) - sa.outer(p, p), arrays)
    assert compute(hessian, arrays)[0] == digits([0.144564, -0.006856, -0.137708])
    assert np.abs(compute(hessian @ sa.ones(n), arrays)).max() <= 1e-15
    assert compute(hessian, {"z": [0.5, 0.5], "y": [1, 0]}) == digits([[0.25, -0.25], [-0.25, 0.25]])
    assert first_difference(hessian, sa.zeros(3, 3), arrays).entry == (0, 0)
