"""Recurrences as they are published, each a row of a table: all forms of the library, and a loop over its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn import attention as A
from symattn.attention.rules import RULES

T, d, e, h, m, n, r = sa.sizes("T d e h m n r")
gamma = sympy.Symbol("gamma", positive=True)
SHAPES: Mapping[str, tuple[Any, ...]] = {
    "Q": (T, d),
    "K": (T, d),
    "V": (T, e),
    "g": (T,),
    "G": (T, d),
    "beta": (T,),
    "B": (T, d),
    "Z": (T, d),
    "i": (T,),
    "dt": (T,),
    "u": (d,),
    "S_0": (d, e),
    "n_0": (d,),
}
SIZES = {d: 4, e: 3, h: 2, m: 2, n: 3, r: 3}
Arguments = dict[str, Any]


class Model(NamedTuple):
    """A published recurrence: the arguments for it, of named tensors; the same as a step over numbers of one head.

    ``step(S, n, **numbers)`` gives the new states and the output; n is the sum of the keys, for those that have one.
    """

    given: Callable[..., Arguments]
    step: Callable[..., tuple[Any, Any, Any]]
    closed: Callable[..., sa.Tensor] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The tensors that the arguments are made of."""
        code = self.given.__code__
        return code.co_varnames[: code.co_argcount]


def weighted(S: Any, n: Any, q: Any) -> tuple[Any, Any, Any]:
    return S, n, q @ S


def fading(S: Any, n: Any, q: Any, k: Any, v: Any, a: Any) -> tuple[Any, Any, Any]:
    """S = Diag(a) S + k v^T."""
    return weighted(np.reshape(a, (-1, 1)) * S + np.outer(k, v), a * n + k, q)


def corrected(S: Any, n: Any, q: Any, k: Any, v: Any, b: Any, a: Any = 1.0) -> tuple[Any, Any, Any]:
    """S = (I - b k k^T) Diag(a) S + b k v^T."""
    return weighted((np.eye(len(k)) - b * np.outer(k, k)) @ (np.reshape(a, (-1, 1)) * S) + b * np.outer(k, v), n, q)


def with_bonus(S: Any, n: Any, Q: Any, K: Any, V: Any, G: Any, u: Any) -> tuple[Any, Any, Any]:
    """o = r (Diag(u) k^T v + S), S = Diag(w) S + k^T v."""
    return np.diag(np.exp(G)) @ S + np.outer(K, V), n, Q @ (np.diag(u) @ np.outer(K, V) + S)


def replaced(S: Any, n: Any, Q: Any, K: Any, V: Any, G: Any, B: Any, Z: Any) -> tuple[Any, Any, Any]:
    """S = S (Diag(w) - z^T (a z)) + v^T k, with values by keys."""
    S = (S.T @ (np.diag(np.exp(G)) - np.outer(Z, B * Z)) + np.outer(V, K)).T
    return weighted(S, n, Q)


def divided(states: tuple[Any, Any, Any], q: Any, least: float | None = None) -> tuple[Any, Any, Any]:
    S, n, output = states
    return S, n, output / (q @ n if least is None else max(abs(q @ n), least))


