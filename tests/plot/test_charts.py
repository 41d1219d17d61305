"""Charts and maps: what they say of the data, and pictures that a page can hold."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.document.render.drawings import inline_svg
from symattn.plot import chart
from symattn.printing import prose

T, S, d = sa.sizes("T S d")
q, k = sa.tensor("q", d), sa.tensor("k", d)
LAW = {q: sa.iid(), k: sa.iid("rademacher")}
t = sympy.Symbol("t")
WEIGHTS = [[0.7, 0.3], [0.05, 0.95]]
masks = {"causal": sa.attention.causal_mask(T), "window": sa.attention.sliding_window_mask(T, left=1, right=0)}
FIGURES = {
    "attention map": lambda: sa.plot.attention_map(WEIGHTS, ["the", "cat"], ["the", "cat"]),
    "heads": lambda: sa.plot.attention_map(np.eye(5)[None] * np.ones((3, 1, 1))),
    "mask": lambda: sa.plot.mask(masks, {T: 6}),
    "variance": lambda: sa.plot.variance([q @ k, q @ k / sympy.sqrt(d)], LAW, d, samples=200),
    "kernel regression": lambda: sa.plot.kernel_regression(np.arange(20) / 5, truth=sympy.sin(t), noise=0.2),
    "saturation": sa.plot.saturation,
}


@pytest.mark.plot
@pytest.mark.parametrize("name", FIGURES)
def test_a_picture_is_the_same_each_time_small_and_in_the_colour_of_its_page(name):
    pytest.importorskip("matplotlib")
    figure, again = FIGURES[name](), FIGURES[name]()
    assert figure.svg == again.svg
    assert figure.pdf == again.pdf
    assert figure.pdf.startswith(b"%PDF")
    assert len(figure.svg) < 40_000
    assert "currentColor" in figure.svg
    assert "<metadata" not in figure.svg
    assert "#010203" not in figure.svg
    assert 'aria-label="What it shows"' in inline_svg(figure.svg, "What it shows", "figure-1-")


def test_figures_say_in_words_what_their_data_are():
    told = {name: make().alternative for name, make in FIGURES.items()}
    assert '"the" attends most to "the" (0.70); "cat" attends most to "cat" (0.95)' in told["attention map"]
    assert "Head 2: 5 queries by 5 keys; query 0 attends most to key 0 (1.00)" in told["heads"]
    assert "Window: 6 queries by 6 keys, 11 of 36 pairs allowed; the last query sees keys 4 to 5" in told["mask"]
    assert "Var(qᵀ k / √d) = 1: 1 for d = 1, 1 for d = 256" in told["variance"]
    assert "20 points from (0, " in told["kernel regression"]
    assert "Gap 1: at most 0.25" in told["saturation"]


def test_samples_have_the_variance_that_was_computed_exactly():
    random = np.random.default_rng(1)
    named = ("normal", "rademacher", "uniform", "laplace", "bernoulli")
    for law in (*(sa.iid(name) for name in named), sa.iid(mean=2, variance=3), sa.iid("uniform", mean=-1, variance=4)):
        entries = sa.plot.curves._drawn(random, law, (40_000,))
        assert abs(entries.mean() - float(law.known(1))) < 0.05
        assert abs(entries.var() / float(law.known(2)) - 1) < 0.05


def test_expressions_are_drawn_by_the_values_of_their_tensors():
    Q, K = sa.tensor("Q", T, d), sa.tensor("K", S, d)
    values = {Q: np.eye(2), K: [[0, 9], [9, 0], [0, 0]]}
    figure = sa.plot.attention_map(sa.softmax(Q @ K.T), values=values)
    assert "query 0 attends most to key 1 (1.00)" in figure.alternative
    with pytest.raises(sa.OperandError, match=r"values= has none for K\[S, d\]"):
        sa.plot.attention_map(sa.softmax(Q @ K.T), values={Q: np.eye(2)})


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        (
            [[1 / 3] * 3, [0, 0, 0]],
            "2 queries by 3 keys; query 0 attends equally to all keys (0.33); query 1 attends to no key.",
        ),
        ([[1]], "1 query by 1 key; query 0 attends most to key 0 (1.00)."),
        ([[0.5, 0.5]], "1 query by 2 keys; query 0 attends equally to both keys (0.50)."),
        ([[0.4, 0.2, 0.4]], "1 query by 3 keys; query 0 attends most, and equally, to key 0 and key 2 (0.40)."),
        ([[0.25] * 4 + [0]], "1 query by 5 keys; query 0 attends most, and equally, to 4 keys (0.25)."),
    ],
)
def test_a_map_tells_the_largest_weight_only_where_there_is_one(weights, told):
    assert sa.plot.attention_map(weights).alternative == f"Attention map. {told}"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: sa.plot.attention_map([1.0, 2.0]), r"attention_map draws weights \[T, S\]"),
        (lambda: sa.plot.attention_map([[1.0, np.nan]]), "attention_map draws finite numbers"),
        (lambda: sa.plot.attention_map("weights"), "draws finite numbers, not 'weights'"),
        (lambda: sa.plot.attention_map([[1], [2, 3]]), "attention_map draws an array of numbers"),
        (lambda: sa.plot.attention_map(WEIGHTS, keys=["the"]), "keys= are 2 tokens"),
        (lambda: sa.plot.attention_map(WEIGHTS, queries="ab"), "queries= are 2 tokens"),
        (lambda: sa.plot.mask(np.ones(3)), r"mask draws masks \[T, S\]"),
        (lambda: sa.plot.variance(q @ k, {q: LAW[q], k: sa.iid(variance=S)}, d), "depends on more than d"),
        (lambda: sa.plot.variance(q @ k, {(q, k): sa.iid_pair(correlation=0)}, d), "samples=0 draws the exact line"),
        (lambda: sa.plot.kernel_regression([1, 2], [1]), "as many points as values"),
        (lambda: sa.plot.kernel_regression([1, 2], truth=t * S), "a formula of one symbol"),
    ],
)
def test_what_cannot_be_drawn_is_said(wrong, message):
    with pytest.raises((sa.OperandError, sa.ShapeError), match=message):
        wrong()


def test_without_matplotlib_words_stand_for_a_picture(monkeypatch):
    monkeypatch.setattr(chart, "find_spec", lambda name: None if name == "matplotlib" else find_spec(name))
    figure = sa.plot.saturation()
    assert figure._repr_html_() is None
    with pytest.raises(
        sa.SymattnError, match=r"for this picture, install Matplotlib, by pip install 'symattn\[plot\]'"
    ):
        _ = figure.svg
    page = sa.Derivation("Saturation").figure(figure, "It saturates.").html()
    assert "gap 0.5  0.109" in page
    assert "It saturates. (The picture is left out; it takes Matplotlib, by pip install" in page
    assert '"svg": ""' in sa.Derivation("Saturation").figure(figure).json()


def test_a_caption_stands_below_in_every_medium():
    note = sa.Derivation("Scores", given={q: "", k: ""}).figure(FIGURES["attention map"](), r"Weights, $q^{\top} k$.")
    assert "Weights, $q^{\\top} k$." in note.latex()
    assert r"\emph{Figure.} Attention map. 2 queries by 2 keys" in note.latex()
    assert "Weights, $q^{\\top} k$." in note.markdown()
    assert "```\n      the cat" in note.markdown()
    assert "Weights, qᵀ k." in note.text()


def test_a_figure_is_a_picture_in_a_notebook():
    figure = prose.Figure("<svg></svg>", "Nothing")
    assert (figure._repr_html_(), repr(figure)) == ("<svg></svg>", "<figure: Nothing>")


@pytest.mark.tex
def test_a_chart_is_a_picture_of_the_pdf(tmp_path):
    pytest.importorskip("matplotlib")
    note = sa.Derivation("Saturation").figure(sa.plot.saturation(), "It saturates.")
    note.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").stat().st_size > 15_000
