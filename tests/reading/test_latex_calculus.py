r"""Integrals, limits, products, derivatives, binomials and factorials in formulas: read, worked out, or refused."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import pytest
import sympy

import symattn as sa
from symattn.errors import OperandError, ParseError, SymattnError
from symattn.reading.latex import latex2sympy, worked_out

needs_extra = pytest.mark.latex2sympy
T, S, d, n = sa.sizes("T S d n")
sigma = sympy.Symbol("sigma", positive=True)
beta, x = sa.tensor("beta"), sa.tensor("x", n)
Q = sa.tensor("Q", T, d)
NAMES: dict[str, Any] = {
    "Q": Q, "x": x, "beta": beta, "sigma": sigma, "n": n, "d": d, "x'": (), "f": lambda u: u, "y": sa.exp(beta)
}  # fmt: skip


@pytest.fixture(autouse=True)
def _patiently(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with much else to do is no reason to refuse."""
    monkeypatch.setattr(worked_out, "SECONDS", 20.0)


def read(text: str) -> Any:
    return sa.parse_latex(text, NAMES)


VALUES: list[tuple[str, Any]] = [
    (r"\int_0^1 t^2 dt", sympy.Rational(1, 3)),
    (r"\int_0^1 \sigma t^2 \, \mathrm{d}t", sigma / 3),
    (r"\int_0^1 t + 1 \, dt", sympy.Rational(3, 2)),
    (r"\int_0^1 \frac{t \, dt}{1 + t^2}", sympy.log(2) / 2),
    (r"\int_0^1 \int_0^s s t \, dt \, ds", sympy.Rational(1, 8)),
    (r"2 \int_0^1 t dt + \int_0^2 s ds", sympy.Integer(3)),
    (r"\int_{-\infty}^\infty e^{-t^2 / (2 \sigma^2)} dt", sympy.sqrt(2 * sympy.pi) * sigma),
    (r"\int_0^1 t'^2 dt'", sympy.Rational(1, 3)),
    (r"\int_0^1 \log t \, dt", sympy.Integer(-1)),
    (r"\int_0^1 0.8 t dt", sympy.Rational(2, 5)),
    (r"\lim_{t \to 0} \frac{\sin t}{t}", sympy.Integer(1)),
    (r"\lim_{t \to 0^-} |t| / t", sympy.Integer(-1)),
    (r"\lim_{t \to \infty} (1 + 1/t)^t", sympy.E),
    (r"\frac{d}{d\sigma} 3 \sigma^2", 6 * sigma),
    (r"\frac{\partial^2}{\partial \sigma^2} \log \sigma", -(sigma**-2)),
    (r"\binom{n}{2}", n * (n - 1) / 2),
    (r"\binom52 + 3!", sympy.Integer(16)),
    (r"\sum_{k=0}^n \binom{n}{k}", 2**n),
    (r"\sum_{k=0}^\infty \frac{1}{2^k}", sympy.Integer(2)),
    (r"\prod_{k=1}^{n} \sigma", sigma**n),
    (r"\frac{d}{d\beta} \log(1 + e^{\beta})", sa.sigmoid(beta)),
    (r"\int_0^\beta t dt", beta * beta / 2),
    (r"\int_0^1 x_i t dt", x / 2),
    (r"\sum_i x_i \int_0^1 t x_i dt", sa.sum(x * x) / 2),
    (r"\binom{n}{2} Q Q^\top", n * (n - 1) / 2 * Q @ Q.T),
]  # fmt: skip


@needs_extra
@pytest.mark.parametrize(("text", "wanted"), VALUES, ids=[text for text, _ in VALUES])
def test_calculus_has_its_value_by_our_names(text: str, wanted: Any) -> None:
    found = read(text)
    if isinstance(wanted, sa.Tensor):
        assert sa.prove(found, wanted)
    else:
        assert sympy.simplify(found - wanted) == 0
        assert found.free_symbols <= {sigma, n}