MODELS = {
    "linear": Model(
        lambda Q, K, V: {"Q": Q, "K": K, "V": V},
        lambda S, n, Q, K, V: fading(S, n, Q, K, V, 1.0),
        lambda Q, K, V: A.causal_linear(Q, K, V, feature=None, normalise=False),
    ),
    "linear, normalised": Model(
        lambda Q, K, V: {"Q": sa.exp(Q), "K": sa.exp(K), "V": V, "normaliser": "sum"},
        lambda S, n, Q, K, V: divided(fading(S, n, np.exp(Q), np.exp(K), V, 1.0), np.exp(Q)),
        lambda Q, K, V: A.causal_linear(Q, K, V, feature=sa.exp),
    ),
    "retention": Model(
        lambda Q, K, V: {"Q": Q, "K": K, "V": V, "rule": "gated", "decay": sa.log(gamma) * sa.ones(Q.shape[-2])},
        lambda S, n, Q, K, V: fading(S, n, Q, K, V, 0.9),
        lambda Q, K, V: A.retention(Q, K, V, gamma),
    ),
    "gated, as in Mamba-2": Model(
        lambda Q, K, V, g, dt: {"Q": Q, "K": dt[..., None] * K, "V": V, "rule": "gated", "decay": dt * g},
        lambda S, n, Q, K, V, g, dt: fading(S, n, Q, dt * K, V, np.exp(dt * g)),
        lambda Q, K, V, g, dt: A.gated_linear(Q, dt[..., None] * K, V, dt * g),
    ),
    "retention, normalised": Model(
        lambda Q, K, V, g: {"Q": Q, "K": K, "V": V, "rule": "gated", "decay": g, "normaliser": "at_least_one"},
        lambda S, n, Q, K, V, g: divided(fading(S, n, Q, K, V, np.exp(g)), Q, 1.0),
    ),
    "mLSTM": Model(
        lambda Q, K, V, g, i: {
            "Q": Q,
            "K": sa.exp(i)[..., None] * K,
            "V": V,
            "rule": "gated",
            "decay": g,
            "normaliser": "at_least_one",
        },
        lambda S, n, Q, K, V, g, i: divided(fading(S, n, Q, np.exp(i) * K, V, np.exp(g)), Q, 1.0),
    ),
    "GLA": Model(
        lambda Q, K, V, G: {"Q": Q, "K": K, "V": V, "rule": "gated", "decay": G},
        lambda S, n, Q, K, V, G: fading(S, n, Q, K, V, np.exp(G)),
        A.gla,
    ),
    "HGRN2": Model(
        lambda Q, V, G: {"Q": Q, "K": 1 - sa.exp(G), "V": V, "rule": "gated", "decay": G},
        lambda S, n, Q, V, G: fading(S, n, Q, 1 - np.exp(G), V, np.exp(G)),
        lambda Q, V, G: A.gla(Q, 1 - sa.exp(G), V, G),
    ),
    "RWKV-6": Model(
        lambda Q, K, V, G, u: {"Q": Q, "K": K, "V": V, "rule": "rwkv6", "decay": G, "bonus": u},
        with_bonus,
    ),
    "DeltaNet": Model(
        lambda Q, K, V, beta: {"Q": Q, "K": K, "V": V, "rule": "delta", "beta": beta},
        lambda S, n, Q, K, V, beta: corrected(S, n, Q, K, V, beta),
        A.delta_rule,
    ),
    "gated DeltaNet": Model(
        lambda Q, K, V, g, beta: {"Q": Q, "K": K, "V": V, "rule": "gated_delta", "decay": g, "beta": beta},
        lambda S, n, Q, K, V, g, beta: corrected(S, n, Q, K, V, beta, np.exp(g)),
        A.gated_delta_rule,
    ),
    "Kimi delta attention": Model(
        lambda Q, K, V, G, beta: {"Q": Q, "K": K, "V": V, "rule": "gated_delta", "decay": G, "beta": beta},
        lambda S, n, Q, K, V, G, beta: corrected(S, n, Q, K, V, beta, np.exp(G)),
        A.kimi_delta,
    ),
    "RWKV-7": Model(
        lambda Q, K, V, G, B, Z: {
            "Q": Q,
            "K": K,
            "V": V,
            "rule": "rwkv7",
            "decay": G,
            "beta": B,
            "removal": Z,
        },
        replaced,
    ),
}
CHEAP = ("linear",)
EACH = [pytest.param(name, marks=[] if name in CHEAP else pytest.mark.slow) for name in MODELS]


def tensors(names: tuple[str, ...], positions: Any, *lead: Any) -> list[sa.Tensor]:
    """Named tensors of so many positions, with axes in front; a number per channel has none."""
    return [sa.tensor(x, *(() if x == "u" else lead), *(s.subs(T, positions) for s in SHAPES[x])) for x in names]


def with_state(given: Arguments, *lead: Any) -> tuple[Arguments, list[sa.Tensor]]:
    states = tensors(("S_0", "n_0") if "normaliser" in given else ("S_0",), T, *lead)
    return {**given, "state": tuple(states) if len(states) > 1 else states[0]}, states


