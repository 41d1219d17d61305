"""Entries: what each operation means, held against NumPy written by hand; capture-free, and linear as a system."""

from __future__ import annotations

import itertools
import pickle
import string

import numpy as np
import pytest
import sympy
from sympy.concrete.expr_with_limits import ExprWithLimits

import symattn as sa
from symattn.graph.names import tree_size

T, S, d, e, h = sa.sizes("T S d e h")
SIZES = {T: sympy.Integer(3), S: sympy.Integer(5), d: sympy.Integer(4), e: sympy.Integer(2), h: sympy.Integer(2)}
I, J, K_, L_ = sympy.symbols("i j k l", integer=True, nonnegative=True)
rng = np.random.default_rng(7)


def dims(shape):
    return tuple(int(sympy.sympify(size).subs(SIZES)) for size in shape)


Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
A, B, H = sa.tensor("A", T, T), sa.tensor("B", T, d), sa.tensor("H", h, T, d)
x, y, c, W = sa.tensor("x", d), sa.tensor("y", T), sa.tensor("c"), sa.tensor("W", T, h * d)
Y = sa.tensor("Y", T, 2 * d)
ARRAYS = {t.name: rng.normal(size=dims(t.shape)) for t in (Q, K, V, A, B, H, x, y, c, W, Y)}
ARRAYS["B"] = np.abs(ARRAYS["B"]) + 0.5
q, k, v, a, b, H_, x_, y_, c_, w, u = (ARRAYS[name] for name in "Q K V A B H x y c W Y".split())
lower = np.tri(3, 5, 1) > 0
mask = sa.from_index((T, S), lambda i, j: j <= i + 1)


def number(formula, at):
    """The value of an entry formula, read literally: sums are loops, a choice reads only the side that it takes."""
    if formula in at:
        return at[formula]
    if formula.is_Symbol:
        return sympy.Float(float(ARRAYS[formula.name]))
    if isinstance(formula, sympy.Indexed):
        return sympy.Float(float(ARRAYS[formula.base.label.name][tuple(int(number(i, at)) for i in formula.indices)]))
    if isinstance(formula, ExprWithLimits):
        bounds = [(k, int(number(low, at)), int(number(high, at))) for k, low, high in formula.limits]
        loops = itertools.product(*(range(low, high + 1) for _, low, high in bounds))
        names = [k for k, _, _ in bounds]
        terms = [
            number(formula.function, {**at, **dict(zip(names, map(sympy.Integer, loop), strict=True))})
            for loop in loops
        ]
        return {"Sum": lambda t: sympy.Add(*t), "Max": max, "Min": min}[type(formula).__name__](terms)
    if type(formula).__name__ == "Choice":
        condition, yes, no = formula.args
        return number(yes if number(condition, at) == sympy.true else no, at)
    return formula.func(*(number(part, at) for part in formula.args)) if formula.args else formula


def values(t):
    """All entries of a tensor of symbolic sizes, at the sizes of the arrays."""
    index = tuple(sympy.Symbol(f"at{axis}", integer=True, nonnegative=True) for axis in range(t.rank))
    formula = t[index] if index else sa.entries(t).equations[-1].entry
    out = np.empty(dims(t.shape))
    for place in itertools.product(*map(range, out.shape)):
        out[place] = float(number(formula, {**SIZES, **dict(zip(index, map(sympy.Integer, place), strict=True))}))
    return out


