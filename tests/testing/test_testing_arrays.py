"""The assertion on functions of arrays: what passes, what fails and with which words, and what is tried."""

from __future__ import annotations

import re

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.testing import assert_matches

from .test_testing import K, O, Q, S, T, V, X, Z, d, e, failure, h, k


def softmax(z):
    weights = np.exp(z - z.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def attention(q, key, v):
    return softmax(q @ key.T / np.sqrt(q.dtype.type(q.shape[-1]))) @ v


def backward(q, key, v, g):
    root = np.sqrt(q.dtype.type(q.shape[-1]))
    p = softmax(q @ key.T / root)
    dp = g @ v.T
    dz = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    return dz @ key / root, dz.T @ q / root, p.T @ g


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_right_function_and_its_backward_pass_in_every_dtype(dtype):
    seen = set()

    def watched(q, key, v):
        seen.add(str(q.dtype))
        return attention(q, key, v)

    assert assert_matches(watched, O, [Q, K, V], grad=backward, dtype=dtype) is None
    assert seen == {"float32" if dtype == "bfloat16" else dtype}


def test_the_numbers_of_bfloat16_have_eight_bits_and_dtypes_of_other_libraries_are_known():
    class Torch:
        def __repr__(self):
            return "torch.bfloat16"

    for dtype in (np.float32, np.dtype("float32")):
        assert_matches(lambda x: 2 * x, 2 * X, [X], dtype=dtype)
    seen = []
    assert_matches(lambda x: seen.append(x) or 2 * x, 2 * X, [X], dtype=Torch())
    assert all(not (x.view(np.uint32) & 0xFFFF).any() for x in seen)
    assert len({float(v) for x in seen for v in x.flat}) > 20


def test_a_wrong_output_fails_with_sizes_error_tolerance_and_entry():
    message = failure(
        assert_matches, lambda *x: -attention(*x), O, [Q, K, V], sizes=[{T: 2, S: 3, d: 4, e: 5}], dtype="float32"
    )
    assert re.fullmatch(
        r"no match with O\[T, e\] at S = 3, T = 2, d = 4, e = 5:\n"
        r"  O: largest error 2 of the largest entry, tolerance 1e-05; 10 of 10 entries differ; "
        r"first differing entry \[0, 0\] is (-?[\d.]+), but (-?[\d.]+) is right\n"
        r"  known mistake: O is the right one with the opposite sign",
        message,
    )


def test_a_wrong_gradient_names_its_argument_and_the_others_pass():
    def unscaled(q, key, v, g):
        dq, dk, dv = backward(q, key, v, g)
        return dq, dk * np.sqrt(q.shape[-1]), dv

    message = failure(assert_matches, attention, O, [Q, K, V], grad=unscaled)
    assert "gradient by K[S, d]: largest error" in message
    assert "gradient by Q" not in message
    assert "O: largest" not in message


def test_a_gradient_that_is_right_for_a_cotangent_of_ones_alone_fails():
    assert "gradient by X" in failure(
        assert_matches, lambda x: 3 * x, 3 * X, [X], grad=lambda x, g: 3 * np.ones_like(x)
    )


def test_a_function_that_is_right_at_square_sizes_alone_fails():
    square = failure(assert_matches, lambda x: x.T, X, [X])
    assert re.search(r"output X|X: shape \(\d+, \d+\), not", square)
    assert_matches(lambda x: x[:3], X, [X], sizes=[{"T": 3, "d": 2}])
    assert "T = 4" in failure(assert_matches, lambda x: x[:3], X, [X], sizes=[{"T": 3, "d": 2}, {"T": 4, "d": 2}])


def test_what_is_not_finite_fails():
    def careless(z):
        with np.errstate(all="ignore"):
            return np.exp(2000 * z) / np.exp(2000 * z).sum(axis=-1, keepdims=True)

    message = failure(assert_matches, careless, sa.softmax(2000 * Z), [Z])
    assert re.search(r"\d+ entries are not finite, tolerance", message)


def test_what_raises_says_at_which_sizes_and_keeps_the_cause():
    with pytest.raises(AssertionError, match=r"fn raised ZeroDivisionError at S = \d+, T = \d+: division") as caught:
        assert_matches(lambda z: 1 / 0, Z, [Z])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "grad raised" in failure(assert_matches, lambda z: z, sa.exp(sa.log(sa.exp(Z))), [Z], grad=backward)


def test_results_that_are_no_arrays_fail():
    assert "None was given" in failure(assert_matches, lambda z: None, Z, [Z])
    assert "a str is no array of real numbers" in failure(assert_matches, lambda z: "z", Z, [Z])
    assert "its entries are complex" in failure(assert_matches, lambda z: z + 0j, Z, [Z])
    assert "fn gave 2 results, not 1: Z" in failure(assert_matches, lambda z: (z, z), Z, [Z])
    assert "fn gave one ndarray, not 2" in failure(assert_matches, lambda z: z, [sa.exp(Z), Z], [Z])
    assert "grad gave 1 results, not 3" in failure(assert_matches, attention, O, [Q, K, V], grad=lambda *x: [x[0]])


def test_several_outputs_and_their_cotangents():
    def forward(z):
        top = z.max(axis=-1, keepdims=True)
        return softmax(z), np.log(np.exp(z - top).sum(axis=-1)) + top[:, 0]

    def both(z, dp, dl):
        p = softmax(z)
        return p * (dp - (p * dp).sum(axis=-1, keepdims=True)) + dl[:, None] * p

    L = sa.let("L", sa.logsumexp(Z))
    assert_matches(forward, [sa.softmax(Z), L], [Z], grad=both)
    wrong = failure(assert_matches, lambda z: (softmax(z), np.exp(z).sum(axis=-1)), [sa.softmax(Z), L], [Z])
    assert "\n  L: largest error" in wrong
    assert "output 0" not in wrong


def test_arguments_without_a_gradient():
    M, rows = sa.tensor("M", T, S, binary=True), sa.tensor("t", k, integer=True)

    def forward(z, keep, at):
        return (z * keep)[at]

    def back(z, keep, at, g):
        out = np.zeros_like(z)
        np.add.at(out, at, g)
        return out * keep, None, None

    assert_matches(forward, sa.take(Z * M, rows, axis=0), [Z, M, rows], grad=back)
    assert_matches(lambda z, w: z, Z, [Z, sa.tensor("w", T)], grad=lambda z, w, g: (g, None))
    message = failure(assert_matches, forward, sa.take(Z * M, rows, axis=0), [Z, M, rows], grad=lambda *x: (None,) * 3)
    assert "gradient by Z[T, S]: None was given, but it is not zero" in message


def test_points_where_the_expression_is_not_defined_are_passed_over():
    M = sa.tensor("M", T, S, binary=True)

    def masked(z, keep):
        assert keep.any(axis=-1).all()
        return softmax(np.where(keep, z, -np.inf))

    narrow = [{"T": 9, "S": 2}]  # so that most masks have an empty row
    assert_matches(masked, sa.softmax(Z, where=M, empty="error"), [Z, M], sizes=narrow)
    message = failure(assert_matches, masked, sa.softmax(Z, where=M), [Z, M], sizes=narrow)
    assert "fn raised AssertionError at S = 2, T = 9" in message
    assert_matches(np.log, sa.log(X), [X])


def test_a_gradient_that_is_zero_may_come_out_as_rounding():
    def back(z, g):
        p = softmax(z)
        return 1e-12 * p

    assert_matches(lambda z: softmax(z).sum(axis=-1), sa.sum(sa.softmax(Z), axis=-1), [Z], grad=back)


def test_scalars_and_sizes_among_the_arguments():
    tau = sympy.Symbol("tau", positive=True)
    assert_matches(lambda z, t: softmax(z / t), sa.softmax(Z / tau), [Z, tau])
    heads = sa.moveaxis(sa.split_axis(sa.tensor("Y", T, h * k), 1, (h, k)), 1, 0)

    def split(y, count):
        return y.reshape(len(y), count, -1).swapaxes(0, 1)

    assert_matches(split, heads, [sa.tensor("Y", T, h * k), h])


def test_a_function_that_changes_its_arguments_does_not_change_the_reference():
    def greedy(z):
        z *= 0
        return z

    assert "Z: largest error" in failure(
        assert_matches, greedy, sa.let("Z", sa.tensor("z", T, S)), [sa.tensor("z", T, S)]
    )


class Foreign:
    """What PyTorch does to an array: it must be taken off its graph and its device first."""

    def __init__(self, array, state="graph"):
        self.array, self.state = array, state

    def detach(self):
        return Foreign(self.array, "device")

    def cpu(self):
        assert self.state == "device"
        return Foreign(self.array, "host")

    def numpy(self):
        assert self.state == "host"
        return self.array


def test_arrays_of_another_library_go_in_and_come_out():
    def forward(q, key, v):
        return Foreign(attention(q.array, key.array, v.array))

    def back(*x):
        return [Foreign(y) for y in backward(*(a.array for a in x))]

    assert_matches(forward, O, [Q, K, V], grad=back, adapt=Foreign)
    assert_matches(forward, O, [Q, K, V], grad=back, adapt=lambda x: Foreign(x))


def test_adapt_may_take_all_arrays_at_once():
    def transposed(q, key_t, v):
        return attention(q, key_t.T, v)

    assert_matches(transposed, O, [Q, K, V], adapt=lambda q, key, v: (q, key.T, v))
    assert_matches(attention, O, [Q, K, V], adapt=lambda *x: [y.copy() for y in x])
    assert_matches(lambda *x: attention(*x), O, [Q, K, V], adapt=np.ascontiguousarray)


def test_a_tolerance_may_be_given():
    assert_matches(lambda z: z + 1e-4, Z, [Z], tolerance=1e-2)
    assert "tolerance 1e-06" in failure(assert_matches, lambda z: z + 1e-4, Z, [Z], tolerance=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int8"}, "knows the dtypes float16, bfloat16, float32, float64, not 'int8'"),
        ({"tolerance": -1}, "a tolerance is a number from 0 to 1"),
        ({"tolerance": float("nan")}, "a tolerance is a number from 0 to 1"),
        ({"sizes": []}, "at least one"),
        ({"sizes": {"T": 3, "S": 2}}, "sizes is a list"),
        ({"sizes": [{"T": 3}]}, "the sizes to choose are S, T, not T"),
        ({"sizes": [{"T": 3, "S": 2, "n": 2}]}, "the sizes to choose are S, T, not"),
        ({"sizes": [{"T": 0, "S": 2}]}, "the size T is a positive integer, not 0"),
    ],
)
def test_options_that_make_no_sense_are_an_error(options, message):
    with pytest.raises(sa.OperandError, match=message):
        assert_matches(lambda z: z, Z, [Z], **options)


