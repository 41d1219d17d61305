"""Attention without a softmax over the keys, and features of it: importing this adds them to the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import symattn as sa

from .variants import CAUSAL, KT, VT, K, Q, S, V, attend, np_attend, np_causal, variant


def np_kernel(feature: Callable[[Any], Any], causal: bool = False) -> Callable[..., Any]:
    def forward(q, k, v):
        weight = np.einsum("td,sd->ts", feature(q), feature(k)) * (np_causal(len(q)) if causal else 1)
        return weight / weight.sum(-1, keepdims=True) @ v

    return forward


def elu_plus_one(x: Any) -> Any:
    return sa.where(x > 0, x + 1, sa.exp(x))


def np_elu_plus_one(x: Any) -> Any:
    return np.where(x.real > 0, x + 1, np.exp(x))


def linear(q: Any, k: Any, v: Any) -> Any:
    return q @ sa.let("state", k.T @ v) / (q @ sa.sum(k, axis=0))[:, None]


@variant
def linear_attention_elu():
    return linear(elu_plus_one(Q), elu_plus_one(K), V), [Q, K, V], np_kernel(np_elu_plus_one)


@variant
def linear_attention_exp():
    return linear(sa.exp(Q), sa.exp(K), V), [Q, K, V], np_kernel(np.exp)


@variant
def linear_attention_causal():
    weight = sa.let("A", elu_plus_one(Q) @ elu_plus_one(KT).T * CAUSAL)
    return weight @ VT / sa.sum(weight, axis=-1, keepdims=True), [Q, KT, VT], np_kernel(np_elu_plus_one, causal=True)


@variant
def relu_attention():
    forward = lambda q, k, v: np.where((q @ k.T).real > 0, q @ k.T, 0) @ v / len(k)  # noqa: E731
    return sa.relu(Q @ K.T) @ V / S, [Q, K, V], forward


@variant
def max_pooled_attention():
    def forward(q, k, v):
        o = np_attend(q, k, v)
        return o[o.real.argmax(0), np.arange(o.shape[1])]

    return sa.max(attend(Q, K, V), axis=0), [Q, K, V], forward
