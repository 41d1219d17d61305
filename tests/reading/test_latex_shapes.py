"""Which product is meant, and which way a vector lies, follows from shapes."""

from __future__ import annotations

import pytest
import sympy

from symattn.core.sizes import sizes
from symattn.reading.latex.shapes import SCALAR, ClashError, Form, Shapes, Slot, Unknown, form_of

n, m, d, h = sizes("n m d h")
ONE = sympy.Integer(1)
COLUMN, ROW = Form(rows=n), Form(cols=n)


@pytest.mark.parametrize(
    ("left", "right", "product"),
    [
        (Form(rows=n, cols=d), Form(rows=d, cols=m), Form(rows=n, cols=m)),
        (Form(rows=m, cols=n), COLUMN, Form(rows=m)),
        (ROW, Form(rows=n, cols=m), Form(cols=m)),
        (ROW, COLUMN, SCALAR),
        (COLUMN, Form(cols=m), Form(rows=n, cols=m)),
        (SCALAR, Form(rows=n, cols=d), Form(rows=n, cols=d)),
        (ROW, SCALAR, ROW),
        (Form(rows=n, cols=ONE), Form(cols=m), Form(rows=n, cols=m)),
        (COLUMN, Form(rows=ONE, cols=m), Form(rows=n, cols=m)),
        (Form(lead=(h,), rows=n, cols=d), Form(rows=d, cols=m), Form(lead=(h,), rows=n, cols=m)),
        (Form(labels=(("i", n),), cols=d), Form(labels=(("j", m),), rows=d), Form(labels=(("i", n), ("j", m)))),
    ],
)
def test_a_product_contracts_what_meets(left: Form, right: Form, product: Form) -> None:
    assert Shapes().product(Slot(left), Slot(right), None).form == product


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (COLUMN, COLUMN),
        (ROW, ROW),
        (COLUMN, Form(rows=n, cols=n)),
        (Form(rows=n, cols=d), Form(rows=n, cols=d)),
        (Form(rows=n, cols=d), Form(cols=d)),
        (Form(labels=(("i", n),)), Form(labels=(("i", m),))),
        (Form(lead=(h,), rows=n, cols=n), Form(lead=(n,), rows=n, cols=n)),
    ],
)
def test_what_does_not_meet_is_no_product(left: Form, right: Form) -> None:
    with pytest.raises(ClashError):
        Shapes().product(Slot(left), Slot(right), None)


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        (Form(rows=n, cols=d), Form(rows=n, cols=d), Form(rows=n, cols=d)),
        (Form(rows=n, cols=d), Form(rows=n, cols=ONE), Form(rows=n, cols=d)),
        (COLUMN, Form(rows=n, cols=ONE), Form(rows=n, cols=ONE)),
        (SCALAR, SCALAR, SCALAR),
        (SCALAR, COLUMN, COLUMN),
        (SCALAR, Form(rows=n, cols=d), Form(rows=n, cols=d)),
        (Form(rows=n, of_rows=True), Form(rows=n, cols=d), Form(rows=n, cols=d)),
        (Form(labels=(("i", n),)), Form(labels=(("j", m),)), Form(labels=(("i", n), ("j", m)))),
        (Form(lead=(h,), rows=n, cols=d), Form(rows=n, cols=d), Form(lead=(h,), rows=n, cols=d)),
    ],
)
def test_sums_are_of_one_form_or_repeat_an_axis_of_size_1(left: Form, right: Form, total: Form) -> None:
    assert Shapes().entrywise(Slot(left), Slot(right), None, "the sum", scalars=False).form == total


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (COLUMN, ROW),
        (COLUMN, Form(rows=n, cols=d)),
        (Form(rows=n, cols=d), Form(rows=d, cols=n)),
        (SCALAR, Form(rows=n, cols=n)),
    ],
)
def test_other_sums_are_refused(left: Form, right: Form) -> None:
    with pytest.raises(ClashError):
        Shapes().entrywise(Slot(left), Slot(right), None, "the sum", scalars=False)


def test_a_scalar_meets_any_form_where_it_scales() -> None:
    assert Shapes().entrywise(Slot(SCALAR), Slot(COLUMN), None, "the product").form == COLUMN


def test_a_size_that_is_not_known_follows_from_its_neighbours() -> None:
    shapes = Shapes()
    ones = Unknown()
    assert shapes.product(Slot(Form(rows=n, cols=d)), Slot(Form(rows=ones)), None).form == COLUMN
    assert shapes.size(ones) == d


def test_a_size_follows_from_a_sum_further_out() -> None:
    shapes = Shapes()
    ones = Slot(Form(cols=Unknown()))
    outer = shapes.product(Slot(COLUMN), ones, None)
    shapes.entrywise(outer, Slot(Form(rows=n, cols=m)), None, "the sum", scalars=False)
    assert ones.form is not None
    assert shapes.resolved(ones.form) == Form(cols=m)


def test_the_form_of_a_summand_follows_from_the_other_and_of_a_factor_from_the_result() -> None:
    shapes = Shapes()
    mask = Slot()
    shapes.entrywise(mask, Slot(Form(rows=n, cols=m)), None, "the sum", scalars=False)
    assert mask.form == Form(rows=n, cols=m)
    values = Slot()
    product = shapes.product(mask, values, None)
    shapes.same(product, Slot(Form(rows=n, cols=d)), None, "both sides")
    shapes.solve()
    assert values.form == Form(rows=m, cols=d)


def test_a_transpose_turns_both_ways() -> None:
    shapes, inside = Shapes(), Slot()
    out = shapes.transposed(inside)
    shapes.same(out, Slot(Form(rows=n, cols=d)), None, "both sides")
    shapes.solve()
    assert inside.form == Form(rows=d, cols=n)
    assert shapes.transposed(Slot(COLUMN)).form == ROW


def test_what_stays_open_stays_open() -> None:
    shapes, left, right = Shapes(), Slot(), Slot()
    product = shapes.product(left, right, None)
    shapes.solve()
    assert (left.form, right.form, product.form) == (None, None, None)


def test_the_form_of_a_shape() -> None:
    assert form_of(()) == SCALAR
    assert form_of((n,)) == COLUMN
    assert form_of((n,), row=True) == ROW
    assert form_of((h, n, d)) == Form(lead=(h,), rows=n, cols=d)
