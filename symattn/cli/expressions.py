"""What verbs share: declarations and expressions as text, their gradients, and the formats in which to print."""

from __future__ import annotations

import argparse
import json
import keyword
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import sympy

from ..calculus.gradient import gradient
from ..calculus.result import Gradient
from ..core.naming import check_name, fresh_name
from ..core.node import Tensor, topological
from ..errors import OperandError, described
from ..ops.leaves import as_tensor, is_fixed, let, let_op
from ..reading import parse_shape
from ..reading import read as read_numpy
from ..reading.latex.answers import Definition
from ..reading.latex.read import parse_latex

_WORD_OR_SIGN = re.compile(r"\w[\w.]*'*|\S")


def add_expression(command: argparse.ArgumentParser) -> None:
    """The expression, what it is made of, and what to differentiate by."""
    shown = 'for example "Z = Q @ K.T / sqrt(d); softmax(Z) @ V", or a formula in LaTeX'
    command.add_argument("expression", metavar="EXPR", help=shown)
    add_declarations(command)
    command.add_argument("--wrt", metavar="NAMES", help="differentiate by these, separated by commas")


def add_declarations(command: argparse.ArgumentParser) -> None:
    """The tensors and the scalars that expressions are made of."""
    command.add_argument(
        "--shape", action="append", default=[], metavar='"Q: T d"', help='a tensor; properties follow: "M: T S, binary"'
    )
    command.add_argument("--scalar", action="append", default=[], metavar="NAME", help="a scalar symbol")
    command.add_argument("--first-index", type=int, choices=(0, 1), help="from where LaTeX counts its indices")


def add_formats(command: argparse.ArgumentParser, *formats: str) -> None:
    """The formats that ``show`` may be asked for, the first unless another is."""
    command.add_argument("--to", choices=formats, default=formats[0])


def show(options: argparse.Namespace, **writers: Callable[[], Any]) -> int:
    """Print in the format that is asked for; what is no text is written as JSON."""
    written = writers[options.to]()
    print((written if isinstance(written, str) else json.dumps(written, indent=2)).rstrip())
    return 0


def declarations(options: argparse.Namespace) -> dict[str, Any]:
    """The tensors and scalar symbols that the command line declares."""
    tensors = [parse_shape(text) for text in options.shape]
    scalars = [sympy.Symbol(check_name(name), real=True) for name in options.scalar]
    names: dict[str, Any] = {}
    for name, meaning in [*((str(x.name), x) for x in tensors), *((s.name, s) for s in scalars)]:
        if name in names:
            raise OperandError(f"{name!r} is declared twice")
        names[name] = meaning
    return names


def is_latex(text: str) -> bool:
    """Whether a formula is in LaTeX: by signs that NumPy spelling does not have, or by factors side by side."""
    if any(sign in text for sign in "\\^{"):
        return True
    words = [_WORD_OR_SIGN.findall(statement) for statement in re.split(r"[;\n]", text)]
    beside = any(_stand_beside(*pair) for statement in words for pair in pairwise(statement))
    return beside and not any(sign in text for sign in "@*[")


def _stand_beside(left: str, right: str) -> bool:
    """Whether two words are factors of a product that has no sign, as in ``A B`` and ``softmax(A) B``."""
    if keyword.iskeyword(left) or keyword.iskeyword(right):
        return False
    return (left == ")" and (right == "(" or right[0].isalnum())) or (left[0].isalnum() and right[0].isalnum())


def answer(text: str, names: Mapping[str, Any], first_index: int | None = None) -> Any:
    """What the last statement of a formula in LaTeX says."""
    found = parse_latex(text, names, first_index=first_index)
    last = found[-1] if isinstance(found, tuple) else found
    return last.value if isinstance(last, Definition) and not last.parameters else last


def read(text: str, names: Mapping[str, Any], first_index: int | None = None) -> Tensor:
    """The tensor that an expression stands for, in NumPy spelling or in LaTeX."""
    if not is_latex(text):
        return read_numpy(text, names)
    value = answer(text, names, first_index)
    if not isinstance(value, (Tensor, sympy.Expr)):
        raise OperandError(f"{text} is {described(value)}, and an expression of tensors is asked for here")
    return as_tensor(value)


def read_output(options: argparse.Namespace) -> tuple[Tensor, dict[str, Any]]:
    """The expression, under a name, and the declared names."""
    names = declarations(options)
    output = read(options.expression, names, options.first_index)
    taken = {*names, *(str(x.name) for x in topological([output])), *(s.name for s in output.free_symbols)}
    return (output if output.op is let_op else let(fresh_name("O" if output.rank else "L", taken), output)), names


def _variables(options: argparse.Namespace, output: Tensor, names: Mapping[str, Any]) -> list[Any]:
    """What ``--wrt`` names: declared tensors and scalars, and intermediates; by default all real tensors in use."""
    if options.wrt is None:
        found = [x for x in names.values() if x in output.tensors and not is_fixed(x)]
        if not found:
            raise OperandError("the expression has no tensor to differentiate by: name variables by --wrt")
        return found
    known = {**{x.name: x for x in topological([output]) if x.name}, **names}
    wanted = [name.strip() for name in options.wrt.split(",")]
    for name in wanted:
        if name not in known:
            raise OperandError(f"--wrt {options.wrt}: {name!r} is none of {', '.join(known)}")
    return [known[name] for name in wanted]


def differentiated(options: argparse.Namespace) -> tuple[Tensor, Gradient, list[Any]]:
    """The expression, its gradients, and what a function of both takes."""
    output, names = read_output(options)
    g = gradient(output, _variables(options, output, names))
    return output, g, arguments_of([output], names, [g.cotangent] if output.rank else [])


def arguments_of(roots: Iterable[Tensor], names: Mapping[str, Any], more: Iterable[Tensor] = ()) -> list[Any]:
    """What a function of the roots takes: the declared tensors in use, in the order of their declaration."""
    used = {x for root in roots for x in root.tensors}
    return [*(x for x in names.values() if x in used), *more]
