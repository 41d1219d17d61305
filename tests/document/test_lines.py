"""What a reader needs besides the lines that were written: definitions that nobody wrote, and all that is given."""

from __future__ import annotations

import pytest
import sympy

import symattn as sa
from symattn.printing.media.unicode import unicode_text

Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
tau = sympy.Symbol("tau", positive=True)


def lines(*parts: object, given: object = ()) -> list[str]:
    """The lines of a derivation, with their left sides and without their reasons."""
    document = sa.Derivation("D", given=given).extend(*parts).composed()
    steps = [step for section in document.sections for part in section.parts for step in part.steps]
    return [f"{unicode_text(step.left)} = {unicode_text(step.right)}" for step in steps]


def test_what_a_gradient_is_by_is_defined_before_the_first_line_that_has_it():
    A = sa.let("A", sa.softmax(Q @ K.T))
    O = sa.let("O", A @ V)
    D = sa.Derivation("D").extend(A).say("And so:").extend(O, sa.gradient(O, [Q]))
    assert [check.name for check in D.verify().checks] == ["Z", "A", "O", "dA", "dZ", "dQ"]


def test_a_name_of_the_user_that_no_line_defines_is_defined_where_a_gradient_needs_it():
    Z = sa.let("Z", Q @ K.T)
    O = sa.let("O", sa.tanh(Z) @ V)
    g = sa.gradient(O, [Q])
    assert lines(g)[0] == "Z = Q Kᵀ"
    assert lines(O, g)[:2] == ["Z = Q Kᵀ", "O = tanh(Z) V"]
    assert lines(Z, O, g)[:2] == ["Z = Q Kᵀ", "O = tanh(Z) V"]
    assert lines(sa.let("W", g["dZ"] @ g["dZ"].T)) == ["Z = Q Kᵀ", "W = dZ dZᵀ"]


def test_a_definition_does_not_come_between_the_lines_of_a_chain():
    Z = sa.let("Z", Q @ K.T)
    g = sa.gradient(sa.let("O", sa.tanh(Z) @ V), [Z])
    D = sa.Derivation("D").extend(sa.let("W", Q @ Q.T)).then(Q @ Q.T + g["dZ"] @ g["dZ"].T - g["dZ"] @ g["dZ"].T)
    lines = D.text().partition("softmax")[0].splitlines()
    assert [line.strip("? ")[:3] for line in lines if "Q" in line][-3:] == ["Z ≔", "W ≔", "= Q"]


def test_what_is_defined_by_a_line_is_not_defined_again():
    c = sa.let("c", sa.sum(Q * Q))
    assert lines(c, sa.gradient(c, Q)) == ["c = sum(Q ⊙ Q)", "dQ = 2 Q"]


@pytest.mark.parametrize("given", [(), (V,), (tau,)], ids=str)
def test_what_occurs_is_listed_as_given_and_cotangents_behind_it(given):
    O = sa.let("O", sa.softmax(tau * Q @ K.T) @ V)
    D = sa.Derivation("D", given=given).extend(O, sa.gradient(O, [Q, K, V]))
    listed = [unicode_text(x.symbol) for x in D.composed().given]
    names = ["τ" if x is tau else str(x.name) for x in given]
    assert listed == [*names, *(name for name in "QKVτ" if name not in names), "dO"]
    assert len(D.given) == len(given)


def subscript(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def test_long_chains_of_definitions_are_put_in_order():
    x = Q
    for k in range(60):
        x = sa.let(f"X{k}", sa.tanh(x) * Q)
    names = [line.partition(" ")[0] for line in lines(sa.gradient(sa.let("L", sa.sum(x)), [Q]))]
    assert [name for name in names if name.startswith("X")] == [f"X{subscript(k)}" for k in range(60)]
    assert names.index("X₇") < names.index("dX₇")


def test_gradients_have_the_numbers_of_what_they_are_by():
    T, S, d = sa.sizes("T S d")
    Q, K, V, W = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, d), sa.tensor("W", d, d)

    def weights(X):
        return sa.let("P", sa.softmax(sa.let("Z", X @ K.T)))

    by_w = sa.gradient(sa.let("M", weights(Q @ W @ W) @ V), [W])
    by_q = sa.gradient(sa.let("N", weights(Q) @ V), [Q])
    D = sa.Derivation("Three").extend(sa.let("A", weights(Q @ W) @ V), by_w, by_q)
    names = [check.name for check in D.verify()]
    assert [name for name in names if name[:2] in ("dP", "dZ")] == ["dP_2", "dZ_2", "dP_3", "dZ_3"]
    assert all(f"{name[:2]}{'₀₁₂₃'[int(name[3])]} = " in D.text() for name in names if name[:2] in ("dP", "dZ"))


def test_what_a_gradient_has_given_a_number_is_what_the_user_has_named():
    T, d = sa.sizes("T d")
    Q, K, V, W = sa.tensor("Q", T, d), sa.tensor("K", T, d), sa.tensor("V", T, d), sa.tensor("W", d, d)
    P = [sa.let("P", sa.softmax(X @ K.T)) for X in (Q, Q @ W, Q @ W @ W)]
    O = sa.let("O", P[0] @ V + P[1] @ V + P[2] @ V)
    D = sa.Derivation("Three").extend(*P, O, sa.gradient(O, [W]))
    assert [check.name for check in D.verify() if check.name[0] in "PO"] == ["P_1", "P_2", "P_3", "O"]
    assert "P₄" not in D.text()
    X = sa.let("X", Q @ K.T)
    other = [sa.let("X_1", X), sa.let("X_2", Q @ K.T)]  # names of the user are kept, though they mean the same
    assert [check.name for check in sa.Derivation("Own").extend(X, *other).verify()] == ["X", "X_1", "X_2"]


def test_what_is_written_as_itself_says_so_in_every_medium():
    x = sa.tensor("x", "n")
    D = sa.Derivation("D").extend(sa.eq(x @ x, x @ x), sa.eq(x, x + 0)).then(x).claim(sa.prove(x, x))
    D.verify()
    alike = "both sides are written alike"
    for written in (D.text(), D.latex(), D.markdown(), D.html()):
        assert " ".join(written.split()).lower().count(alike) == 4
    assert alike not in sa.Derivation("D").extend(sa.let("y", x + 1)).then(1 + x * x / x).text()
