"""NumPy's names for compositions are NumPy's, and offsets that may be 0 are read, proved, refuted and run as such."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.core.elsewhere import WRITTEN
from symattn.proof.size_cases import OffsetCases
from symattn.reading import read

T, S, d, h, n, m, k = sa.sizes("T S d h n m k")
s, t = (sympy.Symbol(name, integer=True, nonnegative=True) for name in "st")
A, G = sa.tensor("A", T, d), sa.tensor("G", "m T h*d")
x, y, z = sa.tensor("x", n), sa.tensor("y", n), sa.tensor("z", m * k)
AT = {T: 2, d: 6, h: 3, m: 4, n: 3, k: 2}


def run(value, *tensors, **sizes):
    arrays = [np.random.default_rng(0).normal(size=[int(size.subs({**AT, s: 0})) for size in x.shape]) for x in tensors]
    return arrays, sa.lambdify(list(tensors), value)(*arrays, **sizes)


SHAPES = [
    (A, (d, T)), (A, -1), (A, (-1, 1, d)), (A, (1, T, d, 1)), (A, (T, 3, -1)), (A, "T 3 d/3"), (A, (T * d,)),
    (A, (1, d, 1, T)), (G, (m, T, h, d)), (G, (m * T, h, -1)), (G, (m, h * T, d)), (G, (T, m, d, h)), (x, n),
    (x, (n, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("of", "shape"), SHAPES, ids=str)
def test_a_reshape_is_that_of_numpy(of, shape):
    (array,), found = run(sa.reshape(of, shape), of, **({"h": 3} if of is G else {}))
    np.testing.assert_array_equal(found, array.reshape(found.shape))
    assert sa.reshape(sa.reshape(of, shape), of.shape).shape == of.shape


def test_a_reshape_moves_as_few_axes_as_it_can():
    assert sa.reshape(G, "m T h d") is sa.split_axis(G, -1, (h, d))
    assert sa.reshape(sa.reshape(G, "m T h d"), "m T h*d") is G
    assert sa.reshape(A, (T, d)) is A
    assert sa.reshape(sa.ones(1, 1), ()).shape == ()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: sa.reshape(A, (T, T)), r"T\*d entries are not T\*\*2"),
        (lambda: sa.reshape(A, (-1, -1)), "only one size can be -1"),
        (lambda: sa.reshape(A, (0, -1)), "positive"),
        (lambda: sa.transpose(A, (0, 0)), "not each of its axes once"),
        (lambda: sa.transpose(A, 1), "all axes in their new order"),
        (lambda: sa.transpose(G), "rank 2"),
        (lambda: sa.clip(x), "low, high or both"),
        (lambda: sa.pad(x, -1), "is negative; cut an axis off by a slice"),
        (lambda: sa.pad(x, -k), "is negative"),
        (lambda: sa.pad(x, 0.5), "an integer"),
        (lambda: sa.pad(x, 1, axis=1), "axis"),
        (lambda: sa.broadcast_to(x, "T d"), "does not broadcast"),
        (lambda: sa.matmul(A, A), r"did you mean A.T\?"),
        (lambda: sa.tensor("w", s), "0 where s = 0, and an axis has at least one entry: add 1"),
        (lambda: sa.tensor("w", n * s), None),
        (lambda: sa.tensor("w", s + t), "0 where"),
        (lambda: x[:-s], "from the start or from the end"),
        (lambda: x[:s], "at least one entry"),
        (lambda: x[:: k - k], "step 0"),
        (lambda: x[:: k - 2], "not seen to be positive"),
        (lambda: x[::k], "declare the size n as a multiple of k"),
    ],
)
def test_what_does_not_fit_is_told(call, said):
    with pytest.raises(sa.SymattnError, match=said):
        call()


VALUES = [
    (sa.clip(x, -0.5, 0.5), x, lambda a: np.clip(a, -0.5, 0.5)),
    (sa.clip(x, high=0), x, lambda a: np.minimum(a, 0)),
    (sa.expm1(x / 10**9), x, lambda a: np.expm1(a / 10**9)),
    (sa.transpose(A), A, np.transpose),
    (sa.transpose(G, (1, 2, 0)), G, lambda a: np.transpose(a, (1, 2, 0))),
    (sa.broadcast_to(x, (4, n)), x, lambda a: np.broadcast_to(a, (4, len(a)))),
    (sa.matmul(A, A.T), A, lambda a: np.matmul(a, a.T)),
    (sa.pad(A, 1, 2, axis=0), A, lambda a: np.pad(a, ((1, 2), (0, 0)))),
    (sa.pad(x, 1, 0, 1), x, lambda a: np.insert(a, range(len(a)), 0)),
]


@pytest.mark.parametrize(("value", "of", "expected"), VALUES, ids=lambda v: None if callable(v) else str(v)[:40])
def test_values_are_those_of_numpy(value, of, expected):
    (array,), found = run(value, of)
    np.testing.assert_allclose(found, expected(array), rtol=1e-14)


@pytest.mark.parametrize("by", [1, 2, 3])
def test_a_step_may_be_a_size(by):
    array = np.arange(12.0)
    for value, expected in [(z[::k], array[::by]), (z[k - 1 :: k], array[by - 1 :: by]), (z[::-k], array[::-by])]:
        np.testing.assert_array_equal(sa.lambdify([z], value)(array, k=by), expected)


@pytest.mark.parametrize("backwards", [x[-1:-2:-1], z[::-k], z[k - 1 :: -1], z[k - 1 :: -k]], ids=str)
@pytest.mark.parametrize(("size", "by"), [(1, 1), (1, 2), (3, 1), (3, 2)])
def test_a_slice_backwards_to_the_first_place_is_not_empty(backwards, size, by):
    array, stride = np.arange(1.0, size * by + 1), sa.tensor("b", k)
    f = sa.lambdify([x, z, stride], backwards * sa.sum(stride))  # the step is read off the shape of b alone
    expected = sa.lambdify([x, z, stride], sa.take(x if backwards.tensors == {x} else z, places(backwards), 0))
    given = (array[:size], array, np.ones(by) / by)
    np.testing.assert_allclose(f(*given, m=size), expected(*given, m=size))


def places(backwards):
    """The places that a slice reads, as a constant by index."""
    _, start, step, length = backwards.params["items"][0]
    return sa.from_index((length,), lambda i: start + step * i)


def test_offsets_may_be_zero():
    f = sa.lambdify([x], sa.pad(x[s:], s, t))
    array = np.arange(1.0, 5.0)
    for a, b in [(0, 0), (0, 2), (3, 0), (2, 1)]:
        np.testing.assert_array_equal(f(array, s=a, t=b), np.pad(array[a:], (a, b)))
    with pytest.raises(sa.EvaluationError, match="n - s of x.* must be a positive whole number"):
        f(array, s=4, t=0)
    w = sa.tensor("w", n + s)
    assert sa.lambdify([x, w], sa.pad(x, s) + w)(array, np.zeros(4)).tolist() == array.tolist()
    assert f.check()


TRUE = {
    "what was padded": (sa.pad(x, s, 1)[s : s + n], x),
    "what was spread": (sa.pad(x, 1, 1, t)[1 : -1 : t + 1], x),
    "a shift is a pad of a slice": (sa.shift(x, s), sa.pad(x[s:], 0, s)),
    "zeros add nothing": (sa.sum(sa.pad(x, s, t)), sa.sum(x)),
    "nor do those between": (sa.pad(x, 1, 2, t) @ sa.pad(y, 1, 2, t), x @ y),
    "a pad of a pad": (sa.pad(sa.pad(x, 1, 2), s, t), sa.pad(x, s + 1, t + 2)),
    "spread twice": (sa.pad(sa.pad(x, 0, 0, 1), 0, 0, 1), sa.pad(x, 0, 0, 3)),
    "spread and turned round": (sa.flip(sa.pad(x, 1, 2, 3), 0), sa.pad(sa.flip(x, 0), 2, 1, 3)),
    "even places and odd ones": (sa.pad(x, 0, 1, 1) @ sa.pad(y, 1, 0, 1), sa.zeros()),
    "every k-th place": (
        sa.pad(z[::k], 0, k - 1, k - 1),
        sa.where(sa.from_index((m * k,), lambda i: sympy.Eq(sympy.Mod(i, k), 0)), z, 0),
    ),
    "a step is a column": (z[::k], sa.reshape(z, (m, k))[:, 0]),
    "a step backwards is the last column": (z[::-k], sa.flip(sa.reshape(z, (m, k))[:, -1], 0)),
    "a sum of every k-th": (sa.sum(z[::k]), sa.sum(sa.reshape(z, (m, k))[:, 0])),
    "a pad is a shift": (sa.pad(x, 1), sa.shift(x, -1, size=n + 1)),
    "a clip from below": (sa.clip(x, 0), sa.relu(x)),
}
FALSE = {
    "another column": (z[::k], z[k - 1 :: k]),
    "true where s = 0": (sa.shift(x, s), x),
    "padded on the other side": (sa.pad(x, s), sa.pad(x, 0, s)),
    "the same places": (sa.pad(x, 0, 1, 1) @ sa.pad(y, 0, 1, 1), sa.zeros()),
    "spread by another step": (sa.pad(sa.pad(x, 0, 0, 1), 0, 0, 1), sa.pad(x, 0, n - 1, 2)),
    "the wrong part": (sa.pad(x, s)[:n], x),
    "the rest of a sum": (sa.sum(x[s:]), sa.sum(x)),
    "spread is not whole": (sa.pad(x, 0, 0, t)[:n], x),
    "a reshape is no transpose": (sa.reshape(A, (d, T)), A.T),
    "false where s = 0": (sa.maximum(sa.from_index((n,), lambda i: s + i), 1), sa.from_index((n,), lambda i: s + i)),
}


@pytest.mark.parametrize("name", TRUE)
def test_a_true_claim_is_proved(name):
    verdict = sa.prove(*TRUE[name])
    assert verdict.status == "proved"
    assert verdict.proof.check()


@pytest.mark.parametrize("name", FALSE)
def test_a_false_claim_is_refuted(name):
    verdict = sa.prove(*FALSE[name])
    assert verdict.status == "refuted"
    assert ("s = 0" in str(verdict)) == (name == "false where s = 0")


@pytest.mark.parametrize("value", [x[s:], sa.pad(x, s, t, 1), z[::k], z[k - 1 :: -k], sa.pad(x, 1, s, t)], ids=str)
def test_the_text_reads_back_and_gradients_are_right(value):
    names = {v.name if isinstance(v, sympy.Symbol) else v.params["name"]: v for v in (x, z, s, t)}
    assert read(str(value), {name: v for name, v in names.items() if name in str(value)}) is value
    loss = sa.sum(value**3)
    (of,) = [v for v in (x, z) if v.params["name"] in str(value)]
    assert sa.lambdify([of], sa.gradient(loss, [of])[of]).check()


def test_names_of_other_libraries_are_known():
    for name in "reshape broadcast_to matmul transpose clip expm1 pad".split():
        assert name in sa.__all__
    for name in "view flatten permute swapaxes clamp std prod cumprod stack expand dot bmm".split():
        assert name in WRITTEN
        with pytest.raises(AttributeError, match="write"):
            getattr(sa, name)


def test_a_proof_for_offsets_has_a_case_where_they_are_zero_and_one_where_they_are_not():
    proof = sa.prove(sa.sum(sa.pad(x, s)), sa.sum(x)).proof
    assert proof.text().count("At s = 0:") == proof.text().count("At s >= 1:") == 1
    assert r"At $s \ge 1$:" in proof.latex()
    assert proof.check()
    assert not replace(proof, argument=OffsetCases(proof.argument.cases[1:])).check()