REFUSED = [  # without latex2sympy2
    (r"\int t dt", "both limits"),
    (r"\int_0^1 t", "no differential"),
    (r"\int_0^1 d t dt", "which d"),
    (r"\int_0^1 t dt t", "in front of the integral"),
    (r"\int_0^1 \beta d\beta", "take another letter"),
    (r"\int_0^1 f(t) dt", "f(t) is not read in integrals"),
    (r"\int_0^1 \max(t, 1) dt", "is not read in integrals"),
    (r"\int_0^1 \mathrm{softmax}(t) dt", "is not read in integrals"),
    (r"\int_0^1 Q t dt", "Q is T×d: calculus is read of scalars"),
    (r"\int_0^1 a t dt", "no shape for a"),
    (r"\lim_{t = 0} t", r"\lim_{t \to 0} f"),
    (r"\frac{d}{d\beta} \beta^2 \beta", "in parentheses"),
    (r"\frac{d}{d\beta} \beta^2 / \beta", "in parentheses"),
    (r"\frac{d}{d\beta} y", "names with values of their own"),
    (r"\frac{d}{dn} n^2", "no derivative by it"),
    (r"\frac{\partial}{\partial Q} L", r"\frac{\partial L}{\partial Q}"),
    (r"\frac{d^9}{d\beta^9} \beta", "up to the fourth"),
    (r"\prod_i \sigma", "both limits"),
    (r"\prod_{k=1}^n x_k", "has no operation here"),
    (r"\int_0^1 \sin^{-1} t dt", "is not read in integrals"),
    (r"\beta^2!", "write parentheses"),
]
REFUSED_BY_VALUE = [
    (r"\lim_{t \to 0} 1/t", "no value among real numbers"),
    (r"\int_{-1}^1 \frac{dt}{t}", "no value among real numbers"),
    (r"\int_0^1 t^t dt", "what is left is Integral(t**t, (t, 0, 1))"),
    (r"\int_0^\infty e^{-\beta t} dt", "positive"),
    (r"\int_0^{\sigma} \frac{dt}{(t - 1)^2}", "numbers do not confirm"),
    (r"\int_{-\sigma}^{\sigma} \frac{dt}{t}", "no"),
    (r"\prod_{k=5}^2 k", "comes before 5"),
    (r"\sum_{k=3}^n \binom{k}{2}", "comes before 3"),
    (r"\prod_{k=1}^{\sigma} 2", "whole numbers"),
    ("n!", "factorial, which is no function of symattn"),
    (r"\binom{n}{2} + 9^{9^{9}} \cdot 2!", "too large"),
    (r"(9^{9^{9}})!", "too large"),
    (r"(10^{9})!", "beyond 1000"),
    (r"\prod_{k=1}^{10^6} k", "beyond 1000"),
    (r"\prod_{k=1}^{99} k^{k^k}", "too fast"),
    (r"\int_0^{99} e^{e^{e^t}} dt", "three exponentials"),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_what_is_not_decided_is_refused_with_a_caret(text: str, said: str) -> None:
    with pytest.raises(ParseError) as caught:
        read(text)
    assert said in str(caught.value)
    assert str(caught.value).endswith("^")


@needs_extra
@pytest.mark.parametrize(("text", "said"), REFUSED_BY_VALUE)
def test_what_has_no_value_of_ours_is_refused_with_a_reason(text: str, said: str) -> None:
    with pytest.raises(SymattnError) as caught:
        read(text)
    assert said in str(caught.value)


def test_without_latex2sympy2_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "latex2sympy2", raising=False)
    monkeypatch.setattr(latex2sympy.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SymattnError, match=r"pip install 'symattn\[latex\]'"):
        read(r"\int_0^1 t dt")


# --- the wall ---


@pytest.mark.parametrize(
    "text",
    [
        r"\log(x)", "x'", "x(y)", "a/b", "x=1", r"\sum_{x+y=1}^{2} x", "|x|y|",
        r"\mathbf{x}", "e", "I", "E", "x^T", "dx", "d x", r"d\pi", "2 3",
        r"\operatorname{eye}(3)", r"\begin{bmatrix}1\end{bmatrix}", r"(x)_{2}", r"x \in y", "50\\%", "é", "x\0",
        r"\variable{x}", r"x \times y", r"\int x dx dy",
    ],
)  # fmt: skip
def test_strings_that_latex2sympy2_might_read_otherwise_are_not_given_to_it(text: str) -> None:
    with pytest.raises(OperandError):
        latex2sympy.check(text)


@pytest.fixture
def raw() -> Iterator[Any]:
    module = latex2sympy.load()
    yield module.latex2sympy
    module.set_variances({})


