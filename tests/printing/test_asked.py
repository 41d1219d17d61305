"""What ``sa.latex`` makes of tensors whose names no user gave, of collections, and of what is no mathematics."""

import pytest
import sympy

import symattn as sa

n, d = sa.sizes("n d")
Q, K, V, A = sa.tensor("Q", n, d), sa.tensor("K", n, d), sa.tensor("V", n, d), sa.tensor("A", n, n)
x, y, v = sa.tensor("x", n), sa.tensor("y", n), sa.tensor("v", n)
P = r"P := \operatorname{softmax}("
EXPLAINED = {
    "jacobian": (sa.jacobian(sa.softmax(x), x), [P + "x)"]),
    "hessian": (sa.hessian(sa.logsumexp(A @ x), x), ["Z := A x", P + "Z)"]),
    "jvp": (sa.jvp(sa.softmax(Q @ K.T) @ V, {Q: sa.tensor("Qdot", n, d)}), ["Z := Q", r"\dot{Z} :=", P, r"\dot{P} :="]),
    "hvp": (sa.hvp(sa.logsumexp(A @ x), x, v), [r"\dot{Z} := A v", P, r"\dot{P} := P \odot"]),
    "library": (sa.attention.rms_norm(Q), ["r := "]),
    "of a gradient": (2 * sa.gradient(sa.softmax(x) @ y, x)[x], [P, r"\mathrm{d}x :="]),
    "a mapping": (sa.jacobian(sa.softmax(x * y), [x, y]), [r"x \mapsto", r"y \mapsto", r"Z := x \odot y", P]),
}  # fmt: skip


@pytest.mark.parametrize("what", EXPLAINED)
@pytest.mark.parametrize("asked", [{}, {"safe": "github"}, {"style": "index"}], ids=["matrix", "github", "index"])
def test_names_that_no_user_gave_are_defined(what, asked):
    made, defined = EXPLAINED[what]
    written = sa.latex(made, **asked)
    assert written.startswith(r"\begin{aligned}")
    assert written.count(r"\text{where }") == 1
    if not asked:
        at = [written.index(part) for part in defined]
        assert at == sorted(at)
        assert isinstance(made, dict) or made._repr_latex_() == rf"$\displaystyle {written}$"


def test_names_that_a_user_gave_are_not_defined():
    assert sa.latex(sa.let("P", sa.softmax(x)) @ y) == r"P^{\top} y"
    dx = sa.gradient(sa.let("P", sa.softmax(x)) @ y, x)["dx"]
    assert sa.latex(dx) == "\n".join([
        r"\begin{aligned}",
        r"  & P \odot (\mathrm{d}P - \operatorname{sum}(P \odot \mathrm{d}P)) \\",
        r"  \text{where } & \mathrm{d}P := y",
        r"\end{aligned}",
    ])  # fmt: skip
    assert sa.latex(dx**2, gradients="bar").splitlines()[1] == r"  & \bar{x}^{\odot 2} \\"
    assert sa.latex(dx**2).splitlines()[1] == r"  & (\mathrm{d}x)^{\odot 2} \\"


def test_names_that_no_user_gave_follow_their_spelling():
    made = sa.jacobian(sa.softmax(x), x)
    assert r"\mathbf{p} := \operatorname{softmax}(x)" in sa.latex(made, names={"P": r"\mathbf{p}"})
    assert sympy.latex([made, x]).count("where") == 0


COLLECTIONS = [
    ([A, 2], "[A, 2]"),
    ((x, sympy.Rational(1, 2)), r"\left( x, \frac{1}{2} \right)"),
    ({x: A @ x}, r"\{x \mapsto A x\}"),
    ([], "[]"),
    (sympy.Matrix([[1, n]]), r"\begin{bmatrix} 1 & n \end{bmatrix}"),
    (sympy.Array([[1, n], [d, 2]]), "[[1, n], [d, 2]]"),
]


@pytest.mark.parametrize(("made", "written"), COLLECTIONS)
def test_collections_print_their_members_in_brackets(made, written):
    assert written in sa.latex(made)


def test_the_members_of_a_collection_share_their_names():
    bold = sa.latex([sa.jacobian(sa.softmax(x), x), x], names={x: r"\mathbf{x}"})
    assert bold.count(r"\mathbf{x}") == 2


@pytest.mark.parametrize("made", ["A", "x^2", ["a", A], {"a": A}])
def test_text_is_no_formula(made):
    with pytest.raises(sa.OperandError, match="is text: sa.tensor makes a tensor"):
        sa.latex(made)


def test_what_is_wide_is_broken_as_rows_are():
    first, second, *_ = sa.latex(sa.jacobian(sa.softmax(Q @ K.T) @ V, K)).splitlines()[1:]
    assert first.endswith(r"V^{\top} \\")
    assert second.startswith(r"  & \qquad - (P \odot")


def test_a_mapping_breaks_between_its_entries():
    second = sa.latex(sa.jacobian(sa.softmax(x * y), [x, y])).splitlines()[2]
    assert second.startswith(r"  & \qquad y \mapsto \operatorname{diag}(P)")


def test_a_collection_that_holds_itself_is_refused():
    made = [x]
    made.append(made)
    with pytest.raises(sa.OperandError, match="does one hold itself"):
        sa.latex({x: made})


def test_a_zero_in_floating_point_is_printed():
    assert sa.latex(sympy.Float(0)) == "0.0"


def test_what_has_one_style_says_so():
    with pytest.raises(sa.OperandError, match="style= is for tensors, gradients and derivations, not for"):
        sa.latex(sa.prove(A + A, 2 * A), style="index")
