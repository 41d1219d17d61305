"""Where an entry is read: linear constraints on indices and sizes, their projection, and their contradictions.

A pattern is a disjunction of conjunctions of constraints ``form = 0`` or ``form >= 0``, where a form is a polynomial
with whole coefficients in whole numbers, taken as linear in its monomials. Every step here may only make a pattern
wider, never narrower: a pattern says where something *may* happen, so that what lies outside it cannot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from math import gcd
from typing import NamedTuple

Monomial = tuple[str, ...]  # sorted names of variables; () is the constant
Form = tuple[tuple[Monomial, int], ...]  # sorted, without zeros

MOST_CONSTRAINTS = 120  # of one conjunction while a variable is eliminated
MOST_CASES = 40  # of one pattern
MANY_CASES = 6  # more than that are joined once a node is done


class Constraint(NamedTuple):
    """``form = 0`` if ``equal``, else ``form >= 0``."""

    form: Form
    equal: bool


Conjunction = tuple[Constraint, ...]
Pattern = tuple[Conjunction, ...]
NOWHERE: Pattern = ()
ANYWHERE: Pattern = ((),)

# --- forms ---


def form_from(terms: Mapping[Monomial, int]) -> Form:
    """A form from its coefficients."""
    return tuple(sorted((m, c) for m, c in terms.items() if c))


def combined(a: int, x: Form, b: int, y: Form) -> Form:
    """``a * x + b * y``."""
    total = {m: a * c for m, c in x}
    for m, c in y:
        total[m] = total.get(m, 0) + b * c
    return form_from(total)


def product(x: Form, y: Form) -> Form:
    """``x * y``, written out."""
    total: Counter[Monomial] = Counter()
    for m, c in x:
        for n, k in y:
            total[tuple(sorted(m + n))] += c * k
    return form_from(total)


def substituted(form: Form, values: Mapping[str, Form]) -> Form:
    """The form with forms for variables."""
    total: Form = ()
    for m, c in form:
        term = form_from({(): c})
        for name in m:
            term = product(term, values.get(name, form_from({(name,): 1})))
        total = combined(1, total, 1, term)
    return total


# --- conjunctions ---


def normal(constraints: Iterable[Constraint]) -> Conjunction | None:
    """The constraints in lowest terms, of those that differ by constants the strongest; None if one never holds."""
    least: dict[tuple[Form, bool, int], int] = {}
    for form, equal in constraints:
        constant = form[0][1] if form and not form[0][0] else 0  # () is sorted to the front
        moving = form[1:] if constant else form
        divisor = gcd(*(c for _, c in moving))
        if not divisor and (constant < 0 or (equal and constant)):
            return None
        if not divisor:
            continue
        if equal and constant % divisor:
            return None
        divisor = -divisor if equal and moving[0][1] < 0 else divisor
        if divisor != 1:  # dividing an inequality of whole numbers rounds its constant down
            moving, constant = tuple((m, c // divisor) for m, c in moving), constant // divisor
        key = moving, equal, constant if equal else 0
        least[key] = min(constant, least.get(key, constant))
    found = (((((), c), *moving) if c else moving, equal) for (moving, equal, _), c in least.items())
    return tuple(sorted(Constraint(form, equal) for form, equal in found))


def _without_monomial(constraints: Sequence[Constraint], m: Monomial) -> list[Constraint]:
    """What the constraints say of the other monomials: an equality is solved for m, else bounds are paired."""
    having = [(dict(c.form).get(m, 0), c) for c in constraints]
    rest = [c for a, c in having if not a]
    a, solved = min(((a, c) for a, c in having if a and c.equal), key=lambda pair: abs(pair[0]), default=(0, None))
    if solved is not None:
        return rest + [
            Constraint(combined(abs(a), c.form, -b if a > 0 else b, solved.form), c.equal)
            for b, c in having
            if b and c is not solved
        ]
    lower = [(a, c) for a, c in having if a > 0]
    upper = [(a, c) for a, c in having if a < 0]
    if len(lower) * len(upper) + len(rest) > MOST_CONSTRAINTS:
        return rest  # fewer constraints: wider
    pairs = ((a, low, b, high) for a, low in lower for b, high in upper)
    return rest + [Constraint(combined(-b, low.form, a, high.form), False) for a, low, b, high in pairs]


def _monomials(constraints: Iterable[Constraint]) -> list[Monomial]:
    return sorted({m for c in constraints for m, _ in c.form if m})


def _cheapest(constraints: Iterable[Constraint], unwanted: Sequence[Monomial]) -> Monomial:
    """The monomial whose elimination makes the fewest new constraints."""
    met = Counter((m, 0 if equal else 1 if c > 0 else -1) for form, equal in constraints for m, c in form)
    return min(unwanted, key=lambda m: (0 if met[m, 0] else met[m, 1] * met[m, -1], m))


def _signs(monomials: Iterable[Monomial]) -> list[Constraint]:
    """What is known of a monomial from its variables: indices are >= 0 and sizes are >= 1."""
    known = (m for m in monomials if all(name[0] in "ovbs" for name in m))
    least = ((m, -1 if all(name[0] == "s" for name in m) else 0) for m in known)
    return [Constraint(form_from({m: 1, (): constant}), False) for m, constant in least]


def projected(conjunction: Sequence[Constraint], unwanted: Callable[[str], bool]) -> Conjunction | None:
    """The conjunction without the monomials that hold an unwanted variable; None if it can never hold."""
    gone = [m for m in _monomials(conjunction) if any(map(unwanted, m))]
    constraints = normal([*conjunction, *_signs(gone)])
    while gone and constraints is not None:
        m = _cheapest(constraints, gone)
        gone.remove(m)
        constraints = normal(_without_monomial(constraints, m))
    return constraints


def possible(conjunction: Sequence[Constraint]) -> bool:
    """False only if no indices and sizes satisfy all constraints."""
    return projected(conjunction, lambda name: True) is not None


def implies(conjunction: Sequence[Constraint], constraint: Constraint) -> bool:
    """True only if the constraint holds wherever the conjunction does."""
    if constraint in conjunction:
        return True
    return not any(possible([*conjunction, other]) for other in negated(constraint))


def negated(constraint: Constraint) -> list[Constraint]:
    """The cases in which the constraint does not hold."""
    below, above = (Constraint(combined(sign, constraint.form, -1, form_from({(): 1})), False) for sign in (-1, 1))
    return [below, above] if constraint.equal else [below]


# --- patterns ---


def every(*patterns: Pattern) -> Pattern:
    """Where all of them may hold."""
    return reduce(_both, patterns, ANYWHERE)


def _both(p: Pattern, q: Pattern) -> Pattern:
    if p == ANYWHERE or q == NOWHERE or p is q:
        return q
    if q == ANYWHERE or p == NOWHERE:
        return p
    if len(p) * len(q) > MOST_CASES:
        return p if len(p) <= len(q) else q  # one of them alone is wider
    made = (normal((*a, *b)) for a in p for b in q)
    return _each_once(c for c in made if c is not None)


def either(*patterns: Pattern) -> Pattern:
    """Where one of them may hold."""
    return _each_once(c for p in patterns for c in p)


def _each_once(cases: Iterable[Conjunction]) -> Pattern:
    found = tuple(dict.fromkeys(cases))
    if () in found or len(found) > MOST_CASES:
        return ANYWHERE
    return found


def without(p: Pattern, unwanted: Callable[[str], bool]) -> Pattern:
    """Where some values of the unwanted variables allow it."""
    made = (projected(c, unwanted) for c in p)
    return _each_once(c for c in made if c is not None)


def tidied(p: Pattern, known: Sequence[Constraint]) -> Pattern:
    """The pattern where ``known`` holds: without what that implies, impossible cases, and cases inside others."""
    cases: list[Conjunction] = []
    for case in p:
        if possible([*case, *known]):
            beside = normal([*known, *_signs(_monomials(case))]) or ()
            strongest = normal([*case, *beside]) or ()
            cases.append(tuple(c for c in case if c in strongest and c not in beside))
    found: list[Conjunction] = []
    for case in sorted(dict.fromkeys(cases), key=lambda c: (len(c), c)):
        if not any(_inside(case, other, known) for other in found):
            found = [other for other in found if not _inside(other, case, known)]
            found.append(case)
    return _each_once(found if len(found) <= MANY_CASES else [joined(found, known)])


def inside(p: Pattern, q: Pattern, known: Sequence[Constraint]) -> bool:
    """True only if the first pattern lies in the second where ``known`` holds: each case of it in one of those."""
    possibly = (case for case in p if possible([*case, *known]))
    return all(any(_inside(case, other, known) for other in q) for case in possibly)


def joined(
    cases: Sequence[Conjunction], known: Sequence[Constraint], others: Sequence[Conjunction] = ()
) -> Conjunction:
    """What all cases have in common, and others have too: ``v = i`` and ``v = i - 1`` are both ``v <= i``."""
    parts = [Constraint(f, False) for case in cases for c in case for f in _inequalities(c)]
    held = [[*case, *known] for case in (*cases, *others)]
    common = (c for c in dict.fromkeys(parts) if all(implies(case, c) for case in held))
    return normal(common) or ()


def _inequalities(constraint: Constraint) -> list[Form]:
    return [constraint.form, combined(-1, constraint.form, 0, ())] if constraint.equal else [constraint.form]


def _inside(case: Conjunction, other: Conjunction, known: Sequence[Constraint]) -> bool:
    return all(implies([*case, *known], c) for c in other)