def proved(a: Any, b: Any, **options: Any) -> None:
    verdict = sa.prove(a, b, **options)
    assert verdict.status == "proved", verdict


def parallel(given: Arguments) -> Any:
    return A.recurrence(**given, form="parallel")


@pytest.mark.parametrize("name", EACH)
def test_step_by_step_is_all_at_once(name):
    """For every number of positions, by induction, with and without a state before the first one; and the state."""
    model = MODELS[name]
    given = model.given(*tensors(model.names, T))
    if model.closed is not None:
        proved(parallel(given).output, model.closed(*tensors(model.names, T)), budget=60)
    for one in (given, with_state(given)[0]):
        steps, whole = A.recurrence(**one), parallel(one)
        by = sa.induction(final=whole.state, outputs=whole.output)
        proved(steps.output, whole.output, by=by, budget=60)
    for left, right in zip(
        *(x.state if isinstance(x.state, tuple) else [x.state] for x in (steps, whole)), strict=True
    ):
        proved(left, right, by=by, budget=60)


@pytest.mark.parametrize("name", [pytest.param(x, marks=[] if x == "linear" else pytest.mark.slow) for x in MODELS])
def test_chunks_are_all_at_once(name):
    """For every number and every size of chunks."""
    model = MODELS[name]
    given, _ = with_state(model.given(*tensors(model.names, m * n)))
    chunked, whole = A.recurrence(**given, form="chunked", chunk=n), parallel(given)
    by = sa.induction(final=whole.state, outputs=sa.split_axis(whole.output, 0, (m, n)))
    proved(chunked.output, whole.output, by=by, budget=60)


@pytest.mark.parametrize("name", ["retention", pytest.param("gated DeltaNet", marks=pytest.mark.slow)])
def test_forms_of_heads_agree(name):
    model = MODELS[name]
    given = model.given(*tensors(model.names, T, h))
    steps, whole = A.recurrence(**given), parallel(given)
    by = sa.induction(final=whole.state, outputs=sa.moveaxis(whole.output, -2, 0))
    proved(steps.output, whole.output, by=by, budget=60)


# --- numbers, against loops ---

FORMS = (("recurrent", {}), ("parallel", {}), ("chunked", {"chunk": n}))


def drawn(x: sa.Tensor, rng: Any, sizes: Mapping[Any, int]) -> Any:
    shape = [int(size.subs(sizes)) for size in x.shape]
    numbers = rng.normal(size=shape)
    if x.name in ("g", "G"):
        return -np.abs(numbers)
    return rng.uniform(0.1, 0.9, shape) if x.name in ("beta", "B", "dt", "n_0") else numbers / 2


def looped(model: Model, arrays: Mapping[str, Any], S: Any, normaliser: Any) -> Any:
    """The outputs and the last states of one head, of which each position is a step."""
    count, outputs = next(len(x) for key, x in arrays.items() if key != "u"), []
    for t in range(count):
        S, normaliser, output = model.step(
            S, normaliser, **{key: x if key == "u" else x[t] for key, x in arrays.items()}
        )
        outputs.append(output)
    return np.array(outputs), S, normaliser


@pytest.mark.parametrize("name", MODELS)
def test_all_forms_are_loops_in_numbers(name, rng):
    """With heads in front, and groups of queries that share keys and values."""
    model = MODELS[name]
    inputs = [x for key in model.names for x in tensors((key,), m * n, h, r if key == "Q" else 1)]
    given, states = with_state(model.given(*inputs), h, 1)
    arrays = [drawn(x, rng, SIZES) for x in (*inputs, *states)]
    keywords = {"gamma": 0.9} if name == "retention" else {}
    forms = [A.recurrence(**given, form=form, **chunk) for form, chunk in FORMS]
    results = [flat(sa.lambdify([*inputs, *states], list(form))(*arrays, **keywords, m=2, n=3)) for form in forms]
    by_name = dict(zip([x.name for x in (*inputs, *states)], arrays, strict=True))
    for head in range(SIZES[h]):
        for group in range(SIZES[r]):
            one = {key: of_head(key, by_name[key], head, group) for key in model.names}
            n_0 = by_name["n_0"][head, 0] if "n_0" in by_name else 0
            want = looped(model, one, by_name["S_0"][head, 0], n_0)
            for output, *last in results:
                np.testing.assert_allclose(output[head, group], want[0], rtol=1e-11, atol=1e-11)
                for got, state in zip(last, want[1:], strict=False):
                    np.testing.assert_allclose(got[head, 0], state, rtol=1e-11, atol=1e-11)


