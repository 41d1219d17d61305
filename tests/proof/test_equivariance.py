"""Symmetries of functions: each kind, both answers, and what cannot be asked."""

from __future__ import annotations

from typing import Any

import pytest
import sympy

import symattn as sa
from symattn import attention
from symattn.errors import OperandError
from symattn.proof.equivariance import Equivariance, equivariance

T, S, d, e, n, h = sa.sizes("T S d e n h")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
X = sa.tensor("X", T, d)
W_q, W_k, W_v = (sa.tensor(name, d, d) for name in ("W_q", "W_k", "W_v"))
CAUSAL = sa.from_index((T, T), lambda i, j: j <= i)
POSITIONS = sa.from_index((T, d), lambda i, j: i + j)


def attend(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    return sa.softmax(q @ k.mT / sympy.sqrt(q.shape[-1]), where=mask) @ v


def self_attention(x: Any, mask: Any = None) -> Any:
    return attend(x @ W_q, x @ W_k, x @ W_v, mask)


def kinds(found: Equivariance) -> dict[str, str]:
    return {name: symmetry.kind for name, symmetry in found.items()}


def test_attention() -> None:
    found = equivariance(attend, (Q, K, V))
    assert kinds(found) == {
        "rows of Q": "equivariant",
        "rows of K": "neither",
        "rows of V": "neither",
        "pairs of K and V": "invariant",
        "features of Q and K": "invariant",
        "features of V": "equivariant",
        "translation of K": "invariant",
        "row shifts of Q": "neither",
        "row shifts of K": "neither",
        "row shifts of V": "neither",
        "scaling of Q": "neither",
        "scaling of K": "neither",
        "scaling of V": "equivariant",
    }
    assert found["rows of Q"].verdict.status == "proved"
    assert found["rows of Q"].verdicts["f(Pi @ Q, K, V) = f(Q, K, V)"].counterexample is not None


def test_self_attention() -> None:
    found = kinds(equivariance(self_attention, X))
    assert found["rows of X"] == "equivariant"
    assert {found[name] for name in found if name != "rows of X"} == {"neither"}


@pytest.mark.parametrize(
    "f",
    [lambda x: self_attention(x, CAUSAL), lambda x: self_attention(x + POSITIONS)],
    ids=["causal", "positions"],
)
def test_masks_and_positions_break_it(f: Any) -> None:
    assert equivariance(f, X)["rows of X"].kind == "neither"


def test_bare_self_attention_commutes_with_rotations() -> None:
    found = equivariance(lambda x: attend(x, x, x), X)
    assert found["features of X"].kind == "equivariant"
    assert list(found["features of X"].verdicts) == ["f(X @ U) = f(X)", "f(X @ U) = f(X) @ U"]


LAYERS = {
    "rows": (lambda x, W: x + sa.unknown("f", sa.softmax(x @ x.T) @ x @ W, rowwise=True), {"rows"}),
    "rotations": (lambda x, W: x + sa.softmax(x @ x.T) @ x * W[0, 0], {"rows", "features"}),
    "norms": (lambda x, W: x + sa.softmax((y := attention.layer_norm(x)) @ W @ y.T) @ y, {"rows", "row shifts"}),
    "no attention": (lambda x, W: x + sa.relu(x @ W), {"rows", "scaling"}),
    "order": (lambda x, W: x + sa.softmax(x @ x.T, where=CAUSAL) @ x @ W, set()),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_as_many_as_there_are(name: str) -> None:
    layer, equivariant = LAYERS[name]
    weights = sa.tensor("W", n, d, d)
    found = kinds(equivariance(lambda x: sa.scan(lambda x, W: (layer(x, W), None), x, weights)[0], X))
    assert {symmetry for symmetry, kind in found.items() if kind == "equivariant"} == {f"{s} of X" for s in equivariant}
    assert set(found.values()) <= {"equivariant", "neither"}


def test_pooling_is_invariant_and_homogeneous() -> None:
    found = kinds(equivariance(lambda x: sa.sum(x, axis=0), X))
    assert found["rows of X"] == "invariant"
    assert found["features of X"] == "equivariant"
    assert found["scaling of X"] == "equivariant"


def test_softmax_and_logsumexp() -> None:
    logits = sa.tensor("Z", T, S)
    assert kinds(equivariance(sa.softmax, logits))["row shifts of Z"] == "invariant"
    assert kinds(equivariance(sa.logsumexp, logits))["row shifts of Z"] == "equivariant"
    assert kinds(equivariance(lambda z: sa.softmax(z, axis=0), logits))["row shifts of Z"] == "neither"


def test_weights_of_rows_by_rows() -> None:
    found = equivariance(lambda x: sa.softmax(x @ x.T), X)["rows of X"]
    assert found.kind == "equivariant"
    assert found.verdicts["f(Pi @ X) = Pi @ f(X)"].status == "refuted"
    assert found.verdicts["f(Pi @ X) = Pi @ f(X) @ Pi.T"].status == "proved"


def test_heads_lead() -> None:
    heads = (sa.tensor("Q", h, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e))
    found = kinds(equivariance(attend, heads))
    assert found["rows of Q"] == "equivariant"
    assert found["pairs of K and V"] == "invariant"
    assert found["features of Q and K"] == "invariant"


def test_axes_of_one() -> None:
    found = equivariance(attend, (sa.tensor("Q", 1, d), sa.tensor("K", 1, d), sa.tensor("V", 1, e)))
    assert found.not_applicable["rows of Q"] == "Q[1, d] has one row only"
    assert "pairs of K and V" in found.not_applicable
    assert found["scaling of Q"].kind == "invariant"  # softmax over one entry is 1


def test_shapes_that_make_no_sense_are_left_out() -> None:
    a, b, c = sa.tensor("A", T, d), sa.tensor("B", d, S), sa.tensor("C", S, e)
    found = equivariance(lambda *x: x[0] @ x[1] @ x[2], (a, b, c))
    assert found.not_applicable["pairs of B and C"] == "B[d, S] and C[S, e] have different numbers of rows"
    assert "features of A and B" in found.not_applicable
    assert "not applicable: pairs of B and C: " in str(found)


def test_vectors_and_numbers() -> None:
    found = kinds(equivariance(sa.softmax, sa.tensor("x", n)))
    assert found["rows of x"] == "equivariant"
    assert found["row shifts of x"] == "invariant"
    number = equivariance(lambda x: x * x, sa.tensor("x"))
    assert kinds(number) == {"scaling of x": "neither"}


def test_new_names_clash_with_nothing() -> None:
    taken = [sa.tensor("Pi", T, T), sa.tensor("U", d, d), sa.tensor("b", d), sa.tensor("c", T), sa.tensor("a")]

    def f(x: Any) -> Any:
        pi, u, b, c, a = taken
        return sa.let("Pi_1", a * (pi @ x @ u + b + c[:, None]))

    found = equivariance(f, X)
    assert found["rows of X"].kind == "neither"
    assert "f(Pi_2 @ X) = f(X)" in found["rows of X"].verdicts
    size = sa.sizes("a")
    assert equivariance(lambda x: sa.softmax(x), sa.tensor("X", size, d))["rows of X"].kind == "equivariant"


def test_one_tensor_as_two_arguments() -> None:
    found = equivariance(lambda x, y: x @ y.T, (X, X))
    assert found["rows of argument 1"].kind == "equivariant"
    assert "f(Pi @ argument 1, argument 2) = Pi @ f(argument 1, argument 2)" in found["rows of argument 1"].verdicts


def test_a_constant_function_is_invariant() -> None:
    assert set(kinds(equivariance(lambda x: K, X)).values()) == {"invariant"}


def test_what_f_raises_comes_through() -> None:
    def f(x: Any) -> Any:
        raise ZeroDivisionError("by the user")

    with pytest.raises(ZeroDivisionError, match="by the user"):
        equivariance(f, X)


def test_f_gives_a_tensor() -> None:
    with pytest.raises(sa.OperandError, match=r"f of X\[T, d\] gives 3, which is not a tensor"):
        equivariance(lambda x: 3, X)
    with pytest.raises(sa.OperandError, match="a tuple of tensors"):
        equivariance(lambda: X, ())


def test_what_symattn_refuses_of_a_moved_argument_is_listed() -> None:
    def named_only(x: Any) -> Any:
        return sa.gradient(sa.sum(x * x), [x])[x] if x is X else sa.tensor("not a name", T, d)

    found = equivariance(named_only, X)
    assert not found
    assert "cannot be a name" in found.not_applicable["rows of X"]


def test_it_prints() -> None:
    found = equivariance(sa.softmax, sa.tensor("Z", T, S))
    first = str(found).splitlines()[0]
    assert first == "rows of Z         equivariant  f(Pi @ Z) = f(Z): refuted; f(Pi @ Z) = Pi @ f(Z): proved"
    assert (
        "\\begin{tabular}{@{}llll@{}}\n\\hline\nsymmetry & kind & claim & verdict \\\\\n\\hline\n"
        "rows of $Z$ & equivariant & $f(\\Pi Z) = f(Z)$ & refuted \\\\"
    ) in found.latex()
    assert repr(found).startswith("<equivariance: rows of Z equivariant, ")


@pytest.mark.parametrize("f", [None, "softmax", 3, sa.tensor("X", "n d")], ids=str)
def test_what_is_no_function_is_refused(f):
    with pytest.raises(OperandError, match="equivariance takes a function of tensors first, such as sa.softmax, not "):
        equivariance(f, sa.tensor("X", "n d"))


def test_thousands_of_arguments_are_refused_with_the_way_out():
    x = sa.tensor("x", "n")
    with pytest.raises(sa.OperandError, match="at most 16, not of 3000: give those that move"):
        sa.equivariance(lambda *arguments: x, [1.0] * 3000)