def test_arguments_that_do_not_fit_the_expression_are_an_error():
    with pytest.raises(sa.OperandError, match=r"depend on K\[S, d\]"):
        assert_matches(attention, O, [Q, V])
    with pytest.raises(sa.OperandError, match="one output twice"):
        assert_matches(attention, [O, O], [Q, K, V])
    M = sa.tensor("M", T, binary=True)
    with pytest.raises(sa.OperandError, match="leave out grad"):
        assert_matches(lambda x: x, 2 * M, [M], grad=lambda x, g: None)
    with pytest.raises(sa.OperandError, match="a list of tensors"):
        assert_matches(attention, O, Q)
    with pytest.raises(sa.EvaluationError, match="no arrays were found"):
        assert_matches(lambda x: x, sa.log(-(X**2)), [X])


# --- what is tried ---


def naive(z):
    with np.errstate(all="ignore"):
        weights = np.exp(z)
        return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_large_scores_are_tried(dtype):
    assert re.search(
        r"entries near \d+:\n.*not finite", failure(assert_matches, naive, sa.softmax(Z), [Z], dtype=dtype)
    )
    scores = Q @ K.T / sympy.sqrt(d)

    def unprotected(q, key):
        return naive(q @ key.T / np.sqrt(q.dtype.type(q.shape[-1])))

    assert "entries near" in failure(assert_matches, unprotected, sa.softmax(scores), [Q, K], dtype=dtype)
    assert_matches(lambda x: 3 * x, 3 * X, [X], dtype=dtype)


