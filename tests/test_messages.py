"""What errors say: what was asked, the shapes, the cause and a way out. One line a message."""

from __future__ import annotations

import pickle
import re

import pytest
import sympy

import symattn as sa
from symattn.core.elsewhere import WRITTEN

T, S, d, e, h = sa.sizes("T S d e h")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
H, G = sa.tensor("H", h, T, d), sa.tensor("G", S, d, T)
x, y, c = sa.tensor("x", d), sa.tensor("y", T), sa.tensor("c")
u = sympy.Symbol("u")
mask = sa.from_index((T, S), lambda i, j: j <= i)
bias = sa.where(mask, 0, -sympy.oo)

SHAPE = {
    "matmul": (
        lambda: Q @ K,
        "matmul of Q[T, d] and K[S, d]: axis -1 of the first has size d, axis -2 of the second has size S; "
        "did you mean K.T?",
    ),
    "matmul, first turned": (
        lambda: V @ K,
        "matmul of V[S, e] and K[S, d]: axis -1 of the first has size e, axis -2 of the second has size S; "
        "did you mean V.T?",
    ),
    "matmul, no way": (lambda: Q.T @ V, "axis -1 of the first has size T, axis -2 of the second has size S"),
    "matmul of heads": (lambda: H @ H, "did you mean H.mT?"),
    "matmul of vectors": (
        lambda: x @ y,
        "matmul of x[d] and y[T]: axis -1 of the first has size d, axis -1 of the second has size T",
    ),
    "matmul of scalars": (lambda: c @ Q, "matmul of c[] and Q[T, d]: a rank-0 tensor has no axis to sum; write *"),
    "matmul, leading axes": (lambda: H @ G.mT, "matmul of H[h, T, d] and"),
    "sum": (lambda: Q + K, "axis -2 has the sizes S and T, which differ"),
    "sum with a column": (
        lambda: Q + y,
        "Q[T, d], y[T]: axis -1 has the sizes T and d, which differ; did you mean a column",
    ),
    "product": (lambda: Q * V, "Q[T, d], V[S, e]: axis -1 has the sizes d and e, which differ"),
    "comparison": (lambda: Q > K, "Q[T, d], K[S, d]: axis -2 has the sizes S and T"),
    ".T of rank 3": (lambda: H.T, "H[h, T, d].T: .T is for rank 2; write .mT to swap the last two axes"),
    ".T of rank 1": (lambda: x.T, "x[d].T: .T is for rank 2"),
    ".mT of rank 1": (lambda: x.mT, "x[d] has no last two axes to swap: write x[:, None] for a column"),
    "axis": (lambda: sa.sum(Q, axis=2), "sum of Q[T, d]: axis 2 is out of range for 2 axes"),
    "axis twice": (lambda: sa.sum(Q, axis=(0, -2)), "sum of Q[T, d]: an axis is given twice in (0, -2)"),
    "axis True": (lambda: sa.mean(Q, axis=True), "mean of Q[T, d]: an axis is an integer, not True"),
    "softmax axis": (lambda: sa.softmax(Q, axis=-3), "softmax of Q[T, d]: axis -3 is out of range for 2 axes"),
    "softmax of a scalar": (lambda: sa.softmax(c), "softmax of c[]: a rank-0 tensor has no axis"),
    "concat": (lambda: sa.concat([Q, V]), "concat of Q[T, d], V[S, e] along axis -2: all other sizes must be the same"),
    "concat of ranks": (lambda: sa.concat([Q, x]), "concat of Q[T, d], x[d]"),
    "split_axis": (
        lambda: sa.split_axis(Q, 1, (h, e)),
        "split_axis of Q[T, d]: axis -1 has size d, not h * e; declare that axis as the product",
    ),
    "split_axis in three": (lambda: sa.split_axis(Q, 1, (h, e, 2)), "split_axis of Q[T, d]: give two sizes"),
    "merge_axes": (
        lambda: sa.merge_axes(H, (0, 2)),
        "merge_axes of H[h, T, d]: axes (0, 2) are not neighbours in order; bring them together by sa.moveaxis",
    ),
    "moveaxis": (lambda: sa.moveaxis(H, 0, 3), "moveaxis of H[h, T, d]: axis 3 is out of range for 3 axes"),
    "repeat": (lambda: sa.repeat(Q, 2, axis=2), "repeat of Q[T, d]: axis 2 is out of range"),
    "einsum sizes": (
        lambda: sa.einsum("ij,jk->ik", Q, K),
        "einsum 'ij,jk->ik' of Q[T, d], K[S, d]: the label j is both d and S",
    ),
    "einsum labels": (lambda: sa.einsum("ijk->i", Q), "einsum 'ijk->i' of Q[T, d]: give one label an axis"),
    "diag": (lambda: sa.diag(Q), "diag of Q[T, d]: the last two sizes must be the same"),
    "trace": (lambda: sa.trace(Q), "trace of Q[T, d]: the last two sizes must be the same"),
    "outer": (lambda: sa.outer(Q, x), "outer of Q[T, d] and x[d]: it takes two vectors"),
    "symmetric": (
        lambda: sa.tensor("A", T, d, symmetric=True),
        "A[T, d] cannot be symmetric: its last two sizes differ",
    ),
    "cotangent": (lambda: sa.gradient({Q @ K.T: V}, [Q]), "must have the shape [T, S]"),
    "empty slice": (lambda: sa.tensor("X", 5)[3:1], "the slice [3:1] of X[5] is empty"),
    "subs": (lambda: (Q @ K.T).subs({Q: V}), "matmul of V[S, e] and"),
}

