"""Recurrences with closed forms that are true, and mutants of them: of the step, the start, the sequences, the forms.

What the search for an induction says of a mutant is judged by numbers at one to six steps.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
import sympy

import symattn as sa
from symattn import attention
from symattn.core.budget import Budget, OutOfBudget
from symattn.core.node import rebuild, topological
from symattn.core.sizes import same_shape
from symattn.errors import SymattnError
from symattn.ops.leaves import variable
from symattn.proof.argument import Argument
from symattn.proof.claims import eq
from symattn.proof.engine import PROBLEMS, argued
from symattn.proof.given import applied, sorted_out
from symattn.proof.induction.plan import Induction, plans
from symattn.recurrence.body import loop_of
from symattn.recurrence.record import scan_op, values_of
from symattn.recurrence.scans import is_value_of

from .agreement import TOLERANCE, gap
from .mutants import MUTATIONS
from .soundness import Tally

T, d, e, B, b, S, L = sa.sizes("T d e B b S L")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", T, d), sa.tensor("V", T, e)
x, y, z, g, beta = (sa.tensor(name, T) for name in ("x", "y", "z", "g", "beta"))
FLAT = [sa.tensor(name, B * b, size) for name, size in (("Q", d), ("K", d), ("V", e))]
gamma = sympy.Symbol("gamma", positive=True)
by = sa.induction
COUNT = sa.sum(sa.ones(T))
_STEPS = range(1, 7)  # numbers of steps that are tried
_OTHERS = (2, 3, 1)  # other sizes
_SECONDS = 3.0  # for one question


@dataclass(frozen=True)
class Question:
    """Two sides, and how they are proved to be equal."""

    left: sa.Tensor
    right: sa.Tensor
    how: Induction | None = None

    def __str__(self) -> str:
        return f"{self.left} = {self.right}, by {self.how}"


def linear(S: Any, read: Any) -> Any:
    q, k, v = read
    S = S + sa.outer(k, v)
    return S, q @ S


def gated(S: Any, read: Any) -> Any:
    decay, q, k, v = read
    S = sa.exp(decay) * S + sa.outer(k, v)
    return S, q @ S


def delta(S: Any, read: Any) -> Any:
    rate, q, k, v = read
    S = S + sa.outer(k, rate * (v - k @ S))
    return S, q @ S


def online(state: Any, read: Any) -> Any:
    (m, l, n), (s, v) = state, read
    new = sa.maximum(m, s)
    old, weight = sa.exp(m - new), sa.exp(s - new)
    return (new, old * l + weight, old * n + weight * v), None


def along(step: Callable[..., Any], start: Any, xs: Any, **more: Any) -> Any:
    return sa.scan(step, start, xs, **more)


def summed(s: Any, x: Any) -> Any:
    return s + x, s + x


def softmax_of(start: Any) -> Any:
    (_, l, n), _ = along(online, (start, 0, sa.zeros(e)), (z, V))
    return n / l


def _delta() -> Question:
    weights = sa.inv(sa.eye(T) + sa.tril(beta[:, None] * (K @ K.T), -1)) @ (beta[:, None] * V)
    whole = attention.delta_rule(Q, K, V, beta)
    return Question(along(delta, sa.zeros(d, e), (beta, Q, K, V))[1], whole, by(K.T @ weights, whole))


def _gated() -> Question:
    whole = attention.gated_linear(Q, K, V, g)
    last = K.T @ (attention.decay_matrix(g)[-1][:, None] * V)
    return Question(along(gated, sa.zeros(d, e), (g, Q, K, V))[1], whole, by(last, whole))


def _linear() -> Question:
    whole = sa.tril(Q @ K.T) @ V
    return Question(along(linear, sa.zeros(d, e), (Q, K, V))[1], whole, by(K.T @ V, whole))


def _in_blocks() -> Question:
    def step(S: Any, read: Any) -> Any:
        q, k, v = read
        return S + k.T @ v, q @ S + sa.tril(q @ k.T) @ v

    q, k, v = FLAT
    _, rows = along(step, sa.zeros(d, e), tuple(sa.split_axis(x, 0, (B, b)) for x in FLAT))
    whole = sa.tril(q @ k.T) @ v
    return Question(sa.merge_axes(rows, (0, 1)), whole, by(k.T @ v, sa.split_axis(whole, 0, (B, b))))


def _averages(rate: sympy.Symbol) -> Question:
    """An exponential average and its weights."""
    weights = rate ** sa.from_index((T,), lambda i: T - 1 - i)
    last, _ = along(lambda s, x: (rate * s + x, None), 0, x)
    return Question(last, weights @ x)


def _mean() -> Question:
    """The running mean, by how many there were."""

    def step(state: Any, x: Any) -> Any:
        n, mean = state
        return (n + 1, mean + (x - mean) / (n + 1)), None

    _, mean = along(step, (0, 0), x)[0]
    return Question(mean, sa.mean(x), by((COUNT, sa.mean(x))))


def _images() -> Question:
    X, W, Pi = sa.tensor("X", S, d), sa.tensor("W", L, d, d), sa.tensor("P", S, S, permutation=True)

    def net(X: Any) -> Any:
        return along(lambda X, W: (X + sa.tanh(sa.softmax(X @ X.T) @ X @ W), None), X, W)[0]

    return Question(net(Pi @ X), Pi @ net(X))


def _multiples() -> Question:
    def run(start: Any, xs: Any) -> Any:
        return along(lambda s, x: (x[0] * s + x[1], None), start, (x, xs))[0]

    u = sa.tensor("u")
    return Question(run(2 * u, 2 * y), 2 * run(u, y))


def _relative() -> Question:
    return Question(
        softmax_of(0),
        sa.softmax(z) @ V,
        by(final=lambda m, z, V: (None, sa.sum(sa.exp(z - m)), sa.exp(z - m) @ V), free=0),
    )


def _online() -> Question:
    scores = sa.exp(z - sa.max(z))
    return Question(softmax_of(-sympy.oo), sa.softmax(z) @ V, by((sa.max(z), sa.sum(scores), scores @ V)))


def _backwards() -> Question:
    after = sa.sum(x) - sa.cumsum(x) + x
    _, rest = sa.scan(summed, 0, x, reverse=True)
    return Question(rest, after, by(lambda y: sa.sum(y), lambda y: sa.cumsum(y, reverse=True)))


def of_steps(question: Question, steps: int) -> Question:
    """The question for a number of steps, or of blocks or layers, that is no symbol."""
    how = question.how

    def put(x: Any) -> Any:
        return x.subs({s: steps for s in (T, B, L) if s in x.free_symbols})

    def several(forms: Any) -> Any:
        return forms if callable(forms) else tuple(None if x is None else put(x) for x in forms)

    if how is not None:
        how = Induction(several(how.final), several(how.outputs), how.free, how.inner)
    return Question(put(question.left), put(question.right), how)


QUESTIONS: dict[str, Callable[[], Question]] = {
    "a sum": lambda: Question(along(summed, 0, x)[0], sa.sum(x)),
    "running sums": lambda: Question(along(summed, 0, x)[1], sa.cumsum(x)),
    "products of two": lambda: Question(along(lambda s, r: (s + r[0] * r[1], None), 0, (x, y))[0], x @ y),
    "a start that is read": lambda: Question(along(summed, x[0], x)[0], sa.sum(x) + x[0]),
    "all but the first": lambda: Question(along(summed, 0, x[1:])[0], sa.sum(x[1:])),
    "a count": lambda: Question(along(lambda s, _: (s + 1, None), 0, None, length=T)[0], COUNT),
    "a quotient": lambda: Question(along(lambda s, x: (s / (1 + s * x), None), 1, x)[0], 1 / (1 + sa.sum(x))),
    "an average": lambda: _averages(gamma),
    "an average of any sign": lambda: _averages(sympy.Symbol("alpha", real=True)),
    "a mean": _mean,
    "linear attention": _linear,
    "the last state": lambda: Question(along(linear, sa.zeros(d, e), (Q, K, V))[0], K.T @ V),
    "in blocks": _in_blocks,
    "gated": _gated,
    "delta": _delta,
    "unit queries": lambda: Question(_delta().left, _delta().right),
    "online softmax": _online,
    "any reference": _relative,
    "backwards": _backwards,
    "layers": _images,
    "multiples": _multiples,
}


# --- mutants ---

Change = Callable[[Question, random.Random], "Question | None"]


def _changed(roots: Sequence[sa.Tensor], rng: random.Random) -> list[sa.Tensor]:
    """Some tensors with one node changed wherever it is; as they are where the mutation does not fit."""
    nodes = topological(roots)
    met = {node.op.name for node in nodes}
    ops, change = rng.choice([pair for pair in MUTATIONS.values() if not pair[0] or met.intersection(pair[0])])
    node = rng.choice([node for node in nodes if not ops or node.op.name in ops])
    new = change(node, nodes, rng)
    if new is None or not same_shape(new.shape, node.shape):
        return list(roots)
    return rebuild(roots, {node: new})


def _loop(question: Question, rng: random.Random) -> sa.Tensor:
    return rng.choice([x for x in topological([question.left, question.right]) if x.op is scan_op])


def _with_loop(question: Question, node: sa.Tensor, **changes: Any) -> Question:
    """The question with another loop in the place of one."""
    loop = loop_of(node)._replace(**changes)
    final, outputs = values_of(loop)
    roots = [question.left, question.right]
    values = [x for x in topological(roots) if is_value_of(node, x)]
    new = {x: (final if x.params["take"][0] == "final" else outputs)[x.params["take"][1]] for x in values}
    left, right = rebuild(roots, new)
    return Question(left, right, question.how)


def in_the_step(question: Question, rng: random.Random) -> Question | None:
    """One operation of the step is another."""
    node = _loop(question, rng)
    step = node.params["body"].opened()
    roots = _changed(step.roots, rng)
    count = len(step.after)
    return _with_loop(question, node, step=step._replace(after=tuple(roots[:count]), outputs=tuple(roots[count:])))


def in_the_start(question: Question, rng: random.Random) -> Question | None:
    """A state begins elsewhere."""
    node = _loop(question, rng)
    first = list(loop_of(node).first)
    k = rng.randrange(len(first))
    if first[k].holds_minus_infinity:
        first[k] = sa.zeros(*first[k].shape)
    else:
        first[k] = rng.choice([first[k] + 1, 2 * first[k], -first[k] + rng.choice([0, 1])])
    return _with_loop(question, node, first=tuple(first))


def in_a_sequence(question: Question, rng: random.Random) -> Question | None:
    """A sequence is another: another order, another function of what it is made of, or another one in its place."""
    node = _loop(question, rng)
    sequences = list(loop_of(node).sequences)
    if not sequences:
        return None
    k = rng.randrange(len(sequences))
    x = sequences[k]
    alike = [other for other in sequences if same_shape(other.shape, x.shape)]
    ways: list[Callable[[], sa.Tensor]] = [
        lambda: sa.flip(x, 0),
        lambda: x[::-1],
        lambda: rng.choice(alike),
        lambda: sa.cumsum(x, axis=0),
        lambda: x * x[0],
        lambda: x + x[-1],
        lambda: _changed([x], rng)[0],
        lambda: _changed([x], rng)[0],
    ]
    sequences[k] = rng.choice(ways)()
    return _with_loop(question, node, sequences=tuple(sequences))


def in_the_claim(question: Question, rng: random.Random) -> Question | None:
    """A side, and the closed forms alike where they are tensors."""
    how = question.how
    given = () if how is None else (how.final, how.outputs)
    forms = [x for part in given if not callable(part) for x in part if x is not None]
    right, *changed = _changed([question.right, *forms], rng)
    if how is not None and forms:
        new = iter(changed)
        parts = [part if callable(part) else tuple(None if x is None else next(new) for x in part) for part in given]
        how = Induction(parts[0], parts[1], how.free, how.inner)
    return Question(question.left, right, how)


def in_a_form(question: Question, rng: random.Random) -> Question | None:
    """A closed form alone, also one that is a function."""
    how = question.how
    if how is None:
        return None
    seed = rng.random()

    @wraps(how.final if callable(how.final) else in_a_form)
    def mutated(*arguments: Any) -> Any:
        final = how.final(*arguments) if callable(how.final) else how.final
        several = list(final) if isinstance(final, (tuple, list)) else [final]
        new = iter(_changed([x for x in several if x is not None], random.Random(seed)))
        return tuple(None if x is None else next(new) for x in several)

    final = mutated if callable(how.final) else mutated()
    return Question(question.left, question.right, Induction(final, how.outputs, how.free, how.inner))


CHANGES: tuple[Change, ...] = (
    *(in_the_step, in_the_step, in_the_start, in_a_sequence),
    *(in_the_claim, in_the_claim, in_a_form),
)


def mutants(name: str, count: int, seed: int) -> Iterator[Question]:
    """So many questions with one or two changes of a true one."""
    rng, met = random.Random(f"{seed} {name}"), set()
    question = QUESTIONS[name]()
    for _ in range(40 * count):
        changed: Question | None = question
        try:
            for change in rng.choices(CHANGES, k=rng.choice([1, 1, 1, 2])):
                changed = None if changed is None else change(changed, rng)
        except SymattnError:
            continue
        if changed is None or (key := (changed.left, changed.right, changed.how)) in met:
            continue
        if changed == question or not same_shape(changed.left.shape, changed.right.shape):
            continue
        met.add(key)
        yield changed
        if len(met) == count:
            return


# --- what is said of them ---


def proof_of(question: Question, seconds: float = _SECONDS) -> Argument | None:
    """A proof without any trial."""
    try:
        put = applied(*sorted_out(eq(question.left, question.right), ()))
        found = argued(*put, Budget(seconds), plans(question.how))
    except (OutOfBudget, *PROBLEMS):
        return None
    return found if isinstance(found, Argument) else None


def apart(question: Question) -> float:
    """The largest difference of the two sides, at one to six steps."""
    roots = [question.left, question.right]
    tensors = [x for x in topological(roots) if x.op is variable]
    scalars = sorted({s for root in roots for s in root.free_symbols if not s.is_integer}, key=str)
    compute = sa.lambdify([*tensors, *scalars], roots)
    found = 0.0
    for steps in _STEPS:
        rng = np.random.default_rng(steps)
        symbols = sorted({s for root in roots for s in root.free_symbols if s.is_integer}, key=str)
        others = iter(_OTHERS if steps < 6 else (1, 2, 2))
        sizes = {s: steps if s in (T, B, L) else next(others) for s in symbols}
        arrays = [_array(x, sizes, rng) for x in tensors]
        keywords = {key.name: sizes[key] for key in compute.takes.keywords}
        try:
            with np.errstate(all="ignore"):
                values = compute(*arrays, *_scalars(scalars, rng), **keywords)
        except (sa.EvaluationError, np.linalg.LinAlgError):
            continue
        found = max(found, gap(*(np.asarray(value, dtype=float) for value in values)))
    return found


def _scalars(scalars: Sequence[sympy.Symbol], rng: np.random.Generator) -> list[float]:
    """Numbers, negative ones where they may be."""
    return [float(rng.uniform(0.5, 1.5) * (1 if s.is_positive else rng.choice([-1, 1]))) for s in scalars]


def _array(x: sa.Tensor, sizes: dict[Any, int], rng: np.random.Generator) -> np.ndarray:
    shape = tuple(int(size.subs(sizes)) for size in x.shape)
    if "permutation" in x.params["hypotheses"]:
        return np.eye(shape[0])[rng.permutation(shape[0])]
    return rng.normal(size=shape)


def judged(question: Question, seconds: float = _SECONDS) -> Tally:
    """What is said of a question, against numbers."""
    tally = Tally(Counter(mutants=1))
    found = proof_of(question, seconds)
    if found is not None:
        tally.counts["proved"] += 1
        distance = apart(question)
        if distance > TOLERANCE:
            tally.wrong.append(f"proved, but {distance:.2g} apart: {question}")
    return tally


def mutants_judged(
    names: Sequence[str], count: int, seed: int, seconds: float = _SECONDS, steps: int | None = None
) -> Tally:
    """So many mutants of each question, judged; all at one number of steps, where that is given."""
    tally = Tally()
    for name in names:
        for question in mutants(name, count, seed):
            tally += judged(question if steps is None else of_steps(question, steps), seconds)
    return tally