def test_what_is_not_finite_at_large_entries_is_tried_at_smaller_ones():
    assert_matches(np.exp, sa.exp(X), [X], dtype="float32")
    assert_matches(lambda x: x**8, X**8, [X], dtype="float16")


def quotient_backward(q, key, v, g):
    """The gradients through the exponential and the quotient, one after the other."""
    root = np.sqrt(q.dtype.type(q.shape[-1]))
    scores = q @ key.T / root
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    total = weights.sum(axis=-1, keepdims=True)
    dp = g @ v.T
    dz = weights * (dp / total - (dp * weights / total**2).sum(axis=-1, keepdims=True))
    return dz @ key / root, dz.T @ q / root, (weights / total).T @ g


def naive_norm_backward(x, g):
    """The gradient of x / |x| as the product rule has it, in which two large terms cancel."""
    length = np.sqrt((x * x).sum(axis=-1, keepdims=True))
    return g / length - x * ((g * x).sum(axis=-1, keepdims=True) / length**3)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.slow
def test_rounding_that_large_entries_enlarge_is_no_error(dtype):
    """Where a softmax is saturated its gradient cancels to 0, up to the rounding of what cancels."""
    assert_matches(attention, O, [Q, K, V], grad=quotient_backward, dtype=dtype)
    unit = X / sa.sqrt(sa.sum(X * X, axis=-1, keepdims=True))
    assert_matches(
        lambda x: x / np.sqrt((x * x).sum(axis=-1, keepdims=True)), unit, [X], grad=naive_norm_backward, dtype=dtype
    )
    shifted = sa.softmax(Z) - sa.softmax(Z + 1)
    assert_matches(lambda z: softmax(z) - softmax(z + 1), shifted, [Z], dtype=dtype)


