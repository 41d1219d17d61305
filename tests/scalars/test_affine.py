"""Affine forms: slopes, ends and solutions, against numbers that are put in."""

from __future__ import annotations

import itertools

import pytest
import sympy

import symattn as sa
from symattn.scalars.affine import affine, coefficients, combined, ends, solved

T, S = sa.sizes("T S")
i, j = sympy.symbols("i j", integer=True)


@pytest.mark.parametrize("e", [3 * i - j + 2, (T + 1) * i, S - 1 - i, T * (i + j) + i, sympy.Integer(4)])
def test_an_affine_form_is_its_start_and_its_slopes(e):
    start, slopes = affine(e, [i, j])
    assert sympy.expand(start + sum(c * s for s, c in slopes.items()) - e) == 0
    assert not start.has(i, j)


@pytest.mark.parametrize("e", [i * j, i**2, sympy.Mod(i, 3), 1 / (i + 1), i + j * (j - 1)])
def test_what_is_not_affine_has_no_slopes(e):
    assert affine(e, [i, j]) is None


@pytest.mark.parametrize("e", [3 * i - j + 2, -i - j, 2 * i, i - 2 * j - 1])
def test_ends_are_taken(e):
    found = affine(e, [i, j])
    places = [e.xreplace({i: sympy.Integer(a), j: sympy.Integer(b)}) for a, b in itertools.product(range(3), range(5))]
    assert ends(*found, {i: sympy.Integer(3), j: sympy.Integer(5)}) == (min(places), max(places))


def test_ends_of_slopes_without_a_sign_or_of_unknown_sizes_are_not_known():
    assert ends(sympy.S.Zero, {i: T - S}, {i: T}) is None
    assert ends(sympy.S.Zero, {i: sympy.S.One}, {i: None}) is None
    assert ends(T, {i: S}, {i: T}) == (T, S * T - S + T)


def test_a_whole_number_is_solved_for_where_its_slope_is_one():
    assert solved(i - T + 1, i) == T - 1
    assert solved(S - i, i) == S
    assert solved(2 * i - T, i) is None
    assert solved(i * i - T, i) is None


def test_what_cancels_is_not_kept():
    assert combined({i: T, j: sympy.S.One}, -T, {i: sympy.S.One}) == {j: 1}
    assert coefficients(2 * (i + 3) - 2 * i) == {1: 6}