OPERAND = {
    "truth value": (
        lambda: bool(Q),
        "Q[T, d] has no truth value: == asks whether two tensors are one node; "
        "compare entries by <, <=, >, >=, sa.equal",
    ),
    "if of a comparison": (lambda: 0 < Q < 1, "has no truth value"),
    "division": (lambda: Q / 0, "Q[T, d] is divided by zero"),
    "mask": (
        lambda: sa.softmax(Q, where=Q),
        "softmax takes a binary tensor (True = attend), not Q[T, d]: "
        "compare entries (x > 0), give a relation to sa.from_index, or declare",
    ),
    "where": (lambda: sa.where(Q, 1, 0), "where takes a binary tensor"),
    "&": (lambda: (Q > 0) & Q, "& takes a binary tensor"),
    "~": (lambda: ~Q, "~ takes a binary tensor"),
    "empty": (lambda: sa.softmax(Q, empty="nan"), "softmax: empty is 'zero' or 'error', not 'nan'"),
    "-oo in tanh": (
        lambda: sa.tanh(bias),
        "which may hold -oo: -oo is allowed in additive masks only",
    ),
    "-oo in matmul": (
        lambda: bias @ V,
        "-oo is allowed in additive masks only, that is, added to logits on their way into softmax",
    ),
    "-oo taken away": (lambda: Q - bias, "which may hold -oo: take away what is a number, such as sa.maximum(x, 0)"),
    "oo": (lambda: sa.minimum(sympy.oo, Q), "oo is not a real scalar: only -oo is taken, so that a least entry is"),
    "-oo times": (lambda: 2 * bias, "-oo is allowed in additive masks only"),
    "-oo factor": (lambda: Q * -sympy.oo, "-oo is allowed in additive masks only, not as a factor"),
    "hypothesis": (
        lambda: sa.tensor("A", T, unitary=True),
        "unitary=True is not a property of a tensor; declare by True one of",
    ),
    "hypothesis value": (lambda: sa.tensor("A", T, positive=1), "positive=1 is not a property"),
    "entry in from_index": (
        lambda: sa.from_index((T, d), lambda i, j: Q[i, j]),
        "a tensor's entry inside from_index: multiply the tensor by a from_index constant instead",
    ),
    "concat of one tensor": (lambda: sa.concat(Q), "concat takes a list of tensors"),
    "einsum ellipsis": (lambda: sa.einsum("...d->...", Q), "is not of the form 'htd,hsd->hts'"),
    "einsum unknown label": (lambda: sa.einsum("ij->ik", Q), "is not of the form"),
    "elementwise of a lambda": (
        lambda: sa.elementwise(lambda z: z, Q),
        "elementwise takes a sympy.Lambda and one input an argument",
    ),
    "elementwise arity": (
        lambda: sa.elementwise(sympy.Lambda(u, u), Q, Q),
        "elementwise takes a sympy.Lambda and one input an argument",
    ),
    "subs by a number": (lambda: Q.subs({Q: 1}), "Q[T, d] can only be replaced by a tensor of its rank, not 1"),
    "subs of a string": (lambda: Q.subs({"d": 2}), "only sizes, scalar symbols and tensors can be replaced, not 'd'"),
    "wrt a constant": (lambda: sa.gradient(Q, [sa.eye(3)]), "[3, 3] is constant: no gradient is taken by it"),
    "wrt a size": (lambda: sa.gradient(Q, [d]), "d is an integer symbol"),
    "wrt nothing": (lambda: sa.gradient(Q, []), "no variable to differentiate by"),
    "gradient of a number": (lambda: sa.gradient(3, [Q]), "a tensor, or several as {O: dO, L: dL}, not 3"),
    "entries of a number": (lambda: sa.entries(3), "entries takes a tensor, not 3"),
}