def softmax(z, axis=-1, where=True):
    weights = np.where(where, np.exp(z), 0)
    total = weights.sum(axis=axis, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


CASES = {
    "Q": (Q, q),
    "a scalar": (sa.let("s", c * c), c_ * c_),
    "let": (sa.let("P", Q), q),
    "sum of terms": (Q + x - 2, q + x_ - 2),
    "column": (Q * y[:, None], q * y_[:, None]),
    "row": (Q / (3 + x[None, :] ** 2), q / (3 + x_**2)),
    "power": (B**Q, b**q),
    "broadcast": (H + Q, H_ + q),
    "zeros and ones": (sa.ones(T, d) + sa.zeros(d), np.ones((3, 4))),
    "matmul": (Q @ K.T, q @ k.T),
    "matmul of a vector": (Q @ x, q @ x_),
    "vector matmul": (y @ Q, y_ @ q),
    "vectors": (x @ x, x_ @ x_),
    "matmul of heads": (H @ Q.T, H_ @ q.T),
    "heads and a vector": (H @ x, H_ @ x_),
    "vector and heads": (y @ H, y_ @ H_),
    "einsum": (sa.einsum("htd,sd->hts", H, K), np.einsum("htd,sd->hts", H_, k)),
    "einsum sum": (sa.einsum("ij,ij->", Q, B), (q * b).sum()),
    "einsum diagonal": (sa.einsum("ii,ij->ij", A, Q), np.diag(a)[:, None] * q),
    "einsum transpose": (sa.einsum("htd->dht", H), H_.transpose(2, 0, 1)),
    "outer": (sa.outer(x, y), np.outer(x_, y_)),
    "diag of a vector": (sa.diag(x), np.diag(x_)),
    "diag of a matrix": (sa.diag(A), np.diag(a)),
    "trace": (sa.trace(A), np.trace(a)),
    "T": (Q.T, q.T),
    "mT": (H.mT, H_.transpose(0, 2, 1)),
    "moveaxis": (sa.moveaxis(H, 0, 2), np.moveaxis(H_, 0, 2)),
    "moveaxis back": (sa.moveaxis(H, -1, 0), np.moveaxis(H_, -1, 0)),
    "moveaxis twice": (sa.moveaxis(sa.moveaxis(H, 0, 1).mT, 0, 2), H_.transpose(2, 0, 1)),
    "concat rows": (sa.concat([Q, K], axis=0), np.concatenate([q, k])),
    "concat columns": (sa.concat([Q, A, Q], axis=1), np.concatenate([q, a, q], axis=1)),
    "concat heads": (sa.concat([H, H + 1], axis=0), np.concatenate([H_, H_ + 1])),
    "concat vectors": (sa.concat([x, y]), np.concatenate([x_, y_])),
    "split_axis": (sa.split_axis(W, 1, (h, d)), w.reshape(3, 2, 4)),
    "split_axis the other way": (sa.split_axis(W, -1, (d, h)), w.reshape(3, 4, 2)),
    "merge_axes": (sa.merge_axes(H, (0, 1)), H_.reshape(6, 4)),
    "merge_axes inner": (sa.merge_axes(H, (1, 2)), H_.reshape(2, 12)),
    "merge of a split": (sa.merge_axes(sa.split_axis(W, 1, (h, d)), (1, 2)), w),
    "heads": (sa.merge_axes(sa.moveaxis(H, 0, 1), (1, 2)), H_.transpose(1, 0, 2).reshape(3, 8)),
    "repeat": (sa.repeat(Q, 2, axis=0), np.repeat(q, 2, axis=0)),
    "repeat columns": (sa.repeat(Q, h, axis=1), np.repeat(q, 2, axis=1)),
    "slice": (K[1:4], k[1:4]),
    "slice with step": (Y[:, ::2], u[:, ::2]),
    "slice backwards": (K[::-1, 1:], k[::-1, 1:]),
    "slice back": (Y[:, ::-2], u[:, ::-2]),
    "integer": (K[-1], k[-1]),
    "integers": (K[2, 1], k[2, 1]),
    "new axes": (H[:, None, ..., None], H_[:, None, ..., None]),
    "last": (H[..., -1], H_[..., -1]),
    "sum": (sa.sum(Q), q.sum()),
    "sum over rows": (sa.sum(Q, axis=0), q.sum(axis=0)),
    "sum over two axes": (sa.sum(H, axis=(0, 2)), H_.sum(axis=(0, 2))),
    "sum kept": (sa.sum(H, axis=1, keepdims=True), H_.sum(axis=1, keepdims=True)),
    "mean": (sa.mean(Q, axis=-1), q.mean(axis=-1)),
    "mean of all": (sa.mean(H), H_.mean()),
    "max": (sa.max(Q, axis=-1, keepdims=True), q.max(axis=-1, keepdims=True)),
    "min of all": (sa.min(H), H_.min()),
    "logsumexp": (sa.logsumexp(Q), np.log(np.exp(q).sum(axis=-1))),
    "logsumexp of all": (sa.logsumexp(Q, axis=None), np.log(np.exp(q).sum())),
    "softmax": (sa.softmax(Q), softmax(q)),
    "softmax of columns": (sa.softmax(Q, axis=0), softmax(q, axis=0)),
    "softmax of heads": (sa.softmax(H, axis=0), softmax(H_, axis=0)),
    "masked softmax": (sa.softmax(Q @ K.T, where=mask), softmax(q @ k.T, where=lower)),
    "additive mask": (sa.softmax(Q @ K.T + sa.where(mask, 0, -sympy.oo)), softmax(q @ k.T, where=lower)),
    "empty rows": (sa.softmax(Q, where=y[:, None] > 9), np.zeros((3, 4))),
    "from_index": (sa.from_index((T, d), lambda i, j: i - 2 * j + T), np.arange(3)[:, None] - 2 * np.arange(4) + 3),
    "mask": (sa.where(mask, 1, 0), lower),
    "eye": (sa.eye(T) @ Q, q),
    "where": (sa.where(Q > 0, Q, -1), np.where(q > 0, q, -1)),
    "logic": (((Q > 0) & ~(Q > 1)) | (Q < -1), ((q > 0) & ~(q > 1)) | (q < -1)),
    "comparisons": ((Q >= x) + 2 * (Q <= y[:, None]), (q >= x_) + 2.0 * (q <= y_[:, None])),
    "equal": (sa.equal(Q, Q) + sa.equal(sa.eye(T)[:, 0], 0)[:, None], 1.0 + np.array([[0], [1], [1]]) + 0 * q),
    "extremes": (sa.maximum(Q, x) - sa.minimum(Q, 0), np.maximum(q, x_) - np.minimum(q, 0)),
    "mod": (sa.mod(Q, 2) + sa.floor(Q), np.mod(q, 2) + np.floor(q)),
    "stacked relu": (sa.relu(sa.relu(Q) @ K.T), np.maximum(np.maximum(q, 0) @ k.T, 0)),
    "choice by a sum": (sa.where(sa.sum(sa.abs(Q), axis=1) > 4, y, 0), np.where(np.abs(q).sum(axis=1) > 4, y_, 0)),
    "masked relu": (sa.softmax(sa.relu(Q) @ K.T, where=mask), softmax(np.maximum(q, 0) @ k.T, where=lower)),
    "attention": (sa.softmax(Q @ K.T / sympy.sqrt(d)) @ V, softmax(q @ k.T / 2) @ v),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_entries_are_those_of_numpy(case):
    t, array = CASES[case]
    np.testing.assert_allclose(values(t), np.broadcast_to(array, dims(t.shape)), rtol=1e-12, atol=1e-13)


def escaped(formula, bound=frozenset()):
    """The bound indices that are read outside their sums."""
    if isinstance(formula, sympy.Dummy):
        return {formula} - bound
    if isinstance(formula, ExprWithLimits):
        bound = bound | {limit[0] for limit in formula.limits}
    return set().union(*(escaped(part, bound) for part in formula.args))


@pytest.mark.parametrize("case", CASES)
def test_no_bound_index_is_read_outside_its_sum(case):
    for equation in sa.entries(CASES[case][0]):
        assert not escaped(equation.entry)
    if CASES[case][0].rank == 2:
        assert not escaped(CASES[case][0][I, J])


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case][0].rank])
def test_the_system_of_entries_means_the_same_as_one_entry(case, monkeypatch):
    t = CASES[case][0]
    for equation in sa.entries(t):
        out = np.empty(dims(equation.shape))
        for place in itertools.product(*map(range, out.shape)):
            at = {**SIZES, **dict(zip(equation.index, map(sympy.Integer, place), strict=True))}
            out[place] = float(number(equation.entry, at))
        monkeypatch.setitem(ARRAYS, equation.name, out)
    np.testing.assert_allclose(out, values(t), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "backwards", [Q[1:], Y[:, ::2][:, :1], K[::-1], K[2], Y[:, 1::2], H[..., 0], H[:, None]], ids=range(7)
)
def test_the_gradient_of_an_index_has_the_entries_of_a_place_among_zeros(backwards):
    source = backwards.tensors[0]
    shape = dims(source.shape)
    g = sa.gradient(backwards, [source])
    ARRAYS["dO"] = rng.normal(size=dims(backwards.shape))
    codes = np.arange(np.prod(shape)).reshape(shape)
    ARRAYS[source.name], kept = codes.astype(float), ARRAYS[source.name]
    read = values(backwards).astype(int)
    ARRAYS[source.name] = kept
    expected = np.zeros(codes.size)
    np.add.at(expected, read.ravel(), ARRAYS["dO"].ravel())
    np.testing.assert_allclose(values(g[source]), expected.reshape(shape))


