"""Bound index symbols of the normal form: a sum inside a function may bind the symbol of a sum around it."""

from __future__ import annotations

import pytest
import sympy

import symattn as sa
from symattn.core.budget import Budget
from symattn.normal_form import functions
from symattn.normal_form.constructors import CONSTRUCTORS
from symattn.normal_form.contraction import RULES
from symattn.normal_form.indices import number, plus
from symattn.normal_form.ring import Ring
from symattn.normal_form.terms import Atom, Poly, Term
from symattn.proof.equality.entrywise import EntrywiseProof, entrywise_proof

from ..enumeration import same

n, d, m = sa.sizes("n d m")
x, v = sa.tensor("x", d), sa.tensor("v", n)
W, U = sa.tensor("W", n, d), sa.tensor("U", n, n, orthogonal=True)
Pi = sa.tensor("Pi", n, n, permutation=True)
z = W @ x
A = W * x
LAW = {W: sa.iid("normal", variance=1 / d), x: "constant"}
i = sympy.Symbol("i", integer=True, nonnegative=True)
SHARED, APART = True, False


class Nest:
    """Sums in one ring, which bind one symbol again and again, or each its own."""

    def __init__(self, shared: bool) -> None:
        self.shared = shared
        self.ring = Ring({}, {}, CONSTRUCTORS, RULES, Budget(20))
        self.i, self.j, self.k = (self.ring.fresh(n) for _ in range(3))

    def row(self, name: str = "W") -> Poly:
        """``sum_k W_ik x_k``, with i free."""
        k = self.k if self.shared else self.ring.fresh(n)
        return Poly([(1, Term((k,), ((Atom("entry", name, (self.i, k)), 1), (Atom("entry", "x", (k,)), 1))))])

    def top(self) -> Poly:
        """``max_k W_ik``, with i free."""
        k = self.k if self.shared else self.ring.fresh(n)
        return functions.extreme(self.ring, "Max", (k,), functions.single(Atom("entry", "W", (self.i, k))))


