"""``symattn grad``, and what it shares with other commands: declarations and expressions as text."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import OperandError

if TYPE_CHECKING:
    from ..calculus.result import Gradient, Step
    from ..core.node import Tensor


def add_commands(commands: Any) -> None:
    """The command and its options."""
    command = commands.add_parser("grad", help="gradients of an expression, in closed form, with the steps")
    add_expression(command)
    command.add_argument("--to", choices=("text", "latex", "numpy", "json"), default="text")
    command.set_defaults(run=_grad)


def add_expression(command: argparse.ArgumentParser) -> None:
    """The expression, what it is made of, and what to differentiate by."""
    command.add_argument("expression", metavar="EXPR", help='for example "Z = Q @ K.T / sqrt(d); softmax(Z) @ V"')
    add_declarations(command)
    command.add_argument("--wrt", metavar="NAMES", help="differentiate by these, separated by commas")


def add_declarations(command: argparse.ArgumentParser) -> None:
    """The tensors and the scalars that expressions are made of."""
    command.add_argument(
        "--shape", action="append", default=[], metavar='"Q: T d"', help='a tensor; properties follow: "M: T S, binary"'
    )
    command.add_argument("--scalar", action="append", default=[], metavar="NAME", help="a scalar symbol")


def declarations(options: argparse.Namespace) -> dict[str, Any]:
    """The tensors and scalar symbols that the command line declares."""
    import sympy

    from ..core.naming import check_name
    from ..reading import parse_shape

    tensors = [parse_shape(text) for text in options.shape]
    scalars = [sympy.Symbol(check_name(name), real=True) for name in options.scalar]
    names: dict[str, Any] = {}
    for name, meaning in [*((str(x.name), x) for x in tensors), *((s.name, s) for s in scalars)]:
        if name in names:
            raise OperandError(f"{name!r} is declared twice")
        names[name] = meaning
    return names


def read_output(options: argparse.Namespace) -> tuple[Tensor, dict[str, Any]]:
    """The expression, under a name, and the declared names."""
    from ..core.naming import fresh_name
    from ..ops.leaves import let, let_op
    from ..reading import read

    names = declarations(options)
    output = read(options.expression, names)
    taken = {*names, *(str(x.name) for x in _below(output)), *(s.name for s in output.free_symbols)}
    return (output if output.op is let_op else let(fresh_name("O" if output.rank else "L", taken), output)), names


def _below(output: Tensor) -> list[Tensor]:
    from ..core.node import topological

    return topological([output])


def _variables(options: argparse.Namespace, output: Tensor, names: Mapping[str, Any]) -> list[Any]:
    """What ``--wrt`` names: declared tensors and scalars, and intermediates; by default all real tensors in use."""
    if options.wrt is None:
        constant = {"binary", "integer", "constant"}
        found = [x for x in names.values() if x in output.tensors and not constant & set(x.params["hypotheses"])]
        if not found:
            raise OperandError("the expression has no tensor to differentiate by: name variables by --wrt")
        return found
    known = {**{x.name: x for x in _below(output) if x.name}, **names}
    wanted = [name.strip() for name in options.wrt.split(",")]
    for name in wanted:
        if name not in known:
            raise OperandError(f"--wrt {options.wrt}: {name!r} is none of {', '.join(known)}")
    return [known[name] for name in wanted]


def differentiated(options: argparse.Namespace) -> tuple[Tensor, Gradient, list[Any]]:
    from ..calculus.gradient import gradient

    output, names = read_output(options)
    g = gradient(output, _variables(options, output, names))
    return output, g, arguments_of([output], names, [g.cotangent] if output.rank else [])


def arguments_of(roots: Iterable[Tensor], names: Mapping[str, Any], more: Iterable[Tensor] = ()) -> list[Any]:
    """What a function of the roots takes: the declared tensors in use, in the order of their declaration."""
    used = {x for root in roots for x in root.tensors}
    return [*(x for x in names.values() if x in used), *more]


def _grad(options: argparse.Namespace) -> int:
    from ..codegen import lambdify

    output, g, arguments = differentiated(options)
    writers: dict[str, Callable[[], str]] = {
        "text": lambda: str(g),
        "latex": g.latex,
        "numpy": lambda: lambdify(arguments, [g]).source,
        "json": lambda: json.dumps(_as_json(options.expression, output, g), indent=2),
    }
    print(writers[options.to]().rstrip())
    return 0


def _as_json(expression: str, output: Tensor, g: Gradient) -> dict[str, Any]:
    from ..core.naming import latex_name

    text, latex = g.printer(latex=False), g.printer(latex=True)

    def described(step: Step) -> dict[str, Any]:
        return {
            "name": step.name,
            "expression": text.refer(step.expression),
            "latex": f"{latex_name(step.name)} = {latex.refer(step.expression)}",
            "reason": step.reason,
            "shape": list(map(str, step.expression.shape)),
        }

    return {
        "expression": expression,
        "output": {"name": output.name, "shape": list(map(str, output.shape))},
        "cotangent": g.cotangent.name if output.rank else "1",
        "shapes": {str(x.name): list(map(str, x.shape)) for x in output.tensors},
        "steps": [described(step) for step in g.steps],
        "definitions": [described(step) for step in g.definitions],
        "side_conditions": list(g.side_conditions),
    }
