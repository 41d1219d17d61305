"""Mistakes as people make them, written by hand in NumPy, and which of them is found."""

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.checking.arrays import TOLERANCES
from symattn.errors import EvaluationError, OperandError
from symattn.testing import assert_matches

T, S, d, e, h, g, n = sa.sizes("T S d e h g n")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
A = sa.attention
SIZES = {T: 5, S: 7, d: 4, e: 3, h: 2, g: 3, n: 6}


def rows(z):
    weights = np.exp(z - z.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def arrays_of(*tensors, seed=0, sizes=SIZES):
    rng = np.random.default_rng(seed)
    return {x.name: rng.normal(size=[int(size.subs(sizes)) for size in x.shape]) for x in tensors}


def backward(q, k, v, do, keep=True, scale=None, softmax=rows):
    """dQ, dK, dV as they are written by hand, and dP, dZ and P on the way."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    p = softmax(np.where(keep, q @ k.mT * scale, -1e30))
    dp = do @ v.mT
    dz = p * (dp - (p * dp).sum(-1, keepdims=True))
    return {"dQ": dz @ k * scale, "dK": dz.mT @ q * scale, "dV": p.mT @ do}, dp, dz, p


PLAIN = sa.gradient(A.scaled_dot_product(Q, K, V), [Q, K, V])
AT = arrays_of(Q, K, V, PLAIN.cotangent)
RIGHT, DP, DZ, P = backward(*AT.values())
SCALE = 4**-0.5


def test_arrays_that_are_right_agree():
    diagnosis = sa.diagnose(RIGHT, PLAIN, AT)
    assert (diagnosis.right, diagnosis.wrong, diagnosis.mistakes) == (("dV", "dQ", "dK"), {}, ())
    assert str(diagnosis) == "dV, dQ and dK agree"


def from_dz(dz, **others):
    return {"dQ": dz @ AT["K"] * SCALE, "dK": dz.T @ AT["Q"] * SCALE, "dV": RIGHT["dV"], **others}


UNSCALED = rows(AT["Q"] @ AT["K"].T)
PLANTED = {
    "dK is the right one without the factor 1/sqrt(d)": {**RIGHT, "dK": DZ.T @ AT["Q"]},
    "dQ is the right one with the factor 1/sqrt(d) twice": {**RIGHT, "dQ": RIGHT["dQ"] * SCALE},
    "dQ and dK are the right ones without the factor 1/sqrt(d)": {**RIGHT, "dQ": DZ @ AT["K"], "dK": DZ.T @ AT["Q"]},
    "dQ is the right one with the factor 1/sqrt(e) in place of 1/sqrt(d)": {**RIGHT, "dQ": DZ @ AT["K"] / 3**0.5},
    "Z, dQ and dK are the right ones without the factor 1/sqrt(d); dV follows": backward(*AT.values(), scale=1.0)[0],
    "dZ is the right one without the term rowsum(P * dP); dQ and dK follow": from_dz(P * DP),
    "dZ is the right one without the factor P; dQ and dK follow": from_dz(DP - (P * DP).sum(-1, keepdims=True)),
    "dZ is the right one with the diagonal of the softmax Jacobian alone; dQ and dK follow": from_dz(P * (1 - P) * DP),
    "dZ is the right one with the opposite sign; dQ and dK follow": from_dz(-DZ),
    "dZ is the right one with the mean in place of rowsum(P * dP); dQ and dK follow": from_dz(
        P * (DP - (P * DP).mean(-1, keepdims=True))
    ),
    "dV is the right one with Z in place of P": {**RIGHT, "dV": (AT["Q"] @ AT["K"].T * SCALE).T @ AT["dO"]},
    "P is the right one with the softmax of Z over each column, not each row; dV, dQ and dK follow": backward(
        *AT.values(), softmax=lambda z: rows(z.T).T
    )[0],
    "dV is the right one left out, as zeros": {**RIGHT, "dV": 0 * RIGHT["dV"]},
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("told", "found"), PLANTED.items(), ids=PLANTED)
def test_a_mistake_that_was_planted_is_named_first(told, found, dtype):
    diagnosis = sa.diagnose({name: x.astype(dtype) for name, x in found.items()}, PLAIN, AT)
    assert str(diagnosis).splitlines()[0] == told
    assert diagnosis.unexplained == ()


@pytest.mark.parametrize("name", ["dQ", "dK"])
def test_one_array_alone_is_explained(name):
    assert str(sa.diagnose({name: from_dz(P * DP)[name]}, PLAIN, AT)).startswith("dZ is the right one without the term")


def test_two_mistakes_are_told_each_by_itself():
    found = {**RIGHT, "dQ": -RIGHT["dQ"], "dK": DZ.T @ AT["Q"]}
    assert str(sa.diagnose(found, PLAIN, AT)).splitlines() == [
        "dQ is the right one with the opposite sign",
        "dK is the right one without the factor 1/sqrt(d)",
        "dV agrees",
    ]


def test_what_no_known_mistake_explains_is_said_with_its_size():
    noise = np.random.default_rng(3).normal(size=RIGHT["dK"].shape)
    diagnosis = sa.diagnose({**RIGHT, "dK": RIGHT["dK"] + noise}, PLAIN, AT)
    assert diagnosis.unexplained == ("dK",)
    assert str(diagnosis).startswith("dK is off by ")
    assert "known mistakes explains it" in str(diagnosis)


def test_where_sizes_agree_swapped_factors_and_rows_for_columns_are_found():
    square = {**SIZES, S: 5, d: 5, e: 5}
    at = arrays_of(Q, K, V, PLAIN.cotangent, sizes=square)
    right, dp, dz, p = backward(*at.values())
    swapped = sa.diagnose({**right, "dK": at["Q"] @ dz.T * 5**-0.5}, PLAIN, at)
    assert str(swapped).splitlines()[0] == "dK is the right one with the factors of dZ.T @ Q swapped"
    spread = p * (dp - (p * dp).sum(-1))
    of_spread = {"dQ": spread @ at["K"] * 5**-0.5, "dK": spread.T @ at["Q"] * 5**-0.5}
    assert "spread as a row, not as a column (no keepdims)" in str(sa.diagnose(of_spread, PLAIN, at))
    turned = sa.diagnose({"dQ": dz.T @ at["K"] * 5**-0.5, "dK": dz @ at["Q"] * 5**-0.5}, PLAIN, at)
    assert str(turned) == "dZ is the right one transposed; dQ and dK follow"


def test_an_intermediate_that_is_given_shows_where_the_mistake_is():
    found = {"dP": DP, "dZ": P * DP, "dK": (P * DP).T @ AT["Q"] * SCALE}
    assert str(sa.diagnose(found, PLAIN, AT)).splitlines() == [
        "dZ is the right one without the term rowsum(P * dP); dK follows",
        "dP agrees",
    ]


# --- other variants: windows, caps, groups, positions, norms, losses ---


def keeps(left, right=0):
    i, j = np.arange(SIZES[T])[:, None], np.arange(SIZES[S])
    return (j <= i + right) & (j >= i - left)


WINDOW = sa.gradient(A.scaled_dot_product(Q, K, V, mask=A.sliding_window_mask(T, S, left=2, right=0)), [Q, K, V])


@pytest.mark.parametrize(("keep", "told"), [
    (keeps(3), "with the mask j >= i - 3 in place of j >= i - 2"),
    (keeps(1), "with the mask j >= i - 1 in place of j >= i - 2"),
    (keeps(2, 1), "with the mask j <= i + 1 in place of j <= i"),
    (keeps(9), "without the mask j >= i - 2"),
    (True, "without the mask"),
], ids=["left + 1", "left - 1", "one of the future", "causal alone", "none"])  # fmt: skip
def test_a_window_that_is_one_off_is_named(keep, told):
    found = backward(*AT.values(), keep=keep)[0]
    assert f"P is the right one {told}; dV, dQ and dK follow" in str(sa.diagnose(found, WINDOW, AT))


def test_the_slope_of_a_cap_that_is_left_out_is_named():
    c = sympy.Symbol("c", positive=True)
    capped = sa.gradient(A.scaled_dot_product(Q, K, V, softcap=c), [Q, K, V])
    z = AT["Q"] @ AT["K"].T * SCALE
    p = rows(2 * np.tanh(z / 2))
    dz = p * (DP - (p * DP).sum(-1, keepdims=True))
    found = {"dQ": dz @ AT["K"] * SCALE, "dK": dz.T @ AT["Q"] * SCALE}
    told = "dZ is the right one without the factor 1 - tanh(Z / c)**2; dQ and dK follow"
    assert str(sa.diagnose(found, capped, {**AT, "c": 2.0})) == told


def test_groups_that_are_tiled_averaged_or_read_by_one_head_are_named():
    q, k, v = sa.tensor("Q", h * g, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)
    grouped = sa.gradient(A.grouped_query(q, k, v), [q, k, v])
    at = arrays_of(q, k, v, grouped.cotangent)
    wide = {**at, "K": at["K"].repeat(3, axis=0), "V": at["V"].repeat(3, axis=0)}
    each = backward(*wide.values())[0]
    split = {name: each[name].reshape(2, 3, *each[name].shape[1:]) for name in ("dK", "dV")}
    mean = sa.diagnose({"dK": split["dK"].mean(1)}, grouped, at)
    assert str(mean).startswith("dK is the right one with the mean in place of")
    one = sa.diagnose({"dK": split["dK"][:, 0], "dV": split["dV"].sum(1)}, grouped, at)
    assert str(one).startswith("dK is the right one with the first of")
    of_tile = backward(at["Q"], np.tile(at["K"], (3, 1, 1)), np.tile(at["V"], (3, 1, 1)), at["dO"])[0]
    tiled = sa.diagnose({"dQ": of_tile["dQ"]}, grouped, at)
    assert str(tiled) == "K_r and V_r are the right ones tiled, not repeated; dQ follows"


def test_an_output_that_is_wrong_is_explained_by_its_own_formula():
    O = A.scaled_dot_product(Q, K, V)
    at = arrays_of(Q, K, V)
    told = "Z is the right one without the factor 1/sqrt(d); output follows"
    assert str(sa.diagnose({"O": UNSCALED @ AT["V"]}, O, at)) == told.replace("output", "O")
    assert str(sa.diagnose({"output": UNSCALED @ AT["V"]}, sa.softmax(Q @ K.T / sympy.sqrt(d)) @ V, at)) == (
        "output is the right one without the factor 1/sqrt(d)"
    )


def test_a_failed_match_names_the_mistake():
    def unscaled_key(q, key, v, do):
        found = backward(q, key, v, do)[0]
        return found["dQ"], found["dK"] * q.shape[-1] ** 0.5, found["dV"]

    def attention(q, key, v):
        return rows(q @ key.T / q.shape[-1] ** 0.5) @ v

    with pytest.raises(AssertionError, match=r"known mistake: dK is the right one without the factor 1/sqrt\(d\)"):
        assert_matches(attention, A.scaled_dot_product(Q, K, V), [Q, K, V], grad=unscaled_key)


@pytest.mark.parametrize(("found", "of", "at", "told"), [
    ({}, PLAIN, AT, r"found is {name or tensor: array}"),
    ({"dK": RIGHT["dK"]}, PLAIN, {}, r"arrays is {name or tensor: array}"),
    ({"dJ": RIGHT["dK"]}, PLAIN, AT, "dJ is none of .*dK"),
    ({"dK": RIGHT["dK"]}, PLAIN, {"Q": AT["Q"]}, r"K\[S, d\] is missing"),
    ({"dK": RIGHT["dK"], K: RIGHT["dK"]}, PLAIN, AT, "gives one array twice"),
    ({"dK": "abc"}, PLAIN, AT, "dK is no array of real numbers"),
    ({"dK": 1j * RIGHT["dK"]}, PLAIN, AT, "its entries are complex"),
    ({"dK": RIGHT["dK"]}, PLAIN, {**AT, "Q": 1j * AT["Q"]}, "Q is no array|complex"),
])  # fmt: skip
def test_what_does_not_fit_is_said(found, of, at, told):
    with pytest.raises(OperandError, match=told):
        sa.diagnose(found, of, at)


def test_arguments_of_shapes_that_do_not_fit_are_said():
    with pytest.raises(EvaluationError, match="K"):
        sa.diagnose({"dK": RIGHT["dK"]}, PLAIN, {**AT, "K": AT["K"][:, :2]})


def test_an_array_of_another_shape_is_wrong_and_is_explained_where_it_is_the_transpose():
    assert str(sa.diagnose({"dK": RIGHT["dK"].T}, PLAIN, AT)) == "dK is the right one transposed"
    assert "of another shape" in str(sa.diagnose({"dK": RIGHT["dK"][:2]}, PLAIN, AT))


@pytest.mark.parametrize("tolerance", [-1, 2.0, True, "a", float("nan")])
def test_what_is_no_tolerance_is_said(tolerance):
    with pytest.raises(OperandError, match="a tolerance is a number from 0 to 1"):
        sa.diagnose({"dK": RIGHT["dK"]}, PLAIN, AT, tolerance=tolerance)


def test_tolerances_are_those_of_the_dtype_unless_one_is_given():
    off = {"dK": RIGHT["dK"] * (1 + 1e-7)}
    assert sa.diagnose(off, PLAIN, AT).wrong.keys() == {"dK"}
    assert not sa.diagnose(off, PLAIN, AT, tolerance=TOLERANCES["float32"]).wrong