INSIDE = {
    "exp": lambda nest: functions.exp(nest.ring, nest.row()),
    "log": lambda nest: functions.log(nest.ring, nest.row()),
    "power": lambda nest: functions.power(nest.ring, nest.row("V"), -1),
    "root": lambda nest: functions.power(nest.ring, nest.row("V"), sympy.Rational(1, 2)),
    "positive": lambda nest: functions.positive(nest.ring, nest.row()),
    "extreme": lambda nest: nest.top(),
    "function": lambda nest: functions.function(nest.ring, "unknown f", [nest.row()]),
    "twice": lambda nest: functions.exp(
        nest.ring, nest.ring.multiply(nest.row(), functions.exp(nest.ring, nest.row()))
    ),
}
STEPS = {
    "as it is": lambda nest, poly: poly,
    "summed": lambda nest, poly: nest.ring.summed((nest.i,), poly),
    "renamed": lambda nest, poly: Poly([(c, nest.ring.renamed_term(term)) for c, term in poly.terms]),
    "put at another place": lambda nest, poly: nest.ring.replace(poly, {nest.i: nest.j}),
    "put at the bound symbol": lambda nest, poly: nest.ring.replace(poly, {nest.i: nest.k}),
    "turned round": lambda nest, poly: nest.ring.replace(poly, {nest.i: plus(number(n - 1), nest.k, -1)}),
    "squared": lambda nest, poly: nest.ring.multiply(poly, poly),
    "squared and summed": lambda nest, poly: nest.ring.summed((nest.i,), nest.ring.multiply(poly, poly)),
    "summed and squared": lambda nest, poly: nest.ring.whole_power(nest.ring.summed((nest.i,), poly), 2),
    "inverted": lambda nest, poly: functions.power(nest.ring, nest.ring.add(poly, nest.row()), -1),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("inside", INSIDE)
def test_sums_that_share_a_symbol_are_sums_that_do_not(inside, step):
    nest, other = Nest(SHARED), Nest(APART)
    other.ring = nest.ring  # so that keys can be compared
    other.i, other.j, other.k = nest.i, nest.j, nest.k
    keys = []
    for made in (nest, other):
        poly = made.ring.multiply(INSIDE[inside](made), made.row())
        once_more = made.ring.replace(STEPS[step](made, poly), {made.j: made.i})
        keys.append(made.ring.poly_key(once_more))
    assert keys[0] == keys[1]


# --- moments ---

SQUARE = sum(value**2 for value in (0.5, -1, 0.7))  # |x|^2 at d = 3


def at(found: sympy.Expr) -> float:
    base = sympy.IndexedBase("x", real=True)
    values = dict(zip((base[0], base[1], base[2]), (0.5, -1, 0.7), strict=True))
    numbers = found.subs({d: 3, n: 2}).doit()
    named = {part: values[base[part.indices[0]]] for part in numbers.atoms(sympy.Indexed)}
    return float(numbers.xreplace(named))


@pytest.mark.parametrize(
    ("quantity", "times"),
    [
        (sa.sum(z * sa.exp(z)), 2),
        (z @ sa.exp(z), 2),
        (sa.mean(z * sa.exp(z)), 1),
        (sa.sum(sa.let("y", z * sa.exp(z))), 2),
        (sa.einsum("i,i->", z, sa.exp(z)), 2),
        ((z * sa.exp(z))[i], 1),
    ],
)
def test_expectation_of_a_product_with_an_exponential_of_the_same_sum(quantity, times):
    variance = SQUARE / 3
    assert at(sa.expectation(quantity, LAW)) == pytest.approx(times * variance * sympy.exp(variance / 2))


def test_variance_and_other_powers():
    """``E z^2 e^z = (v + v^2) e^{v/2}`` and ``E z^2 e^{2z} = (v + 4 v^2) e^{2v}`` for z normal of variance v."""
    variance = SQUARE / 3
    tilt = sympy.exp(variance / 2)
    assert at(sa.expectation(sa.sum(z * z * sa.exp(z)), LAW)) == pytest.approx(2 * (variance + variance**2) * tilt)
    second, first = (variance + 4 * variance**2) * tilt**4, variance * tilt
    assert at(sa.variance(sa.sum(z * sa.exp(z)), LAW)) == pytest.approx(2 * (second - first**2))
    weighted = sa.expectation(v @ (z * sa.exp(z)), {**LAW, v: sa.iid("constant", mean=3)})
    assert at(weighted) == pytest.approx(6 * first)


def test_delta_method_of_a_product_with_an_exponential_of_the_same_sum():
    found = sa.expectation(sa.sum(z * sa.exp(z)), LAW, method="delta").value
    same(sympy.Float(at(found)), sympy.Float(2 * SQUARE / 3))


# --- claims, by normal forms alone ---

s = sa.sum(z * sa.exp(z))
WRONG = sa.sum(A * sa.exp(d * A))  # what the sums become if the inner one loses its index
TRUE = {
    "powers": (s**2, s * s),
    "reindexed": (sa.sum((Pi @ z) * sa.exp(Pi @ z)) * s, s**2),
    "named": (sa.sum(sa.let("y", z * sa.exp(z))) ** 3, s**3),
    "orthogonal": ((U @ (z * sa.log(1 + z * z))) @ (U @ z), sa.sum(z * z * sa.log(1 + z * z))),
    "a maximum": (sa.sum(z * sa.max(A, axis=1)) ** 2, sa.sum(z * sa.max(A, axis=1)) * (z @ sa.max(A, axis=1))),
}
FALSE = {
    "powers": (s**2, s * WRONG),
    "one of two": (s * sa.sum(z), WRONG * sa.sum(z)),
    "rows": ((z * sa.exp(z)) @ z, sa.sum(A * sa.exp(d * A), axis=1) @ z),
    "moved": (Pi @ (z * sa.exp(z)), Pi @ sa.sum(A * sa.exp(d * A), axis=1)),
    "named": (sa.sum(sa.let("y", z * sa.exp(z))) ** 3, s * WRONG**2),
    "inverse": (s / (1 + z @ z), WRONG / (1 + z @ z)),
}


@pytest.mark.parametrize("name", TRUE)
def test_true_claims_over_one_symbol_are_proved(name):
    assert isinstance(entrywise_proof(*TRUE[name], (), Budget(20)), EntrywiseProof)
    assert sa.prove(*TRUE[name])


@pytest.mark.parametrize("name", FALSE)
def test_false_claims_over_one_symbol_are_not_proved(name):
    assert not isinstance(entrywise_proof(*FALSE[name], (), Budget(20)), EntrywiseProof)
    assert sa.prove(*FALSE[name]).status == "refuted"