@needs_extra
def test_each_known_pitfall_is_one_and_is_contained(raw: Any) -> None:
    symbols = sympy.symbols("a b c k x y")
    a, b, c, _, X, _ = symbols
    by_name = {symbol.name: symbol for symbol in symbols}
    assert raw(r"\log x") == sympy.log(X, 10, evaluate=False)
    assert read(r"\int_1^{\sigma} \log t \, dt").equals(sigma * sympy.log(sigma) - sigma + 1)
    assert raw("x'") == X
    assert [leaf.name for leaf in read(r"\int_0^1 x' t dt").tensors] == ["x'"]
    assert raw("x(y)").func.__name__ == "x"
    assert raw("a/bc").doit() == a / (b * c)
    assert str(raw(r"\lim_{x \to 0} x").args[3]) == "+"
    raw("x = 5")
    raw("dx")
    with pytest.raises(TypeError):
        raw("x")  # from now on
    assert latex2sympy.read(r"\frac{1}{x}", by_name) == 1 / X
    with pytest.raises(TypeError):
        raw("x")  # what others made of its tables is theirs


@needs_extra
def test_the_package_named_tests_that_comes_with_it_is_not_taken_for_ours() -> None:
    import tests

    assert find_spec("latex2sympy2") is not None
    assert str(tests.__file__).endswith("__init__.py")
    assert find_spec("tests.claims_corpus") is not None
    assert "typing.io" not in sys.modules or sys.modules["typing.io"].__name__ == "typing.io"


# --- our reader of scalars held against latex2sympy2 ---


def _formula(rng: random.Random, depth: int) -> str:
    """A scalar formula that both read: with names, numbers, and every sign that the wall lets through."""
    if depth == 0:
        return rng.choice(["a", "b", "c", "2", "3", "0.5", r"\pi "])
    one, two = _formula(rng, depth - 1), _formula(rng, rng.randrange(depth))
    return rng.choice([
        f"({one}+{two})", f"({one}-{two})", rf"{one}\cdot {two}", rf"\frac{{{one}}}{{{two}}}", rf"\sqrt{{{one}}}",
        f"({one})^{{2}}", rf"\exp(-{two})", rf"\sin({one})", rf"\tanh({one})", rf"\ln(1+({one})^{{2}})", f"|({one})|",
    ])  # fmt: skip


@needs_extra
def test_our_reader_of_scalars_agrees_with_latex2sympy2() -> None:
    symbols = {name: sympy.Symbol(name, positive=True) for name in "abc"}
    at = {symbols["a"]: 0.7, symbols["b"]: 1.3, symbols["c"]: 2.1}
    rng = random.Random(5)
    for _ in range(12):
        text = _formula(rng, 3)
        ours, theirs = sa.parse_latex(text, symbols), latex2sympy.read(text, symbols)
        assert complex(ours.subs(at)) == pytest.approx(complex(theirs.subs(at)), rel=1e-9), text


# --- many at once, and in time ---


@needs_extra
def test_many_threads_read_at_once() -> None:
    def value(k: int) -> Any:
        return sa.parse_latex(rf"\int_0^{{{k}}} {k} t dt + \binom{{{k}}}{{2}}", {})

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(value, range(2, 18)))
    assert found == [sympy.Rational(k**3 + k * (k - 1), 2) for k in range(2, 18)]


@needs_extra
def test_what_takes_too_long_is_refused_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    latex2sympy.load()
    monkeypatch.setattr(worked_out, "SECONDS", 0.2)
    began = time.perf_counter()
    with pytest.raises(SymattnError, match="not worked out within"):
        read(r"\int_0^{\sigma} \frac{\sin(t^3 + t) \ln(1 + t^5)}{\sqrt{1 + t^7} + \cos(t)} dt")
    assert time.perf_counter() - began < 5


def test_a_wrong_integral_is_found_by_quadrature() -> None:
    t = sympy.Dummy("t", real=True)
    integral = sympy.Integral(t**2 * sigma, (t, 0, 1))
    worked_out._check_by_numbers(sigma / 3, integral, worked_out._by_quadrature)
    with pytest.raises(OperandError, match="numbers do not confirm"):
        worked_out._check_by_numbers(sigma / 2, integral, worked_out._by_quadrature)
