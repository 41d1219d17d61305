"""Questions of initialisation theory, with the answers of the literature: rows of quantity, law and answer.

Each row has the moment, the quantity, the laws of its tensors, and the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
from sympy import Rational, asin, cos, erf, exp, gamma, pi, sqrt

import symattn as sa
from symattn.attention import layer_norm, rms_norm

D, N, M = sa.sizes("d n m")
SIGMA, ALPHA = sympy.symbols("sigma alpha", positive=True)
MU, T = sympy.symbols("mu t", real=True)
RHO = sympy.Symbol("rho", real=True)
Z, A, B, C = (sa.tensor(name) for name in "zabc")
X, Y, W, Q, K = (sa.tensor(name, D) for name in "xywqk")
W_1, W_2, V = sa.tensor("W_1", N, D), sa.tensor("W_2", M, N), sa.tensor("v", N)
NORMAL = sa.iid("normal")
CENTRED, SHIFTED = {Z: sa.iid("normal", variance=SIGMA**2)}, {Z: sa.iid("normal", mean=MU, variance=SIGMA**2)}
ONE = {Z: NORMAL}
FIXED = {W: sa.iid("normal", variance=SIGMA**2 / D), X: "constant", Y: "constant"}
ALONE = {W: FIXED[W], X: "constant"}
VECTOR = {X: sa.iid("normal", variance=SIGMA**2)}
TWO, PAIR = {Q: NORMAL, K: NORMAL}, {(A, B): sa.iid_pair(correlation=RHO)}
AB, ABC = {A: NORMAL, B: NORMAL}, {A: NORMAL, B: NORMAL, C: NORMAL}
BOTH = {W_1: sa.iid("normal", variance=2 / D), X: "constant"}
DEEP = {**BOTH, W_2: sa.iid("normal", variance=2 / N)}


def dot(a: sa.Tensor, b: sa.Tensor) -> sympy.Expr:
    return sa.expectation(a @ b, dict.fromkeys((a, b), "constant"))


def step(x: Any) -> sa.Tensor:
    return sa.where(x > 0, 1, 0)


XX, YY, XY = dot(X, X), dot(Y, Y), dot(X, Y)
S, P, R = SIGMA**2 * XX / D, SIGMA**2 * YY / D, SIGMA**2 * XY / D  # variances of w.x and w.y, and their covariance
ANGLE = asin(R / sqrt(S * P))
TAIL, EDGE = exp(-(MU**2) / (2 * SIGMA**2)), erf(MU / (SIGMA * sqrt(2)))
HAT, RMS = layer_norm(X, eps=0), rms_norm(X, eps=0)
JACOBIAN = sa.jacobian(HAT, X)
BACK = sa.gradient(sa.relu(W_1 @ X), [X])
LAMBDA, SELU = Rational(10507, 10000), Rational(16733, 10000)
SELU_SECOND = (
    LAMBDA**2 / 2 * (1 + SELU**2 * (exp(2) * (1 - erf(sqrt(2))) - 2 * exp(Rational(1, 2)) * (1 - erf(1 / sqrt(2))) + 1))
)


def selu(v: Any) -> sa.Tensor:
    return LAMBDA * sa.where(v > 0, v, SELU * (sa.exp(v) - 1))


def normal_cdf(v: Any) -> Any:
    return (1 + sympy.erf(v / sqrt(2))) / 2


Row = tuple[Callable[..., Any], Any, Any, Any]
E, VAR = sa.expectation, sa.variance
NOTES: dict[str, Row] = {  # of the notes that the issue was written from
    "He 15: relu squared": (E, sa.relu(Z) ** 2, CENTRED, SIGMA**2 / 2),
    "He 15: relu with a mean": (E, sa.relu(Z), SHIFTED, MU * (1 + EDGE) / 2 + SIGMA * TAIL / sqrt(2 * pi)),
    "He 15: leaky": (E, sa.where(Z > 0, Z, ALPHA * Z) ** 2, CENTRED, (1 + ALPHA**2) * SIGMA**2 / 2),
    "He 15: a layer": (VAR, W @ sa.relu(X), {W: sa.iid(variance=2 / D), **VECTOR}, SIGMA**2),
    "Glorot 10": (
        VAR, W @ X, {W: sa.iid(variance=2 / (D + N)), X: sa.iid(variance=SIGMA**2)}, 2 * D * SIGMA**2 / (D + N),
    ),
    "Cho and Saul 09: order 0": (E, step(W @ X) * step(W @ Y), FIXED, Rational(1, 4) + ANGLE / (2 * pi)),
    "Cho and Saul 09: order 1": (
        E, sa.relu(W @ X) * sa.relu(W @ Y), FIXED, (sqrt(S * P - R**2) + R * (pi / 2 + ANGLE)) / (2 * pi),
    ),
    "Cho and Saul 09: order 2": (
        E, sa.relu(W @ X) ** 2 * sa.relu(W @ Y) ** 2, FIXED,
        (3 * sqrt(S * P - R**2) * R + (pi / 2 + ANGLE) * (S * P + 2 * R**2)) / (2 * pi),
    ),
    "Williams 97": (
        E, sa.erf(W @ X) * sa.erf(W @ Y), FIXED, 2 / pi * asin(2 * R / sqrt((1 + 2 * S) * (1 + 2 * P))),
    ),
    "folded normal": (E, sa.abs(Z), SHIFTED, MU * EDGE + SIGMA * sqrt(2 / pi) * TAIL),
    "GELU": (E, sa.gelu(Z), CENTRED, SIGMA**2 / sqrt(2 * pi * (1 + SIGMA**2))),
    "Bussgang": (E, Z * sa.gelu(Z), CENTRED, SIGMA**2 / 2),
    "unit scaling 23": (
        E, sa.gelu(Z) ** 2, CENTRED,
        SIGMA**2 / 4 + SIGMA**2 * asin(SIGMA**2 / (1 + SIGMA**2)) / (2 * pi)
        + SIGMA**4 / (pi * (1 + SIGMA**2) * sqrt(1 + 2 * SIGMA**2)),
    ),
    "Tsuchida 21": (
        E, sa.gelu(W @ X) * sa.gelu(W @ Y), FIXED,
        R / 4 + R * asin(R / sqrt((1 + S) * (1 + P))) / (2 * pi)
        + (S * (P - R**2 / (1 + S)) + R**2 / (1 + P)) / (2 * pi * sqrt((1 + S) * (1 + P) - R**2)),
    ),
    "SELU 17": (E, selu(Z) ** 2, ONE, SELU_SECOND),
    "tails": (
        E, Z * step(Z - T), SHIFTED,
        MU * normal_cdf((MU - T) / SIGMA) + SIGMA * exp(-((T - MU) ** 2) / (2 * SIGMA**2)) / sqrt(2 * pi),
    ),
    "Performer 21: a weight": (E, sa.exp(Q @ K / sqrt(D)), TWO, (1 - 1 / D) ** (-D / 2)),
    "Performer 21: a feature": (
        VAR, sa.exp(W @ X - X @ X / 2) * sa.exp(W @ Y - Y @ Y / 2), {W: NORMAL, X: "constant", Y: "constant"},
        exp(2 * XY) * (exp(XX + YY + 2 * XY) - 1),
    ),
    "Rahimi 07": (E, sa.cos(W @ X - W @ Y), FIXED, exp(-SIGMA**2 * (XX + YY - 2 * XY) / (2 * D))),
    "Reformer": (E, sa.sign(W @ X) * sa.sign(W @ Y), FIXED, 2 * ANGLE / pi),
    "maxout 13": (E, sa.maximum(sa.maximum(A, B), C), ABC, 3 / (2 * sqrt(pi))),
    "GEGLU 20": (
        E, (A * sa.gelu(B)) ** 2, {A: sa.iid(variance=SIGMA**2), B: NORMAL}, SIGMA**2 * (sqrt(3) + 2 * pi) / (6 * pi),
    ),
    "Xiong 20: a norm": (E, sa.sqrt(X @ X), VECTOR, SIGMA * sqrt(2) * gamma((D + 1) / 2) / gamma(D / 2)),
    "LayerNorm: two": (E, HAT[0] * HAT[1], VECTOR, -1 / (D - 1)),
    "LayerNorm: fourth": (E, HAT[0] ** 4, VECTOR, 3 * (D - 1) / (D + 1)),
    "Xiong 20: the Jacobian": (E, sa.sum(JACOBIAN * JACOBIAN), VECTOR, D * (D - 2) / (SIGMA**2 * (D - 3))),
    "RMSNorm 19": (
        E, rms_norm(X)[0] ** 2, {X: sa.iid("normal", variance=Rational(1, 10**4))},
        D / 2 * exp(D / 20) * sympy.expint(D / 2 + 1, D / 20),
    ),
    "QK-norm 20": (E, (Q @ K) ** 4 / ((Q @ Q) ** 2 * (K @ K) ** 2), TWO, 3 / (D * (D + 2))),
    "muP 22": (VAR, Q @ K / D, {(Q, K): sa.iid_pair(correlation=RHO)}, (1 + RHO**2) / D),
    "He 15: backward": (E, BACK[X] @ BACK[X], {**BOTH, BACK.cotangent: sa.iid()}, N),
    "dropout 14": (
        VAR, A * Z / Rational(3, 4), {A: sa.iid("bernoulli", probability=Rational(3, 4)), Z: SHIFTED[Z]},
        (SIGMA**2 + MU**2) * 4 / 3 - MU**2,
    ),
}  # fmt: skip
OWN: dict[str, Row] = {
    "relu to the third": (E, sa.relu(Z) ** 3, CENTRED, sqrt(2 / pi) * SIGMA**3),
    "squared relu (Primer)": (E, sa.relu(Z) ** 4, CENTRED, 3 * SIGMA**4 / 2),
    "absolute third moment": (E, sa.abs(Z) ** 3, CENTRED, 2 * sqrt(2 / pi) * SIGMA**3),
    "sign with a mean": (E, sa.sign(Z), SHIFTED, EDGE),
    "tail probability": (E, step(Z - T), SHIFTED, normal_cdf((MU - T) / SIGMA)),
    "erf with a mean": (E, sa.erf(Z), SHIFTED, erf(MU / sqrt(1 + 2 * SIGMA**2))),
    "variance of relu": (VAR, sa.relu(Z), CENTRED, SIGMA**2 * (pi - 1) / (2 * pi)),
    "variance of a folded normal": (VAR, sa.abs(Z), CENTRED, SIGMA**2 * (1 - 2 / pi)),
    "z relu(z)": (E, Z * sa.relu(Z), CENTRED, SIGMA**2 / 2),
    "elu": (
        E, sa.where(Z > 0, Z, sa.exp(Z) - 1), CENTRED,
        SIGMA / sqrt(2 * pi) + exp(SIGMA**2 / 2) * (1 - erf(SIGMA / sqrt(2))) / 2 - Rational(1, 2),
    ),
    "cos with a mean": (E, sa.cos(Z), SHIFTED, cos(MU) * exp(-(SIGMA**2) / 2)),
    "sin squared": (E, sa.sin(Z) ** 2, CENTRED, (1 - exp(-2 * SIGMA**2)) / 2),
    "Snake": (E, (Z + sa.sin(Z) ** 2), CENTRED, (1 - exp(-2 * SIGMA**2)) / 2),
    "z sin(z)": (E, Z * sa.sin(Z), CENTRED, SIGMA**2 * exp(-(SIGMA**2) / 2)),
    "exponential of the positive part": (
        E, sa.exp(sa.relu(Z)), CENTRED, Rational(1, 2) + exp(SIGMA**2 / 2) * normal_cdf(SIGMA),
    ),
    "Laplace kernel": (E, sa.exp(-sa.abs(Z)), CENTRED, 2 * exp(SIGMA**2 / 2) * normal_cdf(-SIGMA)),
    "both sides": (E, sa.relu(Z) * sa.relu(-Z), CENTRED, 0),
    "minimum of two": (E, sa.minimum(A, B), AB, -1 / sqrt(pi)),
    "maximum of two correlated": (E, sa.maximum(A, B), PAIR, sqrt((1 - RHO) / pi)),
    "maximum squared": (E, sa.maximum(A, B) ** 2, AB, 1),
    "difference of two": (E, sa.abs(A - B), AB, 2 / sqrt(pi)),
    "independent relus": (E, sa.relu(A) * sa.relu(B), AB, 1 / (2 * pi)),
    "two folded": (E, sa.abs(A) * sa.abs(B), PAIR, 2 / pi * (sqrt(1 - RHO**2) + RHO * asin(RHO))),
    "an orthant of three": (
        E, step(A) * step(B) * step(A + B + C), ABC, Rational(1, 8) + 2 * asin(1 / sqrt(3)) / (4 * pi),
    ),
    "squared normal distribution": (
        E, (1 + sa.erf(Z / sqrt(2))) ** 2 / 4, CENTRED, Rational(1, 4) + asin(SIGMA**2 / (1 + SIGMA**2)) / (2 * pi),
    ),
    "ReGLU": (E, (A * sa.relu(B)) ** 2, AB, Rational(1, 2)),
    "bilinear with a gate": (E, (A * step(B)) ** 2, PAIR, Rational(1, 2)),
    "positive features": (
        E, sa.exp(W @ X - X @ X / 2) * sa.exp(W @ Y - Y @ Y / 2), {W: NORMAL, X: "constant", Y: "constant"}, exp(XY),
    ),
    "active units": (E, sa.sum(step(W_1 @ X)), BOTH, N / 2),
    "length after a layer": (E, sa.sum(sa.relu(W_1 @ X) ** 2), BOTH, N * XX / D),
    "length after two layers": (E, sa.sum(sa.relu(W_2 @ sa.relu(W_1 @ X)) ** 2), DEEP, M * XX / D),
    "a readout": (E, (V @ sa.relu(W_1 @ X)) ** 2, {**BOTH, V: sa.iid(variance=1 / N)}, XX / D),
    "inverse length": (E, 1 / sa.sqrt(X @ X), VECTOR, gamma((D - 1) / 2) / (sqrt(2) * SIGMA * gamma(D / 2))),
    "RMSNorm: second": (E, RMS[0] ** 2, VECTOR, 1),
    "RMSNorm: fourth": (E, RMS[0] ** 4, VECTOR, 3 * D / (D + 2)),
    "RMSNorm: two": (E, RMS[0] ** 2 * RMS[1] ** 2, VECTOR, D / (D + 2)),
    "LayerNorm: two squared": (E, HAT[0] ** 2 * HAT[1] ** 2, VECTOR, (D**2 - 2 * D + 3) / (D**2 - 1)),
    "QK-norm: second": (E, (Q @ K) ** 2 / ((Q @ Q) * (K @ K)), TWO, 1 / D),
    "exponential of a product": (E, sa.exp(A * B), {A: CENTRED[Z], B: NORMAL}, 1 / sqrt(1 - SIGMA**2)),
    "Gaussian kernel": (E, sa.exp(-X @ X / 2), VECTOR, (1 + SIGMA**2) ** (-D / 2)),
    "relu under dropout": (
        E, (A * sa.relu(Z) / Rational(3, 4)) ** 2, {A: sa.iid("bernoulli", probability=Rational(3, 4)), **CENTRED},
        2 * SIGMA**2 / 3,
    ),
    "distance to the sign": (E, (Z - sa.sign(Z)) ** 2, CENTRED, SIGMA**2 + 1 - 2 * SIGMA * sqrt(2 / pi)),
    "hard tanh": (
        E, sa.minimum(sa.maximum(Z, -1), 1) ** 2, ONE, 1 - 2 * exp(-Rational(1, 2)) / sqrt(2 * pi),
    ),
    "length of relu features, x random": (
        E, sa.sum(sa.relu(W_1 @ X)), {W_1: NORMAL, X: NORMAL}, N * gamma((D + 1) / 2) / (sqrt(pi) * gamma(D / 2)),
    ),
}  # fmt: skip
REFUSED = {
    "tanh of a shifted normal": (sa.tanh(Z), SHIFTED),
    "tanh squared": (sa.tanh(Z) ** 2, CENTRED),
    "silu": (sa.silu(Z) ** 2, CENTRED),
    "softplus": (sa.log(1 + sa.exp(Z)), CENTRED),
    "four orthants": (step(A + B) * step(B + C) * step(C + Z) * step(A - Z), {**ABC, Z: NORMAL}),
    "relu of signs": (sa.relu(W @ X), {W: sa.iid("rademacher"), X: "constant"}),
}
