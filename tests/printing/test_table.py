r"""The symbols of an output: names that follow those they come from, ways of writing gradients, what is refused."""

from __future__ import annotations

import re

import pytest
import sympy

import symattn as sa
from symattn.printing.media.latex import latex
from symattn.printing.media.unicode import unicode_text
from symattn.printing.misleading import by_shape, ink
from symattn.printing.symbols import symbol
from symattn.printing.table import symbol_table
from symattn.reading import read

from ..typeset import compiled, needs_pdflatex

T, S, d, e = sa.sizes("T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
A = sa.let("A", sa.softmax(Q @ K.T / sympy.sqrt(d)))
O = sa.let("O", A @ V)
G = sa.gradient(O, [Q, K, V])


def rows(written: str) -> list[str]:
    """The rows of a block, without their reasons."""
    return [line.split(" && ")[0].strip() for line in written.splitlines() if "&=" in line]


def printed(x: sa.Tensor, **options) -> dict[str, str]:
    return {name: latex(known.box) for name, known in symbol_table([x], **options).items()}


# --- what there is ---


def test_every_symbol_stands_once_with_its_role_shape_and_meaning():
    table = symbol_table([G[Q], sa.unknown("f", K)])
    roles = {name: known.role for name, known in table.items()}
    assert roles == {
        "Q": "given", "K": "given", "V": "given", "A": "let", "O": "let", "Z": "named on the way", "dQ": "gradient",
        "dZ": "gradient", "dA": "gradient", "dO": "cotangent", "T": "size", "S": "size", "d": "size", "e": "size",
        "f": "function",
    }  # fmt: skip
    assert table["dZ"].shape == (T, S)
    assert str(table["Z"].meaning) == "Q @ K.T / sqrt(d)"
    assert table["Q"].meaning is None


# --- names that follow ---


@pytest.mark.parametrize("key", [A, "A", G["dA"].inputs[1]], ids=["tensor", "name", "as the gradient has it"])
def test_a_spelling_is_that_of_the_name_in_all_rows_of_a_document(key):
    written = sa.Derivation("Backward", given=[Q]).extend(A, O, G).latex(names={key: r"\mathbf{A}"})
    assert r"\mathbf{A} &:= \operatorname{softmax}" in written
    assert r"\mathrm{d}\mathbf{A} &= \mathrm{d}O \, V^{\top}" in written
    inner = r"(\mathbf{A} \odot \mathrm{d}\mathbf{A}) \mathbf{1} \mathbf{1}^{\top}"
    assert rf"\mathbf{{A}} \odot (\mathrm{{d}}\mathbf{{A}} - {inner})" in written
    assert " A " not in written


def test_what_comes_from_a_name_follows_its_spelling():
    bold = {"Z": r"\mathbf{S}"}
    assert r"\mathrm{d}\mathbf{S}" in G.latex(names=bold)
    assert r"\bar{\mathbf{S}}" in G.latex(names=bold, gradients="bar")
    tangent = sa.jvp(sa.tanh(sa.let("Z", Q @ K.T)) @ V, {Q: sa.tensor("Qdot", T, d)})
    assert r"\dot{\mathbf{S}}" in sa.latex(tangent, names=bold)
    assert r"\dot{\mathbf{q}}" in sa.latex(sa.tensor("Qdot", T, d) @ Q.T, names={"Q": r"\mathbf{q}"})
    primed = sa.tensor("Q'", T, d) - Q
    assert sa.latex(primed, names={Q: r"\mathbf{Q}"}) == r"\mathbf{Q}' - \mathbf{Q}"
    numbered = sa.let("U", Q + 1) @ sa.let("U", K - 1).T
    assert sa.latex(numbered, names={"U": r"\hat{u}"}) == r"\hat{u}_{1} \hat{u}_{2}^{\top}"
    assert sa.latex(numbered, names={sa.let("U", Q + 1): r"\hat{u}"}) == r"\hat{u} U_{2}^{\top}"


def test_a_name_of_a_gradient_is_its_own():
    assert rows(G.latex(names={G["dZ"]: r"\Delta"}))[2].startswith(r"\Delta &= A \odot")
    assert rows(G.latex(names={"dQ": "g_Q"}))[3].startswith("g_{Q} &= ")


def test_sizes_scalars_and_functions_are_spelled_too():
    tau = sympy.Symbol("tau", positive=True)
    x = sa.softmax(sa.unknown("f", tau * Q @ K.T / sympy.sqrt(d)))
    assert sa.latex(x, names={"d": "d_k", tau: r"\beta", "f": r"\phi"}) == (
        r"\operatorname{softmax}\left( \phi\left( \frac{\beta Q K^{\top}}{\sqrt{d_{k}}} \right) \right)"
    )
    assert r"\sum_{k = 0}^{d_{k} - 1}" in sa.latex(Q @ K.T, style="index", names={d: "d_k"})


def test_letters_of_laws_follow_their_tensors():
    W_q, k = sa.tensor("W_q", d), sa.tensor("k", d)
    moments = sa.moments(sa.sum(W_q * k), law={W_q: sa.iid(), k: sa.iid()})
    written = moments.derivation.latex()
    assert r"d \mu_{W_{q}} \mu_{k}" in written
    assert r"\sigma_{W_{q}}^{2}" in written
    bold = moments.derivation.latex(names={W_q: r"\mathbf{w}"})
    assert r"\mu_{\mathbf{w}}" in bold
    assert "W_" not in bold


# --- gradients ---


@pytest.mark.parametrize(
    ("way", "lines"),
    [
        ("d", [r"\mathrm{d}V &= A^{\top} \, \mathrm{d}O", r"\mathrm{d}A &= \mathrm{d}O \, V^{\top}",
               r"\mathrm{d}Q &= \frac{\mathrm{d}Z \, K}{\sqrt{d}}",
               r"\mathrm{d}K &= \frac{\mathrm{d}Z^{\top} \, Q}{\sqrt{d}}"]),
        ("bar", [r"\bar{V} &= A^{\top} \bar{O}", r"\bar{A} &= \bar{O} V^{\top}",
                 r"\bar{Q} &= \frac{\bar{Z} K}{\sqrt{d}}", r"\bar{K} &= \frac{\bar{Z}^{\top} Q}{\sqrt{d}}"]),
        ("nabla", [r"\nabla_{V} L &= A^{\top} (\nabla_{O} L)", r"\nabla_{A} L &= (\nabla_{O} L) V^{\top}",
                   r"\nabla_{Q} L &= \frac{(\nabla_{Z} L) K}{\sqrt{d}}",
                   r"\nabla_{K} L &= \frac{(\nabla_{Z} L)^{\top} Q}{\sqrt{d}}"]),
        ("partial", [r"\frac{\partial L}{\partial V} &= A^{\top} \frac{\partial L}{\partial O}",
                     r"\frac{\partial L}{\partial A} &= \frac{\partial L}{\partial O} V^{\top}",
                     r"\frac{\partial L}{\partial Q} &= \frac{\frac{\partial L}{\partial Z} K}{\sqrt{d}}",
                     r"\frac{\partial L}{\partial K} &= "
                     r"\frac{\left( \frac{\partial L}{\partial Z} \right)^{\top} Q}{\sqrt{d}}"]),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_gradients_are_written_in_four_ways(way, lines):
    first, second, _, *last = rows(G.latex(gradients=way))[:5]
    assert [first, second, *last] == lines
    assert lines[0] in sa.Derivation("Backward").extend(O, G).latex(gradients=way)
    assert lines[0].split("= ")[1] in sa.latex(G["dV"], gradients=way)


def test_an_entry_of_a_gradient_has_its_index_at_what_it_is_by():
    partial = sa.latex(G["dA"], style="index", gradients="partial")
    assert partial == (
        r"\frac{\partial L}{\partial A_{i j}} = \sum_{k = 0}^{e - 1} \frac{\partial L}{\partial O_{i k}} V_{j k}"
    )
    weight = sa.gradient(sa.let("Y", Q @ sa.tensor("W_q", d, e)), [sa.tensor("W_q", d, e)])
    assert rows(weight.latex(style="index", gradients="partial"))[0].startswith(
        r"\frac{\partial L}{\partial (W_{q})_{i j}} &= "
    )
    assert sa.latex(G["dA"], style="index", gradients="nabla").startswith(r"(\nabla_{A} L)_{i j} = ")
    assert sa.latex(G["dA"], style="index", gradients="bar").startswith(r"\bar{A}_{i j} = ")


def test_the_loss_is_the_output_where_that_is_one_number_and_else_a_free_letter():
    c = sa.let("c", sa.sum(O * O))
    assert r"\nabla_{O} c &= 2 O" in sa.gradient(c, Q).latex(gradients="nabla")
    weighted = sa.gradient(sa.let("Y", Q * sa.tensor("L", T, d)), Q)
    assert rows(weighted.latex(gradients="nabla")) == [r"\nabla_{Q} \mathcal{L} &= (\nabla_{Y} \mathcal{L}) \odot L"]
    both = sa.Derivation("Two losses").extend(G, sa.gradient(sa.let("Y", Q @ K.T), [Q]))
    written = both.latex(gradients="nabla")
    assert r"\nabla_{Q} L_{1}" in written
    assert r"\nabla_{Q} L_{2}" in written
    assert r"\mathrm{d}Q_{1}" in both.latex()
    assert r"\mathrm{d}Q_{2}" in both.latex()


def test_a_cotangent_is_known_by_its_role_and_not_by_its_letters():
    Y, dY, dZ = sa.let("Y", Q @ K.T), sa.tensor("dY", T, S), sa.tensor("dZ", S, d)
    written = sa.gradient({Y: dY}, Q).latex(gradients="bar")
    assert rows(written) == [r"\bar{Q} &= \bar{Y} K"]
    assert sa.latex(Q @ dZ.T, gradients="bar") == r"Q \, \mathrm{d}Z^{\top}"
    seeded = sa.gradient({Y: sa.tensor("R", T, S)}, Q)
    assert rows(seeded.latex(gradients="nabla")) == [r"\nabla_{Q} L &= R K"]
    word = sa.gradient(sa.let("scores", Q @ K.T), Q)
    assert rows(word.latex()) == [r"\mathrm{d}Q &= \mathrm{d}\mathrm{scores} \, K"]


def test_a_prime_and_a_head_stand_side_by_side_where_a_bar_is_over_the_letter():
    q, k = sa.tensor("Q'", "h T d"), sa.tensor("K", "h S d")
    written = sa.gradient(sa.let("Y", q @ k.mT), q).latex(gradients="bar")
    assert r"\bar{Q}^{\prime (a)} &= \bar{Y}^{(a)} K^{(a)}" in written


def test_a_gradient_of_one_head_has_the_head_at_what_it_is_by():
    q, k = sa.tensor("Q", "h T d"), sa.tensor("K", "h S d")
    written = sa.gradient(sa.let("Y", q @ k.mT), q).latex(gradients="nabla")
    assert r"\nabla_{Q^{(a)}} L &= (\nabla_{Y^{(a)}} L) K^{(a)} \quad (a = 1, \ldots, h)" in written


# --- binding ---


@pytest.mark.parametrize(
    ("spelled", "x", "written"),
    [
        ("A B", Q.T, r"(A B)^{\top}"),
        (r"\Delta A", Q.T, r"(\Delta A)^{\top}"),
        (r"\phi(X, t)", Q.T, r"\phi(X, t)^{\top}"),
        (r"\nabla_{A, B} L", Q.T, r"(\nabla_{A, B} L)^{\top}"),
        (r"\text{low-rank Q}", Q @ K.T, r"\text{low-rank Q} K^{\top}"),
        (r"\phi(X)", Q.T, r"\phi(X)^{\top}"),
        ("s^{*}", Q.T, r"{s^{*}}^{\top}"),
        (r"\hat{W}_{q}", Q.T, r"\hat{W}_{q}^{\top}"),
    ],
)
def test_a_spelling_of_several_parts_keeps_together(spelled, x, written):
    assert sa.latex(x, names={Q: spelled}) == written


# --- what is refused ---


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ({"Zz": "S"}, "'Zz', which does not occur in what is printed: nearest to it is 'Z'"),
        ({sa.tensor("Kbar", S, d): "k"}, "'Kbar', which does not occur .*: nearest to it is 'K'"),
        ({sa.tensor("Q", S, e): "q"}, "'Q', which does not occur"),
        ({"nothing": "n"}, "'nothing', which does not occur in what is printed: there are A, K, O, Q, S, T, V, Z, d"),
        ({"Z": "K"}, "'K' and 'Z' would both print as K: rename one"),
        ({"Q": r"\bar{V}", "K": r"\bar{V}"}, r"'Q' and 'K' would both print as \\bar\{V\}"),
        ({"Q": "T"}, "'Q' and 'T' would both print as T"),
        ({"Q": r"\mathrm{K}"}, "'Q' and 'K' would both print as K"),
        ({A: "a", "A": "b"}, "names spells 'A' twice: as a and as b"),
    ],
    ids=str,
)
@pytest.mark.parametrize("style", ["matrix", "index"])
def test_a_name_that_does_not_occur_and_a_print_of_two_symbols_are_refused(names, problem, style):
    with pytest.raises(sa.NamingError, match=problem):
        G.latex(names=names, style=style)


def test_a_gradient_that_looks_like_a_tensor_is_refused():
    bar = sa.gradient(sa.let("Y", Q @ sa.tensor("Qbar", S, d).T), Q)
    with pytest.raises(sa.NamingError, match=r"'Qbar' and 'dQ' would both print as \\bar\{Q\}"):
        bar.latex(gradients="bar")
    assert r"\bar{Q}" in bar.latex()


def test_ways_of_writing_gradients_that_there_are_not_are_refused():
    for write in (G.latex, sa.Derivation("D").extend(O).latex, lambda **options: sa.latex(O, **options)):
        with pytest.raises(sa.OperandError, match="gradients is 'd', 'bar', 'nabla' or 'partial', not 'grad'"):
            write(gradients="grad")


def test_a_name_of_several_letters_is_held_together():
    written = {way: G.latex(names={A: "B C"}, gradients=way) for way in ("d", "bar", "partial")}
    assert r"\mathrm{d}(B C) &= \mathrm{d}O \, V^{\top}" in written["d"]
    assert r"\overline{B C}" in written["bar"]
    assert r"\frac{\partial L}{\partial (B C)}" in written["partial"]


@pytest.mark.parametrize(("spelled", "problem"), [("$A$", "leave out the $ signs"), (r"\mathbf{A", "{ is not closed")])
def test_a_name_that_is_no_latex_is_refused(spelled, problem):
    with pytest.raises(sa.OperandError) as caught:
        sa.latex(sa.softmax(Q), names={Q: spelled})
    assert problem in str(caught.value)


M, N = sa.tensor("M", T, T), sa.tensor("N", T, T)


@pytest.mark.parametrize(
    "spelled",
    [
        r"M^\top", "M^T", r"M^\intercal", r"M^{\mathsf{T}}", "M^{-1}", "M^2", "M M", "2 M", "-M", "M + M",
        "(M)", r"\sigma(M)", r"\exp(M)", r"\frac{1}{M}", r"\sqrt{M}", r"M^\top M", r"\mathbf{1} M", "T M", "M^{2 T}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("style", ["matrix", "index"])
def test_a_spelling_that_is_an_expression_of_other_symbols_is_refused(spelled, style):
    with pytest.raises(sa.NamingError, match="names spells 'N' as .*, an expression of other symbols"):
        sa.latex(M.T + N, names={N: spelled}, style=style)


@pytest.mark.parametrize(
    "spelled",
    [
        "A + B",
        "A, B",
        "-A",
        "(A",
        "A)",
        r"A \odot B",
        "A = B",
        "(A + B)_1",
        r"\text{a = b}",
        r"A \to B",
        r"\foo{A}",
        r"A_{\foo}",
    ],
)
def test_a_spelling_of_new_letters_that_is_no_symbol_is_refused(spelled):
    with pytest.raises(
        sa.NamingError, match="names spells 'N' as .*(no symbol: spell|is no command that is known here)"
    ):
        sa.latex(M.T + N, names={N: spelled})


@pytest.mark.parametrize(
    "spelled", ["I_T", "I_2", r"\mathbf{1}_T", r"\mathbf{1}", "0", "1", r"\mathrm{1}", r"\pi", r"\mathrm{e}", r"\infty"]
)
def test_a_spelling_that_is_a_constant_is_refused(spelled):
    with pytest.raises(sa.NamingError, match="names spells 'N' as .*, which is a constant"):
        sa.latex(M + N + sa.eye(T), names={N: spelled})


WORDS = [  # a name, and what the function that is printed by this word is in
    ("softmax", lambda X: sa.softmax(X)), ("rowmax", lambda X: sa.max(X, axis=1)), ("tr", lambda X: sa.trace(X) * X),
    ("exp_2", lambda X: sa.exp(X)), ("diag", lambda X: sa.diag(sa.diag(X))), ("cumsum", lambda X: sa.cumsum(X)),
    ("relu'", lambda X: sa.relu(X)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "function"), WORDS, ids=lambda x: x if isinstance(x, str) else "")
def test_a_name_that_is_printed_as_a_function_beside_it_is_refused(name, function):
    named, word = sa.tensor(name, T, T), name.strip("'_2")
    page = sa.Derivation("Words").extend(sa.let("B", named @ N)).extend(sa.let("C", function(N)))
    alone, both = (lambda: sa.latex(function(named))), (lambda: sa.latex(named + function(N)))
    for write in (alone, both, page.latex, page.html, page.markdown, page.text, page.json):
        with pytest.raises(sa.NamingError, match=f"a name and the function {word} would both print as {word}: rename"):
            write()
    assert sa.latex(named + function(N), names={named: "W"})


def test_a_name_that_is_a_word_is_printed_where_that_function_is_not():
    word = sa.tensor("max", T, T)
    assert sa.latex(word @ sa.exp(word)) == r"\mathrm{max} \, \exp(\mathrm{max})"
    with pytest.raises(sa.NamingError, match="a name and the sign max would both print as max"):
        sa.latex(sa.max(word, axis=1), style="index")
    with pytest.raises(sa.NamingError, match="a name and the function softmax"):
        sa.latex(sa.softmax(M), names={M: r"\mathrm{softmax}"})
    with pytest.raises(sa.NamingError, match="a name and the function softmax"):
        sa.latex(sa.unknown("softmax", sa.softmax(M)))
    with pytest.raises(sa.NamingError, match="a name and the function log"):
        sa.latex(sympy.log(sympy.Symbol("log")))


def test_numpy_text_tells_a_name_from_a_function_by_the_call():
    exp = sa.tensor("exp", T, T)
    x = exp @ sa.exp(exp) + sa.exp(exp + M) * exp.T
    assert read(str(x), {"exp": exp, "M": M}) is x


@pytest.mark.parametrize("spelled", ["{}", r"\phantom{N}", r"\,", r"{}_{}", r"\quad"])
def test_a_spelling_of_which_nothing_is_seen_is_refused(spelled):
    with pytest.raises(sa.OperandError, match="names spells N.* of which nothing is seen"):
        sa.latex(M + N, names={N: spelled})


@pytest.mark.parametrize(
    ("spelled", "meaning"),
    [(r"\odot", "an operator"), (r"\top", "an operator"), (r"\nabla", "an operator"), (r"\sum", "an operator"),
     (r"\mathrm{d}", "the d of a gradient"), (r"\mathbb{R}", "the set of real numbers"),
     ("H^{(1)}", "one head of another symbol"), ("H^{(b)}", "one head of another symbol")],
)  # fmt: skip
def test_a_spelling_that_means_something_by_itself_is_refused(spelled, meaning):
    H = sa.tensor("H", "h T T")
    with pytest.raises(sa.NamingError, match=f"names spells 'N' as .*, which is {meaning}"):
        sa.latex(H @ H.mT + N, names={N: spelled})


@pytest.mark.parametrize(
    ("one", "other"),
    [("K", "Κ"), ("A", "А"), ("x", "х"), ("K", "{K}_{}"), ("K", r"\mathord{K}"), ("K", r"K\,"), ("K", r"\textit{K}"),
     (r"\max", r"\mathrm{max}"), (r"\operatorname{row}", r"\text{row}"), (r"\mathbf{K}", r"\textbf{K}")],
)  # fmt: skip
def test_spellings_that_look_alike_are_refused(one, other):
    with pytest.raises(sa.NamingError, match="would both print as"):
        sa.latex(M + N, names={M: one, N: other})


@pytest.mark.parametrize(
    ("spelled", "made", "style"),
    [(r"\exp", sa.exp(M), "matrix"), (r"\operatorname{softmax}", sa.softmax(M), "matrix"),
     (r"\max", sa.max(M), "matrix"), (r"\max", sa.max(M), "index"), (r"\mathrm{tr}", sa.trace(M), "matrix"),
     (r"\mathrm{col}", sa.softmax(M, axis=0), "matrix"), (r"\mathrm{diag}", sa.diag(M[0]), "matrix")],
)  # fmt: skip
def test_a_spelling_that_is_the_word_of_a_function_is_refused(spelled, made, style):
    with pytest.raises(sa.NamingError, match="a name and the (function|sign) .* would both print as"):
        sa.latex(made + N, names={N: spelled}, style=style)
    assert sa.latex(M + N, names={N: spelled}, style=style)


def test_delta_of_kronecker_gives_way_to_a_spelling():
    written = [sa.latex(sa.eye(T) + N, names={N: s}, style="index") for s in (r"\delta", r"\delta_{1}", r"\Delta")]
    assert written == [r"\delta_{i j} + [i = j]", r"(\delta_{1})_{i j} + [i = j]", r"\Delta_{i j} + \delta_{i j}"]


def test_letters_that_the_library_chooses_are_none_of_a_spelling():
    P = sa.let("P", sa.exp(sa.tensor("Y", T, 2 * d)))
    apart = sa.Derivation("Parts").extend(
        P, sa.let("U", P[:, :d] @ sa.tensor("W", d, e) - P[:, d:] @ sa.tensor("B", d, e))
    )
    assert r"P_{1} W - P_{2} B" in apart.latex()
    assert r"P_{:, :d} W - P_{:, d:} P_{1}" in apart.latex(names={"B": "P_1"})
    assert sa.latex(M @ N, style="index", names={M: "k_2"}) == r"\sum_{l = 0}^{T - 1} (k_{2})_{i l} N_{l j}"
    loop = sa.scan(lambda s, x: (s + x, s), sa.tensor("h", T), M)[1]
    told = sa.latex(loop @ N, names={N: "s_t"})
    assert r"o_{:T} s_{t} \\" in told
    assert r"l_{n + 1} := l_{n} + m_{n}" in told


def test_a_spelling_that_is_the_letter_of_a_law_is_refused():
    q, mu = sa.tensor("q", d), sympy.Symbol("mu_q", real=True)
    moments = sa.moments(sa.let("s", sa.sum(q)), law={q: sa.iid(mean=mu, variance=1)})
    with pytest.raises(sa.NamingError, match=r"'s' and 'mu_q' would both print as"):
        sa.latex(moments, names={"s": r"\mu_q"})


def test_no_index_of_a_head_is_in_the_superscript_of_a_name():
    H = sa.tensor("H", "h T T")
    assert sa.latex(H @ H.mT + N, names={N: "N^{(a)}"}) == r"H^{(b)} H^{(b) \top} + N^{(a)} \quad (b = 1, \ldots, h)"


@pytest.mark.parametrize(
    "spelled", ["M'", "M_1", r"\hat{M}", r"M^{(1)}", r"\Delta M", "M^*", "I", "I_q", r"f(M)", "K^T", r"\mathbb{1}"]
)
def test_a_name_made_from_the_letter_of_another_symbol_is_taken(spelled):
    assert sa.latex(M + N, names={N: spelled}).startswith("M + ")


def test_a_gradient_of_a_gradient_is_by_that_gradient():
    first = sa.gradient(sa.let("L", sa.sum(sa.tanh(Q) * Q)), [Q])
    second = sa.gradient(sa.let("M", sa.sum(first[Q] * first[Q])), [Q])
    nabla = rows(second.latex(gradients="nabla"))
    assert nabla[0] == r"\nabla_{\nabla_{Q} L} M &= 2 (\nabla_{Q} L)"
    assert any(line.startswith(r"\nabla_{Q} M &= ") for line in nabla)
    assert any(line.startswith(r"\mathrm{d}Q_{1} &= ") for line in rows(second.latex()))


def test_scalars_and_moments_take_names():
    mu, q = sympy.Symbol("mu", real=True), sa.tensor("q", d)
    assert sa.latex(mu * d, names={mu: "m", "d": "d_k"}) == "d_{k} m"
    moments = sa.moments(sa.let("s", sa.sum(q)), law={q: sa.iid(mean=mu, variance=1)})
    written = sa.latex(moments, names={q: r"\mathbf{q}", "s": r"\Sigma", "d": "D"})
    assert r"\mathbb{E}[\Sigma] &= D \mu" in written
    with pytest.raises(sa.NamingError, match="'nu', which does not occur"):
        sa.latex(mu * d, names={"nu": "m"})


@pytest.mark.parametrize("options", [{"names": {"Q": "q"}}, {"gradients": "bar"}], ids=str)
def test_what_takes_no_names_says_so(options):
    with pytest.raises(sa.OperandError, match="is for tensors, .* not for <proved"):
        sa.latex(sa.prove(Q + K[:1], Q + K[:1]), **options)


def test_an_index_is_no_letter_that_a_spelling_has():
    assert sa.latex(Q @ K.T, style="index", names={"Q": "i", "K": "k"}) == r"\sum_{l = 0}^{d - 1} i_{j l} k_{a l}"


def test_a_function_and_a_tensor_of_one_name_are_refused():
    with pytest.raises(sa.NamingError, match="'K' names both a function and a tensor, a size or a scalar"):
        sa.latex(sa.unknown("K", Q) @ K.T)


def test_the_letters_of_einsum_are_no_sizes():
    assert sa.latex(sa.einsum("td,sd->ts", Q, K)) == r"\left[ \sum_{i} Q_{t i} K_{s i} \right]_{t s}"
    assert str(sa.einsum("td,sd->ts", Q, K)) == "einsum('td,sd->ts', Q, K)".replace("'", '"')


# --- within documents ---


def test_claims_of_a_document_have_its_names_in_all_that_is_said_of_them():
    Pi, W = sa.tensor("Pi", S, S, permutation=True), sa.tensor("W", d, d)
    B = sa.let("B", sa.softmax(Q @ K.T))
    D = sa.Derivation("Claims").extend(
        B,
        sa.prove(sa.softmax(Q @ (Pi @ K).T) @ (Pi @ V), B @ V),
        sa.prove(sa.einsum("td,de,te->t", Q, W, Q), sa.sum((Q @ W) * Q, axis=-1)),
        sa.prove(Q @ W, Q @ W.T),
        sa.prove(sa.le(B, 1)),
        sa.prove(1 / sa.exp(Q), sa.exp(-Q), given=[sa.le(0, Q)]),
        sa.prove(sa.independent(sa.let("Y", sa.tril(Q @ Q.T)), Q, when=lambda out, inp: inp[0] > sympy.Max(*out))),
    )
    spelled = {"Q": r"\mathbf{q}", "K": r"\mathbf{k}", "Pi": r"\mathbf{R}", "W": r"\mathbf{w}", "B": r"\mathbf{b}"}
    written = D.latex(names={**spelled, "d": r"\delta"})
    for name, spelling in spelled.items():
        assert spelling in written
        assert not re.search(rf"(?<![A-Za-z\\{{]){name}(?![a-z])", written)
    assert r"$\mathbf{R} \in \mathbb{R}^{S \times S}$, permutation matrix" in written
    assert r"\delta = 2" in written


@pytest.mark.tex
@needs_pdflatex
def test_all_ways_of_writing_gradients_compile(tmp_path):
    q, k, v = (sa.tensor(f"{name}'", "h T d") for name in "QKV")
    heads = sa.gradient(sa.let("Y", sa.softmax(sa.let("hat_scores", q @ k.mT)) @ v), [q, k, v])
    several = [
        g.latex(gradients=way, style=style, names=names)
        for g, names in ((G, {"Z": r"\mathbf{S}", "dA": r"\Delta^{*}"}), (heads, {"h": "H", "P": r"\hat{\mathbf{P}}'"}))
        for way in ("d", "bar", "nabla", "partial")
        for style in ("matrix", "index")
    ]
    compiled("\n\n".join(several), tmp_path)


def test_what_looks_alike_has_the_same_letters_and_digits() -> None:
    stems = ("x", "alpha", "α", "Alpha", "A", "Α", "xhat", "x̂", "dZ", "d_Z", "mask", "Wbold", "Wbm", "x₁", "lamda", "λ")
    boxes = [symbol(stem + ending) for stem in stems for ending in ("", "1", "_1", "_i", "'", "_hat", "_q_1", "_q1")]
    for written in (latex, lambda box: by_shape(unicode_text(box))):
        letters: dict[str, str] = {}
        for box in boxes:
            assert letters.setdefault(written(box).replace(" ", ""), ink(box)) == ink(box)