@pytest.mark.parametrize("case", SHAPE)
def test_shape_errors_show_the_shapes_the_axis_and_a_way_out(case):
    make, said = SHAPE[case]
    with pytest.raises(sa.ShapeError) as error:
        make()
    assert said in str(error.value)


@pytest.mark.parametrize("case", OPERAND)
def test_operand_errors_say_what_was_given_and_what_to_give(case):
    make, said = OPERAND[case]
    with pytest.raises(sa.OperandError) as error:
        make()
    assert said in str(error.value)


def test_advice_is_given_only_where_it_would_work():
    """Every transpose that a message proposes makes the product possible."""
    for left, right, fixed in ((Q, K, Q @ K.T), (V, K, V.T @ K), (x, Q, x @ Q.T)):
        with pytest.raises(sa.ShapeError, match="did you mean"):
            left @ right
        assert fixed.rank
    with pytest.raises(sa.ShapeError) as error:
        Q.T @ K.T
    assert "the factor" not in str(error.value)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (sa.ShapeError, ValueError),
        (sa.NamingError, ValueError),
        (sa.OperandError, TypeError),
        (sa.NoRuleError, NotImplementedError),
        (sa.EvaluationError, ValueError),
        (sa.ParseError, ValueError),
    ],
)
def test_every_error_has_one_base_and_the_builtin_a_python_user_expects(error, builtin):
    assert issubclass(error, sa.SymattnError)
    assert issubclass(error, builtin)


def test_a_parse_error_shows_a_caret_under_the_place_and_survives_pickling():
    error = pickle.loads(pickle.dumps(sa.ParseError("no such function", "f(x) + g(x)", 7)))
    assert str(error) == "no such function\n  f(x) + g(x)\n         ^"


def test_a_missing_name_of_the_package_is_an_attribute_error():
    with pytest.raises(AttributeError, match="symattn.*has no name 'sofmax'"):
        sa.sofmax  # noqa: B018


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("view", "sa.reshape"), ("rope", "sa.attention.rotary"), ("ge", "sa.le(b, a)"), ("norm", "sa.sqrt("),
        ("bmm", "a @ b"), ("swapaxes", "x.mT"), ("masked_fill", "sa.where("), ("stack", "sa.concat"),
    ],
)  # fmt: skip
def test_names_known_from_elsewhere_say_how_it_is_written_here(name, written):
    with pytest.raises(AttributeError, match=re.escape(f"has no name '{name}': write {written}")):
        getattr(sa, name)


def test_the_table_of_names_from_elsewhere_names_what_is_here():
    for name, written in WRITTEN.items():
        assert not hasattr(sa, name) or name in sa._MODULES
        for home, part in re.findall(r"sa\.(attention\.)?(\w+)", written):
            assert part == "attention" or hasattr(sa.attention if home else sa, part), written


@pytest.mark.parametrize(
    "ask",
    [
        lambda x, f: x + f, lambda x, f: f * x, lambda x, f: sa.exp(f), lambda x, f: sa.let("y", f),
        lambda x, f: sa.where(x > 0, x, f), lambda x, f: sa.prove(x, f),
    ],
    ids=range(6),
)  # fmt: skip
def test_a_function_of_sympy_is_no_operand(ask):
    with pytest.raises(sa.OperandError, match=r"Lambda\(u, u\*\*2\) is a function, not a scalar: .*sa\.elementwise"):
        ask(sa.tensor("x", "n"), sympy.Lambda(u, u**2))