def test_an_entry_expands_lets_and_shows_readable_bound_indices():
    Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
    assert str(Z[I, J]) == "Sum(K[j, _k]*Q[i, _k], (_k, 0, d - 1))/sqrt(d)"
    assert "_k, 0, S - 1" in str(sa.softmax(Z)[I, J])


def bound_names(formula):
    return [limit[0].name for total in formula.atoms(sympy.Sum) for limit in total.limits]


@pytest.mark.parametrize("index", [(I, J), (K_, L_), (K_, K_), (L_, sympy.Symbol("m", integer=True)), (0, K_)], ids=str)
def test_bound_indices_capture_neither_each_other_nor_those_of_the_user(index):
    X = sa.tensor("X", T, d)
    formula = (X @ X.T @ X)[index]
    names = bound_names(formula)
    used = {symbol.name for symbol in formula.free_symbols if not isinstance(symbol, sympy.Dummy)}
    assert len(names) == len(set(names)) == 2
    assert not set(names) & used
    i, j = (sympy.sympify(at) for at in index)
    one, two = sympy.Dummy(integer=True), sympy.Dummy(integer=True)
    name = sympy.IndexedBase(sympy.Symbol("X", real=True))
    written = sympy.Sum(sympy.Sum(name[i, two] * name[one, two], (two, 0, d - 1)) * name[one, j], (one, 0, T - 1))
    concrete = {T: 2, d: 3}
    assert formula.subs(concrete).doit().expand() == written.subs(concrete).doit().expand()


