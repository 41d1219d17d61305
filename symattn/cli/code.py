"""``symattn code``: an expression, and its gradients, as a module of code that stands alone."""

from __future__ import annotations

import argparse

from ..codegen import lambdify
from ..core.files import replacing
from .expressions import add_expression, arguments_of, differentiated, read_output


def add_options(command: argparse.ArgumentParser) -> None:
    """The expression, in what it is written, and where to."""
    add_expression(command)
    command.add_argument("--grad", action="store_true", help="the gradients too, and a test of them")
    libraries = ("numpy", "torch", "jax")
    command.add_argument("--backend", choices=libraries, default="numpy", help="what computes with arrays")
    command.add_argument("-o", "--output", metavar="FILE.py", help="write the module here instead of printing it")


def run(options: argparse.Namespace) -> int:
    """Print the module, or write it to a file."""
    if options.grad:
        output, g, arguments = differentiated(options)
        source = lambdify(arguments, [output, g], backend=options.backend).source
    else:
        output, names = read_output(options)
        source = lambdify(arguments_of([output], names), output, backend=options.backend).source
    if options.output is None:
        print(source, end="")
        return 0
    with replacing(options.output) as temporary:
        temporary.write_text(source, encoding="utf-8")
    return 0
