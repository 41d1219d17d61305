"""``symattn grad``: gradients of an expression, in closed form, with the steps."""

from __future__ import annotations

import argparse
from typing import Any

from ..calculus.result import Gradient, Step
from ..codegen import lambdify
from ..core.node import Tensor
from ..printing.symbols import latex_name
from .expressions import add_expression, add_formats, differentiated, show


def add_options(command: argparse.ArgumentParser) -> None:
    """The expression, and how to write its gradients."""
    add_expression(command)
    add_formats(command, "text", "latex", "numpy", "json")


def run(options: argparse.Namespace) -> int:
    """Print the gradients."""
    output, g, arguments = differentiated(options)
    return show(
        options,
        text=lambda: str(g),
        latex=g.latex,
        numpy=lambda: lambdify(arguments, [g]).source,
        json=lambda: _as_json(options.expression, output, g),
    )


def _as_json(expression: str, output: Tensor, g: Gradient) -> dict[str, Any]:
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