def test_what_is_not_finite_or_far_off_at_large_entries_still_fails():
    def clipped(q, key, v, g):
        return [np.where(np.abs(q).max() > 50, np.nan, x) for x in backward(q, key, v, g)]

    assert "entries near 128" in failure(assert_matches, attention, O, [Q, K, V], grad=clipped, dtype="float32")
    halved = failure(assert_matches, lambda x: np.where(np.abs(x) > 50, x / 2, x), X, [X], dtype="float32")
    assert "entries near 128" in halved


def test_empty_rows_of_masks_are_tried():
    M = sa.tensor("M", T, S, binary=True)

    def masked(z, keep):
        with np.errstate(all="ignore"):
            scores = np.where(keep, z, -np.inf)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            return weights / weights.sum(axis=-1, keepdims=True)

    wide = [{"T": 2, "S": 40}]  # so that a random row is not empty
    message = failure(assert_matches, masked, sa.softmax(Z, where=M), [Z, M], sizes=wide)
    assert re.search(r"at S = 40, T = 2, empty rows:\n.*40 entries are not finite", message)
    assert_matches(lambda z, m: np.nan_to_num(masked(z, m)), sa.softmax(Z, where=M), [Z, M], sizes=wide)
    assert_matches(masked, sa.softmax(Z, where=M, empty="error"), [Z, M], sizes=wide)


def test_every_size_is_tried_as_one():
    assert re.search(
        r"at S = \d+, T = 1:", failure(assert_matches, lambda z: z.squeeze(0) if len(z) == 1 else z, Z, [Z])
    )
    assert "S = 1, T" in failure(assert_matches, lambda z: z if z.shape[1] > 1 else 2 * z, Z, [Z])
    heads = sa.split_axis(sa.tensor("Y", T, h * k), 1, (h, k))
    cut = failure(assert_matches, lambda y, n: y.reshape(len(y), n, -1) * (n > 1), heads, [sa.tensor("Y", T, h * k), h])
    assert "h = 1" in cut