def of_head(key: str, x: Any, head: int, group: int) -> Any:
    return x if key == "u" else x[head, group if key == "Q" else 0]


def flat(values: Any) -> list[Any]:
    return [y for x in values for y in (x if isinstance(x, tuple) else (x,))]


@pytest.mark.parametrize("name", MODELS)
def test_steps_with_names_are_loops_in_numbers(name, rng):
    """A whole number of positions is written out, step by step."""
    model = MODELS[name]
    inputs = tensors(model.names, 3)
    given, states = with_state(model.given(*inputs))
    O, state = A.recurrence(**given)
    assert {x.name for x in O.intermediates} >= {"S_1", "S_2"}
    arrays = {x.name: drawn(x, rng, SIZES) for x in (*inputs, *states)}
    keywords = {"gamma": 0.9} if name == "retention" else {}
    found = flat(sa.lambdify([*inputs, *states], [O, state])(*arrays.values(), **keywords))
    want = looped(model, {key: arrays[key] for key in model.names}, arrays["S_0"], arrays.get("n_0", 0))
    for got, wanted in zip(found, want, strict=False):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_differences_of_loops(name, rng):
    """The gradient of the loop of the library, a recurrence backwards, along a direction."""
    model = MODELS[name]
    inputs = tensors(model.names, T)
    O = A.recurrence(**model.given(*inputs)).output
    gradients = sa.gradient(O, inputs)
    f = sa.lambdify([*inputs, gradients.cotangent], gradients)
    sizes = {**SIZES, T: 6}
    arrays, along = ([drawn(x, rng, sizes) for x in inputs] for _ in range(2))
    weights = rng.normal(size=(6, 3))
    found = f(*arrays, weights, **({"gamma": 0.9} if name == "retention" else {}))
    slope = sum(float((x * y).sum()) for x, y in zip(found, along, strict=True))

    def value(step: float) -> float:
        moved = {key: x + step * y for key, x, y in zip(model.names, arrays, along, strict=True)}
        return float((weights * looped(model, moved, np.zeros((4, 3)), np.zeros(4))[0]).sum())

    near = [(value(s) - value(-s)) / (2 * s) for s in (1e-3, 2e-3)]
    np.testing.assert_allclose(slope, (4 * near[0] - near[1]) / 3, rtol=1e-7, atol=1e-8)


FADING = [name for name in MODELS if {"g", "G"} & set(MODELS[name].names)]


@pytest.mark.parametrize("name", FADING)
def test_strong_decays_neither_overflow_nor_make_nan(name, rng):
    """Nor do gradients, whose values all forms share."""
    model = MODELS[name]
    inputs = tensors(model.names, m * n)
    arrays = [drawn(x, rng, SIZES) for x in inputs]
    arrays = [
        np.where(rng.random(a.shape) < 0.5, 1e3 * a, a) if x.name in "gG" else a
        for x, a in zip(inputs, arrays, strict=True)
    ]
    results = []
    for form, chunk in FORMS:
        O = A.recurrence(**model.given(*inputs), form=form, **chunk).output
        gradients = sa.gradient(O, inputs)
        f = sa.lambdify([*inputs, gradients.cotangent], [O, gradients])
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            results.append(f(*arrays, np.ones((6, 3)), m=2, n=3))
    for other in results[1:]:
        for got, want in zip(other, results[0], strict=True):
            assert np.isfinite(got).all()
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["linear", "GLA", "RWKV-6"])
def test_what_fades_does_not_see_later_positions(name):
    model = MODELS[name]
    inputs = tensors(model.names, T)
    for form in ("recurrent", "parallel"):
        output = A.recurrence(**model.given(*inputs), form=form).output
        for x in inputs[1:3]:
            assert sa.prove(sa.independent(output, x, lambda out, inp: inp[0] > out[0])).status == "proved"


