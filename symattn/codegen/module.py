"""A compiled function as a module that stands alone: what it computes in words, and a test of its gradients."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sympy

from ..core.node import Tensor, topological
from ..core.sizes import show_shape
from ..errors import EvaluationError
from ..graph.canonical import without_names
from ..ops.leaves import constant, cotangent_op, scalar_value, variable
from ..ops.opaque import stop_gradient_op
from ..printing.matrix import Printer, text_in, text_printer
from ..recurrence.body import number_of_steps
from ..recurrence.record import scan_op
from .sampling import generic_scalars, generic_sizes, stops_within

if TYPE_CHECKING:
    from .compiled import Compiled

_MOST_TOLD = 60  # formulas in a docstring
_WIDTH = 100


def module_of(f: Compiled, needed: str, own: str) -> str:
    """The text of the module: its docstring, imports and helpers, the function, and the test if it has gradients."""
    return f'"""{_told(f)}"""\n\n{needed}{own}{_self_test(f)}'


# --- what it computes ---


def _told(f: Compiled) -> str:
    """The shapes of the arguments and the formula of each result and of what has a name on the way."""
    results = ", ".join(y.name or y.brief() for y in f.outputs)
    arguments = [f"{a.name}{show_shape(a.shape)}" if isinstance(a, Tensor) else a.name for a in f.takes.arguments]
    of = ", ".join(arguments) or "no arrays"
    head = textwrap.wrap(f"{results} of {of}; loop axes may stand in front.", _WIDTH)
    formulas = list(_formulas(f.outputs))
    left_out = [f"... and {len(formulas) - _MOST_TOLD} more"] if len(formulas) > _MOST_TOLD else []
    lines = [*head, "", *map(_indented, (*formulas[:_MOST_TOLD], *left_out)), ""]
    return "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''")


def _indented(formula: str) -> str:
    return textwrap.fill(formula, _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8, break_long_words=False)


def _formulas(outputs: Sequence[Tensor]) -> Iterator[str]:
    """Each named part once: a gradient may write what it is of in smaller steps, and comes last."""
    printer, bare, last = text_printer(outputs), _bare_forms(outputs), dict[Any, str]()
    for node in topological(outputs):
        if node in printer.names and node.op is not variable:
            name = printer.names[node]
            last.pop((name, bare[node]), None)
            last[name, bare[node]] = f"{name}{show_shape(node.shape)} = {text_in(printer, node)}"
        elif node in outputs and node not in printer.names:
            last[node] = _unnamed(printer, outputs, node)
    yield from last.values()


def _unnamed(printer: Printer, outputs: Sequence[Tensor], node: Tensor) -> str:
    which = "" if len(outputs) == 1 else f" {list(outputs).index(node)}"
    return f"result{which}{show_shape(node.shape)} = {text_in(printer, node)}"


# --- the test of its gradients ---


class _Tested(NamedTuple):
    """A gradient among the results: where it stands, by which argument, and the results and cotangents it is of."""

    place: int
    by: str
    pairs: tuple[tuple[int, str], ...]


def _self_test(f: Compiled) -> str:
    """The text of ``check_gradient``; none where no gradient stands beside what it is the gradient of."""
    parameters, bare = _parameters(f), _bare_forms(f.outputs)
    first = {bare[y]: place for place, y in reversed(list(enumerate(f.outputs)))}
    places = {y: first[bare[y]] for y in bare if bare[y] in first}
    tested = [row for place, y in enumerate(f.outputs) if (row := _tested(place, y, places, parameters)) is not None]
    example = _example(f, parameters) if tested else None
    if example is None:
        return ""
    lines = "".join(f"        {name}={text},\n" for name, text in example.items())
    rows = "".join(f"        {_row(row)},\n" for row in tested)
    run = textwrap.indent(_RUN[f.backend], "    ")
    return _TEST.replace("    RUN\n", run).replace("        EXAMPLE\n", lines).replace("        GRADIENTS\n", rows)


def _bare_forms(outputs: Sequence[Tensor]) -> dict[Tensor, Tensor]:
    """All nodes without names: gradients give names to what has none."""
    bare: dict[Tensor, Tensor] = {}
    for node in topological(outputs):
        bare[node] = without_names(node, bare)
    return bare


def _parameters(f: Compiled) -> dict[Any, str]:
    """What each argument and each keyword is called in the code."""
    names = f.parameters[: len(f.takes.arguments)]
    return {**dict(zip(f.takes.arguments, names, strict=True)), **f.keywords}


def _tested(place: int, y: Tensor, places: Mapping[Tensor, int], parameters: Mapping[Any, str]) -> _Tested | None:
    """What is to be tested of one result; None if it is no gradient, or not one that differences show."""
    if y.op is not cotangent_op or any(map(_stops, topological([y]))):
        return None
    _, of, *flat = y.inputs
    by = parameters.get(of.params["formula"] if of.op is constant else of)
    pairs = []
    for output, cotangent in zip(flat[::2], flat[1::2], strict=True):
        where, weight = places.get(output), _weight(cotangent, parameters)
        if where is None or not weight or cotangent.rank != output.rank:
            return None
        pairs.append((where, weight))
    return None if by is None else _Tested(place, by, tuple(pairs))


def _stops(x: Tensor) -> bool:
    """Whether differences see values move that gradients do not pass through."""
    return x.op is stop_gradient_op or stops_within(x)


def _weight(cotangent: Tensor, parameters: Mapping[Any, str]) -> str:
    """The text of a cotangent that is an argument or 1."""
    if cotangent in parameters:
        return f'at["{parameters[cotangent]}"]'
    return "1" if scalar_value(cotangent) == 1 else ""


def _row(row: _Tested) -> str:
    pairs = "".join(f"({place}, {weight}), " for place, weight in row.pairs)
    return f'("{row.by}", {row.place}, ({pairs[:-1]}))'


_MOST, _STEP = 3_000_000, 100


def _example(f: Compiled, parameters: Mapping[Any, str]) -> dict[str, str] | None:
    """Arguments at which all results are finite, as text: of normal entries, or of positive ones.

    None where sizes that are numbers are too large for a run while the source is written.
    """
    roots = [*f.outputs, *f.takes.tensors]
    try:
        sizes = generic_sizes(roots)
    except EvaluationError:
        return None
    if _work(roots, sizes) > _MOST:
        return None
    scalars = generic_scalars(roots, np.random.default_rng(0))
    for drawn in ("rng.normal(size={})", "rng.uniform(0.5, 1.5, size={})"):
        example = {
            name: _array(a, tuple(int(n.subs(sizes)) for n in a.shape), drawn)
            if isinstance(a, Tensor)
            else repr({**sizes, **scalars}.get(a, 1))
            for a, name in parameters.items()
        }
        if _is_finite(f, example):
            return example
    return None


def _work(roots: Sequence[Tensor], sizes: Mapping[sympy.Symbol, int]) -> int:
    """About how many entries a run computes; a step of a loop costs as much as many of them."""
    nodes = topological(roots)
    shapes = sum(math.prod(int(n.subs(sizes)) for n in node.shape) for node in nodes)
    steps = sum(int(number_of_steps(node).subs(sizes)) for node in nodes if node.op is scan_op)
    return shapes + _STEP * steps


def _array(a: Tensor, shape: tuple[int, ...], drawn: str) -> str:
    """The text of a random array that has the declared properties."""
    declared = a.params["hypotheses"]
    if "binary" in declared:
        return f"rng.random({shape}) < 0.6"
    if "integer" in declared:
        return f"rng.integers(0, 2, {shape})"
    if "permutation" in declared:
        return f"np.eye({shape[-1]})[rng.permutation({shape[-1]})] * np.ones({shape})"
    if "orthogonal" in declared:
        return f"np.linalg.qr(rng.normal(size={shape}))[0]"
    text = ("rng.uniform(0.5, 1.5, size={})" if "positive" in declared else drawn).format(shape)
    if "invertible" in declared:
        return f"{text} + 3 * np.eye({shape[-1]})"
    return f"(lambda x: x + x.mT)({text})" if "symmetric" in declared else text


def _is_finite(f: Compiled, example: Mapping[str, str]) -> bool:
    known: dict[str, Any] = {"np": np, "rng": np.random.default_rng(0)}
    at = {name: eval(text, known) for name, text in example.items()}
    with np.errstate(all="ignore"):
        try:
            results = f.on_numpy(*(at[name] for name in f.parameters if name not in f.keywords.values()),
                                 **{name: at[name] for name in f.keywords.values()})  # fmt: skip
        except (EvaluationError, np.linalg.LinAlgError):
            return False
    return all(np.isfinite(y).all() for y in (results if f.several else (results,)))


_RUN = {  # the function of NumPy's arrays, in float64
    "numpy": "run = f\n",
    "torch": """import numpy as np
