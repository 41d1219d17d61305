"""Second forms of positions and of biases by distance, proved; buckets and slopes against the published algorithms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn import attention

T, S, d, e, h, m, u, c, M = sa.sizes("T S d e h m u c M")
s, t = sa.sizes("s"), sympy.Symbol("t", real=True)
Q, K, V = sa.tensor("Q", T, 2 * m), sa.tensor("K", S, 2 * m), sa.tensor("V", S, e)
p, g = sa.tensor("p", T, integer=True), sa.tensor("g", S, integer=True)
OMEGA = sa.from_index((m,), lambda a: sympy.Integer(10000) ** (-a / m))
LAYOUTS = ["half", "interleaved"]


def proved(a, b):
    verdict = sa.prove(a, b)
    assert verdict.status == "proved", str(verdict)


def refuted(a, b):
    assert sa.prove(a, b).status == "refuted"


def numbers(x, *given, **sizes):
    return np.asarray(sa.lambdify(list(x.tensors), x)(*given, **sizes))


# --- rotations ---


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("offset", [s, t])
def test_rotary_scores_depend_on_the_difference_of_places(layout, offset):
    def scores(x, y, o=0):
        return attention.rotary(x, layout=layout, offset=o) @ attention.rotary(y, layout=layout, offset=o).mT

    proved(scores(Q, K, offset), scores(Q, K))
    heads = sa.tensor("Q", h, T, 2 * m), sa.tensor("K", h, S, 2 * m)
    proved(scores(*heads, offset), scores(*heads))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_both_may_be_shifted(layout):
    shifted = attention.rotary(Q, layout=layout, offset=s) @ attention.rotary(K, layout=layout).T
    refuted(shifted, attention.rotary(Q, layout=layout) @ attention.rotary(K, layout=layout).T)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotary_attention_is_the_same_from_any_first_place(layout):
    def output(o):
        q, k = (attention.rotary(x, layout=layout, offset=o) for x in (Q, K))
        return attention.scaled_dot_product(q, k, V)

    proved(output(s), output(0))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotary_scores_at_any_places_and_of_any_frequencies(layout):
    omega = sa.tensor("omega", m)

    def scores(o, **given):
        q = attention.rotary(Q, layout=layout, positions=p, offset=o, **given)
        return q @ attention.rotary(K, layout=layout, positions=g, offset=o, **given).T

    proved(scores(s), scores(0))
    proved(scores(s, frequencies=omega), scores(0, frequencies=omega))
    proved(scores(sa.tensor("o")), scores(0))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotation_keeps_norms_and_two_rotations_add_up(layout):
    turned = attention.rotary(Q, layout=layout)
    proved(sa.sum(turned**2, -1), sa.sum(Q**2, -1))
    twice = sa.from_index((T,), lambda i: 2 * i)
    proved(attention.rotary(turned, layout=layout, offset=s), attention.rotary(Q, layout=layout, positions=twice + s))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_defaults_of_rotary_can_be_given(layout):
    default = attention.rotary(Q, layout=layout)
    proved(attention.rotary(Q, layout=layout, positions=sa.from_index((T,), lambda i: i)), default)
    proved(attention.rotary(Q, layout=layout, frequencies=OMEGA), default)
    proved(attention.rotary(Q, layout=layout, scale=3), 3 * default)
    assert attention.rotary(Q, layout=layout, width=2 * m) is default


@pytest.mark.parametrize("layout", LAYOUTS)
def test_partial_rotary_is_relative_and_adds_the_scores_of_the_rest(layout):
    q, k = sa.tensor("Q", T, 2 * m + u), sa.tensor("K", S, 2 * m + u)

    def turned(x, **given):
        return attention.rotary(x, layout=layout, **given)

    scores = turned(q, width=2 * m) @ turned(k, width=2 * m).T
    proved(turned(q, width=2 * m, offset=s) @ turned(k, width=2 * m, offset=s).T, scores)
    rest = q[:, 2 * m :] @ k[:, 2 * m :].T
    proved(scores, turned(q[:, : 2 * m]) @ turned(k[:, : 2 * m]).T + rest)


def test_layouts_differ_by_the_order_of_features():
    ordered = attention.rotary(sa.concat([Q[:, 0::2], Q[:, 1::2]], axis=-1))
    interleaved = attention.rotary(Q, layout="interleaved")
    proved(interleaved[:, 0::2], ordered[:, :m])
    proved(interleaved[:, 1::2], ordered[:, m:])
    columns = sa.concat([ordered[:, :m, None], ordered[:, m:, None]], axis=-1)
    proved(sa.merge_axes(columns, (1, 2)), interleaved)
    refuted(attention.rotary(Q), interleaved)


def test_rotary_is_cosines_of_the_features_and_sines_of_their_signed_permutation():
    def table(f):
        return sa.from_index((T, 2 * m), lambda i, a: f(i * sympy.Integer(10000) ** (-sympy.Mod(a, m) / m)))

    delta = sympy.KroneckerDelta
    Pi = sa.from_index((2 * m, 2 * m), lambda a, b: delta(a + m, b) - delta(a, b + m))
    proved(attention.rotary(Q), Q * table(sympy.cos) + (Q @ Pi) * table(sympy.sin))


def test_a_symbolic_width_is_proved_as_twice_a_size_and_is_even_where_it_runs():
    q, k = sa.tensor("Q", T, d), sa.tensor("K", S, d)
    shifted = attention.rotary(q, offset=s) @ attention.rotary(k, offset=s).T
    plain = attention.rotary(q) @ attention.rotary(k).T
    proved(*(x.subs({d: 2 * m}) for x in (shifted, plain)))
    with pytest.raises(sa.EvaluationError, match="d/2"):
        numbers(attention.rotary(q), np.ones((4, 3)))


def test_yarn_frequencies_between_the_rounded_ends_of_the_authors_code():
    """The algorithm of the authors' code in NumPy, and the ends of the ramp of the paper by hand."""
    width, length, factor = 64, 2048, 4
    place = [width * math.log(length / (n * 2 * math.pi)) / (2 * math.log(1e4)) for n in (32, 1)]
    low, high = max(math.floor(place[0]), 0), min(math.ceil(place[1]), width - 1)
    theta = 1e4 ** (-np.arange(0, width, 2) / width)
    kept = 1 - np.clip((np.arange(width // 2) - low) / (high - low), 0, 1)
    given = {"factor": factor, "length": length}
    found = numbers(attention.yarn_frequencies(width, ramp="index", **given))
    np.testing.assert_allclose(found, theta / factor * (1 - kept) + theta * kept, rtol=1e-14)

    paper = numbers(attention.yarn_frequencies(width, **given))
    turns = length * theta / (2 * math.pi)
    np.testing.assert_array_equal(paper[turns > 32], theta[turns > 32])
    np.testing.assert_allclose(paper[turns < 1], theta[turns < 1] / factor, rtol=1e-14)
    inside = (turns > 1) & (turns < 32)
    assert (paper[inside] < theta[inside]).all()
    assert (paper[inside] > theta[inside] / factor).all()
    assert attention.yarn_scale(1) == 1
    assert float(attention.yarn_scale(40)) == pytest.approx(1.3688879454)


# --- sinusoids and tables ---


def test_inner_products_of_sinusoids_depend_on_the_difference_of_places():
    def products(**given):
        return attention.sinusoidal(T, 2 * m, **given) @ attention.sinusoidal(S, 2 * m, **given).T

    proved(products(offset=s), products())
    proved(products(), sa.einsum("ijc->ij", waves()))


def waves():
    return sa.from_index((T, S, m), lambda i, j, a: sympy.cos((i - j) * sympy.Integer(10000) ** (-a / m)))


def test_layouts_of_sinusoids_and_their_shift():
    interleaved, half = (attention.sinusoidal(T, 2 * m, layout=layout) for layout in ("interleaved", "half"))
    proved(sa.concat([interleaved[:, 0::2], interleaved[:, 1::2]], axis=-1), half)
    refuted(half, interleaved)
    later = attention.sinusoidal(T, 2 * m, layout="half", offset=s)
    proved(later, attention.rotate(half, sa.cos(s * OMEGA), -sa.sin(s * OMEGA)))


def test_embedding_is_a_product_with_one_hot_rows():
    tokens, W_e, W_p = sa.tensor("t", "B T", integer=True), sa.tensor("W_e", 7, d), sa.tensor("W_p", M, d)
    x = attention.embed(tokens, W_e, W_p)
    assert x.shape == (sa.sizes("B"), T, d)
    rng = np.random.default_rng(0)
    at, table, places = rng.integers(0, 7, (2, 4)), rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    found = sa.lambdify([tokens, W_e, W_p], x)(at, table, places)
    np.testing.assert_allclose(found, np.eye(7)[at] @ table + np.eye(5)[:4] @ places, rtol=1e-15)
    with pytest.raises(sa.EvaluationError, match="T - 1"):
        sa.lambdify([tokens, W_e, W_p], x)(at, table, places[:1])


# --- biases ---

SLOPES = sa.tensor("r", h)


def test_alibi_is_a_decay_that_adds_up_from_key_to_query():
    total = sa.cumsum(-SLOPES[:, None] * sa.ones(h, T))
    proved(attention.alibi(T, slopes=SLOPES), total[:, :, None] - total[:, None, :])


def test_alibi_under_a_causal_mask_needs_only_the_place_of_the_key():
    z = sa.tensor("Z", h, T, S)

    def weights(bias):
        return attention.probabilities(z + bias, mask=attention.causal_mask(T, S, offset=s))

    biased = weights(attention.alibi(T, S, slopes=SLOPES, offset=s))
    proved(biased, weights(SLOPES[:, None, None] * sa.from_index((S,), lambda j: j)))
    proved(biased, weights(attention.alibi(T, S, slopes=SLOPES, offset=s, symmetric=True)))
    proved(biased, weights(attention.alibi(T, S, slopes=SLOPES)))


def authors_slopes(n):
    """The recursion of the ALiBi authors' code."""
    if n & (n - 1) == 0:
        return [2 ** (-8 * (a + 1) / n) for a in range(n)]
    lower = 1 << (n.bit_length() - 1)
    return authors_slopes(lower) + authors_slopes(2 * lower)[::2][: n - lower]


@pytest.mark.parametrize("heads", range(1, 21))
def test_slopes_of_the_authors(heads):
    np.testing.assert_allclose(numbers(attention.alibi_slopes(heads)), authors_slopes(heads), rtol=1e-15)


@pytest.mark.parametrize(
    ("heads", "exponents"),
    [
        (6, [2, 4, 6, 8, 1, 3]),
        (8, [1, 2, 3, 4, 5, 6, 7, 8]),
        (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
        (20, [a / 2 for a in range(1, 17)] + [0.25, 0.75, 1.25, 1.75]),
    ],
)
def test_slopes_by_hand(heads, exponents):
    np.testing.assert_allclose(numbers(attention.alibi_slopes(heads)), 0.5 ** np.array(exponents), rtol=1e-15)


def test_geometric_slopes_are_those_of_the_paper_at_powers_of_two():
    symbolic = attention.alibi_slopes(h, rule="geometric")
    proved(symbolic[1:], 2 ** (-8 / h) * symbolic[:-1])
    for heads in (4, 16):
        proved(symbolic.subs({h: heads}), attention.alibi_slopes(heads))
    refuted(symbolic.subs({h: 6}), attention.alibi_slopes(6))


def published_bucket(relative, buckets, max_distance, bidirectional):
    """Where a key stands relative to the query, in float64 as T5 has it, and whether the logarithm is an integer."""
    first = 0
    if bidirectional:
        buckets //= 2
        first, x = (buckets if relative > 0 else 0), abs(relative)
    else:
        x = max(-relative, 0)
    exact = buckets // 2
    if x < exact:
        return first + x, False
    large = math.log(x / exact) / math.log(max_distance / exact) * (buckets - exact)
    return first + min(exact + int(large), buckets - 1), abs(large - round(large)) < 1e-9


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (8, 20), (64, 1000), (12, 7)])
def test_buckets_are_the_published_ones_away_from_exact_logarithms(buckets, max_distance, bidirectional):
    given = {"buckets": buckets, "max_distance": max_distance, "bidirectional": bidirectional}
    n = 300
    found = numbers(attention.t5_bucket(2, 2 * n, offset=n, **given))
    compared = 0
    for i in range(2):
        for j in range(2 * n):
            wanted, at_the_edge = published_bucket(j - i - n, **given)
            if not at_the_edge:
                assert found[i, j] == wanted
                compared += 1
    assert compared > 2 * n


def test_buckets_begin_where_the_logarithm_is_exactly_an_integer():
    """The eight ranges of T5 begin at the ceilings of 8 * 2**(k/2); 16, 32 and 64 are exact."""
    found = numbers(attention.t5_bucket(200, 1))[:, 0]
    assert np.flatnonzero(np.diff(found)).tolist() == [*range(8), 11, 15, 22, 31, 45, 63, 90]
    assert found[[7, 8, 11, 12, 15, 16, 31, 32, 63, 64, 90, 91, 199]].tolist() == [
        7, 8, 8, 9, 9, 10, 11, 12, 13, 14, 14, 15, 15,
    ]  # fmt: skip
    later = numbers(attention.t5_bucket(1, 200))[0]
    np.testing.assert_array_equal(later[1:], found[1:] + 16)
    assert not numbers(attention.t5_bucket(1, 200, bidirectional=False)).any()


def test_bias_of_t5_reads_the_table_of_each_head():
    table = np.arange(64.0).reshape(2, 32)
    found = numbers(attention.t5_bias(T, S, sa.tensor("b", 2, 32)), table, T=5, S=9)
    at = numbers(attention.t5_bucket(5, 9)).astype(int)
    np.testing.assert_array_equal(found, table[:, at])


@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_after_an_offset_are_rows_farther_down(bidirectional):
    given = {"bidirectional": bidirectional}
    proved(attention.t5_bucket(T, S, offset=s, **given), attention.t5_bucket(T + s, S, **given)[s:])


def test_sandwich_is_a_sum_of_cosines_of_the_difference():
    proved(attention.sandwich(T, S, ratios=SLOPES, width=2 * m), sa.einsum("ijc->ij", waves()) / SLOPES[:, None, None])


def test_kerple_at_equal_places_is_zero_and_has_finite_gradients():
    r1, r2 = sa.tensor("r_1"), sa.tensor("r_2")
    for form, wanted in (("log", -2 * math.log(1 + 3 * 0.5)), ("power", -2 * 3**0.5)):
        bias = attention.kerple(1, 4, r1=r1, r2=r2, form=form)
        gradient = sa.gradient(sa.sum(bias), [r1, r2])
        values = sa.lambdify([r1, r2], [bias, gradient])(2.0, 0.5)
        assert values[0][0, 0] == 0
        assert values[0][0, 3] == pytest.approx(wanted)
        assert np.isfinite(values[1:]).all()


# --- embeddings of the distance ---


def test_transformer_xl_with_memory_is_the_end_of_the_whole_sequence():
    q, k, R = (sa.tensor(name, M + T, d) for name in "QKR")
    v, u_, w = sa.tensor("V", M + T, e), sa.tensor("u", d), sa.tensor("w", d)
    proved(attention.transformer_xl(q, k, v, R, u_, w)[M:], attention.transformer_xl(q[M:], k, v, R, u_, w))


@pytest.mark.parametrize("polarity", ["attend", "block"])
def test_transformer_xl_equals_sums_over_the_keys_of_each_query_in_numbers(polarity, rng):
    q, k, v, R = (sa.tensor(name, shape) for name, shape in zip("QKVR", ("T d", "S d", "S e", "S d"), strict=True))
    u_, w, keep = sa.tensor("u", d), sa.tensor("w", d), sa.tensor("M", S, binary=True)
    x = attention.transformer_xl(q, k, v, R, u_, w, mask=keep, mask_polarity=polarity)
    arrays = [rng.normal(size=n) for n in ((3, 4), (5, 4), (5, 2), (5, 4), 4, 4)]
    chosen = np.array([True, False, True, True, False])
    found = sa.lambdify([q, k, v, R, u_, w, keep], x)(*arrays, chosen)
    q_, k_, v_, r_, b_, c_ = arrays
    for i in range(3):
        keys = [j for j in range(i + 3) if chosen[j] == (polarity == "attend")]
        scores = [(q_[i] + b_) @ k_[j] + (q_[i] + c_) @ r_[i + 2 - j] for j in keys]
        weights = np.exp(np.array(scores) / 2)
        np.testing.assert_allclose(found[i], weights @ v_[keys] / weights.sum(), rtol=1e-12)


def test_shaw_of_a_table_is_shaw_of_its_gathered_rows():
    q, k = sa.tensor("Q", T, d), sa.tensor("K", S, d)
    A_k, A_v = sa.tensor("A_k", 2 * c + 1, d), sa.tensor("A_v", 2 * c + 1, e)
    a, b = (attention.relative_rows(x, T, S, offset=s) for x in (A_k, A_v))
    proved(attention.shaw(q, k, V, A_k, A_v, offset=s), attention.shaw(q, k, V, a, b))
    proved(attention.shaw(q, k, V, A_k, offset=s), attention.shaw(q, k, V, a))


def test_shaw_gives_each_pair_keys_and_values_of_its_own():
    q, k, a, b = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("a", T, S, d), sa.tensor("b", T, S, e)
    weights = sa.softmax(sa.sum(q[:, None, :] * (k + a), -1) / sympy.sqrt(d))
    proved(attention.shaw(q, k, V, a, b), sa.sum(weights[:, :, None] * (V + b), 1))


def test_rows_of_a_table_are_shared_beyond_its_ends():
    a = attention.relative_rows(sa.tensor("A", 3, 1), 4, 4)
    found = numbers(a, np.array([[-1.0], [0], [1]]))[..., 0]
    np.testing.assert_array_equal(found, np.sign(np.arange(4) - np.arange(4)[:, None]))


# --- errors ---

X, KEYS = sa.tensor("X", T, 6), sa.tensor("K", S, d)
MISTAKES = [
    (lambda: attention.rotary(sa.tensor("X", T, 5)), sa.ShapeError, "5 of them is an odd number"),
    (lambda: attention.rotary(sa.tensor("X", T, 2 * m + 1)), sa.ShapeError, r"2\*m \+ 1 of them is an odd number"),
    (lambda: attention.rotary(X, width=3), sa.ShapeError, "3 of them is an odd number"),
    (lambda: attention.rotary(X, width=8), sa.ShapeError, r"width=8 is more than the 6 features of X\[T, 6\]"),
    (lambda: attention.rotary(X, layout="neox"), sa.OperandError, "layout is 'half' or 'interleaved', not 'neox'"),
    (lambda: attention.rotary(X, base=0), sa.OperandError, "base is positive"),
    (lambda: attention.rotary(sa.tensor("x", 6)), sa.ShapeError, r"X\[.., T, d\] is meant"),
    (lambda: attention.rotary(X, positions=g), sa.ShapeError, r"g\[S\] are not one for each row of X\[T, 6\]"),
    (
        lambda: attention.rotary(X, frequencies=sa.tensor("w", 6)),
        sa.ShapeError,
        r"w\[6\] are not one for each of the 3",
    ),
    (lambda: attention.rotate(X, sa.tensor("c", T, 6), sa.tensor("s", T, 6)), sa.ShapeError, r"each of the 3 pairs"),
    (lambda: attention.rotate(X, sa.tensor("c", S, 3), sa.tensor("s", S, 3)), sa.ShapeError, r"c\[S, 3\] .* row"),
    (lambda: attention.sinusoidal(T, 7), sa.ShapeError, "odd number"),
    (lambda: attention.sinusoidal(T, 8, layout="split"), sa.OperandError, "layout is"),
    (lambda: attention.yarn_frequencies(d, factor=4, length=9, ramp="index"), sa.OperandError, "are numbers"),
    (lambda: attention.embed(sa.tensor("t", T), KEYS), sa.OperandError, "integer=True"),
    (lambda: attention.embed(p, KEYS, sa.tensor("W_p", M, e)), sa.ShapeError, r"W_p\[M, e\] and K\[S, d\] differ"),
    (lambda: attention.embed(p.subs({T: 9}), KEYS, sa.tensor("W_p", 8, d)), sa.ShapeError, "each of the 9 places"),
    (lambda: attention.alibi_slopes(h), sa.OperandError, 'give a number, or rule="geometric"'),
    (lambda: attention.alibi_slopes(8, rule="linear"), sa.OperandError, "rule is 'paper' or 'geometric'"),
    (lambda: attention.alibi(T, slopes=8), sa.OperandError, r"for 8 heads give alibi_slopes\(8\)"),
    (lambda: attention.alibi(T, slopes=SLOPES, offset=t), sa.OperandError, "the offset is an integer"),
    (lambda: attention.t5_bucket(T, buckets=30), sa.OperandError, "30 buckets are not 4 equal parts"),
    (lambda: attention.t5_bucket(T, buckets=m), sa.OperandError, "buckets is a number"),
    (lambda: attention.t5_bucket(T, max_distance=8), sa.OperandError, "max_distance=8 is not above 8"),
    (lambda: attention.t5_bias(T, S, SLOPES), sa.ShapeError, r"r\[h\] are counted by a symbol"),
    (lambda: attention.kerple(T, r1=1, r2=1, form="exp"), sa.OperandError, "form is 'log' or 'power'"),
    (lambda: attention.relative_rows(sa.tensor("A", 8, d), T), sa.ShapeError, "8 rows where an odd number"),
    (lambda: attention.relative_rows(sa.tensor("A", h, d), T), sa.ShapeError, r"declare it as 2\*c \+ 1"),
    (lambda: attention.shaw(KEYS, KEYS, V, sa.tensor("A", 5, e)), sa.ShapeError, r"A\[5, e\] and K\[S, d\] differ"),
    (lambda: attention.shaw(KEYS, KEYS, V, sa.tensor("a", T, S, d)), sa.ShapeError, "one embedding for each of S"),
    (
        lambda: attention.transformer_xl(KEYS, KEYS, V, sa.tensor("R", T, d), sa.tensor("u", d), sa.tensor("w", d)),
        sa.ShapeError,
        "the number of distances and keys",
    ),
    (
        lambda: attention.transformer_xl(KEYS, KEYS, V, KEYS, sa.tensor("u", e), sa.tensor("w", d)),
        sa.ShapeError,
        r"u\[e\] and K\[S, d\] differ in their width",
    ),
]


@pytest.mark.parametrize(("mistake", "kind", "message"), MISTAKES)
def test_mistakes_are_named(mistake, kind, message):
    with pytest.raises(kind, match=message):
        mistake()


@pytest.mark.parametrize("weight", ["b_1", "W_2", "b_2"])
def test_weights_of_fire_fit_each_other(weight):
    shapes = {"W_1": "r", "b_1": "r", "W_2": "r h", "b_2": "h", weight: "x h" if weight == "W_2" else "x"}
    given = {name: sa.tensor(name, shape) for name, shape in shapes.items()}
    with pytest.raises(sa.ShapeError, match=weight):
        attention.fire(T, c=1, L=4, **given)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_positions_of_any_integer_type_keep_the_dtype_of_the_tokens(dtype):
    X, p = sa.tensor("X", "T", 4), sa.tensor("p", "T", integer=True)
    turned = sa.lambdify([X, p], sa.attention.rotary(X, positions=p))
    assert turned(np.ones((5, 4), np.float32), np.arange(5, dtype=dtype)).dtype == np.float32