def test_normalised_causal_linear_attention_is_two_recurrences():
    q, k, v = tensors(("Q", "K", "V"), 3)
    total = A.recurrence(q, k, sa.ones(3, 1)).output
    found = A.recurrence(q, k, v, normaliser="sum").output
    proved(A.recurrence(q, k, v).output / total, found)
    proved(found, A.causal_linear(q, k, v, feature=None))


def test_a_state_carries_on():
    """A sequence may be cut anywhere: the state of the first part is what the second begins with."""
    gates, rates, q, k, v = tensors(("g", "beta", "Q", "K", "V"), 3)
    whole = A.recurrence(q, k, v, rule="gated_delta", decay=gates, beta=rates)
    first, second = (
        (
            lambda part, **state: A.recurrence(
                q[part], k[part], v[part], rule="gated_delta", decay=gates[part], beta=rates[part], **state
            )
        ),
        slice(1, 3),
    )
    before = first(slice(0, 1))
    after = first(second, state=before.state)
    proved(sa.concat([before.output, after.output]), whole.output)
    proved(after.state, whole.state)


def test_each_rule_says_where_it_stands():
    """Adding a rule is adding a record; a loop over positions of a row above takes it."""
    assert {model.given(*tensors(model.names, T)).get("rule", "linear") for model in MODELS.values()} == set(RULES)
    assert all("arXiv:" in rule.source for rule in RULES.values())


# --- what is refused ---


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"rule": "kda"}, "rule is 'linear', 'gated', 'delta', 'gated_delta', 'rwkv6' or 'rwkv7', not 'kda'"),
        ({"decay": sa.tensor("g", 2)}, "recurrence: the rule 'linear' takes no decay"),
        ({"rule": "gated"}, "recurrence: the rule 'gated' needs decay"),
        ({"rule": "gated_delta", "decay": sa.tensor("g", 2)}, "recurrence: the rule 'gated_delta' needs beta"),
        ({"rule": "gated", "decay": sa.tensor("g", 3)}, "g[3] and K[2, d] differ in the number of positions"),
        ({"rule": "gated", "decay": sa.tensor("g", 2, e)}, "g[2, e] and K[2, d] differ in their width"),
        ({"rule": "delta", "beta": sa.tensor("beta", 2, d)}, "beta[2, d] has 2 axes where beta[.., T] is meant"),
        ({"removal": sa.tensor("Z", 2, d)}, "recurrence: the rule 'linear' takes no removal"),
        ({"rule": "rwkv6", "decay": sa.tensor("g", 2)}, "recurrence: the rule 'rwkv6' needs bonus"),
        ({"rule": "rwkv6", "decay": sa.tensor("g", 2), "bonus": sa.tensor("u", e)}, "K[2, d] differ in their width"),
        ({"rule": "rwkv7", "decay": sa.tensor("g", 2), "beta": sa.tensor("b", 2)}, "the rule 'rwkv7' needs removal"),
        ({"normaliser": "max"}, "recurrence: normaliser is 'sum' or 'at_least_one', not 'max'"),
        ({"rule": "delta", "beta": sa.tensor("b", 2), "normaliser": "sum"}, "the rule 'delta' has no sum of weights"),
        ({"normaliser": "sum", "state": sa.tensor("S_0", d, e)}, "with a normaliser, state is a pair, S[.., d, e] and"),
        ({"form": "chunked"}, "recurrence: the form 'chunked' needs chunk"),
        ({"chunk": 2}, "recurrence: the form 'recurrent' takes no chunk"),
        ({"form": "weights"}, "recurrence: form is 'recurrent', 'parallel' or 'chunked', not 'weights'"),
        ({"state": sa.tensor("S_0", e, d)}, "recurrence: S_0[e, d] and K[2, d] differ in the width of a key"),
    ],
)
def test_recurrences_say_what_they_miss(keywords, message):
    with pytest.raises((sa.ShapeError, sa.OperandError)) as raised:
        A.recurrence(*tensors(("Q", "K", "V"), 2), **keywords)
    assert message in str(raised.value)