def test_the_dtype_of_what_comes_back_is_that_of_the_arguments():
    message = failure(assert_matches, lambda z: np.float64(2) * z, 2 * Z, [Z], dtype="float32")
    assert "Z: dtype float64, but the arguments have float32" in message or "output 0: dtype float64" in message
    assert "dtype float32" in failure(assert_matches, lambda z: z.astype("float32"), Z, [Z], tolerance=1e-5)
    wide = failure(
        assert_matches, lambda z: 2 * z, 2 * Z, [Z], grad=lambda z, g: 2.0 * g.astype(float), dtype="float16"
    )
    assert "gradient by Z[T, S]: dtype float64, but the arguments have float16" in wide
    assert_matches(lambda z: float(z.sum()), sa.sum(Z), [Z], dtype="float32", tolerance=1e-4)
    assert_matches(lambda z: z > 0, Z > 0, [Z], dtype="float32")


def test_values_may_be_given():
    seen = []

    def watched(z, v):
        seen.append((z, v))
        return softmax(z) @ v

    product = sa.softmax(Z) @ sa.tensor("V", S, e)
    at = np.array([[1000.0, 0, 0], [1, 2, 3]])
    assert_matches(watched, product, [Z, sa.tensor("V", S, e)], values={Z: at})
    assert seen
    assert all((z == at).all() and v.shape[0] == 3 for z, v in seen)
    assert_matches(watched, product, [Z, sa.tensor("V", S, e)], values=[{"Z": at}, {"Z": at[:1], "V": np.ones((3, 2))}])
    message = failure(assert_matches, naive, sa.softmax(Z), [Z], values={Z: at})
    assert "at S = 3, T = 2, with the values given:" in message
    Y, tau = sa.tensor("Y", T, 2 * k), sympy.Symbol("tau", positive=True)
    assert_matches(lambda y, t: y * t, Y * tau, [Y, tau], values={Y: np.ones((3, 4)), tau: 2.0})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"W": np.ones(3)}, r"values names 'W', which is none of Z\[T, S\]"),
        ({"Z": np.ones(3)}, r"the array of Z\[T, S\] has shape \(3,\)"),
        ([], "at least one"),
    ],
)
def test_values_that_do_not_fit_are_an_error(values, message):
    with pytest.raises(sa.OperandError, match=message):
        assert_matches(lambda z: z, Z, [Z], values=values)


def test_values_and_sizes_exclude_each_other_and_shapes_contradict():
    with pytest.raises(sa.OperandError, match="not both: given arrays have their sizes"):
        assert_matches(lambda z: z, Z, [Z], values={Z: np.ones((2, 3))}, sizes=[{"T": 2, "S": 3}])
    with pytest.raises(sa.OperandError, match="no sizes were found for the arrays"):
        assert_matches(attention, O, [Q, K, V], values={Q: np.ones((2, 3)), K: np.ones((2, 4))})


def test_arguments_may_be_held_constant():
    def back(q, key, g):
        return g @ key, None

    assert "gradient by K[S, d]: None" in failure(assert_matches, lambda q, k: q @ k.T, Q @ K.T, [Q, K], grad=back)
    assert_matches(lambda q, k: q @ k.T, Q @ K.T, [Q, K], grad=back, constant=[K])
    assert_matches(lambda q, k: q @ k.T, Q @ K.T, [Q, K], grad=back, constant=["K"])
    with pytest.raises(sa.OperandError, match=r"constant lists some of Q\[T, d\], K\[S, d\], not V\[S, e\]"):
        assert_matches(lambda q, k: q @ k.T, Q @ K.T, [Q, K], constant=[V])


def test_sizes_are_drawn_under_relations():
    seen = []
    assert_matches(lambda z: seen.append(z.shape) or z, Z, [Z], given=[sympy.Le(2 * T, S)])
    assert all(2 * rows <= columns for rows, columns in seen)
    assert len(set(seen)) > 2
    with pytest.raises(
        sa.OperandError, match=r"given takes relations of sizes, such as sympy.Le\(T, S\), not Z\[T, S\]"
    ):
        assert_matches(lambda z: z, Z, [Z], given=[Z])


def test_what_has_no_derivative_is_matched_without_one():
    f = sa.unknown("phi", Z)
    with pytest.raises(sa.SymattnError):
        sa.lambdify([Z], f)
    assert_matches(np.floor, sa.floor(Z), [Z])
