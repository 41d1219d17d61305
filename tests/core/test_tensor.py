"""The tensor node: NumPy's reading, light tidying, identity, substitution, pickling, life and death."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import threading
import weakref

import pytest
import sympy

import symattn as sa

T, S, d, e, h, n = sa.sizes("T S d e h n")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
A, B, C = (sa.tensor(name, n, n) for name in "ABC")
H, G = sa.tensor("H", h, T, d), sa.tensor("G", h, d, e)
x, y, c = sa.tensor("x", d), sa.tensor("y", T), sa.tensor("c")
a = sympy.Symbol("a", real=True)

SHAPES = {
    "Q + x": (Q + x, (T, d)),
    "Q + c": (Q + c, (T, d)),
    "Q + y column": (Q + y[:, None], (T, d)),
    "outer sum": (y[:, None] + x[None, :], (T, d)),
    "H * Q": (H * Q, (h, T, d)),
    "Q - H": (Q - H, (h, T, d)),
    "Q < x": (Q < x, (T, d)),
    "2 and 2": (Q @ K.T, (T, S)),
    "2 and 1": (Q @ x, (T,)),
    "1 and 2": (y @ Q, (d,)),
    "1 and 1": (x @ x, ()),
    "3 and 3": (H @ G, (h, T, e)),
    "3 and 2": (H @ K.T, (h, T, S)),
    "2 and 3": (Q @ G, (h, T, e)),
    "3 and 1": (H @ x, (h, T)),
    "1 and 3": (y @ H, (h, d)),
    "4 and 3": (H[None] @ G, (1, h, T, e)),
    "loops of 1": (H[:, None] @ G[None], (h, h, T, e)),
    "T": (Q.T, (d, T)),
    "mT": (H.mT, (h, d, T)),
    "sum": (sa.sum(H), ()),
    "mean": (sa.mean(H), ()),
    "max": (sa.max(H), ()),
    "min": (sa.min(H), ()),
    "sum of an axis": (sa.sum(H, axis=1), (h, d)),
    "sum of axes": (sa.sum(H, axis=(0, -1)), (T,)),
    "sum of no axes": (sa.sum(H, axis=()), (h, T, d)),
    "keepdims": (sa.max(H, axis=-1, keepdims=True), (h, T, 1)),
    "keepdims of all": (sa.mean(Q, keepdims=True), (1, 1)),
    "softmax": (sa.softmax(H), (h, T, d)),
    "softmax where": (sa.softmax(x, where=Q > 0), (T, d)),
    "logsumexp": (sa.logsumexp(H), (h, T)),
    "logsumexp of all": (sa.logsumexp(H, axis=None), ()),
    "where": (sa.where(x > 0, y[:, None], 0), (T, d)),
    "concat": (sa.concat([Q, K]), (S + T, d)),
    "split": (sa.split_axis(sa.tensor("W", "T h*d"), 1, (h, d)), (T, h, d)),
    "merge": (sa.merge_axes(H, (0, 1)), (T * h, d)),
    "repeat": (sa.repeat(Q, h, axis=0), (T * h, d)),
    "diag": (sa.diag(x), (d, d)),
    "diag of a matrix": (sa.diag(A), (n,)),
    "from_index": (sa.from_index((T, S), lambda i, j: i - j), (T, S)),
    "ones": (sa.ones(T, d), (T, d)),
    "einsum": (sa.einsum("ij,kj", Q, K), (T, S)),
}


@pytest.mark.parametrize("case", SHAPES)
def test_shapes_follow_numpy(case):
    made, shape = SHAPES[case]
    assert made.shape == shape
    assert made.rank == len(shape)


def test_softmax_is_over_the_last_axis_by_default_and_axes_count_from_either_end():
    assert sa.softmax(Q) is sa.softmax(Q, axis=-1) is sa.softmax(Q, axis=1)
    assert sa.softmax(Q, axis=0) is sa.softmax(Q, axis=-2) is not sa.softmax(Q)
    assert sa.logsumexp(Q) is sa.logsumexp(Q, axis=1)
    assert sa.sum(Q, axis=(0, 1)) is sa.sum(Q, axis=(-1, -2)) is sa.sum(Q)


@pytest.mark.parametrize(
    ("made", "plain"),
    [
        (lambda: Q.T.T, lambda: Q),
        (lambda: H.mT.mT, lambda: H),
        (lambda: sa.moveaxis(sa.moveaxis(H, 0, 2), 2, 0), lambda: H),
        (lambda: 1 * Q, lambda: Q),
        (lambda: Q / 1, lambda: Q),
        (lambda: Q**1, lambda: Q),
        (lambda: -1 * (-Q), lambda: Q),
        (lambda: 2 * (3 * Q), lambda: 6 * Q),
        (lambda: (Q * 2) * 3, lambda: 6 * Q),
        (lambda: 2 * Q / 2, lambda: Q),
        (lambda: Q / sympy.sqrt(d) * sympy.sqrt(d), lambda: Q),
        (lambda: (2 * A) * (3 * B), lambda: 6 * (A * B)),
        (lambda: A * 2 * B, lambda: 2 * (A * B)),
        (lambda: Q * 0, lambda: sa.zeros(T, d)),
        (lambda: Q + 0, lambda: Q),
        (lambda: 0 + Q, lambda: Q),
        (lambda: Q + sa.zeros(T, d), lambda: Q),
        (lambda: sa.zeros(T, d) - Q, lambda: -Q),
        (lambda: sa.zeros(T, d) * Q, lambda: sa.zeros(T, d)),
        (lambda: sa.ones(T, d) * Q, lambda: Q),
        (lambda: sa.zeros(T, d) @ K.T, lambda: sa.zeros(T, S)),
        (lambda: 0 / sa.exp(Q), lambda: sa.zeros(T, d)),
        (lambda: sa.concat([Q]), lambda: Q),
        (lambda: A - (-B), lambda: A + B),
    ],
    ids=range(24),
)
def test_construction_tidies_units_zeros_scales_and_double_transposes(made, plain):
    assert made() is plain()


def test_adding_zeros_of_a_larger_shape_still_broadcasts():
    assert (x + sa.zeros(T, d)).shape == (T, d)
    assert (sa.ones(T, d) * x).shape == (T, d)


@pytest.mark.parametrize(
    ("make", "written"),
    [
        (lambda: B + A, "B + A"),
        (lambda: C * A * B, "C * A * B"),
        (lambda: B * A - A * B, "B * A - A * B"),
        (lambda: A - A, "A - A"),
        (lambda: A + A, "A + A"),
        (lambda: A * A, "A * A"),
        (lambda: A / A, "A / A"),
        (lambda: (A + B) + C, "A + B + C"),
        (lambda: A + (B + C), "A + (B + C)"),
        (lambda: (A @ B) @ C, "A @ B @ C"),
        (lambda: A @ (B @ C), "A @ (B @ C)"),
        (lambda: (A @ B).T, "(A @ B).T"),
    ],
    ids=range(12),
)
def test_terms_and_factors_stay_as_the_user_wrote_them(make, written):
    assert str(make()) == written


def test_minus_infinity_lives_in_additive_masks_only():
    bias = sa.where(sa.from_index((T, d), lambda i, j: j <= i), 0, -sympy.oo)
    for allowed in (
        sa.softmax(Q + bias),
        sa.logsumexp(Q + bias),
        sa.exp(bias),
        sa.softmax(sa.let("M", bias).T),
        bias[0],
        bias + 1,
    ):
        assert allowed.rank
    assert str(Q + -sympy.oo)
    for refused in (
        lambda: bias * Q,
        lambda: -bias,
        lambda: bias @ Q.T,
        lambda: sa.tanh(bias),
        lambda: sa.sum(bias),
        lambda: bias**2,
    ):
        with pytest.raises(sa.OperandError, match="-oo is allowed in additive masks only"):
            refused()


def test_kinds_follow_the_hypotheses_and_the_operations():
    M = sa.tensor("M", T, S, binary=True)
    kinds = [t.kind for t in (Q, M, ~M, Q > 0, M & M, M.T, M[0], M + M, sa.tensor("i", T, integer=True))]
    assert kinds == ["real", "binary", "binary", "binary", "binary", "binary", "binary", "real", "integer"]


# --- identity ---


def test_one_meaning_is_one_node():
    assert sa.tensor("Q", T, d) is Q is sa.tensor("Q", "T d")
    assert sa.softmax(Q @ K.T) @ V is sa.softmax(Q @ K.T) @ V
    assert sa.tensor("Q", T, d, positive=True) is not Q
    assert sa.let("P", Q) is sa.let("P", Q) is not Q


def test_equality_is_identity_and_has_no_other_truth():
    assert Q == Q
    assert Q != K
    assert len({Q, K, Q}) == 2
    assert (A + B) != (B + A)
    with pytest.raises(sa.OperandError, match="no truth value"):
        assert Q < 1


def test_nodes_cannot_be_changed():
    t = sa.tensor("fixed", 3, 4)
    for change in (lambda: setattr(t, "title", "q"), lambda: setattr(t, "shape", (1,)), lambda: delattr(t, "op")):
        with pytest.raises(AttributeError, match=r"cannot be changed|no attribute"):
            change()
    assert t.shape == (3, 4)


def test_nodes_are_held_weakly_and_freed():
    node = sa.tanh(sa.tensor("only_here", 3, 4)) + 17
    dead = weakref.ref(node), weakref.ref(node.inputs[0])
    del node
    gc.collect()
    assert [ref() for ref in dead] == [None, None]


def test_a_gradient_and_a_print_keep_nothing_alive():
    node = sa.softmax(sa.tensor("only_there", 3, 4) * 19)
    dead = weakref.ref(node)
    str(node), sa.latex(node), sa.gradient(node, node.tensors), sa.entries(node), node.subs({d: 3})
    del node
    gc.collect()
    assert dead() is None


def test_threads_build_the_same_node():
    made = []

    def build():
        t = sa.tensor("threaded", 5, 7)
        for _ in range(200):
            t = sa.tanh(t) + 23
        made.append(t)

    threads = [threading.Thread(target=build) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, made))) == 1


# --- copies and pickles ---

LAYER = sa.let(
    "O", sa.softmax(sa.let("Z", Q @ K.T / sympy.sqrt(d)), where=sa.from_index((T, S), lambda i, j: j <= i)) @ V
)
EVERY = [
    LAYER,
    H[:, None, ::-1],
    a * Q**2 + c,
    sa.elementwise(sympy.Lambda(a, sympy.atan(a)), Q),
    sa.tensor("M", T, binary=True),
]


@pytest.mark.parametrize("t", EVERY, ids=range(5))
def test_copies_and_pickles_are_the_same_node(t):
    assert copy.copy(t) is t
    assert copy.deepcopy(t) is t
    assert copy.deepcopy({"t": [t]})["t"][0] is t
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(t, protocol)) is t


def test_a_pickle_reads_the_same_in_another_process():
    results = [LAYER, *sa.gradient(LAYER, [Q, K, V]).values()]
    code = "import pickle, sys, symattn as sa\nfor t in pickle.load(sys.stdin.buffer): print(t, t.shape, sa.latex(t))\n"
    read = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(results), capture_output=True, check=True)
    expected = "".join(f"{t} {t.shape} {sa.latex(t)}\n" for t in results)
    assert read.stdout.decode() == expected


@pytest.mark.slow
def test_the_text_of_an_expression_does_not_depend_on_the_hash_seed():
    code = (
        "import symattn as sa, sympy\n"
        "Q, K, V = sa.tensor('Q', 'T d'), sa.tensor('K', 'S d'), sa.tensor('V', 'S e')\n"
        "O = sa.softmax(Q @ K.T / sympy.sqrt(sa.sizes('d'))) @ V\n"
        "print(sa.gradient(O + 2 * O, [Q, K, V]), sa.entries(O), sa.latex(O), [t.name for t in O.tensors])\n"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "123"
    }
    assert len(texts) == 1


# --- walks ---


def test_free_symbols_and_tensors_are_those_of_the_whole_expression():
    t = sa.softmax(a * Q @ K.T / sympy.sqrt(n)) @ V
    assert t.free_symbols == {T, S, d, e, n, a}
    assert t.tensors == (Q, K, V)
    assert sa.from_index((T, S), lambda i, j: a * (i - j)).free_symbols == {T, S, a}
    assert sa.eye(3).free_symbols == set()


def test_subs_puts_sizes_scalars_and_tensors_at_once():
    t = a * Q @ K.T
    assert t.subs({d: 64}).inputs[0].shape == (T, 64)
    assert t.subs(d, 64) is t.subs({d: 64})
    assert t.subs({a: sympy.Rational(1, 2)}) is Q / 2 @ K.T
    assert t.subs({T: S, Q: K}) is a * K @ K.T
    assert t.subs({}) is t
    assert Q.subs({T: d, d: T}).shape == (d, T)
    assert sa.from_index((T, S), lambda i, j: a * i).subs({a: 3, T: 2}) is sa.from_index((2, S), lambda i, j: 3 * i)


def test_subs_tidies_as_construction_does():
    assert (a * Q).subs({a: 1}) is Q
    assert (a * Q).subs({a: 0}) is sa.zeros(T, d)
    assert (2 * Q).subs({Q: 3 * Q}) is 6 * Q
    assert Q.T.subs({Q: K.T}) is K
    with pytest.raises(sa.OperandError):
        (Q / a).subs({a: 0})


def test_subs_checks_shapes_again_and_keeps_sharing():
    shared = sa.tanh(Q)
    twice = (shared + shared * 2).subs({d: 3})
    assert twice.inputs[0] is twice.inputs[1].inputs[1]
    with pytest.raises(sa.ShapeError):
        (Q @ K.T).subs({Q: V})
    with pytest.raises(sa.ShapeError):
        Q[:3].subs({T: 2})
    with pytest.raises(sa.ShapeError):
        sa.split_axis(sa.tensor("W", h * d), 0, (h, d)).subs({sa.tensor("W", h * d): x})


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "x y", None, sympy.Rational(1, 2)], ids=repr)
def test_subs_refuses_a_size_that_is_none(value):
    with pytest.raises((sa.ShapeError, sa.ParseError)):
        Q.subs({d: value})


def test_subs_refuses_a_symbol_that_only_looks_like_one_of_the_expression():
    with pytest.raises(sa.NamingError, match="differs from the expression's d in its assumptions"):
        Q.subs({sympy.Symbol("d"): 3})


def test_replace_puts_tensors_for_tensors_of_any_part():
    Z = sa.let("Z", Q @ K.T)
    assert sa.softmax(Z).replace({Z: Q @ K.T}) is sa.softmax(Q @ K.T)
    assert (sa.tanh(Q) @ K.T).replace({sa.tanh(Q): Q}) is Q @ K.T
    assert (Q + Q.subs({Q: Q})).replace({Q: -Q}) is -Q + -Q


def test_a_tensor_prints_its_expression_and_briefly_its_name_and_shape():
    assert str(Q) == repr(Q) == "Q"
    assert str(sa.let("P", sa.softmax(Q))) == "softmax(Q)"
    assert str(sa.let("P", sa.softmax(Q)) @ Q.T) == "P @ Q.T"
    assert Q.brief() == "Q[T, d]"
    assert (Q @ K.T).brief() == "(Q @ K.T)[T, S]"


def test_a_let_of_its_own_name_is_itself():
    A = sa.tensor("A", "T d")
    O = sa.let("O", sa.exp(A))
    assert sa.let("O", O) is O
    assert sa.let("U", O) is not O
