"""A proof of which one thing is changed does not check: claim, hypotheses, steps, conditions, forms, or its point."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
import sympy

import symattn as sa
from symattn.proof.argument import Given
from symattn.proof.bounds.prove import BoundProof
from symattn.proof.dependence.prove import DependenceProof
from symattn.proof.equality.entrywise import EntrywiseProof
from symattn.proof.equality.rewriting import RewritingProof
from symattn.proof.generalised import Generalised
from symattn.proof.given import Stated
from symattn.proof.induction.argument import ByInduction
from symattn.proof.induction.closed_forms import ClosedForm
from symattn.proof.induction.images import Image
from symattn.proof.induction.invariants import ByInvariant
from symattn.proof.induction.steps import Made
from symattn.proof.refute.enumeration import Enumeration
from symattn.proof.verdict import Proof

n, m, d = sa.sizes("n m d")
x, y, A, X = sa.tensor("x", n), sa.tensor("y", n), sa.tensor("A", n, n), sa.tensor("X", n, d)
Z, M = sa.tensor("Z", n, n), sa.tensor("M", n, n, binary=True)
Pi, t = sa.tensor("Pi", n, n, permutation=True), sa.tensor("t", 6)
c = sympy.Symbol("c", positive=True)
LATER = sa.independent(sa.cumsum(X, axis=0), X, when=lambda out, inp: inp[0] > out[0])
ATTENDS = sa.le(1, sa.sum(M, axis=-1))

PROOFS: dict[str, tuple[Any, tuple[Any, ...], type]] = {
    "permutation": (sa.eq(sa.softmax(Pi @ X), Pi @ sa.softmax(X)), (), RewritingProof),
    "quotient": (sa.eq(c * x * y / x, c * y), (), RewritingProof),
    "equal sizes": (sa.eq(sa.sum(sa.ones(n)) * x, m * x), (sympy.Eq(n, m),), EntrywiseProof),
    "equal tensors": (sa.eq(A @ x + A, A @ y + A), (sa.eq(x, y),), RewritingProof),
    "masked rows": (sa.eq(sa.sum(sa.softmax(Z, where=M), axis=-1), sa.ones(n)), (ATTENDS,), EntrywiseProof),
    "trace": (sa.eq(sa.trace(A @ Z @ A.T), sa.sum((A @ Z) * A)), (sympy.Ge(n, 2),), EntrywiseProof),
    "positive": (sa.lt(0, sa.exp(x) / (1 + sa.exp(x))), (), BoundProof),
    "below": (sa.lt(x, 3), (sa.le(x, 1),), BoundProof),
    "causal": (LATER, (), DependenceProof),
    "given": (sa.le(x * x, y * x), (sa.le(x * x, y * x),), Stated),
    "finite": (sa.eq(sa.take(t, sa.from_index((6,), lambda i: sympy.Mod(5 * i, 6)), axis=0)[1], t[5]), (), Enumeration),
    "large": (sa.eq(sa.sum(sa.softmax(sa.tensor("L", 128, 64)), axis=-1), sa.ones(128)), (), Generalised),
}
OTHER = sa.eq(x, 2 * x)

T, e, B, b = sa.sizes("T e B b")
t_, u, v = sa.tensor("w", T), sa.tensor("u"), sa.tensor("v", T)
K, V, rate, flat = sa.tensor("K", T, d), sa.tensor("V", T, e), sa.tensor("beta", T), sa.tensor("f", B * b)


def inductions() -> dict[str, tuple[Any, Any, type]]:
    """Claims about recurrences, by what they are proved, and the kind of proof."""

    def summed(sequence: Any, start: Any = 0) -> Any:
        return sa.scan(lambda s, x: (s + sa.sum(x), s + sa.sum(x)), start, sequence)

    def largest(state: Any, x: Any) -> Any:
        m, total = state
        new = sa.maximum(m, x)
        return (new, total * sa.exp(m - new) + sa.exp(x - new)), None

    def delta(S: Any, read: Any) -> Any:
        r, k, v = read
        return S + sa.outer(k, r * (v - k @ S)), None

    weights = sa.inv(sa.eye(T) + sa.tril(rate[:, None] * (K @ K.T), -1)) @ (rate[:, None] * V)
    (m, total), _ = sa.scan(largest, (0, 0), t_)
    any_rate = sympy.Symbol("r", real=True)
    powers = any_rate ** sa.from_index((T,), lambda i: T - 1 - i)
    relative = sa.induction(final=lambda m, z: (None, sa.sum(sa.exp(z - m))), free=0)
    return {
        "a sum": (sa.eq(summed(t_)[0], sa.sum(t_)), None, ByInduction),
        "running sums": (sa.eq(summed(2 * t_)[1], sa.cumsum(2 * t_)), None, ByInduction),
        "a free state": (sa.eq(total * sa.exp(m), sa.sum(sa.exp(t_))), relative, ByInduction),
        "an image": (sa.eq(summed(t_, 2 * u)[0] + u, summed(t_, 3 * u)[0]), None, ByInduction),
        "a rate of any sign": (
            sa.eq(sa.scan(lambda s, x: (any_rate * s + x, None), 0, t_)[0], sa.sum(powers * t_)),
            None,
            ByInduction,
        ),
        "a bound": (sa.le(0, sa.scan(lambda s, x: (s + x**2, None), 0, t_)[0]), None, ByInvariant),
        "the last of all": (sa.eq(summed(t_)[1][-1], sa.sum(t_)), None, Made),
        "blocks": (sa.eq(summed(sa.split_axis(flat, 0, (B, b)))[0], sa.sum(flat)), None, Generalised),
        "a number of steps": (sa.eq(summed(t)[0], sa.sum(t)), None, Generalised),
        "inverses": (sa.eq(sa.scan(delta, sa.zeros(d, e), (rate, K, V))[0], K.T @ weights), None, ByInduction),
    }


INDUCTIONS = inductions()


def changed(value: Any) -> Iterator[Any]:
    """Values that differ in one thing from that of a field."""
    if isinstance(value, sa.Tensor):
        yield value + 1
    elif isinstance(value, sa.proof.claims.Claim):
        yield OTHER
        yield replace(value, right=value.right + 1)
        yield replace(value, relation="<" if value.relation != "<" else "<=")
    elif isinstance(value, tuple) and value:
        yield value[1:]
        yield (*value, value[0])
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, dict) and value:
        yield {key: v + 1 for key, v in value.items()}


def tampered_argument(argument: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(argument, RewritingProof):
        yield from tampered_rewriting(argument)
        return
    for field in fields(argument):
        value = getattr(argument, field.name)
        if isinstance(value, (ClosedForm, Image)):
            yield from ((f"form.{what}", replace(argument, form=new)) for what, new in tampered_form(value))
            continue
        if field.name == "proofs":
            for what, new in tampered_argument(value[0]):
                yield f"proofs.{what}", replace(argument, proofs=(new, *value[1:]))
            yield "proofs swapped", replace(argument, proofs=(*value[1:], value[0]))
        if field.name == "rest":
            yield "rest", replace(argument, rest=None if value is not None else argument.proofs[0])
        if field.name == "comparison":
            yield "comparison", replace(argument, comparison=replace(value, pieces=()))
        elif field.name == "argument":
            yield from ((f"argument.{n}", replace(argument, argument=a)) for n, a in tampered_argument(value))
        else:
            yield from ((field.name, replace(argument, **{field.name: new})) for new in changed(value))


def tampered_form(form: Any) -> Iterator[tuple[str, Any]]:
    """Closed forms and images of another loop, of another value, or relative to what is no free tensor."""
    used = next((x for x in form.source.inputs if x.op.name == "tensor"), OTHER.left)
    other, _ = sa.scan(lambda s, x: (2 * s + x, None), u, t_)
    for field in fields(form):
        value = getattr(form, field.name)
        new: list[Any] = []
        if field.name in ("source", "value"):
            new = [other, value + 1, OTHER.left]
        elif field.name in ("final", "outputs"):
            new = [(*value, OTHER.left), tuple(x if x is None else x + 1 for x in value)] + [value[1:]] * bool(value)
        elif field.name == "sequences":
            new = [(*value[1:], used), tuple(x if x.op.name != "tensor" else 2 * x for x in value), value[1:]]
        elif field.name == "free":
            new = [((0, used),)] + [((k, used),) for k, _ in value] + [()] * bool(value)
        elif field.name in ("states", "rows"):
            new = [(used,) * len(value), tuple(x + 1 for x in value), value[1:]]
        yield from ((field.name, replace(form, **{field.name: one})) for one in new if one != value)


def tampered_rewriting(rewriting: Any) -> Iterator[tuple[str, Any]]:
    for name in ("left", "right", "common"):
        yield name, replace(rewriting, **{name: getattr(rewriting, name) + 1})
    side = "left_lemmas" if rewriting.left_lemmas else "right_lemmas"
    first, *others = getattr(rewriting, side)
    forged = replace(first.rule, apply=lambda _: first.after + 1)
    yield "a lemma less", replace(rewriting, **{side: tuple(others)})
    before, after = first.before + 1, first.after + 1
    for changes in ({"before": before}, {"after": after}, {"rule": forged, "after": after}):
        yield "a lemma", replace(rewriting, **{side: (replace(first, **changes), *others)})
    for new in changed(rewriting.given):
        yield "given", replace(rewriting, given=new)


def tampered_point(proof: Proof) -> Iterator[tuple[str, Proof]]:
    witness = proof.witness
    if witness is None:
        return
    point = witness.point
    points = [replace(point, sizes={s: k + 1 for s, k in point.sizes.items()})] if point.sizes else []
    points += [replace(point, sizes={s: 0 for s in point.sizes})] if point.sizes else []
    positive = [s for s in point.scalars if s.is_positive]
    points += [replace(point, scalars={**point.scalars, s: -point.scalars[s]}) for s in positive]
    points += [replace(point, arrays={k: v for k, v in point.arrays.items() if k is not a}) for a in point.arrays]
    yield from (("point", replace(proof, witness=replace(witness, point=p))) for p in points)
    yield "witness.claim", replace(proof, witness=replace(witness, claim=OTHER))
    for more in (OTHER, n >= 2):
        given = Given.of([*witness.given.claims, *witness.given.relations, more])
        yield "witness.given", replace(proof, witness=replace(witness, given=given))


def tampered(proof: Proof) -> Iterator[tuple[str, Proof]]:
    others = [new for new in (*changed(proof.claim), OTHER, LATER) if new is not proof.claim]
    yield from (("claim", replace(proof, claim=new)) for new in others)
    if proof.given and isinstance(proof.given[0], sa.proof.claims.Claim):
        yield "given", replace(proof, given=())
    yield "given", replace(proof, given=(*proof.given, sa.le(y, 7)))
    yield from ((f"argument.{name}", replace(proof, argument=new)) for name, new in tampered_argument(proof.argument))
    yield from tampered_point(proof)


@pytest.mark.parametrize("name", PROOFS)
def test_a_proof_that_is_tampered_with_does_not_check(name):
    claim, given, kind = PROOFS[name]
    proof = sa.prove(claim, given=given).proof
    assert isinstance(proof.argument, kind)
    assert proof.check()
    changes = list(tampered(proof))
    assert len(changes) >= 6
    assert not [what for what, other in changes if other.check()]


@pytest.mark.parametrize("name", INDUCTIONS)
def test_an_induction_that_is_tampered_with_does_not_check(name):
    claim, how, kind = INDUCTIONS[name]
    proof = sa.prove(claim, by=how).proof
    assert isinstance(proof.argument, kind)
    assert proof.check()
    assert pickle.loads(pickle.dumps(proof)).check()
    changes = list(tampered(proof))
    assert len(changes) >= 12
    assert not [what for what, other in changes if other.check()]


def test_conditions_that_the_engine_adds_need_a_point():
    proof = sa.prove(x * y / x, y).proof
    assert proof.check()
    assert not replace(proof, witness=None).check()
    singular = sa.prove(sa.inv(A) @ A, sa.eye(n)).proof
    point = singular.witness.point
    zeros = {A: dict.fromkeys(point.arrays[A], 0)}
    assert not replace(singular, witness=replace(singular.witness, point=replace(point, arrays=zeros))).check()


def test_a_point_satisfies_what_was_given_and_declared():
    proof = sa.prove(sa.eq(sa.sum(sa.ones(n)) * x, m * x), given=[sympy.Eq(n, m)]).proof
    sizes = {n: 2, m: 3}
    arrays = {x: {(0,): 1, (1,): 1}}
    point = replace(proof.witness.point, sizes=sizes, arrays=arrays)
    assert not replace(proof, witness=replace(proof.witness, point=point)).check()
    moved = sa.prove(sa.softmax(Pi @ X), Pi @ sa.softmax(X)).proof
    ones = {**moved.witness.point.arrays, Pi: dict.fromkeys(moved.witness.point.arrays[Pi], 1)}
    point = replace(moved.witness.point, arrays=ones)
    assert not replace(moved, witness=replace(moved.witness, point=point)).check()
