"""Sums and products entry by entry: collected, ordered, multiplied out, divided."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import sympy

from ...core.exact import INDICES
from ...core.node import Tensor
from ...core.sizes import Shape
from ...ops.arithmetic import add, add_op, divide, divide_op, multiply, multiply_op, split_scalar, sum_of
from ...ops.broadcasting import broadcast_to, broadcast_to_op
from ...ops.leaves import constant, from_index_op, scalar_value
from ...ops.pointwise import exp, exp_op, log_op, power, power_op
from .rule import Rule, bare, ordered

Term = tuple[sympy.Expr, Tensor | None]  # a coefficient and what it multiplies, None for 1
Factor = tuple[Tensor, int]


def constant_value(x: Tensor) -> sympy.Expr | None:
    """The value of all entries, where they are visibly one scalar."""
    value = scalar_value(x)
    if x.op is from_index_op and x.kind == "real" and not x.params["formula"].has(*INDICES):
        value = x.params["formula"]
    return None if value is None or value.is_infinite else value


# --- sums ---


def terms(x: Tensor) -> list[Term]:
    """The terms of a sum, each without what broadcasting does by itself."""
    found: list[Term] = []
    pending: list[Term] = [(sympy.S.One, x)]
    while pending:
        coefficient, term = pending.pop()
        assert term is not None
        c, rest = split_scalar(bare(term))
        rest = None if rest is None else bare(rest)
        if rest is not None and rest.op is add_op:
            pending += [(coefficient * c, i) for i in rest.inputs[::-1]]
        elif rest is not None and (c != 1 or rest is not term):
            pending.append((coefficient * c, rest))
        else:
            value = c if rest is None else constant_value(rest)
            found.append((coefficient, rest) if value is None else (coefficient * value, None))
    return found


def term(c: sympy.Expr, x: Tensor | None) -> Tensor:
    """One term as a tensor."""
    return constant(formula=c) if x is None else multiply(c, x)


def total(listed: Sequence[Term], shape: Shape) -> Tensor:
    """The sum of the terms: like terms together, the number first, then in order."""
    number = sympy.S.Zero
    coefficients: dict[Tensor, sympy.Expr] = {}
    for c, x in listed:
        if x is None:
            number += c
        else:
            coefficients[x] = coefficients.get(x, sympy.S.Zero) + c
    kept = [(c, x) for x, c in coefficients.items() if sympy.expand(c) != 0]
    parts = [multiply(c, x) for c, x in ordered(kept, of=lambda pair: pair[1])]
    if number != 0 or not parts:
        parts.insert(0, constant(formula=number))
    return broadcast_to(sum_of(parts), shape)


def _collected_sum(x: Tensor) -> Tensor | None:
    if x.op is multiply_op and (scalar_value(x.inputs[0]) is None or bare(x.inputs[1]).op is not add_op):
        return None
    if x.op is add_op and _in_order(*x.inputs):
        return None
    if x.op is add_op and _in_order(*x.inputs[::-1]):  # one more term in front of a long sum
        return add(*x.inputs[::-1])
    return total(terms(x), x.shape)


def _why_collected(x: Tensor, after: Tensor) -> str:
    if x.op is multiply_op:
        return "A scalar factor goes to each term."
    before, left = ({t for _, t in terms(y)} for y in (x, after))
    if not before - {None} <= left:
        return "Equal terms cancel."
    return "The order of terms does not matter." if len(terms(x)) == len(left) else "Like terms are added."


def _in_order(a: Tensor, b: Tensor) -> bool:
    """Whether ``a + b`` is visibly collected, given that a and b are: then a long sum is not taken apart."""
    last = split_scalar(a.inputs[1] if a.op is add_op else a)[1]
    new = split_scalar(b)[1]
    if new is None or new.op in (add_op, broadcast_to_op) or new is not bare(new) or constant_value(new) is not None:
        return False
    if last is None:
        return True
    return last.height < new.height and last is bare(last) and constant_value(last) is None


# --- products ---


def factors(x: Tensor) -> tuple[sympy.Expr, list[Factor]]:
    """A product as a number and factors with whole exponents; what is divided by has negative ones.

    A fraction below a fraction stays a factor: what it is divided by must not be 0 to come above.
    """
    number = sympy.S.One
    found: list[Factor] = []
    pending: list[Factor] = [(x, 1)]
    while pending:
        base, n = pending.pop()
        base = bare(base)
        value = constant_value(base)
        if value is not None and (n > 0 or value != 0):
            number *= value**n
        elif base.op is multiply_op:
            pending += [(i, n) for i in base.inputs[::-1]]
        elif base.op is divide_op and n > 0:
            pending += [(base.inputs[1], -n), (base.inputs[0], n)]
        elif base.op is power_op and (exponent := _whole_exponent(base)) is not None and (n > 0 or exponent > 0):
            pending.append((base.inputs[0], n * exponent))
        else:
            found.append((base, n))
    return number, found


def _whole_exponent(x: Tensor) -> int | None:
    """The exponent of an entrywise power, where it is a whole number other than 0."""
    value = scalar_value(x.inputs[1])
    return int(value) if value is not None and value.is_Integer and value != 0 else None


def product(number: sympy.Expr, listed: Sequence[Factor], shape: Shape | None = None) -> Tensor:
    """The product as a fraction: equal factors of one sign together, in order; broadcast to a shape if one is given."""
    above: dict[Tensor, int] = {}
    below: dict[Tensor, int] = {}
    for base, n in listed:
        side = above if n > 0 else below
        side[base] = side.get(base, 0) + abs(n)
    numerator = _powers(above)
    fraction = constant(formula=sympy.S.One) if numerator is None else numerator
    # a product with a sum would be multiplied out in its own right: such factors divide one after the other
    apart = any(base.op is add_op for base in below)
    bases = ordered(below, of=lambda base: base)
    for part in [{base: below[base]} for base in bases] if apart else [below]:
        divisor = _powers(part)
        fraction = fraction if divisor is None else divide(fraction, divisor)
    result = multiply(number, fraction)
    return result if shape is None else broadcast_to(result, shape)


def _powers(exponents: dict[Tensor, int]) -> Tensor | None:
    parts = [power(base, n) for base, n in ordered(exponents.items(), of=lambda pair: pair[0])]
    return reduce(multiply, parts) if parts else None


_PRODUCTS = (multiply_op, divide_op, power_op)


def _collected_product(x: Tensor) -> Tensor | None:
    if x.op is power_op and _whole_exponent(x) is None:
        return None
    if x.op is multiply_op and scalar_value(x.inputs[0]) is not None and x.inputs[1].op not in _PRODUCTS:
        return None
    return product(*factors(x), x.shape)


def _why_gathered(x: Tensor, after: Tensor) -> str:
    _, listed = factors(x)
    if len({base for base, _ in listed}) < len(listed):
        return "Equal factors are gathered into a power."
    if any(n < 0 for _, n in listed):
        return "Factors are gathered above and below one fraction."
    return "The order of factors does not matter."


def _both_sides(listed: Sequence[Factor]) -> list[Tensor]:
    """The factors that stand above and below."""
    above = {base for base, n in listed if n > 0}
    return list(dict.fromkeys(base for base, n in listed if n < 0 and base in above))


def _without_common(x: Tensor, wanted: bool) -> Tensor | None:
    """Common factors cancelled: exponentials, which are never 0, or the others."""
    number, listed = factors(x)
    common = [base for base in _both_sides(listed) if (base.op is exp_op) == wanted]
    if not common:
        return None
    return product(number, _joined(listed, common), x.shape)


def _joined(listed: Sequence[Factor], bases: Sequence[Tensor]) -> list[Factor]:
    """The factors with the exponents of these bases added up."""
    rest = [(base, n) for base, n in listed if base not in bases]
    return rest + [(base, n) for base in bases if (n := sum(m for other, m in listed if other is base))]


def _divided(x: Tensor) -> tuple[Tensor, ...]:
    return tuple(base for base in _both_sides(factors(x)[1]) if base.op is not exp_op)


# --- multiplying out ---


def _distributed(x: Tensor) -> Tensor | None:
    number, listed = factors(x)
    for place, (base, n) in enumerate(listed):
        if base.op is add_op and 1 <= n <= 4:
            rest = [*listed[:place], *listed[place + 1 :], *([(base, n - 1)] if n > 1 else [])]
            parts = []
            for c, t in terms(base):
                inner, more = (sympy.S.One, []) if t is None else factors(t)
                parts.append(product(number * c * inner, [*rest, *more]))
            return broadcast_to(sum_of(parts), x.shape)
    return None


def _common_divisor(x: Tensor) -> Tensor | None:
    """``1 / (e a + e b) -> (1 / e) (1 / (a + b))``."""
    number, listed = factors(x)
    for place, (base, n) in enumerate(listed):
        if base.op is not add_op or n > 0:
            continue
        split = [(c, *((sympy.S.One, []) if t is None else factors(t))) for c, t in terms(base)]
        common = _shared([parts for _, _, parts in split])
        if common:
            bases, inverse = [b for b, _ in common], [(b, -m) for b, m in common]
            left = [product(c * inner, _joined([*parts, *inverse], bases)) for c, inner, parts in split]
            rest = [*listed[:place], *listed[place + 1 :], *((b, m * n) for b, m in common)]
            return product(number, [*rest, (sum_of(left), n)], x.shape)
    return None


def _shared(products: Sequence[Sequence[Factor]]) -> list[Factor]:
    """The exponentials that occur in every product, all above or all below the fraction, with their exponents."""
    found = []
    for base, sign in dict.fromkeys((b, 1 if n > 0 else -1) for b, n in products[0] if b.op is exp_op):
        exponents = [sum(sign * n for b, n in parts if b is base) for parts in products]
        if min(exponents) > 0:
            found.append((base, sign * min(exponents)))
    return found


# --- exponentials ---


def _split_exponential(x: Tensor) -> Tensor | None:
    """``exp(a + b) -> exp(a) exp(b)`` and ``exp(-a) -> 1 / exp(a)``; what may be -oo stays as it is."""
    inside = x.inputs[0]
    listed = terms(inside)
    if inside.holds_minus_infinity or (len(listed) == 1 and not _negative(listed[0])):
        return None
    number = sympy.exp(sum((c for c, t in listed if t is None), sympy.S.Zero))
    parts = []
    for c, t in listed:
        if t is not None:
            below = c.could_extract_minus_sign()
            parts.append((exp(multiply(-c if below else c, t)), -1 if below else 1))
    return product(number, parts, x.shape)


def _negative(listed: Term) -> bool:
    c, t = listed
    return t is None or c.could_extract_minus_sign()


def _undone(x: Tensor) -> Tensor | None:
    inside = x.inputs[0]
    return inside.inputs[0] if inside.op is exp_op and not inside.inputs[0].holds_minus_infinity else None


# --- the table ---

ALGEBRA = (
    Rule(
        "terms collected", "Like terms are added, and the order of terms does not matter.",
        1, _collected_sum, (add_op, multiply_op), routine=True, says=_why_collected,
    ),
    Rule(
        "factors collected", "Equal factors are gathered, and their order does not matter.",
        1, _collected_product, _PRODUCTS, routine=True, says=_why_gathered,
    ),
    Rule("exponentials cancel", "An exponential is never 0.", 2, lambda x: _without_common(x, True), _PRODUCTS),
    Rule(
        "common factors cancel", "What is not 0 may be divided by.",
        2, lambda x: _without_common(x, False), _PRODUCTS, _divided,
    ),
    Rule("product multiplied out", "A product of a sum is the sum of the products.", 2, _distributed, _PRODUCTS),
    Rule(
        "common divisor", "An exponential that all terms of a denominator share comes out.",
        2, _common_divisor, (divide_op, multiply_op),
    ),
    Rule("exponential of a sum", "The exponential of a sum is a product.", 2, _split_exponential, (exp_op,)),
    Rule("logarithm of an exponential", "The logarithm undoes the exponential.", 1, _undone, (log_op,)),
)  # fmt: skip
