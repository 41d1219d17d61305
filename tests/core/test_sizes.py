"""Sizes unify strictly, are whole and positive, and are read from text without evaluating it."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.core.sizes import as_size, broadcast_shapes, divisibility, inequality, never_negative, same_size

T, S, d, h, n = sa.sizes("T S d h n")


def test_one_name_is_one_symbol_and_several_are_a_tuple():
    assert sa.sizes("T") is T or sa.sizes("T") == T
    assert sa.sizes("T, S d") == (T, S, d)
    assert all(size.is_integer and size.is_positive for size in (T, S, d))


@pytest.mark.parametrize("names", ["", "  ", ",", None, 3, ["T", "S"]])
def test_sizes_takes_names_in_one_string(names):
    with pytest.raises(sa.NamingError, match="names in one string"):
        sa.sizes(names)


@pytest.mark.parametrize(
    ("a", "b"), [(T, T), (h * d, d * h), ((h + 1) * d, h * d + d), (2 * n - n, n), (h * (d / h), d), (4 * n / 2, 2 * n)]
)
def test_sizes_whose_difference_expands_to_zero_are_one_size(a, b):
    assert same_size(as_size(a), as_size(b))
    assert (sa.tensor("A", a) + sa.tensor("B", b)).rank == 1


@pytest.mark.parametrize(("a", "b"), [(T, S), (T, T + 1), (T, 2 * T), (h * d, h + d), (T, sympy.Integer(3)), (n, n**2)])
def test_sizes_that_differ_for_some_value_are_two_sizes(a, b):
    assert not same_size(as_size(a), as_size(b))
    with pytest.raises(sa.ShapeError, match="differ"):
        sa.tensor("A", a) + sa.tensor("B", b)


@pytest.mark.parametrize(
    ("size", "cause"),
    [
        (0, "positive"),
        (-1, "positive"),
        (-d, "positive"),
        (d - d, "positive"),
        (sympy.Rational(1, 2), "whole number"),
        (sympy.Float(2.0), "whole number"),
        (sympy.pi, "whole number"),
        (sympy.sqrt(d), "whole number"),
        (sympy.I * d, "whole number"),
        (sympy.oo, "whole number"),
        (sympy.nan, "whole number|positive"),
        (2.0, "positive integer"),
        (1.5, "positive integer"),
        (np.float64(3), "positive integer"),
        (True, "positive integer"),
        (np.True_, "positive integer"),
        (None, "positive integer"),
        (3j, "positive integer"),
        ("0", "positive"),
        ("-d", "positive"),
        ("1/2", "whole number"),
    ],
    ids=lambda value: f"{type(value).__module__} {value!r}",
)
def test_what_is_no_size_is_refused_with_the_cause(size, cause):
    with pytest.raises(sa.ShapeError, match=cause):
        sa.tensor("Q", T, size)


@pytest.mark.parametrize("size", [3, np.int64(3), sympy.Integer(3), "3"], ids=lambda size: type(size).__name__)
def test_integers_of_every_kind_are_sizes(size):
    assert sa.tensor("Q", size).shape == (3,)


@pytest.mark.parametrize(
    "symbol", [sympy.Symbol("d"), sympy.Symbol("d", integer=True), sympy.Symbol("d", positive=True)]
)
def test_a_symbol_of_other_assumptions_is_never_a_second_size(symbol):
    with pytest.raises(sa.ShapeError, match=r"d = sa\.sizes\('d'\)"):
        sa.tensor("Q", T, symbol)


@pytest.mark.parametrize(
    "write",
    [str, sa.latex, sa.entries, lambda x: sa.gradient(x, [x.tensors[0]])],
    ids=["str", "latex", "entries", "gradient"],
)
def test_a_scalar_that_only_looks_like_a_size_is_refused_where_it_would_show(write):
    with pytest.raises(sa.NamingError, match="differ in their assumptions"):
        write(sympy.Symbol("d") * sa.tensor("Q", T, d))


def test_shapes_are_read_from_text_sequences_and_sizes_alike():
    spellings = [("T d",), ("T, d",), ("T", "d"), (T, d), ((T, d),), ([T, d],), (T, "d")]
    assert len({sa.tensor("Q", *shape) for shape in spellings}) == 1


@pytest.mark.parametrize(
    ("text", "size"),
    [("h*d", h * d), ("(d+1)", d + 1), ("2*n-1", 2 * n - 1), ("d/h", d / h), ("12", sympy.Integer(12))],
)
def test_arithmetic_of_sizes_is_read_from_text(text, size):
    assert sa.tensor("Q", "T " + text).shape == (T, size)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "d.x",
        "d**2",
        "d[0]",
        "f(d)",
        "lambda:1",
        "d;T",
        "'d'",
        "1.5",
        "d//2",
        "d<2",
        "9" * 300,
        "(" * 150,
    ],
)
def test_other_text_is_a_parse_error_with_a_caret_and_is_never_evaluated(text):
    with pytest.raises(sa.ParseError, match=r"not a size.*\n.*\n *\^"):
        sa.tensor("Q", T, text)


def test_a_keyword_or_bad_name_inside_a_size_is_refused():
    with pytest.raises((sa.NamingError, sa.ParseError)):
        sa.tensor("Q", "T d__x")


def test_fractions_of_sizes_state_what_divides_what():
    assert divisibility([d / h, T, 2 * n, d / h, (S + 1) / 2]) == ["h divides d", "2 divides S + 1"]
    assert divisibility([d / h, d / h - 1, 2 * n + d / h]) == ["h divides d"]


@pytest.mark.parametrize(
    ("value", "known"),
    [(T - 1, True), (2 * n - 1, True), (S + T - 1, True), (d / 2, True), (-T, False), (T - S, False), (S - 2, False)],
)
def test_a_sign_is_known_only_if_it_holds_for_all_sizes(value, known):
    assert never_negative(value) is known


@pytest.mark.parametrize(
    ("shapes", "out"),
    [
        (((T, d), (d,)), (T, d)),
        (((T, 1), (1, d)), (T, d)),
        (((h, 1, d), (T, 1)), (h, T, d)),
        (((), (T,)), (T,)),
        (((T,), (S,)), None),
        (((h * d,), (d * h,)), (d * h,)),
    ],
)
def test_shapes_broadcast_as_in_numpy(shapes, out):
    assert broadcast_shapes(*(tuple(map(as_size, shape)) for shape in shapes)) == out


def test_an_offset_may_be_zero_and_a_size_may_not():
    n, s = sa.sizes("n"), sympy.Symbol("s", integer=True, nonnegative=True)
    assert never_negative(n - 1)
    assert never_negative(n + s - 1)
    assert not never_negative(s - 1)
    assert (inequality(s - 1), inequality(n - s), inequality(n + s - 1)) == ("1 <= s", "s <= n", None)
