"""``symattn eval``: an expression, and its gradients, on the arrays of a file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..codegen import lambdify
from ..core.files import check_writable
from ..core.naming import in_python
from ..errors import EvaluationError
from .arrays import of_arguments, save, settings
from .expressions import add_expression, arguments_of, differentiated, read_output


def add_options(command: argparse.ArgumentParser) -> None:
    """The expression, the arrays, and where to write the results."""
    add_expression(command)
    command.add_argument("--data", required=True, metavar="FILE.npz", help="the arrays, by the names of the tensors")
    command.add_argument("--grad", action="store_true", help="the gradients too; the data then hold the cotangent, dO")
    command.add_argument("--set", action="append", default=[], metavar="NAME=NUMBER", help="a scalar, or a free size")
    command.add_argument("-o", "--output", metavar="FILE.npz", help="write the results here instead of printing them")


def run(options: argparse.Namespace) -> int:
    """Print the values, or write them to a file."""
    if options.output:
        check_writable(options.output)
    if options.grad:
        output, g, arguments = differentiated(options)
        names = [str(output.name), *(str(x.name) for x in g.values())]
        f = lambdify(arguments, [output, g])
    else:
        output, declared = read_output(options)
        arguments, names = arguments_of([output], declared), [str(output.name)]
        f = lambdify(arguments, [output])
    numbers = settings(options.set)
    if missing := [name for s in f.takes.keywords if (name := in_python(s.name)) not in numbers]:
        raise EvaluationError(f"the arrays do not tell {', '.join(missing)}: add --set {missing[0]}=NUMBER")
    results = _computed(f, of_arguments(options.data, arguments), numbers)
    found = dict(zip(names, results, strict=True))
    if options.output:
        save(options.output, found)
    else:
        for name, array in found.items():
            print(f"{name} =\n{array}" if getattr(array, "ndim", 0) else f"{name} = {array}")
    return 0


def _computed(f: Callable[..., Any], arrays: Sequence[Any], numbers: Mapping[str, int | float]) -> Any:
    try:
        return f(*arrays, **numbers)
    except np.linalg.LinAlgError as problem:
        raise EvaluationError(f"{problem}: at these data the expression has no value") from None
    except MemoryError as problem:
        raise EvaluationError(f"{problem}: choose smaller arrays and sizes") from None