import torch

def run(**at):
    given = {name: x if isinstance(x, int) else torch.from_numpy(np.asarray(x)) for name, x in at.items()}
    return [y.numpy() for y in f(**given)]

""",
    "jax": """import jax
import jax.numpy as jnp
import numpy as np

def run(**at):
    with jax.enable_x64(True):
        given = {name: x if isinstance(x, int) else jnp.asarray(np.asarray(x)) for name, x in at.items()}
        return [np.asarray(y) for y in f(**given)]

""",
}
_TEST = '''

def check_gradient(step=1e-5, tolerance=1e-5):
    """Hold the gradients against central differences of what they are of, at random arrays; AssertionError if not."""
    RUN
    rng = np.random.default_rng(0)
    at = dict(
        EXAMPLE
    )
    gradients = [  # by which argument, which result, and of which results with which cotangents
        GRADIENTS
    ]
    found = run(**at)
    for by, place, pairs in gradients:
        slope = np.zeros(np.shape(at[by]))
        for entry in np.ndindex(slope.shape):
            moved = np.zeros(slope.shape)
            moved[entry] = step
            up, down = (run(**{**at, by: at[by] + way}) for way in (moved, -moved))
            slope[entry] = sum((weight * (up[y] - down[y])).sum() for y, weight in pairs) / (2 * step)
        error = np.abs(found[place] - slope).max() / max(1, np.abs(slope).max())
        assert error < tolerance, f"the gradient by {by} is off by {error:.1e}"
        print(f"the gradient by {by} agrees with central differences, relative error {error:.1e}")


if __name__ == "__main__":
    check_gradient()
'''