def test_names_of_tensors_and_sizes_are_not_captured_either():
    N, k = sa.tensor("k", "n n"), sa.sizes("k")
    assert bound_names((N @ N)[I, J]) == ["l"]
    assert bound_names((sa.tensor("B", "n k") @ sa.tensor("C", "k n"))[I, J])[0] not in {"k", "n"}
    assert [s.name for s in sa.entries(sa.tensor("C", "i j")).equations[0].index] == ["a", "b"]
    assert k not in (sa.tensor("B", "k n") @ sa.ones("n"))[I].atoms(sympy.Dummy)


def test_nested_softmax_has_a_bound_index_of_its_own_at_each_level():
    formula = sa.softmax(sa.softmax(A) @ A)[I, J]
    for total in formula.atoms(sympy.Sum):
        inner = {limit[0] for part in total.function.atoms(sympy.Sum) for limit in part.limits}
        assert not inner & {limit[0] for limit in total.limits}


def test_the_same_tensor_has_the_same_entry_every_time_also_after_pickling():
    O = sa.softmax(Q @ K.T) @ V
    again = pickle.loads(pickle.dumps(O[I, J]))
    assert O[I, J] == O[I, J] == again


@pytest.mark.parametrize(
    ("index", "error", "said"),
    [
        ((I,), sa.ShapeError, "an entry of Q[T, d] has 2 indices, not 1"),
        ((I, J, 0), sa.ShapeError, "an entry of Q[T, d] has 2 indices, not 3"),
        ((I, d), sa.ShapeError, "index d is out of range for the size d in Q[T, d]"),
        ((I, d + 2), sa.ShapeError, "out of range"),
        ((-T - 1, J), sa.ShapeError, "out of range"),
        ((I, slice(None)), sa.OperandError, "an entry takes integers or index symbols"),
        ((I, None), sa.OperandError, "an entry takes integers or index symbols"),
        ((I, 1.0), sa.OperandError, "an entry takes integers or index symbols"),
        ((I, True), sa.OperandError, "an entry takes integers or index symbols"),
        ((I, "j"), sa.OperandError, "an entry takes integers or index symbols"),
        ((I, sympy.Rational(1, 2)), sa.OperandError, "an entry takes integers or index symbols"),
        ((I, sympy.Symbol("j")), sa.OperandError, "make it by sympy.Symbol('j', integer=True)"),
        ((I, sympy.Symbol("j") + 1), sa.OperandError, "integer"),
        ((I, sympy.Symbol("j", real=True)), sa.OperandError, "integer"),
    ],
    ids=range(14),
)
def test_a_wrong_index_of_an_entry_says_what_is_wrong(index, error, said):
    with pytest.raises(error) as raised:
        Q[index]
    assert said in str(raised.value)


