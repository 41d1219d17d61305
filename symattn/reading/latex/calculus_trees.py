r"""Integrals, limits, derivatives and factorials as trees: where each ends, and what is bound by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import sympy

from .text import Span
from .tree import (
    Calculus,
    Fraction,
    Infix,
    Items,
    Large,
    Mark,
    Number,
    Product,
    Relation,
    Scripted,
    Symbol,
    Total,
    Tree,
    parts_of,
)

if TYPE_CHECKING:
    from .lexer import Token
    from .parser import Parser

_SIDES = frozenset("+−")


# --- integrals ---


def integral(parser: Parser) -> Tree:
    r"""``\int_a^b f \, dx``: up to its d; without limits it has none."""
    sign = parser.next()
    limits = _limits(parser, sign.span)
    end = _differential(parser, sign.span)
    if end is None:
        body, variable = _in_numerator(parser, sign.span)
    else:
        parser.differentials.append(end)
        body = Number(sign.span, "1") if parser.at == end else parser.expression(0)
        if parser.at != end:
            raise parser.error("this is not expected in front of the differential")
        parser.differentials.pop()
        parser.next()
        variable = parser.scripts(parser.atom())
    if parser.begins():
        raise parser.error("what stands behind the differential is not decided: write it in front of the integral")
    return Calculus(parser.since(sign.span.start), "∫", variable, limits, body)


def _limits(parser: Parser, span: Span) -> tuple[Tree, ...]:
    below = above = None
    while parser.token.kind in ("_", "^"):
        below, above = (parser.script(), above) if parser.token.kind == "_" else (below, parser.script())
    if below is None or above is None:
        raise parser.error(r"an integral is read with both limits, as \int_0^1", span)
    return below, above


def _differential(parser: Parser, span: Span) -> int | None:
    """The place of the d of an integral; None where it stands inside of a fraction."""
    open_integrals, found = 1, None
    for n in _on_this_level(parser):
        token = parser.tokens[n]
        if token.kind == "sign" and token.mark == "∫" and found is None:
            open_integrals += 1
        elif token.kind == "sign" and token.mark == "∫":
            break
        elif _is_d(parser, n):
            open_integrals -= 1
            if open_integrals < 0:
                raise parser.error("which d belongs to the integral is not decided: write a product by \\cdot", span)
            found = n if open_integrals == 0 else found
    return found


def _on_this_level(parser: Parser) -> Iterator[int]:
    """The tokens up to the end of the group in which the parser is."""
    depth = 0
    for n in range(parser.at, min([len(parser.tokens), *parser.differentials[-1:]])):
        token = parser.tokens[n]
        depth -= token.kind in ("}", "close") or token.mark == r"\end"
        if depth < 0 or token.kind == "row" or (not depth and token.kind == "&"):
            return
        if not depth:
            yield n
        depth += token.kind in ("{", "open") or token.mark == r"\begin"


def _is_d(parser: Parser, n: int) -> bool:
    token, after = parser.tokens[n], parser.tokens[n + 1 : n + 2]
    return token.kind == "letter" and token.mark == "d" and bool(after) and after[0].kind in ("letter", "accent")


def _in_numerator(parser: Parser, span: Span) -> tuple[Tree, Tree]:
    r"""``\int_1^2 \frac{dx}{x}``."""
    body = parser.body()
    beside = _beside(body.above) if isinstance(body, Fraction) else ()
    if isinstance(body, Fraction) and len(beside) > 1 and _is_sign(beside[-2]):
        one = Number(body.span, "1")
        above = Product(body.above.span, (one, *beside[:-2]), ("⋅",) * len(beside[:-2])) if beside[:-2] else one
        return Fraction(body.span, above, body.below), beside[-1]
    raise parser.error(r"an integral has no differential: write it as \int_0^1 f \, dx", span)


def _beside(tree: Tree) -> tuple[Tree, ...]:
    """Factors side by side."""
    if isinstance(tree, Product) and not any(tree.signs):
        return tree.factors
    if isinstance(tree, Symbol) and len(tree.letters) == 2 and tree.letters[0] == "d":  # with an upright d
        return Symbol(tree.span, "d"), Symbol(tree.span, tree.letters[1:], tree.style, tree.accents)
    return (tree,)


# --- limits ---


def limit(parser: Parser) -> Tree:
    r"""``\lim_{t \to 0^+} f``, of the rest of its product."""
    word = parser.next()
    below = parser.script()
    if not isinstance(below, Relation) or below.signs != ("→",):
        raise parser.error(r"a limit is read as \lim_{t \to 0} f", word.span)
    variable, place = below.sides
    side: tuple[Tree, ...] = ()
    if isinstance(place, Scripted) and isinstance(place.above, Mark) and place.above.sign in _SIDES:
        side, place = (place.above,), _without_side(place)
    if not parser.begins():
        raise parser.error("the limit has nothing behind it", word.span)
    body = parser.body()
    return Calculus(parser.since(word.span.start), "lim", variable, (place, *side), body)


def _without_side(place: Scripted) -> Tree:
    if place.below is None and not place.primes:
        return place.base
    return Scripted(place.span, place.base, place.below, None, place.primes)


# --- derivatives and binomials ---


def fraction(parser: Parser, command: Token, operator: Fraction) -> Tree:
    r"""``\frac{d}{dt} f`` and ``\frac{d^2}{dt^2} f`` with what they are of, a binomial; any other fraction as it is."""
    if command.mark == r"\binom":
        return Calculus(operator.span, "binom", None, (operator.below,), operator.above)
    if _is_of_higher_order(operator):
        raise parser.error(
            r"a derivative or a product with d is not decided: write \frac{d^2}{dx^2} (f), or \cdot between factors",
            operator.span,
        )
    found = _operator(operator)
    if found is None or not parser.begins():
        return operator
    variable, order = found
    body = parser.body()
    return Calculus(parser.since(operator.span.start), "d", variable, (order,), body)


def _operator(fraction: Fraction) -> tuple[Tree, Number] | None:
    """The variable and the order, where a fraction stands for a derivative."""
    above, order = _with_order(fraction.above)
    if not _is_sign(above) or len(_beside(fraction.below)) != 2:
        return None
    sign, below = _beside(fraction.below)
    variable, times = _with_order(below)
    if not _is_sign(sign) or times.digits != order.digits:
        return None
    return variable, order


def _is_of_higher_order(fraction: Fraction) -> bool:
    """Whether it looks like a mixed derivative, or a higher one of what stands in it: ``d^2 f`` over ``dx^2``."""
    above, below = _beside(fraction.above), _beside(fraction.below)
    sign, order = _with_order(above[0])
    looks = order.digits != "1" and all(isinstance(x, Symbol) and x.letters == "d" for x in (sign, *below[::2]))
    if not looks or len(below) % 2 or (len(above) == 1 and len(below) == 2):
        return False
    times = (_with_order(variable)[1].digits for variable in below[1::2])
    return sum(map(sympy.Rational, times)) == sympy.Rational(order.digits)


def _with_order(tree: Tree) -> tuple[Tree, Number]:
    if isinstance(tree, Scripted) and isinstance(tree.above, Number) and not tree.primes:
        return (tree.base if tree.below is None else Scripted(tree.span, tree.base, tree.below)), tree.above
    return tree, Number(tree.span, "1")


def _is_sign(tree: Tree) -> bool:
    return (isinstance(tree, Symbol) and tree.letters == "d") or (isinstance(tree, Mark) and tree.sign == "∂")


def factors_of(tree: Tree) -> Iterator[Tree]:
    """The factors of a body, and what it is divided by."""
    if isinstance(tree, Product):
        for factor in tree.factors:
            yield from factors_of(factor)
    elif isinstance(tree, Infix):
        yield from factors_of(tree.left)
        yield from factors_of(tree.right)
    else:
        yield tree


# --- where a sum ends ---


def behind_the_last(tree: Tree) -> Tree | None:
    """The last factor of a sum, an extreme or a limit that has not its index: it may stand behind it as a whole."""
    bound: set[str] = set()
    while True:
        match tree:
            case Large(below=below, body=body):
                bound |= _bound_below(below)
                tree = body
            case Calculus(kind="lim" | "d", variable=variable, body=body):
                bound |= _letters(variable)
                tree = body
            case Total(terms=((_, inside),)):
                tree = inside
            case Product(factors=(*_, last)) | Infix(right=last) if not bound & _letters(last):
                return last
            case Product(factors=(*_, last)) | Infix(right=last):
                tree = last
            case _:
                return None


def _bound_below(below: Tree | None) -> set[str]:
    items = below.items if isinstance(below, Items) else (below,)
    return {x for item in items for x in _letters(item.sides[0] if isinstance(item, Relation) else item)}


def _letters(tree: Tree | None) -> set[str]:
    parts = () if tree is None else parts_of(tree)
    return {part.letters for part in parts if isinstance(part, Symbol)}


# --- factorials ---


def factorial(parser: Parser, tree: Tree) -> Tree:
    """``n!``, where the sign stands behind a factor."""
    while parser.meets("sign", "!"):
        if isinstance(tree, Scripted) and tree.above is not None:
            raise parser.error("whether this ! is of the power is not decided: write parentheses")
        sign = parser.next()
        tree = Calculus(Span(tree.span.start, sign.span.end), "!", None, (), tree)
    return tree
