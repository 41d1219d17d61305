"""What a notebook shows: answers and tensors as HTML, Markdown and LaTeX."""

from __future__ import annotations

from html.parser import HTMLParser
from importlib.util import find_spec

import pytest
import sympy

import symattn as sa

T, S, d, e = sa.sizes("T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
q, k = sa.tensor("q", d), sa.tensor("k", d)
Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
P = sa.let("P", sa.softmax(Z))
O = sa.let("O", P @ V)
g = sa.gradient(O, [Q, K, V])
u = sa.tensor("u")
moments = sa.moments(q @ k, {q: sa.iid(), k: sa.iid()})
SHOWN = {
    "gradient": (g, "dP", r"\mathrm{d}P &= \mathrm{d}O"),
    "proved": (sa.prove(sa.le(0, P)), "positive probabilities", r"\textbf{Claim.}"),
    "refuted": (sa.prove(sa.softmax(Z), sa.softmax(2 * Z)), "Refuted", "fails"),
    "moments": (moments, "independent", r"\operatorname{Var}[x] &= d"),
    "symmetries": (sa.equivariance(lambda x: sa.softmax(x), sa.tensor("X", T, d)), "equivariant", r"\begin{tabular}"),
    "report": (sa.Derivation("Attention").extend(g).verify(), "dK", "proved"),
    "derivation": (sa.Derivation("Attention").extend(g), "Attention", r"\section*{Attention}"),
    "approximation": (sa.expectation(sa.tanh(u), {u: sa.iid("normal")}, method="quadrature"), "≈", r"\approx"),
}


class _Words(HTMLParser):
    """The text of a page, apart from its style."""

    def __init__(self, page):
        super().__init__()
        self.said, self.inside = "", ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.inside = tag

    def handle_data(self, data):
        self.said += data if self.inside != "style" else ""


def words(page: str) -> str:
    return _Words(page).said


@pytest.mark.parametrize("name", SHOWN)
def test_answers_are_shown_as_mathematics_in_each_medium(name):
    x, said, written = SHOWN[name]
    assert said in words(x._repr_html_())
    assert "| dK | proved |" in x._repr_markdown_() if name == "report" else "$" in x._repr_markdown_()
    assert written in x._repr_latex_()


def test_a_tensor_is_shown_by_its_name_and_what_it_stands_for():
    assert O._repr_latex_() == r"$\displaystyle O = P V$"
    assert O._repr_markdown_() == "$$\nO = P V\n$$"
    assert words(O._repr_html_()) == "O=P\u2062V"
    assert g["dV"]._repr_latex_() == r"$\displaystyle \mathrm{d}V = P^{\top} \, \mathrm{d}O$"
    assert (P @ V)._repr_latex_() == r"$\displaystyle P V$"
    assert Q._repr_latex_() == r"$\displaystyle Q$"


def test_names_that_nobody_gave_are_defined_below():
    x = sa.tensor("x", "n")
    shown = sa.jacobian(sa.softmax(x), x)
    assert "where" in words(shown._repr_html_())
    assert r"P := \mathrm{softmax}" in shown._repr_markdown_().replace(r"\mathrel{:=}", ":=")


def test_what_is_too_large_to_read_is_shown_as_text():
    x = Q
    for _ in range(12):
        x = x * x + x
    assert x._repr_html_() is None
    assert x._repr_latex_() is None


NOTEBOOK = """
import sympy, symattn as sa
T, S, d, e = sa.sizes("T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
P = sa.let("P", sa.softmax(Q @ K.T / sympy.sqrt(d)))
O = sa.let("O", P @ V)
g = sa.gradient(O, [Q, K, V])
---
O
---
g
---
sa.prove(sa.le(0, P))
---
sa.plot.flow(g)
---
sa.plot.saturation()
---
D = sa.Derivation("Attention").extend(g); D.verify(); D
"""


@pytest.mark.notebook
def test_a_notebook_runs_and_shows_mathematics(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    cells = [nbformat.v4.new_code_cell(cell.strip()) for cell in NOTEBOOK.split("---")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    _, *shown = [[output.data for output in cell.outputs if "data" in output] for cell in notebook.cells]
    pages = [outputs[0]["text/html"] for outputs in shown if "text/html" in outputs[0]]
    assert len(pages) == (6 if find_spec("matplotlib") else 5)
    formula, gradient, verdict, flow, *_, derivation = pages
    assert formula.startswith("<math")
    assert "dQ" in words(gradient)
    assert "Claim" in words(verdict)
    assert flow.startswith("<svg")
    assert "5 proved" in words(derivation)
    for page in pages:
        assert "\\" not in page.partition("<article")[2], "no LaTeX is left in a page"
        assert "<script" not in page
    assert shown[0][0]["text/latex"] == r"$\displaystyle O = P V$"