def test_negative_indices_of_an_entry_count_from_the_end():
    assert Q[I, -1].indices == (I, d - 1)
    assert Q[-T, J].indices == (0, J)


ONES = sa.ones(sa.sizes("n"))
NOT_REAL = {
    "relu": sa.relu(sa.sqrt(-ONES)),
    "maximum": sa.maximum(sa.tensor("x", "n"), sa.log(0 * ONES)),
    "less": sa.sqrt(-ONES) > sa.tensor("x", "n"),
    "where": sa.where(sa.log(-ONES) > 0, 1, 0),
    "sign": sa.sign((-ONES) ** sympy.Rational(1, 3)),
    "sparsemax": sa.sparsemax(sa.sqrt(-ONES)),
}


@pytest.mark.parametrize("x", NOT_REAL.values(), ids=NOT_REAL)
def test_what_is_no_real_number_is_not_compared(x):
    for read in (lambda: x[sympy.Symbol("i", integer=True)], lambda: x.as_explicit({ONES.shape[0]: 2})):
        with pytest.raises(sa.EvaluationError, match="is compared, which is no real number: entries are real numbers"):
            read()
    assert sa.prove(sa.le(x, 0)).status == "unknown"


def test_the_system_has_one_equation_for_each_named_and_each_shared_part():
    Z = sa.let("Z", Q @ K.T)
    shared = sa.tanh(Z)
    system = sa.entries(sa.let("O", shared + sa.exp(shared)))
    assert [equation.name for equation in system] == ["Z", "t", "O"]
    assert str(system["Z"]) == "Z[i, j] = Sum(K[j, _k]*Q[i, _k], (_k, 0, d - 1))"
    assert str(system["O"]) == "O[i, j] = exp(t[i, j]) + t[i, j]"
    assert system["O"].shape == (T, S)
    assert len(system) == 3


@pytest.mark.parametrize(
    "step",
    [
        lambda t: sa.tanh(t @ t),
        lambda t: sa.softmax(t),
        lambda t: t + sa.softmax(t @ t.T) @ t,
        sa.gelu,
        sa.abs,
        lambda t: t * sa.sin(t),
    ],
    ids=["square", "softmax", "residual", "gelu", "abs", "product"],
)
def test_the_system_of_entries_is_linear_in_the_graph(step):
    def length(levels):
        t = A
        for _ in range(levels):
            t = step(t)
        return sum(sum(1 for _ in sympy.preorder_traversal(equation.entry)) for equation in sa.entries(t))

    assert length(16) < 2.3 * length(8)


def test_a_system_prints_as_text_and_as_an_aligned_block():
    system = sa.entries(sa.let("O", A @ A))
    assert str(system) == "O[i, j] = Sum(A[_k, j]*A[i, _k], (_k, 0, T - 1))"
    assert system.latex().startswith("\\begin{aligned}\n  O_{i j} &= \\sum_{k = 0}^{T - 1}")


def test_many_nested_sums_do_not_run_out_of_letters():
    t = A
    for _ in range(len(string.ascii_lowercase)):
        t = sa.let("t", t) @ A
    names = bound_names(t[I, J])
    assert len(set(names)) == len(names) == 26
    assert tree_size(t) == 3
